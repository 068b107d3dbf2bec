"""Multipliers of declared cones: duality, other tools' answers, and the optimum after a small shift."""

from __future__ import annotations

import pickle

import cvxpy as cp
import numpy as np
import pytest

import forcopt as fo

BOTH = pytest.mark.parametrize("backend", ["clarabel", "scs"])
SEEDS = pytest.mark.parametrize("seed", range(4))
CLOSE = 2e-3
"""SCS stops at residuals of 1e-6, which badly conditioned multipliers exceed."""


def _second_order(seed: int, sense: float, shift: float = 0.0):
    """Min or max c x over two cones and a ball, each ``w |A x + b| + 1 <= w (d x + e) + 1``."""
    rng = np.random.default_rng(seed)
    m = fo.Model()
    x = m.variable("x", 3)
    cones, rows = [], []
    for k, weight in enumerate((1.0, 2.5, 0.5)):
        a, b, d = rng.normal(size=(4, 3)), 0.3 * rng.normal(size=4), 0.2 * rng.normal(size=3)
        a, b, d = (np.eye(4, 3), np.zeros(4), np.zeros(3)) if k == 2 else (a, b, d)
        f, g = np.vstack([d, a]), np.concatenate([[2.0], b])
        r = shift * np.random.default_rng([seed, k]).normal(size=5)
        t, inside = f[0] @ x + g[0] - r[0], f[1:] @ x + g[1:] - r[1:]
        rows.append(m.subject_to(weight * fo.norm(inside) + 1 <= weight * t + 1))
        cones.append((f, g, r, weight))
    cost = rng.normal(size=3)
    (m.minimize if sense > 0 else m.maximize)(cost @ x)
    return m, x, cost, rows, cones


@BOTH
@SEEDS
@pytest.mark.parametrize("sense", [1.0, -1.0])
def test_second_order_duality(backend: str, seed: int, sense: float) -> None:
    m, x, cost, rows, cones = _second_order(seed, sense)
    s = m.solve(backend)
    duals = [s.cone_dual(row) for row in rows]
    assert max(np.abs(z).max() for z in duals) > 0.1
    for row, z, (f, g, _, weight) in zip(rows, duals, cones, strict=True):
        assert np.linalg.norm(z[1:]) <= sense * z[0] + 1e-5  # in the dual cone
        assert z @ (f @ s[x] + g) == pytest.approx(0, abs=1e-4)
        assert z[0] == pytest.approx(-weight * s.dual(row), abs=1e-5)
    assert sum(z @ f for z, (f, *_) in zip(duals, cones, strict=True)) == pytest.approx(cost, abs=1e-4)
    assert -sum(z @ g for z, (_, g, *_) in zip(duals, cones, strict=True)) == pytest.approx(
        s.objective, abs=1e-4
    )


@SEEDS
def test_second_order_like_cvxpy(seed: int) -> None:
    m, _, cost, rows, cones = _second_order(seed, 1.0)
    s = m.solve("clarabel")
    x = cp.Variable(3)
    theirs = [cp.SOC(f[0] @ x + g[0], f[1:] @ x + g[1:]) for f, g, *_ in cones]
    cp.Problem(cp.Minimize(cost @ x), theirs).solve(solver="CLARABEL")
    for row, cone in zip(rows, theirs, strict=True):
        head, tail = cone.dual_value
        assert s.cone_dual(row) == pytest.approx(np.append(head, tail), abs=1e-4)


@BOTH
@SEEDS
@pytest.mark.parametrize("sense", [1.0, -1.0])
def test_second_order_sensitivity(backend: str, seed: int, sense: float) -> None:
    m, _, _, rows, _ = _second_order(seed, sense)
    s, step = m.solve(backend), 1e-3
    up, down = (_second_order(seed, sense, by)[0].solve("clarabel").objective for by in (step, -step))
    shifts = [r for *_, r, _ in _second_order(seed, sense, 1.0)[4]]
    predicted = sum(s.cone_dual(row) @ r for row, r in zip(rows, shifts, strict=True))
    assert predicted == pytest.approx((up - down) / (2 * step), abs=CLOSE)


