import csv
import json
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO

import numpy as np
import pandas as pd
import pytest

import forcopt as fo
from forcopt.study import Comparison, Run

NAN = float("nan")


def run(method, status="optimal", objective=NAN, bound=NAN, **known):
    """A row as `compare` would give it."""
    known = {"violation": 0.0, "seconds": 1.0, "backend": "", "instance": "toy", "sense": "min", **known}
    known.setdefault("exact", status != "approximate")
    status = None if status is None else fo.Status(status)
    gap = 0.0 if objective == bound else NAN
    return Run(method=method, status=status, objective=objective, bound=bound, gap=gap, **known)


@pytest.fixture
def mixed():
    return Comparison(
        [
            run("milp", objective=10.0, bound=10.0, backend="highs", peak_memory=5e7, seconds=0.25),
            run("greedy", "approximate", 11.0, seconds=0.001),
            run("relaxed", "approximate", 8.0, violation=0.5),
            run("slow", "feasible", 12.5, 9.0, seconds=600.0),
            run("crash", "failed", seconds=NAN, message="killed by SIGSEGV <b>&"),
            run("later", None, message="not run: interrupted"),
        ]
    )


def test_the_best_meets_the_demands(mixed):
    assert mixed.best.label == "milp@highs"
    gaps = [row.gap_to_best for row in mixed.rows]
    assert gaps[:4] == pytest.approx([0, 0.1, -0.2, 0.25])
    assert np.isnan(gaps[4:]).all()


def test_more_is_better_when_maximising():
    rows = [run("a", objective=4.0, sense="max"), run("b", "feasible", 5.0, sense="max")]
    result = Comparison(rows)
    assert result.best.method == "b" and result.rows[0].gap_to_best == pytest.approx(0.2)


def test_of_equal_objectives_the_proved_then_the_fastest_is_best():
    a = run("lucky", "feasible", 5.0, seconds=0.1)
    b, c = run("slow", objective=5.0 + 1e-9, seconds=9.0), run("quick", objective=5.0, seconds=2.0)
    assert Comparison([a, b, c]).best.method == "quick"
    assert Comparison([a]).best.method == "lucky"
    assert Comparison([run("x", "infeasible")]).best is None


def test_each_instance_has_a_best_of_its_own():
    rows = [run("a", objective=1.0), run("a", objective=10.0, instance="other")]
    assert [r.gap_to_best for r in Comparison(rows).rows] == [0, 0]
    assert Comparison([run("a", objective=1.0), run("a", objective=2.0, instance="b")]).disagreements == ()


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (run("a", objective=10.0, bound=10.0), run("b", objective=11.0, bound=11.0), "the bound 11"),
        (run("a", objective=10.0), run("b", objective=11.0), "the bound 11"),
        (run("a", "infeasible"), run("b", "approximate", 3.0), "a claims infeasible, but b found 3"),
        (run("a", "limit", bound=5.0), run("b", "feasible", 4.0, 1.0), "claims the bound 5, but b found 4"),
        (
            run("a", objective=10.0, bound=10.0, sense="max"),
            run("b", "approximate", 10.1, sense="max"),
            "claims the bound 10, but b found 10.1",
        ),
        (run("a", "unbounded"), run("b", objective=3.0), "a claims unbounded, but b claims the bound 3"),
        (run("a", "unbounded"), run("b", "limit", bound=2.0), "but b claims the bound 2"),
        (run("a", "unbounded"), run("b", "infeasible"), "a claims unbounded, but b claims infeasible"),
        (run("a", "feasible", 4.0, 5.0), run("b", "limit"), "a claims the bound 5, but a found 4"),
    ],
)
def test_contradictions_are_told(a, b, words):
    for pair in ([a, b], [b, a]):
        result = Comparison(pair)
        assert len(result.disagreements) == 1 and words in result.disagreements[0]
        assert "disagreement: " + result.disagreements[0] in result.table()
        assert "1 disagreement" in repr(result)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (run("a", objective=10.0, bound=10.0), run("b", objective=10.0 + 1e-5, bound=10.0 + 1e-5)),
        (run("a", objective=10.0, bound=10.0), run("b", "approximate", 9.0, violation=0.1)),
        (run("a", objective=10.0, bound=10.0), run("b", "feasible", 12.0, 8.0)),
        (run("a", "infeasible", exact=False), run("b", "feasible", 12.0)),
        (run("a", "infeasible"), run("b", "infeasible")),
        (run("a", "unbounded"), run("b", "feasible", 12.0)),
        (run("a", "unbounded", exact=False), run("b", objective=12.0)),
        (run("a", "infeasible"), run("b", "approximate", NAN, violation=NAN)),  # a private release
    ],
)
def test_what_may_both_be_right_is_no_contradiction(a, b):
    assert Comparison([a, b]).disagreements == ()


