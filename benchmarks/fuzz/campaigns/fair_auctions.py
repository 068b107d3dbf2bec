"""Auctions, against linear programs with all rows for scipy."""

from __future__ import annotations

from functools import reduce
from itertools import combinations
from operator import and_
from typing import Any

import numpy as np
from scipy.optimize import linprog

from benchmarks.fuzz.case import ProblemCase
from forcopt.models import FairAuction
from forcopt.models.fair_auctions import (
    OrderedValueStability,
    PreferenceAligned,
    TotalVariationStability,
    ValueStability,
)

Array = np.ndarray


def apart(one: Array, other: Array) -> float:
    """The largest ratio of two users' values; infinite if one of them alone is 0."""
    some = one != other
    a, b = one[some], other[some]
    if not some.any():
        return 1.0
    return np.inf if (np.minimum(a, b) == 0).any() else float(np.maximum(a / b, b / a).max())


def limit(ell: float, ratio: float) -> float:
    """The stability function ``1 - ratio^(-2 ell)``."""
    return 1.0 - ratio ** (-2 * ell) if np.isfinite(ratio) else 1.0


class Program:
    """Rows ``a @ x <= b`` over the shares of T users, n ads and k slots, and one more variable."""

    def __init__(self, shape: tuple[int, int, int], fill: bool) -> None:
        self.shape, self.size = shape, int(np.prod(shape))
        self.rows: list[Array] = []
        self.sides: list[float] = []
        self.equal: list[Array] = []
        users, ads, slots = shape
        for t in range(users):
            for j in range(slots):
                column = self.unit(t, list(range(ads)), [j])
                if fill:
                    self.equal.append(column)
                else:
                    self.most(column, 1.0)
            for i in range(ads):
                self.most(self.unit(t, [i], list(range(slots))), 1.0)

    def unit(self, user: int, ads: list[int], slots: list[int]) -> Array:
        """The sum of some shares of a user."""
        x = np.zeros(self.shape)
        x[user, np.ix_(ads, slots)[0], np.ix_(ads, slots)[1]] = 1.0
        return np.append(x.ravel(), 0.0)

    def most(self, row: Array, side: float) -> None:
        """Add a row."""
        self.rows.append(row)
        self.sides.append(side)

    def largest(self, gain: Array) -> float | None:
        """The optimum, or None if there is no point."""
        equal = np.array(self.equal) if self.equal else None
        result = linprog(
            -gain,
            np.array(self.rows),
            self.sides,
            equal,
            None if equal is None else np.ones(len(equal)),
            bounds=(0, 1),
        )
        return -float(result.fun) if result.status == 0 else None


def demand(p: Program, kind: str, ell: float, extra: Any, values: Array, factors: Array) -> None:
    """Write a notion's rows for all ordered pairs of users."""
    users, ads, slots = p.shape
    u = values * factors
    for s in range(users):
        for t in range(users):
            if s == t:
                continue
            most = limit(ell, apart(u[s], u[t]))
            if kind == "preference":
                bare = apart(values[s], values[t])
                if ell == 0 and bare != 1:
                    continue
                most = limit(ell, bare) if ell else 0.0
                quotient = factors[s] / factors[t]
                for some in (c for m in range(1, ads + 1) for c in combinations(range(ads), m)):
                    rest = [i for i in range(ads) if i not in some]
                    if rest and quotient[list(some)].min() < quotient[rest].max() * (1 - 1e-12):
                        continue
                    for j in range(slots):
                        before = list(range(j + 1))
                        p.most(
                            p.unit(t, list(some), before) - p.unit(s, list(some), before), len(some) * most
                        )
                continue
            if kind == "total variation":
                sets = extra or [list(c) for m in range(1, ads + 1) for c in combinations(range(ads), m)]
            else:
                sets = [[i] for i in range(ads)]
            for chosen in sets:
                for j in range(slots):
                    span = list(range(j + 1)) if kind == "ordered" else [j]
                    side = most * (extra if kind == "value" else 1.0)
                    p.most(p.unit(s, list(chosen), span) - p.unit(t, list(chosen), span), side)


def auction(rng: np.random.Generator) -> ProblemCase:
    """Up to four users and ads; equal users, values of 0, empty slots, slots that are worth nothing."""
    users, ads = int(rng.integers(2, 5)), int(rng.integers(1, 5))
    slots = int(rng.integers(1, ads + 1))
    values = [
        rng.integers(0, 4, (users, ads)),
        rng.integers(1, 6, (users, ads)),
        2.0 ** rng.integers(-2, 4, (users, ads)),
        np.tile(rng.integers(1, 5, (1, ads)), (users, 1)),
    ][rng.integers(4)].astype(float)
    if rng.random() < 0.3:
        values[1] = values[0]
    given = [1.0, rng.random(ads) + 0.1, rng.integers(1, 4, (users, ads)) * 0.3][rng.integers(3)]
    factors = np.broadcast_to(given, values.shape)
    beta = np.sort(rng.choice([0, 0.25, 0.5, 1, 0.7], slots))[::-1]
    weights = None if rng.random() < 0.5 else rng.integers(0, 3, users).astype(float)
    fill, objective = bool(rng.random() < 0.6), str(rng.choice(["welfare", "ratio", "leximin"]))
    program, notions = Program((users, ads, slots), fill), []
    for kind in rng.choice(
        ["value", "ordered", "total variation", "preference"], rng.integers(0, 3), replace=False
    ):
        ell, extra = float(rng.choice([0.25, 1, 3])), None
        match kind:
            case "value":
                extra = float(rng.choice([1, 2]))
                notions.append(ValueStability(f=ell, factor=extra))
            case "ordered":
                notions.append(OrderedValueStability(f=ell))
            case "total variation":
                notions.append(TotalVariationStability(f=ell))
            case _:
                ell = float(rng.choice([0, ell]))
                notions.append(PreferenceAligned(slack=ell or None))
        demand(program, str(kind), ell, extra, values, factors)
    problem = FairAuction(
        values,
        beta,
        ad_factors=given,
        weights=weights,
        constraint=reduce(and_, notions) if notions else None,
        objective=objective,
        fill=fill,
    )
    worth = (values * factors)[:, :, None] * beta
    if objective == "welfare":
        shares = np.ones(users) if weights is None else weights
        best = program.largest(np.append((shares[:, None, None] * worth).ravel(), 0.0))
    else:  # the smallest ratio to a user's own best; leximin reports its first stage
        for t in range(users):
            own = float(np.sort(values[t] * factors[t])[::-1][:slots] @ beta)
            row = np.zeros(program.size + 1)
            row[:-1].reshape(program.shape)[t] = -worth[t]
            row[-1] = own
            if own > 0:
                program.most(row, 0.0)
        best = program.largest(np.append(np.zeros(program.size), 1.0))
    if best is None:
        return ProblemCase(problem, "infeasible")
    return ProblemCase(problem, "optimal", best, tolerance=2e-5)


CAMPAIGNS = {"fair-auction": auction}
