"""Why there is no optimum: subsets that are infeasible and irreducible, and rays that are rays."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.loops.diagnose import irreducible_subset, ray


def contradictory(seed, keep=None):
    """Random rows around a point, and some that contradict others; only those kept, if given."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    m = fo.Model()
    x = m.variable("x", n, lower=-10, upper=10, integer=rng.random(n) < 0.3)
    rows = []
    for _ in range(int(rng.integers(5, 12))):
        a = rng.integers(-3, 4, n).astype(float)
        rows.append(a @ x <= a @ rng.integers(-3, 3, n))
    total = rng.integers(1, 4, n).astype(float)
    rows += [total @ x >= 5, total @ x <= 2 + rng.integers(0, 4)]
    b = m.variable("b", binary=True)
    rows += [fo.implies(b, x[0] >= 4), b >= 0.5]
    for number, row in enumerate(rows):
        if keep is None or f"r{number}" in keep:
            m.subject_to(row, name=f"r{number}")
    m.minimize(x.sum())
    return m


@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_irreducible(seed):
    m = contradictory(seed)
    s = m.solve()
    if s.status != "infeasible":
        assert s.reason == ""
        return
    found = irreducible_subset(m)
    names = found.names
    assert names
    assert contradictory(seed, names).solve().status == "infeasible"
    for name in names:
        assert contradictory(seed, [n for n in names if n != name]).solve().status == "optimal"
    assert s.reason == found.describe()
    assert s.reason.startswith("these constraints cannot hold together: " + ", ".join(names))


def test_of_the_bounds_alone():
    m = fo.Model()
    x = m.variable("x", integer=True, lower=0.2, upper=0.8)
    m.subject_to(x <= 1)
    m.minimize(x)
    s = m.solve()
    assert s.status == "infeasible"
    assert s.reason == "the bounds and integrality of the variables alone cannot be met"


def test_conditions_are_named():
    m = fo.Model()
    x = m.variable("x", 5, binary=True)
    m.subject_to(fo.connected(nx.path_graph(5), x), name="together")
    m.subject_to(x[0] == 1, x[4] == 1, name="ends")
    m.subject_to(x.sum() <= 4, name="few")
    m.subject_to(x[1] + x[2] <= 2, name="idle")
    m.minimize(x.sum())
    assert m.irreducible_subset().names == ["ends[0]", "ends[1]", "few", "together"]


def test_one_constraint_is_enough():
    m = fo.Model()
    x = m.variable("x", lower=0, upper=1)
    m.subject_to(x >= 2, name="high")
    m.subject_to(x <= 0.5, name="low")
    m.minimize(x)
    assert irreducible_subset(m).names == ["high"]
    assert irreducible_subset(m).bounds == ("x <= 1",)


@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_bounds_of_a_subset_are_irreducible(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    low = rng.integers(-2, 2, n).astype(float)
    high = low + rng.integers(0, 4, n)
    a = rng.integers(-3, 4, (3, n)).astype(float)
    side = a @ low - rng.integers(0, 3, 3)
    whole = rng.random(n) < 0.3

    def build(rows, kept):
        m = fo.Model()
        lower = [low[i] if f"x[{i}] >= {low[i]:g}" in kept else -np.inf for i in range(n)]
        upper = [high[i] if f"x[{i}] <= {high[i]:g}" in kept else np.inf for i in range(n)]
        x = m.variable("x", n, lower=lower, upper=upper, integer=whole)
        for i in rows:
            m.subject_to(a[i] @ x <= side[i], name=f"r{i}")
        return m

    every = [f"x[{i}] {s} {v[i]:g}" for i in range(n) for s, v in ((">=", low), ("<=", high))]
    m = build(range(3), every)
    if m.solve().status == "optimal":
        return
    found = m.irreducible_subset()
    rows = [int(name[1:]) for name in found.names]
    assert build(rows, found.bounds).solve().status == "infeasible"
    for bound in found.bounds:
        assert build(rows, [b for b in found.bounds if b != bound]).solve().status == "optimal"


@pytest.mark.parametrize("whole", [False, True])
def test_ray(whole):
    m = fo.Model()
    x = m.variable("x", 3, lower=0, integer=whole)
    y = m.variable("y", lower=0, upper=7)
    m.subject_to(x[0] - x[1] <= 4, x[2] <= 3)
    m.maximize(x[0] + 5 * y)
    s = m.solve()
    assert s.status == "unbounded"
    assert s.reason == "the objective improves forever along x[0], x[1]"


def test_rays_of_atoms_name_variables():
    m = fo.Model()
    x = m.variable("x", 2, lower=-5)
    m.minimize(fo.maximum(x[0], 3) - x[1])
    assert ray(m) == ["x[1]"]
    m = fo.Model()
    x = m.variable("x", 2)
    m.minimize(fo.sum_squares(x[0] + x[1]) + x[0])
    assert m.solve().status == "unbounded"
    assert ray(m) == ["x[0]", "x[1]"]  # along which the square stays flat
    m.minimize(fo.sum_squares(x) + x[0])
    assert ray(m) == []


def test_long_rays_are_cut():
    m = fo.Model()
    x = m.variable("x", 20, lower=0)
    m.subject_to(x[1:] - x[:-1] == 0)
    m.maximize(x[0])
    names = ray(m)
    assert names[:2] == ["x[0]", "x[1]"]
    assert names[-1] == "... (20 columns of x)"


def test_nothing_to_explain():
    m = fo.Model()
    x = m.variable("x", lower=0)
    m.minimize(x)
    assert m.solve().reason == ""


@pytest.mark.parametrize("backend", ["highs", "scip", "gscip", "cp-sat"])
def test_bounds_of_a_subset_on_every_backend(backend):
    m = fo.Model()
    x = m.variable("x", 2, lower=[1, 2], upper=[4, 5], integer=True)
    m.subject_to(x.sum() <= 2, name="low")
    m.maximize(x.sum())
    s = m.solve(backend)
    assert s.status == "infeasible"
    assert s.reason == "these constraints cannot hold together: low (with x[0] >= 1, x[1] >= 2)"
    found = irreducible_subset(m, backend)
    assert found.names == ["low"] and found.bounds == ("x[0] >= 1", "x[1] >= 2")


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_a_small_square_is_no_direction_of_improvement(unit):
    """The unit of a variable decides nothing: solvers drop entries of 1e-11, but the optimum is finite."""
    m = fo.Model("least squares")
    x = m.variable("x", 2)
    targets = np.array([0.2, 0.35, 0.55, 0.7, 1.0])
    groups = np.column_stack([targets, 1 - targets]) / unit
    m.minimize(fo.sum_squares(groups @ x - targets**2))
    s = m.solve("clarabel")
    least = np.linalg.lstsq(groups, targets**2)[1][0]
    assert s.status is fo.Status.OPTIMAL and s.objective == pytest.approx(least, abs=1e-6)
