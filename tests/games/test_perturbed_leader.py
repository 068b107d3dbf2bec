from itertools import product

import numpy as np
import pytest

import forcopt as fo
from forcopt.games import PerturbedLeader

CUBE = np.array(list(product((0.0, 1.0), repeat=3)))


@pytest.mark.parametrize("seed", range(5))
def test_the_expected_regret_is_within_the_theorem(seed):
    """Theorem 19, 2 M d^(3/2) sqrt(T); the mean over 20 plays a round is far below it."""
    rng = np.random.default_rng(seed)
    rounds, most, d = 300, 2.0, 3
    actions = CUBE[rng.choice(8, 5, replace=False)]
    losses = rng.uniform(-most, most, (rounds, d)) + rng.uniform(-0.2, 0.2, d)
    losses = np.clip(losses, -most, most)
    leader = PerturbedLeader(
        lambda costs: (costs @ actions.T).argmin(axis=1), d, rate=1 / (most * np.sqrt(d * rounds)), seed=seed
    )
    paid = 0.0
    for loss in losses:
        paid += float((actions[leader.play(20)] @ loss).mean())
        leader.learn(loss)
    best = float((actions @ losses.sum(axis=0)).min())
    assert paid - best <= 2 * most * d**1.5 * np.sqrt(rounds)


def test_plays_repeat_with_the_seed_and_vary_within_a_round():
    def plays(seed):
        leader = PerturbedLeader(lambda costs: costs.argmin(axis=1), 4, rate=0.01, seed=seed)
        return leader.play(50).tolist()

    assert plays(3) == plays(3) != plays(4)
    assert len(set(plays(3))) == 4
    assert plays(np.random.default_rng(3)) == plays(3)


@pytest.mark.parametrize("rate", [0.0, -1.0, np.inf, np.nan])
def test_the_rate_is_positive(rate):
    with pytest.raises(fo.DeclarationError, match="it must be positive and finite"):
        PerturbedLeader(lambda costs: costs, 2, rate=rate)
