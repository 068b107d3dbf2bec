"""The best lottery over cohorts under any quotas: an outer program, cuts, and cohorts as priced columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from forcopt.arrays import Array
from forcopt.backends.base import RawResult, Session, SolveOptions
from forcopt.backends.conditioned import open_session
from forcopt.backends.registry import all_capabilities, get_backend
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.compile.compiler import compile_model
from forcopt.compile.program import StageCost
from forcopt.errors import DeclarationError, NotInstalledError
from forcopt.language.constraint import Constraint
from forcopt.language.model import Model
from forcopt.loops.column_generation import Column, Duals, Pricing
from forcopt.loops.column_generation import column_generation as generate
from forcopt.loops.solution import ModelSolution
from forcopt.loops.solve import default_backend
from forcopt.models.leximax_cohort.chain import CohortChain
from forcopt.models.leximax_cohort.classes import Classes
from forcopt.models.leximax_cohort.formulations import goal
from forcopt.models.leximax_cohort.objectives import EXTREME, HIGH, LINEAR, LOW
from forcopt.models.leximax_cohort.problem import LeximaxCohort
from forcopt.models.leximax_cohort.tolerances import CONIC, GAP, LEVEL, RIDGE, SHORT, UNUSED, WHOLE
from forcopt.problem import Outcome
from forcopt.status import Status

_EARLY = 0.5
"""The proved share of a shortfall from which a cut is taken before the shortfall is least."""

_HERDED = 60
"""Classes: with fewer, pricing takes less time than it takes to load the compiled chain."""

_RARE = 0.02
"""The share of states that meet all demands, below which the chain ends with the cohorts that it has."""

_REFINEMENTS = 4
"""Each takes back most of what `RIDGE` changed."""

_QUICK = {"mip_heuristic_run_feasibility_jump": False}
"""HiGHS took half the time for small pricing programs without this heuristic."""


class CohortPricing:
    """The numbers of members with the largest sum of given weights.

    A linear program gives a bound, and often a cohort. If its point is fractional, a small integer program
    over the fractional entries and those of the least reduced costs looks for a cohort nearby; only if that
    is not good enough, the whole integer program decides.
    """

    def __init__(self, classes: Classes, backend: str, deadline: Deadline) -> None:
        self.backend, self.deadline = backend, deadline
        self.model = Model("pricing")
        self.chosen, _ = classes.write(self.model, integer=True)
        self.model.maximize(self.chosen.sum())
        relaxed = Model("relaxed pricing")
        relaxed.maximize(classes.write(relaxed, integer=False)[0].sum())
        self.linear, self.small = _session(relaxed), _session(self.model)
        self.rows = self.linear.program.rows.count

    def best(self, weights: Array, wanted: float) -> tuple[Status, Array | None, float]:
        """Find numbers of members with a sum above `wanted`, if there are any.

        Returns
        -------
        tuple[Status, Array | None, float]
            Of the last program; the numbers, if any were found; and a bound on the sum.
        """
        found = _maximize(self.linear, weights, SolveOptions())
        if found.x is None or found.reduced_cost is None:
            return found.status, None, np.inf
        near, bound = np.round(found.x), -found.objective
        apart = np.abs(found.x - near) > WHOLE
        if bound <= wanted or not apart.any():
            return found.status, None if apart.any() else near, bound
        free = np.zeros(len(near), dtype=bool)
        cost = np.where(apart, -1.0, np.abs(found.reduced_cost))
        free[np.argsort(cost, kind="stable")[: apart.sum() + self.rows]] = True
        program = self.linear.program
        self.small.set_bounds(np.where(free, program.lower, near), np.where(free, program.upper, near))
        tried = _maximize(self.small, weights, SolveOptions(time_limit=self.deadline.left, extra=_QUICK))
        if tried.x is not None and weights @ np.round(tried.x) > wanted:
            return tried.status, np.round(tried.x), bound
        self.model.maximize(self.chosen @ weights)
        result = self.model.solve(self.backend, time_limit=self.deadline.left)
        numbers = None if result.point is None else np.round(result[self.chosen])
        return result.status, numbers, min(float(result.bound), bound)


def _session(model: Model) -> Session:
    chosen = get_backend("highs")
    return open_session(chosen, compile_model(model, chosen.capabilities, "highs", all_capabilities))


def _maximize(session: Session, weights: Array, options: SolveOptions) -> RawResult:
    session.set_stage(StageCost(-weights, 0.0, False))
    return session.solve(options)


class _Target(NamedTuple):
    """What the outer program asks of the master.

    Attributes
    ----------
    numbers : Array
        Of members of each class at the optimum, shape ``(classes,)``.
    low, high : Array
        A lottery whose utilities are between these is as good as the optimum; shape ``(groups,)``.
    """

    numbers: Array
    low: Array
    high: Array

    def miss(self, utilities: Array) -> float:
        """By how much utilities are outside."""
        return float(np.maximum(self.low - utilities, utilities - self.high).max(initial=0.0))


class _Cut(NamedTuple):
    """``weights @ utilities <= most`` holds for every cohort."""

    weights: Array
    most: float


@LeximaxCohort.algorithm(
    "column-generation", exact=True, cites="Flanigan, Gölz, Gupta, Hennig and Procaccia (2021)"
)
def column_generation(
    problem: LeximaxCohort,
    *,
    backend: str = "highs",
    time_limit: float | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Optimise over the marginals that meet all rows, and mix cohorts to that point, or cut it off.

    The outer program has the optimum of the objective over the rows and all cuts: a bound. A master looks for
    a lottery with these utilities, with the least sum of deviations; its multipliers price further cohorts.
    If a deviation stays, they give a cut that holds for every cohort, and the outer program is solved again.
    Where there are many classes of candidates, the first cohorts are drawn by a Markov chain that follows the
    point (`CohortChain`). Mostly they can be mixed to it by linear algebra, and no master is needed. Without
    numba there is no chain, and all cohorts are priced.

    Exact whatever the quotas are, where marginals within the rows may come from no lottery, for every
    objective but ``"uniform"``. The decision carries its lottery. With candidates as their own groups
    (``utilities`` the identity) it is the fair selection of a citizens' assembly; candidates with the same
    features are then one class, and have equal chances.

    Parameters
    ----------
    problem : LeximaxCohort
        With a whole size.
    backend : str, default "highs"
        Takes linear and mixed-integer programs, and gives duals. An outer program that is not linear goes to
        the default backend of its kind.
    time_limit : float, optional
        Seconds for all programs together.
    on_improvement : OnImprovement, optional
        Called with the lottery's objective and the bound after each outer program.

    Returns
    -------
    Outcome
        The bound holds for the objective; for leximin it is on the smallest utility. FEASIBLE if the proof
        did not end in time.

    Raises
    ------
    DeclarationError
        For one cohort, a fractional size, and the objective ``"uniform"``; and for ``"nash"`` and
        ``"goldilocks"``, if the utility of a group is 0 in every cohort.

    References
    ----------
    T. Tieleman, "Training restricted Boltzmann machines using approximations to the likelihood gradient",
    ICML 2008, for the first cohorts.
    J. Wendel, "A problem in geometric probability", Mathematica Scandinavica 11, 1962, for their number.
    """
    if problem.integer or not problem.is_whole or problem.objective == "uniform":
        raise DeclarationError(
            "'column-generation' finds lotteries: size must be whole, and integer=False; and it takes every "
            "objective but 'uniform'"
        )
    trace = Trace(Deadline(time_limit), on_improvement)
    classes = Classes(problem)
    pricing = CohortPricing(classes, backend, trace.deadline)
    status, first, _ = pricing.best(np.zeros(len(classes.sizes)), -np.inf)
    if first is None:
        message = "no cohort was found in time"
        if status is Status.INFEASIBLE:
            message = problem.infeasibility_reason(time_limit=trace.deadline.left)
        return Outcome(None, status=status, message=message)
    known, weights, cuts = first[None, :], np.ones(1), list[_Cut]()
    if problem.objective in ("nash", "goldilocks"):
        known = _reach(classes, pricing, known, trace)
    bound, rounds, status = None, 0, Status.FEASIBLE
    while True:
        if trace.over:
            message = trace.end
            break
        outer, target = _outer(classes, cuts, backend, trace.deadline)
        if target is None:
            message = f"the outer program with {len(cuts)} cuts: {outer.message}"
            break
        bound, cut = outer.bound * problem.unit, None
        if not cuts:
            known = _herd(classes, known, target, trace)
        known, weights = (known, np.zeros(0)) if cuts else _weigh(known, target.numbers)
        if not len(weights):
            known, weights, cut, priced = _mix(classes, pricing, known, target, trace)
            rounds += priced
        utilities = weights @ known @ classes.worth
        value = float(problem.value(utilities, classes.counts))
        trace.add(value * problem.unit, bound)
        close = target.miss(utilities) <= LEVEL * max(1.0, float(np.abs(utilities).max()))
        known_best = np.isfinite(value) and abs(outer.bound - value) <= CONIC * max(1.0, abs(value))
        if close or (problem.objective != "leximin" and known_best):
            status = Status.OPTIMAL
            message = f"{rounds} rounds of pricing, {len(cuts)} cuts"
            break
        if cut is None:
            message = f"the lottery misses the optimum of the outer program by {target.miss(utilities):.1e}"
            break
        cuts.append(cut)
    if len(weights) < len(known):  # stopped before the first master
        weights = np.full(len(known), 1 / len(known))
    used = weights > UNUSED
    cohorts, chances = classes.spread(known[used], weights[used] / weights[used].sum())
    message += f", {len(chances)} cohorts in the lottery"
    lottery = problem.lottery(chances @ cohorts, cohorts, chances)
    return Outcome(lottery, bound, status, rounds, message, trace.steps)


