"""A lottery of equal, numbered panels: rounded, published, verified from the file, and drawn by dice."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.data.intake import Expected, check_table
from forcopt.errors import BackendError, DeclarationError, require, required
from forcopt.language.model import Model
from forcopt.models.leximax_cohort.classes import Classes
from forcopt.models.leximax_cohort.column_generation import CohortPricing
from forcopt.models.leximax_cohort.decision import CohortLottery, cohort_lottery
from forcopt.models.leximax_cohort.panel import positions
from forcopt.models.leximax_cohort.tolerances import CLOSE, WHOLE

_MOST_EXCHANGES = 400
"""Of a start; most lotteries reach the bound within some hundred exchanges."""

_PROGRAM = 20.0
"""Seconds for the integer program at most."""

_STARTS = 5
"""The draws of exchanges that are tried."""

_STEEPNESS = (1.0, 8.0)
"""Per panel: how fast the worth of a class falls; drawn anew for each exchange, so that none repeats."""

_STEEPEST = 8.0
"""The largest exponent of a worth: solvers tell worths apart down to 1e-7 of the largest."""

if TYPE_CHECKING:
    from pandas import DataFrame

    from forcopt.models.leximax_cohort.problem import LeximaxCohort


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
    >>> lottery.smallest, lottery.bound, len(lottery.members(7))
    (0.33, 0.33, 1)
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
        depends on at most k panels, and each weight moves by less than 1/M.
        """
        return self.problem.size / len(self.panels)

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
            rule = f"be one of {self.numbers[0]} to {self.numbers[-1]}"
            raise DeclarationError(f"number is {number!r}; it must {rule}")
        return tuple(np.array(self.problem.names)[self.panels[int(number)] > 0].tolist())

    def table(self) -> DataFrame:
        """The panels to publish: a row for each number, a column for each member."""
        pd = required("pandas", "a table of panels")

        columns = [f"member {i}" for i in range(1, round(self.problem.size) + 1)]
        return pd.DataFrame(map(self.members, self.numbers), pd.Index(self.numbers, name="panel"), columns)

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
            from forcopt.models.leximax_cohort.page import draw_page

            text = draw_page(self)
        elif ending != ".csv":
            raise DeclarationError(f"cannot write {path}: the name must end in .csv, .json or .html")
        Path(path).write_text(text, encoding="utf-8", newline="")