def _semidefinite(seed: int, sense: float, shift: float = 0.0):
    """Min or max c x over ``M0 + sum x_i M_i`` semidefinite, for two matrices and a box of matrices."""
    rng = np.random.default_rng(seed)
    basis = rng.normal(size=(2, 4, 3, 3))
    basis = basis + basis.transpose(0, 1, 3, 2)
    basis[:, 0] = 3 * np.eye(3)
    move = np.random.default_rng([seed, 9]).normal(size=(2, 3, 3))
    move = move + move.transpose(0, 2, 1)
    m = fo.Model()
    x = m.variable("x", 3, lower=-5, upper=5)
    matrices = fo.stack(
        [b[0] - shift * r + sum(x[i] * b[i + 1] for i in range(3)) for b, r in zip(basis, move, strict=True)],
        axis=0,
    )
    psd = m.subject_to(fo.semidefinite(matrices), name="psd")
    cost = rng.normal(size=3)
    (m.minimize if sense > 0 else m.maximize)(cost @ x)
    return m, x, cost, psd, basis, move


@BOTH
@SEEDS
@pytest.mark.parametrize("sense", [1.0, -1.0])
def test_semidefinite_duality(backend: str, seed: int, sense: float) -> None:
    m, x, cost, psd, basis, _ = _semidefinite(seed, sense)
    s = m.solve(backend)
    dual = s.dual(psd)
    assert dual.shape == (2, 3, 3) and np.abs(dual).max() > 0.05
    assert np.array_equal(dual, dual.transpose(0, 2, 1)) and np.array_equal(dual, s.dual("psd"))
    assert np.linalg.eigvalsh(sense * dual).min() >= -1e-5
    value = basis[:, 0] + np.einsum("i,kiab->kab", s[x], basis[:, 1:])
    assert np.einsum("kab,kbc->kac", dual, value) == pytest.approx(0, abs=1e-3)
    left = cost - np.einsum("kab,kiab->i", dual, basis[:, 1:]) - s.reduced_cost(x)
    assert left == pytest.approx(0, abs=1e-4)
    bound = -(dual * basis[:, 0]).sum() + s.reduced_cost(x) @ s[x]
    assert bound == pytest.approx(s.objective, abs=1e-3)


@SEEDS
def test_semidefinite_like_cvxpy(seed: int) -> None:
    m, _, cost, psd, basis, _ = _semidefinite(seed, 1.0)
    x = cp.Variable(3)
    theirs = [b[0] + sum(x[i] * b[i + 1] for i in range(3)) >> 0 for b in basis]
    cp.Problem(cp.Minimize(cost @ x), [*theirs, x >= -5, x <= 5]).solve(solver="CLARABEL")
    expected = np.array([c.dual_value for c in theirs])
    assert m.solve("clarabel").dual(psd) == pytest.approx(expected, abs=1e-4)


@BOTH
@SEEDS
@pytest.mark.parametrize("sense", [1.0, -1.0])
def test_semidefinite_sensitivity(backend: str, seed: int, sense: float) -> None:
    m, _, _, psd, _, move = _semidefinite(seed, sense)
    s, step = m.solve(backend), 1e-3
    up, down = (_semidefinite(seed, sense, by)[0].solve("clarabel").objective for by in (step, -step))
    assert (s.dual(psd) * move).sum() == pytest.approx((up - down) / (2 * step), abs=CLOSE)


@BOTH
def test_semidefinite_shapes(backend: str) -> None:
    """A single matrix keeps its two axes; entries across the diagonal may be different variables."""
    m = fo.Model()
    x = m.variable("x", (2, 2))
    one = m.subject_to(fo.semidefinite(x))
    many = m.subject_to(fo.semidefinite((x - np.eye(2)).reshape(1, 2, 2)))
    m.minimize(fo.trace(x) + x[0, 1])
    s = m.solve(backend)
    assert s.dual(one) == pytest.approx(np.zeros((2, 2)), abs=1e-3)
    assert s.dual(many) == pytest.approx(np.array([[[1, 0.5], [0.5, 1]]]), abs=1e-3)


@BOTH
def test_hermitian(backend: str) -> None:
    """The multiplier belongs to the real matrix of twice the order."""
    m = fo.Model()
    t = m.variable("t")
    real, imaginary = np.eye(2), np.array([[0.0, 1.0], [-1.0, 0.0]])
    psd = m.subject_to(fo.semidefinite(t * real, imaginary))
    m.minimize(t)
    s = m.solve(backend)
    whole = np.block([[real * s[t], -imaginary], [imaginary, real * s[t]]])
    assert s.dual(psd).shape == (4, 4) and np.trace(s.dual(psd)) == pytest.approx(1, abs=1e-4)
    assert s.dual(psd) @ whole == pytest.approx(0, abs=1e-4)


