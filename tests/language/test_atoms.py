import copy
import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

import forcopt as fo

INF = float("inf")
P = np.array([[2.0, 1, 0], [1, 3, 1], [0, 1, 1]])


def largest(x, k, axis=None):
    return np.sort(x.ravel() if axis is None else np.moveaxis(x, axis, -1), axis=-1)[..., -k:].sum(axis=-1)


# name: the atom of an expression X of shape (2, 3) with positive values, and the same by numpy
ATOMS = {
    "abs": (lambda X: fo.abs(X - 2), lambda v: np.abs(v - 2)),
    "builtin abs": (lambda X: abs(X - 2), lambda v: np.abs(v - 2)),
    "maximum": (
        lambda X: fo.maximum(X, 1, X[0] * 2),
        lambda v: np.maximum.reduce([v, v * 0 + 1, v * 0 + 2 * v[0]]),
    ),
    "maximum of scalars": (lambda X: fo.maximum(X[0, 0], 1), lambda v: np.maximum(v[0, 0], 1)),
    "maximum along": (lambda X: fo.maximum(X, axis=0), lambda v: v.max(axis=0)),
    "minimum": (lambda X: fo.minimum(X, [1, 2, 3]), lambda v: np.minimum(v, [1, 2, 3])),
    "minimum along": (lambda X: fo.minimum(X, axis=-1), lambda v: v.min(axis=-1)),
    "positive_part": (lambda X: fo.positive_part(X - 2), lambda v: np.maximum(v - 2, 0)),
    "sum_largest": (lambda X: fo.sum_largest(X, 4), lambda v: largest(v, 4)),
    "sum_largest along": (lambda X: fo.sum_largest(X, 2, axis=1), lambda v: largest(v, 2, 1)),
    "sum_smallest": (lambda X: fo.sum_smallest(X, 2, axis=0), lambda v: v.sum(axis=0)),
    "norm": (lambda X: fo.norm(X), np.linalg.norm),
    "norm 1": (lambda X: fo.norm(X - 2, 1, axis=0), lambda v: np.linalg.norm(v - 2, 1, axis=0)),
    "norm 2": (lambda X: fo.norm(X, 2, axis=1), lambda v: np.linalg.norm(v, 2, axis=1)),
    "norm inf": (lambda X: fo.norm(X - 2, INF), lambda v: np.abs(v - 2).max()),
    "sum_squares": (lambda X: fo.sum_squares(X), lambda v: (v**2).sum()),
    "sum_squares along": (lambda X: fo.sum_squares(X, axis=0), lambda v: (v**2).sum(axis=0)),
    "quad_form": (lambda X: fo.quad_form(X[0], P), lambda v: v[0] @ P @ v[0]),
    "concave quad_form": (lambda X: fo.quad_form(X[0], -P), lambda v: -v[0] @ P @ v[0]),
    "sparse quad_form": (lambda X: fo.quad_form(X[0], sp.csr_array(P)), lambda v: v[0] @ P @ v[0]),
    "diagonal quad_form": (
        lambda X: fo.quad_form(X[0], sp.diags_array([1.0, 0, 4])),
        lambda v: v[0] ** 2 @ [1, 0, 4],
    ),
    "singular quad_form": (lambda X: fo.quad_form(X[0], np.ones((3, 3))), lambda v: v[0].sum() ** 2),
    "quad_over_lin": (lambda X: fo.quad_over_lin(X[0], X[1, 0]), lambda v: (v[0] ** 2).sum() / v[1, 0]),
    "quad_over_lin of a number": (lambda X: fo.quad_over_lin(X, 4), lambda v: (v**2).sum() / 4),
    "inverse": (lambda X: fo.inverse(X), lambda v: 1 / v),
    "division": (lambda X: 3 / X, lambda v: 3 / v),
    "log": (lambda X: fo.log(X), np.log),
    "exp": (lambda X: fo.exp(X), np.exp),
    "entropy": (lambda X: fo.entropy(X), special.entr),
    "logistic": (lambda X: fo.logistic(X), lambda v: np.log(1 + np.exp(v))),
    "kl_div": (lambda X: fo.kl_div(X, X[0] + 1), lambda v: special.kl_div(v, v * 0 + v[0] + 1)),
    "kl_div of a number": (lambda X: fo.kl_div(2.0, X), lambda v: special.kl_div(2.0, v)),
    "power 1": (lambda X: X**1, lambda v: v),
    "power 2": (lambda X: X**2, lambda v: v**2),
    "power 3": (lambda X: X**3, lambda v: v**3),
    "power 4": (lambda X: (X - 2) ** 4, lambda v: (v - 2) ** 4),
    "power 1.5": (lambda X: X**1.5, lambda v: v**1.5),
    "power 0.5": (lambda X: X**0.5, np.sqrt),
    "power -1": (lambda X: X**-1, lambda v: 1 / v),
    "power -2": (lambda X: fo.power(X, -2), lambda v: v**-2),
    "log_sum_exp": (lambda X: fo.log_sum_exp(X, axis=1), lambda v: special.logsumexp(v, axis=1)),
    "geometric_mean": (lambda X: fo.geometric_mean(X), lambda v: stats.gmean(v, axis=None)),
    "weighted geometric_mean": (
        lambda X: fo.geometric_mean(X, axis=1, weights=[1, 0, 3]),
        lambda v: v[:, 0] ** 0.25 * v[:, 2] ** 0.75,
    ),
    "huber": (lambda X: fo.huber(X - 2, 0.5), lambda v: 2 * special.huber(0.5, v - 2)),
    "norm 3": (lambda X: fo.norm(X - 2, 3), lambda v: np.linalg.norm((v - 2).ravel(), 3)),
    "norm 1.5": (lambda X: fo.norm(X - 2, 1.5, axis=0), lambda v: np.linalg.norm(v - 2, 1.5, axis=0)),
    "convex piecewise_linear": (
        lambda X: fo.piecewise_linear(X, [0, 1, 3], [0, 1, 7]),
        lambda v: np.maximum(v, 3 * v - 2),
    ),
    "concave piecewise_linear": (
        lambda X: fo.piecewise_linear(X, [1, 3, 4], [2, 4, 4]),
        lambda v: np.minimum(v + 1, 4),
    ),
    "piecewise_linear": (
        lambda X: fo.piecewise_linear(X, [1, 2, 4], [3, 1, 2], binaries=True),
        lambda v: np.maximum(5 - 2 * v, 0.5 * v),
    ),
    "product": (lambda X: fo.product(X.model.variable("b", binary=True), X), lambda v: v),
    "max": (lambda X: X.max(), np.max),
    "min": (lambda X: X.min(axis=0), lambda v: v.min(axis=0)),
    "nested": (
        lambda X: fo.maximum(fo.norm(X, 1, axis=1), 5) ** 2,
        lambda v: np.maximum(v.sum(axis=1), 5) ** 2,
    ),
}


