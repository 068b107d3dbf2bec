"""Proofs of integer programs: prove, check by two programs, damage; and hunt for wrong claims.

    python benchmarks/proofs/run.py --out benchmarks/proofs/results.md

The programs are the MPS files of ../shared/data/integer (HiGHS's ``check/instances``). Each is solved by
HiGHS, proved, and its proof in the VIPR format is checked by ``viprchk`` (Cheung, Gleixner and Steffy, 2017;
built from ../shared/peers/vipr unless it is installed) and by `forcopt.check`, which reads the model a second
time. Small proofs are then damaged, and random models with conditions are solved and proved. All seconds are
of one processor. ``--quick`` takes five programs, 60 damages and 20 models.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchmarks.proofs.models import judged
from benchmarks.proofs.mutations import PROBLEM, mutated
from benchmarks.report import Page, Row, data, parser, progress, row, table

QUICK = ("egout-ac", "p01", "small_mip", "egout", "infeasible-mip1")
SMALL = 25_000
"""Proofs up to this many bytes are damaged, if they have some lines: else the claim may be obvious."""

LIMIT = 300.0
"""Seconds by the clock for solver and proof, each."""

HEAD = ["program", "rows x columns", "HiGHS, s", "proof, s", "nodes", "file, kB", "viprchk, s", "check, s"]


def timed(act: Callable[[], Any]) -> tuple[Any, float]:
    """The result and the processor's seconds, with those of other processes that were started."""
    began, others = time.process_time(), sum(_children())
    out = act()
    return out, time.process_time() - began + sum(_children()) - others


def _children() -> tuple[float, float]:
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime, used.ru_stime


def viprchk(folder: Path) -> str:
    """The checker of others: the installed one, or built from its source."""
    found = shutil.which("viprchk")
    if found is None:
        found = str(folder / "viprchk")
        source = data("integer").parents[1] / "peers" / "vipr" / "viprchk.cpp"
        subprocess.run(["g++", "-O2", "-o", found, source, "-lgmpxx", "-lgmp"], check=True)
    return found


def one(path: Path, folder: Path, program: str) -> list[str]:
    """A row of the table."""
    import forcopt as fo
    from forcopt import check
    from forcopt.cli.certify import printed_numbers
    from forcopt.loops.certify import certify_model

    warnings.simplefilter("ignore")
    model, proof = fo.read(path), folder / f"{path.stem}.vipr"
    out = [path.stem, f"{model.row_count} x {model.column_count}"]
    try:
        solution, solving = timed(lambda: model.solve("highs", gap=0.0, time_limit=LIMIT))
        number = printed_numbers(path)
        certificate, proving = timed(
            lambda: certify_model(solution, number=number, time_limit=LIMIT, save=proof)
        )
    except fo.ForcoptError as error:
        return [*out, *["-"] * 6, f"not solved: {error}".splitlines()[0][:80]]
    nodes = re.search(r"(\d+) subproblems", certificate.how)
    out += [f"{solving:.2f}", f"{proving:.1f}", nodes[1] if nodes else "-"]
    if not proof.exists():
        bound = "none" if certificate.bound is None else f"{float(certificate.bound):.7g}"
        value = "none" if solution.objective is None else f"{solution.objective:.7g}"
        return [*out, "-", "-", "-", f"open: bound {bound}, point {value}"]
    command = [program, str(proof)]
    code, theirs = timed(lambda: subprocess.run(command, capture_output=True, check=False).returncode)
    said, ours = timed(lambda: check.check_vipr(str(proof), check.read_mps(str(path))))
    size = f"{proof.stat().st_size / 1000:,.0f}"
    return [*out, size, f"{theirs:.2f}" if code == 0 else "refused", f"{ours:.2f}", said]


