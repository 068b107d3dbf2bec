"""Runs the benchmark of counting queries, and writes a Markdown table.

    python benchmarks/counting_queries/run.py --out benchmarks/counting_queries/results.md

Everything is seeded. ``--quick`` does a small part of each table. The part "Peers" installs jax-privacy
into an environment of its own.
"""

from __future__ import annotations

import math
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from benchmarks.report import Page, Row, data, environment, parser, progress, row, table
from forcopt.models import CountingQueries, LatticeNoise, LinearQueries
from forcopt.models.counting_queries.calibration import gaussian_shift
from forcopt.privacy import GeneralizedGaussian, Simulated

PEERS = {"jax-privacy": "2.0.0"}


def timed(call, repeats: int = 1):
    """The result and the least seconds of the processor."""
    best = math.inf
    for _ in range(repeats):
        began = time.process_time()
        out = call()
        best = min(best, time.process_time() - began)
    return out, best


def accounting(quick: bool) -> tuple[str, list[Row]]:
    from dp_accounting.pld import privacy_loss_distribution as pld

    rows, headlines = [], []
    for k in (1000,) if quick else (1000, 10**6):
        scale = math.sqrt(k) / gaussian_shift(1.0, 1e-6)
        noise = GeneralizedGaussian(shape=2.0, scale=scale * math.sqrt(2))
        exact = (noise.profile(1) ** k).delta(1.0)
        ours, seconds = timed(lambda: (noise.profile(1) ** k).delta(1.0, "contour"), 3)  # noqa: B023
        step = 1e-4 / math.sqrt(k) * 10
        theirs, peer = timed(
            lambda: (
                pld.from_gaussian_mechanism(scale, value_discretization_interval=step)  # noqa: B023
                .self_compose(k)  # noqa: B023
                .get_delta_for_epsilon(1.0)
            )
        )
        rows.append(
            [
                f"{k:,}",
                f"{seconds:.3g} s",
                f"{ours / exact - 1:.1e}",
                f"{peer:.3g} s",
                f"{theirs / exact - 1:.1e}",
            ]
        )
        progress(*rows[-1])
        headlines = [
            row(
                f"delta of {k:,} Gaussian noises",
                f"contour {seconds:.3g} s, off by {ours / exact - 1:.0e}",
                f"dp-accounting {peer:.3g} s, off by {theirs / exact - 1:.0e}",
                f"{peer / seconds:.0f}",
            )
        ]
    head = ["queries", "contour", "against the formula", "dp-accounting", "against the formula"]
    return table(head, rows), headlines


def laws(quick: bool) -> tuple[str, list[Row]]:
    cases = (
        [(64, 1 / 64), (1000, 1e-6)] if quick else [(64, 1 / 64), (1000, 1e-6), (10**5, 1e-6), (10**6, 1e-6)]
    )
    methods = ("laplace", "gaussian", "shape-search", "bounded", "fisher", "ganesh-zhao")
    rows, headlines = [], []
    for k, delta in cases:
        p = CountingQueries(queries=k, epsilon=1.0, delta=delta)
        cells, seen = [f"{k:,}", f"{delta:.2g}"], {}
        for method in methods:
            try:
                s, seconds = timed(lambda: p.solve(method, time_limit=60))  # noqa: B023
            except ValueError:
                cells.append("refuses")
                continue
            if s.decision is None:
                cells.append(f"nothing in {seconds:.0f} s")
                continue
            seen[method] = (s.objective, seconds)
            limit = s.objective * gaussian_shift(1.0, delta) / math.sqrt(k)
            cells.append(f"{s.objective:,.2f} ({limit:.3f}) {seconds:.2g} s")
        rows.append(cells)
        progress(*cells)
        headlines.append(
            row(
                f"error of the worst of {k:,} counts, delta {delta:.2g}",
                f"best shape {seen['shape-search'][0]:,.2f} in {seen['shape-search'][1]:.2g} s, "
                f"best law {min(v for v, _ in seen.values()):,.2f}",
                f"Gaussian {seen['gaussian'][0]:,.2f}",
                f"{seen['gaussian'][0] / min(v for v, _ in seen.values()):.2f}",
            )
        )
    note = "E max at epsilon 1; in brackets in units of sqrt(k) / mu, the limit of a Gaussian loss.\n\n"
    return note + table(["queries", "delta", *methods], rows), headlines[-1:]


