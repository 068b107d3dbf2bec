"""Target levels of one or two efforts: problems, a grid, a mixed-integer program, and Algorithm 3."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import model_validator

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError, require
from forcopt.language import Expression, Model, implies
from forcopt.loops.solution import ModelSolution
from forcopt.models.strategic.criteria import largest_gaming_free_set
from forcopt.models.strategic.linear import LinearAgents, move_costs, qualifies, read_points
from forcopt.models.strategic.problem import StrategicClassification
from forcopt.models.strategic.responses import Responses
from forcopt.models.strategic.tolerances import PAIR_SECONDS, ROUNDING, TOLERANCE
from forcopt.problem import Evaluation, Handles, Outcome
from forcopt.status import Status


@dataclass(frozen=True, eq=False)
class Targets:
    """The published targets; an agent that has one's features is accepted.

    Attributes
    ----------
    points : Array
        Shape ``(m, d)``.

    Examples
    --------
    >>> import forcopt as fo
    >>> found = fo.load("strategic/plane").solve().decision
    >>> len(found) > 0, found.points.shape[1]
    (True, 2)
    """

    points: Array

    def __iter__(self) -> Iterator[Array]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        shown = [f"({', '.join(f'{v:.6g}' for v in p)})" for p in self.points[:10]]
        more = [f"... {len(self) - 10} more"] if len(self) > 10 else []
        return f"Targets({', '.join(shown + more)})"


class TargetDesign(LinearAgents):
    """Publish targets, anywhere in feature space, that get many agents to qualify and none to game.

    Each agent moves to the target that costs it least, if that is at most 1, the value of acceptance; it then
    has exactly the target's features, true ones where they are improvable. An agent to whom improving and
    gaming cost the same improves; gaming at a cost of 1 is not worth it (otherwise the optimum would not be
    attained). Maximises the weight of true positives without false positives.

    The fields are as in `LinearAgents`. Costs and qualification are compared up to 1e-6, see `TOLERANCE`.

    References
    ----------
    Ahmadi, Beyhaghi, Blum, Naggita, FORC 2022, Theorem 5 (NP-hard) and section 5.3.

    Examples
    --------
    >>> p = TargetDesign(X=[[8, 0], [1, 5], [3, 2]], truth=([1, 2], 12), costs=[0.2, 0.2],
    ...                  improvable=[True, False])
    >>> p.solve().objective
    2.0
    """

    default_method: ClassVar[str] = "milp"

    def simulate(self, decision: Targets | Iterable[Any]) -> Responses:
        """Let every agent respond to the targets (`Targets`, or points of shape ``(m, d)``)."""
        given = decision.points if isinstance(decision, Targets) else list(decision)
        points = read_points(given, self.X.shape[1], "the decision")
        Y, t, s = self.scaled()
        cost = move_costs(Y, points * self.costs, np.ones(len(self.costs)))
        improves = qualifies(Y, points * self.costs, (t, s), self.improvable, True, TOLERANCE)
        # One more column that nobody can afford: the best of none.
        cost = np.pad(cost, ((0, 0), (0, 1)), constant_values=np.inf)
        improves = np.pad(improves, ((0, 0), (0, 1)))
        honest, gaming = np.where(improves, cost, np.inf), np.where(improves, np.inf, cost)
        every, best, tempting = np.arange(self.agents), honest.argmin(axis=1), gaming.argmin(axis=1)
        worth = np.minimum(honest[every, best], 1.0)
        games = gaming[every, tempting] < worth - TOLERANCE
        improved = ~games & (honest[every, best] <= 1.0 + TOLERANCE)
        choice = np.where(games, tempting, np.where(improved, best, -1))
        accepted = choice >= 0
        position = self.X.copy()
        position[accepted] = points[choice[accepted]]
        paid, place = np.where(accepted, cost[every, choice], 0.0), {"start": self.X, "position": position}
        return Responses(choice, paid, improved, games, weights=self.agent_weights, **place)

    def _sketch(self, decision: Any, evaluation: Evaluation) -> Any:
        return self.simulate(decision)

    def evaluate(self, decision: Targets | Iterable[Any]) -> Evaluation:
        """Evaluate targets by the agents' best responses."""
        return self.evaluate_responses(self.simulate(decision), 0.0)


class TargetDesign2D(TargetDesign):
    """`TargetDesign` with two features, one improvable and one not: solvable in polynomial time (Theorem 26).

    Examples
    --------
    >>> p = TargetDesign2D(X=[[8, 0], [1, 5], [3, 2]], truth=([1, 2], 12), costs=[0.2, 0.2],
    ...                    improvable=[True, False])
    >>> s = p.solve()
    >>> s.objective, s.decision
    (2.0, Targets((2, 7), (12, 0)))
    >>> p.solve("sweep", as_printed=True).objective
    1.0
    """

    default_method: ClassVar[str] = "sweep"

    @model_validator(mode="after")
    def _is_plane(self) -> Self:
        if self.X.shape[1] != 2 or self.improvable.sum() != 1:
            kinds = self.improvable.tolist()
            raise DeclarationError(f"improvable: {kinds} must be two features, one of them improvable")
        return self


MOST_CELLS = 50_000_000


