"""Every backend for linear programs gives the same status and optimum, and its duals prove it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.arrays import Array
from forcopt.backends import backends, get_backend
from forcopt.language.model import Model
from forcopt.language.variable import Variable
from forcopt.loops.solution import ModelSolution

# All that are ready and take linear programs; `pyscipopt` is left out, since `scip` is the same.
NAMES = [
    name
    for name, backend in backends().items()
    if backend.missing() is None and not backend.capabilities.only_integer and name != "pyscipopt"
]
QUICK = [name for name in NAMES if not name.startswith("pyomo:")]
SLOW = [name for name in NAMES if name.startswith("pyomo:")]

Case = tuple[Model, Variable, Array, Array, Array, Array]


def random_lp(seed: int) -> Case:
    """A model with every kind of bound, row (empty ones too) and sense; about a third have no optimum.

    Returns
    -------
    Case
        The model, its variable, the matrix, the row bounds and the cost (in the model's own sense).
    """
    rng = np.random.default_rng(seed)
    columns, rows = int(rng.integers(1, 7)), int(rng.integers(1, 7))
    matrix = rng.integers(-4, 6, (rows, columns)) * (rng.random((rows, columns)) < 0.7)
    inside = rng.integers(-2, 4, columns)
    activity = matrix @ inside + rng.integers(-1, 2, rows) * (rng.random(rows) < 0.15) * 5
    kind = rng.integers(0, 4, rows)  # <=, >=, ==, range
    slack = rng.integers(0, 4, rows)
    lower = np.where(kind == 0, -np.inf, activity - slack * (kind != 2))
    upper = np.where(kind == 1, np.inf, activity + slack * (kind != 2))
    free_below, free_above = rng.random(columns) < 0.3, rng.random(columns) < 0.4
    low = np.where(free_below, -np.inf, inside - rng.integers(0, 4, columns))
    high = np.where(free_above, np.inf, inside + rng.integers(0, 4, columns))
    cost = rng.integers(-5, 6, columns) / 2
    m = fo.Model(f"lp{seed}")
    x = m.variable("x", columns, lower=low, upper=high)
    m.subject_to((matrix @ x).between(lower, upper), name="rows")
    objective = cost @ x + float(rng.integers(-3, 4))
    (m.maximize if rng.random() < 0.5 else m.minimize)(objective)
    return m, x, matrix, lower, upper, cost


@cache
def reference(seed: int) -> ModelSolution:
    return random_lp(seed)[0].solve("highs:simplex")


def check_certificate(case: Case, s: ModelSolution, tolerance: float) -> None:
    """Weak duality: any multipliers bound the optimum, and these must reach the objective."""
    m, x, matrix, lower, upper, cost = case
    assert m.objective is not None
    stage = m.objective.stages[0]
    sign = -1.0 if stage.maximize else 1.0  # judge the minimisation
    y = sign * s.dual(m.constraints[0])
    d = sign * s.reduced_cost(x)
    scale = 1.0 + np.abs(y).max(initial=0.0)
    np.testing.assert_allclose(d, sign * cost - matrix.T @ y, atol=10 * tolerance * scale)
    columns = m.columns()
    bound = sign * float(stage.expression.constant)
    for multiplier, low, high in ((y, lower, upper), (d, columns.lower, columns.upper)):
        side = np.where(multiplier > 0, low, high)
        idle = np.abs(multiplier) <= 10 * tolerance * scale  # rounding: may point to a side that is infinite
        assert np.isfinite(side[~idle]).all(), "a multiplier on a side without a bound"
        bound += float(multiplier[~idle] @ side[~idle])
    size = 1.0 + np.abs(s[x]).max(initial=0.0)
    assert bound == pytest.approx(sign * s.objective, abs=100 * tolerance * scale * size)


def check(name: str, seed: int) -> None:
    accuracy = get_backend(name).accuracy
    expected = reference(seed)
    case = random_lp(seed)
    s = case[0].solve(name, time_limit=20)
    if accuracy > 1e-6 and s.status in (fo.Status.FAILED, fo.Status.LIMIT, fo.Status.FEASIBLE):
        return  # a first-order method may give up where there is no optimum, but not claim another status
    assert s.status is expected.status, (
        f"{name} says {s.status} ({s.message}), highs:simplex {expected.status}"
    )
    if s.status is fo.Status.OPTIMAL:
        tolerance = max(1e-7, accuracy)
        size = 1.0 + abs(expected.objective)
        assert s.objective == pytest.approx(expected.objective, abs=100 * tolerance * size)
        if s.row_dual is not None:
            check_certificate(case, s, tolerance)


@pytest.mark.parametrize("name", QUICK)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_agree(name: str, seed: int) -> None:
    check(name, seed)


@pytest.mark.parametrize("name", SLOW)
@pytest.mark.parametrize("seed", range(10))
def test_agree_slowly(name: str, seed: int) -> None:
    check(name, seed)


@pytest.mark.parametrize("name", ["highs:simplex", "glop", "pdlp"])
def test_duals_are_given(name: str) -> None:
    if name not in NAMES:
        pytest.skip(f"{name} is not installed")
    case = next(c for c in map(random_lp, range(100)) if c[0].solve("highs").status is fo.Status.OPTIMAL)
    s = case[0].solve(name)
    assert s.row_dual is not None
    check_certificate(case, s, max(1e-7, get_backend(name).accuracy))


def test_instances_have_every_status() -> None:
    seen: dict[Any, int] = {}
    for seed in range(60):
        status = reference(seed).status
        seen[status] = seen.get(status, 0) + 1
    assert min(seen.get(s, 0) for s in (fo.Status.OPTIMAL, fo.Status.INFEASIBLE, fo.Status.UNBOUNDED)) >= 5


def test_enough_backends() -> None:
    if "scip" in NAMES:
        assert len(NAMES) >= 8, NAMES
