"""Regression with lexicographically minimal group losses, or with a bound on each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, WithJsonSchema, model_validator
from scipy.sparse import issparse

from forcopt.arrays import Array, as_numbers, check_shape, rounded_up
from forcopt.clock import Deadline
from forcopt.declaration import Name, Numbers
from forcopt.errors import BackendError, DeclarationError, require
from forcopt.language import Expression, Model, Variable, norm, stack, sum_squares
from forcopt.learning.files import distribution, finite_numbers
from forcopt.learning.fitted import fitted_from_plain, fitted_to_plain
from forcopt.learning.hull import OracleHull
from forcopt.learning.hypotheses import aligned, take_names
from forcopt.learning.learner import plain_estimator, read_estimator, weight_name
from forcopt.learning.policy import mixed
from forcopt.learning.tables import rows_of
from forcopt.models.fair_classification.decision import Features, take_raw
from forcopt.models.lexifair.losses import Loss, LossName, loss_of, newton
from forcopt.models.lexifair.problem import Fit, GroupModel, Lexifair, Responder, members_of
from forcopt.models.lexifair.tolerances import FITTED, LEAST_LOSS, LEAST_NORM, PENALTY, RANK, UNIT
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


@dataclass(frozen=True, eq=False, repr=False)
class RegressorMean(GroupModel):
    """Predicts the weighted mean of the predictions of fitted regressors.

    By convexity it loses no more in any group than a lottery over them. A classifier among them counts with
    its decision function, the score of a logistic loss.

    Attributes
    ----------
    weights : Array
        Of the regressors, with sum 1, shape ``(m,)``.
    estimators : tuple[Any, ...]
        The fitted estimators of scikit-learn.

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> parts = tuple(DummyRegressor(strategy="constant", constant=c).fit([[0]], [c]) for c in (0.0, 1.0))
    >>> RegressorMean(np.zeros(1), ("all",), np.array([0.25, 0.75]), parts).predict([[3.0]]).tolist()
    [0.75]
    """

    weights: Array
    estimators: tuple[Any, ...]

    def predict(self, features: Any) -> Array:
        """The predictions for rows of features, shape ``(n,)``."""
        table = aligned(features, self.features)
        return mixed(self.weights, np.array([score_of(e, table) for e in self.estimators]))

    def to_dict(self) -> dict[str, Any]:
        """Names, losses, and the fitted regressors with their weights as plain data."""
        parts = [fitted_to_plain(e) for e in self.estimators]
        return {**super().to_dict(), "weights": self.weights.tolist(), "estimators": parts}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The model of plain data."""
        losses = finite_numbers(data, "losses", len(data["names"]))
        weights = distribution(data["weights"], "weights")
        parts = tuple(map(fitted_from_plain, data["estimators"]))
        return cls(losses, tuple(data["names"]), weights, parts, features=tuple(data.get("features", ())))


def score_of(fitted: Any, features: Any) -> Array:
    """The prediction of a fitted regressor, or the decision function of a classifier; shape ``(n,)``."""
    ask = getattr(fitted, "decision_function", None) or fitted.predict
    return np.asarray(ask(features), dtype=float).reshape(-1)


Regressor = Annotated[
    Any, PlainValidator(read_estimator), PlainSerializer(plain_estimator), WithJsonSchema({"type": "object"})
]


def _named(data: Any) -> Any:
    """The fields of a declaration, with the names of the features; a learner gets a frame as it is."""
    return take_names(take_raw(data, data.get("learner") is not None) if isinstance(data, dict) else data)


