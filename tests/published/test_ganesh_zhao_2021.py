"""Ganesh and Zhao (2021): formulas, constants and tables, with the errata as printed and corrected."""

import math

import numpy as np
import pytest
from scipy.special import betainc, digamma, gammainc, gammaincc
from scipy.stats import gamma

from forcopt.clock import Deadline
from forcopt.models import CountingQueries, PrivateMechanism
from forcopt.models.counting_queries.calibration import gaussian_shift, least_size
from forcopt.models.counting_queries.ganesh_zhao import (
    SparseVector,
    fisher_information,
    out_of_range,
    theorem17_error,
    theorem17_scale,
)
from forcopt.privacy import GeneralizedGaussian, Laplace

MAXIMA = {  # E max at scale 1, for 1, 10, 64, 100, 1000 and 10^6 queries
    2: (0.56419, 1.329867, 1.835728, 1.942392, 2.429202, 3.534517),
    4: (0.488871, 1.004873, 1.248973, 1.294047, 1.480583, 1.828880),
    6: (0.481277, 0.942098, 1.122786, 1.153635, 1.275009, 1.481816),
    8: (0.481237, 0.919762, 1.071208, 1.095586, 1.188203, 1.336954),
}
SHAPES = (1, 1.5, 2, 3, 4, 6, 8)
CALIBRATED = {  # scales and errors of these shapes, epsilon 1
    (64, 1 / 64): (
        (13.6492, 16.839, 19.58880, 24.2339, 28.1805, 34.938, 40.82),
        (64.750, 41.512, 35.9597, 34.0945, 35.1967, 39.228, 43.73),
    ),
    (100, 1e-6): (
        (41.487, 50.985, 59.74598, 75.3040, 89.3164, 114.93, 138.70),
        (215.21, 134.59, 116.0501, 110.600, 115.580, 132.59, 151.96),
    ),
    (1000, 1e-6): (
        (133.242, 162.59, 188.9334, 233.24, 270.532, 333.56, 387.58),
        (997.38, 565.19, 458.957, 404.56, 400.55, 425.29, 460.53),
    ),
}


def scale(problem, shape):
    start = math.sqrt(problem.queries * fisher_information(shape)) / gaussian_shift(
        problem.epsilon, problem.delta
    )
    law = lambda s: GeneralizedGaussian(shape=shape, scale=s)  # noqa: E731
    return least_size(problem, law, start, Deadline())


def test_moments():
    assert GeneralizedGaussian(shape=1, scale=1).moment(1) == pytest.approx(1, abs=1e-12)
    assert GeneralizedGaussian(shape=2, scale=1).moment(1) == pytest.approx(0.5641895835, abs=1e-10)
    assert GeneralizedGaussian(shape=4, scale=1).moment(1) == pytest.approx(0.4888705337, abs=1e-10)
    assert GeneralizedGaussian(shape=1, scale=1).expected_max(2) == pytest.approx(1.5, abs=1e-11)
    assert GeneralizedGaussian(shape=2, scale=1).expected_max(2) == pytest.approx(
        math.sqrt(2 / math.pi), abs=1e-11
    )


@pytest.mark.parametrize("shape", MAXIMA)
def test_mean_of_the_largest(shape):
    noise = GeneralizedGaussian(shape=shape, scale=1.0)
    for count, value in zip((1, 10, 64, 100, 1000, 10**6), MAXIMA[shape], strict=True):
        assert noise.expected_max(count) == pytest.approx(value, abs=6e-6)
        harmonic = sum(1 / i for i in range(1, count + 1))
        assert Laplace(scale=1.0).expected_max(count) == pytest.approx(harmonic, rel=1e-11)


def test_one_query():
    p = CountingQueries(queries=1, epsilon=1.0, delta=0.01)
    for shape, value in ((1, 0.9802954039), (2, 2.6557170867), (4, 5.3509730604), (6, 7.3784570875)):
        assert scale(p, shape) == pytest.approx(value, abs=1e-8)
    assert scale(p, 1) == pytest.approx(1 / (1 - 2 * math.log(0.99)), abs=1e-9)


def test_gaussian_profile():
    for k, s, epsilon, delta in (
        (16, 20, 1, 2.34529157e-5),
        (64, 40, 1, 2.34529157e-5),
        (100, 60, 0.5, 1.8351231e-3),
    ):
        profile = GeneralizedGaussian(shape=2, scale=s).profile(1) ** k
        for method in ("auto", "contour"):
            assert profile.delta(epsilon, method) == pytest.approx(delta, rel=1e-7)


