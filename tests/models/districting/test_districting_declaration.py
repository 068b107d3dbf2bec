"""What a districting declaration accepts, refuses, and says of plans."""

import json
import re
from itertools import combinations, permutations

import matplotlib.colors
import networkx as nx
import numpy as np
import pandas as pd
import pytest

import forcopt as fo
from forcopt.data import delaunay, grid, load_graph
from forcopt.errors import DeclarationError, NotInstalledError
from forcopt.models import Districting
from forcopt.models.districting import CannotLink, CutLimit, Fixed, MustLink, Plan, Share, SplitLimit


def path(*people):
    g = nx.path_graph(len(people))
    nx.set_node_attributes(g, dict(enumerate(people)), "population")
    return g


@pytest.mark.parametrize(
    ("tolerance", "expected"),
    [(0.2, (144519, 216778)), (0.1, (162584, 198713)), (0.05, (171616, 189680)), (0.01, (178842, 182454))],
)
def test_tolerance_gives_exact_integer_bounds(s21, tolerance, expected):
    assert Districting(s21, 3, tolerance=tolerance).population_bounds == expected


def test_tolerance_is_read_as_its_decimal_not_as_a_float():
    # 0.1 as a float is above 1/10; ceil((1 - 0.1) * 10) would be 9 either way, but floor(1.1 * 10) must be 11.  # noqa: E501
    assert Districting(grid(1, 10), 1, tolerance=0.1).population_bounds == (9, 11)
    assert Districting(grid(10, 10), 10, tolerance=0.3).population_bounds == (7, 13)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"districts": 0}, "districts is 0"),
        ({"districts": 2.5}, "districts is 2.5"),
        ({"districts": 10}, "at most the number of nodes, 9"),
        ({"tolerance": -0.1}, "tolerance is -0.1"),
        ({"tolerance": float("nan")}, "tolerance"),
        ({"tolerance": None}, "either tolerance or bounds"),
        ({"bounds": (1, 2)}, "either tolerance or bounds"),
        ({"tolerance": None, "bounds": (3, 2)}, "lower <= upper"),
        ({"tolerance": None, "bounds": (-1, 2)}, "lower <= upper"),
        ({"population": "people"}, "no attribute 'people'"),
        ({"objective": "beauty"}, "objective is 'beauty'"),
        ({"side_constraints": [MustLink([0, 99])]}, "the node 99, which the graph lacks"),
        ({"side_constraints": [Fixed(0, 3)]}, "district is 3; it must be below 3"),
        ({"side_constraints": [Fixed(0, 2), Fixed(0, 1)]}, "the node is fixed to 2 already"),
        ({"side_constraints": [{"side": "CannotLink", "nodes": [4, 4]}]}, "a node is named twice"),
        ({"side_constraints": [{"side": "SideConstraint"}]}, "unknown side 'SideConstraint'"),
        ({"graph": nx.DiGraph([(0, 1)])}, "directed"),
        ({"graph": nx.Graph()}, "no nodes"),
        ({"graph": 7}, "networkx graph"),
    ],
)
def test_bad_fields_are_named(fields, words):
    given = {"graph": grid(3, 3), "districts": 3, "tolerance": 0.1, **fields}
    with pytest.raises(ValueError, match=words):
        Districting(**given)


@pytest.mark.parametrize("people", [-1, 1.5, float("nan"), "x", True])
def test_bad_populations(people):
    with pytest.raises(DeclarationError, match="population is"):
        Districting(path(1, people), 1, tolerance=0.1)


@pytest.mark.parametrize("cost", [-1, float("nan"), float("inf"), "x"])
def test_bad_costs(cost):
    g = path(1, 1)
    g.edges[0, 1]["cost"] = cost
    with pytest.raises(DeclarationError, match="cost is"):
        Districting(g, 1, tolerance=0.1)


def test_costs_with_decimals_are_added_exactly():
    g = path(1, 1, 1)
    g.edges[0, 1]["cost"], g.edges[1, 2]["cost"] = 0.1, 0.25
    p = Districting(g, 3, bounds=(1, 1))
    assert p.cost_scale == 20 and p.arrays.costs.tolist() == [2, 5]
    assert p.solve("set-partitioning").objective == 0.35


def test_parallel_edges_add_and_loops_are_ignored():
    g = nx.MultiGraph([(0, 1, {"cost": 2}), (0, 1, {"cost": 3}), (1, 1)])
    nx.set_node_attributes(g, 1, "population")
    assert Districting(g, 2, bounds=(1, 1)).evaluate({0: 0, 1: 1}).objective == 5


def test_the_graph_is_frozen_and_copied():
    g = grid(2, 2)
    p = Districting(g, 2, tolerance=0)
    g.add_edge(0, 3)
    assert p.graph.number_of_edges() == 4
    with pytest.raises(nx.NetworkXError):
        p.graph.add_edge(0, 3)


