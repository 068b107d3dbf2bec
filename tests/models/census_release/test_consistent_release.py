from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from census_oracle import joint_real, joint_whole, matrices, top_down_whole
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.backends.registry import backends
from forcopt.data import Hierarchy
from forcopt.errors import DeclarationError
from forcopt.models import ConsistentRelease
from forcopt.models.census_release import Invariant, Measurement, measure
from forcopt.models.census_release.formulations import unit_steps
from forcopt.models.census_release.tree_integer import tree_certificate
from forcopt.privacy import ZCDP, Categories, Ledger, PoissonSample, PureDP, Schema, Table
from forcopt.status import Status

TREE = Hierarchy(
    parents=([0, 0], [0, 0, 1, 1, 1]), names=(("r",), ("A", "B"), ("A1", "A2", "B1", "B2", "B3"))
)
NOISY = ([103], [58, 44], [36, 20, 24, 13, 2])


@st.composite
def problems(draw, most_leaves=6, whole_noise=None, types=1):
    """Trees of up to four levels, single children, zeros, negative roots and single leaves among them."""
    parents, units = [], 1
    for _ in range(draw(st.integers(0, 3))):
        fans = [draw(st.integers(1, 3)) for _ in range(units)]
        if sum(fans) > most_leaves:
            fans = [1] * units
        parents.append(np.repeat(np.arange(units), fans))
        order = draw(st.permutations(range(sum(fans))))
        parents[-1] = parents[-1][list(order)]
        units = sum(fans)
    h = Hierarchy(parents=tuple(parents))
    value = st.integers(-8, 12) if whole_noise else st.integers(-64, 96).map(lambda k: k / 8)
    noisy = tuple(
        np.array([[draw(value) for _ in range(types)] for _ in range(size)], dtype=float) for size in h.sizes
    )
    precision = [draw(st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0])) for _ in range(h.depth)]
    zeros = [leaf for leaf in range(h.leaves) if draw(st.integers(0, 5)) == 0]
    return ConsistentRelease(h, noisy, precision, zeros=zeros)


RUNS = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))


@RUNS
@given(problems(most_leaves=12), st.booleans())
def test_joint_real_counts_are_the_least_squares_solution(p, nonnegative):
    p = p.replace(nonnegative=nonnegative)
    s = p.solve("tree-nnls" if nonnegative else "tree-wls")
    best, leaves = joint_real(p)
    assert s.status is fo.Status.OPTIMAL and s.evaluation.feasible
    assert s.objective == pytest.approx(best, rel=1e-9, abs=1e-9)
    assert np.allclose(s.decision.leaves[:, 0], leaves, atol=1e-7)


@RUNS
@given(problems(most_leaves=5, whole_noise=False), st.booleans(), st.integers(1, 4))
def test_joint_whole_counts_are_the_best_of_all(p, nonnegative, windows):
    p = p.replace(nonnegative=nonnegative, integer=True)
    s = p.solve("tree-integer")
    assert s.evaluation.feasible
    assert s.objective == pytest.approx(joint_whole(p)[0], rel=1e-9, abs=1e-9)
    c = s.certify()
    assert c.feasible and c.optimal and c.objective == c.bound
    assert float(c.objective) == pytest.approx(s.objective)
    assert p.solve("tree-integer", windows=windows).objective == pytest.approx(s.objective, rel=1e-12)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(problems(most_leaves=4, whole_noise=True))
def test_top_down_whole_counts_are_lexicographic(p):
    p = p.replace(integer=True, order="top-down")
    expected = top_down_whole(p, most=14)
    s = p.solve("network-lp")
    assert s.status is fo.Status.OPTIMAL, s.message
    assert np.allclose(p.residuals(s.decision), expected, atol=1e-5)


@RUNS
@given(problems(most_leaves=10), st.booleans())
def test_top_down_real_counts_meet_the_optimality_conditions(p, nonnegative):
    """Each level is the projection onto what the level before allows: by the conditions, unit by unit."""
    p = p.replace(order="top-down", nonnegative=nonnegative)
    s = p.solve("simplex" if nonnegative else "toydown")
    assert s.evaluation.feasible
    counts, h = s.decision.counts, p.hierarchy
    empty = [a[:, [i for i in range(h.leaves) if i not in p.zeros]].sum(axis=1) == 0 for a in matrices(h)]
    root = 0.0 if empty[0][0] else p.noisy[0][0, 0]
    assert counts[0][0, 0] == pytest.approx(max(root, 0) if nonnegative else root)
    for level in range(1, h.depth):
        for unit in range(h.sizes[level - 1]):
            kids = np.flatnonzero((h.parents[level - 1] == unit) & ~empty[level])
            x, y = counts[level][kids, 0], p.noisy[level][kids, 0]
            if not len(kids):
                continue
            moved = x - y
            positive = x > 1e-9 if nonnegative else np.ones(len(x), dtype=bool)
            if positive.any():
                assert np.ptp(moved[positive]) < 1e-8
                assert (moved[~positive] >= moved[positive].max() - 1e-8).all()


QP = ["highs", "clarabel", "osqp", "scs", "scip"]
LP = ["highs", "highs:simplex", "highs:ipm", "glop", "scip", "pyomo:glpk", "pyomo:cbc"]
READY = [name for name in LP if backends()[name].missing() is None]


