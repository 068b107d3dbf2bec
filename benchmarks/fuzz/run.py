"""Random small models on all backends, against exact oracles, for a chosen time and from any seed.

    python benchmarks/fuzz/run.py --out benchmarks/fuzz/results.md --seconds 600 --seed 1

Campaigns: linear programs (oracle: rational simplex with Farkas proofs and rays), integer programs (all
points of the box), convex quadratic programs (all faces of the box, in fractions), balls and halfspaces,
largest eigenvalues (closed forms), lexicographic and leximin objectives and lazy families over integers (all
points); and of every problem that has a file in ``campaigns``, by all its methods.
A status OPTIMAL, INFEASIBLE or UNBOUNDED that is not true, or an optimum off by more than the backend's
accuracy allows, is wrong; a failure that says so is counted apart. A wrong answer is printed with its seed:
``--only CAMPAIGN:SEED`` repeats it. ``--quick`` runs ten seconds.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from flint import fmpq

import forcopt as fo
from benchmarks.fuzz import campaigns
from benchmarks.fuzz.case import ProblemCase, answers
from benchmarks.report import Page, parser, progress, row, table
from forcopt.backends import backends
from forcopt.compile import compile_model
from forcopt.compile.capabilities import Capabilities
from forcopt.loops.exact_lp import LinearProgram, exact_optimum, farkas, recession

INFINITY = float("inf")
Random = np.random.Generator


@dataclass(frozen=True)
class Case:
    """A model, the backends that take it, and the truth.

    Attributes
    ----------
    status : str
        As `fo.Status` is spelled; ``unknown`` if the oracle could not tell.
    value : float
        Of the (last) objective, if it is optimal.
    """

    model: fo.Model
    takers: tuple[str, ...]
    status: str
    value: float = float("nan")


def linear(rng: Random) -> Case:
    """A linear program, often degenerate, infeasible or unbounded."""
    n, rows = int(rng.integers(1, 6)), int(rng.integers(0, 6))
    m = fo.Model("linear")
    low, high = np.sort(rng.integers(-4, 5, size=(2, n)), axis=0).astype(float)
    low[rng.random(n) < 0.4], high[rng.random(n) < 0.4] = -INFINITY, INFINITY
    x = m.variable("x", n, lower=low, upper=high)
    scale = 2.0 ** rng.integers(-7, 8) if rng.random() < 0.2 else 1.0  # loses no bit
    matrix = scale * rng.integers(-4, 5, size=(rows, n)) * (rng.random((rows, n)) < 0.7)
    ends = np.sort(scale * rng.integers(-9, 10, size=(2, rows)), axis=0)
    ends[0, rng.random(rows) < 0.5] = -INFINITY
    ends[1, rng.random(rows) < 0.4] = INFINITY
    if rows:
        m.subject_to((matrix @ x).between(ends[0], ends[1]))
    m.minimize(rng.integers(-4, 5, size=n) @ x)
    lp = LinearProgram.of(compile_model(m, Capabilities(frozenset({"rows"}))))
    found = exact_optimum(lp)
    takers = ("highs", "glop", "clarabel", "scip")
    if found.proved:
        return Case(m, takers, "optimal", float(found.value))
    if farkas(lp) is not None:
        return Case(m, takers, "infeasible")
    feasible = exact_optimum(LinearProgram(**{**vars_of(lp), "cost": [fmpq(0)] * n}))
    ray = exact_optimum(recession(lp))
    if feasible.point is not None and ray.value is not None and ray.value < 0:
        return Case(m, takers, "unbounded")
    return Case(m, takers, "unknown")


def vars_of(lp: LinearProgram) -> dict[str, object]:
    """The fields of a program."""
    return {name: getattr(lp, name) for name in lp.__dataclass_fields__}


def box(rng: Random) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Integer points of a box, and rows ``matrix @ x <= side`` that some of them satisfy."""
    n, rows = int(rng.integers(1, 5)), int(rng.integers(0, 5))
    low = rng.integers(-3, 2, size=n)
    high = low + rng.integers(0, 4, size=n)
    points = np.array(list(product(*(range(a, b + 1) for a, b in zip(low, high, strict=True)))))
    matrix, side = rng.integers(-5, 6, size=(rows, n)), rng.integers(-6, 9, size=rows)
    return low, high, points[(points @ matrix.T <= side).all(axis=1)], matrix, side


def integer(rng: Random) -> Case:
    """A pure integer program."""
    low, high, points, matrix, side = box(rng)
    m = fo.Model("integer")
    x = m.variable("x", len(low), lower=low, upper=high, integer=True)
    cost = rng.integers(-9, 10, size=len(low))
    if len(side):
        m.subject_to(matrix @ x <= side)
    m.minimize(cost @ x)
    takers = ("highs", "scip", "gscip", "cp-sat")
    if not len(points):
        return Case(m, takers, "infeasible")
    return Case(m, takers, "optimal", float((points @ cost).min()))


