"""Large neighbourhood search; and a dispatcher over all methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline, Improvement, OnImprovement, Trace
from forcopt.errors import DeclarationError
from forcopt.graphs.kernels import LARGEST
from forcopt.graphs.planar_dual import PlanarDual
from forcopt.language.expression import Expression
from forcopt.language.model import Model
from forcopt.models.districting.column_generation import column_generation
from forcopt.models.districting.compactness import BORDER, PERIMETER
from forcopt.models.districting.districts import CUT, SCORES
from forcopt.models.districting.dynamic import frontier, sweep_of
from forcopt.models.districting.local_search import annealed_kind, local_search
from forcopt.models.districting.plan import Plan, feasible_start, minimizing
from forcopt.models.districting.problem import Districting, measures
from forcopt.models.districting.recom import recom
from forcopt.models.districting.screen import completable, least_splits, screened
from forcopt.models.districting.set_partitioning import set_partitioning
from forcopt.models.districting.short_borders import fewest_cuts
from forcopt.models.districting.side_constraints import CannotLink, CutLimit, MustLink, Share, SplitLimit
from forcopt.problem import Outcome
from forcopt.status import Status

_SECONDS = 60.0
"""The search for three districts ends after this time, and keeps the best that it found."""


@Districting.algorithm("large-neighbourhood", cites="Shaw (1998)")
@minimizing
def large_neighbourhood(
    problem: Districting,
    *,
    start: Plan | None = None,
    backend: str | None = None,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Draw three districts of a plan anew by column generation, until no three become cheaper.

    Parameters
    ----------
    problem : Districting
        With the objective ``cut`` or a sum over districts, equal seats, and no limits on shares or splits.
    start : Plan, optional
        A feasible plan. A local search gives one by default.
    backend : str, optional
        Solves the linear and integer programs; ``highs`` by default.
    seed : int or numpy.random.Generator, optional
        Of the local search.

    Returns
    -------
    Outcome
        The best plan, without a bound.

    Raises
    ------
    DeclarationError
        For another objective, such limits, or a start that is not feasible.

    Notes
    -----
    In plans of three districts, and for a sum over districts, two are drawn anew. Plans of two districts
    are left to the local search. The search for three districts runs once, for at most 60 s.

    References
    ----------
    .. [1] Shaw, Using constraint programming and local search methods to solve vehicle routing problems,
       Principles and Practice of Constraint Programming 1998.

    Examples
    --------
    >>> from forcopt.data import delaunay
    >>> p = Districting(delaunay(60, 1), districts=4, tolerance=0.1)
    >>> first = p.solve("local-search", restarts=1, seed=0)
    >>> p.solve("large-neighbourhood", start=first.decision).objective <= first.objective
    True
    """
    problem.require("large-neighbourhood", "cut", "goal")
    deadline = Deadline(time_limit)
    trace = Trace(deadline, on_improvement)
    plan = feasible_start(problem, start)
    if plan is None:
        first = local_search(problem, seed=seed, time_limit=deadline.left)
        if first.decision is None:
            return first
        plan = first.decision
    value = problem.evaluate(plan).objective
    trace.add(value, float("-inf"))
    done: set[frozenset[tuple[int, ...]]] = set()
    number = min(3 if problem.goal is None else 2, problem.districts - 1)
    improved = number > 1
    while improved and not trace.over:
        improved = False
        for chosen in combinations(range(problem.districts), number):
            nodes = np.flatnonzero(np.isin(plan.labels, chosen))
            parts = frozenset(tuple(np.flatnonzero(plan.labels == d).tolist()) for d in chosen)
            if parts in done or len(problem.arrays.components(nodes.tolist())) > 1:
                continue
            done.add(parts)
            labels = np.array(plan.labels)
            labels[nodes] = np.array(chosen)[_drawn(problem, nodes, labels[nodes], backend, deadline)]
            other = Plan.from_labels(problem, labels)
            found = problem.evaluate(other)
            improved = found.feasible and found.objective < value
            if improved:
                plan, value = other, found.objective
                trace.add(value, float("-inf"))
            if improved or trace.over:
                break
    return Outcome(plan, iterations=len(done), trace=trace.steps)


