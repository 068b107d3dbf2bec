"""Lotteries by candidates and positions, and by isotonic regression; a ranking as a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.fairness.ranking import CounterfactualOrder, Ranked
from forcopt.language import Constraint, Expression, Model, Variable
from forcopt.models.fair_ranking.problem import FairRanking, Ranking
from forcopt.models.fair_ranking.tolerances import LEFT_OUT, NOISE, NOT_ZERO, SHARE
from forcopt.problem import Handles, Outcome
from forcopt.status import Status


class Blocks(NamedTuple):
    """An isotonic regression on a semiorder, as far as positions with different weights reach.

    Attributes
    ----------
    order : Array
        The entries, block by block, the greatest mean first; shape ``(n,)``.
    starts : Array
        Where each block starts in `order`, shape ``(blocks,)``.
    means : Array
        The mean of each block, shape ``(blocks,)``. A block whose positions have equal weights is not split
        further, so that its mean may be none of the regression's.
    finished : bool
        Whether the time sufficed.
    """

    order: Array
    starts: Array
    means: Array
    finished: bool


def regression_on_semiorder(
    values: Array, scores: Array, slack: float, weights: Array, deadline: Deadline | None = None
) -> Blocks:
    """The fit nearest to `values` in which i is at least j wherever ``scores[i] > scores[j] + slack``.

    Parameters
    ----------
    values, scores : Array
        Shape ``(n,)``.
    slack : float
        At least 0.
    weights : Array
        Of the first k positions; blocks are split only where these (and zeros after them) differ.
    deadline : Deadline, optional
        Of the whole run.

    Notes
    -----
    A block of the regression with mean m is split by its upper set of greatest total excess over m. For a
    semiorder an upper set is given by its least score t: everybody above ``t + slack`` belongs to it, and of
    those between, whoever exceeds m may. So each split takes O(n), after one sort.

    References
    ----------
    Maxwell, Muckstadt (Operations Research 1985), the splitting algorithm.
    """
    w = np.zeros(len(values) + 1)
    w[: len(weights)] = weights
    by_score = np.argsort(-scores, kind="stable")
    blocks: list[tuple[Array, int, float]] = []
    finished = True
    tasks = [(by_score, 0)]  # members by falling score, and the first of their positions
    while tasks:
        members, first = tasks.pop()
        mean = float(values[members].mean())
        upper = None
        if len(members) > 1 and w[first] > w[first + len(members) - 1]:
            if deadline is not None and deadline.passed:
                finished = False
            else:
                upper = _upper_set(values[members] - mean, scores[members], slack)
        if upper is None:
            blocks.append((members, first, mean))
        else:
            tasks.append((members[~upper], first + int(upper.sum())))
            tasks.append((members[upper], first))
    done, starts, means = zip(*blocks, strict=True)
    return Blocks(np.concatenate(done), np.array(starts), np.array(means), finished)


def _upper_set(excess: Array, scores: Array, slack: float) -> Array | None:
    """The upper set of greatest total excess, for falling scores; None if that is nothing or everything."""
    forced = np.searchsorted(-scores, -(scores + slack), side="left")  # how many are ahead of each
    total = np.concatenate([[0.0], np.cumsum(excess)])
    gains = np.concatenate([[0.0], np.cumsum(np.maximum(excess, 0.0))])
    end = np.searchsorted(-scores, -scores, side="right")  # everybody of at least this score
    worth = total[forced] + gains[end] - gains[forced]
    best = int(np.argmax(worth))
    if worth[best] <= SHARE * float(np.abs(excess).sum()):
        return None
    upper = np.zeros(len(scores), dtype=bool)
    upper[: forced[best]] = True
    upper[forced[best] : end[best]] = excess[forced[best] : end[best]] > 0
    return None if upper.all() or not upper.any() else upper


def pooled_exposures(blocks: Blocks, weights: Array) -> Array:
    """Each block shares its positions equally."""
    n = len(blocks.order)
    w = np.zeros(n)
    w[: len(weights)] = weights
    sizes = np.diff(blocks.starts, append=n)
    e = np.empty(n)
    e[blocks.order] = np.repeat(np.add.reduceat(w, blocks.starts) / sizes, sizes)
    return e


@FairRanking.algorithm("isotonic", exact=True, cites="Barlow et al. (1972); Maxwell and Muckstadt (1985)")
def isotonic(problem: FairRanking, *, time_limit: float | None = None) -> Outcome:
    """Pool candidates whose scores run against the order; each pool shares its positions.

    Parameters
    ----------
    time_limit : float, optional
        In seconds. Pools that are not split by then share their positions, which is fair but not optimal.

    Notes
    -----
    The dual of the order moves score from candidates to those ahead of them by more than the slack, and pays
    the best ranking of the scores that result. That payment is Schur-convex, and the isotonic regression of
    the scores is majorized by all others that can be reached, so it is the optimum for all weights at once.
    The pools are the regression's blocks. O(n log n), and O(n) for each split of a pool.
    """
    notions = problem.notions
    if len(notions) != 1 or not isinstance(notions[0], CounterfactualOrder):
        raise DeclarationError("'isotonic' takes a CounterfactualOrder, and nothing else")
    if problem.integer or problem.scores is None:
        raise DeclarationError("'isotonic' finds lotteries, for scores")
    w = problem.position_weights
    order = notions[0]
    blocks = regression_on_semiorder(problem.scores, order.scores, order.slack, w, Deadline(time_limit))
    decision = problem.lottery(exposures=pooled_exposures(blocks, w))
    if blocks.finished:
        return Outcome(decision, iterations=len(blocks.starts))
    return Outcome(decision, problem.best, Status.FEASIBLE, len(blocks.starts))


def unit_of(problem: FairRanking) -> float:
    """A power of two near the largest utility: objectives are counted in it."""
    given = problem.scores if problem.scores is not None else problem.utilities
    assert given is not None
    return float(2.0 ** np.round(np.log2(max(float(np.abs(given).max()), NOT_ZERO))))


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
    return write_assignment(problem, model, reduce)


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
    return write_assignment(problem, model, reduce)


def write_assignment(problem: FairRanking, model: Model, reduce: bool) -> Handles:
    """The program of `assignment`, or of `milp` if the problem asks for one ranking."""
    kept = problem.kept if reduce else np.arange(problem.size)
    n, k, name = len(kept), problem.length, model.unused_name
    x = model.variable(name("position"), (n, k), lower=0.0, upper=1.0, integer=problem.integer)
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
        c = model.variable(name("count"), (groups, k), lower=0.0, upper=k, integer=problem.integer)
        model.subject_to(c[:, 0] == member @ x[:, 0], name=name("first"))
        if k > 1:
            model.subject_to(c[:, 1:] - c[:, :-1] == member @ x[:, 1:], name=name("next"))
        return c + 0.0

    demands: list[Constraint] = []
    if problem.constraint is not None:
        demands = problem.constraint.rows(Ranked(problem.candidates, e, counts, kept, x.sum(axis=1)))
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
        if found.sum() < k - LEFT_OUT:
            raise DeclarationError("the decision ranks a candidate that this formulation leaves out")
        return {x: found, e: found @ w} if split else {x: found}

    def read(result: Any) -> Any:
        if problem.integer:
            return Ranking(kept[np.argmax(result[x], axis=0)])
        return problem.lottery(marginals=tidy(kept, result[x], problem.size))

    return Handles(objective, read, start, unit=unit, marginals=x, exposures=e, kept=kept, demands=demands)


def tidy(kept: Array, values: Array, size: int) -> Any:
    """Marginals without a solver's noise: not negative, columns that sum to 1, rows to at most 1."""
    x = np.where(values > NOISE, values, 0.0)
    for _ in range(3):
        x /= x.sum(axis=0)
        x /= np.maximum(x.sum(axis=1, keepdims=True), 1.0)
    x /= x.sum(axis=0)
    rows, columns = np.nonzero(x)
    return sp.csr_array((x[rows, columns], (kept[rows], columns)), shape=(size, values.shape[1]))
