"""Seats, grants and coverage together with releases, samples, leximin and districts."""

import numpy as np
import pytest

import forcopt as fo
from forcopt.data import Hierarchy, grid
from forcopt.models import (
    Apportionment,
    ConsistentRelease,
    CoverageDecision,
    Districting,
    FormulaGrant,
    StratifiedAllocation,
)
from forcopt.models.fair_decisions import Nested
from forcopt.models.fair_decisions.instances import random_jurisdictions
from forcopt.privacy import AdditiveMechanism, Laplace


def laplace(epsilon):
    return AdditiveMechanism(Laplace(epsilon=epsilon))


def test_grants_on_a_consistent_release_with_known_state_totals():
    """Released counts that keep the states' totals share the money between the states without error."""
    tree = Hierarchy(parents=([0, 0], [0, 0, 0, 1, 1]))
    leaves = np.array([60.0, 20, 10, 80, 30])
    noisy = leaves + np.random.default_rng(2).laplace(scale=10, size=5)
    states = [leaves[:3].sum(), leaves[3:].sum()]
    # A precision that dwarfs the others stands for totals that are known.
    release = ConsistentRelease(tree, ([200.0], states, noisy), precision=[1, 1e6, 1]).solve()
    grants = FormulaGrant(np.ravel(release.decision.leaves), laplace(0.1))
    shares = grants.shares()
    assert [shares[:3].sum(), shares[3:].sum()] == pytest.approx([0.45, 0.55], abs=1e-4)
    plain = np.maximum(noisy, 0) / np.maximum(noisy, 0).sum()
    assert abs(plain[:3].sum() - 0.45) > 0.01
    assert grants.solve().evaluation.feasible


def test_the_variance_lost_by_allocating_a_sample_by_private_counts():
    """Sizes by Huntington and Hill are Wright's allocation; 40 draws of the counts for each budget."""
    sizes, sample = np.array([900.0, 500, 250, 60]), 40
    p = Apportionment(sizes, sample)
    survey = StratifiedAllocation(sizes=sizes, deviations=np.ones(4), sample_size=sample)
    best = survey.solve("greedy")
    assert best.decision.sizes.tolist() == p.solve().decision.seats.tolist()
    lost, rng = [], np.random.default_rng(2)
    for epsilon in (0.001, 0.01, 0.1, 10.0):
        found = []
        for _ in range(40):
            noisy = np.maximum(laplace(epsilon).simulate(sizes, rng).values, 1.0)
            seats = p.replace(populations=noisy).solve().decision.seats
            found.append(survey.evaluate(np.minimum(seats, sizes)).objective)
        lost.append(np.mean(found) / best.objective - 1)
    assert (np.diff(lost) < 0).all() and lost[-1] == pytest.approx(0, abs=1e-9) and lost[0] > 0.1


def test_leximin_over_the_rates_of_a_table():
    """With few false positives allowed, the smallest rate first, then the next, and so on."""
    counts = random_jurisdictions(6, 30, seed=3)
    p = CoverageDecision(
        counts,
        mechanism=Nested(mechanism=laplace(1.0)),
        first_cuts=[-1, 0],
        second_cuts=[-1, 0],
        least_rate=0.0,
        holds_for="given",
    )
    m = fo.Model()
    parts = p.declare(m, "decision-table")
    m.subject_to(parts.objective <= 0.8)
    m.leximin(parts.rates)
    result = m.solve()
    fair = np.sort(result[parts.rates])
    decision = p.table([-1, 0], [-1, 0], result[parts.values])
    assert p.evaluate(decision).objective <= 0.8 + 1e-6
    assert np.sort(p.rates(decision)[p.covered]) == pytest.approx(fair, abs=1e-5)
    other = fo.Model()
    also = p.declare(other, "decision-table")
    other.subject_to(also.objective <= 0.8)
    other.maximize(also.rates.sum())
    total = np.sort(other.solve()[also.rates])
    assert fair[0] >= total[0] - 1e-6


def test_leximax_over_the_deviations_of_seats():
    p = Apportionment([9061, 7179, 5259, 3319, 1182], seats=26, criterion="leximax")
    greedy, milp = p.solve(), p.solve("milp")
    assert np.sort(np.abs(greedy.decision.deviations)) == pytest.approx(
        np.sort(np.abs(milp.decision.deviations)), abs=1e-9
    )


def test_districts_after_seats():
    """Each state gets seats by its population, and then as many districts."""
    states = [grid(3, 4), grid(2, 4)]
    seats = Apportionment([12, 8], seats=5).solve().decision.seats
    assert seats.tolist() == [3, 2]
    for graph, count in zip(states, seats.tolist(), strict=True):
        s = Districting(graph, districts=count, tolerance=0).solve()
        assert s.status is fo.Status.OPTIMAL and s.evaluation.feasible
