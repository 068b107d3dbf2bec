"""The interactive map of a plan: its data, and how it behaves in a browser without a network."""

import json
import re
from collections import Counter
from shutil import which

import networkx as nx
import numpy as np
import pytest
from typer.testing import CliRunner

import forcopt
from forcopt.cli import app
from forcopt.data import grid
from forcopt.data.examples import write_examples
from forcopt.errors import DeclarationError
from forcopt.models import Districting
from forcopt.models.districting import Plan

BROWSER = next(filter(None, map(which, ("chromium", "chromium-browser", "google-chrome"))), None)
HOSTILE = "</script><b>bold</b><img src=x onerror='window.hurt=1'>"
SHARES = {"young": ("young", "all"), "</dd><i>old": ("old", "all")}
VOTES = {"mayor": ("dem", "rep")}


def read(path):
    """The data of a page, and what the browser makes of its whole steps: the coordinates of the file."""
    data = json.loads(re.search(r'id="data">(.*?)</script>', path.read_text(), re.DOTALL)[1])
    rings = [[np.cumsum(np.reshape(ring, (-1, 2)), axis=0) for ring in unit] for unit in data["lines"]]
    return data, [[data["low"] + ring * data["step"] for ring in unit] for unit in rings]


def square(x, y, side=1.0, hole=()):
    ring = [[x, y], [x + side, y], [x + side, y + side], [x, y + side], [x, y]]
    return {"type": "Polygon", "coordinates": [ring, *hole]}


