"""A scikit-learn transformer: records as they would be in one fixed group, for learned rankers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from sklearn.base import BaseEstimator, TransformerMixin

from forcopt.causal.fitted import FittedCausalModel
from forcopt.causal.model import CausalModel


class CounterfactualTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Estimate a causal model on the training records; move any records to the baseline group.

    Parameters
    ----------
    model : CausalModel
        The graph.
    baseline : Mapping[str, Any]
        The group to which all are moved.
    resolving : Mapping[str, Sequence[str]] or Sequence[str], default ()
        The resolving mediators.

    Attributes
    ----------
    fitted_ : FittedCausalModel
        The estimated equations.

    Notes
    -----
    A ranker that is trained on moved records but sees unmoved ones is not fair: the guarantee of the paper's
    Proposition 2 needs both.

    References
    ----------
    Yang, Loftus, Stoyanovich (FORC 2021), section 2.3.

    Examples
    --------
    >>> import pandas as pd
    >>> from forcopt.causal import CausalModel, CounterfactualTransformer
    >>> records = pd.DataFrame({"G": list("aabb"), "X": [1.0, 3, 5, 7], "Y": [2.0, 4, 5, 9]})
    >>> move = CounterfactualTransformer(CausalModel([("G", "X"), ("X", "Y")], ["G"], "Y"), {"G": "a"})
    >>> move.fit_transform(records)["X"].round(6).tolist()
    [1.0, 3.0, 1.0, 3.0]
    """

    fitted_: FittedCausalModel

    def __init__(
        self,
        model: CausalModel,
        baseline: Mapping[str, Any],
        resolving: Mapping[str, Sequence[str]] | Sequence[str] = (),
    ) -> None:
        self.model, self.baseline, self.resolving = model, baseline, resolving

    def fit(self, X: Any, y: Any = None) -> Self:
        """Estimate the equations; `y`, if given, is the outcome, which else is a column of `X`."""
        self.fitted_ = self.model.fit(X if y is None else X.assign(**{self.model.outcome: y}))
        return self

    def transform(self, X: Any) -> Any:
        """The records in the baseline group; without an outcome column they are moved without one."""
        return self.fitted_.transform(X, self.baseline, self.resolving)
