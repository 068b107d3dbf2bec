import numpy as np
import pytest

import forcopt as fo
from forcopt.fairness import (
    POSITIVE_PREDICTIVE,
    DemographicParity,
    EqualizedOdds,
    ErrorParity,
    PredictiveValues,
)
from forcopt.models.fair_classification import audit
from forcopt.privacy import RandomizedResponse

UNEQUAL = np.array([[[36, 4], [9, 5]], [[4, 16], [6, 20]]])
"""Records by prediction, group and label: false positive rates .1 and .4, true positive rates .8 and .8."""


def records(table):
    """Columns of so many records of each prediction, group and label."""
    cells = np.repeat(np.indices(table.shape).reshape(3, -1), table.ravel(), axis=1)
    return cells[0], cells[1], cells[2]


def test_counts_as_expected_are_seen_through():
    """400 times the table, reported with probability 3/4: .1255 naively, .3 in truth."""
    channel = RandomizedResponse(np.log(3))
    reported = np.rint(400 * np.einsum("za,hay->hzy", channel.transition(2), UNEQUAL)).astype(int)
    predictions, reports, labels = records(reported)
    found = audit(predictions, labels, reports, channel).rates
    assert found["false positive rate"].values == pytest.approx([0.1, 0.4])
    assert found["true positive rate"].values == pytest.approx([0.8, 0.8])
    fpr = found["false positive rate"]
    assert fpr.naive == pytest.approx([2 / 15, 22 / 85])
    assert (fpr.disparity, fpr.naive_disparity) == pytest.approx((0.3, 32 / 255))
    assert found["true positive rate"].disparity == pytest.approx(0, abs=1e-12)


def test_without_noise_it_is_the_plain_audit():
    predictions, groups, labels = records(UNEQUAL)
    found = audit(predictions, labels, groups, RandomizedResponse(60.0), notion=ErrorParity())
    found = found.rates["error rate"]
    assert found.values == pytest.approx(found.naive)
    plain = fo.fairness.GroupRates.from_records(predictions, groups, labels).rate(fo.fairness.ERROR)
    assert found.values == pytest.approx(plain)


def test_rates_that_look_at_the_prediction():
    channel = RandomizedResponse(np.log(3))
    reported = np.rint(400 * np.einsum("za,hay->hzy", channel.transition(2), UNEQUAL)).astype(int)
    predictions, reports, labels = records(reported)
    found = audit(predictions, labels, reports, channel, notion=PredictiveValues(0.5, 0.5)).rates[
        POSITIVE_PREDICTIVE.name
    ]
    assert found.values == pytest.approx([16 / 20, 20 / 26])


@pytest.mark.parametrize(("groups", "epsilon"), [(2, 1.0), (3, 1.5)])
def test_intervals_cover(groups, epsilon):
    """300 draws of 4000 people. Each interval covers with probability .95, up to the normal approximation;

    fewer than 265 would be a false alarm once in 10^5. The intervals by
    Hoeffding's inequality, and those of the disparity, cover at least as often.
    """
    rng, channel, n = np.random.default_rng(groups), RandomizedResponse(epsilon), 4000
    truth = np.linspace(0.2, 0.5, groups)
    covered, gap, sure, sizes = np.zeros(groups), 0, 0, []
    for _ in range(300):
        a, y = rng.integers(0, groups, n), rng.integers(0, 2, n)
        predictions = rng.random(n) < truth[a] + 0.2 * y
        z = channel.privatize(a, groups, rng)
        both = [
            audit(predictions, y, z, channel, method=m).rates["false positive rate"]
            for m in ("normal", "hoeffding")
        ]
        low, high = both[0].intervals.T
        covered += (low <= truth) & (truth <= high)
        gap += both[0].disparity_interval[0] <= 0.3 <= both[0].disparity_interval[1]
        sure += (np.abs(both[1].values - truth) <= np.ptp(both[1].intervals, axis=1) / 2).all()
        sizes.append(np.ptp(both[1].intervals, axis=1) / np.ptp(both[0].intervals, axis=1))
    assert (covered >= 265).all()
    assert gap >= 265 and sure >= 295
    assert np.mean(sizes) < 6  # wider, but of the same order


def test_naive_disparities_are_too_small():
    """For two groups the naive difference is (2 pi - 1) P0 P1 / (Q0 Q1) of the true one (equation (23))."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        p, g, epsilon = rng.dirichlet([1, 1]), rng.random(2), rng.uniform(0.05, 4)
        mix = RandomizedResponse(epsilon).transition(2)
        q, naive = mix @ p, mix @ (p * g) / (mix @ p)
        factor = (2 * mix[0, 0] - 1) * p.prod() / q.prod()
        assert naive[1] - naive[0] == pytest.approx(factor * (g[1] - g[0]))
        assert factor <= 2 * mix[0, 0] - 1 + 1e-12


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"predictions": [0, 1, 2, 0]}, "predictions hold 0 and 2"),
        ({"labels": [0, 1, 3, 0]}, r"labels\[2\] is 3"),
        ({"labels": [0, 1]}, "labels has 2"),
        ({"reports": ["a", "b", None, "a"]}, r"groups\[2\] is missing"),
        ({"reports": ["a"] * 4}, "at least 2"),
        ({"confidence": 1.0}, "confidence is 1"),
        ({"method": "bootstrap"}, "method is 'bootstrap'"),
        ({"channel": RandomizedResponse(0.4), "reports": ["b"] * 3 + ["a"]}, "'a' has an estimated -"),
    ],
)
def test_bad_input_is_named(fields, said):
    given = {
        "predictions": [0, 1, 1, 0],
        "labels": [0, 0, 0, 0],
        "reports": ["a", "b", "a", "b"],
        "channel": RandomizedResponse(1.0),
        "notion": DemographicParity(),
        **fields,
    }
    with pytest.raises(fo.DeclarationError, match=said):
        audit(**given)


def test_it_prints_a_table():
    predictions, groups, labels = records(UNEQUAL)
    found = audit(predictions, labels, groups, RandomizedResponse(5.0), notion=EqualizedOdds())
    assert len(found.to_pandas()) == 6
    assert "disparity" in repr(found) and "naive" in repr(found)
