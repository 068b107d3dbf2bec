"""A set of k within quotas on disjoint groups: greedy on concave sums."""

from __future__ import annotations

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.models.fair_ranking.decision import Ranking
from forcopt.models.fair_ranking.prefix_counts import Cells
from forcopt.models.fair_ranking.problem import FairRanking
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["greedy"]


@FairRanking.algorithm("greedy", exact=True, cites="Yang, Gkatzelis and Stoyanovich (2019), on one attribute")
def greedy(problem: FairRanking, *, time_limit: float | None = None) -> Outcome:
    """For equal weights: give each group its least number, then take the best whose group is not full.

    Exact for disjoint groups, since the worth of a group is concave in its number.

    Parameters
    ----------
    time_limit : float, optional
        Every method accepts one; a rule in closed form checks no clock.

    Notes
    -----
    O(n log n).
    """
    w, k = problem.position_weights, problem.length
    if not problem.integer or (w != w[0]).any():
        raise DeclarationError("'greedy' finds one set: it needs integer=True and equal weights")
    cells = Cells(problem)
    groups = {tuple(limit.codes[cells.first].tolist()) for limit in problem.limits}
    partition = all(len(set(group)) == cells.count for group in groups)
    if any(limit.prefix != k for limit in problem.limits) or not partition:
        raise DeclarationError("'greedy' takes demands on the whole set, on disjoint groups")
    low, high = cells.low[:, -1], cells.high[:, -1]
    if (low > high).any() or low.sum() > k or high.sum() < k:
        return Outcome(
            None, status=Status.INFEASIBLE, message=f"the demands cannot hold together in the first {k}"
        )
    must = [members[: int(least)] for members, least in zip(cells.members, low, strict=True)]
    may = [members[int(a) : int(b)] for members, a, b in zip(cells.members, low, high, strict=True)]
    assert problem.scores is not None
    rest = np.concatenate(may)
    rest = rest[np.argsort(-problem.scores[rest], kind="stable")][: k - int(low.sum())]
    chosen = np.concatenate([*must, rest])
    return Outcome(Ranking(chosen[np.argsort(-problem.scores[chosen], kind="stable")]), iterations=k)
