"""What solvers claim of linear programs is checked; wrong claims are found on every backend."""

import numpy as np
import pytest
from scipy.optimize import linprog

import forcopt as fo
from forcopt.backends import backends, get_backend
from forcopt.backends.base import RawResult, SolveOptions
from forcopt.clock import Deadline
from forcopt.compile.compiler import Capabilities, compile_model
from forcopt.compile.scaling import scaling_of, without_dust
from forcopt.fairness import PredictiveValues
from forcopt.loops.checks import Claim, Confirmed
from forcopt.loops.checks.integers import no_better_integers, no_integers_found
from forcopt.loops.checks.multipliers import dual_bound, infeasibility_doubt, optimality_doubt
from forcopt.models.fair_postprocessing import FairPostprocessing

LINEAR = [
    name
    for name, backend in backends().items()
    if backend.missing() is None and not backend.capabilities.only_integer and name != "pyscipopt"
]
EXACT = [name for name in LINEAR if backends()[name].accuracy <= 1e-6 and name != "pyomo:ipopt"]
"""Backends accurate enough for a relative error of 1e-6."""


def tiny_and_bounded():
    m = fo.Model("tiny")
    x = m.variable("x", lower=0, upper=1e11)
    m.subject_to(5e-10 * x >= 2.5)
    m.minimize(x)
    return m, 5e9


def tiny_and_free():
    m = fo.Model("tiny")
    x = m.variable("x")
    m.subject_to(5e-10 * x >= 2.5)
    m.minimize(x)
    return m, 5e9


def tiny_beside_one():
    m = fo.Model("tiny")
    x = m.variable("x", 2, lower=0, upper=[1e7, 10])
    m.subject_to(9e-10 * x[0] + x[1] >= 1, name="mix")
    m.minimize(1e-3 * x[0] + 2e6 * x[1])
    return m, 1_992_000


@pytest.mark.parametrize("backend", EXACT)
@pytest.mark.parametrize("case", [tiny_and_bounded, tiny_and_free, tiny_beside_one])
def test_small_coefficients_count(case, backend):
    m, best = case()
    s = m.solve(backend)
    assert s.status == "optimal"
    assert s.objective == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("backend", ["highs", "highs:ipm", "glop", "clarabel"])
def test_duals_are_those_of_the_model_as_written(backend):
    m, _ = tiny_beside_one()
    s = m.solve(backend)
    assert s.dual(m.constraints[0]) == pytest.approx(2e6, rel=1e-5)
    found = s.reduced_cost(m.variables[0])
    np.testing.assert_allclose(found, [1e-3 - 9e-10 * 2e6, 0], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("backend", ["highs", "gscip"])
def test_integer_columns_keep_their_unit(backend):
    m = fo.Model("mix")
    x = m.variable("x", lower=0, upper=1e9, integer=True)
    y = m.variable("y", lower=0, upper=0.05)
    m.subject_to(3e-10 * x + y >= 0.1)
    m.minimize(x + 1e6 * y)
    s = m.solve(backend)
    assert s.status == "optimal"
    assert s[x] == pytest.approx(np.ceil(0.05 / 3e-10), abs=1e-6 / 3e-10)
    assert s[x] == np.round(s[x])
    assert s[y] == pytest.approx(0.05)


def test_a_false_infeasible_of_an_integer_program(monkeypatch):
    from forcopt.backends.base import RawResult
    from forcopt.backends.highs import HighsSession

    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=4, integer=True)
    m.subject_to(2 * x.sum() == 6)
    m.minimize(x[0])
    solve = HighsSession.solve

    def lying(self, options):
        if self.program.is_integer and not options.extra:
            return RawResult(fo.Status.INFEASIBLE, message="HiGHS: Infeasible")
        return solve(self, options)

    monkeypatch.setattr(HighsSession, "solve", lying)
    s = m.solve("highs")
    assert s.status is fo.Status.OPTIMAL and "satisfies all rows, bounds and integers" in s.message
    m.subject_to(2 * x[0] + 4 * x[1] == 5)
    assert m.solve("highs").status is fo.Status.INFEASIBLE


