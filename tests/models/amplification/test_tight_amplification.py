import json
import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import forcopt as fo
from forcopt.backends.registry import backends
from forcopt.errors import DeclarationError
from forcopt.models import DPHypothesisTest, TightAmplification
from forcopt.privacy import RandomizedRounding, SimpleRandomSample
from forcopt.privacy.amplification import (
    cluster_sample,
    data_dependent_allocation,
    noisy_statistic,
    poisson_sample,
    random_size,
    randomized_rounding,
    rounded_sizes,
    simple_random_sample,
)

LP_BACKENDS = [name for name, b in backends().items() if not b.missing() and not b.capabilities.only_integer]
MECHANISMS = ("add_remove", "substitute", "either")


def loss(problem, **options):
    s = problem.solve(**options)
    assert s.status is fo.Status.OPTIMAL, s
    assert math.log(s.objective) == pytest.approx(s.decision.loss, abs=1e-12)
    return s.decision.loss


def potentials(problem):
    """The largest loss over densities e^(epsilon * whole number): the vertices are among them."""
    steps = problem.steps.astype(int)
    reach = int(steps.sum())
    best = 0.0
    for u in product(range(min(reach, 4) + 1), repeat=len(problem.before)):
        v = np.array(u)
        if (np.abs(v[problem.edges[:, 0]] - v[problem.edges[:, 1]]) <= steps).all():
            q = np.exp(problem.epsilon * v)
            best = max(best, abs(math.log(problem.before @ q) - math.log(problem.after @ q)))
    return best


