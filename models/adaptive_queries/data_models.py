"""Data models: where queries may look, and which queries share a privacy budget."""

from __future__ import annotations

from abc import abstractmethod
from math import ceil, expm1, inf, log, log1p
from typing import Literal

import numpy as np
from pydantic import Field

from forcopt.arrays import Array, least_whole
from forcopt.declaration import Declared
from forcopt.errors import DeclarationError, require


def run_probability(links: int, related: float, length: int) -> float:
    """The probability of a run of at least `length` related links among independent ones.

    Parameters
    ----------
    links : int
        The number of links, at least 0.
    related : float
        The probability q that a link is related, from 0 to 1.
    length : int
        The length of the run, at least 0.

    Returns
    -------
    float
        The probability. O(links).

    Raises
    ------
    DeclarationError
        For a negative number, or a probability outside of [0, 1].

    Notes
    -----
    The first run of length r ends at link j with probability ``(1 - q) q^r (1 - R[j - r - 1])``, where
    ``R[i]`` is the probability of a run among the first i links. All terms are positive, so that
    small probabilities keep their digits.

    Examples
    --------
    >>> run_probability(9, 0.5, 3)
    0.46484375
    """
    if links < 0 or length < 0 or not 0 <= related <= 1:
        raise DeclarationError(
            f"links is {links}, length {length}, related {related}; numbers must be at least 0, the "
            "probability from 0 to 1"
        )
    if length == 0:
        return 1.0
    if length > links:
        return 0.0
    run = related**length
    step = (1 - related) * run
    found = np.zeros(links + 1)
    found[length] = run
    for j in range(length + 1, links + 1):
        found[j] = found[j - 1] + step * (1 - found[j - length - 1])
    return float(min(found[-1], 1.0))


Dependence = Literal["exact_runs", "union_runs", "crude", "published"]


class DataModel(Declared):
    """The base of all data models.

    A query looks at an interval of *positions* (blocks or attributes), numbered from 1. A *window* is a set
    of positions; all queries that touch a window share one privacy budget.
    """

    @property
    @abstractmethod
    def positions(self) -> int:
        """The number of blocks or attributes."""

    @property
    def windows(self) -> int:
        """The number of windows."""
        return self.positions

    @property
    def privacy_factor(self) -> int:
        """K: the answers that bear on one window lose K times the epsilon (and delta) of a block."""
        return 1

    @property
    def multiplicity(self) -> int:
        """The number of times that the failure of the transfer theorem counts."""
        return self.positions

    @property
    def remark(self) -> str:
        """A remark on the guarantee, or an empty text."""
        return ""

    def dependence_term(self, records: int) -> float:
        """The failure probability that comes from dependent positions."""
        return 0.0

    def folds(self, queries: int) -> int:
        """The number of fresh folds that a sample needs to answer `queries` queries for each position."""
        return queries

    def refusals(self, intervals: Array) -> dict[int, str]:
        """The rule that refuses a query, by the number of the query.

        Parameters
        ----------
        intervals : Array
            First and last position of each query, shape ``(Q, 2)``.
        """
        first, last = intervals.T
        out: dict[int, str] = {}
        for j in np.flatnonzero((first > last) | (first < 1) | (last > self.positions)):
            numbers = f"{self._kind}s are numbered from 1 to {self.positions}"
            out[int(j)] = "it is reversed" if first[j] > last[j] else numbers
        for j in np.flatnonzero(last - first > self._span):
            out.setdefault(int(j), self._span_rule)
        return out

    @property
    def _kind(self) -> str:
        return "block"

    @property
    def _span(self) -> int:
        return 0

    @property
    def _span_rule(self) -> str:
        return "a query must lie within one block"

    def touched(self, intervals: Array) -> tuple[Array, Array]:
        """First and last window that each query touches, numbered from 0.

        Parameters
        ----------
        intervals : Array
            Shape ``(Q, 2)``, positions from 1.

        Returns
        -------
        tuple[Array, Array]
            Shape ``(Q,)`` each.
        """
        return intervals[:, 0] - 1, intervals[:, 1] - 1

    # -- the order of a stream -------------------------------------------------------------------------------

    @property
    def behind(self) -> float:
        """A query may begin so far behind the furthest position seen, at most; infinite without an order."""
        return inf

    def late(self, intervals: Array) -> Array:
        """Which queries of a sequence come too late for the order of the stream, shape ``(Q,)``.

        Parameters
        ----------
        intervals : Array
            In the order of asking, shape ``(Q, 2)``.
        """
        if not len(intervals) or self.behind == inf:
            return np.zeros(len(intervals), dtype=bool)
        furthest = np.maximum.accumulate(intervals[:, 1])
        return np.concatenate([[False], intervals[1:, 0] < furthest[:-1] - self.behind])

    def order(self, intervals: Array) -> Array:
        """An order that the stream allows, if there is one: by first, then by last position."""
        return np.lexsort((intervals[:, 1], intervals[:, 0]))

    def exclusive(self, intervals: Array) -> Array:
        """Which queries exclude all others with the same interval, shape ``(Q,)``.

        No order allows two queries with the same interval if that is as long as the stream looks back. All
        other sets of queries have an order that the stream allows: the one of `order`.
        """
        return intervals[:, 1] - intervals[:, 0] > self.behind


