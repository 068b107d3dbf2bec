"""The mixed-integer linear program: for a fixed number of projections every condition is linear."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.language.constraint import implies
from forcopt.language.model import Model, Variable
from forcopt.loops.solution import ModelSolution
from forcopt.models.secure_sum.problem import SecureSum
from forcopt.models.secure_sum.protocol import SumProtocol
from forcopt.models.secure_sum.search import Search, within
from forcopt.problem import Handles


@SecureSum.formulation("milp", exact=True, cites="Talwar (2022), Theorems 13 to 15 with exact quantiles")
def milp(problem: SecureSum, model: Model, slack: float = 0.001) -> Handles:
    """One indicator for each number of projections that can be best, and one for no projection.

    Parameters
    ----------
    problem : SecureSum
        Which.
    model : Model
        To write to.
    slack : float, default 0.001
        Indicators are written for all k whose best gap is within this share of the gap of one good choice.

    Returns
    -------
    Handles
        ``chosen``, one binary for each choice; ``squared_noise``, ``squared_threshold``, ``squared_gap`` in
        units of the least ones.

    Notes
    -----
    With s2, t2, r2 the squares of noise, threshold and gap, a choice of k requires ``s2 >= least``,
    ``t2 >= (n^2 / k + S s2) high`` and ``(r2 / k + S s2) low >= t2``.

    Without any choice the program has no solution: the bits are too few.
    """
    if not 0 <= slack < inf:
        raise DeclarationError(f"slack is {slack!r}; it must be at least 0")
    search = Search(problem)
    if not search.candidates:
        return _infeasible(model)
    cap = problem.most_projections
    few = within(64, cap)
    hopeful = sorted(search.candidates, key=lambda c: float(search.bound(c, few).min()))[:8]
    without, plain = search.without_projection()
    promising = [(c, 1 + int(np.argmin(search.bound(c, few)))) for c in hopeful]
    made = [found for c, k in promising if (found := search.protocol(c, k))]
    near = min([plain, *(gap for _, gap in made)]) * (1 + slack)
    if near == inf:
        return _infeasible(model)
    most = cap or 128
    while cap is None and min(search.beyond(c, most) for c in search.candidates) < near:
        most *= 2
    pairs = search.best_steps(np.arange(1, most + 1), near)
    high, low = search.quantiles(most)
    servers = problem.servers
    # Of each choice: least s2; factor of s2 and constant for t2; factors of r2 and s2 for the gap.
    rows = [
        (
            protocol.check_noise**2,
            servers * high[k - 1],
            candidate.norm**2 / k * high[k - 1],
            low[k - 1] / k,
            servers * low[k - 1],
        )
        for candidate, k, protocol, _ in pairs
    ]
    protocols, norms = [p for *_, p, _ in pairs], [gap for *_, gap in pairs]
    if without is not None and plain <= near:  # the noncentral law has no k: its threshold and gap as numbers
        square = without.threshold**2
        rows.append((without.check_noise**2, 0.0, square, square / plain**2, 0.0))
        protocols, norms = [*protocols, without], [*norms, plain]
    least, slope, constant, passed, noisy = np.array(rows).T
    gaps = np.array(norms) ** 2
    thresholds = np.array([p.threshold**2 for p in protocols])
    unit_s, unit_t, unit_r = float(least.min()), float(thresholds.min()), float(gaps.min())
    roots = np.sqrt(gaps / unit_r)
    s2 = model.variable(model.unused_name("squared_noise"), lower=0, upper=2 * least.max() / unit_s)
    t2 = model.variable(model.unused_name("squared_threshold"), lower=0, upper=4 * thresholds.max() / unit_t)
    r2 = model.variable(model.unused_name("squared_gap"), lower=0, upper=4 * gaps.max() / unit_r)
    rho = model.variable(model.unused_name("gap"), lower=0, upper=4 * sqrt(gaps.max() / unit_r))
    chosen = model.variable(model.unused_name("chosen"), len(rows), binary=True)
    every = np.ones(len(rows))
    model.subject_to(
        chosen.sum() == 1,
        implies(chosen, s2 * every >= least / unit_s),
        implies(chosen, t2 * every - s2 * (slope * unit_s / unit_t) >= constant / unit_t),
        implies(chosen, r2 * (passed * unit_r / unit_t) + s2 * (noisy * unit_s / unit_t) - t2 * every >= 0),
        # The root by its tangent at the least gap of the choice, which lies above the root elsewhere.
        implies(chosen, rho * every - r2 * (0.5 / roots) >= 0.5 * roots),
        # The indicators imply these at whole points; they tighten the relaxation.
        s2 >= (chosen * (least / unit_s)).sum(),
        rho >= (chosen * roots).sum(),
        name=model.unused_name("design"),
    )

    def decision(solution: ModelSolution) -> SumProtocol:
        return protocols[int(np.argmax(solution[chosen]))]

    def start(protocol: SumProtocol) -> dict[Variable, Any]:
        at = [
            i
            for i, p in enumerate(protocols)
            if (p.projections, p.step) == (protocol.projections, protocol.step)
        ]
        if not at:
            raise DeclarationError(
                "the protocol's step and projections are not among the choices of the program"
            )
        pick = np.zeros(len(rows))
        pick[at[0]] = 1.0
        return {
            chosen: pick,
            s2: protocols[at[0]].check_noise ** 2 / unit_s,
            t2: protocols[at[0]].threshold ** 2 / unit_t,
            r2: gaps[at[0]] / unit_r,
            rho: roots[at[0]],
        }

    return Handles(
        objective=rho * 1.0,
        decision=decision,
        start=start,
        unit=sqrt(unit_r),
        premise="the least noise of each choice is a root that is computed in floating point",
        chosen=chosen,
        squared_noise=s2,
        squared_threshold=t2,
        squared_gap=r2,
        gap=rho,
    )


def _infeasible(model: Model) -> Handles:
    """A program without a solution."""
    nothing = model.variable(model.unused_name("gap"), lower=0, upper=1)
    model.subject_to(nothing >= 2, name=model.unused_name("no_design"))
    return Handles(objective=nothing * 1.0, decision=lambda solution: None)
