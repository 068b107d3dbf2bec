import json

import numpy as np
import pytest
from fair_learning_instances import free, line, random_problem, twelve, twenty, xor
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import forcopt as fo
from forcopt.backends.registry import backends
from forcopt.fairness import (
    BoundedGroupLoss,
    DemographicParity,
    EqualizedOdds,
    ErrorParity,
    PairwiseFairness,
)
from forcopt.models.fair_classification import (
    AllFunctions,
    FairClassification,
    Finite,
    Halfspaces,
    Learner,
    RandomizedClassifier,
    Thresholds,
)

LP_BACKENDS = [name for name, b in backends().items() if not b.missing() and not b.capabilities.only_integer]
NOTIONS = [
    EqualizedOdds(0.05),
    DemographicParity(0.1) & ErrorParity(0.2),
    BoundedGroupLoss(0.45),
    PairwiseFairness([(0, 1), (2, 3), (3, 2)], gamma=0.1, budget=0.05),
    EqualizedOdds(0.1) & PairwiseFairness([(0, 5), (4, 1)], gamma=0.2),
]


def brute_force(problem, table):
    """The least error of a mixture of the rows of a table, straight from the definition of the notions."""
    constraint = problem.constraint
    notions = getattr(constraint, "notions", (constraint,))
    y, a = problem.labels, problem.groups.codes
    matrix, right, q = [], [], sum(len(n.pairs) for n in notions if isinstance(n, PairwiseFairness))
    first = 0

    def row(of_hypotheses, of_slack, bound):
        slack = np.zeros(q)
        for k, v in of_slack.items():
            slack[k] = v
        matrix.append(np.concatenate([of_hypotheses, slack]))
        right.append(bound)

    wrong = (table != y).astype(float)
    for notion in notions:
        if isinstance(notion, PairwiseFairness):
            for k, (i, j) in enumerate(notion.pairs):
                row(table[:, i] - table[:, j], {first + k: -1.0}, notion.gamma)
            mean = {first + k: w for k, w in enumerate(notion.shares)}
            row(np.zeros(len(table)), mean, notion.budget)
            first += len(notion.pairs)
            continue
        of = {
            "EqualizedOdds": [(table, y == 0), (table, y == 1)],
            "DemographicParity": [(table, y >= 0)],
            "ErrorParity": [(wrong, y >= 0)],
            "BoundedGroupLoss": [(wrong, y >= 0)],
        }[type(notion).__name__]
        for values, where in of:
            rates = [values[:, where & (a == g)].mean(axis=1) for g in range(len(problem.groups.names))]
            if isinstance(notion, BoundedGroupLoss):
                for rate in rates:
                    row(rate, {}, notion.bound)
                continue
            for g in rates:
                for h in rates:
                    row(g - h, {}, notion.tolerance)
    ones = np.concatenate([np.ones(len(table)), np.zeros(q)])[None]
    said = linprog(
        np.concatenate([wrong.mean(axis=1), np.zeros(q)]),
        np.array(matrix),
        right,
        ones,
        [1.0],
        method="highs",
    )
    return said.fun if said.status == 0 else None


def all_thresholds(x):
    cuts = [-np.inf, *np.unique(x), np.inf]
    return np.array([(x >= c) == above for c in cuts for above in (True, False)]).astype(int)


@pytest.mark.parametrize("constraint", NOTIONS, ids=lambda n: type(n).__name__)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10**6), groups=st.integers(2, 3))
def test_exact_methods_agree_with_the_definition(constraint, seed, groups):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, groups, constraint=constraint)
    expected = brute_force(problem, all_thresholds(problem.features[:, 0]))
    for method in ("lp", "column-generation"):
        s = problem.solve(method)
        if expected is None:
            assert s.status is fo.Status.INFEASIBLE
        else:
            assert s.status is fo.Status.OPTIMAL
            assert s.objective == pytest.approx(expected, abs=1e-8)
            assert s.bound == pytest.approx(expected, abs=1e-8)
            assert s.evaluation.feasible