def _random(seed, **fields):
    rng = np.random.default_rng(seed)
    h = Hierarchy(parents=([0, 0, 0], [*np.sort(rng.integers(0, 3, 4)).tolist(), 0, 1, 2]))
    noisy = tuple(rng.normal(5, 6, (size, 1)).round(2) for size in h.sizes)
    return ConsistentRelease(h, noisy, rng.uniform(0.5, 2, 3).round(2), **fields)


@pytest.mark.parametrize("backend", QP)
def test_every_backend_for_quadratic_programs_agrees(backend):
    for seed in range(3):
        p = _random(seed)
        s = p.solve("qp", backend=backend, time_limit=20)
        assert s.objective == pytest.approx(p.solve("tree-nnls").objective, rel=1e-4, abs=1e-4), s


@pytest.mark.parametrize("backend", LP)
@pytest.mark.parametrize("order", ["joint", "top-down"])
def test_every_backend_for_linear_programs_agrees(backend, order):
    for seed in range(3):
        p = _random(seed, integer=True, order=order)
        s = p.solve("network-lp", backend=backend, time_limit=20)
        assert s.status.has_solution and s.evaluation.feasible, s.message
        if order == "joint":
            assert s.objective == pytest.approx(p.solve("tree-integer").objective, rel=1e-6)
        else:
            other = p.solve("network-lp", backend="highs")
            assert np.allclose(p.residuals(s.decision), p.residuals(other.decision), rtol=1e-5)


def test_a_backend_that_ends_inside_a_face_is_told_of_vertices():
    s = fo.load("census/two-counties").solve("network-lp", backend="clarabel")
    assert s.status == "failed" and "violates wholeness" in s.message
    assert "take a backend that ends at one, by simplex or crossover, or milp" in s.message


def test_integer_programs_agree():
    for seed in range(3):
        p = _random(seed, integer=True)
        s = p.solve("milp", backend="scip", time_limit=20)
        assert s.objective == pytest.approx(p.solve("tree-integer").objective, rel=1e-6), s


@pytest.mark.parametrize("backend", ["clarabel", "highs", "osqp"])
@pytest.mark.parametrize("nonnegative", [True, False])
def test_top_down_quadratic_programs_are_solved_level_by_level(backend, nonnegative):
    for seed in range(4):
        p = _random(seed, order="top-down", nonnegative=nonnegative)
        s = p.solve("qp", backend=backend)
        exact = p.solve("simplex" if nonnegative else "toydown")
        assert s.status is fo.Status.OPTIMAL and s.evaluation.feasible
        assert s.objective == pytest.approx(exact.objective, rel=1e-6, abs=1e-6)
        assert np.allclose(s.decision.leaves, exact.decision.leaves, atol=1e-3)
        assert s.bound <= exact.objective * (1 + 1e-6) + 1e-6


@pytest.mark.parametrize("nonnegative", [True, False])
def test_top_down_integer_programs_have_bounds_on_all_levels(nonnegative):
    """SCIP left its range of numbers, or its time limit, on stages of whole counts without bounds."""
    for seed in (0, 2, 5, 6, 11):
        rng = np.random.default_rng(seed)
        h = Hierarchy(parents=([0, 0], [0, 1, rng.integers(0, 2)]))
        noisy = tuple(rng.integers(-8, 12, size) / (1 + seed % 2) for size in h.sizes)
        weights = rng.choice([0.25, 0.5, 1.0, 2.0, 3.0], 3)
        p = ConsistentRelease(h, noisy, weights, integer=True, order="top-down", nonnegative=nonnegative)
        s, other = p.solve("milp", backend="scip", time_limit=60), p.solve("network-lp")
        assert s.status is fo.Status.OPTIMAL, s.message
        assert np.allclose(p.residuals(s.decision), p.residuals(other.decision), rtol=1e-5, atol=1e-4)


def test_top_down_bounds_are_on_the_sum_of_all_levels():
    """They were on the root's squares alone: the gap of an optimal release was near 1."""
    for seed in range(4):
        p = _random(seed, order="top-down", integer=True)
        for method in ("network-lp", "milp"):
            s = p.solve(method)
            assert s.status is fo.Status.OPTIMAL and s.bound == s.objective and s.gap == 0
        real = p.replace(integer=False).solve("qp")
        assert real.bound == pytest.approx(real.objective, rel=1e-6)
        cut = p.solve("milp", time_limit=0.0)
        assert cut.decision is None or cut.bound <= s.objective + 1e-6


def test_further_constraints_move_whole_counts_away_from_their_bounds():
    """The bounds of every optimum of the problem alone cut off those of a model with more rows."""
    for order in ("joint", "top-down"):
        p = ConsistentRelease(TREE, NOISY, [1, 1, 1], integer=True, order=order)
        model = fo.Model()
        handles = p.declare(model, "milp", reach=130)
        model.subject_to(handles.counts[-1][2, 0] >= 120)
        model.optimize(handles.objective if order == "top-down" else fo.minimize(handles.objective))
        found = model.solve("scip", time_limit=60)
        assert found.status is fo.Status.OPTIMAL, found.message
        leaves = handles.decision(found).leaves[:, 0]
        assert leaves[2] == 120 and (leaves[3:] == 0).all()