def lazy(rng: Random) -> Case:
    """The same with rows that only an oracle knows."""
    low, high, points, matrix, side = box(rng)
    m = fo.Model("lazy")
    x = m.variable("x", len(low), lower=low, upper=high, integer=True)
    cost = rng.integers(-9, 10, size=len(low))

    def separate(value: Callable[..., np.ndarray]) -> object:
        activity = matrix @ value(x)
        for i in np.flatnonzero(activity > side + 1e-6):
            yield matrix[i] @ x <= side[i]

    m.lazy(separate)
    m.minimize(cost @ x)
    takers = ("highs", "scip", "gscip", "cp-sat")
    if not len(points):
        return Case(m, takers, "infeasible")
    return Case(m, takers, "optimal", float((points @ cost).min()))


def lexicographic(rng: Random) -> Case:
    """Objectives in order of priority, or a leximin, over integers; the value is that of the last stage."""
    low, high, points, matrix, side = box(rng)
    m = fo.Model("lexicographic")
    x = m.variable("x", len(low), lower=low, upper=high, integer=True)
    if len(side):
        m.subject_to(matrix @ x <= side)
    weights = rng.integers(-4, 5, size=(int(rng.integers(2, 4)), len(low)))
    sorted_too = bool(rng.random() < 0.5)
    if sorted_too:
        m.leximin(weights @ x)
    else:
        m.lexicographic([fo.minimize(w @ x) for w in weights])
    takers = ("highs", "scip", "cp-sat")
    if not len(points):
        return Case(m, takers, "infeasible")
    if sorted_too:
        best = max(tuple(np.cumsum(np.sort(weights @ p)).tolist()) for p in points)
    else:
        best = min(tuple((weights @ p).tolist()) for p in points)
    return Case(m, takers, "optimal", float(best[-1]))


def quadratic(rng: Random) -> Case:
    """A convex quadratic program in a box of two variables; its optimum is on a face, in fractions."""
    m = fo.Model("quadratic")
    low = rng.integers(-3, 1, size=2)
    high = low + rng.integers(0, 5, size=2)
    factor, shift = rng.integers(-3, 4, size=(2, 2)), rng.integers(-3, 4, size=2)
    cost = rng.integers(-4, 5, size=2)
    x = m.variable("x", 2, lower=low, upper=high)
    m.minimize(fo.sum_squares(factor @ x + shift) + cost @ x)
    q = [[2 * int(factor[:, i] @ factor[:, j]) for j in range(2)] for i in range(2)]
    c = [int(2 * factor[:, i] @ shift + cost[i]) for i in range(2)]

    def value(p: tuple[Fraction, Fraction]) -> Fraction:
        square = sum(Fraction(q[i][j], 2) * p[i] * p[j] for i in range(2) for j in range(2))
        return square + c[0] * p[0] + c[1] * p[1] + int(shift @ shift)

    found = [(Fraction(int(a)), Fraction(int(b))) for a in (low[0], high[0]) for b in (low[1], high[1])]
    for i in range(2):  # edges: the other variable is at an end
        for end in (low[1 - i], high[1 - i]):
            if q[i][i]:
                at = Fraction(-(c[i] + q[i][1 - i] * int(end)), q[i][i])
                found.append((at, Fraction(int(end))) if i == 0 else (Fraction(int(end)), at))
    determinant = q[0][0] * q[1][1] - q[0][1] ** 2
    if determinant:
        found.append(
            (
                Fraction(q[0][1] * c[1] - q[1][1] * c[0], determinant),
                Fraction(q[0][1] * c[0] - q[0][0] * c[1], determinant),
            )
        )
    inside = [p for p in found if all(low[i] <= p[i] <= high[i] for i in range(2))]
    return Case(m, ("clarabel", "highs", "osqp", "scip"), "optimal", float(min(map(value, inside))))


def ball(rng: Random) -> Case:
    """The least ``u @ x`` above d in a ball: d, the edge of the ball, or nothing."""
    n = int(rng.integers(1, 5))
    center, u = rng.integers(-5, 6, size=n), rng.integers(-4, 5, size=n)
    u[0] = u[0] or 1
    radius, least = int(rng.integers(1, 6)), int(rng.integers(-30, 31))
    m = fo.Model("ball")
    x = m.variable("x", n)
    m.subject_to(fo.norm(x - center) <= radius, u @ x >= least)
    m.minimize(u @ x)
    size = radius * float(np.sqrt(u @ u))
    takers = ("clarabel", "scs", "scip")
    if abs(least - (u @ center + size)) < 1e-3:  # a single point, or nearly none
        return Case(m, takers, "unknown")
    if least > u @ center + size:
        return Case(m, takers, "infeasible")
    return Case(m, takers, "optimal", max(float(least), float(u @ center) - size))


def eigenvalue(rng: Random) -> Case:
    """The least largest eigenvalue of ``A + t B`` for commuting A and B, or a nuclear norm's bound."""
    n = int(rng.integers(2, 5))
    turn, _ = np.linalg.qr(rng.normal(size=(n, n)))
    a, b = rng.integers(-5, 6, size=n).astype(float), rng.integers(-3, 4, size=n).astype(float)
    m = fo.Model("eigenvalue")
    t = m.variable("t", lower=-2, upper=2)
    first, second = turn @ np.diag(a) @ turn.T, turn @ np.diag(b) @ turn.T
    m.minimize(fo.lambda_max((first + first.T) / 2 + t * ((second + second.T) / 2)))
    crossings = [(a[i] - a[j]) / (b[j] - b[i]) for i in range(n) for j in range(i) if b[i] != b[j]]
    values = [float(np.max(a + s * b)) for s in (-2.0, 2.0, *(c for c in crossings if -2 <= c <= 2))]
    return Case(m, ("clarabel", "scs"), "optimal", min(values))


