"""Whole noise: every exact law against plain enumeration of the noise."""

from itertools import product

import numpy as np
import pytest

from forcopt.errors import DeclarationError
from forcopt.models import Apportionment, CoverageDecision, FormulaGrant
from forcopt.models.fair_decisions import (
    CoverageRule,
    Nested,
    audit,
    expected_shares,
    rounded_seat_probabilities,
    seat_probabilities,
)
from forcopt.models.fair_decisions.noise_laws import LatticeSum
from forcopt.privacy import AdditiveMechanism, DiscreteGaussian, DiscreteLaplace, Laplace, TabulatedNoise
from forcopt.status import Status

NOISES = [
    TabulatedNoise([0.1, 0.2, 0.4, 0.2, 0.1]),
    TabulatedNoise([0.05, 0.25, 0.3, 0.4], first=-2),
    TabulatedNoise([1.0]),
]


def outcomes(noise, k):
    """All values of k noises with their probabilities."""
    values, mass = noise.values, noise.probabilities
    for at in product(range(len(values)), repeat=k):
        yield np.array([values[i] for i in at]), float(np.prod([mass[i] for i in at]))


@pytest.mark.parametrize("noise", NOISES)
def test_shares_are_those_of_an_enumeration(noise):
    rng = np.random.default_rng(0)
    for _ in range(34):
        k = int(rng.integers(1, 4))
        x, w = rng.integers(0, 6, k).astype(float), rng.choice([0.5, 1.0, 3.7], k)
        shares = np.zeros(k)
        for n, mass in outcomes(noise, k):
            noisy = w * np.maximum(0, x + n)
            shares += mass * noisy / (noisy.sum() or 1.0)
        assert expected_shares(x, noise, w) == pytest.approx(shares, abs=1e-10)


@pytest.mark.parametrize("noise", NOISES)
def test_coverage_rates_are_those_of_an_enumeration(noise):
    """Counts near the thresholds, on which the margins are often exactly 0."""
    rng = np.random.default_rng(1)
    rule = CoverageRule(percent=0.25, absolute=12, literacy=0.5)
    deviation = np.sqrt(noise.variance / 2) or 1.0
    for _ in range(12):
        x = np.sort(rng.integers(0, 40 if rng.random() < 0.5 else 12, (3, 3)))[:, ::-1].astype(float)
        cuts = [np.sort(rng.choice([-np.inf, -1.0, 0.0, 0.7, 2.0], 2, replace=False)) for _ in range(2)]
        expected, covered = np.zeros((3, 2, 2)), np.zeros(3)
        for (a, b, c), mass in outcomes(noise, 3):
            noisy = x + np.array([a + b + c, a + b, a])
            covered += mass * rule.decide(noisy)
            margins = [m / deviation for m in rule.margins(noisy)]
            first, second = (margins[i][:, None] > cuts[i] for i in range(2))
            expected += mass * first[:, :, None] * second[:, None, :]
        assert rule.joint_rates(x, noise, *cuts) == pytest.approx(expected, abs=1e-12)
        assert rule.rates(x, noise) == pytest.approx(covered, abs=1e-12)


def test_sums_are_those_of_an_enumeration():
    rng = np.random.default_rng(3)
    for run in range(30):
        k, noise = int(rng.integers(1, 4)), NOISES[run % 2]
        w, v = rng.choice([0.5, 1.5, 2.0], k), float(rng.choice([-1.0, 0.0, 0.5, 2.0, 2.3]))
        for positive in (False, True):
            tail = sum(
                mass * (w @ (np.maximum(n, 0) if positive else n) > v) for n, mass in outcomes(noise, k)
            )
            law = LatticeSum(noise, w, positive=positive)
            assert law.tail(v) == pytest.approx(tail, abs=1e-12)
            quantile = law.quantile(0.2)
            assert law.tail(quantile) <= 0.2 < law.tail(quantile - law.unit) + 1e-9


