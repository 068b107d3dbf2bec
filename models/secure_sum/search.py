"""Candidate steps and numbers of projections, with bounds; and the search over both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf, nan, sqrt
from typing import Any

import numpy as np
import scipy

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.models.secure_sum import accounting
from forcopt.models.secure_sum.accounting import exact_gap, gaussian_loss, joint_delta
from forcopt.models.secure_sum.problem import SecureSum
from forcopt.models.secure_sum.protocol import SumProtocol
from forcopt.models.secure_sum.tolerances import NEGLIGIBLE_LOSS, ROUNDING
from forcopt.problem import Outcome
from forcopt.status import Status

STEPS_AN_OCTAVE = 8
OCTAVES = 52
BLOCK = 128
LIKELY = (0.5, 0.9, 0.99, 0.999)
"""Probabilities for lower bounds on the noise: those near 1 are best for many projections."""


@dataclass(frozen=True)
class Candidate:
    """A step, with the noise of the shares that it allows.

    Attributes
    ----------
    step : float
        The step.
    norm : float
        The largest norm of an honest vector.
    loss : float
        The squared parameter mu of the shares with the most noise that fits, for an honest vector.
    scale : float
        Of these shares, see `SecureSum.scaled`.
    """

    step: float
    norm: float
    loss: float
    scale: float = nan


class Search:
    """The steps that leave room for privacy, and bounds on the gap by the number of projections.

    Parameters
    ----------
    problem : SecureSum
        Which.
    """

    def __init__(self, problem: SecureSum) -> None:
        self.problem = problem
        self.full = gaussian_loss(problem.epsilon, problem.delta) ** 2
        self.likely = [p for p in (*LIKELY, (1 + problem.delta) / 2) if p > problem.delta]
        self.most_loss = [gaussian_loss(problem.epsilon, problem.delta / p) ** 2 for p in self.likely]
        steps = [2.0 ** (-j / STEPS_AN_OCTAVE) for j in range(STEPS_AN_OCTAVE * OCTAVES)]
        steps = steps if problem.step is None else [problem.step]
        unit = problem.share_loss(problem.unit_shares)
        self.candidates = []
        for step in steps:
            scale = problem.scale(step, problem.bits)
            if scale is not None:
                norm = problem.honest_norm(step)
                loss = unit * (norm / scale) ** 2
                if loss < self.full * (1 - NEGLIGIBLE_LOSS):
                    self.candidates.append(Candidate(step, norm, loss, scale))
        self._high: Array = np.empty(0)
        self._low: Array = np.empty(0)
        self._likely: Array = np.empty((len(self.likely), 0))

    @property
    def reason(self) -> str:
        """Why there is no candidate."""
        p = self.problem
        steps = "no step" if p.step is None else f"the step {p.step:g}"
        return (
            f"with {p.bits} bits, {steps} leaves room for shares that keep epsilon {p.epsilon:g} and delta "
            f"{p.delta:g} in {p.dimension} dimensions"
        )

    def quantiles(self, most: int) -> tuple[Array, Array]:
        """The upper and lower quantiles of chi-square with 1 to `most` degrees of freedom."""
        have = len(self._high)
        if have < most:
            k = np.arange(have + 1, most + 1)
            self._high = np.append(self._high, scipy.stats.chi2.isf(self.problem.completeness, k))
            self._low = np.append(self._low, scipy.stats.chi2.ppf(self.problem.soundness, k))
            exceeded = scipy.stats.chi2.isf(np.array(self.likely)[:, None], k) / k
            self._likely = np.append(self._likely, exceeded, axis=1)
        return self._high[:most], self._low[:most]

    def bound(self, candidate: Candidate, most: int) -> Array:
        """Lower bounds on the gap with 1 to `most` projections, shape ``(most,)``.

        With probability p the law of Q / k exceeds its quantile: delta is at least p times that for this
        quantile. The noise is at least the one that keeps this product at delta. The best of several p
        counts.
        """
        return self._gap(candidate, np.arange(1, most + 1), self._least_squared_noise(candidate, most))

    def _least_squared_noise(self, candidate: Candidate, most: int) -> Array:
        """Lower bounds on the squared check noise with 1 to `most` projections."""
        self.quantiles(most)
        left = np.array(self.most_loss)[:, None] - candidate.loss
        most_noise = (self._likely[:, :most] / left).max(axis=0)
        return np.asarray(candidate.norm**2 / self.problem.honest * most_noise)

    def _gap(self, candidate: Candidate, k: Array, squared_noise: Array) -> Array:
        high, low = self.quantiles(int(k.max()))
        ratio, all_noise = high[k - 1] / low[k - 1], k * self.problem.servers * squared_noise
        return np.asarray(np.sqrt(candidate.norm**2 * ratio + all_noise * (ratio - 1)))

    def beyond(self, candidate: Candidate, most: int) -> float:
        """A lower bound on the gap with more than `most` projections.

        The gap's square is at least ``n^2 + S k sigma^2 (high - low) / low``. Here ``high - low`` grows with
        k, since chi-square laws are ordered by dispersion (Saunders and Moran 1978), and ``low < k``. The
        bound on the noise grows, too: quantiles of Q / k up to the median do, as the laws are star-ordered
        and their normalized medians grow (Berg and Pedersen 2006).
        """
        high, low = self.quantiles(most)
        noise = float(self._least_squared_noise(candidate, most)[-1])
        return sqrt(candidate.norm**2 + self.problem.servers * noise * float(high[-1] - low[-1]))

    def better(self, candidate: Candidate, k: Array, gap: Any) -> Array:
        """Which numbers of projections may give a gap below this one (or these): one integral each."""
        high, low = self.quantiles(int(k.max()))
        ratio = high[k - 1] / low[k - 1]
        squared = (gap**2 - candidate.norm**2 * ratio) / (k * self.problem.servers * (ratio - 1))
        out = squared > 0
        if out.any():
            loss = candidate.norm**2 / (self.problem.honest * squared[out])
            delta = joint_delta(self.problem.epsilon, k[out], candidate.loss, loss)
            out[out] = delta <= self.problem.delta
        return np.asarray(out)

    def protocol(self, candidate: Candidate, k: int) -> tuple[SumProtocol, float] | None:
        """The best protocol with this step and k projections, and its gap."""
        p = self.problem
        # In units of the honest norm, since noise and vector scale together.
        noise = accounting.least_check_noise(p.epsilon, p.delta, k, candidate.loss, p.honest) * candidate.norm
        if noise == inf:
            return None
        gap = exact_gap(k, p.servers, noise, p.completeness, p.soundness, candidate.norm)
        return self.made(candidate, k, gap.threshold, noise), gap.norm

    def made(self, candidate: Candidate, k: int | None, threshold: float, noise: float) -> SumProtocol:
        """The protocol with this step, number of projections, threshold and check noise."""
        shares = self.problem.scaled(candidate.scale)
        return SumProtocol(k, threshold, noise, shares, candidate.step, self.problem.bits)

    def branch(self, may: Callable[[Candidate], bool]) -> Iterator[Candidate]:
        """The candidates that a test does not rule out, the promising ones first.

        Parameters
        ----------
        may : callable
            Whether a candidate may do better than the best one so far. It must hold for a candidate if it
            holds for one with larger norm and loss. So one test of the least norm and loss of a range of
            steps can rule out all of them; ranges that remain are halved.
        """
        ranges = [(0, len(self.candidates))] if self.candidates else []
        few = within(64, self.problem.most_projections)
        while ranges:
            first, end = ranges.pop()
            relaxed = self._relaxed(first, end)
            if not may(relaxed):
                continue
            if end - first == 1:
                yield self.candidates[first]
                continue
            middle = (first + end) // 2
            parts = [(first, middle), (middle, end)]
            ranges += sorted(parts, key=lambda r: -float(self.bound(self._relaxed(*r), few).min()))

    def _relaxed(self, first: int, end: int) -> Candidate:
        part = self.candidates[first:end]
        return Candidate(part[0].step, min(c.norm for c in part), min(c.loss for c in part), part[0].scale)

    def without_projection(self) -> tuple[SumProtocol | None, float]:
        """The best protocol without a projection, and its gap; none if its traffic is too much."""
        p = self.problem
        if p.most_projections is not None and p.most_projections < p.dimension:
            return None, inf
        best = inf
        chosen: SumProtocol | None = None

        def noise(candidate: Candidate) -> float:  # in units of the honest norm
            return 1 / sqrt(p.honest * (self.full * (1 - ROUNDING) - candidate.loss))

        def may(candidate: Candidate) -> bool:  # one tail decides, as the gap grows with noise and norm
            if best == inf:
                return True
            norm, all_noise = best * (1 - ROUNDING) / candidate.norm, p.servers * noise(candidate) ** 2
            square = float(scipy.stats.ncx2.isf(p.completeness, p.dimension, 1 / all_noise))
            shift = norm**2 / all_noise
            return norm > 1 and float(scipy.stats.ncx2.cdf(square, p.dimension, shift)) <= p.soundness

        for candidate in self.branch(may):
            sigma, norm = noise(candidate), candidate.norm
            found = accounting.no_projection_gap(p.dimension, p.servers, sigma, p.completeness, p.soundness)
            if found.norm * norm < best:
                best = found.norm * norm
                chosen = self.made(candidate, None, found.threshold * norm, sigma * norm)
        return chosen, best

    def promising(self, candidate: Candidate, gap: Callable[[], float], deadline: Deadline) -> Iterator[int]:
        """The numbers of projections that may give a gap below the current one, up to the last of them."""
        most, cap = 0, self.problem.most_projections
        while cap is None or most < cap:
            if most and self.beyond(candidate, most) >= gap():
                return
            first, most = most + 1, within(most + BLOCK, cap)
            bounds = self.bound(candidate, most)
            left = np.arange(first, most + 1)
            while not deadline.passed:
                left = left[bounds[left - 1] < gap()]
                if len(left) and np.isfinite(gap()):
                    left = left[self.better(candidate, left, gap() * (1 - ROUNDING))]
                if not len(left):
                    break
                # The gap is less in an interval of k, and its middle is near the minimum.
                k = int(left[len(left) // 2 if np.isfinite(gap()) else int(np.argmin(bounds[left - 1]))])
                yield k
                left = left[left != k]
            if deadline.passed:
                return

    def best(self, deadline: Deadline) -> tuple[SumProtocol | None, float, int, bool]:
        """The best protocol, its gap, the number of roots found, and whether the search is complete."""
        chosen, gap = self.without_projection()
        roots = 0

        def least() -> float:
            return gap

        def may(candidate: Candidate) -> bool:
            return next(self.promising(candidate, least, deadline), None) is not None

        for candidate in self.branch(may):
            for k in self.promising(candidate, least, deadline):
                found, roots = self.protocol(candidate, k), roots + 1
                if found is not None and found[1] < gap:
                    chosen, gap = found
        return chosen, gap, roots, not deadline.passed


def within(k: int, cap: int | None) -> int:
    """The number, or the cap if that is less."""
    return k if cap is None else min(k, cap)


@SecureSum.algorithm("enumeration", exact=True, cites="Talwar (2022), Theorems 13 to 16, made exact")
def enumeration(problem: SecureSum, *, time_limit: float | None = None) -> Outcome:
    """Find the best step and number of projections.

    Returns
    -------
    Outcome
        Exact over all k and no projection, with the declared law of shares and the most noise that fits, and
        with the given step, or all powers of ``2^(1/8)`` up to 1. INFEASIBLE with the reason if the bits are
        too few.

    Notes
    -----
    For fixed step and k all constraints are tight: the noise is a root of the exact delta, threshold and gap
    are chi-square quantiles. One integral decides whether k can beat the best gap so far. The search ends at
    a k from which on a proved bound lies above the best gap, see `Search.beyond`.
    """
    deadline = Deadline(time_limit)
    search = Search(problem)
    if not search.candidates:
        return Outcome(None, status=Status.INFEASIBLE, message=search.reason)
    chosen, gap, roots, complete = search.best(deadline)
    if chosen is None:
        status = Status.LIMIT if not complete else Status.INFEASIBLE
        return Outcome(None, status=status, iterations=roots, message="" if not complete else search.reason)
    if not complete:
        return Outcome(chosen, bound=1.0, status=Status.FEASIBLE, iterations=roots)
    return Outcome(chosen, bound=gap, iterations=roots)


@SecureSum.algorithm("no-projection", cites="noncentral chi-square law", rank="published")
def no_projection(problem: SecureSum, *, time_limit: float | None = None) -> Outcome:
    """Reveal every coordinate with noise to server 0.

    Returns
    -------
    Outcome
        The best step. The gap grows as the fourth root of the dimension. In few dimensions it is less than
        with any projection: below 156 for S = 2, epsilon = 1, delta = 1e-6 and the default tails, below 174
        for epsilon = 5.
    """
    deadline = Deadline(time_limit)
    search = Search(problem)
    if not search.candidates:
        return Outcome(None, status=Status.INFEASIBLE, message=search.reason)
    if problem.most_projections is not None and problem.most_projections < problem.dimension:
        message = f"server_reals allows {problem.most_projections} numbers for {problem.dimension}"
        return Outcome(None, status=Status.FAILED, message=message)
    made, _ = search.without_projection()
    if made is None or deadline.passed:
        return Outcome(None, status=Status.LIMIT)
    return Outcome(made, status=Status.APPROXIMATE)
