import json
import subprocess
import sys
from itertools import combinations, product

import allocation_oracle  # noqa: F401  (registers the method enumeration)
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.backends.registry import backends
from forcopt.errors import DeclarationError
from forcopt.models import PrecisionAllocation, PrivateAllocation, StratifiedAllocation
from forcopt.models.allocation.instances import random_strata
from forcopt.models.allocation.windows import leximax_windows
from forcopt.privacy import StratifiedSample, draw

INSTALLED = {name: b.capabilities.kinds for name, b in backends().items() if not b.missing()}
INTEGER = [n for n, kinds in INSTALLED.items() if {"rows", "integer"} <= kinds and n != "cp-sat"]

strata = st.integers(1, 4).flatmap(
    lambda k: st.tuples(
        st.lists(st.integers(1, 9), min_size=k, max_size=k),
        st.lists(st.integers(0, 50).map(lambda s: s / 10), min_size=k, max_size=k),
    )
)
SMALL = {"sizes": [20, 10, 5], "deviations": [1, 2, 6]}


# -- the optimum -------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(strata=strata, share=st.floats(0, 1), minimum=st.integers(1, 3))
def test_greedy_milp_and_brute_force_agree(strata, share, minimum):
    sizes, deviations = strata
    least = int(np.minimum(minimum, sizes).sum())
    p = StratifiedAllocation(
        sizes=sizes,
        deviations=deviations,
        minimum=minimum,
        sample_size=least + int(share * (sum(sizes) - least)),
    )
    best = p.solve("enumeration").objective
    for method, options in (("greedy", {}), ("milp", {}), ("milp", {"reduce": False})):
        s = p.solve(method, **options)
        assert s.status is fo.Status.OPTIMAL and s.evaluation.feasible
        assert s.objective == pytest.approx(best, abs=1e-9)
    continuous = p.solve("neyman")
    assert continuous.bound <= best + 1e-9 <= continuous.objective + 2e-9
    assert continuous.evaluation.feasible and p.solve("proportional").evaluation.feasible


@settings(max_examples=15, deadline=None)
@given(strata=strata, share=st.floats(0, 1), data=st.data())
def test_budgets(strata, share, data):
    sizes, deviations = strata
    costs = np.array(data.draw(st.lists(st.integers(1, 5), min_size=len(sizes), max_size=len(sizes))))
    budget = float(costs.sum() + share * (costs @ (np.array(sizes) - 1)))
    limit = data.draw(st.none() | st.integers(len(sizes), sum(sizes)))
    p = StratifiedAllocation(
        sizes=sizes, deviations=deviations, costs=costs, budget=budget, sample_size=limit
    )
    best = p.solve("enumeration").objective
    assert p.solve("milp").objective == pytest.approx(best, abs=1e-9)
    for method in ("greedy", "neyman"):
        s = p.solve(method)
        assert s.bound <= best + 1e-7 and s.objective >= best - 1e-9 and s.evaluation.feasible


@pytest.mark.parametrize("fields", [{"sample_size": 60}, {"sample_size": 80, "budget": 100.0}])
def test_no_point_is_better_than_water_filling(fields):
    rng = np.random.default_rng(3)
    sizes, deviations = rng.integers(2, 30, 8), rng.lognormal(size=8)
    if "budget" in fields:
        fields = {**fields, "costs": rng.uniform(0.5, 2.5, 8)}
    p = StratifiedAllocation(sizes=sizes, deviations=deviations, integer=False, **fields)
    s = p.solve("neyman")
    assert s.status is fo.Status.OPTIMAL and s.evaluation.feasible
    for costs, limit in p.limits():
        assert costs @ s.decision.sizes <= limit * (1 + 1e-9)
    assert any(abs(costs @ s.decision.sizes - limit) < 1e-6 * limit for costs, limit in p.limits())
    for _ in range(500):
        point = np.clip(s.decision.sizes + rng.normal(size=8) * rng.choice([0.01, 1, 5]), 1, sizes)
        if p.evaluate(point).feasible:
            assert p.evaluate(point).objective >= s.objective - 1e-12


def test_fractions_have_the_closed_form():
    fractions = StratifiedAllocation(**SMALL, sample_size=12, integer=False)
    assert fractions.solve("neyman").decision.sizes == pytest.approx([3.5, 3.5, 5], abs=0.02)


