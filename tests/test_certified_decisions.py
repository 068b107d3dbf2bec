"""Decisions of any origin, certified as points of formulations; and searches that start from a decision."""

import pickle
from fractions import Fraction

import cohort_oracle  # noqa: F401  (registers the oracle)
import numpy as np
import pytest
import strategic_oracle  # noqa: F401  (registers the oracle)

import forcopt as fo
from forcopt.data import grid
from forcopt.models import Districting, FairClassification, FairPostprocessing, LeximaxCohort
from forcopt.models.fair_classification import AllFunctions, Finite, Halfspaces, Thresholds


@pytest.mark.parametrize(
    ("example", "method", "optimal"),
    [
        ("allocation/establishments", "greedy", True),
        ("allocation/establishments", "proportional", False),
        ("allocation/private", "proportional", False),
        ("cohort/committee", "column-generation", True),
        ("cohort/integer", "brute-force", True),
        ("learning/elicited", "column-generation", True),
        ("lexifair/three-models", "column-generation", True),
        ("lexifair/thresholds", "no-regret", False),
        ("strategic/least-effort", "enumeration", True),
        ("strategic/max-cover", "enumeration", True),
        ("strategic/max-cover", "greedy-deletion", False),
    ],
)
def test_decisions_of_algorithms_are_certified(example, method, optimal):
    problem = fo.load(example)
    s = problem.solve(method)
    c = s.certify()
    assert c.feasible
    assert c.optimal is optimal
    assert c.how.startswith("in formulation ")
    if "cohort" not in example and "lexifair" not in example:  # theirs have objectives of several stages
        assert float(c.objective) == pytest.approx(s.objective, rel=1e-9)
        worse = c.objective - c.bound if problem.sense == "min" else c.bound - c.objective
        assert worse == 0 if optimal else worse > 0


def test_the_reduction_of_binaries_is_named_as_a_premise():
    problem = fo.load("allocation/establishments")
    assert "taking for granted that the Lagrangian bound" in problem.solve("milp").certify().how
    assert "granted" not in problem.solve("greedy").certify().how
    with pytest.raises(fo.DeclarationError, match="the binaries are for"):
        problem.certify(problem.solve("proportional").decision, "milp")