def test_top_down_order_holds_query_counts_and_not_types():
    """The root fixes the sum of two types only; the leaves choose how it is split."""
    h = Hierarchy(parents=([0, 0],))
    p = ConsistentRelease(
        h, ([9], [4, 8]), [1, 1], order="top-down", workload=[[1, 1]], invariants=(Invariant(1, 0, 3, (0,)),)
    )
    s = p.solve("qp")
    assert s.status is fo.Status.OPTIMAL and s.objective == pytest.approx(5, abs=1e-6)
    assert s.decision.counts[1].sum(axis=1) == pytest.approx([3, 6], abs=1e-4)  # 2.5 is below type 0
    q = p.replace(extra=({"leaves": [1], "noisy": [5.0], "precision": 2.0},), invariants=())
    # Leaves x and 9 - x: (x - 4)^2 + (1 - x)^2 + 2 (4 - x)^2 is least at x = 3.25.
    t = q.solve("qp")
    assert t.status is fo.Status.OPTIMAL
    assert t.decision.counts[1].sum(axis=1) == pytest.approx([3.25, 5.75], abs=1e-4)


@pytest.mark.parametrize("order", ["joint", "top-down"])
def test_millions_of_people_leave_solvers_their_digits(order):
    """Programs about the noisy counts themselves lost all digits to the squares of large counts."""
    rng = np.random.default_rng(0)
    h = Hierarchy(parents=([0] * 4, np.repeat(np.arange(4), 5)))
    true = h.sums(rng.integers(100_000, 3_000_000, 20)[:, None])
    p = ConsistentRelease(h, tuple(x + rng.normal(0, 9, x.shape) for x in true), [0.01] * 3, order=order)
    exact = p.solve("tree-nnls" if order == "joint" else "simplex").objective
    for backend in ("clarabel", "highs", "osqp"):
        s = p.solve("qp", backend=backend)
        assert s.status is fo.Status.OPTIMAL and s.objective == pytest.approx(exact, rel=1e-6)


def test_whole_counts_of_any_sign_have_bounds():
    """SCIP gave up on integers without bounds where queries share types."""
    p = ConsistentRelease(
        Hierarchy(parents=()),
        ([[4.125, 3.0]],),
        [0.125],
        workload=[[0, 1], [1, 1]],
        nonnegative=False,
        integer=True,
    )
    s = p.solve("milp", time_limit=20)
    assert s.status is fo.Status.OPTIMAL and s.objective == pytest.approx(0.125 * 0.125**2, abs=1e-9)


def _nested(rng):
    """The level problem of TopDown: the types of the root are invariant; queries form a random tree."""
    types, kids = int(rng.integers(2, 6)), int(rng.integers(2, 5))
    cut = np.sort(rng.choice(np.arange(1, types), size=int(rng.integers(0, types - 1)), replace=False))
    rows = [np.eye(types, dtype=int)[i] for i in range(types)]
    rows += [
        np.isin(np.arange(types), part).astype(int)
        for part in np.split(np.arange(types), cut)
        if len(part) > 1
    ]
    rows += [np.ones(types, dtype=int)]
    queries = np.unique(np.array(rows), axis=0)
    totals = rng.integers(0, 7, types)
    h = Hierarchy(parents=([0] * kids,))
    noisy = (queries @ totals, rng.normal(2, 3, (kids, len(queries))).round(1))
    fixed = tuple(Invariant(0, 0, int(v), (t,)) for t, v in enumerate(totals))
    weights = rng.uniform(0.2, 3, (2, len(queries))).round(2)
    return ConsistentRelease(
        h, (noisy[0][None], noisy[1]), weights, workload=queries, invariants=fixed, integer=True
    )


def test_the_level_problem_with_nested_queries_has_whole_vertices():
    rng = np.random.default_rng(7)
    for _ in range(150):
        p = _nested(rng)
        assert p.is_network
        model = fo.Model()
        handles = unit_steps_about_noise(p, model)
        model.minimize(handles.objective)
        said = model.solve("highs:simplex")
        leaves = said[handles.counts[-1]]
        assert np.abs(leaves - np.round(leaves)).max() < 1e-6


def unit_steps_about_noise(p, model):
    import forcopt.models.census_release.formulations as formulations

    total = p.noisy[0]
    kept = formulations.real_optimum
    pseudo = np.linalg.pinv(p.queries.T.astype(float))
    formulations.real_optimum = lambda _: tuple(np.maximum(level, 0) @ pseudo for level in p.noisy)
    try:
        return unit_steps(p, model, reach=int(total.max()) + 2)
    finally:
        formulations.real_optimum = kept


def test_nested_level_problems_equal_the_integer_program():
    rng = np.random.default_rng(3)
    for _ in range(6):
        p = _nested(rng)
        lp, whole = p.solve("network-lp", reach=6), p.solve("milp", backend="scip", time_limit=20)
        assert lp.evaluation.feasible and lp.objective == pytest.approx(whole.objective, rel=1e-5)


