"""Prove the optima of integer programs, check the proofs by two programs, and damage them.

``python -m benchmarks.proofs.run --folder FOLDER [--viprchk PATH] [--names A,B] --out results.md``: FOLDER
holds MPS files, such as those of ``check/instances`` of HiGHS. Seconds are of the processor.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import forcopt as fo
from benchmarks.proofs.mutations import mutated
from forcopt import check
from forcopt.cli.certify import printed_numbers
from forcopt.loops.certify import certify_model

NAMES = "flugpl rgn gt2 lseu egout bell5 p0548 vol1 dcmulti egout-ac p01 2171 small_mip infeasible-mip1"
SMALL = 60_000
"""Proofs up to this many bytes are damaged."""


def timed(act: Callable[[], Any]) -> tuple[Any, float]:
    """The result and the processor's seconds, with those of other processes that were started."""
    began, others = time.process_time(), sum(_children())
    out = act()
    return out, time.process_time() - began + sum(_children()) - others


def _children() -> tuple[float, float]:
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime, used.ru_stime


def one(path: Path, proof: Path, viprchk: str, limit: float) -> list[str]:
    """A row of the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fo.read(path)
    solution, solving = timed(lambda: model.solve("highs", gap=0.0, time_limit=limit))
    nodes = [0]
    certificate, proving = timed(
        lambda: certify_model(
            solution,
            number=printed_numbers(path),
            time_limit=limit,
            save=proof,
            progress=lambda done, _: nodes.__setitem__(0, done),
        )
    )
    found = re.search(r"(\d+) subproblems", certificate.how)
    row = [path.stem, f"{model.row_count} x {model.column_count}", f"{solving:.2f}", f"{proving:.1f}"]
    row.append(found[1] if found else str(nodes[0]))
    if not proof.exists():
        bound = "none" if certificate.bound is None else f"{float(certificate.bound):.7g}"
        return [*row, "-", "-", "-", f"open: bound {bound}, point {solution.objective:.7g}"]
    row.append(f"{proof.stat().st_size / 1000:,.0f}")
    if viprchk:
        done, seconds = timed(
            lambda: subprocess.run([viprchk, str(proof)], capture_output=True, check=False).returncode
        )
        row.append(f"{seconds:.2f}" if done == 0 else "refused")
    else:
        row.append("-")
    said, seconds = timed(lambda: check.check_vipr(str(proof), check.read_mps(str(path))))
    return [*row, f"{seconds:.2f}", said]


def damage(folder: Path, proofs: Path, count: int) -> Counter[tuple[str, bool]]:
    """How many damaged proofs of each kind are accepted and refused."""
    rng, out = random.Random(0), Counter[tuple[str, bool]]()
    small = [p for p in sorted(proofs.glob("*.vipr")) if p.stat().st_size <= SMALL]
    texts = [(p.read_text(), check.read_mps(str(folder / f"{p.stem}.mps"))) for p in small]
    while texts and out.total() < count:
        text, model = rng.choice(texts)
        found = mutated(text, rng)
        if found is None:
            continue
        (proofs / "damaged").write_text(found[1])
        try:
            check.check_vipr(str(proofs / "damaged"), model)
        except (check.Refused, ValueError, IndexError):
            out[found[0], False] += 1
        else:
            out[found[0], True] += 1
    return out


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--viprchk", default="")
    parser.add_argument("--names", default=NAMES)
    parser.add_argument("--limit", type=float, default=300.0)
    parser.add_argument("--damaged", type=int, default=10_000)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    head = [
        "program",
        "rows x columns",
        "HiGHS, s",
        "proof, s",
        "nodes",
        "file, kB",
        "viprchk, s",
        "check.py, s",
        "proved",
    ]
    rows = [head, ["---"] * len(head)]
    with TemporaryDirectory() as folder:
        for name in re.split(r"[ ,]+", given.names):
            rows.append(
                one(given.folder / f"{name}.mps", Path(folder) / f"{name}.vipr", given.viprchk, given.limit)
            )
            print(*rows[-1], flush=True)
        counts = damage(given.folder, Path(folder), given.damaged)
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines += ["", "| damage | refused | accepted |", "| --- | --- | --- |"]
    lines += [
        f"| {kind} | {counts[kind, False]} | {counts[kind, True]} |"
        for kind in sorted({k for k, _ in counts})
    ]
    given.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
