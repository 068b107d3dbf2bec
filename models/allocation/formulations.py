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

        Without the rows of `order` the binaries may overstate it: each costs less than the one before, so
        that only an objective or limit that presses on the variance spares a stratum's last records first.
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


def _write(problem: Strata, model: Model, low: Array, high: Array, order: bool, whole: bool = True) -> Spared:
    """The records between two sizes, with rows for their `order` in a stratum; fractions if not `whole`."""
    if not problem.integer:
        raise DeclarationError("integer is False; method milp has whole sizes only. Use neyman")
    count = (high - low).astype(np.int64)
    stratum = np.repeat(np.arange(len(low)), count)
    rank = low[stratum] + np.arange(len(stratum)) - np.repeat(np.cumsum(count) - count, count) + 1
    spared = model.variable(model.unused_name("spared"), len(stratum), lower=0, upper=1, integer=whole)
    records = Spared(problem, high.astype(float), stratum, rank.astype(float), spared)
    if order:
        pairs = np.flatnonzero(stratum[1:] == stratum[:-1])
        model.subject_to(spared[pairs] <= spared[pairs + 1], name=model.unused_name("order"))
    for name, (costs, limit) in problem.named_limits.items():
        most = limit if (costs == np.round(costs)).all() else limit * (1 + ROUNDING)  # whole sums are exact
        unit = 1.0 if limit >= 1.0 else 2.0 ** np.floor(np.log2(limit))  # tolerances are absolute
        model.subject_to((costs / unit @ records.sizes).sum() <= most / unit, name=model.unused_name(name))
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
def milp(problem: StratifiedAllocation, model: Model, reduce: bool = True, all_rows: bool = False) -> Handles:
    """A binary for each record; the relaxation has a whole optimum if all records cost the same.

    Parameters
    ----------
    reduce : bool, default True
        Write only the records that the Lagrangian bound leaves open: few, however large the strata are.
        Otherwise there are as many binaries as records, or `sample_size` for each stratum.
    all_rows : bool, default False
        Also write the rows that the problem's own objective never presses against, so that ``variances`` are
        those of the sizes in any model.

    Returns
    -------
    Handles
        ``sizes``, shape ``(k,)``; ``variances``, shape ``(V,)``.
    """
    low, high, found = problem.floors, _reachable(problem), None
    weights = problem.variable_weights
    if reduce and problem.criterion == "weighted":
        filled = least_reciprocals(problem.gains, low, high, problem.limits())
        # without them the solver finds that there is no allocation
        found = filled and allocation_windows(problem.gains, low, high, problem.limits(), filled)
    elif reduce:
        found = leximax_windows(problem)
    low, high = found or (low, high)
    records = _write(problem, model, low, high, all_rows)
    if len(records.rank):  # a record's gain counts about 1, so that solvers' tolerances are small
        each = (problem.coefficients @ weights)[records.stratum] / (records.rank * (records.rank - 1))
        unit = float(np.median(each[each > 0])) if (each > 0).any() else 1.0
    else:
        unit = float(problem.variances(records.high) @ weights) or 1.0
    losses = records.variances * weights
    scaled = losses * (1 / unit)
    return Handles(
        objective=scaled.sum() if problem.criterion == "weighted" else leximax(scaled),
        decision=records.decision,
        premise=_WINDOWS if found else "",
        start=records.start,
        unit=unit,
        sizes=records.sizes,
        variances=losses * (1 / weights),
    )


@PrecisionAllocation.formulation("milp", exact=True, cites="Bethel (1989); a binary a record")
def precise_milp(
    problem: PrecisionAllocation, model: Model, reduce: bool = True, all_rows: bool = False
) -> Handles:
    """A binary for each record, and a row for each variable's variance.

    Only those records have a binary that the Lagrangian bound leaves open.

    Parameters
    ----------
    reduce : bool, default True
        Write only the records that the Lagrangian bound leaves open.
    all_rows : bool, default False
        Also write the rows that the problem's own objective never presses against, so that ``variances`` are
        those of the sizes in any model.

    Returns
    -------
    Handles
        ``sizes``, shape ``(k,)``; ``variances``, shape ``(V,)``.
    """
    costs, targets = problem.unit_costs, problem.targets
    narrow = reduce and not problem.infeasibility_reason()
    low, high = precision_windows(problem) if narrow else (problem.floors, problem.caps)
    records = _write(problem, model, low, high, all_rows)
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
        decision=lambda s: problem.allocation(whole_and_precise(problem, records.decision(s).sizes)),
        premise=_WINDOWS if narrow else "",
        start=records.start,
        sizes=records.sizes,
        variances=records.variances,
    )


@PrivateAllocation.formulation("milp", exact=True, cites="Bun et al. (2022), equation (5); a binary a record")
def private_milp(problem: PrivateAllocation, model: Model, all_rows: bool = False) -> Handles:
    """The program without privacy, with rows that keep the squared noise scale above each stratum's need.

    That square falls ever less with each record, as the variance does. So a stratum's records are spared in
    order, and only its size must be whole.

    Parameters
    ----------
    all_rows : bool, default False
        Also write the rows that the problem's own objective never presses against, so that ``variance`` and
        ``squared_scale`` are those of the sizes in any model.

    Returns
    -------
    Handles
        ``sizes``, shape ``(k,)``; ``variance`` of the sample and ``squared_scale`` of the noise.
    """
    low, high = problem.floors, _reachable(problem)
    records = _write(problem, model, low, high, all_rows, all_rows or int((high - low).sum()) <= _FEW)
    sizes = model.variable(model.unused_name("sizes"), len(low), lower=low, upper=high, integer=True)
    model.subject_to(records.sizes == sizes, name=model.unused_name("sum_of_increments"))
    needs = problem.scales(records.rank, records.stratum) ** 2
    rises = problem.scales(records.rank - 1, records.stratum) ** 2 - needs
    unit = float(problem.scales(low.astype(float)).max()) ** 2
    squared = model.variable(model.unused_name("squared_scale"), lower=0)
    least = problem.scales(records.high) ** 2 / unit + records.by_stratum(rises / unit)
    model.subject_to(squared >= least, name=model.unused_name("noise"))
    if all_rows:  # the square is the need of some stratum; all are at most 1
        largest = model.variable(model.unused_name("largest"), len(low), binary=True)
        model.subject_to(largest.sum() == 1, squared <= least + 1 - largest, name=model.unused_name("need"))
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
