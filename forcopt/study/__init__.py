"""Compare methods side by side: each run in a process of its own, one row a run."""

from forcopt.study.compare import compare
from forcopt.study.report import Comparison
from forcopt.study.run import Run

__all__ = ["Comparison", "Run", "compare"]
