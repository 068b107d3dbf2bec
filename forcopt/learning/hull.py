"""Hulls that cannot be listed, in any model: the oracle of the class finds their supporting halfspaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.language.constraint import Constraint
from forcopt.language.model import Model
from forcopt.language.variable import Variable
from forcopt.learning.hypotheses import Hull, Hypothesis, Oracle, OracleTimeout
from forcopt.learning.tolerances import INSIDE, RANK, WORTH_A_MEMBER
from forcopt.loops.solution import ModelSolution

SHARP = 10.0
"""Rows multiply distances by this factor: a solver's tolerance of 1e-6 is then 1e-7 of a moment."""
INNER = 0.6
"""The first halfspaces are sought between the candidate and the last mixture, at this share of the way: they
lie nearer to the solution, and fewer rounds are needed (Ben-Ameur and Neto 2007). Learners need more fits."""
FAR = 1e-3
"""If the first halfspaces leave a candidate out by more than this, no others are sought. Solvers' tolerances
are smaller."""
DEEP = 0.5
"""The search ends at a halfspace that leaves a point out by this share of its distance from the members."""
Respond = Callable[[Array, Deadline], tuple[Array, Any]]
"""The oracle: a member of least ``direction . member``, and what it belongs to."""


class OracleHull:
    """A point in the convex hull of a set that an oracle minimises over, as a lazy family of a model.

    A candidate is projected onto the hull of the members met so far; the oracle answers the direction from
    the candidate to its projection. The answer joins the members, and gives a halfspace that holds all
    members. This goes on until a halfspace leaves the candidate out, or it is a mixture of members.

    Parameters
    ----------
    model : Model
        To write to.
    respond : Respond
        The oracle.
    low, high : Array
        Bounds of the point, shape ``(q,)``.
    exact : bool
        Whether the oracle finds minima. If not, a halfspace that a later member violates is moved, and the
        model is solved anew; the answer is then the best among the mixtures of the members met.
    upward : bool, default False
        Whether the point may also exceed a mixture in any coordinate.

    Attributes
    ----------
    point : Variable
        The point, shape ``(q,)``.
    items : list[Any]
        What the members belong to.

    Notes
    -----
    The projection is one problem of nonnegative least squares. Each halfspace supports the hull of finitely
    many members, so that the rounds end.

    References
    ----------
    Grötschel, Lovász and Schrijver (1981): The ellipsoid method and its consequences in combinatorial
    optimization. Wolfe (1976): Finding the nearest point in a polytope. Lawson and Hanson (1974), chapter 23.

    Examples
    --------
    >>> corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> def respond(direction, deadline):
    ...     k = int(np.argmin(corners @ direction))
    ...     return corners[k], k
    >>> m = Model()
    >>> hull = OracleHull(m, respond, np.zeros(2), np.ones(2), exact=True)
    >>> m.maximize(2 * hull.point[0] + 3 * hull.point[1])
    >>> s = m.solve()
    >>> weights, items = hull.mixture(s)
    >>> round(s.objective, 6), items[int(np.argmax(weights))]
    (3.0, 2)
    """

    def __init__(
        self, model: Model, respond: Respond, low: Array, high: Array, *, exact: bool, upward: bool = False
    ) -> None:
        self.respond, self.upward = respond, upward
        self.point: Variable = model.variable(model.unused_name("moments"), len(low), lower=low, upper=high)
        self._one = model.variable(model.unused_name("one"), lower=1.0, upper=1.0)
        self.family = model.lazy(self.separate, name=model.unused_name("hull"), exact=exact)
        self.items: list[Any] = []
        self.members, self.directions = np.zeros((0, len(low))), np.zeros((0, len(low)))
        self.limits, self.given, self._inner = np.zeros(0), np.zeros(0, dtype=bool), np.zeros(len(low))
        self._last: tuple[Array, list[Constraint]] = np.zeros(0), []

    def separate(self, value: Callable[[Any], Array]) -> list[Constraint]:
        """The halfspaces that hold the set and leave a candidate out, as a `Separator`."""
        at = value(self.point)
        if not np.array_equal(at, self._last[0]):  # a solution is looked at again
            for share in (INNER, 0.0) if self.family.exact else (0.0,):
                self._inner = self._explore(at + share * (self._inner - at))
                if self._missed(at).max(initial=0.0) > FAR:
                    break
            out = np.flatnonzero(self._missed(at) > INSIDE)
            self.given[out] = True
            left = self.point @ self.directions[out].T - self.limits[out] * self._one
            self._last = at, [SHARP * left >= 0] if len(out) else []
        return self._last[1]

    def _missed(self, at: Array) -> Array:
        """By how much each halfspace leaves a candidate out."""
        return np.asarray(self.limits - self.directions @ at)

    def _explore(self, at: Array) -> Array:
        """Find halfspaces that leave a point out, or members of which it is a mixture; give the nearest."""
        if not self.items:
            self.meet(*self.respond(np.zeros(len(at)), self.family.deadline))
        while True:
            _, away = self._projected(at)
            distance = float(np.linalg.norm(away))
            if distance <= INSIDE or self._missed(at).max(initial=0.0) >= DEEP * distance:
                return at + away
            direction = np.where(np.abs(away) > INSIDE * distance, away / distance, 0.0)
            if self.family.deadline.passed:
                raise OracleTimeout
            member, item = self.respond(direction, self.family.deadline)
            known = float((self.members @ direction).min())
            self.directions = np.vstack([self.directions, direction])
            self.limits, self.given = np.append(self.limits, known), np.append(self.given, False)
            if member @ direction >= known - (INSIDE / 10 if self.family.exact else WORTH_A_MEMBER):
                return at + away
            self.meet(member, item)

    def meet(self, member: Array, item: Any) -> None:
        """Take a member up, and move the halfspaces that do not hold it."""
        self.members, values = np.vstack([self.members, member]), self.directions @ member
        self.items.append(item)
        self.family.withdrawn |= bool((self.given & (values < self.limits - INSIDE)).any())
        self.limits = np.minimum(self.limits, values)

    def _projected(self, at: Array) -> tuple[Array, Array]:
        """The weights of the nearest mixture of the members, and the way to it."""
        count, q = self.members.shape
        ends = np.vstack([self.members - at, np.eye(q if self.upward else 0, q)]).T
        total = np.append(np.ones(count), np.zeros(ends.shape[1] - count))
        # w = u / sum(u) is nearest if u minimises |ends u|^2 + (sum(u) - 1)^2
        found = scipy.optimize.nnls(
            np.vstack([ends, total]), np.append(np.zeros(q), 1.0), maxiter=100 * ends.shape[1]
        )[0]
        found /= found[:count].sum()
        return found[:count], ends @ found

    def mixture(self, solution: ModelSolution) -> tuple[Array, list[Any]]:
        """The weights of a solution, and what their members belong to."""
        weights, _ = self._projected(solution[self.point])
        used = np.flatnonzero(weights > 0)
        return weights[used], [self.items[k] for k in used.tolist()]


