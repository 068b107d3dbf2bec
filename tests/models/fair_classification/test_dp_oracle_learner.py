from math import log

import numpy as np
import pytest
from fair_learning_instances import A12, TABLE12, X12, Y12, random_problem, twelve
from sklearn.linear_model import LogisticRegression

import forcopt as fo
from forcopt.fairness import (
    BoundedGroupLoss,
    DemographicParity,
    EqualizedOdds,
    ErrorParity,
    FalsePositiveParity,
    PairwiseFairness,
)
from forcopt.models.fair_classification import FairClassification, Finite, Halfspaces, Learner, Thresholds
from forcopt.models.fair_classification.dp_oracle_learner import (
    Sensitivity,
    _mean_noise,
    plan,
    rate_rows,
    sensitivity,
)
from forcopt.privacy import ApproximateDP, Ledger, PrivacyBudget, RandomizedResponse


def repeated(times, constraint=None, privacy=None, **fields):
    """The twelve records, each so many times: every group and label has 3 times as many."""
    return FairClassification(
        np.tile(X12, (times, 1)),
        np.tile(Y12, times),
        np.tile(A12, times),
        constraint or EqualizedOdds(0.1),
        **{"hypotheses": Finite(np.tile(TABLE12, (1, times))), **fields},
        privacy=privacy,
    )


NOTIONS = [
    EqualizedOdds(0.1),
    FalsePositiveParity(0.0),
    DemographicParity(0.1),
    ErrorParity(0.1),
    BoundedGroupLoss(0.4),
    EqualizedOdds(0.1) & DemographicParity(0.3),
]


