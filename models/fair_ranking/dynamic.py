"""Members of each cell in each prefix: a small program, and a dynamic program over counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.language import Model, Variable
from forcopt.models.fair_ranking.formulations import tidy, unit_of
from forcopt.models.fair_ranking.problem import FairRanking, Ranking
from forcopt.models.fair_ranking.tolerances import COUNT
from forcopt.problem import Handles, Outcome
from forcopt.status import Status


class Cells:
    """The cells of a problem: who is in each by falling score, and the bounds on counts in prefixes.

    Attributes
    ----------
    members : list[Array]
        The k best of each cell, by falling score.
    low, high : Array
        Bounds on the members among the first j that single demands imply, shape ``(cells, k)``.
    """

    def __init__(self, problem: FairRanking) -> None:
        if not problem.groupwise:
            raise DeclarationError(
                "counts by cell need scores, and demands that treat the members of a cell alike"
            )
        names, codes, sizes = problem.cells
        self.problem, self.k, self.count = problem, problem.length, len(names)
        kept = problem.kept
        self.members = [kept[codes[kept] == c] for c in range(self.count)]
        self.first = np.array([m[0] for m in self.members])
        prefix = np.arange(1, self.k + 1)
        self.low = np.zeros((self.count, self.k))
        self.high = np.minimum(sizes[:, None], prefix[None, :]).astype(float)
        for limit in problem.limits:
            if limit.prefix is None:
                continue
            group, j = limit.codes[self.first], limit.prefix - 1
            least, most = (np.round(side / limit.factor, 9) for side in (limit.low, limit.high))
            self.high[:, j] = np.minimum(self.high[:, j], np.maximum(most[group], 0.0))
            alone = np.bincount(group, minlength=len(limit.factor)) == 1
            self.low[:, j] = np.where(alone[group], np.maximum(self.low[:, j], least[group]), self.low[:, j])
        if problem.integer:
            self.low, self.high = np.ceil(self.low - COUNT), np.floor(self.high + COUNT)
        # counts rise by at most 1 a position
        for j in range(1, self.k):
            self.low[:, j] = np.maximum(self.low[:, j], self.low[:, j - 1])
            self.high[:, j] = np.minimum(self.high[:, j], self.high[:, j - 1] + 1)
        for j in range(self.k - 2, -1, -1):
            self.low[:, j] = np.maximum(self.low[:, j], self.low[:, j + 1] - 1)
            self.high[:, j] = np.minimum(self.high[:, j], self.high[:, j + 1])

    def groups(self, limit: Any) -> Any:
        """The matrix that sums cells to the groups of a limit, times its factor."""
        group = limit.codes[self.first]
        return sp.csr_array(
            (limit.factor[group], (group, np.arange(self.count))), shape=(len(limit.factor), self.count)
        )

    def marginals(self, counts: Array) -> Array:
        """The probability of each position for each candidate, stacked by cell, shape ``(kept, k)``."""
        parts = []
        for members, row in zip(self.members, counts, strict=True):
            filled = np.clip(row[None, :] - np.arange(len(members))[:, None], 0.0, 1.0)
            parts.append(np.diff(filled, axis=1, prepend=0.0))
        return np.concatenate(parts)

    def counts(self, marginals: Any) -> Array:
        """The expected members of each cell among the first j, shape ``(cells, k)``."""
        codes = self.problem.cells[1]
        x = marginals.tocoo()
        flat = np.bincount(codes[x.row] * self.k + x.col, x.data, minlength=self.count * self.k)
        return np.asarray(np.cumsum(flat.reshape(self.count, self.k), axis=1))


@FairRanking.formulation(
    "prefix-counts", exact=True, cites="Celis, Straszak and Vishnoi (2018), section 4, on cells"
)
def prefix_counts(problem: FairRanking, model: Model) -> Handles:
    """Count the members of each cell in each prefix; a cell's best are worth a concave function of the count.

    By Abel's summation the utility is the sum over prefixes of the drop of the weight after them, times the
    best scores that the counts allow. Fractional counts are the means of a lottery, since probabilities of
    being among the first j that rise with j are the marginals of rankings.

    Returns
    -------
    Handles
        ``counts``, shape ``(cells, k)``; ``group_exposures``, total exposure by cell, shape ``(cells,)``.
    """
    cells = Cells(problem)
    k, w = cells.k, problem.position_weights
    drop = w - np.append(w[1:], 0.0)
    low, high = cells.low, np.maximum(cells.high, cells.low)
    n = model.variable(
        model.unused_name("count"), (cells.count, k), lower=low, upper=high, integer=problem.integer
    )
    model.subject_to(n.sum(axis=0) == np.arange(1, k + 1), name=model.unused_name("fill"))
    if k > 1:
        model.subject_to(n[:, 1:] >= n[:, :-1], name=model.unused_name("rise"))
    for limit in problem.limits:
        own, kept = limit.written, limit.needed
        if not len(kept):
            continue
        of = cells.groups(own)[kept]
        value = of @ (n @ drop) if limit.prefix is None else of @ n[:, limit.prefix - 1]
        name = model.unused_name(limit.name.replace(" ", "_"))
        model.subject_to(value.between(own.low[kept], own.high[kept]), name=name)
    # pieces of the concave worth of each count that its bounds leave open
    unit = unit_of(problem)
    assert problem.scores is not None
    at, pieces, members, widths = [], [], [], []
    constant = 0.0
    base = np.floor(low)
    offsets = np.cumsum([0, *(len(own) for own in cells.members)])
    rows = [(c, j) for j in np.flatnonzero(drop > 0) for c in range(cells.count)]
    for row, (c, j) in enumerate(rows):
        u = problem.scores[cells.members[c]] / unit
        first, last = int(base[c, j]), min(int(np.ceil(high[c, j])), len(u))
        constant += float(drop[j] * u[:first].sum())
        at.append(np.full(last - first, row))
        pieces.append(np.full(last - first, drop[j]))
        members.append(offsets[c] + np.arange(first, last))
        widths.append(first)
    index, piece, member = np.concatenate(at), np.concatenate(pieces), np.concatenate(members)
    z = model.variable(model.unused_name("member"), len(index), lower=0.0, upper=1.0)
    total = sp.csr_array((np.ones(len(index)), (index, np.arange(len(index)))), shape=(len(rows), len(index)))
    chosen = n.reshape(cells.count * k)[np.array([c * k + j for c, j in rows])]
    model.subject_to(total @ z + np.array(widths, dtype=float) == chosen, name=model.unused_name("worth"))
    worth = problem.scores[np.concatenate(cells.members)] / unit
    if problem.integer:
        objective = ((worth[member] * piece) * z).sum()
    else:
        # columns of their own: rounded products of weights and scores would break ties between lotteries
        gained = model.variable(model.unused_name("gained"), len(worth), lower=0.0)
        summed = sp.csr_array((piece, (member, np.arange(len(piece)))), shape=(len(worth), len(piece)))
        model.subject_to(gained == summed @ z, name=model.unused_name("gains"))
        objective = (worth * gained).sum()

    def start(decision: Any) -> Mapping[Variable, Any]:
        return {n: cells.counts(problem.read(decision).marginals)}

    def read(result: Any) -> Any:
        values = result[n]
        if problem.integer:
            return ranking_of(cells, np.round(values))
        return problem.lottery(
            marginals=tidy(np.concatenate(cells.members), cells.marginals(values), problem.size)
        )

    return Handles(
        objective=objective + constant,
        decision=read,
        start=start,
        unit=unit,
        counts=n,
        group_exposures=n @ drop,
    )


def ranking_of(cells: Cells, counts: Array) -> Ranking:
    """The ranking with these counts, each cell by falling score."""
    taken = np.diff(counts, axis=1, prepend=0.0)
    which = np.argmax(taken, axis=0)
    order = [cells.members[c][int(counts[c, j]) - 1] for j, c in enumerate(which)]
    return Ranking(np.array(order, dtype=int))


def infeasible_prefix(problem: FairRanking) -> int | None:
    """The first prefix whose own demands no choice of members meets; None if each can be met."""
    if not problem.groupwise or not problem.limits:
        return None
    cells = Cells(problem)
    sizes = problem.cells[2]
    for j in range(cells.k):
        limits = [limit for limit in problem.limits if limit.prefix == j + 1]
        if not limits:
            continue
        model = Model("one prefix")
        n = model.variable("count", cells.count, lower=0.0, upper=sizes, integer=problem.integer)
        model.subject_to(n.sum() == j + 1)
        for limit in limits:
            model.subject_to((cells.groups(limit) @ n).between(limit.low, limit.high))
        if not model.solve("highs").status.has_solution:
            return j + 1
    return None


_MOST_STATES = 4_000_000
"""Of one prefix; more do not fit into memory."""


@FairRanking.algorithm(
    "dynamic-programme", exact=True, cites="Celis, Straszak and Vishnoi (2018), section 4.1"
)
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
    if beam is not None and beam < 1:
        raise DeclarationError(f"beam is {beam}; it must be at least 1")
    cells = Cells(problem)
    assert problem.scores is not None
    k, w = cells.k, problem.position_weights
    longest = max(map(len, cells.members))
    worth = np.full((cells.count, longest + 1), -np.inf)
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