def round_lottery(
    decision: CohortLottery, panels: int = 1000, *, backend: str = "highs", time_limit: float | None = None
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
    time_limit : float, optional
        Seconds for exchanges and the integer program below, which has 20 s in any case.

    Returns
    -------
    PublicLottery
        If its `smallest` reaches its `bound`, it is proved to be the best one of so many panels.

    Raises
    ------
    DeclarationError
        For a number of panels below 1, or a problem without lotteries.
    BackendError
        If HiGHS fails on a panel.

    Notes
    -----
    Panels are exchanged, over all panels that satisfy the rows, until nobody's chance is below
    `PublicLottery.bound`; people with the same features take turns. If that misses the bound, and quotas are
    whole and on two features at most, the rows are totally unimodular: chances rounded to multiples of 1/M
    such that the rows hold on average are an average of M panels (Baum and Trotter). Otherwise an integer
    program decides how often each known panel occurs, which is best among these panels.

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
    require(panels >= 1 and panels == int(panels), "panels", panels, "be a whole number of at least 1")
    dealt = _equal_panels(decision, panels, backend, Deadline(time_limit))
    return PublicLottery(decision.problem, dealt, decision.marginals)


def _equal_panels(decision: CohortLottery, panels: int, backend: str, deadline: Deadline) -> Array:
    """M panels that meet the demands, by exchanges; and if these miss the bound by a theorem or a program."""
    classes = Classes(decision.problem)
    cohorts, weights = decision.distribution()
    numbers = np.round(cohorts @ (classes.of[:, None] == np.arange(len(classes.sizes))))
    numbers, same = np.unique(numbers, axis=0, return_inverse=True)
    weights = np.bincount(same.reshape(-1), weights)
    served = weights @ numbers > WHOLE
    target = panels * (weights @ numbers)[served] / classes.sizes[served]
    most = np.floor(target.min() + panels * CLOSE)

    def least(copies: Array) -> float:
        return float((copies.sum(axis=0)[served] // classes.sizes[served]).min())

    def enough(copies: Array) -> bool:
        return bool(least(copies) >= most)

    rng, dealt, met = np.random.default_rng(0), np.zeros((panels, len(classes.sizes))), [numbers]
    for _ in range(_STARTS):
        tried = _exchange(classes, numbers, weights, panels, enough, rng, deadline)
        met.append(tried)
        if least(tried) >= least(dealt):
            dealt = tried
        if least(dealt) >= most or deadline.passed:
            break
    else:
        problem = decision.problem
        if problem.mixes and problem.is_whole:
            rows = problem.classes, problem.household_rows
            cohorts, weights = cohort_lottery(decision.marginals, round(problem.size), *rows, panels)
            return np.repeat(cohorts.astype(np.int8), np.round(weights * panels).astype(int), axis=0)
        numbers = np.unique(np.vstack(met), axis=0)
        model = Model("equal panels")
        copies = model.variable("copies", len(numbers), upper=panels, lower=0, integer=True)
        lowest = model.variable("least", lower=least(dealt) + 1, upper=most, integer=True)
        counts = copies @ numbers[:, served]
        model.subject_to(copies.sum() == panels, counts >= lowest * classes.sizes[served])
        model.maximize(lowest)
        left = _PROGRAM if deadline.left is None else min(_PROGRAM, deadline.left)
        result = model.solve(backend, time_limit=left)
        if result.point is not None:
            dealt = np.repeat(numbers, np.round(result[copies]).astype(int), axis=0)
    return _seat(classes, dealt.astype(int))


def _exchange(
    classes: Classes,
    numbers: Array,
    weights: Array,
    panels: int,
    enough: Callable[[Array], bool],
    rng: np.random.Generator,
    deadline: Deadline,
) -> Array:
    """Start with the multiples of 1/M below the weights, and exchange panels until nobody lacks a seat.

    A class weighs exponentially more the further it is below its target, rounded down for each person. The
    panel of the least weight among some leaves, and the panel of the greatest weight of all comes. If the
    time ends first, the largest rests of the weights decide.
    """
    pricing = CohortPricing(classes, "highs", Deadline(None))
    share = weights @ numbers
    target = np.floor(panels * share / classes.sizes + panels * CLOSE)
    dealt = np.repeat(numbers, np.floor(weights * panels + WHOLE).astype(int), axis=0)[:panels]

    def worth() -> Array:
        above = dealt.sum(axis=0) + (panels - len(dealt)) * share - target * classes.sizes
        found = np.exp(-np.clip(steepness * above / classes.sizes, -_STEEPEST, _STEEPEST))
        return np.asarray(found / found.max())

    for _ in range(panels - len(dealt) + _MOST_EXCHANGES):
        steepness = rng.uniform(*_STEEPNESS)
        if deadline.passed:
            rests = np.argsort(-(weights * panels % 1), kind="stable")[: panels - len(dealt)]
            return np.vstack([dealt, numbers[rests]])
        if len(dealt) == panels:
            if enough(dealt):
                break
            some = rng.permutation(panels)[: max(1, panels // 4)]
            dealt = np.delete(dealt, some[np.argmin(dealt[some] @ worth())], axis=0)
        _, found, _ = pricing.best(worth(), -np.inf)
        if found is None:
            raise BackendError("HiGHS finds no panel, though the lottery has some")
        dealt = np.vstack([dealt, found])
    return dealt


def _seat(classes: Classes, dealt: Array) -> Array:
    """Give the seats of each class to its members in turn: their numbers of panels differ by one at most."""
    panels = np.zeros((len(dealt), len(classes.of)), dtype=np.int8)
    for c, size in enumerate(classes.sizes.tolist()):
        ends = np.cumsum(dealt[:, c])
        rows = np.repeat(np.arange(len(dealt)), dealt[:, c])
        turns = np.arange(ends[-1]) % size
        panels[rows, np.flatnonzero(classes.of == c)[turns]] = 1
    return panels


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
        table, faults = check_table(path, str(path), {"panel": Expected("text")})
        faults.refuse()
        listed = [(row[0], row[1:]) for row in table.itertuples(index=False)]
    panels = np.zeros((len(listed), len(problem.names)), dtype=np.int8)
    for at, (number, members) in enumerate(listed):
        if not str(number).isdecimal() or int(number) != at:
            raise DeclarationError(f"{path}: panel {number!r} is in place {at}; they must rise from 0 by 1")
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
