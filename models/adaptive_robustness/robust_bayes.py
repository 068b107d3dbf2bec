"""The robust Bayes classifier of a law with finite support: the declaration and its evaluation."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from itertools import combinations
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from forcopt.arrays import Array, as_numbers, check_entries, check_shape
from forcopt.clock import Deadline
from forcopt.declaration import Numbers
from forcopt.errors import DeclarationError
from forcopt.models.adaptive_robustness import geometry
from forcopt.models.adaptive_robustness.adaptive_radii import (
    adaptive_radii,
    capped,
    check_fraction,
    check_labels,
)
from forcopt.models.adaptive_robustness.geometry import Norm, Pairs, check_points, length, places_of
from forcopt.models.adaptive_robustness.tolerances import MASS, MASS_TOLERANCE
from forcopt.problem import Evaluation, Problem
from forcopt.problem.drawing import Sketch


@dataclass(frozen=True, eq=False)
class Pairing:
    """Masses of conflicting (point, label) pairs matched to each other: a lower bound of the robust loss.

    Attributes
    ----------
    left, right : arrays of points, shape (k,)
        The point with label 0 and the point with label 1.
    amount : array of whole numbers, shape (k,)
    denominator : int
        Amounts count in units of 1 / denominator.
    """

    left: Array
    right: Array
    amount: Array
    denominator: int

    @property
    def value(self) -> Fraction:
        """The mass that is matched, exactly."""
        return Fraction(int(sum(map(int, self.amount))), self.denominator)

    def __repr__(self) -> str:
        return f"<{len(self.amount)} pairs, mass {float(self.value):.6g}>"


@dataclass(frozen=True, eq=False)
class RobustClassifier:
    """The safe (point, label) pairs, and the classifier that they give.

    Attributes
    ----------
    safe : array of bool, shape (n, labels)
        Whether the classifier predicts the label everywhere in the point's ball.
    points : array, shape (n, d)
    radii : array, shape (n,)
    norm : {"l2", "linf"}
    pairing : Pairing, optional
        The dual solution, where the method has one.

    Examples
    --------
    >>> from forcopt.models import RobustBayes
    >>> p = RobustBayes([[0.0], [1.0]], [[0.5, 0], [0, 0.5]], radius=0.4)
    >>> h = p.solve().decision
    >>> h.safe.tolist(), h.predict([[0.3], [0.7]]).tolist()
    ([[True, False], [False, True]], [0, 1])
    """

    safe: Array
    points: Array = field(repr=False)
    radii: Array = field(repr=False)
    norm: Norm = "l2"
    pairing: Pairing | None = None

    def predict(self, X: Any) -> Array:
        """The label of the nearest safe ball (in signed distance), for inputs of shape ``(m, d)``.

        Returns
        -------
        array of int, shape (m,)
            Columns of ``masses``; 0 everywhere if no pair is safe.

        Examples
        --------
        >>> p = RobustBayes([[0.0], [1.0]], [[0.5, 0], [0, 0.5]], radius=0.4)
        >>> p.solve().decision.predict([[0.3], [0.7]]).tolist()
        [0, 1]
        """
        X = check_points(X, "X")
        point, label = np.nonzero(self.safe)
        out = np.zeros(len(X), dtype=np.int64)
        if not len(point):
            return out
        step = max(1, 4_000_000 // (len(point) * X.shape[1]))
        for at in range(0, len(X), step):
            apart = length(X[at : at + step, None] - self.points[point], self.norm)
            # the center of an empty ball may touch another ball, and is its own all the same
            away = np.where(apart == 0, -np.inf, apart - self.radii[point])
            out[at : at + step] = label[away.argmin(axis=1)]
        return out

    def __repr__(self) -> str:
        return f"<{int(self.safe.sum())} of {self.safe.size} pairs of point and label are safe>"


class RobustBayes(Problem):
    """Find the classifier of least robust loss under a law with finite support.

    A point x of label y is lost if some input in the open ball around x is not classified y. Two pairs
    (x, y) and (x', y') with different labels cannot both be safe if their balls meet. So the safe pairs are
    an independent set of the conflict graph, and each independent set gives a classifier.

    Parameters
    ----------
    points : array, shape (n, d)
    masses : array, shape (n, labels)
        The probability of each point with each label; at least 0, with sum 1.
    radius : number, or array of shape (n,)
        Of the balls; one number, or one for each point (such as c times `adaptive_radii`). A ball of radius
        0 is its center.
    norm : {"l2", "linf"}
    domain : "space", or array of shape (m, d)
        Where inputs may be moved to: everywhere, or only to these (and the given) points.

    Raises
    ------
    DeclarationError
        For masses that are negative or do not sum to 1, a negative radius, NaN, shapes that do not fit.

    Notes
    -----
    For two labels the conflict graph is bipartite: the least loss is the weight of a least vertex cover,
    a linear program with whole vertices, and equal to the largest flow. Distances equal to the sum of the
    radii are no conflict, as balls are open (up to a relative 1e-12).

    References
    ----------
    Chowdhury, Urner, Robustness should not be at odds with accuracy, FORC 2022, section 3; Bhagoji,
    Cullina, Mittal, Lower bounds on adversarial robustness from optimal transport, NeurIPS 2019.

    Examples
    --------
    >>> masses = [[.2, .05], [.05, .2], [.2, .05], [.05, .2]]
    >>> p = RobustBayes([[0.0], [1.0], [2.0], [4.0]], masses, radius=0.6)
    >>> s = p.solve()
    >>> round(s.objective, 9), s.decision.predict([[0], [1], [2], [4]]).tolist()
    (0.35, [0, 0, 0, 1])
    """

    family: ClassVar[str] = "robustness"
    default_method: ClassVar[str] = "max-flow"

    points: Annotated[Numbers, AfterValidator(partial(check_points, subject="points"))]
    masses: Numbers
    radius: Numbers
    norm: Norm = "l2"
    domain: Literal["space"] | Numbers = Field(default="space", union_mode="left_to_right")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        (n, d), shape = self.points.shape, self.masses.shape
        if len(shape) != 2 or shape[0] != n or shape[1] < 2:
            raise DeclarationError(f"masses: the shape is {shape}; it must be ({n}, 2 labels or more)")
        check_entries(self.masses, self.masses < 0, "masses", "it must not be negative")
        if abs(self.masses.sum() - 1) > MASS_TOLERANCE * max(1, n):
            raise DeclarationError(f"masses: the sum is {self.masses.sum():.9g}; it must be 1")
        geometry.check_radii(self.radius, n, "radius")
        if not isinstance(self.domain, str) and (self.domain.ndim != 2 or self.domain.shape[1] != d):
            raise DeclarationError(f"domain: the shape is {self.domain.shape}; it must be (m, {d})")
        return self

    @classmethod
    def from_sample(
        cls,
        X: Any,
        y: Any,
        radius: Any = None,
        *,
        fraction: float | None = None,
        cap: float | None = None,
        **fields: Any,
    ) -> Self:
        """Declare the empirical law of a sample.

        Parameters
        ----------
        X : array, shape (n, d)
        y : array, shape (n,)
            Labels 0, 1, ...; or of any type: then columns of `masses` are the sorted labels.
        radius : number or array, shape (n,)
            Of the balls; or give a `fraction`.
        fraction : float
            Balls of this fraction of the adaptive radius.
        cap : float, optional
            The largest adaptive radius; needed if there is one label only.
        **fields
            Of the class, such as ``norm=``.

        Examples
        --------
        >>> p = RobustBayes.from_sample([[0.0], [1.0], [3.0]], [0, 1, 1], fraction=0.5)
        >>> p.radius.tolist(), p.solve().objective
        ([0.5, 0.5, 1.5], 0.0)
        """
        points = check_points(X, "X")
        labels = check_labels(y, len(points))
        if (radius is None) == (fraction is None):
            raise DeclarationError("either radius or fraction must be given, not both")
        if fraction is not None:
            norm = fields.get("norm", "l2")
            radius = check_fraction(fraction) * capped(adaptive_radii(points, labels, norm), cap)
        names = np.unique(labels)
        whole = names.dtype.kind in "biu" or (names.dtype.kind == "f" and (names == np.floor(names)).all())
        numbers = whole and names[0] >= 0 and names[-1] < len(names) + 1
        column = labels.astype(np.int64) if numbers else np.searchsorted(names, labels)
        masses = np.zeros((len(points), max(2, int(column.max()) + 1)))
        masses[np.arange(len(points)), column] = 1 / len(points)
        return cls(points=points, masses=masses, radius=radius, **fields)

    def choose_method(self) -> str:
        """Choose ``max-flow`` for two labels and ``milp`` for more."""
        return "max-flow" if self.labels == 2 else "milp"

    # -- shared by the methods -------------------------------------------------------------------------------

    @property
    def labels(self) -> int:
        """How many labels there are."""
        return int(self.masses.shape[1])

    @cached_property
    def radii(self) -> Array:
        """The radius of each ball, shape ``(n,)``."""
        return np.broadcast_to(self.radius, (len(self.points),)).astype(float)

    @cached_property
    def bayes_labels(self) -> Array:
        """The likeliest label of each point, shape ``(n,)``; coinciding points count together, ties: the
        lowest."""
        place = places_of(self.points)
        total = np.stack([np.bincount(place, mass) for mass in self.masses.T], axis=1)
        return np.asarray((total >= total.max(axis=1, keepdims=True) - MASS).argmax(axis=1)[place])

    @property
    def bayes_risk(self) -> float:
        """The least loss without robustness: a lower bound."""
        kept = self.masses[np.arange(len(self.points)), self.bayes_labels]
        return max(0.0, float(self.masses.sum() - kept.sum()))

    def find_conflicts(self, deadline: Deadline | None = None) -> Array | None:
        """Pairs of (point, label) with positive mass that cannot both be safe; None if the deadline passed.

        Returns
        -------
        array of int, shape (edges, 4)
            Rows ``(i, k, j, l)`` with ``k < l``: label k around point i against label l around point j.
        """
        if "conflicts" in self.__dict__:
            return self.conflicts
        parts = []
        for k, other in combinations(range(self.labels), 2):
            left, right = (np.flatnonzero(self.masses[:, y] > 0) for y in (k, other))
            near = self._meeting(left, right, deadline)
            if near is None:
                return None
            rows = np.empty((len(near[0]), 4), dtype=np.int32)
            rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3] = near[0], k, near[1], other
            parts.append(rows)
        found = np.concatenate(parts)
        self.__dict__["conflicts"] = found
        return found

    @cached_property
    def conflicts(self) -> Array:
        """See `find_conflicts`."""
        found = self.find_conflicts()
        assert found is not None
        return found

    def _meeting(self, left: Array, right: Array, deadline: Deadline | None = None) -> Pairs | None:
        if isinstance(self.domain, str):
            return geometry.meeting_pairs(self.points, self.radii, left, right, self.norm, deadline)
        return geometry.shared_pairs(self.points, self.radii, left, right, self.domain, self.norm)

    def _meeting_safe(self, safe: Array, k: int, other: int) -> Pairs:
        """Pairs of safe balls with two labels that meet; out of the conflicts, once these are found."""
        if "conflicts" in self.__dict__ and not (safe & (self.masses == 0)).any():
            i, first, j, second = self.conflicts.T
            kept = np.flatnonzero(safe[i, first] & safe[j, second])
            kept = kept[(first[kept] == k) & (second[kept] == other)]
            return i[kept], j[kept]
        found = self._meeting(np.flatnonzero(safe[:, k]), np.flatnonzero(safe[:, other]))
        assert found is not None
        return found

    def classifier(self, safe: Any, pairing: Pairing | None = None) -> RobustClassifier:
        """Make a decision of safe pairs, shape ``(n, labels)``."""
        mask = np.asarray(as_numbers(safe, "the decision") > 0.5)
        check_shape(mask, self.masses.shape, "the decision")
        return RobustClassifier(mask, self.points, self.radii, self.norm, pairing)

    def check_pairing(self, pairing: Pairing) -> Fraction:
        """Check a dual solution in exact arithmetic.

        Returns
        -------
        Fraction
            Its value: no classifier has a smaller robust loss.

        Raises
        ------
        DeclarationError
            If two matched pairs do not conflict, or a pair is matched to more than its mass.
        """
        i, j = pairing.left, pairing.right
        pairs = set(zip(self.conflicts[:, 0].tolist(), self.conflicts[:, 2].tolist(), strict=True))
        used: Counter[tuple[int, int]] = Counter()
        for a, b, amount in zip(i.tolist(), j.tolist(), map(int, pairing.amount), strict=True):
            if amount < 0 or (a, b) not in pairs:
                raise DeclarationError(f"the pairing matches points {a} and {b}, whose balls do not meet")
            used.update({(a, 0): amount, (b, 1): amount})
        for (point, label), amount in used.items():
            # masses are read as the nearest fraction with the pairing's denominator
            mass = Fraction(float(self.masses[point, label]))
            if Fraction(amount, pairing.denominator) - mass > Fraction(1, 10**15):
                raise DeclarationError(f"the pairing uses more than the mass of point {point}, label {label}")
        return pairing.value

    # -- judging ---------------------------------------------------------------------------------------------

    def _sketch(self, decision: Any, evaluation: Evaluation) -> Any:
        bayes = evaluation.metrics["Bayes risk"]
        title = f"The robust risk is {evaluation.objective:.3g}, the Bayes risk {bayes:.3g}"
        safe = np.asarray(decision.safe, dtype=float)
        labels = [f"safe with label {c}" for c in range(safe.shape[1])]
        return Sketch(title, safe, [np.array2string(x, precision=3) for x in decision.points], labels)

    def evaluate(self, decision: RobustClassifier | Any) -> Evaluation:
        """Evaluate safe pairs by geometry.

        Parameters
        ----------
        decision : RobustClassifier, or array of bool, shape (n, labels)

        Returns
        -------
        Evaluation
            The robust loss; if two safe balls of different labels meet, the worst pair and the share of the
            sum of its radii by which its balls overlap (1 for one center); as metrics the Bayes risk, the
            length of that overlap, and the mass on which the classifier predicts the likeliest label.
        """
        safe = self.classifier(decision.safe if isinstance(decision, RobustClassifier) else decision).safe
        worst, overlap, name = 0.0, 0.0, ""
        for k, other in combinations(range(self.labels), 2):
            i, j = self._meeting_safe(safe, k, other)
            apart = length(self.points[i] - self.points[j], self.norm)
            reach = self.radii[i] + self.radii[j]
            share = np.where(reach > 0, 1 - apart / np.where(reach > 0, reach, 1), 1.0)
            if share.max(initial=0.0) > worst:
                at = int(share.argmax())
                worst, overlap = float(share[at]), float(reach[at] - apart[at])
                name = f"the balls of points {i[at]} (label {k}) and {j[at]} (label {other}) meet"
        agrees = self.masses.sum(axis=1) @ safe[np.arange(len(self.points)), self.bayes_labels]
        return Evaluation(
            objective=float(self.masses[~safe].sum()),
            violations={name: worst} if name else {},
            metrics={"Bayes risk": self.bayes_risk, "overlap": overlap, "agreement": float(agrees)},
        )
