"""Panels from tables: quotas, their relaxation, households and replacements."""

from __future__ import annotations

import warnings
from itertools import combinations

import cohort_oracle  # noqa: F401  (registers the oracle)
import numpy as np
import pandas as pd
import pytest
from processor_time import spends_at_most

import forcopt as fo
from forcopt.models import LeximaxCohort
from forcopt.models.leximax_cohort import round_lottery
from forcopt.models.leximax_cohort.panel import least_relaxation, quota_table


def pool(n=24, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "name": [f"p{i}" for i in range(n)],
            "sex": rng.choice(["f", "m"], n, p=[0.7, 0.3]),
            "age": rng.choice(["young", "old"], n),
            "region": rng.choice(["N", "S", "W"], n),
            "home": rng.integers(0, n - 6, n),
        }
    )


QUOTAS = pd.DataFrame(
    [
        ("sex", "f", 3, 3),
        ("sex", "m", 3, 3),
        ("age", "young", 2, 4),
        ("age", "old", 0, 6),
        ("region", "N", 1, 2),
        ("region", "S", 1, 3),
        ("region", "W", 0, 6),
    ],
    columns=["feature", "value", "min", "max"],
)


def test_a_panel_from_csv_files(tmp_path):
    pool().to_csv(tmp_path / "pool.csv", index=False)
    renamed = QUOTAS.rename(columns={"feature": "category", "value": "name"})
    renamed.to_csv(tmp_path / "quotas.csv", index=False)
    fields = {"identifier": "name", "household": "home"}
    p = LeximaxCohort.from_candidates(tmp_path / "pool.csv", tmp_path / "quotas.csv", 6, **fields)
    assert p == LeximaxCohort.from_candidates(pool(), QUOTAS, 6, **fields)
    s = p.solve()
    assert s.status == fo.Status.OPTIMAL and s.evaluation.feasible
    cohorts, weights = s.decision.distribution()
    homes = pool().home.to_numpy()
    for cohort in cohorts:
        assert p.evaluate(cohort).feasible
        members = np.flatnonzero(cohort)
        assert len(set(homes[members])) == len(members) == 6
    np.testing.assert_allclose(weights @ cohorts, s.decision.marginals, atol=1e-9)
    table = s.decision.table()
    assert table.loc["p3", "probability"] == s.decision.marginals[3] and "region" in table
    assert s.decision.smallest == pytest.approx(s.objective)
    assert 0 <= s.decision.gini < 1
    assert LeximaxCohort.from_dict(p.to_dict()) == p


def test_all_methods_keep_households():
    rng = np.random.default_rng(1)
    for _ in range(8):
        n = int(rng.integers(4, 7))
        homes = tuple(map(str, rng.integers(0, n, n)))
        size = len(set(homes)) - int(rng.integers(0, 2))
        p = LeximaxCohort(utilities=rng.integers(0, 4, (n, 3)), size=size, households=homes, integer=True)
        exact = p.solve("brute-force")
        assert exact.objective == pytest.approx(p.solve("compact").objective)
        lottery = LeximaxCohort(utilities=p.utilities, size=size, households=homes)
        levels = [lottery.solve(m).decision.levels for m in ("saturation", "column-generation", "cuts")]
        np.testing.assert_allclose(levels[0], levels[1], atol=1e-6)
        np.testing.assert_allclose(levels[0], levels[2], atol=1e-6)
    crowded = LeximaxCohort(utilities=np.eye(3), size=2, households=("a", "a", "a"))
    s = crowded.solve("column-generation")
    assert s.status == fo.Status.INFEASIBLE and "household" in s.reason
    assert LeximaxCohort(
        utilities=np.eye(3), size=2, households=("", "", "")
    ).solve().objective == pytest.approx(2 / 3)


