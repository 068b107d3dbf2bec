"""Solve a model on a backend: compile, run, check, read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.backends.base import Backend, RawResult, Session, SolveOptions
from forcopt.backends.conditioned import open_session
from forcopt.backends.registry import all_capabilities, backends, get_backend
from forcopt.clock import Deadline, Improvement
from forcopt.compile.capabilities import Capabilities
from forcopt.compile.compiler import compile_model, compile_parametric, fits
from forcopt.compile.program import Program, StageCost
from forcopt.errors import BackendError, UnsupportedError
from forcopt.language.evaluator import read_values
from forcopt.language.model import Model, Variable
from forcopt.language.relations import AtomRelation
from forcopt.loops.cone_duals import declared_cone_duals
from forcopt.loops.confirm import (
    IMPROVES_FOREVER,
    infeasibility_doubt,
    integer_infeasibility_doubt,
    integer_optimality_doubt,
    is_checkable,
    optimality_doubt,
)
from forcopt.loops.cutting_planes import cutting_planes
from forcopt.loops.diagnose import ray
from forcopt.loops.lexicographic import lexicographic
from forcopt.loops.leximin import hold_objective
from forcopt.loops.prepared import prepared
from forcopt.loops.solution import ModelSolution
from forcopt.status import Status

__all__ = ["default_backend", "postsolve", "solve_model"]


def solve_model(
    model: Model,
    backend: str | None = None,
    *,
    time_limit: float | None = None,
    gap: float | None = None,
    seed: int | np.random.Generator | None = None,
    threads: int | None = None,
    log: bool = False,
    start: Mapping[Variable, Any] | None = None,
    on_improvement: Callable[[Improvement], bool | None] | None = None,
    pool: int = 0,
    options: Mapping[str, Any] | None = None,
) -> ModelSolution:
    """Solve `model` on `backend`.

    Parameters
    ----------
    model : Model
        With an objective; without one any feasible point will do.
    backend : str, optional
        A name that ``forcopt backends`` lists. By default HiGHS for linear models, with integers or not;
        Clarabel for convex ones; SCIP for convex ones with integers. ``s.backend`` names it.
    time_limit : float, optional
        Seconds for everything together.
    gap : float, optional
        The relative gap at which a search may stop.
    seed : int or numpy.random.Generator, optional
        Of the solver's randomness; an int, or a generator that draws one.
    threads : int, optional
        How many, at most as many as the machine has.
    log : bool, default False
        Show the solver's own output as it runs; ``s.log`` keeps it either way.
    start : Mapping[Variable, Any], optional
        Values to start a search from, for some or all variables; NaN where unknown.
    on_improvement : Callable[[Improvement], bool | None], optional
        Called with every improvement, where the solver reports them; stop by returning True.
    pool : int, default 0
        The largest number of feasible points of the search to keep in ``s.pool``, best first. HiGHS, SCIP and
        CP-SAT report them, for integer models with one objective.
    options : Mapping[str, Any], optional
        Options of the solver by its own names.

    Returns
    -------
    ModelSolution
        Status, values, objective, bound, multipliers and message.

    Raises
    ------
    UnknownNameError, NotInstalledError
        For the backend.
    UnsupportedError, UnboundedExpressionError
        If the backend cannot take the model.
    BackendError
        If the solver crashes, or claims a point that violates the model.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", lower=2)
    >>> m.minimize(3 * x)
    >>> solve_model(m, "highs").objective
    6.0
    """
    deadline = Deadline(time_limit)
    backend = default_backend(model) if backend is None else backend
    chosen = get_backend(backend)
    if isinstance(seed, np.random.Generator):
        seed = int(seed.integers(2**31 - 1))
    point = None if start is None else read_values(model, start)
    settings = SolveOptions(
        time_limit, gap, seed, threads, log, point, on_improvement, pool, {} if options is None else options
    )
    session: Session
    if model.parameters:
        program, session = prepared(
            model,
            chosen,
            settings,
            lambda: compile_parametric(model, chosen.capabilities, backend, all_capabilities),
        )
        if settings.start is None and program.is_integer and session.last is not None:
            known = np.where(program.integer == 1, session.last, np.nan)
            settings = replace(settings, start=known[: model.column_count])
    else:
        program = compile_model(model, chosen.capabilities, backend, all_capabilities)
        session = open_session(chosen, program)
    if settings.start is not None:
        pad = np.full(program.columns - model.column_count, np.nan)
        settings = replace(settings, start=np.concatenate([settings.start, pad]))
    if program.is_staged and gap is None:
        settings = replace(settings, gap=0.0)  # later stages would use up the slack of a gap
    native_lazy, begun = "lazy" in chosen.capabilities.kinds, False

    def run(current: Session, last: bool) -> RawResult:
        nonlocal settings, begun
        if begun and deadline.passed:  # a solver may answer in no time, again and again
            return RawResult(Status.LIMIT, message=f"{deadline.end} between two solves")
        begun = True
        if model.lazies and not native_lazy:
            result = cutting_planes(current, model, settings, deadline, chosen.accuracy)
        else:
            result = current.solve(settings.within(deadline.seconds))
        if result.x is not None and program.is_integer and program.is_staged:
            # The integers are feasible in the next stage; its new columns have other values.
            settings = replace(settings, start=np.where(program.integer == 1, result.x, np.nan))
        return result

    result, results = lexicographic(session, program, run, chosen.accuracy)
    session.last = result.x
    checked = session.program if model.lazies else program  # with the rows of the lazy families
    if checked.callbacks:
        checked = replace(checked, callbacks=())  # no check rests on a cut
    if result.ambiguous:
        result.status = _disambiguate(chosen, checked, settings, deadline)
    if result.status is Status.INFEASIBLE and program.cones:  # conic solvers take large values for that
        if _disambiguate(chosen, checked, settings, deadline) is Status.UNBOUNDED:
            result.status = Status.FAILED
            result.message += "; but without the objective there is a feasible point"
        elif _refuted(model, program, settings.within(deadline.seconds)):
            result.status = Status.FAILED
            result.message += "; but a point of the linear rows satisfies the model"
    measured = False
    if is_checkable(program):
        claimed = result
        result = _confirmed(model, chosen, checked, result, settings, deadline)
        results[-1] = result if result.status.has_solution else results[-1]
        measured = result is claimed and checked is program
    cut = any(c.kind == "cut" for c in model.callbacks) and "cut" in chosen.capabilities.kinds
    if cut and (words := _better(model, chosen, checked, result, settings, deadline)):
        result.status, result.message = Status.FAILED, f"{result.message}; but {words}"
        results[0].bound = -np.inf
    quadratic = program.stages[-1].quadratic is not None and not program.cones  # rays are linear programs
    if (result.status is Status.FAILED and quadratic) or (
        result.status is Status.UNBOUNDED and not is_checkable(program) and not program.cones
    ):
        # Solvers of quadratic programs take rays for optima; the ray decides.
        confirmed = not model.lazies and bool(ray(model, backend if program.indicators else "highs"))
        if result.status is Status.UNBOUNDED and not confirmed and not model.lazies:
            result.message += f"; but {_NO_RAY}"
        if not confirmed and not model.lazies:
            result.status = Status.FAILED
        elif confirmed and result.status is Status.FAILED:  # there is a ray; is there a point?
            solver = chosen if program.indicators else get_backend("highs")
            plain = SolveOptions(settings.within(deadline.seconds).time_limit)
            result.status = _disambiguate(solver, checked, plain, deadline)
    if model.lazies and result.status is Status.UNBOUNDED:
        # The families may bound it, but an oracle can only be asked about a point.
        result.status = Status.FAILED
        result.message += "; without its lazy families the model is unbounded: give the variables bounds"
    judged = result.status is Status.OPTIMAL and result.x is not None and not (program.is_staged or measured)
    if judged and result.x is not None and (words := _beyond_tolerance(program, result.x, chosen)):
        result.status = Status.FAILED
        result.message += f"; but {words}"
    takes = chosen.capabilities.kinds if program.is_integer else frozenset[str]()
    if ignored := [c for c in model.callbacks if c.kind not in takes]:
        words = ", ".join(f"{c.kind} {c.name!r}" for c in ignored)
        result.message += f"; {backend} does without {words}"
    solution = postsolve(model, chosen, program, result, results, deadline.seconds, gap)
    del solution.points[pool:]
    return solution


_NO_RAY = "there is no direction in which the objective improves forever"

_AT_TOLERANCE = 1.01
"""A solver stops at its tolerance; the sums of a row, computed here again, round differently."""

_PROOF, _QUADRATIC_PROOF = 2.0, 100.0
"""The largest relative distance of an optimum from its multipliers' bound, in multiples of the accuracy."""

