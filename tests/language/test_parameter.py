"""Parameters: the same answers as a model written anew, warm or cold, on every backend."""

import gc
import pickle

import numpy as np
import pandas as pd
import pytest

import forcopt as fo
from forcopt.backends import get_backend
from forcopt.compile.program import RowBlock
from forcopt.errors import CurvatureError, DeclarationError, UnsupportedError


def written(numbers, parametric):
    """A linear model with numbers in every place, as parameters or as they are."""
    m = fo.Model()
    p = {k: m.parameter(k, np.shape(v), v) if parametric else np.asarray(v) for k, v in numbers.items()}
    x = m.variable("x", 4, lower=0, upper=5)
    need = m.subject_to(p["A"] @ x >= p["b"], name="need")
    m.subject_to(x <= p["cap"], (p["b"][0] * p["cap"] * x).sum() <= 40)
    m.minimize(p["c"] @ x + p["b"].sum() + fo.maximum(x[0], p["cap"]) + (p["cap"] * x[:2]).sum())
    return m, p, x, need


def draw(rng):
    return {
        "A": rng.integers(0, 4, size=(3, 4)) + np.eye(3, 4),
        "b": rng.integers(1, 6, size=3).astype(float),
        "c": rng.integers(1, 9, size=4).astype(float),
        "cap": float(rng.integers(2, 5)),
    }


@pytest.mark.parametrize("backend", ["highs", "clarabel", "scs", "osqp", "glop", "pyomo:appsi_highs", "scip"])
def test_resolving_is_solving_anew(backend):

    try:
        get_backend(backend)
    except fo.NotInstalledError as error:
        pytest.skip(str(error))
    rng = np.random.default_rng(1)
    m, p, _, need = written(draw(rng), True)
    tolerance = 1e-6 if backend in ("highs", "clarabel", "glop", "scip") else 2e-3
    for _ in range(6):
        numbers = draw(rng)
        for name, value in numbers.items():
            p[name].value = value
        again, _, _, other = written(numbers, False)
        s, t = m.solve(backend), again.solve("highs")
        assert s.status is t.status, (s.message, t.message)
        if t.status.has_solution:
            assert s.objective == pytest.approx(t.objective, rel=tolerance, abs=tolerance)
            assert s[p["c"]].tolist() == numbers["c"].tolist()
            if backend == "highs":
                assert (s.dual(need) @ numbers["b"] >= 0) == (t.dual(other) @ numbers["b"] >= 0)


def test_one_number_at_a_time_keeps_the_solver():
    rng = np.random.default_rng(2)
    numbers = {**draw(rng), "b": np.ones(3)}
    m, p, _, _ = written(numbers, True)
    m.solve("highs")
    session = m.prepared["highs"].session
    for name, value in (("b", [2, 1, 1]), ("c", [1, 1, 9, 9]), ("A", np.ones((3, 4))), ("cap", 3)):
        p[name].value = value
        numbers[name] = np.asarray(value, dtype=float)
        s = m.solve("highs")
        assert m.prepared["highs"].session is session
        assert s.objective == pytest.approx(written(numbers, False)[0].solve("highs").objective)


def test_a_changed_model_is_compiled_again():
    m = fo.Model()
    p = m.parameter("p", value=2)
    x = m.variable("x", lower=0, upper=9)
    m.subject_to(x <= p)
    m.maximize(x)
    assert m.solve().objective == 2
    extra = m.subject_to(x <= 1)
    assert m.solve().objective == 1
    m.remove(extra)
    assert m.solve().objective == 2
    m.fix(x, 0.5)
    assert m.solve().objective == 0.5
    m.unfix(x)
    m.minimize(x - p)
    assert m.solve().objective == -2
    assert pickle.loads(pickle.dumps(m)).solve().objective == -2


