"""Lexicographic fairness with any class, learner and loss: against enumeration, scipy and interior points."""

from itertools import product
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from lexifair_oracle import sums_of_mixtures
from scipy.optimize import linprog, minimize

import forcopt as fo
from forcopt.fairness import ERROR, BoundedGroupLoss, EqualizedOdds, Notion, PairwiseFairness
from forcopt.learning import AllFunctions, Finite, Halfspaces, Stumps, Thresholds
from forcopt.models import LexifairClassification, LexifairRegression
from forcopt.models.lexifair import groups_of
from forcopt.models.lexifair.losses import loss_of
from forcopt.models.lexifair.no_regret import heaviest, theorem_14
from forcopt.models.lexifair.problem import sums_of_largest
from forcopt.privacy import RandomizedResponse

pytest.importorskip("sklearn")
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

DATA = Path(__file__).parents[4] / "shared" / "data" / "tabular"


def records(seed, n=24, d=2, groups=3):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (n, d)).astype(float)
    of = np.append(np.arange(groups), rng.integers(0, groups, n - groups))
    y = ((X[np.arange(n), of % d] > 2) ^ (rng.random(n) < 0.2)).astype(int)
    return X, y, [np.flatnonzero(of == k).tolist() for k in range(groups)]


def errors(problem, predictions):
    wrong = np.abs(predictions - problem.labels)
    return np.array([[row[list(g)].mean() for g in problem.groups] for row in wrong])


# -- classes with an oracle --------------------------------------------------------------------------------


@pytest.mark.parametrize("hypotheses", [Halfspaces(), Thresholds(column=1), AllFunctions()])
@pytest.mark.parametrize("seed", range(3))
def test_any_class_with_an_exact_oracle_gives_the_optimum_over_its_list(hypotheses, seed):
    X, y, groups = records(seed, n=14)
    if isinstance(hypotheses, AllFunctions):
        X = np.minimum(X, 2.0)
    p = LexifairClassification(labels=y, groups=groups, hypotheses=hypotheses, features=X)
    listed = np.array([h.predictions for h in p.oracle.all()])
    expected, _ = sums_of_mixtures(errors(p, listed))
    for method in ("column-generation", "compact"):
        s = p.solve(method)
        assert s.status == "optimal" and s.evaluation.feasible
        np.testing.assert_allclose(sums_of_largest(s.decision.losses), expected, atol=3e-6)
    again = p.evaluate(s.decision)
    by_hand = errors(p, s.decision.probability(X)[None])[0]
    assert again.objective == pytest.approx(by_hand.max(), abs=1e-9)
    one = [s.decision.probability(row[None])[0] for row in X]  # a record at a time
    np.testing.assert_allclose(one, s.decision.probability(X), atol=1e-12)


class MeanError(Notion):
    """A row of one's own: the mean error of the groups is at most a bound."""

    bound: float
    rates: ClassVar = (ERROR,)

    def rows(self, rates):
        return [rates.rate(ERROR).sum() <= self.bound * len(rates.groups)]

    def disparity(self, rates):
        return {"mean error": rates.rate(ERROR).sum() / len(rates.groups)}

    def violation(self, rates):
        return {"mean error": max(self.disparity(rates)["mean error"] - self.bound, 0.0)}