def test_the_table_shows_every_run_and_why_some_have_no_solution(mixed):
    assert str(mixed.table()) == repr(mixed.table())
    lines = mixed.table().splitlines()
    titles = "method status proved by objective bound gap to best gap to best bound violation seconds MB"
    assert lines[0].split() == titles.split()
    assert lines[1].split() == [
        "milp@highs",
        "optimal",
        "claim",
        "10",
        "10",
        "0%",
        "0%",
        "0%",
        "0",
        "0.25",
        "50",
    ]
    assert lines[3].split() == ["relaxed", "approximate", "-", "8", "-", "-", "-20.00%", "-", "0.5", "1", "-"]
    assert lines[4].split() == [
        "slow",
        "feasible",
        "-",
        "12.5",
        "9",
        "-",
        "25.00%",
        "20.00%",
        "0",
        "600",
        "-",
    ]
    assert lines[7:] == ["crash: killed by SIGSEGV <b>&", "not run: interrupted"]
    assert repr(mixed) == "<comparison of 6 runs: best 10 by milp@highs, 2 without a solution>"


def test_rich_draws_it_too(mixed):
    from rich.console import Console

    console = Console(width=140, record=True, file=StringIO())
    console.print(mixed)
    text = console.export_text()
    assert "milp@highs" in text and "killed by SIGSEGV <b>&" in text and "MB" in text


def test_a_narrow_terminal_loses_columns_not_letters(mixed):
    from rich.console import Console

    console = Console(width=64, record=True, file=StringIO())
    console.print(mixed)
    text = console.export_text()
    assert "violation" in text and "approximate" in text and "…" not in text
    assert "MB" not in text and "bound" not in text


