"""Bridges of logic, special sets and the newer atoms, against brute force on several backends."""

import itertools

import numpy as np
import pytest
from scipy import optimize, special

import forcopt as fo

LOW, HIGH = -2, 3
GRID = np.array(list(itertools.product(range(LOW, HIGH + 1), repeat=3)), dtype=float)
MIXED = ["highs", "scip", "cp-sat"]


def _violated(name, v):
    """What each condition says, written anew."""
    ordered = [sorted(abs(v), reverse=True)]
    return {
        "all_different": lambda: len(set(v)) == 3,
        "semicontinuous": lambda: all(a == 0 or 2 <= a <= 3 for a in v),
        "negative semicontinuous": lambda: all(a == 0 or -2 <= a <= -1 for a in v),
        "sos1": lambda: ordered[0][1] == 0,
        "sos2": lambda: v[0] == 0 or v[2] == 0,
        "either": lambda: (v[0] <= -1 and v[1] >= 1) or v[1] + v[2] == 4,
        "either each": lambda: all(a <= -1 or a >= 2 for a in v),
        "or": lambda: v[0] <= -1 or v[1] >= 2 or v[2] == 0,
    }[name]()


CONDITIONS = {
    "all_different": lambda x: fo.all_different(x),
    "semicontinuous": lambda x: fo.semicontinuous(x, 2, 3),
    "negative semicontinuous": lambda x: fo.semicontinuous(x, -np.inf, [-1, -1, -1]),
    "sos1": lambda x: fo.sos1(x),
    "sos2": lambda x: fo.sos2(x),
    "either": lambda x: fo.either([x[0] <= -1, x[1] >= 1], x[1] + x[2] == 4),
    "either each": lambda x: fo.either(x <= -1, x >= 2, elementwise=True),
    "or": lambda x: (x[0] <= -1) | (x[1] >= 2) | (x[2] == 0),
}


@pytest.mark.parametrize("backend", MIXED)
@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions(name, backend):
    allowed = np.array([_violated(name, v) for v in GRID])
    rng = np.random.default_rng(len(name))
    for _ in range(4):
        cost = rng.integers(-5, 6, size=3).astype(float)
        m = fo.Model()
        x = m.variable("x", 3, lower=LOW, upper=HIGH, integer=True)
        condition = m.subject_to(CONDITIONS[name](x), name="rule")
        m.minimize(cost @ x)
        s = m.solve(backend)
        assert s.status == "optimal" and s.objective == (GRID[allowed] @ cost).min()
    for v, right in zip(GRID, allowed, strict=True):
        assert (np.max(condition.violation(m.point({x: v}))) == 0) == right


def test_conditions_on_continuous_variables():
    m = fo.Model()
    x = m.variable("x", 4, lower=0, upper=[1.5, 4, 2.5, 9])
    m.subject_to(fo.sos2(x), fo.semicontinuous(x[3], 8.5))
    m.maximize(x.sum() - 0.9 * x[3])
    assert m.solve().objective == m.solve("scip").objective == pytest.approx(6.5)
    y = m.variable("y", lower=0, upper=10)
    m.subject_to(fo.either(y <= 2.5, y >= 7.25))
    m.minimize(fo.abs(y - 5))
    s = m.solve()
    assert s.objective == pytest.approx(2.25) and s.certify().feasible
    assert "disjunction_implications" in s.bridges and "semicontinuous_binaries" in s.bridges
    with pytest.raises(fo.UnsupportedError, match=r"able: .*highs"):
        m.solve("clarabel")


TABLES = {
    "and": (lambda a, b, c: a & b, lambda a, b, c: a and b),
    "or": (lambda a, b, c: a | b, lambda a, b, c: a or b),
    "not": (lambda a, b, c: ~a, lambda a, b, c: not a),
    "and of not": (lambda a, b, c: ~a & (b | ~c), lambda a, b, c: not a and (b or not c)),
    "with numbers": (lambda a, b, c: (a & True) | (b & 0) | (c & 1), lambda a, b, c: a or c),
    "all_of": (lambda a, b, c: fo.all_of(fo.stack([a, b, c])), lambda a, b, c: a and b and c),
    "any_of": (lambda a, b, c: fo.any_of(fo.stack([a, b, c])), lambda a, b, c: a or b or c),
}


