import numpy as np

from forcopt.learning import RandomizedPolicy, systematic_numbers


class Half(RandomizedPolicy):
    def probability(self, records):
        return np.full(len(records), 0.5)


def test_systematic_draws_keep_each_probability_and_each_total():
    """40,000 repetitions: a frequency is within .015 of its probability, 6 standard deviations (2e-9)."""
    rng = np.random.default_rng(0)
    chance = np.array([0.2, 0.7, 0.7, 0.0, 0.0, 1.0, 0.5, 0.5])
    strata = np.array([0, 1, 1, 2, 2, 4, 3, 3])
    drawn = np.array([systematic_numbers(strata, rng) < chance for _ in range(40_000)])
    assert np.abs(drawn.mean(axis=0) - chance).max() < 0.015
    for s in range(5):
        total = drawn[:, strata == s].sum(axis=1)
        assert np.abs(total - chance[strata == s].sum()).max(initial=0) < 1 + 1e-6
    assert (drawn[:, 6:].sum(axis=1) == 1).all()


def test_subsets_of_a_stratum_concentrate():
    rng = np.random.default_rng(1)
    group = rng.integers(0, 2, 20_000)
    worst = 0.0
    for seed in range(200):
        drawn = systematic_numbers(np.zeros(20_000, dtype=int), np.random.default_rng(seed)) < 0.4
        assert drawn.sum() == 8000
        worst = max(worst, abs(drawn[group == 0].mean() - drawn[group == 1].mean()))
    assert worst < 0.042  # 6 standard deviations


def test_draws_repeat():
    X = np.zeros((50, 1))
    policy = Half()
    assert policy.predict(X, 3).tolist() == policy.predict(X, seed=3).tolist()
    assert set(policy.predict(X, 3)) == {0, 1}
    assert policy.predict_proba(X).tolist() == [[0.5, 0.5]] * 50
    assert systematic_numbers(np.zeros(0, dtype=int), np.random.default_rng(0)).shape == (0,)