def test_evaluate_names_every_violation():
    p = Districting(
        grid(2, 3),
        2,
        tolerance=0,
        side_constraints=[MustLink([0, 5]), CannotLink([0, 2]), CutLimit(1), Fixed(5, 1)],
    )
    e = p.evaluate({0: 0, 1: 1, 2: 0, 3: 0, 4: 0, 5: 0})
    assert e.objective == 3 and not e.feasible
    assert e.violations["population of district 0"] == 2
    assert e.violations["population of district 1"] == 2
    side = [v for k, v in e.violations.items() if k.startswith("side")]
    assert side == [1.0, 2.0, 1.0]  # cannot-link, cut limit, fixed
    assert p.evaluate(dict.fromkeys(range(6), 0)).violations["district 1 is empty"] == 1
    split = p.evaluate({0: 0, 1: 1, 2: 0, 3: 1, 4: 1, 5: 0})
    assert split.violations["contiguity of district 0"] == 1
    assert p.evaluate(dict.fromkeys(range(6), 7)).violations["districts 0 to 1"] == 6


@pytest.mark.parametrize("plan", [{0: 0}, {0: 0, 1: 1, 2: 0}, {0: 0.5, 1: 1}, {0: True, 1: 0}, [0, 1]])
def test_a_malformed_plan_is_an_error(plan):
    with pytest.raises(DeclarationError, match="plan"):
        Districting(path(1, 1), 2, bounds=(1, 1)).evaluate(plan)


def test_a_series_is_a_plan_by_node():
    p = Districting(grid(1, 4), districts=2, bounds=(2, 2))
    plan = pd.Series([1, 1, 0, 0], [3, 1, 2, 0])
    assert p.evaluate(plan).violations == p.evaluate(plan.to_dict()).violations != {}
    assert p.evaluate(plan.sort_values()).violations == p.evaluate(plan).violations
    with pytest.raises(DeclarationError, match="the plan assigns the node 3 twice"):
        p.evaluate(pd.Series([1, 1, 0, 0, 1], [3, 1, 2, 0, 3]))
    with pytest.raises(DeclarationError, match="the plan does not assign the node 0"):
        p.evaluate(plan[:3])


def islands(*people):
    """A grid of six nodes, and nodes without neighbours."""
    g = grid(2, 3)
    for i, population in enumerate(people):
        g.add_node(f"island {i}", population=population)
    return g


def counties():
    g = grid(2, 4)
    for v in g:
        g.nodes[v].update(some=int(v % 4 == 0), all=2, county=v % 4 == 3)
    return g


TWO = nx.disjoint_union(path(1, 1), path(1, 1))
HALF = Share(attribute="some", total="all", at_least=0.5, districts=2)
TRIANGLE = [CannotLink([0, 3]), CannotLink([3, 5]), CannotLink([0, 5])]


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (Districting(path(1, 1, 1), 2, bounds=(2, 2)), "3 is below 2 districts times 2; .* tolerance 0.3"),
        (Districting(path(1, 1, 9), 2, bounds=(1, 4)), "11 is above 2 districts times 4"),
        (Districting(path(1, 5, 0), 2, bounds=(1, 4)), "node 1 has population 5, above 4"),
        (Districting(path(1, 1, 1), 2, tolerance=0.1), "no integer lies within the tolerance"),
        (Districting(path(3, 3), 2, tolerance=0, seats=(1, 2)), "contradict each other; .* tolerance 0.5"),
        (Districting(TWO, 1, bounds=(1, 9)), "2 components, more than 1 districts"),
        (Districting(islands(1, 1), 2, tolerance=1), "3 components, more than 2 districts"),
        (Districting(islands(1), 2, bounds=(3, 4)), "'island 0' has no neighbours, and population 1"),
        (Districting(islands(0), 2, bounds=(1, 9)), "'island 0' has no neighbours, and population 0"),
        (Districting(TWO, 2, tolerance=0, side_constraints=[MustLink([0, 2])]), "satisfies MustLink"),
        (
            Districting(grid(2, 4), 2, tolerance=0, side_constraints=[MustLink([0, 1, 2, 4, 5])]),
            "kept together with 0 have population 5, above 4; .* tolerance 0.25",
        ),
        (
            Districting(grid(2, 4), 2, tolerance=0, side_constraints=[Fixed(0, 0), Fixed(1, 1), MustLink([0, 1])]),  # noqa: E501
            "node 0 has both to be with and apart from another",
        ),
        (
            Districting(grid(2, 4), 2, tolerance=0.5, side_constraints=[CutLimit(9), *TRIANGLE]),
            r"satisfies CannotLink\(nodes=\(0, 3\)\), Cann.*, CannotLink\(nodes=\(0, 5\)\) together$",
        ),
        (Districting(grid(2, 4), 2, tolerance=0, side_constraints=[CutLimit(1)]), r"CutLimit\(limit=1\)$"),
        (Districting(counties(), 2, tolerance=0.5, side_constraints=[HALF]), "no plan .* satisfies Share"),
        (
            Districting(counties(), 2, tolerance=0, side_constraints=[SplitLimit(limit=0)]),
            "contradict each other; the least relaxation: tolerance 0.5",
        ),
    ],
)  # fmt: skip
def test_every_method_gives_the_same_reason(problem, reason):
    """Heuristics may end without a plan; methods that do not take a feature name one that does."""
    proved = set()
    for name, method in problem.methods.items():
        if name == "relaxed":  # leaves contiguity out
            continue
        try:
            s = problem.solve(name)
        except NotInstalledError:
            continue
        except ValueError as refusal:
            assert "'portfolio'" in str(refusal), name
            continue
        assert s.decision is None and re.search(reason if s.status == "infeasible" else "no .*plan", s.reason)
        assert s.status == "infeasible" or not method.exact, name
        proved |= {name} if s.status == "infeasible" else set()
    assert {"portfolio", "column-generation", "flow", "labels-separators"} <= proved


