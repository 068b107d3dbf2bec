"""Models of other libraries come in as they are: their own solvers give the same optimum."""

import cvxpy as cp
import highspy
import numpy as np
import pyomo.environ as pyo
import pytest

import forcopt as fo
from tests.loops.test_exchange import random_model


def silent() -> highspy.Highs:
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    return highs


# -- there and back --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("library", ["highs", "pyomo", "cvxpy"])
def test_a_model_that_goes_out_comes_back(library, seed):
    model = random_model(seed)
    theirs = getattr(model, f"to_{library}")()
    back = getattr(fo, f"from_{library}")(theirs)
    ours, again = model.solve(gap=0), back.solve(gap=0)
    assert again.status == ours.status == "optimal"
    assert again.objective == pytest.approx(ours.objective, abs=1e-6)
    assert back.objective.stages[0].maximize == model.objective.stages[0].maximize
    assert back.columns().integer.sum() == model.columns().integer.sum()


# -- HiGHS -----------------------------------------------------------------------------------------------


def test_a_highs_object_without_names_gives_an_array():
    h = silent()
    for low, high in ((0.0, 4.0), (-1.0, 3.0)):
        h.addVar(low, high)
    h.addRow(1.0, 5.0, 2, np.array([0, 1], np.int32), np.array([1.0, 2.0]))
    h.changeColCost(0, 2.0)
    h.changeColCost(1, 1.0)
    m = fo.from_highs(h)
    assert [v.shape for v in m.variables] == [(2,)] and m.row_name(0) == "row 0"
    h.run()
    assert m.solve().objective == pytest.approx(h.getInfo().objective_function_value)


def test_what_a_highs_object_must_not_hold():
    h = silent()
    for _ in range(2):
        h.addVar(0.0, 1.0)
        h.passColName(h.getNumCol() - 1, "same")
    with pytest.raises(fo.DeclarationError, match="two columns are named 'same'"):
        fo.from_highs(h)
    several = highspy.HighsLinearObjective()
    several.coefficients = [1.0, 2.0]
    h = silent()
    h.addVar(0.0, 1.0)
    h.addVar(0.0, 1.0)
    h.addLinearObjective(several)
    with pytest.raises(fo.UnsupportedError, match="several linear objectives"):
        fo.from_highs(h)


# -- Pyomo -----------------------------------------------------------------------------------------------


def hospital() -> pyo.ConcreteModel:
    p = pyo.ConcreteModel("hospital")
    p.I, p.J = pyo.Set(initialize=["a", "b"]), pyo.RangeSet(3)
    p.c = pyo.Param(p.J, initialize={1: 1.0, 2: 2.0, 3: 0.5}, mutable=True)
    p.x = pyo.Var(p.I, p.J, bounds=(0, 4))
    p.y = pyo.Var(domain=pyo.Integers, bounds=(-3, 3))
    p.z = pyo.Var([("a", 1), ("b", 2)], domain=pyo.Binary)
    p.f = pyo.Var(bounds=(0, 1))
    p.f.fix(0.5)
    p.b = pyo.Block()
    p.b.w = pyo.Var(bounds=(0, 2))
    p.b.c = pyo.Constraint(expr=p.b.w + p.y <= 2)
    p.need = pyo.Constraint(
        p.I, rule=lambda m, i: sum(m.x[i, j] * m.c[j] for j in m.J) + m.z["a", 1] + m.f >= 3
    )
    p.range = pyo.Constraint(expr=(1, p.x["a", 1] + p.y, 3))
    p.off = pyo.Constraint(expr=p.y >= 3)
    p.off.deactivate()
    p.cost = pyo.Objective(expr=sum(p.x[k] for k in p.x) + p.y - p.z["b", 2] + 2 * p.b.w + 3)
    return p


