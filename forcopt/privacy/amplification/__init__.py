"""Sampling designs, and the privacy loss of a mechanism that runs on a sample.

A mechanism M is epsilon-differentially private on samples, and runs on a sample of a population; its loss for
the population is asked for. A design (`Design`) draws samples and gives this loss; the functions give bounds
and closed forms under other relations. Two neighbour relations are arguments:

- `neighbours`, between populations: ``"add_remove"`` (one has a record more) or ``"substitute"`` (one record
  differs).
- `mechanism`, between samples, under which M is epsilon-private: ``"add_remove"``, ``"substitute"``, or
  ``"either"`` (both). Under ``"add_remove"`` alone, a substitution costs 2 epsilon.

All losses are natural logarithms of the largest ratio of probabilities; a loss for a design is the least
that holds for all such M. `forcopt.models.TightAmplification` finds it by a linear program for small designs.

References
----------
Bun, Drechsler, Gaboardi, McMillan, Sarathy, Controlling privacy loss in sampling schemes: an analysis of
stratified and cluster sampling, FORC 2022.
"""

from forcopt.arrays import whole_number
from forcopt.privacy.amplification.design import Design, draw
from forcopt.privacy.amplification.loss import (
    PrivacyLoss,
    largest_epsilon,
    largest_rate,
    largest_size,
    noisy_statistic,
)
from forcopt.privacy.amplification.sizes import (
    PoissonSample,
    SimpleRandomSample,
    expected_size,
    poisson_sample,
    random_size,
    simple_random_sample,
)
from forcopt.privacy.amplification.strata import (
    ClusterSample,
    ProportionalAllocation,
    RandomizedRounding,
    StratifiedSample,
    cluster_sample,
    data_dependent_allocation,
    proportional_allocation,
    randomized_rounding,
    revealed_cluster,
    rounded_sizes,
)
from forcopt.privacy.losses import Neighbours, SampleRelation

__all__ = [
    "ClusterSample",
    "Design",
    "Neighbours",
    "PoissonSample",
    "PrivacyLoss",
    "ProportionalAllocation",
    "RandomizedRounding",
    "SampleRelation",
    "SimpleRandomSample",
    "StratifiedSample",
    "cluster_sample",
    "data_dependent_allocation",
    "draw",
    "expected_size",
    "largest_epsilon",
    "largest_rate",
    "largest_size",
    "noisy_statistic",
    "poisson_sample",
    "proportional_allocation",
    "random_size",
    "randomized_rounding",
    "revealed_cluster",
    "rounded_sizes",
    "simple_random_sample",
    "whole_number",
]
