"""Arrays of xarray meet expressions by dimension and label, as tables of pandas do."""

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


@pytest.mark.parametrize("operation", [lambda w, x: w * x, lambda w, x: w - x, lambda w, x: w <= x])
def test_xarray_on_the_left_is_an_error(operation):
    """It would pair entries by position."""
    _, x = model()
    with pytest.raises(fo.DeclarationError, match="xarray takes no expression on the right"):
        operation(WEIGHT, x)
