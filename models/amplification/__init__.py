"""The exact effect of sampling on privacy: linear programs over all private mechanisms.

Bun, Drechsler, Gaboardi, McMillan, Sarathy: Controlling privacy loss in sampling schemes: an analysis of
stratified and cluster sampling, FORC 2022. Bounds and closed forms are in `forcopt.privacy.amplification`.
"""

from forcopt.models.amplification.problem import Distinguisher, DPHypothesisTest, DPTest, TightAmplification

__all__ = ["DPHypothesisTest", "DPTest", "Distinguisher", "TightAmplification"]
