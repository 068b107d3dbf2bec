"""Every method on legal but odd data, under time limits, and through a pickle."""

import pickle

import lexifair_enumeration  # noqa: F401  (registers the oracle)
import numpy as np
import pytest
from processor_time import spends_at_most

from forcopt.learning import Finite, Stumps
from forcopt.models import LexifairClassification, LexifairRegression
from forcopt.models.lexifair import random_regression

GROUPS = [[0, 1, 2, 3], [3, 4, 5], [6, 7]]


def mixtures(labels=(0, 1, 0, 1, 1, 0, 1, 0), **fields):
    X = np.arange(16.0).reshape(8, 2) % 5
    return LexifairClassification(labels=labels, groups=GROUPS, hypotheses=Stumps(X), **fields)


def regression(scale=1.0):
    p = random_regression(records=40, features=3, groups=3, seed=0)
    return LexifairRegression(
        features=p.features, labels=scale * p.labels, groups=p.groups, radius=10.0 * scale, levels=2
    )


def cases():
    for name in mixtures().methods:
        yield name, mixtures(randomized=name != "enumeration")
    for name in regression().methods:
        yield name, regression()


CASES = [pytest.param(*case, id=f"{type(case[1]).__name__}-{case[0]}") for case in cases()]
SEED = {"ftpl": {"seed": 0}}
CONE = {"compact", "row-generation"}


def solve(name, p, **options):
    cone = {"backend": "clarabel"} if name in CONE and isinstance(p, LexifairRegression) else {}
    return p.solve(name, **cone, **SEED.get(name, {}), **options)


@pytest.mark.parametrize(("name", "p"), CASES)
def test_solutions_can_be_pickled(name, p):
    s = solve(name, p)
    again = pickle.loads(pickle.dumps(s))
    assert again.objective == s.objective
    assert p.evaluate(again.decision).objective == pytest.approx(s.objective)


@pytest.mark.parametrize("limit", [0.0, 0.2])
@pytest.mark.parametrize(("name", "p"), CASES)
def test_every_method_keeps_its_time_limit(name, p, limit):
    with spends_at_most(limit + 30):
        s = solve(name, p, time_limit=limit)
    assert s.decision is not None or s.status in ("limit", "failed")
    if s.decision is not None and np.isfinite(s.bound):
        exact = p.solve("enumeration" if name == "enumeration" else "column-generation")
        assert s.bound <= exact.objective + 1e-6 * max(exact.objective, 1e-3)


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("name", sorted(mixtures().methods))
def test_one_label_is_legal(name, label):
    s = solve(name, mixtures([label] * 8, randomized=name != "enumeration"))
    assert s.objective == pytest.approx(0.0, abs=0.06)  # games stop within alpha


@pytest.mark.parametrize("name", ["no-regret", "ftpl"])
def test_a_class_that_never_errs_is_legal(name):
    p = LexifairClassification(labels=[0, 1, 1], groups=[[0, 1], [2]], hypotheses=Finite([[0, 1, 1]]))
    assert solve(name, p).objective == 0.0


@pytest.mark.parametrize("name", sorted(regression().methods))
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_units_of_the_labels_do_not_matter(name, scale):
    alpha = {"alpha": 0.01 * scale**2} if name == "no-regret" else {}
    s, exact = solve(name, regression(scale), **alpha), regression().solve()
    allowed = 0.02 if name == "no-regret" else 1e-4 * exact.objective
    assert s.objective / scale**2 == pytest.approx(exact.objective, abs=allowed)


@pytest.mark.parametrize("rounds", [1.5, 0])
@pytest.mark.parametrize("name", ["no-regret", "ftpl"])
def test_rounds_are_whole(name, rounds):
    with pytest.raises(ValueError, match="it must be a whole number"):
        mixtures().solve(name, rounds=rounds)
