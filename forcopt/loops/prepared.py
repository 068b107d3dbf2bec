"""Keep a compiled model and its solver between solves that differ in the values of parameters only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from forcopt.backends.base import Backend, Session, SolveOptions
from forcopt.backends.conditioned import ScaledSession, open_session
from forcopt.compile.parametric import ParametricProgram
from forcopt.compile.program import Program
from forcopt.language.model import Model

__all__ = ["prepared"]


@dataclass(eq=False)
class _Prepared:
    """What is kept of the last solve on a backend."""

    marks: tuple[Any, ...]
    compiled: ParametricProgram
    settings: tuple[Any, ...] = ()
    session: Session | None = None


def prepared(
    model: Model, backend: Backend, options: SolveOptions, compile_anew: Callable[[], ParametricProgram]
) -> tuple[Program, Session]:
    """The program for the current values of a model's parameters, in a session that may be warm.

    Parameters
    ----------
    model : Model
        With parameters.
    backend : Backend
        Solves it.
    options : SolveOptions
        A session is only kept for the same options of the solver.
    compile_anew : Callable[[], ParametricProgram]
        Called if the model has changed otherwise.
    """
    marks = _marks(model)
    kept = model.prepared.get(backend.name)
    if kept is None or not _same(kept.marks, marks):
        kept = _Prepared(marks, compile_anew())
    model.prepared.pop(backend.name, None)  # back in place only after all has gone well
    program = kept.compiled.at_values()
    settings = (options.seed, options.threads, sorted(options.extra.items(), key=str))
    session = kept.session
    # Cutting planes and stages leave rows behind, and scales depend on the numbers.
    lasting = not model.lazies and not program.is_staged
    if session is not None and lasting and kept.settings == settings:
        session.update(program)
    else:
        session = open_session(backend, program)
        if isinstance(session, ScaledSession) or session.program is not program:
            lasting = False
    kept.session, kept.settings = (session if lasting else None), settings
    model.prepared[backend.name] = kept
    return program, session


def _marks(model: Model) -> tuple[Any, ...]:
    """What changes with the model: the objects that hold it, and their sizes."""
    return (
        model.objective,
        model.constraints,
        model.relations,
        model.lazies,
        (
            model.column_count,
            model.row_count,
            len(model.constraints),
            len(model.relations),
            len(model.lazies),
            model._store.revision,
        ),
    )


def _same(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    return all(a is b for a, b in zip(left[:-1], right[:-1], strict=True)) and left[-1] == right[-1]
