"""Why a problem has no solution: all methods give one reason, in its words, with the least relaxation."""

import re

import networkx as nx
import numpy as np
import pytest

import forcopt as fo
from forcopt.data import Hierarchy, grid
from forcopt.fairness import BoundedGroupLoss, PairwiseFairness, PrefixQuotas
from forcopt.learning import Finite, Learner, Thresholds
from forcopt.models import (
    AccuracyPlan,
    Apportionment,
    BoundedLossRegression,
    CalibratedEqualErrors,
    CalibratedTransport,
    ConsistentRelease,
    Districting,
    FairClassification,
    FairPostprocessing,
    FairRanking,
    LatticeNoise,
    LeastEffortClassification,
    LeximaxCohort,
    MulticlassPostprocessing,
    PrivateAllocation,
    ScorePostprocessing,
    SecureSum,
    StratifiedAllocation,
)
from forcopt.models.adaptive_queries import DecayingCorrelation
from forcopt.models.census_release import Invariant
from forcopt.models.districting import CannotLink
from forcopt.problem import load, problem_classes


def star():
    graph = nx.star_graph(3)
    nx.set_node_attributes(graph, 1, "population")
    return graph


def release():
    h = Hierarchy.from_geoids(["480010001", "481130001", "481130002"], lengths=(2, 5, 9))
    fixed = (Invariant(1, "48113", 10), Invariant(2, "481130001", 7), Invariant(2, "481130002", 5))
    return ConsistentRelease(h, ([20], [9, 11], [9, 6, 6]), [1, 1, 1], invariants=fixed)


def ranking(integer):
    quotas = PrefixQuotas(least={"a": 1.0}, by="x") & PrefixQuotas(least={"d": 0.5}, by="y")
    groups = {"x": list("aab"), "y": list("ccd")}
    return FairRanking([3, 2, 1], groups=groups, positions=2, constraint=quotas, integer=integer)


def cohort(integer):
    fields = {"features": {"sex": list("ffmm")}, "quotas": {"sex": {"f": [3, 3]}}}
    return LeximaxCohort(utilities=np.eye(4), size=3, integer=integer, **fields)


def least_effort():
    p = load("strategic/four-agents")
    return LeastEffortClassification(
        agents=p.agents, criteria=p.criteria, edges=p.edges, min_true_positives=50
    )


FEATURES = np.arange(12.0)[:, None]
LABELS = [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]
RNG = np.random.default_rng(0)

