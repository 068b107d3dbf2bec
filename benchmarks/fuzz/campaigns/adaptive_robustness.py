"""Small random robustness problems against enumeration: lost sets, activation patterns, cells, halfspaces."""

from __future__ import annotations

from itertools import combinations, pairwise, product

import numpy as np
from scipy.optimize import linprog

from benchmarks.fuzz.case import ProblemCase
from forcopt.models import AdaptiveRobustClassification, RobustBayes, RobustnessRadius
from forcopt.models.adaptive_robustness import NearestNeighbour, ReLUNetwork, Tree

Random = np.random.Generator


def length(moves: np.ndarray, norm: str) -> np.ndarray:
    return np.abs(moves).max(axis=-1) if norm == "linf" else np.sqrt((moves**2).sum(axis=-1))


# -- the robust Bayes classifier ----------------------------------------------------------------------------


def robust_bayes(rng: Random) -> ProblemCase:
    """Two or three labels, at most six points: every set of safe pairs without a conflict."""
    n, d, labels = int(rng.integers(1, 6)), int(rng.integers(1, 4)), 2 if rng.random() < 0.7 else 3
    norm = str(rng.choice(["l2", "linf"]))
    points = rng.integers(0, 4, (n, d)).astype(float) if rng.random() < 0.6 else rng.normal(0, 1.5, (n, d))
    counts = rng.integers(0, 4, (n, labels)) * (rng.random((n, labels)) < 0.7)
    if counts.sum() == 0:
        counts[0, 0] = 1
    masses = counts / counts.sum()
    radius = (
        rng.choice([0.0, 0.25, 0.5, 1.0, 1.5, 2.0], n)
        if rng.random() < 0.5
        else float(rng.choice([0.0, 0.5, 0.7, 1.0]))
    )
    radii = np.broadcast_to(radius, (n,)).astype(float)
    domain: object = "space"
    if rng.random() < 0.3:
        domain = rng.integers(0, 4, (int(rng.integers(1, 6)), d)).astype(float)
    apart = length(points[:, None] - points[None], norm)
    if isinstance(domain, str):
        meet = apart < radii[:, None] + radii[None] - 1e-9
        np.fill_diagonal(meet, True)
        meet |= apart == 0
    else:
        places = np.concatenate([domain, points])  # type: ignore[list-item]
        inside = length(points[:, None] - places[None], norm) < radii[:, None] - 1e-9
        inside |= length(points[:, None] - places[None], norm) == 0
        meet = (inside[:, None] & inside[None]).any(axis=2)
    # a point of radius 0 in an open ball of another
    if isinstance(domain, str):
        meet |= apart < np.maximum(radii[:, None], radii[None]) - 1e-9
    best = np.inf
    # each point is safe with one label at most: choose it, or none
    for choice in product(range(-1, labels), repeat=n):
        chosen = np.array(choice)
        safe = np.flatnonzero(chosen >= 0)
        differ = chosen[safe][:, None] != chosen[safe][None]
        if (differ & meet[np.ix_(safe, safe)]).any():
            continue
        best = min(best, 1.0 - masses[safe, chosen[safe]].sum())
    problem = RobustBayes(points, masses, radius, norm=norm, domain=domain)
    return ProblemCase(problem, "optimal", max(best, 0.0))


# -- the radius of robustness -------------------------------------------------------------------------------


def least_in(a: np.ndarray, b: np.ndarray, point: np.ndarray, norm: str) -> float:
    """The distance of a point to ``{z: a z <= b}``; infinite if that is empty."""
    d = len(point)
    if norm == "linf":
        cost = np.r_[np.zeros(d), 1.0]
        eye, one = np.eye(d), np.ones((d, 1))
        rows = np.block([[a, np.zeros((len(a), 1))], [eye, -one], [-eye, -one]])
        sides = np.r_[b, point, -point]
        found = linprog(cost, A_ub=rows, b_ub=sides, bounds=[(None, None)] * d + [(0, None)])
        return float(found.fun) if found.status == 0 else np.inf
    # the projection is on some face: least norm over active sets of linearly independent rows
    best = np.inf
    for size in range(min(d, len(a)) + 1):
        for rows_ in combinations(range(len(a)), size):
            active = a[list(rows_)]
            if size and np.linalg.matrix_rank(active) < size:
                continue
            z = point if not size else point - np.linalg.pinv(active) @ (active @ point - b[list(rows_)])
            if (a @ z <= b + 1e-9).all():
                best = min(best, float(np.linalg.norm(z - point)))
    return best


