import re

import numpy as np
import pytest
import scipy.sparse as sp
from affine_trees import trees
from hypothesis import given, settings

import forcopt as fo


def dense(expression):
    """Coefficients and constants as one array, the columns last."""
    columns = expression.model.column_count
    rows = expression.linear_rows()
    matrix = rows.matrix(columns).toarray()
    return np.concatenate([matrix, np.reshape(expression.constant, (-1, 1))], axis=1).reshape(
        *expression.shape, columns + 1
    )


@given(trees())
@settings(max_examples=400, deadline=None, derandomize=True)
def test_expressions_are_what_numpy_computes(tree):
    e, reference = tree.expression, tree.reference
    assert e.shape == reference.shape[:-1]
    np.testing.assert_allclose(dense(e), reference, atol=1e-9)
    rows = e.linear_rows()
    assert rows.data.all()
    assert all(len(set(r)) == len(r) for r in np.split(rows.indices, rows.indptr[1:-1]))
    point = np.random.default_rng(0).normal(size=reference.shape[-1] - 1)
    np.testing.assert_allclose(e.evaluate(point), reference @ np.append(point, 1.0), atol=1e-8)
    assert type(e.evaluate(point)) is np.ndarray


@pytest.fixture
def model():
    m = fo.Model("m")
    return m, m.variable("x", 3), m.variable("X", (2, 3))


SPARSE = [
    f"{f}_{kind}" for f in ("csr", "csc", "coo", "lil", "dok", "dia", "bsr") for kind in ("array", "matrix")
]


@pytest.mark.parametrize("name", SPARSE)
def test_every_sparse_format_from_either_side(model, name):
    _m, x, X = model
    matrix = np.array([[1.0, 0, 2], [0, -3, 0]])
    a = getattr(sp, name)(matrix)
    eye = np.eye(9, 10)[:, :9]
    xs, Xs = eye[:3], eye[3:].reshape(2, 3, 9)
    for found, wanted in [
        (a @ x, matrix @ xs),
        (x @ a.T, np.tensordot(xs, matrix.T, axes=(0, 0)).T),
        (a.T @ X, np.tensordot(matrix.T, Xs, axes=(1, 0))),
        (X @ a.T, np.moveaxis(np.tensordot(Xs, matrix.T, axes=(1, 0)), 2, 1)),
        (a + X, Xs),
        (a - X, -Xs),
    ]:
        np.testing.assert_array_equal(dense(found)[..., :-1], wanted)
    np.testing.assert_array_equal((a - X).constant, matrix)
    if name.endswith("array"):
        np.testing.assert_array_equal(dense(a * X)[..., :-1], matrix[..., None] * Xs)
        np.testing.assert_array_equal(dense(X * a)[..., :-1], matrix[..., None] * Xs)
    else:
        for product in (lambda: a * X, lambda: X * a):
            with pytest.raises(fo.DeclarationError, match=r"could mean the matrix product"):
                product()
    with pytest.raises(
        fo.DeclarationError, match=re.escape("shapes (3, 2) and (3,) do not match (2 against 3)")
    ):
        a.T @ x


def test_a_sparse_matrix_with_duplicates_or_changed_later(model):
    _m, x, _ = model
    twice = sp.csr_array((np.array([1.0, 2.0, 0.0]), np.array([0, 0, 1]), np.array([0, 3])), shape=(1, 3))
    e = twice @ x
    twice.sum_duplicates()
    twice.eliminate_zeros()
    twice.data[:] = 99
    np.testing.assert_array_equal(dense(e), [[3, 0, 0, 0, 0, 0, 0, 0, 0, 0]])
    clean = sp.csr_array(np.array([[1.0, 0, 2], [0, 3, 0]]))
    e = clean @ x
    clean.data[0] = 0
    clean.eliminate_zeros()
    np.testing.assert_array_equal(dense(e)[:, :3], [[1, 0, 2], [0, 3, 0]])


def test_sparse_vectors(model):
    _, x, X = model
    vector = sp.coo_array(np.array([1.0, 0, 2]))
    point = np.arange(9.0)
    assert (vector @ x).evaluate(point) == 4 and (x @ vector).evaluate(point) == 4
    np.testing.assert_array_equal((X @ vector).evaluate(point), [13, 22])


