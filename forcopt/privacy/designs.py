"""Sampling designs that really draw samples from a table of records."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from forcopt.arrays import Array
from forcopt.declaration import Declared
from forcopt.errors import DeclarationError
from forcopt.privacy.amplification import rounded_sizes
from forcopt.privacy.losses import SampledLoss, SubstitutedLoss
from forcopt.privacy.profile import Profile

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "ClusterSample",
    "Design",
    "PoissonSample",
    "ProportionalAllocation",
    "RandomizedRounding",
    "SimpleRandomSample",
    "StratifiedSample",
    "draw",
]

Rate = Annotated[float, Field(ge=0.0, le=1.0)]


def draw(
    design: Design, frame: DataFrame, seed: int | np.random.Generator | None = None, *, weight: str = ""
) -> DataFrame:
    """Draw a sample from a table.

    Parameters
    ----------
    design : Design
        How.
    frame : DataFrame
        One row for each record; an array or list will not do, since a sample keeps its rows.
    seed : int or numpy.random.Generator, optional
        An int or a generator; the same int draws the same sample.
    weight : str, default ""
        The name of a column to add: the design weight of each row, one over the probability with which the
        design takes it. Weighted sums over the sample estimate the table's without bias.

    Returns
    -------
    DataFrame
        The rows of the sample, in the order of the table and with its index.

    Raises
    ------
    DeclarationError
        For an empty table, a sample that is larger than what it is drawn from, or a column that is missing,
        is there already, or has missing values.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"town": list("aaaabbbbbb"), "age": range(20, 30)})
    >>> sample = draw(StratifiedSample(by="town", sizes={"a": 1, "b": 2}), people, seed=1, weight="w")
    >>> sample["town"].tolist(), sample["w"].tolist()
    (['a', 'b', 'b'], [4.0, 3.0, 3.0])
    """
    if not len(frame):
        raise DeclarationError("frame is empty; there is nothing to sample")
    if weight and weight in frame.columns:
        raise DeclarationError(f"weight: the table has a column {weight!r} already")
    rows, probability = design.take(frame, np.random.default_rng(seed))
    order = np.argsort(rows, kind="stable")
    sample = frame.iloc[rows[order]]
    return sample.assign(**{weight: 1.0 / probability[order]}) if weight else sample


class Design(Declared):
    """The base of all designs."""

    @abstractmethod
    def take(self, frame: DataFrame, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw: the positions of the rows, and the probability with which the design takes each."""

    def amplify(self, profile: Profile, population: int | None = None) -> Profile:
        """The profile of a mechanism on a sample of this design.

        Raises
        ------
        DeclarationError
            For a design whose amplification is known for pure privacy only (`forcopt.privacy.amplification`).
        """
        raise DeclarationError(
            f"{type(self).__name__} amplifies pure privacy only; see forcopt.privacy.amplification"
        )


