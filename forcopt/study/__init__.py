"""Compare methods, sweep parameters, repeat studies: a row a run, kept as it ends."""

from forcopt.study.compare import compare
from forcopt.study.comparison import Comparison
from forcopt.study.estimates import Estimates
from forcopt.study.front import FairFront, FairScorer, fair_front
from forcopt.study.replicate import replicate
from forcopt.study.run import Run
from forcopt.study.sweep import sweep

__all__ = [
    "Comparison",
    "Estimates",
    "FairFront",
    "FairScorer",
    "Run",
    "compare",
    "fair_front",
    "replicate",
    "sweep",
]