@pytest.mark.parametrize("seed", range(10))
def test_the_relaxation_is_least(seed):
    """Against all cohorts: the fewest places by which a cohort breaks the quotas."""
    rng = np.random.default_rng(seed)
    n, size = 8, 3
    features = {"a": rng.choice(["x", "y"], n).tolist(), "b": rng.choice(["u", "v"], n).tolist()}
    quotas = {
        f: {v: sorted(rng.integers(0, 4, 2).tolist()) for v in set(levels)} for f, levels in features.items()
    }
    p = LeximaxCohort(utilities=np.eye(n), size=size, features=features, quotas=quotas)
    broken = []
    for members in combinations(range(n), size):
        counts = p.classes.members[:, list(members)].sum(axis=1)
        broken.append(np.maximum(p.classes.least - counts, counts - p.classes.most).clip(0).sum())
    found = least_relaxation(p)
    assert found is not None
    moved = sum(abs(a - b) for r in found for a, b in zip(r.bounds, r.needed, strict=True))
    assert moved == min(broken)
    relaxed = {f: dict(levels) for f, levels in quotas.items()}
    for r in found:
        relaxed[r.feature][r.level] = r.needed
    q = LeximaxCohort(utilities=np.eye(n), size=size, features=features, quotas=relaxed)
    assert q == p.relaxed() and q.infeasibility_reason() == "" and least_relaxation(q) == []
    if found:
        s = p.solve("column-generation")
        assert s.status == fo.Status.INFEASIBLE and str(found[0]) in s.reason


def test_replacements_keep_who_stays():
    p = LeximaxCohort.from_candidates(pool(), QUOTAS, 6, identifier="name")
    lottery = p.solve().decision
    public = round_lottery(lottery, 20)
    for panel in map(public.members, range(20)):  # some pairs cannot be replaced
        q = p.after_dropouts(kept=panel[2:], dropped=panel[:2])
        s = q.solve()
        if s.status.has_solution:
            break
        assert "least relaxation" in s.reason
    again = round_lottery(s.decision, 10).members(3)
    assert set(panel[2:]) <= set(again) and not set(panel[:2]) & set(again)
    assert s.status == fo.Status.OPTIMAL
    with pytest.raises(fo.DeclarationError, match="'zoe' is no candidate"):
        p.after_dropouts(kept=["zoe"], dropped=[])
    with pytest.raises(fo.DeclarationError, match="both forced and forbidden"):
        p.after_dropouts(kept=panel[:1], dropped=panel[:1])


def test_levels_without_candidates_and_names_that_look_like_numbers(tmp_path):
    (tmp_path / "pool.csv").write_text("id,area\n007,NA\n008,NA\n009,None\n")
    (tmp_path / "quotas.csv").write_text("feature,value,min,max\narea,NA,1,1\narea,None,1,1\n")
    p = LeximaxCohort.from_candidates(tmp_path / "pool.csv", tmp_path / "quotas.csv", 2, identifier="id")
    d = p.solve().decision
    assert d.table().probability.round(9).to_dict() == {"007": 0.5, "008": 0.5, "009": 1.0}
    assert d.table().area.tolist() == ["NA", "NA", "None"]
    (tmp_path / "quotas.csv").write_text("feature,value,min,max\narea,NA,1,1\narea,None,1,1\narea,SA,1,1\n")
    with pytest.raises(
        fo.DeclarationError, match="row 4, column value: 'SA' is a value of no candidate, but min is 1"
    ):
        LeximaxCohort.from_candidates(tmp_path / "pool.csv", tmp_path / "quotas.csv", 2, identifier="id")
    (tmp_path / "quotas.csv").write_text("feature,value,min,max\narea,NA,,1\n")
    with pytest.raises(fo.DeclarationError, match="row 2, column min: '' is empty"):
        LeximaxCohort.from_candidates(tmp_path / "pool.csv", tmp_path / "quotas.csv", 2, identifier="id")


def test_a_quota_that_demands_nobody_of_a_level_without_candidates_is_a_warning():
    pool = pd.DataFrame({"name": list("abcd"), "area": ["north", "north", "south", "south"]})
    quotas = pd.DataFrame(
        {"feature": "area", "value": ["north", "south", "Nort", "east"], "min": [1, 1, 0, 0], "max": 2}
    )
    plain = LeximaxCohort.from_candidates(pool, quotas[:2], 3, identifier="name")
    with pytest.warns(UserWarning) as found:
        p = LeximaxCohort.from_candidates(pool, quotas, 3, identifier="name")
    assert found[0].filename == __file__
    assert [str(warning.message) for warning in found] == [
        "candidates, column area: 'Nort' is a level of no row; did you mean 'north'?; its quota "
        "has no effect",
        "candidates, column area: 'east' is a level of no row; its quota has no effect",
    ]
    assert p.solve().decision.utilities == pytest.approx(plain.solve().decision.utilities)
    assert p.evaluate([1, 1, 1, 0]).feasible and not p.evaluate([1, 1, 0, 0]).feasible
    quotas.loc[2, "min"] = 1
    with pytest.raises(fo.DeclarationError, match="row 4, column value: 'Nort' is a value of no candidate"):
        LeximaxCohort.from_candidates(pool, quotas, 3, identifier="name")


