"""Rounds and penalty of Algorithm 2 as printed: Diana et al. (2021)."""

from math import ceil, log

from forcopt.errors import DeclarationError


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


def records_needed(models: int, groups: int, levels: int, alpha: float, delta: float) -> int:
    """Records that each group needs, for slacks that hold on the sample to grow by at most `alpha`.

    With probability 1 - `delta` every model's error in every group is within
    ``beta = sqrt(ln(2 N K / delta) / (2 n))`` of that in the population (Hoeffding, and a union over N models
    and K groups; by linearity for mixtures, too). A model with slacks of at most a on the sample then has
    slacks of at most ``a + 2 levels beta`` in the population (Theorem 15; slacks that may depend on the
    model). Corollary 16 states the order for infinite classes, without a constant.

    Parameters
    ----------
    models : int
        N, in the class; losses are in [0, 1].
    groups : int
        K.
    levels : int
        That matter.
    alpha : float
        Positive.
    delta : float
        The probability of failure, strictly between 0 and 1.

    Returns
    -------
    int
        Of each group.

    Examples
    --------
    >>> records_needed(models=12, groups=3, levels=3, alpha=0.1, delta=0.05)
    13091
    """
    for name, count in (("models", models), ("groups", groups), ("levels", levels)):
        if count < 1:
            raise DeclarationError(f"{name} is {count!r}; it must be at least 1")
    if not alpha > 0:
        raise DeclarationError(f"alpha is {alpha!r}; it must be positive")
    if not 0 < delta < 1:
        raise DeclarationError(f"delta is {delta!r}; it must be strictly between 0 and 1")
    return ceil(2 * levels**2 * log(2 * models * groups / delta) / alpha**2)