def test_saves_and_loads(tmp_path):
    g = nx.relabel_nodes(grid(2, 3), {i: (i // 3, i % 3) for i in range(6)})  # nodes named by tuples
    g.edges[(0, 0), (0, 1)]["cost"] = 2.5
    p = Districting(g, 2, tolerance=0.34, side_constraints=[MustLink([(0, 0), (0, 1)]), Fixed((1, 2), 1)])
    p.save(tmp_path / "p.json")
    again = fo.load(tmp_path / "p.json")
    assert again == p and again.nodes == p.nodes
    assert again.solve("set-partitioning").objective == p.solve("set-partitioning").objective


def test_plan_numbers_districts_by_their_first_node_but_for_fixed_ones():
    p = Districting(grid(1, 4), 2, tolerance=0)
    assert Plan.of(p, [[3, 2], [1, 0]]).assignment == {0: 0, 1: 0, 2: 1, 3: 1}
    fixed = Districting(grid(1, 4), 2, tolerance=0, side_constraints=[Fixed(0, 1)])
    plan = fixed.solve("set-partitioning").decision
    assert plan.assignment == {0: 1, 1: 1, 2: 0, 3: 0} and fixed.evaluate(plan).feasible


def test_plot_writes_a_map(tmp_path):
    p = Districting(grid(2, 4), 2, tolerance=0)
    plan = p.solve("set-partitioning").decision
    for name in ("map.png", "map.svg"):
        plan.plot(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    g = grid(1, 2)
    for v in g:
        g.nodes[v]["geometry"] = {
            "type": "Polygon",
            "coordinates": [[(v, 0), (v + 1, 0), (v + 1, 1), (v, 0)]],
        }
    areas = Districting(g, 2, tolerance=0).solve("set-partitioning").decision.plot()
    assert len(areas.axes[0].collections[0].get_paths()) == 2


def square(x, y, side):
    return [(x, y), (x + side, y), (x + side, y + side), (x, y + side), (x, y)]


def test_text_lists_districts_and_a_map_names_their_populations():
    plan = Districting(grid(2, 60, population=5), districts=2, tolerance=0).solve("frontier").decision
    head, first, second = str(plan).splitlines()
    assert head.split() == ["district", "population", "nodes"]
    assert first.startswith("       0         300  0, 1, 2,") and first.endswith("and 20 more")
    assert second.startswith("       1         300  30, 31,")
    (legend,) = plan.plot().legends
    assert [text.get_text() for text in legend.get_texts()] == ["0: 300", "1: 300"]


def test_a_cost_that_no_edge_has_is_no_cost_of_one():
    with pytest.raises(fo.DeclarationError, match="cost is 'bordr', which no edge has; edges have: border"):
        graph = nx.Graph([(0, 1, {"border": 2})])
        nx.set_node_attributes(graph, 1, "population")
        Districting(graph, districts=2, tolerance=0, cost="bordr")


def test_a_hole_is_not_filled_whichever_way_it_turns():
    for turn in (1, -1):
        g = nx.Graph([("ring", "town")])
        rings = [square(0, 0, 3), square(1, 1, 1)[::turn]]
        g.add_node("ring", population=1, geometry={"type": "Polygon", "coordinates": rings})
        g.add_node("town", population=1, geometry={"type": "Polygon", "coordinates": [square(1, 1, 1)]})
        plan = Plan.of(Districting(g, 2, tolerance=0), [[0], [1]])
        ring, town = plan.plot().axes[0].collections[0].get_paths()
        outlines = ring.to_polygons(closed_only=True)
        area = [np.sum(p[:-1, 0] * p[1:, 1] - p[1:, 0] * p[:-1, 1]) / 2 for p in outlines]
        assert sorted(area) == [-1, 9]
        assert np.allclose(town.get_extents().bounds, (1, 1, 1, 1))


def test_neighbours_have_colours_that_differ():
    plan = Districting(grid(1, 6), 3, tolerance=0).solve("set-partitioning").decision
    faces = plan.plot().axes[0].collections[-1].get_facecolors()[::2]
    hues = matplotlib.colors.rgb_to_hsv(faces[:, :3])[:, 0]
    assert np.ptp(np.sort(hues)) > 0.2 and np.diff(np.sort(hues)).min() > 0.05


def test_a_saved_problem_keeps_its_map(tmp_path):
    shapely = pytest.importorskip("shapely", reason="the package shapely is not installed")
    g = grid(1, 2)
    for v in g:
        g.nodes[v]["geometry"] = shapely.box(v, 0, v + 1, 1)
    p = Districting(g, 2, tolerance=0)
    p.save(tmp_path / "p.json")
    again = fo.load(tmp_path / "p.json")
    assert again == p and again.graph.nodes[1]["geometry"]["type"] == "Polygon"
    drawn = again.solve("set-partitioning").decision.plot().axes[0].collections[0].get_paths()
    assert np.allclose(drawn[1].get_extents().bounds, (1, 0, 1, 1))


def test_to_gerrychain():
    pytest.importorskip("gerrychain", reason="the package gerrychain is not installed")
    plan = Districting(grid(2, 4), 2, tolerance=0).solve("set-partitioning").decision
    partition = plan.to_gerrychain()
    assert len(partition["cut_edges"]) == plan.cost and dict(partition["population"]) == {0: 4, 1: 4}


def test_partitions_of_gerrychain_are_read_by_the_names_of_nodes():
    gerrychain = pytest.importorskip("gerrychain", reason="the package gerrychain is not installed")
    names = {v: (7 * v + 3) % 12 for v in range(12)}  # numbers that are no positions
    p = Districting(nx.relabel_nodes(grid(3, 4), names), 3, tolerance=0)
    plan = Plan.from_labels(p, [v // 4 for v in range(12)])
    partition = plan.to_gerrychain()
    assert p.evaluate(partition) == p.evaluate(plan) and p.evaluate(plan).feasible
    shuffled = nx.Graph()  # the Partition's graph has another order of nodes
    shuffled.add_nodes_from(sorted(p.graph.nodes(data=True)))
    shuffled.add_edges_from(p.graph.edges)
    other = gerrychain.Partition(gerrychain.Graph.from_networkx(shuffled), plan.assignment)
    for given in (partition, other):
        assert p.labels(given).tolist() == plan.labels.tolist()
        assert p.solve("recom", start=given, steps=1, seed=1).evaluation.feasible
        assert p.least_change(given).solve("local-search", restarts=1).evaluation.feasible
        assert Plan.from_labels(p, given) == plan
        with pytest.raises(fo.DeclarationError, match="give the Partition"):
            p.evaluate(given.assignment)
    from_one = gerrychain.Partition(partition.graph, {v: d + 1 for v, d in partition.assignment.items()})
    assert "districts 0 to 2" in p.evaluate(from_one).violations and Plan.from_labels(p, from_one) == plan


def test_graphs_of_gerrychain_keep_islands_and_missing_costs():
    """GerryChain's own conversion loses nodes without edges, and fills missing values with NaN."""
    pytest.importorskip("gerrychain", reason="the package gerrychain is not installed")
    g = nx.Graph([("a", "b", {"cost": 2}), ("b", "d")])
    g.add_node("c")
    nx.set_node_attributes(g, 5, "population")
    p = Districting(g, 2, tolerance=1)
    again = Districting(Plan.from_labels(p, [0, 0, 0, 1]).to_gerrychain().graph, 2, tolerance=1)
    assert again == p and (again.total, again.nodes) == (20, ("a", "b", "d", "c"))


def test_reads_both_graph_formats(tmp_path):
    g = grid(2, 3)

    (tmp_path / "gerry.json").write_text(json.dumps(nx.adjacency_data(g)))
    (tmp_path / "links.json").write_text(
        json.dumps(
            {"name": "x", "nodes": [{"id": "a"}, {"id": "b"}], "edges": [{"source": "a", "target": "b"}]}
        )
    )
    assert nx.utils.graphs_equal(load_graph(tmp_path / "gerry.json"), nx.Graph(g))
    small = load_graph(tmp_path / "links.json")
    assert small.graph == {"name": "x"} and list(small.edges) == [("a", "b")]
    (tmp_path / "areas.json").write_text('{"type": "FeatureCollection", "features": []}')
    with pytest.raises(DeclarationError, match=r"areas\.json: this is GeoJSON"):
        load_graph(tmp_path / "areas.json")
    for text in (
        "{",
        "[]",
        '{"nodes": [{}], "edges": []}',
        '{"nodes": [{"id": 1}], "edges": [{"source": 1}]}',
        '{"nodes": 5, "edges": []}',
        '{"nodes": [5], "edges": []}',
        '{"nodes": [{"id": {}}], "edges": []}',
        '{"nodes": [{"id": 1}], "edges": true}',
        '{"nodes": [{"id": 1}], "edges": [[1, 1]]}',
        '{"nodes": [{"id": 1}], "adjacency": [5]}',
        '{"nodes": [{"id": 1}], "adjacency": [[5]]}',
        '{"nodes": [{"id": 1}], "edges": [], "graph": 5}',
    ):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(DeclarationError, match=r"bad\.json"):
            load_graph(tmp_path / "bad.json")


def test_delaunay_is_planar_two_connected_and_repeats():
    for seed in range(5):
        g = delaunay(15, seed)
        assert nx.is_biconnected(g) and nx.check_planarity(g)[0]
        assert nx.utils.graphs_equal(g, delaunay(15, seed))
    assert not nx.utils.graphs_equal(delaunay(15, 1), delaunay(15, 2))


def test_objectives_are_evaluated():
    p = Districting(grid(1, 4, population=[1, 2, 3, 4]), 2, tolerance=1, objective="inertia")
    labels = {0: 0, 1: 0, 2: 1, 3: 1}
    assert p.evaluate(labels).objective == 1 + 3  # the heavier of each pair is the centre
    d = Districting(grid(1, 4, population=[1, 2, 3, 4]), 2, tolerance=1, objective="deviation")
    assert d.evaluate(labels).objective == 2
    bare = nx.Graph([(0, 1)])
    nx.set_node_attributes(bare, 1, "population")
    with pytest.raises(DeclarationError, match="node 0: x is None; it must be a number"):
        Districting(bare, 1, tolerance=0, objective="inertia")
    assert np.isclose(p.solve("set-partitioning").objective, 4)


def test_the_shipped_example(s21):
    from pathlib import Path

    from forcopt.models import districting

    path = Path(districting.__file__).parent / "examples" / "grid-3x7.json"
    p = Districting.load(path)
    assert p == Districting(s21, 3, tolerance=0.2) and p.solve().objective == 6


@pytest.mark.parametrize(("tolerance", "hint"), [(5, "0.05 for 5 percent"), (1.01, "at most 1")])
def test_a_tolerance_in_percent_is_refused(tolerance, hint):
    with pytest.raises(fo.DeclarationError, match=hint):
        Districting(grid(2, 2), districts=2, tolerance=tolerance)


@pytest.mark.parametrize(
    ("district", "words"),
    [
        ("ZZ", "does not assign the node '2' to a district"),
        ("zzz", "does not assign the node '2' to a district"),
        ("", "row 4: district of 2 is ''; it must be a name, or ZZ"),
    ],
)
def test_a_plan_file_with_a_node_in_no_district_is_refused(tmp_path, district, words):
    (tmp_path / "plan.csv").write_text(f"GEOID,District\n0,1\n1,1\n2,{district}\n3,{district}\n")
    with pytest.raises(fo.DeclarationError, match=words):
        Plan.from_csv(Districting(grid(1, 4), 2, tolerance=0), tmp_path / "plan.csv")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("0,1\n1,1\n2,2\n3,2\n", None),
        ("0,1\n\n1,1\n2,2\n\n3,2\n\n", None),  # blank rows
        (" 0 , 1\n1,1 \n2,2\n3,2\n", None),
        ("0,1\n1,1\n2,2\n3,2\n3,2\n", None),  # the same twice
        ("0,1\n1,1\n2,2\n3,2\n3,1\n", "row 6 splits node '3' between '2' and '1'"),
        ("0,1\n0,ZZ\n1,1\n2,2\n3,zz\n3,2\n", None),  # some blocks are in no district
        ("0,1\n1,1\n2,2\n3,2\n,2\n", "row 6 assigns '', which the graph lacks"),
        ("0,1\n1,1\n2,2\n3,2\n,\n", "row 6 assigns '', which the graph lacks"),
        ("0,1\n1,1\n2,2\n3,2\n3\n", "row 6 has 1 entries"),
        ("0,1\n1,1\n2,2\n03,2\n", "row 5 assigns '03', which the graph lacks; did you mean '3'"),
        ("0,01\n1,1\n2,2\n3,2\n", "has 3 districts; .* row 3 gives '1'; did you mean '01'"),
        ("0,1\n1,1\n2,2\n", "does not assign the node '3'"),
        ("0;1\n1;1\n2;2\n3;2\n", "row 2 has 1 entries"),
        ("0,1\n1,1\n2,\xe9\n3,2\n", "is no CSV file in UTF-8"),
    ],
)
def test_the_rows_of_a_plan_file(tmp_path, rows, words):
    mark = b"\xef\xbb\xbf" if words is None else b""
    (tmp_path / "plan.csv").write_bytes(mark + f"GEOID,District\n{rows}".encode("latin-1"))
    p = Districting(grid(1, 4), 2, tolerance=0)
    if words is None:
        assert Plan.from_csv(p, tmp_path / "plan.csv").assignment == {0: 0, 1: 0, 2: 1, 3: 1}
    else:
        with pytest.raises(fo.DeclarationError, match=words):
            Plan.from_csv(p, tmp_path / "plan.csv")


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (pd.Series([0, 1, 1, 0], index=list("adcb")), "in another order than names"),
        (pd.Series([0, 1, 1, 0], index=list("abcx")), "has the label 'x', which names lacks"),
        ({"d": 0, "c": 0, "b": 1, "a": 1}, "labels must be numbers in order, not a mapping"),
        ([0, 1, 1], r"labels has shape \(3,\); it must hold 4 whole numbers, one a node"),
        ([0, 1, 1.5, 1.7], "it must hold 4 whole numbers"),
        (["0", "1", "1", "0"], "labels must be numbers"),
    ],
)
def test_labels_of_a_plan_are_one_a_node_in_order(labels, words):
    p = Districting(nx.relabel_nodes(grid(1, 4), dict(enumerate("abcd"))), districts=2, tolerance=0)
    with pytest.raises(fo.DeclarationError, match=words):
        Plan.from_labels(p, labels)
    assert Plan.from_labels(p, pd.Series([5, 5, 2, 2], index=list("abcd"))).labels.tolist() == [0, 0, 1, 1]


def test_an_edge_of_an_adjacency_stands_at_both_ends(tmp_path):
    """A list at one end alone was kept or lost by the order of the nodes."""
    for one_sided in ([[], [{"id": 0}]], [[{"id": 1}], []]):
        data = {"nodes": [{"id": 0}, {"id": 1}], "adjacency": one_sided}
        (tmp_path / "gerry.json").write_text(json.dumps(data))
        with pytest.raises(fo.DeclarationError, match="every edge must stand at both ends"):
            load_graph(tmp_path / "gerry.json")
    g = nx.MultiGraph([(0, 1), (0, 1), (1, 2), (2, 2)])
    (tmp_path / "gerry.json").write_text(json.dumps(nx.adjacency_data(g)))
    assert sorted(load_graph(tmp_path / "gerry.json").edges()) == sorted(g.edges())


def test_a_misspelt_first_row_of_a_plan_file_is_no_header(tmp_path):
    (tmp_path / "plan.csv").write_text("x0,1\n0,1\n1,1\n2,2\n3,2\n")
    with pytest.raises(fo.DeclarationError, match="assigns 'x0', which the graph lacks"):
        Plan.from_csv(Districting(grid(1, 4), 2, tolerance=0), tmp_path / "plan.csv")


class _Foreign:
    """A graph of another library that gives itself as networkx's, as GerryChain's does since 1.0."""

    def __init__(self, graph):
        self.graph = graph

    def to_networkx_graph(self):
        return self.graph


def test_graphs_that_give_themselves_as_networkx_are_taken():
    assert Districting(_Foreign(grid(2, 2)), 2, tolerance=0).solve("set-partitioning").objective == 2
    with pytest.raises(fo.DeclarationError, match=r"must be a networkx graph, not builtins\.object"):
        Districting(object(), 2, tolerance=0)


@pytest.mark.parametrize(
    ("people", "seats", "limits"),
    [
        ([40, 1, 1], (1, 2, 2), {"tolerance": 0.5}),  # a plan deviates by more than the mean of a seat
        ([30, 1, 1, 1], (2, 2, 2), {"tolerance": 0.5}),
        ([10, 20, 30], (1, 2, 3), {"bounds": (1, 2)}),  # the mean of a seat lies outside
        ([5, 10], (2, 4), {"bounds": (9, 9)}),
    ],
)
def test_proposed_bounds_are_those_of_a_seat(people, seats, limits):
    g = nx.path_graph(len(people))
    nx.set_node_attributes(g, dict(enumerate(people)), "population")
    p = Districting(graph=g, districts=len(seats), seats=seats, **limits)
    words = p.least_relaxation(time_limit=300)  # code may be compiled first
    bounds = re.search(r"bounds (\d+) to (\d+) for each seat", words)
    mean = re.search(r"mean population for each seat, (\d+)", words)
    assert bounds or mean, words
    assert words.startswith("the least relaxation")  # no plan is better than one without deviation
    ends = tuple(map(int, bounds.groups())) if bounds else (int(mean[1]),) * 2
    assert p.solve().status == "infeasible"
    assert p.replace(tolerance=None, bounds=ends).solve().status == "optimal"


def test_the_least_relaxation_with_unequal_seats_is_least_by_shares():
    """Every plan of a path by enumeration: the tolerance named allows one, a smaller one allows none."""
    rng, seats = np.random.default_rng(4), (1, 3, 3)
    for _ in range(6):
        people = rng.integers(1, 30, 5).tolist()
        means = [sum(people) * s / 7 for s in seats]
        needed = min(
            max(abs(n / m - 1) for n, m in zip(parts, means, strict=True))
            for a, b in combinations(range(1, 5), 2)
            for parts in permutations((sum(people[:a]), sum(people[a:b]), sum(people[b:])))
        )
        p = Districting(grid(1, 5, population=people), 3, seats=seats, tolerance=0)
        reason = p.least_relaxation(time_limit=60)
        if needed <= 1:
            assert float(re.search(r"tolerance ([\d.]+)", reason)[1]) == pytest.approx(needed, rel=1e-5)
        else:
            assert "least relaxation: bounds" in reason


def test_the_inertia_with_seats_names_only_methods_that_take_it():
    p = Districting(
        grid(2, 4), 2, seats=(1, 3), tolerance=0, objective="inertia", side_constraints=[Fixed(0, 1)]
    )
    for method in ("portfolio", "shirabe", "set-partitioning", "labels-separators"):
        with pytest.raises(fo.DeclarationError, match="only 'local-search' does, without a proof"):
            p.solve(method)
    assert p.solve("local-search", seed=0).evaluation.feasible
    free = p.replace(side_constraints=())
    with pytest.raises(fo.DeclarationError, match="'set-partitioning' does"):
        free.solve("shirabe")
    assert free.solve("set-partitioning").status is fo.Status.OPTIMAL


# -- nulls -------------------------------------------------------------------------------------------------

SCORES = {
    "county": ("splits", "split_counties", "pieces", "traversals"),
    "enacted": ("least-change", "changed_nodes"),
}


@pytest.mark.parametrize("null", [None, float("nan"), np.float64("nan"), pd.NA, pd.NaT])
@pytest.mark.parametrize("attribute", ["county", "enacted"])
def test_a_null_stops_only_what_needs_the_attribute(attribute, null, tmp_path):
    g = path(1, 1, 1, 1)
    nx.set_node_attributes(g, {0: 1, 1: 1, 2: null, 3: 2}, attribute)
    p = Districting(g, districts=2, tolerance=0)
    plan = Plan.from_labels(p, [0, 0, 1, 1])
    found = p.evaluate(plan)
    assert found.feasible and not set(found.metrics) & set(SCORES[attribute])
    plan.to_html(tmp_path / "plan.html")
    p.save(tmp_path / "p.json")
    assert "NaN" not in (tmp_path / "p.json").read_text()
    assert fo.load(tmp_path / "p.json").evaluate(plan.assignment).metrics == found.metrics
    drawn = p.ensemble(size=2, seed=0)
    assert drawn.values("cut_edges").tolist() == [1, 1]
    says = rf"node 2: {attribute} is null \(None, NaN\); each node needs one"
    for score in SCORES[attribute]:
        with pytest.raises(DeclarationError, match=says):
            drawn.values(score)
    with pytest.raises(ValueError, match=says):
        p.replace(side_constraints=[SplitLimit(limit=0, attribute=attribute)])
    with pytest.raises(ValueError, match=says):
        p.replace(objective="splits" if attribute == "county" else "least-change")
    whole = p.graph.copy()
    nx.set_node_attributes(whole, {2: 2}, attribute)
    assert set(SCORES[attribute]) <= set(p.replace(graph=whole).evaluate(plan.assignment).metrics)


def test_a_graph_file_with_nulls_is_a_problem(tmp_path):
    g = path(1, 1, 1, 1)
    for name in ("county", "enacted", "geometry", "area", "boundary_perim", "x"):
        nx.set_node_attributes(g, {0: None, 1: 3, 2: None, 3: 4} if name != "geometry" else None, name)
    nx.set_edge_attributes(g, None, "shared_perim")
    (tmp_path / "graph.json").write_text(json.dumps(nx.adjacency_data(g)))
    p = Districting.from_file(tmp_path / "graph.json", districts=2, tolerance=0)
    plan = Plan.from_labels(p, [0, 0, 1, 1])
    assert set(p.evaluate(plan).metrics) == {"cut", "cut_edges", "deviation"}
    plan.plot(tmp_path / "plan.png")
    plan.to_geojson(tmp_path / "plan.geojson")
    assert json.loads((tmp_path / "plan.geojson").read_text())["features"][1]["geometry"] is None
    with pytest.raises(ValueError, match="node '0': x is None; it must be a number"):
        p.replace(objective="inertia")
    with pytest.raises(ValueError, match="a node has no 'area'"):
        p.replace(objective="polsby-popper")
    with pytest.raises(ValueError, match=r"node 1: county is \['A'\]; it must be a name or number"):
        nx.set_node_attributes(g, {0: "A", 1: ["A"]}, "county")
        Districting(g, districts=2, tolerance=0, objective="splits")


@pytest.mark.parametrize(
    "none",
    [
        None,
        float("nan"),
        *(
            {"type": f"{m}Polygon", "coordinates": c}
            for m, c in [("", []), ("", [[]]), ("Multi", []), ("Multi", [[]])]
        ),
    ],
)
def test_a_node_without_outline_leaves_points(none, tmp_path):
    g = grid(1, 4)
    for x in g:
        ring = [[x, 0], [x + 1, 0], [x + 1, 1], [x, 1], [x, 0]]
        g.nodes[x]["geometry"] = {"type": "Polygon", "coordinates": [ring]}
    drawn = Plan.from_labels(Districting(g, districts=2, tolerance=0), [0, 0, 1, 1])
    assert len(drawn.reock) == 2
    g.nodes[2]["geometry"] = none
    plan = Plan.from_labels(Districting(g, districts=2, tolerance=0), [0, 0, 1, 1])
    assert plan.reock == () and "reock_min" not in plan.scores()
    plan.plot(tmp_path / "plan.png")
    plan.to_html(tmp_path / "plan.html")
    drawn.to_html(tmp_path / "drawn.html")
    outlined = [
        f'"outlined":{word}' in (tmp_path / file).read_text()
        for file, word in (("plan.html", "false"), ("drawn.html", "true"))
    ]
    assert outlined == [True, True]


def test_positions_may_be_arrays():
    """The layouts of networkx are arrays."""
    g = grid(2, 2)
    nx.set_node_attributes(g, nx.circular_layout(g), "pos")
    plan = Plan.from_labels(Districting(g, districts=2, tolerance=0), [0, 0, 1, 1])
    assert len(plan.plot().axes[0].collections) == 3


# -- options and files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "smc", "rho": "1"}, "rho is '1'; it must be finite"),
        ({"method": "smc", "rho": None}, "rho is None; it must be finite"),
        ({"rho": "1"}, "rho is '1'; it must be 1 for methods other than smc"),
        ({"size": 2.5}, "size is 2.5; it must be a whole number, at least 1"),
        ({"size": "2"}, "size is '2'; it must be a whole number, at least 1"),
        ({"size": 0}, "size is 0; it must be a whole number, at least 1"),
        ({"method": "recom", "thin": 1.5}, "thin is 1.5; it must be a whole number, at least 1"),
        ({"seed": "a"}, "seed is 'a'; it must be a whole number, at least 0, or a numpy.random.Generator"),
        ({"seed": -1}, "seed is -1; it must be a whole number, at least 0"),
        ({"seed": 1.5}, "seed is 1.5; it must be a whole number, at least 0"),
        ({"max_cost": "a"}, "max_cost is 'a'; it must be a number"),
        ({"method": 3}, "unknown method '3' of an ensemble; known: recom, reversible-recom, smc, uniform"),
        ({"count_with": None}, "unknown counting method 'None'"),
    ],
)
def test_bad_options_of_ensembles_are_named(options, message):
    with pytest.raises(DeclarationError if "unknown" not in message else ValueError) as caught:
        Districting(grid(2, 2), districts=2, tolerance=0).ensemble(**options)
    assert message in str(caught.value)


