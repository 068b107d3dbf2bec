"""The declaration: servers, a privacy budget, and the bits of a share."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import erfc, floor, inf, isfinite, sqrt
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy
from pydantic import Field, model_validator
from scipy.special import ndtr

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError, require
from forcopt.models.secure_sum import accounting
from forcopt.models.secure_sum.accounting import acceptance, gaussian_epsilon, joint_delta
from forcopt.models.secure_sum.protocol import SumProtocol
from forcopt.models.secure_sum.shares import Shares, even_shares, talwar_shares
from forcopt.models.secure_sum.tolerances import COMPARED, CROSSING, ROUNDING
from forcopt.privacy.tolerances import SMALLEST
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Problem
from forcopt.problem.drawing import Sketch

MOST_BITS = 48
"""Noise of 53 bits leaves the last bits of longer shares without noise."""


class SecureSum(Problem):
    """Sums of vectors by servers that learn only the sum, with a check of the norm of each vector.

    Every client splits its vector into one share for each server. The servers add noise to a random
    projection of their shares, and reject a vector whose noisy projection is long. The objective is the gap
    rho: the least norm that passes with probability at most `soundness`, where honest vectors have norm at
    most 1.

    Attributes
    ----------
    servers : int
        S, at least 2. Server 0 checks the norms.
    dimension : int
        Of the vectors.
    epsilon, delta : float
        The privacy of a vector against any `corrupted` servers together, given the sum and its acceptance.
    corrupted : int, optional
        The size of the coalitions, S - 1 by default.
    completeness : float
        The largest probability that the check rejects an honest vector.
    soundness : float
        The largest probability that a vector of norm rho is accepted.
    bits : int, optional
        Of a number of a share, from 2 to 48. By default 32.
    step : float, optional
        Vectors and shares are integer multiples of it. By default the method chooses a power of ``2^(1/8)``.
    overflow : float
        The largest probability that a number of an honest share needs more bits; the server then refuses the
        share. A client has ``servers * dimension`` numbers: metric ``refused_honest``.
    whole : bool
        Whether vectors already are integer multiples of `step`, such as counts with ``step=1``. Otherwise
        they are rounded, and their norm grows to at most ``1 + step sqrt(dimension) / 2``.
    sharing : {"even", "talwar"}
        The law of the shares: `even_shares`, or Algorithm 1.
    server_reals : int, optional
        The most real numbers that all servers send to server 0 for each client, ``(S - 1) k``.

    Raises
    ------
    DeclarationError
        For numbers out of range, all servers corrupted, or a limit that leaves no projection.

    Notes
    -----
    Privacy is against coalitions that follow the protocol, for one client with the others and the sum fixed.
    A server that does not follow it can spoil the sum.

    References
    ----------
    Talwar (2022), Algorithms 1, 3, 5 and 6.

    Examples
    --------
    >>> from forcopt.models import SecureSum
    >>> p = SecureSum(servers=2, dimension=1000, epsilon=1.0, delta=1e-6, bits=16)
    >>> round(p.solve().objective, 1)
    75.4
    """

    family: ClassVar[str] = "secure_sum"
    default_method: ClassVar[str] = "enumeration"

    servers: int = Field(ge=2)
    dimension: int = Field(ge=1)
    epsilon: float = Field(gt=0.0, allow_inf_nan=False)
    delta: float = Field(gt=0.0, lt=1.0)
    corrupted: int | None = Field(default=None, ge=1)
    completeness: float = Field(default=1e-3, gt=0.0, lt=0.5)
    soundness: float = Field(default=1e-3, gt=0.0, lt=0.5)
    bits: int = Field(default=32, ge=2, le=MOST_BITS)
    step: float | None = Field(default=None, gt=0.0, allow_inf_nan=False)
    overflow: float = Field(default=1e-8, gt=0.0, lt=0.5)
    whole: bool = False
    sharing: Literal["even", "talwar"] = "even"
    server_reals: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        require(self.coalition < self.servers, "corrupted", self.corrupted, "leave one server honest")
        if self.whole and self.step is None:
            raise DeclarationError("whole is True, step None; whole vectors are multiples of a given step")
        if self.server_reals is not None and self.server_reals < self.servers - 1:
            raise DeclarationError(
                f"server_reals is {self.server_reals}; a projection takes {self.servers - 1}"
            )
        return self

    # -- quantities ------------------------------------------------------------------------------------------

    @property
    def coalition(self) -> int:
        """The size of the coalitions."""
        return self.servers - 1 if self.corrupted is None else self.corrupted

    @property
    def honest(self) -> int:
        """The number of servers outside the coalition."""
        return self.servers - self.coalition

    @property
    def most_projections(self) -> int | None:
        """The largest k that `server_reals` allows; None for any."""
        return None if self.server_reals is None else self.server_reals // (self.servers - 1)

    def honest_norm(self, step: float) -> float:
        """The largest norm of an honest vector after rounding to multiples of the step."""
        return 1.0 if self.whole else 1.0 + step * sqrt(self.dimension) / 2

    def honest_number(self, step: float) -> float:
        """The largest number of an honest vector after rounding to multiples of the step."""
        return step * floor(1 / step + (ROUNDING if self.whole else 0.5))

    @cached_property
    def unit_shares(self) -> Shares:
        """The declared law of the shares, at a scale of its own."""
        even = self.sharing == "even"
        return even_shares(self.servers, self.coalition) if even else talwar_shares(self.servers, 1.0)

    def scale(self, step: float, bits: int) -> float | None:
        """The largest scale of `unit_shares` that fits the bits; None if the bits are too few.

        They are too few if the vectors alone do not fit, or if noise of less than a step is left.
        """
        unit = self.unit_shares
        if self._room(step, bits, unit) <= 0:
            return None
        limits, means = _limits(unit, step, bits), abs(unit.split) * self.honest_number(step)
        known = {(limits[i], means[i], unit.variances[i]) for i in (0, 1) if unit.variances[i] > 0}
        scale = min(_widest(float(limit), float(mean), self.overflow) / sqrt(v) for limit, mean, v in known)
        return None if self._coarse(unit, step / scale) > 0 else scale

    def scaled(self, scale: float) -> Shares:
        """The declared law of the shares, at a scale."""
        unit = self.unit_shares
        return Shares(unit.split, scale**2 * unit.covariance)

    def _room(self, step: float, bits: int, shares: Shares) -> float:
        return float(min(_limits(shares, step, bits) - abs(shares.split) * self.honest_number(step)))

    def _coarse(self, shares: Shares, step: float) -> float:
        """By how much the noise of a share is below a step, relatively; 0 for one honest server.

        A coalition sees the sum of the honest shares. Of one honest share it is the rounded real share. Of
        several it is a sum of rounded shares, which is no function of the real sum; the two laws differ by a
        factor ``exp(-2 pi^2 sigma^2)`` for noise of sigma steps.
        """
        noisy = shares.variances[shares.variances > 0]
        if self.honest == 1 or not noisy.size:
            return 0.0
        return max(0.0, 1 - sqrt(float(noisy.min())) / step)

    def _overflows(self, shares: Shares, step: float, bits: int) -> Array:
        """For each server, the largest probability that a number of an honest share does not fit."""
        if self._room(step, bits, shares) <= 0:
            return np.ones(shares.servers)
        mean = abs(shares.split) * self.honest_number(step)
        deviations = np.maximum(shares.variances**0.5, SMALLEST)
        limits = _limits(shares, step, bits)
        with np.errstate(over="ignore"):
            return np.asarray(ndtr((mean - limits) / deviations) + ndtr((-mean - limits) / deviations))

    def share_loss(self, shares: Shares) -> float:
        """The squared parameter mu of the shares of the worst coalition, for a vector of norm 1.

        Raises
        ------
        DeclarationError
            If servers 1 to S - 1 have different shares: the check then is not independent of them.
        """
        if not shares.alike:
            raise DeclarationError("the shares of servers 1 to S - 1 differ: their joint loss is unknown")
        t = self.coalition  # by symmetry two coalitions: with server 0, and without
        return max(shares.loss(range(t)), shares.loss(range(1, t + 1))) ** 2

    def losses(self, decision: SumProtocol) -> tuple[float, float]:
        """The squared parameters mu of shares and check, for an honest vector and its mean projection."""
        square = self.honest_norm(decision.step) ** 2
        noise = self.honest * decision.check_noise**2
        return square * self.share_loss(decision.shares), square / noise if noise else inf

    def joint_delta(self, decision: SumProtocol) -> float:
        """The exact delta at `epsilon` of a coalition's view; see `accounting.joint_delta`."""
        share, check = self.losses(decision)
        if not isfinite(share + check):
            return 1.0
        if decision.projections is None:
            return float(accounting.gaussian_delta(self.epsilon, sqrt(share + check)))
        return float(joint_delta(self.epsilon, decision.projections, share, check))

    def acceptance(self, decision: SumProtocol, norm: float) -> float:
        """The exact probability that a vector of this norm passes; the norm is at least 0."""
        require(norm >= 0, "norm", norm, "be at least 0")
        noise, k = decision.check_noise, decision.projections
        return acceptance(norm, decision.threshold, self.servers, noise, k, self.dimension)

    def gap(self, decision: SumProtocol) -> float:
        """The least norm that passes with probability at most `soundness`; infinite if none is found."""
        noise = self.servers * decision.check_noise**2
        if decision.projections is not None:
            k = decision.projections
            low = float(scipy.stats.chi2.ppf(self.soundness, k))
            return sqrt(max(k * (decision.threshold**2 / low - noise), 0.0)) if low > 0 else inf
        if noise == 0:
            return decision.threshold
        square = decision.threshold**2 / noise

        def over(norm: float) -> float:
            return accounting.noncentral(square, self.dimension, norm**2 / noise) - self.soundness

        return _crossing(over)

    def best_attack(self, decision: SumProtocol) -> tuple[float, float]:
        """The norm r with the largest ``r P(accept | r)``, and that product."""
        top = max(self.gap(decision), self.honest_norm(decision.step)) * 1.5
        options: dict[str, Any] = {"bounds": (0.0, top), "method": "bounded", "options": {"xatol": COMPARED}}
        found = scipy.optimize.minimize_scalar(lambda r: -r * self.acceptance(decision, r), **options)
        return float(found.x), -float(found.fun)

    # -- evaluation ------------------------------------------------------------------------------------------

    def read(self, decision: Any) -> SumProtocol:
        """Check that the decision is a protocol for S servers."""
        if not isinstance(decision, SumProtocol):
            raise DeclarationError(f"the decision is {decision!r}; it must be a SumProtocol")
        if decision.servers != self.servers:
            raise DeclarationError(f"the protocol is for {decision.servers} servers, not {self.servers}")
        return decision

    def infeasibility_reason(self) -> str:
        """State that no step leaves room for shares; empty if one does."""
        from forcopt.models.secure_sum.search import Search

        search = Search(self)
        return "" if search.candidates else search.reason

    def least_relaxation(self, time_limit: float = 10.0) -> str:
        """Give the least bits that leave room for shares, if any do; see `Problem.least_relaxation`."""
        deadline = Deadline(time_limit)
        for bits in range(self.bits + 1, MOST_BITS + 1):
            if deadline.passed:
                break
            if not self.replace(bits=bits).infeasibility_reason():
                return f"the least relaxation: bits {bits}"
        return ""

    def _sketch(self, decision: Any, evaluation: Evaluation) -> Any:
        few = f"is rejected with probability {1 - self.soundness:.4g}"
        return Sketch(f"A vector {evaluation.objective:.3g} times as long as an honest one {few}")

    def evaluate(self, decision: SumProtocol | Any) -> Evaluation:
        """Evaluate a protocol.

        Parameters
        ----------
        decision : SumProtocol
            For the same number of servers.

        Returns
        -------
        Evaluation
            The gap rho. Violations: ``privacy`` (the exact delta above `delta`, relatively), ``completeness``
            and ``overflow`` (the probabilities above the allowed ones, relatively), ``rounding`` (noise of
            less than a step for shares of several honest servers), ``bits``, ``step`` and ``projections``
            (above the declared ones). Metrics: ``delta``; ``epsilon``, ``epsilon_shares`` and
            ``epsilon_check`` at `delta` (the check for its mean loss); ``rejected_honest`` (by the check);
            ``overflow`` (of one number) and ``refused_honest`` (a bound on the probability that any number of
            an honest client overflows); ``client_bits``, ``server_reals``; ``attack_norm`` and
            ``attack_gain``, the best attack.
        """
        chosen = self.read(decision)
        delta = self.joint_delta(chosen)
        rejected = _complement(chosen, self.honest_norm(chosen.step), self)
        overflows = self._overflows(chosen.shares, chosen.step, chosen.bits)
        overflow = float(overflows.max())
        limits = {
            "privacy": delta / self.delta - 1,
            "completeness": rejected / self.completeness - 1,
            "overflow": overflow / self.overflow - 1,
            "rounding": self._coarse(chosen.shares, chosen.step),
            "bits": float(chosen.bits - self.bits),
        }
        if self.step is not None:
            limits["step"] = abs(chosen.step / self.step - 1)
        k = self.dimension if chosen.projections is None else chosen.projections
        if self.most_projections is not None:
            limits["projections"] = float(k - self.most_projections)
        attack, gain = self.best_attack(chosen)
        share, check = self.losses(chosen)
        metrics = {
            "delta": delta,
            "epsilon_shares": gaussian_epsilon(sqrt(share), self.delta),
            "epsilon_check": self._epsilon(chosen, 0.0, check),
            "epsilon": self._epsilon(chosen, share, check),
            "rejected_honest": rejected,
            "overflow": overflow,
            "refused_honest": min(1.0, self.dimension * float(overflows.sum())),
            "client_bits": float(self.servers * self.dimension * chosen.bits),
            "server_reals": float((self.servers - 1) * k),
            "attack_norm": attack,
            "attack_gain": gain,
        }
        violations = {name: value for name, value in limits.items() if value > FEASIBILITY_TOLERANCE}
        return Evaluation(self.gap(chosen), violations, metrics)

    def _epsilon(self, chosen: SumProtocol, share: float, check: float) -> float:
        """The epsilon at `delta` of a share loss and a check loss together."""
        if not isfinite(share + check):
            return inf
        if chosen.projections is None:
            return gaussian_epsilon(sqrt(share + check), self.delta)

        def over(epsilon: float) -> float:
            return float(joint_delta(epsilon, chosen.projections, share, check)) - self.delta

        return _crossing(over)


