import pickle

import numpy as np
import pandas as pd
import pytest

import forcopt as fo
from forcopt.declaration import Declared
from forcopt.fairness import EqualizedOdds
from forcopt.learning import AllFunctions, Finite, Halfspaces, Stumps, Thresholds
from forcopt.learning.thresholds import lowest_cut
from forcopt.models import FairClassification, LexifairClassification


def classes(X, rng):
    table = rng.integers(0, 2, (7, len(X)))
    return [AllFunctions(), Finite(table), Halfspaces(), Stumps(X), Thresholds(), Thresholds(1, "below")]


def test_names_of_hypothesis_classes_are_unique():
    names = [c.__name__ for c in Declared._classes if "forcopt" in c.__module__]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("seed", range(5))
def test_every_oracle_finds_the_best_of_its_list(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (8, 2)).astype(float)
    costs = rng.normal(size=8)
    for hypotheses in classes(X, rng):
        oracle = hypotheses.oracle(X)
        listed = np.array([h.predictions for h in oracle.all()])
        best = oracle.best(costs)
        assert costs @ best.predictions == pytest.approx((listed @ costs).min())
        for h in [*oracle.all(), best, *oracle.constants()]:
            assert h.classifier.predict(X).tolist() == h.predictions.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_one_class_serves_both_problems(seed):
    """Stumps and the table of their predictions have the same optimum, in either problem."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (24, 2)).astype(float)
    y = np.concatenate([[0, 1, 0, 1], rng.integers(0, 2, 20)])
    a = np.concatenate([[0, 0, 1, 1], rng.integers(0, 2, 20)])
    stumps = Stumps(X)
    table = Finite(stumps.predictions(np.arange(stumps.count)))
    for make in (
        lambda h: FairClassification(X, y, a, EqualizedOdds(0.05), hypotheses=h),
        lambda h: LexifairClassification(
            labels=y, groups=[np.flatnonzero(a == k) for k in (0, 1)], hypotheses=h
        ),
    ):
        values = [make(h).solve().objective for h in (stumps, table)]
        assert values[0] == pytest.approx(values[1], abs=1e-7)


def test_classes_that_do_not_fit_are_named():
    X = np.zeros((3, 1))
    with pytest.raises(fo.DeclarationError, match="over 2 records; there are 3"):
        Finite([[0, 1]]).oracle(X)
    with pytest.raises(fo.DeclarationError, match=r"table\[0, 1\] is 0.5; it must be 0 or 1"):
        Finite([[0, 0.5, 1]]).oracle(X)
    with pytest.raises(fo.DeclarationError, match="the stumps and the problem have different features"):
        Stumps(X + 1).oracle(X)
    with pytest.raises(fo.DeclarationError, match="features is None; Thresholds needs the features"):
        LexifairClassification(labels=[0, 1], groups=[[0], [1]], hypotheses=Thresholds())


@pytest.mark.parametrize("first", [1.0, np.nextafter(1.0, 2.0), -5e-324, 1.5e308, -1.7e308])
def test_values_next_to_each_other_and_huge_ones_have_a_cut(first):
    """Midway between two values may be one of them, or beyond the largest float."""
    for second in (np.nextafter(first, np.inf), first + max(abs(first) / 10, 1.0)):
        X = np.array([[first], [second]])
        stumps = Stumps(features=X)
        found = stumps.predictions(np.arange(stumps.count))
        assert sorted(found.tolist()) == [[0, 0], [0, 1], [1, 0], [1, 1]]
        assert (found == stumps.total_costs(np.eye(2)).T).all()
        for oracle in (stumps.oracle(X), Thresholds().oracle(X)):
            for costs in ([1.0, -1.0], [-1.0, 1.0]):
                best = oracle.best(np.array(costs))
                assert best.predictions.tolist() == [float(c < 0) for c in costs]
                assert best.classifier.predict(X).tolist() == best.predictions.tolist()
        t = lowest_cut(X[:, 0], np.array([1.0, -1.0]))
        assert first < t <= second
        assert lowest_cut(X[:, 0], np.array([-1.0, -1.0])) <= first
        assert lowest_cut(X[:, 0], np.array([1.0, 1.0])) > second


def test_stumps_of_a_frame_keep_its_labels_for_the_problem():
    """By position the classifier x > 1.5 has no error; by label every record is wrong."""
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=["u", "v", "w"])
    y, fields = pd.Series([0, 1, 1], index=X.index), {"groups": [[0, 1], [2]], "hypotheses": Stumps(X)}
    assert LexifairClassification(labels=y, **fields) is not None
    assert LexifairClassification(labels=y.to_numpy()[::-1], **fields) is not None
    for labels in (y[::-1], y[["v", "w", "u"]]):
        with pytest.raises(fo.DeclarationError, match="hypotheses has the labels of labels in another order"):
            LexifairClassification(labels=labels, **fields)
    stumps = fields["hypotheses"]
    assert stumps == Stumps(X.to_numpy(), feature_names=("x",)) and stumps.feature_names == ("x",)
    assert Stumps.from_dict(stumps.to_dict()) == stumps == pickle.loads(pickle.dumps(stumps))
