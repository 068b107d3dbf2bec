"""Rules on districts: their classes, every method that takes them, and enumeration by networkx."""

import itertools

import networkx as nx
import numpy as np
import pytest

import forcopt as fo
from forcopt.data import grid
from forcopt.errors import DeclarationError
from forcopt.fairness import DemographicParity, GroupRates
from forcopt.models import Districting
from forcopt.models.districting import Fixed, Share


def town(seed, rows=2, columns=4, districts=3):
    rng = np.random.default_rng(seed)
    g = grid(rows, columns)
    n = len(g)
    for v in g:
        g.nodes[v].update(a=int(rng.integers(0, 9)), b=int(rng.integers(0, 9)), county=int(v % 3))
    return Districting(g, districts=districts, bounds=(1, n - districts))


def plans(p):
    """All plans, by labels and networkx alone: the sets of each, and its cut."""
    nodes, seen = list(p.graph), set()
    low, high = p.bounds
    for labels in itertools.product(range(p.districts), repeat=len(nodes)):
        parts = [frozenset(v for v, d in zip(nodes, labels, strict=True) if d == k) for k in set(labels)]
        key = frozenset(parts)
        if len(parts) < p.districts or key in seen:
            continue
        seen.add(key)
        sized = all(low <= sum(p.graph.nodes[v]["population"] for v in s) <= high for s in parts)
        if sized and all(nx.is_connected(p.graph.subgraph(s)) for s in parts):
            of = dict(zip(nodes, labels, strict=True))
            yield parts, sum(of[u] != of[v] for u, v in p.graph.edges)


def total(p, part, name):
    return sum(p.graph.nodes[v][name] for v in part)


def each(p):
    d = p.parts().districts
    gap = d.total("a") - d.total("b")
    return [abs(gap) <= 6], lambda parts: all(abs(total(p, s, "a") - total(p, s, "b")) <= 6 for s in parts)


def curved(p):
    d = p.parts().districts
    rule = fo.sum_squares(d.cut_edges[:, None], axis=1) <= 9.0 * d.nodes
    cut = [None]

    def holds(parts):
        cut[0] = [sum((u in s) != (v in s) for u, v in p.graph.edges) for s in parts]
        return all(c * c <= 9 * len(s) for c, s in zip(cut[0], parts, strict=True))

    return [rule], holds


def counted(p):
    plan = p.parts()
    met = plan.meets(plan.districts.share("a", "b") >= 1.1)
    return [
        met.sum() == 1
    ], lambda ps: sum(total(p, s, "a") - 1.1 * total(p, s, "b") > -1e-9 for s in ps) == 1


def units(p):
    d = p.parts().districts
    limit = 2 * p.districts + 1

    def holds(parts):
        return sum(len({p.graph.nodes[v]["county"] for v in s}) for s in parts) <= limit

    return [d.units("county").sum() <= limit], holds


def ties(p):
    d = p.parts().districts
    values = d.total("a")

    def holds(parts):
        return np.ptp([total(p, s, "a") for s in parts]) <= 8

    return [values.max() - values.min() <= 8], holds


CASES = {"each": each, "curved": curved, "counted": counted, "units": units, "ties": ties}
SCOPES = {"each": "each", "curved": "each", "counted": "sum", "units": "sum", "ties": "plan"}


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.nightly) for s in (1, 2))])
@pytest.mark.parametrize("name", CASES)
def test_every_exact_method_that_takes_a_rule_finds_the_best_plan_of_enumeration(name, seed):
    p = town(seed)
    constraints, holds = CASES[name](p)
    q = p.subject_to(*constraints)
    assert {rule.scope for rule in q.rules} == {SCOPES[name]}
    assert Districting.from_dict(q.to_dict()) == q
    best = min((cut for parts, cut in plans(p) if holds(parts)), default=None)
    for method in (
        "portfolio",
        "set-partitioning",
        "column-generation",
        "flow",
        "labels-separators",
        "shirabe",
    ):
        if SCOPES[name] not in q.methods[method].rules:
            with pytest.raises(DeclarationError, match="does not take a rule that ties parts together"):
                q.solve(method)
            continue
        backend = "scip" if name == "curved" and q.methods[method].kind == "formulation" else None
        s = q.solve(method, backend=backend)
        if best is None:
            assert s.status == "infeasible", (method, s)
        else:
            assert s.status == "optimal" and s.objective == best, (method, s, best)
            assert s.evaluation.feasible


