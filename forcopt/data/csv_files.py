"""CSV files as data frames, with errors that name the file."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["binary_column", "read_csv"]


def read_csv(path: str | Path, **options: Any) -> pd.DataFrame:
    """Read a CSV file whose first row names its columns.

    Parameters
    ----------
    path : str or Path
        The file.
    options : Any
        Of `pandas.read_csv`.

    Returns
    -------
    pd.DataFrame
        With one column for each name; rows are numbered from 0.

    Raises
    ------
    DeclarationError
        For an empty file, or one whose rows have more entries than the first: pandas would take the first
        column for labels, and move all names by one.
    """
    import pandas as pd

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(path, index_col=False, **options)
    except (ValueError, pd.errors.ParserWarning) as error:
        raise DeclarationError(f"{path} is no CSV file with a first row of names: {error}") from None


def binary_column(frame: pd.DataFrame, column: str, path: str | Path) -> Array:
    """A column of 0 and 1 as integers.

    Raises
    ------
    DeclarationError
        For any other entry, naming the file, the column and the record.
    """
    values = as_numbers(frame[column].to_numpy(), f"{path}: column {column!r}: record")
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DeclarationError(
            f"{path}: column {column!r}: record[{at}] is {values[at]:g}; it must be 0 or 1"
        )
    return values.astype(np.int64)
