"""The law that is best for many queries: the least E max * sqrt(Fisher information), by ground states."""

from __future__ import annotations

from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
import scipy

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models.counting_queries.calibration import is_whole, least_size, needs_delta
from forcopt.models.counting_queries.problem import CountingQueries
from forcopt.models.counting_queries.tolerances import FISHER_SIZE, RESCALED, TABLE_END
from forcopt.privacy.losses import gaussian_shift
from forcopt.privacy.noises import TabulatedNoise
from forcopt.problem import Outcome
from forcopt.status import Status

TABLE = 200_000
"""The most entries of a table."""

LEAST_POINTS = 100
"""A coarser grid does not resolve the law."""


class FisherShape:
    """A density on a grid, with its mean largest absolute value and its Fisher information.

    Parameters
    ----------
    grid : Array
        Equally spaced from 0 up, shape ``(n,)``; the density is even.
    root : Array
        The square root of the density, shape ``(n,)``.
    queries : int
        How many draws the largest is of.
    """

    def __init__(self, grid: Array, root: Array, queries: int) -> None:
        self.grid, self.queries = grid, queries
        self.step = float(grid[1] - grid[0])
        weight = np.full(len(grid), 2 * self.step)
        weight[0] = self.step
        self.root = root / sqrt(float(weight @ root**2))
        with np.errstate(divide="ignore"):
            self.logs = np.log(self.root)

    @cached_property
    def tail(self) -> Array:
        """``P(|X| > x)`` on the grid, by the trapezoidal rule from the far end."""
        f = self.root**2
        parts = (f[1:] + f[:-1]) * self.step
        return np.asarray(np.clip(np.append(np.cumsum(parts[::-1])[::-1], 0.0), 0.0, 1.0))

    @property
    def expected_max(self) -> float:
        """The mean of the largest ``|X|``."""
        with np.errstate(divide="ignore"):
            above = -np.expm1(self.queries * np.log1p(-self.tail))
        return float((above[1:] + above[:-1]).sum() * self.step / 2)

    @property
    def information(self) -> float:
        """``4 int psi'^2``: the Fisher information of the location."""
        return float(8 * (np.diff(self.root) ** 2).sum() / self.step)

    @property
    def objective(self) -> float:
        """``E max * sqrt(I)``, which does not depend on the scale."""
        return self.expected_max * sqrt(self.information)

    def log_density(self, x: Array) -> Array:
        """The logarithm of the density, linear between the points of the grid, which keeps it concave."""
        return np.asarray(2 * np.interp(np.abs(x), self.grid, self.logs, right=-np.inf))


def fisher_shape(
    queries: int, points: int = 4000, tolerance: float = 1e-9, deadline: Deadline | None = None
) -> tuple[FisherShape, int]:
    """Minimise ``E max * sqrt(I)`` over even densities.

    Parameters
    ----------
    queries : int
        k.
    points : int
        Of the half grid.
    tolerance : float
        The relative decrease at which the search stops.
    deadline : Deadline, optional
        The clock of the run.

    Returns
    -------
    tuple[FisherShape, int]
        The law, and the number of steps.

    Notes
    -----
    ``E max`` is concave in the density, so that its tangent ``int V f`` with
    ``V(y) = int_0^|y| k (1 - P(|X| > x))^(k-1) dx`` lies above it. The minimum of ``int V f + I(f)`` is the
    ground state of ``-4 psi'' + V psi``, whose density is log-concave since V is convex. Each step lowers
    ``E max + I``, whose minimum over scales is a function of ``E max * sqrt(I)``. A step is O(points).

    Examples
    --------
    >>> round(fisher_shape(1000)[0].objective, 3)
    2.849
    """
    reach = 14.0
    grid = np.linspace(0.0, reach, points)
    shape = FisherShape(grid, np.exp(-(grid**4) / 60), queries)
    value, steps = shape.expected_max + shape.information, 0
    while steps < 500 and not (deadline is not None and deadline.passed and steps):
        slope = queries * (1 - shape.tail) ** (queries - 1)
        potential = np.append(0.0, np.cumsum((slope[1:] + slope[:-1]) * shape.step / 2))
        curvature = 4 / shape.step**2
        off = np.full(points - 2, -curvature)
        off[0] *= sqrt(2)  # the even half-line: psi is mirrored at 0
        least: dict[str, Any] = {"select": "i", "select_range": (0, 0)}
        energy, _ = scipy.linalg.eigh_tridiagonal(2 * curvature + potential[:-1], off, **least)
        root = _from_the_end((potential - float(energy[0])) / curvature)
        shape, steps = FisherShape(grid, root, queries), steps + 1
        found = shape.expected_max + shape.information
        if value - found < tolerance * value:
            break
        value = found
    return shape, steps


def _from_the_end(excess: Array) -> Array:
    """The ground state by its three-term recurrence, from the far end, where that is stable.

    An eigenvector of a solver has no relative accuracy where it is small, and is not log-concave there.
    """
    root = [0.0, RESCALED]
    for e in excess[-2:0:-1].tolist():
        value = (2 + e) * root[-1] - root[-2]
        if value > 1 / RESCALED:
            root = [v * RESCALED for v in root]
            value *= RESCALED
        root.append(value)
    out = np.array(root[::-1])
    return np.asarray(np.maximum(out, 0.0) / out.max())


@CountingQueries.algorithm("fisher", cites="Huber (1981), section 4.5", rank="published")
def fisher(problem: CountingQueries, *, points: int = 4000, time_limit: float | None = None) -> Outcome:
    """The law that is best if the sum of the losses is Gaussian, as for many queries, on the integers.

    The sum then has ``mu^2 = k I(f)``, so that the error is ``E max * sqrt(k I) / mu``. The size is exact for
    the law itself. Counts are whole, so that a table of whole noise answers whole=False and whole=True alike.

    Parameters
    ----------
    points : int, optional
        Of the grid on which the law's density is found; at least 100.

    Returns
    -------
    Outcome
        The table of the noise, without a bound.
    """
    needs_delta(problem, "this")
    if not is_whole(points) or points < LEAST_POINTS:
        raise DeclarationError(f"points is {points!r}; it must be a whole number, at least {LEAST_POINTS}")
    deadline = Deadline(time_limit)
    shape, steps = fisher_shape(problem.queries if problem.error == "max" else 1, points, deadline=deadline)
    start = sqrt(problem.queries * shape.information) / gaussian_shift(problem.epsilon, problem.delta)

    def law(size: float) -> TabulatedNoise:
        reach = min(int(shape.grid[-1] * size), TABLE // 2)
        half = np.exp(shape.log_density(np.arange(reach + 1) / size))
        half = half[: int(np.flatnonzero(half > TABLE_END * half[0])[-1]) + 1]
        both = np.concatenate([half[:0:-1], half])
        return TabulatedNoise(both / both.sum())

    try:
        size = least_size(problem, law, max(start, 1.0), deadline, FISHER_SIZE)
    except TimeoutError as error:
        return Outcome(None, status=Status.LIMIT, message=str(error), iterations=steps)
    message = f"the limit in k is {shape.objective:.6g} sqrt(k) / mu"
    return Outcome(law(size), iterations=steps, message=message)
