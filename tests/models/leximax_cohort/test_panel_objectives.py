"""Every objective of a panel's lottery, against all panels; symmetric people; public pools."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest

import forcopt as fo
from forcopt.models import LeximaxCohort
from forcopt.models.leximax_cohort import draw_cohorts, random_panel, uniform
from forcopt.models.leximax_cohort.chain import CohortChain
from forcopt.models.leximax_cohort.classes import Classes
from forcopt.models.leximax_cohort.formulations import all_cohorts, goal
from forcopt.models.leximax_cohort.objectives import Objective, welfare

WELFARES = [o for o in get_args(Objective) if o != "uniform"]
DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "panels"


def random_pool(seed):
    """A small pool: up to five features, quotas about a planted panel, households, other groups."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 9))
    size = int(rng.integers(2, min(5, n)))
    planted = rng.permutation(n)[:size]
    features, quotas = {}, {}
    for f in range(int(rng.integers(1, 6))):
        levels = np.array(list("abc"))[rng.integers(0, int(rng.integers(2, 4)), n)]
        inside = {v: int((levels[planted] == v).sum()) for v in np.unique(levels).tolist()}
        features[f"f{f}"] = levels.tolist()
        quotas[f"f{f}"] = {v: [max(0, c - rng.integers(2)), c + rng.integers(2)] for v, c in inside.items()}
    own, other = np.eye(n), rng.integers(0, 4, (n, 3)).astype(float)
    fields = {"utilities": [own, own, np.hstack([own, other]), other][int(rng.integers(4))]}
    if rng.random() < 0.3:
        fields["households"] = [str(h) if h else "" for h in rng.integers(0, n, n)]
    if rng.random() < 0.2:
        fields["forbidden"] = [n - 1]
    return {"size": size, "features": features, "quotas": quotas, **fields}


def check_against_all_panels(seed, objective):
    """Return the solution, or None if no lottery has a finite objective."""
    p = LeximaxCohort(**random_pool(seed), objective=objective, weight=0.7)
    rows = np.concatenate(list(all_cohorts(p)))
    if not len(rows):
        assert p.solve("column-generation").status == "infeasible"
        return None
    worth = (rows @ p.utilities)[:, p.counted]
    if objective in ("nash", "goldilocks") and (worth.max(axis=0) == 0).any():
        with pytest.raises(fo.DeclarationError, match="is 0 in every cohort"):
            p.solve("column-generation")
        return None
    m = fo.Model()
    chance = m.variable("chance", len(rows), lower=0)
    m.subject_to(chance.sum() == 1)
    m.optimize(goal(p, m, chance @ worth, np.ones(worth.shape[1])))
    true, s = m.solve(), p.solve("column-generation")
    assert s.status == "optimal", (seed, s.message)
    best = true.levels.min() if objective == "leximin" else true.objective
    # the reference comes from an interior point method, too
    assert s.objective == pytest.approx(best, rel=2e-6, abs=2e-6), seed
    assert s.bound == pytest.approx(s.objective, rel=1e-6, abs=1e-6), seed
    if objective == "leximin":
        assert s.decision.levels == pytest.approx(np.sort(true.levels), abs=1e-6), seed
    cohorts, weights = s.decision.distribution()
    assert {*map(tuple, cohorts)} <= {*map(tuple, rows)} and weights.sum() == pytest.approx(1)
    assert weights @ cohorts == pytest.approx(s.decision.marginals, abs=1e-12)
    return s


@pytest.mark.parametrize("objective", WELFARES)
def test_objectives_against_all_panels(objective):
    found = [check_against_all_panels(seed, objective) for seed in (*range(12), 32, 188)]
    assert sum(s is not None for s in found) >= 4


def test_a_point_outside_of_all_lotteries_is_cut_off():
    found = [check_against_all_panels(seed, "leximin") for seed in (78, 152, 196)]
    assert all(s.message.split(", ")[1] != "0 cuts" for s in found)


def test_an_infinite_objective_of_a_lottery_is_no_optimum():
    assert check_against_all_panels(1066, "goldilocks").decision.utilities.min() > 0


def test_the_uniform_lottery_against_all_panels():
    for seed in range(40):
        p = LeximaxCohort(**random_pool(seed), objective="uniform")
        rows, s = np.concatenate(list(all_cohorts(p))), p.solve()
        if not len(rows):
            assert s.status == "infeasible"
            continue
        assert s.status == "optimal" and s.decision.count == len(rows)
        assert s.decision.marginals == pytest.approx(rows.mean(axis=0), abs=1e-12)
        assert s.objective == pytest.approx(np.log(len(rows))) == s.bound
        # no other lottery has a larger entropy
        assert p.evaluate(p.replace(objective="leximin").solve("column-generation").decision).objective <= (
            s.objective + 1e-9
        )


