"""Rounds and penalty of Algorithm 2 as printed: Diana et al. (2021)."""

from math import ceil


def theorem_parameters(
    level: int, alpha: float, diameter: float, slope: float, largest: float
) -> tuple[int, float]:
    """The rounds T_j and the penalty B_j of Algorithm 2.

    Parameters
    ----------
    level : int
        J.
    alpha : float
        The accuracy, positive.
    diameter, slope, largest : float
        D, G and L_M.

    Examples
    --------
    >>> [theorem_parameters(j, 0.1, 1.0, 1.0, 1.0) for j in (1, 2, 3)]
    [(230400, 11.0), (3097600, 21.0), (14745600, 31.0)]
    """
    top = 2 * level * (slope * diameter + largest) * (2 * alpha + level * largest) / alpha**2
    return ceil(round(top**2, 6)), (alpha + level * largest) / alpha