def test_integers_start_from_the_last_solution():
    rng = np.random.default_rng(3)
    m = fo.Model()
    room = m.parameter("room", value=20)
    take = m.variable("take", 12, binary=True)
    worth, size = rng.integers(1, 20, 12), rng.integers(1, 12, 12)
    m.subject_to(size @ take <= room)
    m.maximize(worth @ take)
    for value in (20, 31, 12, 40):
        room.value = value
        best = fo.Model()
        y = best.variable("y", 12, binary=True)
        best.subject_to(size @ y <= value)
        best.maximize(worth @ y)
        wanted = best.solve().objective
        for backend in ("highs", "cp-sat", "scip", "gscip"):
            assert m.solve(backend).objective == wanted


def test_inside_atoms_cones_quadratics_and_matrices():
    rng = np.random.default_rng(4)
    m = fo.Model()
    target, weight = m.parameter("target", 3), m.parameter("weight", lower=0)
    x = m.variable("x", 3)
    m.minimize(fo.sum_squares(x - target) + weight * fo.abs(x).sum())
    for _ in range(3):
        target.value, weight.value = rng.normal(size=3), rng.random()
        soft = np.sign(target.value) * np.maximum(np.abs(target.value) - weight.value / 2, 0)
        for backend in ("clarabel", "osqp", "scs"):
            assert m.solve(backend)[x] == pytest.approx(soft, abs=1e-3)
    m = fo.Model()
    scale, center = m.parameter("scale", value=2), m.parameter("center", 2, value=[1, 2])
    x = m.variable("x", 2)
    m.subject_to(fo.norm(scale * x - center) <= 1)
    m.minimize(x.sum())
    for value in (2, 4):
        scale.value = value
        assert m.solve().objective == pytest.approx((3 - 2**0.5) / value, abs=1e-5)
    m = fo.Model()
    p = m.parameter("p", value=1)
    x = m.variable("x")
    m.subject_to(fo.semidefinite(fo.symmetric(fo.stack([x, p, x]))))
    m.minimize(x)
    for value in (1, -3):
        p.value = value
        assert m.solve().objective == pytest.approx(abs(value), abs=1e-5)


def test_conditions_stages_lazy_families_and_leximin():
    m = fo.Model()
    limit = m.parameter("limit", value=3, lower=0, upper=10)
    x, b = m.variable("x", lower=0, upper=10), m.variable("b", binary=True)
    m.subject_to(fo.implies(b, x <= limit))
    m.maximize(x + 8 * b)
    for value in (3, 1, 7):
        limit.value = value
        for backend in ("highs", "scip"):
            assert m.solve(backend).objective == max(10, value + 8)
    m = fo.Model()
    p = m.parameter("p", value=1)
    u = m.variable("u", 2, lower=0, upper=5)
    m.subject_to(u.sum() <= p, u[0] <= 0.25 * p)
    m.leximin(u)
    for value in (1, 4):
        p.value = value
        assert m.solve()[u] == pytest.approx([0.25 * value, 0.75 * value])
    m.lexicographic([fo.maximize(u[0]), fo.minimize(u[1])])
    for value in (2, 4):
        p.value = value
        assert m.solve()[u] == pytest.approx([0.25 * value, 0], abs=1e-6)
    m = fo.Model()
    p = m.parameter("p", value=1)
    x = m.variable("x", 2, lower=0, upper=10)

    def separate(value):
        if value(x).sum() > p.value + 1e-6:
            yield x.sum() <= p.value

    m.lazy(separate)
    m.maximize(x[0] + 2 * x[1])
    for value in (1, 5, 3):
        p.value = value
        assert m.solve().objective == pytest.approx(2 * value)


def test_a_solution_keeps_its_values_and_its_certificate_asks_for_them():
    m = fo.Model()
    p = m.parameter("p", value=2)
    x = m.variable("x", lower=0)
    m.subject_to(x >= p)
    m.minimize(x)
    first = m.solve()
    assert first.certify().optimal
    p.value = 3
    assert m.solve()[p] == 3 and first[p] == 2 and first[x] == 2
    with pytest.raises(DeclarationError, match="p has changed"):
        first.certify()


