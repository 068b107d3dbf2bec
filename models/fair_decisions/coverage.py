"""Threshold coverage: the rule, its exact rates under noise, the declaration, and deciders."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import scipy
from pydantic import Field, model_validator

from forcopt.arrays import Array, FrozenArrays, as_numbers, check_shape
from forcopt.clock import Deadline
from forcopt.declaration import Declared, Numbers
from forcopt.errors import DeclarationError, require, require_shape
from forcopt.language.model import Model
from forcopt.models.fair_decisions.grants import laplace_scale
from forcopt.models.fair_decisions.tolerances import DUST, MARGIN, RATE_ROOM
from forcopt.privacy.mechanism import AdditiveMechanism, Mechanism
from forcopt.privacy.profile import Profile
from forcopt.privacy.randomness import Randomness
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Handles, Outcome, Problem
from forcopt.problem.drawing import Sketch

if TYPE_CHECKING:
    from pandas import DataFrame


_REACH = 42.0
"""Scales of the noise beyond which it has probability below 1e-18."""

_HALF = np.array([0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 11.0, 15.0, 20.0, 28.0, _REACH])
_GRID = np.concatenate([-_HALF[::-1], [0.0], _HALF])
_STEEP = np.array([-20.0, -6.0, -2.0, 0.0, 2.0, 6.0, 20.0])
"""Around the threshold in percent, where the passing probability changes (1 - p) / p times as fast."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)
_ROWS_AT_ONCE = 64

_CUTS = (-3, -2, -1.5, -1, -0.6, -0.3, 0, 0.5, 1, 2, 3, 5, 8)
"""Of a table by default: fine near the thresholds, wide far from them."""


class Nested(Mechanism):
    """Noise on the differences of nested counts (D-Laplace): each person is in one difference only.

    Parameters
    ----------
    mechanism : AdditiveMechanism
        The noise on each difference.

    References
    ----------
    Pujol et al. (2020), Appendix A.1.

    Examples
    --------
    >>> from forcopt.privacy import AdditiveMechanism, Laplace
    >>> Nested(AdditiveMechanism(Laplace(epsilon=0.5))).profile().epsilon(0.0)
    0.5
    """

    mechanism: AdditiveMechanism

    def profile(self, distance: int = 1) -> Profile:
        """See `Mechanism`."""
        return self.mechanism.profile(distance)

    def total_variation(self, output: Any) -> float:
        """See `Channel`."""
        return self.mechanism.total_variation(output)

    def _send(self, values: Any, rng: Randomness) -> Any:
        """See `Channel`: nested counts from the largest to the smallest along the last axis."""
        x = as_numbers(values, "values")
        parts = np.concatenate([x[..., :-1] - x[..., 1:], x[..., -1:]], axis=-1)
        noisy = np.asarray(self.mechanism._send(parts, rng))
        return np.cumsum(noisy[..., ::-1], axis=-1)[..., ::-1].copy()