@pytest.mark.parametrize("notion", NOTIONS, ids=str)
@pytest.mark.parametrize("groups", [2, 3])
def test_no_neighbour_differs_by_more_than_the_sensitivities(notion, groups):
    """Every move of one person between groups that keeps the floor; prices are vertices and mixtures."""
    rng = np.random.default_rng(groups)
    floor = 2
    names = tuple("abc"[:groups])
    s = sensitivity(notion, names, floor)
    codes = np.repeat(np.arange(groups), 2 * (floor + 1))
    labels = np.tile([0, 1], len(codes) // 2)
    h = rng.integers(0, 2, (6, len(codes)))
    seen = []

    def of(codes):
        table = FairClassification(
            np.zeros((len(codes), 1)), labels, np.array(names)[codes], notion, None, Finite(h)
        )
        rates = [table.rates(p) for p in h.astype(float)]
        return table.lagrangian, np.array([[r.rate(rate) for rate in notion.rates] for r in rates])

    game, rates = of(codes)
    prices = np.vstack([np.eye(game.size), rng.dirichlet(np.ones(game.size), 5)])
    for i in range(len(codes)):
        for a in set(range(groups)) - {codes[i]}:
            moved = codes.copy()
            moved[i] = a
            other, theirs = of(moved)
            assert np.abs(rates - theirs).sum(axis=(1, 2)).max() <= s.rates + 1e-12
            for price in prices:
                change = [game.value(p, price) - other.value(p, price) for p in h.astype(float)]
                assert np.abs(change).max() <= s.game + 1e-12
                assert np.abs(game.price(price) - other.price(price)).sum() <= 2 * s.game + 1e-12
                seen.append(np.abs(change).max() / s.game)
    assert max(seen) > 0.5  # not much too large, either


@pytest.mark.parametrize("notion", NOTIONS, ids=str)
def test_inequalities_are_the_rows_over_rates(notion):
    problem = random_problem(np.random.default_rng(1), groups=3, constraint=notion)
    rows, ends = rate_rows(notion, problem.groups.names)
    for p in np.random.default_rng(2).random((3, 24)):
        rates = problem.rates(p)
        values = np.concatenate([rates.rate(rate) for rate in notion.rates])
        assert rows @ values - ends == pytest.approx(problem.lagrangian.excess(p))


def test_the_sensitivity_of_the_paper_is_larger():
    """Two groups: Lemma C.1 has 2 K / (f - 1) for the four gradients, which are twice the two rates."""
    s = sensitivity(EqualizedOdds(0.1), ("a", "b"), floor=100)
    assert s == Sensitivity(rates=2 / 101, game=2 / 101, squares=2, spread=2)
    assert 2 * s.rates < 2 * 2 / 99


def test_the_mean_of_noise_keeps_its_bound():
    """Differences of two Laplace variables, averaged over 1 to 64 rounds; 4000 draws, chance 1/100 each.

    More than 80 of 4000 would be a false alarm once in 10^8.
    """
    rng, s = np.random.default_rng(0), Sensitivity(0, 0, squares=2, spread=2)
    for rounds in (1, 4, 64):
        noise = rng.laplace(scale=3.0, size=(4000, rounds, 2))
        means = (noise[..., 0] - noise[..., 1]).mean(axis=1)
        assert (means > _mean_noise(3.0, s, rounds, log(100))).sum() <= 80


def test_the_bounds_hold_and_mean_something():
    """Each of 10 runs may fail with probability .05; the bounds are so wide that none does."""
    problem = repeated(1000, privacy=PrivacyBudget(80.0, 1e-5, floor=3000))
    planned = plan(problem, bound=4)
    assert planned.gap < 0.6 and planned.excess < 0.4
    optimum = problem.solve("lp").objective
    for seed in range(10):
        s = problem.solve(bound=4, seed=seed)
        assert s.status is fo.Status.APPROXIMATE and s.iterations == planned.rounds
        m = s.evaluation.metrics
        assert m["learner gap"] + m["auditor gap"] <= planned.gap
        assert s.guarantee == planned.gap and s.objective <= optimum + planned.gap
        assert s.evaluation.violation <= planned.excess
        assert "(80, 1e-05)-differentially private" in s.message


def test_more_privacy_and_fewer_records_cost_more():
    gaps = [
        plan(repeated(100, privacy=PrivacyBudget(e, 1e-5, floor=f))).gap
        for e, f in ((0.1, 300), (1.0, 300), (10.0, 300), (10.0, 100))
    ]
    assert gaps[0] > gaps[1] > gaps[2] < gaps[3]
    chosen = plan(repeated(100, privacy=PrivacyBudget(1.0, 1e-5, floor=300)))
    for rounds in (chosen.rounds // 2 or 1, 2 * chosen.rounds + 1):
        other = plan(repeated(100, privacy=PrivacyBudget(1.0, 1e-5, floor=300)), rounds=rounds)
        assert other.rounds == rounds and other.gap > 0.9 * chosen.gap  # the choice is near the best


def test_hardly_any_privacy_is_hardly_any_loss():
    problem = repeated(10, privacy=PrivacyBudget(1e6, floor=30))
    s = problem.solve(rounds=4000, seed=0)
    assert s.evaluation.metrics["learner gap"] + s.evaluation.metrics["auditor gap"] < 0.2
    assert s.objective == pytest.approx(0.45, abs=0.03)


def test_the_guarantee_is_a_function_of_the_instance():
    problem = repeated(100, privacy=PrivacyBudget(1.0, 1e-6, floor=300))
    method = problem.methods["dp-oracle-learner"]
    assert not method.exact and method.guarantee(problem) == plan(problem).gap
    assert problem.method().name == "dp-oracle-learner"


def test_vacuous_bounds_are_refused():
    problem = twelve(privacy=PrivacyBudget(1.0, 1e-6, floor=3))
    with pytest.raises(fo.DeclarationError, match=r"the bounds are vacuous here: .* allow_vacuous"):
        problem.solve()
    assert problem.solve(allow_vacuous=True, seed=1).decision is not None


def test_the_plan_does_not_look_at_the_groups():
    """Two data sets with the same floor, features and labels, other groups: the same plan."""
    rng = np.random.default_rng(0)
    for notion in NOTIONS:
        plans = []
        for _ in range(2):
            groups = np.where(rng.random(240) < 0.5, "a", "b")
            plans.append(
                plan(
                    FairClassification(
                        np.tile(X12, (20, 1)),
                        np.tile(Y12, 20),
                        groups,
                        notion,
                        hypotheses=Thresholds(),
                        privacy=PrivacyBudget(1.0, 1e-6, floor=20),
                    )
                )
            )
        assert plans[0] == plans[1]


def test_draws_repeat_with_a_seed_and_come_from_opendp_without():
    pytest.importorskip("opendp")
    problem = twelve(privacy=PrivacyBudget(5.0, 1e-6, floor=3))
    one, two = (problem.solve(allow_vacuous=True, rounds=20, seed=3) for _ in range(2))
    assert one.objective == two.objective
    ledger = Ledger(ApproximateDP(5.0, 1e-6))
    assert problem.solve(allow_vacuous=True, rounds=5, ledger=ledger).iterations == 5
    assert ledger.spent() == pytest.approx(5.0)


def test_regression_with_noisy_products():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 5))
    a = (rng.random(400) < 0.5).astype(int)
    y = (x[:, 0] + 0.5 * a + 0.5 * rng.normal(size=400) > 0).astype(int)
    problem = FairClassification(
        x,
        y,
        a,
        EqualizedOdds(0.05),
        hypotheses=Halfspaces(search="regression"),
        privacy=PrivacyBudget(1e5, 1e-6, floor=50),
    )
    with pytest.raises(fo.DeclarationError, match="error at most inf"):
        problem.solve()
    s = problem.solve(allow_vacuous=True, rounds=200, seed=0)
    assert s.objective < 0.35
    assert len(s.decision.predict(x[:7], seed=0)) == 7


