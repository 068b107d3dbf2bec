"""The interactive page in a real browser, without a network."""

import json
from dataclasses import replace
from shutil import which

import pytest
from rucksack import SMALL, Bad, Rucksack

import forcopt as fo
from forcopt.clock import Improvement
from forcopt.study import Comparison, page

BROWSER = next(filter(None, map(which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def comparison():
    """Two instances of each of three sizes, by three methods, one of which fails."""
    problems = {
        f"n{n} <{i}>": Bad(values=range(1, n + 1), weights=[2 + i] * n, capacity=n)
        for n in (4, 8, 16)
        for i in (0, 1)
    }
    found = fo.compare(problems, ["milp", "greedy", "raise"], isolate=False, progress=False)
    trace = (Improvement(0.1, 3.0, 20.0), Improvement(0.2, 5.0, 20.0))
    rows = [
        replace(r, seconds=0.01 * r.size * (1 + (r.method == "greedy")), trace=trace if r.solved else ())
        for r in found.rows
    ]
    return Comparison(rows, found.problems)


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if BROWSER is None:
        pytest.skip("there is no Chromium to look at the page with")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(comparison, browser, tmp_path):
    """The page, opened; what it asks of the network or complains about fails the test."""
    path = tmp_path / "report.html"
    comparison.to_html(path)
    tab = browser.new_page()
    asked, said = [], []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("console", lambda message: said.append(message.text))
    tab.goto(path.as_uri())
    yield tab
    assert asked == [path.as_uri()] and said == []
    tab.close()


def column(tab, title, shown=True):
    """The texts of a column of the table."""
    at = [head.inner_text() for head in tab.locator("thead th").all()].index(title)
    rows = "tbody tr:not([hidden])" if shown else "tbody tr"
    return tab.locator(f"{rows} td:nth-child({at + 1})").all_inner_texts()


def test_a_click_on_a_heading_sorts_the_unknown_last(opened, comparison):
    head = opened.locator("thead th", has_text="objective").first
    values = sorted(r.objective for r in comparison.rows if r.solved)
    lost = ["-"] * sum(not r.solved for r in comparison.rows)
    head.click()
    assert column(opened, "objective") == [f"{v:.8g}" for v in values] + lost
    head.click()
    assert column(opened, "objective") == [f"{v:.8g}" for v in values[::-1]] + lost
    opened.locator("thead th", has_text="method").click()
    assert column(opened, "method") == ["greedy"] * 6 + ["milp@highs"] * 6 + ["raise"] * 6


def test_filters_leave_the_runs_that_match(opened):
    assert opened.locator("#shown").inner_text() == "18 of 18 runs"
    opened.locator("#search").fill("PIVOT")
    assert set(column(opened, "method")) == {"raise"}
    opened.locator("#search").fill("")
    opened.locator("select[data-column=instance]").select_option("n8 <1>")
    assert column(opened, "method") == ["milp@highs", "greedy", "raise"]
    opened.locator("select[data-column=status]").select_option("optimal")
    assert column(opened, "instance") == ["n8 <1>"]
    assert opened.locator("#shown").inner_text() == "1 of 18 runs"


def test_every_chart_is_drawn_and_tells_of_the_point_under_the_mouse(opened):
    tabs = opened.locator("#tabs button")
    assert [tab.get_attribute("data-chart") for tab in tabs.all()] == [
        "profile", "cactus", "progress", "scaling", "explore"
    ]  # fmt: skip
    for tab in tabs.all():
        tab.click()
        assert tab.get_attribute("aria-pressed") == "true"
        picture = opened.locator("#chart").inner_html()
        assert picture.count("<path") + picture.count("<circle") > 2 and "NaN" not in picture
    opened.locator("#tabs button[data-chart=scaling]").click()
    assert "greedy: size^1.00 ± " in opened.locator("#note").inner_text()
    assert opened.locator("#tip").is_hidden()
    opened.locator("#chart svg > path.mark").first.hover(force=True)
    assert "milp@highs on n4 <0>: 9, 0.09" in opened.locator("#tip").inner_text()
    opened.mouse.move(5, 5)
    assert opened.locator("#tip").is_hidden()


def test_one_test_has_no_profile_and_a_sweep_starts_with_its_parameter(comparison, browser, tmp_path):
    one = Comparison([r for r in comparison.rows if r.instance == "n4 <0>"])
    points = [r for r in comparison.rows if r.method == "greedy" and r.instance.endswith("<0>")]
    sweep = Comparison([replace(r, parameters={"items": r.size}) for r in points])
    expected = [
        (one, "Comparison on n4 <0>", ["progress", "explore"], "Gap against time"),
        (sweep, "Sweep of items", ["cactus", "progress", "scaling", "explore"], "Any two numbers"),
    ]
    for made, title, charts, first in expected:
        made.to_html(tmp_path / "page.html")
        tab = browser.new_page()
        tab.goto((tmp_path / "page.html").as_uri())
        assert tab.locator("h1").inner_text() == title
        assert [t.get_attribute("data-chart") for t in tab.locator("#tabs button").all()] == charts
        assert tab.locator("#tabs [aria-pressed=true]").inner_text() == first
        chosen = tab.locator("select[data-axis=x] option:checked").inner_text
        assert made is one or chosen() == "items"
        tab.close()


def test_forty_methods_fit_into_the_legend(comparison, browser, tmp_path):
    first = comparison.rows[0]
    rows = [replace(first, method=f"method-{i}", seconds=1.0 + i) for i in range(40)]
    Comparison(rows).to_html(tmp_path / "page.html")
    tab = browser.new_page()
    tab.goto((tmp_path / "page.html").as_uri())
    picture, last = tab.locator("#chart svg").bounding_box(), tab.locator(".legend").last.bounding_box()
    assert last["y"] + last["height"] <= picture["y"] + picture["height"]
    tab.close()


def test_a_click_on_the_legend_hides_a_method(opened):
    opened.locator("#tabs button[data-chart=scaling]").click()
    points = opened.locator("#chart svg > path.mark")
    assert points.count() == 12
    opened.locator("#chart .legend", has_text="greedy").click()
    assert points.count() == 6
    opened.locator("#chart .legend", has_text="greedy").click()
    assert points.count() == 12


def test_any_two_numbers_of_the_runs_that_are_left(opened):
    opened.locator("#tabs button[data-chart=explore]").click()
    opened.locator("select[data-axis=x]").select_option(label="size")
    opened.locator("select[data-axis=y]").select_option(label="objective")
    points = opened.locator("#chart svg > path.mark")
    assert points.count() == 12  # those that failed have no objective
    sizes = {mark.get_attribute("transform").rpartition(" ")[2] for mark in points.all()}
    assert sizes >= {"scale(1)", "scale(1.6)"}  # a point below another one in the same place is larger
    opened.locator("select[data-column=method]").select_option("milp@highs")
    assert points.count() == 6


def test_a_declaration_opens(opened, comparison):
    opened.locator("tbody tr button").nth(4).click()
    dialog = opened.locator("#declaration")
    assert dialog.is_visible() and dialog.locator("h2").inner_text() == "n4 <1>, greedy"
    text = dialog.locator("pre").inner_text()
    assert json.loads(text) == comparison.problems[comparison.rows[4].fingerprint].to_dict()
    dialog.locator("button").click()
    assert dialog.is_hidden()


def test_a_hostile_name_stays_text(tmp_path, browser):
    name = "</script><script>window.hurt=1</script><img src=x onerror='window.hurt=1'>"
    comparison = fo.compare({name: Rucksack(**SMALL), "b": Rucksack(**SMALL)}, ["greedy"], isolate=False)
    comparison.to_html(tmp_path / "x.html")
    tab = browser.new_page()
    tab.goto((tmp_path / "x.html").as_uri())
    assert tab.evaluate("window.hurt") is None
    assert tab.locator("tbody tr").first.locator("td").first.inner_text() == name
    tab.close()


def test_a_page_without_a_solution_or_a_row_still_opens(tmp_path, browser):
    for comparison in (fo.compare(Bad(**SMALL), ["raise"], isolate=False), Comparison([])):
        comparison.to_html(tmp_path / "x.html")
        tab = browser.new_page()
        said = []
        tab.on("pageerror", lambda error, said=said: said.append(str(error)))
        tab.goto((tmp_path / "x.html").as_uri())
        assert said == [] and tab.locator("h1").is_visible()
        tab.close()


def test_a_large_declaration_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "LARGEST", 100)
    comparison = fo.compare(
        {
            "small": Rucksack(values=[1], weights=[1], capacity=1),
            "large": Rucksack(values=[1] * 99, weights=[1] * 99, capacity=9),
        },
        ["greedy"],
        isolate=False,
    )
    comparison.to_html(tmp_path / "x.html")
    text = (tmp_path / "x.html").read_text()
    assert text.count("too large to be shown here") == 1


def test_the_page_says_when_and_what(opened, comparison):
    import datetime

    text = opened.locator("#summary").inner_text()
    assert text.startswith("18 runs of 3 methods on 6 instances: 6 optimal") and "6 failed" in text
    assert datetime.date.today().isoformat() in opened.locator("#made").inner_text()


def test_the_keyboard_sorts(opened, comparison):
    head = opened.locator("thead th", has_text="objective").first
    head.focus()
    opened.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    values = sorted(r.objective for r in comparison.rows if r.solved)
    assert column(opened, "objective")[: len(values)] == [f"{v:.8g}" for v in values]
    opened.keyboard.press("Space")
    assert head.get_attribute("aria-sort") == "descending"


def test_columns_are_chosen(opened):
    opened.locator("details summary").first.click()
    assert opened.locator("thead th", has_text="objective").first.is_visible()
    opened.locator("#columns label", has_text="objective").first.locator("input").uncheck()
    assert not opened.locator("thead th", has_text="objective").first.is_visible()
    assert (
        opened.locator("tbody tr").first.locator("td:not([hidden])").count()
        < opened.locator("thead th").count()
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_in_either_scheme(comparison, browser, tmp_path, scheme):
    path = tmp_path / "report.html"
    comparison.to_html(path)
    tab = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme=scheme)
    tab.goto(path.as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(22, 24, 29)")
    letters = tab.evaluate(
        "() => Math.min(...[...document.querySelectorAll('#chart svg text')]"
        ".map(t => t.getBoundingClientRect().height))"
    )
    assert letters >= 11
    tab.close()
