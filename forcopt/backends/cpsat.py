"""OR-Tools CP-SAT: pure integer programs, solved in exact integer arithmetic.

CP-SAT takes integers only. Each row is multiplied by the least common multiple of its coefficients'
denominators, where a coefficient is read as the decimal it prints as (up to nine places) or as the ratio of
small integers within two units in its last place; any other number is refused, never rounded. A row's
bounds need no such form: since its scaled activity is an integer, they are rounded inwards, after being
loosened by 1e-9 of their size for the rounding errors in computing them.

A continuous column without a cost that only a few rows read, such as the level of a fairness notion, is
eliminated from them, and gets a value in the end. Costs that are no short decimals are scaled by a power of
two and rounded; the bound gives way by the largest error, which must stay below 1e-9 of the largest cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array, as_fraction
from forcopt.backends.base import Backend, RawResult, Session, SolveMonitor, SolveOptions
from forcopt.backends.registry import register_backend
from forcopt.backends.tolerances import NOISE, SUM_NOISE
from forcopt.compile.compiler import Capabilities
from forcopt.compile.elimination import Rows, eliminate, value_of
from forcopt.compile.program import Program, RowBlock, Schedule
from forcopt.errors import BackendError, UnboundedExpressionError, UnsupportedError
from forcopt.language.columns import product_interval
from forcopt.status import Status

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


_PLACES, _DENOMINATOR = 10**9, 10**6
_LARGEST = 2**62
"""CP-SAT refuses rows and objectives whose value could be larger."""


@cache
def rational(value: float) -> Fraction | None:
    """Read a float as the decimal or the ratio of small integers that it stands for; None if it is neither.

    Examples
    --------
    >>> rational(0.19), rational(1 / 3), rational(2.0 ** 0.5)
    (Fraction(19, 100), Fraction(1, 3), None)
    """
    decimal = as_fraction(value, "decimal")
    if decimal.denominator <= _PLACES:
        return decimal
    # The denominators of ratios must be smaller: up to 1e9 every float would be close enough to some ratio.
    # With these, two ratios differ by 4000 ulps, so the one within the rounding of a product is meant.
    ulp = Fraction(math.ulp(value))
    ratio = Fraction(value).limit_denominator(max(1, min(_DENOMINATOR, math.isqrt(int(1 / (4000 * ulp))))))
    return ratio if abs(ratio - Fraction(value)) <= 2 * ulp else None


def _scaled(values: list[float], name: Callable[[], str]) -> tuple[list[int], int]:
    """Multiply coefficients by the least integer that makes them integers, and give it.

    Raises
    ------
    UnsupportedError
        If one is not rational; `name` names its owner in the message.
    """
    ratios = [rational(v) for v in values]
    known = [r for r in ratios if r is not None]
    if len(known) < len(ratios):
        raise UnsupportedError(
            f"{name()}: the coefficient {values[ratios.index(None)]!r} is neither a decimal of up to nine "
            "places nor a ratio with a small denominator; cp-sat computes with integers, unrounded"
        )
    scale = math.lcm(*(r.denominator for r in known))
    return [int(r * scale) for r in known], scale


def _check_size(size: float, scale: int, name: Callable[[], str]) -> None:
    """Refuse a row whose activity may not fit into CP-SAT's integers."""
    if size * scale >= _LARGEST:
        raise UnsupportedError(
            f"{name()}: scaled by {scale} to integers, it could reach {size * scale:.3g} within the bounds "
            "of its variables; cp-sat computes with 64-bit integers"
        )


class CpSatSession(Session):
    """A program that is translated to CP-SAT anew for every run."""

    def solve(self, options: SolveOptions) -> RawResult:
        """Run CP-SAT and read its answer."""
        from ortools.sat.python import cp_model

        program, held = _without_continuous(self.program)
        lower, upper = finite_domains(program)
        crossed = np.flatnonzero(lower > upper)
        if crossed.size:
            name = self.program.column_name(int(crossed[0]))
            return RawResult(Status.INFEASIBLE, message=f"CP-SAT: no integer is within the bounds of {name}")
        model = cp_model.CpModel()
        scale, error = _translate(program, lower, upper, model.proto)
        if options.start is not None:
            known = np.flatnonzero(~np.isnan(options.start) & (self.program.integer > 0))
            model.proto.solution_hint.vars.extend(known.tolist())
            model.proto.solution_hint.values.extend(np.rint(options.start[known]).astype(int).tolist())
        solver = cp_model.CpSolver()
        _set_options(solver, options)
        run = _Run(self.program, options, solver, scale, error, held)
        status = _interruptible(solver, model, run)
        run.monitor.reraise()
        return run.read(solver.status_name(status))