INFEASIBLE = {
    "apportionment": (lambda: Apportionment([5, 5, 5], seats=2), "seats is 2", {"seats": 3}),
    "calibrated scores": (
        lambda: CalibratedEqualErrors(
            scores={"L": ([0.4], [1]), "H": ([0.6], [1])},
            weights={"L": 0.5, "H": 0.5},
            cutoff=0.5,
            cost_ratio=1.0,
        ),
        "the scores of 'L' reach",
        {"relaxation": 1.0},
    ),
    "transport": (
        lambda: CalibratedTransport(score=[[0.4], [1]], target=[0.2, 0.3], cutoff=0.5),
        "lower the limit of rates[false positive] by 0.2; lower the limit of rates[true positive] by 0.3",
        {"target": [0, 0]},
    ),
    "release": (release, "unit 48113: 10, its children 12", {"invariants": ()}),
    "map by sums": (
        lambda: Districting(grid(1, 3), 2, bounds=(2, 2)),
        "the total population 3 is below 2 districts times 2; the least relaxation: tolerance 0.333334, "
        "for districts of population 1 to 2",
        {"bounds": (1, 2)},
    ),
    "star": (
        lambda: Districting(star(), 2, bounds=(2, 2)),
        "the least relaxation: tolerance 0.5, for districts of population 1 to 3",
        {"bounds": (1, 3)},
    ),
    "nodes apart": (
        lambda: Districting(
            grid(1, 4, population=[2, 1, 2, 1]), 2, tolerance=0, side_constraints=[CannotLink([0, 1])]
        ),
        "the least relaxation: tolerance 0.333334, for districts of population 2 to 4",
        {"tolerance": 0.333334},
    ),
    "group losses": (
        lambda: FairClassification(
            FEATURES, LABELS, list("ab") * 6, BoundedGroupLoss(0.01), None, Thresholds()
        ),
        "raise the limit of group_loss[b] by 0.156667",
        {"constraint": BoundedGroupLoss(0.166667)},
    ),
    "pairs": (
        lambda: FairClassification(
            [[0], [1]],
            [1, 0],
            [0, 0],
            PairwiseFairness([(0, 1)], gamma=0.4, budget=0.5),
            None,
            Finite([[1, 0]]),
        ),
        "raise the limit of pair[0,1] by 0.1",
        {"constraint": PairwiseFairness([(0, 1)], gamma=0.5, budget=0.5)},
    ),
    "predictions": (
        lambda: FairPostprocessing(
            counts=[[[36, 4], [9, 5]], [[4, 16], [6, 20]]],
            groups=("n", "s"),
            constraint=BoundedGroupLoss(0.05),
        ),
        "raise the limit of group_loss[n] by 0.0833334; raise the limit of group_loss[s] by 0.225",
        {"constraint": BoundedGroupLoss(0.275)},
    ),
    "predictions of classes": (
        lambda: MulticlassPostprocessing(
            counts=[[[30, 6, 2], [22, 9, 4]], [[8, 40, 5], [10, 25, 8]], [[1, 7, 20], [3, 6, 9]]],
            groups=("n", "s"),
            constraint=BoundedGroupLoss(0.2),
        ),
        "raise the limit of group_loss[n] by 0.0436975; raise the limit of group_loss[s] by 0.216667",
        {"constraint": BoundedGroupLoss(0.416667)},
    ),
    "regression": (
        lambda: BoundedLossRegression([[1], [1], [1]], [0, 1, 3], groups=[[0, 1], [2]], bound=1.5),
        "a group loss of at least 1.69; the least relaxation: bound 1.69",
        {"bound": 1.69},
    ),
    "scores": (
        lambda: ScorePostprocessing(
            scores=RNG.random(40),
            labels=[0, 1, 1, 0] * 10,
            groups=tuple("ab" * 20),
            constraint=BoundedGroupLoss(0.05),
        ),
        "raise the limit of group_loss[a] by ",
        {"constraint": BoundedGroupLoss(0.5)},
    ),
    "lottery of rankings": (
        lambda: ranking(False),
        "no choice of the first 2 meets the quotas together; the least relaxation: lower the limit of "
        "prefix_quotas_(",
        {"constraint": PrefixQuotas(least={"a": 0.5}, by="x") & PrefixQuotas(least={"d": 0.5}, by="y")},
    ),
    "ranking": (
        lambda: ranking(True),
        "lower the limit of prefix_quotas_(",
        {"constraint": PrefixQuotas(least={"a": 0.5}, by="x") & PrefixQuotas(least={"d": 0.5}, by="y")},
    ),
    "noise in a box": (
        lambda: LatticeNoise(queries=1, epsilon=0.1, radius=1, delta=0.01),
        "delta 0.322044",
        {"delta": 0.322044},
    ),
    "least effort": (least_effort, "lower the limit of min_true_positives by 49", {"min_true_positives": 1}),
    "lottery of panels": (
        lambda: cohort(False),
        "sex = f (at least 3 -> 2)",
        {"quotas": {"sex": {"f": [2, 3]}}},
    ),
    "panel": (lambda: cohort(True), "sex = f (at least 3 -> 2)", {"quotas": {"sex": {"f": [2, 3]}}}),
    "sample": (
        lambda: StratifiedAllocation(sizes=[10, 20, 30], deviations=[1, 2, 3], sample_size=2),
        "the minimum of all strata needs 3; sample_size is 2",
        {"sample_size": 3},
    ),
    "sample within a budget": (
        lambda: StratifiedAllocation(sizes=[10, 20, 30], deviations=[1, 2, 3], costs=[1, 2, 3], budget=4),
        "the minimum of all strata needs 6; budget is 4",
        {"budget": 6},
    ),
    "private sample": (
        lambda: PrivateAllocation(
            sizes=[10, 20, 30], deviations=[1, 2, 3], sample_size=2, epsilon=1.0, value_bound=1
        ),
        "the minimum of all strata needs 3; sample_size is 2",
        {"sample_size": 3},
    ),
    "secure sum": (
        lambda: SecureSum(servers=2, dimension=1000, epsilon=1.0, delta=1e-6, bits=8),
        "with 8 bits, no step leaves room for shares that keep epsilon 1 and delta 1e-06 in 1000 dimensions; "
        "the least relaxation: bits 9",
        {"bits": 9},
    ),
    "plan": (
        lambda: AccuracyPlan(DecayingCorrelation(100, 0.0, 3), 1000, 5, 0.1),
        "related attributes alone fail with probability 1",
        {"data_model": DecayingCorrelation(100, 1.0, 3)},
    ),
}
"""Declarations without a solution, a part of their reason, and fields with which they have one."""

