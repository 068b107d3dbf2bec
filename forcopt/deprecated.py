"""Old names of what was renamed: each works for two minor versions, and warns."""

from pkgutil import resolve_name
from typing import Any
from warnings import warn

RENAMED: dict[str, str] = {}
"""For each old public name with its package, the new one: ``"forcopt.old": "forcopt.new"``."""


def renamed(name: str) -> Any:
    """Give what an old name stood for, with a `DeprecationWarning`.

    Parameters
    ----------
    name : str
        The old name with its package, a key of `RENAMED`.

    Returns
    -------
    Any
        What the new name stands for.

    Examples
    --------
    >>> import warnings
    >>> RENAMED["forcopt.Programme"] = "forcopt.Model"
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     renamed("forcopt.Programme").__name__, str(said[0].message)
    ('Model', 'forcopt.Programme is now forcopt.Model')
    >>> del RENAMED["forcopt.Programme"]
    """
    warn(f"{name} is now {RENAMED[name]}", DeprecationWarning, stacklevel=3)
    return resolve_name(RENAMED[name])