def _interruptible(solver: cp_model.CpSolver, model: cp_model.CpModel, run: _Run) -> Any:
    """Solve; full memory stops the search, and so does Ctrl-C, which CP-SAT by itself takes for a limit."""
    solver.parameters.catch_sigint_signal = False
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(solver.solve, model, run.callback)
        try:
            while not future.done() and not run.monitor.stop:
                wait([future], timeout=0.05)
        finally:
            while not future.done():  # the search may not have begun yet
                solver.stop_search()
                wait([future], timeout=0.05)
        return future.result()


def _without_continuous(program: Program) -> tuple[Program, list[tuple[int, Rows]]]:
    """The program with its continuous columns eliminated from the rows and fixed at 0, and what held them."""
    matrix = sp.csr_array(program.rows.matrix(program.columns), copy=True)
    rows, held = (matrix, program.rows.lower, program.rows.upper), []
    lower, upper = program.lower.copy(), program.upper.copy()
    real = np.flatnonzero(program.integer == 0)
    if (priced := real[program.stages[0].cost[real] != 0]).size:
        raise UnsupportedError(
            f"the continuous variable {program.column_name(int(priced[0]))} has a cost; cp-sat computes with "
            "integers, and takes continuous variables that only rows read"
        )
    for column in real.tolist():
        rows, by = eliminate(rows, column, float(lower[column]), float(upper[column]))
        held.append((column, by))
    if not held:
        return program, held
    lower[real] = upper[real] = 0.0
    integer = np.where(program.integer == 0, 1, program.integer)
    return replace(program, rows=RowBlock.of(*rows), lower=lower, upper=upper, integer=integer), held


def _translate(program: Program, lower: Array, upper: Array, proto: Any) -> tuple[float, float]:
    """Fill CP-SAT's protocol buffer; give the factor of the objective, and how far rounding moves it."""
    for domain in zip(map(int, lower.tolist()), map(int, upper.tolist()), strict=True):
        proto.variables.add().domain.extend(domain)
    reach = np.maximum(1.0, np.maximum(np.abs(lower), np.abs(upper)))
    _add_rows(program.rows, reach, lambda i: f"row {program.row_name(i)}", None, proto)
    for number, indicator in enumerate(program.indicators):
        called = partial("row {1} of indicator {0}".format, number)
        literals = indicator.columns if indicator.active else ~indicator.columns
        _add_rows(indicator.rows, reach, called, literals.tolist(), proto)
    for schedule in program.schedules:
        _add_schedule(schedule, proto)
    for products in program.products:
        for z, *factors in zip(*(a.tolist() for a in products.columns), strict=True):
            _check_size(
                float(np.prod(reach[factors])), 1, partial("product {}".format, program.column_name(z))
            )
            held = proto.constraints.add().int_prod
            parts = held.target, held.exprs.add(), held.exprs.add()
            for part, column in zip(parts, (z, *factors), strict=True):
                part.vars.append(column)
                part.coeffs.append(1)
    cost = program.stages[0].cost
    used = np.flatnonzero(cost)
    whole, scale, error = _scaled_costs(cost[used], reach[used])
    if used.size:
        proto.objective.vars.extend(used.tolist())
        proto.objective.coeffs.extend(whole)
    return scale, error


def _scaled_costs(cost: Array, reach: Array) -> tuple[list[int], float, float]:
    """Costs as integers, their scale, and the largest error of a value, 0 if all are short decimals.

    Raises
    ------
    UnsupportedError
        If the error may exceed 1e-9 of the largest cost.
    """
    size = float(np.abs(cost) @ reach)
    if None not in map(rational, cost.tolist()):
        whole, exact = _scaled(cost.tolist(), lambda: "the objective")
        _check_size(size, exact, lambda: "the objective")
        return whole, float(exact), 0.0
    scale = 2.0 ** math.floor(math.log2(_LARGEST / 2 / size))
    rounded = [round(Fraction(c) * Fraction(scale)) for c in cost.tolist()]
    terms = zip(cost.tolist(), rounded, reach.tolist(), strict=True)
    error = float(sum(abs(Fraction(c) - r / Fraction(scale)) * Fraction(u) for c, r, u in terms))
    if error > NOISE * float(np.abs(cost).max()):
        raise UnsupportedError(
            f"the objective: scaled by {scale:g} to integers, its value could be off by {error:.3g}, more "
            f"than {NOISE:g} of its largest coefficient; cp-sat computes with 64-bit integers"
        )
    return rounded, scale, error


