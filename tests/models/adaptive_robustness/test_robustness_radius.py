"""Radii of robustness: every method against every other, brute force and the geometry."""

import itertools
import warnings

import numpy as np
import pytest

import forcopt as fo
from forcopt.errors import DeclarationError
from forcopt.models.adaptive_robustness import (
    Halfspace,
    NearestNeighbour,
    ReLUNetwork,
    RobustnessRadius,
    Tree,
    adaptive_radii,
    constancy_radii,
    exact_radii,
)
from forcopt.models.adaptive_robustness.instances import draw_curves
from forcopt.models.adaptive_robustness.neighbour_radius import border

MILP = ["highs", "scip", "gscip", "pyomo:cbc"]


def random_atoms(rng, n, d, labels=2):
    X = rng.integers(0, 5, (n, d)).astype(float) if rng.random() < 0.3 else rng.normal(size=(n, d))
    return X, rng.integers(0, labels, n)


# -- nearest neighbours ------------------------------------------------------------------------------------


def radius_by_programs(p):
    """Chowdhury, Urner (2022), Definition 8: the nearest point of the cell of each atom of another label."""
    if p.is_misclassified:
        return 0.0
    points, same = p.classifier.points, p.classifier.labels == p.label
    found = []
    for atom in points[~same]:
        m = fo.Model()
        moved = m.variable("moved", len(atom))
        rights = ((atom**2).sum() - (points[same] ** 2).sum(axis=1)) / 2
        m.subject_to((atom - points[same]) @ moved >= rights)
        m.minimize(fo.sum_squares(moved - p.point))
        found.append(np.sqrt(max(0.0, m.solve("clarabel").objective)))
    return min(found)


@pytest.mark.parametrize("seed", range(60))
def test_cuts_equal_quadratic_programs_and_voronoi_edges(seed):
    rng = np.random.default_rng(seed)
    d = 2 if seed % 2 else int(rng.integers(1, 6))
    X, y = random_atoms(rng, int(rng.integers(2, 14)), d, labels=2 + seed % 3 // 2)
    nn = NearestNeighbour(X, y)
    x = X[0] if seed % 3 else rng.normal(size=d)
    label = int(y[0]) if seed % 3 else int(nn.predict(x[None])[0])
    p = RobustnessRadius(nn, x, label)
    if (y == label).all():
        assert p.solve().status == "infeasible" and "one label" in p.solve().reason
        return
    cuts = p.solve("cuts")
    assert cuts.status == "optimal" and cuts.evaluation.feasible
    assert cuts.objective == pytest.approx(radius_by_programs(p), abs=1e-6)
    if d == 2:
        try:
            radius = 0.0 if p.is_misclassified else border(nn).nearest(x[None])[1][0]
        except ValueError as error:
            assert "use cuts" in str(error)
        else:
            assert radius == pytest.approx(cuts.objective, abs=1e-6)


def test_every_point_of_the_plane_at_once():
    X, y = draw_curves("s-figure", 400, seed=1)
    nn = NearestNeighbour(X, y)
    all_at_once = border(nn).nearest(X)[1]
    assert np.abs(constancy_radii(nn, X, y) - all_at_once).max() < 1e-9
    rho = adaptive_radii(X, y)
    assert (all_at_once >= rho / 2 * (1 - 1e-12)).all() and (all_at_once > rho / 2 * 1.001).any()
    # nothing nearer changes the label, by draws
    rng = np.random.default_rng(0)
    for i in range(0, 400, 20):
        z = rng.normal(size=(500, 2))
        z *= all_at_once[i] * (1 - 1e-9) / np.linalg.norm(z, axis=1, keepdims=True)
        assert (nn.predict(X[i] + z) == y[i]).all()


@pytest.mark.parametrize("seed", range(5))
def test_scaling_and_rotation(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(25, 3)), rng.integers(0, 3, 25)
    radii = constancy_radii(NearestNeighbour(X, y), X, y)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    for scale in (1e-5, 1e4):
        Z = scale * (X @ turn) + scale * rng.normal(size=3)
        other = constancy_radii(NearestNeighbour(Z, y), Z, y)
        assert other / scale == pytest.approx(radii, rel=1e-6)


def test_duplicates_and_single_points():
    nn = NearestNeighbour([[0.0], [0.0], [1.0]], [0, 1, 1])
    assert RobustnessRadius(nn, [0.0], 0).solve().objective == 0
    # left of 1/2 both labels are equally near
    assert RobustnessRadius(nn, [1.0], 1).solve("cuts").objective == pytest.approx(0.5)
    one = RobustnessRadius(NearestNeighbour([[0.0]], [0]), [3.0], 0).solve()
    assert one.status == "infeasible"
    assert RobustnessRadius(NearestNeighbour([[0.0]], [0]), [3.0], 1).solve().objective == 0
    twice = NearestNeighbour([[0.0], [0.0], [2.0], [2.0]], [0, 0, 1, 1])
    assert RobustnessRadius(twice, [0.0], 0).solve("cuts").objective == pytest.approx(1.0)


def test_a_time_limit_leaves_a_valid_bound():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 20)), rng.integers(0, 2, 3000)
    nn = NearestNeighbour(X, y)
    p = RobustnessRadius(nn, X[0], int(y[0]))
    best = p.solve()
    s = p.solve("cuts", time_limit=0.0)
    assert s.status == "feasible" and s.evaluation.feasible
    assert s.bound <= best.objective + 1e-9 <= s.objective + 1e-8
    from forcopt.clock import Deadline

    rough = constancy_radii(nn, X[:20], y[:20], deadline=Deadline(0.0))
    assert (rough <= constancy_radii(nn, X[:20], y[:20]) + 1e-9).all()


