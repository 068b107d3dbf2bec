"""Strategic classification with finitely many criteria: the declarations and the agents' best responses."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, field_validator, model_validator

from forcopt.arrays import Array, check_real, check_shape
from forcopt.declaration import Integers, Name, Numbers
from forcopt.errors import DeclarationError, require
from forcopt.models.strategic import linear
from forcopt.models.strategic.responses import Responses, edge_fields, moves_table
from forcopt.models.strategic.tolerances import ROUNDING
from forcopt.problem import Evaluation, Problem

if TYPE_CHECKING:
    from pandas import DataFrame

Count = Annotated[int, Field(ge=0)]
Limit = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class OpenCriteria(frozenset[int]):
    """The published criteria, by index.

    Examples
    --------
    >>> OpenCriteria([2, 1])
    OpenCriteria({1, 2})
    >>> OpenCriteria([2, 1]) == {1, 2}
    True
    """

    def __repr__(self) -> str:
        return f"OpenCriteria({{{', '.join(map(str, sorted(self)))}}})"


class AgentGraph(NamedTuple):
    """The edges that agents would take, each agent's in the order of its preference.

    Attributes
    ----------
    agent, criterion, cost, improves : Array
        One entry for each edge, sorted by agent, then preference.
    start : Array
        Agent i's edges are ``start[i]:start[i + 1]``; shape ``(n + 1,)``.
    """

    agent: Array
    criterion: Array
    cost: Array
    improves: Array
    start: Array


class StrategicGraph(Problem):
    """The base of the problems with finitely many criteria and the agents' costs of meeting them.

    The decision is the set of criteria to publish (any iterable of indices, see `OpenCriteria`). Each agent
    then takes its cheapest edge to a published criterion if it can afford one, and is accepted; it is a true
    positive if that edge improves it, otherwise a false positive.

    Attributes
    ----------
    agents, criteria : Count
        Their numbers.
    edges : Numbers
        Rows ``(agent, criterion, cost, improves)``, shape ``(E, 4)``: the agent can meet the criterion at
        this cost (>= 0), and truly qualifies by it (1) or games (0).
    max_false_positives : Limit, default 0.0
        The weight of false positives may be at most this; None for no limit.
    value : Numbers, default 1.0
        Of being accepted, in units of cost; one for all agents or one for each.
    weights : Numbers, optional
        The weight of each agent, shape ``(n,)``; 1 by default.
    ties : Literal["improvement", "gaming", "listed"], default "improvement"
        Which of an agent's equally cheap edges it takes. ``"improvement"``: one that improves, then the
        criterion with the lowest index; ``"gaming"``: one that does not, then the lowest index; ``"listed"``:
        the one that stands first in `edges`. The order may not depend on the published criteria: Theorem 2
        needs that.
    zero_utility : Literal["take", "improve", "refuse"], default "take"
        The agent's choice at an edge whose cost equals its value. ``"take"`` it (Definition 15 and the
        reductions need that), ``"refuse"`` it, or take it only if it ``"improve"``s (for free targets, where
        the optimum would otherwise not be attained). A refused edge is ignored in ties.
    agent_names, criterion_names : tuple[Name, ...], optional
        For tables; ``"0"``, ``"1"``, ... by default.

    Raises
    ------
    DeclarationError
        For a cost that is negative or no number, an index that does not exist, an edge given twice, an
        `improves` that is neither 0 nor 1.
    """

    family: ClassVar[str] = "strategic"

    agents: Count
    criteria: Count
    edges: Numbers
    max_false_positives: Limit | None = 0.0
    value: Numbers = Field(default=1.0, validate_default=True)
    weights: Numbers | None = None
    ties: Literal["improvement", "gaming", "listed"] = "improvement"
    zero_utility: Literal["take", "improve", "refuse"] = "take"
    agent_names: tuple[Name, ...] = ()
    criterion_names: tuple[Name, ...] = ()

    @field_validator("edges")
    @classmethod
    def _are_rows(cls, edges: Array) -> Array:
        if edges.size == 0:
            return edges.reshape(0, 4)
        fits = edges.ndim == 2 and edges.shape[1] == 4
        require(fits, "the shape", edges.shape, "be (E, 4): agent, criterion, cost, improves")
        return edges

    @model_validator(mode="after")
    def _fits(self) -> Self:
        agent, criterion, cost, improves = self.edges.T

        def refuse(bad: Array, column: int, subject: str, rule: str) -> None:
            if bad.any():
                row = int(np.argmax(bad))
                value = self.edges[row, column]
                raise DeclarationError(f"edges[{row}]: the {subject} is {value:g}; it must be {rule}")

        ends = (agent, "agent", self.agents), (criterion, "criterion", self.criteria)
        for column, (values, subject, count) in enumerate(ends):
            bad = (values < 0) | (values >= count) | (values != np.floor(values))
            refuse(bad, column, subject, f"a whole number from 0 to {count - 1}")
        refuse(cost < 0, 2, "cost", "at least 0")
        refuse((improves != 0) & (improves != 1), 3, "field improves", "1 (improves) or 0 (games)")
        pairs = (agent * self.criteria + criterion).astype(np.int64)
        in_order = np.sort(pairs)
        twice = np.flatnonzero(in_order[1:] == in_order[:-1])
        if twice.size:
            row = int(np.flatnonzero(pairs == in_order[twice[0]])[1])
            pair = f"agent {agent[row]:g} and criterion {criterion[row]:g}"
            raise DeclarationError(f"edges[{row}]: {pair} are joined already; an edge must be given once")
        shape, n = self.value.shape, self.agents
        require(shape in ((), (n,)), "value: the shape", shape, f"be one number or ({n},)")
        linear.check_weights(self.weights, self.agents)
        for field, count in (("agent_names", self.agents), ("criterion_names", self.criteria)):
            names = getattr(self, field)
            if names and (len(names) != count or len(set(names)) < count):
                raise DeclarationError(f"{field}: there must be {count}, all different")
        return self

    @classmethod
    def from_tables(
        cls, edges: DataFrame | str | Path, agents: DataFrame | str | Path | None = None, **fields: Any
    ) -> Self:
        """Declare agents, criteria and edges from tables.

        Parameters
        ----------
        edges : DataFrame, str or Path
            One row for each edge, with the columns ``agent``, ``criterion``, ``cost`` and ``improves`` (1 or
            0); or a CSV file of it.
        agents : DataFrame, str or Path, optional
            One row for each agent, with the column ``agent`` and, as far as wanted, ``weight``, ``value`` and
            ``group``; or a CSV file of it. By default the agents of the edges.
        fields : Any
            Other fields of the class.

        Returns
        -------
        Self
            With the agents in the order of their table (or of their first edges), criteria sorted by name.

        Raises
        ------
        DeclarationError
            For a column that is missing, an entry without a name, a number in words, an agent that is listed
            twice, an edge that is given twice, or one of an unknown agent; the row is named.

        Examples
        --------
        >>> import pandas as pd
        >>> edges = pd.DataFrame(
        ...     [("ann", "course", 1, 1), ("bob", "essay", 0.5, 0)],
        ...     columns=["agent", "criterion", "cost", "improves"])
        >>> p = StrategicClassification.from_tables(edges)
        >>> p.moves(p.solve().decision).outcome.to_dict()
        {'ann': 'improves', 'bob': 'rejected'}
        """
        return cls(**{**edge_fields(edges, agents), **fields})

    def moves(self, decision: Iterable[int]) -> DataFrame:
        """Give every agent's response to the criteria: one row for each agent, indexed by name.

        Returns
        -------
        DataFrame
            The columns ``criterion`` (empty if it meets none), ``cost``, and ``outcome``: ``improves``,
            ``games`` or ``rejected``.
        """
        agents = self.agent_names or tuple(map(str, range(self.agents)))
        criteria = self.criterion_names or tuple(map(str, range(self.criteria)))
        return moves_table(self.simulate(decision), agents, criteria)

    @classmethod
    def from_features(
        cls,
        X: Any,
        targets: Any,
        truth: tuple[Any, float],
        costs: Any,
        improvable: Any,
        *,
        exact_target: bool = True,
        value: Any = 1.0,
        **fields: Any,
    ) -> Self:
        """Declare the linear model with a finite set of targets: criterion p is "have the features of target
            p".

        Parameters
        ----------
        X : Any
            The agents' initial features, shape ``(n, d)``.
        targets : Any
            Shape ``(m, d)``.
        truth : tuple[Any, float]
            The pair ``(a, b)``: qualified means ``a x >= b`` for the true features; `a` is not negative.
        costs : Any
            Of raising each feature by one unit, shape ``(d,)``; lowering is free.
        improvable : Any
            For each feature whether raising it changes the true one; shape ``(d,)``.
        exact_target : bool, default True
            An agent at target p has exactly p's features, also where that lowers an improvable one (the
            paper's reading); if False it keeps the larger ones.
        value : Any, default 1.0
            Of being accepted.
        fields : Any
            Of the class, such as ``max_false_positives``.

        Notes
        -----
        Costs are rounded to 9 decimals, so that exact ties stay ties.

        Examples
        --------
        >>> p = StrategicClassification.from_features(
        ...     X=[[8, 0], [1, 5], [3, 2]], targets=[[12, 0], [2, 7]], truth=([1, 2], 12), costs=[0.2, 0.2],
        ...     improvable=[True, False], zero_utility="improve")
        >>> p.solve().objective
        2.0
        """
        agents = linear.LinearAgents(X=X, truth=truth, costs=costs, improvable=improvable)
        points = linear.read_points(targets, agents.X.shape[1], "targets")
        worth, (a, b) = np.asarray(value, dtype=float), agents.truth
        cost = linear.move_costs(agents.X, points, agents.costs).round(linear.DECIMALS)
        agent, criterion = np.nonzero(cost <= worth.reshape(-1, 1))
        same = 10.0**-linear.DECIMALS * max(1.0, abs(b))
        improves = linear.qualifies(agents.X, points, (a, b), agents.improvable, exact_target, same)
        edges = np.column_stack([agent, criterion, cost[agent, criterion], improves[agent, criterion]])
        return cls(agents=agents.agents, criteria=len(points), edges=edges, value=value, **fields)

    # -- responses of agents ---------------------------------------------------------------------------------

    @property
    def agent_weights(self) -> Array:
        """The weight of each agent."""
        return np.ones(self.agents) if self.weights is None else self.weights

    @property
    def allows_no_false_positive(self) -> bool:
        """Whether not even the lightest agent (of positive weight) may be a false positive."""
        return linear.forbids_false_positives(self.max_false_positives, self.agent_weights)

    @cached_property
    def graph(self) -> AgentGraph:
        """The affordable edges in the agents' order of preference."""
        agent, criterion = self.edges[:, 0].astype(np.int64), self.edges[:, 1].astype(np.int64)
        cost, improves = self.edges[:, 2], self.edges[:, 3] == 1
        value = np.broadcast_to(self.value, (self.agents,))[agent]
        at_value = {"take": True, "improve": improves, "refuse": False}[self.zero_utility]
        kept = np.flatnonzero((cost < value) | ((cost == value) & at_value))
        agent, criterion, cost, improves = agent[kept], criterion[kept], cost[kept], improves[kept]
        last = {"improvement": ~improves, "gaming": improves}.get(self.ties)
        tie = np.arange(len(kept)) if last is None else criterion + self.criteria * last
        order = _order(agent, cost, tie)
        agent = agent[order]
        start = np.searchsorted(agent, np.arange(self.agents + 1))
        return AgentGraph(agent, criterion[order], cost[order], improves[order], start)

    def read_open(self, decision: Iterable[int]) -> Array:
        """Read a set of criteria into a mask of shape ``(m,)``.

        Raises
        ------
        DeclarationError
            For an index that does not exist.
        """
        chosen = np.array(list(decision))
        out = np.zeros(self.criteria, dtype=bool)
        if chosen.size:
            check_real(chosen.dtype, "the indices of criteria")
            whole = chosen.astype(np.int64)
            bad = (whole != chosen) | (whole < 0) | (whole >= self.criteria)
            if chosen.dtype == bool or bad.any():
                wrong, most = chosen[int(np.argmax(bad))], self.criteria - 1
                raise DeclarationError(f"the decision holds {wrong}; it must hold criteria, 0 to {most}")
            out[whole] = True
        return out

    def _sketch(self, decision: Any, evaluation: Evaluation) -> Any:
        return self.simulate(decision)

    def simulate(self, decision: Iterable[int]) -> Responses:
        """Let every agent respond to the published criteria; linear in the number of edges."""
        graph = self.graph
        usable = np.flatnonzero(self.read_open(decision)[graph.criterion])
        agents = graph.agent[usable]
        first = usable[np.flatnonzero(np.diff(agents, prepend=-1))]
        agent = graph.agent[first]
        choice, cost = np.full(self.agents, -1), np.zeros(self.agents)
        choice[agent], cost[agent] = graph.criterion[first], graph.cost[first]
        improved, gamed = np.zeros(self.agents, dtype=bool), np.zeros(self.agents, dtype=bool)
        improved[agent], gamed[agent] = graph.improves[first], ~graph.improves[first]
        return Responses(choice, cost, improved, gamed, self.agent_weights)

    def sample(self, size: int, rng: np.random.Generator) -> Self:
        """Draw agents independently, each with a probability in proportion to its weight.

        Returns
        -------
        Self
            The same problem with `size` agents of weight 1.
        """
        weights = self.agent_weights
        drawn = rng.choice(self.agents, size, p=weights / weights.sum())
        order = np.argsort(self.edges[:, 0], kind="stable")
        start = np.searchsorted(self.edges[order, 0], np.arange(self.agents + 1))
        count = np.diff(start)[drawn]
        edges = self.edges[order[spans(start[drawn], count)]]
        edges[:, 0] = np.repeat(np.arange(size), count)
        changed: dict[str, Any] = {"agents": size, "edges": edges, "weights": None, "agent_names": ()}
        if self.value.ndim:
            changed["value"] = self.value[drawn]
        if getattr(self, "groups", None) is not None:
            changed["groups"] = getattr(self, "groups")[drawn]  # noqa: B009
        kept = [name for name in type(self).model_fields if name not in changed]
        return type(self)(**{name: getattr(self, name) for name in kept}, **changed)

    def _over_limit(self, responses: Responses) -> dict[str, float]:
        limit = self.max_false_positives
        over = 0.0 if limit is None else responses.false_positives - limit
        return {"max_false_positives": over} if over > ROUNDING else {}


