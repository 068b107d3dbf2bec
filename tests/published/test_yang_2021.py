"""Yang, Loftus, Stoyanovich (FORC 2021): worked examples, the moving company, COMPAS, CSRankings."""

import numpy as np
import pandas as pd
import pytest

from forcopt.causal import CausalModel, CounterfactualTransformer
from forcopt.fairness import SelectionParity
from forcopt.models import FairRanking
from forcopt.models.fair_ranking import (
    ListNet,
    Ranking,
    average_precision,
    in_group_ratio,
    moving_company,
    rank_relevance,
    selection_rates,
    utility_loss,
)

M1 = CausalModel([("G", "X"), ("R", "X"), ("G", "Y"), ("R", "Y"), ("X", "Y")], ["G", "R"], "Y")
BASE = {"G": 1, "R": 1}
KNOWN = M1.with_coefficients(
    {"X": {"1": 60, "G=1": -10}, "Y": {"1": 20, "X": 0.8, "G=1": -5, "R=1": -3, "G=1:R=1": -2}},
    levels={"G": (0, 1), "R": (0, 1)},
)
EIGHT = pd.DataFrame(
    {
        "G": [0, 0, 0, 0, 1, 1, 1, 1],
        "R": [0, 0, 1, 1, 0, 0, 1, 1],
        "X": [64.0, 56, 62, 57, 55, 49, 56, 48],
        "Y": [72.2, 64.8, 66.6, 64.6, 58.0, 55.2, 54.8, 51.4],
    }
)
RESOLVING = [62.2, 54.8, 59.6, 57.6, 53.0, 50.2, 54.8, 51.4]
NONRESOLVING = [54.2, 46.8, 51.6, 49.6, 53.0, 50.2, 54.8, 51.4]


def test_w1_known_equations():
    for resolving, want, gap in ((["X"], RESOLVING, 10), ((), NONRESOLVING, 18)):
        found = KNOWN.counterfactual(EIGHT, BASE, resolving)
        assert np.allclose(found.scores, want, atol=1e-12)
        other = KNOWN.counterfactual(EIGHT, {"G": 0, "R": 0}, resolving)
        assert np.allclose(other.scores - found.scores, gap, atol=1e-12)
    assert np.allclose(KNOWN.counterfactual(EIGHT, BASE, {"X": ["G"]}).scores, RESOLVING)
    assert np.allclose(KNOWN.counterfactual(EIGHT, BASE, {"X": ["R"]}).scores, NONRESOLVING)


def test_w2_w3_measures():
    y = EIGHT["Y"]
    best = Ranking.by_score(y).order
    assert (best + 1).tolist() == [1, 3, 2, 4, 5, 6, 7, 8]
    kept, moved = Ranking.by_score(RESOLVING).order, Ranking.by_score(NONRESOLVING).order
    assert (kept + 1).tolist() == [1, 3, 4, 2, 7, 5, 8, 6]
    assert (moved + 1).tolist() == [7, 1, 5, 3, 8, 6, 4, 2]
    assert utility_loss(kept, best, y, 3) == pytest.approx(0.000982318, abs=1e-9)
    assert utility_loss(moved, best, y, 3) == pytest.approx(0.0913556, abs=1e-7)
    assert average_precision(kept, best, 3) == pytest.approx(2 / 3)
    assert average_precision(moved, best, 3) == pytest.approx(1 / 6)
    assert average_precision(kept, best, 4) == pytest.approx(11 / 12)
    assert average_precision(moved, best, 4) == pytest.approx(0.25)
    cells = [f"{g}{r}" for g, r in zip(EIGHT["G"], EIGHT["R"], strict=True)]
    assert selection_rates(kept, cells, 4) == {"00": 2, "01": 2, "10": 0, "11": 0}
    assert selection_rates(moved, cells, 4) == {"00": 1, "01": 1, "10": 1, "11": 1}
    assert set(in_group_ratio(moved, y, cells, 4).values()) == {1.0}
    p = FairRanking(y, positions=4, groups={"R": EIGHT["R"].tolist()})
    assert sorted((p.solve("quotas").decision.order + 1).tolist()) == [1, 2, 3, 4]
    # ties at the cut are drawn
    drawn = {tuple(sorted(Ranking.by_score(np.round(RESOLVING, 9), 4, seed).order + 1)) for seed in range(20)}
    assert drawn == {(1, 2, 3, 4), (1, 3, 4, 7)}
    assert Ranking.by_score(np.round(RESOLVING, 9), 4).tied_at_cut == (1, 2)