@pytest.mark.parametrize("kind", ["odds", "own", "pairs"])
@pytest.mark.parametrize("seed", range(3))
def test_rows_of_the_user_join_the_master(kind, seed):
    """The first level against scipy over all listed classifiers, with the rows written out."""
    X, y, groups = records(seed)
    table = np.unique(list(Stumps(X).predictions(np.arange(Stumps(X).count))), axis=0)
    free = LexifairClassification(labels=y, groups=groups, hypotheses=Finite(table), levels=1)
    E, n = errors(free, table), len(y)
    pairs = [(0, 1), (2, 3), (4, 5), (6, 7)]
    rates = np.array(
        [[[h[[i for i in g if y[i] == c]].mean() for g in groups] for c in (0, 1)] for h in table]
    )
    rows, limits = [], []
    if kind == "odds":
        notion = EqualizedOdds(0.1)
        for c, a, b in product((0, 1), range(3), range(3)):
            rows.append(rates[:, c, a] - rates[:, c, b])
            limits.append(0.1)
        extra = 0
    elif kind == "own":
        least = linprog(E.mean(axis=1), A_eq=[np.ones(len(table))], b_eq=[1]).fun
        notion = MeanError(bound=least + 0.01)
        rows, limits, extra = [E.mean(axis=1)], [least + 0.01], 0
    else:
        notion, extra = PairwiseFairness(pairs=pairs, gamma=0.1, budget=0.05), len(pairs)
        rows = [table[:, i] - table[:, j] for i, j in pairs]
        limits = [0.1] * len(pairs)
    width = len(table) + 1 + extra
    A = np.zeros((len(rows) + 3 + (extra > 0), width))
    A[: len(rows), : len(table)] = rows
    A[len(rows) : len(rows) + 3, : len(table)] = E.T
    A[len(rows) : len(rows) + 3, len(table)] = -1
    if extra:
        A[: len(rows), len(table) + 1 :] = -np.eye(extra)
        A[-1, len(table) + 1 :] = 1 / len(pairs)
    b = [*limits, 0, 0, 0, *([0.05] if extra else [])]
    cost = np.eye(width)[len(table)]
    one = np.append(np.ones(len(table)), np.zeros(width - len(table)))
    own = linprog(cost, A, b, [one], [1])
    p = free.replace(constraint=notion)
    for method in ("column-generation", "compact"):
        s = p.solve(method)
        assert s.status == "optimal" and s.evaluation.feasible
        assert s.objective == pytest.approx(own.fun, abs=2e-6) and s.bound <= own.fun + 1e-6
    whole = p.replace(levels=None).solve()
    compact = p.replace(levels=None).solve("compact")
    assert whole.evaluation.feasible and whole.status == "optimal"
    np.testing.assert_allclose(
        sums_of_largest(whole.decision.losses), sums_of_largest(compact.decision.losses), atol=5e-6
    )
    assert n == len(y)


def test_rows_that_no_mixture_satisfies_are_infeasible():
    X, y, groups = records(0)
    p = LexifairClassification(
        labels=y, groups=groups, hypotheses=Stumps(X), constraint=BoundedGroupLoss(0.01)
    )
    assert p.solve().status == "infeasible"
    assert p.solve("compact").status == "infeasible"
    with pytest.raises(fo.DeclarationError, match="the games of the levels know no constraint"):
        p.solve("ftpl")


# -- learners ----------------------------------------------------------------------------------------------


def audited(problem, gap=None):
    """What a learner's levels promise: the first no larger than minimax, the second smaller, an audit."""
    minimax, fair = problem.replace(levels=1).solve(gap=gap), problem.solve(gap=gap)
    assert fair.status == "approximate" and fair.bound == -np.inf
    assert len(fair.decision.levels) == problem.level_count and (fair.decision.alphas >= 0).all()
    one, two = minimax.decision.sorted_losses, fair.decision.sorted_losses
    assert two[0] <= one[0] + 1e-8 and two[1] < one[1] - 1e-3
    np.testing.assert_allclose(problem.group_losses(fair.decision), fair.decision.losses, atol=1e-9)
    return fair


@pytest.mark.skipif(not DATA.exists(), reason="the shared data are missing")
def test_a_learner_on_compas():
    data = fo.data.load_compas(DATA / "compas-scores-two-years.csv")
    data = data.of_groups("African-American", "Caucasian", "Hispanic")
    X = (data.features - data.features.mean(axis=0)) / data.features.std(axis=0)
    both = [f"{race} {sex}" for race, sex in zip(data.groups, data.frame["sex"], strict=True)]
    p = LexifairClassification(
        labels=data.labels, features=X, learner=LogisticRegression(), **groups_of(group=both)
    )
    fair = audited(p, gap=1e-4)
    again = fo.Problem.from_dict(p.to_dict())
    assert again.solve(gap=1e-4).objective == fair.objective


@pytest.mark.skipif(not DATA.exists(), reason="the shared data are missing")
def test_a_learner_on_adult():
    data = fo.data.load_adult(DATA / "adult.csv")
    X = (data.features - data.features.mean(axis=0)) / np.maximum(data.features.std(axis=0), 1e-9)
    groups = groups_of(race=data.frame["race"].tolist(), sex=data.frame["sex"].tolist())
    learner = LogisticRegression(max_iter=1000)
    audited(LexifairClassification(labels=data.labels, features=X, learner=learner, levels=3, **groups))


