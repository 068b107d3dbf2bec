"""The exact law of a random draw: every outcome with its probability, by replaying all random choices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import isclose
from typing import Any

import numpy as np
from scipy.stats import binom

__all__ = ["DrawCase", "Law", "draw_answers", "law_of"]

Array = np.ndarray
Law = Mapping[tuple[float, ...], float]
"""The probability of each outcome."""

MOST = 3_000
"""Outcomes of random choices that are replayed; a draw with more is judged by samples alone."""

DRAWS = 20
"""Samples of each draw with a pseudorandom generator."""

ERROR = 1e-9
"""The probability, at most, with which samples of a correct draw are called wrong."""

CLOSE = 1e-7


@dataclass(frozen=True)
class DrawCase:
    """Draws with the same expectation, and the demands on every outcome.

    Attributes
    ----------
    draws : Mapping[str, Callable[[Any], Array]]
        By name: gives an outcome for a generator; it uses ``random`` and ``choice`` only.
    mean : Array
        The expectation of the outcome.
    check : Callable[[Array], str]
        Finds an error in an outcome; empty if there is none.
    laws : Mapping[str, Law], optional
        The whole law of some draws, by code of its own.
    """

    draws: Mapping[str, Callable[[Any], Array]]
    mean: Array
    check: Callable[[Array], str]
    laws: Mapping[str, Law] = field(default_factory=dict)


class _Script:
    """Stands for a generator: follows a list of choices, and takes the first where the list ends."""

    def __init__(self, path: tuple[int, ...]) -> None:
        self.path, self.taken = path, 0
        self.probability = 1.0
        self.others: list[tuple[int, ...]] = []

    def choose(self, probabilities: Sequence[float]) -> int:
        """One of some alternatives."""
        able = [i for i, p in enumerate(probabilities) if p > 0]
        if self.taken == len(self.path):
            self.others += [(*self.path, i) for i in able[1:]]
            self.path = (*self.path, able[0])
        one = self.path[self.taken]
        self.taken += 1
        self.probability *= probabilities[one]
        return one

    def random(self, size: int | None = None) -> Any:
        """As `numpy.random.Generator.random`; a comparison chooses the side."""
        if size is None:
            return _Uniform(self, [0.0, 1.0])
        found = np.empty(size, dtype=object)
        found[:] = [_Uniform(self, [0.0, 1.0]) for _ in range(size)]
        return found

    def choice(self, pool: Any, size: int | None = None, replace: bool = True, p: Any = None) -> Any:
        """As `numpy.random.Generator.choice`: one entry, or a set of entries without replacement."""
        entries = np.arange(pool) if np.ndim(pool) == 0 else np.asarray(pool)
        if size is None:
            return entries[self.choose(np.full(len(entries), 1 / len(entries)) if p is None else p)]
        assert not replace and p is None
        sets = list(combinations(range(len(entries)), int(size)))
        return entries[list(sets[self.choose([1 / len(sets)] * len(sets))])]


class _Uniform:
    """The number ``scale * u`` for a u that is uniform between two ends so far."""

    def __init__(self, script: _Script, ends: list[float], scale: float = 1.0) -> None:
        self.script, self.ends, self.scale = script, ends, scale

    def __mul__(self, factor: float) -> _Uniform:
        return _Uniform(self.script, self.ends, self.scale * factor)

    def __lt__(self, limit: float) -> bool:
        low, high = self.ends
        cut = float(limit) / self.scale
        share = min(max((cut - low) / (high - low), 0.0), 1.0)
        below = self.script.choose([share, 1.0 - share]) == 0
        if 0 < share < 1:
            self.ends[1 if below else 0] = cut
        return below

    def __ge__(self, limits: Any) -> Any:
        return np.array([not self < limit for limit in np.ravel(limits)]).reshape(np.shape(limits))


def law_of(draw: Callable[[Any], Array]) -> Law | None:
    """The exact law of a draw; None if there are too many choices.

    Parameters
    ----------
    draw : Callable[[Any], Array]
        As in `DrawCase`.

    Returns
    -------
    Law or None
        Its probabilities sum to 1.
    """
    found: dict[tuple[float, ...], float] = defaultdict(float)
    paths: list[tuple[int, ...]] = [()]
    for _ in range(MOST):
        if not paths:
            return found
        script = _Script(paths.pop())
        outcome = np.asarray(draw(script), dtype=float).ravel()
        found[tuple(outcome.tolist())] += script.probability
        paths += script.others
    return None


def draw_answers(case: DrawCase, rng: np.random.Generator) -> Iterator[tuple[str, str, str]]:
    """Judge every draw by its exact law, and samples with a generator by that law.

    Yields
    ------
    tuple[str, str, str]
        The draw, and the same with ``(samples)``; its verdict (right, wrong, not decided); the error.
    """
    for name, draw in case.draws.items():
        law: Law | None = None
        try:
            law = law_of(draw)
            words = "" if law is None else _law_error(case, name, law)
            yield name, "not decided" if law is None else "wrong" if words else "right", words
            words = _sample_error(case, [draw(rng) for _ in range(DRAWS)], law)
            yield f"{name} (samples)", "wrong" if words else "right", words
        except Exception as error:
            yield name, "wrong", f"raised {type(error).__name__}: {error}"


def _law_error(case: DrawCase, name: str, law: Law) -> str:
    mean = sum(p * np.array(outcome) for outcome, p in law.items())
    if not isclose(sum(law.values()), 1.0, abs_tol=CLOSE):
        return f"the probabilities sum to {sum(law.values())}"
    if np.abs(mean - case.mean.ravel()).max() > CLOSE:
        return f"the expectation is {mean}, not {case.mean.ravel()}"
    for outcome in law:
        if words := case.check(np.array(outcome).reshape(case.mean.shape)):
            return f"{outcome}: {words}"
    known = case.laws.get(name)
    if known is None:
        return ""
    apart = sum(abs(law.get(o, 0.0) - float(known.get(o, 0.0))) for o in {*law, *known})
    return "" if apart <= CLOSE else f"the law is {dict(law)}, not {dict(known)}"


def _sample_error(case: DrawCase, found: list[Array], law: Law | None) -> str:
    """By exact binomial tests of every outcome, or of every entry that is 0 or 1 if the law is not known."""
    for outcome in found:
        if words := case.check(outcome):
            return f"{outcome.tolist()}: {words}"
    rows = np.array([outcome.ravel() for outcome in found], dtype=float)
    if law is not None:
        drawn = [tuple(row) for row in rows.tolist()]
        tests = [(drawn.count(outcome), p) for outcome, p in law.items()]
        if outside := {*drawn} - {*law}:
            return f"{outside.pop()} has probability 0"
    else:
        low = np.floor(case.mean.ravel() + CLOSE)
        share = np.clip(case.mean.ravel() - low, 0.0, 1.0)
        tests = list(zip((rows > low).sum(axis=0).tolist(), share.tolist(), strict=True))
    counts, shares = np.array(tests).T
    shares = np.clip(shares, CLOSE, 1 - CLOSE)
    tails = np.minimum(binom.cdf(counts, DRAWS, shares), binom.sf(counts - 1, DRAWS, shares))
    worst = int(np.argmin(tails))
    if tails[worst] < ERROR / (2 * len(tests)):
        return f"{counts[worst]:g} of {DRAWS} draws for a probability of {shares[worst]:.6g}"
    return ""
