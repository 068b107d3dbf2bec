"""The decision, counts of every unit and type; regions, and the variance of their counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args

import numpy as np
import scipy.sparse as sp
from pydantic import AfterValidator, model_validator

from forcopt.arrays import Array, as_numbers, check_entries, check_shape
from forcopt.data.hierarchy import Hierarchy
from forcopt.declaration import Declared, Integers
from forcopt.errors import DeclarationError, check_choice, require, require_shape, required
from forcopt.models.census_release.passes import least_squares

if TYPE_CHECKING:
    from pandas import DataFrame

Estimator = Literal["top-down", "joint"]
"""Level by level from the root, or all levels at once by weighted least squares."""


def read_budget(epsilon: Any, rho: Any) -> Array:
    """The budget of each level: one of both, above 0."""
    if (epsilon is None) == (rho is None):
        raise DeclarationError("give either epsilon or rho")
    name, given = ("epsilon", epsilon) if rho is None else ("rho", rho)
    budget = as_numbers(given, name)
    check_entries(budget, budget <= 0, name, "it must be above 0")
    return budget


def noise_variances(
    epsilon: Any = None, rho: Any = None, noise: Literal["laplace", "geometric"] = "laplace"
) -> Array:
    """The variance of one noisy count of each level, under substitution of one person.

    Parameters
    ----------
    epsilon : array_like, optional
        The pure budget of each level. A substitution changes two counts of a level by 1, so that the noise
        has scale 2 / epsilon: variance 8 / epsilon^2 for Laplace noise, ``2 b / (1 - b)^2`` with
        ``b = exp(-epsilon / 2)`` for geometric noise.
    rho : array_like, optional
        The zero-concentrated budget of each level, for Gaussian noise: variance 1 / rho.
    noise : Literal["laplace", "geometric"], default "laplace"
        For epsilon.

    Returns
    -------
    Array
        Shape ``(levels,)``.

    Raises
    ------
    DeclarationError
        For budgets that are not above 0, or both.

    Examples
    --------
    >>> noise_variances(epsilon=[0.5, 1.0]).tolist(), noise_variances(rho=[0.25]).tolist()
    ([32.0, 8.0], [4.0])
    """
    check_choice("noise", noise, "laplace", "geometric")
    budget = read_budget(epsilon, rho)
    if rho is not None:
        return np.asarray(1 / budget)
    if noise == "geometric":
        beta = np.exp(-budget / 2)
        return np.asarray(2 * beta / (1 - beta) ** 2)
    return np.asarray(8 / budget**2)


PublicTree = Annotated[Hierarchy, AfterValidator(lambda tree: tree.bare)]
"""A field of the tree without its counts, which are private."""


class Region(Declared):
    """A set of leaves of a hierarchy, such as a district or a precinct.

    Attributes
    ----------
    hierarchy : Hierarchy
        The tree; its counts play no role and are dropped.
    leaves : Integers
        Positions of the region's leaves, each once. The empty region is allowed.
    types : int, default 1
        The number of types that are measured and added up: the variance of a total over 7 types is 7 times
        the variance of one.

    Raises
    ------
    DeclarationError
        For a leaf that does not exist, or is named twice.

    References
    ----------
    Cohen, Duchin, Matthews, Suwal: Census TopDown: The Impacts of Differential Privacy on Redistricting. FORC
    2021, Definitions 1 and 5, Corollary 3.

    Examples
    --------
    >>> tree = Hierarchy(parents=([0, 0], [0, 0, 1, 1, 1]))
    >>> region = Region(tree, leaves=[0, 2, 3])
    >>> round(region.fragmentation(), 6), round(region.variance(epsilon=[1 / 3] * 3), 6)
    (1.180556, 109.5)
    """

    hierarchy: PublicTree
    leaves: Integers
    types: int = 1

    @model_validator(mode="after")
    def _leaves_exist(self) -> Self:
        n = self.hierarchy.leaves
        require_shape(self.leaves.ndim == 1, "leaves have", self.leaves, "be (k,)")
        wrong = self.leaves[(self.leaves < 0) | (self.leaves >= n)]
        if wrong.size:
            raise DeclarationError(f"leaves has {wrong[0]}; the tree has leaves 0 to {n - 1}")
        ordered = np.sort(self.leaves)
        if (np.diff(ordered) == 0).any():
            raise DeclarationError(f"leaf {ordered[int(np.argmax(np.diff(ordered) == 0))]} is named twice")
        require(self.types >= 1, "types", self.types, "be at least 1")
        return self

    @cached_property
    def indicator(self) -> Array:
        """1 for the region's leaves and 0 for others, shape ``(leaves,)``."""
        out = np.zeros(self.hierarchy.leaves)
        out[self.leaves] = 1.0
        return out

    def weights(self) -> list[Array]:
        """The weight of each unit by level: 1 or 0 for a leaf, else the mean over the unit's children.

        Notes
        -----
        Definition 1. The mean is unweighted; it is the share of the leaves only in a homogeneous tree.
        """
        h = self.hierarchy
        found = [self.indicator]
        for level in range(h.depth - 1, 0, -1):
            fan = np.bincount(h.parents[level - 1], minlength=h.sizes[level - 1])
            found.append(h.up(level, found[-1]) / fan)
        return found[::-1]

    def effects(self) -> Array:
        """The factors of the levels' noise variances in the top-down variance, shape ``(d,)``.

        Notes
        -----
        Corollary 3: the root's squared weight; on each level after it the sum of squared differences of the
        units' weights from their parents'.
        """
        w = self.weights()
        steps = [w[level] - w[level - 1][self.hierarchy.parents[level - 1]] for level in range(1, len(w))]
        return np.array([float(w[0][0] ** 2), *(float(s @ s) for s in steps)])

    def fragmentation(self) -> float:
        """The sum over all units but the root of squared differences of weights (Definition 5)."""
        return float(self.effects()[1:].sum())

    def variance(
        self,
        epsilon: Any = None,
        estimator: Estimator = "top-down",
        *,
        rho: Any = None,
        noise: Literal["laplace", "geometric"] = "laplace",
    ) -> float:
        """The variance of the region's count, if counts may be negative.

        Parameters
        ----------
        epsilon, rho, noise
            The budget of each level, see `noise_variances`.
        estimator : Estimator, default "top-down"
            ``"top-down"``, Corollary 3; ``"joint"``, that of the best linear unbiased estimator.
        """
        variances = noise_variances(epsilon, rho, noise)
        check_shape(variances, (self.hierarchy.depth,), "the budget of the levels")
        check_choice("estimator", estimator, *get_args(Estimator))
        if estimator == "top-down":
            return self.types * float(variances @ self.effects())
        squares = [float(z @ z) for z in estimating_vectors(self, variances)]
        return self.types * float(variances @ squares)


