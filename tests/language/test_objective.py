import re

import numpy as np
import pytest

import forcopt as fo


@pytest.fixture
def model():
    m = fo.Model("m")
    return m, m.variable("x", 3, lower=0, upper=2)


def test_one_stage(model):
    m, x = model
    for objective, down in [(fo.minimize(x.sum()), True), (fo.maximize(x[:1]), False)]:
        (stage,) = objective.stages
        assert stage.maximize is not down and stage.expression.shape == ()
        assert objective.kind == ("minimize" if down else "maximize")
    m.minimize(x.sum())
    m.maximize(x[0])
    assert m.objective.kind == "maximize" and len(m.objective.stages) == 1


def test_stages_in_order_of_priority(model):
    m, x = model
    goal = fo.lexicographic(
        (o for o in [fo.minimize(x[0]), fo.leximin(x), fo.maximize(x[1])]), tolerance=1e-5
    )
    assert [s.maximize for s in goal.stages] == [False, True, True]
    assert (goal.kind, goal.tolerance, goal.count) == ("lexicographic", 1e-5, 5)
    m.optimize(goal)
    assert m.objective is goal


def test_leximin_and_leximax_are_sums_of_order_statistics(model):
    m, x = model
    up, down = fo.leximin(x.reshape(3, 1)), fo.leximax(2 * x)
    point = m.point({x: [2, 0, 1]})
    (rise,), (fall,) = up.stages, down.stages
    assert (rise.values(point), fall.values(point)) == ((0, 1, 3), (4, 6, 6))
    assert (rise.levels(point).tolist(), fall.levels(point).tolist()) == ([0, 1, 2], [4, 2, 0])
    assert rise.maximize and not fall.maximize
    assert (up.count, down.count) == (3, 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x: fo.minimize(x), "minimize needs a scalar expression, not shape (3,); use .sum()"),
        (lambda x: fo.maximize(3), "maximize needs an expression, not 3"),
        (lambda x: fo.minimize(x[0] <= 1), "minimize needs an expression, not <constraint"),
        (lambda x: fo.lexicographic([]), "lexicographic needs at least one objective"),
        (lambda x: fo.lexicographic(fo.minimize(x[0])), "lexicographic needs a list of objectives"),
        (
            lambda x: fo.lexicographic([fo.minimize(x[0]), x[1]]),
            "lexicographic: part 2 must be an objective such as fo.minimize(x), not",
        ),
        (
            lambda x: fo.lexicographic([fo.minimize(x[0])], tolerance=-1),
            "lexicographic: the tolerance is -1; it must be finite and >= 0",
        ),
        (
            lambda x: fo.leximin(x, tolerance=np.nan),
            "leximin: the tolerance is nan; it must be finite and >= 0",
        ),
        (lambda x: fo.leximin([1, 2]), "leximin needs an expression with at least one element, not [1, 2]"),
        (
            lambda x: fo.leximin(x, "cut"),
            "leximin: the method is 'cut'; it must be one of saturation, compact, cuts, ordered-values",
        ),
        (
            lambda x: fo.leximax(x, "cuts", outcomes=[1]),
            "leximax: outcomes are for the method 'ordered-values', not 'cuts'",
        ),
        (lambda x: fo.leximin(x, "ordered-values", outcomes=[]), "leximin: outcomes is empty"),
        (
            lambda x: fo.leximin(x, "ordered-values", outcomes=[1, np.nan]),
            "leximin: outcomes[1] is nan; it must be finite",
        ),
        (lambda x: fo.leximax(x[:0]), "leximax needs an expression with at least one element"),
        (lambda x: x.model.optimize(x[0]), "optimize needs an objective such as fo.minimize(x), not"),
        (
            lambda x: x.model.minimize(fo.Model("other").variable("z")),
            "the objective belongs to model 'other', not to model 'm'",
        ),
    ],
)
def test_bad_objectives(model, make, message):
    _, x = model
    with pytest.raises(fo.DeclarationError, match=re.escape(message)):
        make(x)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda x: fo.leximin(fo.exp(x)),
            "leximin: the expression must be concave, but exp#1[0] is convex",
        ),
        (
            lambda x: fo.leximax(fo.log(x + 1)),
            "leximax: the expression must be convex, but log#1[0] is concave",
        ),
    ],
)
def test_curvature_of_fair_objectives(model, make, message):
    m, x = model
    with pytest.raises(fo.CurvatureError, match=re.escape(message)):
        make(x)
    m.leximin(fo.log(x + 1))
    m.leximax(fo.exp(x))
    assert m.objective.kind == "leximax" and m.objective.count == 3
