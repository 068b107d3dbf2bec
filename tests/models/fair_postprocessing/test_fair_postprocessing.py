import json
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.backends.registry import backends
from forcopt.fairness import (
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    ErrorParity,
    FalsePositiveParity,
    PairwiseFairness,
)
from forcopt.models import FairPostprocessing
from forcopt.models.fair_postprocessing import RandomizedPostprocessor

SMALL = [[[36, 4], [9, 5]], [[4, 16], [6, 20]]]
COMPAS = [[[873, 473], [999, 408]], [[641, 1188], [282, 414]]]
LP_BACKENDS = [name for name, b in backends().items() if not b.missing() and not b.capabilities.only_integer]

tables = st.lists(st.integers(1, 30), min_size=8, max_size=8).map(lambda n: np.reshape(n, (2, 2, 2)))
wide_tables = st.integers(1, 4).flatmap(
    lambda k: st.lists(st.integers(1, 30), min_size=4 * k, max_size=4 * k).map(
        lambda n: np.reshape(n, (2, k, 2))
    )
)


def small(constraint=None, **fields):
    return FairPostprocessing(**{"counts": SMALL, "constraint": constraint or EqualizedOdds(0.1), **fields})


# -- the optimum -------------------------------------------------------------------------------------------


def rational_optimum(counts, rows_of, tolerance):
    """The least error over all vertices of the feasible set, in exact fractions, for two groups.

    The variables are p[0,0], p[0,1], p[1,0], p[1,1]; a vertex makes four independent conditions tight.
    """
    counts = [[[Fraction(int(n)) for n in row] for row in half] for half in counts]
    mass = [[counts[0][a][y] + counts[1][a][y] for y in (0, 1)] for a in (0, 1)]
    total = sum(map(sum, mass))
    cost = [(counts[h][a][0] - counts[h][a][1]) / total for h in (0, 1) for a in (0, 1)]
    constant = sum(mass[a][1] for a in (0, 1)) / total
    conditions = []  # row . p <= bound
    for i in range(4):
        unit = [Fraction(int(i == j)) for j in range(4)]
        conditions += [(unit, Fraction(1)), ([-v for v in unit], Fraction(0))]
    for labels in rows_of:
        of = [sum(mass[a][y] for y in labels) for a in (0, 1)]
        row = [(1 - 2 * a) * sum(counts[h][a][y] for y in labels) / of[a] for h in (0, 1) for a in (0, 1)]
        conditions += [(row, Fraction(tolerance)), ([-v for v in row], Fraction(tolerance))]
    best = None
    for tight in combinations(conditions, 4):
        p = solve_exactly([row for row, _ in tight], [bound for _, bound in tight])
        if p is not None and all(
            sum(r * v for r, v in zip(row, p, strict=True)) <= b for row, b in conditions
        ):
            error = constant + sum(c * v for c, v in zip(cost, p, strict=True))
            best = error if best is None else min(best, error)
    return best


def solve_exactly(matrix, right):
    """Gaussian elimination in fractions; None if the matrix is singular."""
    rows = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    for i in range(len(rows)):
        pivot = next((j for j in range(i, len(rows)) if rows[j][i]), None)
        if pivot is None:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for j in range(len(rows)):
            if j != i and rows[j][i]:
                rows[j] = [v - rows[j][i] * w for v, w in zip(rows[j], rows[i], strict=True)]
    return [row[-1] for row in rows]


@pytest.mark.parametrize(
    ("notion", "rows_of"),
    [
        (EqualizedOdds, [(0,), (1,)]),
        (EqualOpportunity, [(1,)]),
        (FalsePositiveParity, [(0,)]),
        (DemographicParity, [(0, 1)]),
    ],
)
@settings(max_examples=4, deadline=None)
@given(counts=tables, percent=st.integers(0, 40))
def test_the_optimum_is_that_of_the_best_vertex(notion, rows_of, counts, percent):
    problem = FairPostprocessing(counts=counts, constraint=notion(percent / 100))
    expected = rational_optimum(counts, rows_of, Fraction(percent, 100))
    assert problem.solve().objective == pytest.approx(float(expected), abs=1e-9)


