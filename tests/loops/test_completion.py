"""Points of which some variables are given."""

import numpy as np
import pytest

import forcopt as fo
from forcopt.loops.certify.certify import completed
from forcopt.status import Status


def facilities():
    """Open facilities, which costs 3 each, and serve four clients from them."""
    m = fo.Model("facilities")
    opened = m.variable("opened", 2, binary=True)
    serve = m.variable("serve", (4, 2), lower=0)
    m.subject_to(serve.sum(axis=1) == 1, serve <= opened)
    m.minimize(3 * opened.sum() + (np.arange(8.0).reshape(4, 2) * serve).sum())
    return m


@pytest.mark.parametrize(("given", "value"), [([1, 0], 3 + 0 + 2 + 4 + 6), ([0, 1], 3 + 1 + 3 + 5 + 7)])
def test_the_other_columns_are_the_best_for_the_given_ones(given, value):
    m = facilities()
    solution, feasible = completed(m, {m["opened"]: given}, facilities)
    assert feasible and solution.model is m
    assert solution[m["opened"]].tolist() == given
    assert m.objective.stages[0].expression.evaluate(solution.point) == pytest.approx(value)


def test_given_values_without_a_completion_are_infeasible():
    m = facilities()
    solution, feasible = completed(m, {m["opened"]: [0, 0]}, facilities)
    assert not feasible and solution.status == Status.INFEASIBLE


def test_a_point_given_in_full_is_kept_without_a_solver():
    m = fo.Model()
    x = m.variable("x", 2)
    length = fo.norm(x)
    m.minimize(length)
    solution, feasible = completed(m, {x: [3.0, 4.0]}, lambda: pytest.fail("written again"))
    assert feasible and solution[x].tolist() == [3.0, 4.0]
    assert solution[length] == pytest.approx(5.0)
