"""Two-player zero-sum games: players without regret, and the loop that measures their gap."""

from forcopt.games.players import ExponentiatedGradient, GradientDescent, PerturbedLeader
from forcopt.games.runner import GameEnd, Measurement, TwoPlayerGame, checkpoints, run_game

__all__ = [
    "ExponentiatedGradient",
    "GameEnd",
    "GradientDescent",
    "Measurement",
    "PerturbedLeader",
    "TwoPlayerGame",
    "checkpoints",
    "run_game",
]