def test_w4_least_squares_and_w11_means():
    fit = M1.fit(EIGHT)
    y = [fit.coefficients["Y"][t] for t in ("1", "X", "G=1", "R=1", "G=1:R=1")]
    assert np.allclose(y, (32.563492, 0.598942, -7.108466, -2.600529, -0.899471), atol=1e-6)
    x = [fit.coefficients["X"][t] for t in ("1", "G=1", "R=1", "G=1:R=1")]
    assert np.allclose(x, (60, -8, -0.5, 0.5))
    kept = fit.counterfactual(EIGHT, BASE, ["X"]).scores
    assert np.allclose(kept, [61.5915, 54.1915, 58.5921, 56.5921, 54.5, 51.7, 54.8, 51.4], atol=1e-4)
    moved = fit.counterfactual(EIGHT, BASE).scores
    assert np.allclose(moved, [56.8, 49.4, 54.1, 52.1, 54.5, 51.7, 54.8, 51.4])
    assert np.allclose(moved.reshape(4, 2).mean(axis=1), 53.1)


def test_w5_without_mediators():
    frame = pd.DataFrame({"A": list("aabb"), "Y": [5.0, 3, 2, 0]})
    found = CausalModel([("A", "Y")], ["A"], "Y").fit(frame).counterfactual(frame, {"A": "b"})
    assert np.allclose(found.scores, [2, 0, 2, 0])


def test_w6_invariance():
    assert KNOWN.invariance(EIGHT) < 1e-12
    assert KNOWN.invariance(EIGHT, ["X"]) < 1e-12
    crossed = M1.with_coefficients(
        {**KNOWN.coefficients, "X": {"1": 60, "G=1": -10, "R=1": -4, "G=1:R=1": -6}},
        levels={"G": (0, 1), "R": (0, 1)},
    )
    assert crossed.invariance(EIGHT) < 1e-12
    assert crossed.invariance(EIGHT, {"X": ["R"]}) == pytest.approx(4.8, abs=1e-9)


def test_w7_to_w9_measures_by_hand():
    assert average_precision([1, 0, 3], [0, 1, 2], 3) == pytest.approx(1 / 3)
    assert in_group_ratio([0, 2], [9, 7, 5, 3], list("aaaa"), 2) == {"a": 5 / 7}
    assert in_group_ratio([0, 1], [9, 7, 5, 3], list("aaaa"), 2) == {"a": 1.0}
    with pytest.raises(ValueError, match="offset"):
        utility_loss([0, 2], [0, 1], [1, -1, -2], 2)
    assert utility_loss([0, 2], [0, 1], [1, -1, -2], 2, offset=2) == pytest.approx(0.25)


def test_w10_exact_rival():
    groups = {"G": EIGHT["G"].tolist(), "R": EIGHT["R"].tolist()}
    p = FairRanking(
        EIGHT["Y"], positions=4, weights=np.ones(4), groups=groups, constraint=SelectionParity(), integer=True
    )
    for method in ("milp", "prefix-counts", "dynamic-programme"):
        s = p.solve(method)
        assert s.objective == pytest.approx(251.6) and s.status == "optimal"
        assert sorted((s.decision.order + 1).tolist()) == [1, 3, 5, 7]
        assert s.evaluation.metrics["loss"] == pytest.approx(0.0618941, abs=1e-7)
    on_r = p.replace(constraint=SelectionParity(by="R")).solve()
    assert (
        sorted((on_r.decision.order + 1).tolist()) == [1, 2, 3, 4] and on_r.evaluation.metrics["loss"] < 1e-9
    )


# -- the moving company --------------------------------------------------------------------------------------

