"""Shares of groups, splits of counties, seats, compactness, plan files and ensembles on handmade cases."""

import json
import math
import random
from itertools import permutations, product

import networkx as nx
import numpy as np
import pytest
from districting_oracle import all_plans
from scipy.stats import chi2

from forcopt.data import delaunay, grid
from forcopt.errors import DeclarationError
from forcopt.graphs.dynamic_program import classes_of
from forcopt.models import Districting
from forcopt.models.districting import CutLimit, Fixed, MustLink, Plan, Share, SplitLimit, ensemble

ALGORITHMS = ("portfolio", "set-partitioning", "column-generation")
DYNAMIC = ("frontier", "sphere-cut")
PROGRAMS = ("flow", "flow-per-district", "labels-separators")
ROOTS = ("shirabe",)


def path(values, **attributes):
    graph = grid(1, len(values), population=list(values))
    for name, column in attributes.items():
        for v, value in enumerate(column):
            graph.nodes[v][name] = value
    return graph


def every_plan(problem):
    """All feasible plans, by trying all labels; canonical ones if districts have equal seats."""
    for labels in product(range(problem.districts), repeat=len(problem.nodes)):
        found = problem.evaluate(dict(zip(problem.nodes, labels, strict=True)))
        if found.feasible:
            yield labels, found


# -- shares ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [*ALGORITHMS, *PROGRAMS, *ROOTS])
def test_a_share_moves_the_cut(method):
    """Without the share the cheap cut is in the middle; group members live at the ends."""
    graph = path([10] * 5, vap=[8] * 5, black=[5, 0, 0, 2, 4])
    for e, cost in enumerate([4, 3, 1, 2]):
        graph.edges[e, e + 1]["cost"] = cost
    free = Districting(graph, 2, bounds=(10, 40))
    assert free.solve(method).objective == 1
    # One half: {0} has 5 of 8, {4} has 4 of 8, {3, 4} has 6 of 16.
    one = free.replace(side_constraints=[Share(attribute="black", total="vap", at_least=0.5)])
    solution = one.solve(method)
    assert solution.status == "optimal" and solution.objective == 2
    assert solution.decision.share("black", "vap") == (7 / 32, 0.5)
    # Both districts cannot reach a half.
    both = free.replace(side_constraints=[Share(attribute="black", total="vap", at_least=0.5, districts=2)])
    solution = both.solve(method)
    assert solution.status == "infeasible" and solution.reason


def test_a_share_is_compared_exactly():
    graph = path([1, 1], vap=[30, 1], black=[9.99, 1])
    p = Districting(
        graph, 2, tolerance=0, side_constraints=[Share(attribute="black", total="vap", at_least=0.333)]
    )
    assert p.evaluate({0: 0, 1: 1}).feasible
    q = p.replace(side_constraints=[Share(attribute="black", total="vap", at_least=0.333, districts=2)])
    assert q.evaluate({0: 0, 1: 1}).feasible  # 9.99 is 0.333 times 30
    r = p.replace(side_constraints=[Share(attribute="black", total="vap", at_least=0.3331, districts=2)])
    assert list(r.evaluate({0: 0, 1: 1}).violations.values()) == [1.0]


@pytest.mark.parametrize(
    ("share", "message"),
    [
        (Share(attribute="asian", total="vap", at_least=0.5), "asian is None"),
        (Share(attribute="black", total="vap", at_least=0.5, districts=3), "at most 2"),
        (Share(attribute="below", total="vap", at_least=0.5), "below is -1"),
    ],
)
def test_a_share_needs_its_attributes(share, message):
    graph = path([1, 1], vap=[3, 3], black=[1, 1], below=[-1, 2])
    with pytest.raises(ValueError, match=message):
        Districting(graph, 2, tolerance=0, side_constraints=[share])


# -- counties ----------------------------------------------------------------------------------------------


