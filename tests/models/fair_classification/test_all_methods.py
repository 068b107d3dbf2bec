"""Every method on legal but odd data, under time limits, and through a pickle."""

import pickle

import numpy as np
import pytest
from processor_time import spends_at_most

import forcopt as fo
from forcopt.fairness import (
    BoundedGroupLoss,
    DemographicParity,
    EqualizedOdds,
    PairwiseFairness,
    PredictiveValues,
)
from forcopt.learning import Halfspaces, Learner, Thresholds
from forcopt.models import FairClassification
from forcopt.privacy import PrivacyBudget, RandomizedResponse

GAMES = ("exponentiated-gradient", "no-regret", "column-generation", "lp", "milp")


def records(n=60, seed=0, d=1):
    rng = np.random.default_rng(seed)
    a = np.arange(n) % 2
    x = rng.integers(0, 12, (n, d)) + 3.0 * a[:, None]
    return x, (x[:, 0] + rng.normal(0, 4, n) > 8).astype(int), a


def problems():
    """For every method a problem that it takes."""
    x, y, a = records()
    plain = FairClassification(x, y, a, EqualizedOdds(0.1), hypotheses=Thresholds())
    rng = np.random.default_rng(1)
    big = 4000
    reports = RandomizedResponse(2.0).observe(
        RandomizedResponse(2.0).privatize(np.arange(big) % 2, 2, seed=1)
    )
    seen = FairClassification(
        rng.integers(0, 9, (big, 1)),
        rng.integers(0, 2, big),
        reports,
        EqualizedOdds(0.2),
        hypotheses=Thresholds(),
    )
    private = FairClassification(
        rng.integers(0, 4, (big, 1)),
        np.arange(big) // 2 % 2,
        np.arange(big) % 2,
        EqualizedOdds(0.2),
        hypotheses=Thresholds(),
        privacy=PrivacyBudget(5.0, 1e-6, 900),
    )
    special = {
        "two-step": seen,
        "dp-oracle-learner": private,
    }
    return {name: special.get(name, plain) for name in plain.methods}


OPTIONS = {"two-step": {"seed": 0}, "dp-oracle-learner": {"seed": 0, "allow_vacuous": True}}


@pytest.mark.parametrize("name", sorted(problems()))
def test_solutions_can_be_pickled(name):
    s = problems()[name].solve(name, **OPTIONS.get(name, {}))
    again = pickle.loads(pickle.dumps(s))
    if s.private:  # its pickle holds what was released, nothing of the data
        assert again.problem is None and again.evaluation is None
        assert s.problem.evaluate(again.decision).objective == pytest.approx(s.objective)
        return
    assert again.objective == s.objective
    assert again.problem.evaluate(again.decision).objective == pytest.approx(s.objective)


@pytest.mark.parametrize("limit", [0.0, 0.3])
@pytest.mark.parametrize("name", sorted(problems()))
def test_every_method_keeps_its_time_limit(name, limit):
    with spends_at_most(limit + 30):
        s = problems()[name].solve(name, time_limit=limit, **OPTIONS.get(name, {}))
    assert s.decision is not None or s.status in ("limit", "infeasible")
    if s.decision is not None and np.isfinite(s.bound):
        exact = problems()[name].solve("column-generation") if name not in ("two-step",) else s
        assert s.bound <= exact.objective + 1e-7


@pytest.mark.parametrize("name", ["exponentiated-gradient", "no-regret", "column-generation"])
def test_a_run_that_is_cut_short_says_so(name):
    x, y, a = records(400, d=3)
    p = FairClassification(x, y, a, EqualizedOdds(0.01))
    s = p.solve(name, time_limit=0.0)
    assert "the time limit of" in s.message
    whole = p.solve(name)
    assert "the time limit of" not in whole.message
    assert "accuracy" in whole.message or "all rounds" in whole.message or "no classifier" in whole.message


