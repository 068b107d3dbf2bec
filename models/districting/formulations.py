"""Integer programs for districting: two bases, and the ways to make districts connected.

The label base has a binary for each node and district, the root base (Hess et al. 1965) one for each node
and each root that a district may have. Labels are canonical: districts are numbered by their first node,
and a district's root is its first node, so that every plan is represented once; `Fixed` side constraints
give the labels themselves a meaning and switch that off, as does ``canonical=False``. Parity of all of them
is tested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.graphs.weighted import WeightedGraph
from forcopt.language.atoms import abs as absolute
from forcopt.language.atoms import maximum
from forcopt.language.constraint import Constraint
from forcopt.language.expression import Expression
from forcopt.language.model import Model
from forcopt.language.variable import Variable
from forcopt.loops.solution import ModelSolution
from forcopt.models.districting.districts import _FAR, MEASURES, SCORES, bounded
from forcopt.models.districting.plan import Plan
from forcopt.models.districting.problem import Districting
from forcopt.models.districting.side_constraints import Fixed
from forcopt.problem import Handles
from forcopt.problem.parts import RULES, Function, Measure, Meets, Rule

_LARGE = 2.0**24
"""Weights of a rule are scaled to at most this sum: solvers keep rows to 1e-6, far less than it."""


@dataclass(frozen=True)
class _Base:
    """The variables of a base: binaries, cut indicators, and the population of each column's district."""

    problem: Districting
    model: Model
    member: Variable
    cut: Expression
    population: Expression
    roots: Expression | None
    all_rows: bool

    def handles(self, **parts: Any) -> Handles:
        problem, member = self.problem, self.member

        def decision(result: ModelSolution) -> Plan:
            return Plan.from_labels(problem, result[member].argmax(axis=1))

        if self.roots is not None:
            parts["root"] = self.roots
        parts = {"member": member, "cut": self.cut, "population": self.population, **parts}
        return Handles(self.objective(), decision, self.start, **parts)

    def start(self, decision: Any) -> dict[Variable, Array]:
        """The binaries of a plan, whose labels and roots are canonical; centres are roots for the inertia."""
        problem = self.problem
        plan = Plan.from_labels(problem, problem.labels(decision))
        column = problem.as_enacted(plan.labels) if problem.keeps_numbers else plan.labels
        if self.roots is not None:
            column = np.empty(len(problem.nodes), np.int64)
            for part in (list(p) for p in plan.parts if p):
                inertia = problem.objective == "inertia"
                column[part] = part[problem.inertia[np.ix_(part, part)].sum(0).argmin() if inertia else 0]
        return {self.member: column[:, None] == np.arange(self.member.shape[1])}

    def objective(self) -> Expression:
        problem = self.problem
        if problem.goal is not None:
            return _total(self, problem.goal.function, problem.goal.sense == "min" and not self.all_rows)
        if problem.objective == "cut":
            return (self.cut * (problem.arrays.costs / problem.cost_scale)).sum()
        if problem.objective == "inertia":
            if self.roots is None:
                raise DeclarationError(
                    f"a formulation without roots takes no objective inertia; {problem.inertia_takers}"
                )
            return (self.member * problem.inertia).sum()
        if problem.objective == "splits":
            met = _units_met(self, problem.county, self.all_rows)
            return met.sum() - float(met.shape[0])
        if problem.objective == "least-change":
            return float(problem.total) - _kept(self)
        target = problem.means if self.roots is None else problem.mean * self.roots
        unit = max(1.0, problem.mean)  # large coefficients beside small ones mislead solvers
        worst: Expression = maximum(absolute((self.population - target) * (1 / unit)), axis=0)
        return worst * unit


def _rows(model: Model, name: str, rows: Any) -> None:
    """Add rows under a name in the problem's words: reasons for infeasibility name them."""
    model.subject_to(rows, name=model.unused_name(name))


