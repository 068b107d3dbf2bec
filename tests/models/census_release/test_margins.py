"""Margins of error of published counts, tables of releases, and trees of tables."""

import numpy as np
import pandas as pd
import pytest

from forcopt import DeclarationError
from forcopt.data import Hierarchy
from forcopt.models import ConsistentRelease
from forcopt.models.census_release import Invariant, Region, margins, measure
from forcopt.models.census_release.instances import state_like
from forcopt.models.census_release.margins_of_error import unit_variances

TREE = Hierarchy(parents=([0, 0], [0, 0, 1, 1, 1]))


def zeros_of(tree):
    return tuple(np.zeros((size, 1)) for size in tree.sizes)


@pytest.mark.parametrize("order", ["joint", "top-down"])
def test_each_unit_has_the_variance_of_its_region(order):
    tree = state_like((1, 4, 11, 30), seed=2).bare
    epsilon = np.array([0.5, 1.0, 0.7, 2.0])
    p = ConsistentRelease(tree, zeros_of(tree), epsilon**2 / 8, order=order, nonnegative=False)
    for level, found in enumerate(unit_variances(p)):
        of = tree.ancestors(level)
        regions = [Region(tree, np.flatnonzero(of == u)) for u in range(tree.sizes[level])]
        assert found[:, 0] == pytest.approx([r.variance(epsilon, order) for r in regions], rel=1e-12)


def test_fixed_counts_have_no_margin_and_narrow_the_others():
    """The estimate is linear: its matrix by solving for each measurement alone."""
    given = {"invariants": (Invariant(1, 0, 0.0),), "zeros": [3], "nonnegative": False}
    precision = np.array([0.5, 2.0, 1.0])
    columns = []
    for level, size in enumerate(TREE.sizes):
        for unit in range(size):
            noisy = [np.zeros(s) for s in TREE.sizes]
            noisy[level][unit] = 1 / precision[level] ** 0.5
            found = ConsistentRelease(TREE, noisy, precision, **given).solve("tree-wls").decision
            columns.append(np.concatenate(found.counts).ravel())
    exact = np.square(columns).sum(axis=0)
    p = ConsistentRelease(TREE, zeros_of(TREE), precision, **given)
    assert np.concatenate(unit_variances(p)).ravel() == pytest.approx(exact, abs=1e-12)
    found = np.concatenate(margins(p, p.solve("tree-wls").decision)).ravel()
    assert found == pytest.approx(1.959964 * np.sqrt(exact), rel=1e-6)
    assert found[1] == 0 and found[6] == 0


def test_margins_at_a_bound_are_simulated():
    """Of max(0, z) the 95 % quantile is 1.645, not 1.960; far from the bound the formula holds."""
    alone = Hierarchy()
    p = ConsistentRelease(alone, ([-1.0],), precision=[1.0])
    assert margins(p, p.solve().decision, draws=300)[0].item() == pytest.approx(1.645, abs=0.2)
    far = p.replace(noisy=([50.0],))
    assert margins(far, far.solve().decision)[0].item() == pytest.approx(1.959964)
    signed = far.replace(nonnegative=False)
    heavy = margins(signed, signed.solve().decision, 0.99, noise="laplace", draws=300)[0].item()
    assert heavy == pytest.approx(np.log(100) / 2**0.5, rel=0.2)  # normal noise has 2.576


def test_margins_cover_the_truth():
    """Whole, nonnegative, geometric noise: of 155 counts about 95 % are within; 5 deviations are allowed."""
    tree = state_like((1, 4, 50), types=2, seed=4)
    p = measure(tree, [0.8] * 3, seed=3, integer=True)
    s = p.solve("tree-integer")
    wide = margins(p, s.decision, noise="laplace", draws=60)
    truth, found = tree.sums(tree.counts), s.decision.counts
    inside = np.concatenate([(abs(a - b) <= w).ravel() for a, b, w in zip(truth, found, wide, strict=True)])
    assert inside.mean() >= 0.95 - 5 * (0.05 * 0.95 / inside.size) ** 0.5
    assert np.concatenate([w.ravel() for w in wide]).min() >= 0