def counties():
    """Two rows of four; counties are the left, middle and right columns, and the cheap cut splits one."""
    graph = grid(2, 4)
    for v, name in enumerate("AABB" * 2):
        graph.nodes[v]["county"] = name
    for row in (0, 4):
        graph.edges[row + 1, row + 2]["cost"] = 5
        graph.edges[row, row + 1]["cost"] = 1
        graph.edges[row + 2, row + 3]["cost"] = 2
    return graph


@pytest.mark.parametrize("method", [*ALGORITHMS, *PROGRAMS, *ROOTS])
def test_counties_stay_whole_at_a_cost(method):
    p = Districting(counties(), 2, bounds=(2, 6))
    free = p.solve(method)
    assert free.objective == 2 and p.evaluate(free.decision).metrics["splits"] == 1
    whole = p.replace(side_constraints=[SplitLimit(limit=0)]).solve(method)
    assert whole.status == "optimal" and whole.objective == 10
    assert p.evaluate(whole.decision).metrics["split_counties"] == 0


@pytest.mark.parametrize("method", ["portfolio", "set-partitioning", *PROGRAMS, *ROOTS])
def test_the_number_of_splits_as_objective(method):
    p = Districting(counties(), 2, bounds=(4, 4), objective="splits")
    assert p.solve(method).objective == 0
    q = Districting(counties(), 3, bounds=(2, 3), objective="splits")
    solution = q.solve(method)
    assert solution.status == "optimal" and solution.objective == min(e.objective for _, e in every_plan(q))
    assert q.solve("local-search").objective == solution.objective


def test_splits_need_the_counties():
    with pytest.raises(ValueError, match="node 0 has no attribute 'county'"):
        Districting(grid(1, 3), 2, tolerance=1, objective="splits")
    with pytest.raises(ValueError, match="node 0 has no attribute 'town'"):
        Districting(grid(1, 3), 2, tolerance=1, side_constraints=[SplitLimit(limit=0, attribute="town")])


# -- seats -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [*ALGORITHMS, *DYNAMIC, *PROGRAMS])
def test_districts_of_two_and_three_seats(method):
    graph = path([2, 2, 2, 2, 2])
    graph.edges[1, 2]["cost"] = 3
    p = Districting(graph, 2, tolerance=0, seats=(2, 3))
    assert p.windows.tolist() == [[4, 4], [6, 6]]
    solution = p.solve(method)
    # The cut 0 1 2 | 3 4 is cheaper than 0 1 | 2 3 4; the district of two seats is the first.
    assert solution.objective == 1 and solution.decision.assignment == {0: 1, 1: 1, 2: 1, 3: 0, 4: 0}
    assert p.solve("local-search").objective == 1


def test_equal_seats_are_no_change_and_wrong_seats_are_refused():
    p = Districting(grid(2, 4), 2, tolerance=0)
    assert p.replace(seats=(3, 3)).solve().objective == p.solve().objective
    assert p.replace(seats=(3, 3)).count().histogram == p.count().histogram
    with pytest.raises(ValueError, match="one number for each of the 2 districts"):
        p.replace(seats=(1, 1, 1))
    with pytest.raises(ValueError, match="'recom' does not take seats"):
        p.replace(seats=(1, 3)).solve("recom")
    none = Districting(path([3, 3]), 2, tolerance=0, seats=(1, 2)).solve()
    assert none.status == "infeasible" and none.reason


@pytest.mark.parametrize("seed", range(6))
def test_features_together_agree_with_all_labels(seed):
    rng = np.random.default_rng(seed)
    graph = delaunay(7, seed=seed)
    for v in graph:
        graph.nodes[v].update(population=int(rng.integers(1, 5)), county=int(rng.integers(3)), all=3)
        graph.nodes[v]["some"] = int(rng.integers(0, 4))
    share, whole = Share(attribute="some", total="all", at_least=0.5), SplitLimit(limit=2)
    p = Districting(graph, 2, tolerance=0.5, seats=(1, 2), side_constraints=[share, whole])
    if seed % 2:
        p = p.replace(side_constraints=[share, Fixed(0, 1)])
    least = min((e.objective for _, e in every_plan(p)), default=None)
    for method in ("portfolio", "column-generation", "labels-separators", "flow"):
        solution = p.solve(method)
        assert solution.status == ("infeasible" if least is None else "optimal"), method
        assert least is None or solution.objective == least, method


