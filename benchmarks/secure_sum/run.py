"""Runs the benchmark of secure sums, and writes a Markdown table.

    python benchmarks/secure_sum/run.py --out benchmarks/secure_sum/results.md

Everything is seeded. ``--quick`` runs with a tenth of the clients.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from benchmarks.report import Page, Row, parser, progress, row, table
from forcopt.models import SecureSum
from forcopt.models.secure_sum import Attack, DropShare

BATCH = 500


def vectors(clients: int, dimension: int) -> Iterator[np.ndarray]:
    """Unit vectors, in batches: they need not lie in memory together."""
    rng = np.random.default_rng(1)
    for first in range(0, clients, BATCH):
        x = rng.standard_normal((min(BATCH, clients - first), dimension))
        yield x / np.linalg.norm(x, axis=1, keepdims=True)


def design(servers: int, dimension: int, bits: int = 16, **fields: float) -> SecureSum:
    return SecureSum(
        **{"servers": servers, "dimension": dimension, "epsilon": 1.0, "delta": 1e-6, "bits": bits, **fields}
    )


def runs(quick: bool) -> tuple[str, list[Row]]:
    clients = 10_000 if quick else 100_000
    lines, headline = [], []
    for servers, dimension in ((2, 1000), (3, 100)):
        s = design(servers, dimension).solve()
        faults = [DropShare(i, 1) for i in range(0, clients, 20)]
        faults += [Attack(i, 2 * s.objective) for i in range(1, clients, 100)]
        start = time.perf_counter()
        for _ in vectors(clients, dimension):
            pass
        drawing = time.perf_counter() - start
        start = time.perf_counter()
        run = s.decision.run(vectors(clients, dimension), faults, seed=1)
        seconds = time.perf_counter() - start - drawing
        lost = np.ones(clients, dtype=bool)
        lost[run.accepted] = False
        expected, first = np.zeros(dimension, dtype=np.int64), 0
        for batch in vectors(clients, dimension):
            kept = ~lost[first : first + len(batch)]
            expected += np.rint(batch / s.decision.step).astype(np.int64)[kept].sum(axis=0)
            first += len(batch)
        exact = "exact" if np.array_equal(expected, run.whole_total) else "WRONG"
        attackers = len([i for i in run.accepted if i % 100 == 1])
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        lines.append(
            [
                f"{clients:,} clients, d = {dimension}, S = {servers}, "
                + (f"k = {s.decision.projections}" if s.decision.projections else "no projection"),
                f"{seconds:.1f}",
                f"{memory:.2f}",
                exact,
                f"{len(run.accepted):,}",
                attackers,
                f"{run.messages['clients'] / 8 / clients:,.0f}",
                f"{servers * dimension * 8:,}",
            ]
        )
        progress(*lines[-1])
        headline.append(
            row(
                f"{lines[-1][0]}, 5 % dropouts, 1 % attackers",
                f"{seconds:.1f} s, sum {exact}, {attackers} attackers accepted",
                "additive shares mod 2^61 without a check: "
                f"{servers * dimension * 8:,} bytes a client, ours {lines[-1][6]}",
            )
        )
    head = ["run", "seconds", "GB at most", "sum", "accepted", "attackers accepted", "bytes a client"]
    note = (
        "5 % of the clients lose a share, 1 % send a vector of norm 2 rho. The sum is compared with that of "
        "the accepted vectors as whole numbers. Seconds are less those for drawing the vectors. The last "
        "column is of additive shares modulo 2^61, which check no norm.\n\n"
    )
    return note + table([*head, "additive shares, bytes"], lines), headline


def designs(quick: bool) -> tuple[str, list[Row]]:
    lines, slowest = [], 0.0
    for bits in (10, 12, 14, 16, 20, 32):
        p = design(2, 1000, bits)
        p.solve()  # chi-square laws by k are cached
        found = []
        for method in ("enumeration", "milp", "talwar", "exact-tails", "split", "no-projection"):
            s = p.solve(method)
            found.append(f"{s.objective:.2f} ({s.seconds:.2f} s)")
            slowest = max(slowest, s.seconds) if method == "enumeration" else slowest
        lines.append([bits, *found])
        progress(*lines[-1])
    head = ["bits", "enumeration", "milp", "talwar", "exact-tails", "split", "no-projection"]
    by_epsilon = [
        (epsilon, f"{design(2, 1000, 32, epsilon=epsilon).solve().objective:.2f}")
        for epsilon in (1.0, 2.0, 5.0, 10.0)
    ]
    text = "S = 2, d = 1000, epsilon = 1, delta = 1e-6.\n\n" + table(head, lines)
    text += "\n" + table(["epsilon", "rho, 32 bits"], by_epsilon)
    return text, [
        row(
            "the best design, all k and 416 steps, 10 to 32 bits",
            f"at most {slowest:.2f} s; rho {lines[3][1]} with 16 bits",
            f"theorems of the paper {lines[3][3]}; two budgets that add up {lines[3][5]}",
        )
    ]


PARTS = {"Designs: the gap rho": designs, "Runs": runs}


def main() -> None:
    given = parser(__doc__).parse_args()
    Page("Secure sums", given.out, "numpy", "scipy", "highspy").run(PARTS, given.quick)


if __name__ == "__main__":
    main()
