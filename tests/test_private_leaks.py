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
from forcopt.models import (
    CountingQueries,
    FairClassification,
    FairPostprocessing,
    LinearQueries,
    PrivateMechanism,
    ScorePostprocessing,
)
from forcopt.models.census_release import measure
from forcopt.models.census_release.measurement import UnitCounts
from forcopt.models.fair_classification import Finite
from forcopt.models.fair_decisions import Dawa
from forcopt.models.fair_decisions.coverage import Nested
from forcopt.models.fair_postprocessing.dp_postprocessing import privacy_cost
from forcopt.models.secure_sum import SharedNoise
from forcopt.privacy import (
    AdditiveMechanism,
    ApproximateDP,
    BoundedNoise,
    BudgetSpentError,
    Categories,
    Channel,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    GeneralizedGaussian,
    Laplace,
    Ledger,
    Noise,
    PrivacyBudget,
    PureDP,
    RandomizedResponse,
    Schema,
    Secure,
    Simulated,
    Table,
    TabulatedNoise,
    audit,
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


def rich(path=None):
    """A new ledger that every release finds room in."""
    if path is not None:
        path.unlink(missing_ok=True)
    return Ledger(ApproximateDP(1e6, 1e-3), path=path)


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
    s = problem.solve(key[1], seed=seed, ledger=rich(), **options)
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
    monkeypatch.setattr(AdditiveMechanism, "_send", lambda self, values, rng: table.copy())
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
    monkeypatch.setattr(AdditiveMechanism, "_send", lambda self, values, rng: 1000 * table)
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
    monkeypatch.setattr(AdditiveMechanism, "_send", lambda self, values, rng: table.copy())
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
    rich(tmp_path / "ledger.json")
    options = {"dp-postprocessing": {"ledger": str(tmp_path / "ledger.json")}}
    c = fo.compare(
        problem, ["dp-postprocessing"], isolate=False, store=tmp_path / "runs.sqlite", options=options
    )
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
        s = problem.solve(key[1], ledger=rich(), **options)
        s.decision.save(tmp_path / "decision.json")
        own = {key[1]: {**options, "ledger": rich()}}
        c = fo.compare(problem, [key[1]], isolate=False, options=own)
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

    monkeypatch.setattr(AdditiveMechanism, "_send", numbers)
    monkeypatch.setattr(ExponentialMechanism, "_send", lambda self, values, rng: len(values) // 2)
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
        s = problem.solve(key[1], seed=seed, ledger=rich(), **options)
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
    own.append("--option=ledger=ledger.json")
    for flags in FLAGS:
        found = []
        for name, problem in (("one", one), ("other", other)):
            (tmp_path / name).mkdir(exist_ok=True)
            monkeypatch.chdir(tmp_path / name)
            problem.save("p.json")
            rich(Path("ledger.json"))
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

    found, path = [], str(tmp_path / "ledger.json")
    for name, problem in (("one", one), ("other", other)):
        store = tmp_path / f"{name}.sqlite"
        fixed = {"isolate": False, "store": store}
        rich(Path(path))
        a = fo.compare(problem, options={key[1]: {**options, "ledger": path}}, **fixed)
        rich(Path(path))
        b = fo.sweep(
            problem, {option: [value] for option, value in (options | {"ledger": path}).items()}, **fixed
        )
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


CHOICES = PrivateMechanism.counts(6, 1, epsilon=1.0)
CHOSEN = CHOICES.mechanism(CHOICES.solve().decision)
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
    ],
    "SharedNoise": [(SharedNoise(DiscreteLaplace(scale=2.0), servers=3), [5, 6], [5, 7])],
    "ExponentialMechanism": [(ExponentialMechanism(epsilon=1.0), [0.5, 0.1], [0.5, 1.1])],
    "ChosenOutput": [(CHOSEN, [3], [2])],
    "RandomizedResponse": [(RandomizedResponse(1.0, groups=3), [0, 1, 2, 1], [0, 1, 1, 1])],
    "Nested": [(Nested(AdditiveMechanism(DiscreteLaplace(scale=2.0))), [[9, 4, 1]], [[9, 4, 0]])],
    "Dawa": [(Dawa(epsilon=1.0, order="as given"), [9, 4, 1], [9, 4, 0])],
}
"""Mechanisms by class, each with two neighbouring inputs."""


