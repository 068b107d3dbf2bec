"""Laws of bit populations are those of their samples and of enumeration; sessions on them keep the rules."""

from itertools import pairwise, product

import numpy as np
import pytest
from scipy.stats import binom

from forcopt.errors import DeclarationError
from forcopt.models import AccuracyPlan
from forcopt.models.adaptive_queries import (
    AdaptiveSession,
    BitQuery,
    DecayingCorrelation,
    IndependentBlocks,
    MarkovBits,
    NaiveComposition,
    NeighborAnds,
    QueryRefusedError,
    StreamedBlocks,
    best_pairs,
)

POPULATIONS = {
    "G1": MarkovBits.blocks(3, 4, 0.7),
    "G2": NeighborAnds(8),
    "G3": MarkovBits.decaying(9, 0.3),
}


@pytest.mark.parametrize("name", POPULATIONS)
def test_samples_have_the_law(name):
    """A mean of n records is further than 5 / (2 sqrt(n)) from its expectation with probability < 4e-6."""
    population, n = POPULATIONS[name], 100_001
    sample = population.sample(n, 3)
    rng = np.random.default_rng(0)
    for _ in range(60):
        k = int(rng.integers(1, 6))
        bits = tuple(rng.permutation(len(population.position))[:k].tolist())
        query = BitQuery(bits, rng.random((2,) * k))
        mean = sample.mean(query)
        assert abs(mean - population.value(query)) < 2.5 / n**0.5
        assert mean == pytest.approx(sample.mean(query, slice(0, n)), abs=1e-12)  # packed and unpacked
        part = sample.mean(query, slice(0, 70))
        assert 0 <= part <= 1


def test_laws_by_enumeration():
    """Copied bits by all chains of links; ANDs by all hidden bits."""
    p = 0.3
    table = np.zeros((2,) * 5)
    for links in product((0, 1), repeat=4):
        weight = np.prod([1 - p if link else p for link in links])
        runs = np.cumsum([0] + [1 - link for link in links])
        for fresh in product((0, 1), repeat=int(runs[-1]) + 1):
            table[tuple(fresh[r] for r in runs)] += weight / 2 ** len(fresh)
    np.testing.assert_allclose(MarkovBits.decaying(5, p).law(range(5)), table, atol=1e-15)
    np.testing.assert_allclose(MarkovBits.decaying(5, p).law([0, 3]), table.sum(axis=(1, 2, 4)), atol=1e-15)
    ands = np.zeros((2,) * 4)
    for hidden in product((0, 1), repeat=5):
        ands[tuple(a & b for a, b in pairwise(hidden))] += 1 / 32
    np.testing.assert_allclose(NeighborAnds(4).law(range(4)), ands, atol=1e-15)
    np.testing.assert_allclose(NeighborAnds(4).law([0, 1, 3]), ands.sum(axis=2), atol=1e-15)


def test_correlation_decays_as_in_the_digest():
    """E[B_i B_j] is q^(j - i) / 2 + (1 - q^(j - i)) / 4 for copied fair bits."""
    q = 0.6
    population = MarkovBits.decaying(12, 1 - q)
    for gap in (1, 2, 5, 11):
        both = population.value(BitQuery((0, gap), [[0, 0], [0, 1]]))
        assert both == pytest.approx(q**gap / 2 + (1 - q**gap) / 4)


MODELS = {
    "blocks": (MarkovBits.blocks(4, 5, 0.5), IndependentBlocks(4), 60),
    "streamed": (NeighborAnds(4), StreamedBlocks(4), 20),
    "decaying": (MarkovBits.decaying(12, 0.999), DecayingCorrelation(12, 0.999, 1), 60),
    "sliding": (MarkovBits.decaying(12, 0.999), DecayingCorrelation(12, 0.999, 1, "sliding"), 60),
    "naive": (MarkovBits.decaying(4, 0.1), NaiveComposition(4), 20),
}


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("method", ["search", "split-sample"])
@pytest.mark.parametrize("name", MODELS)
def test_sessions_on_bits_stay_within_the_plan(name, method, noise):
    """20 sessions at a failure of .05: more than 4 exceed with probability below .003."""
    population, model, k = MODELS[name]
    plan = AccuracyPlan(model, 5000, k, 0.05, noise).solve(method)
    exceeded = 0
    for seed in range(20):
        analyst = best_pairs(population, 5, 1 if name in ("decaying", "naive") else 0, seed)
        found = AdaptiveSession(population.sample(5000, seed), population, plan, analyst, seed).run()
        exceeded += found.error > plan.objective
    assert exceeded <= 4 and binom.sf(4, 20, 0.05) < 0.003


def script(*queries):
    return lambda history: queries[len(history)] if len(history) < len(queries) else None


def test_a_session_refuses_what_its_plan_does_not_cover():
    population = MarkovBits.decaying(9, 0.9)
    sample = population.sample(5000, 0)

    def ask(model, queries, *bits):
        plan = AccuracyPlan(model, 5000, queries, 0.5).solve()
        asked = [BitQuery(b, np.ones((2,) * len(b))) for b in bits]
        return AdaptiveSession(sample, population, plan, script(*asked), 0).run()

    narrow = DecayingCorrelation(9, 0.9999, 1)
    assert len(ask(narrow, 2, (0, 1), (1, 2), (7, 8)).queries) == 3
    with pytest.raises(QueryRefusedError, match="distance of at most width 1"):
        ask(narrow, 2, (0, 2))
    with pytest.raises(QueryRefusedError, match="window has had its 2"):
        ask(narrow, 2, (0,), (3,), (4,))  # the window of bit 2 is touched by all three
    with pytest.raises(QueryRefusedError, match="within one block"):
        ask(IndependentBlocks(9), 2, (0, 1))
    with pytest.raises(QueryRefusedError, match="stream has passed"):
        ask(DecayingCorrelation(9, 0.9999, 1, "sliding"), 9, (5,), (4,))
    with pytest.raises(QueryRefusedError, match="session has had its 9"):
        ask(NaiveComposition(9), 1, *[(0, 8)] * 10)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: BitQuery((0, 0), np.ones((2, 2))), "different"),
        (lambda: BitQuery((), np.ones(())), "1 to 20"),
        (lambda: BitQuery((0,), [0.5, 1.5]), r"in \[0, 1\]"),
        (lambda: BitQuery((0, 1), [0.5, 1]), "shape"),
        (lambda: NeighborAnds(3).value(BitQuery((3,), [0, 1])), "they go from 0 to 2"),
        (lambda: NeighborAnds(3).sample(9, 0).mean(BitQuery((3,), [0, 1])), "they go from 0 to 2"),
        (lambda: NeighborAnds(3).sample(0), "records"),
    ],
)
def test_malformed_bits_raise(make, words):
    with pytest.raises(DeclarationError, match=words):
        make()


def test_a_hundred_thousand_records_of_a_thousand_attributes():
    for population in (MarkovBits.decaying(1000, 0.9), NeighborAnds(1000), MarkovBits.blocks(50, 20)):
        sample = population.sample(100_000, 0)
        assert sample.words.nbytes <= 13e6  # 12.5 MB: a bit for each
        plan = AccuracyPlan(
            IndependentBlocks(population.positions), 100_000, 50 if population.positions == 50 else 1, 0.05
        ).solve()
        analyst = best_pairs(population, 50 // (20 if population.positions == 50 else 50) or 1)
        found = AdaptiveSession(sample, population, plan, analyst, 0).run()
        assert len(found.queries) >= 1000 and found.error < plan.objective
