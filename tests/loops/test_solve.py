"""From a model to a judged answer: what is read, what is checked, and what a lying solver meets."""

from __future__ import annotations

import numpy as np
import pytest
from processor_time import spends_at_most, with_a_point

import forcopt as fo
from forcopt.backends.base import Backend, RawResult, Session
from forcopt.backends.registry import _BACKENDS, register_backend
from forcopt.clock import Improvement
from forcopt.compile.compiler import Capabilities
from forcopt.loops.solution import relative_gap


class Fake(Backend):
    """A solver that answers as it is told, each time it is asked."""

    name = "fake"
    through = "nothing"
    install = "nothing"
    capabilities = Capabilities(frozenset({"rows", "integer"}))

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def missing(self):
        return None

    def version(self):
        return "0"

    def session(self, program):
        return FakeSession(program, self)


class FakeSession(Session):
    def __init__(self, program, backend):
        super().__init__(program)
        self.backend = backend

    def solve(self, options):
        self.backend.asked.append((self.program, options))
        return self.backend.answers.pop(0)


@pytest.fixture
def fake():
    def make(*answers):
        return register_backend(Fake(*answers))

    yield make
    _BACKENDS.pop("fake", None)


def answer(status, x=None, **more):
    x = None if x is None else np.array(x, dtype=float)
    return RawResult(fo.Status(status), x=x, message="so I say", **more)


def small(integer=False):
    m = fo.Model("small")
    x = m.variable("x", 2, lower=0, upper=4, integer=integer)
    row = m.subject_to(x[0] + 2 * x[1] <= 6, name="row")
    m.maximize(x[0] + 3 * x[1] + 1)
    return m, x, row


def test_what_is_read():
    m, x, row = small()
    s = m.solve()
    assert s.status == "optimal"
    assert s.objective == s.bound == pytest.approx(10)
    assert s.stages == (s.objective,)
    assert s.gap == 0
    np.testing.assert_allclose(s[x], [0, 3])
    assert s[2 * x.sum() - 1] == pytest.approx(5)
    assert s.dual(row) == pytest.approx(1.5)
    np.testing.assert_allclose(s.reduced_cost(x), [-0.5, 0])
    assert s.values()["x"].tolist() == s[x].tolist()
    assert s.violation == 0
    assert s.backend == "highs"
    assert s.seconds > 0
    assert "optimal" in repr(s)
    m.minimize(-(x[0] + 3 * x[1] + 1))
    s = m.solve()
    assert s.dual(row) == pytest.approx(-1.5)
    np.testing.assert_allclose(s.reduced_cost(x), [0.5, 0])


def test_duals_are_rates_of_change():
    rng = np.random.default_rng(3)
    a, b, c = rng.random((4, 3)), rng.random(4) + 1, rng.random(3)

    def value(b):
        m = fo.Model()
        x = m.variable("x", 3, lower=0)
        rows = m.subject_to(a @ x <= b)
        m.maximize(c @ x)
        s = m.solve()
        return s.objective, s.dual(rows)

    best, dual = value(b)
    for i in range(4):
        assert (value(b + 1e-4 * np.eye(4)[i])[0] - best) / 1e-4 == pytest.approx(dual[i], abs=1e-5)


def test_what_cannot_be_read():
    m, x, row = small(integer=True)
    s = m.solve()
    with pytest.raises(fo.DeclarationError, match=r"no duals"):
        s.dual(row)
    with pytest.raises(fo.DeclarationError, match=r"no reduced costs"):
        s.reduced_cost(x)
    other, y, _ = small()
    with pytest.raises(fo.DeclarationError, match="belongs to model 'small', not to"):
        s[y]
    with pytest.raises(fo.DeclarationError, match=r"not in model"):
        other.solve().dual(row)
    m, x, row = small()
    m.subject_to(x[0] >= 5)
    s = m.solve()
    assert s.status == "infeasible"
    assert np.isnan(s.objective)
    assert s.stages == ()
    with pytest.raises(fo.DeclarationError, match=r"no solution to read"):
        s[x]