def test_a_notion_of_fairness_is_a_rule_whose_level_is_eliminated():
    p = town(4)
    plan = p.parts()
    a, b = (sum(p.graph.nodes[v][x] for v in p.graph) for x in "ab")
    rows = []
    for d in range(p.districts):
        inside = fo.stack([plan.district(d).total("a"), plan.district(d).total("b")])
        rates = GroupRates(fo.stack([0 * inside, inside], axis=1), np.array([[0, a], [0, b]]))
        rows += DemographicParity(0.2).rows(rates)
    q = p.subject_to(rows)
    assert [rule.scope for rule in q.rules] == ["each"]

    def holds(parts):
        return all(abs(total(p, s, "a") / a - total(p, s, "b") / b) <= 0.2 + 1e-9 for s in parts)

    best = min(cut for parts, cut in plans(p) if holds(parts))
    assert {q.solve(m).objective for m in ("column-generation", "set-partitioning", "flow")} == {best}


def test_a_rule_on_one_district_needs_a_name_of_the_district():
    p = town(5)
    rule = p.parts().district(1).total("a") <= 8
    with pytest.raises(DeclarationError, match="Fixed\\(node, 1\\) names the district"):
        p.subject_to(rule)
    named = p.replace(side_constraints=[Fixed(0, 1)])
    q = named.subject_to(named.parts().district(1).total("a") <= 8)
    assert [r.scope for r in q.rules] == ["one"]
    best = min(c for parts, c in plans(p) if all(total(p, s, "a") <= 8 for s in parts if 0 in s))
    for method in ("column-generation", "set-partitioning", "flow"):
        s = q.solve(method)
        assert (
            s.objective == best
            and total(p, [v for v, d in s.decision.assignment.items() if d == 1], "a") <= 8
        )


def test_refusals_of_rules_say_why():
    p = town(6)
    plan = p.parts()
    with pytest.raises(DeclarationError, match="constraints on the columns of parts"):
        p.subject_to(fo.Model().variable("x") <= 1)
    with pytest.raises(DeclarationError, match="wealth is None; it must be a number"):
        plan.districts.total("wealth")
    with pytest.raises(DeclarationError, match="no integer variable"):
        p.subject_to(plan.districts.total("a") <= 5 * plan.variable("z", binary=True))
    first, second = plan.district(0), plan.district(1)
    with pytest.raises(DeclarationError, match="change places"):
        p.subject_to(first.total("a") + 1 <= second.total("a"))
    with pytest.raises(DeclarationError, match="must be below 3"):
        plan.district(3)


def test_a_share_beside_rules():
    """The search by districts that meet the share divided what they leave by the rules of the whole plan."""
    g = grid(1, 4)
    for v, black in enumerate([4, 0, 0, 7]):
        g.nodes[v].update(vap=10, black=black)
    share = Share(attribute="black", total="vap", at_least=0.7)
    p = Districting(g, 2, bounds=(1, 3), side_constraints=[share])
    d = p.parts().districts
    for rule in (d.nodes.sum() >= 4, d.cut_edges.sum() >= 2, d.total("black").sum() >= 11):
        s = p.subject_to(rule).solve()
        assert (s.status, s.objective) == ("optimal", 1)
    assert p.subject_to(d.total("black") <= 4).solve().status == "infeasible"


def test_scores_with_a_rule_on_the_plan_are_searched_and_not_proved():
    g = grid(1, 4)
    for v in g:
        g.nodes[v].update(area=1.0, boundary_perim=3.0, a=v)
    nx.set_edge_attributes(g, 1.0, "shared_perim")
    p = Districting(g, 2, tolerance=0, objective="schwartzberg")
    a = p.parts().districts.total("a")
    s = p.subject_to(fo.maximum(a, axis=0) - fo.minimum(a, axis=0) <= 1).solve()
    assert s.status == "limit" and "no exact method takes a score" in s.reason
