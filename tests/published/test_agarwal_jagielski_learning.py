"""Fair learning with groups: Jagielski et al. (ICML 2019) and its non-private game; worked instances."""

import numpy as np
import pytest
from fair_learning_instances import A12, TABLE12, X12, Y12, twelve
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.fairness import FALSE_POSITIVE, TRUE_POSITIVE, EqualizedOdds, FalsePositiveParity
from forcopt.games import ExponentiatedGradient
from forcopt.models.fair_classification import FairClassification, Finite
from forcopt.models.fair_classification.games import rounds_needed
from forcopt.models.fair_classification.lagrangian import Lagrangian
from forcopt.privacy import ExponentialMechanism, Simulated


@pytest.mark.parametrize("gamma", [0, 0.1, 0.2, 1 / 3, 0.5])
def test_the_optimum_of_twelve_records(gamma):
    problem = twelve(EqualizedOdds(gamma))
    for method in ("lp", "column-generation"):
        s = problem.solve(method)
        assert s.objective == pytest.approx(max(1 / 3, (1 - gamma) / 2), abs=1e-9)
    s = problem.solve()
    assert s.decision.multipliers.sum() <= 0.5 + 1e-9
    if gamma == 0.1:
        assert s.decision.multipliers.sum() == pytest.approx(0.5)
        weights = {str(c): w for c, w in zip(s.decision.classifiers, s.decision.weights, strict=True)}
        assert weights["hypothesis 2"] == pytest.approx(3 * gamma)  # 1 from x = 1 on


def test_the_rates_of_four_thresholds():
    found = [(0, 0, 0, 0), (0, 1 / 3, 2 / 3, 0), (1 / 3, 2 / 3, 1, 2 / 3), (1, 1, 1, 1)]
    for h, rates, error in zip(TABLE12.astype(float), found, (6, 5, 4, 6), strict=True):
        r = twelve().rates(h)
        assert [*r.rate(FALSE_POSITIVE), *r.rate(TRUE_POSITIVE)] == pytest.approx(rates)
        assert twelve().lagrangian.error(h) == pytest.approx(error / 12)


@pytest.mark.parametrize(("bound", "value"), [(0.1, 0.3566667), (0.25, 0.3916667), (0.5, 0.45), (5.0, 0.45)])
def test_the_value_of_the_game_with_bounded_multipliers(bound, value):
    s = twelve().solve("exponentiated-gradient", bound=bound, accuracy=1e-7, rounds=200)
    game = twelve().lagrangian
    found = s.decision.multipliers
    assert found.sum() <= max(bound, 0.5) + 1e-9
    best = min(  # the penalised linear program over the four hypotheses, by its own vertices
        game.penalized(w * TABLE12[2] + (1 - w) * TABLE12[0], bound) for w in np.linspace(0, 1, 3001)
    )
    assert best == pytest.approx(value, abs=1e-4)


def test_the_first_rounds_of_algorithm_5():
    game = twelve().lagrangian
    auditor = ExponentiatedGradient(4, bound=5.0, step=0.0125)
    first = auditor.play()
    assert first == pytest.approx([1, 1, 1, 1])
    values = [game.value(h, first) for h in TABLE12]
    assert values == pytest.approx([0.1, 1 / 60, -1 / 15, 0.1])
    chosen = twelve().oracle.best(game.price(first)).predictions
    assert np.array_equal(chosen, TABLE12[2])
    auditor.learn(game.excess(chosen))
    second = auditor.play()
    assert sorted(second) == pytest.approx(sorted([1.00391725, 0.99558604, 0.99558604, 1.00391725]), abs=1e-8)
    values = [game.value(h, second) for h in TABLE12]
    assert values == pytest.approx([0.10009934, 0.02509722, -0.06101318, 0.10009934], abs=1e-8)


@pytest.mark.parametrize(
    ("accuracy", "bound", "rounds", "error", "disparity", "gaps"),
    [
        (0.5, 5.0, 2576, 0.4891951, 0.0216097, (2.6e-5, 0.2207)),
        (0.05, 2.0, 41202, 0.4569560, 0.0860881, (4.2e-4, 0.02006)),
    ],
)
def test_algorithm_5_on_twelve_records(accuracy, bound, rounds, error, disparity, gaps):
    assert rounds_needed(4, bound, accuracy) == (rounds, accuracy / (8 * bound))
    s = twelve().solve(
        "exponentiated-gradient",
        accuracy=0.0,
        bound=bound,
        rounds=rounds,
        step=accuracy / (8 * bound),
        repair=False,
    )
    found = s.evaluation.metrics
    assert s.objective == pytest.approx(error, abs=1e-7)
    if accuracy == 0.5:
        assert sorted(s.decision.weights) == pytest.approx([0.0648292, 0.9351708], abs=1e-7)
    assert found["false positive rate"] == pytest.approx(disparity, abs=1e-7)
    assert (found["learner gap"], found["auditor gap"]) == pytest.approx(gaps, abs=1e-4)
    assert max(found["learner gap"], found["auditor gap"]) <= accuracy


