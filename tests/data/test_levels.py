"""Checks of tables: unknown levels and units are named, nothing is dropped."""

import pandas as pd
import pytest

from forcopt.data import Hierarchy
from forcopt.data.dataset import check_levels, nearest_level
from forcopt.errors import DeclarationError

EDGES = [("land", "n1"), ("land", "n2")]


def test_unknown_levels_are_named_with_rows_and_the_nearest():
    check_levels("region", ["a", "b"], ["a", "b", "c"])
    with pytest.raises(DeclarationError, match=r"'Femle' \(rows 1, 2\) .* mean 'female'.*; 'x' \(row 3\)"):
        check_levels("sex", ["male", "Femle", "Femle", "x"], ["female", "male"])
    assert nearest_level("NORTH ", ["north", "south"]) == "north"


@pytest.mark.parametrize(
    ("edges", "counts", "words"),
    [
        (EDGES, {"n1": 5, "n2": 7, "zzz": 9}, "'zzz' .* is no unit of the edges"),
        (EDGES, {"n1": 5, "n2": 7, "Land": 12}, "'Land' .* did you mean 'land'"),
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
    with pytest.raises(DeclarationError, match=words):
        Hierarchy.from_edges(edges, counts)


def test_counts_with_the_codes_in_another_order_are_refused():
    codes = ["4800100", "4800200"]
    counts = pd.Series([5, 7], index=codes[::-1])
    with pytest.raises(DeclarationError, match="another order"):
        Hierarchy.from_geoids(codes, lengths=(2, 5, 7), counts=counts)
    tree = Hierarchy.from_geoids(codes, lengths=(2, 5, 7), counts=counts.loc[codes])
    assert tree.counts.ravel().tolist() == [7, 5]