def test_a_model_of_pyomo_keeps_values_names_and_labels():
    p = hospital()
    m = fo.from_pyomo(p)
    pyo.SolverFactory("appsi_highs").solve(p)
    s = m.solve()
    assert s.objective == pytest.approx(pyo.value(p.cost))
    assert {v.name: v.shape for v in m.variables} == {
        "x": (2, 3), "y": (), "z": (2,), "f": (), "b.w": ()
    }  # fmt: skip
    assert m["rows"].labels == ["need[a]", "need[b]", "range", "b.c"]
    assert s[m["x"].loc["a", 2]] == s["x"][0, 1] and s["f"] == 0.5


def test_squares_and_ordered_sets_of_pyomo():
    p = hospital()
    p.k = pyo.Var(p.J, bounds=(0, 2))
    p.one = pyo.SOSConstraint(var=p.k, sos=1)
    p.some = pyo.Constraint(expr=sum(p.k[j] for j in p.J) >= 1)
    p.ball = pyo.Constraint(expr=p.x["a", 2] ** 2 + p.x["b", 2] ** 2 + p.x["a", 1] <= 3)
    p.cost.deactivate()
    p.worth = pyo.Objective(
        expr=p.x["a", 2] + 2 * p.x["b", 2] - p.k[2] - (p.k[1] - 1) ** 2 - p.k[3], sense=pyo.maximize
    )
    s = fo.from_pyomo(p).solve("scip")
    # k = (1, 0, 0); the ball of radius sqrt(3) in the direction (1, 2)
    assert s.status == "optimal" and s.objective == pytest.approx(np.sqrt(15), abs=1e-4)
    assert s["k"] == pytest.approx([1, 0, 0], abs=1e-3)
    p.hyperbola = pyo.Constraint(expr=p.x["a", 2] * p.x["b", 2] <= 1)  # not convex: a product of variables
    s = fo.from_pyomo(p).solve("scip")
    x = s["x"][:, 1]
    assert s.status == "optimal" and x[0] * x[1] <= 1 + 1e-5 and s.objective < np.sqrt(15) - 0.01


@pytest.mark.parametrize(
    ("name", "add"),
    [
        ("curve", lambda p: pyo.Constraint(expr=pyo.exp(p.y) <= 3)),
        ("other", lambda p: pyo.Objective(expr=p.y)),
        ("odd", lambda p: pyo.Var(domain=pyo.Set(initialize=[1, 3, 5]))),
        ("said", lambda p: pyo.LogicalConstraint(expr=p.truth)),
    ],
)
def test_what_has_no_counterpart_is_named(name, add):
    p = hospital()
    if name == "said":
        p.truth = pyo.BooleanVar()
    p.add_component(name, add(p))
    with pytest.raises(fo.UnsupportedError, match=f"from_pyomo: .*({name}|truth)"):
        fo.from_pyomo(p)


# -- cvxpy -----------------------------------------------------------------------------------------------


def test_every_cone_and_kind_of_variable_of_cvxpy():
    x, k = cp.Variable(3, name="x", nonneg=True), cp.Variable((2, 3), name="k", bounds=[0, 5])
    psd, nsd = (cp.Variable((2, 2), name=name, **{name: True}) for name in ("PSD", "NSD"))
    diag, same = cp.Variable((2, 2), name="D", diag=True), cp.Variable((2, 2), name="S", symmetric=True)
    cube = cp.Variable((2, 2, 2), name="cube")
    weight, aim = cp.Parameter(nonneg=True, value=2.0), np.array([[1, 2], [3, 4]])
    worth = -weight * cp.sum_squares(x - 1) - cp.log_sum_exp(x) + cp.trace(psd) - cp.sum_squares(k)
    worth -= cp.quad_form(x, np.array([[2, 1, 0], [1, 3, -1], [0, -1, 1]])) + cp.sum(cube)
    worth += cp.trace(nsd) - cp.norm(diag - aim) - cp.sum_squares(same - aim)
    p = cp.Problem(
        cp.Maximize(worth),
        [
            cp.norm(x) <= 2,
            cube >= np.arange(8).reshape(2, 2, 2),
            cp.lambda_max(psd) <= 1,
            psd[0, 1] == 0.2,
            nsd[0, 1] == 1,
            cp.geo_mean(x) >= 0.5,
            cp.PowCone3D(x[0], x[1], k[0, 2] + 0.6, 0.3),
            cp.power(x[2], 2) <= 0.6,
            cp.entr(x[0]) >= 0.1,
            k[0, 1] + k[1, 2] >= 1.5,
            cp.norm(k, axis=1) <= 3,
            cp.norm(k, axis=0) <= 2,
            k[1, 0] >= k[0, 0] + 0.7,
        ],
    )
    m = fo.from_cvxpy(p)
    value, s = p.solve(solver="CLARABEL"), m.solve("clarabel")
    assert s.objective == pytest.approx(value, abs=1e-5)
    for each in (x, k, psd, nsd, diag, same, cube):
        found = np.asarray(each.value.todense() if hasattr(each.value, "todense") else each.value)
        assert s[each.name()] == pytest.approx(found, abs=2e-3), each.name()