def _add_rows(
    rows: RowBlock, reach: Array, name: Callable[[int], str], literals: list[int] | None, proto: Any
) -> None:
    """Add rows, each enforced by its literal if there are any; `reach` bounds the size of each column."""
    owner = np.repeat(np.arange(rows.count), np.diff(rows.indptr))
    sizes = np.bincount(owner, np.abs(rows.data) * reach[rows.indices], rows.count).tolist()
    fractional = np.bincount(owner, rows.data != np.rint(rows.data), rows.count).tolist()
    low, high = loosened(rows.lower, -1.0).tolist(), loosened(rows.upper, 1.0).tolist()
    ends, columns, data = rows.indptr.tolist(), rows.indices.tolist(), rows.data.tolist()
    for i in range(rows.count):
        part = slice(ends[i], ends[i + 1])
        called = partial(name, i)
        if fractional[i]:
            whole, scale = _scaled(data[part], called)
            low[i] = float(loosened(rows.lower[i], -1.0, scale))
            high[i] = float(loosened(rows.upper[i], 1.0, scale))
        else:
            whole, scale = [int(v) for v in data[part]], 1
        _check_size(sizes[i], scale, called)
        far = int(1.001 * sizes[i] * scale) + 1  # no activity is larger: an infinite bound
        first = math.ceil(Fraction(low[i]) * scale) if low[i] * scale > -far else -far
        last = math.floor(Fraction(high[i]) * scale) if high[i] * scale < far else far
        constraint = proto.constraints.add()
        if literals is not None:
            constraint.enforcement_literal.append(literals[i])
        if first > last:  # 0 == 1
            constraint.linear.domain.extend((1, 1))
            continue
        constraint.linear.vars.extend(columns[part])
        constraint.linear.coeffs.extend(whole)
        constraint.linear.domain.extend((first, last))


def _add_schedule(schedule: Schedule, proto: Any) -> None:
    """Add the intervals of a schedule, and the constraint on all of them."""
    numbers = range(len(proto.constraints), len(proto.constraints) + len(schedule.start))
    for i, (start, size) in enumerate(zip(schedule.start.tolist(), schedule.size.tolist(), strict=True)):
        constraint = proto.constraints.add()
        if schedule.present is not None:
            constraint.enforcement_literal.append(int(schedule.present[i]))
        held = constraint.interval
        columns = start, start if schedule.end is None else schedule.end[i]
        for part, column in zip((held.start, held.end), columns, strict=True):
            part.vars.append(int(column))
            part.coeffs.append(1)
        if schedule.duration is None:
            held.size.offset = held.end.offset = int(size)
        else:
            held.size.vars.append(int(schedule.duration[i]))
            held.size.coeffs.append(1)
    constraint = proto.constraints.add()
    if schedule.demands is None:
        constraint.no_overlap.intervals.extend(numbers)
        return
    constraint.cumulative.intervals.extend(numbers)
    constraint.cumulative.capacity.offset = schedule.capacity
    for demand in schedule.demands.tolist():
        constraint.cumulative.demands.add().offset = int(demand)


def _set_options(solver: cp_model.CpSolver, options: SolveOptions) -> None:
    values: dict[str, Any] = {"log_search_progress": True, "log_to_stdout": False}
    values |= options.named(
        time_limit="max_time_in_seconds", gap="relative_gap_limit", seed="random_seed", threads="num_workers"
    )
    for name, value in values.items():
        try:
            setattr(solver.parameters, name, value)
        except (AttributeError, TypeError) as error:
            words = str(error).splitlines()[0]
            raise BackendError(f"CP-SAT refuses the option {name}={value!r}: {words}") from None


