import numpy as np
import pandas as pd
import pytest

from forcopt import DeclarationError
from forcopt.fairness import read_binary, read_groups, tabulate
from forcopt.problem.estimator import crossings


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (["b", "a", "b"], ("a", "b")),
        (np.array([10, 9, 10]), ("9", "10")),  # numbers keep their order
        ([True, False, True], ("False", "True")),
        (pd.Series(["b", "a", "b"], index=[7, 8, 9]), ("a", "b")),
        (pd.Series(["b", "a", "b"], dtype="category"), ("a", "b")),
        (pd.Series([2, 1, 2], dtype="Int64"), ("1", "2")),
    ],
)
def test_groups_of_any_type(values, names):
    codes, found = read_groups(values)
    assert codes.tolist() == [1, 0, 1]
    assert found == names


@pytest.mark.parametrize("values", [[1, "1", 0], ["True", True, False], pd.Series([2.5, "2.5", "a"])])
def test_two_values_with_one_name_are_refused(values):
    with pytest.raises(DeclarationError, match="which have one name; make them of one type"):
        read_groups(values)
    with pytest.raises(DeclarationError, match=r"sensitive_features holds .* which have one name"):
        crossings([[value, "x"] for value in values])


def test_equal_values_are_one_group():
    assert read_groups(["a", 1, 1.0, True])[1] == ("1", "a")
    assert crossings(pd.DataFrame({"a": [1, 1.0, None], "b": ["u", "v", "u"]}, dtype=object)) == [
        ("1", "u"),
        ("1", "v"),
        (None, "u"),
    ]


def test_a_text_is_a_number_only_as_python_writes_it():
    """A text is known by its number if str of the number, as a float or whole, gives the text back."""
    for name in ("10", "0.5", "1e+16", "10000000000000000", "-3"):
        number = float(name)
        texts = "10|10.0|1E1|010|1_0| 10|10 |+10|10.|0.5|.5|5e-1|1e+16|1e16|-3|-3.0|- 3|"
        for text in f"{texts}10000000000000000|10000000000000001|\u0661\u0660".split("|"):
            spelt = {str(number)} | ({str(int(number))} if number.is_integer() else set())
            if text == name or text in spelt:
                assert read_groups([text], (name, "x"))[0].tolist() == [0]
            else:
                with pytest.raises(DeclarationError, match="groups holds"):
                    read_groups([text], (name, "x"))
    with pytest.raises(DeclarationError, match="groups holds '10'"):
        read_groups([10], ("010", "x"))


def test_the_group_of_a_record_among_known_names_does_not_depend_on_the_others():
    names = ("1", "2.5", "0")
    values = [1, "1", 1.0, True, np.int64(1), "1.0", 2.5, "2.5", np.float64(2.5), False, "0"]
    alone = [read_groups([value], names)[0][0] for value in values]
    assert alone == [0] * 6 + [1] * 3 + [2] * 2
    for batch in (values, values[::-1], np.array(values, dtype=object), pd.Series(values, dtype=object)):
        expected = alone[::-1] if batch is not values and isinstance(batch, list) else alone
        assert read_groups(batch, names)[0].tolist() == expected


def test_groups_among_known_names():
    assert read_groups(["c", "a"], ("c", "b", "a"))[0].tolist() == [0, 2]
    with pytest.raises(DeclarationError, match="'d'; the groups are c, b, a"):
        read_groups(["c", "d"], ("c", "b", "a"))


@pytest.mark.parametrize(
    "values",
    [
        ["a", None],
        pd.Series(["a", None]),
        [1.0, float("nan")],
        ["a", float("nan")],  # numpy reads a list of text and NaN as text
        ("a", float("nan")),
        [1, float("nan"), "a"],
        pd.Series(["a", pd.NA], dtype="category"),
        pd.Series([1, pd.NA], dtype="Int64"),
        pd.Series([pd.Timestamp(0), pd.NaT]),
    ],
)
def test_a_missing_group_is_named(values):
    with pytest.raises(DeclarationError, match=r"groups\[1\] is missing"):
        read_groups(values)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([0, 1, 2], r"labels\[2\] is 2; it must be 0 or 1"),
        ([0, 0.5], r"labels\[1\] is 0.5; it must be 0 or 1"),
        ([0, float("nan")], r"labels\[1\] is nan; it must be finite"),
        (["yes", "no"], "labels holds"),
        ([[0, 1]], "labels has shape"),
        (pd.Series([1, pd.NA], dtype="Int64"), r"labels\[1\] is nan"),
    ],
)
def test_anything_but_zero_and_one_is_refused(values, said):
    with pytest.raises(DeclarationError, match=said):
        read_binary(values, "labels")


def test_tabulate_counts_every_record_once():
    rng = np.random.default_rng(0)
    predictions, groups, labels = (
        rng.integers(2, size=50),
        rng.choice(list("xyz"), 50),
        rng.integers(2, size=50),
    )
    counts, names = tabulate(predictions > 0, pd.Series(groups), labels)
    assert names == ("x", "y", "z")
    for h, a, y in np.ndindex(counts.shape):
        assert counts[h, a, y] == np.sum((predictions == h) & (groups == names[a]) & (labels == y))


def test_columns_must_match():
    with pytest.raises(DeclarationError, match="predictions has 2, groups has 1, labels has 2"):
        tabulate([0, 1], ["a"], [0, 1])
    with pytest.raises(DeclarationError, match="empty"):
        tabulate([], [], [])
    labels = pd.Series([1, 0], [1, 0])
    with pytest.raises(DeclarationError, match="records: labels has the labels of groups in another order"):
        tabulate([0, 1], pd.Series(["a", "b"]), labels)
    assert tabulate([0, 1], pd.Series(["a", "b"]), labels.loc[[0, 1]])[0][0, 0, 0] == 1


def test_dates_have_one_name_however_they_are_held():
    days = ["2020-01-02", "2020-01-01"]
    stamps = pd.to_datetime(days)
    for held in (
        stamps,
        pd.Series(stamps).astype("datetime64[ns]"),
        list(stamps),
        np.array(days, "datetime64[D]"),
    ):
        codes, names = read_groups(held)
        assert codes.tolist() == [1, 0] and names == ("2020-01-01 00:00:00", "2020-01-02 00:00:00")
        assert read_groups(held[:1], names)[0].tolist() == [1]
    with pytest.raises(DeclarationError, match=r"groups\[1\] is missing"):
        read_groups(pd.to_datetime(["2020-01-02", None]))