class LexifairRegression(Lexifair):
    """Fit a model whose sorted vector of group losses is lexicographically smallest.

    The largest group loss is made as small as possible (minimax fairness), then the second largest among the
    models that do that, and so on. The loss is any convex one; the models are linear, or means of the fits of
    a learner.

    Attributes
    ----------
    features : Features
        Shape ``(n, d)``; add a column of ones for an intercept. With a `learner` also a frame with text.
    radius : float, optional
        The Euclidean norm of the coefficients is at most this; None for no limit.
    feature_names : tuple[str, ...], optional
        Of the d features; those of a frame by default. The decision takes the columns of a frame by name.
    loss : {"squared", "logistic", "absolute", "quantile", "poisson"}, default "squared"
        Of a prediction s for a label y: ``(s - y)^2``; ``log(1 + exp(-s))`` for label 1, and of the opposite
        score for label 0; ``|s - y|``; the pinball loss; ``exp(s) - y s`` less its minimum (half the
        deviance). For the logistic and the Poisson loss the prediction is the score, before the link.
    quantile : float, default 0.5
        That the quantile loss estimates, strictly between 0 and 1.
    learner : estimator, optional
        Of scikit-learn, with ``sample_weight`` in ``fit``. The models are then weighted means of its fits,
        instead of linear ones.

    Raises
    ------
    DeclarationError
        For an empty group, a record that does not exist, more levels than groups, columns of different
        length, labels that the loss does not take, and groups seen through a channel.

    References
    ----------
    Diana, Gill, Globus-Harris, Kearns, Roth, Sharifi-Malvajerdi, FORC 2021, section 5.

    Notes
    -----
    The other fields are as in `Lexifair`. A weighted linear fit is exact: a decomposition for squares,
    Newton's method for smooth losses, a linear program for the others. A learner's fit is not: its levels are
    bounded as if it were, see `Lexifair.audit`.

    Examples
    --------
    >>> from forcopt.models import LexifairRegression
    >>> X, y = [[1, 0], [1, 0], [0, 1], [1, 1]], [0, 2, 3, 3.5]
    >>> p = LexifairRegression(features=X, labels=y, groups=[[0], [1], [2], [3]])
    >>> s = p.solve()
    >>> s.decision.coefficients.round(3).tolist(), s.decision.sorted_losses.round(2).tolist()
    ([1.0, 2.75], [1.0, 1.0, 0.06, 0.06])
    >>> p.replace(loss="absolute").solve().decision.sorted_losses.round(3).tolist()
    [1.0, 1.0, 0.25, 0.25]
    """

    refuses_channel: ClassVar[str] = "an inverted channel gives records negative weights: no convex loss"

    features: Features
    radius: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    feature_names: tuple[Name, ...] = Field(default=(), kw_only=True)
    loss: LossName = Field(default="squared", kw_only=True)
    quantile: Annotated[float, Field(gt=0, lt=1)] = Field(default=0.5, kw_only=True)
    learner: Regressor | None = Field(default=None, kw_only=True)

    _names_features = model_validator(mode="before")(_named)

    @model_validator(mode="after")
    def _has_features(self) -> Self:
        shape = self.features.shape
        require(len(shape) == 2 and shape[1], "features: the shape", shape, "be (n, d), d at least 1")
        if shape[0] != len(self.labels):
            raise DeclarationError(f"features has {shape[0]} rows, labels {len(self.labels)}")
        if self.learner is None and (issparse(self.features) or not np.isfinite(self.features).all()):
            raise DeclarationError("features: linear models take dense features without missing values")
        if self.learner is not None and self.radius is not None:
            raise DeclarationError(f"radius is {self.radius:g}; it bounds linear models, not a learner's")
        if self.channel is not None:
            self.check_channel("channel", self.channel.observe(()))
        _ = self.criterion
        return self

    @cached_property
    def criterion(self) -> Loss:
        """The loss of a record."""
        return loss_of(self.loss, self.quantile, self.labels)

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
        return LinearModel(self._losses(theta), self.group_names, theta, features=self.feature_names)

    def _coefficients(self, decision: Any) -> Array:
        given = decision.coefficients if isinstance(decision, LinearModel) else decision
        theta = as_numbers(given, "decision")
        if isinstance(decision, LinearModel) and decision.features and self.feature_names:
            theta = aligned(theta[None], self.feature_names, decision.features)[0]
        check_shape(theta, self.features.shape[1:], "the decision")
        return theta

    @property
    def is_linear(self) -> bool:
        """Absolute losses are linear programs; others are not."""
        return self.loss in ("absolute", "quantile") and self.radius is None

    @property
    def exact(self) -> bool:
        """Linear fits are, a learner's are not."""
        return self.learner is None

    @cached_property
    def loss_unit(self) -> float:
        """The largest group loss of the fit to all groups alike; the mean squared label if that is 0."""
        count = len(self.groups)
        largest = float(self.best_response(np.full(count, 1.0 / count)).losses.max())
        rounding = FITTED * float(np.square(self.labels).max())
        return largest if largest > rounding else float(np.square(self.labels).mean()) or 1.0

    # -- the interface of Lexifair -------------------------------------------------------------------------

    def _scores(self, decision: Any) -> Array:
        if isinstance(decision, RegressorMean):
            return decision.predict(self.features)
        return np.asarray(self.features @ self._coefficients(decision))

    def _losses(self, theta: Array) -> Array:
        if self.loss == "squared":
            point = np.append(theta, -1.0)
            return np.array([float(np.square(f @ point).sum()) for f in self.factors])
        return np.asarray(self.averages @ self.criterion.value(self.features @ theta, self.labels))

    def group_losses(self, decision: LinearModel | RegressorMean | Any) -> Array:
        """The mean loss in each group, shape ``(K,)``."""
        return self.fit_of(decision).losses

    def overall_loss(self, decision: LinearModel | RegressorMean | Any) -> float:
        """The mean loss over all records."""
        losses = self.criterion.value(self._scores(decision), self.labels)
        return float((self.record_weights * losses).mean())

    def misfit(self, decision: LinearModel | RegressorMean | Any) -> dict[str, float]:
        """By how much the norm is above the radius."""
        if self.radius is None:
            return {}
        return {"radius": float(np.linalg.norm(self._coefficients(decision))) - self.radius}

    def responder(self, deadline: Deadline | None = None) -> Responder:
        """Weighted fits: of the learner, or of linear models within the radius."""
        if self.learner is not None:
            return lambda weights, prices: self._learn(weights @ self.averages)
        return lambda weights, prices: self._linear(self.coefficients_of(weights))

    def _linear(self, theta: Array) -> Fit:
        return Fit(self._losses(theta), np.zeros(0), theta)

    def _learned(self, chances: Array, estimators: tuple[Any, ...], scores: Array) -> Fit:
        losses = np.asarray(self.averages @ self.criterion.value(scores, self.labels))
        return Fit(losses, np.zeros(0), (chances, estimators, scores))

    def _learn(self, weights: Array) -> Fit:
        """Fit the learner to records of these weights; with no weight at all any fit is the best."""
        from sklearn.base import clone

        weights = weights if weights.any() else self.record_weights
        kept = np.flatnonzero(weights > 0)
        rows = self.features if len(kept) == len(weights) else rows_of(self.features, kept)
        labels = self.labels.astype(np.int64) if self.loss == "logistic" else self.labels
        fitted = clone(self.learner)
        scaled = weights[kept] * (len(kept) / weights[kept].sum())
        fitted.fit(rows, labels[kept], **{weight_name(fitted): scaled})
        return self._learned(np.ones(1), (fitted,), score_of(fitted, self.features))

    def coefficients_of(self, weights: Array) -> Array:
        """The coefficients of the least weighted sum of group losses, within the radius."""
        if self.loss == "squared":
            factor = np.vstack([np.sqrt(w) * f for w, f in zip(weights, self.factors, strict=True)])
            return self.least_squares(factor).coefficients
        if self.criterion.bend is None:
            model = Model("weighted fit")
            losses, decision, _ = self.write(model)
            model.minimize(losses @ (weights / max(float(weights.sum()), LEAST_LOSS)))
            found = model.solve("highs" if self.radius is None else "clarabel")
            if found.point is None:
                raise BackendError(f"the weighted fit failed: {found.message}")
            return np.asarray(decision(found).coefficients)
        records, start = np.asarray(weights @ self.averages), np.zeros(self.features.shape[1])

        def at(penalty: float) -> Array:
            return newton(self.criterion, self.features, self.labels, records, start, penalty)

        slope = self.criterion.slope(np.zeros(len(self.labels)), self.labels)
        return self._within(at, float(np.linalg.norm(self.features.T @ (records * slope))))

    def _within(self, at: Callable[[float], Array], slope: float) -> Array:
        """The fit of least penalty whose norm is within the radius; `slope` is that of the loss at 0."""
        from scipy.optimize import brentq

        def excess(penalty: float) -> float:
            return float(np.linalg.norm(at(penalty))) - (self.radius or np.inf)

        penalty = 0.0
        if self.radius is not None and excess(0.0) > 0:
            most = slope / self.radius
            penalty = float(brentq(excess, 0.0, most, xtol=PENALTY[0] * most, rtol=PENALTY[1]))
        return at(penalty)

    def least_squares(self, factor: Array) -> LinearModel:
        """The shortest model with the least ``|F (coefficients, -1)|``, within the radius; one decomposition.

        Beyond the radius the minimum is a ridge regression's, whose penalty makes the norm the radius.
        """
        left, values, right = np.linalg.svd(factor[:, :-1], full_matrices=False)
        along = values * (left.T @ factor[:, -1])
        squares = np.where(values > values.max(initial=0.0) * RANK, values**2, np.inf)
        found = self._within(lambda penalty: along / (squares + penalty), float(np.linalg.norm(along)))
        return self.model(right.T @ found)

    def blend(self, fits: Sequence[Fit], probabilities: Array) -> Fit:
        """The mean of the coefficients, or of the predictions: losses are convex."""
        if self.learner is None:
            return self._linear(probabilities @ np.array([f.parts for f in fits]))
        joined: dict[int, tuple[float, Any]] = {}
        for q, fit in zip(probabilities.tolist(), fits, strict=True):
            for chance, e in zip(*fit.parts[:2], strict=True) if q > 0 else ():
                joined[id(e)] = joined.get(id(e), (0.0, e))[0] + q * chance, e
        scores = np.asarray(sum(q * f.parts[2] for q, f in zip(probabilities, fits, strict=True) if q > 0))
        shares, estimators = zip(*joined.values(), strict=True)
        return self._learned(np.array(shares), estimators, scores)

    def decide(self, fit: Fit) -> LinearModel | RegressorMean:
        """The decision."""
        if self.learner is None:
            return self.model(fit.parts)
        chances, estimators, _ = fit.parts
        return RegressorMean(fit.losses, self.group_names, chances, estimators, features=self.feature_names)

    def fit_of(self, decision: Any) -> Fit:
        """A model, or coefficients, with its losses."""
        if isinstance(decision, RegressorMean):
            return self._learned(decision.weights, decision.estimators, self._scores(decision))
        return self._linear(self._coefficients(decision))

    def write(self, model: Model) -> tuple[Expression, Any, dict[str, Any]]:
        """Coefficients, and the groups' losses; squares have at most d + 1 terms each.

        With a learner the losses are those of means of fits that it finds, see `OracleHull`.
        """
        if self.learner is not None:
            none, unit = np.zeros(len(self.groups)), self.loss_unit

            def respond(weights: Array, deadline: Deadline) -> tuple[Array, Fit]:
                fit = self._learn(weights @ self.averages)
                return fit.losses / unit, fit

            hull = OracleHull(model, respond, none, none + np.inf, exact=False, upward=True)
            return unit * hull.point, lambda s: self.decide(self.blend(*reversed(hull.mixture(s)))), {}
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
        if self.loss == "squared":
            unit = self.loss_unit if unit is None else unit
            losses = unit * stack([_squares(f, shift, centre, unit) for f in self.factors])
        else:
            losses = self.averages @ self.criterion.write(self.features @ theta, self.labels)

        def decision(solution: Any) -> LinearModel:
            found = solution[theta]
            if self.radius is not None:  # a solver may leave the ball by its tolerance
                found = found * min(1.0, self.radius / max(float(np.linalg.norm(found)), LEAST_NORM))
            return self.model(found)

        def start(decision: Any) -> dict[Variable, Array]:
            return {shift: self._coefficients(decision) - centre}

        return losses, decision, {"coefficients": theta, "shift": shift, "start": start}


