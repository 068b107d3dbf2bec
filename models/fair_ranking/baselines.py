"""Rankings that sort: by score, by counterfactual score, and within quotas."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.fairness.ranking import CounterfactualOrder
from forcopt.models.fair_ranking.problem import FairRanking, Ranking
from forcopt.numeric import largest_remainder
from forcopt.problem import Outcome

By = tuple[str, ...] | str | None
_YANG = "Yang, Loftus and Stoyanovich (2021)"


def _scores(problem: FairRanking) -> Array:
    if problem.scores is None:
        raise DeclarationError("sorting needs scores, not utilities by position")
    return problem.scores


@FairRanking.algorithm("sort", cites="the ranking without demands", rank="published")
def sort(problem: FairRanking, *, seed: int | None = None, time_limit: float | None = None) -> Outcome:
    """By falling score, whatever is demanded; ties by seed."""
    return Outcome(Ranking.by_score(_scores(problem), problem.length, seed), bound=problem.best)


def _loss(problem: FairRanking) -> float:
    """The most that sorting by counterfactual score loses."""
    given = [c for c in problem.notions if isinstance(c, CounterfactualOrder)]
    if not given or problem.scores is None:
        return float("inf")
    shifts = given[0].scores - problem.scores
    return float((shifts.max() - shifts.min()) * problem.position_weights.sum())


@FairRanking.algorithm("counterfactual", guarantee=_loss, cites=f"{_YANG}, section 2.2", rank="published")
def counterfactual(
    problem: FairRanking, *, seed: int | None = None, time_limit: float | None = None
) -> Outcome:
    """By falling counterfactual score; ties by seed.

    It loses at most the largest minus the smallest shift, times the sum of the weights: the two sums of
    scores over positions differ by no more between any two rankings.
    """
    given = [c for c in problem.notions if isinstance(c, CounterfactualOrder)]
    if not given:
        raise DeclarationError("'counterfactual' sorts by a CounterfactualOrder; none is demanded")
    ranking = Ranking.by_score(given[0].scores, problem.length, seed)
    return Outcome(ranking, bound=problem.best if problem.scores is not None else None)


@FairRanking.algorithm("quotas", cites=f"{_YANG}, section 3, quotas", rank="published")
def quotas(problem: FairRanking, *, by: By = None, time_limit: float | None = None) -> Outcome:
    """Each group's best in proportion to its size, rounded by largest remainders; then by score.

    Parameters
    ----------
    by : str or tuple[str, ...], optional
        The attributes that make the groups; all by default.
    """
    y = _scores(problem)
    known, names = problem.candidates.groups, (by,) if isinstance(by, str) else by
    if names is not None and not (
        isinstance(names, tuple | list) and names and all(isinstance(n, str) and n in known for n in names)
    ):
        raise DeclarationError(f"by is {by!r}; it must be attributes among {', '.join(known) or 'none'}")
    _, codes, sizes = problem.candidates.cells(None if names is None else tuple(names))
    numbers = np.asarray(largest_remainder(sizes * problem.length / sizes.sum(), problem.length))
    order = np.argsort(-y, kind="stable")
    chosen = np.concatenate([order[codes[order] == g][: int(m)] for g, m in enumerate(numbers)])
    return Outcome(Ranking(chosen[np.argsort(-y[chosen], kind="stable")]), bound=problem.best)
