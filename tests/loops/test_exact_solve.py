"""Square systems over the rationals, against dense elimination and against their own equations."""

import numpy as np
import pytest
from flint import fmpq, fmpq_mat

from forcopt.loops.exact_solve import block_triangles, lifted, solve_blocks


def drawn(rng, size, density, denominators):
    """A sparse matrix with a diagonal that makes it regular by its pattern, rows and columns shuffled."""
    rows, columns = rng.permutation(size), rng.permutation(size)
    matrix = [{} for _ in range(size)]
    for i, j in zip(rows.tolist(), columns.tolist(), strict=True):
        matrix[i][j] = fmpq(int(rng.integers(1, 50)), int(rng.choice(denominators)))
        for other in np.flatnonzero(rng.random(size) < density).tolist():
            matrix[i][other] = fmpq(int(rng.integers(-50, 50)) or 7, int(rng.choice(denominators)))
    return matrix


def values(matrix, x):
    return [sum((a * x[j] for j, a in row.items()), fmpq(0)) for row in matrix]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("denominators", [[1], [1, 10, 1000], [8, 3, 7]], ids=["whole", "decimal", "mixed"])
def test_lifting_agrees_with_elimination(seed, denominators):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 40))
    matrix = drawn(rng, size, 0.15, denominators)
    target = [fmpq(int(v), int(d)) for v, d in rng.integers(1, 10**6, (size, 2))]
    dense = fmpq_mat(size, size, [row.get(j, fmpq(0)) for row in matrix for j in range(size)])
    if not dense.det():
        pytest.skip("singular")
    expected = dense.solve(fmpq_mat(size, 1, target))
    assert lifted(matrix, target) == [expected[k, 0] for k in range(size)]


@pytest.mark.parametrize("seed", range(4))
def test_blocks_satisfy_the_equations_of_the_matrix_and_its_transpose(seed):
    rng = np.random.default_rng(100 + seed)
    size = 150
    matrix = drawn(rng, size, [0.001, 0.006, 0.012, 0.05][seed], [1, 10, 100])
    form = block_triangles(matrix)
    assert sorted(i for rows, _ in form.blocks for i in rows) == list(range(size))
    known = set()
    for rows, columns in form.blocks:
        known |= set(columns)
        assert all(set(matrix[i]) <= known for i in rows)
    transposed = [{} for _ in matrix]
    for i, row in enumerate(matrix):
        for j, a in row.items():
            transposed[j][i] = a
    target = [fmpq(int(v)) for v in rng.integers(-(10**9), 10**9, size)]
    for system, shape in ((matrix, form), (transposed, form.transposed())):
        x = solve_blocks(system, target, shape)
        assert x is None or values(system, x) == target
        assert x is not None or form.largest > 1


def test_values_far_from_one_are_found():
    one, tiny = fmpq(1), fmpq(1, 10**200)
    for scale in (tiny, one / tiny):
        matrix = [{0: 3 * one, 1: one}, {0: one, 1: 2 * one}]
        assert lifted(matrix, [5 * scale, 5 * scale]) == [scale, 2 * scale]
    assert lifted([{0: 3 * tiny, 1: tiny}, {0: one, 1: 2 * one}], [5 * tiny, 5 * one]) == [one, 2 * one]


def test_large_determinants_are_recognized():
    size = 80
    rng = np.random.default_rng(3)
    matrix = [{j: fmpq(int(v), 10) for j, v in enumerate(row)} for row in rng.integers(1, 1000, (size, size))]
    x = lifted(matrix, [fmpq(i, 7) for i in range(1, size + 1)])
    assert values(matrix, x) == [fmpq(i, 7) for i in range(1, size + 1)]
    assert max(int(v.q).bit_length() for v in x) > 500


def test_singular_systems_have_no_solution():
    one = fmpq(1)
    assert block_triangles([{0: one}, {0: one}]) is None
    dependent = [{0: one, 1: 2 * one}, {0: 2 * one, 1: 4 * one}]
    assert lifted(dependent, [one, one]) is None
    assert solve_blocks(dependent, [one, one], block_triangles(dependent)) is None


@pytest.mark.parametrize("seed", range(6))
def test_ill_conditioned_blocks_are_eliminated(seed, monkeypatch):
    from forcopt.loops import exact_solve

    rng = np.random.default_rng(seed)
    size = 25
    matrix = drawn(rng, size, 0.15, [2**60, 3, 7])
    target = [fmpq(int(v)) for v in rng.integers(1, 10**6, size)]
    form = block_triangles(matrix)
    expected = solve_blocks(matrix, target, form)  # small blocks, by elimination
    monkeypatch.setattr(exact_solve, "_DENSE", 1)
    assert solve_blocks(matrix, target, form) == expected
    assert expected is None or values(matrix, expected) == target
