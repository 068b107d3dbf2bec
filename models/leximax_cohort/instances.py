"""Seeded instances: the smallest utility of a group as large as possible, for lotteries and for one cohort.

Files hold one objective, so that they ask for the first level alone. Where candidates serve a few groups
each and one cohort is to be chosen, that is as hard as hitting set (Henzinger et al., 2022, Lemma 20).
"""

from __future__ import annotations

from functools import partial

from forcopt.instance import Instance, by_name
from forcopt.models.leximax_cohort.generators import random_block, random_cohort, random_panel

__all__ = ["INSTANCES"]

INSTANCES = by_name(
    [
        *(
            Instance(f"cohort/lottery-{n}-{m}", partial(random_cohort, n, m, n // 10, seed=n), "maximin")
            for n, m in ((50, 10), (500, 50), (5000, 200))
        ),
        *(
            Instance(f"cohort/panel-{n}-{k}", partial(random_panel, n, k, features=2, seed=n), "maximin")
            for n, k in ((100, 20), (1000, 80))
        ),
        *(
            Instance(
                f"cohort/whole-{n}-{m}",
                partial(random_cohort, n, m, n // 5, grid=20, seed=n, integer=True),
                "maximin",
            )
            for n, m in ((20, 5), (40, 10), (100, 20), (200, 60))
        ),
        *(
            Instance(
                f"cohort/hitting-{n}-{m}-{k}",
                partial(random_block, n, m, k, share=share, seed=n, integer=True),
                "maximin",
            )
            for n, m, k, share in (
                (30, 20, 5, 0.2),
                (60, 100, 10, 0.2),
                (150, 400, 12, 0.2),
                (300, 1500, 15, 0.2),
            )
        ),
    ]
)
