"""Conclusions from several rows: the best run of an instance, gaps to it, and contradicting claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from forcopt.backends.registry import backends
from forcopt.loops.solution import relative_gap
from forcopt.status import Status
from forcopt.study.run import TOLERANCE, Run

__all__ = ["best_run", "by_instance", "contradiction", "ranked", "unique_names"]


def _signed(run: Run, value: float) -> float:
    """In the sense in which less is better."""
    return value if run.sense == "min" else -value


def by_instance(rows: Sequence[Run]) -> dict[tuple[str, str], list[Run]]:
    """The rows of each instance; of a sweep that draws problems, each that was drawn is one."""
    found: dict[tuple[str, str], list[Run]] = {}
    for row in rows:
        found.setdefault((row.instance, row.fingerprint), []).append(row)
    return found


def unique_names(rows: Sequence[Run]) -> list[Run]:
    """Number the instances of one name that are different problems, as runs of several calls can be.

    A function that draws problems draws one for each seed: these keep a common name. Two problems of one name
    and one seed are different instances.
    """
    groups: dict[str, list[set[int | None]]] = {}  # by name: the seeds of each instance
    place: dict[tuple[str, str], int] = {}
    seeds: dict[tuple[str, str], set[int | None]] = {}
    for row in rows:
        seeds.setdefault((row.instance, row.fingerprint), set()).add(row.seed)
    for (name, problem), own in seeds.items():
        known = groups.setdefault(name, [])
        at = next((i for i, group in enumerate(known) if not group & own), len(known))
        if at == len(known):
            known.append(set())
        known[at] |= own
        place[name, problem] = at
    return [
        replace(row, instance=f"{row.instance} {place[row.instance, row.fingerprint] + 1}")
        if len(groups[row.instance]) > 1
        else row
        for row in rows
    ]


def best_run(rows: Sequence[Run]) -> Run | None:
    """The best objective that meets the demands; of equals a proved one, then the fastest."""
    fit = [r for r in rows if r.solved and r.violation <= TOLERANCE]
    if not fit:
        return None
    least = min(_signed(r, r.objective) for r in fit)
    # Objectives that differ by rounding only are equal.
    equal = [r for r in fit if _signed(r, r.objective) <= least + 1e-6 * max(1.0, abs(least))]
    return min(equal, key=lambda r: (r.status is not Status.OPTIMAL, r.seconds))


def ranked(rows: Sequence[Run], best_known: Mapping[str, float]) -> list[Run]:
    """The rows with their proof, and their gap to the best of their instance or to a better known value."""
    tops, groups = {}, by_instance(rows)
    for key, group in groups.items():
        found = [winner.objective] if (winner := best_run(group)) is not None else []
        found += [best_known[key[1]]] if key[1] in best_known else []
        tops[key] = (min if group[0].sense == "min" else max)(found, default=float("nan"))
    out = []
    for row in rows:
        top, gap = tops[row.instance, row.fingerprint], float("nan")
        if row.solved and not np.isnan(top):
            worse = _signed(row, row.objective) >= _signed(row, top)
            gap = relative_gap(top, row.objective) * (1 if worse else -1)
            gap = 0.0 if abs(row.objective - top) <= 1e-9 else gap  # rounding is no share of a best near 0
        proof = _proof(row, groups[row.instance, row.fingerprint])
        out.append(replace(row, gap_to_best=gap, proved_by=proof))
    return out


def _proof(row: Run, group: Sequence[Run]) -> str:
    """What proves the answer of a row: a certificate, two solvers that agree, or its own claim."""
    if row.certified or not (row.exact and row.status in _SETTLED):
        return "exact certificate" if row.certified else ""
    agree = any(
        r.exact
        and r.status is row.status
        and (r.backend or r.method) != (row.backend or row.method)
        and (row.status is not Status.OPTIMAL or _same(r, row))
        for r in group
    )
    return "two solvers" if agree else "claim"


def _same(a: Run, b: Run) -> bool:
    """Whether two optima agree, up to `TOLERANCE` and the accuracies of both backends."""
    tolerance = TOLERANCE + _accuracy(a) + _accuracy(b)
    return abs(a.objective - b.objective) <= tolerance * max(1.0, abs(a.objective))


_SETTLED = (Status.OPTIMAL, Status.INFEASIBLE, Status.UNBOUNDED)
"""Claims that a proof can have."""


def contradiction(a: Run, b: Run) -> str:
    """Describe the claim of `a` that `b` refutes: by a decision that meets the demands, or by a proof.

    Objectives are compared up to `TOLERANCE` and the accuracies of both backends.

    Returns
    -------
    str
        Empty if the two runs agree.
    """
    if a.exact and a.status is Status.UNBOUNDED:
        if b.exact and b.status is Status.INFEASIBLE:
            return f"{a.label} claims unbounded, but {b.label} claims infeasible"
        if np.isfinite(limit := _proved(b)):
            return f"{a.label} claims unbounded, but {b.label} claims the bound {limit:.8g}"
        return ""
    if not (b.solved and b.violation <= TOLERANCE):
        return ""
    if a.exact and a.status is Status.INFEASIBLE:
        return f"{a.label} claims infeasible, but {b.label} found {b.objective:.8g}"
    proved = _proved(a)
    if not np.isfinite(proved):
        return ""
    tolerance = TOLERANCE + _accuracy(a) + _accuracy(b)
    if _signed(a, proved) - _signed(a, b.objective) > tolerance * max(1.0, abs(proved)):
        return f"{a.label} claims the bound {proved:.8g}, but {b.label} found {b.objective:.8g}"
    return ""


def _accuracy(run: Run) -> float:
    """The accuracy that the run's backend documents; 0 if it has none or one that is unknown here."""
    return backends()[run.backend].accuracy if run.backend in backends() else 0.0


def _proved(run: Run) -> float:
    """The value that no decision beats, by this run's proof; NaN or infinite without one."""
    return run.objective if run.exact and run.status is Status.OPTIMAL else run.bound
