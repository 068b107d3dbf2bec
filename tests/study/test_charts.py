from dataclasses import replace

import numpy as np
import pytest
from test_comparison import NAN, run

import forcopt as fo
from forcopt.clock import Improvement
from forcopt.study import Comparison
from forcopt.study.charts.curves import front, primal_gap


def series(chart):
    return {s.name: s for s in chart.series if not s.dashed}


@pytest.fixture
def three():
    """Three instances by two methods: a is quick but fails once, b always twice or half as quick."""
    times = {"p": (1.0, 2.0), "q": (4.0, 2.0), "r": (None, 8.0)}
    rows = []
    for name, (a, b) in times.items():
        solved = {"objective": 1.0, "seconds": a} if a else {"status": "limit", "seconds": 60.0}
        rows += [run("a", instance=name, **solved), run("b", instance=name, objective=1.0, seconds=b)]
    return Comparison(rows)


def test_a_performance_profile_is_that_of_dolan_and_more(three):
    found = series(three.chart("profile"))
    # Ratios by hand: a: 1, 2, infinite; b: 2, 1, 1.
    a, b = found["a"], found["b"]
    assert a.x[:-1].tolist() == [1, 1, 2] and a.y.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 2 / 3])
    assert b.x[:-1].tolist() == [1, 1, 1, 2] and b.y.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1, 1])
    assert a.x[-1] == b.x[-1] > 2


def test_solvers_meet_on_problems_whose_formulations_differ():
    rows = [
        run(method, instance=method, backend=backend, objective=1.0, seconds=seconds, size=seconds)
        for method, times in {"flow": (1.0, 2.0), "milp": (3.0, 6.0)}.items()
        for backend, seconds in zip(("highs", "scip"), times, strict=True)
    ]
    for kind in ("profile", "cactus", "scaling", "progress"):
        assert list(series(Comparison(rows).chart(kind))) == ["@highs", "@scip"]
    assert series(Comparison(rows).chart("profile"))["@highs"].y.tolist() == [0, 0.5, 1, 1]
    both = Comparison([*rows, run("greedy", instance="milp", backend="highs", objective=1.0)])
    assert "milp@highs" in series(both.chart("profile"))  # then methods are compared, too
    one = Comparison([r for r in rows if r.method == "milp"])
    assert list(series(one.chart("profile"))) == ["milp@highs", "milp@scip"]


def test_a_cactus_plot_sorts_the_times_of_what_was_solved(three):
    found = series(three.chart("cactus"))
    assert found["a"].y.tolist() == [1, 4] and found["b"].y.tolist() == [2, 2, 8]
    assert found["b"].x.tolist() == [1, 2, 3] and "3 tests" in three.chart("cactus").note


def test_solved_means_near_the_best_and_within_the_demands():
    rows = [
        run("best", objective=10.0),
        run("near", "approximate", 10.05),
        run("cheats", "approximate", 5.0, violation=0.5),
        run("blocked", "infeasible", instance="other"),
        run("guess", "infeasible", instance="other", exact=False),
    ]
    comparison = Comparison(rows)
    count = {name: len(s.x) for name, s in series(comparison.chart("cactus")).items()}
    assert count == {"best": 1, "near": 0, "cheats": 0, "blocked": 1, "guess": 0}
    loose = series(comparison.chart("cactus", tolerance=0.01))
    assert len(loose["near"].x) == 1 and len(loose["cheats"].x) == 0


@pytest.mark.parametrize(
    ("claim", "answer"),
    [("infeasible", {"objective": 3.0}), ("unbounded", {"objective": 3.0}), ("unbounded", {"bound": 2.0})],
)
def test_a_refuted_proof_solves_nothing(claim, answer):
    status = "optimal" if "objective" in answer else "limit"
    rows = [
        run("false", claim, seconds=0.1, size=1),
        run("right", status, **answer, seconds=5.0, size=1),
        run("right", objective=3.0, instance="other", size=1),
    ]
    comparison = Comparison(rows)
    assert series(comparison.chart("profile"))["false"].y.tolist() == [0, 0]
    assert len(series(comparison.chart("cactus"))["false"].x) == 0
    assert "false" not in series(comparison.chart("scaling"))


def test_repeats_are_tests_of_their_own():
    rows = [run("a", objective=1.0, seconds=s, repeat=i) for i, s in enumerate([1.0, 2.0, 3.0])]
    assert series(Comparison(rows).chart("cactus"))["a"].y.tolist() == [1, 2, 3]


