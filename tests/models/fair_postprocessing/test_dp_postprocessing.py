"""Post-processing that is differentially private in the groups (Algorithm 1)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jagielski_2019_lp import PrintedOdds

import forcopt as fo
from forcopt.backends.registry import backends
from forcopt.fairness import (
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    ErrorParity,
    GroupRates,
    PredictiveValues,
)
from forcopt.models import FairPostprocessing
from forcopt.models.fair_postprocessing.dp_postprocessing import _largest_noise, _mechanism, privacy_cost
from forcopt.privacy import AdditiveMechanism, Ledger, PrivacyBudget, PureDP, Simulated

SMALL = np.array([[[36, 4], [9, 5]], [[4, 16], [6, 20]]])
LP_BACKENDS = [name for name, b in backends().items() if not b.missing() and not b.capabilities.only_integer]


def fixed(monkeypatch, table):
    """Let the mechanism release a table that was chosen beforehand."""
    monkeypatch.setattr(AdditiveMechanism, "_send", lambda self, values, rng: np.array(table, dtype=float))


def private(constraint=None, scale=100, privacy=None, **fields):
    return FairPostprocessing(
        counts=SMALL * scale,
        constraint=constraint or EqualizedOdds(),
        privacy=privacy or PrivacyBudget(1.0),
        **fields,
    )


def test_one_person_changes_the_counts_by_two():
    """The sensitivity, by brute force: every person moved to every other group."""
    table = np.arange(12).reshape(2, 3, 2)
    largest = 0
    for h, a, y in np.argwhere(table > 0):
        for other in set(range(3)) - {a}:
            moved = table.copy()
            moved[h, a, y] -= 1
            moved[h, other, y] += 1
            largest = max(largest, np.abs(moved - table).sum())
    assert largest == 2


def test_the_noise_is_that_of_the_mechanism():
    """80,000 noises of scale 2 / epsilon: their mean size within 0.08 of 4, over 5 standard deviations."""
    p = private(privacy=PrivacyBudget(0.5))
    mechanism, rng = _mechanism(0.5, p.counts.size), Simulated(8)
    drawn = np.array([mechanism._send(p.counts, rng) - p.counts for _ in range(10_000)])
    assert np.abs(drawn).mean() == pytest.approx(4.0, abs=0.08)
    assert mechanism.profile().epsilon(0.0) == 0.5
    first = np.random.default_rng(1).laplace(scale=4.0, size=p.counts.shape)  # what solve(seed=1) adds
    noisy = mechanism.simulate(p.counts, 1).values
    assert np.array_equal(noisy, p.counts + first)
    s = p.solve(seed=1)
    assert s.decision.base_rates == pytest.approx((noisy[1] / noisy.sum(axis=0)).T)


@settings(max_examples=25, deadline=None)
@given(
    cells=st.integers(2, 4).flatmap(
        lambda k: st.lists(st.integers(200, 900), min_size=4 * k, max_size=4 * k)
    ),
    tolerance=st.sampled_from([0.0, 0.05]),
    notion=st.sampled_from([EqualizedOdds, EqualOpportunity, DemographicParity, ErrorParity]),
    seed=st.integers(0, 10**6),
)
def test_within_the_noise_event_the_theorem_holds(cells, tolerance, notion, seed):
    """For noise that stays within the bound N, surely: the non-private optimum is feasible for the noisy
    program, and error and disparities keep Theorem 3.1. The noise is taken on the boundary.
    """
    counts = np.reshape(cells, (2, -1, 2))
    privacy = PrivacyBudget(1.0)
    p = FairPostprocessing(counts=counts, constraint=notion(tolerance), privacy=privacy)
    largest = _largest_noise(1.0, counts.size, 0.05)
    signs = np.random.default_rng(seed).choice([-1.0, 0.3, 1.0], size=counts.shape)
    q = p
    with pytest.MonkeyPatch.context() as patch:
        fixed(patch, counts + largest * signs)
        s = q.solve(ledger=Ledger(PureDP(1.0)))
    best = p.solve("lp")
    assert s.status is fo.Status.APPROXIMATE
    cost = privacy_cost(p)
    assert q.evaluate(s.decision).objective <= best.objective + cost.error + 1e-9
    for name, disparity in q.constraint.disparity(q.rates(s.decision.probabilities)).items():
        assert disparity <= tolerance + cost.disparity[name] + 1e-9
    if notion in (EqualizedOdds, EqualOpportunity):
        base_error = np.abs(
            GroupRates(signs[1] * largest + counts[1], (counts + largest * signs).sum(axis=0)).rate(
                p.constraint.rates[0]
            )
            - p.base.rate(p.constraint.rates[0])
        )
        label = {"false positive rate": 0, "true positive rate": 1}[p.constraint.rates[0].name]
        assert (base_error <= largest / (counts + largest * signs).sum(axis=0)[:, label] + 1e-12).all()


def test_the_theorem_holds_as_often_as_it_says():
    """200 draws at beta = .05: if they fail so often, 25 failures or more have a probability below 1e-3."""
    p = private(EqualizedOdds(0.02))
    best, cost = p.solve("lp").objective, privacy_cost(p)
    failures = 0
    for seed in range(200):
        s = p.solve(seed=seed)
        over = p.constraint.violation(p.rates(s.decision.probabilities))
        failures += s.objective > best + cost.error or any(over[n] > cost.disparity[n] for n in over)
    assert failures < 25
    assert s.guarantee == pytest.approx(cost.error)


def test_the_default_is_tighter_than_what_is_printed():
    """s_a + s_b is at most 2 max(s_a, s_b): better fairness, no smaller error, the same theorem."""
    worse = 0
    for seed in range(20):
        s, printed = private().solve(seed=seed), private(PrintedOdds()).solve(seed=seed)
        assert printed.objective <= s.objective + 1e-9
        worse += printed.evaluation.metrics["largest disparity"] > s.evaluation.metrics["largest disparity"]
    assert worse > 15


@pytest.mark.parametrize("backend", LP_BACKENDS)
def test_every_backend_for_linear_programs_agrees(backend):
    accuracy = max(1e-6, 10 * backends()[backend].accuracy)
    ours = private(EqualizedOdds(0.03)).solve(seed=1)
    theirs = private(EqualizedOdds(0.03)).solve(seed=1, backend=backend)
    assert theirs.objective == pytest.approx(ours.objective, abs=accuracy)


def test_much_privacy_budget_gives_the_optimum():
    s = private(EqualizedOdds(0.1), scale=1, privacy=PrivacyBudget(1e9)).solve(seed=1)
    assert s.objective == pytest.approx(167 / 640, abs=1e-6)
    assert s.decision.probabilities == pytest.approx(np.array([[3 / 16, 0], [1, 59 / 64]]), abs=1e-6)


def test_seeds_repeat_and_without_one_the_noise_is_private():
    a, b, c = (private().solve(seed=s).decision.probabilities for s in (1, 1, 2))
    assert (a == b).all() and (a != c).any()
    pytest.importorskip("opendp")
    ledger = Ledger(PureDP(2.0))
    d, e = (private(scale=1000).solve(ledger=ledger) for _ in range(2))
    assert (d.decision.probabilities != e.decision.probabilities).any()
    assert d.message.startswith("1-differentially private")
    assert private().solve(seed=1).message.startswith("a simulation with a seed, so not private")
    assert private().solve(seed=1, beta=0.5).guarantee < private().solve(seed=1).guarantee


def test_without_privacy_it_is_not_the_default():
    p = FairPostprocessing(counts=SMALL, constraint=EqualizedOdds())
    assert p.method().name == "lp" and private().method().name == "dp-postprocessing"
    with pytest.raises(fo.DeclarationError, match="needs privacy"):
        p.solve("dp-postprocessing")


def test_noise_that_empties_a_cell_is_a_failure_with_a_reason(monkeypatch):
    table = SMALL.astype(float)
    table[:, 0, 1] = -5
    fixed(monkeypatch, table)
    s = private(scale=1).solve(ledger=Ledger(PureDP(1.0)))
    assert s.status is fo.Status.FAILED
    assert s.decision is None
    assert "-10 records of group '0' for its true positive rate" in s.reason
    # a notion that does not look at them does not mind
    assert (
        private(DemographicParity(), scale=1).solve(ledger=Ledger(PureDP(1.0))).status
        is fo.Status.APPROXIMATE
    )


def test_the_bounds_as_a_function_of_the_instance():
    """Theorem 3.1 with K = 2, 10,000 records, epsilon 1, beta .05; a floor below the truth bounds less."""
    cost = privacy_cost(private())
    size = float(np.log(4 * 2 / 0.05))
    assert cost.error == pytest.approx(24 * 2 * size / 10_000)
    assert cost.disparity == pytest.approx(
        {
            "false positive rate": 8 * size / (1500 - 4 * size),
            "true positive rate": 8 * size / (2000 - 4 * size),
        }
    )
    floored = privacy_cost(private(privacy=PrivacyBudget(1.0, floor=1000)))
    assert floored.disparity["true positive rate"] == pytest.approx(8 * size / (1000 - 4 * size))
    assert (
        privacy_cost(private(privacy=PrivacyBudget(1.0, floor=20))).disparity["true positive rate"] == np.inf
    )
    assert privacy_cost(private(), beta=0.5).error < cost.error


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: private(privacy=PrivacyBudget(1.0, floor=1501)),
            "floor is 1501, but a group and label has fewer",
        ),
        (lambda: private(privacy=PrivacyBudget(0.0)), "epsilon"),
        (lambda: private(privacy=PrivacyBudget(float("nan"))), "epsilon"),
        (lambda: private().solve(beta=0.0), "beta is 0; it must be strictly between 0 and 1"),
        (lambda: private().solve(beta=1.0), "beta is 1"),
        (lambda: private(PredictiveValues(0.5, 0.5)).solve(seed=1), "not for PredictiveValues"),
    ],
)
def test_bad_declarations(make, message):
    with pytest.raises(fo.DeclarationError, match=message):
        make()


def test_a_private_declaration_is_a_file():
    p = private(privacy=PrivacyBudget(0.5, floor=100))
    assert FairPostprocessing.from_dict(p.to_dict()) == p


def test_a_sweep_over_the_noise_uses_the_private_method():
    sweep = fo.sweep(private(), {"privacy.epsilon": [0.5, 5.0]}, seeds=range(3))
    assert {row.method for row in sweep.rows} == {"dp-postprocessing"}
    spread = sweep.summary("objective").set_index("privacy.epsilon")["deviation"]
    assert spread[0.5] > spread[5.0] > 0