def _cut_rows(model: Model, graph: WeightedGraph, member: Variable, exact: bool) -> Expression:
    """An edge is cut if its ends differ in any column, and with `exact` only then."""
    cut = model.add_columns("cut", (len(graph.edges),), 0.0, 1.0, implied_integer=True)
    u, v = graph.edges.T
    if len(graph.edges):
        _rows(model, "cut_if_apart", cut[:, None] >= member[u] - member[v])
        _rows(model, "cut_if_apart", cut[:, None] >= member[v] - member[u])
        if exact:
            _rows(model, "uncut_if_together", cut[:, None] <= 2 - member[u] - member[v])
    return cut


def _side_rows(base: _Base) -> _Base:
    problem, model, member = base.problem, base.model, base.member
    for group in problem.must_link:
        _rows(model, "must_link", member[list(group[1:])] == member[group[0]])
    for a, b in problem.cannot_link:
        _rows(model, "cannot_link", member[a] + member[b] <= 1)
    for rule in problem.all_rules:
        _rule_rows(base, rule)
    return base


def _rule_rows(base: _Base, rule: Rule) -> None:
    """Write a rule on districts; a column of a root that has no district satisfies it."""
    problem, model, roots = base.problem, base.model, base.roots
    rows = problem.integer_rows(rule) if rule.scope in ("each", "one") else None
    if roots is not None and (rule.scope == "one" or rule.scope == "plan"):
        raise DeclarationError(f"a formulation with roots does not take {RULES[rule.scope]} ({rule})")
    for row in rows or ():
        unit = min(1.0, _LARGE / max(1.0, float(np.abs(row.weights).sum())))
        sums, there = base.member.T @ (row.weights * unit), 1.0 if roots is None else roots
        sums = sums if rule.part is None else sums[rule.part]
        if row.low > -_FAR:
            _rows(model, "rule", sums >= row.low * unit * there)
        if row.high < _FAR:
            _rows(model, "rule", sums <= row.high * unit * there)
    if rows is not None:
        return
    function = rule.function
    falls = rule.lower == -np.inf and _grows(function)
    if falls and rule.scope == "sum" and function.only("cut", "cut_edges"):
        costs = {"cut": problem.arrays.costs / problem.cost_scale, "cut_edges": np.ones(len(base.cut))}
        weights = sum(2 * c * costs[node.name] for c, node in function.terms if isinstance(node, Measure))
        _rows(model, "rule", (base.cut * weights).sum() <= rule.upper)
        return
    if rule.scope == "sum":
        _rows(model, "rule", bounded(_total(base, function, rule.lower == -np.inf), rule))
        return

    def read(leaf: Measure | Meets) -> Expression:
        values = _measured(base, leaf.moved(lambda _: None), not falls)
        return values if leaf.part is None else values[leaf.part]

    empty = 0.0 if roots is None else float(function.value(lambda _: 0.0))
    value = function.value(read)
    if roots is not None:
        more = [max(0.0, end) for end in (rule.lower - empty, empty - rule.upper)]
        _rows(model, "rule", bounded(value + more[0] * (1 - roots), rule.replace(upper=np.inf)))
        _rows(model, "rule", bounded(value - more[1] * (1 - roots), rule.replace(lower=-np.inf)))
        return
    _rows(model, "rule", bounded(value if rule.part is None else value[rule.part], rule))


def _grows(function: Function) -> bool:
    """Whether a function does not fall with any measure in it."""
    return function.only(*MEASURES) and all(c > 0 for c, _ in function.terms)


def _total(base: _Base, function: Function, least: bool) -> Expression:
    """The sum of a function over districts; where the least is sought or bounded, it may be larger."""
    exact = not (least and _grows(function))
    columns, empty = base.member.shape[1], float(function.value(lambda _: 0.0))
    values: Expression = function.value(lambda leaf: _measured(base, leaf, exact)) + np.zeros(columns)
    return values.sum() - empty * (columns - base.problem.districts)