def _squares(factor: Array, shift: Any, centre: Array, unit: float) -> Expression:
    """The loss of a factor at ``centre + shift``, in units."""
    residuals = factor[:, :-1] @ shift + factor @ np.append(centre, -1.0)
    found: Expression = sum_squares(residuals / np.sqrt(unit))
    return found


class BoundedLossRegression(Problem):
    """Fit a model of least mean loss, if no group's mean loss may exceed a bound.

    Attributes
    ----------
    features, labels, groups, names, weights, radius, feature_names, loss, quantile, learner
        As in `LexifairRegression`.
    bound : float
        On the mean loss of every group, at least 0.

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
    refuses_channel: ClassVar[str] = LexifairRegression.refuses_channel

    features: Features
    labels: Numbers
    groups: Annotated[tuple[tuple[int, ...], ...], BeforeValidator(members_of)]
    bound: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    names: tuple[Name, ...] = Field(default=(), kw_only=True)
    weights: Numbers | None = Field(default=None, kw_only=True)
    radius: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(default=None, kw_only=True)
    feature_names: tuple[Name, ...] = Field(default=(), kw_only=True)
    loss: LossName = Field(default="squared", kw_only=True)
    quantile: Annotated[float, Field(gt=0, lt=1)] = Field(default=0.5, kw_only=True)
    learner: Regressor | None = Field(default=None, kw_only=True)

    _names_features = model_validator(mode="before")(_named)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _ = self.lexifair
        return self

    def choose_method(self) -> str:
        """Choose ``conic`` for linear models, ``column-generation`` with a learner."""
        return "conic" if self.learner is None else "column-generation"

    @cached_property
    def lexifair(self) -> LexifairRegression:
        """The lexicographic problem of the same records; its first level is the least possible bound."""
        shared = [name for name in type(self).model_fields if name != "bound"]
        return LexifairRegression(**{name: getattr(self, name) for name in shared}, levels=1)

    @cached_property
    def with_everybody(self) -> LexifairRegression:
        """`lexifair` with one more group, the last: all records."""
        return self.lexifair.replace(groups=(*self.groups, tuple(range(len(self.labels)))), names=())

    @cached_property
    def unit(self) -> float:
        """The loss that the formulation counts as 1: of labels that some model meets exactly, at most 1.

        The program is written around least squares, so that the size of the labels does not enter it.
        """
        largest = float(self.lexifair.least_squares(self.lexifair.overall_factor).losses.max())
        unit = self.lexifair.loss_unit
        return unit if largest > UNIT * unit else min(1.0, unit)

    @cached_property
    def least_bound(self) -> float:
        """The least bound that some linear model keeps: the minimax group loss."""
        return float(self.lexifair.solve().objective)

    def infeasibility_reason(self) -> str:
        """The least bound that some linear model keeps; a learner's fits prove none."""
        if self.learner is not None:
            return ""
        least = self.least_bound
        rule = f"bound is {self.bound:g}; every linear model has a group loss of at least {least:.6g}"
        return rule if least > self.bound else ""

    def least_relaxation(self, time_limit: float = 10.0) -> str:
        """Give the least bound that some linear model keeps; see `Problem.least_relaxation`."""
        least = self.least_bound
        return f"the least relaxation: bound {rounded_up(least):.6g}" if least > self.bound else ""

    def evaluate(self, decision: LinearModel | RegressorMean | Any) -> Evaluation:
        """Evaluate a model: mean loss, and the excess of each group's loss over the bound.

        Parameters
        ----------
        decision : LinearModel, RegressorMean or Any
            A model, or the coefficients of a linear one.
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
    """Convex program: of squares a quadratic objective, and a second-order cone for each group.

    A bound far above the losses of least squares is lowered to twice these losses. Least squares keeps both
    bounds, so the optimum is the same. Other losses are written record by record. With a learner the losses
    are those of means of fits that it finds.

    Returns
    -------
    Handles
        ``losses``, shape ``(K,)``; without a learner ``coefficients``, shape ``(d,)``.
    """
    base = problem.lexifair
    if problem.learner is not None:
        losses, decision, _ = problem.with_everybody.write(model)
        model.subject_to(losses[:-1] <= problem.bound, name="group_loss")
        return Handles(losses[-1], lambda s: base.decide(base.fit_of(decision(s))), losses=losses[:-1])
    if problem.loss != "squared":
        losses, decision, parts = base.write(model)
        model.subject_to(losses <= problem.bound, name="group_loss")
        each = base.criterion.write(base.features @ parts["coefficients"], base.labels)
        return Handles(each @ (base.record_weights / len(base.labels)), decision, losses=losses, **parts)
    factor = base.overall_factor
    centre = base.least_squares(factor)
    unit = problem.unit
    losses, decision, parts = base.write_around(model, centre.coefficients, unit)
    limit = min(problem.bound, 2.0 * float(centre.losses.max()) + unit)
    model.subject_to(losses / unit <= limit / unit, name="group_loss")
    objective = _squares(factor, parts.pop("shift"), centre.coefficients, unit)
    return Handles(objective, decision, unit=unit, losses=losses, **parts)