_FAR = 1e15
"""Solvers do not compute with values this large: they show a ray, or a numerical failure."""


def _confirmed(
    model: Model,
    backend: Backend,
    program: Program,
    result: RawResult,
    options: SolveOptions,
    deadline: Deadline,
) -> RawResult:
    """Check the status of a linear or quadratic program; if in doubt, solve it again.

    First with scaling (or without, if the backend scales) and under its careful options, such as without
    presolve, then by other solvers.

    Returns
    -------
    RawResult
        The first result whose status is confirmed; FAILED, with the words of both, if none is.
    """
    doubt = _doubt(model, backend, program, result, options, deadline)
    if not doubt:
        return result
    words = f"{result.message}; but {doubt}"
    if doubt == IMPROVES_FOREVER and not model.lazies:  # from the point that the solver gives
        return RawResult(Status.UNBOUNDED, message=words, log=result.log, iterations=result.iterations)
    needed = {"rows"} | ({"integer"} if program.is_integer else set())
    needed |= {"quadratic"} if program.stages[0].quadratic is not None else set()
    attempts = [(backend, {**options.extra, **backend.careful})] if backend.careful else []
    for name in _INTEGER_OTHERS if program.is_integer else _OTHERS:
        other = backends()[name]
        if name != backend.name and other.missing() is None and needed <= other.capabilities.kinds:
            attempts.append((other, {}))
    for other, extra in attempts:
        if deadline.passed:
            break
        same = other is backend
        how = f"{'without' if other.scales else 'with'} scaling" if same else f"by {other.name}"
        rest = replace(options.within(deadline.seconds), extra=extra, start=None)
        if not same:
            rest = replace(rest, gap=None, seed=None, threads=None, on_improvement=None)
        try:
            again = open_session(other, program, scaled=not other.scales if same else None).solve(rest)
            if again.ambiguous:
                again.status = _disambiguate(other, program, rest, deadline)
                again.ambiguous = False
        except (BackendError, UnsupportedError) as error:
            words += f"; {how}: {error}"
            continue
        settled = again.status in (Status.OPTIMAL, Status.INFEASIBLE, Status.UNBOUNDED)
        if model.lazies and again.status is not Status.INFEASIBLE:
            settled = False
        if settled and not _doubt(model, other, program, again, rest, deadline):
            again.message = f"{words}; solved again {how}: {again.message}"
            return again
        words += f"; {how}: {again.message}"
    if deadline.passed and result.x is not None:  # a point without a proof
        return replace(result, status=Status.FEASIBLE, bound=-np.inf, row_dual=None, message=words)
    return replace(result, status=Status.FAILED, x=None, objective=float("nan"), message=words)