@pytest.mark.parametrize("backend", LP_BACKENDS)
@pytest.mark.parametrize("counts", [SMALL, COMPAS], ids=["small", "compas"])
def test_every_backend_for_linear_programs_agrees(counts, backend):
    constraint = EqualizedOdds(0.05) & DemographicParity(0.08)
    problem = FairPostprocessing(counts=counts, constraint=constraint)
    s = problem.solve(backend=backend)
    accuracy = max(1e-7, 10 * backends()[backend].accuracy)
    assert s.status is fo.Status.OPTIMAL
    assert s.backend == backend
    assert s.objective == pytest.approx(problem.solve().objective, abs=accuracy)
    assert problem.evaluate(s.decision).violation <= accuracy


@settings(max_examples=20, deadline=None)
@given(counts=wide_tables, ends=st.tuples(st.floats(0, 1), st.floats(0, 1)), share=st.floats(0, 1))
def test_the_error_is_convex_and_nonincreasing_in_the_tolerance(counts, ends, share):
    low, high = sorted(ends)
    middle = low + share * (high - low)

    def error(tolerance):
        return FairPostprocessing(counts=counts, constraint=EqualizedOdds(tolerance)).solve().objective

    at_low, at_middle, at_high = error(low), error(middle), error(high)
    assert at_low + 1e-9 >= at_middle >= at_high - 1e-9
    assert at_middle <= (1 - share) * at_low + share * at_high + 1e-9


@settings(max_examples=20, deadline=None)
@given(counts=wide_tables, tolerance=st.floats(0, 1))
def test_the_error_lies_between_what_is_known(counts, tolerance):
    problem = FairPostprocessing(counts=counts, constraint=EqualizedOdds(tolerance))
    s, base = problem.solve(), problem.solve("as-predicted")
    total = counts.sum()
    assert s.objective >= counts.min(axis=2).sum() / total - 1e-9  # each cell at its best, fair or not
    assert s.objective <= counts.sum(axis=(0, 1)).min() / total + 1e-9  # constants are fair
    if base.evaluation.feasible:
        assert s.objective <= base.objective + 1e-9
    assert s.evaluation.feasible


def test_a_single_group_needs_no_rows():
    problem = FairPostprocessing(counts=[[[1, 4]], [[2, 3]]], constraint=EqualizedOdds())
    s = problem.solve()
    assert s.objective == pytest.approx(0.3)  # predict 1 always: 3 of 10 have label 0
    assert s.model_solution.model.row_count == 0
    assert s.evaluation.metrics["largest disparity"] == 0


def test_the_price_of_fairness_is_in_the_multipliers():
    """Between tolerances 1/10 and 1/5 the optimum falls from 167/640 to 9/40 along a line."""
    m = fo.Model()
    handles = small(EqualizedOdds(0.15)).declare(m)
    m.minimize(handles.objective)
    s = m.solve()
    prices = [s.dual(row) for row in handles.fairness]
    slope = sum(p[p < 0].sum() for p in prices)  # of the rows at their upper bound, the tolerance
    assert slope == pytest.approx((9 / 40 - 167 / 640) / 0.1)
    for p in prices:
        assert p.sum() == pytest.approx(0, abs=1e-9)


# -- composition -------------------------------------------------------------------------------------------


def test_two_of_them_in_one_model():
    m = fo.Model()
    first = small(EqualizedOdds(0.1)).declare(m)
    second = small(EqualizedOdds(0.0)).declare(m)
    m.minimize(first.error + second.error)
    s = m.solve()
    assert s[first.error] == pytest.approx(167 / 640)
    assert s[second.error] == pytest.approx(31 / 100)
    assert second.decision(s).probabilities[1] == pytest.approx([32 / 35, 1])


def test_the_parts_can_be_constrained_further():
    """The least disparity that an error of 0.25 allows; then the tolerance at which that error is optimal."""
    m = fo.Model()
    handles = small(EqualizedOdds(1.0)).declare(m)
    m.subject_to(handles.error <= 0.25)
    spread = EqualizedOdds().disparity(handles.rates)
    m.minimize(fo.maximum(*spread.values()))
    least = m.solve().objective
    assert small(EqualizedOdds(least)).solve().objective == pytest.approx(0.25)


def test_notions_combine():
    both = small(EqualizedOdds(0.2) & DemographicParity(0.01)).solve()
    assert both.evaluation.feasible
    assert both.objective > max(small(EqualizedOdds(0.2)).solve().objective, 0.0) + 1e-3
    assert small(EqualizedOdds(0.2) & DemographicParity(1.0)).solve().objective == pytest.approx(9 / 40)
    assert small(EqualizedOdds(0.2) & EqualizedOdds(0.1)).solve().objective == pytest.approx(167 / 640)


