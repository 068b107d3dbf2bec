"""ReCom: a Markov chain that merges and splits adjacent districts, by the package gerrychain."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from forcopt.clock import Improvement
from forcopt.errors import DeclarationError, NotInstalledError
from forcopt.models.districting.jit_warmup import jit_warmup
from forcopt.models.districting.local_search import local_search
from forcopt.models.districting.plan import Plan
from forcopt.models.districting.problem import Districting
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["recom", "recom_chain"]


@Districting.algorithm(
    "recom",
    exact=False,
    cites="DeFord, Duchin and Solomon (2021), Recombination",
    prepare=jit_warmup("local-search"),
)
def recom(
    problem: Districting,
    *,
    start: Plan | None = None,
    steps: int = 1000,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
    on_improvement: Callable[[Improvement], bool | None] | None = None,
) -> Outcome:
    """The best plan that a ReCom chain of the package gerrychain meets.

    Parameters
    ----------
    problem : Districting
        With a tolerance, or bounds around the mean; plans that break a side constraint are passed over.
    start : Plan, optional
        The chain's first plan; a local search's by default.
    steps : int, default 1000
        Of the chain, at most.
    time_limit : float, optional
        Seconds.
    seed : int or numpy.random.Generator, optional
        0 if left out.
    on_improvement : Callable[[Improvement], bool | None], optional
        Called with each better plan; stop by returning True.

    Raises
    ------
    NotInstalledError
        If the package gerrychain is missing.
    """
    began = time.perf_counter()
    reason = problem.infeasibility_reason()
    if reason:
        return Outcome(None, status=Status.INFEASIBLE, message=reason)
    rng = np.random.default_rng(0 if seed is None else seed)
    if start is None:
        start = local_search(problem, restarts=4, seed=rng, time_limit=time_limit).decision
    if start is None:
        return Outcome(None, status=Status.LIMIT, message="no plan to start the chain from was found")
    best, value = None, np.inf
    trace: list[Improvement] = []
    count = 0
    for plan in recom_chain(problem, start, steps, rng):
        count += 1
        judged = problem.evaluate(plan)
        if judged.feasible and judged.objective < value:
            best, value = plan, judged.objective
            trace.append(Improvement(time.perf_counter() - began, value, float("-inf")))
            if on_improvement and on_improvement(trace[-1]):
                break
        if time_limit is not None and time.perf_counter() - began > time_limit:
            break
    status = Status.LIMIT if best is None else None
    return Outcome(best, None, status, count, f"the chain has {count} plans", trace)


def recom_chain(problem: Districting, start: Plan, steps: int, rng: np.random.Generator) -> Any:
    """The plans of a ReCom chain, the first included; they lie within the population bounds.

    It ends early at a plan of which no two adjacent districts can be split anew.

    Raises
    ------
    NotInstalledError
        If the package gerrychain is missing.
    DeclarationError
        If the bounds leave no room around the mean.
    """
    partition = start.to_gerrychain()
    try:
        from gerrychain import MarkovChain, accept, constraints
        from gerrychain.proposals import recom as proposal
        from gerrychain.proposals.tree_proposals import MetagraphError
    except ImportError:
        raise NotInstalledError("the package gerrychain is missing: pip install gerrychain") from None
    low, high = problem.population_bounds
    slack = min(problem.mean - low, high - problem.mean) / problem.mean
    if not slack > 0:
        raise DeclarationError(f"bounds {low} to {high} leave no room around the mean {problem.mean:g}")
    random.seed(int(rng.integers(2**31)))  # gerrychain draws from Python's generator
    within = constraints.Bounds(lambda p: p["population"].values(), (low, high))
    chain = MarkovChain(
        partial(proposal, pop_col=problem.population, pop_target=problem.mean, epsilon=slack),
        [constraints.contiguous, within],
        accept.always_accept,
        partition,
        steps,
    )
    try:
        for state in chain:
            yield Plan.from_labels(problem, [state.assignment[v] for v in _nodes_of(state, problem)])
    except MetagraphError:
        return


def _nodes_of(state: Any, problem: Districting) -> list[Any]:
    """The chain's names of our nodes: newer versions of gerrychain number them and remember ours."""
    graph = state.graph
    if hasattr(graph, "internal_node_id_for_original_nx_node_id"):
        return [graph.internal_node_id_for_original_nx_node_id(v) for v in problem.nodes]
    return list(problem.nodes)
