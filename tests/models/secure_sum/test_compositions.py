"""Secure sums together with fair rules, with noise for the sum, and with samples of clients."""

import math
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare, kstest, laplace, norm

import forcopt as fo
from forcopt.errors import DeclarationError
from forcopt.fairness import EqualizedOdds
from forcopt.models import FairClassification, SecureSum
from forcopt.models.fair_classification import Finite
from forcopt.models.fair_classification.dp_oracle_learner import plan
from forcopt.models.secure_sum import (
    Attack,
    SharedNoise,
    shared_noise,
)
from forcopt.privacy import (
    AdditiveMechanism,
    ApproximateDP,
    BoundedNoise,
    ClusterSample,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Ledger,
    PrivacyBudget,
    Secure,
    Simulated,
    draw,
)
from forcopt.privacy.amplification import cluster_sample

# -- liars ---------------------------------------------------------------------------------------------------


def cells(counts):
    """One row for each person: its cell as a unit vector."""
    return np.repeat(np.eye(counts.size), counts.ravel(), axis=0)


def summed(counts, faults=(), seed=0, **fields):
    p = SecureSum(
        **{"servers": 2, "dimension": counts.size, "epsilon": 3.0, "delta": 1e-6, "bits": 12, **fields},
        step=1 / 16,
        whole=True,
    )
    s = p.solve()
    return s, s.decision.run(cells(counts), faults, seed=seed)


def test_what_liars_do_to_a_table():
    """They shift the table of the honest by no more than their norms."""
    counts, _ = fo.data.compas_counts()
    liars = [0, 1, 2]
    for norm_ in (8.0, 16.0):
        s, run = summed(counts, [Attack(i, norm_) for i in liars])
        assert norm_ < s.objective
        accepted = [i for i in liars if i in run.accepted]
        of_honest = cells(counts)[[i for i in run.accepted if i not in liars]].sum(axis=0)
        assert np.linalg.norm(run.total - of_honest) <= len(accepted) * norm_ + 1e-9


# -- noise that the servers share ----------------------------------------------------------------------------


@pytest.mark.parametrize(("servers", "corrupted"), [(2, 1), (3, 1), (4, 3), (5, 2)])
def test_the_honest_parts_have_the_law_of_the_noise(servers, corrupted):
    honest, n = servers - corrupted, 20_000
    members = list(combinations(range(servers), honest))[-1]
    whole = DiscreteLaplace(scale=3.0)
    parts = shared_noise(whole, servers, corrupted, n, seed=1)
    assert np.array_equal(parts, np.rint(parts))
    edges = np.arange(-14, 16) - 0.5
    seen = np.histogram(np.clip(parts[list(members)].sum(axis=0), -14, 14), edges)[0]
    law = np.diff(whole.cdf(np.concatenate([[-1e9], np.arange(-14, 14), [1e9]])))
    assert chisquare(seen, n * law).pvalue > 1e-4
    for noise, cdf in (
        (Laplace(scale=2.0), laplace(scale=2.0).cdf),
        (Gaussian(scale=2.0), norm(scale=2.0).cdf),
    ):
        parts = shared_noise(noise, servers, corrupted, n, seed=2)
        assert kstest(parts[list(members)].sum(axis=0), cdf).pvalue > 1e-4
        total = parts.sum(axis=0)
        expected = noise.variance * servers / honest
        assert total.var() == pytest.approx(expected, abs=6 * expected * math.sqrt(5 / n))


def test_a_noisy_sum_is_the_sum_and_all_parts():
    s = SecureSum(servers=3, dimension=4, epsilon=3.0, delta=1e-6, bits=12, step=1 / 16, whole=True).solve()
    x = np.repeat(np.eye(4), 50, axis=0)
    noise = 16 * shared_noise(DiscreteLaplace(scale=1.0), 3, 1, 4, seed=1)
    plain, noisy = (s.decision.run(x, seed=2, server_noise=n) for n in (None, noise))
    assert np.array_equal(noisy.whole_total - plain.whole_total, noise.sum(axis=0))
    for bad in (noise[:2], noise + 0.5, np.full((3, 4), 1e300)):
        with pytest.raises(DeclarationError, match="server_noise"):
            s.decision.run(x, seed=2, server_noise=bad)
    with pytest.raises(DeclarationError, match="honest"):
        shared_noise(DiscreteLaplace(scale=1.0), 3, 3, 4)
    with pytest.raises(DeclarationError, match="Gaussian, Laplace"):
        shared_noise(BoundedNoise(power=2.0, radius=4.0), 3, 1, 4)


