"""The rules of bids as methods of the problem: prior-free, approximate, with the theorems' guarantees."""

from __future__ import annotations

from forcopt.models.fair_auctions.problem import FairAuction
from forcopt.models.fair_auctions.rules import (
    check_ell,
    inverse_proportional_guarantee,
    proportional_guarantee,
)
from forcopt.models.fair_auctions.rules import highest_bid as give_highest_bid
from forcopt.models.fair_auctions.rules import (
    inverse_proportional as give_inverse_proportional,
)
from forcopt.models.fair_auctions.rules import proportional as give_proportional
from forcopt.models.fair_auctions.rules import uniform as give_uniform
from forcopt.problem import Outcome

_PAPER = "Chawla, Rezvan and Sauerberg (2022)"


def _lost_inverse(problem: FairAuction, ell: float | None = None) -> float:
    kept = inverse_proportional_guarantee(problem.ell if ell is None else ell)
    return (1.0 - kept) * problem.scale


def _lost_proportional(problem: FairAuction, ell: float | None = None) -> float:
    ell = problem.ell if ell is None else ell
    if ell < 1:
        return problem.scale  # no theorem: anything up to everything
    return (1.0 - proportional_guarantee(problem.values.shape[1], ell)) * problem.scale


@FairAuction.algorithm(
    "inverse-proportional", guarantee=_lost_inverse, cites=f"{_PAPER}, Algorithms 1 and 3", rank="published"
)
def inverse_proportional(
    problem: FairAuction,
    *,
    ell: float | None = None,
    as_printed: bool = False,
    time_limit: float | None = None,
) -> Outcome:
    """The generalized inverse proportional rule, user by user.

    It keeps value and ordered stability and preference alignment at its ell, not total variation stability.

    Parameters
    ----------
    problem : FairAuction
        Any.
    ell : float, optional
        By default the least that the constraint names, or 1.
    as_printed : bool, default False
        Algorithm 3 as the paper has it.
    time_limit : float, optional
        Every method accepts one; a rule in closed form checks no clock.
    """
    ell = problem.ell if ell is None else check_ell(ell)
    M = give_inverse_proportional(problem.effective, len(problem.slots), ell, as_printed=as_printed)
    rule = None if as_printed else "inverse-proportional"
    kept = None if as_printed else _lost_inverse(problem, ell)
    return Outcome(problem.allocation(M, rule, ell), guarantee=kept)  # type: ignore[arg-type]


@FairAuction.algorithm(
    "proportional", guarantee=_lost_proportional, cites=f"{_PAPER}, Algorithms 2 and 4", rank="published"
)
def proportional(
    problem: FairAuction,
    *,
    ell: float | None = None,
    as_printed: bool = False,
    time_limit: float | None = None,
) -> Outcome:
    """The generalized proportional rule, user by user.

    It keeps ordered stability at its ell, and for one slot total variation stability.

    Parameters
    ----------
    problem : FairAuction
        Any.
    ell : float, optional
        By default the least that the constraint names, or 1. Below 1 there is a warning.
    as_printed : bool, default False
        Algorithm 4 as the paper has it.
    time_limit : float, optional
        Every method accepts one; a rule in closed form checks no clock.
    """
    ell = problem.ell if ell is None else check_ell(ell)
    M = give_proportional(problem.effective, len(problem.slots), ell, as_printed=as_printed)
    rule = None if as_printed else "proportional"
    kept = None if as_printed else _lost_proportional(problem, ell)
    return Outcome(problem.allocation(M, rule, ell), guarantee=kept)  # type: ignore[arg-type]


@FairAuction.algorithm("highest-bid", cites="Vickrey, Clarke and Groves, without fairness", rank="published")
def highest_bid(problem: FairAuction, *, time_limit: float | None = None) -> Outcome:
    """The highest effective value gets the first slot, and so on: the largest welfare, fair or not.

    Its objective bounds all others.

    Parameters
    ----------
    time_limit : float, optional
        Every method accepts one; a rule in closed form checks no clock.
    """
    M = give_highest_bid(problem.effective, len(problem.slots))
    return Outcome(problem.allocation(M, "highest-bid"), bound=problem.scale)


@FairAuction.algorithm("uniform", cites="the baseline that every notion allows", rank="published")
def uniform(problem: FairAuction, *, time_limit: float | None = None) -> Outcome:
    """Every ad has every slot with probability 1 / n.

    Parameters
    ----------
    time_limit : float, optional
        Every method accepts one; a rule in closed form checks no clock.
    """
    return Outcome(problem.allocation(give_uniform(problem.effective, len(problem.slots)), "uniform"))
