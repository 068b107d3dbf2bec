import itertools

import numpy as np
import pytest
from census_oracle import matrices

from forcopt.data import Hierarchy
from forcopt.errors import DeclarationError
from forcopt.models import ConsistentRelease, EcologicalRegression, LevelBudget, StableDistrict
from forcopt.models.census_release import Region, noise_variances
from forcopt.models.census_release.district import square_leaves
from forcopt.privacy import Gaussian, Simulated

TREE = Hierarchy(parents=([0, 0], [0, 0, 1, 1, 1]))


# -- regions -----------------------------------------------------------------------------------------------


def test_weights_and_variances_of_a_region_off_the_spine():
    region = Region(TREE, [0, 2, 3])
    for found, expected in zip(region.weights(), [[7 / 12], [1 / 2, 2 / 3], [1, 0, 1, 1, 0]], strict=True):
        assert found == pytest.approx(expected)
    assert region.fragmentation() == pytest.approx(85 / 72)
    assert region.variance([1 / 5, 3 / 10, 1 / 2]) == pytest.approx(17273 / 162)
    assert Region(TREE, []).variance([1, 1, 1]) == 0
    everything = Region(TREE, range(5))
    assert everything.fragmentation() == 0 and everything.variance([0.5, 1, 1]) == pytest.approx(32)
    rest = Region(TREE, [1, 4])
    assert rest.fragmentation() == pytest.approx(region.fragmentation())


def test_squares_of_sixteen_blocks():
    """Four quads of four blocks: 2 x 2 squares by their corner, and the variances of three of them."""
    h = Hierarchy.homogeneous([4, 4])
    regions = [[Region(h, square_leaves(h, 2, i, j)) for j in range(3)] for i in range(3)]
    frag = [[0.75, 2.25, 0.75], [2.25, 3, 2.25], [0.75, 2.25, 0.75]]
    assert [[r.fragmentation() for r in row] for row in regions] == frag
    for region, variance in ((regions[0][0], 58.5), (regions[0][1], 166.5), (regions[1][1], 220.5)):
        assert region.variance([1 / 3] * 3) == pytest.approx(variance)


def test_the_joint_variance_is_that_of_generalized_least_squares():
    rng = np.random.default_rng(0)
    for _ in range(20):
        h = Hierarchy(parents=([0, 0, 0], [*rng.integers(0, 3, 5), 0, 1, 2]))
        epsilon = rng.uniform(0.2, 1, 3)
        v = noise_variances(epsilon)
        a = np.concatenate(matrices(h))
        w = np.repeat(1 / v, h.sizes)
        leaves = np.flatnonzero(rng.integers(0, 2, h.leaves))
        c = np.isin(np.arange(h.leaves), leaves).astype(float)
        best = float(c @ np.linalg.solve(a.T @ (w[:, None] * a), c))
        region = Region(h, leaves)
        assert region.variance(epsilon, "joint") == pytest.approx(best, rel=1e-9)
        assert best <= region.variance(epsilon) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("order", "estimator", "method"), [("joint", "joint", "tree-wls"), ("top-down", "top-down", "toydown")]
)
def test_variances_equal_a_simulation(order, estimator, method):
    """3,000 runs as types of one problem; the sample variance errs by less than 5 of its deviations."""
    rng, runs = np.random.default_rng(1), 3000
    epsilon = [0.2, 0.3, 0.5]
    noisy = tuple(rng.laplace(scale=2 / e, size=(n, runs)) for e, n in zip(epsilon, TREE.sizes, strict=True))
    p = ConsistentRelease(TREE, noisy, 1 / noise_variances(epsilon), order=order, nonnegative=False)
    region = Region(TREE, [0, 2, 3])
    errors = p.solve(method).decision.estimate(region)
    spread = np.std(errors**2) / np.sqrt(runs)
    assert abs((errors**2).mean() - region.variance(epsilon, estimator)) < 5 * spread