@pytest.mark.parametrize("backend", MIXED)
@pytest.mark.parametrize("name", TABLES)
def test_truth_tables(name, backend):
    ours, python = TABLES[name]
    for bits in itertools.product([0, 1], repeat=3):
        for sign in (1, -1):  # the value is exact, not only bounded from one side
            m = fo.Model()
            b = m.variable("b", 3, binary=True)
            m.subject_to(b == bits)
            m.minimize(sign * ours(*b))
            s = m.solve(backend)
            assert sign * s.objective == bool(python(*bits))
            assert ours(*b).evaluate(m.point({b: bits})) == bool(python(*bits))


@pytest.mark.parametrize(
    ("constraint", "holds"),
    [
        (lambda x: x.sum() >= 3, lambda v: v.sum() >= 3),
        (lambda x: x.sum() <= 0.5, lambda v: v.sum() <= 0.5),
        (lambda x: x[0] - x[1] == 1, lambda v: v[0] - v[1] == 1),
        (lambda x: (2 * x[2]).between(-3, 1), lambda v: -3 <= 2 * v[2] <= 1),
    ],
)
def test_iff(constraint, holds):
    for wanted in (0, 1):
        allowed = np.array([holds(v) == wanted for v in GRID])
        for cost in ([1, 2, 3], [-3, 1, 2], [2, -1, -1]):
            m = fo.Model()
            x, b = m.variable("x", 3, lower=LOW, upper=HIGH, integer=True), m.variable("b", binary=True)
            m.subject_to(fo.iff(b, constraint(x)), b == wanted)
            m.minimize(np.array(cost, dtype=float) @ x)
            assert m.solve().objective == m.solve("cp-sat").objective == (GRID[allowed] @ cost).min()


def test_counts_and_equal_binaries():
    m = fo.Model()
    b = m.variable("b", 5, binary=True)
    m.subject_to(fo.exactly(2, b), fo.at_most(1, b[:3]), fo.at_least(1, b[3:]), fo.iff(b[0], ~b[4]))
    values = np.array([5, 4, 3, 2, 1])
    m.maximize(values @ b)
    best = max(
        np.dot(values, v)
        for v in itertools.product([0, 1], repeat=5)
        if sum(v) == 2 and sum(v[:3]) <= 1 and sum(v[3:]) >= 1 and v[0] != v[4]
    )
    assert m.solve().objective == best


@pytest.mark.parametrize("backend", ["highs", "scip"])
@pytest.mark.parametrize("seed", range(4))
def test_piecewise_linear_of_any_shape(seed, backend):
    rng = np.random.default_rng(seed)
    points = np.sort(rng.choice(np.arange(-6, 7), size=5, replace=False)).astype(float)
    values = rng.integers(-6, 7, size=5).astype(float)
    m = fo.Model()
    x = m.variable("x", 2, lower=[-7, -3], upper=[8, 4])
    f = fo.piecewise_linear(x, points, values, binaries=True)
    m.subject_to(x.sum() == 1)
    grid = np.unique(np.concatenate([points, 1 - points, [-3, 4, -7 + 8, 5]]))  # where slopes change
    grid = grid[(grid >= -3) & (grid <= 4)]

    def by_hand(v):
        slopes = np.diff(values) / np.diff(points)
        out = np.interp(v, points, values)
        out = np.where(v < points[0], values[0] + slopes[0] * (v - points[0]), out)
        return np.where(v > points[-1], values[-1] + slopes[-1] * (v - points[-1]), out)

    for sign in (1, -1):
        m.minimize(sign * f.sum())
        expected = (sign * (by_hand(1 - grid) + by_hand(grid))).min()
        s = m.solve(backend)
        assert s.objective == pytest.approx(expected) and s[f] == pytest.approx(by_hand(s[x]))
    assert fo.piecewise_linear(grid, points, values, binaries=True) == pytest.approx(by_hand(grid))
    m.subject_to(f[0] == values.mean(), name="an equation may use it")
    assert m.solve(backend).status in ("optimal", "infeasible")


