"""Sessions: an analyst asks queries, each after the last answers; the population's values are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array, Seed, as_numbers
from forcopt.errors import DeclarationError, require
from forcopt.models.adaptive_queries.bit_populations import BitPopulation, BitQuery, BitSample
from forcopt.models.adaptive_queries.data_models import DecayingCorrelation, NaiveComposition
from forcopt.models.adaptive_queries.plan import AccuracyPlan, Plan
from forcopt.models.adaptive_queries.schedule_methods import QueryRefusedError
from forcopt.numeric.range_loads import RangeLoads
from forcopt.privacy import Gaussian, Laplace
from forcopt.problem import Solution

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False)
class Query:
    """The mean of a function of one block.

    Attributes
    ----------
    block : int
        From 1.
    values : Array
        In [0, 1], of each possible row of the block, shape ``(rows,)``.
    """

    block: int
    values: Array = field(repr=False)

    def __post_init__(self) -> None:
        values = as_numbers(self.values, "values")
        if values.size and (values.min() < 0 or values.max() > 1):
            ends = f"{values.min():g} to {values.max():g}"
            raise DeclarationError(f"values of a query lie from {ends}; they must be in [0, 1]")
        object.__setattr__(self, "values", values)


@dataclass(frozen=True, eq=False)
class Population:
    """Independent blocks, each a list of possible rows with their probabilities.

    Attributes
    ----------
    rows : tuple[Array, ...]
        The possible rows of each block, shape ``(rows, columns)``.
    probabilities : tuple[Array, ...]
        Of these rows, shape ``(rows,)`` for each block.
    table : Array, optional
        Which of these rows each record of a real table has, shape ``(blocks, records)``.
    whole : bool, default False
        Samples draw whole records of the table. By default they draw each block by itself.
    """

    rows: tuple[Array, ...] = field(repr=False)
    probabilities: tuple[Array, ...] = field(repr=False)
    table: Array | None = field(default=None, repr=False)
    whole: bool = False

    @classmethod
    def blockwise(
        cls, frame: DataFrame, blocks: Sequence[Sequence[str]], *, whole: bool = False
    ) -> Population:
        """Rows of a real table, drawn for each block of columns by itself.

        Blocks then are exactly independent, correlations within them are real, and every mean is known.

        Parameters
        ----------
        frame : DataFrame
            A table.
        blocks : sequence of sequences of str
            The columns of each block.
        whole : bool, default False
            Draw whole rows of the table instead. The means are the same, but blocks depend on each other:
            the model of independent blocks is false.

        Raises
        ------
        DeclarationError
            For a column that is missing, or an empty table.

        Examples
        --------
        >>> import pandas as pd
        >>> table = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 1, 1], "c": [1, 1, 1, 0]})
        >>> population = Population.blockwise(table, [["a", "b"], ["c"]])
        >>> population.value(population.query(1, lambda rows: rows[:, 0] * rows[:, 1]))
        0.5
        """
        missing = [c for columns in blocks for c in columns if c not in frame.columns]
        if missing or not len(frame) or not all(map(len, blocks)):
            what = f"column {missing[0]!r} is missing" if missing else "the table, or a block, is empty"
            raise DeclarationError(what)
        rows, probabilities, table = [], [], []
        for columns in blocks:
            number = frame.groupby(list(columns), sort=False, dropna=False).ngroup().to_numpy()
            _, first = np.unique(number, return_index=True)
            rows.append(frame[list(columns)].to_numpy()[first])
            probabilities.append(np.bincount(number) / len(frame))
            table.append(number)
        return cls(tuple(rows), tuple(probabilities), np.stack(table), whole)

    @classmethod
    def uniform(cls, blocks: int, rows: int) -> Population:
        """Blocks with equally likely rows, numbered from 0."""
        table, law = np.arange(rows)[:, None], np.full(rows, 1 / rows)
        return cls((table,) * blocks, (law,) * blocks)

    @property
    def positions(self) -> int:
        """The number of blocks."""
        return len(self.rows)

    def interval(self, query: Query) -> tuple[int, int]:
        """The block of a query, as its first and its last position."""
        self._check(query.block)
        rows, given = len(self.rows[query.block - 1]), len(query.values)
        if given != rows:
            raise DeclarationError(f"{given} values do not fit block {query.block} of {rows} rows")
        return query.block, query.block

    def query(self, block: int, function: Callable[[Array], Array]) -> Query:
        """The mean of a function of a block's rows, which takes all possible rows at once."""
        self._check(block)
        return Query(block, np.asarray(function(self.rows[block - 1]), dtype=float))

    def value(self, query: Query) -> float:
        """The mean over the population."""
        self._check(query.block)
        return float((self.probabilities[query.block - 1] * query.values).sum())  # BLAS would start threads

    def sample(self, records: int, seed: Seed = None) -> Sample:
        """Draw independent records.

        Parameters
        ----------
        records : int
            The size n, at least 1.
        seed : int or Generator, optional
            The seed.
        """
        require(records >= 1, "records", records, "be at least 1")
        rng = np.random.default_rng(seed)
        sizes = tuple(map(len, self.probabilities))
        if self.whole and self.table is not None:
            return Sample(tuple(self.table[:, rng.integers(0, self.table.shape[1], records)]), sizes)
        drawn = []
        for law in self.probabilities:
            edges = np.cumsum(law)
            at = np.searchsorted(edges, rng.random(records) * edges[-1], side="right")
            drawn.append(np.minimum(at, len(law) - 1))
        return Sample(tuple(drawn), sizes)

    def _check(self, block: int) -> None:
        if not 1 <= block <= len(self.rows):
            raise DeclarationError(f"block is {block}; blocks are numbered from 1 to {len(self.rows)}")


