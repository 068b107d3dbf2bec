"""Parts that scikit-learn fronts share: sensitive columns, constraint parameters, and draws."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils import get_tags

from forcopt.arrays import Array, check_label_order, is_missing
from forcopt.errors import DeclarationError, check_choice
from forcopt.fairness import AllOf, Notion
from forcopt.learning.names import aligned, names_of
from forcopt.learning.policy import chosen_classes, systematic_draw, systematic_numbers
from forcopt.models.fair_classification.options import is_whole
from forcopt.privacy import ObservedGroups

__all__ = [
    "GroupAware",
    "SensitiveColumns",
    "accepted",
    "check_class_count",
    "check_labels",
    "check_seed",
    "column_names",
    "combined",
    "crossing_title",
    "crossings",
    "draw",
    "subset",
    "takes_several",
]


class SensitiveColumns:
    """A mixin for estimators with the parameters `sensitive` and `combine`."""

    sensitive: Any
    combine: Literal["cross", "each"]
    n_features_in_: int

    def _sensitive(self, X: Any, given: Any, **others: Any) -> tuple[Any, list[str] | None]:
        """The sensitive columns, given or found by `sensitive`, and their names if these are known.

        Raises
        ------
        DeclarationError
            For a series or frame with the index of X, or of another one, in another order.
        """
        columns = {"X": X, **others, "sensitive_features": getattr(given, "reports", given)}
        check_label_order(type(self).__name__, columns)
        if given is not None or self.sensitive is None:
            return given, None
        if callable(self.sensitive):
            return self.sensitive(X), None
        return _columns(X, self._positions(X))

    def _positions(self, X: Any, unused: bool = False) -> list[int]:
        """The positions of the sensitive columns; with `unused` of those that X has."""
        if self.sensitive is None or callable(self.sensitive):
            return []
        single = isinstance(self.sensitive, str | Integral)
        asked = [self.sensitive] if single else list(self.sensitive)
        names = list(X.columns) if hasattr(X, "columns") else None
        found = []
        for name in asked:
            if names is not None and name in names:
                found.append(names.index(name))
            elif unused and np.shape(X)[1] <= self.n_features_in_:
                continue
            elif isinstance(name, Integral) and 0 <= int(name) < np.shape(X)[1]:
                found.append(int(name))
            elif not unused or names is None:
                raise DeclarationError(f"sensitive is {name!r}; X has no such column")
        return found

    def _features(self, X: Any, served: bool = False) -> Any:
        """X without the sensitive columns, of which a table to predict may have none."""
        positions = self._positions(X, unused=served)
        if positions:
            kept = [j for j in range(np.shape(X)[1]) if j not in positions]
            X = X.iloc[:, kept] if hasattr(X, "iloc") else _array(X)[:, kept]
        if served and hasattr(self, "feature_names_in_"):
            X = aligned(X, list(self.feature_names_in_)) if names_of(X) else X
        return X

    def _check_combine(self) -> None:
        check_choice("combine", self.combine, "cross", "each")


class GroupAware(SensitiveColumns):
    """A mixin for classifiers with the parameters `constraint`, `sensitive`, `combine` and `draws`."""

    constraint: Notion | None
    draws: Literal["record", "row"]
    random_state: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; with `deep` also the parameters of the learner and the fields of the constraint."""
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

    def _groups(
        self, X: Any, given: Any, constraint: Notion, kept: Array | None = None, **others: Any
    ) -> tuple[Any, Notion]:
        """The group of each record and the constraint over these groups; no groups if none are looked at.

        Records that are not `kept` are left out.
        """
        given, names = self._sensitive(X, given, **others)
        given = given if kept is None or given is None else subset(given, kept)
        if given is None:
            if self.constraint is not None and constraint.rates:
                raise DeclarationError(
                    f"sensitive_features is None; {self.constraint!r} needs the groups of records"
                )
            return None, constraint
        if not (hasattr(given, "columns") or np.ndim(given) == 2):
            return given, constraint
        return combined(given, constraint, self.combine, names)

    def _check_front(self) -> None:
        """Refuse parameters that both fronts share."""
        if self.constraint is not None and not isinstance(self.constraint, Notion):
            raise DeclarationError(f"constraint is {self.constraint!r}; it must be a fairness notion or None")
        check_choice("draws", self.draws, "record", "row")
        self._check_combine()
        check_seed(self.random_state)


