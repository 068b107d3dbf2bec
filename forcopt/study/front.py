"""Fair estimators at several limits: a scorer for searches, and the front of error and gap with its tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.fairness import ERROR, GroupRates, GroupReport, Notion, RateParity
from forcopt.notebook import new_figure, write_figure
from forcopt.problem.solution import FEASIBILITY_TOLERANCE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def positive_law(estimator: Any, X: Any, groups: Any = None) -> Array:
    """The probability of the second class by the law of a fitted estimator's decision, shape ``(n,)``.

    A randomised policy of this library gives it as ``predict_proba``; other classifiers predict.
    """
    if not hasattr(estimator, "report_"):
        return np.asarray(np.asarray(estimator.predict(X)) == estimator.classes_[1], dtype=float)
    takes = "sensitive_features" in signature(estimator.predict_proba).parameters
    return np.asarray(estimator.predict_proba(X, **({"sensitive_features": groups} if takes else {})))[:, 1]


@dataclass(frozen=True)
class FairScorer:
    """A scorer of scikit-learn that sees the constraint, for `GridSearchCV` and `cross_val_score`.

    The score is minus the error rate if the notion holds on the scored records, else -1 less its largest
    violation: an estimator that keeps the notion is better than each that breaks it. The law of a randomised
    policy is scored, not a draw.

    Attributes
    ----------
    constraint : Notion
        The fairness notion over groups.
    sensitive_features : Any
        A series with the group of each record, found by the index of the scored table; or the name or
        position of a column of that table.
    price : float, optional
        The score then is minus the error rate minus `price` times the violation.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.model_selection import GridSearchCV
    >>> from forcopt.fairness import DemographicParity
    >>> from forcopt.models.fair_classification import FairClassifier, Thresholds
    >>> rng = np.random.default_rng(0)
    >>> sex = pd.Series(rng.choice(["f", "m"], 400))
    >>> X = pd.DataFrame({"x": rng.normal(size=400) + (sex == "m")})
    >>> y = X["x"] > rng.normal(size=400)
    >>> scorer = FairScorer(DemographicParity(0.15), sex)
    >>> clf = FairClassifier(DemographicParity(), Thresholds())
    >>> found = GridSearchCV(clf, {"constraint__tolerance": [0.02, 0.1, 0.5]}, scoring=scorer, cv=3)
    >>> found.fit(X, y, sensitive_features=sex).best_params_
    {'constraint__tolerance': 0.02}
    """

    constraint: Notion
    sensitive_features: Any
    price: float | None = None

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """The score of a fitted estimator on records; more is better."""
        groups = self.sensitive_features
        if hasattr(groups, "loc"):
            groups = groups.loc[X.index]
        else:
            groups = X[groups] if hasattr(X, "columns") else np.asarray(X)[:, groups]
        truth = np.asarray(y) == estimator.classes_[1]
        rates = GroupRates.from_records(positive_law(estimator, X, groups), groups, truth)
        error = float(rates.overall(ERROR))
        broken = max(self.constraint.violation(rates).values(), default=0.0)
        if self.price is not None:
            return -error - self.price * broken
        return -error if broken <= FEASIBILITY_TOLERANCE else -1.0 - broken


@dataclass(frozen=True, eq=False)
class FairFront:
    """Estimators that were fitted at several limits, with error and gap on training and on held-out records.

    Attributes
    ----------
    table : pandas.DataFrame
        A row for each limit: ``limit``, ``error``, ``gap`` and, of the held-out records, ``held-out error``,
        ``held-out gap`` and the ends ``low`` and ``high`` of its interval, which holds for all groups and
        rates of one row together. A gap is the largest difference of a rate of the notion.
    estimators : tuple
        The fitted estimators.
    confidence : float
        Of the intervals.
    """

    table: pd.DataFrame
    estimators: tuple[Any, ...]
    confidence: float

    def certified(self, tolerance: float) -> Any:
        """The estimator of the largest limit whose gap is at most `tolerance` in the population.

        Limits are tested from the smallest on, until a test fails. So the gap of the result exceeds the
        tolerance with at most the probability 1 - `confidence`, however many limits are tested.

        Raises
        ------
        DeclarationError
            If the test of the smallest limit fails.

        References
        ----------
        Maurer, Hothorn and Lehmacher (1995), a fixed sequence of tests; Angelopoulos et al. (2021), Learn
        then test; Thomas et al. (2019), Preventing undesirable behavior of intelligent machines.
        """
        passed = int(np.argmin(np.append(self.table["high"] <= tolerance, False)))
        if not passed:
            raise DeclarationError(
                f"tolerance is {tolerance:g}; the held-out records show a gap of at most "
                f"{self.table['high'][0]:.4f} for the smallest limit: hold out more, or lower the limit"
            )
        return self.estimators[passed - 1]

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw error against gap, on training and on held-out records with the interval of the gap.

        Parameters
        ----------
        path : str or Path, optional
            The file to save the picture to; its ending gives the format.
        """
        figure, table = new_figure(6, 4), self.table
        axes = figure.subplots()
        axes.plot(table["gap"], table["error"], "o-", label="training")
        reach = np.abs(table[["low", "high"]].to_numpy().T - table["held-out gap"].to_numpy())
        axes.errorbar(table["held-out gap"], table["held-out error"], xerr=reach, fmt="s", label="held out")
        axes.set(xlabel="gap", ylabel="error rate")
        axes.legend()
        write_figure(figure, path)
        return figure


