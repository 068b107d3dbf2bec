"""The scikit-learn front: fair learning as an estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.fairness import DemographicParity, Notion
from forcopt.fairness.records import is_missing
from forcopt.learning import Hypotheses, Learner, systematic_draw
from forcopt.learning.lookup import distinct_rows
from forcopt.models.fair_classification.decision import RandomizedClassifier, SeesGroups
from forcopt.models.fair_classification.problem import FairClassification
from forcopt.privacy import ObservedGroups
from forcopt.problem import Solution
from forcopt.status import Status

__all__ = ["FairClassifier", "TrainingReport"]

UNCONSTRAINED = DemographicParity(1.0)


@dataclass(frozen=True)
class TrainingReport:
    """The result of a fit, without the records.

    Attributes
    ----------
    status : Status
        How far the policy can be trusted.
    error : float
        The training error.
    bound : float
        On the least training error of a fair policy; infinite if none is known.
    violations : dict[str, float]
        The demands of the constraint that the policy breaks, and by how much.
    metrics : dict[str, float]
        Disparities, and the rates of each group.
    method, message : str
        The method, and why it ended.
    iterations : int
        As the method counts them.
    seconds : float
        Wall time.
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

    @classmethod
    def of(cls, solution: Solution) -> TrainingReport:
        """The report of a solution."""
        assert solution.evaluation is not None
        return cls(
            status=solution.status,
            error=solution.objective,
            bound=solution.bound,
            violations=dict(solution.evaluation.violations),
            metrics=dict(solution.evaluation.metrics),
            method=solution.method,
            message=solution.message,
            iterations=solution.iterations,
            seconds=solution.seconds,
        )


class FairClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learns a fair randomised classifier: `FairClassification` as a scikit-learn estimator.

    Parameters
    ----------
    constraint : Notion, optional
        The fairness notion; None for no constraint. Its fields are parameters of the estimator, too, such as
        ``constraint__tolerance`` in a grid search.
    learner : estimator or Hypotheses, optional
        A scikit-learn classifier that takes ``sample_weight``, or a class of hypotheses; logistic regression
        on standardised features by default.
    method : str, default "column-generation"
        Of `FairClassification`.
    options : Mapping[str, Any], optional
        Of the method, such as ``{"accuracy": 1e-4, "time_limit": 60}``.
    sensitive : str, int, sequence of these, or callable, optional
        Where the group of a record is found if ``sensitive_features`` is not given to `fit`: columns of X by
        name (of a frame) or position, which are then no features; or a function of X that returns the groups.
        Several columns are crossed.
    draws : {"record", "row"}, default "record"
        Whether `predict` draws for each record, or once for all records with the same features; see Notes.
    random_state : int or numpy.random.Generator, optional
        The source of the draws of `predict`. With an int every call repeats its draws, so that calls with one
        record each would all draw the same number: leave it out in production.
    keep_solution : bool, default False
        Keep the whole `Solution` as ``solution_``. It holds X, y and the groups, also in a pickle.

    Attributes
    ----------
    classes_ : numpy.ndarray
        The two labels, the second being the better treatment.
    policy_ : RandomizedClassifier
        The classifiers and the probability of each. It holds no training records, except as a learner keeps
        them itself (nearest neighbours do), and for the classes `AllFunctions` and `Finite`, which are
        tables of records.
    report_ : TrainingReport
        Training error, bound, violations, and why the method ended.
    solution_ : Solution
        Only with ``keep_solution=True``.
    n_features_in_ : int
        The number of columns of X.

    Notes
    -----
    The constraint holds for probabilities. Realised predictions follow them as closely as draws allow:

    - With ``draws="record"`` all records with the same features are sampled systematically, in a random order
      (`systematic_draw`). Their number of 1s is exact up to rounding, and the rates of groups concentrate:
      with n records in a group, a realised rate is off by about ``1 / (2 sqrt(n))`` at most.
    - With ``draws="row"`` one number decides for all records with the same features and random_state: the
      same person always gets the same prediction. If few distinct rows make up the data, the realised rates
      may then be off by as much as the probabilities differ from 0 and 1, at worst by 1.

    References
    ----------
    Agarwal et al. (2018): A reductions approach to fair classification.

    Examples
    --------
    >>> from forcopt.fairness import DemographicParity
    >>> rng = np.random.default_rng(0)
    >>> a = rng.integers(0, 2, 400)
    >>> X = rng.normal(size=(400, 2)) + a[:, None]
    >>> y = X.sum(axis=1) > rng.normal(size=400) + 1
    >>> clf = FairClassifier(DemographicParity(0.05)).fit(X, y, sensitive_features=a)
    >>> share = clf.predict_proba(X)[:, 1]
    >>> bool(abs(share[a == 0].mean() - share[a == 1].mean()) < 0.05 + 1e-6)
    True
    """

    def __init__(
        self,
        constraint: Notion | None = None,
        learner: Any = None,
        method: str = "column-generation",
        options: Mapping[str, Any] | None = None,
        *,
        sensitive: Any = None,
        draws: Literal["record", "row"] = "record",
        random_state: Any = None,
        keep_solution: bool = False,
    ) -> None:
        self.constraint = constraint
        self.learner = learner
        self.method = method
        self.options = options
        self.sensitive = sensitive
        self.draws = draws
        self.random_state = random_state
        self.keep_solution = keep_solution

    # -- parameters ----------------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; with `deep` those of the learner and the fields of the constraint, too."""
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
                raise DeclarationError(
                    f"constraint is {self.constraint!r}; it has no parameter {next(iter(changed))}"
                )
            fields = {name: getattr(self.constraint, name) for name in type(self.constraint).model_fields}
            self.constraint = type(self.constraint)(**{**fields, **changed})
        return self

    # -- fitting -------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Learn from records.

        Parameters
        ----------
        X : array_like
            Features, shape ``(n, d)``.
        y : array_like
            One of two labels for each record.
        sensitive_features : array_like, optional
            The group of each record, missing or observed through a channel as `FairClassification` allows; a
            table of several columns is crossed. Needed, here or by `sensitive`, if the constraint looks at
            groups.
        sample_weight : array_like, optional
            The weight of each record in the error and in the rates, shape ``(n,)``.

        Returns
        -------
        FairClassifier
            Itself.

        Raises
        ------
        DeclarationError
            (a ValueError) for anything else, naming it.
        """
        self._check_parameters()
        constraint = UNCONSTRAINED if self.constraint is None else self.constraint
        given, X_given = sensitive_features, X
        X, y = validate_data(self, self._features(X), y)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) != 2:
            raise DeclarationError(
                f"y has {len(self.classes_)} classes; Only binary classification is supported, with 2 classes"
            )
        groups = self._groups(X_given, given, constraint)
        labels = np.searchsorted(self.classes_, y)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        if weights is not None and (weights == 0).any():  # as if these records were left out
            kept = weights > 0
            X, labels, weights = X[kept], labels[kept], weights[kept]
            groups = None if groups is None else _subset(groups, kept)
        learner = self.learner
        hypotheses = learner if learner is None or isinstance(learner, Hypotheses) else Learner(learner)
        problem = FairClassification(
            features=X,
            labels=labels,
            groups=np.zeros(len(labels), dtype=np.int64) if groups is None else groups,
            constraint=constraint,
            weights=weights,
            hypotheses=hypotheses,
        )
        solution = problem.solve(self.method, **dict(self.options or {}))
        if solution.decision is None:
            ended = f"{solution.status} {solution.message}"
            raise DeclarationError(f"constraint: {self.constraint!r} cannot be met: {ended}")
        if isinstance(solution.decision, SeesGroups):
            raise DeclarationError(
                f"method is {self.method!r}, whose predictions need the group of each record, which predict "
                "is not given here; solve a FairClassification by it"
            )
        self.policy_: RandomizedClassifier = solution.decision
        self.report_ = TrainingReport.of(solution)
        if self.keep_solution:
            self.solution_ = solution
        elif hasattr(self, "solution_"):
            del self.solution_
        return self

    def _check_parameters(self) -> None:
        if self.constraint is not None and not isinstance(self.constraint, Notion):
            raise DeclarationError(f"constraint is {self.constraint!r}; it must be a fairness notion or None")
        if self.draws not in ("record", "row"):
            raise DeclarationError(f"draws is {self.draws!r}; it must be 'record' or 'row'")
        seed = self.random_state
        whole = isinstance(seed, Integral) and not isinstance(seed, bool) and int(seed) >= 0
        if not (seed is None or whole or isinstance(seed, np.random.Generator | np.random.RandomState)):
            raise DeclarationError(
                f"random_state is {seed!r}; it must be None, an int of at least 0, or a generator"
            )
        if self.draws == "row" and not (seed is None or whole):
            raise DeclarationError(
                f"random_state is {seed!r}; draws='row' needs an int of at least 0 or None"
            )

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
        return _crossed(given)

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

    # -- predicting ----------------------------------------------------------------------------------------

    def probability(self, X: Any) -> Array:
        """The probability of the second class for each row, shape ``(n,)``."""
        check_is_fitted(self)
        return self.policy_.probability(validate_data(self, self._features(X), reset=False))

    def predict_proba(self, X: Any) -> Array:
        """The probabilities of both classes, shape ``(n, 2)``."""
        positive = self.probability(X)
        return np.column_stack([1.0 - positive, positive])

    def predict(self, X: Any) -> Array:
        """Draw a class for each row; see Notes.

        Parameters
        ----------
        X : array_like
            Features, shape ``(n, d)``.

        Returns
        -------
        Array
            Members of ``classes_``, shape ``(n,)``.
        """
        check_is_fitted(self)
        X = validate_data(self, self._features(X), reset=False)
        positive = self.policy_.probability(X)
        if self.draws == "row":
            seed = 0 if self.random_state is None else int(self.random_state)
            ones = _row_numbers(X, seed) < positive
        else:
            ones = positive >= 1.0
            mixed = np.flatnonzero((positive > 0.0) & (positive < 1.0))
            if len(mixed):
                strata = distinct_rows(np.asarray(X, dtype=float)[mixed])[1]
                ones[mixed] = systematic_draw(positive[mixed], strata, _generator(self.random_state))
        return np.asarray(self.classes_[ones.astype(np.int64)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.non_deterministic = self.constraint is not None and self.draws == "record"
        return tags


def _generator(seed: Any) -> np.random.Generator:
    if isinstance(seed, np.random.RandomState):
        return np.random.default_rng(int(seed.randint(2**31)))
    return np.random.default_rng(seed)


def _columns(X: Any, positions: list[int]) -> Any:
    table = X.iloc[:, positions].to_numpy() if hasattr(X, "iloc") else np.asarray(X)[:, positions]
    return table[:, 0] if len(positions) == 1 else table


def _crossed(given: Any) -> Any:
    """One column of groups; several columns are crossed, and a record that misses one of them misses all."""
    if hasattr(given, "columns") or np.ndim(given) == 2:
        table = np.asarray(given, dtype=object)
        if table.shape[1] == 1:
            return table[:, 0].tolist()
        return [None if any(map(is_missing, row)) else " & ".join(map(str, row)) for row in table.tolist()]
    return given


def _subset(groups: Any, kept: Array) -> Any:
    """The groups of some records."""
    if isinstance(groups, ObservedGroups):
        return groups.channel.observe(_subset(groups.reports, kept))
    column = groups.tolist() if hasattr(groups, "tolist") else list(groups)
    if len(column) != len(kept):
        raise DeclarationError(f"sensitive_features has {len(column)} entries for {len(kept)} records")
    return [value for value, keep in zip(column, kept.tolist(), strict=True) if keep]


def _row_numbers(X: Any, seed: int) -> Array:
    """A number in [0, 1) for each row that looks random but depends on row and seed only (splitmix64)."""
    words = np.ascontiguousarray(np.asarray(X, dtype=np.float64) + 0.0).view(np.uint64)
    state = np.full(len(words), seed, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for word in words.T:
            state = (state ^ word) + np.uint64(0x9E3779B97F4A7C15)
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state ^= state >> np.uint64(31)
    return np.asarray((state >> np.uint64(11)).astype(np.float64) * 2.0**-53)
