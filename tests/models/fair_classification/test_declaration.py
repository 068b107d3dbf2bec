import numpy as np
import pandas as pd
import pytest
from fair_learning_instances import A12, X12, Y12, twelve

import forcopt as fo
from forcopt.fairness import (
    BoundedGroupLoss,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    PairwiseFairness,
)
from forcopt.models.fair_classification import AllFunctions, FairClassification, Finite, Learner, Thresholds
from forcopt.privacy import RandomizedResponse

GOOD = {"features": [[0], [1], [2], [3]], "labels": [0, 1, 0, 1], "groups": ["a", "a", "b", "b"]}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"labels": [0, 1, 2, 1]}, r"labels: the array\[2\] is 2; it must be 0 or 1"),
        ({"labels": [0, 1, 0]}, r"labels: the shape is \(3,\); it must be \(4,\)"),
        ({"features": [[0], [1], [np.nan], [3]]}, r"features.*\[2, 0\] is nan"),
        (
            {"features": pd.DataFrame({"town": ["x", "y"], "age": [1, 2]})},
            r"features is a DataFrame of shape \(2, 2\); the array must be numbers, not strings",
        ),
        ({"constraint": 0.1}, r"constraint is 0\.1; it must be one of .*EqualizedOdds"),
        ({"features": [0, 1, 2, 3]}, r"features: the shape is \(4,\); it must be \(n, d\)"),
        ({"features": np.zeros((0, 1)), "labels": [], "groups": []}, "features: the shape is"),
        ({"groups": ["a", "b"]}, "groups has 2 entries for 4 records"),
        ({"groups": [None] * 4}, "no record has a group"),
        ({"groups": [["a"]] * 4}, "groups: the shape is"),
        ({"groups": {"reports": ["a"] * 4}}, "reports and channel"),
        ({"weights": [1, 1, 1]}, r"weights: the shape is \(3,\)"),
        ({"weights": [1, 1, 1, -1]}, "weights: its least entry is -1"),
        ({"weights": [0, 0, 0, 0]}, "weights: its least entry is 0 and its sum 0"),
        ({"labels": [0, 1, 0, 0]}, "group 'b' has no records with label 1, so its true positive rate"),
        ({"groups": ["a", "a", "b", None]}, "group 'b' has no records with label 1"),
        ({"constraint": PairwiseFairness([(0, 4)])}, "a pair names record 4; there are 4 records"),
        ({"hypotheses": Thresholds(column=1)}, "column is 1; there are 1 features"),
        ({"hypotheses": Finite([[0, 1]])}, "the class is over 2 records; there are 4"),
        (
            {"groups": RandomizedResponse(0.1).observe(["a", "a", "a", "b"])},
            "it must be positive: too few records",
        ),
    ],
)
def test_bad_input_is_named(fields, said):
    given = {"constraint": EqualizedOdds(0.1), "hypotheses": Thresholds(), **GOOD, **fields}
    with pytest.raises(fo.DeclarationError, match=said):
        FairClassification(**given)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"pairs": [(0, -1)]}, r"pairs: the array\[0, 1\] is -1"),
        ({"pairs": []}, "at least one pair"),
        ({"pairs": [(0, 1, 2)]}, "it must be \\(q, 2\\)"),
        ({"pairs": [(0, 1.5)]}, "integer"),
        ({"gamma": -0.1}, "gamma is -0.1"),
        ({"budget": -0.1}, "budget is -0.1"),
        ({"weights": [1.5]}, r"weights: the array\[0\] is 1.5; it must be from 0 to 1"),
        ({"weights": [1, 1]}, "weights: the shape is"),
        ({"presented": 0}, "presented is 0; it must be at least 1"),
    ],
)
def test_bad_pairs_are_named(fields, said):
    with pytest.raises(fo.DeclarationError, match=said):
        PairwiseFairness(**{"pairs": [(0, 1)], **fields})
    with pytest.raises(fo.DeclarationError, match="an answer is 'maybe'"):
        PairwiseFairness.from_answers([("u", 0, 1, "maybe")])
    with pytest.raises(fo.DeclarationError, match="no stakeholder holds"):
        PairwiseFairness.from_answers([("u", 0, 1, "none")])


@pytest.mark.parametrize("table", [[[0, 1.5]], [[0, -1]], [], [0, 1]])
def test_a_table_holds_zeros_and_ones(table):
    with pytest.raises(fo.DeclarationError, match="table"):
        Finite(table)


