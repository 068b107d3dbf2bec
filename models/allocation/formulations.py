"""Programs: a binary for each record, or the reciprocals of sizes in rotated second-order cones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.language.expression import Expression
from forcopt.language.model import Model
from forcopt.language.objective import leximax
from forcopt.language.variable import Variable
from forcopt.loops.solution import ModelSolution
from forcopt.models.allocation.precision import PrecisionAllocation
from forcopt.models.allocation.private import PrivateAllocation
from forcopt.models.allocation.problem import Allocation, Strata, StratifiedAllocation
from forcopt.models.allocation.rounding import whole_and_precise
from forcopt.models.allocation.tolerances import PROVED, ROUNDING
from forcopt.models.allocation.windows import allocation_windows, leximax_windows, precision_windows
from forcopt.numeric import least_reciprocals
from forcopt.problem import Handles

_WINDOWS = "the Lagrangian bound, computed in floating point, leaves no other sizes open"

_FEW = 200
"""Up to this many records the private program has a binary for each; cbc errs on fractions of records."""


@dataclass(frozen=True, eq=False)
class Spared:
    """Sizes as the largest ones, less a sum of binaries.

    All terms of a variance are positive then, so that it keeps its relative accuracy near a census.

    Attributes
    ----------
    problem : Strata
        The strata.
    high : Array
        The largest sizes, shape ``(k,)``.
    stratum, rank : Array
        Of each binary: it is the `rank`-th record of its stratum's sample.
    spared : Variable
        The binaries: whether the sample lacks the record.
    """

    problem: Strata
    high: Array
    stratum: Array
    rank: Array
    spared: Variable

    def by_stratum(self, values: Array) -> Expression:
        """The sum of values of the spared records, shape ``(k,)``."""
        shape = (len(self.high), len(self.stratum))
        rows = sp.csr_array((values, (self.stratum, np.arange(shape[1]))), shape=shape)
        out: Expression = rows @ self.spared
        return out

    @property
    def sizes(self) -> Expression:
        """The sizes as expressions, shape ``(k,)``."""
        return self.by_stratum(-np.ones(len(self.stratum))) + self.high

    @property
    def variances(self) -> Expression:
        """The variance of each variable's estimated mean, shape ``(V,)``.

        The binaries of a stratum need no order: each costs less than the one before.
        """
        costs = self.problem.coefficients[self.stratum] / (self.rank * (self.rank - 1.0))[:, None]
        extra: Expression = sp.csr_array(costs.T) @ self.spared
        return extra + self.problem.variances(self.high)

    def start(self, decision: Allocation | Any) -> dict[Variable, Array]:
        """The binaries at these sizes.

        Raises
        ------
        DeclarationError
            For sizes that no values of the binaries give.
        """
        sizes = self.problem.read_sizes(decision)
        spared = self.rank > sizes[self.stratum]
        wrong = self.high - np.bincount(self.stratum, spared, len(self.high)) != sizes
        if wrong.any():
            at = int(np.argmax(wrong))
            most = self.high[at]
            raise DeclarationError(
                f"the sample of {self.problem.stratum_names[at]} has {sizes[at]:g} records; the binaries are "
                f"for {most - (self.stratum == at).sum():g} to {most:g}"
            )
        return {self.spared: spared}

    def decision(self, result: ModelSolution) -> Allocation:
        """The sizes of a solution."""
        fewer = np.bincount(self.stratum, np.round(result[self.spared]), len(self.high))
        return self.problem.allocation(self.high - fewer)


def _write(problem: Strata, model: Model, low: Array, high: Array, ordered: bool = False) -> Spared:
    """The records between two sizes; as fractions, if `ordered` and their sums are whole."""
    if not problem.integer:
        raise DeclarationError("integer is False; method milp has whole sizes only. Use neyman")
    count = (high - low).astype(np.int64)
    stratum = np.repeat(np.arange(len(low)), count)
    rank = low[stratum] + np.arange(len(stratum)) - np.repeat(np.cumsum(count) - count, count) + 1
    spared = model.variable(model.unused_name("spared"), len(stratum), lower=0, upper=1, integer=not ordered)
    records = Spared(problem, high.astype(float), stratum, rank.astype(float), spared)
    if problem.named_limits:
        sizes = records.sizes
        for name, (costs, limit) in problem.named_limits.items():
            whole = (costs == np.round(costs)).all()  # sums of these are exact
            most = limit if whole else limit * (1 + ROUNDING)
            unit = 1.0 if limit >= 1.0 else 2.0 ** np.floor(np.log2(limit))  # tolerances are absolute
            model.subject_to((costs / unit @ sizes).sum() <= most / unit, name=model.unused_name(name))
    return records


def _reachable(problem: Strata) -> Array:
    """Caps that leave every other stratum its minimum."""
    caps, floors = problem.caps.astype(float), problem.floors
    for costs, limit in problem.limits():
        room = floors + np.floor((limit * (1 + ROUNDING) - costs @ floors) / costs)
        caps = np.maximum(np.minimum(caps, room), floors)
    return caps


@StratifiedAllocation.formulation(
    "milp", exact=True, cites="Bun et al. (2022), equation (3); a binary a record"
)
def milp(problem: StratifiedAllocation, model: Model, reduce: bool = True) -> Handles:
    """A binary for each record; the relaxation has a whole optimum if all records cost the same.

    Parameters
    ----------
    reduce : bool, default True
        Write only the records that the Lagrangian bound leaves open: few, however large the strata are.
        Otherwise there are as many binaries as records, or `sample_size` for each stratum.

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
    elif reduce and (found := leximax_windows(problem)) is not None:
        low, high = found
        premise = _WINDOWS
    records = _write(problem, model, low, high)
    if len(records.rank):  # a record's gain counts about 1, so that solvers' tolerances are small
        each = (problem.coefficients @ weights)[records.stratum] / (records.rank * (records.rank - 1))
        unit = float(np.median(each[each > 0])) if (each > 0).any() else 1.0
    else:
        unit = float(problem.variances(records.high) @ weights) or 1.0
    losses = records.variances * weights
    return Handles(
        objective=(losses * (1 / unit)).sum()
        if problem.criterion == "weighted"
        else leximax(losses * (1 / unit)),
        decision=records.decision,
        premise=premise,
        start=records.start,
        unit=unit,
        sizes=records.sizes,
        variances=losses * (1 / weights),
    )


