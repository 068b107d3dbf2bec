"""No-regret dynamics for min-max problems: what a player does, knowing only its gains so far."""

from forcopt.games.exponentiated_gradient import ExponentiatedGradient

__all__ = ["ExponentiatedGradient"]