@TargetDesign2D.algorithm("grid", cites="Ahmadi et al. (2022), Algorithm 1 on a grid", rank="published")
@TargetDesign.algorithm("grid", cites="Ahmadi et al. (2022), Algorithm 1 on a grid", rank="published")
def grid(problem: TargetDesign, *, step: float = 1.0, time_limit: float | None = None) -> Outcome:
    """The best targets among the multiples of `step`, by greedy deletion: optimal if all data lies on the
    grid.

    Then it is an oracle for Algorithm 3. The number of points grows exponentially with the features.

    Parameters
    ----------
    step : float, default 1.0
        The distance of neighbouring points along each feature, in its own units.
    """
    require(np.isfinite(step) and step > 0, "step", step, "be positive")
    X, reach = problem.X, 1 / problem.costs
    if not len(X):
        return Outcome(Targets(np.empty((0, X.shape[1]))))
    low = np.floor(X.min(axis=0) / step).astype(int)
    high = np.ceil((X.max(axis=0) + reach) / step).astype(int)
    cells = prod((high - low + 1).tolist()) * len(X)
    if cells > MOST_CELLS:
        many = f"step is {step:g}, which gives {cells} pairs of an agent and a point"
        raise DeclarationError(f"{many}; it may give {MOST_CELLS}")
    if time_limit is not None and cells * PAIR_SECONDS > time_limit:
        message = f"{cells} pairs of an agent and a point take longer than {time_limit:g} s"
        return Outcome(None, status=Status.LIMIT, message=message)
    axes = [range(a, b + 1) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    points = np.array(list(product(*axes)), dtype=float) * step
    own = problem.truth, problem.costs, problem.improvable
    fields: dict[str, Any] = {"weights": problem.weights, "zero_utility": "improve"}
    graph = StrategicClassification.from_features(X, points, *own, **fields)
    is_open, passes = largest_gaming_free_set(graph)
    return Outcome(Targets(points[is_open]), iterations=passes)


"""Truth scores this close to the threshold qualify: sums of floats are not exact."""


@TargetDesign2D.formulation("milp", exact=True, cites="Ahmadi et al. (2022), Corollary 6; our formulation")
@TargetDesign.formulation("milp", exact=True, cites="Ahmadi et al. (2022), Corollary 6; our formulation")
def milp(problem: TargetDesign, model: Model) -> Handles:
    """One designated target for each served agent; no other agent may find it cheaper than its own.

    Features are measured in effort. Served agent k's target lies at or above k in every feature, since
    raising it to there costs k nothing, takes qualification from nobody and only deters others. For every
    other agent i, the target of a served k either qualifies i, or costs i at least as much as its own target
    (1 if it is not served). That cost must be bounded from below, which takes a binary for each feature: n^2
    (d + 2) + n binaries in all.

    Returns
    -------
    Handles
        ``targets`` in units of effort, shape ``(n, d)``, and ``served``, shape ``(n,)``, for the agents of
        positive weight.
    """
    counted = problem.agent_weights > 0
    Y, t, s = problem.scaled()
    Y, weight = Y[counted], problem.agent_weights[counted]
    n, d = Y.shape
    improvable, name = problem.improvable, model.unused_name
    # the share of features that cannot be improved in the truth
    own = np.where(improvable, 0.0, Y * t).sum(axis=1)
    truth = np.where(improvable, t, 0.0)
    lack = s - own - ROUNDING
    cannot = Y @ t + truth.max() < s - ROUNDING  # even all effort on the best feature does not qualify

    served = model.variable(name("served"), n, upper=~cannot, binary=True)
    targets = model.variable(name("targets"), (n, d), lower=Y, upper=Y + 1)
    pays = model.variable(name("pays"), n, lower=0, upper=1)
    cost = (targets - Y).sum(axis=1)
    adds = targets @ truth
    serves = cost <= 1, implies(served, adds >= lack), implies(served, pays >= cost), pays >= 1 - served
    model.subject_to(*serves, name=name("served_if"))
    i, k = np.nonzero(~np.eye(n, dtype=bool))
    gap = targets[k] - Y[i]  # how far i is below the target of k
    above = model.variable(name("above"), (len(i), d), binary=True)
    least, most = np.minimum(Y[k] - Y[i], 0), np.maximum(Y[k] + 1 - Y[i], 0)
    climbs = model.variable(name("climbs"), (len(i), d), lower=least, upper=most)
    qualifies = model.variable(name("qualifies"), len(i), binary=True)
    deterred = model.variable(name("deterred"), len(i), binary=True)
    rows = [implies(above, climbs <= gap), implies(1 - above, climbs <= 0)]
    rows += [implies(qualifies, adds[k] >= lack[i]), implies(deterred, climbs.sum(axis=1) >= pays[i])]
    model.subject_to(*rows, qualifies + deterred >= served[k], name=name("deterred_if"))

    def decision(result: ModelSolution) -> Targets:
        return Targets(result[targets][result[served] > 0.5] / problem.costs)

    objective: Expression = (served * weight).sum()
    return Handles(objective=objective, decision=decision, targets=targets, served=served)


@TargetDesign2D.algorithm("sweep", exact=True, cites="Ahmadi et al. (2022), Algorithm 3, Theorem 26")
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
