"""Scores of districts in elections of two parties: shares, seats, and measures of symmetry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.models.districting.tolerances import LESS

if TYPE_CHECKING:
    from forcopt.models.districting.problem import Districting

Elections = Mapping[str, tuple[str, str]]
"""For each election the node attributes of the votes for two parties."""


def election_scores(problem: Districting, labels: Array, elections: Elections) -> dict[str, float]:
    """Score a plan for the first party of each election; what is above 0 favours it.

    Parameters
    ----------
    problem : Districting
        Whose nodes have votes.
    labels : ndarray of int64, shape (n,)
        The district of each node.
    elections : Mapping[str, tuple[str, str]]
        The names of elections, and the node attributes of the votes for two parties.

    Returns
    -------
    dict[str, float]
        For an election ``e`` with ``e`` before each name: ``seats`` (of the districts where the first party
        has more votes), ``efficiency_gap``, ``mean_median``, ``partisan_bias``, ``declination``, and its
        shares of the two parties' votes from the least, ``share_1``, to the largest.

    Raises
    ------
    DeclarationError
        If an election has not two attributes, or a node has not a number of votes, at least 0.

    Notes
    -----
    A party wastes its votes in a district that it loses, and those above half of both parties' votes in one
    that it wins. The efficiency gap is what the second party wastes more, over all votes [1]_. The
    mean-median score is the median share less the mean share. The partisan bias is the part of the districts
    with a share above the mean share, less 1/2 [2]_. The declination compares the angles at which the mean
    shares of districts lost and won lie from 1/2, over pi/2 [3]_; here it has the other sign. It is NaN if a
    party wins all districts. All measures of shares are NaN if a district has no votes.

    References
    ----------
    .. [1] Stephanopoulos and McGhee, Partisan gerrymandering and the efficiency gap, University of Chicago
       Law Review 2015.
    .. [2] Katz, King and Rosenblatt, Theoretical foundations and empirical evaluations of partisan fairness
       in district-based democracies, American Political Science Review 2020.
    .. [3] Warrington, Quantifying gerrymandering using the vote distribution, Election Law Journal 2018.

    Examples
    --------
    >>> from forcopt.data import grid
    >>> from forcopt.models import Districting
    >>> g = grid(1, 4)
    >>> for v, (d, r) in enumerate([(6, 4), (7, 3), (2, 8), (4, 6)]):
    ...     g.nodes[v].update(dem=d, rep=r)
    >>> p = Districting(g, districts=2, tolerance=0)
    >>> found = election_scores(p, np.array([0, 0, 1, 1]), {"mayor": ("dem", "rep")})
    >>> found["mayor seats"], round(found["mayor efficiency_gap"], 3), found["mayor share_2"]
    (1.0, 0.05, 0.65)
    """
    found: dict[str, float] = {}
    k, seats = problem.districts, np.array(problem.seats or (1,) * problem.districts)
    for name, pair in elections.items():
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise DeclarationError(f"elections: {name!r} is {pair!r}; it must be two node attributes")
        first, second = (np.bincount(labels, problem.amounts(attribute), k) for attribute in pair)
        total, won = first + second, first - second > LESS * (first + second)
        with np.errstate(divide="ignore", invalid="ignore"):
            share, count = first / total, np.array([(~won).sum(), won.sum()])
            means = np.array([share[~won].sum(), share[won].sum()]) / count
            lost_angle, won_angle = np.arctan(np.abs(2 * means - 1) * k / count)
            gap = np.where(won, second - first + total / 2, second - total / 2 - first).sum() / total.sum()
        scores = {
            "seats": won @ seats,
            "efficiency_gap": gap,
            "mean_median": np.median(share) - share.mean(),
            "partisan_bias": (share > share.mean() + LESS).mean() - 0.5 if total.all() else np.nan,
            "declination": 2 / np.pi * (lost_angle - won_angle),
        }
        scores |= {f"share_{i}": value for i, value in enumerate(np.sort(share), 1)}
        found |= {f"{name} {score}": float(value) for score, value in scores.items()}
    return found
