"""Apportionment: populations, seats, the measure that the seats minimise, and the decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import numpy as np
from pydantic import Field, model_validator

from forcopt.arrays import Array, FrozenArrays, as_numbers, by_label, check_entries, check_shape, labels_of
from forcopt.declaration import Integers, Name, Numbers
from forcopt.errors import DeclarationError, require, require_shape, required
from forcopt.numeric.apportionment import DivisorMethod, signpost
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Method, Problem
from forcopt.problem.drawing import Sketch

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


def check_counts(counts: Array, name: str) -> None:
    """Check that counts form a list of numbers >= 0 with a positive sum.

    Parameters
    ----------
    counts : Array
        Finite numbers.
    name : str
        The field, for messages.

    Raises
    ------
    DeclarationError
        With the field, the value and the rule.

    Examples
    --------
    >>> check_counts(np.array([3.0, -1.0]), "populations")
    Traceback (most recent call last):
    forcopt.errors.DeclarationError: populations[1] is -1; it must be at least 0
    """
    require_shape(counts.ndim == 1 and counts.size, f"{name} has", counts, "be a list of at least one number")
    check_entries(counts, counts < 0, name, "it must be at least 0")
    if not counts.any():
        raise DeclarationError(f"{name} is 0 everywhere; one number must be above 0")


_SHOWN = 60


@dataclass(frozen=True, eq=False)
class Seats(FrozenArrays):
    """Seats by state.

    Attributes
    ----------
    seats : Array
        Whole numbers, shape ``(k,)``.
    names : tuple[str, ...]
        Of the states.
    quotas : Array
        The proportional share of each state, shape ``(k,)``.
    tied : tuple[str, ...]
        States with equal claims to the last seat, of which some went without; empty if there is no tie.

    Examples
    --------
    >>> from forcopt.models import Apportionment
    >>> seats = Apportionment([3, 3], seats=3, names=("A", "B")).solve().decision
    >>> seats.seats.tolist(), seats.deviations.tolist(), seats.tied
    ([2, 1], [0.5, -0.5], ('A', 'B'))
    """

    seats: Array
    names: tuple[str, ...] = field(repr=False)
    quotas: Array = field(repr=False)
    tied: tuple[str, ...] = ()

    @property
    def deviations(self) -> Array:
        """Seats less quota, shape ``(k,)``."""
        return np.asarray(self.seats - self.quotas)

    def table(self) -> DataFrame:
        """One row for each state: seats, quota, deviation."""
        pd = required("pandas", "a table of seats")

        columns = {"seats": self.seats, "quota": self.quotas, "deviation": self.deviations}
        return pd.DataFrame(columns, index=list(self.names))

    def __repr__(self) -> str:
        width = max(5, *map(len, self.names))
        lines = [f"{'state':{width}}  seats      quota"]
        for name, s, q in list(zip(self.names, self.seats, self.quotas, strict=True))[:_SHOWN]:
            lines.append(f"{name:{width}} {s:6.10g} {q:10.4f}")
        if len(self.names) > _SHOWN:
            lines.append(f"... and {len(self.names) - _SHOWN} more")
        lines.append(f"{self.seats.sum():.10g} seats")
        if self.tied:
            lines.append(f"equal claims to the last seat: {', '.join(self.tied)}")
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """Draw seats and quotas by state.

        Parameters
        ----------
        path : str or Path, optional
            The file to save the picture to; its ending gives the format.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; a new figure if left out.
        """
        order = np.argsort(-self.quotas, kind="stable")[:_SHOWN].tolist()
        names, seats = [self.names[i] for i in order], self.seats[order]
        labels = [f"{n:.10g} for {self.quotas[i]:.2f}" for n, i in zip(seats, order, strict=True)]
        title = f"{names[0]} has {seats[0]:.10g} of {self.seats.sum():.10g} seats"
        return Sketch(title, seats, names, unit="seats, for quotas", labels=labels).plot(path, ax=ax)


Criterion = Literal["hill", "webster", "jefferson", "adams", "dean", "total", "minimax", "range", "leximax"]
"""The objective of the seats: the measure of a divisor method, or one of the deviations from quotas."""

DIVISORS = get_args(DivisorMethod)


class Apportionment(Problem):
    """Divide whole seats among states in proportion to their populations.

    With the quotas ``q_i = seats * p_i / sum(p)``, the seats s minimise one of these measures:

    =============  =======================================================================
    ``hill``       ``sum (s - q)^2 / s``, as divisor method of Huntington and Hill
    ``webster``    ``sum (s - q)^2 / q``, as Webster and Sainte-Lague
    ``jefferson``  ``sum (s + 1/2 - q)^2 / q``, as Jefferson and D'Hondt
    ``adams``      ``sum (s - 1/2 - q)^2 / q``, as Adams
    ``dean``       ``sum_i sum_(j < s_i) (d(j) / q_i - 1)``, d the harmonic mean of j and j + 1, as Dean
    ``total``      ``sum |s - q|``
    ``minimax``    the largest ``|s - q|``
    ``leximax``    the largest ``|s - q|``, then the next one, and so on
    ``range``      the largest less the smallest ``s / q``
    =============  =======================================================================

    Attributes
    ----------
    populations : Numbers
        At least 0, not all 0; shape ``(k,)``. Floats are taken as the exact numbers that they are.
    seats : int
        In all, at least 1.
    minimum : Integers, default 1
        The least seats of a state, one number for all or one for each. Under `hill`, `adams` and `dean`
        a state with people has one seat at least.
    criterion : Criterion, default "hill"
        See above.
    quota : Literal["lower", "upper", "both"], optional
        Whether each state must get its quota rounded down at least (``"lower"``), rounded up at most
        (``"upper"``), or both.
    names : tuple[str, ...], optional
        Of the states; by default the labels of `populations`, or ``"0"``, ``"1"``, ...

    Raises
    ------
    DeclarationError
        Naming the field, the value and the rule.

    Notes
    -----
    A state without people gets its minimum, even above its upper quota of 0, and no more. Equal claims go to
    the larger state, then to the earlier one, and the decision names the states concerned. Without `quota`,
    whole seats that minimise the measure of a divisor method are those of the method (Balinski and Young
    2001, appendix A).

    The rule that Pujol et al. study rounds each quota and so hands out another number of seats; see the
    method ``as-printed``.

    References
    ----------
    Huntington: The apportionment of representatives in Congress. Transactions of the AMS 30, 1928.
    Balinski, Young: Fair Representation, 2nd edition, 2001.
    Pujol, McKenna, Kuppam, Hay, Machanavajjhala, Miklau: Fair decision making using privacy-protected data.
    FAT* 2020, Table 3.

    Examples
    --------
    >>> from forcopt.models import Apportionment
    >>> p = Apportionment([9061, 7179, 5259, 3319, 1182], seats=26, criterion="hill")
    >>> p.solve().decision.seats.tolist()
    [9, 7, 6, 3, 1]
    >>> p.replace(criterion="total").solve().decision.seats.tolist()
    [9, 7, 5, 4, 1]
    """

    family: ClassVar[str] = "decisions"
    default_method: ClassVar[str] = "divisor"

    populations: Numbers
    seats: int = Field(ge=1)
    minimum: Integers = Field(default=1, validate_default=True)
    criterion: Criterion = "hill"
    quota: Literal["lower", "upper", "both"] | None = None
    names: tuple[Name, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _take_labels(cls, fields: Any) -> Any:
        labels = labels_of(fields.get("populations"))
        return {"names": labels, **fields} if labels else fields

    @model_validator(mode="after")
    def _fits(self) -> Self:
        p = self.populations
        check_counts(p, "populations")
        fits = self.minimum.shape in ((), p.shape) and (self.minimum >= 0).all()
        require(fits, "minimum", self.minimum.tolist(), f"be at least 0, one number or {len(p)}")
        if self.names and (len(self.names) != len(p) or len(set(self.names)) < len(p)):
            raise DeclarationError(f"names: there must be {len(p)}, all different")
        return self

    @classmethod
    def from_table(
        cls,
        table: DataFrame,
        seats: int,
        *,
        population: str = "population",
        name: str = "state",
        **fields: Any,
    ) -> Self:
        """Declare an apportionment with one row for each state.

        Parameters
        ----------
        table : DataFrame
            Its columns `population` and `name` are read.
        seats : int
            In all.
        population, name : str
            Columns.
        fields : Any
            Other fields.
        """
        for column in (population, name):
            if column not in table.columns:
                raise DeclarationError(f"there is no column {column!r}; there are {', '.join(table.columns)}")
        return cls(populations=table[population].to_numpy(), seats=seats, names=tuple(table[name]), **fields)

    # -- derived from the fields -------------------------------------------------------------------------

    @property
    def state_names(self) -> tuple[str, ...]:
        """`names`, or numbers."""
        return self.names or tuple(map(str, range(len(self.populations))))

    @cached_property
    def quotas(self) -> Array:
        """``seats * p / sum(p)``, shape ``(k,)``."""
        return np.asarray(self.populations * (self.seats / fsum(self.populations.tolist())))

    @cached_property
    def exact_populations(self) -> list[Fraction]:
        """The populations as fractions."""
        return [Fraction(x) for x in self.populations.tolist()]

    @cached_property
    def exact_quotas(self) -> list[Fraction]:
        """The quotas as fractions."""
        scale = Fraction(self.seats) / sum(self.exact_populations)
        return [p * scale for p in self.exact_populations]

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """The least and the most seats, two arrays of shape ``(k,)``; they may contradict each other."""
        some = self.populations > 0
        low = np.broadcast_to(self.minimum, some.shape).copy()
        if self.criterion in ("hill", "adams", "dean"):
            low[some] = np.maximum(low[some], 1)
        high = np.where(some, np.maximum(low, self.seats), low)
        if self.quota in ("lower", "both"):
            low = np.maximum(low, [int(q // 1) for q in self.exact_quotas])
        if self.quota in ("upper", "both"):
            high = np.minimum(high, np.where(some, [int(-(-q // 1)) for q in self.exact_quotas], low))
        return low, high

    def infeasibility_reason(self) -> str:
        """Describe demands that contradict each other; empty if none do.

        Examples
        --------
        >>> from forcopt.models import Apportionment
        >>> Apportionment([5, 5, 5], seats=2).infeasibility_reason()
        'seats is 2; the minimums of 3 states need 3'
        """
        low, high = self.bounds
        if (low > high).any():
            at = int(np.argmax(low > high))
            return (
                f"state {self.state_names[at]} must have at least {low[at]} seats; its upper quota is "
                f"{high[at]} (quota {self.quotas[at]:.6g})"
            )
        if int(low.sum()) > self.seats:
            held = "minimums and lower quotas" if self.quota in ("lower", "both") else "minimums"
            above = low - self.quotas
            state = self.state_names[int(np.argmax(above))]
            most = f"; state {state} gets {above.max():.4g} more than its quota" if self.quota else ""
            return f"seats is {self.seats}; the {held} of {len(low)} states need {int(low.sum())}{most}"
        return ""

    def method(self, name: str | None = None) -> Method:
        """Give a method by name; by default the fast exact one of the criterion."""
        fitting = {"range": "milp"} | dict.fromkeys(("total", "minimax", "leximax"), "greedy")
        return super().method(name or fitting.get(self.criterion, "divisor"))

    # -- judging ---------------------------------------------------------------------------------------------

    def allocation(self, seats: Any, tied: tuple[int, ...] = ()) -> Seats:
        """The decision with these seats, shape ``(k,)``; and the positions of states with equal claims."""
        names = self.state_names
        return Seats(np.array(seats), names, self.quotas.copy(), tuple(names[i] for i in tied))

    def read(self, decision: Seats | Any) -> Array:
        """The seats of a decision, shape ``(k,)``; a mapping or series goes by state.

        Raises
        ------
        DeclarationError
            For another shape, a label that is no state, or entries that are no numbers.
        """
        given = decision.seats if isinstance(decision, Seats) else decision
        s = as_numbers(by_label(given, self.state_names, "the seats"), "the seats")
        check_shape(s, self.populations.shape, "the seats")
        return s

    def measure(self, seats: Any) -> float:
        """The criterion's measure of seats; infinite for no seat where it needs one."""
        some = self.populations > 0
        s, q = np.asarray(seats, dtype=float), self.quotas
        deviations = np.abs(s - q)
        match self.criterion:
            case "total":
                return float(deviations.sum())
            case "minimax" | "leximax":
                return float(deviations.max())
            case "range":
                ratios = s[some] / q[some]
                return float(ratios.max() - ratios.min())
        s, q = s[some], q[some]
        if self.criterion in ("hill", "adams", "dean") and (s < 1).any():
            return float("inf")
        match self.criterion:
            case "hill":
                return float(((s - q) ** 2 / s).sum())
            case "dean":
                steps = signpost(np.arange(max(1, int(s.max()))), "dean")
                sums = np.concatenate([[0.0], np.cumsum(steps)])
                return float((sums[s.astype(int)] / q - s).sum())
        shift = {"webster": 0.0, "jefferson": 0.5, "adams": -0.5}[self.criterion]
        return float(((s + shift - q) ** 2 / q).sum())

    def evaluate(self, decision: Seats | Any) -> Evaluation:
        """Evaluate seats by the criterion.

        Parameters
        ----------
        decision : Seats or Any
            Seats of shape ``(k,)``, or a mapping or series of seats by state.

        Returns
        -------
        Evaluation
            The measure; violations ``"seats"`` (too many or too few in all), ``"whole seats"``,
            ``"minimum"`` and ``"maximum"`` (with the quotas, and no more than the minimum without people);
            as metrics the mean and the largest deviation from the quotas, and the range and the quotient of
            the ratios ``s / q``.
        """
        s = self.read(decision)
        low, high = self.bounds
        found = {
            "seats": abs(float(s.sum()) - self.seats),
            "whole seats": float(np.abs(s - np.round(s)).max()),
            "minimum": float((low - s).max()),
            "maximum": float((s - high).max()),
        }
        some = self.populations > 0
        ratios = s[some] / self.quotas[some]
        deviations = np.abs(s - self.quotas)
        metrics = {
            "mean deviation": float(deviations.mean()),
            "largest deviation": float(deviations.max()),
            "range of ratios": float(ratios.max() - ratios.min()),
        }
        if ratios.min() > 0:
            metrics["quotient of ratios"] = float(ratios.max() / ratios.min())
        violations = {name: v for name, v in found.items() if v > FEASIBILITY_TOLERANCE}
        return Evaluation(self.measure(s), violations, metrics)
