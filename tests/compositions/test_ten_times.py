"""Twelve compositions at about ten times the size of a toy, each against an oracle that shares no code."""

from fractions import Fraction
from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, brentq, linprog, milp
from sklearn.linear_model import LogisticRegression

import forcopt as fo
from forcopt.data import Hierarchy, grid
from forcopt.fairness import SELECTION, DemographicParity, EqualizedOdds, GroupRates, Notion, PairwiseFairness
from forcopt.learning import Finite, Halfspaces, Learner
from forcopt.models import (
    CountingQueries,
    Districting,
    FairAuction,
    FairClassification,
    FairPostprocessing,
    LexifairClassification,
    LexifairRegression,
    PrivateMechanism,
    QuerySchedule,
    RobustBayes,
    StrategicClassification,
)
from forcopt.models.adaptive_queries import DecayingCorrelation
from forcopt.models.census_release import measure
from forcopt.models.districting import Fixed
from forcopt.models.fair_auctions import OrderedValueStability
from forcopt.models.lexifair import groups_of
from forcopt.privacy import Categories, Ledger, PrivacyBudget, PureDP, RandomizedResponse, Schema, Table
from forcopt.privacy.ledger import BudgetSpentError


def leximax_of_scipy(losses, rows, limits, equal, totals, bounds, base=0.0):
    """The sorted losses ``losses @ x + base``, largest first, by linear programs of scipy.

    A loss whose row has a price cannot fall below the level, so that its level is held from then on.
    """
    k, n = losses.shape
    base, level = np.zeros(k) + base, np.full(k, np.nan)
    one = np.c_[equal, np.zeros(len(equal))]
    while (open_ := np.isnan(level)).any():
        tops = np.c_[losses, -open_.astype(float)]
        left = np.vstack([tops, np.c_[rows, np.zeros(len(rows))]])
        right = np.r_[np.where(open_, 0.0, level + 1e-9) - base, limits]
        r = linprog(np.r_[np.zeros(n), 1.0], left, right, one, totals, [*bounds, (None, None)])
        assert r.status == 0, r.message
        priced = open_ & (-r.ineqlin.marginals[:k] > 1e-6)
        level[priced] = r.fun
    return np.sort(level)[::-1]


# --- districts: a strip of 45 by 2 nodes in ten districts ---

LENGTH, DISTRICTS = 45, 10


@pytest.fixture(scope="module")
def strip():
    """The strip, both groups, and all connected sets of the right population as columns of a table."""
    rng = np.random.default_rng(1)
    n = 2 * LENGTH
    a, b = rng.integers(10, 60, n), rng.integers(10, 60, n)
    g = grid(LENGTH, 2, population=a + b)
    for v in g:
        g.nodes[v].update(a=int(a[v]), b=int(b[v]))
    for _, _, data in g.edges(data=True):
        data["cost"] = int(rng.integers(1, 10))
    p = Districting(graph=g, districts=DISTRICTS, tolerance=0.1)
    near = [sum(1 << u for u in g[v]) for v in range(n)]
    sets = connected_sets(near, (a + b).tolist(), *p.population_bounds)
    member = np.array([[s >> v & 1 for v in range(n)] for s in sets], dtype=np.int64)
    ends, costs = np.array(g.edges), np.array([d["cost"] for *_, d in g.edges(data=True)])
    cut = (member[:, ends[:, 0]] != member[:, ends[:, 1]]) @ costs
    return p, a, b, sets, member, cut


def connected_sets(near, weight, low, high):
    """All connected sets as bits, each grown once from its least node: every neighbour joins or stays out."""
    found = []
    for root in range(len(near)):
        banned = (1 << root) - 1
        stack = [(1 << root, near[root] & ~banned, banned, weight[root])]
        while stack:
            inside, edge, out, held = stack.pop()
            if not edge:
                found += [inside] if held >= low else []
                continue
            bit = edge & -edge
            v = bit.bit_length() - 1
            stack.append((inside, edge ^ bit, out | bit, held))
            if held + weight[v] <= high:
                new = inside | bit
                stack.append((new, (edge ^ bit) | near[v] & ~out & ~new, out, held + weight[v]))
    return found