@pytest.mark.parametrize("backend", INTEGER)
def test_every_integer_backend_gives_the_optimum(backend):
    p = StratifiedAllocation(**SMALL, sample_size=12)
    for options in ({}, {"reduce": False}):
        assert p.solve("milp", backend=backend, **options).objective == pytest.approx(0.1414965986)
    q = PrivateAllocation(**SMALL, sample_size=12, epsilon=1.0, value_bound=20.0)
    assert q.solve("milp", backend=backend).objective == pytest.approx(2.2091877223, rel=1e-6)
    r = PrecisionAllocation(**SMALL, targets=0.15)
    assert r.solve("milp", backend=backend).objective == 12


def test_large_and_small_numbers_are_solved_as_well():
    for factor in (1e-6, 1e6):
        p = random_strata(200, seed=5, deviations=factor * np.random.default_rng(0).lognormal(size=200))
        best = p.solve("greedy").objective
        assert p.solve("milp").objective == pytest.approx(best, rel=1e-12)
        assert p.solve("neyman").bound <= best <= p.solve("neyman").objective


# -- several variables -------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_leximax_makes_the_largest_variance_small_then_the_next(seed):
    rng = np.random.default_rng(seed)
    k, variables = rng.integers(2, 4), rng.integers(2, 4)
    p = StratifiedAllocation(
        sizes=rng.integers(1, 9, k),
        deviations=rng.integers(0, 50, (k, variables)) / 10,
        sample_size=int(rng.integers(k, 4 * k)),
        weights=rng.uniform(0.5, 2, variables),
        criterion="leximax",
    )
    best, found = (
        np.sort(p.variable_weights * p.solve(m).decision.variances)[::-1] for m in ("enumeration", "milp")
    )
    assert found == pytest.approx(best, abs=1e-5 * max(1, best[0]))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_windows_of_leximax_hold_the_optimum(seed):
    rng = np.random.default_rng(seed)
    k, variables = rng.integers(1, 4), rng.integers(1, 4)
    sizes = rng.integers(1, 8, k)
    p = StratifiedAllocation(
        sizes=sizes,
        deviations=rng.integers(0, 50, (k, variables)) / 10,
        sample_size=int(rng.integers(k, 4 * k)),
        costs=rng.integers(1, 4, k),
        budget=int(rng.integers(3 * k, 9 * k)),
        weights=rng.uniform(0.5, 2, variables),
        criterion="leximax",
    )
    ends = leximax_windows(p)
    if ends is None:
        assert not (p.coefficients > 0).any()
        return
    tried = np.array(list(product(*(range(1, n + 1) for n in sizes))))
    tried = tried[np.all([tried @ costs <= limit for costs, limit in p.limits()], axis=0)]
    losses = np.array([np.sort(p.variable_weights * p.variances(m))[::-1] for m in tried]).round(12)
    best = tried[(losses == min(map(tuple, losses))).all(axis=1)]
    assert ((ends[0] <= best) & (best <= ends[1])).all(axis=1).any()


def test_leximax_writes_few_records_of_large_strata():
    rng = np.random.default_rng(0)
    p = StratifiedAllocation(
        sizes=rng.integers(100, 10_000, 300),
        deviations=rng.gamma(2, 2, (300, 3)),
        sample_size=10_000,
        criterion="leximax",
    )
    assert len(p.to_model("milp").columns().lower) < 20_000 < p.sizes.sum() / 20


def test_weights_join_variables_into_one():
    rng = np.random.default_rng(0)
    p = StratifiedAllocation(
        sizes=[9, 8, 7], deviations=rng.random((3, 2)), weights=[2.0, 0.5], sample_size=10
    )
    assert p.solve("greedy").objective == pytest.approx(p.solve("enumeration").objective)
    assert p.solve("milp").objective == pytest.approx(p.solve("enumeration").objective)
    d = p.solve("greedy").decision
    assert d.variance == pytest.approx(2 * d.variances[0] + 0.5 * d.variances[1])


# -- precision ---------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), variables=st.integers(1, 2), costly=st.booleans())
def test_the_cheapest_precise_sample(seed, variables, costly):
    rng = np.random.default_rng(seed)
    k = rng.integers(1, 4)
    p = PrecisionAllocation(
        sizes=rng.integers(2, 10, k),
        deviations=rng.integers(1, 50, (k, variables)) / 10,
        targets=rng.uniform(0.02, 1, variables),
        costs=rng.integers(1, 5, k) if costly else None,
    )
    best = p.solve("enumeration").objective
    assert p.solve("milp").objective == pytest.approx(best)


