"""No private solution holds the data: pickled, printed, saved, or in a comparison's store."""

import json
import pickle
import re

import matplotlib
import numpy as np
import pytest

import forcopt as fo
from forcopt.fairness import (
    BoundedGroupLoss,
    DemographicParity,
    EqualizedOdds,
    EqualizedOddsRatio,
    EqualOpportunity,
    PredictiveValues,
)
from forcopt.models import FairClassification, FairPostprocessing, ScorePostprocessing
from forcopt.models.fair_classification import Finite
from forcopt.privacy import AdditiveMechanism, PrivacyBudget
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
    return ScorePostprocessing(score, labels, groups, EqualizedOdds(0.05), privacy=PrivacyBudget(1.0))


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
    problem, found = make(), []
    evaluate = type(problem).evaluate

    def recorded(self, decision):
        found.append(evaluate(self, decision))
        return found[-1]

    monkeypatch.setattr(type(problem), "evaluate", recorded)
    s = problem.solve(key[1], **options)
    s.decision.save(tmp_path / "decision.json")
    c = fo.compare(problem, [key[1]], isolate=False, options={key[1]: options})
    c.to_html(tmp_path / "report.html")
    files = [(tmp_path / name).read_text() for name in ("decision.json", "report.html")]
    shown = "\n".join([*files, s._repr_html_(), c._repr_html_(), repr(c), repr(s), s.log, s.message])
    numbers = [x for e in found for x in (e.objective, *e.metrics.values(), *e.violations.values())]
    texts = {f"{x:.{digits}g}" for x in numbers for digits in (6, 8)}
    long = {t for t in texts if len(t.replace("0.", "").lstrip("0")) >= 6}  # shorter ones may coincide
    assert len(found) == 2 and len(long) > 10
    assert not {t for t in long if re.search(rf"(?<![\w.]){re.escape(t)}(?![\w])", shown)}
