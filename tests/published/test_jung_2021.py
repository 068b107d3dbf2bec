"""Jung, Kearns, Neel, Roth, Stapleton, Wu: An algorithmic framework for fairness elicitation, FORC 2021.

The paper prints no instances; these were worked out by hand or with an independent solver.
"""

from itertools import pairwise

import numpy as np
import pytest
from fair_learning_instances import free, line, twenty, xor

import forcopt as fo
from forcopt.fairness import FalsePositiveParity, GroupRates, PairwiseFairness
from forcopt.games import ExponentiatedGradient, GradientDescent
from forcopt.models.fair_classification import (
    AllFunctions,
    FairClassification,
    Finite,
    Halfspaces,
    elicitation_failure,
    elicitation_sample,
)
from forcopt.models.fair_classification.games import elicitation_game, rounds_of_theorem_1
from forcopt.models.fair_classification.lagrangian import Lagrangian


def exact(problem):
    found = [problem.solve(m) for m in ("lp", "column-generation")]
    assert all(s.status is fo.Status.OPTIMAL and s.evaluation.feasible for s in found)
    assert np.ptp([s.objective for s in found]) <= 1e-8
    return found[0].objective


@pytest.mark.parametrize(
    ("gamma", "budget", "error"),
    [(0, 0, 0.5), (0.1, 0.2, 0.35), (0.3, 0, 0.35), (0.5, 0.5, 0), (1, 0, 0), (0, 1, 0)],
)
def test_two_opposite_records(gamma, budget, error):
    assert exact(free((1, 0), [(0, 1)], gamma, budget)) == pytest.approx(error, abs=1e-9)


FOUR = [(0, 0, 0.5), (0.1, 0, 0.45), (0.25, 0, 0.375), (0.5, 0, 0.25), (1, 0, 0.25)]
FOUR += [(0, 0.1, 0.4), (0, 0.25, 0.25), (0.2, 0.1, 0.3)]


@pytest.mark.parametrize(("gamma", "budget", "error"), FOUR)
def test_thresholds_on_four_points(gamma, budget, error):
    assert exact(line(gamma, budget)) == pytest.approx(error, abs=1e-9)


def test_exclusive_or():
    for gamma, error in ((0, 0.5), (0.1, 0.45), (0.25, 0.375), (0.5, 0.25), (1, 0.25)):
        assert exact(xor(gamma)) == pytest.approx(error, abs=1e-9)
        assert exact(xor(gamma, ((0, 1), (1, 0)))) == pytest.approx(0.25, abs=1e-9)


THREE = {
    0: (0.5, 0.4, 0.25),
    0.05: (0.44375, 0.34375, 0.19375),
    0.1: (0.3875, 0.2875, 0.1375),
    0.2: (0.275, 0.1875, 0.075),
    1 / 3: (0.1875, 0.1125, 0),
    0.5: (0.09375, 0.01875, 0),
    2 / 3: (0, 0, 0),
}


@pytest.mark.parametrize("budget", THREE)
def test_three_stakeholders(budget):
    for gamma, error in zip((0, 0.2, 0.5), THREE[budget], strict=True):
        problem = free((1, 1, 0, 0), [(0, 2), (1, 3), (0, 3)], gamma, budget, weights=[1, 2 / 3, 1 / 3])
        assert exact(problem) == pytest.approx(error, abs=1e-9)


def test_a_cycle_makes_all_equal():
    cycle = [(0, 1), (1, 2), (2, 0)]
    assert exact(free((1, 1, 0), cycle)) == pytest.approx(1 / 3)
    assert exact(free((1, 1, 0), cycle, gamma=0.25)) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("labels", "pairs", "error"),
    [
        ((1, 0, 1, 0), [(0, 1), (2, 1)], 0.25),
        ((1, 0, 1, 0), [(0, 1), (2, 3)], 0.5),
        ((1, 1, 0, 0, 0), [(0, 2), (1, 2), (1, 3)], 0.4),
    ],
)
def test_closures(labels, pairs, error):
    assert exact(free(labels, pairs)) == pytest.approx(error, abs=1e-9)


def test_twenty_points():
    for k in range(0, 11, 2):
        assert exact(twenty(k / 10, 0)) == pytest.approx(0.425 - 0.0225 * k, abs=1e-8)
        assert exact(twenty(k / 10, 0, AllFunctions())) == pytest.approx(0.25 * (1 - k / 10), abs=1e-8)
    for budget, error in ((0, 0.425), (0.05, 0.35), (0.1, 0.3), (0.15, 0.25), (0.2, 0.2), (0.5, 0.2)):
        assert exact(twenty(0, budget)) == pytest.approx(error, abs=1e-8)
    assert exact(twenty(0.3, 0.05)) == pytest.approx(0.29, abs=1e-8)


