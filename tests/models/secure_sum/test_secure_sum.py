"""The protocol, its design, its privacy and its faults."""

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr
from scipy.stats import chi2, norm

import forcopt as fo
from forcopt.errors import DeclarationError
from forcopt.models import SecureSum
from forcopt.models.secure_sum import (
    Attack,
    CancellingShares,
    DropShare,
    DuplicateShare,
    ReplaceShare,
    Shares,
    SumProtocol,
    even_shares,
    talwar_shares,
)
from forcopt.models.secure_sum.accounting import gaussian_delta, gaussian_loss, joint_delta, printed_sigma
from forcopt.models.secure_sum.search import LIKELY, Search


def declared(**fields):
    return SecureSum(**{"servers": 2, "dimension": 1000, "epsilon": 1.0, "delta": 1e-6, **fields})


def small(**fields):
    """Whole vectors in many dimensions, with a large epsilon, so that little noise is needed."""
    return declared(**{"dimension": 6, "epsilon": 8.0, "bits": 12, "step": 0.125, **fields})


# -- design ------------------------------------------------------------------------------------------------


def brute_force(p, most):
    """The least gap of every step (rows) and of 1 to `most` projections (columns), by the formulas alone.

    Shares with the most noise that fits, by bisection of normal tails; check noise by bisection of delta,
    with Simpson's rule in ln Q; threshold and gap by chi-square quantiles. Even shares.
    """
    k, s, t = np.arange(1, most + 1), p.servers, p.coalition
    ends = np.log(chi2.ppf(1e-14, k)), np.log(chi2.isf(1e-22, k))
    q = np.exp(np.linspace(0, 1, 401)[:, None] * (ends[1] - ends[0]) + ends[0])
    weights = np.ones(401)
    weights[1:-1:2], weights[2:-1:2] = 4, 2
    weights = weights[:, None] * chi2.pdf(q, k) * q * (ends[1] - ends[0]) / 1200
    gaps = []
    for step in [2.0 ** (-j / 8) for j in range(8 * 52)] if p.step is None else [p.step]:
        n, mean = 1 + step * math.sqrt(p.dimension) / 2, step * math.floor(1 / step + 0.5) / s
        room = [(2 ** (p.bits - 1) - carried) * step for carried in ((s - 1) / 2, 0.5)]
        if min(room) <= mean:
            continue
        low, high = 0.0, max(room)
        for _ in range(60):
            sd = (low + high) / 2
            over = max(norm.sf((r - mean) / sd) + norm.sf((r + mean) / sd) for r in room) - p.overflow
            low, high = (sd, high) if over <= 0 else (low, sd)
        if t < s - 1 and low < step:
            continue
        share = t * (s - 1) / (s**2 * (s - t) * low**2) * n**2

        def delta(log_square, n=n, share=share):
            mu = np.sqrt(share + n**2 * q / k / ((s - t) * np.exp(log_square)))
            beyond = np.exp(p.epsilon + log_ndtr(-mu / 2 - p.epsilon / mu))
            return (weights * (ndtr(mu / 2 - p.epsilon / mu) - beyond)).sum(axis=0)

        low, high = np.full(most, -10.0), np.full(most, 32.0)
        if (delta(high) > p.delta).all():
            continue
        for _ in range(34):
            middle = (low + high) / 2
            enough = delta(middle) <= p.delta
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        noise = k * s * np.exp(high)
        ratio = chi2.isf(p.completeness, k) / chi2.ppf(p.soundness, k)
        gaps.append(np.sqrt(n**2 * ratio + noise * (ratio - 1)))
    return np.array(gaps)


