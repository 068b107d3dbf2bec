"""Trees of geographic units, with counts of people on their leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from pydantic import model_validator

from forcopt.arrays import Array, as_numbers, by_label, check_label_order, is_missing
from forcopt.data.dataset import refuse_doubles
from forcopt.data.intake import Expected, Fixes, take_table
from forcopt.declaration import Declared, Integers
from forcopt.errors import DeclarationError, require_shape, unknown


class Hierarchy(Declared):
    """A rooted tree of geographic units whose leaves all lie on the last level.

    Attributes
    ----------
    parents : tuple[Integers, ...]
        For each level after the root's, the position of each unit's parent on the level before; level 0 has
        one unit, the root. A tree of d levels has d - 1 arrays.
    names : tuple[tuple[str, ...], ...], optional
        The units' names by level, different on each; positions by default.
    levels : tuple[str, ...], optional
        The levels' names, root first; ``"level 0"``, ... by default.
    counts : Integers, optional
        People in each leaf, by type; shape ``(leaves, types)``, or ``(leaves,)`` for one type. At least 0.
    types : tuple[str, ...], optional
        The types' names.

    Raises
    ------
    DeclarationError
        For a parent that does not exist, an inner unit without children, a name twice on a level, or counts
        that do not fit; the unit is named.

    Examples
    --------
    >>> tree = Hierarchy(parents=([0, 0], [0, 0, 1]), counts=[3, 4, 5])
    >>> tree.sizes, [level.ravel().tolist() for level in tree.sums(tree.counts)]
    ((1, 2, 3), [[12], [7, 5], [3, 4, 5]])
    """

    parents: tuple[Integers, ...] = ()
    names: tuple[tuple[str, ...], ...] = ()
    levels: tuple[str, ...] = ()
    counts: Integers | None = None
    types: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _counts_by_type(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("counts") is not None:
            if given.get("names"):
                check_label_order("Hierarchy", {"names": given["names"][-1], "counts": given["counts"]})
            counts = np.asarray(given["counts"])
            if counts.ndim == 1:
                given = {**given, "counts": counts[:, None]}
        return given

    @model_validator(mode="after")
    def _levels_fit(self) -> Self:
        above = 1
        for level, parent in enumerate(self.parents, start=1):
            fits = parent.ndim == 1 and parent.size
            require_shape(fits, f"parents of level {level} have", parent, "be (units,)")
            wrong = (parent < 0) | (parent >= above)
            if wrong.any():
                at = int(np.argmax(wrong))
                raise DeclarationError(
                    f"unit {self.name(level, at)} of level {level} has parent {parent[at]}; level "
                    f"{level - 1} has units 0 to {above - 1}"
                )
            missing = np.bincount(parent, minlength=above) == 0
            if missing.any():
                at = int(np.argmax(missing))
                raise DeclarationError(f"unit {self.name(level - 1, at)} of level {level - 1} has no child")
            above = len(parent)
        if self.names:
            found = tuple(map(len, self.names))
            if found != self.sizes:
                raise DeclarationError(f"names has {found} units by level; the tree has {self.sizes}")
            for level, called in enumerate(self.names):
                if len(set(called)) < len(called):
                    twice = next(name for name, n in Counter(called).items() if n > 1)
                    raise DeclarationError(f"names: two units of level {level} are called {twice!r}")
        if self.levels and len(self.levels) != self.depth:
            raise DeclarationError(f"levels names {len(self.levels)} levels; the tree has {self.depth}")
        if self.counts is not None:
            n, counts = self.sizes[-1], self.counts
            fits = counts.ndim == 2 and len(counts) == n and counts.shape[1]
            require_shape(fits, "counts have", counts, f"be ({n}, types)")
            if (self.counts < 0).any():
                at = int(np.argwhere(self.counts < 0)[0, 0])
                raise DeclarationError(
                    f"unit {self.name(self.depth - 1, at)}: a count is {self.counts[at].min()}; "
                    "it must be at least 0"
                )
            if self.types and len(self.types) != self.counts.shape[1]:
                raise DeclarationError(f"types names {len(self.types)}; counts has {self.counts.shape[1]}")
        return self

    # -- constructors ----------------------------------------------------------------------------------------

    @classmethod
    def homogeneous(cls, branching: Sequence[int], **fields: Any) -> Self:
        """Make a tree in which all units of a level have equally many children.

        Parameters
        ----------
        branching : Sequence[int]
            Children of each unit of levels 0, 1, ...; each at least 1.
        fields : Any
            Further fields.

        Examples
        --------
        >>> Hierarchy.homogeneous([484, 4, 25]).sizes
        (1, 484, 1936, 48400)
        """
        parents, units = [], 1
        each = as_numbers(branching, "branching")
        require_shape(each.ndim == 1, "branching has", each, "be a list of numbers")
        for number in each.tolist():
            count = int(number)
            if count != number or count < 1:
                raise DeclarationError(f"branching has {number:g}; each must be a whole number, at least 1")
            parents.append(np.repeat(np.arange(units), count))
            units *= count
        return cls(parents=tuple(parents), **fields)

    @classmethod
    def from_geoids(
        cls,
        codes: Iterable[str],
        lengths: Sequence[int] = (2, 5, 11, 12, 15),
        counts: Any = None,
        **fields: Any,
    ) -> Self:
        """Read the tree from codes of which each prefix names a unit, as the Census Bureau's.

        Parameters
        ----------
        codes : Iterable[str]
            The leaves' codes, all different. A code that is shorter than the last length, such as a county
            without blocks, is the leaf itself: a chain of single children leads down to it.
        lengths : Sequence[int], default (2, 5, 11, 12, 15)
            The prefixes' lengths by level: state, county, tract, block group, block. The first must be common
            to all.
        counts : array_like, optional
            In the order of the codes.
        fields : Any
            Further fields.

        Raises
        ------
        DeclarationError
            For a code twice, a code that is also an inner unit, of another length, or two roots.

        Examples
        --------
        >>> tree = Hierarchy.from_geoids(["48001", "481130001001000", "481130001001001"], counts=[9, 1, 2])
        >>> tree.sizes, tree.names[2]
        ((1, 2, 2, 2, 3), ('48001', '48113000100'))
        """
        listed = [str(code) for code in codes]
        refuse_doubles("codes", listed)
        if isinstance(counts, Mapping):
            counts = by_label(counts, listed, "counts")
        check_label_order("Hierarchy.from_geoids", {"names": listed, "codes": codes, "counts": counts})
        for code in listed:
            if len(code) not in lengths:
                raise DeclarationError(f"code {code} has {len(code)} characters, not one of {lengths}")
        return cls._from_paths([[code[:length] for length in lengths] for code in listed], counts, **fields)

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[tuple[Hashable, Hashable]],
        counts: Mapping[Hashable, Any] | None = None,
        **fields: Any,
    ) -> Self:
        """Read the tree from pairs (parent, child); leaves may lie at different depths.

        Parameters
        ----------
        edges : Iterable[tuple[Hashable, Hashable]]
            In any order; or a frame with these two columns. A leaf above the last level gets a chain of
            single children.
        counts : Mapping[Hashable, Any], optional
            Of each leaf; and of inner units too, if you like, to have the sums checked.
        fields : Any
            Further fields.

        Raises
        ------
        DeclarationError
            For a unit with two parents, an edge twice, two units with the same text, a cycle, several roots,
            a leaf without a count, a count of an unknown unit, or one that is not the sum of the leaves'; the
            unit is named.

        Examples
        --------
        >>> tree = Hierarchy.from_edges([("r", "a"), ("r", "b"), ("b", "c")], {"a": 1, "c": 2, "r": 3})
        >>> tree.names, tree.counts.ravel().tolist()
        ((('r',), ('a', 'b'), ('a', 'c')), [1, 2])
        """
        parent: dict[Hashable, Hashable] = {}
        children: dict[Hashable, list[Hashable]] = {}
        if hasattr(edges, "itertuples"):
            edges = list(edges.itertuples(index=False))
        for number, edge in enumerate(edges):
            if len(edge) != 2 or any(map(is_missing, edge)):
                raise DeclarationError(f"edge {number} is {tuple(edge)!r}; it must be a parent and a child")
            above, unit = edge
            if unit in parent and parent[unit] == above:
                raise DeclarationError(f"the edge from {above} to {unit} is given twice")
            if unit in parent:
                raise DeclarationError(f"unit {unit} has two parents, {parent[unit]} and {above}")
            parent[unit] = above
            children.setdefault(above, []).append(unit)
        units = list(map(str, dict.fromkeys([*children, *parent])))
        refuse_doubles("units, as text", units)
        roots = [unit for unit in children if unit not in parent]
        if len(roots) != 1:
            found = ", ".join(map(str, roots[:5])) or "none; the edges hold a cycle"
            raise DeclarationError(f"the tree must have one root; found {found}")
        paths, stack, reached = [], [[roots[0]]], 1
        while stack:
            path = stack.pop()
            below = children.get(path[-1], [])
            reached += len(below)
            if not below:
                paths.append(path)
            stack.extend([*path, unit] for unit in reversed(below))
        if reached != len(parent) + 1:
            lost = next(u for u in parent if not any(u in path for path in paths))
            raise DeclarationError(f"unit {lost} is not reached from root {roots[0]}: the edges hold a cycle")
        given = None if counts is None else _counts_of_leaves(counts, paths, units)
        depth = max(map(len, paths))
        full = [[str(u) for u in path] + [str(path[-1])] * (depth - len(path)) for path in paths]
        return cls._from_paths(full, given, **fields)

    @classmethod
    def from_table(
        cls,
        table: Any,
        columns: Sequence[str],
        count: str | Sequence[str] | None = None,
        *,
        fixes: Fixes | None = None,
        **fields: Any,
    ) -> Self:
        """Read the tree from a table that names the unit of each level in a column.

        Parameters
        ----------
        table : DataFrame, str or Path
            Or a file of it. Its units must be public: list the empty ones too, with a count of 0. Rows of one
            leaf are added.
        columns : sequence of str
            The levels below the root, such as state, county and tract. A name that occurs under several
            parents is written after theirs.
        count : str or sequence of str, optional
            The column of people, or one for each type; by default each row is a person.
        fixes : mapping, optional
            See `forcopt.data.check_table`.
        fields : Any
            Further fields.

        Returns
        -------
        Hierarchy
            With levels named as the columns; if the first has several units, below a root called "all".

        Raises
        ------
        DeclarationError
            For a column that is not there, a missing value, a unit in two spellings, a row of totals, or
            counts that are not whole or below 0; by row and column.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"state": ["TX", "TX", "OK"], "county": ["Ellis"] * 3, "people": [1, 2, 4]})
        >>> tree = Hierarchy.from_table(frame, ["state", "county"], count="people")
        >>> tree.names[2], tree.counts.ravel().tolist()
        (('TX / Ellis', 'OK / Ellis'), [3, 4])
        """
        kinds = [] if count is None else [count] if isinstance(count, str) else list(count)
        if isinstance(columns, str) or not len(columns):
            raise DeclarationError(f"columns is {columns!r}; it must be a list of at least one name")
        schema = dict.fromkeys(columns, Expected("unit")) | dict.fromkeys(kinds, Expected("count"))
        frame = take_table(table, "table", schema, fixes)
        rows = list(zip(*(frame[name] for name in columns), strict=True))
        people = [frame[name].to_numpy() for name in kinds] or [np.ones(len(rows))]
        paths = {row: i for i, row in enumerate(dict.fromkeys(rows))}
        counts = np.zeros((len(paths), len(people)))
        np.add.at(counts, [paths[row] for row in rows], np.stack(people, axis=1))
        above = [Counter(p[level] for p in {p[: level + 1] for p in paths}) for level in range(len(columns))]
        named = [
            [p[k] if above[k][p[k]] == 1 else " / ".join(p[: k + 1]) for k in range(len(p))] for p in paths
        ]
        root = ["all"] if len(above[0]) > 1 else []
        given = {"levels": (*root, *columns), "types": tuple(kinds) if len(kinds) > 1 else ()}
        return cls._from_paths([root + p for p in named], counts, **given | fields)

    @classmethod
    def _from_paths(cls, paths: Sequence[Sequence[str]], counts: Any, **fields: Any) -> Self:
        if not paths:
            raise DeclarationError("the tree has no leaves")
        roots = {path[0] for path in paths}
        if len(roots) > 1:
            raise DeclarationError(f"the leaves lie under {len(roots)} roots, such as {sorted(roots)[:2]}")
        names: list[tuple[str, ...]] = []
        parents: list[Array] = []
        place: dict[str, int] = {}
        for level in range(len(paths[0])):
            last = level == len(paths[0]) - 1
            own: dict[str, int] = {}
            up: list[int] = []
            for path in paths:
                unit, above = path[level], path[level - 1] if level else ""
                if unit in own:
                    if last:
                        raise DeclarationError(f"unit {unit} is a leaf and an inner unit")
                    continue
                own[unit] = len(own)
                up.append(place[above] if level else 0)
            names.append(tuple(own))
            if level:
                parents.append(np.array(up))
            place = own
        order = [place[path[-1]] for path in paths]
        if counts is not None:
            given = np.asarray(counts)
            if len(given) != len(paths):
                raise DeclarationError(f"counts has {len(given)} rows; there are {len(paths)} leaves")
            sorted_counts = np.empty_like(given)
            sorted_counts[order] = given
            counts = sorted_counts
        return cls(parents=tuple(parents), names=tuple(names), counts=counts, **fields)

    # -- derived from the fields -----------------------------------------------------------------------------

    @property
    def depth(self) -> int:
        """The number of levels, d."""
        return len(self.parents) + 1

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of units of each level."""
        return (1, *(len(parent) for parent in self.parents))

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        return self.sizes[-1]

    @property
    def bare(self) -> Hierarchy:
        """The tree without its counts, which are private."""
        if self.counts is None:
            return self
        return Hierarchy(parents=self.parents, names=self.names, levels=self.levels, types=self.types)

    def name(self, level: int, unit: int) -> str:
        """The name of a unit, or its position."""
        named = level < len(self.names) and unit < len(self.names[level])
        return self.names[level][unit] if named else str(unit)

    def level_name(self, level: int) -> str:
        """The name of a level."""
        return self.levels[level] if self.levels else f"level {level}"

    def find(self, level: int, unit: int | str) -> int:
        """The position of a unit on its level.

        Raises
        ------
        DeclarationError
            For a level or a unit that does not exist.
        """
        if not 0 <= level < self.depth:
            raise DeclarationError(f"level is {level}; the tree has levels 0 to {self.depth - 1}")
        if isinstance(unit, str):
            if not self.names or unit not in self._places[level]:
                raise DeclarationError(f"level {level} has no unit named {unit!r}")
            return self._places[level][unit]
        if not 0 <= unit < self.sizes[level]:
            raise DeclarationError(f"level {level} has no unit {unit}; it has {self.sizes[level]}")
        return int(unit)

    @cached_property
    def _places(self) -> list[dict[str, int]]:
        return [{name: i for i, name in enumerate(level)} for level in self.names]

    def up(self, level: int, values: Array) -> Array:
        """Add the values of a level's units by parent; shape ``(units, ...)`` to ``(parents, ...)``."""
        if level == 0:
            raise DeclarationError("level is 0; the root has no parent")
        values = np.asarray(values)
        sums = self._adders[level - 1] @ values.reshape(len(values), -1)
        return np.asarray(sums).reshape(-1, *values.shape[1:])

    @cached_property
    def _adders(self) -> list[sp.csr_array]:
        """For each level but the last the matrix that adds the values of children by parent."""
        return [
            sp.csr_array((np.ones(len(order), np.int64), order, begin), shape=(len(begin) - 1, len(order)))
            for order, begin in self.children
        ]

    @cached_property
    def children(self) -> list[tuple[Array, Array]]:
        """For each level but the last: the children in order of their parents, and where each begins."""
        found = []
        for parent, above in zip(self.parents, self.sizes[:-1], strict=True):
            order = np.argsort(parent, kind="stable")
            begin = np.zeros(above + 1, dtype=np.int64)
            np.cumsum(np.bincount(parent, minlength=above), out=begin[1:])
            found.append((order, begin))
        return found

    def sums(self, leaf_values: Any) -> list[Array]:
        """Add values of the leaves on all levels, root first.

        Parameters
        ----------
        leaf_values : array_like
            Shape ``(leaves, ...)``.

        Returns
        -------
        list of Array
            Shapes ``(units, ...)``; whole numbers stay whole.
        """
        found = [np.asarray(leaf_values)]
        for level in range(self.depth - 1, 0, -1):
            found.append(self.up(level, found[-1]))
        return found[::-1]

    def ancestors(self, level: int) -> Array:
        """The position of each leaf's ancestor on a level, shape ``(leaves,)``."""
        at = np.arange(self.leaves)
        for lower in range(self.depth - 1, level, -1):
            at = self.parents[lower - 1][at]
        return at

    @cached_property
    def below(self) -> list[Array]:
        """The number of leaves below each unit, by level."""
        return self.sums(np.ones(self.leaves, dtype=np.int64))

    @property
    def branching(self) -> tuple[int, ...]:
        """The number of children of each level's units, for a homogeneous tree.

        Raises
        ------
        DeclarationError
            If units of one level have different numbers of children.
        """
        found = []
        for level, (upper, lower) in enumerate(pairwise(self.sizes)):
            fan = np.bincount(self.parents[level], minlength=upper)
            if (fan != fan[0]).any():
                at = int(np.argmax(fan != fan[0]))
                raise DeclarationError(
                    f"the tree is not homogeneous: {self.name(level, at)} of level {level} has {fan[at]} "
                    f"children, {self.name(level, 0)} has {fan[0]}"
                )
            found.append(lower // upper)
        return tuple(found)

    def __repr__(self) -> str:
        units = ", ".join(f"{size:,}" for size in self.sizes)
        counted = "" if self.counts is None else f"; {int(self.counts.sum()):,} people"
        return f"<Hierarchy of {self.depth} levels: {units} units{counted}>"

    def __str__(self) -> str:
        return repr(self)


def _counts_of_leaves(
    counts: Mapping[Hashable, Any], paths: Sequence[Sequence[Hashable]], units: Sequence[str]
) -> Array:
    """The counts of the leaves in the order of their paths; those of inner units are checked."""
    listed = [str(unit) for unit, _ in counts.items()]
    if extra := [unit for unit in listed if unit not in set(units)]:
        raise unknown("unit of the edges", extra[0], list(units))
    refuse_doubles("counts", listed)
    known = {str(unit): np.asarray(n) for unit, n in counts.items()}
    for unit, values in known.items():
        as_numbers(values, f"counts of {unit}")
    total: dict[str, Any] = {}
    first = str(paths[0][-1])
    for path in paths:
        leaf = str(path[-1])
        if leaf not in known:
            raise DeclarationError(f"unit {leaf} is a leaf without a count")
        if known[leaf].shape != known[first].shape:
            raise DeclarationError(
                f"counts of {leaf} have shape {known[leaf].shape}, and those of {first} "
                f"{known[first].shape}; all must have one"
            )
        for above in map(str, path[:-1]):
            total[above] = total.get(above, 0) + known[leaf]
    for unit, below in total.items():
        if unit in known and np.any(below != known[unit]):
            raise DeclarationError(f"unit {unit}: {known[unit]}, its leaves {below}")
    return np.array([known[str(path[-1])] for path in paths])