def test_other_noises_have_their_variances():
    assert noise_variances([1.0], noise="geometric") == pytest.approx([7.835396], rel=1e-6)
    for b, e, expected in ((0.9, 0.5, 39.339927), (0.9, 0.2, 246.746981), (0.1, 0.2, 19999.833334)):
        assert noise_variances(b * e, noise="geometric") == pytest.approx(expected)
    with pytest.raises(DeclarationError, match="must be above 0"):
        noise_variances(epsilon=[1.0, 0.0])


@pytest.mark.parametrize("leaves", [[5], [-1], [1, 1]])
def test_regions_must_be_of_leaves_named_once(leaves):
    with pytest.raises(DeclarationError):
        Region(TREE, leaves)


# -- budgets -----------------------------------------------------------------------------------------------


def test_published_splits():
    p = LevelBudget(Hierarchy.homogeneous([10, 10]), regions=([0],), epsilon=1.0)
    s = p.solve("closed-form")
    assert s.decision == pytest.approx([0.0380485, 0.1705107, 0.7914408], abs=1e-6)
    assert s.objective == pytest.approx(14.5237, abs=1e-4)
    assert p.evaluate([1 / 3] * 3).objective == pytest.approx(65.4552, abs=1e-4)
    q = LevelBudget(Hierarchy.homogeneous([4, 4]), regions=([0],), epsilon=1.0).solve("closed-form")
    assert q.objective == pytest.approx(23.227815, abs=1e-6)
    region = Region(p.hierarchy, [0])
    for shares, value in (([1 / 3] * 3, 65.3956), (s.decision, 12.3551), ([0.1, 0.1, 0.8], 12.2689)):
        assert region.variance(shares, "joint") == pytest.approx(value, abs=1e-3)
    assert region.variance([1e-6, 1e-6, 1], "joint") == pytest.approx(8, rel=1e-6)
    centre = LevelBudget(Hierarchy.homogeneous([4, 4]), regions=([3, 6, 9, 12],), epsilon=1.0)
    s = centre.solve("closed-form")
    assert s.objective == pytest.approx(49.762925, rel=1e-5) and "level 1" in s.message


@pytest.mark.parametrize("backend", ["clarabel", "scs"])
@pytest.mark.parametrize("budget", [{"epsilon": 0.7}, {"rho": 0.3}])
def test_cones_and_the_closed_form_agree(backend, budget):
    regions = ([0], [0, 1, 2, 3, 4], [5, 9, 13])
    p = LevelBudget(Hierarchy.homogeneous([4, 4]), regions=regions, **budget)
    assert p.solve("conic", backend=backend).objective == pytest.approx(
        p.solve("closed-form").objective, rel=1e-6 if backend == "clarabel" else 1e-3
    )


def grid(d, steps):
    for parts in itertools.combinations(range(1, steps), d - 1):
        yield np.diff([0, *parts, steps]) / steps


@pytest.mark.parametrize("criterion", ["max", "leximax"])
def test_the_largest_variance_equals_a_grid_search(criterion):
    p = LevelBudget(TREE, regions=([0], [0, 1], [0, 2, 3]), epsilon=1.0, criterion=criterion)
    s = p.solve("conic", backend="clarabel")
    best = min(p.evaluate(x).objective for x in grid(3, 120))
    assert best * (1 - 5e-3) <= s.objective <= best * (1 + 1e-6)


# -- districts ---------------------------------------------------------------------------------------------


def brute(p):
    n = p.hierarchy.leaves
    return min(p.evaluate(list(c)).objective for c in itertools.combinations(range(n), p.size))


