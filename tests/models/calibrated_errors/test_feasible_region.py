"""The exact polygon of equal error rates, against linear programs and against Corollary 5."""

from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.models import CalibratedEqualErrors
from forcopt.models.calibrated_errors.problem import demands
from forcopt.models.calibrated_errors.region import FeasibleRegion, simplest_fraction

BASE = {"L": ([0.2, 0.6], [0.5, 0.5]), "H": ([0.4, 0.8], [0.5, 0.5])}


@st.composite
def problems(draw):
    """Scores in hundredths with masses in twentieths, a cutoff in hundredths."""
    scores = {}
    for a in range(draw(st.integers(2, 3))):
        values = draw(st.lists(st.integers(1, 99), min_size=1, max_size=4, unique=True))
        cuts = sorted(
            draw(
                st.lists(st.integers(1, 19), min_size=len(values) - 1, max_size=len(values) - 1, unique=True)
            )
        )
        masses = np.diff([0, *cuts, 20]) / 20
        scores[f"g{a}"] = (np.array(values) / 100, masses)
    cutoff = draw(st.integers(5, 95)) / 100
    return CalibratedEqualErrors(scores=scores, cutoff=cutoff)


def support(problem, direction, calibrated):
    """The largest value of a linear function of the equal rates, by a linear program; None without any."""
    m = fo.Model()
    accept = m.variable("accept", sum(s.shape[1] for s in problem.scores.values()), lower=0, upper=1)
    rates = problem.rates(accept)
    notion = demands(problem) if calibrated else problem.parity
    m.subject_to(notion.rows(rates))
    common = fo.stack([rates.rate(fo.fairness.FALSE_POSITIVE)[0], rates.rate(fo.fairness.TRUE_POSITIVE)[0]])
    m.maximize(np.asarray(direction, dtype=float) @ common)
    s = m.solve()
    return s.objective if s.status.has_solution else None


@settings(max_examples=25, deadline=None)
@given(
    problem=problems(),
    direction=st.tuples(st.integers(-5, 5), st.integers(-5, 5)),
    calibrated=st.booleans(),
)
def test_the_polygon_has_the_support_function_of_the_linear_program(problem, direction, calibrated):
    region = problem.feasible_region(calibrated=calibrated)
    expected = support(problem, direction, calibrated)
    if region.is_empty:
        assert expected is None
        return
    best = max(direction[0] * x + direction[1] * y for x, y in region.vertices)
    assert float(best) == pytest.approx(expected, abs=1e-7)


@settings(max_examples=200, deadline=None)
@given(problem=problems())
def test_the_corollary_says_when_the_polygon_is_empty(problem):
    """Both are exact, so that they must agree always, also on the boundary."""
    assert bool(problem.infeasibility_reason()) == problem.feasible_region().is_empty


@settings(max_examples=100, deadline=None)
@given(problem=problems(), data=st.data())
def test_the_vertices_are_a_convex_polygon_within_what_every_group_reaches(problem, data):
    region = problem.feasible_region()
    vertices = region.vertices
    assert len(set(vertices)) == len(vertices)
    for i in range(len(vertices)) if len(vertices) > 2 else ():
        (x0, y0), (x1, y1), (x2, y2) = vertices[i - 2], vertices[i - 1], vertices[i]
        assert (x1 - x0) * (y2 - y1) < (y1 - y0) * (x2 - x1)  # turns right, strictly
    for x, y in vertices:
        assert region.contains((x, y))
        assert problem.feasible_region(calibrated=False).contains((x, y))
        for a, b, c in region.half_planes.values():
            assert a * x + b * y + c >= 0
    if vertices:
        weights = [F(data.draw(st.integers(0, 9))) for _ in vertices]
        total = sum(weights) or F(1)
        inside = [sum(w * v[i] for w, v in zip(weights, vertices, strict=True)) / total for i in (0, 1)]
        assert region.contains(inside) or not any(weights)
        assert not region.contains((F(3, 2), F(1, 2)))


