"""The leximax cohort: all methods against each other and brute force, decisions, bad input."""

from __future__ import annotations

import inspect
import json
import re
from itertools import combinations
from pathlib import Path

import cohort_oracle  # noqa: F401  (registers the oracle)
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.backends import backends
from forcopt.models import LeximaxCohort
from forcopt.models.leximax_cohort import CohortLottery, random_block, random_cohort, random_panel
from forcopt.models.leximax_cohort.formulations import all_cohorts
from forcopt.numeric import dependent_rounding

MARGINAL = ["saturation", "compact", "cuts", "column-generation"]
LINEAR = ["highs", "highs:ipm", "clarabel", "glop", "scip"]
INTEGER = ["highs", "scip", "cp-sat"]


def ready(names):
    known = backends()
    return [n for n in names if n in known and known[n].missing() is None]


# -- methods -----------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_all_methods_find_the_same_levels(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(3, 8)), int(rng.integers(1, 6))
    p = random_cohort(n, m, int(rng.integers(1, n + 1)), grid=10, seed=rng)
    found = {name: p.solve(name) for name in MARGINAL}
    for name, s in found.items():
        assert s.status == "optimal", name
        assert s.evaluation.feasible
        # the utility of every single group is unique, not only the sorted vector
        np.testing.assert_allclose(
            s.decision.utilities, found["saturation"].decision.utilities, atol=1e-6, err_msg=name
        )


@pytest.mark.parametrize("backend", ready(LINEAR))
def test_every_backend(backend):
    p = random_cohort(12, 5, 4, grid=10, seed=3)
    expected = p.solve().decision.levels
    for name in ("saturation", "compact", "cuts"):
        s = p.solve(name, backend=backend)
        np.testing.assert_allclose(s.decision.levels, expected, atol=1e-5)


def nobody_gains_alone(p, utilities):
    """By linear programs: no group can gain while those that are not better off keep what they have."""
    n = len(p.utilities)
    for j, own in enumerate(utilities):
        m = fo.Model()
        x = m.variable("x", n, lower=p.bounds[0], upper=p.bounds[1])
        m.subject_to(x.sum() == p.size)
        u = x @ p.utilities
        keep = (utilities <= own + 1e-7) & (np.arange(len(utilities)) != j)
        m.subject_to(u[np.flatnonzero(keep)] >= utilities[keep])
        m.maximize(u[j])
        if m.solve().objective > own + 1e-5:
            return False
    return True


