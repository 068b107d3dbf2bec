from __future__ import annotations

import itertools
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import forcopt as fo
from forcopt.arrays import Array
from forcopt.backends import backends, get_backend
from forcopt.clock import Improvement

pytest.importorskip("pyscipopt", reason="PySCIPOpt is not installed: pip install pyscipopt")


def knapsack(n: int = 120) -> tuple[fo.Model, Any]:
    rng = np.random.default_rng(1)
    m = fo.Model()
    x = m.variable("x", n, binary=True)
    weights = rng.integers(1, 60, (n // 3, n))
    m.subject_to(weights @ x <= 0.4 * weights.sum(axis=1))
    m.maximize(rng.integers(5, 60, n) @ x)
    return m, x


# -- the travelling salesman: the cut-set constraints are lazy ---------------------------------------------


def held_karp(d: Array) -> float:
    """The length of the shortest tour, by dynamic programming over subsets of cities."""
    n = len(d)
    best = {(1 << j, j): d[0, j] for j in range(1, n)}
    for size in range(2, n):
        for chosen in itertools.combinations(range(1, n), size):
            mask = sum(1 << j for j in chosen)
            for j in chosen:
                rest = mask & ~(1 << j)
                best[mask, j] = min(best[rest, k] + d[k, j] for k in chosen if k != j)
    full = (1 << n) - 2
    return float(min(best[full, j] + d[j, 0] for j in range(1, n)))


def tour_model(d: Array) -> tuple[fo.Model, Any, list[int]]:
    """Every city has two edges of the tour; a proper part of the cities is left at least twice (lazily)."""
    n = len(d)
    edges = np.array(list(itertools.combinations(range(n), 2)))
    m = fo.Model("tour")
    x = m.variable("x", len(edges), binary=True)
    incidence = np.zeros((n, len(edges)))
    incidence[edges[:, 0], np.arange(len(edges))] = incidence[edges[:, 1], np.arange(len(edges))] = 1
    m.subject_to(incidence @ x == 2)
    m.minimize(d[edges[:, 0], edges[:, 1]] @ x)
    cuts = [0]

    def subtours(value: Any) -> Any:
        chosen = value(x)
        assert np.abs(chosen - np.round(chosen)).max() == 0, "oracles are asked at integer points only"
        left, neighbours = set(range(n)), {i: [] for i in range(n)}  # type: ignore[var-annotated]
        for a, b in edges[chosen > 0.5].tolist():
            neighbours[a].append(b)
            neighbours[b].append(a)
        while left:
            part, todo = set(), [min(left)]
            while todo:
                city = todo.pop()
                if city not in part:
                    part.add(city)
                    todo += neighbours[city]
            left -= part
            if len(part) < n:
                inside = np.isin(edges, list(part)).sum(axis=1) == 1
                cuts[0] += 1
                yield inside.astype(float) @ x >= 2

    m.lazy(subtours, name="subtours")
    return m, x, cuts


def cities(seed: int, n: int) -> Array:
    at = np.random.default_rng(seed).random((n, 2)) * 100
    # Clusters make short cycles attractive, so that the cuts are needed.
    at = at + 300 * np.random.default_rng(seed + 1000).integers(0, 2, (n, 2))
    return np.round(np.linalg.norm(at[:, None] - at[None], axis=2))


@pytest.mark.parametrize(("seed", "n"), [(1, 8), (2, 9), (3, 10), (4, 11), (5, 12), (6, 12)])
def test_shortest_tours_by_branch_and_cut_and_by_the_loop(seed: int, n: int) -> None:
    d = cities(seed, n)
    shortest = held_karp(d)
    for name in ("scip", "highs"):
        m, _, cuts = tour_model(d)
        s = m.solve(name, seed=1, threads=1)
        assert s.status is fo.Status.OPTIMAL
        assert s.objective == pytest.approx(shortest)
        assert s.bound == pytest.approx(shortest, rel=1e-4)
        assert cuts[0] > 0


def test_longer_tours_agree() -> None:
    d = cities(7, 26)
    lengths = {name: tour_model(d)[0].solve(name).objective for name in ("scip", "highs")}
    assert lengths["scip"] == pytest.approx(lengths["highs"])


# -- hidden rows: whatever presolving does, it must not rely on the listed rows alone -----------------------


@pytest.mark.parametrize("seed", range(30))
def test_lazily_given_rows_hold_at_the_optimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    low = rng.integers(-1, 1, n)
    high = low + rng.integers(1, 4, n)
    grid = np.array(list(itertools.product(*[range(a, b + 1) for a, b in zip(low, high, strict=True)])))
    hidden = rng.integers(-4, 6, (4, n))
    side = np.array([rng.choice(grid @ row) for row in hidden])
    cost = rng.integers(-5, 6, n)
    m = fo.Model()
    x = m.variable("x", n, lower=low, upper=high, integer=True)

    def separate(value: Any) -> Any:
        for row, bound in zip(hidden, side, strict=True):
            if row @ value(x) > bound:
                yield row @ x <= bound

    m.lazy(separate)
    m.minimize(cost @ x + 2 * fo.norm(x - 1, float("inf")))
    values = (grid @ cost + 2 * np.abs(grid - 1).max(axis=1))[(grid @ hidden.T <= side).all(axis=1)]
    s = m.solve("scip")
    if values.size:
        assert s.objective == pytest.approx(values.min())
    else:
        assert s.status is fo.Status.INFEASIBLE


def test_oracles_of_continuous_models_end_within_the_tolerance() -> None:
    direction = np.array([1.0, 2.0, 3.0])
    m = fo.Model()
    x = m.variable("x", 3, lower=-2, upper=2)

    def tangent(value: Any) -> Any:
        point = value(x)
        if np.linalg.norm(point) > 1:
            yield (point / np.linalg.norm(point)) @ x <= 1

    m.lazy(tangent)
    m.maximize(direction @ x)
    assert m.solve("scip").objective == pytest.approx(np.linalg.norm(direction), abs=1e-4)


def test_what_an_oracle_raises_comes_through() -> None:
    m = fo.Model()
    x = m.variable("x", 2, binary=True)
    m.maximize(x.sum())

    def broken(value: Any) -> Any:
        raise KeyError("mine")

    m.lazy(broken)
    with pytest.raises(KeyError, match="mine"):
        m.solve("scip")
    m.lazies.clear()
    m.lazy(lambda value: ["no constraint"], name="words")  # type: ignore[list-item, return-value]
    with pytest.raises(fo.DeclarationError, match="'words' gave 'no constraint'"):
        m.solve("scip")


# -- statuses, bounds, senses ------------------------------------------------------------------------------


@pytest.mark.parametrize("sense", ["max", "min"])
def test_optimum_with_offset_and_range(sense: str) -> None:
    m = fo.Model()
    x = m.variable("x", 2, lower=0, integer=True)
    y = m.variable("y", upper=7.5)
    m.subject_to((x[0] + 3 * x[1] + y).between(1, 6), y >= -1)
    value = x[0] + 2 * x[1] - y + 10
    (m.maximize if sense == "max" else m.minimize)(value if sense == "max" else -value)
    s = m.solve("scip", seed=3)
    assert s.status is fo.Status.OPTIMAL
    assert s[x].tolist() == [7, 0]
    assert s[y] == pytest.approx(-1)
    assert abs(s.objective) == pytest.approx(18)
    assert s.bound == pytest.approx(s.objective)
    assert "SCIP Status" in s.log


def test_infeasible_and_unbounded() -> None:
    m = fo.Model()
    x = m.variable("x", 2, lower=0, integer=True)
    m.subject_to(x[0] - x[1] == 1)
    m.maximize(x.sum())
    assert m.solve("scip").status is fo.Status.UNBOUNDED
    m.subject_to(2 * x[0] <= 1)
    assert m.solve("scip").status is fo.Status.INFEASIBLE
    m = fo.Model()
    y = m.variable("y", 1)
    m.maximize(y.sum())
    assert m.solve("scip").status is fo.Status.UNBOUNDED


def test_limits_with_and_without_a_point() -> None:
    m, _ = knapsack()
    s = m.solve("scip", on_improvement=lambda step: True)  # a point, however slow the machine
    assert s.status is fo.Status.FEASIBLE
    assert s.objective < s.bound
    assert s.trace[-1].objective == pytest.approx(s.objective)
    s = m.solve("scip", time_limit=0.6)
    assert s.status is fo.Status.LIMIT or (s.status is fo.Status.FEASIBLE and s.objective < s.bound)
    s = m.solve("scip", time_limit=0)
    assert s.status is fo.Status.LIMIT
    assert np.isinf(s.bound)
    s = m.solve("scip", gap=0.5)
    assert s.status is fo.Status.OPTIMAL
    assert s.message == "SCIP: gaplimit"


def test_improvements_are_told_in_the_models_sense_and_can_stop_it() -> None:
    m, _ = knapsack()
    told: list[Improvement] = []

    def second(step: Improvement) -> bool:
        told.append(step)
        return len(told) >= 2

    s = m.solve("scip", on_improvement=second)
    assert s.status is fo.Status.FEASIBLE
    assert told[0].objective < told[1].objective
    assert s.objective >= told[1].objective
    assert s.trace[:2] == told[:2]


def test_an_error_in_the_callers_function_comes_through() -> None:
    def fails(step: Improvement) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        knapsack(30)[0].solve("scip", on_improvement=fails)


def test_it_starts_from_a_given_point() -> None:
    m, x = knapsack()
    good = m.solve("highs", time_limit=1)
    s = m.solve("scip", start={x: good[x]}, options={"limits/solutions": 1})
    assert s.objective == pytest.approx(good.objective)
    half = np.full(x.shape, np.nan)
    half[::2] = good[x][::2]
    told: list[float] = []
    m.solve("scip", start={x: half}, time_limit=1, on_improvement=lambda step: told.append(step.objective))
    alone: list[float] = []
    m.solve("scip", time_limit=1, on_improvement=lambda step: alone.append(step.objective))
    assert told[1] > alone[1]


def test_options_by_its_own_names() -> None:
    m, _ = knapsack()
    s = m.solve("scip", options={"limits/nodes": 1})
    assert s.message == "SCIP: nodelimit"
    with pytest.raises(fo.BackendError, match="limits/nonsense"):
        m.solve("scip", options={"limits/nonsense": 1})


def test_rows_without_sides_or_columns() -> None:
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=3)
    m.subject_to((x[0] + x[1]).between(-np.inf, np.inf), 0 * x[0] <= 1)
    m.maximize(x.sum())
    assert m.solve("scip").objective == pytest.approx(6)
    m.subject_to(0 * x[0] >= 1)
    assert m.solve("scip").status is fo.Status.INFEASIBLE


# -- what it takes besides rows ----------------------------------------------------------------------------


def test_indicators_of_both_values_and_with_ranges() -> None:
    m = fo.Model()
    x = m.variable("x")  # needs no bounds: there is no big M
    b = m.variable("b", binary=True)
    m.subject_to(fo.implies(b, x.between(2, 3)), fo.implies(1 - b, x <= -1))
    m.maximize(x - 10 * b)
    assert m.solve("scip").objective == pytest.approx(-1)
    m.maximize(x - b)
    assert m.solve("scip").objective == pytest.approx(2)
    m.minimize(x)
    assert m.solve("scip").status is fo.Status.UNBOUNDED
    m.subject_to(x >= -3)
    m.minimize(x - 10 * b)
    assert m.solve("scip").objective == pytest.approx(-8)


def test_quadratic_objectives_with_integers() -> None:
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=9, integer=True)
    m.minimize(fo.sum_squares(x - [1.4, 2.6]) + fo.quad_form(x - 1, [[2, 1], [1, 2]]))
    s = m.solve("scip")
    a, b = np.meshgrid(np.arange(10), np.arange(10))
    value = (a - 1.4) ** 2 + (b - 2.6) ** 2 + 2 * (a - 1) ** 2 + 2 * (a - 1) * (b - 1) + 2 * (b - 1) ** 2
    assert "quadratic_objective" in s.bridges
    assert s.objective == pytest.approx(value.min(), abs=1e-5)


