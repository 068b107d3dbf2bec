"""The declaration: many counts, answered with independent or joint noise; the worst error counts."""

from __future__ import annotations

from math import exp, log
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from forcopt.errors import DeclarationError, require
from forcopt.models.counting_queries.tolerances import DELTA_SLACK
from forcopt.privacy import AdditiveMechanism, KNorm, Noise, TabulatedNoise
from forcopt.privacy.tolerances import EXPONENT, SMALLEST
from forcopt.problem import Evaluation, Problem
from forcopt.problem.drawing import Sketch


class CountingQueries(Problem):
    """The noise of least error for k counts under (epsilon, delta)-differential privacy.

    One person changes each count by at most 1. The decision is a law of noise: an even, log-concave
    `forcopt.privacy.Noise`, drawn for each count independently, or the joint law `KNorm`. The objective is
    the mean of the largest error among the k, or of one error.

    Parameters
    ----------
    queries : int
        k, at least 1.
    epsilon : float
        Above 0.
    delta : float
        From 0 to below 1.
    error : {"max", "mean"}
        ``E max_i |x_i|`` or ``E |x_i|``.
    whole : bool
        Whether the noise must be an integer.

    Raises
    ------
    DeclarationError
        For fields out of range.

    Notes
    -----
    The loss of an even log-concave law grows with the shift of each coordinate, the others being given, so
    that the worst change is all ones, and the privacy profile is the profile of a k-fold composition.

    References
    ----------
    Ganesh and Zhao (2021), Privately answering counting queries with generalized Gaussian mechanisms.

    Examples
    --------
    >>> from forcopt.models import CountingQueries
    >>> p = CountingQueries(queries=64, epsilon=1.0, delta=1 / 64)
    >>> s = p.solve()
    >>> round(s.decision.shape, 2), round(s.objective, 3)
    (2.88, 34.076)
    """

    family: ClassVar[str] = "counting"
    default_method: ClassVar[str] = "shape-search"

    queries: int = Field(ge=1, strict=True)
    epsilon: float = Field(gt=0.0, allow_inf_nan=False)
    delta: float = Field(default=0.0, ge=0.0, lt=1.0)
    error: Literal["max", "mean"] = "max"
    whole: bool = False

    def log_delta(self, law: Noise | KNorm) -> float:
        """The logarithm of the delta that goes with `epsilon`, also where delta itself underflows.

        The deviation of the table of a secure draw is counted, for a noise that is drawn from one.
        """
        self._check(law)
        if isinstance(law, KNorm):
            return law.profile(1.0).log_delta(self.epsilon)
        value = (law.profile(1.0) ** self.queries).log_delta(self.epsilon)
        if law.total_variation > 0:
            table = log(law.total_variation * self.queries) + float(np.logaddexp(0.0, self.epsilon))
            value = min(0.0, float(np.logaddexp(value, table)))
        return value

    def expected_error(self, law: Noise | KNorm) -> float:
        """The mean of the largest error, or of one error, by quadrature."""
        self._check(law)
        if isinstance(law, KNorm):
            return law.expected_max(self.queries) if self.error == "max" else law.expected_abs(self.queries)
        return law.expected_max(self.queries if self.error == "max" else 1)

    def _sketch(self, decision: Any, evaluation: Evaluation) -> Any:
        which = {"max": "The largest", "mean": "The mean"}.get(self.error, f"The {self.error}")
        return Sketch(f"{which} error of {self.queries} counts is {evaluation.objective:.4g} on average")

    def evaluate(self, decision: Noise | KNorm) -> Evaluation:
        """Evaluate a law of noise.

        Parameters
        ----------
        decision : Noise or KNorm
            A law.

        Returns
        -------
        Evaluation
            The error; the violation ``"privacy"``: delta over the allowed one, relatively (for delta 0, the
            largest loss of the law over epsilon, without the deviation of its table); metrics
            ``"log delta"``, ``"max"`` and ``"mean"``.

        Raises
        ------
        DeclarationError
            For a law that is not even and log-concave, so that its worst change is not known, or not whole
            where it must be.
        """
        log_delta = self.log_delta(decision)
        if self.delta > 0:
            excess = exp(min(log_delta - log(self.delta), EXPONENT)) - 1
        else:
            count = 1 if isinstance(decision, KNorm) else self.queries
            excess = (decision.profile(1.0) ** count).largest_loss / self.epsilon - 1
        violations = {"privacy": excess} if excess > DELTA_SLACK else {}
        errors = {error: self.replace(error=error).expected_error(decision) for error in ("max", "mean")}
        metrics = {"log delta": log_delta, **errors}
        return Evaluation(metrics[self.error], violations, metrics)

    def mechanism(self, law: Noise) -> AdditiveMechanism:
        """The mechanism that adds independent draws of a law to the counts.

        ``(query >> p.mechanism(law)).release(ledger)`` answers a query of a `forcopt.privacy.Table` with as
        many counts, of which one person changes each by at most 1.

        Raises
        ------
        DeclarationError
            For a law that is not private enough, and for joint noise.
        """
        if broken := self.evaluate(law).violations:
            raise DeclarationError(f"the law is not private enough: delta is {broken['privacy']:.3g} over")
        if isinstance(law, KNorm):
            raise DeclarationError("KNorm is joint noise; draw from it with sample")
        return AdditiveMechanism(noise=law, sensitivity=1.0, norm="linf", dimension=self.queries)

    def _check(self, law: Noise | KNorm) -> None:
        require(isinstance(law, Noise | KNorm), "the decision", law, "be a noise of forcopt.privacy")
        if self.whole and (isinstance(law, KNorm) or not law.whole):
            raise DeclarationError(f"{type(law).__name__} is real noise; whole=True needs whole noise")
        if isinstance(law, TabulatedNoise):
            p, values = law.probabilities, law.values
            if law.not_log_concave is not None:
                raise DeclarationError(f"the law is not log-concave at {law.not_log_concave}: worst unknown")
            if values[0] != -values[-1] or not np.allclose(p, p[::-1], rtol=1e-9, atol=SMALLEST):
                raise DeclarationError("the table is not even, so that all ones need not be the worst change")
