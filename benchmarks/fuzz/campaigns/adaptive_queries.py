"""Query schedules against all sets of queries; plans by formula and local search."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import exp, expm1, log, log1p, sqrt

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtri

from benchmarks.fuzz.case import ProblemCase
from forcopt.models import AccuracyPlan, QuerySchedule
from forcopt.models.adaptive_queries import (
    DataModel,
    DecayingCorrelation,
    IndependentBlocks,
    NaiveComposition,
    StreamedBlocks,
)

Array = np.ndarray
Pair = tuple[int, int]
KINDS = ("blocks", "streamed", "naive", "general", "sliding")


def restriction(rng: np.random.Generator) -> tuple[str, int, int, DataModel]:
    """A kind of data model, its positions and width, and the model."""
    kind, m = str(rng.choice(KINDS)), int(rng.integers(1, 9))
    d = int(rng.integers(0, 4)) if kind in ("general", "sliding") else 0
    if kind in ("general", "sliding"):
        return kind, m, d, DecayingCorrelation(m, 0.5, d, kind)  # type: ignore[arg-type]
    plain = {"blocks": IndependentBlocks, "streamed": StreamedBlocks, "naive": NaiveComposition}
    return kind, m, d, plain[kind](m)


def queries(rng: np.random.Generator, kind: str, m: int, d: int, most: int) -> list[Pair]:
    """Intervals that the data model allows; often some are alike."""
    count = int(rng.integers(1, most + 1))
    span = {"general": d, "sliding": d, "naive": m}.get(kind, 0)
    first = rng.integers(1, m + 1, count)
    last = np.minimum(first + rng.integers(0, span + 1, count), m)
    pairs = [(int(a), int(b)) for a, b in zip(first, last, strict=True)]
    if count > 2 and rng.random() < 0.4:
        pairs[1] = pairs[2] = pairs[0]
    return pairs


def touches(kind: str, m: int, d: int, pair: Pair) -> Array:
    """Which windows a query touches, by the windows' definition, shape ``(m,)``."""
    reach = {"general": (2 * d, 2 * d), "sliding": (2 * d, d), "streamed": (1, 0), "naive": (m, m)}
    behind, ahead = reach.get(kind, (0, 0))
    return np.array([pair[0] <= i + ahead and pair[1] >= i - behind for i in range(1, m + 1)])


def passed(kind: str, d: int, earlier: Pair, later: Pair) -> bool:
    """Whether the order of the stream excludes the later query after the earlier one."""
    if kind == "streamed":
        return later[0] < earlier[1]
    return kind == "sliding" and later[0] <= earlier[1] - d


def has_order(kind: str, d: int, pairs: list[Pair]) -> bool:
    """Whether some order of these queries is allowed."""
    left = list(pairs)
    while left:
        for k, pair in enumerate(left):
            if not any(passed(kind, d, pair, other) for other in left[:k] + left[k + 1 :]):
                del left[k]
                break
        else:
            return False
    return True


def schedule(rng: np.random.Generator) -> ProblemCase:
    """Equal costs, costs at the edge of the budget, tiny and huge weights, a second budget."""
    kind, m, d, model = restriction(rng)
    pairs = queries(rng, kind, m, d, 8)
    q = len(pairs)
    budget = Fraction(str(rng.choice(["1", "0.3", "0.7", "2.5", "0.001", "1/3"])))
    style = int(rng.integers(4))
    if style == 0:
        shares = [Fraction(1, int(rng.integers(1, 12)))] * q
    elif style == 1:
        shares = [Fraction(1, int(k)) for k in rng.integers(1, 7, q)]
    elif style == 2:
        shares = [Fraction(int(k), 20) for k in rng.integers(1, 25, q)]
    else:
        shares = [Fraction(int(k), 1000) for k in rng.integers(1, 1300, q)]
    seconds = [Fraction(0)] * q
    costs: list[list[float]] | list[float] = [float(s * budget) for s in shares]
    delta = None
    if rng.random() < 0.25:
        delta = float(rng.choice([1e-6, 0.1]))
        seconds = [Fraction(int(k), 4) for k in rng.integers(0, 6, q)]
        costs = [[float(s * budget), float(t) * delta] for s, t in zip(shares, seconds, strict=True)]
    scale = float(rng.choice([1e-8, 1.0, 1.0, 1e8]))
    weights = [float(w) * scale for w in rng.integers(0, 5, q)]
    sets = np.array([touches(kind, m, d, pair) for pair in pairs])
    value = 0.0
    for chosen in (list(c) for r in range(q + 1) for c in combinations(range(q), r)):
        total = sum(weights[j] for j in chosen)
        if total <= value:
            continue
        fits = all(
            sum(part[j] for j in chosen if sets[j, i]) <= 1 for part in (shares, seconds) for i in range(m)
        )
        if fits and has_order(kind, d, [pairs[j] for j in chosen]):
            value = total
    p = QuerySchedule(model, np.array(pairs), np.array(weights), np.array(costs), float(budget), delta)
    return ProblemCase(p, "optimal", value, tolerance=1e-6 * min(1.0, scale))


