import numpy as np
import pytest

import forcopt as fo
from forcopt.fairness import FALSE_POSITIVE, TRUE_POSITIVE, GroupRates
from forcopt.models.calibrated_errors import Recalibration


def people(count, seed):
    rng = np.random.default_rng(seed)
    groups = rng.choice(["a", "b"], size=count)
    raw = np.clip(rng.beta(2, 2, size=count) + 0.1 * (groups == "b"), 0, 1)
    return raw, groups, (rng.random(count) < raw**1.3).astype(int)


def test_on_its_own_sample_it_is_calibrated():
    raw, groups, labels = people(2000, 1)
    r = Recalibration.fit(raw, groups, labels, bins=12)
    assert len(r.edges) == 11
    values = r.transform(raw, groups)
    for g in "ab":
        for value in np.unique(values[groups == g]):
            assert labels[(groups == g) & (values == value)].mean() == pytest.approx(value)
    p = r.problem(cutoff=0.4)
    assert p.shares == pytest.approx([(groups == g).mean() for g in "ab"])
    assert p.base_rates == pytest.approx([labels[groups == g].mean() for g in "ab"])
    assert set(values[groups == "a"]) == set(p.scores["a"][0])


def test_new_people_get_equal_rates():
    """40,000 people each: rates within .03, where their difference has a standard deviation below .008."""
    fit, judge = people(40_000, 2), people(40_000, 3)
    r = Recalibration.fit(*fit)
    s = r.problem(cost_ratio=0.8).solve()
    new = s.decision.transform(r.transform(*judge[:2]), judge[1], seed=4)
    before, after = (
        GroupRates.from_records(decided, *judge[1:])
        for decided in (judge[0] >= s.problem.cutoff, new >= s.problem.cutoff - 1e-9)
    )
    for rate in (FALSE_POSITIVE, TRUE_POSITIVE):
        assert np.ptp(before.rate(rate)) > 0.06
        assert np.ptp(after.rate(rate)) < 0.03


def test_scores_that_repeat_make_fewer_bins():
    r = Recalibration.fit([1, 1, 1, 2, 1, 2], list("aabbba"), [0, 1, 0, 1, 1, 1], bins=10)
    assert r.edges.tolist() == [1, 2]
    assert r.people["a"].tolist() == [0, 2, 1]
    assert r.transform([1, 2], ["a", "b"]).tolist() == [0.5, 1.0]
    assert Recalibration.fit([3.0, 4.0], ["a", "b"], [0, 1], bins=1).edges.size == 0


def test_what_the_sample_cannot_say():
    r = Recalibration.fit([1, 2, 1, 1], list("aabb"), [0, 1, 0, 1], edges=[1.5])
    with pytest.raises(fo.DeclarationError, match=r"scores\[1\] is 2, in a bin .* nobody of group 'b'"):
        r.transform([2, 2], ["a", "b"])
    with pytest.raises(fo.DeclarationError, match="'c'; the groups are a, b"):
        r.transform([1], ["c"])
    with pytest.raises(fo.DeclarationError, match="bins is 0"):
        Recalibration.fit([1, 2], ["a", "b"], [0, 1], bins=0)
    with pytest.raises(fo.DeclarationError, match="scores has 1, groups has 2"):
        Recalibration.fit([1], ["a", "b"], [0, 1])
