"""Agents, criteria and moves from tables and to tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import refuse_missing
from forcopt.data.dataset import read_csv
from forcopt.errors import DeclarationError

if TYPE_CHECKING:
    from pandas import DataFrame, Series

    from forcopt.models.strategic.responses import Responses

__all__ = ["edge_fields", "moves_table", "read_table"]

_EDGE_COLUMNS = ("agent", "criterion", "cost", "improves")


def read_table(
    table: DataFrame | str | Path, subject: str, columns: tuple[str, ...], optional: tuple[str, ...] = ()
) -> DataFrame:
    """Give a data frame, or read a CSV file, and check its columns and those of `optional` that it has.

    Raises
    ------
    DeclarationError
        For another type, and for a column that is missing or misses a value.
    """
    import pandas as pd

    names = dict.fromkeys(("agent", "criterion", "group"), str)  # 007 is a name
    frame = read_csv(table, dtype=names) if isinstance(table, str | Path) else table
    if not isinstance(frame, pd.DataFrame):
        raise DeclarationError(f"{subject} is a {type(table).__name__}; it must be a DataFrame or a CSV file")
    for column in columns:
        if column not in frame.columns:
            raise DeclarationError(
                f"{subject}: there is no column {column!r}; the columns are "
                f"{', '.join(map(str, frame.columns))}"
            )
    for column in (*columns, *optional):
        if column in frame.columns:
            refuse_missing(frame, column, f"{subject}: ")
    return frame


def edge_fields(edges: DataFrame | str | Path, agents: DataFrame | str | Path | None) -> dict[str, Any]:
    """Read the fields of a problem with finitely many criteria; see `StrategicGraph.from_tables`.

    Raises
    ------
    DeclarationError
        For a column that is missing, an entry without a name, an agent that is listed twice, or an edge of an
        unknown agent.
    """
    joined = read_table(edges, "edges", _EDGE_COLUMNS)
    acting, met = joined["agent"].astype(str), joined["criterion"].astype(str)
    criteria = sorted(met.unique())
    fields: dict[str, Any] = {}
    if agents is None:
        names = acting.drop_duplicates().tolist()
    else:
        people = read_table(agents, "agents", ("agent",), ("weight", "value", "group"))
        listed = people["agent"].astype(str)
        if listed.duplicated().any():
            raise DeclarationError(f"agents: {listed[listed.duplicated()].iloc[0]!r} is listed twice")
        names = listed.tolist()
        for column, field in (("weight", "weights"), ("value", "value")):
            if column in people.columns:
                fields[field] = _numbers(people[column], "agents")
        if "group" in people.columns:
            fields["groups"] = np.unique(people["group"].astype(str), return_inverse=True)[1]
    place = {name: i for i, name in enumerate(names)}
    unknown = [name for name in acting if name not in place]
    if unknown:
        raise DeclarationError(f"edges: there is no agent {unknown[0]!r}")
    rows = [
        acting.map(place).to_numpy(dtype=float),
        np.searchsorted(criteria, met).astype(float),
        _numbers(joined["cost"], "edges"),
        _numbers(joined["improves"], "edges"),
    ]
    return {
        "agents": len(names),
        "criteria": len(criteria),
        "edges": np.stack(rows, axis=1),
        "agent_names": tuple(names),
        "criterion_names": tuple(criteria),
        **fields,
    }


def _numbers(column: Series[Any], subject: str) -> Any:
    try:
        return column.to_numpy(dtype=float)
    except (TypeError, ValueError) as error:
        raise DeclarationError(f"{subject}: the column {column.name!r} holds no numbers: {error}") from None


def moves_table(responses: Responses, agents: tuple[str, ...], criteria: tuple[str, ...]) -> DataFrame:
    """One row for each agent: the criterion that it meets (empty if none), the cost, and the outcome."""
    from pandas import DataFrame

    choice = responses.choice
    outcome = np.where(
        responses.true_positive, "improves", np.where(responses.false_positive, "games", "rejected")
    )
    met = np.array(["", *criteria], dtype=object)[choice + 1]
    return DataFrame({"criterion": met, "cost": responses.cost, "outcome": outcome}, index=list(agents))
