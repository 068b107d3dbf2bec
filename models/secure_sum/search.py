"""Candidate steps and numbers of projections, with bounds that rule most of them out."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np
from scipy.stats import chi2, ncx2

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.models.secure_sum.accounting import gaussian_loss, joint_delta, least_check_noise
from forcopt.models.secure_sum.gap import exact_gap, no_projection_gap
from forcopt.models.secure_sum.problem import SecureSum
from forcopt.models.secure_sum.protocol import SumProtocol
from forcopt.models.secure_sum.shares import Shares

__all__ = ["Candidate", "Search", "within"]

STEPS_AN_OCTAVE = 8
OCTAVES = 52
BLOCK = 128


@dataclass(frozen=True, eq=False)
class Candidate:
    """A step, with the shares that it allows.

    Attributes
    ----------
    step : float
        The step.
    norm : float
        The largest norm of an honest vector.
    shares : Shares
        With the most noise that fits.
    loss : float
        The squared parameter mu of the shares, for an honest vector.
    """

    step: float
    norm: float
    shares: Shares
    loss: float


class Search:
    """The steps that leave room for privacy, and bounds on the gap by the number of projections.

    Parameters
    ----------
    problem : SecureSum
        Which.
    """

    def __init__(self, problem: SecureSum) -> None:
        self.problem = problem
        self.half = gaussian_loss(problem.epsilon, min(2 * problem.delta, 1.0)) ** 2
        self.full = gaussian_loss(problem.epsilon, problem.delta) ** 2
        steps = (
            [2.0 ** (-j / STEPS_AN_OCTAVE) for j in range(STEPS_AN_OCTAVE * OCTAVES)]
            if problem.step is None
            else [problem.step]
        )
        self.candidates = []
        for step in steps:
            norm = problem.honest_norm(step)
            shares = problem.shares(step, problem.word)
            if shares is not None:
                loss = problem.share_loss(shares, step)
                if loss < self.full * (1 - 1e-9):
                    self.candidates.append(Candidate(step, norm, shares, loss))
        self._high: Array = np.empty(0)
        self._low: Array = np.empty(0)

    @property
    def reason(self) -> str:
        """Why there is no candidate."""
        p = self.problem
        steps = "no step" if p.step is None else f"the step {p.step:g}"
        return (
            f"with {p.word} bits, {steps} leaves room for shares that keep epsilon {p.epsilon:g} and delta "
            f"{p.delta:g} in {p.dimension} dimensions"
        )

    def quantiles(self, most: int) -> tuple[Array, Array]:
        """The upper and lower quantiles of chi-square with 1 to `most` degrees of freedom."""
        have = len(self._high)
        if have < most:
            k = np.arange(have + 1, most + 1)
            self._high = np.append(self._high, chi2.isf(self.problem.completeness, k))
            self._low = np.append(self._low, chi2.ppf(self.problem.soundness, k))
        return self._high[:most], self._low[:most]

    def bound(self, candidate: Candidate, most: int) -> Array:
        """Lower bounds on the gap with 1 to `most` projections, shape ``(most,)``.

        Half of chi-square's mass lies above k - 2/3: delta is at least half of that at ``Q = k - 2/3``,
        and the noise is at least what keeps that at delta.
        """
        k = np.arange(1, most + 1)
        left = self.half - candidate.loss
        noise = candidate.norm**2 * (k - 2 / 3) / (k * self.problem.honest * left)
        return self._gap(candidate, k, noise)

    def _gap(self, candidate: Candidate, k: Array, squared_noise: Array) -> Array:
        high, low = self.quantiles(int(k.max()))
        ratio, all_noise = high[k - 1] / low[k - 1], k * self.problem.servers * squared_noise
        return np.asarray(np.sqrt(candidate.norm**2 * ratio + all_noise * (ratio - 1)))

    def beyond(self, candidate: Candidate, most: int) -> float:
        """A lower bound on the gap with more than `most` projections.

        The gap's square is at least ``n^2 + S k sigma^2 (high - low) / low``. Here ``high - low`` grows with
        k, since chi-square laws are ordered by dispersion (Saunders and Moran 1978), and ``low < k``.
        """
        high, low = self.quantiles(most)
        left = self.half - candidate.loss
        noise = candidate.norm**2 / (self.problem.honest * left)
        share = (most + 1 / 3) / (most + 1)
        return sqrt(candidate.norm**2 + self.problem.servers * noise * share * float(high[-1] - low[-1]))

    def better(self, candidate: Candidate, k: Array, gap: Any) -> Array:
        """Which numbers of projections may give a gap below this one (or these): one integral each."""
        high, low = self.quantiles(int(k.max()))
        ratio = high[k - 1] / low[k - 1]
        squared = (gap**2 - candidate.norm**2 * ratio) / (k * self.problem.servers * (ratio - 1))
        out = squared > 0
        if out.any():
            loss = candidate.norm**2 / (self.problem.honest * squared[out])
            told = joint_delta(self.problem.epsilon, k[out], candidate.loss, loss)
            out[out] = told <= self.problem.delta
        return np.asarray(out)

    def protocol(self, candidate: Candidate, k: int) -> tuple[SumProtocol, float] | None:
        """The best protocol with this step and so many projections, and its gap."""
        p = self.problem
        # In units of the honest norm, since noise and vector scale together.
        noise = least_check_noise(p.epsilon, p.delta, k, candidate.loss, p.honest) * candidate.norm
        if noise == inf:
            return None
        gap = exact_gap(k, p.servers, noise, p.completeness, p.soundness, candidate.norm)
        made = SumProtocol(k, gap.threshold, noise, candidate.shares, candidate.step, p.word)
        return made, gap.norm

    def without_projection(self) -> tuple[SumProtocol | None, float]:
        """The best protocol without a projection, and its gap; none if its traffic is too much."""
        p = self.problem
        if p.most_projections is not None and p.most_projections < p.dimension:
            return None, inf
        chosen, gap = None, inf
        # In units of the honest norm the gap grows with the noise: one tail tells whether it can be less.
        for candidate in sorted(self.candidates, key=lambda c: c.norm / sqrt(self.half - c.loss)):
            noise = 1 / sqrt(p.honest * (self.full * (1 - 1e-12) - candidate.loss))
            all_noise = p.servers * noise**2
            square = float(ncx2.isf(p.completeness, p.dimension, 1 / all_noise))
            if gap < inf:
                norm = gap * (1 - 1e-12) / candidate.norm
                if norm <= 1 or ncx2.cdf(square, p.dimension, norm**2 / all_noise) > p.soundness:
                    continue
            found = no_projection_gap(p.dimension, p.servers, noise, p.completeness, p.soundness)
            if found.norm * candidate.norm < gap:
                gap, norm = found.norm * candidate.norm, candidate.norm
                tau = found.threshold * norm
                chosen = SumProtocol(None, tau, noise * norm, candidate.shares, candidate.step, p.word)
        return chosen, gap

    def best_steps(self, k: Array, near: float) -> list[tuple[Candidate, int, SumProtocol, float]]:
        """For each of these numbers of projections the best step, if its gap is at most `near`."""
        gaps = np.full(len(k), near * (1 + 1e-9))
        found: dict[int, tuple[Candidate, int, SumProtocol, float]] = {}
        few = int(k.max())
        for candidate in sorted(self.candidates, key=lambda c: float(self.bound(c, few).min())):
            open_ = np.flatnonzero(self.bound(candidate, few)[k - 1] < gaps)
            if len(open_):
                open_ = open_[self.better(candidate, k[open_], gaps[open_] * (1 - 1e-12))]
            for i in open_:
                made = self.protocol(candidate, int(k[i]))
                if made is not None and made[1] < gaps[i]:
                    gaps[i] = made[1]
                    found[int(k[i])] = (candidate, int(k[i]), *made)
        return [found[j] for j in sorted(found)]

    def best(self, deadline: Deadline) -> tuple[SumProtocol | None, float, int, bool]:
        """The best protocol, its gap, the number of roots found, and whether the search is complete."""
        chosen, gap = self.without_projection()
        roots, cap = 0, self.problem.most_projections
        order = sorted(self.candidates, key=lambda c: float(self.bound(c, within(64, cap)).min()))
        for candidate in order:
            most = 0
            while cap is None or most < cap:
                if most and self.beyond(candidate, most) >= gap:
                    break
                if deadline.passed:
                    return chosen, gap, roots, False
                first, most = most + 1, within(most + BLOCK, cap)
                open_ = np.arange(first, most + 1)[self.bound(candidate, most)[first - 1 :] < gap]
                while len(open_):
                    if np.isfinite(gap):
                        open_ = open_[self.better(candidate, open_, gap * (1 - 1e-12))]
                    if not len(open_) or deadline.passed:
                        break
                    k = int(open_[int(np.argmin(self.bound(candidate, most)[open_ - 1]))])
                    if np.isfinite(gap):  # the one in the middle of an interval is near its minimum
                        k = int(open_[len(open_) // 2])
                    found, roots = self.protocol(candidate, k), roots + 1
                    if found is not None and found[1] < gap:
                        chosen, gap = found
                    open_ = open_[open_ != k]
        return chosen, gap, roots, True


def within(k: int, cap: int | None) -> int:
    """The number, or the cap if that is less."""
    return k if cap is None else min(k, cap)
