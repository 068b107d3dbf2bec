"""Lexicographic fairness by definition: every subset of groups a row, one program a level."""

from itertools import combinations

import numpy as np
from scipy.optimize import linprog, minimize

from forcopt.models import LexifairClassification
from forcopt.models.lexifair import Finite


def mixtures(table, **fields):
    """A problem whose classifiers have these losses: one record a group, with label 0."""
    table = np.asarray(table, dtype=float)
    count = table.shape[1]
    return LexifairClassification(
        labels=np.zeros(count),
        groups=[[k] for k in range(count)],
        hypotheses=Finite(table),
        **fields,
    )


def subsets(count, most):
    return [c for r in range(1, most + 1) for c in combinations(range(count), r)]


def sums_of_mixtures(table, slack=0.0):
    """The optimal sums of the j largest losses over mixtures, by program (1) of the paper with all rows.

    `slack`: added to the constant of each level before the next is solved; one number, or one a level.
    """
    table = np.asarray(table, dtype=float)
    models, count = table.shape
    slack = np.broadcast_to(slack, count)
    constants, found = [], []
    for j in range(1, count + 1):
        rows, limits = [], []
        for c in subsets(count, j):
            rows.append([*table[:, list(c)].sum(axis=1), -1.0 if len(c) == j else 0.0])
            limits.append(0.0 if len(c) == j else constants[len(c) - 1] + 1e-11)
        r = linprog(
            [0.0] * models + [1.0],
            rows,
            limits,
            [[1.0] * models + [0.0]],
            [1.0],
            [(0, None)] * models + [(None, None)],
        )
        assert r.status == 0, r.message
        found.append(r.fun)
        constants.append(r.fun + slack[j - 1])
    return np.array(found), r.x[:models]


def sums_of_regression(problem, start):
    """The same for least squares, by scipy's SLSQP on all rows; only for a few groups."""
    d, count = problem.features.shape[1], len(problem.groups)
    squares = [np.vstack([problem.features[list(g)].T, problem.labels[list(g)]]).T for g in problem.groups]

    def losses(theta):
        return np.array([np.square(s[:, :-1] @ theta - s[:, -1]).mean() for s in squares])

    def slopes(theta):
        return np.array([2 * s[:, :-1].T @ (s[:, :-1] @ theta - s[:, -1]) / len(s) for s in squares])

    constants = []
    x = np.append(start, np.sort(losses(start))[::-1].sum())
    for j in range(1, count + 1):
        sets = subsets(count, j)
        inside = np.array([[k in c for k in range(count)] for c in sets], dtype=float)
        size = np.array([len(c) for c in sets])

        def rows(x, inside=inside, size=size, j=j):
            limit = np.array([x[-1] if s == j else constants[s - 1] + 1e-10 for s in size])
            return limit - inside @ losses(x[:-1])

        def jacobian(x, inside=inside, size=size, j=j):
            return np.column_stack([-inside @ slopes(x[:-1]), (size == j).astype(float)])

        r = minimize(
            lambda x: x[-1],
            x,
            jac=lambda x: np.append(np.zeros(d), 1.0),
            constraints={"type": "ineq", "fun": rows, "jac": jacobian},
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-13},
        )
        x = r.x
        constants.append(float(np.sort(losses(x[:-1]))[::-1][:j].sum()))
    return np.array(constants), x[:-1]