@pytest.mark.parametrize("backend", LP_BACKENDS)
@pytest.mark.parametrize(
    "problem", [twelve(), twenty(0.3, 0.05), twenty(0.2, 0.1, AllFunctions())], ids=["odds", "pairs", "free"]
)
def test_every_backend_for_linear_programs_agrees(problem, backend):
    s = problem.solve("lp", backend=backend)
    accuracy = max(1e-7, 10 * backends()[backend].accuracy)
    assert s.status is fo.Status.OPTIMAL
    assert s.objective == pytest.approx(problem.solve().objective, abs=accuracy)
    assert s.evaluation.violation <= accuracy


@settings(max_examples=8, deadline=None)
@example(48851)  # nearly collinear points
@given(seed=st.integers(0, 10**6))
def test_halfspaces_of_the_plane_by_pricing_and_by_listing(seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, n=14, d=2, hypotheses=Halfspaces())
    assert problem.solve().objective == pytest.approx(problem.solve("lp").objective, abs=1e-8)


def test_three_features_are_priced_by_a_mixed_integer_program():
    rng = np.random.default_rng(3)
    problem = random_problem(rng, n=12, d=3, hypotheses=Halfspaces())
    s = problem.solve()
    assert s.status is fo.Status.OPTIMAL and s.evaluation.feasible
    assert problem.saddle_gaps(s.decision, s.decision.multipliers).total <= 1e-7


def test_all_functions_are_all_labellings_of_distinct_rows():
    problem = free((1, 0, 1, 0), [(0, 1), (2, 1)], gamma=0.1, budget=0.2)
    listed = np.array([h.predictions for h in problem.oracle.all()])
    assert sorted(map(tuple, listed)) == sorted(np.ndindex(2, 2, 2, 2))
    assert problem.solve("lp").objective == pytest.approx(brute_force(problem, listed), abs=1e-9)
    twice = FairClassification(
        [[0], [0], [1]], [1, 0, 1], [0] * 3, PairwiseFairness([(0, 1)]), hypotheses=AllFunctions()
    )
    assert twice.solve().objective == pytest.approx(1 / 3)  # equal features are treated alike
    many = free(np.arange(17) % 2, [(0, 1)])
    with pytest.raises(fo.DeclarationError, match="2\\^17"):
        many.oracle.all()


def test_without_a_constant_there_may_be_no_fair_mixture():
    def problem(gamma, budget):
        return FairClassification(
            [[0], [1]],
            [1, 0],
            [0, 0],
            PairwiseFairness([(0, 1)], gamma=gamma, budget=budget),
            None,
            Finite([[1, 0]]),
        )

    assert problem(0.4, 0.6).solve().objective == 0
    for method in ("lp", "column-generation"):
        s = problem(0.4, 0.5).solve(method)
        assert s.status is fo.Status.INFEASIBLE and s.reason


def test_the_error_is_convex_in_the_tolerance_and_in_the_budget():
    errors = [[twenty(g, b).solve().objective for g in (0, 0.2, 0.4)] for b in (0, 0.1, 0.2)]
    for values in [*errors, *zip(*errors, strict=True), [errors[k][k] for k in range(3)]]:
        assert values[0] + 1e-9 >= values[1] >= values[2] - 1e-9
        assert values[1] <= (values[0] + values[2]) / 2 + 1e-9


def test_weights_are_as_good_as_copies():
    weights = np.array([1, 2, 1, 3, 1, 1, 2, 1, 1, 1, 2, 1])
    weighted = twelve(EqualizedOdds(0.05), Thresholds(), weights=weights)
    copies = FairClassification(
        np.repeat(weighted.features, weights, axis=0),
        np.repeat(weighted.labels, weights),
        np.repeat(weighted.groups.codes, weights),
        EqualizedOdds(0.05),
        hypotheses=Thresholds(),
    )
    assert weighted.solve().objective == pytest.approx(copies.solve().objective, abs=1e-9)


def test_the_saddle_point_of_column_generation_has_no_gap():
    for problem in (twelve(), line(0.2, 0.1), xor(0.25), twenty(0.3, 0.05)):
        s = problem.solve()
        assert abs(s.evaluation.metrics["learner gap"]) <= 1e-9
        assert abs(s.evaluation.metrics["auditor gap"]) <= 1e-9
        assert s.evaluation.metrics["lower bound"] == pytest.approx(s.objective, abs=1e-9)


