import json
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from processor_time import spends_at_most

import forcopt as fo
from forcopt.causal import CausalModel
from forcopt.errors import DeclarationError
from forcopt.fairness import (
    CounterfactualOrder,
    ExposureParity,
    InGroupFairness,
    PrefixQuotas,
    ProportionalExposure,
    SelectionParity,
)
from forcopt.models import FairRanking
from forcopt.models.fair_ranking import (
    Ranking,
    RankingLottery,
    measures,
    moving_company,
    random_ranking,
)
from forcopt.models.fair_ranking.instances import INSTANCES

from .ranking_oracle import optimum

BASELINES = ("sort", "counterfactual", "quotas")
FORMULATIONS = ("assignment", "milp", "prefix-counts")


@st.composite
def problems(draw):
    """A problem, and the same in the oracle's terms. Ties, k = n, k = 1 and single groups are frequent."""
    n = draw(st.integers(1, 5))
    k = draw(st.sampled_from(sorted({1, n, draw(st.integers(1, n))})))
    scores = draw(st.lists(st.integers(0, 4).map(float), min_size=n, max_size=n))
    w = draw(st.sampled_from([None, [1.0] * k, [float(k - j) for j in range(k)], [2.0] + [0.0] * (k - 1)]))
    groups = {
        "a": tuple(draw(st.lists(st.sampled_from("01"), min_size=n, max_size=n))),
        "b": tuple(draw(st.lists(st.sampled_from("012"), min_size=n, max_size=n))),
    }
    integer, demands, notions = draw(st.booleans()), [], []
    for kind in draw(st.lists(st.sampled_from(KINDS), max_size=2)):
        by = draw(st.sampled_from([None, ("a",), ("b",), ()]))
        tolerance = draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
        demand = {"kind": kind, "by": by, "tolerance": tolerance}
        if kind == "exposure":
            notion = ExposureParity(tolerance, by=by)
        elif kind == "proportional" and sum(scores) > 0:
            notion = ProportionalExposure(tolerance, by=by)
        elif kind == "selection":
            demand["at"] = draw(st.sampled_from([None, 1, k]))
            notion = SelectionParity(tolerance, at=demand["at"], by=by)
        elif kind == "quotas":
            notion = PrefixQuotas(by=by)
        elif kind == "order":
            demand["scores"] = draw(st.lists(st.integers(0, 4).map(float), min_size=n, max_size=n))
            demand["slack"] = draw(st.sampled_from([0.0, 1.0]))
            notion = CounterfactualOrder(demand["scores"], demand["slack"])
        elif kind == "in-group" and integer:
            demand["ratio"] = draw(st.sampled_from([0.5, 1.0]))
            notion = InGroupFairness(demand["ratio"], by=by)
        else:
            continue
        demands.append(demand)
        notions.append(notion)
    constraint = None
    for notion in notions:
        constraint = notion if constraint is None else constraint & notion
    p = FairRanking(scores, positions=k, weights=w, groups=groups, constraint=constraint, integer=integer)
    weights = list(p.position_weights)
    return p, (n, weights, np.outer(scores, weights).tolist(), demands, groups, scores, integer)


KINDS = ("exposure", "proportional", "selection", "quotas", "order", "in-group")


@settings(max_examples=60, deadline=None)
@given(problems())
def test_exact_methods_agree_with_brute_force(case):
    p, facts = case
    best = optimum(*facts)
    answered = 0
    for name in p.methods:
        if name in BASELINES:
            continue
        try:
            s = p.solve(name)
        except DeclarationError:
            continue
        answered += 1
        if best is None:
            assert s.status == "infeasible", name
            continue
        assert s.status == "optimal", (name, s.message)
        assert s.objective == pytest.approx(best, abs=1e-5) and s.bound >= best - 1e-5, name
        assert not s.evaluation.violations, name
        if not p.integer:
            drawn = RankingLottery(p.position_weights, p.size, given_lottery=s.decision.lottery)
            assert np.allclose(drawn.exposures, s.decision.exposures, atol=1e-9), name
    assert answered


