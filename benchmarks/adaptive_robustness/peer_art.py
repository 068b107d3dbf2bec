# ruff: noqa: D102, B905
"""Radii of robustness by the Adversarial Robustness Toolbox; reads tasks from stdin, writes JSON.

Networks: projected gradient descent with bisection over the radius, on a classifier whose gradients are
computed here with numpy, as the toolbox has none for scikit-learn's networks; as many steps as forcopt's
descent, from the point itself or from random starts. Trees: its clique verifier. Seconds of the processor.
"""

import json
import sys
import time

import numpy as np
from art.attacks.evasion import ProjectedGradientDescentNumpy
from art.estimators.classification import ClassifierMixin
from art.estimators.estimator import BaseEstimator, LossGradientsMixin


class Network(ClassifierMixin, LossGradientsMixin, BaseEstimator):
    """A network of rectified linear units with one output."""

    estimator_params = BaseEstimator.estimator_params

    def __init__(self, weights, biases):
        super().__init__(model=None, clip_values=None)
        self.weights, self.biases, self.nb_classes = weights, biases, 2
        self._features = len(weights[0])

    @property
    def input_shape(self):
        return (self._features,)

    def fit(self, x, y, **_):
        raise NotImplementedError

    def _forward(self, x):
        active = []
        for w, b in zip(self.weights[:-1], self.biases[:-1]):
            x = x @ w + b
            active.append(x > 0)
            x = np.maximum(x, 0)
        return (x @ self.weights[-1] + self.biases[-1])[:, 0], active

    def predict(self, x, **_):
        out = 1 / (1 + np.exp(-np.clip(self._forward(np.asarray(x, float))[0], -60, 60)))
        return np.stack([1 - out, out], axis=1)

    def loss_gradient(self, x, y, **_):
        # of the margin, not of the cross-entropy, which vanishes where the network is sure
        _, active = self._forward(np.asarray(x, float))
        back = np.broadcast_to(self.weights[-1][:, 0], active[-1].shape)
        for w, on in zip(self.weights[-2::-1], active[::-1]):
            back = (back * on) @ w.T
        return ((1 - 2 * y[:, 1])[:, None] * back).astype(np.float32)


def attack(task):
    """The least radius at which the attack succeeds, for each point: bisection, all points at once."""
    net = Network([np.array(w) for w in task["weights"]], [np.array(b) for b in task["biases"]])
    x, y = np.array(task["points"], dtype=np.float32), np.array(task["labels"])
    norm = {"linf": np.inf, "l2": 2}[task["norm"]]
    began = time.process_time()
    right = net.predict(x).argmax(axis=1) == y
    starts = 0 if task["starts"] == 1 else task["starts"]  # none: the point itself
    low, high = np.zeros(len(x)), np.where(right, task["most"], 0.0)
    found = high.copy()
    for _ in range(task["bisections"]):
        middle = (low + high) / 2
        moved = x.copy()
        for k in np.unique(middle[right]):
            at = np.flatnonzero(right & (middle == k))
            method = ProjectedGradientDescentNumpy(
                net,
                norm=norm,
                eps=float(k),
                eps_step=float(k) / 10,
                max_iter=60,
                num_random_init=starts,
                verbose=False,
            )
            moved[at] = method.generate(x[at], np.eye(2)[y[at]])
        changed = net.predict(moved).argmax(axis=1) != y
        high, low = np.where(changed, middle, high), np.where(changed, low, middle)
        found = np.where(changed, middle, found)
    return {"radii": found.tolist(), "seconds": time.process_time() - began}


def verify(task):
    """The clique verifier on a boosted tree: a lower bound of the mean radius and of the error.

    Of forests the toolbox reads the share of label 1 in a leaf as a score whose sign counts, so that it takes
    label 1 for robust everywhere. The leaves of boosted trees have scores with signs.
    """
    from art.estimators.classification.scikitlearn import ScikitlearnGradientBoostingClassifier
    from art.metrics import RobustnessVerificationTreeModelsCliqueMethod
    from sklearn.ensemble import GradientBoostingClassifier

    x, y = np.array(task["train"]), np.array(task["train_labels"])
    tree = GradientBoostingClassifier(
        n_estimators=1, learning_rate=1.0, init="zero", max_depth=task["depth"], random_state=0
    ).fit(x, y)
    test, labels = np.array(task["points"]), np.array(task["labels"])
    began = time.process_time()
    verifier = RobustnessVerificationTreeModelsCliqueMethod(
        classifier=ScikitlearnGradientBoostingClassifier(tree), verbose=False
    )
    bound, error = verifier.verify(
        x=test, y=np.eye(2)[labels], eps_init=0.3, norm=np.inf, nb_search_steps=10, max_clique=2, max_level=2
    )
    return {"mean": float(bound), "error": float(error), "seconds": time.process_time() - began}


tasks = json.load(sys.stdin)
json.dump([verify(t) if t["kind"] == "tree" else attack(t) for t in tasks], sys.stdout)
