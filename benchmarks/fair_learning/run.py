"""Runs parts of the benchmark of fair learning and writes a table for each.

    python benchmarks/fair_learning/run.py peer          # against fairlearn, on four data sets
    python benchmarks/fair_learning/run.py exact         # approximate methods against exact ones
    python benchmarks/fair_learning/run.py elicitation   # the figures of the elicitation paper
    python benchmarks/fair_learning/run.py               # all of them

Everything is seeded and runs on one thread. ``--quick`` does a small part of each, for checking that it runs,
and shows the tables instead.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import argparse
from importlib import import_module

PARTS = ("peer", "exact", "elicitation")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(__file__).with_name("results.md"),
        help="each part adds its name: results-peer.md, ...; beside this file by default",
    )
    parser.add_argument(
        "--quick", action="store_true", help="a small part of each, for checking that it runs"
    )
    chosen = parser.parse_args()
    for part in chosen.parts or PARTS:
        if part not in PARTS:
            parser.error(f"unknown part {part!r}; parts: {', '.join(PARTS)}")
        out = None if chosen.quick else chosen.out.with_stem(f"{chosen.out.stem}-{part}")
        import_module(f"benchmarks.fair_learning.{part}").main(chosen.quick, out)


if __name__ == "__main__":
    main()
