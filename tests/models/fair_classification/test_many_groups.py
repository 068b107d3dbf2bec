"""Many groups: a level for each rate in place of a row for each pair of groups."""

import re

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression

import forcopt as fo
from forcopt.fairness import (
    DemographicParity,
    DemographicParityRatio,
    EqualizedOdds,
    EqualizedOddsRatio,
    EqualOpportunity,
    ErrorParity,
    FalsePositiveParity,
)
from forcopt.models.fair_classification import FairClassification, Finite, Learner, RandomizedClassifier
from forcopt.models.fair_classification.dp_oracle_learner import rate_rows
from forcopt.models.fair_classification.lagrangian import Lagrangian
from forcopt.privacy import PrivacyBudget, RandomizedResponse

NOTIONS = [
    DemographicParity,
    EqualOpportunity,
    FalsePositiveParity,
    EqualizedOdds,
    ErrorParity,
    DemographicParityRatio,
    EqualizedOddsRatio,
]


def drawn(rng, groups, notion, weighted=True, **fields):
    """Every group and label has a record at least; the constants are among the hypotheses."""
    n = 2 * groups + int(rng.integers(5, 30))
    a, y = (
        np.append(np.repeat(np.arange(groups), 2), rng.integers(0, groups, n - 2 * groups)),
        np.arange(n) % 2,
    )
    table = np.vstack([np.zeros(n), np.ones(n), rng.integers(0, 2, (8, n))]).astype(int)
    names = np.array([f"g{k}" for k in range(groups)])
    return FairClassification(
        np.zeros((n, 1)),
        y,
        names[a],
        notion,
        rng.integers(1, 4, n) if weighted else None,
        Finite(table),
        **fields,
    ), table.astype(float)


def pair_rows(problem, table):
    """``excess <= 0`` of each ordered pair of groups, from the definition, for the rows of a table."""
    notion, y, a, w = problem.constraint, problem.labels, problem.groups.codes, problem.weights
    rows = []
    for rate in notion.rates:
        among = {"false positive rate": y == 0, "true positive rate": y == 1}.get(rate.name, y >= 0)
        event = np.abs(table - y) if rate.name == "error rate" else table
        cells = [among & (a == g) for g in range(len(problem.groups.names))]
        values = np.array([event[:, c] @ w[c] / w[c].sum() for c in cells])
        for g in range(len(cells)):
            for h in set(range(len(cells))) - {g}:
                if hasattr(notion, "tolerance"):
                    rows.append(values[g] - values[h] - notion.tolerance)
                else:
                    rows.append(notion.ratio * values[g] - values[h])
    return np.array(rows)


@pytest.mark.parametrize("notion", NOTIONS)
def test_the_optimum_is_that_of_all_pairs(notion):
    """15 random problems each: optimum, bound and multipliers against an own program over pairs."""
    rng = np.random.default_rng(NOTIONS.index(notion))
    for trial in range(15):
        groups = 2 + trial % 6
        problem, table = drawn(rng, groups, notion(float(rng.choice([0.0, 0.1, 0.3, 0.8, 1.0]))))
        w = problem.weights / problem.weights.sum()
        error, rows = np.abs(table - problem.labels) @ w, pair_rows(problem, table)
        best = linprog(error, rows, np.zeros(len(rows)), np.ones((1, len(table))), [1])
        s = problem.solve("column-generation")
        assert s.status == "optimal" and s.objective == pytest.approx(best.fun, abs=1e-6)
        assert s.bound == pytest.approx(best.fun, abs=1e-6) and not s.evaluation.violations
        assert problem.saddle_gaps(s.decision, s.decision.multipliers).total <= 1e-6
        game, rates = problem.lagrangian, len(problem.constraint.rates)
        if groups > 3 and getattr(problem.constraint, "ratio", 1.0) > 0.0:
            assert game.size == 2 * groups * rates and game.levels.sum() == rates
        elif not hasattr(problem.constraint, "ratio"):
            assert game.size == groups * (groups - 1) * rates and not len(game.levels)


@pytest.mark.parametrize("notion", [EqualizedOdds(0.1), DemographicParityRatio(0.7)], ids=str)
def test_an_excess_is_that_of_the_worst_pair(notion):
    """So a sum of multipliers enforces as much as with pairs, and a game's theorems say the same."""
    rng = np.random.default_rng(1)
    problem, table = drawn(rng, 6, notion)
    game = problem.lagrangian
    pairs = Lagrangian(game.costs, game.base, notion.rows, problem.moments, pairs=True)
    count = len(notion.rates)
    assert pairs.size == 30 * count and not len(pairs.low)
    assert sorted(pairs.names)[0].count("[") == 2
    for p in [*table, *rng.random((20, len(problem.labels)))]:
        worst = pair_rows(problem, p[None, :]).reshape(count, 30)
        assert pairs.excess(p).reshape(count, 30).max(axis=1) == pytest.approx(worst.max(axis=1))
        assert game.excess(p).reshape(count, 12).max(axis=1) == pytest.approx(worst.max(axis=1))
        assert game.penalized(p, 3.0) == pytest.approx(pairs.penalized(p, 3.0))
        assert game.enough([p]) == pytest.approx(pairs.enough([p]))


