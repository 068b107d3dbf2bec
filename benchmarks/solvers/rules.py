"""The field's rules for ranking solvers: means, penalties, the virtual best, wins of pairs, integrals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.solvers.kinds import UNKNOWN
from forcopt.clock import Improvement
from forcopt.status import Status
from forcopt.study.tolerances import SAME, TOLERANCE

if TYPE_CHECKING:
    from pandas import DataFrame

    from forcopt.study.run import Run
    from forcopt.study.solver_benchmark import Known

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


def classes(runs: DataFrame) -> Iterator[tuple[str, DataFrame]]:
    """Each class of instances with the runs of the solvers that refuse none of it.

    The class of an instance is unknown if no run and no file tells its size; it is left out.
    """
    for kind, group in runs.groupby("class"):
        group = group[~group["backend"].isin(group.loc[group["refused"], "backend"])]
        if not (group.empty or str(kind).endswith(UNKNOWN)):
            yield str(kind), group


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
    for kind, group in classes(runs):
        times = group.assign(t=np.where(group["solved"], group["seconds"].clip(upper=limit), limit))
        best = times.groupby(["instance", "variant"])["t"].transform("min")
        times["first"] = times["solved"] & _ties(times["t"], best)
        best_first = times.assign(late=~times["solved"]).sort_values(["late", "t"])
        virtual = best_first.groupby(["instance", "variant"], as_index=False).first()
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


def integral(trace: Sequence[Improvement], end: float, target: float, of: str = "objective") -> float:
    """The mean over time of the gap to a known value: the primal integral, or that of the bound.

    Parameters
    ----------
    trace : Sequence[Improvement]
        Of a run, and its end.
    end : float
        The seconds at which the mean ends, such as the time limit.
    target : float
        The optimum, or the best known objective.
    of : {"objective", "bound"}
        Whose gap to the target is taken.

    Returns
    -------
    float
        Between 0 and 1; the gap is ``|v - target| / max(|v|, |target|)``, 1 before the first value and for
        one of the other sign. NaN without a target.

    References
    ----------
    T. Berthold, "Measuring the impact of primal heuristics", Operations Research Letters 41, 2013.

    Examples
    --------
    >>> from forcopt.clock import Improvement
    >>> steps = [Improvement(1.0, 20.0, 5.0), Improvement(3.0, 10.0, 10.0)]
    >>> integral(steps, 4.0, 10.0)  # a second of gap 1, two of gap 1/2, one of 0
    0.5
    """
    if not np.isfinite(target):
        return float("nan")
    points = [(0.0, np.nan), *((step.seconds, getattr(step, of)) for step in trace if step.seconds < end)]
    total = 0.0
    for (start, value), (stop, _) in zip(points, [*points[1:], (end, 0.0)], strict=True):
        off = abs(value - target)
        known = np.isfinite(value) and (value * target >= 0 or off <= SAME)
        gap = off / max(abs(value), abs(target), SAME) if known else 1.0
        total += gap * (stop - start)
    return total / end


def targets(runs: DataFrame, rows: Sequence[Run], known: Mapping[str, Known]) -> dict[str, float]:
    """By instance the value that integrals take gaps to.

    Parameters
    ----------
    runs : DataFrame
        With the columns instance and wrong.
    rows : Sequence[Run]
        The same runs.
    known : Mapping[str, Known]
        Published values.

    Returns
    -------
    dict[str, float]
        The published optimum; without one the best objective of all runs in any order, or a better published
        one.
    """
    found: dict[str, list[float]] = {}
    most: dict[str, bool] = {}
    for name, wrong, row in zip(runs["instance"], runs["wrong"], rows, strict=True):
        most[name] = row.sense == "max"
        if row.solved and not wrong and row.violation <= TOLERANCE:
            found.setdefault(name, []).append(row.objective)
    for name in most:
        if name in known and np.isfinite(known[name].objective):
            published = known[name]
            kept = [] if published.status is Status.OPTIMAL else found.get(name, [])
            found[name] = [*kept, published.objective]
    return {name: max(values) if most[name] else min(values) for name, values in found.items()}


def with_integrals(
    runs: DataFrame, rows: Sequence[Run], known: Mapping[str, Known], limit: float
) -> DataFrame:
    """Add the columns primal integral and gap integral: means of gaps over the time limit.

    Parameters
    ----------
    runs, rows, known
        As for `targets`.
    limit : float
        Seconds of each run.

    Returns
    -------
    DataFrame
        NaN for a refused run, for an instance without a target, and for solvers none of whose runs reports an
        improvement. The objective and the bound that a run ends with count from its seconds on; a run without
        a point, and a wrong one, have 1.
    """
    best = targets(runs, rows, known)
    report = {row.backend for row in rows if row.trace}
    columns: dict[str, list[float]] = {"primal integral": [], "gap integral": []}
    for run, row in zip(runs.to_dict("records"), rows, strict=True):
        told = row.backend in report and not run["refused"]
        target = best.get(run["instance"], np.nan) if told else np.nan
        trace = () if run["wrong"] else row.trace
        if row.solved and not run["wrong"]:
            ended = max([run["seconds"], *(step.seconds for step in row.trace)])
            trace = (*trace, Improvement(ended, row.objective, row.bound))
        for name, of in (("primal integral", "objective"), ("gap integral", "bound")):
            columns[name].append(integral(trace, limit, target, of))
    return runs.assign(**columns)


def integrals(runs: DataFrame) -> DataFrame:
    """The mean integrals of each class's solvers, over the runs that all of them have.

    Parameters
    ----------
    runs : DataFrame
        Of `with_integrals`.

    Returns
    -------
    DataFrame
        The columns class, backend, runs, primal integral and gap integral.
    """
    import pandas as pd

    tables = []
    for kind, group in classes(runs):
        own = group.dropna(subset="primal integral")
        solvers = own.groupby(["instance", "variant"])["backend"].transform("nunique")
        own = own[solvers == own["backend"].nunique()]
        means = own.groupby("backend")[["primal integral", "gap integral"]].mean().reset_index()
        means.insert(1, "runs", [int((own["backend"] == name).sum()) for name in means["backend"]])
        means.insert(0, "class", kind)
        tables.append(means)
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