@pytest.mark.parametrize("queries, delta", CALIBRATED)
def test_exact_scales(queries, delta):
    p = CountingQueries(queries=queries, epsilon=1.0, delta=delta)
    for shape, s, error in zip(SHAPES, *CALIBRATED[queries, delta], strict=True):
        found = scale(p, shape)
        tolerance = {"rel": 1e-6} if shape == 2 else {"rel": 1e-4}
        assert found == pytest.approx(s, **tolerance)
        assert GeneralizedGaussian(shape=shape, scale=found).expected_max(queries) == pytest.approx(
            error, rel=1e-4
        )
    pure = Laplace(scale=queries).expected_max(queries)
    assert pure == pytest.approx({64: 303.609, 100: 518.738, 1000: 7485.471}[queries], rel=1e-5)


@pytest.mark.parametrize(
    "queries, delta, shape, error",
    [
        (64, 1 / 64, 2.883, 34.0764),
        (100, 1e-6, 2.788, 110.367),
        (1000, 1e-6, 3.649, 399.567),
        (10**6, 1e-6, 5.04, 15326),
    ],
)
def test_best_shapes(queries, delta, shape, error):
    s = CountingQueries(queries=queries, epsilon=1.0, delta=delta).solve()
    assert s.decision.shape == pytest.approx(shape, abs=5e-3)
    assert s.objective == pytest.approx(error, rel=2e-5)
    assert not s.evaluation.violations


def test_worst_change_of_two():
    """The profile of all ones, and smaller deltas for other changes, by quadrature."""

    def delta(change, shape, s, epsilon):
        x, w = np.polynomial.legendre.leggauss(400)
        x, w = 5 * s * x, 5 * s * w
        noise = GeneralizedGaussian(shape=shape, scale=s)
        losses = [noise.log_density(x) - noise.log_density(x - c) for c in change]
        mass = np.multiply.outer(w * noise.density(x), w * noise.density(x))
        total = np.add.outer(*losses)
        return float((mass * np.where(total > epsilon, -np.expm1(np.minimum(epsilon - total, 0)), 0)).sum())

    for change, value in (
        ((1, 1), 0.334599),
        ((1, -1), 0.334599),
        ((0.7, 0.9), 0.247839),
        ((1, 0.5), 0.233841),
        ((1, 0), 0.185929),
        ((0.5, 0.5), 0.114616),
    ):
        assert delta(change, 4, 2.0, 0.5) == pytest.approx(value, abs=1e-4)
    assert GeneralizedGaussian(shape=4, scale=2.0).profile(1).delta(0.5) == pytest.approx(0.185929, abs=1e-6)
    for shape, s, epsilon, both, one in (
        (4, 2, 0.5, 0.334599, 0.185929),
        (2, 2, 0.5, 0.23842, 0.12373),
        (6, 3, 0.3, 0.249723, 0.13592),
    ):
        profile = GeneralizedGaussian(shape=shape, scale=s).profile(1)
        assert profile.delta(epsilon) == pytest.approx(one, abs=6e-6)
        assert (profile**2).delta(epsilon) == pytest.approx(both, abs=6e-6)


def cone(p, k, r):
    """Pr[|x_1| >= r ||x||_p] for the cone measure, by the Beta law."""
    return betainc((k - 1) / p, 1 / p, 1 - r**p)


def test_lemma_15_by_the_beta_law():
    for p, k, r, value, bound in (
        (4, 2, 0.5, 0.7277155, 0.983995),
        (4, 3, 0.8, 0.3591268, 0.768375),
        (4, 10, 0.7, 0.1473291, 0.539141),
        (2, 3, 0.5, 0.5, 0.75),
        (1, 3, 0.5, 0.25, 0.25),
    ):
        assert cone(p, k, r) == pytest.approx(value, abs=1e-7)
        assert (1 - r**p) ** ((k - 1) / p) == pytest.approx(bound, abs=1e-6)
        assert cone(p, k, r) <= bound + 1e-6


def test_theorem_1_is_false_for_small_t():
    k, p = 100, 4

    def within(t):
        """Pr[no error above 8 t log^(1/p) k scales]."""
        return gammainc(1 / p, (8 * t * math.log(k) ** (1 / p)) ** p) ** k

    assert within(0.05) == pytest.approx(1.1277e-20, rel=1e-4)
    assert 1 - k ** -(0.05**p) == pytest.approx(2.8782e-5, rel=1e-4)
    assert 1 - within(0.05) > k ** -(0.05**p)  # the printed bound is violated
    for t, tail in ((0.1, 0.867642), (0.12, 0.157267), (0.15, 3.374e-4), (0.2, 1.634e-13)):
        exact = -math.expm1(k * math.log1p(-gammaincc(1 / p, (8 * t * math.log(k) ** (1 / p)) ** p)))
        assert exact == pytest.approx(tail, rel=1e-3)
        assert exact <= k ** -(t**p)


