"""Post-processing with groups that are seen through randomized response."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.backends.registry import backends
from forcopt.fairness import DemographicParity, EqualizedOdds, EqualOpportunity, GroupRates
from forcopt.models import FairPostprocessing
from forcopt.privacy import PrivacyBudget, RandomizedResponse

LP_BACKENDS = [name for name, b in backends().items() if not b.missing() and not b.capabilities.only_integer]
REPORTED = [[[2925, 425], [1575, 475]], [[450, 1700], [550, 1900]]]  # through truth 3/4
CHANNEL = RandomizedResponse(float(np.log(3)))


def private(**fields):
    return FairPostprocessing(
        **{"counts": REPORTED, "constraint": EqualizedOdds(), "groups": CHANNEL, **fields}
    )


def test_groups_may_say_the_channel():
    p = private()
    assert p.channel == CHANNEL and p.groups == ("0", "1")
    assert private(groups=("a", "b"), channel=CHANNEL).groups == ("a", "b")
    assert FairPostprocessing.from_dict(json.loads(json.dumps(p.to_dict()))) == p
    with pytest.raises(fo.DeclarationError, match="another channel is given"):
        private(channel=CHANNEL)
    with pytest.raises(fo.DeclarationError, match="private already"):
        private(privacy=PrivacyBudget(1.0))


@pytest.mark.parametrize("backend", LP_BACKENDS)
def test_every_backend_for_linear_programs_agrees(backend):
    p = private(constraint=EqualizedOdds(0.05) & DemographicParity(0.08))
    s = p.solve(backend=backend)
    accuracy = max(1e-7, 10 * backends()[backend].accuracy)
    assert s.objective == pytest.approx(p.solve().objective, abs=accuracy)
    assert p.evaluate(s.decision).violation <= accuracy


@settings(max_examples=20, deadline=None)
@given(
    cells=st.integers(2, 4).flatmap(lambda k: st.lists(st.integers(1, 40), min_size=4 * k, max_size=4 * k)),
    epsilon=st.floats(0.1, 4.0),
    tolerance=st.sampled_from([0.0, 0.1]),
)
def test_expected_reports_have_the_program_of_the_truth(cells, epsilon, tolerance):
    """With as many reports as expected, evaluation is exact; the optimum is above that of the true groups."""
    true = 10**6 * np.reshape(cells, (2, -1, 2))
    channel = RandomizedResponse(epsilon)
    reports = np.rint(np.einsum("za,hay->hzy", channel.transition(true.shape[1]), true))
    p = FairPostprocessing(counts=reports, constraint=EqualizedOdds(tolerance), groups=channel)
    assert p.by_group == pytest.approx(true, rel=1e-4, abs=100)
    s = p.solve()
    known = FairPostprocessing(counts=true, constraint=EqualizedOdds(tolerance))
    mixed = known.evaluate(s.decision.for_true_groups().probabilities)
    assert mixed.objective == pytest.approx(s.objective, abs=1e-5)
    assert mixed.violation <= 1e-4
    assert s.objective >= known.solve().objective - 1e-5


def test_a_column_of_reports(shared_data):
    """COMPAS through the channel, 20 times: the mean estimate of each rate is within .06 of the truth.

    One estimate has a standard deviation below .05, so the mean of 20 below .0112; five of these are .056.
    """
    data = fo.data.load_compas(shared_data / "tabular/compas-scores-two-years.csv")
    data = data.of_groups("African-American", "Caucasian")
    predicted = (data.frame["decile_score"] >= 5).to_numpy()
    codes = (data.groups == "Caucasian").astype(int)
    channel = RandomizedResponse(1.0)
    found = []
    for seed in range(20):
        seen = channel.observe(channel.privatize(codes, 2, seed=seed))
        p = FairPostprocessing.from_predictions(predicted, seen, data.labels, EqualizedOdds())
        assert p.channel == channel and p.counts.sum() == len(data)
        found.append(p.solve("as-predicted").decision.base_rates)
    known = FairPostprocessing.from_predictions(predicted, codes, data.labels, EqualizedOdds())
    truth = known.solve("as-predicted").decision.base_rates
    np.testing.assert_allclose(np.mean(found, axis=0), truth, atol=0.06)
    assert np.std(found, axis=0).max() < 0.05


def test_predicting_says_which_groups_are_meant():
    decision = private().solve().decision
    with pytest.raises(fo.DeclarationError, match="these groups may be reports"):
        decision.predict([0, 1], [0, 1])
    with pytest.raises(fo.DeclarationError, match="came through"):
        decision.predict([0, 1], RandomizedResponse(2.0).observe([0, 1]))
    true = decision.for_true_groups()
    with pytest.raises(fo.DeclarationError, match="came through"):
        true.predict([0, 1], CHANNEL.observe([0, 1]))
    assert true.for_true_groups() is true
    assert true.rates == pytest.approx(decision.rates)


def test_reports_and_true_groups_have_the_same_law():
    """100,000 draws of each of four frequencies, within 0.01: over 4 standard deviations, error < 1e-3."""
    decision = private().solve().decision
    rng = np.random.default_rng(3)
    base, true = rng.integers(2, size=400_000), rng.integers(2, size=400_000)
    reports = CHANNEL.observe(CHANNEL.privatize(true, 2, seed=4))
    by_report = decision.predict(base, reports, seed=5)
    by_group = decision.for_true_groups().predict(base, true, seed=6)
    for h, a in np.ndindex(2, 2):
        cell = (base == h) & (true == a)
        assert by_report[cell].mean() == pytest.approx(by_group[cell].mean(), abs=0.01)


# -- estimates that are no tables ----------------------------------------------------------------------------


def test_a_negative_cell_is_named():
    """Truth 3/5: reports (.1, .4) of a label stand for (-.5, 1) of the true groups."""
    counts = [[[5, 20], [20, 15]], [[5, 20], [20, 15]]]
    channel = RandomizedResponse(float(np.log(1.5)))
    with pytest.raises(fo.DeclarationError, match=r"group '0' has an estimated -50 records with label 0"):
        FairPostprocessing(counts=counts, constraint=EqualizedOdds(), groups=channel)


def test_negative_cells_are_projected_on_demand():
    """Truth 3/5; the estimated table has one negative cell, by which the others fall evenly."""
    counts = np.array([[[20, 20], [30, 15]], [[15, 20], [30, 15]]])
    channel = RandomizedResponse(float(np.log(1.5)))
    raw = channel.debias(counts, axis=1)
    assert raw.sum(axis=0).min() < 0 < raw.max()
    with pytest.raises(fo.DeclarationError, match="negative_cells"):
        FairPostprocessing(counts=counts, constraint=EqualOpportunity(), groups=channel)
    p = FairPostprocessing(
        counts=counts, constraint=EqualOpportunity(), groups=channel, negative_cells="project"
    )
    assert p.by_group.min() >= 0
    assert p.by_group.sum() == pytest.approx(counts.sum())
    assert p.solve().evaluation.feasible
    with pytest.raises(fo.DeclarationError, match="false positive rate is undefined"):
        FairPostprocessing(
            counts=counts, constraint=EqualizedOdds(), groups=channel, negative_cells="project"
        )


def test_rates_outside_0_to_1_are_cut():
    """The paper's simplex projection would give (.55, .45) for rates (.9, .8), but they need not sum to 1."""
    counts = [[[50, 10], [1, 10]], [[1, 30], [48, 30]]]  # label 0: nearly only group 0 is refused
    p = FairPostprocessing(counts=counts, constraint=EqualizedOdds(0.1), groups=RandomizedResponse(0.5))
    raw = p.channel.debias(np.array(counts), axis=1)
    rates = raw[1] / raw.sum(axis=0)
    assert rates.min() < 0 and rates.max() > 1
    kept = p.by_group[1] / p.by_group.sum(axis=0)
    np.testing.assert_allclose(kept, rates.clip(0, 1), atol=1e-12)
    assert p.by_group.sum(axis=0) == pytest.approx(raw.sum(axis=0))
    s = p.solve()
    assert s.evaluation.feasible
    assert (s.decision.rates >= -1e-9).all() and (s.decision.rates <= 1 + 1e-9).all()


