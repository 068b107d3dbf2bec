"""Agents with features who move to meet linear criteria, and the graph of their moves."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema, model_validator

from forcopt.arrays import Array, as_numbers, by_label
from forcopt.declaration import Name, Numbers
from forcopt.errors import DeclarationError
from forcopt.learning.names import take_names
from forcopt.models.strategic.responses import Responses
from forcopt.models.strategic.tables import checked_table
from forcopt.models.strategic.tolerances import ROUNDING, TOLERANCE
from forcopt.problem import Evaluation, Problem

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "FeatureEdges",
    "Flags",
    "LinearAgents",
    "check_weights",
    "feature_edges",
    "forbids_false_positives",
    "move_costs",
    "qualifies",
]


def _flags(value: Any) -> Array:
    numbers = as_numbers(value, "the array")
    if not np.isin(numbers, (0, 1)).all():
        at = int(np.argmin(np.isin(numbers, (0, 1))))
        raise DeclarationError(f"the array[{at}] is {numbers.flat[at]:g}; it must be true or false (1 or 0)")
    out: Array = numbers.astype(bool)
    out.flags.writeable = False
    return out


Flags = Annotated[
    np.ndarray[Any, np.dtype[np.bool_]],
    PlainValidator(_flags),
    PlainSerializer(lambda values: values.tolist()),
    WithJsonSchema({"type": "array", "items": {"type": "boolean"}}),
]
"""A field of booleans, read-only."""


def check_weights(weights: Array | None, agents: int) -> None:
    """Check that there is one weight for each agent and none is negative.

    Raises
    ------
    DeclarationError
        Naming the entry.
    """
    if weights is None:
        return
    if weights.shape != (agents,):
        raise DeclarationError(
            f"weights: the shape is {weights.shape}; it must be ({agents},), one for each agent"
        )
    if (weights < 0).any():
        at = int(np.argmax(weights < 0))
        raise DeclarationError(f"weights: the array[{at}] is {weights[at]:g}; it must not be negative")


def forbids_false_positives(most: float | None, weights: Array) -> bool:
    """Whether at most `most` false positives means none: not even the lightest agent (of positive weight)."""
    return most is not None and most < weights.min(where=weights > 0, initial=np.inf)


class LinearAgents(Problem):
    """The base of the problems whose agents have features.

    Attributes
    ----------
    X : Numbers
        Where the agents start, shape ``(n, d)``.
    truth : tuple[Numbers, float]
        The pair ``(a, b)``: qualified means ``a x >= b``; `a` has shape ``(d,)`` and is not negative.
    costs : Numbers
        The cost of raising each feature by one unit, shape ``(d,)``, positive.
    improvable : Flags
        For each feature whether raising it truly improves (otherwise it is gaming), shape ``(d,)``.
    weights : Numbers, optional
        How much each agent counts, shape ``(n,)``; 1 by default.
    feature_names : tuple[str, ...], optional
        Of the d features; those of a frame X by default. A series or a mapping of costs, coefficients or
        flags is read by them.
    """

    sense: ClassVar[Any] = "max"
    family: ClassVar[str] = "strategic"

    X: Numbers
    truth: tuple[Numbers, Annotated[float, Field(allow_inf_nan=False)]]
    costs: Numbers
    improvable: Flags
    weights: Numbers | None = None
    feature_names: tuple[Name, ...] = Field(default=(), kw_only=True)

    @model_validator(mode="before")
    @classmethod
    def _read_features(cls, fields: Any) -> Any:
        """Take names from a frame, put the features' values in their order, and read a file of no agents."""
        fields = take_names(fields, "X")
        if names := fields.get("feature_names"):
            named = {field: fields[field] for field in ("costs", "improvable") if field in fields}
            fields = {**fields, **{field: by_label(value, names, field) for field, value in named.items()}}
            truth = fields.get("truth")
            if isinstance(truth, tuple | list) and len(truth) == 2:
                fields["truth"] = by_label(truth[0], names, "truth[0]"), truth[1]
        X = fields.get("X")
        if isinstance(X, list) and not X and "costs" in fields:
            fields = {**fields, "X": np.zeros((0, np.size(fields["costs"])))}
        return fields

    @classmethod
    def from_table(
        cls,
        agents: DataFrame | str | Path,
        *,
        costs: Mapping[str, float],
        truth: tuple[Mapping[str, float], float],
        improvable: Collection[str],
        weight: str | None = None,
        **fields: Any,
    ) -> Self:
        """Declare agents with features from a table with one row for each agent.

        Parameters
        ----------
        agents : DataFrame, str or Path
            With a column for each feature; or a CSV file of it.
        costs : mapping
            The cost of raising each feature by one unit; its keys are the features, in their order.
        truth : tuple[mapping, float]
            The coefficient of each feature (0 if it is left out), and the threshold.
        improvable : collection of str
            The features that truly improve.
        weight : str, optional
            The column with the agents' weights.
        fields : Any
            Other fields of the class.

        Raises
        ------
        DeclarationError
            For a column that is missing, or a name that is no feature.
        """
        names = list(costs)
        frame = checked_table(agents, "agents", (*names, *([weight] if weight is not None else [])))
        for field, given in (("truth", truth[0]), ("improvable", improvable)):
            for name in given:
                if name not in costs:
                    raise DeclarationError(f"{field}: {name!r} is no feature; they are {', '.join(names)}")
        if weight is not None:
            fields["weights"] = frame[weight].to_numpy()
        return cls(
            X=frame[names],
            truth=(np.array([truth[0].get(name, 0.0) for name in names]), truth[1]),
            costs=np.array([costs[name] for name in names]),
            improvable=np.array([name in improvable for name in names]),
            **fields,
        )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.X.ndim != 2:
            raise DeclarationError(f"X: the shape is {self.X.shape}; it must be (agents, features)")
        d = self.X.shape[1]
        if d == 0:
            raise DeclarationError("X: there are no features; there must be at least one")
        for name, array in (
            ("truth[0]", self.truth[0]),
            ("costs", self.costs),
            ("improvable", self.improvable),
        ):
            if array.shape != (d,):
                raise DeclarationError(
                    f"{name}: the shape is {array.shape}; it must be ({d},), one entry for each feature of X"
                )
        if (self.truth[0] < 0).any():
            at = int(np.argmax(self.truth[0] < 0))
            raise DeclarationError(
                f"truth[0]: the array[{at}] is {self.truth[0][at]:g}; it must not be negative, "
                "since lowering a feature is free"
            )
        if (self.costs <= 0).any():
            at = int(np.argmax(self.costs <= 0))
            raise DeclarationError(f"costs: the array[{at}] is {self.costs[at]:g}; it must be positive")
        check_weights(self.weights, len(self.X))
        return self

    # -- agents --------------------------------------------------------------------------------------------

    @property
    def agents(self) -> int:
        """How many there are."""
        return len(self.X)

    @property
    def agent_weights(self) -> Array:
        """How much each agent counts."""
        return np.ones(self.agents) if self.weights is None else self.weights

    def scaled(self) -> tuple[Array, Array, float]:
        """Features in units of effort and the truth for them, as ``(Y, t, s)``.

        ``Y = costs * X``, so that raising a feature by 1 costs 1, the value of acceptance; qualified means
        ``t y >= s``, where the largest entry of `t` is 1 (unless all are 0).
        """
        a, b = self.truth
        per_effort = a / self.costs
        top = float(per_effort.max()) or 1.0
        return self.X * self.costs, per_effort / top, b / top

    @property
    def qualified(self) -> Array:
        """Whether each agent is qualified where it starts."""
        Y, t, s = self.scaled()
        return np.asarray(Y @ t >= s - TOLERANCE)

    def improvable_along(self) -> Array:
        """Whether each unqualified agent can afford to qualify by raising one feature; shape ``(n, d)``.

        Definition 15. No agent is improvable along a feature that is gaming or that the truth ignores.
        """
        Y, t, s = self.scaled()
        reaches = (Y @ t)[:, None] + np.where(self.improvable, t, 0.0) >= s - TOLERANCE
        return np.asarray(reaches & (self.improvable & (t > 0)) & ~self.qualified[:, None])

    def evaluate_responses(
        self, responses: Responses, most: float | None, penalty: float = 0.0
    ) -> Evaluation:
        """Evaluate by the agents' responses: TP - penalty * FP, subject to at most `most` false positives."""
        over = 0.0 if most is None else responses.false_positives - most
        return Evaluation(
            responses.true_positives - penalty * responses.false_positives,
            {"max_false_positives": over} if over > ROUNDING else {},
            rates(responses),
        )