def test_with_a_rate_of_groups():
    for gamma, tolerance, error in ((0, 1, 0.25), (0, 0, 0.5), (0, 0.4, 0.4), (0.2, 0.4, 0.3), (0.2, 0, 0.4)):
        notion = PairwiseFairness([(1, 2), (3, 2)], gamma=gamma) & FalsePositiveParity(tolerance)
        problem = FairClassification(
            np.arange(4)[:, None], [0, 1, 0, 1], [0, 0, 1, 1], notion, None, AllFunctions()
        )
        assert exact(problem) == pytest.approx(error, abs=1e-9)


def test_the_fairness_loss():
    def loss(p, pairs, **fields):
        rates = GroupRates.from_records(p, [0, 0], [0, 1])
        return PairwiseFairness(pairs, gamma=0.1, **fields).disparity(rates)["pairwise unfairness"]

    assert loss([0.8, 0.5], [(0, 1)]) == pytest.approx(0.2)
    assert loss([0.8, 0.5], [(0, 1)], weights=[0.5]) == pytest.approx(0.1)
    assert loss([0.8, 0.5], [(1, 0)]) == 0


def test_answers_become_pairs():
    shown = {"second_at_least": [[0, 1]], "first_at_least": [[1, 0]], "same": [[0, 1], [1, 0]]}
    for answer, pairs in shown.items():
        assert PairwiseFairness.from_answers([("u", 0, 1, answer)]).pairs.tolist() == pairs
    asked = [("u", 0, 1, "same"), ("v", 0, 1, "second_at_least"), ("w", 0, 1, "none")]
    three = PairwiseFairness.from_answers(asked)
    assert three.weights == pytest.approx([2 / 3, 1 / 3]) and three.presented == 2


def test_duals_are_within_slaters_bound():
    """gamma |lambda| + eta tau <= error of the best constant - optimum, here with equality."""
    s = free((1, 0), [(0, 1)], gamma=0.1, budget=0.2).solve()
    pair, budget = s.decision.multipliers
    assert (pair, budget) == pytest.approx((0.5, 0.5))
    assert 0.1 * pair + 0.2 * budget == pytest.approx(0.5 - s.objective)
    for gamma, total in ((0.5, 0.225), (0.3, 0.225)):
        s = twenty(gamma, 0).solve()
        assert s.decision.multipliers.sum() <= (0.5 - s.objective) / gamma + 1e-9
        assert s.decision.multipliers.sum() == pytest.approx(total, abs=1e-9)


def test_the_trace_of_algorithm_1():
    """Six rounds with all four index pairs as experts, the pair (0, 1) alone with a weight."""
    problem = FairClassification(
        [[0], [1]], [1, 0], [0, 0], PairwiseFairness([(0, 1)]), None, Finite([[0, 0], [0, 1], [1, 0], [1, 1]])
    )
    own = problem.lagrangian

    def inequalities(rates):
        p = rates.predicted
        allowed = p.model.variable("allowed", 4, lower=0, upper=1)
        i, j = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
        return [p[i] - p[j] - allowed <= 0.1, allowed @ np.array([0.0, 1, 0, 0]) <= 0.2]

    game = Lagrangian(own.costs, own.base, inequalities, problem.moments)
    pairs = ExponentiatedGradient(4, 2.0, 0.5)
    budget = GradientDescent(np.zeros(1), lambda price: np.clip(price, 0.0, 2.0), rate=0.5)
    told = []
    for _ in range(6):
        prices = np.concatenate([pairs.play(), budget.play()])
        h = problem.oracle.best(game.price(prices)).predictions
        allowed = game.best_slack(prices)
        excess = game.excess(h, allowed)
        pairs.learn(excess[:4])
        budget.learn(-excess[4:])
        told.append((prices[1], prices[4], *h, allowed[1], pairs.theta[1]))
    expected = [
        (0.4, 0, 1, 0, 1, -0.05),
        (0.550629, 0.4, 1, 0, 1, -0.10),
        (0.671983, 0.8, 0, 1, 0, -0.65),
        (0.516205, 0.7, 1, 0, 0, -0.20),
        (0.786825, 0.6, 0, 1, 1, -1.25),
        (0.394327, 1.0, 1, 0, 0, -0.80),
    ]
    assert np.array(told) == pytest.approx(np.array(expected), abs=1e-6)


def test_the_best_response_minimises_the_lagrangian():
    rng = np.random.default_rng(0)
    problem = twenty(0.3, 0.1)
    game = elicitation_game(problem)
    table = np.array([h.predictions for h in problem.oracle.all()])
    for _ in range(20):
        prices = rng.exponential(size=game.size) / game.size
        prices[-1] *= 20
        best = problem.oracle.best(game.price(prices)).predictions
        assert game.value(best, prices) <= min(game.value(h, prices) for h in table) + 1e-12
        slack = game.best_slack(prices)
        direct = game.error(best) + prices @ game.excess(best, slack)
        assert direct == pytest.approx(game.value(best, prices), abs=1e-12)


