"""Before and after a panel's lottery: letters to a sample of addresses, a comparison with the census."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forcopt.arrays import Seed
from forcopt.data.dataset import refuse_doubles
from forcopt.data.intake import DOUBLED, Expected, check_table, read_rows, take_table
from forcopt.errors import DeclarationError, require, required
from forcopt.models.leximax_cohort.decision import CohortLottery
from forcopt.models.leximax_cohort.panel_check import quota_columns
from forcopt.numeric import largest_remainder

if TYPE_CHECKING:
    from pandas import DataFrame


class Letters(NamedTuple):
    """The addresses that get a letter.

    Attributes
    ----------
    drawn : DataFrame
        Their rows of the address file, in its order.
    districts : DataFrame
        For each district ``addresses``, ``response``, ``letters``, the ``chance`` of an address to get one,
        and the ``volunteers`` that are expected.
    """

    drawn: DataFrame
    districts: DataFrame


def draw_letters(
    addresses: DataFrame | str | Path,
    letters: int,
    *,
    district: str,
    response: Mapping[str, float],
    seed: Seed = None,
) -> Letters:
    """Draw the addresses that get a letter, more where fewer people respond.

    The letters of a district are proportional to its addresses by its response rate, so that an address of
    any district becomes a volunteer's with the same probability, up to the rounding to whole letters and to
    the number of addresses. Within a district all addresses have the same chance.

    Parameters
    ----------
    addresses : DataFrame, str or Path
        One row for each address, or a CSV file of it.
    letters : int
        In all, at most one for each address.
    district : str
        The column with the district.
    response : Mapping[str, float]
        The share of letters to a district that bring a volunteer, above 0 and at most 1.
    seed : int or numpy.random.Generator, optional
        An int or a generator; without, the draw cannot be repeated.

    Returns
    -------
    Letters
        The numbers of letters by district, and the drawn addresses.

    Raises
    ------
    DeclarationError
        For a district without a response rate, with the nearest one; a rate outside of (0, 1]; more letters
        than addresses.

    References
    ----------
    B. Flanigan, P. Gölz, A. Gupta and A. Procaccia, "Neutralizing self-selection bias in sampling for
    sortition", NeurIPS 2020.

    Examples
    --------
    >>> import pandas as pd
    >>> homes = pd.DataFrame({"street": range(30), "district": ["north"] * 20 + ["south"] * 10})
    >>> found = draw_letters(homes, 12, district="district", response={"north": 0.1, "south": 0.05}, seed=1)
    >>> found.districts.letters.to_dict(), len(found.drawn)
    ({'north': 6, 'south': 6}, 12)
    """
    pd = required("pandas", "draw_letters")

    wanted = {district: Expected("group", tuple(response), rule="has no response rate")}
    table, found = check_table(addresses, "addresses", wanted, fixes={DOUBLED: DOUBLED})
    found.refuse()
    of = table[district].tolist()
    table = addresses if isinstance(addresses, pd.DataFrame) else table.reset_index(drop=True)
    for name, rate in response.items():
        require(0 < rate <= 1, f"response of {name!r}", rate, "be above 0 and at most 1")
    if not 0 < letters <= len(of) or letters != int(letters):
        raise DeclarationError(f"letters is {letters}; it must be a whole number from 1 to {len(of)}")
    names = [name for name in response if name in set(of)]
    counts = np.array([of.count(name) for name in names])
    rates = np.array([response[name] for name in names])
    sent = largest_remainder(counts / rates, letters, maximum=counts)
    rng = np.random.default_rng(seed)
    drawn = [
        rng.choice(np.flatnonzero(np.array(of) == name), number, replace=False)
        for name, number in zip(names, sent.tolist(), strict=True)
    ]
    facts = {"addresses": counts, "response": rates, "letters": sent, "chance": sent / counts}
    districts = pd.DataFrame({**facts, "volunteers": sent * rates}, index=names)
    return Letters(table.iloc[np.sort(np.concatenate(drawn))], districts)


def compare_with_census(lottery: CohortLottery, census: DataFrame | str | Path) -> DataFrame:
    """Compare pool and panel with the census, value by value.

    Parameters
    ----------
    lottery : CohortLottery
        A panel's lottery, or one drawn panel: ``problem.lottery(row of 0 and 1)``.
    census : DataFrame, str or Path
        The columns ``feature``, ``value`` (with the names that tables of quotas may give them) and
        ``population``, a number of people or a share; or a CSV file of it.

    Returns
    -------
    DataFrame
        For each row of the census the shares of ``census``, ``pool`` and ``panel`` (expected), and
        ``places``: by how many seats the panel has more than its share of the census.

    Raises
    ------
    DeclarationError
        For a feature or a value that the pool or the census lacks, with the nearest one, and a population
        that is no number of at least 0.

    Examples
    --------
    >>> import pandas as pd
    >>> from forcopt.models import LeximaxCohort
    >>> p = LeximaxCohort(utilities=np.eye(4), size=2, features={"sex": list("fmmm")}, groups=tuple("abcd"))
    >>> census = pd.DataFrame({"feature": "sex", "value": ["f", "m"], "population": [52, 48]})
    >>> compare_with_census(p.solve().decision, census).round(2).values.tolist()
    [['sex', 'f', 0.52, 0.25, 0.25, -0.54], ['sex', 'm', 0.48, 0.75, 0.75, 0.54]]
    """
    pd = required("pandas", "compare_with_census")

    problem = lottery.problem
    schema = {
        "feature": Expected("group", tuple(problem.features), rule="is no feature of the pool"),
        "value": Expected("text"),
        "population": Expected("number", lower=0.0, usual=False),
    }
    table = take_table(quota_columns(read_rows(census, "census")), "census", schema)
    refuse_doubles("census", list(zip(table.feature, table.value, strict=True)), table.index)
    of = table.groupby("feature", sort=False)
    known = {name: Expected("group", tuple(own.value), rule="is not in census") for name, own in of}
    take_table(pd.DataFrame(dict(problem.features)), "candidates", known, {DOUBLED: DOUBLED})
    rows: list[list[Any]] = []
    for name, own in of:
        total, levels = own.population.sum(), np.array(problem.features[name])
        if not total > 0:
            raise DeclarationError(f"census: the populations of {name!r} are all 0")
        for value, people in zip(own.value, own.population, strict=True):
            has = levels == value
            shares = people / total, has.mean(), lottery.marginals @ has / problem.size
            rows.append([name, value, *map(float, shares), float((shares[2] - shares[0]) * problem.size)])
    return pd.DataFrame(rows, columns=["feature", "value", "census", "pool", "panel", "places"])
