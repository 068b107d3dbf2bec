"""The leximax lottery over cohorts under any quotas: saturation, with cohorts as priced columns."""

from __future__ import annotations

import time

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import BackendError, DeclarationError
from forcopt.language.model import Model
from forcopt.loops.column_generation import Column, Duals, GeneratedSolution, Pricing
from forcopt.loops.column_generation import column_generation as generate
from forcopt.models.leximax_cohort.formulations import write_choice
from forcopt.models.leximax_cohort.problem import LeximaxCohort
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["column_generation"]

_SHARE = 1e-5
"""Multipliers up to this count as zero."""

_ROUNDING = 1e-8
"""A level this near to its bound is as high as it can be."""


class _Pricing:
    """The cohort with the largest sum of given weights: by sorting, or by an integer program with quotas."""

    def __init__(self, problem: LeximaxCohort, backend: str) -> None:
        self.problem, self.backend = problem, backend
        self.model = Model("pricing")
        self.chosen, _ = write_choice(problem, self.model, integer=True)

    def best(self, weights: Array) -> tuple[Status, Array | None]:
        """Its row of 0 and 1, or None with the reason."""
        lower, upper = self.problem.bounds
        if not self.problem.quotas and len(self.problem.forced) <= self.problem.size <= upper.sum():
            ranked = np.where(lower == 1.0, np.inf, np.where(upper == 0.0, -np.inf, weights))
            cohort = np.zeros(len(weights))
            cohort[np.argsort(-ranked, kind="stable")[: round(self.problem.size)]] = 1.0
            return Status.OPTIMAL, cohort
        self.model.maximize(self.chosen @ weights)
        said = self.model.solve(self.backend)
        return said.status, None if said.point is None else np.asarray(said[self.chosen])


@LeximaxCohort.algorithm(
    "column-generation", exact=True, cites="Flanigan, Gölz, Gupta, Hennig and Procaccia (2021), LEXIMIN"
)
def column_generation(
    problem: LeximaxCohort, *, backend: str = "highs", time_limit: float | None = None
) -> Outcome:
    """Raise the utilities of all groups by a lottery over cohorts, fix those that cannot rise, go on.

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
        Seconds.
    """
    if problem.integer or not problem.is_whole:
        raise DeclarationError("'column-generation' finds lotteries: size must be whole, and integer=False")
    began = time.perf_counter()
    pricing = _Pricing(problem, backend)
    status, first = pricing.best(np.zeros(len(problem.utilities)))
    if first is None:
        return Outcome(None, status=status, message="no cohort of the size meets the demands")
    cohorts, weights = first[None, :], np.ones(1)
    m = problem.utilities.shape[1]
    fixed: dict[int, float] = {}
    bound, rounds = None, 0
    while len(fixed) < m:
        left = None if time_limit is None else max(0.0, time_limit - (time.perf_counter() - began))
        found, (highest, shares), cohorts = _level(problem, pricing, cohorts, fixed, left)
        said, rounds = found.solution, rounds + found.rounds
        bound = said.bound if bound is None else bound
        if said.point is not None:  # it holds the levels before, too
            weights = np.maximum(said.point[1:], 0.0)
            weights /= weights.sum()
        weights = np.append(weights, np.zeros(len(cohorts) - len(weights)))
        if said.point is None or highest - said.objective > _ROUNDING * max(1.0, abs(said.objective)):
            ended = said.status if said.status is Status.FAILED else Status.FEASIBLE
            message = f"level {len(fixed) + 1}: {said.message}"
            return Outcome(
                problem.lottery(weights @ cohorts, cohorts, weights), bound, ended, rounds, message
            )
        free = np.array([j for j in range(m) if j not in fixed])
        height = float((problem.utilities.T @ (weights @ cohorts))[free].min())
        tight = free[shares > min(_SHARE, 0.5 / len(free))]
        if not tight.size:
            raise BackendError(f"{backend}: the multipliers of level {len(fixed) + 1} do not add up to 1")
        fixed |= dict.fromkeys(tight.tolist(), height)
    used = weights > 1e-12
    cohorts, weights = cohorts[used], weights[used] / weights[used].sum()
    message = f"{rounds} cohorts looked at, {used.sum()} drawn from"
    return Outcome(problem.lottery(weights @ cohorts, cohorts, weights), bound, None, rounds, message)


def _level(
    problem: LeximaxCohort, pricing: _Pricing, cohorts: Array, fixed: dict[int, float], left: float | None
) -> tuple[GeneratedSolution, tuple[float, Array], Array]:
    """Raise the level of all groups that are not fixed.

    Returns
    -------
    tuple[GeneratedSolution, tuple[float, Array], Array]
        What was found; the least bound on the level, with the multipliers that prove it; all cohorts known.
    """
    V = problem.utilities
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
    # The last multipliers need not be those that prove the level.
    proof: tuple[float, Array] = np.inf, np.zeros(len(free))

    def price(dual: Duals) -> Pricing:
        nonlocal proof
        worth = np.zeros(V.shape[1])
        worth[free] = -dual(raised)
        if kept is not None:
            worth[held] = -dual(kept)
        _, cohort = pricing.best(V @ worth)
        assert cohort is not None
        gets = V.T @ cohort
        bound = float(worth @ gets - worth[held] @ reached)
        if bound < proof[0]:
            proof = bound, worth[free]
        enters = {raised: gets[free], one: 1.0} | ({} if kept is None else {kept: gets[held]})
        column = Column(0.0, enters, data=cohort)
        return Pricing([column], max(dual.reduced_cost(column), 0.0))

    found = generate(model, price, pricing.backend, total=1.0, gap=1e-9, time_limit=left)
    return found, proof, np.vstack([cohorts, *(c.data for c in found.columns)])