def test_files_hold_numbers(tmp_path):
    m, p, _, _ = written(draw(np.random.default_rng(5)), True)
    m.write(tmp_path / "model.mps")
    assert fo.read(tmp_path / "model.mps").solve().objective == pytest.approx(m.solve().objective)
    assert {v.name for v in m.variables} == {"x"} and m["c"] is p["c"]


def test_labels():
    m = fo.Model()
    cost = pd.Series({"iron": 3.0, "coal": 1.0})
    price = m.parameter("price", index=cost.index, value=cost)
    x = m.variable("x", index=cost.index, lower=1, upper=2)
    m.minimize((price * x).sum())
    assert m.solve().objective == 4
    price.value = pd.Series({"coal": 5.0, "iron": 1.0})
    assert price.value.tolist() == [1, 5] and m.solve().objective == 6


def test_a_negated_parameter_scales_an_atom():
    m = fo.Model()
    w = m.parameter("w", 2, value=[2, 1], lower=0)
    x = m.variable("x", 2, lower=-3, upper=3)
    m.maximize(((-w) * fo.abs(x - 1)).sum() + 1.5 * x.sum())
    assert m.solve().objective == pytest.approx(4)  # x = (1, 3)
    w.value = 1
    assert m.solve().objective == pytest.approx(5)
    with pytest.raises(CurvatureError):
        m.minimize(-w @ fo.abs(x))
        m.solve()


def test_refusals():
    m = fo.Model()
    p, x = m.parameter("p", 2, lower=-1), m.variable("x", 2)
    m.minimize((p * x).sum())
    with pytest.raises(DeclarationError, match="parameter p has no value"):
        m.solve()
    with pytest.raises(
        DeclarationError, match=r"value\[0\] is -2.0; it must be within the declared range \[-1, inf\]"
    ):
        p.value = -2
    with pytest.raises(DeclarationError, match="broadcast"):
        p.value = [1, 2, 3]
    with pytest.raises(DeclarationError, match="already in use"):
        m.parameter("x")
    with pytest.raises(CurvatureError, match="may be negative"):
        p * fo.abs(x)
    p.value = 1
    m.leximin(p * x)
    with pytest.raises(UnsupportedError, match="leximin"):
        m.solve()


@pytest.mark.parametrize("backend", ["highs", "scip", "gscip", "cp-sat"])
def test_warm_and_cold_solves_agree_after_an_infeasible_one(backend):
    """The rows hold their columns in no order; whoever sorts a matrix of them must not touch the others."""
    m = fo.Model()
    x = m.variable("x", 3, lower=-2, upper=[-2, 0, 0], integer=True)
    p = m.parameter("p", value=-3)
    b = m.variable("b", binary=True)
    k = m.variable("k", 2, lower=[-1, -1], upper=[0, 2], integer=True)
    m.subject_to(-x[0] + 2 * x[1] - 2 * k[0] + b + p <= 0)
    m.subject_to(fo.abs(-x[1] - x[2] - 1) <= 3 * x[1] - k[0] - k[1] - 3)
    m.subject_to(fo.product(b, -2 * x[0] - 3 * x[1] + 2 * x[2] + 2) - b + 2 * k[0] + 3 >= 0)
    m.minimize(x.sum())
    for value in range(-3, 4):
        p.value = value
        warm = m.solve(backend)
        m.prepared.clear()
        assert warm.status == m.solve(backend).status == "infeasible"


