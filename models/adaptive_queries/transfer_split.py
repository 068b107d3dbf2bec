"""The free constants of the transfer theorem: the closed form, and the conic program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from forcopt.errors import DeclarationError
from forcopt.language.atoms import inverse
from forcopt.language.model import Model
from forcopt.loops.solution import ModelSolution
from forcopt.problem import Evaluation, Handles, Outcome, Problem

__all__ = ["Split", "TransferSplit", "best_split", "closed_form", "cone"]


@dataclass(frozen=True)
class Split:
    """The constants c and d of the transfer theorem.

    Attributes
    ----------
    c, d : float
        Above 0, with a sum below the error.
    """

    c: float
    d: float


class TransferSplit(Problem):
    """Choose the constants of the transfer theorem: least ``c + 2 d`` with ``A / c + B / d <= failure``.

    Attributes
    ----------
    A : float
        The multiplicity times beta, at least 0.
    B : float
        The multiplicity times K times delta, at least 0.
    failure : float
        The failure probability that is allowed, above 0.

    Raises
    ------
    DeclarationError
        If A and B are both 0, or a number is out of its range.

    References
    ----------
    The constants of Theorems 9, 10, 12, 14 and 17 of Du and Dwork (2022).

    Examples
    --------
    >>> from forcopt.models import TransferSplit
    >>> s = TransferSplit(A=1e-4, B=1e-6, failure=0.05).solve()
    >>> round(s.objective, 10), round(s.decision.c, 10)
    (0.0026056854, 0.0022828427)
    """

    family: ClassVar[str] = "queries"
    sense: ClassVar[Literal["min", "max"]] = "min"
    default_method: ClassVar[str] = "closed-form"

    A: float = Field(ge=0.0, allow_inf_nan=False)
    B: float = Field(ge=0.0, allow_inf_nan=False)
    failure: float = Field(gt=0.0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _has_terms(self) -> Self:
        if self.A == 0 == self.B:
            raise DeclarationError("A and B are both 0; there is nothing to split")
        return self

    def evaluate(self, decision: Split | Sequence[float]) -> Evaluation:
        """Give ``c + 2 d``; the violation is the failure above the allowed one, relatively.

        Parameters
        ----------
        decision : Split or pair of float
            c and d; 0 is allowed where A or B is 0.
        """
        c, d = (decision.c, decision.d) if isinstance(decision, Split) else map(float, decision)
        violations = {}
        if min(c, d) < 0:
            violations["sign"] = -min(c, d)
        missed = sum(
            0.0 if above == 0 else above / below if below > 0 else inf
            for above, below in ((self.A, c), (self.B, d))
        )
        over = missed / self.failure - 1
        if over > 1e-9:
            violations["failure"] = over
        return Evaluation(c + 2 * d, violations, {"failure": missed})


def best_split(a: Any, b: Any, failure: Any) -> tuple[Any, Any]:
    """The best c and d of `TransferSplit`, elementwise: ``s sqrt(A)`` and ``s sqrt(B / 2)``.

    With ``s = (sqrt(A) + sqrt(2 B)) / failure``; then ``c + 2 d`` is ``(sqrt(A) + sqrt(2 B))^2 / failure``.
    """
    s = (a**0.5 + (2 * b) ** 0.5) / failure
    return s * a**0.5, s * (b / 2) ** 0.5


@TransferSplit.algorithm("closed-form", exact=True, cites="Lagrange multipliers")
def closed_form(problem: TransferSplit, *, time_limit: float | None = None) -> Outcome:
    """Give the formula of `best_split`."""
    return Outcome(Split(*best_split(problem.A, problem.B, problem.failure)))


@TransferSplit.formulation("cone", exact=True, cites="reciprocals as second-order cones")
def cone(problem: TransferSplit, model: Model) -> Handles:
    """Two reciprocals in rotated second-order cones, in units in which c, d and the row are about 1.

    Returns
    -------
    Handles
        ``c`` and ``d``, expressions; one that is 0 is missing.
    """
    roots = {"c": sqrt(problem.A), "d": sqrt(2 * problem.B)}
    total = sum(roots.values())
    parts: dict[str, Any] = {}
    rows, goal = [], []
    for name, root in roots.items():
        if root:
            x = model.variable(model.unused_name(name), lower=0)
            share = root / total
            parts[name] = x * (root * total / problem.failure / (1 if name == "c" else 2))
            goal.append(x * share)
            rows.append(inverse(x) * share)
    model.subject_to(sum(rows[1:], rows[0]) <= 1, name=model.unused_name("failure"))

    def decision(result: ModelSolution) -> Split:
        c, d = (max(float(result[parts[name]]), 0.0) if name in parts else 0.0 for name in roots)
        over = max(problem.evaluate([c, d]).metrics["failure"] / problem.failure, 1.0)
        return Split(c * over, d * over)  # without the solver's tolerance

    return Handles(
        objective=sum(goal[1:], goal[0]), decision=decision, unit=total**2 / problem.failure, **parts
    )