@pytest.mark.parametrize(
    "part", ["norm", "quad_over_lin", "exp", "log", "entropy", "kl_div", "power", "logistic"]
)
def test_convex_functions_of_integers_and_reals(part: str) -> None:
    """Against enumeration of the integers and a fine grid of the real number."""
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=3, integer=True)
    y = m.variable("y", lower=0.2, upper=2)
    point = np.array([1.3, 0.4])
    Y = np.linspace(0.2, 2, 3601)
    g = np.array(list(itertools.product(range(4), repeat=2)), dtype=float)[:, :, None]

    def norm2(values: Array) -> Array:
        return np.asarray(np.sqrt((values**2).sum(axis=1)))

    forms: dict[str, tuple[Any, Any]] = {
        "norm": (fo.norm(x - point - y) + y, norm2(g - point[:, None] - Y) + Y),
        "quad_over_lin": (
            fo.quad_over_lin(x - point, y) + y - x.sum(),
            ((g - point[:, None]) ** 2).sum(axis=1) / Y + Y - g.sum(axis=1),
        ),
        "exp": (
            fo.exp(x[0] - y) + fo.exp(y - x[1]) + 0.3 * x.sum(),
            np.exp(g[:, 0] - Y) + np.exp(Y - g[:, 1]) + 0.3 * g.sum(axis=1),
        ),
        "log": (-fo.log(x + y).sum() + 0.9 * x[0] + y, -np.log(g + Y).sum(axis=1) + 0.9 * g[:, 0] + Y),
        "entropy": (
            -fo.entropy(y + x[0]) - 1.5 * x[0] + 0 * x[1],
            (Y + g[:, 0]) * np.log(Y + g[:, 0]) - 1.5 * g[:, 0],
        ),
        "kl_div": (
            fo.kl_div(y, x[0] + 0.5) + fo.kl_div(x[1] + 1, y),
            Y * np.log(Y / (g[:, 0] + 0.5))
            - Y
            + g[:, 0]
            + 0.5
            + (g[:, 1] + 1) * np.log((g[:, 1] + 1) / Y)
            - g[:, 1]
            - 1
            + Y,
        ),
        "power": (
            fo.power(x[0] + y, 1.5) + fo.power(y, -0.7) - 2 * fo.power(x[1] + y, 0.4) + x[1] - 2.5 * x[0],
            (g[:, 0] + Y) ** 1.5 + Y**-0.7 - 2 * (g[:, 1] + Y) ** 0.4 + g[:, 1] - 2.5 * g[:, 0],
        ),
        "logistic": (
            fo.logistic(2 * x[0] - 3 * y) + fo.logistic(y - x[1]) - 0.2 * x[0] + 0.1 * x[1],
            np.logaddexp(0, 2 * g[:, 0] - 3 * Y)
            + np.logaddexp(0, Y - g[:, 1])
            - 0.2 * g[:, 0]
            + 0.1 * g[:, 1],
        ),
    }
    expression, values = forms[part]
    m.minimize(expression)
    s = m.solve("scip", time_limit=30)
    assert s.status is fo.Status.OPTIMAL
    assert s.objective == pytest.approx(values.min(), abs=2e-5)
    assert s.bound == pytest.approx(values.min(), abs=1e-3)


