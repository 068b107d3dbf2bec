"""ProPublica's file of COMPAS scores: compas-scores-two-years.csv."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from forcopt.data.csv_files import binary_column, read_csv
from forcopt.data.dataset import Dataset
from forcopt.data.levels import check_levels
from forcopt.errors import DeclarationError

__all__ = ["load_compas"]

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
