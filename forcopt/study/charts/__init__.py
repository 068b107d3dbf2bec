"""The charts of a comparison as numbers, for paper and screen alike."""

from collections.abc import Callable

from forcopt.study.charts.chart import Chart, Series
from forcopt.study.charts.curves import cactus, pareto, profile, progress, scaling

__all__ = ["CHARTS", "Chart", "Series", "cactus", "pareto", "profile", "progress", "scaling"]

_CHARTS: tuple[Callable[..., Chart], ...] = (profile, cactus, progress, scaling, pareto)
CHARTS = {chart.__name__: chart for chart in _CHARTS}
"""By the names that `Comparison.plot` takes."""
