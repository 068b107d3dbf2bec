"""The decisions: laws of the new class given predicted class and group, or thresholds for each group."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from forcopt.arrays import Array, FrozenArrays, Seed, as_numbers, check_label_order
from forcopt.errors import DeclarationError, require_shape
from forcopt.fairness.records import read_binary, read_groups, same_length
from forcopt.learning.files import PolicyFile, numbers_from_plain
from forcopt.learning.fitted import plain_numbers
from forcopt.learning.tolerances import EXACT_SUM, NEGLIGIBLE, SUM
from forcopt.privacy import ObservedGroups, RandomizedResponse
from forcopt.problem.drawing import COLOURS, MARKERS, Drawn, titled


def codes_of(groups: Any, known: tuple[str, ...], channel: RandomizedResponse | None) -> Array:
    """The position of each record's group among the known ones; of a report, if there is a channel.

    Raises
    ------
    DeclarationError
        For an unknown group, true groups where reports are needed, or reports where true groups are.
    """
    if isinstance(groups, ObservedGroups):
        if groups.channel != channel:
            raise DeclarationError(f"the groups came through {groups.channel}, not through {channel}")
        groups = groups.reports
    elif channel is not None:
        ways = "reports (pass channel.observe(groups)) or true ones (take for_true_groups() to predict)"
        raise DeclarationError(f"these groups may be {ways}: reports sent through twice would be less fair")
    return read_groups(groups, known)[0]


@dataclass(frozen=True, eq=False)
class RandomizedPostprocessor(FrozenArrays, PolicyFile, Drawn):
    """Predicts 1 with a probability that depends on the base prediction and the group.

    Attributes
    ----------
    probabilities : Array
        Of predicting 1, indexed ``[prediction, group]``; shape ``(2, K)``.
    groups : tuple[str, ...]
        Their names.
    base_rates : Array
        False positive and true positive rate of the base predictions in each (true) group; shape ``(2, K)``,
        NaN where undefined.
    channel : RandomizedResponse, optional
        If the groups are reports, their channel.

    Examples
    --------
    >>> import forcopt as fo
    >>> d = fo.load("postprocessing/two-groups").solve().decision
    >>> d.groups, d.probabilities.round(3).tolist()
    (('a', 'b'), [[0.188, 0.0], [1.0, 0.922]])
    """

    probabilities: Array
    groups: tuple[str, ...]
    base_rates: Array = field(repr=False)
    channel: RandomizedResponse | None = None

    @property
    def rates(self) -> Array:
        """False positive and true positive rate of each (true) group after it; shape ``(2, K)``."""
        if_zero, if_one = self.for_true_groups().probabilities
        return np.asarray((1.0 - self.base_rates) * if_zero + self.base_rates * if_one)

    def for_true_groups(self) -> RandomizedPostprocessor:
        """The post-processor for those whose true group is known, with the same law of predictions.

        Without a channel it is this one. With one, a person of group a is treated as the reports of such
        people are on average.
        """
        if self.channel is None:
            return self
        mixed = self.probabilities @ self.channel.transition(len(self.groups))
        return RandomizedPostprocessor(mixed, self.groups, self.base_rates)

    def predict(self, predictions: Any, groups: Any, seed: Seed = None) -> Array:
        """Draw a prediction for each record.

        Parameters
        ----------
        predictions : Any
            Base predictions, 0 or 1 for each record.
        groups : Any
            The group of each record, among `groups`; with a channel ``channel.observe(reports)``.
        seed : int or numpy.random.Generator, optional
            An int or a generator; the same int gives the same draws.

        Returns
        -------
        Array
            0 or 1 for each record, int64 of shape ``(n,)``.

        Raises
        ------
        DeclarationError
            For a group that is not among `groups`, and for true groups where reports are needed or reports
            where true groups are.
        """
        chance = self.probability(predictions, groups)
        return np.asarray(np.random.default_rng(seed).random(len(chance)) < chance, dtype=np.int64)

    def probability(self, predictions: Any, groups: Any) -> Array:
        """The probability that each record is predicted 1, shape ``(n,)``; takes the same as `predict`."""
        check_label_order("predict", {"predictions": predictions, "groups": groups})
        base, codes = read_binary(predictions, "predictions"), self.codes(groups)
        same_length(predictions=base, groups=codes)
        return np.asarray(self.probabilities[base, codes])

    @property
    def uses_groups(self) -> bool:
        """Whether two groups differ in their law."""
        return bool(np.ptp(self.probabilities, axis=1).any())

    def codes(self, groups: Any) -> Array:
        """The position in `groups` of each record's group, shape ``(n,)``; see `predict`.

        Raises
        ------
        DeclarationError
            See `predict`.
        """
        return codes_of(groups, self.groups, self.channel)

    def to_dict(self) -> dict[str, Any]:
        """Probabilities, groups, base rates and channel as plain data; undefined rates are None."""
        channel = None if self.channel is None else self.channel.to_dict()
        known = {"probabilities": self.probabilities.tolist(), "groups": list(self.groups)}
        return {**known, "base_rates": plain_numbers(self.base_rates), "channel": channel}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The post-processor of plain data.

        Raises
        ------
        DeclarationError
            For probabilities outside [0, 1] or of another shape.
        """
        probabilities, base = (numbers_from_plain(data[name]) for name in ("probabilities", "base_rates"))
        groups = tuple(map(str, data["groups"]))
        if probabilities.shape != (2, len(groups)) or base.shape != probabilities.shape:
            shapes = f"probabilities has shape {probabilities.shape} and base_rates {base.shape}"
            raise DeclarationError(f"{shapes}; both must be (2, {len(groups)})")
        if not ((probabilities >= 0) & (probabilities <= 1)).all():
            raise DeclarationError(f"probabilities holds {probabilities.tolist()}; they must be from 0 to 1")
        channel = data["channel"]
        seen = None if channel is None else RandomizedResponse.from_dict(channel)
        return cls(probabilities, groups, base, seen)

    def __repr__(self) -> str:
        width = max(len("group"), *map(len, self.groups))
        lines = ["probability of predicting 1 after", f"{'group':{width}}  prediction 0  prediction 1"]
        for name, (if_zero, if_one) in zip(self.groups, self.probabilities.T, strict=True):
            lines.append(f"{name:{width}}  {if_zero:12.4f}  {if_one:12.4f}")
        return "\n".join(lines)

    _figure_size = (5.0, 5.0)

    def _draw(self, axes: Any) -> None:
        """Draw each group's rates before (hollow) and after (filled), within all that it could reach."""
        axes.plot([0, 1], [0, 1], color="0.8", linewidth=1, zorder=0)
        for a, name in enumerate(self.groups):
            base, after = self.base_rates[:, a], self.rates[:, a]
            reachable = np.array([[0.0, 0.0], base, [1.0, 1.0], 1.0 - base])
            color, marker = COLOURS[a % len(COLOURS)], MARKERS[a % len(MARKERS)]
            axes.fill(*reachable.T, facecolor=color, edgecolor=color, alpha=0.12)
            axes.plot(*base, marker=marker, linestyle="", color=color, markerfacecolor="white")
            axes.plot(*after, marker=marker, linestyle="", color=color, label=name)
        after, before = (np.ptp(r, axis=1).max() for r in (self.rates, self.base_rates))
        titled(axes, f"The groups' rates differ by {after:.3f}, before by {before:.3f}")
        axes.set(xlabel="false positive rate", ylabel="true positive rate")
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        axes.legend(loc="lower right")