def write_hull(oracle: Oracle, model: Model, linear: sp.csr_array) -> Hull:
    """Write the mixtures of a class into a model by its oracle; see `Oracle.hull`.

    Rows that are sums of others, such as the error of the cells of the groups, follow from these.
    """
    oracle = oracle.fresh()
    size = np.abs(linear).sum(axis=1)
    every = linear.toarray() / np.where(size > 0, size, 1.0)[:, None]
    factor, order = scipy.linalg.qr(every.T, mode="r", pivoting=True)
    count = np.count_nonzero(np.abs(np.diag(factor)) > RANK * np.abs(factor[0, 0]))
    rows, combined = sp.csr_array(every[order[:count]]), np.zeros((len(size), count))
    combined[order] = scipy.linalg.solve_triangular(factor[:count, :count], factor[:count]).T

    def respond(direction: Array, deadline: Deadline) -> tuple[Array, Hypothesis]:
        oracle.deadline = deadline
        costs = direction @ rows
        found = oracle.good(costs / (np.abs(costs).max() or 1.0))
        return rows @ found.predictions, found

    least, most = rows.minimum(0.0).sum(axis=1), rows.maximum(0.0).sum(axis=1)
    hull = OracleHull(model, respond, least, most, exact=oracle.exact)
    for h in oracle.constants():
        hull.meet(rows @ h.predictions, h)
    mapped = (size[:, None] * combined) @ hull.point
    return Hull(mapped, hull.mixture, lambda weights, seen: {hull.point: rows @ (weights @ seen)})
