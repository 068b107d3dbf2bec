"""The base of all scikit-learn estimators: sensitive columns, training records, constraints, draws.

It needs scikit-learn, so no module of the library imports it at load time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from pandas import DataFrame
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, ClassifierMixin, is_regressor
from sklearn.utils import check_consistent_length, column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from forcopt.arrays import Array, check_label_order, columns_of, is_missing
from forcopt.errors import DeclarationError, check_choice, require
from forcopt.fairness import AllOf, DemographicParity, Notion, cost_table
from forcopt.learning.hypotheses import aligned, names_of
from forcopt.learning.policy import chosen_classes, systematic_numbers
from forcopt.learning.tables import Schema, as_frame, rows_of
from forcopt.privacy import ObservedGroups, PrivacyBudget
from forcopt.problem.policy import Policy, Vocabulary, column_names, crossing_title, crossings, promise_of
from forcopt.problem.problem import Problem
from forcopt.problem.solution import Solution
from forcopt.status import Status

Combine = Literal["cross", "each", "subgroups"]

UNCONSTRAINED = DemographicParity(1.0)
"""A constraint that every classifier meets."""


@dataclass(frozen=True)
class TrainingReport:
    """The result of a fit, without the records.

    Attributes
    ----------
    status : Status
        How far the policy can be trusted.
    error : float
        The training error, or the mean cost; NaN for a private policy.
    bound : float
        On the least training error of a fair policy; infinite if none is known.
    violations : dict[str, float]
        The violations of the constraint by name.
    metrics : dict[str, float]
        Disparities, and the rates of each group.
    method, message : str
        The method, and the reason why it ended.
    promise : str
        What the constraint promises on fresh records; empty if it holds on the records of the fit alone.
    iterations : int
        As the method counts them.
    seconds : float
        Wall time.

    Examples
    --------
    >>> import numpy as np
    >>> from forcopt.fairness import DemographicParity
    >>> from forcopt.models.fair_classification import FairClassifier
    >>> rng = np.random.default_rng(0)
    >>> x, group = rng.normal(size=(200, 2)), rng.choice(["a", "b"], 200)
    >>> fitted = FairClassifier(DemographicParity(0.1)).fit(x, x[:, 0] > 0, sensitive_features=group)
    >>> str(fitted.report_.status), fitted.report_.error <= 0.5
    ('approximate', True)
    """

    status: Status
    error: float
    bound: float
    violations: dict[str, float]
    metrics: dict[str, float] = field(repr=False)
    method: str
    message: str
    iterations: int
    seconds: float
    promise: str = ""

    @classmethod
    def of(cls, solution: Solution) -> TrainingReport:
        """The report of a solution; for a private solution without error, violations and rates."""
        constraint = getattr(solution.problem, "constraint", None)
        assessed = None if solution.private else solution.evaluation
        return cls(
            status=solution.status,
            error=np.nan if assessed is None else assessed.objective,
            bound=-np.inf if assessed is None else solution.bound,
            violations={} if assessed is None else dict(assessed.violations),
            metrics={} if assessed is None else dict(assessed.metrics),
            promise="" if constraint is None else constraint.promise,
            **{name: getattr(solution, name) for name in ("method", "message", "iterations", "seconds")},
        )


@dataclass(frozen=True)
class Training:
    """Checked training records of a classifier.

    Attributes
    ----------
    features : Array or sparse array
        Shape ``(n, d)``.
    labels : Array
        The number of each record's class, shape ``(n,)``.
    weights : Array, optional
        Of the records, shape ``(n,)``.
    kept : Array, optional
        Which of the given records these are: those without weight are left out; None for all.
    groups : sequence, optional
        The group of each record; None if none are looked at.
    constraint : Notion
        Over these groups.
    """

    features: Any
    labels: Array
    weights: Array | None
    kept: Array | None
    groups: Any
    constraint: Notion


def parted(given: Training, share: float, seed: Any) -> tuple[Training, Training]:
    """Split training records by chance: those to learn from, and a share that is held out."""
    held = np.random.default_rng(seed).permutation(len(given.labels)) < share * len(given.labels)
    places = np.arange(len(held)) if given.kept is None else np.flatnonzero(given.kept)

    def part(kept: Array) -> Training:
        within = np.zeros(len(held) if given.kept is None else len(given.kept), dtype=bool)
        within[places[kept]] = True
        groups = None if given.groups is None else subset(given.groups, kept)
        weights = None if given.weights is None else given.weights[kept]
        features, labels = given.features[kept], given.labels[kept]
        return replace(given, features=features, labels=labels, weights=weights, kept=within, groups=groups)

    return part(~held), part(held)


class GroupedEstimator(BaseEstimator):  # type: ignore[misc]
    """The base of estimators with the parameters `sensitive` and `combine`."""

    sensitive: Any
    combine: Combine
    n_features_in_: int
    _combines: tuple[str, ...] = ("cross", "each")

    def _sensitive(self, X: Any, given: Any, **others: Any) -> tuple[Any, list[str] | None]:
        """The sensitive columns, given or found by `sensitive`, and their names if these are known.

        Raises
        ------
        DeclarationError
            For a series or frame with the index of X, or of another one, in another order.
        """
        X, given = as_frame(X), as_frame(given)
        columns = {"X": X, **others, "sensitive_features": getattr(given, "reports", given)}
        check_label_order(type(self).__name__, columns)
        if given is not None or self.sensitive is None:
            return given, None
        return (self.sensitive(X), None) if callable(self.sensitive) else _columns(X, self._positions(X))

    def _positions(self, X: Any, unused: bool = False) -> list[int]:
        """The positions of the sensitive columns; with `unused` of those that X has."""
        if self.sensitive is None or callable(self.sensitive):
            return []
        asked = [self.sensitive] if isinstance(self.sensitive, str | Integral) else list(self.sensitive)
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
        return list(dict.fromkeys(found))

    def _features(self, X: Any, served: bool = False) -> Any:
        """X without the sensitive columns, of which a table to predict may have none."""
        X = as_frame(X)
        if hasattr(X, "iloc") and (np.ndim(X) < 2 or 0 in X.shape or not X.columns.is_unique):
            given = f"{type(X).__name__} of shape {X.shape}, columns {list(getattr(X, 'columns', ()))[:9]}"
            rule = "it must be a frame with a row at least, and columns of different names"
            raise DeclarationError(f"{type(self).__name__}: X is a {given}; {rule}")
        positions = self._positions(X, unused=served)
        if positions:
            kept = [j for j in range(np.shape(X)[1]) if j not in positions]
            X = X.iloc[:, kept] if hasattr(X, "iloc") else _array(X)[:, kept]
        names = names_of(X)
        if hasattr(X, "iloc") and any(type(name) is not str for name in names):
            X = X.set_axis(list(map(str, names)), axis=1)  # scikit-learn does not see numpy's text as names
        if served and hasattr(X, "iloc") and self._columns:
            X = aligned(X, self._columns)
        return X

    def _unused(self) -> Vocabulary | None:
        """The sensitive columns of a frame that may stand beside the features of a policy."""
        asked = [self.sensitive] if isinstance(self.sensitive, str) else self.sensitive
        names = tuple(name for name in asked if isinstance(name, str)) if np.iterable(asked) else ()
        return Vocabulary(names, ()) if names else None

    def _learner(self) -> Any:
        """The wrapped estimator of scikit-learn; None is the default one."""
        raise NotImplementedError

    def _learns_frames(self) -> bool:
        """Whether the learner takes a frame as it is."""
        return self._learner() is not None

    def _checked(self, X: Any, y: Any) -> tuple[Any, Array]:
        """Features and labels to learn from; sets the schema of the features."""
        table = given = self._features(X)
        self._columns = list(given.columns) if hasattr(given, "iloc") else []
        self._raw = bool(names_of(table)) and hasattr(table, "iloc") and self._learns_frames()
        if not self._raw:
            table, column = validate_data(self, table, y, y_numeric=is_regressor(self), **self._accepted())
        else:
            validate_data(self, table, skip_check_array=True)
            column = column_or_1d(y, warn=True)
            check_consistent_length(table, column)
        self._schema = Schema.of(given if names_of(given) else table)
        return (self._schema.cast(table) if self._raw else table), column

    def _accepted(self) -> dict[str, Any]:
        """The tables that the estimator takes, as arguments of ``validate_data``."""
        learner = self._learner()
        if not hasattr(learner, "__sklearn_tags__") or isinstance(learner, type):
            return {}
        tags = get_tags(learner).input_tags
        finite = "allow-nan" if tags.allow_nan else True
        return {"accept_sparse": "csr" if tags.sparse else False, "ensure_all_finite": finite}

    def __sklearn_tags__(self) -> Any:
        tags, taken = super().__sklearn_tags__(), self._accepted()
        tags.input_tags.sparse = bool(taken.get("accept_sparse"))
        tags.input_tags.allow_nan = taken.get("ensure_all_finite") == "allow-nan"
        return tags

    def _table(self, X: Any) -> Any:
        """The features of records to predict, checked."""
        table = self._features(X, served=True)
        if not self._raw:
            return validate_data(self, table, reset=False, **self._accepted())
        table = validate_data(self, table, reset=False, skip_check_array=True)
        return self._schema.cast(table) if hasattr(table, "iloc") else table

    def _check_combine(self) -> None:
        check_choice("combine", self.combine, *self._combines)


class GroupedClassifier(ClassifierMixin, GroupedEstimator):  # type: ignore[misc]
    """The base of classifiers, with the parameters `constraint`, `privacy`, `draws` and `random_state`."""

    constraint: Notion | None
    privacy: PrivacyBudget | None
    policy_: Policy
    draws: Literal["record", "row"]
    random_state: Any
    costs: Any
    _combines = ("cross", "each", "subgroups")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; with `deep` also the parameters of the learner and the fields of the constraint."""
        params: dict[str, Any] = super().get_params(deep)
        if deep and isinstance(self.constraint, Notion):
            fields = type(self.constraint).model_fields
            params |= {f"constraint__{name}": getattr(self.constraint, name) for name in fields}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``constraint__tolerance=0.1`` rebuilds the constraint with that tolerance."""
        own = {k: v for k, v in params.items() if not k.startswith("constraint__")}
        super().set_params(**own)
        changed = {k.removeprefix("constraint__"): v for k, v in params.items() if k not in own}
        if changed:
            if not isinstance(self.constraint, Notion):
                lacks = f"it has no parameter {next(iter(changed))}"
                raise DeclarationError(f"constraint is {self.constraint!r}; {lacks}")
            fields = {name: getattr(self.constraint, name) for name in type(self.constraint).model_fields}
            self.constraint = type(self.constraint)(**{**fields, **changed})
        return self

    def _takes_several(self) -> bool:
        """Whether the learner takes more than two classes; what is private is for two."""
        learner = self._learner()
        if self.privacy is not None or not hasattr(learner, "__sklearn_tags__") or isinstance(learner, type):
            return self.privacy is None
        tags = get_tags(learner).classifier_tags
        return tags is None or bool(tags.multi_class)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._takes_several()
        tags.non_deterministic = self.constraint is not None and self.draws == "record"
        return tags

    def _training(self, X: Any, y: Any, sensitive: Any, sample_weight: Any) -> Training:
        """The checked records; sets ``classes_``."""
        constraint = UNCONSTRAINED if self.constraint is None else self.constraint
        check_labels(y)
        features, column = self._checked(X, y)
        check_classification_targets(column)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, features)
        kept = None
        # as if these records were left out; pairs name records by position, so that all stay
        if weights is not None and (weights == 0).any() and not len(constraint.records):
            kept = weights > 0
            features, column, weights = rows_of(features, kept), column[kept], weights[kept]
        self.classes_, labels = np.unique(column, return_inverse=True)
        count = len(self.classes_)
        if count > 2 and not self._takes_several():
            raise DeclarationError(f"y has {count} classes; Only binary classification is supported here")
        if count < 2:
            weighted = "" if kept is None else " among the records of positive weight"
            raise DeclarationError(f"y has {count} class{weighted}; at least 2 classes are needed")
        groups, constraint = self._groups(X, sensitive, constraint, kept, y=y, sample_weight=sample_weight)
        return Training(features, labels, weights, kept, groups, constraint)

    def _costs(self, given: Training) -> Array | None:
        """The cost of each prediction for each label."""
        return cost_table(self.costs, given.labels, len(self.classes_), given.weights)

    def _solved(self, problem: Problem, method: str | None = None, **options: Any) -> Solution:
        """The solution of a problem, with a decision; sets ``report_``."""
        solution = problem.solve(method, **options)
        if solution.decision is None:
            ended = f"{solution.status} {solution.message}"
            raise DeclarationError(f"constraint: {self.constraint!r} cannot be met: {ended}")
        self.report_ = TrainingReport.of(solution)
        return solution

    def _policy(self, solution: Solution, **parts: Any) -> Policy:
        """The policy to serve; its lottery draws by `random_state`, if that is a number."""
        salt = int(self.random_state) if isinstance(self.random_state, Integral) else 0
        labels = tuple(self.classes_.tolist())
        fields = {"labels": labels, "raw": self._raw, "salt": salt, "promise": promise_of(solution)}
        return Policy(schema=self._schema, **{"groups": self._unused(), **fields, **parts})

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
                raise DeclarationError(f"sensitive_features is None; {self.constraint!r} needs the groups")
            return None, constraint
        if not (hasattr(given, "columns") or np.ndim(given) == 2):
            return given, constraint
        return combined(given, constraint, self.combine, names)

    def _served(self, X: Any, sensitive_features: Any = None) -> tuple[Any, Array, Any]:
        """Features, the probability of the second class, or of each, and the place of each group."""
        check_is_fitted(self)
        table, groups = self._table(X), None
        if self.policy_.needs_groups:
            groups, names = self._sensitive(X, sensitive_features)
            if names is not None and not hasattr(groups, "columns") and np.ndim(groups) == 2:
                groups = DataFrame(groups, columns=names)
        places = self.policy_.locate(groups)
        return table, self.policy_.answer(table, places), places

    def _law(self, X: Any, sensitive_features: Any = None) -> Array:
        """The probabilities of the classes, shape ``(n, 2)`` or ``(n, C)``."""
        _, chance, _ = self._served(X, sensitive_features)
        return chance if chance.ndim == 2 else np.column_stack([1.0 - chance, chance])

    def _drawn(self, X: Any, sensitive_features: Any = None) -> Array:
        """A class for each row, see the notes of `FairClassifier`."""
        table, chance, places = self._served(X, sensitive_features)
        if self.draws == "row":
            numbers = self.policy_.numbers(table, places)
        else:
            strata = np.unique(chance.reshape(len(chance), -1), axis=0, return_inverse=True)[1]
            numbers = systematic_numbers(strata.ravel(), _generator(self.random_state))
        return np.asarray(self.classes_[chosen_classes(chance, numbers)])

    def _check_front(self) -> None:
        """Refuse unfit parameters that all these classifiers share."""
        if self.constraint is not None and not isinstance(self.constraint, Notion):
            raise DeclarationError(f"constraint is {self.constraint!r}; it must be a fairness notion or None")
        check_choice("draws", self.draws, "record", "row")
        self._check_combine()
        seed = self.random_state
        if self.draws == "row" and not (seed is None or isinstance(seed, Integral)):
            raise DeclarationError(f"random_state is {seed!r}; draws='row' needs an int from 0 up or None")
        whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool) and int(seed) >= 0
        fits = seed is None or whole or isinstance(seed, np.random.Generator | np.random.RandomState)
        require(fits, "random_state", seed, "be None, an int of at least 0, or a generator")


def check_labels(y: Any) -> None:
    """Refuse missing labels, and labels that differ only by case or blanks.

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
            rule = "which differ by case or blanks alone; spell them alike"
            raise DeclarationError(f"y holds {first!r} and {value!r}, {rule}")


