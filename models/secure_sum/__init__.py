"""Sums of vectors by servers that learn nothing else, robust against clients: the protocol, and its design.

Talwar: Differential secrecy for distributed data and applications to robust differentially secure vector
summation, FORC 2022.
"""

from forcopt.models.secure_sum import search, talwar  # noqa: F401  (register the methods)
from forcopt.models.secure_sum.faults import Attack, CancellingShares, DropShare, DuplicateShare, ReplaceShare
from forcopt.models.secure_sum.problem import SecureSum
from forcopt.models.secure_sum.protocol import SumProtocol, Transcript
from forcopt.models.secure_sum.shares import (
    SharedNoise,
    Shares,
    View,
    even_shares,
    shared_noise,
    talwar_shares,
)

__all__ = [
    "Attack",
    "CancellingShares",
    "DropShare",
    "DuplicateShare",
    "ReplaceShare",
    "SecureSum",
    "SharedNoise",
    "Shares",
    "SumProtocol",
    "Transcript",
    "View",
    "even_shares",
    "shared_noise",
    "talwar_shares",
]
