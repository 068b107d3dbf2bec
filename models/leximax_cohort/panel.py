"""Citizens' panels: fields of their files, replacements, public draws, and the least relaxation of quotas."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forcopt.arrays import Array, is_missing
from forcopt.data.dataset import (
    check_columns,
    check_levels,
    read_table,
    refuse_doubles,
    unknown_levels,
)
from forcopt.data.intake import nearest_level
from forcopt.errors import DeclarationError
from forcopt.language.model import Model
from forcopt.models.leximax_cohort.tolerances import SAME
from forcopt.status import Status

if TYPE_CHECKING:
    from pandas import DataFrame

    from forcopt.models.leximax_cohort.problem import LeximaxCohort

QUOTA_COLUMNS = ("feature", "value", "min", "max")
"""The columns of a table of quotas."""

_OTHER_NAMES = {"category": "feature", "name": "value", "least": "min", "most": "max"}
"""Names that other programs give them."""

_FLEXIBLE = ("min_flex", "max_flex")
"""Its columns with the ends to which a proposal may relax a quota; it has both or none."""


def panel_fields(
    candidates: Any,
    quotas: Any,
    *,
    identifier: str | None = None,
    household: str | Sequence[str] | None = None,
) -> dict[str, Any]:
    """Read the fields of a panel from tables; see `LeximaxCohort.from_candidates`.

    Raises
    ------
    DeclarationError
        For a column that is missing, two candidates with one identifier or one without, a candidate without a
        value of a feature with quotas, a quota that is no number or doubled, or a level that has candidates
        but no quota, or a quota of at least 1 but no candidates; its rows are named.

    Warns
    -----
    UserWarning
        For a quota whose least is 0 of a level that no candidate has: it has no effect.
    """
    people = read_table(candidates, "candidates")
    wanted, flexible, rows = _read_quotas(quotas)
    address = [household] if isinstance(household, str) else list(household or ())
    check_columns(people, dict.fromkeys([*wanted, *filter(None, [identifier]), *address]), "candidates")
    names = tuple(map(level_name, people.index if identifier is None else people[identifier]))
    if "" in names:
        raise DeclarationError(f"candidates: row {people.index[names.index('')]} has no identifier")
    refuse_doubles("candidates", names, people.index)
    levels = {feature: tuple(map(level_name, people[feature])) for feature in wanted}
    for feature, of_all in levels.items():
        if "" in of_all:
            who = names[of_all.index("")]
            raise DeclarationError(f"candidates: {who!r} has no value of {feature!r}, which has quotas")
        check_levels(f"candidates: {feature}", of_all, wanted[feature], rows=names, rule="has no quota")
        where, present = dict(zip(wanted[feature], rows[feature], strict=True)), sorted(set(of_all))
        demanded = [level for level, (least, _) in wanted[feature].items() if least != 0]
        subject, rule = f"quotas of {feature}", "is a level of no candidate"
        check_levels(subject, demanded, present, rows=[where[level] for level in demanded], rule=rule)
        if words := unknown_levels(subject, list(where), present, list(where.values()), rule):
            warnings.warn(f"{words}; its least is 0, so that it has no effect", UserWarning, stacklevel=3)
    fields: dict[str, Any] = {
        "utilities": np.eye(len(people)),
        "groups": names,
        "features": levels,
        "quotas": wanted,
        "flexible": flexible,
    }
    if address:
        parts = zip(*(map(level_name, people[column]) for column in address), strict=True)
        fields["households"] = tuple("\n".join(lines).strip().casefold() for lines in parts)
    return fields


def level_name(value: Any) -> str:
    """A candidate's level as text; empty if it is missing."""
    return "" if is_missing(value) else str(value).strip()


_Quotas = dict[str, dict[str, tuple[float, ...]]]