# -- halfspaces and trees ----------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_a_halfspace(norm):
    rng = np.random.default_rng(0)
    for _ in range(20):
        h = Halfspace(rng.normal(size=4), float(rng.normal()))
        x = rng.normal(size=4)
        p = RobustnessRadius(h, x, int(h.predict(x[None])[0]), norm)
        s = p.solve()
        dual = np.linalg.norm(h.w, 2 if norm == "l2" else 1)
        assert s.objective == pytest.approx(abs(x @ h.w + h.b) / dual) and s.evaluation.feasible
        assert p.solve("draws", count=200).objective >= s.objective
        assert RobustnessRadius(h, x, 1 - p.label, norm).solve().objective == 0
    constant = RobustnessRadius(Halfspace([0.0], 1.0), [3.0], 1).solve()
    assert constant.status == "infeasible" and "everywhere" in constant.reason


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_a_tree_against_scikit_learn_and_a_grid(norm):
    sklearn = pytest.importorskip("sklearn.tree")
    rng = np.random.default_rng(1)
    X = rng.random((200, 2)).astype(np.float32).astype(float)
    y = ((X[:, 0] > 0.5) ^ (X[:, 1] > 0.4)).astype(int) + (X.sum(axis=1) > 1.6)
    fitted = sklearn.DecisionTreeClassifier(max_depth=5, random_state=0).fit(X, y)
    tree = Tree.from_sklearn(fitted)
    assert (tree.predict(X) == np.searchsorted(fitted.classes_, fitted.predict(X))).all()
    grid = np.stack(np.meshgrid(np.linspace(-0.5, 1.5, 401), np.linspace(-0.5, 1.5, 401)), -1).reshape(-1, 2)
    said = tree.predict(grid)
    for x in X[:15]:
        label = int(tree.predict(x[None])[0])
        p = RobustnessRadius(tree, x, label, norm)
        s = p.solve()
        assert s.status == "optimal" and s.evaluation.metrics["confirmed"] == 1
        near = p.lengths(grid[said != label]).min()
        assert near - 0.0072 <= s.objective <= near + 1e-12
        assert p.solve("draws").objective >= s.objective
    boxed = RobustnessRadius(tree, X[0], int(tree.predict(X[:1])[0]), norm, box=(X[0], X[0]))
    assert boxed.solve().status == "infeasible" and "no leaf" in boxed.solve().reason


# -- networks ----------------------------------------------------------------------------------------------


def random_network(rng, *sizes):
    weights = [rng.normal(size=(a, b)) / a**0.5 for a, b in itertools.pairwise(sizes)]
    return ReLUNetwork(weights, [rng.normal(size=k) / 2 for k in sizes[1:]])


def by_breakpoints(net, x, label):
    """The radius of a network with one input: on each piece it is a line."""
    w, b = net.weights[0][0], net.biases[0]
    places = np.concatenate([[-1e4], np.sort(-b / w), [1e4]])
    sign = 1 if label == 1 else -1
    values = sign * net.outputs(places[:, None])
    best = np.inf
    for (a, fa), (c, fc) in zip(
        zip(places, values, strict=True), zip(places[1:], values[1:], strict=True), strict=False
    ):
        if fa > 0 and fc > 0:
            continue
        root = a + (c - a) * fa / (fa - fc) if (fa > 0) != (fc > 0) else None
        low, high = (a, c) if root is None else ((a, root) if fa <= 0 else (root, c))
        best = min(best, max(low - x, x - high, 0.0))
    return best


