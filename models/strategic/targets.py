"""Targets anywhere in feature space: the declarations and their evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import model_validator

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError
from forcopt.models.strategic.features import move_costs, qualifies
from forcopt.models.strategic.linear_agents import TOLERANCE, LinearAgents
from forcopt.models.strategic.responses import Responses
from forcopt.problem import Evaluation

__all__ = ["TargetDesign", "TargetDesign2D", "Targets"]


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
        points = self.read_points(decision)
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
        return Responses(
            choice=choice,
            cost=np.where(accepted, cost[every, choice], 0.0),
            true_positive=improved,
            false_positive=games,
            weights=self.agent_weights,
            start=self.X,
            position=position,
        )

    def evaluate(self, decision: Targets | Iterable[Any]) -> Evaluation:
        """Evaluate targets by the agents' best responses."""
        return self.evaluate_responses(self.simulate(decision), 0.0)

    def read_points(self, decision: Targets | Iterable[Any]) -> Array:
        """Read targets into an array of shape ``(m, d)``.

        Raises
        ------
        DeclarationError
            For another shape.
        """
        given = decision.points if isinstance(decision, Targets) else list(decision)
        points = as_numbers(given, "the decision")
        d = self.X.shape[1]
        if points.size == 0:
            return points.reshape(0, d)
        if points.ndim != 2 or points.shape[1] != d:
            raise DeclarationError(
                f"the decision has shape {points.shape}; it must be (m, {d}), targets by rows"
            )
        return points


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
            raise DeclarationError(
                f"improvable: the array is {self.improvable.tolist()}; there must be two features, "
                "one of them improvable"
            )
        return self
