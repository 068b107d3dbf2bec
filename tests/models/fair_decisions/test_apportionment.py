from fractions import Fraction
from itertools import product
from math import isqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.backends.registry import backends
from forcopt.errors import DeclarationError
from forcopt.models import Apportionment
from forcopt.models.fair_decisions.apportionment import Criterion
from forcopt.status import Status

CRITERIA = Criterion.__args__
INTEGER = [
    name
    for name, b in backends().items()
    if not b.missing() and {"rows", "integer"} <= b.capabilities.kinds and not b.capabilities.only_integer
]
FEW = [10, 20, 30, 45]


def fields():
    return st.fixed_dictionaries(
        {
            "populations": st.lists(st.integers(0, 40), min_size=1, max_size=4).filter(any),
            "seats": st.integers(1, 9),
            "minimum": st.integers(0, 2),
            "criterion": st.sampled_from(CRITERIA),
            "quota": st.sampled_from([None, "lower", "upper", "both"]),
        }
    )


def feasible(f):
    """All whole seats within the demands, straight from their definitions."""
    p, h, least = f["populations"], f["seats"], f["minimum"]
    q = [Fraction(x * h, sum(p)) for x in p]
    for s in product(range(h + 1), repeat=len(p)):
        ok = sum(s) == h
        for x, quota, a in zip(p, q, s, strict=True):
            needed = max(least, 1) if f["criterion"] in ("hill", "adams", "dean") and x else least
            ok &= a >= needed and (x > 0 or a == least)
            ok &= f["quota"] not in ("lower", "both") or a >= quota.numerator // quota.denominator
            ok &= (
                x == 0 or f["quota"] not in ("upper", "both") or a <= -(-quota.numerator // quota.denominator)
            )
        if ok:
            yield s, q


def cost(criterion, s, q):
    """The measure in fractions, for comparisons."""
    away = sorted((abs(a - x) for a, x in zip(s, q, strict=True)), reverse=True)
    some = [(a, x) for a, x in zip(s, q, strict=True) if x > 0]
    match criterion:
        case "total":
            return sum(away)
        case "minimax":
            return away[0]
        case "leximax":
            return away
        case "range":
            return max(a / x for a, x in some) - min(a / x for a, x in some)
        case "hill":
            return sum((a - x) ** 2 / a for a, x in some)
        case "dean":
            return sum(sum(Fraction(2 * j * (j + 1), 2 * j + 1) for j in range(a)) / x - a for a, x in some)
    shift = {"webster": 0, "jefferson": Fraction(1, 2), "adams": -Fraction(1, 2)}[criterion]
    return sum((a + shift - x) ** 2 / x for a, x in some)


@settings(max_examples=250, deadline=None)
@given(fields())
def test_the_default_method_is_optimal_for_every_criterion(f):
    p = Apportionment(**f)
    every = [(cost(f["criterion"], s, q), s) for s, q in feasible(f)]
    found = p.solve()
    if not every:
        assert found.status is Status.INFEASIBLE and found.reason.startswith(p.infeasibility_reason())
        assert p.infeasibility_reason()
        return
    assert found.status is Status.OPTIMAL and found.evaluation.feasible
    s, (_, q) = tuple(found.decision.seats.tolist()), next(feasible(f))
    exact = cost(f["criterion"], s, q)
    assert exact == min(every)[0]
    first = exact[0] if f["criterion"] == "leximax" else exact
    assert found.objective == pytest.approx(float(first), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(fields())
def test_the_program_has_the_same_optimum(f):
    p = Apportionment(**f)
    exact, program = p.solve(), p.solve("milp")
    assert program.status is exact.status
    if exact.decision is not None:
        assert program.evaluation.feasible
        assert program.objective == pytest.approx(exact.objective, abs=1e-6 * max(1, abs(exact.objective)))
        if f["criterion"] == "leximax":
            away = [np.sort(np.abs(s.decision.deviations)) for s in (exact, program)]
            assert away[0] == pytest.approx(away[1], abs=1e-5)


@pytest.mark.parametrize("backend", INTEGER)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_every_integer_backend_agrees(backend, criterion):
    p = Apportionment([7, 23, 41, 5, 64], seats=17, criterion=criterion)
    assert len(INTEGER) >= 4
    s = p.solve("milp", backend=backend)
    assert s.objective == pytest.approx(p.solve().objective, rel=1e-6)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_india_by_two_methods(criterion):
    if criterion == "leximax":
        pytest.skip("35 stages of a mixed-integer program take minutes")
    p = fo.load("decisions/india-1971").replace(criterion=criterion)
    assert p.solve("milp").objective == pytest.approx(p.solve().objective, rel=1e-7)


def test_squares_of_huntington_are_compared_exactly():
    """Priorities p^2 / (n (n + 1)) of 2 * 3 * 10^16 and its neighbours are the same floats."""
    one = 10**8 * isqrt(6)
    p = Apportionment([float(one), float(one), 1.0], seats=5, criterion="hill")
    assert p.solve().decision.tied == ("0", "1") or p.solve().decision.seats.tolist() == [2, 2, 1]
    assert Apportionment([3, 3], seats=3).solve().decision.tied == ("0", "1")
    assert Apportionment([3, 3], seats=3).solve().decision.seats.tolist() == [2, 1]


# -- bad input and edges -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "rule"),
    [
        ({"populations": []}, "at least one"),
        ({"populations": [0, 0]}, "0 everywhere"),
        ({"populations": [1, -1]}, r"populations\[1\] is -1"),
        ({"populations": [1, np.nan]}, "populations"),
        ({"seats": 0}, "seats"),
        ({"minimum": -1}, "minimum"),
        ({"minimum": [1, 2, 3]}, "minimum"),
        ({"criterion": "hamilton"}, "criterion"),
        ({"names": ("a", "a")}, "all different"),
    ],
)
def test_malformed_declarations(bad, rule):
    with pytest.raises(DeclarationError, match=rule):
        Apportionment(**{"populations": [2, 3], "seats": 5, **bad})


def test_contradictions_are_a_status_with_a_reason():
    few = Apportionment([5, 5, 5], seats=2)
    for method in ("divisor", "milp", "largest-remainder"):
        s = few.solve(method)
        assert s.status is Status.INFEASIBLE
    assert few.solve().message == "seats is 2; the minimums of 3 states need 3"
    upper = Apportionment([97, 2, 1], seats=10, minimum=2, quota="upper", names=("A", "B", "C"))
    assert "state B must have at least 2 seats; its upper quota is 1" in upper.solve().message
    lower = Apportionment([98, 1, 1], seats=100, minimum=2, quota="lower", names=("A", "B", "C"))
    assert "minimums and lower quotas" in lower.solve().message and "state B" in lower.solve().message
    assert Apportionment([1, 2], seats=1, minimum=0, criterion="hill").solve().status is Status.INFEASIBLE
    assert Apportionment([1, 2], seats=1, minimum=0).replace(criterion="webster").solve().objective > 0


def test_methods_refuse_other_criteria():
    p = Apportionment(FEW, seats=7)
    with pytest.raises(DeclarationError, match="no divisor method"):
        p.replace(criterion="total").solve("divisor")
    with pytest.raises(DeclarationError, match="greedy takes"):
        p.solve("greedy")


@pytest.mark.parametrize("criterion", CRITERIA)
def test_edges(criterion):
    one = Apportionment([7], seats=4, criterion=criterion).solve()
    assert one.decision.seats.tolist() == [4]
    exactly = Apportionment([7, 1, 0], seats=3, criterion=criterion).solve()
    assert exactly.decision.seats.tolist() == [1, 1, 1] and exactly.decision.tied == ()
    empty = Apportionment([7, 1, 0], seats=8, minimum=0, criterion=criterion).solve()
    assert empty.decision.seats.tolist() == [7, 1, 0]
    equal = Apportionment([2, 2, 2], seats=7, criterion=criterion).solve()
    assert sorted(equal.decision.seats.tolist()) == [2, 2, 3]
    if criterion != "range":  # a program breaks ties in any way
        assert equal.decision.seats[0] == 3
    limited = Apportionment([10, 20, 31, 47], seats=9, criterion=criterion).solve(time_limit=0)
    assert limited.status in (Status.LIMIT, Status.FEASIBLE)


def test_decisions_print_and_plot(tmp_path):
    p = Apportionment(FEW, seats=7, names=("a", "b", "c", "d"))
    s = p.solve().decision
    assert "7 seats" in repr(s) and s.table().loc["d", "seats"] == 3
    s.plot(tmp_path / "seats.png")
    assert (tmp_path / "seats.png").stat().st_size > 1000
    assert "equal claims to the last seat: a, b" in repr(
        Apportionment([3, 3], 3, names=("a", "b")).solve().decision
    )


def test_an_evaluation_names_what_is_violated():
    p = Apportionment(FEW, seats=7, quota="both")
    assert p.evaluate([1, 1, 2, 3]).feasible
    assert p.evaluate([0, 2, 2, 3]).violations == {"minimum": 1.0}
    assert p.evaluate([1, 1, 1, 4]).violations == {"minimum": 1.0, "maximum": 1.0}
    assert set(p.evaluate([1, 1.5, 2, 3]).violations) == {"seats", "whole seats"}
    with pytest.raises(DeclarationError, match="shape"):
        p.evaluate([7])


def test_it_agrees_with_a_stratified_sample():
    """Wright: Huntington-Hill is Neyman's allocation of whole numbers, with populations as deviations."""
    p = Apportionment([9061, 7179, 5259, 3319, 1182], seats=26)
    sample = fo.models.StratifiedAllocation(sizes=p.populations, deviations=np.ones(5), sample_size=26)
    assert sample.solve("greedy").decision.sizes.tolist() == p.solve().decision.seats.tolist()


def test_labelled_seats_go_by_state():
    p = Apportionment(pd.Series([5, 3, 1], ["x", "y", "z"]), seats=6)
    assert p.names == ("x", "y", "z")
    expected = p.evaluate([3, 2, 1]).objective
    assert p.evaluate([1, 2, 3]).objective != expected
    assert p.evaluate(pd.Series([1, 2, 3], ["z", "y", "x"])).objective == expected
    assert p.evaluate({"z": 1, "y": 2, "x": 3}).objective == expected
    with pytest.raises(DeclarationError, match="the seats are labelled 'w'"):
        p.evaluate({"z": 1, "y": 2, "w": 3})