@pytest.mark.parametrize("name", ATOMS)
def test_values(name):
    atom, by_numpy = ATOMS[name]
    m = fo.Model()
    X = m.variable("X", (2, 3), lower=0.1, upper=3)
    result = atom(X)
    for values in np.random.default_rng(5).uniform(0.1, 3, size=(3, 2, 3)):
        given_values = {v: 1 if v.name == "b" else values for v in m.variables}
        point = m.point(given_values)
        found = result.evaluate(point)
        assert result.shape == found.shape == np.shape(by_numpy(values))
        np.testing.assert_allclose(found, by_numpy(values), rtol=1e-12)
        lower, upper = m.span_of(result)
        assert (lower <= found + 1e-9).all() and (found <= upper + 1e-9).all()
        m.minimize((1 if _is_convex(m, result) else -1) * result.sum())
        assert m.violations(point) == {}


def _is_convex(m, expression):
    try:
        m.check_curvature(expression, 1, "")
    except fo.CurvatureError:
        return False
    return True


@pytest.mark.parametrize(
    "name", [n for n in ATOMS if n not in ("product", "builtin abs", "max", "min", "division")]
)
def test_numbers_alone_give_numbers(name):
    atom, by_numpy = ATOMS[name]
    if "power" in name and "fo.power" not in name:
        p = float(name.split()[1])
        values = np.array([0.5, 2.0])
        np.testing.assert_allclose(fo.power(values, p), values**p)
        return
    values = np.random.default_rng(5).uniform(0.1, 3, size=(2, 3))
    np.testing.assert_allclose(atom(values), by_numpy(values), rtol=1e-12)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (lambda: fo.log(0), -INF),
        (lambda: fo.log(-1), -INF),
        (lambda: fo.inverse(-1), INF),
        (lambda: fo.inverse(0), INF),
        (lambda: fo.entropy([0, -1]), [0, -INF]),
        (lambda: fo.kl_div([0, 0, 1, -1], [0, 2, 0, 1]), [0, 2, INF, INF]),
        (lambda: fo.quad_over_lin([0, 0], 0), 0),
        (lambda: fo.quad_over_lin([1, 0], 0), INF),
        (lambda: fo.quad_over_lin([1, 0], -1), INF),
        (lambda: fo.power([0, -1], 1.5), [0, INF]),
        (lambda: fo.power([0, -2], 3), [0, INF]),
        (lambda: fo.power([0, -1], 0.5), [0, -INF]),
        (lambda: fo.power([0, -2], -2), [INF, INF]),
        (lambda: fo.exp(1000), INF),
        (lambda: fo.maximum(3, [1, 5]), [3, 5]),
        (lambda: fo.norm([], INF), 0),
        (lambda: fo.sum_squares([]), 0),
    ],
)
def test_numbers_at_the_edge_of_the_domain(found, wanted):
    np.testing.assert_array_equal(found(), wanted)