@pytest.mark.parametrize("backend", ["clarabel", "scs"])
@pytest.mark.parametrize(
    ("atom", "value"),
    [
        (lambda e: fo.log_sum_exp(e), special.logsumexp),
        (lambda e: fo.huber(e, 0.7).sum(), lambda v: 2 * special.huber(0.7, v).sum()),
        (lambda e: fo.norm(e, 3), lambda v: np.linalg.norm(v, 3)),
        (lambda e: fo.norm(e, 1.3), lambda v: np.linalg.norm(v, 1.3)),
        (lambda e: -fo.geometric_mean(e + 9), lambda v: -np.exp(np.log(v + 9).mean())),
        (
            lambda e: -fo.geometric_mean(e + 9, weights=[1, 2, 0, 3]),
            lambda v: -np.exp(np.log(v + 9) @ [1 / 6, 1 / 3, 0, 0.5]),
        ),
        (lambda e: fo.log_sum_exp(fo.abs(e)), lambda v: special.logsumexp(abs(v))),
    ],
)
def test_conic_atoms(atom, value, backend):
    rng = np.random.default_rng(3)
    matrix, offset, target = rng.normal(size=(4, 2)), rng.normal(size=4), rng.normal(size=2)
    m = fo.Model()
    x = m.variable("x", 2, lower=-2, upper=2)
    m.minimize(atom(matrix @ x + offset) + 0.1 * fo.sum_squares(x - target))
    found = optimize.minimize(
        lambda v: value(matrix @ v + offset) + 0.1 * ((v - target) ** 2).sum(),
        np.zeros(2),
        bounds=[(-2, 2)] * 2,
        method="Powell",
        options={"xtol": 1e-9, "ftol": 1e-12, "maxiter": 10000},
    )
    s = m.solve(backend)
    assert s.status == "optimal" and s.objective == pytest.approx(
        found.fun, abs=2e-4 if backend == "scs" else 1e-5
    )


def test_sizes_are_those_stated():
    from forcopt.backends import get_backend
    from forcopt.compile import compile_model

    def size(write, backend="highs"):
        m = fo.Model()
        x = m.variable("x", 4, lower=0, upper=4, integer=True)
        thing = write(m, x)
        if isinstance(thing, fo.Expression):
            m.minimize(thing.sum())
        else:
            m.subject_to(thing)
        p = compile_model(m, get_backend(backend).capabilities)
        cones = sum(len(c.offset) // c.size for c in p.cones)
        return p.columns - m.column_count, int((p.integer[m.column_count :] == 1).sum()), p.rows.count, cones

    k, n = 3, 4  # segments within the bounds, elements
    pieces = (n * k + n * (k - 1), n * (k - 1), n * 2 * k, 0)
    for points, values in (([0, 1, 3, 4], [0, 2, 1, 4]), ([1, 3], [0, 2])):
        f = lambda m, x, p=points, v=values: fo.piecewise_linear(x, p, v, binaries=True)  # noqa: E731
        assert size(f) == pieces
    assert size(lambda m, x: fo.all_different(x)) == (20, 20, 2 * 4 + 5, 0)
    assert size(lambda m, x: fo.sos1(x)) == (4, 4, 9, 0) and size(lambda m, x: fo.sos2(x)) == (3, 3, 9, 0)
    assert size(lambda m, x: fo.semicontinuous(x, 2)) == (4, 4, 8, 0)
    b = lambda m: m.variable("b", 4, binary=True)  # noqa: E731
    assert size(lambda m, x: fo.all_of(b(m))) == (0, 0, 6, 0)
    continuous = {"log_sum_exp": (4, 0, 1, 4), "geometric_mean": (2, 0, 0, 3), "norm": (4, 0, 1, 4)}
    for name, expected in continuous.items():
        m = fo.Model()
        x = m.variable("x", 4, lower=0, upper=4)
        atom = fo.norm(x, 3) if name == "norm" else getattr(fo, name)(x)
        (m.maximize if name == "geometric_mean" else m.minimize)(atom)
        p = compile_model(m, get_backend("clarabel").capabilities)
        cones = sum(len(c.offset) // c.size for c in p.cones)
        assert (p.columns - m.column_count, 0, p.rows.count, cones) == expected, name


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda m, x, b: b & x, "an operand of &[0] must be binary"),
        (lambda m, x, b: b | 2, "an operand of | must be binary or 0 and 1"),
        (lambda m, x, b: ~x, "the operand of ~[0] must be binary"),
        (lambda m, x, b: fo.exactly(1.5, b), "k is 1.5; it must be an integer"),
        (lambda m, x, b: fo.exactly(9, b), "k is 9; there are 3 elements"),
        (lambda m, x, b: fo.iff(b[0], x[0] <= 1), "takes values between the integers"),
        (lambda m, x, b: fo.all_different(x), "integers only"),
        (lambda m, x, b: (x <= 1) | (x >= 2), "| is for single rows"),
        (lambda m, x, b: fo.either(x <= 1), "two or more alternatives"),
        (lambda m, x, b: fo.either(x <= 1, []), "an alternative is empty"),
        (lambda m, x, b: fo.either(x <= 1, 5), "not 5"),
        (lambda m, x, b: fo.semicontinuous(x, 3, 2), "lower 3 is above upper 2"),
        (lambda m, x, b: fo.sos1(x[0]), "not a scalar"),
        (lambda m, x, b: fo.piecewise_linear(x, [1, 1], [0, 1]), "points[1] is 1, which is not above 1"),
        (lambda m, x, b: fo.piecewise_linear(x, [1], [0]), "two or more numbers"),
        (lambda m, x, b: fo.huber(x, 0), "the threshold is 0"),
        (lambda m, x, b: fo.geometric_mean(x, weights=[1, -1, 1]), "weights must be 3 numbers >= 0"),
        (lambda m, x, b: fo.trace(x), "trace takes a matrix"),
        (
            lambda m, x, b: m.minimize(fo.piecewise_linear(fo.abs(x[0]), [0, 1, 2, 3], [0, 2, 1, 4])),
            "must be affine",
        ),
        (lambda m, x, b: m.maximize(fo.log_sum_exp(x)), "must be concave"),
    ],
)
def test_bad_arguments(act, message):
    import re

    m = fo.Model()
    x, b = m.variable("x", 3), m.variable("b", 3, binary=True)
    with pytest.raises(ValueError, match=re.escape(message)):
        act(m, x, b)


