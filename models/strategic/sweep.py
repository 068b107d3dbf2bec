"""Optimal targets in the plane: one designated point for each agent, from the lowest up (Algorithm 3)."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.models.strategic.targets import TargetDesign2D, Targets
from forcopt.models.strategic.tolerances import ROUNDING, TOLERANCE
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["sweep"]


@TargetDesign2D.algorithm(
    "sweep", exact=True, cites="Ahmadi et al. (2022), Algorithm 3, Theorem 26; corrected"
)
def sweep(problem: TargetDesign2D, *, as_printed: bool = False, time_limit: float | None = None) -> Outcome:
    """Algorithm 3, corrected: push each agent's target out of the reach of agents with less of the gaming
    feature.

    From the least gaming feature up: agent i's target starts where it qualifies by improving only. Each lower
    agent j that would game on it, because that is cheaper than its present target, pushes it up along the
    gaming feature by the difference; if i can no longer afford it, i gets none. O(n^2).

    The printed algorithm does not define the cost of an agent without a target, and takes infinity for one
    whose target was discarded. Such an agent pays at most 1, its value, for gaming; taking 1 repairs both:
    without a cost the agent can game, and infinity discards targets that are safe.

    Parameters
    ----------
    problem : TargetDesign2D
        Which.
    as_printed : bool, default False
        Agents that cannot improve are skipped, discarded targets cost infinity, the target of a qualified
        agent may lie before it. For comparison: the result may be worse, or have false positives.
    """
    improves = int(np.argmax(problem.improvable))
    Y, t, s = problem.scaled()
    Y, (t1, t2) = Y[:, [improves, 1 - improves]], t[[improves, 1 - improves]]
    counted = problem.agent_weights > 0
    deadline = Deadline(time_limit)
    order = np.lexsort((Y[:, 0], Y[:, 1]))  # the lowest first: the paper's n, n - 1, ..., 1
    lower: list[tuple[Array, float]] = []  # the agents already seen, and their present costs
    targets: list[tuple[float, float]] = []
    for x in Y[order[counted[order]]]:
        if deadline.passed:  # agents that were not seen yet might game on these targets
            empty, bound = Targets(np.empty((0, 2))), float(problem.agent_weights.sum())
            return Outcome(empty, bound, Status.FEASIBLE, len(lower), deadline.end)
        # where along the improvable feature x qualifies
        lack = s - t2 * x[1]
        needed = lack / t1 if t1 > 0 else np.inf if lack > TOLERANCE else -np.inf
        if needed - x[0] > 1 + ROUNDING:
            if not as_printed:
                lower.append((x, 1.0))
            continue
        h = [needed if as_printed and np.isfinite(needed) else max(needed, x[0]), x[1]]
        for other, pays in lower:
            if not as_printed and t1 * h[0] + t2 * other[1] >= s - TOLERANCE:
                continue  # it would qualify there
            cost = _cost(other, h)
            if pays > cost + ROUNDING:
                h[1] += pays - cost
        if _cost(x, h) > 1 + ROUNDING:
            lower.append((x, np.inf if as_printed else 1.0))
            continue
        lower.append((x, _cost(x, h)))
        targets.append((h[0], h[1]))
    points = np.empty((len(targets), 2))
    points[:, [improves, 1 - improves]] = np.reshape(targets, (-1, 2))
    found = Targets(points[::-1] / problem.costs)
    return Outcome(found, status=Status.APPROXIMATE if as_printed else Status.OPTIMAL, iterations=len(lower))


def _cost(x: Array, target: list[float]) -> float:
    return max(target[0] - float(x[0]), 0.0) + max(target[1] - float(x[1]), 0.0)
