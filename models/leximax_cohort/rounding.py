"""A lottery of equal, numbered panels: rounded, published, verified from the file, and drawn by dice."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from forcopt.arrays import Array
from forcopt.data.dataset import check_columns, read_table
from forcopt.errors import BackendError, DeclarationError
from forcopt.language.model import Model
from forcopt.models.leximax_cohort.decision import CohortLottery, cohort_lottery
from forcopt.models.leximax_cohort.panel import AS_TEXT, positions
from forcopt.models.leximax_cohort.tolerances import CLOSE, WHOLE
from forcopt.notebook import facts_html, table_html

if TYPE_CHECKING:
    from pandas import DataFrame

    from forcopt.models.leximax_cohort.problem import LeximaxCohort

_STYLE = "body{font:11px sans-serif}td,th{border:1px solid #999;padding:1px 4px}tr{break-inside:avoid}"


@dataclass(frozen=True, eq=False)
class PublicLottery:
    """M numbered panels with equal chances: throwing dice in public draws one of them.

    Attributes
    ----------
    problem : LeximaxCohort
        For which.
    panels : Array
        Row i has 1 for each member of panel i, else 0; shape ``(M, n)``. Panels repeat.
    before : Array
        The chances before the rounding, shape ``(n,)``; of a lottery from a file its own.

    Examples
    --------
    >>> from forcopt.models import LeximaxCohort
    >>> from forcopt.models.leximax_cohort import round_lottery
    >>> p = LeximaxCohort(utilities=np.eye(3), size=1, groups=("Ann", "Bo", "Cy"))
    >>> lottery = round_lottery(p.solve().decision, panels=100)
    >>> lottery.smallest, lottery.bound, lottery.members(7)
    (0.33, 0.33, ('Cy',))
    """

    problem: LeximaxCohort = field(repr=False)
    panels: Array = field(repr=False)
    before: Array = field(repr=False)

    @property
    def marginals(self) -> Array:
        """The chance of each candidate, shape ``(n,)``."""
        return np.asarray(self.panels.mean(axis=0))

    @property
    def smallest(self) -> float:
        """The smallest chance of a candidate who had one before the rounding."""
        return float(self.marginals[self.before > WHOLE].min())

    @property
    def bound(self) -> float:
        """The smallest chance before the rounding, rounded down to a multiple of 1/M.

        If `before` has the largest smallest chance (leximin, maximin), no lottery of M equal panels has more.
        """
        count = len(self.panels)
        return float(np.floor(count * (self.before[self.before > WHOLE].min() + CLOSE)) / count)

    @property
    def guarantee(self) -> float:
        """Some rounding on the same panels changes every chance by less: k/M, for panels of k members.

        By the theorem of Beck and Fiala. A step moves the weights that are not yet multiples of 1/M, such
        that their sum stays, and so does the chance of everyone who is in more than k of these panels. There
        is such a step while two panels are left, since they have k members each. A chance that is let go
        depends on at most k panels, and each weight moves by less than 1/M. With whole quotas on two features
        at most, no chance moves by 1/M (`round_lottery`).
        """
        return (1.0 if self.problem.mixes else self.problem.size) / len(self.panels)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The panels' numbers, all with the same count of digits: ``"000"`` to ``"999"``."""
        count = len(self.panels)
        return tuple(str(i).zfill(len(str(count - 1))) for i in range(count))

    def members(self, number: int | str) -> tuple[str, ...]:
        """Name the members of a panel.

        Parameters
        ----------
        number : int or str
            As thrown, such as ``"047"``.

        Raises
        ------
        DeclarationError
            For a number that no panel has: throw again.
        """
        if not str(number).isdecimal() or int(number) >= len(self.panels):
            last = self.numbers[-1]
            raise DeclarationError(f"number is {number!r}; it must be one of {self.numbers[0]} to {last}")
        return tuple(np.array(self.problem.names)[self.panels[int(number)] > 0].tolist())

    def table(self) -> DataFrame:
        """The panels to publish: a row for each number, a column for each member."""
        from pandas import DataFrame, Index

        columns = [f"member {i}" for i in range(1, round(self.problem.size) + 1)]
        return DataFrame(map(self.members, self.numbers), Index(self.numbers, name="panel"), columns)

    def write(self, path: str | Path) -> None:
        """Write the panels as ``.csv`` or ``.json``, or as ``.html`` the page to print for the draw.

        Raises
        ------
        DeclarationError
            For another ending.
        """
        panels = dict(zip(self.numbers, map(self.members, self.numbers), strict=True))
        ending, text = Path(path).suffix.lower(), self.table().to_csv()
        if ending == ".json":
            text = json.dumps(panels, ensure_ascii=False, indent=0)
        elif ending == ".html":
            text = self._page(panels, hashlib.sha256(text.encode()).hexdigest())
        elif ending != ".csv":
            raise DeclarationError(f"cannot write {path}: the name must end in .csv, .json or .html")
        Path(path).write_text(text, encoding="utf-8", newline="")

    def _page(self, panels: dict[str, tuple[str, ...]], fingerprint: str) -> str:
        count, digits, first, last = len(panels), len(self.numbers[-1]), self.numbers[0], self.numbers[-1]
        facts = {
            "panels": f"{count}, numbered {first} to {last}; each has the same chance",
            "to draw": f"throw {digits} ten-sided dice of different colours, one for each digit, in an order "
            f"that is agreed before; throw again if the number is above {last}",
            "smallest chance": f"{round(self.smallest * count)} of {count} panels",
            "SHA-256 of the CSV file": fingerprint,
        }
        title = f"A public draw of {self.problem.size:g} among {len(self.before)} people"
        listed = [(number, ", ".join(members)) for number, members in panels.items()]
        times = sorted(zip(self.panels.sum(axis=0, dtype=int), self.problem.names, strict=True))
        return (
            f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            f"<style>{_STYLE}</style></head><body><h1>{title}</h1>{facts_html('The lottery', facts)}"
            f"{table_html('The panels', ('panel', 'members'), listed, count)}"
            f"{table_html('Everyone', (f'panels of {count}', 'name'), times, len(times))}</body></html>"
        )