def concrete(base):
    """All classes of the library below `base` that can be made."""
    below = {c for child in base.__subclasses__() for c in concrete(child)}
    own = base.__module__.startswith("forcopt.") and not inspect.isabstract(base)
    return below | ({base} if own else set())


def test_every_mechanism_and_noise_has_neighbours():
    for module in pkgutil.walk_packages(forcopt.models.__path__, "forcopt.models."):
        importlib.import_module(module.name)
    assert {c.__name__ for c in concrete(Channel)} == set(MECHANISMS)
    cases = [mechanism for pairs in MECHANISMS.values() for mechanism, _, _ in pairs]
    noises = {type(m.noise).__name__ for m in cases if isinstance(m, AdditiveMechanism)}
    assert noises == {c.__name__ for c in concrete(Noise)}


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
def test_the_draws_for_neighbours_differ_in_the_drawn_values_alone(mechanism, one, other, rng):
    """Shapes, types and deviations; and the refusal, if there is one."""
    pytest.importorskip("opendp")
    found = []
    for data in (one, other):
        try:
            out = mechanism._send(np.asarray(data), rng())
        except fo.DeclarationError as refusal:
            found.append(str(refusal))
            continue
        found.append((type(out), np.shape(out), np.asarray(out).dtype, mechanism.total_variation(out)))
    assert found[0] == found[1]


def test_no_mechanism_sends_bare_numbers_but_in_a_simulation():
    """Whatever is public about a mechanism makes no draw of numbers that is not marked as a study."""
    for mechanism, one, _ in (case for cases in MECHANISMS.values() for case in cases):
        public = {name for name in dir(mechanism) if not name.startswith("_")}
        assert not public & {"release", "send", "drawn", "sample", "__call__"}
        with pytest.raises(fo.DeclarationError, match="seed is None"):
            mechanism.simulate(one, None)
        study = mechanism.simulate(one, 1)
        assert study.simulated and "not private" in repr(study)


LEAVES = tuple("abcdef")
TREE = Hierarchy.homogeneous([2, 3]).replace(names=(("all",), ("left", "right"), LEAVES))


def persons(leaves, relation="add_remove", **fields):
    schema = Schema(tract=Categories(*LEAVES), sex=Categories("f", "m"))
    frame = {"tract": list(leaves), "sex": list("fm" * len(leaves))[: len(leaves)], "id": range(len(leaves))}
    return Table(frame, schema, neighbours=relation, **fields)


@pytest.mark.parametrize("relation", ["add_remove", "substitute"])
@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("budget", [{"epsilon": [0.5, 0.5, 1.0]}, {"rho": [0.1, 0.1, 0.3]}], ids=str)
def test_a_measured_tree_holds_the_noisy_counts_alone(relation, seed, budget):
    """A unit loses its last person: everything but the noisy counts stays, in a file as well."""
    found = []
    for leaves in ("aabbbf", "aabbb" if relation == "add_remove" else "aabbba"):
        query = persons(leaves, relation).group_by("tract", "sex").count()
        ledger = Ledger(ApproximateDP(50.0, 1e-3))
        p = measure(query, **budget, tree=TREE, ledger=ledger, seed=seed)
        data = p.to_dict()
        shapes = [np.shape(level) for level in data.pop("noisy")]
        data["source"]["entry"].pop("time")
        assert data["source"]["simulated"] is (seed is not None)
        found.append(
            (shapes, json.dumps(data), p.hierarchy.counts, repr(ledger.profile()), p.source["privacy"])
        )
    assert found[0] == found[1] and found[0][2] is None


