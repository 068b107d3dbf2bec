import json
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
import queries_oracle  # noqa: F401  (registers the method enumeration)
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.backends.registry import backends
from forcopt.errors import DeclarationError
from forcopt.models import QuerySchedule
from forcopt.models.adaptive_queries import (
    DecayingCorrelation,
    IndependentBlocks,
    Ledger,
    NaiveComposition,
    QueryRefusedError,
    StreamedBlocks,
)
from forcopt.numeric.range_loads import RangeLoads
from forcopt.privacy import BudgetSpentError, PureDP
from forcopt.privacy import Ledger as PrivacyLedger
from forcopt.privacy.profile import Profile

LP = [n for n, b in backends().items() if not b.missing() and not b.capabilities.only_integer]
MILP = [n for n, b in backends().items() if not b.missing() and {"rows", "integer"} <= b.capabilities.kinds]


def windows_of(data):
    """The windows as sets of positions, from the theorems' text."""
    m = data.positions
    if isinstance(data, NaiveComposition):
        return [set(range(1, m + 1))]
    if isinstance(data, IndependentBlocks):
        return [{i} for i in range(1, m + 1)]
    if isinstance(data, StreamedBlocks):
        return [{t - 1, t} for t in range(2, m + 1)] or [{1}]
    d = data.width
    ahead = 2 * d if data.access == "general" else d
    return [{j for j in range(i - 2 * d, i + ahead + 1) if 1 <= j <= m} for i in range(1, m + 1)]


def in_order(data, intervals):
    """Whether a sequence keeps the order of the stream, from the theorems' text."""
    for k, (a, _) in enumerate(intervals):
        for _, b in intervals[:k]:
            if isinstance(data, StreamedBlocks) and a < b:
                return False
            if isinstance(data, DecayingCorrelation) and data.access == "sliding" and a <= b - data.width:
                return False
    return True


def brute(p):
    """The optimum over all sets and orders, with sums of fractions."""
    decimals = [Fraction(str(c)) for c in np.broadcast_to(p.costs, len(p.intervals)).tolist()]
    sets = windows_of(p.data_model)
    best = 0.0
    for size in range(len(p.intervals) + 1):
        for chosen in combinations(range(len(p.intervals)), size):
            value = float(p.query_weights[list(chosen)].sum())
            if value <= best:
                continue
            spans = [set(range(p.intervals[j][0], p.intervals[j][1] + 1)) for j in chosen]
            if any(
                sum((decimals[j] for j, s in zip(chosen, spans, strict=True) if s & w), Fraction(0))
                > Fraction(str(p.epsilon))
                for w in sets
            ):
                continue
            rows = [p.intervals[j].tolist() for j in chosen]
            if any(in_order(p.data_model, order) for order in permutations(rows)):
                best = value
    return best


@st.composite
def schedules(draw, equal=True, queries=6, narrow=False):
    m = draw(st.integers(1, 9))
    kind = draw(st.sampled_from(["general", "sliding", "blocks", "streamed", "naive"]))
    width = 0
    if kind in ("general", "sliding"):
        width = draw(st.integers(0, 2))
        data = DecayingCorrelation(m, 0.5, width, kind)
    else:
        data = {"blocks": IndependentBlocks, "streamed": StreamedBlocks, "naive": NaiveComposition}[kind](m)
        width = m if kind == "naive" else 0
    count = draw(st.integers(1, queries))
    intervals = []
    for _ in range(count):
        a = draw(st.integers(1, m))
        intervals.append([a, draw(st.integers(a, min(a + width, m)))])
    weights = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    if equal:
        costs = draw(st.sampled_from([0.1, 0.2, 0.25, 0.3, 0.5, 1.0, 1.2]))
    else:
        costs = draw(
            st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.55, 0.7, 1.0, 1.3]), min_size=count, max_size=count)
        )
    return QuerySchedule(data, intervals, weights, costs, epsilon=1.0)


def check(p, s, value):
    assert s.evaluation.feasible, s.evaluation
    assert s.objective == pytest.approx(value, abs=1e-6)
    assert s.bound >= value - 1e-6


