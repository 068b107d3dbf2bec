"""Properties of every registered problem and method, over the shipped examples and instances.

`KNOWN` lists methods that fail a property today. A test asserts that each of them still fails it, so an entry
has to go once its method is mended.
"""

import json
import pickle
import time
from contextlib import suppress
from functools import cache

import numpy as np
import pytest

import forcopt as fo
from forcopt.clock import Deadline
from forcopt.declaration import Declared
from forcopt.memory import bytes_of
from forcopt.problem import COMMON_OPTIONS, examples, load, problem_classes
from forcopt.study.library import instances, known
from forcopt.study.run import warm_up
from forcopt.testing import check_method
from forcopt.testing.problem import accepts, as_text, check_declaration

KNOWN: set[tuple[str, str]] = set()
"""``(class.method, property)`` for each failure of today."""

SMALL = 100_000
"""Pickled problems up to this many bytes are read, written and hashed here."""

LIMIT = 0.25
"""The time limit of the test of time limits, in seconds."""

SLACK = 2.0
"""Seconds over limit + 1 s + 10 % that a run may take here, since other processes share the machine."""

CLASSES = problem_classes()
METHODS = [(name, method) for name, cls in CLASSES.items() for method in cls.methods]


@cache
def problems() -> dict[str, fo.Problem]:
    """All examples and instances by name."""
    return {n: load(n) for n in examples()} | {n: i.make() for n, i in instances().items()}


@cache
def by_size(class_name: str) -> list[tuple[str, fo.Problem]]:
    """The small examples and instances of a class, the smallest first."""
    sizes = {n: len(pickle.dumps(p)) for n, p in problems().items() if type(p) is CLASSES[class_name]}
    return [(n, problems()[n]) for n in sorted(sizes, key=lambda n: sizes[n]) if sizes[n] <= SMALL]


ATTEMPTS = 4
"""Runs of a method, at most, of which one has to keep the limit: a busy machine delays some."""

NAMES = [*examples(), *instances()]


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_has_one_default_and_its_oracles_prove(name):
    cls = CLASSES[name]
    ranks = [m.rank for m in cls.methods.values()]
    assert ranks[0] == "default" and ranks.count("default") == 1
    assert all(m.exact for m in cls.methods.values() if m.rank == "oracle")
    chosen = {p.choose_method() for _, p in by_size(name)}
    assert all(cls.methods[m].rank in ("default", "alternative") for m in chosen)


def checked(class_name: str, method: str, prop: str, failure: str) -> None:
    """Fail for a failure, or for an entry of `KNOWN` that is out of date."""
    entry = (f"{class_name}.{method}", prop)
    if entry in KNOWN:
        # Whether a run ends before it has a decision depends on the machine.
        assert failure or prop == "decision", f"{entry} is mended; remove it from KNOWN"
        pytest.skip(f"known: {failure}")
    assert not failure, f"{entry[0]}: {failure}"


def backends(problem: fo.Problem, method: str) -> list[dict[str, str]]:
    """The arguments that choose a backend: the default one, then others that take cones."""
    if problem.method(method).kind == "algorithm":
        return [{}]
    return [{}, {"backend": "clarabel"}, {"backend": "scip"}]


def takers(class_name: str, method: str) -> list[tuple[str, fo.Problem]]:
    """The small problems of a class that have the method, the smallest first."""
    found = []
    for name, p in by_size(class_name):
        with suppress(fo.DeclarationError):
            p.method(method)
            found.append((name, p))
    return found


def solved(problem: fo.Problem, method: str, **options) -> fo.Solution | None:
    """Solve on the first capable backend; None if the method does not take the problem."""
    for where in backends(problem, method):
        try:
            return problem.solve(method, **where, **options)
        except fo.UnsupportedError:
            continue
        except fo.DeclarationError:
            return None
    return None


# -- declarations ------------------------------------------------------------------------------------------


