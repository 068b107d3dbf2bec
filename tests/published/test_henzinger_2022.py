"""Henzinger, Peale, Reingold, Shen: Leximax Approximations and Representative Cohort Selection (FORC 2022).

The printed examples, instances worked by hand or in exact arithmetic, and counterexamples to what is printed.
"""

from __future__ import annotations

from fractions import Fraction

import cohort_oracle  # noqa: F401  (registers the oracle)
import numpy as np
import pytest

import forcopt as fo
from forcopt.models import LeximaxCohort
from forcopt.models.leximax_cohort import FeasibleCohorts, SolutionSet

EXACT = ["saturation", "compact", "cuts", "column-generation"]
E = 0.01


def test_example_5():
    s = SolutionSet([[0, 1], [0.01, 0.01]])
    assert s.leximax() == [1]
    assert s.significant_leximax(0.05) == [0]
    assert [s.tradeoff_gap(u).tolist() for u in ([0, 1], [0.01, 0.01])] == [[0.01, 0], [0, 0]]


def test_example_8():
    s = SolutionSet([[0, 0.5 + 6 * E], [E / 2, 0.5 + 4 * E], [E, 0.5 + 2 * E], [3 * E / 2, 0.5]])
    assert s.tradeoff_leximax(E) == [1, 2, 3]
    assert s.significant_tradeoff(E, E) == []
    assert s.significant_leximax(E) == [1]
    gaps = [s.tradeoff_gap(row)[0] for row in s.sorted]
    np.testing.assert_allclose(gaps, [3 / 200, 1 / 100, 1 / 200, 0], atol=1e-12)


def test_example_13_and_lemma_19():
    s = SolutionSet([[E, 0.5], [0, 1]])
    assert s.tradeoff_leximax(E) == [0, 1]
    assert s.significant_leximax(E) == s.significant_tradeoff(E, E) == [1]
    # Lemma 19 is printed for tradeoff solutions: without noise it would make solution 0 significant


def test_example_17():
    true = SolutionSet([[0.1, 0.2], [0.1 + E / 100, 0.8], [0.1 + E, 0.2]])
    noisy = SolutionSet([[0.1, 0.2], [0.1 - E / 100, 0.8], [0.1 + E, 0.2]])
    assert (true.tradeoff_leximax(E), true.significant_leximax(E)) == ([1, 2], [1])
    assert (noisy.tradeoff_leximax(E), noisy.significant_leximax(E)) == ([0, 2], [0, 2])
    np.testing.assert_allclose(true.tradeoff_gap([0.1, 0.2]), [0.01, 0.6], atol=1e-12)


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize(
    ("V", "size", "utilities"),
    [
        (
            [[1, 0, 1, 0], [0, 1, 0, 0.5], [0.5, 0.5, 0, 0]],
            1,
            [1 / 3, 2 / 3, 1 / 3, 1 / 3],
        ),
        ([[0.3, 1, 0], [0.3, 0, 1], [0, 0.5, 0.5]], 1, [0.3, 0.5, 0.5]),
        ([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 0]], 1, [1 / 3] * 3),
        ([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 0]], 2, [2 / 3] * 3),
        # sets {0,1} {1,2} {2,3} {3,0} {0,2} over elements 0 to 3
        ([[1, 0, 0, 1, 1], [1, 1, 0, 0, 0], [0, 1, 1, 0, 1], [0, 0, 1, 1, 0]], 1, [0.5] * 4 + [1]),
        ([[1, 0, 0, 1, 1], [1, 1, 0, 0, 0], [0, 1, 1, 0, 1], [0, 0, 1, 1, 0]], 3, [1.5] * 4 + [2]),
    ],
)
def test_small_instances(method, V, size, utilities):
    s = LeximaxCohort(utilities=V, size=size).solve(method)
    np.testing.assert_allclose(s.decision.utilities, utilities, atol=1e-6)


def test_exact_levels():
    V = [[1, 0, 1, 0], [0, 1, 0, 0.5], [0.5, 0.5, 0, 0]]
    c = LeximaxCohort(utilities=V, size=1).solve("cuts").certify()
    assert c.optimal is True
    assert c.stages == (Fraction(1, 3), Fraction(2, 3), 1, Fraction(5, 3))


@pytest.mark.parametrize(
    ("size", "marginal", "one"),
    [(1, [0.5, 0.5, 0.5, 0.5, 1], [0, 0, 1, 1, 1]), (2, None, [1, 1, 1, 1, 2]), (3, None, [1, 1, 2, 2, 2])],
)
def test_hitting_set(size, marginal, one):
    V = [[1, 0, 0, 1, 1], [1, 1, 0, 0, 0], [0, 1, 1, 0, 1], [0, 0, 1, 1, 0]]
    for method in ("compact", "brute-force", "ordered-values"):
        assert (
            LeximaxCohort(utilities=V, size=size, integer=True).solve(method).decision.levels.tolist() == one
        )
    if marginal:
        np.testing.assert_allclose(LeximaxCohort(utilities=V, size=size).solve().decision.levels, marginal)


EIGHT = np.array(
    [
        (0, 8, 7, 4, 4, 9),
        (0, 7, 2, 1, 5, 10),
        (8, 8, 7, 8, 5, 1),
        (9, 4, 5, 4, 2, 10),
        (8, 7, 4, 9, 5, 4),
        (4, 2, 1, 6, 9, 0),
        (9, 9, 3, 6, 1, 8),
        (7, 3, 0, 10, 4, 9),
    ]
)


