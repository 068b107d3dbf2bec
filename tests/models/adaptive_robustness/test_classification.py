"""Halfspaces of least adaptive loss: programs, enumeration, brute force over subsets, surrogates."""

from itertools import combinations, product

import numpy as np
import pytest
from processor_time import spends_at_most
from robustness_oracle import largest_fraction
from scipy.optimize import linprog, minimize

import forcopt as fo
from forcopt.models.adaptive_robustness import (
    AdaptiveRobustClassification,
    ExpansionNearestNeighbour,
    Halfspace,
    NearestNeighbour,
    ReLUNetwork,
    Tree,
    adaptive_radii,
    exact_radii,
    sampled_loss,
)

pytestmark = pytest.mark.filterwarnings("ignore:the fraction c is")


def random_problem(seed, norm, n=7, d=2):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, d)).astype(float) if seed % 3 == 0 else rng.normal(size=(n, d))
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    return AdaptiveRobustClassification(X, y, float(rng.choice([0.2, 0.35, 0.5, 0.6])), norm)


def keeps(X, s, r):
    """Whether some halfspace keeps all balls of the maximum norm, by a linear program of its own."""
    if len(set(s)) < 2:
        return True
    for i, j in combinations(range(len(X)), 2):
        if (X[i] == X[j]).all() and s[i] != s[j]:
            return False
    d, r = X.shape[1], np.maximum(r, 3e-6)
    rows = np.c_[-s[:, None] * X, s[:, None] * X, -s, np.ones(len(X))]
    rows = np.r_[rows, [np.r_[np.ones(2 * d), 0, 0]]]
    cost = np.r_[np.zeros(2 * d + 1), -1]
    found = linprog(cost, rows, np.r_[-r, 1], bounds=[(0, None)] * 2 * d + [(None, None)] * 2)
    return -found.fun >= -1e-7


@pytest.mark.parametrize("seed", range(12))
def test_the_milp_equals_brute_force_over_subsets(seed):
    p = random_problem(seed, "linf", n=6)
    n, s = len(p.labels), p.signs
    best = min(
        (n - k) / n
        for k in range(n + 1)
        for kept in combinations(range(n), k)
        if keeps(p.features[list(kept)], s[list(kept)], p.balls[list(kept)])
    )
    for backend in ("highs", "scip", "gscip"):
        found = p.solve("milp", backend=backend)
        assert found.status == "optimal" and found.objective == pytest.approx(best)
    assert p.solve("enumeration").objective == pytest.approx(best)


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("seed", range(12))
def test_programs_equal_enumeration_in_the_plane(norm, seed):
    p = random_problem(seed, norm, n=12)
    best = p.solve("enumeration")
    exact = p.solve()
    assert exact.status == "optimal" and exact.method == ("misocp" if norm == "l2" else "milp")
    assert exact.objective == pytest.approx(best.objective)
    for name in ("hinge", "svm", "augmented"):
        s = p.solve(name)
        assert s.status == "approximate" and s.bound == 0 and s.objective >= best.objective - 1e-12
    # nothing found by random halfspaces is better
    rng = np.random.default_rng(seed)
    for _ in range(300):
        w = rng.normal(size=2)
        h = Halfspace(w, -float(w @ p.features[rng.integers(12)]) + rng.normal() * 0.3)
        assert p.evaluate(h).objective >= best.objective - 1e-12


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("seed", range(4))
def test_the_loss_is_zero_up_to_the_largest_fraction(norm, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(10, 2))
    y = (X @ [1.0, 0.5] > 0.1).astype(int)
    X += 0.3 * (2 * y[:, None] - 1) * np.array([1.0, 0.5])
    found = largest_fraction(X, y, norm)
    rho = adaptive_radii(X, y, norm)
    dual = np.linalg.norm(found.classifier.w, 2 if norm == "l2" else 1)
    room = (2 * y - 1) * found.classifier.scores(X) / dual
    assert (room / rho).min() == pytest.approx(found.fraction, abs=1e-5) and len(found.tight) >= 2
    for c, lossless in ((found.fraction * 0.999, True), (found.fraction * 1.001, False)):
        s = AdaptiveRobustClassification(X, y, c, norm).solve()
        assert s.status == "optimal" and (s.objective == 0) == lossless
    judged = AdaptiveRobustClassification(X, y, 0.1, norm).evaluate(found.classifier)
    assert judged.metrics["fraction"] == pytest.approx(found.fraction, abs=1e-5)
    if norm == "l2":  # against a solver for smooth programs, from the answer and from elsewhere
        for start in (np.r_[found.classifier.w, found.classifier.b], rng.normal(size=3)):
            other = minimize(
                lambda v: -((2 * y - 1) * (X @ v[:2] + v[2]) / np.linalg.norm(v[:2]) / rho).min(),
                start,
                method="Nelder-Mead",
                options={"maxiter": 4000},
            )
            assert -other.fun <= found.fraction + 1e-6


