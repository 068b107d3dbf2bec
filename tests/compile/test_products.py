"""Products that are not convex: on global solvers against brute force, and their relaxations."""

import itertools

import numpy as np
import pytest

import forcopt as fo
from forcopt.backends import get_backend

GLOBAL = [name for name in ("scip", "gscip") if get_backend(name).missing() is None]


def haverly(demand, cost):
    """The pooling problem of Haverly (1978): sources with sulphur 3 and 1 meet in a pool; a third has 2."""
    m = fo.Model("pooling")
    bought = m.variable("bought", 3, lower=0, upper=600)
    pooled, direct = m.variable("pooled", 2, lower=0, upper=600), m.variable("direct", 2, lower=0, upper=600)
    sulphur = m.variable("sulphur", lower=1, upper=3)
    m.subject_to(bought[:2].sum() == pooled.sum(), bought[2] == direct.sum())
    m.subject_to([3, 1] @ bought[:2] == sulphur * pooled.sum())
    m.subject_to(sulphur * pooled + 2 * direct <= np.array([2.5, 1.5]) * (pooled + direct))
    m.subject_to(pooled + direct <= [demand, 200])
    m.minimize([6, cost, 10] @ bought - [9, 15] @ (pooled + direct))
    return m


@pytest.mark.parametrize("name", GLOBAL)
@pytest.mark.parametrize(("demand", "cost", "best"), [(100, 16, -400), (600, 16, -600), (100, 13, -750)])
def test_pooling(name, demand, cost, best):
    m = haverly(demand, cost)
    s = m.solve(name)
    assert s.status is fo.Status.OPTIMAL
    assert (s.objective, s.bound) == (pytest.approx(best, abs=1e-3), pytest.approx(best, abs=1e-3))
    bounds = [m.solve("highs", mccormick=pieces).bound for pieces in (1, 4, 8)]
    assert bounds == sorted(bounds) and bounds[-1] <= best + 1e-6 and bounds[0] < bounds[-1]


@pytest.mark.parametrize("seed", range(6))
def test_bilinear_against_a_grid(seed):
    """The optimum is below every point of a grid, and not far below the best one."""
    rng = np.random.default_rng(seed)
    form, slope = rng.integers(-4, 5, (3, 3)), rng.integers(-4, 5, 3)
    row, most = rng.integers(-2, 3, 3), 2
    m = fo.Model()
    x = m.variable("x", 3, lower=-1, upper=[1, 2, 1])
    cap = m.subject_to(row @ x <= most)
    value = sum(int(form[i, j]) * x[i] * x[j] for i in range(3) for j in range(3)) + slope @ x
    m.minimize(value)
    s = m.solve("scip")
    assert s.status is fo.Status.OPTIMAL and cap.relative_violation(s.point).max() <= 1e-6
    assert s.objective == pytest.approx(s[x] @ form @ s[x] + slope @ s[x], abs=1e-5)
    axes = [np.linspace(low, high, 41) for low, high in zip([-1] * 3, [1, 2, 1], strict=True)]
    grid = np.array(list(itertools.product(*axes)))
    inside = grid[grid @ row <= most]
    least = (np.einsum("ni,ij,nj->n", inside, form, inside) + inside @ slope).min()
    assert least - 0.5 <= s.objective <= least + 1e-6
    relaxed = [m.solve("highs", mccormick=pieces).bound for pieces in (1, 2, 6)]
    assert all(bound <= s.objective + 1e-6 for bound in relaxed) and relaxed[2] >= relaxed[0] - 1e-6
    symmetric = form + form.T
    m.minimize(fo.quad_form(x, symmetric / 2, nonconvex=True) + slope @ x)
    assert m.solve("scip").objective == pytest.approx(s.objective, abs=1e-5)


@pytest.mark.parametrize("name", [*GLOBAL, "cp-sat"])
@pytest.mark.parametrize("seed", range(4))
def test_integer_products_by_enumeration(name, seed):
    rng = np.random.default_rng(seed)
    target, slope = int(rng.integers(-6, 7)), rng.integers(-3, 4, 3)
    m = fo.Model()
    x = m.variable("x", 3, lower=-3, upper=4, integer=True)
    m.subject_to(x[0] * x[1] + x[2] * x[2] >= target, (x[0] + 1) * (x[1] - x[2]) <= 5)
    m.maximize(slope @ x - x[0] * x[1] * x[2])
    points = np.array(list(itertools.product(range(-3, 5), repeat=3)))
    a, b, c = points.T
    right = (a * b + c * c >= target) & ((a + 1) * (b - c) <= 5)
    best = (points @ slope - a * b * c)[right].max()
    s = m.solve(name)
    assert s.status is fo.Status.OPTIMAL and s.objective == pytest.approx(best, abs=1e-6)
    assert s.certify().feasible
    bound = m.solve("highs", mccormick=3).bound
    assert bound >= best - 1e-6


def test_a_factor_without_bounds_is_not_dominated():
    """Nothing but the product keeps x above 0: CP-SAT needs a bound, and SCIP none."""
    m = fo.Model()
    x = m.variable("x", 2, lower=0, integer=True)
    m.subject_to(x[0] * x[1] >= 12)
    m.minimize(x.sum())
    with pytest.raises(fo.UnboundedExpressionError, match="has no upper bound"):
        m.solve("cp-sat")
    assert m.solve("scip").objective == pytest.approx(7)
    x.upper = 50
    assert m.solve("cp-sat").objective == 7


