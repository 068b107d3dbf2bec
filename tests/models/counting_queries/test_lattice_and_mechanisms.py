import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

import forcopt as fo
from forcopt.backends.registry import backends
from forcopt.errors import DeclarationError
from forcopt.models import LatticeNoise, PrivateMechanism

LP_BACKENDS = [name for name, b in backends().items() if not b.missing() and not b.capabilities.only_integer]


@pytest.mark.parametrize("backend", LP_BACKENDS)
def test_every_backend_for_linear_programs_agrees(backend):
    accuracy = max(1e-6, 100 * backends()[backend].accuracy)
    s = LatticeNoise(queries=2, epsilon=1.0, delta=0.01, radius=12).solve(backend=backend)
    if backend in ("scs", "osqp") and s.status is fo.Status.FAILED:
        assert s.decision is None  # these first-order methods may not converge; they say so
    else:
        assert s.status is fo.Status.OPTIMAL
        assert s.objective == pytest.approx(1.799242, abs=max(accuracy, 3e-5))
    for most, queries, ratio, delta, value in (
        (1, 1, 3, 0, 0.25),
        (1, 1, 3, 0.1, 0.225),
        (2, 1, 2, 0, 4 / 7),
        (2, 1, 2, 0.1, 17 / 35),
        (2, 1, 3, 0, 3 / 7),
        (3, 1, 2, 0, 28 / 39),
        (4, 1, 2, 0, 36 / 43),
        (1, 2, 3, 0, 0.5),
        (1, 2, 3, 0.1, 0.45),
        (1, 3, 3, 0, 0.7),
        (2, 2, 2, 0, 1.0),
    ):
        s = PrivateMechanism.counts(most, queries, epsilon=math.log(ratio), delta=delta).solve(
            backend=backend
        )
        assert s.objective == pytest.approx(value, abs=accuracy)


