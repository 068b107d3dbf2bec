"""The Lagrangian of fair learning: the error, and a price for every inequality of the constraint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.language.constraint import Constraint
from forcopt.language.model import Model
from forcopt.models.fair_classification.moments import Moments

__all__ = ["Lagrangian", "SaddleGaps"]

DUST = 1e-12

Inequalities = Callable[[Any], list[Constraint]]
"""Writes a constraint over rates that are expressions, such as `Notion.inequalities`."""


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
    s within bounds (the violations of pairs that a budget allows; most notions have none).

    Attributes
    ----------
    costs : Array
        Of predicting 1, in error, for each record; shape ``(n,)``.
    base : float
        The error of predicting 0 always.
    rows
        A M, shape ``(r, n)``: the inequalities as rows over predictions.
    slack
        E, shape ``(r, s)``.
    bounds
        B, shape ``(r,)``.
    low, high
        Bounds of the slack columns, shape ``(s,)``.
    names
        Of the inequalities.

    References
    ----------
    Agarwal et al. (2018), equation (3); Jagielski et al. (2019), game (3) and Subroutine 4; Jung et al.
    (2021), section 3.
    """

    def __init__(self, costs: Array, base: float, inequalities: Inequalities, moments: Moments) -> None:
        self.costs, self.base = costs, base
        scratch = Model("inequalities")
        q = moments.matrix.shape[0]
        seen = scratch.variable("moments", q)
        scratch.subject_to(inequalities(moments.rates(seen)))
        columns = scratch.columns()
        self.low, self.high = columns.lower[q:].copy(), columns.upper[q:].copy()
        if not (np.isfinite(self.low).all() and np.isfinite(self.high).all()):
            raise DeclarationError(
                "constraint: its inequalities have an auxiliary column without bounds: no game can price it"
            )
        parts, ends, self.names = [], [], list[str]()
        for row in scratch.constraints:
            matrix = row.expression.linear_rows().matrix(scratch.column_count)
            low, high = row.row_bounds()
            labels = row.labels or [row.name] * len(high)
            for sign, bound in ((1.0, high), (-1.0, -low)):
                kept = np.flatnonzero(np.isfinite(bound))
                parts.append(sign * matrix[kept])
                ends.append(bound[kept])
                self.names += [labels[k] for k in kept.tolist()]
        wide = sp.csr_array(sp.vstack(parts)) if parts else sp.csr_array((0, scratch.column_count))
        self.rows = sp.csr_array(wide[:, :q] @ moments.matrix)
        self._columns = sp.csr_array(self.rows.T)
        self.slack = sp.csr_array(wide[:, q:])
        self.bounds = np.concatenate([*ends, np.zeros(0)])

    @property
    def size(self) -> int:
        """The number of inequalities, r."""
        return len(self.bounds)

    def error(self, predicted: Array) -> float:
        """The error of predictions, or probabilities of predicting 1."""
        return self.base + float(self.costs @ predicted)

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

    def value(self, predicted: Array, multipliers: Array) -> float:
        """L, least over the slack columns."""
        return float(self.price(multipliers) @ predicted) + self.constant(multipliers)

    def least_slack(self, predicted: Array) -> Array:
        """For each slack column, the least value that satisfies the inequalities which it relaxes."""
        needed = self.rows @ predicted - self.bounds
        relaxed = self.slack.tocoo()
        kept = relaxed.data < 0
        out = self.low.copy()
        row, column = relaxed.coords
        np.maximum.at(out, column[kept], needed[row[kept]] / -relaxed.data[kept])
        return np.minimum(out, self.high)

    def best_slack(self, multipliers: Array) -> Array:
        """The slack columns that are best against multipliers; ties go to the upper bound."""
        return np.where(self.slack.T @ multipliers <= 0, self.high, self.low)

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
