"""Reich and Vijaykumar (2021): worked examples, claims, the COMPAS analysis, and the shape of Table 1.

The fractions were computed by hand and by linear programs; COMPAS is the table that ProPublica published. The
lending data of Table 1 is not public in a form that gives its scores, and its four rows contradict equation
(13) (see the first test of that part), so its claims are tested on scores of the same shape.
"""

from fractions import Fraction as F

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, ndtri

from forcopt import Status
from forcopt.data import COMPAS_DECILES
from forcopt.fairness import FALSE_POSITIVE, TRUE_POSITIVE, EqualOpportunity
from forcopt.models import CalibratedEqualErrors

LOW, HIGH, MIDDLE = ([0.2, 0.6], [0.5, 0.5]), ([0.4, 0.8], [0.5, 0.5]), ([0.3, 0.7], [0.5, 0.5])


def base(**fields):
    return CalibratedEqualErrors(**{"scores": {"L": LOW, "H": HIGH}, "cutoff": 0.5, **fields})


def binding_positive():
    scores = {"L": ([0.1, 0.3, 0.5], [0.4, 0.4, 0.2]), "H": ([0.2, 0.5, 0.7], [0.4, 0.2, 0.4])}
    return CalibratedEqualErrors(scores=scores, cutoff=0.4)


def binding_negative():
    scores = {"L": ([0.1, 0.4, 0.9], [0.4, 0.5, 0.1]), "H": ([0.4, 0.9], [0.4, 0.6])}
    return CalibratedEqualErrors(scores=scores, weights={"L": 0.75, "H": 0.25}, cutoff=0.5)


# -- stage 1 -----------------------------------------------------------------------------------------------


def test_the_roc_curves_and_the_apex():
    region = base().feasible_region(margin=0)
    assert list(region.chains["L"]) == [(0, 0), (F(1, 3), F(3, 4)), (1, 1)]
    assert list(region.chains["H"]) == [(0, 0), (F(1, 4), F(2, 3)), (1, 1)]
    assert base().apex(0) == (F(2, 5), F(3, 5))
    assert (F(2, 5), F(3, 5)) in region.vertices


def test_the_apex_is_that_of_equation_12():
    rng = np.random.default_rng(0)
    for _ in range(50):
        low, high = sorted(rng.integers(5, 95, size=2) / 100)
        cutoff = int(rng.integers(5, 95)) / 100
        if low == high:
            continue
        p = CalibratedEqualErrors(scores={"L": ([low], [1]), "H": ([high], [1])}, cutoff=cutoff)
        b_low, b_high = low / (1 - low), high / (1 - high)
        x = b_low / (b_high - b_low) * (b_high - (1 + b_high) * cutoff) / cutoff
        y = (b_high * (1 - cutoff) - cutoff) / (b_high - b_low) / (1 - cutoff)
        assert [float(v) for v in p.apex(0)] == pytest.approx([x, y])
        assert (x < 1e-12) == (cutoff >= high)
        assert (x > 1 - 1e-12) == (cutoff <= low)


@pytest.mark.parametrize("method", ["lp", "polygon"])
def test_stage_1(method):
    s = base().solve(method)
    assert s.status is Status.OPTIMAL
    assert base().best_rates() == (F(4, 13), F(9, 13))
    assert s.objective == pytest.approx(4 / 13, abs=1e-9)
    assert s.decision.rates.rate(FALSE_POSITIVE) == pytest.approx([4 / 13] * 2, abs=1e-7)
    assert s.decision.rates.rate(TRUE_POSITIVE) == pytest.approx([9 / 13] * 2, abs=1e-7)
    accurate = base().solve("as-predicted")
    assert s.objective - accurate.objective == pytest.approx(1 / 130)
    assert base().solve("equal-odds").objective == pytest.approx(4 / 13)


@pytest.mark.parametrize(
    ("make", "rates", "loss", "without"),
    [
        (binding_positive, (F(12, 37), F(8, 13)), 0.2768399, 0.2744837),
        (binding_negative, (F(221, 641), F(461, 641)), 0.3177496, 0.3163761),
    ],
)
def test_calibration_has_a_price(make, rates, loss, without):
    p = make()
    best = p.feasible_region(margin=0).minimize(*p._exact_loss)
    assert best == rates
    s = p.solve()
    assert s.objective == pytest.approx(loss, abs=1e-6)
    assert p.solve("equal-odds").objective == pytest.approx(without, abs=1e-6)
    assert s.evaluation.feasible


