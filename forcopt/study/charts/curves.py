"""Charts of what methods solve: profiles, cactus plots, scaling, gap against time, Pareto fronts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError, check_known
from forcopt.study.charts.chart import Chart, Series, all_solved, methods, naming, times
from forcopt.study.comparison import Comparison
from forcopt.study.estimates import summary
from forcopt.study.run import Run
from forcopt.study.tolerances import TOLERANCE


def profile(comparison: Comparison, *, measure: str = "seconds", tolerance: float = 1e-4) -> Chart:
    """The share of the tests on which a method takes at most a given multiple of the best one's amount.

    At 1 stands how often a method is the best, at the right how often it solves at all. The curves of more
    than two methods depend on each other: leave one out, and two others may change places (Gould and Scott,
    "A Note on Performance Profiles for Benchmarking Software", 2016); so it shows the best, not a ranking.

    Parameters
    ----------
    comparison : Comparison
        Tests are its instances, with each seed and repeat.
    measure : str, default "seconds"
        A number of each run of which less is better: ``seconds``, ``peak_memory``, ``iterations``.
    tolerance : float, default 0.0001
        How far, relative to it, an objective may be from the instance's best to count as solved.

    Returns
    -------
    Chart
        One step function for each method.

    Raises
    ------
    DeclarationError
        If no method solves any test, or a measure is negative.

    References
    ----------
    Dolan and Moré, "Benchmarking optimization software with performance profiles", Mathematical Programming
    91, 2002, section 2.

    Examples
    --------
    >>> from forcopt.status import Status
    >>> from forcopt.study import Comparison, Run
    >>> runs = [
    ...     Run("i", m, "", Status.OPTIMAL, "min", exact=True, violation=0.0, objective=4.0, seconds=s)
    ...     for m, s in [("a", 1.0), ("b", 2.0)]
    ... ]
    >>> profile(Comparison(runs)).series[1].x.round(3).tolist()
    [1.0, 2.0, 2.2]
    """
    comparison.numbers(measure)  # raises without a number
    taken = times(comparison, tolerance, measure)
    if (taken < 0).any():
        raise DeclarationError(f"{measure} is negative for some run; a profile divides by the least")
    least = taken.min(axis=1, initial=np.inf)
    # Of two zeros none is worse; a result that one method gets at cost 0 costs the others infinitely more.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(taken == least[:, None], 1.0, taken / least[:, None])
    ratios[~np.isfinite(taken)] = np.inf
    end = 1.1 * max(float(ratios[np.isfinite(ratios)].max()), 1.1)
    series = []
    for column, name in enumerate(methods(comparison)):
        finite = np.sort(ratios[np.isfinite(ratios[:, column]), column])
        shares = np.arange(1, len(finite) + 1) / len(ratios)
        x = np.concatenate([[1.0], finite, [end]])
        y = np.concatenate([[0.0], shares, [shares[-1] if len(finite) else 0.0]])
        tips = tuple(f"{name}: within {r:.4g} times the best on {s:.1%}" for r, s in zip(x, y, strict=True))
        series.append(Series(name, x, y, "steps", tips))
    return Chart(
        "Performance profile",
        f"{measure}, as a multiple of the best method's",
        "share of the tests",
        series,
        log_x=True,
        note=f"{len(ratios)} tests; solved means within {tolerance:g} of the best objective, relative. "
        "Of more than two methods it shows the best, but does not rank the others.",
    )


def cactus(comparison: Comparison, *, measure: str = "seconds", tolerance: float = 1e-4) -> Chart:
    """The number of tests that a method solves within a given amount for each.

    Parameters
    ----------
    comparison : Comparison
        Tests are its instances, with each seed and repeat.
    measure : str, default "seconds"
        A number of each run of which less is better.
    tolerance : float, default 0.0001
        How far, relative to it, an objective may be from the instance's best to count as solved.

    Returns
    -------
    Chart
        One line for each method.

    Raises
    ------
    DeclarationError
        If no method solves any test.

    Examples
    --------
    >>> from forcopt.status import Status
    >>> from forcopt.study import Comparison, Run
    >>> known = {"exact": True, "violation": 0.0, "objective": 4.0}
    >>> runs = [Run(f"n{i}", "a", "", Status.OPTIMAL, "min", seconds=float(i), **known) for i in (1, 3)]
    >>> cactus(Comparison(runs)).series[0].y.tolist()
    [1.0, 3.0]
    """
    values = comparison.numbers(measure)
    taken = times(comparison, tolerance, measure)
    series = []
    for column, name in enumerate(methods(comparison)):
        costs = np.sort(taken[np.isfinite(taken[:, column]), column])
        count = np.arange(1.0, len(costs) + 1)
        tips = tuple(f"{name}: {int(n)} tests, each up to {c:.4g}" for n, c in zip(count, costs, strict=True))
        series.append(Series(name, count, costs, "line", tips))
    note = f"{len(taken)} tests; solved means within {tolerance:g} of the best objective, relative."
    positive = bool((values[np.isfinite(values)] > 0).all())
    return Chart("Cactus plot", "tests solved", f"{measure}, at most", series, log_y=positive, note=note)


def scaling(
    comparison: Comparison,
    *,
    size: str = "size",
    measure: str = "seconds",
    tolerance: float = 1e-4,
    level: float = 0.95,
) -> Chart:
    """The cost of solved runs against the size of their problems, and the power that fits best.

    The exponent comes from least squares in the logarithms, with Student's interval. An unsolved problem is
    not in it, so where only the easy large instances are solved it comes out too small.

    Parameters
    ----------
    comparison : Comparison
        Of instances of at least two sizes, and for an interval three runs.
    size : str, default "size"
        A number of each run: ``size`` (numbers in the declaration), ``columns``, ``nonzeros``, or a parameter
        of a sweep.
    measure : str, default "seconds"
        The fitted quantity.
    tolerance : float, default 0.0001
        How far, relative to it, an objective may be from the instance's best to count as solved.
    level : float, default 0.95
        Of the intervals of the exponents.

    Returns
    -------
    Chart
        Points and a fitted line for each method.

    Raises
    ------
    DeclarationError
        If no run that solved has both numbers, positive.

    Examples
    --------
    >>> from forcopt.status import Status
    >>> from forcopt.study import Comparison, Run
    >>> known = {"exact": True, "violation": 0.0, "objective": 4.0}
    >>> runs = [
    ...     Run(f"n{n}", "a", "", Status.OPTIMAL, "min", size=n, seconds=float(n**2), **known)
    ...     for n in (1, 2, 4)
    ... ]
    >>> scaling(Comparison(runs)).note
    'Fitted (95% intervals): a: size^2.00 ± 0.'
    """
    from scipy.stats import linregress, t

    x, y = comparison.numbers(size), comparison.numbers(measure)
    fit = all_solved(comparison, tolerance)
    fine = np.array([fit[id(r)] for r in comparison.rows], np.bool_) & (x > 0) & (y > 0)
    fine &= np.isfinite(x) & np.isfinite(y)
    if not fine.any():
        raise DeclarationError(f"no run that solved its problem has a positive {size} and {measure}")
    label = naming(comparison)
    series, fits = [], []
    for name in methods(comparison):
        own = [i for i, r in enumerate(comparison.rows) if label(r) == name and fine[i]]
        if not own:
            continue
        tips = tuple(f"{name} on {comparison.rows[i].instance}: {x[i]:g}, {y[i]:.4g}" for i in own)
        series.append(Series(name, x[own], y[own], "points", tips))
        sizes = np.unique(x[own])
        if len(sizes) < 2:
            continue
        line_fit = linregress(np.log(x[own]), np.log(y[own]))
        reach = t.ppf((1 + level) / 2, len(own) - 2) * line_fit.stderr if len(own) > 2 else np.nan
        spread = f" ± {reach:.2g}" if np.isfinite(reach) else ""
        text = f"{name}: {size}^{line_fit.slope:.2f}{spread}"
        ends = sizes[[0, -1]]
        line = np.exp(line_fit.intercept + line_fit.slope * np.log(ends))
        series.append(Series(name, ends, line, "line", (text, text), dashed=True))
        fits.append(text)
    note = f"Fitted ({level:.0%} intervals): {'; '.join(fits)}." if fits else "One size only: nothing to fit."
    return Chart(
        f"{measure.capitalize()} against {size}", size, measure, series, log_x=True, log_y=True, note=note
    )


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
        means = np.mean([gaps[np.searchsorted(at, moments, side="right")] for at, gaps in runs], axis=0)
        tips = tuple(f"{name}: gap {g:.3%} after {t:.4g} s" for t, g in zip(moments, means, strict=True))
        series.append(Series(name, moments, means, "steps", tips))
    note = "The gap of a run's best answer until then to the best of all runs; the mean over all repeats."
    return Chart("Gap against time", "seconds", "primal gap", series, log_x=wide, note=note)


def _steps(run: Run, best: float) -> tuple[Array, Array]:
    """The times at which the gap of a run changes, and its values before the first and from each on."""
    known = [(step.seconds, step.objective) for step in run.trace if np.isfinite(step.objective)]
    if run.solved and run.violation <= TOLERANCE:
        known.append((run.seconds, run.objective))
    if not known:
        return np.empty(0), np.ones(1)
    seconds, objective = map(np.array, zip(*sorted(known), strict=True))
    return seconds, np.minimum.accumulate(np.concatenate([[1.0], primal_gap(objective, best)]))


def front(x: Array, y: Array) -> Array:
    """The positions of the points that no other beats, less being better in both, by rising x; O(n log n).

    Examples
    --------
    >>> front(np.array([1.0, 2.0, 3.0, 2.0]), np.array([5.0, 3.0, 4.0, 6.0])).tolist()
    [0, 1]
    """
    order = np.lexsort((y, x))
    return order[y[order] < np.minimum.accumulate(np.concatenate([[np.inf], y[order]]))[:-1]]


def pareto(
    comparison: Comparison,
    x: str = "seconds",
    y: str = "objective",
    *,
    better: tuple[Literal["less", "more"], Literal["less", "more"]] | None = None,
    level: float = 0.95,
    along: Sequence[str] | None = None,
) -> Chart:
    """Two numbers of each run against each other, and the front of the points that no other beats in both.

    Each point is the mean over the seeds and repeats of an instance and method, with Student's interval for
    the mean of `y`. A front joins points that can replace each other: of one instance, or of instances that
    differ in parameters of `along` only.

    Parameters
    ----------
    comparison : Comparison
        Runs without one of the numbers are left out.
    x, y
        Fields, parameters of a sweep or metrics, such as ``violation``, ``epsilon``, ``objective``.
    better : tuple[Literal["less", "more"], Literal["less", "more"]], optional
        Whether less or more of x and of y is better; less, but for the objective of a problem that maximises,
        if left out.
    level : float, default 0.95
        Of the intervals.
    along : Sequence[str], optional
        Parameters of a sweep whose values are alternatives, such as a tolerance. By default `x` and `y`, if
        they are parameters, and the parameter of a sweep over one.

    Returns
    -------
    Chart
        The points of each method, and a line for each front.

    Raises
    ------
    DeclarationError
        If no run has both numbers.
    UnknownNameError
        If `along` names no parameter.

    Examples
    --------
    >>> from forcopt.status import Status
    >>> from forcopt.study import Comparison, Run
    >>> runs = [
    ...     Run("i", m, "", Status.FEASIBLE, "min", exact=True, violation=0.0, objective=v, seconds=4 - v)
    ...     for m, v in [("a", 1.0), ("b", 2.0)]
    ... ]
    >>> chart = pareto(Comparison(runs))
    >>> [s.name for s in chart.series if s.kind == "points"]
    ['a', 'b']
    """
    known = np.isfinite(comparison.numbers(x)) & np.isfinite(comparison.numbers(y))
    a, b = (summary(comparison, name, level, known) for name in (x, y))
    fine = np.isfinite(a["mean"].to_numpy()) & np.isfinite(b["mean"].to_numpy())
    if not fine.any():
        raise DeclarationError(f"no run has both {x} and {y}")
    a, b = a[fine], b[fine]
    if better is None:
        more = "more" if comparison.rows[0].sense == "max" else "less"
        better = tuple(more if name in ("objective", "bound") else "less" for name in (x, y))  # type: ignore[assignment]
    assert better is not None
    if set(better) - {"less", "more"} or len(better) != 2:
        raise DeclarationError(f"better is {better!r}; it must be two of 'less' and 'more'")
    at, value = a["mean"].to_numpy(), b["mean"].to_numpy()
    labels = (b["method"] + np.where(b["backend"] != "", "@", "") + b["backend"]).to_numpy()
    series = []
    for name in methods(comparison):
        own = labels == name
        if own.any():
            texts = tuple(
                f"{name} on {i}: {x} {u:.6g}, {y} {v:.6g}"
                for i, u, v in zip(b["instance"][own], at[own], value[own], strict=True)
            )
            low, high = b["low"].to_numpy()[own], b["high"].to_numpy()[own]
            series.append(Series(name, at[own], value[own], "points", texts, low, high))
    signs = [1.0 if way == "less" else -1.0 for way in better]
    for group, places in _comparable(comparison, b, x, y, along).items():
        best = places[front(signs[0] * at[places], signs[1] * value[places])]
        where = f" on {group}" if group else ""
        tips = tuple(f"{labels[i]}{where}: {x} {at[i]:.6g}, {y} {value[i]:.6g}" for i in best)
        series.append(Series("front", at[best], value[best], "line", tips, dashed=True))
    note = f"{better[0]} {x} and {better[1]} {y} is better; points of the front are beaten by none in both."
    return Chart(f"{y} against {x}", x, y, series, note=note)


def _comparable(
    comparison: Comparison, frame: Any, x: str, y: str, along: Sequence[str] | None
) -> dict[str, Array]:
    """Give the positions of the points of each front, by the common part of their instances."""
    parameters = comparison.parameters
    for name in along or ():
        check_known("parameter of the sweep", name, parameters)
    if along is None:
        along = parameters if len(parameters) == 1 else [name for name in parameters if name in (x, y)]
    fixed = [name for name in parameters if name not in along]
    if not parameters:
        keys = [str(name) for name in frame["instance"]]
    else:
        keys = [", ".join(f"{n} {row[n]}" for n in fixed) for _, row in frame.iterrows()]
    several = len(set(keys)) > 1
    return {key if several else "": np.flatnonzero(np.array(keys) == key) for key in dict.fromkeys(keys)}
