"""The scikit-learn front: fair thresholds on the scores of any classifier."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from scipy.sparse import csr_array, hstack, issparse
from sklearn import config_context
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError
from forcopt.fairness import Notion
from forcopt.fairness.records import read_groups
from forcopt.learning.thresholds import levels
from forcopt.learning.tolerances import ROUNDING
from forcopt.models.fair_postprocessing.decision import RandomizedRemix, RandomizedThresholds
from forcopt.models.fair_postprocessing.multiclass import MulticlassPostprocessing
from forcopt.models.fair_postprocessing.scores import ScorePostprocessing
from forcopt.privacy import PrivacyBudget
from forcopt.problem.estimator import (
    UNCONSTRAINED,
    GroupedClassifier,
    Training,
    column_names,
    combined,
    crossing_title,
    crossings,
    draw,
    parted,
    subset,
)


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
    combine : {"cross", "each"}, default "cross"
        The constraint for several sensitive columns, see `FairClassifier`. Thresholds differ by the groups
        that the columns form together. With ``"each"`` a group of known values that did not occur in training
        is treated as the mixture of those that share the most values with it.
    privacy : PrivacyBudget, optional
        Let the thresholds be private in the groups of the records, such as ``PrivacyBudget(epsilon=1.0)``;
        `ScorePostprocessing` solved by ``dp-thresholds``. Then there are no sample weights, `names` are
        required, and several columns are crossed.
    names : sequence of str, optional
        With `privacy`, the names of all groups that may occur, of crossed columns such as ``sex=f & race=u``.
    edges : array_like, optional
        With `privacy`, the public thresholds to choose among; 0.05, 0.1, ..., 0.95 by default, for a
        classifier with ``predict_proba``.
    draws : {"record", "row"}, default "record"
        Whether `predict` draws for each record, or once for all with the same group and features; see
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

    def __init__(
        self,
        estimator: Any = None,
        constraint: Notion | None = None,
        *,
        prefit: bool = False,
        held_out: float | None = None,
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
        self.held_out = held_out
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
        if self.names is not None and self.privacy is None:
            raise DeclarationError("names is given without privacy; then the groups are those that occur")
        if self.privacy is not None and self.combine == "each":
            raise DeclarationError(
                "combine is 'each'; the crossings that occur are private, so with privacy use 'cross' and "
                "names"
            )
        given = self._training(X, y, sensitive_features, sample_weight)
        if given.constraint.promise and not self.prefit and self.held_out is None:
            raise DeclarationError(
                "constraint: its confidence holds for a score of other records; pass held_out=0.5, or prefit"
            )
        self._learn_crossings(X, sensitive_features, given.kept, given.weights)
        given = self._fit_estimator(given)
        self._blind = given.groups is None
        groups = ("all",) * len(given.labels) if given.groups is None else given.groups
        score = self._score(given.features)
        problem: ScorePostprocessing | MulticlassPostprocessing
        if len(self.classes_) > 2:
            names = tuple(map(str, self.classes_))
            of_labels = [names[c] for c in given.labels.tolist()]
            problem = MulticlassPostprocessing.from_predictions(
                score, groups, of_labels, given.constraint, classes=names, weights=given.weights
            )
        else:
            problem = ScorePostprocessing(
                scores=_levelled(score),
                labels=given.labels,
                groups=groups,
                constraint=given.constraint,
                weights=given.weights,
                privacy=self.privacy,
                names=tuple(self.names or (("all",) if self._blind and self.privacy is not None else ())),
            )
        options = {} if self.privacy is None else {"edges": self._edges()}
        solution = self._solved(problem, backend=self.backend, **options)
        self.policy_: RandomizedThresholds | RandomizedRemix = solution.decision
        return self

    def _edges(self) -> Any:
        """The public thresholds, a rounding below the numbers: a score that is one of them reaches it."""
        if self.edges is None and not hasattr(self.estimator_, "predict_proba"):
            raise DeclarationError(
                "edges is None; with privacy and an estimator without predict_proba, give public thresholds"
            )
        edges = np.arange(1, 20) / 20 if self.edges is None else as_numbers(self.edges, "edges")
        return edges - ROUNDING * np.maximum(1.0, np.abs(edges))

    def _learner(self) -> Any:
        return self.estimator

    def _fit_estimator(self, given: Training) -> Training:
        """Fit on the records that are not held out; gives those that thresholds are fitted on."""
        learnt = given
        if self.held_out is not None:
            if self.prefit or not 0 < self.held_out < 1:
                raise DeclarationError(
                    f"held_out is {self.held_out!r}; it must be between 0 and 1, and None with prefit"
                )
            seed = self.random_state if isinstance(self.random_state, Integral) else None
            learnt, given = parted(given, self.held_out, seed)
        X, y, weights = learnt.features, self.classes_[learnt.labels], learnt.weights
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
        return given

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

    def _scored(self, X: Any, sensitive_features: Any) -> tuple[Any, Array, Array, Array]:
        """Features, scores, the number of each group, and the probability of the second class, or of each."""
        check_is_fitted(self)
        given = X
        X = self._table(X)
        score = self._score(X)
        if self._blind:
            groups: Any = ["all"] * len(score)
        else:
            groups, names = self._sensitive(given, sensitive_features)
            if groups is None:
                raise DeclarationError("sensitive_features is None; the thresholds differ by group")
            if self._crossings:
                return self._scored_crossings(X, score, groups)
            if np.ndim(groups) == 2:
                groups, _ = combined(groups, UNCONSTRAINED, self.combine, names)
        codes, _ = read_groups(groups, self.policy_.groups)
        return X, score, codes, self.policy_.probability(score, groups)

    def _learn_crossings(self, X: Any, given: Any, kept: Array | None, weights: Array | None) -> None:
        """Remember the crossings of several sensitive columns and how much each weighs."""
        self._crossings: dict[tuple[str | None, ...], float] = {}
        given, names = self._sensitive(X, given)
        if given is None or np.ndim(given) != 2 or np.shape(given)[1] < 2:
            return
        self._columns = names or column_names(given)
        rows = crossings(given if kept is None else subset(given, kept))
        for row, weight in zip(rows, np.ones(len(rows)) if weights is None else weights, strict=True):
            self._crossings[row] = self._crossings.get(row, 0.0) + float(weight)

    def _scored_crossings(self, X: Any, score: Array, given: Any) -> tuple[Any, Array, Array, Array]:
        """As `_scored`, for several sensitive columns; see `combine` for a crossing that training lacks."""
        columns, unnamed = [], self._columns == column_names(np.empty((0, len(self._columns))))
        asked_for = column_names(given) if np.ndim(given) == 2 else ["one column"]
        if len(asked_for) != len(self._columns) or (
            hasattr(given, "columns") and not unnamed and set(asked_for) != set(self._columns)
        ):
            raise DeclarationError(
                f"sensitive_features has {', '.join(asked_for)}; the thresholds know "
                f"{', '.join(self._columns)}"
            )
        if hasattr(given, "columns") and not unnamed:
            given = given.iloc[:, [asked_for.index(name) for name in self._columns]]
        for name, known, values in zip(
            self._columns,
            zip(*self._crossings, strict=True),
            zip(*crossings(given), strict=True),
            strict=True,
        ):
            spelt = tuple(dict.fromkeys(v for v in known if v is not None))
            asked = list(dict.fromkeys(v for v in values if v is not None))
            try:
                codes: list[int] = read_groups(asked, spelt)[0].tolist() if asked else []
            except DeclarationError as error:
                raise DeclarationError(f"sensitive_features: column {name!r}: {error}") from None
            place: dict[str | None, str | None] = {v: spelt[c] for v, c in zip(asked, codes, strict=True)}
            columns.append([place.get(v) for v in values])
        rows = list(zip(*columns, strict=True))
        number = {row: i for i, row in enumerate(dict.fromkeys(rows))}
        which = np.array([number[row] for row in rows])
        groups = self.policy_.groups
        places = np.full(len(rows), len(groups))
        chance: Any = None
        for row, i in number.items():
            members = which == i
            title = crossing_title(self._columns, row)
            if title not in groups and self.combine == "cross":
                raise DeclarationError(f"groups holds {title!r}; the groups are {', '.join(groups)}")
            laws = {row: 1.0} if title in groups else self._nearest(row)
            found: Any = sum(
                share
                * self.policy_.probability(
                    score[members], [crossing_title(self._columns, law)] * sum(members)
                )
                for law, share in laws.items()
            )
            chance = np.zeros((len(rows), *found.shape[1:])) if chance is None else chance
            chance[members] = found
            places[members] = groups.index(title) if title in groups else len(groups)
        return X, score, places, chance

    def _nearest(self, row: tuple[str | None, ...]) -> dict[tuple[str | None, ...], float]:
        """The crossings of training that share the most values with this one, and their shares."""
        shared = {other: sum(a == b for a, b in zip(row, other, strict=True)) for other in self._crossings}
        near = {other: self._crossings[other] for other, k in shared.items() if k == max(shared.values())}
        return {other: mass / sum(near.values()) for other, mass in near.items()}

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Array:
        """The probabilities of the classes, shape ``(n, 2)`` or ``(n, C)``; groups as in `fit`."""
        chance = self._scored(X, sensitive_features)[3]
        return chance if chance.ndim == 2 else np.column_stack([1.0 - chance, chance])

    def predict(self, X: Any, *, sensitive_features: Any = None) -> Array:
        """Draw a class for each row; groups as in `fit`."""
        X, score, codes, chance = self._scored(X, sensitive_features)
        if self.draws == "row":  # the digits of the score depend on the batch
            rows = hstack([X, csr_array(codes[:, None])]) if issparse(X) else np.column_stack([X, codes])
        else:
            if isinstance(self.policy_, RandomizedRemix):
                score = np.array(list(map(self.policy_.classes.index, score.tolist())))
            rows = np.column_stack([score, codes])
        drawn = draw(chance, rows, self.draws, self.random_state)
        return np.asarray(self.classes_[drawn])

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """The accuracy of drawn predictions; groups as in `fit`."""
        drawn = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, drawn, sample_weight=sample_weight))


def _levelled(scores: Array) -> Array:
    """The scores, where those that differ by rounding are equal."""
    low, high, place = levels(scores, ROUNDING)
    return np.asarray((low / 2 + high / 2)[place])