@PrecisionAllocation.formulation("milp", exact=True, cites="Bethel (1989); a binary a record")
def precise_milp(problem: PrecisionAllocation, model: Model, reduce: bool = True) -> Handles:
    """A binary for each record, and a row for each variable's variance.

    Only those records have a binary that the Lagrangian bound leaves open.

    Parameters
    ----------
    reduce : bool, default True
        Write only the records that the Lagrangian bound leaves open.

    Returns
    -------
    Handles
        ``sizes``, shape ``(k,)``; ``variances``, shape ``(V,)``.
    """
    costs, targets = problem.unit_costs, problem.targets
    low, high, premise = problem.floors, problem.caps, ""
    if reduce and not problem.infeasibility_reason():
        low, high = precision_windows(problem)
        premise = _WINDOWS
    records = _write(problem, model, low, high)
    # In units of the target, as violations are measured; tolerances are absolute.
    unit = np.maximum(targets, PROVED * (targets + problem.constant))
    within = records.variances * (1 / unit) <= problem.allowed / unit
    model.subject_to(within, name=model.unused_name("targets"))
    # Whole costs of ordinary size stay whole.
    typical = float(np.median(costs))
    price = 1.0 if 1e-2 <= typical <= 1e6 else float(2.0 ** np.round(np.log2(typical)))
    return Handles(
        objective=(records.sizes * (costs / price)).sum(),
        unit=price,
        decision=lambda result: problem.allocation(
            whole_and_precise(problem, records.decision(result).sizes.copy())
        ),
        premise=premise,
        start=records.start,
        sizes=records.sizes,
        variances=records.variances,
    )


@PrivateAllocation.formulation("milp", exact=True, cites="Bun et al. (2022), equation (5); a binary a record")
def private_milp(problem: PrivateAllocation, model: Model) -> Handles:
    """The program without privacy, with rows that keep the squared noise scale above each stratum's need.

    That square falls ever less with each record, as the variance does. So a stratum's records are spared in
    order, and only its size must be whole.

    Returns
    -------
    Handles
        ``sizes``, shape ``(k,)``; ``variance`` of the sample and ``squared_scale`` of the noise.
    """
    low, high = problem.floors, _reachable(problem)
    records = _write(problem, model, low, high, ordered=int((high - low).sum()) > _FEW)
    sizes = model.variable(model.unused_name("sizes"), len(low), lower=low, upper=high, integer=True)
    model.subject_to(records.sizes == sizes, name=model.unused_name("sum_of_increments"))
    needs = problem.scales(records.rank, records.stratum) ** 2
    rises = problem.scales(records.rank - 1, records.stratum) ** 2 - needs
    unit = float(problem.scales(low.astype(float)).max()) ** 2
    squared = model.variable(model.unused_name("squared_scale"), lower=0)
    least = problem.scales(records.high) ** 2 / unit + records.by_stratum(rises / unit)
    model.subject_to(squared >= least, name=model.unused_name("noise"))
    variance = records.variances.sum()
    return Handles(
        objective=variance * (1 / unit) + 2 * squared,
        decision=lambda result: problem.allocation(np.round(result[sizes])),
        start=lambda decision: records.start(decision) | {sizes: problem.read_sizes(decision)},
        unit=unit,
        sizes=sizes,
        variance=variance,
        squared_scale=squared * unit,
    )
