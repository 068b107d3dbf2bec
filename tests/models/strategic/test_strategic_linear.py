import warnings
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.backends.registry import backends
from forcopt.models.strategic import LinearClassifier, StrategicLinearClassifier
from forcopt.models.strategic.linear_milp import find_separator

MIXED_BACKENDS = [
    n
    for n, b in backends().items()
    if not b.missing() and "integer" in b.capabilities.kinds and not b.capabilities.only_integer
]
W5 = {
    "X": [[6, 4], [12, 1], [8, 0], [7, 1], [2, 1], [0, 3]],
    "truth": ([1, 2], 12),
    "costs": [0.2, 0.2],
    "improvable": [True, False],
}


def w5(**fields):
    return StrategicLinearClassifier(**{**W5, **fields})


@st.composite
def planes(draw, agents=5):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    return StrategicLinearClassifier(
        X=rng.integers(0, 9, (draw(st.integers(1, agents)), 2)),
        truth=(rng.integers(0, 3, 2), rng.integers(2, 13)),
        costs=rng.choice([0.25, 0.5, 1.0], 2),
        improvable=draw(st.sampled_from([(True, False), (False, True), (True, True), (False, False)])),
    )


# -- an exact reference for two features ---------------------------------------------------------------------


def crossings(lines, low, high):
    """Where lines ``v = p + q * w`` cross for w in [low, high], with both ends: the order changes only
    there."""
    found = {low, high}
    for (p, q), (r, s) in combinations(lines, 2):
        if q != s and low <= (w := (r - p) / (q - s)) <= high:
            found.add(w)
    return sorted(found)


class Along:
    """Exact outcomes of classifiers ``x[j] + w x[k] >= b`` along which agents move in feature j."""

    def __init__(self, p, j):
        exact = lambda values: [Fraction(v) for v in np.asarray(values, dtype=float).tolist()]  # noqa: E731
        self.X, self.j, self.k = [exact(x) for x in p.X], j, 1 - j
        self.t, self.s, c = exact(p.truth[0]), Fraction(p.truth[1]), exact(p.costs)
        self.reach, self.top = 1 / c[j], c[self.k] / c[j]
        k_wins_ties = (p.improvable[self.k], -self.k) > (p.improvable[j], -j)
        self.top_is_open, self.improves = k_wins_ties, bool(p.improvable[j])
        self.qualified = [self.t[0] * x[0] + self.t[1] * x[1] >= self.s for x in self.X]
        # the furthest that an agent can meet the classifier, and where it becomes qualified, as lines in w
        self.furthest = [(x[j] + self.reach, x[self.k]) for x in self.X]
        self.qualifies = [
            ((self.s - self.t[self.k] * x[self.k]) / self.t[j], x[self.k]) if self.t[j] else None
            for x in self.X
        ]
        self.lines = self.furthest + [q for q in self.qualifies if q]

    def outcome(self, i, w, b):
        """1 for a true positive, -1 for a false positive, 0 for rejected."""
        x = self.X[i]
        if x[self.j] + w * x[self.k] + self.reach < b:
            return 0
        if self.qualified[i]:
            return 1
        moved = max(b - x[self.j] - w * x[self.k], 0) if self.improves else 0
        true = self.t[self.j] * (x[self.j] + moved) + self.t[self.k] * x[self.k]
        return 1 if true >= self.s else -1

    def classifiers(self):
        """One in every cell, and on every border, of the arrangement of lines."""
        at = crossings(self.lines, Fraction(0), self.top)
        for w in sorted({*at, *((u + v) / 2 for u, v in pairwise(at))}):
            if w == self.top and self.top_is_open:
                continue
            values = sorted({p + q * w for p, q in self.lines})
            between = [(u + v) / 2 for u, v in pairwise(values)]
            yield from ((w, b) for b in [values[0] - 1, *values, *between, values[-1] + 1])


def best_by_arrangement(p, limit):
    best = 0
    for j in (0, 1):
        agents = Along(p, j)
        for w, b in agents.classifiers():
            outcomes = [agents.outcome(i, w, b) for i in range(len(agents.X))]
            if outcomes.count(-1) <= limit:
                best = max(best, outcomes.count(1))
    return best


