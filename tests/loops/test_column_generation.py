"""Column generation against closed forms and against the linear program with all columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.loops.column_generation import Column, Pricing, column_generation

WIDTHS, DEMAND, ROLL = [45, 36, 31, 14], [97, 610, 395, 211], 100  # Chvatal (1983), chapter 13


def knapsack(prices, widths, room):
    """The most valuable pattern, by dynamic programming over the room."""
    value, taken = np.zeros(room + 1), np.full(room + 1, -1)
    for w in range(1, room + 1):
        value[w] = value[w - 1]
        for i, width in enumerate(widths):
            if width <= w and value[w - width] + prices[i] > value[w] + 1e-12:
                value[w], taken[w] = value[w - width] + prices[i], i
    pattern, w = np.zeros(len(widths)), room
    while w > 0:
        if taken[w] < 0:
            w -= 1
        else:
            pattern[taken[w]] += 1
            w -= widths[taken[w]]
    return value[room], pattern


def cutting_stock(start=False):
    m = fo.Model("cutting stock")
    body = m.lift(np.zeros(4))
    if start:
        x = m.variable("x", 4, lower=0)
        body = np.array([2, 2, 3, 7]) * x
        m.minimize(x.sum())
    meet = m.subject_to(body >= DEMAND, name="meet")

    def price(dual):
        worth, pattern = knapsack(dual(meet), WIDTHS, ROLL)
        return Pricing([Column(1, {meet: pattern}, data=pattern)], dual.cost_weight - worth)

    return m, meet, price


@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("backend", ["highs", "highs:ipm"])
def test_cutting_stock(start, backend):
    m, meet, price = cutting_stock(start)
    found = column_generation(m, price, backend, total=1000, gap=1e-9)
    s = found.solution
    assert s.status == "optimal"
    assert s.objective == pytest.approx(452.25, abs=1e-6)
    assert s.bound == pytest.approx(452.25, abs=1e-5)
    used = found.used()
    cut = sum(value * column.data for value, column in used)
    if not start:
        assert sum(value for value, _ in used) == pytest.approx(452.25)
        np.testing.assert_array_less(np.array(DEMAND) - 1e-6, cut)
    assert all(column.data @ WIDTHS <= ROLL for _, column in used)
    np.testing.assert_allclose(s.dual(meet) @ DEMAND, 452.25, atol=1e-5)
    again = m.solve()  # the model holds the columns
    assert again.objective == pytest.approx(452.25)
    assert s[m.objective.stages[0].expression] == pytest.approx(452.25)


def larger(widths, demand):
    m = fo.Model("larger")
    x = m.variable("x", len(widths), lower=0)
    meet = m.subject_to(x >= demand)
    m.minimize(x.sum())

    def price(dual):
        worth, pattern = knapsack(dual(meet), widths, ROLL)
        return Pricing([Column(1, {meet: pattern})], dual.cost_weight - worth)

    return m, price


@pytest.mark.parametrize("backend", ["highs", "clarabel", "glop"])
def test_an_empty_packing_master(backend):
    from forcopt.loops.column_generation import Column, column_generation

    sets = [(1, 1, 0, 0), (0, 1, 1, 0), (0, 0, 1, 1), (1, 0, 0, 1), (1, 0, 1, 0)]
    m = fo.Model("packing")
    once = m.subject_to(m.lift([0.0] * 4) <= 1, name="once")
    m.maximize(m.lift(0.0))

    def price(dual):
        yield max((Column(1, {once: s}, data=s) for s in sets), key=dual.reduced_cost)

    found = column_generation(m, price, backend)
    assert found.solution.status is fo.Status.OPTIMAL
    assert found.solution.objective == pytest.approx(2)


def test_bounds_are_valid_and_close():
    m, _, price = cutting_stock(start=True)
    seen = []
    found = column_generation(m, price, total=1000, on_improvement=seen.append)
    bounds = [step.bound for step in seen]
    assert len(seen) == found.rounds == len(found.solution.trace)
    assert bounds == sorted(bounds)
    assert all(step.bound <= 452.25 + 1e-6 <= step.objective + 2e-6 for step in seen)
    rng = np.random.default_rng(5)
    widths, demand = rng.integers(20, 70, 15).tolist(), rng.integers(1, 50, 15).tolist()
    most = sum(demand)  # each roll holds a piece
    late, early = (column_generation(*larger(widths, demand), total=most, gap=g) for g in (1e-9, 0.1))
    assert late.solution.status == early.solution.status == "optimal"
    assert early.rounds < late.rounds
    assert late.solution.objective <= early.solution.objective <= 1.12 * late.solution.objective
    assert early.solution.bound <= late.solution.objective + 1e-6
    m, _, price = cutting_stock(start=True)
    assert (
        column_generation(m, price).solution.trace[0].bound == -np.inf
    )  # nothing is known of the sum of columns


def random_lp(seed, maximize):
    """Master rows over a few own variables and many columns; the full model beside it."""
    rng = np.random.default_rng(seed)
    rows, own, many = 5, 3, 60
    a = np.where(rng.random((rows, many)) < 0.5, rng.integers(-3, 6, (rows, many)), 0).astype(float)
    b = rng.integers(-2, 4, (rows, own)).astype(float)
    sign = -1.0 if maximize else 1.0
    cost = sign * rng.integers(1, 20, many)
    own_cost = sign * rng.integers(1, 20, own)
    upper = np.where(rng.random(many) < 0.3, 0.5, 4.0)
    inside = rng.random(many) * upper
    value = a @ inside + b @ np.ones(own)
    low = np.where(rng.random(rows) < 0.6, value - 0.5, -np.inf)
    high = np.where(np.isfinite(low) & (rng.random(rows) < 0.5), np.inf, value + 0.5)

    def declare(columns):
        m = fo.Model("lp")
        y = m.variable("y", own, lower=0, upper=2)
        x = m.variable("x", columns, lower=0, upper=upper[:columns])
        body = (b @ y + a[:, :columns] @ x) if columns else b @ y
        total = m.subject_to(body.between(low, high), name="body")
        spread = m.subject_to(fo.maximum(y, axis=0) - y.sum() <= 1, name="spread")  # a bridge's columns, too
        objective = own_cost @ y + (cost[:columns] @ x if columns else 0.0)
        (m.maximize if maximize else m.minimize)(objective + 3)
        return m, total, spread

    return declare, a, cost, upper


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_against_the_full_program(seed, maximize, tell):
    declare, a, cost, upper = random_lp(seed, maximize)
    full, _, _ = declare(len(cost))
    right = full.solve()
    m, body, _ = declare(0)
    left = dict(enumerate(Column(cost[j], {body: a[:, j]}, upper[j], data=j) for j in range(len(cost))))
    sense = -1.0 if maximize else 1.0

    def price(dual):
        reduced = {j: sense * dual.reduced_cost(c) for j, c in left.items()}
        best = sorted(reduced, key=reduced.__getitem__)[:2]
        columns = [left.pop(j) for j in best if reduced[j] < 0]
        least = min(reduced.values(), default=0.0)
        return Pricing(columns, sense * least) if tell else columns

    found = column_generation(m, price, total=float(upper.sum()))
    assert right.status == "optimal"
    s = found.solution
    assert s.status == "optimal"
    assert s.objective == pytest.approx(right.objective, abs=1e-5)
    assert m.solve().objective == pytest.approx(right.objective, abs=1e-5)
    np.testing.assert_allclose(s.bound, right.objective, atol=2e-5)
    for step in s.trace:
        assert sense * step.bound <= sense * right.objective + 1e-6 <= sense * step.objective + 2e-6
    assert (s.trace[0].bound > -np.inf) or not tell or found.rounds == 1 or maximize


def cover(sets, n, costs=None):
    """Exact cover by subsets of range(n), given only to the oracle."""
    m = fo.Model("cover")
    rows = m.subject_to(m.lift(np.zeros(n)) == 1, name="cover")
    columns = [
        Column(1.0 if costs is None else costs[k], {rows: np.isin(np.arange(n), s)}, data=s)
        for k, s in enumerate(sets)
    ]

    def price(dual):
        yield min(columns, key=dual.reduced_cost)

    return m, rows, price


def test_infeasible_over_all_columns():
    m, _, price = cover([(0, 1), (1, 2), (0, 2)], 4)  # nothing covers 3
    found = column_generation(m, price)
    assert found.solution.status == "infeasible"
    assert found.solution.point is None
    assert "no column" in found.solution.message
    m, rows, price = cover([(0, 1), (1, 2), (0, 2)], 3)
    found = column_generation(m, price)  # half of each
    assert found.solution.objective == pytest.approx(1.5)
    np.testing.assert_allclose(found.solution.dual(rows), 0.5)
    np.testing.assert_allclose(found.solution[found.variable], 0.5)


def test_a_heuristic_oracle_proves_nothing():
    m, _, _ = cover([], 3)
    found = column_generation(m, lambda dual: Pricing([], -10.0))
    assert found.solution.status == "limit"
    m = fo.Model()
    x = m.variable("x", lower=0)
    m.subject_to(x >= 2)
    m.minimize(3 * x)
    found = column_generation(m, lambda dual: Pricing([], -1.0), total=4)
    assert (found.solution.status, found.solution.objective, found.solution.bound) == ("feasible", 6.0, 2.0)


def test_infeasibility_from_a_bound():
    m, _, _ = cover([], 3)
    found = column_generation(m, lambda dual: Pricing([], -1.0), total=2)  # 3 missing, 2 columns of 1 unit
    assert found.solution.status == "infeasible"


def test_unbounded():
    m = fo.Model()
    x = m.variable("x", lower=0)
    row = m.subject_to(x <= 1)
    m.maximize(x)
    found = column_generation(m, lambda dual: [Column(1, {row: -1})])
    assert found.solution.status == "unbounded"


def test_limits():
    m, _, price = cutting_stock()
    found = column_generation(m, price, rounds=2)
    assert found.solution.status == "limit"
    m, _, price = cutting_stock(start=True)
    found = column_generation(m, price, rounds=2)
    assert found.solution.status == "feasible"
    assert found.rounds == 2
    assert found.solution.objective > 452.25
    m, _, price = cutting_stock(start=True)
    found = column_generation(m, price, time_limit=0.0)
    assert found.solution.status in ("feasible", "limit")
    m, _, price = cutting_stock(start=True)
    found = column_generation(m, price, on_improvement=lambda step: True)
    assert (found.solution.status, found.rounds) == ("feasible", 1)


def test_further_columns_join_later():
    m, _, price = cutting_stock(start=True)
    first = column_generation(m, price, rounds=2)
    second = column_generation(m, price)
    assert second.solution.objective == pytest.approx(452.25)
    assert [v.name for v in m.variables] == ["x", first.variable.name, second.variable.name]


def test_refusals():
    m, meet, price = cutting_stock(start=True)
    _, elsewhere, _ = cutting_stock()
    with pytest.raises(fo.DeclarationError, match="not in model"):
        column_generation(m, lambda dual: [Column(1, {elsewhere: 1})])
    with pytest.raises(fo.DeclarationError, match=r"shape \(3,\)"):
        Column(1, {meet: [1, 2, 3]})
    with pytest.raises(fo.DeclarationError, match="it must be finite"):
        Column(np.nan, {meet: 1})
    with pytest.raises(fo.DeclarationError, match="not a column"):
        column_generation(m, lambda dual: [3])
    with pytest.raises(fo.DeclarationError, match="bounds the reduced costs"):
        column_generation(m, lambda dual: Pricing([Column(-5, {meet: 1})], 0.0))
    with pytest.raises(fo.DeclarationError, match="total"):
        column_generation(m, price, total=-1.0)
    assert [v.name for v in m.variables] == ["x"]  # a failure leaves the model alone
    whole = fo.Model()
    n = whole.variable("n", integer=True, lower=0)
    whole.minimize(n)
    with pytest.raises(fo.UnsupportedError, match="linear"):
        column_generation(whole, lambda dual: [])


def one_column(gain):
    """A row that a variable of cost 1 fills, and an oracle that always knows a column cheaper by `gain`."""
    m = fo.Model("threshold")
    x = m.variable("x", lower=0)
    fill = m.subject_to(x >= 1, name="fill")
    m.minimize(x.sum())
    asked = []

    def price(dual):
        asked.append(dual.cost_weight)
        return [Column(1 - gain, {fill: 1})]

    return m, price, asked


def test_a_column_enters_beyond_a_tenth_of_the_backend_s_accuracy_and_none_within():
    """HiGHS keeps its rows to 1e-6: a reduced cost of 2e-7 is a gain, one of 5e-8 may be rounding."""
    m, price, asked = one_column(2e-7)
    found = column_generation(m, price, gap=1e-12, rounds=9)
    assert len(found.columns) == 1 and found.solution.status == "optimal" and len(asked) == 2
    assert found.solution.objective == pytest.approx(1 - 2e-7, abs=1e-9)
    m, price, asked = one_column(5e-8)
    found = column_generation(m, price, gap=1e-12, rounds=9)
    assert not found.columns and found.solution.status == "optimal" and len(asked) == 1


def test_a_proved_bound_below_rounding_leaves_the_optimum_open():
    """An oracle without columns that only bounds reduced costs by -1e-3 proves no optimum."""
    m, _, _ = one_column(0.0)
    found = column_generation(m, lambda dual: Pricing([], -1e-3), total=2.0, gap=1e-12)
    assert found.solution.status == "feasible"
    assert found.solution.bound == pytest.approx(1 - 2e-3, abs=1e-9)


def test_activity_that_is_missing_beyond_the_accuracy_is_infeasible():
    """Of a side of 100, a lack of 1e-3 is beyond the accuracy of 1e-4, and one of 1e-5 within."""
    for lack, status in ((1e-3, "infeasible"), (1e-5, "optimal")):
        m = fo.Model("lack")
        x = m.variable("x", lower=0, upper=100 - lack)
        m.subject_to(x >= 100)
        m.minimize(x.sum())
        assert column_generation(m, lambda dual: Pricing([], 0.0)).solution.status == status