def lattice(quick: bool) -> tuple[str, list[Row]]:
    rows, headlines = [], []
    for k, radius in ((2, 20),) if quick else ((1, 20), (2, 20), (3, 8), (3, 14), (4, 12)):
        p = LatticeNoise(queries=k, epsilon=1.0, delta=0.01, radius=radius)
        backend = "clarabel" if k == 4 else "highs"  # an interior point is faster on 100,000 columns
        s, seconds = timed(lambda: p.solve("bracket", backend=backend, time_limit=500))  # noqa: B023
        if s.decision is None:
            rows.append([k, radius, f"{s.status} after {seconds:.0f} s", "", "", ""])
            continue
        alone = CountingQueries(queries=k, epsilon=1.0, delta=0.01, whole=True).solve(time_limit=60).objective
        rows.append([k, radius, f"{s.bound:.7f}", f"{s.objective:.7f}", f"{alone:.4f}", f"{seconds:.3g} s"])
        progress(*rows[-1])
        headlines.append(
            row(
                f"{k} counts, R = {radius}", f"[{s.bound:.7f}, {s.objective:.7f}]", f"independent {alone:.4f}"
            )
        )
    head = [
        "queries",
        "R",
        "no law is below",
        "best in the box",
        "best independent generalized Gaussian",
        "both programs",
    ]
    return table(head, rows), headlines[-1:]


def factorizations(quick: bool) -> tuple[str, list[Row]]:
    rows, headlines = [], []
    for n in (32,) if quick else (32, 128, 256, 512):
        p = LinearQueries.prefix(n, 1.0, 1e-6)
        s, seconds = timed(lambda: p.solve())  # noqa: B023
        unit = s.evaluation.metrics["factorization norm"] / s.objective
        others = [p.solve(m).objective * unit for m in ("square-root", "hierarchical", "identity")]
        programs = []
        for backend in ("clarabel", "scs"):
            if n > 32:  # minutes, and much memory
                programs.append("")
                continue
            sdp, taken = timed(lambda: p.solve("sdp", backend=backend))  # noqa: B023
            programs.append(f"{sdp.objective * unit:.6f}, {taken:.3g} s")
        rows.append(
            [n, f"{s.bound * unit:.6f}", f"{s.objective * unit:.6f}", s.iterations, f"{seconds:.3g} s"]
            + programs
            + [f"{v:.4f}" for v in others]
        )
        progress(*rows[-1])
        headlines = [
            row(
                f"gamma_2 of {n} prefix sums",
                f"{s.objective * unit:.5f} in {seconds:.3g} s, gap 1e-4",
                f"square root {others[0]:.4f}",
            )
        ]
    head = ["counts", "lower", "fixed point", "steps", "time", "sdp, Clarabel", "sdp, SCS"]
    head += ["square root", "hierarchical", "identity"]
    return table(head, rows), headlines


def peers(quick: bool) -> tuple[str, list[Row]]:
    """Both errors of prefix sums, which jax-privacy minimises too."""
    script = Path(__file__).with_name("jax_privacy_prefix.py")
    rows, headlines = [], []
    for error, n in (
        (("mean", 32),) if quick else [(e, n) for e in ("mean", "max") for n in (32, 128, 256, 512)]
    ):
        p = LinearQueries.prefix(n, 1.0, 1e-6, error=error)
        began = time.process_time()
        s = p.solve()
        seconds = time.process_time() - began
        unit = s.evaluation.metrics["factorization norm"] / s.objective
        command = [environment(__file__, PEERS), str(script), str(n), error]
        cells = [error, n, f"{s.bound * unit:.6f}", f"{s.objective * unit:.6f}", f"{seconds:.3g} s"]
        try:
            done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=1200)
        except subprocess.TimeoutExpired:
            rows.append([*cells, "none in 1,200 s", "", ""])
            continue
        theirs, first, again = (float(word) for word in done.stdout.splitlines()[-1].split())
        rows.append([*cells, f"{theirs:.6f}", f"{first:.3g} s", f"{again:.3g} s"])
        progress(*rows[-1])
        if error == "mean":
            headlines = [
                row(
                    f"mean error of {n} prefix sums",
                    f"{s.objective * unit:.5f} in {seconds:.3g} s, gap 1e-4",
                    f"jax-privacy {theirs:.5f} in {again:.3g} s, no gap",
                    f"{again / seconds:.1f}",
                )
            ]
    note = (
        "The root of the mean and of the largest squared error over all prefix sums at sensitivity 1. "
        "jax-privacy is tuned for the mean. Times are of the processor.\n\n"
    )
    head = ["error", "counts", "lower", "fixed point", "time", "jax-privacy", "time, compiled anew", "time"]
    return note + table(head, rows), headlines