@pytest.mark.parametrize(
    "fields",
    [
        {
            "dimension": 400,
            "epsilon": 3.0,
            "delta": 1e-3,
            "completeness": 0.02,
            "soundness": 0.05,
            "bits": 10,
        },
        {"servers": 3, "dimension": 2000, "corrupted": 1, "bits": 14, "epsilon": 2.0, "soundness": 0.01},
    ],
)
def test_the_search_equals_brute_force_over_all_steps_and_projections(fields):
    """Also with caps on the traffic between servers, down to one projection."""
    p = declared(**fields)
    s = p.solve()
    brute = brute_force(p, 2 * s.decision.projections)
    for most in (brute.shape[1], 7, 2, 1):
        capped = p.replace(server_reals=(p.servers - 1) * most)
        best = float(brute[:, :most].min())
        s = capped.solve()
        assert s.status is fo.Status.OPTIMAL and not s.evaluation.violations
        assert s.objective == pytest.approx(best, rel=1e-7)
    assert p.solve().objective == pytest.approx(float(brute.min()), rel=1e-7)


@given(
    servers=st.integers(2, 4),
    epsilon=st.floats(0.3, 6),
    delta=st.sampled_from([1e-8, 1e-6, 1e-3]),
    completeness=st.sampled_from([1e-6, 1e-3, 0.1]),
    soundness=st.sampled_from([1e-6, 1e-3, 0.1]),
    bits=st.integers(14, 30),
    dimension=st.integers(1, 3000),
    data=st.data(),
)
@settings(max_examples=4, deadline=None)
def test_no_method_beats_the_exact_one(
    servers, epsilon, delta, completeness, soundness, bits, dimension, data
):
    p = SecureSum(
        servers=servers,
        dimension=dimension,
        epsilon=epsilon,
        delta=delta,
        corrupted=data.draw(st.integers(1, servers - 1)),
        completeness=completeness,
        soundness=soundness,
        bits=bits,
    )
    exact = p.solve()
    if exact.status is fo.Status.INFEASIBLE:
        assert "bits" in exact.message
        return
    assert exact.status is fo.Status.OPTIMAL
    assert not exact.evaluation.violations
    assert exact.evaluation.metrics["epsilon"] == pytest.approx(epsilon, rel=1e-6)
    for method in ("talwar", "exact-tails", "split", "no-projection"):
        s = p.solve(method)
        if s.decision is None:
            assert s.status is fo.Status.FAILED
            continue
        assert s.objective >= exact.objective * (1 - 1e-9), method
        assert set(s.evaluation.violations) <= ({"privacy"} if epsilon > 2 else set()), method
        if method in ("talwar", "exact-tails"):
            assert s.objective <= (s.guarantee + 1) * (1 + 1e-9)


def test_the_bounds_that_end_the_search_hold():
    p = declared(dimension=500, bits=14)
    search = Search(p)
    candidate = min(search.candidates, key=lambda c: search.bound(c, 64).min())
    gaps = {k: search.protocol(candidate, k)[1] for k in (1, 2, 5, 20, 60, 200, 400)}
    bound = search.bound(candidate, 400)
    assert all(bound[k - 1] <= gap for k, gap in gaps.items())
    assert search.beyond(candidate, 59) <= gaps[60]
    assert search.beyond(candidate, 199) <= min(gaps[200], gaps[400])
    k = np.arange(1, 3000)
    for likely in LIKELY:
        assert (np.diff(chi2.isf(likely, k) / k) > 0).all()
    spread = chi2.isf(1e-3, k) - chi2.isf(1 - 1e-2, k)
    assert (np.diff(spread) > 0).all()


@pytest.mark.parametrize("delta", [0.3, 0.6, 0.95])
def test_the_search_ends_for_a_large_delta(delta):
    p = declared(delta=delta, bits=16)
    s = p.solve(time_limit=20)
    assert s.status is fo.Status.OPTIMAL


def test_the_search_ends_where_shares_take_nearly_the_whole_budget():
    p = SecureSum(
        servers=3,
        dimension=2000,
        epsilon=0.575281609917999,
        delta=0.1,
        corrupted=1,
        completeness=1e-9,
        soundness=0.45,
        bits=10,
        overflow=1e-12,
        sharing="talwar",
    )
    s = p.solve(time_limit=20)
    assert s.status is fo.Status.OPTIMAL
    assert s.objective == pytest.approx(53.4324514, rel=1e-8)  # by a quadrature and a grid of their own


