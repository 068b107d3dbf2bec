"""Multipliers of cones, as the change of the optimum when declared constraints are shifted.

A constraint ``F x`` in a cone K has a multiplier z in the dual cone: for small r, ``F x - r`` in K moves the
optimum of a minimisation by ``z @ r``. A semidefinite condition is a block of cones of the program. An atom f
in a row ``w f(x) + a <= b`` is a column s; some bridges write ``s >= f(x)`` as one cone with s as an entry.
Stationarity in s gives ``z_s + d = c - sum y w`` over the rows that read it, with their multipliers y, its
reduced cost d and its coefficient c in the objective. The cone's multiplier is split among them in the
proportion of these terms: the parts are in the dual cone, and they keep the Lagrangian.

References
----------
S. Boyd and L. Vandenberghe, *Convex Optimization*, Cambridge University Press (2004), section 5.9.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.backends.base import RawResult
from forcopt.compile.program import Program, triangle
from forcopt.errors import DeclarationError
from forcopt.language.constraint import Condition, Constraint
from forcopt.language.matrices import Semidefinite
from forcopt.language.relations import AtomRelation, Product
from forcopt.loops.tolerances import STATIONARY


@dataclass(frozen=True, eq=False)
class ConeDuals:
    """The multipliers of the cones of one condition or atom, in the model's sense.

    Attributes
    ----------
    values : Array
        Shape ``(cones, size)``. The entry of an atom's element includes the reduced cost of its column.
    element : int
        The entry that is the atom's element; -1 for a condition.
    """

    values: Array
    element: int


def declared_cone_duals(program: Program, result: RawResult) -> dict[Any, ConeDuals] | None:
    """The multipliers of the cones that a condition or an atom of the model declares.

    Parameters
    ----------
    program : Program
        Was solved.
    result : RawResult
        The optimum.

    Returns
    -------
    dict[Any, ConeDuals] or None
        By condition and relation. None if the backend reports no multipliers, or multipliers of another
        program.
    """
    x, rows, costs, cones = result.x, result.row_dual, result.reduced_cost, result.cone_duals
    if x is None or rows is None or costs is None or cones is None:
        return None
    if not program.cones:
        return {}
    stage = program.stages[0]
    gradient = stage.cost if stage.quadratic is None else stage.cost + stage.quadratic @ x
    left = gradient - program.rows.weighted_sum(rows[: program.rows.count], program.columns) - costs
    for cone, dual in zip(program.cones, cones, strict=True):
        left = left - cone.matrix.T @ dual
    if np.abs(left).max(initial=0.0) > STATIONARY * max(1.0, np.abs(gradient).max(initial=0.0)):
        return None
    out: dict[Any, ConeDuals] = {}
    for cone, dual in zip(program.cones, cones, strict=True):
        if cone.source is None:
            continue
        found, element = stage.sign * dual.reshape(-1, cone.size), -1
        if isinstance(cone.source, AtomRelation):
            columns = cone.source.result_columns
            read = sp.csc_array(cone.matrix[: cone.size])[:, [int(columns[0])]]
            element = int(read.nonzero()[0][0])
            found[:, element] += stage.sign * costs[columns]
        out[cone.source] = ConeDuals(found, element)
    return out


def semidefinite_duals(condition: Semidefinite, duals: ConeDuals) -> Array:
    """The symmetric multipliers of semidefinite matrices, in the shape in which they were declared.

    Parameters
    ----------
    condition : Semidefinite
        The matrices.
    duals : ConeDuals
        Of their lower triangles.
    """
    order = condition.shape[-1]
    rows, columns = np.tril_indices(order)
    half = np.where(rows == columns, 1.0, 0.5)  # an entry below the diagonal counts for two of the matrix
    out: Array = (duals.values * half)[:, triangle(order)]
    return out.reshape(condition.shape)


def row_cone_duals(constraint: Constraint, row_duals: Array, duals: Mapping[Any, ConeDuals]) -> Array:
    """The multipliers of the cones that the rows of a constraint declare by one atom each.

    Parameters
    ----------
    constraint : Constraint
        Of rows.
    row_duals : Array
        Their multipliers, of the constraint's shape.
    duals : Mapping[Any, ConeDuals]
        See `declared_cone_duals`.

    Returns
    -------
    Array
        Shape ``(*constraint.shape, size)``.

    Raises
    ------
    DeclarationError
        Where a row does not read exactly one element of an atom that is a cone by itself.
    """
    model, name = constraint.model, constraint.name
    matrix = sp.csr_array(constraint.expression.ravel().linear_rows().matrix(model.column_count))
    matrix.sum_duplicates()
    owner: dict[int, tuple[Any, int]] = {}
    for relation in model.relations:
        curved = isinstance(relation, AtomRelation) or (
            isinstance(relation, Product) and not model.is_affine(relation.result)
        )
        if curved and not isinstance(relation, Condition):
            owner.update({int(c): (relation, i) for i, c in enumerate(relation.result_columns)})
    out = []
    for row, price in enumerate(row_duals.ravel()):
        entries = range(matrix.indptr[row], matrix.indptr[row + 1])
        read = [(int(matrix.indices[k]), matrix.data[k]) for k in entries if matrix.data[k]]
        curved_ones = [(*owner[column], weight) for column, weight in read if column in owner]
        label = f"the constraint {name!r}" + (f", row {row}" if constraint.shape else "")
        if len(curved_ones) != 1:
            raise DeclarationError(
                f"{label} reads {len(curved_ones)} elements of atoms; only a row that reads one has the "
                "multiplier of a cone"
            )
        relation, position, weight = curved_ones[0]
        if relation not in duals:
            kind = relation.atom.name if isinstance(relation, AtomRelation) else relation.kind
            raise DeclarationError(
                f"{label}: {kind} did not go to the backend as a cone by itself, so that the row has no "
                "multiplier of a cone; dual(...) gives its shadow price"
            )
        whole = duals[relation].values[position]
        total = whole[duals[relation].element]
        share = -price * weight / total if total else 0.0
        out.append(np.clip(share, 0.0, 1.0) * whole)
    if len({len(z) for z in out}) > 1:
        raise DeclarationError(f"the rows of {name!r} are cones of different sizes")
    return np.array(out).reshape(*constraint.shape, -1)