def test_precision_and_size_are_inverse():
    p = StratifiedAllocation(sizes=[100, 50, 50], deviations=[1, 4, 2], sample_size=40)
    variance = p.solve("greedy").objective
    q = PrecisionAllocation(sizes=p.sizes, deviations=p.deviations, targets=variance)
    assert q.solve("milp").objective == 40
    census = PrecisionAllocation(**SMALL, targets=1e-9)
    assert census.solve("milp").objective == 35


# -- privacy -----------------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), epsilon=st.floats(0.05, 20))
def test_the_sweep_is_exact(seed, epsilon):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 4))
    sizes = rng.integers(1, 10, k)
    p = PrivateAllocation(
        sizes=sizes,
        deviations=rng.integers(0, 50, k) / 10,
        sample_size=int(rng.integers(k, sizes.sum() + 1)),
        epsilon=epsilon * rng.uniform(0.5, 2, k) if seed % 2 else epsilon,
        value_bound=20.0,
    )
    best = p.solve("enumeration").objective
    assert p.solve("sweep").objective == pytest.approx(best, rel=1e-12)
    assert p.solve("milp").objective == pytest.approx(best, rel=1e-6)
    for method in ("neyman", "proportional"):
        assert p.solve(method).objective >= best * (1 - 1e-12)


def test_the_noise_is_what_privacy_needs():
    p = PrivateAllocation(**SMALL, sample_size=12, epsilon=[1.0, 2.0, 700.0], value_bound=20.0)
    d = p.solve("proportional").decision
    for m, n, scale, epsilon in zip(d.sizes, p.sizes, p.scales(d.sizes), p.epsilon, strict=True):
        unhidden = 20.0 * n / (35 * m * scale)  # the loss of one record that is known to be in the sample
        assert fo.privacy.amplification.simple_random_sample(unhidden, int(m), int(n)).exact == pytest.approx(
            epsilon
        )
    assert d.noise_scale == p.scales(d.sizes).max()


# -- what a decision says ----------------------------------------------------------------------------------


def test_the_variance_is_that_of_all_samples():
    strata = [[1, 2, 3, 4], [10, 20, 30, 40], [5, 5, 6]]
    taken = (2, 2, 1)
    population = np.concatenate(strata)
    estimates = [
        sum(len(s) * np.mean(c) for s, c in zip(strata, chosen, strict=True)) / len(population)
        for chosen in product(*(combinations(s, m) for s, m in zip(strata, taken, strict=True)))
    ]
    p = StratifiedAllocation(
        sizes=[4, 4, 3],
        deviations=[np.std(s, ddof=1) for s in strata],
        means=[np.mean(s) for s in strata],
        sample_size=5,
    )
    d = p.allocation(taken)
    assert len(estimates) == 108 and np.mean(estimates) == pytest.approx(population.mean())
    assert d.variance == pytest.approx(np.var(estimates)) == pytest.approx(5.5812672176)
    simple = (1 / 5 - 1 / 11) * population.var(ddof=1)
    assert d.design_effect == pytest.approx(d.variance / simple)