def test_integers_of_cvxpy():
    k = cp.Variable((2, 3), name="k", integer=[(0, 1), (1, 2)], bounds=[0, 5])
    b, y, z = cp.Variable(2, boolean=True), cp.Variable(3, integer=True, name="y"), cp.Variable(name="z")
    cost = cp.sum(k) + 3 * cp.sum(b) + cp.norm1(y - np.array([0.4, 2.6, -3])) + cp.maximum(z, 1.5)
    demands = [k[0, 1] + k[1, 2] >= 1.5, cp.sum(k, axis=0)[0] >= 0.5, b[0] + b[1] >= y[1] - 2, z >= k[0, 0]]
    p = cp.Problem(cp.Minimize(cost), demands)
    m = fo.from_cvxpy(p)
    assert (m.columns().integer > 0).sum() == 7
    assert m.solve().objective == pytest.approx(p.solve(solver="HIGHS"), abs=1e-5)
    m.leximax(m["k"].sum(axis=0))
    assert m.solve().levels == pytest.approx([1, 1, 0.5], abs=1e-6)


def test_what_cvxpy_must_not_hold():
    z, c, q = cp.Variable(), cp.Variable(2, complex=True, name="c"), cp.Parameter(name="q")
    for objective, words in (
        (cp.sqrt(z), "does not follow DCP"),
        (cp.abs(c)[0], "c is complex"),
    ):
        with pytest.raises(fo.UnsupportedError, match=words):
            fo.from_cvxpy(cp.Problem(cp.Minimize(objective)))
    with pytest.raises(fo.DeclarationError, match="parameter q has no value"):
        fo.from_cvxpy(cp.Problem(cp.Minimize(q * z)))


# -- linopy ----------------------------------------------------------------------------------------------


def test_a_model_of_linopy_keeps_axes_and_masks():
    linopy = pytest.importorskip("linopy")
    pd, xr = pytest.importorskip("pandas"), pytest.importorskip("xarray")
    theirs = linopy.Model()
    towns, times = pd.Index(["a", "b"], name="town"), pd.RangeIndex(3, name="t")
    x = theirs.add_variables(lower=0, coords=[towns, times], name="x")
    y = theirs.add_variables(lower=0, upper=5, name="y", integer=True)
    mask = xr.DataArray([True, False, True], dims="k")
    z = theirs.add_variables(binary=True, name="z", coords=[pd.RangeIndex(3, name="k")], mask=mask)
    theirs.add_constraints(x.sum("t") + y >= 4, name="need")
    theirs.add_objective((x * 1.5).sum() + 5 * y - z.sum())
    m = fo.from_linopy(theirs)
    theirs.solve("highs", output_flag=False)
    assert m.solve().objective == pytest.approx(theirs.objective.value)
    assert [m.row_name(i) for i in range(2)] == ["need[a]", "need[b]"]
    assert m["x"].sum("t").shape == (2,) and m["z"].shape == (2,)
    theirs.add_sos_constraints(x, sos_type=1, sos_dim="t")
    with pytest.raises(fo.UnsupportedError, match="SOS"):
        fo.from_linopy(theirs)
