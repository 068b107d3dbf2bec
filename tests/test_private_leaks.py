"""No private solution holds the data: pickled, printed, saved, or in a comparison's store."""

import importlib
import inspect
import json
import pickle
import pkgutil
import re
import sqlite3
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest

import forcopt as fo
import forcopt.models
from forcopt.data import Hierarchy
from forcopt.fairness import (
    BoundedGroupLoss,
    DemographicParity,
    EqualizedOdds,
    EqualizedOddsRatio,
    EqualOpportunity,
    PredictiveValues,
)
from forcopt.models import FairClassification, FairPostprocessing, ScorePostprocessing
from forcopt.models.census_release import measure
from forcopt.models.fair_classification import Finite
from forcopt.models.fair_decisions import Dawa
from forcopt.models.fair_decisions.coverage import Nested
from forcopt.models.fair_postprocessing.dp_postprocessing import privacy_cost
from forcopt.models.secure_sum import SharedNoise
from forcopt.privacy import (
    AdditiveMechanism,
    BoundedNoise,
    Channel,
    ClusterSample,
    Design,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    GeneralizedGaussian,
    Laplace,
    Noise,
    PoissonSample,
    PrivacyBudget,
    ProportionalAllocation,
    RandomizedResponse,
    RandomizedRounding,
    Secure,
    SimpleRandomSample,
    Simulated,
    Staircase,
    StratifiedSample,
    TabulatedNoise,
)
from forcopt.problem import problem_classes

COUNTS = np.array([[[36121, 4219], [9437, 5501]], [[4337, 16661], [6229, 20749]]])


def postprocessing():
    return FairPostprocessing(counts=COUNTS, constraint=EqualizedOdds(0.1), privacy=PrivacyBudget(1.0))


def classification():
    rng = np.random.default_rng(0)
    n = 4000
    x = rng.integers(0, 3, (n, 1)).astype(float)
    groups = np.where(rng.random(n) < 0.4, "a", "b")
    labels = (rng.random(n) < 0.2 + 0.25 * x[:, 0]).astype(int)
    return FairClassification(
        features=x,
        labels=labels,
        groups=groups,
        constraint=DemographicParity(0.2),
        hypotheses=Finite(np.stack([x[:, 0] > c for c in (-1, 0, 1, 2)]).astype(int)),
        privacy=PrivacyBudget(500.0, 1e-6, floor=300),
    )


def scores():
    rng = np.random.default_rng(1)
    groups = np.where(rng.random(20000) < 0.4, "a", "b")
    score = rng.normal(size=20000) + 0.3 * (groups == "a")
    labels = (score + rng.normal(size=20000) > 0.5).astype(int)
    return ScorePostprocessing(
        score, labels, groups, EqualizedOdds(0.05), names=("a", "b"), privacy=PrivacyBudget(1.0)
    )


PRIVATE = {
    ("ScorePostprocessing", "dp-thresholds"): (scores, {"edges": [-1.0, 0.0, 0.5, 1.0]}),
    ("FairPostprocessing", "dp-postprocessing"): (postprocessing, {}),
    ("FairClassification", "dp-oracle-learner"): (
        classification,
        {"rounds": 5, "allow_vacuous": True},
    ),
}


def test_every_private_method_is_looked_at():
    """Methods declare themselves private; each must be in the table above."""
    found = {
        (name, method)
        for name, cls in problem_classes().items()
        for method, entry in cls.methods.items()
        if entry.private
    }
    assert found == set(PRIVATE)


def test_only_methods_declared_private_return_private_outcomes():
    class Coin(fo.Problem):
        default_method = "toss"

        def evaluate(self, decision):
            return fo.Evaluation(0.0)

    @Coin.algorithm("toss", exact=False)
    def toss(problem):
        return fo.Outcome(1, private=True)

    with pytest.raises(fo.DeclarationError, match="register it with private=True"):
        Coin().solve()


