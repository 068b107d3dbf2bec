"""Pools of 5 to 7 people, for comparison with an enumeration of all panels."""

from __future__ import annotations

import numpy as np

from forcopt.models import LeximaxCohort


def random_pool(seed, features=None):
    """A pool of 5 to 7 people whose quotas some panel meets."""
    rng = np.random.default_rng(seed)
    n, size = int(rng.integers(5, 8)), int(rng.integers(2, 4))
    levels = {f"f{j}": rng.choice(["x", "y"], n).tolist() for j in range(features or rng.integers(1, 4))}
    one = rng.choice(n, size, replace=False)
    counts = {f: [np.sum(np.array(of)[one] == v) for v in "xy"] for f, of in levels.items()}
    quotas = {
        f: {
            v: (max(0, c - rng.integers(0, 2)), c + rng.integers(0, 2))
            for v, c in zip("xy", own, strict=True)
        }
        for f, own in counts.items()
    }
    quotas = {f: {v: ends for v, ends in of.items() if v in levels[f]} for f, of in quotas.items()}
    homes = tuple(rng.choice(list("abcdefghij"), n)) if rng.random() < 0.3 else ()
    return LeximaxCohort(utilities=np.eye(n), size=size, features=levels, quotas=quotas, households=homes)
