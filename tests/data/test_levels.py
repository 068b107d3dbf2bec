"""Checks of tables: unknown levels and units are named, nothing is dropped."""

import pandas as pd
import pytest

from forcopt.data import Hierarchy
from forcopt.errors import DeclarationError
from forcopt.models import ConsistentRelease

EDGES = [("land", "n1"), ("land", "n2")]


@pytest.mark.parametrize(
    ("edges", "counts", "words"),
    [
        (EDGES, {"n1": 5, "n2": 7, "zzz": 9}, "unknown unit 'zzz' of the edges"),
        (EDGES, {"n1": 5, "n2": 7, "Land": 12}, "unknown unit 'Land' of the edges; did you mean 'land'"),
        ([*EDGES, ("land", "n1")], {"n1": 5, "n2": 7}, "the edge from land to n1 is given twice"),
        ([*EDGES, ("n2", "n1")], {"n1": 5, "n2": 7}, "n1 has two parents, land and n2"),
        ([("land", 1), ("land", "1")], None, "'1' is in rows 1, 2"),
        (
            [("land", "n1"), ("land", "b"), ("b", "c")],
            {"n1": 1, "c": 2, "land": 9},
            "unit land: 9, its leaves 3",
        ),
    ],
)
def test_edges_and_counts_are_read_whole_or_refused(edges, counts, words):
    with pytest.raises(ValueError, match=words):
        Hierarchy.from_edges(edges, counts)


def test_counts_with_the_codes_in_another_order_are_refused():
    codes = ["4800100", "4800200"]
    counts = pd.Series([5, 7], index=codes[::-1])
    with pytest.raises(DeclarationError, match="another order"):
        Hierarchy.from_geoids(codes, lengths=(2, 5, 7), counts=counts)
    tree = Hierarchy.from_geoids(codes, lengths=(2, 5, 7), counts=counts.loc[codes])
    assert tree.counts.ravel().tolist() == [7, 5]


def test_counts_of_a_tree_meet_by_name():
    """A series in another order, or with one other label, went by position."""
    tree = {"parents": ([0, 0],), "names": (("r",), ("a", "b"))}
    edges = [("r", "a"), ("r", "b")]
    for labels, words in (
        ("ba", "in another order than names"),
        ("aq", "has the label 'q', which names lacks"),
    ):
        wrong = pd.Series([1, 2], index=list(labels))
        with pytest.raises(DeclarationError, match=words):
            Hierarchy(**tree, counts=wrong)
        with pytest.raises(DeclarationError, match=words):
            ConsistentRelease(Hierarchy(**tree), ([3], wrong), precision=[1, 1])
        with pytest.raises(DeclarationError, match=words.replace("'q'", "'48q'")):
            Hierarchy.from_geoids(["48a", "48b"], (2, 3), counts=wrong.rename(lambda v: f"48{v}"))
    right = pd.Series([1, 2], index=["a", "b"])
    assert Hierarchy(**tree, counts=right).counts.ravel().tolist() == [1, 2]
    assert Hierarchy.from_edges(edges, right[::-1]).counts.ravel().tolist() == [1, 2]
    by_code = Hierarchy.from_geoids(["48a", "48b"], (2, 3), {"48b": 2, "48a": 1})
    assert by_code.counts.ravel().tolist() == [1, 2]


@pytest.mark.parametrize(
    ("edges", "counts", "words"),
    [
        (None, pd.Series([1, 1, 2, 2], index=list("aabb")), "counts: 'a' is in rows 0, 1"),
        (None, {"a": "1", "b": 2}, "counts of a must be numbers"),
        (None, {"a": [1, 2], "b": 2}, r"counts of b have shape \(\), and those of a \(2,\)"),
        (None, {"a": float("nan"), "b": 2}, "counts of a is nan"),
        ([("r", None), ("r", "b")], {"b": 2}, r"edge 0 is \('r', None\); it must be a parent and a child"),
        ([("r", "a", 1)], {"a": 2}, "it must be a parent and a child"),
        ([(0, 1), (0, 2)], {"1": 1, 2: 2, "0": 4}, "unit 0: 4, its leaves 3"),  # by their text
    ],
)
def test_counts_and_edges_that_are_wrong_are_named(edges, counts, words):
    with pytest.raises(DeclarationError, match=words):
        Hierarchy.from_edges(edges or [("r", "a"), ("r", "b")], counts)


def test_edges_of_a_frame():
    frame = pd.DataFrame({"up": [0, 0], "down": [1, 2]})
    assert Hierarchy.from_edges(frame, {"1": 5, 2: 6}).counts.ravel().tolist() == [5, 6]