class StrategicClassification(StrategicGraph):
    """Publish criteria that make many agents qualify and few game.

    Maximises the weight of the true positives, less `penalty` times that of the false positives, of which
    there may be at most `max_false_positives`. With `groups`, it first raises this value for the group where
    it is smallest, then for the next (leximin).

    Attributes
    ----------
    penalty : Limit, default 0.0
        The cost of a false positive in true positives, >= 0.
    groups : Integers, optional
        The group of each agent, whole numbers from 0, shape ``(n,)``; None for one objective for all.

    References
    ----------
    Ahmadi, Beyhaghi, Blum, Naggita, On classification of strategic agents who can both game and improve, FORC
    2022, sections 2.1 and 3.

    Notes
    -----
    The other fields are as in `StrategicGraph`.

    Examples
    --------
    >>> edges = [(0, 0, 1, 0), (0, 1, 2, 1), (0, 2, 3, 1), (1, 0, 1, 1),
    ...          (2, 1, 1, 1), (2, 2, 2, 0), (3, 3, 1, 0), (3, 2, 2, 1)]
    >>> p = StrategicClassification(agents=4, criteria=4, edges=edges, value=3)
    >>> s = p.solve()
    >>> s.decision, s.objective
    (OpenCriteria({1, 2}), 3.0)
    >>> p.simulate(s.decision)
    <4 agents: 3 true positives, 0 false positives, 1 rejected, effort 5>
    """

    sense: ClassVar[Any] = "max"
    default_method: ClassVar[str] = "milp"
    refuses_channel: ClassVar[str] = "the smallest group's value is a biased minimum of estimates of few"

    penalty: Limit = 0.0
    groups: Integers | None = None

    @model_validator(mode="after")
    def _groups_fit(self) -> Self:
        if self.groups is None:
            return self
        check_shape(self.groups, (self.agents,), "groups")
        present = np.unique(self.groups)
        if not np.array_equal(present, np.arange(len(present))):
            raise DeclarationError(f"groups: the numbers are {present.tolist()}; they must be 0, 1, ...")
        return self

    @property
    def group_of(self) -> Array:
        """The group of each agent; 0 for all if there are no groups."""
        return np.zeros(self.agents, dtype=np.int64) if self.groups is None else self.groups

    @property
    def group_count(self) -> int:
        """The number of groups; 1 without groups."""
        return 1 if self.groups is None or not self.agents else int(self.groups.max()) + 1

    def group_values(self, responses: Responses) -> Array:
        """The value of each group: its true positives less `penalty` times its false positives."""
        gain = np.where(responses.true_positive, 1.0, np.where(responses.false_positive, -self.penalty, 0.0))
        return np.bincount(self.group_of, gain * responses.weights, self.group_count)

    def evaluate(self, decision: Iterable[int]) -> Evaluation:
        """Evaluate a set of criteria by the agents' best responses.

        With groups, the objective is the smallest group's value and the metrics hold every group's.
        """
        responses = self.simulate(decision)
        values = self.group_values(responses)
        metrics = dict(linear.rates(responses))
        if self.groups is not None:
            metrics |= {f"group {h}": float(v) for h, v in enumerate(values)}
        return Evaluation(float(values.min()), self._over_limit(responses), metrics)


