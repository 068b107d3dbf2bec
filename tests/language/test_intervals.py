import numpy as np
from affine_trees import blank_model, grown, leaf
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.language.columns import integral, interval

INF = float("inf")


@given(st.data(), st.integers(0, 2**31))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_intervals_contain_every_value_and_are_attained(data, seed):
    model, variables = blank_model()
    e = data.draw(grown(model, [leaf(v) for v in variables])).expression
    rng = np.random.default_rng(seed)
    lower, upper = np.sort(rng.integers(-4, 5, size=(2, model.column_count)), axis=0).astype(float)
    low, high = interval(e, lower, upper)
    assert low.shape == high.shape == e.shape
    for point in (lower, upper, *rng.uniform(lower, upper, size=(3, model.column_count))):
        value = e.evaluate(point)
        assert (low - 1e-9 <= value).all() and (value <= high + 1e-9).all()
    if e.size:  # the ends are attained, for one element at a time
        at = tuple(int(rng.integers(n)) for n in e.shape)
        rows = e[at].linear_rows()
        for end, sign in ((low, -1.0), (high, 1.0)):
            point = np.zeros(model.column_count)
            best = np.where(sign * rows.data > 0, upper[rows.indices], lower[rows.indices])
            point[rows.indices] = best
            np.testing.assert_allclose(e[at].evaluate(point), end[at], atol=1e-9)


@given(st.data(), st.integers(0, 2**31))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_integral_expressions_are_integers_at_every_integer_point(data, seed):
    model, variables = blank_model()
    e = data.draw(grown(model, [leaf(v) for v in variables], most=4)).expression
    rng = np.random.default_rng(seed)
    integer = rng.random(model.column_count) < 0.6
    found = integral(e, integer)
    assert found.shape == e.shape
    for _ in range(3):
        point = np.where(
            integer, rng.integers(-9, 9, model.column_count), rng.normal(size=model.column_count)
        )
        value = e.evaluate(point)
        assert (np.abs(value - np.round(value))[found] < 1e-9).all()
    reference = e.linear_rows()
    for i in range(e.size):
        row = slice(reference.indptr[i], reference.indptr[i + 1])
        whole = integer[reference.indices[row]].all() and (reference.data[row] % 1 == 0).all()
        assert found.reshape(-1)[i] == (whole and e.constant.reshape(-1)[i] % 1 == 0)


def test_infinite_bounds():
    m = fo.Model()
    x, y = m.variable("x", lower=0), m.variable("y", upper=5)
    for e, low, high in [
        (x + 1, 1, INF),
        (-x, -INF, 0),
        (2 * y - x, -INF, 10),
        (x - y, -5, INF),
        (x + y, -INF, INF),
        (0 * x + 3, 3, 3),
        (x - x + 1, 1, 1),
        (fo.stack([x, -x, y]).sum(), -INF, 5),
        (m.lift(2.0), 2, 2),
    ]:
        assert tuple(map(float, m.span_of(e))) == (low, high)


def test_columns_that_an_element_repeats_are_merged():
    m = fo.Model()
    x = m.variable("x", 3, lower=-1, upper=1)
    twice = (x[[0, 0]] * np.array([1.0, -1.0])).sum()
    assert tuple(map(float, m.span_of(twice))) == (0, 0)
    broadcast = (x.broadcast_to((2, 3)) * np.array([[1.0], [-1.0]])).sum(axis=0)
    np.testing.assert_array_equal(m.span_of(broadcast), np.zeros((2, 3)))


def test_coefficients_of_zero_do_not_matter():
    m = fo.Model()
    k, x = m.variable("k", 2, integer=True), m.variable("x", 2)
    assert m.is_integral(k + 0 * x).tolist() == [True, True]
    assert m.is_integral(x * [0, 1]).tolist() == [True, False]
    assert m.is_integral(k * [1, 0.5]).tolist() == [True, False]
    assert m.is_integral(k - [0, 0.5]).tolist() == [True, False]


def test_ranges_of_results_follow_from_arguments():
    m = fo.Model()
    x = m.variable("x", 3, lower=[-2, 1, -INF], upper=[1, 4, 3])
    nested = fo.maximum(fo.abs(x), 2) + 1
    np.testing.assert_array_equal(m.span_of(fo.abs(x)), [[0, 1, 0], [2, 4, INF]])
    np.testing.assert_array_equal(m.span_of(nested), [[3, 3, 3], [3, 5, INF]])
    np.testing.assert_array_equal(m.span_of(fo.exp(x[:2])), np.exp([[-2, 1], [1, 4]]))
    np.testing.assert_array_equal(m.span_of(fo.log(x)), [[-INF, 0, -INF], [0, np.log(4), np.log(3)]])
    np.testing.assert_array_equal(m.span_of(fo.inverse(x)), [[1, 0.25, 1 / 3], [INF, 1, INF]])
    np.testing.assert_array_equal(m.span_of(fo.entropy(x)), [[-INF] * 3, [INF] * 3])
    np.testing.assert_array_equal(m.span_of(-fo.minimum(x, 0)), [[0, 0, 0], [2, 0, INF]])
    below = m.variable("below", lower=-5, upper=-2)
    across = m.variable("across", lower=-5, upper=4)
    np.testing.assert_array_equal(m.span_of(fo.abs(below)), [2, 5])
    np.testing.assert_array_equal(m.span_of(across**1.5), [0, 8])
    np.testing.assert_array_equal(m.span_of(across**0.5), [0, 2])
    np.testing.assert_array_equal(m.span_of(fo.quad_over_lin(below, across)), [1, INF])
    loose = m.columns().upper[m.columns().curvature != 0]
    assert loose.size and np.isposinf(loose).all()
    assert (m.ranges()[0] >= m.columns().lower).all() and (m.ranges()[1] <= m.columns().upper).all()