@pytest.mark.parametrize("seed", range(4))
def test_backends_agree(seed):
    demands = (
        ExposureParity(0.05),
        SelectionParity(0.3, at=3, by="a") & ExposureParity(by="b"),
        PrefixQuotas(by="a"),
        CounterfactualOrder(np.random.default_rng(seed).normal(size=12), 0.5),
    )[seed]
    for integer, backends in ((False, ("highs", "glop", "scip", "clarabel")), (True, ("highs", "scip"))):
        p = random_ranking(12, 4, seed=seed, constraint=demands, integer=integer)
        found = []
        for name in FORMULATIONS:
            for backend in backends:
                try:
                    s = p.solve(name, backend=backend)
                except DeclarationError:
                    continue
                if s.status == "infeasible":
                    found.append(None)
                    continue
                assert s.status == "optimal", (name, backend, s.message)
                found.append(s.objective)
        assert len(found) >= len(backends)
        assert all(
            v == pytest.approx(found[0], abs=1e-4) if v is not None else found[0] is None for v in found
        )


def test_utilities_by_position():
    rng = np.random.default_rng(3)
    u = rng.uniform(0, 1, (30, 6))
    groups = {"a": tuple(rng.choice(list("xy"), 30))}
    p = FairRanking(utilities=u, groups=groups, constraint=ExposureParity() & SelectionParity(0.1, at=3))
    one, other = p.solve("assignment"), p.solve("column-generation")
    assert one.objective == pytest.approx(other.objective, rel=1e-6)
    assert other.bound >= one.objective - 1e-9
    small = p.replace(integer=True, constraint=PrefixQuotas()).solve()
    assert small.method == "milp" and small.status == "optimal" and not small.evaluation.violations


@pytest.mark.parametrize("method", ["assignment", "prefix-counts", "column-generation"])
def test_lotteries_have_their_marginals(method):
    p = random_ranking(200, 30, seed=5, constraint=ExposureParity())
    s = p.solve(method)
    lottery = s.decision
    weights, rankings = lottery.lottery
    drawn = RankingLottery(p.position_weights, p.size, given_lottery=(weights, rankings))
    assert np.abs(drawn.exposures - lottery.exposures).max() < 1e-9
    assert abs(weights.sum() - 1) < 1e-12 and (weights > 0).all()
    assert len(weights) <= lottery.marginals.nnz + p.size
    if lottery.given_marginals is not None:
        assert abs(drawn.marginals - lottery.marginals).max() < 1e-9
    assert all(len(set(r)) == 30 for r in rankings.tolist())
    counts = np.zeros(p.size)
    for seed in range(300):
        counts[lottery.sample(seed).order] += p.position_weights / 300
    assert np.abs(counts - lottery.exposures).max() < 0.25  # five standard errors of a weight in [0, 1]
    assert lottery.sample(7).order.tolist() == lottery.sample(7).order.tolist()


def test_isotonic_is_assignment_and_column_generation():
    rng = np.random.default_rng(0)
    p = random_ranking(60, 12, seed=0)
    scores, values = np.round(p.scores - rng.normal(0, 0.5, 60), 1), []
    for slack in (0.0, 0.25, 0.5, 1.0):
        q = p.replace(constraint=CounterfactualOrder(scores, slack))
        s = q.solve("assignment")
        assert s.status == "optimal" and not s.evaluation.violations
        values.append(s.objective)
        pooled = q.solve("isotonic")
        assert pooled.objective == pytest.approx(s.objective, abs=1e-6) and pooled.status == "optimal"
        assert not pooled.evaluation.violations and q.solve().method == "isotonic"
        assert q.solve("column-generation").objective == pytest.approx(s.objective, abs=1e-6)
        both = q.replace(constraint=q.constraint & ExposureParity(0.2))
        one, other = both.solve(), both.solve("assignment")
        assert one.method == "column-generation" and one.status == other.status == "optimal"
        assert one.objective == pytest.approx(other.objective, abs=1e-5) and not one.evaluation.violations
        if slack == 0:
            t = q.solve("counterfactual", seed=1)
            assert not t.evaluation.violations
            shifts = scores - p.scores
            assert p.best - t.objective <= np.ptp(shifts) * p.position_weights.sum()
            assert t.guarantee == pytest.approx(np.ptp(shifts) * p.position_weights.sum())
    assert values == sorted(values)


