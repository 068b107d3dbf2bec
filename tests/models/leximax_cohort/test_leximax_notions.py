"""Notions of approximation: on finite sets against their definitions, on polytopes against orderings."""

from __future__ import annotations

import re
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.models import LeximaxCohort
from forcopt.models.leximax_cohort import FeasibleCohorts, SolutionSet, random_cohort


def tables():
    """Few solutions with whole utilities, so that everything is exact."""

    def table(seed):
        rng = np.random.default_rng(seed)
        return rng.integers(0, 13, (int(rng.integers(2, 7)), int(rng.integers(2, 5)))), int(
            rng.integers(0, 5)
        )

    return st.integers(0, 10**6).map(table)


def is_tradeoff(rows, i, eps):
    """Definition 7, read out."""
    own = rows[i]
    return all(
        any(other[h] < own[h] for h in range(level))
        for other in rows
        for level in range(len(own))
        if own[level] < other[level] - eps
    )


def recursive(rows, slack):
    """Definition 10, read out."""
    kept = list(range(len(rows)))
    for level, a in enumerate(slack):
        best = max(rows[i][level] for i in kept)
        kept = [i for i in kept if rows[i][level] >= best - a]
    return kept


@settings(max_examples=150, deadline=None, derandomize=True)
@given(tables())
def test_finite_sets_against_the_definitions(drawn):
    table, eps = drawn
    s, rows = SolutionSet(table), np.sort(table, axis=1).tolist()
    count = len(rows)
    best = max(map(tuple, rows))
    leximax = [i for i in range(count) if tuple(rows[i]) == best]
    assert s.leximax() == leximax == s.tradeoff_leximax(0)  # Proposition 4
    assert s.tradeoff_leximax(eps) == [i for i in range(count) if is_tradeoff(rows, i, eps)]
    assert s.recursive_leximax(np.arange(len(best))) == recursive(rows, range(len(best)))
    assert s.significant_leximax(eps) == recursive(rows, [eps] * len(best))
    assert tuple(s.level_maxima()) == best
    assert s.elementwise_gap(table[0]) == max(0, *np.subtract(best, rows[0]))
    if len(best) <= 3 and eps <= 3:  # Theorem 11: tradeoff is recursive with some slack
        some = {i for slack in product(range(eps + 1), repeat=len(best)) for i in recursive(rows, slack)}
        assert s.tradeoff_leximax(eps) == sorted(some)
        for slack in product(range(eps + 1), repeat=len(best)):  # Theorem 14, for slack of at most eps
            assert tuple(s.level_maxima(eps)) >= tuple(s.level_maxima(slack))


def test_theorem_14_needs_slack_of_at_most_eps():
    s = SolutionSet([[0, 1], [0.01, 0.01]])
    assert tuple(s.level_maxima([0.05, 0])) > tuple(s.level_maxima(0))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(tables())
def test_noise(drawn):
    """Lemma 18, and Lemma 19 from significant (as printed, from tradeoff, it fails without any noise)."""
    table, eps = drawn
    rng = np.random.default_rng(table.sum())
    d = eps / 2
    true, noisy = SolutionSet(table), SolutionSet(table + rng.uniform(-d, d, table.shape))
    assert set(noisy.significant_tradeoff(eps - 2 * d, 2 * d)) <= set(true.tradeoff_leximax(eps))
    sets = noisy.significant_leximax(eps)
    best = noisy.level_maxima(eps)
    kept = np.ones(len(table), dtype=bool)
    for level in range(table.shape[1]):  # the noisy sets, with slack that depends on the solution
        own = true.sorted[:, level]
        slack = eps + (own[kept].max() - best[level]) - (own - noisy.sorted[:, level])
        assert ((slack >= eps - 2 * d - 1e-9) & (slack <= eps + 2 * d + 1e-9))[kept].all()
        kept &= own >= own[kept].max() - slack - 1e-9
    assert set(sets) <= set(np.flatnonzero(kept).tolist())


