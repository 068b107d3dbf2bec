import numpy as np
import pytest

from forcopt.fairness import GroupRates, PredictiveValues
from forcopt.models import FairClassification, FairPostprocessing, ScorePostprocessing
from forcopt.models.fair_classification import Thresholds


def test_dust_has_no_predictive_value():
    mass = np.array([[40.0, 20.0], [15.0, 25.0]])
    dust = GroupRates(np.array([[1e-6, 1e-7], [1e-9, 0.0]]), mass)
    notion = PredictiveValues(0.8, 0.3)
    assert notion.violation(dust) == {"positive predictive value": 0.0, "negative predictive value": 0.0}
    few = GroupRates(np.array([[1e-3, 1e-4], [0.0, 0.0]]), mass)
    assert notion.violation(few)["positive predictive value"] == pytest.approx(0.8 - 1 / 11)


@pytest.mark.parametrize("backend", ["highs", "clarabel", "glop", "scip"])
@pytest.mark.parametrize("seed", range(15))
def test_right_optima_are_accepted(seed, backend):
    if backend == "scip":
        pytest.importorskip("pyscipopt")
    rng = np.random.default_rng(seed)
    notion = PredictiveValues(rng.uniform(0.2, 0.9), rng.uniform(0.2, 0.9))
    counts = rng.integers(1, 60, (2, 3, 2))
    n = 40
    a = np.concatenate([[0, 0, 1, 1], rng.integers(0, 2, n - 4)])
    y = np.concatenate([[0, 1, 0, 1], rng.integers(0, 2, n - 4)])
    x = rng.integers(0, 10, n) + 3.0 * y
    problems = [
        FairPostprocessing(counts=counts, constraint=notion),
        ScorePostprocessing(scores=x, labels=y, groups=a, constraint=notion),
        FairClassification(x[:, None], y, a, notion, hypotheses=Thresholds()),
    ]
    for p in problems:
        s = p.solve("lp", backend=backend)
        assert s.status in ("optimal", "infeasible"), (type(p).__name__, s.status, s.message)
        if s.status == "optimal":
            assert s.evaluation.feasible
