"""Ensembles of plans, uniform or of a ReCom chain, and the place of a given plan among them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, Literal

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.errors import DeclarationError, required, unknown
from forcopt.models.districting.local_search import local_search
from forcopt.models.districting.plan import Plan, feasible_start
from forcopt.models.districting.problem import Districting, jit_warmup
from forcopt.notebook import new_figure, write_figure
from forcopt.problem import Outcome
from forcopt.status import Status

_ATTEMPTS = 200
"""Spanning trees that are drawn for one pair of districts, before another pair is tried."""


@Districting.algorithm(
    "recom",
    cites="DeFord, Duchin and Solomon (2021), Recombination",
    prepare=jit_warmup("local-search"),
    rank="published",
    rules=("each", "one", "sum", "plan"),
)
def recom(
    problem: Districting,
    *,
    start: Plan | None = None,
    steps: int = 1000,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """The best plan that a ReCom chain of the package gerrychain meets.

    Parameters
    ----------
    problem : Districting
        With bounds around the mean; plans that break a side constraint are passed over.
    start : Plan, optional
        The chain's first plan; a local search's by default.
    steps : int, optional
        Of the chain, at most.
    seed : int or numpy.random.Generator, optional
        0 by default.
    on_improvement : callable, optional
        Called with each better plan; it stops the chain by returning True.

    Returns
    -------
    Outcome
        If the chain cannot move, the message gives the reason, and the plan is the best of the chain so far.

    Raises
    ------
    NotInstalledError
        If the package gerrychain is missing.
    """
    deadline = Deadline(time_limit)
    trace = Trace(deadline, on_improvement)
    problem.require("recom", "cut", "inertia", "deviation", "splits")
    if (outcome := Outcome.infeasible(problem.infeasibility_reason())) is not None:
        return outcome
    rng = np.random.default_rng(0 if seed is None else seed)
    start = feasible_start(problem, start)
    if start is None:
        share = None if deadline.left is None else deadline.left / 2
        start = local_search(problem, restarts=4, seed=rng, time_limit=share).decision
    if start is None:
        return Outcome(None, status=Status.LIMIT, message="no plan to start the chain from was found")
    best, value = None, np.inf
    count, ended = 0, ""
    try:
        for plan in recom_chain(problem, start, steps, rng, deadline):
            count += 1
            evaluation = problem.evaluate(plan)
            if evaluation.feasible and evaluation.objective < value:
                best, value = plan, evaluation.objective
                trace.add(value, float("-inf"))
            if trace.over:
                break
    except ChainStuckError as stuck:
        ended = f"; {stuck}"
    if best is None and problem.evaluate(start).feasible:
        best = start
    status = Status.LIMIT if best is None else None
    return Outcome(best, None, status, count, f"plans of the chain: {count}{ended}", trace.steps)


class ChainStuckError(RuntimeError):
    """The chain cannot move from its plan, for the reason in the message."""


def recom_chain(
    problem: Districting,
    start: Plan,
    steps: int,
    rng: np.random.Generator,
    deadline: Deadline | None = None,
) -> Iterator[Plan]:
    """The plans of a ReCom chain, the first included; they lie within the population bounds.

    Parameters
    ----------
    problem : Districting
        The problem.
    start : Plan
        The first plan.
    steps : int
        Of the chain.
    rng : numpy.random.Generator
        Seeds the chain.
    deadline : Deadline, optional
        Each proposal is given up when it has passed.

    Yields
    ------
    Plan
        It ends early at a plan of which no two adjacent districts can be split anew.

    Raises
    ------
    NotInstalledError
        If the package gerrychain is missing.
    ChainStuckError
        If the chain cannot move: all populations are 0, the bounds leave no room around the mean, or no
        spanning tree of two districts can be cut within the bounds.
    """
    partition = start.to_gerrychain()
    required("gerrychain", "a chain of plans")
    from gerrychain import MarkovChain, accept, constraints, tree
    from gerrychain.proposals import recom as proposal
    from gerrychain.proposals.tree_proposals import MetagraphError

    if problem.total == 0:
        raise ChainStuckError("the populations are 0, so no tree can be cut in proportion to them")
    low, high = problem.population_bounds
    slack = min(problem.mean - low, high - problem.mean) / problem.mean
    if not slack > 0:
        raise ChainStuckError(f"the bounds {low} to {high} leave no room around the mean {problem.mean:g}")
    random.seed(int(rng.integers(2**31)))  # gerrychain draws from Python's generator
    within = constraints.Bounds(lambda p: p["population"].values(), (low, high))
    split = partial(tree.bipartition_tree, max_attempts=_ATTEMPTS, warn_attempts=10 * _ATTEMPTS)
    new = "bipartition_tree_fn"  # since gerrychain 1.0
    option = new if new in signature(proposal).parameters else "method"
    chain = MarkovChain(
        partial(
            proposal,
            pop_col=problem.population,
            pop_target=problem.mean,
            epsilon=slack,
            **{option: partial(split, allow_pair_reselection=True)},
        ),
        [constraints.contiguous, within],
        accept.always_accept,
        partition,
        steps,
    )
    # since gerrychain 1.0
    own = [getattr(tree, name) for name in ("BalanceError", "PopulationBalanceError") if hasattr(tree, name)]
    try:
        for state in chain:
            yield Plan.from_labels(problem, [state.assignment[v] for v in _nodes_of(state, problem)])
            if deadline is not None and deadline.passed:
                return
    except MetagraphError:
        raise ChainStuckError("no two adjacent districts can be split anew within the bounds") from None
    except (RuntimeError, IndexError, ZeroDivisionError, *own) as error:  # of gerrychain's tree cuts
        raise ChainStuckError(
            f"gerrychain found no cut within the bounds: {error or type(error).__name__}"
        ) from None


def _nodes_of(state: Any, problem: Districting) -> list[Any]:
    """The chain's names of our nodes: newer versions of gerrychain number them and remember ours."""
    graph = state.graph
    if hasattr(graph, "internal_node_id_for_original_nx_node_id"):
        return [graph.internal_node_id_for_original_nx_node_id(v) for v in problem.nodes]
    return list(problem.nodes)


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

    def _score(self, score: Score, plan: Plan) -> float:
        if callable(score):
            return float(score(plan))
        metrics = self.problem.evaluate(plan).metrics
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
        if len(values) and (values == values.round()).all() and np.ptp(values) <= 60:
            axes.hist(values, bins=np.arange(values.min() - 0.5, values.max() + 1).tolist(), color="#56B4E9")
        else:
            axes.hist(values, bins=30, color="#56B4E9")
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
    problem.require("recom", "cut", "inertia", "deviation", "splits")
    start = feasible_start(problem, start)
    if start is None:
        start = local_search(problem, restarts=4, seed=rng).decision
        if start is None:
            raise DeclarationError("no plan to start the chain from was found; give one as start")
    chain = recom_chain(problem, start, size * thin, rng)
    plans = [plan for step, plan in enumerate(chain) if step % thin == 0]
    kept = [p for p in plans if not problem.side_constraints or problem.evaluate(p).feasible]
    return Ensemble(problem, tuple(kept), method)


def _uniform(
    problem: Districting, size: int, max_cost: float | None, count_with: str, rng: np.random.Generator
) -> Iterator[Plan]:
    """Draw plans independently and uniformly: a rank among all, then the plan of this rank.

    The dynamic programs count without rules on districts. Plans drawn that violate these are rejected.
    """
    free, tied = problem, set(problem.tied)
    if count_with != "dual-cycles" and tied:
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