class SimpleRandomSample(Design):
    """So many records, without replacement, every set of them equally likely.

    Attributes
    ----------
    size : int
        How many.
    """

    size: int = Field(ge=0)

    def amplify(self, profile: Profile, population: int | None = None) -> Profile:
        """Exact between data of `population` records that differ by a substitution."""
        if population is None or population < max(1, self.size):
            raise DeclarationError(
                f"population is {population}; it must be a number, at least size {self.size}"
            )
        if self.size == 0:
            return Profile.nothing()
        losses = [SubstitutedLoss(loss, self.size / population) for loss in profile.single()]
        return Profile.of(*losses, tight=profile.tight)

    def take(self, frame: DataFrame, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw."""
        n = len(frame)
        if self.size > n:
            raise DeclarationError(f"size is {self.size}; the table has {n} rows")
        return rng.choice(n, self.size, replace=False), np.full(self.size, self.size / n)


class PoissonSample(Design):
    """Each record independently, with the same probability.

    Attributes
    ----------
    rate : Rate
        The probability.
    """

    rate: Rate

    def amplify(self, profile: Profile, population: int | None = None) -> Profile:
        """Exact between data of which one has a record more: (1 - rate) Q + rate P against Q, and back."""
        if self.rate == 0:
            return Profile.nothing()
        one, other = profile.single()
        return Profile.of(
            SampledLoss(one, self.rate), SampledLoss(other, self.rate, added=True), tight=profile.tight
        )

    def take(self, frame: DataFrame, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw."""
        rows = np.flatnonzero(rng.random(len(frame)) < self.rate)
        return rows, np.full(len(rows), self.rate)


class RandomizedRounding(Design):
    """A share of the records, rounded up or down at random so that the mean size is just that share.

    Attributes
    ----------
    rate : Rate
        The share, from 0 to 1, read as the simplest fraction that it stands for.

    References
    ----------
    Bun et al. (2022), section 4.2.
    """

    rate: Rate

    def take(self, frame: DataFrame, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw."""
        rows = _share(self.rate, np.arange(len(frame)), rng)
        return rows, np.full(len(rows), self.rate)


class ProportionalAllocation(Design):
    """The same share of every stratum, rounded at random in each.

    Attributes
    ----------
    by : str
        The column that names each record's stratum.
    rate : Rate
        The share, as in `RandomizedRounding`.

    References
    ----------
    Bun et al. (2022), section 6.3.
    """

    by: str
    rate: Rate

    def take(self, frame: DataFrame, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw."""
        parts = [_share(self.rate, rows, rng) for rows in _groups(frame, self.by).values()]
        rows = np.concatenate(parts)
        return rows, np.full(len(rows), self.rate)


class StratifiedSample(Design):
    """So many records of each stratum, without replacement.

    Attributes
    ----------
    by : str
        The column that names each record's stratum.
    sizes : Mapping[str, int]
        How many of which stratum, one entry for each stratum of the table; the allocations of
        `forcopt.models.StratifiedAllocation` give it by ``decision.by_stratum()``.
    """

    by: str
    sizes: Mapping[str, Annotated[int, Field(ge=0)]]

    def take(self, frame: DataFrame, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw."""
        strata = _groups(frame, self.by)
        for name in {*strata} ^ {*self.sizes}:
            where = "sizes" if name in strata else "the table"
            raise DeclarationError(f"stratum {name!r} is missing in {where}")
        parts, shares = [], []
        for name, rows in strata.items():
            size = self.sizes[name]
            if size > len(rows):
                raise DeclarationError(f"sizes: {name!r} is {size}; the stratum has {len(rows)} records")
            parts.append(rng.choice(rows, size, replace=False))
            shares.append(np.full(size, size / len(rows)))
        return np.concatenate(parts), np.concatenate(shares)


class ClusterSample(Design):
    """All records of so many clusters, every set of so many clusters being equally likely.

    Attributes
    ----------
    by : str
        The column that names each record's cluster.
    chosen : int
        How many clusters.
    """

    by: str
    chosen: int = Field(ge=0)

    def take(self, frame: DataFrame, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw."""
        clusters = list(_groups(frame, self.by).values())
        if self.chosen > len(clusters):
            raise DeclarationError(f"chosen is {self.chosen}; the table has {len(clusters)} clusters")
        taken = rng.choice(len(clusters), self.chosen, replace=False)
        rows = np.concatenate([clusters[i] for i in taken] or [np.empty(0, dtype=np.int64)])
        return rows, np.full(len(rows), self.chosen / len(clusters))


def _share(rate: float, rows: Array, rng: np.random.Generator) -> Array:
    law = rounded_sizes(rate, len(rows))
    size = rng.choice(len(law), p=law)
    return rng.choice(rows, size, replace=False)


def _groups(frame: DataFrame, by: str) -> dict[str, Array]:
    """The rows of each group, by its name as text."""
    if by not in frame.columns:
        raise DeclarationError(f"by is {by!r}; the columns are {', '.join(map(str, frame.columns))}")
    if frame[by].isna().any():
        raise DeclarationError(f"column {by!r} has missing values; every record must belong somewhere")
    return {str(name): np.asarray(rows) for name, rows in frame.groupby(by, observed=True).indices.items()}
