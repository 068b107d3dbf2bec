"""Introductory examples in the manner of the tutorials of JuMP and cvxpy, ten each, against known answers."""

import copy
import itertools
import pickle

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import optimize, special

import forcopt as fo

# -- JuMP: https://jump.dev/JuMP.jl/stable/tutorials ---------------------------------------------------------


def test_jump_getting_started():
    m = fo.Model()
    x, y = m.variable("x", lower=0), m.variable("y", lower=0, upper=3)
    m.minimize(12 * x + 20 * y)
    c1 = m.subject_to(6 * x + 8 * y >= 100)
    c2 = m.subject_to(7 * x + 12 * y >= 120)
    s = m.solve()
    assert s.objective == pytest.approx(205) and s[x] == pytest.approx(15) and s[y] == pytest.approx(1.25)
    assert s.dual(c1) == pytest.approx(0.25) and s.dual(c2) == pytest.approx(1.5)


def test_jump_diet():
    foods = pd.DataFrame(
        {
            "cost": [2.49, 2.89, 1.50, 1.89, 2.09, 1.99, 2.49, 0.89, 1.59],
            "calories": [410, 420, 560, 380, 320, 320, 320, 100, 330],
            "protein": [24, 32, 20, 4, 12, 15, 31, 8, 8],
            "fat": [26, 10, 32, 19, 10, 12, 12, 2.5, 10],
            "sodium": [730, 1190, 1800, 270, 930, 820, 1230, 125, 180],
        },
        index=["hamburger", "chicken", "hot dog", "fries", "macaroni", "pizza", "salad", "milk", "ice cream"],
    )
    limits = pd.DataFrame(
        {"min": [1800, 91, 0, 0], "max": [2200, np.inf, 65, 1779]},
        index=["calories", "protein", "fat", "sodium"],
    )
    m = fo.Model("diet")
    buy = m.variable("buy", index=foods.index, lower=0)
    m.minimize((foods["cost"] * buy).sum())
    m.subject_to((buy @ foods[limits.index]).between(limits["min"], limits["max"]))
    s = m.solve()
    assert s.objective == pytest.approx(11.8288, abs=1e-4)
    assert s.to_pandas(buy).round(4).to_dict()["hamburger"] == pytest.approx(0.6045, abs=1e-4)
    m.subject_to(buy["milk"] + buy["ice cream"] <= 6)  # JuMP's closing question
    assert m.solve().status == "infeasible"


def test_jump_knapsack():
    profit, weight = np.array([5, 3, 2, 7, 4]), np.array([2, 8, 4, 2, 5])
    m = fo.Model("knapsack")
    x = m.variable("x", 5, binary=True)
    m.subject_to(weight @ x <= 10)
    m.maximize(profit @ x)
    s = m.solve()
    assert s.objective == 16 and np.flatnonzero(s[x]).tolist() == [0, 3, 4]


def test_jump_transportation():
    cost = pd.DataFrame(
        [[39, 14, 11, 14, 16, 82, 8], [27, 9, 12, 9, 26, 95, 17], [24, 14, 17, 13, 28, 99, 20]],
        index=["GARY", "CLEV", "PITT"],
        columns=["FRA", "DET", "LAN", "WIN", "STL", "FRE", "LAF"],
    )
    supply = pd.Series({"GARY": 1400, "CLEV": 2600, "PITT": 2900})
    demand = pd.Series(
        {"FRA": 900, "DET": 1200, "LAN": 600, "WIN": 400, "STL": 1700, "FRE": 1100, "LAF": 1000}
    )
    m = fo.Model()
    x = m.variable("x", index=(cost.index, cost.columns), lower=0)
    m.subject_to(x.sum(axis=1) <= supply, x.sum(axis=0) == demand)
    m.minimize((cost * x).sum())
    assert m.solve().objective == pytest.approx(196200)


def test_jump_facility_location():
    rng = np.random.default_rng(314)
    clients, sites = rng.random((12, 2)), rng.random((5, 2))
    distance = np.linalg.norm(clients[:, None] - sites, axis=2)
    m = fo.Model()
    x, y = m.variable("x", (12, 5), binary=True), m.variable("y", 5, binary=True)
    m.subject_to(x.sum(axis=1) == 1, x <= y)
    m.minimize((distance * x).sum() + y.sum())
    best = min(
        distance[:, list(chosen)].min(axis=1).sum() + len(chosen)
        for k in range(1, 6)
        for chosen in itertools.combinations(range(5), k)
    )
    assert m.solve().objective == pytest.approx(best)


