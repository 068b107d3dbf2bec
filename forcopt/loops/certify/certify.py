"""Choose the prover that fits a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from forcopt.arrays import as_numbers
from forcopt.backends.base import SolveOptions
from forcopt.backends.conditioned import open_session
from forcopt.backends.registry import backends, get_backend
from forcopt.clock import Deadline
from forcopt.compile.compiler import Capabilities, compile_model
from forcopt.compile.program import Program
from forcopt.errors import DeclarationError, UnboundedExpressionError, UnsupportedError
from forcopt.language.evaluator import read_values
from forcopt.language.model import Model
from forcopt.language.variable import Variable
from forcopt.loops.certify.certificate import Certificate, certificate_of
from forcopt.loops.certify.convex import certify_conic, certify_quadratic, conic_farkas, has_file, is_small
from forcopt.loops.certify.evaluation import NOT_CONVEX, ExactPoint, premises
from forcopt.loops.certify.linear import Effort, certify_linear, certify_without_point
from forcopt.loops.cutting_planes import cutting_planes
from forcopt.loops.exact_lp import LinearProgram, Rational, decimal, fraction, rational
from forcopt.loops.solution import ModelSolution
from forcopt.status import Status

QUADRATIC = Capabilities(frozenset({"rows", "integer", "quadratic"}))

CONDITIONS = Capabilities(QUADRATIC.kinds | {"indicator"})
"""Conditions are kept as they are: `LinearProgram.of` switches their rows off by exact constants."""

_SECONDS = 60.0
"""How long the search for the columns that a decision leaves open may take."""

CONIC = Capabilities(frozenset({"rows", "second_order", "semidefinite_cone", "exponential"}))


def certify_model(
    solution: ModelSolution,
    rounding: float | None = None,
    *,
    decimals: bool = False,
    time_limit: float | None = 60.0,
    save: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    number: Callable[[float], Rational] | None = None,
) -> Certificate:
    """Check a solution in exact rational arithmetic; see `forcopt.loops.certify` for the meaning.

    The solver's answer is only a hint: the proof rests on the model, the point and rational arithmetic. The
    certificate lists its premises.

    Parameters
    ----------
    solution : ModelSolution
        Of a model.
    rounding : float, optional
        How far an exact point may be from the one given, relative to values above 1; by default a hundred
        times the accuracy of the backend. For a continuous linear model it is enough if the given point
        satisfies the model to within `rounding` and its objectives agree to a hundredth of it.
    decimals : bool, default False
        Take every number of the model for the shortest decimal that rounds to it, as files write them: 0.1
        for a tenth, not for the float next to it. For linear models without atoms or conditions.
    time_limit : float, default 60
        Seconds for branch and bound; None for no limit.
    save : str or Path, optional
        Write the proof of a linear or integer model, or of its infeasibility, to this VIPR file, which
        ``python -m forcopt.check`` and other checkers of the format read; that of a quadratic or conic model
        to this JSON file for the former. `how` says if there is none.
    progress : Callable[[int, int], None], optional
        Called now and then with the subproblems done and the depth of the search.
    number : Callable[[float], Rational], optional
        Reads the model's floats instead of `decimals`, as a file's numbers of many digits need.

    Returns
    -------
    Certificate
        The feasibility, objective and bound that are proved, and how.

    Raises
    ------
    DeclarationError
        If the model or a parameter has changed since the solution was found; if `decimals` is asked for a
        model with atoms, conditions or lazy families; if `rounding` is negative or no finite number.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", shape=2, lower=0)
    >>> _ = m.subject_to(3 * x[0] + x[1] >= 1, x[0] + 3 * x[1] >= 2)
    >>> m.minimize(x[0] + x[1])
    >>> print(m.solve().certify())
    feasible   yes...
    objective  3/4
    bound      3/4
    optimal    yes
    how        multipliers of the rows prove the bound...
    """
    taken = list(premises(solution.model))
    wrong = any(NOT_CONVEX in premise for premise in taken)  # the bound is that of another objective
    effort = Effort(Deadline(time_limit), None if save is None or wrong else Path(save), progress)
    _check_saving(solution.model, effort.save)
    out = _certified(solution, rounding, number or (decimal if decimals else rational), effort)
    for premise in taken if out.bound is not None or out.dual is not None else ():
        out = out.assuming(premise)
    if wrong and out.optimal:
        out = replace(out, optimal=None)
    return out


def _check_saving(model: Model, save: Path | None) -> None:
    if save is None:
        return
    if not save.parent.is_dir():
        raise DeclarationError(f"save is {str(save)!r}, but there is no folder {str(save.parent)!r}")
    stages = model.objective.count if model.objective else 0
    if stages > 1:
        raise DeclarationError(
            f"save is {str(save)!r}, but model {model.name!r} has {stages} objectives; a file holds one"
        )


def _certified(
    solution: ModelSolution, rounding: float | None, number: Callable[[float], Rational], effort: Effort
) -> Certificate:
    if changed := solution.change():
        raise DeclarationError(changed)
    if rounding is not None and (as_numbers(rounding, "rounding") < 0).any():
        raise DeclarationError(f"rounding is {rounding!r}; it must be at least 0")
    if number is not rational and (solution.model.relations or solution.model.lazies):
        raise DeclarationError(
            f"decimals=True, but model {solution.model.name!r} has atoms, conditions or lazy families, "
            "whose rows are computed from floats; it takes linear rows and objectives"
        )
    model, program = solution.model, _program(solution.model)
    if solution.point is None:
        if program is not None and model.lazies and solution.status in (Status.INFEASIBLE, Status.UNBOUNDED):
            program = _with_cuts(model, program, effort.deadline)
        conic = _conic(model) if program is None and solution.status is Status.INFEASIBLE else None
        if conic is not None and (dual := conic_farkas(conic, effort.save)) is not None:
            how = "infeasibility proved by rational multipliers of rows and cones"
            how += f"; the proof is in {effort.save}" if effort.save and has_file(conic) else ""
            return Certificate(False, None, None, None, None, how, dual=tuple(map(fraction, dual)))
        return certify_without_point(solution, program, effort, number)
    own = ExactPoint(model, solution.point, number)
    tolerance = rational(100 * get_backend(solution.backend).accuracy if rounding is None else rounding)
    conic = _conic(model) if program is None else None
    if conic is not None:
        return certify_conic(conic, own, tolerance, effort.save)
    if program is None or (program.stages[-1].quadratic is not None and len(program.stages) > 1):
        words = "the optimum is not proved: the model is too large, its oracles inexact, or it is not convex"
        return certificate_of(own, own, None, None, words)
    if model.lazies:
        program = _with_cuts(model, program, effort.deadline)
    if program.stages[-1].quadratic is not None:
        return _quadratic(program, own, tolerance, effort.save)
    return certify_linear(program, own, tolerance, effort)


def _quadratic(program: Program, own: ExactPoint, tolerance: Rational, save: Path | None) -> Certificate:
    """Prove the optimum, or a bound; by cones where the objective itself gives no bound, or no file."""
    found = certify_quadratic(program, own, tolerance, save)
    if found.optimal or (found.bound is not None and save is None):
        return found
    conic = _conic(own.model)
    other = None if conic is None else certify_conic(conic, own, tolerance, save)
    return found if other is None or other.bound is None else other


def is_provable(model: Model) -> bool:
    """Whether more can be proved of a model than that a point satisfies it.

    Parameters
    ----------
    model : Model
        With an objective or without.

    Returns
    -------
    bool
        True if `certify_model` can also prove a bound on the optimum.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", lower=0)
    >>> m.minimize(x)
    >>> is_provable(m)
    True
    """
    program = _program(model)
    if program is None:
        return _conic(model) is not None
    return program.stages[-1].quadratic is None or len(program.stages) == 1


def _conic(model: Model) -> Program | None:
    """The program of a continuous model with second-order and semidefinite cones; None for another."""
    if model.lazies or backends()["clarabel"].missing() is not None:
        return None
    try:
        program = compile_model(model, CONIC, outward=True)
    except (UnsupportedError, UnboundedExpressionError):
        return None
    return None if program.is_staged or not is_small(program) else program


def _program(model: Model) -> Program | None:
    """The rows of a linear or quadratic model; None for another, or if an oracle is not exact."""
    if not all(family.exact for family in model.lazies):
        return None
    method = "compact" if (model.columns().integer == 1).any() else "saturation"
    try:
        program = compile_model(model, CONDITIONS, sorted_by=method, outward=True).with_all_rows()
        if program.indicators:  # whose binaries need finite constants
            LinearProgram.of(program)
    except (UnsupportedError, UnboundedExpressionError):
        return None
    return program


def _with_cuts(model: Model, program: Program, deadline: Deadline) -> Program:
    """Return the program with the lazy constraints that floating-point cutting planes need."""
    highs = get_backend("highs")
    plain = compile_model(model, QUADRATIC, outward=True) if program.indicators else program
    session = open_session(highs, plain)
    cutting_planes(session, model, SolveOptions(), deadline, highs.accuracy)
    found = session.program.rows.from_row(plain.rows.count)
    return replace(program, rows=program.rows.extended(found), lazies=())


def completed(
    model: Model, values: Mapping[Variable, Any], again: Callable[[], Model]
) -> tuple[ModelSolution, bool]:
    """Give the point with these values; the columns that they do not determine are found by HiGHS.

    Parameters
    ----------
    model : Model
        With an objective, by which completions are compared.
    values : Mapping[Variable, Any]
        Of some variables, see `read_values`; they are kept as they are.
    again : Callable[[], Model]
        Writes the same model once more, in which the values are then held.

    Returns
    -------
    tuple[ModelSolution, bool]
        The solution to certify, and whether there is a completion: if not, it is HiGHS's solution of the
        model in which the values are held.
    """
    given = read_values(model, values)
    if not np.isnan(given[model.free_columns()]).any():
        point = model.complete(given)
        return ModelSolution(model, Status.FEASIBLE, np.nan, -np.inf, (), point, 0.0, "highs", ()), True
    held = again()
    for v in held.variables:
        numbers = given[v.start : v.start + v.size]
        at = np.flatnonzero(~np.isnan(numbers))
        held.subject_to(v.reshape(-1)[at] == numbers[at], name=held.unused_name(f"{v.name} is given"))
    solution = held.solve(time_limit=_SECONDS)
    if solution.point is None:
        return solution, False
    point = model.complete(np.where(np.isnan(given), solution.point, given))
    return replace(solution, model=model, point=point, solved=()), True
