"""The scikit-learn front: fair thresholds on the scores of any classifier."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from sklearn import config_context
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError, require
from forcopt.fairness import Notion
from forcopt.learning.learner import FittedScore, weight_name
from forcopt.learning.thresholds import levels
from forcopt.learning.tolerances import ROUNDING
from forcopt.models.fair_postprocessing.multiclass import MulticlassPostprocessing
from forcopt.models.fair_postprocessing.scores import ScorePostprocessing
from forcopt.privacy import PrivacyBudget
from forcopt.problem.estimator import Combine, GroupedClassifier, Training, parted, subset
from forcopt.problem.policy import Policy, Vocabulary, column_names, crossing_of


@dataclass(eq=False, repr=False)
class ThresholdPostprocessor(MetaEstimatorMixin, GroupedClassifier):  # type: ignore[misc]
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
    held_out : float, optional
        The share of the records that the estimator is not fitted on; the thresholds then are fitted on these
        alone. A constraint with `confidence` needs it, or `prefit`.
    sensitive : str, int, sequence of these, or callable, optional
        Where the group of a record is found if ``sensitive_features`` is not given; see `FairClassifier`.
    combine : {"cross", "each", "subgroups"}, default "cross"
        The constraint for several sensitive columns, see `FairClassifier`. Thresholds differ by the groups
        that the columns form together. Unless they are crossed, a group of known values that did not occur in
        training is treated as the mixture of those that share the most values with it.
    unknown : {"refuse", "mixture"}, optional
        Whether a group with a value that training lacks is refused, or gets such a mixture, with a warning.
        By default ``"refuse"`` if columns are crossed; else ``"mixture"``, as the known values still count.
    privacy : PrivacyBudget, optional
        Let the thresholds be private in the groups of the records, such as ``PrivacyBudget(epsilon=1.0)``;
        `ScorePostprocessing` solved by ``dp-thresholds``. Then there are no sample weights, `names` are
        required, and several columns are crossed.
    names : sequence of str, optional
        With `privacy`, the names of all groups that may occur, of crossed columns such as ``sex=f & race=u``.
    edges : array_like, optional
        With `privacy`, the public thresholds to choose among; 0.05, 0.1, ..., 0.95 by default, for a
        classifier with ``predict_proba``.
    ledger : str, optional
        With `privacy`, the file of the `Ledger` from which each `fit` spends; required then.
    draws : {"record", "row"}, default "record"
        Whether `predict` draws for each record, or once for all with the same group and features; see
        `FairClassifier`.
    costs : "balanced", mapping or array_like, optional
        Of wrong predictions, in place of 1 each; see `cost_table`. The errors of the report are mean costs.
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
    policy_ : Policy
        What to save and to serve. Its `law` are the `RandomizedThresholds` of the groups; with more than two
        labels the `RandomizedRemix`, the law of the label for each predicted one. If groups do not differ in
        their law, `predict` asks for no groups.
    report_ : TrainingReport
        Training error, bound and rates; with `privacy` the message alone, as all else is of the true groups.

    Notes
    -----
    The score of a record has another last digit alone than in a batch. So scores that differ by rounding are
    one score (`levels`), and a threshold lies midway between two: a record gets the same probability in every
    batch.

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

    estimator: Any = None
    constraint: Notion | None = None
    _: KW_ONLY
    prefit: bool = False
    held_out: float | None = None
    sensitive: Any = None
    combine: Combine = "cross"
    unknown: Literal["refuse", "mixture"] | None = None
    privacy: PrivacyBudget | None = None
    names: Any = None
    edges: Any = None
    ledger: str | None = None
    draws: Literal["record", "row"] = "record"
    costs: Any = None
    backend: str = "highs"
    random_state: Any = None

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
            raise DeclarationError("edges is given without privacy; else every score may be a threshold")
        if self.names is not None and self.privacy is None:
            raise DeclarationError("names is given without privacy; then the groups are those that occur")
        if self.privacy is not None and self.combine != "cross":
            rule = "the crossings that occur are private, so with privacy use 'cross' and names"
            raise DeclarationError(f"combine is {self.combine!r}; {rule}")
        given = self._training(X, y, sensitive_features, sample_weight)
        if given.constraint.promise and not self.prefit and self.held_out is None:
            raise DeclarationError("constraint: confidence needs a score of other records; pass held_out=0.5")
        given = self._fit_estimator(given)
        blind = given.groups is None
        groups = ("all",) * len(given.labels) if given.groups is None else given.groups
        front = FittedScore(self.estimator_, tuple(self.classes_.tolist()))
        score = front.predict(given.features)
        problem: ScorePostprocessing | MulticlassPostprocessing
        if len(self.classes_) > 2:
            names = tuple(map(str, self.classes_))
            of_labels = [names[c] for c in given.labels.tolist()]
            records = (score, groups, of_labels, given.constraint)
            problem = MulticlassPostprocessing.from_predictions(
                *records, classes=names, weights=given.weights, costs=self._costs(given)
            )
        else:
            low, high, place = levels(score, ROUNDING)  # scores that differ by rounding become equal
            problem = ScorePostprocessing(
                scores=(low / 2 + high / 2)[place],
                labels=given.labels,
                groups=groups,
                constraint=given.constraint,
                weights=given.weights,
                privacy=self.privacy,
                names=tuple(self.names or (("all",) if blind and self.privacy is not None else ())),
                costs=self._costs(given),
            )
        options = {} if self.privacy is None else {"edges": self._edges(), "ledger": self.ledger}
        solution = self._solved(problem, backend=self.backend, **options)
        law = solution.decision
        known = None if blind else self._vocabulary(X, sensitive_features, given, law.groups)
        self.policy_: Policy = self._policy(solution, front=front, law=law, groups=known)
        return self

    def _vocabulary(self, X: Any, given: Any, training: Training, names: tuple[str, ...]) -> Vocabulary:
        """The groups that the thresholds know; of private ones only the names are known."""
        unknown = self.unknown or ("refuse" if self.combine == "cross" else "mixture")
        given, columns = self._sensitive(X, given)
        if self.privacy is not None:  # which of them occur is private
            columns = columns or column_names(given)
            return Vocabulary(tuple(columns), tuple((crossing_of(columns, n), 1.0) for n in names), unknown)
        if training.kept is not None:
            given = subset(given, training.kept)
        if np.ndim(given) == 2 and np.shape(given)[1] == 1:
            given = given.iloc[:, 0] if hasattr(given, "iloc") else np.asarray(given)[:, 0]
        return Vocabulary.of(given, training.weights, unknown, columns)

    def _edges(self) -> Any:
        """The public thresholds, a rounding below the numbers: a score that is one of them reaches it."""
        if self.edges is None and not hasattr(self.estimator_, "predict_proba"):
            raise DeclarationError("edges is None; with privacy and no predict_proba, give public thresholds")
        edges = np.arange(1, 20) / 20 if self.edges is None else as_numbers(self.edges, "edges")
        return edges - ROUNDING * np.maximum(1.0, np.abs(edges))

    def _learner(self) -> Any:
        return self.estimator

    def _learns_frames(self) -> bool:
        named = hasattr(self.estimator, "feature_names_in_")
        return self.estimator is not None and (not self.prefit or named)

    def _fit_estimator(self, given: Training) -> Training:
        """Fit on the records that are not held out; gives those that thresholds are fitted on."""
        learnt = given
        if self.held_out is not None:
            fits = not self.prefit and 0 < self.held_out < 1
            require(fits, "held_out", self.held_out, "be in (0, 1), and None with prefit")
            seed = self.random_state if isinstance(self.random_state, Integral) else None
            learnt, given = parted(given, self.held_out, seed)
        X, y, weights = learnt.features, self.classes_[learnt.labels], learnt.weights
        if self.prefit:
            try:
                check_is_fitted(self.estimator)
            except (NotFittedError, TypeError) as error:
                raise DeclarationError(f"prefit is True, but estimator is not fitted: {error}") from None
            self.estimator_ = self.estimator
            known = getattr(self.estimator_, "classes_", self.classes_)
            if len(self.classes_) == 2 and not np.array_equal(known, self.classes_):
                raise DeclarationError(f"estimator has labels {list(known)}; y has {list(self.classes_)}")
        else:
            self.estimator_ = LogisticRegression(max_iter=1000) if self.estimator is None else self.estimator
            self.estimator_ = clone(self.estimator_)
            last = self.estimator_
            while hasattr(last, "steps"):
                last = last.steps[-1][1]
            if weights is not None and not has_fit_parameter(last, "sample_weight"):
                raise DeclarationError(f"estimator is {self.estimator_!r}; its fit takes no sample_weight")
            weighted = {} if weights is None else {weight_name(self.estimator_): weights}
            with config_context(enable_metadata_routing=False):
                self.estimator_.fit(X, y, **weighted)
        return given

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Array:
        """The probabilities of the classes, shape ``(n, 2)`` or ``(n, C)``; groups as in `fit`."""
        return self._law(X, sensitive_features)

    def predict(self, X: Any, *, sensitive_features: Any = None) -> Array:
        """Draw a class for each row; groups as in `fit`."""
        return self._drawn(X, sensitive_features)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """The accuracy of drawn predictions; groups as in `fit`."""
        drawn = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, drawn, sample_weight=sample_weight))
