"""Bounded group loss, weights of records, and the scikit-learn front of fair regression."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog, minimize

import forcopt as fo
from forcopt.learning import Finite
from forcopt.models import BoundedLossRegression, LexifairClassification, LexifairRegression

pytest.importorskip("sklearn")
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import check_estimator

from forcopt.models.lexifair import FairRegressor


def records(seed, n=40):
    rng = np.random.default_rng(seed)
    a = rng.choice(["u", "v"], n, p=[0.7, 0.3])
    X = rng.normal(size=(n, 2))
    return X, X[:, 0] + np.where(a == "u", 1.0, -1.0) * X[:, 1] + 0.3 * rng.normal(size=n), a


def members(a):
    return [np.flatnonzero(a == name).tolist() for name in np.unique(a)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("backend", ["clarabel", "scip"])
def test_the_least_error_within_the_bound_is_found(seed, backend):
    X, y, a = records(seed)
    weights = np.random.default_rng(seed).random(len(y)) if seed % 2 else None
    least = LexifairRegression(labels=y, groups=members(a), features=X, levels=1, weights=weights).solve()
    free = BoundedLossRegression(X, y, members(a), 1e6, weights=weights).solve()
    bound = (least.objective + max(free.evaluation.metrics.values())) / 2
    s = BoundedLossRegression(X, y, members(a), bound, weights=weights).solve(backend=backend)
    w = np.ones(len(y)) if weights is None else weights

    def loss(theta, kept=slice(None)):
        return float((w[kept] * (X[kept] @ theta - y[kept]) ** 2).sum() / w[kept].sum())

    rules = [{"type": "ineq", "fun": lambda t, m=m: bound - loss(t, m)} for m in members(a)]
    start = least.decision.coefficients
    own = minimize(loss, start, constraints=rules, method="SLSQP", options={"ftol": 1e-12})
    assert s.status == "optimal" and s.evaluation.feasible
    assert s.objective == pytest.approx(own.fun, rel=1e-5)
    assert least.objective <= bound and s.objective >= free.objective - 1e-9


def test_a_bound_that_no_model_keeps_is_infeasible_with_a_reason():
    X, y, a = records(0)
    p = BoundedLossRegression(X, y, members(a), 0.01)
    s = p.solve()
    assert s.status == "infeasible" and "bound is 0.01; every linear model has a group loss of" in s.reason
    assert fo.Problem.from_dict(json.loads(json.dumps(p.to_dict()))) == p
    with pytest.raises(fo.DeclarationError, match="bound"):
        BoundedLossRegression(X, y, members(a), -1.0)
    with pytest.raises(fo.DeclarationError, match=r"bound: infeasible; bound is 0\.01"):
        FairRegressor(bound=0.01).fit(X, y, sensitive_features=a)


@pytest.mark.parametrize("method", ["column-generation", "compact", "row-generation"])
def test_weights_count_like_copies(method):
    X, y, a = records(1, 24)
    weight = np.random.default_rng(0).integers(1, 4, 24)
    copies = np.repeat(np.arange(24), weight)
    one = LexifairRegression(labels=y, groups=members(a), features=X, weights=weight)
    two = LexifairRegression(labels=y[copies], groups=members(a[copies]), features=X[copies])
    found, other = one.solve(method), two.solve(method)
    assert found.decision.sorted_losses == pytest.approx(other.decision.sorted_losses, rel=1e-4)
    assert found.evaluation.metrics["overall loss"] == pytest.approx(
        other.evaluation.metrics["overall loss"], rel=1e-4
    )
    table = np.random.default_rng(1).integers(0, 2, (6, 24))
    label = (y > 0).astype(int)
    one = LexifairClassification(
        labels=label, groups=members(a), hypotheses=Finite(table), weights=weight
    ).solve(method)
    two = LexifairClassification(
        labels=label[copies], groups=members(a[copies]), hypotheses=Finite(table[:, copies])
    ).solve(method)
    assert one.decision.sorted_losses == pytest.approx(two.decision.sorted_losses, abs=1e-6)


def test_bad_weights_are_named():
    X, y, a = records(2, 10)
    fields = {"labels": y, "groups": members(a), "features": X}
    for weights, message in (
        ([1.0] * 9, "the shape is"),
        ([-1.0] + [1.0] * 9, "not be negative"),
        ((a != a[0]).astype(float), "all records of groups"),
    ):
        with pytest.raises(fo.DeclarationError, match=f"weights.*{message}"):
            LexifairRegression(**fields, weights=weights)


def by_sign(X):
    return np.sin(50 * np.asarray(X, dtype=float)[:, 0]) > 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "front",
    [
        FairRegressor(),
        FairRegressor(sensitive=by_sign, levels=1),
        FairRegressor(levels=1, learner=DecisionTreeRegressor(max_depth=3, random_state=0)),
    ],
    ids=["plain", "minimax", "learner"],
)
def test_the_front_is_an_estimator(front):
    check_estimator(front)


def test_the_front_gives_the_optima_of_the_problems():
    X, y, a = records(3)
    plain = FairRegressor().fit(X, y)
    ordinary = LinearRegression().fit(X, y)
    assert plain.predict(X) == pytest.approx(ordinary.predict(X))
    design = np.column_stack([X, np.ones(len(X))])
    fair = FairRegressor(levels=1).fit(X, y, sensitive_features=a)
    own = LexifairRegression(labels=y, groups=members(a), features=design, levels=1).solve()
    assert fair.report_.error == pytest.approx(own.objective, rel=1e-6)
    losses = [np.square(fair.predict(X[m]) - y[m]).mean() for m in members(a)]
    assert max(losses) == pytest.approx(own.objective, rel=1e-6)
    bound = 1.2 * own.objective
    bounded = FairRegressor(bound=bound).fit(X, y, sensitive_features=a)
    assert bounded.report_.status == "optimal" and not bounded.report_.violations
    assert fair.report_.metrics["overall loss"] >= bounded.report_.error - 1e-9
    pipe = make_pipeline(StandardScaler(), FairRegressor(levels=1))
    pipe.fit(X, y, fairregressor__sensitive_features=a)
    assert pipe[-1].report_.error == pytest.approx(own.objective, rel=1e-5)


@pytest.mark.parametrize(("loss", "quantile"), [("absolute", 0.5), ("quantile", 0.8)])
def test_the_front_takes_losses(loss, quantile):
    """By linear programs over coefficients, the loss of each record, and the largest of the groups."""
    X, y, a = records(5)
    design, n, unit = np.column_stack([X, np.ones(40)]), len(y), 1 + (loss == "absolute")
    above = np.hstack([-quantile * design, -np.eye(n) / unit, np.zeros((n, 1))])
    below = np.hstack([(1 - quantile) * design, -np.eye(n) / unit, np.zeros((n, 1))])
    of = np.array([np.isin(np.arange(n), m) / len(m) for m in members(a)])
    groups = np.hstack([np.zeros((2, 3)), of, -np.ones((2, 1))])
    rows, right = np.vstack([above, below, groups]), np.r_[-quantile * y, (1 - quantile) * y, 0, 0]
    limits = [(None, None)] * 3 + [(0, None)] * (n + 1)
    least = linprog(np.eye(n + 4)[-1], rows, right, bounds=limits).fun
    fair = FairRegressor(levels=1, loss=loss, quantile=quantile).fit(X, y, sensitive_features=a)
    assert fair.report_.error == pytest.approx(least, rel=1e-5)
    limits[-1] = (1.1 * least, 1.1 * least)
    overall = linprog(np.r_[np.zeros(3), np.ones(n) / n, 0], rows, right, bounds=limits).fun
    bounded = FairRegressor(1.1 * least, loss=loss, quantile=quantile).fit(X, y, sensitive_features=a)
    assert bounded.report_.error == pytest.approx(overall, rel=1e-5) and not bounded.report_.violations
    with pytest.raises(fo.DeclarationError, match="bound: infeasible"):
        FairRegressor(0.9 * least, loss=loss, quantile=quantile).fit(X, y, sensitive_features=a)


def test_the_front_takes_a_learner_of_tables(tmp_path):
    X, y, a = records(6, 200)
    table = pd.DataFrame(X, columns=["x", "z"]).assign(job=np.where(a == "u", "cook", None))
    learner = HistGradientBoostingRegressor(max_iter=9, categorical_features="from_dtype")
    fair = FairRegressor(levels=1, learner=learner).fit(
        table.astype({"job": "category"}), y, sensitive_features=a
    )
    found = fair.predict(table)
    losses = [np.square(found[m] - y[m]).mean() for m in members(a)]
    assert max(losses) == pytest.approx(fair.report_.error, rel=1e-9)
    alone = clone(learner).fit(table.astype({"job": "category"}), y)
    assert max(losses) < max(
        np.square(alone.predict(table.astype({"job": "category"}))[m] - y[m]).mean() for m in members(a)
    )
    fair.policy_.save(tmp_path / "p.json")
    again = fo.Policy.load(tmp_path / "p.json", trusted=True)
    for asked in (table, table[["job", "z", "x"]], table.convert_dtypes()):
        assert np.array_equal(again.predict(asked), found)
    assert [float(again.predict(table.iloc[[i]])[0]) for i in range(9)] == found[:9].tolist()


class Listed(BaseEstimator, RegressorMixin):
    """The best of the columns of the table: a finite class whose fits are optimal."""

    def fit(self, X, y, sample_weight):
        self.best_ = int((sample_weight @ np.square(X - y[:, None])).argmin())
        return self

    def predict(self, X):
        return X[:, self.best_]


@pytest.mark.parametrize("seed", range(6))
def test_a_learner_keeps_the_bound_at_the_least_loss(seed):
    """The mixture of listed models by scipy's linear program; its mean loses no more."""
    rng = np.random.default_rng(seed)
    _, y, a = records(seed, 60)
    table = y[:, None] + rng.normal(size=(60, 8)) * np.where(a == "u", 1.0, 2.0)[:, None] ** rng.normal(
        size=8
    )
    squares = np.square(table - y[:, None])
    by_group = np.array([squares[m].mean(axis=0) for m in members(a)])
    one = np.ones((1, 8))
    least = linprog(np.r_[np.zeros(8), 1], np.c_[by_group, -np.ones(2)], [0, 0], np.c_[one, 0], [1]).fun
    free = by_group[:, squares.mean(axis=0).argmin()].max()
    bound = (least + max(least, free)) / 2
    mixed = linprog(squares.mean(axis=0), by_group, [bound] * 2, one, [1]).fun
    p = BoundedLossRegression(table, y, members(a), bound, learner=Listed())
    s = p.solve()
    assert s.status == "approximate" and s.evaluation.feasible and s.method == "column-generation"
    assert s.objective <= mixed * (1 + 1e-3)
    fair = FairRegressor(bound, learner=Listed()).fit(table, y, sensitive_features=a)
    assert max(np.square(fair.predict(table)[m] - y[m]).mean() for m in members(a)) <= bound + 1e-6
    assert fair.report_.error == pytest.approx(s.objective, rel=1e-9)
    refused = p.replace(bound=least / 100).solve()
    assert refused.status == "limit" and "this proves nothing" in refused.message
    with pytest.raises(fo.DeclarationError, match="bound: limit; no mixture of the models"):
        FairRegressor(least / 100, learner=Listed()).fit(table, y, sensitive_features=a)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_both_methods_of_linear_models_agree(loss):
    X, y, a = records(7)
    least = LexifairRegression(labels=y, groups=members(a), features=X, levels=1, loss=loss).solve()
    p = BoundedLossRegression(X, y, members(a), 1.1 * least.objective, loss=loss)
    conic, mixed = p.solve(), p.solve("column-generation")
    assert conic.status == mixed.status == "optimal"
    assert mixed.objective == pytest.approx(conic.objective, rel=1e-5)
    assert mixed.bound <= conic.objective + 1e-6
    assert p.replace(bound=0.5 * least.objective).solve("column-generation").status == "infeasible"


