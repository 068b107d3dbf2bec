"""The lotteries of this package in the program sortition-algorithms."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.models.leximax_cohort.objectives import Objective
from forcopt.models.leximax_cohort.panel_check import household_names
from forcopt.models.leximax_cohort.problem import LeximaxCohort


def find_distribution(
    features: Any,
    people: Any,
    number_people_wanted: int,
    check_same_address_columns: list[str],
    solver_backend: str = "highs",
    *,
    objective: Objective = "leximin",
    progress_reporter: Any = None,
) -> tuple[list[frozenset[str]], list[float], Any]:
    """Find the lottery over committees; takes and returns what ``find_distribution_leximin`` does.

    ``sortition_algorithms.core.find_distribution_leximin = find_distribution`` (and the same for maximin)
    puts it to use.

    Parameters
    ----------
    features : FeatureCollection
        Of sortition-algorithms: the least and the greatest number by value, by feature.
    people : People
        Of sortition-algorithms.
    number_people_wanted : int
        Of the committee.
    check_same_address_columns : list[str]
        Of the address, of which a committee has at most one member; empty for no such rule.
    solver_backend : str
        Left alone: HiGHS solves all programs.
    objective : Objective, default "leximin"
        See `LeximaxCohort`.
    progress_reporter : Any
        Left alone.

    Returns
    -------
    tuple[list[frozenset[str]], list[float], RunReport]
        Committees by the identifiers of their members, their probabilities, and a report with a line about
        the proof.

    Raises
    ------
    DeclarationError
        If no committee meets the quotas; it names the least relaxation.
    """
    from sortition_algorithms.utils import RunReport

    rows = {key: people.get_person_dict(key) for key in people}
    names = {value.casefold(): value for of in features.values() for value in of}  # they ignore upper case
    fields: dict[str, Any] = {
        "features": {
            f: [names.get((v := row[f].strip()).casefold(), v) for row in rows.values()] for f in features
        },
        "quotas": {f: {v: (ends.min, ends.max) for v, ends in of.items()} for f, of in features.items()},
    }
    if check_same_address_columns:
        homes = [people.get_address(key, check_same_address_columns) for key in rows]
        fields["households"] = household_names(homes)
    fields |= {"utilities": np.eye(len(rows)), "groups": tuple(rows), "size": number_people_wanted}
    problem = LeximaxCohort(objective=objective, **fields)
    found = problem.solve("uniform" if objective == "uniform" else "column-generation")
    if not found.status.has_solution:
        raise DeclarationError(found.reason or found.message)
    cohorts, weights = found.decision.distribution()
    report = RunReport()
    report.add_line(f"forcopt, {objective}: {found.status}, {found.message}")
    keys = np.array(list(rows))
    return [frozenset(keys[row > 0.5].tolist()) for row in cohorts], weights.tolist(), report