def test_draws_of_the_uniform_lottery_are_uniform():
    p = LeximaxCohort(
        utilities=np.eye(7),
        size=3,
        features={"sex": list("fffmmmm"), "age": list("abababa")},
        quotas={"sex": {"f": (1, 2)}, "age": {"a": (1, 2)}},
        objective="uniform",
    )
    d = p.solve().decision
    drawn = pd.Series([tuple(d.sample(seed)) for seed in range(6000)]).value_counts()
    assert len(drawn) == d.count
    # chi-squared with count - 1 degrees of freedom; beyond six deviations with probability under 1e-6
    expected = 6000 / d.count
    assert ((drawn - expected) ** 2 / expected).sum() < d.count - 1 + 6 * np.sqrt(2 * (d.count - 1))
    with pytest.raises(fo.DeclarationError, match="not of marginals"):
        p.evaluate(d.marginals)


def test_a_chain_draws_cohorts_uniformly_where_single_exchanges_lead_to_none(monkeypatch):
    """Quotas so tight that each cohort differs from every other one by two members at least."""
    kinds = np.array(list("aabbccdd"))
    one, other = np.isin(kinds, ["a", "b"]), np.isin(kinds, ["a", "c"])
    p = LeximaxCohort(
        utilities=np.eye(9),
        size=4,
        features={"one": [*np.where(one, "x", "y"), "z"], "other": [*np.where(other, "x", "y"), "z"]},
        quotas={f: {"x": (2, 2), "y": (2, 2), "z": (0, 0)} for f in ("one", "other")},
        households=["", "h", "", "h", *[""] * 5],
        forced=[0],
    )
    rows = np.concatenate(list(all_cohorts(p)))
    drawn = draw_cohorts(p, 4000, steps=200, seed=1)
    counts = pd.Series([tuple(row) for row in drawn.members]).value_counts()
    assert {*counts.index} == {*map(tuple, rows)} and 0.05 < drawn.kept < 0.9 < drawn.effective / 4000
    expected = 4000 / len(rows)
    free = len(rows) - 1
    assert ((counts - expected) ** 2 / expected).sum() < free + 6 * np.sqrt(2 * free)
    assert (draw_cohorts(p, 5, seed=3).members == draw_cohorts(p, 5, seed=3).members).all()
    with pytest.raises(fo.DeclarationError, match=r"the least relaxation: .* fewer of"):
        draw_cohorts(p.replace(forbidden=[1, 2, 3]), 5)
    monkeypatch.setattr(uniform, "_MOST_STEPS", 3)
    with pytest.raises(fo.DeclarationError, match="`draw_cohorts` draws from the same lottery"):
        p.replace(objective="uniform").solve("uniform")


@pytest.mark.parametrize("objective", WELFARES)
def test_programs_over_marginals_and_over_lotteries_agree(objective):
    p = random_panel(40, 8, features=2, seed=3, objective=objective, weight=0.5)
    direct, mixed = p.solve(), p.solve("column-generation")
    assert direct.status == mixed.status == "optimal" and direct.method != mixed.method
    assert mixed.objective == pytest.approx(direct.objective, rel=1e-6, abs=1e-7)


def test_one_cohort_for_linear_objectives():
    for objective in ("maximin", "minimax", "linear"):
        p = LeximaxCohort(**{**random_pool(3), "households": ()}, objective=objective, integer=True)
        rows = np.concatenate(list(all_cohorts(p)))
        each = [
            welfare(objective, u, np.ones(len(u)), 1.0, p.even) for u in (rows @ p.utilities)[:, p.counted]
        ]
        best = min(each) if p.sense == "min" else max(each)
        assert p.solve().objective == pytest.approx(best)


def test_people_of_one_profile_are_one_class_with_equal_chances():
    p = random_panel(60, 9, features=3, levels=2, seed=2)
    classes = Classes(p)
    assert len(classes.sizes) <= 8 and classes.counts.sum() == 60
    x = p.solve("column-generation").decision.marginals
    for c in range(len(classes.sizes)):
        assert np.ptp(x[classes.of == c]) < 1e-9
    homes = [f"h{i // 2}" for i in range(60)]
    assert len(Classes(p.replace(households=homes)).sizes) == 60


def test_forbidden_people_do_not_count_in_the_smallest_chance():
    p = LeximaxCohort(utilities=np.eye(4), size=2, forbidden=[3], objective="maximin")
    assert p.solve().objective == pytest.approx(2 / 3) == p.solve("column-generation").objective
    assert p.replace(objective="goldilocks").solve().objective == pytest.approx(2)
    assert p.replace(objective="nash").solve().objective == pytest.approx(np.log(2 / 3), abs=1e-6)


