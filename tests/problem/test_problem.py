import json
import pickle
import tomllib

import numpy as np
import pytest

import forcopt as fo
from forcopt.clock import Deadline, Improvement
from forcopt.data import grid
from forcopt.declaration import Declared, Integers, Numbers
from forcopt.models import Districting
from forcopt.problem.progress import ProgressLine
from forcopt.problem.registry import declared_problem


class Pick(fo.Problem):
    """Choose one of the values."""

    default_method = "first"
    values: Numbers

    def evaluate(self, decision):
        return fo.Evaluation(float(self.values[decision]))


@Pick.algorithm("first", exact=False)
def first(problem, *, seed=None, on_improvement=None):
    if on_improvement is not None:
        on_improvement(Improvement(0.0, float(problem.values[0]), 1.0))
    return fo.Outcome(0)


class Late(Pick):
    """A subclass, defined before its base gets another method."""


@Pick.algorithm("last", exact=False)
def last(problem):
    return fo.Outcome(len(problem.values) - 1)


@pytest.mark.parametrize("change", ["replace", "model_copy", "__replace__"])
def test_a_solved_problem_that_is_changed_forgets_what_was_computed(change):
    p = Districting(grid(3, 3), districts=3, tolerance=0)
    methods = ["frontier", "set-partitioning", "sphere-cut", "portfolio"]
    assert [p.solve(m).objective for m in methods] == [6.0] * 4
    fields = {"districts": 2, "tolerance": 0.2}
    q = p.model_copy(update=fields) if change == "model_copy" else getattr(p, change)(**fields)
    assert [q.solve(m).objective for m in methods] == [4.0] * 4
    assert p.solve("frontier").objective == 6.0


def test_methods_are_listed_by_rank_and_the_instance_chooses_its_default():
    class Ranked(Pick):
        default_method = "scan"

        def choose_method(self):
            return "scan" if len(self.values) < 3 else "halve"

    for rank in ("oracle", "published", "alternative"):
        Ranked.algorithm({"alternative": "halve"}.get(rank, rank), rank=rank)(lambda problem: fo.Outcome(0))
    Ranked.algorithm("scan", exact=True)(lambda problem: fo.Outcome(0))
    assert {name: m.rank for name, m in Ranked.methods.items() if name not in ("first", "last")} == {
        "scan": "default",
        "halve": "alternative",
        "published": "published",
        "oracle": "oracle",
    }
    assert next(iter(Ranked.methods)) == "scan" and list(Ranked.methods)[-2:] == ["published", "oracle"]
    assert [Ranked(values=v).solve(m).method for v in ([1, 2], [1, 2, 3]) for m in (None, "auto")] == [
        "scan",
        "scan",
        "halve",
        "halve",
    ]
    with pytest.raises(
        fo.DeclarationError, match=r"'best': rank is 'default'; it must be one of alternative, "
    ):
        Ranked.algorithm("best", rank="default")(lambda problem: fo.Outcome(0))


def test_a_method_registered_later_on_a_base_reaches_its_subclasses():
    assert list(Late.methods) == ["first", "last"]
    assert Late(values=[3, 1]).solve("last").objective == 1

    @Late.algorithm("last", exact=True)
    def own(problem):
        return fo.Outcome(0)

    assert Late(values=[3, 1]).solve("last").objective == 3
    assert Pick(values=[3, 1]).solve("last").objective == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time_limit": 1.0}, "method 'last' takes no time_limit, so time_limit=1.0 cannot be given"),
        ({"seed": 1}, "takes no seed"),
        ({"gap": 0.0}, "takes no gap, so gap=0.0"),
        ({"threads": 2}, "takes no threads"),
        ({"log": True}, "takes no log"),
        ({"start": 0}, "takes no start"),
        ({"backend": "highs"}, "uses no backend"),
        ({"on_improvement": print}, "takes no on_improvement"),
    ],
)
def test_an_option_that_an_algorithm_does_not_take_is_refused(options, message):
    with pytest.raises(fo.DeclarationError, match=message):
        Pick(values=[1]).solve("last", **options)


