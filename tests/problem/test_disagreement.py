"""What a problem makes of an answer whose objective is not what the model says."""

from types import SimpleNamespace

import pytest

import forcopt as fo
from forcopt.problem import Evaluation, Handles
from forcopt.problem.solution import disagreement


def verdict(judged, said, bound, status, sense="min", violations=None):
    x = fo.Model().variable("x")
    solution = SimpleNamespace(objective=said, bound=bound, status=status)
    return disagreement(Evaluation(judged, violations or {}), solution, Handles(x, None), sense)


@pytest.mark.parametrize("sense", ["min", "max"])
def test_only_a_point_that_is_not_optimal_may_understate_its_decision(sense):
    sign = 1 if sense == "min" else -1
    optimal, feasible = fo.Status.OPTIMAL, fo.Status.FEASIBLE
    assert not verdict(sign * 31, sign * 31, sign * 31, optimal, sense)
    assert "evaluates the answer" in verdict(sign * 11, sign * 31, sign * 31, optimal, sense)
    assert not verdict(sign * 11, sign * 31, sign * 3, feasible, sense)  # columns were not pressed down
    assert "evaluates the answer" in verdict(sign * 31, sign * 11, sign * 3, feasible, sense)
    assert "evaluates the answer" in verdict(
        sign * 2, sign * 31, sign * 3, feasible, sense
    )  # beyond the bound
    assert "violates demand by 1" in verdict(sign, sign, sign, optimal, sense, {"demand": 1.0})
