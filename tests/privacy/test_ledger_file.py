"""A ledger in a file: whole after a kill, shared by processes, and its profiles read back as they were."""

import contextlib
import copy
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from forcopt.errors import DeclarationError
from forcopt.privacy import (
    ZCDP,
    AdditiveMechanism,
    ApproximateDP,
    BudgetSpentError,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Ledger,
    PoissonSample,
    Profile,
    PureDP,
    SimpleRandomSample,
)

SPENDER = """
import sys
from forcopt.privacy import Ledger, Profile, PureDP
ledger = Ledger(PureDP(1e6), path=sys.argv[1])
while True:
    print(ledger.spend(Profile.pure(1.0)).number, flush=True)
"""


def test_a_kill_leaves_a_whole_ledger(tmp_path):
    """Each number that the program printed is in the file, and at most one more."""
    path = tmp_path / "ledger.json"
    child = subprocess.Popen([sys.executable, "-c", SPENDER, str(path)], stdout=subprocess.PIPE, text=True)
    printed = [int(child.stdout.readline()) for _ in range(20)]
    time.sleep(0.01)
    os.kill(child.pid, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
    printed += [int(line) for line in child.stdout.read().split()]
    child.wait()
    ledger = Ledger(path=path)
    assert len(ledger.entries) - len(printed) in (0, 1) and printed == list(range(1, len(printed) + 1))
    assert ledger.spent() == len(ledger.entries)
    assert ledger.spend(Profile.pure(1.0)).number == len(ledger.entries)


@pytest.mark.parametrize("files", [4, 0])
def test_ledgers_do_not_overspend(files, tmp_path):
    """Several of one file, and one in memory."""
    count, path = AdditiveMechanism(DiscreteGaussian(scale=20.0)), tmp_path / "l.json" if files else None
    ledgers = [Ledger(ApproximateDP(1.0, 1e-6), path=path) for _ in range(files or 1)]

    def spend(i):
        with contextlib.suppress(BudgetSpentError):
            return ledgers[i % len(ledgers)].spend(count).number

    with ThreadPoolExecutor(6) as pool:
        found = sorted(number for number in pool.map(spend, range(36)) if number)
    assert found == list(range(1, len(found) + 1))
    assert all(0.9 < ledger.spent() <= 1.0 for ledger in ledgers)


def test_a_ledger_is_one_whatever_its_name_and_its_copies(tmp_path, monkeypatch):
    """A link is the file, a path stays where it was; what would spend a budget twice is refused."""
    path, other = tmp_path / "ledger.json", tmp_path / "other.json"
    monkeypatch.chdir(tmp_path)
    ledger = Ledger(PureDP(1.0), path="ledger.json")
    old = path.read_bytes()
    other.symlink_to(path)
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    for one in (ledger, Ledger(path=other), pickle.loads(pickle.dumps(ledger)), copy.deepcopy(ledger)):
        one.spend(Profile.pure(0.25))
    assert ledger.spent() == 1.0 == Ledger(path=path).spent() and other.is_symlink()
    path.write_bytes(old)
    with pytest.raises(DeclarationError, match="lacks what it had; it was replaced"):
        ledger.spend(Profile.pure(0.25))
    other.unlink()
    os.link(path, other)
    with pytest.raises(DeclarationError, match="has 2 hard links"):
        Ledger(path=other)
    other.unlink()
    path.rename(other)
    with pytest.raises(DeclarationError, match="is gone; it was moved or removed"):
        ledger.spend(Profile.pure(0.25))
    memory = Ledger(PureDP(1.0))
    for again in (copy.deepcopy, copy.copy, pickle.dumps):
        with pytest.raises(DeclarationError, match="is of one process and has no copies"):
            again(memory)
    monkeypatch.setattr(os, "getpid", lambda: 0)  # as in a process that was forked
    with pytest.raises(DeclarationError, match="is of one process"):
        memory.spend(Profile.pure(0.25))


def test_profiles_are_read_back_as_they_were(tmp_path):
    path = tmp_path / "ledger.json"
    ledger = Ledger({"a": ApproximateDP(50.0, 1e-5), "b": ZCDP(1e9), "c": PureDP(1.0)}, path=path)
    count = AdditiveMechanism(Laplace(epsilon=0.5))
    releases = [
        count,
        AdditiveMechanism(DiscreteLaplace(scale=2.0)),
        AdditiveMechanism(Gaussian(scale=4.0)),
        AdditiveMechanism(Laplace(scale=2.0).on_integers()),
        PoissonSample(rate=0.1).amplify(count.profile()),
        Profile.pure(0.1, 1e-9),
    ]
    for release in releases:
        ledger.spend(release, ["a"])
    ledger.spend(AdditiveMechanism(DiscreteGaussian(scale=3.0), norm="l2", dimension=4), ["b"])
    ledger.spend(SimpleRandomSample(size=3).amplify(count.profile(), 20), ["c"], "", "substitute")
    back = Ledger(path=path)
    assert back.budgets == ledger.budgets
    assert [e.to_dict() for e in back.entries] == [e.to_dict() for e in ledger.entries]
    for one, other in zip(ledger.entries, back.entries, strict=True):
        assert one.profile.epsilon(1e-6) == other.profile.epsilon(1e-6)
    assert back.spent("a") == ledger.spent("a") and back.spent("b") == ledger.spent("b")


@pytest.mark.parametrize("kept", [True, False])
def test_a_window_that_is_named_twice_counts_once(kept, tmp_path):
    path = tmp_path / "ledger.json" if kept else None
    ledger, release = Ledger(PureDP(1.0), ["a", "b"], path=path), AdditiveMechanism(Laplace(epsilon=0.375))
    assert ledger.spend(release, ["a", "a"]).windows == ("a",)
    assert ledger.spend(release, iter(["a", "b", "a"])).windows == ("a", "b")
    assert (ledger.remaining("a"), ledger.remaining("b")) == (1 - 2 * 0.375, 1 - 0.375)
    assert ledger.profile("a").largest_loss == 2 * 0.375
    with pytest.raises(BudgetSpentError):
        ledger.spend(release, ["b", "b", "a"])
    if kept:  # a file from before, whose entry names one twice
        text = path.read_text()
        path.write_text(text.replace('"windows": ["a"]', '"windows": ["a", "a"]'))
        assert path.read_text() != text and Ledger(path=path).remaining("a") == 1 - 2 * 0.375


def test_files_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "ledger.json"
    with pytest.raises(DeclarationError, match="budget is missing"):
        Ledger(path=path)
    Ledger(PureDP(1.0), path=path)
    with pytest.raises(DeclarationError, match=r"budget is .*PureDP\(epsilon=2.0\).*; the ledger"):
        Ledger(PureDP(2.0), path=path)
    path.write_text(json.dumps({"budgets": 3}))
    with pytest.raises(DeclarationError, match="is not a ledger"):
        Ledger(path=path)
    path.write_text("{")
    with pytest.raises(DeclarationError, match="is not a ledger"):
        Ledger(path=path)