def test_the_default_accuracy_is_the_noise_of_the_error():
    x, y, a = records(400, d=3)
    p = FairClassification(x, y, a, EqualizedOdds(0.01))
    assert p.noise(0.5) == pytest.approx(0.25 * np.sqrt(0.25 / 400))
    tight, default = p.solve(accuracy=0.0), p.solve()
    assert default.objective <= tight.objective + p.noise(default.objective) + 1e-9
    assert default.iterations <= tight.iterations
    weighted = FairClassification(x, y, a, EqualizedOdds(0.5), weights=np.repeat([1.0, 3.0], 200))
    assert weighted.noise(0.5) > p.noise(0.5)


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("name", GAMES)
def test_one_label_is_legal(name, label):
    x, _, a = records()
    for constraint in (DemographicParity(0.1), BoundedGroupLoss(0.2), PairwiseFairness([(0, 1), (1, 0)])):
        p = FairClassification(x, np.full(60, label), a, constraint, hypotheses=Thresholds())
        s = p.solve(name)
        assert s.objective == pytest.approx(0.0, abs=1e-9) and s.evaluation.feasible


@pytest.mark.parametrize("name", ["exponentiated-gradient", "no-regret"])
@pytest.mark.parametrize("bound", [0.01, 0.1, 1.0])
def test_the_multipliers_sum_to_what_is_stated(name, bound):
    x, y, a = records(seed=3)
    for constraint in (EqualizedOdds(0.02), DemographicParity(0.0)):
        p = FairClassification(x, y, a, constraint, hypotheses=Thresholds())
        s = p.solve(name, bound=bound)
        stated = float(s.message.split("of sum at most ")[1].split(";")[0])
        assert s.decision.multipliers.sum() <= stated * (1 + 1e-3) + 1e-9
        assert s.decision.multiplier_bound == pytest.approx(stated, rel=1e-3)
        assert s.evaluation.metrics["auditor gap"] >= -1e-9
        assert s.bound <= p.solve("lp").objective + 1e-7


@pytest.mark.parametrize("name", GAMES)
def test_predictive_values_are_a_notion_like_others(name):
    x, y, a = records()
    p = FairClassification(x, y, a, PredictiveValues(0.3, 0.3), hypotheses=Thresholds())
    s, best = p.solve(name), p.solve("lp")
    assert best.status == "optimal"
    if s.decision is not None and s.evaluation.feasible:
        assert s.objective >= best.objective - 1e-7


def test_a_milp_oracle_stops_in_time():
    x, y, a = records(120, d=4)
    x = x + np.random.default_rng(0).normal(size=x.shape)
    p = FairClassification(x, y, a, EqualizedOdds(0.02), hypotheses=Halfspaces())
    with spends_at_most(30):
        s = p.solve(time_limit=1.0)
    assert s.decision is not None and "the time limit of" in s.message
    assert not np.isfinite(s.bound) or s.bound <= s.objective + 1e-9


def test_a_private_seeded_run_is_called_a_simulation():
    p = problems()["dp-oracle-learner"]
    s = p.solve("dp-oracle-learner", seed=0, allow_vacuous=True)
    assert s.message.startswith("a simulation with a seed, so not private")
    assert "with probability 0.95" in s.message
    early = p.solve("dp-oracle-learner", seed=0, allow_vacuous=True, time_limit=0.0)
    assert early.iterations < s.iterations and "no bound" in early.message and early.guarantee == np.inf


def test_warm_starts_do_not_change_the_answer():
    from sklearn.linear_model import LogisticRegression

    x, y, a = records(300, d=3)
    found = [
        FairClassification(
            x,
            y,
            a,
            EqualizedOdds(0.05),
            hypotheses=Learner(LogisticRegression(max_iter=1000, warm_start=warm)),
        ).solve(accuracy=0.0)
        for warm in (False, True)
    ]
    assert found[0].objective == pytest.approx(found[1].objective, abs=0.01)
    assert all(s.evaluation.feasible for s in found)


def test_unknown_things_are_refused():
    x, y, a = records()
    with pytest.raises(fo.DeclarationError, match="dp-oracle-learner takes rates"):
        FairClassification(
            x, y, a, PredictiveValues(0.5, 0.5), hypotheses=Thresholds(), privacy=PrivacyBudget(1.0, 1e-6, 2)
        ).solve()