def best_cover(sets, costs, counted=None, wanted=None):
    """Twice the least cut of a plan: the first free node of the strip picks the next district.

    With `counted`, of the plans with `wanted` such districts.
    """
    starting = {}
    counted = np.zeros(len(sets), dtype=int) if counted is None else counted.astype(int)
    for s, cost, one in zip(sets, costs.tolist(), counted.tolist(), strict=True):
        starting.setdefault(s & -s, []).append((s, cost, one))
    full, now = (1 << 2 * LENGTH) - 1, {(0, 0): 0}
    for _ in range(DISTRICTS):
        new = {}
        for (covered, number), total in now.items():
            for s, cost, one in starting.get(~covered & (covered + 1), ()):
                if not s & covered:
                    key = (covered | s, number + one)
                    new[key] = min(new.get(key, np.inf), total + cost)
        now = new
    kept = [v for (covered, number), v in now.items() if covered == full and wanted in (None, number)]
    return min(kept, default=None)


def near_rates(part, a, b):
    """The share of either group that lives in a district, as rates of two groups."""
    near = fo.stack([part.total("a"), part.total("b")])
    return GroupRates(fo.stack([0 * near, near], axis=1), np.array([[0, a.sum()], [0, b.sum()]]))


@pytest.mark.parametrize(("home", "gap"), [(0, 0.008), (20, 0.008), (0, 0.002)])
def test_demographic_parity_inside_districting(strip, home, gap):
    """Members of both groups live about equally often in the district of one town."""
    p, a, b, sets, member, cut = strip
    keep = (member[:, home] == 0) | (np.abs(member @ (a / a.sum() - b / b.sum())) <= gap)
    best = best_cover([s for s, k in zip(sets, keep, strict=True) if k], cut[keep])
    q = p.replace(side_constraints=[Fixed(p.nodes[home], 0)])
    s = q.subject_to(DemographicParity(gap).rows(near_rates(q.parts().district(0), a, b))).solve()
    if best is None:
        assert s.status == "infeasible"
        return
    assert s.status == "optimal" and 2 * s.objective == best > best_cover(sets, cut)


def test_nearly_equal_shares_in_every_district(strip):
    p, a, b, sets, member, cut = strip
    keep = np.abs(member @ (a / a.sum() - b / b.sum())) <= 0.018
    best = best_cover([s for s, k in zip(sets, keep, strict=True) if k], cut[keep])
    every = p.parts().districts
    s = p.subject_to(fo.abs(every.total("a") / a.sum() - every.total("b") / b.sum()) <= 0.018).solve()
    assert s.status == "optimal" and 2 * s.objective == best > best_cover(sets, cut)


@pytest.mark.parametrize("wanted", [1, 4])
def test_a_plan_wide_number_of_districts_with_a_majority(strip, wanted):
    p, a, b, sets, member, cut = strip
    best = best_cover(sets, cut, 2 * member @ a >= member @ (a + b), wanted)
    plan = p.parts()
    s = p.subject_to(plan.meets(plan.districts.share("a", "population") >= 0.5).sum() == wanted).solve()
    assert s.status == "optimal" and 2 * s.objective == best > best_cover(sets, cut)


def test_two_nested_districtings():
    """Four districts inside two, around a lake of 40 towns: a plan is a choice of four roads to cut."""
    rng, n = np.random.default_rng(4), 40
    people, fine_cost, coarse_cost = rng.integers(20, 90, n), *rng.integers(1, 20, (2, n))
    rings = []
    for costs in (fine_cost, coarse_cost):
        g = nx.cycle_graph(n)  # road i leads from i to i + 1
        nx.set_node_attributes(g, dict(enumerate(people.tolist())), "population")
        nx.set_edge_attributes(g, {(i, (i + 1) % n): int(c) for i, c in enumerate(costs)}, "cost")
        rings.append(g)
    fine = Districting(rings[0], districts=4, tolerance=0.3)
    coarse = Districting(rings[1], districts=2, tolerance=0.1)
    m = fo.Model("nested")
    inner = fine.declare(m, "labels-separators", canonical=False)
    outer = coarse.declare(m, "labels-separators", canonical=False)
    m.subject_to(outer.member[:, 0] == inner.member[:, 0] + inner.member[:, 1])
    m.minimize(inner.objective + 3 * outer.objective)
    s = m.solve("scip")
    ends = np.array(list(combinations(range(n), 4)))  # the last town of each district
    upto = np.cumsum(people)[ends]
    size = np.diff(upto, axis=1)
    size = np.c_[size, people.sum() - size.sum(axis=1)]  # the last district goes round
    (low, high), (least, most) = fine.population_bounds, coarse.population_bounds
    allowed = ((size >= low) & (size <= high)).all(axis=1)
    best = np.inf
    for first in (0, 1):  # the district with which the first joins is the next, or the last
        pair = size[:, first] + size[:, first + 1]
        pair = np.c_[pair, people.sum() - pair]
        ok = allowed & ((pair >= least) & (pair <= most)).all(axis=1)
        paid = fine_cost[ends].sum(axis=1) + 3 * coarse_cost[ends[:, [first, (first + 2) % 4]]].sum(axis=1)
        best = min([best, *paid[ok]])
    assert s.status == "optimal" and s.objective == pytest.approx(best)
    assert fine.evaluate(inner.decision(s)).feasible and coarse.evaluate(outer.decision(s)).feasible


