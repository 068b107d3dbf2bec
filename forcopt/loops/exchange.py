"""Hand a model over: to files and to other libraries' own objects."""

from __future__ import annotations

from typing import Any

from forcopt.language.model import Model

__all__ = ["to_native"]


def to_native(model: Model, library: str) -> Any:
    """Give the model as another library's own object, not solved."""
    from forcopt.compile.compiler import compile_model

    if library == "cvxpy":
        from forcopt.backends import cvxpy

        return cvxpy.native(compile_model(model, cvxpy.CONVEX, library))
    if library == "pyomo":
        from forcopt.backends import pyomo

        return pyomo.native(compile_model(model, pyomo.SMOOTH, library))

    import highspy

    from forcopt.backends.highs import Highs, pass_program

    program = compile_model(model, Highs.capabilities, "highs")
    out = highspy.Highs()
    out.setOptionValue("output_flag", False)
    pass_program(out, program, natural=True)
    return out
