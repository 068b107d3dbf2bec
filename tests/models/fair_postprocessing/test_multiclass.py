"""Post-processing of several classes: against scipy, two classes, and fairlearn's measures."""

import json
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

import forcopt as fo
from forcopt.fairness import (
    BoundedGroupLoss,
    DemographicParity,
    DemographicParityRatio,
    EqualizedOdds,
    ErrorParity,
    PairwiseFairness,
    PredictiveValues,
)
from forcopt.models import FairPostprocessing, MulticlassPostprocessing
from forcopt.models.fair_postprocessing import RandomizedRemix


def counts(seed, classes=3, groups=2):
    return np.random.default_rng(seed).integers(1, 30, size=(classes, groups, classes))


def oracle(table, kind, tolerance):
    """The least error by a linear program that is written from the definitions, class by class."""
    c, k, _ = table.shape
    index = np.arange(table.size).reshape(table.shape)

    def rate(a, target, labels):
        row = np.zeros(table.size)
        for h in range(c):
            row[index[h, a, target]] = table[h, a, labels].sum() / table[:, a, labels].sum()
        return row

    rates = []
    for target in range(c):
        others = [y for y in range(c) if y != target]
        given = [list(range(c))] if kind is DemographicParity else [[target], others]
        rates += [[rate(a, target, labels) for a in range(k)] for labels in given]
    rows = [p - q for groups in rates for p, q in product(groups, repeat=2) if p is not q]
    one = np.array([np.isin(np.arange(table.size), index[h, a]) for h in range(c) for a in range(k)])
    value = linprog(
        -(table / table.sum()).ravel(), rows, [tolerance] * len(rows), one, np.ones(len(one)), (0, 1)
    )
    return 1.0 + value.fun


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", [DemographicParity, EqualizedOdds])
@pytest.mark.parametrize("backend", ["highs", "glop", "clarabel"])
def test_the_optimum_is_that_of_the_definitions(kind, seed, backend):
    table = counts(seed, classes=3 + seed % 2, groups=2 + seed // 2)
    p = MulticlassPostprocessing(table, kind(0.05))
    s = p.solve(backend=backend)
    assert s.status == "optimal" and s.evaluation.feasible
    assert s.objective == pytest.approx(oracle(table, kind, 0.05), abs=1e-6)


@pytest.mark.parametrize(
    "notion",
    [DemographicParity(0.02), EqualizedOdds(0.05), ErrorParity(0.01), BoundedGroupLoss(0.45)],
    ids=str,
)
def test_two_classes_are_those_of_the_binary_problem(notion):
    """The rates of class 0 against 1 are those of class 1 against 0, less from 1."""
    table = counts(7, classes=2, groups=3)
    one = FairPostprocessing(counts=table, constraint=notion).solve()
    two = MulticlassPostprocessing(table, notion).solve()
    assert two.status == one.status
    assert two.objective == pytest.approx(one.objective, abs=1e-7) or one.status == "infeasible"


def test_ratios_error_rates_and_merged_groups():
    table = counts(3, groups=4)
    ratio = MulticlassPostprocessing(table, DemographicParityRatio(0.8)).solve()
    p = ratio.problem
    for c in range(3):
        rates = p.rates(ratio.decision.probabilities).of_class(c)
        share = rates.positives.sum(axis=1) / rates.mass.sum(axis=1)
        assert share.min() >= 0.8 * share.max() - 1e-6
    lost = MulticlassPostprocessing(table, BoundedGroupLoss(0.6) & ErrorParity(0.02)).solve()
    kept = (table * lost.decision.probabilities).sum(axis=(0, 2)) / table.sum(axis=(0, 2))
    assert (1 - kept).max() <= 0.6 + 1e-6 and np.ptp(kept) <= 0.02 + 1e-6
    assert lost.objective == pytest.approx(
        1 - (table * lost.decision.probabilities).sum() / table.sum(), abs=1e-9
    )
    halves = DemographicParity(0.0).by("half", {"0": "x", "1": "x", "2": "y", "3": "y"})
    by_half = MulticlassPostprocessing(table, halves).solve()
    joined = np.stack([table[:, :2].sum(axis=1), table[:, 2:].sum(axis=1)], axis=1)
    same = MulticlassPostprocessing(joined, DemographicParity(0.0)).solve()
    assert by_half.objective <= same.objective + 1e-7  # four groups can do what two can
    with pytest.raises(fo.DeclarationError, match="merge groups for error rates and other rates"):
        both = (ErrorParity() & DemographicParity()).by("half", {"0": "x", "1": "y"})
        MulticlassPostprocessing(table, both)


def test_columns_draws_files_and_fairlearns_measures(tmp_path):
    from fairlearn.metrics import MetricFrame, selection_rate

    rng = np.random.default_rng(0)
    group, label = rng.choice(["u", "v"], 6000), rng.choice(["low", "mid", "top"], 6000)
    shift = rng.random(6000) < np.where(group == "u", 0.4, 0.1)
    guess = np.where(shift, "top", label)
    p = MulticlassPostprocessing.from_predictions(guess, group, label, DemographicParity(0.03))
    assert p.classes == ("low", "mid", "top") and p.groups == ("u", "v")
    s = p.solve()
    drawn = np.array(p.classes)[s.decision.predict(guess, group, seed=0)]
    for name in p.classes:
        frame = MetricFrame(
            metrics=selection_rate, y_true=label == name, y_pred=drawn == name, sensitive_features=group
        )
        assert frame.difference() <= 0.03 + 0.06  # draws: four standard deviations
    assert (drawn != label).mean() == pytest.approx(s.objective, abs=0.03)
    s.decision.save(tmp_path / "remix.json")
    again = RandomizedRemix.load(tmp_path / "remix.json")
    assert again.probabilities.tolist() == s.decision.probabilities.tolist()
    assert again.probability(guess[:5], group[:5]).sum(axis=1) == pytest.approx(np.ones(5))
    assert fo.Problem.from_dict(json.loads(json.dumps(p.to_dict()))) == p
    assert p.evaluate(p.as_predicted).objective == pytest.approx((guess != label).mean())
    assert "probability of low, mid, top" in repr(s.decision)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"counts": [[1, 2], [3, 4]]}, r"the shape is \(2, 2\); it must be \(C, K, C\)"),
        ({"counts": np.ones((3, 2, 2))}, r"the shape is \(3, 2, 2\)"),
        ({"counts": -np.ones((2, 2, 2))}, r"counts\[0, 0, 0\] is -1"),
        ({"counts": np.zeros((2, 1, 2)), "constraint": PredictiveValues(0.1, 0.1)}, "counts: all are 0"),
        ({"counts": [[1], [2, 3]]}, "counts: the array must be numbers"),
        ({"groups": 5}, "groups is 5"),
        ({"groups": ("a",)}, "groups: a are not 2 different names"),
        ({"classes": ("a", "a", "b")}, "classes: a, a, b are not 3 different names"),
        ({"constraint": PairwiseFairness([(0, 1)])}, "looks at single records"),
        ({"counts": np.ones((3, 2, 3)) * [1, 1, 0]}, "has no records with label 1"),
    ],
)
def test_bad_input_is_named(fields, message):
    good = {"counts": counts(0), "constraint": EqualizedOdds(0.1)}
    with pytest.raises(fo.DeclarationError, match=message):
        MulticlassPostprocessing(**{**good, **fields})


