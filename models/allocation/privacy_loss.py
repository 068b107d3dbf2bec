"""The privacy loss of a stratified sample, for public sizes and for sizes that follow from the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.privacy.amplification import PrivacyLoss, data_dependent_allocation, simple_random_sample

if TYPE_CHECKING:
    from forcopt.models.allocation.problem import Strata

__all__ = ["AllocationLoss", "allocation_loss"]


class AllocationLoss(NamedTuple):
    """The privacy loss at the worst neighbor.

    Attributes
    ----------
    loss : PrivacyLoss
        Lower and upper bound, and the exact loss where it is known.
    stratum : str
        The stratum in which the worst neighbor differs.
    change : int
        0 if a record is substituted, 1 if the neighbor has one record more, -1 if it has one fewer.

    Examples
    --------
    >>> from forcopt.models import StratifiedAllocation
    >>> p = StratifiedAllocation(sizes=[100, 50], deviations=[1, 4], sample_size=30)
    >>> worst = p.privacy_loss(1.0, [10, 20])
    >>> worst.stratum, round(worst.loss.exact, 4), worst.change
    ('1', 0.5231, 0)
    """

    loss: PrivacyLoss
    stratum: str
    change: int


def allocation_loss(problem: Strata, epsilon: float, allocation: Any, **options: Any) -> AllocationLoss:
    """Find the loss of an epsilon-private mechanism on a stratified sample; see `Strata.privacy_loss`.

    Raises
    ------
    DeclarationError
        For sizes that are not whole or beyond the strata, or a method that finds no allocation.
    """
    if not isinstance(allocation, str):
        sizes = problem.read_sizes(allocation)
        if (sizes != np.round(sizes)).any() or (sizes < 0).any() or (sizes > problem.sizes).any():
            raise DeclarationError("the sizes must be whole numbers between 0 and the strata's sizes")
        worst = int(np.argmax(sizes / problem.sizes))
        loss = simple_random_sample(epsilon, int(sizes[worst]), int(problem.sizes[worst]))
        return AllocationLoss(loss, problem.stratum_names[worst], 0)
    before = _sizes(problem, allocation, options)
    found = []
    for at in range(len(problem.sizes)):
        for change in (1, -1):
            sizes = problem.sizes.copy()
            sizes[at] += change
            if sizes[at] >= 1:
                after = _sizes(problem.replace(sizes=sizes), allocation, options)
                one, other = (before, after) if change > 0 else (after, before)
                loss = data_dependent_allocation(epsilon, one, other)
                found.append(AllocationLoss(loss, problem.stratum_names[at], change))
    return max(found, key=lambda each: each.loss.lower)


def _sizes(problem: Strata, method: str, options: dict[str, Any]) -> Any:
    solution = problem.solve(method, **options)
    if solution.decision is None:
        raise DeclarationError(f"method {method!r} finds no allocation: {solution.reason}")
    return solution.decision.sizes.astype(int)
