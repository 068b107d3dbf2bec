"""A comparison of runs: the best of each instance, gaps to it, contradictions, and what is shown of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from itertools import combinations_with_replacement
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from forcopt.arrays import Array, lists_by_key
from forcopt.backends.registry import backends
from forcopt.errors import check_known, unknown
from forcopt.loops.solution import relative_gap
from forcopt.notebook import write_figure
from forcopt.problem import Problem
from forcopt.status import Status
from forcopt.study.estimates import summary
from forcopt.study.run import INTERRUPTED, NUMBERS, Run
from forcopt.study.store import Store
from forcopt.study.tables import frame, html_notes, html_table, rich_table, text_table
from forcopt.study.tolerances import EQUAL, SAME, TOLERANCE

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.table import Table
    from rich.text import Text

    from forcopt.study.charts import Chart


def _signed(run: Run, value: float) -> float:
    """In the sense in which less is better."""
    return value if run.sense == "min" else -value


def by_instance(rows: Sequence[Run]) -> dict[tuple[str, str], list[Run]]:
    """The rows of each instance; of a sweep that draws problems, each that was drawn is one."""
    return lists_by_key(((row.instance, row.fingerprint), row) for row in rows)


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
    equal = [r for r in fit if _signed(r, r.objective) <= least + EQUAL * max(1.0, abs(least))]
    return min(equal, key=lambda r: (r.status is not Status.OPTIMAL, r.seconds))


def ranked(rows: Sequence[Run], best_known: Mapping[str, float]) -> list[Run]:
    """The rows with their proof, and their gap to the best of their instance or to a better known value."""
    tops, bounds, groups = {}, {}, by_instance(rows)
    for key, group in groups.items():
        found = [winner.objective] if (winner := best_run(group)) is not None else []
        found += [best_known[key[1]]] if key[1] in best_known else []
        better, worst = (min, max) if group[0].sense == "min" else (max, min)
        tops[key] = better(found, default=float("nan"))
        bounds[key] = worst((r.bound for r in group if np.isfinite(r.bound)), default=float("nan"))
    out = []
    for row in rows:
        top, gap = tops[row.instance, row.fingerprint], float("nan")
        if row.solved and not np.isnan(top):
            worse = _signed(row, row.objective) >= _signed(row, top)
            gap = relative_gap(top, row.objective) * (1 if worse else -1)
            gap = 0.0 if abs(row.objective - top) <= SAME else gap
        proof = _proof(row, groups[row.instance, row.fingerprint])
        fits = row.solved and row.violation <= TOLERANCE
        bound = bounds[row.instance, row.fingerprint] if fits else float("nan")
        rest = float("nan") if np.isnan(bound) else relative_gap(row.objective, bound)
        out.append(replace(row, gap_to_best=gap, gap_to_bound=rest, proved_by=proof))
    return out


def _proof(row: Run, group: Sequence[Run]) -> str:
    """What proves the answer of a row: a certificate, two solvers that agree, or its own claim."""
    if row.certified or not (row.exact and row.status in SETTLED):
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


SETTLED = (Status.OPTIMAL, Status.INFEASIBLE, Status.UNBOUNDED)
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


_MOST_NOTES = 20


class _Shown(str):
    """Text that a prompt shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, init=False)
