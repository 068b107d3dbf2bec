"""The guarantees, from private answers to answers true of the population, and the best free constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, expm1, inf, sqrt
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from forcopt.arrays import as_numbers
from forcopt.errors import DeclarationError
from forcopt.models.adaptive_queries.data_models import DataModel
from forcopt.models.adaptive_queries.tolerances import EXCEEDED
from forcopt.privacy.tolerances import EXPONENT
from forcopt.problem import Evaluation, Outcome, Problem


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
        if not valid:
            raise DeclarationError(f"{name} is {value}; it must be {rule}")
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
        raise DeclarationError(
            f"share is {share}, records {records}, deviation {deviation}; they must be from 0 to 1, at least "
            "1, and above 0"
        )
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
            raise DeclarationError(
                f"counts: class {label} has no records, so that its answer has no guarantee"
            )
    weights = n / n.sum()
    return float(values[n > 0] @ weights[n > 0])


@dataclass(frozen=True)
class Split:
    """The constants c and d of the transfer theorem.

    Attributes
    ----------
    c, d : float
        Above 0, with a sum below the error.
    """

    c: float
    d: float


class TransferSplit(Problem):
    """Choose the constants of the transfer theorem: least ``c + 2 d`` with ``A / c + B / d <= failure``.

    Attributes
    ----------
    A : float
        The multiplicity times beta, at least 0.
    B : float
        The multiplicity times K times delta, at least 0.
    failure : float
        The failure probability that is allowed, above 0.

    Raises
    ------
    DeclarationError
        If A and B are both 0, or a number is out of its range.

    References
    ----------
    The constants of Theorems 9, 10, 12, 14 and 17 of Du and Dwork (2022).

    Examples
    --------
    >>> from forcopt.models import TransferSplit
    >>> s = TransferSplit(A=1e-4, B=1e-6, failure=0.05).solve()
    >>> round(s.objective, 10), round(s.decision.c, 10)
    (0.0026056854, 0.0022828427)
    """

    family: ClassVar[str] = "queries"
    sense: ClassVar[Literal["min", "max"]] = "min"
    default_method: ClassVar[str] = "closed-form"

    A: float = Field(ge=0.0, allow_inf_nan=False)
    B: float = Field(ge=0.0, allow_inf_nan=False)
    failure: float = Field(gt=0.0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _has_terms(self) -> Self:
        if self.A == 0 == self.B:
            raise DeclarationError("A and B are both 0; there is nothing to split")
        return self

    def evaluate(self, decision: Split | Sequence[float]) -> Evaluation:
        """Give ``c + 2 d``; the violation is the failure above the allowed one, relatively.

        Parameters
        ----------
        decision : Split or pair of float
            c and d; 0 is allowed where A or B is 0.
        """
        c, d = (decision.c, decision.d) if isinstance(decision, Split) else map(float, decision)
        violations = {}
        if min(c, d) < 0:
            violations["sign"] = -min(c, d)
        missed = sum(
            0.0 if above == 0 else above / below if below > 0 else inf
            for above, below in ((self.A, c), (self.B, d))
        )
        over = missed / self.failure - 1
        if over > EXCEEDED:
            violations["failure"] = over
        return Evaluation(c + 2 * d, violations, {"failure": missed})


def best_split(a: Any, b: Any, failure: Any) -> tuple[Any, Any]:
    """The best c and d of `TransferSplit`, elementwise: ``s sqrt(A)`` and ``s sqrt(B / 2)``.

    With ``s = (sqrt(A) + sqrt(2 B)) / failure``; then ``c + 2 d`` is ``(sqrt(A) + sqrt(2 B))^2 / failure``.
    """
    s = (a**0.5 + (2 * b) ** 0.5) / failure
    return s * a**0.5, s * (b / 2) ** 0.5


@TransferSplit.algorithm("closed-form", exact=True, cites="Lagrange multipliers")
def closed_form(problem: TransferSplit, *, time_limit: float | None = None) -> Outcome:
    """Give the formula of `best_split`."""
    return Outcome(Split(*best_split(problem.A, problem.B, problem.failure)))
