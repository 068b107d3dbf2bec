"""A bare model from a file, to be compared as problems are."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Literal, Self

from pydantic import model_validator

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.language.expression import Expression
from forcopt.language.model import Model
from forcopt.loops.exchange import read_into
from forcopt.problem import Evaluation, Handles, Problem

__all__ = ["ModelFile"]


class ModelFile(Problem):
    """The model in an MPS or LP file; a decision is the values of its columns, shape ``(columns,)``.

    Attributes
    ----------
    path : str
        Of the file.
    sha256 : str, default ""
        Of the content; computed if left out.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    DeclarationError
        If the content does not fit `sha256`.
    """

    default_method = "model"
    family = "model"
    path: str
    sha256: str = ""

    @model_validator(mode="after")
    def _is_the_same(self) -> Self:
        found = hashlib.sha256(Path(self.path).read_bytes()).hexdigest()
        if self.sha256 and self.sha256 != found:
            raise DeclarationError(f"{self.path} is not the file whose sha256 is {self.sha256}")
        object.__setattr__(self, "sha256", found)
        return self

    @property
    def _model_name(self) -> str:
        """The name of the file, as in `fo.read`."""
        return Path(self.path.removesuffix(".gz").removesuffix(".bz2")).stem

    @property
    def sense(self) -> Literal["min", "max"]:  # type: ignore[override]
        """As in the file."""
        return "max" if _model(self.path, self.sha256)[3] else "min"

    def evaluate(self, decision: Array) -> Evaluation:
        """Evaluate values of the columns."""
        model, x, objective, _ = _model(self.path, self.sha256)
        point = model.point({x: decision})
        return Evaluation(float(objective.evaluate(point)), model.violations(point))


@lru_cache(maxsize=4)
def _model(path: str, sha256: str) -> tuple[Model, Expression, Expression, bool]:
    model = Model(Path(path).stem)
    return model, *read_into(model, path)


@ModelFile.formulation("model", exact=True)
def as_it_is(problem: ModelFile, model: Model) -> Handles:
    """The model as it is."""
    x, objective, _ = read_into(model, problem.path)
    return Handles(objective=objective, decision=lambda result: result[x], x=x)
