"""Mistakes in a problem or method of one's own: each is one sentence that says what to write instead."""

import numpy as np
import pytest

import forcopt as fo
from forcopt.problem import Evaluation, Handles, Outcome, Problem


@pytest.fixture(scope="module")
def counts():
    class OwnCount(Problem):
        n: int

        def evaluate(self, decision):
            return Evaluation(float(decision)) if self.n else float(decision)

    @OwnCount.algorithm("number", exact=True)
    def number(problem):
        return 3

    @OwnCount.algorithm("array", exact=True)
    def array(problem):
        return np.zeros(3)

    @OwnCount.algorithm("nothing", exact=True)
    def nothing(problem):
        return None

    @OwnCount.formulation("no-handles", exact=True)
    def no_handles(problem, model):
        model.minimize(model.variable("x", lower=0))

    @OwnCount.algorithm("fine", exact=True)
    def fine(problem, *, time_limit: float | None = None):
        return Outcome(3.0)

    @OwnCount.formulation("model", exact=True)
    def model(problem, model):
        x = model.variable("x", lower=2)
        return Handles(objective=x, decision=lambda s: float(s[x]))

    return OwnCount


@pytest.mark.parametrize(
    ("n", "method", "message"),
    [
        (1, None, 'OwnCount has no default method: write default_method = "NAME" in the class'),
        (
            1,
            "number",
            r"'number' of OwnCount returned an object of type int; .* Outcome\(decision\)",
        ),
        (1, "array", "returned an object of type ndarray; it must return Outcome"),
        (1, "nothing", "the algorithm 'nothing' of OwnCount returned None; it must return Outcome"),
        (1, "no-handles", "the formulation 'no-handles' of OwnCount returned None; it must return Handles"),
        (
            0,
            "fine",
            r"OwnCount.evaluate returned .* float; it must return Evaluation\(objective\)",
        ),
        (0, "model", "OwnCount.evaluate returned an object of type float"),
    ],
)
def test_what_a_method_must_return(counts, n, method, message):
    with pytest.raises(fo.DeclarationError, match=message):
        counts(n=n).solve(method)


def test_the_sound_ones_run(counts):
    assert counts(n=1).solve("fine").objective == 3
    assert counts(n=1).solve("model").objective == 2


def test_a_sense_is_min_or_max():
    with pytest.raises(fo.DeclarationError, match="WrongSense: sense is 'minn'; it must be 'min' or 'max'"):

        class WrongSense(Problem):
            sense = "minn"


@pytest.mark.parametrize("method", ["fine", "model"])
def test_a_misspelled_common_option_suggests_the_right_one(counts, method):
    with pytest.raises(fo.UnknownNameError, match=r"option 'timelimit' of .*; did you mean 'time_limit'"):
        counts(n=1).solve(method, timelimit=3)


def test_threads_beyond_the_machine_are_capped():
    import threading

    before, seen = threading.active_count(), []
    p = fo.load("strategic/max-cover")
    s = p.solve("milp", threads=20_000, on_improvement=lambda step: seen.append(tasks()))
    assert s.status is fo.Status.OPTIMAL and threading.active_count() <= before + 4
    assert max(seen, default=0) < 500
    with pytest.raises(fo.DeclarationError, match="threads is 0; it must be an integer from 1 to"):
        p.solve("milp", threads=0)


def tasks() -> int:
    """The threads of this process, by the system's count."""
    from pathlib import Path

    folder = Path("/proc/self/task")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def test_a_binary_variable_has_no_other_bounds():
    with pytest.raises(fo.DeclarationError, match="upper is 4, but a binary variable is 0 or 1"):
        fo.Model("m").variable("b", binary=True, upper=4)


def test_an_unknown_model_lists_problems_only():
    with pytest.raises(fo.UnknownNameError) as error:
        Problem.from_dict({"model": "EqualizedOds"})
    assert "EqualizedOdds" not in str(error.value)