def _crossing():
    cells = [
        [0.8, 0.7, 0.6, 0.2, 0.5, 0.9, 0.6, 0.1, 0.5],
        [0.5, 0.5, 0.4, 0.8, 0.5, 0.9, 1.0, 0.9, 0.8],
        [0, 0, 0.2, 0.5, 0.3, 0.1, 0.9, 0.4, 0.2],
    ]
    types = np.arange(9)
    rows = np.array([types // 3 == r for r in range(3)] + [types % 3 == c for c in range(3)]).astype(int)
    queries = np.concatenate([np.eye(9, dtype=int), rows])
    noisy = np.concatenate([np.array(cells), np.ones((3, 6))], axis=1)
    weights = np.array([[1.0] * 9 + [20.0] * 6] * 2)
    fixed = tuple(Invariant(0, 0, 1, (t,)) for t in range(9))
    root = queries @ np.ones(9)
    return ConsistentRelease(
        Hierarchy(parents=([0, 0, 0],)),
        (root[None], noisy),
        weights,
        workload=queries,
        invariants=fixed,
        integer=True,
    )


def test_crossing_queries_leave_a_gap():
    p = _crossing()
    assert not p.is_network
    with pytest.raises(DeclarationError, match="not known to be a network"):
        p.solve("network-lp")
    model = fo.Model()
    handles = unit_steps(p, model)
    model.minimize(handles.objective)
    assert model.solve().objective * handles.unit == pytest.approx(7.52, abs=1e-6)
    # each of nine people is in one of three children: all ways
    from itertools import product

    rows = p.queries.T
    best = np.inf
    for where in product(range(3), repeat=9):
        counts = np.zeros((3, 9))
        counts[list(where), range(9)] = 1
        best = min(best, float((((counts @ rows) - p.noisy[1]) ** 2 @ p.weights[1]).sum()))
    assert best == pytest.approx(7.82)


# -- worked examples ---------------------------------------------------------------------------------------


def test_the_unequal_tree():
    p = ConsistentRelease(TREE, NOISY, [1, 1, 1], order="top-down", nonnegative=False)
    leaves = [Fraction(149, 4), Fraction(85, 4), Fraction(155, 6), Fraction(89, 6), Fraction(23, 6)]
    s = p.solve("toydown")
    assert np.allclose(s.decision.leaves[:, 0], [float(v) for v in leaves])
    assert s.objective == pytest.approx(13.708333, abs=1e-6)
    assert s.decision.estimate([0, 2, 3])[0] == pytest.approx(70 + 95 / 12)
    joint = p.replace(order="joint").solve("tree-wls")
    assert joint.objective == pytest.approx(11.10344828)


def test_projections_and_whole_children():
    for noisy, total, best in (
        ([5, -3, 1], 4, [4, 0, 0]),
        ([5, 1, 1], 4, [4, 0, 0]),
        ([2, -4, -1, 3], 4, [1.5, 0, 0, 2.5]),
    ):
        h = Hierarchy.homogeneous([len(noisy)])
        s = ConsistentRelease(h, ([total], noisy), [1, 1], order="top-down").solve("simplex")
        assert np.allclose(s.decision.leaves[:, 0], best)
    h = Hierarchy.homogeneous([4])
    fixed = (Invariant(0, 0, 5),)
    p = ConsistentRelease(h, ([5], [1.4, 0.9, -0.8, 2.2]), [1, 1], invariants=fixed)
    assert p.solve("tree-nnls").objective == pytest.approx(0.723333, abs=1e-6)
    s = p.replace(integer=True).solve("tree-integer")
    assert s.decision.leaves[:, 0].tolist() == [2, 1, 0, 2] and s.objective == pytest.approx(1.05)


def test_an_overlapping_workload():
    queries = [*np.eye(4, dtype=int).tolist(), [1, 1, 0, 0], [0, 0, 1, 1]]
    noisy = [[3.3, -0.6, 1.7, 2.4, 4.9, 2.1]]
    p = ConsistentRelease(
        Hierarchy(), (noisy,), [1.0], workload=queries, invariants=(Invariant(0, 0, 7),), integer=True
    )
    assert p.is_network
    for method in ("milp@scip", "network-lp"):
        s = p.solve(method)
        assert s.decision.leaves[0].round(6).tolist() == [4, 0, 1, 2] and s.objective == pytest.approx(3.12)
    assert p.replace(integer=False).solve("qp").objective == pytest.approx(2.95, abs=1e-5)


def test_invariants_hold_and_match_the_quadratic_program():
    rng = np.random.default_rng(5)
    h = Hierarchy(parents=([0, 0, 0], [0, 0, 1, 1, 1, 2]))
    for _ in range(10):
        noisy = tuple(rng.normal(6, 6, size).round(1) for size in h.sizes)
        fixed = (
            Invariant(0, 0, 20),
            Invariant(1, 1, int(rng.integers(0, 8))),
            Invariant(2, 0, int(rng.integers(0, 5))),
        )
        p = ConsistentRelease(h, noisy, [1, 0.5, 2], invariants=fixed, zeros=[5])
        for nonnegative, method in ((True, "tree-nnls"), (False, "tree-wls")):
            q = p.replace(nonnegative=nonnegative)
            s = q.solve(method)
            assert s.evaluation.feasible
            assert s.objective == pytest.approx(q.solve("qp").objective, rel=1e-5, abs=1e-5)
        q = p.replace(integer=True)
        s = q.solve("tree-integer")
        assert s.evaluation.feasible and s.certify().optimal
        assert s.objective == pytest.approx(q.solve("network-lp").objective, rel=1e-6)
        q = p.replace(order="top-down")
        s = q.solve("simplex")
        assert s.evaluation.feasible and s.decision.counts[0][0, 0] == 20


def test_regions_off_the_spine():
    off = Measurement(leaves=[1, 2], noisy=[50], precision=4.0)
    p = ConsistentRelease(TREE, NOISY, [1, 1, 1], extra=(off,))
    a = np.concatenate([*matrices(TREE), [[0, 2, 2, 0, 0]]])
    y = np.concatenate([*NOISY, [100]])
    best = np.linalg.lstsq(a, y, rcond=None)
    assert p.solve("qp").objective == pytest.approx(float(best[1][0]), rel=1e-5)
    with pytest.raises(DeclarationError, match="off the spine: use qp"):
        p.solve("tree-nnls")


# -- baselines ---------------------------------------------------------------------------------------------


def test_clipping_breaks_sums_and_rounding_keeps_them():
    p = ConsistentRelease(Hierarchy.homogeneous([3]), ([2], [4, -3, 0]), [1, 1], nonnegative=True)
    clipped = p.solve("clip")
    assert any(name.startswith("additivity") for name in clipped.evaluation.violations)
    for seed in range(20):
        q = _random(seed, integer=True)
        best = q.solve("tree-integer").objective
        s = q.solve("largest-remainder")
        assert s.evaluation.feasible and s.objective >= best - 1e-9


def test_a_level_leaves_what_invariants_below_need():
    """The children's invariants need more people than the level above would give their parent."""
    fixed = (Invariant(2, "A1", 40), Invariant(2, "A2", 30))
    p = ConsistentRelease(TREE, NOISY, [1, 1, 1], order="top-down", integer=True, invariants=fixed)
    whole, free = p.solve("network-lp", reach=20), p.replace(invariants=()).solve()
    assert whole.evaluation.feasible and whole.decision.counts[1][0, 0] == 70 > free.decision.counts[1][0, 0]


# -- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"noisy": ([1], [1, 2])}, "noisy has 2 levels; the tree has 3"),
        ({"noisy": ([1], [1, 2], [1, 2, 3])}, "noisy counts, level 2"),
        ({"precision": [1, 0, 1]}, "precision of level 1 is 0"),
        ({"precision": [1, 1]}, "precision has shape"),
        ({"workload": [[1], [1]]}, "workload must have 1 rows"),
        ({"invariants": (Invariant(0, "r", 1.5),), "integer": True}, "1.5 is not whole"),
        ({"invariants": (Invariant(1, "C", 1),)}, "no unit named 'C'"),
        ({"zeros": [5]}, "zeros has 5; it names leaves by position, 0 to 4"),
        ({"extra": [Measurement([-1], [3], 1)]}, r"extra\.0\.leaves has -1"),
        ({"extra": [Measurement([1, 1], [3], 1)]}, r"extra\.0\.leaves names leaf 1 twice"),
    ],
)
def test_bad_declarations_are_refused(fields, words):
    given = {"hierarchy": TREE, "noisy": NOISY, "precision": [1, 1, 1], **fields}
    with pytest.raises(DeclarationError, match=words):
        ConsistentRelease(**given)


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ({"epsilon": [1, 0, 1]}, r"epsilon\[1\] is 0; it must be above 0"),
        ({"epsilon": [-1, 1, 1]}, r"epsilon\[0\] is -1"),
        ({"epsilon": [np.nan, 1, 1]}, r"epsilon\[0\] is nan"),
        ({"rho": [1, 1, 0]}, r"rho\[2\] is 0"),
        ({"epsilon": [1, 1]}, r"epsilon: the shape is \(2,\)"),
        ({"epsilon": [1, 1, 1], "rho": [1, 1, 1]}, "either epsilon or rho"),
        ({}, "either epsilon or rho"),
        ({"rho": [1, 1, 1], "noise": "laplace"}, "for rho the noise is discrete Gaussian"),
        ({"epsilon": [1, 1, 1], "workload": np.zeros((0, 1))}, r"workload has shape \(0, 1\)"),
        ({"epsilon": [1, 1, 1], "workload": [[1, 1]]}, r"workload has shape \(1, 2\)"),
    ],
)
def test_bad_budgets_are_refused(budget, words):
    with pytest.raises(DeclarationError, match=words):
        measure(Hierarchy.homogeneous([2, 2], counts=[1, 2, 3, 4]), seed=0, **budget)


