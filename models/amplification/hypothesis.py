"""The best private test between two laws of a count: its declaration and its linear program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, field_validator, model_validator

from forcopt.arrays import Array, as_numbers
from forcopt.declaration import Numbers
from forcopt.errors import DeclarationError
from forcopt.language.model import Model
from forcopt.models.amplification.problem import check_law
from forcopt.privacy.tolerances import EXPONENT
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Handles, Problem

__all__ = ["DPHypothesisTest", "DPTest", "hypothesis_lp"]


@dataclass(frozen=True, eq=False)
class DPTest:
    """Answers "the first law" with a probability that depends on the count, shape ``(K + 1,)``.

    Attributes
    ----------
    acceptance : Array
        Shape ``(K + 1,)``: the probability of the answer for each count from 0 to K.

    Examples
    --------
    >>> DPTest(np.array([0.0, 0.5, 1.0]))
    DPTest([0.  0.5 1. ])
    """

    acceptance: Array

    def __repr__(self) -> str:
        return f"DPTest({np.array2string(self.acceptance, precision=6, threshold=12, edgeitems=4)})"


class DPHypothesisTest(Problem):
    """Distinguish two laws of a count by a test that is itself differentially private.

    It maximizes the advantage ``P("first" | first) - P("first" | second)`` over tests whose answer
    is epsilon-private if the count changes by one. If the size of a sample has these laws under neighbouring
    populations, the design cannot promise a loss below ``2 artanh(advantage)``: a mechanism of that loss is
    a test of just that advantage. Proposition 4 concludes ``log(1 + advantage)``, which is weaker.

    Attributes
    ----------
    first, second : Numbers
        The probability of each count 0..K, shape ``(K + 1,)``.
    epsilon : float
        The loss of the test, if the count changes by one.

    Raises
    ------
    DeclarationError
        For probabilities that do not sum to 1, or of different length.

    References
    ----------
    Bun, Drechsler, Gaboardi, McMillan, Sarathy (2022), Proposition 4.

    Examples
    --------
    >>> from forcopt.models import DPHypothesisTest
    >>> s = DPHypothesisTest(first=[0, 0.6, 0.4], second=[0, 0.5, 0.5], epsilon=1.0).solve()
    >>> round(s.objective, 6), round(s.evaluation.metrics["loss"], 6)
    (0.046212, 0.092489)
    """

    family: ClassVar[str] = "amplification"
    sense: ClassVar[Literal["min", "max"]] = "max"
    default_method: ClassVar[str] = "lp"

    first: Numbers
    second: Numbers
    epsilon: float = Field(gt=0.0, allow_inf_nan=False)

    @field_validator("first", "second")
    @classmethod
    def _is_law(cls, law: Array) -> Array:
        return check_law(law)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(self.first) != len(self.second):
            raise DeclarationError(
                f"first has {len(self.first)} counts, second {len(self.second)}; the numbers must be equal"
            )
        return self

    def made_private(self, acceptance: Array) -> Array:
        """Move probabilities that a solver got right up to its tolerance just as far as privacy needs."""
        h, factor = np.clip(acceptance, 0.0, 1.0), np.exp(-self.epsilon)
        for order in (range(1, len(h)), range(len(h) - 2, -1, -1)):
            step = order.step
            for i in order:
                h[i] = max(h[i], factor * h[i - step])
        for order in (range(1, len(h)), range(len(h) - 2, -1, -1)):
            step = order.step
            for i in order:
                h[i] = min(h[i], 1 - factor * (1 - h[i - step]))
        return h

    def evaluate(self, decision: DPTest | Any) -> Evaluation:
        """Evaluate a test: its advantage, and by how much it breaks privacy.

        Parameters
        ----------
        decision : DPTest or Any
            A test, or its acceptance probabilities.

        Returns
        -------
        Evaluation
            The advantage; the violations ``"privacy"`` (in probability) and ``"probability"``; as metrics the
            loss that the advantage certifies, and the one that Proposition 4 concludes.
        """
        h = as_numbers(decision.acceptance if isinstance(decision, DPTest) else decision, "the test")
        if h.shape != self.first.shape:
            raise DeclarationError(f"the test has shape {h.shape}; it must be {self.first.shape}")
        factor = np.exp(-self.epsilon)
        both = np.stack([h, 1 - h])  # 1 - h is known up to 2^-53
        excess = np.maximum(factor * both[:, 1:] - both[:, :-1], factor * both[:, :-1] - both[:, 1:])
        violations = {
            "privacy": max(0.0, float(excess.max(initial=0.0)) - 2.0**-52)
            * np.exp(min(self.epsilon, EXPONENT)),
            "probability": max(float(-h.min()), float(h.max()) - 1),
        }
        advantage = float(h @ (self.first - self.second))
        within = min(max(advantage, 0.0), 1.0)
        with np.errstate(divide="ignore"):
            loss = float(2 * np.arctanh(within))
        return Evaluation(
            advantage,
            {name: v for name, v in violations.items() if v > FEASIBILITY_TOLERANCE},
            {"loss": loss, "loss by Proposition 4": float(np.log1p(within))},
        )


@DPHypothesisTest.formulation("lp", exact=True, cites="Bun et al. (2022), Proposition 4")
def hypothesis_lp(problem: DPHypothesisTest, model: Model) -> Handles:
    """One probability for each count, four rows for each two neighbouring counts.

    Returns
    -------
    Handles
        ``acceptance``, shape ``(K + 1,)``.
    """
    h = model.variable(model.unused_name("acceptance"), len(problem.first), lower=0, upper=1)
    factor = np.exp(-problem.epsilon)
    for answer in (h, 1 - h):
        model.subject_to(
            factor * answer[1:] <= answer[:-1],
            factor * answer[:-1] <= answer[1:],
            name=model.unused_name("privacy"),
        )
    return Handles(
        objective=(h * (problem.first - problem.second)).sum(),
        decision=lambda result: DPTest(problem.made_private(result[h])),
        start=lambda test: {h: test.acceptance if isinstance(test, DPTest) else test},
        acceptance=h,
    )
