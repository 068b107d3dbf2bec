"""The classifiers whose radius of robustness is known exactly."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy
from pydantic import Field, field_validator, model_validator

from forcopt.arrays import Array, check_shape
from forcopt.declaration import Declared, Integers, Name, Numbers
from forcopt.errors import DeclarationError, require
from forcopt.learning.hypotheses import aligned
from forcopt.models.adaptive_robustness.geometry import check_points


class Classifier(Declared):
    """The base of classifiers: a label for each input, and by how much it is preferred.

    Attributes
    ----------
    feature_names : tuple[str, ...], optional
        Of the d features, in order: a frame of inputs is aligned by them.
    """

    methods: ClassVar[tuple[str, ...]] = ()
    """The methods of `RobustnessRadius` that take it."""

    feature_names: tuple[Name, ...] = Field(default=(), kw_only=True)

    @property
    @abstractmethod
    def features(self) -> int:
        """The dimension d of inputs."""

    @abstractmethod
    def predict(self, X: Any) -> Array:
        """The label of each input, shape ``(m, d)`` to ``(m,)``."""

    @abstractmethod
    def margin(self, X: Any, label: int) -> Array:
        """By how much the label is preferred to the others: positive in its region, 0 on the border."""

    def read(self, X: Any, subject: str = "X") -> Array:
        """Check inputs, shape ``(m, d)``; an error calls them `subject`."""
        values = check_points(aligned(X, self.feature_names), subject)
        if values.shape[1] != self.features:
            raise DeclarationError(f"{subject} has {values.shape[1]} features, not {self.features}")
        return values


class Halfspace(Classifier):
    """Label 1 where ``w x + b >= 0`` and 0 elsewhere.

    Parameters
    ----------
    w : array, shape (d,)
    b : float

    Examples
    --------
    >>> Halfspace([0.0, 1.0], -1.0).predict([[5.0, 1.0], [5.0, 0.9]]).tolist()
    [1, 0]
    """

    methods: ClassVar[tuple[str, ...]] = ("closed-form", "draws")

    w: Numbers
    b: float = Field(allow_inf_nan=False)

    @field_validator("w")
    @classmethod
    def _is_vector(cls, w: Array) -> Array:
        require(w.ndim == 1 and len(w), "the shape", w.shape, "be (d,)")
        return w

    @property
    def features(self) -> int:
        """The dimension d of inputs."""
        return len(self.w)

    def scores(self, X: Any) -> Array:
        """``w x + b`` of each input."""
        return np.asarray(self.read(X) @ self.w + self.b)

    def predict(self, X: Any) -> Array:
        """1 where the score is at least 0, else 0."""
        return (self.scores(X) >= 0).astype(np.int64)

    def margin(self, X: Any, label: int) -> Array:
        """The score for label 1, and its negative for label 0."""
        return self.scores(X) * (1 if label == 1 else -1)

    def __repr__(self) -> str:
        names = self.feature_names or [f"x{j}" for j in range(len(self.w))]
        terms = [f"{v:.6g} {name}" for name, v in zip(names, self.w, strict=True) if v]
        return f"{' + '.join(terms) or '0'} + {self.b:.6g} >= 0"


class NearestNeighbour(Classifier):
    """The label of the nearest point, in the Euclidean norm.

    Parameters
    ----------
    points : array, shape (n, d)
    labels : array of int, shape (n,)

    Examples
    --------
    >>> NearestNeighbour([[0.0], [1.0], [2.0]], [0, 0, 1]).predict([[1.4], [1.6]]).tolist()
    [0, 1]
    """

    methods: ClassVar[tuple[str, ...]] = ("cuts", "draws")

    points: Numbers
    labels: Integers

    @model_validator(mode="after")
    def _fits(self) -> Self:
        check_points(self.points, "points")
        check_shape(self.labels, (len(self.points),), "labels")
        return self

    @property
    def features(self) -> int:
        """The dimension d of inputs."""
        return int(self.points.shape[1])

    @cached_property
    def _tree(self) -> scipy.spatial.KDTree:
        return scipy.spatial.KDTree(self.points)

    @cached_property
    def _trees(self) -> dict[tuple[int, bool], tuple[scipy.spatial.KDTree, Array]]:
        return {}

    def tree(self, label: int, same: bool) -> tuple[scipy.spatial.KDTree, Array]:
        """A KD-tree of the points with the label (or of all others), and their numbers."""
        if (label, same) not in self._trees:
            which = np.flatnonzero((self.labels == label) == same)
            self._trees[label, same] = scipy.spatial.KDTree(self.points[which]), which
        return self._trees[label, same]

    def predict(self, X: Any) -> Array:
        """The label of the nearest point."""
        return np.asarray(self.labels[self._tree.query(self.read(X))[1]])

    def margin(self, X: Any, label: int) -> Array:
        """How much farther the nearest point with another label is than the nearest with this one."""
        values = self.read(X)
        trees = (self.tree(label, same)[0] for same in (False, True))
        far = [tree.query(values)[0] if tree.n else np.inf for tree in trees]
        with np.errstate(invalid="ignore"):
            return np.broadcast_to(far[0] - far[1], (len(values),))


class ReLUNetwork(Classifier):
    """Label 1 where the output of a network of rectified linear units is positive, and 0 elsewhere.

    Parameters
    ----------
    weights : matrices, shapes (inputs, units)
        Of the layers in order; the last has one output.
    biases : vectors, shapes (units,)

    Examples
    --------
    >>> net = ReLUNetwork([[[1.0, -1.0]], [[1.0], [1.0]]], [[0.0, 0.0], [-1.0]])  # |x| - 1
    >>> net.predict([[0.5], [-2.0]]).tolist()
    [0, 1]
    """

    methods: ClassVar[tuple[str, ...]] = ("milp", "misocp", "gradient", "draws")

    weights: tuple[Numbers, ...]
    biases: tuple[Numbers, ...]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not self.weights or len(self.weights) != len(self.biases):
            raise DeclarationError(f"{len(self.weights)} weights need as many biases, not {len(self.biases)}")
        for k, (matrix, shift) in enumerate(zip(self.weights, self.biases, strict=True)):
            inputs = self.weights[k - 1].shape[1] if k else (matrix.shape[0] if matrix.ndim == 2 else 0)
            if matrix.ndim != 2 or 0 in matrix.shape or matrix.shape[0] != inputs:
                raise DeclarationError(f"weights.{k}: the shape is {matrix.shape}; it must be ({inputs}, k)")
            check_shape(shift, matrix.shape[1:], f"biases.{k}")
        if self.weights[-1].shape[1] != 1:
            raise DeclarationError(f"the network has {self.weights[-1].shape[1]} outputs; it must have one")
        return self

    @classmethod
    def from_sklearn(cls, model: Any) -> Self:
        """Read a fitted ``sklearn.neural_network.MLPClassifier`` with relu and two classes.

        Label 1 is the second of its ``classes_``.

        Raises
        ------
        DeclarationError
            For another activation, or more than two classes.
        """
        if not hasattr(model, "coefs_"):
            raise DeclarationError(f"a {type(model).__name__} has no coefs_: fit an MLPClassifier")
        if model.activation != "relu" and len(model.coefs_) > 1:
            raise DeclarationError(f"the network's activation is {model.activation!r}; it must be 'relu'")
        if getattr(model, "out_activation_", "") != "logistic" or len(model.classes_) != 2:
            classes = len(getattr(model, "classes_", ()))
            raise DeclarationError(f"the network has {classes} classes; it must have 2")
        return cls(
            weights=tuple(model.coefs_),
            biases=tuple(model.intercepts_),
            feature_names=tuple(getattr(model, "feature_names_in_", ())),
        )

    @property
    def features(self) -> int:
        """The dimension d of inputs."""
        return int(self.weights[0].shape[0])

    def outputs(self, X: Any) -> Array:
        """The output for each input."""
        values = self.read(X)
        for matrix, shift in zip(self.weights[:-1], self.biases[:-1], strict=True):
            values = np.maximum(values @ matrix + shift, 0.0)
        return np.asarray((values @ self.weights[-1] + self.biases[-1])[:, 0])

    def gradients(self, X: Array) -> tuple[Array, Array]:
        """Outputs, shape ``(m,)``, and their gradients by the input, shape ``(m, d)``."""
        values, active = X, []
        for matrix, shift in zip(self.weights[:-1], self.biases[:-1], strict=True):
            values = values @ matrix + shift
            active.append(values > 0)
            values = np.maximum(values, 0.0)
        outputs = (values @ self.weights[-1] + self.biases[-1])[:, 0]
        back = np.broadcast_to(self.weights[-1][:, 0], values.shape)
        for matrix, on in zip(self.weights[-2::-1], active[::-1], strict=True):
            back = (back * on) @ matrix.T
        return outputs, np.asarray(back)

    def predict(self, X: Any) -> Array:
        """1 where the output is positive, else 0."""
        return (self.outputs(X) > 0).astype(np.int64)

    def margin(self, X: Any, label: int) -> Array:
        """The output for label 1, and its negative for label 0."""
        return self.outputs(X) * (1 if label == 1 else -1)


class Tree(Classifier):
    """A decision tree: at each node, inputs with ``x[feature] <= threshold`` go left.

    Parameters
    ----------
    feature, threshold, left, right, label : arrays, shape (nodes,)
        Node 0 is the root; a leaf has ``left == -1``, and its label counts.
    dimension : int
        The dimension d of inputs.

    Examples
    --------
    >>> tree = Tree([0, 0, 0], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [0, 0, 1], dimension=1)
    >>> tree.predict([[0.5], [0.6]]).tolist()
    [0, 1]
    """

    methods: ClassVar[tuple[str, ...]] = ("closed-form", "draws")

    feature: Integers
    threshold: Numbers
    left: Integers
    right: Integers
    label: Integers
    dimension: int

    @model_validator(mode="after")
    def _fits(self) -> Self:
        shape = self.feature.shape
        for name in ("threshold", "left", "right", "label"):
            if len(shape) != 1 or not shape[0] or getattr(self, name).shape != shape:
                raise DeclarationError(f"{name} has shape {getattr(self, name).shape}; it must be {shape}")
        split = self.left >= 0
        for name in ("left", "right"):
            child = getattr(self, name)[split]
            if (child <= np.flatnonzero(split)).any() or (child >= len(split)).any():
                raise DeclarationError(f"{name}: children must come after their node, and exist")
        tested = self.feature[split]
        wrong = (tested < 0) | (tested >= self.dimension)
        if wrong.any():
            raise DeclarationError(f"feature {tested[wrong][0]} is not from 0 to {self.dimension - 1}")
        return self

    @classmethod
    def from_sklearn(cls, model: Any) -> Self:
        """Read a fitted ``sklearn.tree.DecisionTreeClassifier``; labels count its ``classes_``.

        Notes
        -----
        scikit-learn rounds inputs to single precision before it compares; this tree does not.
        """
        tree = getattr(model, "tree_", None)
        if tree is None or not hasattr(model, "classes_") or tree.value.shape[1] != 1:
            raise DeclarationError(f"a {type(model).__name__} has no tree: fit a DecisionTreeClassifier")
        leaf = tree.children_left < 0
        return cls(
            feature=np.where(leaf, 0, tree.feature),
            threshold=np.where(leaf, 0.0, tree.threshold),
            left=tree.children_left,
            right=np.where(leaf, -1, tree.children_right),
            label=tree.value[:, 0].argmax(axis=1),
            dimension=int(model.n_features_in_),
            feature_names=tuple(getattr(model, "feature_names_in_", ())),
        )

    @property
    def features(self) -> int:
        """The dimension d of inputs."""
        return self.dimension

    def predict(self, X: Any) -> Array:
        """The label of each input's leaf."""
        values = self.read(X)
        node = np.zeros(len(values), dtype=np.int64)
        while (inside := self.left[node] >= 0).any():
            low = values[np.arange(len(values)), self.feature[node]] <= self.threshold[node]
            node = np.where(inside, np.where(low, self.left[node], self.right[node]), node)
        return self.label[node]

    def margin(self, X: Any, label: int) -> Array:
        """1 where it predicts the label, -1 elsewhere."""
        return np.where(self.predict(X) == label, 1.0, -1.0)

    @cached_property
    def boxes(self) -> tuple[Array, Array, Array]:
        """The leaves: labels ``(leaves,)``, and boxes ``lower < x <= upper`` of shapes ``(leaves, d)``."""
        low = np.full((len(self.left), self.dimension), -np.inf)
        high = np.full((len(self.left), self.dimension), np.inf)
        for node in range(len(self.left)):
            if self.left[node] < 0:
                continue
            a, b, f = self.left[node], self.right[node], self.feature[node]
            low[[a, b]], high[[a, b]] = low[node], high[node]
            high[a, f] = min(high[node, f], self.threshold[node])
            low[b, f] = max(low[node, f], self.threshold[node])
        leaves = np.flatnonzero((self.left < 0) & (low < high).all(axis=1))
        return self.label[leaves], low[leaves], high[leaves]