def _crossing(over: Callable[[float], float]) -> float:
    """Where a falling function reaches 0; 0 if it is not above 0 there."""
    if over(0.0) <= 0:
        return 0.0
    high = 1.0
    while over(high) > 0:
        high *= 2
    return float(scipy.optimize.brentq(over, 0.0, high, xtol=CROSSING))


def _limits(shares: Shares, step: float, bits: int) -> Array:
    """The real numbers whose rounding fits; server 0 bears the rounding of the others."""
    carried = np.full(shares.servers, 0.5)
    carried[0] = (shares.servers - 1) / 2
    return np.asarray((2.0 ** (bits - 1) - carried) * step)


def _widest(limit: float, mean: float, tail: float) -> float:
    """The largest deviation of a normal variable that exceeds the limit with this probability."""

    def over(deviation: float) -> float:
        root = deviation * sqrt(2)
        return (erfc((limit - mean) / root) + erfc((limit + mean) / root)) / 2 - tail

    high = limit - mean
    while over(high) < 0:
        high *= 2
    low = high
    while over(low) > 0:
        low /= 2
    return (1 - ROUNDING) * float(scipy.optimize.brentq(over, low, high, xtol=1e-15 * high, rtol=1e-14))


def _complement(chosen: SumProtocol, norm: float, problem: SecureSum) -> float:
    """The probability that a vector of this norm is rejected; small ones by tails of their own."""
    accepted = problem.acceptance(chosen, norm)
    noise, square = problem.servers * chosen.check_noise**2, chosen.threshold**2
    if accepted < 0.5 or noise == 0 or norm**2 / noise > accounting.FAR:
        return 1 - accepted
    if chosen.projections is None:
        return float(scipy.stats.ncx2.sf(square / noise, problem.dimension, norm**2 / noise))
    return float(scipy.stats.chi2.sf(square / (norm**2 / chosen.projections + noise), chosen.projections))
