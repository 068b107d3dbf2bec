"""The base of all sampling designs, and drawing a sample."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor, isinf
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import Field

from forcopt.arrays import Array, whole_number
from forcopt.declaration import Declared
from forcopt.errors import DeclarationError
from forcopt.privacy.amplification.loss import PrivacyLoss
from forcopt.privacy.losses import Neighbours
from forcopt.privacy.profile import Profile

if TYPE_CHECKING:
    from pandas import DataFrame


Rate = Annotated[float, Field(ge=0.0, le=1.0)]
Population = int | Sequence[int] | Mapping[str, int] | None
"""The number of records, or the numbers of each stratum or cluster."""

SizeLaw = Sequence[tuple[Sequence[int], float]]
"""Sizes of the samples of all strata, with their probability."""


def draw(
    design: Design, frame: DataFrame, seed: int | np.random.Generator | None = None, *, weight: str = ""
) -> DataFrame:
    """Draw a sample from a table.

    Parameters
    ----------
    design : Design
        The design.
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
        For an empty table, a sample that is larger than its population, or a column that is missing,
        is there already, or has missing values.

    Examples
    --------
    >>> import pandas as pd
    >>> from forcopt.privacy import StratifiedSample
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
    """The base of all designs: a random choice of records from a population.

    Attributes
    ----------
    neighbours : Neighbours
        The relation between populations for which `amplify` holds. The mechanism is private under the same
        relation between samples.
    """

    neighbours: ClassVar[Neighbours] = "add_remove"

    @abstractmethod
    def take(self, frame: DataFrame, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw: the positions of the rows, and the probability with which the design takes each."""

    @property
    def reads_names(self) -> bool:
        """Whether the law of the sample depends on which names of groups occur in the table."""
        return False

    @abstractmethod
    def loss(self, epsilon: float, population: Population = None) -> PrivacyLoss:
        """The loss of an epsilon-private mechanism on a sample.

        Parameters
        ----------
        epsilon : float
            Of the mechanism, between samples that are `neighbours`.
        population : int, sequence or mapping, optional
            The number of records; in each stratum or cluster, for designs that have them. Of two populations
            of which one has a record more, the smaller.

        Raises
        ------
        DeclarationError
            If the design needs a population, or cannot be drawn from this one.
        """

    def counts(self, population: Population) -> list[int]:
        """The numbers of records of the strata or clusters, in the order of the design."""
        if population is None:
            raise DeclarationError("population is missing; give the number of records")
        if isinstance(population, Mapping):
            return list(population.values())
        return list(population) if isinstance(population, Sequence) else [population]

    def total(self, population: Population) -> int:
        """The number of records."""
        return sum(whole_number(n, "population") for n in self.counts(population))

    def size_law(self, counts: Sequence[int]) -> SizeLaw:
        """The sizes of the samples of all strata, with their probability, for given numbers of records.

        Given the sizes, the sample of each stratum is simple random.

        Raises
        ------
        DeclarationError
            For a design of another kind.
        """
        raise DeclarationError(f"{type(self).__name__} does not take simple random samples of strata")

    def amplify(self, profile: Profile, population: Population = None) -> Profile:
        """The profile of a mechanism on a sample, from its profile between samples that are `neighbours`.

        A design whose amplification is known for pure privacy only gives the dominating profile of `loss`.

        Raises
        ------
        DeclarationError
            If such a design meets a mechanism without pure privacy.
        """
        epsilon = profile.largest_loss
        if isinf(epsilon):
            raise DeclarationError(
                f"{type(self).__name__}: its amplification is known for pure privacy only, and the mechanism "
                "has an unbounded loss"
            )
        if epsilon == 0:
            return Profile.nothing()
        loss = self.loss(epsilon, population)
        upper = loss.upper if loss.exact is None else loss.exact
        return Profile.pure(upper) if upper else Profile.nothing()


def chosen(probability: float | Fraction, count: int, rng: np.random.Generator) -> Array:
    """Independent choices, each true with exactly this probability; shape ``(count,)``.

    A uniform number of 53 bits decides, and in the rare tie further bits do.
    """
    scaled = Fraction(probability) * 2**53
    whole = floor(scaled)
    drawn = np.ldexp(rng.random(count), 53)
    out = np.asarray(drawn < whole)
    tied = np.flatnonzero(drawn == whole)
    if len(tied) and scaled != whole:
        out[tied] = chosen(scaled - whole, len(tied), rng)
    return out


def groups_of(frame: DataFrame, by: str) -> dict[str, Array]:
    """The rows of each group, by its name as text."""
    if not hasattr(frame, "columns"):
        raise DeclarationError(f"by is {by!r}, a column of a table; the records are {type(frame).__name__}")
    if by not in frame.columns:
        raise DeclarationError(f"by is {by!r}; the columns are {', '.join(map(str, frame.columns))}")
    if frame[by].isna().any():
        raise DeclarationError(f"column {by!r} has missing values; every record must belong somewhere")
    return {str(name): np.asarray(rows) for name, rows in frame.groupby(by, observed=True).indices.items()}