def _reach(classes: Classes, pricing: CohortPricing, known: Array, trace: Trace) -> Array:
    """Add cohorts until every counted group has a utility above 0 in one."""
    while not trace.over:
        lost = (known @ classes.worth <= 0).all(axis=0)
        if not lost.any():
            break
        status, found, most = pricing.best(classes.worth @ lost, UNUSED)
        if found is not None and found @ classes.worth @ lost > UNUSED:
            known = np.vstack([known, found])
        elif status is Status.OPTIMAL and most <= UNUSED:
            names = [classes.names[j] for j in np.flatnonzero(lost)[:5]]
            raise DeclarationError(
                f"the utility of {', '.join(names)} is 0 in every cohort, so that the objective "
                f"{classes.problem.objective!r} is infinite: forbid these candidates, or take another one"
            )
    return known


def _herd(classes: Classes, known: Array, target: _Target, trace: Trace) -> Array:
    """Add cohorts whose mean comes near the target, so many that some lottery over them most likely meets it.

    Of N points that lie symmetrically about a centre in d dimensions the hull holds the centre with the
    probability that N - 1 coins show heads at least d times (Wendel, 1962): one half for 2 d, and 0.995 for
    the N here, 2.8 standard deviations more.
    """
    d, steps = len(classes.sizes), 4 * len(classes.of)
    if d < _HERDED:
        return known
    chances, wanted = (target.numbers / classes.sizes)[classes.of], 2 * d + round(4 * np.sqrt(d))
    chain, herd = CohortChain(classes.problem, np.random.default_rng(0), steps, chances), [*known]
    try:
        looks = range(round(wanted / _RARE) if chain.settle() else 0)
    except NotInstalledError:
        return known
    for _ in looks:
        if trace.over or len(herd) > wanted:
            break
        if chain.look():
            herd.append(np.bincount(classes.of[chain.members], minlength=d).astype(float))
    return np.unique(herd, axis=0)