def _measured(base: _Base, leaf: Measure | Meets, exact: bool) -> Expression:
    """A measure of each column's district; without `exact` columns may hold more."""
    problem, member = base.problem, base.member
    if isinstance(leaf, Meets):
        return _met(base, leaf)
    if leaf.name == "total":
        return member.T @ problem.numbers(leaf.of)
    if leaf.name == "nodes":
        return member.sum(axis=0)
    if leaf.name == "area":
        return member.T @ problem.border[0]
    if leaf.name in SCORES:
        raise DeclarationError(
            f"an integer program does not take {leaf.name}, a ratio of areas and lengths; 'portfolio', "
            "'column-generation', 'set-partitioning', 'local-search' and 'recom' do"
        )
    if leaf.name == "units":
        return _units_met(base, leaf.of, exact).sum(axis=0)
    boundary = _boundary(base, exact)
    if leaf.name == "cut":
        return boundary.T @ (problem.arrays.costs / problem.cost_scale)
    if leaf.name == "cut_edges":
        return boundary.sum(axis=0)
    return member.T @ problem.border[1] + boundary.T @ problem.lengths


def _boundary(base: _Base, exact: bool) -> Expression:
    """Whether one end of each edge lies in each column's district."""
    model, member, edges = base.model, base.member, base.problem.arrays.edges
    u, v = edges.T
    shape = (len(edges), member.shape[1])
    boundary = model.add_columns("boundary", shape, 0.0, 1.0, implied_integer=True)
    _rows(model, "boundary", [boundary >= member[u] - member[v], boundary >= member[v] - member[u]])
    if exact:
        _rows(model, "boundary", [boundary <= member[u] + member[v], boundary <= 2 - member[u] - member[v]])
    return boundary


def _met(base: _Base, leaf: Meets) -> Expression:
    """Whether each column has a district that meets a bound."""
    problem, model = base.problem, base.model
    rows = problem.integer_rows(leaf)
    if rows is None or len(rows) != 1:
        raise DeclarationError(f"an integer program cannot count districts with {leaf}: it is not linear")
    (row,) = rows
    unit = min(1.0, _LARGE / max(1.0, float(np.abs(row.weights).sum())))
    weights, low = row.weights * unit, row.low * unit
    least, most = float(weights.clip(max=0).sum()), float(weights.clip(min=0).sum())
    met = model.variable(model.unused_name("meets"), base.member.shape[1], binary=True)
    sums, there = base.member.T @ weights, 1.0 if base.roots is None else base.roots
    _rows(model, "met", sums >= low + min(least - low, 0.0) * (1 - met))
    _rows(model, "not_met", sums <= low - unit + max(most - low + unit, 0.0) * (1 + met - there))
    if base.roots is not None:
        _rows(model, "only_districts_meet", met <= base.roots)
    return met


def _units_met(base: _Base, attribute: str, exact: bool) -> Expression:
    """Whether each county meets each column's district: one of its nodes lies in it."""
    model, member = base.model, base.member
    units = base.problem.units(attribute)
    count = int(units.max()) + 1
    meets = model.add_columns("meets", (count, member.shape[1]), 0.0, 1.0, implied_integer=True)
    _rows(model, "county_meets_district", meets[units] >= member)
    if exact:
        inside = sp.csr_array((np.ones(len(units)), (units, np.arange(len(units)))))
        _rows(model, "county_meets_district", meets <= inside @ member)
    return meets


def _kept(base: _Base) -> Expression:
    """The people who stay in their district: a column is the old district of its number, or is matched."""
    problem, model, member = base.problem, base.model, base.member
    old, people = problem.units(problem.enacted), problem.arrays.weights.astype(float)
    if problem.keeps_numbers:
        return (member[np.arange(len(old)), old] * people).sum()
    inside = sp.csr_array((people, (old, np.arange(len(old)))))
    shape = (inside.shape[0], problem.districts)
    match = model.variable(model.unused_name("match"), shape, binary=True)
    kept = model.add_columns("kept", shape, 0.0, float(problem.total))
    _rows(model, "one_match", [match.sum(axis=0) <= 1, match.sum(axis=1) <= 1])
    _rows(model, "kept", [kept <= inside @ member, kept <= inside.sum(axis=1)[:, None] * match])
    return kept.sum()


