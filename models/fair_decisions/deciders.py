"""Deciders on noisy counts: the rule itself, moved thresholds, and the best monotone table."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.language.model import Model
from forcopt.models.fair_decisions.coverage import CoverageDecision, DecisionTable
from forcopt.problem import Handles, Outcome

__all__ = ["decision_table", "margins", "standard"]


_DUST = 1e-9
"""Probabilities below, whose wide range solvers report as imprecise, count as 0 in the program."""


@CoverageDecision.algorithm("standard", exact=False, cites="Pujol et al. (2020), Table 1")
def standard(problem: CoverageDecision, *, time_limit: float | None = None) -> Outcome:
    """Apply the rule to the noisy counts as if they were exact."""
    return Outcome(_corner(problem, 0.0, 0.0))


@CoverageDecision.algorithm(
    "margins", exact=False, cites="moved thresholds; Pujol et al. (2020), section 4.3"
)
def margins(problem: CoverageDecision, *, directions: int = 5, time_limit: float | None = None) -> Outcome:
    """Lower both thresholds by some standard deviations of the noise: the best of a few directions.

    Parameters
    ----------
    problem : CoverageDecision
        Which.
    directions : int, default 5
        How many ratios of the two thresholds are tried; along each, the least distance that reaches the
        least rate is found by bisection.
    time_limit : float, optional
        Seconds.
    """
    deadline = Deadline(time_limit)
    best: tuple[float, DecisionTable] | None = None
    counts = problem.counts[problem.covered]

    def least(distance: float, angle: float) -> float:
        rates = problem.rule.rates(
            counts, problem.scale, -distance * np.cos(angle), -distance * np.sin(angle)
        )
        return float(rates.min(initial=1.0)) - problem.least_rate - 1e-9

    for angle in np.linspace(0.05, np.pi / 2 - 0.05, directions):
        if best is not None and deadline.passed:
            break
        reach = 1.0
        while least(reach, angle) < 0:
            reach *= 2
        enough = least(0.0, angle) >= 0
        distance = 0.0 if enough else brentq(least, 0.0, reach, args=(angle,), xtol=1e-6)
        while not enough and least(distance, angle) < 0:
            distance += 1e-6
        found = _corner(problem, -distance * np.cos(angle), -distance * np.sin(angle))
        value = problem.evaluate(found).objective
        if best is None or value < best[0]:
            best = value, found
    assert best is not None
    return Outcome(best[1])


@CoverageDecision.formulation("decision-table", exact=True, cites="linear program over monotone tables")
def decision_table(problem: CoverageDecision, model: Model, *, deterministic: bool = False) -> Handles:
    """Choose the probability of coverage in each cell of a table of the two margins, monotone in both.

    Exact among the monotone tables with the problem's cuts. Without monotonicity a table with fine cells
    would memorise where the true counts are.

    Parameters
    ----------
    problem : CoverageDecision
        Which.
    model : Model
        To write to.
    deterministic : bool, default False
        Whether each cell is decided surely, by a binary.

    Returns
    -------
    Handles
        ``values``, shape ``(m + 1, n + 1)``; ``rates`` of the covered jurisdictions, shape ``(covered,)``.
    """
    cells = np.where(problem.own_cells < _DUST, 0.0, problem.own_cells)
    shape = cells.shape[1:]
    d = model.variable(model.unused_name("values"), shape, lower=0, upper=1, integer=deterministic)
    model.subject_to(d[1:, :] >= d[:-1, :], d[:, 1:] >= d[:, :-1], name=model.unused_name("monotone"))
    flat = cells.reshape(len(cells), -1)
    rates = flat[problem.covered] @ d.reshape(-1)
    if problem.covered.any():
        model.subject_to(rates >= problem.least_rate, name=model.unused_name("least_rate"))
    return Handles(
        objective=(d * cells[~problem.covered].sum(axis=0)).sum(),
        decision=lambda said: problem.table(problem.first_cuts, problem.second_cuts, _sorted(said[d])),
        start=lambda table: {d: table.values},
        restricts=False,
        values=d,
        rates=rates,
    )


def _sorted(values: Array) -> Array:
    """Monotone up to the solver's rounding: now exactly."""
    raised = np.maximum.accumulate(np.maximum.accumulate(values, axis=0), axis=1)
    return np.asarray(raised)


def _corner(problem: CoverageDecision, first: float, second: float) -> DecisionTable:
    return problem.table([first], [second], [[0.0, 0.0], [0.0, 1.0]])