TABLE = {  # 6.1: rates at k = 50, 100, 200 of MW, MB, FW, FB, by 100 runs of a simulation of our own
    "original": [[1.549, 1.168, 0.329, 0.263], [1.542, 1.195, 0.320, 0.253], [1.525, 1.230, 0.313, 0.256]],
    "resolving": [[1.319, 1.338, 0.430, 0.469], [1.338, 1.350, 0.411, 0.426], [1.354, 1.361, 0.385, 0.405]],
    "nonresolving": [
        [0.389, 0.420, 1.968, 2.105],
        [0.557, 0.571, 1.729, 1.772],
        [0.712, 0.721, 1.478, 1.499],
    ],
    "resolving, printed": [
        [1.075, 1.496, 0.539, 0.727],
        [1.121, 1.509, 0.488, 0.655],
        [1.183, 1.470, 0.455, 0.597],
    ],
    "nonresolving, printed": [
        [0.220, 0.348, 2.027, 2.619],
        [0.359, 0.517, 1.835, 2.256],
        [0.525, 0.703, 1.595, 1.870],
    ],
    "quotas": [[1.432, 1.376, 0.304, 0.294], [1.410, 1.417, 0.299, 0.297], [1.413, 1.419, 0.293, 0.294]],
}


def test_moving_company():
    runs = {name: [] for name in TABLE}
    losses = {name: [] for name in TABLE}
    base = {"G": "F", "R": "B"}
    for seed in range(100):
        d = moving_company(2000, seed)
        cells = (d["G"] + d["R"]).to_numpy()
        fit = M1.fit(d)
        orders = {"original": Ranking.by_score(d["Y"]).order}
        for printed in (False, True):
            for name, resolving in (("resolving", ["X"]), ("nonresolving", ())):
                found = fit.counterfactual(d, base, resolving, as_printed=printed)
                orders[name + ", printed" * printed] = Ranking.by_score(found.scores).order
        for name in TABLE:
            rates = []
            for k in (50, 100, 200):
                if name == "quotas":
                    p = FairRanking(d["Y"], positions=k, groups={"R": d["R"].tolist()})
                    orders[name] = p.solve("quotas").decision.order
                r = selection_rates(orders[name], cells, k)
                rates.append([r[c] for c in ("MW", "MB", "FW", "FB")])
            runs[name].append(rates)
            losses[name].append(utility_loss(orders[name], orders["original"], d["Y"], 200, "min"))
    for name, table in TABLE.items():
        mean, error = np.mean(runs[name], axis=0), np.std(runs[name], axis=0) / 10
        both = np.sqrt(2) * np.maximum(error, 0.003)  # the table has an error of its own
        # quotas of 50 are a tie of remainders, 31.5 and 18.5, which the paper does not say how to break
        rows = slice(1 if name == "quotas" else 0, None)
        assert (np.abs(mean - table)[rows] <= 3 * both[rows] + 5e-4).all(), (name, mean)
    # published: the script's resolving ranking has White men just over 1 and Black men at 1.5
    printed = np.mean(runs["resolving, printed"], axis=0)
    assert (printed[:, 0] < 1.2).all() and (np.abs(printed[:, 1] - 1.5) < 0.08).all()
    mean = {name: float(np.mean(v)) for name, v in losses.items()}
    assert mean["resolving"] == pytest.approx(0.0010, abs=2e-4)
    assert mean["nonresolving"] == pytest.approx(0.053, abs=4e-3)
    assert mean["quotas"] == pytest.approx(0.0006, abs=2e-4)
    assert mean["resolving, printed"] < 0.01 < mean["nonresolving, printed"]


def test_learned_rankers_need_transformed_test_data():
    from sklearn.linear_model import LinearRegression

    base, scores = {"G": "F", "R": "B"}, {}
    for resolving in ((), ("X",)):
        found = {"transformed": [], "unmodified": []}
        for seed in range(10):
            train, test = moving_company(2000, seed), moving_company(2000, 1000 + seed)
            move = CounterfactualTransformer(M1, base, resolving).fit(train)
            ranker = LinearRegression().fit(move.transform(train)[["X"]], move.transform(train)["Y"])
            fair = move.fitted_.counterfactual(test, base, resolving).scores
            ideal = Ranking.by_score(fair).order
            for name, data in (("transformed", move.transform(test)), ("unmodified", test)):
                order = Ranking.by_score(ranker.predict(data[["X"]])).order
                found[name].append(average_precision(order, ideal, 500))
        scores[bool(resolving)] = {name: np.mean(v) for name, v in found.items()}
    assert scores[False]["unmodified"] == pytest.approx(0.40, abs=0.03)
    assert scores[False]["transformed"] == pytest.approx(0.79, abs=0.03)
    assert scores[True]["transformed"] == pytest.approx(scores[True]["unmodified"])
    assert scores[True]["transformed"] == pytest.approx(0.80, abs=0.03)


