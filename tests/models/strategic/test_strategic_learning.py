import numpy as np
import pytest

import forcopt as fo
from forcopt.models.strategic import (
    LinearClassifier,
    StrategicClassification,
    learn_bandit,
    learn_full_information,
)
from forcopt.models.strategic.instances import (
    credit,
    max_cover,
    random_discrete,
    random_linear,
    random_plane,
)
from forcopt.models.strategic.learning import bandit_batch, full_information_samples


@pytest.fixture(scope="module")
def population():
    return random_discrete(40, 6, gaming=0.3, seed=2, weights=np.random.default_rng(2).dirichlet(np.ones(40)))


def test_the_numbers_of_samples():
    assert full_information_samples(10, 0.1, 0.05) == 100 and full_information_samples(4, 0.1, 0.05) == 58
    assert bandit_batch(10, 0.1, 0.05) == 53 and bandit_batch(4, 0.1, 0.05) == 44


def test_agents_are_drawn_by_their_weights(population):
    rng = np.random.default_rng(0)
    drawn = population.sample(20_000, rng)
    assert drawn.agents == 20_000 and drawn.weights is None and drawn.criteria == population.criteria
    for q in ({0, 1, 2}, {3}, set(range(6))):
        share = drawn.simulate(q).true_positives / 20_000
        # five standard deviations: fails once in 10^6 runs, and the seed is fixed
        assert share == pytest.approx(population.simulate(q).true_positives, abs=5 * 0.5 / 20_000**0.5)


def test_drawn_agents_keep_their_values_and_groups():
    p = StrategicClassification(
        2, 1, [(0, 0, 5, 1)], value=[5, 1], weights=[1, 1], groups=[0, 1], max_false_positives=2
    )
    drawn = p.sample(50, np.random.default_rng(1))
    has_edge = np.isin(np.arange(50), drawn.edges[:, 0])
    assert (drawn.value == np.where(has_edge, 5, 1)).all() and (drawn.groups == ~has_edge).all()
    assert drawn.max_false_positives == 2 and 10 < has_edge.sum() < 40


@pytest.mark.parametrize("learn", [learn_full_information, learn_bandit])
def test_learning_keeps_its_promise(population, learn):
    """Theorems 8 and 9. At most a delta of the runs may fail: more than 22 of 200 has probability below
    1e-3."""
    best = population.solve("greedy-deletion").objective
    failures = 0
    for seed in range(200):
        found = learn(population, 0.1, 0.05, seed=seed)
        r = population.simulate(found.decision)
        if learn is learn_full_information:
            assert r.true_positives + r.false_positives >= best - 1e-9  # for certain
            assert found.samples == full_information_samples(6, 0.1, 0.05)
        else:
            assert found.samples <= 6 * bandit_batch(6, 0.1, 0.05)
            assert found.samples == found.rounds * bandit_batch(6, 0.1, 0.05)
        failures += r.true_positives < best - 0.1 - 1e-9 or r.false_positives > 0.1 + 1e-9
    assert failures <= 22


def test_learning_repeats_with_its_seed(population):
    assert learn_bandit(population, 0.2, 0.1, seed=3) == learn_bandit(population, 0.2, 0.1, seed=3)
    few = [learn_full_information(population, 0.2, 0.1, samples=3, seed=s).decision for s in range(20)]
    assert len(set(few)) > 1


def test_online_learning_uses_fewer_samples(population):
    batches = [learn_bandit(population, 0.05, 0.05, seed=s).samples for s in range(20)]
    online = [learn_bandit(population, 0.05, 0.05, online=True, seed=s) for s in range(20)]
    assert np.mean([f.samples for f in online]) < np.mean(batches)
    assert all(population.simulate(f.decision).false_positives <= 0.05 for f in online)


def test_a_population_may_be_anything_that_samples():
    class Line:
        criteria = 3

        def sample(self, size, rng):
            x = rng.random((size, 1))
            return StrategicClassification.from_features(
                x, [[0.5], [0.8], [1.2]], ([1.0], 0.7), [4.0], [False], max_false_positives=None
            )

    assert learn_bandit(Line(), 0.05, 0.05, seed=0).decision == {2}
    assert learn_full_information(Line(), 0.05, 0.05, seed=0).decision == {2}


