from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forcopt.errors import DeclarationError
from forcopt.models import FormulaGrant
from forcopt.models.fair_decisions import (
    clipped_mean,
    expected_shares,
    laplace_sum_quantile,
    laplace_sum_tail,
)
from forcopt.models.fair_decisions.grants import least_slacks
from forcopt.privacy import AdditiveMechanism, Gaussian, Laplace
from forcopt.status import Status


def noise(epsilon):
    return AdditiveMechanism(Laplace(epsilon=epsilon))


# -- expected shares ---------------------------------------------------------------------------------------


def by_integration(x, w, scale, points=4001, reach=30.0):
    """E[w X / (w X + v Y)] for two counts, by sums over a grid; shares no code with the transforms."""
    grids = []
    for count in x:
        edges = np.linspace(-reach, reach, points) * scale + count
        mass = np.diff(
            np.where(
                edges < count, np.exp((edges - count) / scale) / 2, 1 - np.exp((count - edges) / scale) / 2
            )
        )
        grids.append((np.maximum(0, (edges[1:] + edges[:-1]) / 2), mass))
    (a, p), (b, q) = grids
    total = w[0] * a[:, None] + w[1] * b
    with np.errstate(invalid="ignore"):
        share = np.where(total > 0, w[0] * a[:, None] / total, 0)
    return p @ share @ q


@pytest.mark.parametrize(
    ("x", "w"), [((3.0, 5.0), (1, 1)), ((0.0, 2.0), (1, 3)), ((1.0, 1.0), (1, 10)), ((0.0, 0.0), (1, 1))]
)
def test_shares_of_two_counts_are_those_of_a_grid(x, w):
    assert expected_shares(x, 1.0, w)[0] == pytest.approx(by_integration(x, w, 1.0), abs=4e-4)  # of the grid


@settings(max_examples=60, deadline=None)
@given(
    counts=st.lists(st.floats(0, 1e4), min_size=1, max_size=6),
    scale=st.sampled_from([0.01, 1.0, 30.0, 1e4]),
    data=st.data(),
)
def test_shares_sum_to_the_probability_that_something_is_handed_out(counts, scale, data):
    weights = data.draw(
        st.lists(st.sampled_from([1e-3, 0.5, 1.0, 40.0]), min_size=len(counts), max_size=len(counts))
    )
    found = expected_shares(counts, scale, weights)
    nothing = np.prod(np.exp(-np.array(counts) / scale) / 2)
    assert found.sum() == pytest.approx(1 - nothing, abs=1e-11)
    assert (found >= -1e-15).all()
    order = np.argsort(counts, kind="stable")
    assert (np.diff(expected_shares(counts, scale)[order]) >= -1e-13).all()  # no inversions


def test_shares_are_those_of_simulations():
    """100 instances; a difference beyond 5 standard errors has probability below 1e-4 for all together."""
    rng = np.random.default_rng(7)
    for _ in range(100):
        k = int(rng.integers(2, 6))
        x, w, scale = (
            np.round(rng.exponential(20, k)),
            rng.uniform(0.2, 3, k),
            float(rng.choice([1, 10, 100])),
        )
        noisy = w * np.maximum(0, x + rng.laplace(scale=scale, size=(20_000, k)))
        total = noisy.sum(axis=1, keepdims=True)
        shares = np.divide(noisy, total, out=np.zeros_like(noisy), where=total > 0)
        error = shares.std(axis=0) / np.sqrt(len(shares))
        assert (np.abs(shares.mean(axis=0) - expected_shares(x, scale, w)) <= 5 * error + 1e-6).all()


def test_large_and_small_numbers():
    assert expected_shares([1e9, 3e9], 1e-3).tolist() == pytest.approx([0.25, 0.75], abs=1e-12)
    assert expected_shares([0, 0, 0], 1.0).tolist() == pytest.approx([7 / 24] * 3, abs=1e-12)
    assert expected_shares([5], 1.0)[0] == pytest.approx(1 - np.exp(-5) / 2, abs=1e-12)
    one, many = (expected_shares(np.arange(k) + 1.0, 2.0) for k in (1, 3000))
    assert one[0] < 1 and many.sum() == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize(
    "bad", [{"counts": [-1.0]}, {"counts": []}, {"scale": 0.0}, {"scale": np.nan}, {"weights": [0.0]}]
)
def test_shares_refuse(bad):
    with pytest.raises(DeclarationError):
        expected_shares(**{"counts": [1.0], "scale": 1.0, **bad})