def test_a_formulation_cannot_hide_a_common_option():
    with pytest.raises(fo.DeclarationError, match="has an option 'seed'"):

        @Pick.formulation("hiding", exact=True)
        def hiding(problem, model, *, seed=1): ...


def test_progress_shows_the_time_and_the_best_values(capsys):
    seen = []
    Pick(values=[4]).solve(progress=True, on_improvement=seen.append)
    shown = capsys.readouterr().err
    assert "Pick by first" in shown
    assert "objective 4  bound 1  gap 75 %" in shown
    assert len(seen) == 1
    Pick(values=[4]).solve("last", progress=True)  # for a method without improvements too
    assert "Pick by last" in capsys.readouterr().err
    Pick(values=[4]).solve()
    assert capsys.readouterr().err == ""
    assert "of 5 s" in ProgressLine("x", Deadline(5.0)).text(1.0)


def test_the_time_to_build_a_model_counts():
    p = Districting(grid(4, 4), districts=2, tolerance=0)
    s = p.solve("flow", time_limit=0.0)
    assert s.status is fo.Status.LIMIT
    assert "passed while the model was built" in s.reason
    assert s.bound == float("-inf")
    with pytest.raises(fo.DeclarationError, match="time_limit is -1"):
        p.solve("flow", time_limit=-1)
    for method in ("flow", "local-search"):
        with pytest.raises(fo.DeclarationError, match="time_limit is '5'; it must be a number"):
            p.solve(method, time_limit="5")


@pytest.mark.parametrize(("sense", "worse", "better"), [("min", -5.0, 1.0), ("max", 5.0, -1.0)])
def test_an_ideal_value_replaces_weaker_bounds(sense, worse, better):
    """No decision is better than 0: weaker or missing bounds become 0, tighter ones stay."""

    class Distance(fo.Problem):
        default_method = "given"
        ideal = 0.0

        def evaluate(self, decision):
            return fo.Evaluation(decision)

    Distance.sense = sense

    @Distance.algorithm("given", exact=False)
    def given(problem, *, bound=None):
        return fo.Outcome(2 * better, bound)

    for bound, told in ((worse, 0.0), (None, 0.0), (better, better)):
        assert Distance().solve(bound=bound).bound == told
    Distance.ideal = None
    assert Distance().solve(bound=worse).bound == worse


@pytest.mark.parametrize("restricts", [False, True])
def test_a_model_that_excludes_decisions_gives_no_bound(restricts):
    class Half(fo.Problem):
        default_method = "lp"

        def evaluate(self, decision):
            return fo.Evaluation(decision)

    @Half.formulation("lp", exact=not restricts)
    def lp(problem, model):
        x = model.variable("x", lower=1)
        return fo.Handles(objective=x, decision=lambda result: float(result[x]), restricts=restricts)

    assert Half().solve().bound == (float("-inf") if restricts else 1.0)


def test_a_solver_gets_the_time_that_is_left(monkeypatch):
    """Seven of ten seconds pass while the model is written."""
    given = []

    class Slow(fo.Problem):
        default_method = "lp"

        def evaluate(self, decision):
            return fo.Evaluation(decision)

    @Slow.formulation("lp", exact=True)
    def lp(problem, model):
        x = model.variable("x", lower=1)
        monkeypatch.setattr(Deadline, "seconds", property(lambda self: 7.0))
        return fo.Handles(objective=x, decision=lambda result: float(result[x]))

    solve = fo.Model.solve
    monkeypatch.setattr(
        fo.Model, "solve", lambda self, *a, time_limit, **k: given.append(time_limit) or solve(self, *a, **k)
    )
    assert Slow().solve(time_limit=10.0).objective == 1.0
    assert given == [pytest.approx(3.0)]


def test_a_pickled_solution_keeps_its_reason_and_certifies():
    p = Districting(grid(1, 3), districts=2, bounds=(2, 2))
    s = p.solve("flow")
    read = pickle.loads(pickle.dumps(s))
    assert read.status is fo.Status.INFEASIBLE
    assert read.reason == s.reason != ""
    best = Districting(grid(2, 2), districts=2, tolerance=0).solve("flow")
    read = pickle.loads(pickle.dumps(best))
    assert read.objective == best.objective
    assert read.certify("flow").feasible


