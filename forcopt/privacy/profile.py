"""Privacy profiles: delta as a function of epsilon, exact or bracketed, and their composition."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from math import exp, expm1, inf, isfinite, log, log1p, nextafter, sqrt
from typing import Any, Literal

import numpy as np
import scipy

from forcopt.errors import DeclarationError, require
from forcopt.privacy import tolerances as tol
from forcopt.privacy.contour import can_cap, capped_contour, contour
from forcopt.privacy.fft import WIDEST, Bracket, bracket, first_below, least_epsilon, log_upper_bound
from forcopt.privacy.losses import AtomLoss, BinomialLoss, GaussianLoss, Loss, enumerated, pure_loss

Engine = Literal["auto", "closed", "contour", "fft"]


@dataclass(frozen=True)
class Profile:
    """The privacy profile of a mechanism: ``delta(epsilon)`` and its inverse.

    Profiles compose: ``one @ other`` for mechanisms run one after the other (each may be chosen after the
    earlier answers, the profiles being fixed), ``profile ** k`` for k of them.

    Parameters
    ----------
    directions : tuple
        The losses of the pair (P, Q), and of (Q, P) if that differs, each as ``((Loss, count), ...)``. Empty
        if only `concentration` is known.
    concentration : float
        The zCDP parameter of a profile that is known by it only, without `directions`.
    tight : bool
        Whether some pair of neighbours attains the profile; otherwise it is an upper bound.

    Examples
    --------
    >>> from forcopt.privacy import Gaussian, Laplace
    >>> both = Gaussian(scale=3.0).profile(1) @ Laplace(epsilon=0.2).profile(1)
    >>> low, high = both.bracket(1.0)
    >>> low <= high <= low * 1.01
    True
    >>> round((Laplace(epsilon=0.1).profile(1) ** 50).epsilon(1e-6), 3)
    3.121
    """

    directions: tuple[tuple[tuple[Loss, int], ...], ...]
    concentration: float = inf
    tight: bool = True

    @classmethod
    def of(cls, *losses: Loss, tight: bool = True) -> Profile:
        """The profile of one loss for a symmetric pair, or of both directions."""
        return cls(tuple(((loss, 1),) for loss in losses), tight=tight)

    @classmethod
    def nothing(cls) -> Profile:
        """The profile of a release that does not depend on the data."""
        return cls(((),))

    @classmethod
    def pure(cls, epsilon: float, delta: float = 0.0) -> Profile:
        """The worst profile that (epsilon, delta)-privacy allows (Kairouz, Oh and Viswanath 2015).

        >>> round((Profile.pure(0.01) ** 100).epsilon(1e-6), 4)
        0.3923
        """
        require(0 <= epsilon < inf, "epsilon", epsilon, "be finite and not negative")
        require(0 <= delta <= 1, "delta", delta, "be from 0 to 1")
        return cls.of(pure_loss(epsilon, delta), tight=False)

    @classmethod
    def concentrated(cls, rho: float) -> Profile:
        """The profile that rho-zCDP proves.

        >>> round(Profile.concentrated(0.5).delta(3.0), 6)
        0.005143
        """
        require(rho >= 0, "rho", rho, "not be negative")
        return cls((), rho, tight=False)

    # -- questions -------------------------------------------------------------------------------------------

    def delta(self, epsilon: float, method: Engine = "auto") -> float:
        """The least delta that goes with an epsilon: exact where it is known, else a certified upper bound.

        Parameters
        ----------
        epsilon : float
            At least 0.
        method : {"auto", "closed", "contour", "fft"}
            ``"auto"`` takes a closed form if there is one, the contour integral where losses have moments
            (relative error about 1e-10), and else the upper end of `bracket`.
        """
        return min(1.0, exp(self.log_delta(epsilon, method)))

    def log_delta(self, epsilon: float, method: Engine = "auto") -> float:
        """The logarithm of `delta`, which may lie below the smallest float's."""
        require(epsilon >= 0, "epsilon", epsilon, "not be negative")
        if epsilon == inf:
            return -inf if self.mass_at_infinity == 0 else log(self.mass_at_infinity)
        if not self.directions:
            return _from_zcdp(self.rho, epsilon)
        if epsilon >= self.largest_loss:
            return -inf
        return max(_log_delta(_merged(parts), epsilon, method) for parts in self.directions)

    def keeps(self, epsilon: float, delta: float) -> bool:
        """Whether `delta` at an epsilon is at most this one; faster than its value where that is a bracket's.

        >>> (Profile.pure(0.01) ** 100).keeps(0.3924, 1e-6)
        True
        """
        if not self.directions or delta <= 0:
            return self.delta(epsilon) <= delta
        limit = log(delta)
        return all(_log_delta(_merged(parts), epsilon, "auto", limit) <= limit for parts in self.directions)

    def bracket(self, epsilon: float, rtol: float = 5e-3) -> Bracket:
        """Certified lower and upper bounds on delta; equal where there is a closed form.

        A profile that is not `tight` has lower bound 0.
        """
        if not self.directions:
            return Bracket(0.0, self.delta(epsilon))
        ends = [_bracket(_merged(parts), epsilon, rtol) for parts in self.directions]
        return Bracket(max(e.lower for e in ends) if self.tight else 0.0, max(e.upper for e in ends))

    def epsilon(self, delta: float, method: Engine = "auto") -> float:
        """The least epsilon that goes with a delta, from 0 to infinity.

        Raises
        ------
        DeclarationError
            For a delta outside of [0, 1).
        """
        require(0 <= delta < 1, "delta", delta, "be from 0 to below 1")
        most = self.largest_loss
        if delta == 0:
            return most
        merged = [_merged(parts) for parts in self.directions]
        lost, atoms = self.mass_at_infinity, all(isinstance(loss, AtomLoss) for p in merged for loss, _ in p)
        # rounding must not decide whether atoms are kept
        if abs(lost - delta) <= tol.ROUNDING * delta and atoms:
            delta = lost * (1 + 2 * tol.ROUNDING)
        if lost > delta:
            return inf
        if not merged:
            return _root(lambda epsilon: _from_zcdp(self.rho, epsilon), delta, most)
        found, step = 0.0, tol.NEAR_ROOT
        for parts in merged:
            found = _epsilon(parts, delta, (found, most), method)
        if any(_by_transform(parts, method) for parts in merged):  # the delta of each is bracketed anew
            target = nextafter(log(delta), -inf)
            while found < most and (over := self.log_delta(found, method) - target) > 0:
                step = max(min(2 * over, tol.NEXT_ROOT * min(WIDEST, found)), 2 * step)
                found = min(found + step, most)
        return found

    @property
    def largest_loss(self) -> float:
        """The epsilon of pure privacy; infinite if losses are unbounded."""
        if not self.directions:
            return 0.0 if self.rho == 0 else inf
        return max(sum(k * loss.pure for loss, k in parts) for parts in self.directions)

    @property
    def mass_at_infinity(self) -> float:
        """The probability of an outcome that only one of the inputs can have."""
        worst = 0.0
        for parts in self.directions:
            safe = 0.0
            for loss, k in parts:
                lost = float(loss.tails(_FAR)[0][0]) if not isfinite(loss.pure) else 0.0
                safe += k * log1p(-min(lost, tol.BELOW_ONE))
            worst = max(worst, -expm1(safe))
        return worst

    @property
    def rho(self) -> float:
        """The parameter of zero-concentrated differential privacy (zCDP); infinite if none is known."""
        if not self.directions:
            return self.concentration
        return max(sum(k * loss.rho for loss, k in parts) for parts in self.directions)

    @property
    def mu(self) -> float | None:
        """The parameter of Gaussian differential privacy, if one is known to hold."""
        squares = 0.0
        for parts in self.directions:
            mus = [(loss.mu, k) for loss, k in parts]
            if any(m is None for m, _ in mus):
                return None
            squares = max(squares, sum(k * (m or 0.0) ** 2 for m, k in mus))
        return sqrt(squares) if self.directions else None

    # -- composition -----------------------------------------------------------------------------------------

    def __matmul__(self, other: Profile) -> Profile:
        if not self.directions or not other.directions:
            return Profile.concentrated(self.rho + other.rho)
        pairs = max(len(self.directions), len(other.directions))
        mine, yours = (p.directions * (pairs // len(p.directions)) for p in (self, other))
        sums = tuple(a + b for a, b in zip(mine, yours, strict=True))
        return Profile(sums, tight=self.tight and other.tight)

    def __pow__(self, count: int) -> Profile:
        if isinstance(count, bool) or count != int(count) or count < 0:
            raise DeclarationError(f"the power is {count!r}; it must be a whole number, not negative")
        if count == 0:
            return Profile.nothing()
        many = tuple(tuple((loss, k * int(count)) for loss, k in parts) for parts in self.directions)
        return Profile(many, self.concentration * int(count), self.tight)

    @staticmethod
    def together(profiles: Any) -> Profile:
        """The composition of several profiles."""
        return reduce(Profile.__matmul__, profiles, Profile.nothing())

    def single(self) -> tuple[Loss, Loss]:
        """The losses of the pairs (P, Q) and (Q, P), if the profile belongs to one mechanism.

        Raises
        ------
        DeclarationError
            For a composition without a closed form, or a profile that is known by its rho only.
        """
        found = [_merged(parts) for parts in self.directions]
        if not found or any(len(parts) != 1 or parts[0][1] != 1 for parts in found):
            raise DeclarationError("the profile belongs to a composition; sample each part, and compose then")
        first = found[0][0][0]
        return first, found[1][0][0] if len(found) > 1 else first.reversed()

    def __repr__(self) -> str:
        known = [f"epsilon={self.largest_loss:.6g}"] if isfinite(self.largest_loss) else []
        known += [f"rho={self.rho:.6g}"] if isfinite(self.rho) else []
        known += [f"mu={self.mu:.6g}"] if self.mu is not None else []
        return f"<Profile {', '.join(known) or 'of unbounded loss'}>"


_FAR = np.array([tol.FAR])


def _merged(parts: tuple[tuple[Loss, int], ...]) -> list[tuple[Loss, int]]:
    """Equal losses counted together; Gaussian and randomized-response losses have closed sums."""
    counts: dict[Any, int] = {}
    shift = 0.0
    for loss, k in parts:
        if isinstance(loss, GaussianLoss):
            shift += k * loss.shift**2
        elif isinstance(loss, BinomialLoss):
            key = BinomialLoss(loss.each, 1)
            counts[key] = counts.get(key, 0) + k * loss.count
        else:
            counts[loss] = counts.get(loss, 0) + k
    out: list[tuple[Loss, int]] = [
        (BinomialLoss(loss.each, k), 1) if isinstance(loss, BinomialLoss) else (loss, k)
        for loss, k in counts.items()
    ]
    if shift == 0 and sum(k for _, k in out) > 1 and (table := enumerated(out)) is not None:
        return [(table, 1)]
    return [*out, (GaussianLoss(sqrt(shift)), 1)] if shift > 0 else out


def _log_delta(parts: list[tuple[Loss, int]], epsilon: float, method: Engine, limit: float = -inf) -> float:
    """The logarithm of delta; where a bracket gives it, a bound that is on the same side of `limit`."""
    if not parts:
        return -inf
    if method in ("auto", "closed") and len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0].log_delta(epsilon)
    if method == "closed":
        raise DeclarationError('the composition has no closed form; use method="contour" or "fft"')
    if method == "contour":
        return min(0.0, contour(parts, epsilon))
    loss, count = parts[0]
    if method == "auto" and all(loss.has_moments for loss, _ in parts):
        with suppress(DeclarationError):  # where the integrand falls off too slowly, the bracket is faster
            return min(0.0, contour(parts, epsilon))
    if method == "auto" and len(parts) == 1 and can_cap(loss):
        with suppress(DeclarationError):
            return capped_contour(loss, count, epsilon)  # type: ignore[arg-type]
    return log_upper_bound(tuple(parts), epsilon, limit)


def _by_transform(parts: list[tuple[Loss, int]], method: Engine) -> bool:
    """Whether `_log_delta` takes no engine but the bracket."""
    if method != "auto" or not parts:
        return method == "fft" and bool(parts)
    loss, count = parts[0]
    alone = len(parts) == 1 and (count == 1 or can_cap(loss))
    return not alone and not all(loss.has_moments for loss, _ in parts)


def _epsilon(parts: list[tuple[Loss, int]], delta: float, ends: tuple[float, float], method: Engine) -> float:
    """The least epsilon between the ends at which the delta of one direction is kept."""
    if _by_transform(parts, method):
        return least_epsilon(tuple(parts), delta, *ends)
    return max(ends[0], _root(lambda epsilon: _log_delta(parts, epsilon, method), delta, ends[1]))


def _root(log_delta: Callable[[float], float], delta: float, most: float) -> float:
    """The least epsilon up to `most` whose delta, not its logarithm alone, is at most this one."""
    target = log(delta)

    def over(epsilon: float) -> float:
        found = log_delta(epsilon)
        gap = max(found, tol.LEAST_LOG_DELTA) - target
        return min(gap, 0.0) if exp(found) <= delta else max(gap, tol.FEW_ROUNDINGS)

    return first_below(over, 0.0, min(1.0, most), (0.0, most))


def _bracket(parts: list[tuple[Loss, int]], epsilon: float, rtol: float) -> Bracket:
    if not parts:
        return Bracket(0.0, 0.0)
    if len(parts) == 1 and parts[0][1] == 1:
        value = min(1.0, exp(parts[0][0].log_delta(epsilon)))
        return Bracket(value, value)
    return bracket(parts, epsilon, rtol)


def _from_zcdp(rho: float, epsilon: float) -> float:
    """The best bound on log delta (Canonne, Kamath and Steinke 2020, Corollary 13)."""
    if rho == 0:
        return -inf
    if not isfinite(rho):
        return 0.0

    def bound(log_excess: float) -> float:
        order = 1 + exp(log_excess)
        return (order - 1) * (order * rho - epsilon) - log(order - 1) + order * log1p(-1 / order)

    most = max(12.0, 1 + log(max(epsilon, tol.SMALLEST) / rho))  # twice the best order of large losses
    found = scipy.optimize.minimize_scalar(bound, bounds=(-12.0, most), options={"xatol": 1e-10})
    return min(0.0, float(found.fun))
