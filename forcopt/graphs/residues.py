"""Counts of any size, as residues modulo primes: compiled code has integers of 64 bits only."""

from __future__ import annotations

from functools import cache

import numpy as np

from forcopt.arrays import Array

__all__ = ["primes", "whole"]


def whole(residues: Array) -> int:
    """The number with these residues (Chinese remainders)."""
    value, modulus = 0, 1
    for residue, prime in zip(residues.tolist(), primes(len(residues)).tolist(), strict=True):
        step = (residue - value) * pow(modulus, -1, prime) % prime
        value, modulus = value + modulus * step, modulus * prime
    return value


@cache
def primes(count: int) -> Array:
    """The largest primes below 2**31: counts are kept as residues, as many as their size needs."""
    found: list[int] = []
    candidate = 2**31 - 1
    divisors = np.arange(3, 46341, 2)
    while len(found) < count:
        if (candidate % divisors).all():
            found.append(candidate)
        candidate -= 2
    return np.array(found, np.int64)
