"""Solve a model on a backend: compile, run, check, read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from forcopt.arrays import one_seed
from forcopt.backends.base import Backend, RawResult, Session, SolveOptions
from forcopt.backends.conditioned import open_session
from forcopt.backends.outer import with_tangents
from forcopt.backends.registry import all_capabilities, backends, get_backend
from forcopt.clock import Deadline, Improvement
from forcopt.compile.compiler import Capabilities, compile_model, compile_parametric, fits
from forcopt.compile.program import Program
from forcopt.compile.separation import Withdrawn
from forcopt.errors import DeclarationError
from forcopt.language.evaluator import read_values
from forcopt.language.model import Model
from forcopt.language.variable import Variable
from forcopt.loops.checks import Claim, examined
from forcopt.loops.cutting_planes import cutting_planes
from forcopt.loops.lexicographic import lexicographic
from forcopt.loops.prepared import prepared
from forcopt.loops.solution import ModelSolution
from forcopt.status import Status


def solve_model(
    model: Model,
    backend: str | None = None,
    *,
    time_limit: float | None = None,
    gap: float | None = None,
    seed: int | np.random.Generator | None = None,
    rng: int | np.random.Generator | None = None,
    threads: int | None = None,
    log: bool = False,
    start: Mapping[Variable, Any] | None = None,
    on_improvement: Callable[[Improvement], bool | None] | None = None,
    mccormick: int = 0,
    options: Mapping[str, Any] | None = None,
) -> ModelSolution:
    """Solve `model` on `backend`.

    Parameters
    ----------
    model : Model
        With an objective; without one any feasible point will do.
    backend : str, optional
        A name that ``forcopt backends`` lists. By default HiGHS for linear models, with integers or not;
        Clarabel for convex ones; SCIP for convex ones with integers and for products that are not convex.
        ``s.backend`` names it.
    time_limit : float, optional
        Seconds for everything together.
    gap : float, optional
        The relative gap at which a search may stop.
    seed : int or numpy.random.Generator, optional
        Of the solver's randomness; an int, or a generator that draws one.
    rng : int or numpy.random.Generator, optional
        Another name of ``seed``, as Scientific Python's SPEC 7 has it.
    threads : int, optional
        How many, at most as many as the machine has.
    log : bool, default False
        Show the solver's own output as it runs; ``s.log`` keeps it either way.
    start : Mapping[Variable, Any], optional
        Values to start a search from, for some or all variables; NaN where unknown.
    on_improvement : Callable[[Improvement], bool | None], optional
        Called with every improvement, where the solver reports them; stop by returning True.
    mccormick : int, default 0
        Relax the products that are not convex: their convex hulls over this many pieces of the range of one
        factor take their place, which needs bounds on all their variables. ``s.bound`` then bounds the
        model. A point of the relaxation is the answer only if it satisfies the model; without one the status
        is LIMIT.
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
    given: object = mccormick
    if isinstance(given, bool) or not isinstance(given, Integral) or mccormick < 0:
        raise DeclarationError(f"mccormick is {mccormick!r}; it must be a number of pieces, an integer >= 0")
    chosen = get_backend(default_backend(model, int(mccormick)) if backend is None else backend)
    if isinstance(seed := one_seed(seed, rng), np.random.Generator):
        seed = int(seed.integers(2**31 - 1))
    point = None if start is None else read_values(model, start)
    asked = SolveOptions(
        time_limit, gap, seed, threads, log, point, on_improvement, {} if options is None else options
    )
    claim: Claim | None = None
    while claim is None:
        program, session = _opened(model, chosen, asked, int(mccormick))
        opened = deadline.seconds
        with suppress(Withdrawn):
            claim = _run(model, chosen, program, session, _fitted(asked, model, program, session), deadline)
    ran = deadline.seconds
    solved = session.program if model.lazies else program  # with the rows of the lazy families
    solution = read_claim(examined(solved, claim))
    own, checks = sum(result.seconds for result in claim.results), deadline.seconds - ran
    solution.parts = {"compile": opened, "call": ran - opened, "solver": own, "checks": checks}
    return solution


