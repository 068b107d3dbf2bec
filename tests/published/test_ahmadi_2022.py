"""Ahmadi, Beyhaghi, Blum, Naggita (FORC 2022): worked examples and the claims of its theorems."""

import numpy as np
import pytest
import strategic_oracle  # noqa: F401  (registers the oracle)

from forcopt.models.strategic import (
    StrategicClassification,
    StrategicLinearClassifier,
    TargetDesign2D,
    find_separator,
    learn_bandit,
    learn_full_information,
)
from forcopt.models.strategic.instances import hitting_set, max_cover
from forcopt.models.strategic.learning import bandit_batch, full_information_samples

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


def test_hitting_set_of_theorem_5():
    p = hitting_set([(0, 1), (1, 2)], elements=3, size=1, gaming_cost=0.22)
    assert p.X.tolist() == [[1, 1, 2, 0], [2, 1, 1, 0], [0, 0, 0, 4]] and p.truth[1] == 6
    targets = np.array([[3.0, 1, 2, 0], [4, 1, 1, 0], [0, 2, 0, 4]])  # of the proof, for the hitting set {1}
    each = StrategicClassification.from_features(p.X, targets, p.truth, p.costs, p.improvable, value=4)
    costs = np.full((3, 3), np.nan)
    costs[each.edges[:, 0].astype(int), each.edges[:, 1].astype(int)] = each.edges[:, 2]
    assert costs == pytest.approx(np.array([[1, 1.5, 1.38], [1, 1, 1.38], [3, 3, 1]]))
    games = each.edges[each.edges[:, 3] == 0]
    assert {(0, 2), (1, 2)} <= {(int(i), int(q)) for i, q, *_ in games}
    r = p.simulate(targets)
    assert (r.true_positives, r.false_positives) == (3, 0)
    assert p.solve().objective == 3


def test_six_agents_in_the_plane():
    population = {
        "X": [[6, 4], [12, 1], [8, 0], [7, 1], [2, 1], [0, 3]],
        "truth": ([1, 2], 12),
        "costs": [0.2, 0.2],
        "improvable": [True, False],
    }
    p = StrategicLinearClassifier(**population)
    assert p.qualified.tolist() == [True, True, False, False, False, False]
    assert p.improvable_along()[:, 0].tolist() == [False, False, True, True, False, False]
    found = find_separator(p, yes=[0, 1], no=[4, 5], improve=[2, 3])
    assert found.feature == 0 and found.margin == pytest.approx(1)
    assert p.evaluate(found.classifier).objective == 4
    for limit in (0, 1, 2):
        assert StrategicLinearClassifier(**population, max_false_positives=limit).solve().objective == 4
    assert p.movement_feature(p.solve("truth").decision) == 1  # f* moves agents along the gaming feature
    # a classifier that moves agents along feature 1 has the initially qualified only
    swapped = StrategicLinearClassifier(**{**population, "improvable": [False, False]})
    assert swapped.solve().objective == 2


@pytest.mark.parametrize("method", ["sweep", "grid", "milp"])
def test_discarded_agents_pay_their_value(method):
    """Algorithm 3 as printed takes infinity, and loses a true positive."""
    population = {"truth": ([1, 2], 12), "costs": [0.2, 0.2], "improvable": [True, False]}
    p = TargetDesign2D(X=[[8, 0], [1, 5], [3, 2]], **population)
    s = p.solve(method)
    assert s.objective == 2 and s.evaluation.feasible
    if method == "sweep":
        assert s.decision.points == pytest.approx(np.array([[2, 7], [12, 0]]))
        printed = p.solve("sweep", as_printed=True)
        assert printed.decision.points == pytest.approx(np.array([[12, 0]])) and printed.objective == 1


@pytest.mark.parametrize("method", ["sweep", "grid", "milp"])
def test_agents_without_a_target_may_game(method):
    """Algorithm 3 as printed skips them, and has a false positive."""
    population = {"truth": ([1, 2], 12), "costs": [1 / 3, 1 / 3], "improvable": [True, False]}
    p = TargetDesign2D(X=[[5, 4], [4, 2]], **population)
    s = p.solve(method)
    assert s.objective == 1 and s.evaluation.feasible
    if method == "sweep":
        assert s.decision.points == pytest.approx(np.array([[5, 4]]))
        printed = p.solve("sweep", as_printed=True)
        assert printed.decision.points == pytest.approx(np.array([[4, 4]]))
        assert printed.evaluation.violations == {"max_false_positives": 1}
    assert p.evaluate([[4, 5]]).objective == 1 and p.evaluate([[4, 5]]).feasible


def test_lower_agents_pay_no_more_for_points_further_right():
    """Lemma 29: of two points that cost agent i the same, one at or right of where i qualifies and one above
    i, every agent with less of the gaming feature pays no more for the first."""
    rng = np.random.default_rng(9)
    population = {"truth": ([1, 2], 12), "costs": [1, 1], "improvable": [True, False]}
    for _ in range(200):
        x = rng.uniform(0, 5, 2)
        needed = 12 - 2 * x[1]
        if needed < x[0]:
            continue
        right = np.array([needed + rng.uniform(0, 3), x[1] + rng.uniform(0, 3)])
        above = np.array([needed, x[1] + (right - x).clip(0).sum() - (needed - x[0])])
        below = rng.uniform([-5, -5], [9, x[1]])
        graph = StrategicClassification.from_features([x, below], [right, above], **population, value=100)
        cost = graph.edges[:, 2].reshape(2, 2)
        assert cost[0, 0] == pytest.approx(cost[0, 1]) and cost[1, 0] <= cost[1, 1] + 1e-8


def test_sample_sizes_of_theorems_8_and_9():
    assert full_information_samples(4, 0.1, 0.05) == 58 and bandit_batch(4, 0.1, 0.05) == 44
    assert full_information_samples(10, 0.1, 0.05) == 100 and bandit_batch(10, 0.1, 0.05) == 53


@pytest.mark.parametrize("learn", [learn_full_information, learn_bandit])
def test_learning_the_distribution(learn):
    """Both theorems allow 5 % failures; more than 28 of 300 has probability below 1e-3. None is seen."""
    failures, samples = 0, []
    for seed in range(300):
        found = learn(DISTRIBUTION, 0.1, 0.05, seed=seed)
        r = DISTRIBUTION.simulate(found.decision)
        failures += r.true_positives < 0.5 - 0.1 - 1e-9 or r.false_positives > 0.1 + 1e-9
        samples.append(found.samples)
    assert failures <= 28
    if learn is learn_bandit:
        assert max(samples) <= 176 and np.mean(samples) == pytest.approx(172.6, abs=3)
    else:
        assert set(samples) == {58}
