"""What policies take: unknown values, names of groups, sparse rows, entries that are not numbers."""

import re
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from forcopt import DeclarationError, Policy
from forcopt.fairness import DemographicParity
from forcopt.learning import Threshold
from forcopt.learning.tables import Schema, row_numbers
from forcopt.models import ScorePostprocessing
from forcopt.models.fair_classification import FairClassifier
from forcopt.models.fair_postprocessing import (
    MulticlassPostprocessing,
    RandomizedThresholds,
    ThresholdPostprocessor,
)
from forcopt.models.fair_postprocessing.dp_postprocessing import _histogram
from forcopt.privacy import PrivacyBudget
from forcopt.problem.policy import Vocabulary

N = 120
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 2))
A = rng.choice(["a", "b"], N)
Y = (X[:, 0] + (A == "a") + rng.normal(size=N) > 0).astype(int)


def fitted(groups, y=Y, weights=None, kept=slice(None)):
    clf = ThresholdPostprocessor(LogisticRegression(), DemographicParity(0.05))
    return clf.fit(X[kept], y[kept], sensitive_features=groups[kept], sample_weight=weights)


# -- an unknown value is not a missing one --


def test_an_unknown_value_gets_the_mixture_though_a_group_misses_the_value():
    people = pd.DataFrame({"sex": rng.choice(["f", "m", None], N), "race": rng.choice(["p", "q"], N)})
    front = ThresholdPostprocessor(LogisticRegression(), DemographicParity(0.02), combine="each")
    policy = front.fit(X, Y, sensitive_features=people).policy_

    def chance(sex, race="p"):
        return policy.predict_proba(X[:20], pd.DataFrame({"sex": [sex] * 20, "race": [race] * 20}))[:, 1]

    of_p = people[people.race == "p"].sex
    sizes = {"f": (of_p == "f").sum(), "m": (of_p == "m").sum(), None: of_p.isna().sum()}
    mixture = sum(size * chance(sex) for sex, size in sizes.items()) / sum(sizes.values())
    with pytest.warns(UserWarning, match="column 'sex': groups holds 'z'"):
        got = chance("z")
    assert got == pytest.approx(mixture, abs=1e-12) and not np.array_equal(got, chance(None))


def test_one_column_mixes_all_groups_for_an_unknown_value_only():
    known = (((None,), 1.0), (("f",), 2.0), (("m",), 5.0))
    with pytest.warns(UserWarning, match="'z' gets their mixture"):
        numbers, laws = Vocabulary(("sex",), known, "mixture").laws(["z", None, "m"])
    assert [laws[k] for k in numbers] == [
        {"sex=?": 1 / 8, "f": 2 / 8, "m": 5 / 8},
        {"sex=?": 1.0},
        {"m": 1.0},
    ]


# -- groups and classes have one name --


GROUPS = {
    "float32": np.where(A == "a", 0.1, 0.2).astype("f4"),
    "float16": np.where(A == "a", 0.1, 0.2).astype("f2"),
    "float64": np.where(A == "a", 0.1, 1e16),
    "bytes": A.astype("S"),
    "bytes above ASCII": np.where(A == "a", b"\xff", b"\xfe"),
    "days": np.where(A == "a", "2020-01-01", "2021-01-01").astype("M8[D]"),
    "nanoseconds": np.where(A == "a", "2020-01-01", "2021-01-01").astype("M8[ns]"),
}


@pytest.mark.parametrize("kind", GROUPS)
@pytest.mark.parametrize(
    "form", [lambda g: g, lambda g: g[:, None], list, pd.Series, lambda g: pd.DataFrame({"g": g})]
)
def test_predict_takes_the_groups_that_fit_took_and_their_type_changes_nothing(kind, form):
    groups = form(GROUPS[kind])
    expected = fitted(A).predict_proba(X, sensitive_features=A)
    clf = fitted(GROUPS[kind])
    assert clf.predict_proba(X, sensitive_features=groups) == pytest.approx(expected, abs=1e-9)
    again = ThresholdPostprocessor(LogisticRegression(), DemographicParity(0.05))
    again.fit(X, Y, sensitive_features=groups)
    assert again.predict_proba(X, sensitive_features=GROUPS[kind]) == pytest.approx(expected, abs=1e-9)
    assert again.policy_.law.groups == clf.policy_.law.groups


def test_sensitive_columns_in_a_frame_have_the_names_of_those_beside_it():
    other = rng.choice(["u", "v"], N)
    people = pd.DataFrame({"x": X[:, 0], "w": X[:, 1], "g": GROUPS["float32"], "h": other})
    within = ThresholdPostprocessor(LogisticRegression(), DemographicParity(0.05), sensitive=["g", "h"])
    within.fit(people, Y)
    assert within.policy_.predict_proba(people) == pytest.approx(within.predict_proba(people))
    beside = fitted(np.char.add(A, other))
    expected = beside.predict_proba(X, sensitive_features=np.char.add(A, other))
    assert within.predict_proba(people) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kind", ["float32", "bytes", "days"])