@pytest.fixture(scope="module")
def plan():
    """Four by six squares with outlines, three districts of two rows; one node has a hostile name."""
    g = nx.relabel_nodes(grid(4, 6, population=10), lambda v: HOSTILE if v == 9 else v)
    for i, v in enumerate(g):
        x, y = i % 6, i // 6
        hole = [square(x + 0.4, y + 0.4, 0.2)["coordinates"][0]] if i == 3 else []
        g.nodes[v].update(geometry=square(x, y, 1.0, hole), young=i % 5, old=2, all=i % 5 + 7, dem=i, rep=11)
        g.nodes[v].update(county=f"C{x // 3}", name=f"unit {i}", area=1.0, boundary_perim=0.5)
    nx.set_edge_attributes(g, 1.0, "shared_perim")
    p = Districting(g, districts=3, tolerance=0, county="county")
    return Plan.from_labels(p, [i % 6 // 2 for i in range(24)])


@pytest.fixture(scope="module")
def page(plan, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "three districts.html"
    plan.to_html(path, shares=SHARES, elections=VOTES)
    return path


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if BROWSER is None:
        pytest.skip("there is no Chromium to look at the page with")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def opened(browser):
    """Opens pages; what they ask of the network or complain about fails the test."""
    tabs, asked, said = [], [], []

    def open_page(path, **options):
        tab = browser.new_page(viewport={"width": 1440, "height": 900}, **options)
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on("console", lambda message: said.append(message.text))
        tab.goto(path.as_uri())
        tab.wait_for_selector("#map[data-zoom]")  # the page forbids wait_for_function, which evaluates text
        tabs.append((tab, path))
        return tab

    yield open_page
    assert asked == [path.as_uri() for _, path in tabs] and said == []
    for tab, _ in tabs:
        tab.close()


def settled(tab):
    """The page draws in the next frame: what it says of the map is read after that."""
    tab.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return tab


def zoom(tab):
    return float(settled(tab).locator("#map").get_attribute("data-zoom"))


def shown(tab):
    return settled(tab).locator("#map").get_attribute("data-district")


def test_the_data_are_those_of_the_plan(plan, page):
    data, rings = read(page)
    assert data["scores"] == plan.scores(VOTES) and "mayor seats" in data["scores"]
    assert data["plan"] == plan.labels.tolist() and data["people"] == [10] * 24 and data["means"] == [80] * 3
    assert data["nodes"] == [str(v) for v in plan.problem.nodes]
    assert data["names"][7] == ["unit 7", "C0"]
    assert {frozenset(pair) for pair in data["edges"]} == {
        frozenset((i, j)) for i in range(24) for j in (i + 1, i + 6) if j < 24 and (j > i + 1 or j % 6)
    }
    assert data["compactness"]["Polsby-Popper"] == list(plan.polsby_popper)
    young, everyone = data["sums"][0]["young"]
    assert young == [i % 5 for i in range(24)] and everyone == [i % 5 + 7 for i in range(24)]
    assert "status" not in data and data["violations"] == [] and data["value"] == 8
    for v, unit in zip(plan.problem.nodes, rings, strict=True):  # outer rings turn to the left, holes not
        for i, (ring, given) in enumerate(
            zip(unit, plan.problem.graph.nodes[v]["geometry"]["coordinates"], strict=True)
        ):
            assert np.allclose(ring, given[:: -1 if i else 1], atol=data["step"])


def test_names_from_a_file_are_escaped(page):
    text = page.read_text()
    assert "<b>" not in text and "<img" not in text and "</dd><i>" not in text
    assert text.count("</script>") == 2 and HOSTILE in read(page)[0]["nodes"]
    assert f"with forcopt {forcopt.__version__}." in text  # forcopt-core has no metadata of forcopt


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_hostile_name_stays_text_and_a_phone_has_room(page, opened, scheme):
    tab = opened(page, color_scheme=scheme)
    assert tab.locator("h1").inner_text() == "three districts"
    tab.locator("#find").fill("<img")
    tab.keyboard.press("Enter")
    assert tab.locator("#tip strong").inner_text() == f"unit 9 ({HOSTILE})"
    assert "district 2\npopulation 10\ncounty C1\nyoung 36.4 %" in tab.locator("#tip").inner_text()
    assert tab.evaluate("window.hurt") is None and tab.locator("b, i, img").count() == 0
    tab.set_viewport_size({"width": 390, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(22, 24, 29)")


def test_the_table_adds_up(plan, page, opened):
    tab = opened(page)
    heads = tab.locator("#districts thead th").all_inner_texts()
    assert heads == [
        "district", "population", "deviation", "units", "cut edges", "young", "</dd><i>old", "mayor: dem",
        "Polsby-Popper", "Reock",
    ]  # fmt: skip
    cuts = Counter(d for u, v in plan.cut_edges for d in (plan.assignment[u], plan.assignment[v]))
    votes = [plan.problem.numbers(name) for name in VOTES["mayor"]]
    for d, row in enumerate(tab.locator("#districts tbody tr").all()):
        values = [float(cell.get_attribute("data-value")) for cell in row.locator("td").all()]
        assert values[:4] == [plan.populations[d], 0, 8, cuts[d]]
        first, second = (vote[plan.labels == d].sum() for vote in votes)
        expected = [plan.share(*pair)[d] for pair in SHARES.values()] + [first / (first + second)]
        assert np.allclose(values[4:], [*expected, plan.polsby_popper[d], plan.reock[d]])
    scores = {
        dd.get_attribute("data-score"): dd.inner_text().replace(",", "")
        for dd in tab.locator("#scores dd").all()
    }
    assert {name: float(text) for name, text in scores.items()} == pytest.approx(plan.scores(VOTES), rel=1e-5)


def test_a_row_highlights_its_district(page, opened):
    tab = opened(page)
    dimmed = """i => { const copy = new OffscreenCanvas(top_.width, top_.height);
        const ctx = copy.getContext("2d", {willReadFrequently: true});
        ctx.drawImage(top_, 0, 0);
        const at = [0, 1].map(a => (spots[i][a] * view.k + view["xy"[a]]) * dpr);
        return ctx.getImageData(...at, 1, 1).data[3] > 150; }"""
    assert shown(tab) == "" and not any(tab.evaluate(dimmed, i) for i in (0, 2, 4))
    row = tab.locator("#districts tbody tr").nth(1)
    row.hover()
    assert shown(tab) == "2" and tab.evaluate(dimmed, 0)
    tab.mouse.move(2, 2)
    assert shown(tab) == ""
    row.click()
    tab.mouse.move(2, 2)
    assert shown(tab) == "2" and row.locator("button").get_attribute("aria-pressed") == "true"
    assert [tab.evaluate(dimmed, i) for i in (0, 2, 4)] == [True, False, True]
    tab.keyboard.press("Escape")
    assert shown(tab) == ""
    tab.locator("#districts tbody button").nth(2).focus()
    tab.keyboard.press("Enter")
    assert shown(tab) == "3"


def test_wheel_buttons_keys_and_fingers_zoom(page, opened):
    tab = opened(page)
    box = tab.locator("#top").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tab.mouse.move(x, y)
    tab.mouse.wheel(0, -400)
    tab.wait_for_selector("#map:not([data-zoom='1.000'])")
    assert zoom(tab) > 1.5
    before = settled(tab).locator("#map").get_attribute("data-at")
    tab.mouse.down()
    tab.mouse.move(x + 40, y + 30, steps=4)
    tab.mouse.up()
    settled(tab)
    moved = np.subtract(
        *[[float(v) for v in at.split()] for at in (tab.locator("#map").get_attribute("data-at"), before)]
    )
    assert moved.tolist() == pytest.approx([40, 30], abs=0.2)
    tab.locator("#all").click()
    assert zoom(tab) == 1
    tab.locator("#in").click()
    assert zoom(tab) == pytest.approx(1.6, abs=1e-3)
    tab.locator("#top").focus()
    for key, expected in (("0", 1), ("+", 1.5), ("-", 1)):
        tab.keyboard.press(key)
        assert zoom(tab) == pytest.approx(expected, abs=1e-3)
    tab.evaluate(
        """() => { const send = (type, id, x) => top_.dispatchEvent(new PointerEvent(type,
            {pointerId: id, pointerType: "touch", clientX: x, clientY: 400, bubbles: true}));
        top_.setPointerCapture = () => {};
        send("pointerdown", 7, 300); send("pointerdown", 8, 400); send("pointermove", 8, 500);
        send("pointerup", 7, 300); send("pointerup", 8, 500); }"""
    )
    assert zoom(tab) == pytest.approx(2, abs=1e-3)


def test_hover_and_keys_name_units(page, opened):
    tab = opened(page)
    at = "i => [0, 1].map(a => spots[i][a] * view.k + view['xy'[a]])"
    box = tab.locator("#top").bounding_box()
    x, y = tab.evaluate(at, 13)
    tab.mouse.move(box["x"] + x, box["y"] + y)
    assert tab.locator("#tip strong").inner_text() == "unit 13 (13)"
    assert "shown" in tab.locator("#districts tbody tr").first.get_attribute("class")
    tab.mouse.move(2, 2)
    assert tab.locator("#tip").is_hidden()
    tab.locator("#find").fill("unit 13 (13)")
    tab.keyboard.press("Enter")
    tab.locator("#top").focus()
    tab.keyboard.press("Shift+ArrowRight")
    assert tab.locator("#said").inner_text().startswith("unit 14 (14); district 2; population 10")
    tab.keyboard.press("Shift+ArrowUp")  # the second coordinate grows upwards
    assert tab.locator("#tip strong").inner_text() == "unit 20 (20)"
    tab.keyboard.press("Enter")
    assert shown(tab) == "2"
    tab.locator("#find").fill("nobody")
    tab.keyboard.press("Enter")
    assert tab.locator("#said").inner_text() == "No unit has the name nobody."


def test_headings_sort_and_shares_colour(page, opened):
    tab = opened(page)
    head = tab.locator("#districts thead th", has_text="young")
    values = (
        "[...document.querySelectorAll('#districts tbody tr')].map(r => Number(r.cells[5].dataset.value))"
    )
    for order, sign in (("ascending", 1), ("descending", -1)):
        head.locator("button").click()
        found = tab.evaluate(values)
        assert head.get_attribute("aria-sort") == order and found == sorted(found, key=lambda v: sign * v)
    tab.locator("#shade").select_option(label="by young")
    assert tab.locator("#scale").inner_text().startswith("young of a unit: 0.0 %")
    tab.locator("#links").check()
    settled(tab)


def test_an_island_without_outlines_or_positions(tmp_path, opened):
    g = nx.Graph([(f"n{i}", f"n{i + 1}") for i in range(7)])
    g.add_node("island")
    for i, v in enumerate(g):
        g.nodes[v]["population"] = 8 if v == "island" else 1 + (i == 7)
    p = Districting(g, districts=2, bounds=(8, 9))
    s = p.solve("set-partitioning")
    path = tmp_path / "island.html"
    s.decision.to_html(path, s)
    data, spots = read(path)
    assert (data["status"], data["value"], data["bound"], data["outlined"]) == ("optimal", 0, 0, False)
    spots = np.array(spots)[:, 0, 0]
    ends = [np.linalg.norm(np.subtract(*spots[pair])) for pair in data["edges"]]
    assert np.linalg.norm(spots[:-1] - spots[-1], axis=1).min() < 3 * max(ends)  # near the others
    tab = opened(path)
    proof = tab.locator("#proof").inner_text()
    assert proof == "Proved: the cut of this plan is 0, and no plan has a smaller one."
    assert "has no outlines" in tab.locator("#help").inner_text() and tab.locator("#links").is_checked()
    areas = tab.evaluate("areas.map(([ring]) => ring.flat().every(Number.isFinite) && ring.length >= 3)")
    assert areas == [True] * 9


def test_cells_of_a_grid_are_its_squares(tmp_path, opened):
    path = tmp_path / "grid.html"
    p = Districting(grid(5, 5), districts=5, tolerance=0)
    Plan.from_labels(p, np.arange(25) // 5).to_html(path)
    tab = opened(path)
    sizes = tab.evaluate(
        """areas.map(([ring]) => Math.abs(ring.reduce((sum, [x, y], i) => {
            const [a, b] = ring[(i + 1) % ring.length]; return sum + (x * b - a * y) / 2; }, 0)))"""
    )
    assert np.allclose(sizes, 250**2, rtol=1e-4) and len(sizes) == 25


def test_one_unit_a_bound_and_violations(tmp_path, opened):
    one = Districting(grid(1, 1), districts=1, tolerance=0)
    Plan.from_labels(one, [0]).to_html(tmp_path / "one.html")
    assert opened(tmp_path / "one.html").locator("#districts tbody tr").count() == 1
    p = Districting(grid(3, 3), districts=3, tolerance=0)
    s = p.solve("local-search", seed=0)
    s.decision.to_html(tmp_path / "p.html", s)
    proof = opened(tmp_path / "p.html").locator("#proof").inner_text()
    assert proof.startswith("Not proved to be the best: the cut of this plan is 6")
    bad = Plan.from_labels(p, [0, 1, 0, 1, 1, 2, 2, 2, 2])
    bad.to_html(tmp_path / "bad.html")
    tab = opened(tmp_path / "bad.html")
    broken = ["population of district 1", "contiguity of district 1", "population of district 3"]  # from 1
    assert tab.locator("#violations li").all_inner_texts() == broken
    assert tab.locator("#proof").inner_text() == "The plan violates constraints:"


def test_what_does_not_fit_is_refused(plan, tmp_path):
    path = tmp_path / "x.html"
    other = Districting(grid(1, 4), districts=2, tolerance=0).solve("set-partitioning")
    with pytest.raises(DeclarationError, match="solution: it has another plan or problem"):
        plan.to_html(path, other)
    with pytest.raises(DeclarationError, match=r"shares\['old'\] is 'ab'; it must be two node attributes"):
        plan.to_html(path, shares={"old": "ab"})
    with pytest.raises(DeclarationError, match="node 0: black is None; it must be a number"):
        plan.to_html(path, shares={"black": ("black", "vap")})
    with pytest.raises(DeclarationError, match="elections: 'mayor'"):
        plan.to_html(path, elections={"mayor": ("dem",)})
    assert not path.exists()


def test_the_command_writes_the_page(tmp_path, monkeypatch):
    write_examples(tmp_path)
    monkeypatch.chdir(tmp_path)
    words = ["districts", "precincts.geojson", "-k", "2", "--tolerance", "10%", "--time-limit", "1"]
    done = CliRunner().invoke(app, [*words, "--objective", "deviation", "--page", "map.html"])
    assert done.exit_code == 0, done.output
    assert "map.html" in done.stdout and 'download="map.html"' in (tmp_path / "districts.html").read_text()
    data, _ = read(tmp_path / "map.html")
    assert data["outlined"] and len(data["nodes"]) == 80 and data["objective"] == "deviation"
    for name, rule in (("./districts.html", "differ from --report"), ("map.svg", "must end in .html")):
        refused = CliRunner().invoke(app, [*words, "--page", name])
        assert refused.exit_code == 2 and rule in " ".join(refused.output.split())