def test_a_point_outside_a_domain_is_a_violation_by_its_distance():
    m = fo.Model()
    x = m.variable("x", 3, lower=-1)
    root, hyperbola, idle = x**0.5, fo.inverse(x[:2]), fo.log(x)
    m.maximize(root.sum() - hyperbola.sum())
    point = m.point({x: [1, 2, -1e-9]})
    np.testing.assert_allclose(root.evaluate(point), [1, 2**0.5, 0])
    assert m.violations(point) == {"domain of power#1": 1e-9}
    point = m.point({x: [1, -0.5, 0]})
    assert m.violations(point) == {"domain of power#1": 0.5, "domain of inverse#1": INF}
    m.maximize(idle.sum())
    assert m.violations(m.point({x: [1, 2, 0]})) == {"domain of log#1": INF}
    m.maximize(x.sum())
    assert m.violations(m.point({x: [1, 2, -0.5]})) == {}


# -- curvature ---------------------------------------------------------------------------------------------

CONVEX = [
    lambda x, y: fo.abs(x),
    lambda x, y: 2 * fo.exp(x) + y,
    lambda x, y: -fo.log(x),
    lambda x, y: fo.maximum(fo.abs(x), y),
    lambda x, y: fo.exp(fo.norm(x[None])),
    lambda x, y: fo.inverse(fo.log(x)),
    lambda x, y: fo.abs(fo.sum_squares(x[None])),
    lambda x, y: fo.abs(-fo.exp(x)),
    lambda x, y: fo.power(fo.abs(x), 1.5),
    lambda x, y: fo.positive_part(x) ** 2,
    lambda x, y: fo.quad_over_lin(fo.abs(x), y**0.5),
    lambda x, y: fo.sum_largest(fo.stack([fo.abs(x), fo.exp(y)]), 1),
    lambda x, y: fo.maximum(y - fo.minimum(x, y), x),
    lambda x, y: -fo.quad_form(x[None], [[-1]]),
    lambda x, y: fo.logistic(fo.maximum(x, y)),
    lambda x, y: -(fo.entropy(x)),
    lambda x, y: (0 * fo.log(x)) + fo.exp(x),
    lambda x, y: fo.norm(fo.stack([fo.abs(x), fo.positive_part(y)]), 2) ** 2,
]


