"""The scikit-learn front: fair thresholds on the scores of any classifier."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.fairness import DemographicParity, Notion
from forcopt.fairness.records import read_groups
from forcopt.models.fair_classification.estimator import TrainingReport
from forcopt.models.fair_classification.group_aware import (
    GroupAware,
    accepted,
    check_class_count,
    draw,
    subset,
    takes_several,
)
from forcopt.models.fair_postprocessing.multiclass import MulticlassPostprocessing
from forcopt.models.fair_postprocessing.remix import RandomizedRemix
from forcopt.models.fair_postprocessing.scores import ScorePostprocessing
from forcopt.models.fair_postprocessing.thresholds import RandomizedThresholds
from forcopt.privacy import PrivacyBudget

__all__ = ["ThresholdPostprocessor"]

UNCONSTRAINED = DemographicParity(1.0)


class ThresholdPostprocessor(GroupAware, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Cuts the score of a classifier at group-wise randomised thresholds: `ScorePostprocessing`.

    Of all laws of thresholds by group it takes one of least training error that satisfies the constraint,
    which is exact, for any number of groups and any notion over groups. With more than two labels it remixes
    the predicted labels by group: `MulticlassPostprocessing`.

    Parameters
    ----------
    estimator : estimator, optional
        A classifier; logistic regression by default. Its score is ``predict_proba``, else
        ``decision_function``, else its label.
    constraint : Notion, optional
        The fairness notion, over groups; None for the least error of each group. Its fields are parameters,
        too, such as ``constraint__tolerance``.
    prefit : bool, default False
        The estimator is already fitted. Fit thresholds on other records than it was fitted on.
    sensitive : str, int, sequence of these, or callable, optional
        Where the group of a record is found if ``sensitive_features`` is not given; see `FairClassifier`.
    combine : {"cross", "each"}, default "cross"
        The constraint for several sensitive columns, see `FairClassifier`. Thresholds differ by the groups
        that the columns form together.
    privacy : PrivacyBudget, optional
        Let the thresholds be private in the groups of the records, such as ``PrivacyBudget(epsilon=1.0)``;
        `ScorePostprocessing` solved by ``dp-thresholds``. Then there are no sample weights, and the names of
        the groups are public.
    names : sequence of str, optional
        With `privacy`, the names of all groups that may occur, of crossed columns such as ``sex=f & race=u``;
        without it those that occur become public.
    edges : array_like, optional
        With `privacy`, the public thresholds to choose among; 0.05, 0.1, ..., 0.95 by default, for a
        classifier with ``predict_proba``.
    draws : {"record", "row"}, default "record"
        Whether `predict` draws for each record, or once for all with the same group and score; see
        `FairClassifier`.
    backend : str, default "highs"
        Solves the linear program.
    random_state : int or numpy.random.Generator, optional
        The source of the draws of `predict`; an int repeats them at every call.

    Attributes
    ----------
    classes_ : numpy.ndarray
        The labels. Of two the second is the better treatment; with more a notion holds classwise.
    estimator_ : estimator
        The fitted classifier.
    policy_ : RandomizedThresholds or RandomizedRemix
        The thresholds of each group; with more than two labels the law of the label for each predicted one.
    report_ : TrainingReport
        Training error, bound and rates; with `privacy` the message alone, as all else is of the true groups.

    References
    ----------
    Hardt, Price and Srebro (2016): Equality of opportunity in supervised learning.

    Examples
    --------
    >>> from forcopt.fairness import EqualizedOdds
    >>> rng = np.random.default_rng(0)
    >>> a = rng.integers(0, 2, 400)
    >>> X = rng.normal(size=(400, 2)) + a[:, None]
    >>> y = X.sum(axis=1) > rng.normal(size=400) + 1
    >>> clf = ThresholdPostprocessor(constraint=EqualizedOdds(0.02)).fit(X, y, sensitive_features=a)
    >>> clf.report_.status, bool(clf.report_.metrics["true positive rate"] <= 0.02 + 1e-6)
    (<Status.OPTIMAL: 'optimal'>, True)
    """

    def __init__(
        self,
        estimator: Any = None,
        constraint: Notion | None = None,
        *,
        prefit: bool = False,
        sensitive: Any = None,
        combine: Literal["cross", "each"] = "cross",
        privacy: PrivacyBudget | None = None,
        names: Any = None,
        edges: Any = None,
        draws: Literal["record", "row"] = "record",
        backend: str = "highs",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.constraint = constraint
        self.prefit = prefit
        self.sensitive = sensitive
        self.combine = combine
        self.privacy = privacy
        self.names = names
        self.edges = edges
        self.draws = draws
        self.backend = backend
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Fit the classifier, then the thresholds.

        Parameters
        ----------
        X : array_like
            Features, shape ``(n, d)``.
        y : array_like
            A label for each record, of two or more.
        sensitive_features : array_like, optional
            The group of each record; needed, here or by `sensitive`, if the constraint looks at groups.
        sample_weight : array_like, optional
            The weight of each record, shape ``(n,)``.

        Returns
        -------
        ThresholdPostprocessor
            Itself.

        Raises
        ------
        DeclarationError
            (a ValueError) for anything else, naming it.
        """
        self._check_front()
        if self.privacy is None and self.edges is not None:
            raise DeclarationError(
                "edges is given without privacy; without it every score may be a threshold"
            )
        if self.names is not None and (self.privacy is None or self.combine == "each"):
            raise DeclarationError(
                "names is given without privacy or with combine='each'; then the groups are those that occur"
            )
        constraint = UNCONSTRAINED if self.constraint is None else self.constraint
        given = X
        X, y = validate_data(self, self._features(X), y, **self._accepted())
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        check_class_count(self.classes_, self._takes_several())
        groups, constraint = self._groups(given, sensitive_features, constraint)
        labels = np.searchsorted(self.classes_, y)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        if weights is not None and (weights == 0).any():  # as if these records were left out
            kept = weights > 0
            X, y, labels, weights = X[kept], y[kept], labels[kept], weights[kept]
            groups = None if groups is None else subset(groups, kept)
        self._fit_estimator(X, y, weights)
        self._blind = groups is None
        groups = ("all",) * len(y) if groups is None else groups
        problem: ScorePostprocessing | MulticlassPostprocessing
        if len(self.classes_) > 2:
            names = tuple(map(str, self.classes_))
            of_labels = [names[c] for c in labels.tolist()]
            problem = MulticlassPostprocessing.from_predictions(
                self._score(X), groups, of_labels, constraint, classes=names, weights=weights
            )
        else:
            problem = ScorePostprocessing(
                scores=self._score(X),
                labels=labels,
                groups=groups,
                constraint=constraint,
                weights=weights,
                privacy=self.privacy,
                names=() if self.names is None else tuple(self.names),
            )
        options = {} if self.privacy is None else {"edges": self._edges()}
        solution = problem.solve(backend=self.backend, **options)
        if solution.decision is None:
            ended = f"{solution.status} {solution.message}"
            raise DeclarationError(f"constraint: {self.constraint!r} cannot be met: {ended}")
        self.policy_: RandomizedThresholds | RandomizedRemix = solution.decision
        self.report_ = TrainingReport.of(solution)
        return self

    def _edges(self) -> Any:
        if self.edges is not None:
            return self.edges
        if not hasattr(self.estimator_, "predict_proba"):
            raise DeclarationError(
                "edges is None; with privacy and an estimator without predict_proba, give public thresholds"
            )
        return np.arange(1, 20) / 20

    def _takes_several(self) -> bool:
        """Whether the estimator takes more than two classes; private thresholds are for two."""
        return self.privacy is None and takes_several(self.estimator)

    def _accepted(self) -> dict[str, Any]:
        """The tables that the estimator takes, for ``validate_data``."""
        return accepted(self.estimator)

    def _fit_estimator(self, X: Array, y: Array, weights: Array | None) -> None:
        if self.prefit:
            try:
                check_is_fitted(self.estimator)
            except (NotFittedError, TypeError) as error:
                raise DeclarationError(f"prefit is True, but estimator is not fitted: {error}") from None
            self.estimator_ = self.estimator
        else:
            self.estimator_ = LogisticRegression(max_iter=1000) if self.estimator is None else self.estimator
            self.estimator_ = clone(self.estimator_)
            steps = getattr(self.estimator_, "steps", None)
            name = f"{steps[-1][0]}__sample_weight" if steps else "sample_weight"
            if weights is not None and not has_fit_parameter(
                (steps or [("", self.estimator_)])[-1][1], "sample_weight"
            ):
                raise DeclarationError(f"estimator is {self.estimator_!r}; its fit takes no sample_weight")
            with config_context(enable_metadata_routing=False):
                self.estimator_.fit(X, y, **({} if weights is None else {name: weights}))

    def _score(self, X: Any) -> Array:
        """The score of each record; with more than two labels the predicted label as text."""
        if len(self.classes_) > 2:
            found = np.asarray(self.estimator_.predict(X))
            place = np.minimum(np.searchsorted(self.classes_, found), len(self.classes_) - 1)
            if (self.classes_[place] != found).any():
                at = int(np.argmax(self.classes_[place] != found))
                raise DeclarationError(f"estimator predicts {found[at]!r}, which is no label of y")
            return np.array(list(map(str, self.classes_)))[place]
        if hasattr(self.estimator_, "predict_proba"):
            return np.asarray(self.estimator_.predict_proba(X), dtype=float)[:, 1]
        if hasattr(self.estimator_, "decision_function"):
            return np.asarray(self.estimator_.decision_function(X), dtype=float)
        return np.asarray(np.asarray(self.estimator_.predict(X)) == self.classes_[1], dtype=float)

    def _scored(self, X: Any, sensitive_features: Any) -> tuple[Array, Array, Array]:
        """Scores, the number of each group, and the probability of the second class (or of each)."""
        check_is_fitted(self)
        given = X
        X = validate_data(self, self._features(X), reset=False, **self._accepted())
        score = self._score(X)
        if self._blind:
            groups = ["all"] * len(score)
        else:
            groups, _ = self._groups(given, sensitive_features, self.constraint or UNCONSTRAINED)
            if groups is None:
                raise DeclarationError("sensitive_features is None; the thresholds differ by group")
        codes, _ = read_groups(groups, self.policy_.groups)
        return score, codes, self.policy_.probability(score, groups)

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Array:
        """The probabilities of the classes, shape ``(n, 2)`` or ``(n, C)``; groups as in `fit`."""
        chance = self._scored(X, sensitive_features)[2]
        return chance if chance.ndim == 2 else np.column_stack([1.0 - chance, chance])

    def predict(self, X: Any, *, sensitive_features: Any = None) -> Array:
        """Draw a class for each row; groups as in `fit`."""
        score, codes, chance = self._scored(X, sensitive_features)
        if isinstance(self.policy_, RandomizedRemix):
            score = np.array(list(map(self.policy_.classes.index, score.tolist())))
        drawn = draw(chance, np.column_stack([score, codes]), self.draws, self.random_state)
        return np.asarray(self.classes_[drawn])

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """The accuracy of drawn predictions; groups as in `fit`."""
        drawn = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, drawn, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._takes_several()
        taken = self._accepted()
        tags.input_tags.sparse = bool(taken.get("accept_sparse"))
        tags.input_tags.allow_nan = taken.get("ensure_all_finite") == "allow-nan"
        tags.non_deterministic = self.constraint is not None and self.draws == "record"
        return tags