def test_a_number_of_a_share_overflows_as_declared():
    """The number that is most likely to overflow belongs to a vector along one axis."""
    p = declared(dimension=1, epsilon=3.0, bits=6, overflow=0.05)
    d = p.solve().decision
    whole = np.full((40_000, 1), round(1 / d.step))
    shares = d.share(whole, np.random.default_rng(0))
    refused = (np.abs(shares) >= 2**5).mean(axis=(1, 2))
    assert refused == pytest.approx([0.05, 0.05], abs=4 * math.sqrt(0.05 / 40_000))
    assert p.evaluate(d).metrics["overflow"] == pytest.approx(0.05, rel=1e-6)
    assert p.evaluate(d).metrics["refused_honest"] == pytest.approx(0.1, rel=1e-6)


def test_noise_of_less_than_a_step_is_no_gaussian_noise_for_several_honest_servers():
    """The sum of two rounded shares loses more than the sum of two real ones."""
    shares = even_shares(3, 1)
    deviation = 0.3  # steps
    shares = Shares(shares.split, shares.covariance * deviation**2 / shares.variance)
    protocol = SumProtocol(2, 10.0, 5.0, shares, 1.0, 3)
    many = 400_000
    rng = np.random.default_rng(0)
    seen = [protocol.share(np.full((many, 1), x), rng)[0, :, 0] for x in (0, 1)]
    epsilon = 0.5
    claimed = float(gaussian_delta(epsilon, shares.loss([0])))
    counts = np.stack([np.bincount(s + 10, minlength=21) for s in seen]) / many
    true = np.maximum(counts[1] - math.exp(epsilon) * counts[0], 0).sum()
    assert true > claimed + 10 / math.sqrt(many)
    p = SecureSum(servers=3, dimension=1, epsilon=20.0, delta=0.1, corrupted=1, bits=3, step=1.0, whole=True)
    assert "rounding" in p.evaluate(protocol).violations
    assert p.solve().status is fo.Status.INFEASIBLE
    assert "rounding" not in p.replace(corrupted=2).evaluate(protocol).violations


def test_caps_on_traffic():
    p = declared(dimension=100, server_reals=30, bits=17)
    s = p.solve()
    assert s.decision.projections == 30
    assert s.decision.bits == 17
    assert s.evaluation.metrics["server_reals"] == 30
    assert s.evaluation.metrics["client_bits"] == 3400
    assert p.solve("no-projection").status is fo.Status.FAILED
    free = declared(dimension=100, bits=17).solve()
    assert set(p.evaluate(free.decision).violations) == {"projections"}


def test_violations_are_named():
    p = declared(dimension=500, bits=14)
    d = p.solve().decision

    def violations(**changes):
        fields = {n: getattr(d, n) for n in d.__dataclass_fields__} | changes
        return set(p.evaluate(SumProtocol(**fields)).violations)

    assert violations() == set()
    assert violations(check_noise=d.check_noise * 0.9) == {"privacy"}
    assert violations(threshold=d.threshold * 0.9) == {"completeness"}
    assert violations(shares=Shares(d.shares.split, d.shares.covariance * 1.1)) == {"overflow"}
    assert violations(bits=15) == {"bits"}
    assert "privacy" in violations(shares=Shares(d.shares.split, d.shares.covariance * 1e-3))