def _label_base(problem: Districting, model: Model, canonical: bool, all_rows: bool) -> _Base:
    g, k = problem.arrays, problem.districts
    n = g.size
    low, high = problem.windows.T.astype(float)
    fixed = [item for item in problem.side_constraints if isinstance(item, Fixed)]
    canonical = canonical and not fixed and not problem.unequal_seats and not problem.keeps_numbers
    upper = np.tri(n, k) if canonical else np.ones((n, k))
    member = model.variable(model.unused_name("member"), (n, k), upper=upper, binary=True)
    _rows(model, "every_node_in_one_district", member.sum(axis=1) == 1)
    if canonical and k > 1:
        # Node v may open district d only if an earlier node lies in district d - 1.
        _rows(model, "districts_by_first_node", member[:, 1:] <= np.tri(n, n, -1) @ member[:, :-1])
    for item in fixed:
        _rows(model, "fixed", member[problem.place[item.node], item.district] == 1)
    population: Expression = member.T @ g.weights.astype(float)
    _rows(model, "population_at_least", population >= low)
    _rows(model, "population_at_most", population <= high)
    _rows(model, "no_empty_district", member.sum(axis=0) >= 1)
    cut = _cut_rows(model, g, member, all_rows)
    return _side_rows(_Base(problem, model, member, cut, population, None, all_rows))


def _root_base(problem: Districting, model: Model, canonical: bool, all_rows: bool) -> _Base:
    problem.require(
        "a formulation with roots", "cut", "inertia", "deviation", "splits", "goal", takes=("each", "sum")
    )
    g, k = problem.arrays, problem.districts
    n = g.size
    low, high = problem.population_bounds
    # Roots are centres for the moment of inertia, so they must stay free.
    canonical = canonical and problem.objective != "inertia"
    upper = np.tri(n) if canonical else np.ones((n, n))
    upper[_too_far(g, high, canonical)] = 0
    member = model.variable(model.unused_name("member"), (n, n), upper=upper, binary=True)
    root = member[np.arange(n), np.arange(n)]
    _rows(model, "every_node_in_one_district", member.sum(axis=1) == 1)
    _rows(model, "only_roots_have_districts", member <= root)
    _rows(model, "number_of_districts", root.sum() == k)
    population: Expression = member.T @ g.weights.astype(float)
    _rows(model, "population_at_least", population >= low * root)
    _rows(model, "population_at_most", population <= high * root)
    cut = _cut_rows(model, g, member, all_rows)
    return _side_rows(_Base(problem, model, member, cut, population, root, all_rows))


def _too_far(graph: WeightedGraph, high: int, canonical: bool) -> Array:
    """``[i, j]``: no connected district with root j can hold node i: every path between weighs too much.

    With canonical roots a path may only use nodes from j on (the L-fixing of Validi and Buchanan).
    """
    out, nodes = np.ones((graph.size, graph.size), np.bool_), np.arange(graph.size)
    for j in graph:
        out[:, j] = _path_weights(graph, j, nodes >= (j if canonical else 0)) > high
    return out


def _path_weights(graph: WeightedGraph, source: int, allowed: Array) -> Array:
    """The least weight of a path from `source` to each node, with both ends; infinite if none is allowed."""
    tail, head = np.concatenate([graph.edges, graph.edges[:, ::-1]]).T
    ends = tail[allowed[tail] & allowed[head]], head[allowed[tail] & allowed[head]]
    network = sp.csr_array((graph.weights[ends[1]].astype(float), ends), shape=(graph.size, graph.size))
    return np.asarray(graph.weights[source] + sp.csgraph.dijkstra(network, indices=source))


def _arcs(graph: WeightedGraph) -> tuple[Array, sp.csr_array, sp.csr_array]:
    """Both orientations of every edge, and which arcs lead into and out of each node."""
    arcs = np.concatenate([graph.edges, graph.edges[:, ::-1]])
    ones, count = np.ones(len(arcs)), np.arange(len(arcs))
    into = sp.csr_array((ones, (arcs[:, 1], count)), shape=(graph.size, len(arcs)))
    out_of = sp.csr_array((ones, (arcs[:, 0], count)), shape=(graph.size, len(arcs)))
    return arcs, into, out_of


# -- formulations ------------------------------------------------------------------------------------------


