import time
from dataclasses import replace

import highspy
import numpy as np
import pytest
from scipy import sparse

import forcopt as fo
from forcopt.backends import SolveOptions, get_backend
from forcopt.backends.highs import _check_run
from forcopt.compile.compiler import compile_model

ERROR, OK = highspy.HighsStatus.kError, highspy.HighsStatus.kOk


class Stumbling:
    """Fails so many times, as HiGHS now and then does when it continues from a nearly singular basis."""

    def __init__(self, failures):
        self.failures, self.cleared = failures, 0

    def run(self):
        self.failures -= 1
        return ERROR if self.failures >= 0 else OK

    def getModelStatus(self):
        return highspy.HighsModelStatus.kNotset if self.failures >= 0 else highspy.HighsModelStatus.kOptimal

    def getModel(self):
        return "the model"

    def clearModel(self):
        self.cleared += 1

    def passModel(self, model):
        assert model == "the model"

    def modelStatusToString(self, status):
        return status.name


def test_a_run_that_stumbles_starts_once_more_without_the_basis():
    solver = Stumbling(1)
    _check_run(solver)
    assert solver.cleared == 1
    fine = Stumbling(0)
    _check_run(fine)
    assert fine.cleared == 0


def test_a_run_that_fails_twice_is_an_error_in_its_own_words():
    with pytest.raises(fo.BackendError, match="HiGHS: kNotset"):
        _check_run(Stumbling(2))


@pytest.mark.parametrize("integer", [True, False])
def test_a_limit_is_that_of_each_run(integer):
    """HiGHS counts some limits anew in each run, and others over all runs of an instance."""
    rng = np.random.default_rng(0)
    m = fo.Model()
    if integer:  # a market split, which takes hours
        x = m.variable("x", 40, binary=True)
        weights = rng.integers(0, 100, (5, 40))
        apart = m.variable("apart", (5, 2), lower=0)
        m.subject_to(weights @ x + apart[:, 0] - apart[:, 1] == weights.sum(axis=1) // 2)
        m.minimize(apart.sum())
    else:
        x = m.variable("x", 4000, lower=0)
        m.subject_to(sparse.random_array((4000, 4000), density=0.005, rng=rng) @ x >= rng.random(4000))
        m.minimize(rng.random(4000) @ x)
    backend = get_backend("highs" if integer else "highs:simplex")
    session = backend.session(compile_model(m, backend.capabilities))
    for _ in range(3):
        session.highs.clearSolver()
        began = time.perf_counter()
        result = session.solve(SolveOptions(time_limit=0.6))
        assert result.status in ("limit", "feasible")
        assert time.perf_counter() - began > 0.4  # each run has the whole limit


def test_options_that_change_between_solves_are_passed_on():
    m = fo.Model()
    m.minimize(m.variable("x", lower=1))
    highs = get_backend("highs")
    session = highs.session(compile_model(m, highs.capabilities, "highs"))

    def held(name):
        return session.highs.getOptionValue(name)[1]

    extra = {"simplex_iteration_limit": 7}
    for limit in (7, 9):
        extra["simplex_iteration_limit"] = limit  # the same mapping
        session.solve(SolveOptions(extra=extra))
        assert held("simplex_iteration_limit") == limit
    session.solve(SolveOptions(time_limit=60.0))
    assert 60.0 <= held("time_limit") < 120.0
    session.solve(SolveOptions(seed=5, gap=0.5))
    assert held("time_limit") == float("inf")
    assert (held("random_seed"), held("mip_rel_gap")) == (5, 0.5)
    session.solve(SolveOptions())
    assert held("mip_rel_gap") == 0.0


def strategy(session):
    return session.highs.getOptionValue("simplex_strategy")[1]


def session_of(model):
    return get_backend("highs").session(compile_model(model, get_backend("highs").capabilities))


def test_only_linear_programs_of_one_stage_go_on_from_a_feasible_basis():
    """The first solve runs the dual simplex, and later ones the simplex that fits the basis."""
    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=2)
    m.subject_to(x.sum() >= 2)
    m.minimize(fo.stack([x[0], 2 * x[1], 3 * x[2]]).sum())
    session = session_of(m)
    assert strategy(session) == 1
    session.solve(SolveOptions())
    assert strategy(session) == 0
    chosen = session_of(m)
    chosen.solve(SolveOptions(extra={"simplex_strategy": 4}))
    assert strategy(chosen) == 4

    m.lexicographic([fo.minimize(x.sum()), fo.minimize(x[0])])
    staged = session_of(m)
    staged.solve(SolveOptions())
    m.minimize(x.sum())
    m.variable("y", binary=True)
    integer = session_of(m)
    integer.solve(SolveOptions())
    assert strategy(staged) == strategy(integer) == 1