def test_regressors_are_mixed_by_their_mean():
    rng = np.random.default_rng(0)
    X, of = rng.normal(size=(200, 3)), rng.integers(0, 3, 200)
    y = (X * rng.normal(size=(3, 3))[of]).sum(axis=1)
    groups = [np.flatnonzero(of == k).tolist() for k in range(3)]
    p = LexifairRegression(labels=y, groups=groups, features=X, learner=LinearRegression(fit_intercept=False))
    s, exact = p.solve(gap=1e-6), p.replace(learner=None).solve()
    assert s.status == "approximate" and exact.status == "optimal"
    # means of linear fits are linear, and the fits to weighted groups are the exact oracle's
    assert s.objective == pytest.approx(exact.objective, rel=1e-4)
    boosted = p.replace(learner=HistGradientBoostingRegressor(max_iter=20, random_state=0)).solve(gap=1e-2)
    assert boosted.objective < exact.objective
    np.testing.assert_allclose(p.group_losses(boosted.decision), boosted.decision.losses, atol=1e-9)
    composed = p.solve("compact")  # the same means, as a lazy family of a model
    assert composed.status == "approximate" and composed.bound == -np.inf
    assert composed.objective == pytest.approx(exact.objective, rel=1e-4)
    with pytest.raises(fo.DeclarationError, match="radius is 1; it bounds linear models"):
        p.replace(radius=1.0)


# -- losses ------------------------------------------------------------------------------------------------


def losses_by_hand(name, quantile, s, y):
    if name == "squared":
        return (s - y) ** 2
    if name == "logistic":
        return np.log1p(np.exp(np.where(y == 1, -s, s)))
    if name == "poisson":
        return np.exp(s) - y * s - np.where(y > 0, y - y * np.log(np.maximum(y, 1e-300)), 0.0)
    return np.where(s < y, quantile * (y - s), (1 - quantile) * (s - y)) * (2 if name == "absolute" else 1)


def regression(name, seed=0, n=40, **fields):
    rng = np.random.default_rng(seed)
    X, of = rng.normal(size=(n, 2)), np.append(np.arange(3), rng.integers(0, 3, n - 3))
    score = (X * rng.normal(size=(3, 2))[of]).sum(axis=1)
    y = {"logistic": score + rng.normal(size=n) > 0, "poisson": rng.poisson(np.exp(score / 2))}.get(
        name, score + 0.1 * rng.normal(size=n)
    )
    groups = [np.flatnonzero(of == k).tolist() for k in range(3)]
    return LexifairRegression(labels=np.asarray(y, float), groups=groups, features=X, loss=name, **fields)


NAMES = ["squared", "logistic", "absolute", "quantile", "poisson"]


@pytest.mark.parametrize("radius", [None, 0.3])
@pytest.mark.parametrize("name", NAMES)
def test_levels_agree_with_an_interior_point_method_and_with_scipy(name, radius):
    quantile = 0.8 if name == "quantile" else 0.5
    p = regression(name, radius=radius, quantile=quantile)
    s = p.solve()
    assert s.status == "optimal" and s.evaluation.feasible
    by_hand = losses_by_hand(name, quantile, p.features @ s.decision.coefficients, p.labels)
    np.testing.assert_allclose(s.decision.losses, [by_hand[list(g)].mean() for g in p.groups], rtol=1e-9)
    interior = p.solve("compact", backend="clarabel")
    np.testing.assert_allclose(
        sums_of_largest(s.decision.losses), sums_of_largest(interior.decision.losses), rtol=2e-3
    )
    assert s.objective == pytest.approx(interior.objective, rel=1e-4)

    def worst(theta):
        theta = theta * min(1.0, (radius or np.inf) / max(np.linalg.norm(theta), 1e-300))
        each = losses_by_hand(name, quantile, p.features @ theta, p.labels)
        return max(each[list(g)].mean() for g in p.groups)

    starts = [s.decision.coefficients, np.zeros(2), np.ones(2) * 0.1]
    own = min(
        minimize(worst, x, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}).fun for x in starts
    )
    assert s.objective == pytest.approx(own, rel=1e-5) and s.bound <= own + 1e-7