class IndependentBlocks(DataModel):
    """Independent blocks, each with a budget of its own; queries come in any order.

    Attributes
    ----------
    blocks : int
        The number m of blocks, at least 1.

    References
    ----------
    Du and Dwork (2022), Theorem 10.

    Examples
    --------
    >>> IndependentBlocks(22).multiplicity
    22
    """

    blocks: int = Field(ge=1)

    @property
    def positions(self) -> int:
        """See `DataModel`."""
        return self.blocks


class StreamedBlocks(DataModel):
    """Blocks of which only neighbors depend on each other, asked about in their order.

    Two neighboring blocks form a window, so that the answers on a block and its predecessor count together.

    Attributes
    ----------
    blocks : int
        The number m of blocks, at least 1.

    References
    ----------
    Du and Dwork (2022), Theorem 12.
    """

    blocks: int = Field(ge=1)

    @property
    def positions(self) -> int:
        """See `DataModel`."""
        return self.blocks

    @property
    def windows(self) -> int:
        """Pairs of neighbors, or the only block."""
        return max(self.blocks - 1, 1)

    @property
    def privacy_factor(self) -> int:
        """See `DataModel`."""
        return 2 if self.blocks > 1 else 1

    def folds(self, queries: int) -> int:
        """Odd and even blocks have folds of their own; blocks of one kind are independent."""
        return queries * self.privacy_factor

    def touched(self, intervals: Array) -> tuple[Array, Array]:
        """See `DataModel`."""
        last = self.windows - 1
        return np.maximum(intervals[:, 0] - 2, 0), np.minimum(intervals[:, 1] - 1, last)

    @property
    def behind(self) -> float:
        """See `DataModel`."""
        return 0


