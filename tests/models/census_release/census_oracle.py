"""Answers that share no code with the library: dense matrices, scipy, enumeration."""

from itertools import product

import numpy as np
from scipy.optimize import nnls


def matrices(h):
    """By level, the 0/1 matrix from leaves to units."""
    found = []
    for level in range(h.depth):
        a = np.zeros((h.sizes[level], h.leaves))
        for leaf in range(h.leaves):
            unit = leaf
            for lower in range(h.depth - 1, level, -1):
                unit = int(h.parents[lower - 1][unit])
            a[unit, leaf] = 1
        found.append(a)
    return found


def stacked(p, t=0):
    a = np.concatenate(matrices(p.hierarchy))
    y = np.concatenate([level[:, t] for level in p.noisy])
    w = np.concatenate([np.full(len(level), p.weights[i, t]) for i, level in enumerate(p.noisy)])
    return a, y, w


def joint_real(p, t=0):
    a, y, w = stacked(p, t)
    free = np.setdiff1d(np.arange(p.hierarchy.leaves), p.zeros)
    root = np.sqrt(w)
    x = np.zeros(p.hierarchy.leaves)
    if not len(free):
        return float(w @ y**2), x
    if p.nonnegative:
        x[free] = nnls(root[:, None] * a[:, free], root * y, maxiter=1000)[0]
    else:
        x[free] = np.linalg.lstsq(root[:, None] * a[:, free], root * y, rcond=None)[0]
    return float(w @ (a @ x - y) ** 2), x


def joint_whole(p, t=0, reach=2):
    """The best whole point in a box about the real optimum; boxes are wide enough for a few leaves."""
    a, y, w = stacked(p, t)
    _, centre = joint_real(p.replace(integer=False), t)
    ranges = []
    for leaf, c in enumerate(centre):
        low = int(np.floor(c)) - reach + 1
        values = range(max(low, 0) if p.nonnegative else low, int(np.floor(c)) + reach + 1)
        ranges.append([0] if leaf in p.zeros else list(values))
    points = np.array(list(product(*ranges)), dtype=float)
    cost = ((points @ a.T - y) ** 2) @ w
    return float(cost.min()), points[int(np.argmin(cost))]


def top_down_whole(p, most):
    """The lexicographic optimum by enumeration of whole leaves from 0 to `most`."""
    levels = matrices(p.hierarchy)
    points = np.array(list(product(range(most + 1), repeat=p.hierarchy.leaves)), dtype=float)
    points = points[(points[:, p.zeros] == 0).all(axis=1)]
    found = []
    for i, a in enumerate(levels):
        cost = ((points @ a.T - p.noisy[i][:, 0]) ** 2).sum(axis=1) * p.weights[i, 0]
        points = points[cost <= cost.min() + 1e-9]
        found.append(float(cost.min()))
    return found
