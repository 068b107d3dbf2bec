"""Certificates of lower bounds: prices that anyone can check, by code that shares nothing with the search."""

from __future__ import annotations

import hashlib
import json
import reprlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from pydantic import ConfigDict, TypeAdapter, ValidationError

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.compiled import njit
from forcopt.errors import DeclarationError
from forcopt.graphs.weighted import WeightedGraph
from forcopt.loops.certify import Certificate
from forcopt.models.districting.bond_list import BondList, split_districts
from forcopt.models.districting.problem import Districting

_LOOKS = 20_000_000
"""Pairs of districts to compare between two looks at the clock."""

_LARGEST = 2**60
"""The fee, and the sum of the reduced costs of a plan, are smaller."""


class _Graph(NamedTuple):
    """The graph, with what a district and a plan must satisfy."""

    first: Array
    """Where the neighbours of each vertex begin in `ends`."""
    ends: Array
    paid: Array
    """The costs of the edges to them, times the scale."""
    weights: Array
    low: int
    high: int
    parts: int
    prices: Array
    fee: int
    room: int
    """The greatest sum of the reduced costs of a plan."""
    inside: Array
    queue: Array


class _Depths(NamedTuple):
    """What holds after d districts are chosen."""

    lists: Array
    """The sets that may follow, by reduced cost."""
    sizes: Array
    place: Array
    """The position of the next set; those before it are done."""
    union: Array
    """The vertices of the d districts, as bits."""
    spent: Array
    """The sum of their reduced costs."""
    found: Array
    """The district chosen next."""


@njit(cache=True)
def _has(words, v):  # type: ignore[no-untyped-def]
    """Whether a set has a vertex."""
    return bool(words[v >> 6] >> np.uint64(v & 63) & np.uint64(1))