@pytest.mark.parametrize("number", range(len(CONVEX)))
def test_convex_uses_are_accepted_and_concave_ones_refused(number):
    m = fo.Model()
    x, y = m.variable("x"), m.variable("y", lower=0.1)
    e = CONVEX[number](x, y)
    m.minimize(e)
    m.maximize(-3 * e + y)
    m.subject_to(e <= 1, np.array(2) >= e, e - 1 <= y, fo.minimum(x, y) >= e, e.between(-np.inf, 4))
    place = re.escape("constraint bad: the expression must be concave, but ")
    with pytest.raises(
        fo.CurvatureError, match=place + r"(-?[\d.]+ \* )?\w+#\d+(\[\d+\])? is convex; the model would not"
    ):
        m.subject_to(e >= 1, name="bad")
    with pytest.raises(fo.CurvatureError, match="constraint bad: the expression must be affine"):
        m.subject_to(e == 1, name="bad")
    with pytest.raises(fo.CurvatureError, match="constraint bad: the expression must be affine"):
        m.subject_to(e.between(0, 1), name="bad")
    with pytest.raises(fo.CurvatureError, match="maximize: the expression must be concave"):
        m.maximize(e)
    with pytest.raises(fo.CurvatureError, match=r"lexicographic \(stage 2\): the expression must be convex"):
        m.lexicographic([fo.minimize(e), fo.minimize(-e)])
    assert m.objective.kind == "maximize"
    assert len(m.constraints) == 5


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (lambda x: fo.log(fo.exp(x)), "inside log: the expression must be concave, but exp#1 is convex"),
        (lambda x: fo.exp(fo.log(x)), "inside exp: the expression must be convex, but log#1 is concave"),
        (lambda x: fo.abs(fo.maximum(x, -1)), "inside abs: the expression must be affine, but maximum#1"),
        (lambda x: fo.sum_squares(fo.exp(x) - 1), "inside sum_squares: the expression must be affine"),
        (
            lambda x: fo.norm(fo.log(x), 1),
            "inside norm_1: the expression must be affine, but log#1 is concave",
        ),
        (lambda x: fo.entropy(fo.exp(x)), "inside entropy: the expression must be affine"),
        (lambda x: fo.kl_div(fo.exp(x), 1), "inside kl_div: the expression must be affine"),
        (
            lambda x: fo.inverse(fo.exp(x)),
            "inside inverse: the expression must be concave, but exp#1 is convex",
        ),
        (lambda x: fo.power(fo.maximum(x, -1), 1.5), "inside power: the expression must be affine"),
        (lambda x: fo.power(fo.maximum(x, -1), 3), "inside power: the expression must be affine"),
        (
            lambda x: (fo.exp(x)) ** 0.5,
            "inside power: the expression must be concave, but exp#1 is convex",
        ),
        (lambda x: fo.log(x) ** 2, "inside power: the expression must be affine, but log#1 is concave"),
        (
            lambda x: fo.minimum(fo.abs(x), 1),
            "inside minimum: the expression must be convex, but -1 * abs#1 is concave",
        ),
        (
            lambda x: fo.sum_smallest(fo.exp(x[None]), 1),
            "inside sum_smallest: the expression must be convex, but -1 * exp#1[0]",
        ),
        (
            lambda x: fo.maximum(fo.log(x), 0),
            "inside maximum: the expression must be convex, but log#1 is concave",
        ),
        (lambda x: fo.positive_part(fo.log(x)), "inside positive_part: the expression must be convex"),
        (lambda x: fo.quad_over_lin(1, fo.exp(x)), "inside quad_over_lin: the expression must be concave"),
        (
            lambda x: fo.product(x.model.variable("b", binary=True), fo.abs(x)),
            "inside a product: the expression must be affine",
        ),
        (lambda x: fo.abs(x) * fo.abs(x), "inside a product: the expression must be affine, but abs#1"),
        (
            lambda x: fo.quad_form(fo.stack([x, x]), [[1, 0], [0, -2]]),
            "the matrix is indefinite (eigenvalues from -2 to 1)",
        ),
    ],
)
def test_nonconvex_uses_name_the_atom_and_the_place(operation, message):
    m = fo.Model()
    with pytest.raises(fo.CurvatureError, match=re.escape(message)):
        operation(m.variable("x", lower=-2, upper=2))


def test_curvature_of_conditions():
    m = fo.Model()
    x, b = m.variable("x", lower=-2, upper=2), m.variable("b", 2, binary=True)
    m.subject_to(fo.implies(b[0], fo.abs(x) <= 1))
    m.subject_to(fo.implies(fo.maximum(b[0], b[1]), x <= 1))
    with pytest.raises(
        fo.CurvatureError, match="constraint c3: the expression must be concave, but abs#2 is convex"
    ):
        m.subject_to(fo.implies(b[0], fo.abs(x) >= 1))
    with pytest.raises(
        fo.CurvatureError, match="constraint c3: the expression must be convex, but -1 \\* minimum#1"
    ):
        m.subject_to(fo.implies(fo.minimum(b[0], b[1]), x <= 1))
    with pytest.raises(fo.CurvatureError, match="inside a product"):
        fo.product(fo.maximum(b[0], b[1]), x)


