"""Groups' losses as expressions with a leximax objective; models as columns; every classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline, Improvement, OnImprovement
from forcopt.language import Constraint, Expression, Model, maximum, sum_largest
from forcopt.language.objective import Objective, SortedMethod, leximax, minimize
from forcopt.learning import OracleTimeout
from forcopt.loops.column_generation import Column, Duals, Pricing
from forcopt.loops.column_generation import column_generation as generate
from forcopt.models.lexifair.classification import LexifairClassification
from forcopt.models.lexifair.problem import Fit, GroupModel, Lexifair, Multipliers, prove, sums_of_largest
from forcopt.models.lexifair.regression import LexifairRegression
from forcopt.models.lexifair.tolerances import AUDITED, FITTED, HELD, NEGLIGIBLE, PRICED, PROVED
from forcopt.problem import Handles, Outcome
from forcopt.status import Status

_PRINTED, _DUAL = "Diana et al. (2021), program (1)", "Diana et al. (2021), equation (4), dual"


def _write(problem: Lexifair, model: Model, method: SortedMethod) -> Handles:
    losses, decision, parts = problem.write(model)
    scaled, one = losses / problem.loss_unit, problem.level_count == 1
    goal: Objective = minimize(maximum(scaled, axis=0)) if one else leximax(scaled, method)
    return Handles(goal, decision, losses=losses, unit=problem.loss_unit, **parts)


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
        ``losses``, shape ``(K,)``; ``coefficients``, shape ``(d,)``, of a regression.
    """
    return _write(problem, model, "compact")


@LexifairRegression.formulation("row-generation", exact=True, cites=_PRINTED, rank="published")
@LexifairClassification.formulation("row-generation", exact=True, cites=_PRINTED, rank="published")
def row_generation(problem: Lexifair, model: Model) -> Handles:
    """The paper's rows, a sum of losses for each set of groups; sorting the losses finds the violated ones.

    This is the auditor of Algorithm 1 as a separation oracle; otherwise as ``compact``.

    Returns
    -------
    Handles
        As ``compact``.
    """
    return _write(problem, model, "cuts")


