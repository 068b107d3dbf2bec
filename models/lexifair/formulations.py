"""Groups' losses as expressions with a leximax objective; models as columns; every classifier."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline, Improvement, OnImprovement
from forcopt.errors import DeclarationError
from forcopt.language.atoms import maximum, sum_largest
from forcopt.language.model import Model
from forcopt.language.objective import Objective, SortedMethod, leximax, minimize
from forcopt.loops.column_generation import Column, Duals, Pricing
from forcopt.loops.column_generation import column_generation as generate
from forcopt.models.lexifair.classification import LexifairClassification
from forcopt.models.lexifair.problem import GroupModel, Level, Lexifair, Multipliers, prove, sums_of_largest
from forcopt.models.lexifair.regression import LexifairRegression
from forcopt.models.lexifair.tolerances import FITTED, HELD, NEGLIGIBLE, PRICED, PROVED
from forcopt.problem import Handles, Outcome
from forcopt.status import Status


def _write(problem: Lexifair, model: Model, method: SortedMethod) -> Handles:
    losses, decision, parts = problem.write(model)
    scaled = losses / problem.loss_unit
    goal: Objective = (
        minimize(maximum(scaled, axis=0)) if problem.level_count == 1 else leximax(scaled, method)
    )
    return Handles(objective=goal, decision=decision, losses=losses, unit=problem.loss_unit, **parts)


@LexifairRegression.formulation("compact", exact=True, cites="Ogryczak and Śliwiński (2006)")
@LexifairClassification.formulation("compact", exact=True, cites="Ogryczak and Śliwiński (2006)")
def compact(problem: Lexifair, model: Model) -> Handles:
    """Stage j minimises the sum of the j largest losses, which K + 1 more columns and rows express.

    Equal to the paper's program (1) with its exponentially many rows. Convex if the class is: a linear
    program for mixtures, second-order cones for least squares; mixed-integer for a single classifier. If
    there are fewer levels than groups, the others are solved as well, except that one level is one stage.

    Returns
    -------
    Handles
        ``losses``, shape ``(K,)``; ``coefficients``, shape ``(d,)``, or ``probabilities``, shape ``(N,)``.
    """
    return _write(problem, model, "compact")


@LexifairRegression.formulation(
    "row-generation", exact=True, cites="Diana et al. (2021), program (1)", rank="published"
)
@LexifairClassification.formulation(
    "row-generation", exact=True, cites="Diana et al. (2021), program (1)", rank="published"
)
def row_generation(problem: Lexifair, model: Model) -> Handles:
    """The paper's rows, a sum of losses for each set of groups; sorting the losses finds the violated ones.

    This is the auditor of Algorithm 1 as a separation oracle; otherwise as ``compact``.

    Returns
    -------
    Handles
        As ``compact``.
    """
    return _write(problem, model, "cuts")


@LexifairClassification.algorithm(
    "enumeration", exact=True, cites="Diana et al. (2021), Definition 1", rank="oracle"
)
def enumeration(problem: LexifairClassification, *, time_limit: float | None = None) -> Outcome:
    """Sort the sorted error vectors of all classifiers: the best single one. O(N K log(N K)).

    Parameters
    ----------
    problem : LexifairClassification
        With ``randomized=False``.
    time_limit : float, optional
        Seconds, checked once the errors of all classifiers are known: after it, the classifier with the least
        largest error is returned without the sort of the other errors.
    """
    if problem.randomized:
        raise DeclarationError("method 'enumeration' finds a single classifier: declare randomized=False")
    deadline = Deadline(time_limit)
    table = problem.error_table
    if deadline.passed:
        largest = table.max(axis=1)
        best = int(largest.argmin())
        return Outcome(
            problem.mixture([best], [1.0]),
            bound=float(largest[best]),
            status=Status.FEASIBLE,
            iterations=len(table),
            message=f"{deadline.end}: only the largest errors were compared",
        )
    ordered = -np.sort(-table, axis=1)[:, : problem.level_count]
    best = int(np.lexsort(ordered.T[::-1])[0])
    return Outcome(problem.mixture([best], [1.0]), iterations=len(ordered))


@LexifairRegression.algorithm(
    "column-generation", exact=True, cites="Diana et al. (2021), equation (4), dual"
)
@LexifairClassification.algorithm(
    "column-generation", exact=True, cites="Diana et al. (2021), equation (4), dual"
)
def column_generation(
    problem: Lexifair,
    *,
    backend: str = "highs",
    gap: float = PRICED,
    time_limit: float | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Mix the known models by a linear program; its multipliers weigh the groups for the next fit.

    The dual of level j seeks weights of the groups that make the least weighted loss as large as possible:
    each round fits one model to the weights at hand, by least squares or cost-sensitive classification, and
    that fit gives a bound for free. A mixture of linear models is replaced by their mean, which is no worse
    in any group. Levels reached are held at the mixture's true values.

    Parameters
    ----------
    gap : float, default 1e-07
        The gap at which a level is done, relative to the sum of losses that it minimises.
    on_improvement : OnImprovement, optional
        Gets the first level's value and bound after each fit.
    """
    problem.check_randomized("column-generation")
    return _all_levels(problem, _Pool(problem, backend, gap), Deadline(time_limit), on_improvement)