@settings(max_examples=50, deadline=None)
@given(problem=problems(), at=st.integers(0, 10))
def test_finer_scores_allow_no_less(problem, at):
    """Splitting a value into two with the same mean enlarges what a group reaches: the loss cannot rise."""
    name = next(iter(problem.scores))
    values, masses = problem.scores[name]
    i = at % len(values)
    step = min(values[i], 1 - values[i]) / 2
    finer = np.concatenate([np.delete(values, i), [values[i] - step, values[i] + step]])
    split = np.concatenate([np.delete(masses, i), [masses[i] / 2, masses[i] / 2]])
    other = CalibratedEqualErrors(scores={**problem.scores, name: (finer, split)}, cutoff=problem.cutoff)
    before, after = problem.best_rates(), other.best_rates()
    if before is not None:
        assert after is not None
        loss = [
            F(c) for c in (problem.cost_ratio * (1 - problem.base_rates.mean()), problem.base_rates.mean())
        ]
        assert loss[0] * after[0] - loss[1] * after[1] <= loss[0] * before[0] - loss[1] * before[1] + F(
            1, 10**12
        )


def test_a_perfect_score_reaches_everything():
    p = CalibratedEqualErrors(scores={"a": ([0, 1], [0.6, 0.4]), "b": ([0, 1], [0.3, 0.7])}, cutoff=0.5)
    square = {(F(0), F(0)), (F(0), F(1)), (F(1), F(0)), (F(1), F(1))}
    assert set(p.feasible_region(calibrated=False).vertices) == square
    assert p.best_rates() == (0, 1)
    s = p.solve()
    assert s.objective == pytest.approx(0, abs=1e-9)
    assert s.evaluation.metrics["added squared error of a"] == pytest.approx(0, abs=1e-9)


def test_one_value_reaches_the_diagonal_only():
    p = CalibratedEqualErrors(scores={"a": ([0.4], [1]), "b": ([0.6], [1])}, cutoff=0.5)
    assert set(p.feasible_region(calibrated=False).vertices) == {(F(0), F(0)), (F(1), F(1))}
    diagonal = p.feasible_region(calibrated=False)
    assert diagonal.contains((0.25, 0.25))
    assert not diagonal.contains((0.25, 0.3))
    assert p.feasible_region().is_empty
    with pytest.raises(fo.DeclarationError, match="empty"):
        p.feasible_region().minimize(F(1), F(-1))


@pytest.mark.parametrize(
    ("cutoff", "corner"), [(0.6 + 2e-5, (F(0), F(0))), (0.4, (F(1), F(1))), (0.39, (F(1), F(1)))]
)
def test_beyond_all_base_rates_a_constant_is_feasible(cutoff, corner):
    p = CalibratedEqualErrors(scores={"L": ([0.4], [1]), "H": ([0.6], [1])}, cutoff=cutoff)
    assert p.infeasibility_reason() == ""
    assert corner in p.feasible_region().vertices
    s = p.solve()
    assert s.status is fo.Status.OPTIMAL
    assert s.decision.rates.rate(fo.fairness.FALSE_POSITIVE) == pytest.approx(float(corner[0]))


def test_equal_base_rates_have_no_apex():
    scores = {"a": ([0.2, 0.6], [0.5, 0.5]), "b": ([0.1, 0.7], [0.5, 0.5])}
    p = CalibratedEqualErrors(scores=scores, cutoff=0.5)
    assert p.apex(0) is None
    assert p.apex() is not None  # the margin turns one of the lines a little
    assert p.infeasibility_reason() == ""
    assert not p.feasible_region().is_empty


@pytest.mark.parametrize("value", [0.2, 1 / 3, 854 / 1281, 5e-324, 0.1 + 0.2, np.pi, 1e-6, 123456.789])
def test_fractions_round_to_the_floats_that_they_stand_for(value):
    assert float(simplest_fraction(value)) == value


def test_the_plot_fills_the_region(tmp_path):
    region = CalibratedEqualErrors(scores=BASE, cutoff=0.5).feasible_region(margin=0)
    figure = region.plot(tmp_path / "region.png")
    assert (tmp_path / "region.png").stat().st_size > 1000
    filled = figure.axes[0].patches[0].get_xy()
    assert {tuple(np.round(v, 9)) for v in filled} == {
        tuple(np.round(np.array(v, float), 9)) for v in region.vertices
    }
    dashed = [line for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    assert len(dashed) == 2  # of the lowest base rate, and of the highest
    CalibratedEqualErrors(scores={"a": ([0.4], [1]), "b": ([0.6], [1])}, cutoff=0.5).feasible_region().plot()
    assert FeasibleRegion((), {}, {}).is_empty
