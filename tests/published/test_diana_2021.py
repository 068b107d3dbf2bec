"""Diana et al. (2021), Lexicographically Fair Learning: its examples, claims and parameters.

Optimal sums of the j largest losses were computed by linear programs with a row for every set of groups; the
least-squares example by hand.
"""

import itertools
from math import log

import lexifair_enumeration  # noqa: F401  (registers the oracle)
import numpy as np
import pytest
from diana_2021_printed import theorem_parameters

import forcopt as fo
from forcopt.models import LexifairClassification, LexifairRegression
from forcopt.models.lexifair import Finite, Stumps, records_needed
from forcopt.models.lexifair.problem import most_violated, sums_of_largest

METHODS = ["compact", "row-generation", "column-generation"]


def mixtures(table, **fields):
    table = np.asarray(table, dtype=float)
    count = table.shape[1]
    groups = [[k] for k in range(count)]
    return LexifairClassification(labels=np.zeros(count), groups=groups, hypotheses=Finite(table), **fields)


def example(a):
    """Section 2.1.1."""
    return [(0.5, 0.5, 0.0), (0.5 + 2 * a, 0.0, 0.5)]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("table", "sums", "chances"),
    [
        (example(0.1), (0.5, 1, 1), (1, 0)),
        (example(0.2), (0.5, 1, 1), (1, 0)),
        ([(0.5, 0), (0, 0.5)], (0.25, 0.5), (0.5, 0.5)),
        ([(0.6, 0.1, 0.2), (0.1, 0.6, 0.2), (0.3, 0.4, 0.8)], (0.35, 0.7, 0.9), (0.5, 0.5, 0)),
        (np.eye(3), (1 / 3, 2 / 3, 1), (1 / 3, 1 / 3, 1 / 3)),
        (
            [(0.5, 0.5, 0.1, 0.4), (0.5, 0.1, 0.5, 0), (0.1, 0.5, 0.5, 0.3), (0.2, 0.2, 0.9, 0.9)],
            (11 / 30, 22 / 30, 1.1, 4 / 3),
            (1 / 3, 1 / 3, 1 / 3, 0),
        ),
        ([(0.4, 0.4, 0.3), (0.4, 0.2, 0.4), (0.6, 0, 0)], (0.4, 11 / 15, 16 / 15), (2 / 3, 1 / 3, 0)),
    ],
)
def test_mixtures(method, table, sums, chances):
    s = mixtures(table).solve(method)
    np.testing.assert_allclose(sums_of_largest(s.decision.losses), sums, atol=2e-6)
    full = np.zeros(len(table))
    full[[row.index for row in s.decision.policy.classifiers]] = s.decision.probabilities
    np.testing.assert_allclose(full, chances, atol=1e-5)


@pytest.mark.parametrize(
    ("slack", "sums"), [(0.05, (0.55, 0.925, 1.05)), (0.1, (0.6, 0.85, 1.1)), (0.2, (0.6, 0.85, 1.1))]
)
def test_slack_at_the_first_level_changes_the_others(slack, sums):
    """The relaxed levels of section 2.1.1: a little more for the worst group turns the others around."""
    m = fo.Model()
    parts = mixtures(example(0.1)).declare(m, "compact")
    m.subject_to(fo.maximum(parts.losses, axis=0) <= 0.5 + slack)
    m.lexicographic([fo.minimize(fo.sum_largest(parts.losses, 2)), fo.minimize(parts.losses.sum())])
    found = sums_of_largest(parts.decision(m.solve()).losses)
    np.testing.assert_allclose(found, sums, atol=1e-5)


def test_an_audit_tells_the_slack_of_the_relaxed_model():
    problem = mixtures(example(0.1))
    levels = problem.audit(problem.mixture([0, 1], [0.5, 0.5]))
    assert [level.alpha for level in levels] == pytest.approx([0.1, 0.0, 0.0], abs=1e-7)
    levels = problem.audit(problem.mixture([0, 1], [0.75, 0.25]))
    assert [level.alpha for level in levels] == pytest.approx([0.05, 0.0, 0.0], abs=1e-7)