def damage(seed: int, count: int, models: Path, folder: Path, program: str) -> Counter[tuple[str, str]]:
    """How many damaged proofs of each kind are accepted and refused, by each checker."""
    from forcopt import check

    rng, out = random.Random(seed), Counter[tuple[str, str]]()
    known = [p for p in sorted(folder.glob("*.vipr")) if p.stat().st_size <= SMALL]
    small = [p for p in known if int(p.read_text().partition("DER ")[2].split()[0]) >= 5]
    texts = [(p.read_text(), check.read_mps(str(models / f"{p.stem}.mps"))) for p in small]
    spoilt, done = folder / f"damaged-{seed}", 0
    while texts and done < count:
        text, model = rng.choice(texts)
        found = mutated(text, rng)
        if found is None:
            continue
        kind, done = found[0], done + 1
        spoilt.write_text(found[1])
        try:
            check.check_vipr(str(spoilt), model)
        except (check.Refused, ValueError, IndexError):
            out[kind, "refused"] += 1
        else:
            out[kind, "accepted"] += 1
        if kind not in PROBLEM:
            code = subprocess.run([program, spoilt], capture_output=True, check=False).returncode
            out[kind, "accepted by viprchk" if code == 0 else "refused by viprchk"] += 1
    return out


def proofs(pool: ProcessPoolExecutor, folder: Path, program: str, quick: bool) -> tuple[str, list[Row]]:
    """The table of programs."""
    paths = [p for p in sorted(data("integer").glob("*.mps")) if not quick or p.stem in QUICK]
    rows = []
    for found in pool.map(partial(one, folder=folder, program=program), paths):
        rows.append(found)
        progress(*found)
    closed = [r for r in rows if r[5] != "-"]
    accepted = sum(r[6] != "refused" for r in closed)
    text = f"{len(closed)} of {len(rows)} are proved.\n\n{table([*HEAD, 'proved'], rows)}"
    slow = max((float(r[3]) for r in closed), default=0.0)
    ours = f"{len(closed)} of {len(rows)}, each in at most {slow:.0f} s"
    return text, [row("optima proved, files written", ours, f"viprchk accepts {accepted}")]


def damages(pool: ProcessPoolExecutor, folder: Path, program: str, quick: bool) -> tuple[str, list[Row]]:
    """The table of damaged proofs."""
    size = 20 if quick else 500
    act = partial(damage, count=size, models=data("integer"), folder=folder, program=program)
    total = _added(pool.map(act, range(3 if quick else 20)))
    kinds = sorted({kind for kind, _ in total})
    ends = ("refused", "accepted", "refused by viprchk", "accepted by viprchk")
    rows = [
        [kind, *(total[kind, end] if kind not in PROBLEM or "vipr" not in end else "-" for end in ends)]
        for kind in kinds
    ]
    text = (
        "A changed problem may have a valid proof, too: only `forcopt.check` compares it with the model.\n\n"
        f"{table(['damage', *ends], rows)}"
    )
    through, all_of = (sum(total[k, e] for k in kinds for e in some) for some in (ends[1:2], ends[:2]))
    return text, [row("damaged proofs accepted", f"{through} of {all_of:,}")]


def hunt(pool: ProcessPoolExecutor, quick: bool) -> tuple[str, list[Row]]:
    """The table of random models."""
    step = 5 if quick else 50
    starts = range(0, 20 if quick else 2000, step)
    total = _added(pool.map(judged, starts, [step] * len(starts)))
    rows = [[end, total[end, ""]] for end in sorted({end for end, _ in total})]
    text = (
        "Random models with conditions, free columns, equations and data of 1e-6 to 1e6: what an answer by "
        "HiGHS, as this library gives it, is worth against the exact tree.\n\n"
        f"{table(['end', 'models'], rows)}"
    )
    wrong = sum(v for (end, _), v in total.items() if "wrong" in end)
    return text, [row("random models: wrong bounds or optima", f"{wrong} of {total.total():,}")]


def _added(counters: Iterable[Counter[tuple[str, str]]]) -> Counter[tuple[str, str]]:
    total = Counter[tuple[str, str]]()
    for counter in counters:
        total.update(counter)
        progress(sum(total.values()))
    return total


def main() -> None:
    given = parser(__doc__).parse_args()
    page = Page("Proofs of integer programs", given.out, "highspy", "python-flint", note="CPU seconds.")
    alone = ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1)  # its ended children: no load
    with TemporaryDirectory() as place, alone as pool:
        folder = Path(place)
        program = viprchk(folder)
        page.run(
            {
                "Programs": partial(proofs, pool, folder, program),
                "Damaged proofs": partial(damages, pool, folder, program),
                "Random models": partial(hunt, pool),
            },
            given.quick,
        )


if __name__ == "__main__":
    main()
