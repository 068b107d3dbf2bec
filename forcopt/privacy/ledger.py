"""A ledger of releases: it spends a budget over named, overlapping windows, and refuses by rule."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from math import isfinite
from pathlib import Path
from threading import RLock
from typing import Any, get_args

import numpy as np

from forcopt.declaration import Declared
from forcopt.errors import DeclarationError, check_choice, require
from forcopt.privacy import losses
from forcopt.privacy.budget import ApproximateDP, Budget
from forcopt.privacy.losses import AtomLoss, Loss, Neighbours
from forcopt.privacy.mechanism import Mechanism
from forcopt.privacy.profile import Profile
from forcopt.privacy.randomness import Randomness

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


OTHERS = "a ledger in memory is of one process and has no copies, which would spend it again; give a path"


class BudgetSpentError(DeclarationError):
    """A release would overspend a window; the message names window and rule, and nothing of the data."""


@dataclass(frozen=True)
class Entry:
    """One release in the ledger.

    Attributes
    ----------
    number : int
        Its place in the ledger, from 1.
    name : str
        Of the release.
    windows : tuple of str
        Where it counts.
    profile : Profile
        Its privacy profile.
    neighbours : Neighbours, optional
        The relation between data for which the profile holds; None if it does not say.
    time : str
        When it was entered, in UTC.
    """

    number: int
    name: str
    windows: tuple[str, ...]
    profile: Profile
    neighbours: Neighbours | None = None
    time: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The entry as plain data, without the profile."""
        return {name: value for name, value in vars(self).items() if name != "profile"}


