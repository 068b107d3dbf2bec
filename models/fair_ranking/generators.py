"""Random candidates: the moving company of the literature, and scores that differ by group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array
from forcopt.fairness.ranking import RankingNotion
from forcopt.models.fair_ranking.problem import FairRanking

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["moving_company", "random_ranking"]


def moving_company(n: int = 2000, seed: int | np.random.Generator | None = None) -> DataFrame:
    """Applicants of a moving company: sex G, race R, strength X, score Y.

    37 % are women (G = F) and, independently, 37 % Black (R = B). Strength depends on sex, the score on
    strength and directly on both: ``Y = .8 X + .2 D`` with a draw D of laws that depend on sex and race.

    Parameters
    ----------
    n : int, default 2000
        The number of applicants.
    seed : int or numpy.random.Generator, optional
        Of the draws.

    Returns
    -------
    DataFrame
        Columns G, R, X and Y.

    References
    ----------
    Yang, Loftus, Stoyanovich (FORC 2021), section 4.1; noise as in the authors' published archive.

    Examples
    --------
    >>> moving_company(100, seed=1).G.value_counts().to_dict()
    {'M': 63, 'F': 37}
    """
    from pandas import DataFrame

    rng = np.random.default_rng(seed)
    few = round(0.37 * n)
    female, black = (rng.permutation(np.arange(n) < few) for _ in range(2))

    def by_sex() -> Any:
        return rng.normal(np.where(female, -1.0, 0.0), np.sqrt(np.where(female, 1.0, 0.5)))

    x = by_sex()
    both = female & black
    of_race = rng.normal(
        np.where(both, -1.1, np.where(black, -1.0, 0.0)),
        np.sqrt(np.where(both, 0.9, np.where(black, 1.0, 0.5))),
    )
    y = 0.8 * x + 0.2 * (0.6 * by_sex() + 0.4 * of_race)
    return DataFrame({"G": np.where(female, "F", "M"), "R": np.where(black, "B", "W"), "X": x, "Y": y})


def random_ranking(
    n: int,
    positions: int,
    levels: tuple[int, ...] = (2, 2),
    seed: int | np.random.Generator | None = None,
    constraint: RankingNotion | None = None,
    **fields: Any,
) -> FairRanking:
    """Candidates with scores that are normal around a mean of each level, and not negative.

    Parameters
    ----------
    n, positions : int
        Of candidates and positions.
    levels : tuple[int, ...], default (2, 2)
        How many levels each attribute has; the attributes are named ``a``, ``b``, ...
    seed : int or numpy.random.Generator, optional
        Of the draws.
    constraint : RankingNotion, optional
        The demands.
    fields : Any
        Other fields of the problem.

    Returns
    -------
    FairRanking
        With n candidates.

    Examples
    --------
    >>> random_ranking(6, 3, seed=1).groups["a"]
    ('0', '1', '1', '0', '0', '0')
    """
    rng = np.random.default_rng(seed)
    groups: dict[str, tuple[str, ...]] = {}
    scores: Array = rng.normal(3.0, 1.0, n)
    for at, count in enumerate(levels):
        codes = np.concatenate([np.arange(min(count, n)), rng.integers(0, count, max(n - count, 0))])
        codes = rng.permutation(codes)
        groups["abcdefgh"[at]] = tuple(map(str, codes))
        scores = scores - 0.5 * codes
    scores = np.round(np.maximum(scores, 0.0), 6)
    return FairRanking(
        scores=np.asarray(scores, dtype=np.float64),
        positions=positions,
        groups=groups,
        constraint=constraint,
        **fields,
    )
