"""Rows side by side: as text, in notebooks, as data frames and files."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError, unknown
from forcopt.problem import Problem
from forcopt.study.columns import Column, further_columns, telling_columns
from forcopt.study.consistency import best_run, by_instance, contradiction, ranked
from forcopt.study.run import INTERRUPTED, Run
from forcopt.study.store import Store

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.table import Table
    from rich.text import Text

    from forcopt.study.charts import Chart

__all__ = ["Comparison"]

_MOST_NOTES = 20

_NUMBERS = (
    "objective", "bound", "gap", "gap_to_best", "violation", "guarantee", "build_seconds", "solve_seconds",
    "seconds", "peak_memory", "iterations", "seed", "repeat", "size", "rows", "columns", "nonzeros",
    "integers",
)  # fmt: skip
"""The fields of a row that are numbers."""


class _Shown(str):
    """Text that a prompt shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, init=False)
class Comparison:
    """What several runs gave, side by side.

    Parameters
    ----------
    rows, problems
        The same.
    best_known : Mapping[str, float], optional
        Objectives known from elsewhere, by fingerprint, such as those of the instance library.

    Attributes
    ----------
    rows : tuple[Run, ...]
        One a run, in the order asked for, each told its gap to the best on its instance.
    problems : Mapping[str, Problem | str]
        What was solved, by the rows' fingerprints; as JSON where it was read from a store.

    Examples
    --------
    >>> from forcopt.status import Status
    >>> from forcopt.study import Comparison, Run
    >>> known = {"exact": True, "violation": 0.0, "seconds": 0.5}
    >>> a = Run("toy", "milp", "highs", Status.OPTIMAL, "min", objective=4.0, bound=4.0, gap=0.0, **known)
    >>> b = Run("toy", "greedy", "", Status.APPROXIMATE, "min", objective=5.0, **{**known, "exact": False})
    >>> Comparison((a, b))
    <comparison of 2 runs: best 4 by milp@highs>
    >>> Comparison((a, b)).table()
    method      status       objective  bound  gap  to best  violation  seconds
    milp@highs  optimal              4      4   0%       0%          0      0.5
    greedy      approximate          5      -    -   25.00%          0      0.5
    """

    rows: tuple[Run, ...]
    problems: Mapping[str, Problem | str] = field(repr=False, compare=False)

    def __init__(
        self,
        rows: Sequence[Run],
        problems: Mapping[str, Problem | str] | None = None,
        best_known: Mapping[str, float] | None = None,
    ) -> None:
        object.__setattr__(self, "rows", tuple(ranked(rows, best_known or {})))
        object.__setattr__(self, "problems", dict(problems or {}))

    @classmethod
    def read(cls, store: str | Path) -> Self:
        """Every run that a store holds, such as those of several calls of `compare` and `sweep`.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        """
        if not Path(store).is_file():
            raise FileNotFoundError(f"no file {store}")
        from forcopt.study.library import best_known

        with Store(store) as kept:
            problems = kept.declarations()
            return cls(kept.all(), problems, best_known(problems))

    @property
    def instances(self) -> tuple[tuple[Run, ...], ...]:
        """The rows of each instance."""
        return tuple(map(tuple, by_instance(self.rows).values()))

    @property
    def best(self) -> Run | None:
        """The best objective among runs that meet the demands; of equals a proved one, then the fastest.

        None if no run meets them, or if there are several instances, each of which has its own (`winners`).
        """
        return best_run(self.rows) if len(self.instances) == 1 else None

    @property
    def winners(self) -> tuple[Run, ...]:
        """The best run on each instance that has one."""
        return tuple(best for rows in self.instances if (best := best_run(rows)) is not None)

    @property
    def disagreements(self) -> tuple[str, ...]:
        """Where two runs cannot both be right: a proof by one that an answer of the other refutes."""
        several = len(self.instances) > 1
        return tuple(
            f"{a.instance}: {said}" if several else said
            for rows in self.instances
            for a, b in combinations(rows, 2)
            if (said := contradiction(a, b) or contradiction(b, a))
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What the table cannot say: disagreements, and why runs have no solution."""
        several = len(self.instances) > 1
        lost = Counter(
            r.message
            if r.message == INTERRUPTED
            else f"{r.instance + ': ' if several else ''}{r.label}: {r.message or r.status}"
            for r in self.rows
            if not r.solved
        )
        told = [f"{said} ({times} times)" if times > 1 else said for said, times in lost.items()]
        if len(told) > _MOST_NOTES:
            told[_MOST_NOTES:] = [f"and {len(told) - _MOST_NOTES} more without a solution"]
        return (*(f"disagreement: {d}" for d in self.disagreements), *told)

    def numbers(self, name: str) -> Array:
        """A number of each row: a field of `Run`, a parameter or a metric; NaN where it is missing.

        Raises
        ------
        UnknownNameError
            If no row has such a number.
        """
        found = [row.number(name) for row in self.rows]
        known = [*_NUMBERS, *self.parameters, *self.metrics]
        if name not in known:
            raise unknown("number of a run", name, known)
        return np.array([np.nan if value is None else value for value in found])

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of what a sweep chose."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.parameters))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the further numbers that the problems gave."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.metrics))

    def summary(self, value: str = "objective", level: float = 0.95) -> Any:
        """The mean of a number over seeds and repeats, for each instance, point of a sweep and method.

        The interval is Student's: it holds the mean of what was drawn from with probability `level`, exactly
        for normal values and in the limit for others. Runs without the number, such as those without a
        solution, are left out; `runs` and `known` tell how many.

        Parameters
        ----------
        value : str, default "objective"
            A name that `numbers` takes.
        level : float, default 0.95
            Of the interval, between 0 and 1.

        Returns
        -------
        Any
            A `pandas.DataFrame` with the columns instance, the parameters, method, backend, runs, known,
            mean, low, high, deviation, least, median, greatest. Below two values the interval is NaN.
        """
        import pandas as pd
        from scipy.stats import t

        if not 0 < level < 1:
            raise DeclarationError(f"level is {level!r}; it must lie between 0 and 1")
        groups: dict[tuple[str, ...], list[int]] = {}
        for at, row in enumerate(self.rows):
            groups.setdefault((row.instance, row.method, row.backend), []).append(at)
        every = self.numbers(value)
        out = []
        for (instance, method, backend), places in groups.items():
            values = every[places]
            values = values[np.isfinite(values)]
            n = len(values)
            mean = float(values.mean()) if n else np.nan
            deviation = float(values.std(ddof=1)) if n > 1 else np.nan
            reach = float(t.ppf((1 + level) / 2, n - 1)) * deviation / np.sqrt(n) if n > 1 else np.nan
            least, median, greatest = np.quantile(values, [0, 0.5, 1]) if n else [np.nan] * 3
            out.append(
                {"instance": instance, **self.rows[places[0]].parameters, "method": method}
                | {"backend": backend, "runs": len(places), "known": n, "mean": mean}
                | {"low": mean - reach, "high": mean + reach, "deviation": deviation}
                | {"least": least, "median": median, "greatest": greatest}
            )
        return pd.DataFrame(out)

    # -- as text -------------------------------------------------------------------------------------------

    def table(self) -> str:
        """A row a run, with notes below on those without a solution and on disagreements."""
        lines = [[c.title for c in self._columns], *([c.text(r) for c in self._columns] for r in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        pads = [str.rjust if c.number else str.ljust for c in self._columns]
        text = "\n".join(
            "  ".join(pad(cell, width) for pad, cell, width in zip(pads, line, widths, strict=True)).rstrip()
            for line in lines
        )
        return _Shown("\n".join([text, *self.notes]))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table | Text]:
        """The table, without its least telling columns where the terminal is narrow, and the notes."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        columns = self._columns
        for title in ("MB", "gap", "bound", "to best"):
            widths = [max(len(c.title), *(len(c.text(r)) for r in self.rows)) for c in columns]
            if sum(widths) + 3 * len(columns) > options.max_width:
                columns = [c for c in columns if c.title != title]
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        best = self.best
        for column in columns:
            table.add_column(column.title, justify="right" if column.number else "left")
        for row in self.rows:
            style = "bold" if row is best else "" if row.solved else "dim"
            table.add_row(*(column.text(row) for column in columns), style=style)
        yield table
        for note in self.notes:
            yield Text(note)

    def __repr__(self) -> str:
        lost, several = sum(not r.solved for r in self.rows), len(self.instances) > 1
        what = f"{len(self.rows)} runs" + (f" on {len(self.instances)} instances" if several else "")
        best = self.best
        parts = [f"best {best.objective:.8g} by {best.label}"] if best else []
        parts += [f"{lost} without a solution"] if lost and self.winners else []
        parts += [] if self.winners else ["no solution"]
        parts += [f"{len(self.disagreements)} disagreements"] if self.disagreements else []
        return f"<comparison of {what}{': ' if parts else ''}{', '.join(parts)}>"

    @property
    def _columns(self) -> list[Column]:
        return telling_columns(self.rows, self.parameters)

    # -- as files ------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON: the rows, the best one's position, and the disagreements."""
        best = self.best
        return {
            "rows": [row.record() for row in self.rows],
            "best": None if best is None else self.rows.index(best),
            "disagreements": list(self.disagreements),
        }

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a row a run and a column for each field, parameter and metric.

        Lists are joined by commas, what is unknown is NaN.
        """
        import pandas as pd

        frame = pd.DataFrame([row.record() for row in self.rows])
        frame[list(_NUMBERS)] = frame[list(_NUMBERS)].astype(float)
        frame["bridges"] = [", ".join(row.bridges) for row in self.rows]
        frame["versions"] = [", ".join(f"{k} {v}" for k, v in row.versions.items()) for row in self.rows]
        frame = frame.drop(columns=["parameters", "metrics"])
        for kind, names in (("parameters", self.parameters), ("metrics", self.metrics)):
            for name in names:  # under a longer name where a column has it already
                title = f"{kind}.{name}" if name in frame else name
                frame[title] = [getattr(row, kind).get(name) for row in self.rows]
        return frame

    def to_csv(self, path: str | Path) -> None:
        """Write what `to_pandas` gives."""
        self.to_pandas().to_csv(path, index=False)

    def to_html(self, path: str | Path) -> None:
        """Write an interactive page that needs nothing else, no network either.

        There the runs can be sorted and filtered, their declarations opened, and any number drawn against any
        other, beside those charts for which these runs are enough.
        """
        from forcopt.study.page import page

        text = page(self, self._html_table(full=True), self._html_notes())
        Path(path).write_text(text, encoding="utf-8")

    def _repr_html_(self) -> str:
        return self._html_table(full=False) + self._html_notes()

    def _html_table(self, full: bool) -> str:
        columns = self._columns
        if full:
            columns += further_columns(self.rows, self.metrics)
        head = "".join(f"<th>{html.escape(c.title)}</th>" for c in columns)
        head += "<th>declaration</th>" if full and self.problems else ""
        best = {id(row) for row in self.winners}
        body = []
        for row in self.rows:
            cells = "".join(
                f'<td data-value="{html.escape(str(c.value(row)))}"{" class=number" if c.number else ""}>'
                f"{html.escape(c.text(row))}</td>"
                for c in columns
            )
            title = html.escape(f"{row.instance}, {row.label}")
            if full and row.fingerprint in self.problems:
                button = (
                    f'<button type="button" data-declaration="{row.fingerprint}" data-title="{title}">open'
                )
                cells += f'<td data-value="{row.fingerprint}">{button}</button></td>'
            kind = "best" if id(row) in best else "solved" if row.solved else "lost"
            body.append(f'<tr class="{kind}" data-title="{title}">{cells}</tr>')
        lines = ["<table>", f"<thead><tr>{head}</tr></thead>", "<tbody>", *body, "</tbody>", "</table>"]
        return "\n".join(lines)

    def _html_notes(self) -> str:
        return "".join(f"<p>{html.escape(note)}</p>\n" for note in self.notes)

    def chart(self, kind: str, **options: Any) -> Chart:
        """The numbers of one of the pictures that `plot` draws, but ``runs``.

        Parameters
        ----------
        kind : str
            ``profile`` (performance profile of Dolan and Moré), ``cactus``, ``progress`` (gap against time),
            ``scaling`` (time against size, with the fitted exponent) or ``pareto``.
        options : Any
            Of the function of that name in `forcopt.study.charts`.

        Raises
        ------
        UnknownNameError
            For another kind or option.
        DeclarationError
            If the runs have nothing to show in it.
        """
        from forcopt.study.charts import CHARTS

        if kind not in CHARTS:
            raise unknown("kind of plot", kind, ["runs", *CHARTS])
        known = [name for name in signature(CHARTS[kind]).parameters if name != "comparison"]
        for name in options:
            if name not in known:
                raise unknown(f"option of the plot {kind!r}", name, known)
        return CHARTS[kind](self, **options)

    def plot(self, path: str | Path | None = None, kind: str = "runs", **options: Any) -> Any:
        """Draw the runs.

        Parameters
        ----------
        path : str or Path, optional
            Where to write it, too; the suffix (``.png``, ``.svg``, ``.pdf``) says how.
        kind : str, default "runs"
            ``runs``, objective and bound of each and its seconds beside them, or what `chart` takes.
        options : Any
            As for `chart`.

        Returns
        -------
        Any
            A `matplotlib.figure.Figure`.
        """
        if kind == "runs" and not options:
            from forcopt.study.charts.runs import plot_runs

            figure = plot_runs(self.rows)
        else:
            from forcopt.study.charts.draw import draw

            figure = draw(self.chart(kind, **options))
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure
