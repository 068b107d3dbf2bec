"""What every backend promises: `forcopt.testing.check_backend`, and limits on models that take long."""

from __future__ import annotations

import numpy as np
import pytest

import forcopt as fo
from forcopt.backends import get_backend
from forcopt.errors import NotInstalledError
from forcopt.testing import check_backend

NAMES = [
    "highs",
    "highs:ipm",
    "scip",
    "gscip",
    "glop",
    "pdlp",
    "cp-sat",
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
NO_DUALS = {"cvxpy:SCIP", "scip", "gscip", "cp-sat"}


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


@pytest.mark.parametrize("name", NAMES)
def test_a_backend_conforms(name: str) -> None:
    check_backend(_ready(name), duals=name not in NO_DUALS)


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
    small, _ = knapsacks(20, 3)
    # Imports take a part of the first time limit, and HiGHS keeps the threads of the last run.
    assert "found no answer" not in small.solve(whole, threads=2).message
    s = m.solve(whole, time_limit=1.0, threads=1)
    # Whether a second is enough for a point is the machine's affair; what is said of it must be right.
    assert s.status in (fo.Status.FEASIBLE, fo.Status.LIMIT)
    if s.status is fo.Status.FEASIBLE:
        assert 0 <= s.objective <= 112_969  # the best bound that HiGHS proves in minutes
        assert s.bound >= 112_775  # the best value that it finds; a busy second may end before the relaxation


def test_gap(whole: str) -> None:
    m, _ = knapsacks(300, 30)
    s = m.solve(whole, gap=0.02, time_limit=20)
    assert s.status is fo.Status.OPTIMAL
    assert 0 < s.gap <= 0.02


@pytest.mark.parametrize(
    ("version", "names", "library", "words"),
    [
        ("1.14.0", ["highs", "highs:ipm", "cvxpy:HIGHS"], "highs", "highspy 1.14.0: it takes wrong points"),
        ("1.15.1", ["glop", "cp-sat", "cvxpy:GLOP"], "mathopt", "highspy 1.15.1: it and ortools cannot"),
    ],
)
def test_a_clash_of_versions_takes_the_backends_away_in_one_line(
    monkeypatch: pytest.MonkeyPatch, version: str, names: list[str], library: str, words: str
) -> None:
    monkeypatch.setattr("forcopt.backends.base._installed", lambda package: version)
    for name in names:
        with pytest.raises(NotInstalledError, match=f"^backend '{name}' is not installed: {words}"):
            get_backend(name)
    m = fo.Model()
    m.minimize(m.variable("x", lower=0))
    with pytest.raises(NotInstalledError, match=f"handed over to {library}: {words}"):
        getattr(m, f"to_{library}")()
    assert m.solve("clarabel").status is fo.Status.OPTIMAL
