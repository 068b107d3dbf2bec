"""Fairness notions as rows of a linear program, for oracles: written from their definitions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import linprog

from forcopt import DeclarationError, Problem
from forcopt.fairness import (
    AllOf,
    BoundedGroupLoss,
    DemographicParity,
    DemographicParityRatio,
    EqualizedOdds,
    EqualizedOddsRatio,
    EqualOpportunity,
    EqualOpportunityRatio,
    ErrorParity,
    FalsePositiveParity,
    Notion,
    PredictiveValues,
    RateParity,
    RateRatio,
)

__all__ = ["declared", "defined", "least", "random_notion", "rows_of"]

Rows = tuple[list[np.ndarray], list[float]]


def random_notion(rng: np.random.Generator) -> Notion:
    """One notion, or two by ``&``; tolerances are often 0."""
    parities = (EqualizedOdds, EqualOpportunity, FalsePositiveParity, DemographicParity, ErrorParity)
    tolerances = [0.0, 0.0, 0.01, 0.1, 0.5, 1.0]

    def one() -> Notion:
        if rng.random() < 0.2:
            ratios = (DemographicParityRatio, EqualizedOddsRatio, EqualOpportunityRatio)
            return ratios[int(rng.integers(3))](float(rng.choice([0.0, 0.5, 0.8, 1.0])))
        kind = int(rng.integers(len(parities) + 2))
        if kind < len(parities):
            return parities[kind](float(rng.choice(tolerances)))
        if kind == len(parities):
            return BoundedGroupLoss(float(rng.choice([0.0, 0.1, 0.25, 0.5, 1.0])))
        positive, negative = rng.choice([0.0, 0.3, 0.5, 0.75, 1.0], size=2).tolist()
        return PredictiveValues(positive, negative)

    return one() & one() if rng.random() < 0.3 else one()


def defined(notion: Notion, mass: np.ndarray) -> bool:
    """Whether each group has the records over which the notion takes rates."""
    if isinstance(notion, AllOf):
        return all(defined(n, mass) for n in notion.notions)
    if isinstance(notion, EqualizedOdds | EqualizedOddsRatio):
        return bool((mass > 0).all())
    if isinstance(notion, EqualOpportunity | EqualOpportunityRatio):
        return bool((mass[:, 1] > 0).all())
    if isinstance(notion, FalsePositiveParity):
        return bool((mass[:, 0] > 0).all())
    return isinstance(notion, PredictiveValues) or bool((mass.sum(axis=1) > 0).all())


def rows_of(notion: Notion, part: np.ndarray, mass: np.ndarray) -> Rows:
    """Write a notion as ``matrix @ x <= side``.

    Parameters
    ----------
    notion : Notion
        Any over groups.
    part : numpy.ndarray
        How much of each cell (group, label) is predicted 1 by a unit of each column; shape ``(K, 2, v)``.
    mass : numpy.ndarray
        Of each cell; shape ``(K, 2)``.
    """
    if isinstance(notion, AllOf):
        each = [rows_of(n, part, mass) for n in notion.notions]
        return [r for rows, _ in each for r in rows], [b for _, sides in each for b in sides]
    k = len(mass)
    whole = mass.sum(axis=1)
    rows: list[np.ndarray] = []
    sides: list[float] = []
    if isinstance(notion, PredictiveValues):
        for a in range(k):
            # pos1 >= c (pos0 + pos1); m0 - pos0 >= d (m0 - pos0 + m1 - pos1)
            rows.append(notion.positive * (part[a, 0] + part[a, 1]) - part[a, 1])
            sides.append(0.0)
            rows.append(part[a, 0] - notion.negative * (part[a, 0] + part[a, 1]))
            sides.append(mass[a, 0] - notion.negative * whole[a])
        return rows, sides
    values: list[tuple[list[np.ndarray], list[float]]] = []
    if isinstance(notion, EqualizedOdds | EqualizedOddsRatio | FalsePositiveParity):
        values.append(([part[a, 0] / mass[a, 0] for a in range(k)], [0.0] * k))
    if isinstance(notion, EqualizedOdds | EqualizedOddsRatio | EqualOpportunity | EqualOpportunityRatio):
        values.append(([part[a, 1] / mass[a, 1] for a in range(k)], [0.0] * k))
    if isinstance(notion, DemographicParity | DemographicParityRatio):
        values.append(([(part[a, 0] + part[a, 1]) / whole[a] for a in range(k)], [0.0] * k))
    if isinstance(notion, ErrorParity | BoundedGroupLoss):
        values.append(
            (
                [(part[a, 0] - part[a, 1]) / whole[a] for a in range(k)],
                [mass[a, 1] / whole[a] for a in range(k)],
            )
        )
    for coefficients, constants in values:
        if isinstance(notion, BoundedGroupLoss):
            rows += coefficients
            sides += [notion.bound - c for c in constants]
            continue
        if isinstance(notion, RateRatio):  # these rates have no constant
            pairs = [(a, b) for a in range(k) for b in range(k) if a != b]
            rows += [notion.ratio * coefficients[b] - coefficients[a] for a, b in pairs]
            sides += [0.0] * len(pairs)
            continue
        assert isinstance(notion, RateParity)
        for a in range(k):
            for b in range(k):
                if a != b:
                    rows.append(coefficients[a] - coefficients[b])
                    sides.append(notion.tolerance - constants[a] + constants[b])
    return rows, sides


def least(
    cost: np.ndarray, rows: Rows, mixture: bool = False, upper: float | None = 1.0
) -> tuple[str, float]:
    """Status and value of the least ``cost @ x`` for x from 0 to `upper`, with sum 1 if `mixture`."""
    matrix, sides = rows
    found = linprog(
        cost,
        np.array(matrix) if matrix else None,
        np.array(sides) if matrix else None,
        np.ones((1, len(cost))) if mixture else None,
        [1.0] if mixture else None,
        bounds=(0, upper),
    )
    if found.status == 0:
        return "optimal", float(found.fun)
    return ("infeasible" if found.status == 2 else "unknown"), float("nan")


def declared(make: Callable[[], Problem], legal: bool) -> Problem | None:
    """The problem if it is legal; None if it is refused as it should be."""
    try:
        problem = make()
    except DeclarationError:
        if legal:
            raise
        return None
    if not legal:
        raise AssertionError("a problem with an undefined rate was accepted")
    return problem