@pytest.mark.parametrize("size", [2.5, np.float64(1.000001)])
def test_a_panel_has_a_whole_number_of_members(size):
    pool = pd.DataFrame({"name": list("abc"), "sex": list("fmm")})
    quotas = {"sex": {"f": (0, 1), "m": (0, 2)}}
    with pytest.raises(fo.DeclarationError, match=r"size is .*; a panel has a whole number of members"):
        LeximaxCohort.from_candidates(pool, quotas, size, identifier="name")
    assert LeximaxCohort.from_candidates(pool, quotas, 2.0, identifier="name").size == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda c, q: (c.drop(columns="age"), q),
            "quotas, row 4, column feature: 'age' is no column of the candidates",
        ),
        (
            lambda c, q: (c, q.drop(columns="max")),
            "quotas, row 1, column max: 'max' is a column that is missing",
        ),
        (lambda c, q: (c.assign(name="Ann"), q), "row 3, column name: 'Ann' is in row 2, too"),
        (lambda c, q: (c, q.astype(object).replace({3: "many"})), "column min: 'many' is no plain number"),
        (lambda c, q: (c, q.replace({"N": "East"})), "column region: 'N' has no quota"),
        (lambda c, q: (c.replace({"W": "w "}), q), "column region: 'w' has no quota; did you mean 'W'"),
        (
            lambda c, q: (c, pd.concat([q, q[2:3]])),
            "quotas, row 9, column value: 'age = young' is in row 4, too",
        ),
        (
            lambda c, q: (c, q.assign(min=q["min"].where(q.value != "old", 7))),
            "quotas, row 5, column min: '7' is more than max, 6",
        ),
        (
            lambda c, q: (c, q.astype(object).replace({"old": None})),
            "quotas, row 5, column value: '' is empty",
        ),
        (lambda c, q: (c.assign(name=[None, *c.name[1:]]), q), "candidates, row 2, column name: '' is empty"),
        (
            lambda c, q: (c.assign(age=[None, *c.age[1:]]), q),
            "candidates, row 2, column age: '' is empty",
        ),
        (lambda c, q: (c.assign(age=[*c.age[:-1], " "]), q), "row 25, column age: '' is empty"),
        (lambda c, q: ([1, 2], q), "candidates is a list"),
        (
            lambda c, q: (pd.concat([c, c.age], axis=1), q),
            "candidates, row 1, column age: 'age' is the name of 2 columns",
        ),
        (
            lambda c, q: (pd.concat([c, c.name], axis=1), q),
            "candidates, row 1, column name: 'name' is the name of 2 columns",
        ),
        (
            lambda c, q: (c, pd.concat([q, q["min"]], axis=1)),
            "quotas, row 1, column min: 'min' is the name of 2 columns",
        ),
    ],
)
def test_bad_tables_are_named(change, words):
    candidates, quotas = change(pool(), QUOTAS)
    with pytest.raises(fo.DeclarationError, match=words):
        LeximaxCohort.from_candidates(candidates, quotas, 6, identifier="name")


def test_a_column_that_stands_twice_in_a_file_is_refused(tmp_path):
    (tmp_path / "pool.csv").write_text("id,sex,sex\nA,f,m\nB,m,f\n")
    (tmp_path / "quotas.csv").write_text("feature,value,min,min,max\nsex,f,1,0,1\nsex,m,0,1,1\n")
    quotas = {"sex": {"f": (0, 1), "m": (0, 1)}}
    with pytest.raises(fo.DeclarationError, match="candidates, row 1, column sex: 'sex' is the name of 2"):
        LeximaxCohort.from_candidates(tmp_path / "pool.csv", quotas, 1, identifier="id")
    with pytest.raises(
        fo.DeclarationError, match="quotas, row 1, column min: 'min' is the name of 2 columns"
    ):
        LeximaxCohort.from_candidates(tmp_path / "pool.csv", tmp_path / "quotas.csv", 1, identifier="id")