def test_the_optimum_that_is_not_attained_is_approached():
    """Where the negative predictive value binds, the loss falls with the margin, and is attained."""
    p = binding_negative()
    losses = []
    for margin in (1e-3, 1e-4, 1e-5):
        with_margin = CalibratedEqualErrors(**{**dict(p), "margin": margin})
        s = with_margin.solve()
        refused = s.decision.kernels["H"]
        mean = refused.outputs[refused.outputs < 0.5] @ refused.joint.sum(axis=0)[refused.outputs < 0.5]
        mass = refused.joint.sum(axis=0)[refused.outputs < 0.5].sum()
        assert mean / mass == pytest.approx(0.5 - margin, abs=1e-7)
        losses.append(s.objective)
    assert losses == sorted(losses, reverse=True)
    infimum = float(p._exact_loss[0]) * 221 / 641 - float(p._exact_loss[1]) * 180 / 641
    assert losses[-1] - infimum == pytest.approx(0, abs=1e-4)


def test_corollary_5_at_the_largest_base_rate():
    """There the paper's first case, apex at or left of 0, promises a score that does not exist."""
    p = CalibratedEqualErrors(scores={"L": ([0.4], [1]), "H": ([0.6], [1])}, cutoff=0.6)
    assert p.apex(0) == (0, 0)
    assert p.infeasibility_reason() and p.best_rates() is None
    assert p.solve().status is Status.INFEASIBLE


def test_infeasible_scores_can_be_relaxed():
    scores = {"L": ([0.4], [1]), "H": ([0.6], [1])}
    assert base(scores=scores).apex(0) == (F(2, 5), F(3, 5))
    assert base(scores=scores).solve().status is Status.INFEASIBLE
    for lam in (0.5, 1.0):
        s = base(scores=scores, relaxation=lam).solve()
        # everybody of L refused, everybody of H accepted, or nearly: nothing costs less
        assert s.objective == pytest.approx(0.4 + 2 * lam, abs=1e-4)


@pytest.mark.parametrize(
    ("lam", "value"), [(0, 0.3), (0.1, 0.3013889), (1, 0.3066272), (10, 0.3075858), (1000, 0.3076912)]
)
def test_the_relaxation(lam, value):
    assert base(relaxation=lam).solve().objective == pytest.approx(value, abs=1e-6)


def test_the_relaxed_rates():
    s = base(relaxation=1.0).solve(backend="clarabel")
    rates = np.array([k.rates(0.5) for k in s.decision.kernels.values()])
    np.testing.assert_allclose(rates, [[0.314793, 0.708284], [0.291716, 0.685207]], atol=1e-4)


def test_equal_opportunity_as_a_constraint_and_as_a_limit():
    s = base(constraint=EqualOpportunity()).solve()
    assert s.objective == pytest.approx(11 / 36)
    rates = [k.rates(0.5) for k in s.decision.kernels.values()]
    np.testing.assert_allclose(rates, [[8 / 27, 2 / 3], [1 / 4, 2 / 3]], atol=1e-7)
    soft = base(relaxation=[[0, 0], [0, 1e5]]).solve(backend="clarabel")
    assert soft.objective == pytest.approx(0.3055555, abs=1e-6)


@pytest.mark.parametrize(
    ("interval", "apex"),
    [(0.02, (0.380952, 0.619048)), (0.05, (0.352941, 0.647059)), (0.08, (0.325581, 0.674419))],
)
def test_an_interval_of_cutoffs(interval, apex):
    p = base(interval=interval)
    assert [float(v) for v in p.apex()] == pytest.approx(apex, abs=1e-6)
    assert p.best_rates() == (F(4, 13), F(9, 13))
    assert p.solve().objective == pytest.approx(4 / 13)


def test_the_largest_interval():
    """At 1/10 the apex is the optimum; more is too much. (There all scores keep their distance exactly.)"""
    assert base(interval=0.1).best_rates() == base(interval=0.1).apex() == (F(4, 13), F(9, 13))
    assert base(interval=0.1001).solve().status is Status.INFEASIBLE


def test_three_groups():
    p = base(scores={"L": LOW, "M": MIDDLE, "H": HIGH})
    assert p.best_rates() == (F(4, 13), F(9, 13))
    assert p.solve().objective == pytest.approx(4 / 13)


# -- stage 2 -----------------------------------------------------------------------------------------------

TENTHS, TWENTIETHS, HUNDREDTHS = (np.arange(n + 1) / n for n in (10, 20, 100))