def ordering_maxima(p, slack):
    """The level maxima by linear programs, one for every order of the groups."""
    m = p.utilities.shape[1]
    best = []
    for level in range(m):
        values = []
        for order in permutations(range(m)):
            model = fo.Model()
            x = model.variable("x", len(p.utilities), lower=0, upper=1)
            u = (x @ p.utilities)[list(order)]
            model.subject_to(x.sum() == p.size)
            if m > 1:
                model.subject_to(u[1:] >= u[:-1])
            for r in range(level):
                model.subject_to(u[r] >= best[r] - slack[r] - 1e-9)
            model.maximize(u[level])
            s = model.solve()
            if s.status == "optimal":
                values.append(s.objective)
        best.append(max(values))
    return np.array(best)


@pytest.mark.parametrize("seed", range(4))
def test_polytopes_against_orderings(seed):
    p = random_cohort(5, 3, 2, grid=10, seed=seed)
    every = FeasibleCohorts(p)
    for slack in (np.zeros(3), np.full(3, 0.15), np.array([0.3, 0, 0.1])):
        np.testing.assert_allclose(every.level_maxima(slack), ordering_maxima(p, slack), atol=1e-4)
    leximax = p.solve().decision
    np.testing.assert_allclose(every.tradeoff_gap(leximax.utilities), 0, atol=1e-4)
    assert every.elementwise_gap(leximax.utilities) < 1e-4


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("integer", [False, True])
def test_slack_schemes_keep_what_they_promise(seed, integer):
    slack = np.array([0.1, 0.0, 0.2, 0.05])
    p = random_cohort(6, 4, 2, seed=seed, slack=slack, integer=integer)
    every = FeasibleCohorts(p) if not integer else SolutionSet(all_rows(p) @ p.utilities)
    s = p.solve("cumulative")
    assert s.status == "approximate" and s.guarantee == 0.1
    assert s.bound - s.objective <= s.guarantee + 1e-6
    assert (every.tradeoff_gap(s.decision.utilities) <= slack + 1e-4).all()
    s = p.solve("recursive")
    short = every.level_maxima(slack) - slack - s.decision.levels
    assert short.max() <= 1e-4


def all_rows(p):
    from forcopt.models.leximax_cohort.formulations import all_cohorts

    return np.concatenate(list(all_cohorts(p)))


def test_no_slack_is_leximax():
    p = random_cohort(8, 4, 3, seed=5)
    expected = p.solve().decision.levels
    for method in ("cumulative", "recursive"):
        np.testing.assert_allclose(p.solve(method).decision.levels, expected, atol=1e-4)


def test_infeasible():
    p = LeximaxCohort(utilities=np.eye(3), size=1, forced=[0, 1], slack=0.1)
    assert p.solve("cumulative").status == p.solve("recursive").status == "infeasible"
    with pytest.raises(fo.BackendError, match="level 1: the status is infeasible"):
        FeasibleCohorts(p).level_maxima()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: SolutionSet([]), "utilities have shape (0,); it must be (solutions, groups)"),
        (lambda: SolutionSet(np.zeros((0, 2))), "utilities have shape (0, 2)"),
        (lambda: SolutionSet([[1, np.nan]]), "utilities[0, 1] is nan"),
        (lambda: SolutionSet([[1, 2]]).tradeoff_gap([1]), "utilities have shape (1,); it must be (2,)"),
        (lambda: SolutionSet([[1, 2]]).level_maxima([1, 2, 3]), "slack has shape (3,)"),
        (lambda: SolutionSet([[1, 2]]).recursive_leximax(-1), "slack is -1; it must not be negative"),
        (
            lambda: SolutionSet([[1, 2]]).significant_leximax(-1),
            "eps is -1; it must be finite",
        ),
        (lambda: SolutionSet([[1, 2]]).is_tradeoff_leximax([1, 2], np.inf), "eps is inf"),
    ],
)
def test_bad_questions(ask, message):
    with pytest.raises(fo.DeclarationError, match=re.escape(message)):
        ask()