def test_a_query_twice_is_refused():
    with pytest.raises(DeclarationError, match="queries 0 and 1 of the workload are the same"):
        ConsistentRelease(Hierarchy(), ([[1, 2]],), [1], workload=[[1, 1], [1, 1]])


@pytest.mark.parametrize("order", ["joint", "top-down"])
@pytest.mark.parametrize("integer", [True, False])
def test_contradicting_invariants_are_infeasible_in_every_method(order, integer):
    h = Hierarchy.from_geoids(["480010001", "481130001", "481130002"], lengths=(2, 5, 9))
    fixed = (Invariant(1, "48113", 10), Invariant(2, "481130001", 7), Invariant(2, "481130002", 5))
    for nonnegative in (True, False):
        p = ConsistentRelease(
            h,
            ([20], [9, 11], [9, 6, 6]),
            [1, 1, 1],
            invariants=fixed,
            order=order,
            integer=integer,
            nonnegative=nonnegative,
        )
        assert p.infeasibility_reason() == "unit 48113: 10, its children 12"
        solved = 0
        for method in [None, *p.methods]:
            try:
                s = p.solve(method)
            except DeclarationError:
                assert method is not None
                continue
            solved += 1
            assert s.status is fo.Status.INFEASIBLE and s.reason == "unit 48113: 10, its children 12", method
        assert solved >= 4


TWO = Hierarchy(parents=([0, 0],))
TYPES = ([[5.0, 5.0]], [[2.0, 3.0], [3.0, 2.0]])