def rates(responses: Responses) -> Mapping[str, float]:
    """The metrics that every problem of this family shows."""
    return {
        "true_positives": responses.true_positives,
        "false_positives": responses.false_positives,
        "effort": responses.effort,
    }


DECIMALS = 9
"""Costs are rounded to this number of decimals, so that exact ties stay ties."""


class FeatureEdges(NamedTuple):
    """The result of `feature_edges`.

    Attributes
    ----------
    agents, criteria : int
        How many.
    edges : Array
        Rows ``(agent, criterion, cost, improves)``.
    """

    agents: int
    criteria: int
    edges: Array


def move_costs(X: Array, targets: Array, costs: Array) -> Array:
    """``sum_j costs[j] * max(target[j] - x[j], 0)`` for each agent and target; shape ``(n, m)``."""
    out = np.zeros((len(X), len(targets)))
    for x, p, c in zip(X.T, targets.T, costs, strict=True):
        out += c * np.maximum(p[None, :] - x[:, None], 0.0)
    return out


def qualifies(
    X: Array,
    targets: Array,
    truth: tuple[Array, float],
    improvable: Array,
    exact_target: bool,
    tolerance: float,
) -> Array:
    """Whether each agent is truly qualified once it has moved to each target; shape ``(n, m)``.

    The true features are the target's where raising improves, and the agent's own elsewhere.
    """
    score = np.zeros((len(X), len(targets)))
    for x, p, a, improves in zip(X.T, targets.T, truth[0], improvable, strict=True):
        if not improves:
            score += a * x[:, None]
        elif exact_target:
            score += a * p[None, :]
        else:
            score += a * np.maximum(x[:, None], p[None, :])
    return np.asarray(score >= truth[1] - tolerance)