def test_signed_slacks_would_let_any_minimax_model_pass():
    """(.5, .5, .5) against (.5, 0, 0): literally lexicographically fair, here half a unit off at level 2."""
    problem = mixtures([(0.5, 0.5, 0.5), (0.5, 0.0, 0.0)])
    levels = problem.audit(problem.mixture([0], [1.0]))
    assert [level.alpha for level in levels] == pytest.approx([0, 0.5, 1.0])


def test_footnote_2_a_single_model_may_beat_all_mixtures_at_the_second_level():
    single = mixtures([(0.5, 0), (0, 0.5)], randomized=False)
    for method in ("enumeration", "compact", "row-generation"):
        assert single.solve(method).decision.sorted_losses == pytest.approx([0.5, 0])


THRESHOLDS = LexifairClassification(
    labels=[0, 1, 1, 1, 0, 0],
    groups=[[0, 1, 2], [2, 3, 4], [1, 4, 5]],
    hypotheses=Stumps([[0], [1], [2], [3], [4], [5]]),
)


@pytest.mark.parametrize("method", METHODS)
def test_thresholds_on_a_line(method):
    mixture = THRESHOLDS.solve(method).decision
    assert mixture.sorted_losses == pytest.approx([2 / 9, 2 / 9, 1 / 9], abs=2e-6)
    chance = mixture.probability([[x] for x in range(6)])
    assert chance == pytest.approx([2 / 3, 1, 1, 1, 1 / 3, 1 / 3], abs=1e-5)


def test_thresholds_on_a_line_one_of_them():
    single = THRESHOLDS.replace(randomized=False)
    assert single.hypotheses.count == 12
    assert single.solve("enumeration").decision.sorted_losses == pytest.approx([1 / 3, 0, 0])
    assert single.solve("compact").decision.sorted_losses == pytest.approx([1 / 3, 0, 0])


def test_least_squares_by_hand():
    X, y = [[1, 0], [1, 0], [0, 1], [1, 1]], [0, 2, 3, 3.5]
    problem = LexifairRegression(features=X, labels=y, groups=[[0], [1], [2], [3]])
    for method in METHODS:
        backend = "highs" if method == "column-generation" else "clarabel"
        s = problem.solve(method, backend=backend)
        np.testing.assert_allclose(s.decision.coefficients, [1, 2.75], atol=1e-4)
        np.testing.assert_allclose(sums_of_largest(s.decision.losses), [1, 2, 2.0625, 2.125], atol=1e-4)
    # three copies of the first record pull the pooled fit its way: worse for the worst group
    pooled = problem.best_response(np.array([3.0, 1, 1, 1]))
    assert pooled.coefficients == pytest.approx([0.5, 3])
    assert pooled.losses == pytest.approx([0.25, 2.25, 0, 0])


def test_claim_7_sums_and_single_losses_define_the_same():
    """Zero slack, finite classes of integer losses: filtered by the j-th loss or by the sum of j."""
    rng = np.random.default_rng(7)
    for _ in range(300):
        losses = -np.sort(-rng.integers(0, 4, (rng.integers(2, 9), rng.integers(1, 5))), axis=1)
        by_loss = by_sum = np.arange(len(losses))
        for j in range(losses.shape[1]):
            by_loss = by_loss[losses[by_loss, j] == losses[by_loss, j].min()]
            sums = losses[by_sum, : j + 1].sum(axis=1)
            by_sum = by_sum[sums == sums.min()]
            assert by_loss.tolist() == by_sum.tolist()
        single = mixtures(losses / 3, randomized=False).solve("enumeration").decision
        assert single.policy.classifiers[0].index in by_loss


def test_the_auditor_by_hand():
    losses = np.array([0.2, 0.7, 0.5])
    assert most_violated(losses, np.array([0.6, 1.3])).tolist() == [1]
    assert most_violated(losses, np.array([0.8, 1.0])).tolist() == [1, 2]
    assert most_violated(losses, np.array([0.7, 1.2])).tolist() == []  # ties are no violation