def round_lottery(
    decision: CohortLottery, panels: int = 1000, *, backend: str = "highs", time_limit: float = 60.0
) -> PublicLottery:
    """Round a lottery to equal panels, with the least loss in the smallest chance.

    Parameters
    ----------
    decision : CohortLottery
        The lottery.
    panels : int, default 1000
        How many; a panel may occur several times among them. 10, 100, 1000, ... suit dice with ten sides.
    backend : str, default "highs"
        Takes mixed-integer linear programs.
    time_limit : float, default 60
        Seconds for each of the two searches below.

    Returns
    -------
    PublicLottery
        If its `smallest` reaches its `bound`, it is proved to be the best one of so many panels.

    Raises
    ------
    DeclarationError
        For a number of panels below 1, or a problem without lotteries.
    BackendError
        If the backend finds no rounding in time.

    Notes
    -----
    With whole quotas on two features at most the rows are totally unimodular. Then the chances are rounded to
    multiples of 1/M, each up or down, such that the rows hold on average, and these are an average of M
    panels that satisfy the rows (Baum and Trotter): no chance changes by 1/M.

    Otherwise an integer program finds how often each panel of the lottery occurs. The first search rounds
    the panels' weights up or down, and ends with any rounding that keeps all chances at `PublicLottery.bound`
    or above. If it finds none, the second one allows any multiples, maximizes the smallest chance up to that
    bound, and then keeps the largest loss of a chance small.

    References
    ----------
    Flanigan, Kehne, Procaccia: Fair sortition made transparent. NeurIPS 2021.
    Beck, Fiala: "Integer-making" theorems. Discrete Applied Mathematics 3, 1981.
    Baum, Trotter: Integer rounding and polyhedral decomposition for totally unimodular systems. 1978.

    Examples
    --------
    >>> from forcopt.models import LeximaxCohort
    >>> p = LeximaxCohort(utilities=np.eye(3), size=1)
    >>> sorted(round_lottery(p.solve().decision, panels=10).marginals.tolist())
    [0.3, 0.3, 0.4]
    """
    if panels < 1 or panels != int(panels):
        raise DeclarationError(f"panels is {panels}; it must be a whole number of at least 1")
    problem = decision.problem
    if problem.mixes and problem.is_whole:
        rows = problem.classes, problem.household_rows
        cohorts, weights = cohort_lottery(decision.marginals, round(problem.size), *rows, panels)
        copies = np.round(weights * panels).astype(int)
    else:
        cohorts, weights = decision.distribution()
        copies = _round_weights(cohorts, weights, panels, backend, time_limit)
    return PublicLottery(problem, np.repeat(cohorts.astype(np.int8), copies, axis=0), decision.marginals)