def test_a_coefficient_that_no_scaling_brings_into_range_is_an_error():
    m = fo.Model("far")
    x = m.variable("x", 2, lower=0, upper=1e13, integer=True)
    m.subject_to(1e-20 * x[0] + x[1] >= 1, name="mix")
    m.subject_to(x[0] + 1e-20 * x[1] >= 1, name="other")
    m.minimize(x.sum())
    with pytest.raises(fo.UnsupportedError, match=r"row mix holds the coefficient 1e-20 of x\[0\]"):
        m.solve("highs")


def test_dust_is_dropped_and_data_are_kept():
    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=[1, 1, 1e12])
    m.subject_to(1e-17 * x[0] + x[1] >= 0.5, 1e-13 * x[2] + x[1] >= 0.5, 1e-17 * x[0] >= -1)
    m.minimize(x.sum())
    program = compile_model(m, Capabilities(frozenset({"rows"})))
    clean, found = without_dust(program)
    assert found == 2
    assert sorted(clean.rows.data.tolist()) == [1e-13, 1, 1]
    scaling = scaling_of(clean, 1e-9)
    assert np.abs(scaling.program(clean).rows.data).min() > 1e-9
    for factors in (scaling.rows, scaling.columns):
        assert (np.log2(factors) == np.round(np.log2(factors))).all()
    assert scaling_of(clean, 0.0) is None


@pytest.mark.parametrize("backend", LINEAR)
def test_an_unbounded_program_that_presolve_takes_for_infeasible(backend):
    rows = np.array([[-4, 3, 0, 0], [0, 1, 1, 1], [-4, -2, -4, 0], [-3, 0, 0, 0], [0, 0, 4, -2]], dtype=float)
    low, high = [5, *[-np.inf] * 4], [np.inf, 3, -5, -3, 7]
    point = np.array([1, 3, -1.25, -6])
    assert (rows @ point >= low).all() and (rows @ point <= high).all()
    m = fo.Model()
    x = m.variable("x", 4)
    m.subject_to((rows @ x).between(low, high))
    m.minimize(3 * x[0] + 5 * x[2] + 4 * x[3])
    assert m.solve(backend).status == "unbounded"


@pytest.fixture
def lie(monkeypatch):
    """Make HiGHS's first answer another one."""
    from forcopt.backends.highs import HighsSession

    real = HighsSession.solve

    def install(change):
        done = []

        def solve(session, options):
            result = real(session, options)
            if done:
                return result
            done.append(True)
            return change(result)

        monkeypatch.setattr(HighsSession, "solve", solve)

    return install


def transport():
    m = fo.Model("transport")
    x = m.variable("x", (3, 4), lower=0)
    m.subject_to(x.sum(axis=1) <= [4, 5, 6], x.sum(axis=0) >= [1, 2, 3, 4])
    m.minimize((np.arange(1, 13).reshape(3, 4) * x).sum())
    return m


def test_a_false_infeasible_is_solved_again_without_presolve(lie):
    best = transport().solve().objective
    lie(lambda result: RawResult(fo.Status.INFEASIBLE, message="a lie"))
    s = transport().solve()
    assert (s.status, s.objective) == ("optimal", pytest.approx(best))
    assert "a lie; but a point satisfies all rows and bounds; solved again with scaling" in s.message


def test_a_false_optimum_is_solved_again(lie):
    def worse(result):
        x = result.x + 0.2
        return RawResult(fo.Status.OPTIMAL, x=x, row_dual=result.row_dual, bound=-9.0, message="a lie")

    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=4)
    m.subject_to(x.sum() >= 1)
    m.minimize(2 * x[0] + 3 * x[1])
    lie(worse)
    s = m.solve()
    assert (s.status, s.objective, s.bound) == ("optimal", 2, 2)
    assert "its multipliers leave a gap" in s.message


def test_a_point_without_proof_beyond_the_tolerance_is_solved_again(lie):
    """A point that a solver calls feasible, in the units of a scaled program."""
    lie(lambda result: RawResult(fo.Status.FEASIBLE, x=result.x - 1e-5, message="stuck"))
    m = fo.Model()
    x = m.variable("x", lower=1)
    m.minimize(x)
    s = m.solve()
    assert (s.status, s.objective) == ("optimal", 1)
    assert "stuck; but its point violates a row or bound" in s.message


