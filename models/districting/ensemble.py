"""Ensembles of plans, uniform, of a ReCom chain or weighted, and the place of a given plan among them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy

from forcopt.arrays import Array, generator, whole_number
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError, check_known, require, required, unknown
from forcopt.models.districting.elections import Elections
from forcopt.models.districting.plan import Plan
from forcopt.models.districting.problem import Districting
from forcopt.models.districting.recom import ReCom, started
from forcopt.models.districting.screen import screened
from forcopt.models.districting.smc import sequential_plans
from forcopt.notebook import new_figure, write_figure

if TYPE_CHECKING:
    from pandas import DataFrame

_DRAWS = 10_000
"""Plans drawn for each that satisfies the constraints which counts leave out."""

_SECONDS = 30.0
"""For the reason why there is no plan to start a chain from."""

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
        ``uniform``, ``recom``, ``reversible-recom`` or ``smc``.
    weights : ndarray, optional
        Of ``smc``: the weight of each plan; they sum to 1. A mean of `values` is
        ``np.average(drawn.values(), weights=drawn.weights)``. None if all plans count equally.

    Examples
    --------
    >>> from forcopt.data import grid
    >>> from forcopt.models import Districting
    >>> p = Districting(grid(3, 4), districts=3, tolerance=0)
    >>> drawn = p.ensemble(size=200, seed=1)
    >>> best = p.solve().decision
    >>> drawn.share_at_most("cut_edges", best) < 0.2
    True
    >>> weighted = p.ensemble("smc", size=200, seed=1)
    >>> 150 < weighted.effective_size <= 200
    True
    """

    problem: Districting
    plans: tuple[Plan, ...]
    method: str
    weights: Array | None = None

    def __len__(self) -> int:
        return len(self.plans)

    @property
    def effective_size(self) -> float:
        """Kish's effective number of plans, ``1 / sum(weights**2)``; without weights, that of all plans.

        Weighted plans with common ancestors depend on each other, which it leaves out.
        """
        return float(len(self) if self.weights is None else 1 / (self.weights**2).sum())

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
        """Give all scores of each plan, as a table with a row for each; ``weight`` is a column of ``smc``.

        Parameters
        ----------
        elections : Mapping[str, tuple[str, str]], optional
            See `Plan.scores`.

        Returns
        -------
        pandas.DataFrame
        """
        pd = required("pandas", "scores")

        table = pd.DataFrame([plan.scores(elections) for plan in self.plans])
        return table if self.weights is None else table.assign(weight=self.weights)

    def _score(self, score: Score, plan: Plan) -> float:
        if callable(score):
            return float(score(plan))
        metrics = plan.scores(until=score)
        if score not in metrics:
            of_counties = ("splits", "split_counties", "pieces", "traversals")
            if score in (*of_counties, "least-change", "changed_nodes"):  # it says which node lacks a value
                self.problem.units(self.problem.county if score in of_counties else self.problem.enacted)
            raise unknown("score", score, list(metrics))
        return float(metrics[score])

    def convergence(self, score: Score = "cut_edges", *others: Ensemble) -> dict[str, float]:
        """Give diagnostics of a score along the chain, or along several chains of equal length.

        Parameters
        ----------
        score : str or callable, optional
            See `values`.
        *others : Ensemble
            Further chains, best from other starts.

        Returns
        -------
        dict[str, float]
            ``r_hat``, the rank-normalized split R-hat: near 1 if the halves of all chains agree; above 1.01
            they do not yet. ``effective_size``, the number of independent plans whose ranks have a mean as
            exact. ``autocorrelation``, that of neighbouring plans of a chain. NaN if all plans score the
            same.

        Raises
        ------
        DeclarationError
            For chains of different lengths, or of fewer than 8 plans; for weighted plans, which are no chain.

        Notes
        -----
        Each chain is cut in halves; a middle plan is left out. The ranks r of all N values become
        ``Phi^-1((r - 3/8) / (N + 1/4))``; equal values get their mean rank. R-hat is the larger one of these
        and of the same for the distances from the median. Autocorrelations are summed in pairs up to the
        first negative pair, with later pairs no larger than earlier ones. The effective size is at most
        ``N log10 N`` [1]_.

        References
        ----------
        .. [1] Vehtari, Gelman, Simpson, Carpenter and Bürkner, Rank-normalization, folding, and
           localization: an improved R-hat for assessing convergence of MCMC, Bayesian Analysis 2021.

        Examples
        --------
        >>> from forcopt.data import grid
        >>> p = Districting(grid(3, 4), districts=3, tolerance=0)
        >>> found = p.ensemble(size=400, seed=1).convergence()
        >>> found["r_hat"] < 1.01, found["effective_size"] > 200
        (True, True)
        """
        if any(ensemble.weights is not None for ensemble in (self, *others)):
            raise DeclarationError("weighted plans are no chain; effective_size is a figure of theirs")
        chains = [ensemble.values(score) for ensemble in (self, *others)]
        size = len(chains[0]) // 2
        if any(len(chain) != len(chains[0]) for chain in chains) or size < 4:
            lengths = ", ".join(str(len(chain)) for chain in chains)
            raise DeclarationError(f"others: {lengths} plans; chains must have equally many, at least 8")
        halves = np.concatenate([(chain[:size], chain[-size:]) for chain in chains])
        spread, effective, first = _diagnosed(halves)
        folded, *_ = _diagnosed(np.abs(halves - np.median(halves)))
        spread = float(np.fmax(spread, folded))
        return {"r_hat": spread, "effective_size": effective, "autocorrelation": first}

    def share_at_most(self, score: Score, plan: Plan) -> float:
        """Give the fraction of drawn plans, by their weights, whose score is at most that of a plan.

        Near 0 or 1 the plan is an outlier. After a chain the plans depend on each other, so the
        fraction is no p-value.
        """
        return float(np.average(self.values(score) <= self._score(score, plan), weights=self.weights))

    def plot(
        self, score: Score = "cut_edges", plan: Plan | None = None, path: str | Path | None = None
    ) -> Any:
        """Draw a histogram of a score, by the weights of plans, with a given plan marked by a line.

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
        axes.hist(values, bins=bins, color="#56B4E9", weights=self.weights)
        if plan is not None:
            own = self._score(score, plan)
            share = self.share_at_most(score, plan)
            label = f"the plan: {own:g}, at least {share:.1%} of the ensemble"
            axes.axvline(own, color="#D55E00", label=label)
            axes.legend(frameon=False)
        axes.set_xlabel(name.replace("_", " "))
        axes.set_ylabel("plans" if self.weights is None else "weight of plans")
        axes.set_title(f"{len(self)} plans, {self.method}")
        write_figure(figure, path)
        return figure


def _diagnosed(halves: Array) -> tuple[float, float, float]:
    """R-hat, effective size and first autocorrelation of the normal scores of ranks; see `Ensemble`."""
    (_, size), most = halves.shape, halves.size
    chains = scipy.special.ndtri((scipy.stats.rankdata(halves).reshape(halves.shape) - 0.375) / (most + 0.25))
    waves = np.fft.rfft(chains - chains.mean(axis=1, keepdims=True), 2 * size)
    lagged = np.fft.irfft(np.abs(waves) ** 2)[:, :size].mean(axis=0) / size  # mean autocovariances
    within, pooled = lagged[0] * size / (size - 1), lagged[0] + chains.mean(axis=1).var(ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rho, spread = 1 - (within - lagged) / pooled, float(np.sqrt(pooled / within))
    rho[0] = 1.0 if pooled else np.nan
    pairs = np.minimum.accumulate(rho[: size - size % 2].reshape(-1, 2).sum(axis=1))
    total = float(2 * pairs[: np.argmax(np.append(pairs, -1.0) < 0)].sum() - 1)
    return spread, most / max(total, float(1 / np.log10(most))), float(rho[1])


def draw_ensemble(
    problem: Districting,
    method: Literal["uniform", "recom", "reversible-recom", "smc"] = "uniform",
    size: int = 1000,
    *,
    max_cost: float | None = None,
    start: Plan | None = None,
    thin: int = 1,
    count_with: str = "frontier",
    tree: Literal["uniform", "least"] = "uniform",
    rho: float = 1.0,
    seed: int | np.random.Generator | None = None,
) -> Ensemble:
    """Draw an ensemble of plans; see `Districting.ensemble`."""
    check_known("method of an ensemble", method, ("uniform", "recom", "reversible-recom", "smc"))
    size, thin = whole_number(size, "size", 1), whole_number(thin, "thin", 1)
    require(rho == 1 or method == "smc", "rho", rho, "be 1 for methods other than smc")
    only = "be None for methods other than uniform"
    require(max_cost is None or method == "uniform", "max_cost", max_cost, only)
    walks = method not in ("uniform", "smc")
    require(start is None or walks, "start", start, "be None for methods without a chain")
    require(thin == 1 or walks, "thin", thin, "be 1 for methods without a chain")
    rng = generator(seed)
    if method == "uniform":
        return Ensemble(problem, tuple(_uniform(problem, size, max_cost, count_with, rng)), method)
    if method == "smc":
        plans, weights = sequential_plans(problem, size, rho, rng)
        return Ensemble(problem, plans, method, weights)
    first = started(problem, start, rng)
    if first is None:
        why = screened(problem, Deadline(_SECONDS))
        told = why.message if why else "give one as start"
        raise DeclarationError(f"no plan to start the chain from was found; {told}")
    chain, met = ReCom(problem, first, rng, tree, reversible=method == "reversible-recom"), [first]
    while len(met) < size and chain.run(thin) == thin:
        met.append(chain.plan)
    if len(met) < size:
        tied = problem.side_constraints or problem.rules
        ended = "no two adjacent districts could be divided anew"
        ended += ", or all plans drawn broke a constraint" if tied else ""
        warnings.warn(f"the chain stopped after {len(met)} of {size} plans: {ended}", stacklevel=3)
    return Ensemble(problem, tuple(met), method)


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
    limited = "" if max_cost is None else f" of cost {max_cost:g}"
    if counts.total == 0:
        raise DeclarationError(f"the problem has no plan{limited}")
    if free is problem:
        yield from counts.sample(size, seed=rng)
        return
    found = drawn = 0
    while found < size:
        if drawn >= _DRAWS * (found + 1):
            told = f"{found} of {drawn} plans drawn satisfy the shares and split limits"
            raise DeclarationError(f"{told}; too few to draw {size}")
        drawn += 1
        plan = Plan.of(problem, counts.sample(seed=rng)[0].parts)
        if problem.evaluate(plan).feasible:
            found += 1
            yield plan
