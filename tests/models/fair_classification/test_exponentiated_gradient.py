import numpy as np
import pytest
from fair_learning_instances import line, random_problem, twelve, twenty
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.fairness import EqualizedOdds


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), repair=st.booleans())
def test_the_gap_certifies_the_distance_from_the_optimum(seed, repair):
    problem = random_problem(np.random.default_rng(seed), constraint=EqualizedOdds(0.1))
    best = problem.solve("lp").objective
    s = problem.solve("exponentiated-gradient", accuracy=0.05, bound=8.0, repair=repair)
    found = s.evaluation.metrics
    gap = found["learner gap"] + found["auditor gap"]
    assert min(found["learner gap"], found["auditor gap"]) >= -1e-9
    assert s.bound == pytest.approx(found["lower bound"], abs=1e-9)
    assert s.bound <= best + 1e-9
    assert s.objective <= best + gap + 1e-9
    assert s.evaluation.violation <= (1 + gap) / 8.0 + 1e-9
    if s.iterations < 1000:
        assert gap <= 0.05 + 1e-9


def test_the_repaired_mixture_is_fair_and_no_worse():
    for problem in (twelve(), line(0.2, 0.1), twenty(0.3, 0.05)):
        average = problem.solve("exponentiated-gradient", rounds=30, repair=False)
        repaired = problem.solve("exponentiated-gradient", accuracy=1e-6)
        assert repaired.evaluation.feasible
        assert repaired.objective == pytest.approx(problem.solve().objective, abs=1e-6)
        game = problem.lagrangian
        charged = [game.penalized(problem.predicted(s.decision), 10.0) for s in (repaired, average)]
        assert charged[0] <= charged[1] + 1e-6


def test_it_stops_when_told():
    seen = []
    s = twenty(0.3, 0.05).solve(
        "exponentiated-gradient", accuracy=1e-9, on_improvement=lambda i: seen.append(i) or True
    )
    assert len(seen) == 1 and s.iterations == 1 and len(s.trace) == 1
    s = twenty(0.3, 0.05).solve("exponentiated-gradient", accuracy=1e-9, time_limit=0.0)
    assert s.iterations == 1 and s.evaluation.feasible


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"accuracy": -1.0}, "accuracy"),
        ({"accuracy": 0.0}, "bound and rounds"),
        ({"bound": 0.0}, "bound"),
        ({"step": 0.0}, "step"),
        ({"rounds": 0}, "rounds"),
    ],
)
def test_bad_options_are_named(options, named):
    with pytest.raises(fo.DeclarationError, match=named):
        twelve().solve("exponentiated-gradient", **options)
