"""Options, limits, words and exports of the backends that go through cvxpy."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from processor_time import spends_at_most

import forcopt as fo
from forcopt.backends import backends, get_backend
from forcopt.backends.base import SolveOptions
from forcopt.backends.cvxpy import Cvxpy
from forcopt.backends.registry import families

cp = pytest.importorskip("cvxpy")

NAMED = ["clarabel", "scs", "osqp"]


def _small() -> tuple[fo.Model, fo.Variable]:
    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=9)
    m.subject_to(x.sum() >= 4)
    m.minimize(fo.sum_squares(x - 1) + x[0])
    return m, x


def _large() -> fo.Model:
    """A linear program that takes an interior point method a second and a first-order method many."""
    rng = np.random.default_rng(0)
    m = fo.Model()
    x = m.variable("x", 2500, lower=0, upper=2)
    matrix = rng.random((1200, 2500)) * (rng.random((1200, 2500)) < 0.01)
    m.subject_to(matrix @ x <= matrix @ rng.random(2500) + 0.1)
    m.maximize((rng.random(2500) * x).sum())
    return m


@pytest.mark.parametrize("name", NAMED)
def test_log_is_kept_and_shown_on_demand(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    m, _ = _small()
    quiet = m.solve(name)
    assert name.upper() in quiet.log.upper()
    assert capsys.readouterr().out == ""
    shown = m.solve(name, log=True)
    assert name.upper() in capsys.readouterr().out.upper()
    assert name.upper() in shown.log.upper()
    assert not hasattr(sys.stdout, "show")  # the stand-in has gone


def test_a_program_without_a_console_has_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clarabel flushes the output, and its panic at the None of pythonw is no Exception."""
    monkeypatch.setattr(sys, "stdout", None)
    m, _ = _small()
    s = m.solve("clarabel", log=True)
    assert s.status == "optimal" and "CLARABEL" in s.log.upper()


def test_message_is_the_solvers_word() -> None:
    m, _ = _small()
    assert m.solve("clarabel").message == "CLARABEL: Solved"
    assert m.solve("scs").message == "SCS: solved"
    assert m.solve("osqp").message == "OSQP: solved"


@pytest.mark.parametrize("name", NAMED)
def test_unknown_option_is_refused_in_the_solvers_words(name: str) -> None:
    m, _ = _small()
    with pytest.raises(fo.BackendError, match="nonsense"):
        m.solve(name, options={"nonsense": 1})


@pytest.mark.parametrize(
    ("name", "option", "status"),
    [
        ("clarabel", {"max_iter": 3}, fo.Status.FEASIBLE),
        ("scs", {"max_iters": 3}, fo.Status.LIMIT),
        ("osqp", {"max_iter": 3, "polishing": False}, fo.Status.LIMIT),
    ],
)
def test_iteration_limit(name: str, option: dict[str, Any], status: fo.Status) -> None:
    m, x = _small()
    s = m.solve(name, options=option)
    assert s.status is status
    if status is fo.Status.FEASIBLE:
        assert s.bound == -np.inf
        assert s.objective >= m.solve("clarabel").objective - 1e-6
        assert s[x].sum() >= 4 - 1e-5


@pytest.mark.parametrize("name", NAMED)
def test_time_limit(name: str) -> None:
    model = _large()
    model.solve(name, time_limit=0)  # the import is not what is measured
    with spends_at_most(30):
        s = model.solve(name, time_limit=0.15)
    assert s.status is fo.Status.LIMIT


def test_spelling_of_options() -> None:
    options = SolveOptions(
        time_limit=3, gap=0.1, seed=4, threads=2, extra={"verbose": 0, "scip_params": {"a": 1}}
    )
    scip = get_backend("cvxpy:SCIP") if "cvxpy:SCIP" in families()["cvxpy"] else Cvxpy("cvxpy:SCIP", "SCIP")
    assert scip.settings(options) == {  # type: ignore[attr-defined]
        "verbose": 0,
        "scip_params": {
            "limits/time": 3,
            "limits/gap": 0.1,
            "randomization/randomseedshift": 4,
            "parallel/maxnthreads": 2,
            "a": 1,
        },
    }
    clarabel = Cvxpy("clarabel", "CLARABEL").settings(SolveOptions(time_limit=3, gap=0.1, seed=4, threads=2))
    assert clarabel == {
        "accept_unknown": True,
        "time_limit": 3,
        "max_threads": 2,
    }  # nothing else would change a thing
    staged = Cvxpy("clarabel", "CLARABEL").settings(SolveOptions(extra={"tol_feas": 1e-7}), tight=True)
    assert staged["tol_gap_abs"] == staged["tol_gap_rel"] == 1e-12  # later stages build on earlier ones
    assert staged["reduced_tol_gap_rel"] == 1e-8
    assert staged["tol_feas"] == 1e-7
    with pytest.raises(fo.UnsupportedError, match="time_limit has no translation for ECOS"):
        Cvxpy("cvxpy:ECOS", "ECOS").settings(SolveOptions(time_limit=3))
    with pytest.raises(fo.UnsupportedError, match="seed has no translation for DAQP"):
        Cvxpy("cvxpy:DAQP", "DAQP").settings(SolveOptions(seed=3))


