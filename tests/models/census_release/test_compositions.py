"""Other problems on releases: districts by cones and by tangents, surveys, grants, leximax over regions."""

from itertools import product
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import forcopt as fo
from forcopt.data import Hierarchy, grid, load_graph
from forcopt.models import Districting, FormulaGrant, LevelBudget, StratifiedAllocation
from forcopt.models.census_release import Region, deviation_factor, measure, noise_variances
from forcopt.models.census_release.instances import state_like
from forcopt.privacy import Laplace, PureDP, calibrate

MAINE = Path(__file__).resolve().parents[4] / "shared" / "data" / "us" / "ME-county.json"


@pytest.mark.parametrize("estimator", ["top-down", "joint"])
def test_the_factor_gives_the_deviation_of_every_region(estimator):
    rng = np.random.default_rng(4)
    for sizes in ((1,), (1, 3), (1, 2, 7), (1, 2, 4, 11)):
        tree = state_like(sizes, seed=rng)
        epsilon = 10 ** rng.uniform(-1, 1, tree.depth)
        factor = deviation_factor(tree, noise_variances(epsilon), estimator)
        for _ in range(5):
            member = rng.random(tree.leaves) < 0.5
            expected = Region(tree, np.flatnonzero(member)).variance(epsilon, estimator)
            assert np.sum((factor @ member) ** 2) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def balanced(true, seen, factor, deviations, backend):
    """The plan of least cut whose counts keep a margin within the bounds: a cone, or its tangents."""
    low, high = true.population_bounds
    graph = true.graph.copy()
    nx.set_node_attributes(graph, dict(zip(true.nodes, map(int, seen), strict=True)), "population")
    m = fo.Model("districts on a release")
    plan = Districting(graph=graph, districts=2, bounds=(low, high)).declare(m, "flow")
    if backend == "scip":
        for j in range(2):
            margin = deviations * fo.norm((factor / 100) @ plan.member[:, j])
            m.subject_to(plan.population[j] / 100 + margin <= high / 100)
            m.subject_to(plan.population[j] / 100 - margin >= low / 100)
    else:

        def separate(value):
            for j in range(2):
                spread = factor @ np.round(value(plan.member)[:, j])
                length = np.linalg.norm(spread)
                tangent = deviations * (factor.T @ spread / max(length, 1e-9)) @ plan.member[:, j]
                count = float(value(plan.population)[j])
                if count + deviations * length > high + 1e-6:
                    yield plan.population[j] + tangent <= high
                if count - deviations * length < low - 1e-6:
                    yield plan.population[j] - tangent >= low

        m.lazy(separate)
    m.minimize(plan.objective)
    found = m.solve(backend, time_limit=60)
    return found, plan


def test_cones_and_tangents_draw_the_best_of_all_plans():
    rng, statuses = np.random.default_rng(1), []
    tree = Hierarchy(parents=([0] * 3, [0, 0, 0, 1, 1, 1, 2, 2, 2]))
    for _ in range(4):
        people, epsilon = rng.integers(40, 160, 9), [0.3, 0.3, 0.4]
        p = measure(tree.replace(counts=people[:, None]), epsilon, seed=rng)
        seen = p.solve("tree-nnls").decision.leaves.ravel().round()
        factor = deviation_factor(tree, noise_variances(epsilon, noise="geometric"), "joint")
        true = Districting(graph=grid(3, 3, population=people.tolist()), districts=2, tolerance=0.15)
        low, high = true.population_bounds
        best = np.inf
        for half in product((0, 1), repeat=8):
            sides = np.array([[1, *half], [0, *(1 - h for h in half)]])
            parts = [true.graph.subgraph([v for v, h in zip(true.nodes, s, strict=True) if h]) for s in sides]
            margins = 1.5 * np.linalg.norm(factor @ sides.T, axis=0)
            if (sides @ seen + margins > high).any() or (sides @ seen - margins < low).any():
                continue
            if all(len(part) and nx.is_connected(part) for part in parts):
                place = dict(zip(true.nodes, sides[0], strict=True))
                best = min(best, sum(place[u] != place[v] for u, v in true.graph.edges))
        for backend in ("scip", "highs"):
            found, _ = balanced(true, seen, factor, 1.5, backend)
            statuses.append(str(found.status))
            if np.isfinite(best):
                assert found.status == "optimal" and found.objective == pytest.approx(best)
            else:
                assert found.status == "infeasible"
    assert "optimal" in statuses


