"""Exact programs: all mixtures, the best single classifier, and minimum cuts for all functions."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import BackendError, DeclarationError
from forcopt.fairness import PairwiseFairness
from forcopt.language.model import Model
from forcopt.learning.finite import AllFunctionsOracle
from forcopt.models.fair_classification.decision import RandomizedClassifier
from forcopt.models.fair_classification.problem import FairClassification
from forcopt.models.fair_classification.tolerances import SAME
from forcopt.problem import Handles, Outcome
from forcopt.status import Status


@FairClassification.formulation(
    "lp",
    exact=True,
    cites="Jagielski et al. (2019), program (2); Jung et al. (2021), program (1) to (3)",
)
def lp(problem: FairClassification, model: Model) -> Handles:
    """Linear program with a column for each hypothesis (a probability for each row, for `AllFunctions`).

    For classes that can be listed: `Finite`, `Thresholds`, `Halfspaces` of at most two features and few
    records, `AllFunctions`.

    Returns
    -------
    Handles
        ``rates``, the `GroupRates` (or `ClassRates`) as expressions; ``error``; ``fairness``, the constraints
        of the notion.
    """
    return write(problem, model, single=False)


def write(problem: FairClassification, model: Model, single: bool) -> Handles:
    """Write the problem over mixtures, or over single hypotheses, into a model."""
    lagrangian, moments = problem.lagrangian, problem.moments
    wanted = sp.csr_array(sp.vstack([lagrangian.costs[None, :], moments.matrix]))
    hull = problem.oracle.hull(model, wanted, single)
    error = hull.mapped[0] + lagrangian.base
    rates = moments.rates(hull.mapped[1:])
    fairness = problem.demand.rows(rates)
    model.subject_to(fairness)
    return Handles(
        objective=error,
        decision=lambda solution: problem.policy(*hull.mixture(solution)),
        start=lambda decision: hull.start(*problem.mixture(decision)),
        rates=rates,
        error=error,
        fairness=fairness,
    )


@FairClassification.algorithm("milp", cites="Jung et al. (2021), section 3.2", rank="published")
def milp(problem: FairClassification, *, backend: str = "highs", time_limit: float | None = None) -> Outcome:
    """The fair classifier of least error that draws no lots, by a mixed-integer program.

    Exact among single classifiers (halfspaces: among those with the margin). Mixtures can do better, so it
    proves no bound on the problem. If no single classifier is fair it fails with these words, as a mixture
    may still be fair.

    Parameters
    ----------
    problem : FairClassification
        With hypotheses that can be listed, `AllFunctions`, or `Halfspaces` of any dimension.
    backend : str, default "highs"
        Any that takes integer programs.
    """
    model = Model("single classifier")
    handles = write(problem, model, single=True)
    model.minimize(handles.error)
    solution = model.solve(backend, time_limit=time_limit, gap=0.0)
    if solution.point is None:
        none = solution.status is Status.INFEASIBLE
        message = "proved: no single classifier is fair; a mixture may be" if none else solution.message
        return Outcome(None, status=Status.FAILED if none else solution.status, message=message)
    proved = (
        "the best single classifier" if solution.status is Status.OPTIMAL else "not proved to be the best"
    )
    return Outcome(
        handles.decision(solution), iterations=solution.nodes, message=f"{proved}; {solution.message}"
    )


SCALE = 2.0**50
"""Capacities are rounded to multiples of this fraction of the largest."""


@FairClassification.algorithm(
    "min-cut", exact=True, cites="Picard (1976) for a budget of 0; Eisner and Severance (1976) for the budget"
)
def min_cut(problem: FairClassification, *, time_limit: float | None = None) -> Outcome:
    """Minimum cuts of the graph of pairs: `AllFunctions` with one `PairwiseFairness` and gamma 0.

    If every pair must hold, the best labelling is a closure of least cost: a minimum cut, and no mixture is
    better, as the matrix is totally unimodular. With a budget, the price tau of unfairness is sought: at a
    price, a pair (i, j) is an arc of capacity ``tau * share``, and the least ``error + tau * unfairness`` is
    a cut. Every cut is a line in tau; from two lines, the next price is where they meet, until no cut lies
    below. The decision mixes the last two cuts, so that the budget is spent.

    Parameters
    ----------
    problem : FairClassification
        With `AllFunctions` and one `PairwiseFairness`.
    time_limit : float, optional
        Seconds, checked between cuts: the mixture of the best two cuts so far is fair, and every cut proves a
        bound.

    Raises
    ------
    DeclarationError
        For other hypotheses, notions or a positive gamma.
    """
    deadline = Deadline(time_limit)
    oracle, notion = problem.oracle, problem.constraint
    if not isinstance(oracle, AllFunctionsOracle):
        raise DeclarationError("min-cut needs hypotheses=AllFunctions()")
    if not isinstance(notion, PairwiseFairness) or notion.gamma != 0.0:
        raise DeclarationError(f"min-cut needs one PairwiseFairness with gamma 0, not {notion!r}")
    count = len(oracle.rows)
    costs = np.bincount(oracle.place, problem.lagrangian.costs, count)
    arcs, shares = oracle.place[notion.pairs], notion.shares
    kept = (shares > 0) & (arcs[:, 0] != arcs[:, 1])
    arcs, shares = arcs[kept], shares[kept]
    calls = 0

    def unfairness(labels: Array) -> float:
        return float(shares @ (labels[arcs[:, 0]] & ~labels[arcs[:, 1]]))

    def cut(price: float | None) -> Array:
        nonlocal calls
        calls += 1
        total = np.abs(costs).sum() + SAME
        capacity = np.full(len(shares), 2 * total) if price is None else price * shares
        return _closure(costs, arcs, capacity, total)

    base = problem.lagrangian.base
    unconstrained = costs < 0
    if unfairness(unconstrained) <= notion.budget + SAME:
        return Outcome(_mixture(problem, oracle, [unconstrained], [1.0]), iterations=calls)
    fair = cut(None)
    if notion.budget == 0.0:
        return Outcome(_mixture(problem, oracle, [fair], [1.0]), iterations=calls)
    below, above = fair, unconstrained  # in unfairness, around the budget
    bound = base + float(costs @ unconstrained)
    status = None
    while True:
        slope = unfairness(above) - unfairness(below)
        share = (notion.budget - unfairness(below)) / slope
        if deadline.passed:
            status = Status.FEASIBLE
            break
        price = float(costs @ below - costs @ above) / slope
        found = cut(price)
        least = float(costs @ found) + price * unfairness(found)
        bound = max(bound, base + least - price * notion.budget)
        if least >= costs @ below + price * unfairness(below) - SAME:
            break
        if unfairness(found) <= notion.budget:
            below = found
        else:
            above = found
    decision = _mixture(problem, oracle, [below, above], [1.0 - share, share])
    message = "" if status is None else deadline.end
    return Outcome(decision, bound=bound, status=status, iterations=calls, message=message)


def _mixture(
    problem: FairClassification, oracle: AllFunctionsOracle, labels: list[Array], weights: list[float]
) -> RandomizedClassifier:
    return problem.policy(weights, [oracle.hypothesis(x) for x in labels])


def _closure(costs: Array, arcs: Array, capacity: Array, total: float) -> Array:
    """Labels of least ``costs . labels + sum of the capacities of arcs from 1 to 0``, by a maximum flow."""
    from ortools.graph.python import max_flow

    n = len(costs)
    source, sink = n, n + 1
    good, bad = np.flatnonzero(costs < 0), np.flatnonzero(costs > 0)
    # the first arc carries nothing: without an arc into the sink, ortools gives no cut
    tails = np.concatenate([[source], np.full(len(good), source), bad, arcs[:, 0]])
    heads = np.concatenate([[sink], good, np.full(len(bad), sink), arcs[:, 1]])
    sizes = np.concatenate([[0.0], -costs[good], costs[bad], np.minimum(capacity, 2 * total)])
    flow = max_flow.SimpleMaxFlow()
    whole = np.round(sizes * (SCALE / (2 * total))).astype(np.int64)
    flow.add_arcs_with_capacity(tails.astype(np.int32), heads.astype(np.int32), whole)
    status = flow.solve(source, sink)
    if status != flow.OPTIMAL:
        raise BackendError(f"the maximum flow failed with status {status}")
    labels = np.zeros(n + 2, dtype=bool)
    labels[flow.get_source_side_min_cut()] = True
    return labels[:n]
