"""Talwar (2022): worked examples, corrected theorems, and the figures of exact calibrations."""

import math

import numpy as np
import pytest
from scipy.stats import chi2, norm

from forcopt.models import SecureSum
from forcopt.models.secure_sum import DropShare, talwar_shares
from forcopt.models.secure_sum.accounting import (
    acceptance,
    conditioning,
    exact_gap,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_loss,
    joint_delta,
    laurent_massart,
    least_check_noise,
    no_projection_gap,
    printed_check_noise,
    printed_gap,
    printed_sigma,
)
from forcopt.models.secure_sum.protocol import SumProtocol
from forcopt.models.secure_sum.shares import coalition_view


def test_shares_and_check_by_hand():
    x, noises = np.array([0.6, 0.8]), np.array([[1.0, -2.0], [0.5, 3.0]])
    shares = np.stack([x - noises.sum(axis=0), *noises])
    assert np.allclose(shares, [[-0.9, -0.2], [1, -2], [0.5, 3]])
    w = np.diag([1.0, 2.0])
    assert np.linalg.norm((shares @ w.T).sum(axis=0)) == pytest.approx(1.70880, abs=1e-5)


@pytest.mark.parametrize(
    ("epsilon", "delta", "printed", "exact"),
    [
        (0.1, 1e-2, 46.036148, 9.541823),
        (0.1, 1e-6, 76.180464, 36.304690),
        (0.5, 1e-6, 15.236093, 8.057618),
        (1, 1e-2, 4.603615, 1.877876),
        (1, 1e-6, 7.618046, 4.224679),
        (5, 1e-6, 1.523609, 0.980049),
        (10, 1e-6, 0.761805, 0.541087),
    ],
)
def test_lemma_7(epsilon, delta, printed, exact):
    assert printed_sigma(epsilon, delta) == pytest.approx(printed, abs=1e-6)
    assert 1 / gaussian_loss(epsilon, delta) == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize(
    ("delta", "first"), [(0.1, 16.38), (1e-2, 22.51), (1e-4, 34.17), (1e-6, 45.55), (1e-9, 62.32)]
)
def test_lemma_7_fails_for_large_epsilon(delta, first):
    def kept(epsilon):
        return gaussian_delta(epsilon, 1 / printed_sigma(epsilon, delta)) <= delta

    assert kept(first - 0.06)
    assert not kept(first + 0.06)


@pytest.mark.parametrize(
    ("k", "epsilon", "delta", "c", "printed", "exact"),
    [
        (5, 1, 1e-3, 2.47263, 13.63394, 2.78368),
        (5, 1, 1e-6, 3.13859, 23.90989, 5.91115),
        (20, 0.5, 1e-6, 2.01092, 30.63860, 8.85337),
        (20, 1, 1e-3, 1.69298, 9.33498, 2.49959),
        (20, 1, 1e-6, 2.01092, 15.31930, 4.71046),
        (100, 1, 1e-6, 1.42116, 10.82646, 4.23032),
    ],
)
def test_corollary_11(k, epsilon, delta, c, printed, exact):
    assert conditioning(delta, k) == pytest.approx(c, abs=1e-5)
    assert c * printed_sigma(epsilon, delta) == pytest.approx(printed, abs=1e-4)
    assert least_check_noise(epsilon, 2 * delta, k) == pytest.approx(exact, abs=1e-5)
    assert joint_delta(epsilon, k, 0.0, 1 / printed**2) < 1e-12


@pytest.mark.parametrize(
    ("k", "printed", "corrected"), [(10, 19.281303, 19.589291), (60, 12.131240, 12.248181)]
)
def test_theorem_15(k, printed, corrected):
    assert printed_check_noise(1.0, 1e-6, k, as_printed=True) == pytest.approx(printed, abs=1e-6)
    assert printed_check_noise(1.0, 1e-6, k) == pytest.approx(corrected, abs=1e-6)


@pytest.mark.parametrize(
    ("k", "s", "noise", "beta", "printed", "exact"),
    [
        (50, 2, 0.1, 0.01, (1.892711102727, 2.848636850889), (1.745323938, 2.031515332)),
        (100, 3, 0.5, 0.01, (10.752606302, 11.293929724), (10.159385297, 8.503571722)),
        (40, 2, 1.0, 1e-3, (13.277720565, 31.048026163), (12.191758035, 15.869769266)),
    ],
)
def test_theorems_13_and_14(k, s, noise, beta, printed, exact):
    assert printed_gap(k, s, noise, beta, beta) == pytest.approx(printed, abs=1e-8)
    assert exact_gap(k, s, noise, beta, beta) == pytest.approx(exact, abs=1e-8)