def test_the_threshold_is_that_of_the_best_acceptance_rule():
    """A linear program over all acceptance rules on a grid of norms finds no better one (Neyman, Pearson)."""
    p = declared(dimension=500, bits=14)
    s = p.solve()
    d, rho = s.decision, s.objective
    k, noise = d.projections, 2 * d.check_noise**2
    # Cells of equal width in the squared norm, one edge at the threshold.
    edges = d.threshold**2 * np.concatenate([np.arange(301) / 200, [100.0]])

    def cells(r):
        return np.diff(chi2.cdf(edges / (r**2 / k + noise), k))

    m = fo.Model()
    accept = m.variable("accept", len(edges) - 1, lower=0, upper=1)
    m.subject_to((cells(p.honest_norm(d.step)) * accept).sum() >= 1 - p.completeness)
    m.minimize((cells(rho) * accept).sum())
    assert m.solve().objective == pytest.approx(p.soundness, rel=1e-4)


def test_time_limit():
    assert declared().solve(time_limit=0.0).status in (fo.Status.LIMIT, fo.Status.FEASIBLE)


def test_few_bits_are_infeasible():
    p = declared(bits=8)
    assert p.solve().status is fo.Status.INFEASIBLE
    assert "8 bits" in p.solve().message


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"servers": 1}, "servers"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"delta": 0.0}, "delta"),
        ({"completeness": 0.0}, "completeness"),
        ({"soundness": 1.0}, "soundness"),
        ({"corrupted": 2}, "corrupted"),
        ({"corrupted": 0}, "corrupted"),
        ({"bits": 1}, "bits"),
        ({"bits": 64}, "bits"),
        ({"step": -1.0}, "step"),
        ({"whole": True}, "whole"),
        ({"dimension": 0}, "dimension"),
        ({"servers": 4, "server_reals": 2}, "server_reals"),
    ],
)
def test_bad_declarations(fields, word):
    with pytest.raises(DeclarationError, match=word):
        declared(**fields)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("projections", 0),
        ("projections", 1.5),
        ("threshold", 0.0),
        ("threshold", math.nan),
        ("check_noise", -1.0),
        ("step", 0.0),
        ("bits", 50),
    ],
)
def test_bad_protocols(field, value):
    good = {"projections": 3, "threshold": 1.0, "check_noise": 1.0, "step": 1.0, "bits": 8}
    with pytest.raises(DeclarationError, match=field):
        SumProtocol(**{**good, field: value}, shares=even_shares(2, 1))


@pytest.mark.parametrize("projections", [None, 1, 50])
@pytest.mark.parametrize("noise", [0.0, 1e-200, 1e-9, 1.0, 1e12])
@pytest.mark.parametrize("threshold", [1e-6, 2.0, 1e9])
def test_protocols_far_from_any_use_are_evaluated(projections, noise, threshold):
    """No exception and no NaN; without noise nothing is private, and the norm itself is checked."""
    p = declared(dimension=5, bits=20)
    protocol = SumProtocol(projections, threshold, noise, even_shares(2, 1, 0.01), 2.0**-8, 20)
    e = p.evaluate(protocol)
    numbers = [e.objective, *e.violations.values(), *e.metrics.values()]
    assert not np.isnan(numbers).any()
    assert ("privacy" in e.violations) == (noise < 1e12)
    if projections is None and noise < 1.0:
        assert e.objective == pytest.approx(threshold, rel=1e-2)
        assert e.metrics["rejected_honest"] == float(threshold < 1)


@pytest.mark.parametrize(
    ("split", "covariance"),
    [
        ([1 / 3] * 3, 100 * np.eye(3)),  # the noises do not cancel: another law than that of a run
        ([0.5, 0.5, 0.5], 100 * (np.eye(3) - 1 / 3)),
        ([1 / 3] * 3, -(np.eye(3) - 1 / 3)),
    ],
)
def test_shares_that_do_not_sum_to_the_vector_make_no_protocol(split, covariance):
    with pytest.raises(DeclarationError, match="shares"):
        SumProtocol(3, 1.0, 1.0, Shares(np.array(split), covariance), 1.0, 8)


