"""Exact branch and bound against all integer points of a box."""

from io import StringIO
from itertools import product

import numpy as np
import pytest

pytest.importorskip("flint")

from flint import fmpq

import forcopt as fo
from forcopt.clock import Deadline
from forcopt.loops.exact_lp import LinearProgram
from forcopt.loops.exact_milp import branch_and_bound
from forcopt.loops.exact_milp.proof import Derived, Proof
from forcopt.loops.exact_milp.prove import _open_bound
from forcopt.loops.exact_milp.search import Search, _Frame
from forcopt.loops.exact_milp.system import Claim, System


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


class Counted:
    """A deadline that passes after some questions."""

    def __init__(self, questions):
        self.left = questions

    @property
    def passed(self):
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("seed", range(2))
def test_a_search_that_stops_in_the_middle_keeps_a_valid_bound(seed):
    rng = np.random.default_rng(seed)
    cost, rows = rng.integers(-30, -20, 12), rng.integers(10, 30, (3, 12))
    limits = rows.sum(axis=1) // 2
    points = np.array(list(product(range(2), repeat=12)))
    optimum = int((points[(points @ rows.T <= limits).all(axis=1)] @ cost).min())
    lp = LinearProgram(
        [fmpq(int(c)) for c in cost],
        fmpq(0),
        [fmpq(0)] * 12,
        [fmpq(1)] * 12,
        [{j: fmpq(int(a)) for j, a in enumerate(row)} for row in rows],
        [None] * 3,
        [fmpq(int(b)) for b in limits],
    )
    for questions in (1, 2, 4, 8, 16, 32):
        tree = branch_and_bound(lp, range(12), fmpq(0), Counted(questions))
        assert tree.bound is None or tree.bound <= optimum
    tree = branch_and_bound(lp, range(12), fmpq(0), Deadline(30.0))
    assert tree.exhausted and tree.bound == lp.value(tree.better) == optimum


def test_a_claim_of_nothing_closes_no_leaf():
    lp, _ = instance(0)
    search = Search(lp, System(lp, range(3), [(-1, -1)] * 6), Proof(0), Deadline(30.0))
    assert search._line(Claim(0, {}, [], 0)) is None
    assert search._line(Claim(0, {}, [], 1)) is not None


def test_the_weakest_open_node_bounds_a_search():
    lp, _ = instance(0)
    search = Search(lp, System(lp, range(3), [(-1, -1)] * 6), Proof(0), Deadline(30.0))
    case = Derived({}, "G", 0, [])
    search.stack = [_Frame(0, 0, 0, case, (None, -1), fmpq(bound)) for bound in (3, 5)]
    assert search.bound == 3
    assert _open_bound(search, lp, fmpq(100)) == 3 / search.scale
    search.stack.append(_Frame(0, 0, 0, case, (None, -1), None))
    assert search.bound is None


def test_multipliers_that_need_an_infinite_bound_prove_nothing():
    lp = LinearProgram([fmpq(0)], fmpq(0), [None], [None], [{0: fmpq(1)}], [fmpq(1)], [None])
    assert System(lp, [], [(-1, -1), (0, -1)]).exact_claim(np.array([1.0]), 0) is None


def test_a_line_that_is_named_twice_counts_twice():
    sink = StringIO()
    Proof(2, sink).combine({0: 3}, "G", 3, [(0, 1), (1, 1), (0, 2)])
    assert "{ lin 2  0 3  1 1 }" in sink.getvalue()


def test_bounds_between_two_integers():
    m = fo.Model()
    m.variable("x", 2, lower=[0, 1.2], upper=[5, 1.8], integer=True)
    certificate = m.solve().certify()
    assert certificate.feasible is False
    assert "infeasibility proved by branch and bound" in certificate.how