class LeastEffortClassification(StrategicGraph):
    """Publish criteria that make enough agents qualify, at the least total effort of all agents.

    Minimises the weighted cost of all moves, gaming included, subject to at least `min_true_positives` true
    and at most `max_false_positives` false positives (both by weight).

    The other fields are as in `StrategicGraph`.

    Parameters
    ----------
    min_true_positives : float
        The least weight of true positives, at least 0.

    Examples
    --------
    >>> edges = [(0, 0, 1, 0), (0, 1, 2, 1), (0, 2, 3, 1), (1, 0, 1, 1),
    ...          (2, 1, 1, 1), (2, 2, 2, 0), (3, 3, 1, 0), (3, 2, 2, 1)]
    >>> p = LeastEffortClassification(agents=4, criteria=4, edges=edges, value=3, min_true_positives=2)
    >>> s = p.solve()
    >>> s.decision, s.objective
    (OpenCriteria({1}), 3.0)
    """

    sense: ClassVar[Any] = "min"
    default_method: ClassVar[str] = "milp"
    ideal: ClassVar[float | None] = 0.0  # costs and weights are not negative

    min_true_positives: Limit = Field(default=...)

    def least_relaxation(self, time_limit: float = 10.0) -> str:
        """Give the largest demand of true positives that can be met; see `Problem.least_relaxation`."""
        return self.relaxed_rows("milp", "enough", time_limit)

    def evaluate(self, decision: Iterable[int]) -> Evaluation:
        """Evaluate a set of criteria by the agents' best responses."""
        responses = self.simulate(decision)
        missing = self.min_true_positives - responses.true_positives
        violations = self._over_limit(responses)
        if missing > ROUNDING:
            violations["min_true_positives"] = missing
        return Evaluation(responses.effort, violations, linear.rates(responses))


def spans(start: Array, count: Array) -> Array:
    """The numbers ``start[k], ..., start[k] + count[k] - 1`` for each k, joined."""
    before = np.concatenate([[0], np.cumsum(count)])
    return np.asarray(np.arange(before[-1]) + np.repeat(start - before[:-1], count))


def _order(agent: Array, cost: Array, tie: Array) -> Array:
    """Sort by agent, then cost, then tie (unique for an agent)."""
    # One sort of packed integers takes a third of the time of a lexsort; it needs them to fit into 63 bits.
    rank = np.unique(cost, return_inverse=True)[1]
    span = [int(part.max(initial=0)) + 1 for part in (agent, rank, tie)]
    if span[0] * span[1] * span[2] >= 2**63:
        return np.lexsort((tie, rank, agent))
    return np.argsort((agent * span[1] + rank) * span[2] + tie)