# -- privacy -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sharing", ["even", "talwar"])
@pytest.mark.parametrize(("servers", "corrupted"), [(2, 1), (3, 2), (3, 1), (4, 2)])
def test_the_joint_loss_is_that_of_explicit_views(sharing, servers, corrupted):
    """Of every coalition, from the covariance of all that it sees, for several projections and vectors."""
    rng = np.random.default_rng(servers)
    d, k, noise = 4, 3, 1.7
    shares = talwar_shares(servers, 2.3) if sharing == "talwar" else even_shares(servers, corrupted, 0.4)
    protocol = SumProtocol(k, 5.0, noise, shares, 0.01, 20)
    for _ in range(3):
        w = rng.standard_normal((k, d)) / math.sqrt(k)
        x = rng.standard_normal(d)
        for members in combinations(range(servers), corrupted):
            view = protocol.view(members, w)
            h = servers - corrupted
            check = (w @ x) @ (w @ x) / (h * noise**2)
            expected = math.sqrt(shares.loss(members) ** 2 * (x @ x) + check)
            assert view.loss(x) == pytest.approx(expected, rel=1e-10)
            with_zero = math.sqrt(shares.loss(range(corrupted)) ** 2 * (x @ x) + check)
            assert view.loss(x) <= with_zero * (1 + 1e-10)
            assert gaussian_delta(1.0, view.loss(x)) == pytest.approx(
                gaussian_delta(1.0, expected), abs=1e-10
            )
            simulated = protocol.simulate_view(members, w)
            assert np.array_equal(simulated.covariance, view.covariance)
            assert simulated.loss(x) == 0
    assert protocol.view((), w).loss(x) == 0
    with pytest.raises(DeclarationError, match="all servers"):
        protocol.view(range(servers), w)


def test_views_have_the_law_of_runs():
    shares = talwar_shares(2, 3.0)
    protocol = SumProtocol(1, 5.0, 1.0, shares, 0.001, 30)
    x, w = np.array([0.6, 0.8]), np.array([[0.5, -1.0]])
    drawn = protocol.view([0], w).draw(x, 20_000, seed=1)
    parts = protocol.share(np.tile(np.rint(x / 0.001), (20_000, 1)), np.random.default_rng(2)) * 0.001
    seen = np.column_stack([parts[0], parts[1] @ w.T + np.random.default_rng(3).normal(size=(20_000, 1))])
    assert np.abs(np.cov(drawn.T) - np.cov(seen.T)).max() < 5 * 15 / math.sqrt(20_000)
    assert np.abs(drawn.mean(axis=0) - seen.mean(axis=0)).max() < 5 * 5 / math.sqrt(20_000)


@given(epsilon=st.floats(0.05, 5), share=st.floats(0, 1), check=st.floats(1e-3, 1), k=st.integers(1, 60))
@settings(max_examples=40, deadline=None)
def test_the_integral(epsilon, share, check, k):
    def density_times_delta(q):
        return float(gaussian_delta(epsilon, math.sqrt(share + check * q / k))) * chi2.pdf(q, k)

    ends = [0.0, 0.01, k / 3, k, 2 * k, 4 * k + 40, 8 * k + 300]
    pieces = pairwise(ends)
    expected = sum(quad(density_times_delta, a, b, limit=300, epsabs=1e-15)[0] for a, b in pieces)
    assert float(joint_delta(epsilon, k, share, check)) == pytest.approx(expected, rel=1e-6, abs=1e-13)


def test_many_projections_tend_to_the_gaussian_mechanism():
    mu = gaussian_loss(1.0, 1e-6)
    assert float(joint_delta(1.0, 200_000, 0.0, mu**2)) == pytest.approx(1e-6, rel=1e-3)
    assert float(gaussian_delta(0.0, 0.5)) == pytest.approx(2 * norm.cdf(0.25) - 1, rel=1e-12)