OTHER = {
    "CountyClustering": "the components of the graph decide it; the reason names the one that does not fit",
    "FormulaGrant": "each rule takes another amount off the total, and names it",
    "RobustnessRadius": "a constant classifier has no other label: no limit can move",
}
"""Classes that may be infeasible for one of their methods, or whatever their limits are."""

FEASIBLE = set(
    """
    AdaptiveRobustClassification CountingQueries CoverageDecision
    DPHypothesisTest EcologicalRegression FairAuction LevelBudget
    LexifairClassification LexifairRegression LinearQueries PrecisionAllocation PrivateMechanism QuerySchedule
    RobustBayes StableDistrict StrategicClassification StrategicLinearClassifier TargetDesign
    TargetDesign2D TightAmplification
    """.split()  # noqa: SIM905
)
"""Classes of which every valid declaration has a solution."""


def test_every_class_is_here():
    shown = {type(make()).__name__ for make, _, _ in INFEASIBLE.values()}
    others = set(OTHER)
    assert set(problem_classes()) <= shown | others | FEASIBLE
    assert not shown & FEASIBLE and not others & (shown | FEASIBLE)


@pytest.mark.parametrize("name", INFEASIBLE)
def test_all_methods_explain_alike(name):
    make, words, _ = INFEASIBLE[name]
    p, reasons = make(), {}
    for method in p.methods.values():
        for where in ({}, {"backend": "clarabel"}, {"backend": "scip"}):
            options = {"seed": 1} if "seed" in method.common and method.kind == "algorithm" else {}
            try:
                s = p.solve(method.name, **where, **options)
            except fo.UnsupportedError:
                continue
            except fo.DeclarationError:
                break  # the method does not take the problem
            assert s.status != "optimal" and s.status != "feasible", method.name
            if s.status == "infeasible":
                reasons[method.name] = s.reason
            break
    assert reasons and len(set(reasons.values())) == 1, reasons
    reason = next(iter(reasons.values()))
    assert words in reason and not re.search(r"\bc\d+\b", reason)


@pytest.mark.parametrize("name", INFEASIBLE)
def test_the_proposed_change_is_enough(name):
    make, _, fields = INFEASIBLE[name]
    s = make().replace(**fields).solve(**({"time_limit": 20} if name == "secure sum" else {}))
    assert s.status.has_solution and s.evaluation.feasible


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("apportionment", {"seats": 2}),
        ("nodes apart", {"tolerance": 0.33333}),
        ("noise in a box", {"delta": 0.322}),
        ("group losses", {"constraint": BoundedGroupLoss(0.1666)}),
        ("predictions", {"constraint": BoundedGroupLoss(0.2749)}),
        ("predictions of classes", {"constraint": BoundedGroupLoss(0.4166)}),
        ("regression", {"bound": 1.6899}),
        ("pairs", {"constraint": PairwiseFairness([(0, 1)], gamma=0.499, budget=0.5)}),
        ("least effort", {"min_true_positives": 1.01}),
        ("sample", {"sample_size": 2.9}),
    ],
)
def test_a_smaller_change_is_not_enough(name, fields):
    make, _, _ = INFEASIBLE[name]
    assert make().replace(**fields).solve().status == "infeasible"


def test_a_learner_that_finds_nothing_proves_nothing():
    linear_model = pytest.importorskip("sklearn.linear_model")
    p = FairClassification(
        FEATURES,
        LABELS,
        list("ab") * 6,
        BoundedGroupLoss(0.01),
        None,
        Learner(linear_model.LogisticRegression()),
    )
    s = p.solve("column-generation")
    assert s.status == "limit" and "proves nothing" in s.reason


def test_rows_of_formulations_have_names():
    """A reason names rows, and so does a file: `c1` would mean nothing to a reader."""
    unnamed = []
    for name in fo.problem.examples():
        p = load(name)
        for method in p.methods.values():
            if method.kind != "formulation":
                continue
            try:
                m = p.to_model(method.name)
            except (fo.DeclarationError, fo.UnsupportedError):
                continue
            if any(re.fullmatch(r"c\d+", c.name) for c in m.constraints):
                unnamed.append(f"{type(p).__name__}.{method.name}")
    assert sorted(set(unnamed)) == []
