"""Linear programs with too many columns to list: solve with some, ask an oracle for better ones, repeat.

Gilmore and Gomory (1961). While the restricted master is infeasible, it is made elastic: columns that stand
in for the missing activity of each row, with the sum of them as objective, so that no penalty has to be
guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array, as_numbers, spread
from forcopt.backends.base import RawResult, Session, SolveOptions
from forcopt.backends.conditioned import open_session
from forcopt.backends.registry import all_capabilities, get_backend
from forcopt.clock import Deadline, Improvement
from forcopt.compile.compiler import compile_model
from forcopt.compile.program import Program, StageCost
from forcopt.errors import BackendError, DeclarationError, UnsupportedError, require
from forcopt.language.constraint import Constraint
from forcopt.language.model import Model
from forcopt.language.objective import Objective, Stage, minimize
from forcopt.language.variable import Variable
from forcopt.loops.checks import EVALUATING, Claim, remedied
from forcopt.loops.rows_on_demand import RowsOnDemand
from forcopt.loops.solution import ModelSolution, relative_gap
from forcopt.loops.solve import read_claim
from forcopt.status import Status


@dataclass(frozen=True, eq=False)
class Column:
    """A column that a pricing oracle found; it stands at 0 until it joins the master.

    Attributes
    ----------
    cost : float
        In the objective, in the model's own sense.
    coefficients : Mapping[Constraint, Any]
        For each constraint that it enters, its addition to the left-hand side: numbers that broadcast to the
        constraint's shape.
    upper : float, default np.inf
        How large its value may be; its least value is 0.
    data : Any, optional
        The object that it stands for, at your choice (a pattern, a district, a classifier).
    """

    cost: float
    coefficients: Mapping[Constraint, Any] = field(repr=False)
    upper: float = np.inf
    data: Any = None

    def __post_init__(self) -> None:
        as_numbers(self.cost, "the cost of a column")
        full = {}
        for constraint, given in self.coefficients.items():
            subject = f"the column's coefficient in {constraint.name}"
            full[constraint] = spread(as_numbers(given, subject), constraint.shape, subject)
        object.__setattr__(self, "coefficients", full)


@dataclass(frozen=True, eq=False)
class Pricing:
    """The result of an oracle that returns more than columns.

    Attributes
    ----------
    columns : Iterable[Column]
        The columns found, if any.
    bound : float
        No column outside the master has a better reduced cost than this: a lower bound when minimising, an
        upper bound when maximising.
    """

    columns: Iterable[Column]
    bound: float


class Duals:
    """The input of a pricing oracle: the shadow prices at the master's optimum, in the model's own sense.

    Attributes
    ----------
    cost_weight : float
        1; or 0 as long as the master is infeasible, when only feasibility has a price.
    """

    def __init__(self, model: Model, rows: Array, cost_weight: float) -> None:
        self._model, self._rows = model, rows
        self.cost_weight = cost_weight

    def __call__(self, constraint: Constraint) -> Array:
        """The shadow price of each row of a constraint, in its shape."""
        if constraint.start < 0 or constraint.model is not self._model:
            raise DeclarationError(f"the constraint {constraint.name!r} is not in model {self._model.name!r}")
        end = constraint.start + constraint.expression.size
        return self._rows[constraint.start : end].reshape(constraint.shape)

    def reduced_cost(self, column: Column) -> float:
        """By how much the objective changes per unit of a column, once the others have adapted."""
        paid = sum(float((self(c) * a).sum()) for c, a in column.coefficients.items())
        return self.cost_weight * column.cost - paid


Oracle = Callable[[Duals], Iterable[Column] | Pricing]

_NO_COLUMN = "no column makes the master feasible"


@dataclass(frozen=True, eq=False)
class GeneratedSolution:
    """How a column generation ended.

    Attributes
    ----------
    solution : ModelSolution
        Of the model, which now holds the generated columns; its trace has one entry a round.
    variable : Variable
        The generated columns in the model, shape ``(len(columns),)``.
    columns : list[Column]
        The objects that they stand for, in the same order.
    rounds : int
        How often the master was solved.
    """

    solution: ModelSolution
    variable: Variable
    columns: list[Column] = field(repr=False)
    rounds: int

    def used(self, above: float = 1e-9) -> list[tuple[float, Column]]:
        """The columns with a value greater than `above`, each with its value."""
        values = self.solution[self.variable]
        return [(float(v), c) for v, c in zip(values, self.columns, strict=True) if v > above]


def column_generation(
    model: Model,
    price: Oracle,
    backend: str = "highs",
    *,
    total: float | None = None,
    gap: float = 1e-6,
    time_limit: float | None = None,
    rounds: int | None = None,
    rows_on_demand: bool = False,
    on_improvement: Callable[[Improvement], bool | None] | None = None,
) -> GeneratedSolution:
    """Solve a linear program whose columns a pricing oracle finds.

    The reduced cost of a column is ``dual.cost_weight * cost - sum of dual(constraint) * coefficients``.
    Whenever a column outside the master has a negative one (a positive one when maximising), the oracle must
    yield such a column, better still several; if it yields none, the master's optimum is taken for the
    optimum over all columns. An oracle that also proves a bound on all reduced costs returns a `Pricing`.
    Together with `total` it gives a bound on the optimum in every round, and the loop can stop before the
    last column.

    Parameters
    ----------
    model : Model
        The restricted master: an LP over the columns that are not generated (possibly none, then write the
        rows over ``model.lift(numpy.zeros(n))``). Afterwards it holds the generated columns as one more
        variable.
    price : Oracle
        The pricing oracle.
    backend : str, default "highs"
        Solves the masters; HiGHS continues from the basis of the round before.
    total : float, optional
        The values of all generated columns sum to at most this in some optimum (1 for a mixture, k for k
        districts): the Lagrangian bound ``master + total * bound``.
    gap : float, default 1e-06
        The relative gap at which to stop, as optimal.
    time_limit : float, optional
        Seconds for everything together; the oracle is not interrupted.
    rounds : int, optional
        Stop after this number, as feasible.
    rows_on_demand : bool, default False
        Give the solver the rows that some optimum violates alone, see `RowsOnDemand`: faster if most of many
        rows never bind.
    on_improvement : Callable[[Improvement], bool | None], optional
        Called after every round with a feasible master; stops the loop by returning True.

    Returns
    -------
    GeneratedSolution
        A solution with status OPTIMAL; FEASIBLE if stopped before; LIMIT if stopped while infeasible;
        INFEASIBLE, if no column helps; UNBOUNDED; or FAILED, if the solver was.

    Raises
    ------
    DeclarationError
        For a column with constraints of another model, or worse than the oracle's own bound.
    UnsupportedError
        If the model is not linear.

    Examples
    --------
    Cutting stock: rolls of width 100 into 97 pieces of 45, 610 of 36, 395 of 31 and 211 of 14.

    >>> import forcopt as fo, itertools
    >>> from forcopt.loops.column_generation import Column, column_generation
    >>> widths, demand = [45, 36, 31, 14], [97, 610, 395, 211]
    >>> patterns = [p for p in itertools.product(range(3), range(3), range(4), range(8))
    ...             if sum(w * a for w, a in zip(widths, p)) <= 100]
    >>> m = fo.Model("cutting stock")
    >>> meet = m.subject_to(m.lift([0.0] * 4) >= demand, name="meet")
    >>> def price(dual):
    ...     columns = [Column(1, {meet: p}, data=p) for p in patterns]
    ...     yield min(columns, key=dual.reduced_cost)
    >>> found = column_generation(m, price)
    >>> found.solution.status, round(found.solution.objective, 6)
    (<Status.OPTIMAL: 'optimal'>, 452.25)
    """
    deadline = Deadline(time_limit)
    chosen = get_backend(backend)
    options = SolveOptions(time_limit=time_limit, gap=gap)
    if model.objective is None:
        model.optimize(minimize(model.lift(0.0)))
    program = compile_model(model, chosen.capabilities, backend, all_capabilities)
    _check(model, program, total)
    session = RowsOnDemand(chosen, program) if rows_on_demand else open_session(chosen, program)
    master = _Master(session, model.column_count)
    sign, bound = master.sign, -np.inf
    best: RawResult | None = None
    trace: list[Improvement] = []
    done = iterations = 0

    def finish(status: Status, last: RawResult) -> GeneratedSolution:
        x, reduced = master.own(last.x), master.own(last.reduced_cost)
        result = replace(last, status=status, bound=bound, trace=trace, x=x, reduced_cost=reduced)
        result.iterations = iterations
        variable = _extend(model, master.columns)
        linear = replace(program, integer=np.zeros(model.column_count, dtype=np.int8))
        claim = Claim(model, linear, chosen, options, deadline, result, (result,))
        solution = read_claim(remedied(EVALUATING, linear, claim))
        return GeneratedSolution(solution, variable, master.columns, done)

    while True:
        result = master.session.solve(options.within(deadline.seconds))
        done += 1
        if result.status is Status.INFEASIBLE and not master.repaired and best is None:
            master.make_elastic()
            continue
        if result.status is not Status.OPTIMAL:
            if best is not None and result.status in (Status.FEASIBLE, Status.LIMIT):
                return finish(Status.FEASIBLE, replace(best, message=result.message))
            if master.elastic:
                return finish(Status.LIMIT, replace(result, x=None))
            if result.status is Status.INFEASIBLE:  # which it no longer is: unbounded, or lost by rounding
                return finish(Status.UNBOUNDED if result.ambiguous else Status.FAILED, result)
            return finish(result.status, result)
        if result.row_dual is None:
            raise BackendError(f"column generation needs duals; {backend} gave none: {result.message}")
        iterations += result.iterations
        missing, tolerated = result.objective, chosen.accuracy * master.scale
        if master.elastic and missing <= tolerated:
            master.make_rigid(result)
            continue
        dual = Duals(model, sign * result.row_dual, 0.0 if master.elastic else 1.0)
        columns, least = _ask(price, dual, sign, 0.1 * chosen.accuracy)
        stop = (rounds is not None and done >= rounds) or deadline.passed
        if master.elastic:
            if missing + (least and least * (np.inf if total is None else total)) > tolerated:
                return finish(Status.INFEASIBLE, replace(result, x=None, message=_NO_COLUMN))
            if stop or not columns:
                return finish(Status.LIMIT, replace(result, x=None))
        else:
            best = result
            bound = max(bound, _bound(result.objective, least, total))
            trace.append(Improvement(deadline.seconds, result.objective, bound))
            improvement = Improvement(trace[-1].seconds, sign * result.objective, sign * bound)
            stop |= on_improvement is not None and bool(on_improvement(improvement))
            # a bound may be above the value by rounding
            if bound >= result.objective or relative_gap(result.objective, bound) <= gap:
                return finish(Status.OPTIMAL, result)
            if stop or not columns:
                return finish(Status.FEASIBLE, result)
        master.add(columns)


def _check(model: Model, program: Program, total: float | None) -> None:
    curved = program.stages[0].quadratic is not None or program.cones or program.is_conditional
    if program.is_integer or curved or program.lazies or program.is_staged:
        raise UnsupportedError(
            f"column generation needs a linear program with one objective, and {model.name!r} is more: "
            "relax its integers, or generate columns for a linear part of it"
        )
    require(total is None or total >= 0, "total", total, "be at least 0")


def _ask(price: Oracle, dual: Duals, sign: float, tiny: float) -> tuple[list[Column], float]:
    """The columns that improve the master, and a lower bound on all (minimised) reduced costs."""
    answer = price(dual)
    least = min(sign * answer.bound, 0.0) if isinstance(answer, Pricing) else -np.inf
    improving = []
    for column in answer.columns if isinstance(answer, Pricing) else answer:
        if not isinstance(column, Column):
            raise DeclarationError(f"the pricing oracle yielded {column!r}, not a column")
        reduced, slack = sign * dual.reduced_cost(column), tiny * max(1.0, abs(column.cost))
        if reduced < least - slack:
            raise DeclarationError(
                f"the pricing oracle bounds the reduced costs by {sign * least:g} and yields a column "
                f"with {sign * reduced:g}"
            )
        if reduced < -slack:
            improving.append(column)
    if not improving and (not isinstance(answer, Pricing) or least >= -tiny):
        least = 0.0
    return improving, least


def _bound(value: float, least: float, total: float | None) -> float:
    """A lower bound on the optimum over all columns, from the least reduced cost of one."""
    if least == 0.0:
        return value
    return -np.inf if total is None else value + total * least


def _matrix(columns: list[Column], rows: int) -> sp.csc_array:
    """The coefficients of columns in the rows of a program."""
    parts = [
        (c.start + np.flatnonzero(a), j, a[a != 0])
        for j, column in enumerate(columns)
        for c, a in column.coefficients.items()
    ]
    at = np.concatenate([p[0] for p in parts] or [np.zeros(0, dtype=int)])
    of = np.repeat([p[1] for p in parts], [len(p[0]) for p in parts]).astype(int)
    values = np.concatenate([p[2] for p in parts] or [np.zeros(0)])
    return sp.csc_array((values, (at, of)), shape=(rows, len(columns)))


def _extend(model: Model, columns: list[Column]) -> Variable:
    """Add the generated columns to the model as one variable."""
    upper = np.array([c.upper for c in columns], dtype=float)
    variable = model.variable(model.unused_name("columns"), len(columns), lower=0.0, upper=upper)
    if columns:
        matrix = sp.csr_array(_matrix(columns, model.row_count))
        for constraint in {c: None for column in columns for c in column.coefficients}:
            rows = matrix[constraint.start : constraint.start + constraint.expression.size]
            constraint.rewrite(constraint.expression + (rows @ variable).reshape(constraint.shape))
        assert model.objective is not None
        (stage,) = model.objective.stages
        added = np.array([c.cost for c in columns]) @ variable
        model.optimize(Objective((Stage(stage.expression + added, stage.maximize),), model.objective.kind))
    return variable


class _Master:
    """The restricted master in a solver: the program's columns, then artificial ones, then generated ones."""

    def __init__(self, session: Session, kept: int) -> None:
        self.session, self.kept = session, kept
        self.program = session.program
        self.stage = session.program.stages[0]
        self.sign = self.stage.sign
        self.columns: list[Column] = []
        self.elastic = False
        self.repaired = False
        self.artificial = 0
        rows = self.program.rows
        sides = np.concatenate([rows.lower, rows.upper])
        self.scale = max(1.0, float(np.abs(sides[np.isfinite(sides)]).max(initial=0.0)))
        """Return the largest right-hand side; a sum of missing activity is compared with it."""

    def costs(self) -> Array:
        generated = np.array([self.sign * c.cost for c in self.columns])
        return np.concatenate([self.stage.cost, np.zeros(self.artificial), generated])

    def add(self, columns: list[Column]) -> None:
        cost = np.array([0.0 if self.elastic else self.sign * c.cost for c in columns])
        upper = np.array([c.upper for c in columns], dtype=float)
        matrix = _matrix(columns, self.program.rows.count)
        self.session.add_columns(cost, np.zeros(len(columns)), upper, matrix)
        self.columns.extend(columns)

    def make_elastic(self) -> None:
        """Let artificial columns repair the rows, and minimize their sum."""
        rows = self.program.rows
        lack, excess = np.flatnonzero(np.isfinite(rows.lower)), np.flatnonzero(np.isfinite(rows.upper))
        at, signs = np.concatenate([lack, excess]), np.repeat([1.0, -1.0], [len(lack), len(excess)])
        count = len(at)
        matrix = sp.csc_array((signs, (at, np.arange(count))), shape=(rows.count, count))
        self.session.add_columns(np.zeros(count), np.zeros(count), np.full(count, np.inf), matrix)
        self.elastic, self.repaired, self.artificial = True, True, count
        cost = np.zeros(self.program.columns + count)
        cost[self.program.columns :] = 1.0
        self.session.set_stage(StageCost(cost, 0.0, False))

    def make_rigid(self, result: RawResult) -> None:
        """Close the artificial columns at their values, zero but for rounding; restore the objective."""
        assert result.x is not None
        first, last = self.program.columns, self.program.columns + self.artificial
        upper = self.session.program.upper.copy()
        upper[first:last] = np.maximum(result.x[first:last], 0.0)
        self.session.set_bounds(self.session.program.lower, upper)
        self.session.set_stage(StageCost(self.costs(), self.stage.offset, self.stage.maximize))
        self.elastic = False

    def own(self, values: Array | None) -> Array | None:
        """Of an array over the columns of some round, the model's own and all generated ones (0 if later)."""
        if values is None:
            return None
        generated = values[self.program.columns + self.artificial :]
        return np.concatenate([values[: self.kept], generated, np.zeros(len(self.columns) - len(generated))])