def _generator(seed: Any) -> np.random.Generator:
    if isinstance(seed, np.random.RandomState):
        return np.random.default_rng(int(seed.randint(2**31)))
    return np.random.default_rng(seed)


def _array(X: Any) -> Any:
    return csr_array(X) if issparse(X) else np.asarray(X)


def _columns(X: Any, positions: list[int]) -> tuple[Any, list[str]]:
    """Columns of a table and their names; a single one as a vector."""
    if hasattr(X, "iloc"):
        table, names = X.iloc[:, positions], [str(X.columns[j]) for j in positions]
        return (table.iloc[:, 0].to_numpy() if len(positions) == 1 else table), names
    table, names = _array(X)[:, positions], [f"column {j}" for j in positions]
    table = table.toarray() if issparse(table) else table
    return (table[:, 0] if len(positions) == 1 else table), names


def combined(
    given: Any, constraint: Notion, combine: Combine, names: list[str] | None = None
) -> tuple[list[str | None], Notion]:
    """One column of groups for several sensitive columns, and the constraint over these groups.

    Parameters
    ----------
    given : array_like
        Shape ``(n, c)``; an array or a frame.
    constraint : Notion
        The notion to demand.
    combine : {"cross", "each", "subgroups"}
        Whether it holds over the groups that the columns form together; over the values of each column for
        itself; or over those of each set of columns: its values, pairs of values, and so on.
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
    if np.shape(given)[1] == 1:
        return columns_of(given)[0], constraint
    rows = crossings(given)
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
    for size in range(1, 2 if combine == "each" else len(names) + 1):
        for chosen in combinations(range(len(names)), size):
            values = {title: [row[j] for j in chosen] for title, row in titles.items()}
            known = {title: " & ".join(map(str, own)) for title, own in values.items() if None not in own}
            column = " & ".join(names[j] for j in chosen)
            demands += [part.by(column, known) for part in parts if known and not len(part.records)]
    return [title_of[row] for row in rows], AllOf(notions=tuple(demands))


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