class CoverageRule(Declared):
    """Who must get ballots in another language, by counts of citizens.

    Covered: ``limited > percent * base`` or ``limited > absolute``; and ``illiterate > literacy * limited``.
    Section 203 of the Voting Rights Act, cross-multiplied, so that it is defined for noisy counts too.

    Attributes
    ----------
    percent, absolute, literacy : float
        The thresholds.
    base : Literal["citizens", "group"], default "citizens"
        Of whom `percent` is taken: all citizens of voting age, as in the law and the Census file, or those of
        the language group, as Pujol et al. print.

    Examples
    --------
    >>> rule = CoverageRule()
    >>> rule.decide([[1000, 50, 5], [1000, 51, 5], [300000, 10001, 1000]]).tolist()
    [False, True, True]
    """

    percent: float = Field(default=0.05, gt=0.0, lt=1.0)
    absolute: float = Field(default=10_000.0, ge=0.0, allow_inf_nan=False)
    literacy: float = Field(default=0.0131, gt=0.0, lt=1.0)
    base: Literal["citizens", "group"] = "citizens"

    def decide(self, counts: Any) -> Array:
        """Whether each row ``(base, limited, illiterate)`` is covered; shape ``(...,)`` for ``(..., 3)``."""
        first, second = self.margins(counts)
        return np.asarray((first > 0) & (second > 0))

    def margins(self, counts: Any) -> tuple[Array, Array]:
        """How far counts are above the thresholds, in standard deviations of noise of scale 1 on each part.

        Returns
        -------
        tuple[Array, Array]
            Of the literacy test; and of the better of the other two. Both are positive if covered.
        """
        x = as_numbers(counts, "counts")
        require_shape(x.shape[-1:] == (3,), "counts have", x, "be (..., 3): base, limited, illiterate")
        base, limited, illiterate = np.moveaxis(x, -1, 0)
        one, two, three = self.deviations
        return (illiterate - self.literacy * limited) / one, np.maximum(
            (limited - self.percent * base) / two, (limited - self.absolute) / three
        )

    @property
    def deviations(self) -> tuple[float, float, float]:
        """Standard deviations of the three margins' linear forms, for variance 2 of each noise."""
        r, p = self.literacy, self.percent
        return (float(np.sqrt(2 * ((1 - r) ** 2 + r**2))), float(np.sqrt(2 * (2 * (1 - p) ** 2 + p**2))), 2.0)

    def counts_at(self, first: Any, second: Any) -> Array:
        """Counts, not nested in general, with these margins of the literacy and of the percent threshold.

        Parameters
        ----------
        first, second : array_like
            Shape ``(...,)``, see `margins`.

        Returns
        -------
        Array
            Rows ``(base, limited, illiterate)`` whose `limited` is 0, shape ``(..., 3)``.
        """
        one, two, _ = self.deviations
        f, s = np.broadcast_arrays(np.asarray(first, dtype=float), np.asarray(second, dtype=float))
        return np.stack([-s * two / self.percent, np.zeros(f.shape), f * one], axis=-1)

    def distance(self, counts: Any) -> tuple[float, Array]:
        """Give the distance of counts to the other side of the rule, and the nearest point there.

        Parameters
        ----------
        counts : array_like
            One row ``(base, limited, illiterate)``; need not be nested.

        Returns
        -------
        tuple[float, Array]
            Euclidean distance in persons, and the nearest counts on the boundary, shape ``(3,)``.

        Notes
        -----
        The nearest point need not be nested or at least 0. Covered counts cross the literacy threshold, or
        both thresholds on limited speakers; others reach the literacy threshold together with one of the two.

        References
        ----------
        Pujol et al. (2020), Figure 1. Lawson and Hanson: Solving Least Squares Problems, 1974, chapter 23.

        Examples
        --------
        >>> round(CoverageRule().distance([1000, 100, 10])[0], 5)
        8.68925
        """
        x = as_numbers(counts, "counts")
        require_shape(x.shape == (3,), "counts have", x, "be (3,): base, limited, illiterate")
        covered = bool(self.decide(x))
        literacy = np.array([0.0, -self.literacy, 1.0])
        percent, absolute = np.array([-self.percent, 1.0, 0.0]), np.array([0.0, 1.0, 0.0])
        if covered:
            sides = [([-literacy], [0.0]), ([-percent, -absolute], [0.0, -self.absolute])]
        else:
            sides = [([literacy, percent], [0.0, 0.0]), ([literacy, absolute], [0.0, self.absolute])]
        found = []
        for rows, least in sides:
            step = _shortest(np.array(rows), np.array(least) - np.array(rows) @ x)
            found.append((float(np.linalg.norm(step)), x + step))
        return min(found, key=lambda item: item[0])

    def rates(self, counts: Any, scale: float, first: float = 0.0, second: float = 0.0) -> Array:
        """Give the exact probability that both noisy margins exceed cuts, under `Nested` noise.

        Parameters
        ----------
        counts : array_like
            Rows ``(base, limited, illiterate)``, shape ``(k, 3)``; noisy counts need not be nested.
        scale : float
            Of Laplace noise, above 0.
        first, second : float, default 0
            Cuts, in standard deviations, see `margins`; with 0 the probability of coverage.

        Returns
        -------
        Array
            Shape ``(k,)``.

        Raises
        ------
        DeclarationError
            For counts of another shape, or a scale that is not above 0.

        Notes
        -----
        Given the noisy number of limited speakers l, both other noises have closed laws. One integral
        over l remains, computed by Gauss and Legendre's rule on stretches between the kinks.

        Examples
        --------
        >>> CoverageRule().rates([[800, 60, 5], [0, 0, 0]], 10.0).round(4).tolist()
        [0.6443, 0.3714]
        """
        x = as_numbers(counts, "counts")
        _check_shape(x)
        size = as_numbers(scale, "scale")
        require(not size.shape and size > 0, "scale", scale, "be a number above 0")
        return self.joint_rates(x, scale, [first], [second])[:, 0, 0]

    def joint_rates(self, counts: Any, scale: float, first: Any, second: Any) -> Array:
        """`rates` for all pairs of some cuts of the two margins at once, shape ``(k, m, n)``."""
        f, s = np.maximum(first, -1e9), np.maximum(second, -1e9)
        x = as_numbers(counts, "counts") / scale
        one, two, three = self.deviations
        parts = [
            self._rates(x[i : i + _ROWS_AT_ONCE], scale, f * one, s * two, s * three)
            for i in range(0, len(x), _ROWS_AT_ONCE)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, len(f), len(s)))

    def _rates(self, x: Array, scale: float, lows: Array, above: Array, far: Array) -> Array:
        """In units of the scale: illiterate - r l > low, and l - p base > above or l > absolute + far."""
        r, p, limits = self.literacy, self.percent, self.absolute / scale + far
        q1, q2, q3 = (part[:, None] for part in (x[:, 2], x[:, 1] - x[:, 2], x[:, 0] - x[:, 1]))
        center = q1 + q2
        steep = (((p * q3 + above) / (1 - p))[:, :, None] + p / (1 - p) * _STEEP).reshape(len(x), -1)
        kinks = [center + _GRID, steep, (q1 - lows) / r, (q2 + lows) / (1 - r), limits + 0 * q1]
        ends = np.sort(np.clip(np.concatenate(kinks, axis=1), center - _REACH, center + _REACH), axis=1)
        half = np.diff(ends, axis=1)[:, :, None] / 2
        limited = (ends[:, :-1, None] + half + half * _NODES).reshape(len(x), -1)
        weights = (half * _WEIGHTS).reshape(len(x), -1)
        v = limited - q2
        least, most = np.minimum(q1, v), np.maximum(q1, v)
        apart = np.exp(least - most)
        density = np.empty((len(x), len(lows), limited.shape[1]))
        for i, low in enumerate(lows):  # of the noisy number together with illiterate > r limited + low
            c = r * limited + low
            density[:, i] = apart * (most - np.clip(c, least, most))
            density[:, i] += np.exp(q1 + v - 2 * np.maximum(c, most)) / 2
            density[:, i] += np.where(c < least, apart - np.exp(2 * np.minimum(c, least) - q1 - v), 0.0) / 2
        density *= weights[:, None, :] / 4
        passes = np.empty((len(x), len(above), limited.shape[1]))
        for j, (cut, limit) in enumerate(zip(above, limits, strict=True)):
            room = ((1 - p) * limited - cut) / p - q3
            tail = np.exp(-np.abs(room)) / 2
            passes[:, j] = np.where(limited > limit, 1.0, np.where(room < 0, tail, 1 - tail))
        return np.asarray(density @ passes.transpose(0, 2, 1))


