"""All exact methods on all backends: against each other, the definition, and proofs of their own."""

import lexifair_enumeration  # noqa: F401  (registers the oracle)
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lexifair_oracle import mixtures, subsets, sums_of_mixtures, sums_of_regression
from scipy.optimize import linprog, minimize

import forcopt as fo
from forcopt.backends.registry import backends
from forcopt.models import LexifairClassification, LexifairRegression
from forcopt.models.lexifair import Finite, Stumps, random_regression
from forcopt.models.lexifair.problem import sums_of_largest

READY = {name: b for name, b in backends().items() if b.missing() is None and not b.capabilities.only_integer}
LINEAR = [name for name in READY if name != "pyscipopt"]
CONIC = [name for name, b in READY.items() if "second_order" in b.capabilities.kinds]
FORMULATIONS = [m for m, v in LexifairRegression.methods.items() if v.kind == "formulation"]

tables = st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(0, 10**6)).map(
    lambda t: np.random.default_rng(t[2]).integers(0, 11, t[:2]) / 10
)


def regression(seed=0, n=40, d=3, groups=4, **fields):
    """Groups with coefficients of their own, so that they are in conflict; some records are in two."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    of = np.append(np.arange(groups), rng.integers(0, groups, n - groups))
    y = (X * rng.normal(size=(groups, d))[of]).sum(axis=1) + 0.1 * rng.normal(size=n)
    members = [np.union1d(np.flatnonzero(of == k), rng.choice(n, 3, replace=False)) for k in range(groups)]
    return LexifairRegression(features=X, labels=y, groups=members, **fields)


def classification(seed=0, n=30, d=2, groups=3, **fields):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 8, (n, d))
    of = np.append(np.arange(groups), rng.integers(0, groups, n - groups))
    y = (X[np.arange(n), of % d] > 3 + of % 2) ^ (rng.random(n) < 0.15)
    members = [np.union1d(np.flatnonzero(of == k), rng.choice(n, 3, replace=False)) for k in range(groups)]
    return LexifairClassification(hypotheses=Stumps(X), labels=y, groups=members, **fields)


def totals(s):
    return sums_of_largest(s.decision.losses)


# -- mixtures ----------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(tables)
def test_methods_agree_with_all_subsets_as_rows(table):
    problem = mixtures(table)
    expected, _ = sums_of_mixtures(table)
    for method in ("column-generation", *FORMULATIONS):
        s = problem.solve(method)
        assert s.status == "optimal"
        np.testing.assert_allclose(totals(s), expected, atol=2e-6)
        assert s.evaluation.feasible
        assert s.bound <= expected[0] + 1e-7


@pytest.mark.parametrize("backend", LINEAR)
@pytest.mark.parametrize("method", ["column-generation", *FORMULATIONS])
def test_every_backend_for_linear_programs(backend, method):
    if backend.startswith("pyomo:") and method != "compact":
        pytest.skip("a process for each of many solves")
    problem = classification(n=12)
    if method == "column-generation" and backend in ("scip", "gscip"):
        with pytest.raises(fo.BackendError, match="needs duals"):
            problem.solve(method, backend=backend)
        return
    s = problem.solve(method, backend=backend)
    accuracy = max(3e-6, 30 * READY[backend].accuracy)
    if s.status == "feasible":  # then it says what is left
        assert backend not in ("highs", "glop", "clarabel") and "above its bound" in s.message
        assert s.objective == pytest.approx(problem.solve("compact").objective, abs=1e-2)
        return
    assert s.status == "optimal"
    np.testing.assert_allclose(totals(s), totals(problem.solve("compact")), atol=accuracy)


def test_stumps_priced_by_their_oracle_or_listed_are_the_same():
    problem = classification(n=60, d=3, groups=5)
    listed = LexifairClassification(
        hypotheses=Finite(problem.hypotheses.predictions(np.arange(problem.hypotheses.count))),
        labels=problem.labels,
        groups=problem.groups,
    )
    np.testing.assert_allclose(problem.error_table, listed.error_table, atol=1e-12)
    generated, compact = problem.solve(), listed.solve("compact")
    np.testing.assert_allclose(totals(generated), totals(compact), atol=2e-6)
    assert max(generated.decision.alphas) < 1e-6
    assert len(generated.decision.levels) == 5


@settings(max_examples=20, deadline=None)
@given(tables)
def test_a_single_classifier(table):
    """Enumeration, the integer programs and sorting in Python; ties in the sorted errors are ties."""
    problem = mixtures(table, randomized=False)
    best = min(tuple(sorted(row, reverse=True)) for row in table.tolist())
    for method in ("enumeration", "compact"):
        s = problem.solve(method)
        np.testing.assert_allclose(s.decision.sorted_losses, best, atol=1e-6)
        assert s.evaluation.feasible


def test_mixing_methods_refuse_a_single_classifier():
    problem = mixtures(np.eye(2), randomized=False)
    with pytest.raises(fo.DeclarationError, match="mixes classifiers, but randomized is False"):
        problem.solve("column-generation")
    with pytest.raises(fo.DeclarationError, match="declare randomized=False"):
        mixtures(np.eye(2)).solve("enumeration")


# -- regression --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_least_squares_agree_with_all_subsets_as_rows(seed):
    problem = regression(seed, groups=3 + seed % 2)
    s = problem.solve()
    expected, _ = sums_of_regression(problem, s.decision.coefficients + 0.1)
    np.testing.assert_allclose(totals(s)[:2], expected[:2], rtol=1e-5)
    np.testing.assert_allclose(totals(s), expected, rtol=1e-4)  # later levels magnify what earlier ones give
    assert s.status == "optimal" and s.evaluation.feasible


@pytest.mark.parametrize(
    ("method", "backend"), [(m, b) for m in FORMULATIONS for b in CONIC if m == "compact" or b == "clarabel"]
)
def test_every_backend_with_cones(method, backend):
    problem = regression(1)
    s = problem.solve(method, backend=backend)
    expected = problem.solve()
    loose = READY[backend].accuracy > 1e-6
    assert s.objective == pytest.approx(expected.objective, rel=2e-2 if loose else 1e-5)
    np.testing.assert_allclose(totals(s), totals(expected), rtol=2e-2 if loose else 1e-4)


@pytest.mark.parametrize("backend", ["highs", "glop", "clarabel"])
def test_columns_need_only_linear_programs(backend):
    problem = regression(2, radius=1.5)
    s = problem.solve("column-generation", backend=backend)
    np.testing.assert_allclose(totals(s), totals(problem.solve("compact", backend="clarabel")), rtol=1e-3)
    assert np.linalg.norm(s.decision.coefficients) <= 1.5 + 1e-9
    assert s.objective == pytest.approx(s.bound, rel=1e-5)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([None, 0.3, 1.0]))
def test_the_fit_to_weights_is_a_minimum(seed, radius):
    """No step within the ball lowers the weighted loss; the gradient vanishes inside."""
    rng = np.random.default_rng(seed)
    problem = regression(seed, n=12, radius=radius)
    weights = rng.random(4) * (rng.random(4) < 0.7)
    best = problem.best_response(weights)
    for scale in (1e-3, 0.1, 1.0):
        other = best.coefficients + scale * rng.normal(size=3)
        if radius is not None:
            other *= min(1.0, radius / np.linalg.norm(other))
        assert weights @ problem.group_losses(other) >= weights @ best.losses - 1e-9
    assert problem.evaluate(best).feasible


def test_minimax_is_at_least_as_good_as_equal_losses_in_every_group():
    """If every group loses the same, the minimax model loses no more in any group (introduction)."""
    for seed in range(5):
        problem = regression(seed, groups=3, levels=1)
        equal = max(problem.group_losses(np.zeros(3)))  # every group loses at most this
        assert problem.solve().decision.losses.max() <= equal


# -- proofs ------------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(tables, st.integers(0, 10**6))
def test_an_audit_finds_the_slack_of_any_mixture(table, seed):
    """Each level's bound is the optimum given the sums of the mixture at the levels before."""
    problem = mixtures(table)
    chances = np.random.default_rng(seed).dirichlet(np.ones(len(table)))
    given_sums = sums_of_largest(chances @ table)
    levels = problem.audit(problem.mixture(np.arange(len(table)), chances))
    count = table.shape[1]
    for j, level in enumerate(levels):
        rows, limits = [], []
        for c in subsets(count, j + 1):
            rows.append([*table[:, list(c)].sum(axis=1), -1.0 if len(c) == j + 1 else 0.0])
            limits.append(0.0 if len(c) == j + 1 else given_sums[len(c) - 1])
        r = linprog([0.0] * len(table) + [1.0], rows, limits, [[1.0] * len(table) + [0.0]], [1.0])
        assert level.bound == pytest.approx(r.fun, abs=1e-6)
        assert level.total == pytest.approx(given_sums[j])