def test_several_sensitive_columns_of_the_front():
    X, y, a = records(4, 80)
    frame = pd.DataFrame(X, columns=["x", "z"]).assign(sex=a, old=np.arange(80) % 2)
    cross = FairRegressor(sensitive=["sex", "old"], levels=1).fit(frame, y)
    each = FairRegressor(sensitive=["sex", "old"], combine="each", levels=1).fit(frame, y)
    assert set(cross.model_.names) == {f"sex={s} & old={o}" for s in "uv" for o in (0, 1)}
    assert set(each.model_.names) == {"sex=u", "sex=v", "old=0", "old=1"}
    assert each.report_.error <= cross.report_.error + 1e-9 and cross.n_features_in_ == 2
    losses = [np.square(each.predict(frame[m]) - y[m]).mean() for m in (frame["old"] == 0, frame["old"] == 1)]
    assert max(losses) <= each.report_.error + 1e-6
    sets = FairRegressor(sensitive=["sex", "old"], combine="subgroups", levels=1).fit(frame, y)
    both = {f"sex & old={s} & {o}" for s in "uv" for o in (0, 1)}
    assert set(sets.model_.names) == set(each.model_.names) | both
    assert sets.report_.error == pytest.approx(cross.report_.error, rel=1e-6)  # unions are no worse
    missing = np.where(np.arange(80) < 5, None, a)
    with pytest.warns(UserWarning, match="5 of 80 records are in no group"):
        assert FairRegressor().fit(X, y, sensitive_features=missing).model_.names == ("u", "v")
    with pytest.raises(fo.DeclarationError, match="sensitive_features has 79 entries for 80 records"):
        FairRegressor().fit(X, y, sensitive_features=a[:79])
    with pytest.raises(fo.DeclarationError, match="no record has a group"):
        FairRegressor().fit(X, y, sensitive_features=[None] * 80)
    with pytest.raises(fo.DeclarationError, match="levels is 1; with bound there are no levels"):
        FairRegressor(1.0, levels=1).fit(X, y, sensitive_features=a)


