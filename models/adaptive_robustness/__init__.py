"""Adaptive robustness: each point's ball ends where the other label begins.

Chowdhury, Urner: Robustness should not be at odds with accuracy, FORC 2022.
"""

from forcopt.models.adaptive_robustness import (  # noqa: F401  (register the methods)
    attacks,
    bayes,
    bayes_enumeration,
    closed_form,
    constant,
    cutting_plane_radius,
    halfspace_enumeration,
    halfspace_milp,
    hinge,
    max_flow,
    network_radius,
    primal_dual,
    quadratic_radius,
    vertex_cover,
    voronoi,
)
from forcopt.models.adaptive_robustness.adaptive_radii import adaptive_radii
from forcopt.models.adaptive_robustness.augmentation import Augmented, augment
from forcopt.models.adaptive_robustness.augmented import ExpansionNearestNeighbour
from forcopt.models.adaptive_robustness.classification import AdaptiveRobustClassification
from forcopt.models.adaptive_robustness.classifiers import (
    Classifier,
    Halfspace,
    NearestNeighbour,
    ReLUNetwork,
    Tree,
)
from forcopt.models.adaptive_robustness.cutting_plane_radius import constancy_radii
from forcopt.models.adaptive_robustness.largest_fraction import LargestFraction, largest_fraction
from forcopt.models.adaptive_robustness.margin_rate import MarginRate, margin_rate
from forcopt.models.adaptive_robustness.nn_sample_size import nn_sample_size
from forcopt.models.adaptive_robustness.robust_bayes import Pairing, RobustBayes, RobustClassifier
from forcopt.models.adaptive_robustness.robustness_radius import RobustnessRadius, exact_radii
from forcopt.models.adaptive_robustness.sampled_loss import sampled_loss

__all__ = [
    "AdaptiveRobustClassification",
    "Augmented",
    "Classifier",
    "ExpansionNearestNeighbour",
    "Halfspace",
    "LargestFraction",
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
    "largest_fraction",
    "margin_rate",
    "nn_sample_size",
    "sampled_loss",
]