def _shortest(rows: Array, least: Array) -> Array:
    """The shortest vector with ``rows @ vector >= least``, by the residual of nonnegative least squares."""
    unit = float(np.abs(least).max()) or 1.0
    both = np.vstack([rows.T, least / unit])
    goal = np.append(np.zeros(rows.shape[1]), 1.0)
    residual = both @ scipy.optimize.nnls(both, goal)[0] - goal
    return np.asarray(-residual[:-1] / residual[-1] * unit)


def _check_shape(counts: Array) -> None:
    fits = counts.ndim == 2 and counts.shape[1] == 3
    require_shape(fits, "counts have", counts, "be (k, 3): base, limited, illiterate")


@dataclass(frozen=True, eq=False)
class DecisionTable(FrozenArrays):
    """With which probability noisy counts are covered, by their two standardised margins.

    Attributes
    ----------
    first, second : Array
        Cuts of the margins, increasing; shapes ``(m,)`` and ``(n,)``.
    values : Array
        Probabilities, shape ``(m + 1, n + 1)``: entry ``(i, j)`` is for margins above i and j cuts.

    Examples
    --------
    >>> from forcopt.models import CoverageDecision
    >>> from forcopt.models.fair_decisions import Nested
    >>> from forcopt.privacy import AdditiveMechanism, Laplace
    >>> noise = Nested(AdditiveMechanism(Laplace(epsilon=1.0)))
    >>> counts = [[800, 60, 5], [400, 21, 1], [3000, 100, 5], [400, 19, 2]]
    >>> p = CoverageDecision(counts, mechanism=noise, holds_for="given")
    >>> round(p.evaluate(p.solve().decision).metrics["least rate"], 6) >= p.least_rate
    True
    """

    first: Array
    second: Array
    values: Array = field(repr=False)

    @property
    def monotone(self) -> bool:
        """Whether larger margins never lower the probability."""
        return bool((np.diff(self.values, axis=0) >= 0).all() and (np.diff(self.values, axis=1) >= 0).all())

    def __repr__(self) -> str:
        return f"<a decision table of {self.values.shape[0]} x {self.values.shape[1]} probabilities>"


