"""A comparison as a data frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forcopt.study.run import NUMBERS

if TYPE_CHECKING:
    from forcopt.study.comparison import Comparison

__all__ = ["frame"]


def frame(comparison: Comparison) -> Any:
    """Give a `pandas.DataFrame` with a line for each run; see `Comparison.to_pandas`."""
    import pandas as pd

    rows = comparison.rows
    out = pd.DataFrame([row.record() for row in rows])
    out[list(NUMBERS)] = out[list(NUMBERS)].astype(float)
    out["bridges"] = [", ".join(row.bridges) for row in rows]
    out["versions"] = [", ".join(f"{k} {v}" for k, v in row.versions.items()) for row in rows]
    out = out.drop(columns=["parameters", "metrics"])
    for kind, names in (("parameters", comparison.parameters), ("metrics", comparison.metrics)):
        for name in names:  # under a longer name where a column has it already
            title = f"{kind}.{name}" if name in out else name
            out[title] = [getattr(row, kind).get(name) for row in rows]
    return out
