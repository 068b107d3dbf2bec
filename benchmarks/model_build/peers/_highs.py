"""What the peers that end in a `highspy.Highs` share."""

from __future__ import annotations

import highspy


def silent() -> highspy.Highs:
    """A HiGHS instance that prints nothing."""
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    return highs


def size(highs: highspy.Highs) -> tuple[int, int]:
    """Numbers of rows and columns."""
    return highs.getNumRow(), highs.getNumCol()


def to_highspy(highs: highspy.Highs) -> highspy.Highs:
    """The instance itself."""
    return highs


def read(path: str) -> highspy.Highs:
    """The model in a file."""
    highs = silent()
    if highs.readModel(path) == highspy.HighsStatus.kError:
        raise ValueError(f"HiGHS could not read {path}")
    return highs


def accept(status: highspy.HighsStatus) -> None:
    """Refuse a model that HiGHS did not take."""
    if status == highspy.HighsStatus.kError:
        raise ValueError("HiGHS did not accept the model")
