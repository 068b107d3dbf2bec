"""Sensitive columns at the doors of the estimators: their order, their spelling, absent crossings."""

import sys
from importlib import import_module
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import forcopt as fo
from forcopt.fairness import DemographicParity, read_groups
from forcopt.learning import Thresholds
from forcopt.models.fair_classification import FairClassifier
from forcopt.models.fair_postprocessing import ThresholdPostprocessor
from forcopt.models.lexifair import FairRegressor

MAKE = {
    "classifier": lambda **k: FairClassifier(DemographicParity(0.1), Thresholds(), **k),
    "thresholds": lambda **k: ThresholdPostprocessor(constraint=DemographicParity(0.1), **k),
    "regressor": lambda **k: FairRegressor(**k),
}


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    n = 200
    X = pd.DataFrame({"u": rng.normal(size=n), "v": rng.normal(size=n)}, index=rng.permutation(n))
    S = pd.DataFrame({"sex": rng.choice(["f", "m"], n), "race": rng.choice(["p", "q"], n)}, index=X.index)
    return X, (X["u"] + rng.normal(size=n) > 0).astype(int), S


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("column", ["sensitive_features", "y", "sample_weight"])
def test_columns_in_another_order_are_refused(people, name, column):
    X, y, S = people
    given = {"y": y, "sensitive_features": S["sex"], "sample_weight": pd.Series(1.0, X.index)}
    given[column] = given[column].sample(frac=1, random_state=1)
    with pytest.raises(fo.DeclarationError, match="in another order"):
        MAKE[name]().fit(X, **given)


def test_groups_in_another_order_are_refused_at_predict(people):
    X, y, S = people
    fitted = MAKE["thresholds"]().fit(X, y, sensitive_features=S["sex"])
    with pytest.raises(fo.DeclarationError, match="sensitive_features has the labels of X in another order"):
        fitted.predict(X, sensitive_features=S["sex"].sample(frac=1, random_state=1))


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("combine", ["cross", "each"])
def test_records_of_weight_zero_are_as_if_left_out(people, name, combine):
    X, y, S = people
    kept = ~((S["sex"] == "f") & (S["race"] == "q"))
    fits = [
        MAKE[name](combine=combine).fit(X, y, sensitive_features=S, sample_weight=kept * 1.0),
        MAKE[name](combine=combine).fit(X[kept], y[kept], sensitive_features=S[kept]),
    ]
    one, other = (f.report_.error for f in fits)
    assert one == pytest.approx(other)


@pytest.mark.parametrize("several", [False, True])
def test_an_unseen_crossing_of_known_values_gets_the_law_of_its_neighbours(people, several):
    X, y, S = people
    y = y + (several & (X["v"] > 1))
    seen = ~((S["sex"] == "f") & (S["race"] == "q"))
    fitted = MAKE["thresholds"](combine="each").fit(X[seen], y[seen], sensitive_features=S[seen])
    chance = fitted.predict_proba(X, sensitive_features=S)
    near = [S.assign(race="p"), S.assign(sex="m")]  # each shares one value
    mass = [((S["sex"] == "f") & (S["race"] == "p")).sum(), ((S["sex"] == "m") & (S["race"] == "q")).sum()]
    laws = [fitted.predict_proba(X, sensitive_features=other)[~seen] for other in near]
    np.testing.assert_allclose(chance[~seen], np.average(laws, axis=0, weights=mass))
    np.testing.assert_allclose(chance[seen], fitted.predict_proba(X[seen], sensitive_features=S[seen]))
    with pytest.warns(UserWarning, match="column 'race': groups holds 'z'.* 'z' gets their mixture"):
        fitted.predict(X, sensitive_features=S.assign(race="z"))
    strict = fitted.set_params(unknown="refuse").fit(X[seen], y[seen], sensitive_features=S[seen])
    with pytest.raises(fo.DeclarationError, match="column 'race': groups holds 'z'"):
        strict.predict(X, sensitive_features=S.assign(race="z"))
    with pytest.raises(fo.DeclarationError, match="groups holds 'sex=f & race=q'"):
        crossed = MAKE["thresholds"]().fit(X[seen], y[seen], sensitive_features=S[seen])
        crossed.predict(X, sensitive_features=S)


@pytest.mark.parametrize("name", ["classifier", "regressor"])
@pytest.mark.parametrize("sensitive", ["sex", 2, ["race", "sex"]])
def test_a_sensitive_column_that_is_unused_is_not_asked_for(people, name, sensitive):
    X, y, S = people
    code = (S.iloc[0] == S).astype(int)
    table = pd.concat([X, code[["sex"]] if sensitive != ["race", "sex"] else code], axis=1)
    fitted = MAKE[name](sensitive=sensitive).fit(table, y)
    assert fitted.predict(X).shape == y.shape
    if name == "regressor":
        assert (fitted.predict(X) == fitted.predict(table)).all()
    with pytest.raises(ValueError, match="lacks column 'v'"):
        fitted.predict(X[["u"]])


