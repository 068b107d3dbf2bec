"""The leximax cohort as a linear or mixed-integer program, by the methods that leximin objectives have."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.language.expression import Expression
from forcopt.language.model import Model, Variable
from forcopt.language.objective import Objective, SortedMethod, lexicographic, leximin, maximize
from forcopt.models.leximax_cohort.problem import LeximaxCohort
from forcopt.models.leximax_cohort.tolerances import GAP
from forcopt.problem import Handles

_HENZINGER = "Henzinger, Peale, Reingold and Shen (2022)"
_OGRYCZAK = "Ogryczak and Śliwiński (2006)"

_MOST_GROUPS = 14
"""All subsets of more groups are too many to list."""


def write_choice(
    problem: LeximaxCohort, model: Model, integer: bool | None = None
) -> tuple[Variable, Expression]:
    """Write the candidates' probabilities, size and quotas into a model.

    Parameters
    ----------
    problem : LeximaxCohort
        Which.
    model : Model
        To write to.
    integer : bool, optional
        Choose 0 or 1; by default as declared.

    Returns
    -------
    tuple[Variable, Expression]
        The probabilities, shape ``(n,)``, and the groups' utilities, shape ``(m,)``.

    Raises
    ------
    DeclarationError
        If the marginals within the rows need not come from lotteries over cohorts.
    """
    integer = problem.integer if integer is None else integer
    if not integer and not problem.mixes:
        raise DeclarationError(
            "with fractional quotas, or quotas on three features or more, marginals need not come from a "
            "lottery over cohorts; solve by 'column-generation'"
        )
    lower, upper = problem.bounds
    x = model.variable(model.unused_name("choose"), len(lower), lower=lower, upper=upper, integer=integer)
    model.subject_to(x.sum() == problem.size, name=model.unused_name("size"))
    classes = problem.classes
    if classes.names:
        counts = (x @ classes.members.T).between(classes.least, classes.most)
        model.subject_to(counts, name=model.unused_name("quotas"))
    if problem.household_rows.shape[0]:
        model.subject_to(problem.household_rows @ x <= 1, name=model.unused_name("households"))
    return x, x @ problem.utilities


def _handles(
    problem: LeximaxCohort, x: Variable, u: Expression, objective: Objective | Expression, unit: float
) -> Handles:
    return Handles(
        objective=objective,
        unit=unit,
        decision=lambda result: problem.lottery(result[x]),
        start=lambda decision: {x: problem.read(decision)},
        marginals=x,
        utilities=u,
    )


def _leximin(problem: LeximaxCohort, model: Model, method: SortedMethod) -> Handles:
    x, u = write_choice(problem, model)
    whole = bool((problem.utilities == np.round(problem.utilities)).all())
    unit = 1.0 if method == "ordered-values" and whole else problem.unit
    return _handles(problem, x, u, leximin(u / unit, method), unit)


def _of_marginals(problem: LeximaxCohort, method: str) -> None:
    if problem.integer:
        raise DeclarationError(f"{method!r} finds marginals; integer=True asks for one cohort: use 'milp'")


@LeximaxCohort.formulation("saturation", exact=True, cites="Potters and Tijs (1992); Balan et al. (2008)")
def saturation(problem: LeximaxCohort, model: Model) -> Handles:
    """Raise a common floor, fix the groups that cannot rise, go on: at most m linear programs of m rows.

    Returns
    -------
    Handles
        ``marginals``, shape ``(n,)``; ``utilities``, shape ``(m,)``.
    """
    _of_marginals(problem, "saturation")
    return _leximin(problem, model, "saturation")


@LeximaxCohort.formulation("compact", exact=True, cites=_OGRYCZAK)
def compact(problem: LeximaxCohort, model: Model) -> Handles:
    """Stage k maximises the sum of the k smallest utilities, by its dual: O(m²) rows.

    Returns
    -------
    Handles
        ``marginals``, shape ``(n,)``; ``utilities``, shape ``(m,)``.
    """
    return _leximin(problem, model, "compact")


@LeximaxCohort.formulation("cuts", exact=True, cites=f"{_HENZINGER}, Algorithms 1 and 2", rank="published")
def cuts(problem: LeximaxCohort, model: Model) -> Handles:
    """Stage k over the sums of all subsets of k groups, separated by sorting.

    The algorithms as corrected: stage k's rows read ``sum over S >= P_1 + ... + P_(k-1) + gamma_k``, which
    the paper prints with the level that is yet to be found.

    Returns
    -------
    Handles
        ``marginals``, shape ``(n,)``; ``utilities``, shape ``(m,)``.
    """
    return _leximin(problem, model, "cuts")


@LeximaxCohort.formulation("ordered-values", exact=True, cites=_OGRYCZAK)
def ordered_values(problem: LeximaxCohort, model: Model) -> Handles:
    """For whole utilities and one cohort: stage k counts the groups' deficits to the value k + 1.

    Returns
    -------
    Handles
        ``marginals``, shape ``(n,)``; ``utilities``, shape ``(m,)``.
    """
    return _leximin(problem, model, "ordered-values")


@LeximaxCohort.formulation("milp", exact=True, cites=f"{_HENZINGER}, Appendix D; {_OGRYCZAK}")
def milp(problem: LeximaxCohort, model: Model) -> Handles:
    """One cohort: stage k maximises the sum of the k smallest utilities over 0 and 1.

    Returns
    -------
    Handles
        ``marginals``, shape ``(n,)``; ``utilities``, shape ``(m,)``.
    """
    if not problem.integer:
        raise DeclarationError("'milp' finds one cohort; declare the problem with integer=True")
    return _leximin(problem, model, "compact")


@LeximaxCohort.formulation("enumeration", exact=True, cites=f"{_HENZINGER}, section 3", rank="published")
def enumeration(problem: LeximaxCohort, model: Model) -> Handles:
    """The paper's linear programs with the sums over all ``2**m - 1`` subsets as rows; for 14 groups at most.

    Returns
    -------
    Handles
        ``marginals``, shape ``(n,)``; ``utilities`` and ``sums`` (of the 1, 2, ... smallest), shape ``(m,)``.
    """
    _of_marginals(problem, "enumeration")
    m = problem.utilities.shape[1]
    if m > _MOST_GROUPS:
        raise DeclarationError(
            f"'enumeration' writes 2**{m} - 1 rows for {m} groups; for more than {_MOST_GROUPS} use 'cuts'"
        )
    x, u = write_choice(problem, model)
    unit = problem.unit
    sums = model.variable(model.unused_name("sum"), m)
    for k in range(1, m + 1):
        members = np.zeros((comb(m, k), m))
        for row, subset in enumerate(combinations(range(m), k)):
            members[row, list(subset)] = 1.0
        model.subject_to(members @ (u / unit) >= sums[k - 1], name=model.unused_name(f"subsets of {k}"))
    goal = lexicographic([maximize(sums[k]) for k in range(m)], tolerance=GAP)
    handles = _handles(problem, x, u, goal, unit)
    handles.sums = sums * unit
    return handles


@LeximaxCohort.formulation(
    "maximin", guarantee=lambda _: 0.0, cites="the first stage alone", rank="published"
)
def maximin(problem: LeximaxCohort, model: Model) -> Handles:
    """The baseline: only the smallest utility counts. Its other levels may be anything.

    Returns
    -------
    Handles
        ``marginals``, shape ``(n,)``; ``utilities``, shape ``(m,)``.
    """
    x, u = write_choice(problem, model)
    unit = problem.unit
    return _handles(problem, x, u, (u / unit).min(), unit)
