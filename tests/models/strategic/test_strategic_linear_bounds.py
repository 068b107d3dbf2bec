"""No classifier beats a claimed bound: thin margins, lines, planes, and time limits, over all methods."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from processor_time import spends_at_most

import forcopt as fo
from forcopt.models.strategic import (
    LinearClassifier,
    StrategicClassification,
    StrategicLinearClassifier,
    TargetDesign2D,
)

sys.path.insert(0, str(Path(__file__).parent))
from test_strategic_linear import best_by_arrangement

METHODS = ("milp", "truth", "shifted-truth", "separator-lp")


def best_on_a_line(p):
    """All thresholds that can matter, and points between and around them."""
    Y, t, s = p.scaled()
    events = np.unique(np.concatenate([Y[:, 0] + 1, [s / t[0]], Y[:, 0]]))
    around = np.concatenate([events - 2e-6, events, events + 2e-6, (events[1:] + events[:-1]) / 2])
    found = [p.evaluate(LinearClassifier(p.costs, b)) for b in (*around, events[0] - 1, events[-1] + 1)]
    return max(e.objective for e in found if e.feasible)


def check(p, best):
    for method in METHODS:
        s = p.solve(method)
        assert s.bound >= best - 1e-9, (method, p)
        if s.decision is not None and s.evaluation.feasible:
            assert s.objective <= best + 1e-9, (method, p)
        if s.status == fo.Status.OPTIMAL:
            assert s.objective == pytest.approx(best), (method, p)


def test_a_thin_margin_is_no_proof():
    p = StrategicLinearClassifier(X=[[10], [9.9999]], truth=([1], 10), costs=[0.2], improvable=[False])
    check(p, 1)
    assert p.solve("milp").status == fo.Status.OPTIMAL


@pytest.mark.parametrize("seed", range(40))
def test_lines(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    p = StrategicLinearClassifier(
        X=rng.random((n, 1)) * rng.choice([1e-4, 5.0]) + 3,
        truth=([1.0], float(rng.choice([3.00005, 4.0, 5.5]))),
        costs=[float(rng.choice([0.2, 1.0, 3.0]))],
        improvable=[bool(rng.random() < 0.5)],
        max_false_positives=float(rng.integers(0, 4)),
    )
    check(p, best_on_a_line(p))


@pytest.mark.parametrize("seed", range(40))
def test_planes(seed):
    """Against the arrangement in exact arithmetic; some agents are 2**-13 apart."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    X = rng.integers(0, 7, (n, 2)).astype(float)
    X[0] = X[1] + rng.integers(-2, 3, 2) * 2.0**-13
    p = StrategicLinearClassifier(
        X=X,
        truth=(rng.integers(0, 3, 2), float(rng.integers(2, 11))),
        costs=rng.choice([0.25, 0.5, 1.0], 2),
        improvable=rng.random(2) < 0.5,
        max_false_positives=float(rng.integers(0, 3)),
    )
    if (p.truth[0] > 0).any():
        check(p, best_by_arrangement(p, p.max_false_positives))


def test_outcomes_that_conflict_are_cut_off():
    p = StrategicLinearClassifier(
        X=[[2, 0], [1, 4], [0, 2], [4, 0]], truth=([2, 1], 5), costs=[0.5, 0.5], improvable=[False, True]
    )
    s = p.solve("milp")
    assert s.status == fo.Status.OPTIMAL and s.iterations >= 1 and "conflict" in s.message
    assert s.objective == best_by_arrangement(p, 0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("limit", [0.0, 0.2])
def test_linear_methods_keep_the_limit(method, limit):
    rng = np.random.default_rng(0)
    p = StrategicLinearClassifier(
        X=rng.random((120, 4)) * 4, truth=([1, 1, 1, 1], 9.0), costs=[0.5] * 4, improvable=[1, 0, 0, 0]
    )
    with spends_at_most(limit + 30):
        s = p.solve(method, time_limit=limit)
    if s.decision is not None and s.evaluation.feasible:
        assert s.objective <= s.bound + 1e-9
    assert s.bound <= p.upper_bound() or np.isinf(s.bound)


def test_graph_methods_keep_the_limit():
    rng = np.random.default_rng(0)
    edges = [
        (i, int(j), float(rng.random()), bool(rng.random() < 0.5))
        for i in range(3000)
        for j in rng.choice(20, 6, False)
    ]
    p = StrategicClassification(agents=3000, criteria=20, edges=edges)
    for method in p.methods:
        with spends_at_most(30):
            s = p.solve(method, time_limit=0.3)
        if s.decision is not None and s.evaluation.feasible:
            assert s.objective <= s.bound + 1e-6
    q = TargetDesign2D(X=rng.random((2500, 2)) * 5, truth=([1, 1], 7), costs=[1, 1], improvable=[1, 0])
    for method in ("sweep", "grid"):
        with spends_at_most(30):
            s = q.solve(method, time_limit=0.2)
        assert s.decision is None or s.evaluation.feasible


def test_the_program_with_a_margin_claims_no_bound():
    p = StrategicLinearClassifier(X=[[10], [9.9999]], truth=([1], 10), costs=[0.2], improvable=[False])
    s = p.solve("margin-milp")
    assert s.status == fo.Status.APPROXIMATE and s.objective == 0 and s.bound == np.inf
    assert p.solve("margin-milp", margin=1e-5).objective == 1
    assert p.solve("margin-milp", margin=0).bound >= 1


def test_targets_at_a_rounded_threshold():
    """The agent qualifies where it starts, up to 2e-16: every method serves it."""
    p = TargetDesign2D(
        X=[[7, 1], [8, 5], [6, 3]], truth=([0, 2], 10), costs=[1 / 3, 1 / 3], improvable=[True, False]
    )
    for method in ("sweep", "milp", "grid"):
        assert p.solve(method).objective == 1