def network(rng: Random) -> ProblemCase:
    """A network of at most six units: the distance to each linear piece where the label is another."""
    d = int(rng.integers(1, 3))
    sizes = [d, *(int(rng.integers(1, 4)) for _ in range(int(rng.integers(1, 3)))), 1]
    whole = rng.random() < 0.4
    draw = (
        (lambda *s: rng.integers(-2, 3, s).astype(float))
        if whole
        else (lambda *s: np.round(rng.normal(0, 1, s), 3))
    )
    weights = [draw(a, b) for a, b in pairwise(sizes)]
    biases = [draw(b) for b in sizes[1:]]
    point = np.round(rng.uniform(-2, 2, d), 2)
    norm = str(rng.choice(["l2", "linf"]))
    box = np.array([[-3.0] * d, [3.0] * d])
    net = ReLUNetwork(weights, biases)

    def margin(z: np.ndarray) -> float:
        for w, b in zip(weights[:-1], biases[:-1], strict=True):
            z = np.maximum(z @ w + b, 0)
        return float((z @ weights[-1] + biases[-1])[0])

    label = int(margin(point) > 0) if rng.random() < 0.8 else int(rng.integers(2))
    problem = RobustnessRadius(net, point, label, norm=norm, box=box)
    if int(margin(point) > 0) != label:
        return ProblemCase(problem, "optimal", 0.0)
    hidden = sum(sizes[1:-1])
    best = np.inf
    for pattern in product((0, 1), repeat=hidden):
        rows = [np.eye(d), -np.eye(d)]
        sides = [box[1], -box[0]]
        linear, constant, at = np.eye(d), np.zeros(d), 0
        for w, b in zip(weights[:-1], biases[:-1], strict=True):
            on = np.array(pattern[at : at + w.shape[1]], float)
            at += w.shape[1]
            pre, shift = w.T @ linear, w.T @ constant + b
            sign = 1 - 2 * on
            rows.append(sign[:, None] * pre)
            sides.append(-sign * shift)
            linear, constant = on[:, None] * pre, on * shift
        out, bias = weights[-1].T @ linear, float((weights[-1].T @ constant + biases[-1])[0])
        sign = 1.0 if label else -1.0
        rows.append(sign * out)
        sides.append(np.array([-sign * bias]))
        best = min(best, least_in(np.concatenate(rows), np.concatenate(sides), point, norm))
    if not np.isfinite(best):
        return ProblemCase(problem, "infeasible")
    return ProblemCase(problem, "optimal", best)


def neighbours(rng: Random) -> ProblemCase:
    """The nearest neighbour: the distance to the cell of each atom of another label, by active sets."""
    n, d = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    atoms = rng.integers(0, 5, (n, d)).astype(float) if rng.random() < 0.5 else rng.normal(0, 1, (n, d))
    atoms = np.unique(atoms, axis=0)
    n = len(atoms)
    labels = rng.integers(0, int(rng.integers(2, 4)), n)
    point = atoms[int(rng.integers(n))] if rng.random() < 0.5 else rng.normal(0, 1.5, d)
    away = ((atoms - point) ** 2).sum(axis=1)
    label = int(labels[np.argmin(away)])
    problem = RobustnessRadius(NearestNeighbour(atoms, labels), point, label)
    own = atoms[labels == label]
    best = np.inf
    for z in atoms[labels != label]:
        a = 2 * (own - z)
        b = (own**2).sum(axis=1) - (z**2).sum()
        best = min(best, least_in(a, b, point, "l2"))
    if not np.isfinite(best):
        return ProblemCase(problem, "infeasible")
    return ProblemCase(problem, "optimal", best)


# -- the best halfspace -------------------------------------------------------------------------------------