def test_decisions_that_are_no_laws_are_refused():
    p = MulticlassPostprocessing(counts(0), DemographicParity())
    for bad, message in (
        (np.ones((3, 2, 3)), "no probabilities"),
        (np.ones((2, 2, 2)) / 2, "has shape"),
        (RandomizedRemix(np.full((3, 2, 3), 1 / 3), tuple("abc"), p.groups), "other groups or classes"),
    ):
        with pytest.raises(fo.DeclarationError, match=message):
            p.evaluate(bad)


def test_a_missing_class_is_no_class():
    for missing in (None, float("nan")):
        for column in ("predictions", "labels"):
            fields = {"predictions": list("abba"), "labels": list("abab"), "groups": [0, 0, 1, 1]}
            fields[column] = ["a", missing, "b", "a"]
            with pytest.raises(fo.DeclarationError, match=rf"{column}\[1\] is missing"):
                MulticlassPostprocessing.from_predictions(**fields, constraint=DemographicParity())
    with pytest.raises(fo.DeclarationError, match="must be columns"):
        MulticlassPostprocessing.from_predictions(1, [0, 0], 2, DemographicParity())


def test_classes_may_be_given_for_records_of_one():
    columns = {"predictions": ["mid"] * 3, "groups": ["u", "v", "v"], "labels": ["mid"] * 3}
    p = MulticlassPostprocessing.from_predictions(
        **columns, constraint=DemographicParity(), classes=("low", "mid", "top")
    )
    s = p.solve()
    assert p.classes == ("low", "mid", "top") and p.counts[1, :, 1].tolist() == [1, 2]
    assert s.status == "optimal" and s.objective == pytest.approx(0.0, abs=1e-9)
    named = p.replace(groups=np.array(["x", "y"]), classes=np.array(["a", "b", "c"]))
    assert (named.groups, named.classes) == (("x", "y"), ("a", "b", "c"))


