"""Properties of the protocol and of its calibrations, over random parameters."""

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, norm

from forcopt.models.secure_sum import (
    DropShare,
    ReplaceShare,
    SumProtocol,
    even_shares,
    talwar_shares,
)
from forcopt.models.secure_sum.accounting import (
    acceptance,
    exact_gap,
    gaussian_delta,
    gaussian_loss,
    joint_delta,
    least_check_noise,
    printed_check_noise,
    printed_gap,
    printed_sigma,
)

SEEDS = st.integers(0, 2**32 - 1)
TAILS = st.sampled_from([0.3, 0.1, 1e-2, 1e-3, 1e-6, 1e-9])


def protocol(servers=2, projections=5, threshold=1e9, noise=0.0, deviation=20.0, bits=40, even=True):
    if even:
        shares = even_shares(servers, servers - 1, math.sqrt((servers - 1) ** 2 / servers**2) / deviation)
    else:
        shares = talwar_shares(servers, deviation)
    return SumProtocol(projections, threshold, noise, shares, 1.0, bits)


@given(st.integers(2, 6), SEEDS, st.booleans())
@settings(max_examples=30, deadline=None)
def test_shares_sum_to_the_vector(servers, seed, even):
    rng = np.random.default_rng(seed)
    x = rng.integers(-(10**6), 10**6, size=(20, int(rng.integers(1, 30))))
    assert np.array_equal(protocol(servers, even=even).share(x, rng).sum(axis=0), x)


@given(st.integers(2, 5), SEEDS, st.booleans())
@settings(max_examples=8, deadline=None)
def test_the_covariance_of_shares_is_the_declared_one(servers, seed, even):
    rng = np.random.default_rng(seed)
    p = protocol(servers, even=even)
    parts = p.share(np.zeros((30_000, 1), dtype=int), rng)[:, :, 0]
    c = p.shares.covariance
    # The variance of a product of Gaussians is s_ii s_jj + s_ij^2; rounding adds at most S^2 / 4.
    error = 5 * np.sqrt((np.outer(np.diag(c), np.diag(c)) + c**2) / 30_000) + servers**2 / 4
    assert (np.abs(np.cov(parts) - c) <= error).all()


@given(
    st.integers(1, 200),
    st.integers(2, 5),
    st.floats(0.05, 50),
    st.floats(0, 100),
    st.floats(1.01, 3),
    SEEDS,
)
@settings(max_examples=60, deadline=None)
def test_acceptance_falls_in_the_norm_and_the_noise(k, servers, noise, norm_, factor, seed):
    threshold = float(np.random.default_rng(seed).uniform(0.1, 10)) * math.sqrt(servers) * noise
    at = acceptance(norm_, threshold, servers, noise, k, 10)
    assert at == pytest.approx(chi2.cdf(threshold**2 / (norm_**2 / k + servers * noise**2), k), abs=1e-14)
    last = 1e-12 * at  # the probabilities are sums of floats
    assert acceptance(norm_ * factor, threshold, servers, noise, k, 10) <= at + last
    assert acceptance(norm_, threshold, servers, noise * factor, k, 10) <= at + last
    assert acceptance(norm_, threshold * factor, servers, noise, k, 10) >= at - last


@given(SEEDS)
@settings(max_examples=5, deadline=None)
def test_frequencies_of_acceptance_do_not_depend_on_the_direction(seed):
    """One number in each run, so that runs are independent; two directions of one norm."""
    rng = np.random.default_rng(seed)
    p = protocol(projections=4, threshold=60.0, noise=15.0)
    runs = 250
    for norm_ in (0, 40, 80):
        turned = rng.standard_normal(12)
        for vector in (norm_ * np.eye(12)[0], norm_ * turned / np.linalg.norm(turned)):
            whole = np.rint(vector)
            passed = sum(len(p.run(whole[None], seed=rng).accepted) for _ in range(runs))
            expected = acceptance(float(np.linalg.norm(whole)), 60.0, 2, 15.0, 4, 12)
            error = 4.5 * math.sqrt(expected * (1 - expected) / runs) + 1 / runs
            assert abs(passed / runs - expected) <= error


