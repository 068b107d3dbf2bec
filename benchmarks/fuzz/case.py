"""One random model or problem with its true optimum, and the check of every answer to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

import forcopt as fo
from forcopt.backends import backends as known_backends

__all__ = ["DoorCase", "ModelCase", "ProblemCase", "answers", "door_answers", "model_answers"]

BACKENDS = ("highs", "glop", "clarabel", "scip", "cp-sat")
"""The backends on which every formulation is tried; one that refuses the model is left out."""

BRIEF = 1e-3
"""Seconds of the limit that few runs keep with an optimum: bounds and incumbents are judged, too."""

BRIEFLY = 0.25
"""The share of drawn runs that are repeated with this limit."""


@dataclass(frozen=True)
class ProblemCase:
    """A declared problem, and the truth by an oracle that shares no code with the library.

    Attributes
    ----------
    problem : Problem
        A small instance.
    status : str
        ``optimal`` or ``infeasible``; ``unknown`` if the oracle gives a bound only.
    value : float
        The optimum, in the problem's units.
    options : Mapping[str, Mapping[str, Any]], optional
        The options of `Problem.solve` for methods that need some, by method; ``seed=0`` is given to all that
        take one.
    skip : tuple[str, ...], default ()
        Methods that do not take this instance, or solve another problem.
    tolerance : float, default 1e-5
        Relative to the larger of `unit` and the optimum.
    unit : float, default 1.0
        The magnitude of the objective.
    ordered : bool, default False
        Whether the objective is the sum of several in order of priority. Then a decision that is worse in the
        first may have a smaller sum.
    check : Callable[[Solution], str], optional
        Finds an error in an optimal solution beyond its objective; empty if there is none.
    """

    problem: fo.Problem
    status: str
    value: float = float("nan")
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    skip: tuple[str, ...] = ()
    tolerance: float = 1e-5
    unit: float = 1.0
    ordered: bool = False
    check: Callable[[fo.Solution], str] = lambda s: ""


def answers(
    case: ProblemCase, rng: np.random.Generator | None = None, limit: float = 10.0
) -> Iterator[tuple[str, str, str]]:
    """Solve by every method, each formulation on every backend that takes it.

    Parameters
    ----------
    case : ProblemCase
        The problem and the truth.
    rng : numpy.random.Generator, optional
        Draws one method and backend, which may run again with a limit of a millisecond.
    limit : float, default 10.0
        Seconds for each run that takes a limit.

    Yields
    ------
    tuple[str, str, str]
        The run as ``method@backend``, its verdict (right, wrong, no answer), and the two answers in words.
    """
    methods = [name for name in case.problem.methods if name not in case.skip]
    if rng is not None:
        methods = [methods[i] for i in rng.permutation(len(methods))]
    for name in methods:
        for backend in _backends(case.problem, name, rng):
            found = _answer(case, name, backend, limit)
            if found is None:
                continue
            yield f"{name}@{backend}" if backend else name, *found
            if rng is not None:
                if rng.random() < BRIEFLY:
                    answer, words = _answer(case, name, backend, BRIEF) or ("no answer", "")
                    yield "any (1 ms)", answer, f"{name}: {words}"
                return


def _backends(problem: fo.Problem, name: str, rng: np.random.Generator | None) -> tuple[str | None, ...]:
    """The backends to try, in random order if there is a generator; None for an algorithm."""
    if problem.methods[name].kind != "formulation":
        return (None,)
    return BACKENDS if rng is None else tuple(BACKENDS[i] for i in rng.permutation(len(BACKENDS)))


def _answer(case: ProblemCase, name: str, backend: str | None, limit: float) -> tuple[str, str] | None:
    """Verdict and words of one run; None if the method or the backend does not take the problem."""
    common, options = case.problem.methods[name].common, dict(case.options.get(name, {}))
    if "seed" in common:
        options.setdefault("seed", 0)
    if "time_limit" in common:
        options.setdefault("time_limit", limit)
    try:
        s = case.problem.solve(name, backend=backend, **options)
    except (fo.UnsupportedError, fo.DeclarationError):
        return None
    except fo.BackendError as error:
        return "no answer", str(error)
    except Exception as error:
        return "wrong", f"raised {type(error).__name__}: {error}"
    words = f"{s.status} {s.objective:.9g}, bound {s.bound:.9g} ({s.message}); "
    return verdict(case, s), words + f"true: {case.status} {case.value:.9g}"


def verdict(case: ProblemCase, s: fo.Solution) -> str:
    """Judge a solution by the true status and optimum.

    Parameters
    ----------
    case : ProblemCase
        The problem and the truth.
    s : Solution
        A solution of any method.

    Returns
    -------
    str
        ``wrong`` for a false status, a claimed optimum that is none, a bound beyond the optimum, or a
        feasible decision better than the optimum; ``no answer`` for a run that claims nothing.
    """
    status = str(s.status)
    if case.status == "infeasible":
        claims = s.status.has_solution and s.evaluation is not None and s.evaluation.feasible
        return "wrong" if claims else "right" if status == "infeasible" else "no answer"
    if status in ("infeasible", "unbounded"):
        return "wrong" if case.status == "optimal" else "not decided"
    if case.status != "optimal":
        return "not decided"
    sign = 1.0 if s.problem.sense == "min" else -1.0
    slack = case.tolerance * max(case.unit, abs(case.value))
    if sign * (s.bound - case.value) > slack:
        return "wrong"
    if s.evaluation is None:
        return "wrong" if status == "optimal" else "no answer"
    excess = sign * (s.objective - case.value)
    if status == "optimal":
        correct = abs(excess) <= slack and s.evaluation.feasible and not case.check(s)
        return "right" if correct else "wrong"
    return "wrong" if s.evaluation.feasible and excess < -slack and not case.ordered else "right"


@dataclass(frozen=True)
class DoorCase:
    """Checks of one random object at a door of the library: where tables come in, or answers go out.

    Attributes
    ----------
    checks : Mapping[str, Callable[[], str]]
        By name: gives the error that it finds; empty if there is none.
    """

    checks: Mapping[str, Callable[[], str]]


def door_answers(case: DoorCase) -> Iterator[tuple[str, str, str]]:
    """Run all checks.

    Parameters
    ----------
    case : DoorCase
        The checks.

    Yields
    ------
    tuple[str, str, str]
        The check, its verdict (right, wrong), and the error.
    """
    for name, check in case.checks.items():
        try:
            words = check()
        except Exception as error:
            words = f"raised {type(error).__name__}: {error}"
        yield name, "wrong" if words else "right", words


@dataclass(frozen=True)
class ModelCase:
    """A model, the backends that take it, and the truth.

    Attributes
    ----------
    status : str
        As `fo.Status` is spelled; ``unknown`` if the oracle could not tell.
    value : float
        Of the (last) objective, if it is optimal.
    first : float, default float("nan")
        Of the first objective; then certificates are checked, too.
    tolerance : float, default 1e-4
        Relative to the larger of 1 and the optimum.
    then : Callable[[], ModelCase | None], optional
        Changes the same model and gives the case that it then is.
    """

    model: fo.Model
    takers: tuple[str, ...]
    status: str
    value: float = float("nan")
    first: float = float("nan")
    tolerance: float = 1e-4
    then: Callable[[], ModelCase | None] = lambda: None


TOLERANCE = {"scs": 2e-3, "osqp": 1e-3}
"""The least of these backends, relative to the larger of 1 and the optimum."""


def model_answers(
    case: ModelCase, rng: np.random.Generator, backends: int = 0
) -> Iterator[tuple[str, str, str]]:
    """Solve a model on backends that take it, and again after every change.

    Parameters
    ----------
    case : ModelCase
        The model and the truth.
    rng : numpy.random.Generator
        Draws the backends.
    backends : int, default 0
        How many; 0 for all.

    Yields
    ------
    tuple[str, str, str]
        The backend, or ``certify``, its verdict (right, wrong, no answer, not decided), and the two answers
        in words.
    """
    now: ModelCase | None = case
    ready = [name for name in case.takers if name in _ready()]
    drawn = set(rng.permutation(ready)[: backends or len(ready)].tolist())
    while now is not None:
        for place, backend in enumerate(b for b in now.takers if b in drawn):
            try:
                s = now.model.solve(backend, time_limit=10)
            except fo.UnsupportedError:
                continue
            except fo.ForcoptError as error:
                yield backend, "no answer", f"{type(error).__name__}: {error}"
                continue
            yield backend, *_model_verdict(now, backend, s)
            if place == 0 and (now.first == now.first or now.status == "infeasible"):
                yield "certify", *_certificate_verdict(now, s)
        now = now.then()


@cache
def _ready() -> frozenset[str]:
    return frozenset(name for name, b in known_backends().items() if b.missing() is None)


def _model_verdict(case: ModelCase, backend: str, s: Any) -> tuple[str, str]:
    """Right, wrong, or no answer; and in words."""
    words = f"{s.status} {s.objective:.9g} ({s.message}); true: {case.status} {case.value:.9g}"
    if str(s.status) not in ("optimal", "infeasible", "unbounded"):
        return "no answer", words
    if case.status == "unknown":
        return "not decided", words
    if str(s.status) != case.status:
        return "wrong", words
    value = s.stages[-1] if s.stages else float("nan")
    slack = max(case.tolerance, TOLERANCE.get(backend, 0.0)) * max(1.0, abs(case.value))
    if case.status == "optimal" and not abs(value - case.value) <= slack:
        return "wrong", words
    return "right", words


def _certificate_verdict(case: ModelCase, s: Any) -> tuple[str, str]:
    """Compare all that a certificate claims with the truth."""
    c = s.certify()
    words = f"{c}; true: {case.status} {case.first:.9g}"
    if case.status == "infeasible":
        if c.optimal or (c.feasible and s.status.has_solution):
            return "wrong", words
        return ("right" if "proved" in c.how or c.dual is not None else "no answer"), words
    slack = 1e-5 * max(1.0, abs(case.first))
    sign = -1.0 if case.model.objective.stages[0].maximize else 1.0
    if c.dual is not None and s.point is None:
        return "wrong", words
    if c.optimal and abs(float(c.objective) - case.first) > slack:
        return "wrong", words
    if c.bound is not None and sign * (float(c.bound) - case.first) > slack:
        return "wrong", words
    proved = c.optimal or (c.bound is not None and abs(float(c.bound) - case.first) <= slack)
    return ("right" if proved else "no answer"), words
