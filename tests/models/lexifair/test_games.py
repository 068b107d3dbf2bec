"""Learning against the auditor: what it proves of itself, the repair, and the printed parameters."""

import numpy as np
import pytest
from diana_2021_printed import theorem_parameters
from hypothesis import given, settings
from hypothesis import strategies as st
from lexifair_oracle import mixtures, subsets, sums_of_mixtures
from test_exact_methods import classification, regression, totals

import forcopt as fo
from forcopt.games import GradientDescent
from forcopt.models.lexifair.game import LevelGame, between
from forcopt.models.lexifair.no_regret import Descent
from forcopt.models.lexifair.problem import most_violated, sums_of_largest

THREE = [(0.4, 0.4, 0.3), (0.4, 0.2, 0.4), (0.6, 0, 0)]


@settings(max_examples=25)
@given(st.integers(1, 6), st.integers(0, 10**6))
def test_sorting_finds_the_most_violated_of_all_sets(count, seed):
    rng = np.random.default_rng(seed)
    losses = rng.integers(0, 6, count) / 4
    limits = np.sort(rng.integers(0, 12, rng.integers(1, count + 1)) / 4)
    excess = {c: losses[list(c)].sum() - limits[len(c) - 1] for c in subsets(count, len(limits))}
    chosen = most_violated(losses, limits)
    if max(excess.values()) <= 0:
        assert chosen.size == 0
    else:
        assert excess[tuple(sorted(chosen.tolist()))] == pytest.approx(max(excess.values()))


def proved_by_audit(problem, s):
    """The levels that the game proved are none too good: an audit by linear programs finds no more slack."""
    for own, audited in zip(s.decision.levels, problem.audit(s.decision), strict=True):
        assert own.total == pytest.approx(audited.total)
        assert own.bound <= audited.bound + 1e-6
        assert own.alpha >= audited.alpha - 1e-6


@settings(max_examples=8, deadline=None)
@given(st.integers(2, 5), st.integers(2, 4), st.integers(0, 10**6))
def test_no_regret_on_mixtures_stops_where_it_proves_its_slack(models, count, seed):
    table = np.random.default_rng(seed).integers(0, 11, (models, count)) / 10
    problem = mixtures(table)
    s = problem.solve("no-regret", alpha=0.1, rounds=4000)
    expected, _ = sums_of_mixtures(table)
    proved_by_audit(problem, s)
    assert s.decision.losses.max() <= expected[0] + s.decision.levels[0].alpha + 1e-9
    assert s.bound <= expected[0] + 1e-9
    assert s.evaluation.feasible
    if not s.message:
        assert max(s.decision.alphas) <= 0.1 + 1e-9


def test_no_regret_on_least_squares():
    problem = regression(radius=3.0, levels=2)
    s = problem.solve("no-regret", alpha=0.4, rounds=8000)
    exact = problem.solve()
    proved_by_audit(problem, s)
    assert s.status == "approximate" and not s.message
    assert len(s.decision.levels) == 2 and min(level.rounds for level in s.decision.levels) >= 500
    assert max(s.decision.alphas) <= 0.4
    assert totals(s)[0] <= totals(exact)[0] + 0.4


def test_where_the_rounds_end_it_says_what_is_left():
    s = mixtures(THREE).solve("no-regret", alpha=1e-6, rounds=600)
    assert "was left after 600 rounds at slack" in s.message
    assert max(s.decision.alphas) > 1e-6
    assert s.status == "approximate"


def test_a_time_limit_and_a_user_end_the_game():
    early = mixtures(THREE).solve("no-regret", alpha=1e-6, time_limit=0.0)
    assert "was left after 1 rounds" in early.message and "the time limit of" in early.message
    assert early.bound <= 0.4 + 1e-9 <= early.objective + 1e-9
    seen = []
    s = mixtures(THREE).solve(
        "no-regret", alpha=1e-9, on_improvement=lambda i: seen.append(i) or len(seen) == 2
    )
    assert len(seen) == 2 and s.iterations == 1000
    assert seen[-1].bound <= s.objective + 1e-9


