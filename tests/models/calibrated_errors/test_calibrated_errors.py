"""The declaration, stage 1 by every method and backend, the decision and its tables."""

import json
from fractions import Fraction as F

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.backends.registry import backends
from forcopt.data import COMPAS_DECILES
from forcopt.fairness import (
    FALSE_POSITIVE,
    TRUE_POSITIVE,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    GroupRates,
    PairwiseFairness,
)
from forcopt.models import CalibratedEqualErrors
from forcopt.models.calibrated_errors import ScoreKernel

BASE = {"L": ([0.2, 0.6], [0.5, 0.5]), "H": ([0.4, 0.8], [0.5, 0.5])}
AVAILABLE = {n: b for n, b in backends().items() if not b.missing() and not b.capabilities.only_integer}
QP_BACKENDS = [n for n in AVAILABLE if n in ("highs", "clarabel", "osqp", "scs", "pyomo:ipopt")]


def base(**fields):
    return CalibratedEqualErrors(**{"scores": BASE, "cutoff": 0.5, **fields})


def compas(**fields):
    """The two groups of COMPAS; label 1 is no new offence, score 1 of the table the highest."""
    table = COMPAS_DECILES["filtered"]
    counts = {name: (people, np.subtract(people, bad)) for name, (people, bad) in table.items()}
    return CalibratedEqualErrors.from_counts(counts, **{"cutoff": 0.54, **fields})


def random_problem(seed, groups=2, **fields):
    rng = np.random.default_rng(seed)
    scores = {}
    for a in range(groups):
        count = int(rng.integers(2, 7))
        values = np.sort(rng.choice(np.arange(1, 100), size=count, replace=False)) / 100
        masses = rng.integers(1, 20, size=count).astype(float)
        scores[f"g{a}"] = (values, masses / masses.sum())
    shares = rng.integers(1, 9, size=groups).astype(float)
    weights = {f"g{a}": float(w) for a, w in enumerate(shares / shares.sum())}
    return CalibratedEqualErrors(
        scores=scores, weights=weights, cutoff=int(rng.integers(20, 80)) / 100, **fields
    )


# -- the optimum -------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), groups=st.integers(2, 4))
def test_the_polygon_and_the_linear_program_agree(seed, groups):
    problem = random_problem(seed, groups)
    exact, linear = problem.solve("polygon"), problem.solve("lp")
    assert exact.status is linear.status
    if linear.status is fo.Status.INFEASIBLE:
        assert "calibration needs a true positive rate" in exact.reason
        assert "predictive_value" in linear.model_solution.reason and linear.reason == exact.reason
        return
    assert exact.objective == pytest.approx(linear.objective, abs=1e-7)
    for s in (exact, linear):
        assert s.evaluation.feasible
    alone, equal = problem.solve("as-predicted"), problem.solve("equal-odds")
    assert alone.objective <= equal.objective + 1e-7
    assert equal.objective <= linear.objective + 1e-7
    opportunity = random_problem(seed, groups, constraint=EqualOpportunity()).solve()
    assert alone.objective - 1e-7 <= opportunity.objective <= linear.objective + 1e-7


def test_many_values():
    """150 values of any floats a group: the fractions stay small, the answers agree, the scores are right."""
    rng = np.random.default_rng(7)
    scores = {}
    for a in range(3):
        masses = rng.random(150)
        scores[f"g{a}"] = (rng.beta(2, 2 + 0.3 * a, size=150), masses / masses.sum())
    p = CalibratedEqualErrors(scores=scores, cutoff=0.5)
    assert len(str(p.best_rates()[0])) < 200
    s = p.solve()
    assert s.evaluation.feasible
    assert s.objective == pytest.approx(p.solve("polygon").objective, abs=1e-9)


@pytest.mark.parametrize("backend", AVAILABLE)
@pytest.mark.parametrize("make", [base, compas], ids=["base", "compas"])
def test_every_backend_for_linear_programs_agrees(make, backend):
    problem = make()
    accuracy = max(1e-6, 10 * backends()[backend].accuracy)
    s = problem.solve(backend=backend)
    assert s.status is fo.Status.OPTIMAL
    assert s.backend == backend
    assert s.objective == pytest.approx(problem.solve("polygon").objective, abs=accuracy)
    assert s.evaluation.violation <= accuracy


