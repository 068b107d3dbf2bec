"""The best joint noise of whole counts in a box, by a linear program over orbits of signed permutations."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from math import comb, exp, factorial, inf, prod
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from pydantic import Field, model_validator

from forcopt.arrays import Array, rounded_up
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.language.model import Model
from forcopt.loops.solution import ModelSolution
from forcopt.models.counting_queries.tolerances import DUST
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Handles, Outcome, Problem
from forcopt.problem.drawing import Sketch
from forcopt.status import Status

MASS = 1e3
"""The sum of the masses of a model: solvers' tolerances are absolute, and add up over many small rows."""


PAIRS = 200_000
"""The largest number of orbits of pairs: more take minutes and gigabytes."""


@dataclass(frozen=True, eq=False)
class LatticeLaw:
    """A law on whole vectors that does not change under permutations and signs.

    Attributes
    ----------
    orbits : Array
        Absolute values, falling, shape ``(orbits, queries)``.
    probabilities : Array
        Of each single point of an orbit, shape ``(orbits,)``.
    decay : float
        Beyond the box a point has the probability of the box's surface times ``decay`` for each step in the
        maximum norm; 0 for no mass there.
    """

    orbits: Array
    probabilities: Array
    decay: float = 0.0

    def __repr__(self) -> str:
        n, k = self.orbits.shape
        return f"<a law of {k} whole numbers on {n} orbits>"

    def marginal(self) -> tuple[Array, Array]:
        """The values of one coordinate within the box, and their probabilities."""
        k, top = self.orbits.shape[1], int(self.orbits.max())
        mass = np.zeros(2 * top + 1)
        for orbit, p in zip(self.orbits, self.probabilities, strict=True):
            size = _size(tuple(orbit))
            for value, count in Counter(orbit.tolist()).items():
                share = size * p * count / k
                mass[top + value] += share / 2
                mass[top - value] += share / 2
        return np.arange(-top, top + 1), mass

    def grid(self, reach: int) -> Array:
        """The probabilities of all points up to `reach`, shape ``(2 reach + 1,) * queries``."""
        k = self.orbits.shape[1]
        top = int(self.orbits.max())
        base = (top + 1) ** np.arange(k)[::-1]
        order = np.argsort(self.orbits @ base)
        x = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * k, indexing="ij"), axis=-1)
        folded = -np.sort(-np.abs(x.reshape(-1, k)), axis=1)
        largest = folded[:, 0]
        at = order[np.searchsorted((self.orbits @ base)[order], np.minimum(folded, top) @ base)]
        decay = np.where(largest > top, self.decay ** np.maximum(largest - top, 0.0), 1.0)
        out = self.probabilities[at] * decay
        return np.asarray(out.reshape((2 * reach + 1,) * k))