def test_constants_of_theorem_1_hold_from_shape_2_only():
    """Rounding the shape up to an even one, at least 4, loses sqrt(p' / p)."""
    for p, constant, error in ((2.0, 262, 2094), (1.0, 370, 2960)):
        assert math.ceil(185 * math.sqrt(4 / p)) == constant
        assert math.ceil(1480 * math.sqrt(4 / p)) in (error, error - 1)
    assert 185 * math.sqrt(4 / 1.5) > 262


def test_sparse_vector_noise():
    """The book's alpha' does not cover the noise of the answers, the union bound does."""
    generator = np.random.default_rng(0)
    for k, c, epsilon, delta, beta, book, union, missed in (
        (50, 50, 1.0, 1e-3, 0.05, 5622.2, 10430.7, 0.475),
        (200, 3, 1.0, 1e-3, 0.05, 1216.1, 1657.2, 0.07),
    ):
        printed = (
            (math.log(k) + math.log(4 * c / beta)) * math.sqrt(c * math.log(2 / delta)) * (math.sqrt(512) + 1)
        )
        assert printed / epsilon == pytest.approx(book, rel=1e-4)
        sv = SparseVector(corrections=c, threshold=1.0, epsilon=epsilon, delta=delta)
        s1, s2 = sv.scales
        safe = max(
            s1 * math.log(3 * (c + 1) / beta) + 2 * s1 * math.log(3 * k / beta), s2 * math.log(3 * c / beta)
        )
        assert safe == pytest.approx(union, rel=1e-4)
        assert 1 - (1 - math.exp(-book / s2)) ** c == pytest.approx(missed, abs=0.02)
        assert 1 - (1 - math.exp(-union / s2)) ** c <= beta
        alpha = 4 * safe
        law = SparseVector(corrections=c, threshold=0.75 * alpha, epsilon=epsilon, delta=delta)
        x = generator.uniform(-alpha / 2, alpha / 2, (200, k))
        x[:, : c // 2 + 1] *= 4
        y = law.estimate(x, generator)
        assert (np.abs(y - x).max(axis=1) < alpha).all()


TABLE = [
    (1, 1, 3, 0, 0.25),
    (1, 1, 3, 0.1, 0.225),
    (2, 1, 2, 0, 4 / 7),
    (2, 1, 2, 0.1, 17 / 35),
    (2, 1, 3, 0, 3 / 7),
    (3, 1, 2, 0, 28 / 39),
    (4, 1, 2, 0, 36 / 43),
    (1, 2, 3, 0, 0.5),
    (1, 2, 3, 0.1, 0.45),
    (1, 3, 3, 0, 0.7),
    (2, 2, 2, 0, 1.0),
]


@pytest.mark.parametrize("most, queries, ratio, delta, value", TABLE)
def test_optimal_mechanisms(most, queries, ratio, delta, value):
    s = PrivateMechanism.counts(most, queries, epsilon=math.log(ratio), delta=delta).solve()
    assert s.objective == pytest.approx(value, abs=1e-8)
    certificate = s.certify()
    assert certificate.feasible and certificate.optimal


def test_constants_of_the_paper():
    assert theorem17_scale(1000, 1.0, 1e-6, 4) == pytest.approx(43489.578, abs=1e-3)
    assert theorem17_error(1000, 1.0, 1e-6, 4) == pytest.approx(564039.37, abs=1e-2)
    s = CountingQueries(queries=1000, epsilon=1.0, delta=1e-6).solve("ganesh-zhao", shape=4)
    assert s.objective == pytest.approx(64389.94, abs=1e-2)
    assert s.decision.scale == pytest.approx(43489.6, abs=0.05)
    exact = GeneralizedGaussian(shape=4, scale=scale(s.problem, 4))
    assert exact.scale == pytest.approx(270.5318, abs=5e-5)
    assert exact.expected_max(1000) == pytest.approx(400.545, abs=5e-4)


def test_digamma_and_gamma_checks():
    for r, value in ((1, 0.305441), (2, 0.667208), (3, 0.780862), (10, 0.936616)):
        found = 2 * r * digamma(2 * r) / ((2 * r + 1) * digamma(2 * r + 1))
        assert found == pytest.approx(value, abs=1e-6)
    for a, value in ((1, 0.528805), (2, 0.355819), (5, 0.138075), (10, 0.036823), (100, 3.2001e-10)):
        found = gamma.cdf(a / 2, a) + gamma.sf(2 * a, a)
        assert found == pytest.approx(value, rel=1e-4)
        assert found <= math.exp(-0.001 * a)


def test_lemma_25_by_its_short_proof():
    """E e^(-l (Y - mu)) <= exp(l^2 mu / 2), for Y = |x|^(p-1), without the gap of the printed proof."""
    x, w = np.polynomial.legendre.leggauss(2000)
    for p in (1.5, 2, 3, 10, 50):
        y = 1.0 + 0.9 * (p < 2) + x * (1.0 + 0.9 * (p < 2))
        y = y * 6
        weight = w * 6 * (1.0 + 0.9 * (p < 2)) * np.exp(-np.minimum(y**p, 700)) * p / math.gamma(1 / p)
        mean = float(weight @ y ** (p - 1))
        assert mean == pytest.approx(1 / math.gamma(1 / p), rel=1e-3)
        for rate in (0.1, 0.5, 1, 5, 20):
            moment = float(weight @ np.exp(-rate * (y ** (p - 1) - mean)))
            assert moment <= math.exp(min(rate**2 * mean / 2, 700)) * (1 + 1e-3)


@pytest.mark.parametrize(
    "queries, epsilon, delta, shape, said",
    [
        (1000, 1.0, 1e-6, 5, "even"),
        (1000, 1.0, 1e-6, 2, "even"),
        (1000, 1.0, 1e-6, 8, "log k"),
        (60, 1.0, 1e-3, 4, "4 p^2"),
        (1000, 1.0, 1e-2, 4, "1 / k"),
        (1000, 1.0, 1e-20, 4, "k / 36"),
        (1000, 1.0, 0.0, 4, "unbounded"),
        (1000, 5000.0, 1e-6, 4, "Lemma 14"),
        (3000, 1.0, 1e-34, 8, "tail"),
    ],
)
def test_the_range_of_theorem_17(queries, epsilon, delta, shape, said):
    assert said in out_of_range(queries, epsilon, delta, shape)
    assert not out_of_range(1000, 1.0, 1e-6, 4)


def test_errors_of_the_baselines():
    """Section 1.1: k log k for Laplace noise, k for the k-norm mechanism (equation 2)."""
    for k in (10, 1000):
        p = CountingQueries(queries=k, epsilon=0.5)
        harmonic = sum(1 / i for i in range(1, k + 1))
        assert p.solve("laplace").objective == pytest.approx(k * harmonic / 0.5)
        assert p.solve("k-norm").objective == pytest.approx(k / 0.5)


def test_corrected_gaussian_noise_is_no_better():
    """Equation (3), the mechanism of Steinke and Ullman: below k = 10^12 its corrections never pay.

    Half of the budget nearly doubles the Gaussian noise. Corrections of the few entries of more than
    3 deviations, of which sparse vectors may correct one to sixty-four, have noise above those entries.
    """
    for k in (64, 1000, 10**6, 10**12):
        p = CountingQueries(queries=k, epsilon=1.0, delta=1e-6)
        plain, corrected = (p.solve(method) for method in ("gaussian", "steinke-ullman"))
        assert 1.9 * plain.objective < corrected.objective < 2.1 * plain.objective
        half = p.replace(epsilon=0.5, delta=5e-7)
        assert half.evaluate(corrected.decision).feasible and "inert" in corrected.message
    k = 100_000
    p = CountingQueries(queries=k, epsilon=1.0, delta=1e-6)
    with pytest.raises(ValueError, match="simulate it with SparseVector"):
        p.solve("steinke-ullman", multiplier=2.0)
    law, rng = p.solve("steinke-ullman").decision, np.random.default_rng(0)
    noise = rng.normal(scale=law.scale, size=(5, k))
    for corrections in (1, 8, 64):
        sv = SparseVector(corrections=corrections, threshold=3 * law.scale, epsilon=0.5, delta=5e-7)
        estimate = sv.estimate(noise, rng)
        assert (np.count_nonzero(estimate, axis=1) == corrections).all()
        left = np.abs(noise - estimate).max(axis=1).mean()
        assert left > 0.99 * np.abs(noise).max(axis=1).mean() > p.solve("gaussian").objective


def test_sparse_vectors_with_much_budget_correct_the_largest_entries():
    """With epsilon so large that their noise is small, the largest error falls to the threshold."""
    rng = np.random.default_rng(1)
    noise = rng.normal(scale=1000.0, size=(3, 10_000))
    sv = SparseVector(corrections=100, threshold=3500.0, epsilon=1e4, delta=1e-6)
    left = np.abs(noise - sv.estimate(noise, rng)).max(axis=1)
    assert (np.abs(noise).max(axis=1) > 3600).all() and (left < 3510).all()
