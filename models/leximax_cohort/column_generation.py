"""The leximax lottery under any quotas, with cohorts as priced columns; marginals by the ellipsoid method."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.errors import BackendError, DeclarationError
from forcopt.language.model import Model
from forcopt.loops.column_generation import Column, Duals, GeneratedSolution, Pricing
from forcopt.loops.column_generation import column_generation as generate
from forcopt.models.leximax_cohort.formulations import write_choice
from forcopt.models.leximax_cohort.problem import LeximaxCohort
from forcopt.models.leximax_cohort.tolerances import GAP, LEVEL, SHARE, UNUSED
from forcopt.problem import Outcome
from forcopt.status import Status

_MOST_COVERING = 100
"""The largest number of cohorts in the first master."""


class _Pricing:
    """The cohort with the largest sum of given weights: by sorting, or by an integer program with quotas."""

    def __init__(self, problem: LeximaxCohort, backend: str, deadline: Deadline) -> None:
        self.problem, self.backend, self.deadline = problem, backend, deadline
        self.model = Model("pricing")
        self.chosen, _ = write_choice(problem, self.model, integer=True)

    def best(self, weights: Array) -> tuple[Status, Array | None, float]:
        """The status, the cohort's row of 0 and 1 (None if none is found), and a bound on the sum."""
        lower, upper = self.problem.bounds
        bare = not self.problem.quotas and not self.problem.household_rows.shape[0]
        if bare and lower.sum() <= self.problem.size <= upper.sum():
            ranked = np.where(lower == 1.0, np.inf, np.where(upper == 0.0, -np.inf, weights))
            cohort = np.zeros(len(weights))
            cohort[np.argsort(-ranked, kind="stable")[: round(self.problem.size)]] = 1.0
            return Status.OPTIMAL, cohort, float(weights @ cohort)
        self.model.maximize(self.chosen @ weights)
        result = self.model.solve(self.backend, time_limit=self.deadline.left)
        found = None if result.point is None else np.round(result[self.chosen])
        return result.status, found, float(result.bound)