@dataclass(frozen=True, eq=False)
class RandomizedRemix(FrozenArrays, PolicyFile):
    """Draws a class by the predicted class and the group of a record.

    Attributes
    ----------
    probabilities : Array
        Indexed ``[predicted class, group, class]``; shape ``(C, K, C)``, the last axis sums to 1.
    classes : tuple[str, ...]
        The names of the C classes.
    groups : tuple[str, ...]
        The names of the K groups.
    channel : RandomizedResponse, optional
        If the groups are reports, their channel.

    Raises
    ------
    DeclarationError
        For another shape, or numbers that are no probabilities.
    """

    probabilities: Array
    classes: tuple[str, ...]
    groups: tuple[str, ...]
    channel: RandomizedResponse | None = None

    def __post_init__(self) -> None:
        p, count = as_numbers(self.probabilities, "probabilities"), len(self.classes)
        shape = count, len(self.groups), count
        require_shape(p.shape == shape, "probabilities has", p, f"be {shape}")
        if p.min() < -SUM or np.abs(p.sum(axis=2) - 1.0).max() > SUM:
            raise DeclarationError("probabilities: the last axis holds numbers that are no probabilities")
        exact, total = np.maximum(p, 0.0), np.maximum(p, 0.0).sum(axis=2, keepdims=True)
        exact = np.where(np.abs(total - 1.0) > EXACT_SUM, exact / total, exact)
        object.__setattr__(self, "probabilities", exact)
        super().__post_init__()

    def probability(self, predictions: Any, groups: Any) -> Array:
        """The probability of each class for each record, shape ``(n, C)``.

        Parameters
        ----------
        predictions : array_like
            The predicted class of each record, among `classes`.
        groups : array_like
            The group of each record, among `groups`; with a channel ``channel.observe(reports)``.
        """
        check_label_order("probability", {"predictions": predictions, "groups": groups})
        predicted, _ = read_groups(predictions, self.classes)
        codes = codes_of(groups, self.groups, self.channel)
        same_length(predictions=predicted, groups=codes)
        return np.asarray(self.probabilities[predicted, codes])

    @property
    def uses_groups(self) -> bool:
        """Whether two groups differ in their law."""
        return bool(np.ptp(self.probabilities, axis=1).any())

    def predict(self, predictions: Any, groups: Any, seed: Seed = None) -> Array:
        """Draw the position of a class for each record; the same int gives the same draws."""
        ends = np.cumsum(self.probability(predictions, groups), axis=1)
        drawn = np.random.default_rng(seed).random(len(ends))[:, None] * ends[:, -1:]
        return np.asarray((drawn >= ends).sum(axis=1), dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Probabilities, classes and groups as plain data."""
        known = {"classes": list(self.classes), "groups": list(self.groups)}
        return {"probabilities": self.probabilities.tolist(), **known, **_plain(self.channel)}

    def for_true_groups(self) -> RandomizedRemix:
        """The same for those whose true group is known, see `RandomizedPostprocessor.for_true_groups`."""
        if self.channel is None:
            return self
        mixed = np.einsum("hzc,za->hac", self.probabilities, self.channel.transition(len(self.groups)))
        return RandomizedRemix(mixed, self.classes, self.groups)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The policy of plain data."""
        probabilities = numbers_from_plain(data["probabilities"])
        names = tuple(map(str, data["classes"])), tuple(map(str, data["groups"]))
        return cls(probabilities, *names, _channel(data))

    def __repr__(self) -> str:
        width = max(len("group"), *map(len, self.groups))
        wide = max(len("predicted"), *map(len, self.classes))
        lines = [f"{'group':{width}}  {'predicted':{wide}}  probability of " + ", ".join(self.classes)]
        for a, group in enumerate(self.groups):
            for h, name in enumerate(self.classes):
                chances = "  ".join(f"{v:.4f}" for v in self.probabilities[h, a])
                lines.append(f"{group:{width}}  {name:{wide}}  {chances}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class RandomizedThresholds(PolicyFile, Drawn):
    """Draws a threshold by the group of a record, and predicts 1 if the record's score is at least that.

    Attributes
    ----------
    groups : tuple[str, ...]
        The names of the K groups.
    thresholds : tuple[Array, ...]
        For each group its thresholds, rising; infinite for "never", minus infinite for "always".
    weights : tuple[Array, ...]
        For each group the probability of each threshold; they sum to 1.
    channel : RandomizedResponse, optional
        If the groups are reports, their channel.

    Examples
    --------
    >>> d = RandomizedThresholds(("a", "b"), (np.array([0.5]), np.array([0.2, 0.6])), ([1.0], [0.25, 0.75]))
    >>> d.probability([0.5, 0.5, 0.7], ["a", "b", "b"]).tolist()
    [1.0, 0.25, 1.0]
    """

    groups: tuple[str, ...]
    thresholds: tuple[Array, ...]
    weights: tuple[Array, ...]
    channel: RandomizedResponse | None = None

    def __post_init__(self) -> None:
        if not len(self.groups) == len(self.thresholds) == len(self.weights):
            lists = f"{len(self.thresholds)} lists of thresholds and {len(self.weights)} of weights"
            raise DeclarationError(f"there are {len(self.groups)} groups, {lists}; each group needs both")
        thresholds, weights = [], []
        for name, cuts, chances in zip(self.groups, self.thresholds, self.weights, strict=True):
            t, w = np.asarray(cuts, dtype=float), as_numbers(chances, "weights")
            if t.ndim != 1 or t.shape != w.shape or not len(t) or np.isnan(t).any():
                given = f"thresholds {t.tolist()}, weights {w.tolist()}"
                raise DeclarationError(f"group {name!r}: {given} differ")
            if w.min() < -NEGLIGIBLE or abs(w.sum() - 1.0) > SUM:
                raise DeclarationError(f"group {name!r}: the weights {w.tolist()} are no probabilities")
            order = np.argsort(t, kind="stable")
            w = np.maximum(w, 0.0)
            w = w / w.sum() if abs(w.sum() - 1.0) > EXACT_SUM else w  # a file is read as it was written
            thresholds.append(t[order])
            weights.append(w[order])
        object.__setattr__(self, "thresholds", tuple(thresholds))
        object.__setattr__(self, "weights", tuple(weights))

    def probability(self, scores: Any, groups: Any) -> Array:
        """The probability that each record is predicted 1.

        Parameters
        ----------
        scores : array_like
            One score a record, shape ``(n,)``.
        groups : array_like
            The group of each record; with a channel ``channel.observe(reports)``.

        Returns
        -------
        Array
            Numbers from 0 to 1, shape ``(n,)``.

        Raises
        ------
        DeclarationError
            For a group without thresholds, and for columns of different length.
        """
        check_label_order("probability", {"scores": scores, "groups": groups})
        values = as_numbers(scores, "scores")
        codes = codes_of(groups, self.groups, self.channel)
        same_length(scores=values, groups=codes)
        chance = np.zeros(len(values))
        for a in range(len(self.groups)):
            members = codes == a
            chance[members] = self.law(a, values[members])
        return chance

    def law(self, group: int, scores: Array) -> Array:
        """The probability that a group, by its position, is predicted 1 at these scores."""
        below = np.append(0.0, np.cumsum(self.weights[group]))
        chance = below[np.searchsorted(self.thresholds[group], scores, side="right")]
        return np.asarray(np.clip(chance, 0.0, 1.0))

    def for_true_groups(self) -> RandomizedThresholds:
        """The same for those whose true group is known, see `RandomizedPostprocessor.for_true_groups`."""
        if self.channel is None:
            return self
        mixed = self.channel.transition(len(self.groups))
        cuts = np.concatenate(self.thresholds)
        parts = (zip(column, self.weights, strict=True) for column in mixed.T)
        laws = [np.concatenate([share * w for share, w in part]) for part in parts]
        return RandomizedThresholds(self.groups, (cuts,) * len(self.groups), tuple(laws))

    @property
    def uses_groups(self) -> bool:
        """Whether two groups differ in their law."""
        laws = zip(self.thresholds, self.weights, strict=True)
        return len({(cuts.tobytes(), weights.tobytes()) for cuts, weights in laws}) > 1

    def predict(self, scores: Any, groups: Any, seed: Seed = None) -> Array:
        """Draw a prediction for each record, independently; the same int gives the same draws."""
        chance = self.probability(scores, groups)
        return np.asarray(np.random.default_rng(seed).random(len(chance)) < chance, dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Groups, thresholds and weights as plain data; infinite thresholds as text."""
        cuts = [[t if np.isfinite(t) else str(t) for t in own.tolist()] for own in self.thresholds]
        law = {"thresholds": cuts, "weights": [weights.tolist() for weights in self.weights]}
        return {"groups": list(self.groups), **law, **_plain(self.channel)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The policy of plain data."""
        thresholds = tuple(np.array([float(t) for t in cuts]) for cuts in data["thresholds"])
        weights = tuple(map(np.asarray, data["weights"]))
        return cls(tuple(data["groups"]), thresholds, weights, _channel(data))

    _figure_size = (5.0, 3.6)

    def _draw(self, axes: Any) -> None:
        """Draw the probability of predicting 1 as the score grows, a line for each group."""
        cuts = np.concatenate(self.thresholds)
        inner = cuts[np.isfinite(cuts)]
        low, high = (float(inner.min()), float(inner.max())) if len(inner) else (0.0, 1.0)
        room = 0.1 * (high - low) or 0.5
        ends = np.array([low - room, high + room])
        for a, name in enumerate(self.groups):
            own = self.thresholds[a]
            at = np.unique(np.concatenate([ends, own[np.isfinite(own)]]))
            color, marker = COLOURS[a % len(COLOURS)], MARKERS[a % len(MARKERS)]
            axes.step(at, self.law(a, at), where="post", color=color, marker=marker, label=name)
        pairs = zip(self.thresholds, self.weights, strict=True)
        cut = " and ".join(f"{np.dot(w, np.clip(t, *ends)):.3g}" for t, w in pairs)
        titled(axes, f"The groups are cut at scores of {cut} on average")
        axes.set(xlabel="score", ylabel="probability of predicting 1", ylim=(-0.05, 1.05))
        axes.legend()

    def __repr__(self) -> str:
        width = max(len("group"), *map(len, self.groups))
        lines = [f"{'group':{width}}  predicts 1 from a score of"]
        for name, cuts, weights in zip(self.groups, self.thresholds, self.weights, strict=True):
            kept = [(t, w) for t, w in zip(cuts.tolist(), weights.tolist(), strict=True) if w > NEGLIGIBLE]
            texts = [f"{t:.6g}" + (f" (probability {w:.4f})" if len(kept) > 1 else "") for t, w in kept]
            lines.append(f"{name:{width}}  {', '.join(texts)}")
        return "\n".join(lines)


def _plain(channel: RandomizedResponse | None) -> dict[str, Any]:
    return {} if channel is None else {"channel": channel.to_dict()}


def _channel(data: dict[str, Any]) -> RandomizedResponse | None:
    return RandomizedResponse.from_dict(data["channel"]) if "channel" in data else None
