"""Decisions: one ranking, or a lottery over rankings."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError
from forcopt.models.fair_ranking.tolerances import SHARE
from forcopt.notebook import picture_html
from forcopt.numeric import birkhoff, decompose_permutahedron
from forcopt.problem.drawing import MARKERS, finished, panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Ranking:
    """A ranking of candidates, the best first; perhaps only of the first k.

    Attributes
    ----------
    order : Array
        The candidates by position, shape ``(k,)``.
    tied_at_cut : tuple[int, int]
        Of the candidates with the score of the last ranked candidate: the number of ranked ones, and the
        number of all. (1, 1) if there was no tie.

    Examples
    --------
    >>> import forcopt as fo
    >>> ranking = fo.load("ranking/eight-parity").solve().decision
    >>> ranking
    Ranking(order=array([0, 2, 4, 6]), tied_at_cut=(1, 1))
    """

    order: Array
    tied_at_cut: tuple[int, int] = (1, 1)

    def __post_init__(self) -> None:
        self.order.flags.writeable = False

    @classmethod
    def by_score(
        cls, scores: Any, positions: int | None = None, seed: int | np.random.Generator | None = None
    ) -> Ranking:
        """Sort by falling score; equal scores are ordered at random.

        Parameters
        ----------
        scores : array_like
            Shape ``(n,)``.
        positions : int, optional
            How many are ranked; all by default.
        seed : int or numpy.random.Generator, optional
            Of the order of ties; None orders them by position in the input, as a reproducible default.

        Raises
        ------
        DeclarationError
            For positions outside of 1..n.

        Examples
        --------
        >>> Ranking.by_score([1.0, 3.0, 2.0, 2.0], 2).tied_at_cut
        (1, 2)
        """
        y = as_numbers(scores, "scores")
        k = len(y) if positions is None else positions
        if not 1 <= k <= len(y):
            raise DeclarationError(f"positions is {k}; it must be from 1 to {len(y)}")
        ties = np.arange(len(y)) if seed is None else np.random.default_rng(seed).permutation(len(y))
        order = np.lexsort((ties, -y))[:k]
        last = y[order[-1]]
        return cls(order, (int((y[order] == last).sum()), int((y == last).sum())))

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.order[:10].tolist()))
        return f"<ranking of {len(self.order)}: {shown}{', ...' if len(self.order) > 10 else ''}>"


@dataclass(frozen=True, eq=False)
class RankingLottery:
    """A lottery over rankings, known by its rankings, its marginals or its exposures.

    Attributes
    ----------
    position_weights : Array
        The weights of the positions, shape ``(k,)``.
    given_exposures : Array, optional
        The expected weight of each candidate's position, shape ``(n,)``.
    given_marginals : csr_array, optional
        The probability that a candidate has a position, shape ``(n, k)``.
    given_lottery : tuple[Array, Array], optional
        Probabilities, shape ``(t,)``, and rankings, shape ``(t, k)``.
    count : int
        The number n of candidates.

    Examples
    --------
    >>> from forcopt.models import FairRanking
    >>> lottery = FairRanking(scores=[3.0, 1.0, 2.0], positions=2).solve().decision
    >>> lottery.rankings.tolist(), lottery.probabilities.tolist()
    ([[0, 2]], [1.0])
    """

    position_weights: Array = field(repr=False)
    count: int
    given_exposures: Array | None = field(default=None, repr=False)
    given_marginals: Any = field(default=None, repr=False)
    given_lottery: tuple[Array, Array] | None = field(default=None, repr=False)

    @cached_property
    def exposures(self) -> Array:
        """The expected weight of each candidate's position, shape ``(n,)``."""
        if self.given_exposures is not None:
            return self.given_exposures
        return np.asarray(self.marginals @ self.position_weights)

    @cached_property
    def marginals(self) -> Any:
        """The probability that a candidate has a position, sparse, shape ``(n, k)``."""
        if self.given_marginals is not None:
            return self.given_marginals
        weights, rankings = self.lottery
        t, k = rankings.shape
        entries = (np.repeat(weights, k), (rankings.ravel(), np.tile(np.arange(k), t)))
        return sp.csr_array(sp.coo_array(entries, shape=(self.count, k)))

    @cached_property
    def lottery(self) -> tuple[Array, Array]:
        """Probabilities, shape ``(t,)``, and the rankings that have them, shape ``(t, k)``.

        Marginals are decomposed by Birkhoff and von Neumann: at most nonzeros + n + 1 rankings. Exposures
        alone, as a point of the permutahedron: at most n rankings.
        """
        if self.given_lottery is not None:
            return self.given_lottery
        k = len(self.position_weights)
        if self.given_marginals is not None:
            kept = np.flatnonzero(np.diff(self.given_marginals.indptr))
            found = birkhoff(self.given_marginals[kept].toarray())
            rankings = np.full((len(found.weights), k), -1)
            for row, columns in zip(rankings, found.columns, strict=True):
                own = np.flatnonzero(columns >= 0)
                row[columns[own]] = kept[own]
            return found.weights, rankings
        e = self.exposures
        kept = np.flatnonzero(e > SHARE)
        if len(kept) < k:
            kept = np.concatenate([kept, np.setdiff1d(np.arange(len(e)), kept)[: k - len(kept)]])
        point = decompose_permutahedron(e[kept], self.position_weights)
        return point.weights, kept[point.rankings[:, :k]]

    @property
    def probabilities(self) -> Array:
        """Of the rankings, shape ``(t,)``."""
        return self.lottery[0]

    @property
    def rankings(self) -> Array:
        """The rankings that are drawn, shape ``(t, k)``."""
        return self.lottery[1]

    def sample(self, seed: int | np.random.Generator | None = None) -> Ranking:
        """Draw a ranking."""
        weights, rankings = self.lottery
        return Ranking(np.array(rankings[np.random.default_rng(seed).choice(len(weights), p=weights)]))

    def _repr_html_(self) -> str:
        return picture_html(self.plot())

    def plot(self, groups: Any = None, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """Draw the exposure of the candidates, from most to least, by group.

        Parameters
        ----------
        groups : sequence, optional
            The group of each candidate.
        path : str or Path, optional
            Where to save the picture.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; a new figure if left out.
        """
        figure, axes = panel(ax, (6.0, 3.5))
        labels = np.full(self.count, "all") if groups is None else np.array([str(g) for g in groups])
        for at, name in enumerate(np.unique(labels)):
            axes.step(
                np.arange((labels == name).sum()),
                np.sort(self.exposures[labels == name])[::-1],
                where="mid",
                label=name,
                marker=MARKERS[at % len(MARKERS)],
                markersize=4,
            )
        axes.set(xlabel="candidates, from most to least exposed", ylabel="expected weight of position")
        axes.legend(frameon=False)
        return finished(figure, path)

    def __str__(self) -> str:
        return f"<lottery over rankings of {len(self.position_weights)} of {self.count} candidates>"
