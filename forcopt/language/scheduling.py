"""Intervals of time that share machines: no two of them overlap, or their demands stay within a capacity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array, as_numbers, broadcast_shapes
from forcopt.errors import DeclarationError
from forcopt.language.alignment import Operand, aligned, onto
from forcopt.language.constraint import Condition, implies, require_binary
from forcopt.language.expression import Expression
from forcopt.language.joins import concatenate

if TYPE_CHECKING:
    from forcopt.language.model import Model


_CLOSE = 1e-6
"""Times that differ by less, relative to their size, are the same."""


@dataclass(frozen=True, eq=False)
class Interval:
    """Intervals of time, an array of them; made by `Model.interval`.

    Attributes
    ----------
    start, duration, end : Expression
        Of one shape, with the same labels.
    present : Expression
        Binary; where it is 0, the interval takes no time on any machine.
    """

    start: Expression
    duration: Expression
    end: Expression
    present: Expression


def interval_of(model: Model, start: Operand, duration: Operand, end: Operand, present: Operand) -> Interval:
    """Declare intervals, see `Model.interval`."""
    words = ["interval: start", "interval: duration", "interval: end", "interval: present"]
    given = [start, duration, start if end is None else end, 1.0 if present is None else present]
    met, axes = aligned(given, words)
    parts = [model.lift(part, word) for part, word in zip(met, words, strict=True)]
    shape = broadcast_shapes([part.shape for part in parts], "interval")
    begin, lasts, stop, on = (part.broadcast_to(shape).labelled(axes) for part in parts)
    least = model.span_of(lasts)[0]
    if (least < 0).any():
        raise DeclarationError(f"interval: duration can be {least.min():g}; it must not be negative")
    require_binary(on, "interval: present")
    if end is None:
        return Interval(begin, lasts, begin + lasts, on)
    row = begin + lasts == stop
    model.subject_to(row if on.is_constant and bool(on.constant.all()) else implies(on, row))
    return Interval(begin, lasts, stop, on)


@dataclass(eq=False)
class _Shared(Condition):
    """Intervals that share something; all of shape ``(n,)``."""

    start: Expression
    duration: Expression
    end: Expression
    present: Expression

    def _times(self, point: Array) -> tuple[Array, Array, Array]:
        """Starts and ends of the intervals that are present, and which they are."""
        here = np.flatnonzero(self.present.evaluate(point) > 0.5)
        return self.start.evaluate(point)[here], self.end.evaluate(point)[here], here


@dataclass(eq=False)
class NoOverlap(_Shared):
    """Of any two intervals that are present one ends before the other starts; made by `no_overlap`.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> start = m.variable("start", 3, lower=0, upper=20, integer=True)
    >>> task = m.interval(start, [3, 4, 5])
    >>> _ = m.subject_to(fo.no_overlap(task))
    >>> m.minimize(task.end.max())
    >>> m.solve().objective
    12.0
    """

    kind = "no_overlap"

    def violation(self, point: Array) -> float:
        """The longest time that two intervals overlap."""
        start, end, _ = self._times(point)
        both = np.minimum(end[:, None] - start, end - start[:, None])
        np.fill_diagonal(both, 0.0)
        return float(both.max(initial=0.0))


@dataclass(eq=False)
class Cumulative(_Shared):
    """At all times the demands of the intervals that run are within the capacity; made by `cumulative`.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> start = m.variable("start", 3, lower=0, upper=20, integer=True)
    >>> task = m.interval(start, [3, 4, 5])
    >>> _ = m.subject_to(fo.cumulative(task, [2, 1, 1], 2))
    >>> m.minimize(task.end.max())
    >>> m.solve("cp-sat").objective
    8.0
    """

    demands: Array
    capacity: float

    kind = "cumulative"

    def violation(self, point: Array) -> float:
        """By how much the demands exceed the capacity at the start of an interval, relative to it above 1."""
        start, end, here = self._times(point)
        at = start + _CLOSE * np.maximum(1.0, np.abs(start))
        load = ((start <= at[:, None]) & (at[:, None] < end)) @ self.demands[here]
        return float((load - self.capacity).max(initial=0.0)) / max(1.0, self.capacity)


def _flat(intervals: Interval | Sequence[Interval], call: str) -> list[Expression]:
    """Starts, durations, ends and presences of all intervals, each as a vector."""
    listed = [intervals] if isinstance(intervals, Interval) else list(intervals)
    for interval in listed:
        if not isinstance(interval, Interval):
            raise DeclarationError(f"{call} takes intervals, made by m.interval(...), not {interval!r}")
    if not listed:
        raise DeclarationError(f"{call} takes one or more intervals")
    fields = ("start", "duration", "end", "present")
    parts = [[getattr(i, field).labelled(None).ravel() for i in listed] for field in fields]
    return [part[0] if len(part) == 1 else concatenate(part) for part in parts]


def no_overlap(intervals: Interval | Sequence[Interval], by: Any = None) -> NoOverlap | list[NoOverlap]:
    """Require that of any two intervals one ends before the other starts: a machine does one task at a time.

    Parameters
    ----------
    intervals : Interval or Sequence[Interval]
        Made by `Model.interval`; all entries of all of them share the machine.
    by : Any, optional
        The machine of each entry, if there are several: an array, a series or a frame that meets the one
        interval array given.

    Returns
    -------
    NoOverlap or list[NoOverlap]
        For `Model.subject_to`; with `by` one for each machine.

    Raises
    ------
    DeclarationError
        For anything but intervals, and for machines of another shape.

    Notes
    -----
    CP-SAT takes it as it is. For other backends the bridge ``no_overlap_pairs`` writes one binary and two
    rows for each pair, and needs bounds on the starts.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> start = m.variable("start", 4, lower=0, upper=20, integer=True)
    >>> task = m.interval(start, [3, 4, 5, 2])
    >>> _ = m.subject_to(fo.no_overlap(task, by=["saw", "saw", "drill", "drill"]))
    >>> m.minimize(task.end.max())
    >>> m.solve().objective
    7.0
    """
    parts = _flat(intervals, "no_overlap")
    if by is None:
        return NoOverlap(*parts)
    if not isinstance(intervals, Interval):
        raise DeclarationError("no_overlap: by= goes with one array of intervals")
    shape = intervals.start.shape
    machine = np.asarray(onto(by, intervals.start.axes, shape, "no_overlap: by"))
    if machine.shape != shape:
        raise DeclarationError(f"no_overlap: by has shape {machine.shape}, the intervals {shape}")
    flat = machine.reshape(-1)
    groups = [np.flatnonzero(flat == name) for name in dict.fromkeys(flat.tolist())]
    return [NoOverlap(*(part[at] for part in parts)) for at in groups]


def cumulative(intervals: Interval | Sequence[Interval], demands: Any, capacity: float) -> Cumulative:
    """Require that the demands of the intervals that run at a time stay within a capacity.

    Parameters
    ----------
    intervals : Interval or Sequence[Interval]
        Made by `Model.interval`, with integral times and durations of at least 1.
    demands : Any
        Numbers from 0 on that broadcast with the intervals: an array, a series or a frame for one array of
        intervals, a flat array for several.
    capacity : float
        A number.

    Returns
    -------
    Cumulative
        For `Model.subject_to`.

    Raises
    ------
    DeclarationError
        For anything but intervals, for times that are no integers, and for negative demands.

    Notes
    -----
    CP-SAT takes it as it is, if the demands are integers. For other backends the bridge ``cumulative_starts``
    writes up to 2 n (n - 1) binaries for n intervals, and needs bounds on the starts.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> start = m.variable("start", 2, lower=0, upper=9, integer=True)
    >>> task = m.interval(start, [3, 4])
    >>> _ = m.subject_to(fo.cumulative(task, [2, 2], 3))
    >>> m.minimize(task.end.max())
    >>> m.solve().objective
    7.0
    """
    start, duration, end, present = _flat(intervals, "cumulative")
    model = start.model
    shape, axes = start.shape, None
    if isinstance(intervals, Interval):
        shape, axes = intervals.start.shape, intervals.start.axes
    needs = as_numbers(onto(demands, axes, shape, "cumulative: demands"), "cumulative: demands")
    try:
        flat = np.broadcast_to(needs, shape).reshape(-1)
    except ValueError:
        raise DeclarationError(f"cumulative: demands of shape {needs.shape}, intervals {shape}") from None
    if (flat < 0).any():
        raise DeclarationError(f"cumulative: a demand is {flat.min():g}; it must not be negative")
    limit = as_numbers(capacity, "cumulative: capacity")
    if limit.shape != ():
        raise DeclarationError(f"cumulative: the capacity {capacity!r} must be one number")
    for part, word in ((start, "start"), (duration, "duration")):
        if not model.is_integral(part).all():
            raise DeclarationError(f"cumulative: a {word} is no integer; declare it with integer=True")
    if (model.span_of(duration)[0] < 1).any():
        raise DeclarationError("cumulative: a duration can be below 1; leave such intervals out")
    return Cumulative(start, duration, end, present, np.array(flat), float(limit))