@settings(max_examples=10, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_no_group_gains_without_a_worse_off_one_losing(seed):
    rng = np.random.default_rng(seed)
    p = random_cohort(int(rng.integers(3, 10)), int(rng.integers(2, 6)), 2, seed=rng)
    assert nobody_gains_alone(p, p.solve().decision.utilities)
    even = p.utilities.T @ np.full(len(p.utilities), 2 / len(p.utilities))
    best = p.replace(objective="maximin").solve().objective
    assert not nobody_gains_alone(p, even) or even.min() == pytest.approx(best)  # the check can fail


@pytest.mark.parametrize("seed", range(6))
def test_one_cohort_is_the_best_of_all(seed):
    make = random_cohort if seed % 2 else random_block
    fields = {"features": {"side": ["a", "b"] * 4}, "quotas": {"side": {"a": [1, 2]}}} if seed > 3 else {}
    p = make(8, 5, 3, seed=seed, integer=True, **({"grid": 4} if seed % 2 else {"share": 0.4}), **fields)
    best = max(
        tuple(np.sort(rows @ p.utilities, axis=1)[i]) for rows in all_cohorts(p) for i in range(len(rows))
    )
    for name in ("compact", "brute-force", "cuts"):
        s = p.solve(name)
        assert (s.status, s.evaluation.feasible) == ("optimal", True)
        assert tuple(s.decision.levels) == pytest.approx(best), name
        assert len(s.decision.cohort) == 3


@pytest.mark.parametrize("backend", ready(INTEGER))
def test_one_cohort_on_every_backend(backend):
    p = random_block(9, 5, 3, share=0.4, seed=8, integer=True)
    expected = p.solve("brute-force").decision.levels
    for name in ("compact", "ordered-values"):
        np.testing.assert_allclose(p.solve(name, backend=backend).decision.levels, expected)


def test_hitting_set():
    """One cohort gives everyone 1 if and only if it hits every set (Henzinger et al., 2022, Lemma 20)."""
    for seed in range(8):
        p = random_block(6, 5, 2, share=0.35, seed=seed, integer=True)
        sets = [set(np.flatnonzero(column)) for column in p.utilities.T]
        hit = any(all(s & set(c) for s in sets) for c in combinations(range(6), 2))
        assert (p.solve().objective >= 1) == hit


# -- quotas, forced and forbidden candidates -----------------------------------------------------------------


def exact_under_quotas(p):
    """Leximin over all lotteries, all cohorts listed."""
    rows = np.concatenate(list(all_cohorts(p)))
    m = fo.Model()
    weights = m.variable("weights", len(rows), lower=0)
    m.subject_to(weights.sum() == 1)
    m.leximin(weights @ (rows @ p.utilities))
    return m.solve().levels


@pytest.mark.parametrize("features", [1, 2, 3])
def test_lotteries_under_quotas(features):
    p = random_panel(11, 4, features=features, levels=2, seed=features)
    expected = exact_under_quotas(p)
    s = p.solve("column-generation")
    assert s.status == "optimal"
    np.testing.assert_allclose(s.decision.levels, expected, atol=1e-6)
    assert p.mixes == (features < 3)
    if p.mixes:
        np.testing.assert_allclose(p.solve("saturation").decision.levels, expected, atol=1e-6)
    for decision in (s.decision, p.solve().decision):
        rows, weights = decision.distribution()
        assert weights.sum() == pytest.approx(1)
        np.testing.assert_allclose(weights @ rows, decision.marginals, atol=1e-6)
        assert all(p.evaluate(row).feasible for row in rows)
        assert p.evaluate(np.isin(np.arange(11), decision.sample(0)).astype(float)).feasible


def test_marginals_that_no_lottery_has():
    """Three features: every fractional point within the rows is outside the hull of the cohorts."""
    features = {"a": list("110"), "b": list("011"), "c": list("101")}
    quotas = {f: {"1": [1, 1]} for f in features}
    p = LeximaxCohort(utilities=np.eye(3), size=1.5, features=features, quotas=quotas)
    assert p.evaluate([0.5, 0.5, 0.5]).feasible  # size 1.5 has no cohorts, and marginals stand for themselves
    whole = LeximaxCohort(utilities=np.eye(3), size=1, features=features, quotas=quotas)
    assert whole.method().name == "column-generation"
    s = whole.solve()
    assert s.status == "infeasible" and "the least relaxation: " in s.reason
    with pytest.raises(fo.DeclarationError, match="solve by 'column-generation'"):
        whole.solve("saturation")


def test_forced_and_forbidden():
    p = random_cohort(7, 3, 3, seed=0, forced=[2], forbidden=[4, 5])
    levels = [p.solve(name).decision.levels for name in MARGINAL]
    for found in levels:
        np.testing.assert_allclose(found, levels[0], atol=1e-6)
    s = p.solve()
    assert s.decision.marginals[[2, 4, 5]].tolist() == [1, 0, 0]
    e = p.evaluate([1, 1, 0.5, 0, 0.5, 0, 0])
    assert e.violations == {"forced": 0.5, "forbidden": 0.5}
    crowded = random_cohort(5, 2, 1, seed=0, forced=[0, 1])
    assert crowded.solve().status == crowded.solve("column-generation").status == "infeasible"
    assert (
        random_cohort(5, 2, 1, seed=0, forced=[0, 1], integer=True).solve("brute-force").status
        == "infeasible"
    )


# -- decisions -----------------------------------------------------------------------------------------------


def test_dependent_rounding_keeps_sum_and_expectations():
    """Each frequency is within 5 standard errors of its probability: fails once in a million."""
    x = np.array([1 / 6, 1 / 6, 2 / 3, 1.0])
    rng = np.random.default_rng(7)
    draws = np.array([dependent_rounding(x, rng) for _ in range(20_000)])
    assert (draws.sum(axis=1) == 2).all()
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - x), 5 * np.sqrt(x * (1 - x) / 20_000) + 1e-12)
    covariance = np.cov(draws.T)
    assert (covariance[np.triu_indices(3, 1)] < 0.01).all()  # negative correlation


