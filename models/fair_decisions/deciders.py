"""Deciders on noisy counts: the rule, moved thresholds, the posterior, and the best monotone table."""

from __future__ import annotations

import numpy as np
import scipy

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.language.model import Model
from forcopt.models.fair_decisions.coverage import CoverageDecision, DecisionTable
from forcopt.models.fair_decisions.tolerances import DUST, MARGIN, RATE_ROOM
from forcopt.problem import Handles, Outcome


@CoverageDecision.algorithm("standard", cites="Pujol et al. (2020), Table 1", rank="published")
def standard(problem: CoverageDecision, *, time_limit: float | None = None) -> Outcome:
    """Apply the rule to the noisy counts as if they were exact."""
    return Outcome(_corner(problem, 0.0, 0.0))


@CoverageDecision.algorithm(
    "margins", cites="moved thresholds; Pujol et al. (2020), section 4.3", rank="published"
)
def margins(problem: CoverageDecision, *, directions: int = 5, time_limit: float | None = None) -> Outcome:
    """Lower both thresholds by some standard deviations of the noise: the best of a few directions.

    Parameters
    ----------
    directions : int, default 5
        How many ratios of the two thresholds are tried; along each, the least distance that reaches the
        least rate is found by bisection.
    """
    deadline = Deadline(time_limit)
    best: tuple[float, DecisionTable] | None = None
    counts = problem.guarded

    def least(distance: float, angle: float) -> float:
        rates = problem.rule.rates(
            counts, problem.noise, -distance * np.cos(angle), -distance * np.sin(angle)
        )
        return float(rates.min(initial=1.0)) - problem.least_rate - RATE_ROOM

    for angle in np.linspace(0.05, np.pi / 2 - 0.05, directions):
        if best is not None and deadline.passed:
            break
        reach = 1.0
        while least(reach, angle) < 0:
            reach *= 2
        enough = least(0.0, angle) >= 0
        distance = 0.0 if enough else scipy.optimize.brentq(least, 0.0, reach, args=(angle,), xtol=MARGIN)
        while not enough and least(distance, angle) < 0:
            distance += MARGIN
        found = _corner(problem, -distance * np.cos(angle), -distance * np.sin(angle))
        value = problem.evaluate(found).objective
        if best is None or value < best[0]:
            best = value, found
    assert best is not None
    return Outcome(best[1])


@CoverageDecision.formulation("decision-table", cites="linear program over monotone tables")
def decision_table(problem: CoverageDecision, model: Model, *, deterministic: bool = False) -> Handles:
    """Choose the probability of coverage in each cell of a table of the two margins, monotone in both.

    It is the best of the monotone tables with the problem's cuts, which bounds no other table. Without
    monotonicity a table with fine cells
    would memorise where the true counts are.

    Parameters
    ----------
    model : Model
        To write to.
    deterministic : bool, default False
        Whether each cell is decided surely, by a binary.

    Returns
    -------
    Handles
        ``values``, shape ``(m + 1, n + 1)``; ``rates`` of the counts that must have the least rate.
    """
    cells = np.where(problem.own_cells < DUST, 0.0, problem.own_cells)
    shape = cells.shape[1:]
    d = model.variable(model.unused_name("values"), shape, lower=0, upper=1, integer=deterministic)
    model.subject_to(d[1:, :] >= d[:-1, :], d[:, 1:] >= d[:, :-1], name=model.unused_name("monotone"))
    guarded = problem.cell_probabilities(problem.first_cuts, problem.second_cuts, problem.guarded)
    rates = np.where(guarded < DUST, 0.0, guarded).reshape(len(guarded), d.size) @ d.reshape(-1)
    if len(guarded):
        model.subject_to(rates >= problem.least_rate, name=model.unused_name("least_rate"))
    return Handles(
        objective=(d * cells[~problem.covered].sum(axis=0)).sum(),
        decision=lambda result: problem.table(problem.first_cuts, problem.second_cuts, _sorted(result[d])),
        start=lambda table: {d: table.values},
        restricts=True,
        values=d,
        rates=rates,
    )


@CoverageDecision.algorithm("posterior", cites="Pujol et al. (2020), section 4.3", rank="published")
def posterior(problem: CoverageDecision, *, cuts: int = 16, time_limit: float | None = None) -> Outcome:
    """Cover where the posterior probability of coverage, under a flat prior, exceeds a threshold.

    The largest threshold is taken that reaches the least rate. The posterior depends on the noisy margins; it
    is rounded to the centers of the cells of a fine table, where the absolute threshold is far.

    Parameters
    ----------
    cuts : int, default 16
        Of each margin, between -4 and 4 standard deviations.
    """
    ends = np.linspace(-4.0, 4.0, cuts)
    centers = np.concatenate([[ends[0] - 0.5], (ends[:-1] + ends[1:]) / 2, [ends[-1] + 0.5]])
    first, second = np.meshgrid(centers, centers, indexing="ij")
    noisy = problem.rule.counts_at(first.ravel() * problem.scale, second.ravel() * problem.scale)
    belief = problem.rule.replace(absolute=1e9 * problem.scale).rates(noisy, problem.noise)
    belief = _sorted(belief.reshape(first.shape))
    cells = problem.cell_probabilities(ends, ends, problem.guarded).reshape(-1, belief.size)
    levels = np.unique(belief)
    low, high = 0, len(levels)  # covered from levels[low] on is enough; from `high` on it is not
    while high - low > 1:
        middle = (low + high) // 2
        enough = (cells @ (belief >= levels[middle]).ravel() >= problem.least_rate + RATE_ROOM).all()
        low, high = (middle, high) if enough else (low, middle)
    values = (belief >= levels[low]).astype(float)
    rows, columns = (np.diff(values, axis=axis).any(axis=1 - axis) for axis in (0, 1))  # cuts that matter
    kept = values[np.r_[True, rows]][:, np.r_[True, columns]]
    return Outcome(problem.table(ends[rows], ends[columns], kept))


def _sorted(values: Array) -> Array:
    """Monotone up to the solver's rounding: now exactly."""
    raised = np.maximum.accumulate(np.maximum.accumulate(values, axis=0), axis=1)
    return np.asarray(raised)


def _corner(problem: CoverageDecision, first: float, second: float) -> DecisionTable:
    return problem.table([first], [second], [[0.0, 0.0], [0.0, 1.0]])
