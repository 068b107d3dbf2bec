"""Plans of n x n grids with n equal districts: the counts, seconds, states and megabytes.

python benchmarks/districting/counting.py [--largest 7]
"""

import argparse
import resource
import time

from forcopt.data import grid
from forcopt.models import Districting
from forcopt.models.districting.frontier import sweep_of

KNOWN = {3: 10, 4: 117, 5: 4006, 6: 451206, 7: 158753814}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--largest", type=int, default=7)
    for n in range(3, parser.parse_args().largest + 1):
        p = Districting(grid(n, n), n, tolerance=0)
        began, cpu = time.perf_counter(), time.process_time()
        total = p.count().total
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        states = sweep_of(p).states
        print(f"{n} {total} {seconds:.2f} s {cpu:.2f} s of CPU {states} states {memory} MB", flush=True)
        assert total == KNOWN.get(n, total)


if __name__ == "__main__":
    main()
