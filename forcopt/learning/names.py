"""Features by name: the columns of a frame in the order in which a policy learned them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forcopt.errors import DeclarationError

__all__ = ["aligned", "names_of", "take_names"]


def names_of(X: Any) -> tuple[str, ...]:
    """The names of the columns of a frame; none of an array, or if they are no text or not all different."""
    names = tuple(getattr(X, "columns", ()))
    return names if all(isinstance(n, str) for n in names) and len(set(names)) == len(names) else ()


def aligned(X: Any, names: Sequence[str], given: Sequence[str] = ()) -> Any:
    """The columns of a table in the order of these names.

    Parameters
    ----------
    X : Any
        A frame, or an array, whose columns count by position.
    names : Sequence[str]
        Of the features that a policy learned; empty if it knows none, then X is left as it is.
    given : Sequence[str], optional
        The names of the columns of an array.

    Raises
    ------
    DeclarationError
        For a column that is missing or unknown, by its name, and for another number of columns.

    Examples
    --------
    >>> import pandas as pd
    >>> aligned(pd.DataFrame({"debt": [1], "income": [2]}), ["income", "debt"]).to_numpy().tolist()
    [[2, 1]]
    """
    found = list(given or getattr(X, "columns", ()))
    if not names or not any(isinstance(name, str) for name in found):
        width = X.shape[1] if hasattr(X, "shape") and len(X.shape) == 2 else len(names)
        if names and width != len(names):
            raise DeclarationError(f"X has {width} columns; the policy has {len(names)}: {', '.join(names)}")
        return X
    missing = [name for name in names if name not in found]
    surplus = [str(name) for name in found if name not in names]
    twice = [str(name) for name in dict.fromkeys(found) if found.count(name) > 1]
    for what, wrong in (("lacks", missing), ("has the unknown", surplus), ("has twice the", twice)):
        if wrong:
            raise DeclarationError(
                f"X {what} column {', '.join(map(repr, wrong))}; the features are {', '.join(names)}"
            )
    if given:
        return X[:, [found.index(name) for name in names]]
    return X if found == list(names) else X[list(names)]


def take_names(data: Any, field: str = "features") -> Any:
    """Fill the field ``feature_names`` of a declaration from the frame in another field."""
    if isinstance(data, dict) and not data.get("feature_names") and (names := names_of(data.get(field))):
        return {**data, "feature_names": names}
    return data