def test_from_tables_and_records_to_a_drawn_sample(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"kind": rng.choice(list("abc"), 200), "x": rng.lognormal(size=200), "y": rng.random(200)}
    )
    frame.loc[len(frame)] = ["d", 3.0, 0.5]
    p = StratifiedAllocation.from_records(frame, "kind", ["x", "y"], sample_size=30, weights=[1.0, 4.0])
    assert p.deviations[3].tolist() == [0, 0] and p.names == ("a", "b", "c", "d")
    d = p.solve("milp").decision
    sample = draw(StratifiedSample(by="kind", sizes=d.by_stratum()), frame, seed=1)
    assert sample["kind"].value_counts().to_dict() == d.by_stratum()
    table = pd.DataFrame(
        {"n": p.sizes, "s": p.deviations[:, 0], "mean": p.means[:, 0], "price": 1.0}, index=list("abcd")
    )
    q = StratifiedAllocation.from_table(
        table, size="n", deviation="s", mean="mean", cost="price", budget=30.0
    )
    alone = StratifiedAllocation.from_records(frame, "kind", "x", sample_size=30)
    assert q.solve("neyman").objective == pytest.approx(alone.solve("neyman").objective)
    assert alone.solve("neyman").decision.design_effect is not None
    d.plot(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 1000
    assert "records" in repr(d) and "... and 5 more" in repr(
        random_strata(25, seed=0).solve("greedy").decision
    )
    with pytest.raises(DeclarationError, match="has 0 columns 'z', not one; they are"):
        StratifiedAllocation.from_records(frame, "kind", "z", sample_size=30)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"kind": ["a", "a", None]}, "column 'kind' misses a value in row 2"),
        ({"x": [1.0, np.nan, 3.0]}, "column 'x' misses a value in row 1"),
        ({"x": ["1", "2", "3"]}, "column 'x' must be numbers"),
    ],
)
def test_records_without_a_stratum_or_a_value_are_refused(column, message):
    frame = pd.DataFrame({"kind": ["a", "a", "b"], "x": [1.0, 2.0, 3.0]}).assign(**column)
    with pytest.raises(DeclarationError, match=message):
        StratifiedAllocation.from_records(frame, "kind", "x", sample_size=2)


def test_labelled_sizes_go_by_stratum():
    sizes = pd.Series([20, 10, 5], ["north", "south", "east"])
    p = StratifiedAllocation(sizes=sizes, deviations=[1, 2, 6], sample_size=12)
    assert p.names == ("north", "south", "east")
    expected = p.evaluate([6, 4, 2]).objective
    assert p.evaluate([2, 4, 6]).objective != expected
    assert p.evaluate({"east": 2, "south": 4, "north": 6}).objective == expected
    assert p.evaluate(pd.Series([2, 4, 6], ["east", "south", "north"])).objective == expected
    assert p.evaluate(pd.Series([6, 4, 2])).objective == expected
    assert p.evaluate(pd.Series(p.solve().decision.by_stratum())).feasible
    for wrong, message in [
        ({"east": 2, "south": 4}, "the sizes have no value for 'north'"),
        (pd.Series([2, 4, 6], ["east", "west", "north"]), "the sizes are labelled 'west'"),
        (pd.Series([2, 4, 6], ["east", "east", "north"]), "the sizes are labelled 'east'"),
    ]:
        with pytest.raises(DeclarationError, match=message):
            p.evaluate(wrong)
    with pytest.raises(DeclarationError, match=r"sizes has the labels 'north', \.\.\. in another order than"):
        p.replace(sizes=sizes, names=["east", "south", "north"])


def test_roundings():
    p = StratifiedAllocation(sizes=[40, 40, 40, 2], deviations=[1, 1.4, 2.2, 9], sample_size=20)
    exact = p.replace(integer=False).solve("neyman").decision.sizes
    for rounding in ("largest-remainder", "ceiling", "nearest", "randomized"):
        d = p.solve("neyman", rounding=rounding, seed=1).decision
        assert (np.abs(d.sizes - exact) < 1).all() and (d.sizes == np.round(d.sizes)).all()
        assert d.sizes[3] == 2
        if rounding in ("largest-remainder", "randomized"):
            assert d.size == 20
    assert p.solve("neyman", rounding="ceiling").evaluation.violations["sample_size"] == 1
    drawn = np.mean(
        [p.solve("neyman", rounding="randomized", seed=s).decision.sizes for s in range(1000)], axis=0
    )
    assert drawn == pytest.approx(exact, abs=0.08)  # 5 standard errors


def test_a_block_takes_further_constraints():
    p = StratifiedAllocation(**SMALL, sample_size=12)
    m = fo.Model()
    block = p.declare(m, "milp")
    m.subject_to(block.sizes[0] >= block.sizes[2])
    m.minimize(block.objective)
    sizes = m.solve()[block.sizes]
    assert (
        sizes.tolist() == pytest.approx([4, 4, 4])
        and p.evaluate(sizes).objective > p.solve("greedy").objective
    )


def every_sizes(p, most=np.inf):
    """All whole sizes, by another formula of the variances than the package's."""
    for sizes in product(*[range(1, int(n) + 1) for n in p.sizes]):
        if sum(sizes) <= most:
            m, n, s = np.array(sizes, float), np.asarray(p.sizes, float), np.asarray(p.deviations, float)
            each = ((n / n.sum()) ** 2 * (1 - m / n) / m)[:, None] * s.reshape(len(n), -1) ** 2
            yield sizes, each.sum(axis=0)


