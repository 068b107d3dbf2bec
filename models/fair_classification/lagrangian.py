"""The Lagrangian of fair learning: moments of a constraint, their prices, the pool of classifiers met."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import BackendError, DeclarationError, require
from forcopt.fairness import ClassRates, GroupRates, Notion
from forcopt.language import Constraint, Expression, Model, Variable
from forcopt.learning import Hypothesis, Oracle
from forcopt.loops.solution import ModelSolution
from forcopt.models.fair_classification.tolerances import DUST, WORTH_RECALLING
from forcopt.status import Status


def check_options(
    *, accuracy: float = 0.0, bound: float | None = None, rounds: int | None = None, beta: float = 0.5
) -> None:
    """Check the options that are given.

    Parameters
    ----------
    accuracy : float, default 0.0
        At least 0.
    bound : float, optional
        On the sum of the multipliers, above 0.
    rounds : int, optional
        At least 1.
    beta : float, default 0.5
        A probability of failure, strictly between 0 and 1.

    Raises
    ------
    DeclarationError
        Naming the option.
    """
    require(0 <= accuracy < inf, "accuracy", accuracy, "be at least 0 and finite")
    require(bound is None or 0 < bound < inf, "bound", bound, "be positive and finite")
    whole = isinstance(rounds, int | np.integer) and not isinstance(rounds, bool)
    fits = rounds is None or (whole and rounds >= 1)
    require(fits, "rounds", rounds, "be a whole number of at least 1")
    require(0 < beta < 1, "beta", beta, "be strictly between 0 and 1")


class Moments:
    """The map from predictions to how much of each cell is predicted 1, and to the records in pairs.

    A cell (group, label) sums the records of that label, each by how much it counts to the group. That is
    linear in the predictions whether groups are known, missing or debiased.

    Parameters
    ----------
    shares : Array
        How much each record counts to each group, shape ``(n, K)``; see `GroupColumn.shares`.
    labels : Array
        0 or 1, shape ``(n,)``.
    weights : Array
        Of the records, shape ``(n,)``.
    constraint : Notion
        Whose records to add.
    names : tuple[str, ...]
        Of the groups.
    classes : tuple[str, ...], default ()
        The names of the C classes, if there are more than two. A cell then is a group, a class and whether
        it is the label; the predictions are those of `as_cells`.

    Attributes
    ----------
    matrix
        Shape ``(q, n)``: 2 K cells, then the records that the constraint looks at one by one. With several
        classes ``(2 C K, n C)``.
    mass
        Of each cell, shape ``(K, 2)``; with several classes ``(C, K, 2)``.
    names : tuple[str, ...]
        Of the K groups.
    """

    def __init__(
        self,
        shares: Array,
        labels: Array,
        weights: Array,
        constraint: Notion,
        names: tuple[str, ...],
        classes: tuple[str, ...] = (),
    ) -> None:
        n, count = shares.shape
        several = len(classes)
        codes = range(several) if several else (1,)
        columns = np.eye(several) if several else np.ones((2, 1))
        parts = []
        for c in codes:
            by_label = np.stack([weights * (labels != c), weights * (labels == c)])
            cells = sp.csr_array((shares.T[:, None, :] * by_label).reshape(2 * count, n))
            parts.append(sp.kron(cells, columns[c : c + 1]))
        self.mass = np.stack([part.sum(axis=1).reshape(count, 2) for part in parts])
        self.mass = self.mass if several else self.mass[0]
        self.records = constraint.records
        k = len(self.records)
        if k:
            parts.append(sp.csr_array((np.ones(k), (np.arange(k), self.records)), shape=(k, n)))
        self.matrix = sp.csr_array(sp.vstack(parts))
        self.names, self.classes = names, classes

    def rates(self, moments: Any) -> GroupRates | ClassRates:
        """The rates that belong to moments: numbers or an expression, shape ``(q,)``.

        Of ``predicted`` in them, only the entries of records in pairs are filled.
        """
        cells = self.mass.size
        predicted = None
        if len(self.records):
            k = len(self.records)
            back = sp.csr_array((np.ones(k), (self.records, np.arange(k))), shape=(self.matrix.shape[1], k))
            predicted = back @ moments[cells:]
        positives = moments[:cells].reshape(self.mass.shape)
        if not isinstance(positives, Expression):
            positives = np.asarray(positives)
        if self.classes:
            return ClassRates(positives, self.mass, self.names, self.classes)
        return GroupRates(positives, self.mass, self.names, predicted)


Demand = Callable[[Any], list[Constraint]]
"""Writes a constraint over rates that are expressions, such as `Notion.rows`."""


class Inequalities(NamedTuple):
    """``A m + E s <= b`` over moments (or rates) m and further columns s.

    Attributes
    ----------
    moments
        The matrix A, shape ``(r, q)``.
    slack
        The matrix E, shape ``(r, s)``.
    bounds : Array
        The right-hand sides b, shape ``(r,)``.
    names : list[str]
        Of the rows.
    origin : Array
        The row of the model that each is an end of, shape ``(r,)``.
    """

    moments: Any
    slack: Any
    bounds: Array
    names: list[str]
    origin: Array

    @classmethod
    def of(cls, model: Model, q: int) -> Inequalities:
        """All rows of a model whose first q columns are the moments; a row with two ends gives two."""
        parts, ends, names = [sp.csr_array((0, model.column_count))], [np.zeros(0)], list[str]()
        origins = [np.zeros(0, dtype=np.intp)]
        for row in model.constraints:
            matrix = row.expression.linear_rows().matrix(model.column_count)
            low, high = row.row_bounds()
            labels = row.labels or [row.name] * len(high)
            for sign, bound in ((1.0, high), (-1.0, -low)):
                kept = np.flatnonzero(np.isfinite(bound))
                parts.append(sign * matrix[kept])
                ends.append(bound[kept])
                origins.append(row.start + kept)
                names += [labels[k] for k in kept.tolist()]
        wide = sp.csr_array(sp.vstack(parts))
        wide.eliminate_zeros()
        return cls(wide[:, :q], wide[:, q:], np.concatenate(ends), names, np.concatenate(origins))

    def sides(self, column: int) -> tuple[Array, Array, Array]:
        """A slack column, the rows that bound it from below, and those that bound it from above."""
        entries = self.slack[:, [column]].toarray()[:, 0]
        return entries, np.flatnonzero(entries < 0), np.flatnonzero(entries > 0)

    def paired(self, column: int) -> Inequalities:
        """The same without a free column: each row that bounds it from below joins each one from above.

        This is Fourier-Motzkin elimination. Of the level of K rates it leaves the K (K - 1) ordered pairs of
        groups: for two the rows of Jagielski et al. (2019), who compare all groups with the first. A group is
        not paired with itself: the other pairs imply that row.
        """
        entries, below, above = self.sides(column)
        i, j = np.repeat(below, len(above)), np.tile(above, len(below))
        other = np.diff((self.moments[i] + self.moments[j]).indptr) > 0
        i, j, kept = i[other], j[other], np.flatnonzero(entries == 0)
        data = np.concatenate([np.ones(len(kept)), entries[j], -entries[i]])
        last = len(kept) + np.arange(len(i))
        places = np.concatenate([np.arange(len(kept)), last, last]), np.concatenate([kept, i, j])
        join = sp.csr_array((data, places), shape=(len(kept) + len(i), len(entries)))
        pairs = zip(i, j, strict=True)
        names = [self.names[k] for k in kept] + [f"{self.names[a]} - {self.names[b]}" for a, b in pairs]
        slack = join @ self.slack
        slack.eliminate_zeros()
        new = self.origin.max(initial=-1) + 1 + np.arange(len(i))
        origin = np.concatenate([self.origin[kept], new])
        return Inequalities(join @ self.moments, slack, join @ self.bounds, names, origin)


class SaddleGaps(NamedTuple):
    """How far a mixture and multipliers are from a saddle point; both are 0 at one.

    Attributes
    ----------
    learner : float
        How much better the learner could do against the multipliers.
    auditor : float
        How much more the auditor could charge for the mixture.
    bound : float
        The least value against the multipliers: no fair mixture has a smaller error.
    """

    learner: float
    auditor: float
    bound: float

    @property
    def total(self) -> float:
        """The duality gap: their sum."""
        return self.learner + self.auditor


class Lagrangian:
    """``L(Q, lambda) = err(Q) + lambda . (A M Q + E s - b)``, least over the slack columns s.

    M maps predictions to moments, see `Moments`; the constraint is ``A m + E s <= b`` with slack columns
    s within bounds: the violations of pairs that a budget allows, and the level of the rates of four groups
    or more. The rows of a level are scaled so that an excess counts as much, and enforcing it needs the same
    sum of multipliers, as with a row for each pair of groups; there are 2 K rather than K (K - 1) of them.

    Attributes
    ----------
    costs : Array
        Of predicting 1, in error, for each record; shape ``(n,)``.
    base : float
        The error of predicting 0 always.
    rows
        A M, shape ``(r, n)``: the inequalities as rows over predictions.
    slack
        The matrix E, shape ``(r, s)``.
    bounds
        The right-hand sides b, shape ``(r,)``.
    low, high
        Bounds of the slack columns, shape ``(s,)``.
    names
        Of the inequalities.
    first, last
        The positions of the upper and of the lower end of each row; the same if it has one end.

    Parameters
    ----------
    demand : Demand
        Writes the constraint. A column without bounds is a level: K rates may differ from it by so much.
    pairs : bool, default False
        Whether any number of groups is compared in pairs: then their number depends on no record.

    References
    ----------
    Agarwal et al. (2018), equation (3); Jagielski et al. (2019), game (3) and Subroutine 4; Jung et al.
    (2021), section 3.
    """

    def __init__(
        self, costs: Array, base: float, demand: Demand, moments: Moments, *, pairs: bool = False
    ) -> None:
        self.costs, self.base = costs, base
        scratch = Model("inequalities")
        q = moments.matrix.shape[0]
        scratch.subject_to(demand(moments.rates(scratch.variable("moments", q))))
        if not scratch.is_linear:
            raise DeclarationError("constraint: its rows are curved in the rates, and only 'lp' takes those")
        columns = scratch.columns()
        low, high = columns.lower[q:].copy(), columns.upper[q:].copy()
        found, free = Inequalities.of(scratch, q), np.isinf(low) & np.isinf(high)
        for column in np.flatnonzero(free).tolist():
            _, below, above = found.sides(column)
            fewest = min(len(below), len(above))
            if pairs or len(below) * len(above) - fewest <= len(below) + len(above):
                found = found.paired(column)
        kept = ~free | (np.diff(found.slack.tocsc().indptr) > 0)
        low, high, self.levels, slack = low[kept], high[kept], free[kept], found.slack[:, kept]
        scale, alone = np.ones(len(found.bounds)), True
        for column in np.flatnonzero(self.levels).tolist():
            entries = slack[:, [column]].toarray()[:, 0]
            scale[entries != 0] = np.ptp(entries)
            alone &= slack[entries != 0].nnz == np.count_nonzero(entries)
        if not alone or not (np.isfinite(low) & np.isfinite(high) | self.levels).all():
            raise DeclarationError("constraint: an auxiliary column has no bounds: no game can price it")
        self.names, self.bounds = found.names, scale * found.bounds
        self.rows = sp.csr_array(sp.diags_array(scale) @ (found.moments @ moments.matrix))
        self._columns = sp.csr_array(self.rows.T)
        self.slack = sp.csr_array(sp.diags_array(scale) @ slack)
        # the middle of no predictions is outside of this
        most, least = self.rows.maximum(0.0).sum(axis=1), self.rows.minimum(0.0).sum(axis=1)
        from_below = self.slack @ self.levels.astype(float) < 0
        for end, activity in ((high, (most, least)), (low, (least, most))):
            end[self.levels] = self._needed(np.where(from_below, *activity) - self.bounds)[self.levels]
        self.low, self.high = low, high
        self.first = np.unique(found.origin, return_index=True)[1]
        self.last = self.size - 1 - np.unique(found.origin[::-1], return_index=True)[1]

    @property
    def size(self) -> int:
        """The number of inequalities, r."""
        return len(self.bounds)

    def error(self, predicted: Array) -> float:
        """The error of predictions, or probabilities of predicting 1."""
        return self.base + float((self.costs * predicted).sum())  # BLAS would start threads for it

    def activity(self, predicted: Array) -> Array:
        """The left-hand side of each inequality without slack; rounding dust, up to 1e-12, is 0.

        The rows are differences of rates. Equal rates of two groups leave 1e-17 in place of 0, and a solver
        that scales rows would take that for a coefficient.

        Parameters
        ----------
        predicted : Array
            Of one hypothesis, shape ``(n,)``, or of several, shape ``(n, k)``.
        """
        values = np.asarray(self.rows @ predicted)
        return np.where(np.abs(values) <= DUST, 0.0, values)

    def price(self, multipliers: Array, cost_weight: float = 1.0) -> Array:
        """The extra cost of predicting 1 instead of 0, for each record: the costs for the oracle.

        Parameters
        ----------
        multipliers : Array
            Of the inequalities, shape ``(r,)``.
        cost_weight : float, default 1.0
            Of the error; 0 leaves the prices of the inequalities alone.
        """
        return np.asarray(cost_weight * self.costs + self._columns @ multipliers)

    def constant(self, multipliers: Array) -> float:
        """The Lagrangian less ``price . predicted``: base error, bounds and slack."""
        charged = self.slack.T @ multipliers
        least = np.minimum(charged * self.low, charged * self.high).sum()
        return self.base - float(self.bounds @ multipliers) + float(least)

    def within(self, left: Expression) -> Constraint:
        """The constraint with a row for both ends, over the left-hand sides of `first`."""
        low = np.where(self.first == self.last, -np.inf, -self.bounds[self.last])
        return left.between(low, self.bounds[self.first])

    def multipliers(self, dual: Array) -> Array:
        """The multipliers of all inequalities from the shadow prices of `within`."""
        found = np.zeros(self.size)
        found[self.last] = np.maximum(dual, 0.0)
        found[self.first] = np.maximum(-dual, 0.0)
        return found

    def value(self, predicted: Array, multipliers: Array) -> float:
        """L, least over the slack columns."""
        return float((self.price(multipliers) * predicted).sum()) + self.constant(multipliers)

    def least_slack(self, predicted: Array) -> Array:
        """For each slack column the least value that satisfies the inequalities which it relaxes.

        For a level, the value in the middle, at which the largest excess is least.
        """
        return np.clip(self._needed(self.rows @ predicted - self.bounds), self.low, self.high)

    def _needed(self, excess: Array) -> Array:
        """The same, whatever the bounds, from the excess of each inequality without slack columns."""
        relaxed = self.slack.tocoo()
        (row, column), size = relaxed.coords, np.abs(relaxed.data)
        side = (relaxed.data > 0).astype(np.intp)
        ends, sizes = np.full((2, len(self.levels)), -np.inf), np.zeros((2, len(self.levels)))
        np.maximum.at(ends, (side, column), excess[row] / size)
        np.maximum.at(sizes, (side, column), size)
        least, at = ends[0], self.levels
        ends[1] *= -1.0
        least[at] = np.average(ends[:, at], axis=0, weights=sizes[:, at])
        return np.asarray(least)

    def best_slack(self, multipliers: Array) -> Array:
        """The slack columns that are best against multipliers; ties go to the upper bound."""
        return np.asarray(np.where(self.slack.T @ multipliers <= 0, self.high, self.low))

    def excess(self, predicted: Array, slack: Array | None = None) -> Array:
        """The left-hand side less the bound of each inequality; with the least slack unless it is given."""
        given = self.least_slack(predicted) if slack is None else slack
        return np.asarray(self.rows @ predicted + self.slack @ given - self.bounds)

    def penalized(self, predicted: Array, bound: float) -> float:
        """The most that an auditor with this budget can charge: error and largest excess."""
        return self.error(predicted) + bound * float(self.excess(predicted).max(initial=0.0))

    def gaps(
        self, predicted: Array, multipliers: Array, best: Array, bound: float | None = None
    ) -> SaddleGaps:
        """How far predictions and multipliers are from a saddle point.

        Parameters
        ----------
        predicted : Array
            The probabilities of predicting 1.
        multipliers : Array
            At least 0.
        best : Array
            The predictions of a hypothesis of least `price`.
        bound : float, optional
            On the sum of the multipliers; their own sum if None.
        """
        bound = float(multipliers.sum()) if bound is None else bound
        value, least = self.value(predicted, multipliers), self.value(best, multipliers)
        return SaddleGaps(value - least, self.penalized(predicted, bound) - value, least)

    def enough(self, hypotheses: list[Array]) -> float:
        """A sum of multipliers that suffices to enforce the constraint, by Slater's condition.

        A hypothesis that satisfies every inequality with slack s and has error e shows that the optimal
        multipliers sum to at most e / s. Infinite if none of the given predictions does.
        """
        found = np.inf
        for predicted in hypotheses:
            room = -float(self.excess(predicted).max(initial=-1.0))
            if room > 0:
                found = min(found, self.error(predicted) / room)
        return found


GRACE = 0.5
"""Seconds that the last mixture gets once the time is used up, so that a short run is not left unfair."""


class HypothesisPool:
    """Hypotheses that differ on the records, with the Lagrangian's data of each.

    Attributes
    ----------
    hypotheses
        In the order of their first appearance.
    counts
        How often each was played.
    errors
        Of each.
    activities
        ``rows @ predictions`` of each, shape ``(r,)``.
    """

    def __init__(self, lagrangian: Lagrangian) -> None:
        self.lagrangian = lagrangian
        self.hypotheses: list[Hypothesis] = []
        self.counts: list[int] = []
        self.errors: list[float] = []
        self.activities: list[Array] = []
        self._place: dict[bytes, int] = {}

    def add(self, found: Hypothesis, plays: int = 0) -> None:
        """Add a hypothesis if it is new, and count its plays."""
        key = np.packbits(found.predictions.astype(bool)).tobytes()
        at = self._place.setdefault(key, len(self.hypotheses))
        if at == len(self.hypotheses):
            self.hypotheses.append(found)
            self.counts.append(0)
            self.errors.append(self.lagrangian.error(found.predictions))
            self.activities.append(self.lagrangian.activity(found.predictions))
        self.counts[at] += plays

    @property
    def averaged(self) -> Array:
        """The weight of each if all plays weigh the same."""
        return np.array(self.counts) / sum(self.counts)

    def predicted(self, weights: Array) -> Array:
        """The probability that each record is predicted 1 by a mixture."""
        used = np.flatnonzero(weights)
        stacked = np.array([self.hypotheses[k].predictions for k in used], dtype=float)
        return np.asarray(np.clip(weights[used] @ stacked, 0.0, 1.0))

    def repaired(
        self, oracle: Oracle, bound: float, backend: str, deadline: Deadline
    ) -> tuple[Array, Array | None]:
        """The fair mixture of least error, and its multipliers.

        If no mixture of these is fair: the mixture of least error plus `bound` times the largest excess.
        Hypotheses that the oracle remembers join the pool where they improve the mixture. Once the deadline
        has passed and no mixture was found within half a second, it is the average play (or the first
        hypothesis, if there were no plays) without multipliers.

        Raises
        ------
        BackendError
            If the linear program cannot be solved.

        References
        ----------
        Agarwal et al. (2018) and Jung et al. (2021) average the plays; this linear program over the plays is
        never worse.
        """
        game = self.lagrangian
        best: tuple[Array, Array | None] | None = None
        while True:
            solution, weight, fair = self._mix(None, backend, deadline)
            if solution.status is Status.INFEASIBLE:
                solution, weight, fair = self._mix(bound, backend, deadline)
            if solution.status is not Status.OPTIMAL:
                if not deadline.passed:
                    count = len(self.hypotheses)
                    raise BackendError(f"mixing {count} classifiers failed: {solution.message}")
                first = self.averaged if sum(self.counts) else np.eye(1, len(self.hypotheses))[0]
                return best or (first, None)
            weights, multipliers = np.maximum(solution[weight], 0.0), np.maximum(-solution.dual(fair), 0.0)
            best = weights / weights.sum(), multipliers
            known = len(self.hypotheses)
            for found in () if deadline.passed else oracle.recall(game.price(multipliers)):
                if game.value(found.predictions, multipliers) < solution.objective - WORTH_RECALLING:
                    self.add(found)
            if len(self.hypotheses) == known:
                return best

    def _mix(
        self, penalty: float | None, backend: str, deadline: Deadline
    ) -> tuple[ModelSolution, Variable, Constraint]:
        """The mixture of least error, with a price on the largest excess; its weights and its rows."""
        game = self.lagrangian
        model = Model("mixture")
        weight = model.variable("weight", len(self.hypotheses), lower=0.0)
        slack = model.variable("slack", len(game.low), lower=game.low, upper=game.high)
        goal = weight @ np.array(self.errors)
        model.subject_to(weight.sum() == 1, name="mixture")
        left = model.lift(np.zeros(game.size)) + np.array(self.activities).T @ weight + game.slack @ slack
        if penalty is not None:
            excess = model.variable("excess", lower=0.0)
            left, goal = left - excess, goal + penalty * excess
        fair = model.subject_to(left <= game.bounds, name="fairness")
        model.minimize(goal)
        left = deadline.left
        solution = model.solve(backend, time_limit=None if left is None else max(left, GRACE))
        return solution, weight, fair
