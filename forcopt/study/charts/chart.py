"""A chart as numbers, and which runs count as solved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.status import Status
from forcopt.study.comparison import Comparison, contradiction
from forcopt.study.run import Run
from forcopt.study.tolerances import TOLERANCE


@dataclass(frozen=True)
class Series:
    """Points of one method, or a line through them.

    Attributes
    ----------
    name : str
        The method; series of one name have one colour.
    x, y : Array
        The points.
    kind : Literal["points", "line", "steps"], default "points"
        How they are joined; steps stay at a value until the next point.
    tips : tuple[str, ...], optional
        The text at each point; its numbers if left out.
    low, high : Array, optional
        An interval around each y, if there is one.
    dashed : bool, default False
        A fit or a bound, not a measurement.
    """

    name: str
    x: Array
    y: Array
    kind: Literal["points", "line", "steps"] = "points"
    tips: tuple[str, ...] = ()
    low: Array | None = None
    high: Array | None = None
    dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """A picture's content.

    Attributes
    ----------
    title : str
        The title.
    x, y : str
        The quantities on the axes, with units.
    series : Sequence[Series]
        The drawn objects, in order.
    log_x, log_y : bool, default False
        Whether an axis is logarithmic.
    note : str, default ""
        How to read it.
    """

    title: str
    x: str
    y: str
    series: Sequence[Series]
    log_x: bool = False
    log_y: bool = False
    note: str = ""


def naming(comparison: Comparison) -> Callable[[Run], str]:
    """The compared name of a run: ``method@backend``, or ``@backend`` if only backends are compared.

    So it is if every instance has one method only, but not all the same, as when ``"@scip"`` stands for each
    problem's own formulation: a profile of one curve for each instance and backend would show nothing.
    """
    own: dict[str, set[str]] = {}
    for row in comparison.rows:
        own.setdefault(row.instance, set()).add(row.method)
    single = all(len(found) == 1 for found in own.values()) and all(row.backend for row in comparison.rows)
    if single and len(set().union(*own.values())) > 1:
        return lambda row: f"@{row.backend}"
    return lambda row: row.label


def methods(comparison: Comparison) -> list[str]:
    """The compared methods or backends, by the names that `naming` gives, in order."""
    return list(dict.fromkeys(map(naming(comparison), comparison.rows)))


Test = tuple[str, str, int | None, int]


def tests(comparison: Comparison) -> dict[Test, dict[str, Run]]:
    """The tests of methods, each an instance with a seed and a repeat, with the run of each method there."""
    name = naming(comparison)
    found: dict[Test, dict[str, Run]] = {}
    for row in comparison.rows:
        found.setdefault((row.instance, row.fingerprint, row.seed, row.repeat), {})[name(row)] = row
    return found


def solved(run: Run, tolerance: float, others: Iterable[Run] = ()) -> bool:
    """Whether a run solved its problem.

    A run with a decision did if the decision meets the demands and its objective is within `tolerance`,
    relative, of the best known on the instance. A proof of infeasibility or unboundedness by an exact method
    counts, too, unless one of the `others` on the same instance refutes it.
    """
    if run.exact and run.status in (Status.INFEASIBLE, Status.UNBOUNDED):
        return not any(contradiction(run, other) for other in others)
    return run.solved and run.violation <= TOLERANCE and run.gap_to_best <= tolerance


def all_solved(comparison: Comparison, tolerance: float) -> dict[int, bool]:
    """Whether each run solved its problem, by its `id`."""
    return {id(row): solved(row, tolerance, rows) for rows in comparison.instances for row in rows}


def times(comparison: Comparison, tolerance: float, measure: str) -> Array:
    """The amounts, a row for each test and a column for each method, infinite if it was not solved."""
    names = methods(comparison)
    fit = all_solved(comparison, tolerance)
    found = np.full((len(all_tests := tests(comparison)), len(names)), np.inf)
    for at, runs in enumerate(all_tests.values()):
        for name, run in runs.items():
            value = run.number(measure)
            if fit[id(run)] and value is not None and not np.isnan(value):
                found[at, names.index(name)] = value
    if not np.isfinite(found).any():
        raise DeclarationError(f"no method solves any test, or none reports its {measure}")
    return found
