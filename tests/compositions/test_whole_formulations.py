"""Linear programs that are whole only by themselves, in models with further rows and another objective."""

import itertools

import numpy as np
import pytest

import forcopt as fo
from forcopt.data import Hierarchy
from forcopt.models import ConsistentRelease, QuerySchedule, RobustBayes, StrategicClassification
from forcopt.models.adaptive_queries import DecayingCorrelation
from forcopt.models.census_release import Invariant
from forcopt.problem import problem_classes

ALONE = [
    (name, method)
    for name, cls in problem_classes().items()
    for method in cls.methods
    if cls.methods[method].whole
]


def subsets(n):
    return np.array(list(itertools.product((0, 1), repeat=n)))


def robust_bayes(rng):
    """The loss of each set of lost pairs that covers the conflicts."""
    n, radius = 6, 0.6
    points, labels = rng.uniform(0, 4, (n, 2)), rng.integers(0, 2, n)
    masses = np.zeros((n, 2))
    masses[np.arange(n), labels] = 1 / n
    far = np.linalg.norm(points[:, None] - points[None], axis=2) >= 2 * radius
    apart = far | (labels[:, None] == labels)
    sets = subsets(n)
    covered = [all(apart[i, j] for i, j in itertools.combinations(np.flatnonzero(~s), 2)) for s in sets == 1]
    lost = sets[covered]
    return RobustBayes(points, masses, radius), lambda h: h.lost, lost, lost.mean(axis=1)


def query_schedule(rng):
    """The weight of each set of queries that the windows allow."""
    first = rng.integers(1, 8, 7)
    queries = np.column_stack([first, first + rng.integers(0, 2, 7)])
    p = QuerySchedule(
        DecayingCorrelation(10, 0.5, 1, "sliding"), queries.tolist(), rng.integers(1, 4, 7).tolist()
    )
    sets = subsets(7)
    found = [p.evaluate(p.schedule(np.flatnonzero(s))) for s in sets]  # in the order in which they arrive
    keep = [e.feasible for e in found]
    return p, lambda h: h.answered, sets[keep], np.array([e.objective for e in found])[keep]


def strategic(rng):
    """The value of each set of open criteria."""
    edges = [
        (agent, criterion, int(rng.integers(1, 4)), bool(rng.random() < 0.6))
        for agent in range(4)
        for criterion in rng.choice(5, 3, replace=False).tolist()
    ]
    limit = None if rng.random() < 0.5 else int(rng.integers(0, 2))
    p = StrategicClassification(agents=4, criteria=5, edges=edges, value=3, max_false_positives=limit)
    sets = subsets(5)
    found = [p.evaluate(np.flatnonzero(s).tolist()) for s in sets]
    keep = [e.feasible for e in found]
    return p, lambda h: h.is_open, sets[keep], np.array([e.objective for e in found])[keep]


def release(rng):
    """The squares of all ways in which three people live in five units of two regions."""
    tree = Hierarchy(parents=([0, 0], [0, 0, 1, 1, 1]))
    noisy = tuple(rng.normal(1, 2, (size, 1)).round(2) for size in (1, 2, 5))
    p = ConsistentRelease(tree, noisy, rng.integers(1, 4, 3), integer=True, invariants=[Invariant(0, 0, 3)])
    points = np.array([x for x in itertools.product(range(4), repeat=5) if sum(x) == 3])
    return p, lambda h: h.counts[-1][:, 0], points, np.array([p.evaluate(x).objective for x in points])


CASES = {
    "RobustBayes": robust_bayes,
    "QuerySchedule": query_schedule,
    "StrategicClassification": strategic,
    "ConsistentRelease": release,
}


def test_every_such_formulation_is_tested_here():
    assert {name for name, _ in ALONE} == set(CASES)
    for name, method in ALONE:
        methods = problem_classes()[name].methods
        whole = methods[methods[method].whole]
        assert whole.kind == "formulation" and whole.exact and not whole.whole
        assert methods[method].options.keys() <= whole.options.keys()


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize(("name", "method"), ALONE)
def test_further_rows_give_what_enumeration_gives(name, method, seed):
    rng = np.random.default_rng(seed)
    p, chosen, sets, values = CASES[name](rng)
    weights = rng.integers(1, 8, sets.shape[1])
    goal = values if p.sense == "max" else -values
    held = np.flatnonzero(goal >= np.quantile(goal, 0.5))
    limit = int(weights @ sets[rng.choice(held)])
    m = fo.Model()
    h = p.declare(m, method)
    m.subject_to(weights @ chosen(h) == limit)
    (m.maximize if p.sense == "max" else m.minimize)(h.objective)
    s = m.solve()
    best = goal[sets @ weights == limit].max()
    decision = h.decision(s)
    assert s.status == "optimal"
    evaluation = p.evaluate(decision)
    assert evaluation.feasible
    assert evaluation.objective == pytest.approx(abs(best), abs=1e-9)
    assert s.objective * h.unit == pytest.approx(abs(best), abs=1e-6)
    assert weights @ np.round(s[chosen(h)]) == limit
    assert s.certify().optimal


@pytest.mark.parametrize(("name", "method"), ALONE)
def test_a_changed_linear_program_gives_no_decision(name, method):
    p, chosen, _, _ = CASES[name](np.random.default_rng(0))
    m, h = p.formulate(method)
    whole = problem_classes()[name].methods[method].whole
    s = m.solve()
    fo.abs(chosen(h)).sum()  # an atom that nothing uses changes nothing
    assert p.evaluate(h.decision(s)).feasible
    m.subject_to(chosen(h).sum() >= 0.5)
    with pytest.raises(fo.DeclarationError, match=rf"declare\(model, '{whole}'\)"):
        h.decision(m.solve())
    m, h = p.formulate(method)
    m.minimize(chosen(h)[0])
    with pytest.raises(fo.DeclarationError, match="another objective"):
        h.decision(m.solve())
