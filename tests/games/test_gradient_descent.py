import numpy as np
import pytest

import forcopt as fo
from forcopt.games import GradientDescent


def ball(x):
    return x / max(np.linalg.norm(x), 1.0)


def regret(player, gradients):
    plays = []
    for g in gradients:
        plays.append(player.play().copy())
        player.learn(g)
    total = np.sum(gradients, axis=0)
    return float(np.sum(np.array(plays) * gradients)) + float(np.linalg.norm(total))  # the best is -total


@pytest.mark.parametrize("seed", range(10))
def test_the_regret_is_within_the_theorem(seed):
    """Theorem 18, G D sqrt(T), on linear losses over the unit ball, also against an adversary."""
    rng = np.random.default_rng(seed)
    rounds, slope = 200, 3.0
    drift = rng.normal(size=4)
    gradients = rng.normal(size=(rounds, 4)) + rng.integers(0, 2) * drift
    gradients *= slope / np.linalg.norm(gradients, axis=1, keepdims=True)
    fixed = GradientDescent(np.zeros(4), ball, rate=2.0 / (slope * np.sqrt(rounds)))
    assert regret(fixed, gradients) <= slope * 2.0 * np.sqrt(rounds)
    adaptive = GradientDescent(np.zeros(4), ball, diameter=2.0)
    assert regret(adaptive, gradients) <= 1.5 * 2.0 * np.sqrt(np.square(gradients).sum())


def test_steps_are_projected():
    player = GradientDescent(np.array([0.5, 0.0]), ball, rate=10.0)
    player.learn(np.array([0.0, -1.0]))
    np.testing.assert_allclose(player.play(), np.array([0.5, 10.0]) / np.linalg.norm([0.5, 10.0]))
    still = GradientDescent(np.array([0.5]), ball, diameter=1.0)
    still.learn(np.zeros(1))
    assert still.play().tolist() == [0.5]


@pytest.mark.parametrize("how", [{}, {"rate": 0.0}, {"diameter": np.inf}, {"rate": 1.0, "diameter": 1.0}])
def test_one_positive_rate_or_diameter(how):
    with pytest.raises(fo.DeclarationError, match="one of them must be given, positive and finite"):
        GradientDescent(np.zeros(1), ball, **how)