def secrets(problem):
    """Numbers of the data, as bytes and as they print."""
    if isinstance(problem, FairPostprocessing):
        rates = np.concatenate([problem.base.rate(r).ravel() for r in problem.constraint.rates])
        numbers = [*problem.counts.ravel().tolist(), *rates.tolist()]
        arrays = [problem.counts, problem.counts.astype(float)]
    elif isinstance(problem, ScorePostprocessing):
        rates = np.concatenate([hull.positives[1:-1].ravel() for hull in problem.hulls]) / problem.mass.max()
        numbers, arrays = rates.tolist(), [np.unique(problem.groups, return_inverse=True)[1], problem.mass]
    else:
        codes = np.asarray(problem.groups.codes)
        numbers, arrays = [], [codes]
    blobs = [a.tobytes() for a in arrays] + [np.float64(x).tobytes() for x in numbers if x != int(x)]
    return blobs, [repr(x) for x in numbers]


def prints(text, number):
    """Whether a text holds a number that is not part of a longer one, such as of a time in seconds."""
    return re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", text) is not None


def test_a_number_is_not_a_part_of_another():
    assert prints("counts [5501.0, 2]", "5501") and prints("rate=0.25", "0.25")
    assert not prints('"seconds": 0.03550138', "5501") and not prints("15501", "5501")


@pytest.mark.parametrize("key", PRIVATE, ids="/".join)
@pytest.mark.parametrize("seed", [None, 1])
def test_nothing_of_the_data_goes_with_a_solution(key, seed):
    pytest.importorskip("opendp")
    make, options = PRIVATE[key]
    problem = make()
    s = problem.solve(key[1], seed=seed, **options)
    assert s.decision is not None and s.private
    assert ("simulation" in s.message) == (seed is not None)
    blobs, texts = secrets(problem)
    pickled = [pickle.dumps(s), pickle.dumps(s.decision)]
    back = pickle.loads(pickled[0])
    assert back.problem is None and back.evaluation is None and back.decision is not None
    printed = [repr(s), str(s.decision), s.message, s.log, s.reason, repr(s.trace), repr(back)]
    for blob in blobs:
        assert all(blob not in p for p in pickled)
    for text in texts:
        assert not any(prints(p, text) for p in printed)


@pytest.mark.parametrize(
    "notion",
    [
        BoundedGroupLoss(0.4),
        BoundedGroupLoss(0.1),
        EqualizedOddsRatio(0.8),
        PredictiveValues(0.6, 0.6),
        DemographicParity(0.1).by("half", {"a": "x", "b": "y"}) & BoundedGroupLoss(0.45),
    ],
    ids=repr,
)
def test_private_thresholds_are_a_function_of_the_release(notion, monkeypatch):
    """Other groups and the same noisy histogram: the same decision and message, a failure too."""
    p, edges = scores().replace(constraint=notion), [-1.0, 0.0, 0.5, 1.0]
    table = np.array([[[1500, 60]], [[2900, 500]], [[900, 600]], [[700, 900]], [[300, 1600]]])
    table = table + np.random.default_rng(0).laplace(scale=2.0, size=(5, 2, 2))
    monkeypatch.setattr(AdditiveMechanism, "send", lambda self, values, rng: table.copy())
    moved = np.array(p.groups)
    moved[:200] = np.where(moved[:200] == "a", "b", "a")
    found = []
    for groups in (p.groups, moved):
        s = p.replace(groups=list(groups)).solve(edges=edges, seed=1)
        found.append((str(s.status), s.message, s.log, pickle.dumps(s.decision)))
    assert found[0] == found[1]
    assert found[0][0] == ("failed" if notion == BoundedGroupLoss(0.1) else "approximate")


