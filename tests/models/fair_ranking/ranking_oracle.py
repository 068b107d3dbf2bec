"""Brute force over all rankings, written from the definitions, without the package's notions or programs."""

from itertools import permutations, product

import numpy as np
from scipy.optimize import linprog


def group_sums(demand, groups):
    """The groups of a demand as lists of members."""
    attributes = demand["by"] if demand["by"] is not None else sorted(groups)
    n = len(next(iter(groups.values())))
    cells = {}
    for i in range(n):
        cells.setdefault(tuple(groups[a][i] for a in attributes), []).append(i)
    return list(cells.values())


def features(order, n, w, demand, groups, scores):
    """Linear features of a ranking, which a demand holds between bounds: rows of (value, low, high)."""
    k = len(w)
    e = np.zeros(n)
    e[list(order[:k])] = w
    rows = []
    kind = demand["kind"]
    if kind in ("exposure", "proportional"):
        mean = sum(w) / n
        for members in group_sums(demand, groups):
            own = e[members].mean() / mean
            aim = 1.0 if kind == "exposure" else np.mean([scores[i] for i in members]) / np.mean(scores)
            rows.append((own, aim - demand["tolerance"], aim + demand["tolerance"]))
    elif kind == "selection":
        at = demand["at"] or k
        for members in group_sums(demand, groups):
            rate = len(set(members) & set(order[:at])) / at / (len(members) / n)
            rows.append((rate, 1 - demand["tolerance"], 1 + demand["tolerance"]))
    elif kind == "quotas":
        for members in group_sums(demand, groups):
            for j in range(1, k + 1):
                share = len(members) * j / n
                low, high = len(members) * j // n, -(-len(members) * j // n)
                assert low <= share <= high
                rows.append((len(set(members) & set(order[:j])), low, high))
    elif kind == "order":
        s = demand["scores"]
        for i, j in product(range(n), repeat=2):
            if s[i] > s[j] + demand["slack"]:
                rows.append((e[i] - e[j], 0.0, np.inf))
    elif kind == "in-group":
        for members in group_sums(demand, groups):
            inside = [scores[i] for i in members if i in order[:k]]
            outside = [scores[i] for i in members if i not in order[:k]]
            ratio = 1.0
            if inside and outside and max(outside) > 0:
                ratio = min(1.0, min(inside) / max(outside))
            rows.append((ratio, demand["ratio"], np.inf))
    return rows


def value(order, utilities):
    return sum(utilities[i][j] for j, i in enumerate(order))


def optimum(n, w, utilities, demands, groups, scores, integer):
    """The best value over rankings, or over lotteries of them; None if there is none."""
    k = len(w)
    orders = list(permutations(range(n), k))
    worth = np.array([value(o, utilities) for o in orders])
    table = [[r for d in demands for r in features(o, n, w, d, groups, scores)] for o in orders]
    table = np.array(table, dtype=float).reshape(len(orders), -1, 3)
    x, low, high = table[..., 0], table[0, :, 1], table[0, :, 2]
    if integer:
        fine = ((x >= low - 1e-9) & (x <= high + 1e-9)).all(axis=1)
        return float(worth[fine].max()) if fine.any() else None
    rows, sides = [], []
    for r in range(x.shape[1]):
        if np.isfinite(high[r]):
            rows.append(x[:, r])
            sides.append(high[r])
        if np.isfinite(low[r]):
            rows.append(-x[:, r])
            sides.append(-low[r])
    found = linprog(
        -worth,
        A_ub=np.array(rows) if rows else None,
        b_ub=np.array(sides) if rows else None,
        A_eq=np.ones((1, len(orders))),
        b_eq=[1.0],
        method="highs",
    )
    return -float(found.fun) if found.status == 0 else None
