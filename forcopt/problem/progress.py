"""The progress line of a running solve, on the error output."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from forcopt.clock import Deadline, Improvement, OnImprovement
from forcopt.loops.solution import relative_gap

if TYPE_CHECKING:
    from rich.text import Text


_REFRESHES = 4
"""Refreshes of the line in a second."""


class ProgressLine:
    """One line with the elapsed time, the time limit, the best objective, the bound and the gap.

    Parameters
    ----------
    label : str
        The problem and the method.
    deadline : Deadline
        The clock of the run.
    on_improvement : callable, optional
        Also called with each improvement; see `OnImprovement`.

    Examples
    --------
    >>> line = ProgressLine("Districting by frontier", Deadline(60.0))
    >>> line.improve(Improvement(1.0, 14.0, 12.0))
    >>> line.text(2.5)
    'Districting by frontier  2.5 s of 60 s  objective 14  bound 12  gap 14.3 %'
    """

    def __init__(self, label: str, deadline: Deadline, on_improvement: OnImprovement | None = None) -> None:
        self.label, self.deadline, self.on_improvement = label, deadline, on_improvement
        self.best: Improvement | None = None

    def improve(self, step: Improvement) -> bool | None:
        """Show an improvement and pass it on; returns True if the caller asks to stop."""
        self.best = step
        return None if self.on_improvement is None else self.on_improvement(step)

    def text(self, seconds: float) -> str:
        """Give the line after some seconds."""
        limit = self.deadline.limit
        parts = [self.label, f"{seconds:.1f} s" + ("" if limit is None else f" of {limit:g} s")]
        return "  ".join([*parts, *([] if self.best is None else known_values(self.best))])

    def __rich__(self) -> Text:
        from rich.text import Text

        return Text(self.text(self.deadline.seconds), no_wrap=True, overflow="ellipsis")


def known_values(step: Improvement) -> list[str]:
    """Give the objective, the bound and the gap of a step as text, without unknown ones."""
    values = {"objective": step.objective, "bound": step.bound}
    found = [f"{name} {value:.6g}" for name, value in values.items() if math.isfinite(value)]
    gap = relative_gap(step.objective, step.bound)
    return [*found, f"gap {100 * gap:.3g} %"] if math.isfinite(gap) else found


@contextmanager
def show_progress(line: ProgressLine, shown: bool) -> Iterator[None]:
    """Show a progress line while the body runs: live on a terminal, once at the end elsewhere.

    Parameters
    ----------
    line : ProgressLine
        The line; it refreshes four times a second.
    shown : bool
        Show nothing if False.
    """
    if not shown:
        yield
        return
    from rich.console import Console
    from rich.live import Live

    with Live(line, console=Console(stderr=True), refresh_per_second=_REFRESHES):
        yield
