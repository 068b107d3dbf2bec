"""The report of groups, against scipy's intervals and fairlearn's frame."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, binomtest
from sklearn.metrics import balanced_accuracy_score, mean_absolute_error, recall_score

import forcopt as fo
from forcopt.fairness import (
    FALSE_POSITIVE,
    POSITIVE_PREDICTIVE,
    SELECTION,
    TRUE_POSITIVE,
    EqualizedOdds,
    GroupReport,
    binomial_interval,
)

FAIRLEARN = {
    "selection rate": "selection_rate",
    "false positive rate": "false_positive_rate",
    "true positive rate": "true_positive_rate",
}


def records(n=300):
    rng = np.random.default_rng(0)
    a = rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])
    return rng.integers(0, 2, n), a, rng.integers(0, 2, n), rng.choice(["x", "y"], n)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_intervals_are_scipys(confidence):
    for n in (1, 2, 7, 40, 1000):
        for k in {0, 1, n // 3, n - 1, n}:
            low, high = binomial_interval(k, n, confidence)
            test = binomtest(k, n).proportion_ci(confidence)
            assert (float(low), float(high)) == pytest.approx((test.low, test.high), abs=1e-9)
    assert [float(v) for v in binomial_interval(0, 0, confidence)] == [0.0, 1.0]


@pytest.mark.parametrize("method", ["clopper-pearson", "chernoff"])
def test_intervals_cover(method):
    """Exact coverage, summed over all outcomes: at least the confidence, for any true probability."""
    n = 12
    low, high = binomial_interval(np.arange(n + 1), n, 0.9, method)
    for p in np.linspace(0.01, 0.99, 33):
        assert binom.pmf(np.arange(n + 1), n, p)[(low <= p) & (p <= high)].sum() >= 0.9


@pytest.mark.parametrize("controlled", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_fairlearns_frame_and_becomes_one(controlled, weighted):
    metrics = pytest.importorskip("fairlearn.metrics")
    h, a, y, c = records()
    b, w = np.roll(c, 7), np.random.default_rng(1).random(len(y))
    rates = {rate.name: rate for rate in (SELECTION, FALSE_POSITIVE, TRUE_POSITIVE)}
    functions = {name: getattr(metrics, FAIRLEARN[name]) for name in rates} | {"recall": recall_score}
    features = pd.DataFrame({"one": a, "two": b})
    controls = pd.Series(c, name="level") if controlled else None
    weights = w if weighted else None
    ours = GroupReport.from_predictions(
        h, features, y, metrics=rates | {"recall": recall_score}, controls=controls, weights=weights
    )
    theirs = metrics.MetricFrame(
        metrics=functions,
        y_true=y,
        y_pred=h,
        sensitive_features=features,
        control_features=controls,
        sample_params={name: {"sample_weight": w} for name in functions} if weighted else None,
    )
    for report in (ours, GroupReport.from_fairlearn(theirs), ours.to_fairlearn()):
        np.testing.assert_allclose(report.by_group.astype(float), theirs.by_group.astype(float))
        np.testing.assert_allclose(report.overall, theirs.overall)
        assert report.by_group.index.tolist() == theirs.by_group.index.tolist()
        for method in ("between_groups", "to_overall"):
            np.testing.assert_allclose(report.difference(method=method), theirs.difference(method=method))
            np.testing.assert_allclose(report.ratio(method=method), theirs.ratio(method=method))
    if weighted:
        assert ours.frame()["low"].isna().all()  # no exact interval


def test_any_metric_with_bootstrap_intervals():
    h, a, y, _ = records()
    grade = np.array(["low", "mid", "top"])[(h + y + np.arange(len(y))) % 3]
    truth = np.array(["low", "mid", "top"])[np.arange(len(y)) % 3]
    several = GroupReport.from_predictions(
        grade, a, truth, metrics=[TRUE_POSITIVE, balanced_accuracy_score], positive="top", resamples=60
    )
    frame = several.frame().set_index(["metric", "group"])
    for group in "abc":
        of = a == group
        assert several.by_group.loc[group, "balanced_accuracy_score"] == pytest.approx(
            balanced_accuracy_score(truth[of], grade[of])
        )
        share = (grade[of & (truth == "top")] == "top").mean()
        assert several.by_group.loc[group, "true positive rate"] == pytest.approx(share)
        k, n = (grade[of & (truth == "top")] == "top").sum(), (of & (truth == "top")).sum()
        ends = frame.loc[("true positive rate", group), ["low", "high"]]
        assert tuple(ends) == pytest.approx(binomtest(int(k), int(n)).proportion_ci(0.95), abs=1e-9)
    low, high = frame.loc[("balanced_accuracy_score", "overall"), ["low", "high"]]
    assert low < balanced_accuracy_score(truth, grade) < high and high - low < 0.2
    number = GroupReport.from_predictions(h + 0.5, a, 1.0 * y, metrics=mean_absolute_error, resamples=50)
    assert number.overall["mean_absolute_error"] == pytest.approx(np.abs(h + 0.5 - y).mean())
    assert number.summary().loc[0, "difference_low"] <= number.difference().iloc[0]


def test_probabilities_and_labels_of_text():
    _, a, y, _ = records()
    p = np.random.default_rng(3).random(len(y))
    words = np.where(y == 1, "yes", "no")
    for labels, positive in ((y, None), (words, "yes")):
        report = GroupReport.from_predictions(
            p, a, labels, metrics=[SELECTION, POSITIVE_PREDICTIVE], positive=positive
        )
        assert report.sampled == "expected"
        assert report.by_group.loc["a", "selection rate"] == pytest.approx(p[a == "a"].mean())
        of = (a == "a") & (y == 1)
        precise = p[of].sum() / p[a == "a"].sum()
        assert report.by_group.loc["a", "positive predictive value"] == pytest.approx(precise)
        frame = report.frame().set_index(["metric", "group"])
        low, high = frame.loc[("selection rate", "a"), ["low", "high"]]
        n = (a == "a").sum()
        assert low < p[a == "a"].mean() - 0.9 / np.sqrt(n) and high > p[a == "a"].mean() + 0.9 / np.sqrt(n)
        assert np.isnan(frame.loc[("positive predictive value", "a"), "low"])


def test_missing_groups_count_overall_alone():
    h, a, y, _ = records()
    some = pd.Series(a, dtype=object).where(a != "c")
    report = GroupReport.from_predictions(h, some, y, metrics=SELECTION)
    assert report.by_group.index.tolist() == ["a", "b"]
    assert report.overall["selection rate"] == pytest.approx(h.mean())
    assert report.frame()["records"].tolist() == [(a == "a").sum(), (a == "b").sum(), len(a)]


def test_a_group_without_records_for_a_rate_is_nan():
    report = GroupReport.from_predictions([1, 0, 1], ["a", "a", "b"], [0, 0, 1], metrics=FALSE_POSITIVE)
    row = report.frame().iloc[1]
    assert row["records"] == 0 and np.isnan(row["estimate"])
    assert (row["low"], row["high"]) == (0.0, 1.0)
    assert report.summary()[["difference", "difference_high"]].to_numpy().tolist() == [[0.0, 0.0]]


def test_the_difference_of_a_population_is_covered():
    """A finished policy on fresh records: the interval fails in at most 5 % of the draws, and not in none."""
    rng, found = np.random.default_rng(0), []
    rate = {("a", 0): 0.2, ("a", 1): 0.6, ("b", 0): 0.3, ("b", 1): 0.75, ("c", 0): 0.22, ("c", 1): 0.61}
    for _ in range(150):
        a, y = rng.choice(["a", "b", "c"], 600), rng.integers(0, 2, 600)
        h = rng.random(600) < [rate[key] for key in zip(a, y.tolist(), strict=True)]
        s = GroupReport.from_predictions(h, a, y, metrics=EqualizedOdds.rates, confidence=0.5).summary()
        inside = (s["difference_low"] <= [0.1, 0.15]) & (s["difference_high"] >= [0.1, 0.15])
        ratios = [0.2 / 0.3, 0.6 / 0.75]
        inside &= (s["ratio_low"] <= ratios) & (s["ratio_high"] >= ratios)
        found.append(inside.all())
    assert np.mean(found) >= 0.5  # at 50 % together; by the union bound it is more
    assert s["difference_high"].max() < 0.5  # and the interval says something


def test_what_is_refused(tmp_path):
    h, a, y, c = records()
    for wrong, message in (
        ({"predictions": h * 1.5}, r"predictions\[\d+\] is 1.5"),
        ({"labels": np.where(y, "yes", "no")}, "texts"),
        ({"confidence": 1.0}, "confidence is 1"),
        ({"weights": -np.ones(len(y))}, r"weights\[0\] is -1"),
        ({"positive": 7}, "positive is 7"),
        ({"groups": [None] * len(y)}, "at least one record must have a group"),
        ({"controls": [None, *c[1:]]}, "and each its controls"),
        ({"groups": a[:-1]}, "differ in length"),
    ):
        given = {"predictions": h, "groups": a, "labels": y} | wrong
        with pytest.raises(fo.DeclarationError, match=message):
            GroupReport.from_predictions(**given)
    series = pd.Series(a)
    with pytest.raises(fo.DeclarationError, match="another order"):
        GroupReport.from_predictions(pd.Series(h), series.sample(frac=1, random_state=0), y)
    with pytest.raises(fo.DeclarationError, match="rates"):
        GroupReport.from_predictions(h * 0.5, a, y).save_proof(tmp_path / "proof.json")


def test_picture_and_page(tmp_path):
    h, a, y, c = records()
    report = GroupReport.from_predictions(
        h, pd.DataFrame({"one": a, "two": c}), y, controls={"level": c[::-1]}
    )
    figure = report.plot(tmp_path / "rates.png")
    assert len(figure.axes) == 6 and (tmp_path / "rates.png").stat().st_size > 1000
    report.to_html(tmp_path / "page.html", title="a < b")
    page = (tmp_path / "page.html").read_text()
    assert "a &lt; b" in page and "<svg" in page and page.count("<table") == 2
    assert "overall" in repr(report)
    report.save_proof(tmp_path / "proof.json")
    assert len(json.loads((tmp_path / "proof.json").read_text())["table"]) == len(y)
