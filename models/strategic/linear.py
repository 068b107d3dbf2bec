"""Agents who move to meet linear criteria; linear classifiers of them, with the truth as a baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema, model_validator

from forcopt.arrays import Array, as_numbers, by_label, check_entries
from forcopt.declaration import Name, Numbers
from forcopt.errors import DeclarationError, require, require_shape
from forcopt.learning.hypotheses import aligned, take_names
from forcopt.models.strategic.responses import Responses
from forcopt.models.strategic.tolerances import ROUNDING, TOLERANCE
from forcopt.problem import Evaluation, Outcome, Problem
from forcopt.status import Status

_NOT_NEGATIVE = "it must not be negative, since lowering a feature is free"


def _flags(value: Any) -> Array:
    numbers = as_numbers(value, "the array")
    check_entries(numbers, ~np.isin(numbers, (0, 1)), "the array", "it must be true or false (1 or 0)")
    out: Array = numbers.astype(bool)
    out.flags.writeable = False
    return out


Flags = Annotated[
    np.ndarray[Any, np.dtype[np.bool_]],
    PlainValidator(_flags),
    PlainSerializer(lambda values: values.tolist()),
    WithJsonSchema({"type": "array", "items": {"type": "boolean"}}),
]
"""A field of booleans, read-only."""


def check_weights(weights: Array | None, agents: int) -> None:
    """Check that there is one weight for each agent and none is negative.

    Raises
    ------
    DeclarationError
        Naming the entry.
    """
    if weights is None:
        return
    require(weights.shape == (agents,), "weights: the shape", weights.shape, f"be ({agents},)")
    check_entries(weights, weights < 0, "weights: the array", "it must not be negative")


def forbids_false_positives(most: float | None, weights: Array) -> bool:
    """Whether at most `most` false positives means none: not even the lightest agent (of positive weight)."""
    return most is not None and most < weights.min(where=weights > 0, initial=np.inf)


class LinearAgents(Problem):
    """The base of the problems whose agents have features.

    Attributes
    ----------
    X : Numbers
        Where the agents start, shape ``(n, d)``.
    truth : tuple[Numbers, float]
        The pair ``(a, b)``: qualified means ``a x >= b``; `a` has shape ``(d,)`` and is not negative.
    costs : Numbers
        The cost of raising each feature by one unit, shape ``(d,)``, positive.
    improvable : Flags
        For each feature whether raising it truly improves (otherwise it is gaming), shape ``(d,)``.
    weights : Numbers, optional
        How much each agent counts, shape ``(n,)``; 1 by default.
    feature_names : tuple[str, ...], optional
        Of the d features; those of a frame X by default. A series or a mapping of costs, coefficients or
        flags is read by them.
    """

    sense: ClassVar[Any] = "max"
    family: ClassVar[str] = "strategic"

    X: Numbers
    truth: tuple[Numbers, Annotated[float, Field(allow_inf_nan=False)]]
    costs: Numbers
    improvable: Flags
    weights: Numbers | None = None
    feature_names: tuple[Name, ...] = Field(default=(), kw_only=True)

    @model_validator(mode="before")
    @classmethod
    def _read_features(cls, fields: Any) -> Any:
        """Take names from a frame, put the features' values in their order, and read a file of no agents."""
        fields = take_names(fields, "X")
        if names := fields.get("feature_names"):
            named = {field: fields[field] for field in ("costs", "improvable") if field in fields}
            fields = {**fields, **{field: by_label(value, names, field) for field, value in named.items()}}
            truth = fields.get("truth")
            if isinstance(truth, tuple | list) and len(truth) == 2:
                fields["truth"] = by_label(truth[0], names, "truth[0]"), truth[1]
        X = fields.get("X")
        if isinstance(X, list) and not X and "costs" in fields:
            fields = {**fields, "X": np.zeros((0, np.size(fields["costs"])))}
        return fields

    @model_validator(mode="after")
    def _fits(self) -> Self:
        require(self.X.ndim == 2, "X: the shape", self.X.shape, "be (agents, features)")
        d = self.X.shape[1]
        if d == 0:
            raise DeclarationError("X: there are no features; there must be at least one")
        sides = ("truth[0]", self.truth[0]), ("costs", self.costs), ("improvable", self.improvable)
        for name, array in sides:
            require(array.shape == (d,), f"{name}: the shape", array.shape, f"be ({d},), as X has features")
        check_entries(self.truth[0], self.truth[0] < 0, "truth[0]: the array", _NOT_NEGATIVE)
        check_entries(self.costs, self.costs <= 0, "costs: the array", "it must be positive")
        check_weights(self.weights, len(self.X))
        return self

    # -- agents --------------------------------------------------------------------------------------------

    @property
    def agents(self) -> int:
        """How many there are."""
        return len(self.X)

    @property
    def agent_weights(self) -> Array:
        """How much each agent counts."""
        return np.ones(self.agents) if self.weights is None else self.weights

    def scaled(self) -> tuple[Array, Array, float]:
        """Features in units of effort and the truth for them, as ``(Y, t, s)``.

        ``Y = costs * X``, so that raising a feature by 1 costs 1, the value of acceptance; qualified means
        ``t y >= s``, where the largest entry of `t` is 1 (unless all are 0).
        """
        a, b = self.truth
        per_effort = a / self.costs
        top = float(per_effort.max()) or 1.0
        return self.X * self.costs, per_effort / top, b / top

    @property
    def qualified(self) -> Array:
        """Whether each agent is qualified where it starts."""
        Y, t, s = self.scaled()
        return np.asarray(Y @ t >= s - TOLERANCE)

    def improvable_along(self) -> Array:
        """Whether each unqualified agent can afford to qualify by raising one feature; shape ``(n, d)``.

        Definition 15. No agent is improvable along a feature that is gaming or that the truth ignores.
        """
        Y, t, s = self.scaled()
        reaches = (Y @ t)[:, None] + np.where(self.improvable, t, 0.0) >= s - TOLERANCE
        return np.asarray(reaches & (self.improvable & (t > 0)) & ~self.qualified[:, None])

    def evaluate_responses(
        self, responses: Responses, most: float | None, penalty: float = 0.0
    ) -> Evaluation:
        """Evaluate by the agents' responses: TP - penalty * FP, subject to at most `most` false positives."""
        over = 0.0 if most is None else responses.false_positives - most
        objective = responses.true_positives - penalty * responses.false_positives
        violations = {"max_false_positives": over} if over > ROUNDING else {}
        return Evaluation(objective, violations, rates(responses))