class Ledger:
    """Spend a budget in each of several windows, such as years, regions or blocks of columns.

    Parameters
    ----------
    budget : Budget or mapping of str to Budget, optional
        One budget for every window, or one for each; a file that is there already states it.
    windows : iterable of str
        Their names; ``("all",)`` by default. A mapping names them itself.
    path : str or Path, optional
        A file that keeps the ledger, which several processes may share. Each entry is on the disk before
        `spend` returns: the file is written beside, flushed and renamed, so that it is whole whenever the
        program ends.

    Raises
    ------
    DeclarationError
        For a budget that is none or not that of the file, no window, and a file that is no ledger.

    Notes
    -----
    A release counts in full in every window that it names; windows may overlap. `PureDP`, `ZCDP` and `GDP`
    add up, also where each release is chosen after the earlier answers (Rogers, Roth, Ullman and Vadhan 2016;
    Feldman and Zrnic 2021; Koskela, Tobaben and Honkela 2023). `ApproximateDP` composes the profiles exactly,
    which is valid if the *profiles* do not depend on earlier answers. The decision to refuse looks at
    profiles only. Sums are exact: numbers are read as the decimals that they print, so that five times .2 is
    1.

    Examples
    --------
    >>> from forcopt.privacy import AdditiveMechanism, Laplace, PureDP
    >>> ledger = Ledger(PureDP(1.0), windows=["2023", "2024"])
    >>> release = AdditiveMechanism(Laplace(epsilon=0.6))
    >>> ledger.spend(release, ["2023"], name="births").number
    1
    >>> ledger.spend(release, ["2024"]).name
    'release 2'
    >>> ledger.remaining("2023")
    0.4
    >>> ledger.spend(release)
    Traceback (most recent call last):
    forcopt.privacy.ledger.BudgetSpentError: window '2023': PureDP allows 1, of which 0.6 is spent;
    'release \
3' takes 0.6
    """

    def __init__(
        self,
        budget: Budget | Mapping[str, Budget] | None = None,
        windows: Iterable[str] = ("all",),
        *,
        path: str | Path | None = None,
    ) -> None:
        self._path = None if path is None else Path(path).resolve()  # of one name, wherever the program goes
        self._turn, self._process = RLock(), os.getpid()
        self._entries: list[Entry] = []
        self._composed: dict[str, Profile] = {}
        self._lines: list[str] = []  # of the entries, as the file has them
        self._spent: dict[str, Fraction] = {}
        self._written = b""
        self.budgets: dict[str, Budget] = {}
        names = _names(windows)
        with self._locked():
            self._read()
            if budget is not None:
                self._declare(dict(budget) if isinstance(budget, Mapping) else dict.fromkeys(names, budget))
            elif not self.budgets:
                raise DeclarationError("budget is missing; a new ledger needs one, such as PureDP(1.0)")
            if not self._written:
                self._write(self._entries)

    def _declare(self, given: dict[str, Budget]) -> None:
        if not given:
            raise DeclarationError("budget is empty; there must be at least one window")
        for name, one in given.items():
            require(isinstance(one, Budget), f"budget of {name!r}", one, "be a budget, such as PureDP(1.0)")
        if self.budgets and given != self.budgets:
            raise DeclarationError(f"budget is {given}; the ledger {self._path} has {self.budgets}")
        self.budgets = given

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All releases so far, in order."""
        self._read()
        return tuple(self._entries)

    def spend(
        self,
        release: Mechanism | Profile,
        windows: Iterable[str] | None = None,
        name: str = "",
        neighbours: Neighbours | None = None,
    ) -> Entry:
        """Enter a release in the ledger, before it is made.

        Parameters
        ----------
        release : Mechanism or Profile
            The release to come.
        windows : iterable of str, optional
            Where it counts, once in each; everywhere by default.
        name : str
            For messages.
        neighbours : {"add_remove", "substitute"}, optional
            The relation between data for which the profile holds; by default that of the mechanism, if it has
            one. Releases of different relations do not add up.

        Returns
        -------
        Entry
            What was entered.

        Raises
        ------
        BudgetSpentError
            If a window would be overspent; the ledger stays as it was.
        DeclarationError
            For a window that does not exist, no window, a release that has no profile, and one whose relation
            differs from that of an earlier one in the same window.
        """
        with self._locked():
            self._read()
            entry = self._entry(release, windows, name, neighbours)
            if conflict := self._conflict(entry):
                raise DeclarationError(conflict)
            for window in entry.windows:
                if text := self._refusal(entry, window):
                    raise BudgetSpentError(text)
            self._write([*self._entries, entry])
            self._enter(entry)
        return entry

    def allows(self, release: Mechanism | Profile, windows: Iterable[str] | None = None) -> bool:
        """Whether `spend` would accept the release."""
        self._read()
        entry = self._entry(release, windows, "", None)
        return not self._conflict(entry) and all(not self._refusal(entry, window) for window in entry.windows)

    def spent(self, window: str = "all") -> float:
        """The spent part of a window's budget, in its units (epsilon at delta, rho, or the square of mu)."""
        self._read()
        budget = self._budget(window)
        if isinstance(budget, ApproximateDP) and budget.delta > 0:
            return budget.spent(self.profile(window))
        return float(self._spent.get(window, Fraction(0)))

    def remaining(self, window: str = "all") -> float:
        """The rest of a window's budget, in the same units."""
        return float(_exact(self._budget(window).total) - _exact(self.spent(window)))

    def profile(self, window: str = "all") -> Profile:
        """The profile of everything released in a window."""
        self._read()
        self._budget(window)
        return self._composed.get(window, Profile.nothing())

    def _enter(self, entry: Entry) -> None:
        self._entries.append(entry)
        for window in dict.fromkeys(entry.windows):  # a file may name one twice
            if not isinstance(budget := self._budget(window), ApproximateDP) or budget.delta == 0:
                spent = _exact(budget.spent(entry.profile))
                self._spent[window] = self._spent.get(window, Fraction(0)) + spent
            self._composed[window] = self._composed.get(window, Profile.nothing()) @ entry.profile

    # -- the file --------------------------------------------------------------------------------------------

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one process or thread at a time read, decide and write; the system frees the lock at a kill."""
        if self._path is None and os.getpid() != self._process:
            raise DeclarationError(OTHERS)
        with self._turn, open(os.devnull if self._path is None else f"{self._path}.lock", "a") as handle:
            if self._path is not None and sys.platform == "win32":
                handle.seek(0)
                msvcrt.locking(handle.fileno(), msvcrt.LK_LOCK, 1)
            elif self._path is not None:
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def __reduce__(self) -> Any:
        """A copy of a ledger with a file spends from that file; another would have a budget of its own."""
        if self._path is None:
            raise DeclarationError(OTHERS)
        return partial(Ledger, path=self._path), ()

    def _read(self) -> None:
        """Take over what other processes have entered."""
        with self._turn:
            self._take_over()

    def _take_over(self) -> None:
        if self._path is None or not (self._written or self._path.exists()):
            return
        try:
            found, names = self._path.read_bytes(), self._path.stat().st_nlink
        except FileNotFoundError:
            raise DeclarationError(f"the ledger {self._path} is gone; it was moved or removed") from None
        if names > 1:
            raise DeclarationError(f"the ledger {self._path} has {names} hard links; it must have one")
        if found == self._written:
            return
        try:
            data = json.loads(found)
            budgets = {name: Budget.from_dict(one) for name, one in data["budgets"].items()}
            entries = [
                Entry(**{**e, "windows": tuple(e["windows"]), "profile": _profile(e["profile"])})
                for e in data["entries"]
            ]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DeclarationError(f"{self._path} is not a ledger: {error}") from error
        lines, known = list(map(_line, entries)), self._lines[: len(self._entries)]
        if self._written and (budgets != self.budgets or lines[: len(known)] != known):
            raise DeclarationError(
                f"the ledger {self._path} lacks what it had; it was replaced, or its entries were edited"
            )
        self.budgets, self._written, self._entries, self._composed = budgets, found, [], {}
        self._spent, self._lines = {}, lines
        for entry in entries:
            self._enter(entry)

    def _write(self, entries: list[Entry]) -> None:
        if self._path is None:
            return
        del self._lines[len(self._entries) :]  # of a write that failed
        self._lines += map(_line, entries[len(self._lines) :])
        budgets = {name: budget.to_dict() for name, budget in self.budgets.items()}
        lines = ",\n".join(self._lines)
        text = f'{{"budgets": {json.dumps(budgets)},\n"entries": [\n{lines}\n]}}\n'.encode()
        beside = self._path.with_name(self._path.name + ".new")
        with open(beside, "wb") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(beside, self._path)
        if sys.platform != "win32":
            folder = os.open(self._path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)  # else the name may be lost
            finally:
                os.close(folder)
        self._written = text

    # -- the rules -------------------------------------------------------------------------------------------

    def _budget(self, window: str) -> Budget:
        if window not in self.budgets:
            raise DeclarationError(f"window {window!r} does not exist; there are {', '.join(self.budgets)}")
        return self.budgets[window]

    def _entry(
        self, release: Any, windows: Iterable[str] | None, name: str, neighbours: Neighbours | None
    ) -> Entry:
        places = tuple(self.budgets) if windows is None else _names(windows)
        for window in places:
            self._budget(window)
        if not isinstance(release, Mechanism | Profile):
            raise DeclarationError(
                f"release is a {type(release).__name__}; it must be a Mechanism or a Profile, entered before "
                "the data are looked at"
            )
        if neighbours is not None:
            check_choice("neighbours", neighbours, *get_args(Neighbours))
        number, now = len(self._entries) + 1, datetime.now(UTC).isoformat(timespec="seconds")
        name = name or f"release {number}"
        if isinstance(release, Profile):
            return Entry(number, name, places, release, neighbours, now)
        if neighbours not in (None, release.neighbours) and release.neighbours is not None:
            raise DeclarationError(f"neighbours is {neighbours!r}; {name!r} is for {release.neighbours!r}")
        return Entry(number, name, places, release.profile(), release.neighbours or neighbours, now)

    def _conflict(self, entry: Entry) -> str:
        """The reason if an earlier release in a window of the entry has a profile of another relation."""
        for window in entry.windows:
            for other in (e for e in self._entries if window in e.windows):
                if None not in (entry.neighbours, other.neighbours) and entry.neighbours != other.neighbours:
                    return (
                        f"window {window!r}: {entry.name!r} is private for the relation "
                        f"{entry.neighbours!r}, {other.name!r} for {other.neighbours!r}; their profiles do "
                        "not compose"
                    )
        return ""

    def _refusal(self, entry: Entry, window: str) -> str:
        budget = self._budget(window)
        kind = type(budget).__name__
        if isinstance(budget, ApproximateDP) and budget.delta > 0:
            if budget.holds(self.profile(window) @ entry.profile):
                return ""
            return (
                f"window {window!r}: {kind} allows epsilon {budget.epsilon:g} at delta {budget.delta:g}, of "
                f"which {self.spent(window):.6g} is spent; {entry.name!r} would take more than is left"
            )
        taken = budget.spent(entry.profile)
        if not isfinite(taken):
            return f"window {window!r}: {entry.name!r} has no bound in the units of {kind}"
        before = _exact(self.spent(window))
        if before + _exact(taken) <= _exact(budget.total):
            return ""
        return (
            f"window {window!r}: {kind} allows {budget.total:g}, of which {float(before):g} is spent; "
            f"{entry.name!r} takes {taken:g}"
        )


def _line(entry: Entry) -> str:
    """An entry as the file has it."""
    return json.dumps({**entry.to_dict(), "profile": _plain(entry.profile)})


def pay(
    ledger: Ledger | str | Path | None,
    release: Mechanism | Profile,
    rng: Randomness,
    name: str,
    neighbours: Neighbours,
    windows: Iterable[str] | None = None,
) -> Entry | None:
    """Enter a release before it is made; a simulation alone may do without a ledger.

    Parameters
    ----------
    ledger : Ledger, str or Path, or None
        Of all releases about the same units, or its file.
    release, name, neighbours, windows
        See `Ledger.spend`.
    rng : Secure or Simulated
        What the release draws with.

    Returns
    -------
    Entry or None
        None for a simulation without a ledger.

    Raises
    ------
    DeclarationError
        Without a ledger for a release that is not simulated.
    BudgetSpentError
        If the ledger does not allow the release.
    """
    if isinstance(ledger, str | Path):
        ledger = Ledger(path=ledger)
    if isinstance(ledger, Ledger):
        return ledger.spend(release, windows, name, neighbours)
    if ledger is None and rng.simulated:
        return None
    raise DeclarationError(
        f"ledger is {ledger!r}; a release spends from one, such as Ledger(PureDP(1.0)), or from its file; "
        "with a seed it is simulated without"
    )


def _names(windows: Iterable[str]) -> tuple[str, ...]:
    """The names of windows, each once, at least one."""
    if isinstance(windows, str):
        raise DeclarationError(f"windows is the text {windows!r}; it must be a list of names")
    names = tuple(dict.fromkeys(windows))
    if not names:
        raise DeclarationError("windows is empty; name at least one")
    return names


def _exact(value: float) -> Fraction:
    """The decimal number of 12 digits that a float stands for."""
    return Fraction(f"{value:.12g}") if isfinite(value) else Fraction(10) ** 30


def _plain(value: Any) -> Any:
    """A profile, loss or part of one as plain data; `_profile` reads it."""
    if isinstance(value, Declared):
        return value.to_dict()
    if isinstance(value, AtomLoss):
        p, q = map(_plain, value.pair)
        return {"loss": "AtomLoss", "p": p, "q": q, "spacing": value.spacing}
    if isinstance(value, Loss) and not hasattr(losses, type(value).__name__):
        raise DeclarationError(f"the ledger's file does not take the loss {type(value).__name__}")
    if isinstance(value, Loss | Profile):
        parts = {part.name: _plain(getattr(value, part.name)) for part in fields(value)}  # type: ignore[arg-type]
        return {"loss": type(value).__name__, **parts} if isinstance(value, Loss) else parts
    if isinstance(value, np.ndarray | tuple):
        return [_plain(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value


def _loss(data: Any) -> Any:
    """The inverse of `_plain` for a loss, a noise or a number."""
    if not isinstance(data, dict):
        return data
    if "loss" not in data:
        return Declared.from_dict(data)
    kind = getattr(losses, data["loss"])
    return kind(**{name: _loss(value) for name, value in data.items() if name != "loss"})


def _profile(data: Any) -> Profile:
    directions = tuple(tuple((_loss(loss), count) for loss, count in parts) for parts in data["directions"])
    return Profile(**{**data, "directions": directions})
