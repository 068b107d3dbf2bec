"""The declaration: candidates, scores, groups, weights of positions, demands; one ranking or a lottery."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from pydantic import Field, model_validator

from forcopt.arrays import Array, Seed, as_numbers
from forcopt.declaration import Name, Numbers
from forcopt.errors import DeclarationError, require
from forcopt.fairness import CounterfactualOrder, InGroupFairness, RankingNotion
from forcopt.fairness.ranking import Candidates, GroupLimit, Ranked
from forcopt.models.fair_ranking import measures
from forcopt.models.fair_ranking.measures import average_precision, selection_rates
from forcopt.models.fair_ranking.tolerances import SHARE
from forcopt.notebook import picture_html
from forcopt.numeric import birkhoff, decompose_permutahedron
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Problem
from forcopt.problem.drawing import MARKERS, Sketch, finished, panel, titled

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from forcopt.causal import FittedCausalModel


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
    >>> Ranking.by_score([3.0, 1.0, 2.0, 2.0], positions=2)
    Ranking(order=array([0, 2]), tied_at_cut=(1, 2))
    """

    order: Array
    tied_at_cut: tuple[int, int] = (1, 1)

    def __post_init__(self) -> None:
        self.order.flags.writeable = False

    @classmethod
    def by_score(cls, scores: Any, positions: int | None = None, seed: Seed = None) -> Ranking:
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
        require(1 <= k <= len(y), "positions", k, f"be from 1 to {len(y)}")
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

    def sample(self, seed: Seed = None) -> Ranking:
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
            own, marker = np.sort(self.exposures[labels == name])[::-1], MARKERS[at % len(MARKERS)]
            axes.step(np.arange(1, len(own) + 1), own, where="mid", label=name, marker=marker, markersize=4)
        finding = f"Candidates expect weights from {self.exposures.min():.3g} to {self.exposures.max():.3g}"
        axes.set(xlabel="candidates, from most to least exposed", ylabel="expected weight of position")
        titled(axes, finding)
        if groups is not None:
            axes.legend(frameon=False)
        return finished(figure, path)

    def __str__(self) -> str:
        return f"<lottery over rankings of {len(self.position_weights)} of {self.count} candidates>"


_MOST_COLUMNS = 300_000
"""Larger linear programs give way to column generation."""

_MOST_SHOWN = 12
"""Of how many groups measures are listed as metrics."""