def rates(responses: Responses) -> Mapping[str, float]:
    """The metrics that every problem of this family shows."""
    return {name: getattr(responses, name) for name in ("true_positives", "false_positives", "effort")}


DECIMALS = 9
"""Costs are rounded to this number of decimals, so that exact ties stay ties."""


def move_costs(X: Array, targets: Array, costs: Array) -> Array:
    """``sum_j costs[j] * max(target[j] - x[j], 0)`` for each agent and target; shape ``(n, m)``."""
    out = np.zeros((len(X), len(targets)))
    for x, p, c in zip(X.T, targets.T, costs, strict=True):
        out += c * np.maximum(p[None, :] - x[:, None], 0.0)
    return out


def qualifies(
    X: Array,
    targets: Array,
    truth: tuple[Array, float],
    improvable: Array,
    exact_target: bool,
    tolerance: float,
) -> Array:
    """Whether each agent is truly qualified once it has moved to each target; shape ``(n, m)``.

    The true features are the target's where raising improves, and the agent's own elsewhere.
    """
    score = np.zeros((len(X), len(targets)))
    for x, p, a, improves in zip(X.T, targets.T, truth[0], improvable, strict=True):
        if not improves:
            score += a * x[:, None]
        elif exact_target:
            score += a * p[None, :]
        else:
            score += a * np.maximum(x[:, None], p[None, :])
    return np.asarray(score >= truth[1] - tolerance)


