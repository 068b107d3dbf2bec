"""The best worst-case ratio of any rule, against an oracle."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from scipy.optimize import linprog

from forcopt.backends import backends
from forcopt.errors import DeclarationError
from forcopt.models import CompetitiveRatio
from forcopt.models.fair_auctions import PiecewiseStability, PowerStability

LINEAR = [n for n in ("highs", "highs:ipm", "clarabel", "glop", "scip") if backends()[n].missing() is None]


def best_ratio(levels, n, beta, f):
    """All profiles of the grid, no symmetry: one variable for each profile, ad and slot; all pairs.

    The grid holds several scales of each profile up to a power of its step; a rule need not be scale-free.
    """
    profiles = list(product(levels, repeat=n))
    k = len(beta)
    size = len(profiles) * n * k + 1

    def at(s, i, j):
        return (s * n + i) * k + j

    rows, limits, E, e = [], [], [], []
    for s, u in enumerate(profiles):
        for j in range(k):
            row = np.zeros(size)
            row[[at(s, i, j) for i in range(n)]] = 1
            E.append(row)
            e.append(1)
        for i in range(n):
            row = np.zeros(size)
            row[[at(s, i, j) for j in range(k)]] = 1
            rows.append(row)
            limits.append(1)
        row = np.zeros(size)
        row[-1] = sum(x * b for x, b in zip(sorted(u, reverse=True), beta, strict=False))
        for i in range(n):
            for j in range(k):
                row[at(s, i, j)] = -u[i] * beta[j]
        rows.append(row)
        limits.append(0)
        for t, w in enumerate(profiles):
            if s == t:
                continue
            # The least distance over all scales of the other profile.
            logs = [np.log(a / b) for a, b in zip(u, w, strict=True)]
            d = float(f(np.exp((max(logs) - min(logs)) / 2)))
            for i in range(n):
                for j in range(k):
                    row = np.zeros(size)
                    row[[at(s, i, h) for h in range(j + 1)]] = 1
                    row[[at(t, i, h) for h in range(j + 1)]] = -1
                    rows.append(row)
                    limits.append(d)
    cost = np.zeros(size)
    cost[-1] = -1
    found = linprog(cost, A_ub=np.array(rows), b_ub=limits, A_eq=np.array(E), b_eq=e, bounds=(0, 1))
    return -found.fun


@pytest.mark.parametrize(
    ("n", "beta", "levels", "f"),
    [
        (2, [1.0], [0.3, 0.6, 1.0], 1.0),
        (2, [1.0, 0.4], [0.3, 0.6, 1.0], 0.5),
        (3, [1.0], [0.25, 0.5, 1.0], 1.0),
        (3, [1.0, 1.0], [0.25, 0.5, 1.0], 0.4),
        (3, [1.0, 0.5], [0.4, 1.0], PiecewiseStability(ratios=[1.0, 3.0], bounds=[0.0, 0.6])),
    ],
)
def test_symmetric_rules_suffice(n, beta, levels, f):
    function = PowerStability(ell=f) if isinstance(f, float) else f
    # The oracle has all profiles of the levels; the problem those whose largest value is the top level, and
    # each other profile is, up to scale, on a grid with the quotients of levels.
    quotients = sorted({round(a / b, 12) for a in levels for b in levels if a <= b})
    best = best_ratio(levels, n, beta, function)
    p = CompetitiveRatio(ads=n, slots=beta, stability=function, levels=quotients)
    finer = p.solve().objective
    top = p.replace(levels=levels).solve().objective
    assert (
        finer - 1e-6 <= best <= top + 1e-6
    )  # profiles of the oracle: more than the top's, fewer than the finer's
    if len(quotients) == len(levels):
        assert finer == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("backend", LINEAR)
def test_ratio_agrees_on_every_backend(backend):
    p = CompetitiveRatio(ads=3, slots=[1.0, 0.6], stability=0.7, levels=np.geomspace(0.3, 1, 5))
    reference = p.solve("lp").objective
    for method in ("cuts", "lp"):
        s = p.solve(method, backend=backend)
        assert s.objective == pytest.approx(reference, abs=1e-5) and not s.evaluation.violations
    rule = p.solve("inverse-proportional")
    assert rule.objective <= reference + 1e-7 and not rule.evaluation.violations
    assert rule.objective >= 1 - rule.guarantee - 1e-9


def test_distances_are_the_least_over_permutations():
    p = CompetitiveRatio(ads=4, slots=[1.0], stability=1.0, levels=[0.2, 0.5, 1.0])
    D = p.distances.reshape(len(p.profiles), 4, len(p.profiles), 4)
    rng = np.random.default_rng(1)
    for _ in range(60):
        a, b = rng.integers(len(p.profiles), size=2)
        i, m = rng.integers(4, size=2)
        least = np.inf
        for order in permutations(range(4)):
            if order[i] == m:
                logs = np.log(p.profiles[a]) - np.log(p.profiles[b][list(order)])
                least = min(least, logs.max() - logs.min())
        assert D[a, i, b, m] == pytest.approx(1 - np.exp(-least), abs=1e-12)


def test_slots_that_are_all_or_nothing():
    full = CompetitiveRatio(ads=2, slots=[1.0, 1.0], stability=1.0, levels=[0.5, 1.0])
    assert full.solve().objective == pytest.approx(1.0)
    none = full.replace(slots=[])
    assert none.solve().objective == 1.0


LEVELS = {"ads": 2, "slots": [1], "stability": 1.0, "levels": [0.5, 1]}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: CompetitiveRatio(**LEVELS | {"levels": [0, 1]}),
            r"array\[0\] is 0; a level must be above 0",
        ),
        (lambda: CompetitiveRatio(**LEVELS | {"levels": []}), "at least one"),
        (lambda: CompetitiveRatio(**LEVELS | {"ads": 1}), "ads is 1"),
        (lambda: CompetitiveRatio(**LEVELS | {"slots": [1, 1, 1]}), "3 for 2 ads"),
        (
            lambda: CompetitiveRatio(**LEVELS | {"ads": 8, "levels": np.geomspace(0.1, 1, 9)}),
            "can be compared",
        ),
        (lambda: CompetitiveRatio(**LEVELS).evaluate(np.zeros((1, 2, 1))), "the decision has shape"),
    ],
)
def test_bad_input_is_named(make, words):
    with pytest.raises(DeclarationError, match=words):
        make()