def test_an_early_stop_gives_a_lottery_with_a_valid_bound():
    p = random_panel(60, 9, features=4, seed=1)
    best = p.solve("column-generation").objective
    s = p.solve("column-generation", on_improvement=lambda step: True)
    assert s.evaluation.feasible and s.objective <= best + 1e-9 and s.bound >= best - 1e-9
    for limit in (0.0, 0.05):
        s = p.solve("column-generation", time_limit=limit)
        assert s.bound >= best - 1e-9
        if s.status.has_solution:
            assert all(p.evaluate(c).feasible for c in s.decision.distribution()[0])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"objective": "best"}, "objective"),
        ({"weight": -1}, "weight"),
        ({"objective": "uniform", "size": 1.5}, "objective 'uniform' is for lotteries"),
        ({"objective": "nash", "utilities": [[1, -1], [0, 1]], "signed": True}, "utilities of at least 0"),
    ],
)
def test_bad_objectives_are_refused(fields, message):
    with pytest.raises(fo.DeclarationError, match=message):
        LeximaxCohort(**{"utilities": np.eye(2), "size": 1, **fields})


@pytest.mark.parametrize(("pool", "size"), [("example_small_20", 20), ("example_large_200", 200)])
def test_public_pools_have_the_probabilities_of_the_reference(pool, size):
    if not DATA.exists():
        pytest.skip(f"the public pools are not in {DATA.name}")
    quotas = pd.read_csv(DATA / pool / "categories.csv").rename(columns={"feature": "value"})
    quotas = quotas.rename(columns={"category": "feature"})
    people = pd.read_csv(DATA / pool / "respondents.csv")
    p = LeximaxCohort.from_candidates(people, quotas, size)
    s = p.solve("column-generation")
    assert s.status == "optimal" and len(Classes(p).sizes) == 3
    reference = pd.read_csv(DATA / pool / "reference.csv", skipinitialspace=True)
    known = reference[reference.algorithm.str.upper() == "LEXIMIN"]
    expected = np.sort(known["selection probability"].to_numpy())
    n = len(people)
    assert len(expected) > 0 and s.decision.levels.mean() == pytest.approx(size / n)
    assert np.interp(np.linspace(0, 1, len(expected)), np.linspace(0, 1, n), s.decision.levels) == (
        pytest.approx(expected, abs=1e-6)
    )


def test_a_chain_follows_the_chances_and_keeps_what_they_meet_without_slack():
    features = {"sex": list("mf" * 30), "age": list("abc" * 20)}
    quotas = {"sex": {"f": (4, 5)}, "age": {"a": (2, 9), "b": (1, 4)}}
    p = LeximaxCohort(utilities=np.eye(60), size=9, features=features, quotas=quotas)
    z = np.where(np.array(features["age"]) == "a", 0.1, 0.0) + np.where(
        np.array(features["sex"]) == "f", 1, 0.8
    )
    chances = 0.15 * 60 * z / z.sum()
    chances[0], chances[1] = 0.0, 1.0
    women, others = (
        (np.arange(60) % 2 == 1) & (np.arange(60) > 1),
        (np.arange(60) % 2 == 0) & (np.arange(60) > 1),
    )
    chances[women] *= 4 / chances[women].sum()  # five women with the first: their most
    chances[others] *= 4 / chances[others].sum()
    chain = CohortChain(p, np.random.default_rng(1), 600, chances)
    assert chain.settle()
    drawn = np.zeros((2000, 60))
    for row in drawn:
        while not chain.look():
            pass
        row[chain.members] = 1
    assert (drawn[:, 1::2].sum(axis=1) == 5).all() and drawn[:, 0].sum() == 0 and drawn[:, 1].all()
    assert all(p.evaluate(row).feasible for row in drawn[::100])
    assert np.abs(drawn.mean(axis=0) - chances).max() < 0.02  # independent draws: 0.3 / sqrt(2000) * 3


def test_leximin_of_a_large_pool_is_proved_by_the_drawn_panels_alone():
    p = random_panel(700, 80, features=6, levels=3, seed=7)
    s = p.solve("column-generation")
    assert s.status == "optimal" and s.message.startswith("0 rounds of pricing")
    assert p.evaluate(s.decision).feasible and abs(s.objective - s.bound) <= 1e-8
    level = (p.features["feature 1"], p.quotas["feature 1"])
    members, chances = s.decision.cohorts, s.decision.weights
    for name, (least, most) in level[1].items():
        of_level = members[:, np.array(level[0]) == name].sum(axis=1)
        assert (of_level >= least).all() and (of_level <= most).all()
    assert abs((chances @ members).min() - s.objective) < 1e-9


def test_without_numba_all_panels_are_priced(monkeypatch):
    p = random_panel(150, 22, features=4, seed=1)
    drawn = p.solve("column-generation")

    def missing(*_: object) -> None:
        raise fo.NotInstalledError("walk is compiled by numba")

    monkeypatch.setattr("forcopt.models.leximax_cohort.exchanges.walk", missing)
    priced = p.solve("column-generation")
    assert not priced.message.startswith("0 rounds") and priced.status == drawn.status == "optimal"
    assert np.abs(np.sort(priced.decision.levels) - np.sort(drawn.decision.levels)).max() < 1e-7
