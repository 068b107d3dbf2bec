"""Cuts and heuristics of a model: SCIP uses them, and other backends do without; false cuts are found."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import forcopt as fo
from forcopt.backends import get_backend

pyscipopt = pytest.importorskip("pyscipopt", reason="PySCIPOpt is not installed: pip install pyscipopt")

NO_HEURISTICS = {
    name: -1
    for name in pyscipopt.Model().getParams()
    if name.startswith("heuristics/") and name.endswith("/freq")
}
FIRST_NODE = {**NO_HEURISTICS, "limits/nodes": 1}


def matching(seed: int, n: int = 9) -> tuple[fo.Model, Any, Callable[[Any], Any], float]:
    """The heaviest matching of a complete graph, its odd sets of three and five nodes, and its weight."""
    edges = np.array(list(itertools.combinations(range(n), 2)))
    weights = np.random.default_rng(seed).integers(1, 50, len(edges))
    m = fo.Model("matching")
    x = m.variable("x", len(edges), binary=True)
    for node in range(n):
        m.subject_to((edges == node).any(axis=1).astype(float) @ x <= 1)
    m.maximize(weights @ x)

    def odd_sets(value: Any) -> Any:
        for size in (3, 5):
            for chosen in itertools.combinations(range(n), size):
                inside = np.isin(edges, chosen).all(axis=1).astype(float)
                if inside @ value(x) > size // 2 + 1e-6:
                    yield inside @ x <= size // 2

    weight = {(a, b): int(w) for (a, b), w in zip(edges.tolist(), weights, strict=True)}

    def best(left: tuple[int, ...]) -> int:
        if len(left) < 2:
            return 0
        first, *others = left
        pairs = (weight[first, j] + best(tuple(k for k in others if k != j)) for j in others)
        return max(best(tuple(others)), *pairs)

    return m, x, odd_sets, float(best(tuple(range(n))))


def hard_knapsack() -> tuple[fo.Model, Any, fo.ModelSolution]:
    rng = np.random.default_rng(1)
    m = fo.Model("knapsack")
    x = m.variable("x", 60, binary=True)
    weights = rng.integers(1, 60, (20, 60))
    m.subject_to(weights @ x <= 0.4 * weights.sum(axis=1), name="capacity")
    m.maximize(rng.integers(5, 60, 60) @ x)
    return m, x, m.solve("scip", time_limit=30, gap=0.02)


# -- cuts --------------------------------------------------------------------------------------------------


def test_matchings_with_and_without_odd_sets() -> None:
    rows = 0
    for seed in range(6):
        m, _, odd_sets, best = matching(seed)
        assert m.solve("scip").objective == best
        m.cut(odd_sets, name="odd sets")
        for options in ({}, NO_HEURISTICS, {**NO_HEURISTICS, "presolving/maxrounds": 0}):
            s = m.solve("scip", options=options)
            assert s.status is fo.Status.OPTIMAL and s.objective == best and s.bound == pytest.approx(best)
            rows += int(s.message.split("cut 'odd sets': ")[1].split(" rows")[0])
        assert s.certify().optimal
    assert rows > 0


def test_other_backends_do_without() -> None:
    m, _, odd_sets, best = matching(0)
    m.cut(odd_sets, name="odd sets")
    m.heuristic(lambda value: 1 / 0, name="broken")
    s = m.solve("highs")
    assert s.objective == best
    assert s.message.endswith("highs does without cut 'odd sets', heuristic 'broken'")
    for kind in ("cut", "heuristic"):
        assert kind in get_backend("scip").capabilities.kinds
        assert kind not in get_backend("highs").capabilities.kinds
    m.remove("broken", "odd sets")
    assert "does without" not in m.solve("highs").message
    m.cut(odd_sets, name="odd sets")
    m.relax()
    s = m.solve("scip")  # a cut holds at integer points only
    assert s.objective == pytest.approx(m.solve("highs").objective)
    assert "scip does without cut 'odd sets'" in s.message


def test_a_cut_that_excludes_the_relaxations_feasible_point() -> None:
    m = fo.Model()
    x = m.variable("x", 4, binary=True)
    m.subject_to(x.sum() <= 3)
    m.maximize(np.array([4, 3, 2, 1]) @ x)
    m.cut(lambda value: [x.sum() <= 1], name="false")
    options = {**NO_HEURISTICS, "presolving/maxrounds": 0}
    with pytest.raises(fo.DeclarationError, match=r"cut 'false' excludes .* feasible, by 2"):
        m.solve("scip", options=options)


def test_a_cut_that_excludes_points_that_the_search_found() -> None:
    m, x, known = hard_knapsack()
    m.cut(lambda value: [x.sum() <= 5], name="false")
    with pytest.raises(fo.DeclarationError, match="cut 'false' excludes a point that the search found"):
        m.solve("scip", start={x: known[x]}, options={"limits/nodes": 5})
    m.remove("false")
    m.cut(lambda value: [x.sum() <= -1], name="none")
    s = m.solve("scip", options=NO_HEURISTICS)  # infeasible, but for HiGHS
    assert s.status is fo.Status.OPTIMAL and "cut 'none': 1 rows; but highs finds a point" in s.message


def test_a_search_without_cuts_refutes_a_false_optimum() -> None:
    rng = np.random.default_rng(1)
    m = fo.Model()
    x = m.variable("x", 120, binary=True)
    weights = rng.integers(1, 60, (40, 120))
    m.subject_to(weights @ x <= 0.4 * weights.sum(axis=1))
    m.maximize(rng.integers(5, 60, 120) @ x)
    m.cut(lambda value: [x.sum() <= 5], name="false")
    s = m.solve("scip", options={**NO_HEURISTICS, "limits/nodes": 50})
    assert s.status is fo.Status.FAILED and s.bound == np.inf
    assert "SCIP: optimal" in s.message and "a cut excludes it" in s.message


@pytest.mark.parametrize("stage", [1, 2])
def test_a_search_without_cuts_refutes_a_false_optimum_of_a_stage(stage: int) -> None:
    rng = np.random.default_rng(1)
    m = fo.Model()
    x = m.variable("x", 120, binary=True)
    weights = rng.integers(1, 60, (40, 120))
    m.subject_to(weights @ x <= 0.4 * weights.sum(axis=1))
    worth, few = fo.maximize(rng.integers(5, 60, 120) @ x), fo.maximize(-x[:3].sum())
    m.lexicographic([worth, few] if stage == 1 else [few, worth])
    m.cut(lambda value: [x.sum() <= 5], name="false")
    s = m.solve("scip", options={**NO_HEURISTICS, "limits/nodes": 50})
    assert s.status is fo.Status.FAILED
    assert f"in stage {stage} is feasible: a cut excludes it" in s.message
    m.remove("false")
    m.cut(lambda value: [x.sum() <= 120], name="true")
    m.subject_to(x[20:] == 0)
    t = m.solve("scip")
    assert t.status is fo.Status.OPTIMAL
    assert t.stages == pytest.approx(m.solve("highs").stages)


# -- heuristics --------------------------------------------------------------------------------------------


def test_a_proposal_is_adopted() -> None:
    m, x, known = hard_knapsack()
    before = m.solve("scip", options=FIRST_NODE)
    assert before.status is fo.Status.LIMIT or before.objective < known.objective
    m.heuristic(lambda value: {x: known[x]}, name="known")
    s = m.solve("scip", options=FIRST_NODE)
    assert s.objective == pytest.approx(known.objective)
    assert "heuristic 'known': 1 points taken, 0 refused" in s.message


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (lambda x: {x: 1}, "it violates 'capacity'"),
        (lambda x: {x: 0.5}, r"x\[0\] is 0.5, against its integrality"),
        (lambda x: {x[3]: 2}, r"x\[3\] is 2, against its bounds"),
        (lambda x: {x[:50]: 1}, "no values of the other variables complete it"),
    ],
)
def test_a_proposal_outside_the_model_is_refused(values: Any, reason: str) -> None:
    m, x, _ = hard_knapsack()
    before = m.solve("scip", options=FIRST_NODE)
    m.heuristic(lambda value: values(x), name="wrong")
    s = m.solve("scip", options=FIRST_NODE)
    assert np.array_equal(s.objective, before.objective, equal_nan=True)
    assert re.search(rf"heuristic 'wrong': 0 points taken, \d+ refused \(last: {reason}", s.message)


def test_a_proposal_that_violates_a_lazy_family_is_refused() -> None:
    m, x, known = hard_knapsack()
    most = int(known[x].sum()) - 1
    m.lazy(lambda value: [x.sum() <= most] if value(x).sum() > most + 1e-6 else [], name="few")
    m.heuristic(lambda value: {x: known[x]}, name="many")
    s = m.solve("scip", options=FIRST_NODE)
    assert "0 points taken" in s.message and "it violates 'few' by" in s.message


@pytest.mark.parametrize("kind", ["indicator", "quadratic", "cone", "product"])
@pytest.mark.parametrize("whole", [True, False])
def test_proposals_for_programs_with_columns_of_their_own(kind: str, whole: bool) -> None:
    rng = np.random.default_rng(0)
    m = fo.Model(kind)
    k = m.variable("k", 6, lower=0, upper=9, integer=True)
    y = m.variable("y", 6, lower=-5, upper=5)
    b = m.variable("b", 6, binary=True)
    limit = m.parameter("limit", value=30.0)
    m.subject_to(rng.integers(1, 9, 6) @ k + y.sum() <= limit, k - y <= 6, k <= 9 * b)
    worth = rng.integers(1, 20, 6) @ k
    if kind == "indicator":
        m.subject_to(fo.implies(b, y <= 2.5), fo.implies(1 - b, y >= 1))
    cost = {
        "indicator": lambda: y.sum(),
        "quadratic": lambda: fo.sum_squares(y - k + 0.3),
        "cone": lambda: fo.norm(k - y),
        "product": lambda: fo.product(b[0], y[0] + 3) + fo.abs(y - 1.3).sum(),
    }[kind]()
    m.minimize(cost - worth)
    best = m.solve("scip")
    found = {k: np.round(best[k])}
    m.heuristic(lambda value: {**found, y: best[y], b: best[b]} if whole else found, name="h")
    s = m.solve("scip", options={**NO_HEURISTICS, "presolving/maxrounds": 0})
    assert s.objective == pytest.approx(best.objective, abs=1e-4)
    assert "heuristic 'h': 1 points taken" in s.message


# -- both --------------------------------------------------------------------------------------------------


def test_exceptions_reach_the_caller() -> None:
    m, _, _ = hard_knapsack()

    def broken(value: Any) -> Any:
        raise KeyError("mine")

    for add in (m.cut, m.heuristic):
        callback = add(broken)  # type: ignore[operator]
        with pytest.raises(KeyError, match="mine"):
            m.solve("scip", options=FIRST_NODE)
        m.remove(callback)
    m.cut(lambda value: ["no constraint"], name="words")  # type: ignore[list-item, return-value]
    with pytest.raises(fo.DeclarationError, match="cut 'words' gave 'no constraint'"):
        m.solve("scip", options=FIRST_NODE)
    m.remove("words")
    m.heuristic(lambda value: 5, name="five")  # type: ignore[arg-type, return-value]
    with pytest.raises(fo.DeclarationError, match="heuristic 'five' is 5; it must give values"):
        m.solve("scip", options=FIRST_NODE)


def test_declarations() -> None:
    m = fo.Model()
    x = m.variable("x", binary=True)
    assert m.cut(lambda value: []).name == "cut1" and m.heuristic(lambda value: None).name == "heuristic1"
    assert "relations  1 cut, 1 heuristic" in m.summary()
    for add, kind in ((m.cut, "cut"), (m.heuristic, "heuristic")):
        with pytest.raises(fo.DeclarationError, match=f"{kind} needs a function of a point"):
            add(x <= 1)  # type: ignore[operator]
        with pytest.raises(fo.DeclarationError, match="the name 'cut1' is already in use"):
            add(lambda value: None, name="cut1")  # type: ignore[operator]


def test_callbacks_and_lazy_families_read_scaled_columns_in_the_models_units() -> None:
    m = fo.Model()
    x = m.variable("x", lower=0, upper=1e10)
    k = m.variable("k", lower=0, upper=9, integer=True)
    m.subject_to(1e-10 * x + k <= 8.5)  # SCIP would drop the coefficient: the column is scaled
    m.lazy(lambda value: [x <= 1e9] if value(x) > 1e9 * (1 + 1e-7) else [])
    m.maximize(1e-9 * x + k)
    assert m.solve("scip").objective == pytest.approx(9)
    seen = []

    def propose(value: Any) -> Any:
        seen.append(float(value(x)))
        return {x: 1e9, k: 8}

    m.heuristic(propose, name="best")
    s = m.solve("scip", options={**NO_HEURISTICS, "presolving/maxrounds": 0})
    assert s.objective == pytest.approx(9)
    assert seen and max(seen) > 1e8 and "heuristic 'best': 1 points taken, 0 refused" in s.message