def test_inseparable_labels_have_fraction_zero():
    assert largest_fraction([[0.0], [1.0], [2.0]], [0, 1, 0]).fraction == 0
    assert largest_fraction([[0.0], [0.0]], [0, 1]).fraction == 0


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_programs_have_no_loss_just_up_to_the_largest_fraction(norm):
    """Twelve random sets in one to three dimensions, some of them not separable."""
    separable = 0
    for seed in range(12):
        rng = np.random.default_rng(100 + seed)
        n, d = int(rng.integers(3, 8)), int(rng.integers(1, 4))
        X = rng.integers(0, 6, (n, d)).astype(float) if seed % 3 == 0 else rng.normal(size=(n, d))
        y = (X @ rng.normal(size=d) > np.median(X @ np.ones(d))).astype(int)
        y[0], y[1] = 0, 1
        best = largest_fraction(X, y, norm).fraction
        separable += best > 0
        cases = [(0.998 * best, True), (1.002 * best, False)] if best > 0.02 else [(0.05, False)]
        for c, lossless in cases:
            p = AdaptiveRobustClassification(X, y, c, norm)
            for run in ("milp@highs", "milp@scip") if norm == "linf" else ("misocp@scip",):
                s = p.solve(run)
                assert s.status == "optimal" and (s.objective == 0) == lossless, (seed, c, run)
    assert 4 <= separable < 12


def test_coinciding_labels_cost_a_point():
    p = AdaptiveRobustClassification([[0.0, 0], [0.0, 0], [1.0, 0], [2.0, 1]], [0, 1, 1, 0], 0.4)
    assert p.evaluate(Halfspace([1.0, 0.0], -0.5)).metrics["coinciding"] == pytest.approx(0.25)
    for name in ("misocp", "enumeration"):
        assert p.solve(name).objective >= 0.25
    constant = AdaptiveRobustClassification([[0.0], [0.0]], [0, 1], 0.4).solve("enumeration")
    assert constant.objective == 0.5


def test_rotation_scaling_and_shift():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(14, 2)), np.arange(14) % 2
    best = AdaptiveRobustClassification(X, y, 0.4).solve("enumeration").objective
    turn = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    for scale, shift in ((1e-4, 0.0), (1e4, 1e5)):
        p = AdaptiveRobustClassification(scale * X @ turn + shift, y, 0.4)
        assert p.solve("enumeration").objective == best and p.solve("misocp").objective == best


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_the_border_belongs_to_label_1(norm):
    """An empty ball of label 1 is kept on the border; one of label 0 is kept if it has room."""
    name = "misocp@scip" if norm == "l2" else "milp@highs"
    for d in (1, 2):
        X = np.zeros((3, d))
        X[:, 0] = 0.0, 2.0, 1.0
        for labels, radii, loss in (
            ([0, 1, 1], [1.0, 1.0, 0.0], 0.0),  # the border at 1 is the only one
            ([1, 0, 1], [1.0, 1.0, 0.0], 0.0),
            ([0, 1, 0], [1.0, 1.0 - 1e-3, 0.0], 0.0),
            ([0, 1, 0], [1.0, 1.0 + 1e-3, 0.0], 1 / 3),
        ):
            p = AdaptiveRobustClassification(X, labels, norm=norm, radii=radii)
            for method in (name, "enumeration"):
                s = p.solve(method)
                assert s.status == "optimal" and s.objective == pytest.approx(loss), (d, labels, method)
                assert s.decision.predict(X)[2] == labels[2] or loss > 0


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_given_radii_and_a_start(norm):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(15, 2)), rng.integers(0, 2, 15)
    p = AdaptiveRobustClassification(X, y, norm=norm, radii=0.2)
    best = p.solve("enumeration")
    name = "misocp" if norm == "l2" else "milp"
    handles = p.formulate(name)[1]
    assert handles.start is not None
    s = p.solve(name, start=best.decision)
    assert s.objective == pytest.approx(best.objective)
    one = AdaptiveRobustClassification(X, np.ones(15, dtype=int), norm=norm, radii=0.2)
    assert one.solve(name).objective == 0 == one.solve("enumeration").objective