def test_bad_options_of_counts_are_named():
    counts = Districting(grid(2, 2), districts=2, tolerance=0).count()
    for call, message in (
        (lambda: counts.sample(2.5), "size is 2.5; it must be a whole number, at least 0"),
        (lambda: counts.sample(-1), "size is -1; it must be a whole number, at least 0"),
        (lambda: counts.sample(seed="a"), "seed is 'a'"),
        (lambda: counts.unrank(2, 0.5), "rank is 0.5; it must be a whole number"),
    ):
        with pytest.raises(DeclarationError, match=message):
            call()
    assert counts.sample(0) == [] and len(counts.sample(np.int64(2), seed=np.uint8(1))) == 2


@pytest.mark.parametrize("label", [2**70, -(2**70), 2**53, np.uint64(2**63 + 5)])
def test_a_label_is_an_integer_that_floats_hold(label):
    p = Districting(grid(2, 2), districts=2, tolerance=0)
    for call in (p.evaluate, p.least_change):
        with pytest.raises(
            DeclarationError, match=r"assigns node 3 to .*; it must be an integer below 2\*\*53"
        ):
            call({0: 0, 1: 0, 2: 1, 3: label})
    with pytest.raises(DeclarationError, match=r"4 whole numbers, one a node, below 2\*\*53"):
        Plan.from_labels(p, [0, 0, 1, label])
    assert p.evaluate({0: 0, 1: 0, 2: 1, 3: 2**53 - 1}).violations["districts 0 to 1"] == 1


