"""The site as a whole: the reference is complete, links lead somewhere, and people can read every page."""

import json
import re
import runpy
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from shutil import which
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs" / "hooks"))
BROWSER = next(filter(None, map(which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Page(HTMLParser):
    """What the checks need of a page: anchors, links, sources, headings, pictures."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.sources: list[str] = []
        self.headings: list[int] = []
        self.pictures: list[dict] = []
        self.language = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        if known.get("id"):
            self.ids.append(known["id"])
        if tag == "a" and known.get("href"):
            self.links.append(known["href"])
        for name in ("src", "href"):
            if tag in ("img", "script", "link") and known.get(name):
                self.sources.append(known[name])
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "img":
            self.pictures.append(known)
        if tag == "html":
            self.language = known.get("lang", "")


@pytest.fixture(scope="session")
def pages(site):
    return {path.relative_to(site).as_posix(): Page(path) for path in sorted(site.rglob("*.html"))}


def test_the_reference_names_everything_that_is_exported(site, pages):
    import reference

    known = {i for name, page in pages.items() if name.startswith("reference/") for i in page.ids}
    missing = [
        e.path for module in reference.modules() for e in reference.exported(module) if e.path not in known
    ]
    assert missing == []


def test_every_public_package_has_a_page():
    import pkgutil

    import reference

    import forcopt

    found = {m.name for m in pkgutil.walk_packages(forcopt.__path__, "forcopt.") if m.ispkg}
    found = {name for name in found if not any(part.startswith("_") for part in name.split("."))}
    inner = {name for name in found if name.startswith("forcopt.models.") and name.count(".") > 2}
    assert found - inner - set(reference.modules()) == reference.PRIVATE


def test_a_reference_has_readable_types(site):
    for path in (site / "reference").rglob("*.html"):
        text = re.sub(r"<[^>]*>", "", path.read_text(encoding="utf-8"))
        assert "Annotated[" not in text and "BeforeValidator" not in text, path


def test_links_lead_somewhere(site, pages):
    broken = []
    for name, page in pages.items():
        for link in {*page.links, *page.sources}:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or name == "404.html":
                continue
            folder = (site / name).parent
            target = (folder / unquote(parts.path)).resolve() if parts.path else site / name
            if target.is_dir():
                target = target / "index.html"
            if not target.exists():
                broken.append(f"{name}: {link}")
            elif parts.fragment and target.suffix == ".html" and parts.fragment != "__top":
                there = pages[target.relative_to(site.resolve()).as_posix()]
                if unquote(parts.fragment) not in there.ids:
                    broken.append(f"{name}: {link}")
    assert broken == []


def test_no_page_asks_the_network(site, pages):
    for name, page in pages.items():
        assert [s for s in page.sources if urlsplit(s).netloc and "canonical" not in s] == [], name
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?https?:", style.read_text(encoding="utf-8")), style


def test_headings_pictures_and_language(pages):
    faults = []
    for name, page in pages.items():
        if name == "404.html":
            continue
        if page.headings.count(1) != 1:
            faults.append(f"{name}: {page.headings.count(1)} first headings")
        jumps = [b for a, b in zip(page.headings, page.headings[1:], strict=False) if b > a + 1]
        if jumps:
            faults.append(f"{name}: a heading of level {jumps[0]} below none of level {jumps[0] - 1}")
        faults += [
            f"{name}: no alt text of {p.get('src')}" for p in page.pictures if not p.get("alt", "").strip()
        ]
        faults += [
            f"{name}: the id {i} twice" for i, n in Counter(page.ids).items() if n > 1 and i[:2] != "__"
        ]
        if page.language != "en":
            faults.append(f"{name}: no language")
    assert faults == []


def test_titles_in_the_sidebar_differ(site):
    class Sidebar(HTMLParser):
        def __init__(self, text):
            super().__init__()
            self.depth, self.titles, self.inside = 0, [], False
            self.feed(text)

        def handle_starttag(self, tag, attrs):
            known = dict(attrs)
            if tag == "nav" and "md-nav--primary" in known.get("class", ""):
                self.depth = 1
            elif tag == "nav" and self.depth:
                self.depth += "md-nav--secondary" not in known.get("class", "")
            self.inside = tag == "span" and "md-ellipsis" in known.get("class", "") and self.depth > 0
            self.titles += [""] if self.inside else []

        def handle_data(self, data):
            if self.inside:
                self.titles[-1] += data

        def handle_endtag(self, tag):
            self.inside = self.inside and tag != "span"
            if tag == "nav" and self.depth:
                self.depth -= 1

    titles = Counter(t.strip() for t in Sidebar((site / "citing/index.html").read_text()).titles)
    own = {"Citing"}  # the page that is shown stands twice
    assert len(titles) > 60 and [t for t, n in titles.items() if n > 1 and t not in own] == []


def test_an_address_gives_repository_and_edit_links(pages, monkeypatch):
    """The address here is a placeholder; the site as it is built has neither link."""
    from mkdocs.config import load_config
    from mkdocs.structure.files import File
    from mkdocs.structure.pages import Page as SitePage

    on_page_markdown = runpy.run_path(str(ROOT / "docs" / "hooks" / "site.py"))["on_page_markdown"]
    assert not any("/edit/main/" in link for page in pages.values() for link in page.links)
    monkeypatch.setenv("FORCOPT_REPOSITORY", "https://forge.example/group/forcopt")
    config = load_config(str(ROOT / "mkdocs.yml"))
    assert config.repo_url == "https://forge.example/group/forcopt"
    found = {}
    for source in ("start.md", "problems/allocation.md", "benchmarks/census_release/results.md"):
        page = SitePage(None, File(source, config.docs_dir, config.site_dir, True), config)
        on_page_markdown("", page, config, None)
        found[source] = page.edit_url.removeprefix(f"{config.repo_url}/edit/main/")
        assert (ROOT / found[source]).is_file()
    assert found["start.md"] == "docs/start.md"
    assert found["benchmarks/census_release/results.md"] == "benchmarks/census_release/results.md"


def test_a_search_puts_the_guide_before_tables(site):
    found = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    boosts = {d["location"]: d.get("boost", 1) for d in found}
    assert all(v <= 0.2 for k, v in boosts.items() if k.startswith("benchmarks/"))
    assert boosts["start/"] == 1 and 0.2 < boosts["reference/fairness/"] < 1


def test_notebooks_have_their_outputs(pages):
    for path in (ROOT / "docs" / "notebooks").glob("*.ipynb"):
        page = pages[f"notebooks/{path.stem}/index.html"]
        cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
        own = [picture for picture in page.pictures if picture["alt"] != "logo"]
        assert len(own) == sum(".plot(" in "".join(c["source"]) for c in cells) > 0


# -- in a browser ------------------------------------------------------------------------------------------

WIDE = """() => [...document.querySelectorAll("article *")].filter(node => {
  if (node.getBoundingClientRect().right <= innerWidth + 1) return false;
  for (let p = node.parentElement; p && p !== document.body; p = p.parentElement)
    if (["auto", "scroll", "hidden"].includes(getComputedStyle(p).overflowX)) return false;
  return true;
}).map(node => node.tagName + " " + node.textContent.slice(0, 40)).slice(0, 3)"""

CONTRAST = """() => {
  const parse = c => { const m = c.match(/[\\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
  const light = c => { const f = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(c[0]) + 0.7152 * f(c[1]) + 0.0722 * f(c[2]); };
  const over = (a, b) => [0, 1, 2].map(i => a[3] * a[i] + (1 - a[3]) * b[i]);
  const ground = node => { const layers = [];
    for (let p = node; p; p = p.parentElement) { const c = parse(getComputedStyle(p).backgroundColor);
      if (c[3] > 0) { layers.push(c); if (c[3] === 1) break; } }
    return layers.reverse().reduce((b, c) => over(c, b), [255, 255, 255]); };
  const bad = {};
  const walker = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim(), node = walker.currentNode.parentElement;
    if (!text || !node.checkVisibility() || node.closest("svg, .headerlink, script, style")) continue;
    const style = getComputedStyle(node), back = ground(node), front = over(parse(style.color), back);
    const [x, y] = [light(front), light(back)].sort((a, b) => b - a), ratio = (x + 0.05) / (y + 0.05);
    const large = parseFloat(style.fontSize) >= 24;
    if (ratio < (large ? 3 : 4.5))
      bad[style.color + " on " + back] = text.slice(0, 30) + " " + ratio.toFixed(2);
  }
  return bad;
}"""


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if BROWSER is None:
        pytest.skip("no browser is installed")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox", "--allow-file-access-from-files"]
        )
        yield started
        started.close()


def test_every_page_fits_a_phone_and_has_contrast(site, pages, browser):
    tab = browser.new_page(viewport={"width": 390, "height": 800})
    faults = []
    for name in pages:
        tab.emulate_media(color_scheme="light")
        tab.goto(f"file://{site / name}", wait_until="domcontentloaded")
        tab.add_style_tag(content="* { transition: none !important; }")
        wide = tab.evaluate(WIDE)
        if wide or tab.evaluate("document.documentElement.scrollWidth") > 390:
            faults.append(f"{name} overflows: {wide}")
        for scheme in ("light", "dark") if name != "404.html" else ():
            tab.emulate_media(color_scheme=scheme)
            # In one call: the page's own script may set the scheme, too.
            bad = tab.evaluate(
                f"name => {{ document.body.dataset.mdColorScheme = name; return ({CONTRAST})(); }}",
                SCHEMES[scheme],
            )
            if bad:
                faults.append(f"{name} has little contrast in the {scheme} scheme: {bad}")
    tab.close()
    assert faults == []


SCHEMES = {"light": "default", "dark": "slate"}


def test_parentheses_stretch_in_formulas(site, browser):
    tab = browser.new_page(viewport={"width": 1400, "height": 900})
    tab.goto(f"file://{site / 'problems/allocation/index.html'}")
    tab.evaluate("document.fonts.ready")
    assert tab.evaluate("""document.fonts.check('16px "forcopt formulas"', '(')""")
    heights = tab.evaluate(
        """() => [...document.querySelectorAll(".formula mo")].filter(n => n.textContent === "(")
        .map(n => n.getBoundingClientRect().height / parseFloat(getComputedStyle(n).fontSize))"""
    )
    assert heights and max(heights) > 1.8
    tab.close()
