"""The common part of both problems: records, groups, levels, evaluation, the auditor's answer and proofs."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, log
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from pydantic import BeforeValidator, Field, model_validator

from forcopt.arrays import Array, check_entries, check_label_order, check_shape
from forcopt.clock import Deadline
from forcopt.declaration import Name, Numbers
from forcopt.errors import DeclarationError, require
from forcopt.fairness.records import read_groups
from forcopt.language import Constraint, Expression, Model
from forcopt.learning.files import PolicyFile
from forcopt.privacy import ObservedGroups, RandomizedResponse
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Method, Problem, Solution
from forcopt.problem.drawing import MARKERS, finished, panel, titled, whole_ticks
from forcopt.status import Status

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def most_violated(losses: Array, limits: Array) -> Array:
    """The set of groups whose total loss exceeds the limit for sets of its size by the most.

    Among sets of one size the set of the largest losses is the worst, so that the prefixes of the sorted
    losses suffice: O(K log K) for exponentially many multipliers, of which at most one is not 0.

    Parameters
    ----------
    losses : Array
        Of the K groups.
    limits : Array
        ``η_1, ..., η_j`` for sets of 1, ..., j groups.

    Returns
    -------
    Array
        The groups, worst first; none if no limit is exceeded (a tie is no violation).

    References
    ----------
    Diana et al. (2021), Algorithm 1 and Fact 11.

    Examples
    --------
    >>> most_violated(np.array([0.2, 0.7, 0.5]), np.array([0.6, 1.3])).tolist()
    [1]
    >>> most_violated(np.array([0.2, 0.7, 0.5]), np.array([0.8, 1.0])).tolist()
    [1, 2]
    """
    order = np.argsort(-losses, kind="stable")
    excess = np.cumsum(losses[order])[: len(limits)] - limits
    worst = int(excess.argmax())
    return order[: worst + 1] if excess[worst] > 0 else order[:0]


def sums_of_largest(losses: Array) -> Array:
    """The largest loss, the sum of the two largest, and so on: ``P_1, ..., P_K``.

    Examples
    --------
    >>> sums_of_largest(np.array([0.25, 1.0, 0.5])).tolist()
    [1.0, 1.5, 1.75]
    """
    return np.asarray(np.cumsum(-np.sort(-losses)))


@dataclass(frozen=True)
class Level:
    """The proved slack of level j of a model.

    Attributes
    ----------
    total : float
        The sum of the j largest group losses.
    bound : float
        A lower bound on this sum over the models whose sums at earlier levels are not larger.
    rounds : int
        The number of solved masters, or of steps of the game.
    """

    total: float
    bound: float
    rounds: int

    @property
    def alpha(self) -> float:
        """The realised slack: a bound on the distance of the level from its optimum given earlier levels."""
        return max(self.total - self.bound, 0.0)


class Fit(NamedTuple):
    """A model of the class as methods see it.

    Attributes
    ----------
    losses : Array
        The mean loss in each group, shape ``(K,)``.
    moments : Array
        What the rows of a constraint look at, shape ``(q,)``; empty without one.
    parts : Any
        What the problem makes the decision of.
    """

    losses: Array
    moments: Array
    parts: Any


Responder = Callable[[Array, Array], Fit]
"""An oracle: the model of the least ``weights . losses + prices . moments``."""


@dataclass(frozen=True, eq=False)
class Multipliers:
    """A lower bound on level j, by Lagrange multipliers on sets of groups.

    With multipliers ``λ_C >= 0`` on the sets C of up to j groups, which sum to 1 over size j, every model
    with sums ``P_1, ..., P_{j-1}`` up to ``η_1, ..., η_{j-1}`` has
    ``P_j >= min_h sum_k w_k L_k(h) - sum_{r<j} Λ_r η_r``, where w_k sums the multipliers of the sets with k
    and Λ_r the sum over sets of size r: equation (4) of the paper with the index of (7) corrected.

    Attributes
    ----------
    prices : Array
        ``Λ_1, ..., Λ_{j-1}``.
    minimum : float
        The least weighted loss.
    """

    prices: Array
    minimum: float

    def bound(self, totals: Array) -> float:
        """The bound on ``P_j`` for models whose sums at the levels before are at most `totals`."""
        return self.minimum - float(self.prices @ totals[: len(self.prices)])

    @classmethod
    def of(cls, respond: Responder, weights: Array, prices: Array) -> Multipliers | None:
        """Find the least weighted loss for multipliers of which only the sums are known.

        Parameters
        ----------
        respond : Responder
            The oracle of the class of models.
        weights : Array
            Of the groups, shape ``(K,)``, not negative.
        prices : Array
            ``Λ_1, ..., Λ_j``.

        Returns
        -------
        Multipliers
            None if no set of size j has a multiplier. Weights that are too large for the prices (by a
            solver's rounding) are scaled down until they are consistent.
        """
        weights, prices = np.maximum(weights, 0.0), np.maximum(prices, 0.0)
        if prices[-1] <= 0.0:
            return None
        # Sets C with these prices exist if and only if the i largest weights never sum to more than this.
        most = np.minimum.outer(np.arange(1, len(weights) + 1), np.arange(1, len(prices) + 1)) @ prices
        largest = sums_of_largest(weights)
        positive = largest > 0
        scale = min(1.0, float((most[positive] / largest[positive]).min(initial=1.0)))
        weights = scale * weights / prices[-1]
        best = respond(weights, np.zeros(0))
        return cls(prices[:-1] / prices[-1], float(weights @ best.losses))


def prove(
    totals: Array, proofs: Sequence[Sequence[Multipliers]], rounds: Sequence[int], floor: float = 0.0
) -> tuple[Level, ...]:
    """Combine the proofs of all rounds for a model with sums `totals`.

    Parameters
    ----------
    totals : Array
        ``P_1, ..., P_K`` of the model.
    proofs : Sequence[Sequence[Multipliers]]
        For each level the multipliers found.
    rounds : Sequence[int]
        For each level.
    floor : float, default 0.0
        No sum is smaller: 0 for losses, minus infinity for estimates of them.
    """
    bounds = [max([floor, *(m.bound(totals) for m in found)]) for found in proofs]
    return tuple(Level(*level) for level in zip(map(float, totals), bounds, rounds, strict=False))


def check_delta(delta: float) -> None:
    """Refuse a chance of failure that is no probability between 0 and 1."""
    require(0 < delta < 1, "delta", delta, "be strictly between 0 and 1")


def records_needed(models: int, groups: int, levels: int, alpha: float, delta: float) -> int:
    """Records that each group needs, for slacks that hold on the sample to grow by at most `alpha`.

    With probability 1 - `delta` every model's error in every group is within
    ``beta = sqrt(ln(2 N K / delta) / (2 n))`` of that in the population (Hoeffding, and a union over N models
    and K groups; by linearity for mixtures, too). A model with slacks of at most a on the sample then has
    slacks of at most ``a + 2 levels beta`` in the population (Theorem 15; slacks that may depend on the
    model). Corollary 16 states the order for infinite classes, without a constant.

    Parameters
    ----------
    models : int
        N, in the class; losses are in [0, 1].
    groups : int
        K.
    levels : int
        That matter.
    alpha : float
        Positive.
    delta : float
        The probability of failure, strictly between 0 and 1.

    Returns
    -------
    int
        Of each group.

    Examples
    --------
    >>> records_needed(models=12, groups=3, levels=3, alpha=0.1, delta=0.05)
    13091
    """
    for name, count in (("models", models), ("groups", groups), ("levels", levels)):
        require(count >= 1, name, count, "be at least 1")
    require(alpha > 0, "alpha", alpha, "be positive")
    check_delta(delta)
    return ceil(2 * levels**2 * log(2 * models * groups / delta) / alpha**2)


def groups_of(**columns: Any) -> dict[str, Any]:
    """Read groups from columns; every value of every column is a group.

    Parameters
    ----------
    columns : Any
        One value a record each, such as ``race=..., sex=...``; records without one (``None``, ``NaN``) must
        be filled first.

    Returns
    -------
    dict[str, Any]
        The fields ``groups`` and ``names`` of a declaration; for a column of reports, ``channel``, too.

    Raises
    ------
    DeclarationError
        For series with the same index in another order, a missing value, and reports beside other columns.

    Examples
    --------
    >>> groups_of(sex=["f", "m", "f"], old=[0, 0, 1])
    {'groups': ((0, 2), (1,), (0, 1), (2,)), 'names': ('sex=f', 'sex=m', 'old=0', 'old=1')}
    """
    channel: dict[str, Any] = {}
    for column, values in columns.items():
        if isinstance(values, ObservedGroups):
            if len(columns) > 1:
                raise DeclarationError(f"{column} came through a channel; it must be the only column")
            channel, columns = {"channel": values.channel}, {column: values.reports}
    check_label_order("groups_of", columns)
    groups: list[tuple[int, ...]] = []
    names: list[str] = []
    for column, values in columns.items():
        codes, found = read_groups(values)
        groups += [tuple(np.flatnonzero(codes == a).tolist()) for a in range(len(found))]
        names += [f"{column}={name}" for name in found]
    return {"groups": tuple(groups), "names": tuple(names), **channel}


@dataclass(frozen=True, eq=False)
class GroupModel(PolicyFile):
    """A model and its loss in each group.

    Attributes
    ----------
    losses : Array
        The mean loss in each group, shape ``(K,)``.
    names : tuple[str, ...]
        Of the groups.
    levels : tuple[Level, ...], optional
        The proof of its method; empty if the method gives none.
    features : tuple[str, ...], optional
        The names of the features, in order: a frame to predict is aligned by them.
    """

    losses: Array
    names: tuple[str, ...] = field(repr=False)
    levels: tuple[Level, ...] = field(default=(), repr=False, kw_only=True)
    features: tuple[str, ...] = field(default=(), repr=False, kw_only=True)

    @property
    def sorted_losses(self) -> Array:
        """The group losses, largest first."""
        return np.asarray(-np.sort(-self.losses))

    @property
    def alphas(self) -> Array:
        """The realised slack of each level that the method reports."""
        return np.array([level.alpha for level in self.levels])

    def to_dict(self) -> dict[str, Any]:
        """Names and losses of the groups as plain data; subclasses add the parameters of the model."""
        known = {"features": list(self.features)} if self.features else {}
        return {"names": list(self.names), "losses": self.losses.tolist(), **known}

    def __repr__(self) -> str:
        width = max(len("group"), *map(len, self.names))
        lines = [f"{'group':{width}}    loss"]
        order = np.argsort(-self.losses.round(6), kind="stable")
        lines += [f"{self.names[k]:{width}}  {self.losses[k]:.4f}" for k in order]
        return "\n".join(lines)

    def plot(
        self,
        path: str | Path | None = None,
        *,
        label: str = "this model",
        others: dict[str, GroupModel] | None = None,
        ax: Any = None,
    ) -> Figure:
        """Draw the group losses from the largest to the smallest, beside the losses of other models.

        Parameters
        ----------
        path : str or Path, optional
            The file to save the picture to; its ending gives the format.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; a new figure if left out.
        label : str, default "this model"
            Of this model.
        others : dict[str, GroupModel], optional
            More models of the same groups, by label.
        """
        figure, axes = panel(ax, (6.0, 3.6))
        place = np.arange(1, len(self.losses) + 1)
        style: dict[str, Any] = {"drawstyle": "steps-mid"}
        for at, (name, model) in enumerate((others or {}).items(), 1):  # dashed and above: both stay visible
            style["marker"] = MARKERS[at % len(MARKERS)]
            axes.plot(place, model.sorted_losses, label=name, linestyle="dashed", zorder=3, **style)
        style["marker"] = MARKERS[0]
        axes.plot(place, self.sorted_losses, label=label, linewidth=3.0, zorder=2, **style)
        worst, *_, best = self.sorted_losses if len(place) > 1 else (self.sorted_losses[0],) * 2
        finding = f"The mean loss is {worst:.3g} in the worst group and {best:.3g} in the best"
        axes.set(xlabel="rank of the group", ylabel="mean loss in the group")
        titled(axes, finding)
        whole_ticks(axes.xaxis)
        axes.set_ylim(bottom=0.0)
        if others:
            axes.legend()
        return finished(figure, path)


def members_of(value: Any) -> Any:
    """The records of each group as nested lists."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [np.asarray(v).tolist() for v in value] if isinstance(value, Iterable) else value


class Lexifair(Problem):
    """The base of lexicographically fair learning: the largest group loss first, then the next.

    A group's loss is the (weighted) mean over its records, so that small groups weigh the same as large ones.

    Attributes
    ----------
    labels : Numbers
        Of the n records.
    groups : tuple[tuple[int, ...], ...]
        For each of the K groups its records, counted from 0; groups may overlap. Or
        ``channel.observe(reports)``, which sets `channel`.
    names : tuple[str, ...], optional
        Of the groups; ``"0"``, ``"1"``, ... by default.
    levels : int, optional
        The number ℓ of the largest losses that matter; all K by default.
    weights : Numbers, optional
        Of the records in the means, at least 0, positive in every group; 1 each by default.
    channel : RandomizedResponse, optional
        The channel that the true groups came through, if `groups` are those that the records report, see
        `groups_of`: then the losses are unbiased estimates of those of the true groups.
    """

    family: ClassVar[str] = "lexifair"
    default_method: ClassVar[str] = "column-generation"
    refuses_channel: ClassVar[str] = ""

    labels: Numbers
    groups: Annotated[tuple[tuple[int, ...], ...], BeforeValidator(members_of)]
    names: tuple[Name, ...] = Field(default=(), kw_only=True)
    levels: Annotated[int, Field(ge=1)] | None = Field(default=None, kw_only=True)
    weights: Numbers | None = Field(default=None, kw_only=True)
    channel: RandomizedResponse | None = Field(default=None, kw_only=True)

    @model_validator(mode="before")
    @classmethod
    def _groups_may_say_the_channel(cls, data: Any) -> Any:
        seen = isinstance(data, dict) and isinstance(data.get("groups"), ObservedGroups)
        if seen and not cls.refuses_channel:
            data = {**data, **groups_of(report=data["groups"])}
        return data

    @model_validator(mode="after")
    def _has_groups(self) -> Self:
        require(self.labels.ndim == 1, "labels: the shape", self.labels.shape, "be one column")
        n, count = len(self.labels), len(self.groups)
        if count == 0:
            raise DeclarationError("groups is empty; at least one group is needed")
        for k, members in enumerate(self.groups):
            if not members:
                raise DeclarationError(f"groups[{k}] is empty; every group must have a record")
            wrong = [i for i in members if not 0 <= i < n]
            if wrong:
                raise DeclarationError(f"groups[{k}] has record {wrong[0]}; records are 0 to {n - 1}")
            if len(set(members)) < len(members):
                raise DeclarationError(f"groups[{k}] names a record twice")
        if self.names and len(self.names) != count:
            raise DeclarationError(f"names: {len(self.names)} are given for the {count} groups")
        if len(set(self.names)) < len(self.names):
            raise DeclarationError(f"names: {', '.join(self.names)} are not all different")
        if self.levels is not None and self.levels > count:
            raise DeclarationError(f"levels is {self.levels}; there are only {count} groups")
        if self.weights is not None:
            check_shape(self.weights, (n,), "weights")
            check_entries(self.weights, self.weights < 0, "weights", "it must not be negative")
            for k, members in enumerate(self.groups):
                if not self.weights[list(members)].any():
                    raise DeclarationError(f"weights: all records of groups[{k}] have weight 0")
        inside = len(set().union(*self.groups))
        if self.channel is not None:
            if inside < sum(map(len, self.groups)):
                raise DeclarationError("channel: a record is in two groups; it must report one")
            mass = self.shares @ self.record_weights
            if mass.min() <= 0:
                k = int(mass.argmin())
                raise DeclarationError(
                    f"groups: through the channel the estimated number of records of {self.group_names[k]!r} "
                    f"is {mass[k]:.4g}; it must be positive: too few records for this epsilon"
                )
        if inside < n:
            message = f"{n - inside} of {n} records are in no group and count in the overall loss alone"
            warnings.warn(message, UserWarning, stacklevel=2)
        return self

    @property
    def group_names(self) -> tuple[str, ...]:
        """The names of the groups, given or not."""
        return self.names or tuple(map(str, range(len(self.groups))))

    @property
    def level_count(self) -> int:
        """The number ℓ of levels that matter."""
        return self.levels or len(self.groups)

    @cached_property
    def shares(self) -> sp.csr_array:
        """How much each record counts to each group, shape ``(K, n)``: 0 or 1, unless through a channel."""
        sizes = [len(g) for g in self.groups]
        place = (np.repeat(np.arange(len(sizes)), sizes), np.concatenate(self.groups).astype(np.intp))
        member = sp.csr_array((np.ones(sum(sizes)), place), shape=(len(sizes), len(self.labels)))
        if self.channel is None or len(sizes) < 2:
            return member
        return sp.csr_array(self.channel.inverse(len(sizes)) @ member)

    @cached_property
    def averages(self) -> sp.csr_array:
        """Turns a value for each record into each group's mean, or an estimate of it; shape ``(K, n)``."""
        weighted = sp.csr_array(self.shares.multiply(self.record_weights))
        return sp.csr_array(sp.diags_array(1.0 / weighted.sum(axis=1)) @ weighted)

    @cached_property
    def record_weights(self) -> Array:
        """The weight of each record, with mean 1; shape ``(n,)``."""
        weights = np.ones(len(self.labels)) if self.weights is None else self.weights / self.weights.max()
        return np.asarray(weights / weights.mean())

    @property
    def is_convex(self) -> bool:
        """Whether a mixture of models can be replaced by a model that loses no more in any group."""
        return True

    @property
    def floor(self) -> float:
        """No group loss is smaller: 0, unless it is estimated through a channel."""
        return 0.0 if self.channel is None else -np.inf

    @property
    def exact(self) -> bool:
        """Whether `best_response` finds a minimum, so that multipliers prove bounds."""
        return True

    @property
    def is_linear(self) -> bool:
        """Whether group losses are linear in the model."""
        return True

    @property
    def loss_unit(self) -> float:
        """The loss that formulations count as 1, since solvers' tolerances are absolute."""
        return 1.0

    # -- models of this family -------------------------------------------------------------------------------

    @abstractmethod
    def group_losses(self, decision: Any) -> Array:
        """The mean loss in each group, shape ``(K,)``."""

    @abstractmethod
    def misfit(self, decision: Any) -> dict[str, float]:
        """The violation of membership in the class."""

    @abstractmethod
    def overall_loss(self, decision: Any) -> float:
        """The mean loss over all records, in a group or not."""

    @abstractmethod
    def responder(self, deadline: Deadline | None = None) -> Responder:
        """An oracle for one run; weights are not negative. It may remember, and time out."""

    @abstractmethod
    def blend(self, fits: Sequence[Fit], probabilities: Array) -> Fit:
        """A model that loses in no group more than the mixture of `fits`."""

    @abstractmethod
    def decide(self, fit: Fit) -> Any:
        """The decision."""

    @abstractmethod
    def fit_of(self, decision: Any) -> Fit:
        """The inverse of `decide`."""

    def best_response(self, weights: Array) -> Any:
        """The model with the least weighted sum of group losses; weights not negative, shape ``(K,)``."""
        return self.decide(self.responder()(np.asarray(weights, dtype=float), np.zeros(0)))

    def start(self) -> list[Fit]:
        """Models that no oracle needs to find."""
        return []

    def rows(self, moments: Expression) -> list[Constraint]:
        """The rows of a constraint over `Fit.moments`, which are an expression."""
        return []

    @abstractmethod
    def write(self, model: Model) -> tuple[Expression, Any, dict[str, Any]]:
        """Write the class of models: gives the group losses, how to read the decision, and the parts."""

    def check_randomized(self, method: str) -> None:
        """Refuse a method that needs a convex class of models, where this one is not.

        Raises
        ------
        DeclarationError
            Naming the methods for other classes.
        """

    def _solve_model(
        self, method: Method, own: Mapping[str, Any], common: dict[str, Any], deadline: Deadline
    ) -> Solution:
        """Solve a formulation; column generation finishes a proof that the backend leaves open.

        Once a level is held at its optimum, the program of the next one has no interior point. Conic solvers
        end short of their tolerance, or claim an optimum although a level is off, so that their optima of
        losses that are not linear are proved as well.
        """
        solution = super()._solve_model(method, own, common, deadline)
        claimed = solution.status is Status.OPTIMAL and not self.is_linear
        if not (claimed or solution.status is Status.FEASIBLE) or not (self.is_convex and self.exact):
            return solution
        if deadline.passed:
            if claimed:
                solution.status = Status.FEASIBLE
                solution.message += f"; {deadline.end} before the levels were proved"
            return solution
        from forcopt.models.lexifair.formulations import finish

        outcome = finish(self, solution.decision, deadline)
        found = self.evaluate(outcome.decision)
        solution.bound = outcome.bound or 0.0  # proved, unlike the bound of a conic solver
        solution.seconds = deadline.seconds
        if outcome.status is Status.OPTIMAL:
            solution.decision, solution.evaluation, solution.status = outcome.decision, found, Status.OPTIMAL
            solution.message += "; column generation on highs finished and proved the levels"
        else:
            solution.status = Status.FEASIBLE
            solution.message += f"; column generation on highs: {outcome.message}"
        return solution

    # -- evaluation ----------------------------------------------------------------------------------------

    def evaluate(self, decision: Any) -> Evaluation:
        """Evaluate a model by its group losses.

        Parameters
        ----------
        decision : Any
            A model of this problem, or its plain parameters.

        Returns
        -------
        Evaluation
            As objective the largest group loss; as metrics the sorted losses ("level 1", ...), each group's
            and the overall loss; violations if it is no model of the class.
        """
        losses = self.group_losses(decision)
        ordered = -np.sort(-losses)
        metrics = {f"level {j}": float(v) for j, v in enumerate(ordered[: self.level_count], 1)}
        metrics |= {f"loss of {g}": float(v) for g, v in zip(self.group_names, losses, strict=True)}
        metrics["overall loss"] = self.overall_loss(decision)
        broken = {k: v for k, v in self.misfit(decision).items() if v > FEASIBILITY_TOLERANCE}
        return Evaluation(float(ordered[0]), broken, metrics)

    def audit(self, decision: Any, backend: str = "highs") -> tuple[Level, ...]:
        """Bound the distance of any model from lexicographic fairness.

        For each level j the least sum of j losses is found among the models that have no larger sums at the
        levels before than this one: the model is (ℓ, α)-convex lexicographically fair with the constant
        slacks `Level.alpha`. (The signed, model-dependent slacks of Definition 5 as printed would let any
        approximate minimax model pass.) By linear programs whose columns are models. If the oracle of the
        class is not exact, the bounds are as if it were.

        Parameters
        ----------
        decision : Any
            A model of this problem.
        backend : str, default "highs"
            Solves the linear programs.
        """
        from forcopt.models.lexifair.formulations import audit

        return audit(self, decision, backend)