@pytest.mark.parametrize("seed", range(4))
def test_variances_of_a_declared_block_are_those_of_its_sizes(seed):
    """With rows and objectives that want the variance large, or two of them equal."""
    rng = np.random.default_rng(seed)
    n, s = rng.integers(3, 7, 3), rng.uniform(1, 9, (3, 2)).round(1)
    p = StratifiedAllocation(sizes=n, deviations=s, sample_size=8)
    table = list(every_sizes(p, 8))
    scale = float(np.mean([v.mean() for _, v in table]))
    for within in (0.05, 0.2):
        m = fo.Model()
        h = p.declare(m)
        m.subject_to(fo.abs(h.variances[0] - h.variances[1]) <= within * scale)
        m.minimize(h.variances.sum())
        said = m.solve()
        near = [v.sum() for _, v in table if abs(v[0] - v[1]) <= within * scale]
        assert said.status == "optimal" and said.objective == pytest.approx(min(near), rel=1e-6)
        own = dict(table)[tuple(h.decision(said).sizes.astype(int))]
        assert said[h.variances] == pytest.approx(own, rel=1e-6)
    m = fo.Model()
    h = p.declare(m)
    m.maximize(h.variances[0])
    assert m.solve().objective == pytest.approx(max(v[0] for _, v in table), rel=1e-6)


def test_variances_of_precise_and_private_blocks_are_those_of_their_sizes():
    p = PrecisionAllocation(sizes=[6, 5, 4], deviations=[3.0, 5.0, 2.0], targets=[0.6])
    m = fo.Model()
    h = p.declare(m)
    m.maximize(h.variances[0])
    most = max(v[0] for _, v in every_sizes(p) if v[0] <= 0.6)
    said = m.solve()
    assert said.objective == pytest.approx(most, rel=1e-6)
    assert most == pytest.approx(dict(every_sizes(p))[tuple(h.decision(said).sizes.astype(int))][0])

    q = PrivateAllocation(sizes=[8, 6, 5], deviations=[1, 2, 6], sample_size=10, value_bound=20, epsilon=2.0)
    table = [(s, v[0], float(q.scales(np.array(s, float)).max()) ** 2) for s, v in every_sizes(q, 10)]
    for part, at in (("variance", 1), ("squared_scale", 2)):
        m = fo.Model()
        h = q.declare(m)
        m.maximize(getattr(h, part))
        assert m.solve().objective == pytest.approx(max(row[at] for row in table), rel=1e-6)
    m = fo.Model()
    h = q.declare(m)
    m.subject_to(h.squared_scale >= 1.3 * h.variance)
    m.minimize(h.variance)
    said = m.solve()
    assert said.objective == pytest.approx(min(v for _, v, c in table if c >= 1.3 * v), rel=1e-6)
    assert q.evaluate(h.decision(said)).objective == pytest.approx(
        said[h.variance] + 2 * said[h.squared_scale], rel=1e-6
    )


def test_many_records_of_a_declared_private_block_are_spared_in_order():
    """More than have a binary each in the problem's own program."""
    p = PrivateAllocation(sizes=[150, 150], deviations=[1, 2], sample_size=200, value_bound=20, epsilon=2.0)
    m = fo.Model()
    h = p.declare(m)
    m.subject_to(h.sizes == np.array([70, 90]))
    m.maximize(h.variance)
    said = m.solve()
    assert said.objective == pytest.approx(p.evaluate([70, 90]).metrics["variance of the sample"], rel=1e-6)


# -- what there is no allocation for, and what is no declaration -------------------------------------------


@pytest.mark.parametrize("method", ["greedy", "milp", "neyman", "proportional", "enumeration"])
def test_too_small_a_sample_is_infeasible(method):
    s = StratifiedAllocation(**SMALL, sample_size=2).solve(method)
    assert s.status is fo.Status.INFEASIBLE and s.decision is None
    if method in ("greedy", "neyman", "proportional"):
        assert s.reason == "the minimum of all strata needs 3; sample_size is 2"
    if method in ("milp", "enumeration"):
        q = PrivateAllocation(**SMALL, sample_size=2, epsilon=1.0, value_bound=1.0)
        assert q.solve(method).status is q.solve("sweep").status is fo.Status.INFEASIBLE


