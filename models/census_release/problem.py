"""The declaration: noisy counts on a hierarchy, to be made consistent, nonnegative and integer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, field_validator, model_validator

from forcopt.arrays import Array, as_numbers, check_label_order, check_shape
from forcopt.clock import Deadline
from forcopt.data.hierarchy import Hierarchy
from forcopt.declaration import Declared, Integers, Numbers
from forcopt.errors import DeclarationError, require_shape
from forcopt.loops.certify import Certificate
from forcopt.models.census_release.release import PublicTree, Release
from forcopt.models.census_release.tolerances import SUM_ROUNDING
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Method, Outcome, Problem, Solution
from forcopt.problem.drawing import Sketch
from forcopt.status import Status

_MOST_NAMED = 3
"""Violations of one kind that are named; the largest first."""


class Invariant(Declared):
    """A count that the release must have, such as the state's population.

    Attributes
    ----------
    level : int
        The unit's level, 0 for the root.
    unit : int | str
        Its position on the level, or its name.
    value : float
        The count.
    types : tuple[int, ...], default ()
        The types that are added up; all of them by default.

    Examples
    --------
    >>> from forcopt.data import Hierarchy
    >>> from forcopt.models import ConsistentRelease
    >>> from forcopt.models.census_release import Invariant
    >>> tree = Hierarchy(parents=([0, 0],))
    >>> p = ConsistentRelease(tree, ([103], [58, 44]), precision=[1, 1], invariants=[Invariant(0, 0, 100)])
    >>> p.solve().decision.counts[0].round(6).item()
    100.0
    """

    level: int
    unit: int | str
    value: float = Field(allow_inf_nan=False)
    types: tuple[int, ...] = ()


class Measurement(Declared):
    """Noisy counts of a region that need not be a unit of the tree, such as a school district.

    Attributes
    ----------
    leaves : Integers
        Positions of the region's leaves.
    noisy : Numbers
        The noisy count of each query, shape ``(queries,)``.
    precision : Numbers
        One over the variance, above 0; a number, or a number for each query.

    Examples
    --------
    >>> from forcopt.data import Hierarchy
    >>> from forcopt.models import ConsistentRelease
    >>> from forcopt.models.census_release import Measurement
    >>> tree = Hierarchy(parents=([0, 0, 0],))
    >>> school = Measurement(leaves=[0, 1], noisy=[30], precision=1e6)
    >>> p = ConsistentRelease(tree, ([60], [10, 10, 40]), precision=[1, 1], extra=[school])
    >>> p.solve().decision.leaves[:2].sum().round(2).item()
    30.0
    """

    leaves: Integers
    noisy: Numbers
    precision: Numbers

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.precision <= 0).any():
            raise DeclarationError(f"precision is {self.precision.min():g}; it must be above 0")
        return self


class ConsistentRelease(Problem):
    """Counts on a hierarchy that add up, nearest to noisy counts.

    Attributes
    ----------
    hierarchy : Hierarchy
        The tree. Its counts are private; the problem drops them.
    noisy : tuple[Numbers, ...]
        By level, root first: the noisy count of each unit and query; shapes ``(units, queries)``, or
        ``(units,)`` for one query.
    precision : Numbers
        One over the noise's variance, above 0; shape ``(d,)`` by level, or ``(d, queries)``. Only ratios
        matter to the decision.
    order : Literal["joint", "top-down"], default "joint"
        ``"joint"``: the least sum over all levels of precision times squared distance. ``"top-down"``: the
        root's distance first, then the next level's among the optima, and so on.
    nonnegative : bool, default True
        Whether counts must be at least 0.
    integer : bool, default False
        Whether counts must be integers.
    workload : Integers, optional
        The queries as rows of 0 and 1, shape ``(queries, types)``: which types each adds up. By default each
        type is a query. Every type must be in a query.
    invariants : tuple[Invariant, ...], optional
        Counts that the release must have.
    zeros : Integers, optional
        Positions of leaves that must be empty, such as blocks of water.
    extra : tuple[Measurement, ...], optional
        Further measured regions. In top-down order they count with the leaves.
    source : dict, optional
        What `measure` says of the noisy counts: query, noise, privacy, whether it was simulated, and the
        entry of the ledger.

    Raises
    ------
    DeclarationError
        For levels and arrays that do not fit, a precision that is not above 0, a query twice, or fractional
        invariants of whole counts.

    Notes
    -----
    The objective is the sum over units and queries of precision times squared distance, in either order.
    In top-down order the lexicographic optimum keeps all descendants feasible; solving level by level may
    not, since invariants below may contradict a parent that is fixed already. All lexicographic optima have
    the same squares on each level, so that the bound of an optimal solution is its objective.

    References
    ----------
    Cohen, Duchin, Matthews, Suwal: Census TopDown: The Impacts of Differential Privacy on Redistricting. FORC
    2021. Abowd et al.: The 2020 Census Disclosure Avoidance System TopDown Algorithm. HDSR 2022.

    Examples
    --------
    >>> from forcopt.data import Hierarchy
    >>> from forcopt.models import ConsistentRelease
    >>> tree = Hierarchy(parents=([0, 0], [0, 0, 1, 1, 1]))
    >>> noisy = ([103], [58, 44], [36, 20, 24, 13, 2])
    >>> p = ConsistentRelease(tree, noisy, precision=[1, 1, 1])
    >>> p.solve("tree-nnls").decision.leaves.ravel().round(4).tolist()
    [37.069, 21.069, 25.5517, 14.5517, 3.5517]
    >>> p.replace(integer=True).solve("tree-integer").decision.leaves.ravel().tolist()
    [37, 21, 26, 15, 3]
    >>> round(p.replace(order="top-down").solve("simplex").objective, 6)
    13.708333
    """

    family: ClassVar[str] = "census"
    default_method: ClassVar[str] = "qp"
    reason_first: ClassVar[bool] = True

    hierarchy: PublicTree
    noisy: tuple[Numbers, ...]
    precision: Numbers
    order: Literal["joint", "top-down"] = "joint"
    nonnegative: bool = True
    integer: bool = False
    workload: Integers | None = None
    invariants: tuple[Invariant, ...] = ()
    zeros: Integers = Field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    extra: tuple[Measurement, ...] = ()
    source: dict[str, Any] | None = None

    @model_validator(mode="before")
    @classmethod
    def _meet_by_name(cls, given: Any) -> Any:
        tree = given.get("hierarchy") if isinstance(given, dict) else None
        if isinstance(tree, Hierarchy) and tree.names:
            for level, (names, values) in enumerate(zip(tree.names, given.get("noisy") or (), strict=False)):
                check_label_order("ConsistentRelease", {"names": names, f"noisy.{level}": values})
        return given

    @field_validator("zeros", mode="before")
    @classmethod
    def _none_empty(cls, zeros: Any) -> Any:
        return np.zeros(0, dtype=np.int64) if zeros is None else zeros

    @field_validator("noisy")
    @classmethod
    def _by_query(cls, noisy: tuple[Array, ...]) -> tuple[Array, ...]:
        for number, shape in enumerate(level.shape for level in noisy):
            if len(shape) not in (1, 2):
                raise DeclarationError(f"level {number} has shape {shape}; it must be a row for each unit")
        return tuple(level[:, None] if level.ndim == 1 else level for level in noisy)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        h = self.hierarchy
        if len(self.noisy) != h.depth:
            raise DeclarationError(f"noisy has {len(self.noisy)} levels; the tree has {h.depth}")
        queries = self.noisy[0].shape[-1]
        for level, values in enumerate(self.noisy):
            wanted = h.sizes[level], queries
            require_shape(values.shape == wanted, f"noisy counts, level {level} have", values, f"be {wanted}")
        shapes = (h.depth,), (h.depth, queries)
        fits = self.precision.shape in shapes
        require_shape(fits, "precision has", self.precision, f"be {shapes[0]} or {shapes[1]}")
        if (self.precision <= 0).any():
            at = int(np.argwhere(self.precision <= 0)[0, 0])
            least = self.precision[at].min()
            raise DeclarationError(f"precision of level {at} is {least:g}; it must be above 0")
        self._check_workload(queries)
        if h.types and len(h.types) != self.types:
            raise DeclarationError(f"the hierarchy names {len(h.types)} types; the counts have {self.types}")
        for item in self.invariants:
            h.find(item.level, item.unit)
            if any(not 0 <= t < self.types for t in item.types) or len(set(item.types)) < len(item.types):
                raise DeclarationError(f"invariant {item!r}: types are from 0 to {self.types - 1}, each once")
            if self.integer and item.value != round(item.value):
                raise DeclarationError(f"integer: invariant of unit {item.unit}: {item.value:g} is not whole")
        named = {"zeros": self.zeros} | {f"extra.{i}.leaves": m.leaves for i, m in enumerate(self.extra)}
        for field, which in named.items():
            if which.ndim != 1 or (which.size and not 0 <= which.min() <= which.max() < h.leaves):
                wrong = [v for v in which.ravel().tolist() if not 0 <= v < h.leaves]
                found = f"has {wrong[0]}" if wrong else f"has shape {which.shape}"
                raise DeclarationError(f"{field} {found}; it names leaves by position, 0 to {h.leaves - 1}")
            values, times = np.unique(which, return_counts=True)
            if field != "zeros" and (times > 1).any():
                raise DeclarationError(f"{field} names leaf {values[np.argmax(times)]} twice")
        for off in self.extra:
            if off.noisy.shape != (queries,) or off.precision.shape not in ((), (queries,)):
                raise DeclarationError(f"extra: noisy needs shape ({queries},), precision () or ({queries},)")
        return self

    def _check_workload(self, queries: int) -> None:
        if self.workload is None:
            return
        rows = self.workload
        if rows.ndim != 2 or len(rows) != queries or ((rows != 0) & (rows != 1)).any():
            raise DeclarationError(f"workload must have {queries} rows of 0 and 1; its shape is {rows.shape}")
        seen: dict[bytes, int] = {}
        for q, row in enumerate(rows):
            if not row.any():
                raise DeclarationError(f"query {q} of the workload holds no type")
            if seen.setdefault(row.tobytes(), q) != q:
                raise DeclarationError(f"queries {seen[row.tobytes()]} and {q} of the workload are the same")
        if not rows.any(axis=0).all():
            raise DeclarationError(f"type {int(np.argmin(rows.any(axis=0)))} is in no query of the workload")

    def method(self, name: str | None = None) -> Method:
        """Give a method by name; by default the formulation that fits the problem.

        That is ``"qp"`` for real counts, ``"network-lp"`` for whole ones if `is_network`, else ``"milp"``.
        """
        usual = "qp" if not self.integer else "network-lp" if self.is_network else "milp"
        return super().method(name or usual)

    # -- derived from the fields -----------------------------------------------------------------------------

    @property
    def types(self) -> int:
        """The number of types."""
        return int((self.noisy[0] if self.workload is None else self.workload).shape[1])

    @property
    def queries(self) -> Array:
        """The workload, or the identity; shape ``(queries, types)``."""
        return np.eye(self.types, dtype=np.int64) if self.workload is None else self.workload

    @property
    def weights(self) -> Array:
        """The precision by level and query, shape ``(d, queries)``."""
        shape = (self.hierarchy.depth, self.noisy[0].shape[1])
        return np.broadcast_to(self.precision.reshape(shape[0], -1), shape)

    @property
    def separable(self) -> bool:
        """Whether no query or invariant connects types, and there are no regions off the tree."""
        detailed = np.array_equal(self.queries, np.eye(self.types))
        single = all(len(item.types) == 1 or self.types == 1 for item in self.invariants)
        return detailed and single and not self.extra

    @property
    def is_network(self) -> bool:
        """Whether the linear program of unit steps is proved to have integral vertices.

        Notes
        -----
        If each type is its own query, the units' sums form a laminar family. On two levels (the level problem
        of TopDown, if the root's counts are invariant) nested queries suffice: the units' sets of types are
        one laminar family, the root's another, and the incidence matrix of two laminar families is a network
        matrix. Nested queries on more levels are not known to be a flow.
        """
        return self.separable or (self.hierarchy.depth <= 2 and not self.extra and self.is_nested)

    @property
    def is_nested(self) -> bool:
        """Whether the type sets of any two queries or invariants are nested or disjoint."""
        rows = [*self.queries, *np.eye(self.types, dtype=np.int64)]
        for item in self.invariants:
            row = np.zeros(self.types, dtype=np.int64)
            row[list(item.types or range(self.types))] = 1
            rows.append(row)
        family = np.array(rows)
        common, size = family @ family.T, family.sum(axis=1)
        return bool(((common == 0) | (common == np.minimum.outer(size, size))).all())

    @property
    def held(self) -> list[Array]:
        """The fixed values of units, by level; NaN where free; ``(units, types)``."""
        return self._held_and_conflict[0]

    @cached_property
    def _held_and_conflict(self) -> tuple[list[Array], str]:
        """`held`, and the first two values that one unit and type must have; empty if there are none."""
        h, conflict = self.hierarchy, ""
        found = [np.full((size, self.types), np.nan) for size in h.sizes]
        found[-1][self.zeros] = 0.0
        for item in self.invariants:
            types = item.types or tuple(range(self.types))
            if len(types) == 1:
                unit = h.find(item.level, item.unit)
                known = found[item.level][unit, types[0]]
                if not np.isnan(known) and known != item.value:
                    conflict = conflict or f"unit {h.name(item.level, unit)}: {item.value:g} and {known:g}"
                found[item.level][unit, types[0]] = item.value
        return found, conflict

    @cached_property
    def floors(self) -> list[tuple[Array, Array]]:
        """By level, the least value that its descendants allow each unit, and whether it is the only one."""
        h = self.hierarchy
        found: list[tuple[Array, Array]] = []
        low: Array = np.full((h.leaves, self.types), 0.0 if self.nonnegative else -np.inf)
        fixed: Array = np.zeros(low.shape, dtype=bool)
        for level in range(h.depth - 1, -1, -1):
            if level < h.depth - 1:
                free = h.up(level + 1, (~found[-1][1]).astype(float)) > 0
                low, fixed = self._sum_floors(level + 1, found[-1][0]), ~free
            held = self.held[level]
            is_held = ~np.isnan(held)
            found.append((np.where(is_held, held, low), fixed | is_held))
        return found[::-1]

    def _sum_floors(self, level: int, low: Array) -> Array:
        endless = np.isneginf(low)
        total = self.hierarchy.up(level, np.where(endless, 0.0, low))
        if not endless.any():
            return total
        return np.where(self.hierarchy.up(level, endless.astype(float)) > 0, -np.inf, total)

    def infeasibility_reason(self) -> str:
        """Name a unit whose invariants contradict each other or those below; empty if none is known.

        Notes
        -----
        Complete for invariants of single types. Invariants of several types are compared with the least
        counts of their types, and invariants of all types along the tree too; others need a program.
        """
        h, floors = self.hierarchy, self.floors
        if conflict := self._held_and_conflict[1]:
            return conflict
        for level in range(h.depth - 1, -1, -1):
            held = self.held[level]
            if level == h.depth - 1:
                wrong = (held < 0) & self.nonnegative
                below = np.zeros_like(held)
            else:
                low, fixed = floors[level + 1]
                below = self._sum_floors(level + 1, low)
                closed = h.up(level + 1, (~fixed).astype(float)) == 0
                slack = FEASIBILITY_TOLERANCE * np.maximum(1.0, np.abs(held))
                wrong = (held < below - slack) | (closed & (np.abs(held - below) > slack))
            if wrong.any():
                unit, t = np.argwhere(wrong)[0]
                name, value = h.name(level, int(unit)), held[unit, t]
                if level == h.depth - 1:
                    return f"unit {name}: {value:g}, which is below 0"
                return f"unit {name}: {value:g}, its children {below[unit, t]:g}"
        return self._group_reason() or self._total_reason()

    def _group_reason(self) -> str:
        """As `infeasibility_reason`, for each invariant of several types against their least counts."""
        h = self.hierarchy
        seen: dict[tuple[int, int, tuple[int, ...]], float] = {}
        for item in self.invariants:
            types = tuple(sorted(item.types)) or tuple(range(self.types))
            if len(types) == 1:
                continue
            unit = h.find(item.level, item.unit)
            name = h.name(item.level, unit)
            if seen.setdefault((item.level, unit, types), item.value) != item.value:
                return f"unit {name}: {seen[item.level, unit, types]:g} and {item.value:g}"
            low, fixed = self.floors[item.level]
            least, shut = float(low[unit, types].sum()), bool(fixed[unit, types].all())
            slack = FEASIBILITY_TOLERANCE * max(1.0, abs(item.value))
            if item.value < least - slack or (shut and item.value > least + slack):
                listed = ", ".join(map(str, types))
                return f"unit {name}: {item.value:g} over types {listed}, which have {least:g}"
        return ""

    def _total_reason(self) -> str:
        """As `infeasibility_reason`, for invariants on the sum of all types along the tree."""
        h = self.hierarchy
        totals: list[dict[int, float]] = [{} for _ in h.sizes]
        for item in self.invariants:
            if self.types > 1 and len(item.types) in (0, self.types):
                totals[item.level][h.find(item.level, item.unit)] = item.value
        if not any(totals):
            return ""
        below: Array = np.zeros(0)
        closed: Array = np.zeros(0, dtype=bool)
        for level in range(h.depth - 1, -1, -1):
            low, fixed = self.floors[level]
            own, shut = np.asarray(low.sum(axis=1)), np.asarray(fixed.all(axis=1))
            if level < h.depth - 1:
                children = self._sum_floors(level + 1, below)
                ends = h.up(level + 1, (~closed).astype(float)) == 0
                slack = FEASIBILITY_TOLERANCE * np.maximum(1.0, np.abs(children))
                wrong = (shut & (own < children - slack)) | (ends & (own > children + slack))
                if wrong.any():
                    unit = int(np.argmax(wrong))
                    return f"unit {h.name(level, unit)}: {own[unit]:g}, its children {children[unit]:g}"
                own, shut = np.maximum(own, children), shut | ends
            for unit, value in totals[level].items():
                slack_one = FEASIBILITY_TOLERANCE * max(1.0, abs(value))
                if value < own[unit] - slack_one or (shut[unit] and value > own[unit] + slack_one):
                    return f"unit {h.name(level, unit)}: {value:g}, its children {own[unit]:g}"
                own[unit], shut[unit] = value, True
            below, closed = own, shut
        return ""

    def _solve_model(
        self, method: Method, own: Mapping[str, Any], common: dict[str, Any], deadline: Deadline
    ) -> Solution:
        """As `Problem._solve_model`, after the invariants were compared; ``qp`` goes level by level.

        In top-down order the model's bound and trace are of single levels. All lexicographic optima have the
        same squares on each level, so that the objective of an optimal release is the bound on their sum.
        """
        from forcopt.models.census_release.common import demand_formulation
        from forcopt.models.census_release.formulations import BeyondWindowError, level_qp

        demand_formulation(self, method.name)
        if (none := Outcome.infeasible(self.infeasibility_reason())) is not None:
            return self._from_outcome(method, none, common.get("backend") or "", deadline)
        if method.name == "qp" and self.order == "top-down":
            return self._from_outcome(method, *level_qp(self, common, deadline), deadline)
        widens = method.name in ("network-lp", "milp") and "reach" not in own
        while True:  # wider windows until every count lies in its own
            try:
                s = super()._solve_model(method, own, dict(common), deadline)
                break
            except BeyondWindowError as error:
                if not widens:
                    raise
                own = {**own, "reach": tuple(error.reach)}
        if self.order == "top-down" and s.status is Status.OPTIMAL:
            s = replace(s, bound=s.objective, trace=[])
        return s

    # -- judging ---------------------------------------------------------------------------------------------

    def read(self, decision: Release | Any) -> tuple[Array, ...]:
        """The counts of a decision by level: of a `Release`, of arrays by level, or of one array of leaves.

        Raises
        ------
        DeclarationError
            For shapes that do not fit.
        """
        h = self.hierarchy
        if isinstance(decision, Release):
            levels = decision.counts
        elif isinstance(decision, tuple | list) and len(decision) == h.depth and np.ndim(decision[0]) >= 1:
            levels = tuple(as_numbers(level, "the counts").reshape(-1, self.types) for level in decision)
        else:
            leaves = as_numbers(decision, "the leaves' counts").reshape(-1, self.types)
            if len(leaves) != h.leaves:
                raise DeclarationError(f"the decision has {len(leaves)} leaves; the tree has {h.leaves}")
            levels = tuple(h.sums(leaves))
        for level, (counts, size) in enumerate(zip(levels, h.sizes, strict=True)):
            check_shape(counts, (size, self.types), f"counts of level {level}")
        return levels

    def residuals(self, decision: Release | Any) -> Array:
        """Precision times squared distance, summed by level, shape ``(d,)``; `extra` with the leaves."""
        counts, rows = self.read(decision), self.queries.T
        parts = zip(counts, self.noisy, self.weights, strict=True)
        found = np.array(
            [float((((level @ rows) - noisy) ** 2).sum(axis=0) @ w) for level, noisy, w in parts]
        )
        for item in self.extra:
            off = counts[-1][item.leaves].sum(axis=0) @ rows - item.noisy
            found[-1] += float((off**2 * item.precision).sum())
        return found

    def _sketch(self, decision: Any, evaluation: Evaluation) -> Any:
        counts = decision.counts[-1]
        title = f"{len(counts)} units that add up to {counts.sum():,.6g} people"
        names = self.hierarchy.names[-1] if self.hierarchy.names else "unit"
        return Sketch(title, counts[:, 0] if counts.shape[1] == 1 else counts, names, "attribute", "people")

    def evaluate(self, decision: Release | Any) -> Evaluation:
        """Compute the residual, in all and by level, and the violations with the units' names.

        Parameters
        ----------
        decision : Release or array_like
            See `read`.

        Returns
        -------
        Evaluation
            The objective is the residual in all; metrics have ``"residual, NAME OF THE LEVEL"``.
        """
        counts, h = self.read(decision), self.hierarchy
        each = self.residuals(decision)
        violations: dict[str, float] = {}
        for level, values in enumerate(counts):
            if level < h.depth - 1:
                off = np.abs(h.up(level + 1, counts[level + 1]) - values)
                self._note(violations, "additivity", level, off)
            if self.nonnegative:
                self._note(violations, "sign", level, -np.minimum(values, 0.0))
            if self.integer:
                self._note(violations, "wholeness", level, np.abs(values - np.round(values)))
        self._note(violations, "zero", h.depth - 1, np.abs(counts[-1][self.zeros]), self.zeros)
        for item in self.invariants:
            unit, types = h.find(item.level, item.unit), list(item.types or range(self.types))
            off = abs(float(counts[item.level][unit, types].sum()) - item.value)
            if off > max(FEASIBILITY_TOLERANCE, SUM_ROUNDING * abs(item.value)):
                violations[f"invariant of unit {h.name(item.level, unit)}"] = off
        metrics = {f"residual, {h.level_name(level)}": float(v) for level, v in enumerate(each)}
        return Evaluation(float(each.sum()), violations, metrics)

    def _note(
        self, found: dict[str, float], kind: str, level: int, amount: Array, units: Array | None = None
    ) -> None:
        if not amount.size or amount.max() <= FEASIBILITY_TOLERANCE:
            return
        worst = amount.max(axis=1)
        for at in np.argsort(-worst)[:_MOST_NAMED]:
            if worst[at] > FEASIBILITY_TOLERANCE:
                unit = int(at if units is None else units[at])
                name = f"{self.hierarchy.level_name(level)}, unit {self.hierarchy.name(level, unit)}"
                found[f"{kind} ({name})"] = float(worst[at])

    def certify(self, decision: Any, method: str | None = None, **options: Any) -> Certificate:
        """Check a decision in exact arithmetic; see `Problem.certify`.

        A whole release of a separable problem in joint order is checked by prices of the flow, in O(n): see
        `tree_certificate`. Anything else goes through a formulation.
        """
        by_prices = self.integer and self.separable and self.order == "joint"
        if by_prices and method is None and decision is not None:
            from forcopt.models.census_release.tree_integer import tree_certificate

            return tree_certificate(self, self.read(decision))
        return super().certify(decision, method, **options)

    def exact_objective(self, counts: tuple[Array, ...]) -> Fraction:
        """The objective of whole counts as a fraction, floats being read as they are."""
        total = Fraction(0)
        for level, noisy, weights in zip(counts, self.noisy, self.weights, strict=True):
            values = level @ self.queries.T
            for q, w in enumerate(weights):
                pairs = zip(values[:, q], noisy[:, q], strict=True)
                off = [Fraction(int(v)) - Fraction(float(y)) for v, y in pairs]
                total += Fraction(float(w)) * sum((x * x for x in off), Fraction(0))
        return total
