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