def test_lottery_without_quotas():
    p = random_cohort(30, 8, 10, seed=2)
    d = p.solve().decision
    rows, weights = d.distribution()
    assert len(weights) <= 31
    assert (rows.sum(axis=1) == 10).all() and set(np.unique(rows)) == {0.0, 1.0}
    np.testing.assert_allclose(weights @ rows, d.marginals, atol=1e-6)
    np.testing.assert_allclose(weights @ (rows @ p.utilities), d.utilities, atol=1e-6)
    assert d.sample(3).tolist() == d.sample(3).tolist()
    assert len(d.sample(np.random.default_rng(1))) == 10
    assert {len(d.sample_independently(seed)) for seed in range(20)} != {10}
    with pytest.raises(fo.DeclarationError, match="drawn by lot"):
        _ = d.cohort
    assert "by lot; smallest utility" in repr(d)
    assert d.plot().axes


def test_fractional_size():
    p = LeximaxCohort(utilities=np.eye(3), size=1.5)
    d = p.solve().decision
    np.testing.assert_allclose(d.marginals, [0.5] * 3)
    assert isinstance(d.sample_independently(0), np.ndarray)
    for ask in (d.sample, d.distribution):
        with pytest.raises(fo.DeclarationError, match="needs a whole number"):
            ask()


def test_edges():
    everyone = random_cohort(4, 3, 4, seed=0)
    assert everyone.solve().decision.marginals.tolist() == [1] * 4
    assert len(everyone.solve().decision.distribution()[1]) == 1
    one = LeximaxCohort(utilities=[[1], [3], [2]], size=2)
    assert one.solve().decision.cohort == (1, 2)
    empty = LeximaxCohort(
        utilities=[[0, 1, 0], [0, 0, 1]], size=1
    )  # a group that nobody is worth anything to
    for name in MARGINAL:
        np.testing.assert_allclose(empty.solve(name).decision.levels, [0, 0.5, 0.5], atol=1e-7)
    twice = LeximaxCohort(utilities=[[1, 1, 0], [0, 0, 1]], size=1)  # equal groups count twice
    np.testing.assert_allclose(twice.solve().decision.levels, [0.5] * 3, atol=1e-7)
    signed = LeximaxCohort(utilities=[[-1, 2], [1, -1], [0, 0]], size=1, signed=True)
    for name in MARGINAL:
        np.testing.assert_allclose(signed.solve(name).decision.levels, [0.2, 0.2], atol=1e-6)


def test_declaration_is_plain_data():
    p = random_panel(12, 4, seed=0, slack=0.1, groups=[f"g{i}" for i in range(12)])
    assert LeximaxCohort.from_dict(json.loads(json.dumps(p.to_dict()))) == p
    examples = Path(inspect.getfile(LeximaxCohort)).parent / "examples"
    for path in sorted(examples.iterdir()):
        s = LeximaxCohort.from_dict(json.loads(path.read_text())).solve()
        assert s.status == "optimal" and s.evaluation.feasible


def test_evaluate():
    p = LeximaxCohort(
        utilities=[[1, 0], [0, 2], [3, 3]],
        size=2,
        integer=True,
        features={"sex": ["f", "m", "m"]},
        quotas={"sex": {"m": [0, 1]}},
    )
    e = p.evaluate([0, 1, 1])
    assert (e.objective, e.violations) == (3, {"sex = m": 1})
    assert e.metrics == {"mean": 4, "level 1": 3, "level 2": 5}
    assert p.evaluate([0.5, 1, 0]).violations == {"size": 0.5, "integrality": 0.5}
    assert p.evaluate([2, 0, 0]).violations == {"probability": 1}
    assert isinstance(p.solve().decision, CohortLottery)
    with pytest.raises(fo.DeclarationError, match=re.escape("decision has shape (2,); it must be (3,)")):
        p.evaluate([1, 1])


