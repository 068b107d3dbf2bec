"""Districts of least total cost, where the cost of a district is any function of its nodes.

`everything` lists all districts and chooses among them by an integer program. `priced` lists far fewer. It is
column generation with costs that are bounded from below by lines, sums over edges of the boundary and over
nodes, which the lists of cheap districts take.

Let P be the perimeter of a district, A its area, and x = P**2 / (4 pi A). For every t, x is at least
(2 t P - t**2 A) / (4 pi), with equality at t = P / A. The scores -1/x and sqrt(x) are concave in x, so on
an interval they are at least their chord. So each interval of x has a line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Trace
from forcopt.errors import DeclarationError
from forcopt.graphs.cut_bound import most_within
from forcopt.graphs.weighted import WeightedGraph
from forcopt.language.atom import atom_named
from forcopt.models.districting.column_generation import _MOST, _Run, _Stopped, ended
from forcopt.models.districting.cycle_districts import CycleDistricts
from forcopt.models.districting.districts import SCORES, reader, score
from forcopt.models.districting.plan import Plan, feasible_start
from forcopt.models.districting.problem import Districting
from forcopt.models.districting.tolerances import ROUNDING
from forcopt.problem import Outcome
from forcopt.problem.parts import RULES, Applied, Measure, Meets

_UNIT = 2.0**-24
"""Costs are multiples of twice this unit."""

_STEP, _CLASSES = 1.25, 20
"""The growth of the intervals of x, which begin at 1, and their number; the last one has no end."""

_INVERSE = Measure(name="inverse_polsby_popper")

_FINE = 2e-3
"""The first target exceeds the bound by at least this share of the best plan's cost."""

_USUAL = 3.0
"""The x of a usual district."""


class _Line(NamedTuple):
    """Districts with `least` <= x < `most` cost at least ``fixed + edges(boundary) + nodes(S)``."""

    least: float
    most: float
    lowest: float
    """No such district costs less."""
    fixed: float
    edges: Array
    nodes: Array


def _lines(problem: Districting) -> tuple[list[_Line], float]:
    """Lines below the costs of districts, none if a term has no line; and a bound on all costs."""
    goal, g = problem.goal, problem.arrays
    assert goal is not None
    fixed, edges, nodes, scores = goal.function.constant, np.zeros(len(g.edges)), np.zeros(g.size), []
    for factor, node in goal.function.terms:
        if isinstance(node, Applied) and factor > 0 and atom_named(node.atom).nonnegative:
            continue
        if isinstance(node, Meets):
            fixed += min(factor, 0.0)
        elif isinstance(node, Measure) and node.name in SCORES:
            scores.append((factor, node.name))
        elif isinstance(node, Measure) and node.name in ("total", "nodes", "area"):
            nodes = nodes + factor * reader(problem, np.eye(g.size, dtype=np.bool_))(node)
        elif factor < 0 or not isinstance(node, Measure):
            return [], 0.0
        elif node.name == "perimeter":
            nodes, edges = nodes + factor * problem.border[1], edges + factor * problem.lengths
        elif node.name != "units":
            edges = edges + factor * (g.costs / problem.cost_scale if node.name == "cut" else 1.0)
    lowest = fixed + nodes.clip(max=0).sum() + sum(factor for factor, _ in scores)
    if not scores:
        return [_Line(0.0, np.inf, lowest, fixed, edges, nodes)] if edges.any() else [], lowest
    ((factor, name), *more), (area, outer, *_), found = scores, problem.border, []
    if more or (factor < 0) != (name == "polsby_popper"):
        return [], 0.0
    ends = _STEP ** np.arange(1 if name == "inverse_polsby_popper" else _CLASSES)
    cost = factor * score(name, np.ones(len(ends)), np.sqrt(4 * np.pi * ends))
    last = 0.0 if len(ends) > 1 else factor
    slopes = np.append(np.diff(cost) / np.diff(ends), last)
    ends = np.append(ends, np.inf)
    for least, most, low, slope in zip(ends[:-1], ends[1:], cost, slopes, strict=True):
        usual = np.sqrt(least * most) if most < np.inf else _USUAL
        t = np.sqrt(4 * np.pi * usual * problem.districts / area.sum())
        length, size = slope * 2 * t / (4 * np.pi), slope * t * t / (4 * np.pi)
        more_nodes = length * outer - size * area
        line = (fixed + low - slope * least, edges + length * problem.lengths, nodes + more_nodes)
        found.append(_Line(float(least), float(most), lowest + float(low - cost[0]), *line))
    return found, lowest