def test_listnet_on_moved_records():
    """Figure 3: ListNet stopped early, by the scores of the authors' script, at 500.

    The page of the benchmark `ranking/learned` says what differs. Here 10 steps of 1e-3 take the place of
    10,000 of 1e-6: the scores stay so small that both follow the first gradient.
    """
    base, found = {"G": "F", "R": "B"}, {}
    for seed in range(20):
        train, test = moving_company(2000, seed), moving_company(2000, 1000 + seed)
        fit = M1.fit(train)
        goal = fit.counterfactual(train, base, as_printed=True).scores
        ideal = Ranking.by_score(fit.counterfactual(test, base, as_printed=True).scores).order
        cases = {
            "original": (train["X"], train["Y"], test["X"], Ranking.by_score(test["Y"]).order),
            "LTR": (fit.transform(train, base)["X"], goal, test["X"], ideal),
            "cf-LTR": (fit.transform(train, base)["X"], goal, fit.transform(test, base)["X"], ideal),
        }
        for name, (seen, scores, strength, best) in cases.items():
            x, new = (
                np.column_stack([d["G"] == "F", d["R"] == "B", column])
                for d, column in ((train, seen), (test, strength))
            )
            ranker = ListNet(epochs=10, rate=1e-3).fit(x, rank_relevance(scores, 500))
            order = Ranking.by_score(ranker.predict(new)).order
            found.setdefault(name, []).append(average_precision(order, best, 500))
    mean = {name: np.mean(values) for name, values in found.items()}
    assert mean["original"] == pytest.approx(0.77, abs=0.05)
    assert mean["cf-LTR"] == pytest.approx(0.91, abs=0.04)
    assert mean["LTR"] < 0.45  # printed: .27


# -- COMPAS --------------------------------------------------------------------------------------------------

CELLS = {  # counts by decile, 1 (best) to 10
    "FB": [46, 59, 44, 46, 46, 41, 37, 26, 36, 20],
    "FW": [46, 30, 32, 24, 33, 34, 20, 11, 11, 16],
    "MB": [264, 245, 209, 235, 236, 265, 270, 249, 273, 208],
    "MW": [217, 156, 123, 149, 113, 86, 67, 63, 50, 26],
}
MEMBERS = {
    "resolving": {"FB": (46, 105, 149), "FW": (46, 76, 108), "MB": (408, 602, 870), "MW": (0, 217, 373)},
    "nonresolving": {"FB": (46, 105, 149), "FW": (0, 46, 76), "MB": (454, 632, 902), "MW": (0, 217, 373)},
}
LOSSES = {"resolving": (0.0320, 0.0108, 0.0102), "nonresolving": (0.0422, 0.0143, 0.0128)}
SHIFTS = {
    "resolving": {"FB": 0.0, "MB": 0.0775, "FW": -0.0851, "MW": -0.2754},
    "nonresolving": {"FB": 0.0, "MB": 0.2291, "FW": -0.1287, "MW": -0.2821},
}


@pytest.mark.parametrize("kind", MEMBERS)
def test_w12_compas_from_the_table(kind):
    rows = [(c, d) for c, counts in CELLS.items() for d, m in enumerate(counts, 1) for _ in range(m)]
    cells, deciles = (np.array(v) for v in zip(*rows, strict=True))
    y = -1.7578 + 0.352553 * (10 - deciles)
    order = Ranking.by_score(y + np.vectorize(SHIFTS[kind].get)(cells)).order
    ideal = Ranking.by_score(y).order
    for at, k in enumerate((500, 1000, 1500)):
        chosen = cells[order[:k]]
        assert {c: (chosen == c).sum() for c in CELLS} == {c: m[at] for c, m in MEMBERS[kind].items()}
        assert utility_loss(order, ideal, 10.0 - deciles, k) == pytest.approx(LOSSES[kind][at], abs=5e-5)
        ratios = in_group_ratio(order, 10.0 - deciles, ["all"] * len(order), k)
        assert ratios["all"] == pytest.approx((8 / 9, 7 / 8, 6 / 7)[at])


