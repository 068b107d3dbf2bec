"""Semidefinite matrices: what they demand, how they are read, and parity with cvxpy on two backends."""

import warnings
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

import forcopt as fo
from forcopt.errors import CurvatureError, DeclarationError, UnsupportedError

BACKENDS = ["clarabel", "scs"]


def random_symmetric(rng, n):
    a = rng.normal(size=(n, n))
    return (a + a.T) / 2


def gamma_2(n):
    """The factorization norm of the prefix sums."""
    sums = np.tril(np.ones((n, n)))
    m = fo.Model("gamma_2")
    t = m.variable("t")
    left, right = (fo.symmetric(m.variable(name, n * (n + 1) // 2)) for name in ("left", "right"))
    m.subject_to(fo.semidefinite(fo.block([[left, sums], [sums.T, right]])), name="factors")
    m.subject_to(fo.diag(left) <= t, fo.diag(right) <= t)
    m.minimize(t)
    return m, t


def pentagon():
    m = fo.Model("theta")
    entries = m.variable("X", 15)
    X = fo.symmetric(entries)
    m.subject_to(fo.semidefinite(X), name="moments")
    m.subject_to(fo.trace(X) == 1, *[X[i, (i + 1) % 5] == 0 for i in range(5)])
    m.maximize(X.sum())
    return m, entries


def pairs(rng, kind):
    """The same random program in forcopt and cvxpy."""
    n = int(rng.integers(2, 6))
    cost, given = random_symmetric(rng, n), random_symmetric(rng, n)
    m = fo.Model(kind)
    if kind in ("semidefinite", "unequal entries"):
        entries = m.variable("X", (n, n)) if kind == "unequal entries" else m.variable("X", n * (n + 1) // 2)
        X = entries if kind == "unequal entries" else fo.symmetric(entries)
        Y = cp.Variable((n, n), symmetric=True)
        m.subject_to(fo.semidefinite(X), fo.trace(X) == 2, (given * X).sum() <= 1)
        m.minimize((cost * X).sum())
        return m, cp.Problem(
            cp.Minimize(cp.sum(cp.multiply(cost, Y))),
            [Y >> 0, cp.trace(Y) == 2, cp.sum(cp.multiply(given, Y)) <= 1],
        )
    if kind == "complex":
        x, y = m.variable("x", 2, lower=-1, upper=1), cp.Variable(2)
        skew = rng.normal(size=(n, n))
        skew = skew - skew.T
        m.subject_to(fo.semidefinite(cost * x[0] + 3 * np.eye(n) + given * x[1], skew * x[1]))
        m.maximize(x.sum())
        matrix = cost * y[0] + 3 * np.eye(n) + (given + 1j * skew) * y[1]
        return m, cp.Problem(cp.Maximize(cp.sum(y)), [matrix >> 0, y >= -1, y <= 1])
    if kind == "lambda_max":
        x, y = m.variable("x", n, lower=-1, upper=1), cp.Variable(n)
        m.minimize(fo.lambda_max(cost + fo.diag(x)) + 0.3 * (given[0] * x).sum())
        value = cp.lambda_max(cost + cp.diag(y)) + 0.3 * given[0] @ y
        return m, cp.Problem(cp.Minimize(value), [y >= -1, y <= 1])
    if kind == "nuclear_norm":
        x, y = m.variable("x", (n, n + 1)), cp.Variable((n, n + 1))
        fixed, values = rng.random((n, n + 1)) < 0.5, rng.normal(size=(n, n + 1))
        fixed[0, 0] = True
        m.subject_to(x[fixed] == values[fixed])
        m.minimize(fo.nuclear_norm(x))
        rule = [cp.multiply(fixed.astype(float), y) == fixed * values]
        return m, cp.Problem(cp.Minimize(cp.normNuc(y)), rule)
    factor = rng.normal(size=(n, n)) + 2 * np.eye(n)
    weight = factor @ factor.T / n + np.eye(n)
    X, Y = fo.symmetric(m.variable("X", n * (n + 1) // 2)), cp.Variable((n, n), symmetric=True)
    m.maximize(fo.log_det(X) - (weight * X).sum())
    return m, cp.Problem(cp.Maximize(cp.log_det(Y) - cp.sum(cp.multiply(weight, Y))))


KINDS = ["semidefinite", "unequal entries", "complex", "lambda_max", "nuclear_norm", "log_det"]


@pytest.mark.parametrize("seed", range(17))
@pytest.mark.parametrize("kind", KINDS)
def test_random_programs_agree_with_cvxpy(kind, seed):
    m, other = pairs(np.random.default_rng([KINDS.index(kind), seed]), kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of inaccurate answers
        other.solve(solver=cp.CLARABEL)
    # The eigenvalues of a complex matrix are double in its real form, where Clarabel may end early.
    allowed = {"infeasible": {"infeasible"}, "optimal_inaccurate": {"optimal", "feasible"}}
    for backend in BACKENDS:
        s = m.solve(backend)
        assert str(s.status) in allowed.get(other.status, {"optimal"}), (backend, s.message)
        if s.status.has_solution:
            assert s.objective == pytest.approx(other.value, rel=2e-4, abs=2e-4)
            assert s.violation <= 100 * 1e-4


def test_theta_of_the_pentagon_is_the_root_of_five():
    m, _ = pentagon()
    for backend in BACKENDS:
        assert m.solve(backend).objective == pytest.approx(5**0.5, abs=1e-4)


def test_gamma_2_of_the_prefix_sums_of_32():
    m, _ = gamma_2(32)
    assert m.solve("scs").objective == pytest.approx(1.905446, abs=2e-5)


def test_certificates_accept_the_optimum_and_refuse_another():
    for m, x, shift in ((*pentagon(), 1e-3), (*gamma_2(6), -1e-3)):
        s = m.solve("clarabel")
        c = s.certify()
        assert c.feasible and c.bound is not None
        assert abs(float(c.objective - c.bound)) <= 1e-6 and float(c.moved) <= 1e-6
        s.point[x.start] += shift
        assert s.certify().feasible is False
    m, t = gamma_2(6)
    m.subject_to(t >= 2)
    s = m.solve("clarabel")
    c = replace(s, model=gamma_2(6)[0], solved=()).certify()  # of another model, in which it is no optimum
    assert c.feasible and not c.optimal and float(c.objective - c.bound) > 0.1


def test_a_violation_is_the_least_eigenvalue_or_the_asymmetry():
    m = fo.Model()
    x = m.variable("x", (2, 2))
    m.subject_to(fo.semidefinite(x), name="cone")
    point = m.point({x: [[1, 3], [3, 1]]})
    assert m.violations(point) == {"cone": pytest.approx(2 / 3)}
    assert m.violations(m.point({x: [[1, 0.5], [0, 1]]})) == {"cone": pytest.approx(0.5)}
    assert m.violations(m.point({x: [[1, 1], [1, 1]]})) == {}


def test_exact_semidefinite_matrices():
    from flint import fmpq

    from forcopt.loops.certify.evaluation import is_semidefinite

    rng = np.random.default_rng(0)
    for _ in range(300):
        n = int(rng.integers(1, 6))
        factor = rng.integers(-2, 3, size=(n, int(rng.integers(1, n + 1))))
        matrix = factor @ factor.T - int(rng.integers(0, 2)) * np.diag(rng.integers(0, 2, size=n))
        least = np.linalg.eigvalsh(matrix)[0]
        lower = [fmpq(int(v), 3) for v in matrix[np.tril_indices(n)]]
        assert is_semidefinite(lower, n) == (least > -1e-9)


def test_values_of_numbers():
    a = np.array([[2.0, 1], [1, 2]])
    assert fo.lambda_max(a) == pytest.approx(3) and fo.lambda_min(a) == pytest.approx(1)
    assert fo.nuclear_norm([[3, 0, 0], [0, -4, 0]]) == pytest.approx(7)
    assert fo.log_det(a) == pytest.approx(np.log(3)) and fo.log_det(-a) == -np.inf
    assert fo.lambda_max(np.stack([a, -a])).tolist() == pytest.approx([3, -1])


def test_several_matrices_at_once():
    m = fo.Model()
    x = m.variable("x", 2)
    matrices = np.array([[[1.0, 0], [0, 2]], [[0, 1], [1, 0]]])
    m.subject_to(fo.semidefinite(x.reshape(2, 1, 1) * np.eye(2) - matrices))
    m.minimize(x.sum())
    assert m.solve()[x] == pytest.approx([2, 1], abs=1e-6)
    m = fo.Model()
    x = m.variable("x")
    m.minimize(fo.lambda_max(x * np.stack([np.eye(2), -np.eye(2)]) + matrices).sum())
    assert m.solve().objective == pytest.approx(3, abs=1e-6)


def test_infeasible_and_unbounded():
    m = fo.Model()
    x = m.variable("x", (2, 2))
    m.subject_to(fo.semidefinite(x), x[0, 1] == 3, fo.trace(x) <= 2)
    m.minimize(x[1, 1])
    assert str(m.solve().status) == "infeasible"
    m = fo.Model()
    x = m.variable("x", (2, 2))
    m.subject_to(fo.semidefinite(x))
    m.maximize(fo.trace(x))
    assert str(m.solve().status) == "unbounded"


def test_refusals():
    m = fo.Model()
    x = m.variable("x", (2, 2))
    with pytest.raises(DeclarationError, match=r"entries \[1, 0\] and \[0, 1\] differ"):
        fo.lambda_max(x)
    with pytest.raises(DeclarationError, match="square"):
        fo.semidefinite(m.variable("y", (2, 3)))
    with pytest.raises(DeclarationError, match="expression"):
        fo.semidefinite(np.eye(2))
    with pytest.raises(DeclarationError, match="entries"):
        fo.symmetric(m.variable("z", 4))
    with pytest.raises(CurvatureError):
        m.subject_to(fo.semidefinite(fo.abs(x + x.T)))
    with pytest.raises(CurvatureError):
        m.maximize(fo.lambda_max(x + x.T))
    m.subject_to(fo.semidefinite(x + x.T))
    with pytest.raises(UnsupportedError, match=r"semidefinite.*able: .*clarabel, scs"):
        m.solve("osqp")  # its rows are not accurate enough for tangents
    b = m.variable("b", binary=True)
    m.minimize(b)
    assert m.solve().objective == 0  # by tangents
    m.minimize(b - fo.log_det(x + x.T))
    with pytest.raises(UnsupportedError):
        m.solve()


@pytest.mark.parametrize("backend", ["clarabel", "scs"])
def test_an_infeasible_model_whose_rows_lead_outside_the_domain_of_an_atom(backend):
    """Of its points, the rows alone keep one where the matrix has no logarithm of the determinant."""
    m = fo.Model()
    x = m.variable("x", 2)
    m.subject_to(x[1] >= 2)
    m.subject_to(fo.log_det(fo.symmetric(fo.stack([1 + x[0], x[1], 1 - x[0]]))) >= -3)
    m.minimize(x[0])
    assert m.solve(backend).status == "infeasible"


@pytest.mark.parametrize("backend", ["clarabel", "scs"])
def test_eigenvalues_of_matrices_without_bounds(backend):
    """No eigenvalue exists of a matrix of infinite bounds, or of a start that leaves out entries."""
    m = fo.Model()
    v = m.variable("v", 6)
    x = fo.symmetric(v)
    m.subject_to(fo.trace(x) == 3, fo.semidefinite(x))
    cases = (fo.lambda_max(x), 1), (fo.nuclear_norm(x), 3), (-fo.log_det(x), 0), (-fo.lambda_min(x), -1)
    for expression, value in cases:
        m.minimize(expression)
        s = m.solve(backend, start={v[:2]: 0.5})
        assert s.objective == pytest.approx(value, abs=1e-3)
