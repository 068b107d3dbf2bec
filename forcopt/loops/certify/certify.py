"""Choose the prover that fits a model."""

from __future__ import annotations

from dataclasses import replace

from forcopt.arrays import as_numbers
from forcopt.backends.base import SolveOptions
from forcopt.backends.conditioned import open_session
from forcopt.backends.registry import backends, get_backend
from forcopt.clock import Deadline
from forcopt.compile.capabilities import Capabilities
from forcopt.compile.compiler import compile_model
from forcopt.compile.program import Program
from forcopt.errors import DeclarationError, UnboundedExpressionError, UnsupportedError
from forcopt.language.model import Model
from forcopt.loops.certify.certificate import Certificate, certificate_of
from forcopt.loops.certify.conic import certify_conic, is_small
from forcopt.loops.certify.evaluation import ExactPoint
from forcopt.loops.certify.linear import certify_linear
from forcopt.loops.certify.premises import premises
from forcopt.loops.certify.quadratic import certify_quadratic
from forcopt.loops.certify.without_point import certify_without_point
from forcopt.loops.cutting_planes import cutting_planes
from forcopt.loops.exact_lp import decimal, rational
from forcopt.loops.solution import ModelSolution
from forcopt.status import Status

__all__ = ["certify_model", "is_provable"]

QUADRATIC = Capabilities(frozenset({"rows", "integer", "quadratic"}))

CONIC = Capabilities(frozenset({"rows", "second_order", "semidefinite_cone"}))


def certify_model(
    solution: ModelSolution, rounding: float | None = None, *, decimals: bool = False
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
    out = _certified(solution, rounding, decimals)
    for premise in premises(solution.model) if out.bound is not None or out.dual is not None else ():
        out = out.assuming(premise)
    return out


def _certified(solution: ModelSolution, rounding: float | None, decimals: bool) -> Certificate:
    if changed := solution.change():
        raise DeclarationError(changed)
    if rounding is not None and (as_numbers(rounding, "rounding") < 0).any():
        raise DeclarationError(f"rounding is {rounding!r}; it must be at least 0")
    if decimals and (solution.model.relations or solution.model.lazies):
        raise DeclarationError(
            f"decimals=True, but model {solution.model.name!r} has atoms, conditions or lazy families, "
            "whose rows are computed from floats; it takes linear rows and objectives"
        )
    number = decimal if decimals else rational
    model, program = solution.model, _program(solution.model)
    if solution.point is None:
        if program is not None and model.lazies and solution.status in (Status.INFEASIBLE, Status.UNBOUNDED):
            program = _with_cuts(model, program)
        return certify_without_point(solution, program, number)
    own = ExactPoint(model, solution.point, number)
    tolerance = rational(100 * get_backend(solution.backend).accuracy if rounding is None else rounding)
    conic = _conic(model) if program is None else None
    if conic is not None:
        return certify_conic(conic, own, tolerance)
    if program is None or (program.stages[-1].quadratic is not None and len(program.stages) > 1):
        words = "the optimum is not proved: the model is neither linear nor conic, or it is too large"
        return certificate_of(own, own, None, None, words)
    if model.lazies:
        program = _with_cuts(model, program)
    certify = certify_linear if program.stages[-1].quadratic is None else certify_quadratic
    return certify(program, own, tolerance)


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
    """The rows of a linear or quadratic model; None for another."""
    method = "compact" if (model.columns().integer == 1).any() else "saturation"
    try:
        return compile_model(model, QUADRATIC, sorted_by=method, outward=True).with_all_rows()
    except (UnsupportedError, UnboundedExpressionError):
        return None


def _with_cuts(model: Model, program: Program) -> Program:
    """Return the program with the lazy constraints that floating-point cutting planes need."""
    highs = get_backend("highs")
    session = open_session(highs, program)
    cutting_planes(session, model, SolveOptions(), Deadline(), highs.accuracy)
    return replace(program, rows=session.program.rows, lazies=(), callbacks=())