@pytest.mark.parametrize(
    ("group", "outputs", "added"),
    [
        ("L", [0.2, 0.6], None),
        ("L", [0.2, 0.5, 0.6], None),
        ("L", TENTHS, F(1, 325)),
        ("L", TWENTIETHS, F(3, 1300)),
        ("L", HUNDREDTHS, F(11, 6500)),
        ("L", [0.2, 0.4, 0.45, 0.5, 0.6, 0.8], F(3, 1300)),
        ("H", [0.4, 0.8], None),
        ("H", [0.4, 0.5, 0.8], F(1, 650)),
        ("H", TENTHS, F(1, 650)),
        ("H", HUNDREDTHS, F(1, 650)),
    ],
)
def test_stage_2_on_grids(group, outputs, added):
    """None: infeasible, as the paper's own grid of old scores is, although the target is within reach."""
    s = base().transport(group, [4 / 13, 9 / 13], outputs).solve()
    if added is None:
        assert s.status is Status.INFEASIBLE
    else:
        assert s.objective == pytest.approx(float(added), abs=1e-9)


@pytest.mark.parametrize("group", "LH")
def test_stage_2_over_all_outputs(group):
    """1/650 in either group; in L it is an infimum, reached but for the margin."""
    s = base().transport(group, [4 / 13, 9 / 13]).solve()
    assert s.objective == pytest.approx(1 / 650, abs=1e-6)
    assert base().transport(group, [4 / 13, 9 / 13]).solve("lp").objective == pytest.approx(
        s.objective, abs=1e-9
    )


def test_the_kernel_of_stage_2():
    s = base().transport("H", [4 / 13, 9 / 13]).solve()
    kernel = {
        (p, round(q, 5)): s.decision.kernel[i, j]
        for i, p in enumerate(s.decision.values)
        for j, q in enumerate(s.decision.outputs)
        if s.decision.kernel[i, j] > 1e-9
    }
    assert kernel == pytest.approx(
        {(0.4, 0.4): 12 / 13, (0.4, 0.5): 1 / 13, (0.8, 0.5): 1 / 39, (0.8, 0.8): 38 / 39}
    )
    tenths = base().transport("L", [4 / 13, 9 / 13], TENTHS).solve().decision
    law = tenths.joint.sum(axis=0)
    assert law[[2, 4, 6]] == pytest.approx([6 / 13, 1 / 13, 6 / 13])


@pytest.mark.parametrize("group", "LH")
def test_stage_2_with_an_interval(group):
    grid = HUNDREDTHS[(HUNDREDTHS <= 0.45) | (HUNDREDTHS >= 0.55)]
    p = base(interval=0.05)
    assert p.transport(group, [4 / 13, 9 / 13], grid).solve().objective == pytest.approx(3 / 1300)
    s = p.transport(group, [4 / 13, 9 / 13]).solve()
    assert s.objective == pytest.approx(3 / 1300)
    used = s.decision.outputs[s.decision.joint.sum(axis=0) > 1e-9]
    assert used == pytest.approx([0.2, 0.45, 0.6] if group == "L" else [0.4, 0.55, 0.8])


# -- claims ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cost_ratio", "cutoff"), [(10, 0.9090909), (1.17, 0.5391705)])
def test_the_threshold_rule(cost_ratio, cutoff):
    assert CalibratedEqualErrors(scores={"L": LOW, "H": HIGH}, cost_ratio=cost_ratio).cutoff == pytest.approx(
        cutoff
    )


def test_theorem_1_no_score_is_both():
    """Whatever random law on (Y, A, Z) meets (i) to (iii) has A independent of (Y, Z).

    Laws that meet (i) are P(z) P(y|z) P(a|z); (ii) is then an equation that is measured.
    """
    rng = np.random.default_rng(4)
    least = np.inf
    for _ in range(300):
        z = rng.dirichlet(np.ones(3))
        y, a = rng.uniform(0.05, 0.95, size=(2, 3))
        joint = np.einsum("z,yz,az->yaz", z, np.array([1 - y, y]), np.array([1 - a, a]))
        of_z = joint / joint.sum(axis=2, keepdims=True)
        balanced = np.abs(of_z[:, 0] - of_z[:, 1]).max()
        product = np.einsum("yz,a->yaz", joint.sum(axis=1), joint.sum(axis=(0, 2)))
        dependent = np.abs(joint - product).max()
        least = min(least, balanced / dependent)
    assert least > 0.5  # so balance 0 needs dependence 0


