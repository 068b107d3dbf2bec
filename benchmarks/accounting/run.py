"""Runs the benchmark of privacy accounting beside dp-accounting and OpenDP, and writes a Markdown table.

    python benchmarks/accounting/run.py --out benchmarks/accounting/results.md

Nothing is random. ``--quick`` does a part of each table.
"""

from __future__ import annotations

import math
import sys
import time
from functools import reduce
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.report import Page, Row, parser, progress, row, table
from forcopt.privacy import (
    AdditiveMechanism,
    ApproximateDP,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    GeneralizedGaussian,
    Laplace,
    Ledger,
    PoissonSample,
    Profile,
    calibrate,
)

DELTA = 1e-6
TINY = 1.13e-18


def timed(call, repeats: int = 1):
    """The result and the least seconds of the processor."""
    best = math.inf
    for _ in range(repeats):
        began = time.process_time()
        out = call()
        best = min(best, time.process_time() - began)
    return out, best


def sampled(scale: float, rate: float) -> Profile:
    """Of a Gaussian on a Poisson sample."""
    return PoissonSample(rate=rate).amplify(Gaussian(scale=scale).profile(1))


def narrow(profile: Profile, upper: float, delta: float) -> float:
    """How far the certified lower bound is below the upper one, to a factor of 2."""
    width = 1e-7
    while width < 1 and profile.bracket(upper - width, 1e-4).lower <= delta:
        width *= 2
    return width


def compositions(quick: bool) -> tuple[str, list[Row]]:
    from dp_accounting.pld import privacy_loss_distribution as pld

    def gaussian(scale, rate, count, h):
        one = pld.from_gaussian_mechanism(scale, value_discretization_interval=h, sampling_prob=rate)
        return one.self_compose(count)

    def laplaces(scales, h):
        parts = [pld.from_discrete_laplace_mechanism(1 / s, value_discretization_interval=h) for s in scales]
        return reduce(lambda a, b: a.compose(b), parts)

    cases = [(1.0, 0.01, 1000)] if quick else [(1.0, 0.01, 1000), (0.8, 0.004, 15_000), (2.0, 0.05, 3000)]
    todo = [
        (
            f"Gaussian {s}, Poisson samples of rate {q}, {k:,} times",
            lambda s=s, q=q, k=k: sampled(s, q) ** k,
            lambda h, s=s, q=q, k=k: gaussian(s, q, k, h),
            DELTA,
        )
        for s, q, k in cases
    ]
    tiny = (4.0, 0.00033, 10_000)
    name = f"Gaussian {tiny[0]}, Poisson samples of rate {tiny[1]}, {tiny[2]:,} times, delta {TINY:g}"
    todo.append((name, lambda: sampled(*tiny[:2]) ** tiny[2], lambda h: gaussian(*tiny, h), TINY))
    for scales in ([2.0 + 0.37 * i for i in range(12)], [10.0 + 0.37 * i for i in range(50)]):
        todo.append(
            (
                f"{len(scales)} different discrete Laplace noises",
                lambda scales=scales: Profile.together(DiscreteLaplace(scale=s).profile(1) for s in scales),
                lambda h, scales=scales: laplaces(scales, h),
                DELTA,
            )
        )
    sampled(1.0, 0.5).epsilon(DELTA)  # the first call imports
    rows, headlines = [], []
    for name, ours, theirs, delta in todo:
        profile = ours()
        found, seconds = timed(lambda: profile.epsilon(delta))  # noqa: B023
        width = narrow(profile, found, delta)
        peer, taken = timed(lambda: theirs(1e-4).get_epsilon_for_delta(delta))  # noqa: B023
        cells = [
            name,
            f"{found:.7f}",
            f"{width:.1e}",
            f"{seconds:.2f} s",
            f"{peer:.7f}",
            f"{taken:.2f} s",
        ]
        rows.append(cells)
        progress(*cells)
        headlines.append(
            row(
                f"epsilon at delta {delta:g}: {name}",
                f"{found:.6f}, a bracket of {width:.1e}, {seconds:.2f} s",
                f"dp-accounting {peer:.6f}, {taken:.2f} s",
                f"{taken / seconds:.1f}",
            )
        )
    note = "dp-accounting rounds losses up to multiples of 1e-4, and gives no lower end.\n\n"
    head = ["composition", "epsilon", "bracket at most", "time", "dp-accounting", "time"]
    return note + table(head, rows), headlines


