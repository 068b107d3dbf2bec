"""Fair post-processing: remix the predictions of a given binary classifier, group by group.

Jagielski, Kearns, Mao, Oprea, Roth, Sharifi-Malvajerdi, Ullman: Differentially Private Fair Learning, ICML
2019, section 2.1 and appendix B; after Hardt, Price and Srebro (2016). With groups that are seen through
randomized response: Mozannar, Ohannessian, Srebro: Fair Learning with Private Demographic Data, ICML 2020.
"""

from forcopt.models.fair_postprocessing import as_predicted, dp_postprocessing, formulations  # noqa: F401  (register the methods)
from forcopt.models.fair_postprocessing.decision import RandomizedPostprocessor
from forcopt.models.fair_postprocessing.dp_postprocessing import PrivacyCost, privacy_cost
from forcopt.models.fair_postprocessing.problem import FairPostprocessing

__all__ = ["FairPostprocessing", "PrivacyCost", "RandomizedPostprocessor", "privacy_cost"]
