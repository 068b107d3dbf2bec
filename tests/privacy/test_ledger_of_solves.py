"""Private solves spend from one ledger."""

from functools import partial

import numpy as np
import pytest
from typer.testing import CliRunner

import forcopt as fo
from forcopt.cli import app
from forcopt.data import Hierarchy
from forcopt.fairness import DemographicParity, EqualizedOdds
from forcopt.learning import Thresholds
from forcopt.models import CountingQueries, FairClassification, FairPostprocessing
from forcopt.models.census_release import measure
from forcopt.models.fair_classification import FairClassifier
from forcopt.privacy import ZCDP, ApproximateDP, Categories, Ledger, PrivacyBudget, PureDP, Schema, Table
from forcopt.privacy.ledger import BudgetSpentError

COUNTS = 100 * np.array([[[36, 4], [9, 5]], [[4, 16], [6, 20]]])


def table(epsilon=1.0, counts=COUNTS):
    return FairPostprocessing(counts=counts, constraint=EqualizedOdds(0.1), privacy=PrivacyBudget(epsilon))


def learning(epsilon=1.0):
    rng = np.random.default_rng(0)
    a = np.arange(400) % 2
    x = rng.integers(0, 4, 400) + a
    y = (x + rng.normal(size=400) > 2).astype(int)
    privacy = PrivacyBudget(epsilon, delta=1e-6, floor=30)
    return FairClassification(
        x[:, None], y, a, DemographicParity(0.1), hypotheses=Thresholds(), privacy=privacy
    )


@pytest.mark.parametrize("seed", [None, 0])
def test_solves_spend_until_the_budget_is_empty(seed):
    account = Ledger(PureDP(2.5))
    for spent in (1.0, 2.0):
        assert table().solve(ledger=account, seed=seed).status == "approximate"
        assert account.spent() == spent
    with pytest.raises(BudgetSpentError, match="of which 2 is spent; 'dp-postprocessing' takes 1"):
        table().solve(ledger=account, seed=seed)
    assert account.spent() == 2.0
    assert table(0.5).solve(ledger=account, seed=seed).decision is not None
    assert account.remaining() == 0.0


def test_a_run_that_fails_spends_too():
    account = Ledger(PureDP(1.0))
    few = np.array([[[1, 0], [0, 1]], [[0, 1], [1, 0]]])
    found = [table(0.01, few).solve(ledger=account, seed=seed).status for seed in range(20)]
    assert "failed" in found
    assert account.spent() == pytest.approx(0.2)


def test_a_run_that_is_refused_before_it_looks_spends_nothing():
    account = Ledger(PureDP(1.0))
    with pytest.raises(fo.DeclarationError, match="beta"):
        table().solve(ledger=account, beta=2.0)
    with pytest.raises(fo.DeclarationError, match="vacuous"):
        learning().solve(ledger=account)
    assert account.spent() == 0.0 and account.entries == ()


def test_methods_share_a_ledger():
    account = Ledger(ApproximateDP(2.5, 1e-5))
    table().solve(ledger=account, seed=0)
    learning().solve(ledger=account, seed=0, allow_vacuous=True, rounds=2, time_limit=0.0)
    assert [entry.name for entry in account.entries] == ["dp-postprocessing", "dp-oracle-learner"]
    assert 1.9 < account.spent() <= 2.0 + 1e-6
    with pytest.raises(BudgetSpentError, match="would take more than is left"):
        learning().solve(ledger=account, seed=0, allow_vacuous=True, rounds=2)
    with pytest.raises(BudgetSpentError, match="no bound in the units of PureDP"):
        learning().solve(ledger=Ledger(PureDP(9.0)), seed=0, allow_vacuous=True, rounds=2)


def test_the_message_holds_nothing_of_the_data():
    account = Ledger(PureDP(0.5))
    with pytest.raises(BudgetSpentError) as first:
        table().solve(ledger=account)
    with pytest.raises(BudgetSpentError) as second:
        table(counts=2 * COUNTS).solve(ledger=account)
    assert str(first.value) == str(second.value)


def test_methods_that_are_not_private_take_no_ledger():
    with pytest.raises(fo.ForcoptError, match="ledger"):
        table().solve("lp", ledger=Ledger(PureDP(1.0)))


def test_an_estimator_spends_from_the_file_of_a_ledger(tmp_path):
    """A copy of an object would spend from a ledger of its own; copies of a name spend from one file."""
    clone = pytest.importorskip("sklearn").clone
    p, path = learning(), str(tmp_path / "ledger.json")
    clf = FairClassifier(p.constraint, Thresholds(), options={"ledger": Ledger(PureDP(1.0))})
    with pytest.raises(fo.DeclarationError, match="ledger of its own"):
        clf.fit(p.features, p.labels, sensitive_features=np.arange(400) % 2)
    Ledger(ApproximateDP(2.5, 1e-5), path=path)
    options = {"ledger": path, "rounds": 2, "allow_vacuous": True}
    clf = FairClassifier(p.constraint, Thresholds(), privacy=p.privacy, options=options)
    for _ in range(2):
        clone(clf).fit(p.features, p.labels, sensitive_features=np.arange(400) % 2)
    with pytest.raises(BudgetSpentError):
        clone(clf).fit(p.features, p.labels, sensitive_features=np.arange(400) % 2)


def test_the_command_spends_from_the_file_of_a_ledger(tmp_path):
    path, problem = str(tmp_path / "ledger.json"), str(tmp_path / "p.json")
    table().save(problem)
    Ledger(PureDP(1.5), path=path)
    run = partial(CliRunner().invoke, app)
    assert run(["solve", problem, "--option", f"ledger={path}"]).exit_code == 0
    assert Ledger(path=path).spent() == 1.0
    again, none = run(["solve", problem, "--option", f"ledger={path}"]), run(["solve", problem])
    assert again.exit_code == none.exit_code == 2
    assert (
        "of which 1 is spent" in again.output + again.stderr and "ledger is None" in none.output + none.stderr
    )


def test_one_budget_over_a_census_and_counting_queries():
    """Both spend before they look at the counts; a refused one draws nothing."""
    account = Ledger(PureDP(2.0))
    towns = Schema(town=Categories("a", "b", "c"))
    people = Table({"town": list("abc")}, towns, neighbours="substitute")
    tree, counts = Hierarchy(parents=([0, 0], [0, 0, 1])), people.group_by("town").count()
    measure(counts, epsilon=[0.2, 0.4, 0.4], tree=tree, ledger=account)
    assert account.remaining() == 1.0 and account.entries[0].neighbours == "substitute"
    queries = CountingQueries(queries=3, epsilon=0.75, whole=True)
    noisy = counts >> queries.mechanism(queries.solve("laplace").decision)
    noisy.release(account)
    assert account.remaining() == pytest.approx(0.25)
    with pytest.raises(BudgetSpentError, match="'count by town' takes"):
        noisy.release(account)
    with pytest.raises(BudgetSpentError, match="'census measurement' takes 1"):
        measure(counts, epsilon=[0.2, 0.4, 0.4], tree=tree, ledger=account)
    concentrated = Ledger(ZCDP(0.5))
    measure(counts, rho=[0.1, 0.1, 0.3], tree=tree, ledger=concentrated)
    assert concentrated.remaining() == 0.0
    with pytest.raises(fo.DeclarationError, match="a study with a seed, without a ledger"):
        measure(tree.replace(counts=[1, 1, 1]), epsilon=[0.2, 0.4, 0.4], ledger=account)