@pytest.mark.parametrize("backend", QP_BACKENDS)
@pytest.mark.parametrize("relaxation", [1.0, [[2.0, 1.0], [1.0, 3.0]]])
def test_every_backend_for_quadratic_programs_agrees(relaxation, backend):
    problem = base(relaxation=relaxation)
    accuracy = max(1e-6, 100 * backends()[backend].accuracy)
    s = problem.solve(backend=backend)
    assert s.status is fo.Status.OPTIMAL
    assert s.objective == pytest.approx(problem.solve(backend="highs").objective, abs=accuracy)


def test_the_penalty_is_the_one_declared():
    """Against the best of a fine grid of rates of either group, on the one edge where both optima lie."""
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    problem = base(relaxation=matrix)
    s = problem.solve(backend="clarabel")
    z = np.array([k.rates(0.5) for k in s.decision.kernels.values()])
    d = z[0] - z[1]
    loss = sum(0.5 * (x * (1 - mu) + (1 - y) * mu) for (x, y), mu in zip(z, (0.4, 0.6), strict=True))
    assert s.objective == pytest.approx(loss + d @ matrix @ d, abs=1e-9)
    best = np.inf
    for x0 in np.linspace(0.25, 0.4, 76):
        for x1 in np.linspace(0.2, 0.35, 76):
            first = (x0, min(9 / 4 * x0, 0.75 + 3 / 8 * (x0 - 1 / 3)))
            second = (x1, min(8 / 3 * x1, 2 / 3 + 4 / 9 * (x1 - 1 / 4)))
            d = np.subtract(first, second)
            value = 0.5 * (first[0] * 0.6 + (1 - first[1]) * 0.4 + second[0] * 0.4 + (1 - second[1]) * 0.6)
            best = min(best, value + d @ matrix @ d)
    assert best - 1e-4 <= s.objective <= best + 1e-9


def test_several_groups_are_punished_in_pairs():
    scores = {**BASE, "M": ([0.3, 0.7], [0.5, 0.5])}
    s = base(scores=scores, relaxation=1.0).solve()
    z = [np.array(k.rates(0.5)) for k in s.decision.kernels.values()]
    pairs = sum(float((z[a] - z[b]) @ (z[a] - z[b])) for a, b in ((0, 1), (0, 2), (1, 2)))
    errors = s.problem.evaluate(s.decision).objective - pairs
    plain = base(scores=scores).evaluate(s.decision).objective
    assert errors == pytest.approx(plain, abs=1e-12)


def test_a_constraint_and_a_penalty_together():
    s = base(relaxation=1.0, constraint=EqualOpportunity()).solve()
    tp = s.decision.rates.rate(TRUE_POSITIVE)
    assert tp[0] == pytest.approx(tp[1], abs=1e-7)
    assert base(relaxation=1.0).solve().objective <= s.objective + 1e-9
    assert base(constraint=EqualOpportunity()).solve().objective <= s.objective + 1e-9


def test_other_notions_are_met():
    s = base(constraint=DemographicParity()).solve()
    shares = [float(k.masses @ k.accepted(0.5)) for k in s.decision.kernels.values()]
    assert shares[0] == pytest.approx(shares[1], abs=1e-7)
    assert s.evaluation.feasible
    loose = base(constraint=EqualizedOdds(0.05)).solve()
    assert base().solve().objective > loose.objective > base().solve("as-predicted").objective
    with pytest.raises(fo.DeclarationError, match="equal rates only"):
        loose.problem.solve("polygon")


def test_a_mixed_population_weighs_its_groups():
    scores, k = compas().scores, 0.54 / 0.46
    uneven = CalibratedEqualErrors(
        scores=scores, weights={"Caucasian": 0.9, "African-American": 0.1}, cutoff=0.54
    )
    assert uneven.shares.tolist() == [0.1, 0.9]
    z = [float(v) for v in uneven.best_rates()]
    share = uneven.shares @ uneven.base_rates
    assert uneven.solve().objective == pytest.approx(k * z[0] * (1 - share) + (1 - z[1]) * share)
    assert uneven.solve().objective < compas().solve().objective - 1e-3


def test_in_a_model_of_ones_own():
    """The largest common true positive rate at a common false positive rate of 0.4 (the upper edge of H)."""
    m = fo.Model()
    parts = base().declare(m)
    m.subject_to(parts.rates.rate(FALSE_POSITIVE) <= 0.4)
    m.maximize(parts.rates.rate(TRUE_POSITIVE)[0])
    assert m.solve().objective == pytest.approx(2 / 3 + 4 / 9 * (0.4 - 0.25))


