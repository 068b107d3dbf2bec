"""Radii, draws, augmentation, margin rates, and what they compose with."""

import numpy as np
import pytest
from scipy.stats import chisquare

from forcopt.fairness import EqualizedOdds, PairwiseFairness
from forcopt.models import FairClassification, StrategicClassification
from forcopt.models.adaptive_robustness import (
    AdaptiveRobustClassification,
    ExpansionNearestNeighbour,
    Halfspace,
    RobustBayes,
    adaptive_radii,
    augment,
    exact_radii,
    margin_rate,
    nn_sample_size,
    sampled_loss,
)
from forcopt.models.fair_classification import Finite, Thresholds


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_adaptive_radii_equal_all_distances(norm):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 4)), rng.choice(["a", "b", "c"], 50)
    apart = np.linalg.norm(X[:, None] - X[None], 2 if norm == "l2" else np.inf, axis=2)
    apart[y[:, None] == y[None]] = np.inf
    assert adaptive_radii(X, y, norm) == pytest.approx(apart.min(axis=1))
    Z, z = rng.normal(size=(7, 4)), np.array(["a"] * 7)
    other = np.linalg.norm(Z[:, None] - X[None], 2 if norm == "l2" else np.inf, axis=2)
    other[:, y == "a"] = np.inf
    assert adaptive_radii(Z, z, norm, to=(X, y)) == pytest.approx(other.min(axis=1))


def test_one_label_only_wants_a_cap():
    with pytest.warns(UserWarning, match="infinite"):
        assert np.isinf(adaptive_radii([[0.0], [1.0]], [1, 1])).all()
    with pytest.warns(UserWarning, match="infinite"), pytest.raises(ValueError, match="a cap is needed"):
        augment([[0.0], [1.0]], [1, 1])
    rows = augment([[0.0], [1.0]], [1, 1], cap=2.0, seed=0)
    assert len(rows.points) == 10
    assert margin_rate([[0.0], [1.0]], [[0.5, 0], [0.5, 0]]).inverse(0.1) == np.inf
    assert nn_sample_size(2, np.inf, 0.1, 0.1) == 1


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_the_radial_law_of_augmentation(norm):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 2
    rows = augment(X, y, 0.4, 100, keep_original=False, norm=norm, seed=2)
    assert rows.points.shape == (3000, 3) and (rows.labels == y[rows.source]).all()
    size = 0.4 * adaptive_radii(X, y, norm)[rows.source]
    share = np.linalg.norm(rows.points - X[rows.source], 2 if norm == "l2" else np.inf, axis=1) / size
    assert share.max() < 1
    # uniform in the ball: the d-th power of the radius is uniform; wrong with probability 1e-4
    assert chisquare(np.histogram(share**3, 20, (0, 1))[0]).pvalue > 1e-4
    # and directions are balanced
    assert np.abs((rows.points - X[rows.source]).mean(axis=0) / size.mean()).max() < 0.05