@given(st.integers(5, 400), st.integers(2, 5), st.floats(0.05, 1.0), TAILS, TAILS)
@settings(max_examples=40, deadline=None)
def test_exact_calibrations_are_never_worse_than_the_printed_ones(k, servers, epsilon, beta, delta):
    assert 1 / gaussian_loss(epsilon, delta) <= printed_sigma(epsilon, delta)
    assert least_check_noise(epsilon, delta, k) <= printed_check_noise(epsilon, delta, k)
    noise = printed_check_noise(epsilon, delta, k)
    exact, printed = (rule(k, servers, noise, beta, beta) for rule in (exact_gap, printed_gap))
    assert exact.threshold <= printed.threshold
    assert exact.norm <= printed.norm


@given(st.floats(0.0, 8.0), st.floats(0.05, 30.0), st.floats(1.001, 4.0))
@settings(max_examples=200, deadline=None)
def test_the_profile_falls_in_noise_and_epsilon(epsilon, sigma, factor):
    at = float(gaussian_delta(epsilon, 1 / sigma))
    assert float(gaussian_delta(epsilon, 1 / (sigma * factor))) <= at * (1 + 1e-12)
    assert float(gaussian_delta(epsilon * factor, 1 / sigma)) <= at * (1 + 1e-12)
    assert 0 <= at <= 1
    assert float(gaussian_delta(0.0, 1 / sigma)) == pytest.approx(2 * norm.cdf(0.5 / sigma) - 1, rel=1e-9)


@given(st.floats(0.1, 5.0), TAILS)
@example(0.109375, 0.01)
@example(0.1, 0.3)
@settings(max_examples=25, deadline=None)
def test_the_noise_of_a_projection_tends_to_the_plain_one(epsilon, delta):
    """From above where the profile is convex in the squared parameter mu, else from below.

    By Jensen's inequality: the means of more chi-square variables are less spread. The derivative by mu is a
    normal density at ``mu / 2 - epsilon / mu``, so that the curvature has the sign of ``epsilon^2 - mu^2 -
    mu^4 / 4``.
    """
    noises = [least_check_noise(epsilon, delta, k) for k in (4, 40, 400, 40_000)]
    mu = gaussian_loss(epsilon, delta)
    plain, curvature = 1 / mu, 1 - (mu**2 + mu**4 / 4) / epsilon**2
    assert noises[-1] == pytest.approx(plain, rel=1e-3)
    if curvature > 0.1:
        assert all(a > b for a, b in pairwise([*noises, plain]))
    elif curvature < -0.1:
        assert noises[-2] < noises[-1] < plain
    assert float(joint_delta(epsilon, 10_000_000, 0.0, 1 / plain**2)) == pytest.approx(delta, rel=2e-3)


@given(st.integers(2, 5), SEEDS, st.booleans())
@settings(max_examples=15, deadline=None)
def test_without_faults_and_with_a_huge_threshold_the_sum_is_the_plain_one(servers, seed, even):
    rng = np.random.default_rng(seed)
    x = rng.integers(-100, 101, size=(int(rng.integers(1, 60)), int(rng.integers(1, 12))))
    run = protocol(servers, noise=1.0, even=even).run(x, seed=seed)
    assert run.accepted == list(range(len(x)))
    assert np.array_equal(run.whole_total, x.sum(axis=0))
    order = rng.permutation(len(x))
    assert np.array_equal(protocol(servers, noise=1.0, even=even).run(x[order], seed=seed).total, run.total)


