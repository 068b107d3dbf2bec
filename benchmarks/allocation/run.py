"""Runs the benchmark of allocation and of the privacy of sampling designs, and writes a Markdown table.

    python benchmarks/allocation/run.py --out benchmarks/allocation/results.md

Everything is seeded. ``--quick`` does a small part of each table. samplics gets an environment of its own.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from functools import cache, partial
from itertools import combinations, product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import forcopt as fo
from benchmarks.report import MEDIANS, Page, Row, environment, middle, parser, progress, row, table
from forcopt.backends.registry import backends
from forcopt.models import StratifiedAllocation, TightAmplification
from forcopt.models.allocation.instances import random_strata
from forcopt.privacy import RandomizedRounding, SimpleRandomSample
from forcopt.privacy.amplification import (
    PrivacyLoss,
    cluster_sample,
    data_dependent_allocation,
    noisy_statistic,
    poisson_sample,
    random_size,
    randomized_rounding,
    rounded_sizes,
    simple_random_sample,
)
from forcopt.problem import Solution

LIMIT = 30.0  # seconds for one solve
UNREDUCED = 12_000  # binaries; on larger programs HiGHS overruns its time limit by minutes
PEERS = {"samplics": "0.6.1"}


def shown(s: Solution, best: float) -> str:
    """Seconds, and by how much the variance is above the best one."""
    if not s.status.has_solution:
        return f"{s.status} after {s.seconds:.0f} s"
    above = s.objective / best - 1
    return f"{s.seconds:.3g} s" + (f" (+{above:.2g})" if above > 1e-9 else "")


@cache
def peers() -> str:
    """The Python that has samplics."""
    return environment(__file__, PEERS)


def samplics(problems: list[StratifiedAllocation]) -> list[dict]:
    tasks = [
        {"sizes": p.sizes.tolist(), "deviations": p.deviations.tolist(), "sample_size": p.sample_size}
        for p in problems
    ]
    script = Path(__file__).with_name("peer_samplics.py")
    out = subprocess.run(
        [peers(), str(script)], input=json.dumps(tasks), capture_output=True, text=True, check=True
    )
    return json.loads(out.stdout)


# -- allocation --------------------------------------------------------------------------------------------


def by_cones(p: StratifiedAllocation, typical: np.ndarray) -> fo.ModelSolution:
    """The continuous optimum, with reciprocals of sizes in second-order cones."""
    m = fo.Model()
    share = m.variable("share", len(typical), lower=p.floors / typical, upper=p.caps / typical)
    m.subject_to(share @ typical <= p.sample_size)
    each = (p.coefficients[:, 0] / typical) / (p.coefficients[:, 0] / typical).sum()
    m.minimize(fo.inverse(share) @ each)
    return m.solve("clarabel", time_limit=LIMIT)


def scale(quick: bool) -> tuple[str, list[Row]]:
    rows = []
    for backend in ("highs", "clarabel"):
        fo.Model().solve(backend)  # imports it before anything is timed
    for strata in (10, 100, 1_000) if quick else (10, 100, 1_000, 10_000, 100_000):
        p = random_strata(strata, seed=1)
        greedy = middle(partial(p.solve, "greedy"))
        best = greedy.objective
        closed = middle(partial(p.solve, "neyman"))
        binaries = int(np.minimum(p.sizes, p.sample_size).sum())
        large = partial(p.solve, "milp", reduce=False, time_limit=LIMIT)
        whole = middle(large) if binaries <= UNREDUCED else None
        milp = middle(partial(p.solve, "milp", time_limit=LIMIT))
        cones = middle(partial(by_cones, p, closed.decision.sizes))
        theirs = middle(partial(samplics, [p]), lambda run: run[0].get("seconds", 0.0))[0]
        found = {
            "strata": f"{strata:,}",
            "records": f"{p.population:,}",
            "sample": f"{p.sample_size:,.0f}",
            "greedy": shown(greedy, best),
            "water-filling, rounded": shown(closed, best),
            "relaxation gap": f"{1 - closed.bound / best:.2g}",
            "MILP, reduced": shown(milp, best),
            "MILP, a binary a record": shown(whole, best) if whole else "not tried",
            "SOCP (Clarabel), fractions": f"{cones.seconds:.3g} s",
            "samplics, sample": "refuses",
        }
        if "refused" not in theirs:
            found["samplics, sample"] = f"{theirs['seconds']:.3g} s, {sum(theirs['sizes']):,}"
            sampled = row(
                f"{strata:,} strata",
                f"greedy {greedy.seconds:.3g} s, exact",
                f"samplics {theirs['seconds']:.3g} s, rates rounded up, "
                f"{sum(theirs['sizes']) - p.sample_size:,.0f} records more than asked for",
                f"{theirs['seconds'] / greedy.seconds:.2g}",
            )
        rows.append(found)
        progress(*found.values())
    largest = row(
        f"{found['strata']} strata, {found['sample']} records sampled",
        f"greedy {found['greedy']}, water-filling {found['water-filling, rounded']}, "
        f"MILP {found['MILP, reduced']}",
        f"SOCP by Clarabel {found['SOCP (Clarabel), fractions']}; samplics {found['samplics, sample']}",
        f"{cones.seconds / greedy.seconds:.0f} (SOCP / greedy)",
    )
    note = (
        f"In brackets: the relative excess of the variance over the optimum. A solve may take {LIMIT:.0f} "
        "s; unfinished solves show their best point. For samplics the column gives the size of its sample, "
        "which exceeds the given size.\n\n"
    )
    return note + table(found, [r.values() for r in rows]), [largest, sampled]


def every_backend(quick: bool) -> tuple[str, list[Row]]:
    rows = []
    for strata in (10,) if quick else (10, 100):
        p = random_strata(strata, seed=2, largest=300)
        best = p.solve("greedy").objective
        for name, b in backends().items():
            if b.missing() or name in ("pyscipopt", "cp-sat"):
                continue
            fo.Model().solve(name)  # imports it before anything is timed
            kinds, cells = b.capabilities.kinds, [f"{strata:,}", name]
            if not {"rows", "integer"} <= kinds:
                continue
            for options in ({}, {"reduce": False}):
                s = p.solve("milp", backend=name, time_limit=10 if quick else LIMIT, **options)
                cells.append(shown(s, best) + ("" if s.status == "optimal" else " *"))
            rows.append(cells)
            progress(*cells)
    head = ["strata", "backend", "MILP, reduced", "MILP, a binary a record"]
    return table(head, rows) + f"\n\\* not proved optimal in {10 if quick else LIMIT:.0f} s.\n", []


def roundings(quick: bool) -> tuple[str, list[Row]]:
    """Neyman's sizes, rounded: as one line of R does it, and by the library, against the exact optimum."""
    count, rows = 20 if quick else 200, []
    for strata, sampled in ((5, 0.02), (20, 0.02), (20, 0.2), (100, 0.05)):
        rng = np.random.default_rng(strata)
        problems = [random_strata(strata, sampled=sampled, largest=300, seed=rng) for _ in range(count)]
        best = np.array([p.solve("greedy").objective for p in problems])
        found: dict[str, list[np.ndarray | None]] = {}
        spread = [p.sizes * p.deviations for p in problems]
        plain = [p.sample_size * x / x.sum() for p, x in zip(problems, spread, strict=True)]
        found["R: round(m N S / sum(N S))"] = [np.round(x) for x in plain]
        found["R, at most N and at least 1"] = [
            np.clip(np.round(x), 1, p.sizes) for p, x in zip(problems, plain, strict=True)
        ]
        for rounding in ("nearest", "ceiling", "randomized", "largest-remainder"):
            found[f"water-filling, {rounding}"] = [
                p.solve("neyman", rounding=rounding, seed=0).decision.sizes for p in problems
            ]
        found["samplics optimum_mean"] = [
            np.array(a["sizes"]) if "sizes" in a else None for a in samplics(problems)
        ]
        for name, sizes in found.items():
            evaluations = [
                p.evaluate(m) if m is not None else None for p, m in zip(problems, sizes, strict=True)
            ]
            kinds = [{"refused"} if e is None else set(e.violations) for e in evaluations]
            good = np.array([not k for k in kinds])
            over = [e.violations["sample_size"] for e in evaluations if e and "sample_size" in e.violations]
            worse = np.array([e.objective for e in np.array(evaluations)[good]]) / best[good] - 1
            rows.append(
                [
                    f"{strata}, {sampled:.0%}",
                    name,
                    f"{good.mean():.0%}",
                    f"{np.mean([bool(k & {'stratum', 'minimum', 'refused'}) for k in kinds]):.0%}",
                    f"{len(over) / count:.0%}" + (f" (by {np.mean(over):.1f})" if over else ""),
                    f"{np.mean(worse):.2%}" if good.any() else "",
                    f"{worse.max():.2%}" if good.any() else "",
                ]
            )
            progress(*rows[-1])
    head = ["strata, sampled", "rounding", "feasible", "empty or overfull strata, or refused"]
    head += ["sample too large", "variance above the optimum, mean", "largest"]
    note = f"{count} random instances each; the last two columns are over the feasible ones.\n\n"
    return note + table(head, rows), []