@pytest.mark.parametrize("method", ["column-generation", *FORMULATIONS])
def test_no_group_gains_without_a_worse_off_one_losing(method):
    """Least squares: lowering a group at the price of none that is as badly off is impossible.

    The models that keep the others have next to no interior: a cone solver stalls there, at points whose
    excess of 1e-6 lowers a group by 2.5e-3. Whatever the multipliers, the weighted fit is a bound instead.
    """
    problem = regression(3)
    s = problem.solve(method, backend="highs" if method == "column-generation" else "clarabel")
    losses = s.decision.losses
    for k in range(4):
        others = [a for a in range(4) if a != k and losses[a] >= losses[k] - 1e-3]
        limits = losses[others] + 1e-8

        def minus_bound(logs, k=k, others=others, limits=limits):
            prices = np.exp(logs)
            weighted = [np.sqrt(p) * problem.factors[a] for p, a in zip(prices, others, strict=True)]
            rows = np.vstack([problem.factors[k], *weighted])
            theta = np.linalg.lstsq(rows[:, :-1], rows[:, -1])[0]
            return prices @ limits - np.square(rows @ np.append(theta, -1.0)).sum()

        found = minimize(minus_bound, np.zeros(len(others)), method="Nelder-Mead")
        assert -found.fun >= losses[k] - 2e-3


