"""ReCom: a Markov chain that merges and splits adjacent districts, by the package gerrychain."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.errors import NotInstalledError
from forcopt.models.districting.jit_warmup import jit_warmup
from forcopt.models.districting.local_search import local_search
from forcopt.models.districting.plan import Plan, feasible_start
from forcopt.models.districting.problem import Districting
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["ChainStuckError", "recom", "recom_chain"]

_ATTEMPTS = 200
"""Spanning trees that are drawn for one pair of districts, before another pair is tried."""


@Districting.algorithm(
    "recom",
    cites="DeFord, Duchin and Solomon (2021), Recombination",
    prepare=jit_warmup("local-search"),
    rank="published",
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
    time_limit : float, optional
        Seconds.
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
    problem.require("recom", "cut", "inertia", "deviation", "splits", takes=("Share", "SplitLimit"))
    reason = problem.infeasibility_reason()
    if reason:
        return Outcome(None, status=Status.INFEASIBLE, message=reason)
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
    try:
        from gerrychain import MarkovChain, accept, constraints, tree
        from gerrychain.proposals import recom as proposal
        from gerrychain.proposals.tree_proposals import MetagraphError
    except ImportError:
        raise NotInstalledError("the package gerrychain is missing: pip install gerrychain") from None
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