def _read_quotas(quotas: Any) -> tuple[_Quotas, _Quotas, dict[str, list[Any]]]:
    """The ends of each level by feature, the flexible ends if given, and the rows that they stand in."""
    if isinstance(quotas, Mapping):
        try:
            listed = [
                (feature, value, float(low), float(high), value)
                for feature, levels in quotas.items()
                for value, (low, high) in levels.items()
            ]
        except (AttributeError, TypeError, ValueError) as error:
            raise DeclarationError(
                f"quotas must give a least and a greatest number by value, by feature: {error}"
            ) from None
    else:
        table = quota_columns(read_table(quotas, "quotas"))
        columns = [*QUOTA_COLUMNS, *(_FLEXIBLE if set(_FLEXIBLE) & set(table.columns) else ())]
        check_columns(table, columns, "quotas")
        listed = list(zip(*(table[column] for column in columns), table.index, strict=True))
    out: tuple[_Quotas, _Quotas] = {}, {}
    rows: dict[str, list[Any]] = {}
    for feature, value, *numbers, row in listed:
        of, level = level_name(feature), level_name(value)
        if not (of and level):
            raise DeclarationError(f"quotas: row {row} has no {'value' if of else 'feature'}")
        try:
            ends = tuple(map(float, numbers))
        except (TypeError, ValueError):
            words = ", ".join(map(repr, numbers))
            raise DeclarationError(f"quotas of {of} = {level}: {words} are no numbers") from None
        for field, pair in zip(out, (ends[:2], ends[2:]), strict=True):
            if pair:
                field.setdefault(of, {})[level] = pair
        rows.setdefault(of, []).append(row)
    keys = [f"{level_name(feature)} = {level_name(value)}" for feature, value, *_ in listed]
    refuse_doubles("quotas", keys, [row for *_, row in listed])
    return *out, rows


def quota_columns(table: DataFrame) -> DataFrame:
    """Give the columns of a table of quotas our names, where it has those of another program."""
    if {"category", "feature"} <= set(table.columns) and not {"value", "name"} & set(table.columns):
        return table.rename(columns={"category": "feature", "feature": "value"})  # Panelot's names
    other = {old: new for old, new in _OTHER_NAMES.items() if new not in table.columns}
    return table.rename(columns=other)


def quota_table(problem: LeximaxCohort) -> DataFrame:
    """The quotas as StratifySelect and sortition-algorithms read them, a row for each value of a feature.

    Returns
    -------
    DataFrame
        With the columns ``feature``, ``value``, ``min``, ``max``, and, if the problem has flexible quotas,
        ``min_flex`` and ``max_flex``.

    Examples
    --------
    >>> from forcopt.models import LeximaxCohort
    >>> fields = {"features": {"sex": list("ffmm")}, "quotas": {"sex": {"f": [1, 2], "m": [1, 1]}}}
    >>> print(quota_table(LeximaxCohort(utilities=np.eye(4), size=2, **fields)).to_string(index=False))
    feature value  min  max
        sex     f    1    2
        sex     m    1    1
    """
    from pandas import DataFrame

    classes, (low, high) = problem.classes, flexible_ends(problem)
    keys = [(feature, level) for feature, levels in problem.quotas.items() for level in levels]
    table = DataFrame(keys, columns=["feature", "value"]).assign(min=classes.least, max=classes.most)
    if problem.flexible:
        table = table.assign(min_flex=low, max_flex=np.minimum(high, problem.size))
    return table.convert_dtypes()


def flexible_ends(problem: LeximaxCohort) -> tuple[Array, Array]:
    """The ends to which each quota may be relaxed: 0 and no end, where none are declared."""
    ends = [
        problem.flexible.get(feature, {}).get(level, (0.0, np.inf))
        for feature, levels in problem.quotas.items()
        for level in levels
    ]
    low, high = np.array(ends).reshape(-1, 2).T
    return low, high


def positions(problem: LeximaxCohort, members: Iterable[Any], where: str = "") -> Array:
    """The positions of named candidates, rising and each once.

    Raises
    ------
    DeclarationError
        For a candidate that does not exist; it begins with `where`.
    """
    places = {name: i for i, name in enumerate(problem.names)}
    for name in (names := list(map(str, members))):
        if name not in places:
            near = nearest_level(name, places)
            hint = f"; did you mean {near!r}?" if near else ""
            raise DeclarationError(f"{where}{name!r} is no candidate{hint}")
    return np.unique(np.array([places[name] for name in names], dtype=np.int64))


def replacement_fields(
    problem: LeximaxCohort, kept: Iterable[Any], dropped: Iterable[Any]
) -> dict[str, Array]:
    """The forced and forbidden positions after some members of a panel dropped out.

    Raises
    ------
    DeclarationError
        For a candidate that does not exist, or is both kept and dropped.
    """
    forced = np.union1d(problem.forced, positions(problem, kept)).astype(np.int64)
    forbidden = np.union1d(problem.forbidden, positions(problem, dropped)).astype(np.int64)
    return {"forced": forced, "forbidden": forbidden}


def gini(values: Array) -> float:
    """The Gini coefficient of numbers of at least 0: 0 if all are equal, near 1 if one has all.

    ``sum_ij |x_i - x_j| / (2 n sum_i x_i)``, from the sorted values. O(n log n).

    Examples
    --------
    >>> round(gini(np.array([1.0, 1.0, 1.0, 1.0])), 9), gini(np.array([0.0, 0.0, 0.0, 1.0]))
    (0.0, 0.75)
    """
    x = np.sort(values)
    n, total = len(x), float(x.sum())
    return 0.0 if total == 0 else float((2 * np.arange(1, n + 1) - n - 1) @ x / (n * total))


