"""The decision: the number of sampled records of each stratum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from forcopt.arrays import Array, FrozenArrays, as_numbers, by_label, check_shape, labels_of, refuse_missing
from forcopt.data.intake import Expected, Fixes, take_table
from forcopt.declaration import Integers, Name, Numbers
from forcopt.errors import DeclarationError, require
from forcopt.models.allocation.tolerances import SUM
from forcopt.numeric import Filled, Limit
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Problem
from forcopt.problem.drawing import Sketch

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from forcopt.loops.certify import Certificate
    from forcopt.models.allocation.private import AllocationLoss


MOST_SHOWN = 20


@dataclass(frozen=True, eq=False)
class Allocation(FrozenArrays):
    """Sizes of the samples within strata.

    Attributes
    ----------
    sizes : Array
        The number of sampled records, shape ``(k,)``; integers unless fractions are allowed.
    names : tuple[str, ...]
        Of the strata.
    strata : Array
        The number of records, shape ``(k,)``.
    variances : Array
        Of the estimated mean of each variable, shape ``(V,)``.
    variance : float
        The weighted sum of `variances`.
    design_effect : float, optional
        `variance` over that of a simple random sample of the same size; None if the means of the strata are
        not known, or the sample is a census.
    noise_scale : float, optional
        Of the Laplace noise that privacy needs; None without privacy.

    Examples
    --------
    >>> from forcopt.models import StratifiedAllocation
    >>> p = StratifiedAllocation(sizes=[100, 50, 50], deviations=[1, 4, 2], sample_size=40)
    >>> found = p.solve().decision
    >>> found.sizes.tolist(), found.size, found.rates.tolist()
    ([10.0, 20.0, 10.0], 40.0, [0.1, 0.4, 0.2])
    >>> print(found)
    stratum    records     sample    rate
    0              100         10  0.1000
    1               50         20  0.4000
    2               50         10  0.2000
    40 records, variance 0.0725
    """

    sizes: Array
    names: tuple[str, ...] = field(repr=False)
    strata: Array = field(repr=False)
    variances: Array
    variance: float
    design_effect: float | None = None
    noise_scale: float | None = None

    @property
    def size(self) -> float:
        """The total number of sampled records."""
        return float(self.sizes.sum())

    @property
    def rates(self) -> Array:
        """The share of each stratum that is sampled, shape ``(k,)``."""
        return np.asarray(self.sizes / self.strata)

    def issued(self, response_rates: Any) -> Array:
        """Give the number of records to draw in each stratum, so that the expected respondents are the sizes.

        Parameters
        ----------
        response_rates : array_like
            Above 0 and at most 1; a number for all strata, or for each.

        Returns
        -------
        Array
            Whole numbers, shape ``(k,)``. For the least variance at a cost for each record that is drawn,
            declare the problem with ``costs / response_rates``, which is the cost of a respondent.

        Raises
        ------
        DeclarationError
            For rates out of range, or a stratum with too few records; it names the stratum.
        """
        rates = np.broadcast_to(as_numbers(response_rates, "response_rates"), self.sizes.shape)
        if (rates <= 0).any() or (rates > 1).any():
            raise DeclarationError("response_rates must be above 0 and at most 1")
        needed = np.ceil(self.sizes / rates * (1 - SUM))
        if (needed > self.strata).any():
            at = int(np.argmax(needed - self.strata))
            raise DeclarationError(
                f"stratum {self.names[at]} has {self.strata[at]} records; {needed[at]:g} must be drawn for "
                f"{self.sizes[at]:g} respondents"
            )
        return np.asarray(needed, dtype=np.int64)

    def by_stratum(self) -> dict[str, int]:
        """The sizes by name, as `forcopt.privacy.StratifiedSample` takes them.

        Raises
        ------
        ValueError
            For sizes that are not whole.
        """
        if (self.sizes != np.round(self.sizes)).any():
            raise ValueError("the sizes are not whole; solve with integer=True to draw a sample")
        return dict(zip(self.names, map(int, self.sizes), strict=True))

    def __repr__(self) -> str:
        width = max(len("stratum"), *map(len, self.names))
        lines = [f"{'stratum':{width}}    records     sample    rate"]
        for i in range(min(len(self.names), MOST_SHOWN)):
            size = f"{self.sizes[i]:10.10g}" if self.sizes[i] % 1 == 0 else f"{self.sizes[i]:10.4f}"
            lines.append(f"{self.names[i]:{width}} {self.strata[i]:10d} {size} {self.rates[i]:7.4f}")
        if len(self.names) > MOST_SHOWN:
            lines.append(f"... and {len(self.names) - MOST_SHOWN} more")
        lines.append(f"{self.size:.10g} records, variance {self.variance:.6g}")
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """Draw the sampled records of each stratum, with the number of its records beside the bar.

        Parameters
        ----------
        path : str or Path, optional
            The file to save the picture to; its ending gives the format.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; a new figure if left out.
        """
        title = f"{self.size:,.10g} of {self.strata.sum():,} records are sampled"
        of = [f"{m:,.10g} of {n:,}" for m, n in zip(self.sizes, self.strata.tolist(), strict=True)]
        return Sketch(title, self.sizes, self.names, unit="sampled records", labels=of).plot(path, ax=ax)


Amount = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]


class Strata(Problem):
    """A population in strata, with a simple random sample from each.

    The mean of a variable is estimated by the mean over the strata's samples, weighted by the strata's sizes.
    Its variance is ``sum_i (N_i / N)^2 S_i^2 (1 / m_i - 1 / N_i)``, exactly.

    Attributes
    ----------
    sizes : Integers
        The number of records of each stratum, N, at least 1; shape ``(k,)``.
    deviations : Numbers
        The standard deviation of the variable within each stratum, S, with N - 1 in the denominator; shape
        ``(k,)``, or ``(k, V)`` for V variables. Ignored where N is 1.
    minimum : Integers, default 1
        The least sample of each stratum: a number from 1 for all strata, or a number for each. A
        stratum with fewer records is sampled completely.
    maximum : Integers, optional
        The largest sample of each stratum, at least `minimum`: a number for all, or for each. By default
        all records.
    integer : bool, default True
        Whether sample sizes are integers; otherwise they may be fractions, as for expected sizes.
    means : Numbers, optional
        Of the variables in each stratum, shaped like `deviations`; only for the design effect.
    names : tuple[str, ...], optional
        Of the strata; by default the labels of `sizes` or `deviations`, or ``"0"``, ``"1"``, ...
    """

    family: ClassVar[str] = "allocation"
    default_method: ClassVar[str] = "milp"
    reason_first: ClassVar[bool] = True

    sizes: Integers
    deviations: Numbers
    minimum: Integers = Field(default=1, validate_default=True)
    maximum: Integers | None = None
    integer: bool = True
    means: Numbers | None = None
    names: tuple[Name, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _take_labels(cls, fields: Any) -> Any:
        labels = labels_of(fields.get("sizes"), fields.get("deviations"))
        return {"names": labels, **fields} if labels else fields

    @model_validator(mode="after")
    def _strata_fit(self) -> Self:
        k = len(self.sizes) if self.sizes.ndim == 1 else 0
        if not k or (self.sizes < 1).any():
            raise DeclarationError("sizes must be a list of at least one number, each at least 1")
        shape = self.deviations.shape
        fits = len(shape) in (1, 2) and shape[0] == k and self.deviations.size
        require(fits, "deviations: the shape", shape, f"be ({k},) or ({k}, V), one row for each stratum")
        if (self.deviations < 0).any():
            at = int(np.argwhere(self.deviations < 0)[0][0])
            raise DeclarationError(f"deviations of stratum {at} are negative; they must be at least 0")
        if self.minimum.shape not in ((), (k,)) or (self.minimum < 1).any():
            raise DeclarationError(
                f"minimum is {self.minimum.tolist()}; it must be at least 1, for all strata or for each: "
                "without a record, the stratum's mean cannot be estimated"
            )
        most = self.maximum
        if most is not None and (most.shape not in ((), (k,)) or (most < self.floors).any()):
            raise DeclarationError(
                f"maximum is {most.tolist()}; it must be at least minimum (or all records, where "
                "there are fewer), for all strata or for each"
            )
        if self.means is not None and (shape := self.means.shape) != self.deviations.shape:
            raise DeclarationError(f"means: the shape is {shape}; it must equal the shape of deviations")
        if self.names and (len(self.names) != k or len(set(self.names)) < k):
            raise DeclarationError(f"names: there must be {k}, all different")
        return self

    # -- from tables -----------------------------------------------------------------------------------------

    @classmethod
    def from_table(
        cls,
        table: DataFrame | str | Path,
        *,
        stratum: str | None = None,
        size: str = "size",
        deviation: str | Sequence[str] = "deviation",
        mean: str | Sequence[str] | None = None,
        cost: str | None = None,
        fixes: Fixes | None = None,
        **fields: Any,
    ) -> Self:
        """Read a table with one row for each stratum, named by its index or a column.

        Parameters
        ----------
        table : DataFrame, str or Path
            A frame, or a file.
        stratum : str, optional
            The column of names; the cells then are checked by `forcopt.data.check_table`. A file needs it.
        size, deviation, mean, cost
            Its columns; several deviations and means for several variables.
        fixes : mapping, optional
            Stated changes of a table with `stratum`, see `forcopt.data.check_table`.
        fields : Any
            Of the problem.

        Raises
        ------
        DeclarationError
            For a column that is missing, or misses a value.
        """
        if stratum is not None:
            others = [deviation, mean or (), cost or ()]
            numbers = [name for part in others for name in ([part] if isinstance(part, str) else part)]
            schema = dict.fromkeys(numbers, Expected("number", lower=0.0))
            schema |= {stratum: Expected("key"), size: Expected("count", lower=1.0)}
            table = take_table(table, "table", schema, fixes).set_index(stratum)
        if isinstance(table, str | Path):
            raise DeclarationError(f"{table} needs stratum, the column with the names of the strata")
        if cost is not None:
            fields["costs"] = _column(table, cost)
        if mean is not None:
            fields["means"] = _columns(table, mean)
        sizes, deviations = _column(table, size), _columns(table, deviation)
        return cls(sizes=sizes, deviations=deviations, names=tuple(map(str, table.index)), **fields)

    @classmethod
    def from_records(cls, records: DataFrame, by: str, values: str | Sequence[str], **fields: Any) -> Self:
        """Compute the strata of a table of records: an earlier census, a frame, or a pilot survey.

        Parameters
        ----------
        records : DataFrame
            A pandas DataFrame, one row for each record.
        by : str
            The column that names the stratum.
        values : str | Sequence[str]
            The column, or columns, whose means are to be estimated.
        fields : Any
            Of the problem.

        Raises
        ------
        DeclarationError
            For a column that does not exist, a missing stratum or value, and values that are not numbers.

        Examples
        --------
        >>> import pandas as pd
        >>> from forcopt.models import StratifiedAllocation
        >>> farms = pd.DataFrame({"type": list("aaaabbb"), "area": [1, 2, 3, 4, 10, 20, 60]})
        >>> p = StratifiedAllocation.from_records(farms, by="type", values="area", sample_size=4)
        >>> p.sizes.tolist(), p.deviations.round(3).tolist(), p.solve().decision.by_stratum()
        ([4, 3], [1.291, 26.458], {'a': 1, 'b': 3})
        """
        columns = [values] if isinstance(values, str) else list(values)
        _column(records, by)
        for column in columns:
            as_numbers(_column(records, column), f"column {column!r}")
        groups = records.groupby(by, observed=True)[columns]
        spread = groups.std().fillna(0.0)  # of a single record
        flat = 0 if isinstance(values, str) else slice(None)
        return cls(
            sizes=groups.size().to_numpy(),
            deviations=spread.to_numpy(dtype=float)[:, flat],
            means=groups.mean().to_numpy(dtype=float)[:, flat],
            names=tuple(map(str, spread.index)),
            **fields,
        )

    # -- derived from the strata -----------------------------------------------------------------------------

    @property
    def population(self) -> int:
        """The number of records, N."""
        return int(self.sizes.sum())

    @property
    def floors(self) -> Array:
        """The least size of each sample, shape ``(k,)``."""
        return np.minimum(self.minimum, self.sizes)

    @property
    def caps(self) -> Array:
        """The largest size of each sample, shape ``(k,)``."""
        return self.sizes if self.maximum is None else np.minimum(self.maximum, self.sizes)

    @property
    def stratum_names(self) -> tuple[str, ...]:
        """`names`, or numbers."""
        return self.names or tuple(map(str, range(len(self.sizes))))

    @property
    def coefficients(self) -> Array:
        """``(N_i S_i / N)^2``, the factor of ``1 / m_i`` in each variable's variance; shape ``(k, V)``."""
        spread = np.where(self.sizes > 1, self.deviations.T, 0.0).T.reshape(len(self.sizes), -1)
        return np.asarray((self.sizes[:, None] / self.population * spread) ** 2)

    @property
    def constant(self) -> Array:
        """The excess of the variances by `coefficients` over the true ones, because samples are drawn without
        replacement; shape ``(V,)``."""
        return np.asarray((self.coefficients / self.sizes[:, None]).sum(axis=0))

    @property
    def variable_weights(self) -> Array:
        """The weight of each variable's variance, shape ``(V,)``."""
        return np.ones(self.coefficients.shape[1])

    def variances(self, sizes: Any) -> Array:
        """The variance of the estimated mean of each variable, shape ``(V,)``."""
        with np.errstate(divide="ignore", invalid="ignore"):
            each = self.coefficients * (1.0 / sizes - 1.0 / self.sizes)[:, None]
        return np.asarray(np.where(self.coefficients > 0, each, 0.0).sum(axis=0))

    @property
    def named_limits(self) -> dict[str, Limit]:
        """The limits on the cost of the sizes, by field; several budgets are numbered."""
        return {}

    def limits(self) -> list[Limit]:
        """The limits on the cost of the sizes."""
        return list(self.named_limits.values())

    def infeasibility_reason(self) -> str:
        """Name a limit that the minimums violate, and the least sufficient one; empty if they satisfy all."""
        for subject, (costs, limit) in self.named_limits.items():
            least = float(costs @ self.floors)
            if least > limit + FEASIBILITY_TOLERANCE * min(1.0, limit):
                return f"the minimum of all strata needs {least:g}; {subject} is {limit:g}"
        return ""

    def privacy_loss(
        self, epsilon: float, allocation: Allocation | Any | str, **options: Any
    ) -> AllocationLoss:
        """Give the privacy loss of an epsilon-private mechanism on the sample, at the worst neighbor.

        Parameters
        ----------
        epsilon : float
            The loss of the mechanism on its sample, above 0.
        allocation : Allocation, array_like or str
            Public sizes; or the name of a method, whose sizes follow from the data and so depend on each
            record.
        options : Any
            Of the method.

        Returns
        -------
        AllocationLoss
            For public sizes the exact loss for the substitution of a record, ``log(1 + m / N (e^epsilon -
            1))`` in the stratum with the largest rate. For a method, bounds for adding or removing a record:
            the method runs once for each of these neighbors.

        Raises
        ------
        DeclarationError
            For sizes that are not whole or beyond the strata, or a method that finds no allocation.

        References
        ----------
        Bun et al. (2022), Theorem 2 and section 4.1.

        Examples
        --------
        >>> from forcopt.models import StratifiedAllocation
        >>> p = StratifiedAllocation(sizes=[100, 50], deviations=[1, 4], sample_size=30)
        >>> worst = p.privacy_loss(1.0, [10, 20])
        >>> worst.stratum, round(worst.loss.exact, 4)
        ('1', 0.5231)
        >>> p.privacy_loss(0.1, "greedy").change
        1
        """
        from forcopt.models.allocation.private import allocation_loss

        return allocation_loss(self, epsilon, allocation, **options)

    def read_sizes(self, decision: Allocation | Any) -> Array:
        """The sizes of an allocation, or themselves, shape ``(k,)``; a mapping or series goes by stratum.

        Raises
        ------
        DeclarationError
            For another shape, a label that is no stratum, or entries that are no numbers.
        """
        given = decision.sizes if isinstance(decision, Allocation) else decision
        m = as_numbers(by_label(given, self.stratum_names, "the sizes"), "the sizes").astype(float)
        check_shape(m, self.sizes.shape, "the sizes")
        return m

    def allocation(self, decision: Allocation | Any) -> Allocation:
        """The decision with these sizes, shape ``(k,)``."""
        m = self.read_sizes(decision)
        variances = self.variances(m)
        variance = float(self.variable_weights @ variances)
        return Allocation(
            sizes=m.copy(),
            names=self.stratum_names,
            strata=self.sizes,
            variances=variances,
            variance=variance,
            design_effect=self._design_effect(variance, float(m.sum())),
        )

    def _design_effect(self, variance: float, size: float) -> float | None:
        n = self.population
        if self.means is None or not 0 < size < n:
            return None
        share = self.sizes / n
        means = self.means.reshape(len(self.sizes), -1)
        between = share @ (means - share @ means) ** 2
        squares = self.deviations.reshape(means.shape) ** 2
        within = ((self.sizes - 1) / n) @ np.where(self.sizes[:, None] > 1, squares, 0.0)
        simple = (1 / size - 1 / n) * (between + within) * n / (n - 1)
        total = float(self.variable_weights @ simple)
        return variance / total if total > 0 else None

    def _violations(self, sizes: Array) -> dict[str, float]:
        found = {
            "minimum": float((self.floors - sizes).max()),
            "stratum": float((sizes - self.sizes).max()),
            "maximum": 0.0 if self.maximum is None else float((sizes - self.caps).max()),
            "whole sizes": float(np.abs(sizes - np.round(sizes)).max()) if self.integer else 0.0,
        }
        for name, (costs, limit) in self.named_limits.items():
            over = float(costs @ sizes) - limit
            found[name] = over / min(1.0, limit) if over > FEASIBILITY_TOLERANCE * limit else 0.0
        return {name: v for name, v in found.items() if v > FEASIBILITY_TOLERANCE}


