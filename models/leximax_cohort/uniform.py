"""Every cohort equally likely: exact counts by a dynamic programme over classes of candidates."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from math import comb, log
from typing import NamedTuple

import numpy as np

from forcopt.arrays import Array, Seed
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models.leximax_cohort.classes import Classes
from forcopt.models.leximax_cohort.decision import CohortLottery
from forcopt.models.leximax_cohort.problem import LeximaxCohort
from forcopt.problem import Outcome
from forcopt.status import Status

_MOST_STEPS = 2_000_000
"""More steps between states than this are too many to hold."""


class _Layer(NamedTuple):
    """The steps that choose the number of members of one class.

    Attributes
    ----------
    start, number, end : Array
        The state before, the number of members, and the state after; the starts rise.
    """

    start: Array
    number: Array
    end: Array


@dataclass(frozen=True, eq=False)
class UniformLottery(CohortLottery):
    """The lottery in which every cohort that meets the demands is equally likely.

    Attributes
    ----------
    count : int
        Of cohorts.
    layers : list
        For each class of equal candidates, the steps between the states of the dynamic programme.
    ways : list[Array]
        For each class and state, the number of ways to complete a cohort, in whole numbers of any size.
    classes : Classes, optional
        The classes of equal candidates.
    """

    count: int = 0
    layers: list[_Layer] = field(default_factory=list, repr=False)
    ways: list[Array] = field(default_factory=list, repr=False)
    classes: Classes | None = field(default=None, repr=False)

    @property
    def entropy(self) -> float:
        """The logarithm of the number of cohorts."""
        return log(self.count)

    def sample(self, seed: Seed = None) -> Array:
        """Draw a cohort, each with the same probability; the positions of its members, rising."""
        assert self.classes is not None
        rng = random.Random(int(np.random.default_rng(seed).integers(2**63)))  # it draws integers of any size
        state, members = 0, list[int]()
        for c, (layer, ways) in enumerate(zip(self.layers, self.ways[1:], strict=True)):
            first, last = np.searchsorted(layer.start, [state, state + 1])
            size = int(self.classes.sizes[c])
            left = rng.randrange(int(self.ways[c][state]))
            for step in range(first, last):
                number = int(layer.number[step])
                left -= comb(size, number) * int(ways[layer.end[step]])
                if left < 0:
                    break
            state = int(layer.end[step])
            members += rng.sample(np.flatnonzero(self.classes.of == c).tolist(), number)
        return np.sort(members)

    def distribution(self) -> tuple[Array, Array]:
        """All cohorts with equal probabilities.

        Raises
        ------
        DeclarationError
            If they are too many to list; `sample` draws from them in any case.
        """
        from forcopt.models.leximax_cohort.formulations import all_cohorts

        rows = np.concatenate(list(all_cohorts(self.problem)))
        return rows, np.full(len(rows), 1 / len(rows))


@LeximaxCohort.algorithm("uniform", exact=True, cites="dynamic programme over the classes' counts")
def uniform(problem: LeximaxCohort, *, time_limit: float | None = None) -> Outcome:
    """Count the cohorts that meet the demands, and draw them with equal probabilities.

    Candidates with the same features are one class. A state of the dynamic programme is what every row still
    demands and allows, after some of the classes. States from which no cohort can be reached are left out, as
    are rows that the rest of the candidates cannot break. The counts are whole numbers of any size, so that
    marginals and draws are exact.

    Parameters
    ----------
    time_limit : float, optional
        Seconds.

    Raises
    ------
    DeclarationError
        For other objectives, and if there are more than 2,000,000 steps between states, as with quotas on
        many features.

    Examples
    --------
    >>> p = LeximaxCohort(
    ...     utilities=np.eye(5), size=2, features={"sex": list("ffmmm")}, quotas={"sex": {"f": (1, 1)}},
    ...     objective="uniform",
    ... )
    >>> d = p.solve().decision
    >>> d.count, d.marginals.round(6).tolist()
    (6, [0.5, 0.5, 0.333333, 0.333333, 0.333333])
    """
    if problem.objective != "uniform":
        raise DeclarationError(f"objective is {problem.objective!r}; the method is for 'uniform'")
    deadline, classes = Deadline(time_limit), Classes(problem)
    members, need, room = classes.rows()
    rest = members.T @ classes.sizes  # of each row, in the classes to come
    states = np.concatenate([need, np.minimum(room, rest)])[None, :]
    layers: list[_Layer] = []
    widths, steps = [1], 0
    for c, size in enumerate(classes.sizes.tolist()):
        row, count = members[c], len(need)
        rest = rest - size * row
        parts = []
        for number in range(int(classes.low[c]), int(classes.high[c]) + 1):
            left = states - number * np.tile(row, 2)
            left[:, :count] = np.maximum(left[:, :count], 0)
            good = ((left[:, count:] >= 0) & (left[:, :count] <= rest)).all(axis=1)
            left[:, count:] = np.minimum(left[:, count:], rest)
            parts.append((np.flatnonzero(good), np.full(int(good.sum()), number), left[good]))
        start, numbers, ends = (np.concatenate(part) for part in zip(*parts, strict=True))
        steps += len(start)
        if steps > _MOST_STEPS:
            raise DeclarationError(
                f"'uniform' has more than {_MOST_STEPS:,} steps: the quotas have too many joint states; "
                "`draw_cohorts` draws from the same lottery by a Markov chain"
            )
        if deadline.passed:
            return Outcome(None, status=Status.LIMIT, message=f"{deadline.end} at class {c + 1}")
        order = np.argsort(start, kind="stable")
        states, end = np.unique(ends, axis=0, return_inverse=True)
        widths.append(len(states))
        layers.append(_Layer(start[order], numbers[order], end.reshape(-1)[order]))
    if not len(states):
        return Outcome(None, status=Status.INFEASIBLE, message=problem.infeasibility_reason(deadline.left))
    ways = [np.ones(len(states), dtype=object)]
    for layer, size, width in zip(layers[::-1], classes.sizes[::-1].tolist(), widths[-2::-1], strict=True):
        ways.insert(0, _sum(layer.start, _choices(size, layer) * ways[0][layer.end], width))
    reached, marginals = np.ones(1, dtype=object), np.zeros(len(classes.of))
    for c, (layer, size) in enumerate(zip(layers, classes.sizes.tolist(), strict=True)):
        arrive = reached[layer.start] * _choices(size, layer)
        chosen = (arrive * ways[c + 1][layer.end] * layer.number.astype(object)).sum()
        marginals[classes.of == c] = chosen / (size * ways[0][0])
        reached = _sum(layer.end, arrive, widths[c + 1])
    marginals, count = np.clip(marginals, 0.0, 1.0), int(ways[0][0])
    found = UniformLottery(problem, marginals, None, None, count, layers, ways, classes)
    return Outcome(found, bound=found.entropy, iterations=steps, message=f"{found.count:,} cohorts")


def _choices(size: int, layer: _Layer) -> Array:
    """In how many ways a class of `size` gives the number of members, for each step."""
    return np.array([comb(size, t) for t in range(size + 1)], dtype=object)[layer.number]


def _sum(at: Array, values: Array, count: int) -> Array:
    """Whole numbers of any size, added up by place."""
    out = np.zeros(count, dtype=object)
    np.add.at(out, at, values)
    return out
