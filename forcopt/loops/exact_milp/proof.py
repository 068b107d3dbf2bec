"""The lines of a proof in the VIPR format, written as a search finds them.

Each line states a constraint and says why it holds: an assumption (``asm``), a linear combination of earlier
lines (``lin``), the same with its right-hand side rounded (``rnd``), two cases of an integer (``uns``), or a
known solution (``sol``). A line that was derived under assumptions holds under these.

References
----------
K. K. H. Cheung, A. Gleixner and D. E. Steffy, "Verifying integer programming results", IPCO 2017.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TextIO

from forcopt.loops.exact_lp import Rational

Number = int | Rational
"""Python's integer or ``flint.fmpq``."""

_NONE: frozenset[int] = frozenset()


@dataclass(eq=False, slots=True)
class Derived:
    """A constraint that follows from others; it becomes a line when it is first needed.

    Attributes
    ----------
    coefficients : dict[int, Number], optional
        By column; None to state that only points at most as costly as a known solution matter.
    sense : str
        ``G`` or ``L``.
    limit : Number
        The right-hand side.
    parts : list[tuple[Ref, Number]] or a function that gives it
        Constraints and their multipliers.
    rounded : bool, default False
        Whether the right-hand side of their combination is rounded to an integer.
    split : Split, optional
        Two cases of an integer form; `parts` is then empty.
    case : bool, default False
        Whether it is assumed.
    line : int, default -1
        Where it is written; -1 if it is not.
    """

    coefficients: Mapping[int, Number] | None
    sense: str
    limit: Number
    parts: Parts | Callable[[], Parts]
    rounded: bool = False
    split: Split | None = None
    case: bool = False
    line: int = -1


@dataclass(frozen=True, eq=False, slots=True)
class Split:
    """Two cases, ``form <= at`` and ``form >= at + 1``; each has its weight and further parts.

    Attributes
    ----------
    form : dict[int, int]
        Integers on integer columns.
    at : int
        The largest value in the first case.
    below, above : tuple[Number, list[tuple[Ref, Number]]]
        The multiplier of the case and the other constraints with theirs.
    """

    form: Mapping[int, int]
    at: int
    below: tuple[Number, Parts]
    above: tuple[Number, Parts]


Ref = int | Derived
"""A line, or a constraint that is to become one."""

Parts = list[tuple[Ref, Number]]


class Proof:
    """Lines that are derived from a problem of `first` constraints.

    Parameters
    ----------
    first : int
        The number of the first derived line.
    sink : TextIO, optional
        Takes the text; without it, lines are only counted.
    equations : Collection[int], optional
        The constraints of the problem that are equations.

    Attributes
    ----------
    count : int
        How many lines there are, with the constraints of the problem.
    """

    def __init__(self, first: int, sink: TextIO | None = None, equations: Collection[int] = ()) -> None:
        self.first = self.count = first
        self.sink = sink
        self.equations = frozenset(equations)
        self._nothing = -1
        self._assumed: dict[int, frozenset[int]] = {}

    @property
    def derived(self) -> int:
        """How many lines were derived."""
        return self.count - self.first

    def assumed(self, line: int) -> frozenset[int]:
        """The assumptions that a line rests on."""
        return self._assumed.get(line, _NONE)

    def assume(self, coefficients: Mapping[int, Number], sense: str, limit: Number) -> int:
        """Begin a case."""
        line = self._write(coefficients, sense, limit, "asm")
        self._assumed[line] = frozenset((line,))
        return line

    def combine(
        self,
        coefficients: Mapping[int, Number] | None,
        sense: str,
        limit: Number,
        parts: Iterable[tuple[Ref, Number]],
        rounded: bool = False,
    ) -> int:
        """Write a linear combination; None stands for the coefficients of the objective."""
        weights: dict[int, Number] = {}
        assumed: set[int] = set()
        for ref, weight in parts:
            if weight:
                line = ref if isinstance(ref, int) else self.line_of(ref)
                weights[line] = weights.get(line, 0) + weight
                assumed |= self._assumed.get(line, _NONE)
        if rounded and self.equations.issuperset(weights):
            if self._nothing < 0:  # 0 >= 0: only inequalities are rounded
                self._nothing = self._write({}, "G", 0, "lin 0")
            weights[self._nothing] = 1 if sense == "G" else -1
        text = ""
        if self.sink is not None:
            used = [f"{line} {weight}" for line, weight in weights.items() if weight]
            text = f"{'rnd' if rounded else 'lin'} {len(used)}  {'  '.join(used)}"
        line = self._write(coefficients, sense, limit, text)
        if assumed:
            self._assumed[line] = frozenset(assumed)
        return line

    def unite(
        self,
        coefficients: Mapping[int, Number] | None,
        sense: str,
        limit: Number,
        cases: tuple[tuple[int, int], tuple[int, int]],
    ) -> int:
        """Write what holds in both cases of an integer form.

        Parameters
        ----------
        coefficients, sense, limit
            The constraint.
        cases : tuple[tuple[int, int], tuple[int, int]]
            Of each case the line that proves the constraint, and the assumption.
        """
        (one, first), (other, second) = cases
        line = self._write(coefficients, sense, limit, f"uns {one} {first}  {other} {second}")
        assumed = (self.assumed(one) - {first}) | (self.assumed(other) - {second})
        for gone in (one, first, other, second):
            self._assumed.pop(gone, None)
        if assumed:
            self._assumed[line] = assumed
        return line

    def line_of(self, ref: Ref) -> int:
        """The line of a constraint; writes it, and what it follows from, if need be."""
        if isinstance(ref, int):
            return ref
        todo = [ref]
        while todo:  # no recursion: the constraints of a long chain follow one from the other
            top = todo[-1]
            split = top.split
            if callable(top.parts) and top.line < 0:
                top.parts = top.parts()
            own = [] if callable(top.parts) else top.parts
            inner = own if split is None else [*split.below[1], *split.above[1]]
            missing = [] if top.line >= 0 else [r for r, w in inner if not isinstance(r, int) and r.line < 0]
            if missing:
                todo.extend(missing)
                continue
            todo.pop()
            if top.line < 0:
                top.line = self._derive(top)
        return ref.line

    def _derive(self, new: Derived) -> int:
        if new.coefficients is None:
            return self._write(None, "L", new.limit, "sol")
        if new.case:
            return self.assume(new.coefficients, new.sense, new.limit)
        what = (new.coefficients, new.sense, new.limit)
        if new.split is None:
            assert not callable(new.parts)  # line_of has called it
            return self.combine(*what, new.parts, new.rounded)
        cases = []
        for sense, at, (weight, parts) in (
            ("L", new.split.at, new.split.below),
            ("G", new.split.at + 1, new.split.above),
        ):
            case = self.assume(new.split.form, sense, at)
            cases.append((self.combine(*what, [(case, weight), *parts]), case))
        return self.unite(*what, (cases[0], cases[1]))

    def _write(self, coefficients: Mapping[int, Number] | None, sense: str, end: Number, reason: str) -> int:
        if self.sink is not None:
            self.sink.write(f"d{self.count} {sense} {end} {_spelled(coefficients)}  {{ {reason} }} -1\n")
        self.count += 1
        return self.count - 1


def _spelled(coefficients: Mapping[int, Number] | None) -> str:
    if coefficients is None:
        return "OBJ"
    return f"{len(coefficients)}  " + "  ".join(f"{j} {a}" for j, a in coefficients.items())