@dataclass(frozen=True, eq=False)
class Sample:
    """Records: the number of the row of each block.

    Attributes
    ----------
    drawn : tuple[Array, ...]
        Shape ``(records,)`` for each block.
    sizes : tuple[int, ...]
        The number of possible rows of each block.
    """

    drawn: tuple[Array, ...] = field(repr=False)
    sizes: tuple[int, ...]

    @property
    def records(self) -> int:
        """The number n of records."""
        return len(self.drawn[0])

    def mean(self, query: Query, records: slice = slice(None)) -> float:
        """The mean of a query over the sample, or over some of its records."""
        return float(query.values[self.drawn[query.block - 1][records]].mean())


@dataclass(frozen=True)
class Thresholdout:
    """The reusable holdout: answers from one half, unless the other half disagrees.

    Attributes
    ----------
    threshold : float, default 0.04
        How much the halves may differ.
    scale : float, default 0.01
        Of the Laplace noise.

    References
    ----------
    Dwork, Feldman, Hardt, Pitassi, Reingold, Roth (2015), Thresholdout.
    """

    threshold: float = 0.04
    scale: float = 0.01


@dataclass(frozen=True, eq=False)
class Transcript:
    """Queries with their answers and the population's values.

    Attributes
    ----------
    queries : list[Query] or list[BitQuery]
        In order.
    answers, values : Array
        Shape ``(queries,)``.
    """

    queries: list[Any] = field(repr=False)
    answers: Array = field(repr=False)
    values: Array = field(repr=False)

    @property
    def error(self) -> float:
        """The largest distance of an answer from the population's value."""
        return float(np.abs(self.answers - self.values).max(initial=0.0))


Analyst = Callable[[list[tuple[Any, float]]], Query | BitQuery | None]
"""From the queries and answers so far to the next query, or None to end."""


