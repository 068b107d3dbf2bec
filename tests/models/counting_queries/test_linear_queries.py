import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import circulant, hadamard
from scipy.optimize import minimize

import forcopt as fo
from forcopt.errors import DeclarationError
from forcopt.models import LinearQueries
from forcopt.models.counting_queries import Factorization


def norm(p, method="fixed-point", **options):
    s = p.solve(method, **options)
    assert s.evaluation.feasible
    return s.evaluation.metrics["factorization norm"]


def queries(w, **fields):
    return LinearQueries(workload=w, epsilon=1.0, delta=1e-6, **fields)


def test_known_norms():
    assert norm(queries(np.tri(2)), gap=1e-7) == pytest.approx(2 / math.sqrt(3), abs=1e-6)
    assert norm(queries(hadamard(8)), gap=1e-7) == pytest.approx(math.sqrt(8), abs=1e-6)
    rng = np.random.default_rng(0)
    for n in (3, 6, 9):
        w = circulant(rng.normal(size=n))
        assert norm(queries(w), gap=1e-7) == pytest.approx(np.linalg.norm(w, "nuc") / n, rel=1e-6)
    assert norm(LinearQueries.prefix(32, 1.0, 1e-6), gap=1e-6) == pytest.approx(1.905446, abs=3e-6)
    assert norm(LinearQueries.prefix(32, 1.0, 1e-6), "square-root") == pytest.approx(2.167, abs=1e-3)


def searched(w, mean, seed):
    """The least product over A of full rank, B = W A^-1, by a general minimiser from random starts."""
    n = w.shape[1]
    rng = np.random.default_rng(seed)

    def value(a, power):
        a = a.reshape(n, n)
        b = np.linalg.lstsq(a.T, w.T, rcond=None)[0].T
        rows, columns = (b**2).sum(axis=1), (a**2).sum(axis=0)
        top = rows.mean() if mean else (rows**power).sum() ** (1 / power)
        return math.sqrt(top * (columns**power).sum() ** (1 / power))

    best = math.inf
    for _ in range(3):
        a = (np.eye(n) + 0.3 * rng.normal(size=(n, n))).ravel()
        for power in (4, 16, 64, 256):
            a = minimize(value, a, args=(power,), method="BFGS").x
        final = a.reshape(n, n)
        b = np.linalg.solve(final.T, w.T).T
        rows = (b**2).sum(axis=1)
        best = min(best, math.sqrt((rows.mean() if mean else rows.max()) * (final**2).sum(axis=0).max()))
    return best


@pytest.mark.parametrize("error", ["max", "mean"])
def test_a_general_minimiser_finds_nothing_better(error):
    rng = np.random.default_rng(1)
    for i in range(6):
        w = rng.integers(-1, 2, (int(rng.integers(2, 6)), 3)).astype(float) + 0.01 * rng.normal(size=(1, 3))
        s = queries(w, error=error).solve(gap=1e-6)
        found = searched(w, error == "mean", i)
        assert s.bound <= queries(w, error=error).sigma * found * (1 + 1e-9)
        assert s.objective <= queries(w, error=error).sigma * found * (1 + 1e-4)


@pytest.mark.parametrize("error", ["max", "mean"])
@pytest.mark.parametrize("neighbours", ["add_remove", "substitute"])
def test_bounds_and_baselines(error, neighbours):
    rng = np.random.default_rng(2)
    for i in range(50):
        n = int(rng.integers(2, 8))
        w = rng.integers(0, 2, (int(rng.integers(1, 10)), n)).astype(float)
        if i % 5 == 0:
            w[:, 0] = 0  # a free count
        if i % 7 == 0:
            w = np.concatenate([w, np.zeros((1, n)), 0.01 * w[:1], w[:1]])  # dominated and equal rows
        if not w.any():
            continue
        p = queries(w, error=error, neighbours=neighbours)
        s = p.solve()
        assert s.status is fo.Status.OPTIMAL and s.evaluation.feasible, (w, s)
        assert np.isfinite(s.decision.left).all() and np.isfinite(s.decision.right).all()
        assert s.bound <= s.objective * (1 + 1e-12) and s.objective <= s.bound * (1 + 2e-4) + 1e-12
        for method in ("identity", "workload", "hierarchical"):
            other = p.solve(method)
            assert other.evaluation.feasible and other.objective >= s.bound * (1 - 1e-9)


