"""The declaration: calibrated scores of several groups, a cutoff, and a constraint on the error rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import mul
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from pydantic import Field, ValidationInfo, field_validator, model_validator

from forcopt import fairness
from forcopt.arrays import Array, as_numbers
from forcopt.clock import Deadline
from forcopt.declaration import Numbers
from forcopt.errors import BackendError, DeclarationError, require
from forcopt.fairness.records import read_binary, read_groups, same_length
from forcopt.language.products import quad_form
from forcopt.learning.files import PolicyFile, numbers_from_plain
from forcopt.models.calibrated_errors.decision import CalibratedScores, ScoreKernel
from forcopt.models.calibrated_errors.region import (
    FeasibleRegion,
    HalfPlane,
    Point,
    check_time,
    roc,
    simplest_fraction,
    value_at,
)
from forcopt.models.calibrated_errors.tolerances import MARGIN, ROUNDING, SEMIDEFINITE
from forcopt.models.calibrated_errors.transport import CalibratedTransport, Cutoffs, read_score
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Problem
from forcopt.status import Status


class CalibratedEqualErrors(Cutoffs, Problem):
    """Change the scores of groups so that a common cutoff gives equal error rates and scores stay calibrated.

    Whoever uses the score predicts 1 from the cutoff on, the same for all groups. Stage 1 finds the rates of
    the least expected loss that scores calibrated within each group can lead to. Stage 2 finds, for each
    group, the calibrated score nearest to the old one with those rates (`CalibratedTransport`).

    Attributes
    ----------
    scores : Mapping[str, Numbers]
        For each group by its name: the values of the old score (the share of label 1 among the records
        with this value) and the share of the group with each, shape ``(2, N)``; N may differ.
    weights : Mapping[str, float], optional
        The share of each group in the population; equal by default.
    cutoff : float, optional
        People with at least this score are predicted 1. A decision maker who pays k for a false positive and
        1 for a false negative takes ``k / (k + 1)``.
    cost_ratio : float, optional
        That k; give either the cutoff or k.
    interval : float, default 0.0
        The cutoff is known only to lie strictly within this distance: the rates must be equal for every such
        cutoff.
    constraint : Notion, optional
        The constraint on the rates; `EqualizedOdds` unless `relaxation` is given.
    relaxation : Numbers, optional
        A penalty on different rates instead: for every pair of groups, the differences d of false and true
        positive rate cost ``d' Lambda d``. A symmetric semidefinite matrix of shape ``(2, 2)``, or a number
        for a multiple of the identity.
    margin : float, default 1e-05
        The distance that scores of people predicted 0 keep below the cutoff. The set of achievable rates is
        not closed, so without a margin an optimum may not exist. Solvers meet rows up to 1e-6; if a
        share r of a group is refused, that moves their scores by 1e-6 / r. A margin below it is not kept, and
        the optima of two backends may differ by it.

    Raises
    ------
    DeclarationError
        For fewer than two groups, a malformed score (`read_score`), weights that are not positive or do
        not sum to 1, cutoff and cost ratio that contradict each other, a relaxation that is not symmetric and
        semidefinite.

    References
    ----------
    Reich and Vijaykumar (2021), stages 1 and 2 with the extensions of section 3.3.

    Examples
    --------
    >>> from forcopt.fairness import FALSE_POSITIVE
    >>> p = CalibratedEqualErrors(
    ...     scores={"L": ([0.2, 0.6], [0.5, 0.5]), "H": ([0.4, 0.8], [0.5, 0.5])}, cutoff=0.5
    ... )
    >>> [str(rate) for rate in p.best_rates()]
    ['4/13', '9/13']
    >>> s = p.solve()
    >>> round(s.objective, 6)
    0.307692
    >>> s.decision.rates.rate(FALSE_POSITIVE).round(6).tolist()
    [0.307692, 0.307692]
    """

    family: ClassVar[str] = "calibrated"
    default_method: ClassVar[str] = "lp"
    refuses_channel: ClassVar[str] = "calibration needs counts by score, which inverted reports make negative"

    scores: Mapping[str, Numbers]
    weights: Mapping[str, float] | None = None
    # Either is filled in from the other, so that both are numbers once declared.
    cutoff: float = Field(default=None, gt=0.0, lt=1.0)  # type: ignore[assignment]
    cost_ratio: float = Field(default=None, gt=0.0, allow_inf_nan=False)  # type: ignore[assignment]
    interval: float = Field(default=0.0, ge=0.0)
    constraint: fairness.Notion | None = None
    relaxation: Numbers | None = None
    margin: float = Field(default=MARGIN, gt=0.0)

    @model_validator(mode="before")
    @classmethod
    def _one_says_the_other(cls, data: Any) -> Any:
        cutoff, k = data.get("cutoff"), data.get("cost_ratio")
        if cutoff is None and k is None:
            raise DeclarationError("the cutoff is missing; give it, or the cost_ratio of false positives")
        if cutoff is None and isinstance(k, int | float) and k > 0:
            data = {**data, "cutoff": float(1 / (1 + 1 / simplest_fraction(k)))}
        if k is None and isinstance(cutoff, int | float) and 0 < cutoff < 1:
            exact = simplest_fraction(cutoff)
            data = {**data, "cost_ratio": float(exact / (1 - exact))}
        return data

    def replace(self, /, **fields: Any) -> Self:
        """Rebuild with other values; a new cutoff sets the cost_ratio, and a new cost_ratio the cutoff."""
        if ("cutoff" in fields) != ("cost_ratio" in fields):
            fields = {"cutoff": None, "cost_ratio": None, **fields}
        return super().replace(**fields)

    @field_validator("scores")
    @classmethod
    def _are_scores(cls, scores: Mapping[str, Array]) -> Mapping[str, Array]:
        if len(scores) < 2:
            raise DeclarationError(f"there are {len(scores)} groups; at least two are needed")
        read = {}
        for name, score in scores.items():
            try:
                read[name] = read_score(score)
            except DeclarationError as error:
                raise DeclarationError(f"group {name!r}: {error}") from None
        return read

    @field_validator("weights")
    @classmethod
    def _are_shares(
        cls, weights: Mapping[str, float] | None, info: ValidationInfo
    ) -> Mapping[str, float] | None:
        if weights is None or "scores" not in info.data:
            return weights
        names = list(info.data["scores"])
        if set(weights) != set(names):
            raise DeclarationError(
                f"weights are given for {', '.join(weights)}; the groups are {', '.join(names)}"
            )
        for name, share in weights.items():
            require(share > 0, f"the weight of {name!r}", share, "be positive")
        if not abs(sum(weights.values()) - 1) <= ROUNDING:
            raise DeclarationError(f"the weights sum to {sum(weights.values()):.12g}; they must sum to 1")
        return {name: weights[name] for name in names}

    @field_validator("relaxation")
    @classmethod
    def _is_semidefinite(cls, matrix: Array | None) -> Array | None:
        if matrix is None:
            return None
        if matrix.ndim == 0:
            matrix = float(matrix) * np.eye(2)
        require(matrix.shape == (2, 2), "the shape", matrix.shape, "be (2, 2), or a number")
        if matrix[0, 1] != matrix[1, 0]:
            raise DeclarationError(f"the matrix is not symmetric: {matrix[0, 1]:g} and {matrix[1, 0]:g}")
        least = float(np.linalg.eigvalsh(matrix)[0])
        if least < -SEMIDEFINITE * float(np.abs(matrix).max()):
            raise DeclarationError(f"the matrix has the eigenvalue {least:g}; it must be semidefinite")
        return matrix

    @model_validator(mode="after")
    def _fits(self) -> Self:
        own = self.cost_ratio / (1 + self.cost_ratio)
        if abs(self.cutoff - own) > ROUNDING:
            raise DeclarationError(
                f"cutoff {self.cutoff:g} and cost_ratio {self.cost_ratio:g} contradict each other: "
                f"that ratio has the cutoff {own:g}; give one of them"
            )
        self.check_cutoffs()
        if self.parity is not None and len(self.parity.records):
            kind = type(self.parity).__name__
            raise DeclarationError(f"constraint: {kind} looks at single records; scores are of groups")
        return self

    def choose_method(self) -> str:
        """Choose ``qp`` if there is a relaxation, else ``lp``."""
        return "lp" if self.relaxation is None else "qp"

    @classmethod
    def from_counts(cls, counts: Mapping[str, tuple[Any, Any]], **fields: Any) -> Self:
        """Take the number of people of each group, and of people with label 1, by score.

        Each score then counts as the share with label 1 among the people with it, which calibrates it; scores
        with nobody are left out. The weights are the groups' shares.

        Parameters
        ----------
        counts : Mapping[str, tuple[Any, Any]]
            For each group the number of people with each score, and the number of these with label 1.
        fields : Any
            The other fields of the declaration.

        Examples
        --------
        >>> counts = {"a": ([10, 10], [2, 6]), "b": ([5, 5], [2, 4])}
        >>> p = CalibratedEqualErrors.from_counts(counts, cutoff=0.5)
        >>> p.scores["a"].tolist(), p.weights
        ([[0.2, 0.6], [0.5, 0.5]], {'a': 0.6666666666666666, 'b': 0.3333333333333333})
        """
        scores, sizes = {}, {}
        for name, pair in counts.items():
            scores_of = [part.index for part in pair if hasattr(part, "iloc")]
            if len(scores_of) == 2 and not scores_of[0].equals(scores_of[1]):
                raise DeclarationError(
                    f"counts of {name!r}: the people and those with label 1 have other indices; give both "
                    "one row a score, in one order"
                )
            table = np.asarray(pair, dtype=float)
            if table.ndim != 2 or len(table) != 2 or (table[0] < table[1]).any() or (table[1] < 0).any():
                raise DeclarationError(f"counts of {name!r} must be people, and those with label 1")
            people, positive = table[:, table[0] > 0]
            sizes[name] = float(people.sum())
            scores[name] = np.array([positive / people, people / sizes[name]])
        total = sum(sizes.values())
        return cls(scores=scores, weights={name: n / total for name, n in sizes.items()}, **fields)

    # -- the data --------------------------------------------------------------------------------------------

    @property
    def groups(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self.scores)

    @property
    def shares(self) -> Array:
        """The share of each group in the population; shape ``(G,)``."""
        if self.weights is None:
            return np.full(len(self.groups), 1 / len(self.groups))
        return np.array(list(self.weights.values()))

    @property
    def base_rates(self) -> Array:
        """The share of each group with label 1; shape ``(G,)``."""
        return np.array([values @ masses for values, masses in self.scores.values()])

    @property
    def calibration(self) -> fairness.PredictiveValues:
        """The constraint under which calibrated scores lead to the predictions, in each group."""
        return fairness.PredictiveValues(positive=self.upper, negative=1 - self.lower)

    @property
    def parity(self) -> fairness.Notion | None:
        """The constraint on the rates: `constraint`, or equal odds; None if a relaxation takes its place."""
        return self.constraint or (fairness.EqualizedOdds() if self.relaxation is None else None)

    # -- rates and loss --------------------------------------------------------------------------------------

    def rates(self, accepted: Any) -> fairness.GroupRates:
        """The rates of predictions.

        Parameters
        ----------
        accepted : Any
            For each value of each group in turn, the probability of predicting 1; numbers or an expression,
            shape ``(sum of N,)``.
        """
        scores = zip(self.shares, self.scores.values(), strict=True)
        blocks = [share * mass * np.array([1 - values, values]) for share, (values, mass) in scores]
        mass = np.array([block.sum(axis=1) for block in blocks])
        positives = sp.csr_array(sp.block_diag(blocks)) @ accepted
        return fairness.GroupRates(positives.reshape(len(self.groups), 2), mass, self.groups)

    def loss(self, rates: fairness.GroupRates) -> Any:
        """The expected loss: k for a false positive, 1 for a false negative (equation (13)).

        With a relaxation, and costs of differences of the rates (equation (20)).
        """
        errors = self.cost_ratio * rates.total(((0, 0), (1, 0))).sum() + rates.total(((0, 1), (0, 0))).sum()
        if self.relaxation is None:
            return errors
        first, second = np.triu_indices(len(self.groups), 1)
        pairs = np.eye(len(self.groups))[first] - np.eye(len(self.groups))[second]
        false, true = rates.rate(fairness.FALSE_POSITIVE), rates.rate(fairness.TRUE_POSITIVE)
        differences = np.kron([[1.0], [0.0]], pairs) @ false + np.kron([[0.0], [1.0]], pairs) @ true
        return errors + quad_form(differences, np.kron(self.relaxation, np.eye(len(first))))

    def evaluate(self, decision: CalibratedScores) -> Evaluation:
        """Evaluate new scores by their predictions.

        Returns
        -------
        Evaluation
            The expected loss; violations for each rate of the constraint (disparity above tolerance), for
            ``"calibration of ..."`` each group (the expected distance of its score from the share with label
            1) and for ``"interval"`` (how many have a score that some possible cutoff would classify
            otherwise); as metrics the rates of each group and the mean squared errors.
        """
        if tuple(decision.kernels) != self.groups:
            theirs, ours = ", ".join(decision.kernels), ", ".join(self.groups)
            raise DeclarationError(f"the decision is for groups {theirs}, not {ours}")
        accepted, within, found, metrics = [], 0.0, {}, {}
        for (name, k), share in zip(decision.kernels.items(), self.shares, strict=True):
            if not np.array_equal(k.values, self.scores[name][0]):
                raise DeclarationError(f"the decision is for another score of group {name!r}")
            accepted.append(k.accepted(self.cutoff))
            near = np.abs(k.outputs - self.cutoff) < self.interval - ROUNDING
            within += float(share * k.joint[:, near].sum())
            found[f"calibration of {name}"] = k.calibration_error
            metrics[f"squared error of {name}"] = k.total_error
            metrics[f"added squared error of {name}"] = k.added_error
        rates = self.rates(np.concatenate(accepted))
        if self.parity is not None:
            found |= self.parity.violation(rates)
        found["interval"] = within
        for rate in (fairness.FALSE_POSITIVE, fairness.TRUE_POSITIVE):
            values = zip(self.groups, rates.rate(rate), strict=True)
            metrics |= {f"{rate.name} of {g}": float(v) for g, v in values}
        broken = {name: v for name, v in found.items() if v > FEASIBILITY_TOLERANCE}
        return Evaluation(float(self.loss(rates)), broken, metrics)

    # -- stage 2 ---------------------------------------------------------------------------------------------

    def transport(self, group: str, target: Any, outputs: Any = None) -> CalibratedTransport:
        """Stage 2 for a group: meet these rates, with these new scores only if `outputs` are given."""
        own: dict[str, Any] = {name: getattr(self, name) for name in ("cutoff", "interval", "margin")}
        return CalibratedTransport(score=self.scores[group], target=target, outputs=outputs, **own)

    def transported(
        self, targets: Mapping[str, Any], backend: str | None = None, deadline: Deadline | None = None
    ) -> CalibratedScores:
        """Solve stage 2 for all groups.

        Parameters
        ----------
        targets : Mapping[str, Any]
            The false and true positive rate of each group.
        backend : str, optional
            For the linear programs; the default one if left out.
        deadline : Deadline, optional
            The clock of the run; no time limit if left out.

        Raises
        ------
        BackendError
            If no scores are found although they exist, with the backend's message.
        TimeoutError
            If the time limit passes.
        """
        kernels = {}
        clock = deadline or Deadline()
        for name, target in targets.items():
            s = self.transport(name, target).solve(backend=backend, time_limit=clock.left)
            if s.status is Status.LIMIT:
                raise TimeoutError(f"{s.message} in stage 2, for group {name!r}")
            if s.decision is None:
                why = f"{s.status}: {s.message or s.reason}"
                raise BackendError(f"stage 2 for group {name!r} at rates {np.asarray(target)} ends {why}")
            kernels[name] = s.decision
        return self.decision(kernels)

    def decision(self, kernels: Mapping[str, ScoreKernel]) -> CalibratedScores:
        """New scores for all groups, with this problem's cutoff and shares."""
        return CalibratedScores(dict(kernels), self.cutoff, dict(zip(self.groups, self.shares, strict=True)))

    # -- exact geometry --------------------------------------------------------------------------------------

    @cached_property
    def _exact(self) -> dict[str, tuple[list[Fraction], list[Fraction]]]:
        return {
            name: ([simplest_fraction(p) for p in values], [simplest_fraction(s) for s in masses])
            for name, (values, masses) in self.scores.items()
        }

    def _chains(self, deadline: Deadline | None = None) -> dict[str, list[Point]]:
        """Give the exact ROC curve of each group."""
        known: dict[str, list[Point]] = self.__dict__.setdefault("_rocs", {})
        for name in self.groups:
            check_time(deadline, "stage 1")
            if name not in known:
                known[name] = roc(*self._exact[name])
        return known

    @cached_property
    def _exact_base_rates(self) -> dict[str, Fraction]:
        scores = self._exact.items()
        return {name: Fraction(sum(map(mul, *score))) / sum(score[1]) for name, score in scores}

    def _exact_cutoffs(self, margin: float | None) -> tuple[Fraction, Fraction]:
        cutoff, interval = simplest_fraction(self.cutoff), simplest_fraction(self.interval)
        distance = simplest_fraction(self.margin if margin is None else margin)
        return cutoff - max(interval, distance), cutoff + interval

    @cached_property
    def _exact_loss(self) -> Point:
        """The cost of a unit of the common false positive rate, and of a unit of the true positive rate."""
        shares = [simplest_fraction(w) for w in self.shares]
        base = sum(map(mul, shares, self._exact_base_rates.values()), Fraction(0)) / sum(shares)
        cutoff = simplest_fraction(self.cutoff)
        return cutoff / (1 - cutoff) * (1 - base), -base

    def feasible_region(
        self, *, calibrated: bool = True, margin: float | None = None, deadline: Deadline | None = None
    ) -> FeasibleRegion:
        """Give all attainable equal error rates, as an exact polygon (Theorem 4).

        Every number of the declaration is read as a fraction of small denominator that rounds to it, if any.

        Parameters
        ----------
        calibrated : bool, default True
            With scores that are calibrated within each group; else with any predictions.
        margin : float, optional
            Instead of the declared one; 0 gives the closure, whose rates need not all be attained.
        deadline : Deadline, optional
            The clock of the run; no time limit if left out.

        Raises
        ------
        TimeoutError
            If the time limit passes.

        Examples
        --------
        >>> p = CalibratedEqualErrors(
        ...     scores={"L": ([0.2, 0.6], [0.5, 0.5]), "H": ([0.4, 0.8], [0.5, 0.5])}, cutoff=0.5
        ... )
        >>> [" ".join(map(str, vertex)) for vertex in p.feasible_region(margin=0).vertices]
        ['2/5 3/5', '4/19 9/19', '4/13 9/13', '10/19 15/19']
        """
        chains = self._chains(deadline)
        lower, upper = self._exact_cutoffs(margin)
        half_planes: dict[tuple[str, str], HalfPlane] = {}
        for name, base in self._exact_base_rates.items() if calibrated else ():
            at_zero, at_one = ((-cut * (1 - base), (1 - cut) * base) for cut in (upper, lower))
            half_planes[name, fairness.POSITIVE_PREDICTIVE.name] = (*at_zero, Fraction(0))
            half_planes[name, fairness.NEGATIVE_PREDICTIVE.name] = (*at_one, -sum(at_one, Fraction(0)))
        return FeasibleRegion.build(chains, half_planes, deadline)

    def best_rates(self, deadline: Deadline | None = None) -> Point | None:
        """Give the equal rates of the least loss, in exact fractions; None if the region is empty.

        This solves stage 1 in closed form: it takes the best vertex of the feasible region.

        Parameters
        ----------
        deadline : Deadline, optional
            The clock of the run; no time limit if left out.

        Raises
        ------
        DeclarationError
            If the constraint is not equal odds, or there is a relaxation.
        TimeoutError
            If the time limit passes.
        """
        if self.relaxation is not None or self.parity != fairness.EqualizedOdds():
            raise DeclarationError("the polygon holds equal rates only: EqualizedOdds(0), no relaxation")
        region = self.feasible_region(deadline=deadline)
        return None if region.is_empty else region.minimize(*self._exact_loss)

    def apex(self, margin: float | None = None) -> Point | None:
        """Give the intersection of the two lines of calibration (equation (12)); None if they are parallel.

        They bound the rates at which the group of the lowest base rate has the predictive value that the
        cutoff needs among the records predicted 1, and of the highest among the records predicted 0.

        Parameters
        ----------
        margin : float, optional
            Instead of the declared one.
        """
        lower, upper = self._exact_cutoffs(margin)
        low, high = min(self._exact_base_rates.values()), max(self._exact_base_rates.values())
        # (1 - upper) low y = upper (1 - low) x  and  (1 - lower) high (1 - y) = lower (1 - high) (1 - x)
        a, b = upper * (1 - low), (1 - upper) * low
        c, d = lower * (1 - high), (1 - lower) * high
        determinant = a * d - b * c
        return None if determinant == 0 else (b * (d - c) / determinant, a * (d - c) / determinant)

    def infeasibility_reason(self) -> str:
        """Why no calibrated scores have equal error rates, by Corollary 5; empty if some do.

        They exist if the cutoff (with interval and margin) is above all base rates, so that nobody need be
        accepted; or below all of them; or if no group's ROC curve passes below the `apex`. (The paper also
        admits a cutoff at the largest base rate. But then refusing everybody needs a score that is below
        the cutoff and equal to it.) O(N).
        """
        lower, upper = self._exact_cutoffs(None)
        rates = self._exact_base_rates.values()
        if max(rates) <= lower or min(rates) >= upper:
            return ""
        apex = self.apex()
        assert apex is not None  # now the lines' slopes lie on either side of 1
        for name, chain in self._chains().items():
            height = value_at(chain, [apex[0]])[0]
            if height < apex[1]:
                x, least, reached = (f"{float(value):.6g}" for value in (*apex, height))
                needs = f"at a false positive rate of {x} calibration needs a true positive rate of {least}"
                return f"{needs} at least, and the scores of {name!r} reach {reached}"
        return ""


