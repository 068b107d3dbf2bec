"""The charts of a comparison as numbers, for paper and screen alike."""

from collections.abc import Callable

from forcopt.study.charts.chart import Chart, Series
from forcopt.study.charts.curves import cactus, pareto, profile, progress, scaling

__all__ = ["CHARTS", "Chart", "Series", "cactus", "pareto", "profile", "progress", "scaling"]

CHARTS: dict[str, Callable[..., Chart]] = {
    "profile": profile,
    "cactus": cactus,
    "progress": progress,
    "scaling": scaling,
    "pareto": pareto,
}
"""By the names that `Comparison.plot` takes."""
