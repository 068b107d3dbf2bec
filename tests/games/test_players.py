import numpy as np
import pytest

import forcopt as fo
from forcopt.games import ExponentiatedGradient


def test_the_play_maximises_gain_less_entropy():
    """Jagielski et al. (2019): the closed form, with the values of a conic solver."""
    player = ExponentiatedGradient(4, bound=5.0, step=1.0)
    player.learn([0.3, -0.2, 0.1, 0.0])
    assert player.play() == pytest.approx([1.27978775, 0.77623051, 1.04780159, 0.94809008], abs=1e-8)


def test_extreme_gains_do_not_overflow():
    player = ExponentiatedGradient(2, bound=3.0, step=1.0)
    player.learn([1e6, 0.0])
    assert player.play() == pytest.approx([3.0, 0.0])
    player.learn([-2e6, -2e6])
    assert player.play() == pytest.approx([0.0, 0.0])


@pytest.mark.parametrize("seed", range(3))
def test_the_regret_is_within_the_bound(seed):
    rng = np.random.default_rng(seed)
    gains = rng.uniform(-2, 2, size=(400, 5)) * rng.random(5)
    step, bound = 0.5 * np.sqrt(np.log(6) / 400), 3.0
    player, got = ExponentiatedGradient(5, bound, step), 0.0
    for gain in gains:
        got += float(player.play() @ gain)
        player.learn(gain)
    best = bound * max(0.0, gains.sum(axis=0).max())
    assert (best - got) / 400 <= bound * np.log(6) / (step * 400) + 4 * step * bound


def test_bounds_and_steps_are_positive():
    for bound, step in ((0.0, 1.0), (1.0, np.nan), (np.inf, 1.0)):
        with pytest.raises(fo.DeclarationError, match="it must be positive and finite"):
            ExponentiatedGradient(3, bound, step)