@pytest.mark.parametrize("name", NAMES)
def test_slopes_and_curvatures_are_derivatives(name):
    y = np.array([0.0, 1.0, 1.0, 0.0])
    loss, s = loss_of(name, 0.3, y), np.array([0.4, -0.7, 1.9, -2.0])
    near = (loss.value(s + 1e-5, y) - loss.value(s - 1e-5, y)) / 2e-5
    np.testing.assert_allclose(loss.slope(s, y), near, atol=1e-6)
    if loss.bend is not None:
        second = (loss.slope(s + 1e-5, y) - loss.slope(s - 1e-5, y)) / 2e-5
        np.testing.assert_allclose(loss.bend(s, y), second, atol=1e-6)
    assert (loss.value(s, y) >= 0).all()


def test_labels_that_a_loss_does_not_take():
    with pytest.raises(
        fo.DeclarationError, match=r"labels\[0\] is .*; with loss 'logistic' it must be 0 or 1"
    ):
        regression("squared").replace(loss="logistic")
    with pytest.raises(fo.DeclarationError, match=r"with loss 'poisson' it must be at least 0"):
        regression("squared").replace(loss="poisson")


def test_the_game_of_the_levels_takes_other_losses():
    p = regression("logistic", radius=1.0, levels=1)
    s = p.solve("no-regret", alpha=0.02, rounds=8000)
    assert s.objective <= p.solve().objective + 0.02 + 1e-9


# -- Theorem 14 --------------------------------------------------------------------------------------------


def test_the_perturbed_leader_keeps_its_guarantee_with_any_oracle():
    X, y, groups = records(1, n=12)
    p = LexifairClassification(labels=y, groups=groups, hypotheses=Halfspaces(), features=X, levels=1)
    s = p.solve("ftpl", alpha=0.15, rounds=1000, seed=0)
    assert s.guarantee <= 0.15 and s.objective <= p.solve().objective + s.guarantee + 1e-9
    left = p.solve("ftpl", alpha=1e-6, rounds=20, seed=0)
    assert left.guarantee == max(left.decision.alphas) > 1e-6


def test_the_parameters_of_theorem_14_make_the_gap_half_of_alpha():
    X, y, groups = records(2)
    p = LexifairClassification(labels=y, groups=groups, hypotheses=Stumps(X))
    assert heaviest(p) == pytest.approx(max(1 / len(g) for g in groups))
    for level, alpha in ((1, 0.3), (3, 0.1)):
        rounds, penalty, draws = theorem_14(p, level, alpha, 0.05)
        regret = 2 * penalty * heaviest(p) * len(y) ** 1.5 + level * (1 + penalty)
        assert regret / rounds**0.5 <= alpha / 4 + 1e-9
        miss = 2 * len(groups) * rounds * np.exp(-2 * draws * (alpha / (4 * penalty * level)) ** 2)
        assert miss <= 0.05 * (1 + 1e-9)
        assert (level + alpha) / penalty == pytest.approx(alpha)  # Theorem 12


# -- reports through a channel -----------------------------------------------------------------------------


def test_reports_give_unbiased_losses_and_both_methods_agree():
    rng = np.random.default_rng(0)
    n, channel = 4000, RandomizedResponse(2.0)
    true = rng.integers(0, 3, n)
    X = rng.integers(0, 20, (n, 1)).astype(float)
    y = (X[:, 0] + 4 * true + 4 * rng.normal(size=n) > 14).astype(int)
    seen = channel.observe(channel.privatize(true, 3, seed=1))
    p = LexifairClassification(labels=y, groups=seen, hypotheses=Stumps(X))
    own = LexifairClassification(labels=y, hypotheses=Stumps(X), **groups_of(report=true))
    s = p.solve()
    assert s.status == "optimal" and p.names == own.names
    compact = p.solve("compact")
    np.testing.assert_allclose(
        sums_of_largest(s.decision.losses), sums_of_largest(compact.decision.losses), atol=3e-6
    )
    wrong = np.abs(s.decision.probability(X) - y)
    inverse = np.linalg.inv(channel.transition(3))
    reports = np.array([sum(seen.reports == k) for k in range(3)])
    total = np.array([wrong[seen.reports == k].sum() for k in range(3)])
    np.testing.assert_allclose(s.decision.losses, (inverse @ total) / (inverse @ reports), atol=1e-9)
    assert np.abs(own.group_losses(s.decision) - s.decision.losses).max() < 0.08  # 4 standard errors
    with pytest.raises(fo.DeclarationError, match="gives records negative weights"):
        LexifairRegression(labels=y, groups=seen, features=X)
    with pytest.raises(fo.DeclarationError, match="must be the only column"):
        groups_of(a=seen, b=true)