class FairRanking(Problem):
    """Rank candidates for the greatest expected utility within demands of fairness.

    The utility is the sum of scores times the weights of positions; of a lottery, its expectation. A
    candidate's expected weight is called the exposure.

    Attributes
    ----------
    scores : Numbers, optional
        The worth of each candidate at a position of weight 1, shape ``(n,)``.
    utilities : Numbers, optional
        Instead of scores: the worth of each candidate at each position, shape ``(n, k)``.
    positions : int, optional
        How many positions there are, k; n by default, or as many as the weights.
    weights : Numbers, optional
        Of the positions, not negative and not rising, shape ``(k,)``; ``1 / log2(1 + j)`` by default. Equal
        weights ask for a set of k.
    groups : Mapping[str, tuple[str, ...]]
        The level of each candidate, by attribute.
    constraint : RankingNotion, optional
        The demands of fairness.
    integer : bool, default False
        Look for one ranking instead of a lottery.

    Raises
    ------
    DeclarationError
        Naming the field, the value and the rule.

    References
    ----------
    Singh and Joachims (KDD 2018) for exposure; Celis, Straszak and Vishnoi (ICALP 2018) for quotas; Yang,
    Loftus and Stoyanovich (FORC 2021) for counterfactual scores.

    Examples
    --------
    >>> from forcopt.fairness import ExposureParity
    >>> from forcopt.models import FairRanking
    >>> p = FairRanking([4, 3, 2, 1], groups={"sex": list("mmff")}, constraint=ExposureParity())
    >>> s = p.solve()
    >>> round(s.objective, 6)
    6.754142
    >>> bool(abs(s.decision.exposures[:2].sum() - s.decision.exposures[2:].sum()) < 1e-7)
    True
    """

    family: ClassVar[str] = "ranking"
    sense: ClassVar[Literal["min", "max"]] = "max"
    default_method: ClassVar[str] = "assignment"
    refuses_channel: ClassVar[str] = "no inverted report estimates the groups of the few candidates of a list"

    scores: Numbers | None = None
    utilities: Numbers | None = None
    positions: int | None = None
    weights: Numbers | None = None
    groups: Mapping[str, tuple[Name, ...]] = Field(default_factory=dict)
    constraint: RankingNotion | None = None
    integer: bool = False

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.scores is None) == (self.utilities is None):
            raise DeclarationError("scores, utilities: just one of the two must be given")
        if self.scores is not None and (self.scores.ndim != 1 or not len(self.scores)):
            raise DeclarationError(f"scores has shape {self.scores.shape}; it must be (n,), n >= 1")
        if self.utilities is not None and (self.utilities.ndim != 2 or 0 in self.utilities.shape):
            raise DeclarationError(f"utilities has shape {self.utilities.shape}; it must be (n, k)")
        n, k = self.size, self.length
        require(1 <= k <= n, "positions", k, f"be from 1 to the number of candidates, {n}")
        for name, given in (("weights", self.weights), ("utilities", self.utilities)):
            if given is not None and given.shape[-1:] != (k,):
                raise DeclarationError(f"{name} has shape {given.shape} for {k} positions")
        w = self.position_weights
        if w.ndim != 1 or (w < 0).any() or w[0] <= 0:
            raise DeclarationError("weights must not be negative, and the first must be positive")
        if (np.diff(w) > 0).any():
            at = int(np.argmax(np.diff(w) > 0))
            raise DeclarationError(f"weights rise from {w[at]:g} to {w[at + 1]:g}; they must not rise")
        for name, levels in self.groups.items():
            if len(levels) != n:
                raise DeclarationError(f"groups.{name} has {len(levels)} entries for {n} candidates")
        if self.constraint is not None:
            self.constraint.check(self.candidates)
            if not self.integer and any(isinstance(c, InGroupFairness) for c in self.notions):
                raise DeclarationError("constraint: in-group fairness is of one ranking; set integer=True")
        return self

    @classmethod
    def from_causal(
        cls,
        fit: FittedCausalModel,
        frame: DataFrame,
        baseline: Mapping[str, Any],
        *,
        resolving: Mapping[str, Any] | tuple[str, ...] | list[str] = (),
        rho: float | None = None,
        slack: float = 0.0,
        constraint: RankingNotion | None = None,
        **fields: Any,
    ) -> Self:
        """Declare that exposure follows counterfactual scores, while utility counts the observed ones.

        Parameters
        ----------
        fit : FittedCausalModel
            See `forcopt.causal`.
        frame : DataFrame
            The candidates.
        baseline, resolving, rho
            See `FittedCausalModel.counterfactual`.
        slack : float, default 0.0
            Of the `CounterfactualOrder`.
        constraint : RankingNotion, optional
            Demands that hold besides.
        fields : Any
            Other fields of the problem.
        """
        found = fit.counterfactual(frame, baseline, resolving, rho=rho)
        order: RankingNotion = CounterfactualOrder(scores=found.scores, slack=slack)
        groups = {a: tuple(map(str, frame[a])) for a in fit.model.sensitive if a not in fit.model.knots}
        both = order if constraint is None else order & constraint
        return cls(**{"scores": found.scores - found.shifts, "groups": groups, "constraint": both, **fields})

    # -- derived from the fields -------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The number of candidates, n."""
        given = self.scores if self.scores is not None else self.utilities
        assert given is not None
        return len(given)

    @property
    def length(self) -> int:
        """The number of positions, k."""
        if self.positions is not None:
            return self.positions
        if self.utilities is not None:
            return int(self.utilities.shape[1])
        return self.size if self.weights is None else int(self.weights.shape[-1])

    @cached_property
    def position_weights(self) -> Array:
        """The weights of the positions, shape ``(k,)``."""
        if self.weights is not None:
            return self.weights
        return np.asarray(1.0 / np.log2(2.0 + np.arange(self.length)))

    @cached_property
    def candidates(self) -> Candidates:
        """The facts that notions look at."""
        return Candidates(self.groups, self.position_weights, self.scores, self.size)

    @property
    def notions(self) -> tuple[RankingNotion, ...]:
        """The single demands."""
        if self.constraint is None:
            return ()
        return tuple(getattr(self.constraint, "notions", (self.constraint,)))

    @cached_property
    def limits(self) -> list[GroupLimit]:
        """The demands on groups, as bounds on sums."""
        return [] if self.constraint is None else self.constraint.limits(self.candidates)

    @property
    def groupwise(self) -> bool:
        """Whether demands treat the members of a cell alike, so that they are ranked by score."""
        return self.scores is not None and all(notion.groupwise for notion in self.notions)

    @cached_property
    def cells(self) -> tuple[list[str], Array, Array]:
        """The finest groups that the demands distinguish: names, the cell of each candidate, sizes."""
        by = () if self.constraint is None else self.constraint.attributes(self.candidates)
        return self.candidates.cells(by)

    @cached_property
    def kept(self) -> Array:
        """The candidates who may get a position: of a cell the k best, by falling score.

        All candidates, if the demands distinguish them. Members of a cell stand together.
        """
        if not self.groupwise:
            return np.arange(self.size)
        assert self.scores is not None
        codes = self.cells[1]
        order = np.lexsort((np.arange(self.size), -self.scores, codes))
        first = np.searchsorted(codes[order], np.arange(codes.max() + 1))
        return order[np.arange(self.size) - first[codes[order]] < self.length]

    def choose_method(self) -> str:
        """Choose an exact method that fits."""
        from forcopt.models.fair_ranking.column_generation import generates

        prefixes = any(limit.prefix is not None for limit in self.limits)
        drops = int((np.diff(self.position_weights, append=0.0) < 0).sum())
        small = len(self.kept) * drops <= _MOST_COLUMNS
        if self.groupwise and (small or prefixes or self.integer):
            return "prefix-counts"
        if self.integer:
            return "milp"
        if self.scores is None and self.size * self.length <= _MOST_COLUMNS:
            return "assignment"
        if self.scores is not None and [type(notion) for notion in self.notions] == [CounterfactualOrder]:
            return "isotonic"
        if generates(self):
            return "column-generation"
        return "assignment"

    def infeasibility_reason(self) -> str:
        """Describe demands that contradict each other, and the prefix; empty if none is found.

        Examples
        --------
        >>> from forcopt.fairness import PrefixQuotas
        >>> from forcopt.models import FairRanking
        >>> quotas = PrefixQuotas(least={"a": 1.0}, by="x") & PrefixQuotas(least={"d": 1.0}, by="y")
        >>> p = FairRanking([3, 2, 1], groups={"x": list("aab"), "y": list("ccd")}, constraint=quotas,
        ...                 positions=1)
        >>> p.infeasibility_reason()
        'no choice of the first 1 meets the quotas together'
        """
        from forcopt.models.fair_ranking.prefix_counts import infeasible_prefix

        at = infeasible_prefix(self)
        return "" if at is None else f"no choice of the first {at} meets the quotas together"

    def least_relaxation(self, time_limit: float = 10.0) -> str:
        """Give the least changes of the demands, with all candidates; see `Problem.least_relaxation`."""
        method = "milp" if self.integer else "assignment"
        return self.relaxed_rows(method, "demands", time_limit, reduce=False)

    # -- judging ---------------------------------------------------------------------------------------------

    def lottery(self, **given: Any) -> RankingLottery:
        """The decision with ``exposures=``, ``marginals=`` or ``lottery=`` (probabilities and rankings)."""
        known: dict[str, Any] = {f"given_{name}": value for name, value in given.items()}
        return RankingLottery(self.position_weights, self.size, **known)

    def read(self, decision: Any) -> RankingLottery:
        """A decision as a lottery.

        Parameters
        ----------
        decision : Any
            A `Ranking`, a `RankingLottery`, or the candidates by position.

        Raises
        ------
        DeclarationError
            For a ranking of another length, or that ranks somebody twice.
        """
        if isinstance(decision, RankingLottery):
            if decision.count != self.size or len(decision.position_weights) != self.length:
                raise DeclarationError(
                    f"the lottery ranks {len(decision.position_weights)} of {decision.count}; it must rank "
                    f"{self.length} of {self.size}"
                )
            return decision
        given = decision.order if isinstance(decision, Ranking) else as_numbers(decision, "the decision")
        order = np.asarray(given, dtype=int)
        if (order != given).any():
            raise DeclarationError("the ranking must name candidates by whole numbers")
        if order.ndim != 1 or len(order) < self.length:
            raise DeclarationError(f"the ranking has shape {order.shape}; it must have {self.length} places")
        order = order[: self.length]
        if order.min() < 0 or order.max() >= self.size or len(np.unique(order)) < len(order):
            raise DeclarationError(f"a ranking is {self.length} different candidates of 0 to {self.size - 1}")
        return self.lottery(lottery=(np.ones(1), order[None, :]))

    def evaluate(self, decision: Any) -> Evaluation:
        """Evaluate a decision: its expected utility, the demands it breaks, the measures of the literature.

        Parameters
        ----------
        decision : Any
            A `Ranking`, a `RankingLottery`, or the candidates by position.

        Returns
        -------
        Evaluation
            The utility; violations by demand, ``"majorization"`` of exposures that no lottery has and
            ``"integrality"``; as metrics the loss against the best ranking, selection rates and exposures
            (over the mean) of groups, and for one ranking the average precision.
        """
        lottery = self.read(decision)
        e, w = lottery.exposures, self.position_weights
        if self.utilities is not None:
            marginals = lottery.marginals.tocoo()
            objective = float((self.utilities[marginals.row, marginals.col] * marginals.data).sum())
        else:
            objective = float(self.scores @ e)
        violations: dict[str, float] = {}
        if lottery.given_lottery is None:
            over = np.cumsum(-np.sort(-e))[: len(w)] - np.cumsum(w)
            worst = max(float(over.max()), abs(float(e.sum() - w.sum())), float(-e.min()))
            violations["majorization"] = worst / float(w[0])
            if lottery.given_marginals is not None:
                x = lottery.given_marginals
                sums = [np.asarray(x.sum(axis=1)) - 1.0, np.abs(np.asarray(x.sum(axis=0)) - 1.0)]
                violations["majorization"] = max(float(s.max()) for s in sums)
        if self.integer:
            violations["integrality"] = 1.0 - float(lottery.probabilities.max())
        if self.constraint is not None:
            counts, every = partial(_counts, lottery), np.arange(self.size)
            ranked = Ranked(self.candidates, e, counts, every, _Chosen(lottery))
            violations |= self.constraint.violation(ranked)
        broken = {name: v for name, v in violations.items() if v > FEASIBILITY_TOLERANCE}
        return Evaluation(objective, broken, self._metrics(lottery, objective))

    def _sketch(self, decision: Ranking, evaluation: Evaluation) -> Any:
        order, given = decision.order, self.scores if self.utilities is None else self.utilities
        assert given is not None
        worth = given[order] if given.ndim == 1 else given[order, np.arange(len(order))]
        names, codes, _ = self.candidates.cells(None)
        rows = [f"{c}, {names[codes[c]]}" if self.groups else f"{c}" for c in order.tolist()]
        title = f"The first {len(order)} of {self.size} candidates have utility {evaluation.objective:.4g}"
        return Sketch(title, worth, rows, unit="score" if self.utilities is None else "utility")

    @cached_property
    def best(self) -> float:
        """The greatest utility without demands; infinite if utilities depend on positions."""
        if self.scores is None:
            return np.inf
        return float(-np.sort(-self.scores)[: self.length] @ self.position_weights)

    def _metrics(self, lottery: RankingLottery, objective: float) -> dict[str, float]:
        found = {}
        if 0 < self.best < np.inf:
            found["loss"] = 1.0 - objective / self.best
        names, codes, sizes = self.candidates.cells(None)
        if self.groups and len(names) <= _MOST_SHOWN:
            mean = np.bincount(codes, lottery.exposures, minlength=len(names)) / sizes
            for name, value in zip(names, mean / self.candidates.mean_exposure, strict=True):
                found[f"exposure {name}"] = float(value)
        if lottery.given_lottery is not None and len(lottery.probabilities) == 1 and self.scores is not None:
            order = lottery.rankings[0]
            ideal = Ranking.by_score(self.scores).order
            found["average precision"] = average_precision(order, ideal, self.length)
            if self.groups and len(names) <= _MOST_SHOWN:
                rates = selection_rates(order, [names[c] for c in codes], self.length)
                found |= {f"selection rate {name}": rate for name, rate in rates.items()}
        return found

    def measures(
        self, decision: Any, k: int | None = None, offset: float | Literal["min"] | None = None
    ) -> dict[str, Any]:
        """The measures of the literature at k, of one ranking against the one by score.

        Parameters
        ----------
        decision : Any
            A `Ranking`, or the candidates by position.
        k : int, optional
            How many positions count; all by default.
        offset : float or "min", optional
            Added to all scores for the loss and the in-group ratio.

        Returns
        -------
        dict[str, Any]
            ``loss`` and ``average precision``; by group ``selection rates``, ``sensitivity`` and ``in-group
            ratio``.
        """
        lottery = self.read(decision)
        if len(lottery.probabilities) > 1 or self.scores is None:
            raise DeclarationError("measures are of one ranking by scores")
        order, k = lottery.rankings[0], k or self.length
        ideal = Ranking.by_score(self.scores).order
        names, codes, _ = self.candidates.cells(None)
        labels = [names[c] for c in codes]
        return {
            "loss": measures.utility_loss(order, ideal, self.scores, k, offset),
            "average precision": average_precision(order, ideal, k),
            "selection rates": selection_rates(order, labels, k),
            "sensitivity": measures.sensitivity(order, ideal, labels, k),
            "in-group ratio": measures.in_group_ratio(order, self.scores, labels, k, offset),
        }


def _counts(lottery: RankingLottery, codes: Array, groups: int) -> Array:
    """The expected numbers of members of groups in prefixes."""
    x = lottery.marginals.tocoo()
    k = x.shape[1]
    flat = np.bincount(codes[x.row] * k + x.col, x.data, minlength=groups * k)
    return np.asarray(np.cumsum(flat.reshape(groups, k), axis=1))


class _Chosen:
    """Whether candidates are ranked, one row for each ranking of a lottery."""

    def __init__(self, lottery: RankingLottery) -> None:
        self.lottery = lottery

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        rankings = self.lottery.rankings
        found = np.zeros((len(rankings), self.lottery.count))
        np.put_along_axis(found, rankings, 1.0, axis=1)
        return found