@pytest.mark.parametrize("index", [[0, 0, 2], (0, 0, 2), range(3)])
def test_indices_that_are_no_arrays(model, index):
    _m, x, _ = model
    picked = x[(index,)]
    np.testing.assert_array_equal(dense(picked.sum())[:3], np.bincount(list(index), minlength=3))


def test_pandas_on_either_side(model):
    pd = pytest.importorskip("pandas")
    _m, x, X = model
    series, frame = pd.Series([1.0, 2, 3]), pd.DataFrame([[1, 2, 3], [4, 5, 6]])
    index = pd.Index([1, 2, 3])
    point = np.arange(9.0)
    xv, Xv = point[:3], point[3:].reshape(2, 3)
    for data, expression, value in [(series, x, xv), (frame, X, Xv), (frame, x, xv), (index, x, xv)]:
        d = data.to_numpy()
        for found, wanted in [
            (data * expression, d * value),
            (expression * data, d * value),
            (data + expression, d + value),
            (data - expression, d - value),
            (expression - data, value - d),
            (expression / data, value / d),
        ]:
            assert isinstance(found, fo.Expression)
            np.testing.assert_allclose(found.evaluate(point), wanted)
    assert isinstance(series <= x, fo.Constraint) and isinstance(frame == X, fo.Constraint)
    np.testing.assert_array_equal((frame.to_numpy() @ x).evaluate(point), frame.to_numpy() @ xv)
    np.testing.assert_array_equal((X @ series).evaluate(point), Xv @ series.to_numpy())
    repeated = x[pd.Series([0, 0])]
    np.testing.assert_array_equal(dense(repeated.sum())[:3], [2, 0, 0])


@pytest.mark.parametrize(
    "number",
    [2, True, np.float64(2), np.float32(2), np.int8(2), np.uint64(2), np.bool_(True), np.array(2), 2**53],
)
def test_numbers_on_the_left(model, number):
    _m, x, _ = model
    point = np.arange(9.0)
    np.testing.assert_array_equal((number * x).evaluate(point), float(number) * point[:3])
    np.testing.assert_array_equal((number - x).evaluate(point), float(number) - point[:3])
    below = number <= x
    assert isinstance(below, fo.Constraint) and below.sense == ">="
    np.testing.assert_array_equal(below.violation(point), np.maximum(float(number) - point[:3], 0))


def test_views_share_memory():
    m = fo.Model()
    x = m.variable("x", (300, 400))
    columns = x.terms[0].columns
    for view in (
        x[None, :],
        x.T,
        x[:, ::2],
        x[::-1],
        x.broadcast_to((5, 300, 400)),
        x.reshape(400, 300),
        x.sum(axis=1),
        2 * x,
        x + 1,
        (x[:, None] - x[None, :])[3],
    ):
        for term in view.terms:
            assert np.shares_memory(term.columns, columns)
            assert term.values.nbytes <= 16


def test_data_is_copied(model):
    _, x, _ = model
    data = np.ones(3)
    scaled, added, constraint = data * x, x + data, x <= data
    data[:] = 7
    point = np.zeros(9)
    assert scaled.evaluate(point + 1).tolist() == [1, 1, 1]
    assert added.evaluate(point).tolist() == [1, 1, 1]
    assert constraint.violation(point + 2).tolist() == [1, 1, 1]


def test_scalars_and_shapes_of_one(model):
    m, x, X = model
    y = m.variable("y")
    assert y.shape == () and y.size == 1 and y.ndim == 0 and y[None].shape == (1,) and y[...].shape == ()
    assert (
        y.sum().shape == () and y.mean().shape == () and y.reshape(1, 1).shape == (1, 1) and y.T.shape == ()
    )
    assert x[0].shape == () and x[:1].shape == (1,) and (x + y[None]).shape == (3,)
    assert len(x) == 3 and [e.shape for e in X] == [(3,), (3,)]
    with pytest.raises(TypeError, match="a scalar expression has no length"):
        len(y)
    with pytest.raises(TypeError, match="a scalar expression has no length"):
        iter(y)


