"""Adaptive robustness: each point's ball ends where the other label begins.

Chowdhury, Urner: Robustness should not be at odds with accuracy, FORC 2022.
"""

from forcopt.models.adaptive_robustness import halfspaces, network_radius, vertex_cover  # noqa: F401  (register the methods)
from forcopt.models.adaptive_robustness.adaptive_radii import (
    Augmented,
    adaptive_radii,
    augment,
    nn_sample_size,
    sampled_loss,
)
from forcopt.models.adaptive_robustness.augmented import ExpansionNearestNeighbour
from forcopt.models.adaptive_robustness.classification import AdaptiveRobustClassification
from forcopt.models.adaptive_robustness.classifiers import (
    Classifier,
    Halfspace,
    NearestNeighbour,
    ReLUNetwork,
    Tree,
)
from forcopt.models.adaptive_robustness.neighbour_radius import MarginRate, constancy_radii, margin_rate
from forcopt.models.adaptive_robustness.robust_bayes import Pairing, RobustBayes, RobustClassifier
from forcopt.models.adaptive_robustness.robustness_radius import RobustnessRadius, exact_radii

__all__ = [
    "AdaptiveRobustClassification",
    "Augmented",
    "Classifier",
    "ExpansionNearestNeighbour",
    "Halfspace",
    "MarginRate",
    "NearestNeighbour",
    "Pairing",
    "ReLUNetwork",
    "RobustBayes",
    "RobustClassifier",
    "RobustnessRadius",
    "Tree",
    "adaptive_radii",
    "augment",
    "constancy_radii",
    "exact_radii",
    "margin_rate",
    "nn_sample_size",
    "sampled_loss",
]
