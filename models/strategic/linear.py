"""Linear classifiers of strategic agents, with the truth as a baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError
from forcopt.learning.hypotheses import aligned
from forcopt.models.strategic.linear_agents import LinearAgents
from forcopt.models.strategic.responses import Responses
from forcopt.models.strategic.tolerances import ROUNDING, TOLERANCE
from forcopt.problem import Evaluation, Outcome
from forcopt.status import Status

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
        if self.a.ndim != 1:
            raise DeclarationError(f"a: the shape is {self.a.shape}; it must be (d,)")
        if (self.a < 0).any():
            at = int(np.argmax(self.a < 0))
            raise DeclarationError(
                f"a: the array[{at}] is {self.a[at]:g}; it must not be negative, "
                "since lowering a feature is free"
            )

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
        return Responses(
            choice=np.where(accepted, 0, -1),
            cost=effort,
            true_positive=accepted & qualified,
            false_positive=accepted & ~qualified,
            weights=self.agent_weights,
            start=self.X,
            position=moved / self.costs,
        )

    def evaluate(self, decision: LinearClassifier) -> Evaluation:
        """Evaluate a classifier by the agents' best responses."""
        return self.evaluate_responses(self.simulate(decision), self.max_false_positives, self.penalty)

    def upper_bound(self) -> float:
        """No classifier has more true positives: the weight of the agents that are qualified or
        improvable."""
        reachable = self.qualified | self.improvable_along().any(axis=1)
        return float(self.agent_weights[reachable].sum())

    def _fitting(self, classifier: Any) -> LinearClassifier:
        """Check a classifier, and order its weights as the features are, if both have names."""
        if not isinstance(classifier, LinearClassifier):
            raise DeclarationError(f"the decision is {classifier!r}; it must be a LinearClassifier")
        if classifier.a.shape != self.costs.shape:
            raise DeclarationError(
                f"the decision's a has shape {classifier.a.shape}; it must be {self.costs.shape}, "
                "one entry for each feature of X"
            )
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