def test_augmentation_carries_columns():
    X, y = [[0.0, 0], [1.0, 0], [0.0, 2]], [0, 1, 0]
    rows = augment(X, y, 0.5, 3, seed=0, groups=["a", "b", "b"], weights=[1.0, 2.0, 3.0])
    assert rows.points.shape == (12, 2) and rows.columns["groups"].tolist() == ["a"] * 4 + ["b"] * 8
    assert rows.points[::4].tolist() == X
    assert np.bincount(rows.source, rows.columns["weights"]) == pytest.approx([1, 2, 3])
    assert augment(X, y, 0.5, 3, seed=0).points.tolist() == rows.points.tolist()
    both = augment([[0.0], [0.0], [1.0]], [0, 1, 1], 0.5, 2, seed=0)
    assert (both.points[:3] == 0).all()  # a point with both labels has an empty ball
    for bad, words in (
        ({"draws": 0}, "draws is 0"), ({"c": 0.0}, "c is 0"), ({"c": -1.0}, "c is -1"),
        ({"radii": -1.0}, "radii"),
        ({"groups": [1]}, "groups"), ({"cap": -1.0}, "cap"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            augment(X, y, **bad)
    with pytest.raises(ValueError, match="labels: the shape"):
        augment(X, [0, 1])
    with pytest.raises(ValueError, match="nan"):
        augment([[np.nan]], [0])


def test_the_sampled_loss_grows_with_nested_draws_and_stays_below_the_exact():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    h = Halfspace([1.0, 0.3], 0.1)
    for norm in ("l2", "linf"):
        exact = AdaptiveRobustClassification(X, y, 0.5, norm).evaluate(h).objective
        losses = [sampled_loss(h, X, y, 0.5, draws, norm=norm, seed=4) for draws in (1, 2, 5, 20, 100)]
        assert losses == sorted(losses) and losses[-1] <= exact
    with pytest.raises(ValueError, match="reduce"):
        sampled_loss(h, X, y, reduce="max")
    with pytest.raises(ValueError, match="draws"):
        sampled_loss(h, X, y, draws=0)


def test_the_margin_rate():
    X = [[0.0], [1.0], [1.0], [3.0]]
    masses = [[0.3, 0.0], [0.1, 0.2], [0.0, 0.1], [0.15, 0.15]]
    with pytest.raises(ValueError, match=r"point \[3.0\] are equally likely"):
        margin_rate(X, masses)
    phi = margin_rate(X, masses, ties="drop")
    assert phi.points.ravel().tolist() == [0, 1, 3] and phi.radii == pytest.approx([0.5, 0.5, 0])
    assert (phi(0), phi(0.5), phi(0.6)) == (0, pytest.approx(0.3), pytest.approx(1))
    assert phi.inverse(0.3) == pytest.approx(0.5) and phi.inverse(0.1) == 0 and phi.inverse(1) == np.inf
    with pytest.raises(ValueError, match="r is -1"):
        phi(-1)
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(300, 2))
    law = np.eye(2)[(Z[:, 0] > 0).astype(int)] / 300
    assert margin_rate(Z, law, method="cuts").radii == pytest.approx(
        margin_rate(Z, law, method="voronoi").radii
    )
    for bad in ({"d": 0}, {"eps": 0.0}, {"delta": 1.0}, {"phi_inverse": 0.0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            nn_sample_size(**({"d": 1, "phi_inverse": 0.1, "eps": 0.1, "delta": 0.1} | bad))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda X, y: augment(X, y, radii=[1.0, 2.0, 3.0]), r"radii: the shape is \(3,\)"),
        (lambda X, y: augment(X, y, radii=np.inf), "radii is inf"),
        (lambda X, y: augment(X, y, weights=[1.0, -1.0]), r"weights\[1\] is -1"),
        (lambda X, y: sampled_loss(Halfspace([1.0], 0.0), X, y, radii=[1.0, 2.0, 3.0]), "radii: the shape"),
        (lambda X, y: sampled_loss(Halfspace([1.0], 0.0), X, y, radii=-1.0), "radii is -1"),
        (lambda X, y: sampled_loss(3, X, y), "classifier is 3"),
        (lambda X, y: adaptive_radii(X, [None, 1]), "no common order"),
        (lambda X, y: nn_sample_size(300, 0.01, 0.1, 0.1), "above 10"),
        (lambda X, y: margin_rate(X, [[0.5, 0], [0, 0.5]], method="sampled"), "method is 'sampled'"),
        (lambda X, y: margin_rate(X, [[0.5, 0], [0, 0.5]], ties="keep"), "ties is 'keep'"),
        (lambda X, y: ExpansionNearestNeighbour(0.5).predict(X), "call fit"),
        (lambda X, y: exact_radii(Halfspace([1.0], 0.0), X, [0]), "labels: the shape"),
        (lambda X, y: exact_radii(Halfspace([1.0], 0.0), X[0], y), "points: the shape"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call([[0.0], [1.0]], [0, 1])


def test_equalized_odds_of_the_robust_predictor():
    rng = np.random.default_rng(5)
    X, groups = rng.normal(size=(60, 1)), np.array(["a", "b"])[np.arange(60) % 2]
    y = (X[:, 0] + 0.5 * (groups == "b") > 0).astype(int)
    rows = augment(X, y, 0.5, 3, seed=0, groups=groups)
    p = FairClassification(
        rows.points, rows.labels, rows.columns["groups"], EqualizedOdds(0.05),
        weights=rows.columns["weights"], hypotheses=Thresholds(),
    )  # fmt: skip
    s = p.solve("lp")
    assert s.status == "optimal" and s.evaluation.feasible
    assert p.record_weights.sum() == pytest.approx(1) and p.record_weights[:4] == pytest.approx(1 / 240)


def test_robust_errors_in_place_of_plain_ones():
    rng = np.random.default_rng(6)
    X, groups = rng.normal(size=(40, 2)), np.arange(40) % 2
    y = (X[:, 0] > 0).astype(int)
    problem = AdaptiveRobustClassification(X, y, 0.4)
    pool = [Halfspace(rng.normal(size=2), float(rng.normal()) / 2) for _ in range(30)]
    lossy = np.array([problem.lossy(h) for h in pool])
    table = np.where(lossy, 1 - y, y)  # wrong exactly where the ball is not safe
    s = FairClassification(X, y, groups, EqualizedOdds(1.0), hypotheses=Finite(table)).solve("lp")
    assert s.objective == pytest.approx(lossy.mean(axis=1).min())


def test_pairs_within_adaptive_balls():
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(40, 1)), rng.integers(0, 2, 40)
    size = 0.9 * adaptive_radii(X, y)
    pairs = np.argwhere((np.abs(X - X.T) < size[:, None]) & (np.arange(40)[:, None] != np.arange(40)))
    assert len(pairs)
    p = FairClassification(
        X, y, np.zeros(40, int), PairwiseFairness(pairs, gamma=0.2, budget=0.0), hypotheses=Thresholds()
    )
    s = p.solve("lp")
    assert s.evaluation.feasible
    chance = s.decision.probability(X)
    assert (chance[pairs[:, 0]] - chance[pairs[:, 1]]).max() <= 0.2 + 1e-6


def test_what_gaming_can_cost_at_most():
    """Agents who game move by at most their budget: no classifier loses less than the robust Bayes loss."""
    rng = np.random.default_rng(8)
    X = rng.integers(0, 8, (12, 1)).astype(float)
    y = (X[:, 0] >= 4).astype(int)
    budget = rng.choice([0.5, 1.0, 1.5], 12)
    robust = RobustBayes(X, np.eye(2)[y] / 12, budget, domain=np.arange(9.0)[:, None])
    loss = robust.solve().objective
    # each threshold as a criterion that every agent may reach by moving up, by gaming
    edges = [
        (i, t, max(0.0, t - X[i, 0]), float(y[i]))
        for i in range(12)
        for t in range(9)
        if t - X[i, 0] < budget[i]
    ]
    p = StrategicClassification(
        agents=12, criteria=9, edges=edges, value=budget, max_false_positives=None, penalty=1.0
    )
    grid, reached = np.arange(9.0), np.abs(X - np.arange(9.0)) < budget[:, None]
    for t in range(9):
        r = p.simulate([t])
        gamed = (r.false_positives + (y.sum() - r.true_positives)) / 12
        attacked = (reached & ((grid >= t) != (y == 1)[:, None])).any(axis=1).mean()
        assert gamed <= attacked + 1e-12  # an agent's move is one of the adversary's
        assert loss <= attacked + 1e-12
