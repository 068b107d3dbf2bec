"""Gap against time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.study.charts.chart import Chart, Series, methods, naming
from forcopt.study.run import TOLERANCE, Run

if TYPE_CHECKING:
    from forcopt.study.comparison import Comparison

__all__ = ["primal_gap", "progress"]


def primal_gap(objective: Array, best: float) -> Array:
    """``|objective - best| / max(|objective|, |best|)``, from 0 to 1; 1 without a point or with another sign.

    References
    ----------
    Berthold, "Measuring the impact of primal heuristics", Operations Research Letters 41, 2013.

    Examples
    --------
    >>> primal_gap(np.array([10.0, 20.0, -5.0, np.nan]), 10.0).tolist()
    [0.0, 0.5, 1.0, 1.0]
    """
    largest = np.maximum(np.abs(objective), abs(best))
    with np.errstate(invalid="ignore"):
        gap = np.abs(objective - best) / np.where(largest > 0, largest, 1.0)
    gap[(np.sign(objective) == -np.sign(best)) & (best != 0) | ~np.isfinite(objective)] = 1.0
    return np.minimum(gap, 1.0)


def progress(comparison: Comparison) -> Chart:
    """The distance of a method from the best known value over time: the mean of its runs' primal gaps.

    It needs runs with a `trace`; one without counts as having found nothing before its end. Runs on
    instances for which no run found an answer are left out, and so are runs that did not take place.

    Parameters
    ----------
    comparison : Comparison
        With runs that have a `trace`.

    Returns
    -------
    Chart
        One step function for each method.

    Raises
    ------
    DeclarationError
        If no instance has an answer.

    Examples
    --------
    >>> from forcopt.clock import Improvement
    >>> from forcopt.status import Status
    >>> from forcopt.study import Comparison, Run
    >>> trace = (Improvement(1.0, 8.0, 2.0), Improvement(2.0, 4.0, 4.0))
    >>> known = {"exact": True, "violation": 0.0, "objective": 4.0, "seconds": 2.0}
    >>> run = Run("i", "a", "", Status.OPTIMAL, "min", trace=trace, **known)
    >>> progress(Comparison([run])).series[0].y.tolist()
    [1.0, 0.5, 0.0]
    """
    best = {(w.instance, w.fingerprint): w.objective for w in comparison.winners}
    rows = [r for r in comparison.rows if (r.instance, r.fingerprint) in best and r.status is not None]
    if not rows:
        raise DeclarationError("no instance has an answer to measure a gap to")
    end = max((r.seconds for r in rows if np.isfinite(r.seconds)), default=1.0)
    label = naming(comparison)
    steps = {
        name: [_steps(r, best[r.instance, r.fingerprint]) for r in rows if label(r) == name]
        for name in methods(comparison)
    }
    moments = np.unique(np.concatenate([at for runs in steps.values() for at, _ in runs]))
    wide = bool(len(moments) and end > 100 * moments[0] > 0)
    begin = moments[0] / 2 if wide else 0.0  # a logarithmic axis has no 0
    series = []
    for name, runs in steps.items():
        if not runs:
            continue
        moments = np.unique(np.concatenate([[begin], *(at for at, _ in runs), [end]]))
        means = np.mean([_at(moments, at, gaps) for at, gaps in runs], axis=0)
        tips = tuple(f"{name}: gap {g:.3%} after {t:.4g} s" for t, g in zip(moments, means, strict=True))
        series.append(Series(name, moments, means, "steps", tips))
    note = "The gap of a run's best answer until then to the best of all runs; the mean over all repeats."
    return Chart("Gap against time", "seconds", "primal gap", series, log_x=wide, note=note)


def _steps(run: Run, best: float) -> tuple[Array, Array]:
    """The times at which the gap of a run changes, and its new values."""
    known = [(step.seconds, step.objective) for step in run.trace if np.isfinite(step.objective)]
    if run.solved and run.violation <= TOLERANCE:
        known.append((run.seconds, run.objective))
    if not known:
        return np.empty(0), np.empty(0)
    seconds, objective = map(np.array, zip(*sorted(known), strict=True))
    return seconds, np.minimum.accumulate(primal_gap(objective, best))


def _at(moments: Array, seconds: Array, gaps: Array) -> Array:
    return np.asarray(np.concatenate([[1.0], gaps])[np.searchsorted(seconds, moments, side="right")])
