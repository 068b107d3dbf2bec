"""Agents, criteria and moves from tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import forcopt as fo
from forcopt.models.strategic import (
    LeastEffortClassification,
    StrategicClassification,
    StrategicLinearClassifier,
)

EDGES = pd.DataFrame(
    [
        ("ann", "essay", 1, 0),
        ("ann", "course", 2, 1),
        ("bob", "essay", 1, 1),
        ("eve", "course", 4, 1),
        ("kim", "course", 1, 0),
    ],
    columns=["agent", "criterion", "cost", "improves"],
)
AGENTS = pd.DataFrame(
    {
        "agent": ["kim", "eve", "bob", "ann", "zoe"],
        "weight": [1, 2, 3, 4, 5],
        "value": 3,
        "group": list("xyxyx"),
    }
)


def test_tables_give_the_same_problem_as_indices(tmp_path):
    p = StrategicClassification.from_tables(EDGES, AGENTS, max_false_positives=1)
    same = StrategicClassification(
        agents=5,
        criteria=2,
        edges=[(3, 1, 1, 0), (3, 0, 2, 1), (2, 1, 1, 1), (1, 0, 4, 1), (0, 0, 1, 0)],
        weights=[1, 2, 3, 4, 5],
        value=3 * np.ones(5),
        groups=[0, 1, 0, 1, 0],
        max_false_positives=1,
        agent_names=["kim", "eve", "bob", "ann", "zoe"],
        criterion_names=["course", "essay"],
    )
    assert p == same
    EDGES.to_csv(tmp_path / "edges.csv", index=False)
    AGENTS.to_csv(tmp_path / "agents.csv", index=False)
    read = StrategicClassification.from_tables(
        tmp_path / "edges.csv", tmp_path / "agents.csv", max_false_positives=1
    )
    assert read == p
    p.save(tmp_path / "p.json")
    assert fo.load(tmp_path / "p.json") == p
    cheap = LeastEffortClassification.from_tables(EDGES, value=3, min_true_positives=1)
    assert cheap.agent_names == ("ann", "bob", "eve", "kim")


def test_moves_name_who_goes_where():
    p = StrategicClassification.from_tables(EDGES, AGENTS)
    moves = p.moves([p.criterion_names.index("course")])
    assert moves.loc["ann"].tolist() == ["course", 2.0, "improves"]
    assert moves.loc["kim"].tolist() == ["course", 1.0, "games"]
    assert moves.loc["eve"].tolist() == ["", 0.0, "rejected"]
    assert p.sample(7, np.random.default_rng(0)).agent_names == ()


@pytest.mark.parametrize(
    ("edges", "agents", "words"),
    [
        (EDGES.drop(columns="cost"), None, "edges, row 1, column cost: 'cost' is a column that is missing"),
        (EDGES, AGENTS.drop(index=3), "edges, row 2, column agent: 'ann' is no agent"),
        (EDGES, pd.concat([AGENTS, AGENTS]), "agents, row 7, column agent: 'kim' is in row 2, too"),
        (EDGES.assign(agent=[None, *EDGES.agent[1:]]), None, "edges, row 2, column agent: '' is empty"),
        (
            EDGES.assign(criterion=[*EDGES.criterion[:-1], None]),
            None,
            "edges, row 6, column criterion: '' is empty",
        ),
        (EDGES, AGENTS.assign(group=None), "agents, row 2, column group: '' is empty"),
        (EDGES.assign(cost="dear"), None, "edges, row 2, column cost: 'dear' is no plain number"),
        (pd.concat([EDGES, EDGES]), None, "edges: 'ann - essay' is in rows 2, 7"),
        ([1, 2], None, "edges is a list"),
    ],
)
def test_bad_tables_are_named(edges, agents, words):
    with pytest.raises(fo.DeclarationError, match=words):
        StrategicClassification.from_tables(edges, agents)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("a,x,,1", "row 3, column cost: '' is empty"),
        ("a,x,1,", "row 3, column improves: '' is empty"),
        (",x,1,1", "row 3, column agent: '' is empty"),
        ("a,,1,1", "row 3, column criterion: '' is empty"),
        ("a,  ,1,1", "row 3, column criterion: '' is empty"),
        ("  ,x,1,1", "row 3, column agent: '' is empty"),
        ("a,x", "row 3: 'a, x' has 2 cells where the heading names 4 columns"),
        (",,,", "row 3: '' is an empty row"),
        ('a,x,"1,234",1', "row 3, column cost: '1,234' is no plain number.* mean '1234'"),
        ("a,x,1%,1", "row 3, column cost: '1%' is no plain number.* mean '0.01'"),
        (" b , x ,3,0", "'b - x' is in rows 2, 3"),
        ("\n\na,x,3,0\n\n", ""),  # blank rows
    ],
)
def test_blanks_in_a_file_are_named(tmp_path, rows, words):
    (tmp_path / "edges.csv").write_text(f"agent,criterion,cost,improves\nb,x,1,1\n{rows}\n")
    if words:
        with pytest.raises(fo.DeclarationError, match=words):
            StrategicClassification.from_tables(tmp_path / "edges.csv")
    else:
        p = StrategicClassification.from_tables(tmp_path / "edges.csv")
        assert p.edges.tolist() == [[0, 0, 1, 1], [1, 0, 3, 0]]


def test_a_column_that_stands_twice_is_refused(tmp_path):
    (tmp_path / "edges.csv").write_text("agent,criterion,cost,cost,improves,note,note\na,x,1,9,1,p,q\n")
    twice = pd.concat([EDGES, EDGES.cost], axis=1)
    for edges in (twice, tmp_path / "edges.csv"):
        with pytest.raises(fo.DeclarationError, match="column cost: 'cost' is the name of 2 columns"):
            StrategicClassification.from_tables(edges)
    (tmp_path / "edges.csv").write_text("agent,criterion,cost,improves,note,note\na,x,1,1,p,q\n")
    assert StrategicClassification.from_tables(tmp_path / "edges.csv").criterion_names == ("x",)


def test_names_with_dashes_are_two_edges():
    edges = pd.DataFrame({"agent": ["a - x", "a"], "criterion": ["y", "x - y"], "cost": 1, "improves": 1})
    assert StrategicClassification.from_tables(edges).agents == 2


def test_names_fit():
    with pytest.raises(fo.DeclarationError, match="agent_names: there must be 2, all different"):
        StrategicClassification(agents=2, criteria=1, edges=[], agent_names=["a", "a"])


def test_agents_with_features_from_a_table():
    frame = pd.DataFrame({"hours": [8, 12, 8], "savings": [4, 1, 0], "people": [2, 1, 5]})
    p = StrategicLinearClassifier(
        X=[[8, 4], [12, 1], [8, 0]],
        truth=([1, 2], 12),
        costs=[0.2, 0.4],
        improvable=[True, False],
        weights=[2, 1, 5],
        feature_names=["hours", "savings"],
    )
    turned = StrategicLinearClassifier(
        X=frame[["hours", "savings"]],
        truth=(pd.Series({"savings": 2, "hours": 1}), 12),
        costs=pd.Series({"savings": 0.4, "hours": 0.2}),
        improvable={"savings": False, "hours": True},
        weights=frame.people,
    )
    assert turned == p
    with pytest.raises(fo.DeclarationError, match="costs has the label 'saving'"):
        turned.replace(costs=pd.Series({"saving": 0.4, "hours": 0.2}))


@pytest.mark.parametrize("column", ["agent", "criterion", "cost", "group", "value"])
def test_missing_values_are_refused_in_columns_that_are_read(column):
    edges = pd.DataFrame({"agent": list("xyx"), "criterion": list("ccd"), "cost": 1.0, "improves": 1})
    agents = pd.DataFrame({"agent": list("xy"), "group": list("gh"), "value": 1.0, "note": [None, "n"]})
    StrategicClassification.from_tables(edges, agents)
    subject = "agents" if column in ("group", "value") else "edges"
    table = agents if subject == "agents" else edges
    table[column] = table[column].where(table.index != 1)
    with pytest.raises(ValueError, match=f"{subject}, row 3, column {column}: '' is empty"):
        StrategicClassification.from_tables(edges, agents)


def test_names_of_digits_in_a_file_stay_apart(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("agent,criterion,cost,improves\n07,01,1,1\n7,1,2,0\n")
    p = StrategicClassification.from_tables(path)
    assert (p.agent_names, p.criterion_names) == (("07", "7"), ("01", "1"))