@settings(max_examples=300, deadline=None)
@given(schedules())
def test_methods_agree_for_equal_costs(p):
    if p.capacity > 4:
        p = p.replace(costs=0.25)
    value = brute(p)
    for method in ("enumeration", "min-cost-flow", "milp"):
        s = p.solve(method)
        assert s.status is fo.Status.OPTIMAL
        check(p, s, value)
    s = p.solve("lp")
    check(p, s, value)
    assert s.bound == pytest.approx(value, abs=1e-6)  # the relaxation is whole
    check_bounds(p, value)


def check_bounds(p, value):
    for method in ("density", "ledger", "local-ratio"):
        s = p.solve(method)
        assert s.evaluation.feasible
        assert s.objective <= value + 1e-9 <= s.bound + 2e-9
    assert s.objective >= value - s.proved - 1e-9
    if not p.groups:
        assert 3 * s.objective >= value - 1e-9


@settings(max_examples=300, deadline=None)
@given(schedules(equal=False))
def test_methods_agree_for_different_costs(p):
    value = brute(p)
    for method in ("enumeration", "milp"):
        s = p.solve(method)
        assert s.status is fo.Status.OPTIMAL
        check(p, s, value)
    check_bounds(p, value)


def test_local_ratio_has_a_third_of_the_optimum_on_300():
    worst = 1.0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        first = rng.integers(1, 21, 14)
        intervals = np.stack([first, np.minimum(first + rng.integers(0, 4, 14), 20)], axis=1)
        p = QuerySchedule(
            DecayingCorrelation(20, 0.5, 3),
            intervals,
            rng.integers(1, 30, 14),
            rng.integers(1, 10, 14) / 10,
        )
        best = p.solve("milp").objective
        s = p.solve("local-ratio")
        worst = min(worst, s.objective / best)
        assert s.bound >= best - 1e-9
    assert worst >= 1 / 3


def random_schedule(seed, equal, queries=30):
    rng = np.random.default_rng(seed)
    first = rng.integers(1, 26, queries)
    intervals = np.stack([first, np.minimum(first + rng.integers(0, 3, queries), 25)], axis=1)
    costs = 0.25 if equal else rng.integers(1, 9, queries) / 10
    data = DecayingCorrelation(25, 0.5, 2, "sliding" if seed % 2 else "general")
    return QuerySchedule(data, intervals, rng.integers(1, 20, queries), costs)


@pytest.mark.parametrize("backend", LP)
@pytest.mark.parametrize("seed", range(2))
def test_lp_on_every_backend(backend, seed):
    p = random_schedule(seed, equal=True)
    s = p.solve("lp", backend=backend)
    value = p.solve("min-cost-flow").objective
    assert s.bound == pytest.approx(value, rel=1e-3)
    assert s.evaluation.feasible and s.objective <= value + 1e-9


@pytest.mark.parametrize("backend", MILP)
@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_milp_on_every_backend(backend, equal, seed):
    p = random_schedule(seed, equal)
    s = p.solve("milp", backend=backend)
    assert s.status is fo.Status.OPTIMAL, s
    assert s.objective == p.solve("min-cost-flow" if equal else "milp").objective
    assert s.certify().feasible


def test_two_budgets():
    p = QuerySchedule(
        IndependentBlocks(1), [[1, 1]] * 3, [3, 2, 2], [[0.5, 1e-6], [0.5, 5e-7], [0.5, 5e-7]], 1.0, 1e-6
    )
    for method in ("milp", "enumeration"):
        assert p.solve(method).objective == 4
    assert "delta of window 1" in p.evaluate([0, 1]).violations
    assert 4 / 6 <= p.solve("local-ratio").objective <= 4


