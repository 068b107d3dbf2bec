"""The scikit-learn front: fair learning as an estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.fairness import DemographicParity, Notion
from forcopt.models.fair_classification.decision import SeesGroups
from forcopt.models.fair_classification.hypotheses import Hypotheses, Learner
from forcopt.models.fair_classification.problem import FairClassification

__all__ = ["FairClassifier"]

UNCONSTRAINED = DemographicParity(1.0)


class FairClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learns a fair randomised classifier: `FairClassification` as a scikit-learn estimator.

    Parameters
    ----------
    constraint : Notion, optional
        The fairness notion; None for no constraint.
    learner : Any, optional
        A scikit-learn classifier that takes ``sample_weight``, or `Hypotheses`; logistic regression on
        standardised features by default.
    method : str, default "column-generation"
        Of `FairClassification`.
    options : Mapping[str, Any], optional
        Of the method, such as ``{"accuracy": 1e-4}``.
    random_state : int, default 0
        An int, from which each record's lot is drawn together with its features: the same record always gets
        the same prediction, in whatever company it comes.

    Attributes
    ----------
    classes_
        The two labels, the second being the better treatment.
    solution_
        The `Solution`, with the decision, the training error and how far it can be trusted.

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
        random_state: int = 0,
    ) -> None:
        self.constraint = constraint
        self.learner = learner
        self.method = method
        self.options = options
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None) -> Self:
        """Learn from records.

        Parameters
        ----------
        X : Any
            Features, shape ``(n, d)``.
        y : Any
            One of two labels for each record.
        sensitive_features : Any, optional
            The group of each record, missing or observed through a channel as `FairClassification` allows;
            needed if the constraint looks at groups.

        Raises
        ------
        DeclarationError
            (a ValueError) for anything else, naming it.
        """
        X, y = validate_data(self, X, y)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) != 2:
            raise DeclarationError(
                f"y has {len(self.classes_)} classes; Only binary classification is supported, with 2 classes"
            )
        constraint = UNCONSTRAINED if self.constraint is None else self.constraint
        if sensitive_features is None:
            if self.constraint is not None and self.constraint.rates:
                raise DeclarationError(
                    f"sensitive_features is None; {self.constraint!r} looks at the groups of records"
                )
            sensitive_features = np.zeros(len(y), dtype=np.int64)
        learner = self.learner
        hypotheses = learner if learner is None or isinstance(learner, Hypotheses) else Learner(learner)
        problem = FairClassification(
            features=X,
            labels=np.searchsorted(self.classes_, y),
            groups=sensitive_features,
            constraint=constraint,
            hypotheses=hypotheses,
        )
        self.solution_ = problem.solve(self.method, **dict(self.options or {}))
        if self.solution_.decision is None:
            said = f"{self.solution_.status} {self.solution_.message}"
            raise DeclarationError(f"constraint: {self.constraint!r} cannot be met: {said}")
        if isinstance(self.solution_.decision, SeesGroups):
            raise DeclarationError(
                f"method is {self.method!r}, whose predictions need the group of each record, which predict "
                "is not given here; solve a FairClassification by it"
            )
        return self

    def predict_proba(self, X: Any) -> Array:
        """The probabilities of both classes, shape ``(n, 2)``."""
        check_is_fitted(self)
        return np.asarray(self.solution_.decision.predict_proba(validate_data(self, X, reset=False)))

    def predict(self, X: Any) -> Array:
        """Draw a class for each row; the same row always gets the same."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        positive = self.solution_.decision.positive_probability(X)
        return np.asarray(self.classes_[(_lots(X, self.random_state) < positive).astype(np.int64)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _lots(X: Any, seed: int) -> Array:
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
