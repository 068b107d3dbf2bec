"""Ahmadi, Beyhaghi, Blum, Naggita (FORC 2022): worked examples and the claims of its theorems."""

import numpy as np
import pytest

from forcopt.models.strategic import StrategicClassification
from forcopt.models.strategic.generators import max_cover

METHODS = ("milp", "lp", "greedy-deletion", "enumeration")


def test_gaming_free_sets_are_not_downward_closed():
    """Remark 3."""
    p = StrategicClassification(agents=1, criteria=2, edges=[(0, 0, 1, 1), (0, 1, 2, 0)], value=2)
    both, alone = p.simulate({0, 1}), p.simulate({1})
    assert (both.true_positives, both.false_positives) == (1, 0)
    assert (alone.true_positives, alone.false_positives) == (0, 1)
    assert p.solve("greedy-deletion").decision == {0, 1}


@pytest.mark.parametrize("method", METHODS)
def test_four_agents_four_criteria(method):
    edges = [(0, 0, 1, 0), (0, 1, 2, 1), (0, 2, 3, 1), (1, 0, 1, 1)]
    edges += [(2, 1, 1, 1), (2, 2, 2, 0), (3, 3, 1, 0), (3, 2, 2, 1)]
    p = StrategicClassification(agents=4, criteria=4, edges=edges, value=3)
    s = p.solve(method)
    r = p.simulate(s.decision)
    assert s.objective == 3 and s.bound == pytest.approx(3) and s.decision >= {1, 2}
    assert r.choice.tolist() == [1, -1, 1, 2] and (r.false_positives, r.effort) == (0, 5)
    if method == "milp":
        for limit in (1, 2, 3):
            more = StrategicClassification(4, 4, edges, max_false_positives=limit, value=3)
            assert more.solve().objective == 3


def test_max_cover_of_theorem_4():
    sets = [(0, 1, 2), (2, 3, 4), (1, 2, 3), (3, 4, 5), (0, 4, 5)]
    for most, covered in ((0, 0), (1, 3), (2, 6), (3, 6), (4, 6)):
        p = max_cover(sets, 6, most)
        assert p.solve().objective == p.solve("enumeration").objective == covered
    assert max_cover(sets, 6, 2).evaluate({0, 3}).objective == 6


DISTRIBUTION = StrategicClassification(
    agents=5,
    criteria=4,
    edges=[
        *[(0, 0, 1, 1), (0, 1, 2, 0), (1, 1, 1, 0), (1, 2, 2, 1)],
        *[(2, 2, 1, 1), (3, 3, 1, 0), (3, 0, 2, 1), (4, 0, 1, 0)],
    ],
    weights=[0.30, 0.30, 0.20, 0.15, 0.05],
    value=2,
)
MASSES = {
    "": (0, 0), "0": (0.45, 0.05), "1": (0, 0.6), "2": (0.5, 0), "3": (0, 0.15), "01": (0.45, 0.35),
    "02": (0.95, 0.05), "03": (0.3, 0.2), "12": (0.2, 0.6), "13": (0, 0.75), "23": (0.5, 0.15),
    "012": (0.65, 0.35), "013": (0.3, 0.5), "023": (0.8, 0.2), "123": (0.2, 0.75), "0123": (0.5, 0.5),
}  # fmt: skip


@pytest.mark.parametrize("is_open", MASSES)
def test_masses_of_every_open_set(is_open):
    r = DISTRIBUTION.simulate(map(int, is_open))
    assert (r.true_positives, r.false_positives) == pytest.approx(MASSES[is_open])


@pytest.mark.parametrize("method", METHODS)
def test_optimum_without_false_positives_of_a_distribution(method):
    s = DISTRIBUTION.solve(method)
    assert s.objective == pytest.approx(0.5) and s.decision == {2}


def test_optimum_with_some_false_positives_of_a_distribution():
    kept = {name: getattr(DISTRIBUTION, name) for name in type(DISTRIBUTION).model_fields}
    p = StrategicClassification(**{**kept, "max_false_positives": 0.05})
    for method in ("milp", "enumeration"):
        s = p.solve(method)
        assert s.objective == pytest.approx(0.95) and s.decision == {0, 2}


def test_a_union_of_gaming_free_sets_is_gaming_free():
    """Follows from the proof of Theorem 2."""
    rng = np.random.default_rng(5)
    for _ in range(30):
        n, m = 5, 4
        edges = [(i, p, rng.integers(1, 9), rng.random() < 0.6) for i in range(n) for p in range(m)]
        p = StrategicClassification(agents=n, criteria=m, edges=edges, value=9)
        free = [q for q in range(2**m) if not p.simulate(k for k in range(m) if q >> k & 1).false_positives]
        assert {a | b for a in free for b in free} <= set(free)
