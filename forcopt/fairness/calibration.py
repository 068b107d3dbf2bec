"""Calibration of a score, as numbers or as expressions of a model, by the same code."""

from __future__ import annotations

from typing import Any

from forcopt.arrays import Array

__all__ = ["calibration_gaps"]


def calibration_gaps(joint: Any, values: Array, outputs: Array) -> Any:
    """By how much each output of a score differs from the share of label 1 among the records that get it.

    A score is calibrated within a group if all gaps are zero: of the people with output q, a share q has
    label 1.

    Parameters
    ----------
    joint : Any
        How much of the group has each old score (rows) and each output (columns), shape ``(N, M)``; numbers
        or an expression.
    values : Array
        The share of label 1 among the records of each old score, shape ``(N,)``.
    outputs : Array
        The outputs, shape ``(M,)``.

    Returns
    -------
    Any
        For each output the mass with label 1 minus output times mass, shape ``(M,)``.

    Examples
    --------
    >>> import numpy as np
    >>> joint = np.array([[0.25, 0.25], [0.0, 0.5]])
    >>> calibration_gaps(joint, np.array([0.2, 0.5]), np.array([0.2, 0.4])).round(9).tolist()
    [0.0, -0.0]
    """
    return values @ joint - outputs * joint.sum(axis=0)