def accepted(estimator: Any) -> dict[str, Any]:
    """The tables that an estimator of scikit-learn takes, as arguments of ``validate_data``."""
    if not hasattr(estimator, "__sklearn_tags__") or isinstance(estimator, type):
        return {}
    tags = get_tags(estimator).input_tags
    return {
        "accept_sparse": "csr" if tags.sparse else False,
        "ensure_all_finite": "allow-nan" if tags.allow_nan else True,
    }


def takes_several(estimator: Any) -> bool:
    """Whether a classifier of scikit-learn takes more than two classes; None is the default learner."""
    if not hasattr(estimator, "__sklearn_tags__") or isinstance(estimator, type):
        return True
    tags = get_tags(estimator).classifier_tags
    return tags is None or bool(tags.multi_class)


def check_class_count(classes: Array, several: bool) -> None:
    """Refuse labels of one class, and of more than two where the learner takes two.

    Raises
    ------
    DeclarationError
        In scikit-learn's words.
    """
    if len(classes) < 2:
        raise DeclarationError(f"y has {len(classes)} class; at least 2 classes are needed")
    if len(classes) > 2 and not several:
        raise DeclarationError(
            f"y has {len(classes)} classes; Only binary classification is supported by the learner"
        )


def check_labels(y: Any) -> None:
    """Refuse labels that are missing, and ones that differ by case or blanks alone.

    Raises
    ------
    DeclarationError
        Naming the record, or the two labels.
    """
    column = np.asarray(y)
    if column.ndim != 1 or column.dtype.kind not in "OUST":
        return
    entries = column.tolist()
    for at, value in enumerate(entries):
        if is_missing(value):
            raise DeclarationError(f"y[{at}] is missing (NaN); every record must have a label")
    spelt: dict[str, str] = {}
    for value in dict.fromkeys(v for v in entries if isinstance(v, str)):
        first = spelt.setdefault(value.strip().casefold(), value)
        if first != value:
            raise DeclarationError(
                f"y holds {first!r} and {value!r}, which differ by case or blanks alone; spell them alike"
            )


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
    """Draw a class for each record, see the notes of `FairClassifier`.

    Parameters
    ----------
    probability : Array
        Of the second of two classes, shape ``(n,)``, or of each class, shape ``(n, C)``.
    rows : ndarray or sparse array
        Features that distinguish records, shape ``(n, d)``.
    draws : {"record", "row"}
        Whether equal rows are sampled systematically, or share one number.
    seed : int, numpy.random.Generator or numpy.random.RandomState, optional
        The source of randomness.

    Returns
    -------
    Array
        The number of each record's class, int64 of shape ``(n,)``.
    """
    if draws == "row":
        return chosen_classes(probability, _row_numbers(rows, 0 if seed is None else int(seed)))
    if probability.ndim == 2:
        strata = np.unique(_row_numbers(rows, 0), return_inverse=True)[1]
        return chosen_classes(probability, systematic_numbers(strata, _generator(seed)))
    ones = np.asarray(probability >= 1.0, dtype=np.int64)
    mixed = np.flatnonzero((probability > 0.0) & (probability < 1.0))
    if len(mixed):
        # two rows with one number would share a stratum, which changes no probability
        strata = np.unique(_row_numbers(rows[mixed], 0), return_inverse=True)[1]
        ones[mixed] = systematic_draw(probability[mixed], strata, _generator(seed))
    return ones


def _generator(seed: Any) -> np.random.Generator:
    if isinstance(seed, np.random.RandomState):
        return np.random.default_rng(int(seed.randint(2**31)))
    return np.random.default_rng(seed)


def _array(X: Any) -> Any:
    return csr_array(X) if issparse(X) else np.asarray(X)


def _columns(X: Any, positions: list[int]) -> tuple[Any, list[str]]:
    """Columns of a table and their names; a single one as a vector."""
    if hasattr(X, "iloc"):
        table, names = X.iloc[:, positions].to_numpy(), [str(X.columns[j]) for j in positions]
    else:
        table, names = _array(X)[:, positions], [f"column {j}" for j in positions]
        table = table.toarray() if issparse(table) else table
    return (table[:, 0] if len(positions) == 1 else table), names


def column_names(table: Any) -> list[str]:
    """The names of the columns of a frame; ``column 0``, ... of an array."""
    if hasattr(table, "columns"):
        return list(map(str, table.columns))
    return [f"column {j}" for j in range(np.shape(table)[1])]


