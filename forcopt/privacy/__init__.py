"""Private mechanisms as objects: noise, profiles, calibration, accounts, sampling designs, audits."""

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
from forcopt.privacy.interop import dp_event, from_opendp, to_opendp
from forcopt.privacy.ledger import BudgetSpentError, Entry, Ledger
from forcopt.privacy.losses import Neighbours, SampleRelation
from forcopt.privacy.mechanism import AdditiveMechanism, Channel, ExponentialMechanism, Mechanism
from forcopt.privacy.noises import (
    BoundedNoise,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    GeneralizedGaussian,
    KNorm,
    Laplace,
    Noise,
    TabulatedNoise,
)
from forcopt.privacy.odometers import adaptive, odometer
from forcopt.privacy.profile import Profile
from forcopt.privacy.queries import Calibrated, Measurement, Query, Sensitivity
from forcopt.privacy.randomized_response import ObservedGroups, RandomizedResponse
from forcopt.privacy.randomness import Randomness, Release, Secure, Simulated, randomness
from forcopt.privacy.release import TableRelease
from forcopt.privacy.schema import Bounded, Categories, Schema
from forcopt.privacy.table import Table

__all__ = [
    "GDP",
    "ZCDP",
    "AdditiveMechanism",
    "ApproximateDP",
    "Audit",
    "Bounded",
    "BoundedNoise",
    "Bracket",
    "Budget",
    "BudgetSpentError",
    "Calibrated",
    "Categories",
    "Channel",
    "ClusterSample",
    "Design",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Entry",
    "ExponentialMechanism",
    "Gaussian",
    "GeneralizedGaussian",
    "KNorm",
    "Laplace",
    "Ledger",
    "Measurement",
    "Mechanism",
    "Neighbours",
    "Noise",
    "ObservedGroups",
    "PoissonSample",
    "PrivacyBudget",
    "PrivacyLoss",
    "Profile",
    "ProportionalAllocation",
    "PureDP",
    "Query",
    "RandomizedResponse",
    "RandomizedRounding",
    "Randomness",
    "Release",
    "SampleRelation",
    "Schema",
    "Secure",
    "Sensitivity",
    "SimpleRandomSample",
    "Simulated",
    "StratifiedSample",
    "Table",
    "TableRelease",
    "TabulatedNoise",
    "adaptive",
    "audit",
    "calibrate",
    "composed_epsilon",
    "dp_event",
    "draw",
    "from_opendp",
    "odometer",
    "randomness",
    "to_opendp",
]
