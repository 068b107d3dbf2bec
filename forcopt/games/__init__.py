"""No-regret dynamics for min-max problems: what a player does, knowing only its gains so far."""

from forcopt.games.exponentiated_gradient import ExponentiatedGradient
from forcopt.games.gradient_descent import GradientDescent
from forcopt.games.perturbed_leader import PerturbedLeader

__all__ = ["ExponentiatedGradient", "GradientDescent", "PerturbedLeader"]