class LatticeNoise(Problem):
    """The best joint law of whole noise for k counts, in a box.

    One person changes each count by at most 1. The objective is the mean of the largest error. By symmetry
    no mechanism for whole, unbounded counts has a smaller worst error than the best law of noise, and that
    law may be taken invariant under permutations and signs.

    Parameters
    ----------
    queries : int
        k, from 1 to 5.
    epsilon : float
        Above 0.
    delta : float
        From 0 to below 1. For delta 0 the mass must go on beyond the box: there the law falls by
        ``e^-epsilon`` with each step in the maximum norm.
    radius : int
        R, of the box {-R, .., R}^k; at least 1.

    Raises
    ------
    DeclarationError
        For fields out of range, or more than 200,000 orbits of pairs.

    References
    ----------
    Ganesh and Zhao (2021), whose problem this solves on the lattice; Ghosh, Roughgarden and Sundararajan
    (2009), for one count.

    Examples
    --------
    >>> from forcopt.models import LatticeNoise
    >>> s = LatticeNoise(queries=1, epsilon=1.0, radius=5).solve()
    >>> round(s.objective, 6)  # 2 e^-1 / (1 - e^-2), the geometric mechanism
    0.850918
    """

    family: ClassVar[str] = "counting"
    default_method: ClassVar[str] = "lp"

    queries: int = Field(ge=1, le=5, strict=True)
    epsilon: float = Field(gt=0.0, le=20.0)
    radius: int = Field(ge=1, le=200, strict=True)
    delta: float = Field(default=0.0, ge=0.0, lt=1.0)

    @model_validator(mode="after")
    def _is_small(self) -> Self:
        k, r = self.queries, self.radius
        pairs = sum(comb(2 * r + j, j) * comb(r + k - j, k - j) for j in range(1, k + 1))
        if pairs > PAIRS:
            raise DeclarationError(f"radius is {r}: {k} queries have {pairs:,} pairs; at most {PAIRS:,} fit")
        return self

    @cached_property
    def orbits(self) -> Array:
        """Falling absolute values, the origin first, shape ``(orbits, queries)``."""
        found = combinations_with_replacement(range(self.radius + 1), self.queries)
        return np.array([t[::-1] for t in found])

    @cached_property
    def sizes(self) -> Array:
        """How many points each orbit has."""
        return np.array([_size(tuple(o)) for o in self.orbits.tolist()], dtype=float)

    @cached_property
    def norms(self) -> Array:
        """The maximum norm of each orbit."""
        return self.orbits[:, 0].astype(float)

    @property
    def beyond(self) -> tuple[float, float]:
        """The mass and the cost beyond the box, for probability 1 on each point of the surface."""
        r = self.radius + np.arange(1, int(60 / self.epsilon) + 200, dtype=float)
        shell = (2 * r + 1) ** self.queries - (2 * r - 1) ** self.queries
        mass = shell * np.exp(-self.epsilon * (r - self.radius))
        return float(mass.sum()), float(mass @ r)

    def changes(self, moved: int) -> tuple[Array, Array, Array]:
        """Points x and x - Delta, up to symmetry, for Delta with `moved` ones.

        Returns
        -------
        tuple[Array, Array, Array]
            The orbits of x and of x - Delta (-1 if outside of the box), and the number of such x.
        """
        index = {tuple(o): i for i, o in enumerate(self.orbits.tolist())}
        r, k = self.radius, self.queries
        out: list[tuple[int, int, int]] = []
        for first in combinations_with_replacement(range(-r, r + 1), moved):
            many = factorial(moved) // prod(factorial(c) for c in Counter(first).values())
            mine = [abs(v) for v in first]
            moved_to = [abs(v - 1) for v in first]
            for rest in combinations_with_replacement(range(r + 1), k - moved):
                x = tuple(sorted([*mine, *rest], reverse=True))
                y = tuple(sorted([*moved_to, *rest], reverse=True))
                out.append((index[x], index.get(y, -1), many * _size(rest)))
        found = np.array(out)
        return found[:, 0], found[:, 1], found[:, 2].astype(float)

    def law(self, probabilities: Array) -> LatticeLaw:
        """The decision with these probabilities of single points, shape ``(orbits,)``, scaled to sum 1."""
        p = np.maximum(probabilities, 0.0)
        surface = float(p[self.norms == self.radius].max())
        decay = exp(-self.epsilon) if self.delta == 0 else 0.0
        if decay:
            p = np.where(self.norms == self.radius, surface, p)
        total = float(self.sizes @ p) + (self.beyond[0] * surface if decay else 0.0)
        return LatticeLaw(self.orbits, p / total, decay)

    def least_relaxation(self, time_limit: float = 10.0) -> str:
        """Give the least delta with which a law in the box exists; see `Problem.least_relaxation`.

        Examples
        --------
        >>> LatticeNoise(queries=1, epsilon=1.0, radius=1, delta=0.01).least_relaxation()
        'the least relaxation: delta 0.211942'
        """
        if self.delta == 0:
            return ""
        model = Model("least delta")
        delta = model.variable("delta", lower=0, upper=1)
        _write(self, model, outside=False, delta=delta)
        model.minimize(delta)
        found = model.solve("highs", time_limit=time_limit)
        needed = found.status is Status.OPTIMAL and found.objective > self.delta
        return f"the least relaxation: delta {rounded_up(found.objective):.6g}" if needed else ""

    def _sketch(self, decision: Any, evaluation: Evaluation) -> Any:
        shown = np.argsort(-decision.probabilities, kind="stable")[:12]
        title = f"No noise is added with probability {decision.probabilities[0]:.2g}"
        names = [str(tuple(noise)) for noise in decision.orbits[shown].tolist()]
        return Sketch(title, decision.probabilities[shown], names, unit="probability of the noise")

    def evaluate(self, decision: LatticeLaw) -> Evaluation:
        """Evaluate a law, point by point on the whole lattice.

        Parameters
        ----------
        decision : LatticeLaw
            A law.

        Returns
        -------
        Evaluation
            The mean of the largest error; violations ``"probabilities"`` and ``"privacy"`` (delta over the
            allowed one, or with delta 0 the largest factor over ``e^epsilon``, relatively).
        """
        if not isinstance(decision, LatticeLaw) or decision.orbits.shape[1] != self.queries:
            raise DeclarationError(f"the decision is {decision!r}; it must be a LatticeLaw of {self.queries}")
        top = int(decision.orbits.max())
        k, margin = self.queries, top + 2
        p = decision.grid(margin)
        norm = np.abs(np.stack(np.meshgrid(*[np.arange(-margin, margin + 1)] * k, indexing="ij"))).max(axis=0)
        end = margin + int(60 / self.epsilon) + 200 if decision.decay else margin + 1
        far = np.arange(margin + 1, end, dtype=float)
        surface = float(decision.probabilities[decision.orbits[:, 0] == top].max())
        shell = ((2 * far + 1) ** k - (2 * far - 1) ** k) * surface * decision.decay ** (far - top)
        mass, cost = float(p.sum() + shell.sum()), float((p * norm).sum() + shell @ far)
        excess = 0.0
        for moved in range(1, k + 1):
            here = p[tuple(slice(1, None) if i < moved else slice(None) for i in range(k))]
            there = p[tuple(slice(None, -1) if i < moved else slice(None) for i in range(k))]
            if self.delta > 0:
                delta = float(np.maximum(here - exp(self.epsilon) * there, 0.0).sum())
                excess = max(excess, delta - self.delta)
            else:
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratio = np.where(here > 0, here / there, 0.0) * exp(-self.epsilon)
                    back = np.where(there > 0, there / here, 0.0) * exp(-self.epsilon)
                excess = max(excess, float(ratio.max()) - 1, float(back.max()) - 1)
        wrong = max(abs(mass - 1), float(-decision.probabilities.min()))
        found = {"probabilities": wrong, "privacy": excess}
        return Evaluation(cost, {n: v for n, v in found.items() if v > FEASIBILITY_TOLERANCE}, {"mass": mass})