@pytest.mark.parametrize("fans", [(2, 2), (3, 3), (2, 3, 2), (2, 2, 2)])
def test_the_dynamic_program_finds_the_best_district(fans):
    rng = np.random.default_rng(0)
    h = Hierarchy.homogeneous(fans)
    for size in range(1, h.leaves + 1):
        p = StableDistrict(h, budget=rng.uniform(0.2, 1, h.depth), size=size)
        s = p.solve("tree-dp")
        assert s.evaluation.feasible and s.objective == pytest.approx(brute(p))
        equal = p.replace(budget=[1 / h.depth] * h.depth)
        greedy = equal.solve("greedy", seed=size)
        assert greedy.evaluation.feasible
        assert greedy.evaluation.metrics["fragmentation"] == pytest.approx(
            equal.solve("greedy").evaluation.metrics["fragmentation"]
        )


def test_the_integer_program_finds_the_best_district():
    p = StableDistrict(TREE, budget=[0.2, 0.3, 0.5], size=3)
    s = p.solve("miqp", backend="scip", time_limit=30)
    assert s.objective == pytest.approx(brute(p), rel=1e-5)
    counted = Hierarchy(parents=TREE.parents, counts=[5, 9, 2, 4, 7])
    q = StableDistrict(counted, budget=[0.2, 0.3, 0.5], bounds=(12, 13))
    s = q.solve("miqp", backend="scip", time_limit=30)
    people = counted.counts[:, 0]
    best = min(
        q.evaluate(list(c)).objective
        for k in range(6)
        for c in itertools.combinations(range(5), k)
        if 12 <= people[list(c)].sum() <= 13
    )
    assert s.evaluation.feasible and s.objective == pytest.approx(best, rel=1e-5)


def test_squares_of_the_grid():
    h = Hierarchy.homogeneous([4, 4])
    frag = [[Region(h, square_leaves(h, 2, i, j)).fragmentation() for j in range(3)] for i in range(3)]
    assert frag == [[0.75, 2.25, 0.75], [2.25, 3, 2.25], [0.75, 2.25, 0.75]]
    p = StableDistrict(h, budget=[1 / 3] * 3, size=5)
    assert p.solve("greedy").evaluation.metrics["fragmentation"] == pytest.approx(91 / 64)
    with pytest.raises(DeclarationError, match="square number"):
        p.solve("square")


# -- regression --------------------------------------------------------------------------------------------

X, Y, VOTES = (0.1, 0.3, 0.6, 0.8, 0.9), (0.2, 0.35, 0.55, 0.7, 1.0), (200, 150, 120, 80, 4)


@pytest.mark.parametrize(
    ("weighting", "group", "complement"),
    [("all", 0.970133, 0.07854), ("filtered", 0.838793, 0.131897), ("weighted", 0.848473, 0.128513)],
)
def test_regressions_by_hand(weighting, group, complement):
    p = EcologicalRegression(X, Y, VOTES, weighting=weighting)
    for method in ("least-squares", "qp@highs", "qp@osqp", "qp@clarabel"):
        s = p.solve(method)
        assert (s.decision.group, s.decision.complement) == pytest.approx((group, complement), abs=1e-4)


def test_bounded_rates_stay_between_0_and_1():
    p = EcologicalRegression([0.1, 0.5, 0.9], [0.0, 0.4, 1.0], [10, 10, 10], bounded=True)
    s = p.solve("qp")
    assert s.evaluation.feasible and s.decision.complement == pytest.approx(0, abs=1e-6)
    best = min(p.evaluate([g, c]).objective for g in np.linspace(0, 1, 201) for c in np.linspace(0, 1, 201))
    assert s.objective == pytest.approx(best, abs=1e-3) and s.objective <= best + 1e-8
    with pytest.raises(DeclarationError, match="use qp"):
        p.solve("least-squares")


