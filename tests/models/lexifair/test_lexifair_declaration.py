"""Declaring, judging, showing, saving."""

import json

import numpy as np
import pandas as pd
import pytest
from lexifair_oracle import mixtures
from test_exact_methods import classification, regression

import forcopt as fo
from forcopt.models import LexifairClassification, LexifairRegression
from forcopt.models.lexifair import Finite, Stumps, groups_of


def small(**fields):
    base = {"features": np.eye(3), "labels": [1, 2, 3], "groups": [[0, 1], [2]]}
    return LexifairRegression(**{**base, **fields})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"groups": []}, "groups is empty; at least one group is needed"),
        ({"groups": [[0, 1, 2], []]}, r"groups\[1\] is empty; every group must have a record"),
        ({"groups": [[0, 1], [2, 3]]}, r"groups\[1\] has record 3; records are 0 to 2"),
        ({"groups": [[0, 1], [-1, 2]]}, r"groups\[1\] has record -1; records are 0 to 2"),
        ({"groups": [[0, 1, 1], [2]]}, r"groups\[0\] names a record twice"),
        ({"levels": 0}, "levels is 0; input should be greater than or equal to 1"),
        ({"levels": 3}, "levels is 3; there are only 2 groups"),
        ({"names": ["a"]}, "names: 1 are given for the 2 groups"),
        ({"names": ["a", "a"]}, "names: a, a are not all different"),
        ({"labels": [1, 2, 3, 4]}, "features has 3 rows, labels 4"),
        ({"labels": [[1], [2], [3]]}, r"labels: the shape is \(3, 1\); it must be one column"),
        ({"labels": [1, np.nan, 3]}, "nan"),
        ({"features": np.zeros((3, 0))}, r"features: the shape is \(3, 0\)"),
        ({"features": [1, 2, 3]}, r"features: the shape is \(3,\)"),
        ({"radius": 0.0}, "radius is 0.0; input should be greater than 0"),
        ({"radius": -1.0}, "radius is -1.0; input should be greater than 0"),
        ({"radius": np.inf}, "radius is inf; input should be a finite number"),
    ],
)
def test_bad_regressions(fields, message):
    with pytest.raises(fo.DeclarationError, match=message):
        small(**{"groups": [[0, 1], [2]], **fields})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"labels": [0, 2]}, r"labels\[1\] is 2; it must be 0 or 1"),
        ({"labels": [0, 1, 1], "groups": [[0, 1, 2]]}, "hypotheses has 2 records, labels 3"),
        (
            {"hypotheses": {"type": "Finite", "table": [[0.5, 1.5]]}},
            r"array\[0, 1\] is 1.5; it must be from 0 to 1",
        ),
        (
            {"hypotheses": {"type": "Finite", "table": [0, 1]}},
            r"shape is \(2,\); it must be \(classifiers",
        ),
        ({"hypotheses": {"type": "Stumps", "features": [1, 2]}}, r"shape is \(2,\); it must be \(records"),
        (
            {"hypotheses": {"type": "Stump", "features": [[1], [2]]}},
            "unknown type 'Stump'; did you mean 'Stumps'",
        ),
    ],
)
def test_bad_classifications(fields, message):
    base = {"labels": [0, 1], "groups": [[0], [1]], "hypotheses": Finite([[0, 1], [1, 1]])}
    with pytest.raises(ValueError, match=message):
        LexifairClassification(**{**base, **fields})


def test_records_in_no_group_are_told():
    with pytest.warns(UserWarning, match="1 of 3 records are in no group and count in the overall"):
        p = small(groups=[[0], [2]])
    s = p.solve()
    assert s.objective == pytest.approx(0, abs=1e-9)
    assert s.decision.coefficients[1] == pytest.approx(0)  # the shortest solution


def test_groups_from_columns():
    X = np.random.default_rng(0).normal(size=(4, 2))
    p = LexifairRegression(
        features=X, labels=X[:, 0], **groups_of(sex=["f", "m", "m", "f"], old=[0, 0, 0, 1])
    )
    assert p.groups == ((0, 3), (1, 2), (0, 1, 2), (3,))
    assert p.group_names == ("sex=f", "sex=m", "old=0", "old=1")
    with pytest.raises(fo.DeclarationError, match="missing"):
        groups_of(sex=["f", None])
    sex, old = pd.Series(["f", "m"]), pd.Series([0, 1], index=[1, 0])
    with pytest.raises(fo.DeclarationError, match="old has the labels of sex in another order"):
        groups_of(sex=sex, old=old)


