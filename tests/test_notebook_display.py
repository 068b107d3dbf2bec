"""How objects show themselves: in a notebook, in `help`, under the tab key, and as pictures."""

import pydoc
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

import forcopt as fo
from forcopt.numeric import birkhoff, laminar_lottery
from forcopt.problem import problem_classes
from forcopt.problem.drawing import COLOURS

GREYS = {f"#{k:02x}{k:02x}{k:02x}" for k in range(256)}
COUNTED = (
    "^(seats|user|ad|query|count|feature|input|answer|recipient|sampled records|window|sample|"
    "rank of the group|group, worst first|candidate.*)$"
)
EXAMPLES = {type(fo.load(name)).__name__: name for name in reversed(fo.examples())}


class Balanced(HTMLParser):
    """Fails for an end tag that ends nothing."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        if tag not in ("br", "img", "meta", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def solved(name: str) -> fo.Solution:
    p = fo.load(EXAMPLES[name])
    method = p.method()
    options = {"time_limit": 10.0} if "time_limit" in method.common else {}
    return p.solve(**options, **({"seed": 1} if "seed" in method.common else {}))


def test_a_model_and_its_parts():
    m = fo.Model("a <b>")
    x = m.variable("x", shape=(2, 3), lower=0, upper=np.arange(1.0, 7.0).reshape(2, 3), integer=True)
    assert "integer" in x._repr_html_() and "(2, 3)" in x._repr_html_() and "1 to 6" in x._repr_html_()
    assert "entry" in (x + 1)._repr_html_() and "x[0,0] + 1" in (x + 1)._repr_html_()
    assert "and 5994 more" in (m.variable("y", shape=6000) * 2)._repr_html_()
    m.minimize(x.sum())
    s = m.solve()
    assert "optimal" in s._repr_html_() and "&lt;b&gt;" in s._repr_html_() and "<b>" not in s._repr_html_()
    assert "bound" in s.certify()._repr_html_()
    for shown in (x, x + 1, x.sum(), s, s.certify()):
        Balanced(shown._repr_html_())


def test_lotteries():
    for lottery in (birkhoff([[0.5, 0.5], [0.5, 0.5]]), laminar_lottery([0.5, 0.5, 1.0])):
        text = lottery._repr_html_()
        Balanced(text)
        assert "lottery over 2" in text and "0.5000" in text


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_problems_and_solutions(name):
    s = solved(name)
    text, brief = s.problem._repr_html_(), repr(s.problem)
    Balanced(text)
    assert all(field in text and f"{field}=" in brief for field in type(s.problem).model_fields)
    assert f"{s.problem.method().name} (default)" in text
    assert len(brief) < 1500 and "\n" not in brief
    Balanced(s._repr_html_())
    assert str(s.status) in s._repr_html_()


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_every_decision_is_drawn_for_readers_also_on_given_axes(name, tmp_path):
    s = solved(name)
    if s.decision is None:
        pytest.skip("the default method finds no decision")
    figure = s.plot(tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 1000
    figure.canvas.draw()
    titles = [a.get_title(loc) for a in figure.axes for loc in ("left", "center")]
    finding = titles[0]
    assert (
        re.search(r"\d", finding) and len(finding.split()) >= 4 and type(s.decision).__name__ not in finding
    )
    said = [*titles, *(text for a in figure.axes for text in (a.get_xlabel(), a.get_ylabel()))]
    classes = [type(s.decision).__name__, type(s.problem).__name__, "ndarray", "dict"]
    for text in said:
        assert not re.search(
            rf"\b({'|'.join(classes)}|[A-Z]\w*)\(|\b({'|'.join(classes)})\b|<|array", text
        ), text
    shown = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
    assert min(t.get_fontsize() for t in shown) >= 9
    filled = [to_hex(p.get_facecolor()) for a in figure.axes for p in a.patches]
    drawn = [to_hex(line.get_color()) for a in figure.axes for line in a.lines]
    points = [to_hex(c) for a in figure.axes for part in a.collections for c in part.get_facecolor()]
    assert len({*filled, *drawn, *points} - GREYS) <= 7
    for a in figure.axes:
        for axis, label in ((a.xaxis, a.get_xlabel()), (a.yaxis, a.get_ylabel())):
            if re.search(COUNTED, label):
                ticks = axis.get_ticklocs()
                assert (ticks == np.round(ticks)).all(), label
    own = Figure()
    left, right = own.subplots(1, 2)
    assert s.plot(ax=right) is own
    assert right.get_title(loc="left") and not left.has_data() and not left.get_title(loc="left")


def test_a_plan_and_a_cohort_are_pictures():
    for name in ("Districting", "LeximaxCohort", "FairRanking"):
        text = solved(name)._repr_html_()
        assert "<svg" in text
        Balanced(text)


def test_no_decision_no_picture():
    p = fo.load(EXAMPLES["StratifiedAllocation"])
    s = p.solve()
    s.decision = None
    with pytest.raises(fo.DeclarationError, match="there is no decision to draw"):
        s.plot()


def test_the_palette_is_one():
    from forcopt.study.charts import draw

    assert draw.COLOURS is COLOURS


@pytest.mark.parametrize("name", sorted(problem_classes()))
def test_tab_completion_and_help_show_no_machinery(name):
    cls = problem_classes()[name]
    made = fo.load(EXAMPLES[name])
    machinery = re.compile(
        r"^(model_(?!solution)|json$|dict$|parse_|schema|construct|from_orm|validate$|_abc|__pydantic)"
    )
    for names in (dir(cls), dir(made)):
        assert [n for n in names if machinery.match(n) and n not in cls.model_fields] == []
    assert {"solve", "evaluate", "methods", "replace", *cls.model_fields} <= set(dir(made))
    text = pydoc.render_doc(cls, renderer=pydoc.plaintext)
    assert "Methods inherited from pydantic" not in text and "ValidationError" not in text
    assert " |  solve(" in text


def test_a_map_takes_the_places_of_its_graph():
    import networkx as nx

    from forcopt.models import Districting

    def places(graph, **options):
        plan = Districting(graph, 2, tolerance=0).solve("set-partitioning").decision
        figure = plan.plot(**options)
        return figure.axes[0].collections[-1].get_offsets().data, plan

    g = nx.path_graph(4)
    nx.set_node_attributes(g, 1, "population")
    drawn, _ = places(g)  # Kamada and Kawai: equal steps along a path
    steps = np.linalg.norm(np.diff(drawn, axis=0), axis=1)
    assert steps == pytest.approx(steps[0], rel=0.05)
    nx.set_node_attributes(g, {v: {"lon": 2.0 * v, "lat": 1.0} for v in g})
    assert places(g)[0].tolist() == [[0, 1], [2, 1], [4, 1], [6, 1]]
    nx.set_node_attributes(g, {v: {"pos": (v, v)} for v in g})
    assert places(g)[0].tolist() == [[v, v] for v in range(4)]
    grid = nx.grid_2d_graph(2, 2)
    nx.set_node_attributes(grid, 1, "population")
    assert places(grid)[0].tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