# -- evaluation --------------------------------------------------------------------------------------------


def test_as_predicted_shows_the_disparity_of_the_base():
    s = small(EqualizedOdds(0.1)).solve("as-predicted")
    assert s.status is fo.Status.APPROXIMATE
    assert s.objective == pytest.approx(0.19)
    assert s.evaluation.violations == pytest.approx({"false positive rate": 0.2})
    assert not s.evaluation.feasible
    assert s.decision.rates == pytest.approx(s.decision.base_rates)
    with pytest.raises(fo.DeclarationError, match="uses no backend"):
        small().solve("as-predicted", backend="highs")


def test_evaluation_recomputes_everything_from_the_counts():
    problem = small(EqualizedOdds(0.1) & ErrorParity(), groups=("a", "b"))
    p = np.array([[0.5, 0.0], [1.0, 0.25]])
    counts = np.array(SMALL)
    ones = (counts * p[:, :, None]).sum(axis=0)
    zeros = (counts * (1 - p[:, :, None])).sum(axis=0)
    e = problem.evaluate(p)
    wrong = ones[:, 0] + zeros[:, 1]
    assert e.objective == pytest.approx(wrong.sum() / 100)
    fp, tp = ones[:, 0] / [40, 15], ones[:, 1] / [20, 25]
    assert e.metrics["false positive rate of a"] == pytest.approx(fp[0])
    assert e.metrics["true positive rate of b"] == pytest.approx(tp[1])
    assert e.metrics["selection rate of b"] == pytest.approx(ones[1].sum() / 40)
    assert e.metrics["largest disparity"] == pytest.approx(tp[0] - tp[1])
    assert e.violations == pytest.approx(
        {
            "false positive rate": fp[0] - fp[1] - 0.1,
            "true positive rate": tp[0] - tp[1] - 0.1,
            "error rate": abs(wrong[0] / 60 - wrong[1] / 40),
        }
    )


def test_probabilities_outside_0_to_1_are_a_violation():
    e = small(EqualizedOdds(1.0)).evaluate([[-0.25, 0], [1, 1.125]])
    assert e.violations == {"probability": 0.25}
    assert small(EqualizedOdds(1.0)).evaluate([[0, 0], [1, 1.125]]).violations == {"probability": 0.125}


def test_a_decision_for_other_groups_is_refused():
    s = small(groups=("a", "b")).solve()
    with pytest.raises(fo.DeclarationError, match="for groups a, b, not 0, 1"):
        small().evaluate(s.decision)
    with pytest.raises(fo.DeclarationError, match=r"shape \(2, 3\); it must be \(2, 2\)"):
        small().evaluate(np.zeros((2, 3)))
    with pytest.raises(fo.DeclarationError, match=r"decision\[0, 1\] is nan"):
        small().evaluate([[0, np.nan], [1, 1]])


# -- the decision ------------------------------------------------------------------------------------------


def test_the_decision_prints_its_table():
    text = str(small(groups=("a", "longer name")).solve().decision)
    assert text.splitlines() == [
        "probability of predicting 1 after",
        "group        prediction 0  prediction 1",
        "a                  0.1875        1.0000",
        "longer name        0.0000        0.9219",
    ]


def test_predictions_follow_the_probabilities():
    """Four frequencies of 50,000 draws are within 0.01, over 4 standard deviations: error below 1e-3."""
    decision = small(groups=("a", "b")).solve().decision
    rng = np.random.default_rng(5)
    base, groups = rng.integers(2, size=200_000), rng.choice(["b", "a"], size=200_000)
    drawn = decision.predict(base, groups, seed=6)
    for h, a in np.ndindex(2, 2):
        frequency = drawn[(base == h) & (groups == "ab"[a])].mean()
        assert frequency == pytest.approx(decision.probabilities[h, a], abs=0.01)
    assert (decision.predict(base, groups, seed=6) == drawn).all()
    assert (decision.predict(base, groups, seed=np.random.default_rng(6)) == drawn).all()
    assert (decision.predict(base, groups, seed=7) != drawn).any()
    assert set(drawn.tolist()) == {0, 1}


def test_certain_probabilities_are_certain():
    decision = small(EqualizedOdds(1.0)).solve().decision
    base, groups = np.tile([0, 1], 500), np.repeat(["0", "1"], 500)
    assert (decision.predict(base, groups, seed=1) == base).all()
    assert (decision.predict(base, groups.astype(int), seed=1) == base).all()