@pytest.mark.parametrize("size", [1, 10**6, 10**15, 4 * 10**17])
@pytest.mark.parametrize("notion", [PredictiveValues(0.45, 0.3), DemographicParity(0.01)], ids=str)
def test_the_optimum_is_the_same_for_copies_of_the_records(notion, size):
    table = counts(2, classes=2) % 20 + 1
    one = MulticlassPostprocessing(table, notion).solve()
    many = MulticlassPostprocessing(table * size, notion).solve()
    assert one.status == many.status == "optimal"
    assert many.objective == pytest.approx(one.objective, abs=1e-6) and many.evaluation.feasible


def test_reasons_name_class_and_group():
    p = MulticlassPostprocessing(counts(1), PredictiveValues(0.99, 0.99), groups=("n", "s"))
    s = p.solve()
    assert s.status == "infeasible"
    assert "positive_predictive_value_of_class_1[n] by" in s.reason


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_remix_of_no_numbers_is_refused(number):
    with pytest.raises(fo.DeclarationError, match=r"probabilities.*must be finite"):
        RandomizedRemix(np.full((2, 1, 2), number), ("a", "b"), ("x",))
    assert RandomizedRemix([[[1, 0]], [[0, 1]]], ("a", "b"), ("x",)).probabilities.shape == (2, 1, 2)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", [DemographicParity, EqualizedOdds])
def test_levels_of_a_regression_are_fair_at_each_threshold(kind, seed):
    """Statistical parity over all thresholds, and odds given each side of them, by scipy's linear program."""
    rng = np.random.default_rng(seed)
    levels, group = np.array([0.5, 2.0, 10.0, 11.0]), rng.choice(["u", "v", "w"], 600)
    code = np.clip(rng.integers(-1, 4, 600) + (group == "v"), 0, 3)
    guess = np.clip(code + rng.integers(-1, 2, 600), 0, 3)
    costs = np.square(levels[:, None] - levels)
    p = MulticlassPostprocessing.from_predictions(
        levels[guess], group, levels[code], kind(0.1), costs=costs, ordered=True
    )
    assert p.classes == ("0.5", "2.0", "10.0", "11.0")
    names, table = sorted(set(group)), np.zeros((4, 3, 4))
    for h, a, y in zip(guess, group, code, strict=True):
        table[h, names.index(a), y] += 1
    index, rates = np.arange(table.size).reshape(table.shape), []
    for z in (1, 2, 3):
        for labels in [range(4)] if kind is DemographicParity else [range(z), range(z, 4)]:
            rows = np.zeros((3, table.size))
            for a, h in product(range(3), range(4)):
                rows[a, index[h, a, z:]] = table[h, a, list(labels)].sum() / table[:, a, list(labels)].sum()
            rates.append(rows)
    pairs = np.array([r[i] - r[j] for r in rates for i, j in product(range(3), repeat=2) if i != j])
    one = np.array([np.isin(np.arange(table.size), index[h, a]) for h in range(4) for a in range(3)])
    own = linprog((table @ costs / 600).ravel(), pairs, [0.1] * len(pairs), one, np.ones(12), (0, 1))
    s = p.solve()
    assert s.status == "optimal" and s.evaluation.feasible
    assert s.objective == pytest.approx(own.fun, abs=1e-7)
    law = s.decision.probability(levels[guess], group)
    above = np.array([[law[group == a, z:].sum() / (group == a).sum() for a in names] for z in (1, 2, 3)])
    assert kind is EqualizedOdds or np.ptp(above, axis=1).max() <= 0.1 + 1e-6
    assert fo.Problem.from_dict(json.loads(json.dumps(p.to_dict()))) == p
    if kind is DemographicParity:
        assert {f"selection rate of class {c} or above" for c in p.classes[1:]} <= set(s.evaluation.metrics)


def test_ordered_classes_refuse_error_rates_and_text_without_an_order():
    with pytest.raises(fo.DeclarationError, match="error rates have no thresholds"):
        MulticlassPostprocessing(counts(1), ErrorParity(0.1), ordered=True)
    words = ["low", "high", "mid"]
    with pytest.raises(fo.DeclarationError, match="the order of classes that are text must be given"):
        MulticlassPostprocessing.from_predictions(
            words, list("uvu"), words, DemographicParity(1.0), ordered=True
        )
    given = {"classes": ["low", "mid", "high"], "ordered": True}
    p = MulticlassPostprocessing.from_predictions(words, list("uvu"), words, DemographicParity(1.0), **given)
    assert p.solve().objective == pytest.approx(0.0, abs=1e-9)
