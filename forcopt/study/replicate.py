"""Repeat a random study: draw data, release it, decide on the release, and measure the decision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.study.estimates import Estimates, check_level, mean_interval
from forcopt.study.execute import progress_bar, sent_once
from forcopt.study.store import Store

_FEWEST = 30
"""Repetitions before the half width is looked at: below, Student's interval is too rough to stop by."""

_STILL = 300
"""Repetitions before a number that never varied counts as known: events of probability 1 % show by then."""

_BATCHES = 100
"""The half width is looked at so often, and so often the progress bar moves."""


def replicate(
    draw: Any,
    mechanism: Any,
    rule: Callable[[Any], Any] | None,
    metrics: Mapping[str, Callable[[Any, Any], Any]],
    runs: int,
    rng: int = 0,
    level: float = 0.95,
    *,
    half_width: float | Mapping[str, float] | None = None,
    executor: Executor | None = None,
    store: str | Path | None = None,
    name: str = "",
    progress: bool | None = None,
) -> Estimates:
    """Estimate the expectation of metrics over repetitions of a random release.

    Repetition i draws data, gives them to the mechanism, applies the rule to the release, and measures the
    outcome beside the data. Its randomness depends on `rng` and i alone. The estimates are therefore the same
    on every executor, and an interrupted study continues where it stopped.

    Parameters
    ----------
    draw : Any
        The data; or a function of a `numpy.random.Generator` that draws the data of each repetition.
    mechanism : Any
        A `forcopt.privacy.Mechanism`, which releases as a simulation; or a function ``(data, generator)``.
    rule : Callable[[Any], Any], optional
        Maps a release to an outcome; the release itself is the outcome if None.
    metrics : Mapping[str, Callable[[Any, Any], Any]]
        Functions ``(outcome, data)`` by name; each gives a number, or an array of one shape throughout.
    runs : int
        The number of repetitions, or the most if `half_width` is given.
    rng : int, default 0
        The seed of the study, at least 0.
    level : float, default 0.95
        Of the intervals, between 0 and 1.
    half_width : float or Mapping[str, float], optional
        Stop when the interval of every metric (or of the named ones) is at most this far from its mean. It is
        looked at after at least 30 repetitions, at most 100 times. An entry that was the same in all
        repetitions does not stop the study before the 300th: it may measure a rare event.
    executor : Executor, optional
        Any `concurrent.futures.Executor`; then the functions must be importable by its workers.
    store : str or Path, optional
        A file that ends in ``.sqlite``; it keeps every repetition, so that a later call continues.
    name : str, optional
        Identifies draw, mechanism, rule and metrics in the store. Choose another when you change one of them.
    progress : bool, optional
        Show a progress bar; by default where the output is a terminal.

    Returns
    -------
    Estimates
        The metrics of all repetitions, in their order.

    Raises
    ------
    DeclarationError
        If `runs`, `rng`, `level` or `half_width` is out of range, if `half_width` names no metric, if a store
        is given without a name, or if a metric changes its shape.

    Notes
    -----
    A sequential stop keeps the level of the interval in the limit of small half widths only [1]_.

    References
    ----------
    .. [1] Chow, Robbins, "On the asymptotic theory of fixed-width sequential confidence intervals for the
       mean", Annals of Mathematical Statistics 36 (1965).

    Examples
    --------
    >>> counts = np.array([10.0, 20.0])
    >>> noisy = lambda data, generator: data + generator.laplace(size=data.shape)
    >>> error = {"largest error": lambda release, data: np.abs(release - data).max()}
    >>> e = replicate(counts, noisy, None, error, runs=2000, rng=1)
    >>> low, high = e.interval("largest error")  # the expectation is 3/2
    >>> bool(low < 1.5 < high), e.runs
    (True, 2000)
    """
    _check(runs, rng, metrics, store, name)
    check_level(level)
    widths = _half_widths(half_width, metrics)
    task = partial(_repetition, draw, mechanism, rule, dict(metrics), rng)
    step = -(-runs // _BATCHES)
    study = f"{name} {rng} {sorted(metrics)}"
    rows: list[dict[str, Array]] = []
    message = ""
    with Store(store) if store is not None else nullcontext() as kept, progress_bar(runs, progress) as show:
        done = {} if kept is None else kept.repetitions(study)
        try:
            for at, row in _rows(task, runs, step, done, executor):
                if kept is not None and at not in done:
                    kept.add_repetition(study, at, row)
                rows.append(row)
                show(name, 1)
                full = len(rows) % step == 0 and len(rows) >= _FEWEST
                if widths and full and _is_narrow(rows, widths, level):
                    break
        except KeyboardInterrupt:
            message = f"interrupted after {len(rows)} of {runs} repetitions"
            if not rows:
                raise
    return Estimates(_stacked(rows, list(metrics)), rng, level, message)


def _check(runs: int, rng: int, metrics: Any, store: str | Path | None, name: str) -> None:
    for field, value, least in (("runs", runs, 1), ("rng", rng, 0)):
        if not isinstance(value, int | np.integer) or value < least:
            raise DeclarationError(f"{field} is {value!r}; it must be an integer >= {least}")
    if not isinstance(metrics, Mapping):
        kind = type(metrics).__name__
        raise DeclarationError(f"metrics is a {kind}; it must be a dict of functions by name")
    if not metrics:
        raise DeclarationError("metrics is empty; name at least one")
    if store is not None and not name:
        raise DeclarationError("name is empty; a store needs a name that identifies the study")


def _half_widths(given: float | Mapping[str, float] | None, metrics: Mapping[str, Any]) -> dict[str, float]:
    if given is None:
        return {}
    found = dict(given) if isinstance(given, Mapping) else dict.fromkeys(metrics, given)
    for name, width in found.items():
        if name not in metrics:
            raise DeclarationError(f"half_width names {name!r}; the metrics are {', '.join(metrics)}")
        if not width > 0:
            raise DeclarationError(f"half_width is {width!r} for {name!r}; it must be positive")
    return found


def _repetition(
    draw: Any,
    mechanism: Any,
    rule: Callable[[Any], Any] | None,
    metrics: Mapping[str, Callable[[Any, Any], Any]],
    seed: int,
    at: int,
) -> dict[str, Array]:
    """Run repetition `at`; streams of draw and mechanism are independent."""
    first, second = (np.random.default_rng(s) for s in np.random.SeedSequence([seed, at]).spawn(2))
    data = draw(first) if callable(draw) else draw
    release = getattr(mechanism, "simulate", mechanism)(data, second)
    outcome = release if rule is None else rule(release)
    return {name: np.asarray(metric(outcome, data), dtype=float) for name, metric in metrics.items()}


def _rows(
    task: Callable[[int], dict[str, Array]],
    runs: int,
    step: int,
    done: Mapping[int, dict[str, Array]],
    executor: Executor | None,
) -> Iterator[tuple[int, dict[str, Array]]]:
    """Give the repetitions in their order; an executor works ahead."""
    if executor is None:
        for at in range(runs):
            yield at, done[at] if at in done else task(at)
        return
    futures: dict[int, Future[dict[str, Array]]] = {}
    try:
        ahead, sent = 0, sent_once(executor, task)
        for at in range(runs):
            while ahead < min(runs, at + 4 * max(step, 16)):
                if ahead not in done:
                    futures[ahead] = executor.submit(_call, sent, ahead)
                ahead += 1
            yield at, done[at] if at in done else futures.pop(at).result()
    finally:
        for future in futures.values():
            future.cancel()


def _call(task: Callable[[int], dict[str, Array]], at: int) -> dict[str, Array]:
    return task(at)


def _is_narrow(rows: list[dict[str, Array]], widths: Mapping[str, float], level: float) -> bool:
    for name, width in widths.items():
        found = mean_interval(np.stack([row[name] for row in rows]), level)
        if not np.max(found.high - found.mean) <= width:
            return False
        if len(rows) < _STILL and not np.all(found.deviation > 0):
            return False
    return True


def _stacked(rows: list[dict[str, Array]], names: list[str]) -> dict[str, Array]:
    out = {}
    for name in names:
        shapes = {row[name].shape for row in rows}
        if len(shapes) > 1:
            raise DeclarationError(f"metric {name!r} has several shapes: {sorted(shapes)}; it must keep one")
        out[name] = np.stack([row[name] for row in rows])
    return out
