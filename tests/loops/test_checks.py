"""The list of checks that a solver's claim passes: what it holds, that it changes nothing, what follows."""

from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import numpy as np
import pytest

import forcopt as fo
from forcopt.backends import get_backend
from forcopt.backends.base import RawResult, SolveOptions
from forcopt.clock import Deadline
from forcopt.compile.compiler import compile_model
from forcopt.loops import checks
from forcopt.loops.checks import CHECKS, Act, Claim, Confirmed, Doubt, examined, table

ROOT = Path(__file__).resolve().parents[2]


def claim_of(result, integer=False):
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=4, integer=integer)
    m.subject_to(x.sum() >= 1, name="need")
    m.minimize(x @ [2, 3])
    highs = get_backend("highs")
    program = compile_model(m, highs.capabilities, "highs", {})
    return program, Claim(m, program, highs, SolveOptions(), Deadline(None), result, (result,))


def optimum(x, bound=2.0, dual=2.0):
    return RawResult(fo.Status.OPTIMAL, np.array(x), bound=bound, row_dual=np.array([dual]), message="told")


def test_the_guide_names_each_check_in_its_order():
    assert table() in (ROOT / "docs" / "certificates.md").read_text(encoding="utf-8")


def test_each_file_of_checks_is_in_the_list():
    files = {path.stem for path in (ROOT / "forcopt" / "loops" / "checks").glob("*.py")}
    named = {check.function.__module__.rpartition(".")[2] for check in CHECKS}
    assert files - named == {"__init__", "claim", "second_opinion"}
    assert len({check.function.__name__ for check in CHECKS}) == len(CHECKS)


def test_a_true_claim_is_confirmed_by_all_and_stays_itself():
    program, claim = claim_of(optimum([1.0, 0.0]))
    assert all(isinstance(check(program, claim), Confirmed) for check in CHECKS)
    assert examined(program, claim) is claim


@pytest.mark.parametrize(
    ("result", "check", "reason", "remedy"),
    [
        (optimum([0.5, 0.0]), "within_accuracy", "violates a row or bound", Act.SOLVE_AGAIN),
        (optimum([3.0, 0.0]), "multipliers_prove_the_optimum", "leave a gap", Act.SOLVE_AGAIN),
        (RawResult(fo.Status.INFEASIBLE), "multipliers_prove_infeasibility", "a point", Act.SOLVE_AGAIN),
        (RawResult(fo.Status.UNBOUNDED), "a_ray_and_a_point", "no direction", Act.SOLVE_AGAIN),
        (RawResult(fo.Status.FAILED), "finds_an_answer", "no answer", Act.SOLVE_AGAIN),
        (optimum([0.5, 0.0]), "point_satisfies_the_model", "'need'", Act.RAISE),
        (optimum([1.0, 0.0], bound=1.5), "bound_meets_the_value", "does not prove 2", fo.Status.FAILED),
        (RawResult(fo.Status.UNBOUNDED, ambiguous=True), "decides", "", fo.Status.UNBOUNDED),
    ],
)
def test_a_false_claim_gets_a_doubt_with_its_remedy(result, check, reason, remedy):
    program, claim = claim_of(result)
    before = replace(result)
    doubt = next(c for c in CHECKS if c.function.__name__ == check)(program, claim)
    assert isinstance(doubt, Doubt) and reason in doubt.reason and doubt.remedy is remedy
    assert claim.result is result and result == before


def test_a_claim_does_not_change():
    _, claim = claim_of(optimum([1.0, 0.0]))
    with pytest.raises(FrozenInstanceError):
        claim.result = RawResult(fo.Status.FAILED)


def test_a_doubt_is_remedied_without_a_change_of_the_claim():
    program, claim = claim_of(optimum([3.0, 0.0]))
    answer = examined(program, claim)
    assert (answer.status, answer.point.tolist(), answer.again) == (fo.Status.OPTIMAL, [1, 0], True)
    assert claim.result.message == "told" and answer.result.message.startswith("told; but its multipliers")
    program, claim = claim_of(optimum([1.0, 0.0], bound=1.5))
    answer = examined(program, claim)
    assert answer.status is fo.Status.FAILED and claim.status is fo.Status.OPTIMAL
    program, claim = claim_of(RawResult(fo.Status.OPTIMAL, np.array([0.4, 0.6])), integer=True)
    with pytest.raises(fo.BackendError, match="a point with an integer off by"):
        checks.remedied(checks.EVALUATING, program, claim)
    m = fo.Model()
    y = m.variable("y", lower=0)
    m.maximize(y)
    unbounded = compile_model(m, claim.backend.capabilities, "highs", {})
    far = RawResult(fo.Status.OPTIMAL, np.zeros(1), bound=-7.0, row_dual=np.zeros(0))
    answer = examined(unbounded, replace(claim, model=m, compiled=unbounded, result=far, results=(far,)))
    assert (answer.status, answer.point) == (fo.Status.UNBOUNDED, None)
    assert answer.results[0].bound == -np.inf
