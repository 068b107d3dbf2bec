"""Water-filling at both ends, and the least sum of reciprocals against its dual."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forcopt.numeric import least_reciprocals, water_fill


def _case(seed: int):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 8))
    floors = rng.integers(1, 4, k).astype(float)
    caps = floors + rng.integers(0, 20, k)
    gains = rng.choice([0.0, 1.0, *rng.random(3)], k)
    costs = np.ones(k) if rng.random() < 0.5 else rng.choice([0.1, 0.3, 1.0, rng.random() + 0.1], k)
    share = rng.choice([0.0, 1.0, rng.random()])
    return gains, floors, caps, costs, float(costs @ floors + share * (costs @ (caps - floors)))


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=300, deadline=None)
def test_the_level_exhausts_the_limit(seed: int) -> None:
    rates, floors, caps, costs, limit = _case(seed)
    sizes, level = water_fill(rates, floors, caps, costs, limit)
    assert (sizes >= floors).all() and (sizes <= caps).all()
    assert costs @ sizes <= limit * (1 + 1e-12)
    if np.isinf(level):
        assert (sizes == np.where(rates > 0, caps, floors)).all()
    else:
        assert costs @ sizes == pytest.approx(limit, rel=1e-12)
        np.testing.assert_allclose(sizes, np.clip(level * rates, floors, caps), rtol=1e-9)


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=300, deadline=None)
def test_reciprocals_are_least_by_duality(seed: int, both: bool) -> None:
    gains, floors, caps, costs, limit = _case(seed)
    limits = [(costs, limit)]
    if both:
        limits.append(
            (np.ones(len(costs)), float(np.random.default_rng(seed + 1).uniform(floors.sum(), caps.sum())))
        )
    filled = least_reciprocals(gains, floors, caps, limits)
    assert filled is not None
    assert all(c @ filled.sizes <= most * (1 + 1e-8) for c, most in limits)
    value = (gains / filled.sizes).sum()
    # Weak duality: minimize gains / m + price * m entry by entry.
    with np.errstate(divide="ignore", invalid="ignore"):
        at = np.where(filled.prices > 0, np.sqrt(gains / filled.prices), np.where(gains > 0, caps, floors))
    at = np.clip(at, floors, caps)
    bound = (gains / at + filled.prices * at).sum() - filled.multiplier
    assert value == pytest.approx(bound, rel=1e-6, abs=1e-12)


def test_a_census_up_to_rounding_takes_all() -> None:
    sizes = np.array([12.0, 12.0, 12.0, 5.0])
    gains = np.array([3.157784713372434, 0.4716749749021182, 1.2359025787852718, 4.490857562860773]) ** 2
    filled = least_reciprocals(gains, np.full(4, 2.0), sizes, [(np.ones(4), 41.0)])
    assert filled is not None
    np.testing.assert_allclose(filled.sizes, sizes, rtol=1e-12)
    assert np.isfinite(filled.multiplier)


def test_floors_beyond_the_limit_have_no_solution() -> None:
    assert least_reciprocals(np.ones(2), np.full(2, 3.0), np.full(2, 5.0), [(np.ones(2), 5.0)]) is None
