"""Two districts as a simple cycle of the planar dual: exact search, and lists of all plans."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.errors import DeclarationError
from forcopt.graphs.planar_dual import PlanarDual
from forcopt.graphs.window_cycles import WindowCycles
from forcopt.models.districting.local_search import local_search
from forcopt.models.districting.plan import Plan, feasible_start, without_choice
from forcopt.models.districting.problem import Districting, jit_warmup
from forcopt.problem import Outcome
from forcopt.status import Status

_STEP = 2
"""The limit on the cost rises by the cost of 2 average edges a round: about 2.2 times as many paths."""

TAKES = ("seats", "each", "one", "sum", "plan")
"""What dual cycles take, of that which not all methods take."""

_LISTED = 10_000_000
"""A list of plans holds at most this number: about 2 gigabytes."""

_BYTES = ">i4"
"""Edges in bytes, which sort as the edges do."""

_PATIENCE = 1.0
"""Seconds of search without a plan, after which a local search seeks one."""


def cycles_of(problem: Districting, method: str = "dual-cycles") -> WindowCycles:
    """Set up the search for the plans of a problem with two districts on a connected graph.

    Parameters
    ----------
    problem : Districting
        With the objective ``cut`` and two districts.
    method : str, optional
        The name that errors give.

    Returns
    -------
    WindowCycles
        Each cycle is a plan. The search of a problem is set up once.

    Raises
    ------
    DeclarationError
        For another objective or number of districts, and for a disconnected or nonplanar graph.
    """
    problem.require(method, "cut", takes=TAKES)
    if problem.districts != 2:
        raise DeclarationError(
            f"method {method!r} takes two districts, not {problem.districts}; "
            "'column-generation' and 'frontier' take any number"
        )
    try:
        dual = problem.once("dual", lambda: PlanarDual.of(problem.arrays))
    except DeclarationError as error:
        raise DeclarationError(
            f"method {method!r}: {error}; 'frontier', 'column-generation' and 'labels-separators' "
            "take any graph"
        ) from None
    return problem.once("cycles", lambda: _cycles(problem, dual))


def _cycles(problem: Districting, dual: PlanarDual) -> WindowCycles:
    (low, high), (least, most) = problem.windows.tolist()
    return WindowCycles(
        dual,
        max(low, problem.total - most),
        min(high, problem.total - least),
        symmetric=not problem.unequal_seats,
        must_link=[pair for group in problem.must_link for pair in pairwise(group)],
        cannot_link=problem.cannot_link,
        longest=problem.cut_limit,
    )


def accepts(problem: Districting, search: WindowCycles) -> Callable[[Array], bool] | None:
    """Give the test of the constraints that the search of cycles leaves open; None if there are none."""
    fixed_seats = problem.unequal_seats and problem._fixed()
    if not (problem.all_rules or fixed_seats):
        return None

    def accept(edges: Array) -> bool:
        return problem.evaluate(Plan.from_labels(problem, search.dual.sides(edges))).feasible

    return accept


@Districting.algorithm(
    "dual-cycles",
    exact=True,
    cites="bonds and cycles: Diestel, Graph Theory, Proposition 4.6.1; Horowitz and Sahni (1974)",
    prepare=jit_warmup("dual-cycles", "local-search", districts=2),
    rules=TAKES[1:],
)
def dual_cycles(
    problem: Districting,
    *,
    start: Plan | None = None,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Search for the shortest cycle of the planar dual whose enclosed population is admissible.

    Parameters
    ----------
    problem : Districting
        With one or two districts, a planar graph and the objective ``cut``; with any side constraints.
    start : Plan, optional
        A feasible plan; only cheaper ones are sought.
    seed : int or numpy.random.Generator, optional
        Of the local search for a first plan, which runs if the search takes more than a second.
    on_improvement : callable, optional
        Called with each better plan or bound; it stops the search by returning True.

    Returns
    -------
    Outcome
        The bound rises with each round. At the memory limit, the message gives the cost at which the
        search stopped, and the bound is that of the last complete round.

    Raises
    ------
    DeclarationError
        For another objective, for more districts, and for a nonplanar graph.

    Notes
    -----
    Round after round, all cycles that cost at most a limit are searched, see `WindowCycles`. A round without
    a plan proves that every plan costs more than its limit. The limit rises by the cost of two average
    edges, so that each round takes about twice the time of the one before.
    """
    deadline = Deadline(time_limit)
    trace = Trace(deadline, on_improvement)
    problem.require("dual-cycles", "cut", takes=TAKES)
    start = feasible_start(problem, start)
    if (outcome := without_choice(problem)) is not None:
        return outcome
    search = cycles_of(problem)
    accept = accepts(problem, search)
    costs, scale = problem.arrays.costs, problem.cost_scale
    plan: Plan | None = start
    best = 1 + (int(costs.sum()) if problem.most_cost is None else problem.most_cost)
    if start is not None:
        best = problem.arrays.cut_cost(start.labels)
    bound, paths = 0, search.paths

    def note() -> None:
        trace.add(np.inf if plan is None else plan.cost, bound / scale)

    step = max(1.0, _STEP * float(costs.mean()))
    limit = 2 * step
    cut: list[int] = []
    try:
        while bound < best:
            trace.check()
            if plan is None and deadline.seconds > _PATIENCE:
                first = local_search(problem, restarts=4, seed=seed, time_limit=deadline.left).decision
                if first is not None:
                    plan, best = first, problem.arrays.cut_cost(first.labels)
                    note()
            most = min(int(limit), best - 1)
            for cost, edges in search.search(most, separator=cut, accept=accept, pause=trace.check):
                plan, best, cut = Plan.from_labels(problem, search.dual.sides(edges)), cost, edges.tolist()
                note()
            bound = min(most + 1, best)
            note()
            limit += step
    except (TimeoutError, MemoryError) as stop:
        message = str(stop)
        if isinstance(stop, MemoryError):
            message = f"stopped at cost {most / scale:g}: {message}"
        status = Status.LIMIT if plan is None else Status.FEASIBLE
        return Outcome(plan, bound / scale, status, search.paths - paths, message, trace.steps)
    if plan is None:
        message = "no cycle of the dual graph encloses an admissible population"
        return Outcome(None, np.inf, Status.INFEASIBLE, search.paths - paths, message, trace.steps)
    return Outcome(plan, iterations=search.paths - paths, trace=trace.steps)


