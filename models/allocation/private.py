"""Stratified samples whose sizes are private: the loss, and the problem that bounds it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from forcopt.arrays import Array
from forcopt.declaration import Numbers
from forcopt.errors import DeclarationError, require
from forcopt.models.allocation.problem import Allocation, Strata, StratifiedAllocation
from forcopt.numeric import Limit
from forcopt.privacy.amplification import PrivacyLoss, data_dependent_allocation, simple_random_sample
from forcopt.problem import Evaluation


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


class PrivateAllocation(Strata):
    """Choose how many records of each stratum to sample if the estimate gets Laplace noise for privacy.

    The noise is the least with which nobody's substitution by another record of the same stratum shows by
    more than `epsilon`. Sampling hides part of it: in stratum i a record moves the estimate by at most
    ``B N_i / (N m_i)``, and is in the sample with probability ``m_i / N_i`` (Theorem 2). So the noise needs a
    scale of ``s(m) = max_i B N_i / (N m_i log(1 + (N_i / m_i) (e^epsilon_i - 1)))``. Minimises the variance
    of the estimate with its noise, ``V(m) + 2 s(m)^2``.

    The sizes of the samples are public, and so are the strata: they must not be computed from the data that
    is to be protected, as `deviations` of the same survey would be.

    Attributes
    ----------
    sample_size : float, optional
        How many records may be sampled in all.
    epsilon : Numbers, optional
        The privacy loss that is allowed, above 0; a number, or one for each stratum.
    value_bound : float, optional
        B, the range of the variable: all values lie in an interval of this length.

    Raises
    ------
    DeclarationError
        For a loss or range that is not positive, or several variables.

    References
    ----------
    Bun, Drechsler, Gaboardi, McMillan, Sarathy (2022), equation (5), for allocations that do not depend on
    the data; Definition 10 for a loss by stratum.

    Notes
    -----
    The other fields are those of `Strata`; there is one variable.

    Examples
    --------
    >>> from forcopt.models import PrivateAllocation
    >>> fields = dict(sizes=[20, 10, 5], deviations=[1, 2, 6], sample_size=12, value_bound=20)
    >>> for epsilon in (1.0, 20.0):  # the less privacy, the nearer to Neyman's allocation
    ...     s = PrivateAllocation(epsilon=epsilon, **fields).solve("sweep")
    ...     print(s.decision.sizes.astype(int), round(s.objective, 6))
    [6 3 3] 2.209188
    [4 3 5] 0.176459
    """

    default_method: ClassVar[str] = "sweep"

    sample_size: float = Field(default=..., gt=0.0, allow_inf_nan=False)
    epsilon: Numbers = Field(default=...)
    value_bound: float = Field(default=..., gt=0.0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _privacy_fits(self) -> Self:
        fits = self.epsilon.shape in ((), self.sizes.shape) and (self.epsilon > 0).all()
        require(fits, "epsilon", self.epsilon.tolist(), "be above 0, a number or one for each stratum")
        if self.deviations.ndim != 1:
            raise DeclarationError("deviations: private allocation takes one variable, so one column")
        if not self.integer:
            raise DeclarationError("integer is False; private allocation has whole sizes only")
        return self

    def without_privacy(self) -> StratifiedAllocation:
        """The same strata and sample size, without noise."""
        shared = {name: getattr(self, name) for name in Strata.model_fields}
        return StratifiedAllocation(**shared, sample_size=self.sample_size)

    @property
    def named_limits(self) -> dict[str, Limit]:
        """The limit on the number of records."""
        return {"sample_size": (np.ones(len(self.sizes)), self.sample_size)}

    def scales(self, sizes: Array, strata: Array | slice = slice(None)) -> Array:
        """The scale of noise that each stratum needs for these sizes of its sample.

        Parameters
        ----------
        sizes : Array
            Shape ``(n,)``.
        strata : Array or slice, default slice(None)
            To which they belong; each to its own by default.
        """
        records = self.sizes[strata]
        epsilon = np.broadcast_to(self.epsilon, self.sizes.shape)[strata]
        with np.errstate(divide="ignore", invalid="ignore"):
            # log(1 + (N_i / m) (e^epsilon - 1)), where e^epsilon may overflow
            hidden = np.logaddexp(0.0, epsilon + np.log(records / sizes) + np.log(-np.expm1(-epsilon)))
            return np.asarray(self.value_bound * records / (self.population * sizes * hidden))

    def allocation(self, decision: Allocation | Any) -> Allocation:
        """The decision with these sizes, shape ``(k,)``."""
        chosen = super().allocation(decision)
        return replace(chosen, noise_scale=float(self.scales(chosen.sizes).max()))

    def evaluate(self, decision: Allocation | Any) -> Evaluation:
        """Evaluate an allocation with the noise that it needs.

        Parameters
        ----------
        decision : Allocation or Any
            An allocation, or its sizes.

        Returns
        -------
        Evaluation
            The variance of the noisy estimate; violations ``"minimum"``, ``"stratum"``, ``"maximum"``,
            ``"whole sizes"`` and ``"sample_size"``; as metrics the two parts of the variance and the scale of
            the noise.
        """
        chosen = self.allocation(decision)
        scale = float(chosen.noise_scale or 0.0)
        metrics = {
            "sample size": chosen.size,
            "variance of the sample": chosen.variance,
            "variance of the noise": 2 * scale**2,
            "noise scale": scale,
        }
        return Evaluation(chosen.variance + 2 * scale**2, self._violations(chosen.sizes), metrics)