def test_bounds_are_asked_for():
    m = fo.Model()
    x = m.variable("x", lower=0)
    m.subject_to(fo.semicontinuous(x, 2))
    m.maximize(-x)
    with pytest.raises(fo.UnboundedExpressionError, match="x has no upper bound"):
        m.solve()


def test_affine_functions():
    m = fo.Model()
    x = m.variable("x", (3, 4))
    v = np.arange(12.0).reshape(3, 4) ** 2
    point = m.point({x: v})
    for ours, numpy in (
        (fo.cumsum(x), np.cumsum(v)),
        (fo.cumsum(x, axis=0), np.cumsum(v, axis=0)),
        (fo.cumsum(2 * x + 1, axis=-1), np.cumsum(2 * v + 1, axis=-1)),
        (fo.diag(x), np.diag(v)),
        (fo.diag(x[0]), np.diag(v[0])),
        (fo.trace(x[:, :3]), np.trace(v[:, :3])),
    ):
        np.testing.assert_allclose(ours.evaluate(point), numpy)
    assert fo.cumsum([1, 2]).tolist() == [1, 3] and fo.trace([[1, 2], [3, 4]]) == 5


def test_certificates_hold_for_logic_and_pieces():
    m = fo.Model()
    b = m.variable("b", 3, binary=True)
    m.maximize(5 * fo.all_of(b) - b.sum())
    certificate = m.solve().certify()
    assert certificate.optimal and certificate.objective == 2
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=30)
    m.subject_to(x.sum() >= 20)
    m.minimize(fo.piecewise_linear(x, [0, 10, 20], [0, 50, 70], binaries=True).sum())
    s = m.solve()
    assert s.objective == pytest.approx(70) and s.certify().optimal


@pytest.mark.parametrize("method", [None, "compact", "cuts"])
def test_leximin_over_a_function_that_is_not_concave(method):
    points, values = [0, 1, 2, 3], [0, 0.2, 2, 2.5]
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=3)
    m.subject_to(x.sum() <= 3)
    m.leximin(fo.stack([fo.piecewise_linear(x[0], points, values, binaries=True), x[1]]), method)
    first = np.linspace(0, 3, 30001)
    best = max(sorted(pair) for pair in zip(np.interp(first, points, values), 3 - first, strict=True))
    assert m.solve().levels == pytest.approx(best, abs=1e-3)


def test_semicontinuous_bounds_infinite_on_the_wrong_side_are_refused():
    x = fo.Model().variable("x", lower=0, upper=10)
    for bounds, words in (((np.inf, np.inf), "lower is inf"), ((-np.inf, -np.inf), "upper is -inf")):
        with pytest.raises(fo.DeclarationError, match=f"semicontinuous: {words}; it must be a number or"):
            fo.semicontinuous(x, *bounds)
