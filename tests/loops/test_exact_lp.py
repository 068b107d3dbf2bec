"""Exact linear programs against the vertices of polygons, enumerated in fractions."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

pytest.importorskip("flint")

from flint import fmpq

from forcopt.loops.exact_lp import Exact, LinearProgram, exact_optimum, farkas, fraction, solve_exactly


def program(cost, rows, limits, upper=10):
    """Minimise over ``rows @ x <= limits`` and the box from 0 to `upper`, two columns."""
    q = [fmpq(*Fraction(c).as_integer_ratio()) for c in cost]
    block = [{j: fmpq(int(a)) for j, a in enumerate(row) if a} for row in rows]
    ends = [fmpq(int(b)) for b in limits]
    return LinearProgram(q, fmpq(0), [fmpq(0)] * 2, [fmpq(upper)] * 2, block, [None] * len(rows), ends)


def least(cost, rows, limits, upper=10):
    """The least value over all vertices, None without one."""
    lines = [*((*map(int, row), int(b)) for row, b in zip(rows, limits, strict=True))]
    lines += [(1, 0, upper), (0, 1, upper), (-1, 0, 0), (0, -1, 0)]
    values = []
    for (a, b, e), (c, d, f) in combinations(lines, 2):
        det = a * d - b * c
        if det:
            x, y = Fraction(e * d - b * f, det), Fraction(a * f - e * c, det)
            if all(u * x + v * y <= w for u, v, w in lines):
                values.append(cost[0] * x + cost[1] * y)
    return min(values, default=None)


@pytest.mark.parametrize("seed", range(40))
def test_the_optimum_is_that_of_the_vertices(seed):
    rng = np.random.default_rng(seed)
    rows, limits = rng.integers(-4, 5, (4, 2)), rng.integers(-3, 12, 4)
    cost = [Fraction(int(c), 7) for c in rng.integers(-5, 6, 2)]
    lp, optimum = program(cost, rows, limits), least(cost, rows, limits)
    found = exact_optimum(lp)
    if optimum is None:
        assert found.point is None
        multipliers = farkas(lp)
        assert multipliers is not None
        assert (
            LinearProgram(
                [fmpq(0)] * 2, fmpq(0), lp.lower, lp.upper, lp.rows, lp.row_lower, lp.row_upper
            ).bound(multipliers)
            > 0
        )
        return
    assert fraction(found.value) == fraction(found.bound) == optimum
    assert lp.holds(found.point) and fraction(lp.value(found.point)) == optimum


def test_a_float_next_to_a_fraction_is_no_optimum():
    """``3 x >= 1`` has the optimum 1/3, which no float is."""
    three, one = fmpq(3), fmpq(1)
    lp = LinearProgram([one], fmpq(0), [None], [None], [{0: three}], [one], [None])
    assert fraction(exact_optimum(lp).value) == Fraction(1, 3)


@pytest.mark.parametrize("seed", range(20))
def test_multipliers_of_rows_add_up_to_the_target(seed):
    rng = np.random.default_rng(seed)
    matrix, weights = rng.integers(-3, 4, (5, 3)), rng.integers(-4, 5, 5)
    rows = [{j: fmpq(int(a)) for j, a in enumerate(row) if a} for row in matrix]
    target = [fmpq(int(v), 3) for v in weights @ matrix]
    found = solve_exactly(rows, range(5), range(3), target)
    for j in range(3):
        assert sum((y * rows[i].get(j, 0) for i, y in found.items()), fmpq(0)) == target[j]


def test_an_infinite_end_proves_no_bound():
    lp = program([Fraction(-1), Fraction(1)], [(1, 1)], [4])
    lp.upper[0] = None
    assert lp.bound([fmpq(0)]) is None
    assert lp.bound([fmpq(-1)]) == -4


def test_a_program_with_points_has_no_farkas_proof(monkeypatch):
    """Even if the violations left are not proved to be least, as their bound is not above 0."""
    lp = program([Fraction(1), Fraction(1)], [(1, 1)], [4])
    assert farkas(lp) is None
    halfway = Exact("unknown", None, None, [fmpq(0)], fmpq(0))
    monkeypatch.setattr("forcopt.loops.exact_lp.exact_optimum", lambda lp: halfway)
    assert farkas(lp) is None