def test_clarabel_gets_stuck_in_a_scaled_program():
    """Its point met the scaled rows, the one without scales did not: feasible at 0.484 of 0.634."""
    counts = np.array([[[4, 8], [8, 2], [1, 6]], [[0, 6], [2, 0], [0, 4]]]) * 100_000 + 1
    problem = FairPostprocessing(counts=counts, constraint=PredictiveValues(positive=1.0, negative=0.0))
    s = problem.solve("lp", backend="clarabel")
    assert (s.status, s.objective) == ("optimal", pytest.approx(0.634145949))


def test_a_false_unbounded_is_solved_again(lie):
    best = transport().solve().objective
    lie(lambda result: RawResult(fo.Status.UNBOUNDED, message="a lie"))
    s = transport().solve()
    assert (s.status, s.objective) == ("optimal", pytest.approx(best))
    assert "no direction" in s.message


@pytest.mark.parametrize("seed", range(40))
def test_farkas_proofs_agree_with_scipy(seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-3, 4, (5, 4)).astype(float)
    low = np.where(rng.random(5) < 0.6, rng.integers(-4, 5, 5), -np.inf)
    high = np.maximum(low, np.where(rng.random(5) < 0.6, rng.integers(-4, 5, 5), np.inf))
    m = fo.Model()
    x = m.variable("x", 4, lower=np.where(rng.random(4) < 0.5, 0, -np.inf), upper=3)
    m.subject_to((rows @ x).between(low, high))
    m.maximize(x.sum())
    program = compile_model(m, Capabilities(frozenset({"rows"})))
    a = np.vstack([rows[np.isfinite(high)], -rows[np.isfinite(low)]])
    b = np.concatenate([high[np.isfinite(high)], -low[np.isfinite(low)]])
    bounds = list(zip(program.lower, program.upper, strict=True))
    truth = linprog(np.zeros(4), A_ub=a, b_ub=b, bounds=bounds).status == 2 if len(b) else False
    assert (infeasibility_doubt(program, SolveOptions(), 1e-6) == "") == truth
    assert (m.solve("glop").status == "infeasible") == truth


def test_dual_bounds_are_bounds():
    m = transport()
    s = m.solve()
    program = compile_model(m, Capabilities(frozenset({"rows"})))
    rng = np.random.default_rng(0)
    cost = program.stages[0].cost
    for scale in (0.1, 10.0):
        bound, error = dual_bound(program, s.row_dual + scale * rng.standard_normal(7), cost)
        assert bound <= s.objective + error
    bound, error = dual_bound(program, s.row_dual, cost)
    assert bound == pytest.approx(s.objective) and error < 1e-12
    result = RawResult(fo.Status.OPTIMAL, x=s.point, row_dual=s.row_dual)
    assert optimality_doubt(program, result, 1e-9) == ""
    result.row_dual = s.row_dual + 0.5
    assert "leave a gap" in optimality_doubt(program, result, 1e-4)


@pytest.mark.parametrize("backend", EXACT)
def test_rounding_dust_does_not_mislead_a_solver(backend):
    from forcopt.models import CalibratedEqualErrors

    first = [[0.1, 0.15, 1.0], [1 / 9, 5 / 9, 1 / 3]]
    second = [[0.05, 0.55, 0.65, 0.7], [0.4, 0.1, 0.1, 0.4]]
    p = CalibratedEqualErrors(scores={"g0": first, "g1": second}, cutoff=0.7, margin=0.001)
    s = p.solve("lp", backend=backend)
    assert s.status == "optimal"
    assert s.objective == pytest.approx(0.4194189, abs=1e-5)


@pytest.mark.parametrize("backend", ["highs", "gscip", "scip", "pyomo:glpk"])
def test_unbounded_integer_programs(backend):
    m = fo.Model()
    x = m.variable("x", 2, lower=0, integer=True)
    m.subject_to(x[0] - x[1] <= 3)
    m.maximize(x[0] + x[1])
    assert m.solve(backend).status == "unbounded"


