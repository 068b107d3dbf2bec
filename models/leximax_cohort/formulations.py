"""The leximax cohort as a linear or mixed-integer program, by leximin's methods; and every cohort."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice
from math import comb

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.language.expression import Expression
from forcopt.language.model import Model
from forcopt.language.objective import Objective, SortedMethod, leximin, maximize, minimize
from forcopt.language.variable import Variable
from forcopt.models.leximax_cohort.objectives import welfare
from forcopt.models.leximax_cohort.problem import LeximaxCohort
from forcopt.problem import Handles

_HENZINGER = "Henzinger, Peale, Reingold and Shen (2022)"
_OGRYCZAK = "Ogryczak and Śliwiński (2006)"


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


def only_leximin(problem: LeximaxCohort) -> None:
    """Refuse another objective.

    Raises
    ------
    DeclarationError
        Naming the method that takes it.
    """
    if problem.objective != "leximin":
        wanted = problem.choose_method()
        raise DeclarationError(f"objective is {problem.objective!r}; this is for 'leximin': use {wanted!r}")


def _leximin(problem: LeximaxCohort, model: Model, method: SortedMethod) -> Handles:
    only_leximin(problem)
    x, u = write_choice(problem, model)
    whole = bool((problem.utilities == np.round(problem.utilities)).all())
    unit = 1.0 if method == "ordered-values" and whole else problem.unit
    return _handles(problem, x, u, leximin(u / unit, method), unit)


@LeximaxCohort.formulation("saturation", exact=True, cites="Potters and Tijs (1992); Balan et al. (2008)")
def saturation(problem: LeximaxCohort, model: Model) -> Handles:
    """Raise a common floor, fix the groups that cannot rise, go on: at most m linear programs of m rows.

    Returns
    -------
    Handles
        ``marginals``, shape ``(n,)``; ``utilities``, shape ``(m,)``.
    """
    if problem.integer:
        raise DeclarationError("integer=True asks for a cohort, 'saturation' finds marginals: use 'compact'")
    return _leximin(problem, model, "saturation")


@LeximaxCohort.formulation("compact", exact=True, cites=f"{_OGRYCZAK}; {_HENZINGER}, Appendix D")
def compact(problem: LeximaxCohort, model: Model) -> Handles:
    """Stage k maximises the sum of the k smallest utilities, by its dual: O(m²) rows.

    The default of one cohort (``integer=True``).

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


def goal(problem: LeximaxCohort, model: Model, utilities: Expression, counts: Array) -> Objective:
    """The objective over utilities in the problem's unit, each of which `counts` groups have.

    Raises
    ------
    DeclarationError
        For the objective ``"uniform"``, which is not of the utilities.
    """
    if problem.objective == "uniform":
        raise DeclarationError("objective 'uniform' is of the lottery, not of the marginals: use 'uniform'")
    if problem.objective == "leximin":
        return leximin(utilities)
    centre = model.variable(model.unused_name("centre")) if problem.objective == "variance" else None
    found = welfare(problem.objective, utilities, counts, problem.weight, problem.even, centre)
    return minimize(found) if problem.sense == "min" else maximize(found)


@LeximaxCohort.formulation("convex-program", exact=True, cites="Baharav and Flanigan (2024)")
def convex_program(problem: LeximaxCohort, model: Model) -> Handles:
    """Every objective of the utilities as one convex program over the marginals, or over one cohort.

    Exact as a lottery where the marginals within the rows are means of lotteries
    (`LeximaxCohort.mixes`). Linear for maximin, minimax and linear objectives; quadratic for the variance;
    conic for Nash welfare, Goldilocks and entropy.

    Returns
    -------
    Handles
        ``marginals``, shape ``(n,)``; ``utilities``, shape ``(m,)``.
    """
    if problem.objective == "leximin":
        raise DeclarationError("objective is 'leximin', a lexicographic one: use 'saturation' or 'compact'")
    x, u = write_choice(problem, model)
    counted = u[problem.counted] / problem.unit
    return _handles(problem, x, u, goal(problem, model, counted, np.ones(len(problem.counted))), problem.unit)


_MOST = 5_000_000
_BATCH = 50_000


def all_cohorts(problem: LeximaxCohort) -> Iterator[Array]:
    """Give all cohorts that meet the demands, in batches of rows of 0 and 1.

    Raises
    ------
    DeclarationError
        If there are more than 5,000,000 of the size, or it is no whole number.
    """
    n, k = len(problem.utilities), round(problem.size)
    if not problem.is_whole:
        raise DeclarationError(f"size is {problem.size:g}; cohorts need a whole number")
    if comb(n, k) > _MOST:
        raise DeclarationError(f"{comb(n, k)} cohorts are too many to look at; at most {_MOST}")
    (lower, upper), classes = problem.bounds, problem.classes
    members = combinations(range(n), k)
    while batch := list(islice(members, _BATCH)):
        rows = np.zeros((len(batch), n))
        np.put_along_axis(rows, np.array(batch), 1.0, axis=1)
        counts = rows @ classes.members.T
        good = ((rows >= lower) & (rows <= upper)).all(axis=1)
        good &= ((counts >= classes.least) & (counts <= classes.most)).all(axis=1)
        good &= (rows @ problem.household_rows.T <= 1).all(axis=1)
        yield rows[good]
