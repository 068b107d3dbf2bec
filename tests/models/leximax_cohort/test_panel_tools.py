"""Checks of files, reserves, replacements, letters, the census, and sortition-algorithms."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from small_pools import random_pool

import forcopt as fo
from forcopt.models import LeximaxCohort
from forcopt.models.leximax_cohort import (
    choose_reserves,
    compare_with_census,
    draw_letters,
    dropout_scenarios,
    panel_findings,
)
from forcopt.models.leximax_cohort.formulations import all_cohorts
from forcopt.models.leximax_cohort.sortition import find_distribution

PEOPLE = pd.DataFrame(
    {
        "name": ["Ann", "Bo", "Cy", "Di", "Ed", "Flo"],
        "sex": list("ffmmmf"),
        "age": ["young", "old", "young", "old", "old", "young"],
    }
)
QUOTAS = pd.DataFrame(
    [("sex", "f", 1, 2), ("sex", "m", 1, 2), ("age", "young", 1, 2), ("age", "old", 1, 2)],
    columns=["feature", "value", "min", "max"],
)


def missed(p, panel, attended, reserves):
    """The least number of places missed when some of the reserves fill at most the free places."""
    stay = panel * attended
    out = round(p.size - stay.sum())
    best = np.inf
    for count in range(out + 1):
        for called in combinations(reserves, count):
            now = stay.copy()
            now[list(called)] = 1
            counts = p.classes.members @ now
            short, over = np.maximum(p.classes.least - counts, 0), np.maximum(counts - p.classes.most, 0)
            best = min(best, short.sum() + over.sum() + out - count)
    return best


@pytest.mark.parametrize("block", range(10))
def test_reserves_against_enumeration(block):
    """Thirty pools a case: no set of reserves misses fewer places on average over the scenarios."""
    for seed in range(30 * block, 30 * block + 30):
        p, rng = random_pool(seed), np.random.default_rng(seed)
        rows = np.concatenate(list(all_cohorts(p)))
        if not len(rows):
            continue
        panel = rows[rng.integers(len(rows))]
        attended = panel * (rng.random((4, len(panel))) < 0.6)
        homes = p.household_rows.toarray()
        others = [i for i in np.flatnonzero(panel == 0) if not (homes[:, i] @ (homes @ panel > 0))]
        count = min(int(rng.integers(0, 3)), len(others))
        sets = [s for s in combinations(others, count) if (homes[:, list(s)].sum(axis=1) <= 1).all()]
        members = np.flatnonzero(panel).astype(str)
        if not sets:
            with pytest.raises(fo.BackendError, match="no reserves"):
                choose_reserves(p, members, count, scenarios=attended)
            continue
        best = min(np.mean([missed(p, panel, row, s) for row in attended]) for s in sets)
        found = choose_reserves(p, members, count, scenarios=attended, seed=seed)
        assert found.missed == pytest.approx(best, abs=1e-6) == found.bound, seed
        chosen = tuple(sorted(map(int, found.names)))
        assert chosen in sets
        assert np.mean([missed(p, panel, row, chosen) for row in attended]) == pytest.approx(best, abs=1e-6)
        assert found.missed_without == pytest.approx(np.mean([missed(p, panel, row, ()) for row in attended]))


def test_scenarios_have_the_attendance_and_refuse_other_numbers():
    p = LeximaxCohort(utilities=np.eye(6), size=3)
    drawn = dropout_scenarios(p, ["0", "1", "2"], 0.8, 20_000, seed=1)
    # six standard deviations of a mean of 20,000 draws: probability of an error under 1e-8
    assert abs(drawn.mean(axis=0)[:3] - 0.8).max() < 6 * 0.4 / np.sqrt(20_000) and not drawn[:, 3:].any()
    assert (dropout_scenarios(p, ["0"], 0.5, 9, seed=2) == dropout_scenarios(p, ["0"], 0.5, 9, seed=2)).all()
    with pytest.raises(fo.DeclarationError, match=r"attendance is 1\.2 to 1\.2; it must be from 0 to 1"):
        dropout_scenarios(p, ["0"], 1.2, 5)
    with pytest.raises(fo.DeclarationError, match="count is 4; it must be 0 to 3"):
        choose_reserves(p, ["0", "1", "2"], 4)


@pytest.mark.parametrize("block", range(10))
def test_replacements_against_enumeration(block):
    """Thirty pools a case: the lottery over the panels with all who stay and without all who left."""
    for seed in range(30 * block, 30 * block + 30):
        p, rng = random_pool(seed), np.random.default_rng(seed)
        rows = np.concatenate(list(all_cohorts(p)))
        if not len(rows):
            continue
        members = np.flatnonzero(rows[rng.integers(len(rows))])
        dropped = rng.permutation(members)[: rng.integers(1, len(members) + 1)]
        kept = np.setdiff1d(members, dropped)
        left = rows[(rows[:, kept] == 1).all(axis=1) & (rows[:, dropped] == 0).all(axis=1)]
        s = p.after_dropouts(kept.astype(str), dropped.astype(str)).solve("column-generation")
        if not len(left):
            assert s.status == "infeasible", seed
            continue
        m = fo.Model()
        chance = m.variable("chance", len(left), lower=0)
        m.subject_to(chance.sum() == 1)
        m.leximin(chance @ left)
        assert s.decision.levels == pytest.approx(np.sort(m.solve().levels), abs=1e-6), seed
        assert {*map(tuple, s.decision.distribution()[0])} <= {*map(tuple, left)}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda c, q: (c.replace({"f": "F"}), q), ("candidates", 2, "sex", "F", "f")),
        (lambda c, q: (c.replace({"Bo": "Ann"}), q), ("candidates", 3, "name", "Ann", "")),
        (lambda c, q: (c.replace({"Cy": " "}), q), ("candidates", 4, "name", "", "")),
        (lambda c, q: (c.rename(columns={"sex": "sexe"}), q), ("quotas", 2, "feature", "sex", "sexe")),
        (lambda c, q: (c.assign(sex=[*"ffmmm", ""]), q), ("candidates", 7, "sex", "", "")),
        (lambda c, q: (c, q.rename(columns={"max": "maxi"})), ("quotas", 1, "max", "max", "maxi")),
        (lambda c, q: (c, q.astype(object).replace({"f": "g"})), ("quotas", 2, "value", "g", "")),
        (lambda c, q: (c, q.astype(object).assign(max=[2, "two", 2, 2])), ("quotas", 3, "max", "two", "")),
        (lambda c, q: (c, q.assign(max=[2, 0, 2, 2])), ("quotas", 3, "min", "1", "0")),
        (lambda c, q: (c, q.assign(min=[5, 1, 1, 1], max=[5, 2, 2, 2])), ("quotas", 2, "min", "5", "3")),
        (lambda c, q: (c, q.assign(min=[3, 1, 1, 1], max=3)), ("quotas", 2, "min", "4", "3")),
        (lambda c, q: (c, q.assign(max=1)), ("quotas", 4, "max", "2", "3")),
        (lambda c, q: (c, pd.concat([q, q[:1]])), ("quotas", 6, "value", "sex = f", "")),
    ],
)
def test_findings_name_row_column_and_nearest_value(change, expected):
    found = panel_findings(*change(PEOPLE, QUOTAS), 3, identifier="name")
    cells = [(f.file, f.row, f.column, f.value, f.nearest) for f in found]
    assert expected in cells or (expected[3] == "g" and ("candidates", 2, "sex", "f", "") in cells)
    assert all(f.rule for f in found) and panel_findings(PEOPLE, QUOTAS, 3, identifier="name") == []


def test_all_faults_are_found_at_once():
    people = PEOPLE.replace({"young": "yuong"}).assign(sex=["f", "x", "m", "m", "m", "f"])
    found = panel_findings(people, QUOTAS, 3, identifier="name")
    assert [(f.row, f.value, f.nearest) for f in found if f.file == "candidates"] == [
        (3, "x", ""),
        *((row, "yuong", "young") for row in (2, 4, 7)),
    ]
    assert ("quotas", "value", "young", "yuong") in [(f.file, f.column, f.value, f.nearest) for f in found]


def test_letters_make_response_equal():
    table = pd.DataFrame({"street": range(1000), "district": ["north"] * 600 + ["south"] * 400})
    rates = {"north": 0.1, "south": 0.04}
    found = draw_letters(table, 200, district="district", response=rates, seed=3)
    assert len(found.drawn) == 200 == found.districts.letters.sum()
    assert found.drawn.index.is_monotonic_increasing and found.drawn.index.is_unique
    assert (found.drawn.district.value_counts().sort_index() == found.districts.letters.sort_index()).all()
    chance = found.districts.chance * found.districts.response
    # a letter more or less in a district changes it by 1/400 of its rate
    assert np.ptp(chance) <= 0.1 / 400
    counts = sum(
        draw_letters(table, 200, district="district", response=rates, seed=s).drawn.street.value_counts()
        .reindex(range(1000), fill_value=0).to_numpy() for s in range(200)
    )  # fmt: skip
    expected = 200 * found.districts.chance.reindex(table.district).to_numpy()
    # binomial counts: six deviations for each of 1,000 addresses, an error under 1e-5 in all
    assert (abs(counts - expected) < 6 * np.sqrt(expected)).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"response": {"nort": 0.1}},
            "row 2, column district: 'north' has no response rate; did you mean 'nort'",
        ),
        ({"response": {"north": 0.0}}, "response of 'north' is 0.0; it must be above 0 and at most 1"),
        ({"letters": 3}, "letters is 3; it must be a whole number from 1 to 2"),
        ({"district": "disrict"}, "'disrict' is a column that is missing; did you mean 'district'"),
    ],
)
def test_letters_refuse_bad_input(change, words):
    fields = {"letters": 1, "district": "district", "response": {"north": 0.1}, **change}
    with pytest.raises(fo.DeclarationError, match=words):
        draw_letters(pd.DataFrame({"district": ["north", "north"]}), fields.pop("letters"), **fields)


def test_pool_and_panel_beside_the_census():
    p = LeximaxCohort.from_candidates(PEOPLE, QUOTAS, 3, identifier="name")
    census = pd.DataFrame(
        {
            "feature": ["sex", "sex", "age", "age"],
            "value": ["f", "m", "young", "old"],
            "population": [51, 49, 1, 3],
        }
    )
    d = p.solve().decision
    table = compare_with_census(d, census)
    for _, row in table.iterrows():
        has = np.array(p.features[row.feature]) == row.value
        assert row["pool"] == pytest.approx(has.mean())
        assert row.panel == pytest.approx(d.marginals[has].sum() / 3)
        assert row.places == pytest.approx(3 * (row.panel - row.census))
    assert table.groupby("feature").census.sum().tolist() == [1, 1]
    for wrong, words in (
        (census.replace({"young": "yung"}), "'young' is not in census; did you mean 'yung'"),
        (census.replace({"sex": "sax"}), "'sax' is no feature of the pool; did you mean 'sex'"),
        (
            census.astype(object).replace({51: "many"}),
            "census, row 2, column population: 'many' is no plain number",
        ),
        (pd.concat([census, census[:1]]), "is in rows"),
    ):
        with pytest.raises(fo.DeclarationError, match=words):
            compare_with_census(d, wrong)


def test_sortition_algorithms_can_call_these_lotteries():
    pytest.importorskip("sortition_algorithms", reason="sortition-algorithms is not installed")
    from requests.structures import CaseInsensitiveDict
    from sortition_algorithms import core
    from sortition_algorithms.features import read_in_features
    from sortition_algorithms.people import People

    rows = [{**row, "min": str(row["min"]), "max": str(row["max"])} for row in QUOTAS.to_dict("records")]
    features, *_ = read_in_features(list(QUOTAS.columns), rows)
    people = People([])
    for row in PEOPLE.assign(sex=PEOPLE.sex.str.upper()).to_dict("records"):
        people._full_data[row.pop("name")] = CaseInsensitiveDict(row)
    committees, chances, report = find_distribution(features, people, 3, [])
    mine = LeximaxCohort.from_candidates(PEOPLE, QUOTAS, 3, identifier="name").solve().decision.marginals
    theirs = [
        sum(c for who, c in zip(committees, chances, strict=True) if name in who) for name in PEOPLE.name
    ]
    assert theirs == pytest.approx(mine, abs=1e-6) and "optimal" in report.as_text()
    old, core.find_distribution_maximin = core.find_distribution_maximin, find_distribution
    try:
        drawn, _ = core.find_random_sample(features, people, 3, [], selection_algorithm="maximin")
    finally:
        core.find_distribution_maximin = old
    assert drawn[0] in committees
