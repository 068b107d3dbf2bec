"""Small integer programs over the rationals: branch and bound with exact bounds.

Each subproblem is solved by `exact_optimum`; it is only closed by multipliers that prove its bound, a Farkas
certificate, or an integral vertex (after Cook, Koch, Steffy and Wolter, 2013, without their quicker ways to
safe bounds).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from flint import fmpq

from forcopt.clock import Deadline
from forcopt.loops.exact_lp import LinearProgram, Rational, exact_optimum, farkas

__all__ = ["Tree", "branch_and_bound"]


@dataclass(frozen=True, eq=False)
class Tree:
    """How a branch and bound ended.

    Attributes
    ----------
    bound : Rational
        A proved lower bound on the optimum; None for minus infinity. With a cutoff at most that.
    better : list[Rational]
        The best point found with a smaller objective than the cutoff (any point, without one), or None.
    subproblems : int
        How many were solved.
    exhausted : bool
        Whether every leaf was closed by a proof.
    """

    bound: Rational | None
    better: list[Rational] | None
    subproblems: int
    exhausted: bool


def branch_and_bound(
    lp: LinearProgram, integer: Sequence[int], cutoff: Rational | None, most: int, seconds: float
) -> Tree:
    """Prove that no integral point is better than `cutoff`, or find the best.

    Parameters
    ----------
    lp : LinearProgram
        The relaxation.
    integer : Sequence[int]
        The columns that must be integer.
    cutoff : Rational
        The objective of a known point; None to stop at any point.
    most : int
        Subproblems.
    seconds : float
        In all.
    """
    deadline, done = Deadline(seconds), 0
    grain, better = _grain(lp, integer), None
    todo: list[tuple[LinearProgram, Rational | None]] = [(lp, None)]
    left: list[Rational | None] = []  # bounds of leaves that were not closed by the cutoff or infeasibility
    while todo and done < most and not deadline.passed:
        part, bound = todo.pop()
        done += 1
        if _is_crossed(part):
            continue
        found = exact_optimum(part)
        if found.status == "infeasible" and farkas(part) is not None:
            continue
        if found.bound is not None:
            proved = _rounded_up(found.bound, lp.offset, grain)
            bound = proved if bound is None else max(bound, proved)
        if cutoff is not None and bound is not None and bound >= cutoff:
            continue
        x = found.point
        fractional = [] if x is None else [j for j in integer if x[j].q != 1]
        if x is not None and not fractional and (cutoff is None or found.value < cutoff):
            if cutoff is None:
                return Tree(_least([*left, bound, *(b for _, b in todo)]), x, done, False)
            cutoff, better = found.value, x
            if found.proved:
                continue
        if x is None or not fractional:
            left.append(bound)
            continue
        half = fmpq(1, 2)
        branch = min(fractional, key=lambda j: abs(x[j] - x[j].floor() - half))
        down = x[branch].floor()
        todo.append((_cut(part, branch, None, down), bound))
        todo.append((_cut(part, branch, down + 1, None), bound))
    left.extend(b for _, b in todo)
    if cutoff is not None:
        left = [b for b in left if b is None or b < cutoff]
    return Tree(_least(left) if left else cutoff, better, done, not left)


def _least(bounds: Sequence[Rational | None]) -> Rational | None:
    known = [b for b in bounds if b is not None]
    return min(known) if len(known) == len(bounds) else None


def _is_crossed(lp: LinearProgram) -> bool:
    """Whether no value of some column is within its bounds, as between two integers."""
    pairs = zip(lp.lower, lp.upper, strict=True)
    return any(low is not None and high is not None and low > high for low, high in pairs)


def _cut(lp: LinearProgram, column: int, low: Rational | None, high: Rational | None) -> LinearProgram:
    lower, upper = list(lp.lower), list(lp.upper)
    if low is not None:
        lower[column] = fmpq(low)
    if high is not None:
        upper[column] = fmpq(high)
    return replace(lp, lower=lower, upper=upper)


def _grain(lp: LinearProgram, integer: Sequence[int]) -> Rational:
    """Return a step: integral points have objectives of offset plus multiples of it; 0 if unknown."""
    used = {j for j, c in enumerate(lp.cost) if c}
    if not used <= set(integer):
        return fmpq(0)
    grain = fmpq(0)
    for j in used:
        grain = grain.gcd(lp.cost[j])
    return grain


def _rounded_up(bound: Rational, offset: Rational, grain: Rational) -> Rational:
    return bound if not grain else offset + grain * ((bound - offset) / grain).ceil()