def test_windows_divide_populations_into_classes():
    # Seats 1, 2 and 2 at a tolerance of 1/2 and a mean of 2: 1 to 3 people, and 2 to 6.
    _, marks, possible = classes_of([(1, 3), (2, 6), (2, 6)])
    one, both, two = (int(mark) for mark in marks[1:4])
    assert marks[[0, 4]].tolist() == [0, 0]
    sets = {(a, b, c) for a, b, c in product(range(4), repeat=3) if a <= 1 and c <= 2 and a + b + c <= 3}
    assert set(possible.tolist()) == {a * one + b * both + c * two for a, b, c in sets}
    with pytest.raises(ValueError, match="40 different windows of 40 parts are too many"):
        classes_of([(i, i + 50) for i in range(40)])


@pytest.mark.parametrize("block", range(2))
def test_dynamic_programs_with_seats_agree_with_brute_force(block):
    feasible = 0
    for seed in range(20 * block, 20 * block + 20):
        rng = random.Random(seed)
        n = rng.randint(4, 8)
        graph = delaunay(n, seed, keep=rng.choice([0.5, 1.0]), population=(0, rng.choice([1, 4, 9])))
        for e in graph.edges:
            graph.edges[e]["cost"] = rng.choice([1, 1, 2])
        k = rng.randint(2, min(4, n))
        sides = [MustLink(rng.sample(range(n), 2)), CutLimit(rng.randint(3, 12))][: rng.choice([0, 0, 1, 2])]
        p = Districting(
            graph,
            k,
            tolerance=rng.choice([0.5, 0.8, 1.0]),
            seats=[rng.randint(1, 4) for _ in range(k)],
            side_constraints=sides,
        )
        free = p.replace(seats=None, tolerance=None, bounds=(0, p.total), side_constraints=())
        plans = {plan for parts in all_plans(free) if p.evaluate(plan := Plan.of(p, parts)).feasible}
        feasible += len(plans) > 0
        for method in DYNAMIC:
            counts, s = p.count(method=method), p.solve(method)
            assert set(counts.iterate()) == plans and counts.total == len(plans), (seed, method)
            assert s.status == ("optimal" if plans else "infeasible"), (seed, method)
            assert not plans or s.objective == min(plan.cost for plan in plans), (seed, method)
    assert feasible > 5


def test_dynamic_programs_refuse_fixed_nodes_beside_unequal_seats():
    p = Districting(grid(1, 5), 2, tolerance=0, seats=(2, 3), side_constraints=[Fixed(0, 1)])
    assert p.solve().decision.assignment[0] == 1
    for method in DYNAMIC:
        with pytest.raises(DeclarationError, match="without Fixed; 'portfolio', 'column-generation'"):
            p.solve(method)
        with pytest.raises(DeclarationError, match=f"'count with {method}' takes different numbers"):
            p.count(method=method)


# -- cut limits --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["frontier", "sphere-cut", "column-generation", "set-partitioning"])
def test_a_cut_limit_beside_costs(method):
    """The cheapest plan cuts three edges of cost 1; two edges cost 5."""
    graph = grid(2, 3)
    for u, v in graph.edges:
        graph.edges[u, v]["cost"] = 5 if (u, v) in ((0, 1), (3, 4), (1, 2)) else 1
    p = Districting(graph, 2, bounds=(1, 5))
    costs = sorted((e.objective, e.metrics["cut_edges"]) for x, e in every_plan(p) if x[0] == 0)
    for limit in range(8):
        allowed = [cost for cost, cut in costs if cut <= limit]
        q = p.replace(side_constraints=[CutLimit(limit)])
        solution = q.solve(method)
        assert solution.status == ("optimal" if allowed else "infeasible")
        assert not allowed or solution.objective == allowed[0]
        if method in ("frontier", "sphere-cut"):
            counts = q.count(method=method)
            assert counts.histogram == {c: allowed.count(c) for c in sorted(set(allowed))}
            plans = list(counts.iterate())
            assert len(set(plans)) == counts.total and all(q.evaluate(plan).feasible for plan in plans)
            assert [plan.cost for plan in plans] == allowed