def test_iteration_and_python_sum(model):
    _, x, X = model
    np.testing.assert_array_equal(dense(sum(X)), dense(X.sum(axis=0)))
    np.testing.assert_array_equal(dense(+x - -x), dense(2 * x))


def test_max_and_min_are_atoms(model):
    m, x, X = model
    made = [x.max(), x.min(), X.max(), X.max(axis=1), X.min(axis=-2)]
    point = m.point({x: [3, 1, 2], X: np.arange(6).reshape(2, 3)})
    assert [e.evaluate(point).tolist() for e in made] == [3, 1, 5, [2, 5], [0, 1, 2]]


def test_repr(model):
    _, x, X = model
    assert repr(x) == "<variable x of shape (3,)>"
    assert repr(2 * x[0] - X[1, 2] + 0.5) == "<expression of shape (), 2 coefficients: 2 x[0] - X[1,2] + 0.5>"
    assert repr(x + 1) == "<expression of shape (3,), 3 coefficients>"
    assert repr(x[0] - x[0]) == "<expression of shape (), 2 coefficients: 0>"
    long = X.sum() + x.sum()
    assert repr(long).endswith("+ ...>")


# -- errors ------------------------------------------------------------------------------------------------


def both(left, right):
    return re.escape(f"shapes {left} and {right}")


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (lambda x, X: x + np.ones(4), "adding: " + both((3,), (4,)) + " do not broadcast"),
        (lambda x, X: x - X.T, "subtracting: " + both((3,), (3, 2)) + " do not broadcast"),
        (lambda x, X: x * np.ones((2, 2)), "multiplying: " + both((3,), (2, 2)) + " do not broadcast"),
        (lambda x, X: x / np.ones(2), "multiplying: " + both((3,), (2,))),
        (lambda x, X: x <= np.ones(2), "comparing: " + both((3,), (2,)) + " do not broadcast"),
        (lambda x, X: x == X.T, "comparing: " + both((3,), (3, 2))),
        (lambda x, X: x.between(0, [1, 2]), re.escape("between: shapes (3,) and () and (2,)")),
        (
            lambda x, X: np.ones((4, 4)) @ x,
            "@: " + both((4, 4), (3,)) + re.escape(" do not match (4 against 3)"),
        ),
        (lambda x, X: X @ np.ones(2), "@: " + both((2, 3), (2,)) + re.escape(" do not match (3 against 2)")),
        (lambda x, X: x @ 2.0, "@ takes one or two axes on each side, not " + both((3,), ())),
        (lambda x, X: X[None] @ x.constant, "not " + both((1, 2, 3), (3,))),
        (lambda x, X: x.reshape(2, 2), re.escape("cannot reshape (3,) to (2, 2)")),
        (lambda x, X: x.reshape(1.5), re.escape("cannot reshape (3,) to 1.5")),
        (lambda x, X: x.broadcast_to((1,)), re.escape("cannot broadcast shape (3,) to (1,)")),
        (lambda x, X: x.broadcast_to((2, 2)), "broadcast_to: " + both((3,), (2, 2))),
        (lambda x, X: X.sum(axis=2), re.escape("axis 2 does not fit shape (2, 3)")),
        (lambda x, X: X.sum(axis=(0, 0)), re.escape("axis (0, 0) does not fit shape (2, 3): repeated axis")),
        (lambda x, X: X.sum(axis=0.5), re.escape("axis 0.5 does not fit shape (2, 3)")),
        (lambda x, X: X.transpose(0, 5), re.escape("axis (0, 5) does not fit shape (2, 3)")),
        (lambda x, X: X.transpose(0), re.escape("transpose needs all 2 axes of shape (2, 3), not 0")),
        (lambda x, X: X[:, :0].mean(axis=1), re.escape("mean of no elements: axis 1 of shape (2, 0)")),
        (lambda x, X: fo.concatenate([x, X]), re.escape("cannot join shapes [(3,), (2, 3)] along axis 0")),
        (lambda x, X: fo.concatenate([X, X], axis=2), "along axis 2"),
        (lambda x, X: fo.concatenate([np.ones(3)]), "concatenate needs at least one expression"),
        (lambda x, X: fo.stack([x, X]), re.escape("not [(2, 3), (3,)]")),
        (lambda x, X: fo.stack([]), re.escape("stack needs one or more parts of one shape, not []")),
        (lambda x, X: fo.stack([x, x], axis=2), "axis 2 does not fit shape"),
    ],
)
def test_shapes_that_do_not_fit(model, operation, message):
    _, x, X = model
    with pytest.raises(fo.DeclarationError, match=message):
        operation(x, X)


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (lambda x, X: x - [0, np.nan, 0], "the subtracted array[1] is nan; it must be finite"),
        (lambda x, X: x * np.inf, "the multiplying array is inf; it must be finite"),
        (
            lambda x, X: X * [[1, 1, 1], [1, -np.inf, 1]],
            "the multiplying array[1, 1] is -inf; it must be finite",
        ),
        (lambda x, X: x <= [1, 2, np.nan], "the compared array[2] is nan; it must be finite"),
        (lambda x, X: x >= -np.inf, "the compared array is -inf; it must be finite"),
        (lambda x, X: x / [1, 0, 2], "the divisor[1] is 0.0; it must be a number to divide by"),
        (lambda x, X: x / 1e-320, "the divisor is 1e-320; it must be a number to divide by"),
        (lambda x, X: X @ [1, np.nan, 1], "the multiplying array[1] is nan; it must be finite"),
        (
            lambda x, X: x @ [[1, 2], [3, np.inf], [5, 6]],
            "the multiplying array[1, 1] is inf; it must be finite",
        ),
        (
            lambda x, X: sp.csc_array([[0, np.nan, 1]]) @ x,
            "the multiplying array[0, 1] is nan; it must be finite",
        ),
        (lambda x, X: x @ sp.coo_array([[0.0], [0], [np.inf]]), "the multiplying array[2, 0] is inf"),
        (lambda x, X: x.between([0, np.nan, 0], 1), "between: lower[1] is nan; it must be a number"),
        (lambda x, X: x.between(np.inf, np.inf), "between: lower is inf; it must be a number or -inf"),
        (
            lambda x, X: x.between(-np.inf, [1, -np.inf, 1]),
            "between: upper[1] is -inf; it must be a number or inf",
        ),
        (lambda x, X: x.between([0, 2, 0], [1, 1, 1]), "between[1]: lower 2 is above upper 1"),
        (lambda x, X: fo.stack([x, [1, 2, np.nan]]), "the joined array[0, 2] is nan; it must be finite"),
        (lambda x, X: x + "3", "the added array must be numbers, not <U1"),
        (lambda x, X: x * 1j, "the multiplying array must be numbers, not complex128"),
        (
            lambda x, X: sp.csr_array([[1j, 0, 0]]) @ x,
            "the multiplying array must be numbers, not complex128",
        ),
        (lambda x, X: x * 10**400, "the multiplying array must be numbers: int too large"),
        (lambda x, X: x - [[1], [1, 2]], "the subtracted array must be numbers: "),
        (lambda x, X: x + None, "the added array is nan"),
        (lambda x, X: x - [x[0], x[1], 3], "fo.stack makes one expression of several"),
        (
            lambda x, X: x + np.array("2020-01-01", dtype="M8[D]"),
            "the added array must be numbers, not datetime64[D]",
        ),
    ],
)
def test_data_that_is_not_finite_numbers(model, operation, message):
    _, x, X = model
    with pytest.raises(fo.DeclarationError, match=re.escape(message)):
        operation(x, X)


