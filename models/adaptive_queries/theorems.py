"""The guarantees, from private answers to answers true of the population, and the best free constants."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1, sqrt
from typing import Any

from forcopt.arrays import as_numbers
from forcopt.errors import DeclarationError, require
from forcopt.models.adaptive_queries.data_models import DataModel
from forcopt.privacy.tolerances import EXPONENT


@dataclass(frozen=True)
class Guarantee:
    """All answers are within `alpha` of the population's values, except with probability `beta`.

    Attributes
    ----------
    alpha : float
        The error.
    beta : float
        The failure probability.
    """

    alpha: float
    beta: float

    @property
    def vacuous(self) -> bool:
        """Whether it holds trivially: the error or the probability is at least 1."""
        return self.alpha >= 1 or self.beta >= 1


def transfer(alpha: float, beta: float, epsilon: float, delta: float, c: float, d: float) -> Guarantee:
    """The transfer theorem for (epsilon, delta)-private answers to linear queries on independent records.

    Parameters
    ----------
    alpha, beta : float
        All answers are within alpha of the sample's values, except with probability beta.
    epsilon, delta : float
        The privacy loss of all answers together.
    c, d : float
        Free constants, above 0; 0 is allowed where beta or delta is 0.

    Returns
    -------
    Guarantee
        Error ``alpha + e^epsilon - 1 + c + 2 d``, probability ``beta / c + delta / d``.

    Raises
    ------
    DeclarationError
        For a number outside of its range.

    References
    ----------
    Jung, Ligett, Neel, Roth, Sharifi-Malvajerdi, Shenfeld (2019), Theorem 3.5; quoted as Theorem 9 by Du and
    Dwork (2022).

    Examples
    --------
    >>> g = transfer(0.05, 1e-4, epsilon=0.1, delta=1e-6, c=0.01, d=0.001)
    >>> round(g.alpha, 10), round(g.beta, 10)
    (0.1671709181, 0.011)
    """
    return _transfer(alpha, beta, epsilon, delta, c, d, 1, 1, 0.0)


def guarantee(
    data_model: DataModel,
    alpha: float,
    beta: float,
    epsilon: float,
    delta: float,
    c: float,
    d: float,
    records: int = 1,
) -> Guarantee:
    """The guarantee of a data model, each of whose windows is answered as in `transfer`.

    Parameters
    ----------
    data_model : DataModel
        The data model.
    alpha, beta, epsilon, delta, c, d : float
        Of the answers on one block or window; see `transfer`.
    records : int, default 1
        The size n of the sample, which the dependence term needs.

    Returns
    -------
    Guarantee
        Error ``alpha + e^(K epsilon) - 1 + c + 2 d``, probability ``m (beta / c + K delta / d)`` and the
        dependence term, with K and m from the data model.

    References
    ----------
    Du and Dwork (2022), Theorems 10, 12, 14 and 17.

    Examples
    --------
    >>> from forcopt.models.adaptive_queries import IndependentBlocks
    >>> guarantee(IndependentBlocks(22), 0.05, 1e-6, 0.1, 1e-8, 0.01, 0.001).beta
    0.00242
    """
    k, m = data_model.privacy_factor, data_model.multiplicity
    return _transfer(alpha, beta, epsilon, delta, c, d, k, m, data_model.dependence_term(records))


def _transfer(
    alpha: float,
    beta: float,
    epsilon: float,
    delta: float,
    c: float,
    d: float,
    factor: int,
    multiplicity: int,
    dependence: float,
) -> Guarantee:
    for name, value, valid, rule in (
        ("alpha", alpha, alpha >= 0, "at least 0"),
        ("beta", beta, 0 <= beta <= 1, "from 0 to 1"),
        ("epsilon", epsilon, epsilon >= 0, "at least 0"),
        ("delta", delta, 0 <= delta < 1, "from 0 to below 1"),
        ("c", c, c > 0 or (c == 0 == beta), "above 0, or 0 where beta is 0"),
        ("d", d, d > 0 or (d == 0 == delta), "above 0, or 0 where delta is 0"),
    ):
        require(valid, name, value, f"be {rule}")
    missed = (beta / c if beta else 0.0) + (factor * delta / d if delta else 0.0)
    loss = factor * epsilon
    error = expm1(loss) if loss < EXPONENT else float("inf")
    return Guarantee(alpha + error + c + 2 * d, multiplicity * missed + dependence)


def label_split(
    alphas: Any, betas: Any, share: float, records: int, deviation: float, *, as_printed: bool = False
) -> Guarantee:
    """The guarantee for a sample that is split by a binary label and answered class by class.

    Parameters
    ----------
    alphas, betas : pair of float
        The guarantee of each class.
    share : float
        The probability p of class 0 in the population, from 0 to 1.
    records : int
        The size n of the sample, at least 1.
    deviation : float
        The free constant t, above 0: the sampled share is within ``t / sqrt(n)`` of p, except with
        probability ``2 e^(-2 t^2)``.
    as_printed : bool, default False
        Use the printed term ``t p / sqrt(n)``, which exact binomial probabilities refute.

    Returns
    -------
    Guarantee
        Error ``p alpha_0 + (1 - p) alpha_1 + t / sqrt(n)``. A class of share 0 has no term.

    References
    ----------
    Du and Dwork (2022), Theorem 15, corrected.

    Examples
    --------
    >>> round(label_split([0.05, 0.08], [0.01, 0.02], 0.3, 10_000, 1.5).alpha, 6)
    0.086
    """
    (a0, a1), (b0, b1) = as_numbers(alphas, "alphas").tolist(), as_numbers(betas, "betas").tolist()
    if not (0 <= share <= 1 and records >= 1 and deviation > 0):
        given = f"share is {share}, records {records}, deviation {deviation}"
        raise DeclarationError(f"{given}; they must be from 0 to 1, at least 1, and above 0")
    spread = deviation * (share if as_printed else 1.0) / sqrt(records)
    if share in (0, 1) and not as_printed:  # the share is known, and one class has no records
        return Guarantee(a0, b0) if share == 1 else Guarantee(a1, b1)
    return Guarantee(share * a0 + (1 - share) * a1 + spread, b0 + b1 + 2 * exp(-2 * deviation**2))


def combine_labels(answers: Any, counts: Any, *, share: float | None = None) -> float:
    """Combine the answers of a sample's two classes, weighted by their numbers of records.

    Parameters
    ----------
    answers : pair of float
        The answer on each class.
    counts : pair of int
        The number of records of each class.
    share : float, optional
        The probability of class 0 in the population, if it is known.

    Returns
    -------
    float
        The answer on the whole sample; with `share`, the estimate for the population.

    Raises
    ------
    DeclarationError
        If a class has no records, unless it is known to have none in the population: no guarantee holds for
        its answer.

    Examples
    --------
    >>> round(combine_labels([0.2, 0.6], [25, 75]), 12)
    0.5
    """
    values, n = as_numbers(answers, "answers"), as_numbers(counts, "counts")
    if values.shape != (2,) or n.shape != (2,) or (n < 0).any() or n.sum() <= 0:
        raise DeclarationError("answers and counts must be pairs; counts must not be negative or both 0")
    for label, empty in enumerate(n == 0):
        if empty and share != label:
            raise DeclarationError(f"counts: class {label} has no records, so its answer has no guarantee")
    weights = n / n.sum()
    return float(values[n > 0] @ weights[n > 0])


def best_split(a: Any, b: Any, failure: Any) -> tuple[Any, Any]:
    """The c and d of least ``c + 2 d`` with ``a / c + b / d <= failure``, elementwise.

    They are ``s sqrt(a)`` and ``s sqrt(b / 2)`` with ``s = (sqrt(a) + sqrt(2 b)) / failure``, by Lagrange
    multipliers; then ``c + 2 d`` is ``(sqrt(a) + sqrt(2 b))^2 / failure``.
    """
    s = (a**0.5 + (2 * b) ** 0.5) / failure
    return s * a**0.5, s * (b / 2) ** 0.5
