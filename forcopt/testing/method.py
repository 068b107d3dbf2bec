"""What every method keeps."""

from __future__ import annotations

import inspect
import math
import pickle
from typing import Any

import numpy as np

from forcopt.backends.registry import backends
from forcopt.clock import Improvement
from forcopt.errors import DeclarationError, UnknownNameError, UnsupportedError
from forcopt.problem import COMMON_OPTIONS, Problem, Solution

_GIVEN: dict[str, Any] = {"backend": "highs", "time_limit": 60.0, "gap": 0.5, "start": "a start"}
_GIVEN |= {"seed": 1, "threads": 1, "log": True, "on_improvement": lambda step: None}
"""A value for each common option."""

_NO_VALUES: tuple[Any, ...] = ("no word", object(), math.nan, [object()], {})
"""Values that no option takes."""

_WRONG: dict[str, tuple[Any, ...]] = {"seed": ("x", -1, 1.5, object()), "on_improvement": (3, "x")}

_OTHERS = ("clarabel", "scip")
"""Backends for formulations that the default one does not take."""

_ROUNDING = 1e-6
"""How far a bound may lie beyond an objective, relative to it."""


def check_method(problem: Problem, method: str, *, time_limit: float = 2.0) -> Solution:
    """Check what every method keeps, on one problem.

    Its own options stand in its docstring. Options that it does not take, and values of a wrong type, are
    refused by name. A solution has a decision or a reason, survives a pickle with the same objective, and its
    trace was shown. Its bound does not exclude its decision. An equal seed gives an equal decision, if both
    runs end by themselves. A run without time ends with a bound that excludes no decision found before.

    Parameters
    ----------
    problem : Problem
        A small one, which the method solves within the time.
    method : str
        A name among ``problem.methods``. A formulation is solved by the default backend, or by Clarabel or
        SCIP if that one does not take it.
    time_limit : float, default 2.0
        Seconds of each run.

    Returns
    -------
    Solution
        Of the first run.

    Raises
    ------
    AssertionError
        If a rule is broken; the message names the method and the rule.
    DeclarationError
        If the method does not take the problem.
    UnsupportedError
        If none of the backends takes the formulation.

    Examples
    --------
    >>> import forcopt as fo
    >>> from forcopt.testing import check_method
    >>> check_method(fo.load("strategic/four-agents"), "milp").status
    <Status.OPTIMAL: 'optimal'>
    """
    chosen = problem.method(method)
    name = f"{type(problem).__name__}.{method}"
    options: dict[str, Any] = {"time_limit": time_limit} if "time_limit" in chosen.common else {}
    options |= {"seed": 1} if "seed" in chosen.common and chosen.kind == "algorithm" else {}
    shown: list[Improvement] = []
    watching = {"on_improvement": shown.append} if "on_improvement" in chosen.common else {}
    first = solved(problem, method, **options, **watching)
    _check_options(problem, method, name)
    if watching and chosen.kind == "algorithm":
        hidden = [step for step in first.trace if step not in shown]
        assert not hidden, f"{name}: {len(hidden)} steps of the trace were not shown to on_improvement"
    assert first.status.has_solution or first.reason, f"{name}: neither a decision nor a reason"
    check_bound(first, name)
    read = pickle.loads(pickle.dumps(first))
    assert read.problem == first.problem and read.status is first.status, f"{name}: its pickle differs"
    if first.decision is not None and not first.private:
        again = problem.evaluate(read.decision).objective
        assert again == first.objective, f"{name}: its pickled decision changes: {first.objective}, {again}"
    if "seed" in options:
        other = solved(problem.replace(), method, **options)
        stopped = max(first.seconds, other.seconds) >= time_limit  # where depends on the machine
        assert stopped or _equal(other.decision, first.decision), (
            f"{name}: an equal seed gives {other!r} after {first!r}"
        )
    if "time_limit" in chosen.common:
        check_bound(solved(problem, method, **{**options, "time_limit": 0.0}), name, first)
    return first


def solved(problem: Problem, method: str, **options: Any) -> Solution:
    """Solve by the default backend, or by the first of the others that takes the formulation."""
    others = [b for b in _OTHERS if b in backends() and backends()[b].missing() is None]
    for other in others if problem.method(method).kind == "formulation" else ():
        try:
            return problem.solve(method, **options)
        except UnsupportedError:
            options["backend"] = other
    return problem.solve(method, **options)


def check_bound(solution: Solution, name: str, known: Solution | None = None) -> None:
    """Check that a bound excludes neither the decision nor, if it is feasible, that of another solution."""
    sign = 1 if solution.problem is None or solution.problem.sense == "min" else -1
    for other in (solution, known):
        if other is None or other.evaluation is None or not other.evaluation.feasible:
            continue
        room = _ROUNDING * max(1.0, abs(other.objective))
        assert not sign * (solution.bound - other.objective) > room, (
            f"{name}: the bound {solution.bound:g} excludes a decision of objective {other.objective:g}"
        )


def refused(problem: Problem, method: str, option: str, value: Any) -> str:
    """The message with which a value of an option is refused; empty if it is not."""
    try:
        problem.solve(method, **{option: value})
    except (DeclarationError, UnknownNameError) as error:
        return str(error)
    return ""


def _check_options(problem: Problem, method: str, name: str) -> None:
    chosen = problem.method(method)
    text = (inspect.getdoc(chosen.function) or "").partition("Returns\n")[0].partition("Parameters\n")[2]
    told = {
        word.strip() for row in text.splitlines() if " :" in row for word in row.split(" :")[0].split(",")
    }
    missing = set(chosen.options) - told
    assert not missing, f"{name}: the docstring's Parameters lack {', '.join(sorted(missing))}"
    assert "unknown option" in refused(problem, method, "no_option", 1), f"{name}: takes an option no_option"
    for option in sorted(set(COMMON_OPTIONS) - set(chosen.common)):
        message = refused(problem, method, option, _GIVEN[option])
        assert f"{method!r} takes no {option}" in message or f"{method!r} uses no {option}" in message, (
            f"{name}: takes no {option}, and its refusal is {message!r}"
        )
    for option in chosen.options:
        for value in _NO_VALUES:
            message = refused(problem, method, option, value)
            assert option in message, f"{name}: {option}={value!r} gives {message!r}"
    for option in sorted(set(_WRONG) & set(chosen.common)):
        for value in _WRONG[option]:
            message = refused(problem, method, option, value)
            assert f"{option} is" in message, f"{name}: {option}={value!r} gives {message!r}"


def _equal(first: Any, second: Any) -> bool:
    """Whether two decisions are equal, by their plain data."""
    if isinstance(first, np.ndarray):
        return np.array_equal(first, second)
    return pickle.dumps(first) == pickle.dumps(second) or repr(first) == repr(second)