def test_bad_records_to_predict():
    decision = small(groups=("a", "b")).solve().decision
    with pytest.raises(fo.DeclarationError, match="'c'; the groups are a, b"):
        decision.predict([0, 1], ["a", "c"])
    with pytest.raises(fo.DeclarationError, match=r"predictions\[1\] is 2"):
        decision.predict([0, 2], ["a", "b"])
    with pytest.raises(fo.DeclarationError, match="predictions has 1, groups has 2"):
        decision.predict([0], ["a", "b"])


def test_the_rates_of_the_decision_are_those_of_the_evaluation():
    s = small(groups=("a", "b")).solve()
    fp, tp = s.decision.rates
    for a, name in enumerate("ab"):
        assert s.evaluation.metrics[f"false positive rate of {name}"] == pytest.approx(fp[a])
        assert s.evaluation.metrics[f"true positive rate of {name}"] == pytest.approx(tp[a])


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_plot_shows_before_and_after(tmp_path, ending):
    decision = small(groups=("a", "b")).solve().decision
    path = tmp_path / f"rates.{ending}"
    figure = decision.plot(path)
    assert path.stat().st_size > 1000
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]
    points = [(float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in axes.lines[1:]]
    assert points[0] == pytest.approx((0.1, 0.8))  # before, group a
    assert points[3] == pytest.approx(decision.rates[:, 1].tolist())  # after, group b


def test_a_group_without_negatives_can_still_be_shown(tmp_path):
    problem = FairPostprocessing(counts=[[[0, 4], [9, 5]], [[0, 16], [6, 20]]], constraint=EqualOpportunity())
    s = problem.solve()
    assert np.isnan(s.decision.base_rates[0]).any()
    assert "false positive rate of 0" not in s.evaluation.metrics
    assert s.evaluation.metrics["true positive rate of 0"] == pytest.approx(
        s.evaluation.metrics["true positive rate of 1"]
    )
    s.decision.plot(tmp_path / "rates.png")


# -- declaring ---------------------------------------------------------------------------------------------


def test_from_predictions_counts_columns():
    rows = [(h, "ab"[a], y) for h, a, y in np.ndindex(2, 2, 2) for _ in range(SMALL[h][a][y])]
    frame = pd.DataFrame(rows, columns=["predicted", "group", "label"]).sample(frac=1, random_state=0)
    by_columns = FairPostprocessing.from_predictions(
        frame["predicted"], frame["group"], frame["label"], constraint=EqualizedOdds(0.1)
    )
    assert by_columns == small(groups=("a", "b"))
    by_arrays = FairPostprocessing.from_predictions(
        frame["predicted"].to_numpy() == 1,
        frame["group"].tolist(),
        frame["label"].to_numpy(),
        EqualizedOdds(0.1),
    )
    assert by_arrays == by_columns
    with pytest.raises(fo.DeclarationError, match="predictions has 99, groups has 100, labels has 100"):
        FairPostprocessing.from_predictions(
            frame["predicted"][1:], frame["group"], frame["label"], constraint=EqualizedOdds(0.1)
        )


@pytest.mark.parametrize("constraint", [EqualOpportunity(0.25), EqualizedOdds(0.1) & DemographicParity(0.2)])
def test_a_declaration_goes_to_a_file_and_back(tmp_path, constraint):
    problem = small(constraint, groups=("a", "b"))
    problem.save(tmp_path / "problem.json")
    again = fo.load(tmp_path / "problem.json")
    assert again == problem
    assert again.solve().objective == problem.solve().objective


def test_a_typo_in_a_file_is_named(tmp_path):
    path = tmp_path / "typo.json"
    data = small().to_dict()
    path.write_text(json.dumps({**data, "gruops": ["a", "b"]}))
    with pytest.raises(
        fo.UnknownNameError, match=r"typo.json.*'gruops' of FairPostprocessing; did you mean 'groups'"
    ):
        fo.load(path)
    path.write_text(json.dumps({**data, "constraint": {"type": "EqualizedOdds", "tolerence": 0.1}}))
    with pytest.raises(fo.DeclarationError, match=r"typo.json.*constraint.*did you mean 'tolerance'"):
        fo.load(path)
    path.write_text(json.dumps({**data, "constraint": {"type": "EqualOds"}}))
    with pytest.raises(fo.DeclarationError, match=r"typo.json.*'EqualOds'; did you mean"):
        fo.load(path)
    path.write_text(json.dumps({**data, "counts": [[[1, 2.5], [1, 1]], [[1, 1], [1, 1]]]}))
    with pytest.raises(fo.DeclarationError, match=r"typo.json.*counts.*\[0, 0, 1\] is 2.5"):
        fo.load(path)


def nested(**changes):
    counts = np.array(SMALL, dtype=float)
    for entry, value in changes.items():
        counts[tuple(int(i) for i in entry[1:])] = value
    return counts


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"counts": nested(c011=-1)}, r"counts: the array\[0, 1, 1\] is -1; it must not be negative"),
        ({"counts": nested(c110=0.5)}, r"counts: the array\[1, 1, 0\] is 0.5; it must be an integer"),
        ({"counts": nested(c110=np.nan)}, r"counts: the array\[1, 1, 0\] is nan; it must be finite"),
        ({"counts": nested(c110=np.inf)}, r"counts: the array\[1, 1, 0\] is inf; it must be finite"),
        ({"counts": [[1, 2], [3, 4]]}, r"counts: the shape is \(2, 2\); it must be \(2, K, 2\)"),
        ({"counts": np.zeros((2, 0, 2))}, r"counts: the shape is \(2, 0, 2\)"),
        ({"counts": np.ones((2, 3, 3))}, r"counts: the shape is \(2, 3, 3\)"),
        ({"counts": [["a"]]}, "counts: the array must be numbers"),
        ({"groups": ("a",)}, "1 names are given for the 2 groups"),
        ({"groups": ("a", "a")}, "a, a are not all different"),
        ({"groups": "ab"}, "groups is 'ab'"),
        ({"constraint": 0.1}, "constraint is 0.1"),
        ({"constraint": PairwiseFairness(pairs=[[0, 1]])}, "PairwiseFairness looks at single records"),
        ({"counts": nested(c000=0, c100=0), "groups": ("x", "y")}, "group 'x' has no records with label 0"),
        ({"counts": nested(c011=0, c111=0), "groups": ("x", "y")}, "group 'y' has no records with label 1"),
    ],
)
def test_bad_declarations(fields, said):
    with pytest.raises(fo.DeclarationError, match=said):
        small(**fields)


