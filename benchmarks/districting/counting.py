"""Plans of n x n grids with n equal districts: the counts, seconds, states and megabytes."""

import resource
import time
from pathlib import Path

from benchmarks.districting.journal import Journal
from forcopt.data import grid
from forcopt.models import Districting
from forcopt.models.districting.dynamic import sweep_of

KNOWN = {3: 10, 4: 117, 5: 4006, 6: 451206, 7: 158753814}
SPHERE_CUT = 6
"""The largest grid that is counted by sphere-cut too."""


def main(folder: Path, quick: bool) -> list[Journal]:
    journal = Journal(folder, "counting", "n")
    for n in range(3, 6 if quick else 8):
        if (n,) in journal:
            continue
        p = Districting(grid(n, n), n, tolerance=0)
        began, cpu = time.perf_counter(), time.process_time()
        total = p.count().total
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        row = {"n": n, "plans": total, "seconds": f"{seconds:.2f}", "cpu s": f"{cpu:.2f}"}
        row |= {"states": sweep_of(p).states, "MB": memory, "sphere-cut s": ""}
        assert total == KNOWN[n]
        if n <= SPHERE_CUT:
            began = time.perf_counter()
            assert p.count(method="sphere-cut").total == total
            row["sphere-cut s"] = f"{time.perf_counter() - began:.2f}"
        journal.add(row)
    return [journal]
