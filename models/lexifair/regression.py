"""Least squares with lexicographically minimal group losses, or with a bound on each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from forcopt.arrays import Array, as_numbers, rounded_up
from forcopt.declaration import Name, Numbers
from forcopt.errors import DeclarationError
from forcopt.language.atoms import norm, sum_squares
from forcopt.language.expression import Expression
from forcopt.language.joins import stack
from forcopt.language.model import Model
from forcopt.language.variable import Variable
from forcopt.learning.files import finite_numbers
from forcopt.learning.hypotheses import aligned, take_names
from forcopt.learning.policy import mixed
from forcopt.models.lexifair.problem import GroupModel, Lexifair, members_of
from forcopt.models.lexifair.tolerances import FITTED, LEAST_NORM, PENALTY, RANK, UNIT
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Handles, Problem


@dataclass(frozen=True, eq=False, repr=False)
class LinearModel(GroupModel):
    """Predicts ``x @ coefficients + intercept``; coefficients of shape ``(d,)``.

    Attributes
    ----------
    coefficients : Array
        Shape ``(d,)``.
    intercept : float, default 0.0
        Added to the product. A model that was learnt with a column of ones has it among its coefficients.

    Examples
    --------
    >>> LinearModel(np.zeros(1), ("all",), np.array([1.0, 2.0])).predict([[1, 1]]).tolist()
    [3.0]
    """

    coefficients: Array
    intercept: float = 0.0

    def predict(self, features: Any) -> Array:
        """The predictions for features of shape ``(n, d)``, shape ``(n,)``."""
        table = as_numbers(aligned(features, self.features), "features")
        return mixed(self.coefficients, table.T) + self.intercept

    def to_dict(self) -> dict[str, Any]:
        """Names, losses and coefficients as plain data; the proof of the levels is left out."""
        constant = {"intercept": self.intercept} if self.intercept else {}
        return {**super().to_dict(), "coefficients": self.coefficients.tolist(), **constant}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The model of plain data."""
        losses = finite_numbers(data, "losses", len(data["names"]))
        names = tuple(data.get("features", ()))
        theta, constant = finite_numbers(data, "coefficients"), float(data.get("intercept", 0.0))
        return cls(losses, tuple(data["names"]), theta, constant, features=names)


