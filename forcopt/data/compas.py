"""ProPublica's file of COMPAS scores, compas-scores-two-years.csv, and its counts by score and race."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

from forcopt.arrays import Array
from forcopt.data.dataset import Dataset, binary_column, read_csv
from forcopt.data.levels import check_levels
from forcopt.errors import DeclarationError

__all__ = ["COMPAS_DECILES", "compas_counts", "load_compas"]

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


_NUMBERS = ("age", "priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count")
_NEEDED = (
    *_NUMBERS,
    "sex",
    "race",
    "c_charge_degree",
    "days_b_screening_arrest",
    "decile_score",
    "score_text",
    "is_recid",
    "two_year_recid",
)


def load_compas(path: str | Path, *, filtered: bool = True) -> Dataset:
    """Read the defendants of Broward County whom ProPublica followed for two years.

    Parameters
    ----------
    path : str or Path
        Of compas-scores-two-years.csv, from https://github.com/propublica/compas-analysis.
    filtered : bool, default True
        With ProPublica's filter, which leaves 6172 of 7214: arrested within 30 days of the screening, a known
        outcome, not an ordinary traffic offence, a score.

    Returns
    -------
    Dataset
        Labels: a new offence within two years. Groups: race. Features: age, counts of earlier offences, sex
        and the degree of the charge. The scores are ``data.frame["decile_score"]``.

    Raises
    ------
    DeclarationError
        If a column is missing, nobody is left, or a sex or a degree is none that the table has.
    """
    frame = read_csv(path)
    missing = [column for column in _NEEDED if column not in frame]
    if missing:
        raise DeclarationError(
            f"{path} has no column {', '.join(missing)}; is it compas-scores-two-years.csv?"
        )
    if filtered:
        frame = frame[
            frame["days_b_screening_arrest"].between(-30, 30)
            & (frame["is_recid"] != -1)
            & (frame["c_charge_degree"] != "O")
            & frame["score_text"].notna()  # "N/A" in the file
        ]
    if frame.empty:
        raise DeclarationError(f"{path} has no record{' that passes the filter' if filtered else ''}")
    for column, levels in (("sex", ("Male", "Female")), ("c_charge_degree", ("F", "M", "O"))):
        entries = frame[column].astype(str).tolist()
        check_levels(f"{path}: column {column!r}", entries, levels, rows=frame.index)
    frame = frame.reset_index(drop=True)
    features = np.column_stack(
        [
            frame[list(_NUMBERS)].to_numpy(dtype=float),
            (frame["sex"] == "Male").to_numpy(dtype=float),
            (frame["c_charge_degree"] == "F").to_numpy(dtype=float),
        ]
    )
    return Dataset(
        name="compas",
        frame=frame,
        features=features,
        feature_names=(*_NUMBERS, "male", "felony"),
        labels=binary_column(frame, "two_year_recid", path),
        groups=frame["race"].to_numpy(dtype=str),
    )