@Districting.formulation(
    "flow",
    exact=True,
    cites="SCF of Validi and Buchanan (2022), one flow for the whole plan",
    rules=("each", "one", "sum", "plan"),
)
def flow(problem: Districting, model: Model, *, canonical: bool = True, all_rows: bool = False) -> Handles:
    """Labels, and one flow for the whole plan: k roots send a unit to every node over uncut edges.

    Each component of a district needs a root, and k districts share k roots. 2 m + n columns beside the
    labels.

    Parameters
    ----------
    canonical : bool, default True
        Number the districts by their first nodes, so that each plan is represented once.
    all_rows : bool, default False
        Also write the rows that the problem's own objective never presses against, so that ``cut`` tells just
        the cut edges in any model.

    Returns
    -------
    Handles
        The parts of the model and its objective; a decision is a plan.
    """
    base = _label_base(problem, model, canonical, all_rows)
    g, k = problem.arrays, problem.districts
    arcs, into, out_of = _arcs(g)
    n, m, most = g.size, len(g.edges), g.size - k
    root = model.variable(model.unused_name("root"), n, binary=True)
    _rows(model, "number_of_districts", root.sum() == k)
    if m == 0 or most == 0:
        _rows(model, "connected", root == 1)
        return base.handles(roots=root)
    sent = model.add_columns("flow", (len(arcs),), 0.0, most, implied_integer=True)
    _rows(model, "flow_within_districts", sent[:m] + sent[m:] <= most * (1 - base.cut))
    _rows(model, "connected", into @ sent - out_of @ sent >= 1 - (most + 1) * root)
    # A root that is the first of its district has no uncut edge to an earlier node.
    _rows(model, "root_is_first", root[g.edges[:, 1]] <= base.cut)
    return base.handles(roots=root)


@Districting.formulation(
    "flow-per-district",
    exact=True,
    cites="Hojny, Joormann, Lüthen and Schmidt (2021)",
    rank="published",
    rules=("each", "one", "sum", "plan"),
)
def flow_per_district(
    problem: Districting, model: Model, *, canonical: bool = True, all_rows: bool = False
) -> Handles:
    """Labels, and one flow for each district, from its first node to all the others.

    Parameters
    ----------
    canonical : bool, default True
        Number the districts by their first nodes, so that each plan is represented once.
    all_rows : bool, default False
        Also write the rows that the problem's own objective never presses against, so that ``cut`` tells just
        the cut edges in any model.

    Returns
    -------
    Handles
        The parts of the model and its objective; a decision is a plan.
    """
    base = _label_base(problem, model, canonical, all_rows)
    g, k = problem.arrays, problem.districts
    n = g.size
    arcs, into, out_of = _arcs(g)
    root = model.variable(model.unused_name("root"), (n, k), binary=True)
    _rows(model, "one_root_each", root.sum(axis=0) == 1)
    _rows(model, "root_in_district", root <= base.member)
    before = np.arange(n, dtype=float)[:, None]
    _rows(model, "root_is_first", np.tri(n, n, -1) @ base.member <= before * (1 - root))
    if len(arcs) == 0:
        _rows(model, "connected", base.member <= root)
        return base.handles(roots=root)
    sent = model.add_columns("flow", (len(arcs), k), 0.0, max(n - 1, 1), implied_integer=True)
    for ends in arcs.T:
        _rows(model, "flow_within_districts", sent <= (n - 1) * base.member[ends])
    _rows(model, "connected", into @ sent - out_of @ sent >= base.member - n * root)
    return base.handles(roots=root)


