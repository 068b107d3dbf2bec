"""The decision: a random new score for each old one, group by group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from forcopt.arrays import Array, Seed, as_numbers
from forcopt.errors import DeclarationError, require_shape, required
from forcopt.fairness import (
    FALSE_POSITIVE,
    NEGATIVE_PREDICTIVE,
    POSITIVE_PREDICTIVE,
    SELECTION,
    TRUE_POSITIVE,
    GroupRates,
    calibration_gaps,
    read_groups,
)
from forcopt.fairness.records import same_length
from forcopt.learning.files import PolicyFile, finite_numbers
from forcopt.models.calibrated_errors.tolerances import ROUNDING
from forcopt.notebook import new_figure
from forcopt.problem.drawing import COLOURS, MARKERS, Drawn, finished, panel, titled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


_SHOWN = (FALSE_POSITIVE, TRUE_POSITIVE, POSITIVE_PREDICTIVE, NEGATIVE_PREDICTIVE, SELECTION)


@dataclass(frozen=True, eq=False)
class ScoreKernel(PolicyFile, Drawn):
    """A random new score for each old score of one group.

    Attributes
    ----------
    values : Array
        The old scores, shape ``(N,)``: the share with label 1 among the people with each score.
    masses : Array
        The share of the group with each, shape ``(N,)``.
    outputs : Array
        The new scores, ascending, shape ``(M,)``.
    kernel : Array
        The probability of each new score (column) given the old one (row), shape ``(N, M)``.

    Raises
    ------
    DeclarationError
        If a row of the kernel is no probability distribution.

    Examples
    --------
    >>> from forcopt.models import CalibratedTransport
    >>> p = CalibratedTransport(score=[[0.4, 0.8], [0.5, 0.5]], target=[4 / 13, 9 / 13], cutoff=0.5)
    >>> kernel = p.solve().decision
    >>> kernel.outputs.round(6).tolist(), kernel.joint.sum(axis=0).round(4).tolist()
    ([0.4, 0.49999, 0.5, 0.8], [0.4615, 0.0, 0.0513, 0.4872])
    """

    values: Array
    masses: Array
    outputs: Array
    kernel: Array

    def __post_init__(self) -> None:
        shape = len(self.values), len(self.outputs)
        require_shape(self.kernel.shape == shape, "the kernel has", self.kernel, f"be {shape}")
        wrong = (self.kernel < -ROUNDING).any(axis=1) | (np.abs(self.kernel.sum(axis=1) - 1) > ROUNDING)
        if wrong.any():
            at = int(np.argmax(wrong))
            given = f"its sum is {self.kernel[at].sum():.9g}, its least {self.kernel[at].min():.3g}"
            raise DeclarationError(f"kernel[{at}] is no distribution: {given}")

    @classmethod
    def unchanged(cls, values: Array, masses: Array) -> ScoreKernel:
        """Everybody keeps their score."""
        return cls(values, masses, values, np.eye(len(values)))

    @property
    def joint(self) -> Array:
        """The share of the group with each old and new score; shape ``(N, M)``."""
        return np.asarray(self.masses[:, None] * self.kernel)

    @property
    def calibration_error(self) -> float:
        """The expected distance of the new score from the share with label 1 among the people with it."""
        return float(np.abs(calibration_gaps(self.joint, self.values, self.outputs)).sum())

    @property
    def added_error(self) -> float:
        """The expected squared change of the score, which is the growth of the mean squared error."""
        return float((self.joint * (self.values[:, None] - self.outputs) ** 2).sum())

    @property
    def total_error(self) -> float:
        """The mean squared error of the new score as a forecast of the label."""
        return self.added_error + float(self.masses @ (self.values * (1 - self.values)))

    def accepted(self, cutoff: float) -> Array:
        """The probability that each old score becomes one of at least the cutoff; shape ``(N,)``."""
        return np.asarray(self.kernel[:, self.outputs >= cutoff - ROUNDING].sum(axis=1))

    def rates(self, cutoff: float) -> tuple[float, float]:
        """False positive and true positive rate of predicting 1 from the cutoff on."""
        accepted = self.masses * self.accepted(cutoff)
        base = float(self.masses @ self.values)
        return float(accepted @ (1 - self.values)) / (1 - base), float(accepted @ self.values) / base

    def to_dict(self) -> dict[str, Any]:
        """Values, masses, outputs and kernel as plain data."""
        return {name: getattr(self, name).tolist() for name in ("values", "masses", "outputs", "kernel")}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The kernel of plain data."""
        values = finite_numbers(data, "values")
        masses = finite_numbers(data, "masses", len(values))
        return cls(values, masses, finite_numbers(data, "outputs"), as_numbers(data["kernel"], "kernel"))

    def __repr__(self) -> str:
        lines = ["old score  new score (probability)"]
        for p, row in zip(self.values, self.kernel, strict=True):
            shown = [f"{q:.6g} ({t:.4f})" for q, t in zip(self.outputs, row, strict=True) if t > ROUNDING]
            lines.append(f"{p:9.6g}  {', '.join(shown)}")
        return "\n".join(lines)

    _figure_size = (4.5, 3.6)

    def _draw(self, axes: Any) -> None:
        """Draw the scores before (line) and after (filled)."""
        moved = self.joint.sum() - self.joint[np.isclose(self.values[:, None], self.outputs)].sum()
        titled(axes, f"{moved:.0%} of the group get another score")
        self.draw_on(axes, np.linspace(0.0, 1.0, 21), COLOURS[0])

    def draw_on(self, axes: Any, edges: Array, color: str) -> None:
        """Draw the scores before and after on the axes of a figure, counted between these edges."""
        axes.hist(self.outputs, edges, weights=self.joint.sum(axis=0), color=color, alpha=0.4, label="after")
        axes.hist(self.values, edges, weights=self.masses, histtype="step", color="0.2", label="before")
        axes.set(xlabel="score", ylabel="share of the group", xlim=(0, 1))
        axes.legend()

    def draw(self, scores: Array, rng: np.random.Generator, subject: str) -> Array:
        """A new score for each old one.

        Raises
        ------
        DeclarationError
            For a score that is not among `values`, naming the record.
        """
        place = np.searchsorted(self.values, scores - ROUNDING)
        unknown = np.abs(self.values[np.minimum(place, len(self.values) - 1)] - scores) > ROUNDING
        if unknown.any():
            at = int(np.argmax(unknown))
            raise DeclarationError(f"{subject}: {scores[at]:.9g} is not among its {len(self.values)} scores")
        at_most = np.cumsum(self.kernel, axis=1)
        at_most[:, -1] = np.inf  # whatever rounding left
        uniform, drawn = rng.random(len(scores)), np.empty(len(scores))
        for i in np.unique(place):
            here = place == i
            drawn[here] = self.outputs[np.searchsorted(at_most[i], uniform[here], side="right")]
        return drawn