def estimating_vectors(region: Region, variances: Array) -> list[Array]:
    """The vectors z_l by level with which the joint estimate of a region is ``sum_l z_l @ noisy_l``.

    The normal equations ``A' W A x = c`` are those of least squares for data ``y_leaf = c / w_leaf`` and 0
    elsewhere; then ``z_l = w_l A_l x``.
    """
    h = region.hierarchy
    precision = 1 / variances
    data = [np.zeros((size, 1)) for size in h.sizes]
    data[-1] = region.indicator[:, None] / precision[-1]
    found = least_squares(h, data, [np.array([w]) for w in precision])
    return [float(w) * level[:, 0] for w, level in zip(precision, h.sums(found), strict=True)]


def deviation_factor(hierarchy: Hierarchy, variances: Any, estimator: Estimator = "top-down") -> sp.csr_array:
    """Give the matrix F with which ``|F m|`` is the standard deviation of the count of leaves m.

    Parameters
    ----------
    hierarchy : Hierarchy
        The tree.
    variances : array_like
        The variance of the noise of each level, shape ``(d,)``; see `noise_variances`.
    estimator : Estimator, default "top-down"
        See `Region.variance`.

    Returns
    -------
    csr_array
        Shape ``(units, leaves)``, units of all levels, root first. In a model ``fo.norm(F @ member)`` is the
        deviation of a district with members ``member``, a second-order cone.

    Notes
    -----
    The row of a unit is the difference between its weight (Definition 1) and its parent's, times the
    standard deviation of the unit given its parent. In top-down order that is the noise's, and weights are
    means over children. For the joint estimator, the variance of a unit is the harmonic sum of its noise's
    and its children's, and the weights of children are in proportion to these variances.

    Examples
    --------
    >>> import numpy as np
    >>> tree = Hierarchy(parents=([0, 0], [0, 0, 1, 1, 1]))
    >>> factor = deviation_factor(tree, noise_variances([1 / 3] * 3))
    >>> round(float(((factor @ [1, 0, 1, 1, 0]) ** 2).sum()), 6)
    109.5
    """
    check_choice("estimator", estimator, *get_args(Estimator))
    noise, h = as_numbers(variances, "the variances"), hierarchy
    if noise.shape != (h.depth,) or (noise <= 0).any():
        raise DeclarationError(f"variances are {noise.tolist()}; they must be {h.depth} numbers above 0")
    weight, spread = sp.csr_array(sp.eye_array(h.leaves)), np.full(h.leaves, noise[-1])
    blocks = []
    for level in range(h.depth - 1, 0, -1):
        parent, above = h.parents[level - 1], h.sizes[level - 1]
        total = np.bincount(parent, weights=spread, minlength=above)
        places = (parent, np.arange(len(parent)))
        mean = sp.csr_array((spread / total[parent], places), shape=(above, len(parent)))
        upper = sp.csr_array(mean @ weight)
        blocks.append(sp.diags_array(np.sqrt(spread)) @ (weight - upper[parent]))
        weight = upper
        spread = np.full(above, noise[level - 1])
        if estimator == "joint":
            spread = spread * total / (spread + total)
    blocks.append(sp.diags_array(np.sqrt(spread)) @ weight)
    return sp.csr_array(sp.vstack(blocks[::-1]))