@pytest.mark.parametrize("access", ["general", "sliding"])
def test_local_ratio_has_a_sixth_of_the_optimum_for_two_budgets(access):
    for seed in range(150):
        rng = np.random.default_rng(seed)
        q = int(rng.integers(1, 10))
        first = rng.integers(1, 5, q)
        intervals = np.stack([first, np.minimum(first + rng.integers(0, 2, q), 4)], axis=1)
        costs = np.stack([rng.choice([0.1, 0.3, 0.5, 0.9], q), rng.choice([1e-7, 4e-7, 9e-7], q)], axis=1)
        data = DecayingCorrelation(4, 0.5, 1, access)
        p = QuerySchedule(data, intervals, rng.integers(1, 9, q), costs, 1.0, 1e-6)
        s, best = p.solve("local-ratio"), p.solve("enumeration").objective
        assert s.evaluation.feasible
        assert 6 * s.objective >= best - 1e-9 and s.objective <= best + 1e-9 <= s.bound + 2e-9


def test_a_larger_budget_never_answers_less_and_sliding_windows_answer_more():
    for seed in range(0, 20, 2):
        p = random_schedule(seed, equal=False)
        values = [p.replace(epsilon=e).solve().objective for e in (0.5, 1.0, 1.5)]
        assert values == sorted(values)
        sliding = p.replace(**{"data_model.access": "sliding"})
        if not sliding.groups:
            assert sliding.solve().objective >= values[1]


def test_the_order_of_a_stream_is_kept_and_checked():
    p = QuerySchedule(StreamedBlocks(3), [[2, 2], [1, 1], [3, 3]], costs=0.1)
    s = p.solve("milp")
    assert s.decision.intervals[:, 0].tolist() == [1, 2, 3]
    assert p.evaluate([0, 1]).violations == {"order": 1.0}
    assert p.evaluate([1, 0, 2]).feasible
    twice = QuerySchedule(DecayingCorrelation(5, 0.5, 2, "sliding"), [[1, 3], [1, 3], [1, 2]], costs=0.1)
    assert [twice.solve(m).objective for m in ("milp", "enumeration", "min-cost-flow", "lp")] == [2.0] * 4


def test_the_time_limit_keeps_a_choice_and_a_bound():
    p = random_schedule(0, equal=True, queries=60)
    best = p.solve("min-cost-flow").objective
    for method in ("min-cost-flow", "enumeration"):
        small = p if method == "min-cost-flow" else random_schedule(0, equal=False)
        s = small.solve(method, time_limit=0.0)
        assert s.status is fo.Status.FEASIBLE and s.evaluation.feasible
        assert s.bound >= (best if small is p else small.solve().objective)


@pytest.mark.parametrize("method", ["min-cost-flow", "ledger", "density", "local-ratio"])
def test_many_queries_at_the_time_limit(method):
    rng = np.random.default_rng(0)
    first = rng.integers(1, 20_000, 30_000)
    intervals = np.stack([first, first], axis=1)
    costs = 0.5 if method == "min-cost-flow" else rng.choice([0.1, 0.2, 0.7], len(first))
    data = DecayingCorrelation(20_000, 0.5, 2, "sliding" if method == "ledger" else "general")
    p = QuerySchedule(data, intervals, rng.integers(1, 9, len(first)), costs)
    s = p.solve(method, time_limit=1e-9)
    assert s.evaluation.feasible and s.bound >= p.solve(method).objective
    assert "time limit" in s.message or method == "density"  # it takes milliseconds


