"""Agents, criteria and moves from tables and to tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array, refuse_missing
from forcopt.data.dataset import check_columns, read_table
from forcopt.data.levels import check_levels, refuse_doubles
from forcopt.errors import DeclarationError

if TYPE_CHECKING:
    from pandas import DataFrame

    from forcopt.models.strategic.responses import Responses

__all__ = ["checked_table", "edge_fields", "moves_table"]

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
    names = dict.fromkeys(("agent", "criterion", "group"), str)  # 007 is a name
    frame = read_table(table, subject, dtype=names)
    named = [*columns, *(column for column in optional if column in frame.columns)]
    check_columns(frame, named, subject)
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
        _numbers(joined, "cost", "edges"),
        _numbers(joined, "improves", "edges"),
    ]
    return {
        "agents": len(names),
        "criteria": len(criteria),
        "edges": np.stack(rows, axis=1),
        "agent_names": tuple(names),
        "criterion_names": tuple(criteria),
        **fields,
    }


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
    outcome = np.where(
        responses.true_positive, "improves", np.where(responses.false_positive, "games", "rejected")
    )
    met = np.array(["", *criteria], dtype=object)[choice + 1]
    return DataFrame({"criterion": met, "cost": responses.cost, "outcome": outcome}, index=list(agents))