def test_the_gap_against_time_is_a_mean_of_steps():
    trace = (Improvement(1.0, 20.0, 0.0), Improvement(2.0, 12.5, 0.0))
    rows = [
        run("exact", objective=10.0, seconds=4.0, trace=trace),
        run("exact", objective=10.0, seconds=2.0, repeat=1),
        run("greedy", "approximate", 12.5, seconds=1.0),
    ]
    found = series(Comparison(rows).chart("progress"))
    # First run: 1 until 1 s, then 0.5, from 2 s 0.2, from 4 s 0; second: 1 until 2 s, then 0.
    assert found["exact"].x.tolist() == [0, 1, 2, 4]
    assert found["exact"].y.tolist() == pytest.approx([1, 0.75, 0.1, 0])
    assert found["greedy"].x.tolist() == [0, 1, 4]
    assert found["greedy"].y.tolist() == pytest.approx([1, 0.2, 0.2])


def test_the_primal_gap_is_that_of_berthold():
    assert primal_gap(np.array([0.0, 3.0, np.inf]), 0.0).tolist() == [0, 1, 1]
    assert primal_gap(np.array([-8.0, -10.0]), -10.0).tolist() == pytest.approx([0.2, 0])


def test_the_fitted_exponent_is_found_again():
    rng = np.random.default_rng(0)
    rows = [
        run("square", objective=1.0, instance=str(n), size=n, seconds=1e-6 * n**2 * rng.lognormal(0, 0.05))
        for n in (10, 20, 40, 80, 160, 320)
    ]
    rows += [run("slow", "limit", instance=str(n), size=n, seconds=9.0) for n in (10, 20)]
    chart = Comparison(rows).chart("scaling")
    fit = next(s for s in chart.series if s.dashed)
    slope = np.diff(np.log(fit.y)) / np.diff(np.log(fit.x))
    assert slope[0] == pytest.approx(2, abs=0.1)
    assert f"square: size^{slope[0]:.2f} ± 0." in chart.note and "slow" not in chart.note
    assert len(series(chart)["square"].x) == 6


def test_one_size_has_no_exponent():
    assert "nothing to fit" in Comparison([run("a", objective=1.0, size=5)]).chart("scaling").note


def test_a_pareto_front_holds_what_nothing_beats():
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 8, (2, 40)).astype(float)
    beaten = [
        any((x[j] <= x[i] and y[j] <= y[i]) and (x[j] < x[i] or y[j] < y[i]) for j in range(40))
        for i in range(40)
    ]
    expected = sorted({(x[i], y[i]) for i in range(40) if not beaten[i]})
    assert [(x[i], y[i]) for i in front(x, y)] == expected


def test_a_pareto_chart_takes_means_over_seeds_and_the_better_side():
    rows = [
        run("m", "approximate", value, instance=f"e{e}", sense="max", seed=s, parameters={"epsilon": e})
        for e, values in {1.0: (2.0, 4.0), 2.0: (5.0, 7.0), 3.0: (1.0, 3.0)}.items()
        for s, value in enumerate(values)
    ]
    chart = Comparison(rows).chart("pareto", x="epsilon", y="objective")
    points = series(chart)["m"]
    assert points.x.tolist() == [1, 2, 3] and points.y.tolist() == [3, 6, 2]
    assert (points.low < points.y).all() and (points.high > points.y).all()
    best = next(s for s in chart.series if s.name == "front")
    assert best.x.tolist() == [1, 2] and "more objective" in chart.note
    other = Comparison(rows).chart("pareto", x="epsilon", y="objective", better=("more", "less"))
    assert other.series[-1].x.tolist() == [3]


def test_a_pareto_point_is_a_mean_of_the_runs_that_have_both_numbers():
    rows = [
        run("m", objective=4.0, seconds=1.0, seed=0),
        run("m", objective=6.0, seconds=3.0, seed=1),
        run("m", "limit", seconds=100.0, seed=2),
        run("n", objective=5.0, seconds=10.0, seed=0),
    ]
    chart = Comparison(rows).chart("pareto")
    assert series(chart)["m"].x.tolist() == [2.0] and series(chart)["m"].y.tolist() == [5.0]
    assert chart.series[-1].x.tolist() == [2.0]


