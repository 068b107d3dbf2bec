"""Objects that refuse assignments to names that are not theirs to set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from forcopt.errors import unsettable

__all__ = ["Guarded"]


class Guarded:
    """A base of classes whose attributes are fixed, but for some.

    Attributes
    ----------
    _settable : frozenset[str]
        The public names that can be set; names that begin with an underscore can.
    _hints : dict[str, str]
        What to write instead, by the refused name in small letters without underscores.
    """

    __slots__ = ()

    _settable: ClassVar[frozenset[str]]
    _hints: ClassVar[dict[str, str]]

    if not TYPE_CHECKING:  # type checkers still report a wrong name

        def __setattr__(self, name: str, value: Any) -> None:
            if name not in self._settable and not name.startswith("_"):
                raise unsettable(self, name, self._hints)
            object.__setattr__(self, name, value)

    def __setstate__(self, state: Any) -> None:
        own, slots = state if isinstance(state, tuple) else (state, None)
        for name, value in {**(own or {}), **(slots or {})}.items():
            object.__setattr__(self, name, value)