def test_some_entries_may_be_integer():
    m = fo.Model()
    x = m.variable("x", (2, 2), lower=0, upper=3.5, integer=[True, False])
    m.maximize(x.sum())
    s = m.solve()
    assert s[x].tolist() == [[3, 3.5], [3, 3.5]]
    assert m.violations(m.point({x: 0.5})) == {"integrality of x": 0.5}
    with pytest.raises(fo.DeclarationError, match=r"integer has shape"):
        m.variable("y", (2, 2), integer=[True, False, True])


def test_without_an_objective():
    m = fo.Model()
    x = m.variable("x", 2, lower=1)
    m.subject_to(x.sum() == 5)
    s = m.solve()
    assert s.status == "optimal"
    assert s.objective == 0
    assert s[x].sum() == pytest.approx(5)


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("x", [[0, 4], [4, 4], [-1, 0], [5, 0]])
def test_a_wrong_point_is_solved_again_or_an_error(fake, integer, x):
    m, y, _ = small(integer)
    fake(answer("optimal", x))
    s = m.solve("fake")
    assert (s.status, s.objective) == ("optimal", m.solve().objective)
    assert "so I say; but its point violates a row or bound by" in s.message
    assert "solved again by highs" in s.message
    m.lexicographic([fo.maximize(y[0] + 4 * y[1]), fo.minimize(y[0])])  # no other solver is asked
    fake(answer("optimal", x), answer("optimal", x))
    with pytest.raises(fo.BackendError, match=r"fake claims a point that violates .* so I say"):
        m.solve("fake")


def test_a_fractional_point_is_an_error(fake):
    m, _, _ = small(integer=True)
    fake(answer("optimal", [0.5, 2]))
    assert "violates a row or bound by 0.5" in m.solve("fake").message
    m.lexicographic([fo.maximize(m["x"][0] + 4 * m["x"][1]), fo.minimize(m["x"][0])])
    fake(answer("optimal", [0.5, 2]), answer("optimal", [0.5, 2]))
    with pytest.raises(fo.BackendError, match=r"integer off by 0\.5"):
        m.solve("fake")
    m, _, _ = small(integer=True)
    fake(answer("optimal", [1e-7, 3 - 1e-7], bound=-10.0))
    s = m.solve("fake")
    assert s.point.tolist() == [0, 3]


def test_the_objective_is_evaluated_again(fake):
    m, _, _ = small()
    fake(answer("feasible", [1, 1], objective=-99.0, bound=-12.0))
    s = m.solve("fake")
    assert s.objective == 5
    assert s.bound == 12
    assert s.gap == pytest.approx(7 / 5)
    assert "gap" in repr(s)
    fake(answer("optimal", [0, 3 + 1e-6]))
    assert 0 < m.solve("fake").violation < 1e-5


def test_lazy_families_are_asked_again(fake):
    m, x, _ = small(integer=True)
    m.maximize(x[0] - 9 * x[1])
    m.lazy(lambda value: [x[0] <= 1] if value(x[0]) > 1 else [], name="low")
    Fake.capabilities = Capabilities(frozenset({"rows", "integer", "lazy"}))
    try:
        fake(answer("optimal", [2, 0]))
        with pytest.raises(fo.BackendError, match=r"'low'"):
            m.solve("fake")
    finally:
        Fake.capabilities = Capabilities(frozenset({"rows", "integer"}))


@pytest.mark.parametrize(
    ("second", "status"),
    [
        (answer("optimal", [0, 0]), "unbounded"),
        (answer("infeasible"), "unbounded"),  # which is wrong: other solvers are asked
        (answer("limit"), "limit"),
        (answer("failed"), "unbounded"),  # as above
    ],
)
def test_ambiguous_answers_are_settled(fake, second, status):
    m = fo.Model()
    m.maximize(m.variable("x", 2).sum())
    backend = fake(answer("infeasible", ambiguous=True), second)
    assert m.solve("fake").status == status
    assert not backend.asked[1][0].stages[0].cost.any()


