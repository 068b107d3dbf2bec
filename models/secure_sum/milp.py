"""The mixed-integer linear program: for a fixed number of projections every condition is linear."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.language.constraint import implies
from forcopt.language.model import Model, Variable
from forcopt.loops.solution import ModelSolution
from forcopt.models.secure_sum.problem import SecureSum
from forcopt.models.secure_sum.protocol import SumProtocol
from forcopt.models.secure_sum.search import Search
from forcopt.problem import Handles

__all__ = ["milp"]


@SecureSum.formulation("milp", exact=True, cites="Talwar (2022), Theorems 13 to 15 with exact quantiles")
def milp(problem: SecureSum, model: Model, slack: float = 0.01) -> Handles:
    """One indicator for each step and number of projections that can be best.

    Parameters
    ----------
    problem : SecureSum
        Which.
    model : Model
        To write to.
    slack : float, default 0.01
        Indicators are written for all pairs whose gap may be within this share of the gap of one good pair.

    Returns
    -------
    Handles
        ``chosen``, one binary for each pair; ``squared_noise``, ``squared_threshold``, ``squared_gap`` in
        units of those of the good pair.

    Notes
    -----
    With s2, t2, r2 the squares of noise, threshold and gap, a pair requires ``s2 >= least``,
    ``t2 >= (n^2 / k + S s2) high`` and ``(r2 / k + S s2) low >= t2``.

    Without any pair the program has no solution: the bits are too few.
    """
    search = Search(problem)
    if not search.candidates:
        return _infeasible(model)
    cap = problem.most_projections
    first = min(search.candidates, key=lambda c: float(search.bound(c, 64 if cap is None else min(64, cap)).min()))
    found = search.protocol(first, min(55, cap or 55))
    if found is None:
        return _infeasible(model)
    near = found[1] * (1 + slack)
    pairs = []
    for candidate in search.candidates:
        most = cap or 128
        while cap is None and search.beyond(candidate, most) < near:
            most *= 2
        k = np.flatnonzero(search.bound(candidate, most) < near) + 1
        if len(k):
            k = k[search.better(candidate, k, near)]
        pairs += [(candidate, int(j), made) for j in k if (made := search.protocol(candidate, int(j)))]
    protocols: list[SumProtocol] = [made[0] for *_, made in pairs]
    high, low = (q[[k - 1 for _, k, _ in pairs]] for q in search.quantiles(max(k for _, k, _ in pairs)))
    ks = np.array([k for _, k, _ in pairs], dtype=float)
    norms = np.array([candidate.norm for candidate, *_ in pairs])
    least = np.array([p.check_noise**2 for p in protocols])
    thresholds = np.array([p.threshold**2 for p in protocols])
    gaps = np.array([made[1] ** 2 for *_, made in pairs])
    unit_s, unit_t, unit_r = float(least.min()), float(thresholds.min()), float(gaps.min())
    roots = np.sqrt(gaps / unit_r)
    s2 = model.variable(model.unused_name("squared_noise"), lower=0, upper=2 * least.max() / unit_s)
    t2 = model.variable(model.unused_name("squared_threshold"), lower=0, upper=4 * thresholds.max() / unit_t)
    r2 = model.variable(model.unused_name("squared_gap"), lower=0, upper=4 * gaps.max() / unit_r)
    rho = model.variable(model.unused_name("gap"), lower=0, upper=4 * sqrt(gaps.max() / unit_r))
    chosen = model.variable(model.unused_name("chosen"), len(pairs), binary=True)
    servers = problem.servers
    model.subject_to(
        chosen.sum() == 1,
        implies(chosen, s2 * np.ones(len(pairs)) >= least / unit_s),
        implies(chosen, t2 - s2 * (servers * high * unit_s / unit_t) >= norms**2 / ks * high / unit_t),
        implies(
            chosen,
            r2 * (low / ks * unit_r / unit_t) + s2 * (servers * low * unit_s / unit_t) - t2 * np.ones(len(pairs)) >= 0,
        ),
        # The root by its tangent at the least gap of the pair, which lies above the root elsewhere.
        implies(chosen, rho * np.ones(len(pairs)) - r2 * (0.5 / roots) >= 0.5 * roots),
    )

    def decision(said: ModelSolution) -> SumProtocol:
        return protocols[int(np.argmax(said[chosen]))]

    def start(protocol: SumProtocol) -> dict[Variable, Any]:
        at = [i for i, p in enumerate(protocols) if (p.projections, p.step) == (protocol.projections, protocol.step)]
        if not at:
            raise DeclarationError("the protocol's step and projections are not among the pairs of the program")
        pick = np.zeros(len(pairs))
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
        premise="the least noise of each pair is a root that is computed in floating point",
        chosen=chosen,
        squared_noise=s2,
        squared_threshold=t2,
        squared_gap=r2,
        gap=rho,
    )


def _infeasible(model: Model) -> Handles:
    """A program without a solution."""
    nothing = model.variable(model.unused_name("gap"), lower=0, upper=1)
    model.subject_to(nothing >= 2)
    return Handles(objective=nothing * 1.0, decision=lambda said: None)