class CoverageDecision(Problem):
    """Decide on coverage from noisy counts, so that each covered jurisdiction is likely to stay covered.

    The decision is a `DecisionTable`. The objective is the expected number of the given jurisdictions that
    are covered by mistake; the smallest probability of a truly covered one has to be `least_rate`.

    Attributes
    ----------
    counts : Numbers
        Public or past counts, rows ``(base, limited, illiterate)``, nested; shape ``(k, 3)``.
    mechanism : Nested
        With Laplace noise.
    rule : CoverageRule, optional
        Section 203 by default.
    least_rate : float, default 0.8
        Within [0, 1).
    holds_for : {"every", "given"}, default "every"
        Whose probability has to be `least_rate`: that of every jurisdiction that the rule covers, whatever
        its counts; or only of the given ones. A decider for the given counts covers fewer by mistake, but
        its least rate is no promise for fresh counts.
    first_cuts, second_cuts : Numbers, optional
        Of tables that a method chooses, in standard deviations of the noisy margins.
    confidential : bool, default False
        True is refused: a decider that is tuned on confidential counts is itself a release of them.

    Raises
    ------
    DeclarationError
        Naming the field, the value and the rule; the jurisdiction whose counts are not nested.

    Notes
    -----
    The noisy margins are the true ones plus noise whose law does not depend on the counts. So the rate under
    a monotone table never falls in any margin, and its infimum over all covered counts is the limit at one of
    two corners of the covered region, `corners`: all thresholds are met exactly, but for the weaker one of
    the two on limited speakers, which is missed by far. Rates at the corners are continuous; a monotone table
    with `least_rate` there has it for every covered jurisdiction.

    References
    ----------
    Pujol, McKenna, Kuppam, Hay, Machanavajjhala, Miklau: Fair decision making using privacy-protected data.
    FAT* 2020, sections 4 and A.

    Examples
    --------
    >>> from forcopt.models import CoverageDecision
    >>> from forcopt.models.fair_decisions import Nested
    >>> from forcopt.privacy import AdditiveMechanism, Laplace
    >>> noise = Nested(AdditiveMechanism(Laplace(epsilon=1.0)))
    >>> counts = [[800, 60, 5], [400, 21, 1], [3000, 100, 5], [400, 19, 2]]
    >>> p = CoverageDecision(counts, mechanism=noise, holds_for="given")
    >>> standard, table = p.solve("standard"), p.solve()
    >>> round(standard.evaluation.metrics["least rate"], 4), table.evaluation.feasible
    (0.6506, True)
    >>> round(p.replace(holds_for="every").solve("standard").evaluation.metrics["least rate"], 4)
    0.3714
    """

    family: ClassVar[str] = "decisions"
    default_method: ClassVar[str] = "decision-table"

    counts: Numbers
    mechanism: Nested
    rule: CoverageRule = Field(default_factory=CoverageRule)
    least_rate: float = Field(default=0.8, ge=0.0, lt=1.0)
    holds_for: Literal["every", "given"] = "every"
    first_cuts: Numbers = Field(default=_CUTS, validate_default=True)
    second_cuts: Numbers = Field(default=_CUTS, validate_default=True)
    confidential: bool = False

    @model_validator(mode="after")
    def _fits(self) -> Self:
        x = self.counts
        if self.confidential:
            raise DeclarationError(
                "confidential is True; a decider tuned on confidential counts is itself a release of them. "
                "Tune on public or past counts"
            )
        _check_shape(x)
        if not len(x):
            raise DeclarationError("counts are of no jurisdiction; there must be at least one")
        wrong = (x[:, 2] < 0) | (x[:, 2] > x[:, 1]) | (x[:, 1] > x[:, 0])
        if wrong.any():
            at = int(np.argmax(wrong))
            raise DeclarationError(
                f"counts of jurisdiction {at} are {x[at].tolist()}; they must be nested, "
                "0 <= illiterate <= limited <= base"
            )
        for name in ("first_cuts", "second_cuts"):
            cuts = getattr(self, name)
            if cuts.ndim != 1 or (np.diff(cuts) <= 0).any():
                raise DeclarationError(f"{name} are {cuts.tolist()}; they must increase")
        laplace_scale(self.mechanism.mechanism)
        return self

    @classmethod
    def from_table(cls, table: DataFrame, mechanism: Nested, **fields: Any) -> Self:
        """Declare the rows of a Census file of determinations that have all counts.

        Parameters
        ----------
        table : DataFrame
            With columns ``citizens``, ``group_citizens``, ``limited_english`` and ``illiterate``.
        mechanism : Nested
            See the class.
        fields : Any
            Other fields; ``rule.base`` names the column of the base.
        """
        rule = fields.get("rule", CoverageRule())
        base = "citizens" if rule.base == "citizens" else "group_citizens"
        columns = [base, "limited_english", "illiterate"]
        return cls(counts=table[columns].dropna().to_numpy(), mechanism=mechanism, **fields)

    # -- derived from the fields -------------------------------------------------------------------------

    @property
    def scale(self) -> float:
        """Of the Laplace noise on each part."""
        return laplace_scale(self.mechanism.mechanism)

    @cached_property
    def covered(self) -> Array:
        """Which jurisdictions are truly covered, shape ``(k,)``."""
        return self.rule.decide(self.counts)

    @cached_property
    def corners(self) -> Array:
        """Where the rate of a monotone table has its infimum over all covered counts, shape ``(2, 3)``.

        They lie on the boundary of the covered region: the first meets the threshold in percent with counts
        of 0, the second the absolute one among very many citizens.
        """
        rule = self.rule
        far = 2 * _REACH * self.scale / rule.percent
        limited = rule.absolute
        return np.array([[0.0, 0.0, 0.0], [limited / rule.percent + far, limited, rule.literacy * limited]])

    @property
    def guarded(self) -> Array:
        """Counts whose rate must be `least_rate`: `corners`, or those of the given covered jurisdictions."""
        return self.corners if self.holds_for == "every" else self.counts[self.covered]

    def table(self, first: Any, second: Any, values: Any) -> DecisionTable:
        """The decision with these cuts and probabilities; probabilities are clipped to [0, 1]."""
        f, s = as_numbers(first, "the first cuts"), as_numbers(second, "the second cuts")
        v = as_numbers(values, "the values")
        check_shape(v, (len(f) + 1, len(s) + 1), "the values")
        return DecisionTable(f.copy(), s.copy(), np.clip(v, 0.0, 1.0))

    def cell_probabilities(self, first: Any, second: Any, counts: Any = None) -> Array:
        """Exact probabilities of each cell of a table, shape ``(k, m + 1, n + 1)``; default `counts`."""
        x = self.counts if counts is None else as_numbers(counts, "counts")
        cuts = [np.r_[-np.inf, np.asarray(c, dtype=float)] for c in (first, second)]
        above = np.zeros((len(x), len(cuts[0]) + 1, len(cuts[1]) + 1))
        above[:, :-1, :-1] = self.rule.joint_rates(x, self.scale, *cuts)
        cells = -np.diff(above, axis=1)
        return np.asarray(np.maximum(-np.diff(cells, axis=2), 0.0))

    @cached_property
    def own_cells(self) -> Array:
        """`cell_probabilities` for the problem's cuts."""
        return self.cell_probabilities(self.first_cuts, self.second_cuts)

    def rates(self, decision: DecisionTable, counts: Any = None) -> Array:
        """The exact probability that each jurisdiction is covered, shape ``(k,)``; of `counts` by default."""
        own = (
            counts is None
            and np.array_equal(decision.first, self.first_cuts)
            and np.array_equal(decision.second, self.second_cuts)
        )
        cells = self.own_cells if own else self.cell_probabilities(decision.first, decision.second, counts)
        return np.asarray(np.clip(np.einsum("kij,ij->k", cells, decision.values), 0.0, 1.0))

    def decide(self, noisy: Any, decision: DecisionTable) -> Array:
        """The probability with which each row of noisy counts is covered, shape ``(k,)``."""
        first, second = self.rule.margins(noisy)
        i = np.searchsorted(decision.first, first / self.scale)
        j = np.searchsorted(decision.second, second / self.scale)
        return np.asarray(decision.values[i, j])

    def _sketch(self, decision: Any, evaluation: Evaluation) -> Any:
        facts = evaluation.metrics
        least = facts.get("least rate of the given", facts["least rate"])
        title = f"{facts['covered']:.4g} of {len(self.counts)} must be covered, each at a rate of {least:.3g}"
        rows, columns = (
            [f"{at} below {cuts[0]:g}", *(f"from {cut:g}" for cut in cuts)]
            for at, cuts in (("first", decision.first), ("second", decision.second))
        )
        return Sketch(title, decision.values, rows, columns, "probability of cover")

    def evaluate(self, decision: DecisionTable) -> Evaluation:
        """Evaluate a decider by its exact rates.

        Parameters
        ----------
        decision : DecisionTable
            See `table`.

        Returns
        -------
        Evaluation
            The expected number of false positives; the violations ``"least rate"`` and, if it has to hold
            for every covered jurisdiction, ``"monotone"``; as metrics the smallest rate of those for which it
            has to hold, that of the given covered ones, the share of these with a rate above .95, and how
            many there are.
        """
        if not isinstance(decision, DecisionTable):
            raise DeclarationError("the decision must be a DecisionTable, see table()")
        rates = self.rates(decision)
        covered = rates[self.covered]
        guarded = covered if self.holds_for == "given" else self.rates(decision, self.guarded)
        least = float(guarded.min(initial=1.0))
        metrics = {
            "least rate": least,
            "least rate of the given": float(covered.min(initial=1.0)),
            "covered": float(len(covered)),
        }
        if len(covered):
            metrics["above .95"] = float((covered > 0.95).mean())
        short = self.least_rate - least
        violations = {"least rate": short} if short > FEASIBILITY_TOLERANCE else {}
        if self.holds_for == "every" and not decision.monotone:
            violations["monotone"] = 1.0
        return Evaluation(float(rates[~self.covered].sum()), violations, metrics)


