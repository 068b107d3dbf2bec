"""Lotteries by exposures alone: a point of the permutahedron, whose facets are separated by sorting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.fairness.ranking import CounterfactualOrder, Ranked
from forcopt.language.constraint import Constraint
from forcopt.language.model import Model, Variable
from forcopt.models.fair_ranking.isotonic import regression_on_semiorder
from forcopt.models.fair_ranking.marginals import unit_of
from forcopt.models.fair_ranking.problem import FairRanking
from forcopt.problem import Handles

__all__ = ["exposures", "majorized"]

_VIOLATED = 2e-8
"""Of a prefix, relative to the sum of all weights."""


@FairRanking.formulation("exposures", exact=True, cites="Rado (1952); Singh and Joachims (2018), section 3")
def exposures(problem: FairRanking, model: Model, reduce: bool = True) -> Handles:
    """One column for each candidate: its exposure. The j largest sum to at most the first j weights.

    It composes: any linear demand on exposures may be added to the model.

    Parameters
    ----------
    reduce : bool, default True
        Candidates whom the demands treat alike form a cell. Only the k best of a cell have a column, in order
        of their scores. Use False if you add demands that distinguish members of a cell.

    Returns
    -------
    Handles
        ``exposures``, shape ``(kept,)``; ``kept``.
    """
    if problem.integer:
        raise DeclarationError("'exposures' finds lotteries; integer=True asks for one ranking: use 'milp'")
    if problem.scores is None:
        raise DeclarationError("'exposures' needs scores; utilities by position go by 'assignment'")
    w, k = problem.position_weights, problem.length
    flat = bool((w == w[0]).all())
    if any(limit.prefix is not None and not (flat and limit.prefix == k) for limit in problem.limits):
        raise DeclarationError("exposures do not determine the members of a prefix: use 'assignment'")
    kept = problem.kept if reduce else np.arange(problem.size)
    sums = np.concatenate([np.cumsum(w), np.full(len(kept) - k, w.sum())])
    top = float(w[0])
    e = model.variable(model.unused_name("exposure"), len(kept), lower=0.0, upper=top)
    model.subject_to(e.sum() == float(w.sum()), name=model.unused_name("total"))
    if reduce and problem.groupwise:
        codes = problem.cells[1][kept]
        inner = np.flatnonzero(codes[1:] == codes[:-1])
        if len(inner):
            model.subject_to(e[inner] >= e[inner + 1], name=model.unused_name("in_order"))
    if problem.constraint is not None:
        ranked = Ranked(problem.candidates, e + 0.0, lambda c, g: _Last(c, g, e, top), kept)
        for row in problem.constraint.rows(ranked):
            model.subject_to(row)

    # the facets at the ranking by score, or by the scores pooled along an order, which bind where demands on
    # groups do not
    best = np.argsort(-_pooled(problem)[kept], kind="stable")
    total = model.variable(model.unused_name("by_score"), k, lower=0.0, upper=sums[:k])
    model.subject_to(total[0] == e[best[0]], name=model.unused_name("first_sum"))
    if k > 1:
        model.subject_to(total[1:] - total[:-1] == e[best[1:k]], name=model.unused_name("sums"))

    def separate(value: Callable[[Any], Array]) -> Iterator[Constraint]:
        point = value(e)
        order = np.argsort(-point, kind="stable")
        over = np.cumsum(point[order]) - sums
        for j in _peaks(over, _VIOLATED * sums[-1]):
            yield e[np.sort(order[: j + 1])].sum() <= float(sums[j])

    model.lazy(separate, name=model.unused_name("majorization"))
    unit = unit_of(problem)

    def start(decision: Any) -> Mapping[Variable, Any]:
        found = problem.read(decision).exposures
        if found[kept].sum() < w.sum() * (1 - 1e-6):
            raise DeclarationError("the decision ranks a candidate that this formulation leaves out")
        return {e: found[kept], total: np.cumsum(found[kept][best[:k]])}

    def read(result: Any) -> Any:
        full = np.zeros(problem.size)
        full[kept] = majorized(result[e], sums)
        return problem.lottery(exposures=full)

    return Handles(
        objective=((problem.scores[kept] / unit) * e).sum(),
        decision=read,
        start=start,
        unit=unit,
        exposures=e,
        kept=kept,
    )


def _pooled(problem: FairRanking) -> Array:
    """The scores; their isotonic regression if there is a counterfactual order."""
    assert problem.scores is not None
    order = next((notion for notion in problem.notions if isinstance(notion, CounterfactualOrder)), None)
    if order is None:
        return problem.scores
    blocks = regression_on_semiorder(problem.scores, order.scores, order.slack, problem.position_weights)
    pooled = np.empty(problem.size)
    pooled[blocks.order] = np.repeat(blocks.means, np.diff(blocks.starts, append=problem.size))
    return pooled


def _peaks(over: Array, tolerance: float) -> Array:
    """The violated prefixes that are worse than their neighbours; the worst of them first."""
    left = np.concatenate([[-np.inf], over[:-1]])
    right = np.concatenate([over[1:], [-np.inf]])
    found = np.flatnonzero((over > tolerance) & (over >= left) & (over > right))
    return found[np.argsort(-over[found])][:40]


def majorized(point: Array, sums: Array) -> Array:
    """Move a point that a solver got right to its tolerance towards the mean until it is majorized."""
    e = np.maximum(point, 0.0)
    e *= sums[-1] / e.sum()
    mean = sums[-1] / len(e)
    over = np.cumsum(-np.sort(-e)) - sums
    room = sums - mean * np.arange(1, len(e) + 1)
    bad = (over > 1e-13 * sums[-1]) & (room > 1e-13 * sums[-1])
    share = float((over[bad] / (over[bad] + room[bad])).max(initial=0.0))
    return np.asarray((1.0 - share) * e + share * mean)


class _Last:
    """The numbers of members of groups among all k, for equal weights of positions."""

    def __init__(self, codes: Array, groups: int, e: Variable, weight: float) -> None:
        member = (codes[None, :] == np.arange(groups)[:, None]).astype(float)
        self.counts = (member / weight) @ e

    def __getitem__(self, key: Any) -> Any:
        return self.counts
