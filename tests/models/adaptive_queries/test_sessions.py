import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from forcopt.errors import DeclarationError
from forcopt.models import AccuracyPlan
from forcopt.models.adaptive_queries import (
    AdaptiveSession,
    IndependentBlocks,
    Population,
    Query,
    QueryRefusedError,
    StreamedBlocks,
    Thresholdout,
    across_blocks,
    membership,
)


def fair_bits(blocks, columns):
    """Blocks of independent fair bits; no column predicts another."""
    table = (np.arange(2**columns)[:, None] >> np.arange(columns)) & 1
    return Population((table,) * blocks, (np.full(2**columns, 0.5**columns),) * blocks)


def sign_votes(population):
    """Ask how often each column of a block agrees with its first one, then for the vote of all."""
    columns = [rows.shape[1] for rows in population.rows]

    def analyst(history):
        asked = len(history)
        for block, count in enumerate(columns, start=1):
            if asked >= count:
                asked -= count
                continue
            rows = population.rows[block - 1]
            if asked < count - 1:
                return Query(block, (rows[:, asked + 1] == rows[:, 0]).astype(float))
            signs = np.sign([a - 0.5 for _, a in history[len(history) - asked :]])
            vote = (2 * rows[:, 1:] - 1) @ signs
            return Query(block, np.where(vote == 0, 0.5, (vote > 0) == rows[:, 0]).astype(float))
        return None

    return analyst


def best_so_far(population, queries, seed=0):
    """Change a set of rows at random, and keep the change if the answer grew beyond the set's size."""
    rng = np.random.default_rng(seed)
    best = {}

    def analyst(history):
        if history:
            query, answer = history[-1]
            score = answer - float(query.values.mean())
            if query.block not in best or score > best[query.block][0]:
                best[query.block] = (score, query.values)
        block = len(history) // queries + 1
        if block > len(population.rows):
            return None
        size = len(population.rows[block - 1])
        if block not in best:
            return Query(block, rng.integers(0, 2, size).astype(float))
        values = best[block][1].copy()
        flip = rng.random(size) < 0.1
        return Query(block, np.where(flip, 1 - values, values))

    return analyst


def test_plans_keep_their_error_where_sample_means_break_it():
    """20 sessions: at a failure of .05 each, more than 4 exceed with probability below .003."""
    n, digits, failure = 4000, 48, 0.05
    population = Population.uniform(1, 4 * n)
    k = -(-4 * n // digits) + 1
    plan = AccuracyPlan(IndependentBlocks(1), n, k, failure).solve()
    assert plan.objective < 0.55 and binom.sf(4, 20, failure) < 0.003
    exceeded, broken = 0, 0
    for seed in range(20):
        sample = population.sample(n, seed)
        analyst = membership(population, n, k, digits)
        exceeded += AdaptiveSession(sample, population, plan, analyst, seed).run().error > plan.objective
        if seed < 5:
            broken += AdaptiveSession(sample, population, None, analyst).run().error > plan.objective
    assert exceeded <= 4
    assert broken == 5


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("method", ["search", "naive", "split-sample"])
def test_votes_and_hill_climbing_stay_within_the_plan(noise, method):
    n, failure = 4000, 0.1
    population = fair_bits(3, 8)
    plan = AccuracyPlan(IndependentBlocks(3), n, 8, failure, noise).solve(method)
    exceeded = 0
    for seed in range(20):
        sample = population.sample(n, seed)
        for analyst in (sign_votes(population), best_so_far(population, 8, seed)):
            found = AdaptiveSession(sample, population, plan, analyst, seed).run()
            assert len(found.queries) == 24
            exceeded += found.error > plan.objective
    assert exceeded <= 10 and binom.sf(10, 40, failure) < 0.002


def test_thresholdout_answers_from_both_halves():
    population = fair_bits(1, 9)
    sample = population.sample(2000, 0)
    session = AdaptiveSession(sample, population, Thresholdout(0.02, 0.001), sign_votes(population), 1)
    found = session.run()
    assert found.error < 0.1
    half = [sample.mean(q, slice(0, 1000)) for q in found.queries]
    assert any(a == h for a, h in zip(found.answers, half, strict=True))


def test_a_session_repeats_with_its_seed():
    population = fair_bits(2, 5)
    plan = AccuracyPlan(IndependentBlocks(2), 500, 5, 0.1).solve()
    sample = population.sample(500, 3)
    runs = [AdaptiveSession(sample, population, plan, sign_votes(population), 4).run() for _ in range(2)]
    assert (runs[0].answers == runs[1].answers).all()


def test_blockwise_values_are_those_of_the_table():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 3, (50, 4)) / 2, columns=list("abcd"))
    population = Population.blockwise(table, [["a", "b"], ["c", "d"]])
    q = population.query(1, lambda rows: rows[:, 0] * rows[:, 1])
    assert population.value(q) == pytest.approx((table.a * table.b).mean())
    sample = population.sample(200_000, 1)
    assert sample.mean(q) == pytest.approx(population.value(q), abs=0.01)
    first, second = (population.rows[b][sample.drawn[b]][:, 0] for b in (0, 1))
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.01  # blocks are drawn by themselves


