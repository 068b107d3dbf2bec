"""The release of a query: a table of noisy numbers with their margins, and what they cost."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forcopt.errors import require, required
from forcopt.privacy.profile import Profile
from forcopt.privacy.randomness import Release
from forcopt.privacy.tolerances import SHOWN_DELTA

if TYPE_CHECKING:
    from pandas import DataFrame

    from forcopt.privacy.queries import Statistic


@dataclass(frozen=True, eq=False, repr=False)
class TableRelease(Release):
    """Noisy numbers by group, without the table that they are about.

    Attributes
    ----------
    statistic : Statistic
        The public description of the query.
    mechanisms : tuple of Mechanism
        The noise of each part.
    profile : Profile
        The privacy profile of the release.
    entry : dict, optional
        The entry of the ledger; None for a simulation without one.

    Examples
    --------
    >>> from forcopt.privacy import Categories, DiscreteLaplace, Ledger, PureDP, Schema, Simulated, Table
    >>> table = Table({"town": ["a", "b", "a"]}, Schema(town=Categories("a", "b", "c")))
    >>> noisy = table.group_by("town").count() >> DiscreteLaplace(scale=2.0)
    >>> noisy.release(Ledger(PureDP(1.0)), Simulated(1)).to_pandas(margins=0.9).reset_index()
      town  count  margin
    0    a     -2     5.0
    1    b      7     5.0
    2    c     -1     5.0
    """

    statistic: Statistic = field(kw_only=True)
    mechanisms: tuple[Any, ...] = field(kw_only=True)
    profile: Profile = field(kw_only=True)
    entry: dict[str, Any] | None = field(default=None, kw_only=True)

    def to_pandas(self, margins: float | None = None) -> DataFrame:
        """The results by group.

        Parameters
        ----------
        margins : float, optional
            A probability: a column ``margin`` then says how far, with this probability, the noise moves a
            number at most, each number for itself. The error of a sample, that of the design or the table
            itself, is not in it.
        """
        pd = required("pandas", "to_pandas")

        require(margins is None or 0 < margins < 1, "margins", margins, "be strictly between 0 and 1")
        columns = self.statistic.table(self._parts, self.mechanisms, margins or 0.95)
        return pd.DataFrame(columns, self.statistic.index(), list(columns)[: 1 if margins is None else None])

    @property
    def _parts(self) -> tuple[Any, ...]:
        return self.values if isinstance(self.values, tuple) else (self.values,)

    @property
    def privacy(self) -> dict[str, float]:
        """What it costs, to six digits: epsilon, rho and mu if they are finite, and epsilon at delta 1e-6."""
        found = {"epsilon": self.profile.largest_loss, "rho": self.profile.rho, "mu": self.profile.mu}
        found[f"epsilon at delta {SHOWN_DELTA:g}"] = self.profile.epsilon(SHOWN_DELTA)
        return {n: float(f"{x:.6g}") for n, x in found.items() if x is not None and isfinite(x)}

    def to_csv(self, path: str | Path, margins: float = 0.95) -> None:
        """Write the results; lines with ``#`` before them state privacy, noise and the ledger's entry.

        Parameters
        ----------
        path : str or Path
            The file; ``pandas.read_csv(path, comment="#")`` reads it.
        margins : float, default 0.95
            See `to_pandas`.
        """
        stated = {
            "release": self.mechanism["query"],
            "drawn": "simulated with a seed, not private" if self.simulated else "drawn securely",
            **self.privacy,
            **self.mechanism,
            "total variation": self.total_variation,
            "probability of the margins": margins,
            "ledger": self.entry,
        }
        head = [f"# {name}: {json.dumps(value)}\n" for name, value in stated.items() if name != "type"]
        body = self.to_pandas(margins).to_csv(quoting=csv.QUOTE_NONNUMERIC)  # a quoted # begins no comment
        Path(path).write_text("".join(head) + body, encoding="utf-8", newline="")

    def to_dict(self) -> dict[str, Any]:
        """The release as plain data, ready for JSON."""
        own = {name: getattr(self, name) for name in ("mechanism", "simulated", "total_variation", "privacy")}
        return {"values": [part.tolist() for part in self._parts], **own, "entry": self.entry}

    def __repr__(self) -> str:
        text = "simulated with a seed, not private" if self.simulated else "drawn securely"
        return f"<Release of {self.mechanism['query']}, {text}>\n{self.to_pandas(0.95)}"
