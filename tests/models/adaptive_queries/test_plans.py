import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

import forcopt as fo
from forcopt.errors import DeclarationError
from forcopt.models import AccuracyPlan
from forcopt.models.adaptive_queries import (
    DecayingCorrelation,
    IndependentBlocks,
    NaiveComposition,
    Plan,
    StreamedBlocks,
    combine_labels,
    guarantee,
    label_split,
    run_probability,
    transfer,
)
from forcopt.models.adaptive_queries.theorems import best_split


def test_the_closed_form_beats_a_grid():
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b, failure = 10.0 ** rng.uniform([-9, -9, -3], [-2, -2, -0.3])
        value = np.dot([1, 2], best_split(a, b, failure))
        c = a / failure * (1 + np.geomspace(1e-6, 1e6, 20_000))
        d = b / (failure - a / c)
        assert value <= (c + 2 * d).min() * (1 + 1e-12)
        assert value >= (c + 2 * d).min() * (1 - 1e-5)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(
    "model",
    [
        IndependentBlocks(20),
        StreamedBlocks(8),
        NaiveComposition(5),
        NaiveComposition(5, "advanced"),
        DecayingCorrelation(50, 0.5, 25),
        DecayingCorrelation(50, 0.5, 25, "sliding"),
    ],
)
def test_a_dense_grid_finds_no_better_plan(model, noise):
    p = AccuracyPlan(model, 20_000, 5, 0.1, noise)
    s = p.solve()
    assert s.evaluation.feasible and s.evaluation.metrics["failure"] <= p.failure * (1 + 1e-9)
    best = grid_error(p)
    assert s.objective <= best + 1e-4
    assert s.objective >= best - 0.02 * best
    for method in ("naive", "split-sample"):
        other = p.solve(method)
        assert other.evaluation.feasible, (method, other.evaluation)


def grid_error(p):
    """The least error over a grid, from the theorems' formulas."""
    model, n = p.data_model, p.records
    naive = isinstance(model, NaiveComposition)
    answers = p.queries * (model.blocks if naive else 1)
    factor = 2 if isinstance(model, StreamedBlocks) else 1
    times = 1 if naive else model.multiplicity
    room = p.failure - model.dependence_term(n)
    if p.noise == "laplace" and not (naive and model.rule == "advanced"):
        epsilon, beta = np.meshgrid(np.geomspace(1e-3, 3, 4000), np.geomspace(1e-9, 0.1, 400))
        alpha, delta = answers / (n * epsilon) * np.log(answers / beta), 0.0
    elif p.noise == "laplace":
        each, delta, beta = np.meshgrid(
            np.geomspace(1e-4, 1, 500), np.geomspace(1e-12, 0.1, 80), np.geomspace(1e-9, 0.1, 80)
        )
        m = model.blocks
        epsilon = np.sqrt(2 * m * np.log(1 / delta)) * each + m * each * (np.exp(each) - 1)
        alpha = p.queries / (n * each) * np.log(answers / beta)
    else:
        epsilon, beta, sigma = np.meshgrid(
            np.geomspace(1e-3, 3, 150), np.geomspace(1e-9, 0.1, 60), np.geomspace(1e-5, 1, 150)
        )
        u = math.sqrt(answers) / (n * sigma)
        delta = norm.cdf(u / 2 - epsilon / u) - np.exp(epsilon) * norm.cdf(-u / 2 - epsilon / u)
        alpha, delta = sigma * norm.isf(beta / (2 * answers)), np.maximum(delta, 0)
    a, b = times * beta, times * factor * delta
    return float((alpha + np.exp(factor * epsilon) - 1 + (np.sqrt(a) + np.sqrt(2 * b)) ** 2 / room).min())


def test_plans_that_break_a_rule_are_infeasible():
    p = AccuracyPlan(IndependentBlocks(20), 100_000, 10, 0.05)
    good = p.solve().decision
    values = {k: getattr(good, k) for k in ("epsilon", "delta", "beta", "scale", "c", "d")}
    for name, factor, rule in (("scale", 0.9, "privacy"), ("c", 0.5, "failure"), ("epsilon", 0.9, "privacy")):
        e = p.evaluate(Plan(**{**values, name: values[name] * factor}))
        assert rule in e.violations and not e.feasible
    wide = AccuracyPlan(DecayingCorrelation(50, 0.5, 25), 1000, 5, 0.1)
    found = wide.solve().decision
    moved = Plan(**{k: getattr(found, k) for k in values}, width=24)
    assert "width" in wide.evaluate(moved).violations


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("method", ["search", "naive"])
@pytest.mark.parametrize(
    ("model", "n", "k"), [(IndependentBlocks(2362), 2, 3), (NaiveComposition(6187), 64, 921)]
)
def test_hopeless_plans_are_vacuous(model, n, k, method, noise):
    s = AccuracyPlan(model, n, k, 1e-4, noise).solve(method)
    assert s.objective > 1 and s.evaluation.feasible and "vacuous" in s.message


@pytest.mark.parametrize("method", ["search", "naive"])
def test_plans_keep_the_time_limit(method):
    p = AccuracyPlan(IndependentBlocks(20), 100_000, 10, 0.05)
    s = p.solve(method, time_limit=0.0)
    assert s.evaluation.feasible and s.objective < 1.5 * p.solve(method).objective