@given(planes(agents=4), st.sampled_from([0, 1, 2]))
@settings(max_examples=20, deadline=None)
def test_the_milp_finds_the_best_cell_of_the_arrangement(p, limit):
    p = StrategicLinearClassifier(p.X, p.truth, p.costs, p.improvable, max_false_positives=limit)
    s = p.solve()
    assert s.status == fo.Status.OPTIMAL and s.evaluation.feasible
    assert s.objective == pytest.approx(best_by_arrangement(p, limit))


@given(planes(), st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_the_judge_agrees_with_exact_arithmetic(p, seed):
    rng = np.random.default_rng(seed)
    for j in (0, 1):
        agents = Along(p, j)
        all_of_them = list(agents.classifiers())
        for at in rng.choice(len(all_of_them), 10):
            w, b = all_of_them[at]
            a = np.zeros(2)
            a[j], a[1 - j] = 1, float(w)
            r = p.simulate(LinearClassifier(a, float(b)))
            outcomes = np.array([agents.outcome(i, w, b) for i in range(len(agents.X))])
            assert (r.true_positive == (outcomes == 1)).all() and (r.false_positive == (outcomes == -1)).all()


@given(planes(), st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_the_separator_lp_finds_the_margin_that_orderings_give(p, seed):
    """The best margin lies where two agents change their order; all such weights are tried, exactly."""
    kind = np.random.default_rng(seed).integers(0, 4, len(p.X))
    kind = np.where((kind == 2) & p.qualified, 0, kind)
    yes, no, improve = (np.flatnonzero(kind == k).tolist() for k in range(3))
    best = Fraction(-1)
    for j in (0, 1):
        agents = Along(p, j)
        if improve and not (agents.improves and agents.t[j]):
            continue
        for w in crossings(
            [*agents.lines, *((u - 1, v) for u, v in agents.furthest)], Fraction(0), agents.top
        ):
            if w == agents.top and agents.top_is_open:
                w *= Fraction(9999, 10000)
            above = [agents.furthest[i] for i in yes] + [agents.furthest[i] for i in improve]
            high = min((u + v * w for u, v in above), default=Fraction(10**6))
            low = [agents.qualifies[i][0] + agents.qualifies[i][1] * w for i in improve]
            refused = max((agents.furthest[i][0] + agents.furthest[i][1] * w for i in no), default=None)
            if high >= max(low, default=high):
                best = max(best, min(Fraction(1), high - refused) if no else Fraction(1))
    found = find_separator(p, yes, no, improve)
    if best <= Fraction(1, 1000):
        assert found is None or found.margin < 0.01
    else:
        assert found is not None and found.margin == pytest.approx(float(best), abs=2e-3)
        r = p.simulate(found.classifier)
        assert (r.choice[yes] == 0).all() and (r.choice[no] == -1).all() and r.true_positive[improve].all()


# -- what the paper says of linear classifiers ---------------------------------------------------------------


def test_agents_move_as_a_linear_program_says():
    """Observation 11: the cheapest way into the half-space is along the feature with the best a / c."""
    rng = np.random.default_rng(7)
    for _ in range(20):
        d = int(rng.integers(1, 5))
        a, c, x = rng.random(d), rng.random(d) + 0.1, rng.normal(size=d)
        b = float(a @ x + rng.random() * (a / c).max())
        p = StrategicLinearClassifier(X=[x], truth=(np.ones(d), 0), costs=c, improvable=np.ones(d))
        m = fo.Model()
        u = m.variable("u", d, lower=0)
        m.subject_to(a @ u >= b - a @ x)
        m.minimize(c @ u)
        r = p.simulate(LinearClassifier(a, b))
        assert r.cost[0] == pytest.approx(m.solve().objective) and r.choice[0] == 0
        assert a @ r.position[0] == pytest.approx(b)


def test_ties_go_to_improvable_features_then_to_the_first():
    fields = {"X": [[0, 0, 0]], "truth": ([1, 1, 1], 1), "costs": [1, 1, 1]}
    p = StrategicLinearClassifier(**fields, improvable=[False, True, True])
    assert p.movement_feature(LinearClassifier([1, 1, 1], 1)) == 1
    assert p.movement_feature(LinearClassifier([1, 0, 0], 1)) == 0
    assert p.movement_feature(LinearClassifier([0, 0, 0], 1)) is None


def random_linear(rng, d=3, n=12):
    a, c = rng.integers(1, 5, d), rng.choice([0.2, 0.5, 1.0], d)
    X = rng.integers(0, 7, (n, d))
    return {"X": X, "truth": (a, float(np.quantile(X @ a, 0.6))), "costs": c}


def test_the_truth_is_best_where_it_encourages_improvement():
    """Lemma 16."""
    rng = np.random.default_rng(3)
    tried = 0
    for _ in range(60):
        agents = random_linear(rng)
        p = StrategicLinearClassifier(**agents, improvable=rng.random(3) < 0.5)
        if not p.improvable[p.movement_feature(LinearClassifier(*p.truth))]:
            continue
        tried += 1
        s = p.solve("truth")
        assert s.status == fo.Status.OPTIMAL and s.evaluation.feasible and s.objective == p.upper_bound()
    assert tried > 10


def test_the_shifted_truth_accepts_the_qualified_only():
    """Lemma 17, and Corollary 18: optimal where nothing is improvable."""
    rng = np.random.default_rng(4)
    for _ in range(30):
        agents = random_linear(rng)
        p = StrategicLinearClassifier(**agents, improvable=rng.random(3) < 0.5)
        r = p.simulate(p.solve("shifted-truth").decision)
        assert ((r.choice == 0) == p.qualified).all() and not r.false_positive.any()
        q = StrategicLinearClassifier(**agents, improvable=[False] * 3)
        assert q.solve("shifted-truth").status == fo.Status.OPTIMAL
        assert q.solve("shifted-truth").objective == q.solve("milp").objective


@pytest.mark.parametrize("seed", range(6))
def test_the_separator_exists_where_the_milp_serves_everyone(seed):
    """Corollary 24, in three dimensions."""
    rng = np.random.default_rng(seed)
    p = StrategicLinearClassifier(**random_linear(rng, n=5), improvable=[True, False, False])
    lp, milp = p.solve("separator-lp"), p.solve("milp")
    assert (lp.decision is not None) == (milp.objective == p.upper_bound())
    if lp.decision is None:
        assert lp.status == fo.Status.FAILED and "no linear classifier" in lp.reason
    else:
        assert lp.status == fo.Status.OPTIMAL and lp.objective == milp.objective


@pytest.mark.parametrize("backend", MIXED_BACKENDS)
def test_every_milp_backend_agrees(backend):
    assert w5().solve("milp", backend=backend).objective == pytest.approx(4)
    p = w5(improvable=[False, False], max_false_positives=1)
    assert p.solve("milp", backend=backend).objective == pytest.approx(p.solve("milp").objective)


def test_a_pure_integer_backend_is_refused():
    if "cp-sat" not in backends() or backends()["cp-sat"].missing():
        pytest.skip("cp-sat is not here")
    with pytest.raises(fo.UnsupportedError):
        w5().solve("milp", backend="cp-sat")


def test_penalty_and_weights():
    p = w5(max_false_positives=None, penalty=0.25, weights=[1, 1, 3, 1, 0, 0])
    s = p.solve()
    assert s.objective == pytest.approx(6) and s.status == fo.Status.OPTIMAL
    free = w5(improvable=[False, False], max_false_positives=None, penalty=0)
    assert free.solve().objective == 2  # no improvement: only the qualified count, whoever else is accepted


def test_degenerate_worlds():
    nobody = StrategicLinearClassifier(
        X=np.zeros((0, 2)), truth=([1, 2], 12), costs=[1, 1], improvable=[1, 0]
    )
    for method in ("milp", "truth", "shifted-truth", "separator-lp"):
        assert nobody.solve(method).objective == 0
    blind = StrategicLinearClassifier(X=[[1, 2]], truth=([0, 0], 1), costs=[1, 1], improvable=[1, 0])
    assert not blind.improvable_along().any() and blind.solve().objective == 0
    ignored = StrategicLinearClassifier(X=[[1, 2]], truth=([0, 1], 3), costs=[1, 1], improvable=[1, 0])
    assert not ignored.improvable_along().any()  # the truth ignores the improvable feature
    assert find_separator(ignored, [], [], [0]) is None
    assert ignored.solve().objective == 0 and ignored.solve("shifted-truth").objective == 0


# -- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"costs": [0.2, -1]}, r"costs: the array\[1\] is -1; it must be positive"),
        ({"truth": ([1, -2], 12)}, r"truth\[0\]: the array\[1\] is -2"),
        ({"truth": ([1, 2, 3], 12)}, r"truth\[0\]: the shape is \(3,\)"),
        ({"truth": ([1, 2], np.nan)}, "truth.1"),
        ({"improvable": [1]}, r"improvable: the shape is \(1,\)"),
        ({"improvable": [1, 3]}, r"improvable: the array\[1\] is 3"),
        ({"X": [[np.nan, 1]]}, r"X: the array\[0, 0\] is nan"),
        ({"weights": [1]}, r"weights: the shape is \(1,\)"),
        ({"max_false_positives": -1}, "max_false_positives is -1"),
    ],
)
def test_bad_declarations_are_refused(fields, words):
    with pytest.raises(fo.DeclarationError, match=words):
        w5(**fields)


