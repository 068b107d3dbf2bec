"""The welfare program slot by slot: k small linear programs, exact if their solutions fit together."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.fairness.pairwise import PairwiseStability
from forcopt.language.model import Model
from forcopt.models.fair_auctions.formulations import slot_steps
from forcopt.models.fair_auctions.problem import FairAuction
from forcopt.models.fair_auctions.rules import inverse_proportional
from forcopt.models.fair_auctions.tolerances import JOINT
from forcopt.problem import Outcome
from forcopt.status import Status

Rows = list[tuple[int, int, PairwiseStability]]
"""For each notion with rows on pairs: its position, the slot, and the family with the rows it has found."""


@FairAuction.algorithm("by-slot", exact=True, cites="Lagrangian relaxation of the order of cumulative shares")
def by_slot(problem: FairAuction, *, backend: str = "highs", time_limit: float | None = None) -> Outcome:
    """Solve one linear program for each number of units; join them if the cumulative shares rise.

    Without ``A_j <= A_(j+1)`` the program falls into k. Their sum is a bound. If the joints hold, it is the
    optimum; else the whole program is solved, beginning with all rows that were found.

    Parameters
    ----------
    problem : FairAuction
        With the objective welfare, and notions on cumulative shares (ordered value stability, preference
        alignment); with one slot, any.
    backend : str, default "highs"
        Takes linear programs.
    time_limit : float, optional
        Seconds. Then the rule or the uniform allocation is returned with the bound known so far.
    """
    if problem.objective != "welfare":
        raise DeclarationError(f"'by-slot' maximizes welfare; the objective is {problem.objective!r}")
    steps = slot_steps(problem.slots)
    k = len(steps)
    tied = [part.label for part in problem.notions if not part.by_slot]
    if k > 1 and tied:
        raise DeclarationError(
            f"'by-slot' needs notions on cumulative shares; {tied[0]} looks at two of them"
        )
    deadline = Deadline(time_limit)
    # The highest values bound slots that are not solved.
    ranked = -np.sort(-problem.effective, axis=1)
    open_bounds = [float(steps[j] * (problem.shares @ ranked[:, : j + 1].sum(axis=1))) for j in range(k)]
    worth = problem.effective * problem.shares[:, None]
    total = float(problem.shares @ problem.best) or 1.0  # 1 where all values are 0
    A = np.zeros((*problem.values.shape, k))
    used = np.flatnonzero(steps > 0)
    found: Rows = []
    iterations = 0
    for j in used.tolist():
        model = Model("slot")
        share = model.variable("share", (*problem.values.shape, 1), lower=0.0, upper=1.0)
        units = share.sum(axis=1)
        model.subject_to(units == j + 1 if problem.fill else units <= j + 1)
        for at, notion in enumerate(problem.notions):
            family = notion.family(problem.users, share)
            model.lazy(family.separate)
            if isinstance(family, PairwiseStability):
                found.append((at, j, family))
        model.maximize((share * (worth * (steps[j] / total))[:, :, None]).sum())
        result = model.solve(backend, time_limit=deadline.left)
        iterations += result.iterations
        open_bounds[j] = min(open_bounds[j], total * result.bound)
        if not result.status.has_solution:
            return _stopped(problem, sum(open_bounds), f"slot {j}: {result.message}")
        A[:, :, j] = np.asarray(result[share])[:, :, 0]
    bound = float(sum(open_bounds)) if len(used) else 0.0
    _fill_in(A, used, problem.fill)
    drop = float(np.maximum(A[:, :, :-1] - A[:, :, 1:], 0.0).max(initial=0.0))
    if drop <= JOINT and (problem.fill or _columns(A) <= 1 + JOINT):
        return Outcome(_decision(problem, A), bound, iterations=iterations, message="the joints hold")
    model, handles = problem.formulate("cuts")
    whole = handles.cumulative
    for at, j, known in found:
        family = problem.notions[at].family(problem.users, whole)
        assert isinstance(family, PairwiseStability)
        for first, second, columns in known.found:
            model.subject_to(family.between(first, second, columns * k + j))
    result = model.solve(backend, time_limit=deadline.left)
    bound = min(bound, handles.unit * result.bound)
    if not result.status.has_solution:
        return _stopped(problem, bound, result.message)
    message = f"the joints break by {drop:.2g}; solved as a whole"
    return Outcome(handles.decision(result), bound, result.status, iterations + result.iterations, message)


def _fill_in(A: Array, used: Array, fill: bool) -> None:
    """Shares of numbers of units that are worth nothing: on the line between those around them.

    After the last one, the line goes to the point at which all n ads have a slot. A convex combination of
    stable shares is stable.
    """
    n, k = A.shape[1:]
    known = [(-1, np.zeros(A.shape[:2]))] + [(j, A[:, :, j]) for j in used.tolist()]
    for j in sorted(set(range(k)) - set(used.tolist())):
        low, before = max((item for item in known if item[0] < j), key=lambda item: item[0])
        above = [item for item in known if item[0] > j]
        high, after = min(above, key=lambda item: item[0]) if above else (n - 1, np.ones(A.shape[:2]))
        if not above and not fill:
            high, after = j, before
        weight = (j - low) / (high - low)
        A[:, :, j] = (1 - weight) * before + weight * after


def _columns(A: Array) -> float:
    return float(np.diff(A, axis=2, prepend=0.0).sum(axis=1).max(initial=0.0))


def _decision(problem: FairAuction, A: Array) -> object:
    return problem.allocation(np.diff(A, axis=2, prepend=0.0))


def _stopped(problem: FairAuction, bound: float, message: str) -> Outcome:
    """The best allocation that is known without a solver, and the bound."""
    k = len(problem.slots)
    rule = problem.allocation(inverse_proportional(problem.effective, k, problem.ell))
    even = problem.allocation(np.full(rule.marginals.shape, 1.0 / rule.marginals.shape[1]))
    best = rule if not problem.evaluate(rule).violations else even
    return Outcome(best, bound, Status.FEASIBLE, message=message)