class _Run:
    """The callback of CP-SAT, and its result."""

    def __init__(
        self,
        program: Program,
        options: SolveOptions,
        solver: cp_model.CpSolver,
        scale: float,
        error: float,
        held: list[tuple[int, Rows]],
    ) -> None:
        from ortools.sat.python import cp_model

        self.program, self.solver, self.scale, self.error, self.held = program, solver, scale, error, held
        self.monitor = monitor = SolveMonitor(program, options)
        self.bound = -np.inf
        unscaled = self._unscaled

        class Callback(cp_model.CpSolverSolutionCallback):  # type: ignore[misc, unused-ignore]
            def on_solution_callback(self) -> None:
                with monitor.capture(self.stop_search):
                    bound = unscaled(self.best_objective_bound) - error
                    monitor.improved(unscaled(self.objective_value), bound)

        def logged(line: str) -> None:
            with monitor.capture():
                monitor.log_text(line + "\n")

        def bounded(bound: float) -> None:
            self.bound = max(self.bound, unscaled(bound) - error)

        self.callback = Callback()
        solver.log_callback, solver.best_bound_callback = logged, bounded

    def _unscaled(self, value: float) -> float:
        return value / self.scale + self.program.stages[0].offset

    def _completed(self, values: Any) -> Array:
        """A point, with values of the eliminated columns."""
        point = np.array(values, dtype=float)
        for column, rows in reversed(self.held):
            point[column] = value_of(rows, point)
        return point

    def read(self, end: str) -> RawResult:
        """Translate the answer."""
        answer = self.solver.response_proto
        status = {**Status.__members__, "UNKNOWN": Status.LIMIT}.get(end, Status.FAILED)
        words = f"CP-SAT: {end} {self.solver.solution_info()}".rstrip()
        result = self.monitor.result(status, words, bound=self.bound, seconds=answer.wall_time)
        result.iterations, result.nodes = answer.num_conflicts, answer.num_branches
        if result.status.has_solution:
            result.x = self._completed(answer.solution)
            result.objective = self.program.stages[0].value(result.x)
            # Only with a point is the bound in the answer more than a number that was never set.
            result.bound = self._unscaled(answer.best_objective_bound) - self.error
        return result


class CpSat(Backend):
    """CP-SAT; options by its own names are the fields of ``SatParameters``."""

    name = "cp-sat"
    through = "ortools"
    install = "pip install 'ortools>=9.15' 'highspy!=1.15.*'"
    capabilities = Capabilities(
        frozenset({"rows", "integer", "indicator", "schedule", "nonconvex"}), only_integer=True
    )
    accuracy: float = 1e-8

    def session(self, program: Program) -> CpSatSession:
        """Hold the program for CP-SAT."""
        return CpSatSession(program)


def loosened(bound: Array, sign: float, scale: float = 1.0) -> Array:
    """Move bounds outwards (up for sign 1) by the possible rounding error, not to another
    integer.

    Parameters
    ----------
    bound : Array
        On something that, multiplied by `scale`, is an integer.
    sign : float
        1 for upper bounds, -1 for lower.
    scale : float, default 1.0
        See `bound`.
    """
    return np.asarray(bound + sign * np.minimum(NOISE * np.maximum(1.0, np.abs(bound)), 0.01 / scale))


@dataclass(frozen=True)
class _Entries:
    """Return the coefficients of all rows, indicator rows last, and the number of rows that always hold."""

    row: Array
    column: Array
    value: Array
    lower: Array
    upper: Array
    always: int

    def mirrored(self) -> _Entries:
        """The same rows in the negated columns."""
        return _Entries(self.row, self.column, -self.value, self.lower, self.upper, self.always)

    def others(self, low: Array, high: Array) -> tuple[Array, Array]:
        """For each coefficient the least and the most that the rest of its row can be, rounded outwards."""
        rising = self.value > 0
        return (
            self._without_own(np.where(rising, low[self.column], high[self.column]), -1.0),
            self._without_own(np.where(rising, high[self.column], low[self.column]), 1.0),
        )

    def _without_own(self, end: Array, sign: float) -> Array:
        free = ~np.isfinite(end)
        part = np.where(free, 0.0, self.value * np.where(free, 0.0, end))
        rows = len(self.lower)
        total, size = (np.bincount(self.row, p, rows)[self.row] for p in (part, np.abs(part)))
        others_free = np.bincount(self.row, free, rows)[self.row] > free
        return np.where(others_free, sign * np.inf, total - part + sign * SUM_NOISE * size)