class DecayingCorrelation(DataModel):
    """Attributes in a row: each two neighbors are unrelated with probability p, for each record by itself.

    Attributes i and j are related if all links between them are; unrelated attributes are independent.

    Attributes
    ----------
    attributes : int
        The number m, at least 1.
    independence : float
        The probability p that a link is broken, from 0 to 1.
    width : int
        The distance d that a query may span, at least 0. The window of attribute i reaches from ``i - 2 d``
        to ``i + 2 d``, or ``i + d`` if the queries slide.
    access : Literal["general", "sliding"], default "general"
        ``"sliding"``: after a query on attribute i, none on an attribute up to ``i - d``.
    dependence : Literal["exact_runs", "union_runs", "crude", "published"], default "exact_runs"
        The failure probability from related attributes that are further apart than d: the exact probability
        of a run of d + 1 related links in any record, the union bound over the first links of runs, the
        union bound over all windows, or the printed term.

    Notes
    -----
    Theorems 14 and 17 are proved for one attribute i, and their printed dependence term holds for it alone;
    over all attributes a union is needed. All bad events lie in one event: some record has a run of more than
    d related links. ``"exact_runs"`` is the probability of that event, so it covers all attributes at once.
    ``"published"`` keeps the printed term, which can be far below the probability of the bad event.

    References
    ----------
    Du and Dwork (2022), Theorems 14 and 17, Definition 13.

    Examples
    --------
    >>> data = DecayingCorrelation(attributes=1000, independence=0.5, width=20)
    >>> round(data.dependence_term(1000), 7)
    0.2083623
    >>> data.least_width(1000, failure=0.01)
    25
    """

    attributes: int = Field(ge=1)
    independence: float = Field(ge=0.0, le=1.0)
    width: int = Field(ge=0)
    access: Literal["general", "sliding"] = "general"
    dependence: Dependence = "exact_runs"

    @property
    def positions(self) -> int:
        """See `DataModel`."""
        return self.attributes

    @property
    def covers_all(self) -> bool:
        """Whether each window holds all attributes: then the plain transfer theorem applies."""
        return self._ahead >= self.attributes - 1

    @property
    def _ahead(self) -> int:
        return self.width * (2 if self.access == "general" else 1)

    @property
    def windows(self) -> int:
        """See `DataModel`."""
        return 1 if self.covers_all else self.attributes

    @property
    def multiplicity(self) -> int:
        """See `DataModel`; 1 if the windows hold everything."""
        return 1 if self.covers_all else self.attributes

    @property
    def remark(self) -> str:
        """See `DataModel`."""
        if self.covers_all:
            return (
                f"width {self.width} makes each window hold all {self.attributes} attributes: the plain "
                "transfer theorem applies, once"
            )
        if self.dependence == "published":
            return "the printed dependence term is not proved: it counts one attribute's window only"
        return ""

    def dependence_term(self, records: int) -> float:
        """The failure probability from related attributes further apart than the width.

        Parameters
        ----------
        records : int
            The size n of the sample.
        """
        m, d, p, n = self.attributes, self.width, self.independence, records
        if self.covers_all:
            return 0.0
        related = 1 - p
        single = related ** (d + 1)
        sides = 2 if self.access == "general" else 1
        if self.dependence == "published":
            return sides * n * single
        if self.dependence == "crude":
            return sides * n * m * single
        if self.dependence == "union_runs":
            return n * single * (1 + max(m - d - 2, 0) * p) if m >= d + 2 else 0.0
        run = run_probability(m - 1, related, d + 1)
        return 1.0 if run >= 1 else -expm1(n * log1p(-run))

    def least_width(self, records: int, failure: float) -> int | None:
        """The smallest width whose dependence term is at most `failure`.

        Parameters
        ----------
        records : int
            The size n of the sample.
        failure : float
            Above 0.

        Returns
        -------
        int or None
            None if no width below the one that covers all attributes has it.
        """
        require(failure > 0, "failure", failure, "be above 0")
        low, high = -1, self.attributes
        if self.replace(width=high - 1).covers_all:
            high -= 1
        if self.dependence in ("published", "crude") and 0 < self.independence < 1:
            factor = self.replace(width=0, dependence=self.dependence)._factor(records)
            guess = max(0, ceil(log(factor / failure) / -log1p(-self.independence) - 1))
            low, high = max(guess - 2, -1), min(guess + 2, high)
        # The term falls with the width.
        high = least_whole(
            lambda width: self.replace(width=width).dependence_term(records) <= failure, low + 1, high
        )
        found = self.replace(width=high)
        return high if found.dependence_term(records) <= failure and not found.covers_all else None

    def _factor(self, records: int) -> float:
        sides = 2 if self.access == "general" else 1
        return sides * records * (self.attributes if self.dependence == "crude" else 1)

    def folds(self, queries: int) -> int:
        """A fold for each query: all attributes may depend on each other."""
        return queries * self.multiplicity

    @property
    def _kind(self) -> str:
        return "attribute"

    @property
    def _span(self) -> int:
        return self.width

    @property
    def _span_rule(self) -> str:
        return f"a query may span a distance of at most width {self.width}"

    def touched(self, intervals: Array) -> tuple[Array, Array]:
        """See `DataModel`."""
        if self.covers_all:
            return np.zeros(len(intervals), dtype=np.int64), np.zeros(len(intervals), dtype=np.int64)
        first = np.maximum(intervals[:, 0] - self._ahead, 1)
        last = np.minimum(intervals[:, 1] + 2 * self.width, self.attributes)
        return first - 1, last - 1

    @property
    def behind(self) -> float:
        """See `DataModel`."""
        return self.width - 1 if self.access == "sliding" else inf


class NaiveComposition(DataModel):
    """No restriction of the data: all queries share one budget.

    Attributes
    ----------
    blocks : int
        The number m of blocks, at least 1; queries may look at any of them.
    rule : Literal["basic", "advanced"], default "basic"
        How the epsilons of the blocks add up, for Laplace noise. Gaussian noise composes exactly.

    References
    ----------
    Dwork and Roth (2014), Theorems 3.16 and 3.20.
    """

    blocks: int = Field(ge=1)
    rule: Literal["basic", "advanced"] = "basic"

    @property
    def positions(self) -> int:
        """See `DataModel`."""
        return self.blocks

    @property
    def windows(self) -> int:
        """One."""
        return 1

    @property
    def privacy_factor(self) -> int:
        """The number of blocks, by basic composition."""
        return self.blocks

    def folds(self, queries: int) -> int:
        """A fold for each query."""
        return queries * self.blocks

    @property
    def _span(self) -> int:
        return self.blocks

    def touched(self, intervals: Array) -> tuple[Array, Array]:
        """The only window."""
        return np.zeros(len(intervals), dtype=np.int64), np.zeros(len(intervals), dtype=np.int64)
