"""Profiles and their composition: against dp-accounting, brute force, and each other."""

from itertools import product
from math import comb, e, exp, expm1, factorial, inf, log

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import norm

from forcopt import DeclarationError
from forcopt.privacy import (
    AdditiveMechanism,
    ApproximateDP,
    BoundedNoise,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    GeneralizedGaussian,
    Laplace,
    PoissonSample,
    Profile,
    RandomizedResponse,
    SimpleRandomSample,
    Simulated,
    TabulatedNoise,
    calibrate,
)
from forcopt.privacy.contour import CappedLoss, contour
from forcopt.privacy.fft import bracket, log_upper_bound
from forcopt.privacy.losses import GaussianLoss


def brute_force(pairs, epsilon):
    """delta of independent finite pairs, over all outcomes."""
    total = 0.0
    for outcome in product(*(range(len(p)) for p, _ in pairs)):
        one = np.prod([p[i] for (p, _), i in zip(pairs, outcome, strict=True)])
        other = np.prod([q[i] for (_, q), i in zip(pairs, outcome, strict=True)])
        total += max(0.0, one - exp(epsilon) * other)
    return total


def test_compositions_of_tables_are_what_enumeration_says():
    """100 random compositions of at most three tables, moved by 1 or 2; both directions."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        pairs, profiles = [], []
        for _ in range(rng.integers(1, 4)):
            n, shift = 2 * int(rng.integers(1, 4)) + 1, int(rng.integers(1, 3))
            law = rng.dirichlet(np.ones(n))
            pairs.append((np.append(law, np.zeros(shift)), np.append(np.zeros(shift), law)))
            profiles.append(TabulatedNoise(law).profile(shift))
        epsilon = float(rng.uniform(0, 2))
        truth = max(brute_force(pairs, epsilon), brute_force([(q, p) for p, q in pairs], epsilon))
        low, high = Profile.together(profiles).bracket(epsilon)
        assert low - 1e-8 <= truth <= high + 1e-8
        assert low == high == pytest.approx(truth, abs=1e-12)


def integral(noise, shift, epsilon):
    x = np.linspace(-60 * noise.variance**0.5, 60 * noise.variance**0.5 + shift, 2_000_001)
    f, g = noise.density(x), noise.density(x - shift)
    return float(np.maximum(f - exp(epsilon) * g, 0).sum() * (x[1] - x[0]))


@pytest.mark.parametrize(
    "noise",
    [
        Laplace(scale=1.3),
        Gaussian(scale=1.1),
        GeneralizedGaussian(shape=1.0, scale=2.0),
        GeneralizedGaussian(shape=1.5, scale=2.0),
        GeneralizedGaussian(shape=2.0, scale=2.0),
        GeneralizedGaussian(shape=4.0, scale=3.0),
        BoundedNoise(power=3.0, radius=6.0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("shift", [1.0, 0.6])
def test_one_release_is_its_integral(noise, shift):
    profile = noise.profile(shift)
    for epsilon in (0.0, 0.3, 0.9):
        assert profile.delta(epsilon) == pytest.approx(integral(noise, shift, epsilon), abs=3e-5)


@pytest.mark.parametrize("noise", [DiscreteLaplace(scale=2.0), DiscreteGaussian(scale=1.7)], ids=repr)
@pytest.mark.parametrize("shift", [1, 3])
def test_whole_noise_is_its_sum(noise, shift):
    x = np.arange(-200, 200)
    f, g = noise.density(x), noise.density(x - shift)
    assert f.sum() == pytest.approx(1, abs=1e-14)
    for epsilon in (0.0, 0.2, 0.5, 1.0):
        truth = np.maximum(f - exp(epsilon) * g, 0).sum()
        assert noise.profile(shift).delta(epsilon) == pytest.approx(truth, abs=1e-14)


def dp_accounting_cases(count):
    rng = np.random.default_rng(1)
    for _ in range(count):
        kind = rng.choice(["laplace", "gaussian", "discrete_laplace", "discrete_gaussian", "response"])
        yield kind, float(rng.uniform(0.5, 6)), int(rng.integers(1, 30)), float(rng.uniform(0.1, 3))


def test_compositions_agree_with_dp_accounting():
    """100 random compositions. Its value is an upper bound: never below our lower end, and never above ours
    with each loss rounded up to its grid of 1e-3."""
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution as pld

    for kind, scale, count, epsilon in dp_accounting_cases(100):
        if kind == "laplace":
            ours = Laplace(scale=scale).profile(1)
            theirs = pld.from_laplace_mechanism(scale, value_discretization_interval=1e-3)
        elif kind == "gaussian":
            ours = Gaussian(scale=scale).profile(1)
            theirs = pld.from_gaussian_mechanism(scale, value_discretization_interval=1e-3)
        elif kind == "discrete_laplace":
            ours = DiscreteLaplace(scale=scale).profile(1)
            theirs = pld.from_discrete_laplace_mechanism(1 / scale, value_discretization_interval=1e-3)
        elif kind == "discrete_gaussian":
            ours = DiscreteGaussian(scale=scale).profile(1)
            theirs = pld.from_discrete_gaussian_mechanism(scale, value_discretization_interval=1e-3)
        else:
            ours = RandomizedResponse(1 / scale, groups=4).profile()
            e = exp(1 / scale)
            theirs = pld.from_randomized_response(4 / (3 + e), 4, value_discretization_interval=1e-3)
        value = theirs.self_compose(count).get_delta_for_epsilon(epsilon)
        low, high = (ours**count).bracket(epsilon, rtol=1e-6)
        assert low <= value * (1 + 1e-9) + 1e-9, (kind, scale, count, epsilon)
        above = (ours**count).bracket(max(0.0, epsilon - 1e-3 * count)).upper  # theirs rounds each loss up
        assert value <= above * (1 + 1e-6) + 1e-9, (kind, scale, count, epsilon)
        assert high - low <= 1e-6 * high + 1e-12


def convolved(law, count):
    """The law of a sum of independent draws, in 64 bits."""
    out = np.ones(1, dtype=np.longdouble)
    for _ in range(count):
        out = np.convolve(out, law)
    return out


def delta_of_losses(losses, law, epsilon):
    """The mean of (1 - e^(epsilon - loss))_+."""
    above = losses > epsilon
    return float((law[above] * -np.expm1(epsilon - losses[above])).sum())


def loss_of_discrete_gaussians(scale, shift, count):
    """The losses ``(shift^2 - 2 shift x) / (2 scale^2)`` add up like the draws x."""
    reach = int(40 * scale) + 60
    x = np.arange(-reach, reach + 1)
    mass = np.exp(-0.5 * (x / np.longdouble(scale)) ** 2)
    sums = np.arange(-reach * count, reach * count + 1).astype(np.longdouble)
    losses = (count * shift**2 - 2 * shift * sums) / (2 * np.longdouble(scale) ** 2)
    return losses, convolved(mass / mass.sum(), count)


def loss_of_discrete_laplaces(scale, shift, count):
    """The losses are whole multiples of ``1 / scale``, at most `shift` of them."""
    reach = int(60 * scale) + 60
    x = np.arange(-reach, reach + shift + 1)
    mass = np.exp(-np.abs(x) / np.longdouble(scale))
    one = np.zeros(2 * shift + 1, dtype=np.longdouble)
    np.add.at(one, np.abs(x - shift) - np.abs(x) + shift, mass / mass.sum())
    losses = np.arange(-shift * count, shift * count + 1) / np.longdouble(scale)
    return losses, convolved(one, count)


WHOLE = [(DiscreteGaussian, loss_of_discrete_gaussians), (DiscreteLaplace, loss_of_discrete_laplaces)]


@pytest.mark.parametrize(("family", "loss"), WHOLE, ids=["discrete Gaussian", "discrete Laplace"])
def test_compositions_of_whole_noise_are_convolutions(family, loss):
    """50 random compositions each, up to 40 draws and a shift of 3, to 1e-8."""
    rng = np.random.default_rng(7)
    for _ in range(50):
        scale, epsilon = float(10 ** rng.uniform(-0.5, 1)), float(rng.uniform(0, 3))
        shift, count = int(rng.integers(1, 4)), int(rng.integers(1, 40))
        true = delta_of_losses(*loss(scale, shift, count), epsilon)
        profile = family(scale=scale).profile(shift) ** count
        assert profile.delta(epsilon) == pytest.approx(true, rel=1e-8, abs=1e-13), (
            scale,
            shift,
            count,
            epsilon,
        )
        low, high = profile.bracket(epsilon)
        assert low - 1e-13 <= true <= high + 1e-13 and high - low <= 1e-7 * high + 1e-12


@pytest.mark.parametrize(("family", "loss"), WHOLE, ids=["discrete Gaussian", "discrete Laplace"])
def test_calibrated_whole_noise_is_the_least_by_convolution(family, loss):
    """25 random budgets each, up to five numbers: delta is met to 1e-8, and not by a smaller scale."""
    rng = np.random.default_rng(8)
    for _ in range(25):
        budget = ApproximateDP(float(rng.uniform(0.3, 2)), float(10 ** rng.uniform(-7, -1)))
        count = int(rng.integers(1, 6))
        scale = calibrate(family, budget, norm="linf", dimension=count).noise.scale
        met = delta_of_losses(*loss(scale, 1, count), budget.epsilon)
        assert met <= budget.delta * (1 + 1e-8)
        assert delta_of_losses(*loss(scale * (1 - 1e-7), 1, count), budget.epsilon) > budget.delta


def delta_of_laplaces(scale, count, epsilon):
    """By the number of draws below 0, above the shift, and between; the losses between are uniform, tilted.

    Of a draw the loss is ``1 / scale`` with probability 1/2, minus that with ``e^(-1 / scale) / 2``, and has
    the density ``e^((l - 1 / scale) / 2) / 4`` between. Sums of uniform numbers have the law of Irwin and
    Hall; Gauss-Legendre quadrature between its knots is exact to rounding.
    """
    most, total = 1 / scale, 0.0
    nodes, weights = np.polynomial.legendre.leggauss(24)
    for high, low in product(range(count + 1), repeat=2):
        between = count - high - low
        if between < 0:
            continue
        chance = comb(count, high) * comb(count - high, low) * 0.5**high * (exp(-most) / 2) ** low
        base = (high - low) * most
        if not between:
            total += chance * max(0.0, 1 - exp(epsilon - base))
            continue
        cuts = most * (2 * np.arange(between + 1) - between)
        cuts = np.unique(np.append(cuts[cuts > epsilon - base], max(cuts[0], epsilon - base)))
        half = np.diff(cuts)[:, None] / 2
        at = ((cuts[1:] + cuts[:-1])[:, None] / 2 + half * nodes).ravel()
        units = (at + between * most) / (2 * most)
        density = sum(
            (-1) ** j * comb(between, j) * np.maximum(units - j, 0.0) ** (between - 1) for j in range(between)
        )
        density = density / factorial(between - 1) * np.exp((at - between * most) / 2)
        gain = -np.expm1(epsilon - base - at)
        total += (
            chance
            * 0.25**between
            * (2 * most) ** (between - 1)
            * float((half * weights).ravel() @ (density * gain))
        )
    return total


def test_compositions_of_laplace_noise_are_sums_over_its_pieces():
    """30 random compositions of up to seven draws: a bracket of relative width 1e-8 holds the sum."""
    rng = np.random.default_rng(9)
    for _ in range(30):
        scale, count = float(10 ** rng.uniform(-0.3, 1)), int(rng.integers(2, 8))
        epsilon = float(rng.uniform(0, 0.9) * count / scale)
        true = delta_of_laplaces(scale, count, epsilon)
        profile = Laplace(scale=scale).profile(1) ** count
        low, high = profile.bracket(epsilon, rtol=1e-7)
        assert low - 1e-12 <= true <= high + 1e-12, (scale, count, epsilon)
        assert high - low <= 1e-6 * high + 1e-12, (scale, count, epsilon)
        assert true - 1e-12 <= profile.delta(epsilon) <= true * (1 + 2e-4) + 1e-12


def test_samples_agree_with_dp_accounting():
    """Poisson samples of Gaussian and Laplace noise, composed: both directions."""
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution as pld

    for rate, count, epsilon in [(0.1, 1, 0.2), (0.3, 1, 0.05), (0.1, 20, 0.5)]:
        for scale in (1.0,):
            for noise, make in (
                (Gaussian(scale=scale), pld.from_gaussian_mechanism),
                (Laplace(scale=scale), pld.from_laplace_mechanism),
            ):
                theirs = make(scale, value_discretization_interval=1e-4, sampling_prob=rate)
                value = theirs.self_compose(count).get_delta_for_epsilon(epsilon)
                ours = PoissonSample(rate=rate).amplify(AdditiveMechanism(noise).profile()) ** count
                low, high = ours.bracket(epsilon, rtol=1e-4)
                assert low <= value + 1e-9 and high - low <= 1e-4 * high
                above = ours.bracket(epsilon - 1e-4 * count).upper  # theirs rounds each loss up
                assert value <= above + 1e-9


def test_a_sampled_response_is_what_enumeration_says():
    """Poisson and simple random samples of a response to 'is the record there?', over all samples."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        rate, loss, epsilon = rng.uniform(0.05, 0.95), rng.uniform(0.1, 3), rng.uniform(0, 1)
        truth, lie = 1 / (1 + exp(-loss)), 1 / (1 + exp(loss))
        q = np.array([lie, truth])  # without the record
        p = rate * q[::-1] + (1 - rate) * q
        exact = max(np.maximum(a - exp(epsilon) * b, 0).sum() for a, b in ((p, q), (q, p)))
        mechanism = RandomizedResponse(loss, groups=2)
        amplified = PoissonSample(rate=rate).amplify(mechanism.profile())
        assert amplified.delta(epsilon) == pytest.approx(exact, abs=1e-12)
        n = int(rng.integers(2, 9))
        size = int(rng.integers(1, n + 1))
        sampled = SimpleRandomSample(size=size).amplify(mechanism.profile(), population=n)
        share = size / n
        p, other = share * q[::-1] + (1 - share) * q, q  # a record worth 1 against one worth 0, the rest 0
        exact = max(np.maximum(a - exp(epsilon) * b, 0).sum() for a, b in ((p, other), (other, p)))
        assert sampled.delta(epsilon) >= exact - 1e-12
        assert sampled.epsilon(0.0) == pytest.approx(np.log1p(share * np.expm1(loss)), rel=1e-12)


