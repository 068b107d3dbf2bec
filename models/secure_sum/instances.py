"""Seeded instances: designs for gradients and for counts."""

from __future__ import annotations

from functools import partial

from forcopt.instance import Instance, by_name
from forcopt.models.secure_sum.problem import SecureSum


def _design(servers: int, dimension: int, bits: int) -> SecureSum:
    return SecureSum(servers=servers, dimension=dimension, epsilon=1.0, delta=1e-6, bits=bits)


INSTANCES = by_name(
    Instance(f"secure_sum/design-{s}-{d}-{b}", partial(_design, s, d, b), "milp")
    for s, d, b in ((2, 1000, 12), (2, 100_000, 20), (3, 100, 16))
)
