"""The transform's value and error against exact sums of rationals."""

import subprocess
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from forcopt.privacy import (
    AdditiveMechanism,
    DiscreteLaplace,
    Gaussian,
    PoissonSample,
    Profile,
    TabulatedNoise,
    fft,
)
from forcopt.privacy.fft import _chernoff, _finite_span, _Lattice, _Law, _Moments, _Rounded, bracket
from forcopt.privacy.losses import GaussianLoss, SampledLoss, pure_loss


def exact(lattices, h, epsilon):
    """``E[(1 - e^(epsilon - S))_+]``, with rational masses and 60 digits."""
    first, law = 0, [Fraction(1)]
    for start, masses, count in lattices:
        mass = [Fraction(float(m)) for m in masses]
        for _ in range(count):
            out = [Fraction(0)] * (len(law) + len(mass) - 1)
            for i, a in enumerate(law):
                for j, b in enumerate(mass):
                    out[i + j] += a * b
            first, law = first + start, out
    with mpmath.workdps(60):
        parts = (
            mpmath.mpf(p.numerator) / p.denominator * (1 - mpmath.exp(epsilon - (first + i) * mpmath.mpf(h)))
            for i, p in enumerate(law)
            if (first + i) * h > epsilon
        )
        return mpmath.fsum(parts)


def misses(lattices, h, epsilon, points):
    """By how much the value misses the exact one, and the stated error; both over the common factor."""
    with np.errstate(divide="ignore"):
        logs = [_Lattice(start, np.log(mass), 0.0, 0.0, 0.0, (0.0, 0.0), True) for start, mass, _ in lattices]
    moments = _Moments(logs, [count for _, _, count in lattices], h)
    front, value, error = _Law(moments, h, moments.tilt(epsilon), points).hockey_stick(epsilon)
    with mpmath.workdps(60):
        return float(abs(exact(lattices, h, epsilon) / mpmath.exp(front) - value)), error


@pytest.mark.parametrize("seed", range(6))
def test_the_error_covers_the_rounding_of_the_transform(seed):
    rng = np.random.default_rng(seed)
    lattices = [(-3, rng.dirichlet(np.ones(7)), 12), (0, np.array([0.5, 0.5]), 9)]
    missed, error = misses(lattices, 0.125, 0.25 * seed, 2**20)
    assert 0 < missed <= error < 1e-12


def test_the_error_covers_the_mass_outside_of_the_window():
    """A rare loss lies beyond the longest window that is allowed, and is folded back into it."""
    mass = np.zeros(2001)
    mass[0], mass[2000] = 1 - 1e-6, 1e-6
    missed, error = misses([(0, mass, 1)], 0.01, 0.0, 64)
    assert 5e-7 < missed <= error


@pytest.mark.parametrize("h", [0.5, 0.2, 0.05])
@pytest.mark.parametrize(("shift", "count", "epsilon"), [(1.0, 1, 0.5), (0.7, 4, 1.0), (0.3, 30, 2.0)])
def test_both_ends_hold_on_a_coarse_lattice(h, shift, count, epsilon):
    """Gaussian losses sum to a Gaussian one, whose delta has a closed form."""
    parts, spans = [(GaussianLoss(shift), count)], [_finite_span(GaussianLoss(shift))]
    exact = GaussianLoss(shift * count**0.5).log_delta(epsilon)
    lower, upper = _Rounded(parts, spans, h).ends(epsilon)
    assert lower - 1e-12 <= exact <= upper + 1e-12


