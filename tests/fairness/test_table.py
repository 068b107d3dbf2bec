"""The audit table, against scipy's intervals and fairlearn's frame."""

import numpy as np
import pytest
from scipy.stats import binomtest

import forcopt as fo
from forcopt.fairness import FALSE_POSITIVE, SELECTION, RateTable, binomial_interval


def records(n=200):
    rng = np.random.default_rng(0)
    return rng.integers(0, 2, n), rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1]), rng.integers(0, 2, n)


@pytest.mark.parametrize(("method", "theirs"), [("clopper-pearson", "exact"), ("wilson", "wilson")])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_intervals_are_scipys(method, theirs, confidence):
    for n in (1, 2, 7, 40, 1000):
        for k in {0, 1, n // 3, n - 1, n}:
            low, high = binomial_interval(k, n, confidence, method)
            test = binomtest(k, n).proportion_ci(confidence, theirs)
            assert (float(low), float(high)) == pytest.approx((test.low, test.high), abs=1e-9)
    assert [float(v) for v in binomial_interval(0, 0, confidence, method)] == [0.0, 1.0]


def test_clopper_pearson_covers():
    """Exact coverage, summed over all outcomes: at least the confidence, for any true probability."""
    from scipy.stats import binom

    n = 12
    low, high = binomial_interval(np.arange(n + 1), n, 0.9)
    for p in np.linspace(0.01, 0.99, 33):
        assert binom.pmf(np.arange(n + 1), n, p)[(low <= p) & (p <= high)].sum() >= 0.9


def test_the_frame_is_fairlearns():
    metrics = pytest.importorskip("fairlearn.metrics")
    h, a, y = records()
    table = RateTable.from_predictions(h, a, y, rates=(SELECTION, FALSE_POSITIVE))
    theirs = metrics.MetricFrame(
        metrics={
            "selection rate": metrics.selection_rate,
            "false positive rate": metrics.false_positive_rate,
        },
        y_true=y,
        y_pred=h,
        sensitive_features=a,
    )
    frame = table.frame().set_index(["rate", "group"])
    for rate in ("selection rate", "false positive rate"):
        for group in "abc":
            assert frame.loc[(rate, group), "estimate"] == pytest.approx(theirs.by_group[rate][group])
        assert frame.loc[(rate, "overall"), "estimate"] == pytest.approx(theirs.overall[rate])
        summary = table.summary().set_index("rate").loc[rate]
        assert summary["difference"] == pytest.approx(theirs.difference()[rate])
        assert summary["ratio"] == pytest.approx(theirs.ratio()[rate])


def test_a_group_without_records_for_a_rate_is_nan():
    table = RateTable.from_predictions([1, 0, 1], ["a", "a", "b"], [0, 0, 1], rates=(FALSE_POSITIVE,))
    row = table.frame().iloc[1]
    assert row["records"] == 0 and np.isnan(row["estimate"])
    assert (row["low"], row["high"]) == (0.0, 1.0)
    assert table.summary()["difference"].tolist() == [0.0]


def test_what_is_refused():
    h, a, y = records()
    with pytest.raises(fo.DeclarationError, match="must be 0 or 1"):
        RateTable.from_predictions(h * 0.5, a, y)
    with pytest.raises(fo.DeclarationError, match="confidence is 1"):
        RateTable.from_predictions(h, a, y, confidence=1.0)
    with pytest.raises(fo.DeclarationError, match="'wald'"):
        RateTable.from_predictions(h, a, y, method="wald")


def test_the_plot_has_a_panel_for_each_rate(tmp_path):
    table = RateTable.from_predictions(*records())
    figure = table.plot(tmp_path / "rates.png")
    assert len(figure.axes) == 6 and (tmp_path / "rates.png").stat().st_size > 1000
    assert "overall" in repr(table)