def test_perturbed_leaders():
    problem = classification(n=20, groups=3)
    s = problem.solve("ftpl", alpha=0.1, rounds=2000, seed=2)
    proved_by_audit(problem, s)
    exact = problem.solve()
    assert s.objective <= exact.objective + s.decision.levels[0].alpha + 1e-9
    assert s.evaluation.feasible
    again = problem.solve("ftpl", alpha=0.1, rounds=2000, seed=2)
    np.testing.assert_array_equal(again.decision.probabilities, s.decision.probabilities)


# -- as printed --------------------------------------------------------------------------------------------


def game(problem, limits, penalty, start, most, rates):
    learner = Descent(problem)
    learner._player = GradientDescent(learner.space.start, learner.space.project, rate=rates[0])
    learner.begin(penalty)
    eta = GradientDescent(np.array([start]), between(most), rate=rates[1])
    return LevelGame(learner, len(problem.groups), np.array(limits), penalty, eta, None)


def test_printed_constants_may_fall_below_the_optimum():
    """The paper's example from (.5, .5, 0) and eta = 0: the average is .49799 although the optimum is .5.

    The numbers are of a run on the weight of the second model alone (D = 1, G = 1/2); on the simplex, twice
    the step is the same play.
    """
    problem = mixtures([(0.5, 0.5, 0.0), (0.7, 0.0, 0.5)])
    alpha, largest, slope, diameter = 0.2, 0.7, 0.5, 1.0
    rounds, penalty = theorem_parameters(1, alpha, diameter, slope, largest)
    assert (rounds, penalty) == (4356, pytest.approx(4.5))
    rates = (2 * diameter / (penalty * slope * np.sqrt(rounds)), largest / ((1 + penalty) * np.sqrt(rounds)))
    first = game(problem, [], penalty, 0.0, largest, rates)
    first.learner._player = GradientDescent(np.array([1.0, 0.0]), first.learner.space.project, rate=rates[0])
    for _ in range(rounds):
        first.step()
    model, eta, *_ = first.average()
    assert eta == pytest.approx(0.49799, abs=1e-4) and eta < 0.5
    assert sums_of_largest(model.losses)[0] == pytest.approx(0.50029, abs=1e-3)


def test_the_theorem_asks_for_too_much():
    """Theorem 13 on the four points of the guide: the steepest and the largest loss in a ball of radius 4."""
    X, y = np.array([[1, 0], [1, 0], [0, 1], [1, 1]]), np.array([0, 2, 3, 3.5])
    lengths = np.linalg.norm(X, axis=1)
    ends = [abs(sign * 4 * lengths - y) for sign in (-1, 1)]
    slope, largest = max((2 * end * lengths).max() for end in ends), max((end**2).max() for end in ends)
    assert (slope, largest) == pytest.approx((25.899, 83.848), rel=1e-4)
    assert theorem_parameters(1, 1.0, 8, slope, largest)[0] == pytest.approx(2.497e9, rel=1e-3)


# -- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, -1.0, np.nan, np.inf])
def test_alpha_is_positive(alpha):
    for method in ("no-regret", "ftpl"):
        with pytest.raises(
            fo.DeclarationError, match=r"alpha is .*; it must be (positive and finite|a number)"
        ):
            mixtures(THREE).solve(method, alpha=alpha)


def test_what_games_refuse():
    with pytest.raises(fo.DeclarationError, match="radius is None; 'no-regret' needs a bounded set"):
        regression().solve("no-regret")
    with pytest.raises(fo.DeclarationError, match="rounds is 0; it must be a whole number of at least 1"):
        mixtures(THREE).solve("no-regret", rounds=0)
    with pytest.raises(fo.DeclarationError, match="draws is 0; it must be at least 1"):
        mixtures(THREE).solve("ftpl", draws=0)
    with pytest.raises(fo.DeclarationError, match="noise is 0; it must be positive"):
        mixtures(THREE).solve("ftpl", noise=0)
    for method in ("no-regret", "ftpl", "column-generation"):
        with pytest.raises(fo.DeclarationError, match="mixes classifiers, but randomized is False"):
            mixtures(THREE, randomized=False).solve(method)