class LexifairRegression(Lexifair):
    """Fit a linear model whose sorted vector of group losses is lexicographically smallest.

    The loss is the squared error. The largest group loss is made as small as possible (minimax fairness),
    then the second largest among the models that do that, and so on.

    Attributes
    ----------
    features : Numbers
        Shape ``(n, d)``; add a column of ones for an intercept.
    radius : float, optional
        The Euclidean norm of the coefficients is at most this; None for no limit.
    feature_names : tuple[str, ...], optional
        Of the d features; those of a frame by default. The decision takes the columns of a frame by name.

    Raises
    ------
    DeclarationError
        For an empty group, a record that does not exist, more levels than groups, and columns of different
        length.

    References
    ----------
    Diana, Gill, Globus-Harris, Kearns, Roth, Sharifi-Malvajerdi, FORC 2021, section 5.

    Notes
    -----
    The other fields are as in `Lexifair`.

    Examples
    --------
    >>> from forcopt.models import LexifairRegression
    >>> X, y = [[1, 0], [1, 0], [0, 1], [1, 1]], [0, 2, 3, 3.5]
    >>> p = LexifairRegression(features=X, labels=y, groups=[[0], [1], [2], [3]])
    >>> s = p.solve()
    >>> s.decision.coefficients.round(3).tolist(), s.decision.sorted_losses.round(2).tolist()
    ([1.0, 2.75], [1.0, 1.0, 0.06, 0.06])
    """

    features: Numbers
    radius: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    feature_names: tuple[Name, ...] = Field(default=(), kw_only=True)

    @model_validator(mode="before")
    @classmethod
    def _names_features(cls, data: Any) -> Any:
        return take_names(data)

    @model_validator(mode="after")
    def _has_features(self) -> Self:
        if self.features.ndim != 2 or self.features.shape[1] == 0:
            raise DeclarationError(
                f"features: the shape is {self.features.shape}; it must be (records, features), one at least"
            )
        if len(self.features) != len(self.labels):
            raise DeclarationError(f"features has {len(self.features)} rows, labels {len(self.labels)}")
        return self

    @cached_property
    def factors(self) -> tuple[Array, ...]:
        """For each group a matrix F of at most d + 1 rows: its loss is ``|F (coefficients, -1)|^2``."""
        return tuple(self._factor(list(g)) for g in self.groups)

    def _factor(self, members: Any) -> Array:
        weights = self.record_weights[members]
        rows = np.column_stack([self.features[members], self.labels[members]])
        return np.asarray(np.linalg.qr(rows * np.sqrt(weights / weights.sum())[:, None], mode="r"))

    @cached_property
    def overall_factor(self) -> Array:
        """The same for all records together."""
        return self._factor(slice(None))

    def model(self, coefficients: Any) -> LinearModel:
        """The decision with these coefficients, shape ``(d,)``."""
        theta = self._coefficients(coefficients)
        return LinearModel(self.group_losses(theta), self.group_names, theta, features=self.feature_names)

    def _coefficients(self, decision: Any) -> Array:
        given = decision.coefficients if isinstance(decision, LinearModel) else decision
        theta = as_numbers(given, "decision")
        if isinstance(decision, LinearModel) and decision.features and self.feature_names:
            theta = aligned(theta[None], self.feature_names, decision.features)[0]
        if theta.shape != self.features.shape[1:]:
            raise DeclarationError(
                f"the decision has shape {theta.shape}; it must be {self.features.shape[1:]}, "
                "one coefficient for each feature"
            )
        return theta

    @property
    def is_linear(self) -> bool:
        """Squared errors are not."""
        return False

    @cached_property
    def loss_unit(self) -> float:
        """The largest group loss of the fit to all groups alike; the mean squared label if that is 0."""
        count = len(self.groups)
        largest = float(self.best_response(np.full(count, 1.0 / count)).losses.max())
        rounding = FITTED * float(np.square(self.labels).max())
        return largest if largest > rounding else float(np.square(self.labels).mean()) or 1.0

    # -- the interface of Lexifair -------------------------------------------------------------------------

    def group_losses(self, decision: LinearModel | Any) -> Array:
        """The mean squared error in each group, shape ``(K,)``."""
        theta = np.append(self._coefficients(decision), -1.0)
        return np.array([float(np.square(f @ theta).sum()) for f in self.factors])

    def overall_loss(self, decision: LinearModel | Any) -> float:
        """The mean squared error over all records."""
        misses = self.features @ self._coefficients(decision) - self.labels
        return float((self.record_weights * np.square(misses)).mean())

    def misfit(self, decision: LinearModel | Any) -> dict[str, float]:
        """By how much the norm is above the radius."""
        if self.radius is None:
            return {}
        return {"radius": float(np.linalg.norm(self._coefficients(decision))) - self.radius}

    def best_response(self, weights: Array) -> LinearModel:
        """Weighted least squares, within the radius; the shortest solution."""
        return self.least_squares(
            np.vstack([np.sqrt(w) * f for w, f in zip(weights, self.factors, strict=True)])
        )

    def least_squares(self, factor: Array) -> LinearModel:
        """The shortest model with the least ``|F (coefficients, -1)|``, within the radius; one decomposition.

        Beyond the radius the minimum is a ridge regression's, whose penalty makes the norm the radius.
        """
        from scipy.optimize import brentq

        left, values, right = np.linalg.svd(factor[:, :-1], full_matrices=False)
        along = values * (left.T @ factor[:, -1])
        squares = np.where(values > values.max(initial=0.0) * RANK, values**2, np.inf)

        def coordinates(penalty: float) -> Array:
            return np.asarray(along / (squares + penalty))

        def excess(penalty: float) -> float:
            return float(np.linalg.norm(coordinates(penalty))) - (self.radius or np.inf)

        penalty = 0.0
        if self.radius is not None and excess(0.0) > 0:
            most = float(np.linalg.norm(along)) / self.radius
            penalty = float(brentq(excess, 0.0, most, xtol=PENALTY[0] * most, rtol=PENALTY[1]))
        return self.model(right.T @ coordinates(penalty))

    def mix(self, models: Sequence[LinearModel], probabilities: Array) -> LinearModel:
        """The mean of the coefficients: squares are convex."""
        return self.model(probabilities @ np.array([m.coefficients for m in models]))

    def write(self, model: Model) -> tuple[Expression, Any, dict[str, Any]]:
        """Coefficients, and the groups' losses as sums of squares of at most d + 1 terms each."""
        return self.write_around(model, np.zeros(self.features.shape[1]))

    def write_around(
        self, model: Model, centre: Array, unit: float | None = None
    ) -> tuple[Expression, Any, dict[str, Any]]:
        """As `write`, by the shift of the coefficients from `centre`.

        If `centre` is near the optimum, labels far from 0 leave no large constants in the squares, from which
        solvers would lose digits. A loss of `unit` counts as 1, of `loss_unit` by default.
        """
        around = bool(centre.any())
        shift = model.variable(model.unused_name("shift" if around else "coefficients"), len(centre))
        theta = shift + centre if around else shift
        if self.radius is not None:
            model.subject_to(norm(theta) <= self.radius, name=model.unused_name("radius"))
        unit = self.loss_unit if unit is None else unit
        root = np.sqrt(unit)
        misses = [f @ np.append(centre, -1.0) for f in self.factors]
        scaled = stack(
            [
                sum_squares((f[:, :-1] @ shift + miss) / root)
                for f, miss in zip(self.factors, misses, strict=True)
            ]
        )
        losses = unit * scaled

        def decision(solution: Any) -> LinearModel:
            found = solution[theta]
            if self.radius is not None:  # a solver may leave the ball by its tolerance
                found = found * min(1.0, self.radius / max(float(np.linalg.norm(found)), LEAST_NORM))
            return self.model(found)

        def start(decision: Any) -> dict[Variable, Array]:
            return {shift: self._coefficients(decision) - centre}

        return losses, decision, {"coefficients": theta, "shift": shift, "start": start}


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