def test_a_failure_on_a_linear_program_is_solved_by_others(fake):
    m, x, _ = small()
    fake(answer("failed"))
    s = m.solve("fake")
    assert (s.status, s.objective) == (fo.Status.OPTIMAL, m.solve("highs").objective)
    assert "so I say" in s.message and "solved again by highs" in s.message
    m.subject_to(x.sum() <= -1)
    fake(answer("failed"))
    assert m.solve("fake").status is fo.Status.INFEASIBLE


def test_quadratic_programs_without_an_optimum():
    m = fo.Model()
    x = m.variable("x", 2)
    m.minimize(fo.sum_squares(x[0] + x[1]) + x[0])
    s = m.solve()  # HiGHS finds an "optimum" of -5000000
    assert s.status == "unbounded"
    assert s.point is None
    assert s.reason == "the objective improves forever along x[0], x[1]"
    m.minimize(fo.sum_squares(x - 1e5))
    assert m.solve().objective == pytest.approx(0, abs=1e-3)
    m.minimize(fo.sum_squares(x - 1e8))
    assert m.solve().status in ("optimal", "failed")  # HiGHS says "unbounded"


def test_ambiguous_on_highs():
    for row, status in ((0, "unbounded"), (1, "infeasible")):
        m = fo.Model()
        x = m.variable("x", 3, integer=True)
        m.subject_to(x[0] + x[1] - x[2] >= 1)
        if row:
            m.subject_to(2 * x[0] + 2 * x[1] == 1, x[1:].between(-5, 5))
        m.maximize(x.sum())
        assert m.solve().status == status


