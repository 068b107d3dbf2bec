"""Prove the instances of the library whose files every processor writes alike; keep small proofs.

    python benchmarks/instances/proofs.py [--time-limit 10] [NAME ...]

Each file is solved by HiGHS and proved within the limit; a proof of at most 30 kB, compressed, goes to the
folder ``proofs`` beside the problem. Files with a number of more than 9 digits are left out, since the last
ones may differ.
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import forcopt as fo
from benchmarks.report import ROOT, progress
from forcopt import check
from forcopt.instance import Instance
from forcopt.study import library

DIGITS, LARGEST = 9, 30_000


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("names", nargs="*", metavar="NAME", help="all if left out; a beginning is enough")
    options.add_argument(
        "--time-limit", type=float, default=10.0, metavar="SECONDS", help="for solver and proof, each"
    )
    given = options.parse_args()
    warnings.simplefilter("ignore")
    for instance in library.find(given.names):
        progress(instance.name, proved(instance, given.time_limit))


def proved(instance: Instance, limit: float) -> str:
    """Write the proof of an instance; what became of it, in words."""
    name = library.file_name(instance, "vipr.gz")
    folder = ROOT / "models" / type(instance.make()).__module__.split(".")[2] / "proofs"
    with TemporaryDirectory() as place:
        file, proof = Path(place) / "model.mps", Path(place) / "proof.vipr"
        instance.model().write(file)
        words = file.read_text().split()
        if any(len(re.sub(r"e.*|[^0-9]", "", w.lower()).strip("0")) > DIGITS for w in words if number(w)):
            return "its numbers are long"
        try:
            solution = fo.read(file).solve("highs", gap=0.0, time_limit=limit)
            solution.certify(decimals=True, time_limit=limit, save=proof)
        except fo.ForcoptError as error:
            return f"no proof: {error}"
        if not proof.exists():
            return "no proof in time"
        packed = gzip.compress(proof.read_bytes(), mtime=0)
        if len(packed) > LARGEST:
            return f"the proof has {len(packed):,} bytes"
        if check.main([str(proof), str(file)]):
            return "the proof is refused"
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(packed)
    return f"{len(packed):,} bytes"


def number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


if __name__ == "__main__":
    main()