@LexifairRegression.algorithm("column-generation", exact=True, cites=_DUAL)
@LexifairClassification.algorithm("column-generation", exact=True, cites=_DUAL)
def column_generation(
    problem: Lexifair,
    *,
    backend: str = "highs",
    gap: float | None = None,
    time_limit: float | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Mix the known models by a linear program; its multipliers weigh the records for the next fit.

    The dual of level j seeks weights of the groups that make the least weighted loss as large as possible:
    each round fits one model to the weights at hand, by a weighted fit or cost-sensitive classification, and
    that fit gives a bound for free. A mixture of models whose losses are convex is replaced by their mean,
    which is no worse in any group. Levels reached are held at the mixture's true values.

    With an exact oracle the end is optimal. With a learner it is approximate: the levels are bounded as if
    the learner's fits were optimal (an audit), and the learner finds no model that improves the mixture.

    Parameters
    ----------
    gap : float, optional
        The gap at which a level is done, relative to the sum of losses that it minimises; 1e-7 by default,
        and 1e-3 with a learner.
    on_improvement : OnImprovement, optional
        Gets the first level's value and bound after each fit.
    """
    problem.check_randomized("column-generation")
    deadline = Deadline(time_limit)
    return _all_levels(problem, Pool(problem, backend, gap, deadline), deadline, on_improvement)


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
    pool = Pool(problem, "highs", None, deadline)
    pool.models.insert(0, problem.fit_of(decision))
    return _all_levels(problem, pool, deadline)


def _all_levels(
    problem: Lexifair, pool: Pool, deadline: Deadline, on_improvement: OnImprovement | None = None
) -> Outcome:
    proofs: list[list[Multipliers]] = []
    rounds: list[int] = []
    trace: list[Improvement] = []
    best = pool.models[0]
    status = Status.OPTIMAL if problem.exact else Status.APPROXIMATE
    message = ""
    for rank in range(1, problem.level_count + 1):
        limits = sums_of_largest(best.losses)[: rank - 1]
        proofs.append([])
        rounds.append(0)
        for slack in HELD if problem.exact else HELD[:1]:
            pool.slack = slack
            found = pool.level(rank, limits, deadline.left, on_improvement if rank == 1 else None)
            proofs[-1] += found.proofs
            rounds[-1] += found.rounds
            if rank == 1:
                trace = found.trace
                if found.fit is None and (len(best.moments) or found.status is Status.INFEASIBLE):
                    return no_mixture(problem, found)
            if found.fit is not None:
                ours, theirs = sums_of_largest(found.fit.losses), sums_of_largest(best.losses)
                # twice: a solver may exceed its limits by its tolerance
                kept = ours[: rank - 1] <= 2 * pool.held(limits) - limits
                constrained = rank == 1 and len(best.moments)  # the first models need not satisfy it
                if kept.all() and (constrained or ours[rank - 1] <= theirs[rank - 1]):
                    best = found.fit
                    pool.models.append(best)
            reached = float(sums_of_largest(best.losses)[rank - 1])
            proved = max([problem.floor, *(proof.bound(pool.held(limits)) for proof in proofs[-1])])
            done = reached - proved <= PROVED * rank * pool.scale
            if done or found.status is Status.LIMIT or rank == 1:
                break
        if not done:
            message = f"level {rank} ended {reached - proved:.2g} above its bound: {found.message}"
            if problem.exact or deadline.passed:
                status = Status.FEASIBLE if problem.exact else status
                break
    levels = prove(sums_of_largest(best.losses), proofs, rounds, problem.floor)
    if not problem.exact:
        message = message or "the learner finds no model that improves a level"
        message += "; levels are bounded as if the learner's fits were optimal"
    decision, bound = replace(problem.decide(best), levels=levels), levels[0].bound if problem.exact else None
    return Outcome(decision, bound, status, sum(rounds), message, trace)


def no_mixture(problem: Lexifair, found: Found) -> Outcome:
    """The outcome of a master without a solution; the fits of a learner prove nothing."""
    status, message = found.status, found.message
    if status is Status.INFEASIBLE and not problem.exact:
        status = Status.LIMIT
        message = "no mixture of the models that the learner finds satisfies the rows; this proves nothing"
    return Outcome(None, status=status, iterations=found.rounds, message=message)


def audit(problem: Lexifair, decision: GroupModel, backend: str = "highs") -> tuple[Any, ...]:
    """See `Lexifair.audit`."""
    problem.check_randomized("audit")
    own = problem.fit_of(decision)
    totals = sums_of_largest(own.losses)
    pool = Pool(problem, backend, None, Deadline())
    pool.models.append(own)
    found = [pool.level(rank, totals[: rank - 1]) for rank in range(1, problem.level_count + 1)]
    return prove(totals, [f.proofs for f in found], [f.rounds for f in found], problem.floor)


@dataclass(eq=False)
class Found:
    """How a master ended.

    Attributes
    ----------
    fit : Fit or None
        The best mixture.
    proofs : list[Multipliers]
        Lower bounds.
    rounds : int
        The number of solved masters.
    status : Status
        Of the last one.
    message : str
        Why it ended.
    bound : float
        On the objective, in units of loss.
    trace : list[Improvement]
        In units of loss.
    """

    fit: Fit | None
    proofs: list[Multipliers]
    rounds: int
    status: Status
    message: str
    bound: float = -np.inf
    trace: list[Improvement] = field(default_factory=list)


Goal = Callable[[Model, Expression], tuple[Expression, list[Constraint]]]
"""Writes the objective over group losses, and the rows that limit them, in units of `Pool.scale`."""


class Pool:
    """The known models, and the master that mixes them; each solve adds models.

    Losses are measured in units of the largest one of the first model, so that a solver's absolute
    tolerances mean something.

    Parameters
    ----------
    problem : Lexifair
        Whose oracle finds the models.
    backend : str
        Solves the masters.
    gap : float or None
        The relative gap at which a master is done.
    deadline : Deadline
        Of the oracle.
    """

    def __init__(self, problem: Lexifair, backend: str, gap: float | None, deadline: Deadline) -> None:
        self.problem, self.backend = problem, backend
        self.gap = (PRICED if problem.exact else AUDITED) if gap is None else gap
        self.respond = problem.responder(deadline)
        count = len(problem.groups)
        known = problem.start()
        try:
            first = self.respond(np.full(count, 1.0 / count), np.zeros(0))
        except OracleTimeout:
            first = known[0]
        self.models: list[Fit] = [first, *(known if len(first.moments) else [])]
        largest = float(first.losses.max())
        rounding = FITTED * float(np.square(problem.labels).max())
        self.scale = largest if largest > rounding else 1.0
        self.slack = HELD[0]

    def held(self, limits: Array) -> Array:
        """The limits on the sums of 1, 2, ... losses, if these are held at `limits`."""
        return np.asarray(limits + self.scale * self.slack * np.arange(1, len(limits) + 1))

    def level(
        self, rank: int, limits: Array, time_limit: float | None = None, report: OnImprovement | None = None
    ) -> Found:
        """Minimize the sum of the `rank` largest losses; sums of fewer stay at most `limits`."""

        def goal(master: Model, loss: Expression) -> tuple[Expression, list[Constraint]]:
            most = enumerate(self.held(limits) / self.scale, 1)
            return sum_largest(loss, rank), [sum_largest(loss, r) <= limit for r, limit in most]

        found, weights, prices = self.solve(goal, time_limit, report)
        if len(weights):
            if len(self.models[0].moments):  # the bound counts the rows of the constraint, too
                found.proofs.append(Multipliers(prices, found.bound + float(prices @ self.held(limits))))
                return found
            with suppress(OracleTimeout):
                shown = Multipliers.of(self.respond, weights, np.append(prices, 1.0))
                found.proofs += [] if shown is None else [shown]
        return found

    def solve(
        self, goal: Goal, time_limit: float | None = None, report: OnImprovement | None = None
    ) -> tuple[Found, Array, Array]:
        """Solve a master over mixtures, with the best weights of the groups and prices of the limits."""
        problem, scale = self.problem, self.scale
        table = np.array([m.losses for m in self.models]) / scale
        master = Model("mixtures")
        p = master.variable("p", len(table), lower=0)
        loss = master.variable("loss", table.shape[1], lower=problem.floor)
        rows = {master.subject_to(loss - table.T @ p >= 0, name="fit"): 1.0 / scale}
        one = master.subject_to(p.sum() == 1, name="one")
        moments = np.array([m.moments for m in self.models])
        if moments.shape[1]:
            seen = master.variable("moments", moments.shape[1])
            rows[master.subject_to(seen - moments.T @ p == 0, name="seen")] = 1.0
            master.subject_to(problem.rows(seen))
        objective, limits = goal(master, loss)
        held = [master.subject_to(limit, name=f"held[{r}]") for r, limit in enumerate(limits, 1)]
        master.minimize(objective)
        trace: list[Improvement] = []  # with the bounds of the fits; the master's last one is its own value
        best: tuple[float, Array, Array] = -np.inf, np.zeros(0), np.zeros(0)
        last: tuple[float, Array, Array] = best  # reduced cost, weights of groups, prices of the limits

        def price(dual: Duals) -> Iterable[Column] | Pricing:
            nonlocal last
            paid = [np.asarray(dual(row)) for row in rows]
            weights = np.maximum(paid[0], 0.0)
            try:
                answer = self.respond(weights / scale, np.concatenate(paid[1:] or [np.zeros(0)]))
            except OracleTimeout:
                return []
            made = zip(rows.items(), [answer.losses, answer.moments], strict=False)
            entries: dict[Constraint, Any] = {row: -unit * a for (row, unit), a in made}
            column = Column(0.0, {**entries, one: 1.0}, data=answer)
            reduced = dual.reduced_cost(column)
            last = reduced, weights, np.array([-float(dual(row).sum()) for row in held])
            return Pricing([column], reduced) if problem.exact else [column]

        def watch(seen: Improvement) -> bool:
            nonlocal best
            value = seen.objective + min(last[0], 0.0)
            if value > best[0] or not problem.exact:  # the last multipliers need not be the best
                best = value, *last[1:]
            stop = not problem.exact and -last[0] <= self.gap * max(abs(seen.objective), NEGLIGIBLE)
            trace.append(Improvement(seen.seconds, scale * seen.objective, scale * best[0]))
            return bool(report is not None and report(trace[-1])) or stop

        done = generate(
            master, price, self.backend, total=1.0, gap=self.gap, time_limit=time_limit, on_improvement=watch
        )
        solution = done.solution
        everything: list[Fit] = [*self.models, *(c.data for c in done.columns)]
        if solution.point is None:
            self.models = everything
            message = f"{self.backend} calls it {solution.status}: {solution.message}"
            return Found(None, [], done.rounds, solution.status, message), np.zeros(0), np.zeros(0)
        chances = np.concatenate([solution[p], solution[done.variable]])
        chances = np.where(chances > NEGLIGIBLE, chances, 0.0)
        mixed = problem.blend(everything, chances / chances.sum())
        # near copies of one model make later masters singular
        self.models = [m for m, chance in zip(everything, chances, strict=True) if chance > 0]
        found = Found(mixed, [], done.rounds, solution.status, solution.message, scale * best[0], trace)
        return found, best[1], best[2]