def test_the_default_method_depends_on_the_size():
    p = random_ranking(50, 10, seed=0, constraint=ExposureParity())
    assert p.method().name == "prefix-counts"
    large = random_ranking(20_000, 400, seed=0, constraint=ExposureParity())
    assert large.method().name == "column-generation"
    s = large.solve()
    assert s.status == "optimal" and not s.evaluation.violations
    u = FairRanking(utilities=np.ones((2, 2)))
    assert u.method().name == "assignment"
    assert FairRanking(utilities=np.ones((1000, 400))).method().name == "column-generation"
    assert p.replace(integer=True).method().name == "prefix-counts"


def test_isotonic_keeps_its_time_limit():
    p = random_ranking(5000, 2500, seed=0)
    q = p.replace(constraint=CounterfactualOrder(p.scores + np.random.default_rng(0).normal(0, 1, 5000), 0.5))
    s = q.solve("isotonic", time_limit=0.0)
    assert s.status == "feasible" and not s.evaluation.violations
    assert s.objective <= q.solve("isotonic").objective <= s.bound + 1e-9


def test_quotas_of_disjoint_groups_are_integral_and_dynamic_programming_agrees():
    for seed in range(5):
        p = random_ranking(200, 30, (2, 2), seed=seed, constraint=PrefixQuotas(), integer=True)
        one = p.solve("dynamic-programme")
        relaxed = p.replace(integer=False).solve("prefix-counts")
        assert one.status == "optimal"
        assert relaxed.objective == pytest.approx(one.objective, abs=1e-6)
        beam = p.solve("dynamic-programme", beam=3)
        if beam.decision is not None:
            assert beam.objective <= one.objective + 1e-9 <= beam.bound + 1e-5 and beam.status == "feasible"


def test_three_attributes_by_a_beam():
    notion = PrefixQuotas(by="a") & PrefixQuotas(by="b") & PrefixQuotas(by="c")
    p = random_ranking(300, 30, (2, 2, 3), seed=1, constraint=notion, integer=True)
    beam = p.solve("dynamic-programme", beam=200)
    exact = p.solve("prefix-counts")
    assert exact.status == "optimal"
    assert beam.objective <= exact.objective + 1e-6 and exact.objective <= beam.bound + 1e-6
    assert beam.gap <= 1e-3 and not beam.evaluation.violations


def test_sets_of_equal_weights():
    for seed in range(5):
        p = random_ranking(
            60, 20, seed=seed, weights=np.ones(20), constraint=SelectionParity(0.4), integer=True
        )
        found = {m: p.solve(m) for m in ("milp", "prefix-counts", "dynamic-programme")}
        assert len({round(s.objective, 6) for s in found.values()}) == 1
        assert not any(s.evaluation.violations for s in found.values())


def test_two_attributes_make_an_integral_transportation_polytope():
    for seed in range(5):
        demand = PrefixQuotas(by="a") & PrefixQuotas(by="b")
        p = random_ranking(80, 20, (2, 3), seed=seed, weights=np.ones(20), constraint=demand)
        s = p.solve("prefix-counts")
        whole = p.replace(integer=True).solve("prefix-counts")
        at_k = p.replace(weights=np.ones(20))
        assert whole.objective <= s.objective + 1e-6 and at_k.solve("prefix-counts").status == "optimal"


# -- baselines -----------------------------------------------------------------------------------------------


def test_sort_ties_by_seed():
    p = FairRanking([1.0, 1, 1, 0], positions=2)
    assert {tuple(sorted(p.solve("sort", seed=s).decision.order)) for s in range(20)} == {
        (0, 1),
        (0, 2),
        (1, 2),
    }


# -- the house's promises ------------------------------------------------------------------------------------