def test_jump_sudoku():
    given = """530070000 600195000 098000060 800060003 400803001 700020006 060000280 000419005 000080079"""
    board = np.array([list(map(int, row)) for row in given.split()])
    m = fo.Model()
    x = m.variable("x", (9, 9), lower=1, upper=9, integer=True)
    for k in range(9):
        i, j = 3 * (k // 3), 3 * (k % 3)
        box = x[i : i + 3, j : j + 3]
        m.subject_to(fo.all_different(x[k]), fo.all_different(x[:, k]), fo.all_different(box))
    m.fix(x, np.where(board > 0, board, np.nan))
    solved = m.solve()[x]
    assert all(set(line) == set(range(1, 10)) for line in [*solved, *solved.T])
    assert (solved[board > 0] == board[board > 0]).all() and solved[0].tolist() == [5, 3, 4, 6, 7, 8, 9, 1, 2]


def test_jump_queens():
    n = 8
    m = fo.Model()
    x = m.variable("x", (n, n), binary=True)
    m.subject_to(x.sum(axis=0) == 1, x.sum(axis=1) == 1)
    for board in (x, x[::-1]):
        diagonals = [[(i, i + d) for i in range(n) if 0 <= i + d < n] for d in range(-n + 1, n)]
        m.subject_to(board[tuple(np.transpose(cells))].sum() <= 1 for cells in diagonals)
    queens = np.argwhere(m.solve()[x] > 0)
    assert len(queens) == n and len({a - b for a, b in queens}) == n == len({a + b for a, b in queens})


def test_jump_max_flow():
    capacity = np.array(
        [
            [0, 13, 6, 10, 0, 0, 0, 0], [0, 0, 0, 9, 5, 7, 0, 0], [0, 0, 0, 8, 0, 0, 0, 0],
            [0, 0, 0, 0, 3, 0, 12, 0], [0, 0, 0, 0, 0, 4, 1, 6], [0, 0, 0, 0, 0, 0, 0, 5],
            [0, 0, 0, 0, 0, 0, 0, 9], [0, 0, 0, 0, 0, 0, 0, 0],
        ]
    )  # fmt: skip
    m = fo.Model()
    f = m.variable("f", (8, 8), lower=0, upper=capacity)
    m.subject_to(f.sum(axis=0)[1:-1] == f.sum(axis=1)[1:-1])
    m.maximize(f[0].sum())
    graph = nx.DiGraph([(i, j, {"capacity": capacity[i, j]}) for i, j in np.argwhere(capacity)])
    assert m.solve().objective == nx.maximum_flow_value(graph, 0, 7)


def test_jump_tips_piecewise_and_logic():
    m = fo.Model()
    x, y, z = m.variable("x", lower=0, upper=3), m.variable("y"), m.variable("z", 3, binary=True)
    m.subject_to(y == fo.piecewise_linear(x, [0, 1, 2, 3], [0, 1, 4, 9], binaries=True))
    m.subject_to(fo.implies(z[0], x <= 1), (x <= 0.5) | (x >= 1.5), fo.exactly(1, z), z[1] <= (z[0] | z[2]))
    m.maximize(y - 20 * z[2] - 20 * z[1])
    s = m.solve()
    assert s.objective == pytest.approx(0.5) and s[z].tolist() == [1, 0, 0]


def test_jump_nested_problems_by_parameters_of_data():
    m = fo.Model()
    x = m.variable("x", 2, lower=0)
    level = m.variable("level")
    m.subject_to(x[0] + 2 * x[1] >= level)
    m.minimize(3 * x[0] + 4 * x[1])
    costs = []
    for value in (4, 8, 12):
        m.fix(level, value)
        costs.append(m.solve().objective)
    assert costs == pytest.approx([8, 16, 24])


# -- cvxpy: https://www.cvxpy.org/examples and the tutorial --------------------------------------------------

RNG = np.random.default_rng(1)
A, B = RNG.normal(size=(20, 5)), RNG.normal(size=20)


def test_cvxpy_least_squares_with_bounds():
    m = fo.Model()
    x = m.variable("x", 5, lower=0, upper=1)
    m.minimize(fo.sum_squares(A @ x - B))
    s = m.solve("clarabel")
    assert s[x] == pytest.approx(optimize.lsq_linear(A, B, (0, 1)).x, abs=1e-5)


def test_cvxpy_linear_program():
    s0, x0 = np.maximum(B[:15], 0), RNG.random(5)
    a = A[:15]
    b, c = a @ x0 + s0, -a.T @ np.maximum(-B[:15], 0)
    m = fo.Model()
    x = m.variable("x", 5)
    row = m.subject_to(a @ x <= b)
    m.minimize(c @ x)
    s = m.solve()
    assert s.objective == pytest.approx(optimize.linprog(c, a, b, bounds=(None, None)).fun)
    assert c == pytest.approx(a.T @ s.dual(row), abs=1e-7)


def test_cvxpy_quadratic_program():
    P, q = A.T @ A, B[:5]
    m = fo.Model()
    x = m.variable("x", 5)
    m.subject_to(A[:4] @ x <= 1, x.sum() == 0.1)
    m.minimize(0.5 * fo.quad_form(x, P) + q @ x)
    assert m.solve("highs").objective == pytest.approx(m.solve("clarabel").objective, abs=1e-6)


def test_cvxpy_second_order_cones():
    m = fo.Model()
    x = m.variable("x", 5)
    m.subject_to(fo.norm(A[i : i + 3] @ x + B[i : i + 3]) <= 3 + 0.1 * x.sum() for i in (0, 3, 6))
    m.subject_to(x.sum() >= -1, fo.norm(x) <= 5)
    m.minimize(B[:5] @ x)
    s = m.solve("clarabel")
    assert s.objective == pytest.approx(m.solve("scs").objective, abs=1e-3)


def test_cvxpy_lasso():
    m = fo.Model()
    x = m.variable("x", 5)
    m.minimize(fo.sum_squares(A @ x - B) + 5 * fo.norm(x, 1))
    s = m.solve("clarabel")
    slope = 2 * A.T @ (A @ s[x] - B)
    assert np.abs(slope).max() <= 5 + 1e-4 and slope[np.abs(s[x]) > 1e-4] == pytest.approx(
        -5 * np.sign(s[x][np.abs(s[x]) > 1e-4]), abs=1e-3
    )


def test_cvxpy_logistic_regression():
    labels = (A @ np.array([1, -2, 0, 0, 3]) + B > 0).astype(float)
    m = fo.Model()
    w = m.variable("w", 5)
    m.maximize((labels * (A @ w) - fo.logistic(A @ w)).sum() / 20 - 0.1 * fo.norm(w, 1))
    s = m.solve("clarabel")

    def loss(v):
        return -(labels * (A @ v) - np.logaddexp(0, A @ v)).mean() + 0.1 * np.abs(v).sum()

    assert loss(s[w]) <= min(loss(s[w] + 0.01 * d) for d in RNG.normal(size=(50, 5))) + 1e-7


def test_cvxpy_portfolio():
    mu, sigma = np.abs(B[:5]), A.T @ A / 20
    m = fo.Model()
    w = m.variable("w", 5, lower=0)
    m.subject_to(w.sum() == 1)
    risks = []
    for gamma in (0.1, 1, 10):
        m.maximize(mu @ w - gamma * fo.quad_form(w, sigma))  # the objective is replaced
        s = m.solve("clarabel")
        risks.append(float(s[w] @ sigma @ s[w]))
    assert risks == sorted(risks, reverse=True) and len(m.variables) == 1


def test_cvxpy_water_filling():
    noise = np.array([0.8, 1.0, 1.2])
    m = fo.Model()
    x = m.variable("x", 3, lower=0)
    m.subject_to(x.sum() == 1)
    m.maximize(fo.log(noise + x).sum())
    level = (1 + noise.sum()) / 3
    assert m.solve("clarabel")[x] == pytest.approx(np.maximum(level - noise, 0), abs=1e-5)


def test_cvxpy_huber_regression():
    b = B.copy()
    b[::7] += 20
    m = fo.Model()
    x = m.variable("x", 5)
    m.minimize(fo.huber(A @ x - b, 1).sum())
    s = m.solve("clarabel")
    found = optimize.minimize(lambda v: 2 * special.huber(1, A @ v - b).sum(), np.zeros(5))
    assert s.objective == pytest.approx(found.fun, abs=1e-5)


def test_cvxpy_maximum_entropy_and_total_variation():
    m = fo.Model()
    p = m.variable("p", 5, lower=0)
    m.subject_to(p.sum() == 1, np.arange(5) @ p == 2.5)
    m.maximize(fo.entropy(p).sum())
    s = m.solve("clarabel")
    ratios = s[p][1:] / s[p][:-1]
    assert ratios == pytest.approx(np.full(4, ratios[0]), abs=5e-3)  # the optimum is geometric
    u = m.variable("u", (4, 4))
    m.subject_to(u[0] == 1, u[-1] == 3)
    m.minimize(fo.norm(u[1:] - u[:-1], 1))
    assert m.solve("clarabel").objective == pytest.approx(8, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("addVar", "m.variable"),
        ("add_variables", "m.variable"),
        ("addConstrs", "m.subject_to"),
        ("add_constraint", "m.subject_to"),
        ("setObjective", "m.minimize"),
        ("minimise", "m.minimize"),
        ("ObjVal", "s.objective"),
        ("computeIIS", "m.irreducible_subset"),
    ],
)
def test_names_of_other_languages_on_a_model_name_the_call(name, call):
    with pytest.raises(AttributeError, match=rf"'Model' object has no attribute '{name}'; write .*{call}"):
        getattr(fo.Model(), name)


def test_names_of_other_languages_on_a_variable_name_the_call():
    x = fo.Model().variable("x", 3)
    for thing, name in itertools.product((x, 2 * x + 1), ("value", "X", "varValue")):
        with pytest.raises(
            AttributeError, match=rf"has no attribute '{name}'; write s\[x\] of s = m.solve\(\)"
        ):
            getattr(thing, name)
    assert not hasattr(x, "nothing") and not hasattr(fo.Model(), "nothing")
    assert pickle.loads(pickle.dumps(x)).shape == copy.deepcopy(x).shape == (3,)
