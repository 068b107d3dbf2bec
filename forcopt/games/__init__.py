"""No-regret dynamics for min-max problems: what a player does, knowing only its gains so far."""

from forcopt.games.exponentiated_gradient import ExponentiatedGradient
from forcopt.games.projected_gradient import ProjectedGradient

__all__ = ["ExponentiatedGradient", "ProjectedGradient"]