def test_clipped_means():
    assert clipped_mean(8, np.array(10.0)) == pytest.approx(10.246645, abs=1e-6)
    assert clipped_mean(8, 0.1) == pytest.approx(8.0)


# -- sums of noises ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("v", [1e-6, 1e-3, 0.5, 2.0, 30.0, 200.0])
def test_tails_have_the_closed_forms_of_one_and_two_variables(v):
    assert laplace_sum_tail(v, [3.0]) == pytest.approx(np.exp(-v / 3) / 2, rel=1e-9)
    assert laplace_sum_tail(v, [3.0, 3.0]) == pytest.approx(np.exp(-v / 3) * (2 + v / 3) / 4, rel=1e-9)
    two = (-np.exp(-v) + 4 * np.exp(-v / 2)) / 6
    assert laplace_sum_tail(v, [1.0, 2.0]) == pytest.approx(two, rel=1e-9)
    assert laplace_sum_tail(-v, [1.0, 2.0]) == pytest.approx(1 - two, rel=1e-9)


@pytest.mark.parametrize(
    "scales", [np.ones(548), np.r_[1.0, np.full(10_000, 0.01)], np.linspace(0.01, 5, 40)]
)
def test_tails_of_many_variables_are_those_of_another_integral(scales):
    """Gil-Pelaez: 1/2 - 1/pi times the integral of sin(t v) / t times the characteristic function."""
    deviation = np.sqrt(2 * (scales**2).sum())
    for v in deviation * np.array([0.3, 1.0, 2.5]):
        t = (np.arange(400_000) + 0.5) * (200 / deviation / 400_000)
        scale, count = np.unique(scales, return_counts=True)
        phi = np.exp(-sum(c * np.log1p((s * t) ** 2) for s, c in zip(scale, count, strict=True)))
        other = 0.5 - (np.sin(t * v) / t * phi).sum() * (t[1] - t[0]) / np.pi
        assert laplace_sum_tail(v, scales) == pytest.approx(
            other, abs=2e-4 if len(scales) == 10_001 else 1e-7
        )


def test_quantiles():
    for tail in (0.4999, 0.3, 0.05, 1e-9):
        assert laplace_sum_tail(
            laplace_sum_quantile(tail, [1.0, 2.0, 2.0]), [1.0, 2.0, 2.0]
        ) == pytest.approx(tail)
    for bad in (0.0, 0.5, -1.0, np.nan):
        with pytest.raises(DeclarationError, match="below 1/2"):
            laplace_sum_quantile(bad, [1.0])
    with pytest.raises(DeclarationError, match="above 0"):
        laplace_sum_tail(1.0, [0.0])


# -- rules -------------------------------------------------------------------------------------------------


def test_slacks_have_the_least_weighted_sum():
    """No other slacks within the same probability are better, by 3,000 random directions."""
    rng = np.random.default_rng(1)
    w = rng.uniform(0.2, 5, 4)
    u = least_slacks(0.1, w, 2.0)
    inside = lambda x: np.prod(1 - np.exp(-x / 2.0) / 2)  # noqa: E731
    assert inside(u) == pytest.approx(0.9, abs=1e-10)
    for _ in range(3000):
        other = u + rng.normal(size=4) * rng.choice([0.01, 0.1, 1])
        if (other >= 0).all() and inside(other) >= 0.9:
            assert w @ other >= w @ u - 1e-9
    equal = least_slacks(0.1, np.ones(7), 2.0)
    assert equal == pytest.approx(-2 * np.log(2 * (1 - 0.9 ** (1 / 7))))


