"""Responses to published criteria, by which all is evaluated; agents, criteria and moves in tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array, refuse_missing
from forcopt.data.dataset import check_columns, check_levels, read_table, refuse_doubles
from forcopt.data.intake import Expected, take_table
from forcopt.errors import DeclarationError
from forcopt.problem.drawing import finished, panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


@dataclass(frozen=True, eq=False)
class Responses:
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

    def plot(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """Draw the moves in the plane of the first two features; without features, who meets which criterion.

        Parameters
        ----------
        path : str or Path, optional
            The file to save the picture to; its ending gives the format.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; a new figure if left out.
        """
        figure, axes = panel(ax, (5.5, 4.5))
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
            axes.set_ylim(0, 1.05 * bottom.max() if met.size else 1.0)
        axes.legend()
        return finished(figure, path)


_EDGE_COLUMNS = ("agent", "criterion", "cost", "improves")


def checked_table(
    table: DataFrame | str | Path, subject: str, columns: tuple[str, ...], optional: tuple[str, ...] = ()
) -> DataFrame:
    """Give a data frame, or read a CSV file, and check its columns and those of `optional` that it has.

    Raises
    ------
    DeclarationError
        For another type, and for a column that is missing, stands there twice, or misses a value.
    """
    frame = read_table(table, subject)
    named = [*columns, *(column for column in optional if column in frame.columns)]
    check_columns(frame, named, subject)
    if table is not frame:  # a file: its cells are text
        names = ("agent", "criterion", "group")
        schema = {name: Expected("text" if name in names else "number") for name in named}
        frame = take_table(frame, subject, schema)
    for column in named:
        refuse_missing(frame, column, f"{subject}: ")
    return frame


def edge_fields(edges: DataFrame | str | Path, agents: DataFrame | str | Path | None) -> dict[str, Any]:
    """Read the fields of a problem with finitely many criteria; see `StrategicGraph.from_tables`.

    Raises
    ------
    DeclarationError
        For a column that is missing, an entry without a name, a number in words, an agent that is listed
        twice, an edge that is given twice, or one of an unknown agent; the row is named.
    """
    joined = checked_table(edges, "edges", _EDGE_COLUMNS)
    acting, met = _names(joined, "agent", "edges"), _names(joined, "criterion", "edges")
    refuse_doubles("edges", list(zip(acting, met, strict=True)), joined.index)
    criteria = sorted(set(met))
    fields: dict[str, Any] = {}
    if agents is None:
        names = list(dict.fromkeys(acting))
    else:
        people = checked_table(agents, "agents", ("agent",), ("weight", "value", "group"))
        names = _names(people, "agent", "agents")
        refuse_doubles("agents", names, people.index)
        for column, field in (("weight", "weights"), ("value", "value")):
            if column in people.columns:
                fields[field] = _numbers(people, column, "agents")
        if "group" in people.columns:
            fields["groups"] = np.unique(_names(people, "group", "agents"), return_inverse=True)[1]
    check_levels("edges", acting, names, rows=joined.index, rule="is no agent")
    place = {name: i for i, name in enumerate(names)}
    rows = [
        np.array([place[name] for name in acting], dtype=float),
        np.searchsorted(criteria, met).astype(float),
    ]
    rows += [_numbers(joined, column, "edges") for column in ("cost", "improves")]
    named = {"agent_names": tuple(names), "criterion_names": tuple(criteria)}
    counts = {"agents": len(names), "criteria": len(criteria)}
    return {**counts, "edges": np.stack(rows, axis=1), **named, **fields}


def _names(table: DataFrame, column: str, subject: str) -> list[str]:
    """The entries of a column as text, without blanks around it."""
    names = [str(value).strip() for value in table[column]]
    if "" in names:
        raise DeclarationError(f"{subject}: row {table.index[names.index('')]} has no {column}")
    return names


def _numbers(table: DataFrame, column: str, subject: str) -> Array:
    """The entries of a column as numbers."""
    found = []
    for row, value in table[column].items():
        try:
            found.append(float(value))
        except (TypeError, ValueError):
            raise DeclarationError(
                f"{subject}: row {row}: {column} is {value!r}; it must be a number"
            ) from None
    return np.array(found)


def moves_table(responses: Responses, agents: tuple[str, ...], criteria: tuple[str, ...]) -> DataFrame:
    """One row for each agent: the criterion that it meets (empty if none), the cost, and the outcome."""
    from pandas import DataFrame

    choice = responses.choice
    kinds = [responses.true_positive, responses.false_positive]
    outcome = np.select(kinds, ["improves", "games"], "rejected")
    met = np.array(["", *criteria], dtype=object)[choice + 1]
    return DataFrame({"criterion": met, "cost": responses.cost, "outcome": outcome}, index=list(agents))
