"""Noise: random variables that are added to numbers before release, one law a file."""

from forcopt.privacy.noises.base import Noise
from forcopt.privacy.noises.bounded import BoundedNoise
from forcopt.privacy.noises.gaussian import DiscreteGaussian, Gaussian
from forcopt.privacy.noises.generalized_gaussian import GeneralizedGaussian
from forcopt.privacy.noises.laplace import DiscreteLaplace, KNorm, Laplace
from forcopt.privacy.noises.staircase import Staircase
from forcopt.privacy.noises.tabulated import TabulatedNoise

__all__ = [
    "BoundedNoise",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Gaussian",
    "GeneralizedGaussian",
    "KNorm",
    "Laplace",
    "Noise",
    "Staircase",
    "TabulatedNoise",
]