@given(st.integers(2, 5), SEEDS)
@settings(max_examples=15, deadline=None)
def test_a_dropped_share_removes_its_client_and_no_other(servers, seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(-100, 101, size=(30, 4))
    lost = sorted(rng.choice(30, 5, replace=False).tolist())
    p = protocol(servers, noise=1.0)
    run = p.run(x, [DropShare(i, int(rng.integers(servers))) for i in lost], seed=seed)
    assert sorted(run.rejected) == lost
    assert np.array_equal(run.whole_total, np.delete(x, lost, axis=0).sum(axis=0))


@given(SEEDS, st.integers(2, 4), st.sampled_from([None, 1, 3, 8]))
@settings(max_examples=25, deadline=None)
def test_without_noise_the_check_is_the_norm_of_the_projection(seed, servers, k):
    """Malicious shares, whatever they are, count if and only if their sum has a short projection."""
    rng = np.random.default_rng(seed)
    d, n, threshold = 6, 25, float(rng.uniform(5, 60))
    p = protocol(servers, k, threshold)
    w = p.projection(d, np.random.default_rng(seed))
    w = np.eye(d) if w is None else w
    malicious = rng.integers(-(2**38), 2**38, size=(n, servers, d))
    target = rng.integers(-20, 21, size=(n, d))
    malicious[:, 0] = target - malicious[:, 1:].sum(axis=1)
    faults = [ReplaceShare(i, j, malicious[i, j]) for i in range(n) for j in range(servers)]
    fits = (np.abs(malicious) < 2**39).all(axis=(1, 2))
    lengths = np.linalg.norm(target @ w.T, axis=1)
    run = p.run(np.zeros((n, d)), faults, seed=seed)
    # Projections of shares near 2^38 leave an error of 2^38 * 2^-52 * d in floats.
    for i in range(n):
        if abs(lengths[i] - threshold) > 1e-2:
            assert (i in run.accepted) == (fits[i] and lengths[i] < threshold)
    assert np.array_equal(run.whole_total, target[run.accepted].sum(axis=0))


@pytest.mark.parametrize("servers", [2, 3, 4, 5])
def test_the_worst_coalition_is_one_of_all_but_one(servers):
    """Over all 2^S - 2 proper nonempty coalitions; with Algorithm 1 it has server 0."""
    every = [c for t in range(1, servers) for c in combinations(range(servers), t)]
    assert len(every) == 2**servers - 2
    for shares in (talwar_shares(servers, 3.0), even_shares(servers, servers - 1)):
        losses = {c: shares.loss(c) for c in every}
        worst = max(losses.values())
        assert all(losses[c] == pytest.approx(worst) for c in every if len(c) == servers - 1 and 0 in c)
        for c in every:  # a larger coalition learns no less
            assert all(losses[c] <= losses[b] * (1 + 1e-9) for b in every if set(c) < set(b))
    without_0 = [talwar_shares(servers, 3.0).loss(c) for c in every if 0 not in c]
    assert not any(without_0)


@given(st.integers(2, 4), st.integers(7, 12), st.sampled_from([0.2, 0.05, 0.01]), st.booleans(), SEEDS)
@settings(max_examples=12, deadline=None)
def test_numbers_of_shares_overflow_as_declared(servers, bits, overflow, even, seed):
    from forcopt.models import SecureSum

    p = SecureSum(
        servers=servers,
        dimension=1,
        epsilon=30.0,
        delta=0.1,
        bits=bits,
        step=1 / 8,
        overflow=overflow,
        sharing="even" if even else "talwar",
    )
    scale = p.scale(1 / 8, bits)
    assert scale is not None
    d = SumProtocol(1, 1.0, 1.0, p.scaled(scale), 1 / 8, bits)
    assert p.evaluate(d).metrics["overflow"] == pytest.approx(overflow, rel=1e-6)
    n = 20_000
    parts = d.share(np.full((n, 1), 8), np.random.default_rng(seed))
    refused = (np.abs(parts) >= 2 ** (bits - 1)).mean(axis=(1, 2))
    error = 5 * math.sqrt(overflow / n)
    assert refused.max() <= overflow + error
    if servers == 2:
        assert refused.max() >= overflow - error
