"""The programs: a variable for each query, a row for each window and budget."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.language.model import Model, Variable
from forcopt.loops.solution import ModelSolution
from forcopt.models.adaptive_queries.ledger import fitted
from forcopt.models.adaptive_queries.schedule import QuerySchedule, Schedule
from forcopt.models.adaptive_queries.tolerances import CHOSEN
from forcopt.problem import Handles


@QuerySchedule.formulation("milp", exact=True, cites="Du and Dwork (2022), Theorems 10 to 17; packing")
def milp(problem: QuerySchedule, model: Model) -> Handles:
    """A binary for each query.

    Returns
    -------
    Handles
        ``answered``, shape ``(Q,)``.
    """
    return _write(problem, model, relaxed=False)


@QuerySchedule.formulation("lp", cites="consecutive ones: Fulkerson and Gross (1965)", whole="milp")
def lp(problem: QuerySchedule, model: Model) -> Handles:
    """A fraction of each query; whole at a vertex if all queries cost the same.

    Fractions are rounded down to the queries that fit, in the order of their fractions. The bound is the
    optimum over fractions.

    Returns
    -------
    Handles
        ``answered``, shape ``(Q,)``.
    """
    return _write(problem, model, relaxed=True)


def _write(problem: QuerySchedule, model: Model, relaxed: bool) -> Handles:
    costs, budgets = problem.units
    first, last = problem.touched
    capacity = problem.capacity
    possible = problem.answerable
    z = model.variable(
        model.unused_name("answered"), len(first), lower=0, upper=possible.astype(float), integer=not relaxed
    )
    rows, columns = incidence(first, last)
    weights = problem.query_weights
    top = float(weights.max())
    # solvers' tolerances are absolute: the weights that count should be neither tiny nor huge
    unit = 1.0 if top == 0 or 1e-2 <= top <= 1e6 else 2.0 ** np.floor(np.log2(top))
    starts, row = np.unique(rows, return_inverse=True)
    shape = (len(starts), len(first))
    if capacity is not None:  # whole coefficients: the relaxation has whole vertices
        matrix = sp.csr_array((np.ones(len(rows)), (row.ravel(), columns)), shape=shape)
        model.subject_to(matrix @ z <= max(capacity, 0), name=model.unused_name("budget"))
    else:
        for each, budget in zip(costs, budgets, strict=True):
            common = int(np.gcd.reduce(np.append(each, budget))) or 1
            if budget // common <= 2**30:  # whole rows: solvers' tolerances are below a unit
                coefficients, room = each // common, float(budget // common)
            else:
                coefficients, room = each / budget, 1.0
            matrix = sp.csr_array((coefficients[columns].astype(float), (row.ravel(), columns)), shape=shape)
            model.subject_to(matrix @ z <= room, name=model.unused_name("budget"))
    for group in problem.groups:
        model.subject_to(z[group].sum() <= 1, name=model.unused_name("one_of_a_group"))

    def decision(result: ModelSolution) -> Schedule:
        values = result[z]
        chosen = values > 0.5
        if relaxed or problem.evaluate(np.flatnonzero(chosen)).violations:
            order = np.lexsort((-weights, -np.round(values, 6)))
            chosen = fitted(problem, order[values[order] > CHOSEN])
        return problem.schedule(chosen)

    def start(decision: Schedule | Array) -> dict[Variable, Array]:
        queries = decision.queries if isinstance(decision, Schedule) else np.asarray(decision, dtype=np.int64)
        problem.evaluate(queries)
        values = np.zeros(len(first))
        values[queries] = 1
        return {z: values}

    return Handles(
        objective=(z * (weights / unit)).sum(), decision=decision, start=start, unit=unit, answered=z
    )


def incidence(first: Array, last: Array) -> tuple[Array, Array]:
    """Pair the windows with the queries on them.

    All windows have the same budget. If one is overspent, so is one where a query begins. Others are left
    out.

    Parameters
    ----------
    first, last : Array
        The first and the last window of each query, shape ``(Q,)``.

    Returns
    -------
    windows, queries : Array
        One entry of each for a pair.
    """
    starts = np.unique(first)
    low = np.searchsorted(starts, first)
    high = np.searchsorted(starts, last, side="right")
    count = high - low
    columns = np.repeat(np.arange(len(first)), count)
    offset = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    return starts[np.repeat(low, count) + offset], columns