def finish(problem: Lexifair, decision: GroupModel, deadline: Deadline) -> Outcome:
    """Prove that a decision of another method is optimal, and improve the levels at which it is not.

    Parameters
    ----------
    problem : Lexifair
        Its class of models is convex.
    decision : GroupModel
        The first of the known models.
    deadline : Deadline
        The clock of the run.

    Returns
    -------
    Outcome
        The outcome of ``column-generation``.
    """
    pool = _Pool(problem, "highs", PRICED)
    pool.models.insert(0, problem.mix([decision], np.ones(1)))
    return _all_levels(problem, pool, deadline)


def _all_levels(
    problem: Lexifair, pool: _Pool, deadline: Deadline, on_improvement: OnImprovement | None = None
) -> Outcome:
    proofs: list[list[Multipliers]] = []
    rounds: list[int] = []
    trace: list[Improvement] = []
    best = pool.models[0]
    status = Status.OPTIMAL
    message = ""
    for rank in range(1, problem.level_count + 1):
        limits = sums_of_largest(best.losses)[: rank - 1]
        proofs.append([])
        rounds.append(0)
        for slack in HELD:
            pool.slack = slack
            found = pool.solve(rank, limits, deadline.left, on_improvement if rank == 1 else None)
            proofs[-1] += found.proofs
            rounds[-1] += found.rounds
            if rank == 1:
                trace = found.trace
            ours, theirs = sums_of_largest(found.model.losses), sums_of_largest(best.losses)
            # twice: a solver may exceed its limits by its tolerance
            kept = ours[: rank - 1] <= 2 * pool.held(limits) - limits
            if kept.all() and ours[rank - 1] <= theirs[rank - 1]:
                best = found.model
                pool.add(best)
            reached = float(sums_of_largest(best.losses)[rank - 1])
            proved = max((proof.bound(pool.held(limits)) for proof in proofs[-1]), default=0.0)
            done = reached - proved <= PROVED * rank * pool.scale
            if done or found.status is Status.LIMIT or rank == 1:
                break
        if not done:
            status = Status.FEASIBLE
            message = f"level {rank} ended {reached - proved:.2g} above its bound: {found.message}"
            break
    levels = prove(sums_of_largest(best.losses), proofs, rounds)
    return Outcome(
        replace(best, levels=levels),
        bound=levels[0].bound,
        status=status,
        iterations=sum(rounds),
        message=message,
        trace=trace,
    )


def audit(problem: Lexifair, decision: GroupModel, backend: str = "highs") -> tuple[Level, ...]:
    """See `Lexifair.audit`."""
    problem.check_randomized("audit")
    totals = sums_of_largest(problem.group_losses(decision))
    pool = _Pool(problem, backend, PRICED)
    pool.add(problem.mix([decision], np.ones(1)))
    found = [pool.solve(rank, totals[: rank - 1]) for rank in range(1, problem.level_count + 1)]
    return prove(totals, [f.proofs for f in found], [f.rounds for f in found])