@dataclass(frozen=True, eq=False)
class Release:
    """Published counts of a hierarchy.

    Attributes
    ----------
    hierarchy : Hierarchy
        The tree, without the private counts.
    counts : tuple[Array, ...]
        By level, root first; shapes ``(units, types)``, read-only.

    Examples
    --------
    >>> from forcopt.data import Hierarchy
    >>> from forcopt.models import ConsistentRelease
    >>> tree = Hierarchy(parents=([0, 0], [0, 0, 1, 1, 1]))
    >>> noisy = ([103], [58, 44], [36, 20, 24, 13, 2])
    >>> p = ConsistentRelease(tree, noisy, precision=[1, 1, 1], integer=True)
    >>> release = p.solve("tree-integer").decision
    >>> [level.ravel().tolist() for level in release.counts]
    [[102], [58, 44], [37, 21, 26, 15, 3]]
    """

    hierarchy: Hierarchy = field(repr=False)
    counts: tuple[Array, ...] = field(repr=False)

    def __post_init__(self) -> None:
        for level in self.counts:
            level.flags.writeable = False

    @classmethod
    def of_leaves(cls, hierarchy: Hierarchy, leaves: Array) -> Release:
        """Make a release of the leaves' counts, which all other counts are sums of.

        Parameters
        ----------
        hierarchy : Hierarchy
            The tree.
        leaves : Array
            Shape ``(leaves, types)``.
        """
        return cls(hierarchy.bare, tuple(hierarchy.sums(leaves)))

    @property
    def leaves(self) -> Array:
        """The leaves' counts, shape ``(leaves, types)``."""
        return self.counts[-1]

    def estimate(self, region: Region | Sequence[int] | Array) -> Array:
        """The count of a region by type, shape ``(types,)``.

        Parameters
        ----------
        region : Region or array_like
            A region, or its leaves' positions.
        """
        leaves = region.leaves if isinstance(region, Region) else np.asarray(region, dtype=np.int64)
        return np.asarray(self.leaves[leaves].sum(axis=0))

    def l1_error(self, counts: Any) -> float:
        """How far the leaves' counts are from others: the sum of differences over twice the people.

        Parameters
        ----------
        counts : array_like
            The true counts of the leaves, shape ``(leaves, types)``.

        Raises
        ------
        DeclarationError
            For another shape, or counts that sum to 0.

        References
        ----------
        Cohen et al. (2021), section 5.2, Table 2.

        Examples
        --------
        >>> tree = Hierarchy(parents=([0, 0],))
        >>> Release.of_leaves(tree, np.array([[3.0], [7.0]])).l1_error([[4], [6]])
        0.1
        """
        true = as_numbers(counts, "the counts")
        check_shape(true, self.leaves.shape, "the counts")
        if not true.sum() > 0:
            raise DeclarationError("the counts sum to 0, so that no error is relative to them")
        return float(np.abs(self.leaves - true).sum() / (2 * true.sum()))

    def to_pandas(self, margins: Sequence[Array] | None = None) -> DataFrame:
        """The counts as a table with columns level, unit, and one for each type; whole counts as integers.

        Parameters
        ----------
        margins : sequence of Array, optional
            Of the counts, see `margins`: a further column for each type.
        """
        pd = required("pandas", "to_pandas")

        h = self.hierarchy
        types = h.types or tuple(f"type {t}" for t in range(self.leaves.shape[1]))
        whole = (self.leaves == np.round(self.leaves)).all()
        frames = []
        for level, counts in enumerate(self.counts):
            units = h.names[level] if h.names else tuple(map(str, range(len(counts))))
            columns: dict[str, Any] = {"level": h.level_name(level), "unit": units}
            for t, name in enumerate(types):
                columns[name] = counts[:, t].astype(np.int64) if whole else counts[:, t]
                if margins is not None:
                    columns[f"{name} margin"] = margins[level][:, t]
            frames.append(pd.DataFrame(columns))
        return pd.concat(frames, ignore_index=True)

    def to_csv(self, path: str | Path, margins: Sequence[Array] | None = None) -> None:
        """Write the table of `to_pandas` to a file."""
        self.to_pandas(margins).to_csv(path, index=False)

    def __repr__(self) -> str:
        total = self.counts[0].sum()
        h = self.hierarchy
        return f"<Release of {h.leaves:,} leaves on {h.depth} levels, {total:,.6g} people>"