def test_family_reads_what_a_solver_takes() -> None:
    def kinds(solver: str) -> set[str]:
        return set(Cvxpy(f"cvxpy:{solver}", solver).capabilities.kinds)

    cones = {"second_order", "exponential", "power_cone", "semidefinite_cone"}
    assert (
        kinds("CLARABEL") == set(backends()["clarabel"].capabilities.kinds) == {"rows", "quadratic"} | cones
    )
    assert kinds("SCS") == set(backends()["scs"].capabilities.kinds)
    assert kinds("OSQP") == set(backends()["osqp"].capabilities.kinds)
    assert kinds("ECOS") == {"rows", "second_order", "exponential"}
    assert kinds("SCIP") == {"rows", "integer", "second_order"}
    highs = Cvxpy("cvxpy:HIGHS", "HIGHS").capabilities
    assert highs.kinds == {"rows", "integer", "quadratic"}
    assert highs.conflicts == (frozenset({"integer", "quadratic"}),)
    assert kinds("GUROBI") == {"rows", "integer", "quadratic", "second_order"}
    assert not Cvxpy("cvxpy:GUROBI", "GUROBI").capabilities.conflicts


def test_family_names() -> None:
    assert get_backend("cvxpy:clarabel").name == "cvxpy:clarabel"
    assert "cvxpy:CLARABEL" in families()["cvxpy"]
    with pytest.raises(fo.UnknownNameError, match="did you mean 'CLARABEL'"):
        get_backend("cvxpy:CLARABLE")
    if "cvxpy:MOSEK" not in families()["cvxpy"]:
        with pytest.raises(fo.NotInstalledError, match="pip install cvxpy mosek"):
            get_backend("cvxpy:MOSEK")


def test_mixed_integer_cone() -> None:
    """The lattice point within 2 of (0.4, 0.4) that is farthest to the upper right."""
    if "cvxpy:SCIP" not in families()["cvxpy"]:
        pytest.skip("pyscipopt is not installed")
    m = fo.Model()
    x = m.variable("x", 2, lower=-5, upper=5, integer=True)
    m.subject_to(fo.norm(x - 0.4) <= 2.0)
    m.maximize(x[0] + 1.5 * x[1])
    s = m.solve("cvxpy:SCIP")
    assert s[x].tolist() == [1, 2]
    assert s.objective == pytest.approx(4)
    assert s.bound == pytest.approx(4, abs=1e-6)


def test_unproved_ray_is_checked() -> None:
    """SCS calls this model unbounded; no point satisfies it."""
    m = fo.Model()
    x = m.variable("x", 2, lower=0)
    m.subject_to(x[0] - x[1] <= -1, x[1] - x[0] <= -1)
    m.maximize(x.sum())
    s = m.solve("scs")
    assert s.message == "SCS: unbounded"
    assert s.status is fo.Status.INFEASIBLE


def test_infeasible_cone() -> None:
    m = fo.Model()
    x = m.variable("x", 2)
    m.subject_to(fo.norm(x) <= 1, x.sum() >= 1.5)
    m.minimize(x[0])
    for name in ("clarabel", "scs"):
        assert m.solve(name).status is fo.Status.INFEASIBLE


def test_unbounded_cone() -> None:
    m = fo.Model()
    x = m.variable("x", 2)
    m.subject_to(fo.norm(x[:1] - 2) <= x[1])
    m.maximize(x[0])
    for name in ("clarabel", "scs"):
        assert m.solve(name).status is fo.Status.UNBOUNDED


# -- export ----------------------------------------------------------------------------------------


def test_export_keeps_the_models_sense() -> None:
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=3)
    m.subject_to(x.sum() <= 4, 0 * x[0] <= 1)
    m.maximize(2 * x[0] + x[1] - fo.sum_squares(x) / 4 + 1)
    problem = m.to_cvxpy()
    assert isinstance(problem, cp.Problem)
    assert isinstance(problem.objective, cp.Maximize)
    # Without the row x1 = 3 (its bound) and x2 = 2; the row leaves (3, 1).
    assert problem.solve(solver="CLARABEL") == pytest.approx(m.solve("clarabel").objective, abs=1e-6)
    (variable,) = problem.variables()
    assert variable.name() == "x" and variable.value[:2] == pytest.approx([3, 1], abs=1e-3)


def test_export_with_cones_and_integers() -> None:
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=3)
    k = m.variable("k", integer=True, lower=0, upper=9)
    m.subject_to(fo.exp(x[0]) + fo.power(x[1], 3) + fo.norm(x) <= k)
    m.minimize(k - x.sum())
    problem = m.to_cvxpy()
    assert problem.is_mixed_integer() and problem.is_dcp()
    assert {type(c) for c in problem.constraints} >= {cp.SOC, cp.ExpCone, cp.PowCone3D}


def test_export_tells_an_empty_row() -> None:
    m = fo.Model()
    x = m.variable("x", 2, lower=0)
    m.subject_to(0 * x[0] >= 1)
    m.minimize(x.sum())
    problem = m.to_cvxpy()
    problem.solve(solver="CLARABEL")
    assert problem.status == cp.INFEASIBLE


def test_mpax() -> None:
    pytest.importorskip("mpax")
    m = fo.Model()
    x = m.variable("x", 3, lower=0)
    m.subject_to(x.sum() >= 2, x[0] + 2 * x[1] <= 3)
    m.minimize(x @ [1.0, 2.0, 3.0])
    s = m.solve("cvxpy:MPAX")
    assert s.status is fo.Status.OPTIMAL and s.objective == pytest.approx(2.0, abs=1e-4)
    assert "MPAX" in s.message