def test_both_ends_hold_losses_that_are_infinite():
    """Beyond the sum of all finite losses, delta is the chance that one loss is infinite."""
    found = bracket([(pure_loss(0.1, 1e-3), 10)], 5.0)
    exact = 1 - (1 - 1e-3) ** 10
    assert found.lower * (1 - 1e-12) <= exact <= found.upper * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_both_ends_hold_for_atoms_anywhere_on_the_lattice(seed):
    """Three tables and a response, whose atoms lie off the lattice; delta by all outcomes."""
    rng = np.random.default_rng(seed)
    losses = [TabulatedNoise(rng.dirichlet(np.ones(3))).loss(1) for _ in range(2)]
    parts = [(losses[0], 2), (losses[1], 1), (pure_loss(float(rng.uniform(0.1, 1))), 2)]
    tables = [losses[0].pair] * 2 + [losses[1].pair] + [parts[2][0].table().pair] * 2
    p, q = np.ones(1), np.ones(1)
    for one, other in tables:
        p, q = np.outer(p, one).ravel(), np.outer(q, other).ravel()
    spans = [_finite_span(loss) for loss, _ in parts]
    finite = (p > 0) & (q > 0)
    atoms = np.log(p[finite]) - np.log(q[finite])
    for epsilon in (0.0, float(rng.uniform(0, 2)), float(np.quantile(np.abs(atoms), 0.7))):
        exact = np.maximum(p - np.exp(epsilon) * q, 0).sum()
        assert np.exp(_chernoff(parts, epsilon)) >= exact
        for h in (0.2, 0.03, 0.004, 0.0005):
            lower, upper = np.exp(_Rounded(parts, spans, h).ends(epsilon))
            assert lower - 1e-12 <= exact <= upper + 1e-12, (epsilon, h)


@pytest.mark.parametrize("count", [1, 3, 10])
def test_the_lower_end_is_near_on_a_fine_lattice(count):
    """Its error is of second order in the step: a tenth of the step has a hundredth of the width."""
    loss = SampledLoss(GaussianLoss(1.0), 0.2)
    spans = [_finite_span(loss)]
    coarse, fine = (np.diff(_Rounded([(loss, count)], spans, h).ends(0.7))[0] for h in (1e-2, 1e-3))
    assert fine < coarse / 80 and fine < 1e-3


def test_an_epsilon_of_a_sample_is_that_of_dp_accounting():
    """Theirs, with a step of 1e-4, is above by a few 1e-6; ours lies in a certified bracket of 1e-4."""
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution as pld

    for scale, rate, count in ((1.0, 0.01, 1000), (2.0, 0.05, 300)):
        theirs = pld.from_gaussian_mechanism(scale, value_discretization_interval=1e-4, sampling_prob=rate)
        profile = (
            PoissonSample(rate=rate).amplify(AdditiveMechanism(Gaussian(scale=scale)).profile()) ** count
        )
        found = profile.epsilon(1e-6)
        assert found == pytest.approx(theirs.self_compose(count).get_epsilon_for_delta(1e-6), abs=1e-5)
        assert profile.delta(found) <= 1e-6 and profile.bracket(found - 1e-4, 1e-4).lower > 1e-6


def test_an_epsilon_is_narrow_where_delta_is_flat():
    """The mass at infinity is nearly all of delta: a bracket of delta that is narrow leaves epsilon wide."""
    sampled = PoissonSample(rate=0.01).amplify(AdditiveMechanism(Gaussian(scale=2.0)).profile()) ** 100
    flat = Profile.of(pure_loss(0.1, 1e-7)) ** 10 @ sampled
    found = flat.epsilon(1.001e-6)
    assert flat.delta(found) <= 1.001e-6 < flat.bracket(found - 2e-4, rtol=1e-7).lower


@pytest.mark.parametrize(
    ("scales", "most"), [([2.0 + 0.37 * i for i in range(12)], 1e-6), ([0.8, 2.5], 1e-4), ([0.5, 3.1], 1e-4)]
)
def test_an_epsilon_near_the_largest_loss_is_found(scales, most):
    """Different noises; delta by all outcomes, each loss being of two values."""
    noises = [DiscreteLaplace(scale=scale) for scale in scales]
    profile = Profile.together(noise.profile(1) for noise in noises)
    losses, law = np.zeros(1), np.ones(1)
    for noise in noises:  # at a shift of 1 each loss is plus or minus 1 / scale
        up = float(noise.cdf(0))
        losses = np.add.outer(losses, [1 / noise.scale, -1 / noise.scale]).ravel()
        law = np.multiply.outer(law, [up, 1 - up]).ravel()
    found = profile.epsilon(most)

    def delta(epsilon):
        above = losses > epsilon
        return (law[above] * -np.expm1(epsilon - losses[above])).sum()

    assert delta(found) <= most < delta(found - 2e-5)


