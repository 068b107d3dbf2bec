"""The margin rate: how much mass is near the border of the Bayes classifier."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError, check_choice
from forcopt.models.adaptive_robustness.classifiers import NearestNeighbour
from forcopt.models.adaptive_robustness.neighbour_radius import border, constancy_radii
from forcopt.models.adaptive_robustness.robust_bayes import RobustBayes
from forcopt.models.adaptive_robustness.tolerances import SAME_RADIUS, TIED


@dataclass(frozen=True, eq=False)
class MarginRate:
    """The margin rate Phi of a law: the mass whose radius of constancy is below r.

    Attributes
    ----------
    radii : array, shape (n,)
        The radii of constancy of distinct points; infinite if there is one label only.
    masses : array, shape (n,)
    points : array, shape (n, d)
    """

    radii: Array
    masses: Array
    points: Array = field(repr=False)

    def __call__(self, r: float) -> float:
        """Phi(r), the mass of points whose open ball of radius r meets another label."""
        radius = float(as_numbers(r, "r"))
        if radius < 0:
            raise DeclarationError(f"r is {radius:g}; it must be at least 0")
        return float(self.masses[self.radii < radius * (1 - SAME_RADIUS)].sum())

    def inverse(self, eps: float) -> float:
        """The largest r with ``Phi(r) <= eps``; infinite if all r are."""
        if not float(as_numbers(eps, "eps")) >= 0:
            raise DeclarationError(f"eps is {eps!r}; it must be at least 0")
        order = np.argsort(self.radii)
        above = np.cumsum(self.masses[order]) > eps + TIED
        return float(self.radii[order][int(np.argmax(above))]) if above.any() else np.inf


def margin_rate(
    points: Any,
    masses: Any,
    *,
    ties: Literal["raise", "drop"] = "raise",
    method: Literal["cuts", "voronoi"] | None = None,
    time_limit: float | None = None,
) -> MarginRate:
    """The margin rate of a law with finite support, in the Euclidean norm.

    Parameters
    ----------
    points : array, shape (n, d)
    masses : array, shape (n, labels)
    ties : {"raise", "drop"}
        The treatment of a point whose likeliest label is not unique: the margin rate is not defined there.
        ``"drop"`` leaves it out of the atoms of the Bayes classifier; it then counts with radius 0.
    method : {"cuts", "voronoi"}, optional
        Voronoi edges for many points of the plane by default, else cuts; see `RobustnessRadius`.
    time_limit : float, optional
        Then radii of constancy may be lower bounds, and Phi an upper one.

    Returns
    -------
    MarginRate
        Call it with r; ``inverse(eps)`` is the largest r whose rate is at most eps.

    References
    ----------
    Chowdhury, Urner, FORC 2022, Definition 4.

    Examples
    --------
    >>> phi = margin_rate([[0.0], [1.0]], [[0.5, 0], [0, 0.5]])
    >>> phi(0.5), phi(0.51), round(phi.inverse(0.1), 9)
    (0.0, 1.0, 0.5)
    """
    check_choice("ties", ties, "raise", "drop")
    check_choice("method", method, "cuts", "voronoi", None)
    law = RobustBayes(points=points, masses=masses, radius=np.zeros(()))
    deadline = Deadline(time_limit)
    X, place = np.unique(law.points, axis=0, return_inverse=True)
    total = np.zeros((len(X), law.labels))
    np.add.at(total, place.reshape(-1), law.masses)
    mass = total.sum(axis=1)
    X, total, mass = X[mass > 0], total[mass > 0], mass[mass > 0]
    top = np.sort(total, axis=1)
    tied = top[:, -1] - top[:, -2] <= TIED * top[:, -1]
    if tied.any() and ties != "drop":
        at = X[int(np.argmax(tied))].tolist()
        raise DeclarationError(
            f"masses: the labels of point {at} are equally likely; ties='drop' leaves it out"
        )
    label = total.argmax(axis=1)
    radii = np.zeros(len(X))
    if (~tied).any():
        radii[~tied] = _radii(X[~tied], label[~tied], method, deadline)
    return MarginRate(radii, mass, X)


def _radii(X: Array, label: Array, method: str | None, deadline: Deadline) -> Array:
    if (label == label[0]).all():
        return np.full(len(X), np.inf)
    nn = NearestNeighbour(X, label)
    if method == "voronoi" or (method is None and X.shape[1] == 2 and len(X) > 200):
        try:
            return border(nn).nearest(X)[1]
        except DeclarationError:
            if method == "voronoi":
                raise
    return constancy_radii(nn, X, label, deadline=deadline)