def test_sensitivities_by_enumeration():
    rng = np.random.default_rng(3)
    a = rng.normal(size=(3, 5))
    p = queries(rng.normal(size=(2, 5)))
    assert p._sensitivity(a) == pytest.approx(max((a[:, i] ** 2).sum() for i in range(5)))
    found = max(((a[:, i] - a[:, j]) ** 2).sum() for i, j in combinations(range(5), 2))
    assert p.replace(neighbours="substitute")._sensitivity(a) == pytest.approx(found)


def test_workloads():
    assert LinearQueries.ranges(4, 1.0, 1e-6).workload.shape == (10, 4)
    frame = {"sex": ["m", "f"], "age": [1, 2, 3]}
    two = LinearQueries.marginals(frame, 1, 1.0, 1e-6)
    assert two.workload.shape == (5, 6) and (two.workload.sum(axis=0) == 2).all()
    assert LinearQueries.marginals(frame, 2, 1.0, 1e-6).workload.tolist() == np.eye(6).tolist()
    for bad in (0, 3, 1.5, True):
        with pytest.raises(DeclarationError, match="order"):
            LinearQueries.marginals(frame, bad, 1.0, 1e-6)
    with pytest.raises(DeclarationError, match="an attribute of categories has none"):
        LinearQueries.marginals({"sex": [], "age": [1]}, 1, 1.0, 1e-6)


@pytest.mark.parametrize("ages", [[1, 2, 3, 3], [1, 2, 2, 2]])
def test_marginals_take_no_column_of_records(ages):
    """The workload would have as many columns as categories occur, which one record may change."""
    records = {"sex": ["m", "f", "f", "f"], "age": ages}
    with pytest.raises(DeclarationError, match="categories of 'sex' repeat; each is listed once"):
        LinearQueries.marginals(records, 1, 1.0, 1e-6)
    with pytest.raises(DeclarationError, match="categories is a DataFrame"):
        LinearQueries.marginals(pd.DataFrame(records), 1, 1.0, 1e-6)


def test_errors_are_those_of_simulated_noise():
    p = LinearQueries.prefix(6, 1.0, 1e-3)
    s = p.solve()
    z = np.random.default_rng(0).normal(
        scale=s.evaluation.metrics["deviation"], size=(s.decision.left.shape[1], 200_000)
    )
    rmse = np.sqrt(((s.decision.left @ z) ** 2).mean(axis=1))
    assert rmse.max() == pytest.approx(s.objective, rel=0.01)
    assert math.sqrt((rmse**2).mean()) == pytest.approx(s.evaluation.metrics["mean"], rel=0.01)


def test_bad_workloads():
    for w, message in (
        (np.zeros((2, 2)), "everywhere"),
        (np.zeros((0, 2)), "shape"),
        ([1.0, 2.0], "shape"),
        ([[math.nan]], "finite|NaN|nan"),
    ):
        with pytest.raises(DeclarationError, match=message):
            queries(w)
    with pytest.raises(DeclarationError, match="delta"):
        LinearQueries.prefix(3, 1.0, 0.0)
    for bad in (0, 2.5, "a", math.nan, math.inf):
        with pytest.raises(DeclarationError, match="counts is"):
            LinearQueries.prefix(bad, 1.0, 1e-6)
    for option in ({"gap": -1.0}, {"gap": math.nan}, {"most": 0}):
        with pytest.raises(DeclarationError, match=f"{next(iter(option))} is"):
            LinearQueries.prefix(3, 1.0, 1e-6).solve(**option)
    with pytest.raises(DeclarationError, match="prefix"):
        queries(np.eye(3)).solve("square-root")
    with pytest.raises(DeclarationError, match="branching"):
        queries(np.eye(3)).solve("hierarchical", branching=1)
    with pytest.raises(DeclarationError, match="branching is nan"):
        queries(np.eye(3)).solve("hierarchical", branching=math.nan)
    with pytest.raises(DeclarationError, match="factors"):
        queries(np.eye(3)).evaluate(Factorization(np.eye(2), np.eye(3)))
    wrong = queries(np.eye(3)).evaluate(Factorization(np.eye(3), np.diag([1.0, 1.0, 0.9])))
    assert wrong.violations["factorization"] == pytest.approx(0.1)