def test_the_rounds_need_the_square_of_the_bound():
    """Mozannar et al. (2020) print the rounds without it: 3516 leave the auditor a gap of 4, not 0.1."""
    s = twelve().solve(
        "exponentiated-gradient", accuracy=0.0, bound=50.0, rounds=3516, step=0.1 / 400, repair=False
    )
    assert s.evaluation.metrics["auditor gap"] == pytest.approx(3.96, abs=0.02)
    assert rounds_needed(4, 50.0, 0.1)[0] == 6_437_752


def test_aware_classifiers_do_better():
    aware = np.vstack([TABLE12, A12 == "a", A12 == "b"]).astype(int)
    blind = ((TABLE12, 0, 0.5), (TABLE12, 0.1, 0.45))
    for table, gamma, error in (*blind, (aware, 0, 3 / 8), (aware, 0.1, 0.3625)):
        s = twelve(FalsePositiveParity(gamma), Finite(table)).solve()
        assert s.objective == pytest.approx(error, abs=1e-9)
        if len(table) == 6:  # from x = 1 on, and group a
            weights = {str(c): w for c, w in zip(s.decision.classifiers, s.decision.weights, strict=True)}
            share = 0.75 + 0.75 * gamma
            assert weights == pytest.approx({"hypothesis 2": share, "hypothesis 4": 1 - share})
            assert s.decision.multipliers.sum() == pytest.approx(1 / 8)


@pytest.mark.parametrize(("moved", "blind", "aware"), [(0, 0.05, 0.05), (1, 0.1, 0.09)])
def test_the_sensitivity_of_the_fair_optimum(moved, blind, aware):
    """Theorem 4.7: one record that changes its features moves the optimum by 1 / 20, with 80 records."""
    rows = [("R", 0)] * 40 + [("B", 1)] * (20) + [("B", 0, 0)] * (16 - moved) + [("B", 1, 0)] * (4 + moved)
    group = np.array([r[0] for r in rows])
    u = np.array([r[1] for r in rows])
    label = np.array([0] * 40 + [1] * 20 + [0] * 20)
    table = np.array([0 * u, u])
    known = np.vstack([table, group == "R", group == "B"]).astype(int)
    # group R has no positives, so only false positive rates are compared
    for hypotheses, error in ((table, blind), (known, aware)):
        notion = FalsePositiveParity(0.2)
        problem = FairClassification(u[:, None], label, group, notion, None, Finite(hypotheses))
        assert problem.solve().objective == pytest.approx(error, abs=1e-9)


@pytest.mark.parametrize(("aware", "jump"), [(False, 0.0227273), (True, 0.00098912)])
def test_one_record_of_thousands_still_moves_the_blind_optimum(aware, jump):
    found = []
    for moved in (10, 11):
        u = np.repeat([0, 1, 0, 1], [2000, 1000, 1000 - moved, moved])
        label, group = np.repeat([0, 1, 0], [2000, 1000, 1000]), np.repeat(["R", "B"], 2000)
        table = np.vstack([0 * u, u, *([group == "R", group == "B"] if aware else [])]).astype(int)
        p = FairClassification(u[:, None], label, group, FalsePositiveParity(0.01), None, Finite(table))
        found.append(p.solve().objective)
    assert found[1] - found[0] == pytest.approx(jump, abs=1e-7)


@pytest.mark.parametrize(("aware", "optimum"), [(False, 0.0250025), (True, 0.00275 + 0.00073076)])
def test_one_person_who_changes_only_the_group_moves_the_blind_optimum(aware, optimum):
    """As one record whose features change, in 4000: of (R, U, 0) becomes (B, U, 0)."""
    for moved, error in ((0, 0.00275), (1, optimum)):
        u = np.repeat([0, 1, 1, 0, 1], [1999, 1 - moved, 1000, 990, 10 + moved])
        label, group = np.repeat([0, 1, 0], [2000 - moved, 1000, 1000 + moved]), np.full(4000, "B")
        group[: 2000 - moved] = "R"
        table = np.vstack([0 * u, u, *([group == "R", group == "B"] if aware else [])]).astype(int)
        p = FairClassification(u[:, None], label, group, FalsePositiveParity(0.01), None, Finite(table))
        assert p.solve().objective == pytest.approx(error, abs=1e-8)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), groups=st.integers(2, 4))