def test_a_measurement_of_a_tree_passes_its_audit():
    """2,000 runs on two tables that differ in one person, at 99.9 %; a third of the noise is found."""
    places = tuple((level, slice(0, 1)) for level in range(3))
    for relation, other in (("add_remove", "aabbb"), ("substitute", "aabbba")):
        made = {}
        for leaves in ("aabbbf", other):
            query = persons(leaves, relation).group_by("tract").count()
            asked = UnitCounts(query.statistic, np.arange(6), TREE, np.ones((1, 1)), places)
            rows = query._table._drawn(Simulated(0))
            made[leaves] = [(part, part.answer(rows)) for part in asked.parts]
        for lie in (1.0, 3.0):
            noises = [
                DiscreteLaplace.calibrated(PureDP(lie * budget)).mechanism(part, 1)
                for budget, (part, _) in zip((0.4, 0.4, 1.2), made[other], strict=True)
            ]

            def noisy(leaves, rng, made=made, noises=noises):
                pairs = zip(noises, made[leaves], strict=True)
                return tuple(noise._send(exact, rng) for noise, (_, exact) in pairs)

            assert audit(noisy, ("aabbbf", other), 2.0, 2000).passed is (lie == 1.0)


# -- everything that releases takes a ledger, and marks what is simulated ------------------------------------


def of_query(mechanism, query=lambda t: t.group_by("tract").count()):
    def release(ledger, seed):
        measured = query(persons("aabbbf")) >> mechanism
        r = measured.release(ledger, None if seed is None else Simulated(seed))
        return r.simulated, r.profile.epsilon(0.1), r.entry

    return release


def of_solve(make, options):
    def release(ledger, seed):
        s = make().solve(ledger=ledger, seed=seed, **options)
        assert s.private and "private" in s.message
        return "a simulation with a seed" in s.message, s.profile.epsilon(0.1), ledger and ledger.entries[-1]

    return release


def of_tree(ledger, seed):
    p = measure(persons("aabbbf").group_by("tract").count(), [1.0] * 3, tree=TREE, ledger=ledger, seed=seed)
    return p.source["simulated"], p.source["privacy"]["epsilon"], p.source["entry"]


def of_reports(ledger, seed):
    channel = RandomizedResponse(1.0, groups=3)
    channel.privatize([0, 1, 2], 3, seed, ledger=ledger)
    return seed is not None, channel.profile().epsilon(0.1), ledger and ledger.entries[-1]


COUNTING = CountingQueries(queries=6, epsilon=1.0, delta=0.02, whole=True)
LINEAR = LinearQueries.prefix(6, epsilon=1.0, delta=0.02)
PREFIXES = LINEAR.solve("square-root").decision
RELEASING = {
    "measure": of_tree,
    "CountingQueries": of_query(COUNTING.mechanism(COUNTING.solve("laplace").decision)),
    "LinearQueries": of_query(
        LINEAR.mechanism(PREFIXES), lambda t: t.group_by("tract").linear(PREFIXES.right)
    ),
    "PrivateMechanism": of_query(CHOSEN, lambda t: t.count()),
    "SharedNoise": of_query(SharedNoise(DiscreteLaplace(scale=2.0), servers=3)),
    "Dawa": of_query(Dawa(epsilon=1.0, order="as given")),
    "RandomizedResponse": of_reports,
    **{f"{a}.{b}": of_solve(*how) for (a, b), how in PRIVATE.items()},
}


@pytest.mark.parametrize("name", RELEASING)
def test_whatever_releases_spends_first_and_marks_simulations(name):
    pytest.importorskip("opendp")
    release = RELEASING[name]
    with pytest.raises(fo.DeclarationError, match="ledger is None"):
        release(None, None)
    for seed in (None, 1):
        simulated, epsilon, entry = release(Ledger(ApproximateDP(1000.0, 0.1)), seed)
        assert simulated is (seed is not None) and 0 < epsilon < 1000 and entry is not None
        poor = Ledger(PureDP(1e-3))
        with pytest.raises(BudgetSpentError):
            release(poor, seed)
        assert poor.entries == ()
    assert release(None, 1)[0]


def test_an_allocation_for_private_data_looks_at_none():
    """Its sizes and deviations are public, so that it has nothing to release and no method is private."""
    assert not any(m.private for m in fo.models.PrivateAllocation.methods.values())