@pytest.mark.parametrize(
    ("invariants", "words"),
    [
        # A unit twice, by one type and by several.
        ([(0, 0, 5, (0,)), (0, 0, 6, (0,))], "unit 0: 6 and 5"),
        ([(0, 0, 5, (0, 1)), (0, 0, 6, ())], "unit 0: 5 and 6"),
        # The sum of the types against the types.
        ([(1, 0, 5, ()), (1, 0, 3, (0,)), (1, 0, 3, (1,))], "unit 0: 5 over types 0, 1, which have 6"),
        ([(0, 0, 3, ()), (1, 0, 2, (0,)), (1, 1, 2, (1,))], "unit 0: 3 over types 0, 1, which have 4"),
        # The children's sums of types against the root's types.
        ([(0, 0, 5, (0,)), (0, 0, 5, (1,)), (1, 0, 4, ()), (1, 1, 4, ())], "unit 0: 10, its children 8"),
        ([(1, 0, -1, (0,))], "unit 0: -1, which is below 0"),
    ],
)
def test_invariants_of_several_types_name_the_unit(invariants, words):
    p = ConsistentRelease(TWO, TYPES, [1, 1], invariants=[Invariant(*item) for item in invariants])
    assert p.infeasibility_reason() == words
    for q in (p, p.replace(integer=True), p.replace(order="top-down")):
        s = q.solve()
        assert s.status is fo.Status.INFEASIBLE and s.reason == words


def test_no_zeros_may_be_said_by_none():
    p = ConsistentRelease(TREE, NOISY, [1, 1, 1], zeros=None)
    assert p == ConsistentRelease(TREE, NOISY, [1, 1, 1]) and not len(p.zeros)


def test_the_wrong_method_names_the_right_one():
    p = ConsistentRelease(TREE, NOISY, [1, 1, 1])
    with pytest.raises(DeclarationError, match="nonnegative is True; it must be False: use tree-nnls"):
        p.solve("tree-wls")
    with pytest.raises(DeclarationError, match="integer is False"):
        p.solve("tree-integer")
    with pytest.raises(DeclarationError, match="order is 'joint'"):
        p.solve("simplex")


def test_a_negative_root_gives_zeros():
    h = Hierarchy.homogeneous([2, 2])
    p = ConsistentRelease(h, ([-3], [1, 2], [0, 1, 1, 0]), [1, 1, 1], order="top-down")
    assert not p.solve("simplex").decision.leaves.any()
    p = p.replace(integer=True)
    assert not p.solve("network-lp").decision.leaves.any()


def test_a_certificate_refutes_a_worse_release():
    p = ConsistentRelease(TREE, NOISY, [1, 1, 1], integer=True)
    best = p.solve("tree-integer").decision.leaves
    for step in ([1, 0, 0, 0, 0], [0, -1, 0, 0, 1], [3, 0, -3, 0, 0]):
        counts = p.read(best[:, 0] + np.array(step))
        c = tree_certificate(p, counts)
        assert c.feasible and c.optimal is (p.evaluate(counts).objective == 12)


def test_private_counts_stay_out_of_the_problem():
    h = Hierarchy.homogeneous([2, 2], counts=[101, 202, 303, 404])
    p = measure(h, [1.0, 1.0, 1.0], seed=0)
    assert p.hierarchy.counts is None and "303" not in repr(p.to_dict()["hierarchy"])
    again = ConsistentRelease.from_dict(p.to_dict())
    assert again == p
    assert p.solve("tree-nnls").decision.to_pandas().shape == (7, 3)
    noisy = measure(h, rho=[0.5] * 3, seed=1)
    assert noisy.precision.ravel() == pytest.approx([0.5] * 3)


def test_time_limits_are_kept():
    h = Hierarchy.homogeneous([10, 10])
    rng = np.random.default_rng(0)
    p = ConsistentRelease(h, tuple(rng.normal(5, 3, n) for n in h.sizes), [1, 1, 1])
    for q, method in ((p, "tree-nnls"), (p.replace(integer=True), "tree-integer")):
        s = q.solve(method, time_limit=0.0)
        assert s.status is fo.Status.LIMIT and s.decision is None


def test_a_quadratic_program_on_which_highs_cycles_is_asked_again():
    h = Hierarchy([[0, 0], [0, 1, 1], [0, 1, 2]])
    noisy = [[8.0], [0.0, 0.0], [0.0] * 3, [0.0] * 3]
    p = ConsistentRelease(h, noisy, [0.25] * 4, order="top-down", integer=False, zeros=[0])
    s = p.solve("qp", backend="highs")
    assert s.status is fo.Status.OPTIMAL and s.objective == pytest.approx(32)  # by level: 0, 16, 8, 8


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(problems(most_leaves=4, whole_noise=True), st.data())
def test_all_methods_and_backends_agree_with_brute_force(p, data):
    """Real and whole, both orders, both signs: algorithms, and each formulation by one of its backends."""
    order = data.draw(st.sampled_from(["joint", "top-down"]))
    integer, nonnegative = data.draw(st.booleans()), data.draw(st.booleans())
    p = p.replace(order=order, integer=integer, nonnegative=nonnegative)
    if integer:
        # Interior points round, and CBC may call a later stage infeasible: it ends without a proof.
        late = ("highs:ipm", "pyomo:cbc") if order == "top-down" else ()
        lp = [name for name in READY if name not in late]
        methods = [("network-lp", data.draw(st.sampled_from(lp))), ("milp", "scip")]
        methods += [("tree-integer", None)] if order == "joint" else []
    else:
        tree = (
            {True: "tree-nnls", False: "tree-wls"}
            if order == "joint"
            else {True: "simplex", False: "toydown"}
        )
        methods = [
            ("qp", data.draw(st.sampled_from(["highs", "clarabel", "osqp", "scip"]))),
            (tree[nonnegative], None),
        ]
    found = []
    for method, backend in methods:
        s = p.solve(method, **({"backend": backend} if backend else {}))
        assert s.status is fo.Status.OPTIMAL, (method, backend, s.message)
        assert s.evaluation.feasible, (method, backend, s.evaluation)
        found.append(np.array(p.residuals(s.decision)))
    if order == "joint":
        best = (joint_whole(p, reach=3) if integer else joint_real(p))[0]
        for (method, backend), levels in zip(methods, found, strict=True):
            assert levels.sum() == pytest.approx(best, rel=1e-4, abs=1e-4), (method, backend)
        return
    reference = 0 if integer else -1
    expected = np.array(top_down_whole(p, most=14)) if integer and nonnegative else found[reference]
    for (method, backend), levels in zip(methods, found, strict=True):
        assert np.allclose(levels, expected, rtol=1e-3, atol=2e-3), (
            method,
            backend,
            levels,
            expected,
        )