ATOMS = {
    "exp": (lambda x, t: fo.exp(x) <= t, lambda x, t, r: (x - r[0], 1 - r[1], t - r[2])),
    "log": (lambda x, t: fo.log(x) >= -t, lambda x, t, r: (-t - r[0], 1 - r[1], x - r[2])),
    "entropy": (lambda x, t: fo.entropy(x) >= -t, lambda x, t, r: (-t - r[0], x - r[1], 1 - r[2])),
    "square": (lambda x, t: fo.power(x, 4) <= t, lambda x, t, r: (t - r[0], 1 - r[1], x - r[2])),
    "convex": (lambda x, t: fo.power(x, 1.5) <= t, lambda x, t, r: (t - r[0], 1 - r[1], x - r[2])),
    "concave": (lambda x, t: fo.power(x, 0.5) >= -t, lambda x, t, r: (x - r[0], 1 - r[1], -t - r[2])),
    "negative": (lambda x, t: fo.power(x, -2) <= t, lambda x, t, r: (t - r[0], x - r[1], 1 - r[2])),
}
POWERS = {"square": 1 / 4, "convex": 1 / 1.5, "concave": 0.5, "negative": 1 / 3}


def _entry_optimum(atom: str, r: np.ndarray) -> float:
    """Min t + (x - 1/2)^2 - x / 2 with the cone's entries moved by r, by cvxpy."""
    x, t = cp.Variable(), cp.Variable()
    a, b, c = ATOMS[atom][1](x, t, r)
    one = [cp.reshape(e, (1,), order="F") if e.shape == () else e for e in (a + 0 * x, b + 0 * x, c + 0 * x)]
    cone = cp.PowCone3D(*one, POWERS[atom]) if atom in POWERS else cp.ExpCone(*one)
    problem = cp.Problem(cp.Minimize(t + (x - 0.5) ** 2 - 0.5 * x), [cone, x >= 0.1])
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return float(problem.value)


@BOTH
@pytest.mark.parametrize("atom", ATOMS)
def test_exponential_and_power_sensitivity(backend: str, atom: str) -> None:
    m = fo.Model()
    x, t = m.variable("x", lower=0.1), m.variable("t")
    row = m.subject_to(ATOMS[atom][0](x, t))
    m.minimize(t + fo.sum_squares(x - 0.5) - 0.5 * x)
    z = m.solve(backend).cone_dual(row)
    step = 1e-4
    for i in range(3):
        r = step * np.eye(3)[i]
        slope = (_entry_optimum(atom, r) - _entry_optimum(atom, -r)) / (2 * step)
        assert z[i] == pytest.approx(slope, abs=CLOSE)


@BOTH
@pytest.mark.parametrize("inside", [0.0, 0.7])
def test_a_norm_in_several_places_is_shared(backend: str, inside: float) -> None:
    """Two rows and the objective read the same norm: each has its own part, and the parts add up."""

    def solve(first: np.ndarray, second: np.ndarray):
        m = fo.Model()
        x, t = m.variable("x", 2), m.variable("t", 2)
        m.subject_to(x == np.array([3.0, 4.0]))
        if first.any() or second.any():
            rows = [m.subject_to(fo.norm(x - r[1:]) <= t[i] - r[0]) for i, r in enumerate((first, second))]
            m.minimize(t[0] + 2 * t[1] + inside * fo.norm(x))
        else:
            norm = fo.norm(x)
            rows = [m.subject_to(norm <= t[0]), m.subject_to(norm <= t[1])]
            m.minimize(t[0] + 2 * t[1] + inside * norm)
        return m.solve(backend if not (first.any() or second.any()) else "clarabel"), rows

    zero, r = np.zeros(3), np.array([1.0, 0.5, -2.0])
    s, rows = solve(zero, zero)
    for row, weight in zip(rows, (1.0, 2.0), strict=True):
        assert s.cone_dual(row) == pytest.approx(weight * np.array([1, -0.6, -0.8]), abs=1e-3)
    for k, row in enumerate(rows):
        ends = [solve(*((h * r, zero) if k == 0 else (zero, h * r)))[0].objective for h in (1e-3, -1e-3)]
        assert s.cone_dual(row) @ r == pytest.approx((ends[0] - ends[1]) / 2e-3, abs=CLOSE)