@pytest.mark.parametrize("weight", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("method", ["milp", "lp", "enumeration", "local-ratio"])
def test_tiny_and_huge_weights_have_the_same_optimum(weight, method):
    """Absolute tolerances of solvers once cut off all weights below 1e-6."""
    weights = np.array([2, 1, 2, 0, 3, 2, 2]) * weight
    costs = np.array([10, 40, 6.5, 10, 20, 10, 6.5]) / 20
    intervals = [[2, 2], [1, 2], [4, 5], [3, 4], [2, 2], [3, 4], [2, 2]]
    p = QuerySchedule(DecayingCorrelation(5, 0.5, 1), intervals, weights, costs)
    best = p.solve("enumeration").objective
    assert best == pytest.approx(4 * weight)
    s = p.solve(method)
    assert s.bound >= best * (1 - 1e-9)
    assert s.objective == pytest.approx(best) or not s.status.proves_optimum


@pytest.mark.parametrize("seed", range(40))
def test_local_ratio_keeps_its_third_where_queries_exclude_each_other(seed):
    rng = np.random.default_rng(seed)
    q = int(rng.integers(2, 9))
    intervals = np.repeat(rng.integers(1, 3, (q, 1)), 2, axis=1)
    costs = rng.choice([0.04, 0.3, 0.5, 0.9], q)
    p = QuerySchedule(DecayingCorrelation(2, 0.5, 0, "sliding"), intervals, rng.random(q), costs)
    s = p.solve("local-ratio")
    best = p.solve("enumeration").objective
    assert 3 * s.objective >= best * (1 - 1e-9) and s.bound >= best * (1 - 1e-9)


# -- the ledger ---


@settings(max_examples=60, deadline=None)
@given(schedules(equal=False, queries=12))
def test_the_ledger_equals_accounts_of_windows(p):
    sets = windows_of(p.data_model)
    ledger = Ledger(p.data_model, p.epsilon)
    account = PrivacyLedger(PureDP(p.epsilon), windows=[str(i) for i in range(len(sets))])
    costs = np.broadcast_to(p.costs, len(p.intervals)).tolist()
    accepted = []
    for (a, b), cost in zip(p.intervals.tolist(), costs, strict=True):
        touched = [str(i) for i, w in enumerate(sets) if w & set(range(a, b + 1))]
        if not in_order(p.data_model, [(x, y) for x, y, _ in accepted] + [[a, b]]):
            with pytest.raises(QueryRefusedError, match="stream has passed"):
                ledger.ask([a, b], cost)
            continue
        try:
            account.spend(Profile.pure(cost), touched)
        except BudgetSpentError:
            with pytest.raises(BudgetSpentError, match="window"):
                ledger.ask([a, b], cost)
            continue
        ledger.ask([a, b], cost)
        accepted.append((a, b, cost))
    assert ledger.accepted == accepted
    spent = [account.spent(str(i)) for i in range(len(sets))]
    windows = p.data_model.windows  # equal windows count once
    assert windows == len(sets) or len(set(spent)) == windows == 1
    np.testing.assert_allclose(ledger.spent, spent[:windows], atol=1e-9)
    again = Ledger(p.data_model, p.epsilon)
    took = again.ask_many(p.intervals, costs)
    assert again.accepted == accepted and took.sum() == len(accepted)
    assert len(p.solve("ledger").decision) == len(accepted)


def test_five_times_a_fifth_is_one():
    ledger = Ledger(IndependentBlocks(1), 1.0)
    assert ledger.ask_many([[1, 1]] * 6, 0.2).tolist() == [True] * 5 + [False]
    p = QuerySchedule(IndependentBlocks(1), [[1, 1]] * 6, costs=[0.2] * 5 + [0.1])
    assert len(p.solve("milp").decision) == 5
    assert p.evaluate(range(5)).feasible and not p.evaluate(range(6)).feasible
    third = Ledger(IndependentBlocks(1), 0.3)
    assert third.ask_many([[1, 1]] * 4, 0.1).sum() == 3


@pytest.mark.parametrize("epsilon", [1.0, 0.7, 0.3, 1 / 3, 25.0, 1e-3])
@pytest.mark.parametrize("parts", [3, 6, 7, 11, 49, 997])
def test_an_even_split_of_the_budget_fits(epsilon, parts):
    ledger = Ledger(IndependentBlocks(1), epsilon)
    assert ledger.ask_many([[1, 1]] * (parts + 1), epsilon / parts).sum() == parts
    p = QuerySchedule(IndependentBlocks(1), [[1, 1]] * (parts + 1), costs=epsilon / parts, epsilon=epsilon)
    assert p.capacity == parts
    assert [len(p.solve(m).decision) for m in ("ledger", "min-cost-flow")] == [parts] * 2


def test_a_common_unit_beyond_64_bits_is_rounded():
    """The least common multiple of 2 to 60 does not fit; the halves, thirds and so on still do."""
    parts = np.arange(2, 61)
    intervals = np.repeat(np.arange(1, 60), parts + 1)[:, None].repeat(2, axis=1)
    costs = np.repeat(1 / parts, parts + 1)
    p = QuerySchedule(IndependentBlocks(59), intervals, costs=costs)
    assert len(p.solve("ledger").decision) == len(p.solve("milp").decision) == parts.sum()


def test_refusals_name_rule_and_window():
    ledger = Ledger(IndependentBlocks(3), 1.0)
    with pytest.raises(QueryRefusedError, match="within one block"):
        ledger.ask([1, 2], 0.1)
    with pytest.raises(QueryRefusedError, match="reversed"):
        ledger.ask([2, 1], 0.1)
    with pytest.raises(QueryRefusedError, match="from 1 to 3"):
        ledger.ask([4, 4], 0.1)
    with pytest.raises(QueryRefusedError, match="at most width 1"):
        Ledger(DecayingCorrelation(9, 0.5, 1), 1.0).ask([1, 3], 0.1)
    ledger.ask([2, 2], 0.7)
    with pytest.raises(BudgetSpentError, match=r"window 2 has spent 0.7 of 1; the query takes 0.5"):
        ledger.ask([2, 2], 0.5)
    streamed = Ledger(StreamedBlocks(3), 1.0)
    streamed.ask([2, 2], 0.1)
    with pytest.raises(QueryRefusedError, match="stream has passed"):
        streamed.ask([1, 1], 0.1)
    for cost in (0.0, -1.0, np.nan):
        with pytest.raises(DeclarationError):
            ledger.ask([1, 1], cost)
    with pytest.raises(DeclarationError, match="epsilon"):
        Ledger(IndependentBlocks(3), 0.0)


@pytest.mark.parametrize("seed", range(20))
def test_range_loads_equal_plain_arrays(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    tree, plain = RangeLoads(n, np.array([60])), np.zeros(n, dtype=int)
    for _ in range(60):
        first = int(rng.integers(0, n))
        last = int(rng.integers(first, n))
        assert tree.largest(first, last)[0] == plain[first : last + 1].max()
        cost = int(rng.integers(1, 12))
        fits = plain[first : last + 1].max() + cost <= 60
        assert tree.fit(first, last, np.array([cost])) == fits
        plain[first : last + 1] += cost * fits
    assert (tree.loads()[0] == plain).all()


# -- bad input ---


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"intervals": [[2, 1]]}, "reversed"),
        ({"intervals": [[0, 1]]}, "numbered from 1"),
        ({"intervals": [[1, 4]]}, "at most width 2"),
        ({"intervals": []}, "Q at least 1"),
        ({"weights": -1.0}, "none negative"),
        ({"weights": [1.0, 2.0]}, "weights"),
        ({"costs": 0.0}, "above 0"),
        ({"costs": [0.1, 0.2]}, "costs"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 0.0}, "delta"),
    ],
)
def test_malformed_schedules_raise(fields, words):
    good = {"data_model": DecayingCorrelation(9, 0.5, 2), "intervals": [[1, 2]]}
    with pytest.raises(DeclarationError, match=words):
        QuerySchedule(**{**good, **fields})


def test_costs_above_the_budget_are_listed():
    p = QuerySchedule(IndependentBlocks(2), [[1, 1], [2, 2]], costs=[1.5, 0.5])
    assert p.unanswerable == [0]
    for method in ("milp", "lp", "local-ratio", "density", "ledger", "enumeration"):
        assert p.solve(method).decision.queries.tolist() == [1]
    with pytest.raises(DeclarationError, match="costs differ"):
        p.solve("min-cost-flow")
    none = p.replace(costs=1.5)
    for method in none.methods:
        assert none.solve(method).objective == 0


def test_malformed_decisions_raise():
    p = QuerySchedule(IndependentBlocks(2), [[1, 1], [2, 2]])
    for wrong in ([2], [-1], [0.5], [0, 0], ["a"]):
        with pytest.raises(DeclarationError):
            p.evaluate(wrong)


def test_a_schedule_is_a_file_and_a_picture(tmp_path):
    p = random_schedule(1, equal=False)
    p.save(tmp_path / "p.json")
    assert fo.load(tmp_path / "p.json") == p
    assert json.loads((tmp_path / "p.json").read_text())["data_model"]["type"] == "DecayingCorrelation"
    p.solve("density").decision.plot(tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 1000
