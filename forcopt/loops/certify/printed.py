"""The numbers that a model's file prints, where floats only come near, and points from files."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
from flint import fmpq

from forcopt.errors import DeclarationError
from forcopt.language.model import Model
from forcopt.loops.exact_lp import Rational, decimal
from forcopt.loops.solution import ModelSolution
from forcopt.status import Status

__all__ = ["printed_numbers", "solution_file"]

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def printed_numbers(path: Path) -> Callable[[float], Rational]:
    """Give a reader of floats that knows the decimals of a file: each float is the number printed there.

    Raises
    ------
    DeclarationError
        If two different numbers of the file round to one float.
    """
    known: dict[float, Rational] = {}
    for word in path.read_text(encoding="utf-8", errors="replace").split():
        if not _NUMBER.fullmatch(word):
            continue
        exact = Fraction(word)
        for sign in (1, -1):
            own = fmpq(sign * exact.numerator, exact.denominator)
            if known.setdefault(sign * float(word), own) != own:
                raise DeclarationError(f"{path}: {word} and another number round to the same float")
    return lambda value: known.get(value) or decimal(value)


def solution_file(model: Model, path: Path) -> ModelSolution:
    """Read a point: each line that begins with a column's name gives its value next; others are 0.

    Raises
    ------
    DeclarationError
        If no line names a column, or a value is no number.
    """
    columns = {model.column_name(j): j for j in range(model.column_count)}
    point = np.zeros(model.column_count)
    named = False
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.split()
        if len(words) < 2 or words[0] not in columns:
            continue
        if not _NUMBER.fullmatch(words[1]):
            raise DeclarationError(f"{path}: the value of {words[0]} is {words[1]!r}; it must be a number")
        point[columns[words[0]]], named = float(words[1]), True
    if not named:
        raise DeclarationError(f"{path}: no line names a column of {model.name!r}")
    return ModelSolution(model, Status.FEASIBLE, 0.0, 0.0, (0.0,), point, 0.0, "highs", ())