def test_margins_of_workloads_and_regions_off_the_tree_are_simulated():
    tree = state_like((1, 3), types=2, seed=1)
    p = measure(tree, rho=[0.5, 0.5], workload=[[1, 1], [1, 0]], shares=[0.5, 0.5], seed=1)
    found = margins(p, p.solve().decision, draws=20)
    assert [level.shape for level in found] == [(1, 2), (3, 2)] and all((w > 0).all() for w in found)
    with pytest.raises(DeclarationError, match="confidence is 1"):
        margins(p, p.solve().decision, 1.0)
    with pytest.raises(DeclarationError, match="draws is 0"):
        margins(p, p.solve().decision, draws=0)


def test_a_release_is_a_table_of_whole_numbers(tmp_path):
    p = ConsistentRelease(TREE, ([103], [58, 44], [36, 20, 24, 13, 2]), precision=[1, 1, 1], integer=True)
    for method in ("tree-integer", "milp"):
        release = p.solve(method).decision
        frame = release.to_pandas()
        assert frame["type 0"].dtype == np.int64 and frame["type 0"].tolist()[:3] == [102, 58, 44]
        release.to_csv(tmp_path / "out.csv", margins=[np.full((n, 1), 2.5) for n in TREE.sizes])
        back = pd.read_csv(tmp_path / "out.csv", dtype={"unit": str})
        assert back.columns.tolist() == ["level", "unit", "type 0", "type 0 margin"]
        pd.testing.assert_frame_equal(back.drop(columns="type 0 margin"), frame, check_dtype=False)
    real = p.replace(integer=False).solve("tree-nnls").decision
    assert real.to_pandas()["type 0"].dtype == float


def test_a_tree_is_read_from_a_table():
    frame = pd.DataFrame(
        {
            "state": ["TX", "OK", "TX", "TX", "OK"],
            "county": ["Ellis", "Ellis", "Ellis", "Dallas", "Ellis"],
            "tract": [1, 3, 2, 4, 3],
            "men": [1, 2, 3, 0, 10],
            "women": [5, 6, 7, 0, 20],
        }
    )
    tree = Hierarchy.from_table(frame, ["state", "county", "tract"], count=["men", "women"])
    assert tree.levels == ("all", "state", "county", "tract") and tree.types == ("men", "women")
    assert tree.names[1:3] == (("TX", "OK"), ("TX / Ellis", "OK / Ellis", "Dallas"))
    by_name = dict(zip(tree.names[3], tree.counts.tolist(), strict=True))
    assert by_name == {"1": [1, 5], "2": [3, 7], "4": [0, 0], "3": [12, 26]}
    assert dict(zip(tree.names[1], tree.sums(tree.counts)[1].tolist(), strict=True)) == {
        "TX": [4, 12],
        "OK": [12, 26],
    }
    persons = Hierarchy.from_table(frame[frame.state == "TX"], ["state", "county"])
    assert persons.names == (("TX",), ("Ellis", "Dallas")) and persons.counts.ravel().tolist() == [2, 1]


@pytest.mark.parametrize(
    ("change", "columns", "count", "message"),
    [
        ({}, ["state", "town"], "people", "'town' is a column that is missing"),
        ({}, [], "people", "columns is"),
        ({}, "state", "people", "columns is 'state'"),
        ({"county": ["a", None]}, ["state", "county"], "people", "row 3, column county: '' is empty"),
        ({"people": [3, -1]}, ["state", "county"], "people", "row 3, column people: '-1' is below 0"),
        (
            {"people": [0.5, 0.5]},
            ["state", "county"],
            "people",
            "column people: '0.5' is no whole number",
        ),
    ],
)
def test_tables_that_are_no_tree_are_refused(change, columns, count, message):
    frame = pd.DataFrame({"state": ["TX", "TX"], "county": ["a", "a"], "people": [1, 2]} | change)
    with pytest.raises(DeclarationError, match=message):
        Hierarchy.from_table(frame, columns, count)
