import math
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from forcopt.errors import DeclarationError
from forcopt.privacy import PrivacyBudget
from forcopt.privacy.amplification import (
    cluster_sample,
    data_dependent_allocation,
    expected_size,
    largest_epsilon,
    largest_rate,
    largest_size,
    noisy_statistic,
    poisson_sample,
    proportional_allocation,
    random_size,
    randomized_rounding,
    revealed_cluster,
    rounded_sizes,
    simple_random_sample,
)

epsilons = st.floats(0.01, 3)
laws = (
    st.lists(st.floats(0, 1), min_size=2, max_size=8)
    .filter(lambda w: sum(w) > 0.01)
    .map(lambda w: np.array(w) / sum(w))
)


@settings(max_examples=25, deadline=None)
@given(epsilon=epsilons, law=laws, more=st.floats(0.01, 1))
def test_random_sizes_lose_between_the_bounds_more_with_a_larger_epsilon(epsilon, law, more):
    for mechanism in ("add_remove", "either", "substitute"):
        loss = random_size(epsilon, law, mechanism=mechanism)
        assert -1e-12 <= loss.lower <= loss.upper + 1e-12
        assert loss.upper <= (2 if mechanism == "add_remove" else 1) * epsilon + 1e-12
        assert random_size(epsilon + more, law, mechanism=mechanism).upper >= loss.upper


def test_the_tilted_mean_of_a_binomial_law_is_known():
    """log-space: e^(0.8 * 5000) overflows."""
    assert expected_size(binom.pmf(range(5001), 5000, 0.3), 0.8) == pytest.approx(
        5000 * 0.3 * math.exp(0.8) / (0.7 + 0.3 * math.exp(0.8))
    )
    assert math.isfinite(random_size(0.8, binom.pmf(range(5001), 5000, 0.3)).upper)


def test_what_needs_no_theorem():
    assert randomized_rounding(1.0, 0).exact == 0 and randomized_rounding(1.0, 1).exact == 1
    assert cluster_sample(0.5, [3, 4], 0, 0).exact == 0 and cluster_sample(0.5, [3, 4], 2, 0).exact == 0.5
    assert cluster_sample(0.5, [7], 1).exact == 0.5
    own = [cluster_sample(0.5, [0, 2, 3], 1, i, neighbours="substitute").exact for i in (1, 2)]
    assert cluster_sample(0.5, [0, 2, 3], 1, neighbours="substitute").exact == max(own)
    assert random_size(0.5, [1.0, 0, 0]).exact == 0
    assert simple_random_sample(0.5, 4, 4).exact == pytest.approx(0.5)
    assert simple_random_sample(800.0, 1, 4).exact == pytest.approx(800 - math.log(4))
    assert poisson_sample(0.7, 0.0).exact == 0
    assert noisy_statistic([1, 2], [0.5, 0.5], [2, 1], [0.5, 0.5], 1.0) == 0


@settings(max_examples=25, deadline=None)
@given(epsilon=epsilons, sizes=st.lists(st.integers(0, 9), min_size=2, max_size=7), data=st.data())
def test_clusters_lose_what_symmetric_polynomials_say(epsilon, sizes, data):
    """Theorems 7 and 8 bracket it; with one size of the others they agree."""
    chosen = data.draw(st.integers(1, len(sizes) - 1))
    changed = data.draw(st.integers(0, len(sizes) - 1))
    loss = cluster_sample(epsilon, sizes, chosen, changed)
    u = [math.exp(-epsilon * n) for j, n in enumerate(sizes) if j != changed]
    top, below = (sum(math.prod(c) for c in combinations(u, d)) for d in (chosen, chosen - 1))
    own = math.exp(-epsilon * sizes[changed])
    assert loss.exact == pytest.approx(math.log1p(math.expm1(epsilon) / (1 + own * top / below)), abs=1e-12)
    assert loss.lower - 1e-12 <= loss.exact <= loss.upper + 1e-12 <= epsilon + 1e-9
    others = sizes[:changed] + sizes[changed + 1 :]
    assert (loss.upper - loss.lower < 1e-12) == (len(set(others)) == 1 or loss.upper - loss.lower < 1e-12)
    worst = cluster_sample(epsilon, sizes, chosen)
    assert worst.exact == max(cluster_sample(epsilon, sizes, chosen, i).exact for i in range(len(sizes)))
    assert cluster_sample(epsilon, sizes, chosen + 1, changed).exact >= loss.exact - 1e-12


