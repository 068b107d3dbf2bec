"""What the peers that end in a PyOptInterface model share; it has its own HiGHS, apart from highspy."""

from __future__ import annotations

import tempfile
from pathlib import Path

import highspy
from pyoptinterface import highs

from ._highs import read


def size(model: highs.Model) -> tuple[int, int]:
    """Numbers of rows and columns."""
    return model.getnumrow(), model.getnumcol()


def to_highspy(model: highs.Model) -> highspy.Highs:
    """The model, written to a file by one HiGHS and read by the other."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.mps")
        model.write(path)
        return read(path)