def test_exact_quantiles_keep_their_promise_and_inflate_least():
    """20 instances of 4,000 runs: more than 0.05 + 5 standard errors has probability below 1e-5."""
    rng = np.random.default_rng(3)
    for run in range(20):
        k = int(rng.integers(1, 60))
        x = np.round(rng.lognormal(4, 1, k)) + 1
        w = rng.uniform(0.5, 3, k) if run % 2 else None
        p = FormulaGrant(x, noise(float(rng.choice([0.5, 1.0, 5.0]))), weights=w)
        ours, printed = p.solve(), p.solve("no-penalty")
        if ours.decision is None:
            assert ours.status is Status.INFEASIBLE and printed.status is Status.INFEASIBLE
            continue
        assert ours.evaluation.feasible
        assert printed.decision is None or ours.objective <= printed.objective + 1e-12
        rule, noisy = ours.decision, x + rng.laplace(scale=p.scale, size=(4000, k))
        left = noisy @ p.district_weights - rule.total_slack
        handed = p.district_weights * (noisy + rule.slacks) / left[:, None]
        lost = (left <= 0) | (handed < p.shares() - 1e-12).any(axis=1)
        assert not rule.clipped
        if left[0] > 0:
            assert rule.allocate(noisy[0]) == pytest.approx(np.maximum(handed[0], 0))
        assert lost.mean() <= 0.05 + 5 * np.sqrt(0.05 * 0.95 / 4000)


def test_the_split_is_the_best_of_a_grid():
    p = FormulaGrant([210, 480, 810], noise(0.5), weights=[1, 2, 3], failure=0.1)
    best = p.solve().objective
    for part in np.linspace(0.0005, 0.0995, 200):
        u = least_slacks(part, p.district_weights, p.scale)
        v = laplace_sum_quantile(0.1 - part, p.scale * p.district_weights)
        assert best <= p.evaluate(p.rule(u, v)).objective + 1e-6


def test_printed_slacks_fail_with_large_weights():
    """Section 5.3 adds the slack to the weighted count: in dollars it vanishes."""
    p = FormulaGrant([200, 500, 800], noise(0.1), weights=[1000.0, 2000.0, 1500.0])
    assert p.solve("no-penalty").evaluation.feasible
    printed = p.solve("no-penalty", as_printed=True).evaluation
    assert printed.violations["failure"] > 0.5
    one = p.replace(weights=None)
    same = [one.solve("no-penalty", as_printed=flag).objective for flag in (False, True)]
    assert same[0] == same[1]


def test_a_budget_that_is_too_small_is_a_status():
    p = FormulaGrant(np.full(548, 5.0), noise(0.01))
    for method in ("exact-quantile", "no-penalty"):
        s = p.solve(method)
        assert s.status is Status.INFEASIBLE and "privacy budget too small for 548 districts" in s.message
    rule = p.rule(1.0, 50.0)
    assert rule.allocate(np.zeros(548)) is None and rule.allocate(np.full(548, -1.0)) is None
    assert (rule.allocate(np.r_[-5.0, np.ones(547)]) >= 0).all()
    assert p.evaluate(p.rule(1.0, 1e9)).violations["total"] > 0


def test_plain_grants_promise_nothing():
    s = FormulaGrant([3, 4], noise(1.0)).solve("plain")
    assert s.objective == 1.0 and s.evaluation.violations["failure"] == pytest.approx(0.95)


@pytest.mark.parametrize(
    ("bad", "rule"),
    [
        ({"eligible": [0, 0]}, "0 everywhere"),
        ({"eligible": [1, -1]}, r"eligible\[1\] is -1"),
        ({"eligible": []}, "at least one"),
        ({"weights": [1, 0]}, "weights"),
        ({"failure": 0.0}, "failure"),
        ({"failure": 1.0}, "failure"),
        ({"failure": np.nan}, "failure"),
        ({"mechanism": AdditiveMechanism(Gaussian(scale=1.0))}, "Gaussian noise"),
    ],
)
def test_malformed_declarations(bad, rule):
    with pytest.raises(DeclarationError, match=rule):
        FormulaGrant(**{"eligible": [2, 3], "mechanism": noise(1.0), **bad})
    with pytest.raises(DeclarationError, match="epsilon"):
        noise(-1.0)