def least_error(X, y, groups, bound):
    """The dual: the least error plus priced excesses over all models, at the best prices."""
    masks = [np.isin(np.arange(len(y)), g) / len(g) for g in groups]

    def dual(prices):
        weight = np.full(len(y), 1 / len(y)) + sum(p * m for p, m in zip(prices, masks, strict=True))
        root = np.sqrt(weight)
        misses = X @ np.linalg.lstsq(X * root[:, None], y * root)[0] - y
        excess = np.array([m @ misses**2 - bound for m in masks])
        return -(np.mean(misses**2) + prices @ excess), -excess

    found = minimize(dual, np.ones(len(groups)), jac=True, bounds=[(0, None)] * len(groups), tol=1e-14)
    return -found.fun


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("unit", [1e-5, 1e-4, 1e-2, 1e2, 1e5])
def test_the_unit_of_labels_changes_no_optimum(seed, unit):
    X, y, a = records(seed)
    groups = members(a)
    least = LexifairRegression(labels=y, groups=groups, features=X, levels=1).solve().objective
    bound = 1.1 * least
    s = BoundedLossRegression(X, y * unit, groups, bound * unit**2).solve()
    assert s.status == "optimal"
    assert s.objective / unit**2 == pytest.approx(least_error(X, y, groups, bound), rel=1e-5)