@pytest.mark.parametrize("kind", ["profile", "cactus", "progress", "scaling"])
def test_every_chart_can_be_drawn(three, tmp_path, kind):
    options = {"size": "seconds"} if kind == "scaling" else {}
    figure = three.plot(tmp_path / "x.png", kind, **options)
    assert (tmp_path / "x.png").stat().st_size > 5_000
    axes = figure.axes[0]
    chart = three.chart(kind, **options)
    assert (axes.get_xlabel(), axes.get_ylabel()) == (chart.x, chart.y)
    assert {"a", "b"} <= {text.get_text() for text in figure.legends[0].get_texts()}


def test_a_pareto_chart_can_be_drawn(three):
    figure = three.plot(kind="pareto", x="seconds", y="objective")
    assert "front" in {text.get_text() for text in figure.legends[0].get_texts()}


def test_no_point_hides_another():
    at = {"objective": 1.0, "seconds": 2.0}
    rows = [run("below", **at), run("above", **at), run("aside", objective=3.0, seconds=1.0)]
    (axes,) = Comparison(rows).plot(kind="pareto").axes
    sizes = {line.get_label(): line.get_markersize() for line in axes.lines if line.get_marker() != "None"}
    assert sizes["below"] > sizes["above"] == sizes["aside"]


def test_the_legend_of_many_methods_stays_in_the_picture_and_off_the_curves():
    rows = [run(f"method-{i}", objective=1.0, seconds=1.0 + i, repeat=k) for i in range(40) for k in range(2)]
    figure = Comparison(rows).plot(kind="profile")
    figure.draw_without_rendering()
    legend, axes = figure.legends[0].get_window_extent(), figure.axes[0].get_window_extent()
    assert 0 <= legend.y0 < legend.y1 <= figure.bbox.y1 and axes.x1 < legend.x0 < legend.x1 <= figure.bbox.x1
    assert axes.height > figure.bbox.height / 2


def test_numbers_of_tests_are_whole(three):
    figure = three.plot(kind="cactus")
    ticks = figure.axes[0].get_xticks()
    assert (ticks == ticks.round()).all()


@pytest.mark.parametrize(
    ("kind", "options", "error", "words"),
    [
        ("profil", {}, fo.UnknownNameError, "did you mean 'profile'"),
        ("profile", {"tolerence": 1}, fo.UnknownNameError, "did you mean 'tolerance'"),
        ("cactus", {"measure": "secconds"}, fo.UnknownNameError, "did you mean 'seconds'"),
        ("profile", {"measure": "guarantee"}, fo.DeclarationError, "no method solves"),
        ("scaling", {}, fo.DeclarationError, "positive size"),
        ("pareto", {"x": "guarantee"}, fo.DeclarationError, "no run has both"),
        ("pareto", {"x": "seconds", "better": ("less", "great")}, fo.DeclarationError, "better is"),
    ],
)
def test_what_cannot_be_shown_is_told(three, kind, options, error, words):
    rows = [*three.rows, run("z", "failed", seconds=NAN)]
    with pytest.raises(error, match=words):
        Comparison(rows).chart(kind, **options)


def test_a_front_joins_only_what_can_replace_each_other():
    """Instances drawn at several sizes have a front each; a single parameter is what the front runs along."""
    rows = [
        run(method=m, parameters={"n": n, "tolerance": t}, objective=10 * n + t, seconds=1 / (1 + t))
        for m in ("a", "b")
        for n in (1, 2)
        for t in (0.0, 1.0)
    ]
    rows = [replace(r, instance=f"n={r.parameters['n']} t={r.parameters['tolerance']}") for r in rows]
    c = Comparison(rows)
    fronts = [s for s in c.chart("pareto", along=["tolerance"]).series if s.name == "front"]
    assert len(fronts) == 2 and "on n 1" in fronts[0].tips[0] and "on n 2" in fronts[1].tips[0]
    assert len([s for s in c.chart("pareto").series if s.name == "front"]) == 4
    one = Comparison([r for r in rows if r.parameters["n"] == 1])
    assert len([s for s in one.chart("pareto", along=["n", "tolerance"]).series if s.dashed]) == 1
    with pytest.raises(fo.UnknownNameError, match="tolerance"):
        c.chart("pareto", along=["tolerence"])


def test_a_share_of_nothing_is_not_spelled_out():
    rows = [run(method="a", objective=0.0), run(method="b", objective=3.0)]
    table = Comparison(rows).table()
    assert "%" in table and max(len(word) for word in table.split() if "%" in word) < 12