def far_quadratic():
    m = fo.Model("far")
    x = m.variable("x", 2, lower=-1e6, upper=1e6)
    inside = fo.stack([0.001 * x[0] - 0.002 * x[1] - 1, -0.001 * x[0] + 0.001 * x[1] - 1])
    m.minimize(fo.sum_squares(inside) + 4 * x[1])
    return m


@pytest.mark.parametrize("backend", ["highs", "clarabel", None])
def test_a_quadratic_optimum_is_proved_by_its_tangent(backend):
    s = far_quadratic().solve(backend)
    assert s.status == "optimal"
    assert s.objective == pytest.approx(-3001997.99, rel=1e-6)


@pytest.mark.parametrize(
    ("build", "backend"),
    [
        (lambda x: x.sum(), "highs"),
        (lambda x: fo.abs(x - 1).sum(), "highs"),
        (lambda x: fo.sum_squares(x - 1), "clarabel"),
        (lambda x: fo.norm(x), "clarabel"),
    ],
)
def test_the_kind_of_model_chooses_the_backend(build, backend):
    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=4)
    m.subject_to(x.sum() >= 1)
    m.minimize(build(x))
    s = m.solve()
    assert (s.status, s.backend) == ("optimal", backend)


def test_mixed_integer_quadratic_models_go_to_scip():
    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=4, integer=True)
    m.minimize(fo.sum_squares(x - 1.4))
    s = m.solve()
    assert (s.status, s.backend) == ("optimal", "scip")
    assert s[x].tolist() == [1, 1, 1]


@pytest.mark.parametrize("backend", EXACT)
@pytest.mark.parametrize("seed", range(3))
def test_small_rows_hold_beside_large_ones(backend, seed):
    # A solver whose tolerance is relative to the largest right-hand side neglects the small rows.
    rng = np.random.default_rng(seed)
    m = fo.Model()
    x = m.variable("x", 30, lower=0)
    matrix = rng.integers(1, 9, size=(12, 30)) * (rng.random((12, 30)) < 0.4)
    point = rng.integers(0, 4, size=30)
    far = m.variable("far", lower=0)
    m.subject_to(matrix @ x == matrix @ point, far >= 3e4, far + x.sum() <= 5e4)
    cost = rng.integers(1, 9, size=30)
    m.minimize(cost @ x + 1e-3 * far)
    s = m.solve(backend)
    best = linprog(cost, A_eq=matrix, b_eq=matrix @ point).fun + 30
    assert s.status == "optimal"
    assert s.violation <= 1e-6
    assert s.objective == pytest.approx(best, rel=1e-6)


def test_an_infeasibility_that_only_exact_multipliers_prove():
    # Like netlib's vol1: the multipliers of floating-point simplex leave noise on free columns.
    rng = np.random.default_rng(4)
    m = fo.Model()
    x = m.variable("x", 20)
    rows = rng.normal(size=(20, 20)) * 10.0 ** rng.integers(-4, 5, size=(20, 1))
    m.subject_to(rows @ x == rng.normal(size=20), (rows[:3].sum(axis=0)) @ x >= 1e3)
    program = compile_model(m, Capabilities(frozenset({"rows"})))
    assert infeasibility_doubt(program, SolveOptions(), 1e-6) == ""


OTHER_NAMES = ["highs", "pyomo:appsi_highs", "pyomo:cbc", "cvxpy:HIGHS", "cvxpy:SCIPY"]


@pytest.mark.parametrize("backend", OTHER_NAMES)
def test_a_false_infeasible_of_highs_under_another_name(backend):
    """HiGHS calls this program infeasible without scaling; CBC gives a point that violates a row."""
    m = fo.Model()
    x, b = m.variable("x", lower=0, upper=1e7, integer=True), m.variable("b", 3, binary=True)
    m.subject_to(x <= 1e7 * b[0], b[0] <= 1, b.sum() <= 2, x >= 3)
    m.minimize(1000 * b.sum() + x)
    s = m.solve(backend)
    assert (s.status, s.objective) == (fo.Status.OPTIMAL, 1003)


def test_an_infeasible_quadratic_program_with_a_ray():
    """Clarabel stops at a ray of the objective, though no point is feasible."""
    m = fo.Model()
    x = m.variable("x", 2)
    m.subject_to(x[0] >= 1, x[0] <= 0)
    m.minimize(fo.sum_squares(x[:1]) - x[1])
    for backend in ("clarabel", "highs", "osqp"):
        assert m.solve(backend).status == "infeasible", backend