@pytest.mark.parametrize(("count", "scale", "epsilon"), [(16, 20, 1.0), (100, 60, 0.5), (10**6, 5000, 1.0)])
def test_the_contour_is_the_gaussian_formula(count, scale, epsilon):
    """In the convention of Ganesh and Zhao the standard deviation is scale / sqrt(2)."""
    sd, reach = scale / 2**0.5, count**0.5
    formula = norm.cdf(reach / (2 * sd) - epsilon * sd / reach) - exp(epsilon) * norm.cdf(
        -reach / (2 * sd) - epsilon * sd / reach
    )
    known = {(16, 1.0): 2.34529157e-5, (100, 0.5): 1.8351231e-3}
    if (count, epsilon) in known:
        assert formula == pytest.approx(known[count, epsilon], rel=1e-7)
    profile = GeneralizedGaussian(shape=2.0, scale=scale).profile(1) ** count
    assert profile.delta(epsilon) == pytest.approx(formula, rel=1e-9)
    parts = [(Gaussian(scale=sd).loss(1.0), count)]
    assert exp(contour(parts, epsilon)) == pytest.approx(formula, rel=1e-9)
    low, high = bracket([(Gaussian(scale=sd).loss(1.0), min(count, 100))], epsilon)
    assert low <= (Gaussian(scale=sd).profile(1) ** min(count, 100)).delta(epsilon) <= high