@njit(cache=True)
def _rest_divides(graph, union, parts):  # type: ignore[no-untyped-def]
    """Whether the vertices outside a union form components whose weights allow `parts` districts."""
    first, ends, inside, queue = graph.first, graph.ends, graph.inside, graph.queue
    for v in range(len(inside)):
        inside[v] = not _has(union, v)
    least, most, some = 0, 0, False
    for v in range(len(inside)):
        # The components of the vertices before v allow from `least` to `most` districts.
        if not inside[v]:
            continue
        some = True
        queue[0], inside[v] = v, False
        head, tail, weight = 0, 1, 0
        while head < tail:
            u = queue[head]
            head += 1
            weight += graph.weights[u]
            for a in range(first[u], first[u + 1]):
                if inside[ends[a]]:
                    queue[tail], inside[ends[a]] = ends[a], False
                    tail += 1
        least, most = least + max(1, -(-weight // graph.high)), most + weight // graph.low
        if weight < graph.low:
            return False
    return some and least <= parts <= most


@njit(cache=True)
def _reduced_rest(graph, union):  # type: ignore[no-untyped-def]
    """The reduced cost of the vertices outside a union."""
    reduced = -graph.fee
    for v in range(len(graph.weights)):
        if _has(union, v):
            continue
        reduced -= graph.prices[v]
        for a in range(graph.first[v], graph.first[v + 1]):
            if _has(union, graph.ends[a]):
                reduced += graph.paid[a]
    return reduced


@njit(cache=True)
def _list_next(sets, reduced, graph, depths, d):  # type: ignore[no-untyped-def]
    """List the sets that may follow d chosen districts, from those that might follow the last of them."""
    size, union = 0, depths.union[d]
    for y in range(depths.place[d - 1], depths.sizes[d - 1]):
        j = depths.lists[d - 1, y]
        if depths.spent[d] + 2 * reduced[j] > graph.room:
            break
        apart = True
        for a in range(len(union)):
            if sets[j, a] & union[a]:
                apart = False
                break
        if apart:
            depths.lists[d, size] = j
            size += 1
    depths.sizes[d] = size


@njit(cache=True)
def _search(sets, reduced, graph, depths, depth, budget):  # type: ignore[no-untyped-def]
    """Go on with the choice of parts - 1 disjoint sets.

    Give the depth, -1 at the end, and whether ``depths.found`` holds sets whose rest is a district.
    """
    while depth >= 0 and budget > 0:
        # All choices are found that begin with the sets chosen before `depth` and one before its place.
        budget -= 1
        left = graph.parts - depth
        if depths.place[depth] == depths.sizes[depth]:
            depth -= 1
            continue
        i = depths.lists[depth, depths.place[depth]]
        # The districts that follow have at least this reduced cost.
        if depths.spent[depth] + left * reduced[i] > graph.room:
            depth -= 1
            continue
        depths.place[depth] += 1
        depths.found[depth] = i
        for a in range(sets.shape[1]):
            depths.union[depth + 1, a] = depths.union[depth, a] | sets[i, a]
        budget -= 10
        if not _rest_divides(graph, depths.union[depth + 1], left - 1):
            continue
        spent = depths.spent[depth] + reduced[i]
        if left == 2:
            if spent + _reduced_rest(graph, depths.union[depth + 1]) > graph.room:
                continue
            return depth, True
        budget -= depths.sizes[depth] - depths.place[depth]
        depth += 1
        depths.spent[depth], depths.place[depth] = spent, 0
        _list_next(sets, reduced, graph, depths, depth)
    return depth, False


class Kept:
    """A proof that can be kept in a JSON file."""

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid")

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a file that `write` has written.

        Parameters
        ----------
        path : str or Path
            A JSON file.

        Returns
        -------
        Kept
            Of this class; it proves nothing before it is checked.

        Raises
        ------
        DeclarationError
            If the file is no JSON, a field is missing or unknown, or its type is wrong.
        """
        try:
            return TypeAdapter(cls).validate_json(Path(path).read_bytes())
        except ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(map(str, fault["loc"])) or "the file"
            told = f"{path}: {where} is {reprlib.repr(fault['input'])}; {fault['msg']}"
            raise DeclarationError(told) from None

    def write(self, path: str | Path) -> None:
        """Write the proof to a JSON file, with one field on a line.

        Parameters
        ----------
        path : str or Path
            The file.
        """
        fields = TypeAdapter(type(self)).dump_python(self, mode="json")
        rows = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in fields.items()]
        Path(path).write_text("{" + ",\n".join(rows) + "}\n", encoding="utf-8")


@dataclass(frozen=True)
class BoundCertificate(Kept):
    """Prices that prove that no plan of a graph costs less than a bound.

    Attributes
    ----------
    name : str
        Of the graph, for readers.
    fingerprint : str
        Of the populations, edges and costs; see `fingerprint_of`.
    districts : int
        Their number.
    bounds : tuple of int
        The smallest and the largest population of a district.
    bound : int
        No plan costs less, in units of 1 / `Districting.cost_scale`.
    scale : int
        Prices count in units of 1 / scale.
    prices : tuple of int
        One for each node, in the graph's order.
    fee : int
        A constant price of each district.
    plan : tuple of int, optional
        The district of each node, of the best plan known.

    Notes
    -----
    Let c(S) be the cost of the edges between a district S and the other nodes, times the scale q. Its reduced
    cost is r(S) = c(S) - prices(S) - fee. The reduced costs of the districts of a plan of cost C sum to
    2 q C - L with L = prices(V) + districts * fee, as each cut edge counts in two districts. Suppose that
    no district has a negative reduced cost, and that C < bound. Then the sum is at most
    R = 2 q (bound - 1) - L, so no district exceeds R, and at most one exceeds R / 2.

    `check` lists all districts of reduced cost at most R / 2, sees that none is negative, and searches for
    disjoint districts of the list, all but one of a plan, whose rest is a district. All numbers are integers.

    **The list.** A district S whose complement is connected is a bond, see `BondList`. Otherwise let
    C_1, ..., C_s be the components of the complement. A plan with S divides each C_i into a number j_i of
    districts, with sum k - 1. Each C_i and its complement are connected, and
    ``c(S) - prices(S) = v(C_1) + ... + v(C_s) - prices(V)`` with ``v(C) = c(C) + prices(C)``, so the bonds
    of small v are listed for each number of districts, and disjoint ones are combined. If
    j = 1, C is a district, so ``c(C) >= prices(C) + fee``. The costs of the components sum to that of S.

    **The search.** In order of their reduced costs, let d districts of a plan be chosen, with the sum s.
    The k - d others have at least the reduced cost r of the next one, so s + (k - d) r <= R. After a choice,
    the weights of the components of the rest must allow the districts that are left.

    The code shares neither planar duals, nor lists, nor searches with the methods that find plans.

    Examples
    --------
    >>> from forcopt.data import grid
    >>> p = Districting(grid(2, 2), districts=2, tolerance=0)
    >>> proof = BoundCertificate.of(p, bound=2, scale=2, prices=[2.0] * 4, fee=-2.0, plan=[0, 0, 1, 1])
    >>> print(proof.check(p))
    feasible   yes
    objective  2
    bound      2
    how        proved by prices: 0 districts of small reduced cost, no plan among them
    """

    name: str
    fingerprint: str
    districts: int
    bounds: tuple[int, int]
    bound: int
    scale: int
    prices: tuple[int, ...]
    fee: int
    plan: tuple[int, ...] | None = None

    @staticmethod
    def fingerprint_of(problem: Districting) -> str:
        """The SHA-256 sum of the numbers of nodes, of the populations, and of the edges with their costs.

        Parameters
        ----------
        problem : Districting
            Its graph counts, with costs times `Districting.cost_scale`.

        Returns
        -------
        str
            64 hexadecimal digits.
        """
        g = problem.arrays
        rows = [[g.size, problem.cost_scale], g.weights.tolist()]
        rows += np.column_stack([g.edges, g.costs]).tolist()
        return hashlib.sha256("\n".join(" ".join(map(str, row)) for row in rows).encode()).hexdigest()

    @classmethod
    def of(
        cls,
        problem: Districting,
        bound: int,
        prices: Sequence[float] | Array,
        fee: float,
        *,
        scale: int = 2**20,
        plan: Sequence[int] | Array | None = None,
        name: str = "",
    ) -> BoundCertificate:
        """Round prices and fee down to integers; the reduced costs do not become smaller.

        Parameters
        ----------
        problem : Districting
            With the objective ``cut``.
        bound : int
            See the attributes.
        prices : sequence of float
            One for each node: the costs of the boundaries of all districts are at least the fee plus the
            prices of their nodes.
        fee : float
            See there.
        scale : int, optional
            See the attributes.
        plan : sequence of int, optional
            See the attributes.
        name : str, optional
            See the attributes.

        Returns
        -------
        BoundCertificate
            It proves nothing before it is checked.
        """
        return cls(
            name,
            cls.fingerprint_of(problem),
            problem.districts,
            problem.population_bounds,
            int(bound),
            scale,
            tuple(floor(Fraction(float(price)) * scale) for price in prices),
            floor(Fraction(float(fee)) * scale),
            None if plan is None else tuple(int(label) for label in plan),
        )

    @classmethod
    def stored(cls) -> dict[str, BoundCertificate]:
        """Read the certificates that come with forcopt.

        Returns
        -------
        dict of str to BoundCertificate
            By the names of the graphs: census tracts of Arkansas, Mississippi and Utah of 2010, each in four
            districts within 0.5 % of the mean population, with optimal plans.

        Examples
        --------
        >>> {name: proof.bound for name, proof in BoundCertificate.stored().items()}
        {'AR-tract': 69, 'MS-tract': 62, 'UT-tract': 77}
        """
        paths = sorted(Path(__file__).with_name("certificates").glob("*.json"))
        return {path.stem: cls.read(path) for path in paths}

    @property
    def room(self) -> int:
        """The greatest sum of the reduced costs of the districts of a cheaper plan, times `scale`."""
        return 2 * self.scale * (self.bound - 1) - sum(self.prices) - self.districts * self.fee

    def check(
        self,
        problem: Districting,
        *,
        time_limit: float | None = None,
        on_step: Callable[[str], None] | None = None,
    ) -> Certificate:
        """Check plan and bound in integers.

        Parameters
        ----------
        problem : Districting
            The problem, on a connected planar graph, with the objective ``cut``, equal seats, and no side
            constraints.
        time_limit : float, optional
            Seconds.
        on_step : callable, optional
            Called with a line of text after each step.

        Returns
        -------
        Certificate
            Its bound is None if it is not proved, and `how` tells why.

        Raises
        ------
        DeclarationError
            If the certificate is of another problem.
        """
        self._require_same(problem)
        deadline, unit = Deadline(time_limit), problem.cost_scale

        cost = None if self.plan is None else self._plan_cost(problem)
        bound, listed = None, 0
        try:
            for step, count in self._steps(problem.arrays, deadline.check):
                listed = max(listed, count)
                if on_step is not None:
                    on_step(step)
        except (_Refused, MemoryError, TimeoutError) as reason:
            how = f"not proved: {reason}"
        else:
            bound = Fraction(self.bound, unit)
            how = f"proved by prices: {listed:,} districts of small reduced cost, no plan among them"
        if isinstance(cost, str):
            how += f"; the plan is wrong: {cost}"
        value = Fraction(cost, unit) if isinstance(cost, int) else None
        return Certificate(
            feasible=None if cost is None else value is not None,
            violation=None,
            objective=value,
            bound=bound,
            optimal=value == bound if value is not None and bound is not None else None,
            how=how,
        )

    def _require_same(self, problem: Districting) -> None:
        """Check that the certificate is of the problem."""
        for name, mine, theirs in (
            ("fingerprint", self.fingerprint, self.fingerprint_of(problem)),
            ("districts", self.districts, problem.districts),
            ("bounds", self.bounds, problem.population_bounds),
            ("number of prices", len(self.prices), problem.arrays.size),
        ):
            if mine != theirs:
                raise DeclarationError(f"the certificate's {name} is {mine}, that of the problem is {theirs}")
        if problem.objective != "cut" or problem.side_constraints or problem.unequal_seats:
            raise DeclarationError("a certificate takes objective 'cut', equal seats, no side constraints")
        if self.districts < 2 or self.bounds[0] < 1 or self.scale < 1:
            raise DeclarationError("a certificate takes 2 districts or more, bounds and a scale from 1 on")

    def _plan_cost(self, problem: Districting) -> int | str:
        """The cost of the plan, or the reason why it is none."""
        assert self.plan is not None
        if len(self.plan) != len(problem.nodes) or set(self.plan) != set(range(self.districts)):
            return f"it must give each node a district from 0 to {self.districts - 1}, and use all"
        broken = problem.evaluate(dict(zip(problem.nodes, self.plan, strict=True))).violations
        return ", ".join(broken) or problem.arrays.cut_cost(np.array(self.plan))

    def _steps(self, graph: WeightedGraph, pause: Callable[[], None]) -> Iterator[tuple[str, int]]:
        """Give a text and the number of districts listed after each step; raise `_Refused` for a flaw."""
        if max(abs(self.fee), abs(self.room)) >= _LARGEST:
            raise _Refused("the fee, the bound or the prices are too large for 64-bit integers")
        half = max(self.room // 2, -1)  # without room, a district of a negative reduced cost is sought
        try:
            bonds = BondList(graph, self.scale, self.prices)
        except DeclarationError as error:
            raise _Refused(str(error)) from None
        every, reduced = [np.zeros((0, -(-graph.size // 8)), np.uint8)], [np.zeros(0, np.int64)]
        split = split_districts(bonds, *self.bounds, self.districts, half + self.fee, self.fee, pause)
        for kind, batches in (("", self._simple(bonds, half, pause)), ("dis", split)):
            count = sum(map(len, every))
            for sets in batches:
                values = bonds.values(sets) - self.fee
                if len(sets) and values.min() < 0:
                    nodes = np.flatnonzero(sets[np.argmin(values)]).tolist()
                    raise _Refused(f"the district of the nodes {nodes} has a negative reduced cost")
                every.append(np.packbits(sets, axis=1))
                reduced.append(values)
            count = sum(map(len, every)) - count
            yield f"{count:,} districts of small reduced cost with a {kind}connected complement", count
        if self.room < 0:
            return
        order = np.argsort(np.concatenate(reduced), kind="stable")
        bits, values = np.concatenate(every)[order], np.concatenate(reduced)[order]
        for plan in self._plans(bonds, bits, values, pause):
            labels = (np.arange(self.districts)[:, None] * plan).sum(axis=0)
            u, v = graph.edges.T
            cost = int(graph.costs[labels[u] != labels[v]].sum())
            if cost < self.bound:
                raise _Refused(f"a plan costs {cost} in integers")
        yield "no plan consists of them and at most one other district", 0

    def _simple(self, bonds: BondList, half: int, pause: Callable[[], None]) -> Iterator[Array]:
        """Give the districts with a connected complement of at most a reduced cost."""
        (low, high), total, others = self.bounds, bonds.graph.total, self.districts - 1
        window = max(low, total - others * high), min(high, total - others * low)
        yield from bonds.within(*window, half + self.fee, pause)

    def _plans(
        self, bonds: BondList, bits: Array, reduced: Array, pause: Callable[[], None]
    ) -> Iterator[Array]:
        """Give the plans within the room, shape (parts, n); all districts but the last are in a list."""
        graph, parts = bonds.graph, self.districts
        n, count = graph.size, len(bits)
        words = np.zeros((count, -(-n // 64)), np.uint64)
        for begin in range(0, count, 10_000):
            sets = np.unpackbits(bits[begin : begin + 10_000], axis=1, count=n)
            padded = np.zeros((len(sets), 64 * words.shape[1]), np.uint8)
            padded[:, :n] = sets
            words[begin : begin + 10_000] = np.packbits(padded, axis=1, bitorder="little").view("<u8")
        first, ends, numbers = graph.links
        scratch = np.zeros(n, np.bool_), np.zeros(n, np.int64)
        facts = (graph.weights, *self.bounds, parts, bonds.prices, self.fee, self.room)
        given = _Graph(first, ends, self.scale * graph.costs[numbers], *facts, *scratch)
        lists, union = np.zeros((parts, count), np.int64), np.zeros((parts + 1, words.shape[1]), np.uint64)
        sizes, place, spent, found = np.zeros((4, parts), np.int64)
        depths = _Depths(lists, sizes, place, union, spent, found)
        depths.lists[0], depths.sizes[0] = np.arange(count), count
        depth = 0
        while depth >= 0:
            pause()
            depth, complete = _search(words, reduced, given, depths, depth, _LOOKS)
            if complete:
                chosen = np.unpackbits(bits[depths.found[: parts - 1]], axis=1, count=n).astype(np.bool_)
                yield np.concatenate([chosen, ~chosen.any(axis=0, keepdims=True)])


class _Refused(Exception):
    """A flaw of a certificate."""