def _opened(model: Model, backend: Backend, options: SolveOptions, mccormick: int) -> tuple[Program, Session]:
    """Compile a model for a backend and hand it over; one with parameters or edits may be there already."""
    capabilities = replace(with_tangents(backend), mccormick=mccormick)
    if not (model.parameters or model.is_edited):
        program = compile_model(model, capabilities, backend.name, all_capabilities)
        return program, open_session(backend, program)
    key = f"{backend.name} {mccormick}" if mccormick else backend.name
    anew = partial(compile_parametric, model, capabilities, backend.name, all_capabilities)
    return prepared(model, backend, key, options, anew)


def _fitted(options: SolveOptions, model: Model, program: Program, session: Session) -> SolveOptions:
    """The options for a program: a start over all columns; no gap, whose slack later stages would use."""
    if program.is_staged and options.gap is None:
        options = replace(options, gap=0.0)
    start = options.start
    if start is not None:
        start = np.concatenate([start, np.full(program.columns - model.column_count, np.nan)])
    elif model.parameters and program.is_integer and session.last is not None:
        start = np.where(program.integer == 1, session.last, np.nan)
        start[model.column_count :] = np.nan
    return replace(options, start=start)


def _run(
    model: Model,
    backend: Backend,
    program: Program,
    session: Session,
    options: SolveOptions,
    deadline: Deadline,
) -> Claim:
    """Run the stages of a program, with the rounds of its lazy families, to what the solver claims."""
    native = "lazy" in backend.capabilities.kinds

    def resumed(best: RawResult | None) -> SolveOptions:
        if best is None or best.x is None or not (program.is_integer and program.is_staged):
            return options
        # The integers are feasible in the next stage; its new columns have other values.
        return replace(options, start=np.where(program.integer == 1, best.x, np.nan))

    def solve(current: Session, best: RawResult | None) -> RawResult:
        if best is not None and deadline.passed:  # a solver may answer in no time, again and again
            return RawResult(Status.LIMIT, message=f"{deadline.end} between two solves")
        if model.lazies and not native:
            return cutting_planes(current, model, resumed(best), deadline, backend.accuracy)
        return current.solve(resumed(best).within(deadline.seconds))

    result, results = lexicographic(session, program, solve, backend.accuracy)
    session.last = result.x
    return Claim(model, program, backend, resumed(result), deadline, result, tuple(results))


def default_backend(model: Model, mccormick: int = 0) -> str:
    """The backend for a model's kind, among the installed ones.

    Linear models, with integers or not, go to HiGHS; convex ones to Clarabel; convex ones with integers, and
    products that are not convex, to SCIP.

    Parameters
    ----------
    model : Model
        Any.
    mccormick : int, default 0
        As of `solve_model`.

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
    linear = Capabilities(frozenset({"rows", "integer"}), mccormick=mccormick)
    if not model.relations or fits(model, linear):
        return "highs"
    ready = {name: b for name, b in backends().items() if b.missing() is None}
    for name in ("clarabel", "scip", "gscip"):
        if name in ready and fits(model, replace(ready[name].capabilities, mccormick=mccormick)):
            return name
    return "highs"


def read_claim(claim: Claim) -> ModelSolution:
    """Translate a checked claim to the model's own sense."""
    program, result, results, model = claim.compiled, claim.result, claim.results, claim.model
    sign, stages = program.stages[0].sign, claim.stages
    duals = result.status is Status.OPTIMAL and not (program.is_staged or program.is_integer)
    rows, columns = (result.row_dual, result.reduced_cost) if duals else (None, None)
    bound = results[0].bound
    return ModelSolution(
        model=model,
        status=result.status,
        objective=stages[0] if stages else float("nan"),
        bound=sign * (bound if np.isfinite(bound) else -np.inf),
        stages=stages,
        point=claim.point,
        seconds=claim.deadline.seconds,
        backend=claim.backend.name,
        bridges=program.bridges,
        violation=max(claim.violations.values(), default=0.0),
        iterations=sum(r.iterations for r in results),
        nodes=sum(r.nodes for r in results),
        message=result.message,
        log="".join(r.log for r in results),
        trace=[Improvement(t.seconds, sign * t.objective, sign * t.bound) for t in results[0].trace],
        row_dual=None if rows is None else sign * rows[: model.row_count],
        reduced_costs=None if columns is None else sign * columns[: model.column_count],
    )
