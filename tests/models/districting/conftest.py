"""Instances that several tests share."""

import pytest

from forcopt.data import grid

S21 = [20000 + 7919 * (i + 1) ** 2 % 14001 for i in range(21)]


@pytest.fixture
def s21():
    """The synthetic stand-in for Sarthe: a 3x7 grid."""
    return grid(3, 7, population=S21)
