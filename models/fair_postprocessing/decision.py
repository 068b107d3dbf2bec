"""The decision: the probability of predicting 1, given the base prediction and the group."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.fairness.records import read_binary, read_groups, same_length
from forcopt.learning.files import PolicyFile, numbers_from_plain, plain_numbers
from forcopt.privacy import ObservedGroups, RandomizedResponse
from forcopt.problem.drawing import COLOURS, MARKERS, finished, panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["RandomizedPostprocessor"]


@dataclass(frozen=True, eq=False)
class RandomizedPostprocessor(PolicyFile):
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

    def __post_init__(self) -> None:
        self.probabilities.flags.writeable = False

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

    def predict(self, predictions: Any, groups: Any, seed: int | np.random.Generator | None = None) -> Array:
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
        base, codes = read_binary(predictions, "predictions"), self.codes(groups)
        same_length(predictions=base, groups=codes)
        draws = np.random.default_rng(seed).random(len(base))
        return np.asarray(draws < self.probabilities[base, codes], dtype=np.int64)

    def codes(self, groups: Any) -> Array:
        """The position in `groups` of each record's group, shape ``(n,)``; see `predict`.

        Raises
        ------
        DeclarationError
            See `predict`.
        """
        if isinstance(groups, ObservedGroups):
            if groups.channel != self.channel:
                raise DeclarationError(
                    f"the groups came through {groups.channel}, not through {self.channel}"
                )
            groups = groups.reports
        elif self.channel is not None:
            raise DeclarationError(
                "these groups may be reports (pass channel.observe(groups)) or true ones (take "
                "for_true_groups() to predict): reports sent through the channel twice would be less fair"
            )
        codes, _ = read_groups(groups, self.groups)
        return codes

    def to_dict(self) -> dict[str, Any]:
        """Probabilities, groups, base rates and channel as plain data; undefined rates are None."""
        return {
            "probabilities": self.probabilities.tolist(),
            "groups": list(self.groups),
            "base_rates": plain_numbers(self.base_rates),
            "channel": None if self.channel is None else self.channel.to_dict(),
        }

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
            raise DeclarationError(
                f"probabilities has shape {probabilities.shape} and base_rates {base.shape}; both must be "
                f"(2, {len(groups)})"
            )
        if not ((probabilities >= 0) & (probabilities <= 1)).all():
            raise DeclarationError(f"probabilities holds {probabilities.tolist()}; they must be from 0 to 1")
        channel = data["channel"]
        return cls(
            probabilities, groups, base, None if channel is None else RandomizedResponse.from_dict(channel)
        )

    def __repr__(self) -> str:
        width = max(len("group"), *map(len, self.groups))
        lines = ["probability of predicting 1 after", f"{'group':{width}}  prediction 0  prediction 1"]
        for name, (if_zero, if_one) in zip(self.groups, self.probabilities.T, strict=True):
            lines.append(f"{name:{width}}  {if_zero:12.4f}  {if_one:12.4f}")
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """Draw each group's rates before (hollow) and after (filled), within all that it could reach.

        Parameters
        ----------
        path : str or Path, optional
            The file to save the picture to; its ending gives the format.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; a new figure if left out.
        """
        figure, axes = panel(ax, (5.0, 5.0))
        axes.plot([0, 1], [0, 1], color="0.8", linewidth=1, zorder=0)
        for a, name in enumerate(self.groups):
            base, after = self.base_rates[:, a], self.rates[:, a]
            reachable = np.array([[0.0, 0.0], base, [1.0, 1.0], 1.0 - base])
            color, marker = COLOURS[a % len(COLOURS)], MARKERS[a % len(MARKERS)]
            axes.fill(*reachable.T, facecolor=color, edgecolor=color, alpha=0.12)
            axes.plot(*base, marker=marker, linestyle="", color=color, markerfacecolor="white")
            axes.plot(*after, marker=marker, linestyle="", color=color, label=name)
        axes.set(
            xlabel="false positive rate",
            ylabel="true positive rate",
            xlim=(0, 1),
            ylim=(0, 1),
            aspect="equal",
        )
        axes.legend(loc="lower right")
        return finished(figure, path)
