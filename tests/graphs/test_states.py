"""Tables of states against dictionaries; the heap of compiled kernels against Python's."""

import heapq

import numpy as np
import pytest

from forcopt.graphs import states
from forcopt.graphs.kernels import sift_down, sift_up
from forcopt.graphs.states import COUNT, LEAST, Counting, empty_store, enter, packed, unpacked

PRIMES = np.array([2**31 - 1, 2**31 - 19], np.int64)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # the hash wraps around
@pytest.mark.parametrize("mode", [LEAST, COUNT])
def test_a_table_keeps_the_least_cost_or_the_sum_of_counts(mode, monkeypatch):
    for name in ("_find", "_hash", "longer", "_roomier", "index"):  # without a compiler
        monkeypatch.setattr(states, name, getattr(states, name).py_func)
    rng = np.random.default_rng(3)
    store, count, expected = empty_store(5, 2), 0, {}
    for _ in range(2000):
        key, cost = rng.integers(0, 3, 5), int(rng.integers(1, 100))
        one, two = rng.integers(1, 9, 2), rng.integers(1, 9, 2)
        ways = (one, one.astype(float)), (two, two.astype(float))
        store, count, row = enter.py_func(store, count, key, cost, (7, cost), *ways, Counting(mode, PRIMES))
        assert store[0][row].tolist() == key.tolist()
        old = expected.get(tuple(key.tolist()))
        if mode == LEAST:
            expected[tuple(key.tolist())] = min(cost, old) if old else cost
        else:
            expected[tuple(key.tolist())] = int(one[0] * two[0]) + (old or 0)
    assert count == len(expected)
    found = {tuple(store[0][i].tolist()): int(store[1][i, 0]) for i in range(count)}
    assert found == expected
    if mode == LEAST:  # the way that gave the least cost
        assert all(int(store[3][i, 1]) == int(store[1][i, 0]) for i in range(count))


@pytest.mark.parametrize("limit", [-1, 0, 5])
def test_cost_and_cut_edges_share_a_number(limit):
    for cost in (0, 3, 10**6):
        for pairs in range(max(limit, 0) + 1):
            entry = packed(cost, pairs, COUNT, limit)
            assert unpacked(entry, COUNT, limit) == (cost, pairs)
            assert unpacked(packed(cost, pairs, LEAST, limit), LEAST, limit) == (0, pairs)


@pytest.mark.parametrize("seed", range(5))
def test_a_heap_yields_items_in_the_order_of_lowered_keys(seed):
    rng = np.random.default_rng(seed)
    n = 40
    key, heap, place = rng.integers(20, 60, n), np.empty(n, np.int64), np.full(n, -1, np.int64)
    for size, item in enumerate(rng.permutation(n)):
        heap[size], place[item] = item, size
        sift_up(heap, place, key, size)
    for item in rng.integers(0, n, 30):
        key[item] -= rng.integers(0, 30)
        sift_up(heap, place, key, place[item])
    yielded, expected = [], sorted(key.tolist())
    for size in range(n - 1, -1, -1):
        yielded.append(int(key[heap[0]]))
        if size:
            heap[0] = heap[size]
            sift_down(heap, place, key, size)
            assert all(place[heap[at]] == at for at in range(size))
    assert yielded == expected == heapq.nsmallest(n, key.tolist())
