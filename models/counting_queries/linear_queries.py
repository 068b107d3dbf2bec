"""Linear queries under correlated Gaussian noise: the factorization of the workload with the least error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import sqrt
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, field_validator

from forcopt.arrays import Array, as_numbers
from forcopt.declaration import Numbers
from forcopt.errors import DeclarationError
from forcopt.models.counting_queries.calibration import is_whole
from forcopt.privacy.losses import gaussian_shift
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Problem


@dataclass(frozen=True, eq=False)
class Factorization:
    """A workload W as B A: A x is released with independent Gaussian noise, and B maps it to the answers.

    Attributes
    ----------
    left : Array
        B, shape ``(queries, r)``.
    right : Array
        A, shape ``(r, counts)``.
    """

    left: Array
    right: Array

    def __repr__(self) -> str:
        return f"<a factorization {self.left.shape[0]} x {self.left.shape[1]} x {self.right.shape[1]}>"


class LinearQueries(Problem):
    """Linear queries W x of counts x, released as ``B (A x + z)`` with Gaussian z, where W = B A.

    Parameters
    ----------
    workload : array_like
        W, shape ``(queries, counts)``, not 0 everywhere. A count whose column is 0 is free.
    epsilon, delta : float
        Above 0; delta below 1.
    error : {"max", "mean"}
        The root mean square error of the worst query, or the root of the mean over the queries.
    neighbours : {"add_remove", "substitute"}
        Whether one person adds 1 to one count, or moves from one count to another.

    Raises
    ------
    DeclarationError
        For an empty workload or parameters out of range.

    Notes
    -----
    The noise has standard deviation ``sigma * s``, with sigma from the analytic Gaussian mechanism and s
    the largest norm of a column of A, or of a difference of two. The least product of s and the largest
    norm of a row of B is the factorization norm gamma_2.

    References
    ----------
    Li, Miklau, Hay, McGregor and Rastogi (2015), The matrix mechanism; Edmonds, Nikolov and Ullman (2020),
    The power of factorization mechanisms.

    Examples
    --------
    >>> from forcopt.models import LinearQueries
    >>> s = LinearQueries.prefix(2, epsilon=1.0, delta=1e-6).solve()
    >>> round(s.evaluation.metrics["factorization norm"], 3)  # 2 / sqrt(3)
    1.155
    """

    family: ClassVar[str] = "counting"
    default_method: ClassVar[str] = "fixed-point"

    workload: Numbers
    epsilon: float = Field(gt=0.0, allow_inf_nan=False)
    delta: float = Field(gt=0.0, lt=1.0)
    error: Literal["max", "mean"] = "max"
    neighbours: Literal["add_remove", "substitute"] = "add_remove"

    @field_validator("workload")
    @classmethod
    def _is_matrix(cls, w: Array) -> Array:
        if w.ndim != 2 or 0 in w.shape:
            raise DeclarationError(
                f"the shape is {w.shape}; it must be (queries, counts), at least one of each"
            )
        if not w.any():
            raise DeclarationError("it is 0 everywhere; there is nothing to answer")
        return w

    @classmethod
    def prefix(cls, counts: int, epsilon: float, delta: float, **fields: Any) -> Self:
        """All sums of the first counts: continual counting."""
        return cls(workload=np.tri(_positive(counts)), epsilon=epsilon, delta=delta, **fields)

    @classmethod
    def ranges(cls, counts: int, epsilon: float, delta: float, **fields: Any) -> Self:
        """All sums of consecutive counts, ``counts (counts + 1) / 2`` of them."""
        x = np.arange(_positive(counts))
        rows = [(x >= i) & (x <= j) for i in x for j in x[i:]]
        return cls(workload=np.array(rows, dtype=float), epsilon=epsilon, delta=delta, **fields)

    @classmethod
    def marginals(
        cls, categories: Mapping[str, Any], order: int, epsilon: float, delta: float, **fields: Any
    ) -> Self:
        """All marginals of `order` attributes.

        Parameters
        ----------
        categories : Mapping
            The categories of each attribute, each once. They are public; those that occur in a table of
            records are not, so that a column of records is refused. Counts are the cells of the product of
            the categories, the last attribute the fastest.
        order : int
            From 1 to the number of attributes.
        epsilon, delta, fields
            See the class.
        """
        if not isinstance(categories, Mapping):
            raise DeclarationError(
                f"categories is a {type(categories).__name__}; it must map each attribute to its categories"
            )
        for name, column in categories.items():
            if len(np.unique(np.asarray(column))) < len(column):
                raise DeclarationError(
                    f"categories of {name!r} repeat; list each once: the values that occur in records are "
                    "not public"
                )
        sizes = [len(column) for column in categories.values()]
        if not is_whole(order) or not 1 <= order <= len(sizes):
            raise DeclarationError(
                f"order is {order!r}; it must be a whole number from 1 to {len(sizes)}, the attributes"
            )
        if 0 in sizes:
            raise DeclarationError("an attribute of categories has none")
        if np.prod(sizes) > 5000:
            raise DeclarationError(
                f"the product of the categories is {np.prod(sizes)}; at most 5,000 cells fit"
            )
        cells = np.stack(np.meshgrid(*[np.arange(s) for s in sizes], indexing="ij"), axis=-1).reshape(
            -1, len(sizes)
        )
        rows = []
        for chosen in combinations(range(len(sizes)), order):
            code = np.ravel_multi_index(tuple(cells[:, list(chosen)].T), [sizes[i] for i in chosen])
            rows.append(np.eye(int(code.max()) + 1)[:, code])
        return cls(workload=np.concatenate(rows), epsilon=epsilon, delta=delta, **fields)

    @cached_property
    def sigma(self) -> float:
        """The standard deviation of the analytic Gaussian mechanism for sensitivity 1."""
        return 1 / gaussian_shift(self.epsilon, self.delta)

    @cached_property
    def changes(self) -> Array:
        """The changes by one person, as the columns of a matrix, shape ``(counts, changes)``."""
        n = self.workload.shape[1]
        if self.neighbours == "add_remove":
            return np.eye(n)
        i, j = np.triu_indices(n, 1)
        out = np.zeros((n, len(i)))
        out[i, np.arange(len(i))], out[j, np.arange(len(i))] = 1.0, -1.0
        return out

    def evaluate(self, decision: Factorization) -> Evaluation:
        """Evaluate a factorization.

        Parameters
        ----------
        decision : Factorization
            B and A.

        Returns
        -------
        Evaluation
            The error; the violation ``"factorization"``, by which B A misses W on the changes by one person
            (relatively to its largest entry); metrics ``"factorization norm"``, ``"max"``, ``"mean"`` and
            ``"deviation"``, the standard deviation of the noise.
        """
        left, right = as_numbers(decision.left, "left"), as_numbers(decision.right, "right")
        if left.shape != (len(self.workload), right.shape[0]) or right.shape[1] != self.workload.shape[1]:
            raise DeclarationError(
                f"the factors have shapes {left.shape} and {right.shape}; the workload {self.workload.shape}"
            )
        missed = self.workload - left @ right
        if self.neighbours == "substitute":  # the number of people is known, and its multiples are free
            missed = missed - missed.mean(axis=1, keepdims=True)
        wrong = float(np.abs(missed).max() / np.abs(self.workload).max())
        sensitivity = sqrt(self._sensitivity(right))
        rows = (left**2).sum(axis=1)
        deviation = self.sigma * sensitivity
        norms = {"max": sqrt(float(rows.max())), "mean": sqrt(float(rows.mean()))}
        metrics = {
            "factorization norm": sensitivity * norms[self.error],
            "deviation": deviation,
            **{name: deviation * norm for name, norm in norms.items()},
        }
        violations = {"factorization": wrong} if wrong > FEASIBILITY_TOLERANCE else {}
        return Evaluation(metrics[self.error], violations, metrics)

    def _sensitivity(self, right: Array) -> float:
        """The largest squared norm of one person's changes."""
        if self.neighbours == "add_remove":
            return float((right**2).sum(axis=0).max())
        gram = right.T @ right
        norms = np.diag(gram)
        return float((norms[:, None] + norms - 2 * gram).max())


def _positive(counts: int) -> int:
    if not is_whole(counts) or counts < 1:
        raise DeclarationError(f"counts is {counts!r}; it must be a whole number, at least 1")
    return int(counts)