@pytest.mark.parametrize("method", ["greedy", "milp", "neyman", "proportional"])
def test_too_large_a_sample_is_a_census(method):
    s = StratifiedAllocation(**SMALL, sample_size=50).solve(method)
    assert s.decision.sizes.tolist() == [20, 10, 5] and s.objective == pytest.approx(0, abs=1e-12)


def test_no_deviation_at_all_costs_no_record():
    p = StratifiedAllocation(sizes=[4, 1], deviations=[0, 7], sample_size=5)
    for method in ("greedy", "milp", "neyman"):
        s = p.solve(method)
        assert s.objective == 0 and s.decision.sizes.tolist() == [1, 1]


def test_a_decision_is_judged():
    p = StratifiedAllocation(**SMALL, sample_size=12, costs=[1, 1, 1], budget=11.0, minimum=2)
    e = p.evaluate([1, 11, 2.5])
    assert e.violations == pytest.approx(
        {"minimum": 1, "stratum": 1, "whole sizes": 0.5, "sample_size": 2.5, "budget": 3.5}
    )
    assert p.evaluate([0, 2, 2]).objective == np.inf
    with pytest.raises(DeclarationError, match="the sizes: the shape"):
        p.evaluate([1, 2])
    with pytest.raises(ValueError, match="not whole"):
        p.allocation([1.5, 2, 2]).by_stratum()


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({}, "neither sample_size nor budget"),
        ({"sizes": [0, 10, 5], "sample_size": 9}, "each at least 1"),
        ({"sizes": [], "deviations": [], "sample_size": 9}, "at least one number"),
        ({"sizes": [2.5, 10, 5], "sample_size": 9}, "must be an integer"),
        ({"deviations": [1, -2, 6], "sample_size": 9}, "deviations of stratum 1 are negative"),
        ({"deviations": [1, 2], "sample_size": 9}, r"must be \(3,\) or \(3, V\)"),
        ({"sample_size": 0}, "greater than 0"),
        ({"sample_size": 9, "minimum": 0}, "at least 1"),
        ({"sample_size": 9, "minimum": [1, 1]}, "at least 1, for all strata or for each"),
        ({"sample_size": 9, "costs": [1, 1, 1]}, "costs and budget go together"),
        ({"costs": [1, 0, 1], "budget": 9}, r"above 0 of shape \(3,\)"),
        ({"sample_size": 9, "weights": [1, 2]}, "1 numbers above 0, one for each variable"),
        ({"sample_size": 9, "means": [1, 2]}, "means"),
        ({"sample_size": 9, "names": ["a", "a", "b"]}, "names"),
        ({"sample_size": 9, "criterion": "best"}, "criterion"),
    ],
)
def test_bad_declarations_are_refused(fields, rule):
    with pytest.raises(DeclarationError, match=rule):
        StratifiedAllocation(**{**SMALL, **fields})


def test_bad_relatives_are_refused():
    with pytest.raises(DeclarationError, match="targets must be 1 numbers above 0"):
        PrecisionAllocation(**SMALL, targets=0.0)
    with pytest.raises(DeclarationError, match="costs"):
        PrecisionAllocation(**SMALL, targets=1.0, costs=[1, 1])
    private = {**SMALL, "sample_size": 9, "epsilon": 1.0, "value_bound": 1.0}
    for change, rule in (
        ({"epsilon": 0.0}, "epsilon is 0.0"),
        ({"epsilon": [1.0, 2.0]}, "one for each stratum"),
        ({"value_bound": 0.0}, "value_bound"),
        ({"deviations": [[1], [2], [6]]}, "one variable"),
        ({"integer": False}, "whole sizes only"),
    ):
        with pytest.raises(DeclarationError, match=rule):
            PrivateAllocation(**{**private, **change})


def test_methods_say_what_they_do_not_take():
    two = StratifiedAllocation(sizes=[5, 5], deviations=[[1, 2], [2, 1]], sample_size=4, criterion="leximax")
    for method in ("greedy", "neyman"):
        with pytest.raises(DeclarationError, match="leximax"):
            two.solve(method)
    fractions = StratifiedAllocation(**SMALL, sample_size=9, integer=False)
    for method in ("milp", "enumeration"):
        with pytest.raises(DeclarationError, match="integer is False"):
            fractions.solve(method)
    with pytest.raises(DeclarationError, match="tries 1,000,000 at most"):
        random_strata(50, seed=0).solve("enumeration")