_OTHERS, _INTEGER_OTHERS = ("highs", "glop", "clarabel"), ("highs", "gscip")
"""Solvers that are asked for a second opinion, in this order."""


def _doubt(
    model: Model,
    backend: Backend,
    program: Program,
    result: RawResult,
    options: SolveOptions,
    deadline: Deadline,
) -> str:
    """Give the reason why a program does not have the status that a solver claims; empty if it has."""
    left = options.within(deadline.seconds)
    if result.status is Status.INFEASIBLE:
        doubt = infeasibility_doubt(program, left, backend.accuracy)
        if doubt or not program.is_integer:
            return doubt
        spent = deadline.seconds
        return integer_infeasibility_doubt(program, backend.name, left, spent, backend.accuracy)
    if result.status is Status.OPTIMAL:
        assert result.x is not None
        activity = program.matrix() @ result.x
        if words := _beyond_tolerance(program, result.x, backend, activity):
            return words
        if not program.is_integer:
            factor = _PROOF if program.stages[0].quadratic is None else _QUADRATIC_PROOF
            seconds = min(max(1.0, deadline.seconds), np.inf if left.time_limit is None else left.time_limit)
            return optimality_doubt(program, result, factor * backend.accuracy, seconds, activity)
        bounded = np.isfinite(program.lower) & np.isfinite(program.upper)
        if np.abs(result.x).max(initial=0.0, where=~bounded) >= _FAR:
            return "a value is beyond its range of numbers"
        if not model.lazies:
            spent = deadline.seconds
            return integer_optimality_doubt(program, backend.name, result.x, left, spent, backend.accuracy)
    if result.status is Status.FEASIBLE and result.x is not None and not program.is_integer:
        return _beyond_tolerance(program, result.x, backend)  # a solver that got stuck may have scaled
    if result.status is Status.UNBOUNDED and not model.lazies:
        if not ray(model):
            return _NO_RAY
        if _disambiguate(get_backend("highs"), program, SolveOptions(left.time_limit), deadline) is (
            Status.INFEASIBLE
        ):
            return "no point is feasible"
    if result.status is Status.FAILED and program.stages[0].quadratic is None:
        return "it found no answer"
    return ""