def test_time_limit_and_trace():
    seen = []
    s = LinearQueries.prefix(200, 1.0, 1e-6).solve(time_limit=0.05, gap=1e-12)
    assert s.status in (fo.Status.FEASIBLE, fo.Status.LIMIT) and not s.bound > s.objective
    LinearQueries.prefix(20, 1.0, 1e-6).solve(
        on_improvement=lambda step: bool(seen.append(step)) or len(seen) >= 3
    )
    assert len(seen) == 3


DOMINATED = [
    ([[1, 2, 2, -1, -2], [0, -2, -2, -2, -1], [2, 1, 1, 2, 0]], "substitute"),
    (
        [
            [0.64, 0.10, -0.54, 0.36],
            [1.30, 0.95, -0.70, -1.27],
            [-0.62, 0.04, -2.33, -0.22],
            [-1.25, -0.73, -0.54, -0.32],
            [0.41, 1.04, -0.13, 1.37],
        ],
        "add_remove",
    ),
]


@pytest.mark.parametrize(("w", "neighbours"), DOMINATED)
def test_queries_without_weight_keep_their_answers(w, neighbours):
    p = queries(np.array(w, dtype=float), neighbours=neighbours)
    s = p.solve(gap=1e-7)
    assert s.status is fo.Status.OPTIMAL and s.evaluation.feasible
    assert s.objective == pytest.approx(p.solve("sdp", backend="clarabel").objective, rel=1e-5)


@pytest.mark.parametrize("backend", ["clarabel", "scs"])
@pytest.mark.parametrize("error", ["max", "mean"])
@pytest.mark.parametrize("neighbours", ["add_remove", "substitute"])
def test_sdp_is_the_fixed_point(backend, error, neighbours):
    rng = np.random.default_rng(3)
    workloads = [np.tri(6), hadamard(4), rng.normal(size=(4, 3)) * 1e4, [[0, 1, 1], [0, 0, 0], [0, 1, 0]]]
    workloads += [rng.integers(0, 2, size=rng.integers(2, 6, size=2)) for _ in range(4)]
    for w in workloads:
        p = queries(np.array(w, dtype=float), error=error, neighbours=neighbours)
        s, exact = p.solve("sdp", backend=backend), p.solve(gap=1e-7)
        assert s.status is fo.Status.OPTIMAL and s.evaluation.feasible
        assert s.objective == pytest.approx(exact.objective, rel=1e-5, abs=1e-5)
        assert s.bound <= exact.objective * (1 + 1e-5) + 1e-5


def test_sdp_of_nothing_to_answer():
    for error in ("max", "mean"):
        s = queries(np.ones((2, 3)), neighbours="substitute", error=error).solve("sdp")
        assert s.objective == pytest.approx(0.0, abs=1e-6) and s.evaluation.feasible


def test_a_large_sdp_warns():
    with pytest.warns(UserWarning, match="fixed-point"):
        LinearQueries.prefix(65, 1.0, 1e-6).formulate("sdp")


@pytest.mark.parametrize("backend", ["clarabel", "scs"])
def test_leximax_over_the_errors_of_queries(backend):
    p = queries(np.array([[2.0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]))
    m = fo.Model()
    handles = p.declare(m, "sdp")
    m.subject_to(handles.sensitivities <= 1)
    m.leximax(handles.squares)
    s = m.solve(backend)
    # the first query is alone with its count: 4 before scaling; the others share the budget of the third
    assert sorted(s[handles.squares] * 4)[-1] == pytest.approx(4.0, abs=1e-3)
    others = queries(np.array([[1.0, 1, 0], [0, 1, 1]])).solve(gap=1e-7).evaluation
    worst = others.metrics["factorization norm"] ** 2
    assert sorted(s[handles.squares] * 4)[:2] == pytest.approx([worst, worst], abs=1e-2)
    squares = (handles.decision(s).left ** 2).sum(axis=1)
    assert np.sort(squares)[-1] == pytest.approx(4.0, rel=1e-2)