LADDER = Districting(grid(2, 4), districts=2, bounds=(4, 4))
ROWS = {v: v // 4 for v in LADDER.nodes}


@pytest.mark.parametrize(
    "method",
    ["flow", "flow-per-district", "shirabe", "labels-separators"],
)
def test_plans_in_every_formulation(method):
    best = LADDER.solve(method)
    c = best.certify()
    assert c.optimal
    assert c.objective == c.bound == best.objective
    c = LADDER.certify(best.decision, method)
    assert c.optimal
    assert c.objective == best.objective
    other = next(
        plan for plan in (ROWS, {0: 0, 1: 0, 3: 0, 2: 1, 4: 1, 5: 1}) if LADDER.evaluate(plan).feasible
    )
    c = LADDER.certify(other, method)
    assert c.feasible
    assert c.objective == LADDER.evaluate(other).objective
    corner = {0: 0, 1: 1, 2: 0, 3: 0, 4: 1, 5: 1, 6: 1, 7: 0}  # cut off from its district
    assert LADDER.certify(corner, method).feasible is False


def test_centres_are_roots():
    graph = grid(2, 3)
    for v in graph:
        graph.nodes[v].update(x=v % 3, y=v // 3)
    problem = Districting(graph, districts=2, bounds=(3, 3), objective="inertia")
    plan = problem.solve("local-search", seed=0).decision
    c = problem.certify(plan, "shirabe")
    assert c.feasible
    assert float(c.objective) == pytest.approx(problem.evaluate(plan).objective)


def test_a_plan_that_falls_apart():
    labels = [0, 1, 0, 1, 0, 1, 2, 2, 2]
    c = Districting(grid(3, 3), districts=3, bounds=(3, 3)).certify(dict(enumerate(labels)))
    assert c.feasible is False
    assert "no point has the values that the decision gives: infeasibility proved" in c.how
    assert c.optimal is None


def test_that_there_is_no_decision_is_proved():
    problem = Districting(grid(1, 3), districts=2, bounds=(1, 1))
    s = problem.solve("column-generation")
    assert s.status == "infeasible"
    c = s.certify()
    assert c.feasible is False
    assert "infeasibility proved" in c.how
    assert problem.certify(None, "shirabe").feasible is False
    assert LADDER.certify(None).feasible


def test_what_cannot_be_certified_says_why():
    c = fo.load("strategic/plane").solve("sweep").certify()
    assert c.feasible is None
    assert c.optimal is None
    assert "milp: the formulation takes no decision" in c.how
    assert str(c).startswith("feasible   not known")
    c = fo.load("cohort/panel").solve("column-generation").certify()
    assert c.feasible is None
    assert "marginals need not come from a lottery" in c.how


def test_named_formulations_must_fit():
    plan = LADDER.solve("flow").decision
    with pytest.raises(fo.DeclarationError, match="'relaxed' cannot certify this"):
        LADDER.certify(plan, "relaxed")
    with pytest.raises(fo.DeclarationError, match="'local-search' cannot certify"):
        LADDER.certify(plan, "local-search")
    with pytest.raises(fo.DeclarationError, match="is no mixture of hypotheses"):
        fo.load("learning/elicited").certify([0.5] * 3, "lp")


def test_a_point_that_is_off_by_rounding_and_not_optimal_is_repaired():
    problem = LeximaxCohort(utilities=np.eye(3), size=1)
    third = np.full(3, 1 / 3) * (1 + 1e-12)
    c = problem.certify(third)
    assert c.feasible
    assert 0 < c.violation < Fraction(1, 10**9)
    c = problem.certify([0.2 + 1e-12, 0.3, 0.5])
    assert c.feasible
    assert c.optimal is False
    assert "; the bound is 0.13 away" in str(c)
    c = problem.certify([0.2, 0.3, 0.4])
    assert c.feasible is False


@pytest.mark.parametrize("hypotheses", [Finite([[0, 0, 1, 1], [0, 1, 1, 0]]), Thresholds(), AllFunctions()])
def test_mixtures_and_back(hypotheses):
    problem = FairClassification(
        features=[[0.0], [1.0], [2.0], [3.0]],
        labels=[0, 1, 1, 0],
        groups=["a", "b", "a", "b"],
        constraint=fo.fairness.DemographicParity(0.5),
        hypotheses=hypotheses,
    )
    s = problem.solve("column-generation")
    c = s.certify()
    assert c.feasible
    assert float(c.objective) == pytest.approx(s.objective, abs=1e-9)


def test_a_mixture_of_others_than_the_hypotheses_is_refused():
    records = {"features": [[0.0], [1.0]], "labels": [0, 1], "groups": ["a", "b"]}
    fair = fo.fairness.DemographicParity(1.0)
    free = FairClassification(**records, constraint=fair, hypotheses=Thresholds())
    other = FairClassification(**records, constraint=fair, hypotheses=Finite([[0, 0], [1, 1]]))
    c = other.certify(free.solve("column-generation").decision)
    assert c.feasible is None
    assert "not among the hypotheses" in c.how


def test_the_single_halfspace_is_read_and_written():
    from scipy import sparse

    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    model = fo.Model()
    hull = Halfspaces().oracle(points).hull(model, sparse.csr_array(np.array([[1.0, -1.0, 1.0, 0.0]])), True)
    model.minimize(hull.mapped[0])
    said = model.solve()
    weights, found = hull.mixture(said)
    values = hull.start(weights, np.array([h.predictions for h in found]))
    assert all((said[v] == x).all() for v, x in values.items())


@pytest.mark.parametrize(("method", "backend"), [("labels-separators", "scip"), ("flow", "scip")])
def test_a_search_starts_from_a_decision(method, backend):
    problem = Districting(grid(4, 4), districts=2, bounds=(8, 8))
    plan = {v: v // 8 for v in problem.nodes}
    s = problem.solve(method, backend=backend, start=plan)
    assert s.objective == 4
    assert s.trace[0].objective == 4  # nothing worse was found on the way


def test_who_takes_no_start_says_so():
    plan = LADDER.solve("flow").decision
    with pytest.raises(fo.DeclarationError, match="'portfolio' takes no start"):
        LADDER.solve("portfolio", start=plan)
    with pytest.raises(fo.DeclarationError, match="the formulation takes no decision"):
        fo.load("strategic/plane").solve("milp", start="any")
    assert LADDER.solve("frontier", start=plan).objective == LADDER.solve("flow").objective


def test_the_probabilities_of_a_postprocessor():
    problem = fo.load("postprocessing/two-groups")
    c = problem.certify(np.full((2, 2), 0.5))
    assert c.feasible
    assert c.optimal is False
    assert float(c.objective) == pytest.approx(0.5)
    assert isinstance(problem, FairPostprocessing)
    assert problem.certify([[0, 0], [1, 1]]).feasible is False  # as predicted is not fair


def test_solve_certifies_and_the_certificate_is_stored():
    s = LADDER.solve("flow", certify=True)
    assert s.certificate.optimal and s.certificate.objective == s.objective
    again = pickle.loads(pickle.dumps(s))
    assert again.certificate.optimal and again.certificate.model is None
    assert LADDER.solve("flow").certificate is None
    with pytest.raises(fo.DeclarationError, match="is private; it has no certificate"):
        fo.load("postprocessing/two-groups").solve("dp-postprocessing", certify=True)
