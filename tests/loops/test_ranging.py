"""Sensitivity ranges, against solving again with other costs and right-hand sides."""

import numpy as np
import pytest

import forcopt as fo


def build(seed, cost=None, side=None):
    rng = np.random.default_rng(seed)
    n, rows = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    a = rng.uniform(0.5, 4, (rows, n))
    b, c = rng.uniform(5, 20, rows), rng.uniform(1, 5, n)
    sense = rng.random() < 0.5
    m = fo.Model()
    x = m.variable("x", n, lower=0, upper=9)
    if sense:
        row = m.subject_to(a @ x <= (b if side is None else side))
        m.maximize((c if cost is None else cost) @ x)
    else:
        row = m.subject_to(a @ x >= (b if side is None else side))
        m.minimize((c if cost is None else cost) @ x)
    return m, x, row, b, c


@pytest.mark.parametrize("seed", range(25))
def test_within_the_ranges_nothing_changes_and_beyond_it_does(seed):
    m, x, row, b, c = build(seed)
    s, ranges = m.solve("highs"), m.ranging()
    price = s.dual(row)
    for j, (low, high) in enumerate(zip(*ranges.cost(x), strict=True)):
        for end in (max(low, c[j] - 50), min(high, c[j] + 50)):
            moved = c.copy()
            moved[j] = c[j] + 0.99 * (end - c[j])
            other = build(seed, cost=moved)
            assert other[0].solve("highs").objective == pytest.approx(float(moved @ s[x]), rel=1e-7)
    for i, (low, high) in enumerate(zip(*ranges.right_hand_side(row), strict=True)):
        for end in (max(low, 0.0), min(high, 100.0)):
            moved = b.copy()
            moved[i] = b[i] + 0.99 * (end - b[i])
            if price[i]:
                value = build(seed, side=moved)[0].solve("highs").objective
                assert value == pytest.approx(s.objective + price[i] * (moved[i] - b[i]), rel=1e-7)


def test_refusals():
    m = fo.Model()
    x = m.variable("x", integer=True, lower=0)
    m.minimize(x)
    with pytest.raises(fo.ForcoptError):
        m.ranging()
    m = fo.Model()
    x = m.variable("x", lower=0)
    m.maximize(x)
    with pytest.raises(fo.DeclarationError, match="the status is unbounded"):
        m.ranging()


def test_an_entry_of_a_variable_has_no_range_of_its_own():
    m = fo.Model()
    x = m.variable("x", 2, lower=0)
    m.subject_to(x[0] + 2 * x[1] >= 4)
    m.minimize(x.sum())
    with pytest.raises(fo.DeclarationError, match="cost takes a whole variable, not <expression"):
        m.ranging().cost(x[0])
    with pytest.raises(fo.DeclarationError, match="reduced_cost takes a whole variable, not <expression"):
        m.solve().reduced_cost(x[0])


def test_a_row_that_is_not_tight_ranges_from_its_activity():
    m = fo.Model()
    x = m.variable("x", 2, lower=0)
    time = m.subject_to(x[0] + 2 * x[1] <= 8)
    m.subject_to(3 * x[0] + x[1] <= 9)
    slack, loose = m.subject_to(x[0] + x[1] <= 100), m.subject_to(x[0] >= -7)
    both = m.subject_to((x[0] - x[1]).between(-20, 4))
    m.maximize(2 * x[0] + 3 * x[1])
    ends = m.ranging().right_hand_side
    assert ends(slack) == (pytest.approx(5), np.inf)
    assert ends(loose) == (-np.inf, pytest.approx(2))
    assert ends(both) == (pytest.approx(-1), np.inf)  # 4 is nearer than -20
    assert ends(time) == (pytest.approx(3), pytest.approx(18))


@pytest.mark.parametrize("seed", range(12))
def test_the_price_holds_over_the_range_of_every_row_of_degenerate_programs(seed):
    """Rows of small whole numbers, some twice and some equations, so that many rows meet in a vertex."""
    rng = np.random.default_rng(seed)
    a = rng.integers(-2, 3, (4, 3)).astype(float)
    a[3] = a[0]
    point = rng.integers(0, 3, 3)
    b = a @ point + rng.integers(0, 2, 4)
    b[1], b[3] = a[1] @ point, b[0]

    def solved(sides):
        m = fo.Model()
        x = m.variable("x", 3, lower=0, upper=4)
        rows = [m.subject_to(a[i] @ x == sides[i] if i == 1 else a[i] @ x <= sides[i]) for i in range(4)]
        m.minimize(cost @ x)
        return m, rows

    cost = rng.integers(-3, 4, 3).astype(float)
    m, rows = solved(b)
    s, ranges = m.solve("highs:simplex"), m.ranging()
    for i, row in enumerate(rows):
        low, high = (float(end) for end in ranges.right_hand_side(row))
        assert low - 1e-9 <= b[i] <= high + 1e-9
        for end in (max(low, b[i] - 50), min(high, b[i] + 50)):
            moved = b.copy()
            moved[i] = b[i] + 0.999 * (end - b[i])
            if moved[i] != b[i]:
                value = solved(moved)[0].solve("highs").objective
                assert value == pytest.approx(s.objective + float(s.dual(row)) * (moved[i] - b[i]), abs=1e-6)


def test_rows_and_costs_without_entries_have_ranges():
    m = fo.Model()
    x = m.variable("x", 3, lower=[0, 0, 2], upper=[1, 5, 2])
    row = m.subject_to(0 * x[0] <= 15)
    m.maximize(3 * x[0] - x[1] + x[2])
    ranges = m.ranging()
    assert [float(end) for end in ranges.right_hand_side(row)] == [0, np.inf]
    low, high = ranges.cost(x)
    assert low.tolist() == [0, -np.inf, -np.inf] and high.tolist() == [np.inf, 0, np.inf]


def test_rows_that_need_another_unit_are_refused():
    m = fo.Model()
    x = m.variable("x", 2, lower=0)
    m.subject_to(1e-10 * (x[0] + 2 * x[1]) <= 8e-10, 3 * x[0] + x[1] <= 9)
    m.maximize(2 * x[0] + 3 * x[1])
    with pytest.raises(fo.DeclarationError, match="another unit"):
        m.ranging()
