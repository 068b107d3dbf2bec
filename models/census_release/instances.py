"""Seeded instances: whole releases as linear programs of unit steps."""

from __future__ import annotations

from functools import partial

from forcopt.instance import Instance, by_name
from forcopt.models.census_release.generators import random_release

__all__ = ["INSTANCES"]

INSTANCES = by_name(
    Instance(
        f"census/joint-{sizes[-1]}",
        partial(random_release, sizes, seed=sizes[-1], integer=True, order="joint"),
        "network-lp",
    )
    for sizes in ((1, 5, 40),)
)