@CoverageDecision.algorithm("standard", cites="Pujol et al. (2020), Table 1", rank="published")
def standard(problem: CoverageDecision, *, time_limit: float | None = None) -> Outcome:
    """Apply the rule to the noisy counts as if they were exact."""
    return Outcome(_corner(problem, 0.0, 0.0))


@CoverageDecision.algorithm(
    "margins", cites="moved thresholds; Pujol et al. (2020), section 4.3", rank="published"
)
def margins(problem: CoverageDecision, *, directions: int = 5, time_limit: float | None = None) -> Outcome:
    """Lower both thresholds by some standard deviations of the noise: the best of a few directions.

    Parameters
    ----------
    directions : int, default 5
        How many ratios of the two thresholds are tried; along each, the least distance that reaches the
        least rate is found by bisection.
    """
    deadline = Deadline(time_limit)
    best: tuple[float, DecisionTable] | None = None
    counts = problem.guarded

    def least(distance: float, angle: float) -> float:
        x, y = -distance * np.cos(angle), -distance * np.sin(angle)
        rates = problem.rule.rates(counts, problem.scale, x, y)
        return float(rates.min(initial=1.0)) - problem.least_rate - RATE_ROOM

    for angle in np.linspace(0.05, np.pi / 2 - 0.05, directions):
        if best is not None and deadline.passed:
            break
        reach = 1.0
        while least(reach, angle) < 0:
            reach *= 2
        enough = least(0.0, angle) >= 0
        distance = 0.0 if enough else scipy.optimize.brentq(least, 0.0, reach, args=(angle,), xtol=MARGIN)
        while not enough and least(distance, angle) < 0:
            distance += MARGIN
        found = _corner(problem, -distance * np.cos(angle), -distance * np.sin(angle))
        value = problem.evaluate(found).objective
        if best is None or value < best[0]:
            best = value, found
    assert best is not None
    return Outcome(best[1])