def test_a_relaxation_is_never_an_optimum_of_the_model():
    m = fo.Model()
    x, y = m.variable("x", lower=0, upper=2), m.variable("y", lower=0, upper=2)
    m.subject_to(x + y <= 2)
    m.maximize(x * y)
    s = m.solve("highs", mccormick=1)  # every point of the rows is one of the model
    assert (s.status, s.bound) == (fo.Status.FEASIBLE, pytest.approx(2)) and s.objective <= 1 + 1e-6
    assert "a bound only" in s.message
    m.maximize(x * y - 10 * y)  # here the relaxation is exact
    s = m.solve("highs", mccormick=1)
    assert (s.status, s.objective, s.bound) == (fo.Status.OPTIMAL, pytest.approx(0), pytest.approx(0))
    m.subject_to(x * y >= 0.9)
    m.maximize(x)
    s = m.solve("highs", mccormick=1)
    assert (s.status, s.point) == (fo.Status.LIMIT, None) and "relaxation only" in s.message
    assert s.bound >= m.solve("scip").objective == pytest.approx(1 + 0.1**0.5, abs=1e-5)
    m.subject_to(x * y >= 1.5)
    assert m.solve("highs", mccormick=1).status is fo.Status.LIMIT
    assert m.solve("highs", mccormick=8).status is m.solve("scip").status is fo.Status.INFEASIBLE


def test_what_no_backend_takes_names_those_that_could():
    m = fo.Model()
    x = m.variable("x", 2, lower=-1, upper=2)
    m.subject_to(x[0] * x[1] >= 1)
    with pytest.raises(fo.UnsupportedError, match=r"products of variables.*able: .*scip.*mccormick=1"):
        m.solve("highs")
    assert m.solve().backend == "scip" and m.solve(mccormick=1).backend == "highs"
    with pytest.raises(fo.DeclarationError, match="mccormick is -1; it must be a number"):
        m.solve(mccormick=-1)
    free = m.variable("free", lower=0)
    m.subject_to(free * x[0] <= 3)
    with pytest.raises(fo.UnboundedExpressionError, match="variable free has no upper bound"):
        m.solve("highs", mccormick=2)


def test_nothing_claims_convexity():
    m = fo.Model()
    x = m.variable("x", 2, lower=-2, upper=2)
    m.minimize(x[0] * x[1] + x[0])
    s = m.solve("scip")
    certificate = s.certify(rounding=1e-6)
    assert certificate.feasible and certificate.bound is None and "not proved" in certificate.how
    free = fo.Model()
    y = free.variable("y", 2)
    free.minimize(y[0] * y[1])
    assert free.solve("scip", time_limit=1).status is not fo.Status.OPTIMAL
    assert free.solve("scip", time_limit=1).status is not fo.Status.UNBOUNDED


def test_products_with_binaries_and_parameters_stay_linear():
    m = fo.Model()
    b, x = m.variable("b", 2, binary=True), m.variable("x", 2, lower=0, upper=[3, 5])
    price = m.parameter("price", value=2)
    m.subject_to(b.sum() <= 1)
    m.maximize(b @ x - 0.1 * x.sum() + price * (b[0] * x[0]))
    assert m.solve("highs").objective == pytest.approx(9 - 0.3)
    price.value = 0.5
    assert m.solve("highs").objective == pytest.approx(4.5)
    m.maximize(price * x[0] * x[1] - x[0] * x[0])
    s = m.solve("scip")
    assert s.objective == pytest.approx(0.5 * 5 * 1.25 - 1.25**2, abs=1e-5)
    price.value = 2
    assert m.solve("scip").objective == pytest.approx(3 * 10 - 9, abs=1e-5)


def test_leximin_of_products():
    """The smaller of both is as large as at any point of a grid."""
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=[2, 3])
    m.subject_to(2 * x[0] + x[1] <= 4)
    utilities = fo.stack([x[0] * x[1], 2 - x[1] + x[0]])
    m.leximin(utilities)
    s = m.solve("scip")
    a, b = (e.reshape(-1) for e in np.meshgrid(np.linspace(0, 2, 401), np.linspace(0, 3, 601)))
    a, b = a[2 * a + b <= 4], b[2 * a + b <= 4]
    best = np.minimum(a * b, 2 - b + a).max()
    assert s.status is fo.Status.OPTIMAL and s.levels[0] == pytest.approx(best, abs=0.02)
    assert s.levels[0] >= best - 1e-6
    m.leximin(utilities, "saturation")
    with pytest.raises(fo.DeclarationError, match="needs a convex model, and it has products"):
        m.solve("scip")


def test_products_keep_labels():
    m = fo.Model()
    x = m.variable("x", index={"unit": ["a", "b"]}, lower=1, upper=3)
    y = m.variable("y", index={"unit": ["b", "a"]}, lower=1, upper=3)
    m.subject_to(x.loc["a"] == 2, y.loc["a"] == 3, x.loc["b"] == 1, y.loc["b"] == 1)
    z = x * y
    m.minimize(z.sum())
    s = m.solve("scip")
    assert s.to_pandas(z).round(6).to_dict() == {"a": 6.0, "b": 1.0}
