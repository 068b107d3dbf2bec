"""Noisy counts of all levels: a query of a private table in units of a tree, or a study of known counts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from forcopt import privacy
from forcopt.arrays import Array, Seed, as_numbers, check_shape
from forcopt.data.hierarchy import Hierarchy
from forcopt.errors import DeclarationError, check_choice, require
from forcopt.models.census_release.problem import ConsistentRelease
from forcopt.models.census_release.release import read_budget
from forcopt.privacy import Measurement as Measured
from forcopt.privacy.queries import Rows, Statistic, Total, View
from forcopt.privacy.tolerances import LAW_SUM


@dataclass(frozen=True, eq=False)
class UnitCounts(Statistic):
    """Some queries of the counts of the units of some levels; a part for each of its places.

    Attributes
    ----------
    leaves : Total
        Counts of the leaves by type.
    order : Array
        The place of each leaf of the tree among the categories of its column.
    tree : Hierarchy
        The units, which are public.
    rows : Array
        The queries, shape ``(queries, types)``.
    places : tuple
        Pairs of a level and a slice of the queries, which get a noise of their own.
    """

    leaves: Total
    order: Array
    tree: Hierarchy
    rows: Array
    places: tuple[tuple[int, slice], ...]
    name: str = "counts of all units"

    @property
    def view(self) -> View:  # type: ignore[override]
        """See `Statistic`."""
        return self.leaves.view

    @property
    def parts(self) -> tuple[Statistic, ...]:
        """See `Statistic`."""
        whole = (self.leaves, self.order, self.tree, self.rows)
        return tuple(UnitCounts(*whole, (place,)) for place in self.places)

    @property
    def shape(self) -> tuple[int, ...]:
        """See `Statistic`."""
        return (sum(self.tree.sizes[level] * len(self.rows[some]) for level, some in self.places),)

    @property
    def sensitivity(self) -> privacy.Sensitivity:
        """See `Statistic`: of a part. A row is in one unit of a level, and in one of its queries at most."""
        change = self.leaves.sensitivity
        return privacy.Sensitivity(*[change.linf] * 3) if self.shape == (1,) else change

    def answer(self, rows: Rows) -> Array:
        """See `Statistic`."""
        levels = self.tree.sums(self.leaves.answer(rows).reshape(len(self.order), -1)[self.order])
        return np.concatenate([(levels[level] @ self.rows[some].T).ravel() for level, some in self.places])


def measure(
    counts: privacy.Query | Hierarchy,
    epsilon: Any = None,
    *,
    tree: Hierarchy | None = None,
    rho: Any = None,
    noise: Literal["geometric", "laplace"] = "geometric",
    workload: Any = None,
    shares: Any = None,
    ledger: privacy.Ledger | str | Path | None = None,
    seed: Seed = None,
    **fields: Any,
) -> ConsistentRelease:
    """Add noise to every unit's counts and declare the problem of making them consistent.

    Parameters
    ----------
    counts : Query or Hierarchy
        ``table.group_by(leaf, *types).count()`` of a private `Table`, grouped by the leaves of the tree and
        then by what makes up a type. Or a tree with counts that are known: then a seed simulates, for a
        study in which one person moves from one leaf or type to another.
    epsilon : array_like, optional
        The pure budget of each level.
    tree : Hierarchy
        Of a query: the units, which are public. If they are named, the leaves are the categories of the
        first column of the groups, in any order, else in theirs.
    rho : array_like, optional
        Or the zero-concentrated budget of each level, for discrete Gaussian noise.
    noise : Literal["geometric", "laplace"], default "geometric"
        For epsilon. Laplace noise is real; OpenDP draws it for a query.
    workload : array_like, optional
        See `ConsistentRelease`; the queries share the level's budget.
    shares : array_like, optional
        The queries' shares of each level's budget, which sum to 1. Queries without common types need none:
        a person is in one of them, so that each gets the whole budget.
    ledger : Ledger, str or Path
        Of all releases about the same people, or its file, from which a query spends before it is answered.
    seed : int or Generator, optional
        Simulates; without it the noise is drawn securely.
    fields : Any
        Of `ConsistentRelease`.

    Returns
    -------
    ConsistentRelease
        With precision 1 / variance; `source` says what was measured, how it was drawn and what it cost.

    Raises
    ------
    DeclarationError
        For a query of anything but counts, a tree whose leaves are not those of the query, budgets that are
        not above 0 or do not fit, both budgets, a workload that does not fit, shares that do not sum to 1;
        for a query without a ledger, or known counts without a seed.
    BudgetSpentError
        If the ledger's budget does not allow the measurement.

    Examples
    --------
    >>> from forcopt.privacy import Categories, Ledger, PureDP, Schema, Table
    >>> tree = Hierarchy(parents=([0, 0], [0, 0, 1]), names=(("state",), ("A", "B"), ("a1", "a2", "b1")))
    >>> people = Table({"tract": ["a1", "a2", "a1", "b1"]}, Schema(tract=Categories("a1", "a2", "b1")))
    >>> ledger = Ledger(PureDP(2.0))
    >>> p = measure(people.group_by("tract").count(), [0.5, 0.5, 1.0], tree=tree, ledger=ledger, integer=True)
    >>> p.solve("tree-integer").status, ledger.spent(), p.source["simulated"]
    (<Status.OPTIMAL: 'optimal'>, 2.0, False)
    >>> study = Hierarchy.homogeneous([2, 3], counts=[5, 0, 2, 7, 1, 1])
    >>> measure(study, epsilon=[0.5, 0.5, 1.0], seed=1).source["simulated"]
    True
    """
    check_choice("noise", noise, "geometric", "laplace")
    if rho is not None and noise == "laplace":
        raise DeclarationError("noise is 'laplace'; for rho the noise is discrete Gaussian")
    rng, (leaves, order, tree) = privacy.randomness(seed=seed), _leaves(counts, tree)
    types = leaves.shape[0] // len(order) if leaves else tree.counts.shape[1]  # type: ignore[union-attr]
    rows, split, groups = _split(types, workload, shares)
    budget = read_budget(epsilon, rho)
    check_shape(budget, (tree.depth,), "epsilon" if rho is None else "rho")
    pure = privacy.Laplace if noise == "laplace" else privacy.DiscreteLaplace
    family = pure if rho is None else privacy.DiscreteGaussian
    places = tuple((level, some) for level in range(tree.depth) for some in groups)
    each = [float(budget[level] * split[some][0]) for level, some in places]
    asked = UnitCounts(leaves, order, tree, rows, places) if leaves else None
    mechanisms = _mechanisms(asked, each, family)
    if asked is None:
        if not rng.simulated or ledger is not None:
            raise DeclarationError(
                "counts are a Hierarchy, which is for a study with a seed, without a ledger; a release takes "
                "a query: measure(table.group_by(leaf).count(), epsilon, tree=tree, ledger=ledger)"
            )
        laws = [family(scale=2 / b if rho is None else b**-0.5) for b in each]
    else:
        laws = [mechanism.noise for mechanism in mechanisms]
    own = [min(q, len(groups) - 1) for q in range(len(rows))]
    by_query = [[laws[level * len(groups) + k] for k in own] for level in range(tree.depth)]
    problem = ConsistentRelease(  # refuses what does not fit before the ledger is charged
        tree,
        tuple(np.zeros((size, len(rows))) for size in tree.sizes),
        1 / np.array([[law.variance for law in level] for level in by_query]),
        workload=workload,
        **fields,
    )
    if asked is None:
        levels = zip(by_query, tree.sums(tree.counts), strict=True)
        noisy = [
            values @ rows.T + np.stack([law.sample(len(values), rng) for law in level], axis=1)
            for level, values in levels
        ]
        return problem.replace(noisy=tuple(noisy), source={"simulated": True})
    query = privacy.Query(asked, counts._table)  # type: ignore[union-attr]
    release = Measured(query, mechanisms).release(ledger, rng, name="census measurement")
    drawn = iter(release.values if len(places) > 1 else [release.values])
    noisy = [np.concatenate([next(drawn).reshape(size, -1) for _ in groups], axis=1) for size in tree.sizes]
    source = {name: value for name, value in release.to_dict().items() if name != "values"}
    return problem.replace(noisy=tuple(noisy), source=source)


def _mechanisms(asked: UnitCounts | None, each: list[float], family: type[privacy.Noise]) -> tuple[Any, ...]:
    """The least noise of each part of a query within its budget."""
    within = privacy.ZCDP if family is privacy.DiscreteGaussian else privacy.PureDP
    parts = asked.parts if asked else ()
    return tuple(family.calibrated(within(b)).mechanism(p, 1) for b, p in zip(each, parts, strict=False))


def _leaves(counts: Any, tree: Hierarchy | None) -> tuple[Total | None, Array, Hierarchy]:
    """The counts of leaves that are asked for, the place of each leaf among them, and the tree."""
    if isinstance(counts, Hierarchy):
        if counts.counts is None:
            raise DeclarationError("the hierarchy has no counts to measure")
        return None, np.zeros(0, dtype=int), counts
    total = counts.statistic if isinstance(counts, privacy.Query) else None
    if not isinstance(total, Total) or total.column is not None or total.workload is not None:
        raise DeclarationError(f"counts is {counts!r}; it must be table.group_by(leaf, ...).count()")
    require(len(total.blocks) == 1 and total.blocks[0], "counts", counts, "be grouped by leaves")
    if total.view.design is not None:
        raise DeclarationError("the table has a design, and would draw another sample for each level")
    if tree is None:
        raise DeclarationError("tree is missing; it has the units of the first column of the groups")
    first, *others = total.blocks[0]
    known = list(map(str, first.labels))
    named = list(tree.names[-1]) if tree.names else known
    if sorted(named) != sorted(known) or len(known) != tree.leaves:
        raise DeclarationError(
            f"the tree has {tree.leaves} leaves, column {first.name!r} {len(known)} categories; they must be "
            "the same"
        )
    cells: list[tuple[str, ...]] = [()]
    for axis in others:
        cells = [(*cell, str(label)) for cell in cells for label in axis.labels]
    types = tuple(map(" / ".join, cells)) if others else ()
    place = {name: at for at, name in enumerate(known)}
    return total, np.array([place[name] for name in named]), tree.bare.replace(types=types)


def _split(types: int, workload: Any, shares: Any) -> tuple[Array, Array, list[slice]]:
    """The queries, the part of a level's budget that each gets, and which of them one noise is for."""
    rows = np.eye(types, dtype=np.int64) if workload is None else as_numbers(workload, "workload")
    if rows.ndim != 2 or not len(rows) or rows.shape[1] != types or ((rows != 0) & (rows != 1)).any():
        raise DeclarationError(f"workload has shape {rows.shape}; it must be (queries, {types}) of 0 and 1")
    queries = len(rows)
    if shares is None:
        if (rows.sum(axis=0) > 1).any():
            raise DeclarationError("shares must be given, since a type lies in several queries")
        return rows, np.ones(queries), [slice(0, queries)]
    split = as_numbers(shares, "shares")
    if split.shape != (queries,) or (split <= 0).any() or abs(split.sum() - 1) > LAW_SUM:
        rule = f"they must be {queries} numbers above 0 that sum to 1"
        raise DeclarationError(f"shares are {split.tolist()}; {rule}")
    return rows, split, [slice(q, q + 1) for q in range(queries)]