@pytest.mark.parametrize(("accuracy", "rounds", "error"), [(0.2, 711, 0.3699), (0.1, 2842, 0.36)])
def test_theorem_1_on_two_records(accuracy, rounds, error):
    problem = free((1, 0), [(0, 1)], gamma=0.1, budget=0.2)
    assert rounds_of_theorem_1(2, 2.0, accuracy) == rounds
    s = problem.solve(
        "no-regret",
        accuracy=0.0,
        bound=2.0,
        rounds=rounds,
        repair=False,
    )
    gap = problem.saddle_gaps(s.decision, s.decision.multipliers, 2.0).total
    assert s.objective == pytest.approx(error, abs=1e-3)
    assert s.objective <= 0.35 + 2 * accuracy and gap <= 2 * accuracy
    assert s.evaluation.violation <= (1 + 2 * accuracy) / 2


@pytest.mark.parametrize(
    ("n", "bound", "accuracy", "rounds"),
    [(4, 4, 0.1, 18008), (2, 2, 0.1, 2842), (100, 5, 0.1, 70012), (5829, 10, 0.05, 1898431)],
)
def test_the_rounds_of_theorem_1(n, bound, accuracy, rounds):
    assert rounds_of_theorem_1(n, bound, accuracy) == rounds


def test_error_falls_linearly_at_worst():
    """The curve in gamma is convex, below the line between its ends, and below the best constant."""
    errors = [twenty(g, 0).solve().objective for g in np.linspace(0, 1, 6)]
    assert errors[0] <= 0.5 + 1e-9
    for k, e in enumerate(errors):
        assert e <= errors[0] + (errors[-1] - errors[0]) * k / 5 + 1e-8
    assert all(a >= b - 1e-9 for a, b in pairwise(errors))


def test_theorem_2_with_numbers():
    """Both terms from their formula in logarithms; the sample is the least one at which each is delta / 2."""
    first, second = elicitation_failure(5829, 50, dimension=9, epsilon=0.1)
    assert (first, second) == (pytest.approx(16642.5, abs=0.1), pytest.approx(67764.3, abs=0.1))
    first, second = elicitation_failure(5829, 5829, dimension=1, epsilon=0.5)
    assert (first, second) == (pytest.approx(60.356, abs=1e-3), pytest.approx(-10871.288, abs=1e-3))
    for (d, epsilon), sample in {
        (1, 0.5): (16959, 301),
        (1, 0.25): (407322, 9222),
        (3, 0.25): (1329922, 31254),
        (9, 0.1): (269558649, 7002685),
    }.items():
        assert elicitation_sample(d, epsilon, 0.05) == sample
        n, m = sample
        assert elicitation_failure(n - 1, m, d, epsilon).records > np.log(0.025)
        assert elicitation_failure(n, m - 1, d, epsilon).pairs > np.log(0.025)
    with pytest.raises(fo.DeclarationError, match="dimension is 0; it must be at least 1"):
        elicitation_failure(10, 10, 0, 0.1)
    with pytest.raises(fo.DeclarationError, match="epsilon is 0; it must be positive"):
        elicitation_failure(10, 10, 1, 0)


def test_figure_2a_the_game_of_a_subject_converges():
    """Simulated defendants and stakeholders, seed 0: error falls to the optimum, violations below gamma."""
    from forcopt.models.fair_classification.instances import defendants, stakeholders

    d = defendants(1000, seed=0)
    own = list(stakeholders(d.features, d.groups, 1, 50, seed=0))
    for gamma in (0.2, 0.6):
        notion = PairwiseFairness.from_answers(own, gamma=gamma)
        p = FairClassification(d.features, d.labels, d.groups, notion, None, Halfspaces(search="regression"))
        best = p.solve(accuracy=1e-4).objective
        s = p.solve("no-regret", rounds=1000, accuracy=0.0, bound=20.0, repair=False)
        chance = p.predicted(s.decision)
        assert (chance[notion.pairs[:, 0]] - chance[notion.pairs[:, 1]]).max() <= gamma + 0.05
        assert abs(s.objective - best) <= 0.05


def test_figure_2c_more_constraints_cost_more():
    """Twelve simulated stakeholders, seed 0, gamma 0.3: the correlation is positive, as the paper's .69."""
    from forcopt.models.fair_classification.instances import defendants, stakeholders

    d = defendants(1000, seed=0)
    answers = stakeholders(d.features, d.groups, 12, 50, seed=0)
    counts, errors = [], []
    for person in range(12):
        own = [a for a in answers if a[0] == person]
        notion = PairwiseFairness.from_answers(own, gamma=0.3)
        p = FairClassification(d.features, d.labels, d.groups, notion, None, Halfspaces(search="regression"))
        counts.append(len(notion.pairs))
        errors.append(p.solve(accuracy=1e-3).objective)
    assert np.corrcoef(counts, errors)[0, 1] > 0.4
    assert max(errors) <= 0.47  # a constant errs on the base rate