_DIGITS = 6
"""Decimals of the bounds that quotas on the marginals of a fractional size would need."""


class QuotaRelaxation(NamedTuple):
    """One quota with the bounds that it would need.

    Attributes
    ----------
    feature, level : str
        Such as ``"sex"`` and ``"female"``.
    bounds : tuple[float, float]
        As declared.
    needed : tuple[float, float]
        As they must be.
    """

    feature: str
    level: str
    bounds: tuple[float, float]
    needed: tuple[float, float]

    def __str__(self) -> str:
        return " and ".join(
            f"{abs(new - old):g} {word} of {self.feature} = {self.level} ({side} {old:g} -> {new:g})"
            for word, side, old, new in zip(
                ("fewer", "more"), ("at least", "at most"), self.bounds, self.needed, strict=True
            )
            if old != new
        )


def least_relaxation(
    problem: LeximaxCohort, *, backend: str = "highs", time_limit: float | None = None
) -> list[QuotaRelaxation] | None:
    """Find the quotas to relax, by the least number of places in all, for a cohort to exist.

    Parameters
    ----------
    problem : LeximaxCohort
        Which.
    backend : str, default "highs"
        Takes mixed-integer linear programs.
    time_limit : float, optional
        Seconds.

    Returns
    -------
    list[QuotaRelaxation] or None
        Empty if the quotas hold together. None if no relaxation of quotas is enough (too many candidates are
        forced or forbidden, the households are too few, or `flexible` quotas end it), or none was found in
        time.

    Notes
    -----
    An elastic program: each quota may be broken by a number of places, and the sum of these numbers is
    minimized over all cohorts, or over all marginals of a fractional size. O(quotas) more columns than the
    program for one cohort.

    References
    ----------
    Flanigan, Goelz, Gupta, Hennig, Procaccia: Fair algorithms for selecting citizens' assemblies. Nature 596,
    2021, for the quota relaxation of their tool.
    """
    classes, (lower, upper) = problem.classes, problem.bounds
    model = Model("relaxation")
    chosen = model.variable("chosen", len(lower), lower=lower, upper=upper, integer=problem.is_whole)
    model.subject_to(chosen.sum() == problem.size)
    if problem.household_rows.shape[0]:
        model.subject_to(problem.household_rows @ chosen <= 1)
    count = len(classes.names)
    low, high = flexible_ends(problem)
    down = model.variable("down", count, lower=0, upper=classes.least - low)
    up = model.variable("up", count, lower=0, upper=high - classes.most)
    sums = chosen @ classes.members.T
    model.subject_to(sums + down >= classes.least, sums - up <= classes.most)
    model.minimize(down.sum() + up.sum())
    result = model.solve(backend, time_limit=time_limit)
    if result.point is None or result.status not in (Status.OPTIMAL, Status.FEASIBLE):
        return None
    counts, digits = classes.members @ result[chosen], 0 if problem.is_whole else _DIGITS
    short, over = np.round(counts, digits) < classes.least, np.round(counts, digits) > classes.most
    # outwards, so that the rounded bounds suffice
    counts = np.where(short, np.floor(counts * 10**digits + SAME), np.ceil(counts * 10**digits - SAME))
    counts /= 10**digits
    counts = np.where(short | over, counts, np.clip(counts, classes.least, classes.most))
    keys = [(feature, level) for feature, levels in problem.quotas.items() for level in levels]
    return [
        QuotaRelaxation(*key, (float(a), float(b)), (float(min(a, c)), float(max(b, c))))
        for key, a, b, c in zip(keys, classes.least, classes.most, counts, strict=True)
        if not a <= c <= b
    ]


def reason(problem: LeximaxCohort, time_limit: float | None = None) -> str:
    """Explain why no cohort meets the demands, with the least relaxation; empty if one does."""
    lower, upper = problem.bounds
    if lower.sum() > problem.size:
        return f"{lower.sum():g} candidates are forced; size is {problem.size:g}"
    if upper.sum() < problem.size:
        return f"{upper.sum():g} candidates are not forbidden; size is {problem.size:g}"
    found = least_relaxation(problem, time_limit=time_limit)
    if found is None:
        if problem.flexible:
            return "no cohort of the size meets the demands, even with all quotas at their flexible ends"
        if problem.household_rows.shape[0]:
            return "no cohort of the size has at most one member of each household, whatever the quotas are"
        return "no cohort of the size meets the demands"
    if not found:
        return ""
    return "the quotas contradict each other; the least relaxation: " + "; ".join(map(str, found))