@pytest.mark.parametrize("backend", ["highs", "clarabel", "glop", "scip", "pyomo:glpk"])
def test_two_counts_are_bracketed(backend):
    s = LatticeNoise(queries=2, epsilon=1.0, delta=0.01, radius=20).solve("bracket", backend=backend)
    assert s.bound <= s.objective + 1e-6 and s.objective - s.bound < 1e-6
    assert s.objective == pytest.approx(1.799242, abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_one_count_under_pure_privacy_is_geometric(epsilon):
    p = LatticeNoise(queries=1, epsilon=epsilon, radius=int(20 / epsilon))
    s = p.solve()
    assert s.objective == pytest.approx(2 * math.exp(-epsilon) / (1 - math.exp(-2 * epsilon)), abs=1e-9)
    bound = p.solve("bracket").bound
    assert bound <= s.objective + 1e-9
    assert s.evaluation.feasible


def whole_program(k, radius, epsilon, delta):
    """The same program without symmetry, a variable for each point, by another solver interface."""
    points = list(product(range(-radius, radius + 1), repeat=k))
    index = {x: i for i, x in enumerate(points)}
    changes = [c for c in product((-1, 0, 1), repeat=k) if any(c)]
    n, rows, right, cells = len(points), [], [], len(points) * len(changes)
    for j, change in enumerate(changes):
        budget = np.zeros(n + cells)
        for x in points:
            row = np.zeros(n + cells)
            row[index[x]] = 1.0
            y = tuple(a - b for a, b in zip(x, change, strict=True))
            if y in index:
                row[index[y]] -= math.exp(epsilon)
            row[n + j * n + index[x]] = -1.0
            budget[n + j * n + index[x]] = 1.0
            rows.append(row)
            right.append(0.0)
        rows.append(budget)
        right.append(delta)
    cost = np.append([max(map(abs, x)) for x in points], np.zeros(cells))
    one = np.append(np.ones(n), np.zeros(cells))[None]
    return linprog(cost, np.array(rows), right, one, [1.0], method="highs").fun


@pytest.mark.parametrize("k, radius", [(1, 2), (1, 6), (2, 1), (2, 2), (3, 1)])
def test_orbits_lose_nothing(k, radius):
    rng = np.random.default_rng(k + radius)
    for _ in range(3):
        epsilon, delta = float(rng.uniform(0.3, 2)), float(rng.uniform(0.05, 0.5))
        s = LatticeNoise(queries=k, epsilon=epsilon, delta=delta, radius=radius).solve()
        value = whole_program(k, radius, epsilon, delta)
        if value is None:
            assert s.status is fo.Status.INFEASIBLE
        else:
            assert s.objective == pytest.approx(value, abs=1e-7)
            assert s.evaluation.feasible


def test_brackets_hold():
    for k, delta, radius in ((1, 0.05, 4), (2, 0.0, 6), (2, 0.1, 6), (3, 0.1, 7)):
        s = LatticeNoise(queries=k, epsilon=1.0, delta=delta, radius=radius).solve("bracket")
        assert s.status.has_solution and s.evaluation.feasible
        assert s.bound <= s.objective + 1e-7
        values, mass = s.decision.marginal()
        assert len(values) == 2 * radius + 1 and mass.sum() <= 1 + 1e-9


def test_three_counts_are_bracketed_in_exact_arithmetic():
    """Multipliers of the relaxed program, as rationals, prove a bound for all laws on the lattice.

    For any ``u >= 0`` on the pairs the bound is ``min_i (cost_i + (G' u)_i) - delta sum_j max u_j`` with the
    rows G of the privacy of changes by j ones; e is a rational number to 50 digits.
    """
    p = LatticeNoise(queries=3, epsilon=1.0, delta=0.01, radius=14)
    e = Fraction("2.71828182845904523536028747135266249775724709369995")
    n, sizes = len(p.orbits), p.sizes
    changes = [[part[y >= 0] for part in (x, y, many)] for x, y, many in map(p.changes, (1, 2, 3))]
    counts = [len(x) for x, _, _ in changes]
    x, y, many = (np.concatenate(parts) for parts in zip(*changes, strict=True))
    pairs = np.arange(len(x))
    place = (np.tile(pairs, 3), np.concatenate([x, y, n + 1 + pairs]))
    entries = np.concatenate([many / sizes[x], -math.e * many / sizes[y], -np.ones(len(x))])
    private = sp.csr_array((entries, place), shape=(len(x), n + 1 + len(x)))
    budgets = sp.csr_array((np.ones(len(x)), (np.repeat(np.arange(3), counts), n + 1 + pairs)))
    costs = [*map(int, p.norms), p.radius + 1]
    mass = np.append(np.ones(n + 1), np.zeros(len(x)))[None]
    right = np.append(np.zeros(len(x)), np.full(3, 10.0))  # a mass of 1000
    found = linprog(
        np.append(costs, np.zeros(len(x))),
        sp.vstack([private, budgets]),
        right,
        mass,
        [1000.0],
        method="highs",
    )
    u = [Fraction(max(0.0, -float(v))) for v in found.ineqlin.marginals[: len(x)]]
    slopes = [Fraction(c) for c in costs]
    for i, j, times, v in zip(x.tolist(), y.tolist(), many.tolist(), u, strict=True):
        slopes[i] += v * int(times) / int(sizes[i])
        slopes[j] -= v * e * int(times) / int(sizes[j])
    ends = np.cumsum([0, *counts])
    worst = sum(max(u[a:b]) for a, b in pairwise(ends))
    bound = min(slopes) - Fraction(1, 100) * worst
    assert Fraction("2.746216") < bound < Fraction("2.746217")
    s = p.solve()
    assert float(bound) <= s.objective <= float(bound) + 1e-6 and s.evaluation.feasible


def test_bad_lattices():
    for fields in ({"queries": 0}, {"radius": 0}, {"epsilon": 0.0}, {"delta": 1.0}, {"queries": 6}):
        with pytest.raises(ValueError):
            LatticeNoise(**{"queries": 2, "epsilon": 1.0, "delta": 0.1, "radius": 3, **fields})
    p = LatticeNoise(queries=2, epsilon=1.0, delta=0.1, radius=3)
    with pytest.raises(DeclarationError, match="LatticeLaw"):
        p.evaluate(np.ones(3))
    smaller = p.replace(delta=0.01).solve("lp")
    if smaller.decision is not None:
        assert p.evaluate(smaller.decision).feasible
    assert not p.replace(delta=0.001).evaluate(p.solve().decision).feasible


def test_baselines_are_private_and_no_better():
    rng = np.random.default_rng(0)
    for _ in range(20):
        n, o = int(rng.integers(2, 5)), int(rng.integers(2, 5))
        p = PrivateMechanism(
            loss=rng.uniform(0, 3, (n, o)),
            edges=[[i, j] for i in range(n) for j in range(i)],
            epsilon=float(rng.uniform(0.1, 2)),
            delta=float(rng.choice([0.0, 0.1])),
            prior=None if rng.random() < 0.5 else rng.dirichlet(np.ones(n)),
        )
        best = p.solve()
        assert best.status is fo.Status.OPTIMAL and best.evaluation.feasible
        for method in ("exponential", *(["randomized-response"] if n == o else [])):
            s = p.solve(method)
            assert s.evaluation.feasible and best.objective <= s.objective + 1e-8
    p = PrivateMechanism.counts(4, 1, epsilon=math.log(2))
    s = p.solve("geometric")
    assert s.evaluation.feasible and s.objective >= 36 / 43
    uniform = p.replace(prior=np.full(5, 0.2))
    assert uniform.solve().objective <= uniform.solve("geometric").objective


def test_a_binary_mechanism_by_brute_force():
    """Two inputs, two outputs: a grid over the two probabilities."""
    for epsilon, delta in ((0.5, 0.0), (1.0, 0.2)):
        loss = np.array([[0.0, 1.0], [2.0, 0.5]])
        p = PrivateMechanism(loss=loss, edges=[[0, 1]], epsilon=epsilon, delta=delta)
        a, b = np.meshgrid(np.linspace(0, 1, 1001), np.linspace(0, 1, 1001))
        e = math.exp(epsilon)
        gap = np.maximum(a - e * b, 0) + np.maximum((1 - a) - e * (1 - b), 0)
        back = np.maximum(b - e * a, 0) + np.maximum((1 - b) - e * (1 - a), 0)
        private = np.maximum(gap, back) <= delta + 1e-12
        worst = np.maximum(loss[0, 0] * a + loss[0, 1] * (1 - a), loss[1, 0] * b + loss[1, 1] * (1 - b))
        assert p.solve().objective == pytest.approx(worst[private].min(), abs=3e-3)


def test_edges_of_mechanisms():
    assert PrivateMechanism.counts(0, 2, epsilon=1.0).solve().objective == pytest.approx(0)
    free = PrivateMechanism(loss=np.eye(2)[::-1], edges=np.zeros((0, 2)), epsilon=0.0)
    assert free.solve().objective == pytest.approx(0)
    for field, value in (("delta", 1.0), ("delta", -0.1), ("epsilon", math.inf), ("epsilon", -1.0)):
        with pytest.raises(DeclarationError, match=f"{field} is"):
            PrivateMechanism.counts(1, 1, **{"epsilon": 1.0, field: value})
    for most, queries in ((-1, 1), (math.nan, 1), ("a", 1), (1, 0), (1, 1.5)):
        with pytest.raises(DeclarationError, match="most is"):
            PrivateMechanism.counts(most, queries, epsilon=1.0)
    with pytest.raises(DeclarationError, match="edges"):
        PrivateMechanism(loss=np.eye(2), edges=[[0, 2]], epsilon=1.0)
    with pytest.raises(DeclarationError, match="loss"):
        PrivateMechanism(loss=[1.0], edges=[[0, 0]], epsilon=1.0)
    with pytest.raises(DeclarationError, match="prior"):
        PrivateMechanism(loss=np.eye(2), edges=[[0, 1]], epsilon=1.0, prior=[0.5, 0.6])
    with pytest.raises(DeclarationError, match="geometric"):
        PrivateMechanism.counts(1, 2, epsilon=1.0).solve("geometric")
    with pytest.raises(DeclarationError, match="outputs, one an input"):
        PrivateMechanism(loss=np.ones((2, 3)), edges=[[0, 1]], epsilon=1.0).solve("randomized-response")
    broken = PrivateMechanism.counts(1, 1, epsilon=1.0).evaluate(np.eye(2))
    assert broken.violations["privacy"] == pytest.approx(1.0)


@pytest.mark.parametrize("backend", ["highs", "glop", "clarabel", "scip"])
def test_a_large_epsilon_does_not_amplify_the_errors_of_solvers(backend):
    # e^epsilon = 3e6 times a solver's tolerance is no small violation
    p = PrivateMechanism(
        loss=[[2, 1, 0, 2], [4, 0, 2, 2], [0, 2, 3, 3]], edges=[[1, 0], [1, 2]], epsilon=15.0, delta=0.9
    )
    s = p.solve(backend=backend)
    # multipliers of Clarabel may prove a bound just outside the tolerance: then it claims no optimum
    claims = (fo.Status.OPTIMAL, *[fo.Status.FEASIBLE] * (backend == "clarabel"))
    assert s.status in claims and s.evaluation.feasible
    assert s.objective == pytest.approx(1.8354e-7, abs=1e-5) and s.bound <= 1e-6
    p = LatticeNoise(queries=1, epsilon=11.8, delta=1e-3, radius=4)
    s = p.solve(backend=backend)
    assert s.status is fo.Status.OPTIMAL and s.evaluation.feasible


def test_the_scale_of_losses_does_not_matter():
    loss = np.array([[7.78, 8.88, 6.31], [3.56, 5.28, 2.27], [7.78, 1.70, 5.77]])
    p = PrivateMechanism(loss=loss, edges=[[0, 2], [1, 2]], epsilon=3.0, delta=0.1)
    for backend in ("highs", "clarabel"):
        value = p.solve(backend=backend).objective
        for scale in (1e-4, 1e4):
            s = p.replace(loss=scale * loss).solve(backend=backend)
            assert s.objective == pytest.approx(scale * value, rel=1e-5)
    free = p.replace(loss=np.zeros((3, 3))).solve()
    assert free.objective == 0


@pytest.mark.parametrize("seed", [159, 216, 463])
def test_large_epsilons_are_balanced_for_every_solver(seed):
    """Coefficients of e^-12 beside 1 made SCIP's linear solver fail."""
    rng = np.random.default_rng(seed)
    n, m = (int(v) for v in rng.integers(2, 5, 2))
    loss = rng.integers(0, 5, (n, m)).astype(float) if rng.random() < 0.6 else rng.random((n, m))
    edges = [(i, j) for i in range(n) for j in range(i)]
    p = PrivateMechanism(loss=loss, edges=edges, epsilon=12.0, delta=0.1)
    values = [p.solve("lp", backend=backend).objective for backend in ("highs", "scip", "glop")]
    assert values == pytest.approx([values[0]] * 3, abs=1e-7)


@pytest.mark.parametrize(
    ("queries", "radius", "epsilon"),
    [
        (1, 4, 15.0),
        (1, 7, 15.0),
        (2, 7, 15.0),
        (1, 100, 1.0),
        (1, 50, 3.0),
        (1, 200, 0.5),
        (1, 5, 12.0),
        (2, 5, 12.0),
    ],
)
def test_pure_privacy_has_an_optimum_however_far_the_law_falls(queries, radius, epsilon):
    # the law proportional to e^(-epsilon norm), which no box cuts off
    r = np.arange(0, radius + 800)
    points = (2.0 * r + 1) ** queries - np.maximum(2.0 * r - 1, 0) ** queries
    mass = points * np.exp(-epsilon * r)
    s = LatticeNoise(queries=queries, radius=radius, epsilon=epsilon).solve()
    assert s.status is fo.Status.OPTIMAL
    assert s.objective == pytest.approx(mass @ r / mass.sum(), rel=1e-7)


def test_a_box_of_too_many_orbits_is_refused_before_memory_ends():
    with pytest.raises(DeclarationError, match=r"radius is 200: 5 queries have .* at most 200,000"):
        LatticeNoise(queries=5, epsilon=1.0, radius=200)
    assert LatticeNoise(queries=2, epsilon=1.0, radius=200).orbits.shape == (20301, 2)
