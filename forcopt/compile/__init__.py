"""From a model to a program: sparse arrays that a backend can take."""

from forcopt.compile.bridges import Bridge, bridge, bridges
from forcopt.compile.compiler import Capabilities, compile_model
from forcopt.compile.program import Cone, IndicatorRows, Program, RowBlock, StageCost

__all__ = [
    "Bridge",
    "Capabilities",
    "Cone",
    "IndicatorRows",
    "Program",
    "RowBlock",
    "StageCost",
    "bridge",
    "bridges",
    "compile_model",
]
