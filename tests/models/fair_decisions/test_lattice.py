"""Seats of rounded quotas under whole noise: the exact law against plain enumeration of the noise."""

from itertools import product

import numpy as np
import pytest

from forcopt.errors import DeclarationError
from forcopt.models import Apportionment, CoverageDecision, FormulaGrant
from forcopt.models.fair_decisions import CoverageRule, Nested, audit, rounded_seat_probabilities
from forcopt.privacy import AdditiveMechanism, DiscreteLaplace, Laplace, TabulatedNoise

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


def test_other_exact_laws_are_for_laplace_noise():
    noise = AdditiveMechanism(DiscreteLaplace(scale=2.0))
    for make in (
        lambda: FormulaGrant([1, 2], noise),
        lambda: CoverageDecision([[8, 2, 1]], mechanism=Nested(mechanism=noise)),
    ):
        with pytest.raises(DeclarationError, match="for Laplace noise"):
            make()
    for rule, truth, mechanism in (
        (CoverageRule(), [[8, 2, 1]], Nested(mechanism=noise)),
        (Apportionment([1, 2], 4), [1, 2], noise),
    ):
        with pytest.raises(DeclarationError, match="Give trials and a seed"):
            audit(rule, truth, mechanism)
        assert len(audit(rule, truth, mechanism, trials=3, seed=0)) == len(truth)
