"""The scikit-learn front: regression that is fair to groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from forcopt.arrays import Array, check_entries, is_missing
from forcopt.errors import DeclarationError
from forcopt.fairness import DemographicParity, read_groups
from forcopt.learning.tables import rows_of
from forcopt.models.lexifair.losses import LossName
from forcopt.models.lexifair.regression import BoundedLossRegression, LexifairRegression, LinearModel
from forcopt.problem.estimator import Combine, GroupedEstimator, TrainingReport, check_labels, combined
from forcopt.problem.policy import Policy, promise_of


@dataclass(eq=False, repr=False)
class FairRegressor(RegressorMixin, GroupedEstimator):  # type: ignore[misc]
    """Regression that is fair to groups: `LexifairRegression` or `BoundedLossRegression`.

    Parameters
    ----------
    bound : float, optional
        On the mean loss of every group; the loss over all records is minimised. None makes the largest group
        loss as small as possible, then the next.
    levels : int, optional
        Without `bound`, how many of the largest group losses matter; all by default, 1 for minimax fairness.
    learner : estimator, optional
        A regressor of scikit-learn that takes ``sample_weight``: the model is then a weighted mean of its
        fits instead of a linear one. It gets a frame as it is.
    loss : {"squared", "logistic", "absolute", "quantile", "poisson"}, default "squared"
        Of a prediction, see `LexifairRegression`. A learner should minimise the same one.
    quantile : float, default 0.5
        Of the quantile loss.
    fit_intercept : bool, default True
        Whether the model has a constant term.
    sensitive : str, int, sequence of these, or callable, optional
        Where the group of a record is found if ``sensitive_features`` is not given; see `FairClassifier`.
        Without either there is one group, and the fit is ordinary least squares.
    combine : {"cross", "each", "subgroups"}, default "cross"
        Whether several sensitive columns form groups together, the values of each column are groups, or those
        of each set of columns.
    method : str, optional
        Of the problem; its default by default.
    options : Mapping[str, Any], optional
        Of the method, such as ``{"time_limit": 60}``.

    Attributes
    ----------
    coef_ : Array
        The coefficients of a linear model, shape ``(d,)``.
    intercept_ : float
        Its constant term.
    model_ : LinearModel or RegressorMean
        The model and its loss in each group; the intercept of a linear one, if any, is its last coefficient.
    policy_ : Policy
        What to save and to serve: it takes the columns of a frame by name, and answers with numbers.
    report_ : TrainingReport
        Status, objective, bound, and the error of each group.
    n_features_in_ : int
        The number of columns of X.

    References
    ----------
    Diana et al. (2021), section 5; Agarwal, Dudík and Wu (2019), section 2.

    Examples
    --------
    >>> X, y, a = [[0.0], [0.0], [1.0], [1.0]], [0.0, 1.0, 1.0, 4.0], ["u", "u", "u", "v"]
    >>> fair = FairRegressor().fit(X, y, sensitive_features=a)
    >>> plain = FairRegressor().fit(X, y)
    >>> [round(float(m.predict([[1.0]])[0]), 3) for m in (plain, fair)]
    [2.5, 2.854]
    """

    bound: float | None = None
    _: KW_ONLY
    levels: int | None = None
    learner: Any = None
    loss: LossName = "squared"
    quantile: float = 0.5
    fit_intercept: bool = True
    sensitive: Any = None
    combine: Combine = "cross"
    method: str | None = None
    options: Mapping[str, Any] | None = None
    _combines = ("cross", "each", "subgroups")

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array_like
            Features, shape ``(n, d)``.
        y : array_like
            The label of each record.
        sensitive_features : array_like, optional
            The group of each record, or a table of several sensitive columns. A record without a group counts
            in the error over all records alone.
        sample_weight : array_like, optional
            The weight of each record in the means, shape ``(n,)``.

        Returns
        -------
        FairRegressor
            Itself.

        Raises
        ------
        DeclarationError
            (a ValueError) for anything else, naming it.
        """
        self._check_combine()
        if self.bound is not None and self.levels is not None:
            raise DeclarationError(f"levels is {self.levels!r}; with bound there are no levels")
        X_given, y_given = X, y
        check_labels(y)
        X, y = self._checked(X, y)
        given, names = self._sensitive(X_given, sensitive_features, y=y_given, sample_weight=sample_weight)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        if weights is not None:
            check_entries(weights, weights < 0, "sample_weight", "it must not be negative")
        kept = np.ones(len(y), dtype=bool) if weights is None else weights > 0
        groups = {"all": kept} if given is None else self._members(given, names, len(y))
        found = {name: np.flatnonzero((member & kept)[kept]) for name, member in groups.items()}
        fields: dict[str, Any] = {
            "features": self._design(rows_of(X, kept)),
            "labels": y[kept],
            "groups": [m for m in found.values() if len(m)],
            "names": [name for name, m in found.items() if len(m)],
            "weights": None if weights is None else weights[kept],
            "feature_names": self._names(),
            "loss": self.loss,
            "quantile": self.quantile,
            "learner": self.learner,
        }
        kind = LexifairRegression if self.bound is None else BoundedLossRegression
        fields |= {"levels": self.levels} if self.bound is None else {"bound": self.bound}
        solution = kind(**fields).solve(self.method, **dict(self.options or {}))
        if solution.decision is None:
            raise DeclarationError(f"bound: {solution.status}; {solution.reason or solution.message}")
        self.model_ = solution.decision
        self.report_ = TrainingReport.of(solution)
        front = replace(self.model_, features=())
        if isinstance(front, LinearModel):
            theta = front.coefficients
            self.coef_: Array = theta[:-1] if self.fit_intercept else theta
            self.intercept_ = float(theta[-1]) if self.fit_intercept else 0.0
            front = replace(front, coefficients=self.coef_, intercept=self.intercept_)
        promise = promise_of(solution)
        self.policy_ = Policy(front, self._schema, groups=self._unused(), raw=self._raw, promise=promise)
        return self

    def _learner(self) -> Any:
        return self.learner

    def _members(self, given: Any, names: list[str] | None, n: int) -> dict[str, Array]:
        """Which records belong to each group, by its name."""
        unions: Any = ()
        if hasattr(given, "columns") or np.ndim(given) == 2:
            given, notion = combined(given, DemographicParity(), self.combine, names)
            unions = getattr(notion, "notions", ())
        entries = given.tolist() if hasattr(given, "tolist") else list(given)
        if len(entries) != n:
            raise DeclarationError(f"sensitive_features has {len(entries)} entries for {n} records")
        known = np.array([not is_missing(v) for v in entries])
        if not known.any():
            raise DeclarationError("sensitive_features: no record has a group; at least one must")
        codes, found = read_groups([v for v in entries if not is_missing(v)])
        members = {value: np.zeros(n, dtype=bool) for value in found}
        for a, member in enumerate(members.values()):
            member[known] = codes == a
        joined: dict[str, Array] = {}
        for union in unions:
            for title, value in union.values.items():
                name = f"{union.column}={value}"
                joined[name] = joined.get(name, False) | members[title]
        return joined or members

    def _names(self) -> tuple[str, ...]:
        """The names of the columns of `_design`: of the constant ``intercept``, with _ before it if taken."""
        names, constant = tuple(getattr(self, "feature_names_in_", ())), "intercept"
        while constant in names:
            constant = f"_{constant}"
        return (*names, constant) if names and self.fit_intercept and self.learner is None else names

    def _design(self, X: Any) -> Any:
        return np.column_stack([X, np.ones(len(X))]) if self.fit_intercept and self.learner is None else X

    def predict(self, X: Any) -> Array:
        """The predictions for features of shape ``(n, d)``, shape ``(n,)``."""
        check_is_fitted(self)
        return self.policy_.answer(self._table(X), None)
