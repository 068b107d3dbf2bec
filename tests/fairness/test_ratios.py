"""Ratios of rates in post-processing and learning."""

import numpy as np
import pytest
from scipy.optimize import linprog

import forcopt as fo
from forcopt.fairness import (
    DemographicParity,
    DemographicParityRatio,
    EqualizedOddsRatio,
    EqualOpportunityRatio,
    GroupRates,
)
from forcopt.learning import Thresholds
from forcopt.models import FairClassification, FairPostprocessing
from forcopt.privacy import RandomizedResponse

COUNTS = np.array([[[36, 4], [9, 5], [20, 7]], [[4, 16], [6, 20], [1, 2]]])
NOTIONS = [DemographicParityRatio(0.8), EqualizedOddsRatio(0.9), EqualOpportunityRatio(1.0)]


@pytest.mark.parametrize("backend", ["highs", "glop", "clarabel", "scip"])
@pytest.mark.parametrize("notion", NOTIONS, ids=str)
def test_the_optimum_keeps_the_ratio_on_every_backend(notion, backend):
    p = FairPostprocessing(counts=COUNTS, constraint=notion)
    s = p.solve(backend=backend)
    assert s.status == "optimal" and s.evaluation.feasible
    rates = p.rates(s.decision.probabilities)
    for rate in notion.rates:
        values = rates.rate(rate)
        assert values.min() >= notion.ratio * values.max() - 1e-6
    assert s.objective >= p.solve("as-predicted").objective - 1e-9
    assert s.objective == pytest.approx(p.solve(backend="highs").objective, abs=1e-6)


def test_the_eighty_percent_rule_by_hand():
    """Group a selects 1 in 2 without errors, b 1 in 4; the rule lets b select .4 or a .3125, or both less."""
    counts = [[[50, 0], [75, 0]], [[0, 50], [0, 25]]]
    s = FairPostprocessing(counts=counts, constraint=DemographicParityRatio(0.8)).solve()
    assert s.objective == pytest.approx(0.5 * min(0.4 - 0.25, 0.5 - 0.25 / 0.8))
    assert s.evaluation.metrics["largest disparity"] == pytest.approx(0.2)


def test_a_ratio_of_one_is_parity_and_of_zero_is_nothing():
    equal = FairPostprocessing(counts=COUNTS, constraint=DemographicParity()).solve().objective
    free = FairPostprocessing(counts=COUNTS, constraint=DemographicParity(1.0)).solve().objective
    for ratio, value in ((1.0, equal), (0.0, free)):
        found = FairPostprocessing(counts=COUNTS, constraint=DemographicParityRatio(ratio)).solve()
        assert found.objective == pytest.approx(value, abs=1e-7)


@pytest.mark.parametrize("method", ["column-generation", "lp", "exponentiated-gradient"])
def test_learning_takes_ratios(method):
    rng = np.random.default_rng(0)
    a = np.arange(60) % 2
    x = rng.normal(size=60) + a
    y = (x + rng.normal(size=60) > 0.8).astype(int)
    p = FairClassification(x[:, None], y, a, DemographicParityRatio(0.8), hypotheses=Thresholds())
    s = p.solve(method)
    assert s.evaluation.feasible
    votes = np.array([h.predictions for h in p.oracle.all()])
    part = np.stack([votes[:, a == g].mean(axis=1) for g in (0, 1)])
    rows = [0.8 * part[0] - part[1], 0.8 * part[1] - part[0]]
    true = linprog((votes != y).mean(axis=1), rows, [0, 0], np.ones((1, len(votes))), [1.0]).fun
    assert s.objective == pytest.approx(true, abs=1e-6 if method != "exponentiated-gradient" else 0.02)


def test_fairlearn_measures_the_same_ratio():
    metrics = pytest.importorskip("fairlearn.metrics")
    rng = np.random.default_rng(1)
    y, h = rng.integers(0, 2, (2, 300))
    a = rng.choice(list("abc"), 300)
    rates = GroupRates.from_records(h, a, y)
    for notion, theirs in (
        (DemographicParityRatio(), metrics.demographic_parity_ratio),
        (EqualizedOddsRatio(), metrics.equalized_odds_ratio),
    ):
        ours = 1 - max(notion.disparity(rates).values())
        assert ours == pytest.approx(theirs(y, h, sensitive_features=a))


def test_nobody_selected_keeps_every_ratio():
    rates = GroupRates([[0, 0], [0, 0]], [[1, 1], [1, 1]])
    assert DemographicParityRatio(1.0).violation(rates) == {"relative selection rate": 0.0}
    assert DemographicParityRatio(1.0).disparity(rates) == {"relative selection rate": 0.0}
    assert DemographicParityRatio().rows(GroupRates([[0, 0]], [[1, 1]])) == []


def test_numbers_cannot_be_constrained_and_ratios_of_expressions_not_measured():
    rates = GroupRates([[0, 0], [0, 0]], [[1, 1], [1, 1]])
    with pytest.raises(fo.DeclarationError, match="cannot be constrained"):
        DemographicParityRatio().rows(rates)
    model = fo.Model()
    parts = FairPostprocessing(counts=COUNTS, constraint=DemographicParityRatio()).declare(model)
    with pytest.raises(fo.DeclarationError, match="not convex"):
        DemographicParityRatio().disparity(parts.rates)
    with pytest.raises(fo.DeclarationError, match="ratio"):
        DemographicParityRatio(1.5)


def test_private_methods_refuse_ratios():
    from forcopt.privacy import PrivacyBudget

    p = FairPostprocessing(counts=COUNTS, constraint=DemographicParityRatio(), privacy=PrivacyBudget(1.0))
    with pytest.raises(fo.DeclarationError, match="DemographicParityRatio"):
        p.solve()


def test_rates_estimated_through_a_channel_may_leave_0_to_1():
    """Estimated rates of 1.3 and more keep a ratio, too: all methods and the definition by pairs agree."""
    rng = np.random.default_rng(1)
    beyond = 0
    for _ in range(30):
        n, channel = int(rng.integers(8, 25)), RandomizedResponse(0.5)
        x, y, reports = rng.integers(0, 4, n), rng.integers(0, 2, n), rng.permutation(np.arange(n) % 2)
        fields = {"features": x[:, None], "labels": y, "groups": channel.observe(reports)}
        ratio = float(rng.choice([0.0, 0.5, 0.8]))
        p = FairClassification(**fields, constraint=DemographicParityRatio(ratio), hypotheses=Thresholds())
        table = np.array([x >= c for c in range(5)] + [x < c for c in range(5)], dtype=float)
        share = channel.inverse(2)[:, reports]
        rates = (share @ table.T) / share.sum(axis=1)[:, None]
        beyond += bool((rates > 1).any() or (rates < 0).any())
        rows = [ratio * rates[1] - rates[0], ratio * rates[0] - rates[1]]
        error = np.abs(table - y).mean(axis=1)
        best = linprog(error, rows, [0, 0], np.ones((1, 10)), [1])
        for method in ("lp", "column-generation"):
            s = p.solve(method)
            assert (s.status == "infeasible") == (best.status == 2)
            assert best.status == 2 or s.objective == pytest.approx(best.fun, abs=1e-6)
    assert beyond > 10
