"""Leximin objectives: what a program alone cannot hold of them.

Levels are held at the values that a point really has, not at those that a solver claims, as lower bounds on
columns: the point at hand then always satisfies what the next solve demands, but for rounding. Where a solver
stumbles over that all the same, all levels give way together, ten times as much each time, and the answer
says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from forcopt.arrays import Array
from forcopt.backends.base import RawResult, Session
from forcopt.compile.program import LeximinLayout, Program, RowBlock, StageCost
from forcopt.status import Status

__all__ = ["Floors", "SubsetCuts", "saturate"]

Solve = Callable[[], RawResult]

_LEAST_SLACK, _MOST_SLACK = 1e-12, 1e-4
"""Relative; where relaxing begins if the tolerance is 0, and where it ends."""

_LEAST_CUT = 1e-11
"""Subset sums violated by less than this are no cuts; later stages multiply what earlier ones miss."""

_ROUNDING = 1e-14
"""Nor are those violated by less than this, relative."""

_SHARE = 10.0
"""Multipliers up to this many times a solver's accuracy count as zero."""


class Floors:
    """Lower bounds that hold columns at values reached before.

    Parameters
    ----------
    session : Session
        Whose bounds are set.
    tolerance : float
        Relative to the larger of 1 and the value.

    Attributes
    ----------
    slack
        The tolerance, or what it took.
    relaxed
        Whether it had to be raised.
    """

    def __init__(self, session: Session, tolerance: float) -> None:
        self.session = session
        self.slack = tolerance
        self.relaxed = False
        self._held: dict[int, float] = {}

    def hold(self, held: dict[int, float], spare: Array | None = None) -> None:
        """Hold columns at values; columns in `spare` lose their upper bounds."""
        self._held |= held
        self._apply(spare)

    def relax(self) -> bool:
        """Give way ten times as much, if that is not too much."""
        slack = 10 * max(self.slack, _LEAST_SLACK)
        if not self._held or slack > _MOST_SLACK:
            return False
        self.slack, self.relaxed = slack, True
        self._apply()
        return True

    def _apply(self, spare: Array | None = None) -> None:
        program = self.session.program
        lower, upper = program.lower.copy(), program.upper
        columns = np.fromiter(self._held, dtype=int)
        values = np.fromiter(self._held.values(), dtype=float)
        lower[columns] = np.minimum(values - self.slack * np.maximum(1.0, np.abs(values)), upper[columns])
        if spare is not None:
            upper = upper.copy()
            upper[spare] = np.inf
        self.session.set_bounds(lower, upper)


def realised(levels: LeximinLayout, program: Program, x: Array) -> Array:
    """The utilities at a point; with integers the lower of those before and after rounding them."""
    found = levels.at(x)
    if program.is_integer:
        found = np.minimum(found, levels.at(np.where(program.integer == 1, np.round(x), x)))
    return found


class SubsetCuts:
    """Sums over subsets of the utilities, separated by sorting (Henzinger et al., 2022, Algorithm 2).

    Of all subsets of one size the smallest sum is that of the smallest utilities, so that n prefix sums of
    the sorted vector are all that need be looked at: O(n log n).
    """

    def __init__(self, levels: LeximinLayout) -> None:
        self.levels = levels
        count = len(levels.values)
        self.pool = {frozenset(range(count)), *(frozenset([j]) for j in range(count))}

    def violated(self, values: Array, sums: Array, tolerance: float) -> list[Array]:
        """The sets of smallest utilities, of sizes 1, 2, ..., whose sum is below the one demanded.

        Parameters
        ----------
        values : Array
            The utilities at a point.
        sums : Array
            Demanded for each size; as many as there are sizes to look at.
        tolerance : float
            Of violations, absolute.
        """
        order = np.argsort(values, kind="stable")
        short = sums - np.cumsum(values[order])[: len(sums)]
        sizes = np.flatnonzero(short > np.maximum(tolerance, _ROUNDING * np.abs(sums))) + 1
        return [order[:k] for k in sizes.tolist()]

    def rows(self, sets: list[Array]) -> RowBlock | None:
        """Rows for those of the sets that have none yet."""
        fresh = [s for s in sets if frozenset(s.tolist()) not in self.pool]
        if not fresh:
            return None
        self.pool.update(frozenset(s.tolist()) for s in fresh)
        columns = [np.append(self.levels.values[s], self.levels.sums[len(s) - 1]) for s in fresh]
        data = [np.append(np.ones(len(s)), -1.0) for s in fresh]
        ends = np.cumsum([0, *map(len, columns)]).astype(np.int32)
        indices, count = np.concatenate(columns).astype(np.int32), len(fresh)
        return RowBlock(ends, indices, np.concatenate(data), np.zeros(count), np.full(count, np.inf))

    def run(self, session: Session, rank: int, at: Array | None, solve: Solve, tolerance: float) -> RawResult:
        """Maximise the sum of the `rank` smallest utilities.

        Parameters
        ----------
        session : Session
            Holds the rows of the pool; more are added.
        rank : int
            The stage.
        at : Array
            The utilities at a point known, whose smallest bound the first relaxation.
        solve : Solve
            Solves the session.
        tolerance : float
            Of violations.
        """
        sums = self.levels.sums[:rank]
        if at is not None and (rows := self.rows([np.argsort(at, kind="stable")[:rank]])) is not None:
            session.add_rows(rows)
        while True:
            result = solve()
            if result.x is None:
                return result
            demanded = np.append(session.program.lower[sums[:-1]], result.x[sums[-1]])
            values = realised(self.levels, session.program, result.x)
            rows = self.rows(self.violated(values, demanded, max(tolerance, _LEAST_CUT)))
            if rows is None:
                return result
            if result.status is not Status.OPTIMAL:
                return replace(result, status=Status.LIMIT, x=None, objective=float("nan"))
            session.add_rows(rows)


