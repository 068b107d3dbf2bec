"""Secure sums of real tables and gradients; skipped without the public data."""

import numpy as np
import pytest

from forcopt.data import load_adult, load_compas
from forcopt.models import SecureSum


def declared(dimension, bits=12, **fields):
    return SecureSum(servers=2, dimension=dimension, epsilon=1.0, delta=1e-6, bits=bits, **fields)


@pytest.mark.parametrize(("name", "people"), [("compas", 6172), ("adult", 30162)])
def test_cells_of_a_table(shared_data, name, people):
    """Everybody sends one cell: its norm is exactly 1, and the sum is the table of the accepted people."""
    folder = shared_data / "tabular"
    if name == "compas":
        table = load_compas(folder / "compas-scores-two-years.csv")
        predicted = table.frame["decile_score"].to_numpy() >= 5
    else:
        table = load_adult(folder / "adult.csv")
        predicted = table.frame["education-num"].to_numpy() >= 13
    assert len(table) == people
    names, group = np.unique(table.groups, return_inverse=True)
    cell = (group * 2 + table.labels) * 2 + predicted
    d = 4 * len(names)
    p = declared(d, step=0.1, whole=True)
    s = p.solve()
    run = s.decision.run(np.eye(d)[cell], seed=1)
    assert not run.warnings  # no norm above 1
    assert np.array_equal(run.whole_total, 10 * np.bincount(cell[run.accepted], minlength=d))
    expected = people * p.completeness
    assert abs(len(run.rejected) - expected) <= 5 * np.sqrt(expected) + 5
    assert s.evaluation.metrics["refused_honest"] < 1e-5


def test_clipped_gradients_and_attackers(shared_data):
    """One step of logistic regression on Adult; 1 % of the clients push against the honest sum."""
    people = load_adult(shared_data / "tabular" / "adult.csv")
    x = people.features[::5]
    x = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-9)
    gradient = (0.5 - people.labels[::5])[:, None] * x
    gradient /= np.maximum(1.0, np.linalg.norm(gradient, axis=1, keepdims=True))
    n, d = gradient.shape
    p = declared(d, 16)
    s = p.solve()
    liars = np.arange(0, n, 100)
    honest = np.delete(gradient, liars, axis=0).sum(axis=0)
    moved = {}
    for norm in (1.5, s.objective / 2, s.objective, 2 * s.objective):
        sent = gradient.copy()
        sent[liars] = -norm * honest / np.linalg.norm(honest)
        run = s.decision.run(sent, seed=1)
        whole = np.rint(sent / s.decision.step).astype(np.int64)
        assert np.array_equal(run.whole_total, whole[run.accepted].sum(axis=0))
        took = len(set(run.accepted) & set(liars.tolist()))
        chance = p.acceptance(s.decision, norm)
        assert abs(took - len(liars) * chance) <= 5 * np.sqrt(len(liars) * chance * (1 - chance)) + 1
        moved[norm] = np.linalg.norm(run.total - honest)
    least, middle, at, beyond = moved.values()
    assert middle > max(least, at, beyond)  # the best attack is below the gap
    assert beyond < least + 0.01 * n
