"""Draws of samples and random roundings, by their exact laws."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, pairwise, product
from math import ceil, floor, prod
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.fuzz.draws import DrawCase, Law
from forcopt.numeric import controlled_rounding, dependent_rounding, laminar_lottery, systematic_rounding
from forcopt.privacy import ClusterSample, StratifiedSample

Array = np.ndarray


def fractions(rng: np.random.Generator, shape: tuple[int, ...], most: int = 1) -> list[Fraction]:
    """Numbers from 0 to `most`; many are whole, halves, or sum to whole numbers."""
    base = int(rng.choice([2, 3, 4, 5, 10, 97, 1000]))
    return [Fraction(int(x), base) for x in rng.integers(0, most * base + 1, size=prod(shape))]


def counts(exact: Fraction | float, found: float) -> bool:
    """Whether a number is another one, rounded down or up."""
    return found in (floor(exact), ceil(exact))


def unequal(rng: np.random.Generator) -> DrawCase:
    """Pivotal and systematic draws, and a lottery for nested sets, with the same inclusion probabilities."""
    shares = fractions(rng, (int(rng.integers(1, 8)),))
    if rng.random() < 0.4:  # a whole sum
        last = -sum(shares) % 1
        shares.append(Fraction(last))
    n, total = len(shares), sum(shares, Fraction(0))
    family = [entries for entries in nested(rng, rng.permutation(n).tolist()) if len(entries) < n]
    x = [float(share) for share in shares]
    lottery = laminar_lottery(x, family)

    def check(found: Array) -> str:
        if not {*found.tolist()} <= {0.0, 1.0}:
            return "an entry is neither 0 nor 1"
        if not counts(total, found.sum()):
            return f"the size is {found.sum():g}, not {float(total):g} rounded"
        return ""

    def sampled(generator: Any) -> Array:
        found = lottery.sample(generator)
        for entries in family:
            if not counts(sum((shares[i] for i in entries), Fraction(0)), found[entries].sum()):
                raise AssertionError(f"the count of {entries} is {found[entries].sum():g}")
        return found

    def systematic(generator: Any) -> Array:
        found = np.asarray(systematic_rounding(x, generator), dtype=float)
        for i, j in combinations(range(n + 1), 2):
            if not counts(sum(shares[i:j], Fraction(0)), found[i:j].sum()):
                raise AssertionError(f"the count of the run from {i} to {j} is {found[i:j].sum():g}")
        return found

    draws: dict[str, Callable[[Any], Array]] = {
        "pivotal": lambda generator: dependent_rounding(x, generator),
        "systematic": systematic,
        "nested sets": sampled,
    }
    laws = {"pivotal": pivotal_law(shares), "systematic": systematic_law(shares)}
    return DrawCase(draws, np.array(x), check, laws)


def nested(rng: np.random.Generator, entries: list[int]) -> list[list[int]]:
    """A random family of nested sets: some are left out."""
    found = [entries] if rng.random() < 0.7 else []
    if len(entries) < 2:
        return found
    at = int(rng.integers(1, len(entries)))
    return found + nested(rng, entries[:at]) + nested(rng, entries[at:])


def systematic_law(shares: list[Fraction]) -> Law:
    """By the intervals of the random start between which no cumulated sum passes a whole number."""
    ends = [sum(shares[:i], Fraction(0)) for i in range(len(shares) + 1)]
    cuts = sorted({-end % 1 for end in ends} | {Fraction(0), Fraction(1)})
    law: dict[tuple[float, ...], float] = defaultdict(float)
    for low, high in pairwise(cuts):
        steps = [floor(end + (low + high) / 2) for end in ends]
        law[tuple(float(b - a) for a, b in pairwise(steps))] += float(high - low)
    return law


def pivotal_law(shares: list[Fraction]) -> Law:
    """By all duels between the entry that is open and the next one."""
    law: dict[tuple[float, ...], float] = defaultdict(float)

    def duel(values: tuple[Fraction, ...], chance: Fraction) -> None:
        open_ = [i for i, value in enumerate(values) if 0 < value < 1]
        if not chance:
            return
        if not open_:
            law[tuple(map(float, values))] += float(chance)
            return
        i = open_[0]
        p = values[i]
        if len(open_) == 1:
            for value, share in ((Fraction(1), p), (Fraction(0), 1 - p)):
                duel((*values[:i], value, *values[i + 1 :]), chance * share)
            return
        j = open_[1]
        q = values[j]
        full, rest = (p + q, Fraction(0)) if p + q <= 1 else (Fraction(1), p + q - 1)
        first = (p - rest) / (full - rest)  # the probability of (full, rest) that keeps p
        for own, other, share in ((full, rest, first), (rest, full, 1 - first)):
            after = list(values)
            after[i], after[j] = own, other
            duel(tuple(after), chance * share)

    duel(tuple(shares), Fraction(1))
    return law


def two_stage(rng: np.random.Generator) -> DrawCase:
    """Clusters at random, and records of each at random: all pairs of sets are equally likely."""
    sizes = rng.integers(1, 4, size=int(rng.integers(1, 5))).tolist()
    chosen = int(rng.integers(0, len(sizes) + 1))
    units = [int(rng.integers(0, size + 1)) for size in sizes]
    names = [f"c{i}" for i in range(len(sizes))]
    place = np.repeat(np.arange(len(sizes)), sizes)
    frame = pd.DataFrame({"cluster": [names[i] for i in place], "row": np.arange(len(place))})
    frame = frame.iloc[rng.permutation(len(frame))].reset_index(drop=True)
    row = frame["row"].to_numpy()
    share = np.array([chosen / len(sizes) * units[i] / sizes[i] for i in place])

    def sample(generator: Any) -> Array:
        rows, first = ClusterSample(by="cluster", chosen=chosen).take(frame, generator)
        found, part = np.zeros(len(frame)), frame.iloc[rows].reset_index(drop=True)
        if len(part):
            taken = {name: units[names.index(name)] for name in part["cluster"].unique()}
            kept, second = StratifiedSample(by="cluster", sizes=taken).take(part, generator)
            found[row[rows[kept]]] += 1
            if np.abs(first[kept] * second - share[row[rows[kept]]]).max(initial=0.0) > 1e-12:
                raise AssertionError(f"the stages give the probabilities {first[kept] * second}")
        return found

    law: dict[tuple[float, ...], float] = defaultdict(float)
    clusters = list(combinations(range(len(sizes)), chosen))
    for taken in clusters:
        parts = [list(combinations(np.flatnonzero(place == i).tolist(), units[i])) for i in taken]
        every = list(product(*parts))
        for sets in every:
            found = np.zeros(len(place))
            found[[i for part in sets for i in part]] = 1.0
            law[tuple(found.tolist())] += 1 / len(clusters) / len(every)

    def check(found: Array) -> str:
        each = np.bincount(place, found, len(sizes)).tolist()
        full = [count == size for count, size in zip(each, units, strict=True)]
        fits = all(f or not count for f, count in zip(full, each, strict=True))
        some = sum(count > 0 for count in each)
        least = max(0, chosen - units.count(0))
        return "" if fits and least <= some <= chosen else f"the clusters have {each} records"

    return DrawCase({"two-stage": sample}, share, check, {"two-stage": law})


def controlled(rng: np.random.Generator) -> DrawCase:
    """Cox's rounding of a two-way table: cells, rows, columns and total, with all expectations."""
    shape = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    cells = fractions(rng, shape, most=int(rng.integers(1, 4)))
    table = np.array(cells, dtype=object).reshape(shape)

    def check(found: Array) -> str:
        parts = (
            (found, table),
            (found.sum(axis=0), table.sum(axis=0)),
            (found.sum(axis=1), table.sum(axis=1)),
            ([found.sum()], [table.sum()]),
        )
        for name, (own, exact) in zip(("cell", "column", "row", "total"), parts, strict=True):
            for a, b in zip(np.ravel(own), np.ravel(exact), strict=True):
                if not counts(b, a):
                    return f"a {name} is {a:g}, not {float(b):g} rounded"
        return ""

    values = table.astype(float)
    return DrawCase({"cox": lambda generator: controlled_rounding(values, generator)}, values, check)


CAMPAIGNS = {"unequal-draws": unequal, "two-stage-draws": two_stage, "controlled-rounding": controlled}
