"""Two classifiers that need no optimisation: the truth itself, and the truth out of the reach of gaming."""

from __future__ import annotations

from forcopt.models.strategic.linear import LinearClassifier, StrategicLinearClassifier
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["shifted_truth", "truth"]


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
    proved = evaluation.feasible and evaluation.objective >= bound - 1e-9
    return Outcome(classifier, bound=bound, status=Status.OPTIMAL if proved else Status.APPROXIMATE)