def test_one_group_needs_no_look():
    problem = FairClassification(
        X12,
        Y12,
        ["all"] * 12,
        EqualizedOdds(0.0),
        hypotheses=Thresholds(),
        privacy=PrivacyBudget(1.0, floor=3),
    )
    assert problem.solve().objective == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("fields", "options", "said"),
    [
        ({"privacy": None}, {}, "needs privacy with a public floor"),
        ({"privacy": PrivacyBudget(1.0)}, {}, "needs privacy with a public floor"),
        ({}, {"bound": 0}, "bound is 0"),
        ({}, {"bound": np.inf}, "bound is inf"),
        ({}, {"beta": 1.0}, "beta is 1"),
        ({}, {"rounds": 0}, "rounds is 0"),
        ({"weights": np.ones(12)}, {}, "no weights"),
        ({"hypotheses": Learner(LogisticRegression())}, {}, "cannot be listed"),
        ({"constraint": PairwiseFairness([(0, 1)])}, {}, "not on single records"),
    ],
)
def test_bad_input_is_named(fields, options, said):
    problem = twelve(**{"privacy": PrivacyBudget(1.0, floor=3), **fields})
    with pytest.raises(fo.DeclarationError, match=said):
        problem.solve("dp-oracle-learner", **options)


def test_bad_declarations_are_named():
    with pytest.raises(fo.DeclarationError, match=r"floor is 4, but a group and label has fewer records"):
        twelve(privacy=PrivacyBudget(1.0, floor=4))
    with pytest.raises(fo.DeclarationError, match="reported ones"):
        FairClassification(
            X12,
            Y12,
            RandomizedResponse(3.0).observe(A12),
            EqualizedOdds(0.1),
            hypotheses=Thresholds(),
            privacy=PrivacyBudget(1.0),
        )


def test_declarations_go_to_files(tmp_path):
    problem = twelve(privacy=PrivacyBudget(1.0, 1e-6, floor=3))
    problem.save(tmp_path / "p.json")
    assert FairClassification.from_dict(problem.to_dict()) == problem