@BOTH
def test_the_tip_of_a_cone(backend: str) -> None:
    """At x = 0 and t = 0 the bound of a norm by 0 takes no part of the multiplier."""
    m = fo.Model()
    x, t = m.variable("x", 2), m.variable("t")
    row = m.subject_to(2 * fo.norm(x) - t <= 0)
    m.minimize(t + 0.6 * x[0])
    assert m.solve(backend).cone_dual(row) == pytest.approx([2.0, 0.6, 0.0], abs=1e-3)


def test_many_rows_parameters_and_pickles() -> None:
    """One row for each norm of an array; a parameter moves the right-hand side."""
    m = fo.Model()
    x = m.variable("x", (3, 2))
    radius = m.parameter("radius", value=1.0)
    rows = m.subject_to(fo.norm(x, axis=1) <= radius * np.array([1.0, 2.0, 3.0]), name="balls")
    m.maximize(3 * x[:, 0].sum() + 4 * x[:, 1].sum())
    for value in (1.0, 5.0):
        radius.value = value
        s = pickle.loads(pickle.dumps(m.solve("clarabel")))
        assert s.objective == pytest.approx(30 * value, abs=1e-4)
        assert s.cone_dual("balls") == pytest.approx(np.tile([-5.0, 3.0, 4.0], (3, 1)), abs=1e-4)
    assert s.dual("balls").shape == (3,) and rows.shape == (3,)


def test_refusals() -> None:
    m = fo.Model()
    x, t = m.variable("x", 2), m.variable("t", lower=-9, upper=9)
    square = m.subject_to(fo.sum_squares(x) <= 4, name="square")
    two = m.subject_to(fo.norm(x) + fo.norm(x - 1) <= t, name="two")
    plain = m.subject_to(x.sum() + t >= 1, name="plain")
    psd = m.subject_to(fo.semidefinite(fo.symmetric(fo.stack([t, x[0], t]))), name="psd")
    m.minimize(t)
    s = m.solve("clarabel")
    assert s.dual(square).shape == s.dual(two).shape == ()
    for row, words in ((square, "sum_squares"), (two, "reads 2"), (plain, "reads 0")):
        with pytest.raises(fo.DeclarationError, match=words):
            s.cone_dual(row)
    with pytest.raises(fo.DeclarationError, match="cone_dual needs a constraint of rows"):
        s.cone_dual(psd)
    late = m.subject_to(fo.semidefinite(fo.symmetric(fo.stack([t, x[1], t]))), name="late")
    ball = m.subject_to(fo.norm(2 * x) <= 9, name="ball")
    with pytest.raises(fo.DeclarationError, match="'late' was added after"):
        s.dual(late)
    with pytest.raises(fo.DeclarationError, match="added after"):
        s.cone_dual(ball)
    with pytest.raises(fo.DeclarationError, match="not in model"):
        s.dual(fo.semidefinite(fo.symmetric(fo.stack([t, x[1], t]))))
    m.remove(psd)
    assert s.dual(psd).shape == (2, 2)
    with pytest.raises(fo.UnknownNameError, match="nothing"):
        s.dual("nothing")


def test_other_conditions_and_integers_have_no_duals() -> None:
    m = fo.Model()
    x, b = m.variable("x", 2, upper=3), m.variable("b", binary=True)
    rule = m.subject_to(fo.implies(b, x.sum() <= 1))
    ball = m.subject_to(fo.norm(x) <= 2)
    m.maximize(x.sum() + b)
    s = m.solve()
    with pytest.raises(fo.DeclarationError, match="gave no"):
        s.cone_dual(ball)
    with pytest.raises(fo.DeclarationError, match=r"gave no|needs rows"):
        s.dual(rule)


@pytest.mark.parametrize("backend", ["scip", "pyomo:ipopt"])
def test_backends_without_multipliers_of_cones(backend: str) -> None:
    """A nonlinear solver or a search has no dual cone; no number is made up."""
    m = fo.Model()
    x = m.variable("x", 2)
    disk = m.subject_to(fo.norm(x) <= 2)
    m.minimize(x.sum())
    try:
        s = m.solve(backend)
    except fo.NotInstalledError:
        pytest.skip(f"{backend} is not installed")
    with pytest.raises(fo.DeclarationError, match="gave no"):
        s.cone_dual(disk)
