"""Calibrated scores with equal error rates: change the scores of groups so that one cutoff treats them alike.

Reich and Vijaykumar: A Possibility in Algorithmic Fairness: Can Calibration and Equal Error Rates Be
Reconciled? FORC 2021.
"""

from forcopt.models.calibrated_errors import formulations  # noqa: F401  (register the methods)
from forcopt.models.calibrated_errors.decision import CalibratedScores, ScoreKernel
from forcopt.models.calibrated_errors.problem import CalibratedEqualErrors, Recalibration
from forcopt.models.calibrated_errors.region import FeasibleRegion
from forcopt.models.calibrated_errors.transport import CalibratedTransport

__all__ = [
    "CalibratedEqualErrors",
    "CalibratedScores",
    "CalibratedTransport",
    "FeasibleRegion",
    "Recalibration",
    "ScoreKernel",
]
