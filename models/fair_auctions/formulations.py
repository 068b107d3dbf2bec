"""The best fair allocation as linear programs in cumulative shares."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.language.model import Model
from forcopt.language.objective import leximin
from forcopt.language.variable import Variable
from forcopt.models.fair_auctions.notions import entries
from forcopt.models.fair_auctions.problem import FairAuction
from forcopt.problem import Handles

_PAPER = "Chawla, Rezvan and Sauerberg (2022)"


def _write(problem: FairAuction, model: Model, lazily: bool) -> Handles:
    users, ads = problem.values.shape
    slots, steps = len(problem.slots), -np.diff(problem.slots, append=0.0)  # the worth of a cumulative share
    A = model.variable(model.unused_name("share"), (users, ads, slots), lower=0.0, upper=1.0)
    if slots:
        filled = entries(A).sum(axis=1)
        row = A.sum(axis=1) == np.arange(1, slots + 1) if problem.fill else filled <= 1.0
        model.subject_to(row, name=model.unused_name("slots"))
    if slots > 1:
        model.subject_to(A[:, :, 1:] >= A[:, :, :-1], name=model.unused_name("order"))
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
        unit = total or 1.0
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