def run_term(links: int, related: float, length: int) -> float:
    """The probability of a run of related links, by enumeration."""
    out = 0.0
    for bits in product((0, 1), repeat=links):
        if "1" * length in "".join(map(str, bits)):
            out += related ** sum(bits) * (1 - related) ** (links - sum(bits))
    return out


def plan(rng: np.random.Generator) -> ProblemCase:
    """The least error, by formula and local search; infeasible where dependence takes all the failure.

    No method claims the optimum: an error below it is wrong, and so is a plan where there is none.
    """
    kind, m, d, model = restriction(rng)
    n, k = int(10 ** rng.uniform(1, 7)), int(10 ** rng.uniform(0, 2))
    failure = float(10 ** rng.uniform(-4, -0.3))
    ahead = {"general": 2 * d, "sliding": d}.get(kind)
    factor, times, answers, room = 2 if kind == "streamed" and m > 1 else 1, m, k, failure
    if kind == "naive":
        times, answers = 1, k * m
    elif ahead is not None and ahead >= m - 1:
        times = 1
    elif ahead is not None:
        run = run_term(m - 1, 0.5, d + 1)
        room -= -expm1(n * log1p(-run)) if run < 1 else 1.0
    laplace = rng.random() < 0.5
    p = AccuracyPlan(model, n, k, failure, "laplace" if laplace else "gaussian")
    if room <= 0:
        return ProblemCase(p, "infeasible", skip=("naive", "split-sample"))

    def error(x: Array) -> float:
        epsilon = exp(min(x[0], 6.0))
        if laplace:
            scale = answers / (n * epsilon)
            beta = min(room * scale / times, 1.0)
            return scale * log(answers / beta) + expm1(factor * epsilon) + times * beta / room
        beta, scale = exp(min(x[1], 0.0)), exp(x[2])
        u = sqrt(answers) / (n * scale)
        delta = exp(log_ndtr(u / 2 - epsilon / u)) - exp(min(epsilon + log_ndtr(-u / 2 - epsilon / u), 0.0))
        missed = sqrt(times * beta) + sqrt(2 * times * factor * max(delta, 0.0))
        return float(-scale * ndtri(beta / (2 * answers)) + expm1(factor * epsilon) + missed**2 / room)

    if laplace:
        best = min(error(np.array([e])) for e in np.linspace(-20, 4, 3000))
    else:
        noise = np.linspace(-16, 2, 25)
        starts = product(np.linspace(-14, 2, 17), (-4.0, -9.0, -14.0, -20.0), noise)
        order = sorted((np.array(x) for x in starts), key=error)[:2]
        best = min(minimize(error, x, method="Nelder-Mead", options={"maxiter": 800}).fun for x in order)
    if best >= 1:
        return ProblemCase(p, "unknown")

    skip = tuple(name for name in ("naive", "split-sample") if kind != "naive" or name == "split-sample")
    return ProblemCase(p, "optimal", best, skip=skip, tolerance=1e-4)


CAMPAIGNS = {
    "query-schedule": schedule,
    "accuracy-plan": plan,
}
