"""Runs parts of the benchmark of fair learning, each of which writes a page.

    python benchmarks/fair_learning/run.py --out benchmarks/fair_learning/results.md [--parts peer]

``peer`` is against fairlearn, on four data sets, and writes the headline; ``thresholds`` cuts scores by
group, against fairlearn, too; ``fresh`` is error and gap on fresh data over many splits; ``groups`` is up
to 500 groups; ``exact`` compares approximate methods with exact ones; ``elicitation`` finds the figures of
that paper anew; ``privacy`` is private fair learning, ``proxy`` compares a proxy of the group with reports,
and ``crime`` is a paper's figure. Their pages are results-PART.md. Everything is seeded and runs on one
thread.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.report import parser


def main() -> None:
    parts = ("peer", "thresholds", "fresh", "groups", "exact", "elicitation", "privacy", "proxy", "crime")
    given = parser(__doc__, *parts).parse_args()
    for part in given.parts:
        out = given.out.with_stem(f"{given.out.stem}-{part}")
        import_module(f"benchmarks.fair_learning.{part}").main(given.quick, out)


if __name__ == "__main__":
    main()
