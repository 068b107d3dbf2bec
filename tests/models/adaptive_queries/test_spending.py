import numpy as np
import pytest

import forcopt as fo
from forcopt.errors import DeclarationError
from forcopt.models import BudgetAllocation
from forcopt.models.adaptive_queries import DecayingCorrelation, IndependentBlocks


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
    s = p.solve("progressive-filling")
    assert s.status is fo.Status.OPTIMAL and s.evaluation.feasible
    assert s.objective == pytest.approx(value, rel=1e-7)


def max_min(p):
    """The definition, window by window: raise all levels until one is full; its queries stop."""
    width = p.data_model.width
    touch = np.array(
        [[a <= i + 2 * width and b >= i - 2 * width for a, b in p.intervals] for i in range(1, 13)], float
    )
    levels = np.full(len(p.needs), np.nan)
    while np.isnan(levels).any():
        active = np.isnan(levels)
        taken = touch[:, ~active] @ (levels * p.needs)[~active]
        rate = touch[:, active] @ p.needs[active]
        at = np.divide(p.epsilon - taken, rate, out=np.full(12, np.inf), where=touch[:, active].any(1))
        levels[active & touch[at <= at.min() * (1 + 1e-11)].any(axis=0)] = at.min()
    return levels


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("seed", [0, 2, 4])
def test_filling_takes_tiny_huge_and_mixed_weights(seed, scale, noise):
    for spread in (0, 4):
        p = instance(seed, "leximin", noise)
        rng = np.random.default_rng(seed)
        p = p.replace(weights=p.weights * scale * 10.0 ** rng.integers(-spread, spread + 1, 8))
        s = p.solve("progressive-filling")
        assert s.evaluation.feasible
        np.testing.assert_allclose(s.decision.spends / p.needs, max_min(p), rtol=1e-8)


def test_analysts_who_share_windows():
    """Two analysts on one block, one alone on another: leximin gives the lonely one its whole block."""
    p = BudgetAllocation(IndependentBlocks(2), [[1, 1], [1, 1], [2, 2]], objective="leximin")
    assert p.solve().decision.spends.tolist() == [0.5, 0.5, 1.0]
    worst = p.replace(objective="worst").solve().objective
    assert worst == pytest.approx(2.0)


def test_malformed_allocations_raise(tmp_path):
    p = instance(0, "worst", "laplace")
    for fields in ({"weights": 0.0}, {"epsilon": -1.0}, {"intervals": [[1, 9]]}, {"objective": "least"}):
        with pytest.raises(DeclarationError):
            p.replace(**fields)
    with pytest.raises(DeclarationError, match="shape"):
        p.evaluate([0.1])
    assert "budget" in p.evaluate(np.ones(8)).violations
    assert p.evaluate(np.zeros(8)).objective == np.inf
    p.save(tmp_path / "p.json")
    assert fo.load(tmp_path / "p.json") == p