def test_the_parameters_of_algorithm_2():
    """T_j makes the equilibrium alpha / 2 good: j (GD + L_M)(B + 1) / sqrt(T_j)."""
    found = [theorem_parameters(j, 0.1, 1, 1, 1) for j in (1, 2, 3)]
    assert found == [(230400, 11), (3097600, 21), (14745600, 31)]
    for j, (rounds, penalty) in enumerate(found, 1):
        assert j * 2 * (penalty + 1) / rounds**0.5 == pytest.approx(0.05)
    paper = [theorem_parameters(j, 0.2, 1, 0.5, 0.7) for j in (1, 2, 3)]
    assert [r for r, _ in paper] == [4356, 46656, 202500]
    assert [b for _, b in paper] == pytest.approx([4.5, 8, 11.5])


def test_corollary_16_for_a_finite_class():
    """2 l beta <= alpha holds for the records asked for, and for one fewer it does not."""
    models, groups, levels, alpha, delta = 12, 3, 3, 0.1, 0.05
    records = records_needed(models, groups, levels, alpha, delta)
    assert records == 13091
    for n, enough in ((records, True), (records - 1, False)):
        beta = (log(2 * models * groups / delta) / (2 * n)) ** 0.5
        assert (2 * levels * beta <= alpha) == enough
    with pytest.raises(fo.DeclarationError, match="alpha is 0; it must be positive"):
        records_needed(models, groups, levels, 0, delta)
    with pytest.raises(fo.DeclarationError, match="delta is 1; it must be strictly between 0 and 1"):
        records_needed(models, groups, levels, alpha, 1)
    with pytest.raises(fo.DeclarationError, match="groups is 0; it must be at least 1"):
        records_needed(models, 0, levels, alpha, delta)


def test_slacks_on_a_sample_hold_in_the_population():
    """Theorem 15 at the first level, where constant and signed slacks are the same: losses moved by beta."""
    rng = np.random.default_rng(15)
    for _ in range(10):
        table, beta = rng.uniform(0.1, 0.9, (5, 3)), 0.05
        moved = table + rng.uniform(-beta, beta, table.shape)
        chances = rng.dirichlet(np.ones(5))
        sample, population = mixtures(table), mixtures(moved)
        inside = sample.audit(sample.mixture(np.arange(5), chances))[0].alpha
        outside = population.audit(population.mixture(np.arange(5), chances))[0].alpha
        assert outside <= inside + 2 * beta + 1e-7


def test_constant_slacks_mean_a_tradeoff():
    """A model within its audited slacks can be improved by more only at the price of a worse-off group."""
    rng = np.random.default_rng(11)
    for _ in range(10):
        table = rng.random((4, 3))
        problem = mixtures(table)
        chances = rng.dirichlet(np.ones(4))
        mine = -np.sort(-(chances @ table))
        alphas = [level.alpha for level in problem.audit(problem.mixture(np.arange(4), chances))]
        for other in rng.dirichlet(np.ones(4), 200):
            theirs = -np.sort(-(other @ table))
            for i in range(3):
                if theirs[i] < mine[i] - alphas[i] - 1e-6:
                    assert (theirs[:i] > mine[:i]).any()


def test_duplicated_groups_take_two_places():
    """A group named twice takes two of the levels, so that the third loss is another one."""
    table = np.array([(0.4, 0.4, 0.3), (0.4, 0.2, 0.4), (0.6, 0, 0)])
    twice = mixtures(table[:, [0, 0, 1, 2]]).solve()
    assert twice.decision.sorted_losses == pytest.approx([0.4, 0.4, 1 / 3, 1 / 3], abs=1e-6)


def test_one_group_is_plain_fitting():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    s = LexifairRegression(features=X, labels=y, groups=[range(20)]).solve()
    np.testing.assert_allclose(s.decision.coefficients, np.linalg.lstsq(X, y, rcond=None)[0], atol=1e-9)


def test_the_minimax_level_is_a_game_in_weights_of_groups():
    """gamma_1 = max over weights of the least weighted loss; the multipliers of the first level attain it."""
    table = np.array([(0.6, 0.1, 0.2), (0.1, 0.6, 0.2), (0.3, 0.4, 0.8)])
    level = mixtures(table).solve().decision.levels[0]
    assert level.bound == pytest.approx(0.35, abs=1e-7)
    grid = [np.array(w) / 20 for w in itertools.product(range(21), repeat=3) if sum(w) == 20]
    assert max(float((table @ w).min()) for w in grid) == pytest.approx(0.35)
