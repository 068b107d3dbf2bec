"""Rates of groups and calibration of a score, and a table of rates with confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array, as_numbers, check_entries
from forcopt.errors import DeclarationError, require
from forcopt.fairness.records import read_binary, read_groups, same_length
from forcopt.language.expression import Expression

Table = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Rate:
    """A conditional probability of a binary prediction, ``P(event | given)``.

    Both are sets of outcomes, as 0/1 tables indexed ``[prediction][label]``. A rate whose condition does not
    look at the prediction is linear in the predictor, so that it may be constrained (the moments of Agarwal
    et al. 2018); the others, such as precision, can be measured.

    Attributes
    ----------
    name : str
        In rows, metrics and tables.
    event, given : Table
        Shape ``(2, 2)``: 1 for the outcomes of the event and of the condition.

    Examples
    --------
    >>> POSITIVE_PREDICTIVE.is_linear, FALSE_POSITIVE.is_linear
    (False, True)
    """

    name: str
    event: Table
    given: Table

    @property
    def is_linear(self) -> bool:
        """Whether the rate is linear in the predictor."""
        return self.given[0] == self.given[1]


FALSE_POSITIVE = Rate("false positive rate", event=((0, 0), (1, 0)), given=((1, 0), (1, 0)))
"""P(prediction = 1 | label = 0)"""
TRUE_POSITIVE = Rate("true positive rate", event=((0, 0), (0, 1)), given=((0, 1), (0, 1)))
"""P(prediction = 1 | label = 1)"""
SELECTION = Rate("selection rate", event=((0, 0), (1, 1)), given=((1, 1), (1, 1)))
"""P(prediction = 1)"""
ERROR = Rate("error rate", event=((0, 1), (1, 0)), given=((1, 1), (1, 1)))
"""P(prediction != label)"""
POSITIVE_PREDICTIVE = Rate("positive predictive value", event=((0, 0), (0, 1)), given=((0, 0), (1, 1)))
"""P(label = 1 | prediction = 1), the precision"""
NEGATIVE_PREDICTIVE = Rate("negative predictive value", event=((1, 0), (0, 0)), given=((1, 1), (0, 0)))
"""P(label = 0 | prediction = 0)"""


@dataclass(frozen=True, eq=False)
class CountNoise:
    """A bound on the noise of counts, from which rates are taken.

    Attributes
    ----------
    bound : float
        On the noise of each count.
    counts : Array
        How many noisy counts each group has for either label, such as bins of a score; shape ``(K,)``.
    """

    bound: float
    counts: Array


@dataclass(frozen=True, eq=False)
class GroupRates:
    """The rates of a (randomised) binary predictor in each of K groups.

    Everything is a linear map of `positives`: an expression of a model gives rates that are expressions,
    numbers give numbers.

    Attributes
    ----------
    positives : Any
        How much of each cell (group, label) is predicted 1, in expectation; shape ``(K, 2)``.
    mass : Array
        How much there is in each cell: records, weights or probabilities; shape ``(K, 2)``.
    groups : tuple[str, ...], optional
        Their names; ``"0"``, ``"1"``, ... if left out.
    predicted : Any, optional
        The probability that each record is predicted 1, shape ``(n,)``, for notions that compare records;
        None if only the cells are known.
    noise : CountNoise, optional
        A bound on the noise of the counts, if they are noisy. Notions then relax their rows by as much as
        noise within the bound may move rates, so that each fair predictor stays feasible.
    counted : bool, default False
        Whether `mass` counts independent records, and the predictor remixes predictions or cuts a score that
        do not depend on them; then rates of the population are known up to a margin.

    Examples
    --------
    >>> r = GroupRates(positives=[[4, 16], [6, 20]], mass=[[40, 20], [15, 25]], groups=("a", "b"))
    >>> r.rate(FALSE_POSITIVE).tolist(), r.rate(TRUE_POSITIVE).tolist(), r.overall(ERROR).item()
    ([0.1, 0.4], [0.8, 0.8], 0.19)
    """

    positives: Any
    mass: Array
    groups: tuple[str, ...] = ()
    predicted: Any = None
    noise: CountNoise | None = None
    counted: bool = False

    def __post_init__(self) -> None:
        mass = as_numbers(self.mass, "mass")
        positives = self.positives
        if not isinstance(positives, Expression):
            positives = as_numbers(positives, "positives")
        if mass.ndim != 2 or mass.shape[1] != 2 or positives.shape != mass.shape:
            raise DeclarationError(
                f"positives has shape {positives.shape} and mass {mass.shape}; both must be (groups, 2)"
            )
        groups = tuple(self.groups) or tuple(str(a) for a in range(len(mass)))
        if len(groups) != len(mass):
            raise DeclarationError(f"{len(groups)} names are given for {len(mass)} groups")
        for name, value in (("mass", mass), ("positives", positives), ("groups", groups)):
            object.__setattr__(self, name, value)

    @classmethod
    def from_records(cls, predicted: Any, groups: Any, labels: Any, weights: Any = None) -> GroupRates:
        """Take records one by one.

        Parameters
        ----------
        predicted : Any
            The probability that each record is predicted 1, shape ``(n,)``: numbers or an expression, such as
            ``predictions @ mixture`` for a mixture of classifiers.
        groups : Any
            The group of each record, see `read_groups`.
        labels : Any
            0 or 1 for each record.
        weights : Any, optional
            Of the records; 1 each by default.

        Examples
        --------
        >>> GroupRates.from_records([1, 0.5, 0], ["a", "b", "b"], [1, 1, 0]).rate(SELECTION).tolist()
        [1.0, 0.25]
        """
        codes, names = read_groups(groups)
        actual = read_binary(labels, "labels")
        if not isinstance(predicted, Expression):
            predicted = as_numbers(predicted, "predicted")
            check_entries(predicted, (predicted < 0) | (predicted > 1), "predicted", "it must be from 0 to 1")
        weight = np.ones(len(codes)) if weights is None else as_numbers(weights, "weights")
        same_length(predicted=predicted, groups=codes, labels=actual, weights=weight)
        cells, records = codes * 2 + actual, np.arange(len(codes))
        cell_sums = sp.csr_array((weight, (cells, records)), shape=(2 * len(names), len(codes)))
        shape = (len(names), 2)
        mass = (cell_sums @ np.ones(len(codes))).reshape(shape)
        return cls((cell_sums @ predicted).reshape(shape), mass, names, predicted)

    def union(self, member: Array, names: tuple[str, ...]) -> GroupRates:
        """The rates of unions of groups: `member` says which groups belong to each, shape ``(unions, K)``."""
        union = member.astype(float)
        noise = None if self.noise is None else CountNoise(self.noise.bound, union @ self.noise.counts)
        positives, mass = union @ self.positives, union @ self.mass
        alone = bool((union.sum(axis=1) == 1).all())  # several thresholds cut the score of a union
        return GroupRates(positives, mass, names, self.predicted, noise, self.counted and alone)

    def total(self, outcomes: Table) -> Any:
        """How much of each group has one of these outcomes, a table as in `Rate`; shape ``(K,)``."""
        if_zero, if_one = (np.array(row, dtype=float) for row in outcomes)
        if (if_zero == if_one).all():
            return self.mass @ if_zero
        return self.mass @ if_zero + self.positives @ (if_one - if_zero)

    def rate(self, rate: Rate) -> Any:
        """A rate in each group, shape ``(K,)``.

        Raises
        ------
        DeclarationError
            If a group has nobody to take the rate over, naming the group and the labels.
        CurvatureError
            If the rate is not linear and the predictor is an expression.
        """
        given = self.total(rate.given)
        if not isinstance(given, Expression) and (given <= 0).any():
            raise DeclarationError(self._undefined(rate, int(np.argmax(given <= 0))))
        return self.total(rate.event) / given

    def slack(self, rate: Rate) -> Array:
        """By how much the noise may move a linear rate in each group, shape ``(K,)``; 0 without noise.

        Notes
        -----
        A rate over c cells is a mean of c probabilities, weighted by the counts. It lies between the least
        and the largest of them, so that c noises of at most N move it by at most (c - 1) N / (noisy records).
        """
        if self.noise is None:
            return np.zeros(len(self.mass))
        cells = self.noise.counts * int(np.sum(rate.given[0]))
        return np.asarray((cells - 1) * self.noise.bound / self.total(rate.given))

    def slack_of_weighted(self) -> Array:
        """By how much it may move a sum over a group with weights w for label 1 and w - 1 for label 0."""
        if self.noise is None:
            return np.zeros(len(self.mass))
        return np.asarray(self.noise.counts * self.noise.bound)

    def overall(self, rate: Rate) -> Any:
        """A rate in the whole population (the groups must not overlap); a scalar."""
        return self.total(rate.event).sum() / self.total(rate.given).sum()

    def named(self, *rates: Rate, end: str = "") -> dict[str, float]:
        """The rates of each group that has records for them, by name, with `end` before the group."""
        found: dict[str, float] = {}
        for rate in rates:
            shares = zip(self.groups, self.total(rate.event), self.total(rate.given), strict=True)
            found |= {f"{rate.name}{end} of {g}": float(k / n) for g, k, n in shares if n > 0}
        return found

    def defines(self, rate: Rate) -> bool:
        """Whether every group has somebody to take the rate over (for numbers)."""
        return bool((self.total(rate.given) > 0).all())

    def _undefined(self, rate: Rate, group: int) -> str:
        labels = [y for y in (0, 1) if rate.given[0][y] or rate.given[1][y]]
        which = f" with label {labels[0]}" if len(labels) == 1 else ""
        when = "" if rate.is_linear else " and such a prediction"
        return f"group {self.groups[group]!r} has no records{which}{when}, so its {rate.name} is undefined"


def calibration_gaps(joint: Any, values: Array, outputs: Array) -> Any:
    """By how much each output of a score differs from the share of label 1 among the records that get it.

    A score is calibrated within a group if all gaps are zero: of the people with output q, a share q has
    label 1.

    Parameters
    ----------
    joint : Any
        How much of the group has each old score (rows) and each output (columns), shape ``(N, M)``; numbers
        or an expression.
    values : Array
        The share of label 1 among the records of each old score, shape ``(N,)``.
    outputs : Array
        The outputs, shape ``(M,)``.

    Returns
    -------
    Any
        For each output the mass with label 1 minus output times mass, shape ``(M,)``.

    Examples
    --------
    >>> import numpy as np
    >>> joint = np.array([[0.25, 0.25], [0.0, 0.5]])
    >>> calibration_gaps(joint, np.array([0.2, 0.5]), np.array([0.2, 0.4])).round(9).tolist()
    [0.0, -0.0]
    """
    return values @ joint - outputs * joint.sum(axis=0)


STATED = {SELECTION: "acceptance", TRUE_POSITIVE: "true positive", FALSE_POSITIVE: "false positive"}
"""Rates that a certificate states, and their names there."""

EVERY = (SELECTION, ERROR, FALSE_POSITIVE, TRUE_POSITIVE, POSITIVE_PREDICTIVE, NEGATIVE_PREDICTIVE)


def binomial_interval(
    events: Any, trials: Any, confidence: float = 0.95, method: str = "clopper-pearson"
) -> tuple[Array, Array]:
    """Two-sided confidence intervals for probabilities, from counts.

    Parameters
    ----------
    events, trials : array_like
        How often the event happened, and how often it could; of one shape.
    confidence : float, default 0.95
        The probability with which the interval holds the true one.
    method : str, default "clopper-pearson"
        ``"clopper-pearson"`` is for counts of independent events; ``"chernoff"`` also for sums of independent
        numbers from 0 to 1, such as probabilities. Both cover with at least the confidence.

    Returns
    -------
    tuple[Array, Array]
        Lower and upper ends; 0 and 1 without a trial.

    Raises
    ------
    DeclarationError
        For a confidence that is not strictly between 0 and 1, or another method.

    References
    ----------
    Clopper and Pearson (1934); Hoeffding (1963), Theorem 1, for ``"chernoff"``.

    Examples
    --------
    >>> low, high = binomial_interval([0, 8], [10, 10])
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0, 0.4439], [0.3085, 0.9748])
    """
    from scipy.stats import beta

    require(0.0 < confidence < 1.0, "confidence", confidence, "be strictly between 0 and 1")
    k, n = np.asarray(events, dtype=float), np.asarray(trials, dtype=float)
    tail = (1.0 - confidence) / 2.0
    if method == "clopper-pearson":
        low = np.where(k > 0, beta.ppf(tail, np.maximum(k, 1), n - k + 1), 0.0)
        high = np.where(k < n, beta.ppf(1.0 - tail, k + 1, np.maximum(n - k, 1)), 1.0)
    elif method == "chernoff":
        share = np.clip(k / np.maximum(n, 1), 0.0, 1.0)
        allowed = -np.log(tail) / np.maximum(n, 1)
        low, high = 1.0 - _farthest(1.0 - share, allowed), _farthest(share, allowed)
    else:
        raise DeclarationError(f"the method is {method!r}; it must be 'clopper-pearson' or 'chernoff'")
    nobody = n == 0
    return np.where(nobody, 0.0, low), np.where(nobody, 1.0, high)


def _farthest(share: Array, allowed: Array) -> Array:
    """The largest p whose relative entropy from `share` is at most `allowed`, rounded up, by bisection."""
    from scipy.special import rel_entr

    low, high = share, np.ones_like(share)
    for _ in range(60):
        p = (low + high) / 2
        within = rel_entr(share, p) + rel_entr(1.0 - share, 1.0 - p) <= allowed
        low, high = np.where(within, p, low), np.where(within, high, p)
    return high