@CoverageDecision.formulation("decision-table", cites="linear program over monotone tables")
def decision_table(problem: CoverageDecision, model: Model) -> Handles:
    """Choose the probability of coverage in each cell of a table of the two margins, monotone in both.

    It is the best of the monotone tables with the problem's cuts, which bounds no other table. Without
    monotonicity a table with fine cells
    would memorise where the true counts are.

    Returns
    -------
    Handles
        ``values``, shape ``(m + 1, n + 1)``; ``rates`` of the counts that must have the least rate.
    """
    cells = np.where(problem.own_cells < DUST, 0.0, problem.own_cells)
    d = model.variable(model.unused_name("values"), cells.shape[1:], lower=0, upper=1)
    model.subject_to(d[1:, :] >= d[:-1, :], d[:, 1:] >= d[:, :-1], name=model.unused_name("monotone"))
    guarded = problem.cell_probabilities(problem.first_cuts, problem.second_cuts, problem.guarded)
    rates = np.where(guarded < DUST, 0.0, guarded).reshape(len(guarded), d.size) @ d.reshape(-1)
    if len(guarded):
        model.subject_to(rates >= problem.least_rate, name=model.unused_name("least_rate"))
    return Handles(
        objective=(d * cells[~problem.covered].sum(axis=0)).sum(),
        decision=lambda result: problem.table(problem.first_cuts, problem.second_cuts, _sorted(result[d])),
        start=lambda table: {d: table.values},
        restricts=True,
        values=d,
        rates=rates,
    )