@pytest.mark.skipif(not MAINE.exists(), reason="the counties of Maine are not here")
@pytest.mark.parametrize("backend", [pytest.param("scip", marks=pytest.mark.nightly), "highs"])
def test_the_only_plan_of_maine_is_found_on_a_release(backend):
    true = Districting(graph=load_graph(MAINE), districts=2, tolerance=0.005)
    people = np.array(true.arrays.weights)
    tree = Hierarchy(parents=(np.zeros(16, dtype=int),), counts=people[:, None])
    seen = measure(tree, [0.05, 0.05], seed=0, order="top-down").solve("simplex").decision.leaves
    factor = deviation_factor(tree, noise_variances([0.05, 0.05], noise="geometric"))
    found, plan = balanced(true, seen.ravel().round(), factor, 2.0, backend)
    decision = plan.decision(found)
    assert found.status == "optimal" and len(decision.cut_edges) == 16
    assert true.evaluate(decision.assignment).feasible


def test_a_survey_of_released_strata_is_close_to_that_of_true_ones():
    tree = state_like((1, 6, 40), seed=2)
    release = measure(tree, [0.5, 0.5, 0.5], seed=3, integer=True).solve("tree-integer").decision
    true = tree.sums(tree.counts)[1].ravel()
    spread = np.random.default_rng(0).uniform(2, 9, 6)
    survey = StratifiedAllocation(np.maximum(release.counts[1].ravel(), 1), spread, sample_size=40)
    found = [survey.solve("milp", backend=b) for b in ("highs", "scip")] + [survey.solve("greedy")]
    assert all(s.status == "optimal" for s in found)
    assert np.ptp([s.objective for s in found]) <= 1e-6 * found[0].objective
    exact = survey.replace(sizes=true)
    assert exact.evaluate(found[0].decision).objective <= 1.02 * exact.solve("greedy").objective


def test_a_grant_on_released_children_is_that_on_true_ones_up_to_the_noise():
    tree = state_like((1, 5, 60), seed=1)
    mechanism = calibrate(Laplace, PureDP(0.5))
    release = measure(tree, [1.0, 1.0, 1.0], seed=2).solve("tree-nnls").decision
    on_release = FormulaGrant(release.counts[1].ravel(), mechanism).solve("exact-quantile")
    on_truth = FormulaGrant(tree.sums(tree.counts)[1].ravel().astype(float), mechanism).solve(
        "exact-quantile"
    )
    assert on_release.objective == pytest.approx(on_truth.objective, rel=0.01) and on_truth.objective > 1


@pytest.mark.parametrize(("backend", "accuracy"), [("clarabel", 1e-5), ("scs", 1e-3)])
def test_leximax_over_regions_lowers_the_largest_variance_and_then_the_next(backend, accuracy):
    tree = Hierarchy(parents=([0, 0], [0, 0, 1, 1, 1]))
    p = LevelBudget(tree, ([0], [0, 1], [0, 2]), epsilon=1.0, criterion="leximax")
    effects = np.array([Region(tree, leaves).effects() for leaves in p.regions])
    rng = np.random.default_rng(0)
    s = p.solve("conic", backend=backend)
    found = np.sort(p.variances(s.decision))[::-1]
    for spread in (0.3, 1e-2, 1e-3):
        shares = np.abs(s.decision + rng.normal(0, spread, (50_000, 3)))
        shares /= shares.sum(axis=1, keepdims=True)
        each = np.sort(8 / shares**2 @ effects.T, axis=1)[:, ::-1]
        assert found[0] <= each[:, 0].min() * (1 + accuracy)
        as_good = each[each[:, 0] <= found[0] * (1 + 1e-6)]
        assert not len(as_good) or found[1] <= as_good[:, 1].min() * (1 + 1e-3)