def test_interior_points_begin_each_run_without_the_data_of_the_run_before(monkeypatch):
    """HiGHS 1.16 ended the process when a clean-up by the simplex method found data of an earlier run."""
    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=2)
    m.subject_to(x.sum() >= 2)
    m.minimize([1, 2, 3] @ x)
    for name, clears in (("highs:ipm", 2), ("highs[solver=ipx]", 2), ("highs", 0), ("highs:simplex", 0)):
        backend, cleared = get_backend(name), []
        session = backend.session(compile_model(m, backend.capabilities))
        monkeypatch.setattr(session.highs, "clearSolver", lambda seen=cleared: seen.append(1))
        assert [session.solve(SolveOptions()).objective for _ in range(2)] == pytest.approx([2, 2])
        assert len(cleared) == clears


def test_a_new_constant_of_the_objective_moves_the_bound_of_a_search():
    m = fo.Model()
    fee = m.parameter("fee", value=1.0)
    x = m.variable("x", 3, integer=True, lower=0, upper=9)
    m.subject_to([2, 3, 5] @ x >= 11)
    m.minimize([3, 4, 9] @ x + fee)
    for value in (1.0, 100.0, -50.0):
        fee.value = value
        s = m.solve("highs")
        assert (s.status, s.objective, s.bound) == ("optimal", 15 + value, 15 + value)
        assert all(t.bound <= s.objective <= t.objective for t in s.trace)
    backend = get_backend("highs")
    session = backend.session(compile_model(m, backend.capabilities, "highs"))
    session.solve(SolveOptions())
    session.set_stage(replace(session.program.stages[0], offset=7.0))
    found = session.solve(SolveOptions())
    assert (found.objective, found.bound) == (22, 22)


def test_a_dense_program_is_solved_without_presolve():
    """HiGHS's presolve of a dense matrix looks at no clock, and takes longer than the simplex method."""
    rng = np.random.default_rng(0)
    for density, word in ((1.0, "without presolve"), (0.1, "Presolving model")):
        m = fo.Model()
        x = m.variable("x", 400, lower=0)
        m.subject_to(rng.random((300, 400)) * (rng.random((300, 400)) < density) @ x >= 1)
        m.minimize(rng.random(400) @ x)
        s = m.solve("highs")
        assert s.status is fo.Status.OPTIMAL and word in s.log
        assert m.solve("highs", options={"presolve": "on"}).objective == pytest.approx(s.objective)


def test_a_start_that_is_completed_gives_no_bound():
    # HiGHS reports the bound of the program with the start's values fixed: 101 where the optimum is 63.
    rng = np.random.default_rng(0)
    m = fo.Model()
    x = m.variable("x", 30, lower=0, upper=1, integer=True)
    covers = rng.random((40, 30)) < 0.12
    covers[:, 0] |= ~covers.any(axis=1)
    m.subject_to(covers.astype(float) @ x >= 1)
    m.minimize((rng.integers(3, 9, 30) * x).sum())
    best = m.solve("highs", gap=0).objective
    start, bounds = np.where(np.arange(30) < 12, 1.0, np.nan), []
    m.solve("highs", gap=0, start={x: start}, on_improvement=lambda step: bounds.append(step.bound))
    assert bounds and max(bounds) <= best + 1e-6
