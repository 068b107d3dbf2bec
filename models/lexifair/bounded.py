"""Least squares with a bound on the loss of every group."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from forcopt.arrays import rounded_up
from forcopt.declaration import Name, Numbers
from forcopt.language.atoms import sum_squares
from forcopt.language.model import Model
from forcopt.learning.hypotheses import take_names
from forcopt.models.lexifair.problem import members_of
from forcopt.models.lexifair.regression import LexifairRegression, LinearModel
from forcopt.models.lexifair.tolerances import UNIT
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Handles, Problem


class BoundedLossRegression(Problem):
    """Fit a linear model of least squared error, if no group's mean squared error may exceed a bound.

    Attributes
    ----------
    features, labels, groups, names, weights, radius, feature_names
        As in `LexifairRegression`.
    bound : float
        On the mean squared error of every group, at least 0.

    Raises
    ------
    DeclarationError
        As `LexifairRegression` does, and for a bound below 0.

    References
    ----------
    Agarwal, Dudík and Wu (2019): Fair regression: quantitative definitions and reduction-based algorithms,
    section 2, bounded group loss.

    Examples
    --------
    >>> from forcopt.models import BoundedLossRegression
    >>> p = BoundedLossRegression([[1], [1], [1]], [0, 0, 3], groups=[[0, 1], [2]], bound=2.25)
    >>> p.solve().decision
    group    loss
    0      2.2500
    1      2.2500
    """

    family: ClassVar[str] = "lexifair"
    default_method: ClassVar[str] = "conic"

    features: Numbers
    labels: Numbers
    groups: Annotated[tuple[tuple[int, ...], ...], BeforeValidator(members_of)]
    bound: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    names: tuple[Name, ...] = Field(default=(), kw_only=True)
    weights: Numbers | None = Field(default=None, kw_only=True)
    radius: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(default=None, kw_only=True)
    feature_names: tuple[Name, ...] = Field(default=(), kw_only=True)

    @model_validator(mode="before")
    @classmethod
    def _names_features(cls, data: Any) -> Any:
        return take_names(data)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _ = self.lexifair
        return self

    @cached_property
    def lexifair(self) -> LexifairRegression:
        """The lexicographic problem of the same records; its first level is the least possible bound."""
        return LexifairRegression(
            labels=self.labels,
            groups=self.groups,
            features=self.features,
            feature_names=self.feature_names,
            radius=self.radius,
            names=self.names,
            weights=self.weights,
            levels=1,
        )

    @cached_property
    def unit(self) -> float:
        """The loss that the formulation counts as 1: of labels that some model meets exactly, at most 1.

        The program is written around least squares, so that the size of the labels does not enter it.
        """
        losses = self.lexifair.least_squares(self.lexifair.overall_factor).losses
        largest = float(losses.max())
        unit = self.lexifair.loss_unit
        return unit if largest > UNIT * unit else min(1.0, unit)

    @cached_property
    def least_bound(self) -> float:
        """The least bound that some linear model keeps: the minimax group loss."""
        return float(self.lexifair.solve().objective)

    def infeasibility_reason(self) -> str:
        """The least bound that some linear model keeps."""
        if self.least_bound <= self.bound:
            return ""
        least = f"{self.least_bound:.6g}"
        return f"bound is {self.bound:g}; every linear model has a group loss of at least {least}"

    def least_relaxation(self, time_limit: float = 10.0) -> str:
        """Give the least bound that some linear model keeps; see `Problem.least_relaxation`."""
        if self.least_bound <= self.bound:
            return ""
        return f"the least relaxation: bound {rounded_up(self.least_bound):.6g}"

    def evaluate(self, decision: LinearModel | Any) -> Evaluation:
        """Evaluate a model: mean squared error, and the excess of each group's loss over the bound.

        Parameters
        ----------
        decision : LinearModel or Any
            A linear model, or its coefficients.
        """
        losses = dict(zip(self.lexifair.group_names, self.lexifair.group_losses(decision), strict=True))
        excess = {f"loss of {g}": float(v) - self.bound for g, v in losses.items()}
        allowed = FEASIBILITY_TOLERANCE * max(self.bound, min(1.0, self.lexifair.loss_unit))
        violations = {name: v for name, v in excess.items() if v > allowed}
        misfit = {name: v for name, v in self.lexifair.misfit(decision).items() if v > FEASIBILITY_TOLERANCE}
        return Evaluation(
            objective=self.lexifair.overall_loss(decision),
            violations=violations | misfit,
            metrics={f"loss of {g}": float(v) for g, v in losses.items()},
        )


@BoundedLossRegression.formulation("conic", exact=True, cites="Agarwal, Dudík and Wu (2019), section 2")
def conic(problem: BoundedLossRegression, model: Model) -> Handles:
    """Convex program: a quadratic objective, and a second-order cone for each group.

    A bound far above the losses of least squares is lowered to twice these losses. Least squares keeps both
    bounds, so the optimum is the same.

    Returns
    -------
    Handles
        ``coefficients``, shape ``(d,)``, and ``losses``, shape ``(K,)``.
    """
    base = problem.lexifair
    factor = base.overall_factor
    centre = base.least_squares(factor)
    unit = problem.unit
    losses, decision, parts = base.write_around(model, centre.coefficients, unit)
    limit = min(problem.bound, 2.0 * float(centre.losses.max()) + unit)
    model.subject_to(losses / unit <= limit / unit, name="group_loss")
    objective = sum_squares(
        (factor[:, :-1] @ parts["shift"] + factor @ np.append(centre.coefficients, -1.0)) / np.sqrt(unit)
    )
    return Handles(
        objective=objective,
        unit=unit,
        decision=decision,
        start=parts["start"],
        coefficients=parts["coefficients"],
        losses=losses,
    )