def test_theorem_14_says_nothing_for_few_projections():
    assert printed_gap(10, 2, 1.0, 1e-3, 1e-3).norm == math.inf
    sigma = printed_check_noise(1.0, 1e-6, 10)
    assert exact_gap(10, 2, sigma, 1e-3, 1e-3).norm == pytest.approx(381.98, abs=0.01)


def test_exact_acceptance_and_the_best_attack():
    tau = 1.892711102727
    assert acceptance(1.0, tau, 2, 0.1, 50, 8) == pytest.approx(0.9994998012, abs=1e-9)
    assert acceptance(2.848636850889, tau, 2, 0.1, 50, 8) == pytest.approx(3.5647e-05, abs=1e-8)
    assert acceptance(1.5, tau, 2, 0.1, 50, 8) == pytest.approx(0.712614, abs=1e-6)
    assert acceptance(1.3173, tau, 2, 0.1, 50, 8) == pytest.approx(0.930254, abs=2e-5)
    three = [acceptance(r, 10.752606302, 3, 0.5, 100, 8) for r in (1.0, 11.293929724)]
    assert three == pytest.approx([0.999391700, 0.000173564], abs=5e-9)
    p = SecureSum(servers=2, dimension=8, epsilon=1.0, delta=1e-6)
    norm_, gain = p.best_attack(SumProtocol(50, tau, 0.1, talwar_shares(2, 5.0), 0.01, 16))
    assert norm_ == pytest.approx(1.3173, abs=2e-4)
    assert gain == pytest.approx(1.225405, abs=1e-6)


@pytest.mark.parametrize(
    ("rule", "k", "tau", "rho"),
    [(printed_gap, 259, 262.512634, 228.915573), (exact_gap, 142, 211.668067, 186.386184)],
)
def test_the_gap_with_the_printed_noise(rule, k, tau, rho):
    def at(j):
        return rule(j, 2, printed_check_noise(1.0, 1e-6, j), 1e-3, 1e-3)

    assert at(k) == pytest.approx((tau, rho), abs=1e-5)
    assert min(range(1, 801), key=lambda j: at(j).norm) == k
    noise = {259: 9.8185368, 142: 10.5880402}[k]
    assert printed_check_noise(1.0, 1e-6, k) == pytest.approx(noise, abs=1e-7)


@pytest.mark.parametrize(
    ("epsilon", "rho"), [(1.0, 71.918783), (2.0, 38.259127), (5.0, 17.08979), (10.0, 9.66542)]
)
def test_the_gap_with_exact_noise(epsilon, rho):
    p = SecureSum(servers=2, dimension=1000, epsilon=epsilon, delta=1e-6, bits=40)
    s = p.solve()
    assert s.objective == pytest.approx(rho, rel=1e-5)
    if epsilon == 1:
        assert s.decision.projections == 55
        noise = least_check_noise(1.0, 1e-6, 55)
        assert noise == pytest.approx(4.51322, abs=1e-5)
        assert exact_gap(55, 2, noise, 1e-3, 1e-3).norm == pytest.approx(71.918783, abs=1e-6)


@pytest.mark.parametrize(
    ("d", "rho"), [(10, 86.4976), (100, 122.3015), (1000, 195.2303), (10_000, 333.0006), (10**6, 1033.2527)]
)
def test_no_projection(d, rho):
    assert no_projection_gap(d, 2, printed_sigma(1.0, 0.5e-6), 1e-3, 1e-3).norm == pytest.approx(
        rho, abs=2e-4
    )


def test_truncation_holds_for_two_servers_only():
    tails = [2 * norm.sf(127 / (20 * math.sqrt(s - 1))) for s in (2, 3, 4, 5)]
    assert tails == pytest.approx([2.153e-10, 7.118e-6, 2.462e-4, 1.498e-3], rel=1e-3)
    assert norm.sf(126 / 20) + norm.sf(128 / 20) == pytest.approx(2.265e-10, rel=1e-3)  # of a bit that is 1
    for s, word in ((2, 115), (3, 163), (4, 199)):
        assert math.ceil(20 * math.sqrt(s - 1) * norm.isf(0.5e-8)) == word


def test_split_budget():
    """Half of the budget for the check gives 383.7; accounting for both together 73.1."""
    sigma = printed_check_noise(0.5, 0.5e-6, 145)
    assert exact_gap(145, 2, sigma, 1e-3, 1e-3).norm == pytest.approx(383.7197, abs=1e-3)
    assert printed_sigma(0.5, 0.5e-6) == pytest.approx(15.5958, abs=1e-4)
    p = SecureSum(
        servers=2, dimension=1000, epsilon=1.0, delta=1e-6, bits=8, step=1.0, whole=True, sharing="talwar"
    )
    half = p.solve("exact-tails", fraction=0.5)
    assert half.objective == pytest.approx(383.7197, abs=1e-3)
    assert half.decision.projections == 145
    assert p.solve().objective == pytest.approx(73.1, abs=0.05)
    assert p.replace(sharing="even").solve().objective == pytest.approx(72.21, abs=0.005)


