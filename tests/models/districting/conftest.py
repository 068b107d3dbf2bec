"""Instances that several tests share."""

import sys
from pathlib import Path

import pytest

from forcopt.data import grid

sys.path.insert(0, str(Path(__file__).parent))  # for the oracle beside these tests

S21 = [20000 + 7919 * (i + 1) ** 2 % 14001 for i in range(21)]


@pytest.fixture
def s21():
    """The synthetic stand-in for Sarthe: a 3x7 grid."""
    return grid(3, 7, population=S21)
