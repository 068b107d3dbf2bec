"""A ledger of releases: it spends a budget over named, overlapping windows, and refuses by rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any, get_args

from forcopt.errors import DeclarationError, check_choice
from forcopt.privacy.budget import ApproximateDP, Budget
from forcopt.privacy.losses import Neighbours
from forcopt.privacy.mechanism import Mechanism
from forcopt.privacy.profile import Profile


class BudgetSpentError(DeclarationError):
    """A release would overspend a window; the message names window and rule, and nothing of the data."""


@dataclass(frozen=True)
class Entry:
    """One release in the ledger.

    Attributes
    ----------
    name : str
        Of the release.
    windows : tuple of str
        Where it counts.
    profile : Profile
        Its privacy profile.
    neighbours : Neighbours, optional
        The relation between data for which the profile holds; None if it does not say.
    """

    name: str
    windows: tuple[str, ...]
    profile: Profile
    neighbours: Neighbours | None = None


class Accountant:
    """Spend a budget in each of several windows, such as years, regions or blocks of columns.

    Parameters
    ----------
    budget : Budget or mapping of str to Budget
        One budget for every window, or one for each.
    windows : iterable of str
        Their names; ``("all",)`` by default. A mapping names them itself.

    Raises
    ------
    DeclarationError
        For a budget that is none, or no window.

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
    >>> account = Accountant(PureDP(1.0), windows=["2023", "2024"])
    >>> release = AdditiveMechanism(Laplace(epsilon=0.6))
    >>> account.spend(release, ["2023"], name="births")
    >>> account.spend(release, ["2024"])
    >>> account.remaining("2023")
    0.4
    >>> account.spend(release)
    Traceback (most recent call last):
    forcopt.privacy.accountant.BudgetSpentError: window '2023': PureDP allows 1, of which 0.6 is spent;
    'release \
3' takes 0.6
    """

    def __init__(self, budget: Budget | Mapping[str, Budget], windows: Iterable[str] = ("all",)) -> None:
        names = _names(windows)
        self.budgets = dict(budget) if isinstance(budget, Mapping) else dict.fromkeys(names, budget)
        if not self.budgets:
            raise DeclarationError("budget is empty; there must be at least one window")
        for name, given in self.budgets.items():
            if not isinstance(given, Budget):
                raise DeclarationError(
                    f"budget of window {name!r} is {given!r}; it must be a budget, such as PureDP(1.0)"
                )
        self._ledger: list[Entry] = []

    @property
    def ledger(self) -> tuple[Entry, ...]:
        """All releases so far, in order."""
        return tuple(self._ledger)

    def spend(
        self,
        release: Mechanism | Profile,
        windows: Iterable[str] | None = None,
        name: str = "",
        neighbours: Neighbours | None = None,
    ) -> None:
        """Enter a release in the ledger, before it is made.

        Parameters
        ----------
        release : Mechanism or Profile
            The release to come.
        windows : iterable of str, optional
            Where it counts; everywhere by default.
        name : str
            For messages.
        neighbours : {"add_remove", "substitute"}, optional
            The relation between data for which the profile holds; by default that of the mechanism, if it has
            one. Releases of different relations do not add up.

        Raises
        ------
        BudgetSpentError
            If a window would be overspent; the ledger stays as it was.
        DeclarationError
            For a window that does not exist, no window, a release that has no profile, and one whose relation
            differs from that of an earlier one in the same window.
        """
        entry = self._entry(release, windows, name, neighbours)
        if conflict := self._conflict(entry):
            raise DeclarationError(conflict)
        for window in entry.windows:
            text = self._refusal(entry, window)
            if text:
                raise BudgetSpentError(text)
        self._ledger.append(entry)

    def allows(self, release: Mechanism | Profile, windows: Iterable[str] | None = None) -> bool:
        """Whether `spend` would accept the release."""
        entry = self._entry(release, windows, "", None)
        return not self._conflict(entry) and all(not self._refusal(entry, window) for window in entry.windows)

    def spent(self, window: str = "all") -> float:
        """The spent part of a window's budget, in its units (epsilon at delta, rho, or the square of mu)."""
        budget = self._budget(window)
        if isinstance(budget, ApproximateDP) and budget.delta > 0:
            return budget.spent(self.profile(window))
        return float(sum((_exact(budget.spent(e.profile)) for e in self._in(window)), Fraction(0)))

    def remaining(self, window: str = "all") -> float:
        """The rest of a window's budget, in the same units."""
        return float(_exact(self._budget(window).total) - _exact(self.spent(window)))

    def profile(self, window: str = "all") -> Profile:
        """The profile of everything released in a window."""
        self._budget(window)
        return Profile.together(e.profile for e in self._in(window))

    def _in(self, window: str) -> list[Entry]:
        return [e for e in self._ledger if window in e.windows]

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
        name = name or f"release {len(self._ledger) + 1}"
        if isinstance(release, Profile):
            return Entry(name, places, release, neighbours)
        if neighbours not in (None, release.neighbours) and release.neighbours is not None:
            raise DeclarationError(
                f"neighbours is {neighbours!r}; the profile of {name!r} is for {release.neighbours!r}"
            )
        return Entry(name, places, release.profile(), release.neighbours or neighbours)

    def _conflict(self, entry: Entry) -> str:
        """The reason if an earlier release in a window of the entry has a profile of another relation."""
        for window in entry.windows:
            for other in self._in(window):
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


def _names(windows: Iterable[str]) -> tuple[str, ...]:
    """The names of windows, at least one."""
    if isinstance(windows, str):
        raise DeclarationError(f"windows is the text {windows!r}; it must be a list of names")
    names = tuple(windows)
    if not names:
        raise DeclarationError("windows is empty; name at least one")
    return names


def _exact(value: float) -> Fraction:
    """The decimal number of 12 digits that a float stands for."""
    return Fraction(f"{value:.12g}") if isfinite(value) else Fraction(10) ** 30
