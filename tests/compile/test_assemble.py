import numpy as np
import pytest
import scipy.sparse as sp
from affine_trees import blank_model, grown, leaf
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.compile.assemble import assemble, cost_vector
from forcopt.language.expression import Expression


@given(st.data(), st.integers(1, 4))
@settings(max_examples=120, deadline=None, derandomize=True)
def test_a_block_is_the_stack_of_its_expressions(data, count):
    model, variables = blank_model()
    leaves = [leaf(v) for v in variables]
    trees = [data.draw(grown(model, leaves, most=4)) for _ in range(count)]
    sizes = [t.expression.size for t in trees]
    bounds = [(np.full(n, -float(i)), float(i) + np.arange(n)) for i, n in enumerate(sizes)]
    block = assemble([(t.expression, low, high) for t, (low, high) in zip(trees, bounds, strict=True)])
    assert block.indptr.dtype == block.indices.dtype == np.int32 and block.data.dtype == float
    assert block.count == sum(sizes) == len(block.indptr) - 1 and block.indptr[-1] == len(block.data)
    assert block.data.all()
    rows = np.split(block.indices, block.indptr[1:-1]) if block.count else []
    assert all(len(set(row)) == len(row) for row in rows)
    reference = np.concatenate([t.reference.reshape(-1, model.column_count + 1) for t in trees])
    np.testing.assert_allclose(block.matrix(model.column_count).toarray(), reference[:, :-1], atol=1e-9)
    np.testing.assert_array_equal(block.lower, np.concatenate([low for low, _ in bounds]))
    np.testing.assert_array_equal(block.upper, np.concatenate([high for _, high in bounds]))


@given(st.data())
@settings(max_examples=120, deadline=None, derandomize=True)
def test_costs_are_the_coefficients_of_the_sum(data):
    model, variables = blank_model()
    tree = data.draw(grown(model, [leaf(v) for v in variables]))
    cost = cost_vector(tree.expression.sum(), model.column_count)
    np.testing.assert_allclose(
        cost, tree.reference.reshape(-1, model.column_count + 1).sum(axis=0)[:-1], atol=1e-9
    )


@pytest.fixture
def variables():
    m = fo.Model()
    return m.variable("x", (4, 5)), m.variable("y", (4, 5)), m.variable("z", 5)


DIRECT = {
    "two variables": lambda x, y, z: x - 2 * y + 1,
    "broadcast": lambda x, y, z: x - z,
    "neighbours": lambda x, y, z: x[:, 1:] - x[:, :-1],
    "equal columns": lambda x, y, z: 2 * x - x,
    "columns that cancel": lambda x, y, z: x - x + y,
    "four overlapping": lambda x, y, z: x - x[::-1] + y - y[:, ::-1],
    "row sums": lambda x, y, z: x.sum(axis=0) - 3 * y.sum(axis=0),
    "zeros": lambda x, y, z: x * np.eye(4, 5) + y,
    "a dense vector": lambda x, y, z: x @ np.arange(5.0),
    "picked": lambda x, y, z: x[[0, 0, 3], [1, 1, 2]] + z[[4, 4, 4]],
    "nothing": lambda x, y, z: x[:0] + z,
    "joined with numbers": lambda x, y, z: fo.stack([x[0], np.ones(5), 2 * z]),
    "joined sums": lambda x, y, z: fo.concatenate([x.sum(axis=0), y[:, :4].sum(axis=0)]),
    "an empty axis": lambda x, y, z: x[:, :0].sum(axis=1) + z[:4],
}


@pytest.mark.parametrize("name", DIRECT)
def test_expressions_made_of_few_views_are_filled_in_place(name, variables, monkeypatch):
    e = DIRECT[name](*variables)
    wanted = e.linear_rows().matrix(45).toarray()

    def refuse(self):
        raise AssertionError(f"{name} went the slow way")

    monkeypatch.setattr(Expression, "linear_rows", refuse)
    block = assemble([(e, np.zeros(e.size), np.zeros(e.size))])
    np.testing.assert_array_equal(block.matrix(45).toarray(), wanted)
    assert block.data.all() and len(block.data) == np.count_nonzero(wanted)


MERGED = {
    "a sparse product": lambda x, y, z: sp.eye_array(5, 4, k=1) @ x,
    "a sum with repeats": lambda x, y, z: x[[0, 0, 1]].sum(axis=0) - x[0],
    "overlapping sums": lambda x, y, z: x.sum(axis=0) - x[1],
    "five overlapping": lambda x, y, z: z + z[::-1] + z[[1, 2, 3, 4, 0]] + z[[2, 2, 2, 2, 2]] - 3 * z,
    "constants": lambda x, y, z: z.model.lift(np.ones((4, 5))),
    "joined": lambda x, y, z: fo.concatenate([x.sum(axis=0), z, np.ones(3)]),
}


@pytest.mark.parametrize("name", MERGED)
def test_the_others_are_merged(name, variables):
    e = MERGED[name](*variables)
    block = assemble([(e, 0.0, 1.0), (variables[2] * 2, 0.0, 1.0)])
    wanted = np.concatenate(
        [e.linear_rows().matrix(45).toarray(), (2 * variables[2]).linear_rows().matrix(45).toarray()]
    )
    np.testing.assert_array_equal(block.matrix(45).toarray(), wanted)
    assert block.data.all() and len(block.data) == np.count_nonzero(wanted)


def test_no_rows_at_all():
    block = assemble([])
    assert block.count == 0 and block.indptr.tolist() == [0]
    assert block.matrix(3).shape == (0, 3)


def test_too_many_coefficients_are_refused_before_memory_is_asked_for():
    m = fo.Model()
    x = m.variable("x", 50_000)
    with pytest.raises(fo.DeclarationError, match="2500000000 coefficients; at most 2147483647"):
        assemble([(x.broadcast_to((50_000, 50_000)), 0.0, 0.0)])
