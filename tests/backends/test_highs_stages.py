"""Integer programs in stages on which the presolve of HiGHS 1.13.1 is wrong; see `HighsSession`.

Version 1.16.0 is right on the first three, and wrong on the last.
"""

import cohort_oracle  # noqa: F401  (registers the oracle)
import numpy as np
import pytest
import strategic_oracle  # noqa: F401

from forcopt.models import LeximaxCohort, StrategicClassification

MANY_TIES = {
    "agents": 6,
    "criteria": 3,
    "edges": [
        *((2, 1, 0.3, 1), (0, 1, 0.5, 0), (1, 2, 0.3, 0), (5, 1, 0.3, 0), (1, 0, 0.0, 1), (1, 1, 2.0, 1)),
        *((4, 2, 2.0, 0), (4, 0, 0.3, 1), (2, 2, 1.0, 1)),
    ],
    "ties": "gaming",
    "zero_utility": "improve",
    "value": [2.0, 1.0, 1.0, 3.0, 1.0, 1.0],
    "max_false_positives": 1.0,
    "penalty": 2.0,
    "groups": [1, 2, 1, 1, 1, 0],
}
SMALL_WEIGHTS = {
    "agents": 5,
    "criteria": 2,
    "edges": [
        *((0, 0, 3.0, 1), (4, 1, 0.3, 1), (1, 1, 3.0, 1), (3, 1, 0.0, 1), (3, 0, 3.0, 1)),
        *((2, 1, 3.0, 1), (4, 0, 3.0, 1)),
    ],
    "ties": "listed",
    "zero_utility": "improve",
    "value": 0.3,
    "max_false_positives": 0.3,
    "weights": [1.0, 0.0, 0.1, 0.1, 0.1],
    "penalty": 0.5,
    "groups": [0, 2, 1, 1, 1],
}
MIXED_WEIGHTS = {
    "agents": 4,
    "criteria": 5,
    "edges": [
        *((0, 0, 3.0, 1), (0, 3, 0.3, 0), (3, 1, 2.0, 0), (2, 3, 3.0, 1), (1, 2, 1.0, 1)),
        *((2, 1, 0.0, 0), (2, 4, 0.0, 1), (1, 4, 0.0, 1), (3, 4, 3.0, 0)),
    ],
    "ties": "listed",
    "zero_utility": "refuse",
    "value": 2.0,
    "max_false_positives": 0.0,
    "weights": [0.1, 2.0, 0.1, 1.0],
    "penalty": 2.0,
    "groups": [1, 0, 0, 2],
}


@pytest.mark.parametrize("fields", [MANY_TIES, SMALL_WEIGHTS, MIXED_WEIGHTS])
def test_groups_get_what_enumeration_gives_them(fields):
    p = StrategicClassification(**fields)
    said = p.solve("milp", all_rows=True).decision, p.solve("enumeration").decision
    values = [np.sort(p.group_values(p.simulate(criteria))) for criteria in said]
    np.testing.assert_allclose(*values, atol=1e-9)


def test_ordered_values_end_at_the_optimum():
    utilities = [[0, 3, 2, 2], [0] * 4, [2, 2, 2, 1], [2, 1, 2, 1], [3, 3, 2, 3], [2, 0, 2, 2], [2, 2, 1, 2]]
    p = LeximaxCohort(utilities=utilities, size=3, integer=True)
    s = p.solve("ordered-values")
    assert s.status == "optimal"
    np.testing.assert_allclose(s.decision.levels, p.solve("brute-force").decision.levels, atol=1e-9)