def fair_front(
    estimator: Any,
    limits: Sequence[float],
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    held_out: float = 0.3,
    confidence: float = 0.95,
    seed: int = 0,
) -> FairFront:
    """Fit an estimator at several tolerances, and test each on records that it was not fitted on.

    Parameters
    ----------
    estimator : estimator
        Such as `FairClassifier`, with a constraint that has a tolerance.
    limits : sequence of float
        The tolerances; they are tried from the smallest on.
    X, y : array_like
        The records, arrays or frames.
    sensitive_features : array_like
        The group of each record, or a frame of several columns, which are crossed.
    held_out : float, default 0.3
        The share of the records that are held out, stratified by label.
    confidence : float, default 0.95
        Of the intervals.
    seed : int, default 0
        Of the split.

    Returns
    -------
    FairFront
        The fitted estimators with their errors and gaps on both parts of the records.

    Raises
    ------
    DeclarationError
        For an estimator without such a constraint.

    Examples
    --------
    >>> from forcopt.fairness import DemographicParity
    >>> from forcopt.models.fair_classification import FairClassifier, Thresholds
    >>> rng = np.random.default_rng(0)
    >>> sex, x = rng.choice(["f", "m"], 4000), rng.normal(size=(4000, 1))
    >>> x[:, 0] += sex == "m"
    >>> y = x[:, 0] > rng.normal(size=4000)
    >>> clf = FairClassifier(DemographicParity(), Thresholds())
    >>> front = fair_front(clf, [0.0, 0.05, 0.2], x, y, sensitive_features=sex)
    >>> front.table["error"].is_monotonic_decreasing
    True
    >>> front.certified(0.15).constraint
    DemographicParity(tolerance=0.05)
    """
    import pandas as pd
    from sklearn.base import clone
    from sklearn.model_selection import train_test_split

    if not isinstance(getattr(estimator, "constraint", None), RateParity):
        raise DeclarationError("estimator: its constraint must have a tolerance, such as EqualizedOdds")
    metrics = estimator.constraint.rates
    kept, held = train_test_split(np.arange(len(y)), test_size=held_out, random_state=seed, stratify=y)
    rows, fitted = [], []
    for limit in sorted(limits):
        one = clone(estimator).set_params(constraint__tolerance=limit)
        row: dict[str, float] = {"limit": limit}
        for part, title in ((kept, ""), (held, "held-out ")):
            features, labels, groups = (
                column.iloc[part] if hasattr(column, "iloc") else np.asarray(column)[part]
                for column in (X, y, sensitive_features)
            )
            if not title:
                fitted.append(one.fit(features, labels, sensitive_features=groups))
            law, top = positive_law(one, features, groups), one.classes_[1]
            truth = np.asarray(labels) == top
            report = GroupReport.from_predictions(law, groups, truth, metrics=metrics, confidence=confidence)
            gaps = report.summary()
            row[f"{title}error"] = float(np.where(truth, 1.0 - law, law).mean())
            row[f"{title}gap"] = float(gaps["difference"].max())
        low, high = gaps["difference_low"].max(), gaps["difference_high"].max()
        rows.append(row | {"low": float(low), "high": float(high)})
    return FairFront(pd.DataFrame(rows), tuple(fitted), confidence)
