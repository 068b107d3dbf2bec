"""Figure 2 of Flanigan et al. (2021) on the two public pools: chances of leximin beside the greedy LEGACY.

    python benchmarks/leximax/figure2.py --out benchmarks/leximax/figure2.md

LEGACY fills the panel one by one. The value with the most urgent need gives a random person: the missing part
of its least number, by the people who are left. Who would break a greatest number leaves; a dead end starts
again. The reference chances are those that the authors publish with the pools.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # on small matrices, threads only wait
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import pandas as pd

from benchmarks.report import Page, data, parser, progress, table
from forcopt.models.leximax_cohort import LeximaxCohort
from forcopt.models.leximax_cohort.panel import gini
from forcopt.notebook import new_figure

DRAWS = 500
POOLS = {"example_small": ("example_small_20", 20), "example_large": ("example_large_200", 200)}


def legacy(p: LeximaxCohort, rng: np.random.Generator) -> np.ndarray:
    """One panel of LEGACY: 1 for each member."""
    quotas = p.classes
    while True:
        chosen, free = np.zeros(len(p.names)), np.ones(len(p.names), dtype=bool)
        for _ in range(round(p.size)):
            left = quotas.members @ free
            if not free.any() or (left < quotas.least - quotas.members @ chosen).any():
                break
            need = np.where(left > 0, (quotas.least - quotas.members @ chosen) / np.maximum(left, 1), -np.inf)
            urgent = rng.choice(np.flatnonzero(need == need.max()))
            who = rng.choice(np.flatnonzero(free & (quotas.members[urgent] > 0)))
            chosen[who], free[who] = 1.0, False
            full = quotas.members @ chosen >= quotas.most
            free &= ~(quotas.members[full] > 0).any(axis=0)
        counts = quotas.members @ chosen
        if chosen.sum() == p.size and ((quotas.least <= counts) & (counts <= quotas.most)).all():
            return chosen


def main() -> None:
    given = parser(__doc__).parse_args()
    draws = DRAWS // 100 if given.quick else DRAWS
    figure = new_figure(9.0, 3.6)
    axes = figure.subplots(1, 2)
    rows = []
    for ax, (name, (folder, size)) in zip(axes, POOLS.items(), strict=True):
        files = [data(f"panels/{folder}/{part}.csv") for part in ("respondents", "categories", "reference")]
        p = LeximaxCohort.from_candidates(files[0], files[1], size)
        s = p.solve("column-generation")
        rng = np.random.default_rng(size)
        greedy = np.sort(sum(legacy(p, rng) for _ in range(draws)) / draws)
        reference = pd.read_csv(files[2], skipinitialspace=True)
        percent = np.arange(len(p.names)) / len(p.names) * 100
        known = {}
        for algorithm, own in (("LexiMin", s.decision.levels), ("Legacy", greedy)):
            known[algorithm] = reference["selection probability"][reference.algorithm == algorithm].to_numpy()
            apart = np.abs(np.sort(known[algorithm]) - own)
            numbers = (
                f"{own.min():.6f}",
                f"{known[algorithm].min():.6f}",
                f"{apart.max():.1e}",
                f"{gini(own):.3f}",
            )
            rows.append([name, algorithm.upper(), *numbers])
            progress(*rows[-1])
        ax.plot(percent, known["Legacy"], color="0.6", linewidth=4, label="LEGACY, published")
        ax.plot(percent, greedy, color="#D55E00", linewidth=1, label="LEGACY, here")
        ax.plot(percent, s.decision.levels, color="#0072B2", linewidth=2, label="LEXIMIN, here")
        ax.set(title=name, xlabel="percentile of the pool", ylabel="chance", ylim=(0, None))
        ax.legend(frameon=False)
    figure.savefig(given.out.with_suffix(".svg"))
    page = Page("Figure 2 of Flanigan et al. (2021)", given.out, "numpy", "highspy")
    head = ["pool", "method", "smallest chance", "published", "largest difference", "Gini coefficient"]
    page.write(
        "![Chances of LEGACY and LEXIMIN on the two public pools, sorted](figure2.svg)\n\n"
        f"LEGACY is drawn {draws:,} times here and 10,000 times there, so that its chances vary.\n\n"
        + table(head, rows)
    )


if __name__ == "__main__":
    main()