def test_every_class_has_an_example_or_an_instance():
    assert {type(p) for p in problems().values()} == set(CLASSES.values())
    assert list(problems()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_declaration_conforms(name):
    p = problems()[name]
    if len(pickle.dumps(p)) > SMALL:
        pytest.skip("large")
    check_declaration(p)


@pytest.mark.parametrize("class_name", CLASSES)
def test_every_class_has_numbers(class_name):
    fields = [as_text(getattr(p, f)) for _, p in by_size(class_name)[:3] for f in p.model_fields_set]
    assert any(fields), "no numeric field, so that no text can be refused"


@pytest.mark.parametrize("class_name", CLASSES)
def test_a_solved_problem_that_is_replaced_equals_a_new_one_and_solves_like_it(class_name):
    if len(by_size(class_name)) < 2:
        pytest.skip("one problem only")
    (_, first), (_, second) = by_size(class_name)[:2]
    names = first.model_fields_set | second.model_fields_set
    fields = {n: getattr(second, n) for n in names}
    options = usual(class_name, second.method().name)
    first.solve(**usual(class_name, first.method().name))
    changed = first.replace(**fields)
    assert changed == second
    if "time_limit" in options:
        options["time_limit"] = 60.0  # both runs end by themselves
    one, two = changed.solve(**options), second.replace().solve(**options)
    assert one.objective == pytest.approx(two.objective, abs=1e-6, nan_ok=True)


@pytest.mark.parametrize("class_name", CLASSES)
def test_the_schema_accepts_the_files_of_its_class_and_no_others(class_name):
    schema = CLASSES[class_name].file_schema()
    for name, p in problems().items():
        if len(pickle.dumps(p)) <= SMALL:
            plain = json.loads(json.dumps(p.to_dict()))
            assert accepts(schema, plain) == (type(p) is CLASSES[class_name]), name
            assert not accepts(schema, {**plain, "no field": 1})


@pytest.mark.parametrize("class_name", CLASSES)
def test_every_name_in_a_schema_is_one_that_the_class_accepts(class_name):
    cls = CLASSES[class_name]
    schema = cls.file_schema()
    for field in cls.model_fields:
        asked = schema["properties"][field]
        for option in asked.get("anyOf", [asked]):
            if "$ref" not in option:
                continue
            definition = schema["$defs"][option["$ref"].rpartition("/")[2]]
            for kind in definition.get("anyOf", [definition]):
                if "type" not in kind.get("properties", {}):
                    continue
                name = kind["properties"]["type"]["const"]
                with pytest.raises(fo.ForcoptError) as error:
                    _, p = by_size(class_name)[0]
                    p.replace(**{field: {"type": name, "no field": 1}})
                assert f"unknown type '{name}'" not in str(error.value)


@pytest.mark.parametrize("class_name", CLASSES)
def test_a_formulation_is_written_without_its_name(class_name):
    """Also where the default method is an algorithm."""
    methods = CLASSES[class_name].methods.values()
    if not any(m.kind == "formulation" and m.rank != "published" for m in methods):
        pytest.skip("every formulation is kept for comparison")
    for _, p in by_size(class_name):
        model = fo.Model()
        try:
            parts = p.declare(model)
        except fo.DeclarationError:  # a class of classifiers that cannot be listed
            continue
        assert model.column_count and parts.objective is not None
        return
    pytest.fail("no shipped problem is written into a model")


# -- methods -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [1, 4, 30])
@pytest.mark.parametrize(("class_name", "method"), [m for m in METHODS if CLASSES[m[0]].methods[m[1]].exact])
def test_an_exact_method_whose_memory_ends_says_so_or_is_done(class_name, method, after, monkeypatch):
    """From some question on the process holds more than it may: at once, or in the middle of a search."""
    if not takers(class_name, method):
        pytest.skip("no shipped problem suits the method")
    _, p = takers(class_name, method)[-1]
    asked = []
    monkeypatch.setattr("forcopt.memory._EVERY", 0.0)
    monkeypatch.setattr("forcopt.memory._give_back", lambda: None)
    monkeypatch.setattr("forcopt.memory.resident", lambda: asked.append(1) or 10**12 * (len(asked) > after))
    monkeypatch.setattr(
        "forcopt.memory.bytes_of", lambda limit: asked.clear() or bytes_of(limit)
    )  # of each run
    s = solved(p, method, memory_limit="1 GB", **usual(class_name, method))
    if s is None:
        pytest.skip("no shipped problem suits the method")
    if s.status in ("feasible", "limit") and len(asked) > after:
        named = "the memory limit of 1 GB is reached" in s.message
        checked(class_name, method, "memory", "" if named else f"{s.status}: {s.message!r}")
    assert s.status != "failed", s.message
    monkeypatch.undo()
    if s.status == "infeasible":
        again = solved(p, method, **usual(class_name, method))
        assert again.status == "infeasible"


@pytest.mark.parametrize(("class_name", "method"), METHODS)
def test_every_method_takes_a_time_limit(class_name, method):
    assert "time_limit" in CLASSES[class_name].methods[method].common


def usual(class_name: str, method: str) -> dict:
    """The options of a short run."""
    chosen = CLASSES[class_name].methods[method]
    options = {"seed": 1} if "seed" in chosen.common and chosen.kind == "algorithm" else {}
    return options | ({"time_limit": 2.0} if "time_limit" in chosen.common else {})


WITHOUT_BOUND = {
    "AccuracyPlan.search": "a search over plans, which no program bounds",
    "CountingQueries.shape-search": "a search over shapes of one family of noise",
    "CoverageDecision.decision-table": "the best of the monotone tables",
    "FormulaGrant.exact-quantile": "the least inflation of one form of grants",
    "Districting.local-search": "finds plans for the exact methods",
    "Districting.large-neighbourhood": "finds plans for the exact methods",
}
"""Approximate methods without a guarantee and without a bound that are no baselines of the literature."""


def test_approximate_methods_that_have_no_bound_are_methods_that_there_are():
    assert set(WITHOUT_BOUND) <= {f"{class_name}.{method}" for class_name, method in METHODS}


@pytest.mark.parametrize("class_name", CLASSES)
def test_all_methods_are_compared_on_the_smallest_problem(class_name):
    """None fails, no claim refutes another, and what is approximate has a guarantee, a bound, or a reason."""
    name, p = by_size(class_name)[0]
    c = fo.compare({name: p}, seed=1, time_limit=5.0, isolate=False, progress=False)
    assert {row.method for row in c.rows} == set(p.methods)
    told = ("not for this declaration", "NotInstalledError")
    assert [str(r) for r in c.rows if r.status == "failed" and not r.message.startswith(told)] == []
    assert c.disagreements == ()
    proves = any(method.exact for method in p.methods.values())
    assert any(row.solved and (row.exact or not proves) for row in c.rows)
    for row in c.rows:
        method = p.methods[row.method]
        assert not (row.solved and method.guarantee is not None and np.isnan(row.guarantee)), row.label
        if row.solved and not method.exact and method.guarantee is None and method.rank != "published":
            bare = not np.isfinite(row.bound)
            assert bare == (f"{class_name}.{row.method}" in WITHOUT_BOUND), f"{row.label}: bound {row.bound}"


@pytest.mark.parametrize(("class_name", "method"), METHODS)
def test_a_method_conforms(class_name, method):
    """On the smallest problem that it takes."""
    for _, p in takers(class_name, method):
        try:
            check_method(p, method)
        except (fo.DeclarationError, fo.UnsupportedError):  # some take some declarations only
            continue
        return
    pytest.skip("no shipped problem suits the method")


def excess(p: fo.Problem, method: str) -> tuple[float, fo.Solution] | None:
    """The seconds over the limit, of wall time or of this process's own, and the solution."""
    wall, own = Deadline(), time.process_time()
    s = solved(p, method, time_limit=LIMIT)
    took = min(wall.seconds, time.process_time() - own)
    return None if s is None else (took - LIMIT, s)


@pytest.mark.parametrize(("class_name", "method"), METHODS)
def test_a_time_limit_is_kept_with_a_valid_bound(class_name, method):
    chosen = CLASSES[class_name].methods[method]
    if "time_limit" not in chosen.common:
        pytest.skip("it takes none, which is reported above")
    for name in ("highs", "clarabel", "scip"):
        warm_up(name)
    for name, p in reversed(takers(class_name, method)):
        found = excess(p, method)
        if found is None:
            continue
        seconds, s = found
        allowed = 1.0 + 0.1 * LIMIT + SLACK
        for _ in range(ATTEMPTS - 1):
            if seconds <= allowed:
                break
            seconds, s = excess(p, method) or (seconds, s)
        checked(
            class_name, method, "time limit", f"{name}: {seconds:.1f} s over" if seconds > allowed else ""
        )
        sign = 1 if p.sense == "min" else -1
        rounding = 1e-6 * max(1.0, abs(s.objective)) if s.decision is not None else 0.0
        empty = s.decision is None and s.status.has_solution
        checked(class_name, method, "decision", f"{name}: {s}" if empty else "")
        fact = known().get(name, {})
        optimum = fact.get("objective") if fact.get("status") == "optimal" else None
        wrong = ""
        if optimum is not None and sign * s.bound > sign * optimum + 1e-6 * max(1.0, abs(optimum)):
            wrong = f"{name}: the bound {s.bound:g} excludes the optimum {optimum:g}"
        elif s.evaluation is not None and s.evaluation.feasible and sign * (s.bound - s.objective) > rounding:
            wrong = f"{name}: the bound {s.bound:g} excludes the decision's objective {s.objective:g}"
        checked(class_name, method, "bound", wrong)
        return
    pytest.skip("no shipped problem suits the method")


@pytest.mark.parametrize(
    ("class_name", "method"), [m for m in METHODS if "start" in CLASSES[m[0]].methods[m[1]].common]
)
def test_a_feasible_start_is_kept_when_no_time_is_left(class_name, method):
    for _, p in takers(class_name, method):
        known = p.solve(time_limit=5.0)
        if known.evaluation is None or not known.evaluation.feasible:
            continue
        try:
            s = p.solve(method, start=known.decision, time_limit=1e-6)
        except (fo.DeclarationError, fo.UnsupportedError, fo.NotInstalledError):
            continue
        assert s.evaluation is not None and s.evaluation.feasible, f"{s.status}: {s.message}"
        sign = 1 if p.sense == "min" else -1
        assert sign * s.objective <= sign * known.objective + 1e-6 * max(1.0, abs(known.objective))
        return
    pytest.skip("no shipped problem has a start for the method")


@pytest.mark.parametrize(
    ("class_name", "method"), [m for m in METHODS if "reduce" in CLASSES[m[0]].methods[m[1]].options]
)
def test_a_declared_block_keeps_all_decisions_for_other_objectives(class_name, method):
    for _, p in takers(class_name, method):
        declared, whole = fo.Model(), fo.Model()
        with suppress(fo.DeclarationError):  # some formulations take some declarations only
            p.declare(whole, method, reduce=False)
            p.declare(declared, method)
            assert str(declared.summary()) == str(whole.summary())
            usual, reduced = p.formulate(method)[0], p.formulate(method, reduce=True)[0]
            assert str(usual.summary()) == str(reduced.summary())
            return
    pytest.skip("no shipped problem suits the method")


# -- classes -----------------------------------------------------------------------------------------------


def test_a_method_registered_on_a_base_reaches_every_subclass():
    for cls in CLASSES.values():
        assert cls.methods.keys() >= {n for base in cls.__bases__ for n in getattr(base, "methods", {})}
        assert all(m.options.keys().isdisjoint(COMMON_OPTIONS) for m in cls.methods.values())


def test_declared_classes_are_found_within_the_asked_for_base():
    names = [cls.__name__ for cls in Declared._classes]
    twice = [cls for cls in Declared._classes if names.count(cls.__name__) > 1]
    for cls in twice:
        for kind in cls._kinds():
            assert issubclass(kind, cls)
    with pytest.raises(fo.DeclarationError) as error:
        by_size("FairClassification")[0][1].replace(hypotheses=3)
    listed = str(error.value).rpartition("it must be one of ")[2].split(", ")
    from forcopt.models.fair_classification import Hypotheses

    assert listed == [kind.__name__ for kind in Hypotheses._kinds()]