def test_what_needs_a_relaxation_and_what_has_none():
    assert base().method().name == "lp"
    assert base(relaxation=1.0).method().name == "qp"
    with pytest.raises(fo.DeclarationError, match="use 'qp'"):
        base(relaxation=1.0).solve("lp")
    with pytest.raises(fo.DeclarationError, match="use 'lp'"):
        base().solve("qp")
    with pytest.raises(fo.DeclarationError, match="equal rates only"):
        base(relaxation=1.0).solve("polygon")


def test_few_who_are_refused_may_miss_the_margin_by_the_rounding_of_a_solver():
    scores = {
        "g0": ([0.6, 0.3], [0.5, 0.5]),
        "g1": ([0.9, 0.8], [0.5, 0.5]),
        "g2": ([0.22, 0.51, 0.73], [3 / 7, 3 / 7, 1 / 7]),
    }
    weights = {"g0": 3 / 7, "g1": 3 / 7, "g2": 1 / 7}
    s = base(scores=scores, weights=weights, cutoff=0.3, relaxation=0.1).solve()
    assert s.status is fo.Status.OPTIMAL and s.evaluation.feasible


def test_an_infeasible_problem_has_reasons_and_a_way_out():
    scores = {"L": ([0.4], [1]), "H": ([0.6], [1])}
    p = base(scores=scores)
    assert p.solve().status is fo.Status.INFEASIBLE
    assert "positive_predictive_value[L]" in p.solve().model_solution.reason
    assert "the scores of 'L' reach" in p.solve("polygon").reason
    s = base(scores=scores, relaxation=1.0).solve()
    assert s.status is fo.Status.OPTIMAL


# -- evaluation and the decision -----------------------------------------------------------------------------


def test_as_predicted_is_calibrated_and_unequal():
    s = base().solve("as-predicted")
    assert s.objective == pytest.approx(0.3)
    assert s.bound == s.objective  # no decision loses less
    assert s.evaluation.violations == pytest.approx(
        {"false positive rate": 1 / 12, "true positive rate": 1 / 12}
    )


def test_equal_odds_are_equal_and_not_calibrated():
    s = base().solve("equal-odds")
    assert s.status is fo.Status.APPROXIMATE
    assert set(s.evaluation.violations) == {"calibration of L", "calibration of H"}
    assert s.objective == pytest.approx(4 / 13)


def test_an_interval_forbids_scores_within():
    p = base(interval=0.05)
    kernels = {n: ScoreKernel.unchanged(*s) for n, s in p.scores.items()}
    kernels["L"] = ScoreKernel(*p.scores["L"], np.array([0.2, 0.47]), np.eye(2))
    e = p.evaluate(p.decision(kernels))
    assert e.violations["interval"] == pytest.approx(0.25)
    assert e.violations["calibration of L"] == pytest.approx(0.065)
    s = p.solve()
    for k in s.decision.kernels.values():
        assert (np.abs(k.outputs[k.joint.sum(axis=0) > 0] - 0.5) >= 0.05 - 1e-12).all()


def test_a_decision_for_something_else_is_refused():
    s = base().solve()
    with pytest.raises(fo.DeclarationError, match="for groups L, H, not a, b"):
        base(scores={"a": BASE["L"], "b": BASE["H"]}).evaluate(s.decision)
    with pytest.raises(fo.DeclarationError, match="another score of group 'H'"):
        base(scores={**BASE, "H": ([0.4, 0.7], [0.5, 0.5])}).evaluate(s.decision)


def test_transform_draws_scores_that_are_calibrated():
    """100,000 people: each frequency within 0.012, over 5 standard deviations (error below 1e-4 in all)."""
    p = compas()
    decision = p.solve().decision
    rng = np.random.default_rng(1)
    n = 100_000
    groups = rng.choice(p.groups, size=n, p=p.shares)
    scores = np.empty(n)
    for name, (values, masses) in p.scores.items():
        scores[groups == name] = rng.choice(values, size=(groups == name).sum(), p=masses / masses.sum())
    labels = rng.random(n) < scores
    new = decision.transform(scores, groups, seed=2)
    rates = GroupRates.from_records(new >= p.cutoff - 1e-9, groups, labels.astype(int))
    for rate, expected in zip((FALSE_POSITIVE, TRUE_POSITIVE), (155 / 411, 2 / 3), strict=True):
        assert rates.rate(rate) == pytest.approx([expected] * 2, abs=0.012)
    assert (new - labels).mean() == pytest.approx(0, abs=0.012)
    high = new >= 0.7
    assert labels[high].mean() == pytest.approx(new[high].mean(), abs=0.012)
    assert (decision.transform(scores, groups, seed=2) == new).all()
    assert (decision.transform(scores, groups, seed=3) != new).any()