def _beyond_tolerance(program: Program, x: Array, backend: Backend, activity: Array | None = None) -> str:
    """Describe a violation beyond the backend's accuracy; empty for a point within it."""
    if program.holds(x, _AT_TOLERANCE * backend.accuracy, activity):
        return ""
    off = program.violation(x, activity)
    return f"its point violates a row or bound by {off:.2g} > {backend.accuracy:g}"


def default_backend(model: Model) -> str:
    """The backend for a model's kind, among the installed ones.

    Linear models, with integers or not, go to HiGHS; convex ones to Clarabel; convex ones with integers to
    SCIP.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 2)
    >>> m.minimize(fo.abs(x - 1).sum())
    >>> default_backend(m)
    'highs'
    >>> m.minimize(fo.sum_squares(x - 1))
    >>> default_backend(m)
    'clarabel'
    """
    if not model.relations or fits(model, Capabilities(frozenset({"rows", "integer"}))):
        return "highs"
    ready = {name: b for name, b in backends().items() if b.missing() is None}
    for name in ("clarabel", "scip", "gscip"):
        if name in ready and fits(model, ready[name].capabilities):
            return name
    return "highs"


_APART = 1e-3
"""How far, relative to the larger of 1 and the value, an optimum may be from the bound that proves it."""


def _disambiguate(backend: Backend, program: Program, options: SolveOptions, deadline: Deadline) -> Status:
    """Distinguish infeasible from unbounded by a solve without an objective."""
    empty = StageCost(np.zeros(program.columns), 0.0, False)
    result = open_session(backend, program.with_stage(empty)).solve(options.within(deadline.seconds))
    if result.status.has_solution:
        return Status.UNBOUNDED
    # A model without an objective is not unbounded, so a solver that reports it found no feasible point.
    return Status.INFEASIBLE if result.ambiguous or result.status is Status.UNBOUNDED else result.status


def _better(
    model: Model,
    backend: Backend,
    program: Program,
    result: RawResult,
    options: SolveOptions,
    deadline: Deadline,
) -> str:
    """Describe a point beyond the bound that a search with cuts claims, found without them; else empty.

    Of objectives in order, each is searched for with the claimed values of the earlier ones held. The search
    without cuts may take a twentieth of the time, or half a second if that is more. No such point is no
    proof.
    """
    claims = (Status.OPTIMAL, Status.INFEASIBLE) + ((Status.FEASIBLE,) if not program.is_staged else ())
    sorted_stages = any(stage.leximin is not None for stage in program.stages)
    if not program.is_integer or sorted_stages or result.status not in claims:
        return ""
    spent = deadline.seconds
    left = options.within(spent).time_limit
    limit = min(max(0.5, spent / 20), np.inf if left is None else left) / len(program.stages)
    known = np.full(program.columns, np.nan)
    known[: model.column_count] = np.nan if options.start is None else options.start[: model.column_count]
    plain = SolveOptions(limit, start=None if np.isnan(known).all() else known)
    session = open_session(backend, program)
    for number, stage in enumerate(program.stages, 1):
        if number > 1:
            session.set_stage(stage)
        found = session.solve(plain)
        if found.x is None or program.violation(found.x) > backend.accuracy:
            return ""
        completed = _completed(model, program, found.x)
        if max(model.violations(completed).values(), default=0.0) > backend.accuracy:
            return ""
        value, claim = stage.value(found.x), result.bound
        if result.status is Status.INFEASIBLE:
            claim = np.inf
        elif program.is_staged:
            assert result.x is not None
            claim = stage.value(result.x)
        if value < claim - 100 * backend.accuracy * max(1.0, abs(value)):
            place = f" in stage {number}" if program.is_staged else ""
            shown = stage.sign * value
            return f"without the cuts a point of value {shown:.6g}{place} is feasible: a cut excludes it"
        if number < len(program.stages):
            session.add_rows(hold_objective(stage, claim, program.tolerance))
    return ""