def test_an_empty_cell_matters_only_where_its_rate_is_wanted():
    counts = nested(c000=0, c100=0)
    assert small(EqualOpportunity(0.1), counts=counts).solve().evaluation.feasible
    assert small(DemographicParity(0.1), counts=counts).solve().evaluation.feasible
    with pytest.raises(fo.DeclarationError, match="so its selection rate is undefined"):
        small(DemographicParity(0.1), counts=nested(c000=0, c100=0, c001=0, c101=0))


def test_what_is_missing_or_unknown_is_named():
    with pytest.raises(fo.DeclarationError, match="constraint is missing"):
        FairPostprocessing(counts=SMALL)
    with pytest.raises(fo.UnknownNameError, match="did you mean 'constraint'"):
        FairPostprocessing(counts=SMALL, constrant=EqualizedOdds())
    with pytest.raises(fo.UnknownNameError, match="did you mean 'as-predicted'"):
        small().solve("as-predict")
    with pytest.raises(fo.UnknownNameError, match=r"option .* of method 'lp'"):
        small().solve("lp", slack=1)


def test_a_problem_is_frozen():
    problem = small()
    with pytest.raises(ValueError, match="frozen"):
        problem.constraint = EqualizedOdds(0.5)
    with pytest.raises(ValueError, match="read-only"):
        problem.counts[0, 0, 0] = 1


def test_methods_say_what_they_are():
    methods = small().methods
    assert list(methods) == ["lp", "dp-postprocessing", "as-predicted"]
    assert methods["lp"].exact and methods["lp"].kind == "formulation"
    assert not methods["as-predicted"].exact
    assert "Jagielski" in methods["lp"].cites


def test_examples_are_shipped():
    assert {"postprocessing/compas", "postprocessing/two-groups"} <= set(fo.examples())
    assert fo.load("postprocessing/two-groups") == small(groups=("a", "b"))
    compas = FairPostprocessing.load("postprocessing/compas")
    counts, groups = fo.data.compas_counts(5)
    assert compas == FairPostprocessing(counts=counts, groups=groups, constraint=EqualizedOdds())
    assert isinstance(compas.solve().decision, RandomizedPostprocessor)