# -- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (lambda X: fo.maximum(X), "maximum needs two or more arguments, or one and an axis"),
        (lambda X: fo.maximum(X, 1, axis=0), "maximum: axis goes with one argument, not 2"),
        (lambda X: fo.maximum(X, np.ones(2)), "maximum: shapes (2, 3) and (2,) do not broadcast"),
        (lambda X: fo.minimum([1, 2], [1, 2, 3]), "minimum: shapes (2,) and (3,) do not broadcast"),
        (lambda X: fo.kl_div(X, X.T), "kl_div: shapes (2, 3) and (3, 2) do not broadcast"),
        (lambda X: fo.maximum(X, axis=2), "maximum: axis 2 does not exist in shape (2, 3)"),
        (lambda X: fo.norm([1, 2], axis=1), "norm: axis 1 does not exist in shape (2,)"),
        (lambda X: fo.norm(X, axis=(0, 1)), "norm: axis (0, 1) does not exist in shape (2, 3)"),
        (lambda X: fo.maximum(X[:, :0], axis=1), "maximum of no elements: axis 1 of shape (2, 0)"),
        (lambda X: X[:0].max(), "maximum of no elements"),
        (lambda X: fo.minimum(np.ones((2, 0)), axis=1), "minimum of no elements: axis 1 of shape (2, 0)"),
        (lambda X: fo.sum_largest(X, 0), "sum_largest: k is 0; it must be an integer from 1 to 6"),
        (lambda X: fo.sum_largest(X, 1.5), "sum_largest: k is 1.5; it must be an integer from 1 to 6"),
        (lambda X: fo.sum_smallest(X, 4, axis=1), "sum_smallest: k is 4; it must be an integer from 1 to 3"),
        (lambda X: fo.norm(X, 0.5), "norm: p is 0.5; it must be a number >= 1"),
        (lambda X: X**0, "power: p is 0; it must be one finite number, not 0"),
        (
            lambda X: X ** np.array([1, 2, 3]),
            "power: p is array([1, 2, 3]); it must be one finite",
        ),
        (lambda X: fo.power(X, INF), "power: p is inf; it must be one finite number"),
        (lambda X: fo.quad_form(X[0], np.eye(2)), "quad_form: x has 3 elements, the matrix shape (2, 2)"),
        (lambda X: fo.quad_form(X[0], np.triu(np.ones((3, 3)))), "its entries [0, 1] and [1, 0] are 1 and 0"),
        (lambda X: fo.quad_form(X[0], np.diag([1, np.nan, 1])), "the matrix of quad_form[1, 1] is nan"),
        (lambda X: fo.quad_over_lin(X, X[0]), "quad_over_lin: y must be a scalar, not of shape (3,)"),
        (lambda X: fo.abs([1, np.nan]), "the argument of abs[1] is nan; it must be finite"),
        (lambda X: fo.log("x"), "the argument of log must be numbers"),
        (lambda X: fo.maximum(X, [1, INF, 3]), "the argument of maximum[1] is inf; it must be finite"),
        (lambda X: fo.kl_div(X, np.nan), "the argument of kl_div is nan"),
        (
            lambda X: fo.maximum(X, fo.Model("other").variable("z")),
            "belongs to model 'other', not to model 'model'",
        ),
        (
            lambda X: fo.kl_div(X, fo.Model("other").variable("z")),
            "belongs to model 'other', not to model 'model'",
        ),
        (
            lambda X: fo.product(X, X),
            "the first argument of product[0, 0] must be binary: X[0,0] ranges over [-inf, inf]",
        ),
        (
            lambda X: fo.product(1, X),
            "the first argument of product must be an expression of a binary variable, not 1",
        ),
        (
            lambda X: fo.product(X.model.variable("b", binary=True), fo.Model("other").variable("z")),
            "the second argument of product belongs to model 'other'",
        ),
        (
            lambda X: fo.product(X.model.variable("b", 2, binary=True), X),
            "multiplying: shapes (2,) and (2, 3) do not broadcast",
        ),
    ],
)
def test_bad_arguments(operation, message):
    m = fo.Model()
    with pytest.raises(fo.DeclarationError, match=re.escape(message)):
        operation(m.variable("X", (2, 3)))


def test_products_with_numbers_stay_affine():
    m = fo.Model()
    b = m.variable("b", 3, binary=True)
    assert not m.relations
    np.testing.assert_array_equal(fo.product(b, [1, 2, 3]).evaluate(np.ones(3)), [1, 2, 3])
    np.testing.assert_array_equal(fo.product(b, m.lift(2.0)).evaluate(np.ones(3)), [2, 2, 2])
    np.testing.assert_array_equal(fo.product(m.lift(1.0), b).evaluate(np.ones(3)), [1, 1, 1])
    assert not m.relations


def test_arguments_without_elements_add_no_relation():
    m = fo.Model()
    x = m.variable("x", (0, 3))
    assert fo.abs(x).shape == (0, 3) and fo.norm(x, axis=1).shape == (0,) and fo.maximum(x, 1).shape == (0, 3)
    assert not m.relations
    assert fo.sum_squares(x).shape == ()
    assert [r.kind for r in m.relations] == ["sum_squares"]


