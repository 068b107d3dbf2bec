"""Interchangeable candidates as classes, and lotteries over cohorts from lotteries over their numbers."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.language.expression import Expression
from forcopt.language.model import Model
from forcopt.language.variable import Variable
from forcopt.models.leximax_cohort.problem import LeximaxCohort
from forcopt.models.leximax_cohort.tolerances import UNUSED, WHOLE
from forcopt.numeric import laminar_lottery


class Classes:
    """Candidates who can change places, merged: a cohort is the number of its members of each class.

    Two candidates can change places if they have the same quotas and bounds, no shared household, and the
    same worth to every group, but for a group of each one's own. The mean of a lottery over its images under
    such changes is as good for every objective (all are concave and symmetric), so that one number for the
    own groups of a class is enough.

    Attributes
    ----------
    of : Array
        The class of each candidate, shape ``(n,)``.
    sizes, low, high : Array
        The numbers of candidates, and of members at least and at most; shape ``(classes,)``.
    worth : Array
        The utility of each counted group, in the problem's unit, for each member of a class;
        shape ``(classes, groups)``.
    counts : Array
        The number of merged groups, shape ``(groups,)``.
    names : list[str]
        Of the groups; a merged one has the name of its first.
    """

    def __init__(self, problem: LeximaxCohort) -> None:
        self.problem = problem
        V, n = problem.utilities / problem.unit, len(problem.utilities)
        alone = np.flatnonzero((V != 0).sum(axis=0) == 1)
        owners, first = np.unique((V[:, alone] != 0).argmax(axis=0), return_index=True)
        own, value = np.full(n, -1), np.zeros(n)
        own[owners], value[owners] = alone[first], V[owners, alone[first]]
        rest = np.setdiff1d(np.arange(V.shape[1]), own)
        shared = np.where(problem.household_rows.sum(axis=0) > 0, np.arange(1, n + 1), 0)
        facts = [problem.classes.members.T, *problem.bounds, value, shared, V[:, rest]]
        _, self.first, self.of, self.sizes = np.unique(
            np.column_stack(facts), axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        self.low, self.high = (ends[self.first] * self.sizes for ends in problem.bounds)
        merged = np.flatnonzero(np.isin(own[self.first], problem.counted))
        rest = rest[np.isin(rest, problem.counted)]
        mine = np.zeros((len(self.sizes), len(merged)))
        mine[merged, np.arange(len(merged))] = (value[self.first] / self.sizes)[merged]
        self.worth = np.hstack([mine, V[self.first][:, rest]])
        self.counts = np.concatenate([self.sizes[merged], np.ones(len(rest))])
        columns = np.concatenate([own[self.first][merged], rest])
        self.names = [problem.groups[j] if problem.groups else f"group {j}" for j in columns.tolist()]

    def write(self, model: Model, integer: bool) -> tuple[Variable, Expression]:
        """The numbers of members, and the utilities of the counted groups."""
        p = self.problem
        z = model.variable("members", len(self.sizes), lower=self.low, upper=self.high, integer=integer)
        model.subject_to(z.sum() == p.size)
        if p.classes.names:
            counts = z @ p.classes.members[:, self.first].T
            model.subject_to(counts.between(p.classes.least, p.classes.most))
        if p.household_rows.shape[0]:
            model.subject_to(p.household_rows[:, self.first] @ z <= 1)
        return z, z @ self.worth

    def rows(self) -> tuple[Array, Array, Array]:
        """The members of each row, shape ``(classes, rows)``; and what each row demands and allows, as whole
        numbers: the size, the quotas, the households."""
        p = self.problem
        homes = p.household_rows.toarray()[:, self.first]
        members = np.vstack([np.ones(len(self.first)), p.classes.members[:, self.first], homes]).T
        least = np.concatenate([[p.size], np.ceil(p.classes.least - WHOLE), np.zeros(len(homes))])
        most = np.concatenate([[p.size], np.floor(p.classes.most + WHOLE), np.ones(len(homes))])
        return members.astype(int), least.astype(int), np.minimum(most, p.size).astype(int)

    def spread(self, numbers: Array, weights: Array) -> tuple[Array, Array]:
        """A lottery over cohorts, with equal chances in each class, for one over numbers of members."""
        share = np.zeros((len(weights), len(self.of)))
        for c, size in enumerate(self.sizes.tolist()):
            share[:, self.of == c] = _turns(numbers[:, c], weights, size)
        order = np.argsort(self.of, kind="stable")  # a systematic sample rounds the count of each class
        drawn = [laminar_lottery(row[order]) for row in share]
        cohorts = np.zeros((sum(len(d.weights) for d in drawn), len(self.of)))
        cohorts[:, order] = np.vstack([d.members for d in drawn])
        chance = np.concatenate([w * d.weights for w, d in zip(weights, drawn, strict=True)])
        used = chance > UNUSED
        return cohorts[used], chance[used] / chance[used].sum()


def _turns(numbers: Array, weights: Array, size: int) -> Array:
    """The chance of each member of a class where `numbers` of them are in; the means over all are equal.

    Whoever lacks most comes first, for the whole weight, so that few chances are neither 0 nor 1. Where that
    leaves somebody with more than the rest can give, all chances are equal.
    """
    if size == 1:  # most classes of a large pool
        return numbers[:, None].astype(float)
    total = weights * numbers
    lack, out = np.full(size, total.sum() / size), np.zeros((len(weights), size))
    left = weights[numbers > 0].sum()
    for j in np.argsort(-weights, kind="stable").tolist():
        if numbers[j] > 0:
            left -= weights[j]
            most = np.minimum(lack, weights[j])
            least = np.clip(lack - left, 0.0, most)
            order = np.argsort(-lack, kind="stable")
            room = np.cumsum((most - least)[order])
            if not -UNUSED <= total[j] - least.sum() <= room[-1] + UNUSED:
                return np.repeat(numbers[:, None] / size, size, axis=1)
            given = least.copy()
            given[order] += np.diff(np.clip(room, 0.0, total[j] - least.sum()), prepend=0.0)
            out[j], lack = given / weights[j], lack - given
    return np.clip(out, 0.0, 1.0)
