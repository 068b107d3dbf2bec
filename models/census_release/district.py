"""Districts whose noisy population varies least."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from pydantic import field_validator, model_validator

from forcopt.arrays import Array, Seed, as_numbers, check_shape
from forcopt.clock import Deadline
from forcopt.compiled import njit
from forcopt.data.hierarchy import Hierarchy
from forcopt.declaration import Numbers
from forcopt.errors import DeclarationError, require
from forcopt.language.atoms import sum_squares
from forcopt.language.model import Model
from forcopt.models.census_release.common import out_of_time
from forcopt.models.census_release.release import Region, deviation_factor, noise_variances
from forcopt.problem import Evaluation, Handles, Method, Outcome, Problem
from forcopt.problem.drawing import Sketch


class StableDistrict(Problem):
    """Choose the leaves of a district whose top-down count has the least variance.

    Attributes
    ----------
    hierarchy : Hierarchy
        The tree. With `bounds`, its counts are the numbers of people of the leaves, and stay in the problem.
    budget : Numbers
        The pure budget epsilon of each level, shape ``(d,)``.
    size : int, optional
        How many leaves the district has.
    bounds : tuple[int, int], optional
        Or how many people it has, inclusive.

    References
    ----------
    Cohen et al. (2021), section 6, Definition 5, Algorithms 3 and 4.

    Examples
    --------
    >>> from forcopt.data import Hierarchy
    >>> from forcopt.models import StableDistrict
    >>> p = StableDistrict(Hierarchy.homogeneous([4, 4]), budget=[1 / 3] * 3, size=4)
    >>> round(p.solve("tree-dp").objective, 6)
    58.5
    """

    family: ClassVar[str] = "census"
    default_method: ClassVar[str] = "miqp"

    hierarchy: Hierarchy
    budget: Numbers
    size: int | None = None
    bounds: tuple[int, int] | None = None

    @field_validator("budget")
    @classmethod
    def _above_zero(cls, budget: Array) -> Array:
        noise_variances(epsilon=budget)
        return budget

    @model_validator(mode="after")
    def _fits(self) -> Self:
        h = self.hierarchy
        if (self.size is None) == (self.bounds is None):
            raise DeclarationError("give either size or bounds")
        require(self.size is None or 1 <= self.size <= h.leaves, "size", self.size, f"be 1 to {h.leaves}")
        if self.bounds is not None and (h.counts is None or not 0 <= self.bounds[0] <= self.bounds[1]):
            raise DeclarationError("bounds need counts of the hierarchy, and 0 <= lower <= upper")
        check_shape(self.budget, (h.depth,), "budget")
        return self

    def method(self, name: str | None = None) -> Method:
        """Give a method by name; by default the dynamic program where the tree is homogeneous."""
        if name is None and self.size is not None and self._is_homogeneous:
            name = "tree-dp"
        return super().method(name)

    @property
    def _is_homogeneous(self) -> bool:
        try:
            return bool(self.hierarchy.branching) or self.hierarchy.depth == 1
        except DeclarationError:
            return False

    @property
    def people(self) -> Array:
        """The people of each leaf, shape ``(leaves,)``."""
        assert self.hierarchy.counts is not None
        return np.asarray(self.hierarchy.counts.sum(axis=1))

    def _sketch(self, decision: Any, evaluation: Evaluation) -> Any:
        names = self.hierarchy.names[-1] if self.hierarchy.names else range(self.hierarchy.sizes[-1])
        few = ", ".join(str(names[k]) for k in decision.leaves[:8]) + ", ..." * (len(decision.leaves) > 8)
        return Sketch(f"The sum of the units {few} has the variance {evaluation.objective:.4g}")

    def evaluate(self, decision: Region | Any) -> Evaluation:
        """The variance of the district's count; fragmentation among the metrics.

        Parameters
        ----------
        decision : Region or array_like
            The district, or the positions of its leaves.
        """
        leaves = decision.leaves if isinstance(decision, Region) else as_numbers(decision, "the leaves")
        region = Region(self.hierarchy, leaves)
        violations = {}
        if self.size is not None and len(leaves) != self.size:
            violations["size"] = float(abs(len(leaves) - self.size))
        if self.bounds is not None:
            total = float(self.people[region.leaves].sum())
            off = max(self.bounds[0] - total, total - self.bounds[1])
            if off > 0:
                violations["people"] = off
        metrics = {"fragmentation": region.fragmentation()}
        return Evaluation(region.variance(epsilon=self.budget), violations, metrics)


def _only_size(problem: StableDistrict, method: str) -> int:
    if problem.size is None:
        raise DeclarationError(f"{method}: needs size: use miqp")
    return problem.size


@StableDistrict.algorithm("greedy", cites="Cohen et al. (2021), Algorithm 3", rank="published")
def greedy(problem: StableDistrict, *, seed: Seed = None, time_limit: float | None = None) -> Outcome:
    """Take whole units of a level until the rest is smaller, then go on inside one unit.

    Children are taken in order, or in random order with a seed. In a homogeneous tree the fragmentation is
    that of any order.
    """
    left, h, clock = _only_size(problem, "greedy"), problem.hierarchy, Deadline(time_limit)
    rng = None if seed is None else np.random.default_rng(seed)
    taken: list[Array] = []
    level, unit = 0, 0
    if left == h.leaves:
        return Outcome(Region(h, np.arange(h.leaves)))
    while left:
        if clock.passed:
            return out_of_time(clock)
        order, begin = h.children[level]
        children = order[begin[unit] : begin[unit + 1]]
        children = children if rng is None else rng.permutation(children)
        level += 1
        below, following = h.ancestors(level), -1
        for child in children:
            size = int(h.below[level][child])
            if size <= left:
                taken.append(np.flatnonzero(below == child))
                left -= size
            else:
                following = int(child)
        if left:
            unit = following
    return Outcome(Region(h, np.sort(np.concatenate(taken))))


def square_leaves(h: Hierarchy, side: int, row: int, column: int) -> Array:
    """The leaves of a square with its top left corner at a place, if each unit is a square of its children.

    Raises
    ------
    DeclarationError
        For a tree that is no such grid, or a square outside it.
    """
    sides = [round(n**0.5) for n in h.branching]
    if any(s * s != n for s, n in zip(sides, h.branching, strict=True)):
        raise DeclarationError(f"square: the tree branches by {h.branching}; each must be a square")
    whole = int(np.prod(sides))
    if not (0 <= row <= whole - side and 0 <= column <= whole - side):
        raise DeclarationError(f"square: side {side} at ({row}, {column}) leaves the grid of {whole}")
    rows, columns = np.meshgrid(row + np.arange(side), column + np.arange(side), indexing="ij")
    at, rest = np.zeros(rows.shape, dtype=np.int64), whole
    for s in sides:
        rest //= s
        at = at * s * s + (rows // rest % s) * s + columns // rest % s
    return np.sort(at.ravel())


@StableDistrict.algorithm("square", cites="Cohen et al. (2021), Algorithm 4", rank="published")
def square(problem: StableDistrict, *, seed: Seed = 0, time_limit: float | None = None) -> Outcome:
    """A square of leaves at a random place of the grid of a homogeneous tree with square fan-outs."""
    size, h, clock = _only_size(problem, "square"), problem.hierarchy, Deadline(time_limit)
    side = round(size**0.5)
    require(side * side == size, "square: size", size, "be a square number")
    if clock.passed:
        return out_of_time(clock)
    room = round(h.leaves**0.5) - side + 1
    row, column = np.random.default_rng(seed).integers(0, room, 2)
    return Outcome(Region(h, square_leaves(h, side, int(row), int(column))))


@njit(cache=True)
def _convolve(a, b, most):  # type: ignore[no-untyped-def]
    """The least ``a[i] + b[k - i]`` for each k up to `most`, and the i."""
    size = min(len(a) + len(b) - 1, most + 1)
    out, take = np.full(size, np.inf), np.zeros(size, np.int64)
    # The entries before k are done; out[k] is the least of the pairs seen.
    for k in range(size):
        for i in range(max(0, k - len(b) + 1), min(len(a) - 1, k) + 1):
            if a[i] + b[k - i] < out[k]:
                out[k], take[k] = a[i] + b[k - i], i
    return out, take


@StableDistrict.algorithm("tree-dp", exact=True, cites="dynamic program over leaves taken, by level")
def tree_dp(problem: StableDistrict, *, time_limit: float | None = None) -> Outcome:
    """A homogeneous tree: the least cost below a unit of which k leaves are taken, children one by one.

    All units of a level have one table, whose repeated min-plus convolution gives that of their parents.
    O(sum of n_l m_l m_{l-1}) for n_l children with m_l leaves each.
    """
    size, h, clock = _only_size(problem, "tree-dp"), problem.hierarchy, Deadline(time_limit)
    noise = noise_variances(epsilon=problem.budget)
    fans = h.branching
    best, leaves, choices = np.zeros(2), 1, []
    for level in range(h.depth - 1, 0, -1):
        fan = fans[level - 1]
        taken = np.arange(len(best))
        each = best + noise[level] * (taken / leaves) ** 2  # the parent's weight is its children's mean
        total, steps = each, []
        for _ in range(fan - 1):
            if clock.passed:
                return out_of_time(clock)
            total, take = _convolve(each, total, size)
            steps.append(take)
        leaves *= fan
        taken = np.arange(len(total))
        best = total - noise[level] * fan * (taken / leaves) ** 2
        choices.append(steps)
    weights: list[Array] = [np.array([size])]
    for level in range(1, h.depth):
        steps = choices[h.depth - 1 - level]
        counts = np.zeros(h.sizes[level], dtype=np.int64)
        order, begin = h.children[level - 1]
        for p, k in enumerate(weights[-1]):
            rest = int(k)
            children = order[begin[p] : begin[p + 1]]
            for i, step in enumerate(reversed(steps)):
                counts[children[i]] = step[rest]
                rest -= int(step[rest])
            counts[children[-1]] = rest
        weights.append(counts)
    return Outcome(Region(h, np.flatnonzero(weights[-1])))


@StableDistrict.formulation("miqp", exact=True, cites="Cohen et al. (2021), section 6")
def district_miqp(problem: StableDistrict, model: Model) -> Handles:
    """A binary for each leaf; the objective is a norm of them, see `deviation_factor`.

    Returns
    -------
    Handles
        ``member``, shape ``(leaves,)``.
    """
    h = problem.hierarchy
    noise = noise_variances(epsilon=problem.budget)
    member = model.variable(model.unused_name("member"), h.leaves, binary=True)
    if problem.size is not None:
        model.subject_to(member.sum() == problem.size, name=model.unused_name("size"))
    else:
        assert problem.bounds is not None
        total, (least, most) = (member * problem.people.astype(float)).sum(), problem.bounds
        model.subject_to(total >= least, total <= most, name=model.unused_name("bounds"))
    unit = float(np.median(noise))
    return Handles(
        objective=sum_squares(deviation_factor(h, noise / unit) @ member),
        decision=lambda result: Region(h, np.flatnonzero(result[member] > 0.5)),
        start=lambda decision: {member: Region(h, getattr(decision, "leaves", decision)).indicator},
        unit=unit,
        member=member,
    )