# -- scales ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["joint", "top-down"])
@pytest.mark.parametrize("scale", [2.0**-30, 2.0**-4, 2.0**30])
def test_real_counts_in_any_unit_have_the_optimum_of_ordinary_ones(order, scale):
    tree = Hierarchy(parents=([0, 0], [0, 0, 1, 1, 1]))
    noisy = ([11.0], [6.0, -2.0], [5.0, 0.5, -1.0, 2.0, 0.0])
    at_leaf = Invariant(2, 3, 1.5 * scale)
    p = ConsistentRelease(
        tree,
        tuple(np.array(level) * scale for level in noisy),
        precision=[4.0, 2.0, 1.0],
        order=order,
        invariants=(at_leaf,),
    )
    best = p.solve("tree-nnls" if order == "joint" else "simplex")
    assert best.decision.leaves.sum() > 5 * scale
    for backend in ("highs", "clarabel", "scip"):
        s = p.solve("qp", backend=backend)
        assert s.evaluation.feasible
        if s.status is not fo.Status.OPTIMAL:
            assert backend == "highs"  # whose quadratic solver may cycle
            assert s.bound <= best.objective * (1 + 1e-6)
            continue
        assert s.objective == pytest.approx(best.objective, rel=1e-3)
        assert s.bound <= s.objective * (1 + 1e-5) and s.bound == pytest.approx(best.objective, rel=1e-3)


def test_an_invariant_is_kept_up_to_the_rounding_of_its_sum():
    tree = Hierarchy(parents=([0, 0, 0],))
    p = ConsistentRelease(tree, ([3e9], [1e9, 1e9, 1e9]), [1, 1], invariants=(Invariant(0, 0, 3e9),))
    leaves = np.array([1e9, 1e9, 1e9])
    assert p.evaluate(leaves * (1 + 2e-14)).feasible
    assert not p.evaluate(leaves + 1).feasible
    small = p.replace(noisy=([3.0], [1.0, 1.0, 1.0]), invariants=(Invariant(0, 0, 3.0),))
    assert not small.evaluate([1.0, 1.0, 1.00001]).feasible


@pytest.mark.parametrize("backend", ["highs", "glop", "scip"])
@pytest.mark.parametrize("precision", [[0.5, 0.25], [1.0, 0.5], [3.0, 1.0]])
def test_a_linear_program_with_ties_ends_at_a_vertex(backend, precision):
    """Half of the way between two vertices costs the same in the linear program, and is not whole."""
    p = ConsistentRelease(
        Hierarchy.homogeneous([2]), ([[0.0]], [[0.0], [-1.0]]), precision, nonnegative=False, integer=True
    )
    s = p.solve("network-lp", backend=backend)
    assert s.status is fo.Status.OPTIMAL
    assert s.objective == pytest.approx(p.solve("tree-integer").objective)


def _steps_off(p, decision, best):
    """By level, how many tenths squared the decision is worse than `best`; noisy counts have one decimal."""
    found = []
    for counts, noisy, level in zip(decision.counts, p.noisy, matrices(p.hierarchy), strict=True):
        tenths = np.round(10 * noisy[:, 0]).astype(int)
        mine = ((10 * counts[:, 0].astype(int) - tenths) ** 2).sum()
        found.append(int(mine - ((10 * level.astype(int) @ best - tenths) ** 2).sum()))
    return found


@pytest.mark.parametrize("backend", ["highs", "glop", "scip"])
@pytest.mark.parametrize("power", [-9, -7, -6, 6, 7, 9])
def test_whole_counts_are_optimal_for_precisions_in_any_ratio(power, backend):
    rng, tree = np.random.default_rng(abs(power)), Hierarchy(parents=([0] * 4,))
    points = np.array(list(product(range(9), repeat=4)))
    for _ in range(4):
        noisy = [float(rng.integers(2, 9))], np.round(rng.normal(1.5, 1.5, 4), 1)
        root = (10 * points.sum(axis=1) - round(10 * noisy[0][0])) ** 2
        leaves = ((10 * points - np.round(10 * noisy[1]).astype(int)) ** 2).sum(axis=1)
        heavy = 10 ** abs(power)
        joint = points[np.argmin(root + heavy * leaves if power > 0 else heavy * root + leaves)]
        p = ConsistentRelease(tree, noisy, precision=[1.0, 10.0**power], integer=True)
        s = p.solve("network-lp", backend=backend)
        off = _steps_off(p, s.decision, joint)
        assert s.status is Status.OPTIMAL
        assert (off[0] + heavy * off[1] if power > 0 else heavy * off[0] + off[1]) == 0
        first = points[np.lexsort((leaves, root))[0]]
        for precision in ([1.0, 10.0**power], [10.0**power, 1.0]):
            q = p.replace(order="top-down", precision=precision)
            s = q.solve("network-lp", backend=backend)
            assert s.status is Status.OPTIMAL
            assert _steps_off(q, s.decision, first) == [0, 0]