PROBLEMS: dict[str, Callable[[Random], ProblemCase]] = {
    name: make
    for module in pkgutil.iter_modules(campaigns.__path__)
    for name, make in importlib.import_module(f"{campaigns.__name__}.{module.name}").CAMPAIGNS.items()
}
CAMPAIGNS: dict[str, Callable[[Random], Case | ProblemCase]] = {
    "linear": linear,
    "integer": integer,
    "quadratic": quadratic,
    "ball": ball,
    "eigenvalue": eigenvalue,
    "lexicographic": lexicographic,
    "lazy": lazy,
    **PROBLEMS,
}
TOLERANCE = {"scs": 2e-3, "osqp": 1e-3}
"""Relative to the larger of 1 and the optimum; 1e-4 for other backends."""


def verdict(case: Case, backend: str) -> tuple[str, str]:
    """Right, wrong, or no answer; and in words."""
    try:
        s = case.model.solve(backend, time_limit=10)
    except fo.ForcoptError as error:
        return "no answer", f"{type(error).__name__}: {error}"
    words = f"{s.status} {s.objective:.9g} ({s.message}); true: {case.status} {case.value:.9g}"
    if str(s.status) not in ("optimal", "infeasible", "unbounded"):
        return "no answer", words
    if case.status == "unknown":
        return "not decided", words
    if str(s.status) != case.status:
        return "wrong", words
    value = s.stages[-1] if s.stages else float("nan")
    if case.status == "optimal" and not abs(value - case.value) <= TOLERANCE.get(backend, 1e-4) * max(
        1.0, abs(case.value)
    ):
        return "wrong", words
    return "right", words


def runs(case: Case | ProblemCase) -> Iterator[tuple[str, str, str]]:
    """Every run of a case, its verdict and the answers in words."""
    if isinstance(case, ProblemCase):
        yield from answers(case)
    else:
        for backend in case.takers:
            if backend in READY:
                yield backend, *verdict(case, backend)


def campaign(name: str, seeds: list[int], counts: Counter[tuple[str, str, str]]) -> None:
    """Run the models or problems of some seeds by every backend or method that is there."""
    for seed in seeds:
        key = zlib.crc32(name.encode())
        case = CAMPAIGNS[name](np.random.default_rng([key, seed]))
        for run, answer, words in runs(case):
            counts[name, run, answer] += 1
            if answer == "wrong":
                progress(f"WRONG {name}:{seed} by {run}: {words}")
        counts[name, "models", ""] += 1


READY = {name for name, b in backends().items() if b.missing() is None}


def report(counts: Counter[tuple[str, str, str]]) -> str:
    """The table of all counts."""
    rows = []
    for name in CAMPAIGNS:
        for backend in sorted({b for c, b, _ in counts if c == name and b != "models"}):
            cells = [counts[name, backend, a] for a in ("right", "wrong", "no answer", "not decided")]
            rows.append((name, counts[name, "models", ""], backend, *cells))
    return table(["campaign", "models", "run", "right", "wrong", "no answer", "not decided"], rows)


def main() -> None:
    """Run all campaigns in turns until the time is over."""
    options = parser(__doc__)
    options.add_argument("--seconds", type=float, default=600.0)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", help="CAMPAIGN:SEED, to repeat one model")
    options.add_argument("--campaigns", default=",".join(CAMPAIGNS), help="names, with commas between")
    given = options.parse_args()
    counts: Counter[tuple[str, str, str]] = Counter()
    if given.only:
        name, _, seed = given.only.partition(":")
        campaign(name, [int(seed)], counts)
        print(report(counts))
        return
    seconds, began, batch, turn = 10.0 if given.quick else given.seconds, time.monotonic(), 5, 0
    page = Page("Random models against exact oracles", given.out, "forcopt", "highspy", "ortools", "cvxpy")
    while time.monotonic() - began < seconds:
        first = 1_000_003 * given.seed + batch * turn
        for name in given.campaigns.split(","):
            campaign(name, list(range(first, first + batch)), counts)
        turn += 1
    models = sum(n for (_, b, _), n in counts.items() if b == "models")
    answers = Counter({a: sum(n for (_, b, x), n in counts.items() if x == a) for a in ("right", "wrong")})
    solves = sum(n for (_, b, _), n in counts.items() if b != "models")
    page.write(
        f"Seed {given.seed}, {seconds:.0f} s: {models:,} models, {solves:,} solves.\n\n{report(counts)}"
    )
    page.headline(
        [
            row(
                f"{models:,} random models, {solves:,} solves",
                f"{answers['wrong']} wrong answers",
                "exact oracles",
            )
        ]
    )


if __name__ == "__main__":
    main()