class Comparison:
    """The results of several runs, side by side.

    Parameters
    ----------
    rows, problems
        The same.
    best_known : Mapping[str, float], optional
        Objectives known from elsewhere, by fingerprint, such as the instance library's.

    Attributes
    ----------
    rows : tuple[Run, ...]
        One a run, in the given order, each with its gap to the best on its instance.
    problems : Mapping[str, Problem | str]
        The solved problems, by the rows' fingerprints; as JSON where they were read from a store.

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
    method      status       proved by  objective  bound  gap  to best  gap to best bound  violation  seconds
    milp@highs  optimal      claim              4      4   0%       0%                 0%          0      0.5
    greedy      approximate  -                  5      -    -   25.00%             20.00%          0      0.5
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
        """Every run that a store holds, for example from several calls of `compare` and `sweep`.

        Different problems of one name, as unnamed problems of one class have, are numbered.

        Parameters
        ----------
        store : str or Path
            A file that `compare` or `sweep` wrote.

        Returns
        -------
        Self
            All its runs.

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
            return cls(unique_names(kept.all()), problems, best_known(problems))

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
        """Claims that contradict each other: proofs that another run, or the own decision, refutes."""
        several = len(self.instances) > 1
        return tuple(
            f"{a.instance}: {words}" if several else words
            for rows in self.instances
            for a, b in combinations_with_replacement(rows, 2)
            if (words := contradiction(a, b) or contradiction(b, a))
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes below the table: disagreements, and the reasons why runs have no solution."""
        several = len(self.instances) > 1
        lost = Counter(
            r.message
            if r.message == INTERRUPTED
            else f"{r.instance + ': ' if several else ''}{r.label}: {r.message or r.status}"
            for r in self.rows
            if not r.solved
        )
        lines = [f"{words} ({times} times)" if times > 1 else words for words, times in lost.items()]
        if len(lines) > _MOST_NOTES:
            lines[_MOST_NOTES:] = [f"and {len(lines) - _MOST_NOTES} more without a solution"]
        return (*(f"disagreement: {d}" for d in self.disagreements), *lines)

    def numbers(self, name: str) -> Array:
        """A number of each row: a field of `Run`, a parameter or a metric; NaN where it is missing.

        Parameters
        ----------
        name : str
            Such as ``"seconds"`` or ``"objective"``.

        Returns
        -------
        Array
            One for each row.

        Raises
        ------
        UnknownNameError
            If no row has such a number.
        """
        found = [row.number(name) for row in self.rows]
        check_known("number of a run", name, [*NUMBERS, *self.parameters, *self.metrics])
        return np.array([np.nan if value is None else value for value in found])

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters of a sweep."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.parameters))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the further numbers that the problems gave."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.metrics))

    def summary(self, value: str = "objective", level: float = 0.95) -> Any:
        """The mean of a number over seeds and repeats, for each instance, point of a sweep and method.

        The interval is Student's: it holds the mean of the sampled law with probability `level`, exactly
        for normal values and in the limit for others. Runs without the number, for example without a
        solution, are left out; `runs` and `known` count them.

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
        return summary(self, value, level)

    # -- as text -------------------------------------------------------------------------------------------

    def table(self) -> str:
        """A row a run, with notes below on runs without a solution and on disagreements.

        Returns
        -------
        str
            Shown as it is in a notebook and a terminal.

        Examples
        --------
        >>> import forcopt as fo
        >>> c = fo.compare("postprocessing/two-groups", ["as-predicted", "lp@highs"], isolate=False)
        >>> [line.split()[0] for line in c.table().splitlines()]
        ['method', 'as-predicted', 'lp@highs']
        """
        return _Shown("\n".join([text_table(self), *self.notes]))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table | Text]:
        """Give the table and the notes; a narrow terminal gets fewer columns."""
        from rich.text import Text

        yield rich_table(self, options.max_width)
        yield from map(Text, self.notes)

    def __repr__(self) -> str:
        lost, several = sum(not r.solved for r in self.rows), len(self.instances) > 1
        subject = f"{len(self.rows)} runs" + (f" on {len(self.instances)} instances" if several else "")
        best = self.best
        parts = [f"best {best.objective:.8g} by {best.label}"] if best else []
        parts += [f"{lost} without a solution"] if lost and self.winners else []
        parts += [] if self.winners else ["no solution"]
        parts += [f"{len(self.disagreements)} disagreements"] if self.disagreements else []
        return f"<comparison of {subject}{': ' if parts else ''}{', '.join(parts)}>"

    # -- as files ------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON: the rows, the best one's position, and the disagreements.

        Examples
        --------
        >>> import forcopt as fo
        >>> c = fo.compare("postprocessing/two-groups", ["as-predicted", "lp@highs"], isolate=False)
        >>> data = c.to_dict()
        >>> data["best"], data["rows"][1]["method"], data["disagreements"]
        (1, 'lp', [])
        """
        best = self.best
        return {
            "rows": [row.record() for row in self.rows],
            "best": None if best is None else self.rows.index(best),
            "disagreements": list(self.disagreements),
        }

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a row a run and a column for each field, parameter and metric.

        Lists are joined by commas, unknown values are NaN.
        """
        return frame(self)

    def to_csv(self, path: str | Path) -> None:
        """Write the frame of `to_pandas`.

        Parameters
        ----------
        path : str or Path
            The file to write.
        """
        self.to_pandas().to_csv(path, index=False)

    def to_html(self, path: str | Path) -> None:
        """Write an interactive page that needs nothing else, no network either.

        There the runs can be sorted and filtered, their declarations opened, and any number drawn against any
        other, beside the charts for which these runs are enough.

        Parameters
        ----------
        path : str or Path
            The file to write.
        """
        from forcopt.study.page import page

        Path(path).write_text(page(self, html_table(self, full=True), html_notes(self)), encoding="utf-8")

    def _repr_html_(self) -> str:
        return html_table(self, full=False) + html_notes(self)

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
            check_known(f"option of the plot {kind!r}", name, known)
        return CHARTS[kind](self, **options)

    def plot(self, path: str | Path | None = None, kind: str = "runs", **options: Any) -> Any:
        """Draw the runs.

        Parameters
        ----------
        path : str or Path, optional
            Where to write it, too; the suffix (``.png``, ``.svg``, ``.pdf``) gives the format.
        kind : str, default "runs"
            ``runs``, objective and bound of each and its seconds beside them, or the arguments of `chart`.
        options : Any
            As for `chart`.

        Returns
        -------
        Any
            A `matplotlib.figure.Figure`.
        """
        if kind == "runs" and not options:
            from forcopt.study.charts.draw import plot_runs

            figure = plot_runs(self.rows)
        else:
            from forcopt.study.charts.draw import draw

            figure = draw(self.chart(kind, **options))
        write_figure(figure, path, dpi=150)
        return figure