def test_bad_regressions_are_refused():
    with pytest.raises(DeclarationError, match="fewer than two different values"):
        EcologicalRegression([0.1, 0.5, 0.5], [0.1, 0.2, 0.3], [1, 20, 30], weighting="filtered")
    with pytest.raises(DeclarationError, match=r"votes\[1\] is -1"):
        EcologicalRegression([0.1, 0.5], [0.1, 0.2], [1, -1])
    with pytest.raises(DeclarationError, match=r"people\[1\] is 0: the share has no denominator"):
        EcologicalRegression.of_counts([1, 1, 1], [2, 0, 9], [0.5] * 3, [5] * 3)
    assert (
        len(EcologicalRegression.of_counts([1, 1, 1], [2, 0, 9], [0.5] * 3, [5] * 3, empty="drop").share) == 2
    )


def test_noise_in_the_shares_attenuates_the_line():
    """The slope shrinks by Var(x) / (Var(x) + s^2) = .480769; 200,000 points."""
    rng, n = np.random.default_rng(0), 200_000
    x = rng.uniform(0, 1, n)
    noisy = x + Gaussian(scale=0.3).sample(n, Simulated(1))
    fit = EcologicalRegression(noisy, 0.3 + 0.5 * x, np.ones(n)).solve("least-squares").decision
    assert (fit.group, fit.complement) == pytest.approx((0.670192, 0.429808), abs=3e-3)


def test_gaussian_noise_of_a_given_mean_error():
    """A mean absolute error of 15.957691 people a cell is that of the deviation 20."""
    cells = 15.957691 * np.sqrt(np.pi / 2)
    drawn = Gaussian(scale=cells).sample(400_000, Simulated(2))
    assert cells == pytest.approx(20, abs=1e-6) and np.abs(drawn).mean() == pytest.approx(15.9577, abs=0.1)


# -- hierarchies -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Hierarchy(parents=([0, 0], [0, 2])), "unit 1 of level 2 has parent 2"),
        (lambda: Hierarchy(parents=([0, 0], [0, 0])), "unit 1 of level 1 has no child"),
        (lambda: Hierarchy(parents=([0, 0],), counts=[1, -1]), "unit 1: a count is -1"),
        (lambda: Hierarchy(parents=([0, 0],), counts=[1, 0.5]), "must be an integer"),
        (lambda: Hierarchy.from_edges([("r", "a"), ("s", "a")]), "unit a has two parents"),
        (lambda: Hierarchy.from_edges([("r", "a"), ("b", "c"), ("c", "b")]), "hold a cycle"),
        (
            lambda: Hierarchy.from_edges([("r", "a"), ("r", "b")], {"r": 4, "a": 1, "b": 2}),
            "unit r: 4, its leaves 3",
        ),
        (lambda: Hierarchy.from_geoids(["48001", "48001"], lengths=(2, 5)), "codes: .48001. is in rows 0, 1"),
        (lambda: Hierarchy.homogeneous([2, 0]), "branching has 0"),
        (lambda: Hierarchy.homogeneous("ab"), "branching must be numbers"),
        (lambda: Hierarchy.homogeneous(3), r"branching has shape \(\)"),
        (lambda: Hierarchy(parents=([0, 0],), names=(("r",), ("a", "a"))), "level 1 are called 'a'"),
    ],
)
def test_bad_trees_are_refused(make, words):
    with pytest.raises(DeclarationError, match=words):
        make()


def test_units_without_votes_are_left_out_of_any_weighting():
    share, support, votes = [0.1, 0.5, 0.9, 0.9], [0.2, 0.4, 0.8, 0.0], [50.0, 40.0, 30.0, 0.0]
    kept = EcologicalRegression(share[:3], support[:3], votes[:3]).solve("least-squares").decision
    for fields in ({"weighting": "filtered", "more_than": -1.0}, {"weighting": "all"}):
        p = EcologicalRegression(share, support, votes, missing="drop", **fields)
        assert p.solve("least-squares").decision.group == pytest.approx(kept.group)


def test_counts_of_other_lengths_are_named():
    with pytest.raises(DeclarationError, match=r"people: the shape is \(3,\); it must be \(2,\)"):
        EcologicalRegression.of_counts([1, 2], [3, 4, 5], [0.5, 0.6, 0.7], [3, 4, 5])