def test_norms_are_accurate_at_their_apex() -> None:
    m = fo.Model()
    x = m.variable("x", 3)
    m.minimize(fo.norm(x - [0.3, 0.4, 0.5]) + 2 * fo.norm(x))
    assert m.solve("scip")[x] == pytest.approx([0, 0, 0], abs=1e-5)


def test_divergences_from_zero_weights() -> None:
    m = fo.Model()
    x = m.variable("x", 3, lower=0)
    m.subject_to(x.sum() == 1)
    m.minimize(fo.kl_div(x, [0.0, 0.25, 0.75]).sum() - 0.1 * x[1])
    s = m.solve("scip")
    weights = np.array([0.25 * np.exp(0.1), 0.75])
    assert s[x] == pytest.approx([0, *(weights / weights.sum())], abs=1e-4)


# -- the set of backends -----------------------------------------------------------------------------------


def test_the_name_scip_is_pyscipopts_where_it_is_installed() -> None:
    assert get_backend("scip").through == "pyscipopt"
    assert "lazy" in get_backend("scip").capabilities.kinds
    assert get_backend("scip").version().startswith(("8", "9", "1"))


def test_without_pyscipopt_it_is_listed_with_the_command_that_installs_it() -> None:
    """In a process of its own, in which the package cannot be found."""
    code = """
import importlib.util as u
find = u.find_spec
u.find_spec = lambda name, *rest: None if name == "pyscipopt" else find(name, *rest)
import forcopt as fo
from forcopt.backends import backends, get_backend
print(backends()["pyscipopt"].missing())
print(get_backend("scip").through)
try:
    get_backend("pyscipopt")
except fo.NotInstalledError as error:
    print(error)
"""
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert out[:2] == ["the package pyscipopt is missing", "ortools"]
    assert out[2].endswith("install it with: pip install pyscipopt")


def test_all_families_run_in_one_process() -> None:
    m, _ = knapsack(21)
    names = [n for n, b in backends().items() if b.through in ("highspy", "ortools", "pyscipopt")]
    names = [n for n in names if "integer" in get_backend(n).capabilities.kinds]
    assert {"highs", "gscip", "scip", "cp-sat"} <= set(names)
    values = [m.solve(name).objective for name in [*names, *reversed(names)]]
    assert values == pytest.approx([values[0]] * len(values))


def test_lazy_families_read_scaled_columns_in_the_models_units() -> None:
    m = fo.Model()
    x = m.variable("x", lower=0, upper=1e10)
    k = m.variable("k", lower=0, upper=9, integer=True)
    m.subject_to(1e-10 * x + k <= 8.5)  # SCIP would drop the coefficient: the column is scaled
    m.lazy(lambda value: [x <= 1e9] if value(x) > 1e9 * (1 + 1e-7) else [])
    m.maximize(1e-9 * x + k)
    assert m.solve("scip").objective == pytest.approx(9)