@pytest.mark.parametrize("noise", [Laplace(scale=2.0), Gaussian(scale=3.0), DiscreteLaplace(scale=2.0)])
@pytest.mark.parametrize(("servers", "corrupted"), [(2, 0), (2, 1), (5, 3)])
def test_a_mechanism_of_shared_noise(noise, servers, corrupted):
    """The coalition subtracts its own parts: the rest has the declared law, and the profile is that law's."""
    shared = SharedNoise(noise, servers=servers, corrupted=corrupted)
    alone, n = AdditiveMechanism(noise), 20_000
    assert shared.profile().delta(0.3) == alone.profile().delta(0.3)
    factor = servers / (servers - corrupted)
    assert shared.error**2 == pytest.approx(factor * alone.error**2)
    values = np.arange(n)
    released = shared._send(values, Simulated(3))
    parts = shared_noise(noise, servers, corrupted, n, seed=3)
    assert np.allclose(released - parts.sum(axis=0), values, atol=1e-9)
    expected = shared.error**2
    assert (released - values).var() == pytest.approx(expected, abs=6 * expected * math.sqrt(6 / n))
    if not noise.whole:
        with pytest.raises(DeclarationError, match="floating-point"):
            shared._send(values, Secure())


def private_learning(people, **fields):
    """Six classifiers of records whose groups are known to the servers only."""
    rng = np.random.default_rng(7)
    labels, groups = rng.integers(0, 2, people), np.where(rng.random(people) < 0.4, "a", "b")
    table = np.array([labels ^ (rng.random(people) < p) for p in (0.1, 0.2, 0.3)])
    table = np.vstack([table, np.where(groups == "a", labels, 1 - labels), np.zeros_like(labels), 1 - labels])
    return FairClassification(
        np.zeros((people, 1)), labels, groups, EqualizedOdds(0.1), hypotheses=Finite(table), **fields
    )


def test_private_learning_with_noise_of_the_servers():
    """Rounds as planned; the rates' noise is shared. With one honest server of one nothing changes."""
    p = private_learning(4000, privacy=PrivacyBudget(60.0, 1e-5, floor=600))
    planned = plan(p, rounds=60, bound=4)
    options = {"rounds": 60, "bound": 4, "allow_vacuous": True}
    optimum = p.solve("lp").objective
    seen = []

    class Spy(SharedNoise):
        def _send(self, values, rng):
            out = super()._send(values, rng)
            seen.append(np.asarray(out - values).ravel())
            return out

    for servers, corrupted in ((2, 0), (3, 2), (5, 3)):
        seen.clear()
        s = p.solve(mechanism=partial(Spy, servers=servers, corrupted=corrupted), seed=1, **options)
        assert s.iterations == 60 and len(seen) == 60
        noise, factor = np.concatenate(seen), servers / (servers - corrupted)
        expected = 2 * planned.noise**2 * factor
        assert (noise**2).mean() == pytest.approx(expected, abs=6 * expected * math.sqrt(6 / len(noise)))
        assert "(60, 1e-05)-differentially private" in s.message
        assert s.objective <= optimum + planned.gap
        assert (s.guarantee == planned.gap) == (factor == 1)
        assert ("no bound" in s.message) == (factor > 1)
    with pytest.raises(DeclarationError, match="mechanism gives"):
        p.solve(mechanism=lambda noise: AdditiveMechanism(Laplace(scale=noise.scale / 2)), seed=1, **options)
    with pytest.raises(DeclarationError, match="simulate with a seed"):
        p.solve(
            mechanism=partial(SharedNoise, servers=3), ledger=Ledger(ApproximateDP(60.1, 1e-5)), **options
        )