def _size(values: tuple[int, ...]) -> int:
    """The number of points with these absolute values, in any order and with any signs."""
    many = factorial(len(values)) // prod(factorial(c) for c in Counter(values).values())
    return int(many * 2 ** sum(v != 0 for v in values))


def _units(problem: LatticeNoise) -> Array:
    """The unit of a variable in probability of a point: for delta 0 it falls like ``e^-epsilon``."""
    return np.exp(-problem.epsilon * problem.norms) if problem.delta == 0 else 1 / problem.sizes


def _write(problem: LatticeNoise, model: Model, outside: bool, delta: Any = None) -> tuple[Any, Any]:
    """Write the program; with `outside`, mass may lie beyond the box at cost R + 1, unwatched.

    A variable `delta` takes the place of the declared number.
    """
    delta = problem.delta if delta is None else delta
    n, unit = len(problem.orbits), _units(problem)
    # An optimum for delta 0 has weights that are all alike, so that their upper limit changes nothing.
    upper = MASS if problem.delta == 0 else np.inf
    weight = model.variable(model.unused_name("weight"), n, lower=0, upper=upper)
    share = unit * problem.sizes
    mass = weight * np.where(share > DUST * share.max(), share, 0.0)
    total, cost = mass.sum(), (mass * problem.norms).sum()
    if outside:
        rest = model.variable(model.unused_name("rest"), lower=0, upper=MASS)
        total, cost = total + rest, cost + (problem.radius + 1) * rest
    elif problem.delta == 0:
        surface = np.flatnonzero(problem.norms == problem.radius)
        level = weight[int(surface[0])]
        model.subject_to(weight[surface] == level, name=model.unused_name("surface"))
        here = unit[surface[0]]
        if problem.beyond[1] * here > DUST:
            total, cost = total + problem.beyond[0] * here * level, cost + problem.beyond[1] * here * level
    model.subject_to(total == MASS, name=model.unused_name("probabilities"))
    factor = exp(-problem.epsilon)
    grow = exp(max(0.0, problem.epsilon - 4) / 2)  # a solver's error in a row counts e^epsilon / grow fold
    for moved in range(1, problem.queries + 1):
        x, y, many = problem.changes(moved)
        inside = y >= 0
        if problem.delta == 0:  # ratios alone: both directions, in units of the smaller probability
            x, y = x[inside], y[inside]
            outward = problem.epsilon * (problem.norms[x] - problem.norms[y])
            up, down = outward + problem.epsilon, outward - problem.epsilon
            model.subject_to(
                np.exp(-np.maximum(up, 0.0)) * weight[x] <= np.exp(np.minimum(up, 0.0)) * weight[y],
                np.exp(np.minimum(down, 0.0)) * weight[y] <= np.exp(-np.maximum(down, 0.0)) * weight[x],
                name=model.unused_name(f"ratio_{moved}"),
            )
            continue
        if outside:
            x, y, many = x[inside], y[inside], many[inside]
            inside = np.ones(len(x), dtype=bool)
        rows = np.arange(len(x))
        to_x = sp.csr_array((many * unit[x], (rows, x)), shape=(len(x), n))
        to_y = sp.csr_array(((many * unit[y])[inside], (rows[inside], y[inside])), shape=(len(x), n))
        excess = model.variable(model.unused_name("excess"), len(x), lower=0)
        private = grow * (factor * to_x - to_y) @ weight
        model.subject_to(private <= grow * factor * excess, name=model.unused_name(f"excess_{moved}"))
        model.subject_to(excess.sum() <= MASS * delta, name=model.unused_name(f"delta_{moved}"))
    return weight, cost


