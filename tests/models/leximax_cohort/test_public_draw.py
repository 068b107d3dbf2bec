"""Equal panels: against enumeration, from and to files, with faults in a published file."""

from __future__ import annotations

import hashlib
import json
import re
from itertools import combinations_with_replacement

import numpy as np
import pandas as pd
import pytest
from small_pools import random_pool

import forcopt as fo
from forcopt.models import LeximaxCohort
from forcopt.models.leximax_cohort import round_lottery, verify_lottery
from forcopt.models.leximax_cohort.formulations import all_cohorts


@pytest.mark.parametrize("block", range(30))
def test_rounding_against_enumeration(block):
    """Ten pools a case: no multiset of M panels has a larger smallest chance, in the lottery or not."""
    for seed in range(10 * block, 10 * block + 10):
        p = random_pool(seed)
        count = 2 + seed % 3
        s = p.solve()
        if s.status == fo.Status.INFEASIBLE:
            assert p.households
            continue
        lottery = round_lottery(s.decision, count)
        assert len(lottery.panels) == count
        for row in lottery.panels:
            assert p.evaluate(row.astype(float)).feasible
        served = s.decision.marginals > 1e-6
        own = s.decision.distribution()[0][:, served].astype(int)
        every = np.vstack(list(all_cohorts(p)))[:, served].astype(int)

        def best(panels, count=count):
            chosen = np.array(list(combinations_with_replacement(range(len(panels)), count)))
            return panels[chosen].sum(axis=1).min(axis=1).max() / count

        if p.mixes:
            assert lottery.smallest >= lottery.bound - 1e-9
        if len(every) <= 12:
            assert best(every) <= lottery.bound + 1e-9
        if len(own) <= 12:
            assert lottery.smallest >= min(best(own), lottery.bound) - 1e-9
        assert s.objective - lottery.smallest < lottery.guarantee


def test_rounded_chances_reach_the_bound_and_panels_keep_the_quotas():
    rng = np.random.default_rng(5)
    features = {"sex": rng.choice(["f", "m"], 30).tolist(), "age": rng.choice(list("abc"), 30).tolist()}
    quotas = {"sex": {"f": (3, 5), "m": (3, 5)}, "age": {"a": (1, 3), "b": (2, 5), "c": (3, 3)}}
    p = LeximaxCohort(utilities=np.eye(30), size=8, features=features, quotas=quotas)
    d = p.solve().decision
    for count in (1, 7, 100, 1000):
        lottery = round_lottery(d, count)
        assert lottery.smallest >= lottery.bound - 1e-12 and lottery.guarantee == 8 / count
        at_once = round_lottery(d, count, time_limit=0)
        assert len(at_once.panels) == count and abs(at_once.marginals - d.marginals).max() < 8 / count
        assert (abs(lottery.marginals - d.marginals) < lottery.guarantee).all()
        assert all(p.evaluate(row.astype(float)).feasible for row in np.unique(lottery.panels, axis=0))


@pytest.fixture(scope="module")
def lottery():
    names = ("Ann Lee", 'Bo "B"', "C, y", "007", "Ümit", "NA")
    features = {"sex": list("ffffmm")}
    quotas = {"sex": {"f": (2, 2), "m": (1, 1)}}
    p = LeximaxCohort(utilities=np.eye(6), size=3, groups=names, features=features, quotas=quotas)
    return round_lottery(p.solve().decision, 100)


def test_published_files_are_read_again(lottery, tmp_path):
    for ending in ("csv", "json"):
        lottery.write(tmp_path / f"panels.{ending}")
        again = verify_lottery(lottery.problem, tmp_path / f"panels.{ending}")
        assert (again.panels == lottery.panels).all()
        assert again.smallest == lottery.smallest == 0.5
    table = pd.read_csv(tmp_path / "panels.csv", dtype=str, keep_default_na=False)
    assert table.panel.tolist() == list(lottery.numbers) == [f"{i:02}" for i in range(100)]
    assert tuple(table.iloc[47, 1:]) == lottery.members("47") == lottery.members(47)
    with pytest.raises(fo.DeclarationError, match="number is '100'; it must be one of 00 to 99"):
        lottery.members("100")
    with pytest.raises(fo.DeclarationError, match=r"must end in \.csv, \.json or \.html"):
        lottery.write(tmp_path / "panels.doc")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda rows: rows["04"].__setitem__(0, "Ann Le"),
            "panel 04: 'Ann Le' is no candidate; did you mean 'Ann",
        ),
        (lambda rows: rows["07"].__setitem__(0, rows["07"][1]), "panel 07 has a member twice"),
        (lambda rows: rows["99"].pop(), "panel 99: size is off by 1"),
        (lambda rows: rows.pop("50"), "panel '51' is in place 50; they must rise from 0 by 1"),
        (lambda rows: rows.__setitem__("10", ["Ann Lee", 'Bo "B"', "C, y"]), "panel 10: sex = f is off by 1"),
    ],
)
def test_a_fault_in_a_published_file_is_named(lottery, tmp_path, change, words):
    rows = {number: list(lottery.members(number)) for number in lottery.numbers}
    change(rows)
    (tmp_path / "panels.json").write_text(json.dumps(rows))
    with pytest.raises(fo.DeclarationError, match=re.escape(words)):
        verify_lottery(lottery.problem, tmp_path / "panels.json")


def test_the_page_of_the_draw_lists_all_panels_and_everyone(lottery, tmp_path):
    lottery.write(tmp_path / "draw.html")
    lottery.write(tmp_path / "draw.csv")
    page = (tmp_path / "draw.html").read_text(encoding="utf-8")
    assert all(f'<th scope="row">{number}</th>' in page for number in lottery.numbers)
    assert page.count("Bo &quot;B&quot;") == 1 + lottery.panels[:, 1].sum()
    assert hashlib.sha256((tmp_path / "draw.csv").read_bytes()).hexdigest() in page
    assert "Throw 2 ten-sided dice" in page
    assert "<script" not in page and not re.search(r'(src|href)="http', page)


@pytest.mark.parametrize("panels", [0, 1.5])
def test_a_number_of_panels_is_whole_and_positive(lottery, panels):
    d = lottery.problem.solve().decision
    with pytest.raises(fo.DeclarationError, match=r"panels is .*; it must be a whole number of at least 1"):
        round_lottery(d, panels)
