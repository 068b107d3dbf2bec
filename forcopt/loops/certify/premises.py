"""The premises of a proof: roundings before exact arithmetic began."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from flint import fmpq

from forcopt.language.model import Model
from forcopt.language.relations import AtomRelation, ParameterProduct
from forcopt.loops.certify.definite import is_semidefinite
from forcopt.loops.exact_lp import rational

__all__ = ["NOT_CONVEX", "premises"]

NOT_CONVEX = "which is not proved to be convex"
"""Stands in a premise that keeps an optimum from being proved."""

_LARGEST = 60
"""Forms of more variables are not proved to be convex: too slow."""


def premises(model: Model) -> Iterator[str]:
    """List the roundings: forms into sums of squares, slopes into numbers, parameters into products."""
    relations = model.needed_relations()
    for relation in relations:
        if not isinstance(relation, AtomRelation):
            continue
        name = model.block_of(int(relation.result_columns[0])).name
        if relation.kind == "sum_squares" and relation.parameter is not None:
            form, root = relation.parameter
            apart = (root.T @ root - form).tocsr()
            off = float(np.abs(apart.data).max(initial=0.0))
            if off:
                proved = _is_convex(form)
                words = "" if proved else f", {NOT_CONVEX}"
                yield f"{name} is the sum of squares of its form{words}, up to {off:.1g} in a coefficient"
        elif relation.kind == "piecewise_linear":
            yield f"{name} has the slopes that its points have in floating point"
    if any(isinstance(r, ParameterProduct) for r in relations):
        yield "products with parameters are computed in floating point"


def _is_convex(form: object) -> bool:
    """Whether a quadratic form has no negative eigenvalue, decided exactly."""
    dense = np.asarray(form.toarray())  # type: ignore[attr-defined]
    if len(dense) > _LARGEST:
        return False
    lower = [
        (rational(dense[i, j]) + rational(dense[j, i])) / fmpq(2)
        for i in range(len(dense))
        for j in range(i + 1)
    ]
    return is_semidefinite(lower, len(dense))