def test_scipy_sorts_no_array_that_rows_share():
    m = fo.Model()
    x = m.variable("x", 4)
    rows = m.lift(fo.stack([x[3] + 2 * x[0], x[1] + x[2]])).linear_rows()
    scaled = rows.scale(np.array([2.0]))
    before = rows.matrix(4).toarray()
    for matrix in (rows.matrix(4), scaled.matrix(4)):
        matrix.sort_indices()
    np.testing.assert_array_equal(rows.matrix(4).toarray(), before)
    block = RowBlock(
        np.array([0, 2], np.int32), np.array([2, 0], np.int32), np.array([1.0, 2.0]), np.zeros(1), np.ones(1)
    )
    other = RowBlock(block.indptr, block.indices, 2 * block.data, block.lower, block.upper)
    abs(other.matrix(3))
    np.testing.assert_array_equal(block.matrix(3).toarray(), [[2, 0, 1]])


def test_products_of_parameters_scale_variables_anew():
    m = fo.Model()
    p, q = m.parameter("p", 3), m.parameter("q", 3)
    x = m.variable("x", 3, lower=0, upper=4)
    m.subject_to((p * q) * x >= q, name="need")
    m.minimize((q * p * (x + 1)).sum() + (p * x).sum())
    rng = np.random.default_rng(8)
    for _ in range(5):
        a, b = rng.uniform(1, 2, (2, 3))
        p.value, q.value = a, b
        assert m.solve("highs").objective == pytest.approx((b + a * b + 1).sum())
        p.value = 1 / a  # the costs move with one of the two only
        assert m.solve("highs").objective == pytest.approx((b + b / a + 1).sum())


@pytest.mark.parametrize("kind", ["unbounded", "infeasible", "optimal"])
def test_other_costs_on_a_feasible_basis_lead_to_the_answer_of_a_new_solver(kind):
    """HiGHS then runs the primal simplex."""
    rng = np.random.default_rng(["unbounded", "infeasible", "optimal"].index(kind))
    seen = set()
    for _ in range(25):
        rows, columns = rng.integers(2, 6, size=2)
        a = rng.integers(-3, 6, size=(rows, columns)).astype(float)
        top = np.inf if kind == "unbounded" else 4.0
        m = fo.Model()
        c = m.parameter("c", columns)
        b = m.parameter("b", rows)
        x = m.variable("x", columns, lower=0, upper=top)
        m.subject_to(a @ x >= b)
        m.minimize(c @ x)
        b.value = a @ rng.integers(0, 4, size=columns) - rng.integers(0, 3, size=rows)
        for turn in range(4):
            c.value = rng.integers(-2 if kind == "unbounded" else -6, 9, size=columns)
            if kind == "infeasible" and turn % 2:
                b.value = rng.integers(0, 40, size=rows)
            warm = m.solve("highs")
            fresh = fo.Model()
            y = fresh.variable("y", columns, lower=0, upper=top)
            fresh.subject_to(a @ y >= b.value)
            fresh.minimize(c.value @ y)
            cold = fresh.solve("highs")
            assert warm.status == cold.status
            assert warm.objective == pytest.approx(cold.objective, abs=1e-7, nan_ok=True)
            seen.add(str(warm.status))
    assert seen == {"optimal", kind}


def test_a_solve_leaves_no_garbage_behind():
    """Arrays in cycles of objects would stay in memory until Python looks for cycles."""
    m = fo.Model()
    need = m.parameter("need", 3, [1.0, 2.0, 3.0])
    x = m.variable("x", 3, lower=0)
    m.subject_to(x >= need)
    m.minimize(x.sum())
    m.solve("highs")
    gc.collect()
    gc.disable()
    try:
        assert m.solve("highs").objective == 6.0
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_rows_that_come_and_go_between_solves_are_checked():
    m = fo.Model()
    need = m.parameter("need", 12, np.ones(12))
    x = m.variable("x", 12, lower=0, upper=9)
    rows = [m.subject_to(x[i] >= need[i], name=f"row{i}") for i in range(12)]
    m.minimize(x.sum())
    assert m.solve("highs").objective == 12.0
    zero = m.point({})
    assert set(m.violations(zero)) == {c.name for c in rows}
    m.remove(rows[3])
    assert set(m.violations(zero)) == {c.name for c in rows if c is not rows[3]}
    added = m.subject_to(x[3] >= 2 * need[3])
    assert added.name in m.violations(zero)
    assert m.solve("highs").objective == 13.0


