"""The robust Bayes classifier: every method against every other, enumeration, and the theorems."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import robustness_oracle  # noqa: F401  (registers the method enumeration)

from forcopt.models.adaptive_robustness import RobustBayes, margin_rate
from forcopt.models.adaptive_robustness.instances import draw_curves

BACKENDS = ["highs", "highs:simplex", "clarabel", "glop", "scip", "gscip", "pyomo:glpk", "pyomo:cbc"]


def random_law(rng, n=None, labels=2, d=2):
    n = n or int(rng.integers(1, 7))
    X = rng.integers(0, 4, (n, d)).astype(float) if rng.random() < 0.5 else rng.normal(size=(n, d))
    P = rng.random((n, labels)) * (rng.random((n, labels)) < 0.7)
    if P.sum() == 0:
        P[0, 0] = 1
    return X, P / P.sum()


def random_radius(rng, n):
    kind = rng.integers(0, 3)
    return [0.0, float(rng.choice([0.5, 1.0, rng.random()])), rng.integers(0, 3, n) / 2][kind]


@pytest.mark.parametrize("seed", range(300))
def test_flow_and_lp_agree_in_the_plane(seed):
    rng = np.random.default_rng(seed)
    X, P = random_law(rng)
    p = RobustBayes(X, P, random_radius(rng, len(X)), norm=["l2", "linf"][seed % 2])
    best = p.solve("enumeration")
    flow = p.solve("max-flow")
    lp = p.solve("lp", backend=BACKENDS[seed % len(BACKENDS)])
    for s in (flow, lp):
        assert s.evaluation.feasible and s.status == "optimal"
        assert s.objective == pytest.approx(best.objective, abs=1e-8)
    assert float(p.check_pairing(flow.decision.pairing)) == pytest.approx(best.objective, abs=1e-9)
    s = p.solve("constant")
    assert s.evaluation.feasible and s.bound - 1e-9 <= best.objective <= s.objective + 1e-9


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_finds_whole_vertices(backend):
    rng = np.random.default_rng(5)
    for _ in range(4):
        X, P = random_law(rng, n=12)
        p = RobustBayes(X, P, 0.7)
        s = p.solve("lp", backend=backend)
        assert s.objective == pytest.approx(p.solve("max-flow").objective, abs=1e-8)
        if backend in ("highs", "highs:simplex", "glop", "gscip", "scip", "pyomo:glpk", "pyomo:cbc"):
            values = s.model_solution.point
            assert len(values) == (P > 0).sum() and len(p.conflicts)
            assert np.abs(values - np.round(values)).max() < 1e-9


def by_labelings(X, P, radius):
    """The least robust loss over all labelings of the points and their middles, on a line."""
    grid = np.unique(np.concatenate([X[:, 0], (X[:, None, 0] + X[None, :, 0]).ravel() / 2]))
    inside = np.abs(X - grid) < radius - 1e-12
    inside |= grid == X
    best = np.inf
    for labels in product((0, 1), repeat=len(grid)):
        h = np.array(labels)
        lost0 = (inside & (h == 1)).any(axis=1)
        lost1 = (inside & (h == 0)).any(axis=1)
        best = min(best, P[:, 0] @ lost0 + P[:, 1] @ lost1)
    return best


@pytest.mark.parametrize("seed", range(20))
def test_equals_enumeration_of_labelings_on_a_grid(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    X = rng.choice(8, n, replace=False)[:, None].astype(float)
    P = rng.random((n, 2))
    P /= P.sum()
    # equal radii: balls that meet share the middle of their centers
    radius = float(rng.choice([0.3, 0.5, 0.8, 1.1, 1.7]))
    assert RobustBayes(X, P, radius).solve().objective == pytest.approx(by_labelings(X, P, radius), abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_a_finite_domain_is_no_harder(seed):
    rng = np.random.default_rng(seed)
    X, P = random_law(rng, n=4, d=1)
    free = RobustBayes(X, P, 0.8)
    some = RobustBayes(X, P, 0.8, domain=rng.normal(size=(3, 1)))
    middles = (X[:, None] + X[None]).reshape(-1, 1) / 2
    fine = RobustBayes(X, P, 0.8, domain=middles)
    assert some.solve().objective <= free.solve().objective + 1e-12
    assert fine.solve().objective == pytest.approx(free.solve().objective, abs=1e-12)
    for p in (some, fine):
        answers = {name: p.solve(name) for name in ("lp", "max-flow", "milp", "enumeration")}
        assert all(s.evaluation.feasible for s in answers.values())
        assert np.ptp([s.objective for s in answers.values()]) < 1e-9


def test_the_dual_is_exact_for_counts():
    X, y = draw_curves("sines", 300, seed=0)
    p = RobustBayes.from_sample(X, y, 0.5)
    s = p.solve("max-flow")
    pairing = s.decision.pairing
    assert pairing.denominator == 300 and (pairing.amount == 1).all()
    lost = int((~s.decision.safe & (p.masses > 0)).sum())
    assert p.check_pairing(pairing) == Fraction(lost, 300)
    broken = type(pairing)(pairing.left, pairing.right[::-1], 2 * pairing.amount, pairing.denominator)
    with pytest.raises(ValueError, match="pairing"):
        p.check_pairing(broken)


def test_an_lp_solution_is_certified():
    X, y = draw_curves("sines", 60, seed=1)
    s = RobustBayes.from_sample(X, y, 0.6).solve("lp")
    found = s.certify()
    assert found.feasible and found.optimal


@pytest.mark.parametrize("seed", range(300))
def test_theorems_2_3_and_5(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6, 2))
    P = rng.random((6, 2)) ** 3
    if seed % 3 == 0:  # deterministic labels
        P *= np.eye(2)[rng.integers(0, 2, 6)]
    P /= P.sum()
    phi = margin_rate(X, P)
    r = float(rng.uniform(0.05, 0.8))
    p = RobustBayes(X, P, r)
    least = p.solve().objective
    label = p.bayes_labels
    apart = np.linalg.norm(X[:, None] - X[None], axis=2)[label[:, None] != label[None]]
    assert (least <= p.bayes_risk + 1e-9) == bool((apart >= 2 * r - 1e-12).all())  # Theorem 2
    s = p.solve("bayes")
    assert s.objective == pytest.approx(p.bayes_risk + _lost_margin(p, phi, r), abs=1e-9)
    assert s.objective <= least + phi(r) + 1e-9  # Theorem 5
    assert s.guarantee == pytest.approx(phi(r), abs=1e-9)
    robust = p.solve("lp").decision
    wrong = P[np.arange(6), 1 - robust.predict(X)].sum()
    assert wrong <= p.bayes_risk + phi(r) + 1e-9
    if seed % 3 == 0:
        differ = robust.predict(X) != label
        assert p.bayes_risk < 1e-12 and P[differ].sum() <= phi(r) + 1e-9
    # Theorem 3: two near points
    two = RobustBayes([[0.0], [0.9 * r]], [[0.5, 0], [0, 0.5]], r)
    assert (two.bayes_risk, two.solve().objective, two.solve("bayes").objective) == (0.0, 0.5, 1.0)
    assert len(set(two.solve().decision.predict([[0.0], [0.9 * r]]))) == 1


def _lost_margin(p, phi, r):
    """What the Bayes classifier loses besides its risk: the likelier label of points near its border."""
    lost = phi.radii < r
    place = [int(np.flatnonzero((p.points == x).all(axis=1))[0]) for x in phi.points[lost]]
    return sum(p.masses[i, p.bayes_labels[i]] for i in place)


def test_the_second_stage_agrees_with_the_bayes_classifier():
    X, P = np.array([[0.0], [1.0]]), np.array([[0.5, 0.0], [0.0, 0.5]])
    for first in (0, 1):
        masses = P.copy()
        masses[first] *= 1.0
        s = RobustBayes(X, masses, 0.7).solve("lp", agree=True)
        assert s.objective == pytest.approx(0.5)
    rng = np.random.default_rng(0)
    for _ in range(10):
        X, P = random_law(rng, n=7)
        p = RobustBayes(X, np.round(P, 1) / np.round(P, 1).sum(), 0.8)
        plain, agree = p.solve("lp"), p.solve("lp", agree=True)
        assert agree.objective == pytest.approx(plain.objective, abs=1e-8)
        kept = [_agreement(p, code) for code in _optimal_sets(p, plain.objective)]
        assert agree.evaluation.metrics["agreement"] == pytest.approx(max(kept), abs=1e-7)


def _optimal_sets(p, best):
    pairs = np.argwhere(p.masses > 0)
    for code in range(1 << len(pairs)):
        safe = np.zeros(p.masses.shape, dtype=bool)
        safe[tuple(pairs[[i for i in range(len(pairs)) if code >> i & 1]].T)] = True
        e = p.evaluate(safe)
        if e.feasible and e.objective <= best + 1e-9:
            yield safe


def _agreement(p, safe):
    return p.masses.sum(axis=1) @ safe[np.arange(len(safe)), p.bayes_labels]


@pytest.mark.parametrize("seed", range(20))
def test_three_labels(seed):
    rng = np.random.default_rng(seed)
    X, P = random_law(rng, n=4, labels=3)
    p = RobustBayes(X, P, float(rng.uniform(0.2, 1.2)))
    best = p.solve("enumeration").objective
    for backend in ("highs", "scip", "cp-sat"):
        try:
            s = p.solve("milp", backend=backend)
        except ValueError as error:  # masses that CP-SAT cannot scale to integers
            assert backend == "cp-sat" and "integer" in str(error)
            continue
        assert s.objective == pytest.approx(best, abs=1e-7)
    assert p.method().name == "milp"
    for name in ("lp", "max-flow"):
        with pytest.raises(ValueError, match="2 labels"):
            p.solve(name)


@pytest.mark.parametrize("seed", range(20))
def test_the_classifier_is_robust_on_its_safe_balls(seed):
    rng = np.random.default_rng(seed)
    X, P = random_law(rng)
    radius = np.broadcast_to(random_radius(rng, len(X)), (len(X),)).astype(float)
    s = RobustBayes(X, P, radius).solve()
    for i, k in np.argwhere(s.decision.safe & (P > 0)):
        z = rng.normal(size=(200, 2))
        z *= radius[i] * 0.9999 * np.sqrt(rng.random((200, 1))) / np.linalg.norm(z, axis=1, keepdims=True)
        assert (s.decision.predict(X[i] + z) == k).all()


def test_a_time_limit_leaves_a_valid_bound():
    X, y = draw_curves("sines", 20_000, seed=3)
    best = RobustBayes.from_sample(X, y, 0.3).solve()
    for limit in (0.0, 0.05):
        s = RobustBayes.from_sample(X, y, 0.3).solve("max-flow", time_limit=limit)
        assert s.evaluation.feasible and s.bound <= best.objective + 1e-12 <= s.objective + 2e-12
    seen = []
    s = RobustBayes.from_sample(X, y, 0.3).solve(
        on_improvement=lambda step: seen.append(step) or len(seen) > 1
    )
    assert len(seen) == 2 and s.evaluation.feasible and s.bound <= best.objective + 1e-12


def test_adaptive_balls_up_to_one_half_never_conflict():
    for name in ("sines", "boxes"):
        X, y = draw_curves(name, 400, seed=2)
        assert RobustBayes.from_sample(X, y, fraction=0.5).solve().objective == 0
        with pytest.warns(UserWarning, match="above 1/2"):
            p = RobustBayes.from_sample(X, y, fraction=2 / 3)
        assert p.solve().objective > 0


def test_edge_cases():
    one = RobustBayes([[3.0]], [[0.4, 0.6]], 0.0)
    assert one.solve().objective == pytest.approx(0.4) and one.solve("lp").objective == pytest.approx(0.4)
    # distance exactly 2 r is no conflict, also where it is rounded
    for scale in (1.0, 0.1, 1e-6, 1e6, 1 / 3):
        X = np.array([[1.0], [3.0]]) * scale
        assert RobustBayes(X, [[0.5, 0], [0, 0.5]], scale).solve().objective == 0
        assert RobustBayes(X, [[0.5, 0], [0, 0.5]], scale * 1.001).solve().objective == 0.5
    # an empty ball conflicts with its own place only
    same = RobustBayes([[0.0], [0.0]], [[0.5, 0], [0, 0.5]], 0.0)
    assert same.solve().objective == 0.5 and same.bayes_risk == 0.5
    assert not same.evaluate([[True, False], [False, True]]).feasible
    touch = RobustBayes([[0.0], [1.0]], [[0.5, 0], [0, 0.5]], [1.0, 0.0])
    assert touch.solve().objective == 0
    assert touch.solve().decision.predict([[0.0], [0.999], [1.0]]).tolist() == [0, 0, 1]
    # one label only
    assert RobustBayes([[0.0], [1.0]], [[0.5, 0], [0.5, 0]], 9.0).solve().objective == 0


def test_the_evaluation_names_the_worst_pair():
    p = RobustBayes([[0.0], [1.0], [5.0]], [[0.4, 0], [0, 0.4], [0, 0.2]], 0.75)
    e = p.evaluate(np.array([[True, False], [False, True], [False, True]]))
    assert e.objective == 0
    assert e.violations == {"the balls of points 0 (label 0) and 1 (label 1) meet": pytest.approx(1 / 3)}
    assert e.metrics["overlap"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"masses": [[0.5, 0.6], [0, 0]]}, "the sum is 1.1"),
        ({"masses": [[1.5, -0.5], [0, 0]]}, r"masses\[0, 1\] is -0.5"),
        ({"masses": [[0.5, 0.5]]}, "masses: the shape"),
        ({"masses": [[0.5], [0.5]]}, "2 labels or more"),
        ({"radius": -1.0}, "radius is -1"),
        ({"radius": [1.0, 1.0, 1.0]}, "radius: the shape"),
        ({"radius": float("nan")}, "nan"),
        ({"points": [[0.0], [float("nan")]]}, "nan"),
        ({"points": [0.0, 1.0]}, "shape"),
        ({"norm": "l1"}, "norm"),
        ({"domain": [[0.0, 1.0]]}, "domain: the shape"),
        ({"domain": "sphere"}, "domain"),
    ],
)
def test_bad_input(fields, words):
    good = {"points": [[0.0], [1.0]], "masses": [[0.5, 0], [0, 0.5]], "radius": 0.3}
    with pytest.raises(ValueError, match=words):
        RobustBayes(**(good | fields))


def test_files():
    p = RobustBayes([[0.0], [1.0]], [[0.5, 0], [0, 0.5]], [0.3, 0.8], domain=[[0.5]])
    assert RobustBayes.from_dict(p.to_dict()) == p
    q = RobustBayes([[0.0], [1.0]], [[0.5, 0], [0, 0.5]], 0.3)
    assert RobustBayes.from_dict(q.to_dict()) == q


@pytest.mark.parametrize("seed", range(12))
def test_no_bound_on_the_way_excludes_the_optimum(seed):
    rng = np.random.default_rng(seed)
    X, P = random_law(rng, 40)
    steps = []
    s = RobustBayes(X, P, 0.7).solve("max-flow", on_improvement=lambda step: steps.append(step) or False)
    assert len(steps) > 1 and max(step.bound for step in steps) <= s.objective + 1e-9
