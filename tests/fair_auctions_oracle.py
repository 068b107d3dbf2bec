"""The fair allocation written from the definitions alone, in entries of M, for scipy's linprog.

It shares no code with the package: every pair, every set of ads, every order of ads.
"""

from __future__ import annotations

from itertools import chain, combinations, pairwise, permutations

import numpy as np
from scipy.integrate import quad
from scipy.optimize import linprog


def ratio(a, b):
    """The largest ratio of two vectors of values."""
    out = 1.0
    for x, y in zip(a, b, strict=True):
        if x == 0 and y == 0:
            continue
        out = max(out, np.inf if x == 0 or y == 0 else max(x / y, y / x))
    return out


def solve(values, slots, factors, demands, objective="welfare", fill=True, weights=None):
    """The optimum; demands are (name, f, extra) with f a function of the ratio."""
    v, alpha, beta = np.array(values, float), np.array(factors, float), np.array(slots, float)
    T, n = v.shape
    k = len(beta)
    u = v * alpha
    q = np.ones(T) if weights is None else np.array(weights, float)
    size = T * n * k + 1

    def at(t, i, j):
        return (t * n + i) * k + j

    def row(*terms):
        out = np.zeros(size)
        for index, value in terms:
            out[index] += value
        return out

    A, b, E, e = [], [], [], []
    for t in range(T):
        for j in range(k):
            (E if fill else A).append(row(*((at(t, i, j), 1) for i in range(n))))
            (e if fill else b).append(1)
        for i in range(n):
            A.append(row(*((at(t, i, j), 1) for j in range(k))))
            b.append(1)

    def add(signed, limit):
        if np.isfinite(limit):
            A.append(row(*signed))
            b.append(limit)

    sets = list(chain.from_iterable(combinations(range(n), r) for r in range(1, n + 1)))
    for name, f, extra in demands:
        for s, t in permutations(range(T), 2):
            d = f(ratio(u[s], u[t]))
            for j in range(k):
                if name == "entries":
                    for i in range(n):
                        add([(at(s, i, j), 1), (at(t, i, j), -1)], extra * d)
                elif name == "ordered":
                    for i in range(n):
                        terms = [(at(s, i, h), 1) for h in range(j + 1)]
                        add(terms + [(at(t, i, h), -1) for h in range(j + 1)], d)
                elif name == "variation":
                    for ads in sets if extra is None else extra:
                        add([(at(s, i, j), 1) for i in ads] + [(at(t, i, j), -1) for i in ads], d)
                elif name == "aligned":
                    gap = f(ratio(v[s], v[t]))
                    if extra == "equal" and (v[s] != v[t]).any():
                        continue
                    quotient = alpha[s] / alpha[t]
                    for order in permutations(range(n)):
                        if any(quotient[a] < quotient[c] for a, c in pairwise(order)):
                            continue
                        for i in range(1, n + 1):
                            terms = []
                            for a in order[:i]:
                                terms += [(at(s, a, h), -1) for h in range(j + 1)]
                                terms += [(at(t, a, h), 1) for h in range(j + 1)]
                            add(terms, i * gap)
    best = [sum(x * y for x, y in zip(sorted(row_, reverse=True), beta, strict=False)) for row_ in u.tolist()]
    welfare = [[(at(t, i, j), u[t, i] * beta[j]) for i in range(n) for j in range(k)] for t in range(T)]
    cost = np.zeros(size)
    if objective == "welfare":
        for t in range(T):
            for index, value in welfare[t]:
                cost[index] -= q[t] * value
    else:
        cost[-1] = -1
        for t in range(T):
            if best[t] > 0:
                A.append(row((size - 1, best[t]), *((index, -value) for index, value in welfare[t])))
                b.append(0)
    found = linprog(
        cost,
        A_ub=np.array(A) if A else None,
        b_ub=b or None,
        A_eq=np.array(E) if E else None,
        b_eq=e or None,
        bounds=[(0, 1)] * size,
    )
    assert found.status == 0, found.message
    return -found.fun


def quadrature(give, values, slots, factors=1.0):
    """The truthful payments of a rule, a function of effective values and slots; one user."""
    v, beta = np.asarray(values, dtype=float), np.asarray(slots, dtype=float)
    alpha = np.broadcast_to(factors, v.shape)
    out = np.zeros(len(v))
    for i in range(len(v)):

        def clicks(z, i=i):
            bids = v * alpha
            bids[i] = alpha[i] * z
            return float(alpha[i] * (give(bids[None, :], len(beta))[0, i] @ beta))

        kinks = np.unique(np.delete(v * alpha, i) / alpha[i])
        ends = np.union1d(np.linspace(0.0, v[i], 33), kinks[(kinks > 0) & (kinks < v[i])])
        area = sum(quad(clicks, a, b, limit=200, epsabs=1e-12, epsrel=1e-11)[0] for a, b in pairwise(ends))
        out[i] = v[i] * clicks(v[i]) - area
    return out
