"""Noise: random variables that are added to numbers before release, one law a file."""

from forcopt.privacy.noises.base import Noise
from forcopt.privacy.noises.bounded import BoundedNoise, TabulatedNoise
from forcopt.privacy.noises.gaussian import DiscreteGaussian, Gaussian, GeneralizedGaussian
from forcopt.privacy.noises.laplace import DiscreteLaplace, KNorm, Laplace

__all__ = [
    "BoundedNoise",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Gaussian",
    "GeneralizedGaussian",
    "KNorm",
    "Laplace",
    "Noise",
    "TabulatedNoise",
]
