"""Post-processing of scores: randomised thresholds, on the convex hulls of the groups' ROC curves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from pydantic import BeforeValidator, Field, model_validator

from forcopt.arrays import Array
from forcopt.declaration import Integers, Name, Numbers
from forcopt.errors import DeclarationError
from forcopt.fairness import CostTable, GroupRates, Notion, read_binary, read_groups
from forcopt.language.model import Model
from forcopt.learning.thresholds import middles
from forcopt.models.fair_postprocessing.decision import RandomizedThresholds
from forcopt.models.fair_postprocessing.problem import Postprocessing, check_declared
from forcopt.privacy import ObservedGroups, PrivacyBudget, RandomizedResponse
from forcopt.problem import Evaluation, Handles


@dataclass(frozen=True, eq=False)
class RocHull:
    """The vertices of the hull of a ROC curve, from "nobody" on, below the curve and back above it.

    Attributes
    ----------
    thresholds : Array
        For each of the v vertices, the score from which on 1 is predicted, see `middles`; infinite for
        nobody, minus infinite for everybody. Shape ``(v,)``.
    positives : Array
        The mass with label 0 and with label 1 that is predicted 1, shape ``(v, 2)``.
    """

    thresholds: Array
    positives: Array


def roc_hull(scores: Array, labels: Array, weights: Array) -> RocHull:
    """Find the vertices of the convex hull of a ROC curve.

    Parameters
    ----------
    scores : Array
        Of the records of one group, shape ``(n,)``.
    labels : Array
        0 or 1, shape ``(n,)``.
    weights : Array
        At least 0, shape ``(n,)``.

    Returns
    -------
    RocHull
        A mixture of thresholds reaches a pair of rates if and only if the pair is a mixture of vertices.

    Notes
    -----
    O(n log n): the points of a ROC curve rise in both coordinates, so that one pass of Andrew's monotone
    chain after the sort gives either side of the hull.

    References
    ----------
    Provost and Fawcett (2001): Robust classification for imprecise environments; Hardt, Price and Srebro
    (2016), section 4.2.

    Examples
    --------
    >>> hull = roc_hull(np.array([4, 3, 2, 1]), np.array([1, 0, 1, 0]), np.ones(4))
    >>> hull.thresholds.tolist()
    [inf, -inf, 1.5, 3.5]
    >>> hull.positives.tolist()
    [[0.0, 0.0], [2.0, 2.0], [1.0, 2.0], [0.0, 1.0]]
    """
    values, place = np.unique(-scores, return_inverse=True)  # from the largest score down
    mass = np.stack([np.bincount(place, weights * (labels == y), len(values)) for y in (0, 1)], axis=1)
    points = np.vstack([np.zeros((1, 2)), np.cumsum(mass, axis=0)])
    thresholds = np.concatenate([[np.inf], middles(-values[::-1])[::-1], [-np.inf]])
    lower, upper = _chain(points, 1.0), _chain(points, -1.0)
    around = lower + [k for k in reversed(upper) if k not in set(lower)]
    return RocHull(thresholds[around], points[around])


def _chain(points: Array, side: float) -> list[int]:
    """The vertices on one side of the hull of points that rise in both coordinates, from first to last."""
    x, y = points[:, 0].tolist(), points[:, 1].tolist()
    chain: list[int] = []
    for k in range(len(x)):
        if chain and x[k] == x[chain[-1]] and y[k] == y[chain[-1]]:
            continue
        while len(chain) >= 2:
            i, j = chain[-2], chain[-1]
            turn = (x[j] - x[i]) * (y[k] - y[i]) - (y[j] - y[i]) * (x[k] - x[i])
            if side * turn > 0:
                break
            chain.pop()
        chain.append(k)
    return chain


def _names(values: Any) -> tuple[str, ...]:
    codes, names = read_groups(values)
    return tuple(names[c] for c in codes.tolist())


class ScorePostprocessing(Postprocessing):
    """Choose randomised thresholds on a score for each group, for the least error that is fair.

    A record of group `a` is predicted 1 if its score is at least a threshold that is drawn by a law of the
    group; thresholds lie midway between neighbouring scores, see `middles`. Error and rates of a group depend
    on that law by two numbers alone, false and true positive rate, and these range over the convex hull of
    the group's ROC curve: the problem is a linear program over the hulls' vertices.

    Attributes
    ----------
    scores : Numbers
        Of the n records, shape ``(n,)``; the higher, the likelier is label 1.
    labels : Integers
        0 or 1 for each record.
    groups : tuple[str, ...]
        The group of each record.
    constraint : Notion
        The fairness notion, over groups; notions combine with ``&``.
    weights : Numbers, optional
        Of the records, at least 0; 1 each by default.
    privacy : PrivacyBudget, optional
        Let the decision be private in the groups of the records (not in scores and labels), such as
        ``PrivacyBudget(epsilon=1.0)``.
    names : tuple[str, ...], optional
        The names of all groups, also of groups without records; those that occur by default. With `privacy`
        they must be given: which groups occur is private.
    costs : CostTable, optional
        The cost of each prediction for each label, shape ``(2, 2)``, indexed ``[label, prediction]``, see
        `cost_table`; the least mean cost is then sought in place of the least error. There is no `privacy`.
    channel : RandomizedResponse, optional
        The channel of the groups, if they are reports; set by ``groups=channel.observe(reports)``. The
        thresholds are then by report, and the rates are estimates of those of the true groups. The score must
        not depend on the reports.

    Raises
    ------
    DeclarationError
        For columns of different length, labels other than 0 and 1, a missing group, negative weights, a
        group without the records over which a rate of `constraint` is taken (not with `privacy`: the refusal
        would reveal it), a constraint on single records, and for `privacy` without `names`.

    Notes
    -----
    Exact among all randomised thresholds of the form "score at least t". Thresholds in the other direction,
    for a score that misleads in a group, are not used.

    References
    ----------
    Hardt, Price and Srebro (2016): Equality of opportunity in supervised learning, section 4.2.

    Examples
    --------
    >>> from forcopt.fairness import EqualizedOdds
    >>> from forcopt.models import ScorePostprocessing
    >>> p = ScorePostprocessing(scores=[1, 2, 3, 4, 1, 2, 3, 4], labels=[0, 0, 1, 1, 0, 1, 0, 1],
    ...     groups=["a"] * 4 + ["b"] * 4, constraint=EqualizedOdds())
    >>> s = p.solve()
    >>> round(s.objective, 6)
    0.25
    """

    _held: ClassVar[str] = "thresholds look at scores and groups"
    refuses_channel: ClassVar[str] = ""

    scores: Numbers
    labels: Annotated[Integers, BeforeValidator(lambda v: read_binary(v, "the array"))]
    groups: Annotated[tuple[str, ...], BeforeValidator(_names)]
    constraint: Notion
    weights: Numbers | None = None
    privacy: PrivacyBudget | None = None
    names: tuple[Name, ...] = Field(default=(), kw_only=True)
    costs: CostTable | None = Field(default=None, kw_only=True)
    channel: RandomizedResponse | None = Field(default=None, kw_only=True)

    @model_validator(mode="before")
    @classmethod
    def _groups_may_say_the_channel(cls, data: Any) -> Any:
        seen = data.get("groups")
        if not isinstance(seen, ObservedGroups):
            return data
        return {**data, "groups": seen.reports, "channel": seen.channel}

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        self._check(privacy=self.privacy)
        if self.scores.ndim != 1 or not len(self.scores):
            raise DeclarationError(f"scores: the shape is {self.scores.shape}; it must be (n,), n at least 1")
        n = len(self.scores)
        for name in ("labels", "groups", "weights"):
            column = getattr(self, name)
            if column is not None and (len(column) != n or np.ndim(column) != 1):
                raise DeclarationError(f"{name} has {len(column)} entries; scores has {n}")
        if self.weights is not None and (self.weights.min() < 0 or self.weights.sum() <= 0):
            raise DeclarationError("weights: they must not be negative, and not all be 0")
        if self.privacy is not None and (self.privacy.delta or self.privacy.floor is not None):
            raise DeclarationError("privacy: Laplace noise on a histogram needs no delta and no floor")
        check_declared(self.names, self.privacy)
        if len(set(self.names)) < len(self.names):
            raise DeclarationError(f"names: {', '.join(self.names)} are not all different")
        if self.channel is not None and (self.mass < 0).any():
            a, y = (int(i) for i in np.argwhere(self.mass < 0)[0])
            raise DeclarationError(
                f"groups: seen through the channel, the estimated number of records of group "
                f"{self.group_names[a]!r} with label {y} is {self.mass[a, y]:.4g}; it must not be negative"
            )
        for rate, rates in self.constraint.demands(self.rates(np.zeros_like(self.mass))):
            if self.privacy is None:
                rates.rate(rate)
        return self

    def choose_method(self) -> str:
        """Choose ``dp-thresholds`` if there is `privacy`, else ``lp``."""
        return "lp" if self.privacy is None else "dp-thresholds"

    @cached_property
    def _read(self) -> tuple[Array, tuple[str, ...]]:
        return read_groups(list(self.groups), self.names or None)

    @property
    def group_names(self) -> tuple[str, ...]:
        """The names of the K groups: `names`, or those that occur, sorted."""
        return self._read[1]

    @cached_property
    def record_weights(self) -> Array:
        """The weight of each record, with sum n; shape ``(n,)``."""
        weights = np.ones(len(self.scores)) if self.weights is None else self.weights
        return np.asarray(weights * (len(weights) / weights.sum()))

    @cached_property
    def mass(self) -> Array:
        """The weight of each group and label, shape ``(K, 2)``; an estimate if there is a channel."""
        cells = self._read[0] * 2 + self.labels
        found = np.bincount(cells, self.record_weights, 2 * len(self.group_names)).reshape(-1, 2)
        return found if self.channel is None else self.channel.debias(found, axis=0)

    @cached_property
    def transition(self) -> Array:
        """The probability of each report (rows) in each true group, shape ``(K, K)``."""
        count = len(self.group_names)
        return np.eye(count) if self.channel is None else self.channel.transition(count)

    @cached_property
    def columns(self) -> tuple[tuple[Array, ...], sp.csr_array]:
        """For each group or report its thresholds, and what each adds to the cells ``(2 K,)`` predicted 1.

        The thresholds are the vertices of the group's ROC hull. With a channel they are all cuts of the
        score, as a law by report moves the rates of all true groups.
        """
        count = len(self.group_names)
        if self.channel is None:
            cuts = tuple(hull.thresholds for hull in self.hulls)
            return cuts, sp.csr_array(sp.block_diag([hull.positives.T for hull in self.hulls]))
        values, place = np.unique(-self.scores, return_inverse=True)  # from the largest score down
        cells = (place * count + self._read[0]) * 2 + self.labels
        reported = np.bincount(cells, self.record_weights, len(values) * count * 2).reshape(-1, count, 2)
        above = np.concatenate([np.zeros((1, count, 2)), np.cumsum(reported, axis=0)])
        true = self.channel.debias(above, axis=1)
        cut = np.concatenate([[np.inf], middles(-values[::-1])[::-1], [-np.inf]])
        parts = [(true * self.transition[z][:, None]).reshape(len(cut), -1).T for z in range(count)]
        return (cut,) * count, sp.csr_array(np.hstack(parts))

    def rates(self, positives: Any) -> GroupRates:
        """The rates of each group, if so much of each group and label is predicted 1; shape ``(K, 2)``."""
        counted = self.weights is None and self.privacy is None and self.channel is None
        return GroupRates(positives, self.mass, self.group_names, counted=counted)

    @cached_property
    def hulls(self) -> tuple[RocHull, ...]:
        """The hull of the ROC curve of each group."""
        codes = self._read[0]
        return tuple(
            roc_hull(self.scores[codes == a], self.labels[codes == a], self.record_weights[codes == a])
            for a in range(len(self.group_names))
        )

    def evaluate(self, decision: RandomizedThresholds) -> Evaluation:
        """Evaluate thresholds on the records.

        Parameters
        ----------
        decision : RandomizedThresholds
            For the same groups.

        Returns
        -------
        Evaluation
            The error; violations of each demand; as metrics the disparities and the rates of each group. A
            rate for which a group has no records, as may be with `privacy`, is a violation of 1.
        """
        if not isinstance(decision, RandomizedThresholds):
            raise DeclarationError(f"the decision is {decision!r}; it must be RandomizedThresholds")
        if decision.channel != self.channel:
            raise DeclarationError(f"the decision is for groups seen through {decision.channel}")
        count = len(self.group_names)
        inverse = np.eye(count) if self.channel is None else self.channel.inverse(count)
        own = read_groups(list(self.group_names), decision.groups)[0].tolist()
        laws = np.array([decision.law(z, self.scores) for z in own])
        each = inverse[:, self._read[0]] * (self.transition.T @ laws) * self.record_weights
        rates = self.rates(each @ np.eye(2)[self.labels])
        return self._judged(float(rates.overall(self.loss)), rates)


@ScorePostprocessing.formulation("lp", exact=True, cites="Hardt, Price and Srebro (2016), section 4.2")
def lp(problem: ScorePostprocessing, model: Model) -> Handles:
    """Linear program: for each group a mixture of the vertices of its ROC hull.

    Returns
    -------
    Handles
        ``mixture``, shape ``(v,)``, the vertices of all groups one after the other; ``rates``, the
        `GroupRates` as expressions; ``error``; ``fairness``, the constraints of the notion.
    """
    (cuts, cells), count = problem.columns, len(problem.group_names)
    sizes = [len(own) for own in cuts]
    group = np.repeat(np.arange(count), sizes)
    ends = np.cumsum([0, *sizes])
    mixture = model.variable(model.unused_name("mixture"), len(group), lower=0.0, upper=1.0)
    one = sp.csr_array((np.ones(len(group)), (group, np.arange(len(group)))), shape=(count, len(group)))
    model.subject_to(one @ mixture == 1, name=model.unused_name("one_policy"))
    rates = problem.rates((cells @ mixture).reshape((count, 2)))
    fairness = problem.constraint.rows(rates)
    model.subject_to(fairness)
    error = rates.overall(problem.loss)

    def decision(solution: Any) -> RandomizedThresholds:
        found = np.maximum(solution[mixture], 0.0)
        parts = [found[i:j] / found[i:j].sum() for i, j in pairwise(ends.tolist())]
        kept = [np.flatnonzero(part) for part in parts]
        found, law = (tuple(own[k] for own, k in zip(values, kept, strict=True)) for values in (cuts, parts))
        return RandomizedThresholds(problem.group_names, found, law, problem.channel)

    def start(decision: RandomizedThresholds) -> dict[Any, Array]:
        values = np.zeros(len(group))
        for a, own in enumerate(cuts):
            known = np.sort(problem.scores[(problem._read[0] == a) | (problem.channel is not None)])
            place = {below: k for k, below in enumerate(np.searchsorted(known, own).tolist())}
            belows = np.searchsorted(known, decision.thresholds[a]).tolist()
            for below, t, w in zip(belows, decision.thresholds[a], decision.weights[a], strict=True):
                if w > 0 and below not in place:
                    named = f"group {problem.group_names[a]!r}: the threshold {t:g}"
                    raise DeclarationError(f"{named} is no vertex of its ROC hull")
                values[ends[a] + place.get(below, 0)] += w
        return {mixture: values}

    parts: dict[str, Any] = {"mixture": mixture, "rates": rates, "error": error, "fairness": fairness}
    return Handles(error, decision, start, **parts)