def read_points(given: Any, d: int, subject: str) -> Array:
    """Read targets into an array of shape ``(m, d)``.

    Raises
    ------
    DeclarationError
        For another shape.
    """
    points = as_numbers(given, subject)
    if points.size == 0:
        return points.reshape(0, d)
    if points.ndim != 2 or points.shape[1] != d:
        raise DeclarationError(f"{subject} has shape {points.shape}; it must be (m, {d}), targets by rows")
    return points


Limit = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, eq=False)
class LinearClassifier:
    """Accepts an agent whose perceived features satisfy ``a x >= b``.

    Attributes
    ----------
    a : Array
        Shape ``(d,)``, not negative.
    b : float
        The threshold, in the unit of ``a x``.
    features : tuple[str, ...], optional
        The names of the features, in order: a frame to predict is aligned by them.

    Examples
    --------
    >>> LinearClassifier([1.0, 0.5], 2.0)
    1 x0 + 0.5 x1 >= 2
    >>> LinearClassifier([1.0, 0.5], 2.0, ("score", "hours")).predict([[1.0, 1.0], [1.0, 2.0]]).tolist()
    [0, 1]
    """

    a: Array
    b: float
    features: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "a", as_numbers(self.a, "a"))
        object.__setattr__(self, "b", float(as_numbers(self.b, "b")))
        require(self.a.ndim == 1, "a: the shape", self.a.shape, "be (d,)")
        check_entries(self.a, self.a < 0, "a: the array", _NOT_NEGATIVE)

    def predict(self, X: Any) -> Array:
        """1 for each agent whose perceived features, shape ``(n, d)``, are accepted, else 0."""
        points = as_numbers(aligned(X, self.features), "X")
        if points.ndim != 2 or points.shape[1] != len(self.a):
            raise DeclarationError(f"X: the shape is {points.shape}; it must be (n, {len(self.a)})")
        return (points @ self.a >= self.b).astype(np.int64)

    def __repr__(self) -> str:
        names = self.features or [f"x{j}" for j in range(len(self.a))]
        terms = [f"{v:.6g} {name}" for name, v in zip(names, self.a, strict=True) if v]
        return f"{' + '.join(terms) or '0'} >= {self.b:.6g}"