@CoverageDecision.algorithm("posterior", cites="Pujol et al. (2020), section 4.3", rank="published")
def posterior(problem: CoverageDecision, *, cuts: int = 16, time_limit: float | None = None) -> Outcome:
    """Cover where the posterior probability of coverage, under a flat prior, exceeds a threshold.

    The largest threshold is taken that reaches the least rate. The posterior depends on the noisy margins; it
    is rounded to the centers of the cells of a fine table, where the absolute threshold is far.

    Parameters
    ----------
    cuts : int, default 16
        Of each margin, between -4 and 4 standard deviations.
    """
    ends = np.linspace(-4.0, 4.0, cuts)
    centers = np.concatenate([[ends[0] - 0.5], (ends[:-1] + ends[1:]) / 2, [ends[-1] + 0.5]])
    first, second = np.meshgrid(centers, centers, indexing="ij")
    noisy = problem.rule.counts_at(first.ravel() * problem.scale, second.ravel() * problem.scale)
    belief = problem.rule.replace(absolute=1e9 * problem.scale).rates(noisy, problem.scale)
    belief = _sorted(belief.reshape(first.shape))
    cells = problem.cell_probabilities(ends, ends, problem.guarded).reshape(-1, belief.size)
    levels = np.unique(belief)
    low, high = 0, len(levels)  # covered from levels[low] on is enough; from `high` on it is not
    while high - low > 1:
        middle = (low + high) // 2
        enough = (cells @ (belief >= levels[middle]).ravel() >= problem.least_rate + RATE_ROOM).all()
        low, high = (middle, high) if enough else (low, middle)
    values = (belief >= levels[low]).astype(float)
    rows, columns = (np.diff(values, axis=axis).any(axis=1 - axis) for axis in (0, 1))  # cuts that matter
    kept = values[np.r_[True, rows]][:, np.r_[True, columns]]
    return Outcome(problem.table(ends[rows], ends[columns], kept))


def _sorted(values: Array) -> Array:
    """Monotone up to the solver's rounding: now exactly."""
    return np.asarray(np.maximum.accumulate(np.maximum.accumulate(values, axis=0), axis=1))


def _corner(problem: CoverageDecision, first: float, second: float) -> DecisionTable:
    return problem.table([first], [second], [[0.0, 0.0], [0.0, 1.0]])
