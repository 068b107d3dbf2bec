import numpy as np
import pytest
from fair_learning_instances import X12, line, random_problem, twelve, twenty, xor

import forcopt as fo
from forcopt.backends.registry import backends
from forcopt.fairness import DemographicParity, EqualizedOdds, PairwiseFairness
from forcopt.models.fair_classification import (
    AllFunctions,
    FairClassification,
    Finite,
    Halfspaces,
    Thresholds,
)
from forcopt.models.fair_classification.instances import defendants, stakeholders

MILP_BACKENDS = [
    name
    for name, b in backends().items()
    if not b.missing() and "integer" in b.capabilities.kinds and not b.capabilities.only_integer
]


# -- milp --------------------------------------------------------------------------------------------------


def best_single(problem):
    judged = [problem.evaluate(h.predictions) for h in problem.oracle.all()]
    return min(e.objective for e in judged if e.feasible)


@pytest.mark.parametrize("backend", MILP_BACKENDS)
@pytest.mark.parametrize(
    "problem",
    [
        random_problem(
            np.random.default_rng(5), n=10, d=2, constraint=EqualizedOdds(0.3), hypotheses=Halfspaces()
        ),
        random_problem(np.random.default_rng(6), n=30, constraint=DemographicParity(0.2)),
        xor(0.5, ((1, 0),)),
        twelve(EqualizedOdds(0.4)),
        twenty(0.3, 0.1, AllFunctions()),
    ],
    ids=["plane", "thresholds", "xor", "table", "free"],
)
def test_the_best_single_classifier_on_every_backend(problem, backend):
    s = problem.solve("milp", backend=backend, time_limit=60)
    assert s.status is fo.Status.APPROXIMATE and s.evaluation.feasible and s.bound == -np.inf
    assert len(s.decision.classifiers) == 1
    if not isinstance(problem.hypotheses, AllFunctions):
        assert s.objective == pytest.approx(best_single(problem), abs=1e-8)
    assert s.objective >= problem.solve().objective - 1e-8


def test_no_single_classifier_may_be_fair():
    opposite = Finite([[1, 0], [0, 1]])
    problem = FairClassification([[0], [1]], [1, 0], [0, 1], DemographicParity(0.5), None, opposite)
    s = problem.solve("milp")
    assert s.decision is None and s.status is fo.Status.FAILED
    assert s.reason == "proved: no single classifier is fair; a mixture may be"
    assert problem.solve().objective == pytest.approx(0.25)


def test_the_oracle_by_integer_programming_is_that_by_listing():
    from forcopt.learning.halfspaces import MilpOracle

    square = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    milp, sweep = MilpOracle(square, 1e-3), Halfspaces().oracle(square)
    rng = np.random.default_rng(0)
    for _ in range(10):
        costs = rng.integers(-5, 11, 4) / 10
        least = costs @ sweep.best(costs).predictions
        found = milp.best(costs)
        assert costs @ found.predictions == pytest.approx(least, abs=1e-9)
        assert np.array_equal(found.classifier.predict(square), found.predictions)


# -- games ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["no-regret", "exponentiated-gradient"])
@pytest.mark.parametrize("problem", [twelve(), line(0.2, 0.1), line(0.25, 0), xor(0.25)])
def test_repaired_mixtures_are_fair_and_bounded(problem, method):
    s, best = problem.solve(method), problem.solve("lp").objective
    assert s.evaluation.feasible
    assert s.bound - 1e-9 <= best <= s.objective + 1e-9
    assert s.objective <= best + 0.01 + 1e-9


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"accuracy": -1.0}, "accuracy"),
        ({"accuracy": 0.0}, "bound"),
        ({"rounds": 0}, "rounds"),
        ({"bound": -1.0}, "bound"),
    ],
)
def test_bad_options_of_no_regret(options, said):
    with pytest.raises(fo.DeclarationError, match=said):
        line(0.2, 0.1).solve("no-regret", **options)


def test_regression_finds_good_halfspaces():
    rng = np.random.default_rng(1)
    fields = {"n": 150, "d": 2, "constraint": EqualizedOdds(0.05)}
    fast = random_problem(rng, hypotheses=Halfspaces(search="regression"), **fields)
    s = fast.solve()
    exact = FairClassification(fast.features, fast.labels, fast.groups, fast.constraint, None, Halfspaces())
    best = exact.solve().objective
    assert s.status is fo.Status.APPROXIMATE and s.evaluation.feasible
    assert best - 1e-9 <= s.objective <= best + 0.05


# -- generators --------------------------------------------------------------------------------------------


def test_synthetic_defendants_look_like_those_of_the_paper():
    data = defendants()
    assert len(data) == 5829 and abs(data.labels.mean() - 0.46) < 0.02
    assert abs((data.groups == "Caucasian").mean() - 2103 / 5829) < 0.02
    answers = stakeholders(data.features, data.groups)
    assert len(answers) == 43 * 50 and len({a[0] for a in answers}) == 43
    assert 0.2 < np.mean([a[3] == "same" for a in answers]) < 0.5
    notion = PairwiseFairness.from_answers([a for a in answers if a[0] == 0])
    problem = FairClassification(
        data.features, data.labels, data.groups, notion, None, Halfspaces(search="regression")
    )
    free_of_it = FairClassification(
        data.features, data.labels, data.groups, DemographicParity(1.0), None, Halfspaces(search="regression")
    )
    loose, tight = free_of_it.solve(), problem.solve(accuracy=1e-3)
    assert 0.28 < loose.objective < 0.38
    assert loose.objective - 1e-6 <= tight.objective <= 0.46 + 0.02
    with pytest.raises(fo.DeclarationError, match="n is 0"):
        defendants(0)
    with pytest.raises(fo.DeclarationError, match="features has shape"):
        stakeholders(X12, [0])
    with pytest.raises(fo.DeclarationError, match="people is 0"):
        stakeholders(X12, [0] * 12, people=0)


def test_thresholds_of_one_direction():
    both, above, below = (
        twelve(hypotheses=Thresholds(direction=d)).solve().objective for d in ("both", "above", "below")
    )
    assert both <= min(above, below) + 1e-9 and above == pytest.approx(0.45)
