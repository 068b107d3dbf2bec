"""Ensembles of plans, uniform or of a ReCom chain, and the place of a given plan among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError, unknown
from forcopt.models.districting.elections import Elections
from forcopt.models.districting.plan import Plan
from forcopt.models.districting.problem import Districting
from forcopt.models.districting.recom import ReCom, started
from forcopt.notebook import new_figure, write_figure

if TYPE_CHECKING:
    from pandas import DataFrame

_DRAWS = 10_000
"""Plans drawn for each that satisfies the constraints which counts leave out."""

Score = str | Callable[[Plan], float]


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Plans drawn by a method.

    Attributes
    ----------
    problem : Districting
        Whose plans they are.
    plans : tuple of Plan
        In the order in which they were drawn.
    method : str
        ``uniform`` or ``recom``.

    Examples
    --------
    >>> from forcopt.data import grid
    >>> from forcopt.models import Districting
    >>> p = Districting(grid(3, 4), districts=3, tolerance=0)
    >>> drawn = p.ensemble(size=200, seed=1)
    >>> best = p.solve().decision
    >>> drawn.share_at_most("cut_edges", best) < 0.2
    True
    """

    problem: Districting
    plans: tuple[Plan, ...]
    method: str

    def __len__(self) -> int:
        return len(self.plans)

    def values(self, score: Score = "cut_edges") -> Array:
        """Give the score of each plan.

        Parameters
        ----------
        score : str or callable, optional
            A metric of `Districting.evaluate`, or a function of a `Plan`.

        Returns
        -------
        ndarray, shape (len(plans),)
        """
        return np.array([self._score(score, plan) for plan in self.plans], dtype=float)

    def scores(self, elections: Elections | None = None) -> DataFrame:
        """Give all scores of each plan, as a table with a row for each.

        Parameters
        ----------
        elections : Mapping[str, tuple[str, str]], optional
            See `Plan.scores`.

        Returns
        -------
        pandas.DataFrame
        """
        from pandas import DataFrame

        return DataFrame([plan.scores(elections) for plan in self.plans])

    def _score(self, score: Score, plan: Plan) -> float:
        if callable(score):
            return float(score(plan))
        metrics = plan.scores()
        if score not in metrics:
            raise unknown("score", score, list(metrics))
        return float(metrics[score])

    def share_at_most(self, score: Score, plan: Plan) -> float:
        """Give the fraction of drawn plans whose score is at most that of a plan.

        Near 0 or 1 the plan is an outlier. After a chain the plans depend on each other, so the
        fraction is no p-value.
        """
        return float((self.values(score) <= self._score(score, plan)).mean())

    def plot(
        self, score: Score = "cut_edges", plan: Plan | None = None, path: str | Path | None = None
    ) -> Any:
        """Draw a histogram of a score, with a given plan marked by a line.

        Parameters
        ----------
        score : str or callable, optional
            See `values`.
        plan : Plan, optional
            Marked, with the fraction of drawn plans that score at most as much.
        path : str or Path, optional
            A ``.png``, ``.svg`` or ``.pdf`` file to write.

        Returns
        -------
        Any
            The `matplotlib.figure.Figure`.
        """
        values = self.values(score)
        figure = new_figure(7, 4)
        axes = figure.add_subplot()
        name = score if isinstance(score, str) else getattr(score, "__name__", "score")
        whole = len(values) and (values == values.round()).all() and np.ptp(values) <= 60
        bins = np.arange(values.min() - 0.5, values.max() + 1).tolist() if whole else 30
        axes.hist(values, bins=bins, color="#56B4E9")
        if plan is not None:
            own = self._score(score, plan)
            share = self.share_at_most(score, plan)
            axes.axvline(
                own, color="#D55E00", label=f"the plan: {own:g}, at least {share:.1%} of the ensemble"
            )
            axes.legend(frameon=False)
        axes.set_xlabel(name.replace("_", " "))
        axes.set_ylabel("plans")
        axes.set_title(f"{len(self)} plans, {self.method}")
        write_figure(figure, path)
        return figure


def draw_ensemble(
    problem: Districting,
    method: Literal["uniform", "recom"] = "uniform",
    size: int = 1000,
    *,
    max_cost: float | None = None,
    start: Plan | None = None,
    thin: int = 1,
    count_with: str = "frontier",
    tree: Literal["uniform", "least"] = "uniform",
    seed: int | np.random.Generator | None = None,
) -> Ensemble:
    """Draw an ensemble of plans; see `Districting.ensemble`."""
    if size < 1 or thin < 1:
        raise DeclarationError(f"size is {size} and thin is {thin}; both must be at least 1")
    rng = np.random.default_rng(seed)
    if method == "uniform":
        return Ensemble(problem, tuple(_uniform(problem, size, max_cost, count_with, rng)), method)
    if method != "recom":
        raise unknown("method of an ensemble", method, ["uniform", "recom"])
    first = started(problem, start, rng)
    if first is None:
        raise DeclarationError("no plan to start the chain from was found; give one as start")
    chain, plans = ReCom(problem, first, rng, tree), [first]
    while len(plans) < size and chain.run(thin) == thin:
        plans.append(chain.plan)
    return Ensemble(problem, tuple(plans), method)


def _uniform(
    problem: Districting, size: int, max_cost: float | None, count_with: str, rng: np.random.Generator
) -> Iterator[Plan]:
    """Draw plans independently and uniformly: a rank among all, then the plan of this rank.

    The dynamic programs count without rules on districts. Plans drawn that violate these are rejected.
    """
    free, tied = problem, set(problem.tied)
    if tied:
        kept = [item for item in problem.side_constraints if not tied & set(item.rules(problem))]
        free = problem.replace(side_constraints=kept, rules=[r for r in problem.rules if r not in tied])
    counts = free.count(max_cost, count_with)
    if counts.total == 0:
        raise DeclarationError(
            "the problem has no plan" + ("" if max_cost is None else f" of cost {max_cost:g}")
        )
    if free is problem:
        yield from counts.sample(size, seed=rng)
        return
    found = drawn = 0
    while found < size:
        if drawn >= _DRAWS * (found + 1):
            raise DeclarationError(
                f"{found} of {drawn} plans drawn satisfy the shares and split limits; too few to draw {size}"
            )
        drawn += 1
        plan = Plan.of(problem, counts.sample(seed=rng)[0].parts)
        if problem.evaluate(plan).feasible:
            found += 1
            yield plan
