"""Public tables of fair learning: Adult, Communities and Crime, law school, and COMPAS with its counts."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from forcopt.arrays import Array
from forcopt.data.dataset import Dataset
from forcopt.data.intake import Expected, take_table
from forcopt.errors import DeclarationError, check_known, require, required

if TYPE_CHECKING:
    import pandas as pd


_ADULT_NUMBERS = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
_ADULT_NAMES = ("workclass", "marital-status", "occupation", "relationship", "native-country")
_ADULT_GROUPS = ("sex", "race", "race-sex")

_POLICE = tuple(f"PctPolic{race}" for race in ("White", "Black", "Hisp", "Asian", "Minor"))
_OF_RACE = ("racepct", "racePct", "RacialMatch", *_POLICE)

_LAW_FEATURES = ("cluster", "lsat", "ugpa", "zfygpa", "zgpa", "fulltime", "fam_inc", "age", "gender")
_LAW_RACES = {
    "race1": "American Indian",
    "race2": "Asian",
    "race3": "Black",
    "race4": "Mexican American",
    "race5": "Puerto Rican",
    "race6": "Hispanic",
    "race7": "White",
    "race8": "Other",
}


def _read(
    path: str | Path, subject: str, columns: tuple[str, ...], known: Mapping[str, str], blank: bool = False
) -> pd.DataFrame:
    """The records of a file with these columns, some of which must hold the known levels alone."""
    pd = required("pandas", "a table of records")

    try:  # a row with more entries than the first: pandas would move all names by one
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(path, index_col=False)
    except (ValueError, pd.errors.ParserWarning) as error:
        raise DeclarationError(f"{path} is no CSV file with a first row of names: {error}") from None
    missing = [column for column in columns if column not in frame]
    if missing:
        raise DeclarationError(f"{path} has no column {', '.join(missing)}; is it {subject}?")
    if frame.empty:
        raise DeclarationError(f"{path} has no record")
    levels = {name: Expected("group", tuple(of.split()), blank=blank) for name, of in known.items()}
    take_table(frame[list(levels)], str(path), levels)
    return frame


def load_adult(path: str | Path, *, groups: str = "sex") -> Dataset:
    """Read the UCI Adult table: a sample of the 1994 census of the United States.

    Parameters
    ----------
    path : str or Path
        Of a CSV with a header, in UCI's column names (https://archive.ics.uci.edu/dataset/2/adult); records
        with a missing value ("?" or empty) are left out.
    groups : str, default "sex"
        The column of the groups: "sex", "race" or "race-sex".

    Returns
    -------
    Dataset
        Labels: an income above 50,000 dollars a year. Features: the numeric columns as they are, then one 0/1
        column for each value of the others; neither sex nor race is among them.

    Raises
    ------
    DeclarationError
        If a column is missing, nobody is left, or an income or a sex is none that the table has.
    UnknownNameError
        For another column of groups.
    """
    check_known("column of groups", groups, _ADULT_GROUPS)
    needed = (*_ADULT_NUMBERS, *_ADULT_NAMES, "race", "sex", "income-per-year")
    levels = {"income-per-year": "<=50K >50K <=50K. >50K. ?", "sex": "Male Female ?"}
    frame = _read(path, "adult.csv", needed, levels, blank=True)
    known = frame[list(needed)].notna().all(axis=1) & ~frame[list(needed)].isin(["?", " ?"]).any(axis=1)
    frame = frame[known].reset_index(drop=True)
    if frame.empty:
        raise DeclarationError(f"{path} has no record without a missing value")
    income = frame["income-per-year"].astype(str).str.strip().str.removesuffix(".")  # as in adult.test
    columns = [frame[list(_ADULT_NUMBERS)].to_numpy(dtype=float)]
    names: list[str] = list(_ADULT_NUMBERS)
    for column in _ADULT_NAMES:
        values, codes = np.unique(frame[column].to_numpy(dtype=str), return_inverse=True)
        columns.append(np.eye(len(values))[codes])
        names += [f"{column}={value.strip()}" for value in values.tolist()]
    of_group = frame["race"] + "-" + frame["sex"] if groups == "race-sex" else frame[groups]
    return Dataset(
        name="adult",
        frame=frame,
        features=np.hstack(columns),
        feature_names=tuple(names),
        labels=(income == ">50K").to_numpy(dtype=np.int64),
        groups=of_group.str.strip().to_numpy(dtype=str),
    )


def load_communities(path: str | Path) -> Dataset:
    """Read UCI Communities and Crime with its last column made binary: 1,994 communities.

    Parameters
    ----------
    path : str or Path
        Of a CSV with a header, all columns scaled to [0, 1], the last one 0 or 1
        (https://archive.ics.uci.edu/dataset/183/communities+and+crime).

    Returns
    -------
    Dataset
        Labels: a high rate of violent crime. Groups: whether the share of Black residents, a scaled column,
        is above its median, "high" or "low". Features: all columns but the label and the races of the
        residents and of the police.

    Raises
    ------
    DeclarationError
        If a column is missing, there are no records, or a label is neither 0 nor 1.
    """
    label = "ViolentCrimesPerPop"
    frame = _read(path, "communities.csv", ("racepctblack", "racePctWhite", label), {label: "0 1"})
    names = [name for name in frame.columns if name != label and not name.startswith((*_OF_RACE, "Unnamed"))]
    share = frame["racepctblack"].to_numpy(dtype=float)
    return Dataset(
        name="communities",
        frame=frame,
        features=frame[names].to_numpy(dtype=float),
        feature_names=tuple(names),
        labels=frame[label].to_numpy(dtype=np.int64),
        groups=np.where(share > np.median(share), "high", "low"),
    )


def load_lawschool(path: str | Path) -> Dataset:
    """Read the sample of the LSAC's national study of bar passage: 1,823 law students.

    Parameters
    ----------
    path : str or Path
        Of a CSV with a header: grades, test scores and 0/1 columns race1 to race8 as in the study.

    Returns
    -------
    Dataset
        Labels: the bar passed at the first attempt. Groups: race, eight values. Features: the school's
        cluster, test score, grades, full-time study, family income, age and gender.

    Raises
    ------
    DeclarationError
        If a column is missing, there are no records, or one is of no race or several.
    """
    frame = _read(path, "lawschool.csv", (*_LAW_FEATURES, *_LAW_RACES, "bar1"), {"bar1": "0 1"})
    races = frame[list(_LAW_RACES)].to_numpy(dtype=float)
    wrong = races.sum(axis=1) != 1
    if wrong.any():
        raise DeclarationError(f"record {int(np.argmax(wrong))} of {path} must have one of race1 to race8")
    return Dataset(
        name="lawschool",
        frame=frame,
        features=frame[list(_LAW_FEATURES)].to_numpy(dtype=float),
        feature_names=_LAW_FEATURES,
        labels=frame["bar1"].to_numpy(dtype=np.int64),
        groups=np.array(list(_LAW_RACES.values()))[races.argmax(axis=1)],
    )


Deciles = Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]]

COMPAS_DECILES: Mapping[str, Deciles] = MappingProxyType(
    {
        name: MappingProxyType(table)
        for name, table in {
            "filtered": {
                "African-American": (
                    (365, 346, 298, 337, 323, 318, 343, 301, 317, 227),
                    (85, 105, 125, 158, 158, 187, 209, 215, 229, 190),
                ),
                "Caucasian": (
                    (605, 321, 238, 243, 200, 160, 113, 96, 77, 50),
                    (128, 100, 82, 98, 91, 93, 68, 72, 55, 35),
                ),
            },
            "all": {
                "African-American": (
                    (398, 393, 346, 385, 365, 384, 400, 359, 380, 286),
                    (91, 119, 145, 177, 176, 215, 237, 245, 269, 227),
                ),
                "Caucasian": (
                    (681, 361, 273, 285, 241, 194, 143, 114, 98, 64),
                    (142, 113, 93, 113, 111, 111, 88, 82, 68, 45),
                ),
            },
        }.items()
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
    require(cutoff in range(1, 12), "cutoff", cutoff, "be a decile from 1 to 10, or 11 to predict nobody")
    table = COMPAS_DECILES["filtered" if filtered else "all"]
    counts = np.zeros((2, len(table), 2), dtype=np.int64)
    for a, (people, recidivists) in enumerate(table.values()):
        by_label = np.array([people, recidivists]).T
        by_label[:, 0] -= by_label[:, 1]
        counts[:, a] = by_label[: cutoff - 1].sum(axis=0), by_label[cutoff - 1 :].sum(axis=0)
    return counts, tuple(table)


_NUMBERS = ("age", "priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count")
_OUTCOMES = ("decile_score", "score_text", "is_recid", "two_year_recid")
_NEEDED = (*_NUMBERS, "sex", "race", "c_charge_degree", "days_b_screening_arrest", *_OUTCOMES)


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
    levels = {"sex": "Male Female", "c_charge_degree": "F M O", "two_year_recid": "0 1"}
    frame = _read(path, "compas-scores-two-years.csv", _NEEDED, levels)
    if filtered:
        frame = frame[
            frame["days_b_screening_arrest"].between(-30, 30)
            & (frame["is_recid"] != -1)
            & (frame["c_charge_degree"] != "O")
            & frame["score_text"].notna()  # "N/A" in the file
        ]
    if frame.empty:
        raise DeclarationError(f"{path} has no record that passes the filter")
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
        labels=frame["two_year_recid"].to_numpy(dtype=np.int64),
        groups=frame["race"].to_numpy(dtype=str),
    )