def test_whole_rows_hold_exactly():
    """A row of integers that is off by 1 at 2e9 is violated, however small that is relative to 2e9."""
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=2e9, integer=True)
    y = m.variable("y", lower=0, upper=2e9)
    m.subject_to(x.sum() <= 1999999999, x.sum() + y <= 1999999999, 0.5 * x.sum() <= 999999999.5)
    program = compile_model(m, Capabilities(frozenset({"rows", "integer"})), "any")
    assert program.violation(np.array([2e9, 0, 0])) == 1
    assert program.violation(np.array([1999999999, 1e-9, 0])) < 1e-8
    assert 0 < program.violation(np.array([1999999999, 0, 1.0])) < 1e-9


def test_a_better_point_than_a_claimed_optimum_is_found():
    m = fo.Model()
    x = m.variable("x", lower=1, upper=2, integer=True)
    y = m.variable("y", lower=1, upper=5, integer=True)
    b, t, h = m.variable("b", binary=True), m.variable("t", 2, binary=True), m.variable("h", 3, binary=True)
    p, a = m.variable("p", lower=-3, upper=0), m.variable("a", lower=0, upper=6)
    q = m.variable("q", lower=-6, upper=0)
    m.subject_to(x - b - 3 * t[0] + 2 * t[1] == 0, h.sum() >= 1)
    m.subject_to(p - 3 * b >= -3, p - 6 * b <= -3, 2 * p - 3 * b + a >= -3, a + 3 * b - 2 * p >= 3)
    m.subject_to(q - 6 * b >= -6, q - b <= -1, q + 2 * x - 3 * b <= 1)
    m.subject_to(a - y + 4 * h[0] <= 5, 2 * x + y - 3 * b + 17 * h[1] <= 17, y + 3 * b + 7 * h[2] <= 12)
    m.maximize(q)
    for backend in ("highs", "pyomo:appsi_highs", "scip"):  # HiGHS 1.13.1 by itself stops at -1
        s = m.solve(backend)
        assert (s.status, s.objective, s.bound) == ("optimal", 0, 0)
    program = compile_model(m, get_backend("highs").capabilities, "highs", {})
    wrong = np.append(np.zeros(10), -1.0)
    for backend, gap, known in (("highs", None, False), ("scip", None, False), ("highs", 1.0, True)):
        result = RawResult(fo.Status.OPTIMAL, wrong)
        claim = Claim(m, program, get_backend(backend), SolveOptions(gap=gap), Deadline(), result, (result,))
        found = no_better_integers(program, claim)
        if known:
            assert isinstance(found, Confirmed)
        else:
            assert found.reason == "a point of value 0 satisfies all rows, bounds and integers"


@pytest.mark.parametrize("backend", LINEAR)
def test_a_slow_ray_beside_large_costs_is_unbounded(backend):
    """Its multiplier toward the infinite bound is small beside the value, and still no optimum exists."""
    for large in (1e3, 1e6):
        for slope in (1e-2, 1e-5):
            m = fo.Model()
            x, y = m.variable("x", lower=0, upper=1), m.variable("y", 2, lower=0)
            m.subject_to(y[0] - y[1] <= 1)
            m.maximize(large * x + slope * y[0])
            s = m.solve(backend)
            assert s.status == "unbounded", (large, slope, s.message)


@pytest.mark.parametrize("backend", LINEAR)
def test_a_slow_way_to_a_far_optimum_is_gone_to_its_end(backend):
    """The row that ends it is far away: a small multiplier toward an infinite bound hides half the value."""
    m = fo.Model()
    x, y = m.variable("x", lower=0, upper=1), m.variable("y", 3, lower=0, upper=[np.inf, np.inf, 1e6])
    m.subject_to(y[0] - y[1] <= 1, y[1] - y[2] <= 0)
    m.maximize(1e3 * x + 1e-3 * y[0])
    s = m.solve(backend)
    if s.status == "optimal":
        assert s.objective == pytest.approx(2000.001, rel=2 * backends()[backend].accuracy)
    else:  # a solver may stop before it
        assert s.status in ("feasible", "limit", "failed")