def finite_domains(program: Program) -> tuple[Array, Array]:
    """Give integral lower and upper bounds of all columns that some optimum of the first stage keeps.

    Two rules are applied in rounds until they find nothing more. A row bounds a column if all its others are
    bounded. A column that costs nothing to decrease is dominated (such as the t of a row ``t >= x``):
    whatever the others are, it may as well stand at its own lower bound or at the least value that some row
    forces on it, so the most that any row can force bounds it from above. Both keep at least one optimum:
    in a solution within the bounds found so far, moving one dominated column down to that value leaves every
    row satisfied, the other columns where they are and the objective no worse. Columns that cost nothing to
    increase mirror this. Columns of products are never dominated, since rows do not tell what holds them.

    Raises
    ------
    UnboundedExpressionError
        Naming the first column that is left without a bound.
    """
    lower = np.ceil(loosened(program.lower, -1.0))
    upper = np.floor(loosened(program.upper, 1.0))
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        entries = _entries([program.rows, *(i.rows for i in program.indicators)])
        cost = program.stages[0].cost.copy()
        for products in program.products:
            cost[np.concatenate(products.columns)] = np.nan
        count = -1
        while count != (count := int(np.isinf(lower).sum() + np.isinf(upper).sum())) and count:
            for bound in (_bound_by_rows, _bound_dominated):
                # One side after the other: each rule's argument needs the bounds found before it.
                upper = np.where(np.isinf(upper), bound(entries, cost, lower, upper), upper)
                lower = np.where(np.isinf(lower), -bound(entries.mirrored(), -cost, -upper, -lower), lower)
            for products in program.products:
                z, *factors = products.columns
                low, high = product_interval(*((lower[at], upper[at]) for at in factors))
                lower[z], upper[z] = np.maximum(lower[z], low), np.minimum(upper[z], high)
    for bounds, side in ((lower, "lower"), (upper, "upper")):
        if np.isinf(bounds).any():
            missing = np.isinf(bounds)
            owned = missing & (program.integer == 1)  # the user's own; others are computed from these
            first = int(np.argmax(owned if owned.any() else missing))
            raise UnboundedExpressionError(
                f"{program.column_name(first)} has no {side} bound, and none follows from the rows; give it "
                "one, or the variables that it is computed from, or use a backend that takes it without"
            )
    return lower, upper


def _entries(blocks: list[RowBlock]) -> _Entries:
    counts = [b.count for b in blocks]
    length = np.concatenate([np.diff(b.indptr) for b in blocks])
    fields = ("indices", "data", "lower", "upper")
    columns, data, lower, upper = (np.concatenate([getattr(b, f) for b in blocks]) for f in fields)
    return _Entries(np.repeat(np.arange(sum(counts)), length), columns, data, lower, upper, counts[0])


def _bound_by_rows(entries: _Entries, cost: Array, lower: Array, upper: Array) -> Array:
    """Upper bounds that follow from each row by itself; infinite where none does."""
    least, most = entries.others(lower, upper)
    below, above = loosened(entries.lower, -1.0), loosened(entries.upper, 1.0)
    gap = np.where(entries.value > 0, above[entries.row] - least, below[entries.row] - most)
    reach = np.where(entries.row < entries.always, gap / entries.value, np.inf)
    out = np.full(len(lower), np.inf)
    np.minimum.at(out, entries.column, reach)
    return np.asarray(np.floor(out + NOISE * np.maximum(1.0, np.abs(out))))


def _bound_dominated(entries: _Entries, cost: Array, lower: Array, upper: Array) -> Array:
    """Upper bounds on columns that cost nothing to decrease; infinite for the others."""
    least, most = entries.others(lower, upper)
    rising = entries.value > 0
    side = np.where(rising, entries.lower[entries.row], entries.upper[entries.row])
    with np.errstate(invalid="ignore"):  # a row without this side forces nothing
        force = (side - np.where(rising, least, most)) / entries.value
    out = np.array(lower)
    np.maximum.at(out, entries.column, np.where(np.isinf(side), -np.inf, force))
    return np.where((cost >= 0) & np.isfinite(out), np.ceil(out), np.inf)


register_backend(CpSat())
