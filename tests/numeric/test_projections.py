"""Projections are checked by the variational inequality against vertices, which shares no code with them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forcopt.errors import DeclarationError
from forcopt.numeric import project_box


def _far_point(direction, lower, upper, total, weights):
    """A point of the set that is largest in a direction: fill up greedily (a fractional knapsack)."""
    x, left = lower.copy(), total - weights @ lower
    for i in np.argsort(-direction / weights, kind="stable"):
        step = min(upper[i] - lower[i], left / weights[i])
        x[i] += step
        left -= step * weights[i]
    return x


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_box_is_nearest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    point = rng.integers(-4, 5, n) / rng.choice([1.0, 2.0, 7.0])
    lower = rng.integers(-3, 2, n).astype(float)
    upper = lower + rng.integers(0, 4, n)
    weights = rng.choice([1.0, 0.5, 3.0], n) if rng.random() < 0.5 else np.ones(n)
    share = rng.choice([0.0, 1.0, rng.random()])
    total = float(weights @ (lower + share * (upper - lower)))
    x = project_box(point, lower, upper, total, weights)
    assert (x >= lower).all() and (x <= upper).all()
    assert weights @ x == pytest.approx(total, abs=1e-9)
    far = _far_point(point - x, lower, upper, total, weights)
    assert (point - x) @ (far - x) <= 1e-8


def test_bad_input_is_named() -> None:
    with pytest.raises(DeclarationError, match="between the bounds it can be 0 to 2"):
        project_box([1.0, 2.0], 0, 1, total=3)
    with pytest.raises(DeclarationError, match=r"lower\[1\] is 3, above upper\[1\], 2"):
        project_box([0, 0], [0, 3], 2, 1)
    with pytest.raises(DeclarationError, match="weights"):
        project_box([0, 0], 0, 2, 1, weights=[1, 0])
    with pytest.raises(DeclarationError, match="total"):
        project_box([1.0], 0, 1, total=-1)


@pytest.mark.parametrize("shift", [1e9, 1e12, -1e15])
def test_the_total_is_kept_far_from_the_set(shift: float) -> None:
    point = np.array([1.0, 2.0, 2.0, 0.0, 2.0])
    near, far = (project_box(x, 0, 2.5, 2.5) for x in (point, point + shift))
    assert far == pytest.approx(near, abs=1e-12) and far.sum() == pytest.approx(2.5, abs=1e-12)
    box = project_box(point + shift, 0, 1, 2.5)
    assert box == pytest.approx(project_box(point, 0, 1, 2.5), abs=1e-12)


def test_a_far_entry_takes_all() -> None:
    assert project_box([1e17, 0.0], 0, 1, 1).tolist() == [1.0, 0.0]


def test_a_weight_of_0_is_named() -> None:
    with pytest.raises(DeclarationError, match=r"weights\[1\] is 0; it must be above 0"):
        project_box([1.0, 2.0, 3.0], 0, 1, 1, weights=[1, 0, -5])


def test_bounds_of_another_shape_are_named() -> None:
    with pytest.raises(DeclarationError, match=r"lower has shape \(3,\); it must be one number or \(2,\)"):
        project_box([1.0, 2.0], [0, 0, 0], 1, 1)


def test_the_total_is_kept_beside_far_entries() -> None:
    """One entry is 1e9 below its bound; the free one is what the total leaves."""
    found = project_box([-1.33443347e9, -7.4e6], [0.1, -1.1], [3.1, -1.1], -1.098, weights=[1e-3, 1])
    assert found == pytest.approx([2.0, -1.1], abs=1e-11)
