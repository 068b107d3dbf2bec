"""Conclusions from several rows: the best run of an instance, gaps to it, and contradicting claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from forcopt.loops.solution import relative_gap
from forcopt.status import Status
from forcopt.study.run import TOLERANCE, Run

__all__ = ["best_run", "by_instance", "contradiction", "ranked"]


def _signed(run: Run, value: float) -> float:
    """In the sense in which less is better."""
    return value if run.sense == "min" else -value


def by_instance(rows: Sequence[Run]) -> dict[tuple[str, str], list[Run]]:
    """The rows of each instance; of a sweep that draws problems, each that was drawn is one."""
    found: dict[tuple[str, str], list[Run]] = {}
    for row in rows:
        found.setdefault((row.instance, row.fingerprint), []).append(row)
    return found


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
    """The rows with their gap to the best of their instance, or to a better known value of it."""
    tops = {}
    for key, group in by_instance(rows).items():
        found = [winner.objective] if (winner := best_run(group)) is not None else []
        found += [best_known[key[1]]] if key[1] in best_known else []
        tops[key] = (min if group[0].sense == "min" else max)(found, default=float("nan"))
    out = []
    for row in rows:
        top, gap = tops[row.instance, row.fingerprint], float("nan")
        if row.solved and not np.isnan(top):
            worse = _signed(row, row.objective) >= _signed(row, top)
            gap = relative_gap(top, row.objective) * (1 if worse else -1)
        out.append(replace(row, gap_to_best=gap))
    return out


def contradiction(a: Run, b: Run) -> str:
    """Describe the claim of `a` that an answer of `b` refutes; empty if there is none."""
    if not b.solved or b.violation > TOLERANCE:
        return ""
    if a.exact and a.status is Status.INFEASIBLE:
        return f"{a.label} says infeasible, but {b.label} found {b.objective:.8g}"
    proved = a.objective if a.exact and a.status is Status.OPTIMAL else a.bound
    if not np.isfinite(proved):
        return ""
    if _signed(a, proved) - _signed(a, b.objective) > TOLERANCE * max(1.0, abs(proved)):
        return f"{a.label} says that nothing beats {proved:.8g}, but {b.label} found {b.objective:.8g}"
    return ""