@LatticeNoise.formulation(
    "lp", exact=True, cites="orbits of the hyperoctahedral group; Ganesh and Zhao (2021), section 2"
)
def lp(problem: LatticeNoise, model: Model) -> Handles:
    """One weight for each orbit of signed permutations, one slack for each orbit of pairs (x, x - Delta).

    Only changes by ones in the first j coordinates are needed, j = 1, .., k: the others are their images.
    C(R + k, k) + O((2 R + 1)^k / k!) variables.

    Returns
    -------
    Handles
        ``weight``: of each orbit, shape ``(orbits,)``: 1000 times its mass, or for delta 0 1000 times the
        probability of a point over ``e^(-epsilon norm)``.
    """
    weight, cost = _write(problem, model, outside=False)
    unit = _units(problem)
    return Handles(
        cost, lambda result: problem.law(np.asarray(result[weight]) * unit), weight=weight, unit=1 / MASS
    )


@LatticeNoise.algorithm("bracket", cites="restriction to the box, and its relaxation")
def bracket(problem: LatticeNoise, *, backend: str = "highs", time_limit: float | None = None) -> Outcome:
    """The best law in the box, and a bound for all laws on the lattice.

    The bound lets mass lie beyond the box at cost R + 1 and requires privacy inside only. So it bounds every
    mechanism for whole, unbounded counts.
    """
    deadline = Deadline(time_limit)
    model, handles = problem.formulate("lp")
    upper: ModelSolution = model.solve(backend, time_limit=deadline.left)
    if not upper.status.has_solution:
        message = upper.message
        if upper.status is Status.INFEASIBLE:
            message = f"no law in the box of radius {problem.radius} is private"
        return Outcome(None, status=upper.status, message=message)
    bound, message = -inf, "the relaxation was not solved in time"
    if not deadline.passed:
        relaxed = Model("relaxed")
        relaxed.minimize(_write(problem, relaxed, outside=True)[1])
        bound = relaxed.solve(backend, time_limit=deadline.left).bound / MASS
        message = f"no law on the whole lattice is below {bound:.9g}"
    return Outcome(handles.decision(upper), bound=bound, status=Status.FEASIBLE, message=message)
