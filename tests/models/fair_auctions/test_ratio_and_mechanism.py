"""The best worst-case ratio of any rule, and the best truthful stable mechanism, against oracles."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from fair_auctions_oracle import ratio
from scipy.optimize import linprog

from forcopt.backends import backends
from forcopt.errors import DeclarationError
from forcopt.models import CompetitiveRatio, FairMechanism
from forcopt.models.fair_auctions import PiecewiseStability, PowerStability, payments

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


def best_revenue(grid, prior, beta, f, welfare, fill):
    """All bids against all, from the definitions, for scipy."""
    n, k = len(prior), len(beta)
    profiles = list(product(range(len(grid)), repeat=n))
    index = {b: s for s, b in enumerate(profiles)}
    M, paid = len(profiles) * n * k, len(profiles) * n
    size = M + paid

    def at(s, i, j):
        return (s * n + i) * k + j

    rows, limits, E, e = [], [], [], []

    def utility(row, s, i, value, sign):
        for j in range(k):
            row[at(s, i, j)] += sign * value * beta[j]
        row[M + s * n + i] -= sign

    cost = np.zeros(size)
    for s, b in enumerate(profiles):
        chance = np.prod([prior[i][b[i]] for i in range(n)])
        for j in range(k):
            row = np.zeros(size)
            row[[at(s, i, j) for i in range(n)]] = 1
            (E if fill else rows).append(row)
            (e if fill else limits).append(1)
        for i in range(n):
            row = np.zeros(size)
            row[[at(s, i, j) for j in range(k)]] = 1
            rows.append(row)
            limits.append(1)
            row = np.zeros(size)
            utility(row, s, i, grid[b[i]], -1)
            rows.append(row)
            limits.append(0)
            for other in range(len(grid)):
                lie = index[(*b[:i], other, *b[i + 1 :])]
                row = np.zeros(size)
                utility(row, lie, i, grid[b[i]], 1)
                utility(row, s, i, grid[b[i]], -1)
                rows.append(row)
                limits.append(0)
            if welfare:
                for j in range(k):
                    cost[at(s, i, j)] -= chance * grid[b[i]] * beta[j]
            else:
                cost[M + s * n + i] -= chance
        for t, c in enumerate(profiles):
            if f is None or s == t:
                continue
            d = f(ratio([grid[x] for x in b], [grid[x] for x in c]))
            for i in range(n):
                for j in range(k):
                    row = np.zeros(size)
                    row[[at(s, i, h) for h in range(j + 1)]] = 1
                    row[[at(t, i, h) for h in range(j + 1)]] = -1
                    rows.append(row)
                    limits.append(d)
    bounds = [(0, 1)] * M + [(-50, None)] * paid
    found = linprog(
        cost, A_ub=np.array(rows), b_ub=limits, A_eq=np.array(E) if E else None, b_eq=e or None, bounds=bounds
    )
    assert found.status == 0
    return -found.fun


@pytest.mark.parametrize("seed", range(25))
def test_mechanisms_are_best_among_all_truthful_ones(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    k = int(rng.integers(0, n + 1))
    grid = np.cumsum(rng.integers(1, 4, m)).astype(float)
    prior = rng.dirichlet(np.ones(m), size=n)
    beta = np.sort(rng.choice([0.0, 0.5, 1.0], k))[::-1]
    ell = [None, 0.3, 1.0][seed % 3]
    welfare, fill = bool(seed % 2), bool(rng.random() < 0.5)
    p = FairMechanism(
        grid=grid,
        prior=prior,
        slots=beta,
        stability=ell,
        objective="welfare" if welfare else "revenue",
        fill=fill,
    )
    best = (
        best_revenue(grid, prior, beta, None if ell is None else PowerStability(ell=ell), welfare, fill)
        if k
        else 0.0
    )
    for method in ("lp", "cuts"):
        s = p.solve(method)
        assert s.objective == pytest.approx(best, abs=2e-6 * max(1, best)) and not s.evaluation.violations
        assert s.bound <= p.scale + 1e-6
    rule = p.solve("inverse-proportional", ell=ell or 1.0)
    assert not rule.evaluation.violations and rule.objective <= best + 1e-6


@pytest.mark.parametrize("backend", LINEAR)
def test_mechanisms_agree_on_every_backend(backend):
    p = FairMechanism(
        grid=[1, 2, 4], prior=[[0.3, 0.3, 0.4], [0.5, 0.25, 0.25]], slots=[1, 0.5], stability=0.5
    )
    for method in ("lp", "cuts"):
        assert p.solve(method, backend=backend).objective == pytest.approx(p.solve().objective, abs=1e-5)


def test_discrete_payments_come_down_to_myersons_integral():
    grid = np.arange(1, 61) / 20
    p = FairMechanism(grid=grid, prior=np.full((2, 60), 1 / 60), slots=[1.0], stability=1.0)
    d = p.solve("inverse-proportional").decision
    at = 39 * 60 + 19  # values 2 and 1
    assert p.profiles[at].tolist() == [2.0, 1.0]
    exact = payments("inverse-proportional", [2.0, 1.0], [1.0]).payments[0]
    assert (d.charges.payments[at] >= exact).all()
    np.testing.assert_allclose(d.charges.payments[at], exact, atol=0.03)


GRID = {"grid": [1, 2], "prior": [[0.5, 0.5]] * 2, "slots": [1]}
LEVELS = {"ads": 2, "slots": [1], "stability": 1.0, "levels": [0.5, 1]}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: FairMechanism(**GRID | {"grid": [0, 1]}),
            r"array\[0\] is 0; a value of the grid must be above 0",
        ),
        (lambda: FairMechanism(**GRID | {"grid": [2, 1]}), r"array\[1\] is 1; the grid must rise"),
        (lambda: FairMechanism(**GRID | {"prior": [[0.5, 0.6]] * 2}), r"prior\[0\] is \[0.5, 0.6\]"),
        (lambda: FairMechanism(**GRID | {"prior": [[0.5, 0.5], [1.5, -0.5]]}), r"prior\[1\]"),
        (lambda: FairMechanism(**GRID | {"prior": [0.5, 0.5]}), r"prior has shape \(2,\)"),
        (lambda: FairMechanism(**GRID | {"slots": [1, 1, 1]}), "3 for 2 ads"),
        (lambda: FairMechanism(**GRID | {"slots": [0.1, 1]}), r"slots\[1\] is 1, above"),
        (lambda: FairMechanism(**GRID | {"stability": 0}), "ell is 0"),
        (lambda: FairMechanism(**GRID | {"prior": [[0.5, 0.5]] * 13}), "8192 profiles"),
        (lambda: FairMechanism(**GRID).evaluate(np.zeros((4, 2, 1))), "an Allocation with payments"),
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


@pytest.mark.parametrize("unit", [1e-7, 1.0, 1e7])
def test_truthfulness_is_measured_in_shares_of_the_largest_value(unit):
    m = FairMechanism(grid=np.array([1.0, 2.0]) * unit, prior=[[0.5, 0.5]], slots=[1])
    shares = np.array([[[0.5]], [[1.0]]])
    honest = m.evaluate(m.mechanism(shares, np.array([[0.5], [1.5]]) * unit))
    assert honest.feasible
    # The high value gains 0.2 by the low bid, and the low value loses 0.1.
    liar = m.evaluate(m.mechanism(shares, np.array([[0.6], [1.6]]) * unit))
    assert liar.violations == pytest.approx({"participation": 0.05})
    liar = m.evaluate(m.mechanism(shares, np.array([[0.5], [1.7]]) * unit))
    assert liar.violations == pytest.approx({"truthfulness": 0.1})


@pytest.mark.parametrize("method", ["lp", "cuts"])
@pytest.mark.parametrize("backend", ["highs", "clarabel", "glop"])
def test_an_optimal_mechanism_is_feasible_in_any_unit_of_money(method, backend):
    prior = np.random.default_rng(92).dirichlet(np.ones(3), 2)
    for unit in (1.0, 1e4, 1e8):
        m = FairMechanism(grid=np.array([0.01, 3.0, 10.0]) * unit, prior=prior, slots=[1, 0.5], stability=1.0)
        s = m.solve(method, backend=backend)
        assert s.status == "optimal" and s.evaluation.feasible