# --- leximin and leximax ---


def test_leximin_over_cones_of_ones_own():
    """Four depots, each with a norm of its own, and one budget serve 40 agents of falling returns."""
    rng, n, depots = np.random.default_rng(6), 40, 4
    scale, of = rng.uniform(1, 4, n), np.arange(40) % depots
    norms, budget = np.array([1.0, 2.0, 4.0, 6.0]), 24.0
    m = fo.Model("own cones")
    x, u = m.variable("x", n, lower=0), m.variable("u", n)
    half = n // 2
    m.subject_to(x.sum() <= budget, u[:half] <= fo.log(1 + scale[:half] * x[:half]))
    for i in range(half, n):  # u^2 <= scale x
        m.subject_to(fo.norm(fo.stack([2 * u[i], scale[i] * x[i] - 1])) <= scale[i] * x[i] + 1)
    for d in range(depots):
        m.subject_to(fo.norm(x[of == d]) <= norms[d])
    m.leximin(u)
    s = m.solve("clarabel")

    def needs(level):
        return np.where(np.arange(n) < half, np.expm1(level) / scale, level**2 / scale)

    # progressive filling: all rise together, a depot stops at its norm, and the budget stops the others
    level, held = np.zeros(n), np.zeros(depots, dtype=bool)
    while not held.all():
        tops = [
            brentq(lambda t, d=d: np.linalg.norm(needs(t)[of == d]) - norms[d], 0, 20) for d in range(depots)
        ]
        free = ~held[of]
        spent = needs(level)[~free].sum()
        shared = brentq(lambda t, f=free, u=spent: u + needs(t)[f].sum() - budget, 0, 20)
        top = min(shared, *(t for t, h in zip(tops, held, strict=True) if not h))
        level[free] = top
        held |= np.array(tops) <= top + 1e-12 if top < shared else True
    assert len(np.unique(level.round(6))) >= 3
    assert np.sort(s[u]) == pytest.approx(np.sort(level), abs=1e-4)