def test_no_criteria_and_only_gaming():
    nothing = StrategicClassification(agents=2, criteria=0, edges=[])
    assert learn_bandit(nothing, 0.1, 0.1, seed=0).decision == set()
    gaming = StrategicClassification(agents=1, criteria=2, edges=[(0, 0, 1, 0), (0, 1, 1, 0)])
    found = learn_bandit(gaming, 0.1, 0.1, seed=0)
    assert found.decision == set() and found.rounds == 2
    assert learn_full_information(gaming, 0.1, 0.1, samples=0, seed=0).decision == {0, 1}


@pytest.mark.parametrize("learn", [learn_full_information, learn_bandit])
@pytest.mark.parametrize(
    ("epsilon", "delta", "name"), [(0, 0.1, "epsilon"), (1.5, 0.1, "epsilon"), (0.1, -1, "delta")]
)
def test_bad_rates_are_refused(population, learn, epsilon, delta, name):
    with pytest.raises(fo.DeclarationError, match=f"{name} is .*; it must be above 0"):
        learn(population, epsilon, delta)


def test_a_negative_number_of_samples_is_refused(population):
    with pytest.raises(fo.DeclarationError, match="samples is -1"):
        learn_full_information(population, 0.1, 0.1, samples=-1)


# -- generators ----------------------------------------------------------------------------------------------


def test_random_graphs_have_the_density_asked_for():
    p = random_discrete(300, 100, density=0.2, gaming=0.4, gameable=0.5, seed=0)
    assert len(p.edges) == pytest.approx(6000, abs=5 * (30_000 * 0.2 * 0.8) ** 0.5)
    games = p.edges[:, 3] == 0
    assert (p.edges[games, 1] < 50).all()
    assert games.sum() == pytest.approx(1200, abs=200)
    assert random_discrete(9, 9, density=1, seed=0).edges.shape == (81, 4)
    assert random_discrete(9, 9, density=0, seed=0).edges.shape == (0, 4)
    assert random_discrete(9, 9, seed=1) == random_discrete(9, 9, seed=1) != random_discrete(9, 9, seed=2)


def test_random_targets_are_qualified():
    p = random_linear(50, 4, targets=20, seed=1)
    assert p.criteria == 20 and len(p.edges) > 50 and 0 < p.edges[:, 3].mean() < 1
    assert p.solve("greedy-deletion").evaluation.feasible


def test_the_credit_scenario_shows_what_gaming_does():
    p = credit(150, seed=0)
    naive, best = p.evaluate(range(p.criteria)), p.solve("greedy-deletion")
    assert naive.metrics["false_positives"] > 10 and best.evaluation.metrics["false_positives"] == 0
    assert 0 < best.objective < naive.metrics["true_positives"] + naive.metrics["false_positives"]
    some = credit(150, seed=0, max_false_positives=5).solve(time_limit=60)
    assert some.status == fo.Status.OPTIMAL and some.objective >= best.objective


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: random_discrete(2, 2, density=1.5), "density is 1.5"),
        (lambda: random_linear(2, 2, qualified=1), "qualified is 1"),
        (lambda: random_plane(2, reach=0), "reach is 0"),
        (lambda: max_cover([(0, 1)], 3, 1), r"sets\[0\] is \(0, 1\)"),
        (lambda: max_cover([(0, 1, 2), (2, 1, 0)], 3, 1), "distinct"),
    ],
)
def test_bad_generators_are_refused(call, words):
    with pytest.raises(fo.DeclarationError, match=words):
        call()


def test_a_linear_classifier_is_a_decision_too():
    """The simulator takes the decisions of every problem of the family."""
    from forcopt.models.strategic import StrategicLinearClassifier

    p = StrategicLinearClassifier([[0.0]], ([1.0], 1.0), [1.0], [True])
    assert p.simulate(LinearClassifier([1.0], 1.0)).true_positives == 1
