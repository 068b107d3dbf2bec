"""Solve a program again whose claim is in doubt: in another way, then by other solvers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from forcopt.backends.base import Backend, SolveOptions
from forcopt.backends.conditioned import open_session
from forcopt.backends.registry import backends
from forcopt.compile.program import Program
from forcopt.errors import BackendError, UnsupportedError
from forcopt.loops.checks.claim import Claim
from forcopt.status import Status

_OTHERS, _INTEGER_OTHERS = ("highs", "glop", "clarabel"), ("highs", "gscip")
"""Solvers that are asked, in this order."""

SOLVED_AGAIN, AS_CLAIMED = "; solved again ", ", with the same answer"
"""In the message of an answer; without the second text the solver's own claim was another one."""


def second_opinion(
    program: Program, claim: Claim, reason: str, examine: Callable[[Program, Claim], Claim | None]
) -> Claim:
    """Solve a program again, first under the backend's careful options, then by other solvers.

    Parameters
    ----------
    program : Program
        Linear or quadratic.
    claim : Claim
        In doubt.
    reason : str
        For the doubt.
    examine : Callable[[Program, Claim], Claim or None]
        Passes a claim through the checks; None if it settles nothing or a doubt is left.

    Returns
    -------
    Claim
        The first one without a doubt; FAILED, with the words of all solvers, if there is none; FEASIBLE if
        the time is over and there is a point.
    """
    result, deadline = claim.result, claim.deadline
    words = f"{result.message}; but {reason}"
    for backend, how, options, scaled in _attempts(program, claim):
        if deadline.passed:
            break
        try:
            found = open_session(backend, program, scaled=scaled).solve(options.within(deadline.seconds))
            asked = replace(claim, backend=backend, options=options, result=found, results=(found,))
            confirmed = examine(program, asked)
        except (BackendError, UnsupportedError) as error:
            words += f"; {how}: {error}"
            continue
        if confirmed is not None:
            values = result.objective, confirmed.result.objective
            alike = result.status is confirmed.status and np.isclose(*values, 1e-6, 1e-6, equal_nan=True)
            how += AS_CLAIMED if alike else ""
            message = f"{words}{SOLVED_AGAIN}{how}: {confirmed.result.message}"
            return claim.answered(replace(confirmed.result, message=message))
        words += f"; {how}: {found.message}"
    if deadline.passed and result.x is not None:  # a point without a proof
        return claim.answered(replace(result, status=Status.FEASIBLE, bound=-np.inf, message=words))
    failed = replace(result, status=Status.FAILED, x=None, objective=float("nan"), message=words)
    return claim.answered(failed)


def _attempts(program: Program, claim: Claim) -> Iterator[tuple[Backend, str, SolveOptions, bool | None]]:
    """The solvers to ask: how, in words, under which options, and whether the program is scaled."""
    backend, options = claim.backend, replace(claim.options, start=None)
    if backend.careful:
        how = f"{'without' if backend.scales else 'with'} scaling"
        yield backend, how, replace(options, extra={**options.extra, **backend.careful}), not backend.scales
    needed = {"rows"} | ({"integer"} if program.is_integer else set())
    needed |= {"quadratic"} if program.stages[0].quadratic is not None else set()
    plain = SolveOptions(options.time_limit, log=options.log)
    for name in _INTEGER_OTHERS if program.is_integer else _OTHERS:
        other = backends()[name]
        if name != backend.name and other.missing() is None and needed <= other.capabilities.kinds:
            yield other, f"by {other.name}", plain, None