def test_one_level_is_minimax():
    table = [(0.4, 0.4, 0.3), (0.4, 0.2, 0.4), (0.6, 0, 0)]
    for method in ("compact", "column-generation"):
        s = mixtures(table, levels=1).solve(method)
        assert s.objective == pytest.approx(0.4)
    assert len(mixtures(table, levels=1).solve().decision.levels) == 1


def test_a_time_limit_leaves_what_was_found():
    s = regression(0).solve(time_limit=0.0)
    assert s.status in ("feasible", "limit") and s.decision is not None
    assert s.bound <= s.objective
    assert s.message.startswith("level 1 ended")


def test_a_perfect_fit_of_all_groups():
    p = LexifairRegression(
        features=[[1, 2], [1, 2], [0, -2]], labels=[1, 1, -3], groups=[[0], [1], [1, 2], [0]]
    )
    s = p.solve()
    assert s.status is fo.Status.OPTIMAL and s.objective == pytest.approx(0, abs=1e-20)


@pytest.mark.parametrize("method", [*FORMULATIONS, "column-generation"])
def test_no_bound_is_above_the_optimum_of_an_exact_fit(method):
    p = LexifairRegression(features=[[1.0]], labels=[-2000.0], groups=[[0], [0]], radius=2000.0)
    s = p.solve(method) if method == "column-generation" else p.solve(method, backend="clarabel")
    assert s.bound <= s.objective <= 1e-9


@pytest.mark.parametrize("method", FORMULATIONS)
def test_a_conic_backend_that_ends_short_of_its_tolerance_is_finished_and_proved(method):
    for seed in range(3):
        p = random_regression(60, 3, 4, conflict=0.3, overlap=0.2, seed=seed)
        s = p.solve(method, backend="clarabel")
        assert s.status == "optimal"
        assert s.bound == pytest.approx(s.objective, rel=1e-4)
        best = p.solve("column-generation").decision.sorted_losses
        assert s.decision.sorted_losses == pytest.approx(best, abs=1e-3 * best[0])


@pytest.mark.parametrize("backend", [b for b in CONIC if b in ("clarabel", "scs", "scip")])
@pytest.mark.parametrize("method", FORMULATIONS)
def test_no_backend_claims_an_optimum_whose_levels_are_off(method, backend):
    """A first-order solver may stop with a level too high, or hold levels with too much slack."""
    for seed in (0, 4):
        rng = np.random.default_rng(seed)
        X = np.column_stack([np.ones(60), rng.normal(size=(60, 2))])
        y = X @ rng.normal(size=3) + rng.normal(size=60) * (1 + np.arange(60) % 3)
        groups = [np.flatnonzero(np.arange(60) % 3 == k).tolist() for k in range(3)]
        p = LexifairRegression(features=X, labels=y, groups=groups)
        s = p.solve(method, backend=backend)
        assert s.status == "optimal" and "proved the levels" in s.message
        best = p.solve("column-generation").decision.sorted_losses
        assert s.objective == pytest.approx(best[0], rel=2e-5)
        assert s.decision.sorted_losses == pytest.approx(best, abs=5e-4 * best[0])


@pytest.mark.parametrize("method", ["column-generation", "compact", "row-generation"])
def test_five_records_within_a_small_radius(method):
    """HiGHS stumbles over a warm master here, and went on stumbling after ``clearSolver``."""
    rng = np.random.default_rng(16)
    rng.integers(2, 9), rng.integers(1, 4), rng.integers(1, 4), rng.random()
    X = rng.normal(size=(5, 2))
    p = LexifairRegression(
        features=X,
        labels=[1.0, 0.0, 1.0, 0.0, 0.0],
        groups=[[0, 1, 2, 3, 4], [1, 3, 4], [0, 3]],
        weights=[1.0, 1.0, 1.0, 3.0, 0.5],
        radius=1.0,
    )
    s = p.solve(method)
    assert s.status is fo.Status.OPTIMAL
    assert s.decision.sorted_losses == pytest.approx([0.2867735, 0.1729632, 0.0195280], abs=1e-6)