@pytest.mark.parametrize("method", ["column-generation", "brute-force", "cumulative", "recursive"])
def test_limits_are_kept_with_valid_bounds(method):
    rng = np.random.default_rng(2)
    n, m, size, whole = (24, 6, 9, True) if method == "brute-force" else (80, 20, 16, False)
    if method == "recursive":
        n, m = 40, 10
    p = LeximaxCohort(utilities=rng.random((n, m)), size=size, integer=whole)
    best = p.solve("compact" if whole else "saturation", time_limit=60).objective
    for limit in (0.0, 0.3):
        with spends_at_most(limit + 30):
            s = p.solve(method, time_limit=limit)
        if s.status.has_solution:
            assert s.evaluation.feasible and s.objective <= best + 1e-6
        assert s.bound >= best - 1e-6


def test_a_missing_feature_is_refused():
    people = pd.DataFrame({"sex": ["f", "m", None, "m"]})
    with pytest.raises(ValueError, match="candidates, row 4: '' is an empty row"):
        LeximaxCohort.from_candidates(people, {"sex": {"f": (1, 1), "m": (1, 1)}}, size=2)


@pytest.mark.parametrize("wrong", [5, {"f": 5}, {"f": (1,)}, {"f": ("one", 2)}])
def test_quotas_of_another_form_are_refused(wrong):
    with pytest.raises(fo.DeclarationError, match="quotas must give a least and a greatest number"):
        LeximaxCohort.from_candidates(pool(), {"sex": wrong}, 6)


def test_a_misspelt_level_does_not_escape_its_quota():
    region = ["north"] * 4 + ["south"] * 2 + ["Nort", "North "]
    people = pd.DataFrame({"id": [f"v{i}" for i in range(8)], "region": region})
    quotas = {"region": {"north": (1, 2), "south": (1, 2)}}
    with pytest.raises(fo.DeclarationError) as error:
        LeximaxCohort.from_candidates(people, quotas, 4, identifier="id")
    assert str(error.value) == (
        "candidates, row 8, column region: 'Nort' has no quota; did you mean 'north'?\n"
        "candidates, row 9, column region: 'North' has no quota; did you mean 'north'?"
    )


def test_a_quota_of_a_misspelt_level_is_refused():
    people = pd.DataFrame({"region": ["north"] * 3 + ["south"] * 2})
    quotas = {"region": {"north": (1, 2), "south": (1, 2), "souht": (1, 2)}}
    with pytest.raises(fo.DeclarationError, match=r"row 4, column value: 'souht' is .* did you mean 'south'"):
        LeximaxCohort.from_candidates(people, quotas, 3)


def test_dropouts_are_positions_or_names_and_nothing_is_rounded_to_one():
    p = LeximaxCohort(utilities=np.eye(4), size=2)
    assert p.after_dropouts(kept=[1], dropped=["2"]).forced.tolist() == [1]
    with pytest.raises(fo.DeclarationError, match=r"'1\.5' is no candidate"):
        p.after_dropouts(kept=[1.5], dropped=[])
    named = p.replace(groups=("Ann", "Bo", "Cy", "Di"))
    with pytest.raises(fo.DeclarationError, match="'ann ' is no candidate; did you mean 'Ann'"):
        named.after_dropouts(kept=["ann "], dropped=[])


