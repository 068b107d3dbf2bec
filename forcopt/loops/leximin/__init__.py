"""Strategies for leximin objectives, one a file: each writes its stages and runs them.

`forcopt.leximin` compares them. A leximax of losses is a leximin of the losses with their signs
changed.
"""

from forcopt.loops.leximin.compact import CompactLayout
from forcopt.loops.leximin.cuts import CutsLayout, SubsetCuts
from forcopt.loops.leximin.ordered_values import OrderedValuesLayout
from forcopt.loops.leximin.saturation import SaturationLayout
from forcopt.loops.leximin.stage import Floors, Layout, StageRun, hold_objective

__all__ = [
    "CompactLayout",
    "CutsLayout",
    "Floors",
    "Layout",
    "OrderedValuesLayout",
    "SaturationLayout",
    "StageRun",
    "SubsetCuts",
    "hold_objective",
]