def test_eight_candidates():
    s = LeximaxCohort(utilities=EIGHT / 10, size=3).solve("cuts")
    expected = [1.509752, 1.670659, 1.509752, 1.641916, 1.509752, 1.509752]
    np.testing.assert_allclose(s.decision.utilities, expected, atol=1e-6)
    # a certificate for the first level: weights of groups, and the size largest weighted sums
    w = np.array([0.130026, 0, 0.201027, 0, 0.479042, 0.189906])
    assert np.sort(EIGHT / 10 @ w)[-3:].sum() == pytest.approx(1.509752, abs=2e-6)
    one = LeximaxCohort(utilities=EIGHT / 10, size=3, integer=True)
    for method in ("compact", "brute-force", "cuts"):
        s = one.solve(method)
        assert s.decision.cohort == (0, 2, 4)
        np.testing.assert_allclose(s.decision.levels, [1.4, 1.4, 1.6, 1.8, 2.1, 2.3])


def test_slack_moves_the_optimum():
    V = [[0.3, 1, 0], [0.3, 0, 1], [0, 0.5, 0.5]]
    for a, first in ((0.05, 0.3), (0.1, 0.3)):
        p = LeximaxCohort(utilities=V, size=1, slack=a)
        d = p.solve("cumulative").decision
        assert d.levels[0] == pytest.approx(first, abs=1e-6)
        gap = FeasibleCohorts(p).tradeoff_gap(d.utilities)
        assert (gap <= a + 1e-6).all()
        maxima = FeasibleCohorts(p).level_maxima(a)
        np.testing.assert_allclose(maxima, [0.3, 0.5, 0.5 + a], atol=1e-5)


def test_the_modified_program_need_not_be_significant():
    """Section 4.2 says that slack eps at all levels gives an eps-significant solution."""
    p = LeximaxCohort(utilities=[[0.4, 0.7, 0.7], [0.5, 0.52, 1]], size=1, slack=0.1)
    every = FeasibleCohorts(p)
    d = p.solve("cumulative").decision
    np.testing.assert_allclose(d.marginals, [0, 1], atol=1e-6)
    np.testing.assert_allclose(every.tradeoff_gap(d.utilities), 0, atol=1e-6)  # leximax even
    np.testing.assert_allclose(every.level_maxima(0.1), [0.5, 0.7, 0.86667], atol=1e-4)
    assert not every.is_significant_leximax(d.utilities, 0.1)
    s = p.solve("recursive")
    assert every.is_significant_leximax(s.decision.utilities, 0.1)
    assert 4 / 9 - 1e-6 <= s.decision.marginals[0] <= 7 / 9 + 1e-6


def test_the_modified_program_need_not_be_recursive_for_its_slack():
    p = LeximaxCohort(utilities=[[0.5, 0.8], [0.45, 0.83]], size=1, slack=[0.05, 0])
    d = p.solve("cumulative").decision
    np.testing.assert_allclose(d.utilities, [0.5, 0.8], atol=1e-6)
    every = FeasibleCohorts(p)
    assert not every.is_recursive_leximax(d.utilities, p.slack)
    assert every.is_tradeoff_leximax(d.utilities, 0.05)
    np.testing.assert_allclose(p.solve("recursive").decision.utilities, [0.45, 0.83], atol=1e-6)


@pytest.mark.parametrize("a", [1e-3, 1e-5])
def test_unstable_instances_are_solved_without_slack(a):
    """The exact answer jumps as a goes to 0; the utilities a float away from a tie are told apart."""
    p = LeximaxCohort(utilities=[[0.5, 0.5, 1], [0.5 - 2 * a, 1, 0.5]], size=1)
    for method in EXACT:
        np.testing.assert_allclose(p.solve(method).decision.utilities, [0.5, 0.5, 1], atol=2e-3)


def test_lemma_15():
    """How often the utility of an independent sample falls short, against its bound; 40,000 draws."""
    n, k, short = 100, 50, 6.0
    p = LeximaxCohort(utilities=np.full((n, 1), 0.5), size=k)
    d = p.lottery(np.full(n, 0.5))
    rng = np.random.default_rng(0)
    lows = np.mean([0.5 * len(d.sample_independently(rng)) < 25 - short for _ in range(5_000)])
    bound = np.exp(-2 * short**2 / (n * 0.25))
    assert lows <= bound + 5 * np.sqrt(bound / 5_000)
    assert np.exp(-2 * 12.5**2 / n) == pytest.approx(0.0439, abs=1e-4)  # the printed "more than 95%"


def test_individual_utilities_are_only_unique_for_linear_ones():
    """Printed for continuous ones; u1 through (0, .5), (.5, 0), (1, 1) and its mirror image refute it."""
    s = np.linspace(0, 1, 1001)
    u = np.interp(s, [0, 0.5, 1], [0.5, 0, 1])
    both = SolutionSet(np.stack([u, u[::-1]], axis=1))
    ends = both.leximax()
    assert ends == [0, 1000]
    assert u[0] != u[1000]


def test_printed_order():
    """Definition 2, read as "equal, or larger at the first difference"."""
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=1)
    m.subject_to(x.sum() <= 1)
    m.leximin(x)
    np.testing.assert_allclose(m.solve().levels, [0.5, 0.5])