@pytest.mark.parametrize("seed", range(40))
def test_networks_of_one_input_equal_the_enumeration_of_breakpoints(seed):
    rng = np.random.default_rng(seed)
    net = random_network(rng, 1, 8, 1)
    x = rng.normal(size=1)
    label = int(net.predict(x[None])[0])
    best = by_breakpoints(net, x[0], label)
    if best > 1000:
        p = RobustnessRadius(net, x, label, "linf", box=(-500, 500))
        assert p.solve().status == "infeasible"
        return
    for norm, backend in (("linf", MILP[seed % 4]), ("l2", "scip")):
        p = RobustnessRadius(net, x, label, norm)
        s = p.solve(backend=backend)
        assert s.status == "optimal" and s.evaluation.metrics["confirmed"] == 1
        assert s.objective == pytest.approx(best, abs=1e-5, rel=1e-5)
        assert p.solve("gradient").objective >= best - 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_the_milp_on_every_backend(seed):
    rng = np.random.default_rng(seed)
    net = random_network(rng, 4, 6, 5, 1)
    x = rng.normal(size=4)
    p = RobustnessRadius(net, x, int(net.predict(x[None])[0]), "linf", box=(x - 3, x + 3))
    answers = [p.solve("milp", backend=backend, time_limit=30) for backend in MILP]
    assert len({s.status for s in answers}) == 1
    if answers[0].status == "optimal":
        assert np.ptp([s.objective for s in answers]) < 1e-6
        l2 = (
            p.replace(norm="l2").solve()
            if hasattr(p, "replace")
            else RobustnessRadius(net, x, p.label).solve()
        )
        assert answers[0].objective - 1e-6 <= l2.objective <= 2 * answers[0].objective + 1e-6


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("inputs", [1e-3, 1.0, 1e3])
def test_changes_are_confirmed_at_any_scale(seed, inputs):
    """Of inputs and outputs; the solvers' tolerances are absolute."""
    rng = np.random.default_rng([seed, round(inputs * 1000)])
    d, outputs = int(rng.integers(1, 5)), float(rng.choice([1e-4, 1.0, 1e4]))
    plain = random_network(rng, d, 6, 6, 1)
    net = ReLUNetwork(
        [plain.weights[0] / inputs, plain.weights[1], plain.weights[2] * outputs],
        [plain.biases[0], plain.biases[1], plain.biases[2] * outputs],
    )
    x = rng.normal(size=d)
    label = int(plain.predict(x[None])[0])
    for norm, method in (("linf", "milp@highs"), ("linf", "milp@scip"), ("l2", "misocp@scip")):
        unit = RobustnessRadius(plain, x, label, norm, box=(x - 4, x + 4)).solve(method)
        p = RobustnessRadius(net, x * inputs, label, norm, box=(inputs * (x - 4), inputs * (x + 4)))
        s = p.solve(method)
        assert s.status == unit.status
        if s.status == "optimal":
            assert s.evaluation.feasible and s.evaluation.metrics["confirmed"] == 1
            assert s.objective / inputs == pytest.approx(unit.objective, rel=1e-4, abs=1e-7)


def test_a_change_at_a_kink_is_confirmed():
    """The label changes in a narrow cone behind the nearest point, where the gradient leads elsewhere."""
    first = [[1.0, 0.0, 1.0, -1.0], [0.0, 1.0, -1.0, 1.0]]
    net = ReLUNetwork([first, [[1.0], [1.0], [-40.0], [-40.0]]], [[0.0] * 4, [-2.0]])
    p = RobustnessRadius(net, [0.0, 0.0], 0, "linf", box=(-3, 3))  # x + y - 40 |x - y| > 2
    for method in ("milp@highs", "milp@scip"):
        s = p.solve(method)
        assert s.status == "optimal" and s.objective == pytest.approx(1.0, abs=1e-6)
        assert s.evaluation.metrics["confirmed"] == 1
    s = p.replace(norm="l2").solve()
    assert s.objective == pytest.approx(2**0.5, abs=1e-5) and s.evaluation.metrics["confirmed"] == 1