def saturate(session: Session, stage: StageCost, floors: Floors, solve: Solve, accuracy: float) -> RawResult:
    """Raise all utilities together, fix those that can go no further, go on with the others.

    A utility whose row has a positive multiplier is as high in every optimum, so that it can be fixed. The
    multipliers add up to 1: every solve fixes one at least. A backend that gives none is asked by how much
    each of the lowest utilities can rise.

    Parameters
    ----------
    session : Session
        Is at the stage.
    stage : StageCost
        Raises the common level.
    floors : Floors
        Hold what is fixed.
    solve : Solve
        Solves the session and keeps the results.
    accuracy : float
        The backend's.

    Returns
    -------
    RawResult
        The first result that is no optimum, if any; else the last.
    """
    levels = stage.levels
    assert levels is not None and levels.spares is not None
    free = np.ones(len(levels.values), dtype=bool)
    while True:
        result = solve()
        if result.status is not Status.OPTIMAL:
            return result
        assert result.x is not None
        values = realised(levels, session.program, result.x)
        height = float(values[free].min())
        above = np.where(free, values - height, np.inf) / max(1.0, abs(height))
        fixed = _tight(levels, result, above, accuracy)
        if not fixed.any():
            lowest = free & (values <= height + _SHARE * accuracy * max(1.0, abs(height)))
            floors.hold({levels.level: height})
            fixed, probe = _stuck(session, levels, lowest, height, solve, accuracy)
            if probe is not None:
                return probe
            session.set_stage(stage)
        free &= ~fixed
        held = dict.fromkeys(levels.values[fixed].tolist(), height)
        floors.hold(held, levels.spares[fixed])
        if not free.any():
            return result


def _tight(levels: LeximinLayout, result: RawResult, above: Array, accuracy: float) -> Array:
    """Which utilities the multipliers show to be as high as they can be.

    An interior point leaves no multiplier at 0: what is further `above` the common level than its multiplier
    is large is taken for free (on such indicators: El-Bakry, Tapia and Zhang, 1994).
    """
    if result.row_dual is None:
        return np.zeros(len(above), dtype=bool)
    shares = result.row_dual[levels.rows : levels.rows + len(above)]
    found: Array = shares > np.maximum(above, min(_SHARE * accuracy, 0.5 / len(above)))
    return found


def _stuck(
    session: Session, levels: LeximinLayout, lowest: Array, height: float, solve: Solve, accuracy: float
) -> tuple[Array, RawResult | None]:
    """Which of the lowest utilities cannot rise (the one that rises least if all seem to); or what failed."""
    rises = np.full(len(lowest), np.inf)
    for j in np.flatnonzero(lowest).tolist():
        cost = np.zeros(session.program.columns)
        cost[levels.values[j]] = -1.0
        session.set_stage(StageCost(cost, 0.0, True))
        result = solve()
        if result.x is not None:
            rises[j] = levels.at(result.x)[j] - height
        elif result.status is not Status.UNBOUNDED and not result.ambiguous:
            return lowest, result
    found: Array = rises <= max(_SHARE * accuracy * max(1.0, abs(height)), float(rises.min()))
    return found & lowest, None