def test_one_group_needs_no_multipliers():
    problem = FairClassification([[0], [1], [2]], [0, 1, 1], ["a"] * 3, EqualizedOdds(), None, Thresholds())
    assert problem.lagrangian.size == 0
    methods = ("lp", "column-generation", "exponentiated-gradient", "no-regret", "milp")
    for method in methods:
        assert problem.solve(method).objective == 0


def test_a_learner_gives_a_fair_mixture_without_a_proof():
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(0)
    learner = Learner(DecisionTreeClassifier(max_depth=2, random_state=0))
    problem = random_problem(rng, n=200, d=2, constraint=EqualizedOdds(0.02), hypotheses=learner)
    s = problem.solve()
    assert s.status is fo.Status.APPROXIMATE and s.bound == -np.inf
    assert s.evaluation.feasible and s.objective < problem.labels.mean()
    again = problem.solve()  # which does not start from what the first one learnt
    assert again.objective == s.objective and again.message == s.message
    plain = Learner(DecisionTreeClassifier(max_depth=2, random_state=0), cut="default")
    coarse = random_problem(np.random.default_rng(0), n=200, d=2, hypotheses=plain)
    assert coarse.solve().evaluation.feasible


def test_a_declaration_is_a_file(tmp_path):
    from sklearn.linear_model import LogisticRegression

    from forcopt.privacy import RandomizedResponse

    seen = RandomizedResponse(1.5).observe(np.repeat(["u", "v"], 6))
    for problem in (
        twelve(),
        twelve(hypotheses=Learner(LogisticRegression(C=0.5))),
        FairClassification(twelve().features, twelve().labels, seen, EqualizedOdds(0.2), None, Thresholds()),
        FairClassification(
            [[0], [1], [2]], [1, 0, 1], ["a", None, "b"], DemographicParity(), None, AllFunctions()
        ),
    ):
        data = json.loads(json.dumps(problem.to_dict()))
        assert fo.Problem.from_dict(data) == problem
        assert fo.Problem.from_dict(data).solve().objective == pytest.approx(problem.solve().objective)


def test_the_decision_draws_and_reads():
    s = twelve().solve()
    d = s.decision
    assert repr(d).startswith("0.7000  hypothesis ") and "0.3000  hypothesis 2" in repr(d)
    share = d.probability(twelve().features)
    assert np.array_equal(d.predict_proba(twelve().features), np.column_stack([1 - share, share]))
    many = np.tile(twelve().features, (2000, 1))
    drawn = d.predict(many, seed=0).reshape(2000, -1).mean(axis=0)
    assert np.abs(drawn - share).max() < 0.06  # five standard deviations
    assert np.array_equal(d.predict(twelve().features, seed=1), d.predict(twelve().features, seed=1))
    for weights in ([0.5, 0.6], [1.2, -0.2], [1.0]):
        with pytest.raises(fo.DeclarationError, match="weights"):
            RandomizedClassifier((d.classifiers[0],) * 2, weights)


def test_column_generation_stops_when_it_is_near_enough():
    problem = twenty(0.3, 0.05)
    near, best = problem.solve(accuracy=0.1), problem.solve()
    assert near.iterations < best.iterations
    assert near.evaluation.feasible and near.status is fo.Status.FEASIBLE
    assert near.bound - 1e-9 <= best.objective <= near.objective <= near.bound + 0.1
    with pytest.raises(fo.DeclarationError, match="accuracy"):
        problem.solve(accuracy=-1.0)


@pytest.mark.parametrize("d", [1, 2])
def test_halfspaces_predict_what_the_sweep_says(d):
    rng = np.random.default_rng(d)
    grid = rng.integers(0, 5, size=(12, d)) / 10  # with points on common lines, and the same point twice
    oracle = Halfspaces().oracle(grid)
    for h in oracle.all():
        assert np.array_equal(h.classifier.predict(grid), h.predictions)
    table = np.array([h.predictions for h in oracle.all()])
    for _ in range(30):
        costs = rng.normal(size=12).round(1)
        assert costs @ oracle.best(costs).predictions == pytest.approx((table @ costs).min(), abs=1e-9)