def _weigh(known: Array, numbers: Array) -> tuple[Array, Array]:
    """Mix cohorts to the target without a program: the least change of equal weights.

    The mean of a herd is near the target, so the change is small. Cohorts whose weight would be negative
    leave, as long as the rest can be mixed to the target.

    Returns
    -------
    tuple[Array, Array]
        The cohorts with positive weights, and the weights; all cohorts and no weights, if that fails.
    """
    some, goal = known, np.append(numbers, 1.0)
    while len(some) > 1:
        mean = np.vstack([some.T, np.ones(len(some))])
        weights = np.full(len(some), 1 / len(some))
        gram = mean @ mean.T
        factor = cho_factor(gram + RIDGE * gram.trace() * np.eye(len(gram)))
        for _ in range(_REFINEMENTS):
            weights += mean.T @ cho_solve(factor, goal - mean @ weights)
        if np.abs(mean @ weights - goal).max() > SHORT:
            break
        if (weights >= 0).all():
            return some, weights
        some = some[weights > 0]
    return known, np.zeros(0)


def _outer(
    classes: Classes, cuts: list[_Cut], backend: str, deadline: Deadline
) -> tuple[ModelSolution, _Target | None]:
    """Optimise over the rows and the cuts."""
    problem, model = classes.problem, Model("marginals")
    z, u = classes.write(model, integer=False)
    if cuts:
        model.subject_to(u @ np.transpose([c.weights for c in cuts]) <= np.array([c.most for c in cuts]))
    model.optimize(goal(problem, model, u, classes.counts))
    chosen = backend if problem.objective in LINEAR else default_backend(model)
    result = model.solve(chosen, time_limit=deadline.left)
    if result.status is not Status.OPTIMAL:
        return result, None
    utilities = result[z] @ classes.worth
    low, high = utilities, utilities
    if problem.objective in EXTREME:
        low, high = np.full_like(low, low.min()), np.full_like(high, high.max())
    low = low if problem.objective in LOW else np.full_like(low, -np.inf)
    high = high if problem.objective in HIGH else np.full_like(high, np.inf)
    return result, _Target(result[z], low, high)