@pytest.mark.parametrize(
    "operation",
    [
        lambda x, y: x + y,
        lambda x, y: x * (y.sum() * 0),
        lambda x, y: x <= y,
        lambda x, y: fo.stack([x, y]),
        lambda x, y: x @ y,
    ],
)
def test_variables_of_another_model(operation):
    a, b = fo.Model("one"), fo.Model("two")
    with pytest.raises(fo.DeclarationError, match=r"'two'.*'one'"):
        operation(a.variable("x", 3), b.variable("y", 3))


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (lambda x: x * fo.abs(x), "inside a product: the expression must be affine, but abs#1"),
        (lambda x: 1 / x / x, "dividing by the expression x[0] is not convex; see fo.inverse"),
    ],
)
def test_nonlinear_products(model, operation, message):
    _, x, _ = model
    with pytest.raises(fo.CurvatureError, match=re.escape(message)):
        operation(x)


def test_constant_expressions_multiply(model):
    m, x, X = model
    two = m.lift(2.0) + 0 * x.constant.sum()
    np.testing.assert_array_equal(dense(two * x), dense(2 * x))
    np.testing.assert_array_equal(dense(x * two), dense(2 * x))
    np.testing.assert_array_equal(dense(x / two), dense(0.5 * x))
    matrix = m.lift(np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(dense(matrix @ x), dense(np.arange(6.0).reshape(2, 3) @ x))
    np.testing.assert_array_equal(dense(X @ m.lift([1.0, 2, 3])), dense(X @ [1, 2, 3]))


@pytest.mark.parametrize(
    "index",
    [
        3,
        -4,
        (0, 0),
        (slice(None), slice(0, 1)),
        (0, None, 0),
        0.5,
        np.ones((3, 1), dtype=bool),
        np.ones(2, dtype=bool),
        [7],
    ],
)
def test_indices_that_do_not_fit(model, index):
    _, x, _ = model
    with pytest.raises(IndexError, match=re.escape("does not fit shape (3,)")):
        x[index]


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (lambda x: x != 1, "an optimization model has no constraint !="),
        (lambda x: x < 1, "no strict inequality; use <="),
        (lambda x: x > 1, "no strict inequality; use >="),
        (lambda x: bool(x[0]), "the truth of an expression is known only after solving"),
        (lambda x: 0 <= x <= 1, r"a chained comparison such as 0 <= x <= 1 is x.between\(0, 1\)"),
    ],
)
def test_comparisons_that_mean_nothing(model, operation, message):
    _, x, _ = model
    with pytest.raises(TypeError, match=message):
        operation(x)


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (lambda x: np.dot(np.ones(3), x), "numpy.dot takes no expressions; write A @ x"),
        (lambda x: np.sum(x), r"numpy.sum takes no expressions; write x.sum\(\)"),
        (lambda x: np.concatenate([x, x]), "numpy.concatenate .* write forcopt.concatenate"),
        (lambda x: np.where([True, False, True], x, 1.0), "numpy.where .* functions such as forcopt.stack"),
        (lambda x: max(x), r"in place of Python's .* x.max\(\)"),
    ],
)
def test_functions_of_numpy_and_python_name_their_counterparts(model, operation, message):
    _, x, _ = model
    with pytest.raises(TypeError, match=message):
        operation(x)


