"""What a problem makes of an answer whose objective is not what the model says."""

from types import SimpleNamespace

import pytest

import forcopt as fo
from forcopt.problem import Evaluation, Handles
from forcopt.problem.solution import disagreement


def verdict(evaluated, claimed, bound, status, sense="min", violations=None):
    x = fo.Model().variable("x")
    solution = SimpleNamespace(objective=claimed, bound=bound, status=status)
    return disagreement(Evaluation(evaluated, violations or {}), solution, Handles(x, None), sense)


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


class Even(fo.Problem):
    """An even number; a method of its own claims an odd one."""

    family = "test"
    default_method = "odd"

    def evaluate(self, decision):
        return Evaluation(float(decision), {"evenness": float(decision % 2)})


@Even.algorithm("odd", exact=True)
def odd(problem):
    """Return 3."""
    return fo.Outcome(3)


def test_an_algorithm_that_breaks_a_demand_is_not_optimal():
    s = Even().solve()
    assert s.status == "failed" and "violates evenness by 1" in s.message
    assert s.bound == float("-inf")
