"""Rows of a user's own on districts, against a program of scipy over sets that a plain search lists."""

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

import forcopt as fo
from forcopt.data import grid
from forcopt.fairness import DemographicParity, GroupRates
from forcopt.models import Districting

SIDE, DISTRICTS = 5, 4


def city():
    rng = np.random.default_rng(1)
    n = SIDE * SIDE
    a, b = rng.integers(10, 60, n), rng.integers(10, 60, n)
    a[: n // 3] += 40
    b[-(n // 3) :] += 40
    g = grid(SIDE, SIDE, population=a + b)
    for v in g:
        g.nodes[v].update(a=int(a[v]), b=int(b[v]))
    return Districting(graph=g, districts=DISTRICTS, tolerance=0.05), a, b


def connected_sets(graph, weight, low, high):
    """All connected sets of a weight, each grown once from its first node."""
    found = set()
    for root in graph:
        stack = [frozenset([root])]
        seen = set(stack)
        while stack:
            now = stack.pop()
            if low <= sum(weight[v] for v in now) <= high:
                found.add(now)
            for v in {u for w in now for u in graph[w]} - now:
                more = now | {v}
                if v > root and more not in seen and sum(weight[u] for u in more) <= high:
                    seen.add(more)
                    stack.append(more)
    return sorted(found, key=sorted)


def best_of_scipy(p, sets, rows):
    """The least cut of districts among the sets, with further rows ``(values, lower, upper)``."""
    cover = np.array([[v in s for s in sets] for v in p.graph], dtype=float)
    cut = np.array([sum((u in s) != (v in s) for u, v in p.graph.edges) for s in sets]) / 2
    demands = [
        LinearConstraint(cover, 1, 1),
        *(LinearConstraint(r[None, :], low, high) for r, low, high in rows),
    ]
    result = milp(cut, constraints=demands, integrality=np.ones(len(sets)), bounds=Bounds(0, 1))
    return round(result.fun) if result.success else None


@pytest.fixture(scope="module")
def listed():
    p, a, b = city()
    low, high = p.population_bounds
    return p, a, b, connected_sets(p.graph, a + b, low, high)


@pytest.mark.parametrize("limit", [0.05, 0.1, 0.2])
def test_each_district_holds_nearly_equal_shares_of_both_groups(listed, limit):
    p, a, b, sets = listed
    kept = [s for s in sets if abs(a[list(s)].sum() / a.sum() - b[list(s)].sum() / b.sum()) <= limit]
    ones = [(np.ones(len(kept)), DISTRICTS, DISTRICTS)]
    best = best_of_scipy(p, kept, ones)
    districts = p.parts().districts
    gap = districts.total("a") / a.sum() - districts.total("b") / b.sum()
    q = p.subject_to(fo.abs(gap) <= limit)
    for method in ("portfolio", "column-generation", "set-partitioning"):
        s = q.solve(method)
        assert (s.objective if s.decision is not None else None) == best, (method, s)
        assert s.status == ("infeasible" if best is None else "optimal")


@pytest.mark.parametrize("wanted", [1, 2, 3])
def test_the_plan_has_a_number_of_districts_with_a_majority(listed, wanted):
    p, a, b, sets = listed
    majority = np.array([2 * a[list(s)].sum() >= (a + b)[list(s)].sum() for s in sets], dtype=float)
    rows = [(np.ones(len(sets)), DISTRICTS, DISTRICTS), (majority, wanted, wanted)]
    best = best_of_scipy(p, sets, rows)
    plan = p.parts()
    q = p.subject_to(plan.meets(plan.districts.share("a", "population") >= 0.5).sum() == wanted)
    for method in ("portfolio", "column-generation"):
        s = q.solve(method)
        assert (s.objective if s.decision is not None else None) == best, (method, s)


def test_cp_sat_takes_the_level_of_a_notion_inside_districting():
    rng = np.random.default_rng(1)
    a, b = rng.integers(10, 60, 9), rng.integers(10, 60, 9)
    p = Districting(graph=grid(3, 3, population=a + b), districts=3, tolerance=0.35)
    found = []
    for backend in ("cp-sat", "highs"):
        m = fo.Model("parity in a district")
        plan = p.declare(m)
        near = np.stack([a, b]) @ plan.member[:, 0]
        rates = GroupRates(fo.stack([0 * near, near], axis=1), np.array([[0, a.sum()], [0, b.sum()]]))
        m.subject_to(DemographicParity(0.05).rows(rates))
        m.minimize(plan.objective)
        s = m.solve(backend)
        assert s.status == "optimal"
        inside = np.array([plan.decision(s).labels == 0]) @ np.stack([a / a.sum(), b / b.sum()]).T
        assert np.ptp(inside) <= 0.05 + 1e-9
        found.append(s.objective)
    assert found[0] == pytest.approx(found[1])


def test_cp_sat_bounds_the_error_of_costs_that_are_no_short_decimals():
    m = fo.Model()
    x = m.variable("x", 4, binary=True)
    m.subject_to(x.sum() == 2)
    costs = np.array([2**0.5, np.pi, 3**0.5, np.e])
    m.minimize(costs @ x)
    s = m.solve("cp-sat")
    best = np.sort(costs)[:2].sum()
    assert s.objective == pytest.approx(best, abs=1e-12) and s.bound <= best <= s.bound + 1e-9