@pytest.mark.parametrize(("rate", "population"), [(0.1, 30), (0.3, 10), (1 / 3, 9), (0.7, 13), (0.29, 100)])
def test_rounded_sizes_have_the_right_mean_and_no_float_noise(rate, population):
    law = rounded_sizes(rate, population)
    assert law.sum() == pytest.approx(1)
    assert law @ np.arange(population + 1) == pytest.approx(rate * population, abs=1e-6)
    assert np.count_nonzero(law) == (1 if round(rate * population, 9) % 1 == 0 else 2)


def test_proportional_allocation_is_as_private_as_its_worst_stratum():
    sizes = [14, 29, 51]
    losses = [randomized_rounding(0.5, 0.1, n) for n in sizes]
    together = proportional_allocation(0.5, 0.1, sizes)
    assert together.upper == max(x.upper for x in losses) and together.lower == max(x.lower for x in losses)
    assert together.upper <= proportional_allocation(0.5, 0.1).upper
    assert proportional_allocation(0.5, 0.1).lower <= proportional_allocation(0.5, 0.1).upper


def test_the_exact_loss_of_a_noisy_statistic_is_that_of_its_densities():
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 6, 4), rng.integers(0, 6, 5)
    p, q = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(5))
    y = np.linspace(-5, 12, 20_001)
    f = (p * np.exp(-np.abs(y[:, None] - one) / 1.5)).sum(axis=1)
    g = (q * np.exp(-np.abs(y[:, None] - other) / 1.5)).sum(axis=1)
    assert noisy_statistic(one, p, other, q, 1.5) == pytest.approx(np.abs(np.log(f / g)).max(), abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(target=st.floats(0.01, 3), rate=st.floats(0.01, 0.99))
def test_inverses_meet_the_target_and_no_less(target, rate):
    epsilon = largest_epsilon(lambda e: poisson_sample(e, rate), target)
    assert epsilon == pytest.approx(math.log1p(math.expm1(target) / rate), rel=1e-9)
    found = largest_rate(lambda r: poisson_sample(target * 2, r), target)
    assert found == pytest.approx(math.expm1(target) / math.expm1(2 * target), rel=1e-9)
    size = largest_size(lambda m: simple_random_sample(2 * target, m, 50), target, 50)
    assert simple_random_sample(2 * target, size, 50).upper <= target
    assert size == 50 or simple_random_sample(2 * target, size + 1, 50).upper > target


def exactly(value):
    """The number without rounding."""
    return Decimal(float(value))


@pytest.mark.parametrize("epsilon", [0.5, 25.0, 40.0, 800.0])
def test_losses_at_large_epsilon_are_the_formulas(epsilon):
    """The closed forms, evaluated with 1200 digits."""
    law, rate, within, own = [0.25, 0.5, 0.25], 0.25, exactly(epsilon), 3
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = 1200, MAX_EMAX, MIN_EMIN
        grown, shrunk = within.exp(), (-within).exp()
        tilted = [exactly(p) * grown**m for m, p in enumerate(law)]
        share = sum(m * p for m, p in enumerate(tilted)) / (2 * sum(tilted))
        printed = -(1 - share + share * shrunk).ln()
        one = exactly(rate)
        substituted = ((1 + one * (grown - 1)) / (1 + one * (shrunk - 1))).ln()
        cluster = (1 + (grown - 1) / (1 + shrunk ** (own + 2))).ln()
        revealed = (1 + (grown - 1) * one / (one + (1 - one) / grown)).ln()
    found = random_size(epsilon, law, as_printed=True)
    assert found.lower == pytest.approx(float(printed), rel=1e-12)
    assert found.lower <= found.upper <= epsilon * (1 + 1e-12)
    assert poisson_sample(epsilon, rate, neighbours="substitute").exact == pytest.approx(
        float(substituted), rel=1e-12
    )
    assert poisson_sample(epsilon, 1.0, neighbours="substitute").exact == pytest.approx(2 * epsilon)
    assert cluster_sample(epsilon, [own, 2], 1, 0).exact == pytest.approx(float(cluster), rel=1e-12)
    assert cluster_sample(epsilon, [1, 5], 1, 0, neighbours="substitute").upper <= 2 * epsilon * (1 + 1e-12)
    assert revealed_cluster(epsilon, epsilon, rate) == pytest.approx(float(revealed), rel=1e-12)
    assert revealed_cluster(epsilon, -epsilon, rate, loses="before") >= 0
    assert revealed_cluster(epsilon, 1.0, 1.0) == epsilon


def test_inverses_where_anything_goes():
    assert largest_rate(lambda r: poisson_sample(0.5, r), target=1.0) == 1.0
    assert largest_epsilon(lambda e: poisson_sample(e, 0.0), target=1.0) == math.inf


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda: simple_random_sample(0.0, 1, 2), "epsilon is 0.0; it must be positive"),
        (lambda: simple_random_sample(math.inf, 1, 2), "epsilon is inf"),
        (lambda: simple_random_sample([1.0], 1, 2), r"epsilon is \[1.0\]; it must be positive"),
        (lambda: simple_random_sample(1.0, "a", 2), "size is 'a'; it must be a whole number"),
        (lambda: PrivacyBudget(1.0).split("a"), "mechanisms is 'a'; it must be a whole number"),
        (lambda: PrivacyBudget(1.0).split(math.nan), "mechanisms is nan; it must be a whole number"),
        (lambda: simple_random_sample(1.0, 3, 2), "size is 3; it must be from 0 to 2"),
        (lambda: simple_random_sample(1.0, 0, 0), "population is 0"),
        (lambda: random_size(1.0, [1.0]), "n >= 1"),
        (lambda: random_size(1.0, [0.5, 0.6]), "law sums to 1.1"),
        (lambda: random_size(1.0, [1.5, -0.5]), "nonnegative"),
        (lambda: random_size(1.0, [[0.5, 0.5]]), "law has shape"),
        (lambda: poisson_sample(1.0, 1.5), "rate is 1.5"),
        (lambda: randomized_rounding(1.0, -0.1), "rate is -0.1"),
        (lambda: randomized_rounding(1.0, 0.5, 0), "population is 0"),
        (lambda: cluster_sample(1.0, [2, 3], 3), "chosen is 3; it must be from 0 to 2"),
        (lambda: cluster_sample(1.0, [0, 0], 1, neighbours="substitute"), "no record that could be"),
        (lambda: cluster_sample(1.0, [2, 3], 1, 2), "changed is 2"),
        (lambda: cluster_sample(1.0, [2, -3], 1), "none negative"),
        (lambda: cluster_sample(1.0, [0, 3], 1, 0, neighbours="substitute"), "an empty cluster"),
        (lambda: data_dependent_allocation(1.0, [1, 2], [1]), "before has 2 strata, after 1"),
        (lambda: noisy_statistic([1], [0.5], [1], [1.0], 1.0), "sum to 1"),
        (lambda: noisy_statistic([1], [1.0], [1], [1.0], 0.0), "scale is 0"),
        (lambda: revealed_cluster(-1.0, 1.0, 0.5), "within is -1.0"),
        (lambda: largest_rate(lambda r: poisson_sample(1.0, r), 0.0), "epsilon is 0.0"),
    ],
)
def test_bad_input_is_refused(call, rule):
    with pytest.raises(DeclarationError, match=rule):
        call()
