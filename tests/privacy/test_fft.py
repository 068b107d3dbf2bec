"""The transform's value and error against exact sums of rationals."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from forcopt.privacy.fft import _finite_span, _hockey_stick, _Lattice, _log_upper, _lower, bracket
from forcopt.privacy.losses import GaussianLoss, pure_loss


def exact(lattices, h, epsilon):
    """``E[(1 - e^(epsilon - S))_+]``, with rational masses and 60 digits."""
    first, law = 0, [Fraction(1)]
    for lattice in lattices:
        mass = [Fraction(float(m)) for m in lattice.mass]
        for _ in range(lattice.count):
            out = [Fraction(0)] * (len(law) + len(mass) - 1)
            for i, a in enumerate(law):
                for j, b in enumerate(mass):
                    out[i + j] += a * b
            first, law = first + lattice.first, out
    with mpmath.workdps(60):
        parts = (
            mpmath.mpf(p.numerator) / p.denominator * (1 - mpmath.exp(epsilon - (first + i) * mpmath.mpf(h)))
            for i, p in enumerate(law)
            if (first + i) * h > epsilon
        )
        return mpmath.fsum(parts)


def misses(lattices, h, epsilon, points):
    """By how much the value misses the exact one, and the stated error; both over the common factor."""
    front, value, error = _hockey_stick(lattices, h, epsilon, points)
    with mpmath.workdps(60):
        return float(abs(exact(lattices, h, epsilon) / mpmath.exp(front) - value)), error


@pytest.mark.parametrize("seed", range(6))
def test_the_error_covers_the_rounding_of_the_transform(seed):
    rng = np.random.default_rng(seed)
    lattices = [_Lattice(-3, rng.dirichlet(np.ones(7)), 12), _Lattice(0, np.array([0.5, 0.5]), 9)]
    missed, error = misses(lattices, 0.125, 0.25 * seed, 2**20)
    assert 0 < missed <= error < 1e-12


def test_the_error_covers_the_mass_outside_of_the_window():
    """A rare loss lies beyond the longest window that is allowed, and is folded back into it."""
    mass = np.zeros(2001)
    mass[0], mass[2000] = 1 - 1e-6, 1e-6
    missed, error = misses([_Lattice(0, mass, 1)], 0.01, 0.0, 64)
    assert 5e-7 < missed <= error


@pytest.mark.parametrize("h", [0.5, 0.2, 0.05])
@pytest.mark.parametrize(("shift", "count", "epsilon"), [(1.0, 1, 0.5), (0.7, 4, 1.0), (0.3, 30, 2.0)])
def test_both_ends_hold_on_a_coarse_lattice(h, shift, count, epsilon):
    """Gaussian losses sum to a Gaussian one, whose delta has a closed form."""
    parts, spans = [(GaussianLoss(shift), count)], [_finite_span(GaussianLoss(shift))]
    exact = GaussianLoss(shift * count**0.5).log_delta(epsilon)
    assert _lower(parts, spans, h, epsilon, 2**16) <= np.exp(exact) * (1 + 1e-12)
    assert _log_upper(parts, spans, h, epsilon, 2**16) >= exact - 1e-12


def test_both_ends_hold_losses_that_are_infinite():
    """Beyond the sum of all finite losses, delta is the chance that one loss is infinite."""
    found = bracket([(pure_loss(0.1, 1e-3), 10)], 5.0)
    exact = 1 - (1 - 1e-3) ** 10
    assert found.lower * (1 - 1e-12) <= exact <= found.upper * (1 + 1e-12)
