from itertools import combinations
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.fairness import (
    AllOf,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    ErrorParity,
    FalsePositiveParity,
    GroupRates,
    Notion,
    RateParity,
)

NOTIONS = (EqualizedOdds, EqualOpportunity, FalsePositiveParity, DemographicParity, ErrorParity)
TABLE = GroupRates(positives=[[4, 16], [6, 20], [9, 5]], mass=[[40, 20], [15, 25], [20, 10]])
# false positive rates .1 .4 .45, true positive .8 .8 .5, selection 20/60 26/40 14/30, error 8/60 11/40 14/30


@pytest.mark.parametrize(
    ("notion", "disparity"),
    [
        (EqualizedOdds, {"false positive rate": 0.35, "true positive rate": 0.3}),
        (EqualOpportunity, {"true positive rate": 0.3}),
        (FalsePositiveParity, {"false positive rate": 0.35}),
        (DemographicParity, {"selection rate": 26 / 40 - 20 / 60}),
        (ErrorParity, {"error rate": 14 / 30 - 8 / 60}),
    ],
)
def test_the_disparity_is_over_all_pairs(notion, disparity):
    assert notion().disparity(TABLE) == pytest.approx(disparity)
    excess = {name: max(d - 0.31, 0) for name, d in disparity.items()}
    assert notion(0.31).violation(TABLE) == pytest.approx(excess)


@pytest.mark.parametrize("notion", NOTIONS)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), tolerance=st.floats(0, 1))
def test_rows_hold_exactly_where_nothing_is_violated(notion, seed, tolerance):
    """Some level makes the rows true if and only if every pair of groups differs by at most the tolerance."""
    rng = np.random.default_rng(seed)
    groups = int(rng.integers(1, 5))
    mass = rng.integers(1, 9, size=(groups, 2))
    positives = mass * rng.random((groups, 2))
    m = fo.Model()
    x = m.variable("x", (groups, 2))
    rows = notion(tolerance).rows(GroupRates(x, mass))
    m.subject_to(rows)
    numbers = GroupRates(positives, mass)
    violated = max(notion(tolerance).violation(numbers).values())
    pairs = [
        abs(values[a] - values[b]) - tolerance
        for values in map(numbers.rate, notion(tolerance).rates)
        for a, b in combinations(range(groups), 2)
    ]
    assert violated == pytest.approx(max([0.0, *pairs]))
    # the level that suits the rows best is the smallest rate
    levels = {
        v: numbers.rate(rate).min() for v, rate in zip(m.variables[1:], notion(tolerance).rates, strict=False)
    }
    point = m.point({x: positives, **levels})
    broken = max((float(row.violation(point).max()) for row in rows), default=0.0)
    assert broken == pytest.approx(violated, abs=1e-9)
    assert len(rows) == (0 if groups == 1 else len(notion(tolerance).rates))


def test_a_disparity_of_expressions_is_a_convex_expression():
    m = fo.Model()
    x = m.variable("x", (2, 2), lower=0, upper=[[4, 4], [4, 4]])
    rates = GroupRates(x, [[4, 4], [4, 4]])
    m.subject_to(x[0, 1] == 3, x[1, 1] <= 1)
    spread = EqualOpportunity().disparity(rates)["true positive rate"]
    m.minimize(spread)
    assert m.solve().objective == pytest.approx(0.5)
    with pytest.raises(fo.CurvatureError):
        m.maximize(spread)


def test_rows_need_expressions():
    with pytest.raises(fo.DeclarationError, match="the false positive rate is made of numbers"):
        EqualizedOdds().rows(TABLE)


def test_rows_are_named_after_rate_and_group():
    m = fo.Model()
    rates = GroupRates(m.variable("x", (2, 2)), np.ones((2, 2)), ("left", "right"))
    m.subject_to((EqualizedOdds() & EqualOpportunity(0.1)).rows(rates))
    names = [m.row_name(i) for i in range(m.row_count)]
    assert names == [
        "false_positive_rate[left]",
        "false_positive_rate[right]",
        "true_positive_rate[left]",
        "true_positive_rate[right]",
        "true_positive_rate#2[left]",
        "true_positive_rate#2[right]",
    ]


def test_and_is_flat_and_takes_the_strictest():
    both = EqualizedOdds(0.1) & DemographicParity(0.2) & EqualOpportunity(0.05)
    assert both == AllOf((EqualizedOdds(0.1), DemographicParity(0.2) & EqualOpportunity(0.05)))
    assert [type(n) for n in both.notions] == [EqualizedOdds, DemographicParity, EqualOpportunity]
    assert [r.name for r in both.rates] == ["false positive rate", "true positive rate", "selection rate"]
    assert both.violation(TABLE)["true positive rate"] == pytest.approx(0.25)
    assert both.disparity(TABLE)["true positive rate"] == pytest.approx(0.3)
    with pytest.raises(TypeError):
        EqualizedOdds() & 0.1


@pytest.mark.parametrize("notion", [cls(0.25) for cls in NOTIONS] + [EqualizedOdds(0.1) & ErrorParity()])
def test_notions_go_to_plain_data_and_back(notion):
    data = notion.to_dict()
    assert data["type"] == type(notion).__name__
    assert Notion.from_dict(data) == notion
    assert Notion.from_dict(data) != EqualizedOdds(0.99)


@pytest.mark.parametrize("tolerance", [-0.01, 1.01, float("nan"), float("inf"), "much", None])
def test_a_tolerance_is_from_0_to_1(tolerance):
    with pytest.raises(fo.DeclarationError, match="EqualizedOdds: tolerance is"):
        EqualizedOdds(tolerance)


def test_bad_notions():
    with pytest.raises(fo.DeclarationError, match="at least 1 item"):
        AllOf(())
    with pytest.raises(fo.UnknownNameError, match="did you mean 'EqualizedOdds'"):
        Notion.from_dict({"type": "EqualisedOdds"})
    with pytest.raises(fo.UnknownNameError, match="did you mean 'tolerance'"):
        EqualizedOdds(tolerence=0.1)
    with pytest.raises(fo.DeclarationError, match="the key 'type' is missing"):
        Notion.from_dict({"tolerance": 0.1})
    with pytest.raises(fo.UnknownNameError, match="RateParity"):
        Notion.from_dict({"type": "RateParity"})
    with pytest.raises(TypeError, match="abstract"):
        RateParity(0.1)


def test_a_notion_of_ones_own_is_one_line():
    class PositiveErrors(RateParity):
        """Equal false negative and false positive rates, as in equalized odds."""

        rates: ClassVar = EqualizedOdds.rates

    assert PositiveErrors(0.1).violation(TABLE) == EqualizedOdds(0.1).violation(TABLE)