def test_numpy_gives_the_shape_of_an_expression(model):
    _, x, X = model
    assert np.shape(x) == (3,) and np.ndim(X) == X.ndim and np.size(X, 0) == X.shape[0]


def test_expressions_hash_by_identity(model):
    _, x, X = model
    assert {x: 1, X: 2}[X] == 2 and x in {x}


def test_many_terms_merge():
    m = fo.Model()
    x = m.variable("x", 50)
    total = sum((i % 7 - 3) * x[i % 50] for i in range(1000))
    wanted = np.bincount(np.arange(1000) % 50, weights=np.arange(1000) % 7 - 3, minlength=50)
    np.testing.assert_array_equal(dense(total)[:-1], wanted)


@pytest.mark.parametrize("compare", ["ge", "le", "eq"])
def test_the_sides_of_a_comparison_stay(compare):
    """The dual of a row is the change per unit of its right-hand side, whichever side the variable is on."""
    import operator

    m = fo.Model()
    x, y = m.variable("x", 2), m.variable("y", 2)
    for left, right in ((2 * x, y), (y, 2 * x), (x, y), (2 * x, 3 * y)):
        row = getattr(operator, compare)(left, right)
        point = np.array([1.0, 1.0, 10.0, 10.0])
        assert (row.expression.evaluate(point) == left.evaluate(point) - right.evaluate(point)).all()
