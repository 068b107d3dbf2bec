"""The charts of a comparison as numbers, for paper and screen alike: one chart a file."""

from collections.abc import Callable

from forcopt.study.charts.cactus import cactus
from forcopt.study.charts.chart import Chart, Series
from forcopt.study.charts.pareto import pareto
from forcopt.study.charts.profile import profile
from forcopt.study.charts.progress import progress
from forcopt.study.charts.scaling import scaling

__all__ = ["CHARTS", "Chart", "Series", "cactus", "pareto", "profile", "progress", "scaling"]

CHARTS: dict[str, Callable[..., Chart]] = {
    "profile": profile,
    "cactus": cactus,
    "progress": progress,
    "scaling": scaling,
    "pareto": pareto,
}
"""By the names that `Comparison.plot` takes."""