def test_a_decision_takes_the_classes_that_from_predictions_took(kind):
    predicted, labels = GROUPS[kind], np.where(Y == 1, *np.unique(GROUPS[kind]))
    plain = MulticlassPostprocessing.from_predictions(
        A, A, np.where(Y == 1, "a", "b"), DemographicParity(0.05)
    )
    found = MulticlassPostprocessing.from_predictions(predicted, A, labels, DemographicParity(0.05)).solve()
    assert found.objective == pytest.approx(plain.solve().objective)
    law = found.decision.probabilities[(A == "b").astype(int), (A == "b").astype(int)]
    assert found.decision.probability(predicted, A) == pytest.approx(law)
    policy = Policy.of(found)
    assert policy.predict_proba(predicted[:, None], A) == pytest.approx(law)


# -- private thresholds of groups that are numbers --


def test_private_counts_of_groups_that_are_numbers_are_those_of_their_names():
    scores, groups = rng.normal(size=N), rng.choice([1.0, 2.0], N)
    budget = PrivacyBudget(1.0)
    p = ScorePostprocessing(scores, Y, groups, DemographicParity(0.5), names=("2", "1"), privacy=budget)
    cuts = np.array([-0.5, 0.5])
    brute = np.zeros((3, 2, 2), dtype=int)
    for score, group, label in zip(scores, groups, Y, strict=True):
        brute[sum(score >= cut for cut in cuts), ["2", "1"].index(f"{group:.0f}"), label] += 1
    assert np.array_equal(_histogram(p, cuts), brute)
    assert p.solve(edges=[0.0], seed=1).decision.groups == ("2", "1")


# -- records of weight 0 --


@pytest.mark.parametrize("front", [ThresholdPostprocessor, FairClassifier])
def test_a_class_of_weight_0_alone_is_as_if_left_out(front):
    y = np.where(np.arange(N) < 5, 2, Y)
    weights, kept = (np.arange(N) >= 5) * 1.0, slice(5, None)
    given = {"constraint": DemographicParity(0.1)}
    first = front(**given).fit(X, y, sensitive_features=A, sample_weight=weights)
    second = front(**given).fit(X[kept], y[kept], sensitive_features=A[kept], sample_weight=weights[kept])
    assert first.classes_.tolist() == second.classes_.tolist() == [0, 1]
    assert first.report_.error == pytest.approx(second.report_.error)
    with pytest.raises(DeclarationError, match="1 class among the records of positive weight"):
        front(**given).fit(X, Y, sensitive_features=A, sample_weight=Y)


# -- the lottery of a sparse row --


@pytest.mark.parametrize("width", [4, 1500])
def test_a_row_has_one_number_however_it_is_stored(width):
    places, values = [3, 1, 0], [3.0, 2.0, 1.0]
    dense = np.zeros((1, width))
    dense[0, places] = values
    numbers = {
        row_numbers(dense, 5)[0],
        row_numbers(dense.astype("f4"), 5)[0],
        row_numbers(dense.astype(int), 5)[0],
    }
    for order in permutations(range(3)):
        inner = np.array(values)[list(order)], np.array(places)[list(order)], np.array([0, 3])
        row = sp.csr_array(inner, shape=(1, width))
        numbers |= {row_numbers(form, 5)[0] for form in (row, row.tocsc(), row.tocoo(), row.astype("f4"))}
        assert row.indices.tolist() == np.array(places)[list(order)].tolist()  # the caller's array stays
    twice = sp.csr_array(
        (np.array([1.0, 2, 3, 0, -0.0, 1, 2]), np.array([0, 1, 3, 2, 2, 3, 3]), np.array([0, 7])),
        shape=(1, width),
    )
    twice.data[2] = 0.0
    numbers.add(row_numbers(twice, 5)[0])
    assert len(numbers) == 1 and row_numbers(dense, 6)[0] not in numbers


def test_sparse_rows_keep_their_numbers_in_any_batch():
    table = rng.integers(0, 3, (2500, 6)) * rng.normal(size=(2500, 6)).round(1)
    numbers = row_numbers(sp.csr_array(table))
    assert np.array_equal(numbers, row_numbers(table))
    assert np.array_equal(numbers[1400:1403], row_numbers(sp.csr_array(table[1400:1403])))


def test_labels_of_a_lottery_agree_for_dense_and_sparse_rows():
    front = type("Half", (), {"probability": lambda self, X: np.full(X.shape[0], 0.5)})()
    policy = Policy(front, Schema((), ("number",) * 5), (0, 1))
    table = rng.integers(0, 2, (200, 5)) * rng.normal(size=(200, 5))
    labels = policy.predict(table)
    assert np.array_equal(labels, policy.predict(sp.csc_array(table))) and 60 < labels.sum() < 140


# -- entries that are no numbers --


ARRAY = Policy(Threshold(0, 0.5, True), Schema((), ("number",)), (0, 1))
FRAME = Policy(Threshold(0, 0.5, True), Schema(("age",), ("number",)), (0, 1))
BIG = 10**400