def test_a_time_limit_leaves_a_valid_bound():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(120, 6)), rng.integers(0, 2, 120)
    for norm in ("l2", "linf"):
        p = AdaptiveRobustClassification(X, y, 0.5, norm)
        with spends_at_most(30):
            s = p.solve(time_limit=0.5)
        assert s.status in ("feasible", "limit")
        assert s.decision is None or s.bound <= s.objective
    p = AdaptiveRobustClassification(X[:, :2], y, 0.5)
    s = p.solve("enumeration", time_limit=0.0)
    assert s.status == "feasible" and s.bound == 0


def test_the_losses_of_other_classifiers_are_exact():
    sklearn = pytest.importorskip("sklearn.tree")
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] ** 2 + X[:, 1] > 0.3).astype(int)
    p = AdaptiveRobustClassification(X, y, 0.5)
    nn = NearestNeighbour(X, y)
    assert p.evaluate(nn).objective == 0  # balls of half the adaptive radius are within the cells
    fitted = sklearn.DecisionTreeClassifier(max_depth=3, random_state=0)
    s = p.solve("augmented", learner=fitted, seed=1)
    assert isinstance(s.decision, Tree)
    radii = exact_radii(s.decision, X, y)[1]
    assert s.objective == pytest.approx((radii < p.balls).mean())
    for seed in range(3):
        assert sampled_loss(s.decision, X, y, 0.5, 20, seed=seed) <= s.objective
    with pytest.raises(ValueError, match="compare exact_radii"):
        p.evaluate(ReLUNetwork([[[1.0], [1.0]]], [[0.0]]))
    from sklearn.svm import SVC

    with pytest.raises(ValueError, match="learner is SVC"):
        p.solve("augmented", learner=SVC())


def test_the_expansion_has_no_loss_on_its_points():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    fitted = ExpansionNearestNeighbour(0.5).fit(X, y)
    assert sampled_loss(fitted, X, y, 0.5, 50, seed=0) == 0
    plain = ExpansionNearestNeighbour(0.0).fit(X, y)
    Z = rng.normal(size=(200, 3))
    assert (plain.predict(Z) == NearestNeighbour(X, y).predict(Z)).all()


@pytest.mark.parametrize("backend", ["highs", "scip"])
def test_leximax_of_robust_losses_over_groups(backend):
    rng = np.random.default_rng(8)
    X, group = rng.normal(size=(16, 2)), np.arange(16) % 2
    y = (X[:, 0] + 0.8 * group * X[:, 1] > 0).astype(int)
    p = AdaptiveRobustClassification(X, y, 0.4, "linf")
    m = fo.Model("fair robustness")
    handles = p.declare(m, "milp")
    losses = fo.stack([handles.lost[group == g].sum() / 8.0 for g in (0, 1)])
    m.leximax(losses)
    said = m.solve(backend)
    assert said.status == "optimal"
    lost = p.lossy(handles.decision(said))
    worst = max(lost[group == g].mean() for g in (0, 1))
    plain = p.lossy(p.solve("milp").decision)
    assert worst <= max(plain[group == g].mean() for g in (0, 1)) + 1e-9
    assert sorted(said.levels, reverse=True)[0] == pytest.approx(worst, abs=1e-6)


def lost_sets(p):
    """Which points a halfspace in the plane can lose: a point keeps all of its room or clearly not.

    The halfspaces of the maximum norm through all pairs of corners of balls, moved by a little.
    """
    corners = np.concatenate([p.features + p.balls[:, None] * t for t in product((-1, 1), repeat=2)])
    found = set()
    for a, b in combinations(corners, 2):
        for turn in (-1e-3, 1e-3):
            normal = np.array([b[1] - a[1], a[0] - b[0]]) + turn * (b - a)
            for middle in (a, b, (a + b) / 2):
                for shift in (-1e-4, 1e-4):
                    for w in (normal, -normal):
                        room = p.signs * ((p.features - middle) @ w / np.abs(w).sum() + shift) - p.balls
                        if (np.abs(room) > 1e-5).all():
                            found.add(tuple((room < 0).astype(int).tolist()))
    return np.array([*found, tuple(p.labels), tuple(1 - p.labels)])