class StratifiedAllocation(Strata):
    """Choose the sample size of each stratum, for the least variance of the estimated mean.

    Attributes
    ----------
    sample_size : float, optional
        The largest total sample; None if only the budget limits it.
    costs : Numbers, optional
        Of sampling one record of each stratum, above 0; shape ``(k,)``, or ``(k, B)`` for B budgets, such as
        money and interviewers' hours.
    budget : float or tuple[float, ...], optional
        The largest total cost of the sample, or of each kind of cost.
    weights : Numbers, optional
        The weight of each variable's variance, above 0; shape ``(V,)``, 1 by default.
    criterion : Literal["weighted", "leximax"], default "weighted"
        ``"weighted"``, the sum of the weighted variances, or ``"leximax"``: the largest weighted variance as
        small as possible, then the next. The objective then is the largest.

    Raises
    ------
    DeclarationError
        For strata without records, negative deviations, or arrays that do not fit.

    References
    ----------
    Neyman (1934); with all else, Cochran, Sampling Techniques (1977), chapter 5.

    Notes
    -----
    The other fields are as in `Strata`.

    Examples
    --------
    >>> from forcopt.models import StratifiedAllocation
    >>> p = StratifiedAllocation(sizes=[100, 50, 50], deviations=[1, 4, 2], sample_size=40)
    >>> s = p.solve("greedy")
    >>> s.decision.sizes.tolist(), round(s.objective, 6), round(p.solve("proportional").objective, 6)
    ([10.0, 20.0, 10.0], 0.0725, 0.11)
    """

    sample_size: float | None = Field(default=None, gt=0.0, allow_inf_nan=False)
    costs: Numbers | None = None
    budget: Amount | tuple[Amount, ...] | None = None
    weights: Numbers | None = None
    criterion: Literal["weighted", "leximax"] = "weighted"

    @model_validator(mode="after")
    def _limits_fit(self) -> Self:
        k, variables = self.coefficients.shape
        if self.sample_size is None and self.budget is None:
            raise DeclarationError("neither sample_size nor budget is given; one must limit the sample")
        if (self.costs is None) != (self.budget is None):
            raise DeclarationError("costs and budget go together; only one of them is given")
        if self.costs is not None:
            shape = (k, len(self.budget)) if isinstance(self.budget, tuple) else (k,)
            if self.costs.shape != shape or (self.costs <= 0).any() or not self.costs.size:
                raise DeclarationError(
                    f"costs must be numbers above 0 of shape {shape}, one for each stratum and budget"
                )
        if self.weights is not None and (self.weights.shape != (variables,) or (self.weights <= 0).any()):
            raise DeclarationError(f"weights must be {variables} numbers above 0, one for each variable")
        if self.criterion == "leximax" and not self.integer:
            raise DeclarationError("integer is False; the criterion 'leximax' has whole sizes only")
        return self

    @property
    def variable_weights(self) -> Array:
        """The weight of each variable's variance, shape ``(V,)``."""
        return np.ones(self.coefficients.shape[1]) if self.weights is None else self.weights

    @property
    def gains(self) -> Array:
        """The factor of ``1 / m_i`` in the objective, all variables together; shape ``(k,)``.

        Raises
        ------
        DeclarationError
            Under the leximax criterion, which has no such number.
        """
        if self.criterion != "weighted":
            raise DeclarationError(
                "criterion is 'leximax'; this method minimizes a weighted sum. The method for leximax is milp"
            )
        return np.asarray(self.coefficients @ self.variable_weights)

    @property
    def named_limits(self) -> dict[str, Limit]:
        """The limits on records, and on money; several budgets are numbered."""
        size, budget = self.sample_size, self.budget
        found = {} if size is None else {"sample_size": (np.ones(len(self.sizes)), size)}
        if self.costs is None or budget is None:
            return found
        if not isinstance(budget, tuple):
            return found | {"budget": (self.costs, budget)}
        return found | {f"budget {b}": (self.costs[:, b], budget[b]) for b in range(len(budget))}

    def variance_bound(self, filled: Filled) -> float:
        """The continuous optimum of the weighted variance; its bound by the multipliers of many limits."""
        value = self.evaluate(filled.sizes).objective
        if len(self.limits()) <= 2:
            return value
        constant = float(self.constant @ self.variable_weights)
        return min(value, filled.bound(self.gains, self.floors, self.caps) - constant)

    def certify(self, decision: Any, method: str | None = None, **options: Any) -> Certificate:
        """As for any problem; by default with all records, and so without any assumption."""
        if method is None and self.integer:
            method, options = "milp", {"reduce": False, **options}
        return super().certify(decision, method, **options)

    def evaluate(self, decision: Allocation | Any) -> Evaluation:
        """Evaluate the variances of an allocation.

        Parameters
        ----------
        decision : Allocation or Any
            An allocation, or its sizes: an array in the order of the strata, or a mapping or series by name.

        Returns
        -------
        Evaluation
            The objective; violations ``"minimum"``, ``"stratum"`` (more than there are), ``"maximum"``,
            ``"whole sizes"``, ``"sample_size"`` and ``"budget"`` (relative to a limit below 1); as metrics
            the sample's size, its cost, the variances and the design effect, where they are known.
        """
        chosen = self.allocation(decision)
        weighted = self.variable_weights * chosen.variances
        metrics = {"sample size": chosen.size}
        if self.costs is not None:
            spent = np.atleast_1d(chosen.sizes @ self.costs).tolist()
            several = isinstance(self.budget, tuple)
            metrics |= {f"cost {b}" if several else "cost": value for b, value in enumerate(spent)}
        if len(weighted) > 1:
            metrics |= {f"variance {v}": float(x) for v, x in enumerate(chosen.variances)}
        if chosen.design_effect is not None:
            metrics["design effect"] = chosen.design_effect
        value = weighted.max() if self.criterion == "leximax" else weighted.sum()
        return Evaluation(float(value), self._violations(chosen.sizes), metrics)


def _column(table: DataFrame, name: str) -> Array:
    if (count := (columns := list(table.columns)).count(name)) != 1:
        raise DeclarationError(f"the table has {count} columns {name!r}, not one; they are {columns}")
    refuse_missing(table, name)
    return np.asarray(table[name])


def _columns(table: DataFrame, names: str | Sequence[str]) -> Array:
    if isinstance(names, str):
        return _column(table, names)
    return np.column_stack([_column(table, name) for name in names])