def combined(
    given: Any, constraint: Notion, combine: Literal["cross", "each"], names: list[str] | None = None
) -> tuple[list[str | None], Notion]:
    """One column of groups for several sensitive columns, and the constraint over these groups.

    Parameters
    ----------
    given : array_like
        Shape ``(n, c)``; an array or a frame.
    constraint : Notion
        The notion to demand.
    combine : {"cross", "each"}
        Whether it holds over the groups that the columns form together, or over the values of each column for
        itself.
    names : list[str], optional
        Of the columns; by default the names of a frame, else ``column 0``, ...

    Returns
    -------
    tuple[list[str or None], Notion]
        The group of each record, such as ``sex=f & race=u``. If columns are crossed, a record that misses a
        value has no group; else it counts in the other columns.

    Raises
    ------
    DeclarationError
        For values that cannot be distinguished as text.
    """
    names = names or column_names(given)
    table = np.asarray(given, dtype=object)
    if table.shape[1] == 1:
        return table[:, 0].tolist(), constraint
    rows = crossings(table)
    titles: dict[str, tuple[str | None, ...]] = {}
    for row in dict.fromkeys(rows):
        title = crossing_title(names, row)
        if title in titles:
            raise DeclarationError(f"sensitive_features: two groups have the name {title!r}; rename values")
        titles[title] = row
    title_of = {row: title for title, row in titles.items()}
    if combine == "cross":
        return [None if None in row else title_of[row] for row in rows], constraint
    parts = constraint.notions if isinstance(constraint, AllOf) else (constraint,)
    demands = [part for part in parts if len(part.records)]
    for j, name in enumerate(names):
        values = {title: row[j] for title, row in titles.items()}
        known = {title: value for title, value in values.items() if value is not None}
        demands += [part.by(name, known) for part in parts if not len(part.records)]
    return [title_of[row] for row in rows], AllOf(notions=tuple(demands))


def crossings(table: Any) -> list[tuple[str | None, ...]]:
    """The values of each record in several sensitive columns as text, None where missing."""
    entries = np.asarray(table, dtype=object).tolist()
    return [tuple(None if is_missing(v) else str(v) for v in row) for row in entries]


def crossing_title(names: Sequence[str], row: tuple[str | None, ...]) -> str:
    """The name of a crossing, such as ``sex=f & race=u``."""
    return " & ".join(f"{name}={'?' if v is None else v}" for name, v in zip(names, row, strict=True))


def subset(groups: Any, kept: Array) -> Any:
    """The groups of some records, a column or a table."""
    if isinstance(groups, ObservedGroups):
        return groups.channel.observe(subset(groups.reports, kept))
    given = groups if hasattr(groups, "iloc") or hasattr(groups, "dtype") else list(groups)
    if len(given) != len(kept):
        raise DeclarationError(f"sensitive_features has {len(given)} entries for {len(kept)} records")
    if isinstance(given, list):
        return [value for value, keep in zip(given, kept.tolist(), strict=True) if keep]
    return given.iloc[np.flatnonzero(kept)] if hasattr(given, "iloc") else given[kept]


def _row_numbers(X: Any, seed: int) -> Array:
    """A number in [0, 1) for each row that looks random but depends on row and seed only.

    Splitmix64 for arrays, BLAKE2 of the entries for sparse ones.
    """
    if issparse(X):
        table = csr_array(X)
        key = seed.to_bytes(16, "little")
        lots = []
        for start, end in pairwise(table.indptr.tolist()):
            kept = start + np.flatnonzero(table.data[start:end] != 0)
            entries = table.indices[kept].astype(np.int64).tobytes() + table.data[kept].tobytes()
            lots.append(int.from_bytes(blake2b(entries, digest_size=8, key=key).digest(), "little"))
        return np.asarray((np.array(lots, dtype=np.uint64) >> np.uint64(11)).astype(np.float64) * 2.0**-53)
    numbers = np.ascontiguousarray(np.asarray(X, dtype=np.float64) + 0.0)
    words = np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    state = np.full(len(words), seed, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for word in words.T:
            state = (state ^ word) + np.uint64(0x9E3779B97F4A7C15)
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state ^= state >> np.uint64(31)
    return np.asarray((state >> np.uint64(11)).astype(np.float64) * 2.0**-53)