def test_certificates():
    for notion in (PrefixQuotas(by="a"), CounterfactualOrder(np.arange(12.0), 6.0)):
        p = random_ranking(12, 4, seed=1, constraint=notion, integer=True)
        c = p.solve().certify()
        assert c.feasible and c.optimal
    p = random_ranking(30, 6, seed=1)
    scores = p.scores + np.random.default_rng(1).normal(0, 0.5, 30)
    for notion in (
        ExposureParity(),
        ExposureParity(0.1),
        ProportionalExposure(0.5, by="a"),
        PrefixQuotas(),
        SelectionParity(0.2, at=3),
        CounterfactualOrder(scores, 0.0),
        CounterfactualOrder(scores, 0.5),
        CounterfactualOrder(scores, 0.5) & ExposureParity(0.1),
    ):
        q = p.replace(constraint=notion)
        answered = 0
        for method in ("assignment", "prefix-counts", "column-generation", "isotonic"):
            try:
                s = q.solve(method)
            except DeclarationError:
                continue
            answered += 1
            c = s.certify()
            assert c.feasible and c.optimal, (notion, method, c)
            assert abs(float(c.bound) - s.objective) < 1e-9
        assert answered >= 2


def test_time_limits():
    notion = PrefixQuotas(by="a") & PrefixQuotas(by="b") & PrefixQuotas(by="c")
    p = random_ranking(2000, 100, (2, 2, 3), seed=0, constraint=notion, integer=True)
    for options in ({"method": "dynamic-programme"}, {"method": "prefix-counts"}):
        with spends_at_most(30):
            s = p.solve(**options, time_limit=1.0)
        assert s.bound < np.inf or s.status == "limit"
        if s.decision is not None:
            assert s.bound >= s.objective - 1e-6
    q = random_ranking(3000, 300, seed=0, constraint=ExposureParity())
    s = q.solve("column-generation", time_limit=0.05)
    assert s.status in ("feasible", "limit", "optimal")


def test_files_and_examples(tmp_path):
    demand = ExposureParity(0.1) & PrefixQuotas(least={"0": 0.2}, by="a")
    p = random_ranking(8, 3, seed=0, constraint=demand)
    p.save(tmp_path / "p.json")
    assert fo.load(tmp_path / "p.json") == p
    folder = Path(__file__).resolve().parents[3] / "models" / "fair_ranking" / "examples"
    for path in sorted(folder.glob("*.json")):
        assert json.loads(path.read_text())["model"] == "FairRanking"
        s = FairRanking.load(path).solve()
        assert s.status == "optimal" and not s.evaluation.violations
    assert len(list(folder.glob("*.json"))) >= 3
    assert len(INSTANCES) == 12


def test_from_causal_and_measures():
    d = moving_company(300, seed=4)
    model = CausalModel([("G", "X"), ("R", "X"), ("G", "Y"), ("R", "Y"), ("X", "Y")], ["G", "R"], "Y")
    p = FairRanking.from_causal(model.fit(d), d, {"G": "F", "R": "B"}, positions=50)
    s = p.solve("counterfactual", seed=0)
    assert not s.evaluation.violations
    found = p.measures(s.decision, 30, offset="min")
    assert 0 < found["loss"] < 1 and 0 <= found["average precision"] <= 1
    assert set(found["selection rates"]) == {"F, B", "F, W", "M, B", "M, W"}
    assert p.solve("sort").evaluation.violations
    assert p.solve("isotonic").objective >= s.objective - 1e-9


def test_leximin_of_group_exposures():
    p = random_ranking(200, 20, seed=3)
    best, found = p.best, []
    for backend in ("highs", "scip"):
        m = fo.Model()
        h = p.replace(constraint=ExposureParity(10.0)).declare(m, "prefix-counts")
        m.subject_to(h.objective * h.unit >= 0.99 * best)
        _, _, sizes = p.candidates.cells(None)
        m.leximin(h.group_exposures / (sizes * p.candidates.mean_exposure))
        s = m.solve(backend)
        found.append(np.sort(s[h.group_exposures] / (sizes * p.candidates.mean_exposure)))
    assert np.allclose(found[0], found[1], atol=1e-5)
    unfair = p.solve("sort").evaluation.metrics
    assert found[0][0] > min(v for name, v in unfair.items() if name.startswith("exposure")) + 0.05


