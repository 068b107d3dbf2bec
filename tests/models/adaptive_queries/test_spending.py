import numpy as np
import pytest
from scipy.optimize import minimize

import forcopt as fo
from forcopt.backends.registry import backends
from forcopt.errors import DeclarationError
from forcopt.models import BudgetAllocation
from forcopt.models.adaptive_queries import DecayingCorrelation, IndependentBlocks, NaiveComposition

LP = [n for n, b in backends().items() if not b.missing() and not b.capabilities.only_integer]


def instance(seed, objective, noise, queries=8):
    rng = np.random.default_rng(seed)
    first = rng.integers(1, 13, queries)
    intervals = np.stack([first, np.minimum(first + rng.integers(0, 2, queries), 12)], axis=1)
    data = DecayingCorrelation(12, 0.5, 1, "sliding" if seed % 2 else "general")
    return BudgetAllocation(data, intervals, rng.integers(1, 6, queries), 2.0, objective, noise)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("seed", range(6))
def test_worst_is_the_fullest_window(seed, noise):
    p = instance(seed, "worst", noise)
    power = 1 if noise == "laplace" else 2
    windows = [
        sum(
            w**power
            for w, (a, b) in zip(p.query_weights, p.intervals, strict=True)
            if a <= i + (1 if seed % 2 else 2) and b >= i - 2
        )
        for i in range(1, 13)
    ]
    value = (max(windows) / 2.0) ** (1 / power)
    for method in ("progressive-filling", "lp"):
        s = p.solve(method)
        assert s.status is fo.Status.OPTIMAL and s.evaluation.feasible
        assert s.objective == pytest.approx(value, rel=1e-7)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("seed", range(6))
def test_leximin_by_filling_and_by_programs(seed, noise):
    p = instance(seed, "leximin", noise)
    filled, solved = p.solve("progressive-filling"), p.solve("leximin")
    assert filled.evaluation.feasible and solved.evaluation.feasible
    np.testing.assert_allclose(
        np.sort(filled.decision.errors)[::-1], np.sort(solved.decision.errors)[::-1], rtol=1e-5
    )


@pytest.mark.parametrize("backend", LP)
def test_worst_on_every_backend(backend):
    p = instance(1, "worst", "laplace")
    value = p.solve().objective
    assert p.solve("lp", backend=backend).objective == pytest.approx(value, rel=2e-3)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("seed", range(3))
def test_weighted_equals_a_nonlinear_solver(seed, noise):
    p = instance(seed, "weighted", noise)
    s = p.solve("cone", backend="clarabel")
    assert s.status is fo.Status.OPTIMAL and s.evaluation.feasible
    matrix = p.matrix().toarray()
    found = minimize(
        lambda x: (p.query_weights / np.exp(x) ** p.exponent).sum(),
        np.log(np.full(8, 0.1)),
        constraints={"type": "ineq", "fun": lambda x: p.epsilon - matrix @ np.exp(x)},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert s.objective == pytest.approx(found.fun, rel=1e-4)


def test_weighted_in_one_window_has_a_closed_form():
    p = BudgetAllocation(NaiveComposition(3), [[1, 1], [2, 3]], [1, 4], 1.0, "weighted")
    s = p.solve("cone", backend="clarabel")
    assert s.objective == pytest.approx((1 + 2) ** 2, rel=1e-6)
    np.testing.assert_allclose(s.decision.spends, [1 / 3, 2 / 3], rtol=1e-4)
    g = p.replace(noise="gaussian").solve("cone", backend="clarabel")
    assert g.objective == pytest.approx((1 + 4 ** (2 / 3)) ** 1.5, rel=1e-6)


def test_analysts_who_share_windows():
    """Two analysts on one block, one alone on another: leximin gives the lonely one its whole block."""
    p = BudgetAllocation(IndependentBlocks(2), [[1, 1], [1, 1], [2, 2]], objective="leximin")
    assert p.solve().decision.spends.tolist() == [0.5, 0.5, 1.0]
    worst = p.replace(objective="worst").solve("lp").objective
    assert worst == pytest.approx(2.0)


def test_malformed_allocations_raise(tmp_path):
    p = instance(0, "worst", "laplace")
    for fields in ({"weights": 0.0}, {"epsilon": -1.0}, {"intervals": [[1, 9]]}, {"objective": "least"}):
        with pytest.raises(DeclarationError):
            p.replace(**fields)
    with pytest.raises(DeclarationError, match="shape"):
        p.evaluate([0.1])
    with pytest.raises(DeclarationError, match="takes weighted"):
        p.solve("cone")
    assert "budget" in p.evaluate(np.ones(8)).violations
    assert p.evaluate(np.zeros(8)).objective == np.inf
    p.save(tmp_path / "p.json")
    assert fo.load(tmp_path / "p.json") == p
