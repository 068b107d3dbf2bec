"""The best fair allocation as linear programs, in cumulative shares or slot by slot; quadratic ones."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError, check_choice
from forcopt.fairness.pairwise import PairwiseStability
from forcopt.language.atoms import sum_squares
from forcopt.language.expression import Expression
from forcopt.language.model import Model
from forcopt.language.objective import leximin, minimize
from forcopt.language.variable import Variable
from forcopt.models.fair_auctions.notions import entries
from forcopt.models.fair_auctions.problem import FairAuction
from forcopt.models.fair_auctions.rules import check_ell, inverse_proportional
from forcopt.models.fair_auctions.tolerances import JOINT
from forcopt.problem import Handles, Outcome
from forcopt.status import Status

_PAPER = "Chawla, Rezvan and Sauerberg (2022)"


def slot_steps(slots: Array) -> Array:
    """``beta_j - beta_(j+1)``, with 0 after the last: the worth of a cumulative share of j slots."""
    return np.asarray(slots - np.append(slots[1:], 0.0))


def write_shares(model: Model, users: int, ads: int, slots: int, fill: bool) -> Variable:
    """Write cumulative shares into a model: A rises over slots, j units in the first j, each ad at most 1.

    Returns
    -------
    Variable
        Shape ``(users, ads, slots)``.
    """
    A = model.variable(model.unused_name("share"), (users, ads, slots), lower=0.0, upper=1.0)
    if slots:
        filled = entries(A).sum(axis=1)
        row = A.sum(axis=1) == np.arange(1, slots + 1) if fill else filled <= 1.0
        model.subject_to(row, name=model.unused_name("slots"))
    if slots > 1:
        model.subject_to(A[:, :, 1:] >= A[:, :, :-1], name=model.unused_name("order"))
    return A


def _write(problem: FairAuction, model: Model, lazily: bool) -> Handles:
    users, ads = problem.values.shape
    steps = slot_steps(problem.slots)
    A = write_shares(model, users, ads, len(steps), problem.fill)
    for notion in problem.notions:
        family = notion.family(problem.users, A)
        if lazily:
            model.lazy(family.separate, name=model.unused_name(notion.label))
        else:
            for row in family.rows():
                model.subject_to(row, name=model.unused_name(notion.label))
    # Everything is relative to the largest welfare, so that no unit of money is too small for a solver.
    scale = np.where(problem.best > 0, problem.best, 1.0)
    worth = problem.effective[:, :, None] * steps / scale[:, None, None]
    ratios: Any = (A * worth).sum(axis=(1, 2))
    total = float(problem.shares @ problem.best)
    unit, goal = 1.0, None
    known = np.flatnonzero(problem.best > 0)
    if problem.objective == "welfare":
        unit = total if total > 0 else 1.0
        goal = ratios @ (problem.shares * problem.best / unit)
    elif not len(known):
        goal = 1.0 + 0.0 * ratios.sum()
    elif problem.objective == "leximin":
        goal = leximin(ratios[known], "saturation")
    else:
        goal = model.variable(model.unused_name("worst ratio"), lower=0.0, upper=1.0)
        model.subject_to(ratios[known] >= goal, name=model.unused_name("ratios"))
    assert goal is not None

    def start(decision: Any) -> dict[Variable, Any]:
        M = problem.read(decision)
        values: dict[Variable, Any] = {A: np.cumsum(M, axis=2)}
        if isinstance(goal, Variable):
            values[goal] = float(problem.allocation(M).ratios.min())
        return values

    return Handles(
        objective=goal,
        decision=lambda result: problem.allocation(np.diff(np.asarray(result[A]), axis=2, prepend=0.0)),
        start=start,
        unit=unit,
        cumulative=A,
        marginals=entries(A),
        ratios=ratios,
    )


@FairAuction.formulation("cuts", exact=True, cites=f"{_PAPER}, Definitions 6 to 8, 15 and 16, as rows")
def cuts(problem: FairAuction, model: Model) -> Handles:
    """The linear program in cumulative shares, with the rows of the worst pairs added as points break them.

    An ordered stability row has two entries. All pairs are scanned at once; of each ad and slot the worst
    pair of every user becomes a row. Of total variation the most violated set ``{i: M_ij > M'_ij}`` does.

    Returns
    -------
    Handles
        ``cumulative`` and ``marginals``, shape ``(T, n, k)``; ``ratios``, shape ``(T,)``, of welfare to the
        largest.
    """
    return _write(problem, model, lazily=True)


@FairAuction.formulation("lp", exact=True, cites=f"{_PAPER}, Definitions 6 to 8, 15 and 16, as rows")
def lp(problem: FairAuction, model: Model) -> Handles:
    """The linear program with all rows: as many as pairs of users, times ads, times slots.

    Returns
    -------
    Handles
        As `cuts`.
    """
    return _write(problem, model, lazily=False)


@FairAuction.formulation("qp", cites=f"{_PAPER}, equation (2), whose KKT conditions it has", rank="published")
def qp(
    problem: FairAuction,
    model: Model,
    rule: Literal["inverse-proportional", "proportional"] = "inverse-proportional",
    ell: float | None = None,
) -> Handles:
    """A rule of the paper as a strictly convex quadratic program for each user and number of units.

    Inverse proportional: minimize ``sum (1 - a_i)**2 / (2 g(u_i))`` with ``sum(a) = h`` and a in [0, 1],
    where ``g(u) = u ** -ell``. Proportional: ``sum a_i**2 / (2 g(u_i))`` with ``g(u) = u ** ell``. All
    values must be positive.

    Parameters
    ----------
    rule : {"inverse-proportional", "proportional"}, optional
        The rule.
    ell : float, optional
        Its exponent, positive; that of the problem by default.

    Returns
    -------
    Handles
        ``cumulative``, shape ``(T, n, k)``.
    """
    ell = problem.ell if ell is None else check_ell(ell)
    check_choice("rule", rule, "inverse-proportional", "proportional")
    if (problem.effective <= 0).any():
        t, i = (int(at) for at in np.argwhere(problem.effective <= 0)[0])
        raise DeclarationError(f"'qp' needs positive values; that of user {t} to ad {i} is 0")
    users, ads = problem.values.shape
    k = len(problem.slots)
    A = model.variable(model.unused_name("share"), (users, ads, k), lower=0.0, upper=1.0)
    weights = problem.effective**ell
    if rule == "proportional":
        weights = 1.0 / weights
    weights = weights / weights.max(axis=1, keepdims=True)
    goal: Expression = 0.0 * A.sum()
    if k:
        model.subject_to(A.sum(axis=1) == np.arange(1, k + 1), name=model.unused_name("units"))
        held = 1.0 - A if rule == "inverse-proportional" else A
        goal = sum_squares(held * np.sqrt(weights)[:, :, None])
    return Handles(
        objective=minimize(goal),
        decision=lambda result: problem.allocation(
            np.diff(np.asarray(result[A]), axis=2, prepend=0.0), rule, ell
        ),
        restricts=True,  # the rule minimizes another objective, whose bound does not bound the welfare
        cumulative=A,
    )


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
    slots = np.diff(A, axis=2, prepend=0.0)
    if drop <= JOINT and (problem.fill or slots.sum(axis=1).max(initial=0.0) <= 1 + JOINT):
        return Outcome(problem.allocation(slots), bound, iterations=iterations, message="the joints hold")
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


def _stopped(problem: FairAuction, bound: float, message: str) -> Outcome:
    """The best allocation that is known without a solver, and the bound."""
    k = len(problem.slots)
    rule = problem.allocation(inverse_proportional(problem.effective, k, problem.ell))
    even = problem.allocation(np.full(rule.marginals.shape, 1.0 / rule.marginals.shape[1]))
    best = rule if not problem.evaluate(rule).violations else even
    return Outcome(best, bound, Status.FEASIBLE, message=message)