@pytest.mark.parametrize("method", ["milp", "prefix-counts"])
def test_a_declared_ranking_may_be_one_that_is_not_sorted_within_its_cell(method):
    scores, groups = np.array([9.0, 7.0, 4.0, 2.0, 1.0]), list("mmfff")
    p = FairRanking(scores, groups={"sex": groups}, positions=3, integer=True)
    w = p.position_weights
    values = [float(w @ scores[list(order)]) for order in permutations(range(5), 3)]
    for sign, bound in ((1, 12.0), (-1, 0.0)):
        m = fo.Model()
        h = p.declare(m, method)
        m.subject_to(h.objective * h.unit <= (bound or 100.0))
        m.maximize(sign * h.objective * h.unit)
        said = m.solve()
        best = max(v for v in values if v <= 12) if bound else -min(values)
        assert said.objective == pytest.approx(best)
        assert sign * p.evaluate(h.decision(said)).objective == pytest.approx(best)


def test_counts_of_a_declared_ranking_are_those_of_its_cells():
    scores, groups = np.array([9.0, 7.0, 4.0, 2.0, 1.0]), np.array(list("mmfff"))
    for integer in (True, False):
        p = FairRanking(
            scores,
            groups={"sex": groups.tolist()},
            positions=3,
            integer=integer,
            constraint=ExposureParity(2.0),
        )
        names, codes, _ = p.cells
        m = fo.Model()
        h = p.declare(m, "prefix-counts")
        m.subject_to(h.counts[codes[2], 1] >= 1)
        m.minimize(h.group_exposures[codes[0]] - 0.01 * h.objective)
        said = m.solve()
        x = p.read(h.decision(said)).marginals.toarray()
        for c in range(len(names)):
            assert said[h.counts][c] == pytest.approx(np.cumsum(x[codes == c].sum(axis=0)), abs=1e-6)
            assert said[h.group_exposures][c] == pytest.approx(
                x[codes == c].sum(axis=0) @ p.position_weights, abs=1e-6
            )
    m = fo.Model()
    with pytest.raises(TypeError):  # without all rows it has no value before the optimum
        m.subject_to(p.declare(m, "prefix-counts", all_rows=False).objective <= 1)


def test_candidates_who_act():
    """Only the accepted are ranked: criteria and exposures are chosen together."""
    from forcopt.models import StrategicClassification

    edges = [(0, 0, 1, 0), (0, 1, 2, 1), (0, 2, 3, 1), (1, 0, 1, 1)]
    edges += [(2, 1, 1, 1), (2, 2, 2, 0), (3, 3, 1, 0), (3, 2, 2, 1)]
    game = StrategicClassification(agents=4, criteria=4, edges=edges, value=3)
    p = FairRanking([4.0, 3.0, 2.0, 1.0], positions=2, groups={"a": list("xyxy")})
    values = []
    for backend in ("highs", "scip"):
        m = fo.Model()
        g = game.declare(m, "milp")
        r = p.replace(constraint=ExposureParity()).declare(m, "assignment")
        m.subject_to(r.marginals.sum(axis=1) <= g.accepted)
        m.maximize(r.objective * r.unit + 0.1 * g.values.sum())
        values.append(m.solve(backend).objective)
    assert values[0] == pytest.approx(values[1], abs=1e-6)


def test_private_groups_and_scores():
    from forcopt.privacy import Laplace, RandomizedResponse, Simulated

    p = random_ranking(300, 30, (2,), seed=6)
    codes = np.array([int(v) for v in p.groups["a"]])
    channel = RandomizedResponse(np.log(9))
    told = channel.privatize(codes, 2, seed=1)
    noisy = p.scores + Laplace(scale=0.1).sample(300, Simulated(1))
    declared = FairRanking(noisy, positions=30, groups={"a": told.tolist()}, constraint=ExposureParity())
    s, other = (declared.solve("prefix-counts", backend=b) for b in ("highs", "clarabel"))
    assert s.status == other.status == "optimal" and s.objective == pytest.approx(other.objective, abs=1e-6)
    true = p.replace(constraint=ExposureParity()).evaluate(s.decision)
    assert "exposure parity (a)" in true.violations  # parity of reports is not parity of groups
    assert true.violations["exposure parity (a)"] < 0.5