@pytest.mark.parametrize(
    "policy, given, message",
    [
        (ARRAY, np.array([["2020-01-01"]], dtype="M8[D]"), "column 0 .*2020-01-01.* in row 0; .*numbers"),
        (ARRAY, np.array([["2020-01-01"]], dtype="M8[ns]"), "column 0 .*2020-01-01.* in row 0; .*numbers"),
        (ARRAY, np.array([[3]], dtype="m8[D]"), "column 0 .*3 days.* in row 0; .*numbers"),
        (ARRAY, [["1"]], "X: column 0 holds '1' in row 0; the policy was learnt from numbers"),
        (ARRAY, np.array([["1"]]), "X: column 0 holds '1' in row 0; the policy was learnt from numbers"),
        (ARRAY, [[1.0], ["1"]], "column 0 .* holds '1' in row 1; it must hold numbers"),
        (ARRAY, [["abc"]], "X: column 0 holds 'abc' in row 0"),
        (ARRAY, [[b"1"]], "column 0 .* holds b'1' in row 0"),
        (ARRAY, [[0.0], [1.0, 2.0]], r"X has shape \(2,\); it must be \(n, 1\); row 1 has 2 entries"),
        (ARRAY, [0.0, 1.0], r"X has shape \(2,\); it must be \(n, 1\)"),
        (ARRAY, [[0.0], [{}]], r"column 0 .* holds \{\} in row 1"),
        (ARRAY, [[0.0], [[1.0, 2.0]]], r"column 0 .* holds \[1.0, 2.0\] in row 1"),
        (ARRAY, [[0.0], [1j]], "column 0 .* holds 1j in row 1"),
        (ARRAY, sp.csr_array(np.array([[1j]])), "column 0 .* holds 1j in row 0"),
        (ARRAY, [[0.0], [BIG]], "X: column 0 holds 1000.* in row 1; it must be within the range of floats"),
        (ARRAY, pd.Series([1.0]), "X is a Series; it must be a table"),
        (FRAME, pd.DataFrame({"age": [1.0]}).iloc[0], "X is a Series; it must be a table"),
        (FRAME, {"age": np.array([1.0, 2.0])}, r"column 'age' .* holds array\(\[1., 2.\]\) in row 0"),
        (FRAME, {"age": BIG}, "X: column 'age' holds 1000.* in row 0; it must be within the range of floats"),
        (FRAME, pd.DataFrame({"age": [1, -BIG]}), "X: column 'age' holds -1000.* in row 1"),
    ],
)  # fmt: skip
def test_what_is_no_number_is_refused_by_field_row_value_and_rule(policy, given, message):
    with pytest.raises(DeclarationError, match=re.compile(message, re.DOTALL)):
        policy.predict(given)


def test_what_is_a_number_or_missing_is_read_as_numpy_does():
    from decimal import Decimal
    from fractions import Fraction

    schema = Schema((), ("number",))
    given = [
        [1],
        [True],
        [0.5],
        [Fraction(1, 4)],
        [Decimal("0.1")],
        [np.float32(2)],
        [None],
        [pd.NA],
        [np.nan],
    ]
    expected = [[1.0], [1.0], [0.5], [0.25], [0.1], [2.0], [np.nan], [np.nan], [np.nan]]
    assert np.array_equal(schema.read(given), expected, equal_nan=True)
    assert schema.read(np.array([[3]], dtype=object)).dtype == float
    for missing in (pd.NA, None, np.nan):
        assert np.isnan(Schema(("age",), ("number",)).read({"age": missing}).to_numpy()[0, 0])
    column = pd.DataFrame({"age": pd.Series([1, pd.NA], dtype="Int64")})
    assert np.array_equal(
        Schema(("age",), ("number",)).read(column).to_numpy()[:, 0], [1, np.nan], equal_nan=True
    )


def test_a_saved_law_is_read_as_it_was_written(tmp_path):
    rng = np.random.default_rng(0)
    for count in (2, 3, 4, 5):
        for _ in range(60):
            chances = rng.random(count)
            law = RandomizedThresholds(("a",), (np.arange(count) / count,), (chances / chances.sum(),))
            law.save(tmp_path / "law.json")
            assert (
                RandomizedThresholds.load(tmp_path / "law.json").weights[0].tolist()
                == law.weights[0].tolist()
            )


def test_a_record_by_name_may_bring_its_group():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"u": rng.normal(size=200), "sex": rng.choice(["f", "m"], 200)})
    y = (frame.u + (frame.sex == "f") + rng.normal(size=200) > 0).astype(int)
    fitted = ThresholdPostprocessor(LogisticRegression(), DemographicParity(0.02), sensitive="sex").fit(
        frame, y
    )
    policy = fitted.policy_
    for i in range(5):
        alone = policy.predict_proba(frame.iloc[i].to_dict())
        assert alone.tolist() == policy.predict_proba(frame.iloc[[i]]).tolist()
