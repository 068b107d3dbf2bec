"""Exact draws of whole noise against exact probabilities; the bytes come from a seed: no test is random."""

from fractions import Fraction
from importlib import import_module
from math import factorial

import mpmath
import numpy as np
import pytest
from scipy.stats import binomtest, chi2_contingency, chisquare, nbinom

from forcopt.errors import DeclarationError
from forcopt.privacy import (
    AdditiveMechanism,
    Bounded,
    DiscreteGaussian,
    DiscreteLaplace,
    Laplace,
    Ledger,
    Schema,
    Secure,
    Table,
    randomness,
)
from forcopt.privacy.budget import PureDP
from forcopt.privacy.noises import draws

SCALES = [0.3, 1.0, 10.0, 1e3, 1e5, 1e9]
COUNT = 100_000
SOURCE = import_module("forcopt.privacy.randomness")


@pytest.fixture(autouse=True)
def bytes_of_a_seed(monkeypatch):
    monkeypatch.setattr(SOURCE, "token_bytes", np.random.default_rng(20).bytes)


def laplace_tail(scale, i):
    """P(X >= i) for i >= 1, of mass in proportion to q^|x|."""
    q = mpmath.exp(-1 / mpmath.mpf(scale))
    return q ** int(i) / (1 + q)


def gaussian_tail(scale, i):
    """P(X >= i): a sum of the masses, or from a scale of 1,000 on Euler and Maclaurin's first two terms."""
    s = mpmath.mpf(scale)
    if scale < 1000:
        masses = [mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * s * s)) for k in range(int(14 * scale) + 10)]
        return mpmath.fsum(masses[int(i) :]) / (2 * mpmath.fsum(masses[1:]) + 1)
    v = (int(i) - mpmath.mpf("0.5")) / s
    return mpmath.erfc(v / mpmath.sqrt(2)) / 2 - v * mpmath.npdf(v) / (24 * s * s)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    ("family", "tail", "far"), [(DiscreteLaplace, laplace_tail, 7), (DiscreteGaussian, gaussian_tail, 3.7)]
)
def test_draws_have_exact_probabilities(family, tail, far, scale):
    """Chi-square over 40 cells of each side and 0, tails, symmetry, and the last bits of large scales."""
    x = family(scale=scale).sample(COUNT)
    edges = np.unique(np.ceil(scale * np.append(np.linspace(0, far, 41)[1:], 0.01))).astype(np.int64)
    above = [float(tail(scale, i)) * COUNT for i in edges]
    keep = np.array(above) > 10
    edges, above = edges[keep], np.array(above)[keep]
    side = np.append(above[:-1] - above[1:], above[-1])
    cells = [np.histogram(sign * x, [*edges, np.inf])[0] for sign in (1, -1)]
    seen = [COUNT - sum(map(sum, cells)), *cells[0], *cells[1]]
    expected = np.concatenate([[COUNT - 2 * above[0]], side, side])
    assert chisquare(seen, expected, sum_check=False).pvalue > 1e-4
    beyond = int((np.abs(x) >= edges[-1]).sum())
    assert binomtest(beyond, COUNT, 2 * above[-1] / COUNT).pvalue > 1e-4
    assert binomtest(int((x > 0).sum()), int((x != 0).sum())).pvalue > 1e-4
    if len(edges) > 2:
        assert chi2_contingency(cells).pvalue > 1e-4
    if scale >= 1e3:
        assert chisquare(np.bincount(x % 64)).pvalue > 1e-4
    assert x.dtype == np.int64


def test_draws_of_a_fraction_have_its_law():
    """A scale whose fraction has a denominator; small enough that each value has a probability."""
    for scale, family in ((1.7, DiscreteLaplace), (1.7, DiscreteGaussian), (0.05, DiscreteLaplace)):
        noise = family(scale=scale)
        x, values = noise.sample(COUNT), np.arange(-4, 5)
        expected = np.append(noise.density(values), 1 - noise.density(values).sum()) * COUNT
        seen = np.array([*(np.sum(x == v) for v in values), np.sum(np.abs(x) > 4)])
        keep = expected > 5
        assert keep.sum() == 1 or chisquare(seen[keep], expected[keep], sum_check=False).pvalue > 1e-4
        assert seen[~keep].sum() <= 20