@given(st.floats(0.1, 1.0), st.sampled_from([1e-2, 1e-4, 1e-6]), st.floats(1.01, 2))
@settings(max_examples=20, deadline=None)
def test_delta_falls_with_noise_and_epsilon(epsilon, delta, factor):
    mu = gaussian_loss(epsilon, delta)
    assert gaussian_delta(epsilon, mu / factor) < delta < gaussian_delta(epsilon / factor, mu)
    assert 1 / mu <= printed_sigma(epsilon, delta)


# -- runs --------------------------------------------------------------------------------------------------


def steps_of(p, vectors):
    return np.rint(np.asarray(vectors) / p.solve().decision.step).astype(np.int64)


@given(st.integers(2, 5), st.integers(0, 2**32 - 1), st.sampled_from(["even", "talwar"]))
@settings(max_examples=8, deadline=None)
def test_sums_are_exact_under_any_faults(servers, seed, sharing):
    p = small(servers=servers, sharing=sharing, bits=16)
    protocol = p.solve().decision
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((40, 6))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    whole = np.rint(vectors / protocol.step).astype(np.int64)
    faults = [DropShare(3, int(rng.integers(servers))), DuplicateShare(5, 0)]
    faults += [Attack(7, 1e6), Attack(8, 1e300), CancellingShares(9, 1e18)]
    odd = np.full(6, 0.5), np.full(6, np.nan), np.full(6, np.inf), np.zeros(5), np.full(6, 1e9)
    faults += [ReplaceShare(10 + i, 1, share) for i, share in enumerate(odd)]
    run = protocol.run(vectors, faults, seed=seed)
    assert not set(run.accepted) & {3, 5, 7, 8, 9, 10, 11, 12, 13, 14}
    assert len(run.accepted) + len(run.rejected) == 40
    assert np.array_equal(run.whole_total, whole[run.accepted].sum(axis=0))
    assert np.array_equal(run.total, run.whole_total * protocol.step)
    for client, word in {
        3: "no share",
        5: "2 shares",
        8: "range",
        9: "range",
        10: "not whole",
        11: "not finite",
        12: "not finite",
        13: "shape",
        14: "range",
    }.items():
        assert word in run.rejected[client], (client, run.rejected[client])
    assert run.simulated
    assert "simulated" in repr(run)


def test_dropping_a_share_removes_that_client_exactly():
    protocol = small().solve().decision
    vectors = np.eye(6)
    all_, without = (protocol.run(vectors, f, seed=3) for f in ([], [DropShare(2, 1)]))
    assert all_.accepted == list(range(6))
    assert np.array_equal(all_.total - without.total, vectors[2])


