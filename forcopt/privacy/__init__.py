"""Private mechanisms as objects: noise, profiles, calibration, accounts, sampling designs, audits."""

from forcopt.privacy.accountant import Accountant, BudgetSpentError
from forcopt.privacy.amplification import (
    ClusterSample,
    Design,
    PoissonSample,
    PrivacyLoss,
    ProportionalAllocation,
    RandomizedRounding,
    SimpleRandomSample,
    StratifiedSample,
    draw,
)
from forcopt.privacy.audits import Audit, audit
from forcopt.privacy.budget import (
    GDP,
    ZCDP,
    ApproximateDP,
    Budget,
    PrivacyBudget,
    PureDP,
    calibrate,
    composed_epsilon,
)
from forcopt.privacy.fft import Bracket
from forcopt.privacy.interop import dp_event
from forcopt.privacy.losses import Neighbours, SampleRelation
from forcopt.privacy.mechanism import (
    AdditiveMechanism,
    Both,
    Channel,
    ExponentialMechanism,
    Mechanism,
    PostProcessed,
    Sampled,
)
from forcopt.privacy.noises import (
    BoundedNoise,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    GeneralizedGaussian,
    KNorm,
    Laplace,
    Noise,
    Staircase,
    TabulatedNoise,
)
from forcopt.privacy.odometers import adaptive, odometer
from forcopt.privacy.profile import Profile
from forcopt.privacy.queries import ClampedSum, Count, Query, QueryMechanism
from forcopt.privacy.randomized_response import ObservedGroups, RandomizedResponse
from forcopt.privacy.randomness import Randomness, Release, Secure, Simulated, randomness

__all__ = [
    "GDP",
    "ZCDP",
    "Accountant",
    "AdditiveMechanism",
    "ApproximateDP",
    "Audit",
    "Both",
    "BoundedNoise",
    "Bracket",
    "Budget",
    "BudgetSpentError",
    "Channel",
    "ClampedSum",
    "ClusterSample",
    "Count",
    "Design",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "ExponentialMechanism",
    "Gaussian",
    "GeneralizedGaussian",
    "KNorm",
    "Laplace",
    "Mechanism",
    "Neighbours",
    "Noise",
    "ObservedGroups",
    "PoissonSample",
    "PostProcessed",
    "PrivacyBudget",
    "PrivacyLoss",
    "Profile",
    "ProportionalAllocation",
    "PureDP",
    "Query",
    "QueryMechanism",
    "RandomizedResponse",
    "RandomizedRounding",
    "Randomness",
    "Release",
    "SampleRelation",
    "Sampled",
    "Secure",
    "SimpleRandomSample",
    "Simulated",
    "Staircase",
    "StratifiedSample",
    "TabulatedNoise",
    "adaptive",
    "audit",
    "calibrate",
    "composed_epsilon",
    "dp_event",
    "draw",
    "odometer",
    "randomness",
]