@pytest.mark.parametrize("scale", [0.3, 1.5, 40.0, 1e5, 1e9])
@pytest.mark.parametrize("parts", [1, 3])
def test_parts_have_the_negative_binomial_law(scale, parts):
    """Chi-square from a millionth of the scale to 8 scales; three parts sum to a geometric variable."""
    x = draws.negative_binomial(Fraction(scale), parts, 3 * COUNT // 5, Secure())
    for size, drawn in ((1 / parts, x), (3 / parts, x.reshape(3, -1).sum(axis=0))):
        law = nbinom(size, -np.expm1(-1 / scale))
        ends = np.unique(np.ceil(scale * np.append(0, np.geomspace(1e-6, 8, 60))))
        expected = np.diff(np.concatenate([[0], law.cdf(ends), [1]])) * len(drawn)
        seen = np.bincount(np.searchsorted(ends, drawn), minlength=len(expected))
        keep = expected > 5
        seen, expected = [np.append(a[keep], a[~keep].sum()) for a in (seen, expected)]
        keep = expected > 0.5
        assert chisquare(seen[keep], expected[keep], sum_check=False).pvalue > 1e-4


def test_poisson_variables():
    mass = [np.exp(-1) / factorial(k) for k in range(7)]
    seen = np.bincount(np.minimum(draws._poisson(COUNT, Secure()), 7), minlength=8)
    assert chisquare(seen, np.append(mass, 1 - sum(mass)) * COUNT).pvalue > 1e-4


@pytest.mark.parametrize("scale", [1e-300, 1e-5, 2.0**-11, 1e12 - 0.5, 1e12])
@pytest.mark.parametrize("family", [DiscreteLaplace, DiscreteGaussian])
def test_extreme_scales(family, scale):
    """Fractions of more bits than a word: what falls out of it is 0; and the largest noise."""
    x = family(scale=scale).sample((100, 10))
    assert x.shape == (100, 10)
    if scale < 1:
        assert (x == 0).all()
    else:
        moment = 1 if family is DiscreteLaplace else np.sqrt(2 / np.pi)
        assert np.abs(x).mean() / scale == pytest.approx(moment, abs=0.15) and len(np.unique(x)) == 1000


def test_the_comparison_of_fractions_is_that_of_floats(monkeypatch):
    """All comparisons made with fractions give the same draws from the same bytes."""
    noise = DiscreteGaussian(scale=123.456)
    found = []
    for undecided in (draws.UNDECIDED, 2.0):
        monkeypatch.setattr(draws, "UNDECIDED", undecided)
        monkeypatch.setattr(SOURCE, "token_bytes", np.random.default_rng(3).bytes)
        found.append(noise.sample(500).tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize(("more", "below"), [(-1, True), (0, None), (1, False)])
def test_a_tie_of_the_first_bits_goes_on(more, below):
    """1/3 begins with floor(2^63 / 3); the next 63 bits decide, and if these agree as well the next ones."""

    class Scripted(Secure):
        def integers(self, end, size=1):
            return np.array([script.pop(0)], dtype=np.uint64)

    digits = [((2 ** (63 * k)) // 3) % 2**63 for k in (1, 2, 3)]
    script = [digits[0], digits[1] + more, 0 if below is None else 7]
    found = draws._below(np.array([1 / 3]), lambda i: Fraction(1, 3), Scripted())
    assert found.tolist() == [below is not False]
    assert script == ([] if below is None else [7])


@pytest.mark.parametrize("end", [2, 5, 1000, 2**62 + 1, 2**63])
def test_whole_numbers_are_uniform(end):
    assert not Secure().integers(1, 10).any()
    drawn = Secure().integers(end, 20_000)
    assert int(drawn.max()) < end
    cells = min(end, 8)
    seen = np.bincount((drawn.astype(object) * cells // end).astype(np.int64), minlength=cells)
    sizes = [-(-(k + 1) * end // cells) - -(-k * end // cells) for k in range(cells)]
    assert chisquare(seen, np.array(sizes, dtype=float) / end * 20_000).pvalue > 1e-4


def test_an_income_total():
    """Sensitivity 1e6 at epsilon .1: noise of scale 1e7, without a table of 450 million entries."""
    incomes = Table({"income": np.arange(50) * 1000}, Schema(income=Bounded(0, 10**6)))
    noisy = incomes.sum("income") >> DiscreteLaplace.calibrated(PureDP(0.1))
    (mechanism,), released = noisy.mechanisms, noisy.release(Ledger(PureDP(1.0)))
    assert mechanism.noise.scale == 1e7 and released.total_variation == 0.0 and not released.simulated
    assert abs(int(released.values[0]) - 1_225_000) < 45 * 1e7
    assert Laplace(scale=3.0).on_integers().total_variation > 0


def test_a_scale_beyond_the_words_is_refused():
    with pytest.raises(DeclarationError, match=r"scale is 1e\+13; a secure draw takes at most 1e\+12"):
        AdditiveMechanism(DiscreteLaplace(scale=1e13))._send([1], Secure())
    with pytest.raises(DeclarationError, match="scale"):
        DiscreteGaussian(scale=1e13)
    assert len(DiscreteLaplace(scale=1e13).sample(3, randomness(seed=1))) == 3


# -- the law of large discrete Gaussians ---------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1000.5, 4321.0, 1e6])
def test_tails_of_large_discrete_gaussians(scale):
    """Against sums of 40 digits, from the middle to where one series hands over to the other and beyond."""
    noise, s = DiscreteGaussian(scale=scale), mpmath.mpf(scale)
    for i in (0.0099 * s * s, 0.0101 * s * s, 0.3 * s * s):
        i = int(i)
        with mpmath.workdps(40):
            terms = (mpmath.exp(-mpmath.mpf(2 * i * j + j * j) / (2 * s * s)) for j in range(9000))
            exact = mpmath.log(mpmath.fsum(terms)) - mpmath.mpf(i) ** 2 / (2 * s * s)
            exact -= mpmath.log(s * mpmath.sqrt(2 * mpmath.pi))
            assert abs(float(noise.log_cdf(-i) - exact)) < 1e-15 * abs(float(exact)) + 1e-13
    x = np.array([0, 1, 7, int(scale), int(3 * scale), int(6 * scale)])
    exact = np.array([float(gaussian_tail(scale, i)) for i in x])
    np.testing.assert_allclose(noise.cdf(-x), exact, rtol=1e-11)
    np.testing.assert_allclose(noise.cdf(x), 1 - np.append(exact, 0)[:-1] + noise.density(x), rtol=1e-9)


@pytest.mark.parametrize("scale", [300.0, 5e3, 1e9])
def test_quantiles_are_least(scale):
    noise, u = DiscreteGaussian(scale=scale), np.array([1e-12, 1e-3, 0.2, 0.5, 0.5000001, 0.7, 0.999])
    x = noise.quantile(u)
    assert (noise.cdf(x) >= u - 1e-15).all() and (noise.cdf(x - 1) < u).all()
    assert noise.variance == pytest.approx(scale**2, rel=1e-12)
    assert np.isfinite(noise.quantile([0.0, 1.0])).all()


def test_tables_and_series_meet():
    """One scale by both: the largest that is tabulated, and by the series of the next float."""
    low, high = DiscreteGaussian(scale=1000.0), DiscreteGaussian(scale=float(np.nextafter(1000.0, 2000.0)))
    x = np.arange(-12_000, 12_000, 37)
    np.testing.assert_allclose(low.cdf(x), high.cdf(x), rtol=1e-11)
    np.testing.assert_allclose(low.log_density(x), high.log_density(x), rtol=1e-12)
    u = np.linspace(0.001, 0.999, 301)
    assert (low.quantile(u) == high.quantile(u)).all()
    assert low.variance == pytest.approx(high.variance, rel=1e-12)