def test_the_reduction_to_costs_is_an_identity(seed, groups):
    """Error and priced excess of any predictions are the costs of Subroutine 4, to rounding."""
    rng = np.random.default_rng(seed)
    cells = np.array([(a, y) for a in range(groups) for y in (0, 1)])
    a, y = np.vstack([cells, cells[rng.integers(0, len(cells), 30)]]).T
    problem = FairClassification(
        rng.normal(size=(len(y), 1)), y, a, EqualizedOdds(0.1), None, Finite(np.zeros((1, len(y))))
    )
    own, h = problem.lagrangian, rng.integers(0, 2, len(y))
    # the paper compares all groups with each other; of four or more, the library compares each with a level
    game = Lagrangian(own.costs, own.base, problem.demand.rows, problem.moments, pairs=True)
    assert game.size == 2 * groups * (groups - 1)
    assert own.size == min(game.size, 4 * groups)
    prices = rng.exponential(size=game.size)
    direct = (h != y).mean()
    k = 0
    for label in (0, 1):
        rate = [h[(a == g) & (y == label)].mean() for g in range(groups)]
        for g in range(groups):
            for other in range(groups):
                if g != other:
                    direct += prices[k] * (rate[g] - rate[other] - 0.1)
                    k += 1
    assert game.value(h, prices) == pytest.approx(direct, abs=1e-12)
    assert float(game.price(prices) @ h) + game.constant(prices) == pytest.approx(direct, abs=1e-12)
    prices = rng.exponential(size=own.size)
    charged = (h != y).mean() + prices @ own.excess(h, own.best_slack(prices))
    assert own.value(h, prices) == pytest.approx(charged, abs=1e-12)
    assert float(own.price(prices) @ h) + own.constant(prices) == pytest.approx(charged, abs=1e-12)


def test_the_costs_of_the_twelve_records():
    a = (A12 == "b").astype(int)
    p, n = 0.99558604, 1.00391725  # the multipliers of round 2, by sign
    prices = np.array([p, n, n, p])  # rows (a, b), (b, a) of the false, then of the true positive rates
    game = FairClassification(X12, Y12, A12, EqualizedOdds(0.1), None, Finite(TABLE12)).lagrangian
    net = {0: n - p, 1: p - n}
    cost1 = [(y == 0) + (net[y] * 4 if g else -net[y] * 4) for g, y in zip(a, Y12, strict=True)]
    expected = (np.array(cost1) - (Y12 == 1)) / 12
    assert game.price(prices) == pytest.approx(expected, abs=1e-9)
    listed = [-0.03332484, 0.03332484, 0.96667516, 1.03332484]
    assert sorted(set(np.round(cost1, 8))) == pytest.approx(listed, abs=1e-7)


def test_closed_forms_against_a_conic_solver():
    """The auditor's play and the exponential mechanism's law maximise entropy; losses (6, 5, 4, 6) / 12."""
    theta, m = np.array([0.3, -0.2, 0.1, 0.0]), fo.Model()
    play, rest = m.variable("play", (4,), lower=0), m.variable("rest", lower=0)
    m.subject_to(play.sum() + rest == 5)
    m.maximize((play * theta).sum() + 5 * fo.entropy(play / 5).sum() + 5 * fo.entropy(rest / 5))
    auditor = ExponentiatedGradient(4, bound=5.0, step=1.0)
    auditor.learn(theta)
    assert m.solve("clarabel")[play] == pytest.approx(auditor.play(), abs=1e-4)
    losses = np.array([6, 5, 4, 6]) / 12
    for epsilon, law in (
        (1, [0.15705976, 0.25894777, 0.42693270, 0.15705976]),
        (12, [6.12894e-6, 2.472593e-3, 0.997515149, 6.12894e-6]),
    ):
        m = fo.Model()
        p = m.variable("p", (4,), lower=0)
        m.subject_to(p.sum() == 1)
        m.minimize((p * losses).sum() - fo.entropy(p).sum() / (6 * epsilon))
        assert m.solve("clarabel")[p] == pytest.approx(law, abs=2e-5)
        draws = ExponentialMechanism(epsilon, 1 / 12)._send(np.tile(losses, (3000, 1)), Simulated(0))
        error = 5 * np.sqrt(np.array(law) / 3000) + 4e-4
        assert (np.abs(np.bincount(draws, minlength=4) / 3000 - law) < error).all()
