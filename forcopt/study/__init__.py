"""Compare methods, sweep parameters: a row a run, kept as it ends."""

from forcopt.study.compare import compare
from forcopt.study.report import Comparison
from forcopt.study.run import Run
from forcopt.study.sweep import sweep

__all__ = ["Comparison", "Run", "compare", "sweep"]