def test_a_learner_must_fit_and_take_weights():
    from sklearn.neighbors import KNeighborsClassifier

    with pytest.raises(fo.DeclarationError, match="lacks fit"):
        Learner(3)
    with pytest.raises(fo.DeclarationError, match="sample_weight"):
        twelve(hypotheses=Learner(KNeighborsClassifier(1))).solve()
    with pytest.raises(fo.DeclarationError, match="classes of sklearn only"):
        Learner({"class": "os.system", "parameters": {}})


def test_a_pair_of_a_record_with_itself_holds_but_counts():
    with pytest.warns(UserWarning, match="1 pairs compare a record with itself"):
        notion = PairwiseFairness([(0, 1), (2, 2)], budget=0.25)
    problem = FairClassification([[0], [1], [2]], [1, 0, 1], [0] * 3, notion, hypotheses=AllFunctions())
    assert problem.solve().objective == pytest.approx(1 / 6)  # a mean over two pairs: 0.5 may be violated


def test_from_gamma_one_on_no_pair_demands_anything():
    problem = FairClassification(
        [[0], [1]], [1, 0], [0, 0], PairwiseFairness([(0, 1)], gamma=1.5), None, AllFunctions()
    )
    assert problem.solve().objective == 0 and problem.lagrangian.size == 0


def test_arrays_and_frames_are_the_same():
    frame = pd.DataFrame({"x": X12[:, 0], "y": Y12.astype(bool), "a": A12})
    problem = FairClassification(
        frame[["x"]], frame["y"], frame["a"], EqualizedOdds(0.1), None, Thresholds(direction="above")
    )
    assert problem.solve().objective == pytest.approx(0.45)
    assert problem.groups.names == ("a", "b")


def test_decisions_of_all_kinds_are_judged():
    problem = twelve()
    by_hand = 0.7 * 0 + 0.3 * (X12[:, 0] >= 1)
    e = problem.evaluate(by_hand)
    assert e.objective == pytest.approx(0.45) and e.feasible
    assert e.metrics["true positive rate of a"] == pytest.approx(0.3)
    half = problem.evaluate((X12[:, 0] >= 2).astype(int))
    assert half.violations == pytest.approx(
        {"false positive rate": 1 / 3 - 0.1, "true positive rate": 2 / 3 - 0.1}
    )
    for bad in (by_hand[:3], by_hand + 1, "x"):
        with pytest.raises(fo.DeclarationError, match="decision"):
            problem.evaluate(bad)
    with pytest.raises(fo.DeclarationError, match="multipliers"):
        problem.saddle_gaps(by_hand, [1.0])
    with pytest.raises(fo.DeclarationError, match="multipliers"):
        problem.saddle_gaps(by_hand, [-1.0, 0, 0, 0])


def test_bounded_group_loss_may_be_infeasible_and_is_then_bounded_below():
    assert twelve(BoundedGroupLoss(0.5)).solve().objective == pytest.approx(1 / 3)
    assert twelve(BoundedGroupLoss(0.1)).solve().status is fo.Status.INFEASIBLE


def test_missing_groups_count_in_the_error_alone():
    groups = A12.astype(object)
    groups[[0, 11]] = None
    problem = FairClassification(
        X12, Y12, groups, EqualOpportunity(0.0), hypotheses=Thresholds(direction="above")
    )
    known = np.array([g is not None for g in groups])
    rates = problem.rates((X12[:, 0] >= 1).astype(float))
    for a, name in enumerate(("a", "b")):
        at = known & (groups == name) & (Y12 == 1)
        assert rates.positives[a, 1] / rates.mass[a, 1] == pytest.approx((X12[at, 0] >= 1).mean())
    error = problem.evaluate((X12[:, 0] >= 1).astype(int)).objective
    assert error == pytest.approx(((X12[:, 0] >= 1) != Y12).mean())


def test_a_channel_is_inverted_in_the_mean():
    """The mean of the estimated moments over all that could be reported is the truth."""
    channel = RandomizedResponse(2.0)
    codes, labels, p = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([0.2, 0.9, 0.4, 0.6])
    truth = np.zeros((2, 2))
    np.add.at(truth, (codes, labels), p / 4)
    mean = np.zeros((2, 2))
    from forcopt.models.fair_classification.decision import GroupColumn
    from forcopt.models.fair_classification.lagrangian import Moments

    for reports in np.ndindex(2, 2, 2, 2):
        chance = np.prod(channel.transition(2)[list(reports), codes])
        column = GroupColumn(np.array(reports), ("a", "b"), channel)
        moments = Moments(column.shares, labels, np.full(4, 0.25), DemographicParity(), ("a", "b"))
        mean += chance * (moments.matrix @ p).reshape(2, 2)
    assert mean == pytest.approx(truth, abs=1e-12)