def demands(problem: CalibratedEqualErrors) -> fairness.Notion:
    """All constraints of stage 1 on the rates."""
    parity, calibration = problem.parity, problem.calibration
    return calibration if parity is None else fairness.AllOf(notions=(parity, calibration))


@dataclass(frozen=True, eq=False)
class Recalibration(PolicyFile):
    """A raw score cut into bins; in each group, each bin counts as its share with label 1.

    (Rounding scores down to the end of their bin, as in appendix A.8 of the paper, does not calibrate them.)

    Attributes
    ----------
    edges : Array
        Between the bins, ascending; a score on an edge belongs to the bin above; shape ``(B - 1,)``.
    people : Mapping[str, Array]
        The number of people of each group in each bin, shape ``(B,)``.
    positive : Mapping[str, Array]
        The number of these people with label 1.

    References
    ----------
    Reich and Vijaykumar (2021), Remark 6.

    Examples
    --------
    >>> r = Recalibration.fit([1, 1, 2, 2, 1, 1, 2, 2], list("aaaabbbb"), [0, 1, 1, 1, 0, 0, 0, 1], edges=[2])
    >>> r.transform([1, 2, 5], ["a", "a", "b"]).tolist()
    [0.5, 1.0, 0.5]
    >>> r.problem(cutoff=0.5).scores["b"].tolist()
    [[0.0, 0.5], [0.5, 0.5]]
    """

    edges: Array
    people: Mapping[str, Array]
    positive: Mapping[str, Array]

    @classmethod
    def fit(cls, scores: Any, groups: Any, labels: Any, *, bins: int = 20, edges: Any = None) -> Self:
        """Count records of a sample.

        Parameters
        ----------
        scores : Any
            Raw, larger for label 1, of any scale.
        groups : Any
            The group of each record.
        labels : Any
            0 or 1 for each record.
        bins : int, default 20
            Cut at the quantiles of the scores of all groups into this many bins, or fewer where many scores
            are the same.
        edges : Any, optional
            Cut there instead.

        Raises
        ------
        DeclarationError
            For columns of different length or other values.
        """
        raw, actual = as_numbers(scores, "scores"), read_binary(labels, "labels")
        CalibratedEqualErrors.check_channel("groups", groups)
        codes, names = read_groups(groups)
        same_length(scores=raw, groups=codes, labels=actual)
        if edges is None:
            require(bins >= 1, "bins", bins, "be at least 1")
            edges = np.quantile(raw, np.arange(1, bins) / bins, method="higher")
        cuts = np.unique(as_numbers(edges, "edges"))
        counts = np.zeros((2, len(names), len(cuts) + 1), dtype=np.int64)
        np.add.at(counts, (actual, codes, np.searchsorted(cuts, raw, side="right")), 1)
        people, positive = (dict(zip(names, t, strict=True)) for t in (counts.sum(axis=0), counts[1]))
        return cls(cuts, people, positive)

    def to_dict(self) -> dict[str, Any]:
        """Edges and counts as plain data."""
        tables = (self.people, self.positive)
        people, positive = ({n: np.asarray(c).tolist() for n, c in t.items()} for t in tables)
        return {"edges": np.asarray(self.edges).tolist(), "people": people, "positive": positive}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The recalibration of plain data."""
        tables = ({n: np.asarray(c) for n, c in data[field].items()} for field in ("people", "positive"))
        return cls(numbers_from_plain(data["edges"]), *tables)

    def transform(self, scores: Any, groups: Any) -> Array:
        """The calibrated score of each record, by its group and bin.

        Raises
        ------
        DeclarationError
            For a group that the sample did not have, or not in that bin.
        """
        names = tuple(self.people)
        raw = as_numbers(scores, "scores")
        codes, _ = read_groups(groups, names)
        same_length(scores=raw, groups=codes)
        place = np.searchsorted(self.edges, raw, side="right")
        people = np.array([self.people[name] for name in names])[codes, place]
        if (people == 0).any():
            at = int(np.argmax(people == 0))
            raise DeclarationError(
                f"scores[{at}] is {raw[at]:g}, in a bin where the sample has nobody of group "
                f"{names[codes[at]]!r}; take fewer bins"
            )
        return np.asarray(np.array([self.positive[name] for name in names])[codes, place] / people)

    def problem(self, **fields: Any) -> CalibratedEqualErrors:
        """Calibrated scores of these groups, weighted by their shares of the sample.

        Parameters
        ----------
        fields : Any
            The other fields of the declaration, such as ``cutoff``.
        """
        counts = {name: (self.people[name], self.positive[name]) for name in self.people}
        return CalibratedEqualErrors.from_counts(counts, **fields)
