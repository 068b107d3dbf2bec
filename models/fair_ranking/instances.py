"""Seeded rankings, and the instances of the library: parity of exposure, prefix quotas, orders, sets."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array, Seed
from forcopt.errors import required
from forcopt.fairness import CounterfactualOrder, ExposureParity, InGroupFairness
from forcopt.fairness.ranking import PrefixQuotas, RankingNotion, SelectionParity
from forcopt.instance import by_name, family
from forcopt.models.fair_ranking.problem import FairRanking

if TYPE_CHECKING:
    from pandas import DataFrame


def moving_company(n: int = 2000, seed: Seed = None) -> DataFrame:
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
    pd = required("pandas", "moving_company")

    rng = np.random.default_rng(seed)
    few = round(0.37 * n)
    female, black = (rng.permutation(np.arange(n) < few) for _ in range(2))

    def by_sex() -> Any:
        return rng.normal(np.where(female, -1.0, 0.0), np.sqrt(np.where(female, 1.0, 0.5)))

    x = by_sex()
    both = female & black
    mean = np.select([both, black], [-1.1, -1], 0)
    of_race = rng.normal(mean, np.sqrt(np.select([both, black], [0.9, 1], 0.5)))
    y = 0.8 * x + 0.2 * (0.6 * by_sex() + 0.4 * of_race)
    return pd.DataFrame({"G": np.where(female, "F", "M"), "R": np.where(black, "B", "W"), "X": x, "Y": y})


def random_ranking(
    n: int,
    positions: int,
    levels: tuple[int, ...] = (2, 2),
    seed: Seed = None,
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
    scores = np.asarray(scores, dtype=np.float64)
    return FairRanking(scores, positions=positions, groups=groups, constraint=constraint, **fields)


def _drawn(n: int, k: int, levels: tuple[int, ...], constraint: RankingNotion, integer: bool) -> FairRanking:
    return random_ranking(n, k, levels, seed=n + k, constraint=constraint, integer=integer)


def _by_order(n: int, k: int, slack: float, integer: bool) -> FairRanking:
    """Counterfactual scores that raise the first attribute's second level."""
    p = random_ranking(n, k, seed=n + k)
    raised = np.array([float(level) for level in p.groups["a"]])
    noise = np.random.default_rng(n).normal(0.0, 0.3, n)
    assert p.scores is not None
    scores = np.round(p.scores + 0.8 * raised + noise, 6)
    return p.replace(constraint=CounterfactualOrder(scores=scores, slack=slack), integer=integer)


def _set(n: int, k: int, integer: bool) -> FairRanking:
    demand = SelectionParity(0.5, by=("a",)) & SelectionParity(0.5, by=("b",))
    p = random_ranking(n, k, (3, 4), seed=n, constraint=demand, weights=np.ones(k), integer=integer)
    return p.replace(constraint=demand & InGroupFairness(0.75, by=())) if integer else p


_THREE = PrefixQuotas(by=("a",)) & PrefixQuotas(by=("b",)) & PrefixQuotas(by=("c",))

_LOTTERY = partial(_drawn, levels=(2, 2), constraint=ExposureParity(), integer=False)
_RANKING = partial(_drawn, levels=(2, 2), constraint=ExposureParity(0.02), integer=True)
_QUOTAS = partial(_drawn, levels=(2, 2), constraint=PrefixQuotas(), integer=True)
_THREE_QUOTAS = partial(_drawn, levels=(2, 2, 3), constraint=_THREE, integer=True)

INSTANCES = by_name(
    family("ranking/parity-{}-{}", _LOTTERY, "assignment", (60, 10), (200, 20)),
    family("ranking/parity-{}-{}", _LOTTERY, "prefix-counts", (2000, 100)),
    family("ranking/parity-ranking-{}-{}", _RANKING, "milp", (30, 10)),
    family("ranking/parity-ranking-{}-{}", _RANKING, "prefix-counts", (100, 20)),
    family("ranking/quotas-{}-{}", _QUOTAS, "prefix-counts", (100, 20), (500, 50)),
    family("ranking/three-quotas-{}-{}", _THREE_QUOTAS, "prefix-counts", (100, 20), (500, 50)),
    family("ranking/order-{}-{}", _by_order, "assignment", (40, 10, 0.25, False)),
    family("ranking/order-ranking-{}-{}", _by_order, "milp", (20, 8, 0.25, True)),
    family("ranking/set-{}-{}", _set, "milp", (120, 30, True)),
)
