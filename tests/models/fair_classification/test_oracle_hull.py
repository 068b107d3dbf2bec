"""Classes known by their oracle alone, inside a user's model: against programs over listed classes."""

import itertools
import time
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression

import forcopt as fo
from forcopt.fairness import (
    ERROR,
    FALSE_POSITIVE,
    SELECTION,
    TRUE_POSITIVE,
    BoundedGroupLoss,
    DemographicParity,
    EqualizedOdds,
    ErrorParity,
    PairwiseFairness,
)
from forcopt.learning import Hypotheses, Hypothesis, Oracle, Stumps
from forcopt.learning.finite import TableRow
from forcopt.models import FairClassification, LexifairClassification
from forcopt.models.fair_classification import Halfspaces, Learner


class OnlyBest(Oracle):
    """The oracle of a class that can be listed, which does not list it; or answers from a third of it."""

    def __init__(self, table, features, seed):
        self.table, self.features, self.exact = table, features, seed is None
        self.rng = np.random.default_rng(seed)

    def best(self, costs):
        count = len(self.table)
        shown = np.arange(count) if self.exact else self.rng.choice(count, max(1, count // 3), replace=False)
        k = int(shown[np.argmin(self.table[shown] @ costs)])
        return Hypothesis(TableRow(k, self.table[k], self.features), self.table[k])


class Unlisted(Hypotheses):
    table: Any
    seed: int | None = None

    def oracle(self, features):
        return OnlyBest(self.table, features, self.seed)


def records(rng, groups=None):
    """Features, labels, groups and all stumps on the features."""
    k = int(rng.integers(2, 5)) if groups is None else groups
    n = int(rng.integers(14, 40))
    X, a = (
        rng.normal(size=(n, 3)).round(1),
        np.append(np.repeat(np.arange(k), 2), rng.integers(0, k, n - 2 * k)),
    )
    y = (X[:, 0] + 0.5 * (a > 0) + rng.normal(size=n) > 0).astype(int)
    y[: 2 * k] = np.tile([0, 1], k)
    cuts = [np.append(np.unique(column), np.inf) for column in X.T]
    above = np.array([column >= c for column, cut in zip(X.T, cuts, strict=True) for c in cut])
    return X, y, a, np.unique(np.vstack([above, ~above]), axis=0).astype(int)


def rates_of(table, y, a):
    """The error of each classifier, and its rates by group, each of shape (K, N)."""
    wrong = np.abs(table - y)

    def rate(values, where):
        return np.array([values[:, where & (a == g)].mean(axis=1) for g in range(a.max() + 1)])

    every = y >= 0
    return {
        "error": wrong.mean(axis=1),
        ERROR: rate(wrong, every),
        SELECTION: rate(table, every),
        TRUE_POSITIVE: rate(table, y == 1),
        FALSE_POSITIVE: rate(table, y == 0),
    }


def least(costs, rows, ones):
    """The optimum of a linear program over mixtures; the columns after those of `ones` are free."""
    count = len(ones[0])
    rows = [(np.append(row, np.zeros(len(costs) - len(row))), limit) for row, limit in rows]
    A, b = (np.array([r for r, _ in rows]), [limit for _, limit in rows]) if rows else (None, None)
    sums = np.hstack([ones, np.zeros((len(ones), len(costs) - count))])
    free = [(0, None)] * count + [(None, None)] * (len(costs) - count)
    found = linprog(costs, A, b, sums, np.ones(len(ones)), bounds=free, method="highs")
    return found.fun if found.status == 0 else None


def apart(rates, tolerance):
    pairs = itertools.permutations(range(len(rates)), 2)
    return [(rates[g] - rates[h], tolerance) for g, h in pairs]


def notion_of(rng, r):
    """A notion, and its rows over the classifiers."""
    tolerance = float(rng.choice([0.0, 0.05, 0.2]))
    kind = [DemographicParity, EqualizedOdds, ErrorParity][rng.integers(3)]
    seen = {
        DemographicParity: [SELECTION],
        EqualizedOdds: [TRUE_POSITIVE, FALSE_POSITIVE],
        ErrorParity: [ERROR],
    }[kind]
    return kind(tolerance), [row for rate in seen for row in apart(r[rate], tolerance)]


def declared(number, **more):
    rng = np.random.default_rng(number)
    X, y, a, table = records(rng)
    r = rates_of(table, y, a)
    constraint, rows = notion_of(rng, r)
    p = FairClassification(X, y, a, constraint, hypotheses=Unlisted(table=table, **more))
    m = fo.Model("mine")
    return rng, p, m, p.declare(m), r, rows, np.ones((1, len(table)))


def check(p, m, parts, expected, accuracy=1e-6):
    """The optimum, its decision by the problem's own evaluation, and the same once more."""
    for _ in range(2):
        s = m.solve()
        if expected is None:
            assert s.status is fo.Status.INFEASIBLE
            continue
        assert s.status is fo.Status.OPTIMAL
        assert s.objective == pytest.approx(expected, abs=accuracy)
        assert s.bound == pytest.approx(expected, abs=2e-4)
        judged = p.evaluate(parts.decision(s))
        assert judged.feasible
        assert judged.objective == pytest.approx(float(s[parts.error]), abs=1e-6)
    return s


@pytest.mark.parametrize("seed", range(8))
def test_own_rows_and_prices_of_rates(seed):
    rng, p, m, parts, r, rows, ones = declared(seed)
    k, price = len(r[ERROR]), rng.normal(size=len(r[ERROR]))
    m.subject_to(parts.rates.rate(TRUE_POSITIVE)[0] >= 0.6)
    m.subject_to(parts.rates.rate(SELECTION).sum() <= 0.55 * k)
    m.minimize(parts.error + 0.2 * (parts.rates.rate(FALSE_POSITIVE) @ price))
    rows += [(-r[TRUE_POSITIVE][0], -0.6), (r[SELECTION].sum(axis=0), 0.55 * k)]
    check(p, m, parts, least(r["error"] + 0.2 * (price @ r[FALSE_POSITIVE]), rows, ones))


@pytest.mark.parametrize("seed", range(8, 14))
def test_the_largest_group_error(seed):
    _, p, m, parts, r, rows, ones = declared(seed)
    m.minimize(fo.maximum(*[parts.rates.rate(ERROR)[g] for g in range(len(r[ERROR]))]))
    rows += [(np.append(error, -1.0), 0.0) for error in r[ERROR]]
    check(p, m, parts, least(np.append(np.zeros(ones.size), 1.0), rows, ones))


@pytest.mark.parametrize("seed", range(14, 19))
def test_squares_of_rates(seed):
    import cvxpy as cp

    rng, p, m, parts, r, rows, ones = declared(seed)
    wanted = rng.uniform(0.2, 0.8, len(r[ERROR]))
    m.minimize(parts.error + fo.sum_squares(parts.rates.rate(SELECTION) - wanted))
    w = cp.Variable(ones.size, nonneg=True)
    goal = r["error"] @ w + cp.sum_squares(r[SELECTION] @ w - wanted)
    program = cp.Problem(cp.Minimize(goal), [cp.sum(w) == 1, *[row @ w <= limit for row, limit in rows]])
    program.solve(solver="CLARABEL")
    check(p, m, parts, program.value, accuracy=2e-6)


@pytest.mark.parametrize("seed", range(19, 24))
def test_leximax_of_group_errors(seed):
    _, p, m, parts, r, rows, ones = declared(seed)
    k, n = len(r[ERROR]), ones.size
    m.leximax(parts.rates.rate(ERROR))
    s = m.solve()
    assert s.status is fo.Status.OPTIMAL and p.evaluate(parts.decision(s)).feasible
    sums = np.cumsum(s.levels)
    for size in range(1, k + 1):  # the sum of so many largest errors, once smaller sums are held
        held = list(rows)
        for other in range(1, size):
            held += [
                (r[ERROR][list(some)].sum(axis=0), sums[other - 1] + 1e-7)
                for some in itertools.combinations(range(k), other)
            ]
        held += [
            (np.append(r[ERROR][list(some)].sum(axis=0), -1.0), 0.0)
            for some in itertools.combinations(range(k), size)
        ]
        assert least(np.append(np.zeros(n), 1.0), held, ones) == pytest.approx(sums[size - 1], abs=5e-6)


@pytest.mark.parametrize("seed", range(24, 29))
def test_integers_around_it(seed):
    rng, p, m, parts, r, rows, ones = declared(seed)
    k = len(r[ERROR])
    promised, cost = rng.uniform(0.4, 0.9, k), rng.uniform(0.0, 0.2, k)
    kept = m.variable("kept", k, binary=True)
    m.subject_to(parts.rates.rate(TRUE_POSITIVE) >= promised * kept, kept.sum() >= k - 1)
    m.minimize(parts.error + cost @ kept)
    values = []
    for some in itertools.product((0, 1), repeat=k):
        if sum(some) >= k - 1:
            own = [(-r[TRUE_POSITIVE][g], -promised[g]) for g in range(k) if some[g]]
            value = least(r["error"], rows + own, ones)
            values += [] if value is None else [value + cost @ some]
    check(p, m, parts, min(values, default=None), accuracy=1e-4)


@pytest.mark.parametrize("seed", range(29, 33))
def test_two_problems_and_elicited_pairs_in_one_model(seed):
    rng, p, m, parts, r, rows, ones = declared(seed)
    X, y, a, table = records(rng)
    pairs = [tuple(map(int, rng.choice(len(y), 2, replace=False))) for _ in range(5)]
    other = FairClassification(
        X,
        y,
        a,
        PairwiseFairness(pairs, gamma=0.1),
        hypotheses=Unlisted(table=table),
        weights=np.full(len(y), 2.0),
    )
    more, r2, n, n2 = other.declare(m), rates_of(table, y, a), ones.size, len(table)
    m.subject_to((parts.rates.rate(SELECTION)[0] - more.rates.rate(SELECTION)[0]).between(-0.05, 0.05))
    m.minimize(parts.error + 2 * more.error)
    rows += [(np.append(np.zeros(n), table[:, i] - table[:, j]), 0.1) for i, j in pairs]
    gap = np.append(r[SELECTION][0], -r2[SELECTION][0])
    rows += [(gap, 0.05), (-gap, 0.05)]
    both = np.vstack([np.append(np.ones(n), np.zeros(n2)), np.append(np.zeros(n), np.ones(n2))])
    s = check(p, m, parts, least(np.append(r["error"], 2 * r2["error"]), rows, both))
    assert other.evaluate(more.decision(s)).feasible


def separable(X):
    """All labellings of points by a halfspace, each by a linear program."""
    n, d = X.shape
    found = []
    for labels in itertools.product((0, 1), repeat=n):
        sign = 2.0 * np.array(labels) - 1.0
        rows = -sign[:, None] * np.column_stack([X, np.ones(n)])
        if linprog(np.zeros(d + 1), rows, -np.ones(n), bounds=[(None, None)] * (d + 1)).status == 0:
            found.append(labels)
    return np.array(found)


def test_halfspaces_of_three_features():
    rng = np.random.default_rng(3)
    X, y, a = rng.normal(size=(8, 3)), np.array([0, 1] * 4), np.repeat([0, 1], 4)
    p = FairClassification(X, y, a, DemographicParity(0.1), hypotheses=Halfspaces())
    table = separable(X)
    r = rates_of(table, y, a)
    m = fo.Model()
    parts = p.declare(m)
    m.subject_to(parts.rates.rate(FALSE_POSITIVE)[1] >= 0.3)
    m.minimize(fo.maximum(parts.rates.rate(ERROR)[0], parts.rates.rate(ERROR)[1]))
    rows = [*apart(r[SELECTION], 0.1), (-r[FALSE_POSITIVE][1], -0.3)]
    rows += [(np.append(error, -1.0), 0.0) for error in r[ERROR]]
    check(p, m, parts, least(np.append(np.zeros(len(table)), 1.0), rows, np.ones((1, len(table)))))


@pytest.mark.parametrize("seed", range(6))
def test_an_oracle_that_errs(seed):
    """The best mixture of the classifiers met, although later ones refute earlier halfspaces; no proof."""
    _, p, m, parts, _, _, _ = declared(40 + seed, seed=seed)
    m.minimize(fo.maximum(*[parts.rates.rate(ERROR)[g] for g in range(len(p.groups.names))]))
    s = m.solve()
    met = np.array([h.predictions for h in m.lazies[0].separate.__self__.items])
    r = rates_of(met, p.labels, p.groups.codes)
    seen = [ERROR] if isinstance(p.constraint, ErrorParity) else list(p.constraint.rates)
    rows = [row for rate in seen for row in apart(r[rate], p.constraint.tolerance)]
    rows += [(np.append(error, -1.0), 0.0) for error in r[ERROR]]
    expected = least(np.append(np.zeros(len(met)), 1.0), rows, np.ones((1, len(met))))
    if expected is None:
        assert s.status is fo.Status.LIMIT and "no proof" in s.message
        return
    assert s.status is fo.Status.APPROXIMATE and s.bound == -np.inf
    assert s.objective == pytest.approx(expected, abs=1e-6)
    assert p.evaluate(parts.decision(s)).feasible
    assert not s.certify().optimal


def test_a_learner_in_a_model():
    rng = np.random.default_rng(0)
    X, a = rng.normal(size=(120, 3)), rng.integers(0, 3, 120)
    y = (X[:, 0] + 0.5 * a + rng.normal(size=120) > 0.5).astype(int)
    p = FairClassification(X, y, a, EqualizedOdds(0.1), hypotheses=Learner(LogisticRegression()))
    m = fo.Model()
    parts = p.declare(m)
    m.leximax(parts.rates.rate(ERROR))
    s = m.solve()
    assert s.status is fo.Status.APPROXIMATE and s.bound == -np.inf
    judged = p.evaluate(parts.decision(s))
    assert judged.feasible
    errors = sorted((v for k, v in judged.metrics.items() if k.startswith("error rate of")), reverse=True)
    np.testing.assert_allclose(errors, s.levels, atol=1e-6)
    fair = p.solve("lp")
    assert fair.status is fo.Status.APPROXIMATE and fair.evaluation.feasible and fair.bound == -np.inf
    none = p.replace(constraint=BoundedGroupLoss(0.001))
    assert none.solve("lp").status is fo.Status.LIMIT and none.least_relaxation() == ""


def test_a_time_limit_is_kept():
    rng = np.random.default_rng(1)
    X, a = rng.normal(size=(60, 4)), rng.integers(0, 2, 60)
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    p = FairClassification(X, y, a, EqualizedOdds(0.05), hypotheses=Halfspaces())  # minutes
    begun = time.monotonic()
    s = p.solve("lp", time_limit=1.0)
    assert time.monotonic() - begun < 3.0
    assert s.status is fo.Status.LIMIT and "ime limit" in s.message
    assert s.bound <= p.evaluate(np.zeros(60)).objective


@pytest.mark.parametrize("backend", ["clarabel", "glop", "scip", "gscip"])
def test_other_backends(backend):
    _, p, m, parts, r, rows, ones = declared(50)
    m.minimize(parts.error)
    s = m.solve(backend)
    assert s.status is fo.Status.OPTIMAL
    assert s.objective == pytest.approx(least(r["error"], rows, ones), abs=2e-6)
    assert p.evaluate(parts.decision(s)).violation <= 2e-6


def test_the_certificate_of_an_exact_oracle():
    _, p, m, parts, _, _, _ = declared(51)
    m.minimize(parts.error)
    found = m.solve().certify()
    assert found.feasible and float(found.bound) == pytest.approx(float(found.objective), abs=1e-9)
    assert p.certify(p.solve().decision).feasible


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", ["compact", "row-generation"])
def test_lexifair_classification(seed, method):
    X, y, a, table = records(np.random.default_rng(seed), groups=3)
    groups = [np.flatnonzero(a == g).tolist() for g in range(3)]
    shown = {"labels": y, "groups": groups, "features": X, "constraint": DemographicParity(0.2)}
    exact = LexifairClassification(hypotheses=Stumps(X), **shown).solve()
    s = LexifairClassification(hypotheses=Unlisted(table=table), **shown).solve(method)
    assert s.status is fo.Status.OPTIMAL and s.evaluation.feasible
    np.testing.assert_allclose(s.decision.sorted_losses, exact.decision.sorted_losses, atol=1e-5)
    learnt = LexifairClassification(learner=LogisticRegression(), **shown).solve(method)
    assert learnt.status is fo.Status.APPROXIMATE and learnt.bound <= 0.0