# -- bad input -----------------------------------------------------------------------------------------------

GROUPS = {"a": tuple("xxy"), "b": tuple("uvv")}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "just one of the two"),
        ({"scores": [1], "utilities": [[1]]}, "just one of the two"),
        ({"scores": [[1.0]]}, r"must be \(n,\)"),
        ({"scores": [1.0, np.nan]}, "finite"),
        ({"utilities": [1.0]}, r"must be \(n, k\)"),
        ({"scores": [3, 2, 1], "positions": 0}, "positions is 0"),
        ({"scores": [3, 2, 1], "positions": 4}, "from 1 to the number of candidates, 3"),
        ({"scores": [3, 2, 1], "weights": [1, 2]}, "weights rise from 1 to 2"),
        ({"scores": [3, 2, 1], "weights": [1, -1]}, "must not be negative"),
        ({"scores": [3, 2, 1], "weights": [1, 1], "positions": 3}, "for 3 positions"),
        ({"scores": [3, 2], "groups": GROUPS}, "3 entries for 2 candidates"),
        ({"scores": [3, 2, 1], "groups": GROUPS, "constraint": ExposureParity(by="c")}, "no attribute 'c'"),
        ({"scores": [3, 2, 1], "groups": GROUPS, "constraint": InGroupFairness()}, "integer=True"),
        (
            {"scores": [3, 2, -1], "groups": GROUPS, "constraint": InGroupFairness(), "integer": True},
            "not negative",
        ),
        ({"scores": [3, 2, -9], "groups": GROUPS, "constraint": ProportionalExposure()}, "mean score"),
        ({"utilities": [[1.0]], "constraint": ProportionalExposure()}, "needs scores"),
        ({"scores": [3, 2], "constraint": CounterfactualOrder([1.0])}, r"must be \(2,\)"),
        ({"scores": [3, 2], "constraint": SelectionParity(at=3)}, "at most the number of positions, 2"),
        (
            {
                "scores": [3, 2, 1],
                "groups": GROUPS,
                "constraint": PrefixQuotas(least={"x": 1, "y": 1}, by="a"),
            },
            "cannot hold together in the first 1|cannot hold together|at least",
        ),
        (
            {"scores": [3, 2, 1], "groups": GROUPS, "constraint": PrefixQuotas(least={"y": 1}, by="a")},
            "the first 2 need 2 of y, but at most 1",
        ),
        (
            {
                "scores": [3, 2, 1],
                "groups": GROUPS,
                "constraint": PrefixQuotas(most={"x": 0, "y": 0}, by="a"),
            },
            "the first 1: they sum to 0 at most",
        ),
        (
            {"scores": [3, 2, 1], "groups": GROUPS, "constraint": PrefixQuotas(least={"q": 1}, by="a")},
            "no group 'q'",
        ),
    ],
)
def test_bad_declarations(fields, message):
    with pytest.raises(DeclarationError, match=message):
        FairRanking(**fields)


def test_bad_notions_and_decisions():
    for make, message in [
        (lambda: PrefixQuotas(least={"a": 2}), "from 0 to 1"),
        (lambda: ExposureParity(-1), "tolerance"),
        (lambda: CounterfactualOrder([1.0], -1), "slack"),
        (lambda: InGroupFairness(2), "ratio"),
        (lambda: Ranking.by_score([1, 2], 3), "positions is 3"),
    ]:
        with pytest.raises(DeclarationError, match=message):
            make()
    p = random_ranking(5, 3, seed=0)
    for decision in ([0, 1], [0, 0, 1], [0, 1, 9], p.replace(positions=2).solve().decision):
        with pytest.raises(DeclarationError):
            p.evaluate(decision)
    with pytest.raises(DeclarationError, match="ranks a candidate"):
        p.replace(groups={}).solve("prefix-counts").problem.certify([4, 3, 2], "assignment")


