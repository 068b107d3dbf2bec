"""What every backend promises, on small models whose answers are known by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import forcopt as fo
from forcopt.backends import get_backend
from forcopt.backends.base import SolveOptions
from forcopt.compile import compile_model

NAMES = [
    "highs",
    "clarabel",
    "scs",
    "osqp",
    "cvxpy:HIGHS",
    "cvxpy:SCIPY",
    "cvxpy:SCIP",
    "pyomo:glpk",
    "pyomo:cbc",
    "pyomo:appsi_highs",
    "pyomo:ipopt",
]
WHOLE = ["highs", "cvxpy:HIGHS", "cvxpy:SCIPY", "cvxpy:SCIP", "pyomo:glpk", "pyomo:cbc", "pyomo:appsi_highs"]
NO_DUALS = {"cvxpy:SCIP"}


@pytest.fixture(params=NAMES)
def backend(request: pytest.FixtureRequest) -> str:
    return _ready(request.param)


@pytest.fixture(params=WHOLE)
def whole(request: pytest.FixtureRequest) -> str:
    """A backend that takes integers."""
    return _ready(request.param)


def _ready(name: str) -> str:
    try:
        get_backend(name)
    except fo.NotInstalledError as error:
        pytest.skip(str(error))
    return name


def _close(backend: str) -> float:
    return max(1e-6, 10 * get_backend(backend).accuracy)


def _everything(sign: float) -> tuple[fo.Model, fo.Variable, fo.Variable, list[Any]]:
    """Every form of a row and of a column: x is (0, 1.5, 1) and f 2 at the only optimum, worth 16.

    The optimum of the dual is unique, too.
    """
    m = fo.Model()
    x = m.variable("x", 3, lower=[0, 0, 1], upper=[np.inf, 5, 1])
    f = m.variable("f")
    rows = [
        m.subject_to(x[0] + 2 * x[1] + x[2] >= 4, name="at least"),
        m.subject_to(x.sum().between(1, 10), name="between"),
        m.subject_to(f - x[0] == 2, name="equal"),
        m.subject_to((x[0] - x[1]).between(-np.inf, np.inf), name="free"),
        m.subject_to(0 * x[0] <= 3, name="empty"),
        m.subject_to(x[1] - x[0] <= 4.0, name="at most"),
    ]
    value = 3 * x[0] + 4 * x[1] + x[2] + f + 7
    m.minimize(value) if sign > 0 else m.maximize(-value)
    return m, x, f, rows


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_linear(backend: str, sign: float) -> None:
    m, x, f, rows = _everything(sign)
    s = m.solve(backend)
    close = _close(backend)
    assert s.status is fo.Status.OPTIMAL
    assert s.objective == pytest.approx(sign * 16, abs=close)
    assert s.bound == pytest.approx(sign * 16, abs=close)
    assert s[x] == pytest.approx([0, 1.5, 1], abs=close)
    assert s[f] == pytest.approx(2, abs=close)
    if backend in NO_DUALS:
        with pytest.raises(fo.DeclarationError, match="gave no duals"):
            s.dual(rows[0])
        return
    duals = [float(s.dual(row)) for row in rows]
    assert duals == pytest.approx([sign * d for d in (2, 0, 1, 0, 0, 0)], abs=close)
    assert s.reduced_cost(x) == pytest.approx([sign * d for d in (2, 0, -1)], abs=close)
    assert s.reduced_cost(f) == pytest.approx(0, abs=close)


@pytest.mark.parametrize(
    ("lower", "upper", "cost", "dual"),
    [(1, 4, 1, 1), (1, 4, -1, -1), (-np.inf, 4, -2, -2), (3, 3, 2, 2), (3, 3, -2, -2)],
)
def test_dual_of_each_side_of_a_row(
    backend: str, lower: float, upper: float, cost: float, dual: float
) -> None:
    m = fo.Model()
    x = m.variable("x", 2, lower=-9, upper=9)
    row = m.subject_to(x.sum().between(lower, upper))
    m.minimize(cost * x.sum())
    s = m.solve(backend)
    if backend not in NO_DUALS:
        assert s.dual(row) == pytest.approx(dual, abs=_close(backend))


def _infeasible(m: fo.Model, x: fo.Variable) -> None:
    m.subject_to(x.sum() <= -1)
    m.minimize(x.sum())


def _infeasible_empty_row(m: fo.Model, x: fo.Variable) -> None:
    m.subject_to(0 * x[0] >= 3)
    m.minimize(x.sum())


def _infeasible_with_a_ray(m: fo.Model, x: fo.Variable) -> None:
    """Neither the model nor its dual has a point."""
    m.subject_to(x[0] - x[1] <= -1, x[1] - x[0] <= -1)
    m.maximize(x.sum())


def _unbounded(m: fo.Model, x: fo.Variable) -> None:
    m.subject_to(x[0] - x[1] <= 1)
    m.maximize(x.sum())


def _unbounded_without_rows(m: fo.Model, x: fo.Variable) -> None:
    m.maximize(x.sum())


@pytest.mark.parametrize(
    ("fill", "status"),
    [
        (_infeasible, fo.Status.INFEASIBLE),
        (_infeasible_empty_row, fo.Status.INFEASIBLE),
        (_infeasible_with_a_ray, fo.Status.INFEASIBLE),
        (_unbounded, fo.Status.UNBOUNDED),
        (_unbounded_without_rows, fo.Status.UNBOUNDED),
    ],
)
def test_no_optimum(backend: str, fill: Callable[[fo.Model, fo.Variable], None], status: fo.Status) -> None:
    m = fo.Model()
    fill(m, m.variable("x", 2, lower=0))
    s = m.solve(backend)
    assert s.status is status
    assert s.point is None


def test_nothing_to_decide(backend: str) -> None:
    m = fo.Model()
    x = m.variable("x", 2, lower=[1, -2], upper=[3, -1])
    s = m.solve(backend)
    assert s.status is fo.Status.OPTIMAL
    assert (s[x] >= np.array([1, -2]) - 1e-5).all() and (s[x] <= np.array([3, -1]) + 1e-5).all()


def test_no_columns(backend: str) -> None:
    m = fo.Model()
    m.minimize(m.variable("x", 0).sum() + 3)
    s = m.solve(backend)
    assert (s.status, s.objective) == (fo.Status.OPTIMAL, 3.0)


def test_lexicographic(backend: str) -> None:
    m = fo.Model()
    x = m.variable("x", 3, lower=0)
    m.subject_to(x[0] <= 1, x.sum() <= 7)
    m.leximin(x)
    assert m.solve(backend)[x] == pytest.approx([1, 3, 3], abs=1e-4)


def test_no_time(backend: str) -> None:
    m, *_ = _everything(1.0)
    if backend == "highs":
        pytest.skip("HiGHS may answer in no time")
    assert m.solve(backend, time_limit=0).status is fo.Status.LIMIT


def test_session_grows(backend: str) -> None:
    """Rows, columns, bounds and costs that come later count."""
    chosen = get_backend(backend)
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=4)
    m.minimize(-x.sum())
    extra = fo.Model()
    y = extra.variable("y", 2, lower=0)
    extra.subject_to(y[0] + 2 * y[1] <= 6)
    extra.minimize(-2 * y[0] - y[1])
    session = chosen.session(compile_model(m, chosen.capabilities))
    other = compile_model(extra, chosen.capabilities)
    assert session.solve(SolveOptions()).objective == pytest.approx(-8, abs=1e-3)
    session.add_rows(other.rows)
    assert session.solve(SolveOptions()).objective == pytest.approx(-5, abs=1e-3)
    session.set_stage(other.stages[0])
    assert session.solve(SolveOptions()).objective == pytest.approx(-9, abs=1e-3)
    session.set_bounds(np.zeros(2), np.array([1.0, 4.0]))
    assert session.solve(SolveOptions()).objective == pytest.approx(-4.5, abs=1e-3)


# -- integers --------------------------------------------------------------------------------------


def test_integer(whole: str) -> None:
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=9, integer=True)
    y = m.variable("y", lower=0, upper=1)
    m.subject_to(2 * x[0] + 5 * x[1] + y <= 16.5, x[0] <= 2.7)
    m.maximize(3 * x[0] + 8 * x[1] + y + 10)
    s = m.solve(whole)
    assert s.status is fo.Status.OPTIMAL
    assert s[x].tolist() == [0, 3]  # worth 24; without integrality 24.8, rounded to (2, 2) 22
    assert s.objective == pytest.approx(35, abs=1e-5)
    assert s.bound == pytest.approx(35, rel=1e-4)


@pytest.mark.parametrize(
    ("row", "status"),
    [
        (lambda x: 2 * x[0] + 4 * x[1] == 5, fo.Status.INFEASIBLE),
        (lambda x: 2 * x.sum() >= 25, fo.Status.INFEASIBLE),
    ],
)
def test_infeasible_integer(whole: str, row: Callable[[Any], Any], status: fo.Status) -> None:
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=5, integer=True)
    m.subject_to(row(x))
    m.minimize(x.sum())
    assert m.solve(whole).status is status


def test_unbounded_integer(whole: str) -> None:
    m = fo.Model()
    x = m.variable("x", 2, lower=0, integer=True)
    m.subject_to(x[0] - x[1] <= 1)
    m.maximize(x.sum())
    assert m.solve(whole).status is fo.Status.UNBOUNDED


def knapsacks(items: int, rows: int) -> tuple[fo.Model, fo.Variable]:
    """A model that no solver here finishes in a second, and any finds a point of."""
    rng = np.random.default_rng(1)
    m = fo.Model()
    x = m.variable("x", items, binary=True)
    weights = rng.integers(10, 1000, (rows, items))
    m.subject_to(weights @ x <= weights.sum(axis=1) // 2)
    m.maximize((rng.integers(10, 1000, items) * x).sum() + 5)
    return m, x


def test_time_limit_with_a_point(whole: str) -> None:
    m, _ = knapsacks(300, 30)
    _infeasible(small := fo.Model(), small.variable("x", 2, lower=0, upper=1, integer=True))
    small.solve(whole)  # imports take a part of the first time limit
    s = m.solve(whole, time_limit=1.0, threads=1)
    # Whether a second is enough for a point is the machine's affair; what is said of it must be right.
    assert s.status in (fo.Status.FEASIBLE, fo.Status.LIMIT)
    if s.status is fo.Status.FEASIBLE:
        assert 0 <= s.objective <= 112_969  # the best bound that HiGHS proves in minutes
        assert 112_775 <= s.bound < 113_200  # the best value it finds; the linear relaxation's is 113 140


def test_gap(whole: str) -> None:
    m, _ = knapsacks(300, 30)
    s = m.solve(whole, gap=0.02, time_limit=20)
    assert s.status is fo.Status.OPTIMAL
    assert 0 < s.gap <= 0.02


def test_quadratic(backend: str) -> None:
    """min |x - (1, 2)|^2 over x1 + x2 <= 2: (0.5, 1.5) with multiplier -1."""
    m = fo.Model()
    x = m.variable("x", 2)
    row = m.subject_to(x.sum() <= 2)
    m.minimize(fo.sum_squares(x - np.array([1, 2])) + 3)
    try:
        s = m.solve(backend)
    except fo.UnsupportedError:
        pytest.skip("takes no quadratic objective")
    assert s.objective == pytest.approx(3.5, abs=1e-4)
    assert s[x] == pytest.approx([0.5, 1.5], abs=1e-3)
    if backend not in NO_DUALS:
        assert s.dual(row) == pytest.approx(-1, abs=1e-3)
