"""The field's rules for ranking solvers: means, penalties, the virtual best, and wins of each pair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pandas import DataFrame

TIE = 0.05
"""Two solvers tie on a run if their seconds differ by this share at most, as repeated runs of one do."""

TIE_SECONDS = 0.01
"""Or by this many seconds: below, the clocks and the system decide."""


def shifted_geometric_mean(seconds: Iterable[float], shift: float = 1.0) -> float:
    """``exp(mean(log(t + shift))) - shift``.

    Parameters
    ----------
    seconds : Iterable[float]
        Nonnegative numbers.
    shift : float, default 1.0
        Keeps instances of a few milliseconds from deciding the mean; 1 or 10 seconds are usual.

    References
    ----------
    T. Achterberg, "Constraint integer programming", 2007, appendix A.3.

    Examples
    --------
    >>> round(shifted_geometric_mean([1, 7], shift=1.0), 6)
    3.0
    """
    values = np.array(list(seconds), dtype=float)
    return float(np.exp(np.log(values + shift).mean()) - shift) if values.size else float("nan")


def ranking(runs: DataFrame, limit: float) -> DataFrame:
    """Rank the solvers of each class of instances.

    Parameters
    ----------
    runs : DataFrame
        A row a run, with the columns class, instance, backend, variant (seed and order), seconds, solved,
        wrong and refused, see `SolverBenchmark.frame`.
    limit : float
        The seconds that an unsolved or wrong run counts with.

    Returns
    -------
    DataFrame
        For each class its solvers, least mean first: runs, solved, wrong, mean 1 s and mean 10 s (shifted
        geometric means), PAR2 and PAR10 (means in which a run that is not solved counts two or ten times the
        limit), first (the share of instances and variants on which none was quicker, ties included), least
        and most (of the means, shift 1 s, of single variants) and ratio (of the means, to the least).
        ``virtual best`` takes the quickest solver of each. A solver that refused an instance of a class is
        left out of it.

    Notes
    -----
    A tie is a difference of at most 5 %, or of a hundredth of a second.
    """
    import pandas as pd

    tables = []
    for kind, group in runs.groupby("class"):
        group = group[~group["backend"].isin(group.loc[group["refused"], "backend"])]
        if group.empty:
            continue
        times = group.assign(t=np.where(group["solved"], group["seconds"].clip(upper=limit), limit))
        best = times.groupby(["instance", "variant"])["t"].transform("min")
        times["first"] = times["solved"] & _ties(times["t"], best)
        virtual = times.sort_values("t").groupby(["instance", "variant"], as_index=False).first()
        rows = [_ranked(name, own, limit) for name, own in times.groupby("backend")]
        rows = sorted(rows, key=lambda row: row["mean 1 s"])
        table = pd.DataFrame([*rows, _ranked("virtual best", virtual, limit)])
        table.insert(0, "class", kind)
        tables.append(table.assign(ratio=table["mean 1 s"] / rows[0]["mean 1 s"]))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _ties(a: Sequence[float], b: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether `a` is no larger than `b`, up to a tie."""
    first, second = np.asarray(a), np.asarray(b)
    return np.asarray(first <= np.maximum(second * (1 + TIE), second + TIE_SECONDS))


def _ranked(name: object, own: DataFrame, limit: float) -> dict[str, object]:
    """The row of a solver."""
    late = ~own["solved"]
    single = own.groupby("variant")["t"].apply(shifted_geometric_mean)
    return {
        "backend": name,
        "runs": len(own),
        "solved": int(own["solved"].sum()),
        "wrong": int(own["wrong"].sum()),
        "mean 1 s": shifted_geometric_mean(own["t"]),
        "mean 10 s": shifted_geometric_mean(own["t"], 10.0),
        "PAR2": float(own["t"].where(~late, 2 * limit).mean()),
        "PAR10": float(own["t"].where(~late, 10 * limit).mean()),
        "first": float(own["first"].mean()),
        "least": float(single.min()),
        "most": float(single.max()),
    }


def wins(runs: DataFrame, limit: float) -> DataFrame:
    """Count, for each pair of solvers, the runs that the first won, tied and lost.

    Parameters
    ----------
    runs, limit
        As for `ranking`.

    Returns
    -------
    DataFrame
        The columns solver, other, wins, ties and losses, over the runs that neither refused. A run that is
        not solved loses to one that is, and ties with another one that is not.
    """
    import pandas as pd

    times = runs.assign(t=np.where(runs["solved"], runs["seconds"].clip(upper=limit), np.inf))
    times["t"] = times["t"].where(~times["refused"])
    wide = times.pivot_table(index=["instance", "variant"], columns="backend", values="t", dropna=False)
    rows = []
    for at, a in enumerate(wide.columns):
        for b in wide.columns[at + 1 :]:
            pair = wide[[a, b]].dropna()
            ahead, behind = _ties(pair[a], pair[b]), _ties(pair[b], pair[a])
            counts = ((ahead & ~behind).sum(), (ahead & behind).sum(), (behind & ~ahead).sum())
            rows.append((a, b, *map(int, counts)))
    return pd.DataFrame(rows, columns=["solver", "other", "wins", "ties", "losses"])