def _round_weights(cohorts: Array, weights: Array, panels: int, backend: str, time_limit: float) -> Array:
    """How often each panel occurs among M."""
    chances = weights @ cohorts
    members, target = cohorts[:, chances > WHOLE], panels * chances[chances > WHOLE]
    goal = np.floor(target.min() + panels * CLOSE)
    for near in (True, False):
        model = Model("equal panels")
        low, high = (np.floor(weights * panels), np.ceil(weights * panels)) if near else (0, panels)
        copies = model.variable("copies", len(weights), lower=low, upper=high, integer=True)
        least = model.variable("least", lower=goal if near else 0, upper=goal, integer=True)
        lost = model.variable("lost", lower=1)
        counts = copies @ members
        model.subject_to(copies.sum() == panels, counts >= least, counts + lost >= target)
        # lost is at most M: half a panel of the smallest chance outweighs it
        model.maximize(least if near else least - lost / (2 * panels))
        result = model.solve(backend, time_limit=time_limit)
        if result.point is not None:
            return np.round(result[copies]).astype(int)
    raise BackendError(f"{backend} finds no equal panels: {result.message}")


def verify_lottery(problem: LeximaxCohort, path: str | Path) -> PublicLottery:
    """Read published panels, and check each: its number, its members, its size, quotas and households.

    Parameters
    ----------
    problem : LeximaxCohort
        From the published pool and quotas.
    path : str or Path
        A file of `PublicLottery.write`, ``.csv`` or ``.json``.

    Returns
    -------
    PublicLottery
        Its `marginals` are the chances as counted in the file.

    Raises
    ------
    DeclarationError
        For a panel with another number than its place, an unknown or doubled member, or a broken rule; it
        names the panel.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from forcopt.models import LeximaxCohort
    >>> p = LeximaxCohort(utilities=np.eye(3), size=1)
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "panels.csv"
    ...     round_lottery(p.solve().decision, panels=10).write(file)
    ...     verify_lottery(p, file).smallest
    0.3
    """
    if Path(path).suffix.lower() == ".json":
        listed = list(json.loads(Path(path).read_text(encoding="utf-8")).items())
    else:
        table = read_table(path, "lottery", **AS_TEXT)
        check_columns(table, ["panel"], str(path))
        listed = [(row[0], row[1:]) for row in table.itertuples(index=False)]
    panels = np.zeros((len(listed), len(problem.names)), dtype=np.int8)
    for at, (number, members) in enumerate(listed):
        if not str(number).isdecimal() or int(number) != at:
            raise DeclarationError(
                f"{path}: panel {number!r} is in place {at}; numbers must rise from 0 by 1"
            )
        found = positions(problem, members, f"{path}: panel {number}: ")
        if len(found) != len(members):
            raise DeclarationError(f"{path}: panel {number} has a member twice")
        panels[at, found] = 1
    distinct, first = np.unique(panels, axis=0, return_index=True)
    for row, at in sorted(zip(distinct, first.tolist(), strict=True), key=lambda pair: pair[1]):
        broken = problem.evaluate(row.astype(float)).violations
        if broken:
            words = ", ".join(f"{name} is off by {by:g}" for name, by in broken.items())
            raise DeclarationError(f"{path}: panel {listed[at][0]}: {words}")
    return PublicLottery(problem, panels, panels.mean(axis=0))
