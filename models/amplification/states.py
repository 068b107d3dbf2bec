"""The samples that two neighbouring populations may give, up to symmetry, and how far apart they are.

Only the changed records matter: averaging a mechanism over all orders of the common records of a stratum
keeps it private, so that samples with equally many of them are one state.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod
from typing import NamedTuple, get_args

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError, check_choice
from forcopt.privacy.amplification import whole_number
from forcopt.privacy.amplification.design import SizeLaw
from forcopt.privacy.losses import Neighbours, SampleRelation

MOST_STATES = 100_000


class Pair(NamedTuple):
    """Two laws over the same samples.

    Attributes
    ----------
    before, after : Array
        The probability of each sample under the two populations, shape ``(samples,)``.
    edges : Array
        Pairs of samples, shape ``(edges, 2)``.
    steps : Array
        How far apart they are, in the mechanism's neighbour relation, shape ``(edges,)``.
    """

    before: Array
    after: Array
    edges: Array
    steps: Array


def stratified_pair(
    sizes: Sequence[int], before: SizeLaw, after: SizeLaw, changed: int, mechanism: str, neighbours: str
) -> Pair:
    """Simple random samples within strata, of sizes that may depend on the population.

    A state counts the common records of each stratum in the sample, and marks whether the record x that only
    the first, or y that only the second population has: none, y, or x.

    Parameters
    ----------
    sizes : Sequence[int]
        Of the strata in the first population.
    before, after : SizeLaw
        The law of the samples' sizes under the two populations.
    changed : int
        The stratum that gets one record more, or in which one is substituted.
    mechanism, neighbours
        See `forcopt.privacy.amplification`.
    """
    check_choice("mechanism", mechanism, *get_args(SampleRelation))
    check_choice("neighbours", neighbours, *get_args(Neighbours))
    n = np.array(sizes, dtype=np.int64)
    common, larger = n.copy(), n.copy()
    if neighbours == "substitute":
        common[changed] -= 1
    else:
        larger[changed] += 1
    weights: list[dict[tuple[int, ...], float]] = [{}, {}]
    for side, law, total in ((0, before, n), (1, after, larger)):
        own = {0: 2 if neighbours == "substitute" else None, 1: 1}[side]
        for allocation, probability in law:
            m = np.array([whole_number(size, "a sample's size") for size in allocation], dtype=np.int64)
            if m.shape != n.shape or (m < 0).any() or (m > total).any():
                raise DeclarationError(f"a sample of {m.tolist()} cannot be drawn from {total.tolist()}")
            share = 0.0 if own is None else m[changed] / total[changed]
            for drawn, chance in ((None, 1 - share), (own, share)):
                if chance * probability > 0:
                    state = m.copy()
                    state[changed] -= drawn is not None
                    key = (*state.tolist(), drawn or 0)
                    weights[side][key] = weights[side].get(key, 0.0) + chance * probability
    # Shortest paths between states of a box stay in the box, so that no others are needed.
    support = np.array([*weights[0], *weights[1]])
    low, high = support.min(axis=0), support.max(axis=0)
    low[-1], high[-1] = 0, 1 if neighbours == "add_remove" else 2
    shape = tuple((high - low + 1).tolist())
    if prod(shape) > MOST_STATES:
        raise DeclarationError(f"the design has {prod(shape)} states; it may have {MOST_STATES} at most")
    laws = np.zeros((2, *shape))
    for side in (0, 1):
        for key, weight in weights[side].items():
            laws[(side, *(np.array(key) - low))] = weight
    edges, steps = _box_edges(shape, mechanism)
    return Pair(laws[0].ravel(), laws[1].ravel(), edges, steps)


def _box_edges(shape: tuple[int, ...], mechanism: str) -> tuple[Array, Array]:
    """Neighbouring states: axes count common records, the last one the record of its own."""
    index = np.arange(prod(shape)).reshape(shape)
    strata = len(shape) - 1
    moves: list[tuple[Array, Array]] = []

    def along(part: Array, axis: int, up: bool) -> Array:
        return part.take(range(1, part.shape[axis]) if up else range(part.shape[axis] - 1), axis)

    if mechanism != "substitute":  # one record is added or removed
        moves += [(along(index, axis, False), along(index, axis, True)) for axis in range(strata)]
        moves += [(index[..., 0], index[..., own]) for own in range(1, shape[-1])]
    if mechanism != "add_remove":  # one record is replaced by another
        for one, other in combinations(range(strata), 2):
            up, down = (along(along(index, one, side), other, not side) for side in (True, False))
            moves.append((up, down))
        for own in range(1, shape[-1]):
            for axis in range(strata):
                moves.append((along(index[..., 0], axis, True), along(index[..., own], axis, False)))
        if shape[-1] == 3:
            moves.append((index[..., 1], index[..., 2]))
    edges = np.concatenate([np.stack([s.ravel(), t.ravel()], axis=1) for s, t in moves])
    return edges, np.ones(len(edges))


def cluster_pair(sizes: Sequence[int], chosen: int, changed: int, neighbours: Neighbours) -> Pair:
    """All sets of `chosen` clusters, equally likely; samples differ by whole clusters and the changed record.

    Parameters
    ----------
    sizes : Sequence[int]
        Of the clusters in the first population.
    chosen : int
        How many are taken.
    changed : int
        The cluster that gets one record more, or in which one is substituted.
    neighbours : Neighbours
        See `forcopt.privacy.amplification`; mechanisms are private under adding and removing.
    """
    check_choice("neighbours", neighbours, *get_args(Neighbours))
    sets = list(combinations(range(len(sizes)), chosen))
    if 2 * len(sets) > MOST_STATES:
        raise DeclarationError(f"there are {len(sets)} sets of clusters; there may be {MOST_STATES // 2}")
    place = {s: i for i, s in enumerate(sets)}
    holds = [s for s in sets if changed in s]
    own = {s: len(sets) + i for i, s in enumerate(holds)}
    before, after = np.zeros(len(sets) + len(holds)), np.zeros(len(sets) + len(holds))
    before[: len(sets)] = 1 / len(sets)
    after[[own.get(s, place[s]) for s in sets]] = 1 / len(sets)
    more = neighbours == "add_remove"
    edges = [(place[s], own[s]) for s in holds]
    steps = [1.0 if more else 2.0] * len(holds)
    for s in sets:
        for out in s:
            for into in range(len(sizes)):
                if into in s or into < out:
                    continue
                t = tuple(sorted({*s} - {out} | {into}))
                edges.append((place[s], place[t]))
                steps.append(sizes[out] + sizes[into])
                if s in own or t in own:
                    edges.append((own.get(s, place[s]), own.get(t, place[t])))
                    steps.append(sizes[out] + sizes[into] + (more and changed in (out, into)))
    return Pair(before, after, np.array(edges).reshape(-1, 2), np.array(steps, dtype=float))
