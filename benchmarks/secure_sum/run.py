"""Runs the benchmark of secure sums, and writes a Markdown table.

    python benchmarks/secure_sum/run.py --out benchmarks/secure_sum/results.md

Everything is seeded, on one thread. ``--quick`` runs with a tenth of the clients, ``--parts`` some parts. The
peers are installed into an environment of their own.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numpy as np

from benchmarks.report import Page, Row, data, environment, parser, progress, row, table
from forcopt.data import load_adult, load_compas
from forcopt.models import SecureSum
from forcopt.models.secure_sum import Attack, DropShare

BATCH = 500
REPEATS = 3
"""Of a measurement whose least time counts."""
PEERS = {"mpyc": "0.11", "flwr": "1.41.0"}


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


def clock() -> np.ndarray:
    """Seconds by the clock, and of the processor."""
    return np.array([time.perf_counter(), time.process_time()])


def runs(quick: bool) -> tuple[str, list[Row]]:
    clients = 10_000 if quick else 100_000
    lines, headline = [], []
    for servers, dimension in ((2, 1000), (3, 100)):
        s = design(servers, dimension).solve()
        faults = [DropShare(i, 1) for i in range(0, clients, 20)]
        faults += [Attack(i, 2 * s.objective) for i in range(1, clients, 100)]
        start = clock()
        for _ in vectors(clients, dimension):
            pass
        drawing = clock() - start
        start = clock()
        run = s.decision.run(vectors(clients, dimension), faults, seed=1)
        seconds, processor = clock() - start - drawing
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
                f"{processor:.1f}",
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
                f"{seconds:.1f} s ({processor:.1f} s of the processor), sum {exact}, {attackers} attackers "
                "accepted",
                "additive shares mod 2^61 without a check: "
                f"{servers * dimension * 8:,} bytes a client, ours {lines[-1][7]}",
            )
        )
    head = ["run", "seconds", "of the processor", "GB at most", "sum", "accepted", "attackers accepted"]
    note = (
        "5 % of the clients lose a share, 1 % send a vector of norm 2 rho. The sum is compared with the "
        "integer sum of the accepted vectors. Seconds exclude the draw of the vectors. The last column is "
        "for additive shares modulo 2^61, which check no norm.\n\n"
    )
    return note + table([*head, "bytes a client", "additive shares, bytes"], lines), headline


def designs(quick: bool) -> tuple[str, list[Row]]:
    lines, slowest = [], 0.0
    for bits in (10, 12, 14, 16, 20, 32):
        p = design(2, 1000, bits)
        p.solve()  # chi-square laws by k are cached
        found = []
        for method in ("enumeration", "talwar", "exact-tails", "split", "no-projection"):
            start = clock()
            s = p.solve(method)
            seconds = float((clock() - start)[1])
            found.append(f"{s.objective:.2f} ({seconds:.2f} s)")
            slowest = max(slowest, seconds) if method == "enumeration" else slowest
        lines.append([bits, *found])
        progress(*lines[-1])
    head = ["bits", "enumeration", "talwar", "exact-tails", "split", "no-projection"]
    by_epsilon = [
        (epsilon, f"{design(2, 1000, 32, epsilon=epsilon).solve().objective:.2f}")
        for epsilon in (1.0, 2.0, 5.0, 10.0)
    ]
    text = "S = 2, d = 1000, epsilon = 1, delta = 1e-6. Seconds of the processor.\n\n" + table(head, lines)
    text += "\n" + table(["epsilon", "rho, 32 bits"], by_epsilon)
    return text, [
        row(
            "the best design, all k and 416 steps, 10 to 32 bits",
            f"at most {slowest:.2f} s of the processor; rho {lines[3][1]} with 16 bits",
            f"theorems of the paper {lines[3][3]}; two budgets that add up {lines[3][5]}",
        )
    ]


def peer(script: str, *words: object) -> dict[str, float]:
    """The measurements of a peer's script."""
    path = Path(__file__).with_name(script)
    command = [environment(__file__, PEERS), str(path), *map(str, words)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def peers(quick: bool) -> tuple[str, list[Row]]:
    clients, d = 1000 if quick else 10_000, 1000
    s = design(2, d).solve()
    people, times = list(vectors(clients, d)), []
    for _ in range(REPEATS):
        start = clock()
        run = s.decision.run(iter(people), seed=1)
        times.append((clock() - start) / clients)
    own, sent = min(times, key=lambda t: t[1]), run.messages["clients"] / 8 / clients
    checks = [peer("mpyc_norm.py", "-M3", "--no-log", d, 10 if quick else 40) for _ in range(REPEATS)]
    exact = min(checks, key=lambda found: found["processor"])
    assert exact["accepted"] == [True, False] * (len(exact["accepted"]) // 2)
    masks = peer("secaggplus.py", d)
    lines = [
        [
            "this protocol, S = 2, 16 bits",
            f"{1e3 * own[1]:.3f}",
            f"{1e3 * own[0]:.3f}",
            f"{sent:,.0f}",
            f"up to {s.objective:.1f}",
        ],
        [
            f"MPyC {PEERS['mpyc']}, 3 parties on loopback",
            f"{1e3 * exact['processor']:.1f}",
            f"{1e3 * exact['seconds']:.1f}",
            f"{exact['bytes']:,.0f}",
            "none: exactly 1",
        ],
        [
            f"Flower {PEERS['flwr']}, SecAgg+ among {masks['clients']} clients, one server",
            f"{1e3 * masks['processor']:.1f}",
            "-",
            f"{masks['bytes']:,.0f}",
            "no check",
        ],
        ["additive shares modulo 2^61, S = 2", "-", "-", f"{16 * d:,}", "no check"],
    ]
    for line in lines:
        progress(*line)
    note = (
        f"d = {d}. Milliseconds a client, of the run of {REPEATS} that took the processor least: of all "
        "parties, in one process for this protocol, in three that share the machine for MPyC. For SecAgg+ "
        "they are of the client's own code in all four stages, run once. Bytes are sent by the client, for "
        "MPyC by the party with the vector, with its part of the comparison. MPyC compares the exact squared "
        "norm: it has no gap, and rejects a vector whose squared norm in steps is too large by 1. Flower "
        "1.42.0 asks for a newer certifi than the package index had, so that 1.41.0 is measured; the client "
        "of 1.42.0, installed without its dependencies, sends as many bytes.\n\n"
    )
    head = ["protocol", "ms of the processor", "ms by the clock", "bytes a client", "longest accepted"]
    return note + table(head, lines), [
        row(
            "norm check of a client, d = 1000",
            f"{1e3 * own[1]:.3f} ms of the processor, gap {s.objective:.1f}",
            f"MPyC {1e3 * exact['processor']:.1f} ms, without a gap",
            f"{exact['processor'] / own[1]:,.0f} x",
        )
    ]


def cells(quick: bool) -> tuple[str, list[Row]]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    compas = load_compas(data("tabular/compas-scores-two-years.csv"))
    adult = load_adult(data("tabular/adult.csv"))
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(
        adult.features, adult.labels
    )
    inputs = {
        "COMPAS": (compas, compas.frame["decile_score"].to_numpy() >= 5),
        "Adult": (adult, model.predict(adult.features)),
    }
    lines = []
    for name, (people, predicted) in inputs.items():
        names, group = np.unique(people.groups, return_inverse=True)
        cell = (group * 2 + people.labels) * 2 + predicted.astype(int)
        d = 4 * len(names)
        # Ten steps are 1: the noise of 12 bits then takes little of the budget.
        s = design(2, d, 12, step=0.1, whole=True).solve()
        run = s.decision.run(np.eye(d)[cell], seed=1)
        counts = np.bincount(cell[run.accepted], minlength=d)
        exact = "exact" if np.array_equal(run.whole_total, 10 * counts) else "WRONG"
        lines.append(
            [
                name,
                f"{len(cell):,}",
                d,
                f"{s.objective:.1f}",
                len(run.rejected),
                f"{len(cell) * 1e-3:.0f}",
                exact,
            ]
        )
        progress(*lines[-1])
    head = ["data", "people", "cells", "rho", "rejected", "expected", "sum"]
    note = (
        "Each client sends a cell (group, label, prediction) as a unit vector of norm 1. All clients are "
        "honest.\n\n"
    )
    return note + table(head, lines), []


def gradients(quick: bool) -> tuple[str, list[Row]]:
    """One step of logistic regression on Adult: gradients clipped to norm 1, and 1 % attackers."""
    people = load_adult(data("tabular/adult.csv"))
    x = (people.features - people.features.mean(axis=0)) / np.maximum(people.features.std(axis=0), 1e-9)
    x = np.column_stack([x, np.ones(len(x))])
    gradient = (0.5 - people.labels)[:, None] * x
    gradient /= np.maximum(1.0, np.linalg.norm(gradient, axis=1, keepdims=True))
    n, d = gradient.shape
    s = design(2, d).solve()
    liars = np.random.default_rng(0).choice(n, n // 100, replace=False)
    honest = np.delete(gradient, liars, axis=0).sum(axis=0)
    away = -honest / np.linalg.norm(honest)  # all attackers push against the honest sum
    lines = []
    for name, norm in (
        ("1.5", 1.5),
        ("rho / 2", s.objective / 2),
        ("rho", s.objective),
        ("2 rho", 2 * s.objective),
    ):
        sent = gradient.copy()
        sent[liars] = norm * away
        run = s.decision.run(sent, seed=1)
        took = len(set(run.accepted) & set(liars.tolist()))
        moved = float(away @ (run.total - honest)) / float(np.linalg.norm(honest))
        lines.append(
            [
                name,
                f"{norm:.1f}",
                f"{took} of {len(liars)}",
                f"{s.problem.acceptance(s.decision, norm):.4f}",
                f"{moved:.3f}",
                f"{len(liars) * norm / float(np.linalg.norm(honest)):.3f}",
            ]
        )
        progress(*lines[-1])
    head = ["r", "norm", "accepted", "P(accept)", "sum moved by", "without a check"]
    note = (
        f"{n:,} gradients of {d} numbers at 0, clipped to norm 1; {len(liars)} attackers send r times the "
        f"direction against the honest sum. rho is {s.objective:.1f}. The last two columns are in units of "
        "the norm of the honest sum.\n\n"
    )
    return note + table(head, lines), [
        row(
            f"gradients of {n:,} people, 1 % attackers of norm 2 rho",
            f"{lines[-1][2]} attackers accepted; the sum moves by {lines[-1][4]} of its norm",
            f"without a check by {lines[-1][5]}",
        )
    ]


def crossover(quick: bool) -> tuple[str, list[Row]]:
    """The dimension from which on a projection is better, without limits on bits."""
    lines = []
    for epsilon in (0.5, 1.0, 2.0, 5.0):
        low, high = 1, 4096
        while high - low > 1:
            middle = (low + high) // 2
            best = design(2, middle, 40, epsilon=epsilon).solve()
            low, high = (middle, high) if best.decision.projections is None else (low, middle)
        lines.append([epsilon, high, f"{design(2, high, 40, epsilon=epsilon).solve().objective:.2f}"])
        progress(*lines[-1])
    head = ["epsilon", "least d with a projection", "rho there"]
    return "S = 2, delta = 1e-6, 40 bits, bisection over d.\n\n" + table(head, lines), []


PARTS = {
    "designs": ("Designs: the gap rho", designs),
    "crossover": ("With or without a projection", crossover),
    "runs": ("Runs", runs),
    "peers": ("Peers", peers),
    "cells": ("Cells of tables", cells),
    "gradients": ("Gradients", gradients),
}


def main() -> None:
    given = parser(__doc__, *PARTS).parse_args()
    page = Page("Secure sums", given.out, "forcopt", "numpy", "scipy", "highspy")
    page.run(dict(PARTS[name] for name in given.parts), given.quick)


if __name__ == "__main__":
    main()
