"""The rules of bids: feasibility, symmetry, stability, guarantees, payments, bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from fair_auctions_oracle import quadrature
from hypothesis import given, settings
from hypothesis import strategies as st

from forcopt.errors import DeclarationError
from forcopt.models.fair_auctions import (
    best_welfare,
    highest_bid,
    inverse_proportional,
    inverse_proportional_guarantee,
    payments,
    proportional,
    proportional_guarantee,
    uniform,
)
from forcopt.models.fair_auctions.notions import PowerStability, value_ratios

RULES = {
    "inverse-proportional": inverse_proportional,
    "proportional": proportional,
    "highest-bid": lambda u, k, ell: highest_bid(u, k),
    "uniform": lambda u, k, ell: uniform(u, k),
}


@st.composite
def auctions(draw, most=6):
    """Values with zeros and ties, or far apart; any number of slots from 0 to n; ell of at least 1."""
    n = draw(st.integers(1, most))
    k = draw(st.integers(0, n))
    entry = draw(
        st.sampled_from(
            [st.integers(0, 3).map(float), st.floats(0.01, 100.0), st.sampled_from([0.0, 1e-200, 1.0, 1e200])]
        )
    )
    u = np.array(draw(st.lists(st.lists(entry, min_size=n, max_size=n), min_size=1, max_size=4)))
    return u, k, draw(st.sampled_from([1.0, 1.5, 2.0, 7.0]))


def by_bisection(u, h, ell, inverse):
    """Water-filling for one user by bisection on the logarithm of the level: no sorting, no formula."""
    positive = u > 0
    if positive.sum() <= h:
        rest = (h - positive.sum()) / max(1, (~positive).sum())
        return np.where(positive, 1.0, rest)
    sign, total = (-1, positive.sum() - h) if inverse else (1, h)
    logs = np.where(positive, sign * ell * np.log(np.where(positive, u, 1.0)), -np.inf)
    low, high = -logs[positive].max() - 50, -logs[positive].min() + 50

    def filled(level):
        return np.where(positive, np.exp(np.minimum(0.0, level + logs)), 0.0)

    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if filled(middle).sum() < total else (low, middle)
    return np.where(positive, 1.0 - filled(high), 0.0) if inverse else filled(high)


@settings(max_examples=200, deadline=None)
@given(auctions())
def test_rules_are_the_water_filling_of_their_definition(case):
    u, k, ell = case
    for rule, inverse in ((inverse_proportional, True), (proportional, False)):
        A = np.cumsum(rule(u, k, ell), axis=2)
        for t in range(len(u)):
            for h in range(1, k + 1):
                np.testing.assert_allclose(A[t, :, h - 1], by_bisection(u[t], h, ell, inverse), atol=1e-8)


@settings(max_examples=150, deadline=None)
@given(auctions())
def test_rules_fill_slots_and_ignore_order_and_scale(case):
    u, k, ell = case
    n = u.shape[1]
    for rule in RULES.values():
        M = rule(u, k, ell)
        assert M.shape == (*u.shape, k)
        assert (M >= -1e-12).all() and (M.sum(axis=2) <= 1 + 1e-9).all()
        np.testing.assert_allclose(M.sum(axis=1), 1.0, atol=1e-9)
        np.testing.assert_allclose(rule(u * 4.0, k, ell), M, atol=1e-9)
        np.testing.assert_allclose(rule(u[:, ::-1], k, ell), M[:, ::-1], atol=1e-9)
        np.testing.assert_allclose(rule(u, n, ell)[:, :, :k], M, atol=1e-12)  # blind to further slots


@settings(max_examples=100, deadline=None)
@given(auctions(), st.integers(0, 5), st.floats(1.0, 10.0))
def test_shares_rise_with_the_own_value_and_fall_with_others(case, i, factor):
    u, k, ell = case
    i %= u.shape[1]
    raised = u.copy()
    raised[:, i] *= factor
    for rule in RULES.values():
        gain = np.cumsum(rule(raised, k, ell), axis=2) - np.cumsum(rule(u, k, ell), axis=2)
        assert (gain[:, i] >= -1e-9).all()
        assert (np.delete(gain, i, axis=1) <= 1e-9).all()


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 7), st.data())
def test_the_rules_are_dual(n, data):
    u = np.array(data.draw(st.lists(st.floats(0.01, 100.0), min_size=n, max_size=n)))
    k, ell = data.draw(st.integers(0, n)), data.draw(st.sampled_from([1.0, 1.5, 3.0]))
    ipa = inverse_proportional(u, k, ell)[0].sum(axis=1)
    pa = proportional(1 / u, n - k, ell)[0].sum(axis=1)
    np.testing.assert_allclose(ipa, 1 - pa, atol=1e-9)


@pytest.mark.parametrize("ell", [1.0, 2.0])
def test_theorems_9_11_and_23_on_random_pairs(ell):
    rng = np.random.default_rng(1)
    f = PowerStability(ell=ell)
    for _ in range(100):
        n = int(rng.integers(2, 8))
        k = int(rng.integers(1, n + 1))
        u = rng.lognormal(size=(200, n))
        lam = 1 + rng.exponential(0.5, size=(200, 1))
        other = u * lam ** rng.choice([-1.0, 1.0, 0.0], size=u.shape)
        for rule in (inverse_proportional, proportional):
            gap = rule(u, k, ell) - rule(other, k, ell)
            allowed = f(lam[:, 0]) + 1e-9
            assert (np.abs(np.cumsum(gap, axis=2)).max(axis=(1, 2)) <= allowed).all()  # Theorems 11 and 23
            assert (np.abs(gap).max(axis=(1, 2)) <= 2 * allowed).all()  # Theorem 9
            if k == 1 and rule is proportional:
                total = np.maximum(gap, 0).sum(axis=(1, 2))
                assert (total <= (lam[:, 0] ** ell - 1) / (lam[:, 0] ** ell + 1) + 1e-9).all()


@pytest.mark.parametrize("ell", [0.5, 1.0, 2.0, 4.0])
def test_welfare_keeps_the_guarantees(ell):
    rng = np.random.default_rng(2)
    for _ in range(40):
        n = int(rng.integers(1, 12))
        k = int(rng.integers(1, n + 1))
        u = rng.lognormal(sigma=2, size=(500, n)) * rng.choice([0, 1], size=(500, n), p=[0.1, 0.9])
        beta = np.sort(rng.random(k))[::-1]
        best = best_welfare(u, beta)
        rules = [(inverse_proportional, inverse_proportional_guarantee(ell))]
        if ell >= 1:
            rules.append((proportional, proportional_guarantee(n, ell)))
        for rule, kept in rules:
            welfare = (u * (rule(u, k, ell) @ beta)).sum(axis=1)
            assert (welfare >= kept * best * (1 - 1e-9)).all()


def test_the_guarantees_are_tight_in_the_limit():
    # Remark 14: one ad of value 1 and many of value 1/2; phi: at its own minimizer.
    u = np.concatenate([[1.0], np.full(20_000, 0.5)])
    ratio = (u * inverse_proportional(u, 1)[0, :, 0]).sum()
    assert 0.75 < ratio < 0.7501
    e = (np.sqrt(10) - 1) / 9
    v = np.array([1.0] + [e] * 9)
    assert (v * proportional(v, 1)[0, :, 0]).sum() == pytest.approx(proportional_guarantee(10, 1.0), abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(auctions(most=4), st.sampled_from(list(RULES)), st.data())
def test_payments_in_closed_form_are_those_of_quadrature(case, rule, data):
    u, k, ell = case
    u = np.clip(u[:1], 0.0, 100.0)
    slots = np.sort(data.draw(st.lists(st.sampled_from([0.0, 0.3, 0.5, 1.0]), min_size=k, max_size=k)))[::-1]
    alpha = data.draw(st.sampled_from([1.0, 0.4]))
    closed = payments(rule, u, slots, alpha, ell=ell)
    slow = quadrature(lambda u, k: RULES[rule](u, k, ell), u[0], slots, alpha)
    tolerance = 2e-3 if rule == "highest-bid" else 1e-6  # steps are hard for quadrature
    np.testing.assert_allclose(closed.payments[0], slow, atol=tolerance * max(1.0, u.max()))


@settings(max_examples=60, deadline=None)
@given(auctions(most=5), st.sampled_from(list(RULES)), st.data())
def test_no_bid_beats_the_truth(case, rule, data):
    u, k, ell = case
    u = np.clip(u[0], 0.0, 100.0)
    i = data.draw(st.integers(0, len(u) - 1))
    slots = np.linspace(1.0, 0.3, k)
    bids = np.repeat(u[None, :], 51, axis=0)
    bids[1:, i] = np.linspace(0.0, 1.7 * max(u.max(), 1.0), 50)
    charged = payments(rule, bids, slots, 0.8, ell=ell)
    worth = u[i] * charged.clicks[:, i] - charged.payments[:, i]
    scale = max(1.0, u.max())
    assert (worth[1:] <= worth[0] + 1e-7 * scale).all()
    assert worth[0] >= -1e-9 * scale and (charged.payments >= 0).all()


def test_equal_slots_charge_the_highest_rejected_bid():
    charged = payments("highest-bid", [5.0, 3.0, 2.0], [1.0, 1.0])
    assert charged.payments.tolist() == [[2.0, 2.0, 0.0]]
    assert charged.revenue.tolist() == [4.0]


def test_an_ad_too_small_for_floats_takes_nothing_from_payments():
    # (0.01 / 2) ** 7 vanishes beside 1: the last unit must count all the same.
    found = payments("proportional", [3.0, 0.01, 2.0], [1.0, 0.3], 0.8, ell=7.0).payments[0]
    slow = quadrature(lambda u, k: proportional(u, k, 7.0), [3.0, 0.01, 2.0], [1.0, 0.3], 0.8)
    np.testing.assert_allclose(found, slow, atol=1e-8)


def test_value_ratios_of_zeros():
    assert value_ratios(np.array([[0.0, 1.0], [0.0, 2.0]])).tolist() == [[1, 2], [2, 1]]
    assert value_ratios(np.array([[0.0, 1.0], [1.0, 1.0]])).tolist() == [[1, np.inf], [np.inf, 1]]


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: inverse_proportional([[1, -1]], 1), r"values\[0, 1\] is -1; the value of an ad"),
        (lambda: inverse_proportional([[1, np.nan]], 1), r"nan"),
        (lambda: inverse_proportional([1, 1], 3), r"slots is 3; it must be a whole number from 0 to 2"),
        (lambda: inverse_proportional([1, 1], -1), r"slots is -1"),
        (lambda: inverse_proportional([1, 1], 1, 0.0), r"ell is 0.0; it must be a number above 0"),
        (lambda: proportional([1, 1], 1, np.inf), r"ell is inf"),
        (lambda: payments("uniform", [1, 1], [0.5, 0.7]), r"slots\[1\] is 0.7, above slots\[0\], 0.5"),
        (lambda: payments("uniform", [1, 1], [1.5]), r"slots\[0\] is 1.5"),
        (lambda: payments("uniform", [1, 1], [1.0], [1.0, 0.0]), r"ad_factors\[0, 1\] is 0"),
        (lambda: payments("uniform", [1, 1], [1.0], [1.0, 1.0, 1.0]), r"ad_factors have shape \(3,\)"),
        (lambda: payments("best", [1, 1], [1.0]), r"rule is 'best'"),
    ],
)
def test_bad_input_is_named(act, words):
    with pytest.raises(DeclarationError, match=words):
        act()


def test_proportional_below_1_warns():
    with pytest.warns(UserWarning, match="no theorem covers it"):
        proportional([1, 2], 1, 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        proportional([1, 2], 1, 1.0)


@pytest.mark.parametrize("slots", [float("nan"), "1", None, 1.5, -1, 3, True])
def test_slots_that_are_no_whole_number_are_refused(slots):
    with pytest.raises(DeclarationError, match="it must be a whole number from 0 to 2"):
        inverse_proportional([1.0, 2.0], slots)