V = [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"size": 0}, "size is 0"),
        ({"size": 3}, "size is 3; it must be at most the number of candidates, 2"),
        ({"size": np.nan}, "size"),
        ({"size": 1.5, "integer": True}, "size is 1.5; it must be a whole number"),
        ({"utilities": [[1, np.nan]]}, "utilities"),
        ({"utilities": [1, 2]}, "the shape is (2,); it must be (candidates, groups)"),
        ({"utilities": np.zeros((2, 0))}, "the shape is (2, 0)"),
        ({"utilities": [[1, -1], [0, 1]]}, "utilities[0, 1] is -1; it must not be negative"),
        ({"slack": [0.1]}, "slack has shape (1,); it must be one number or 2"),
        ({"slack": -0.1}, "slack is -0.1; it must not be negative"),
        ({"groups": ["a"]}, "groups: 1 names are given for 2 groups"),
        ({"forced": [2]}, "forced: 2 is no candidate; they are 0 to 1"),
        ({"forced": [[0]]}, "forced has shape (1, 1)"),
        ({"forced": [0], "forbidden": [0]}, "candidate 0 is both forced and forbidden"),
        ({"features": {"f": ["a"]}}, "features.f has 1 entries for 2 candidates"),
        ({"quotas": {"f": {"a": [0, 1]}}}, "quotas.f: there is no such feature"),
        (
            {"features": {"f": ["a", "b"]}, "quotas": {"f": {"c": [1, 1]}}},
            "quotas.f.c: no candidate has this level",
        ),
        (
            {"features": {"f": ["a", "b"]}, "quotas": {"f": {"a": [2, 1]}}},
            "quotas.f.a is [2, 1]; it must be 0 <= least <= most",
        ),
    ],
)
def test_bad_declarations(fields, message):
    with pytest.raises(fo.DeclarationError, match=re.escape(message)):
        LeximaxCohort(**{"utilities": V, "size": 1, **fields})


@pytest.mark.parametrize(
    ("fields", "method", "message"),
    [
        ({"integer": True}, "saturation", "use 'compact'"),
        ({}, "brute-force", "integer=True"),
        ({"integer": True}, "column-generation", "size must be whole, and integer=False"),
        ({"size": 1.5}, "column-generation", "size must be whole"),
        ({}, "convex-program", "objective is 'leximin'"),
        ({"objective": "nash"}, "saturation", "this is for 'leximin': use 'convex-program'"),
        ({"objective": "nash"}, "uniform", "objective is 'nash'"),
        ({"objective": "uniform"}, "convex-program", "use 'uniform'"),
        ({"utilities": np.ones((60, 1)), "size": 30, "integer": True}, "brute-force", "too many to look at"),
    ],
)
def test_methods_that_do_not_fit(fields, method, message):
    with pytest.raises(fo.DeclarationError, match=re.escape(message)):
        LeximaxCohort(**{"utilities": V, "size": 1, **fields}).solve(method)
    with pytest.raises(fo.DeclarationError, match="share is 2"):
        random_block(3, 2, 1, share=2)


def test_columns_fix_only_groups_that_are_proved_not_to_rise():
    # the first level is proved by multipliers of an earlier round than the last
    p = LeximaxCohort(
        utilities=[
            [2, 3, 3, 3],
            [3, 1, 3, 2],
            [2, 1, 0, 3],
            [1, 3, 0, 0],
            [2, 1, 2, 1],
            [1, 3, 3, 3],
            [2, 3, 3, 1],
        ],
        size=3,
        features={"f0": tuple("yyzyxyy"), "f1": tuple("zyyyxzy")},
        quotas={"f0": {"z": (1, 2), "y": (0, 2)}, "f1": {"z": (1, 2), "x": (0, 2)}},
    )
    best = p.solve("saturation").decision.levels
    assert best == pytest.approx([6, 19 / 3, 19 / 3, 22 / 3])
    assert p.solve("column-generation").decision.levels == pytest.approx(best)