def test_integer_programs_in_top_down_order_take_precisions_in_any_ratio():
    p = ConsistentRelease(
        Hierarchy(parents=([0] * 4,)), ([5], [1.4, 0.9, -0.8, 2.2]), precision=[1e-9, 1], integer=True
    )
    s = p.replace(order="top-down").solve("milp", backend="scip")
    assert s.decision.leaves.ravel().tolist() == [2, 1, 0, 2]


@pytest.mark.parametrize("method", ["network-lp", "tree-integer"])
@pytest.mark.parametrize("each", [0.6, 0.4, 1.7, 2.3])
def test_windows_grow_to_both_sides_where_the_whole_optimum_lies_far_from_the_real_one(each, method):
    """A hundred leaves are rounded to one side, so that the root lies up to forty from its noisy count."""
    p = ConsistentRelease(
        Hierarchy(parents=([0] * 100,)), ([100 * each], [each] * 100), precision=[1e-6, 1.0], integer=True
    )
    s, low = p.solve(method), np.floor(each)
    more = np.arange(101)
    root = 1e-6 * (100 * each - 100 * low - more) ** 2
    best = (root + more * (low + 1 - each) ** 2 + (100 - more) * (each - low) ** 2).min()
    assert s.status is Status.OPTIMAL
    assert s.objective == pytest.approx(best, rel=1e-9)


def test_a_window_that_is_given_is_not_widened():
    p = ConsistentRelease(
        Hierarchy(parents=([0] * 20,)), ([12], [0.6] * 20), precision=[1e-6, 1.0], integer=True
    )
    with pytest.raises(DeclarationError, match="beyond its window; give reach="):
        p.solve("network-lp", reach=2)


def people(leaves, **fields):
    return Table({"tract": leaves}, Schema(tract=Categories("a", "b", "c")), **fields)


TRACTS = Hierarchy(parents=([0, 0], [0, 0, 1]), names=(("all",), ("A", "B"), ("b", "a", "c")))


@pytest.mark.parametrize(
    ("query", "tree", "words"),
    [
        (people("a").count(), TRACTS, "it must be grouped by leaves"),
        (people("a").group_by("tract").count(), None, "tree is missing"),
        (
            people("a").group_by("tract").count(),
            Hierarchy(parents=([0, 0],)),
            "the tree has 2 leaves, column",
        ),
        (
            people("a").group_by("tract").linear([[1, 1, 1]]),
            TRACTS,
            r"must be table.group_by\(leaf, ...\).count",
        ),
        (
            people("a", design=PoissonSample(rate=0.5)).group_by("tract").count(),
            TRACTS,
            "another sample for each level",
        ),
    ],
)
def test_a_query_that_is_no_count_of_leaves_is_refused_and_spends_nothing(query, tree, words):
    ledger = Ledger(PureDP(9.0))
    with pytest.raises(DeclarationError, match=words):
        measure(query, [1.0, 1.0, 1.0], tree=tree, ledger=ledger)
    with pytest.raises(DeclarationError, match="order is 'nope'"):
        measure(people("a").group_by("tract").count(), [1, 1, 1], tree=TRACTS, ledger=ledger, order="nope")
    assert ledger.entries == ()


def test_a_measured_query_meets_its_tree_by_name():
    """Noise that is 0 but with probability e^-60: the counts of units, whatever the order of leaves is."""
    query = people("aabbbc").group_by("tract").count()
    p = measure(query, [60.0] * 3, tree=TRACTS, ledger=Ledger(PureDP(180.0)))
    assert [level.ravel().tolist() for level in p.noisy] == [[6], [5, 1], [3, 2, 1]]
    rows = people(list("aabbbc"), rows_per_unit=2, neighbours="substitute").group_by("tract").count()
    wide = measure(rows, rho=[0.1] * 3, tree=TRACTS, ledger=Ledger(ZCDP(0.3)))
    assert wide.precision.ravel() == pytest.approx([0.05, 0.025, 0.025])  # 2^2 and (2 sqrt 2)^2 over .2


def test_tangents_fix_no_level_for_the_next():
    """Counts that are good to 1e-3 on one level cost the next one more, where its precision is far larger."""
    tree = Hierarchy(parents=([0, 0], [0, 0, 1, 1]))
    noisy = [np.array([[3.25]]), np.array([[-2.0], [4.5]]), np.array([[1.5], [0.25], [3.0], [-1.0]])]
    p = ConsistentRelease(
        hierarchy=tree, noisy=noisy, precision=[1e-2, 1e4, 1.0], order="top-down", integer=False
    )
    best = p.solve("qp", backend="clarabel").objective
    assert p.solve("qp", backend="highs").objective == pytest.approx(best, rel=1e-5)
    for backend in ("glop", "highs:simplex"):
        with pytest.raises(fo.UnsupportedError, match="to a thousandth only"):
            p.solve("qp", backend=backend)
