"""Stability functions: by how much the allocations of users may differ whose values are within a factor."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from forcopt.arrays import Array
from forcopt.declaration import Declared, Numbers
from forcopt.errors import DeclarationError

__all__ = ["Function", "PiecewiseStability", "PowerStability", "StabilityFunction", "value_ratios"]


class StabilityFunction(Declared):
    """A nondecreasing function f of the ratio ``lambda >= 1`` of two users' values, with f(1) = 0."""

    @abstractmethod
    def __call__(self, ratios: Any) -> Array:
        """The difference allowed at ratios of values, each from 1 to infinity."""


class PowerStability(StabilityFunction):
    """``f(lambda) = 1 - lambda ** (-2 ell)``, the function that both rules of the paper keep to.

    Attributes
    ----------
    ell : float
        Above 0; the larger it is, the more the allocations of users may differ.

    References
    ----------
    Chawla, Rezvan and Sauerberg (2022), Theorems 9, 11 and 23.

    Examples
    --------
    >>> PowerStability(1.0)([1, 1.5, np.inf]).round(6).tolist()
    [0.0, 0.555556, 1.0]
    """

    ell: float = Field(gt=0, allow_inf_nan=False)

    def __call__(self, ratios: Any) -> Array:
        """See the class."""
        with np.errstate(under="ignore", over="ignore"):
            return np.asarray(-np.expm1(-2.0 * self.ell * np.log(np.asarray(ratios, dtype=float))))


class PiecewiseStability(StabilityFunction):
    """The linear interpolation of breakpoints; constant after the last one.

    Attributes
    ----------
    ratios : Numbers
        Rising from 1, shape ``(m,)``.
    bounds : Numbers
        The difference allowed at each ratio: nondecreasing from 0.

    Examples
    --------
    >>> PiecewiseStability([1, 2], [0, 0.5])([1, 1.5, 2, np.inf]).tolist()
    [0.0, 0.25, 0.5, 0.5]
    """

    ratios: Numbers
    bounds: Numbers

    @model_validator(mode="after")
    def _is_stability(self) -> Self:
        r, b = self.ratios, self.bounds
        if r.ndim != 1 or not len(r) or r.shape != b.shape:
            raise DeclarationError(f"ratios have shape {r.shape} and bounds {b.shape}; both must be (m,)")
        if (np.diff(r) <= 0).any():
            at = int(np.argmax(np.diff(r) <= 0)) + 1
            raise DeclarationError(f"ratios[{at}] is {r[at]:g}; ratios must rise")
        if r[0] != 1 or b[0] != 0:
            raise DeclarationError(f"f({r[0]:g}) is {b[0]:g}; the function must begin with f(1) = 0")
        if (np.diff(b) < 0).any():
            at = int(np.argmax(np.diff(b) < 0)) + 1
            raise DeclarationError(
                f"bounds[{at}] is {b[at]:g}, below {b[at - 1]:g}; the function must not fall"
            )
        return self

    def __call__(self, ratios: Any) -> Array:
        """See the class."""
        return np.asarray(np.interp(np.asarray(ratios, dtype=float), self.ratios, self.bounds))


def _read(value: Any) -> Any:
    return PowerStability(ell=value) if isinstance(value, int | float) else value


Function = Annotated[StabilityFunction, BeforeValidator(_read)]
"""A field of a stability function; a number stands for `PowerStability` with this ell."""


def value_ratios(values: Array) -> Array:
    """The largest ratio of two users' values over all ads, for all pairs.

    Parameters
    ----------
    values : Array
        At least 0, shape ``(T, n)``.

    Returns
    -------
    Array
        ``lambda_st = max_i max(v_si / v_ti, v_ti / v_si)``, shape ``(T, T)``; infinite where one of two
        values is 0, and 1 for two zeros. O(T² n).

    Examples
    --------
    >>> value_ratios(np.array([[1.0, 2.0, 0.0], [2.0, 2.0, 0.0], [1.0, 1.0, 1.0]])).tolist()
    [[1.0, 2.0, inf], [2.0, 1.0, inf], [inf, inf, 1.0]]
    """
    out = np.ones((len(values), len(values)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        for column in values.T:
            quotient = column[:, None] / column[None, :]
            np.fmax(out, quotient, out=out)  # fmax passes over the NaN of 0 / 0
            np.fmax(out, quotient.T, out=out)
    return out
