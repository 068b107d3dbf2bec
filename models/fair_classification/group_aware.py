"""Parts that scikit-learn fronts share: sensitive columns, constraint parameters, and draws."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, Self

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.fairness import Notion
from forcopt.fairness.records import is_missing
from forcopt.learning import systematic_draw
from forcopt.learning.lookup import distinct_rows
from forcopt.models.fair_classification.options import is_whole
from forcopt.privacy import ObservedGroups

__all__ = ["GroupAware", "check_seed", "crossed", "draw", "subset"]


class GroupAware:
    """A mixin for estimators with the parameters `constraint` and `sensitive`."""

    constraint: Notion | None
    sensitive: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; with `deep` those of the learner and the fields of the constraint, too."""
        params: dict[str, Any] = super().get_params(deep)  # type: ignore[misc]
        if deep and isinstance(self.constraint, Notion):
            fields = type(self.constraint).model_fields
            params |= {f"constraint__{name}": getattr(self.constraint, name) for name in fields}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``constraint__tolerance=0.1`` rebuilds the constraint with that tolerance."""
        own = {k: v for k, v in params.items() if not k.startswith("constraint__")}
        super().set_params(**own)  # type: ignore[misc]
        changed = {k.removeprefix("constraint__"): v for k, v in params.items() if k not in own}
        if changed:
            if not isinstance(self.constraint, Notion):
                raise DeclarationError(
                    f"constraint is {self.constraint!r}; it has no parameter {next(iter(changed))}"
                )
            fields = {name: getattr(self.constraint, name) for name in type(self.constraint).model_fields}
            self.constraint = type(self.constraint)(**{**fields, **changed})
        return self

    def _groups(self, X: Any, given: Any, constraint: Notion) -> Any:
        """The group of each record; None if no constraint looks at groups."""
        if given is None and self.sensitive is not None:
            by_function = callable(self.sensitive)
            given = self.sensitive(X) if by_function else _columns(X, self._positions(X))
        if given is None:
            if self.constraint is not None and constraint.rates:
                raise DeclarationError(
                    f"sensitive_features is None; {self.constraint!r} looks at the groups of records"
                )
            return None
        return crossed(given)

    def _positions(self, X: Any) -> list[int]:
        """The positions of the sensitive columns."""
        if self.sensitive is None or callable(self.sensitive):
            return []
        single = isinstance(self.sensitive, str | Integral)
        asked = [self.sensitive] if single else list(self.sensitive)
        names = list(X.columns) if hasattr(X, "columns") else None
        found = []
        for name in asked:
            if names is not None and name in names:
                found.append(names.index(name))
            elif isinstance(name, Integral) and 0 <= int(name) < np.shape(X)[1]:
                found.append(int(name))
            else:
                raise DeclarationError(f"sensitive is {name!r}; X has no such column")
        return found

    def _features(self, X: Any) -> Any:
        """X without the sensitive columns."""
        positions = self._positions(X)
        if not positions:
            return X
        kept = [j for j in range(np.shape(X)[1]) if j not in positions]
        return X.iloc[:, kept] if hasattr(X, "iloc") else np.asarray(X)[:, kept]


def check_seed(seed: Any) -> Any:
    """Give back a source of randomness, if it is one.

    Raises
    ------
    DeclarationError
        Otherwise, naming ``random_state``.
    """
    whole = is_whole(seed) and int(seed) >= 0
    if not (seed is None or whole or isinstance(seed, np.random.Generator | np.random.RandomState)):
        raise DeclarationError(
            f"random_state is {seed!r}; it must be None, an int of at least 0, or a generator"
        )
    return seed


def draw(probability: Array, rows: Any, draws: Literal["record", "row"], seed: Any) -> Array:
    """Draw true or false for each record, see the notes of `FairClassifier`.

    Parameters
    ----------
    probability : Array
        Of true, shape ``(n,)``.
    rows : array_like
        Features that distinguish records, shape ``(n, d)``.
    draws : {"record", "row"}
        Whether equal rows are sampled systematically, or share one number.
    seed : int, numpy.random.Generator or numpy.random.RandomState, optional
        The source of randomness.
    """
    table = np.asarray(rows, dtype=np.float64)
    if draws == "row":
        return _row_numbers(table, 0 if seed is None else int(seed)) < probability
    ones = np.asarray(probability >= 1.0)
    mixed = np.flatnonzero((probability > 0.0) & (probability < 1.0))
    if len(mixed):
        strata = distinct_rows(table[mixed])[1]
        ones[mixed] = systematic_draw(probability[mixed], strata, _generator(seed))
    return ones


def _generator(seed: Any) -> np.random.Generator:
    if isinstance(seed, np.random.RandomState):
        return np.random.default_rng(int(seed.randint(2**31)))
    return np.random.default_rng(seed)


def _columns(X: Any, positions: list[int]) -> Any:
    table = X.iloc[:, positions].to_numpy() if hasattr(X, "iloc") else np.asarray(X)[:, positions]
    return table[:, 0] if len(positions) == 1 else table


def crossed(given: Any) -> Any:
    """One column of groups; several columns are crossed, and a record that misses one of them misses all."""
    if hasattr(given, "columns") or np.ndim(given) == 2:
        table = np.asarray(given, dtype=object)
        if table.shape[1] == 1:
            return table[:, 0].tolist()
        return [None if any(map(is_missing, row)) else " & ".join(map(str, row)) for row in table.tolist()]
    return given


def subset(groups: Any, kept: Array) -> Any:
    """The groups of some records."""
    if isinstance(groups, ObservedGroups):
        return groups.channel.observe(subset(groups.reports, kept))
    column = groups.tolist() if hasattr(groups, "tolist") else list(groups)
    if len(column) != len(kept):
        raise DeclarationError(f"sensitive_features has {len(column)} entries for {len(kept)} records")
    return [value for value, keep in zip(column, kept.tolist(), strict=True) if keep]


def _row_numbers(X: Array, seed: int) -> Array:
    """A number in [0, 1) for each row that looks random but depends on row and seed only (splitmix64)."""
    words = np.ascontiguousarray(X + 0.0).view(np.uint64)
    state = np.full(len(words), seed, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for word in words.T:
            state = (state ^ word) + np.uint64(0x9E3779B97F4A7C15)
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state ^= state >> np.uint64(31)
    return np.asarray((state >> np.uint64(11)).astype(np.float64) * 2.0**-53)