def _part(problem: Districting, nodes: Array, districts: int, rules: Sequence[object]) -> Districting:
    """The problem of some nodes alone, in the same order, with other rules."""
    graph, kept = problem.graph.copy(), {problem.nodes[v] for v in nodes}
    for v in kept if problem.goal is not None else ():  # the border with other districts stays a border
        apart = sum(data.get(BORDER, 0) for _, u, data in graph.edges(v, data=True) if u not in kept)
        graph.nodes[v][PERIMETER] = graph.nodes[v].get(PERIMETER, 0) + apart
    graph.remove_nodes_from([v for v in problem.nodes if v not in kept])
    given = {"graph": graph, "districts": districts, "bounds": problem.population_bounds}
    return problem.replace(**given, tolerance=None, seats=None, side_constraints=rules)


def _drawn(
    problem: Districting, nodes: Array, labels: Array, backend: str | None, deadline: Deadline
) -> Array:
    """Divide nodes into as many districts as labels, at least cost: numbers from 0 on."""
    links = [
        kind(nodes=(problem.nodes[u], problem.nodes[v]))
        for kind, pairs in ((MustLink, problem.linked), (CannotLink, problem.cannot_link))
        for u, v in pairs
        if u in nodes and v in nodes
    ]
    of = np.unique(labels, return_inverse=True)[1]
    local = _part(problem, nodes, int(of.max()) + 1, links)
    start = Plan.from_labels(local, of)
    limit = _SECONDS if deadline.left is None else min(_SECONDS, deadline.left)
    drawn = column_generation(local, start=start, backend=backend, time_limit=limit).decision
    return np.asarray((start if drawn is None else drawn).labels)


_FEW = 20
"""Districts of this number of nodes on average are listed by reduced cost on nonplanar graphs."""

_LARGE = 8
"""Larger districts on average are listed by reduced cost, and only searched for if no plan is known."""

_HUGE = 50
"""Of larger districts on average, three are drawn anew at a time before the first proof begins."""

_LOCAL, _COVERS = 1 / 3, 1 / 4
"""The local search and the set partitioning before a proof take these shares of the time that is left."""

_DRAWN = 1 / 3
"""So does the drawing of large districts."""

_FIRST_PROOF, _DRAWN_AFTER = 1 / 4, 2 / 3
"""So do the first proof of smaller districts, and their drawing after it."""

_ROUNDS = ((1, 2_000, 3_000_000), (8, 10_000, 60_000_000))
"""Annealing schedules, their steps for each node, partial districts of the search; then the proof begins."""

_MOVES, _BURST = 1000, 10
"""Where the local search takes the cut for the objective, a chain follows: a step for so many moves, in
bursts of so many steps."""

_LONG = (1000, 40_000)
"""With rules or seats such schedules follow for at most a minute, in place of the drawing."""

_SCREEN = 1 / 4
"""So does the search for districts that meet a share."""

_DIVIDED, _MOST_DIVIDED = 1 / 2, 200
"""So do the divisions of what a district that meets a share leaves, if they are at most so many."""

_SPLITS = 1 / 3
"""So does the search for a plan with a limit on splits; what is left then lowers the cut of the best."""

_CLUSTERS = 1 / 10
"""So does the bound on splits by clusters of counties."""