def test_laws_of_the_guarantee():
    model = IndependentBlocks(7)
    base = {"alpha": 0.1, "beta": 1e-4, "epsilon": 0.2, "delta": 1e-6, "c": 0.01, "d": 0.01}
    g = guarantee(model, **base)
    for name in ("alpha", "beta", "epsilon", "delta"):
        more = guarantee(model, **{**base, name: base[name] * 2})
        assert more.alpha >= g.alpha and more.beta >= g.beta
    tight = guarantee(model, **{**base, "c": 0.005})
    assert tight.alpha < g.alpha and tight.beta > g.beta
    silent = {**base, "epsilon": 0.0, "delta": 0.0}
    assert guarantee(StreamedBlocks(7), **silent) == guarantee(model, **silent)
    unrelated = guarantee(DecayingCorrelation(7, 1.0, 1), **base, records=50)
    assert (unrelated.alpha, unrelated.beta) == pytest.approx((g.alpha, g.beta))
    assert guarantee(model, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0).vacuous


def test_a_width_that_covers_everything_is_the_plain_theorem():
    wide = DecayingCorrelation(10, 0.3, 11)
    assert wide.covers_all and wide.multiplicity == wide.windows == 1
    p = AccuracyPlan(wide, 1000, 5, 0.1)
    plain = AccuracyPlan(IndependentBlocks(1), 1000, 5, 0.1)
    s = p.solve()
    assert s.objective == pytest.approx(plain.solve().objective)
    assert "plain transfer theorem" in s.message


def test_independence_zero_is_vacuous():
    s = AccuracyPlan(DecayingCorrelation(100, 0.0, 3), 1000, 5, 0.1).solve()
    assert s.status is fo.Status.INFEASIBLE and "vacuous" in s.reason
    assert AccuracyPlan(DecayingCorrelation(100, 0.0, 3), 1000, 5, 0.1).minimum_records(0.5) is None


def test_a_sample_too_small_for_folds_is_infeasible():
    s = AccuracyPlan(StreamedBlocks(4), 19, 10, 0.1).solve("split-sample")
    assert s.status is fo.Status.INFEASIBLE and "20 folds" in s.reason


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: AccuracyPlan(IndependentBlocks(2), 0, 5, 0.1), "records"),
        (lambda: AccuracyPlan(IndependentBlocks(2), 10, 0, 0.1), "queries"),
        (lambda: AccuracyPlan(IndependentBlocks(2), 10, 5, 0.0), "failure"),
        (lambda: AccuracyPlan(IndependentBlocks(2), 10, 5, 0.1, "cauchy"), "noise"),
        (lambda: IndependentBlocks(0), "blocks"),
        (lambda: DecayingCorrelation(5, 1.5, 1), "independence"),
        (lambda: DecayingCorrelation(5, 0.5, -1), "width"),
        (lambda: DecayingCorrelation(5, 0.5, 1).least_width(10, 0.0), "failure"),
        (lambda: transfer(-0.1, 0.1, 0.1, 0.0, 0.1, 0.0), "alpha"),
        (lambda: transfer(0.1, 1.1, 0.1, 0.0, 0.1, 0.0), "beta"),
        (lambda: transfer(0.1, 0.1, -0.1, 0.0, 0.1, 0.0), "epsilon"),
        (lambda: transfer(0.1, 0.1, 0.1, 1.0, 0.1, 0.1), "delta"),
        (lambda: transfer(0.1, 0.1, 0.1, 0.0, 0.0, 0.0), "c is 0"),
        (lambda: transfer(0.1, 0.1, 0.1, 0.1, 0.1, 0.0), "d is 0"),
        (lambda: label_split([0.1, 0.1], [0.1, 0.1], 1.2, 10, 1.0), "share"),
        (lambda: combine_labels([0.1, 0.2], [0, 10]), "class 0 has no records"),
        (lambda: combine_labels([0.1, 0.2], [0, 10], share=1.0), "class 0 has no records"),
        (lambda: run_probability(-1, 0.5, 1), "links"),
        (lambda: AccuracyPlan(IndependentBlocks(2), 10, 5, 0.1).minimum_records(0.0), "target"),
    ],
)
def test_malformed_input_raises(make, words):
    with pytest.raises(DeclarationError, match=words):
        make()


def test_label_classes_that_are_known_to_be_empty():
    assert combine_labels([np.pi, 0.2], [0, 10], share=0.0) == pytest.approx(0.2)
    assert label_split([0.1, 0.2], [0.01, 0.02], 1.0, 10, 1.0).alpha == 0.1


def test_declarations_are_files(tmp_path):
    models = [
        IndependentBlocks(3),
        StreamedBlocks(3),
        NaiveComposition(3, "advanced"),
        DecayingCorrelation(9, 0.5, 2, "sliding", "crude"),
    ]
    for model, noise in product(models, ("laplace", "gaussian")):
        p = AccuracyPlan(model, 1000, 3, 0.1, noise)
        p.save(tmp_path / "p.json")
        assert fo.load(tmp_path / "p.json") == p
