"""Rates of noisy counts: how far each may be off, for the rows of private post-processing."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.fairness import AllOf, GroupRates, Notion, Rate, RateParity

__all__ = ["noisy_slack", "parities_of"]


def noisy_slack(
    rates: GroupRates, notion: Notion, noise: float, values: int = 2
) -> tuple[dict[Rate, Array], str]:
    """By how much the noise in the counts moves each rate of each group at most.

    Parameters
    ----------
    rates : GroupRates
        Of noisy counts.
    notion : Notion
        Whose rates to take.
    noise : float
        A bound on the noise of each count.
    values : int, default 2
        The number of cells of a group and label: predictions, or bins of a score.

    Returns
    -------
    tuple[dict[Rate, Array], str]
        For each rate its slack by group, shape ``(K,)``; and the reason if the noise leaves a group without
        records for a rate, else an empty text.

    Notes
    -----
    A rate over c cells is a mean of c probabilities, weighted by the counts. It lies between the least and
    the largest of them, so that c noises of at most N move it by at most (c - 1) N / (noisy records).
    """
    slack: dict[Rate, Array] = {}
    for rate in notion.rates:
        cells, records = values * int(np.sum(rate.given[0])), rates.total(rate.given)
        if (records <= 0).any():
            a = int(np.argmin(records))
            return slack, (
                f"the noise leaves {records[a]:.6g} records of group {rates.groups[a]!r} for its "
                f"{rate.name}; more than {cells * noise:.6g} true ones would have been enough"
            )
        slack[rate] = (cells - 1) * noise / records
    return slack, ""


def parities_of(notion: Notion, method: str) -> list[RateParity]:
    """The parts of a notion, all parities of rates.

    Raises
    ------
    DeclarationError
        For another part, naming the method.
    """
    parts = notion.notions if isinstance(notion, AllOf) else (notion,)
    found = [part for part in parts if isinstance(part, RateParity)]
    for part in parts:
        if not isinstance(part, RateParity):
            raise DeclarationError(f"{method} is for parity of rates, not for {type(part).__name__}")
    return found
