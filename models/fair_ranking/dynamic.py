"""A dynamic program over the members of each cell in each prefix."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError, require
from forcopt.models.fair_ranking.prefix_counts import Cells, ranking_of
from forcopt.models.fair_ranking.problem import FairRanking
from forcopt.models.fair_ranking.tolerances import COUNT
from forcopt.problem import Outcome
from forcopt.status import Status

_MOST_STATES = 4_000_000
"""Of one prefix; more do not fit into memory."""


@FairRanking.algorithm("dynamic-programme", exact=True, cites="Celis, Straszak and Vishnoi (2018), sec. 4.1")
def dynamic_programme(
    problem: FairRanking, *, beam: int | None = None, time_limit: float | None = None
) -> Outcome:
    """Extend all counts of cells that quotas allow by one position after the other.

    Parameters
    ----------
    beam : int, optional
        The number of states kept for each prefix, in order of their values. The method is then a heuristic,
        and its bound comes from the linear program of `prefix-counts`.

    Notes
    -----
    O(states * cells) a position; at most ``(k + 1)**cells`` states, few under quotas on disjoint groups.
    """
    deadline = Deadline(time_limit)
    if not problem.integer:
        raise DeclarationError("'dynamic-programme' finds one ranking; declare the problem with integer=True")
    if any(limit.prefix is None for limit in problem.limits):
        raise DeclarationError("'dynamic-programme' takes demands on prefixes, not on exposures: use 'milp'")
    require(beam is None or beam >= 1, "beam", beam, "be at least 1")
    cells = Cells(problem)
    assert problem.scores is not None
    k, w = cells.k, problem.position_weights
    worth = np.full((cells.count, max(map(len, cells.members)) + 1), -np.inf)
    for c, members in enumerate(cells.members):
        worth[c, : len(members)] = problem.scores[members]
    base = np.minimum(k, [len(m) for m in cells.members]).astype(np.int64) + 1
    radix = np.concatenate([[1], np.cumprod(base.astype(object))[:-1]])
    compact = int(radix[-1]) * int(base[-1]) < 2**62
    key_of = np.array(radix, dtype=np.int64) if compact else None
    states, value = np.zeros((1, cells.count), dtype=np.int64), np.zeros(1)
    history: list[tuple[Array, Array]] = []
    for j in range(k):
        limits = [limit for limit in problem.limits if limit.prefix == j + 1]
        grown, gains, came, by = [], [], [], []
        for c in range(cells.count):
            gain = worth[c, states[:, c]]
            more = states[:, c] + 1
            open_ = np.flatnonzero(np.isfinite(gain) & (more <= cells.high[c, j] + COUNT))
            if not len(open_):
                continue
            new = states[open_].copy()
            new[:, c] += 1
            grown.append(new)
            gains.append(value[open_] + w[j] * gain[open_])
            came.append(open_)
            by.append(np.full(len(open_), c))
        if not grown:
            return _ended(problem, j, beam)
        new, total = np.concatenate(grown), np.concatenate(gains)
        origin, cell = np.concatenate(came), np.concatenate(by)
        fine = ((new >= cells.low[:, j] - COUNT) & (new <= cells.high[:, j] + COUNT)).all(axis=1)
        for limit in limits:
            sums = new @ cells.groups(limit).T.toarray()
            slack = COUNT * np.maximum(1.0, limit.factor)
            fine &= ((sums >= limit.low - slack) & (sums <= limit.high + slack)).all(axis=1)
        new, total, origin, cell = new[fine], total[fine], origin[fine], cell[fine]
        if not len(new):
            return _ended(problem, j, beam)
        # the best way to each state
        if key_of is not None:
            key = new @ key_of
            order = np.lexsort((-total, key))
            fresh = np.append(True, np.diff(key[order]) != 0)
        else:
            order = np.lexsort((-total, *new.T))
            fresh = np.append(True, (np.diff(new[order], axis=0) != 0).any(axis=1))
        pick = order[fresh]
        if beam is not None and len(pick) > beam:
            pick = pick[np.argsort(-total[pick], kind="stable")[:beam]]
        states, value = new[pick], total[pick]
        history.append((origin[pick], cell[pick]))
        if deadline.passed or len(pick) > _MOST_STATES:
            why = deadline.end if deadline.passed else f"more than {_MOST_STATES:,} states (try beam=)"
            message = f"{why} after {j + 1} of {k} positions"
            return Outcome(None, bound=problem.best, status=Status.LIMIT, message=message)
    at = int(np.argmax(value))
    taken = np.zeros((cells.count, k))
    for j in range(k - 1, -1, -1):
        origin, cell = history[j]
        taken[cell[at], j] = 1.0
        at = int(origin[at])
    decision = ranking_of(cells, np.cumsum(taken, axis=1))
    if beam is None:
        return Outcome(decision, iterations=k)
    relaxed = problem.replace(integer=False).solve("prefix-counts", time_limit=deadline.left)
    bound = min(problem.best, relaxed.bound)
    return Outcome(decision, bound, Status.FEASIBLE, k, f"a beam of {beam} states")


def _ended(problem: FairRanking, j: int, beam: int | None) -> Outcome:
    if beam is not None:
        message = f"no state of the beam can be continued after position {j}"
        return Outcome(None, bound=problem.best, status=Status.LIMIT, message=message)
    message = problem.infeasibility_reason() or f"no ranking meets the quotas of the first {j + 1}"
    return Outcome(None, status=Status.INFEASIBLE, message=message)
