"""Seeded points of two classes on curves in the plane whose distance varies."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError

CURVES = ("sines", "s-figure", "nnn", "circles", "boxes")
"""The names of the generators."""


def draw_curves(name: str, count: int, seed: int | np.random.Generator | None = None) -> tuple[Array, Array]:
    """Draw points on the curves of two classes.

    Parameters
    ----------
    name : str
        ``"sines"``: two sine waves whose gap widens from 0.3 to 2. ``"s-figure"``: two parallel S curves with
        a narrowing gap. ``"nnn"``: three N-shaped lines of alternating labels. ``"circles"``: radii 2, 6, 12
        and 16, alternating. ``"boxes"``: nested squares with half-sides 2, 6 and 12, alternating.
    count : int
    seed : int or Generator, optional

    Returns
    -------
    points, labels : arrays, shapes (count, 2) and (count,)

    Notes
    -----
    The paper names these shapes and prints pictures of them, but no formulas: scales follow the radii that
    it tries.

    References
    ----------
    Chowdhury, Urner, FORC 2022, section 6.

    Examples
    --------
    >>> points, labels = draw_curves("circles", 100, seed=0)
    >>> sorted(set((points**2).sum(axis=1).round().astype(int).tolist()))
    [4, 36, 144, 256]
    """
    rng = np.random.default_rng(seed)
    if name == "sines":
        y = rng.integers(0, 2, count)
        x = rng.uniform(0, 4 * np.pi, count)
        gap = 0.3 + 1.7 * x / (4 * np.pi)
        return np.stack([x, np.sin(x) + y * gap], axis=1), y
    if name == "s-figure":
        y = rng.integers(0, 2, count)
        t = rng.uniform(0, 1, count)
        gap = 2.0 - 1.7 * t
        return np.stack([4 * np.sin(2 * np.pi * t) + y * gap, 10 * t], axis=1), y
    if name == "nnn":
        which = rng.integers(0, 3, count)
        t = rng.uniform(0, 3, count)
        leg = np.minimum(t.astype(int), 2)
        along = t - leg
        x = np.choose(leg, [np.zeros(count), 2 * along, np.full(count, 2.0)]) + 2.6 * which
        height = np.choose(leg, [4 * along, 4 * (1 - along), 4 * along]) + 0.4 * which
        return np.stack([x, height], axis=1), which % 2
    if name == "circles":
        which = rng.integers(0, 4, count)
        radius, angle = np.array([2.0, 6.0, 12.0, 16.0])[which], rng.uniform(0, 2 * np.pi, count)
        return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1), which % 2
    if name == "boxes":
        which, side = rng.integers(0, 3, count), rng.integers(0, 4, count)
        half, along = np.array([2.0, 6.0, 12.0])[which], rng.uniform(-1, 1, count)
        x = half * np.choose(side, [along, np.ones(count), along, -np.ones(count)])
        height = half * np.choose(side, [np.ones(count), along, -np.ones(count), along])
        return np.stack([x, height], axis=1), which % 2
    raise DeclarationError(f"name is {name!r}; it must be one of {', '.join(CURVES)}")
