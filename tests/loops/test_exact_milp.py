"""Exact branch and bound against all integer points of a box."""

from itertools import product

import numpy as np
import pytest

pytest.importorskip("flint")

from flint import fmpq

import forcopt as fo
from forcopt.clock import Deadline
from forcopt.loops.exact_lp import LinearProgram
from forcopt.loops.exact_milp import branch_and_bound


def instance(seed):
    """A program over the integer points of a box, and its optimum by trying all."""
    rng = np.random.default_rng(seed)
    cost, rows = rng.integers(-5, 6, 3), rng.integers(-3, 6, (3, 3))
    limits = rng.integers(-2, 9, 3)
    values = [cost @ x for x in product(range(4), repeat=3) if (rows @ x <= limits).all()]
    lp = LinearProgram(
        [fmpq(int(c), 3) for c in cost],
        fmpq(0),
        [fmpq(0)] * 3,
        [fmpq(3)] * 3,
        [{j: fmpq(int(a)) for j, a in enumerate(row) if a} for row in rows],
        [None] * 3,
        [fmpq(int(b)) for b in limits],
    )
    return lp, fmpq(int(min(values)), 3) if values else None


@pytest.mark.parametrize("seed", range(30))
def test_a_cutoff_is_proved_or_improved(seed):
    lp, optimum = instance(seed)
    above = fmpq(100)
    tree = branch_and_bound(lp, range(3), above, Deadline(30.0))
    assert tree.exhausted
    if optimum is None:
        assert tree.better is None and tree.bound == above
        return
    assert tree.bound == lp.value(tree.better) == optimum
    assert lp.holds(tree.better) and all(v.q == 1 for v in tree.better)
    again = branch_and_bound(lp, range(3), optimum, Deadline(30.0))
    assert again.exhausted and again.better is None and again.bound == optimum


@pytest.mark.parametrize("seed", range(30))
def test_a_search_that_stops_early_keeps_a_valid_bound(seed):
    lp, optimum = instance(seed)
    tree = branch_and_bound(lp, range(3), fmpq(100), Deadline(0.0))
    assert optimum is None or tree.bound is None or tree.bound <= optimum
    assert tree.better is None or lp.holds(tree.better)


def test_bounds_between_two_integers():
    m = fo.Model()
    m.variable("x", 2, lower=[0, 1.2], upper=[5, 1.8], integer=True)
    certificate = m.solve().certify()
    assert certificate.feasible is False
    assert "infeasibility proved by branch and bound" in certificate.how