def test_a_report_that_nobody_makes_is_no_error():
    """Only what is estimated of the true groups must be there."""
    counts = [[[90, 30], [40, 30]], [[10, 30], [0, 30]]]
    p = FairPostprocessing(counts=counts, constraint=EqualizedOdds(0.1), groups=RandomizedResponse(3.0))
    assert p.solve().evaluation.feasible


def test_a_single_group_needs_no_channel():
    with pytest.raises(fo.DeclarationError, match="at least 2"):
        FairPostprocessing(counts=[[[1, 4]], [[2, 3]]], constraint=EqualizedOdds(), groups=CHANNEL)


def test_a_strong_channel_is_no_channel():
    table = [[[36, 4], [9, 5]], [[4, 16], [6, 20]]]
    p = FairPostprocessing(counts=table, constraint=EqualizedOdds(0.1), groups=RandomizedResponse(40.0))
    assert p.solve().objective == pytest.approx(167 / 640)


def test_the_error_needs_no_inversion():
    """The error of the reports' predictor is that of the reported counts, as if no channel were there."""
    p = private()
    q = np.array([[0.3, 0.1], [0.8, 0.9]])
    expected = GroupRates((p.counts * q[:, :, None]).sum(axis=0), p.counts.sum(axis=0))
    assert p.evaluate(q).objective == pytest.approx(expected.overall(fo.fairness.ERROR))
    assert p.evaluate(q).objective == pytest.approx(p.rates(q).overall(fo.fairness.ERROR))