def read_table(shared_data, file, columns):
    path = shared_data / "tabular" / file
    if not path.exists():
        pytest.skip(f"there is no {path.name}")
    return pd.read_csv(path).iloc[:, :columns]


TABLES = {
    "adult.csv": (30_162, 14),
    "communities.csv": (1_994, 124),
    "compas-scores-two-years.csv": (7_214, 6),
}


@pytest.mark.parametrize("file", TABLES)
def test_real_tables(shared_data, file):
    rows, columns = TABLES[file]
    frame = read_table(shared_data, file, columns)
    assert len(frame) == rows
    names = list(frame.columns)
    blocks = [names[: columns // 2], names[columns // 2 :]]
    population = Population.blockwise(frame, blocks)
    assert [p.sum() for p in population.probabilities] == pytest.approx([1, 1])
    values = np.random.default_rng(0).random(len(population.rows[0]))
    query = Query(1, values)
    assert population.value(query) == pytest.approx(values[population.table[0]].mean())
    n = 5000
    plan = AccuracyPlan(IndependentBlocks(2), n, 20, 0.05).solve()
    sample = population.sample(n, 0)
    found = AdaptiveSession(sample, population, plan, best_so_far(population, 20), 1).run()
    assert found.error <= plan.objective


def sessions_across(population, plan, n):
    return [
        AdaptiveSession(population.sample(n, seed), population, plan, across_blocks(population, n), seed)
        .run()
        .error
        for seed in range(20)
    ]


def test_where_blocks_are_not_independent_folds_are_read_across_blocks(shared_data):
    """Each block has one query, on the same fold: that is safe only if the blocks are independent."""
    frame, n = read_table(shared_data, "communities.csv", 120), 2000
    names = list(frame.columns)
    blocks = [names[i : i + 6] for i in range(0, 120, 6)]
    plan = AccuracyPlan(IndependentBlocks(20), n, 1, failure=0.05).solve("split-sample")
    independent = Population.blockwise(frame, blocks)
    dependent = Population.blockwise(frame, blocks, whole=True)
    true = sessions_across(independent, plan, n)
    assert sum(error > plan.objective for error in true) <= 4 and binom.sf(4, 20, 0.05) < 0.003
    false = sessions_across(dependent, plan, n)
    assert sum(error > plan.objective for error in false) >= 18
    noisy = sessions_across(dependent, AccuracyPlan(IndependentBlocks(20), n, 1, 0.05).solve(), n)
    assert max(noisy) < 0.1  # noise hides the counts of groups, though nothing is proved here


def test_whole_rows_have_the_same_means():
    frame = pd.DataFrame({"a": [0, 0, 1, 1, 1], "b": [1, 1, 0, 0, 0]})
    by_block, whole = (Population.blockwise(frame, [["a"], ["b"]], whole=w) for w in (False, True))
    for block in (1, 2):
        query = by_block.query(block, lambda rows: rows[:, 0])
        assert by_block.value(query) == whole.value(query)
    drawn = whole.sample(1000, 0)
    a, b = (population[drawn.drawn[j]][:, 0] for j, population in enumerate(whole.rows))
    assert (a + b == 1).all()
    with pytest.raises(DeclarationError, match="blockwise"):
        across_blocks(Population.uniform(2, 5), 10)


def test_rules_of_a_session():
    population = fair_bits(2, 3)
    sample = population.sample(100, 0)
    ones = [Query(b, np.ones(8)) for b in (1, 2)]
    plan = AccuracyPlan(StreamedBlocks(2), 100, 2, 0.1).solve()

    def script(*queries):
        return lambda history: queries[len(history)] if len(history) < len(queries) else None

    def session(*queries):
        return AdaptiveSession(sample, population, plan, script(*queries), 0)

    with pytest.raises(QueryRefusedError, match="2 planned queries"):
        session(*[ones[0]] * 3).run()
    with pytest.raises(QueryRefusedError, match="stream has passed"):
        session(ones[1], ones[0]).run()
    for make, words in (
        (lambda: Query(1, np.array([0.0, 1.5])), r"in \[0, 1\]"),
        (lambda: population.value(Query(3, np.ones(8))), "numbered from 1 to 2"),
        (lambda: session(Query(1, np.ones(3))).run(), "8 rows"),
        (lambda: population.sample(0), "records"),
        (lambda: AdaptiveSession(population.sample(50, 0), population, plan, script()), "50 in 2"),
        (lambda: Population.blockwise(pd.DataFrame({"a": [1]}), [["b"]]), "missing"),
    ):
        with pytest.raises(DeclarationError, match=words):
            make()
