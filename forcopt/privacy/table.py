"""Private tables: who is protected, which rows count, and the queries of a table."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any, get_args

import numpy as np

from forcopt.arrays import Array, check_label_order
from forcopt.errors import DeclarationError, check_choice, require, required
from forcopt.privacy.amplification import ClusterSample, Design, StratifiedSample
from forcopt.privacy.amplification.design import Population
from forcopt.privacy.losses import Neighbours
from forcopt.privacy.queries import Axis, Mean, Quantile, Query, Rows, Total, View
from forcopt.privacy.randomness import Randomness
from forcopt.privacy.schema import Bounded, Categories, Schema, as_number, text_of

FIRST = " first row of a unit with too many"
"""The name of a mark beside the columns, which no column of a schema is likely to have."""


class Table:
    """A table of persons, or of other units, that is released through queries alone.

    Parameters
    ----------
    frame : DataFrame or mapping
        The rows. Columns outside of the schema are not read.
    schema : Schema
        The public description of the columns.
    unit : str, optional
        The column that names the unit, such as a person, whom a row is about. Without it every row is a unit.
    rows_per_unit : int, default 1
        At most so many rows of a unit count, its first ones; `truncated` counts the units with more. Rows
        without a name are of one unit.
    neighbours : {"add_remove", "substitute"}, default "add_remove"
        Whether neighbouring tables differ by a unit with all of its rows, or in the rows of one unit. Under
        ``"substitute"`` the number of units is public.
    design : Design, optional
        Each release looks at a fresh sample of the units, which amplifies its privacy: its numbers are those
        of the sample. Rows without a category in the design's column are never sampled.
    population : optional
        For `ClusterSample` alone: public bounds on the numbers of units of the clusters, by which its loss
        rises. The profile holds only if they are right. Other designs need none.

    Raises
    ------
    DeclarationError
        For a column that is missing, series with the same labels in another order, a number of rows below 1,
        and a design that does not fit.

    Notes
    -----
    Each value is brought into the bounds and categories of the schema by itself; nothing is refused for a
    value, since a refusal would tell that it is there. Read a file as text, ``pandas.read_csv(path,
    dtype=str)``: else one cell decides how pandas reads all others of its column, such as 01 and 1.

    Examples
    --------
    >>> from forcopt.privacy import Bounded, Categories, DiscreteGaussian, Ledger, Schema, Simulated, ZCDP
    >>> schema = Schema(age=Bounded(0, 110), income=Bounded(0, 100_000), sex=Categories("f", "m"))
    >>> people = {"age": [17, 30, 41], "income": [0, 900, 2e9], "sex": ["f", "f", "m"]}
    >>> table = Table(people, schema)
    >>> query = table.where("age >= 18").group_by("sex").sum("income")
    >>> query.sensitivity.l2, query.neighbours
    (100000.0, 'add_remove')
    >>> release = (query >> DiscreteGaussian.calibrated(ZCDP(0.1))).release(Ledger(ZCDP(0.5)), Simulated(1))
    >>> release.simulated, release.to_pandas().index.tolist()
    (True, ['f', 'm'])
    """

    def __init__(
        self,
        frame: Any,
        schema: Schema,
        *,
        unit: str | None = None,
        rows_per_unit: int = 1,
        neighbours: Neighbours = "add_remove",
        design: Design | None = None,
        population: Population = None,
    ) -> None:
        require(isinstance(schema, Schema), "schema", schema, "be a Schema")
        check_choice("neighbours", neighbours, *get_args(Neighbours))
        if isinstance(rows_per_unit, bool) or not isinstance(rows_per_unit, int) or rows_per_unit < 1:
            raise DeclarationError(f"rows_per_unit is {rows_per_unit!r}; it must be a whole number from 1 up")
        names = [*schema, *([] if unit is None else [unit])]
        for name in names:
            if name not in frame:
                raise DeclarationError(f"column {name!r} is not in the table")
        check_label_order("Table", {f"frame[{name!r}]": frame[name] for name in names})
        view = View(schema, unit, rows_per_unit, neighbours, design, population)
        _check_design(view)
        self._rows, self._units = _read(frame, view)
        if population is None and neighbours == "substitute":
            view = replace(view, population=int(self._units.max(initial=-1)) + 1)
        self._view = view

    # -- what to look at -------------------------------------------------------------------------------------

    def where(self, condition: str) -> Table:
        """The rows for which a condition holds.

        Parameters
        ----------
        condition : str
            Comparisons of columns with constants, joined by ``and``, ``or`` and ``not``, such as
            ``"18 <= age < 65 and sex in ('f', 'x')"``. A comparison with a missing value is unknown, and so
            is its negation; ``and`` and ``or`` are those of Kleene (1952). Rows for which the whole condition
            is unknown are left out.

        Raises
        ------
        DeclarationError
            For another expression, a column that is not in the schema, a value outside of its categories, and
            a number between the steps of a column that is to equal it.
        """
        view = self._view
        _holds(condition, view.schema, {name: np.empty(0) for name in view.schema})
        return self._with(replace(view, conditions=(*view.conditions, condition)))

    def group_by(self, *columns: str) -> Table:
        """The table in groups: all combinations of the categories of these columns, also without rows."""
        for name in columns:
            if not isinstance(self._view.schema[name], Categories):
                raise DeclarationError(f"group_by: {name!r} has no categories; take histogram for its values")
        if len(set(columns)) < len(columns) or self._view.keys:
            raise DeclarationError(f"group_by names {', '.join(columns)}; name all columns once, in one call")
        return self._with(replace(self._view, keys=columns))

    def _with(self, view: View) -> Table:
        made = copy(self)
        made._view = view
        return made

    # -- queries ---------------------------------------------------------------------------------------------

    def count(self) -> Query:
        """How many rows each group has."""
        return self._query(Total(self._view, "count", (self._keys,)))

    def truncated(self) -> Query:
        """How many units have more than `rows_per_unit` rows, of which the further ones do not count."""
        view = replace(self._view, conditions=(), keys=(), rows_per_unit=1)
        return self._query(Total(view, "units with too many rows", ((),), FIRST, values=False))

    def sum(self, column: str) -> Query:
        """The sum of a column in each group."""
        self._bounded(column)
        return self._query(Total(self._view, f"sum of {column}", (self._keys,), column))

    def mean(self, column: str) -> Query:
        """The mean of a column in each group: a sum and a count, which share the budget."""
        self._bounded(column)
        return self._query(Mean(self._view, f"mean of {column}", self._keys, column))

    def quantile(self, column: str, q: float = 0.5, candidates: int = 1001) -> Query:
        """A quantile of a column in each group, among evenly spaced values between its bounds.

        Take ``query >> ExponentialMechanism.calibrated(PureDP(1.0))``.
        """
        self._bounded(column)
        return self._query(
            Quantile(self._view, f"quantile {q:g} of {column}", self._keys, column, q, candidates)
        )

    def histogram(self, column: str, edges: Sequence[float]) -> Query:
        """How many rows of each group have a value from one edge up to, but without, the next."""
        bounded = self._bounded(column)
        steps = np.array([bounded.steps(float(edge)) for edge in edges])
        if len(steps) < 2 or not (np.diff(steps) > 0).all():
            raise DeclarationError(f"edges are {list(edges)}; they must be at least two numbers that rise")
        axis = Axis(column, tuple(f"[{a:g}, {b:g})" for a, b in pairwise(edges)), steps)
        return self._query(Total(self._view, f"histogram of {column}", ((*self._keys, axis),)))

    def marginals(self, *columns: str, order: int = 1) -> Query:
        """The counts of all combinations of `order` of these columns of categories, besides the groups."""
        if not 1 <= order <= len(set(columns)) == len(columns) or set(columns) & set(self._view.keys):
            raise DeclarationError(
                f"marginals of order {order} of {', '.join(columns)}: these must be different, and no groups"
            )
        chosen = [(*self._keys, *map(self._axis, names)) for names in combinations(columns, order)]
        return self._query(Total(self._view, f"marginals of order {order}", tuple(chosen)))

    def linear(self, workload: Any, names: Sequence[str] | None = None) -> Query:
        """Weighted sums of the counts of the groups.

        Parameters
        ----------
        workload : array_like
            Shape ``(sums, groups)``; the last column of `group_by` is the fastest. At most 2^20 in size;
            whole for whole noise.
        names : sequence of str, optional
            Of the sums.
        """
        return self._query(Total.linear(self._view, self._keys, workload, names))

    @property
    def _keys(self) -> tuple[Axis, ...]:
        return tuple(map(self._axis, self._view.keys))

    def _axis(self, name: str) -> Axis:
        column = self._view.schema[name]
        if not isinstance(column, Categories):
            raise DeclarationError(f"column {name!r} has no categories")
        return Axis(name, column.values)

    def _bounded(self, name: str) -> Bounded:
        column = self._view.schema[name]
        if not isinstance(column, Bounded):
            raise DeclarationError(f"column {name!r} has categories; it must be Bounded")
        return column

    def _query(self, statistic: Any) -> Query:
        return Query(statistic, self._with(statistic.view))

    # -- rows ------------------------------------------------------------------------------------------------

    def _drawn(self, rng: Randomness) -> Rows:
        """The rows that a release looks at, by column: of a fresh sample, if there is a design."""
        view, rows = self._view, self._rows
        if view.design is not None:
            taken = self._sampled(view.design, rng.generator())
            rows = {name: values[taken] for name, values in rows.items()}
        for condition in view.conditions:
            held = _holds(condition, view.schema, rows)
            rows = {name: values[held] for name, values in rows.items()}
        return rows

    def _sampled(self, design: Design, generator: np.random.Generator) -> Array:
        import pandas as pd

        by = getattr(design, "by", None)
        if by is None:
            count = int(self._units.max(initial=-1)) + 1
            return np.isin(self._units, design.take(pd.DataFrame(index=range(count)), generator)[0])
        column, codes = self._view.schema[by], self._rows[by]
        assert isinstance(column, Categories)
        names = np.array([str(value) for value in column.values], dtype=object)
        known = ~np.isnan(codes)
        if isinstance(design, ClusterSample):
            known[known] = np.isin(names[codes[known].astype(int)], design.names)
        at = np.flatnonzero(known)
        return np.sort(at[design.take(pd.DataFrame({by: names[codes[at].astype(int)]}), generator)[0]])

    def __len__(self) -> int:
        raise DeclarationError("the number of rows is private; release table.count()")

    def __repr__(self) -> str:
        return f"<Table of {self._view}>"


def _read(frame: Any, view: View) -> tuple[dict[str, Array], Array]:
    """The rows that count, by column, and the unit of each, numbered from 0."""
    pd = required("pandas", "a Table")

    read = {name: column.read(frame[name]) for name, column in view.schema.items()}
    if len(lengths := {len(values) for values in read.values()}) > 1:
        raise DeclarationError("the columns have different numbers of values")
    units = np.arange(lengths.pop())
    if view.unit is not None:
        names = [text_of(name) for name in frame[view.unit]]
        units = pd.factorize(np.array(names, dtype=object), use_na_sentinel=False)[0]
    place = pd.Series(units).groupby(units).cumcount().to_numpy()
    read[FIRST] = np.where((place == 0) & (np.bincount(units)[units] > view.rows_per_unit), 1.0, np.nan)
    kept = place < view.rows_per_unit
    return {name: values[kept] for name, values in read.items()}, units[kept]


def _check_design(view: View) -> None:
    design, kind, by = view.design, type(view.design).__name__, getattr(view.design, "by", None)
    own = view.neighbours
    relation = own if design is None else design.neighbours
    rules = {
        f"population is {view.population!r}; only ClusterSample takes it: the table counts its units, or "
        "protects their number": view.population is not None and not isinstance(design, ClusterSample),
        f"design: {kind} protects a substitution within a stratum, so that each person's stratum would be "
        f"public, and the table protects {own!r}; take ProportionalAllocation or "
        "SimpleRandomSample": isinstance(design, StratifiedSample),
        f"design: {kind} protects {relation!r}, the table {own!r}; they must be the same": relation != own,
        f"design: {kind} needs names, those of all clusters": design is not None and design.reads_names,
        f"design: {kind} samples by {by!r}, which must be a column of categories": by is not None
        and not isinstance(view.schema[by], Categories),
        f"design: {kind} samples rows by {by!r}, so rows_per_unit must be 1": by is not None
        and view.rows_per_unit > 1,
    }
    if broken := [rule for rule, fails in rules.items() if fails]:
        raise DeclarationError(broken[0])


_ORDER = {ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal}
_TURNED = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
_TURNED |= {ast.Eq: ast.Eq, ast.NotEq: ast.NotEq}


def _holds(condition: str, schema: Schema, rows: Mapping[str, Array]) -> Array:
    """For which rows a condition holds; a function of each row alone, unlike what `DataFrame.eval` allows."""

    def refusal(node: ast.AST | None = None) -> DeclarationError:
        part = "" if node is None else f" at {ast.unparse(node)!r}"
        return DeclarationError(
            f"the condition {condition!r} is not understood{part}; compare columns with constants, joined by "
            "and, or, not"
        )

    def compared(left: ast.expr, op: ast.cmpop, right: ast.expr) -> Array:
        kind = type(op)
        if not isinstance(left, ast.Name):
            left, right, kind = right, left, _TURNED.get(kind, ast.Is)
        if not isinstance(left, ast.Name):
            raise refusal(left)
        try:
            value = ast.literal_eval(right)
        except ValueError:
            raise refusal(right) from None
        column, values, several = schema[left.id], rows[left.id], kind in (ast.In, ast.NotIn)
        if several != isinstance(value, list | tuple | set):
            raise refusal(right)
        ordered, absent = kind in _ORDER, kind in (ast.NotIn, ast.NotEq)
        wanted = [_constant(left.id, column, one, not ordered) for one in (value if several else [value])]
        if not (isinstance(column, Bounded) if ordered else absent or kind in (ast.In, ast.Eq)):
            raise refusal(right)
        held = _ORDER[kind](values, wanted) if ordered else np.isin(values, wanted, invert=absent)
        return np.where(np.isnan(values), 0.5, held)  # 1 is true, 0 false, a half unknown

    def mask(node: ast.AST) -> Array:
        if isinstance(node, ast.BoolOp):
            join = np.minimum if isinstance(node.op, ast.And) else np.maximum
            return np.asarray(join.reduce([mask(part) for part in node.values]))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return np.asarray(1.0 - mask(node.operand))
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            pairs = zip(sides, node.ops, sides[1:], strict=False)
            return np.asarray(np.minimum.reduce([compared(*pair) for pair in pairs]))
        raise refusal(node)

    try:
        tree = ast.parse(condition, mode="eval")
    except (SyntaxError, TypeError, ValueError):
        raise refusal() from None
    return np.asarray(mask(tree.body) == 1.0)


def _constant(name: str, column: Any, value: Any, equal: bool) -> float:
    if isinstance(column, Categories):
        if np.isnan(place := column.place(value)):
            known = ", ".join(map(repr, column.values))
            raise DeclarationError(f"column {name!r} has no category {value!r}; it has {known}")
        return place
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DeclarationError(f"column {name!r} is compared with {value!r}; it must be a number")
    steps = float(column.steps(as_number(value)))
    if equal and steps != np.rint(steps):
        rule = f"its values are rounded to multiples of {column.step:g}, so that none equals it"
        raise DeclarationError(f"column {name!r} is compared with {value!r}; {rule}")
    return steps