class _Additive(_Run):
    """A run with the costs of the objective, shifted to be positive: whole, and even, in units of `_UNIT`."""

    fine = _FINE

    def __init__(self, problem: Districting, plan: Plan | None, trace: Trace) -> None:
        super().__init__(problem, None, "highs", trace)
        planar, self.cycles, self.plain, self.smooth = self.cycles is not None, None, False, True
        self.many = 1
        (lines, lowest), arrays = _lines(problem), problem.arrays
        self.lines, self.shift, self.beat = [], -lowest, 2**60
        # Whether no district's cost is below 0: known once all are listed, or none has more area than a disc.
        self.bounded = bool(lines) and not lines[0].least
        for line in lines:
            costs = np.floor(line.edges / _UNIT).astype(np.int64)
            graph = WeightedGraph(arrays.weights, arrays.edges, costs).reordered(self.order.tolist())
            bounds = (*problem.population_bounds, problem.districts)
            self.lines.append((line, graph, CycleDistricts(graph, *bounds) if planar else None))
        if plan is not None:
            self.plan, self.beat = plan, self.paid(plan)
            self.finest = max(1.0, self.fine * self.beat)

    @property
    def bound(self) -> float:
        """On the objective."""
        if not self.bounded:
            return -np.inf
        return float((self.low / 2 - ROUNDING) * 2 * _UNIT - self.problem.districts * self.shift)

    def costs(self, sets: Array) -> Array:
        """The costs of districts."""
        values = self.problem.values(sets[:, self.place]) + self.shift
        return 2 * np.floor(values / (2 * _UNIT)).astype(np.int64)

    def paid(self, plan: Plan) -> int:
        """The cost of a plan."""
        at = np.arange(self.problem.districts)[:, None]
        return int(self.costs(plan.labels[self.order] == at).sum())

    @property
    def value(self) -> float:
        """The objective of the plan."""
        return np.inf if self.plan is None else self.problem.evaluate(self.plan).objective

    def _all_districts(
        self, threshold: float, prizes: Array | None, branches: float
    ) -> Iterator[tuple[Array, Array]]:
        if not self.lines:
            for sets, paid in self.listed_on(self.graph, None, np.inf, None, branches):
                yield sets, 0 * paid
        free = np.zeros(self.graph.size) if prizes is None else prizes
        for line, graph, cycles in self.lines:
            room = threshold + 4 - (line.fixed + self.shift) / _UNIT
            high = self.problem.population_bounds[1]
            if (line.lowest + self.shift) / _UNIT > threshold + 4 + most_within(free, graph.weights, high):
                continue
            gains = free - line.nodes[self.order] / _UNIT
            for sets, _ in self.listed_on(graph, cycles, room, gains, branches):
                costs = self.costs(sets)
                near = costs - sets @ free <= threshold + ROUNDING
                if len(self.lines) > 1:
                    at = reader(self.problem, sets[:, self.place])(_INVERSE)
                    near &= (at >= line.least) & (at < line.most)
                yield sets[near], costs[near]
            if self.cut_short:
                return

    def refuse_areas(self) -> None:
        """Refuse areas larger than a disc, whose scores are above the lines."""
        problem = self.problem
        rounder = _Additive(problem.replace(objective="inverse-polsby-popper"), None, self.trace)
        for sets, _ in rounder._all_districts(-4.0, None, np.inf):
            for district in sets:
                nodes = [problem.nodes[v] for v in self.order[district][:3].tolist()]
                raise DeclarationError(
                    f"the district of {nodes} and others has more area than a disc of its "
                    "perimeter; areas and borders must be measured in one projection"
                )
        self.bounded = True

    def solve(self) -> None:
        """Price, if there are lines and a plan to beat; else list all districts."""
        if self.plan is not None:
            self.note()
        if self.lines:
            self.seek()
        if self.lines and not self.bounded:
            self.refuse_areas()
        if self.lines and self.plan is not None:
            super().solve()
            return
        self.lines, found = [], [np.zeros((0, self.graph.size), np.bool_)]
        for sets, _ in self.districts(np.inf):
            found.append(sets)
            if sum(map(len, found)) > _MOST:
                raise _Stopped(f"there are more than {_MOST} districts to choose from")
        sets = np.concatenate(found)
        if len(sets):
            self.shift = -float(self.problem.values(sets[:, self.place]).min())
            self.bounded = True
            costs = self.costs(sets)
            if self.plan is not None:
                self.beat = self.paid(self.plan)
            self.best_of(sets, costs, min(self.beat - 2, int(costs.max()) * self.problem.districts))


def additive(problem: Districting, start: Plan | None, trace: Trace, seed: Any, priced: bool) -> Outcome:
    """Choose districts for an objective that is a sum over districts, see the module.

    Parameters
    ----------
    problem : Districting
        With such an objective, to be minimized.
    start : Plan or None
        A feasible plan; only better ones are sought.
    trace : Trace
        Of the run.
    seed : int or numpy.random.Generator or None
        Of the local search for a first plan.
    priced : bool
        Whether districts are priced; else all are listed.

    Returns
    -------
    Outcome
        Costs are told apart to 1e-7 of the objective's unit.

    Raises
    ------
    DeclarationError
        For rules that tie districts together, and if a district has more area than a disc of its perimeter.
    """
    for rule in problem.all_rules:
        if rule.scope == "plan":
            raise DeclarationError(
                f"a list of districts does not take {RULES['plan']} ({rule}); integer programs on labels do, "
                f"if they take {problem.goal}, and 'local-search' does"
            )
    run = _Additive(problem, feasible_start(problem, start), trace)
    run.seed = seed
    if not priced:
        run.lines = []
    return ended(run)