def real(quick: bool) -> tuple[str, list[Row]]:
    import csv

    def columns(name: str, wanted: list[str]) -> dict[str, np.ndarray]:
        with data(name).open(newline="") as file:
            lines = list(csv.DictReader(file, skipinitialspace=True))
        return {c: np.array([line[c] for line in lines]) for c in wanted}

    rows = []
    adult = columns("tabular/adult.csv", ["age", "sex", "race", "relationship"])
    compas = columns("tabular/compas-scores-two-years.csv", ["sex", "race", "age_cat", "two_year_recid"])
    ages = adult.pop("age").astype(float).astype(int)
    counts = np.bincount(ages - ages.min())
    cases = [("ranges of Adult's ages", LinearQueries.ranges(len(counts), 1.0, 1e-6), counts)]
    for name, frame in (("Adult", adult), ("COMPAS", compas)):
        codes = [np.unique(c, return_inverse=True) for c in frame.values()]
        cells = np.ravel_multi_index([c[1] for c in codes], [len(c[0]) for c in codes])
        x = np.bincount(cells, minlength=int(np.prod([len(c[0]) for c in codes])))
        for order in (2, 3):
            if len(frame) >= order:
                domain = {column: c[0] for column, c in zip(frame, codes, strict=True)}
                cases.append(
                    (f"{order}-way marginals of {name}", LinearQueries.marginals(domain, order, 1.0, 1e-6), x)
                )
    for name, p, x in cases[1:2] if quick else cases:
        truth = p.workload @ x
        cells = [name, f"{len(truth):,} of {len(x)}", f"{np.median(truth):,.0f}"]
        for method in ("fixed-point", "identity", "workload", "hierarchical"):
            s = p.solve(method, **({"time_limit": 60.0, "gap": 1e-3} if method == "fixed-point" else {}))
            gap = f" (within {1 - s.bound / s.objective:.0e})" if method == "fixed-point" else ""
            cells.append(f"{s.objective:.2f}{gap}")
        rows.append(cells)
        progress(*cells)
    head = [
        "workload",
        "queries of counts",
        "median answer",
        "fixed point",
        "identity",
        "workload",
        "hierarchical",
    ]
    note = (
        "Root mean square error of the worst query at epsilon 1, delta 1e-6, one person added or removed.\n\n"
    )
    return note + table(head, rows), []


def draws(quick: bool) -> tuple[str, list[Row]]:
    rows = []
    real_noise = GeneralizedGaussian(shape=4.0, scale=270.5318)
    whole = real_noise.on_integers()
    n = 10**5 if quick else 10**6
    _, simulated = timed(lambda: real_noise.sample(n, Simulated(0)))
    _, secure = timed(lambda: whole.sample(n))
    rows.append([f"{n:,}", f"{simulated:.3g} s", f"{secure:.3g} s", f"{whole.total_variation:.1e}"])
    cells = {}
    try:
        from forcopt.privacy import AdditiveMechanism, Gaussian, Secure

        many = 2000
        _, peer = timed(lambda: AdditiveMechanism(Gaussian(scale=100.0))._send([0.0] * many, Secure()))
        cells = {"opendp": peer / many}
    except ImportError:
        pass
    headlines = []
    if cells:
        rows[0].append(f"{cells['opendp'] * 1e6:.3g} us each")
        headlines = [
            row(
                f"{n:,} secure whole noises, p = 4",
                f"{secure:.3g} s",
                f"OpenDP's Gaussian {cells['opendp'] * 1e6:.3g} us each",
                f"{cells['opendp'] * n / secure:.0f}",
            )
        ]
    else:
        rows[0].append("not installed")
    head = ["draws, p = 4", "simulated, real", "secure, whole", "total variation of one", "OpenDP's Gaussian"]
    return table(head, rows), headlines


PARTS = {
    "Accounting": accounting,
    "Laws": laws,
    "The lattice": lattice,
    "Factorizations": factorizations,
    "Peers": peers,
    "Real tables": real,
    "Draws": draws,
}

if __name__ == "__main__":
    options = parser(__doc__, *PARTS).parse_args()
    page = Page(
        "Counting queries",
        options.out,
        "forcopt",
        "numpy",
        "scipy",
        "dp-accounting",
        note="Times are of the processor.",
    )
    page.run({name: PARTS[name] for name in options.parts}, options.quick)