def test_columns_know_a_level_of_zero_when_they_reach_it():
    V = [[0, -1, -1], [0, 0, 0], [1, 0, -1], [-1, 0, 1], [0, 2, -1]]
    s = LeximaxCohort(utilities=V, size=3, signed=True).solve("column-generation")
    assert s.status is fo.Status.OPTIMAL and s.decision.levels == pytest.approx([0, 0, 0], abs=1e-9)
    cut_short = LeximaxCohort(utilities=V, size=3, signed=True).solve("column-generation", time_limit=0.0)
    assert cut_short.status is fo.Status.FEASIBLE and cut_short.evaluation.feasible


@pytest.mark.parametrize("method", ["cumulative", "recursive"])
def test_slack_schemes_keep_their_time_limit(method):
    p = random_cohort(200, 60, 40, grid=20, seed=200, integer=True)
    s = p.solve(method, time_limit=2.0)
    assert s.status in ("limit", "feasible")
    small = random_cohort(30, 8, 6, seed=1)
    assert small.solve(method, time_limit=60.0).status == "approximate"


# -- scales ------------------------------------------------------------------------------------------------

WORTH = np.array([[1.0, 0, 0.3], [0, 1.0, 0.3], [0.5, 0.5, 0.3], [0.2, 0.1, 1.0]])


@pytest.mark.parametrize("scale", [1e-9, 1e12])
@pytest.mark.parametrize("integer", [False, True])
def test_tiny_and_huge_utilities_have_the_optimum_and_the_bound_of_ordinary_ones(scale, integer):
    ordinary = LeximaxCohort(utilities=WORTH, size=2, integer=integer)
    p = ordinary.replace(utilities=WORTH * scale)
    methods = ["compact", "brute-force", "cumulative", "recursive"] if integer else [*MARGINAL]
    methods += [] if integer else ["cumulative", "recursive"]
    best = ordinary.solve(methods[0]).decision.utilities
    for method in methods:
        for backend in ready(["highs", "clarabel"]) if p.method(method).kind == "formulation" else [None]:
            try:
                s = p.solve(method, backend=backend)
            except fo.UnsupportedError:
                continue
            assert s.objective == pytest.approx(best.min() * scale, rel=1e-5), method
            if np.isfinite(s.bound):
                assert s.bound == pytest.approx(best.min() * scale, rel=1e-5), method
            assert np.sort(s.decision.utilities) == pytest.approx(np.sort(best) * scale, rel=1e-4), method


def test_ordered_values_refuses_many_outcomes_before_it_lists_them():
    p = LeximaxCohort(utilities=np.array([[1.0, 2], [2, 1], [3, 0]]) * 1e12, size=2, integer=True)
    with pytest.raises(fo.DeclarationError, match="there are 6000000000001 outcomes; it takes at most 1000"):
        p.solve("ordered-values")


# -- reasons -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"quotas": {"x": {"a": (0, 0)}}, "size": 3.25},
            "the quotas contradict each other; the least relaxation: 1.25 more of x = a (at most 0 -> 1.25)",
        ),
        (
            {"quotas": {"x": {"b": (2, 4)}}, "size": 4 / 3},
            "the quotas contradict each other; the least relaxation: 0.666667 fewer of x = b "
            "(at least 2 -> 1.33333)",
        ),
        ({"forced": [0, 1], "size": 1.5}, "2 candidates are forced; size is 1.5"),
        ({"forbidden": [0, 1, 2], "size": 1.5}, "1 candidates are not forbidden; size is 1.5"),
    ],
)
def test_all_methods_give_one_reason_for_a_fractional_size(fields, words):
    p = LeximaxCohort(utilities=WORTH, features={"x": list("aabb")}, **fields)
    for method in ("saturation", "compact", "cuts", "cumulative", "recursive"):
        s = p.solve(method)
        assert s.status is fo.Status.INFEASIBLE and s.reason == words, method


def test_a_candidate_that_is_forced_twice_counts_once():
    p = LeximaxCohort(utilities=WORTH, size=1, forced=[2, 2])
    assert p.infeasibility_reason() == ""
    assert p.solve().decision.marginals.tolist() == [0, 0, 1, 0]
