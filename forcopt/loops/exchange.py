"""Hand a model over: to files and to other libraries' own objects."""

from __future__ import annotations

from typing import Any

from forcopt.language.model import Model

__all__ = ["to_native"]


def to_native(model: Model, library: str) -> Any:
    """Give the model as another library's own object, not solved."""
    import highspy

    from forcopt.backends.highs import Highs, pass_program
    from forcopt.compile.compiler import compile_model

    if library == "mathopt":
        from forcopt.backends import mathopt

        return mathopt.native(compile_model(model, mathopt.NATIVE, library))
    program = compile_model(model, Highs.capabilities, "highs")
    out = highspy.Highs()
    out.setOptionValue("output_flag", False)
    pass_program(out, program, natural=True)
    return out
