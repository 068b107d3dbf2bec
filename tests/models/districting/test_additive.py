"""Objectives that are sums over districts: every method that takes them, against enumeration."""

import json

import networkx as nx
import numpy as np
import pytest
from districting_oracle import all_plans

import forcopt as fo
from forcopt.data import delaunay, grid
from forcopt.errors import DeclarationError
from forcopt.models import Districting
from forcopt.models.districting import Fixed, MustLink, Share, SplitLimit, additive, column_generation

SCORES = ("polsby-popper", "inverse-polsby-popper", "schwartzberg")


def shaped(graph, seed):
    """A graph with populations, areas and borders; no district is rounder than a disc."""
    rng = np.random.default_rng(seed)
    for v in graph:
        facts = {"population": int(rng.integers(1, 4)), "area": float(rng.uniform(0.1, 0.3))}
        facts |= {"a": int(rng.integers(0, 9)), "b": int(rng.integers(1, 9)), "county": int(v % 3)}
        graph.nodes[v].update(facts, boundary_perim=float(rng.uniform(0.2, 2)))
    for edge in graph.edges:
        graph.edges[edge]["shared_perim"] = float(rng.uniform(0.3, 2))
    return graph


def town(seed, **fields):
    graph = grid(3, 3) if seed % 2 else delaunay(9, seed)
    return Districting(shaped(graph, seed), 3, **({"tolerance": 0.4} | fields))


def round_about(p, part):
    g = p.graph
    own = sum(g.nodes[v]["boundary_perim"] for v in part)
    return own + sum(d["shared_perim"] for u, v, d in g.edges(data=True) if (u in part) != (v in part))


def total(p, part, name):
    return sum(p.graph.nodes[v][name] for v in part)


def cut(p, part):
    return sum((u in part) != (v in part) for u, v in p.graph.edges)


def inverse(p, part):
    return round_about(p, part) ** 2 / (4 * np.pi * total(p, part, "area"))


def score(name):
    def cost(p, part):
        x = inverse(p, part)
        return {"polsby-popper": 1 / x, "schwartzberg": x**0.5}.get(name, x) / p.districts

    return lambda p: p.replace(objective=name), cost


def gaps(p):
    d = p.parts().districts
    return p.minimize(fo.abs(d.total("a") - 1.25 * d.total("b")).sum())


def majorities(p):
    plan = p.parts()
    met = plan.meets(plan.districts.share("a", "b") >= 1.1)
    return p.maximize((met + 0.125 * plan.districts.cut_edges).sum())


def borders(p):
    d = p.parts().districts
    return p.minimize((d.perimeter - 0.5 * d.total("a") + 0.25).sum())


def mixed(p):
    d = p.parts().districts
    return p.minimize((d.inverse_polsby_popper + 0.2 * d.cut_edges + fo.abs(d.total("a") - 8)).sum())


def majority(p, part):
    return float(total(p, part, "a") - 1.1 * total(p, part, "b") > -1e-9) + 0.125 * cut(p, part)


CASES = {name: score(name) for name in SCORES} | {
    "gaps": (gaps, lambda p, s: abs(total(p, s, "a") - 1.25 * total(p, s, "b"))),
    "majorities": (majorities, majority),
    "borders": (borders, lambda p, s: round_about(p, s) - 0.5 * total(p, s, "a") + 0.25),
    "mixed": (mixed, lambda p, s: inverse(p, s) + 0.2 * cut(p, s) + abs(total(p, s, "a") - 8)),
}
PLANS = ("set-partitioning", "column-generation", "portfolio", "local-search", "recom", "large-neighbourhood")
PROGRAMS = ("flow", "labels-separators", "shirabe")


def plans_of(p):
    """The plans that satisfy all constraints, as sets of nodes."""
    free = p.replace(side_constraints=(), tolerance=None, bounds=p.population_bounds)
    for parts in all_plans(free):
        sets = [{p.nodes[v] for v in part} for part in parts]
        label = {v: d for d, part in enumerate(sets) for v in part}
        if all(item.violation(p, np.array([label[v] for v in p.nodes])) == 0 for item in p.side_constraints):
            yield sets


