"""Properties of every registered problem and method, over the shipped examples and instances.

`KNOWN` lists methods that fail a property today. A test asserts that each of them still fails it, so an entry
has to go once its method is mended.
"""

import copy
import inspect
import json
import math
import pickle
import time
from contextlib import suppress
from functools import cache, cached_property

import numpy as np
import pytest

import forcopt as fo
from forcopt.declaration import Declared
from forcopt.problem import COMMON_OPTIONS, examples, load, problem_classes
from forcopt.study.library import instances, known
from forcopt.study.run import warm_up
from forcopt.study.store import metadata

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
def test_replace_rebuilds_and_equal_problems_have_equal_hashes(name):
    p = problems()[name]
    if len(pickle.dumps(p)) > SMALL:
        pytest.skip("large")
    plain = json.loads(json.dumps(p.to_dict()))
    same = [p.replace(), p.model_copy(), copy.copy(p), copy.deepcopy(p), pickle.loads(pickle.dumps(p))]
    same += [p.__replace__(), p.copy(), fo.Problem.from_dict(plain), type(p).from_dict(plain)]
    for other in same:
        assert other is not p
        assert other == p
        assert hash(other) == hash(p)
    assert metadata(p)["fingerprint"] == metadata(same[0])["fingerprint"]


def as_text(value):
    """A number, or a few of them, as text; None for other values."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, np.ndarray):
        return value.astype(str).tolist() if value.size else None
    if isinstance(value, tuple) and value:
        texts = tuple(as_text(entry) for entry in value)
        return None if None in texts else texts
    if isinstance(value, dict) and value:
        texts = {key: as_text(entry) for key, entry in value.items()}
        return None if None in texts.values() else texts
    return None


@pytest.mark.parametrize("class_name", CLASSES)
def test_text_is_no_number_in_any_field(class_name):
    tried = 0
    for _, p in by_size(class_name)[:3]:
        for field in sorted(p.model_fields_set):
            text = as_text(getattr(p, field))
            if text is not None:
                tried += 1
                with pytest.raises(fo.DeclarationError, match=rf"\b{field}\b"):
                    p.replace(**{field: text})
    assert tried, "no numeric field"


@pytest.mark.parametrize("class_name", CLASSES)
def test_no_copy_carries_a_cache(class_name):
    _, p = by_size(class_name)[0]
    p.solve(**usual(class_name, p.method().name))
    for name, attribute in inspect.getmembers(type(p)):
        if isinstance(attribute, cached_property):
            with suppress(fo.DeclarationError):  # some are for some declarations only
                getattr(p, name)
    hash(p)
    assert set(p.__dict__) > set(type(p).model_fields)
    for other in (p.replace(), p.model_copy(), copy.copy(p), copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        fresh = type(p)(**{name: getattr(p, name) for name in p.model_fields_set})
        assert set(other.__dict__) <= set(fresh.__dict__)


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


def accepts(schema, value, top) -> bool:
    """Whether plain data fit a JSON schema, as far as our schemas go."""
    if "$ref" in schema:
        return accepts(top["$defs"][schema["$ref"].rpartition("/")[2]], value, top)
    if "anyOf" in schema:
        return any(accepts(kind, value, top) for kind in schema["anyOf"])
    if "const" in schema:
        return value == schema["const"]
    if "enum" in schema:
        return value in schema["enum"]
    kinds = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "null": type(None),
        "integer": int,
        "number": (int, float),
    }
    if "type" in schema and not isinstance(value, kinds[schema["type"]]):
        # The schema of an array of numbers stands for a single number too.
        return schema["type"] == "array" and schema.get("items") == {} and isinstance(value, int | float)
    if isinstance(value, dict):
        known_names = schema.get("properties", {})
        rest = schema.get("additionalProperties", True)
        if not set(schema.get("required", ())) <= set(value):
            return False
        if rest is False and not set(value) <= set(known_names):
            return False
        return all(
            accepts(known_names.get(k, rest if isinstance(rest, dict) else {}), v, top)
            for k, v in value.items()
        )
    if isinstance(value, list):
        heads = schema.get("prefixItems", [])
        long = len(value) >= schema.get("minItems", 0) and len(value) <= schema.get("maxItems", math.inf)
        each = [*heads, *[schema.get("items", {})] * (len(value) - len(heads))]
        return long and all(accepts(s, v, top) for s, v in zip(each, value, strict=False))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (
            schema.get("minimum", -math.inf) <= value <= schema.get("maximum", math.inf)
            and value > schema.get("exclusiveMinimum", -math.inf)
            and value < schema.get("exclusiveMaximum", math.inf)
        )
    return True


@pytest.mark.parametrize("class_name", CLASSES)
def test_the_schema_accepts_the_files_of_its_class_and_no_others(class_name):
    schema = CLASSES[class_name].file_schema()
    for name, p in problems().items():
        if len(pickle.dumps(p)) <= SMALL:
            plain = json.loads(json.dumps(p.to_dict()))
            assert accepts(schema, plain, schema) == (type(p) is CLASSES[class_name]), name
            assert not accepts(schema, {**plain, "no field": 1}, schema)


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


# -- options -----------------------------------------------------------------------------------------------

WRONG = {"text": "no word", "object": object(), "nan": math.nan, "list": [object()], "dict": {}}
"""Values that no option takes."""

VALUES = {
    "backend": "highs",
    "time_limit": 60.0,
    "gap": 0.5,
    "start": "a start",
    "seed": 1,
    "threads": 1,
    "log": True,
    "on_improvement": lambda step: None,
}


@pytest.mark.parametrize(("class_name", "method"), METHODS)
def test_every_own_option_of_a_method_stands_in_its_docstring(class_name, method):
    chosen = CLASSES[class_name].methods[method]
    text = inspect.getdoc(chosen.function).partition("Returns\n")[0].partition("Parameters\n")[2]
    named = {
        name.strip() for line in text.splitlines() if " :" in line for name in line.split(" :")[0].split(",")
    }
    assert named >= set(chosen.options)


@pytest.mark.parametrize(("class_name", "method"), METHODS)
def test_an_option_that_a_method_does_not_take_is_refused_by_name(class_name, method):
    if not takers(class_name, method):
        pytest.skip("no shipped problem suits the method")
    _, p = takers(class_name, method)[0]
    chosen = p.method(method)
    assert set(VALUES) == set(COMMON_OPTIONS)
    for option in set(COMMON_OPTIONS) - set(chosen.common):
        with pytest.raises(fo.DeclarationError, match=f"'{method}' (takes|uses) no {option}"):
            p.solve(method, **{option: VALUES[option]})
    with pytest.raises(fo.UnknownNameError, match=r"unknown option .* of method"):
        p.solve(method, no_option=1)


@pytest.mark.parametrize(("class_name", "method"), METHODS)
@pytest.mark.parametrize(
    "value", ["no word", object(), math.nan, [object()], {}], ids=["text", "object", "nan", "list", "dict"]
)
def test_a_value_of_another_type_is_refused_by_the_option_s_name(class_name, method, value):
    if not takers(class_name, method):
        pytest.skip("no shipped problem suits the method")
    _, p = takers(class_name, method)[0]
    chosen = p.method(method)
    for option in chosen.options:
        with pytest.raises(fo.DeclarationError) as error:
            p.solve(method, **{option: value})
        # a problem that the method does not take is refused first
        assert option in str(error.value) or "needs" in str(error.value)
    wrong = {"seed": ["x", -1, 1.5, object()], "on_improvement": [3, "x"]}
    for option in set(wrong) & set(chosen.common):
        for other in wrong[option]:
            with pytest.raises(fo.DeclarationError, match=f"{option} is"):
                p.solve(method, **{option: other})


@pytest.mark.parametrize(("class_name", "method"), METHODS)
def test_every_method_takes_a_time_limit(class_name, method):
    assert "time_limit" in CLASSES[class_name].methods[method].common


def first_solved(class_name: str, method: str, options: dict) -> tuple[fo.Problem, fo.Solution] | None:
    """The smallest problem that the method takes, with its solution."""
    for _, p in takers(class_name, method):
        s = solved(p, method, **options)
        if s is not None:
            return p, s
    return None


def usual(class_name: str, method: str) -> dict:
    """The options of a short run."""
    chosen = CLASSES[class_name].methods[method]
    options = {"seed": 1} if "seed" in chosen.common and chosen.kind == "algorithm" else {}
    return options | ({"time_limit": 2.0} if "time_limit" in chosen.common else {})


def agree(first, second) -> bool:
    """Whether two decisions are equal, by their plain data."""
    return pickle.dumps(first) == pickle.dumps(second) or repr(first) == repr(second)


@pytest.mark.parametrize(("class_name", "method"), METHODS)
def test_a_solution_pickles_and_its_trace_was_shown(class_name, method):
    options, steps = usual(class_name, method), []
    shown = "on_improvement" in CLASSES[class_name].methods[method].common
    if shown:
        options["on_improvement"] = lambda step: steps.append(step)
    found = first_solved(class_name, method, options)
    if found is None:
        pytest.skip("no shipped problem suits the method")
    _, s = found
    read = pickle.loads(pickle.dumps(s))
    failure = ""
    if read.problem != s.problem or read.status is not s.status:
        failure = "its pickle is another solution"
    elif s.decision is not None and s.problem.evaluate(read.decision).objective != s.objective:
        failure = "its decision changes in a pickle"
    checked(class_name, method, "pickles", failure)
    if shown and CLASSES[class_name].methods[method].kind == "algorithm":
        missing = [step for step in s.trace if step not in steps]
        checked(class_name, method, "trace shown", f"{len(missing)} steps were not shown" if missing else "")
    assert s.status.has_solution or s.reason


@pytest.mark.parametrize(
    ("class_name", "method"), [m for m in METHODS if "seed" in CLASSES[m[0]].methods[m[1]].common]
)
def test_a_seed_repeats(class_name, method):
    if CLASSES[class_name].methods[method].kind == "formulation":
        pytest.skip("the backends' seeds are tested with the backends")
    found = first_solved(class_name, method, usual(class_name, method))
    if found is None:
        pytest.skip("no shipped problem suits the method")
    p, s = found
    again = solved(p.replace(), method, **usual(class_name, method))
    same = again is not None and agree(again.decision, s.decision)
    checked(class_name, method, "seed", "" if same else f"{s.decision!r} and then {again!r}")


def excess(p: fo.Problem, method: str) -> tuple[float, fo.Solution] | None:
    """The seconds over the limit, of wall time or of this process's own, and the solution."""
    chosen = p.method(method)
    if chosen.prepare is not None:
        chosen.prepare()
    wall, own = time.perf_counter(), time.process_time()
    s = solved(p, method, time_limit=LIMIT)
    took = min(time.perf_counter() - wall, time.process_time() - own)
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