def test_integrality_of_results():
    m = fo.Model()
    k, x = m.variable("k", 3, integer=True), m.variable("x", 3)
    whole = [fo.abs(k), fo.maximum(k, 2), fo.norm(k, 1), fo.norm(2 * k, INF), fo.sum_largest(k, 2), k.min()]
    broken = [fo.abs(x), fo.maximum(k, 0.5), fo.norm(k), fo.sum_squares(k), fo.abs(0.5 * k)]
    assert [bool(m.is_integral(e).all()) for e in whole + broken] == [True] * 6 + [False] * 5


NUMBERS = st.floats(-4, 4)


@given(
    st.sampled_from(sorted(ATOMS)),
    st.lists(st.tuples(NUMBERS, NUMBERS, st.floats(0, 1)), min_size=6, max_size=6),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_ranges_hold_at_every_point_of_the_domain(name, ends):
    low, high, where = np.array(ends).T.reshape(3, 2, 3)
    low, high = np.minimum(low, high), np.maximum(low, high)
    m = fo.Model()
    X = m.variable("X", (2, 3), lower=low, upper=high)
    try:
        result = ATOMS[name][0](X)
    except fo.CurvatureError:  # the nested ones need a positive argument
        return
    values = np.clip(low + where * (high - low), low, high)
    point = m.point({v: 1 if v.name == "b" else values for v in m.variables})
    inside = all(
        (r.atom.outside([a.evaluate(point) for a in r.arguments]) <= 0).all()
        for r in m.relations
        if hasattr(r, "atom")
    )
    if not inside:
        return
    lower, upper = m.span_of(result)
    found = np.nan_to_num(result.evaluate(point), nan=0.0)
    assert (lower <= found + 1e-9 * np.abs(found)).all() and (found <= upper + 1e-9 * np.abs(found)).all()


@pytest.mark.parametrize(
    "value",
    [
        lambda x, b: fo.all_of(b) + (b[0] & b[1]),
        lambda x, b: -fo.lambda_max(fo.symmetric(x)),
        lambda x, b: fo.log_det(fo.symmetric(x)),
        lambda x, b: -fo.nuclear_norm(fo.symmetric(x)),
        lambda x, b: fo.piecewise_linear(x, [0, 1, 3], [0, 5, 6], binaries=True).sum(),
        lambda x, b: fo.quad_form(x, -np.eye(3)),
    ],
    ids=["logic", "lambda_max", "log_det", "nuclear_norm", "piecewise_linear", "quad_form"],
)
def test_a_model_with_any_atom_is_copied_and_pickled(value):
    """Atoms are pickled by name, wherever they are defined."""
    m = fo.Model()
    x, b = m.variable("x", 3, lower=0, upper=5), m.variable("b", 3, binary=True)
    m.maximize(value(x, b))
    (relation, *_) = m.relations
    for copied in (pickle.loads(pickle.dumps(m)), copy.deepcopy(m)):
        assert copied.relations[0].atom is relation.atom
        assert copied.objective.stages[0].expression.shape == ()


@pytest.mark.parametrize("sparse", [False, True])
def test_quadratic_forms_of_many_scales(sparse):
    """Small entries beside large ones count; a small negative one is no rounding."""
    q = np.array([[4.0, 1, 0], [1, 3, 1], [0, 1, 2]])
    for size in (1e-6, 1, 1e6):
        units = np.array([size, 1, 1 / size])
        p, x = q * units * units[:, None], np.array([1, -2, 3]) / units
        for sign in (1, -1):
            value = fo.quad_form(x, sign * (sp.csr_array(p) if sparse else p))
            assert float(value) == pytest.approx(sign * 18, rel=1e-9)
        p[2, 2] -= 2 / size**2  # now [[3, 1], [1, 0]] is a part of it
        with pytest.raises(fo.CurvatureError, match="indefinite"):
            fo.quad_form(x, sp.csr_array(p) if sparse else p)
    p = np.diag([1e12, 1e-6])
    m = fo.Model()
    x = m.variable("x", 2, lower=[0, 1e3], upper=2e3)
    m.minimize(fo.quad_form(x, sp.csr_array(p) if sparse else p))
    assert m.solve("highs").objective == pytest.approx(1)
    with pytest.raises(fo.CurvatureError, match="indefinite"):
        fo.quad_form(x, sp.csr_array(np.diag([1e12, -0.1])) if sparse else np.diag([1e12, -0.1]))