@pytest.mark.parametrize("seed", (1, 2))
@pytest.mark.parametrize("name", CASES)
def test_every_method_that_takes_a_sum_over_districts_agrees_with_enumeration(name, seed):
    declared, cost = CASES[name]
    p = declared(town(seed))
    values = [sum(cost(p, part) for part in sets) for sets in plans_of(p)]
    sign = -1 if p.sense == "max" else 1
    best = sign * min(sign * value for value in values)
    ratios = name in SCORES or name == "mixed"
    for method in PLANS + PROGRAMS:
        if method in PROGRAMS and ratios:
            with pytest.raises(DeclarationError, match="an integer program does not take"):
                p.solve(method)
            continue
        s = p.solve(method, seed=0)
        assert s.evaluation.feasible
        if p.methods[method].exact:
            assert s.status == "optimal" and s.objective == pytest.approx(best, abs=1e-6), method
            assert s.bound == pytest.approx(best, abs=1e-6)
        else:
            assert min(abs(s.objective - np.array(values))) < 1e-6
            assert sign * (s.objective - best) > -1e-6


@pytest.mark.parametrize("name", ("polsby-popper", "schwartzberg", "gaps"))
def test_side_constraints_hold_beside_a_sum_over_districts(name):
    declared, cost = CASES[name]
    for seed, item in enumerate(
        (MustLink([0, 4]), Share("a", "b", at_least=0.9), SplitLimit(3), Fixed(5, 1))
    ):
        p = declared(town(seed, side_constraints=[item]))
        sign = -1 if p.sense == "max" else 1
        if isinstance(item, Fixed):
            p = p.replace(tolerance=0.4)
        values = [sign * sum(cost(p, part) for part in sets) for sets in _with(p, item)]
        for method in ("set-partitioning", "column-generation"):
            s = p.solve(method)
            if not values:
                assert s.status == "infeasible"
            else:
                assert s.status == "optimal" and s.evaluation.feasible
                assert sign * s.objective == pytest.approx(min(values), abs=1e-6)


def _with(p, item):
    return plans_of(p.replace(side_constraints=()) if isinstance(item, Fixed) else p)


def test_a_sum_over_districts_is_kept_in_files_and_shown(tmp_path):
    p = town(3)
    for q in (p.replace(objective="schwartzberg"), mixed(p), majorities(p)):
        q.save(tmp_path / "p.json")
        again = fo.load(tmp_path / "p.json")
        assert again == q and hash(again) == hash(q) and again.sense == q.sense
        assert again.replace(tolerance=0.5).goal == q.goal
        json.dumps(q.to_dict())
        plan = q.solve("local-search", seed=0).decision
        assert again.evaluate(plan).objective == q.evaluate(plan).objective
    d = p.parts().districts
    assert str(p.minimize(d.perimeter.sum()).objective) == "min sum over parts: perimeter"
    assert p.replace(objective="polsby-popper").sense == "max"


def test_a_score_equals_that_of_the_plan_and_its_plan_is_certified():
    p = town(4).replace(objective="polsby-popper")
    s = p.solve("column-generation")
    assert s.objective == pytest.approx(np.mean(s.decision.polsby_popper))
    assert s.evaluation.metrics["polsby_popper_mean"] == pytest.approx(s.objective)
    certificate = s.certify()
    assert certificate.feasible and certificate.optimal is None and certificate.objective is None
    steps = []
    p.solve("portfolio", on_improvement=lambda step: steps.append(step))
    assert steps[-1].objective == pytest.approx(s.objective)
    assert all(step.bound >= s.objective - 1e-6 for step in steps)


def test_other_numbers_of_districts_and_rules_on_compactness():
    p = Districting(shaped(grid(2, 3), 1), 1, tolerance=0, objective="inverse-polsby-popper")
    whole = inverse(p, set(p.graph))
    for method in ("set-partitioning", "column-generation", "portfolio"):
        assert p.solve(method).objective == pytest.approx(whole)
    q = town(6)
    rule = q.subject_to(q.parts().districts.polsby_popper >= 0.06)
    kept = [s for s in plans_of(q) if all(1 / inverse(q, part) >= 0.06 for part in s)]
    best = min((sum(cut(q, part) for part in s) / 2 for s in kept), default=None)
    s = rule.solve("set-partitioning")
    assert s.objective == best if kept else s.status == "infeasible"


