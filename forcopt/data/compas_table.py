"""COMPAS scores against recidivism and race, counted: enough for every problem that looks only at the score.

Counted from ProPublica's two-year file (Broward County), as `forcopt.data.load_compas` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError

__all__ = ["COMPAS_DECILES", "compas_counts"]

Deciles = Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]]

COMPAS_DECILES: Mapping[str, Deciles] = MappingProxyType(
    {
        "filtered": MappingProxyType(
            {
                "African-American": (
                    (365, 346, 298, 337, 323, 318, 343, 301, 317, 227),
                    (85, 105, 125, 158, 158, 187, 209, 215, 229, 190),
                ),
                "Caucasian": (
                    (605, 321, 238, 243, 200, 160, 113, 96, 77, 50),
                    (128, 100, 82, 98, 91, 93, 68, 72, 55, 35),
                ),
            }
        ),
        "all": MappingProxyType(
            {
                "African-American": (
                    (398, 393, 346, 385, 365, 384, 400, 359, 380, 286),
                    (91, 119, 145, 177, 176, 215, 237, 245, 269, 227),
                ),
                "Caucasian": (
                    (681, 361, 273, 285, 241, 194, 143, 114, 98, 64),
                    (142, 113, 93, 113, 111, 111, 88, 82, 68, 45),
                ),
            }
        ),
    }
)
"""``COMPAS_DECILES["filtered"][race]``: for deciles 1 to 10 how many had that score, how many recidivated.

Filtered means with ProPublica's filter, see `forcopt.data.load_compas`; the error rates that ProPublica
published counts are ``COMPAS_DECILES["all"]``.
"""


def compas_counts(cutoff: int = 5, *, filtered: bool = True) -> tuple[Array, tuple[str, ...]]:
    """Count COMPAS by prediction, race and label.

    Parameters
    ----------
    cutoff : int, default 5
        1 (recidivates) is predicted from this decile on.
    filtered : bool, default True
        With ProPublica's filter.

    Returns
    -------
    tuple[Array, tuple[str, ...]]
        Counts, indexed ``[prediction, group, label]``, shape ``(2, 2, 2)``, where label 1 is a new offence
        within two years; and the names of the two groups.

    Examples
    --------
    >>> counts, groups = compas_counts()
    >>> counts.tolist(), groups
    ([[[873, 473], [999, 408]], [[641, 1188], [282, 414]]], ('African-American', 'Caucasian'))
    """
    if cutoff not in range(1, 12):
        raise DeclarationError(
            f"cutoff is {cutoff!r}; it must be a decile from 1 to 10, or 11 to predict nobody"
        )
    table = COMPAS_DECILES["filtered" if filtered else "all"]
    counts = np.zeros((2, len(table), 2), dtype=np.int64)
    for a, (people, recidivists) in enumerate(table.values()):
        by_label = np.array([people, recidivists]).T
        by_label[:, 0] -= by_label[:, 1]
        counts[:, a] = by_label[: cutoff - 1].sum(axis=0), by_label[cutoff - 1 :].sum(axis=0)
    return counts, tuple(table)