def test_gap_by_bits():
    found = {}
    for bits in (8, 10, 12, 14, 16):
        s = SecureSum(servers=2, dimension=1000, epsilon=1.0, delta=1e-6, bits=bits).solve()
        found[bits] = s.objective if s.decision is not None else math.inf
    assert found[8] == math.inf
    assert [found[b] for b in (10, 12, 14, 16)] == pytest.approx([209.360, 100.518, 81.365, 75.435], abs=1e-3)


def test_view_covariance():
    """Three servers, the coalition of 0 and 2."""
    view = coalition_view(talwar_shares(3, 1.0), 1.0, [0, 2], np.zeros((1, 1)))
    assert np.allclose(view.covariance[:2, :2], [[2, -1], [-1, 1]])
    assert view.loss([1.0]) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("beta", "k", "square"), [(1e-2, 84, 333.533), (1e-4, 166, 664.085), (1e-8, 332, 1325.180)]
)
def test_scaling(beta, k, square):
    gaps = {j: printed_gap(j, 2, 1.0, beta, beta).norm for j in range(1, 500)}
    assert min(gaps, key=lambda j: gaps[j]) == k
    assert gaps[k] ** 2 == pytest.approx(square, abs=1e-3)
    assert (k / -math.log(beta), square / -math.log(beta)) == pytest.approx((18.1, 72.2), abs=0.3)  # linear


def test_theorem_10_at_its_tails():
    assert chi2.sf(5 + 2 * math.log(10) + 2 * math.sqrt(5 * math.log(10)), 5) == pytest.approx(
        0.005811, abs=1e-6
    )


@pytest.mark.parametrize(
    ("s", "epsilon", "beta", "printed", "exact"),
    [
        (2, 1.0, 1e-6, (424, 302.288343), (228, 256.212)),
        (3, 1.0, 1e-3, (259, 280.361347), (142, 228.273)),
        (2, 0.5, 0.05, (155, 334.295660), (82, 243.3135)),
    ],
)
def test_the_gap_with_the_printed_noise_elsewhere(s, epsilon, beta, printed, exact):
    for rule, (k, rho) in ((printed_gap, printed), (exact_gap, exact)):
        norms = {j: rule(j, s, printed_check_noise(epsilon, 1e-6, j), beta, beta).norm for j in range(1, 801)}
        assert min(norms, key=lambda j: norms[j]) == k
        assert norms[k] == pytest.approx(rho, abs=1e-3)


def test_the_gap_by_projections():
    few = dict.fromkeys((1, 5, 10, 20), math.inf)
    printed = {**few, 30: 850.70, 50: 333.23, 100: 250.16, 200: 230.13, 400: 231.80}
    exact = {
        1: 177641.08,
        5: 774.47,
        10: 381.98,
        20: 259.30,
        30: 225.56,
        50: 201.50,
        100: 187.83,
        200: 187.67,
        400: 197.11,
    }
    for rule, norms in ((printed_gap, printed), (exact_gap, exact)):
        for k, rho in norms.items():
            noise = printed_check_noise(1.0, 1e-6, k)
            assert rule(k, 2, noise, 1e-3, 1e-3).norm == pytest.approx(rho, abs=0.006)
    for k, rho in {20: 80.2817, 50: 71.9697, 55: 71.918783, 100: 73.8470, 200: 79.9564}.items():
        noise = least_check_noise(1.0, 1e-6, k)
        assert exact_gap(k, 2, noise, 1e-3, 1e-3).norm == pytest.approx(rho, abs=1e-4)


@pytest.mark.parametrize(
    ("fraction", "rho", "sigma", "limit", "bits"),
    [
        (0.5, 383.7197, 15.5958, 90, 8),
        (0.8, 239.8275, 38.9895, 224, 9),
        (0.9, 213.1810, 77.9790, 447, 10),
        (0.95, 201.9615, 155.9580, 894, 11),
    ],
)
def test_the_price_of_bits(fraction, rho, sigma, limit, bits):
    norms = {
        k: exact_gap(k, 2, printed_check_noise(fraction, 0.5e-6, k), 1e-3, 1e-3).norm for k in range(60, 260)
    }
    assert min(norms, key=lambda k: norms[k]) == 145
    assert norms[145] == pytest.approx(rho, abs=1e-3)
    assert (2 * limit).bit_length() == bits
    assert printed_sigma(1 - fraction, 0.5e-6) == pytest.approx(sigma, abs=1e-4)
    assert math.ceil(printed_sigma(1 - fraction, 0.5e-6) * norm.isf(0.5e-8)) == limit