@pytest.mark.parametrize("slope", [0.0, 1e-300, 1.0])
def test_points_beside_a_solvers_where_the_network_is_flat(slope):
    """Far from the origin, and where nothing near changes the label: the solver's point stays."""
    from forcopt.models.adaptive_robustness.network_radius import _confirmed

    net = ReLUNetwork([[[1.0]], [[slope]]], [[-1e12], [-1.0]])  # flat below 1e12
    p = RobustnessRadius(net, [-1e12], 0, "linf", box=(-2e12, 3e12))
    moved = np.array([9e11])
    assert _confirmed(p, moved).tolist() == moved.tolist()
    edge = _confirmed(p, np.array([1e12 + 1.0]))
    assert (slope == 1.0) == bool(p.changed(edge[None])[0])


def test_misclassified_points_need_no_network():
    """Weights of 1e-25, as training with a penalty leaves them, and balls of radius 0."""
    rng = np.random.default_rng(0)
    net = random_network(rng, 20, 10, 10, 1)
    weights = [np.where(rng.random(w.shape) < 0.5, w, 1e-25 * w) for w in net.weights]
    net = ReLUNetwork(weights, net.biases)
    for x in rng.normal(size=(5, 20)):
        for norm, backend in (("linf", "highs"), ("linf", "scip"), ("l2", "scip")):
            s = RobustnessRadius(net, x, 1 - int(net.predict(x[None])[0]), norm).solve(backend=backend)
            assert s.status == "optimal" and s.objective == 0 == s.bound
            assert (s.decision == x).all() and s.model_solution.model.column_count == 1


def test_no_attack_is_better_than_the_milp_on_200_points():
    rng = np.random.default_rng(7)
    net = random_network(rng, 3, 6, 1)
    points = rng.normal(size=(200, 3))
    level = float(np.median(net.outputs(points)))  # so that both labels are common
    net = ReLUNetwork(net.weights, (*net.biases[:-1], net.biases[-1] - level))
    labels = net.predict(points)
    lower, upper = exact_radii(net, points, labels, "linf", box=(points.min() - 4, points.max() + 4))
    assert (lower > 0).all() and np.allclose(lower, upper, rtol=1e-5, atol=1e-6)
    attacked = [
        RobustnessRadius(net, x, int(y), "linf", (points.min() - 4, points.max() + 4)).solve(
            "gradient", restarts=5, steps=20
        )
        for x, y in zip(points, labels, strict=True)
    ]
    found = np.array([s.objective for s in attacked])
    assert all(s.evaluation is None or s.evaluation.metrics["confirmed"] == 1 for s in attacked)
    assert (found[np.isfinite(found)] >= lower[np.isfinite(found)] - 1e-5).all()  # the solver's tolerance
    assert np.median(found / upper) < 1.1


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_descent_from_the_point_alone_where_the_network_is_flat(norm):
    """The gradient is 0 around the point, so that one start finds no change in any ball; many do."""
    net = ReLUNetwork([[[1.0]], [[-1.0]]], [[0.0], [1.0]])  # 1 for x < 1, by a unit that is off for x <= 0
    p = RobustnessRadius(net, [-3.0], 1, norm)
    one, many = (p.solve("gradient", restarts=k) for k in (1, 20))
    assert one.status == "limit" and one.decision is None
    assert many.objective == pytest.approx(4.0, rel=1e-6) == p.solve().objective


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("at", [0.0, 5.0])
def test_a_point_on_the_border_has_the_radius_0(norm, at):
    """The output is 0 there, so that the label is 0, and the least move is as small as one likes."""
    net = ReLUNetwork([[[1.0]], [[1.0]]], [[1.0 - at], [-1.0]])  # x - at for x > at - 1
    p = RobustnessRadius(net, [at], 0, norm)
    assert not p.is_misclassified
    for method in ("gradient", None):
        s = p.solve(method)
        assert s.evaluation.metrics["confirmed"] == 1 and s.objective < 1e-6 and s.bound < 1e-6


def test_a_flip_that_the_network_does_not_confirm_is_no_flip():
    net = ReLUNetwork([[[1.0]], [[1.0]]], [[0.0], [-1.0]])  # positive for x > 1
    p = RobustnessRadius(net, [3.0], 1, "linf")
    almost = p.evaluate([1.0 + 1e-4])
    assert almost.metrics["confirmed"] == 0 and not almost.feasible
    assert almost.violations["label"] == pytest.approx(1e-4)
    s = p.solve()
    assert s.evaluation.metrics["confirmed"] == 1 and s.objective == pytest.approx(2.0, abs=1e-6)


