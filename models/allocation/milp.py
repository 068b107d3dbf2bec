"""The mixed-integer linear programs: a binary for each record that a stratum's sample may have more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.language.expression import Expression
from forcopt.language.model import Model, Variable
from forcopt.language.objective import leximax
from forcopt.loops.solution import ModelSolution
from forcopt.models.allocation.decision import Allocation
from forcopt.models.allocation.precision import PrecisionAllocation
from forcopt.models.allocation.private import PrivateAllocation
from forcopt.models.allocation.problem import ROUNDING, Strata, StratifiedAllocation
from forcopt.models.allocation.rounding import whole_and_precise
from forcopt.models.allocation.windows import allocation_windows, precision_windows, private_windows
from forcopt.numeric import least_reciprocals
from forcopt.problem import Handles

__all__ = ["milp", "precise_milp", "private_milp"]


_WINDOWS = "the Lagrangian bound, computed in floating point, leaves no other sizes open"

_FEW = 200
"""Up to this many records the private program has a binary for each; cbc errs on fractions of records."""


@dataclass(frozen=True, eq=False)
class Increments:
    """Sizes as a sum of binaries, ``low + takes`` of each stratum's.

    Attributes
    ----------
    low : Array
        The least sizes, shape ``(k,)``.
    stratum, rank : Array
        Of each binary: it is the `rank`-th record of its stratum's sample.
    takes : Variable
        The binaries.
    """

    low: Array
    stratum: Array
    rank: Array
    takes: Variable

    @property
    def sizes(self) -> Expression:
        """The sizes as expressions, shape ``(k,)``."""
        shape = (len(self.low), len(self.stratum))
        rows = sp.csr_array((np.ones(shape[1]), (self.stratum, np.arange(shape[1]))), shape=shape)
        out: Expression = rows @ self.takes + self.low
        return out

    def inverse(self, coefficients: Array) -> Expression:
        """``coefficients.T @ (1 / sizes)``, shape ``(V,)``, for coefficients of shape ``(k, V)``.

        The binaries of a stratum need no order: each is worth less than the one before.
        """
        worth = coefficients[self.stratum] / (self.rank * (self.rank - 1.0))[:, None]
        out: Expression = (coefficients / self.low[:, None]).sum(axis=0) - worth.T @ self.takes
        return out


def _write(problem: Strata, model: Model, low: Array, high: Array, ordered: bool = False) -> Increments:
    """The increments between two sizes; as fractions, if `ordered` and their sums are whole."""
    if not problem.integer:
        raise DeclarationError("integer is False; method milp has whole sizes only. Use misocp or neyman")
    count = (high - low).astype(np.int64)
    stratum = np.repeat(np.arange(len(low)), count)
    rank = low[stratum] + np.arange(len(stratum)) - np.repeat(np.cumsum(count) - count, count) + 1
    takes = model.variable(model.unused_name("takes"), len(stratum), lower=0, upper=1, integer=not ordered)
    increments = Increments(low.astype(float), stratum, rank.astype(float), takes)
    limits = problem.limits()
    if limits:
        sizes = increments.sizes
        for (costs, limit), name in zip(limits, problem.limit_names, strict=True):
            whole = (costs == np.round(costs)).all()  # sums of these are exact
            most = limit if whole else limit * (1 + ROUNDING)
            model.subject_to((costs @ sizes).sum() <= most, name=model.unused_name(name))
    return increments


def _reachable(problem: Strata) -> Array:
    """Caps that leave every other stratum its minimum."""
    caps, floors = problem.sizes.astype(float), problem.floors
    for costs, limit in problem.limits():
        room = floors + np.floor((limit * (1 + ROUNDING) - costs @ floors) / costs)
        caps = np.maximum(np.minimum(caps, room), floors)
    return caps


def _start(problem: Strata, increments: Increments, decision: Allocation | Any) -> dict[Variable, Array]:
    """The binaries at these sizes.

    Raises
    ------
    DeclarationError
        For sizes that no values of the binaries give.
    """
    sizes = problem.read_sizes(decision)
    takes = increments.rank <= sizes[increments.stratum]
    wrong = increments.low + np.bincount(increments.stratum, takes, len(increments.low)) != sizes
    if wrong.any():
        at = int(np.argmax(wrong))
        least, most = increments.low[at], increments.low[at] + (increments.stratum == at).sum()
        raise DeclarationError(
            f"the sample of {problem.stratum_names[at]} has {sizes[at]:g} records; the binaries are for "
            f"{least:g} to {most:g}"
        )
    return {increments.takes: takes}


def _decision(problem: Strata, increments: Increments, result: ModelSolution) -> Allocation:
    extra = np.bincount(increments.stratum, np.round(result[increments.takes]), len(increments.low))
    return problem.allocation(increments.low + extra)


@StratifiedAllocation.formulation(
    "milp", exact=True, cites="Bun et al. (2022), equation (3); unary increments"
)
def milp(problem: StratifiedAllocation, model: Model, reduce: bool = True) -> Handles:
    """A binary for each record more; the relaxation has a whole optimum if all records cost the same.

    Parameters
    ----------
    problem : StratifiedAllocation
        Which.
    model : Model
        To write to.
    reduce : bool, default True
        For a weighted sum of variances, write only the records that the Lagrangian bound leaves open: few,
        however large the strata are. Otherwise there are as many binaries as records, or `sample_size` for
        each stratum.

    Returns
    -------
    Handles
        ``sizes``, shape ``(k,)``; ``variances``, shape ``(V,)``.
    """
    low, high = problem.floors, _reachable(problem)
    weights, unit, premise = problem.variable_weights, 1.0, ""
    if reduce and problem.criterion == "weighted":
        filled = least_reciprocals(problem.gains, low, high, problem.limits())
        if filled is not None:  # else the solver finds that there is no allocation
            low, high = allocation_windows(problem.gains, low, high, problem.limits(), filled)
            premise = _WINDOWS
    increments = _write(problem, model, low, high)
    if len(increments.rank):  # a record's gain counts about 1, so that solvers' tolerances are small
        each = (problem.coefficients @ weights)[increments.stratum] / (
            increments.rank * (increments.rank - 1)
        )
        unit = float(np.median(each[each > 0])) if (each > 0).any() else 1.0
    losses = (increments.inverse(problem.coefficients) - problem.constant) * weights
    return Handles(
        objective=(losses * (1 / unit)).sum()
        if problem.criterion == "weighted"
        else leximax(losses * (1 / unit)),
        decision=lambda result: _decision(problem, increments, result),
        premise=premise,
        start=lambda decision: _start(problem, increments, decision),
        unit=unit,
        sizes=increments.sizes,
        variances=losses * (1 / weights),
    )


@PrecisionAllocation.formulation("milp", exact=True, cites="Bethel (1989); unary increments")
def precise_milp(problem: PrecisionAllocation, model: Model, reduce: bool = True) -> Handles:
    """A binary for each record more, and a row for each variable's variance.

    Only those records have a binary that the Lagrangian bound leaves open.

    Returns
    -------
    Handles
        ``sizes``, shape ``(k,)``; ``variances``, shape ``(V,)``.
    """
    costs, room = problem.unit_costs, problem.targets + problem.constant
    low, high = precision_windows(problem) if reduce else (problem.floors, problem.sizes)
    increments = _write(problem, model, low, high)
    sums = increments.inverse(problem.coefficients)
    # In units of the target, as violations are measured; tolerances are absolute.
    unit = np.maximum(problem.targets, 1e-6 * room)
    exact = room + 1e-12 * problem.targets + 1e-15 * problem.constant  # sums round
    model.subject_to(sums * (1 / unit) <= exact / unit, name=model.unused_name("targets"))
    return Handles(
        objective=(increments.sizes * costs).sum(),
        decision=lambda result: problem.allocation(
            whole_and_precise(problem, _decision(problem, increments, result).sizes.copy())
        ),
        premise=_WINDOWS if reduce else "",
        start=lambda decision: _start(problem, increments, decision),
        sizes=increments.sizes,
        variances=sums - problem.constant,
    )


@PrivateAllocation.formulation("milp", exact=True, cites="Bun et al. (2022), equation (5); unary increments")
def private_milp(problem: PrivateAllocation, model: Model, reduce: bool = True) -> Handles:
    """The program without privacy, with rows that keep the squared noise scale above each stratum's need.

    That square falls ever less with each record, as the variance does. So a stratum's records are taken in
    order, and only its size must be whole. With `reduce`, only those records are written that the Lagrangian
    bound leaves open.

    Returns
    -------
    Handles
        ``sizes``, shape ``(k,)``; ``variance`` of the sample and ``squared_scale`` of the noise.
    """
    low, high, premise = problem.floors, _reachable(problem), ""
    if reduce and not problem.infeasibility_reason():
        low, high = private_windows(problem)
        premise = _WINDOWS
    increments = _write(problem, model, low, high, ordered=int((high - low).sum()) > _FEW)
    sizes = model.variable(model.unused_name("sizes"), len(low), lower=low, upper=high, integer=True)
    model.subject_to(increments.sizes == sizes, name=model.unused_name("sum_of_increments"))
    needs = problem.scales(increments.rank, increments.stratum) ** 2
    drops = problem.scales(increments.rank - 1, increments.stratum) ** 2 - needs
    first = problem.scales(increments.low) ** 2
    unit = float(first.max())
    squared = model.variable(model.unused_name("squared_scale"), lower=0)
    shape = (len(low), len(increments.stratum))
    rows = sp.csr_array((drops / unit, (increments.stratum, np.arange(shape[1]))), shape=shape)
    model.subject_to(squared + rows @ increments.takes >= first / unit, name=model.unused_name("noise"))
    variance = (increments.inverse(problem.coefficients) - problem.constant).sum()
    return Handles(
        objective=variance * (1 / unit) + 2 * squared,
        decision=lambda result: problem.allocation(np.round(result[sizes])),
        premise=premise,
        start=lambda decision: _start(problem, increments, decision) | {sizes: problem.read_sizes(decision)},
        unit=unit,
        sizes=sizes,
        variance=variance,
        squared_scale=squared * unit,
    )