def test_bad_requirements_are_refused():
    with pytest.raises(fo.DeclarationError, match="no: agent 1 is in yes too"):
        find_separator(w5(), [0, 1], [1], [])
    with pytest.raises(fo.DeclarationError, match="improve: there is no agent 6"):
        find_separator(w5(), [], [], [6])
    with pytest.warns(UserWarning, match="agent 0 is qualified already"):
        find_separator(w5(), [], [], [0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        find_separator(w5(), [0], [4], [2])


def test_no_margin_is_no_separator():
    p = w5(X=[[6, 4], [6, 4], [2, 1]])
    assert find_separator(p, yes=[0], no=[1], improve=[]) is None
    close = w5(X=[[6, 4], [6 - 1e-7, 4], [2, 1]])
    assert find_separator(close, yes=[0], no=[1], improve=[]) is None
    assert find_separator(p, yes=[0], no=[2], improve=[]) is not None
    assert find_separator(p, yes=[0], no=[], improve=[]).margin == 1


def test_bad_decisions_and_options_are_refused():
    with pytest.raises(fo.DeclarationError, match=r"a: the array\[0\] is -1"):
        LinearClassifier([-1, 1], 0)
    with pytest.raises(fo.DeclarationError, match=r"shape \(3,\)"):
        w5().evaluate(LinearClassifier([1, 1, 1], 0))
    with pytest.raises(fo.DeclarationError, match="must be a LinearClassifier"):
        w5().evaluate([1, 2])
    with pytest.raises(fo.DeclarationError, match="margin is 0"):
        w5().solve("milp", margin=0)


def test_a_classifier_prints_and_its_responses_plot(tmp_path):
    assert repr(LinearClassifier([1, 0, 0.5], 2)) == "1 x0 + 0.5 x2 >= 2"
    w5().simulate(LinearClassifier([1, 1], 12)).plot(tmp_path / "moves.png")
    assert (tmp_path / "moves.png").stat().st_size > 1000
    assert StrategicLinearClassifier.from_dict(w5().to_dict()) == w5()


@pytest.mark.parametrize("unit", [2.0**-20, 2.0**17, 2.0**30])
def test_a_separator_is_found_in_any_unit_of_the_features(unit):
    X = np.array([[6.0, 4], [12, 1], [8, 0], [7, 1], [2, 1], [0, 3]])
    p = StrategicLinearClassifier(
        X=X * unit, truth=([1, 2], 12 * unit), costs=np.array([0.2, 0.2]) / unit, improvable=[True, False]
    )
    found = find_separator(p, yes=[0, 1], no=[4, 5], improve=[2, 3])
    assert found.feature == 0 and 0 < found.margin <= max(1.0, 0.05 * unit) * (1 + 1e-9)
    s = p.solve("separator-lp")
    assert s.status is fo.Status.OPTIMAL and s.objective == 4.0