def test_an_unbounded_program_whose_large_rows_hide_the_ray():
    """HiGHS by itself ends at -1000.001 as optimal."""
    for size, slope in ((1e4, 1e-3), (1e6, 1e-1), (1e7, 1e-4)):
        m = fo.Model()
        x, z = m.variable("x", lower=-1, upper=1), m.variable("z", lower=0)
        m.subject_to(size * x + size * z >= 1)
        m.minimize(1000 * x - slope * z)
        assert m.solve().status == "unbounded", (size, slope)


@pytest.mark.parametrize("backend", ["highs", "clarabel", "osqp", "scs"])
def test_a_slow_ray_of_a_quadratic_program_is_unbounded(backend):
    m = fo.Model()
    x, y = m.variable("x", lower=0, upper=1), m.variable("y", 2, lower=0)
    m.subject_to(y[0] - y[1] <= 1)
    m.minimize(fo.sum_squares(x - 0.5) - 1e3 * x - 1e-6 * y[0])
    assert m.solve(backend).status == "unbounded"


@pytest.mark.parametrize("seed", range(10))
def test_an_error_of_rounding_proves_no_infeasibility(seed):
    """A row that holds up to its last bit: the multipliers' bound is positive, by less than its error."""
    values = np.random.default_rng(seed).random(12) - 0.5
    m = fo.Model()
    x = m.variable("x", 12, lower=values, upper=values)
    y = m.variable("y", lower=0)
    side = float(values.sum())
    m.subject_to((x.sum() - y).between(side, side), y <= 0)
    program = compile_model(m, Capabilities(frozenset({"rows"})))
    assert infeasibility_doubt(program, SolveOptions(), 1e-6) == "a point satisfies all rows and bounds"


def box(cost, lower, upper):
    """A program of one row ``x0 + x1 between -9 and 9`` over a box."""
    m = fo.Model()
    x = m.variable("x", 2, lower=lower, upper=upper)
    m.subject_to(x.sum().between(-9, 9))
    m.minimize(np.array(cost) @ x)
    program = compile_model(m, Capabilities(frozenset({"rows"})))
    return program, program.stages[0].cost


def test_a_dual_bound_takes_the_worse_end_and_none_that_is_infinite():
    program, cost = box([1.0, -2.0], [1, 0], [3, 4])
    assert dual_bound(program, np.zeros(1), cost)[0] == 1 - 8
    assert dual_bound(program, np.ones(1), np.ones(2))[0] == -9
    assert dual_bound(program, -np.ones(1), -np.ones(2))[0] == -9
    program, cost = box([1.0, -2.0], 0, np.inf)
    assert dual_bound(program, np.zeros(1), cost)[0] == -np.inf


def test_only_points_that_satisfy_everything_refute_claims_on_integers(monkeypatch):
    """Another solver's point that breaks a row, or is no better, leaves no doubt."""
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=5, integer=True)
    m.subject_to(x.sum() >= 3)
    m.minimize(x.sum())
    program = compile_model(m, Capabilities(frozenset({"rows", "integer"})))
    told = {}

    class Told:
        def add_rows(self, rows):
            pass

        def solve(self, options):
            return RawResult(fo.Status.FEASIBLE, x=told["x"])

    def claim_of(backend, status, x=None):
        result = RawResult(status, x)
        return Claim(m, program, get_backend(backend), SolveOptions(), Deadline(), result, (result,))

    monkeypatch.setattr("forcopt.loops.checks.integers.open_session", lambda backend, program: Told())
    for point, doubted in (([0.0, 1.0], False), ([0.0, 3.0], True)):
        told["x"] = np.array(point)
        found = no_integers_found(program, claim_of("gscip", fo.Status.INFEASIBLE))
        assert isinstance(found, Confirmed) != doubted
    for claimed, point, doubted in ((3.0, 0.0, False), (3.0, 3.0, False), (5.0, 3.0, True)):
        told["x"] = np.array([0.0, point])
        claim = claim_of("highs", fo.Status.OPTIMAL, np.array([0.0, claimed]))
        assert isinstance(no_better_integers(program, claim), Confirmed) != doubted, (claimed, point)