@dataclass(frozen=True, eq=False)
class CalibratedScores(PolicyFile):
    """New scores for all groups, and the cutoff from which they lead to a prediction of 1.

    Attributes
    ----------
    kernels : Mapping[str, ScoreKernel]
        For each group by its name.
    cutoff : float
        Whoever has at least this score is predicted 1.
    shares : Mapping[str, float]
        Of the groups in the population.

    Examples
    --------
    >>> import forcopt as fo
    >>> scores = fo.load("calibrated/two-groups").solve().decision
    >>> sorted(scores.kernels)
    ['H', 'L']
    """

    kernels: Mapping[str, ScoreKernel]
    cutoff: float
    shares: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """The kernel of each group, the cutoff and the shares as plain data."""
        kernels = {name: kernel.to_dict() for name, kernel in self.kernels.items()}
        shares = {name: float(share) for name, share in self.shares.items()}
        return {"kernels": kernels, "cutoff": float(self.cutoff), "shares": shares}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The scores of plain data.

        Raises
        ------
        DeclarationError
            If kernels and shares belong to different groups.
        """
        kernels = {name: ScoreKernel.from_dict(kernel) for name, kernel in data["kernels"].items()}
        shares = {name: float(share) for name, share in data["shares"].items()}
        if set(kernels) != set(shares):
            raise DeclarationError(f"kernels are for {', '.join(kernels)}, shares for {', '.join(shares)}")
        return cls(kernels, float(data["cutoff"]), shares)

    def transform(self, scores: Any, groups: Any, seed: Seed = None) -> Array:
        """Draw a new score for each record.

        Parameters
        ----------
        scores : Any
            The old scores, each a declared score of its group.
        groups : Any
            The group of each record.
        seed : int or numpy.random.Generator, optional
            An int or a generator; the same int gives the same draws.

        Returns
        -------
        Array
            The new scores, shape ``(n,)``.

        Raises
        ------
        DeclarationError
            For an unknown group, or a score that its group was not declared to have.
        """
        old, names = as_numbers(scores, "scores"), tuple(self.kernels)
        codes, _ = read_groups(groups, names)
        same_length(scores=old, groups=codes)
        rng, new = np.random.default_rng(seed), np.empty(len(old))
        for a, name in enumerate(names):
            new[codes == a] = self.kernels[name].draw(old[codes == a], rng, f"scores of group {name!r}")
        return new

    @property
    def rates(self) -> GroupRates:
        """The rates of the prediction that the new scores lead to."""
        return self._rates({name: k.accepted(self.cutoff) for name, k in self.kernels.items()})

    def _rates(self, accepted: Mapping[str, Array]) -> GroupRates:
        positives, mass = [], []
        for name, k in self.kernels.items():
            by_label = self.shares[name] * k.masses * np.array([1 - k.values, k.values])
            positives.append(by_label @ accepted[name])
            mass.append(by_label.sum(axis=1))
        return GroupRates(np.array(positives), np.array(mass), tuple(self.kernels))

    def calibration_table(self) -> pd.DataFrame:
        """For each group and new score: how many have it, and the share with label 1 among them."""
        pd = required("pandas", "calibration_table")

        tables = []
        for name, k in self.kernels.items():
            mass = k.joint.sum(axis=0)
            rows = {"group": name, "score": k.outputs, "share": mass}
            rows["share with label 1"] = k.values @ k.joint
            tables.append(pd.DataFrame(rows)[mass > ROUNDING])
        found = pd.concat(tables, ignore_index=True)
        found["share with label 1"] /= found["share"]
        return found

    def rate_table(self) -> pd.DataFrame:
        """For each group, before and after: the rates of the prediction, and the score's squared error."""
        pd = required("pandas", "rate_table")

        before = {name: (k.values >= self.cutoff - ROUNDING) * 1.0 for name, k in self.kernels.items()}
        rows = []
        for when, rates in (("before", self._rates(before)), ("after", self.rates)):
            for a, (name, k) in enumerate(self.kernels.items()):
                row: dict[str, Any] = {"group": name, "scores": when}
                for rate in _SHOWN:
                    event, given = rates.total(rate.event)[a], rates.total(rate.given)[a]
                    row[rate.name] = event / given if given > 0 else np.nan
                row["squared error"] = k.total_error - (k.added_error if when == "before" else 0.0)
                rows.append(row)
        return pd.DataFrame(rows).sort_values(["group", "scores"], ascending=[True, False], ignore_index=True)

    def __repr__(self) -> str:
        return str(self.rate_table().to_string(index=False, float_format="{:.4f}".format))

    def plot(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """Draw each group's scores before (line) and after (filled), and its rates before and after.

        Parameters
        ----------
        path : str or Path, optional
            The file to save the picture to; its ending gives the format.
        ax : matplotlib.axes.Axes, optional
            The axes to draw the rates on, without the scores; a new figure with both if left out.
        """
        panels: list[Any] = []
        if ax is None:
            figure = new_figure(4.0 + 3.2 * len(self.kernels), 3.6)
            plane, *panels = figure.subplots(1, 1 + len(self.kernels))
        else:
            figure, plane = panel(ax, (0, 0))
        plane.plot([0, 1], [0, 1], color="0.8", linewidth=1, zorder=0)
        edges = self.cutoff + np.arange(-20, 21) / 20  # scores just below the cutoff get a bin of their own
        for a, (name, k) in enumerate(self.kernels.items()):
            color, marker = COLOURS[a % len(COLOURS)], MARKERS[a % len(MARKERS)]
            before = ScoreKernel.unchanged(k.values, k.masses).rates(self.cutoff)
            plane.plot(*before, marker=marker, color=color, markerfacecolor="white", linestyle="")
            plane.plot(*k.rates(self.cutoff), marker=marker, color=color, linestyle="", label=name)
            for axes in panels[a : a + 1]:
                k.draw_on(axes, edges, color)
                axes.axvline(self.cutoff, color="#D55E00", linestyle="--", linewidth=1)
                axes.set_title(name)
        rates = np.array([k.rates(self.cutoff) for k in self.kernels.values()])
        titled(plane, f"The rates differ by {np.ptp(rates, axis=0).max():.3f}")
        plane.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(0, 1), ylim=(0, 1))
        plane.set_aspect("equal")
        plane.legend(loc="lower right")
        return finished(figure, path)