@pytest.mark.parametrize("seed", [1, 2, 4, 5])
def test_lost_of_a_declared_block_are_the_points_that_the_decision_loses(seed):
    """Also where rows or the objective want many lost."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(6, 2)).round(2), np.array([0, 1, 0, 1, 0, 1])
    p = AdaptiveRobustClassification(X, y, 0.3, "linf")
    table, first = lost_sets(p), np.arange(6) < 3
    for sign in (1.0, -1.0):
        m = fo.Model()
        h = p.declare(m, "milp")
        m.subject_to(h.lost[first].sum() == h.lost[~first].sum())
        m.minimize(sign * h.lost.sum())
        said = m.solve()
        equal = table[table[:, first].sum(axis=1) == table[:, ~first].sum(axis=1)].sum(axis=1)
        assert said.objective == pytest.approx((equal * sign).min())
        assert p.lossy(h.decision(said)).tolist() == (said[h.lost] > 0.5).tolist()
        assert said[h.w].tolist() == pytest.approx(h.decision(said).w * p.extent, abs=1e-6)
    m = fo.Model()
    h = p.declare(m, "milp")
    m.subject_to(h.lost.sum() >= 3)
    m.minimize(h.w[0])
    said = m.solve(start=h.start_at(p.constant()))
    assert p.lossy(h.decision(said)).tolist() == (said[h.lost] > 0.5).tolist()


def test_lost_of_a_declared_cone_program_bounds_what_the_decision_loses():
    X, y = np.random.default_rng(3).normal(size=(8, 2)), np.array([0, 1] * 4)
    p = AdaptiveRobustClassification(X, y, 0.3, "l2")
    m = fo.Model()
    h = p.declare(m, "misocp")
    m.subject_to(h.lost[:2].sum() == 0, h.lost.sum() >= 5)
    m.minimize(h.w[0])
    said = m.solve("scip")
    assert said.status.has_solution
    assert not (p.lossy(h.decision(said)) & (said[h.lost] < 0.5)).any()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"fraction": 0.0}, "the fraction c is 0; it must be positive"),
        ({"fraction": -1.0}, "must be positive"),
        ({"labels": [0, 2]}, r"labels\[1\] is 2"),
        ({"labels": [1, 1]}, "all are equal"),
        ({"labels": [1]}, "labels: the shape"),
        ({"radii": -0.1}, "radii"),
        ({"radii": [0.1, 0.1, 0.1]}, "radii: the shape"),
        ({"features": [[0.0], [float("inf")]]}, "finite"),
        ({"norm": "l7"}, "norm"),
    ],
)
def test_bad_input(fields, words):
    with pytest.raises(ValueError, match=words):
        AdaptiveRobustClassification(**({"features": [[0.0], [1.0]], "labels": [0, 1]} | fields))


def test_the_wrong_program_or_dimension():
    p = AdaptiveRobustClassification([[0.0, 0, 0], [1.0, 1, 1]], [0, 1])
    for name, words in (("milp", "takes 'linf'"), ("enumeration", "1 or 2 features")):
        with pytest.raises(ValueError, match=words):
            p.solve(name)
    with pytest.warns(UserWarning, match="above 1/2"):
        AdaptiveRobustClassification([[0.0], [1.0]], [0, 1], 0.7)
    assert AdaptiveRobustClassification.from_dict(p.to_dict()) == p


def test_augmented_keeps_its_time_limit():
    from sklearn.svm import SVC

    from forcopt.models.adaptive_robustness.instances import draw_curves

    x, y = draw_curves("sines", 1500, seed=0)
    p = AdaptiveRobustClassification(x, y, 0.5)
    whole = p.solve("augmented", seed=1)
    limited = p.solve("augmented", seed=1, time_limit=60)
    assert limited.objective == whole.objective and not limited.message
    assert p.solve("augmented", seed=1, time_limit=0.0).decision.w.tolist() == [0, 0]
    slow = SVC(kernel="linear", C=1e5, tol=1e-9)  # minutes
    with spends_at_most(30):
        s = p.solve("augmented", seed=1, learner=slow, time_limit=0.5)
    assert "not end in time" in s.message and s.objective <= 1
    with pytest.raises(ValueError, match="C"):
        p.solve("augmented", seed=1, learner=SVC(kernel="linear", C=-1.0), time_limit=30)


def test_no_proof_excludes_balls_that_touch():
    p = AdaptiveRobustClassification([[1.13], [1.87], [0.42]], [0, 0, 1], 0.5, "linf")
    assert p.solve("enumeration").objective == p.solve("milp").objective == 0.0
    worse = Halfspace([-1.5], 0.9)  # loses a point
    assert p.evaluate(worse).objective == pytest.approx(1 / 3)
    certificate = p.certify(worse)
    assert certificate.optimal is False and certificate.bound <= 0
    assert p.solve("milp").certify().bound <= 0