@pytest.mark.parametrize("write", ["to_html", "to_csv", "to_geojson", "plot"])
def test_a_missing_folder_is_named(write, tmp_path):
    plan = Plan.from_labels(Districting(grid(2, 2), districts=2, tolerance=0), [0, 0, 1, 1])
    with pytest.raises(DeclarationError, match=r"cannot write .*plan\.png: there is no folder .*nowhere"):
        getattr(plan, write)(tmp_path / "nowhere" / "plan.png")


@pytest.mark.parametrize("names", [[" a", "b", "c ", "d"], ["GEOID", "b", "c", "d"], ["a ", "a", "c", "d"]])
def test_a_plan_is_read_again_whatever_its_nodes_are_called(names, tmp_path):
    graph = nx.path_graph(4)
    nx.set_node_attributes(graph, 1, "population")
    p = Districting(nx.relabel_nodes(graph, dict(enumerate(names))), districts=2, tolerance=0)
    plan = Plan.from_labels(p, [0, 0, 1, 1])
    plan.to_csv(tmp_path / "plan.csv")
    assert Plan.from_csv(p, tmp_path / "plan.csv").assignment == plan.assignment


def test_parallel_edges_are_one_edge_of_a_chain():
    """As documented: more of them would add spanning trees, and draw the edge more often."""
    start = {v: v // 3 for v in range(6)}
    simple, twice = grid(2, 3), nx.MultiGraph(grid(2, 3))
    twice.add_edges_from([(0, 1), (0, 1), (1, 4)])
    drawn = [
        [
            plan.parts
            for plan in Districting(g, 2, tolerance=0)
            .ensemble("reversible-recom", 100, seed=1, start=start)
            .plans
        ]
        for g in (simple, twice)
    ]
    assert drawn[0] == drawn[1] and len(set(drawn[0])) == 3


def test_an_ensemble_shows_its_time(capsys):
    p = Districting(grid(2, 2), districts=2, tolerance=0)
    shown = p.ensemble(size=5, seed=1, progress=True)
    assert "ensemble by uniform" in capsys.readouterr().err
    assert shown.plans == p.ensemble(size=5, seed=1).plans and capsys.readouterr().err == ""