@Districting.algorithm(
    "portfolio",
    exact=True,
    cites="see the methods that it runs",
    rules=("each", "one", "sum", "plan"),
)
@minimizing
def portfolio(
    problem: Districting,
    *,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Choose methods by the graph, each starting from the best plan and the best bound so far.

    Two districts of a connected planar graph without rules are left to column generation. Otherwise a local
    search gives a plan. Set partitioning looks at some million partial districts on at most 128 nodes (before
    column generation only if districts are small, no plan is known, or there are rules). A method with a
    bound follows for the objective ``cut``: column generation on connected planar graphs and where districts
    hold few nodes, else the dynamic program if frontiers hold at most 16 nodes, else the integer program
    ``labels-separators`` on HiGHS. The latter also follows for ``least-change``, whose local search begins at
    the enacted plan if that is connected, and for ``deviation`` on more nodes. Other objectives are searched
    to the end, on at most 128 nodes.

    For the objective ``splits``, clusters of counties bound the splits from below. Plans of least cut within
    a limit on splits follow, first for k - 1 splits of k districts, then for fewer, until the bound is met.

    With a `Share`, a district that meets it is sought first. If there is none, there is no plan; nor if a
    `SplitLimit` is below the bound on splits. If a `Share` is the only constraint, the districts that meet it
    are listed, and what each of them leaves is divided.

    Before column generation, three districts of a plan at a time are drawn anew: if districts hold more than
    50 nodes on average, or if a first column generation ends without a proof after a quarter of the time
    that is left. Without a time limit, smaller districts are not drawn anew. With rules on districts or
    plans, or different numbers of seats, a local search takes the place of the drawing.

    Parameters
    ----------
    problem : Districting
        With any objective and side constraints.
    seed : int or numpy.random.Generator, optional
        Of the local search.

    Returns
    -------
    Outcome
        The best plan and the best bound of all methods.

    Raises
    ------
    DeclarationError
        For the objective ``inertia`` on more than 128 nodes, or with different numbers of seats and `Fixed`.
    """
    finish = _last(problem)
    if finish is None and not _searchable(problem) and problem.objective == "inertia":
        raise DeclarationError(f"'portfolio' takes no objective inertia here; {problem.inertia_takers}")
    run = _Run(problem, Trace(Deadline(time_limit), on_improvement), seed)
    if (outcome := screened(problem, run.part(_SCREEN))) is not None:
        return outcome
    if (outcome := fewest_cuts(problem, run.trace)) is not None:
        return outcome
    if problem.objective == "splits":
        return run.ended(run.by(fewest_splits))
    free = not (problem.all_rules or problem.unequal_seats)
    if problem.districts == 2 and free and finish is column_generation and _planar(problem):
        return run.ended(run.by(finish))
    shares = [isinstance(item, Share) for item in problem.side_constraints] == [True] and not problem.rules
    divided = shares and problem.objective == "cut" and not problem.unequal_seats and problem.districts > 1
    if divided and (outcome := _by_share(run)) is not None:
        return run.ended(outcome)
    found = run.search(finish)
    if found is not None:
        return run.ended(found)
    if finish is column_generation and run.draws_anew:
        share = _DRAWN
        if len(problem.nodes) <= _HUGE * problem.districts:
            # Most small districts are proved at once; a plan of others has yet to improve.
            outcome = run.by(finish, _FIRST_PROOF, start=run.plan)
            if run.trace.over or outcome.status in (None, Status.INFEASIBLE):
                return run.ended(outcome)
            run.plan, share = outcome.decision, _DRAWN_AFTER
        if run.annealed:
            run.anneal(min(share, _SECONDS / (run.trace.deadline.left or _SECONDS)), *_LONG)
        else:
            run.plan = run.by(large_neighbourhood, share, start=run.plan).decision
    if finish is None or run.trace.over:
        return run.ended(run.without_proof())
    return run.ended(run.by(finish, start=run.plan))


class _Run:
    """Methods in turn: the best plan so far, and the trace of the best plan and the best bound of all."""

    def __init__(self, problem: Districting, trace: Trace, seed: int | np.random.Generator | None) -> None:
        self.problem, self.trace, self.seed = problem, trace, seed
        self.plan: Plan | None = None
        self.steps, self.annealed = 0, bool(problem.tied) or problem.unequal_seats

    @property
    def draws_anew(self) -> bool:
        """Whether three districts of the plan at a time are drawn anew before the proof.

        With rules or seats, the plan is annealed anew. Small districts are left to the proof if there is no
        time limit.
        """
        problem, limit = self.problem, self.trace.deadline.limit
        if self.annealed:
            return limit is not None and not self.trace.over
        if self.plan is None or problem.districts <= 3 or self.trace.over:
            return False
        return limit is not None or len(problem.nodes) > _HUGE * problem.districts

    def part(self, share: float) -> Deadline:
        """A share of the time that is left, at most a minute."""
        left = self.trace.deadline.left
        return Deadline(_SECONDS if left is None else min(_SECONDS, share * left))

    def by(self, method: Callable[..., Outcome], share: float = 1.0, **options: Any) -> Outcome:
        """Run a method in a share of the time that is left."""
        left = self.trace.deadline.left
        limit = None if left is None else share * left
        outcome = method(self.problem, time_limit=limit, seed=self.seed, on_improvement=self.note, **options)
        self.steps += outcome.iterations
        return outcome

    def note(self, step: Improvement) -> bool:
        """Keep a method's step if its plan or its bound is better than those of all methods before."""
        last = self.trace.steps[-1] if self.trace.steps else None
        if last is None or step.objective < last.objective or step.bound > last.bound:
            value = step.objective if last is None else min(step.objective, last.objective)
            self.trace.add(value, step.bound if last is None else max(step.bound, last.bound))
        return self.trace.stopped

    def anneal(self, share: float, restarts: int, steps_each: int) -> None:
        """Search locally for a better plan."""
        steps = steps_each * len(self.problem.nodes)
        found = self.by(local_search, share, restarts=restarts, steps=steps).decision
        by_cut = self.problem.goal is not None and annealed_kind(self.problem) == CUT
        if found is not None and by_cut and not self.problem.unequal_seats:
            steps //= _MOVES
            found = self.by(recom, share, start=found, steps=steps, burst=_BURST).decision
        if self.plan is None or (
            found is not None and _value(self.problem, found) < _value(self.problem, self.plan)
        ):
            self.plan = found

    def search(self, finish: Callable[..., Outcome] | None) -> Outcome | None:
        """Search for a plan; give the outcome if a proof ends the search, or if no other method follows."""
        problem, searchable = self.problem, _searchable(self.problem)
        large = len(problem.nodes) > _LARGE * problem.districts
        by_lists = finish is column_generation and large and not problem.tied  # rules weaken its bound
        for number, (restarts, steps_each, budget) in enumerate(_ROUNDS[by_lists:], 1):
            self.anneal(1.0 if finish is None else _LOCAL, restarts, steps_each)
            if searchable and not self.trace.stopped and (self.plan is None or not by_lists):
                last = finish is None and number == len(_ROUNDS)
                share, most = (1.0, None) if last else (_COVERS, budget)
                outcome = self.by(set_partitioning, share, start=self.plan, budget=most)
                self.plan = outcome.decision
                if outcome.status in (None, Status.INFEASIBLE) or last:
                    return outcome
            if self.trace.over:
                break
        return None

    def without_proof(self) -> Outcome:
        """The best plan, where time ran out or no exact method goes on."""
        status = Status.LIMIT if self.plan is None else Status.FEASIBLE
        why = self.trace.end if self.trace.over else "no exact method takes a score with a rule on the plan"
        return Outcome(self.plan, float("-inf"), status, message=why)

    def ended(self, outcome: Outcome) -> Outcome:
        """The outcome of the last method, with the trace, the steps and the best bound of all."""
        trace = self.trace
        outcome.trace, outcome.iterations = trace.steps, self.steps
        if trace.over and outcome.status in (Status.FEASIBLE, Status.LIMIT):
            outcome.message = trace.end  # not that of the method's share
        if outcome.status not in (None, Status.INFEASIBLE) and trace.steps:
            outcome.bound = max(trace.steps[-1].bound, -np.inf if outcome.bound is None else outcome.bound)
        return outcome


def _by_share(run: _Run) -> Outcome | None:
    """Divide what each district that meets the only share leaves; the run keeps the best plan.

    Give the outcome if these are all such districts, and the division of each is decided.
    """
    problem, value, k = run.problem, np.inf, run.problem.districts
    (share,), g, left = problem.side_constraints, problem.arrays, run.trace.deadline.left
    assert isinstance(share, Share)
    until = Deadline(None if left is None else _DIVIDED * left)
    sets, every = completable(problem, share, run.part(_SCREEN))
    if not every or len(sets) > _MOST_DIVIDED:
        return None
    others = [share.model_copy(update={"districts": share.districts - 1})] if share.districts > 1 else []
    for taken in sets:
        cut = g.cut_cost(taken) / problem.cost_scale
        if cut >= value:
            break
        if run.trace.over or until.passed:
            return None
        below = [CutLimit(limit=int(value - cut) - 1)] if value < np.inf and (g.costs == 1).all() else []
        rest = _part(problem, np.flatnonzero(~taken), k - 1, [*others, *below])
        reason = rest.infeasibility_reason()
        found = Outcome.infeasible(reason) or portfolio(rest, time_limit=until.left, seed=run.seed)
        every = every and found.status in (None, Status.OPTIMAL, Status.INFEASIBLE)
        if found.decision is not None and cut + found.decision.cost < value:
            labels = np.full(g.size, k)
            labels[~taken] = found.decision.labels
            run.plan = Plan.from_labels(problem, labels)
            value = run.plan.cost
            run.trace.add(value, -np.inf)
    if not every:
        return None
    message = "" if run.plan else f"no rest of a district that meets {share!r} has {k - 1} districts"
    return Outcome(run.plan, value, Status.OPTIMAL if run.plan else Status.INFEASIBLE, message=message)


def _value(problem: Districting, plan: Plan) -> float:
    return problem.evaluate(plan).objective


def _searchable(problem: Districting) -> bool:
    """Whether set partitioning takes the problem."""
    if problem.goal is not None or problem.objective == "least-change":
        return False
    seats = problem.unequal_seats and (problem.objective == "deviation" or bool(problem._fixed()))
    return len(problem.nodes) <= LARGEST and not seats


def _last(problem: Districting) -> Callable[..., Outcome] | None:
    """The method that runs to the end, if there is one for the objective."""
    if problem.goal is not None:
        tied = any(rule.scope == "plan" for rule in problem.all_rules)
        scored = any(leaf.name in SCORES for leaf in measures(problem.goal.function))
        return column_generation if not tied else None if scored else _by_cuts
    if problem.objective != "cut":
        return None if _searchable(problem) or problem.objective == "inertia" else _by_cuts
    listed = len(problem.nodes) <= _FEW * problem.districts or _planar(problem)
    if listed and all(rule.scope != "plan" for rule in problem.all_rules):
        return column_generation
    try:
        sweep_of(problem)
    except DeclarationError:
        return _by_cuts
    return frontier


def _planar(problem: Districting) -> bool:
    """Whether districts can be listed as dual cycles."""
    try:
        problem.once("dual", lambda: PlanarDual.of(problem.arrays))
    except DeclarationError:
        return False
    return True


def _by_cuts(
    problem: Districting,
    *,
    start: Plan | None,
    time_limit: float | None,
    seed: int | np.random.Generator | None,
    on_improvement: OnImprovement,
) -> Outcome:
    """The integer program that takes the largest graphs, started from the plan known."""
    model = Model("plan")
    handles = problem.declare(model, "labels-separators", all_rows=False)
    assert isinstance(handles.objective, Expression)
    model.minimize(handles.objective)
    known = None if start is None else handles.start_at(start)

    def stopped(step: Improvement) -> bool | None:
        """Steps are of plans that may fall apart, and of the start's own program: none is kept."""
        return on_improvement(replace(step, objective=np.inf, bound=-np.inf))

    result = model.solve(time_limit=time_limit, seed=seed, start=known, on_improvement=stopped)
    plan = handles.decision(result) if result.status.has_solution else start
    if start is not None and plan is not None:
        better = problem.evaluate(plan).feasible and _value(problem, plan) < _value(problem, start)
        plan = plan if better else start
    if plan is not None:
        on_improvement(Improvement(result.seconds, _value(problem, plan), result.bound))
    ended = result.status is Status.OPTIMAL or (result.status is Status.INFEASIBLE and plan is None)
    status = result.status if ended else Status.LIMIT if plan is None else Status.FEASIBLE
    return Outcome(plan, result.bound, status, result.iterations, result.message)


def fewest_splits(
    problem: Districting,
    *,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Plans of least cut within falling limits on splits, until the bound by clusters is met."""
    deadline = Deadline(time_limit)
    trace, k = Trace(deadline, on_improvement), problem.districts
    run = _Run(problem, trace, seed)
    bound, best, splits = least_splits(problem, run.part(_CLUSTERS)), None, np.inf
    settled = False  # whether no plan of so few splits has a lower cut than the best
    most = int((np.minimum(np.bincount(problem.units(problem.county)), k) - 1).sum())
    limit, message = min(most, max(bound, k - 1)), ""

    def within(limit: int) -> Districting:
        rule = SplitLimit(limit=limit, attribute=problem.county)
        return problem.replace(objective="cut", side_constraints=(*problem.side_constraints, rule))

    while bound <= min(most, splits - 1) and not trace.over:
        share = None if deadline.left is None else _SPLITS * deadline.left
        found = portfolio(within(limit), time_limit=share, seed=seed)
        run.steps += found.iterations
        if found.decision is not None:
            best, settled = Plan.from_labels(problem, found.decision.labels), found.status is Status.OPTIMAL
            splits = _value(problem, best)
            trace.add(splits, float(bound))
            limit = int(splits) - 1
        elif found.status is Status.INFEASIBLE:
            bound, message = limit + 1, found.message
            limit = min(most, 2 * limit + 1) if best is None else limit
        elif best is None and limit < most:
            limit = min(most, 2 * limit + 1)
        else:
            break
    if best is not None and not settled and not trace.over:
        local = within(int(splits))
        start = Plan.from_labels(local, best.labels)
        restarts = _ROUNDS[-1][0] if deadline.left is None else _LONG[0]
        found = local_search(local, start=start, restarts=restarts, time_limit=deadline.left, seed=seed)
        best = Plan.from_labels(problem, found.decision.labels)
    if best is None and bound > most:
        return Outcome(None, np.inf, Status.INFEASIBLE, run.steps, message)
    status = Status.LIMIT if best is None else Status.OPTIMAL if splits <= bound else Status.FEASIBLE
    message = trace.end if trace.over else ""
    return Outcome(best, float(min(bound, splits)), status, run.steps, message, trace.steps)