@dataclass(eq=False)
class _Found:
    model: GroupModel
    proofs: list[Multipliers]
    rounds: int
    status: Status
    message: str
    trace: list[Improvement] = field(default_factory=list)


class _Pool:
    """The known models; each level adds to them.

    Losses are measured in units of the largest one of the first model, so that a solver's absolute
    tolerances mean something.
    """

    def __init__(self, problem: Lexifair, backend: str, gap: float) -> None:
        self.problem, self.backend, self.gap = problem, backend, gap
        count = len(problem.groups)
        self.models: list[GroupModel] = [problem.best_response(np.full(count, 1.0 / count))]
        largest = float(self.models[0].losses.max())
        rounding = FITTED * float(np.square(problem.labels).max())
        self.scale = largest if largest > rounding else 1.0
        self.slack = HELD[0]

    def add(self, model: GroupModel) -> None:
        """Add a model."""
        self.models.append(model)

    def held(self, limits: Array) -> Array:
        """The limits on the sums of 1, 2, ... losses, if these are held at `limits`."""
        return np.asarray(limits + self.scale * self.slack * np.arange(1, len(limits) + 1))

    def solve(
        self,
        rank: int,
        limits: Array,
        time_limit: float | None = None,
        on_improvement: OnImprovement | None = None,
    ) -> _Found:
        """Minimize the sum of the `rank` largest losses; sums of fewer stay at most `limits`."""
        problem, scale = self.problem, self.scale
        table = np.array([m.losses for m in self.models]) / scale
        master = Model(f"level {rank}")
        p = master.variable("p", len(table), lower=0)
        loss = master.variable("loss", table.shape[1], lower=0)
        fit = master.subject_to(loss - table.T @ p >= 0, name="fit")
        one = master.subject_to(p.sum() == 1, name="one")
        held = [
            master.subject_to(sum_largest(loss, r) <= limit / scale, name=f"held[{r}]")
            for r, limit in enumerate(self.held(limits), 1)
        ]
        master.minimize(sum_largest(loss, rank))

        proof: tuple[float, Array, Array] = -np.inf, np.zeros(0), np.zeros(0)

        def price(dual: Duals) -> Pricing:
            nonlocal proof
            weights = np.maximum(dual(fit), 0.0)
            best = problem.best_response(weights)
            losses = best.losses / scale
            prices = np.array([-float(dual(row)) for row in held])
            bound = float(weights @ losses - prices @ self.held(limits) / scale)
            if bound > proof[0]:  # the last multipliers need not be the best
                proof = bound, weights, np.append(prices, 1.0)
            column = Column(0.0, {fit: -losses, one: 1.0}, data=best)
            return Pricing([column], dual.reduced_cost(column))

        def scaled(seen: Improvement) -> bool:
            if on_improvement is None:
                return False
            return bool(on_improvement(Improvement(seen.seconds, scale * seen.objective, scale * seen.bound)))

        done = generate(
            master, price, self.backend, total=1.0, gap=self.gap, time_limit=time_limit, on_improvement=scaled
        )
        solution = done.solution
        fresh: list[GroupModel] = [c.data for c in done.columns]
        shown = Multipliers.of(problem, *proof[1:]) if np.isfinite(proof[0]) else None
        proofs = [] if shown is None else [shown]
        if solution.point is None:
            self.models += fresh
            message = f"{self.backend} calls it {solution.status}: {solution.message}"
            return _Found(self.models[-1], proofs, done.rounds, solution.status, message)
        chances = np.concatenate([solution[p], solution[done.variable]])
        chances = np.where(chances > NEGLIGIBLE, chances, 0.0)
        everything = self.models + fresh
        mixed = problem.mix(everything, chances / chances.sum())
        # near copies of one model make later masters singular
        self.models = [m for m, chance in zip(everything, chances, strict=True) if chance > 0]
        trace = [Improvement(t.seconds, scale * t.objective, scale * t.bound) for t in solution.trace]
        return _Found(mixed, proofs, done.rounds, solution.status, solution.message, trace)
