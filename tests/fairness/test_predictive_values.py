import numpy as np
import pytest

import forcopt as fo
from forcopt.fairness import (
    NEGATIVE_PREDICTIVE,
    POSITIVE_PREDICTIVE,
    EqualizedOdds,
    PredictiveValues,
    calibration_gaps,
)
from forcopt.models import FairPostprocessing

SMALL = [[[36, 4], [9, 5]], [[4, 16], [6, 20]]]


def small(constraint):
    return FairPostprocessing(counts=SMALL, constraint=constraint)


def test_the_values_are_conditional_frequencies():
    rates = small(EqualizedOdds()).base
    assert rates.rate(POSITIVE_PREDICTIVE).tolist() == pytest.approx([16 / 20, 20 / 26])
    assert rates.rate(NEGATIVE_PREDICTIVE).tolist() == pytest.approx([36 / 40, 9 / 14])


@pytest.mark.parametrize(("positive", "negative"), [(0.9, 0.0), (0.0, 0.8), (0.75, 0.6), (0.5, 0.5)])
def test_the_rows_are_met_in_every_group(positive, negative):
    s = small(PredictiveValues(positive, negative)).solve()
    assert s.evaluation.feasible
    rates = s.problem.rates(s.decision.probabilities)
    with np.errstate(invalid="ignore", divide="ignore"):
        for rate, least in ((POSITIVE_PREDICTIVE, positive), (NEGATIVE_PREDICTIVE, negative)):
            values = rates.total(rate.event) / rates.total(rate.given)
            assert (np.isnan(values) | (values >= least - 1e-9)).all()


def test_whoever_is_not_predicted_needs_no_value():
    """To predict nobody 1 is always allowed; above every possible precision nothing else is."""
    s = small(PredictiveValues(0.95, 0.0)).solve()
    assert s.decision.probabilities == pytest.approx(np.zeros((2, 2)), abs=1e-9)
    assert s.evaluation.violations == {}


def test_violations_are_told():
    e = small(PredictiveValues(0.8, 0.9)).evaluate([[0, 0], [1, 1]])
    assert e.violations == pytest.approx(
        {"positive predictive value": 0.8 - 20 / 26, "negative predictive value": 0.9 - 9 / 14}
    )
    assert small(PredictiveValues(1.0, 0.0)).evaluate([[0, 0], [0, 0]]).violations == {}
    assert e.metrics["largest disparity"] == 0  # nothing need be equal


def test_it_combines_with_parity():
    both = EqualizedOdds(0.1) & PredictiveValues(0.6, 0.5)
    s = small(both).solve()
    assert s.evaluation.feasible
    assert s.objective >= small(EqualizedOdds(0.1)).solve().objective - 1e-9
    assert type(both).from_dict(both.to_dict()) == both


def test_no_rate_is_in_its_rows():
    m = fo.Model()
    p = m.variable("p", (2, 2), lower=0, upper=1)
    rates = small(EqualizedOdds()).rates(p)
    with pytest.raises(fo.CurvatureError):
        rates.rate(POSITIVE_PREDICTIVE)
    row = PredictiveValues(0.5, 0.5).rows(rates)[0]
    assert row.name == "positive_predictive_value"
    assert row.labels == ["positive_predictive_value[0]", "positive_predictive_value[1]"]


@pytest.mark.parametrize(("positive", "negative"), [(1.5, 0.5), (0.5, -0.1), (float("nan"), 0.5)])
def test_bad_values(positive, negative):
    with pytest.raises(fo.DeclarationError, match=r"positive|negative"):
        PredictiveValues(positive, negative)


def test_slack_relaxes_parity_by_that_of_both_groups():
    m = fo.Model()
    p = m.variable("p", (2, 2), lower=0, upper=1)
    rates = small(EqualizedOdds(0.1)).rates(p)
    notion = EqualizedOdds(0.1)
    m.subject_to(notion.rows(rates, {rate: np.array([0.02, 0.03]) for rate in notion.rates}))
    m.maximize(rates.rate(notion.rates[0])[0] - rates.rate(notion.rates[0])[1])
    assert m.solve().objective == pytest.approx(0.15)


def test_calibration_gaps_of_numbers_and_expressions():
    values, outputs = np.array([0.2, 0.5]), np.array([0.2, 0.4, 0.9])
    joint = np.array([[0.1, 0.2, 0.0], [0.3, 0.1, 0.3]])
    expected = [0.3 * 0.3, 0.2 * -0.2 + 0.1 * 0.1, 0.3 * -0.4]
    assert calibration_gaps(joint, values, outputs) == pytest.approx(expected)
    m = fo.Model()
    x = m.variable("x", (2, 3))
    m.subject_to(x == joint)
    m.minimize(x.sum())
    assert m.solve()[calibration_gaps(x, values, outputs)] == pytest.approx(expected)