def test_a_tiny_delta_is_resolved_and_below_the_bound_of_renyi():
    """Ten thousand samples; the least bound over whole orders, with moments by the binomial theorem."""
    rate, sigma, count, delta = 0.00033, 4.0, 10_000, 1.13e-18
    bounds = []
    with mpmath.workdps(50):
        for order in range(2, 120):
            moment = mpmath.fsum(
                mpmath.binomial(order, j)
                * mpmath.mpf(1 - rate) ** (order - j)
                * mpmath.mpf(rate) ** j
                * mpmath.exp(mpmath.mpf(j * (j - 1)) / (2 * sigma**2))
                for j in range(order + 1)
            )
            bounds.append(float((count * mpmath.log(moment) - mpmath.log(delta)) / (order - 1)))
    profile = PoissonSample(rate=rate).amplify(AdditiveMechanism(Gaussian(scale=sigma)).profile()) ** count
    assert 0.06 < profile.epsilon(delta) < min(bounds)


def test_the_question_whether_a_budget_is_kept_takes_a_coarse_lattice(monkeypatch):
    profile = PoissonSample(rate=0.02).amplify(AdditiveMechanism(Gaussian(scale=1.0)).profile()) ** 200
    steps = []
    monkeypatch.setattr(fft, "_rounded", lambda *given: steps.append(given[2]) or _Rounded(*given))
    assert profile.keeps(4.0, 1e-6) and not profile.keeps(0.5, 1e-6)
    coarse = min(steps)
    at = profile.epsilon(1e-6)
    assert profile.keeps(at, 1e-6) and not profile.keeps(at - 1e-3, 1e-6)
    assert min(steps) < coarse


ASKED = """
from forcopt.privacy import DiscreteLaplace, Gaussian, PoissonSample, Profile
sampled = PoissonSample(rate=0.02).amplify(Gaussian(scale=1.0).profile(1)) ** 200
many = Profile.together(DiscreteLaplace(scale=s).profile(1) for s in (2.0, 2.5, 3.7, 4.1))
for profile in (sampled, many):
    brackets = profile.bracket(1.2), profile.bracket(2.0, 1e-4)
    print(repr(profile.epsilon(1e-6)), repr(profile.delta(1.5)), *brackets)
"""


def test_equal_questions_have_equal_answers_in_any_order_and_process():
    """What was asked before, and how fine its lattice was, decides no digit."""
    sampled = PoissonSample(rate=0.02).amplify(Gaussian(scale=1.0).profile(1)) ** 200
    many = Profile.together(DiscreteLaplace(scale=s).profile(1) for s in (2.0, 2.5, 3.7, 4.1))
    questions = [
        lambda p: repr(p.bracket(2.0, 1e-4)),
        lambda p: repr(p.epsilon(1e-6)),
        lambda p: repr(p.keeps(1.5, 1e-6)),
        lambda p: repr(p.bracket(1.2)),
        lambda p: repr(p.delta(1.5)),
        lambda p: repr(p.epsilon(1e-6)),
    ]
    for profile in (sampled, many):
        there = [ask(profile) for ask in questions]
        fft.least_epsilon.cache_clear()
        fft.log_upper_bound.cache_clear()
        assert [ask(profile) for ask in reversed(questions)][::-1] == there
    said = "".join(
        f"{p.epsilon(1e-6)!r} {p.delta(1.5)!r} {p.bracket(1.2)} {p.bracket(2.0, 1e-4)}\n"
        for p in (sampled, many)
    )
    assert (
        subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, check=True).stdout
        == said
    )