def gaussians(quick: bool) -> tuple[str, list[Row]]:
    """Beside OpenDP, whose curve for zCDP is a bound; ours is that of the law."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain, metric = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    rows, headlines = [], []
    for count in (1, 10) if quick else (1, 10, 100):
        scale = 4.0 * math.sqrt(count)
        one = dp.m.make_gaussian(domain, metric, scale=scale)
        together = dp.c.make_composition([one] * count) if count > 1 else one
        curve = dp.c.make_zCDP_to_approxDP(together)
        peer, taken = timed(lambda: curve.map(1.0).epsilon(DELTA))  # noqa: B023
        found, seconds = timed(lambda: (Gaussian(scale=scale).profile(1) ** count).epsilon(DELTA))  # noqa: B023
        cells = [f"{count} Gaussians of scale {scale:g}", f"{found:.6f}", f"{1000 * seconds:.1f} ms"]
        cells += [f"{peer:.6f}", f"{1000 * taken:.1f} ms"]
        rows.append(cells)
        progress(*cells)
        headlines.append(
            row(
                f"epsilon at delta {DELTA:g}: {cells[0]}",
                f"{cells[1]}, {cells[2]}",
                f"OpenDP {cells[3]}, {cells[4]}",
                f"{taken / max(seconds, 1e-6):.1f}",
            )
        )
    note = "OpenDP composes the rho of each part, and converts the sum to (epsilon, delta).\n\n"
    return note + table(["composition", "epsilon", "time", "OpenDP", "time"], rows), headlines


def calibrations(quick: bool) -> tuple[str, list[Row]]:
    """The least generalized Gaussian noise for seven numbers that all change by 1."""
    rows, headlines = [], []
    for shape in (3.0, 4.0) if quick else (1.5, 3.0, 4.0, 6.5):
        budget = ApproximateDP(1.0, DELTA)
        found, seconds = timed(
            lambda: calibrate(GeneralizedGaussian, budget, norm="linf", dimension=7, shape=shape)  # noqa: B023
        )
        cells = [f"{shape:g}", f"{found.noise.scale:.6f}", f"{seconds:.2f} s"]
        rows.append(cells)
        progress(*cells)
        headlines.append(row(f"calibrate noise of shape {shape:g} for 7 numbers", f"{cells[1]}, {cells[2]}"))
    return table(["shape", "scale", "time"], rows), headlines


def ledger(quick: bool) -> tuple[str, list[Row]]:
    kinds = {
        "Laplace, discrete Laplace and discrete Gaussian": [
            AdditiveMechanism(kind(scale=20.0 + i))
            for i in range(17)
            for kind in (Laplace, DiscreteLaplace, DiscreteGaussian)
        ],
        "Gaussians on Poisson samples": [sampled(2.0, 0.01 + 0.001 * i) for i in range(50)],
    }
    rows, headlines = [], []
    for name, releases in kinds.items():
        account, times = Ledger(ApproximateDP(20.0, DELTA)), []
        for release in releases[: 10 if quick else 50]:
            times.append(timed(lambda: account.spend(release))[1])  # noqa: B023
        spent, seconds = timed(account.spent)
        cells = [name, len(times), f"{1000 * max(times):.0f} ms", f"{spent:.6f}", f"{seconds:.2f} s"]
        rows.append(cells)
        progress(*cells)
        headlines.append(
            row(
                f"a ledger of {len(times)} different releases: {name}",
                f"a spend at most {1000 * max(times):.0f} ms, the epsilon of all {seconds:.2f} s",
            )
        )
    head = ["releases", "number", "longest spend", "epsilon of all", "time"]
    return table(head, rows), headlines


PARTS = {
    "Compositions": compositions,
    "Beside OpenDP": gaussians,
    "Calibration": calibrations,
    "A ledger": ledger,
}

if __name__ == "__main__":
    options = parser(__doc__, *PARTS).parse_args()
    page = Page(
        "Privacy accounting",
        options.out,
        "forcopt",
        "numpy",
        "scipy",
        "dp-accounting",
        "opendp",
        note="Times are of the processor.",
    )
    page.run({name: PARTS[name] for name in options.parts}, options.quick)