class AdaptiveSession:
    """Answer an analyst's queries from a sample, and compare with the population.

    Parameters
    ----------
    sample : Sample or BitSample
        The records.
    population : Population or BitPopulation
        The source of the records. It gives the true values, and takes no part in the answers.
    plan : Solution, Thresholdout or None
        A solution of an `AccuracyPlan`, by which queries are answered; None for plain sample means.
    analyst : Analyst
        Chooses the queries.
    seed : int or Generator, optional
        Of the noise.

    Raises
    ------
    DeclarationError
        If the plan is for another number of records or blocks.

    Examples
    --------
    >>> from forcopt.models import AccuracyPlan
    >>> from forcopt.models.adaptive_queries import IndependentBlocks
    >>> population = Population.uniform(2, rows=512)
    >>> plan = AccuracyPlan(IndependentBlocks(2), records=20_000, queries=9, failure=0.05).solve()
    >>> analyst = membership(population, records=20_000, queries=9)
    >>> session = AdaptiveSession(population.sample(20_000, 1), population, plan, analyst, 2)
    >>> session.run().error < plan.objective
    True
    """

    def __init__(
        self,
        sample: Sample | BitSample,
        population: Population | BitPopulation,
        plan: Solution | Thresholdout | None,
        analyst: Analyst,
        seed: Seed = None,
    ) -> None:
        self.sample: Any = sample
        self.population: Any = population
        self.plan, self.analyst = plan, analyst
        self.rng = np.random.default_rng(seed)
        self._noisy_threshold: float | None = None
        if isinstance(plan, Solution):
            problem = plan.problem
            if not isinstance(problem, AccuracyPlan) or not isinstance(plan.decision, Plan):
                raise DeclarationError("plan must be a solution of an AccuracyPlan")
            if problem.records != sample.records or problem.blocks != population.positions:
                planned = f"{problem.records} records in {problem.blocks} blocks"
                given = f"{sample.records} in {population.positions}"
                raise DeclarationError(f"the plan is for {planned}; the sample has {given}")
            self._gate = _Gate(problem)

    def run(self) -> Transcript:
        """Let the analyst ask until it ends.

        Raises
        ------
        QueryRefusedError
            If the data model refuses a query, a block or window gets more queries than planned, or the
            stream has passed it.
        """
        history: list[tuple[Any, float]] = []
        while (query := self.analyst(history)) is not None:
            history.append((query, self.ask(query)))
        queries = [q for q, _ in history]
        values = np.array([self.population.value(q) for q in queries])
        return Transcript(queries, np.array([a for _, a in history]), values)

    def ask(self, query: Query | BitQuery) -> float:
        """Answer one query; see `run`."""
        interval = self.population.interval(query)
        if self.plan is None:
            return float(self.sample.mean(query))
        if isinstance(self.plan, Thresholdout):
            return self._thresholdout(query, self.plan)
        problem, plan = self.plan.problem, self.plan.decision
        assert isinstance(problem, AccuracyPlan)
        fold = self._gate.enter(interval)
        if plan.kind == "split-sample":
            size = self.sample.records // problem.data_model.folds(problem.queries)
            return float(self.sample.mean(query, slice(fold * size, (fold + 1) * size)))
        noise = Laplace(scale=plan.scale) if problem.noise == "laplace" else Gaussian(scale=plan.scale)
        return float(self.sample.mean(query)) + float(noise.draw((), self.rng))

    def _thresholdout(self, query: Query | BitQuery, rule: Thresholdout) -> float:
        half = self.sample.records // 2
        trained, held = self.sample.mean(query, slice(0, half)), self.sample.mean(query, slice(half, None))
        if self._noisy_threshold is None:
            self._noisy_threshold = rule.threshold + self.rng.laplace(scale=2 * rule.scale)
        if abs(held - trained) > self._noisy_threshold + self.rng.laplace(scale=4 * rule.scale):
            self._noisy_threshold = None
            return float(held + self.rng.laplace(scale=rule.scale))
        return float(trained)


class _Gate:
    """Refuses queries that the plan of a session does not cover, and numbers the folds.

    A plan counts the queries on each block, or the queries that touch each window of a `DecayingCorrelation`;
    without a restriction of the data it counts all together.
    """

    def __init__(self, problem: AccuracyPlan) -> None:
        model = self.model = problem.data_model
        self.queries, self.furthest, self.asked = problem.queries, 0, 0
        self.kind = "window" if isinstance(model, DecayingCorrelation) else "block"
        self.alone = isinstance(model, (DecayingCorrelation, NaiveComposition))
        if isinstance(model, NaiveComposition):
            self.kind, self.queries = "session", problem.queries * problem.blocks
        self.kinds = model.folds(problem.queries) // problem.queries
        points = model.windows if self.alone else model.positions
        self.loads = RangeLoads(points, np.array([self.queries]))

    def enter(self, interval: tuple[int, int]) -> int:
        """Enter a query; gives the number of its fold."""
        pair, asked = np.array([interval]), f"query on {list(interval)}"
        for rule in self.model.refusals(pair).values():
            raise QueryRefusedError(f"{asked}: {rule}")
        if interval[0] < self.furthest - self.model.behind:
            raise QueryRefusedError(f"{asked}: the stream has passed it; it is at {self.furthest}")
        ends = self.model.touched(pair) if self.alone else (pair[:, 0] - 1, pair[:, 1] - 1)
        first, last = (int(end[0]) for end in ends)
        before = int(self.loads.largest(first, last)[0])
        if not self.loads.fit(first, last, np.array([1])):
            raise QueryRefusedError(f"{asked}: a {self.kind} has had its {self.queries} planned queries")
        self.furthest = max(self.furthest, interval[1])
        self.asked += 1
        if self.alone:
            return self.asked - 1
        return (interval[0] - 1) % self.kinds * self.queries + before


