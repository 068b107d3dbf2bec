"""Jagielski et al. (2019), Differentially Private Fair Learning: the post-processing linear program.

The instances and exact optima were computed by enumerating vertices in rational arithmetic.
"""

from fractions import Fraction as F

import numpy as np
import pytest
from jagielski_2019_lp import PrintedOdds

from forcopt import Status
from forcopt.fairness import EqualizedOdds
from forcopt.models import FairPostprocessing
from forcopt.models.fair_postprocessing.dp_postprocessing import privacy_cost
from forcopt.privacy import AdditiveMechanism, Ledger, PrivacyBudget, PureDP

# Two groups, 100 records; base error 19/100, false positive rates .1 and .4, true positive rates .8 and .8.
UNEQUAL = [[[36, 4], [9, 5]], [[4, 16], [6, 20]]]
# Here the base predictions of group 1 are worth nothing: its false and true positive rates are both .4.
WORTHLESS = [[[32, 4], [9, 15]], [[8, 16], [6, 10]]]
# Three groups, 100 records; base error .28.
THREE = [[[16, 5], [9, 3], [14, 4]], [[4, 15], [6, 12], [6, 6]]]


def solved(counts, tolerance):
    s = FairPostprocessing(counts=counts, constraint=EqualizedOdds(float(tolerance))).solve()
    assert s.status is Status.OPTIMAL
    assert s.bound == pytest.approx(s.objective)
    assert s.evaluation.feasible
    return s


@pytest.mark.parametrize(
    ("tolerance", "error", "probabilities"),
    [
        (F(0), F(31, 100), [[F(12, 35), 0], [F(32, 35), 1]]),
        (F(1, 20), F(7, 25), [[F(39, 140), 0], [F(139, 140), 1]]),
        (F(1, 10), F(167, 640), [[F(3, 16), 0], [1, F(59, 64)]]),
        (F(1, 5), F(9, 40), [[0, 0], [1, F(3, 4)]]),
        (F(3, 10), F(19, 100), [[0, 0], [1, 1]]),
        (F(1), F(19, 100), [[0, 0], [1, 1]]),
    ],
)
def test_unequal_groups(tolerance, error, probabilities):
    """The optima are unique, so the probabilities are those of the exact solution."""
    s = solved(UNEQUAL, tolerance)
    assert s.objective == pytest.approx(float(error), abs=1e-9)
    np.testing.assert_allclose(s.decision.probabilities, np.array(probabilities, dtype=float), atol=1e-9)


def test_unequal_groups_meet_at_common_rates():
    false_positive, true_positive = solved(UNEQUAL, 0).decision.rates
    np.testing.assert_allclose(false_positive, 0.4, atol=1e-9)
    np.testing.assert_allclose(true_positive, 0.8, atol=1e-9)


@pytest.mark.parametrize(
    ("tolerance", "error"),
    [(F(0), F(9, 20)), (F(1, 10), F(61, 150)), (F(2, 5), F(31, 100)), (F(1), F(27, 100))],
)
def test_a_group_whose_predictions_are_worthless(tolerance, error):
    """The optima are not unique, so only their values are compared."""
    assert solved(WORTHLESS, tolerance).objective == pytest.approx(float(error), abs=1e-9)


def test_exact_equality_with_a_worthless_group_leaves_a_constant():
    assert solved(WORTHLESS, 0).decision.probabilities == pytest.approx(np.zeros((2, 2)), abs=1e-9)


def test_post_processing_can_beat_the_base():
    problem = FairPostprocessing(counts=WORTHLESS, constraint=EqualizedOdds(1.0))
    assert problem.solve("as-predicted").objective == pytest.approx(0.33)
    s = problem.solve()
    assert s.objective == pytest.approx(0.27)
    assert s.decision.probabilities == pytest.approx(np.array([[0, 1], [1, 1]]))


def test_three_groups():
    assert solved(THREE, 0).objective == pytest.approx(69 / 200, abs=1e-9)
    assert solved(THREE, F(1, 10)).objective == pytest.approx(61 / 200, abs=1e-9)
    for notion in (EqualizedOdds, PrintedOdds):  # all pairs, or against the first: here the same
        s = FairPostprocessing(counts=THREE, constraint=notion(0.1)).solve()
        assert s.decision.probabilities == pytest.approx(np.array([[1 / 55, 0, 0], [51 / 55, 0.75, 1]]))
        assert s.decision.rates == pytest.approx(np.array([[0.2, 0.3, 0.3], [0.7, 0.6, 0.6]]))
    problem = FairPostprocessing(counts=THREE, constraint=EqualizedOdds(0.0))
    assert problem.solve("as-predicted").objective == pytest.approx(0.28)
    exact = np.array([[F(21, 110), 0, 0], [F(81, 110), F(3, 4), 1]], dtype=float)
    e = problem.evaluate(exact)
    assert e.feasible
    assert e.objective == pytest.approx(69 / 200)
    for a in range(3):
        assert e.metrics[f"false positive rate of {a}"] == pytest.approx(0.3)
        assert e.metrics[f"true positive rate of {a}"] == pytest.approx(0.6)


