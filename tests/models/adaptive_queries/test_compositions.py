"""Adaptive queries together with the problems of other packages."""

import numpy as np
import pandas as pd
import pytest

from forcopt.fairness import EqualOpportunity
from forcopt.models import AccuracyPlan, CountingQueries, ScorePostprocessing
from forcopt.models.adaptive_queries import (
    AdaptiveSession,
    IndependentBlocks,
    Population,
    Query,
    guarantee,
)


def scored_people(size=5000):
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, size)
    label = rng.random(size) < np.where(group == 0, 0.5, 0.35)
    score = np.clip(np.round(rng.normal(4 + 1.6 * label - 0.4 * group, 1.6)), 0, 9)
    return pd.DataFrame({"score": score.astype(int), "group": group, "label": label.astype(int)})


def thresholds(population, weights):
    score, group, label = population.rows[0].T
    problem = ScorePostprocessing(
        scores=score,
        labels=label,
        groups=[str(g) for g in group],
        constraint=EqualOpportunity(tolerance=0.02),
        weights=weights,
    )
    return problem.solve().decision


@pytest.mark.parametrize("seed", range(5))
def test_thresholds_of_a_fair_classifier_are_chosen_and_checked_on_one_holdout(seed):
    """The last queries depend on the thresholds, and these on all answers before: the bound covers both."""
    population = Population.blockwise(scored_people(), [["score", "group", "label"]])
    score, group, label = population.rows[0].T
    cells, n = np.eye(len(score)), 200_000

    def analyst(history):
        if len(history) < len(cells):
            return Query(1, cells[len(history)])
        if len(history) == len(cells) + 2:
            return None
        weights = np.maximum([answer for _, answer in history[: len(cells)]], 0)
        chosen = thresholds(population, weights).probability(score, [str(g) for g in group])
        return Query(1, chosen * (label == 1) * (group == len(history) - len(cells)))

    plan = AccuracyPlan(IndependentBlocks(1), n, len(cells) + 2, 0.05).solve()
    found = AdaptiveSession(population.sample(n, seed), population, plan, analyst, seed).run()
    assert found.error <= plan.objective < 0.05
    positives = [(population.probabilities[0] * (label == 1) * (group == g)).sum() for g in (0, 1)]
    rates = found.values[-2:] / positives
    assert abs(rates[0] - rates[1]) < 0.1  # equal opportunity in the population, not only in the sample
    assert rates.min() > 0.3


def test_noise_of_counting_queries_inside_a_block():
    """The counts of k answers change by 1 each: their noise, over n, has the error of the plan's own."""
    n, k = 100_000, 10
    data = IndependentBlocks(20)
    s = AccuracyPlan(data, n, k, 0.05).solve()
    plan = s.decision
    counts = CountingQueries(queries=k, epsilon=plan.epsilon, delta=plan.delta)
    noise = counts.solve("gaussian").decision
    assert noise.scale / n == pytest.approx(plan.scale, rel=1e-5)
    alpha = noise.quantile(1 - plan.beta / (2 * k)) / n
    found = guarantee(data, alpha, plan.beta, plan.epsilon, plan.delta, plan.c, plan.d, n)
    assert found.alpha == pytest.approx(s.objective, rel=1e-5)
    assert found.beta <= 0.05 * (1 + 1e-9)