class CycleCounter:
    """Counts and ranks of the plans of two districts, by a list of all cycles.

    Parameters
    ----------
    problem : Districting
        With two districts on a connected planar graph.
    most : int, optional
        The largest cost, in the units of ``problem.arrays``; all plans if left out.

    Raises
    ------
    MemoryError
        While it counts, if there are more than 10 million plans, or their paths do not fit in memory.
    """

    def __init__(self, problem: Districting, most: int | None) -> None:
        self.problem = problem
        self.search = cycles_of(problem, "count with dual-cycles")
        self.accept = accepts(problem, self.search)
        self.most = int(problem.arrays.costs.sum()) if most is None else most

    @cached_property
    def _by_cost(self) -> dict[int, list[bytes]]:
        return self._listed(lambda: False)

    def _listed(self, stop: Callable[[], bool]) -> dict[int, list[bytes]]:
        def pause() -> None:
            if stop():
                raise TimeoutError

        # With different numbers of seats a cycle may satisfy the bounds in both directions.
        found: dict[int, set[bytes]] = {}
        cycles = self.search.search(self.most, every=True, accept=self.accept, pause=pause)
        try:
            for number, (cost, edges) in enumerate(cycles, 1):
                found.setdefault(cost, set()).add(edges.astype(_BYTES).tobytes())
                if number > _LISTED:
                    raise MemoryError(f"they are more than {_LISTED}")
        except MemoryError as error:
            raise MemoryError(
                f"the plans of cost at most {self.most / self.problem.cost_scale:g} are not counted: "
                f"{error}; a smaller max_cost leaves fewer plans, and 'frontier' counts without listing them"
            ) from None
        return {cost: sorted(found[cost]) for cost in sorted(found)}

    def histogram(self, stop: Callable[[], bool]) -> dict[int, int]:
        """The number of plans of each cost; raises `TimeoutError` if `stop` returns True."""
        self._by_cost = self._listed(stop)
        return {cost: len(cycles) for cost, cycles in self._by_cost.items()}

    def ranked(self, cost: int, rank: int) -> list[list[int]]:
        """The districts of one plan; ranks order the plans by the positions of their cut edges."""
        side = self.search.dual.sides(np.frombuffer(self._by_cost[cost][rank], _BYTES).astype(np.int64))
        return [np.flatnonzero(side == d).tolist() for d in (0, 1)]