def test_disparities_are_over_all_pairs_not_against_an_anchor():
    """Definition 2.1 is over pairs, the paper's program anchors at group 0; with three groups they differ.

    Groups 1 and 2 are both within the tolerance of group 0, and twice the tolerance apart.
    """
    counts = [[[50, 50], [60, 50], [40, 50]], [[50, 50], [40, 50], [60, 50]]]
    e = FairPostprocessing(counts=counts, constraint=EqualizedOdds(0.1)).evaluate([[0, 0, 0], [1, 1, 1]])
    assert e.metrics["largest disparity"] == pytest.approx(0.2)
    assert e.violations == pytest.approx({"false positive rate": 0.1})


# -- Algorithm 1 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tolerance", "noisy", "true"), [(0.0, 0.36529332, 0.33864396), (0.05, 0.33529332, 0.31228033)]
)
def test_the_noisy_program_as_printed(tolerance, noisy, true, monkeypatch):
    """LP (1) at epsilon 20, beta .05, with noises (in records) of 1, -2, 0, 1 and -1, 2, 3, -1."""
    noise = [[[1, -2], [0, 1]], [[-1, 2], [3, -1]]]
    p = FairPostprocessing(
        counts=UNEQUAL, constraint=PrintedOdds(tolerance), privacy=PrivacyBudget(epsilon=20.0)
    )
    monkeypatch.setattr(AdditiveMechanism, "_send", lambda self, values, rng: values + np.array(noise))
    s = p.solve(ledger=Ledger(PureDP(20.0)))
    assert p.evaluate(s.decision).objective == pytest.approx(true, abs=1e-8)
    table = np.array(UNEQUAL) + noise
    probabilities = s.decision.probabilities
    wrong = (table * np.stack([probabilities, 1 - probabilities], axis=2)).sum()
    assert wrong / 100 == pytest.approx(noisy, abs=1e-8)
    if tolerance == 0:
        unrelaxed = FairPostprocessing(counts=table, constraint=EqualizedOdds(0.0)).solve()
        assert unrelaxed.objective * table.sum() / 100 == pytest.approx(0.398)  # of 103 noisy records
        np.testing.assert_allclose(probabilities, [[0.41023258, 0], [0.85525387, 1]], atol=1e-8)
        np.testing.assert_allclose(
            p.postprocessor(probabilities).rates, [[0.45473471, 0.4], [0.76624961, 0.8]], atol=1e-8
        )
        cost = privacy_cost(p)
        assert cost.error == pytest.approx(0.12180417)
        assert cost.disparity["false positive rate"] == pytest.approx(0.14516086)


def test_theorem_3_1_in_many_draws():
    """Of 100 draws at 10,000 records and epsilon 1, all keep the bounds; the relaxed rows even save error.

    With the failure probability of 5 percent that the theorem allows, 14 or more have a chance below 1e-3.
    """
    counts = 100 * np.array(UNEQUAL)
    p = FairPostprocessing(counts=counts, constraint=PrintedOdds(), privacy=PrivacyBudget(1.0))
    cost = privacy_cost(p)
    assert cost.error == pytest.approx(0.02436, abs=1e-5)
    assert list(cost.disparity.values()) == pytest.approx([0.0274, 0.0205], abs=5e-5)
    errors, gaps, failures = [], [], 0
    for seed in range(100):
        s = p.solve(seed=seed)
        true = p.postprocessor(
            s.decision.probabilities
        )  # the decision's own rates are those of the noisy table
        gaps.append(np.ptp(true.rates, axis=1))
        errors.append(p.evaluate(true).objective - 0.31)
        failures += errors[-1] > cost.error or (gaps[-1] > list(cost.disparity.values())).any()
    assert failures < 14
    # means of other 1000 draws; the deviations of these means are below 2e-4
    assert np.mean(gaps, axis=0) == pytest.approx([0.01353, 0.01015], abs=1e-3)
    assert -0.009 < np.mean(errors) < -0.006  # -.0075, with a standard deviation of the mean below .0004