def test_equal_rates_have_unequal_predictive_values():
    table = base().solve().decision.rate_table().query("scores == 'after'").set_index("group")
    assert table["positive predictive value"].to_dict() == pytest.approx({"L": 0.6, "H": 0.7714286})
    assert table["negative predictive value"].to_dict() == pytest.approx({"L": 0.7714286, "H": 0.6})


# -- COMPAS ------------------------------------------------------------------------------------------------


def compas(which, label, **fields):
    counts = {}
    for name, (people, bad) in COMPAS_DECILES[which].items():
        counts[name] = (people, bad if label == "recidivism" else np.subtract(people, bad))
    return CalibratedEqualErrors.from_counts(counts, cutoff=0.54, **fields)


@pytest.mark.parametrize(
    ("which", "label", "rates", "loss"),
    [
        ("filtered", "none", (0.3771290, 0.6666667), 0.3847920),
        ("all", "none", (0.3724356, 0.6568245), 0.3870110),
        ("filtered", "recidivism", (0.2278732, 0.5075256), 0.3733395),
        ("all", "recidivism", (0.2490251, 0.5144661), 0.3823996),
    ],
)
def test_compas(which, label, rates, loss):
    p = compas(which, label)
    assert [float(v) for v in p.best_rates()] == pytest.approx(rates, abs=1e-7)
    for method in ("polygon", "lp"):
        s = p.solve(method)
        assert s.objective == pytest.approx(loss, abs=1e-7)
        assert s.evaluation.feasible
    assert p.solve("equal-odds").objective == pytest.approx(loss, abs=1e-7)  # calibration is free here


def test_compas_in_fractions():
    p = compas("filtered", "none")
    assert p.best_rates() == (F(155, 411), F(2, 3))
    assert [float(v) for v in p.apex(0)] == pytest.approx((0.4615, 0.5943), abs=5e-5)
    assert p.base_rates == pytest.approx([0.4768504, 0.6091298])
    assert p.infeasibility_reason() == ""


def test_compas_as_scored():
    """The decile rule, 4 and less: unequal rates in the whole table are what ProPublica published."""
    for which, fp, tp, loss in (
        ("filtered", (0.2848, 0.4964), (0.5766, 0.7799), 0.3708256),
        ("all", (1 - 0.7201, 1 - 0.5228), (1 - 0.4485, 1 - 0.2345), 0.3771863),
    ):
        p = compas(which, "none")
        names = p.groups
        accepted = []
        for name in names:
            people, bad = (np.array(v) for v in COMPAS_DECILES[which][name])
            values = (people - bad) / people
            order = np.argsort(values)
            accepted.append((np.arange(10) < 4)[order].astype(float))
        rates = p.rates(np.concatenate(accepted))
        assert rates.rate(FALSE_POSITIVE) == pytest.approx(fp, abs=5e-5)
        assert rates.rate(TRUE_POSITIVE) == pytest.approx(tp, abs=5e-5)
        assert p.loss(rates) == pytest.approx(loss, abs=1e-6)


@pytest.mark.parametrize(
    ("which", "group", "grids"),
    [
        ("filtered", "African-American", (0.0034416, 0.0063131, 0.0014394, 0.0012664)),
        ("filtered", "Caucasian", (None, None, 0.0018536, 0.0015656)),
        ("all", "African-American", (0.00013994, 0.0059959, 0.00023149, 0.00013722)),
        ("all", "Caucasian", (0.0015673, None, 0.0019329, 0.0014577)),
    ],
)
def test_compas_stage_2(which, group, grids):
    """Own values, tenths, hundredths, both; and all outputs, which is at most as much."""
    p = compas(which, "none")
    target = [float(v) for v in p.best_rates()]
    own = p.scores[group][0]
    best = p.transport(group, target).solve().objective
    for outputs, added in zip(
        (own, TENTHS, HUNDREDTHS, np.concatenate([own, HUNDREDTHS])), grids, strict=True
    ):
        s = p.transport(group, target, outputs).solve()
        if added is None:
            assert s.status is Status.INFEASIBLE
        else:
            assert s.objective == pytest.approx(added, abs=1e-7)
            assert best <= added + 1e-7


# -- Table 1 -----------------------------------------------------------------------------------------------

# loss, true positive rates (H, L), false positive rates (H, L); row 3 is row 2 with calibrated scores
PRINTED = {
    1: (0.517, (0.795, 0.661), (0.341, 0.255)),
    2: (0.532, (0.727, 0.727), (0.299, 0.339)),
    4: (0.591, (0.603, 0.518), (0.202, 0.230)),
}