def halfspace(rng: Random) -> ProblemCase:
    """The least loss over halfspaces in the plane: each set of kept points, by a linear program or a cone."""
    n = int(rng.integers(2, 7))
    d = int(rng.integers(1, 3))
    points = (
        rng.integers(0, 4, (n, d)).astype(float)
        if rng.random() < 0.5
        else np.round(rng.normal(0, 1, (n, d)), 2)
    )
    labels = rng.integers(0, 2, n)
    norm = str(rng.choice(["l2", "linf"]))
    c = float(rng.choice([0.1, 0.3, 0.5, 0.8]))
    radii = None
    if rng.random() < 0.3 or labels.min() == labels.max():
        radii = rng.choice([0.0, 0.25, 0.5, 1.0], n)
        balls = radii
    else:
        apart = length(points[:, None] - points[None], norm)
        apart[labels[:, None] == labels[None]] = np.inf
        balls = c * apart.min(axis=1)
    problem = AdaptiveRobustClassification(points, labels, c, norm=norm, radii=radii)
    signs = 2.0 * labels - 1
    best = min((signs < 0).sum(), (signs > 0).sum())
    for size in range(n, n - int(best), -1):
        sets = [list(kept) for kept in combinations(range(n), size)]
        found = [separable(points[kept], signs[kept], balls[kept], norm) for kept in sets]
        if None in found:
            return ProblemCase(problem, "unknown")
        if any(found):
            best = n - size
            break
    return ProblemCase(problem, "optimal", float(best) / n)


def separable(points: np.ndarray, signs: np.ndarray, balls: np.ndarray, norm: str) -> bool | None:
    """Whether a halfspace leaves all balls on the side of their sign; None if it just does or just fails."""
    import cvxpy as cp

    if (signs == signs[0]).all():
        return True
    w, b, t = cp.Variable(points.shape[1]), cp.Variable(), cp.Variable()
    dual = cp.norm(w, 1 if norm == "linf" else 2)
    program = cp.Problem(cp.Maximize(t), [cp.multiply(signs, points @ w + b) >= balls + t, dual <= 1])
    program.solve(solver="CLARABEL")
    if balls.max() == 0:  # w = 0 reaches t = 0
        return bool(t.value > 1e-6)
    if t.value > 1e-6 or t.value < -1e-6:
        return bool(t.value > 0)
    return None if (balls[signs < 0] == 0).any() else True


def tree(rng: Random) -> ProblemCase:
    """A random tree: the distance to the cell of each label's inputs between the thresholds."""
    from sklearn.tree import DecisionTreeClassifier

    n, d = int(rng.integers(2, 30)), int(rng.integers(1, 4))
    x = rng.integers(0, 6, (n, d)).astype(float)
    y = rng.integers(0, int(rng.integers(2, 4)), n)
    fitted = DecisionTreeClassifier(max_depth=int(rng.integers(1, 5)), random_state=0).fit(x, y)
    norm = str(rng.choice(["l2", "linf"]))
    point = rng.integers(-1, 7, d) + (0.25 if rng.random() < 0.7 else 0.5)
    label = int(np.searchsorted(fitted.classes_, fitted.predict(point[None])[0]))
    problem = RobustnessRadius(Tree.from_sklearn(fitted), point, label, norm=norm)
    cuts = [np.unique(fitted.tree_.threshold[fitted.tree_.feature == j]) for j in range(d)]
    ends = [np.r_[-100.0, cut, 100.0] for cut in cuts]
    low = np.array(list(product(*(e[:-1] for e in ends))))
    high = np.array(list(product(*(e[1:] for e in ends))))
    other = np.searchsorted(fitted.classes_, fitted.predict((low + high) / 2)) != label
    if not other.any():
        return ProblemCase(problem, "infeasible")
    moves = np.clip(point, low[other], high[other]) - point
    return ProblemCase(problem, "optimal", float(length(moves, norm).min()))


CAMPAIGNS = {
    "robust-bayes": robust_bayes,
    "radius-of-a-network": network,
    "radius-of-neighbours": neighbours,
    "radius-of-a-tree": tree,
    "robust-halfspace": halfspace,
}
