"""Rates of noisy counts, for the rows of private post-processing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.fairness import GroupRates, Notion
from forcopt.privacy import PrivacyBudget

__all__ = ["check_declared", "emptied", "undefined_rates"]


def emptied(rates: GroupRates, notion: Notion) -> str:
    """The reason if the noise leaves a group without records for a rate, else an empty text.

    Parameters
    ----------
    rates : GroupRates
        Of noisy counts.
    notion : Notion
        Whose rates to take.
    """
    for rate, over in notion.demands(rates):
        records = over.total(rate.given)
        if over.noise is not None and (records <= 0).any():
            a = int(np.argmin(records))
            enough = over.noise.counts[a] * int(np.sum(rate.given[0])) * over.noise.bound
            return (
                f"the noise leaves {records[a]:.6g} records of group {over.groups[a]!r} for its "
                f"{rate.name}; more than {enough:.6g} true ones would have been enough"
            )
    return ""


def check_declared(names: Sequence[str] | None, privacy: PrivacyBudget | None) -> None:
    """Refuse a private problem without the names of its groups: whether a name occurs is private.

    Raises
    ------
    DeclarationError
        For `privacy` without `names`.
    """
    if privacy is not None and not names:
        raise DeclarationError(
            "names is missing; with privacy it must list all groups, as those that occur in the records are "
            'private: names=("a", "b")'
        )


def undefined_rates(rates: GroupRates, notion: Notion) -> dict[str, float]:
    """The rates of a notion for which a group has no records, as violations of 1, the largest.

    Private problems are declared without a look at the counts of groups: a refusal would reveal an empty one.
    """
    return {f"undefined {rate.name}": 1.0 for rate, over in notion.demands(rates) if not over.defines(rate)}