def test_the_contour_lies_in_the_bracket():
    """20 random generalized Gaussians, composed; the bracket is narrower than a hundredth."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        shape, count = float(rng.uniform(1.2, 5)), int(rng.integers(30, 200))
        scale = float(rng.uniform(1, 3) * count**0.5 * shape**0.5)
        parts = [(GeneralizedGaussian(shape=shape, scale=scale).loss(1.0), count)]
        epsilon = float(rng.uniform(0.1, 2))
        value = exp(contour(parts, epsilon))
        low, high = bracket(parts, epsilon, rtol=5e-3)
        assert low <= value * (1 + 1e-9) <= high * (1 + 1e-6) + 1e-15, (shape, count, scale, epsilon)
        assert high - low <= 0.01 * high + 1e-15, (shape, count, scale, epsilon)


@pytest.mark.parametrize(("shape", "scale", "epsilon"), [(3.0, 5.0, 2.0), (4.0, 14.0, 1.0), (6.5, 20.0, 1.0)])
def test_the_contour_of_two_draws_is_within_their_bracket(shape, scale, epsilon):
    """The law of these losses has a sharp peak, whose transform falls off slowly: the sums fade out."""
    loss = GeneralizedGaussian(shape=shape, scale=scale).loss(1.0)
    low, high = bracket([(loss, 2)], epsilon, rtol=1e-5)
    assert low <= exp(contour([(loss, 2)], epsilon)) <= high


def test_seven_numbers_are_calibrated_by_contours():
    """Without fading sums the contour was refused for a shape of 6.5, and delta known to 3e-4 only."""
    for shape in (3.0, 6.5):
        found = calibrate(
            GeneralizedGaussian, ApproximateDP(1.0, 1e-6), norm="linf", dimension=7, shape=shape
        )
        assert found.profile().log_delta(1.0, "contour") == pytest.approx(log(1e-6), abs=1e-9)
        low, high = found.profile().bracket(1.0, rtol=1e-3)
        assert low <= 1e-6 <= high <= low * 1.002


def test_logarithms_reach_below_the_smallest_float():
    profile = Gaussian(scale=50.0).profile(1)
    assert profile.delta(10.0) == 0 and -130_000 < profile.log_delta(10.0) < -120_000
    many = GeneralizedGaussian(shape=4, scale=3000.0).profile(1) ** 1000
    assert many.log_delta(3.0) < -1000


@pytest.mark.parametrize(
    ("noise", "epsilon", "known"),
    [  # by mpmath, 60 digits
        (Gaussian(scale=1e3), 0.01, -62.455877437764092),
        (Gaussian(scale=50.0), 3.0, -11263.352415434981),
        (GeneralizedGaussian(shape=2.36898, scale=89.36550491510278), 4.96935, -8586.5365672736254),
        (GeneralizedGaussian(shape=4.0, scale=100.0), 30.0, -6813.5266009515547),
        (DiscreteGaussian(scale=2.0), 20.0, -803.75337629368702),
        (DiscreteGaussian(scale=2.0), 40.0, -3203.7533762985278),
        (BoundedNoise(power=200.0, radius=40.0), 600.0, -598.60994542716943),
        (DiscreteLaplace(scale=0.001), 999.0, -0.45867514538708189),
    ],
    ids=repr,
)
def test_one_release_keeps_its_logarithm(noise, epsilon, known):
    profile = noise.profile(1)
    assert profile.log_delta(epsilon) == pytest.approx(known, rel=1e-10)
    if known < -700:
        back = profile.epsilon(1e-300)
        assert profile.log_delta(back) == pytest.approx(np.log(1e-300), rel=1e-9)


def test_compositions_keep_their_logarithm():
    """All of the draws have the largest loss; without moments the sums are lattice laws."""
    response = RandomizedResponse(0.1, groups=2).profile() ** 3000
    exact = -3000 * np.log1p(exp(-0.1)) + np.log(-np.expm1(-0.05))
    assert response.log_delta(299.95) == pytest.approx(exact, rel=1e-12)
    whole = DiscreteLaplace(scale=3.0).profile(1) ** 3000
    half = float(DiscreteLaplace(scale=3.0).cdf(0))
    assert whole.log_delta(999.9) == pytest.approx(3000 * np.log(half) + np.log(-np.expm1(-0.1)), rel=1e-6)


@pytest.mark.parametrize("rate", [1e-6, 0.2, 0.9])
def test_a_sample_keeps_its_logarithm(rate):
    """The removed record's delta is a multiple of the full one's at the unsampled epsilon."""
    full = Gaussian(scale=2.0).profile(1)
    sampled = PoissonSample(rate=rate).amplify(AdditiveMechanism(Gaussian(scale=2.0)).profile())
    for epsilon in (1e-3, 0.4, 5.0, 50.0):
        more = np.log1p(np.expm1(epsilon) / rate)
        assert sampled.log_delta(epsilon) == pytest.approx(np.log(rate) + full.log_delta(more), rel=1e-12)


def test_what_has_a_closed_form():
    assert Laplace(scale=2.0).profile(1).delta(0.2) == pytest.approx(1 - exp((0.2 - 0.5) / 2), rel=1e-12)
    assert Laplace(scale=2.0).profile(1).epsilon(0.0) == 0.5
    assert (Laplace(scale=2.0).profile(1) ** 7).epsilon(0.0) == 3.5
    both = Gaussian(scale=3.0).profile(1) @ Gaussian(scale=4.0).profile(1)
    assert both.mu == pytest.approx(5 / 12) and both.rho == pytest.approx(25 / 288)
    response = RandomizedResponse(0.8, groups=3).profile()
    total = 2 + exp(0.8)
    assert response.delta(0.3) == pytest.approx((exp(0.8) - exp(0.3)) / total, rel=1e-12)
    assert Profile.nothing().delta(0.0) == 0 and Profile.nothing().epsilon(1e-9) == 0
    assert (Gaussian(scale=1.0).profile(1) ** 0).delta(0.0) == 0


def renyi(p, q, order):
    return float(logsumexp(order * np.log(p) + (1 - order) * np.log(q))) / (order - 1)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_zcdp_parameter_of_pure_privacy_is_the_largest_renyi_divergence(epsilon):
    p = np.array([1 / (1 + exp(-epsilon)), 1 / (1 + exp(epsilon))])
    orders = 1 + np.geomspace(1e-3, 300, 400)
    most = max(renyi(p, p[::-1], a) / a for a in orders)
    rho = Profile.pure(epsilon).rho
    assert most <= rho * (1 + 1e-9) and most == pytest.approx(rho, rel=1e-3)


def test_zcdp_of_the_discrete_gaussian():
    """Theorem 7 of Canonne, Kamath and Steinke (2020): every Renyi divergence keeps rho times its order."""
    noise, x = DiscreteGaussian(scale=2.0), np.arange(-50, 50)
    for order in (1.5, 2.0, 5.0, 12.0):
        assert renyi(noise.density(x), noise.density(x - 1), order) <= noise.profile(1).rho * order + 1e-12
    assert noise.profile(1).delta(1.0) <= Profile.concentrated(noise.profile(1).rho).delta(1.0)


def test_gaussian_privacy_of_pure_privacy():
    """A trade-off curve that lies below that of the pair: at all epsilons, more is lost."""
    for epsilon in (0.2, 1.0, 2.5):
        pure = Profile.pure(epsilon)
        gaussian = Gaussian(scale=1 / pure.mu).profile(1)
        for at in np.linspace(0, epsilon, 20):
            assert gaussian.delta(at) >= pure.delta(at) - 1e-12


def test_epsilon_and_delta_are_inverses():
    for profile in (
        Gaussian(scale=2.0).profile(1),
        GeneralizedGaussian(shape=3, scale=20.0).profile(1) ** 50,
        Laplace(scale=5.0).profile(1) ** 20,
        BoundedNoise(power=4, radius=30.0).profile(1),
    ):
        for delta in (1e-2, 1e-4):
            epsilon = profile.epsilon(delta)
            assert profile.delta(epsilon) <= delta * (1 + 1e-12)
            assert epsilon == inf or profile.delta(epsilon * 0.999) > delta


def test_log_upper_bounds_do_not_need_the_lower_end():
    parts = ((Laplace(scale=5.0).loss(1.0), 20),)
    assert exp(log_upper_bound(parts, 1.0)) == pytest.approx(bracket(parts, 1.0).upper, rel=2e-3)


def test_a_contour_is_refused_where_there_are_no_moments():
    for noise in (Laplace(scale=1.0), BoundedNoise(power=2, radius=5.0), DiscreteGaussian(scale=1.0)):
        with pytest.raises(DeclarationError, match='use method="fft"'):
            (noise.profile(1) ** 5).delta(1.0, method="contour")


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: Gaussian(scale=1.0).profile(-1), "shift is -1"),
        (lambda: DiscreteLaplace(scale=1.0).profile(0.5), r"shift is 0\.5; DiscreteLaplace is whole"),
        (lambda: Gaussian(scale=1.0).profile(1).delta(-1), "epsilon is -1"),
        (lambda: Gaussian(scale=1.0).profile(1).epsilon(1.0), r"delta is 1\.0"),
        (lambda: Gaussian(scale=1.0).profile(1) ** 1.5, r"power is 1\.5"),
        (lambda: GeneralizedGaussian(shape=0.9, scale=1.0), "shape is 0.9"),
        (lambda: BoundedNoise(power=0, radius=1.0), "power is 0"),
        (lambda: TabulatedNoise([0.5, 0.4]), "sum is 0.9"),
        (lambda: TabulatedNoise([0.5, 0.5]), "no middle"),
        (lambda: (Laplace(scale=1.0).profile(1) ** 2).single(), "sample each part"),
    ],
)
def test_bad_input_is_named(make, rule):
    with pytest.raises(DeclarationError, match=rule):
        make()


def test_few_draws_where_delta_bends():
    flat = GeneralizedGaussian(shape=7.5, scale=32.379131944318026).profile(1)
    # by Gauss-Legendre quadrature over 40,000 panels
    assert 0.0028114212 <= (flat**2).delta(0.3256695003260516) <= 0.0028115
    low, high = (flat**3).bracket(0.3, 2e-3)
    assert low <= (flat**3).delta(0.3) <= high
    for radius in (
        3.75,
        27.7,
    ):  # no sum of finite losses is above epsilon: delta is the mass of infinite ones
        bounded = BoundedNoise(power=0.1, radius=radius)
        for count in (2, 3, 30):
            beyond = 1 - (1 - float(bounded.cdf(1 - radius))) ** count
            assert (bounded.profile(1) ** count).delta(15.0) == pytest.approx(beyond, rel=1e-8)


def test_moments_of_steep_laws_stay_finite_or_are_infinite():
    with np.errstate(all="raise", under="ignore"):
        for shape, scale in ((40.0, 2.8), (7.5, 0.29), (4.0, 0.01)):
            noise = GeneralizedGaussian(shape=shape, scale=scale)
            moments = np.array([noise.log_moment(np.array([10.0**j]), 1.0)[0].real for j in range(-3, 7)])
            finite = moments[np.isfinite(moments)]
            assert not np.isnan(moments).any() and len(finite) > 2 and (np.diff(finite) > 0).all()
    shape, scale, epsilon = 1.7, 42.0, 3.5
    far = (GeneralizedGaussian(shape=shape, scale=scale).profile(1) ** 2).log_delta(epsilon)
    v = brentq(lambda v: (v + 1 / scale) ** shape - v**shape - epsilon / 2, 1.0, 1e4)
    assert far == pytest.approx(-2 * v**shape, rel=3e-3)  # both losses are half of epsilon


def test_steep_laws_far_in_their_tails_are_not_overstated():
    """The integrand turns often where a steep loss is large; delta lies within the certified bracket."""
    for shape, scale, deviation, epsilon in ((13.496, 27.686, 4.78, 8.7818), (11.0, 24.0, 4.0, 8.0)):
        steep = GeneralizedGaussian(shape=shape, scale=scale).profile(1) ** 2
        profile = steep @ Gaussian(scale=deviation).profile(1)
        low, high = profile.bracket(epsilon)
        assert high - low < 5e-3 * high
        assert low * (1 - 1e-8) <= profile.delta(epsilon) <= high * (1 + 1e-3)


def delta_of_tables(p, q, epsilon, count=1):
    """The larger delta of (P, Q) and (Q, P), by enumeration."""
    one, other = np.ones(1), np.ones(1)
    for _ in range(count):
        one, other = np.outer(one, p).ravel(), np.outer(other, q).ravel()
    factor = np.exp(epsilon)
    return max(np.maximum(one - factor * other, 0).sum(), np.maximum(other - factor * one, 0).sum())


def test_bounded_noise_keeps_its_mass_at_infinity_at_a_large_epsilon():
    """There e^epsilon multiplies a probability that is rounding alone."""
    noise = BoundedNoise(power=2, radius=0.10778975964530732)
    profile = noise.profile(0.0063457339961118815)
    outside = float(noise.cdf(-noise.radius + 0.0063457339961118815))
    for epsilon in (60.0, 100.0, 200.0, 800.0):
        assert profile.delta(epsilon) == pytest.approx(outside, rel=1e-9)


def test_epsilon_is_least_where_delta_is_flat():
    noise = BoundedNoise(power=0.5, radius=1.0)
    profile = noise.profile(1.3)
    at = profile.epsilon(profile.delta(28.0))
    assert profile.delta(at) <= profile.delta(28.0) and at <= 28.0
    for delta in (1e-3, 1e-6, 1e-9, 0.1):
        assert Profile.pure(1.0, delta).epsilon(delta) == pytest.approx(1.0, abs=1e-11)
        assert (Profile.pure(1.0, delta) @ Gaussian(scale=2.0).profile(1)).epsilon(delta) == np.inf


@pytest.mark.parametrize("seed", range(40))
def test_sampled_tables_and_their_compositions_agree_with_enumeration(seed):
    """The noise is not even: a record moves the number up or down, and both are covered."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(int(rng.integers(1, 5))))
    rate, count = float(rng.choice([1e-6, 0.01, 0.3, 0.99, 1.0])), int(rng.integers(1, 4))
    mechanism = AdditiveMechanism(TabulatedNoise(table, first=-(len(table) // 2)))
    sampled = PoissonSample(rate=rate).amplify(mechanism.profile()) ** count
    p, q = np.append(table, 0.0), np.append(0.0, table)
    for epsilon in (0.0, 0.5, 2.0, 100.0):
        true = max(delta_of_tables((1 - rate) * y + rate * x, y, epsilon, count) for x, y in ((p, q), (q, p)))
        # the directions of several may differ, which the profile covers and `true` does not
        single = count == 1
        assert sampled.delta(epsilon) >= true * (1 - 1e-9) - 1e-12
        assert sampled.delta(epsilon) <= true * (1 + 1e-8 if single else 1.1) + 1e-9
        bracket = sampled.bracket(epsilon)
        assert bracket.upper >= true * (1 - 1e-9) - 1e-12


@pytest.mark.parametrize("shape", [64.0, 200.0, 1000.0])
@pytest.mark.parametrize("shift", [1e-3, 0.3, 1.4, 2.3])
def test_steep_shapes_are_nearly_uniform(shape, shift):
    """The density is flat where ``|x|^shape`` underflows; moved by 2 it hardly overlaps itself.

    The integral of the density is by Simpson's rule, on a grid that is fine where the density falls.
    """
    noise = GeneralizedGaussian(shape=shape, scale=1.0)
    grid = np.concatenate([np.linspace(0, 0.8, 2001), np.linspace(0.8, 1.3, 40_001)[1:]])
    middle, width = (grid[1:] + grid[:-1]) / 2, np.diff(grid)
    f = noise.density
    cumulative = np.append(0.0, np.cumsum(width * (f(grid[1:]) + 4 * f(middle) + f(grid[:-1])) / 6))

    def cdf(x):
        return 0.5 + np.sign(x) * np.interp(abs(x), grid, cumulative, right=0.5)

    assert cumulative[-1] == pytest.approx(0.5, abs=1e-12)
    assert float(noise.cdf(-1.01)) == pytest.approx(cdf(-1.01), abs=1e-8)
    for x in (-0.99, -0.4, 1e-3, 0.7):
        assert float(noise.cdf(x)) == pytest.approx(cdf(x), abs=1e-8)
        assert float(noise.quantile(noise.cdf(x))) == pytest.approx(x, abs=1e-9)
    delta = cdf(shift / 2) - cdf(-shift / 2)
    assert noise.profile(shift).delta(0.0) == pytest.approx(delta, abs=1e-8)
    x = noise.sample(20_000, Simulated(0))
    assert np.mean(np.abs(x) < 0.4) == pytest.approx(2 * cdf(0.4) - 1, abs=0.02)


def test_one_release_keeps_its_logarithm_far_out():
    """The crossing lies where the noise has a mass of 1e-105; by 40 digits of mpmath."""
    profile = GeneralizedGaussian(shape=1.5, scale=239.54613626850852).profile(2.7479379748886195)
    assert profile.log_delta(0.10513691099290878) == pytest.approx(-239.6473827314316, rel=1e-9)


def test_the_contour_integral_does_not_depend_on_its_line():
    """A step that is too wide adds other values of delta, and more of them on some lines than on others."""
    loss = BoundedNoise(power=4, radius=700).loss(1.0)
    rest = CappedLoss(loss, 16.0)
    y = np.linspace(-60, 60, 2**14 + 1)
    for c in (0.5, 1.0):
        z = c + 1j * y
        integrand = np.exp(1000 * rest.log_moment(z) - z - np.log(z) - np.log(z + 1))
        delta = float(integrand.real.sum()) * (y[1] - y[0]) / (2 * np.pi)  # the terms cancel to 1e-5
        assert contour([(rest, 1000)], 1.0) == pytest.approx(
            np.log(delta), abs=1e-6
        )  # the terms cancel to 1e-5


def test_a_million_bounded_noises():
    """By sums of 60,000 terms on two lines; losses above 16 are infinite, which adds less than 1e-11."""
    profile = BoundedNoise(power=3.0, radius=13689.524207882458).profile(1) ** 10**6
    assert profile.log_delta(1.0) == pytest.approx(-13.810076, abs=2e-6)


@pytest.mark.parametrize(
    ("shape", "scale", "count", "epsilon"),
    [
        (1.001, 1.4081665144339202, 2, 0.97038),
        (1.01, 0.656302586504658, 2, 0.5156),
        (1.01, 0.9645, 3, 1.89376),
    ],
)
def test_few_draws_of_nearly_laplace_noise(shape, scale, count, epsilon):
    """Delta of the last draw bends where the others' losses are those at the kinks of the density."""
    loss = GeneralizedGaussian(shape=shape, scale=scale).loss(1.0)
    low, high = bracket([(loss, count)], epsilon, rtol=2e-5)
    value = (GeneralizedGaussian(shape=shape, scale=scale).profile(1) ** count).delta(epsilon)
    assert low * (1 - 1e-9) <= value <= high * (1 + 1e-9) and high - low <= 2e-5 * high


@pytest.mark.parametrize(("each", "count"), [(20.0, 3), (38.0, 2), (40.0, 5), (100.0, 4)])
def test_compositions_of_large_losses_agree_with_binomial_sums(each, count):
    """The probability of the truth rounds to 1 above 37; delta was 1 then."""
    lie = 1 / (1 + exp(each))
    for lies in range(count):
        loss = (count - 2 * lies) * each
        for epsilon in (loss - 2.0, loss - 0.02):
            if epsilon < 0:
                continue
            terms = (
                comb(count, j) * lie**j * -expm1(epsilon - (count - 2 * j) * each) for j in range(lies + 1)
            )
            assert (Profile.pure(each) ** count).delta(epsilon) == pytest.approx(sum(terms), rel=1e-6)
    together = Profile.pure(each) @ RandomizedResponse(1.0, 3).profile()
    assert together.delta(each + 0.5) == pytest.approx(e / (e + 2) * -expm1(-0.5), rel=1e-6)


def test_losses_beyond_the_exponential_of_floats():
    assert Profile.pure(800.0, 0.25).delta(1.0) == pytest.approx(1.0)
    sampled = PoissonSample(rate=1e-3).amplify(AdditiveMechanism(Laplace(scale=1 / 800)).profile())
    assert sampled.epsilon(1e-9) == pytest.approx(800 + log(1e-3), abs=1e-3)


def test_the_bound_of_zcdp_is_the_best_for_a_tiny_rho():
    """The best order is about epsilon / (2 rho), here 300,000 and more."""
    rho, epsilon = 1e-10, 6e-5
    orders = np.geomspace(1e4, 1e8, 100_001)
    logs = (orders - 1) * (orders * rho - epsilon) - np.log(orders - 1) + orders * np.log1p(-1 / orders)
    assert Profile.concentrated(rho).log_delta(epsilon) == pytest.approx(logs.min(), rel=1e-6)


@pytest.mark.parametrize("small", [1e-4, 1e-6, 1e-12])
def test_a_tiny_loss_beside_a_large_one_is_accounted_for(small):
    gaussian = Gaussian(scale=1.0).profile(1)
    both = Profile.pure(small) @ gaussian

    def sum_of_losses(epsilon):  # the Gaussian's hockey stick at the two shifts by randomized response
        shifted = [
            norm.cdf(0.5 - e) - exp(e) * norm.cdf(-0.5 - e) for e in (epsilon - small, epsilon + small)
        ]
        truth = 1 / (1 + exp(-small))
        return truth * shifted[0] + (1 - truth) * shifted[1]

    for epsilon in (0.3, 1.0, 3.0):
        assert (
            sum_of_losses(epsilon) * (1 - 1e-12) <= both.delta(epsilon) <= sum_of_losses(epsilon) * (1 + 2e-4)
        )
        assert both.bracket(epsilon).upper >= sum_of_losses(epsilon) * (1 - 1e-12)
    assert gaussian.epsilon(1e-5) <= both.epsilon(1e-5) <= gaussian.epsilon(1e-5) + small + 2e-5


@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-9, 1e-12])
def test_an_epsilon_keeps_its_delta(delta):
    """The epsilon that is told has no more than the delta, to the last bit."""
    for profile in (
        AdditiveMechanism(Laplace(scale=3.0)).profile() ** 20,
        AdditiveMechanism(Gaussian(scale=2.0)).profile(),
        AdditiveMechanism(Gaussian(scale=7.0)).profile() ** 5,
    ):
        epsilon = profile.epsilon(delta)
        assert profile.log_delta(epsilon) <= np.log(delta)
        assert profile.log_delta(epsilon - 1e-6) > np.log(delta)


def test_the_worse_direction_counts():
    """A pair of inputs whose losses differ by direction has the larger delta of both."""
    weak, strong = ((GaussianLoss(0.5), 1),), ((GaussianLoss(1.0), 1),)
    for both in (Profile((weak, strong)), Profile((strong, weak))):
        assert both.delta(0.5) == Profile((strong,)).delta(0.5) > Profile((weak,)).delta(0.5)


def test_a_profile_that_is_not_tight_has_no_lower_end():
    for profile in (Profile.pure(0.5), Profile.pure(0.5) ** 3):
        assert profile.bracket(0.2).lower == 0.0 < profile.bracket(0.2).upper


def test_a_small_epsilon_is_near_its_lower_end():
    p = PoissonSample(rate=0.001).amplify(Gaussian(scale=5.0).profile(1)) ** 1000
    assert p.bracket(p.epsilon(1e-6) - 5e-5, 1e-4).lower > 1e-6 >= p.delta(p.epsilon(1e-6))
