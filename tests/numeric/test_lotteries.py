"""Lotteries have their marginals, few terms, and terms within the bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forcopt.errors import DeclarationError
from forcopt.numeric import (
    birkhoff,
    controlled_rounding,
    decompose_permutahedron,
    dependent_rounding,
    laminar_lottery,
    systematic_rounding,
)


def _mix_of_matchings(rng, n, k, terms, full):
    """A convex combination of random matchings of n rows with k columns."""
    matrix, weights = np.zeros((n, k)), rng.dirichlet(np.ones(terms))
    for weight in weights:
        rows = rng.permutation(n)[: min(n, k)]
        columns = rng.permutation(k)[: min(n, k)]
        if not full:
            keep = rng.random(len(rows)) < 0.8
            rows, columns = rows[keep], columns[keep]
        matrix[rows, columns] += weight
    return matrix


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=200, deadline=None)
def test_birkhoff(seed: int, full: bool) -> None:
    rng = np.random.default_rng(seed)
    n, k = rng.integers(1, 9, 2)
    matrix = _mix_of_matchings(rng, n, k, int(rng.integers(1, 12)), full)
    lottery = birkhoff(matrix)
    np.testing.assert_allclose(lottery.mean(k), matrix, atol=1e-9)
    assert lottery.weights.sum() == pytest.approx(1)
    open_ = (matrix.sum(axis=0) < 1 - 1e-9).sum() + (matrix.sum(axis=1) < 1 - 1e-9).sum()
    assert len(lottery.weights) <= (matrix > 1e-13).sum() + open_ + 1
    for columns in lottery.columns:
        chosen = columns[columns >= 0]
        assert len(set(chosen.tolist())) == len(chosen)
        if full:
            assert len(chosen) == min(n, k)


def test_birkhoff_of_a_large_matrix() -> None:
    matrix = _mix_of_matchings(np.random.default_rng(5), 400, 40, 30, True)
    lottery = birkhoff(matrix)
    np.testing.assert_allclose(lottery.mean(40), matrix, atol=1e-9)
    assert len(lottery.weights) <= (matrix > 0).sum() + 400
    drawn = lottery.sample(np.random.default_rng(0))
    assert (drawn >= 0).sum() == 40


def test_birkhoff_refuses() -> None:
    with pytest.raises(DeclarationError, match=r"row 1 of the matrix has the sum 1\.2"):
        birkhoff([[0.1, 0.2], [0.5, 0.7]])
    with pytest.raises(DeclarationError, match=r"matrix\[0, 1\] is -0.2"):
        birkhoff([[0.1, -0.2], [0.5, 0.5]])


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_permutahedron(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    weights = -np.sort(-rng.choice([rng.random(n), rng.integers(0, 3, n).astype(float)]))
    if rng.random() < 0.3:
        weights[int(rng.integers(0, n)) :] = 0.0
    mix = rng.dirichlet(np.ones(int(rng.integers(1, 7))))
    point = sum(w * weights[np.argsort(rng.permutation(n))] for w in mix)
    lottery = decompose_permutahedron(point, weights)
    mean = np.zeros(n)
    for w, ranking in zip(lottery.weights, lottery.rankings, strict=True):
        assert sorted(ranking.tolist()) == list(range(n))
        mean[ranking] += w * weights
    np.testing.assert_allclose(mean, point, atol=1e-9)
    assert len(lottery.weights) <= n


@pytest.mark.parametrize("noise", [1e-16, 1e-12, 1e-10])
def test_permutahedron_of_a_point_with_rounding_errors(noise: float) -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        n = int(rng.integers(1, 8))
        k = int(rng.integers(1, n + 1))
        weights = np.zeros(n)
        weights[:k] = 1.0 if rng.random() < 0.5 else np.sort(rng.random(k))[::-1]
        shares = rng.dirichlet(np.ones(int(rng.integers(1, 5))))
        point = sum(
            share * rng.permutation(weights) for share in shares
        ) + noise * weights.sum() * rng.uniform(-1, 1, n)
        lottery = decompose_permutahedron(point, weights[:k])
        mean = np.zeros(n)
        for share, order in zip(lottery.weights, lottery.rankings, strict=True):
            mean[order] += share * weights
        assert 1 <= len(lottery.weights) <= 2 * n
        assert np.allclose(mean, point, rtol=0, atol=max(30 * noise, 1e-10))


def test_permutahedron_refuses() -> None:
    with pytest.raises(DeclarationError, match="1 largest"):
        decompose_permutahedron([2.0, 0.0], [1.0, 1.0])
    with pytest.raises(DeclarationError, match="rise"):
        decompose_permutahedron([1.0, 1.0], [0.5, 1.5])
    with pytest.raises(DeclarationError, match="sums"):
        decompose_permutahedron([1.0, 0.2], [1.0, 0.5])


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_laminar(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    x = rng.choice([rng.random(n), rng.integers(0, 5, n) / 4])
    family, blocks = [], [rng.permutation(n)]
    while blocks:
        block = blocks.pop()
        family.append(block)
        if len(block) > 1:
            at = int(rng.integers(1, len(block)))
            blocks += [block[:at], block[at:]]
    lottery = laminar_lottery(x, family)
    assert len(lottery.weights) <= n + 1
    np.testing.assert_allclose(lottery.weights @ lottery.members, x, atol=1e-9)
    assert set(np.unique(lottery.members)) <= {0.0, 1.0}
    for block in family:
        counts, mean = lottery.members[:, block].sum(axis=1), x[block].sum()
        assert (counts >= np.floor(mean + 1e-9)).all() and (counts <= np.ceil(mean - 1e-9)).all()


def test_crossing_sets_are_named() -> None:
    with pytest.raises(DeclarationError, match=r"\[1, 2\] and \[0, 1\] cross|\[0, 1\] and \[1, 2\] cross"):
        laminar_lottery([0.5, 0.5, 0.5], [[0, 1], [1, 2]])


@pytest.mark.parametrize("draw", [dependent_rounding, systematic_rounding])
def test_draws_keep_expectations_and_the_sum(draw) -> None:
    x = np.array([0.1, 0.35, 0.8, 0.25, 1.0, 0.0, 0.5])  # the sum is 3
    rng = np.random.default_rng(7)
    found = np.array([draw(x, rng) for _ in range(20_000)])
    assert (found.sum(axis=1) == 3).all()
    # 7 means of 20,000 draws; five standard errors are exceeded with probability under 1e-5
    assert (np.abs(found.mean(axis=0) - x) <= 5 * np.sqrt(x * (1 - x) / 20_000) + 1e-12).all()
    loose = np.array([draw([0.5, 0.25, 0.6], rng).sum() for _ in range(500)])
    assert set(loose.tolist()) == {1.0, 2.0}


class _Start:
    """A generator with one number."""

    def __init__(self, start: float) -> None:
        self.start = start

    def random(self) -> float:
        return self.start


@pytest.mark.parametrize("marginals", [[0.3, 1.0, 0.7], [0.7, 0.3, 0.7, 0.3], [0.1, 0.2, 1.0, 0.7]])
def test_a_systematic_draw_rounds_every_run_at_every_start(marginals) -> None:
    sums = np.concatenate([[0.0], np.cumsum(marginals)])
    starts = {1 - 2.0**-53, 0.0}
    for cut in (1 - sums % 1) % 1:
        starts |= {float(cut), *(float(cut) + i * 2.0**-53 for i in range(-8, 9))}
    for start in starts:
        if 0 <= start < 1:
            counts = np.concatenate([[0.0], np.cumsum(systematic_rounding(marginals, _Start(start)))])
            apart = (counts[:, None] - counts) - (sums[:, None] - sums)
            assert (np.abs(apart) < 1 - 1e-6).all(), start


def test_controlled_rounding() -> None:
    rng = np.random.default_rng(3)
    table = rng.random((3, 4)) * 3
    table[1, 2], table[0, 0] = 2.0, 0.0
    found = np.array([controlled_rounding(table, rng) for _ in range(5_000)])
    for sums, exact in (
        (found, table),
        (found.sum(axis=1), table.sum(axis=0)),
        (found.sum(axis=2), table.sum(axis=1)),
        (found.sum(axis=(1, 2)), table.sum()),
    ):
        assert (sums >= np.floor(exact)).all() and (sums <= np.ceil(exact)).all()
        rest = exact - np.floor(exact)
        assert (np.abs(sums.mean(axis=0) - exact) <= 5 * np.sqrt(rest * (1 - rest) / 5_000) + 1e-9).all()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_controlled_rounding_of_any_table(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 6, 2))
    table = rng.choice([rng.random(shape), rng.integers(0, 9, shape) / 4, rng.integers(0, 30, shape) / 10])
    found = controlled_rounding(table, rng)
    for axis in (None, 0, 1):
        counts, exact = found.sum(axis=axis), table.sum(axis=axis)
        assert (counts >= np.floor(exact + 1e-9)).all() and (counts <= np.ceil(exact - 1e-9)).all()
    assert (np.abs(found - table) < 1).all()