@pytest.mark.parametrize(
    ("method", "fields", "message"),
    [
        ("assignment", {"integer": True}, "use 'milp'"),
        ("milp", {}, "integer=True"),
        ("column-generation", {"integer": True}, "one ranking"),
        (
            "column-generation",
            {"constraint": CounterfactualOrder(np.ones(6)) & SelectionParity(0.5, at=2)},
            "none of them is on a prefix",
        ),
        ("isotonic", {}, "takes a CounterfactualOrder"),
        (
            "isotonic",
            {"constraint": CounterfactualOrder(np.ones(6)) & ExposureParity()},
            "nothing else",
        ),
        ("dynamic-programme", {}, "integer=True"),
        ("dynamic-programme", {"integer": True, "constraint": ExposureParity(1.0)}, "milp"),
        ("prefix-counts", {"constraint": CounterfactualOrder(np.ones(6))}, "counts by cell"),
        ("counterfactual", {}, "CounterfactualOrder"),
    ],
)
def test_methods_that_do_not_fit_say_so(method, fields, message):
    with pytest.raises(DeclarationError, match=message):
        random_ranking(6, 3, seed=1, **fields).solve(method)


def test_infeasible_demands_name_the_prefix():
    quotas = PrefixQuotas(least={"a": 1.0}, by="x") & PrefixQuotas(least={"d": 0.5}, by="y")
    p = FairRanking([3, 2, 1], groups={"x": list("aab"), "y": list("ccd")}, positions=2, constraint=quotas)
    for fields, methods in (
        ({}, ("assignment", "prefix-counts", "column-generation")),
        ({"integer": True}, ("milp", "prefix-counts", "dynamic-programme")),
    ):
        for method in methods:
            s = p.replace(**fields).solve(method)
            assert s.status == "infeasible" and "first 2" in str(s.problem.infeasibility_reason())


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_group_is_refused(missing):
    with pytest.raises(ValueError, match=r"groups\.sex\.2 is .*; a name is missing"):
        FairRanking([4, 3, 2, 1], groups={"sex": ["f", "m", missing, "m"]})


@pytest.mark.parametrize("order", [[-1, 0], [0, 9], [0, 0], [0, 0.5]])
def test_measures_refuse_rankings_of_nobody(order):
    """A place of -1 counted from the end."""
    labels, scores = ["a", "a", "b", "b"], [4.0, 3.0, 2.0, 1.0]
    ideal = [0, 1]
    for call in (
        lambda: measures.utility_loss(order, ideal, scores, 2),
        lambda: measures.utility_loss(ideal, order, scores, 2),
        lambda: measures.selection_rates(order, labels, 2),
        lambda: measures.sensitivity(order, ideal, labels, 2),
        lambda: measures.in_group_ratio(order, scores, labels, 2),
    ):
        with pytest.raises(DeclarationError, match=r"the ranking begins with .* from 0 to 3"):
            call()
    if min(order) < 0 or len(set(map(int, order))) < 2:
        with pytest.raises(DeclarationError, match=r"the ranking begins with"):
            measures.average_precision(order, ideal, 2)
    with pytest.raises(DeclarationError, match=r"whole numbers|different candidates"):
        FairRanking(scores, positions=2).evaluate(order)


def test_listnet_is_the_convex_optimum_and_refuses_what_is_wrong():
    import forcopt as fo
    from forcopt.models.fair_ranking import ListNet

    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(12, 2)), rng.normal(size=12)
    goal = np.exp(y) / np.exp(y).sum()
    found = ListNet(penalty=0.1).fit(x, y).coef_
    m = fo.Model("listnet")
    w, total = m.variable("w", 2), m.variable("total")
    m.subject_to(fo.exp(x @ w - total).sum() <= 1)  # total is at least the log of the summed exponentials
    m.minimize(total - goal @ (x @ w) + 0.05 * fo.sum_squares(w))
    assert found == pytest.approx(m.solve("clarabel")[w], abs=1e-4)
    assert ListNet(penalty=0.1, epochs=3000, rate=0.5).fit(x, y).coef_ == pytest.approx(found, abs=1e-6)
    for wrong in ({"penalty": -1.0}, {"rate": 0.0}, {"epochs": 0}):
        with pytest.raises(ValueError, match="must be at least 0"):
            ListNet(**wrong).fit(x, y)
    with pytest.raises(ValueError, match="must be"):
        ListNet().fit(x, y[1:])