def test_scikit_learn_networks():
    sklearn = pytest.importorskip("sklearn.neural_network")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = sklearn.MLPClassifier((6, 5), max_iter=200, random_state=0).fit(X, y)
        three = sklearn.MLPClassifier((3,), max_iter=5).fit(X, rng.integers(0, 3, 100))
        tanh = sklearn.MLPClassifier((3,), activation="tanh", max_iter=5).fit(X, y)
    net = ReLUNetwork.from_sklearn(fitted)
    assert (fitted.classes_[net.predict(X)] == fitted.predict(X)).all()
    outputs, slopes = net.gradients(X)
    step = 1e-6
    for k in range(2):
        moved = net.outputs(X + step * np.eye(2)[k])
        assert np.median(np.abs((moved - outputs) / step - slopes[:, k])) < 1e-4
    with pytest.raises(ValueError, match="3 classes"):
        ReLUNetwork.from_sklearn(three)
    with pytest.raises(ValueError, match="activation is 'tanh'"):
        ReLUNetwork.from_sklearn(tanh)
    with pytest.raises(ValueError, match="MLPClassifier"):
        ReLUNetwork.from_sklearn(object())
    with pytest.raises(ValueError, match="DecisionTreeClassifier"):
        Tree.from_sklearn(fitted)


def test_bad_input():
    net = ReLUNetwork([[[1.0]], [[0.0]]], [[0.0], [1.0]])  # constant: no move changes it
    with pytest.raises(ValueError, match="box is missing"):
        RobustnessRadius(net, [0.0], 1, "linf").solve()
    assert RobustnessRadius(net, [0.0], 1, "linf", box=(-1, 1)).solve().status == "infeasible"
    assert RobustnessRadius(net, [0.0], 1, "linf", box=(-1, 1)).solve("gradient").status == "limit"
    assert RobustnessRadius(net, [0.0], 0, "linf", box=(-1, 1)).solve().objective == 0
    with pytest.raises(ValueError, match=r"point\[0\] is 2"):
        RobustnessRadius(net, [2.0], 1, "linf", box=(-1, 1))
    h, nn = Halfspace([1.0], 0.0), NearestNeighbour([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="box: a Halfspace takes none"):
        RobustnessRadius(h, [0.5], 1, box=(-1, 1))
    with pytest.raises(ValueError, match="must be 'l2'"):
        RobustnessRadius(nn, [0.5], 1, "linf")
    with pytest.raises(ValueError, match="takes no Halfspace"):
        RobustnessRadius(h, [0.5], 1).solve("cuts")
    with pytest.raises(ValueError, match="point: the shape"):
        RobustnessRadius(h, [0.5, 1.0], 1)
    with pytest.raises(ValueError, match="nan"):
        RobustnessRadius(h, [float("nan")], 1)
    with pytest.raises(ValueError, match="'linf', and misocp"):
        RobustnessRadius(net, [0.0], 1, "l2").solve("milp")
    with pytest.raises(ValueError, match="labels: the shape"):
        NearestNeighbour([[0.0]], [0, 1])
    with pytest.raises(ValueError, match="2 outputs"):
        ReLUNetwork([[[1.0, 1.0]]], [[0.0, 0.0]])
    with pytest.raises(ValueError, match="use cuts"):
        border(nn)


@pytest.mark.parametrize(
    "classifier",
    [
        Halfspace([1.0], 0.5),
        NearestNeighbour([[0.0], [1.0]], [0, 1]),
        ReLUNetwork([[[1.0]], [[1.0]]], [[0.0], [-1.0]]),
        Tree([0, 0, 0], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [0, 0, 1], 1),
    ],
)
def test_files(classifier):
    p = RobustnessRadius(classifier, [3.0], 1)
    again = RobustnessRadius.from_dict(p.to_dict())
    assert again == p and type(again.classifier) is type(classifier)
    assert again.solve().objective == pytest.approx(p.solve().objective)


@pytest.mark.parametrize("label", [-1, 2])
def test_a_label_that_a_halfspace_never_predicts_is_refused(label):
    """Labels of -1 and 1 gave a radius of 0 to every point of the first."""
    with pytest.raises(DeclarationError, match=f"label is {label}; a Halfspace predicts 0 or 1"):
        RobustnessRadius(Halfspace([1.0, 0.0], -1.0), [0.0, 0.0], label)