def test_csv_and_pandas_hold_every_run(mixed, tmp_path):
    frame = mixed.to_pandas()
    assert frame["method"].tolist() == ["milp", "greedy", "relaxed", "slow", "crash", "later"]
    assert (
        frame["objective"].dtype == float and frame["objective"].isna().tolist() == [False] * 4 + [True] * 2
    )
    assert frame["status"].tolist()[-2:] == ["failed", "not run"]
    mixed.to_csv(tmp_path / "x.csv")
    with open(tmp_path / "x.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["objective"]) for row in rows[:4]] == [10, 11, 8, 12.5]
    assert rows[4]["message"] == "killed by SIGSEGV <b>&"
    assert pd.read_csv(tmp_path / "x.csv").shape == frame.shape


def test_plain_data_is_valid_json(mixed):
    data = json.loads(json.dumps(mixed.to_dict(), allow_nan=False))
    assert data["best"] == 0 and data["disagreements"] == []
    assert data["rows"][1]["bound"] is None and data["rows"][1]["objective"] == 11.0
    assert "trace" not in data["rows"][0] and "decision" not in data["rows"][0]


class Cells(HTMLParser):
    def __init__(self):
        super().__init__()
        self.rows, self.values = [], []

    def handle_starttag(self, tag, attributes):
        if tag == "tr":
            self.rows.append([])
        if tag == "td":
            self.values.append(dict(attributes)["data-value"])

    def handle_data(self, data):
        if self.rows and data.strip():
            self.rows[-1].append(data)


def test_the_page_holds_all_and_needs_nothing_else(mixed, tmp_path):
    mixed.to_html(tmp_path / "x.html")
    text = (tmp_path / "x.html").read_text()
    assert "<b>&" not in text and "killed by SIGSEGV &lt;b&gt;&amp;" in text
    assert "src=" not in text and "href=" not in text and "url(" not in text and "@import" not in text
    cells = Cells()
    cells.feed(text)
    assert [row[0] for row in cells.rows[1:]] == [r.label for r in mixed.rows]
    assert "0.001" in cells.values and "-0.2" in cells.values
    assert mixed._repr_html_().startswith("<table>") and "<script" not in mixed._repr_html_()


def test_the_picture_shows_each_run_on_its_line(mixed, tmp_path):
    figure = mixed.plot(tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    values, times = figure.axes
    assert [t.get_text() for t in values.get_yticklabels()] == [r.label for r in mixed.rows]
    dots = {(line.get_xdata()[0], line.get_ydata()[0]) for line in values.lines if line.get_marker() == "o"}
    assert dots == {(10.0, 0), (11.0, 1), (8.0, 2), (12.5, 3)}
    intervals = [list(line.get_xdata()) for line in values.lines if line.get_marker() == "None"]
    assert intervals == [[10.0, 10.0], [9.0, 12.5]]
    assert [t.get_text() for t in values.texts] == ["failed", "not run"]
    assert times.get_xscale() == "log"
    mixed.plot(tmp_path / "x.svg")
    assert "<svg" in (tmp_path / "x.svg").read_text()


@pytest.mark.parametrize("count", [1, 2, 20])
def test_the_picture_grows_with_the_rows(count):
    rows = [run(f"method-{i}", objective=float(i), seconds=1.0 + i / 10) for i in range(count)]
    figure = Comparison(rows).plot()
    assert figure.get_figheight() == pytest.approx(1.6 + 0.3 * count)
    assert figure.axes[1].get_xscale() == "linear"
    figure.canvas.draw()


def test_each_instance_has_an_axis_of_its_own():
    rows = [
        run("milp", instance=name, sense=sense, objective=value, bound=value, repeat=i)
        for name, sense, value in (("sack", "max", 220.0), ("cut", "min", 0.5))
        for i in range(2)
    ]
    figure = Comparison(rows).plot()
    sack, _, cut, _ = figure.axes
    assert (sack.get_title(loc="left"), cut.get_title(loc="left")) == ("sack", "cut")
    assert "more is better" in sack.get_xlabel() and "less is better" in cut.get_xlabel()
    assert sack.get_xlim()[0] > 200 and cut.get_xlim()[1] < 1
    assert [t.get_text() for t in cut.get_yticklabels()] == ["milp, repeat 0", "milp, repeat 1"]


def test_the_points_of_a_sweep_share_an_axis():
    rows = [run("lp", instance=f"p {t}", objective=t, parameters={"t": t}) for t in (0.1, 0.2, 0.4)]
    values, _ = Comparison(rows).plot().axes
    assert [t.get_text() for t in values.get_yticklabels()] == ["lp, t 0.1", "lp, t 0.2", "lp, t 0.4"]


def test_rounding_is_not_blown_up():
    rows = [run("a", objective=6.0, bound=6.0 + 1e-13), run("b", objective=6.0, bound=6.0)]
    values = Comparison(rows).plot().axes[0]
    low, high = values.get_xlim()
    assert high - low > 1e-4


def test_a_picture_without_any_solution():
    figure = Comparison([run("a", "failed", seconds=NAN)]).plot()
    assert [t.get_text() for t in figure.axes[0].texts] == ["failed"]


def test_rounding_is_no_gap_to_a_best_of_zero():
    rows = [run("a", objective=0.0), run("b", objective=6e-10), run("c", objective=0.5)]
    gaps = {row.method: row.gap_to_best for row in Comparison(rows).rows}
    assert gaps["a"] == gaps["b"] == 0 and gaps["c"] > 1


def test_disagreements_are_judged_at_the_accuracy_that_backends_document():
    """SCS gives four digits; the others' proofs and its objective differ by that."""
    found = fo.compare(fo.load("lexifair/bounded-loss"), ["conic@clarabel", "conic@scs"], progress=False)
    assert found.disagreements == ()
    exact, rough = run("a", objective=10.0, bound=10.0), run("b", "feasible", 9.9985)
    assert len(Comparison([exact, rough]).disagreements) == 1
    assert Comparison([exact, replace(rough, backend="scs")]).disagreements == ()
    assert len(Comparison([exact, replace(rough, backend="scs", objective=9.99)]).disagreements) == 1