@LeximaxCohort.algorithm(
    "column-generation", exact=True, cites="Flanigan, Gölz, Gupta, Hennig and Procaccia (2021), LEXIMIN"
)
def column_generation(
    problem: LeximaxCohort,
    *,
    backend: str = "highs",
    time_limit: float | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Raise the utilities of all groups by a lottery over cohorts, fix the saturated ones, and repeat.

    Exact whatever the quotas are, where marginals within the rows may come from no lottery. The decision
    carries its lottery. With candidates as their own groups (``utilities`` the identity) it is the fair
    selection of a citizens' assembly.

    Parameters
    ----------
    problem : LeximaxCohort
        With a whole size.
    backend : str, default "highs"
        Takes linear and mixed-integer programs, and gives duals.
    time_limit : float, optional
        Seconds for masters and pricing together.
    on_improvement : OnImprovement, optional
        Called with each better level, or bound on it, of the first stage.

    Returns
    -------
    Outcome
        The bound holds for the smallest utility. FEASIBLE if a level was not proved in time.
    """
    if problem.integer or not problem.is_whole:
        raise DeclarationError("'column-generation' finds lotteries: size must be whole, and integer=False")
    trace = Trace(Deadline(time_limit), on_improvement)
    pricing = _Pricing(problem, backend, trace.deadline)
    status, first, _ = pricing.best(np.zeros(len(problem.utilities)))
    if first is None:
        message = "no cohort was found in time"
        if status is Status.INFEASIBLE:
            message = problem.infeasibility_reason(time_limit=trace.deadline.left)
        return Outcome(None, status=status, message=message)
    cohorts = _cover(problem, pricing, first, trace)
    weights = np.full(len(cohorts), 1 / len(cohorts))
    m = problem.utilities.shape[1]
    fixed: dict[int, float] = {}
    bound, rounds = None, 0
    while len(fixed) < m:
        found, (highest, shares), cohorts = _level(problem, pricing, cohorts, fixed, trace)
        result, rounds = found.solution, rounds + found.rounds
        bound = result.bound * problem.unit if bound is None else bound
        if result.point is not None:  # it holds the levels before, too
            weights = np.maximum(result.point[1:], 0.0)
            weights /= weights.sum()
        weights = np.append(weights, np.zeros(len(cohorts) - len(weights)))
        if result.point is None or highest - result.objective > LEVEL * max(1.0, abs(result.objective)):
            ended = result.status if result.status is Status.FAILED else Status.FEASIBLE
            message = f"level {len(fixed) + 1}: {result.message}"
            return Outcome(
                problem.lottery(weights @ cohorts, cohorts, weights),
                bound,
                ended,
                rounds,
                message,
                trace.steps,
            )
        free = np.array([j for j in range(m) if j not in fixed])
        height = float((problem.utilities.T @ (weights @ cohorts))[free].min()) / problem.unit
        tight = free[shares > min(SHARE, 0.5 / len(free))]
        if not tight.size:
            raise BackendError(f"{backend}: the multipliers of level {len(fixed) + 1} do not add up to 1")
        fixed |= dict.fromkeys(tight.tolist(), height)
    used = weights > UNUSED
    cohorts, weights = cohorts[used], weights[used] / weights[used].sum()
    message = f"{rounds} cohorts priced, {used.sum()} in the lottery"
    return Outcome(
        problem.lottery(weights @ cohorts, cohorts, weights), bound, None, rounds, message, trace.steps
    )


def _cover(problem: LeximaxCohort, pricing: _Pricing, first: Array, trace: Trace) -> Array:
    """Give cohorts that together serve all groups, each best for weights that fall with a group's utility.

    A start for the master; without it the first levels stay at 0 for one round a group.
    """
    V, cohorts = problem.utilities / problem.unit, [first]
    top = float(np.abs(V).max()) or 1.0
    for _ in range(min(3 * int(np.ceil(len(V) / problem.size)), _MOST_COVERING)):
        if trace.over:
            break
        received = np.maximum(V.T @ np.sum(cohorts, axis=0) / top, 0.0)
        _, cohort, _ = pricing.best(V @ (1 / (0.1 + received) ** 2))
        if cohort is None:
            break
        cohorts.append(cohort)
    return np.unique(cohorts, axis=0)


def _level(
    problem: LeximaxCohort, pricing: _Pricing, cohorts: Array, fixed: dict[int, float], trace: Trace
) -> tuple[GeneratedSolution, tuple[float, Array], Array]:
    """Raise the level of all groups that are not fixed; levels count in the problem's unit.

    Returns
    -------
    tuple[GeneratedSolution, tuple[float, Array], Array]
        The solution; the least bound on the level, with the multipliers that prove it; all known cohorts.
    """
    V, unit = problem.utilities / problem.unit, problem.unit
    free = np.array([j for j in range(V.shape[1]) if j not in fixed])
    held = np.array(sorted(fixed), dtype=int)
    reached = np.array([fixed[j] for j in held.tolist()])
    model = Model("lottery")
    level = model.variable("level")
    known = model.variable("known", len(cohorts), lower=0)
    mixed = known @ (cohorts @ V)
    raised = model.subject_to(mixed[free] - level >= 0)
    kept = model.subject_to(mixed[held] >= reached) if held.size else None
    one = model.subject_to(known.sum() == 1)
    model.maximize(level)
    # The multipliers of an earlier round may prove the level.
    proof: tuple[float, Array] = np.inf, np.zeros(len(free))

    def price(dual: Duals) -> Pricing:
        nonlocal proof
        worth = np.zeros(V.shape[1])
        worth[free] = -dual(raised)
        if kept is not None:
            worth[held] = -dual(kept)
        _, cohort, most = pricing.best(V @ worth)
        if most - worth[held] @ reached < proof[0]:
            proof = float(most - worth[held] @ reached), worth[free]
        if cohort is None:  # the time limit
            return Pricing([], np.inf)
        gets = V.T @ cohort
        enters = {raised: gets[free], one: 1.0} | ({} if kept is None else {kept: gets[held]})
        column = Column(0.0, enters, data=cohort)
        reduced = dual.reduced_cost(column)
        return Pricing([column], max(reduced, reduced + most - float(worth @ gets), 0.0))

    found = generate(
        model,
        price,
        pricing.backend,
        total=1.0,
        gap=GAP,
        time_limit=trace.deadline.left,
        on_improvement=lambda step: (
            trace.stopped if fixed else trace.add(step.objective * unit, step.bound * unit)
        ),
    )
    return found, proof, np.vstack([cohorts, *(c.data for c in found.columns)])


@LeximaxCohort.algorithm(
    "ellipsoid", cites="Henzinger et al. (2022), Lemma 16, made full-dimensional", rank="published"
)
def ellipsoid(
    problem: LeximaxCohort,
    *,
    accuracy: float = 1e-3,
    steps: int = 100_000,
    time_limit: float | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Maximise the sums of the 1, 2, ... smallest utilities in turn, cutting an ellipsoid in halves.

    The paper's regions have no interior, since the size is an equality and earlier levels are fixed. Here the
    last candidate's probability follows from the others', and fixed sums may fall short by half the
    accuracy; the levels then are right to about the accuracy. A stage takes O(n²) steps for each digit, a
    step O(n² + n m): the other methods are faster by orders of magnitude.

    Parameters
    ----------
    problem : LeximaxCohort
        Without quotas, forced or forbidden candidates, and negative utilities.
    accuracy : float, default 0.001
        Of the sums.
    steps : int, default 100000
        The largest number of steps in a stage.
    time_limit : float, optional
        Seconds for all stages together.
    on_improvement : OnImprovement, optional
        Called with each better smallest utility or bound of the first stage.

    Returns
    -------
    Outcome
        The bound on the smallest utility is the top of the ellipsoid at the end of the first stage. FEASIBLE
        if a stage did not end.

    Raises
    ------
    DeclarationError
        For other problems, and an accuracy that is not positive.
    """
    if (
        problem.integer
        or problem.signed
        or problem.quotas
        or problem.households
        or problem.forced.size
        or problem.forbidden.size
    ):
        raise DeclarationError(
            "'ellipsoid' is for marginals without quotas, forced or forbidden candidates and signed utilities"
        )
    if not accuracy > 0:
        raise DeclarationError(f"accuracy is {accuracy}; it must be positive")
    n, m = problem.utilities.shape
    x = np.full(n, problem.size / n)
    sums = np.zeros(0)
    taken, bound = 0, float(problem.utilities.sum(axis=0).min())
    trace = Trace(Deadline(time_limit), on_improvement)
    if n == 1:
        return Outcome(problem.lottery(x))
    for rank in range(1, m + 1):
        found, done, top, ended = _stage(problem, sums - 0.5 * accuracy, rank, accuracy, steps, trace)
        taken += done
        if rank == 1:
            bound = min(bound, top)
        if found is not None and (rank == 1 or ended):
            x = found
        if found is None or not ended:
            message = f"stage {rank} of {m} did not end in {steps} steps"
            if trace.over:
                message = f"the run ended in stage {rank} of {m}"
            elif ended:
                message = f"stage {rank} of {m} met no feasible point: choose a smaller accuracy"
            return Outcome(problem.lottery(x), bound, Status.FEASIBLE, taken, message, trace.steps)
        sums = np.append(sums, np.sort(problem.utilities.T @ x)[:rank].sum())
    return Outcome(problem.lottery(x), bound, iterations=taken, trace=trace.steps)


def _stage(
    problem: LeximaxCohort, fixed: Array, rank: int, accuracy: float, steps: int, trace: Trace
) -> tuple[Array | None, int, float, bool]:
    """Maximize the sum of the `rank` smallest utilities where the sums of fewer are at least `fixed`.

    Returns
    -------
    tuple[Array | None, int, float, bool]
        The best point, the number of steps, an upper bound on the sum, and whether the accuracy is reached.
    """
    V, k = problem.utilities, problem.size
    n = len(V)
    centre = np.append(np.full(n - 1, k / n), 0.0)  # probabilities but the last, and the sum
    shape = np.eye(n) * ((n - 1) + (rank * k * V.max() + 1) ** 2)
    best, highest, bound = None, -np.inf, np.inf
    for step in range(1, steps + 1):
        # All better points are in the ellipsoid: none has a greater sum than its top.
        top = max(float(centre[-1] + np.sqrt(max(shape[-1, -1], 0.0))), highest)
        improved = top < bound - accuracy
        bound = min(bound, top)
        cut, value, x = _cut(V, k, centre, fixed, rank)
        if value > highest:
            best, highest, improved = x, value, True
        if rank == 1 and improved and best is not None:
            trace.add(highest, bound)
        if trace.over:
            return best, step, bound, False
        along = shape @ cut
        width = float(np.sqrt(max(cut @ along, 0.0)))
        if min(width, float(np.sqrt(max(shape[-1, -1], 0.0)))) < 0.1 * accuracy:
            return best, step, bound, True
        centre = centre - along / ((n + 1) * width)
        shape = n * n / (n * n - 1) * (shape - 2 / (n + 1) * np.outer(along, along) / width**2)
    return best, steps, bound, False


def _cut(V: Array, k: float, z: Array, fixed: Array, rank: int) -> tuple[Array, float, Array]:
    """A half-space through `z` that keeps all better points; and the sum, if `z` is feasible."""
    n = len(V)
    x = np.append(z[:-1], k - z[:-1].sum())
    cut = np.zeros(n)
    for sign, wrong in ((1.0, x > 1.0), (-1.0, x < 0.0)):
        if wrong.any():
            i = int(np.argmax(wrong))
            cut[: n - 1] = -sign if i == n - 1 else 0.0
            if i < n - 1:
                cut[i] = sign
            return cut, -np.inf, x
    order = np.argsort(V.T @ x, kind="stable")
    prefixes = np.cumsum((V.T @ x)[order])[:rank]
    short = np.append(fixed, z[-1]) > prefixes
    if short.any():
        size = int(np.argmax(short)) + 1
        weights = V[:, order[:size]].sum(axis=1)
        cut[: n - 1] = weights[-1] - weights[:-1]
        cut[-1] = 1.0 if size == rank else 0.0
        # The sum at hand is feasible if it is only that which is too high.
        return cut, float(prefixes[-1]) if size == rank else -np.inf, x
    cut[-1] = -1.0
    return cut, float(prefixes[-1]), x