# -- amplification -----------------------------------------------------------------------------------------


def random_designs(rng: np.random.Generator, count: int):
    """Designs of each kind with their bounds, the linear program, and the sampled epsilon."""
    for i in range(count):
        epsilon = float(np.exp(rng.uniform(np.log(0.05), np.log(2))))
        n = int(rng.integers(2, 30))
        kind = i % 6
        if kind == 0:
            m = int(rng.integers(1, n))
            options = {"mechanism": "add_remove", "neighbours": ("add_remove", "substitute")[i // 6 % 2]}
            tight = TightAmplification.of(SimpleRandomSample(size=m), n, epsilon, **options)
            yield "simple random (Thm 2, Lemma 16)", simple_random_sample(epsilon, m, n, **options), tight
        elif kind == 1:
            law = rng.dirichlet(np.full(n + 1, 0.3))
            law = np.where(law > 1e-3, law, 0)
            law /= law.sum()
            tight = TightAmplification.random_size(law, epsilon)
            yield "random size (Thm 3, corrected)", random_size(epsilon, law), tight
        elif kind == 2:
            law = rng.dirichlet(np.full(n + 1, 0.3))
            law = np.where(law > 1e-3, law, 0)
            law /= law.sum()
            tight = TightAmplification.random_size(law, epsilon, mechanism="either")
            yield "random size, M private under either", random_size(epsilon, law, mechanism="either"), tight
        elif kind == 3:
            rate = float(rng.choice([0.1, 0.2, 0.25, 0.3, 0.5, 0.7]))
            n = int(rng.integers(math.ceil(1 / rate), 40))
            tight = TightAmplification.of(RandomizedRounding(rate=rate), n, epsilon)
            yield "randomised rounding (Thm 6, this n)", randomized_rounding(epsilon, rate, n), tight
            general = randomized_rounding(epsilon, rate)._replace(lower=0.0)  # which is for the worst n
            yield "randomised rounding (Thm 6, any n)", general, tight
        elif kind == 4:
            sizes = rng.integers(0, 9, int(rng.integers(2, 8)))
            chosen = int(rng.integers(1, len(sizes)))
            tight = TightAmplification.cluster_sample(sizes, chosen, 0, epsilon)
            loss = cluster_sample(epsilon, sizes, chosen, 0)
            yield "clusters (Thms 7 and 8)", loss, tight
            yield "clusters (closed form)", PrivacyLoss(loss.exact, loss.exact, loss.exact, ""), tight
        else:
            rate = float(rng.uniform(0.05, 0.95))
            n = int(rng.integers(2, 12))
            laws = [
                np.array([math.comb(k, j) * rate**j * (1 - rate) ** (k - j) for j in range(k + 1)])
                for k in (n, n + 1)
            ]
            tight = TightAmplification.random_size(laws[0], epsilon, after=laws[1])
            yield "Poisson", poisson_sample(epsilon, rate), tight


def tightness(quick: bool) -> tuple[str, list[Row]]:
    """Bounds over the exact loss, which the linear program gives."""
    seen: dict[str, list[tuple[float, float, float, float]]] = {}
    solved: dict[int, tuple[float, float]] = {}
    count = 30 if quick else 200
    for name, bounds, tight in random_designs(np.random.default_rng(7), count):
        if id(tight) not in solved:
            solved = {id(tight): ((s := tight.solve()).decision.loss, s.seconds)}
        loss, seconds = solved[id(tight)]
        outside = max(bounds.lower - loss, loss - bounds.upper)
        seen.setdefault(name, []).append((bounds.lower / loss, bounds.upper / loss, outside, seconds))
    rows, furthest = [], 0.0
    for name, values in seen.items():
        low, high, outside, seconds = np.array(values).T
        furthest = max(furthest, outside.max())
        rows.append(
            [
                name,
                str(len(values)),
                f"{np.median(low):.4f} ({low.min():.4f})",
                f"{np.median(high):.4f} ({high.max():.4f})",
                f"{max(outside.max(), 0):.1e}",
                f"{np.median(seconds) * 1000:.1f} ms",
            ]
        )
        progress(*rows[-1])
    head = [
        "design",
        "instances",
        "lower bound / loss, median (least)",
        "upper bound / loss, median (largest)",
    ]
    headline = row(
        f"{count} random designs: tight loss by linear program",
        f"outside of no bound by more than {furthest:.1e}",
        "closed forms, corrected",
    )
    return table([*head, "most outside the bounds", "LP, median"], rows), [headline]


def _neyman_sizes(strata: list[list[float]], m: int) -> tuple[int, ...]:
    """What a survey would do that allocates by the data itself."""
    p = StratifiedAllocation(
        sizes=[len(s) for s in strata],
        deviations=[np.std(s, ddof=1) if len(s) > 1 else 0.0 for s in strata],
        sample_size=m,
    )
    return tuple(p.solve("greedy").decision.sizes.astype(int))


def _law(samples: list[tuple[float, list[float]]]) -> tuple[np.ndarray, np.ndarray]:
    """The law of a statistic from samples with their probabilities."""
    found: dict[float, float] = {}
    for probability, values in samples:
        found[sum(values)] = found.get(sum(values), 0.0) + probability
    return np.array(list(found)), np.array(list(found.values()))


def _subsets(values: list[float], size: int) -> list[tuple[float, list[float]]]:
    return [(1 / math.comb(len(values), size), list(c)) for c in combinations(values, size)]


def _within(strata: list[list[float]], sizes: tuple[int, ...]) -> list[tuple[float, list[float]]]:
    parts = [_subsets(s, m) for s, m in zip(strata, sizes, strict=True)]
    return [
        (math.prod(p for p, _ in chosen), [v for _, c in chosen for v in c]) for chosen in product(*parts)
    ]


def real_losses(quick: bool) -> tuple[str, list[Row]]:
    """All samples of all populations with values -1, 0, 1: the exact loss of a noisy sum and a noisy count.

    The mechanism adds Laplace noise of scale 1 / epsilon to the sum of the sampled values or to how many
    there are; both are epsilon-private under adding or removing a record.
    """
    epsilon, n = 1.0, 4 if quick else 6
    rate, rows = 0.4, []
    populations = list(product((-1.0, 0.0, 1.0), repeat=n))

    def worst(samples: Callable, neighbours: Callable) -> float:
        best, laws = 0.0, {}

        def law(population, count):
            key = (population, count)
            if key not in laws:
                drawn = samples(
                    list(map(list, population)) if isinstance(population[0], tuple) else list(population)
                )
                laws[key] = _law([(p, [1.0] * len(v) if count else v) for p, v in drawn])
            return laws[key]

        for population in starts:
            for other in neighbours(population):
                for count in (False, True):
                    loss = noisy_statistic(*law(population, count), *law(other, count), 1 / epsilon)
                    best = max(best, loss)
        return best

    def add(population):
        return [tuple(sorted((*population, v))) for v in (-1.0, 0.0, 1.0)]

    def substitute(population):
        return [tuple(sorted((*population[1:], v))) for v in (-1.0, 0.0, 1.0)] + [
            tuple(sorted((*population[:-1], v))) for v in (-1.0, 0.0, 1.0)
        ]

    starts = sorted({tuple(sorted(p)) for p in populations})
    m = n // 2
    rows.append(["simple random, substitution", worst(lambda p: _subsets(p, m), substitute)])
    tight = (
        TightAmplification.of(SimpleRandomSample(size=m), n, epsilon, mechanism="add_remove")
        .solve()
        .decision.loss
    )
    rows[-1] += [tight, simple_random_sample(epsilon, m, n, mechanism="add_remove").upper]

    def rounding(p):
        law = rounded_sizes(rate, len(p))
        return [(law[k] * q, v) for k in np.flatnonzero(law) for q, v in _subsets(p, int(k))]

    rows.append([f"randomised rounding of {rate:g} n, add/remove", worst(rounding, add)])
    tight = TightAmplification.of(RandomizedRounding(rate=rate), n, epsilon).solve().decision.loss
    rows[-1] += [tight, randomized_rounding(epsilon, rate, n).upper]

    sizes = [round(rate * k) for k in (n, n + 1)]
    rows.append(
        [f"{rate:g} n to the nearest, add/remove", worst(lambda p: _subsets(p, round(rate * len(p))), add)]
    )
    laws = [np.eye(k + 1)[s] for k, s in zip((n, n + 1), sizes, strict=True)]
    tight = TightAmplification.random_size(laws[0], epsilon, after=laws[1]).solve().decision.loss
    rows[-1] += [tight, data_dependent_allocation(epsilon, sizes[:1], sizes[1:]).upper]

    def poisson(p):
        return [
            (rate ** sum(k) * (1 - rate) ** (len(p) - sum(k)), [v for v, t in zip(p, k, strict=True) if t])
            for k in product((0, 1), repeat=len(p))
        ]

    rows.append([f"Poisson, rate {rate:g}, add/remove", worst(poisson, add)])
    rows[-1] += [poisson_sample(epsilon, rate).exact, poisson_sample(epsilon, rate).upper]

    # two strata, in the first of which a record is added; Neyman's sizes follow the data
    half = n // 2
    values = (-1.0, 0.0, 1.0)
    strata = [tuple(sorted(p)) for p in product(values, repeat=half)]
    starts = sorted({(a, b) for a in strata for b in strata})

    def add_first(population):
        return [(tuple(sorted((*population[0], v))), population[1]) for v in values]

    def neyman(p):
        return _within(p, _neyman_sizes(p, m))

    changes = {
        (_neyman_sizes([list(a), list(b)], m), _neyman_sizes([list(c), list(b)], m))
        for a, b in starts
        for c, _ in add_first((a, b))
    }
    rows.append([f"Neyman's {m} of two strata of {half}, add/remove", worst(neyman, add_first)])
    tights = [
        TightAmplification.stratified([half, half], [(x, 1.0)], [(y, 1.0)], epsilon).solve().decision.loss
        for x, y in changes
    ]
    rows[-1] += [max(tights), max(data_dependent_allocation(epsilon, x, y).upper for x, y in changes)]

    sizes = (2, 1, 1) if quick else (2, 2, 1, 1)
    clusters = list(product(*(sorted({tuple(sorted(p)) for p in product(values, repeat=s)}) for s in sizes)))
    starts = clusters

    def one_cluster(p):
        return [(1 / len(p), list(c)) for c in p]

    def add_to_cluster(population):
        return [(tuple(sorted((*population[0], v))), *population[1:]) for v in values]

    rows.append(
        [f"one cluster of sizes {', '.join(map(str, sizes))}, add/remove", worst(one_cluster, add_to_cluster)]
    )
    exact = cluster_sample(epsilon, sizes, 1, 0)
    rows[-1] += [exact.exact, exact.upper]
    text = [[name, *(f"{x:.4f}" for x in numbers)] for name, *numbers in rows]
    head = ["design", "noisy sum or count, worst case", "tight (LP or closed form)", "bound"]
    return f"Epsilon is {epsilon:g}; populations of {n} records.\n\n" + table(head, text), []


PARTS = {
    "Allocation by size": scale,
    "Every backend": every_backend,
    "Rounding Neyman's allocation": roundings,
    "Bounds against the tight loss": tightness,
    "Real losses by enumeration": real_losses,
}


def main() -> None:
    given = parser(__doc__).parse_args()
    used = ("numpy", "scipy", "highspy", "clarabel", "pyscipopt", "ortools")
    page = Page("Allocation, and what sampling does to privacy", given.out, *used, note=MEDIANS)
    page.versions |= PEERS
    page.run(PARTS, given.quick)


if __name__ == "__main__":
    main()