# -- compactness -------------------------------------------------------------------------------------------


def squares():
    """Two rows of two unit squares, with GerryChain's attributes and a geometry."""
    graph = grid(2, 2)
    for v in graph:
        x, y = v % 2, -(v // 2)
        ring = [(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1), (x, y)]
        graph.nodes[v].update(
            area=1.0, boundary_perim=2.0, geometry={"type": "Polygon", "coordinates": [ring]}
        )
    for e in graph.edges:
        graph.edges[e]["shared_perim"] = 1.0
    return graph


def test_compactness_of_two_by_one_rectangles():
    p = Districting(squares(), 2, tolerance=0)
    plan = Plan.from_labels(p, [0, 0, 1, 1])
    assert plan.polsby_popper == pytest.approx([4 * math.pi * 2 / 36] * 2)
    assert plan.reock == pytest.approx([2 / (math.pi * 1.25)] * 2)
    metrics = p.evaluate(plan).metrics
    assert metrics["polsby_popper_min"] == pytest.approx(8 * math.pi / 36)
    assert metrics["reock_mean"] == pytest.approx(2 / (math.pi * 1.25)) and metrics["cut_edges"] == 2
    whole = Districting(squares(), 1, tolerance=0)
    assert whole.evaluate(dict.fromkeys(range(4), 0)).metrics["polsby_popper_min"] == pytest.approx(
        math.pi / 4
    )
    assert "polsby_popper_min" not in Districting(grid(2, 2), 2, tolerance=0).evaluate(plan).metrics


def test_the_circle_around_random_districts_is_the_smallest():
    rng = np.random.default_rng(3)
    graph = squares()
    p = Districting(graph, 1, tolerance=0)
    for _ in range(5):
        corners = rng.normal(size=(4, 2))
        for v in graph:
            ring = corners[v] + np.array([[0, 0], [0.1, 0], [0, 0.1], [0, 0]])
            graph.nodes[v]["geometry"] = {"type": "Polygon", "coordinates": [ring.tolist()]}
        points = np.concatenate([corners + np.array(shift) for shift in ((0, 0), (0.1, 0), (0, 0.1))])
        circles = [(a + b) / 2 for a in points for b in points]
        for a, b, c in permutations(points, 3):
            sides = 2 * np.array([b - a, c - a])
            if abs(np.linalg.det(sides)) > 1e-9:
                circles.append(a + np.linalg.solve(sides, ((np.array([b, c]) - a) ** 2).sum(axis=1)))
        radius = min(np.hypot(*(points - center).T).max() for center in circles)
        plan = Plan.from_labels(p.replace(graph=graph), [0, 0, 0, 0])
        assert plan.reock == pytest.approx([0.02 / (math.pi * radius**2)])


def test_attributes_survive_a_file(tmp_path):
    import forcopt as fo

    graph = squares()
    for v in graph:
        graph.nodes[v].update(county="A", vap=2, black=1)
    share = Share(attribute="black", total="vap", at_least=0.5, districts=2)
    p = Districting(graph, 2, tolerance=0, seats=(1, 1), side_constraints=[share, SplitLimit(limit=1)])
    p.save(tmp_path / "p.json")
    q = fo.load(tmp_path / "p.json")
    plan = p.solve().decision
    assert q.evaluate(plan.assignment).metrics == p.evaluate(plan).metrics
    assert q.solve().objective == p.solve().objective


# -- files -------------------------------------------------------------------------------------------------


def test_plans_through_csv_and_geojson(tmp_path):
    p = Districting(squares(), 2, tolerance=0)
    plan = Plan.from_labels(p, [0, 0, 1, 1])
    plan.to_csv(tmp_path / "plan.csv")
    assert (tmp_path / "plan.csv").read_text().split() == ["GEOID,District", "0,1", "1,1", "2,2", "3,2"]
    assert Plan.from_csv(p, tmp_path / "plan.csv") == plan
    plan.to_geojson(tmp_path / "plan.geojson")
    data = json.loads((tmp_path / "plan.geojson").read_text())
    assert [f["properties"]["district"] for f in data["features"]] == [1, 1, 2, 2]
    assert data["features"][0]["geometry"]["type"] == "Polygon"
    assert Plan.from_geojson(p, tmp_path / "plan.geojson") == plan
    for change, words in (
        ({"features": None}, "features is None"),
        ({"features": [5]}, "feature 0 and its properties must be objects"),
        ({"features": [{"id": 0, "properties": [1]}]}, "feature 0 and its properties must be objects"),
    ):
        (tmp_path / "wrong.geojson").write_text(json.dumps(data | change))
        with pytest.raises(DeclarationError, match=words):
            Plan.from_geojson(p, tmp_path / "wrong.geojson")


def test_blocks_are_read_by_the_prefix_of_their_names(tmp_path):
    graph = path([1, 1])
    import networkx as nx

    graph = nx.relabel_nodes(graph, {0: "40001", 1: "40003"})
    p = Districting(graph, 2, tolerance=0)
    file = tmp_path / "blocks.csv"
    file.write_text("\ufeffBLOCKID,DISTRICT\n400010001001000,1\n400010001001001,1\n400030001001000,2\n")
    assert Plan.from_csv(p, file, prefix=5).assignment == {"40001": 0, "40003": 1}
    file.write_text("BLOCKID,DISTRICT\n400010001001000,1\n400010001001001,2\n400030001001000,2\n")
    with pytest.raises(DeclarationError, match="splits node '40001'"):
        Plan.from_csv(p, file, prefix=5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("GEOID,District\n0,1\n", "does not assign the node '1'"),
        ("GEOID,District\n0,1\n1,2\n7,1\n", "'7', which the graph lacks"),
        ("GEOID\n0\n", "row 1 has 1 entries"),
        ("0,1\n1,2\n2,3\n", "has 3 districts"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path, text, message):
    p = Districting(grid(1, 3), 2, tolerance=1)
    (tmp_path / "plan.csv").write_text(text)
    with pytest.raises(DeclarationError, match=message):
        Plan.from_csv(p, tmp_path / "plan.csv")


# -- ensembles ---------------------------------------------------------------------------------------------


def test_a_uniform_ensemble_is_uniform():
    p = Districting(grid(3, 4), 3, tolerance=0)  # 23 plans: 2 of cost 6, 6 of 7, 15 of 8
    drawn = p.ensemble(size=2300, seed=1)
    counts = np.array([drawn.plans.count(plan) for plan in p.count().iterate()])
    assert counts.sum() == 2300 and ((counts - 100) ** 2 / 100).sum() < 48.3  # 22 degrees of freedom, 0.1 %
    best = p.solve().decision
    assert drawn.share_at_most("cut_edges", best) == pytest.approx(2 / 23, abs=0.02)
    assert drawn.share_at_most(lambda plan: plan.cost, best) == drawn.share_at_most("cut_edges", best)
    cheap = p.ensemble(size=50, max_cost=7, seed=1)
    assert cheap.values("cut").max() <= 7


def test_a_uniform_ensemble_keeps_shares_and_splits(monkeypatch):
    graph = grid(3, 4)
    for v in graph:
        graph.nodes[v].update(county=v // 4, all=2, some=v % 3)
    share = Share(attribute="some", total="all", at_least=0.5, districts=2)
    p = Districting(graph, 3, tolerance=0, side_constraints=[share, SplitLimit(limit=5)])
    q = p.replace(side_constraints=())
    plans = [plan for plan in q.count().iterate() if p.evaluate(plan).feasible]
    assert 5 <= len(plans) < q.count().total
    drawn = p.ensemble(size=20 * len(plans), seed=2)
    counts = np.array([drawn.plans.count(plan) for plan in plans])
    assert counts.sum() == len(drawn) and all(plan.problem is p for plan in drawn.plans)
    assert ((counts - 20) ** 2 / 20).sum() < chi2.isf(1e-4, len(plans) - 1)
    none = p.replace(side_constraints=[Share(attribute="some", total="all", at_least=1)])
    monkeypatch.setattr(ensemble, "_DRAWS", 100)
    with pytest.raises(DeclarationError, match="0 of 100 plans drawn satisfy the shares"):
        none.ensemble(size=3, seed=1)


def test_a_chain_gives_an_ensemble_and_a_histogram_marks_a_plan(tmp_path):
    p = Districting(grid(4, 4), 2, tolerance=0.25)
    drawn = p.ensemble("recom", size=30, thin=2, seed=1)
    assert 1 <= len(drawn) <= 30 and all(p.evaluate(plan).feasible for plan in drawn.plans)
    best = p.solve().decision
    assert drawn.values("cut_edges").min() >= best.cost
    figure = drawn.plot("cut_edges", best, tmp_path / "histogram.png")
    assert (tmp_path / "histogram.png").stat().st_size > 1000
    axes = figure.axes[0]
    assert axes.lines[0].get_xdata()[0] == best.cost
    assert sum(bar.get_height() for bar in axes.patches) == len(drawn)


def test_a_chain_needs_a_feasible_start():
    p = Districting(grid(2, 4), 2, tolerance=0.3)
    bad = {v: int(v == 0) for v in range(8)}
    with pytest.raises(DeclarationError, match="start: the plan is not feasible: population of district 0"):
        p.ensemble("recom", size=3, start=bad, seed=1)
    with pytest.raises(DeclarationError, match="start: the plan is not feasible: population of district 0"):
        p.solve("recom", start=bad)
    good = {v: v // 4 for v in range(8)}
    assert p.ensemble("recom", size=1, start=good, seed=1).plans[0].assignment == good


def _voters(seed, rows=4, columns=6):
    rng, graph = random.Random(seed), grid(rows, columns)
    for v in graph:
        graph.nodes[v].update(county=v // 4, dem=rng.randint(0, 90), rep=rng.randint(1, 90))
    return Districting(graph, 4, tolerance=0.2)


def test_a_metric_of_an_ensemble_leaves_out_what_takes_longer(monkeypatch):
    p = _voters(3)
    drawn = p.ensemble("recom", size=20, seed=1)
    table = drawn.scores()
    monkeypatch.setattr("forcopt.models.districting.problem.polsby_popper", None)
    for name in ("cut", "cut_edges", "deviation", "splits", "traversals"):
        if name in table:
            assert drawn.values(name).tolist() == table[name].tolist()
    with pytest.raises(TypeError):
        drawn.values("polsby_popper_min")


def test_a_chain_that_stops_says_so():
    p = Districting(grid(1, 4), 2, tolerance=0)  # one plan, but the pair can be divided again and again
    assert len(p.ensemble("recom", size=5, seed=1)) == 5
    stuck = Districting(grid(1, 4), 1, tolerance=0)
    with pytest.warns(UserWarning, match="stopped after 1 of 5 plans: no two adjacent districts") as told:
        assert len(stuck.ensemble("recom", size=5, seed=1)) == 1
    assert told[0].filename == __file__


def test_scores_of_an_ensemble_are_those_of_gerrychain():
    metrics = pytest.importorskip("gerrychain.metrics")
    from gerrychain.updaters import Election

    drawn = _voters(3).ensemble("recom", size=60, seed=2)
    table = drawn.scores({"mayor": ("dem", "rep")})
    assert len(table) == len(drawn) > 20 and table["mayor seats"].nunique() > 1
    election = Election("mayor", {"first": "dem", "second": "rep"})
    for plan, row in zip(drawn.plans, table.to_dict("records"), strict=True):
        results = election(plan.to_gerrychain())
        for name in ("efficiency_gap", "mean_median", "partisan_bias"):
            assert row[f"mayor {name}"] == pytest.approx(getattr(metrics, name)(results), abs=1e-12)
        assert row["mayor seats"] == results.seats("first")
        shares = sorted(results.percents("first"))
        assert [row[f"mayor share_{i + 1}"] for i in range(4)] == pytest.approx(shares)
        angles = []
        for side in ([x for x in shares if x <= 0.5], [x for x in shares if x > 0.5]):
            angles += [
                math.atan(abs(sum(side) / len(side) - 0.5) * 2 / (len(side) / 4)) if side else math.nan
            ]
        assert row["mayor declination"] == pytest.approx((angles[0] - angles[1]) * 2 / math.pi, nan_ok=True)
        assert {name: row[name] for name in plan.scores()} == drawn.problem.evaluate(plan).metrics


def test_ties_of_elections_are_no_matter_of_rounding():
    """The mean of three floats 0.7 is below 0.7; 0.1 + 0.2 is above 0.3."""
    even = path([1] * 3, dem=[7, 14, 7], rep=[3, 6, 3])
    found = Plan.of(Districting(even, 3, tolerance=0), [[0], [1], [2]]).scores({"e": ("dem", "rep")})
    assert found["e partisan_bias"] == -0.5
    tied = path([1] * 3, dem=[0.1, 0.2, 0], rep=[0, 0, 0.3])
    found = Plan.of(Districting(tied, 1, tolerance=0), [[0, 1, 2]]).scores({"e": ("dem", "rep")})
    assert (found["e seats"], found["e efficiency_gap"]) == (0, pytest.approx(-0.5))


def test_split_counties_pieces_and_traversals_by_enumeration():
    p = _voters(5)
    for plan in [*p.ensemble("recom", size=20, seed=1).plans, Plan.of(p, [range(24)])]:
        county, district = nx.get_node_attributes(p.graph, "county"), plan.assignment
        pieces = {(county[v], district[v]) for v in p.graph}
        crossed = {
            (frozenset((county[u], county[v])), district[u])
            for u, v in p.graph.edges
            if district[u] == district[v] and county[u] != county[v]
        }
        found = plan.scores()
        assert (found["pieces"], found["traversals"]) == (len(pieces), len(crossed))
        assert found["splits"] == len(pieces) - 6
        assert found["split_counties"] == sum(sum(c == d for c, _ in pieces) > 1 for d in range(6))
    apart = Districting(path([1, 1], county=["a", "b"]), 2, tolerance=0)
    assert Plan.of(apart, [[0], [1]]).scores()["traversals"] == 0


@pytest.mark.parametrize(
    ("elections", "words"),
    [
        ({"mayor": ("dem",)}, "'mayor' is .'dem',.; it must be two node attributes"),
        ({"mayor": "dr"}, "'mayor' is 'dr'; it must be two node attributes"),
        ({"mayor": ("dem", "green")}, "node 0: green is None"),
        ({"mayor": ("dem", "lost")}, "node 0: lost is -1; it must be at least 0"),
    ],
)
def test_elections_without_votes_are_refused(elections, words):
    graph = grid(1, 2)
    for v in graph:
        graph.nodes[v].update(dem=1, lost=v - 1)
    with pytest.raises(ValueError, match=words):
        Plan.of(Districting(graph, 2, tolerance=0), [[0], [1]]).scores(elections)


def test_ensembles_that_cannot_be_drawn_are_refused():
    p = Districting(grid(2, 2), 2, tolerance=0)
    with pytest.raises(ValueError, match="no plan of cost 1"):
        p.ensemble(size=3, max_cost=1)
    with pytest.raises(ValueError, match="size is 0"):
        p.ensemble(size=0)
    with pytest.raises(ValueError, match="'forest'"):
        p.ensemble("forest")
    with pytest.raises(ValueError, match="'gini'"):
        p.ensemble(size=3).values("gini")