# -- analysts ------------------------------------------------------------------------------------------------


def membership(population: Population, records: int, queries: int, digits: int = 40) -> Analyst:
    """Read from the digits of answers which rows are in the sample, then ask for the share of these rows.

    A query gives one row each of the values 1/2, 1/4, ...: the binary digits of its mean, times the number of
    records, are the numbers of these rows in the sample. Exact means give them away, and noise hides them.

    Parameters
    ----------
    population : Population
        Its rows.
    records : int
        The size n of the sample.
    queries : int
        Asked of each block; the last one is for the rows that were found.
    digits : int, default 40
        Rows that one query asks about; a float has 53 binary digits.

    Returns
    -------
    Analyst
        A function from the history of queries and answers to the next query, or None at the end.
    """
    values = 0.5 ** np.arange(1, digits + 1)

    def analyst(history: list[tuple[Query, float]]) -> Query | None:
        block, asked = divmod(len(history), queries)
        if block >= len(population.rows):
            return None
        table = np.zeros(len(population.rows[block]))
        if asked < queries - 1:
            chosen = np.arange(asked * digits, min((asked + 1) * digits, len(table)))
            table[chosen] = values[: len(chosen)]
            return Query(block + 1, table)
        for query, answer in history[len(history) - asked :]:
            rows = np.flatnonzero(query.values)
            code = int(np.clip(np.round(answer * records * 2.0 ** len(rows)), 0, 2.0**62))
            bits = (code >> np.arange(len(rows) - 1, -1, -1)) & 1
            table[rows[bits == 1]] = 1.0
        return Query(block + 1, table)

    return analyst


def across_blocks(population: Population, records: int) -> Analyst:
    """Read from each block but the last how often groups of rows were drawn, then ask for the frequent ones.

    The groups are rows of the real table behind the population, in other groups for each block. If samples
    draw whole rows, the groups that are frequent in one block are so in the last one, too; if each block is
    drawn by itself, they are not.

    Parameters
    ----------
    population : Population
        From a real table: see `Population.blockwise`.
    records : int
        The size n of the sample.

    Returns
    -------
    Analyst
        A function from the history of queries and answers to the next query, or None at the end.
    """
    if population.table is None:
        raise DeclarationError("the population has no table; see Population.blockwise")
    table = population.table
    bits = int(records).bit_length()
    groups = 52 // bits
    rng = np.random.default_rng(0)
    member = [rng.integers(0, groups, len(rows)) for rows in population.rows[:-1]]

    def analyst(history: list[tuple[Any, float]]) -> Query | None:
        block = len(history)
        if block >= len(table):
            return None
        if block < len(table) - 1:
            return Query(block + 1, 2.0 ** (-bits * (1.0 + member[block])))
        score = np.zeros(table.shape[1])
        for b, (_, answer) in enumerate(history):
            code = round(max(answer, 0.0) * records * 2.0 ** (bits * groups))
            counts = np.array([code >> (bits * (groups - 1 - g)) & (2**bits - 1) for g in range(groups)])
            group = member[b][table[b]]
            score += (counts / records - np.bincount(group, minlength=groups) / len(group))[group]
        total = np.bincount(table[block], score, len(population.rows[block]))
        return Query(block + 1, (total > 0).astype(float))

    return analyst