def hard(n=60, seed=0):
    """A market split: no incumbent for long."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 100, (5, n))
    m = fo.Model("market split")
    x = m.variable("x", n, binary=True)
    m.subject_to(a @ x == a.sum(axis=1) // 2)
    m.minimize(np.arange(n) @ x)
    return m


def easy(n=40, seed=0):
    rng = np.random.default_rng(seed)
    m = fo.Model("many knapsacks")
    x = m.variable("x", n, binary=True)
    m.subject_to(rng.integers(5, 100, (20, n)) @ x <= 900)
    m.maximize(rng.integers(5, 100, n) @ x)
    return m, x


def test_time_limits():
    with spends_at_most(30):
        s = hard().solve(time_limit=0.5, threads=1)
    assert s.status == "limit"
    assert s.point is None
    assert np.isnan(s.objective)
    assert 0 <= s.bound < 60 * 30
    m, _ = easy(200)
    s = with_a_point(lambda limit: m.solve(time_limit=limit, gap=0, threads=1))
    assert s.status == "feasible"
    assert s.objective < s.bound < 20000
    assert 0 < s.gap < 1
    assert s.violation == 0


def test_gap_stops_early():
    m, _ = easy()
    s = m.solve(gap=0.5)
    assert s.status == "optimal"
    assert s.gap <= 0.5


def test_start():
    m, x = easy(30)
    best = m.solve(gap=0)
    s = m.solve(start={x: best[x]}, options={"mip_max_nodes": 0, "mip_heuristic_effort": 0.0})
    assert s.objective == pytest.approx(best.objective)
    half = best[x].copy()
    half[::2] = np.nan
    assert m.solve(gap=0, start={x: half}).objective == pytest.approx(best.objective)
    for start, rule in (
        ({x: [1, 2]}, "broadcast"),
        ({x: "much"}, "numbers"),
        ({x[0] + 1: 1}, "must be a variable"),
    ):
        with pytest.raises(fo.DeclarationError, match=rule):
            m.solve(start=start)
    _, elsewhere = easy(30)
    with pytest.raises(fo.DeclarationError, match=r"belongs to model"):
        m.solve(start={elsewhere: 1})


def test_start_reaches_the_solver_over_all_columns(fake):
    m, x, _ = small()
    m.subject_to(fo.abs(x[0] - x[1]) <= 3)
    backend = fake(answer("limit"))
    m.solve("fake", start={x: [1, np.nan]}, time_limit=9, seed=3, threads=2, gap=0.1, options={"a": 1})
    program, options = backend.asked[0]
    assert len(options.start) == program.columns
    assert options.start[0] == 1
    assert np.isnan(options.start[1:]).all()
    assert (options.seed, options.threads, options.gap, options.extra) == (3, 2, 0.1, {"a": 1})
    assert 8 < options.time_limit <= 9


def test_stages_are_solved_without_a_gap_of_their_own(fake):
    m, x, _ = small()
    m.lexicographic([fo.maximize(x[0]), fo.minimize(x[1])])
    backend = fake(answer("limit"))
    m.solve("fake")
    assert backend.asked[0][1].gap == 0
    backend = fake(answer("limit"))
    m.solve("fake", gap=0.2)
    assert backend.asked[0][1].gap == 0.2


def test_improvements():
    m, _ = easy(80)
    seen = []
    s = m.solve(gap=0, time_limit=2, threads=1, on_improvement=seen.append)
    assert len(seen) >= 2
    assert all(isinstance(step, Improvement) for step in seen)
    assert [t.objective for t in s.trace] == [t.objective for t in seen]
    values = [t.objective for t in seen]
    assert values == sorted(values)
    assert all(t.objective <= t.bound + 1e-6 for t in seen)
    assert values[-1] == pytest.approx(s.objective)
    stopped = m.solve(gap=0, threads=1, on_improvement=lambda step: True)
    assert stopped.status == "feasible"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("time_limit", -1),
        ("gap", -0.1),
        ("threads", 0),
        ("seed", -3),
        ("time_limit", "long"),
        ("gap", float("nan")),
    ],
)
def test_bad_options(option, value):
    m, _, _ = small()
    with pytest.raises(fo.DeclarationError, match=option):
        m.solve(**{option: value})


def test_unknown_backends_and_options():
    m, _, _ = small()
    with pytest.raises(fo.UnknownNameError, match=r"did you mean 'highs'"):
        m.solve("hihgs")
    with pytest.raises(fo.BackendError, match=r"no_such_option"):
        m.solve(options={"no_such_option": 1})


def test_log_is_kept():
    m, _, _ = small()
    assert "HiGHS" in m.solve().log


@pytest.mark.parametrize(
    ("objective", "bound", "gap"),
    [(10, 9, 0.1), (-10, -11, 0.1), (0, 0, 0), (0, 1, 1e9), (np.nan, 3, np.inf), (5, np.inf, np.inf)],
)
def test_relative_gap(objective, bound, gap):
    assert relative_gap(objective, bound) == pytest.approx(gap)


@pytest.mark.parametrize("constrained", [False, True])
def test_a_conic_solver_that_takes_large_values_for_infeasibility_is_refuted(constrained):
    m = fo.Model()
    x, y = m.variable("x", lower=30), m.variable("y")
    if constrained:
        m.subject_to(fo.exp(x) <= y)
    m.minimize(y if constrained else fo.exp(x))
    s = m.solve("clarabel")
    assert s.status == "failed"
    assert s.message == "CLARABEL: PrimalInfeasible; but a point of the linear rows satisfies the model"
    m.subject_to(fo.exp(x) <= 5)
    assert m.solve("clarabel").status == "infeasible"


@pytest.mark.parametrize("backend", ["highs", "glop", "clarabel", "scs", "scip", "gscip", "cp-sat", "pdlp"])
@pytest.mark.parametrize(
    "options",
    [
        {"start": float("inf")},
        {"start": [1]},
        {"start": {"x": 1}},
        {"log": "no"},
        {"log": 3},
        {"threads": True},
        {"time_limit": True},
        {"gap": float("nan")},
        {"options": 3},
        {"options": {1: 1}},
        {"on_improvement": 3},
    ],
    ids=str,
)
def test_odd_options_are_refused_alike(backend, options):
    m = fo.Model()
    x = m.variable("x", lower=0, upper=5, integer=backend == "cp-sat")
    m.minimize(x)
    with pytest.raises(fo.DeclarationError):
        m.solve(backend, **options)


@pytest.mark.parametrize("backend", ["highs", "glop", "clarabel", "scip", "gscip", "cp-sat"])
def test_values_that_a_solver_does_not_take_are_refused_in_words(backend):
    m = fo.Model()
    x = m.variable("x", lower=0, upper=5, integer=backend == "cp-sat")
    m.minimize(x)
    name = {"highs": "presolve", "scip": "limits/nodes", "cp-sat": "max_time_in_seconds"}.get(
        backend, "max_iter"
    )
    with pytest.raises(fo.BackendError):
        m.solve(backend, options={name: object()})


@pytest.mark.parametrize("backend", [3, "", [], "nope"])
def test_a_backend_is_a_name(backend):
    m = fo.Model()
    with pytest.raises(ValueError, match="backend"):
        m.solve(backend)


def test_a_solution_outlives_changes_of_its_model():
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=3)
    cap = m.subject_to(x.sum() <= 4)
    m.maximize(x.sum())
    s = m.solve()
    assert s.certify().optimal
    y = m.variable("y", 3, lower=1)
    late = m.subject_to(y.sum() + x.sum() <= 9)
    m.maximize(x.sum() + y.sum())
    assert s.dual(cap) == 1 and s[x].sum() == 4 and list(s.values()) == ["x"] == list(s.to_pandas())
    for read in (lambda: s[y], lambda: s.reduced_cost(y), lambda: s.dual(late)):
        with pytest.raises(fo.DeclarationError, match="was added after this solution was found"):
            read()
    with pytest.raises(fo.DeclarationError, match="the model has changed since this solution was found"):
        s.certify()


def test_levels_and_reasons_belong_to_the_model_that_was_solved():
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=[1, 3])
    high = m.parameter("high", value=9)
    m.leximin(x)
    s = m.solve()
    m.maximize(x.sum())
    assert s.levels.tolist() == [1, 3]
    cap = m.subject_to(x[0] >= high, name="cap")
    s = m.solve()
    high.value = 0
    assert s.status == "infeasible" and "parameter high has changed since" in s.reason
    high.value = 9
    s = m.solve()
    m.remove(cap)
    m.subject_to(x[0] >= 2, name="other")
    assert s.reason == "the model has changed since this solution was found; solve again"


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.fix(m["x"], 1),
        lambda m: m.remove("cap"),
        lambda m: m.subject_to(m["x"] <= 2),
        lambda m: m.subject_to(fo.implies(m["b"], m["x"] <= 0)),
        lambda m: m.relax(),
        lambda m: m.minimize(m["x"]),
        lambda m: m.lazy(lambda value: []),
    ],
)
@pytest.mark.parametrize("need", [0, 9])
def test_a_certificate_is_about_the_model_that_was_solved(change, need):
    m = fo.Model()
    x, b = m.variable("x", lower=0, upper=5, integer=True), m.variable("b", binary=True)
    m.subject_to(2 * x + b <= 7, name="cap")
    m.subject_to(x >= need)
    m.maximize(x + b)
    s = m.solve()
    assert s.certify().optimal if need == 0 else s.certify().dual is not None
    change(m)
    with pytest.raises(fo.DeclarationError, match="the model has changed"):
        s.certify()


def test_a_certificate_of_infeasibility_is_about_the_parameters_that_were_solved():
    m = fo.Model()
    x, p = m.variable("x", lower=0, upper=5), m.parameter("p", value=9)
    m.subject_to(x >= p)
    s = m.solve()
    assert s.status == "infeasible" and s.certify().dual is not None
    p.value = 10
    with pytest.raises(fo.DeclarationError, match=r"p has changed .* set it to 9"):
        s.certify()


@pytest.mark.parametrize("backend", ["highs", "glop", "clarabel", "scip"])
def test_slacks(backend):
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=3)
    need, band = m.subject_to(x.sum() >= 4, (x[0] - x[1]).between(-5, 2))
    switch = m.subject_to(fo.implies(m.variable("b", binary=True), x[0] <= 1)) if backend != "glop" else None
    if backend == "clarabel":
        m.remove(switch)
        m.remove(m["b"])
    m.minimize(x[0] + 2 * x[1])
    s = m.solve(backend)
    assert s.slack(need) == pytest.approx(0, abs=1e-6) and s.slack(band) == pytest.approx(0, abs=1e-6)
    late = x <= [4, 0]
    assert s.slack(late) == pytest.approx([1, -1], abs=1e-6)
    with pytest.raises(fo.DeclarationError, match="slack needs a constraint of rows"):
        s.slack(switch)
    with pytest.raises(fo.DeclarationError, match="belongs to model"):
        s.slack(fo.Model("other").variable("z") <= 1)


def test_integers_too_large_for_a_float_are_refused():
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=5)
    m.minimize(x.sum())
    s, huge = m.solve(), 10**400
    for field in ("time_limit", "threads"):
        with pytest.raises(fo.DeclarationError, match=field):
            m.solve(**{field: huge})
    with pytest.raises(fo.DeclarationError, match="the value of x must be numbers"):
        m.solve(start={x: huge})
    with pytest.raises(fo.DeclarationError, match=r"the value of x\[0\] must be numbers"):
        m.fix(x[0], huge)
    for call, name in (
        (lambda: fo.norm(x, huge), "norm: p"),
        (lambda: fo.power(x, huge), "power: p"),
        (lambda: fo.huber(x, huge), "huber: the threshold"),
        (lambda: s.certify(rounding=huge), "rounding"),
        (lambda: s.certify(rounding=-1), "rounding is -1; it must be at least 0"),
    ):
        with pytest.raises(fo.DeclarationError, match=name):
            call()


@pytest.mark.parametrize(
    "atom", [lambda x: fo.inverse(0 * x), lambda x: fo.inverse(x - 5), lambda x: -fo.log(x - 5)]
)
def test_integers_at_which_an_atom_has_no_value_are_infeasible(atom):
    m = fo.Model()
    x = m.variable("x", lower=0, upper=3, integer=True)
    m.subject_to(atom(x) <= 4)
    m.minimize(x)
    assert m.solve("scip").status == "infeasible"


def test_an_integer_program_on_which_a_solver_fails_is_solved_again(fake):
    m, x, _ = small(integer=True)
    fake(answer("failed"))
    s = m.solve("fake")
    assert (s.status, s.objective, s[x].tolist()) == ("optimal", 10, [0, 3])
    assert s.message.startswith("so I say; but it found no answer; solved again by highs")


def test_conditions_and_integers_have_no_duals() -> None:
    m = fo.Model()
    x, b = m.variable("x", 2, upper=3), m.variable("b", binary=True)
    rule = m.subject_to(fo.implies(b, x.sum() <= 1))
    cap = m.subject_to(x[0] <= 2)
    m.maximize(x.sum() + b)
    with pytest.raises(fo.DeclarationError, match="gave no"):
        m.solve().dual(cap)
    m.fix(b, 0)
    m.maximize(x.sum())
    with pytest.raises(fo.DeclarationError, match=r"gave no|needs a constraint of rows"):
        m.solve().dual(rule)
