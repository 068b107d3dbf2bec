"""Arrays of xarray meet expressions by dimension and label, as tables of pandas do."""

import operator
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import forcopt as fo

xr = pytest.importorskip("xarray")

UNITS, HOURS = pd.Index(["a", "b", "c"], name="unit"), pd.Index([1, 2], name="time")


def model():
    m = fo.Model()
    return m, m.variable("x", index={"unit": UNITS, "time": HOURS}, lower=0, upper=9)


def turned(array):
    """The same array with its dimensions and labels in another order."""
    return array.transpose().isel(unit=[2, 0, 1])


WEIGHT = xr.DataArray(np.arange(1.0, 7).reshape(3, 2), {"unit": UNITS, "time": HOURS}, ["unit", "time"])
POINT = np.array([[1.0, 0], [2, 3], [0, 1]])


@pytest.mark.parametrize(
    "operation",
    [
        lambda x, w: x * w,
        lambda x, w: x - w,
        lambda x, w: x / w,
        lambda x, w: x * w.sel(time=2),
        lambda x, w: fo.where(w > 2, x, 0),
        lambda x, w: fo.align(x, w.sel(unit=["c", "a"]), join="inner")[0],
        lambda x, w: x.groupby(xr.where(w.sel(time=1) > 2, "high", "low")).sum(),
    ],
)
def test_labels_decide_not_positions(operation):
    m, x = model()
    point = m.point({x: POINT})
    left, right = (operation(x, w) for w in (WEIGHT, turned(WEIGHT)))
    keys = [axis.name for axis in left.axes]
    moved = right.transpose(*keys)
    for at, axis in enumerate(left.axes):
        moved = moved[(slice(None),) * at + ([moved.axes[at].place[label] for label in axis.labels],)]
    assert np.allclose(left.evaluate(point), moved.evaluate(point))


def test_values_of_arithmetic():
    m, x = model()
    point = m.point({x: POINT})
    assert np.allclose((x * turned(WEIGHT)).evaluate(point), POINT * WEIGHT.to_numpy())
    assert np.allclose((x * turned(WEIGHT)).sum().evaluate(point), (POINT * WEIGHT.to_numpy()).sum())


def test_bounds_comparisons_and_values_out():
    m = fo.Model()
    x = m.variable("x", index={"unit": WEIGHT.unit, "time": WEIGHT.time}, lower=turned(WEIGHT))
    m.subject_to(x.sum("time") >= turned(WEIGHT).sum("time") + 1)
    m.minimize((x * WEIGHT).sum())
    s = m.solve()
    found = s.to_xarray(x)
    assert found.dims == ("unit", "time") and found.name == "x"
    assert (found >= WEIGHT - 1e-9).all() and float(found.sel(unit="b", time=1)) == pytest.approx(4)
    assert float((found - WEIGHT).sum()) == pytest.approx(3)
    assert s.to_xarray("x").equals(found) and s.to_xarray(x.sum()).ndim == 0


def test_other_labels_are_an_error():
    _, x = model()
    with pytest.raises(fo.DeclarationError, match="is missing 'c'"):
        x * WEIGHT.isel(unit=[0, 1])
    with pytest.raises(fo.DeclarationError, match="labels"):
        x * xr.DataArray([1.0, 2, 3], dims=["unit"])


ON_THE_LEFT = {
    "*": (lambda w, x: w * x, lambda w, x: x * w),
    "+": (lambda w, x: w + x, lambda w, x: x + w),
    "-": (lambda w, x: w - x, lambda w, x: -(x - w)),
    "one dimension": (lambda w, x: w.sel(time=2) * x, lambda w, x: x * w.sel(time=2)),
    "/": (lambda w, x: w / x, lambda w, x: fo.inverse(x) * w),
}


@pytest.mark.parametrize("name", ON_THE_LEFT)
def test_an_array_on_the_left_is_aligned_as_on_the_right(name):
    m, x = model()
    left, right = ON_THE_LEFT[name]
    for array in (WEIGHT, turned(WEIGHT)):
        found, want = left(array, x), right(WEIGHT, x)["a"].loc[2]
        assert isinstance(found, fo.Expression) and {a.name for a in found.axes} == {"unit", "time"}
        there = tuple(a.labels.index("a" if a.name == "unit" else 2) for a in found.axes)
        point = m.complete(m.point({x: POINT + 1}))
        assert float(found[there].evaluate(point)) == pytest.approx(float(want.evaluate(point)))


@pytest.mark.parametrize("relate", [operator.le, operator.ge, operator.eq])
def test_a_comparison_with_an_array_on_the_left(relate):
    m, x = model()
    row = m.subject_to(relate(turned(WEIGHT) / 2, x), name="row")
    assert isinstance(row, fo.Constraint)
    (m.maximize if relate is operator.ge else m.minimize)(x.sum())
    assert np.allclose(m.solve().to_xarray(x), WEIGHT / 2)


def test_arrays_keep_their_own_operations():
    model()
    assert (WEIGHT * WEIGHT.sel(time=2)).dims == ("unit", "time") and (2 - WEIGHT).shape == (3, 2)
    assert bool((WEIGHT == WEIGHT).all()) and float((WEIGHT / 2).sum()) == 10.5


def test_labels_that_an_array_on_the_left_lacks_are_an_error():
    _, x = model()
    with pytest.raises(fo.DeclarationError, match="is missing 'c'"):
        WEIGHT.isel(unit=[0, 1]) * x


def test_an_import_after_the_variables_is_an_error_once():
    code = """
import forcopt as fo
x = fo.Model().variable("x", index={"unit": ["a", "b"]})
import xarray as xr
array = xr.DataArray([1.0, 2.0], {"unit": ["b", "a"]}, ["unit"])
try:
    array * x
except fo.DeclarationError as error:
    print(error)
print((array * x)["a"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "xarray was imported after the variables were made" in done.stdout
    assert "2 x[a]" in done.stdout