def test_refusals_of_sums_over_districts_say_why():
    p = town(7)
    plan = p.parts()
    d = plan.districts
    with pytest.raises(DeclarationError, match="same function of each"):
        p.minimize(d.total("a").max())
    with pytest.raises(DeclarationError, match="same function of each"):
        p.minimize(plan.district(0).total("a") + 0)
    with pytest.raises(DeclarationError, match="columns of parts"):
        p.minimize(fo.Model().variable("x"))
    with pytest.raises(fo.CurvatureError):
        p.maximize(fo.abs(d.total("a") - 3).sum())
    with pytest.raises(DeclarationError, match="unknown objective 'polsby'"):
        p.replace(objective="polsby")
    with pytest.raises(DeclarationError, match="no 'area'"):
        Districting(grid(2, 2), 2, tolerance=0, objective="schwartzberg")
    with pytest.raises(DeclarationError, match="takes the objective cut, not polsby-popper"):
        p.replace(objective="polsby-popper").solve("frontier")
    tied = p.subject_to(d.total("a").max() - d.total("a").min() <= 9).replace(objective="schwartzberg")
    with pytest.raises(DeclarationError, match="does not take a rule that ties parts together"):
        tied.solve("set-partitioning")
    flat = nx.Graph(p.graph)
    flat.nodes[0]["area"] = 0
    with pytest.raises(DeclarationError, match="node 0: area is 0"):
        p.replace(graph=flat, objective="schwartzberg")
    large = nx.Graph(p.graph)
    for v in large:
        large.nodes[v]["area"] = 1000.0
    with pytest.raises(DeclarationError, match="more area than a disc"):
        p.replace(graph=large, objective="polsby-popper").solve("column-generation")


@pytest.mark.parametrize("objective", SCORES)
@pytest.mark.parametrize("error", [TimeoutError("the time limit passed"), MemoryError("the memory is full")])
def test_limits_within_the_check_of_areas_end_the_run_without_a_bound(monkeypatch, objective, error):
    """The plan is kept, and the bound, which needs the check, is not told."""
    p, listed = town(1, objective=objective), additive._Additive.listed_on

    def ended(run, *args):
        if run.problem.objective == "inverse-polsby-popper" and run.seed is None:  # the run of the check
            raise column_generation._Stopped(*error.args) if isinstance(error, TimeoutError) else error
        yield from listed(run, *args)

    monkeypatch.setattr(additive._Additive, "listed_on", ended)
    s = p.solve("column-generation", seed=1)
    assert s.status == "feasible" and s.evaluation.feasible and s.message == str(error)
    assert s.bound == (np.inf if objective == "polsby-popper" else -np.inf)


@pytest.mark.parametrize("method", ["column-generation", "set-partitioning"])
@pytest.mark.parametrize("objective", SCORES)
def test_a_limit_that_has_passed_keeps_the_start(objective, method):
    p = town(1, objective=objective)
    best = p.solve("set-partitioning")
    for limit in (0.0, 1e-4, 1e-2):
        s = p.solve(method, time_limit=limit, start=best.decision)
        assert s.status in ("optimal", "feasible") and s.objective == pytest.approx(best.objective)


def test_integer_programs_take_constants_beside_columns():
    p = Districting(grid(3, 3), districts=3, tolerance=0.4)
    d = p.parts().districts
    q = p.minimize(fo.maximum(d.nodes - 2, 0).sum() - fo.minimum(d.nodes, 3).sum())
    assert {q.solve(name).objective for name in ("flow", "labels-separators", "set-partitioning")} == {-6.0}


@pytest.mark.parametrize("factor", [1, 1000])
def test_large_costs_are_proved_with_the_bound_on_its_side(factor):
    """Costs of 1e11 units, where a plan is known and those no better are to be excluded."""
    g = nx.Graph()
    for v, people in zip([0, 10, 3, 2, 4, 8, 9, 1, 5, 7, 6], [9, 6, 1, 1, 9, 6, 5, 9, 6, 2, 1], strict=True):
        g.add_node(v, population=people, county="A" if v in (1, 4, 8, 9, 10) else "B")
    ends = "0-8 0-6 0-1 0-5 10-8 10-3 10-5 3-7 2-6 2-1 4-1 4-5 4-9 8-6 9-7 5-7"
    g.add_edges_from(tuple(map(int, pair.split("-"))) for pair in ends.split())
    p = Districting(g, districts=3, tolerance=0.5, side_constraints=[SplitLimit(1)])
    q = p.maximize(factor * p.parts().districts.cut_edges.sum())
    found = [q.solve(name) for name in ("portfolio", "column-generation", "set-partitioning")]
    assert [s.status for s in found] == ["optimal"] * 3
    assert all(s.objective == pytest.approx(16 * factor) == s.bound for s in found)