@pytest.mark.parametrize("name", MAKE)
def test_an_array_may_lack_the_unused_column(people, name):
    X, y, S = people
    code = (S["sex"] == "f").to_numpy()
    table = np.column_stack([X, code])
    fitted = MAKE[name](sensitive=2).fit(table, y)
    extra = {"sensitive_features": code} if name == "thresholds" else {}
    assert fitted.predict(X.to_numpy(), **extra).shape == y.shape


@pytest.mark.parametrize("spelt", [[0, 1], [False, True], [0.0, 1.0], ["0", "1"]])
@pytest.mark.parametrize("asked", [[0, 1], [False, True], [0.0, 1.0], ["0", "1"]])
def test_a_group_is_found_by_its_value(spelt, asked):
    names = read_groups(spelt)[1]
    assert read_groups(asked, names)[0].tolist() == [0, 1]
    with pytest.raises(fo.DeclarationError, match="groups holds '2'"):
        read_groups([2], names)
    if "True" not in names:
        with pytest.raises(fo.DeclarationError, match="groups holds 'True'"):
            read_groups([True], ("1", "1.0"))


def test_groups_0_1_at_fit_and_truth_values_at_predict(people):
    X, y, S = people
    for table in (S["sex"] == "f", S == ["f", "p"]):
        fitted = MAKE["thresholds"]().fit(X, y, sensitive_features=table.astype(int))
        own = fitted.predict_proba(X, sensitive_features=table.astype(int))
        assert (fitted.predict_proba(X, sensitive_features=table) == own).all()


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_a_record_without_a_label_is_named(people, name, missing):
    X, y, S = people
    labels = y.astype(object)
    labels.iloc[3] = missing
    with pytest.raises(fo.DeclarationError, match=r"y\[3\] is missing"):
        MAKE[name]().fit(X, labels, sensitive_features=S["sex"])


@pytest.mark.parametrize("name", ["classifier", "thresholds"])
def test_labels_that_differ_by_case_alone_are_one_misspelt(people, name):
    X, y, S = people
    labels = np.where(y, "yes", "no").astype(object)
    labels[:5] = "Yes "
    with pytest.raises(fo.DeclarationError, match=r"'Yes ' and '\w+', which differ by case or blanks alone"):
        MAKE[name]().fit(X, labels, sensitive_features=S["sex"])


@pytest.mark.parametrize(
    "place",
    [
        "forcopt.models.fair_classification.FairClassifier",
        "forcopt.models.fair_postprocessing.ThresholdPostprocessor",
        "forcopt.models.lexifair.FairRegressor",
        "forcopt.causal.CounterfactualTransformer",
    ],
)
def test_without_scikit_learn_the_command_is_given(monkeypatch, place):
    module, _, name = place.rpartition(".")
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(fo.NotInstalledError, match=f"{name} needs scikit-learn.*pip install scikit-learn"):
        getattr(import_module(module), name)


@pytest.mark.parametrize("make", [FairClassifier, ThresholdPostprocessor])
def test_subgroups_hold_for_every_set_of_columns(make):
    rng = np.random.default_rng(0)
    n = 3000
    S = pd.DataFrame({name: rng.choice(list("pq"), n) for name in ("sex", "race", "age")})
    S.loc[::50, "race"] = None  # counts in the sets without race
    x = rng.normal(size=(n, 2)) + 0.5 * ((S["sex"] == "p") ^ (S["race"] == "p")).to_numpy()[:, None]
    y = x[:, 0] + rng.normal(size=n) > 0.4
    clf = make(constraint=DemographicParity(0.03), combine="subgroups").fit(x, y, sensitive_features=S)
    law = clf.policy_.predict_proba(x, S)[:, 1]
    sets = [list(c) for k in (1, 2, 3) for c in combinations(S.columns, k)]
    for columns in sets:
        rates = pd.Series(law).groupby([S[c] for c in columns]).mean()
        assert np.ptp(rates) <= 0.03 + 1e-6, columns
        assert f"selection rate by {' & '.join(columns)}" in clf.report_.metrics
    each = make(constraint=DemographicParity(0.03), combine="each").fit(x, y, sensitive_features=S)
    assert each.report_.error < clf.report_.error  # here the crossing of sex and race is what differs