def test_mechanisms_that_servers_cannot_share():
    with pytest.raises(DeclarationError, match="at least one of the 3 servers"):
        SharedNoise(Laplace(scale=1.0), servers=3, corrupted=3)
    with pytest.raises(DeclarationError, match="Gaussian, Laplace"):
        SharedNoise(BoundedNoise(power=2.0, radius=4.0))
    with pytest.raises(DeclarationError, match="whole"):
        SharedNoise(DiscreteLaplace(scale=1.0))._send([0.5], Simulated(1))
    with pytest.raises(DeclarationError, match=r"values\[0\] is .*2\^53"):
        SharedNoise(DiscreteLaplace(scale=1.0))._send([2.0**60], Simulated(1))


def test_whole_shared_noise_is_drawn_exactly():
    """Chi-square of 20,000 sums of honest parts from the system's randomness; a false alarm in a million."""
    noise, servers, corrupted = DiscreteLaplace(scale=1.5), 4, 1
    parts = shared_noise(noise, servers, corrupted, 20_000)
    honest = parts[corrupted:].sum(axis=0)
    values = np.arange(-6, 7)
    expected = len(honest) * np.append(noise.density(values), 1 - noise.density(values).sum())
    seen = [int((honest == v).sum()) for v in values]
    assert chisquare([*seen, len(honest) - sum(seen)], expected, sum_check=False).pvalue > 1e-6
    released = SharedNoise(noise, servers=servers, corrupted=corrupted)
    drawn = released._send([5, 6], Secure())
    assert drawn.dtype == np.int64 and released.total_variation(drawn) == 0.0


@pytest.mark.parametrize("mechanism", [AdditiveMechanism, SharedNoise])
def test_noise_that_no_secure_draw_covers_is_refused(mechanism):
    loud = mechanism(DiscreteLaplace(scale=1e13))
    with pytest.raises(fo.DeclarationError, match=r"scale is 1e\+13; a secure draw takes at most 1e\+12"):
        loud._send([5], Secure())
    simulated = loud.simulate([5], 1)
    assert simulated.simulated and simulated.total_variation == 0.0


def test_shared_noise_is_for_as_many_numbers_as_its_profile():
    shared = SharedNoise(Laplace(scale=1.0), norm="linf", dimension=2)
    assert shared.profile().epsilon(0.0) == pytest.approx(2.0)
    assert shared._send([1.0, 2.0], Simulated(1)).shape == (2,)
    with pytest.raises(DeclarationError, match="values has 3 numbers; dimension is 2"):
        shared._send([1.0, 2.0, 3.0], Simulated(1))


# -- samples of clients --------------------------------------------------------------------------------------


def test_a_sample_of_hospitals():
    """The servers sum over the clients of two of five hospitals; the noise costs less than over all."""
    frame = pd.DataFrame({"hospital": np.repeat(list("abcde"), [30, 40, 50, 40, 40])})
    rows = draw(ClusterSample(by="hospital", chosen=2), frame, seed=4).index
    x = np.eye(4)[np.arange(200) % 4]
    s = SecureSum(servers=2, dimension=4, epsilon=3.0, delta=1e-6, bits=12, step=1 / 16, whole=True).solve()
    epsilon = 0.02
    noise = 16 * shared_noise(DiscreteLaplace(scale=1 / epsilon), 2, 1, 4, seed=5)
    run = s.decision.run(dict(zip(rows.tolist(), x[rows], strict=True)), seed=6, server_noise=noise)
    assert set(run.accepted) <= set(rows.tolist())
    exact = x[run.accepted].sum(axis=0) * 16 + noise.sum(axis=0)
    assert np.array_equal(run.whole_total, exact)
    loss = cluster_sample(epsilon, [30, 40, 50, 40, 40], chosen=2)
    assert loss.exact < epsilon