@pytest.mark.parametrize(
    "notion", [EqualOpportunity(0.1), BoundedGroupLoss(0.9), EqualizedOddsRatio(0.5)], ids=repr
)
def test_an_empty_cell_shows_in_the_release_alone(notion, monkeypatch):
    """Neighbouring tables, one without records of a cell, and the same noisy counts: the same solution."""
    labels, score = np.tile([0, 1], 20), np.arange(40.0)
    groups = np.where(labels == 1, "a", "b").astype(object)
    groups[[0, 2, 4]] = "a"
    table = np.array([[[30.0, 20.0], [25.0, 40.0]], [[10.0, 30.0], [15.0, 20.0]]])
    monkeypatch.setattr(AdditiveMechanism, "send", lambda self, values, rng: 1000 * table)
    found, moved = [], groups.copy()
    moved[1] = "b"  # the only record with label 1
    for column in (groups, moved):
        counts = np.zeros((2, 2, 2), dtype=int)
        np.add.at(counts, ((score > 20).astype(int), (column == "b").astype(int), labels), 1)
        budget = PrivacyBudget(1.0)
        thresholds = ScorePostprocessing(score, labels, column, notion, names=("a", "b"), privacy=budget)
        problems = [(thresholds, {"edges": [20.5]})]
        if hasattr(notion, "tolerance"):
            problems.append((FairPostprocessing(counts=counts, constraint=notion, privacy=budget), {}))
        for problem, options in problems:
            s = problem.solve(seed=0, **options)
            found.append((str(s.status), s.message, repr(s), pickle.dumps(s.decision)))
            if counts[:, 1, 1].sum() == 0 and hasattr(notion, "tolerance"):
                assert s.evaluation.violations == {"undefined true positive rate": 1.0}
                with pytest.raises(fo.DeclarationError, match="no records with label 1"):
                    problem.solve("lp")
                with pytest.raises(fo.DeclarationError, match="no records with label 1"):
                    problem.replace(privacy=None)
    shown = [(status, message, decision) for status, message, _, decision in found]
    assert shown[: len(shown) // 2] == shown[len(shown) // 2 :]


def test_a_group_that_is_named_counts_without_records():
    """The only record of group c changes to group a: the decisions have thresholds for c either way."""
    score, labels = np.arange(60.0), np.tile([0, 1], 30)
    groups = np.tile(["a", "b"], 30).astype(object)
    for first in "ac":
        groups[0] = first
        p = ScorePostprocessing(
            score, labels, groups, PredictiveValues(0, 0), names=("a", "b", "c"), privacy=PrivacyBudget(1.0)
        )
        assert p.solve(edges=[29.5], seed=0).decision.groups == ("a", "b", "c")
        assert p.solve("lp").decision.groups == ("a", "b", "c")
    with pytest.raises(fo.DeclarationError, match="groups holds 'c'; the groups are a, b"):
        p.replace(names=("a", "b"))
    with pytest.raises(fo.DeclarationError, match="names: a, a, b, c are not all different"):
        p.replace(names=("a", "a", "b", "c"))


def test_groups_of_a_private_problem_are_declared():
    """The only record of group c changes to group b: names, decision and messages stay, a refusal too."""
    predictions, labels = [0, 1, 1, 0, 1, 0, 1, 0, 1], [0, 1, 0, 1, 1, 0, 1, 0, 1]
    fields = {"constraint": EqualizedOdds(0.5), "privacy": PrivacyBudget(5.0)}
    shown = []
    for groups in ("aaaabbbbc", "aaaabbbbb"):
        records = {"predictions": predictions, "groups": list(groups), "labels": labels}
        p = FairPostprocessing.from_predictions(**records, **fields, names=("a", "b", "c"))
        assert p.groups == ("a", "b", "c")
        with pytest.raises(fo.DeclarationError, match="names is missing; with privacy") as refusal:
            FairPostprocessing.from_predictions(**records, **fields)
        with pytest.raises(fo.DeclarationError, match="names is missing; with privacy") as other:
            ScorePostprocessing(predictions, labels, list(groups), **fields)
        with pytest.raises(fo.DeclarationError, match="has fewer records") as floor:
            p.replace(privacy=PrivacyBudget(5.0, floor=4))
        shown.append((str(refusal.value), str(other.value), str(floor.value), privacy_cost(p).error))
    assert shown[0] == shown[1]
    with pytest.raises(fo.DeclarationError, match="groups holds 'c'; the groups are a, b"):
        FairPostprocessing.from_predictions(
            predictions, list("aaaabbbbc"), labels, **fields, names=("a", "b")
        )


def test_a_stored_private_solution_has_its_guarantee_or_none():
    for make, options in PRIVATE.values():
        s = make().solve(seed=0, **options)
        assert pickle.loads(pickle.dumps(s)).guarantee == s.guarantee


def test_a_stored_private_solution_is_certified_by_its_problem():
    problem = postprocessing()
    stored = pickle.loads(pickle.dumps(problem.solve(seed=0)))
    with pytest.raises(fo.DeclarationError, match=r"calls problem\.certify"):
        stored.certify()
    assert problem.certify(stored.decision).how


def test_a_decision_is_a_function_of_the_release(monkeypatch, tmp_path):
    """Two tables of the same size and the same noisy counts: the same decision, rates and picture."""
    table = COUNTS + np.random.default_rng(0).laplace(scale=2.0, size=COUNTS.shape)
    monkeypatch.setattr(AdditiveMechanism, "send", lambda self, values, rng: table.copy())
    monkeypatch.setitem(matplotlib.rcParams, "svg.hashsalt", "same")
    pictures, decisions = [], []
    other = COUNTS.copy()
    other[0, 0, 0], other[1, 1, 1] = other[0, 0, 0] - 900, other[1, 1, 1] + 900
    for counts in (COUNTS, other):
        decision = (
            FairPostprocessing(counts=counts, constraint=EqualizedOdds(0.1), privacy=PrivacyBudget(1.0))
            .solve(seed=1)
            .decision
        )
        decision.plot(tmp_path / "d.svg")
        pictures.append(re.sub(r"<dc:date>.*?</dc:date>", "", (tmp_path / "d.svg").read_text()))
        decisions.append(pickle.dumps(decision))
    assert pictures[0] == pictures[1] and decisions[0] == decisions[1]


def test_the_command_line_prints_the_release_alone(tmp_path):
    from typer.testing import CliRunner

    from forcopt.cli import app

    problem = postprocessing()
    problem.save(tmp_path / "p.json")
    result = CliRunner().invoke(app, ["solve", str(tmp_path / "p.json"), "--seed", "1", "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["metrics"] == {}
    for text in secrets(problem)[1]:
        assert not prints(result.stdout, text)


def test_a_comparison_of_releases_stores_no_metric_of_the_data(tmp_path):
    pytest.importorskip("opendp")
    problem = postprocessing()
    c = fo.compare(problem, ["dp-postprocessing"], isolate=False, store=tmp_path / "runs.sqlite")
    assert c.rows[0].metrics == {} and np.isnan(c.rows[0].objective)
    raw = (tmp_path / "runs.sqlite").read_bytes()
    assert all(blob not in raw for blob in secrets(problem)[0])


@pytest.mark.parametrize("key", PRIVATE, ids="/".join)
def test_files_displays_and_reports_hold_no_number_of_the_data(key, tmp_path, monkeypatch):
    """Whatever the evaluation finds on the true groups is in no JSON, HTML or log.

    A comparison with a seed is a study of simulations, which keeps the metrics; without one it is a release.
    """
    pytest.importorskip("opendp")
    make, options = PRIVATE[key]
    problem = make()
    with monkeypatch.context() as patched:
        patched.setattr(type(problem), "evaluate", None)  # the data are looked at by the method alone
        s = problem.solve(key[1], **options)
        s.decision.save(tmp_path / "decision.json")
        c = fo.compare(problem, [key[1]], isolate=False, options={key[1]: options})
        c.to_html(tmp_path / "report.html")
    assert s.evaluation is None and s.problem is None and np.isnan(s.objective)
    found = [problem.evaluate(decision) for decision in (s.decision, c.rows[0].decision)]
    files = [(tmp_path / name).read_text() for name in ("decision.json", "report.html")]
    shown = "\n".join([*files, s._repr_html_(), c._repr_html_(), repr(c), repr(s), s.log, s.message])
    numbers = [x for e in found for x in (e.objective, *e.metrics.values(), *e.violations.values())]
    texts = {f"{x:.{digits}g}" for x in numbers for digits in (6, 8)}
    long = {t for t in texts if len(t.replace("0.", "").lstrip("0")) >= 6}  # shorter ones may coincide
    assert len(long) > 10
    assert not {t for t in long if re.search(rf"(?<![\w.]){re.escape(t)}(?![\w])", shown)}


# -- neighbouring data: whatever is not drawn is the same ----------------------------------------------------


def moved(counts, group, to):
    """A person with prediction 0 and label 1 changes the group."""
    other = np.array(counts)
    other[0, group, 1] -= 1
    other[0, to, 1] += 1
    return other


def of_counts(counts):
    return FairPostprocessing(counts=counts, constraint=EqualizedOdds(0.3), privacy=PrivacyBudget(1.0))


def of_predictions(groups):
    predictions, labels = [0, 1, 1, 0, 1, 0, 1, 0, 0], [0, 1, 0, 1, 1, 0, 1, 0, 1]
    fields = {"constraint": EqualizedOdds(0.3), "privacy": PrivacyBudget(1.0), "names": ("a", "b", "c")}
    return FairPostprocessing.from_predictions(predictions, list(groups), labels, **fields)


def of_scores(groups):
    fields = {"constraint": EqualizedOdds(0.3), "privacy": PrivacyBudget(1.0), "names": ("a", "b", "c")}
    return ScorePostprocessing(np.arange(40.0) % 7, np.arange(40) // 2 % 2, list(groups), **fields)


def of_records(groups):
    return FairClassification(
        features=np.arange(40.0)[:, None] % 3,
        labels=np.arange(40) % 2,
        groups=list(groups),
        constraint=DemographicParity(0.2),
        hypotheses=Finite(np.stack([np.arange(40) % 3 > c for c in (-1, 0, 1, 2)]).astype(int)),
        privacy=PrivacyBudget(500.0, 1e-6, floor=4),
    )


EMPTY = np.array([[[9, 4], [8, 1]], [[3, 7], [6, 0]]])
"""Group 1 has one record with label 1."""

NEIGHBOURS = {
    ("FairPostprocessing", "dp-postprocessing"): [
        (of_counts(COUNTS), of_counts(moved(COUNTS, 0, 1)), {}),
        (of_counts(EMPTY), of_counts(moved(EMPTY, 1, 0)), {}),  # a cell becomes empty
        (of_predictions("aabbaabbc"), of_predictions("aabbaabba"), {}),  # a group vanishes
    ],
    ("ScorePostprocessing", "dp-thresholds"): [
        (of_scores("ab" * 20), of_scores("bb" + "ab" * 19), {"edges": [1.5, 3.5, 5.5]}),
        (of_scores("c" + "b" * 39), of_scores("a" + "b" * 39), {"edges": [1.5, 3.5, 5.5]}),
    ],
    ("FairClassification", "dp-oracle-learner"): [
        (of_records("aabb" * 10), of_records("babb" + "aabb" * 9), {"rounds": 3, "allow_vacuous": True}),
    ],
}
"""For each private method pairs of problems in which one person has another group, and options."""
CASES = [(key, *pair) for key, pairs in NEIGHBOURS.items() for pair in pairs]
RELEASES = {"large": 1000.0, "small": 3.0, "empty": -5.0}
"""The noisy numbers: with the last one, no group has records, and the methods fail."""


@pytest.fixture(params=RELEASES)
def released(request, monkeypatch):
    """The same release for all data of one shape: then nothing else may differ."""

    def numbers(self, values, rng):
        drawn = np.random.default_rng(7).random(np.shape(values))
        return RELEASES[request.param] * (1 + drawn)

    monkeypatch.setattr(AdditiveMechanism, "send", numbers)
    monkeypatch.setattr(ExponentialMechanism, "send", lambda self, values, rng: len(values) // 2)
    monkeypatch.setitem(matplotlib.rcParams, "svg.hashsalt", "same")


def timeless(text):
    """A text without what the clock, the memory and the random name of a private problem decide."""
    text = re.sub(r"<dc:date>.*?</dc:date>", "", text)
    text = re.sub(r'("(?:seconds|peak_memory|build_seconds|solve_seconds)": )[^,\n]*', r"\1", text)
    text = re.sub(r"(seconds(?:</t[hd]><td[^>]*>|\s+))[\d.e-]+", r"\1", text)
    text = re.sub(r": [\d.e-]+ s>", ": s>", text)
    return re.sub(r"(?<![0-9a-f])[0-9a-f]{16}(?![0-9a-f])", "", text)


def fields(s):
    """All public attributes of a solution, but the time and what belongs to whoever simulates."""
    hidden = {"seconds"} if s.problem is None else {"seconds", "problem", "evaluation", "objective", "gap"}
    names = {name for name in dir(s) if not name.startswith("_") and not callable(getattr(s, name))} - hidden
    assert {"status", "message", "reason", "bound", "guarantee", "log", "trace", "iterations"} <= names
    state = {**s.__getstate__(), "seconds": 0.0}
    shown = {name: repr(getattr(s, name)) for name in sorted(names)}
    return shown, pickle.dumps(state), timeless(repr(s)), timeless(s._repr_html_())


def error_of(run):
    """The type and the text of the error."""
    with pytest.raises(Exception) as raised:
        run()
    return type(raised.value).__name__, str(raised.value)


def test_every_private_method_has_neighbours():
    assert set(NEIGHBOURS) == set(PRIVATE)


@pytest.mark.parametrize(("key", "one", "other", "options"), CASES)
@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.filterwarnings("error")
def test_the_solutions_of_neighbours_differ_in_the_release_alone(key, one, other, options, seed, released):
    found = []
    for problem in (one, other):
        s = problem.solve(key[1], seed=seed, **options)
        found.append((fields(s), error_of(s.certify), problem.method().name, problem.is_private))
    assert found[0] == found[1]


FLAGS = [
    [],
    ["--json"],
    ["--seed", "1"],
    ["--seed", "1", "--json"],
    ["--plot", "drawn.svg"],
    ["--certify"],
    ["--certify", "--json", "--seed", "1"],
    ["--time-limit", "60"],
    ["--memory-limit", "8 GB"],
    ["--log"],
    ["--gap", "0.1"],
    ["--threads", "1"],
    ["--backend", "highs"],
    ["-v"],
    ["-q", "--json"],
    ["--option", "no=1"],
]


@pytest.mark.parametrize(("key", "one", "other", "options"), CASES)
def test_the_commands_on_neighbours_differ_in_the_release_alone(
    key, one, other, options, released, tmp_path, monkeypatch
):
    """Output, error output, exit code and files of ``forcopt solve`` with each of its flags."""
    import typer
    from typer.testing import CliRunner

    from forcopt.cli import app

    solve = next(c for c in typer.main.get_command(app).commands.values() if c.name == "solve")
    known = {name for parameter in solve.params for name in parameter.opts if name.startswith("--")}
    assert known - {"--option", "--method"} <= {flag for flags in FLAGS for flag in flags}
    own = [f"--option={name}={json.dumps(value)}" for name, value in options.items()]
    for flags in FLAGS:
        found = []
        for name, problem in (("one", one), ("other", other)):
            (tmp_path / name).mkdir(exist_ok=True)
            monkeypatch.chdir(tmp_path / name)
            problem.save("p.json")
            result = CliRunner().invoke(app, ["solve", "p.json", *own, *flags])
            drawn = Path("drawn.svg")
            picture = timeless(drawn.read_text()) if drawn.exists() else ""
            found.append((result.exit_code, timeless(result.stdout), timeless(result.stderr), picture))
        assert found[0] == found[1], flags
        assert found[0][0] == 2 if "--certify" in flags else found[0][0] in (0, 1, 2)


@pytest.mark.parametrize(("key", "one", "other", "options"), CASES)
def test_the_studies_of_neighbours_differ_in_the_release_alone(key, one, other, options, released, tmp_path):
    """Rows, tables, pages, JSON and store; the declaration is in none of them."""
    from forcopt.arrays import plain

    found = []
    for name, problem in (("one", one), ("other", other)):
        store = tmp_path / f"{name}.sqlite"
        fixed = {"isolate": False, "store": store}
        a = fo.compare(problem, options={key[1]: options}, **fixed)
        b = fo.sweep(problem, {option: [value] for option, value in options.items()}, **fixed)
        assert [row.method for row in a.rows] == [key[1]] == [row.method for row in b.rows]
        with sqlite3.connect(store) as base:
            dump = [
                [value for column, value in zip(names, row, strict=True) if column not in VARYING]
                for table in ("runs", "problems")
                for cursor in [base.execute(f"SELECT * FROM {table}")]
                for names in [[c[0] for c in cursor.description]]
                for row in cursor
            ]
        shown = []
        for c in (a, b, type(a).read(store)):
            c.to_html(tmp_path / "page.html")
            c.to_csv(tmp_path / "table.csv")
            assert not c.problems
            shown.append(timeless(json.dumps([plain({**vars(r), **STILL}) for r in c.rows])))
            page = (tmp_path / "page.html").read_text()
            for secret in declared_numbers(problem):
                assert secret not in page and secret not in store.read_bytes().decode("latin-1")
        found.append((dump, shown))
    assert found[0] == found[1]


VARYING = {"key", "fingerprint", "seconds", "peak_memory", "build_seconds", "solve_seconds"}
STILL = {"seconds": 0, "peak_memory": 0, "build_seconds": 0, "solve_seconds": 0, "fingerprint": ""}


def declared_numbers(problem):
    """The private column of a problem as its declaration writes it."""
    data = problem.to_dict()
    column = data["counts"] if "counts" in data else data["groups"]
    return [json.dumps(column), json.dumps(column, separators=(",", ":")), json.dumps(column, indent=1)]


# -- mechanisms ----------------------------------------------------------------------------------------------


TABLE = pd.DataFrame({"age": [20.0, 30.0, 40.0], "town": ["a", "a", "b"]})
COUNTED = AdditiveMechanism(DiscreteLaplace(scale=2.0))
MECHANISM = AdditiveMechanism(Laplace(scale=1.0))
MECHANISMS = {
    "AdditiveMechanism": [
        *[
            (AdditiveMechanism(noise), [5, 6], [5, 7])
            for noise in (DiscreteLaplace(scale=2.0), Laplace(scale=1))
        ],
        (AdditiveMechanism(DiscreteGaussian(scale=2.0)), [5], [0]),
        (AdditiveMechanism(TabulatedNoise([0.25, 0.5, 0.25])), [5], [6]),
        (AdditiveMechanism(Gaussian(scale=2.0), norm="linf", dimension=2), [0.5, 6], [0, 7]),
        (AdditiveMechanism(GeneralizedGaussian(shape=4, scale=20.0)), [5.0], [6.0]),  # refused, if securely
        (AdditiveMechanism(BoundedNoise(power=2.0, radius=4.0)), [5.0], [6.0]),
        (AdditiveMechanism(Staircase(epsilon=1.0)), [5.0], [6.0]),
    ],
    "SharedNoise": [(SharedNoise(DiscreteLaplace(scale=2.0), servers=3), [5, 6], [5, 7])],
    "ExponentialMechanism": [(ExponentialMechanism(epsilon=1.0), [0.5, 0.1], [0.5, 1.1])],
    "RandomizedResponse": [(RandomizedResponse(1.0, groups=3), [0, 1, 2, 1], [0, 1, 1, 1])],
    "Nested": [(Nested(AdditiveMechanism(DiscreteLaplace(scale=2.0))), [[9, 4, 1]], [[9, 4, 0]])],
    "Dawa": [(Dawa(epsilon=1.0, order="as given"), [9, 4, 1], [9, 4, 0])],
    "PostProcessed": [(COUNTED >> np.abs, [3], [2])],
    "Both": [(COUNTED & COUNTED, [3], [2])],
    "Sampled": [  # refused: a query of a table with a design draws the sample
        (MECHANISM.on(design, population), TABLE, TABLE[:2])
        for design, population in (
            (PoissonSample(rate=0.3), None),
            (RandomizedRounding(rate=0.3), None),
            (ProportionalAllocation(by="town", rate=0.3), None),
            (ClusterSample(by="town", chosen=1), [2, 1]),
            (SimpleRandomSample(size=2), 3),
            (StratifiedSample(by="town", sizes={"a": 1, "b": 1}), {"a": 2, "b": 1}),
        )
    ],
}
"""Mechanisms by class, each with two neighbouring inputs."""


def concrete(base):
    """All classes of the library below `base` that can be made."""
    below = {c for child in base.__subclasses__() for c in concrete(child)}
    own = base.__module__.startswith("forcopt.") and not inspect.isabstract(base)
    return below | ({base} if own else set())


def test_every_mechanism_noise_and_design_has_neighbours():
    for module in pkgutil.walk_packages(forcopt.models.__path__, "forcopt.models."):
        importlib.import_module(module.name)
    assert {c.__name__ for c in concrete(Channel)} == set(MECHANISMS)
    cases = [mechanism for pairs in MECHANISMS.values() for mechanism, _, _ in pairs]
    noises = {type(m.noise).__name__ for m in cases if isinstance(m, AdditiveMechanism)}
    assert noises == {c.__name__ for c in concrete(Noise)}
    designs = {type(m.design).__name__ for m in cases if hasattr(m, "design")}
    assert designs == {c.__name__ for c in concrete(Design)}


@pytest.mark.parametrize(
    ("mechanism", "one", "other"),
    [
        pytest.param(*case, id=f"{name}-{i}")
        for name, cases in MECHANISMS.items()
        for i, case in enumerate(cases)
    ],
)
@pytest.mark.parametrize("rng", [Secure, lambda: Simulated(1)], ids=["secure", "simulated"])
@pytest.mark.filterwarnings("error")
def test_the_releases_of_neighbours_differ_in_the_drawn_values_alone(mechanism, one, other, rng):
    """Shapes, types, descriptions and deviations; and the refusal, if there is one."""
    pytest.importorskip("opendp")
    found = []
    for data in (one, other):
        try:
            r = mechanism.release(data if hasattr(data, "columns") else np.asarray(data), rng())
        except fo.DeclarationError as refusal:
            found.append(str(refusal))
            continue
        parts = r.values if isinstance(r.values, tuple) else (r.values,)
        known = {name: value for name, value in r.to_dict().items() if name != "values"}
        shapes = [(type(p), np.shape(p), np.asarray(p).dtype) for p in parts]
        text = re.sub(r":.*", "", repr(r), flags=re.DOTALL)
        found.append((known, shapes, text, sorted(vars(r)), len(np.atleast_1d(r.values))))
    assert found[0] == found[1]


def test_a_measured_hierarchy_keeps_its_tree_alone():
    """A unit loses its last person: everything but the noisy counts stays, in a file as well."""
    found = []
    for counts in ([5, 0, 2, 7, 1, 1], [5, 0, 2, 7, 2, 0]):
        p = measure(Hierarchy.homogeneous([2, 3], counts=counts), epsilon=[0.5, 0.5, 1.0])
        data = p.to_dict()
        shapes = [np.shape(level) for level in data.pop("noisy")]
        found.append((shapes, json.dumps(data), p.hierarchy.counts))
    assert found[0] == found[1] and found[0][2] is None
