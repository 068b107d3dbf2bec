"""Options, words and exports of the backends that go through Pyomo."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import forcopt as fo
from forcopt.backends import backends, get_backend
from forcopt.backends.base import SolveOptions
from forcopt.backends.pyomo import Pyomo
from forcopt.backends.registry import families

pyo = pytest.importorskip("pyomo.environ")

needs_glpk = pytest.mark.skipif(shutil.which("glpsol") is None, reason="glpsol is not installed")
needs_cbc = pytest.mark.skipif(shutil.which("cbc") is None, reason="cbc is not installed")


def _small() -> tuple[fo.Model, fo.Variable]:
    m = fo.Model("small")
    x = m.variable("x", 2, lower=0, upper=9, integer=True)
    m.subject_to(2 * x[0] + 5 * x[1] <= 16, name="room")
    m.maximize(3 * x[0] + 8 * x[1])
    return m, x


@needs_glpk
def test_log_and_message_of_glpk(capfd: pytest.CaptureFixture[str]) -> None:
    m, _ = _small()
    s = m.solve("pyomo:glpk")
    assert "INTEGER OPTIMAL SOLUTION FOUND" in s.log
    assert s.message == "glpk: optimal"
    assert capfd.readouterr().out == ""
    m.solve("pyomo:glpk", log=True)
    assert "INTEGER OPTIMAL SOLUTION FOUND" in capfd.readouterr().out


@needs_glpk
@pytest.mark.parametrize(
    ("integer", "rows", "word", "status"),
    [
        (False, [(1, 1, -1)], "HAS NO PRIMAL FEASIBLE SOLUTION", fo.Status.INFEASIBLE),
        # Pyomo calls the next three "other".
        (False, [(1, -1, -1), (-1, 1, -1)], "HAS NO PRIMAL FEASIBLE SOLUTION", fo.Status.INFEASIBLE),
        (False, [(1, -1, 1)], "HAS UNBOUNDED PRIMAL SOLUTION", fo.Status.UNBOUNDED),
        (True, [(1, -1, 1)], "HAS UNBOUNDED PRIMAL SOLUTION", fo.Status.UNBOUNDED),
        (False, [(-1, 0, 4)], "HAS NO DUAL FEASIBLE SOLUTION", fo.Status.UNBOUNDED),
    ],
)
def test_words_of_glpk(
    integer: bool, rows: list[tuple[float, float, float]], word: str, status: fo.Status
) -> None:
    m = fo.Model()
    x = m.variable("x", 2, lower=0, integer=integer)
    for a, b, right in rows:
        m.subject_to(a * x[0] + b * x[1] <= right)
    m.maximize(x.sum())
    s = m.solve("pyomo:glpk")
    assert word in s.log
    assert s.status is status


@needs_glpk
def test_undecided_feasibility_is_no_infeasibility() -> None:
    """GLPK finds a ray of the relaxation, and then no point in time; nothing is proved."""
    m = fo.Model()
    x = m.variable("x", 2, lower=0, integer=True)
    y = m.variable("y", lower=0)
    m.subject_to(2 * x[0] - 2 * x[1] == 1)
    m.maximize(x.sum() + y)
    assert m.solve("pyomo:glpk", time_limit=1).status is fo.Status.LIMIT


@needs_glpk
def test_feasible_basis_at_the_time_limit_is_not_optimal() -> None:
    """Without presolve GLPK hands over the feasible basis it has, which Pyomo calls optimal."""
    rng = np.random.default_rng(0)
    n = 1200
    m = fo.Model()
    x = m.variable("x", n, lower=0, upper=2)
    matrix = rng.random((n // 2, n)) * (rng.random((n // 2, n)) < 0.1)
    m.subject_to(matrix @ x <= matrix @ rng.random(n) + 0.1)
    m.maximize((rng.random(n) * x).sum())
    s = m.solve("pyomo:glpk", options={"nopresol": None, "tmlim": 1})
    best = m.solve().objective
    # How far it comes in a second is the machine's affair; what it may not do is call it optimal.
    if s.status is fo.Status.OPTIMAL:
        assert s.objective == pytest.approx(best)
    else:
        assert s.message == "glpk: LIMIT EXCEEDED"
        assert s.status is fo.Status.LIMIT or s.objective <= best + 1e-6


@needs_glpk
@needs_cbc
@pytest.mark.parametrize("name", ["pyomo:glpk", "pyomo:cbc"])
def test_unknown_option_is_refused_in_the_solvers_words(name: str) -> None:
    m, _ = _small()
    with pytest.raises(fo.BackendError, match="nonsense"):
        m.solve(name, options={"nonsense": 1})


@needs_cbc
def test_doubtful_infeasibility_of_cbc_is_checked() -> None:
    """Its presolve thinks the model unbounded, which it is; then it calls it infeasible."""
    m = fo.Model()
    x = m.variable("x", 5, lower=[-1, -2, -np.inf, -2, -2], upper=[np.inf, np.inf, -2, np.inf, np.inf])
    m.subject_to((np.array([-3, -2, -3, 4, 0]) * x).sum() == 7)
    m.minimize((np.array([-2.5, -1.5, 1, 0, -0.5]) * x).sum())
    s = m.solve("pyomo:cbc")
    assert "infeasible or unbounded" in s.log and s.message == "cbc: infeasible"
    assert s.status is fo.Status.UNBOUNDED


@needs_cbc
def test_cbc_starts_from_a_point() -> None:
    m, x = _small()
    s = m.solve("pyomo:cbc", start={x: [0, 3]})
    assert s[x].tolist() == [3, 2]
    assert "MIPStart" in s.log


def test_spelling_of_options() -> None:
    options = SolveOptions(time_limit=3, gap=0.1, seed=4, threads=2, extra={"cuts": "on"})
    assert Pyomo("pyomo:glpk", "glpk").settings(options) == {"mipgap": 0.1, "seed": 4, "cuts": "on"}
    assert Pyomo("pyomo:cbc", "cbc").settings(options) == {
        "ratioGap": 0.1,
        "randomCbcSeed": 4,
        "threads": 2,
        "cuts": "on",
    }
    assert Pyomo("pyomo:ipopt", "ipopt").settings(SolveOptions(time_limit=3))["max_cpu_time"] == 3
    with pytest.raises(fo.UnsupportedError, match="gap has no translation for conopt"):
        Pyomo("pyomo:conopt", "conopt").settings(SolveOptions(gap=0.1))


def test_names() -> None:
    assert {"pyomo:glpk", "pyomo:cbc", "pyomo:ipopt"} <= set(backends())
    assert "integer" not in backends()["pyomo:ipopt"].capabilities.kinds
    assert ("pyomo:glpk" in families()["pyomo"]) == (shutil.which("glpsol") is not None)
    with pytest.raises(fo.UnknownNameError, match="did you mean 'gurobi'"):
        get_backend("pyomo:gurobii")
    if shutil.which("ipopt") is None:
        with pytest.raises(fo.NotInstalledError, match="conda install -c conda-forge ipopt"):
            get_backend("pyomo:ipopt")


def test_unused_column_stays_within_its_bounds() -> None:
    name = next((n for n in ("pyomo:appsi_highs", "pyomo:glpk") if n in families()["pyomo"]), None)
    if name is None:
        pytest.skip("no linear solver for Pyomo")
    m = fo.Model()
    x, unused = m.variable("x", lower=1), m.variable("unused", lower=3, upper=5)
    m.minimize(x + 0 * unused)
    assert m.solve(name)[unused] == 3


# -- export ----------------------------------------------------------------------------------------


def test_export_has_names_and_the_models_sense() -> None:
    m, _ = _small()
    model = m.to_pyomo()
    assert isinstance(model, pyo.ConcreteModel) and model.name == "small"
    assert model.objective.sense == pyo.maximize
    assert set(model.x) == {"x[0]", "x[1]"} and set(model.rows) == {"room"}
    assert model.x["x[0]"].is_integer() and model.x["x[1]"].bounds == (0, 9)
    model.x["x[0]"].value, model.x["x[1]"].value = 3, 2
    assert pyo.value(model.objective) == 25
    assert pyo.value(model.rows["room"].body) == 16 and model.rows["room"].upper == 16
    with pytest.raises(KeyError):
        model.rows["other"]


def test_export_of_a_quadratic_objective() -> None:
    m = fo.Model()
    x = m.variable("x", 2)
    m.maximize(1 - fo.quad_form(x - 1, np.array([[2.0, 1], [1, 3]])))
    model = m.to_pyomo()
    model.x["x[0]"].value, model.x["x[1]"].value = 2, 3
    assert pyo.value(model.objective) == pytest.approx(1 - (2 + 2 * 2 + 3 * 4))


def test_export_refuses_equal_names() -> None:
    m = fo.Model()
    m.variable("x", 2, labels=["a", "b"])
    m.variable("y", 2, labels=["a", "c"])  # within one variable, labels that repeat are refused at once
    with pytest.raises(fo.DeclarationError, match="2 columns are named 'a'"):
        m.to_pyomo()


@pytest.mark.parametrize("name", ["pyomo:glpk", "pyomo:cbc", "pyomo:appsi_highs"])
def test_integers_with_fractional_bounds(name: str) -> None:
    _skip_missing(name)
    m = fo.Model()
    x = m.variable("x", 3, lower=0.3, upper=2.6, integer=True)
    m.subject_to(x.sum() <= 5.5)
    m.maximize(x.sum())
    assert m.solve(name).objective == 5
    y = m.variable("y", lower=0.3, upper=0.6, integer=True)
    m.subject_to(y <= x[0])
    assert m.solve(name).status is fo.Status.INFEASIBLE


def _skip_missing(name: str) -> None:
    from forcopt.backends import get_backend

    try:
        get_backend(name)
    except fo.NotInstalledError as error:
        pytest.skip(str(error))


@needs_glpk
def test_export_solves() -> None:
    m, _ = _small()
    model = m.to_pyomo()
    pyo.SolverFactory("glpk").solve(model)
    assert pyo.value(model.objective) == pytest.approx(m.solve().objective)
