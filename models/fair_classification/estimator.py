"""The scikit-learn front: fair learning as an estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.fairness import Notion
from forcopt.learning import Hypotheses, Learner
from forcopt.models.fair_classification.decision import SeesGroups
from forcopt.models.fair_classification.problem import FairClassification
from forcopt.privacy import PrivacyBudget
from forcopt.problem.estimator import Combine, GroupedClassifier
from forcopt.problem.policy import Policy


@dataclass(eq=False, repr=False)
class FairClassifier(GroupedClassifier):
    """Learns a fair randomised classifier: `FairClassification` as a scikit-learn estimator.

    Parameters
    ----------
    constraint : Notion, optional
        The fairness notion; None for no constraint. Its fields are parameters of the estimator, too, such as
        ``constraint__tolerance`` in a grid search.
    learner : estimator or Hypotheses, optional
        A scikit-learn classifier that takes ``sample_weight``, or a class of hypotheses; logistic regression
        on standardised features by default. More than two labels need a learner of several classes.
    method : str, optional
        Of `FairClassification`; by default ``column-generation``, with `privacy` ``dp-oracle-learner``.
    options : Mapping[str, Any], optional
        Of the method, such as ``{"accuracy": 1e-4, "time_limit": 60}``.
    sensitive : str, int, sequence of these, or callable, optional
        Where the group of a record is found if ``sensitive_features`` is not given to `fit`: columns of X by
        name (of a frame) or position, which are then no features; or a function of X that returns the groups.
        A table to predict may lack them.
    combine : {"cross", "each", "subgroups"}, default "cross"
        With several sensitive columns, whether the constraint holds over the groups that they form together;
        over the values of each column for itself; or over those of each set of columns, as subgroup fairness
        asks (Kearns et al. 2018). Small groups may be dropped or pooled, see `RateParity`.
    privacy : PrivacyBudget, optional
        Let the policy be private in the groups of the records, see `FairClassification`.
    draws : {"record", "row"}, default "record"
        Whether `predict` draws for each record, or once for all records with the same features; see Notes.
    random_state : int or numpy.random.Generator, optional
        The source of the draws of `predict`. With an int every call repeats its draws, so that calls with one
        record each would all draw the same number: leave it out in production.
    costs : "balanced", mapping or array_like, optional
        Of wrong predictions, in place of 1 each; see `cost_table`. The errors of the report are mean costs.
    keep_solution : bool, default False
        Keep the whole `Solution` as ``solution_``. It holds X, y and the groups, also in a pickle.

    Attributes
    ----------
    classes_ : numpy.ndarray
        The labels. Of two the second is the better treatment; with more a notion holds classwise, see
        `FairClassification`.
    policy_ : Policy
        What to save and to serve. Its `front` is the `RandomizedClassifier`: the classifiers and the
        probability of each. It holds no training records, except as a learner keeps
        them itself (nearest neighbours do), and for the classes `AllFunctions` and `Finite`, which are
        tables of records.
    report_ : TrainingReport
        Training error, bound, violations, and why the method ended; with `privacy` the message alone, as all
        else is of the true groups.
    solution_ : Solution
        Only with ``keep_solution=True``.
    n_features_in_ : int
        The number of columns of X.

    Notes
    -----
    The constraint holds for probabilities. Realised predictions follow them as closely as draws allow:

    - With ``draws="record"`` all records with the same probabilities are sampled systematically, in a random
      order (`systematic_numbers`). Their number in each class is exact up to rounding, and the rates of
      groups concentrate: with n records in a group, a realised rate is off by about ``1 / (2 sqrt(n))`` at
      most.
    - With ``draws="row"`` one number decides for all records with the same features and random_state: the
      same person always gets the same prediction. If few distinct rows make up the data, the realised rates
      may then be off by as much as the probabilities differ from 0 and 1, at worst by 1.

    References
    ----------
    Agarwal et al. (2018): A reductions approach to fair classification.

    Examples
    --------
    >>> import numpy as np
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

    constraint: Notion | None = None
    learner: Any = None
    method: str | None = None
    options: Mapping[str, Any] | None = None
    _: KW_ONLY
    sensitive: Any = None
    combine: Combine = "cross"
    privacy: PrivacyBudget | None = None
    draws: Literal["record", "row"] = "record"
    random_state: Any = None
    costs: Any = None
    keep_solution: bool = False

    # -- fitting -------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Learn from records.

        Parameters
        ----------
        X : array_like
            Features, shape ``(n, d)``.
        y : array_like
            A label for each record, of two or more.
        sensitive_features : array_like, optional
            The group of each record, missing or observed through a channel as `FairClassification` allows; a
            table of several columns is combined by `combine`. Needed, here or by `sensitive`, if the
            constraint looks at groups. A series or frame must have the index of X in the same order.
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
        self._check_front()
        given = self._training(X, y, sensitive_features, sample_weight)
        learner = self.learner
        hypotheses = learner if learner is None or isinstance(learner, Hypotheses) else Learner(learner)
        problem = FairClassification(
            features=given.features,
            labels=given.labels,
            groups=["all"] * len(given.labels) if given.groups is None else given.groups,  # type: ignore[arg-type]
            constraint=given.constraint,
            weights=given.weights,
            hypotheses=hypotheses,
            privacy=self.privacy,
            classes=tuple(map(str, self.classes_)) if len(self.classes_) > 2 else (),
            feature_names=tuple(getattr(self, "feature_names_in_", ())),
            costs=self._costs(given),
        )
        options = dict(self.options or {})
        if not isinstance(options.get("ledger"), str | None):
            rule = "the copy would spend from a ledger of its own; name the file of the ledger"
            raise DeclarationError(f"options: scikit-learn copies an estimator, and {rule}")
        solution = self._solved(problem, self.method, **options)
        if isinstance(solution.decision, SeesGroups):
            rule = "which predict is not given here; solve a FairClassification by it"
            raise DeclarationError(
                f"method is {self.method!r}, whose predictions need the group of each record, {rule}"
            )
        self.policy_: Policy = self._policy(solution, front=solution.decision)
        if self.keep_solution:
            self.solution_ = solution
        elif hasattr(self, "solution_"):
            del self.solution_
        return self

    def _learner(self) -> Any:
        return self.learner.estimator if isinstance(self.learner, Learner) else self.learner

    def _learns_frames(self) -> bool:
        return self.learner is not None and not isinstance(self._learner(), Hypotheses)

    def _takes_several(self) -> bool:
        learner = self._learner()
        if isinstance(learner, Hypotheses):
            return type(learner).class_oracle is not Hypotheses.class_oracle
        return super()._takes_several()

    # -- predicting ----------------------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> Array:
        """The probabilities of the classes, shape ``(n, 2)`` or ``(n, C)``."""
        return self._law(X)

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
        return self._drawn(X)
