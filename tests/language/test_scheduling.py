"""Intervals: every backend finds what trying all starts finds, and the checks of points agree."""

import itertools

import numpy as np
import pandas as pd
import pytest

import forcopt as fo

HORIZON = 6


def best(lengths, weights, allowed, optional):
    """The least cost of starts and presences that a function allows, by trying all."""
    n, found = len(lengths), np.inf
    presences = itertools.product((0, 1), repeat=n) if optional else [(1,) * n]
    for here in presences:
        for starts in itertools.product(range(HORIZON + 1), repeat=n):
            ends = np.add(starts, lengths)
            if any(ends > HORIZON + 4) or not allowed(np.array(starts), ends, np.array(here, dtype=bool)):
                continue
            cost = float(weights @ ends) - 9.0 * sum(here) * optional
            found = min(found, cost)
    return found


def apart(start, end, here):
    pairs = itertools.combinations(np.flatnonzero(here), 2)
    return all(end[i] <= start[j] or end[j] <= start[i] for i, j in pairs)


def within(demands, capacity):
    def allowed(start, end, here):
        times = range(HORIZON + 5)
        return all(demands[here & (start <= t) & (t < end)].sum() <= capacity for t in times)

    return allowed


@pytest.mark.parametrize("backend", ["cp-sat", "highs", "scip"])
@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("shared", ["no_overlap", "cumulative"])
@pytest.mark.parametrize("seed", range(2))
def test_all_backends_find_what_trying_all_starts_finds(backend, optional, shared, seed):
    rng = np.random.default_rng(seed)
    lengths, demands = rng.integers(1, 4, 3), rng.integers(0, 4, 3)
    weights = rng.integers(1, 4, 3).astype(float)
    m = fo.Model()
    start = m.variable("start", 3, lower=0, upper=HORIZON, integer=True)
    here = m.variable("here", 3, binary=True) if optional else None
    task = m.interval(start, lengths, present=here)
    if shared == "no_overlap":
        condition, allowed = fo.no_overlap(task), apart
    else:
        condition, allowed = fo.cumulative(task, demands, 4), within(demands, 4)
    m.subject_to(condition, task.end <= HORIZON + 4, name="shared")
    m.minimize(weights @ task.end - (9 * here.sum() if optional else 0))
    s = m.solve(backend)
    assert s.status is fo.Status.OPTIMAL
    assert s.objective == pytest.approx(best(lengths, weights, allowed, optional))
    assert not m.violations(s.point[: m.column_count])


@pytest.mark.parametrize("shared", ["no_overlap", "cumulative"])
def test_violations_tell_allowed_points_from_others(shared):
    m = fo.Model()
    lengths, demands = np.array([2, 3, 1]), np.array([2, 1, 2])
    start = m.variable("start", 3, lower=0, upper=9, integer=True)
    task = m.interval(start, lengths)
    condition = fo.no_overlap(task) if shared == "no_overlap" else fo.cumulative(task, demands, 3)
    m.subject_to(condition)
    allowed = apart if shared == "no_overlap" else within(demands, 3)
    for starts in itertools.product(range(5), repeat=3):
        right = allowed(np.array(starts), np.add(starts, lengths), np.ones(3, dtype=bool))
        assert (condition.violation(m.point({start: starts})) == 0) == right


@pytest.mark.parametrize("backend", ["cp-sat", "highs"])
def test_ends_and_durations_may_be_variables_and_parts_of_several_arrays(backend):
    m = fo.Model()
    start = m.variable("start", 2, lower=0, upper=20, integer=True)
    lasts = m.variable("lasts", 2, lower=1, upper=5, integer=True)
    end = m.variable("end", 2, lower=0, upper=20, integer=True)
    other = m.variable("other", lower=3, upper=20, integer=True)
    task, pause = m.interval(start, lasts, end), m.interval(2 * other, 4)
    m.subject_to(fo.no_overlap([task, pause]), lasts.sum() >= 7, fo.cumulative([task, pause], [1, 1, 2], 2))
    m.minimize(fo.maximum(end[0], end[1], pause.end) + 0.01 * other)
    s = m.solve(backend)
    assert s.objective == pytest.approx(12.03, abs=1e-6)
    assert np.array_equal(s[start] + s[lasts], s[end])
    assert not m.violations(s.point[: m.column_count])


def test_machines_and_demands_meet_intervals_by_label():
    m = fo.Model()
    jobs = pd.Index(["a", "b", "c"], name="job")
    start = m.variable("start", index=(jobs,), lower=0, upper=30, integer=True)
    task = m.interval(start, pd.Series({"c": 5, "a": 1, "b": 3}).rename_axis("job"))
    machine = pd.Series({"b": "x", "c": "y", "a": "x"}).rename_axis("job")
    m.subject_to(fo.no_overlap(task, by=machine))
    m.subject_to(fo.cumulative(task, pd.Series({"c": 2, "a": 1, "b": 1}).rename_axis("job"), 2))
    m.minimize(task.end.max())
    assert m.solve("cp-sat").objective == 9
    assert task.end.axes[0].labels == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda m, x: m.interval(x, -1), "duration can be -1; it must not be negative"),
        (lambda m, x: m.interval(x, 1, present=x), "interval: present.* must be binary"),
        (lambda m, x: fo.no_overlap(x), "no_overlap takes intervals"),
        (lambda m, x: fo.no_overlap([]), "one or more intervals"),
        (lambda m, x: fo.no_overlap(m.interval(x, 1), by=[1, 2]), "by has shape"),
        (lambda m, x: fo.cumulative(m.interval(x, 1), -1, 2), "a demand is -1; it must not be negative"),
        (lambda m, x: fo.cumulative(m.interval(x, 0), 1, 2), "a duration can be below 1"),
        (lambda m, x: fo.cumulative(m.interval(0.5 * x, 1), 1, 2), "a start is no integer"),
        (lambda m, x: fo.cumulative(m.interval(x, 1), [1, 2], 2), "demands of shape"),
    ],
)
def test_wrong_intervals_are_refused(act, message):
    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=9, integer=True)
    with pytest.raises(fo.DeclarationError, match=message):
        act(m, x)


def test_a_schedule_needs_bounds():
    m = fo.Model()
    x = m.variable("x", 2, lower=0, integer=True)
    m.subject_to(fo.no_overlap(m.interval(x, 1)))
    m.minimize(x.sum())
    for backend in ("cp-sat", "highs"):
        with pytest.raises(fo.UnboundedExpressionError, match="no upper bound"):
            m.solve(backend)