def feature_edges(
    X: Any,
    targets: Any,
    truth: tuple[Any, float],
    costs: Any,
    improvable: Any,
    value: Any,
    exact_target: bool,
) -> FeatureEdges:
    """Join each agent to every target that it can afford, in O(n m d).

    Raises
    ------
    DeclarationError
        As `LinearAgents`, and for targets of another dimension.
    """
    agents = LinearAgents(X=X, truth=truth, costs=costs, improvable=improvable)
    points = as_numbers(targets, "targets")
    if points.size == 0:
        points = points.reshape(0, agents.X.shape[1])
    if points.ndim != 2 or points.shape[1] != agents.X.shape[1]:
        raise DeclarationError(
            f"targets: the shape is {points.shape}; it must be (m, {agents.X.shape[1]}), one column for each "
            "feature of X"
        )
    worth = np.asarray(value, dtype=float)
    cost = move_costs(agents.X, points, agents.costs).round(DECIMALS)
    agent, criterion = np.nonzero(cost <= worth.reshape(-1, 1))
    a, b = agents.truth
    improves = qualifies(
        agents.X, points, (a, b), agents.improvable, exact_target, 10.0**-DECIMALS * max(1.0, abs(b))
    )
    edges = np.column_stack([agent, criterion, cost[agent, criterion], improves[agent, criterion]])
    return FeatureEdges(agents.agents, len(points), edges)