def test_transform_refuses_what_it_does_not_know():
    decision = base().solve().decision
    with pytest.raises(fo.DeclarationError, match=r"group 'L': 0\.3 is not among its 2 scores"):
        decision.transform([0.2, 0.3], ["L", "L"])
    with pytest.raises(fo.DeclarationError, match="'M'; the groups are L, H"):
        decision.transform([0.2], ["M"])
    with pytest.raises(fo.DeclarationError, match="scores has 1, groups has 2"):
        decision.transform([0.2], ["L", "H"])
    assert decision.transform([0.2 + 1e-12], ["L"], seed=0).size == 1


def test_the_tables_say_what_is_true():
    s = base().solve()
    calibration = s.decision.calibration_table()
    assert (calibration["score"] - calibration["share with label 1"]).abs().max() < 1e-6
    for name in "LH":
        assert calibration.loc[calibration["group"] == name, "share"].sum() == pytest.approx(1)
    rates = s.decision.rate_table().set_index(["group", "scores"])
    assert rates.loc[("L", "before"), "true positive rate"] == pytest.approx(0.75)
    assert rates.loc[("L", "after"), "true positive rate"] == pytest.approx(9 / 13)
    # rates that are equal come with predictive values that are not (Chouldechova 2017)
    assert rates.loc[("L", "after"), "positive predictive value"] == pytest.approx(0.6)
    assert rates.loc[("H", "after"), "positive predictive value"] == pytest.approx(0.7714286)
    assert rates.loc[("L", "after"), "negative predictive value"] == pytest.approx(0.7714286)
    assert rates.loc[("H", "after"), "squared error"] == pytest.approx(0.2 + 1 / 650)
    assert "after" in str(s.decision)


def test_the_plot_has_a_panel_for_each_group(tmp_path):
    figure = base().solve().decision.plot(tmp_path / "scores.png")
    assert (tmp_path / "scores.png").stat().st_size > 1000
    assert [axes.get_title() for axes in figure.axes[1:]] == ["L", "H"]


# -- declaring ---------------------------------------------------------------------------------------------


def test_cutoff_and_cost_ratio_say_each_other():
    assert base(cutoff=0.54).cost_ratio == pytest.approx(0.54 / 0.46)
    lending = CalibratedEqualErrors(scores=BASE, cost_ratio=10)
    assert lending.cutoff == pytest.approx(10 / 11)
    assert CalibratedEqualErrors(scores=BASE, cost_ratio=10, cutoff=10 / 11) == lending
    with pytest.raises(fo.DeclarationError, match="contradict each other"):
        CalibratedEqualErrors(scores=BASE, cost_ratio=1.17, cutoff=0.54)


def test_a_declaration_is_a_file(tmp_path):
    for p in (compas(), base(relaxation=2.0, interval=0.01), base(constraint=EqualOpportunity(0.1))):
        data = json.loads(json.dumps(p.to_dict()))
        assert CalibratedEqualErrors.from_dict(data) == p
    p.save(tmp_path / "p.json")


def test_from_counts_leaves_nobody_out():
    p = CalibratedEqualErrors.from_counts({"a": ([10, 0, 10], [2, 0, 6]), "b": ([5, 5], [2, 4])}, cutoff=0.5)
    assert p.scores["a"].tolist() == [[0.2, 0.6], [0.5, 0.5]]
    with pytest.raises(fo.DeclarationError, match="counts of 'a'"):
        CalibratedEqualErrors.from_counts({"a": ([1], [2]), "b": ([2], [1])}, cutoff=0.5)