@pytest.mark.parametrize("bound", [1e6, 1e12, 1e300])
def test_a_bound_far_above_all_losses_leaves_least_squares(bound):
    X, y, a = records(0)
    s = BoundedLossRegression(X, y, members(a), bound).solve()
    least = np.mean((X @ np.linalg.lstsq(X, y)[0] - y) ** 2)
    assert s.status == "optimal" and s.objective == pytest.approx(least, rel=1e-7)


@pytest.mark.parametrize("backend", ["clarabel", "scip"])
@pytest.mark.parametrize("bound", [0.0, 1e-12, 1e-6, 1.0])
def test_labels_that_a_model_meets_exactly_keep_any_bound(bound, backend):
    for seed, unit in enumerate([1e-3, 1.0, 1e3, 1e5, 1e6, 1e7]):
        rng = np.random.default_rng(seed)
        X, theta = rng.normal(size=(9, 3)), unit * rng.normal(size=3)
        s = BoundedLossRegression(X, X @ theta, [[0, 1, 2, 3], [4, 5, 6, 7, 8]], bound).solve(backend=backend)
        assert s.status == "optimal" and s.evaluation.feasible
        assert s.objective <= 1e-6 * max(bound, min(1.0, unit**2))


def test_labels_far_from_zero_keep_the_model():
    X, y, a = records(0)
    one, far = (FairRegressor(2.0).fit(X, y + c, sensitive_features=a) for c in (0.0, 1e6))
    assert far.report_.status == "optimal"
    assert far.coef_ == pytest.approx(one.coef_, abs=1e-5)
    assert far.intercept_ - 1e6 == pytest.approx(one.intercept_, abs=1e-5)


def test_violations_do_not_hide_behind_the_scale_of_the_bound():
    wide = BoundedLossRegression([[1.0]], [1e6], [[0]], 1e13, radius=1)
    assert wide.evaluate([100.0]).violations == {"radius": 99.0}
    fine = BoundedLossRegression([[1.0], [1.0]], [0, 1e-4], [[0], [1]], 1e-9)
    assert set(fine.evaluate([0.0]).violations) == {"loss of 1"} and fine.solve().status == "infeasible"


def test_weights_of_any_size_and_bad_ones():
    X, y, groups = [[1], [1], [1]], [0, 0, 3], [[0, 1], [2]]
    for size in (1e-300, 1e308):
        s = BoundedLossRegression(X, y, groups, 9, weights=[size] * 3).solve()
        assert s.status == "optimal" and s.objective == pytest.approx(2.0, rel=1e-6)
    with pytest.raises(fo.DeclarationError, match=r"weights: the shape is \(0,\)"):
        BoundedLossRegression(X, y, groups, 9, weights=[])
    with pytest.raises(fo.DeclarationError, match=r"sample_weight\[1\] is -1; it must not be negative"):
        FairRegressor().fit(X, y, sensitive_features=["u", "u", "v"], sample_weight=[1, -1, 1])


def test_records_in_no_group_count_in_the_error():
    with pytest.warns(UserWarning, match="1 of 2 records are in no group and count in the overall"):
        p = BoundedLossRegression([[1.0], [1.0]], [0, 10], [[0]], 1.0)
    assert p.solve().decision.coefficients == pytest.approx([1.0], abs=1e-5)