def test_a_file_of_another_class_is_refused(tmp_path):
    path = tmp_path / "p.json"
    Pick(values=[1]).save(path)
    assert Pick.load(path) == Pick(values=[1])
    with pytest.raises(fo.DeclarationError, match="declares a Pick, not a Districting"):
        Districting.load(path)
    path.write_text(json.dumps({}))
    with pytest.raises(fo.DeclarationError, match=r"p\.json: the key 'model' is missing"):
        fo.load(path)
    with pytest.raises(fo.DeclarationError, match="the key 'model' is missing"):
        declared_problem({})


WRONG = [None, "text", {}, [[1]], -0.5, float("nan"), 10**400]


@pytest.mark.parametrize("name", sorted(fo.problem.examples()))
def test_a_wrong_or_missing_field_of_any_declaration_is_refused(name):
    path = fo.problem.examples()[name]
    text = path.read_text()
    data = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    family = type(fo.load(name)).__name__
    for field in data if len(text) < 20_000 else ():
        for wrong in (*WRONG, "left out"):
            changed = (
                {k: v for k, v in data.items() if k != field}
                if wrong == "left out"
                else data | {field: wrong}
            )
            try:
                made = declared_problem(changed)
            except ValueError as error:
                assert isinstance(error, fo.DeclarationError | fo.UnknownNameError)
                assert (
                    (family in str(error))
                    or field == "model"
                    or f"'{field}'" in str(error)
                    or field in str(error)
                )
            else:
                assert declared_problem(made.to_dict()) == made


def test_whole_numbers_beyond_the_floats_are_refused():
    class Counted(Declared):
        counts: Integers
        count: int = 0

    with pytest.raises(fo.DeclarationError, match=r"counts: the array\[1\] is 1e\+300; it must be at most"):
        Counted([5, 1e300])
    with pytest.raises(fo.DeclarationError, match="it must be at most"):
        Counted([5], count=2**60)


def test_rng_is_another_name_of_the_seed():
    problem = Districting(grid(5, 5), districts=5, tolerance=0.2)
    plans = {
        name: [problem.solve("recom", steps=20, **{name: seed}).decision.labels.tolist() for seed in range(6)]
        for name in ("seed", "rng")
    }
    assert plans["seed"] == plans["rng"] and len(set(map(str, plans["rng"]))) > 1
    with pytest.raises(fo.DeclarationError, match="seed is 1 and rng is 2; they are one option"):
        problem.solve("recom", seed=1, rng=2)


def test_a_method_may_have_an_option_rng_of_its_own():
    class Own(Pick):
        """With an option of that name."""

    @Own.algorithm("draw", exact=False)
    def draw(problem, *, rng=0):
        return fo.Outcome(rng)

    assert Own(values=[1.0, 2.0, 3.0]).solve("draw", rng=2).decision == 2


def test_models_comparisons_and_ensembles_take_rng_too():
    m = fo.Model()
    x = m.variable("x", 2, lower=0)
    m.subject_to(x.sum() >= 1)
    m.minimize(x.sum())
    assert m.solve(rng=1).objective == m.solve(rng=np.random.default_rng(1)).objective == 1.0
    problem = Districting(grid(3, 3), districts=3, tolerance=0)
    row = fo.compare(problem, ["local-search"], rng=1, isolate=False, progress=False).rows[0]
    assert row.seed == 1 and row.status == "approximate"
    drawn = [problem.ensemble(size=5, **{name: 1}).scores().to_dict() for name in ("seed", "rng")]
    assert drawn[0] == drawn[1]
    for call in (m.solve, problem.ensemble, lambda **both: fo.compare(problem, **both)):
        with pytest.raises(fo.DeclarationError, match="seed is 1 and rng is 2; they are one option"):
            call(seed=1, rng=2)
        for wrong in (True, -1, 1.5, "a", [1, 2]):
            with pytest.raises(fo.DeclarationError, match=r"seed is .*, or a numpy"):
                call(seed=None, rng=wrong)
    with pytest.raises(
        fo.DeclarationError, match=r"seed is \d+; it must be an integer from 0 to 2\*\*31 - 1"
    ):
        m.solve(seed=2**70)