def test_leximax_errors_with_elicited_pairs():
    """Mixtures of 60 classifiers on 400 records of 6 groups, under a budget for 200 elicited pairs."""
    rng, n, k = np.random.default_rng(7), 400, 6
    groups, labels = rng.integers(0, k, n), rng.integers(0, 2, n)
    table = (rng.normal(size=(60, n)) + 0.8 * labels + 0.1 * groups > 0.5).astype(int)
    pairs = rng.integers(0, n, (200, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    elicited = PairwiseFairness(pairs, gamma=0.1, budget=0.07)
    classes = Finite(table)
    p = LexifairClassification(labels=labels, hypotheses=classes, constraint=elicited, **groups_of(g=groups))
    better = table[:, pairs[:, 0]] - table[:, pairs[:, 1]]
    m = fo.Model("pairs")
    parts = p.declare(m)
    m.leximax(parts.losses)
    s = m.solve()
    wrong = np.array([(table != labels)[:, groups == g].mean(axis=1) for g in range(k)])
    q = len(pairs)
    rows = np.vstack([np.c_[better.T, -np.eye(q)], np.r_[np.zeros(60), np.full(q, 1 / q)][None]])
    equal = np.r_[np.ones(60), np.zeros(q)][None]
    left = np.c_[wrong, np.zeros((k, q))], rows, np.r_[np.full(q, 0.1), 0.07], equal, [1.0]
    best = leximax_of_scipy(*left, [(0, None)] * (60 + q))
    assert s.levels == pytest.approx(best, abs=1e-6)
    assert (
        best[0]
        > leximax_of_scipy(left[0], rows, np.r_[np.full(q, 0.1), 1.0], equal, [1.0], [(0, None)] * (60 + q))[
            0
        ]
    )


def test_leximin_exposure_with_stability():
    """The ad that is seen least is seen as often as can be, while similar users see similar ads."""
    rng, users, ads = np.random.default_rng(8), 40, 5
    values = rng.lognormal(size=(4, ads))[np.arange(users) % 4] * np.exp(0.3 * rng.normal(size=(users, ads)))
    p = FairAuction(values=values, slots=[1.0], constraint=OrderedValueStability(0.5), fill=False)
    m = fo.Model("exposure")
    parts = p.declare(m, "lp")
    welfare = (parts.marginals[:, :, 0] * values).sum()
    m.subject_to(welfare >= 0.55 * values.max(axis=1).sum())
    m.leximin(parts.marginals.sum(axis=(0, 2)))
    s = m.solve()
    quotient = values[:, None] / values[None]
    apart = 1 - np.maximum(quotient, 1 / quotient).max(axis=2) ** -1.0  # 1 - lambda^(-2 ell)
    place = np.arange(users * ads).reshape(users, ads)
    one = np.eye(users * ads)
    rows, limits = (
        [one[place].sum(axis=1), -0.0 + -values.ravel()[None]],
        [np.ones(users), [-0.55 * values.max(axis=1).sum()]],
    )
    for i, j in product(range(users), repeat=2):
        if i != j:
            rows.append(one[place[i]] - one[place[j]])
            limits.append(np.full(ads, apart[i, j]))
    seen = one[place].sum(axis=0)
    no = np.zeros((0, users * ads))
    best = -leximax_of_scipy(
        -seen, sp.csr_array(np.vstack(rows)).toarray(), np.concatenate(limits), no, [], [(0, 1)] * users * ads
    )
    assert s.levels == pytest.approx(best, abs=1e-5)


def test_a_leximax_private_mechanism():
    """Counts from 0 to 30: the loss of the worst count, then of the second, under pure privacy."""
    n, epsilon = 31, 0.4
    p = PrivateMechanism.counts(n - 1, 1, epsilon=epsilon)
    m = fo.Model("mechanism")
    parts = p.declare(m)
    loss = np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(float)
    losses = (parts.matrix * loss).sum(axis=1)
    m.leximax(losses)
    s = m.solve()
    matrix = np.arange(n * n).reshape(n, n)
    one = sp.eye_array(n * n, format="csr")
    near = [(i, j) for i in range(n) for j in (i - 1, i + 1) if 0 <= j < n]
    rows = sp.vstack([np.exp(-epsilon) * one[matrix[i]] - one[matrix[j]] for i, j in near]).toarray()
    sums = sp.kron(sp.eye_array(n), np.ones((1, n))).toarray()
    by = sp.block_diag([row[None] for row in loss]).toarray()
    best = leximax_of_scipy(by, rows, np.zeros(len(rows)), sums, np.ones(n), [(0, 1)] * n * n)
    assert s.levels == pytest.approx(best, abs=1e-5)


def test_a_foreign_mps_file_with_leximin(tmp_path):
    """A transport of 20 depots to 30 towns, written by HiGHS; the towns' supplies are compared."""
    highspy = pytest.importorskip("highspy")
    rng, depots, towns = np.random.default_rng(9), 20, 30
    room, need, linked = (
        rng.integers(5, 40, depots),
        rng.integers(5, 40, towns),
        rng.random((depots, towns)) < 0.15,
    )
    arcs = np.argwhere(linked)
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    columns = [h.addVariable(lb=0, ub=30, name=f"ship_{i}_{j}") for i, j in arcs]
    for i in range(depots):
        kept = [c for c, (d, _) in zip(columns, arcs, strict=True) if d == i]
        if kept:
            h.addConstr(sum(kept) <= int(room[i]))
    h.writeModel(str(tmp_path / "foreign.mps"))
    m = fo.read(tmp_path / "foreign.mps")
    ships = [m[f"ship_{i}_{j}"] for i, j in arcs]
    supply = [fo.sum(x for x, (_, j) in zip(ships, arcs, strict=True) if j == town) for town in range(towns)]
    m.leximin(fo.stack(supply) / need)
    s = m.solve()
    into = np.eye(towns)[arcs[:, 1]].T / need[:, None]
    none = np.zeros((0, len(arcs)))
    best = -leximax_of_scipy(-into, np.eye(depots)[arcs[:, 0]].T, room, none, [], [(0, 30)] * len(arcs))
    assert s.levels == pytest.approx(best, abs=1e-6) and len(np.unique(best.round(6))) >= 5


# --- what is whole, listed or seen only by itself ---


def test_robust_classification_with_a_further_row():
    """A vertex cover of the conflicts of 70 points that loses equally many of two kinds of points."""
    rng, n, radius = np.random.default_rng(10), 70, 0.35
    points, labels, kind = rng.uniform(0, 4, (n, 2)), rng.integers(0, 2, n), rng.integers(0, 2, n)
    masses = np.zeros((n, 2))
    masses[np.arange(n), labels] = rng.integers(1, 9, n)
    masses /= masses.sum()
    p = RobustBayes(points, masses, radius)
    m = fo.Model("equal losses")
    parts = p.declare(m, "lp")
    m.subject_to(np.where(kind == 0, 1, -1) @ parts.lost == 3)
    m.minimize(parts.objective)
    s = m.solve()
    near = [
        (i, j)
        for i, j in combinations(range(n), 2)
        if labels[i] != labels[j] and np.linalg.norm(points[i] - points[j]) < 2 * radius
    ]
    cover = np.zeros((len(near), n))
    for row, (i, j) in zip(cover, near, strict=True):
        row[[i, j]] = 1
    rows = [LinearConstraint(cover, lb=1), LinearConstraint(np.where(kind == 0, 1, -1)[None], 3, 3)]
    best = milp(masses.max(axis=1), constraints=rows, integrality=np.ones(n), bounds=Bounds(0, 1))
    assert p.evaluate(parts.decision(s)).objective == pytest.approx(best.fun, abs=1e-9)


def test_a_schedule_of_queries_with_a_further_row():
    """90 queries on 100 attributes, of which every window pays four, under a limit of the user's."""
    rng, size, q, width = np.random.default_rng(11), 100, 90, 2
    first = rng.integers(1, size - width, q)
    queries = np.column_stack([first, first + rng.integers(0, width + 1, q)])
    weights, effort = rng.integers(1, 20, q), rng.integers(1, 9, q)
    p = QuerySchedule(DecayingCorrelation(size, 0.5, width), queries.tolist(), weights.tolist(), costs=0.25)
    m = fo.Model("effort")
    parts = p.declare(m, "lp")
    m.subject_to(effort @ parts.answered <= 97)
    m.maximize(parts.objective)
    s = m.solve()
    window = np.arange(1, size + 1)[:, None]
    pays = (queries[:, 0] - 2 * width <= window) & (window <= queries[:, 1] + 2 * width)
    rows = [LinearConstraint(pays.astype(float), ub=4), LinearConstraint(effort[None], ub=97)]
    best = milp(-weights, constraints=rows, integrality=np.ones(q), bounds=Bounds(0, 1))
    assert p.evaluate(parts.decision(s)).objective == pytest.approx(-best.fun)


def outcomes(agents, criteria, edges):
    """Which agents are accepted and which improve, for every set of open criteria."""
    opened = np.array(list(product([False, True], repeat=criteria)))
    accepted = np.zeros((len(opened), agents), dtype=bool)
    improved = accepted.copy()
    for agent, criterion, _, improves in sorted(edges, key=lambda e: e[2]):
        now = opened[:, criterion] & ~accepted[:, agent]
        accepted[:, agent] |= now
        improved[:, agent] |= now & improves
    return opened, accepted, improved


def draw_edges(rng, agents, criteria):
    """Each agent reaches some criteria, at distinct costs."""
    return [
        (agent, criterion, cost, bool(rng.random() < 0.6))
        for agent in range(agents)
        for cost, criterion in enumerate(rng.permutation(criteria)[: rng.integers(2, 6)].tolist(), start=1)
    ]


def test_strategic_agents_against_a_fair_classifier():
    """Criteria for 120 agents who improve or game, accepted about equally often in both groups."""
    rng, agents, criteria = np.random.default_rng(14), 120, 10
    edges, groups = draw_edges(rng, agents, criteria), rng.integers(0, 2, agents)
    p = StrategicClassification(
        agents=agents,
        criteria=criteria,
        edges=edges,
        value=9,
        groups=groups.tolist(),
        max_false_positives=None,
    )
    m = fo.Model("publish fairly")
    parts = p.declare(m)
    of_group = np.eye(2)[groups].T
    rates = GroupRates(
        fo.stack([0 * parts.true_positives, of_group @ parts.accepted], axis=1),
        np.c_[[0, 0], of_group.sum(axis=1)],
    )
    m.subject_to(DemographicParity(0.01).rows(rates), parts.is_open.sum() <= 4)
    m.maximize(2 * parts.improved.sum() - parts.accepted.sum())
    s = m.solve()
    opened, accepted, improved = outcomes(agents, criteria, edges)
    share = accepted @ of_group.T / of_group.sum(axis=1)
    value = 2 * improved.sum(axis=1) - accepted.sum(axis=1)
    few = opened.sum(axis=1) <= 4
    fair = few & (np.ptp(share, axis=1) <= 0.01)
    assert s.status == "optimal" and s.objective == pytest.approx(value[fair].max())
    assert value[fair].max() < value[few].max()


def test_criteria_with_a_further_row():
    """Three false positives among 60 agents, and a budget for criteria: the relaxation alone is not whole."""
    rng, agents, criteria = np.random.default_rng(13), 60, 12
    edges, price = draw_edges(rng, agents, criteria), rng.integers(2, 9, criteria)
    p = StrategicClassification(agents=agents, criteria=criteria, edges=edges, value=9, max_false_positives=3)
    m = fo.Model("budget")
    parts = p.declare(m, "lp")
    m.subject_to(price @ parts.is_open <= 17)
    m.maximize(parts.objective)
    found = parts.decision(m.solve())
    opened, accepted, improved = outcomes(agents, criteria, edges)
    kept = ((accepted & ~improved).sum(axis=1) <= 3) & (opened @ price <= 17)
    assert p.evaluate(found).feasible and price[list(found)].sum() <= 17
    assert p.evaluate(found).objective == improved.sum(axis=1)[kept].max()


class LeastSelected(Notion):
    """A notion of one's own: the selection rates sum to at least `total`, and lie within a circle."""

    total: float
    circle: float | None = None

    @property
    def rates(self):
        return (SELECTION,)

    def rows(self, rates):
        r = rates.rate(SELECTION)
        near = [] if self.circle is None else [fo.sum_squares(r - 0.5) <= self.circle]
        return [r.sum() >= self.total, *near]

    def disparity(self, rates):
        return {"selection": float(np.sum(rates.rate(SELECTION)))}

    def violation(self, rates):
        r = rates.rate(SELECTION)
        outside = 0.0 if self.circle is None else float(((r - 0.5) ** 2).sum()) - self.circle
        return {"selection": max(self.total - float(r.sum()), outside, 0.0)}


def halfspaces_of(points):
    """What each halfplane holds of points in the plane."""
    apart = (points[:, None] - points[None]).reshape(-1, 2)
    angles = np.unique((np.arctan2(apart[:, 1], apart[:, 0])[(apart != 0).any(axis=1)] + np.pi / 2).round(9))
    between = (
        angles + np.roll(angles, -1) + np.where(np.arange(len(angles)) == len(angles) - 1, 2 * np.pi, 0)
    ) / 2
    found = set()
    for angle in between:
        order = np.argsort(points @ [np.cos(angle), np.sin(angle)])
        held = np.zeros(len(points), dtype=np.int8)
        found.add(held.tobytes())
        for v in order:
            held[v] = 1
            found.add(held.tobytes())
    return np.array([np.frombuffer(f, dtype=np.int8) for f in sorted(found)])


def test_a_fair_mixture_of_halfspaces_and_of_a_learners_fits():
    """Equalized odds on 400 records at 36 points, against a linear program over all halfplanes."""
    rng, n = np.random.default_rng(15), 400
    group, X = rng.integers(0, 2, n), rng.integers(0, 6, (n, 2)).astype(float)
    labels = (X[:, 0] + 0.5 * X[:, 1] + 2 * group + rng.normal(size=n) * 1.5 > 4).astype(int)
    odds = EqualizedOdds(0.05)
    p = FairClassification(X, labels, group, odds, hypotheses=Halfspaces())
    s = p.solve()
    points, at = np.unique(X, axis=0, return_inverse=True)
    table = halfspaces_of(points)[:, at].astype(float)
    means = np.array(
        [
            (((group == a) & (labels == y)) / ((group == a) & (labels == y)).sum())
            for a in (0, 1)
            for y in (0, 1)
        ]
    )
    gaps = table @ (means[:2] - means[2:]).T
    errors = np.abs(table - labels).mean(axis=1)
    one = np.ones((1, len(table)))
    best = linprog(errors, np.vstack([gaps.T, -gaps.T]), np.full(4, 0.05), one, [1.0])
    free = errors.min()
    assert s.status == "optimal" and s.objective == pytest.approx(best.fun, abs=1e-7)
    assert s.objective > free + 0.005
    shares = np.array([(group == a) / (group == a).sum() for a in (0, 1)])
    left = np.vstack([gaps.T, -gaps.T, -(table @ shares.T).sum(axis=1)])
    more = linprog(errors, left, np.r_[np.full(4, 0.05), -1.8], one, [1.0])
    own = p.replace(constraint=odds & LeastSelected(total=1.8)).solve()
    assert own.status == "optimal" and own.objective == pytest.approx(more.fun, abs=1e-7)
    assert more.fun > best.fun + 0.001
    learned = p.replace(hypotheses=Learner(LogisticRegression())).solve()
    chance = learned.decision.probability(X)
    assert learned.status == "approximate"
    assert np.abs(means[:2] @ chance - means[2:] @ chance).max() <= 0.05 + 1e-6
    assert best.fun - 1e-7 <= np.abs(chance - labels).mean() <= best.fun + 0.03


def test_a_curved_notion_of_ones_own():
    """Mixtures of 80 classifiers whose selection rates lie within a circle, against a program of cvxpy."""
    cp = pytest.importorskip("cvxpy")
    rng, n, k = np.random.default_rng(18), 400, 4
    group, labels = rng.integers(0, k, n), rng.integers(0, 2, n)
    table = (rng.normal(size=(80, n)) + labels + 0.2 * group > 0.9).astype(int)
    own = LeastSelected(total=1.8, circle=0.012)
    p = FairClassification(np.arange(n)[:, None], labels, group, own, hypotheses=Finite(table))
    s = p.solve("lp", backend="clarabel")
    x = cp.Variable(80, nonneg=True)
    rates = np.array([table[:, group == a].mean(axis=1) for a in range(k)])
    rows = [cp.sum(x) == 1, cp.sum(rates @ x) >= 1.8, cp.sum_squares(rates @ x - 0.5) <= 0.012]
    errors = (table != labels).mean(axis=1)
    best = cp.Problem(cp.Minimize(errors @ x), rows).solve(solver="CLARABEL")
    assert s.objective == pytest.approx(best, abs=1e-6) and s.evaluation.feasible
    assert best > cp.Problem(cp.Minimize(errors @ x), rows[:2]).solve(solver="CLARABEL") + 0.001
    with pytest.raises(fo.DeclarationError, match="curved in the rates, and only 'lp' takes those"):
        p.solve("column-generation")


def test_leximax_of_logistic_losses_with_a_row_on_coefficients():
    """A score for 400 records of five groups that weighs two features alike, against programs of cvxpy."""
    cp = pytest.importorskip("cvxpy")
    rng, n, k, d = np.random.default_rng(16), 400, 5, 4
    groups, X = rng.integers(0, k, n), np.c_[rng.normal(size=(n, d - 1)), np.ones(n)]
    labels = (X[:, 0] - X[:, 1] + 0.6 * (groups - 2) * X[:, 2] + rng.normal(size=n) > 0).astype(int)
    p = LexifairRegression(features=X, labels=labels, loss="logistic", radius=3.0, **groups_of(g=groups))
    m = fo.Model("logistic")
    parts = p.declare(m)
    m.subject_to(parts.coefficients[0] + parts.coefficients[1] == 0)
    m.leximax(parts.losses)
    s = m.solve("clarabel")
    theta, top = cp.Variable(d), cp.Variable()
    signed = (2 * labels - 1)[:, None] * X
    losses = [cp.sum(cp.logistic(-signed[groups == g] @ theta)) / (groups == g).sum() for g in range(k)]
    level = [None] * k
    while None in level:
        rows = [losses[g] <= (top if level[g] is None else level[g] + 1e-8) for g in range(k)]
        cp.Problem(cp.Minimize(top), [*rows, cp.norm(theta) <= 3, theta[0] + theta[1] == 0]).solve(
            solver="CLARABEL"
        )
        level = [
            float(top.value) if h is None and r.dual_value > 1e-4 else h
            for h, r in zip(level, rows, strict=True)
        ]
    assert s[parts.losses] == pytest.approx([losses[g].value for g in range(k)], abs=2e-4)
    assert np.sort(s[parts.losses]) == pytest.approx(np.sort(level), abs=2e-4)


def test_leximax_errors_of_groups_seen_through_a_channel():
    """2000 records report one of three groups by randomized response."""
    rng, n, k, channel = np.random.default_rng(17), 2000, 3, RandomizedResponse(1.5)
    true, labels = rng.integers(0, k, n), rng.integers(0, 2, n)
    table = (rng.normal(size=(40, n)) + 0.8 * labels + 0.15 * true > 0.5).astype(int)
    reports = channel.privatize(true, k, seed=1)
    p = LexifairClassification(
        labels=labels, hypotheses=Finite(table), **groups_of(g=channel.observe(reports))
    )
    m = fo.Model("channel")
    parts = p.declare(m)
    m.subject_to(parts.losses[0] <= 0.33)  # the first of the groups
    m.leximax(parts.losses)
    s = m.solve()
    told = np.exp(1.5) / (k - 1 + np.exp(1.5))
    law = np.full((k, k), (1 - told) / (k - 1)) + np.eye(k) * (told - (1 - told) / (k - 1))
    sums = np.array([(table != labels)[:, reports == z].sum(axis=1) for z in range(k)])
    sizes = np.array([(reports == z).sum() for z in range(k)])
    wrong = np.linalg.solve(law, sums) / np.linalg.solve(law, sizes)[:, None]
    left = wrong, wrong[:1], [0.33], np.ones((1, 40)), [1.0]
    best = leximax_of_scipy(*left, [(0, None)] * 40)
    assert s.levels == pytest.approx(best, abs=1e-6)


def test_one_ledger_through_a_pipeline_of_22_releases():
    """A census, counts, and fair post-processing share a budget; what it does not hold is refused."""
    account, spent = Ledger(PureDP(9.0)), Fraction(0)
    towns = Schema(town=Categories("a", "b", "c"))
    counts = Table({"town": list("abc") * 30}, towns, neighbours="substitute").group_by("town").count()
    tree = Hierarchy(parents=([0, 0], [0, 0, 1]))
    queries = CountingQueries(queries=3, epsilon=0.25, whole=True)
    noisy = counts >> queries.mechanism(queries.solve("laplace").decision)
    cells = 100 * np.array([[[36, 4], [9, 5]], [[4, 16], [6, 20]]])
    odds = FairPostprocessing(counts=cells, constraint=EqualizedOdds(0.1), privacy=PrivacyBudget(0.5))
    steps = [
        (Fraction(1, 2), lambda: measure(counts, epsilon=[0.125, 0.125, 0.25], tree=tree, ledger=account)),
        (Fraction(1, 4), lambda: noisy.release(account)),
        (Fraction(1, 2), lambda: odds.solve(ledger=account)),
    ]
    for i in range(21):
        cost, release = steps[i % 3]
        release()
        spent += cost
        assert account.remaining() == pytest.approx(float(9 - spent), abs=1e-12)
    assert len(account.entries) == 21
    for _, release in steps[::2]:
        with pytest.raises(BudgetSpentError):
            release()
    noisy.release(account)
    assert account.remaining() == pytest.approx(0.0, abs=1e-12)