def test_compas_from_the_records(shared_data):
    d = pd.read_csv(shared_data / "ranking" / "cifrank-compas.csv")
    base = {"G": "Female", "R": "Black"}
    fit = M1.fit(d)
    assert fit.coefficients["Y"]["X"] == pytest.approx(0.43027, abs=5e-6)
    effects = fit.effects(base)
    assert np.allclose(effects["total"], [0, 0.1287, -0.2291, 0.2821], atol=5e-5)
    assert np.allclose(effects["direct"], [0, 0.0851, -0.0775, 0.2754], atol=6e-5)
    for kind, resolving in (("resolving", ["X"]), ("nonresolving", ())):
        found = fit.counterfactual(d, base, resolving)
        chosen = d["GR"].iloc[Ranking.by_score(found.scores).order]
        for at, k in enumerate((500, 1000, 1500)):
            assert {c: (chosen[:k] == c).sum() for c in CELLS} == {c: m[at] for c, m in MEMBERS[kind].items()}
    # the knife edge: a correlation of errors of -.0011 brings 144 White men into the first 500
    for rho, men in ((0.0, 0), (-0.001, 0), (-0.0011, 144)):
        found = fit.counterfactual(d, base, ["X"], rho=rho)
        top = d["GR"].iloc[Ranking.by_score(found.scores, 500).order]
        assert (top == "MW").sum() == men


def test_csrankings(shared_data):
    d = pd.read_csv(shared_data / "ranking" / "cifrank-csrankings.csv")
    model = CausalModel([("G", "Y"), ("R", "Y")], ["G", "R"], "Y")
    means = d.groupby("GR")["Y"].mean()
    assert d["GR"].value_counts().to_dict() == {"LW": 15, "LN": 9, "SN": 9, "SW": 8, "LS": 5, "SS": 5}
    levels = sorted(set(d["G"])), sorted(set(d["R"]))
    small = next(v for v in levels[0] if v.lower().startswith("s"))
    south = d.loc[d["GR"] == "SS", "R"].iloc[0]
    found = model.fit(d).counterfactual(d, {"G": small, "R": south})
    assert np.allclose(found.shifts, means["SS"] - means[d["GR"]].to_numpy())
    before = d["GR"].iloc[Ranking.by_score(d["Y"]).order[:20]].value_counts().to_dict()
    after = d["GR"].iloc[Ranking.by_score(found.scores).order[:20]].value_counts().to_dict()
    assert before == {"LW": 11, "LN": 6, "LS": 3}
    assert after == {"LW": 6, "SN": 4, "SW": 4, "LN": 2, "LS": 2, "SS": 2}
    loss = utility_loss(
        Ranking.by_score(found.scores).order, Ranking.by_score(d["Y"]).order, d["Y"], 20, "min"
    )
    assert loss == pytest.approx(0.152, abs=5e-4)


def test_age_as_a_numeric_attribute():
    """6.4: resolving scores shrink the gaps of race and age; the loss stays small."""
    model = CausalModel(
        [(a, v) for a in ("G", "R", "A") for v in ("X", "Y")] + [("X", "Y")],
        ["G", "R", "A"],
        "Y",
        interactions="none",
        knots={"A": (45.0, 55.0)},
    )
    gaps, losses = {"original": [], "resolving": []}, []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        n = 10_000
        female, black = rng.permutation(np.arange(n) < 3700), rng.permutation(np.arange(n) < 3700)
        age = np.clip(rng.normal(np.where(black, 45, 35), 10), 18, 70)
        of_age = -0.02 * np.maximum(age - 45, 0) - 0.08 * np.maximum(age - 55, 0)
        sex, race = rng.normal(-1.0 * female, 0.7), rng.normal(-1.0 * black, 0.7)
        x = 0.95 * sex + 0.05 * of_age + rng.normal(0, 0.1, n)
        y = 0.7 * x + 0.1 * sex + 0.1 * race + 0.1 * of_age
        d = pd.DataFrame({"G": female, "R": black, "A": age, "X": x, "Y": y})
        found = model.fit(d).counterfactual(d, {"G": True, "R": True, "A": 60.0}, {"X": ["G"]})
        for name, scores in (("original", d["Y"].to_numpy()), ("resolving", found.scores)):
            parts = age > 55, black
            gaps[name].append([scores[~part].mean() - scores[part].mean() for part in parts])
        losses.append(
            utility_loss(Ranking.by_score(found.scores).order, Ranking.by_score(y).order, y, 200, "min")
        )
    before, after = np.mean(gaps["original"], axis=0), np.mean(gaps["resolving"], axis=0)
    assert (np.abs(after) < 0.35 * np.abs(before)).all(), (before, after)
    assert max(losses) < 0.01