def test_a_missing_household_is_one_of_its_own_without_a_warning():
    people = pd.DataFrame({"sex": list("ffmm"), "home": [1.0, np.nan, np.nan, 1.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p = LeximaxCohort.from_candidates(people, {"sex": {"f": (1, 1), "m": (1, 1)}}, 2, household="home")
    assert p.households == ("1", "", "", "1")
    assert p.household_rows.toarray().tolist() == [[1, 0, 0, 1]]


FLEXIBLE = QUOTAS.assign(min_flex=[2, 3, 1, 0, 0, 0, 0], max_flex=[3, 4, 5, 6, 6, 6, 6])


@pytest.mark.parametrize("names", [("feature", "value"), ("category", "name"), ("category", "feature")])
def test_quotas_of_other_programs_are_read_and_written(tmp_path, names):
    pool().to_csv(tmp_path / "pool.csv", index=False)
    plain = LeximaxCohort.from_candidates(pool(), QUOTAS, 6)
    FLEXIBLE.set_axis([*names, *FLEXIBLE.columns[2:]], axis=1).to_csv(tmp_path / "q.csv", index=False)
    p = LeximaxCohort.from_candidates(tmp_path / "pool.csv", tmp_path / "q.csv", 6)
    assert p.quotas == plain.quotas and p.flexible["sex"] == {"f": (2, 3), "m": (3, 4)}
    assert p.names == tuple(map(str, range(24))) and not plain.flexible
    pd.testing.assert_frame_equal(quota_table(p), FLEXIBLE, check_dtype=False)
    pd.testing.assert_frame_equal(quota_table(plain), QUOTAS, check_dtype=False)


def test_a_relaxation_stays_within_the_flexible_ends():
    people = pd.DataFrame({"sex": list("ffmmmm")})
    quotas = pd.DataFrame({"feature": "sex", "value": ["f", "m"], "min": [3, 1], "max": [3, 1]})
    p = LeximaxCohort.from_candidates(people, quotas.assign(min_flex=[2, 1], max_flex=[3, 4]), 4)
    words = "1 fewer of sex = f (at least 3 -> 2); 1 more of sex = m (at most 1 -> 2)"
    assert p.infeasibility_reason().endswith(words)
    assert p.relaxed().quotas == {"sex": {"f": (2, 3), "m": (1, 2)}} and p.relaxed().solve().decision
    q = LeximaxCohort.from_candidates(people, quotas.assign(min_flex=[3, 1], max_flex=[3, 4]), 4)
    with pytest.raises(fo.DeclarationError, match="even with all quotas at their flexible ends"):
        q.relaxed()
    with pytest.raises(fo.DeclarationError, match=r"flexible.sex.f is \[3, 2\]; it must hold the quota"):
        LeximaxCohort.from_candidates(people, quotas.assign(min_flex=[3, 1], max_flex=[2, 4]), 4)
    with pytest.raises(fo.DeclarationError, match="column max_flex: 'max_flex' is a column that is missing"):
        LeximaxCohort.from_candidates(people, quotas.assign(min_flex=0), 4)


def test_an_address_with_a_blank_part_is_a_household_of_its_own():
    people = pd.DataFrame(
        {
            "street": ["", "", "Mill", "", "1 Mill", "1 mill", "a\nb", "a"],
            "town": ["Ulm", "Ulm", "", "Mill", "Ulm", "ulm", "c", "b\nc"],
            "sex": list("fm") * 4,
        }
    )
    quotas = {"sex": {"f": (1, 2), "m": (1, 2)}}
    p = LeximaxCohort.from_candidates(people, quotas, 3, household=["street", "town"])
    assert p.household_rows.toarray().tolist() == [[0, 0, 0, 0, 1, 1, 0, 0]]


def test_inclusions_exclusions_and_addresses_of_two_columns():
    people = pool().assign(street=lambda t: t.home.map("{} High St".format), zip="Z1")
    people.loc[3, "street"] = people.street[5].upper()
    people.loc[7, ["street", "zip"]] = ""
    fields = {"identifier": "name", "include": ["p3"], "exclude": ["p0", "p1"]}
    p = LeximaxCohort.from_candidates(people, QUOTAS, 6, household=["street", "zip"], **fields)
    assert p.households[3] == p.households[5] == f"{people.home[5]} high st\nz1" and p.households[7] == ""
    chances = p.solve().decision.table().probability
    assert chances["p3"] == pytest.approx(1) and chances[["p0", "p1", "p5"]].max() < 1e-9
    with pytest.raises(fo.DeclarationError, match="'p99' is no candidate"):
        LeximaxCohort.from_candidates(people, QUOTAS, 6, **fields | {"include": ["p99"]})