def test_the_printed_rows_contradict_the_loss():
    """Rows 1, 2 and 4 with k = 10 are linear in the shares of (label, group): L gets the larger base rate."""
    rows = [[1.0, 1.0, 1.0, 1.0]]
    right = [1.0]
    for loss, (tp_h, tp_l), (fp_h, fp_l) in PRINTED.values():
        rows.append([10 * fp_h, 1 - tp_h, 10 * fp_l, 1 - tp_l])
        right.append(loss)
    h0, h1, l0, l1 = np.linalg.solve(rows, right)
    assert h0 + h1 == pytest.approx(0.517, abs=1e-3)
    assert h1 / (h0 + h1) == pytest.approx(0.904, abs=1e-3)
    assert l1 / (l0 + l1) == pytest.approx(0.918, abs=1e-3)
    assert l1 / (l0 + l1) > h1 / (h0 + h1)  # but L has the lower base rate


def lending(spread, **fields):
    """Two groups with logistic-normal scores of base rates .93 and .89, in bins of a hundredth."""
    scores = {}
    normal = ndtri((np.arange(1, 2001) - 0.5) / 2000)
    for name, rate in (("H", 0.93), ("L", 0.89)):
        shift = brentq(lambda b, mu=rate: expit(b + spread * normal).mean() - mu, -5, 15)
        people = expit(shift + spread * normal)
        _, bins = np.unique(np.floor(100 * people), return_inverse=True)
        mass = np.bincount(bins) / 2000
        scores[name] = (np.bincount(bins, weights=people) / np.bincount(bins), mass)
    return CalibratedEqualErrors(scores=scores, cost_ratio=10, **fields)


@pytest.mark.parametrize(
    ("spread", "fp", "tp", "loss", "equal_h", "equal_l", "equal_loss", "errors"),
    [
        (
            1.0,
            (0.418, 0.236),
            (0.775, 0.592),
            0.5624,
            (0.312, 0.682),
            (0.317, 0.682),
            0.5728,
            (0.0603, 0.0884),
        ),
        (
            1.5,
            (0.305, 0.194),
            (0.806, 0.687),
            0.4434,
            (0.239, 0.748),
            (0.249, 0.748),
            0.4505,
            (0.0547, 0.0787),
        ),
        (
            2.0,
            (0.230, 0.155),
            (0.836, 0.748),
            0.3544,
            (0.184, 0.795),
            (0.199, 0.795),
            0.3599,
            (0.0485, 0.0690),
        ),
    ],
)
def test_the_rows_of_table_1_on_scores_of_that_shape(
    spread, fp, tp, loss, equal_h, equal_l, equal_loss, errors
):
    accurate = lending(spread).solve("as-predicted")  # rows 1 and 4
    assert accurate.objective == pytest.approx(loss, abs=5e-4)
    assert accurate.decision.rates.rate(FALSE_POSITIVE) == pytest.approx(fp, abs=1e-3)
    assert accurate.decision.rates.rate(TRUE_POSITIVE) == pytest.approx(tp, abs=1e-3)
    p = lending(spread, constraint=EqualOpportunity())
    equal, calibrated = p.solve("equal-odds"), p.solve()  # rows 2 and 3
    assert equal.objective == pytest.approx(equal_loss, abs=5e-4)
    assert calibrated.objective == pytest.approx(equal.objective, abs=1e-7)  # calibration is free
    kernels = calibrated.decision.kernels
    assert kernels["H"].rates(p.cutoff) == pytest.approx(equal_h, abs=1e-3)
    assert kernels["L"].rates(p.cutoff) == pytest.approx(equal_l, abs=1e-3)
    for name, error in zip("HL", errors, strict=True):
        assert kernels[name].total_error - kernels[name].added_error == pytest.approx(error, abs=5e-4)
        assert kernels[name].added_error < 6e-5
    # from row 1 to row 3 the rate of H falls and that of L rises
    before, after = accurate.decision.rates.rate(TRUE_POSITIVE), calibrated.decision.rates.rate(TRUE_POSITIVE)
    assert after[0] < before[0] and after[1] > before[1]


def test_better_data_makes_up_for_fairness():
    """Rows 3 and 4: with more features, equal rates beat accuracy with fewer, for everybody."""
    fair = lending(2.0, constraint=EqualOpportunity()).solve()
    limited = lending(1.0).solve("as-predicted")
    assert fair.objective < limited.objective
    assert (fair.decision.rates.rate(TRUE_POSITIVE) > limited.decision.rates.rate(TRUE_POSITIVE)).all()
