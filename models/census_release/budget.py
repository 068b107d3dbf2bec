"""The budget of each level, for the least variance of regions' counts."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from forcopt.arrays import Array, as_numbers, check_shape
from forcopt.clock import Deadline
from forcopt.declaration import Integers
from forcopt.errors import DeclarationError
from forcopt.language.atoms import inverse, power
from forcopt.language.model import Model
from forcopt.language.objective import leximax
from forcopt.loops.solution import ModelSolution
from forcopt.models.census_release.common import out_of_time
from forcopt.models.census_release.release import PublicTree, Region
from forcopt.models.census_release.tolerances import LEAST_SHARE, NO_EFFECT
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Handles, Method, Outcome, Problem
from forcopt.problem.drawing import Sketch


class LevelBudget(Problem):
    """Split a privacy budget over the levels of a hierarchy, for the least variance of regions' counts.

    Attributes
    ----------
    hierarchy : Hierarchy
        The tree; its counts are dropped.
    regions : tuple[Integers, ...]
        The leaves of each region.
    epsilon : float, optional
        The pure budget in all: a level's noise has variance ``8 / epsilon_l^2``.
    rho : float, optional
        Or the zero-concentrated budget in all: ``1 / rho_l``.
    criterion : Literal["mean", "max", "leximax"], default "mean"
        Of the regions' variances: their mean, the largest, or the largest and then the next.

    Notes
    -----
    A decision is the levels' shares, shape ``(d,)``, which sum to 1. In top-down order the variance of a
    region is ``sum_l a_l v_l`` with `Region.effects`. For one type.

    References
    ----------
    Cohen et al. (2021), section 4 and problem P4.

    Examples
    --------
    >>> from forcopt.data import Hierarchy
    >>> from forcopt.models import LevelBudget
    >>> p = LevelBudget(Hierarchy.homogeneous([10, 10]), regions=([0],), epsilon=1.0)
    >>> s = p.solve("closed-form")
    >>> s.decision.round(3).tolist(), round(s.objective, 4)
    ([0.038, 0.171, 0.791], 14.5237)
    """

    family: ClassVar[str] = "census"
    default_method: ClassVar[str] = "conic"

    hierarchy: PublicTree
    regions: tuple[Integers, ...] = Field(min_length=1)
    epsilon: float | None = Field(default=None, gt=0.0, allow_inf_nan=False)
    rho: float | None = Field(default=None, gt=0.0, allow_inf_nan=False)
    criterion: Literal["mean", "max", "leximax"] = "mean"

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.epsilon is None) == (self.rho is None):
            raise DeclarationError("give either epsilon or rho")
        _ = self.effects
        return self

    def method(self, name: str | None = None) -> Method:
        """Give a method by name; by default the closed form where it holds."""
        closed = self.criterion == "mean" or len(self.regions) == 1
        return super().method(name or ("closed-form" if closed else "conic"))

    @property
    def effects(self) -> Array:
        """`Region.effects` of each region, shape ``(regions, d)``."""
        return np.array([Region(self.hierarchy, leaves).effects() for leaves in self.regions])

    def noise(self, shares: Array) -> Array:
        """The noise variance of each level."""
        kept = np.maximum(shares, LEAST_SHARE)
        noise = 1 / (self.rho * kept) if self.epsilon is None else 8 / (self.epsilon * kept) ** 2
        return np.asarray(noise)

    def variances(self, decision: Any) -> Array:
        """The variance of each region, shape ``(regions,)``, by passes over the tree."""
        return np.asarray(self.effects @ self.noise(as_numbers(decision, "the shares")))

    def _sketch(self, decision: Any, evaluation: Evaluation) -> Any:
        parts = np.asarray(decision) / np.sum(decision)
        title = f"Level {parts.argmax()} of {len(parts)} has {parts.max():.0%} of the budget"
        return Sketch(title, decision, [f"level {k}" for k in range(len(parts))], unit="budget")

    def evaluate(self, decision: Any) -> Evaluation:
        """Every region's variance; the objective is their mean, or the largest of them.

        Parameters
        ----------
        decision : array_like
            The shares, shape ``(d,)``.
        """
        shares = as_numbers(decision, "the shares")
        check_shape(shares, (self.hierarchy.depth,), "the shares")
        each = self.variances(shares)
        value = float(each.mean() if self.criterion == "mean" else each.max())
        violations = {"share": float(-shares.min()), "total": abs(float(shares.sum()) - 1)}
        metrics = {f"variance {i}": float(v) for i, v in enumerate(each)}
        return Evaluation(value, {k: v for k, v in violations.items() if v > FEASIBILITY_TOLERANCE}, metrics)


@LevelBudget.algorithm(
    "closed-form", exact=True, cites="Cohen et al. (2021), section 4, after Corollary 3", rank="published"
)
def closed_form(problem: LevelBudget, *, time_limit: float | None = None) -> Outcome:
    """The mean over regions in top-down order: shares in proportion to ``a^(1/3)``; for rho, to ``a^(1/2)``.

    A level with effect 0 should get nothing, which no mechanism allows; the message names it.
    """
    if problem.criterion != "mean" and len(problem.regions) > 1:
        raise DeclarationError("closed-form: criterion must be 'mean': use conic")
    clock = Deadline(time_limit)
    effects = problem.effects.mean(axis=0)
    if clock.passed:
        return out_of_time(clock)
    d = problem.hierarchy.depth
    if not effects.any():
        return Outcome(np.full(d, 1 / d), message="the regions' counts have no variance at any split")
    roots = effects ** (1 / 3 if problem.epsilon is not None else 1 / 2)
    idle = [problem.hierarchy.level_name(int(level)) for level in np.flatnonzero(effects == 0)]
    message = f"no share is best for {', '.join(idle)}; a mechanism needs some" if idle else ""
    return Outcome(roots / roots.sum(), message=message)


@LevelBudget.formulation("conic", exact=True, cites="Cohen et al. (2021), problem of section 4; power cones")
def conic(problem: LevelBudget, model: Model) -> Handles:
    """Any criterion: the variances are sums of powers of the shares.

    Returns
    -------
    Handles
        ``shares``, shape ``(d,)``; ``variances``, shape ``(regions,)``, in units of ``unit``.
    """
    d = problem.hierarchy.depth
    shares = model.variable(model.unused_name("shares"), d, lower=0, upper=1)
    model.subject_to(shares.sum() == 1, name=model.unused_name("whole_budget"))
    effects = problem.effects
    unit = float(problem.noise(np.full(d, 1 / d))[0] * max(effects.max(), NO_EFFECT))
    used = np.flatnonzero(effects.max(axis=0) > 0)
    if problem.epsilon is not None:
        each, factor = power(shares[used], -2.0), 8 / problem.epsilon**2
    else:
        assert problem.rho is not None
        each, factor = inverse(shares[used]), 1 / problem.rho
    losses = (effects[:, used] * (factor / unit)) @ each
    objective: Any = losses.sum() * (1 / len(effects))
    if problem.criterion != "mean":
        if problem.criterion == "leximax":
            objective = leximax(losses)
        else:
            top = model.variable(model.unused_name("largest"))
            model.subject_to(losses <= top, name=model.unused_name("largest"))
            objective = top

    def read(result: ModelSolution) -> Array:
        found = np.maximum(result[shares], 0.0)
        return np.asarray(found / found.sum())

    return Handles(objective=objective, decision=read, unit=unit, shares=shares, variances=losses)