class StrategicLinearClassifier(LinearAgents):
    """Publish a linear classifier that gets many agents to qualify and few to game.

    All agents move along the same feature, the one with the largest ``a[j] / costs[j]`` (Observation 11;
    ties: an improvable feature first, then the lowest index: Definition 12), as far as acceptance needs, if
    that costs at most 1. Maximises the weight of true positives, less `penalty` times that of false
    positives.

    Attributes
    ----------
    max_false_positives : Limit, default 0.0
        The weight of false positives may be at most this; None for no limit.
    penalty : Limit, default 0.0
        The cost of a false positive in true positives, >= 0.

    References
    ----------
    Ahmadi, Beyhaghi, Blum, Naggita, FORC 2022, sections 5.1 and 5.2.

    Notes
    -----
    The other fields are as in `LinearAgents`. Comparisons hold up to 1e-6, see `TOLERANCE`.

    Examples
    --------
    >>> p = StrategicLinearClassifier(
    ...     X=[[6, 4], [12, 1], [8, 0], [7, 1], [2, 1], [0, 3]], truth=([1, 2], 12), costs=[0.2, 0.2],
    ...     improvable=[True, False])
    >>> s = p.solve()
    >>> s.objective, p.simulate(s.decision)
    (4.0, <6 agents: 4 true positives, 0 false positives, 2 rejected, effort ...>)
    >>> p.solve("truth").evaluation.metrics["false_positives"], p.solve("shifted-truth").objective
    (4.0, 2.0)
    """

    default_method: ClassVar[str] = "milp"

    max_false_positives: Limit | None = 0.0
    penalty: Limit = 0.0

    def preferred_features(self) -> Array:
        """The features in the order in which ties between them are broken: improvable ones first."""
        return np.argsort(~self.improvable, kind="stable")

    def movement_feature(self, classifier: LinearClassifier) -> int | None:
        """The feature along which agents move; None if the classifier looks at none."""
        classifier = self._fitting(classifier)
        per_effort = classifier.a / self.costs
        top = per_effort.max()
        order = self.preferred_features()
        return None if top == 0 else int(order[np.argmax(per_effort[order] >= top * (1 - TOLERANCE))])

    def simulate(self, decision: LinearClassifier) -> Responses:
        """Let every agent respond to the classifier."""
        decision = self._fitting(decision)
        feature = self.movement_feature(decision)
        Y, t, s = self.scaled()
        moved = Y.copy()
        if feature is None:
            effort = np.where(decision.b <= 0, np.zeros(self.agents), np.inf)
        else:
            # in units of effort along the feature
            unit = decision.a[feature] / self.costs[feature]
            effort = np.maximum(decision.b / unit - Y @ (decision.a / self.costs / unit), 0.0)
        accepted = effort <= 1.0 + TOLERANCE
        effort = np.where(accepted, effort, 0.0)
        true = Y @ t
        if feature is not None:
            moved[:, feature] += effort
            if self.improvable[feature]:
                true = true + t[feature] * effort
        qualified = true >= s - TOLERANCE
        true, false, choice = accepted & qualified, accepted & ~qualified, np.where(accepted, 0, -1)
        place: dict[str, Any] = {"start": self.X, "position": moved / self.costs}
        return Responses(choice, effort, true, false, weights=self.agent_weights, **place)

    def _sketch(self, decision: Any, evaluation: Evaluation) -> Any:
        return self.simulate(decision)

    def evaluate(self, decision: LinearClassifier) -> Evaluation:
        """Evaluate a classifier by the agents' best responses."""
        return self.evaluate_responses(self.simulate(decision), self.max_false_positives, self.penalty)

    def upper_bound(self) -> float:
        """No classifier has more true positives: the weight of the agents that are qualified or
        improvable."""
        return float(self.agent_weights[self.qualified | self.improvable_along().any(axis=1)].sum())

    def _fitting(self, classifier: Any) -> LinearClassifier:
        """Check a classifier, and order its weights as the features are, if both have names."""
        if not isinstance(classifier, LinearClassifier):
            raise DeclarationError(f"the decision is {classifier!r}; it must be a LinearClassifier")
        shape = self.costs.shape
        require_shape(classifier.a.shape == shape, "the decision's a has", classifier.a, f"be {shape}")
        if not (classifier.features and self.feature_names):
            return classifier
        a = aligned(classifier.a[None], self.feature_names, classifier.features)[0]
        return LinearClassifier(a, classifier.b, self.feature_names)


@StrategicLinearClassifier.algorithm("truth", cites="Ahmadi et al. (2022), Lemma 16", rank="published")
def truth(problem: StrategicLinearClassifier, *, time_limit: float | None = None) -> Outcome:
    """Publish the truth: optimal if agents then move along an improvable feature (Lemma 16)."""
    a, b = problem.truth
    return _evaluated(problem, LinearClassifier(a, b, problem.feature_names))


@StrategicLinearClassifier.algorithm(
    "shifted-truth", cites="Ahmadi et al. (2022), Lemma 17 and Corollary 18", rank="published"
)
def shifted_truth(problem: StrategicLinearClassifier, *, time_limit: float | None = None) -> Outcome:
    """Require more than anyone can game: accept exactly the agents who are qualified already (Lemma 17).

    The threshold is raised by the gain of one value's worth of effort, ``max_j a[j] / costs[j]``. Optimal if
    no feature is improvable (Corollary 18).
    """
    a, b = problem.truth
    shifted = b + float((a / problem.costs).max())
    return _evaluated(problem, LinearClassifier(a, shifted, problem.feature_names))


def _evaluated(problem: StrategicLinearClassifier, classifier: LinearClassifier) -> Outcome:
    """Optimal if there is no true positive to win and nothing to pay."""
    bound = problem.upper_bound()
    evaluation = problem.evaluate(classifier)
    proved = evaluation.feasible and evaluation.objective >= bound - ROUNDING
    return Outcome(classifier, bound=bound, status=Status.OPTIMAL if proved else Status.APPROXIMATE)
