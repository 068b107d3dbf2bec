"""A learned ranker: ListNet with linear scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import scipy

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError


@dataclass
class ListNet:
    """Linear scores that rank one list of records, by the cross entropy of the first place.

    Each record's probability of the first place is the softmax of the relevances, and that of the scores
    ``X @ w``; the loss is the cross entropy of the two. It is convex in w. The scores need no intercept: the
    same number for all changes no ranking.

    Parameters
    ----------
    penalty : float, default 0.0
        Of ``|w|^2 / 2``. Without it the optimum may be infinite, where a direction separates the relevant.
    epochs : int, optional
        Stop after as many steps of gradient descent from ``w = 0``, as RankLib does; by default minimise.
    rate : float, default 1e-6
        The length of these steps.

    Attributes
    ----------
    coef_ : ndarray
        w, shape ``(d,)``, after `fit`.

    Notes
    -----
    Relevances 500, 499, ... give the first place to the best record with probability .63 and to the best five
    with .99: the optimum then depends on these few. `rank_relevance` makes such relevances.

    References
    ----------
    Cao, Qin, Liu, Tsai, Li (2007), Learning to rank, section 4.2; used by Yang, Loftus, Stoyanovich (FORC
    2021), section 4.1.

    Examples
    --------
    >>> ranker = ListNet(penalty=0.1).fit([[0.0, 1], [1, 0], [2, 1]], [1.0, 2, 3])
    >>> ranker.predict([[0.0, 0], [1, 0]]).argsort().tolist()
    [0, 1]
    """

    penalty: float = 0.0
    epochs: int | None = None
    rate: float = 1e-6
    coef_: Array = field(init=False, repr=False, compare=False)

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from one list: features of shape ``(n, d)`` and relevances of shape ``(n,)``."""
        x, goal = as_numbers(X, "X"), as_numbers(y, "y")
        if x.ndim != 2 or goal.shape != x.shape[:1] or not goal.size:
            raise DeclarationError(f"X has shape {x.shape} and y {goal.shape}; they must be (n, d) and (n,)")
        if not (self.penalty >= 0 and self.rate > 0 and (self.epochs is None or self.epochs >= 1)):
            raise DeclarationError(
                f"penalty is {self.penalty!r}, rate {self.rate!r} and epochs {self.epochs!r}; they must be "
                "at least 0, above 0 and at least 1"
            )
        goal = scipy.special.softmax(goal)

        def loss(w: Array) -> tuple[float, Array]:
            scores = x @ w
            value = scipy.special.logsumexp(scores) - goal @ scores + self.penalty * w @ w / 2
            return float(value), x.T @ (scipy.special.softmax(scores) - goal) + self.penalty * w

        self.coef_ = np.zeros(x.shape[1])
        if self.epochs is None:
            self.coef_ = scipy.optimize.minimize(loss, self.coef_, jac=True, method="L-BFGS-B").x
        else:
            for _ in range(self.epochs):
                self.coef_ = self.coef_ - self.rate * loss(self.coef_)[1]
        return self

    def predict(self, X: Any) -> Array:
        """The scores of records; the larger is the better."""
        return np.asarray(as_numbers(X, "X") @ self.coef_)


def rank_relevance(scores: Any, top: int) -> Array:
    """Relevances ``top, top - 1, ..., 1`` of the records with the largest scores, and 0 of the others.

    Examples
    --------
    >>> rank_relevance([0.2, 0.9, 0.5], top=2).tolist()
    [0, 2, 1]
    """
    given = as_numbers(scores, "scores")
    place = np.empty(len(given), dtype=np.int64)
    place[np.argsort(-given, kind="stable")] = np.arange(len(given))
    return np.maximum(top - place, 0)
