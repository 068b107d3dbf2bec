"""The quadratic, network and integer programs; in top-down order one quadratic program a level."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.backends.registry import get_backend
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError, UnsupportedError
from forcopt.language.atoms import sum_squares
from forcopt.language.model import Model
from forcopt.language.objective import lexicographic, minimize
from forcopt.loops.solution import ModelSolution
from forcopt.loops.solve import default_backend
from forcopt.models.census_release.common import centre, demand_formulation, real_optimum
from forcopt.models.census_release.problem import ConsistentRelease
from forcopt.models.census_release.release import Release
from forcopt.models.census_release.tolerances import BEYOND, SQUARES_KEPT, STEPS_KEPT, WHOLE
from forcopt.problem import Handles, Outcome
from forcopt.status import Status


class Counts:
    """Variables for the counts of all levels, tied by the sums and the invariants.

    Parameters
    ----------
    problem : ConsistentRelease
        The problem.
    model : Model
        It gets the variables and rows.
    integer : bool
        Whether the leaves are whole.
    near : tuple[Array, ...], optional
        Whole counts by level that add up: the variables are differences from these; by default `centre`.
    fixed : sequence of Array, default ()
        The counts of the first levels, if they are known.

    Attributes
    ----------
    levels : list of Expression
        The counts, shapes ``(units, types)``.
    unit : float
        1 for whole counts and ordinary noise, otherwise a power of two near a hundredth of the noise.
    shifts : list of Variable
        Their differences from `near`, in this unit.
    """

    def __init__(
        self,
        problem: ConsistentRelease,
        model: Model,
        integer: bool,
        near: tuple[Array, ...] | None = None,
        fixed: Sequence[Array] = (),
    ) -> None:
        h, self.problem = problem.hierarchy, problem
        self.near = centre(problem) if near is None else near
        self.unit = 1.0 if integer else _unit(problem, self.near)
        self.shifts: list[Any] = []
        for level, around in enumerate(self.near):
            held = fixed[level] if level < len(fixed) else problem.held[level]
            low = np.full(held.shape, 0.0 if problem.nonnegative else -np.inf)
            low, high = ((np.where(np.isnan(held), at, held) - around) / self.unit for at in (low, np.inf))
            name = model.unused_name(f"shift_{level}")
            whole = integer and level == h.depth - 1
            self.shifts.append(model.variable(name, held.shape, lower=low, upper=high, integer=whole))
        for level in range(1, h.depth):
            parent, above = h.parents[level - 1], h.sizes[level - 1]
            shape = (above, len(parent))
            adds = sp.csr_array((np.ones(len(parent)), (parent, np.arange(len(parent)))), shape=shape)
            name = model.unused_name(f"sums_{level}")
            model.subject_to(adds @ self.shifts[level] == self.shifts[level - 1], name=name)
        self.levels = [s * self.unit + around for s, around in zip(self.shifts, self.near, strict=True)]
        for number, item in enumerate(problem.invariants):
            types = list(item.types or range(problem.types))
            if len(types) > 1:
                unit = h.find(item.level, item.unit)
                name = model.unused_name(f"invariant_{number}")
                total = self.levels[item.level][unit, types].sum() * (1 / self.unit)
                model.subject_to(total == item.value / self.unit, name=name)

    def start(self, decision: Any) -> dict[Any, Array]:
        """The values of the variables at a decision."""
        both = zip(self.shifts, self.problem.read(decision), self.near, strict=True)
        return {shift: (level - near) / self.unit for shift, level, near in both}

    def release(self, result: ModelSolution) -> Release:
        """The release of a solver's point of real counts: clipped, with the leaves' invariants."""
        found, held = np.asarray(result[self.levels[-1]]), self.problem.held[-1]
        if self.problem.nonnegative:
            found = np.maximum(found, 0.0)
        return Release.of_leaves(self.problem.hierarchy, np.where(np.isnan(held), found, held))


def _unit(problem: ConsistentRelease, near: tuple[Array, ...]) -> float:
    """The unit of real counts: noise counts 1 to 1e6 in it, since solvers' tolerances are absolute.

    Near the least squares a tolerance of 1e-6 leaves the counts a freedom of 1e-3.
    """
    rows = problem.queries.T.astype(float)
    off = [np.abs(noisy - level @ rows).max() for noisy, level in zip(problem.noisy, near, strict=True)]
    noise = float(max(off))
    return 1.0 if noise == 0.0 or 1.0 <= noise <= 1e6 else float(2.0 ** np.round(np.log2(noise / 100)))


def measured(problem: ConsistentRelease, counts: list[Any]) -> list[list[tuple[Any, Array, Array]]]:
    """List the measurements by level: query counts as expressions, noisy counts and precision."""
    rows = problem.queries.T.astype(float)
    found = []
    for level, noisy, w in zip(counts, problem.noisy, problem.weights, strict=True):
        found.append([(level @ rows, noisy, np.broadcast_to(w, noisy.shape))])
    for item in problem.extra:
        total = counts[-1][item.leaves].sum(axis=0) @ rows
        found[-1].append((total, item.noisy, np.broadcast_to(item.precision, item.noisy.shape)))
    return found


def squares(parts: list[tuple[Any, Array, Array]], unit: float) -> Any:
    """The weighted squares of one level, in units of `unit`."""
    terms = [sum_squares((value - noisy) * np.sqrt(w / unit)) for value, noisy, w in parts]
    return sum(terms[1:], terms[0])


def _objective(problem: ConsistentRelease, stages: list[Any], tolerance: float) -> Any:
    if problem.order == "joint":
        return sum(stages[1:], stages[0])
    return lexicographic([minimize(stage) for stage in stages], tolerance=tolerance)


def objective_unit(counts: Counts, parts: list[tuple[Any, Array, Array]], residual: float) -> float:
    """The unit in which squares are written, since solvers' tolerances are absolute.

    Parameters
    ----------
    counts : Counts
        The variables.
    parts : list of tuple
        The measurements, see `measured`.
    residual : float
        Their squares at `counts.near`.

    Returns
    -------
    float
        The median precision; less if few measurements of small precision decide, as the residual shows.
    """
    weights = np.concatenate([w.ravel() for _, _, w in parts]) * counts.unit**2
    return float(min(np.median(weights), max(residual, weights.min())))


@ConsistentRelease.formulation("qp", exact=True, cites="Cohen et al. (2021), problems of section 3.3")
def qp(problem: ConsistentRelease, model: Model) -> Handles:
    """Real counts: a convex quadratic program, or one a level in top-down order.

    `ConsistentRelease.solve` goes level by level in top-down order and fixes the optimal query counts of each
    level, see `level_qp`. The model itself is lexicographic: it holds the value of a level by a cone, within
    1e-6, so that it needs a backend for second-order cones.

    Returns
    -------
    Handles
        ``counts``, by level, shapes ``(units, types)``.
    """
    demand_formulation(problem, "qp")
    counts = Counts(problem, model, integer=False)
    levels, near = measured(problem, counts.levels), problem.residuals(counts.near)
    if problem.order == "joint":
        levels, near = [list(chain.from_iterable(levels))], near.sum(keepdims=True)
    units = [objective_unit(counts, parts, float(off)) for parts, off in zip(levels, near, strict=True)]
    stages = [squares(parts, unit) for parts, unit in zip(levels, units, strict=True)]
    objective = _objective(problem, stages, SQUARES_KEPT)
    return Handles(objective, counts.release, counts.start, unit=units[0], counts=counts.levels)


@ConsistentRelease.formulation(
    "network-lp", exact=True, cites="unit steps of convex separable flows; Minoux (1984)", whole="milp"
)
def network_lp(
    problem: ConsistentRelease,
    model: Model,
    reach: int | tuple = 3,  # type: ignore[type-arg]  # the check of options takes plain types
) -> Handles:
    """Whole counts by a linear program, if `ConsistentRelease.is_network`: its vertices are whole.

    Each squared distance is linear between whole counts within `reach` of the real optimum, and goes on with
    its last slope beyond, below the square. So the bound always holds. `ConsistentRelease.solve` widens the
    windows of counts that lie beyond. A backend that stops inside a face (without crossover) may give
    fractions. Further rows may cut off whole vertices: a model of your own gets `milp`.

    Parameters
    ----------
    problem, model
        The problem must be a network.
    reach : int or tuple of Array, default 3
        Half the width of the windows of unit steps; or, for each level, that of each unit and query. If it is
        given, `ConsistentRelease.solve` does not widen windows.

    Returns
    -------
    Handles
        ``counts``, by level, shapes ``(units, types)``.

    Notes
    -----
    Solvers' tolerances are absolute. The objective counts in units of the least precision, and in top-down
    order that of each level by itself, so that the finest level decides where the others leave it free.
    """
    demand_formulation(problem, "network-lp")
    return unit_steps(problem, model, reach)


@ConsistentRelease.formulation("milp", exact=True, cites="unit steps of convex functions; Minoux (1984)")
def milp(
    problem: ConsistentRelease,
    model: Model,
    reach: int | tuple = 3,  # type: ignore[type-arg]  # the check of options takes plain types
) -> Handles:
    """The program of `network_lp` with whole leaves: for any workload, and with further rows.

    In a model of your own, a count beyond its window is an error that asks for a larger reach.

    Parameters
    ----------
    problem, model
        See `network_lp`.
    reach : int or tuple of Array, default 3
        Of the windows, in units of the counts; see `network_lp`.

    Returns
    -------
    Handles
        ``counts``, by level, shapes ``(units, types)``.
    """
    demand_formulation(problem, "milp")
    return unit_steps(problem, model, reach, integer=True)


class BeyondWindowError(DeclarationError):
    """A count lies outside its window of unit steps.

    Attributes
    ----------
    reach : list of Array
        By level, four times the reach where a count lies beyond, and the same reach elsewhere.
    """

    def __init__(self, message: str, reach: list[Array]) -> None:
        super().__init__(message)
        self.reach = reach


def unit_steps(
    problem: ConsistentRelease, model: Model, reach: int | Sequence[Array] = 3, integer: bool = False
) -> Handles:
    """The linear program of `network_lp` for any workload: a relaxation if that is no network.

    Parameters
    ----------
    problem, model, reach
        See `network_lp`; `extra` has the widest reach of the leaves.
    integer : bool, default False
        Whether the leaves are whole.

    Returns
    -------
    Handles
        See `network_lp`.
    """
    declared, middle_counts = Counts(problem, model, integer), real_optimum(problem)
    counts = declared.levels
    half = [np.full(y.shape, reach) for y in problem.noisy] if isinstance(reach, int) else list(reach)
    stages, windows, units = [], [], []
    middles = measured(problem, list(middle_counts))
    for parts, middle, wide in zip(measured(problem, counts), middles, half, strict=True):
        every = (
            problem.weights if problem.order == "joint" else np.concatenate([w.ravel() for *_, w in parts])
        )
        units.append(float(every.min()))
        terms = []
        for (value, noisy, w), (near, _, _) in zip(parts, middle, strict=True):
            base = np.floor(np.asarray(near) + WHOLE)
            own = wide if noisy.shape == wide.shape else np.full(noisy.shape, wide.max())
            terms.append(_steps(model, value, noisy, w / units[-1], base - own, base + own))
            windows.append((value, base - own, base + own))
        stages.append(sum(terms[1:], terms[0]))

    def read(result: ModelSolution) -> Release:
        leaves = np.asarray(result[counts[-1]])
        whole = np.round(leaves)
        leaves = whole if np.abs(leaves - whole).max(initial=0.0) < BEYOND else leaves
        ends = ((np.asarray(result[value]), low, high) for value, low, high in windows)
        beyond = [np.maximum(low - found, found - high) for found, low, high in ends]
        worst = max(float(off.max(initial=0.0)) for off in beyond)
        if worst > BEYOND:
            raise BeyondWindowError(
                f"a count lies {worst:g} beyond its window; "
                f"give reach={max(int(wide.max()) for wide in half) + int(np.ceil(worst)) + 1}",
                [np.where(off > BEYOND, 4 * wide, wide) for off, wide in zip(beyond, half, strict=False)],
            )
        return Release.of_leaves(problem.hierarchy, leaves)

    objective = _objective(problem, stages, STEPS_KEPT)
    return Handles(objective=objective, decision=read, start=declared.start, unit=units[0], counts=counts)


def _steps(model: Model, value: Any, noisy: Array, w: Array, first: Array, last: Array) -> Any:
    """The cost of `value`, linear between whole numbers in windows; ``w (k - noisy)^2`` at those."""
    width = (last - first).astype(np.int64).ravel()
    owner = np.repeat(np.arange(noisy.size), width)
    at = np.arange(len(owner)) - np.repeat(np.cumsum(width) - width, width) + first.ravel()[owner]
    up = model.variable(model.unused_name("steps"), len(owner), lower=0, upper=1)
    more = model.variable(model.unused_name("more"), noisy.shape, lower=0)
    less = model.variable(model.unused_name("less"), noisy.shape, lower=0)
    slopes = w.ravel()[owner] * (2 * (at - noisy.ravel()[owner]) + 1)
    adds = sp.csr_array((np.ones(len(owner)), (owner, np.arange(len(owner)))), (noisy.size, len(owner)))
    taken = (adds @ up).reshape(noisy.shape)
    model.subject_to(value == first + taken + more - less, name=model.unused_name("distance"))
    ends = (w * (2 * (last - noisy) - 1), w * (2 * (first - noisy) + 1))
    # Beyond the window the slopes must keep the function convex: the last step's, and the first one's.
    beyond = (ends[0] * more).sum() - (ends[1] * less).sum()
    return (slopes * up).sum() + beyond + float((w * (first - noisy) ** 2).sum())


def level_qp(problem: ConsistentRelease, common: dict[str, Any], deadline: Deadline) -> tuple[Outcome, str]:
    """Solve the lexicographic problem by one quadratic program for each level, root first.

    Parameters
    ----------
    problem : ConsistentRelease
        Real, in top-down order; any workload, invariants and `extra`.
    common : dict[str, Any]
        Options of `Model.solve`; `start` is a decision.
    deadline : Deadline
        The clock of the run.

    Returns
    -------
    tuple[Outcome, str]
        The outcome, and the backend.

    Notes
    -----
    The squares of a level are strictly convex in its query counts, so that all optima of the level have the
    same query counts. The next programs fix these. Each program contains all levels, so that invariants of
    descendants always can be met. No tolerance is spent on a level's value, and no cone is needed: any
    backend for convex quadratic programs will do. Outer approximation by tangents will not: within 1e-6 of
    the least squares the counts are free by 1e-3, and the precision of the next level may magnify that. A
    start is dropped after the first level.
    """
    common = dict(common)
    backend = common.pop("backend", None)
    start, rows = common.pop("start", None), _basis(problem.queries.astype(float))
    near, best = centre(problem), None
    above: list[Array] = []
    status, message, iterations = Status.OPTIMAL, "", 0
    last_bound = 0.0
    for level in range(problem.hierarchy.depth):
        model = Model(f"{type(problem).__name__}, level {level}")
        complete = len(rows) == problem.types
        counts = Counts(problem, model, integer=False, near=near, fixed=above if complete else ())
        for upper, values in enumerate(above):
            if not complete:
                per_unit = rows.T / counts.unit
                model.subject_to(counts.levels[upper] @ per_unit == values @ per_unit)
        parts = measured(problem, counts.levels)[level]
        unit = objective_unit(counts, parts, float(problem.residuals(near)[level]))
        model.minimize(squares(parts, unit))
        backend = backend or default_backend(model)
        if not {"quadratic", "second_order"} & get_backend(backend).capabilities.kinds:
            raise UnsupportedError(
                f"qp in top-down order fixes the counts of each level; backend {backend!r} finds them by "
                "tangents, to a thousandth only: use highs, clarabel, osqp or scip"
            )
        if level == 0 and start is not None:
            common["start"] = counts.start(start)
        if deadline.passed:
            status, message = Status.LIMIT, deadline.end
            break
        result = model.solve(backend, **{**common, "time_limit": deadline.left})
        common.pop("start", None)
        iterations += result.iterations
        if not result.status.has_solution:
            status, message = result.status, result.reason or result.message
            break
        best = counts.release(result)
        above.append(best.counts[level])
        last_bound = result.bound * unit
        if result.status is not Status.OPTIMAL:
            status, message = result.status, result.message
            break
    if best is None:
        return Outcome(None, status=status, message=message), backend or ""
    evaluation = problem.evaluate(best)
    if status is Status.OPTIMAL and not evaluation.feasible:
        worst = max(evaluation.violations, key=lambda key: evaluation.violations[key])
        status, message = Status.FAILED, f"the answer violates {worst} by {evaluation.violation:.3g}"
    elif status is not Status.OPTIMAL:
        status, message = Status.FEASIBLE, f"level {level}: {message}"
    done = float(problem.residuals(best)[: len(above) - 1].sum())
    bound = min(done + max(last_bound, 0.0), evaluation.objective)
    return Outcome(best, bound, status, iterations, message), backend or ""


def _basis(rows: Array) -> Array:
    """A largest set of independent rows."""
    kept: list[Array] = []
    for row in rows:
        if np.linalg.matrix_rank(np.array([*kept, row])) > len(kept):
            kept.append(row)
    return np.array(kept)
