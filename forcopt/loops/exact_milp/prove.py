"""Prove the optimum of an integer program, or that it has no point, and write the proof as a VIPR file."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import TextIO

from forcopt.clock import Deadline
from forcopt.loops.exact_lp import LinearProgram, Rational
from forcopt.loops.exact_milp.proof import Derived, Proof
from forcopt.loops.exact_milp.search import Search, Stopped
from forcopt.loops.exact_milp.system import System
from forcopt.rationals import ceil, fmpq


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
    lp: LinearProgram,
    integer: Sequence[int],
    cutoff: Rational | None,
    deadline: Deadline,
    *,
    point: Sequence[Rational] | None = None,
    names: Sequence[str] = (),
    save: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
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
    deadline : Deadline
        Of the search.
    point : Sequence[Rational], optional
        That point, for the file.
    names : Sequence[str], optional
        Of the columns, for the file.
    save : Path, optional
        The VIPR file to write if the search ends with a proof.
    progress : Callable[[int, int], None], optional
        Called now and then with the subproblems done and the depth.

    Notes
    -----
    The file speaks of the objective without its constant.
    """
    done, better, lines = 0, None, _lines(lp)
    while True:
        sink = TemporaryFile("w+", encoding="utf-8") if save is not None else None  # noqa: SIM115
        with sink or nullcontext():
            proof = Proof(_count(lines), sink, [low for low, high in lines if low == high >= 0])
            aim = lp if cutoff is not None else replace(lp, cost=[fmpq(0)] * len(lp.cost))
            search = Search(aim, System(aim, integer, lines), proof, deadline, progress)
            try:
                bound = _proved(search, None if cutoff is None else cutoff - lp.offset)
            except Stopped as stopped:
                found = stopped.better
                if found is None or not _is_better(lp, integer, found, cutoff):
                    return Tree(_open_bound(search, lp, cutoff), better, done + search.nodes, False)
                done += search.nodes
                better = point = found
                if cutoff is None:
                    return Tree(None, better, done, False)
                cutoff = lp.value(found)
                continue
            done += search.nodes
            if save is not None and sink is not None:
                head = _head(lp, integer, names, None if cutoff is None else point, bound, lines)
                _write(save, f"{head}DER {search.proof.derived}\n", sink)
        return Tree(cutoff, better, done, True)


def _lines(lp: LinearProgram) -> list[tuple[int, int]]:
    """The lines of the lower and the upper side of each column, then each row; -1 for none."""
    out, count = [], 0
    for low, high in (*zip(lp.lower, lp.upper, strict=True), *zip(lp.row_lower, lp.row_upper, strict=True)):
        if low is not None and low == high:
            out.append((count, count))
            count += 1
            continue
        out.append((count if low is not None else -1, count + (low is not None) if high is not None else -1))
        count += (low is not None) + (high is not None)
    return out


def _count(lines: Sequence[tuple[int, int]]) -> int:
    return max((max(pair) for pair in lines), default=-1) + 1


def _proved(search: Search, value: Rational | None) -> Rational | None:
    """Run a search and let the last line state its result: a bound on the objective, None for no point."""
    system, proof = search.system, search.proof
    cost = system.cost
    if value is None:
        search.run()
        return None
    if not cost.coefficients:
        proof.combine(None, "G", 0, [])
        return fmpq(0)
    scale = cost.scale
    if not cost.whole:  # a point of the same value may exist
        system.cut_off(value * scale, Derived(None, "L", value, []), scale)
        search.run()
        return value
    step = ceil(value * scale)
    below = proof.first  # the first line that is derived
    system.cut_off(fmpq(step - 1), proof.assume(cost.coefficients, "L", step - 1), 1)
    found = search.run()
    above = proof.assume(cost.coefficients, "G", step)
    bound = step / scale
    reached = proof.combine(None, "G", bound, [(above, 1 / scale)])
    proof.unite(None, "G", bound, ((found, below), (reached, above)))
    return bound


def _is_better(
    lp: LinearProgram, integer: Sequence[int], point: list[Rational], cutoff: Rational | None
) -> bool:
    """Whether a point satisfies the program and is better than the cutoff, exactly."""
    whole = all(point[j].denominator == 1 for j in integer)
    return whole and lp.holds(point) and (cutoff is None or bool(lp.value(point) < cutoff))


def _open_bound(search: Search, lp: LinearProgram, cutoff: Rational | None) -> Rational | None:
    """The bound that an unfinished search has proved."""
    cost, bound = search.system.cost, search.bound
    if cutoff is None or bound is None:
        return None
    bound = fmpq(ceil(bound)) if cost.whole else bound
    return min(cutoff, lp.offset + bound / search.scale)


def _write(path: Path, head: str, body: TextIO) -> None:
    """Put the head before the lines."""
    body.seek(0)
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf-8") as out:
        out.write(head)
        shutil.copyfileobj(body, out)
    part.replace(path)


def _head(
    lp: LinearProgram,
    integer: Sequence[int],
    names: Sequence[str],
    point: Sequence[Rational] | None,
    bound: Rational | None,
    lines: Sequence[tuple[int, int]],
) -> str:
    """All sections before the derivation."""
    n = len(lp.cost)
    costs = [(j, c) for j, c in enumerate(lp.cost) if c]
    forms = [*({j: 1} for j in range(n)), *lp.rows]
    ends = [*zip(lp.lower, lp.upper, strict=True), *zip(lp.row_lower, lp.row_upper, strict=True)]
    stated = []
    for k, (form, (low, high)) in enumerate(zip(forms, ends, strict=True)):
        name = f"b{k}" if k < n else f"r{k - n}"
        entries = _entries(form.items())
        if low is not None and low == high:
            stated.append(f"{name} E {low} {entries}")
            continue
        sides = (("G", low), ("L", high))
        stated += [f"{name} {sense} {end} {entries}" for sense, end in sides if end is not None]
    out = ["VER 1.0", f"VAR {n}", *(re.sub(r"\s", "_", name) or "_" for name in names)]
    out += [f"INT {len(integer)}", " ".join(map(str, integer)), "OBJ min", _entries(costs)]
    out += [f"CON {len(stated)} {_count(lines[:n])}", *stated]
    if bound is None:
        out += ["RTP infeas", "SOL 0"]
    elif point is None:
        out += [f"RTP range {bound} inf", "SOL 0"]
    else:
        values = [(j, v) for j, v in enumerate(point) if v]
        value = sum((lp.cost[j] * v for j, v in values), fmpq(0))
        out += [f"RTP range {bound} {value}", "SOL 1", f"point {_entries(values)}"]
    return "\n".join(out) + "\n"


def _entries(items: Iterable[tuple[int, object]]) -> str:
    pairs = [f"{j} {a}" for j, a in items if a]
    return f"{len(pairs)}  {'  '.join(pairs)}"