def _mix(
    classes: Classes, pricing: CohortPricing, known: Array, target: _Target, trace: Trace
) -> tuple[Array, Array, _Cut | None, int]:
    """Find the lottery that misses the target least.

    Returns
    -------
    tuple[Array, Array, _Cut | None, int]
        All known cohorts, their weights, the cut that is violated most, if any is, and the rounds.
    """
    model = Model("lottery")
    lots = model.variable("lots", len(known), lower=0)
    mixed = lots @ (known @ classes.worth)
    one = model.subject_to(lots.sum() == 1)
    sides: list[tuple[Constraint, Array]] = []
    missing = model.variable("missing", (2, len(target.low)), lower=0)
    if np.isfinite(target.low).all():
        sides.append((model.subject_to(mixed + missing[0] >= target.low), target.low))
    if np.isfinite(target.high).all():
        sides.append((model.subject_to(mixed - missing[1] <= target.high), target.high))
    model.minimize(missing.sum())
    cut, violation = None, SHORT

    def price(dual: Duals) -> Pricing:
        nonlocal cut, violation
        worth = np.sum([dual(row) for row, _ in sides], axis=0)
        level, wanted = sum(float(dual(row) @ ends) for row, ends in sides), -float(dual(one))
        _, found, most = pricing.best(classes.worth @ worth, wanted + UNUSED)
        if level - most > violation:
            cut, violation = _Cut(worth, most), level - most
        columns = []
        if found is not None:
            gets = found @ classes.worth
            columns.append(Column(0.0, {one: 1.0, **{row: gets for row, _ in sides}}, data=found))
            most = max(most, float(worth @ gets))
        return Pricing(columns, min(wanted - most, 0.0))

    found = generate(
        model,
        price,
        pricing.backend,
        total=1.0,
        gap=GAP,
        time_limit=trace.deadline.left,
        on_improvement=lambda step: (
            trace.over or step.objective <= SHORT or step.bound >= max(_EARLY * step.objective, SHORT)
        ),
    )
    known = np.vstack([known, *(c.data for c in found.columns)])
    result = found.solution
    if result.point is None:
        return known, np.full(len(known), 1 / len(known)), None, found.rounds
    weights = np.maximum(np.concatenate([result[lots], result[found.variable]]), 0.0)
    return known, weights / weights.sum(), cut, found.rounds