def test_law_school_with_two_mediators(shared_data):
    """The first 200 of 1,823 students by first-year grades; admission test and college grades mediate."""
    d = pd.read_csv(shared_data / "tabular" / "lawschool.csv")
    sex, race = np.where(d.gender == 1, "man", "woman"), np.where(d.race7 == 1, "White", "other")
    frame = pd.DataFrame({"G": sex, "R": race, "test": d.lsat, "grades": d.ugpa, "Y": d.zfygpa})
    edges = [(a, b) for a in ("G", "R") for b in ("test", "grades", "Y")] + [("test", "Y"), ("grades", "Y")]
    fit = CausalModel(edges, ["G", "R"], "Y").fit(frame)
    base, cells = {"G": "woman", "R": "other"}, [f"{g}, {r}" for g, r in zip(sex, race, strict=True)]
    ends = {}
    for name, resolving in (("kept", ["test", "grades"]), ("half", ["test"]), ("moved", [])):
        scores = fit.counterfactual(frame, base, resolving).scores
        rates = selection_rates(Ranking.by_score(scores, 200).order, cells, 200)
        ends[name] = (min(rates.values()), max(rates.values()))
        means = pd.Series(scores).groupby(cells).mean()
        assert (np.ptp(means) < 1e-9) == (name == "moved")  # residuals sum to 0 in every saturated group
    rates = selection_rates(Ranking.by_score(frame.Y, 200).order, cells, 200)
    ends["sort"] = (min(rates.values()), max(rates.values()))
    assert ends["sort"] == pytest.approx((0.203, 1.233), abs=5e-4)
    assert ends["moved"] == pytest.approx((0.729, 1.062), abs=5e-4)
    spread = {name: high - low for name, (low, high) in ends.items()}
    assert spread["moved"] < spread["half"] < spread["sort"] and spread["kept"] < spread["sort"]


def test_compas_two_years(shared_data):
    """The public records hold 4,440 or, filtered, 3,611 defendants like the paper's 4,162."""
    d = pd.read_csv(shared_data / "tabular" / "compas-scores-two-years.csv")
    d = d[d.race.isin(["African-American", "Caucasian"]) & (d.priors_count > 0)]
    kept = d[
        d.days_b_screening_arrest.between(-30, 30)
        & (d.is_recid != -1)
        & (d.c_charge_degree != "O")
        & (d.score_text != "N/A")
    ]
    assert (len(d), len(kept)) == (4440, 3611)
    frame = pd.DataFrame(
        {"G": kept.sex, "R": kept.race, "X": -kept.priors_count, "Y": 10.0 - kept.decile_score}
    )
    fit, base = M1.fit(frame), {"G": "Female", "R": "African-American"}
    losses, men = [], frame.G.to_numpy() == "Male"
    for resolving in (["X"], []):
        p = FairRanking.from_causal(
            fit, frame, base, resolving=resolving, positions=500, weights=np.ones(500)
        )
        lottery, ranking = p.solve(), p.solve("counterfactual", seed=0)
        assert lottery.method == "isotonic" and lottery.status == "optimal"
        assert not lottery.evaluation.violations and not ranking.evaluation.violations
        assert lottery.objective >= ranking.objective - 1e-9
        losses.append(ranking.evaluation.metrics["loss"])
    assert 0 < losses[0] <= losses[1] < 0.1
    white_men = men & (frame.R.to_numpy() == "Caucasian")
    by_score = white_men[Ranking.by_score(frame.Y, 500).order].mean() / white_men.mean()
    assert by_score > 1.3  # as among the paper's records, 1.5