def test_compas_is_that_of_the_file(shared_data):
    """From the CSV: the same problem as from the printed table."""
    data = fo.data.load_compas(shared_data / "tabular/compas-scores-two-years.csv")
    counts = {}
    for race in ("African-American", "Caucasian"):
        of_race = data.of_groups(race)
        deciles = of_race.frame["decile_score"].to_numpy()
        people = np.bincount(deciles, minlength=11)[1:]
        counts[race] = (people, people - np.bincount(deciles[of_race.labels == 1], minlength=11)[1:])
    p = CalibratedEqualErrors.from_counts(counts, cutoff=0.54)
    assert p == compas()
    assert p.best_rates() == (F(155, 411), F(2, 3))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"scores": {"L": BASE["L"]}}, "1 groups; at least two"),
        ({"scores": {}}, "0 groups"),
        ({"scores": {**BASE, "M": ([], [])}}, r"group 'M': the shape is \(2, 0\)"),
        ({"scores": {**BASE, "M": ([0.1, 0.2], [0.5, 0.4])}}, "group 'M': the masses sum to 0.9"),
        ({"scores": {**BASE, "M": ([0.0], [1.0])}}, "group 'M': the base rate is 0"),
        ({"scores": {**BASE, "M": ([0.1, -0.2], [0.5, 0.5])}}, r"value\[1\] is -0.2"),
        ({"scores": {**BASE, "M": ([0.1, 0.2], [0.5])}}, "scores"),
        ({"weights": {"L": 0.5, "M": 0.5}}, "given for L, M; the groups are L, H"),
        ({"weights": {"L": 1.0, "H": 0.0}}, "weight of 'H' is 0.0; it must be positive"),
        ({"weights": {"L": 0.5, "H": 0.6}}, "weights sum to 1.1"),
        ({"weights": {"L": 0.5, "H": float("nan")}}, "weights.H is nan"),
        ({"cutoff": 0.0}, "cutoff"),
        ({"cutoff": 1.0}, "cutoff"),
        ({"cutoff": float("nan")}, "cutoff"),
        ({"cutoff": None}, "the cutoff is missing"),
        ({"cutoff": None, "cost_ratio": -1.0}, "cost_ratio"),
        ({"interval": 0.6}, "interval is 0.6"),
        ({"interval": -0.1}, "interval"),
        ({"margin": 0.0}, "margin"),
        ({"constraint": PairwiseFairness(pairs=[[0, 1]])}, "PairwiseFairness looks at single records"),
        ({"relaxation": [[1, 2], [3, 4]]}, "not symmetric: 2 and 3"),
        ({"relaxation": [[1, 2], [2, 1]]}, "eigenvalue -1; it must be semidefinite"),
        ({"relaxation": -1.0}, "semidefinite"),
        ({"relaxation": [1.0, 2.0]}, r"must be \(2, 2\), or a number"),
    ],
)
def test_bad_declarations(fields, message):
    with pytest.raises(fo.DeclarationError, match=message):
        base(**fields)


def test_methods_say_what_they_are():
    methods = base().methods
    assert set(methods) == {"lp", "qp", "polygon", "as-predicted", "equal-odds"}
    assert {n for n, m in methods.items() if m.exact} == {"lp", "qp", "polygon"}
    assert "Theorem 4" in methods["polygon"].cites


def test_equal_odds_with_a_steep_relaxation_has_a_fitting_solver():
    """HiGHS ends its quadratic programs of these instances above the optimum, and says that it failed."""
    scores = {
        "a": ([0.65, 0.75, 0.95], [4 / 9, 3 / 9, 2 / 9]),
        "b": ([0.15, 0.9], [7 / 15, 8 / 15]),
        "c": ([0.1, 0.65, 0.75, 0.85], [8 / 17, 1 / 17, 3 / 17, 5 / 17]),
    }
    for weight in (1e3, 1e4, 1e5):
        p = CalibratedEqualErrors(scores=scores, cutoff=0.3, relaxation=weight)
        s = p.solve("equal-odds")
        assert s.status == "approximate"
        assert s.objective == pytest.approx(p.solve("equal-odds", backend="scip").objective, abs=1e-6)
        assert s.objective <= p.solve().objective + 1e-6


@pytest.mark.parametrize("scores", [[0.2, 0.1], [0.1, 0.3]])
def test_counts_of_other_scores_are_refused(scores):
    """Two tables by score were paired by position."""
    people, positive = pd.Series([10, 10], index=[0.1, 0.2]), pd.Series([2, 6], index=scores)
    with pytest.raises(fo.DeclarationError, match=r"counts of 'a': the people and those .* other indices"):
        CalibratedEqualErrors.from_counts({"a": (people, positive), "b": ([5, 5], [2, 4])}, cutoff=0.5)