@pytest.mark.parametrize("noise", [DiscreteLaplace(scale=4.0), DiscreteGaussian(scale=5.0)])
def test_grants_under_whole_noise_keep_their_promise(noise):
    """20,000 draws; six standard errors."""
    mechanism = AdditiveMechanism(noise)
    p = FormulaGrant([210, 480, 810, 90], mechanism, weights=[1.0, 2.0, 3.0, 2.0])
    s = p.solve()
    assert s.evaluation.feasible and s.objective < 1.3
    rule = s.decision
    noisy = p.eligible + noise.draw((20_000, 4), np.random.default_rng(0))
    left = noisy @ p.district_weights - rule.total_slack
    lost = (p.district_weights * (noisy + rule.slacks) < p.shares() * left[:, None] * (1 - 1e-12)).any(axis=1)
    assert lost.mean() <= s.evaluation.metrics["failure bound"] + 6 * np.sqrt(0.05 / 20_000)
    found = audit(p.solve("plain").decision, p.eligible, mechanism)
    sampled = audit(p.solve("plain").decision, p.eligible, mechanism, trials=4000, seed=1)
    assert (np.abs(found.expected - sampled.expected) <= 6 * sampled.standard_error).all()
    with pytest.raises(DeclarationError, match="for Laplace noise"):
        p.solve("no-penalty")
    clipped = p.evaluate(p.rule(rule.slacks, rule.total_slack, clipped=True))
    assert clipped.metrics["failure bound"] >= s.evaluation.metrics["failure bound"]
    assert p.replace(eligible=[1.0] * 4).solve().status is Status.INFEASIBLE


def test_deciders_and_audits_under_whole_noise():
    noise = Nested(mechanism=AdditiveMechanism(DiscreteLaplace(scale=2.0)))
    counts = [[800, 60, 5], [400, 21, 1], [3000, 100, 5], [400, 19, 2]]
    for holds_for in ("every", "given"):
        p = CoverageDecision(counts, mechanism=noise, holds_for=holds_for)
        for method in ("decision-table", "margins", "posterior"):
            s = p.solve(method)
            assert s.evaluation.feasible, (method, s.evaluation)
    found = audit(CoverageRule(), counts, noise)
    sampled = audit(CoverageRule(), counts, noise, trials=4000, seed=1)
    assert (np.abs(found.expected - sampled.expected) <= 6 * sampled.standard_error + 1e-3).all()


def test_whole_noise_needs_whole_counts():
    noise = AdditiveMechanism(DiscreteLaplace(scale=2.0))
    with pytest.raises(DeclarationError, match="eligible must be whole"):
        FormulaGrant([1.5, 2], noise)
    with pytest.raises(DeclarationError, match="counts must be whole"):
        CoverageDecision([[8.5, 2, 1]], mechanism=Nested(mechanism=noise))
    with pytest.raises(DeclarationError, match="for Laplace noise"):
        seat_probabilities(Apportionment([1, 2], 4), noise)
    with pytest.raises(DeclarationError, match="whole counts"):
        expected_shares([1.5], DiscreteLaplace(scale=1.0))
    with pytest.raises(DeclarationError, match="multiples of a common unit"):
        FormulaGrant([1, 2], noise, weights=[0.1, 0.30000001])


@pytest.mark.parametrize("noise", NOISES)
def test_rounded_quotas_are_those_of_an_enumeration(noise):
    """Small populations, whose quotas often are half a seat, and states without people."""
    rng = np.random.default_rng(3)
    for _ in range(34):
        k, seats = int(rng.integers(1, 5)), int(rng.integers(1, 9))
        x = rng.integers(0, 9, k).astype(float)
        x[0] += not x.any()
        p = Apportionment(x, seats, minimum=int(rng.integers(0, 2)), criterion="webster")
        expected = np.zeros((k, seats + 1))
        for n, mass in outcomes(noise, k):
            noisy = np.maximum(0, x + n)
            found = np.full(k, int(p.minimum))
            if noisy.any():
                found = p.replace(populations=noisy).solve("as-printed").decision.seats
            expected[np.arange(k), found] += mass
        law = rounded_seat_probabilities(p, AdditiveMechanism(noise))
        assert law == pytest.approx(expected, abs=1e-12)


def test_refusals_of_rounded_quotas():
    whole = AdditiveMechanism(DiscreteLaplace(scale=2.0))
    for fields, mechanism, words in (
        ({"populations": [1.5, 2]}, whole, "must be whole"),
        ({"minimum": 5}, whole, "minimum is 5"),
        ({}, AdditiveMechanism(Laplace(scale=2.0)), "whole noise"),
        ({}, AdditiveMechanism(DiscreteLaplace(scale=1e5)), "at most 4194304"),
    ):
        p = Apportionment(**{"populations": [3, 4], "seats": 4, **fields})
        with pytest.raises(DeclarationError, match=words):
            rounded_seat_probabilities(p, mechanism)
