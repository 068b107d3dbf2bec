import numpy as np
import pytest

import forcopt as fo
from forcopt.fairness import ERROR, FALSE_POSITIVE, SELECTION, TRUE_POSITIVE, GroupRates, Rate

PRECISION = Rate("precision", event=((0, 0), (0, 1)), given=((0, 0), (1, 1)))
ALL_RATES = (FALSE_POSITIVE, TRUE_POSITIVE, SELECTION, ERROR, PRECISION)


def by_definition(rate, predicted, labels, member):
    """The rate of a group, record by record, by the definition of conditional probability."""
    event = given = 0.0
    for p, y in zip(predicted[member], labels[member], strict=True):
        for prediction, probability in ((0, 1 - p), (1, p)):
            event += probability * rate.event[prediction][y] * rate.given[prediction][y]
            given += probability * rate.given[prediction][y]
    return event / given


@pytest.fixture
def records():
    rng = np.random.default_rng(3)
    return rng.random(40), np.array(list("abc"))[rng.integers(3, size=40)], rng.integers(2, size=40)


@pytest.mark.parametrize("rate", ALL_RATES, ids=lambda r: r.name)
def test_rates_are_conditional_probabilities(records, rate):
    predicted, groups, labels = records
    found = GroupRates.from_records(predicted, groups, labels)
    assert found.groups == ("a", "b", "c")
    expected = [by_definition(rate, predicted, labels, groups == g) for g in found.groups]
    np.testing.assert_allclose(found.rate(rate), expected)
    everybody = by_definition(rate, predicted, labels, groups == groups)
    assert found.overall(rate) == pytest.approx(everybody)


def test_weights_count_as_copies(records):
    predicted, groups, labels = records
    copies = np.arange(40) % 3 + 1
    weighted = GroupRates.from_records(predicted, groups, labels, weights=copies)
    copied = GroupRates.from_records(*(np.repeat(column, copies) for column in records))
    np.testing.assert_allclose(weighted.rate(ERROR), copied.rate(ERROR))


@pytest.mark.parametrize("rate", ALL_RATES[:4], ids=lambda r: r.name)
def test_expressions_and_numbers_agree(records, rate):
    _, groups, labels = records
    rng = np.random.default_rng(4)
    classifiers, mixture = rng.integers(2, size=(40, 5)), rng.dirichlet(np.ones(5))
    m = fo.Model()
    weight = m.variable("weight", 5)
    expressions = GroupRates.from_records(classifiers @ weight, groups, labels)
    numbers = GroupRates.from_records(classifiers @ mixture, groups, labels)
    point = m.point({weight: mixture})
    np.testing.assert_allclose(expressions.rate(rate).evaluate(point), numbers.rate(rate))
    np.testing.assert_allclose(expressions.overall(rate).evaluate(point), numbers.overall(rate))


def test_a_rate_that_is_not_linear_is_refused_for_expressions():
    m = fo.Model()
    r = GroupRates(m.variable("x", (2, 2)), [[1, 1], [1, 1]])
    with pytest.raises(fo.CurvatureError):
        r.rate(PRECISION)


def test_an_undefined_rate_names_group_and_label():
    r = GroupRates([[0, 1], [0, 0]], [[2, 1], [0, 1]], ("a", "b"))
    assert r.defines(TRUE_POSITIVE) and r.defines(SELECTION)
    assert not r.defines(FALSE_POSITIVE)
    with pytest.raises(
        fo.DeclarationError, match="'b' has no records with label 0, so its false positive rate"
    ):
        r.rate(FALSE_POSITIVE)
    with pytest.raises(
        fo.DeclarationError, match="'b' has no records and such a prediction, so its precision"
    ):
        r.rate(PRECISION)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"positives": [[1, 1]], "mass": [[1, 1], [1, 1]]}, "both must be"),
        ({"positives": [1, 1], "mass": [1, 1]}, "both must be"),
        ({"positives": [[1, 1]], "mass": [[1, 1]], "groups": ("a", "b")}, "2 names are given for 1 groups"),
        ({"positives": [[1, np.nan]], "mass": [[1, 1]]}, r"positives\[0, 1\] is nan"),
    ],
)
def test_bad_tables(arguments, said):
    with pytest.raises(fo.DeclarationError, match=said):
        GroupRates(**arguments)


def test_bad_records():
    with pytest.raises(fo.DeclarationError, match=r"predicted\[1\] is 1.5; it must be from 0 to 1"):
        GroupRates.from_records([0, 1.5], ["a", "b"], [0, 1])
    with pytest.raises(fo.DeclarationError, match="predicted has 1, groups has 2"):
        GroupRates.from_records([0], ["a", "b"], [0, 1])
