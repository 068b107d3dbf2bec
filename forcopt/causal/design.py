"""Design matrices of structural equations: terms of attributes, their interactions, and mediators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from forcopt.arrays import Array

__all__ = ["Design"]

INTERCEPT = "1"


class Design:
    """The terms of one equation, and their values at given parents.

    A categorical attribute has a term ``G=b`` for each level but the first, a numeric one the terms ``age``
    and ``age>45`` for each knot (the excess over it, so that the effect is piecewise linear). Interactions
    are products of terms of different attributes, ``G=b:R=w``. A mediator has its name as term.

    Parameters
    ----------
    attributes : sequence of str
        The sensitive parents.
    mediators : sequence of str
        The other observed parents.
    levels : Mapping[str, tuple]
        Of the categorical attributes.
    knots : Mapping[str, tuple[float, ...]]
        Of the numeric attributes.
    interactions : {"pairwise", "none", "saturated"}
        Which products there are.
    """

    def __init__(
        self,
        attributes: Sequence[str],
        mediators: Sequence[str],
        levels: Mapping[str, tuple[Any, ...]],
        knots: Mapping[str, tuple[float, ...]],
        interactions: str,
    ) -> None:
        self.attributes, self.mediators = tuple(attributes), tuple(mediators)
        self.levels, self.knots = levels, knots
        order = {"none": 1, "pairwise": 2, "saturated": len(self.attributes)}[interactions]
        self._subsets = [
            subset
            for size in range(1, min(order, len(self.attributes)) + 1)
            for subset in combinations(self.attributes, size)
        ]
        self.terms = [INTERCEPT, *self.mediators, *self._products(self._names)]

    def _names(self, attribute: str) -> list[str]:
        if attribute in self.knots:
            return [attribute, *(f"{attribute}>{knot:g}" for knot in self.knots[attribute])]
        return [f"{attribute}={level}" for level in self.levels[attribute][1:]]

    def _products(self, names: Any) -> list[str]:
        found = []
        for subset in self._subsets:
            parts = [""]
            for attribute in subset:
                parts = [f"{p}:{name}" if p else name for p in parts for name in names(attribute)]
            found += parts
        return found

    def block(self, attribute: str, values: Array) -> Array:
        """The terms of one attribute at its values, shape ``(n, terms)``."""
        if attribute in self.knots:
            x = np.asarray(values, dtype=float)
            return np.column_stack([x, *(np.maximum(x - knot, 0.0) for knot in self.knots[attribute])])
        return np.column_stack(
            [np.zeros((len(values), 0)), *(np.asarray(values) == v for v in self.levels[attribute][1:])]
        ).astype(float)

    def attribute_matrix(self, values: Mapping[str, Array], n: int) -> Array:
        """The terms of attributes and interactions, without the intercept, shape ``(n, terms)``."""
        blocks = {a: self.block(a, values[a]) for a in self.attributes}
        parts = [np.zeros((n, 0))]
        for subset in self._subsets:
            product = np.ones((n, 1))
            for attribute in subset:
                product = (product[:, :, None] * blocks[attribute][:, None, :]).reshape(n, -1)
            parts.append(product)
        return np.hstack(parts)

    def matrix(self, values: Mapping[str, Array], n: int) -> Array:
        """The values of all terms at given parents, shape ``(n, len(terms))``."""
        mediators = [np.asarray(values[m], dtype=float)[:, None] for m in self.mediators]
        return np.hstack([np.ones((n, 1)), *mediators, self.attribute_matrix(values, n)])
