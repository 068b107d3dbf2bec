"""Responses to published criteria, by which all is evaluated; agents, criteria and moves in tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array
from forcopt.data.dataset import refuse_doubles
from forcopt.data.intake import DOUBLED, Expected, read_rows, take_table
from forcopt.errors import required
from forcopt.problem.drawing import Drawn, titled, whole_ticks

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False)
class Responses(Drawn):
    """Each agent's best response to published criteria; all arrays have shape ``(n,)``.

    Attributes
    ----------
    choice : Array
        The criterion (or target) that the agent meets, -1 if it is rejected; 0 for any accepted agent where
        the criterion is a linear classifier.
    cost : Array
        The cost of the move to the agent; 0 if it is rejected.
    true_positive : Array
        Accepted and, after the move, truly qualified (the agent improved, or was qualified).
    false_positive : Array
        Accepted and not qualified (the agent gamed).
    weights : Array
        How much each agent counts.
    start, position : Array, optional
        Where agents with features are before and after, shape ``(n, d)``; else None.

    Examples
    --------
    >>> from forcopt.models import StrategicClassification
    >>> edges = [[0, 0, 0.5, 1], [0, 1, 0.25, 0], [1, 1, 0.5, 1]]  # agent, criterion, cost, improves
    >>> p = StrategicClassification(agents=2, criteria=2, edges=edges)
    >>> r = p.simulate([0, 1])
    >>> r.choice.tolist(), r.true_positives, r.false_positives, r.effort
    ([1, 1], 1.0, 1.0, 0.75)
    """

    choice: Array
    cost: Array
    true_positive: Array
    false_positive: Array
    weights: Array
    start: Array | None = field(default=None, repr=False)
    position: Array | None = field(default=None, repr=False)

    @property
    def true_positives(self) -> float:
        """The weight of the agents that are accepted and qualified."""
        return float(self.weights[self.true_positive].sum())

    @property
    def false_positives(self) -> float:
        """The weight of the agents that are accepted and not qualified."""
        return float(self.weights[self.false_positive].sum())

    @property
    def effort(self) -> float:
        """The weighted sum of the moves' costs."""
        return float(self.weights @ self.cost)

    def __repr__(self) -> str:
        rejected = float(self.weights[self.choice < 0].sum())
        counts = f"{self.true_positives:g} true positives, {self.false_positives:g} false positives"
        return f"<{len(self.choice)} agents: {counts}, {rejected:g} rejected, effort {self.effort:g}>"

    _figure_size = (5.5, 4.5)

    def _draw(self, axes: Any) -> None:
        """Draw the moves in the plane of two features; without features, who meets which criterion."""
        good, bad = (self.weights[mask].sum() for mask in (self.true_positive, self.false_positive))
        titled(axes, f"{good:.4g} improve and are accepted; {bad:.4g} are accepted and do not improve")
        kinds = (
            ("true positive", self.true_positive, "#0072B2", "o"),
            ("false positive", self.false_positive, "#D55E00", "D"),
        )
        if self.start is not None and self.position is not None and self.start.shape[1] >= 2:
            rejected = self.choice < 0
            axes.plot(*self.start[rejected, :2].T, "s", color="0.6", label="rejected")
            for label, mask, color, marker in kinds:
                before, after = self.start[mask, :2], self.position[mask, :2]
                axes.plot(*before.T, marker, color=color, markerfacecolor="white")
                axes.plot(*after.T, marker, color=color, label=label)
                for a, b in zip(before, after, strict=True):
                    axes.annotate("", b, a, arrowprops={"arrowstyle": "->", "color": color})
            axes.set(xlabel="feature 0", ylabel="feature 1")
        else:
            met = np.unique(self.choice[self.choice >= 0])
            bottom = np.zeros(len(met))
            for label, mask, color, _ in kinds:
                total = np.array([self.weights[mask & (self.choice == p)].sum() for p in met])
                axes.bar([str(p) for p in met], total, bottom=bottom, color=color, label=label)
                bottom += total
            axes.set(xlabel="criterion", ylabel="weight of agents")
            whole_ticks(axes.yaxis)
            axes.set_ylim(0, 1.05 * bottom.max() if met.size else 1.0)
        axes.legend()


def edge_fields(edges: DataFrame | str | Path, agents: DataFrame | str | Path | None) -> dict[str, Any]:
    """Read the fields of a problem with finitely many criteria; see `StrategicGraph.from_tables`.

    Raises
    ------
    DeclarationError
        For a column that is missing, an entry without a name, a number in words, an agent that is listed
        twice, an edge that is given twice, or one of an unknown agent; the row is named.
    """
    pd = required("pandas", "from_tables")

    text, number = Expected("text"), Expected("number", usual=False)
    acting, fields = text, dict[str, Any]()
    if agents is not None:
        given = read_rows(agents, "agents")
        known = {"weight": number, "value": number, "group": text}
        known = {name: kind for name, kind in known.items() if name in given.columns}
        people = take_table(given, "agents", {"agent": Expected("key"), **known})
        names = people.agent.tolist()
        acting = Expected("group", tuple(names), rule="is no agent")
        for column, field in (("weight", "weights"), ("value", "value")):
            if column in people.columns:
                fields[field] = people[column].to_numpy()
        if "group" in people.columns:
            fields["groups"] = np.unique(people.group, return_inverse=True)[1]
    if isinstance(edges, pd.DataFrame) and "improves" in edges.columns:
        edges = edges.astype({"improves": float}, errors="ignore")  # truth values
    schema = {"agent": acting, "criterion": text, "cost": number, "improves": number}
    joined = take_table(edges, "edges", schema, {DOUBLED: DOUBLED})
    refuse_doubles("edges", list(zip(joined.agent, joined.criterion, strict=True)), joined.index)
    criteria = sorted(set(joined.criterion))
    if agents is None:
        names = list(dict.fromkeys(joined.agent))
    place = {name: i for i, name in enumerate(names)}
    criterion = np.searchsorted(criteria, joined.criterion)
    rows = [joined.agent.map(place), criterion, joined.cost, joined.improves]
    named = {"agent_names": tuple(names), "criterion_names": tuple(criteria)}
    counts = {"agents": len(names), "criteria": len(criteria)}
    return {**counts, "edges": np.stack(rows, axis=1).astype(float), **named, **fields}


def moves_table(responses: Responses, agents: tuple[str, ...], criteria: tuple[str, ...]) -> DataFrame:
    """One row for each agent: the criterion that it meets (empty if none), the cost, and the outcome."""
    pd = required("pandas", "a table of moves")

    choice = responses.choice
    kinds = [responses.true_positive, responses.false_positive]
    outcome = np.select(kinds, ["improves", "games"], "rejected")
    met = np.array(["", *criteria], dtype=object)[choice + 1]
    return pd.DataFrame({"criterion": met, "cost": responses.cost, "outcome": outcome}, index=list(agents))