def test_huge_cancelling_shares():
    """Shares of opposite sign and size 1e18 pass a check in floats with norm 0, and spoil the sum."""
    rng = np.random.default_rng(0)
    d, n = 50, 100
    x = rng.standard_normal((n, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    noise = 20 * rng.standard_normal((n, d))
    shares = np.stack([x - noise, noise])
    shares[0, 50], shares[1, 50] = 1e18, -1e18
    assert np.linalg.norm(shares[0, 50] + shares[1, 50]) == 0  # the check of this client sees nothing
    orders = shares[0], rng.permutation(shares[1])  # each server adds in an order of its own
    moved = sum(np.add.accumulate(s, axis=0)[-1] for s in orders) - np.delete(x, 50, axis=0).sum(axis=0)
    assert np.linalg.norm(moved) > 2 * 71.9
    protocol = declared(dimension=d, bits=16).solve().decision
    run = protocol.run(x, [CancellingShares(50, 1e18)], seed=1)
    assert "range" in run.rejected[50]
    assert np.linalg.norm(run.total - x[run.accepted].sum(axis=0)) < n * protocol.step * math.sqrt(d) / 2


@pytest.mark.parametrize("projected", [True, False])
def test_acceptance_frequencies_and_rotations(projected):
    p = declared(dimension=300, epsilon=6.0, bits=16)
    s = p.solve() if projected else p.solve("no-projection")
    d = s.decision
    assert (d.projections is not None) == projected
    rng = np.random.default_rng(5)
    many = 900
    for r in (0.0, 1.0, s.objective / 3, s.objective / 2, s.objective):
        directions = rng.standard_normal((2, 300))
        for direction in (np.eye(300)[0], *directions):
            vectors = np.tile(r * direction / np.linalg.norm(direction), (many, 1))
            # One projection serves a whole run: runs of few clients, each with another one.
            passed = sum(len(d.run(part, seed=rng).accepted) for part in np.array_split(vectors, many // 3))
            rounded = np.linalg.norm(np.rint(vectors[0] / d.step) * d.step)
            expected = p.acceptance(d, rounded)
            # Three clients of a run share a projection: their acceptances are correlated at most fully.
            error = 4 * math.sqrt(3 * expected * (1 - expected) / many) + 4 / many
            assert abs(passed / many - expected) <= error, (r, passed / many, expected)


def test_the_sum_of_all_clients_fails_more_often_than_that_of_one():
    """The paper's sum over n clients is whole with probability 1 - n beta, not 1 - beta."""
    n, beta, runs = 20, 0.02, 800
    d = declared(dimension=8, epsilon=8.0, completeness=beta, bits=16).solve("enumeration").decision
    vectors = np.eye(8)[np.arange(n) % 8]
    rng = np.random.default_rng(2)
    whole = sum(len(d.run(vectors, seed=rng).accepted) == n for _ in range(runs)) / runs
    error = 4 * math.sqrt(0.25 / runs)
    assert 1 - n * beta - error <= whole < 1 - beta - error


def test_named_aborts():
    wide = declared(dimension=1, bits=48).solve().decision
    run = wide.run(np.ones((70_000, 1)), seed=1)
    assert "overflow" in run.aborted


def test_what_is_said_and_not_hidden():
    protocol = small().solve().decision
    x = np.eye(6)
    long = protocol.run(1.5 * x, seed=1)
    assert "norm above 1" in long.warnings[0]
    assert np.array_equal(long.total, 1.5 * x[long.accepted].sum(axis=0))
    assert not protocol.run(x).simulated
    nobody = protocol.run(np.zeros((0, 6)), seed=1)
    assert np.array_equal(nobody.total, np.zeros(6))
    assert "empty" in nobody.warnings[0]
    empty = protocol.run({}, seed=1)
    assert empty.accepted == []
    assert "empty" in empty.warnings[0]


def test_names_batches_and_seeds():
    protocol = small().solve().decision
    x = np.eye(6)
    named = protocol.run(dict(zip("abcdef", x, strict=True)), [DropShare("c", 0)], seed=1)
    assert named.accepted == list("abdef")
    one, two = (protocol.run(x, seed=9) for _ in range(2))
    assert np.array_equal(one.total, two.total)
    parts = protocol.run(iter([x[:2], x[2:]]), seed=1)
    assert np.array_equal(parts.total, np.ones(6))
    assert parts.messages["clients"] == 6 * 2 * 6 * 12
    with pytest.raises(DeclarationError, match="not finite"):
        protocol.run([[1.0, np.nan]], seed=1)
    with pytest.raises(DeclarationError, match="shape"):
        protocol.run([1.0, 2.0], seed=1)
    with pytest.raises(DeclarationError, match="server"):
        protocol.run(x, [DropShare(0, 2)], seed=1)
    with pytest.raises(DeclarationError, match="no client 6"):
        protocol.run(x, [DropShare(6, 1)], seed=1)
    assert np.array_equal(protocol.run(iter([[], x]), seed=1).total, np.ones(6))


@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_shares_sum_to_the_vector_and_have_their_covariance(servers, seed):
    rng = np.random.default_rng(seed)
    for shares in (even_shares(servers, servers - 1, 0.05), talwar_shares(servers, 20.0)):
        protocol = SumProtocol(5, 1.0, 1.0, shares, 1.0, 30)
        x = rng.integers(-3, 4, size=(2000, 3))
        parts = protocol.share(x, rng)
        assert np.array_equal(parts.sum(axis=0), x)
        noise = (parts - shares.split[:, None, None] * x).reshape(servers, -1)
        error = 6 * shares.variance / math.sqrt(noise.shape[1]) + 1
        assert np.abs(np.cov(noise) - shares.covariance).max() < error


# -- shares ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("servers", "size"), [(s, t) for s in range(2, 7) for t in range(1, s)])
def test_even_shares_are_optimal(servers, size):
    """Against a semidefinite program over all splits and covariances."""
    even = even_shares(servers, size, 0.7)
    formula = size * (servers - 1) / (servers**2 * (servers - size) * 0.49)
    assert even.variance == pytest.approx(formula, rel=1e-12)
    m = fo.Model()
    split, largest = m.variable("split", servers), m.variable("largest", lower=0)
    covariance = fo.symmetric(m.variable("covariance", servers * (servers + 1) // 2))
    m.subject_to(covariance.sum(axis=1) == 0, split.sum() == 1)
    m.subject_to(*(covariance[i, i] <= largest for i in range(servers)))
    for members in combinations(range(servers), size):
        at = list(members)
        column = split[at].reshape(size, 1)
        own = covariance[np.ix_(at, at)]
        m.subject_to(fo.semidefinite(fo.block([[own, column], [column.T, np.full((1, 1), 0.49)]])))
    m.minimize(largest)
    assert m.solve("clarabel").objective == pytest.approx(formula, rel=1e-4)
    unit = talwar_shares(servers, 1.0)
    worst = max(unit.loss(c) for c in combinations(range(servers), size))
    plain = talwar_shares(servers, worst / 0.7)
    assert plain.variance == pytest.approx((servers - 1) / ((servers - size) * 0.49), rel=1e-9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda p: even_shares(3, 2, 0.0), "loss is 0"),
        (lambda p: even_shares(3, 2, -1.0), "loss is -1"),
        (lambda p: even_shares(3, 2, math.nan), "loss is nan"),
        (lambda p: even_shares(3, 1.5), "whole number"),
        (lambda p: talwar_shares(3, 0.0), "scale is 0"),
        (lambda p: talwar_shares(3, -2.0), "scale is -2"),
        (lambda p: p.acceptance(p.solve().decision, -1.0), "norm is -1"),
        (lambda p: p.acceptance(p.solve().decision, math.nan), "norm is nan"),
        (lambda p: p.solve().decision.run(np.eye(6), ["lost"]), "'lost' is no fault"),
        (lambda p: p.solve().decision.view([0], [[math.nan] * 6]), "projection"),
        (lambda p: p.solve().decision.view([0], np.ones((2, 6))).loss([1.0]), "vector: the shape"),
    ],
)
def test_bad_input_of_functions(call, words):
    with pytest.raises(DeclarationError, match=words):
        call(small())


def test_shares_that_are_no_arrays_are_refused():
    protocol = small().solve().decision
    odd = [[1.0], [1.0, 2.0]], "abc", None, [1j] * 6, [2**70] * 6, [True] * 6
    faults = [ReplaceShare(i, 1, share) for i, share in enumerate(odd)] + [Attack(6, math.inf)]
    run = protocol.run(np.tile(np.eye(6), (2, 1)), faults, seed=1)
    assert sorted(run.rejected) == list(range(7))
    assert "no array" in run.rejected[0]
    assert np.array_equal(run.total, np.tile(np.eye(6), (2, 1))[run.accepted].sum(axis=0))


@pytest.mark.parametrize("step", [1e-300, 1e-30])
def test_a_step_that_no_bits_reach_is_infeasible_and_no_error(step):
    s = SecureSum(servers=2, dimension=100, epsilon=1.0, delta=1e-6, bits=16, step=step).solve()
    assert s.status == "infeasible" and s.reason and "least relaxation" not in s.reason