def _refuted(model: Model, program: Program, options: SolveOptions) -> bool:
    """Whether a point of the linear rows, with the atoms' true values there, satisfies a whole model.

    The point is sought by HiGHS, first without the cones, then with the atoms' arguments held and with their
    values; if none is found, that proves nothing.
    """
    outside = (
        np.isposinf(program.lower) | np.isneginf(program.upper)
    ).any()  # an atom's value is never finite
    if program.is_conditional or model.lazies or outside:
        return False
    highs, wide = get_backend("highs"), model.column_count
    empty = StageCost(np.zeros(program.columns), 0.0, False)
    rows = replace(program, cones=(), stages=(empty,))
    held = np.zeros(program.columns, dtype=bool)
    for relation in model.needed_relations():
        if isinstance(relation, AtomRelation):
            held[relation.result_columns] = True
            for argument in relation.arguments:
                held[argument.linear_rows().indices] = True
    for _ in range(2):
        found = open_session(highs, rows).solve(replace(options, start=None, extra={}, log=False)).x
        if found is None:
            return False
        point = model.complete(found[:wide])
        if np.isfinite(point).all() and max(model.violations(point).values(), default=0.0) <= highs.accuracy:
            return True
        values = np.append(point, found[wide:])
        if not np.isfinite(values[held]).all():  # outside an atom's domain
            return False
        lower, upper = np.where(held, values, rows.lower), np.where(held, values, rows.upper)
        rows = replace(rows, lower=lower, upper=upper)
    return False


def postsolve(
    model: Model,
    backend: Backend,
    program: Program,
    result: RawResult,
    results: list[RawResult],
    seconds: float,
    gap: float | None = None,
) -> ModelSolution:
    """Re-evaluate the point by the model itself and translate the answer to the model's own sense."""
    point, violation = None, 0.0
    stages: tuple[float, ...] = ()
    if result.x is not None:
        whole = result.x[_integers(model, program)] if program.is_integer else result.x[:0]
        off = np.abs(whole - np.round(whole)).max(initial=0.0)
        if off > 100 * backend.accuracy:
            raise BackendError(
                f"{backend.name} claims a point with an integer off by {off:.3g}; message: {result.message}"
            )
        point = _completed(model, program, result.x)
        violations = model.violations(point)
        worst = max(violations, key=lambda k: violations[k], default="")
        violation = violations.get(worst, 0.0)
        if violation > 100 * backend.accuracy:
            raise BackendError(
                f"{backend.name} claims a point that violates {worst!r} by {violation:.3g}; "
                f"message: {result.message}"
            )
        objective = model.objective
        stages = tuple(v for s in objective.stages for v in s.values(point)) if objective else (0.0,)
    first = program.stages[0]
    bound = results[0].bound if np.isfinite(results[0].bound) else -np.inf
    if result.status is Status.OPTIMAL and np.isfinite(bound) and stages:
        apart = abs(stages[0] - first.sign * bound) / max(1.0, abs(stages[0]))
        if apart > max(gap or 0.0, _APART):
            result.status = Status.FAILED
            result.message += f"; but its bound {first.sign * bound:.6g} does not prove {stages[0]:.6g}"
    pool: list[Array] = []
    if not program.is_staged and point is not None:
        distinct = {p.tobytes(): p for p in (_completed(model, program, x) for x in result.pool)}
        near = [p for p in distinct.values() if max(model.violations(p).values(), default=0.0) <= 1e-6]
        worth = model.objective.stages[0].values if model.objective else lambda p: (0.0,)
        pool = sorted(near, key=lambda p: first.sign * worth(p)[0])
    exact = not program.is_staged and not program.is_integer
    duals = exact and result.status is Status.OPTIMAL and result.row_dual is not None
    return ModelSolution(
        model=model,
        status=result.status,
        objective=stages[0] if stages else float("nan"),
        bound=first.sign * bound,
        stages=stages,
        point=point,
        seconds=seconds,
        backend=backend.name,
        bridges=program.bridges,
        violation=violation,
        iterations=sum(r.iterations for r in results),
        nodes=sum(r.nodes for r in results),
        message=result.message,
        log="".join(r.log for r in results),
        trace=[
            Improvement(t.seconds, first.sign * t.objective, first.sign * t.bound) for t in results[0].trace
        ],
        row_dual=first.sign * result.row_dual[: model.row_count]
        if duals and result.row_dual is not None
        else None,
        reduced_costs=(
            first.sign * result.reduced_cost[: model.column_count]
            if duals and result.reduced_cost is not None
            else None
        ),
        cone_duals=declared_cone_duals(program, result) if duals else None,
        points=pool,
    )


def _integers(model: Model, program: Program) -> Array:
    """The model's columns that must be integers."""
    return np.flatnonzero(program.integer[: model.column_count] == 1)


def _completed(model: Model, program: Program, x: Array) -> Array:
    """The model's columns of a program's point: integers rounded, atoms and products computed."""
    point = np.array(x[: model.column_count])
    if program.is_integer:
        integer = _integers(model, program)
        point[integer] = np.round(point[integer]) + 0.0  # no negative zeros
    held = model.parametric_columns()
    if held is not None:  # not as a solver rounded them
        np.copyto(point, program.lower[: len(held)], where=held)
    return model.complete(point)
