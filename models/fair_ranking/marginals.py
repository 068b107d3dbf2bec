"""Candidates times positions: the linear program of lotteries, and the integer program of one ranking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.fairness.ranking import Ranked
from forcopt.language.constraint import Constraint
from forcopt.language.expression import Expression
from forcopt.language.model import Model, Variable
from forcopt.models.fair_ranking.decision import Ranking
from forcopt.models.fair_ranking.problem import FairRanking
from forcopt.problem import Handles

__all__ = ["assignment", "milp", "unit_of"]


def unit_of(problem: FairRanking) -> float:
    """A power of two near the largest utility: objectives are counted in it."""
    given = problem.scores if problem.scores is not None else problem.utilities
    assert given is not None
    return float(2.0 ** np.round(np.log2(max(float(np.abs(given).max()), 1e-300))))


@FairRanking.formulation("assignment", exact=True, cites="Singh and Joachims (2018), section 3")
def assignment(problem: FairRanking, model: Model, reduce: bool = True) -> Handles:
    """One column for each candidate and position: its probability; a doubly substochastic matrix.

    Parameters
    ----------
    reduce : bool, default True
        Leave out candidates who are not among the k best of those whom the demands treat alike.

    Returns
    -------
    Handles
        ``marginals``, shape ``(kept, k)``; ``exposures``, shape ``(kept,)``; ``kept``; ``demands``, the
        constraints of the notion.
    """
    if problem.integer:
        raise DeclarationError("'assignment' finds lotteries; integer=True asks for one ranking: use 'milp'")
    return _write(problem, model, reduce)


@FairRanking.formulation("milp", exact=True, cites="Celis, Straszak and Vishnoi (2018), section 2")
def milp(problem: FairRanking, model: Model, reduce: bool = True) -> Handles:
    """The same with whole numbers: one ranking.

    Parameters
    ----------
    reduce : bool, default True
        See `assignment`.

    Returns
    -------
    Handles
        As of `assignment`.
    """
    if not problem.integer:
        raise DeclarationError("'milp' finds one ranking; declare the problem with integer=True")
    return _write(problem, model, reduce)


def _write(problem: FairRanking, model: Model, reduce: bool) -> Handles:
    kept = problem.kept if reduce else np.arange(problem.size)
    n, k = len(kept), problem.length
    x = model.variable(model.unused_name("position"), (n, k), lower=0.0, upper=1.0, integer=problem.integer)
    model.subject_to(x.sum(axis=0) == 1, name=model.unused_name("fill"))
    if n > 1:
        model.subject_to(x.sum(axis=1) <= 1, name=model.unused_name("once"))
    w = problem.position_weights
    e: Any = x @ w
    split = not problem.integer
    if split:
        # columns of their own: rounded products of weights and scores would break ties between lotteries
        e = model.variable(model.unused_name("exposure"), n, lower=0.0, upper=float(w[0]))
        model.subject_to(e == x @ w, name=model.unused_name("exposure_of"))

    def counts(codes: Array, groups: int) -> Expression:
        member = sp.csr_array((np.ones(n), (codes, np.arange(n))), shape=(groups, n))
        c = model.variable(
            model.unused_name("count"), (groups, k), lower=0.0, upper=k, integer=problem.integer
        )
        model.subject_to(c[:, 0] == member @ x[:, 0], name=model.unused_name("first"))
        if k > 1:
            model.subject_to(c[:, 1:] - c[:, :-1] == member @ x[:, 1:], name=model.unused_name("next"))
        return c + 0.0

    demands: list[Constraint] = []
    if problem.constraint is not None:
        ranked = Ranked(problem.candidates, e, counts, kept, x.sum(axis=1))
        demands = problem.constraint.rows(ranked)
        if demands:
            model.subject_to(demands)
    unit = unit_of(problem)
    if problem.scores is not None:
        objective = ((problem.scores[kept] / unit) * e).sum()
    else:
        assert problem.utilities is not None
        objective = ((problem.utilities[kept] / unit) * x).sum()

    def start(decision: Any) -> Mapping[Variable, Any]:
        found = problem.read(decision).marginals[kept].toarray()
        if found.sum() < k - 1e-6:
            raise DeclarationError("the decision ranks a candidate that this formulation leaves out")
        return {x: found, e: found @ w} if split else {x: found}

    return Handles(
        objective=objective,
        decision=lambda result: _read(problem, kept, result[x]),
        start=start,
        unit=unit,
        marginals=x,
        exposures=e,
        kept=kept,
        demands=demands,
    )


def _read(problem: FairRanking, kept: Array, values: Array) -> Any:
    if problem.integer:
        return Ranking(kept[np.argmax(values, axis=0)])
    return problem.lottery(marginals=tidy(kept, values, problem.size))


def tidy(kept: Array, values: Array, size: int) -> Any:
    """Marginals without a solver's noise: not negative, columns that sum to 1, rows to at most 1."""
    x = np.where(values > 1e-9, values, 0.0)
    for _ in range(3):
        x /= x.sum(axis=0)
        x /= np.maximum(x.sum(axis=1, keepdims=True), 1.0)
    x /= x.sum(axis=0)
    rows, columns = np.nonzero(x)
    return sp.csr_array((x[rows, columns], (kept[rows], columns)), shape=(size, values.shape[1]))