def test_evaluation_recomputes_everything_from_the_records():
    p = regression(0, n=20, groups=3, radius=0.5, names=["a", "b", "c"])
    theta = np.array([0.3, -0.2, 0.9])
    e = p.evaluate(theta)
    errors = (p.features @ theta - p.labels) ** 2
    losses = [errors[list(g)].mean() for g in p.groups]
    assert e.objective == pytest.approx(max(losses))
    assert [e.metrics[f"level {j}"] for j in (1, 2, 3)] == pytest.approx(sorted(losses, reverse=True))
    assert [e.metrics[f"loss of {g}"] for g in "abc"] == pytest.approx(losses)
    assert e.metrics["overall loss"] == pytest.approx(errors.mean())
    assert e.violations == {"radius": pytest.approx(np.linalg.norm(theta) - 0.5)}
    with pytest.raises(fo.DeclarationError, match=r"shape is \(2,\); it must be \(3,\)"):
        p.evaluate([1, 2])


def test_evaluation_of_mixtures():
    p = classification(1, n=15)
    chances = np.random.default_rng(0).dirichlet(np.ones(p.hypotheses.count))
    wrong = chances @ abs(p.hypotheses.predictions(np.arange(len(chances))) - p.labels)
    e = p.evaluate(chances)
    assert e.objective == pytest.approx(max(wrong[list(g)].mean() for g in p.groups))
    assert e.metrics["overall loss"] == pytest.approx(wrong.mean())
    assert e.feasible
    assert p.evaluate(2 * chances).violations == {"probabilities": pytest.approx(1.0)}
    single = classification(1, n=15, randomized=False)
    assert single.evaluate(chances).violations["one classifier"] == pytest.approx(1 - chances.max())
    with pytest.raises(fo.DeclarationError, match="there is no classifier 999"):
        p.mixture([999], [1.0])


def test_stumps_are_all_thresholds_both_ways():
    stumps = Stumps([[2, 0], [1, 0], [2, 5]])
    assert stumps.count == 6  # never, x0 > 1.5, x1 > 2.5, and their complements
    assert [stumps.describe(i) for i in range(6)] == [
        "never",
        "x0 > 1.5",
        "x1 > 2.5",
        "always",
        "x0 <= 1.5",
        "x1 <= 2.5",
    ]
    table = stumps.predictions(np.arange(6))
    assert table.tolist() == [[0, 0, 0], [1, 0, 1], [0, 0, 1], [1, 1, 1], [0, 1, 0], [1, 1, 0]]
    costs = np.random.default_rng(0).normal(size=(2, 4, 3))
    np.testing.assert_allclose(stumps.total_costs(costs), costs @ table.T, atol=1e-12)
    assert stumps.predict([1], [[9, 9], [0, 0]]).tolist() == [[1, 0]]
    with pytest.raises(fo.DeclarationError, match="cannot predict other records"):
        Finite([[0, 1]]).predict([0], [[1]])


def test_predictions_follow_the_mixture():
    """A frequency of 20,000 draws is within 0.02, over 5 standard deviations: error below 1e-6."""
    p = classification(0, n=30)
    mixture = p.solve().decision
    chance = mixture.probability(p.hypotheses.features)
    many = mixture.predict(np.repeat(p.hypotheses.features[3:4], 20_000, axis=0), seed=1)
    assert many.mean() == pytest.approx(chance[3], abs=0.02)
    assert (
        mixture.predict(p.hypotheses.features, seed=5) == mixture.predict(p.hypotheses.features, seed=5)
    ).all()


def test_the_decision_prints_and_plots(tmp_path):
    p = small(names=["many", "one"], features=[[1.0], [1.0], [1.0]], labels=[0, 0, 1])
    s = p.solve()
    assert str(s.decision).splitlines() == ["group    loss", "many   0.2500", "one    0.2500"]
    pooled = p.best_response(np.array([2 / 3, 1 / 3]))
    assert pooled.predict([[3.0]]).tolist() == pytest.approx([1.0])
    figure = s.decision.plot(tmp_path / "losses.png", label="fair", others={"pooled": pooled})
    assert (tmp_path / "losses.png").stat().st_size > 1000
    first, second = figure.axes[0].lines
    assert first.get_ydata() == pytest.approx([4 / 9, 1 / 9])
    assert second.get_ydata() == pytest.approx([0.25, 0.25])
    assert [t.get_text() for t in figure.axes[0].get_legend().get_texts()] == ["pooled", "fair"]


@pytest.mark.parametrize(
    "problem", [regression(0, n=9, radius=2.0), classification(0, n=9, levels=2), mixtures(np.eye(2))]
)
def test_a_declaration_is_a_file(problem, tmp_path):
    problem.save(tmp_path / "p.json")
    again = fo.Problem.from_dict(json.loads((tmp_path / "p.json").read_text()))
    assert again == problem
    np.testing.assert_allclose(again.solve().decision.losses, problem.solve().decision.losses)


def test_two_of_them_in_one_model():
    m = fo.Model()
    p = regression(0)
    first, second = p.declare(m, "compact"), p.declare(m, "compact")
    m.subject_to(first.coefficients == second.coefficients)
    m.minimize(fo.maximum(first.losses, axis=0) + fo.maximum(second.losses, axis=0))
    assert m.solve("clarabel").objective == pytest.approx(2 * p.solve().objective, rel=1e-5)