@pytest.mark.parametrize(
    "problem",
    [
        TightAmplification.of(SimpleRandomSample(size=1), 3, 0.7, mechanism="add_remove"),
        TightAmplification.of(
            SimpleRandomSample(size=1), 3, 0.7, neighbours="add_remove", mechanism="either"
        ),
        TightAmplification.of(RandomizedRounding(rate=0.3), 4, 0.9),
        TightAmplification.of(RandomizedRounding(rate=0.5), 1, 0.4),
        TightAmplification.cluster_sample([1, 1, 2], 1, 0, 0.5),
        TightAmplification.stratified([2, 2], [((1, 1), 1.0)], [((1, 1), 0.3), ((2, 1), 0.7)], 0.6),
    ],
)
def test_the_program_finds_the_best_of_all_vertices(problem):
    assert loss(problem) == pytest.approx(potentials(problem), abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(
    weights=st.lists(st.integers(0, 20), min_size=2, max_size=7).filter(any),
    epsilon=st.floats(0.05, 1.5),
)
def test_random_sizes_lie_between_their_bounds(weights, epsilon):
    law = np.array(weights) / sum(weights)
    for mechanism in MECHANISMS:
        exact = loss(TightAmplification.random_size(law, epsilon, mechanism=mechanism))
        bounds = random_size(epsilon, law, mechanism=mechanism)
        assert bounds.lower - 1e-7 <= exact <= bounds.upper + 1e-7


@pytest.mark.parametrize("neighbours", ["add_remove", "substitute"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_fixed_sizes_and_poisson_samples_have_closed_forms(mechanism, neighbours):
    for m, n in ((0, 3), (1, 3), (2, 5), (4, 4)):
        tight = TightAmplification.of(
            SimpleRandomSample(size=m), n, 0.7, mechanism=mechanism, neighbours=neighbours
        )
        formula = simple_random_sample(0.7, m, n, mechanism=mechanism, neighbours=neighbours)
        assert loss(tight) == pytest.approx(formula.exact, abs=1e-8)
    if mechanism != "substitute":
        after = None if neighbours == "substitute" else binom.pmf(range(8), 7, 0.3)
        tight = TightAmplification.random_size(
            binom.pmf(range(7), 6, 0.3), 0.5, after=after, mechanism=mechanism
        )
        formula = poisson_sample(0.5, 0.3, mechanism=mechanism, neighbours=neighbours)
        assert loss(tight) == pytest.approx(formula.exact, abs=1e-8)


@settings(max_examples=15, deadline=None)
@given(epsilon=st.floats(0.05, 1), sizes=st.lists(st.integers(0, 5), min_size=2, max_size=5), data=st.data())
def test_clusters_have_a_closed_form(epsilon, sizes, data):
    chosen = data.draw(st.integers(0, len(sizes)))
    changed = data.draw(st.integers(0, len(sizes) - 1))
    for neighbours in ("add_remove", *(["substitute"] if sizes[changed] else [])):
        tight = TightAmplification.cluster_sample(sizes, chosen, changed, epsilon, neighbours=neighbours)
        formula = cluster_sample(epsilon, sizes, chosen, changed, neighbours=neighbours)
        assert loss(tight) == pytest.approx(formula.exact, abs=1e-7)
        assert formula.lower - 1e-9 <= formula.exact <= formula.upper + 1e-9


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.3, 0.7])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_rounding_lies_between_its_bounds(rate, epsilon):
    general = randomized_rounding(epsilon, rate)
    for n in (1, 2, 5, 9, 14, 20):
        exact = loss(TightAmplification.of(RandomizedRounding(rate=rate), n, epsilon))
        bounds = randomized_rounding(epsilon, rate, n)
        assert bounds.lower - 1e-8 <= exact <= bounds.upper + 1e-8
        assert exact <= general.upper + 1e-8
        if rate * n >= 1:
            assert bounds.upper <= general.upper + 1e-9


def test_allocations_that_follow_the_data_lose_what_their_sizes_tell():
    before, after = (3, 4), (5, 4)
    p = TightAmplification.stratified([6, 8], [(before, 1.0)], [(after, 1.0)], 0.4)
    bounds = data_dependent_allocation(0.4, before, after)
    assert bounds.lower - 1e-9 <= loss(p) <= bounds.upper + 1e-9


def test_another_stratum_of_fixed_size_changes_nothing():
    alone = TightAmplification.of(RandomizedRounding(rate=0.4), 4, 0.8)
    first, second = ([((m, 2), p) for m, p in enumerate(rounded_sizes(0.4, n)) if p] for n in (4, 5))
    assert loss(TightAmplification.stratified([4, 5], first, second, 0.8)) == pytest.approx(loss(alone))


def test_enumerated_mechanisms_lose_no_more_than_the_program_says():
    """Noisy sums over all samples of small populations, exactly."""
    rng = np.random.default_rng(1)
    for _ in range(10):
        n = int(rng.integers(3, 7))
        m = int(rng.integers(1, n))
        values = rng.integers(-1, 2, n).astype(float)
        other = values.copy()
        other[0] = -values[0] if values[0] else 1.0
        sums = [np.array([v[list(c)].sum() for c in combinations(range(n), m)]) for v in (values, other)]
        law = np.full(len(sums[0]), 1 / len(sums[0]))
        real = noisy_statistic(sums[0], law, sums[1], law, scale=1 / 0.5)  # 0.5-private: one record moves 1
        bound = simple_random_sample(0.5, m, n, mechanism="add_remove").exact
        assert real <= bound + 1e-12
        assert real > 0


@pytest.mark.parametrize("backend", LP_BACKENDS)
def test_every_backend_for_linear_programs_agrees(backend):
    accuracy = 100 * max(backends()[backend].accuracy, 1e-8)
    for p in (
        TightAmplification.random_size([1 / 6] * 6, 0.5),
        TightAmplification.cluster_sample([2, 3, 5], 1, 0, 0.3),
    ):
        s = p.solve(backend=backend)
        assert s.status is fo.Status.OPTIMAL and s.evaluation.feasible
        assert s.decision.loss == pytest.approx(loss(p), abs=accuracy)
    t = DPHypothesisTest(first=binom.pmf(range(9), 8, 0.3), second=binom.pmf(range(9), 8, 0.4), epsilon=0.7)
    assert t.solve(backend=backend).objective == pytest.approx(t.solve().objective, abs=accuracy)


def test_mechanisms_that_may_tell_the_size_tell_all_of_it():
    """Private under substitution only: a size that only one population has is seen at once."""
    p = TightAmplification.random_size([0, 1, 0], 0.5, after=[0, 0, 1, 0], mechanism="substitute")
    assert p.solve().status is fo.Status.UNBOUNDED


# -- the best private test ---------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
@pytest.mark.parametrize("distance", range(1, 7))
def test_point_masses_at_a_distance(epsilon, distance):
    first, second = np.eye(distance + 1)[[0, -1]]
    s = DPHypothesisTest(first=first, second=second, epsilon=epsilon).solve()
    if distance % 2:
        expected = 1 - 2 * math.exp(-epsilon * (distance - 1) / 2) / (1 + math.exp(epsilon))
    else:
        expected = 1 - math.exp(-epsilon * distance / 2)
    assert s.objective == pytest.approx(expected, abs=1e-9)


@settings(max_examples=10, deadline=None)
@given(rate=st.sampled_from([0.1, 0.3, 0.5, 0.9]), n=st.integers(1, 12), epsilon=st.floats(0.1, 1.5))
def test_a_test_certifies_no_more_than_the_loss(rate, n, epsilon):
    first = np.append(rounded_sizes(rate, n), 0.0)
    s = DPHypothesisTest(first=first, second=rounded_sizes(rate, n + 1), epsilon=epsilon).solve()
    certified = s.evaluation.metrics
    assert certified["loss by Proposition 4"] <= certified["loss"] + 1e-12
    assert certified["loss"] <= loss(TightAmplification.of(RandomizedRounding(rate=rate), n, epsilon)) + 1e-7


# -- declarations ------------------------------------------------------------------------------------------


def test_decisions_are_judged():
    p = TightAmplification.random_size([0, 1], 0.5)
    assert p.evaluate(np.ones(len(p.before))).objective == 1
    broken = p.evaluate(np.exp(np.arange(len(p.before))))
    assert broken.violations["privacy"] > 0
    with pytest.raises(DeclarationError, match="the density: the shape"):
        p.evaluate([1.0])
    with pytest.raises(DeclarationError, match="must not be negative"):
        p.evaluate(-np.ones(len(p.before)))
    t = DPHypothesisTest(first=[1, 0], second=[0, 1], epsilon=1.0)
    assert set(t.evaluate([1.5, 0.0]).violations) == {"privacy", "probability"}
    assert t.solve().decision.acceptance.tolist() == pytest.approx([1 / (1 + math.exp(-1)), 1 / (1 + math.e)])
    with pytest.raises(DeclarationError, match="the test: the shape"):
        t.evaluate([1.0])


def test_declarations_go_to_files_and_pictures(tmp_path):
    p = TightAmplification.cluster_sample([1, 2], 1, 0, 0.4)
    p.save(tmp_path / "p.json")
    assert (
        TightAmplification(
            **{k: v for k, v in json.loads((tmp_path / "p.json").read_text()).items() if k != "model"}
        )
        == p
    )
    s = p.solve()
    s.decision.plot(tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 1000
    assert "loss" in repr(s.decision) and s.decision.direction in ("before", "after")


def test_samples_without_neighbours(tmp_path):
    TightAmplification.cluster_sample([2, 3], 0, 0, 0.7).save(tmp_path / "nothing.json")
    assert fo.load(tmp_path / "nothing.json").solve().decision.loss == 0
    apart = TightAmplification(before=[0.5, 0.5], after=[0.4, 0.6], edges=[], steps=[], epsilon=1.0)
    assert apart.solve().objective == pytest.approx(1.25)


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (
            lambda: TightAmplification(before=[1], after=[1], edges=[[0, 0, 0]], steps=[1], epsilon=1),
            r"edges: the shape is \(1, 3\)",
        ),
        (lambda: TightAmplification.random_size([0.5, 0.6], 1.0), "sum to 1.1"),
        (lambda: TightAmplification.random_size([1.0], 1.0), "n >= 1"),
        (lambda: TightAmplification.random_size([0.5, 0.5], 1.0, after=[1.0, 0]), "n \\+ 2 are needed"),
        (lambda: TightAmplification.random_size([0.5, 0.5], 0.0), "epsilon"),
        (lambda: TightAmplification.of(SimpleRandomSample(size=3), 2, 1.0), "cannot be drawn from"),
        (lambda: TightAmplification.cluster_sample([1, 2], 3, 0, 1.0), "chosen is 3"),
        (lambda: TightAmplification.cluster_sample([1, -2], 1, 0, 1.0), "chosen"),
        (lambda: TightAmplification.stratified([2], [((1,), 1.0)], [((1,), 1.0)], 1.0, changed=1), "changed"),
        (
            lambda: TightAmplification.stratified(
                [0], [((0,), 1.0)], [((0,), 1.0)], 1.0, neighbours="substitute"
            ),
            "a substitution needs a record",
        ),
        (
            lambda: TightAmplification(before=[1.0], after=[0.5, 0.5], edges=[], steps=[], epsilon=1),
            "after has 2 samples",
        ),
        (
            lambda: TightAmplification(before=[1, 0], after=[0, 1], edges=[[0, 2]], steps=[1], epsilon=1),
            "numbered from 0 to 1",
        ),
        (
            lambda: TightAmplification(before=[1, 0], after=[0, 1], edges=[[0, 1]], steps=[-1], epsilon=1),
            "steps",
        ),
        (lambda: DPHypothesisTest(first=[1.0], second=[0.5, 0.5], epsilon=1), "first has 1 counts, second 2"),
        (lambda: DPHypothesisTest(first=[0.9], second=[1.0], epsilon=1), "sum to 0.9"),
        (lambda: DPHypothesisTest(first=[1.0], second=[1.0], epsilon=-1), "epsilon"),
    ],
)
def test_bad_input_is_refused(make, rule):
    with pytest.raises(DeclarationError, match=rule):
        make()
