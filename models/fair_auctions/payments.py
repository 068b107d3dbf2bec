"""Payments that make bidding the truth a dominant strategy: Myerson's integral, in closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import AfterValidator
from scipy.special import hyp2f1

from forcopt.arrays import Array, as_numbers, check_entries
from forcopt.declaration import Numbers
from forcopt.errors import DeclarationError, check_choice
from forcopt.models.fair_auctions import rules

RuleName = Literal["inverse-proportional", "proportional", "highest-bid", "uniform"]
"""The rules whose payments have a closed form."""

_MOST_INTEGER = 60
"""Larger whole ell go by the hypergeometric function: partial fractions have ell terms."""


class Charges(NamedTuple):
    """Payments and clicks of every ad.

    Attributes
    ----------
    payments : Array
        Expected payment per auction, in units of values; shape ``(T, n)``.
    clicks : Array
        Expected clicks, ``x_i = alpha_i sum_j M_ij beta_j``; shape ``(T, n)``.
    """

    payments: Array
    clicks: Array

    @property
    def revenue(self) -> Array:
        """The sum over ads, shape ``(T,)``."""
        return np.asarray(self.payments.sum(axis=1))


def read_slots(slots: Any) -> Array:
    """Slot factors, checked: from 0 to 1 and not rising.

    Raises
    ------
    DeclarationError
        Naming the slot.
    """
    beta = as_numbers(slots, "slots")
    if beta.ndim != 1:
        raise DeclarationError(f"slots have shape {beta.shape}; they must be (k,)")
    check_entries(beta, (beta < 0) | (beta > 1), "slots", "a slot factor must be from 0 to 1")
    if (np.diff(beta) > 0).any():
        j = int(np.argmax(np.diff(beta) > 0)) + 1
        raise DeclarationError(
            f"slots[{j}] is {beta[j]:g}, above slots[{j - 1}], {beta[j - 1]:g}; slot factors must not rise"
        )
    return beta


Slots = Annotated[Numbers, AfterValidator(read_slots)]
"""A field of slot factors."""


def read_factors(factors: Any, shape: tuple[int, ...]) -> Array:
    """Ad factors for all users and ads, checked: above 0.

    Raises
    ------
    DeclarationError
        Naming user and ad.
    """
    given = as_numbers(factors, "ad_factors")
    try:
        alpha = np.broadcast_to(given, shape)
    except ValueError:
        raise DeclarationError(
            f"ad_factors have shape {given.shape}; they must be one number, ({shape[1]},) or {shape}"
        ) from None
    check_entries(alpha, alpha <= 0, "ad_factors", "an ad factor must be above 0")
    return alpha


def payments(rule: RuleName, values: Any, slots: Any, ad_factors: Any = 1.0, *, ell: float = 1.0) -> Charges:
    """Compute the truthful payments of a rule at given bids.

    Parameters
    ----------
    rule : {"inverse-proportional", "proportional", "highest-bid", "uniform"}
        A rule by name.
    values : array_like
        Per click, at least 0; shape ``(T, n)`` or ``(n,)``.
    slots : array_like
        Slot factors that do not rise, from 0 to 1; shape ``(k,)``.
    ad_factors : array_like, default 1.0
        Above 0; one number, shape ``(n,)`` or ``(T, n)``.
    ell : float, default 1.0
        Of the rule.

    Returns
    -------
    Charges
        Payments and clicks.

    Raises
    ------
    DeclarationError
        For another rule, and for malformed input.

    Notes
    -----
    ``p_i = v_i x_i(v_i) - integral from 0 to v_i of x_i(z) dz`` (Myerson). Each ad's share of j units is a
    piecewise rational function of ``(alpha_i z) ** ell`` with at most n pieces, between the bids at which the
    share of another ad reaches 0 (inverse proportional) or 1 (proportional). The integral of
    ``1 / (1 + s**ell)`` is ``log(1 + s)`` for ell = 1, a sum of complex logarithms (partial fractions) for
    whole ell, and a hypergeometric function else. The highest bids pay the VCG prices. O(T n² k) in closed
    form.

    References
    ----------
    Chawla, Rezvan and Sauerberg (2022), section 5. Myerson: Optimal auction design. Mathematics of
    Operations Research 6, 1981.

    Examples
    --------
    >>> payments("inverse-proportional", [4, 2, 1], [1, 0.5]).payments.round(6).tolist()
    [[0.897152, 0.414436, 0.087363]]
    >>> payments("highest-bid", [4, 2, 1], [1, 0.5]).payments.tolist()  # VCG
    [[1.5, 0.5, 0.0]]
    """
    beta = read_slots(slots)
    v = rules.read_values(values, len(beta))
    alpha = read_factors(ad_factors, v.shape)
    u = v * alpha
    steps = -np.diff(beta, append=0.0)
    check_choice("rule", rule, *RULES)
    clicks = alpha * (RULES[rule](u, len(beta), rules.check_ell(ell)) @ beta)
    areas = np.zeros(v.shape)
    for i in range(v.shape[1]):
        others = np.delete(u, i, axis=1)
        for j in np.flatnonzero(steps > 0):
            areas[:, i] += steps[j] * _AREAS[rule](u[:, i], others, int(j) + 1, ell)
    worth = v * clicks
    return Charges(np.clip(worth - areas, 0.0, np.maximum(worth, 0.0)), clicks)


# -- the area under the share of h units, as a function of effective value -----------------------------------


def _reciprocal_area(s: Array, ell: float) -> Array:
    """``integral from 0 to s of dx / (1 + x**ell)``, for s from 0 to infinity (where ell allows it)."""
    if ell == 1.0:
        return np.asarray(np.log1p(s))
    if ell == round(ell) and ell <= _MOST_INTEGER:
        whole = round(ell)
        roots = np.exp(1j * np.pi * (2 * np.arange(whole // 2) + 1) / whole)
        total = sum((-2.0 * root * np.log1p(-s / root)).real for root in roots)
        if whole % 2:
            total = total + np.log1p(s)  # the root -1
        return np.asarray(total / whole)
    return np.asarray(s * hyp2f1(1.0, 1.0 / ell, 1.0 + 1.0 / ell, -(s**ell)))


def _inverse_proportional_area(own: Array, others: Array, h: int, ell: float) -> Array:
    """For all users: the integral of the share of h units over the ad's effective value from 0 to `own`.

    With c other ads at 0, x the sum of g over those above 0, and y = n - h - c: the share is
    ``1 - y / (1 + x u**ell)``, for t from max(1 / g_c, (y - 1) / x) to min(1 / g_(c+1), y / x).
    """
    n = others.shape[1] + 1
    rising = np.sort(others, axis=1)  # g falls along each row
    out = np.zeros(len(own))
    for c in range(n - 1):
        y = n - h - c
        if y <= 0:
            break
        kept = rising[:, c:]
        unit = kept[:, 0]  # g in units of the largest one that is left: x is from 1 to n
        with np.errstate(divide="ignore", over="ignore", invalid="ignore", under="ignore"):
            x = ((kept / unit[:, None]) ** -ell).sum(axis=1)
            before = (rising[:, c - 1] / unit) ** ell if c else np.zeros(len(own))  # 1 / g_c
            start, end = np.maximum(before, (y - 1) / x), np.minimum(1.0, y / x)
            live = (unit > 0) & (start < end)
            a = unit * (1.0 / np.maximum(y / start - x, 0.0)) ** (1.0 / ell)
            b = unit * (1.0 / np.maximum(y / end - x, 0.0)) ** (1.0 / ell)
            a, b = np.minimum(np.where(live & (start > 0), a, 0.0), own), np.minimum(b, own)
            live &= b > a
        if live.any():
            a, b, root = a[live], b[live], (x[live] ** (1.0 / ell)) / unit[live]
            piece = _reciprocal_area(b * root, ell) - _reciprocal_area(a * root, ell)
            out[live] += (b - a) - y / root * piece
    return np.where((others > 0).sum(axis=1) < h, own, out)


def _proportional_area(own: Array, others: Array, h: int, ell: float) -> Array:
    """The same for the proportional rule.

    With c other ads at 1, x the sum of g over the others, and y = h - c: the share is
    ``y (1 - 1 / (1 + u**ell / x))`` for ``u**ell`` from ``y g_(c+1) - x`` to ``y g_c - x``, up to 1.
    """
    falling = -np.sort(-others, axis=1)
    out = np.zeros(len(own))
    top = np.zeros(len(own))  # up to which value the integral is done
    for c in reversed(range(min(h, others.shape[1]))):
        y = h - c
        unit = falling[:, c]
        with np.errstate(divide="ignore", over="ignore", invalid="ignore", under="ignore"):
            x = ((falling[:, c:] / unit[:, None]) ** ell).sum(axis=1)
            before = (falling[:, c - 1] / unit) ** ell if c else np.full(len(own), np.inf)
            a = unit * np.maximum(y - x, 0.0) ** (1.0 / ell)
            b = unit * np.maximum(y * before - x, 0.0) ** (1.0 / ell)
            full = unit * (x / (y - 1)) ** (1.0 / ell) if y > 1 else np.full(len(own), np.inf)
            a, b = np.minimum(a, own), np.minimum(np.minimum(b, full), own)
            live = (unit > 0) & (b > a)
        if live.any():
            a, b, root = a[live], b[live], 1.0 / (x[live] ** (1.0 / ell) * unit[live])
            area = _reciprocal_area(b * root, ell) - _reciprocal_area(a * root, ell)
            out[live] += y * ((b - a) - area / root)
            top[live] = np.maximum(top[live], b)
    out += own - np.maximum(top, _first(falling, h, ell, own))
    return np.where((others > 0).sum(axis=1) < h, own, out)


def _first(falling: Array, h: int, ell: float, own: Array) -> Array:
    """The value from which the share of h units is 1, at most `own`: where the others alone fill h - 1."""
    out = own.copy()
    todo = np.full(len(own), True)
    for c in range(min(h - 1, falling.shape[1])):
        left, unit = h - 1 - c, falling[:, c]
        with np.errstate(divide="ignore", over="ignore", invalid="ignore", under="ignore"):
            x = ((falling[:, c:] / unit[:, None]) ** ell).sum(axis=1)
            # Of the others c are at 1; the last unit is never capped, even where rounding swallows ads.
            fits = todo & (unit > 0) & ((left < x) | (left == 1))
            out = np.where(fits, np.minimum(unit * (x / left) ** (1.0 / ell), own), out)
        todo &= ~fits
    return out


def _highest_bid_area(own: Array, others: Array, h: int, ell: float) -> Array:
    """The ad wins one of h units where it exceeds the h-th highest other value."""
    if h > others.shape[1]:
        return own
    return np.asarray(np.maximum(own - (-np.partition(-others, h - 1, axis=1)[:, h - 1]), 0.0))


def _uniform_area(own: Array, others: Array, h: int, ell: float) -> Array:
    return np.asarray(own * h / (others.shape[1] + 1))


RULES: dict[str, Callable[[Any, int, float], Array]] = {
    "inverse-proportional": rules.inverse_proportional,
    "proportional": rules.proportional,
    "highest-bid": lambda values, slots, ell: rules.highest_bid(values, slots),
    "uniform": lambda values, slots, ell: rules.uniform(values, slots),
}
"""Shares by effective values, the number of slots and ell."""

_AREAS: dict[str, Callable[[Array, Array, int, float], Array]] = {
    "inverse-proportional": _inverse_proportional_area,
    "proportional": _proportional_area,
    "highest-bid": _highest_bid_area,
    "uniform": _uniform_area,
}
