"""Runs parts of the benchmark of fair learning, each of which writes a page.

    python benchmarks/fair_learning/run.py --out benchmarks/fair_learning/results.md [PART ...]

``peer`` is against fairlearn, on four data sets, and writes the headline; ``exact`` compares approximate
methods with exact ones; ``elicitation`` finds the figures of that paper anew; ``privacy`` is private fair
learning. Their pages are results-PART.md. Everything is seeded and runs on one thread.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.report import parser

PARTS = ("peer", "exact", "elicitation", "privacy")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all if left out")
    given = options.parse_args()
    for part in given.parts or PARTS:
        if part not in PARTS:
            options.error(f"unknown part {part!r}; parts: {', '.join(PARTS)}")
        out = given.out.with_stem(f"{given.out.stem}-{part}")
        import_module(f"benchmarks.fair_learning.{part}").main(given.quick, out)


if __name__ == "__main__":
    main()
