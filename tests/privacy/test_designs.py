import numpy as np
import pandas as pd
import pytest

from forcopt.errors import DeclarationError
from forcopt.models import TightAmplification
from forcopt.privacy import (
    AdditiveMechanism,
    ClusterSample,
    Gaussian,
    Laplace,
    PoissonSample,
    ProportionalAllocation,
    RandomizedRounding,
    SimpleRandomSample,
    StratifiedSample,
    draw,
)

FRAME = pd.DataFrame(
    {"town": list("aaaabbbbbbbccc"), "value": np.arange(14.0) ** 2}, index=[f"p{i}" for i in range(14)]
)
DESIGNS = [
    SimpleRandomSample(size=5),
    PoissonSample(rate=0.3),
    RandomizedRounding(rate=0.1),
    ProportionalAllocation(by="town", rate=0.35),
    StratifiedSample(by="town", sizes={"a": 1, "b": 4, "c": 2}),
    ClusterSample(by="town", chosen=2),
]


@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: type(d).__name__)
def test_samples_repeat_with_their_seed_and_estimate_without_bias(design):
    """Mean of 800 draws within 5 standard errors: a wrong alarm has a probability below 1e-6."""
    assert draw(design, FRAME, 3).equals(draw(design, FRAME, 3))
    rng = np.random.default_rng(0)
    totals = []
    for _ in range(800):
        rows, probability = design.take(FRAME, rng)
        assert len(set(rows)) == len(rows)
        totals.append((FRAME["value"].to_numpy()[rows] / probability).sum())
    error = np.std(totals) / np.sqrt(len(totals))
    assert np.mean(totals) == pytest.approx(FRAME["value"].sum(), abs=5 * error)


def test_a_sample_keeps_rows_order_and_index():
    sample = draw(StratifiedSample(by="town", sizes={"a": 4, "b": 1, "c": 3}), FRAME, 1, weight="w")
    assert sample.index.is_unique and list(sample.index) == [i for i in FRAME.index if i in sample.index]
    assert sample["w"].to_dict() == {i: {"a": 1.0, "b": 7.0, "c": 1.0}[t] for i, t in sample["town"].items()}
    assert "w" not in FRAME
    towns = draw(ClusterSample(by="town", chosen=1), FRAME, 0)
    assert towns["town"].nunique() == 1 and len(towns) == (FRAME["town"] == towns["town"].iloc[0]).sum()


def test_nothing_and_everything():
    assert draw(RandomizedRounding(rate=1), FRAME, 0).equals(FRAME)
    assert not len(draw(RandomizedRounding(rate=0), FRAME, 0))
    assert not len(draw(ClusterSample(by="town", chosen=0), FRAME, 0, weight="w"))
    tenth = RandomizedRounding(rate=0.1)
    thirty = pd.DataFrame({"x": range(30)})
    assert {len(draw(tenth, thirty, s)) for s in range(50)} == {3}  # 0.1 * 30 is 3, not a little more


@pytest.mark.parametrize(
    ("design", "frame", "rule"),
    [
        (SimpleRandomSample(size=15), FRAME, "size is 15; the table has 14 rows"),
        (SimpleRandomSample(size=1), FRAME[:0], "frame is empty"),
        (StratifiedSample(by="town", sizes={"a": 5, "b": 1, "c": 1}), FRAME, "'a' is 5; the stratum has 4"),
        (StratifiedSample(by="town", sizes={"a": 1, "b": 1}), FRAME, "stratum 'c' is missing in sizes"),
        (StratifiedSample(by="town", sizes=dict.fromkeys("abcd", 1)), FRAME, "'d' is missing in the table"),
        (StratifiedSample(by="city", sizes={"a": 1}), FRAME, "by is 'city'; the columns are town, value"),
        (ClusterSample(by="town", chosen=4), FRAME, "chosen is 4; the table has 3 clusters"),
        (ProportionalAllocation(by="t", rate=0.5), pd.DataFrame({"t": ["a", None]}), "missing values"),
    ],
)
def test_bad_samples_are_refused(design, frame, rule):
    with pytest.raises(DeclarationError, match=rule):
        draw(design, frame, 0)


def test_bad_designs_are_refused():
    with pytest.raises(DeclarationError, match="rate"):
        PoissonSample(rate=1.5)
    with pytest.raises(DeclarationError, match="size"):
        SimpleRandomSample(size=-1)
    with pytest.raises(DeclarationError, match="has a column 'town' already"):
        draw(SimpleRandomSample(size=1), FRAME, 0, weight="town")


def random_design(rng):
    """A small design, with a population that it can be drawn from."""
    counts = [int(n) for n in rng.integers(1, 5, size=int(rng.integers(2, 4)))]
    named = {f"s{i}": n for i, n in enumerate(counts)}
    kind = rng.integers(6)
    rate = float(rng.choice([0.0, 0.1, 1 / 3, 0.5, 0.7, 1.0]))
    if kind == 0:
        return SimpleRandomSample(size=int(rng.integers(0, counts[0] + 1))), counts[0]
    if kind == 1:
        return PoissonSample(rate=rate), counts[0]
    if kind == 2:
        return RandomizedRounding(rate=rate), counts[0]
    if kind == 3:
        return ProportionalAllocation(by="s", rate=rate), named
    if kind == 4:
        sizes = {s: int(rng.integers(0, n + 1)) for s, n in named.items()}
        return StratifiedSample(by="s", sizes=dict(reversed(sizes.items()))), named
    return ClusterSample(by="s", chosen=int(rng.integers(0, len(counts) + 1))), counts


@pytest.mark.parametrize("seed", range(60))
def test_the_loss_of_a_design_agrees_with_the_linear_program_over_its_samples(seed):
    """Also the profile of a pure mechanism on the design."""
    rng = np.random.default_rng(seed)
    design, population = random_design(rng)
    epsilon = float(np.exp(rng.uniform(-2, 1)))
    places = range(len(design.counts(population)))
    programs = [TightAmplification.of(design, population, epsilon, changed=i) for i in places]
    exact = max(p.solve().decision.loss for p in programs)
    loss = design.loss(epsilon, population)
    assert loss.lower - 1e-6 <= exact <= loss.upper + 1e-6
    assert loss.exact is None or loss.exact == pytest.approx(exact, abs=1e-6)
    sampled = design.amplify(AdditiveMechanism(Laplace(epsilon=epsilon)).profile(), population)
    known = loss.upper if loss.exact is None else loss.exact
    assert sampled.epsilon(0.0) == pytest.approx(known, abs=1e-12) and sampled.delta(known * 1.0001) < 1e-12


def test_designs_that_amplify_pure_privacy_only_refuse_unbounded_losses():
    with pytest.raises(DeclarationError, match="pure privacy only"):
        RandomizedRounding(rate=0.1).amplify(AdditiveMechanism(Gaussian(scale=1.0)).profile(), 30)
    with pytest.raises(DeclarationError, match="population is missing"):
        ClusterSample(by="town", chosen=1).loss(1.0)
    with pytest.raises(DeclarationError, match="'b' is missing in population"):
        StratifiedSample(by="town", sizes={"a": 1, "b": 1}).loss(1.0, {"a": 3})
    with pytest.raises(DeclarationError, match="by is 'town', a column of a table; the records are ndarray"):
        ClusterSample(by="town", chosen=1).take(np.arange(4.0), np.random.default_rng(0))
