"""Members of each cell in each prefix: a small program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.language import Model, Variable, maximize
from forcopt.models.fair_ranking.formulations import tidy, unit_of, write_assignment
from forcopt.models.fair_ranking.problem import FairRanking, Ranking
from forcopt.models.fair_ranking.tolerances import COUNT
from forcopt.problem import Handles


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
            raise DeclarationError("counts by cell need scores, and demands that treat the members alike")
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
        entries = limit.factor[group], (group, np.arange(self.count))
        return sp.csr_array(entries, shape=(len(limit.factor), self.count))

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
def prefix_counts(problem: FairRanking, model: Model, all_rows: bool = False) -> Handles:
    """Count the members of each cell in each prefix; a cell's best are worth a concave function of the count.

    By Abel's summation the utility is the sum over prefixes of the drop of the weight after them, times the
    best scores that the counts allow. Fractional counts are the means of a lottery, since probabilities of
    being among the first j that rise with j are the marginals of rankings.

    Parameters
    ----------
    all_rows : bool, default False
        Hold every ranking or lottery, also those that are not sorted by score within a cell, by a column for
        each candidate and position as in `assignment` and `milp`. Without, ``objective`` can be maximized and
        has no value before the optimum.

    Returns
    -------
    Handles
        ``counts``, shape ``(cells, k)``; ``group_exposures``, total exposure by cell, shape ``(cells,)``;
        with `all_rows` also those of `assignment`.
    """
    cells = Cells(problem)
    k, w = cells.k, problem.position_weights
    if all_rows:
        whole = write_assignment(problem, model, reduce=False)
        member = sp.csr_array((np.ones(problem.size), (problem.cells[1], np.arange(problem.size))))
        whole.counts = member @ whole.marginals @ np.triu(np.ones((k, k)))
        whole.group_exposures = member @ whole.exposures
        return whole
    drop = w - np.append(w[1:], 0.0)
    low, high = cells.low, np.maximum(cells.high, cells.low)
    name = model.unused_name
    n = model.variable(name("count"), (cells.count, k), lower=low, upper=high, integer=problem.integer)
    model.subject_to(n.sum(axis=0) == np.arange(1, k + 1), name=name("fill"))
    if k > 1:
        model.subject_to(n[:, 1:] >= n[:, :-1], name=name("rise"))
    for limit in problem.limits:
        own, kept = limit.written, limit.needed
        if not len(kept):
            continue
        of = cells.groups(own)[kept]
        value = of @ (n @ drop) if limit.prefix is None else of @ n[:, limit.prefix - 1]
        rows = value.between(own.low[kept], own.high[kept])
        model.subject_to(rows, name=name(limit.name.replace(" ", "_")))
    # pieces of the concave worth of each count that its bounds leave open
    unit = unit_of(problem)
    assert problem.scores is not None
    at, pieces, members, widths, constant = [], [], [], [], 0.0
    base, offsets = np.floor(low), np.cumsum([0, *(len(own) for own in cells.members)])
    places = [(c, j) for j in np.flatnonzero(drop > 0) for c in range(cells.count)]
    for row, (c, j) in enumerate(places):
        u = problem.scores[cells.members[c]] / unit
        first, last = int(base[c, j]), min(int(np.ceil(high[c, j])), len(u))
        constant += float(drop[j] * u[:first].sum())
        at.append(np.full(last - first, row))
        pieces.append(np.full(last - first, drop[j]))
        members.append(offsets[c] + np.arange(first, last))
        widths.append(first)
    index, piece, member = np.concatenate(at), np.concatenate(pieces), np.concatenate(members)
    z = model.variable(name("member"), len(index), lower=0.0, upper=1.0)
    shape = (len(places), len(index))
    total = sp.csr_array((np.ones(len(index)), (index, np.arange(len(index)))), shape=shape)
    chosen = n.reshape(cells.count * k)[np.array([c * k + j for c, j in places])]
    model.subject_to(total @ z + np.array(widths, dtype=float) == chosen, name=name("worth"))
    worth = problem.scores[np.concatenate(cells.members)] / unit
    if problem.integer:
        objective = ((worth[member] * piece) * z).sum()
    else:
        # columns of their own: rounded products of weights and scores would break ties between lotteries
        gained = model.variable(name("gained"), len(worth), lower=0.0)
        summed = sp.csr_array((piece, (member, np.arange(len(piece)))), shape=(len(worth), len(piece)))
        model.subject_to(gained == summed @ z, name=name("gains"))
        objective = (worth * gained).sum()

    def start(decision: Any) -> Mapping[Variable, Any]:
        return {n: cells.counts(problem.read(decision).marginals)}

    def read(result: Any) -> Any:
        if problem.integer:
            return ranking_of(cells, np.round(result[n]))
        ranked = tidy(np.concatenate(cells.members), cells.marginals(result[n]), problem.size)
        return problem.lottery(marginals=ranked)

    # an objective, not an expression: before the optimum, members may be taken out of order
    return Handles(maximize(objective + constant), read, start, unit=unit, counts=n, group_exposures=n @ drop)


def ranking_of(cells: Cells, counts: Array) -> Ranking:
    """The ranking with these counts, each cell by falling score."""
    which = np.argmax(np.diff(counts, axis=1, prepend=0.0), axis=0)
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