@pytest.mark.parametrize(
    "problem",
    [
        StratifiedAllocation(**SMALL, costs=[1, 2, 3], budget=20.0, names=["a", "b", "c"]),
        PrecisionAllocation(**SMALL, targets=0.3),
        PrivateAllocation(**SMALL, sample_size=9, epsilon=[1, 2, 3], value_bound=2.0),
    ],
    ids=lambda p: type(p).__name__,
)
def test_declarations_go_to_files(problem, tmp_path):
    problem.save(tmp_path / "p.json")
    data = json.loads((tmp_path / "p.json").read_text())
    assert type(problem).from_dict(data) == problem


def test_the_problems_import_no_heavy_package():
    code = (
        "import sys, forcopt.models.allocation, forcopt.models.amplification\n"
        "print([m for m in ('pandas', 'matplotlib', 'highspy', 'cvxpy') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_certificates_count_in_the_problems_units():
    p = fo.load("allocation/establishments")
    s = p.solve("milp")
    assert s.unit != 1.0
    certificate = s.certify()
    assert certificate.optimal
    assert float(certificate.objective) == pytest.approx(s.objective, rel=1e-12)
    assert certificate.bound == certificate.objective


def test_a_limit_that_is_met_but_for_rounding_is_met():
    p = StratifiedAllocation(sizes=[8], deviations=[1], minimum=3, costs=[0.1], budget=0.3)  # 3 * 0.1 > 0.3
    for method in ("enumeration", "milp", "greedy", "neyman", "proportional"):
        assert p.solve(method).decision.sizes.tolist() == [3]


def test_every_method_of_the_guides_first_example_is_certified():
    """The windows of `milp` leave one allocation, so that its model has no columns."""
    p = StratifiedAllocation(sizes=[100, 50, 50], deviations=[1, 4, 2], sample_size=40)
    assert p.to_model("milp").column_count == 0
    for method in ("milp", "greedy", "neyman"):
        found = p.solve(method).certify()
        assert found.optimal and float(found.objective) == pytest.approx(0.0725)


@pytest.mark.parametrize("column", ["type", "area"])
def test_records_with_missing_values_are_refused(column):
    """They were left out of the strata or of their deviations."""
    pd = pytest.importorskip("pandas")
    farms = pd.DataFrame({"type": list("aabb"), "area": [1.0, 2.0, 4.0, 6.0]})
    farms[column] = farms[column].where(farms.index != 1)
    with pytest.raises(ValueError, match=f"column '{column}' misses a value in row 1"):
        StratifiedAllocation.from_records(farms, by="type", values="area", sample_size=2)


@pytest.mark.parametrize("excess", [0.0, 1e-12, 3e-9, 1e-7, 9e-7, 2e-6, 1e-4])
def test_all_methods_and_the_evaluation_have_one_rule_for_what_is_precise_enough(excess):
    """The cheapest sizes miss the target by a little: every method takes them, or none does."""
    p = PrecisionAllocation(sizes=[8, 8, 5], deviations=[2, 3, 1e-4], targets=1.0, costs=[2, 0.5, 1])
    variance = float(p.variances(np.array([3.0, 7.0, 1.0]))[0])
    q = p.replace(targets=[variance / (1 + excess)])
    accepted = q.evaluate([3, 7, 1]).feasible
    assert accepted == (excess < 1e-6)
    for method in ("enumeration", "milp"):
        s = q.solve(method)
        assert s.status is fo.Status.OPTIMAL
        assert (s.objective, s.evaluation.feasible) == (10.5 if accepted else 11.0, True), method
        assert s.bound == pytest.approx(s.objective, rel=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_the_sweep_is_exact_over_many_noise_scales(seed):
    rng = np.random.default_rng(seed)
    p = PrivateAllocation(
        sizes=rng.integers(20, 45, 3),
        deviations=rng.uniform(0.5, 5, 3),
        sample_size=40,
        epsilon=rng.uniform(0.3, 2, 3),
        value_bound=float(rng.uniform(2, 8)),
    )
    assert p.solve("sweep").objective == pytest.approx(p.solve("enumeration").objective, rel=1e-12)