@Districting.formulation(
    "shirabe", exact=True, cites="Shirabe (2009); Oehrlein and Haunert (2017)", rules=("each", "sum")
)
def shirabe(problem: Districting, model: Model, *, canonical: bool = True, all_rows: bool = False) -> Handles:
    """Roots, and a flow from each root to the nodes of its district.

    Parameters
    ----------
    canonical : bool, default True
        Number the districts by their first nodes, so that each plan is represented once.
    all_rows : bool, default False
        Also write the rows that the problem's own objective never presses against, so that ``cut`` tells just
        the cut edges in any model.

    Returns
    -------
    Handles
        The parts of the model and its objective; a decision is a plan.
    """
    base = _root_base(problem, model, canonical, all_rows)
    g = problem.arrays
    n = g.size
    arcs, into, out_of = _arcs(g)
    others = ~np.eye(n, dtype=bool)
    if len(arcs) == 0:
        return base.handles()
    upper = np.full((len(arcs), n), float(max(n - 1, 1)))
    upper[arcs[:, 1][:, None] == np.arange(n)] = 0  # nothing flows back into a root
    sent = model.add_columns("flow", (len(arcs), n), 0.0, upper, implied_integer=True)
    arriving = into @ sent
    _rows(model, "connected", (arriving - out_of @ sent)[others] == base.member[others])
    _rows(model, "flow_within_districts", arriving <= (n - 1) * base.member)
    return base.handles()


@Districting.formulation(
    "labels-separators", exact=True, cites="Carvajal et al. (2013)", rules=("each", "one", "sum", "plan")
)
def labels_separators(
    problem: Districting, model: Model, *, canonical: bool = True, all_rows: bool = False
) -> Handles:
    """Labels, and cuts as they are needed: two nodes share a district only with a node of each separator.

    Parameters
    ----------
    canonical : bool, default True
        Number the districts by their first nodes, so that each plan is represented once.
    all_rows : bool, default False
        Also write the rows that the problem's own objective never presses against, so that ``cut`` tells just
        the cut edges in any model.

    Returns
    -------
    Handles
        The parts of the model and its objective; a decision is a plan.
    """
    base = _label_base(problem, model, canonical, all_rows)
    member, high = base.member, problem.population_bounds[1]
    weights = problem.arrays.weights

    def separate(value: Callable[[Expression], Array]) -> Iterator[Constraint]:
        x = value(member) > 0.5
        for d in range(problem.districts):
            nodes = np.flatnonzero(x[:, d]).tolist()
            if nodes:
                b = max(nodes, key=lambda v: int(weights[v]))
                for a, separator in _violated(problem.arrays, nodes, b, high):
                    yield member[a] + member[b] - member[separator].sum(axis=0) <= 1

    model.lazy(separate, name=model.unused_name("connected"))
    return base.handles()


@Districting.formulation(
    "relaxed",
    cites="Hess, Weaver, Siegfeldt, Whelan and Zitlau (1965)",
    rank="published",
    rules=("each", "one", "sum", "plan"),
)
def relaxed(problem: Districting, model: Model, *, canonical: bool = True, all_rows: bool = False) -> Handles:
    """The base without contiguity: its bound holds for every plan, its plan may fall apart.

    Parameters
    ----------
    canonical : bool, default True
        Number the districts by their first nodes, so that each plan is represented once.
    all_rows : bool, default False
        Also write the rows that the problem's own objective never presses against, so that ``cut`` tells just
        the cut edges in any model.

    Returns
    -------
    Handles
        The parts of the model and its objective; a decision is a plan.
    """
    base = _root_base if problem.objective == "inertia" else _label_base
    return base(problem, model, canonical, all_rows).handles()


def _violated(
    graph: WeightedGraph, nodes: Iterable[int], b: int, high: int
) -> Iterator[tuple[int, list[int]]]:
    """For each component of `nodes` without b: its heaviest node and a minimal separator of it from b."""
    every = np.arange(graph.size)
    for piece in graph.components(nodes):
        if b in piece:
            continue
        a = max(piece, key=lambda v: int(graph.weights[v]))
        border = {u for v in piece for u in graph.neighbours[v]} - set(piece)
        beyond = np.isfinite(_path_weights(graph, b, ~np.isin(every, list(border))))
        separator = sorted(u for u in border if beyond[list(graph.neighbours[u])].any())
        # Leave out nodes while every path from a to b that avoids the rest stays too heavy for a district.
        for u in list(separator):
            rest = [v for v in separator if v != u]
            if _path_weights(graph, a, ~np.isin(every, rest))[b] > high:
                separator = rest
        yield a, separator