def test_zeros_and_one_district():
    one = FormulaGrant([50], noise(1.0)).solve()
    assert one.evaluation.feasible and one.decision.allocate([50.0])[0] >= 1
    some = FormulaGrant([0, 100], noise(1.0)).solve()
    assert some.evaluation.feasible and np.isfinite(some.evaluation.metrics["largest quotient"])
    for failure, x in product((0.001, 0.6, 0.999), ([40, 90],)):
        s = FormulaGrant(x, noise(1.0), failure=failure).solve()
        assert s.evaluation.feasible, s.evaluation


def test_shares_maximise_the_weighted_logarithms():
    import forcopt as fo

    p = FormulaGrant([20, 50, 5], noise(1.0), weights=[1, 2, 3])
    m = fo.Model()
    o = m.variable("o", 3, lower=0)
    m.subject_to(o.sum() == 1)
    m.maximize((p.district_weights * p.eligible) @ fo.log(o))
    assert m.solve("clarabel")[o] == pytest.approx(p.shares(), abs=1e-4)
    assert p.expected_shares().sum() == pytest.approx(1, abs=1e-3)


def test_clipped_rules_are_judged_by_the_positive_parts_of_the_noise():
    """Counts of 0 only gain by clipping: the noisy total rises by far more than the sum of the noises."""
    p = FormulaGrant([0.0] * 50 + [10.0], noise(1.0))
    u, v = least_slacks(0.025, np.ones(51), 1.0), laplace_sum_quantile(0.025, np.ones(51))
    assert p.failure_bound(p.rule(u, v)) <= 0.05 + 1e-9
    clipped = p.rule(u, v, clipped=True)
    noisy = np.maximum(0, p.eligible + np.random.default_rng(0).laplace(size=(4000, 51)))
    left = noisy.sum(axis=1) - v
    lost = ((noisy[:, 50] + u[50] < left) & (left > 0)).mean()
    bound = p.failure_bound(clipped)
    assert 0.3 < lost <= bound
    assert p.evaluate(clipped).violations["failure"] == pytest.approx(bound - 0.05)
    positive = np.maximum(0, np.random.default_rng(1).laplace(size=(20_000, 51))).sum(axis=1)
    for value in (15.0, 25.0, 40.0):  # five standard errors
        assert laplace_sum_tail(value, np.ones(51), positive=True) == pytest.approx(
            (positive > value).mean(), abs=0.018
        )
    for value in (1e-6, 0.5, 20.0):
        assert laplace_sum_tail(value, [2.0], positive=True) == pytest.approx(
            np.exp(-value / 2) / 2, rel=1e-9
        )
    assert laplace_sum_tail(0.0, [1.0, 1.0], positive=True) == 0.75
    assert laplace_sum_tail(-1.0, [1.0], positive=True) == 1.0


def test_failures_of_unclipped_rules_are_exact():
    """20 rules by 40,000 draws of the noise; five standard errors."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        k = int(rng.integers(1, 6))
        p = FormulaGrant(np.full(k, 50.0), noise(1.0), weights=rng.uniform(0.5, 3, k))
        rule = p.rule(rng.exponential(3, k), float(rng.exponential(5)))
        draws = rng.laplace(size=(40_000, k))
        failed = (draws < -rule.slacks).any(axis=1) | (draws @ p.district_weights > rule.total_slack)
        bound = p.failure_bound(rule)
        assert bound == pytest.approx(failed.mean(), abs=5 * np.sqrt(bound * (1 - bound) / 40_000) + 1e-4)


@pytest.mark.parametrize("clipped", [False, True])
def test_the_probability_that_no_grants_follow(clipped):
    rng, trials = np.random.default_rng(4), 40_000
    x, w = np.array([3.0, 1.0, 6.0]), np.array([1.0, 2.0, 1.0])
    p = FormulaGrant(x, AdditiveMechanism(Laplace(epsilon=0.5)), weights=w)
    drawn = rng.laplace(0, 2.0, (trials, 3))
    for total_slack in (4.0, 11.0):
        rule = p.rule(1.0, total_slack, clipped=clipped)
        bound = p.evaluate(rule).metrics["no grants bound"]
        none = np.mean([rule.allocate(row) is None for row in x + drawn])
        error = 6 * np.sqrt(bound * (1 - bound) / trials)
        assert none <= bound + error
        assert clipped or none >= bound - error
