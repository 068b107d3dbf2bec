"""How many points make the nearest neighbour on augmented data accurate."""

from __future__ import annotations

import math
from typing import Any

from forcopt.arrays import as_numbers
from forcopt.errors import DeclarationError

__all__ = ["nn_sample_size"]


def nn_sample_size(d: int, phi_inverse: float, eps: float, delta: float, *, as_printed: bool = False) -> int:
    """The sample size at which 1-nearest-neighbour on augmented data has excess error at most eps.

    Parameters
    ----------
    d : int
        The dimension.
    phi_inverse : float
        The largest radius whose margin rate is at most the allowed error: ``margin_rate(...).inverse(eps)``.
        Infinite if there is one label only: then 1 point is enough.
    eps, delta : float
        Error and probability of failure, in (0, 1).
    as_printed : bool
        The formula as printed, whose conclusion holds with 2 eps. By default it is taken at eps/2 (and
        `phi_inverse` should be that of eps/2), so that eps is right.

    Returns
    -------
    int
        ``3**d * d**(d/2) / (e * phi_inverse**d * eps * delta)``, rounded up.

    Raises
    ------
    DeclarationError
        For arguments outside of these ranges.

    Notes
    -----
    The number of cells is ``ceil(3 sqrt(d) / phi_inverse)**d`` in truth; the formula leaves the ceiling out
    `as_printed`, and takes it otherwise.

    References
    ----------
    Chowdhury, Urner, FORC 2022, Theorem 12 and Lemma 13.

    Examples
    --------
    >>> nn_sample_size(2, 0.1, 0.1, 0.1, as_printed=True)
    66219
    """
    if isinstance(d, bool) or int(d) != d or d < 1:
        raise DeclarationError(f"d is {d!r}; it must be a whole number, at least 1")
    values: dict[str, Any] = {"eps": eps, "delta": delta}
    for name, value in values.items():
        if not 0 < float(as_numbers(value, name)) < 1:
            raise DeclarationError(f"{name} is {value!r}; it must be between 0 and 1")
    if not phi_inverse > 0:
        raise DeclarationError(f"phi_inverse is {phi_inverse!r}; it must be positive")
    if math.isinf(phi_inverse):
        return 1
    side = 3 * math.sqrt(d) / phi_inverse
    if d * math.log(max(side, 1.0)) > 600:
        raise DeclarationError(f"d is {d} and phi_inverse {phi_inverse:g}; the sample size is above 10^260")
    if as_printed:
        return math.ceil(side**d / (math.e * eps * delta) - 1e-9)
    # the side of the cells, a share of phi_inverse / sqrt(d), is rounded so that they cover the unit cube
    cells = int(math.ceil(side - 1e-9) ** d)
    return math.ceil(cells / (math.e * eps / 2 * delta) - 1e-9)