def test_three_clients_by_hand():
    """No noise and no projection, threshold 2: the long vector is rejected, and a missing share is, too."""
    protocol = SumProtocol(None, 2.0, 0.0, talwar_shares(2, 5.0), 1.0, 16)
    x = {1: (1, 0), 2: (0, 1), 7: (10, 0)}
    run = protocol.run(x, seed=1)
    assert run.accepted == [1, 2]
    assert run.total.tolist() == [1, 1]
    assert "threshold" in run.rejected[7]
    run = protocol.run(x, [DropShare(2, 1)], seed=1)
    assert run.total.tolist() == [1, 0]
    assert "no share at server 1" in run.rejected[2]


def test_noise_by_the_size_of_the_coalition():
    """Theorem 12: three honest servers need a third of the variance."""
    assert printed_sigma(1.0, 1e-6) / math.sqrt(3) == pytest.approx(4.398281, abs=1e-6)
    shares = talwar_shares(4, printed_sigma(1.0, 1e-6) / math.sqrt(3))
    assert shares.loss([0]) == pytest.approx(1 / printed_sigma(1.0, 1e-6))
    three = talwar_shares(3, 1.0)
    assert three.loss([0, 1]) ** 2 == pytest.approx(2 * three.loss([0]) ** 2)


def test_the_privacy_of_the_example():
    """Section 7's noise of 20: the printed epsilon, and the exact one."""
    assert 2 * math.sqrt(math.log(2e6)) / 20 == pytest.approx(0.38090232, abs=1e-8)
    assert gaussian_epsilon(1 / 20, 1e-6) == pytest.approx(0.18921317, abs=1e-7)
    z = np.arange(-4000, 4001)
    mass = np.exp(-(z**2) / 800.0)
    mass /= mass.sum()
    assert mass[abs(z) > 127].sum() == pytest.approx(1.822e-10, rel=1e-3)
    assert mass[abs(1 - z) > 127].sum() == pytest.approx(1.917e-10, rel=1e-3)


def test_the_bit_of_acceptance_alone_loses_little():
    """A coalition without server 0 sees one bit: its loss is far below that of the noisy projection."""
    tau = 1.892711102727
    rejected = [1 - acceptance(r, tau, 2, 0.1, 50, 8) for r in (0.0, 1.0)]
    assert rejected == pytest.approx([1.98e-16, 5.002e-4], abs=1e-7)
    loss = max(p - math.e * q for p, q in (rejected, rejected[::-1]))
    assert loss == pytest.approx(5.002e-4, abs=1e-7)
    assert joint_delta(1.0, 50, 0.0, 1 / 0.1**2) > 0.9


def test_theorem_10_against_the_chi_square_law():
    for k, beta, lower, upper in (
        (5, 1e-3, 0.0, 1.139e-5),
        (50, 0.1, 0.006302, 0.010181),
        (50, 1e-3, 2.11e-8, 2.65e-5),
    ):
        low, high = laurent_massart(k, beta)
        assert chi2.cdf(low, k) == pytest.approx(lower, rel=3e-3)
        assert chi2.sf(high, k) == pytest.approx(upper, rel=2e-3)


@pytest.mark.parametrize(
    ("tau", "r", "expected"),
    [
        (1.892711102727, 1.0, 0.9994998),
        (1.892711102727, 1.5, 0.712614),
        (1.745323938, 2.031515332, 0.01),
    ],
)
def test_frequencies_of_the_worked_example(tau, r, expected):
    """Runs with d = 8 and noise 5 of the shares, each with its own projection."""
    protocol, runs = SumProtocol(50, tau, 0.1, talwar_shares(2, 5.0), 1e-4, 30), 1500
    rng = np.random.default_rng(3)
    passed = sum(len(protocol.run(r * np.eye(8)[:1], seed=rng).accepted) for _ in range(runs))
    assert acceptance(r, tau, 2, 0.1, 50, 8) == pytest.approx(expected, abs=1e-6)
    assert abs(passed / runs - expected) <= 4.5 * math.sqrt(expected * (1 - expected) / runs) + 1 / runs


def test_messages():
    """Sd numbers of a client, k reals of each projected share, d of each sum, one bit for each client."""
    protocol = SumProtocol(5, 1e9, 1.0, talwar_shares(3, 5.0), 1.0, 16)
    run = protocol.run(np.zeros((10, 20)), [DropShare(0, 1)], seed=1)
    assert run.messages["clients"] == 10 * 3 * 20 * 16
    assert run.messages["server 1"] == run.messages["server 2"] == 64 * (20 + 5 * 9)
    assert run.messages["server 0"] == 64 * 20 + 2 * 10