def test_games_over_levels_end_near_the_optimum():
    rng = np.random.default_rng(3)
    problem, _ = drawn(rng, 5, EqualizedOdds(0.2))
    best = problem.solve().objective
    for method in ("exponentiated-gradient", "no-regret"):
        s = problem.solve(method, accuracy=1e-3)
        assert s.objective == pytest.approx(best, abs=1e-3) and s.bound <= best + 1e-9


def test_the_level_of_rates_estimated_through_a_channel_may_leave_0_to_1():
    rng, beyond = np.random.default_rng(5), 0
    for _ in range(10):
        n, channel = 60, RandomizedResponse(1.0)
        y, reports = rng.integers(0, 2, n), rng.permutation(np.arange(n) % 4)
        table = np.vstack([np.zeros(n), np.ones(n), rng.integers(0, 2, (12, n))]).astype(int)
        problem = FairClassification(
            np.zeros((n, 1)),
            y,
            channel.observe(reports),
            DemographicParity(0.3),
            None,
            Finite(table),
        )
        share = channel.inverse(4)[:, reports]
        rates = (share @ table.T) / share.sum(axis=1)[:, None]
        beyond += bool((rates > 1).any() or (rates < 0).any())
        i, j = np.nonzero(~np.eye(4, dtype=bool))
        error = np.abs(table - y).mean(axis=1)
        best = linprog(error, rates[i] - rates[j], np.full(12, 0.3), np.ones((1, len(table))), [1])
        s = problem.solve("column-generation")
        assert problem.lagrangian.size == 8 and s.objective == pytest.approx(best.fun, abs=1e-6)
    assert beyond > 3


def test_sixty_groups_need_few_calls_of_the_oracle():
    """Equalized odds of 60 groups: 240 rows rather than 7,080, and a fair mixture after few fits."""
    rng = np.random.default_rng(0)
    n, groups = 4000, 60
    a = rng.integers(0, groups, n)
    x = rng.normal(size=(n, 10)) + 0.5 * rng.normal(size=(groups, 10))[a]
    y = (x[:, 0] + 0.5 * x[:, 1] + rng.normal(size=n) > 0).astype(int)
    problem = FairClassification(x, y, a, EqualizedOdds(0.05), None, Learner(LogisticRegression()))
    s = problem.solve()
    assert problem.lagrangian.size == 240 and "within the accuracy" in s.message
    assert not s.evaluation.violations and int(re.search(r"(\d+) calls", s.message)[1]) <= 60


def test_private_learning_keeps_the_pairs():
    """Their number depends on the names of the groups alone."""
    budget = PrivacyBudget(1.0, 1e-6, floor=1)
    problem, _ = drawn(np.random.default_rng(0), 5, EqualizedOdds(0.1), privacy=budget, weighted=False)
    assert problem.lagrangian.size == 40 and not len(problem.lagrangian.low)


def test_a_column_without_bounds_beside_another_is_refused():
    """Its best value at given multipliers depends on the other, so no game can price it."""
    problem, _ = drawn(np.random.default_rng(0), 4, DemographicParity(0.1))
    own = problem.lagrangian

    def demand(rates):
        values = rates.rate(rates_of[0])
        model = values.model
        level, spare = model.variable("level"), model.variable("spare", lower=0.0, upper=1.0)
        return [values - level <= spare, level - values <= 0.1]

    rates_of = problem.constraint.rates
    with pytest.raises(fo.DeclarationError, match="auxiliary column has no bounds"):
        Lagrangian(own.costs, own.base, demand, problem.moments)


def test_private_learning_refuses_a_bounded_column():
    class Capped(DemographicParity):
        def rows(self, rates):
            (row,) = super().rows(rates)
            spare = row.expression.model.variable("spare", lower=0.0, upper=1.0)
            return [row, spare <= 0.5]

    with pytest.raises(fo.DeclarationError, match="auxiliary columns have no bounds"):
        rate_rows(Capped(0.1), ("a", "b", "c"))


def test_the_weights_of_a_mixture_are_kept_when_they_are_read_again():
    """Weights were divided by their sum again when read, which moved some by one unit in the last place."""
    rng = np.random.default_rng(0)
    problem, _ = drawn(rng, 2, DemographicParity(0.1), weighted=False)
    kinds = problem.solve().decision.classifiers
    for count in rng.integers(1, 40, 200):
        classifiers = [kinds[0]] * int(count)
        made = RandomizedClassifier(classifiers, rng.dirichlet(np.ones(count)) * (1 + 1e-10))
        assert abs(made.weights.sum() - 1.0) <= count * np.finfo(float).eps
        again = RandomizedClassifier(classifiers, made.weights)
        assert again.weights.tolist() == made.weights.tolist()
