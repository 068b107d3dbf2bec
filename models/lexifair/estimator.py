"""The scikit-learn front: linear regression that is fair to groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from forcopt.arrays import Array, check_entries, is_missing
from forcopt.errors import DeclarationError
from forcopt.fairness import DemographicParity, read_groups
from forcopt.models.lexifair.regression import BoundedLossRegression, LexifairRegression, LinearModel
from forcopt.problem.estimator import GroupedEstimator, TrainingReport, check_labels, combined
from forcopt.problem.policy import Policy, column_names, promise_of


@dataclass(eq=False, repr=False)
class FairRegressor(RegressorMixin, GroupedEstimator):  # type: ignore[misc]
    """Linear least squares that is fair to groups: `LexifairRegression` or `BoundedLossRegression`.

    Parameters
    ----------
    bound : float, optional
        On the mean squared error of every group; the error over all records is minimised. None makes the
        largest group error as small as possible, then the next.
    levels : int, optional
        Without `bound`, how many of the largest group errors matter; all by default, 1 for minimax fairness.
    fit_intercept : bool, default True
        Whether the model has a constant term.
    sensitive : str, int, sequence of these, or callable, optional
        Where the group of a record is found if ``sensitive_features`` is not given; see `FairClassifier`.
        Without either there is one group, and the fit is ordinary least squares.
    combine : {"cross", "each"}, default "cross"
        Whether several sensitive columns form groups together, or the values of each column are groups.
    method : str, optional
        Of the problem; its default by default.
    options : Mapping[str, Any], optional
        Of the method, such as ``{"time_limit": 60}``.

    Attributes
    ----------
    coef_ : Array
        The coefficients, shape ``(d,)``.
    intercept_ : float
        The constant term.
    model_ : LinearModel
        The model and its error in each group; the intercept, if any, is its last coefficient.
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
    fit_intercept: bool = True
    sensitive: Any = None
    combine: Literal["cross", "each"] = "cross"
    method: str | None = None
    options: Mapping[str, Any] | None = None

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
            "features": self._design(X[kept]),
            "labels": y[kept],
            "groups": [m for m in found.values() if len(m)],
            "names": [name for name, m in found.items() if len(m)],
            "weights": None if weights is None else weights[kept],
            "feature_names": self._names(),
        }
        kind = LexifairRegression if self.bound is None else BoundedLossRegression
        limit = {"levels": self.levels} if self.bound is None else {"bound": self.bound}
        solution = kind(**fields, **limit).solve(self.method, **dict(self.options or {}))
        if solution.decision is None:
            raise DeclarationError(f"bound: {solution.status}; {solution.reason}")
        self.model_: LinearModel = solution.decision
        self.report_ = TrainingReport.of(solution)
        theta = self.model_.coefficients
        self.coef_, self.intercept_ = (theta[:-1], float(theta[-1])) if self.fit_intercept else (theta, 0.0)
        front = replace(self.model_, coefficients=self.coef_, intercept=self.intercept_, features=())
        self.policy_ = Policy(front, self._schema, groups=self._unused(), promise=promise_of(solution))
        return self

    def _members(self, given: Any, names: list[str] | None, n: int) -> dict[str, Array]:
        """Which records belong to each group, by its name."""
        columns: dict[str, Any] = {}
        if not (hasattr(given, "columns") or np.ndim(given) == 2):
            columns[""] = given
        elif self.combine == "cross":
            columns[""] = combined(given, DemographicParity(), "cross", names)[0]
        else:
            table = np.asarray(given, dtype=object)
            columns = dict(zip(names or column_names(given), table.T, strict=True))
        members = {}
        for column, values in columns.items():
            entries = values.tolist() if hasattr(values, "tolist") else list(values)
            if len(entries) != n:
                raise DeclarationError(f"sensitive_features has {len(entries)} entries for {n} records")
            known = np.array([not is_missing(v) for v in entries])
            if not known.any():
                continue
            codes, found = read_groups([v for v in entries if not is_missing(v)])
            for a, value in enumerate(found):
                member = np.zeros(n, dtype=bool)
                member[known] = codes == a
                members[f"{column}={value}" if column else value] = member
        if not members:
            raise DeclarationError("sensitive_features: no record has a group; at least one must")
        return members

    def _names(self) -> tuple[str, ...]:
        """The names of the columns of `_design`: of the constant ``intercept``, with _ before it if taken."""
        names, constant = tuple(getattr(self, "feature_names_in_", ())), "intercept"
        while constant in names:
            constant = f"_{constant}"
        return (*names, constant) if names and self.fit_intercept else names

    def _design(self, X: Array) -> Array:
        return np.column_stack([X, np.ones(len(X))]) if self.fit_intercept else X

    def predict(self, X: Any) -> Array:
        """The predictions for features of shape ``(n, d)``, shape ``(n,)``."""
        check_is_fitted(self)
        return self.policy_.answer(self._table(X), None)
