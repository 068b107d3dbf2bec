"""Dynamic programs along a vertex order and a sphere-cut decomposition, bounded by their own coarser runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.errors import DeclarationError
from forcopt.graphs.branch_decomposition import BranchDecomposition
from forcopt.graphs.dynamic_program import Bound, Program
from forcopt.graphs.frontier import Sweep
from forcopt.graphs.sphere_cut import SphereCut
from forcopt.models.districting.local_search import local_search
from forcopt.models.districting.plan import Plan, feasible_start, only_plan
from forcopt.models.districting.problem import Districting
from forcopt.problem import Outcome
from forcopt.status import Status

_FINER = (10, 20, 60, 200, 800)
"""Relaxations round weights to these fractions of the mean in turn, each bounded by the one before."""

_SMALL = 16
"""So few nodes need no plan to beat and no bounds."""

_FEW = 20_000
"""States of a relaxation that are few enough to go on without a finer one."""


def check_features(problem: Districting, method: str) -> None:
    """Refuse a problem that the dynamic programs do not take.

    A state holds the population of each open district, and the number of finished districts of each
    class of populations. It holds neither sums of other attributes nor numbers of districts.

    Parameters
    ----------
    problem : Districting
        The problem.
    method : str
        The name that errors give.

    Raises
    ------
    DeclarationError
        For another objective than ``cut``, rules other than a limit on cut edges, and `Fixed` beside unequal
        seats.
    """
    problem.require(method, "cut", takes=("seats",))
    if problem.unequal_seats and problem._fixed():
        raise DeclarationError(
            f"method {method!r} takes different numbers of seats without Fixed; "
            "'portfolio', 'column-generation' and 'labels-separators' take both"
        )


def dynamic_program(
    name: str, program: Callable[[Districting], Program], summary: str, cites: str
) -> Callable[..., Outcome]:
    """Register a method that solves the objective ``cut`` by a dynamic program.

    Parameters
    ----------
    name : str
        Of the method.
    program : callable
        Gives the dynamic program of a problem with two nodes or more, or refuses the problem.
    summary : str
        The first line of the method's documentation.
    cites : str
        See `Method`.

    Returns
    -------
    callable
        The method.
    """

    def solve(
        problem: Districting,
        *,
        start: Plan | None = None,
        time_limit: float | None = None,
        seed: int | np.random.Generator | None = None,
        on_improvement: OnImprovement | None = None,
    ) -> Outcome:
        check_features(problem, name)
        return _decide(problem, program, start, seed, Trace(Deadline(time_limit), on_improvement))

    solve.__doc__ = f"""{summary}

    A local search gives a cost to beat. The same program with populations left out, then rounded ever more
    finely, gives for each state a bound on the cost of the rest; only states that may still beat the cost
    are kept.

    Parameters
    ----------
    problem : Districting
        With the objective ``cut``, any seats, and no rules on districts but a limit on cut edges; `Fixed`
        only beside equal seats.
    start : Plan, optional
        A feasible plan; only cheaper ones are sought. A local search gives one by default.
    seed : int or numpy.random.Generator, optional
        Of the local search.

    Returns
    -------
    Outcome
        With the bound of the last relaxation, if the time limit ends the method.

    Raises
    ------
    DeclarationError
        If the method does not take the problem, or the start is not feasible.
    """
    return Districting.algorithm(name, exact=True, cites=cites, rank="published")(solve)


def _decide(
    problem: Districting,
    program: Callable[[Districting], Program],
    start: Plan | None,
    seed: int | np.random.Generator | None,
    trace: Trace,
) -> Outcome:
    plan, deadline = feasible_start(problem, start), trace.deadline
    if (outcome := only_plan(problem)) is not None:
        return outcome
    tables = program(problem)
    small = len(problem.nodes) <= _SMALL
    if plan is None and not small:
        share = None if deadline.left is None else deadline.left / 2
        plan = local_search(problem, restarts=4, seed=seed, time_limit=share).decision
    most = problem.most_cost if plan is None else problem.arrays.cut_cost(plan.labels) - 1
    states, bound = 0, -np.inf

    def note(least: float) -> None:
        nonlocal bound
        bound = max(bound, least)
        trace.add(np.inf if plan is None else plan.cost, bound)

    def late() -> bool:
        trace.check()
        return False

    def settled() -> Outcome:
        """No plan beats the one known."""
        note(np.inf if plan is None else plan.cost)
        message = "" if plan is not None else "the dynamic program ends without a plan"
        status = Status.INFEASIBLE if plan is None else None
        return Outcome(plan, bound, status, states, message, trace.steps)

    try:
        if plan is not None:
            note(0.0)
        relaxed: Bound | None = None
        for fraction in () if small else (None, *_FINER):
            unit = None if fraction is None else int(problem.mean / fraction)
            if unit is not None and unit < 2:
                break
            relaxed = tables.relaxation(unit, most, relaxed, late)
            states += tables.states
            if relaxed is None:
                return settled()
            note(relaxed.least / problem.cost_scale)
            if unit is not None and sum(map(len, relaxed.costs)) < _FEW:
                break
        found = tables.cheapest(most, relaxed, late)
    except (TimeoutError, MemoryError) as stop:
        status = Status.LIMIT if plan is None else Status.FEASIBLE
        return Outcome(plan, max(bound, 0.0), status, states, str(stop), trace.steps)
    states += tables.states
    if found is not None:
        plan = Plan.of(problem, found[1])
    return settled()


def sweep_of(problem: Districting, method: str = "frontier") -> Sweep:
    """The sweep along a short-frontier order; each problem's is planned once.

    Raises
    ------
    DeclarationError
        For another objective, for a feature that the method does not take, or a frontier longer than 16.
    """
    check_features(problem, method)
    g, windows, links = problem.arrays, problem.windows.tolist(), (problem.cannot_link, problem.linked)
    return problem.once("sweep", lambda: Sweep(g, windows, None, *links, problem.pair_limit))


frontier = dynamic_program(
    "frontier",
    sweep_of,
    "Dynamic programming over the frontier of a vertex order, bounded by coarser runs of itself.",
    cites="Cohen-Addad et al. (FORC 2021), Theorem 2, on a path decomposition",
)


def tables_of(problem: Districting, method: str = "sphere-cut") -> SphereCut:
    """The dynamic program of a problem with at least two nodes; each problem's is planned once.

    Raises
    ------
    DeclarationError
        For another objective, for a feature that the method does not take, or a width over 16.
    """
    check_features(problem, method)
    g, windows, links = problem.arrays, problem.windows.tolist(), (problem.cannot_link, problem.linked)

    def make() -> SphereCut:
        decomposition = BranchDecomposition.of(g, [*links[0], *links[1]])
        return SphereCut(decomposition, windows, *links, problem.pair_limit)

    return problem.once("sphere-cut", make)


sphere_cut = dynamic_program(
    "sphere-cut",
    tables_of,
    "Dynamic programming along a branch decomposition from the radial graph, bounded by coarser runs.",
    cites="Cohen-Addad et al. (FORC 2021), Theorem 2",
)
