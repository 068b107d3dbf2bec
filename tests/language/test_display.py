"""Models, constraints and expressions as text and LaTeX."""

import re

import numpy as np
import pytest

import forcopt as fo
from forcopt.language.display import (
    constraint_latex,
    constraint_text,
    element_text,
    expression_html,
    expression_latex,
    model_html,
    model_summary,
)


@pytest.fixture
def model():
    m = fo.Model("plan")
    m.variable("x", 3)
    m.variable("unit cost", (2, 2), integer=True)
    return m


@pytest.mark.parametrize("seed", range(10))
def test_the_text_of_a_sum_has_its_coefficients(model, seed):
    """The written sum is read back, and evaluated at a point."""
    rng = np.random.default_rng(seed)
    x, coefficients = model["x"], rng.integers(-3, 4, 3)
    text = element_text(coefficients @ x + 2)
    point = rng.integers(1, 9, 3)
    read = re.sub(r"(\d+) x\[", r"\1 * x[", text)
    assert eval(read, {"x": point.tolist()}) == coefficients @ point + 2


def test_the_bounds_of_a_row_are_on_its_sides(model):
    x = model["x"]
    assert constraint_text(x[0] + 2 * x[1] <= 4) == "x[0] + 2 x[1] <= 4"
    assert constraint_text(x[0] - x[1] + 1 >= 4) == "x[0] - x[1] >= 3"
    assert constraint_text(x == 1) == "x[0] == 1, ..."
    assert constraint_latex(x[0] + x[1] <= 4) == r"x_{0} + x_{1} \le 4"


def test_a_long_sum_is_cut(model):
    wide = fo.Model().variable("y", 100)
    assert element_text(wide.sum()).endswith("y[5] + ...")


def test_names_are_escaped(model):
    cost = model["unit cost"]
    m = fo.Model("<b>")
    z = m.variable("a_b", 2)
    assert expression_latex(z) == r"\mathrm{a\_b}_{0},\ \dots"
    assert r"10^{-7}" in expression_latex(1e-7 * z[0])
    assert "<b>" not in model_html(m)
    assert "and 10 more" in expression_html(fo.Model().variable("w", 16))
    assert element_text(cost[1, 0]) == "unit cost[1,0]"


def test_a_summary_counts_rows_columns_and_relations(model):
    x = model["x"]
    model.subject_to(x <= 4, x.sum() >= 1, fo.norm(x) <= 5)
    model.maximize(x[0])
    lines = dict(line.strip().split(None, 1) for line in model_summary(model).split("\n"))
    assert lines["model"] == "plan" and lines["relations"] == "1 norm_2" and lines["objective"] == "maximize"
    assert lines["rows"] == "5"