def test_bounds_of_a_parameter_fit_its_shape_and_labels():
    m = fo.Model()
    with pytest.raises(
        fo.DeclarationError, match=r"parameter p: lower has shape \(3,\), which does not broad"
    ):
        m.parameter("p", 2, lower=[0, 0, 0])
    with pytest.raises(fo.DeclarationError, match=r"parameter p: shape \(3,\) does not fit the index"):
        m.parameter("p", 3, index=["a", "b"])
    p = m.parameter("p", index=["a", "b"], lower=pd.Series({"b": 1.0, "a": 2.0}))
    assert m.columns().lower.tolist() == [2, 1]
    with pytest.raises(fo.DeclarationError):
        p.value = [1, 1]


@pytest.mark.parametrize("backend", ["highs", "clarabel", "osqp", "gscip", "scip"])
def test_a_parameter_scales_a_sum_of_squares(backend):
    """The square in a product is a part of the objective; it was left out."""
    m = fo.Model()
    x = m.variable("x", 2, lower=-2, upper=3)
    w, t = m.parameter("w", lower=0), m.parameter("t", 2, value=[1, 2])
    square = fo.sum_squares(x - t)
    m.minimize(0.5 * w * square + 0.25 * w * (w * square) + square + x.sum())
    for value in (2, 0.5, 0, 1):
        w.value = value
        weight = 0.5 * value + 0.25 * value**2 + 1
        s = m.solve(backend)
        assert s.status == "optimal"
        assert s[x] == pytest.approx(np.array([1, 2]) - 0.5 / weight, abs=1e-3)
        assert s.objective == pytest.approx(3 - 0.5 / weight, abs=1e-5)
    m.subject_to(w * square <= 4)  # which the objective does not hold alone
    if backend != "osqp":
        m.minimize(w * square + x.sum())
        assert m.solve(backend).objective == pytest.approx(2.5, abs=1e-5)
    else:
        with pytest.raises(UnsupportedError, match="sum_squares"):
            m.solve(backend)


def test_the_last_objective_of_several_may_hold_scaled_squares():
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=4)
    w = m.parameter("w", value=3, lower=0)
    m.lexicographic([fo.minimize(fo.abs(x.sum() - 4)), fo.minimize(w * fo.sum_squares(x - [1, 5]))])
    for value in (3, 0.01):
        w.value = value
        s = m.solve("highs")
        assert s[x] == pytest.approx([0, 4], abs=1e-4)
        assert s.stages == pytest.approx((0, 2 * value), abs=1e-4)


@pytest.mark.parametrize("maximize", [False, True])
def test_certificates_of_quadratic_objectives_read_the_parameters(maximize):
    """The tangent is one of the products with parameters, too; without them the bound was false."""
    m = fo.Model()
    x = m.variable("x", 2, lower=-2, upper=3)
    c, w = m.parameter("c", 2, value=[-4, 1]), m.parameter("w", value=2, lower=0)
    cost = w * fo.sum_squares(x) + fo.sum_squares(c * x - 1) + c @ x
    (m.maximize if maximize else m.minimize)(-cost if maximize else cost)
    for number in (2, 0.5):
        w.value = number
        best = c.value / (2 * (number + c.value**2))
        value = number * best @ best + ((c.value * best - 1) ** 2).sum() + c.value @ best
        s = m.solve("highs")
        sign = -1 if maximize else 1
        assert sign * s.objective == pytest.approx(value, abs=1e-6)
        certificate = s.certify()
        assert sign * certificate.bound <= value + 1e-12
        assert float(certificate.bound) == pytest.approx(s.objective, abs=1e-5)
