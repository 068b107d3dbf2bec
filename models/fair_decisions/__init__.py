"""Fair decisions on counts: seats, coverage and grants, and the effect of noise for privacy on them.

Pujol, McKenna, Kuppam, Hay, Machanavajjhala, Miklau: Fair decision making using privacy-protected data,
FAT* 2020.
"""

from forcopt.models.fair_decisions import seat_methods  # noqa: F401  (register the methods)
from forcopt.models.fair_decisions.apportionment import Apportionment, Criterion, Seats
from forcopt.models.fair_decisions.audits import audit
from forcopt.models.fair_decisions.coverage import CoverageDecision, CoverageRule, DecisionTable, Nested
from forcopt.models.fair_decisions.dawa import Dawa
from forcopt.models.fair_decisions.grants import FormulaGrant, GrantRule
from forcopt.models.fair_decisions.noise_laws import (
    clipped_mean,
    expected_shares,
    laplace_sum_quantile,
    laplace_sum_tail,
)
from forcopt.models.fair_decisions.noisy_seats import rounded_seat_probabilities

__all__ = [
    "Apportionment",
    "CoverageDecision",
    "CoverageRule",
    "Criterion",
    "Dawa",
    "DecisionTable",
    "FormulaGrant",
    "GrantRule",
    "Nested",
    "Seats",
    "audit",
    "clipped_mean",
    "expected_shares",
    "laplace_sum_quantile",
    "laplace_sum_tail",
    "rounded_seat_probabilities",
]
