"""Buckets of neighboring counts at the least deviation from their means: DAWA's first stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from pydantic import Field, model_validator

from forcopt.arrays import Array, as_numbers
from forcopt.clock import Deadline
from forcopt.declaration import Numbers
from forcopt.errors import DeclarationError
from forcopt.language.model import Model
from forcopt.loops.solution import ModelSolution
from forcopt.problem import Evaluation, Handles, Outcome, Problem
from forcopt.status import Status

__all__ = ["IntervalPartition", "Partition", "shortest"]


@dataclass(frozen=True, eq=False)
class Partition:
    """Buckets of consecutive counts.

    Attributes
    ----------
    starts : Array
        Where each bucket begins, increasing from 0; shape ``(buckets,)``.
    estimates : Array
        The mean of its bucket for each count, shape ``(n,)``.

    Examples
    --------
    >>> from forcopt.models import IntervalPartition
    >>> s = IntervalPartition([1, 1, 2, 9, 8], penalty=2.0).solve()
    >>> s.decision.starts.tolist(), s.decision.estimates.round(2).tolist()
    ([0, 3], [1.33, 1.33, 1.33, 8.5, 8.5])
    """

    starts: Array
    estimates: Array

    def __repr__(self) -> str:
        return f"<{len(self.starts)} buckets of {len(self.estimates)} counts>"


class IntervalPartition(Problem):
    """Divide ordered counts into buckets: the least sum of deviations from the means, and a penalty a bucket.

    Attributes
    ----------
    counts : Numbers
        In their order, shape ``(n,)``.
    penalty : float
        For each bucket, at least 0.

    Raises
    ------
    DeclarationError
        Naming the field, the value and the rule.

    References
    ----------
    Li, Hay, Miklau, Wang: A data- and workload-aware algorithm for range queries under differential privacy.
    PVLDB 7, 2014. Pujol et al. (2020), appendix A.1.

    Examples
    --------
    >>> from forcopt.models.fair_decisions import IntervalPartition
    >>> s = IntervalPartition([10, 11, 9, 50, 52, 3, 3, 4], penalty=2.0).solve()
    >>> s.decision.starts.tolist(), round(s.objective, 4)
    ([0, 3, 5], 11.3333)
    """

    family: ClassVar[str] = "decisions"
    sense: ClassVar[Literal["min", "max"]] = "min"
    default_method: ClassVar[str] = "dynamic"

    counts: Numbers
    penalty: float = Field(ge=0.0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.counts.ndim != 1 or not self.counts.size:
            raise DeclarationError(
                f"counts have shape {self.counts.shape}; there must be a list of at least one"
            )
        return self

    @cached_property
    def costs(self) -> Array:
        """The cost of the bucket from i up to but without j, shape ``(n, n + 1)``; infinite for j <= i."""
        n = len(self.counts)
        out = np.full((n, n + 1), np.inf)
        for i in range(n):
            tail = self.counts[i:]
            means = np.cumsum(tail) / np.arange(1, n - i + 1)
            away = np.abs(tail[:, None] - means)  # member by last member
            out[i, i + 1 :] = np.triu(away).sum(axis=0) + self.penalty
        return out

    def partition(self, starts: Any) -> Partition:
        """The decision whose buckets begin there."""
        s = as_numbers(starts, "the starts").astype(np.int64)
        n = len(self.counts)
        if s.ndim != 1 or not len(s) or s[0] != 0 or (np.diff(s) <= 0).any() or s[-1] >= n:
            raise DeclarationError(f"the starts are {s.tolist()}; they must increase from 0 to below {n}")
        sizes = np.diff(np.r_[s, n])
        return Partition(s, np.repeat(np.add.reduceat(self.counts, s) / sizes, sizes))

    def evaluate(self, decision: Partition | Any) -> Evaluation:
        """Evaluate a partition by its deviations and the number of its buckets."""
        chosen = self.partition(decision.starts if isinstance(decision, Partition) else decision)
        deviation = float(np.abs(self.counts - chosen.estimates).sum())
        metrics = {"deviation": deviation, "buckets": float(len(chosen.starts))}
        return Evaluation(deviation + self.penalty * len(chosen.starts), {}, metrics)


def shortest(
    n: int, lengths: Array, cost: Callable[[Array, int], Array], deadline: Deadline | None = None
) -> Array | None:
    """Give where the buckets of a cheapest partition of n counts begin.

    Parameters
    ----------
    n : int
        At least 1.
    lengths : Array
        That buckets may have, 1 among them.
    cost : Callable
        Of the buckets from each of some starts up to but without an end.
    deadline : Deadline, optional
        After it the answer is None.
    """
    best, before = np.full(n + 1, np.inf), np.zeros(n + 1, dtype=np.int64)
    best[0] = 0.0
    for j in range(1, n + 1):
        if deadline is not None and deadline.passed:
            return None
        i = j - lengths[lengths <= j]
        reach = best[i] + cost(i, j)
        at = int(np.argmin(reach))
        best[j], before[j] = reach[at], i[at]
    starts = []
    while n:
        n = int(before[n])
        starts.append(n)
    return np.array(starts[::-1])


def _partition(problem: IntervalPartition, lengths: Array, time_limit: float | None) -> Outcome:
    costs = problem.costs
    found = shortest(len(problem.counts), lengths, lambda i, j: costs[i, j], Deadline(time_limit))
    if found is None:
        return Outcome(None, status=Status.LIMIT, message="the time limit passed before the last count")
    return Outcome(problem.partition(found))


@IntervalPartition.algorithm("dynamic", exact=True, cites="Li, Hay, Miklau and Wang (2014)")
def dynamic(problem: IntervalPartition, *, time_limit: float | None = None) -> Outcome:
    """Take the shortest path over the ends of buckets; O(n^2) arcs."""
    return _partition(problem, np.arange(len(problem.counts), 0, -1), time_limit)


@IntervalPartition.algorithm("powers-of-two", exact=False, cites="Li, Hay, Miklau and Wang (2014)")
def powers_of_two(problem: IntervalPartition, *, time_limit: float | None = None) -> Outcome:
    """As `dynamic`, over buckets of 1, 2, 4, 8, ... counts only."""
    return _partition(problem, 2 ** np.arange(len(problem.counts).bit_length())[::-1], time_limit)


@IntervalPartition.formulation("lp", exact=True, cites="interval matrices are totally unimodular")
def lp(problem: IntervalPartition, model: Model) -> Handles:
    """A variable for each bucket, a row for each count: a unit flow, whole at every vertex.

    The variables are declared whole, so that a solver that ends within a face of ties gives a partition too.

    Returns
    -------
    Handles
        ``takes``, one for each bucket.
    """
    n = len(problem.counts)
    first, last = np.triu_indices(n)  # first and last member
    takes = model.variable(model.unused_name("takes"), len(first), lower=0, upper=1, integer=True)
    leaves = sp.csr_array((np.ones(len(first)), (first, np.arange(len(first)))), shape=(n, len(first)))
    after = sp.csr_array((np.ones(len(first)), (last + 1, np.arange(len(first)))), shape=(n + 1, len(first)))[
        :n
    ]
    source = np.zeros(n)
    source[0] = 1.0
    model.subject_to((leaves - after) @ takes == source, name=model.unused_name("path"))

    def decision(result: ModelSolution) -> Partition:
        return problem.partition(np.sort(first[result[takes] > 0.5]))

    return Handles(objective=(takes * problem.costs[first, last + 1]).sum(), decision=decision, takes=takes)
