"""The site's additions to MkDocs: formulas without a script, pictures of the gallery, notebooks as pages."""

import logging
import os
import re
import subprocess
import sys
import textwrap
from base64 import b64decode
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from latex2mathml.converter import convert
from mkdocs.structure.files import File

import forcopt

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\(?P<open>[(\[])(?P<tex>.*?)\\[)\]]</\1>', re.DOTALL)
MATHML = "http://www.w3.org/1998/Math/MathML"
ElementTree.register_namespace("", MATHML)
ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}
ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^[ ]*```python\n(.*?)^[ ]*```", re.MULTILINE | re.DOTALL)


def on_startup(command, dirty):
    """Lay out the package for the reference, with models/ in its place."""
    build = [sys.executable, "setup.py", "-q", "build_py", "--build-lib", "build/docs"]
    subprocess.run(build, cwd=ROOT, check=True)


def on_config(config):
    """Show the version in the footer; without an address of the repository there is nothing to edit."""
    if not config.repo_url:
        config.edit_uri = None
    config.copyright = f"forcopt {forcopt.__version__}, MIT licence"
    return config


def on_files(files, config):
    """Add the pages of benchmarks, the pictures that pages draw, and a page for each notebook."""
    place = {
        "src_dir": str(ROOT),
        "dest_dir": config.site_dir,
        "use_directory_urls": config.use_directory_urls,
    }
    for path in sorted((ROOT / "benchmarks").rglob("*")):
        inner = path.relative_to(ROOT)
        shown = path.suffix in (".md", ".png", ".svg") or path.name == "history.csv"
        if shown and not any(part.startswith(".") for part in inner.parts):
            files.append(File(inner.as_posix(), **place))
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    docs = ROOT / "docs"
    for page in (docs / "index.md", docs / "gallery.md", *sorted((docs / "studies").glob("*.md"))):
        for name, content in drawn(page).items():
            files.append(File.generated(config, f"img/drawn/{name}", content=content))
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        for name, content in notebook_page(path).items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    certificate = (ROOT / "models/districting/certificates/UT-tract.json").read_bytes()
    files.append(File.generated(config, "img/utah-certificate.json", content=certificate))
    files.append(File.generated(config, "releases.md", content=releases()))
    return files


def on_nav(nav, config, files):
    """Keep the pages of the guide in the order of the navigation."""
    apart = ("benchmarks", "reference")
    config["guide"] = [page for page in nav.pages if not page.file.src_uri.startswith(apart)]
    return nav


def on_post_build(config):
    """Write the guide for readers that are programs: a list of its pages, and all of them in one file."""
    site, pages = Path(config.site_dir), config["guide"]
    lines = [f"- [{page.title}]({page.url or 'index.html'})" for page in pages]
    head = f"# {config.site_name}\n\n> {config.site_description}\n\n"
    (site / "llms.txt").write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    texts = [page.file.content_string for page in pages]
    (site / "llms-full.txt").write_text(head + "\n\n".join(texts), encoding="utf-8")


def drawn(page: Path) -> dict[str, bytes]:
    """Run the Python of a page and give the pictures that it writes."""
    before = os.getcwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            namespace = {"__name__": page.stem}
            with redirect_stdout(None):
                for block in BLOCK.findall(page.read_text(encoding="utf-8")):
                    exec(textwrap.dedent(block), namespace)
            return {path.name: path.read_bytes() for path in Path(folder).glob("*.svg")}
        finally:
            os.chdir(before)


def notebook_page(path: Path) -> dict[str, str | bytes]:
    """A notebook's cells with their outputs as Markdown, below a link to the file, and its pictures."""
    import nbformat
    from nbclient import NotebookClient

    book, parts, files = nbformat.read(path, as_version=4), [], {}
    with TemporaryDirectory() as folder:
        NotebookClient(
            book, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}}
        ).execute()
    for at, cell in enumerate(book.cells):
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            data = output.get("data", {"text/plain": output.get("text", "")})
            if "image/png" in data:
                files[f"{path.stem}-{at}.png"] = b64decode(data["image/png"])
                parts.append(f"![What the cell above draws]({path.stem}-{at}.png)")
            elif "text/html" in data:  # a blank line would end the block
                inner = re.sub(r"\n\s*\n", "\n", data["text/html"].strip())
                parts.append(f'<div class="output">\n{inner}\n</div>')
            elif data["text/plain"].strip():
                parts.append(f"```text\n{data['text/plain'].rstrip()}\n```")
    parts.insert(1, f"This page is a notebook: [{path.name}]({path.name}), to be run in Jupyter.")
    return {f"{path.stem}.md": "\n\n".join(parts) + "\n", **files}


def releases() -> str:
    """The changelog as a page; it stands beside docs/, the page within."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return text.replace("# Changelog", "# Releases", 1).replace("](docs/", "](")


def on_page_markdown(markdown, page, config, files):
    """Point links between docs/ and benchmarks/ at the copies; rank the guide before tables in a search."""
    if page.file.src_uri.startswith("benchmarks/"):
        page.meta.setdefault("search", {})["boost"] = 0.2
        if page.edit_url:  # benchmarks stand beside docs
            page.edit_url = page.edit_url.replace("/docs/benchmarks/", "/benchmarks/")
    if "<!-- backends -->" in markdown:
        markdown = markdown.replace("<!-- backends -->", backend_table())
    up = "../" * page.file.src_uri.count("/")
    return re.sub(r"\]\((\.\./)+(docs/|(?=benchmarks/))", f"]({up}", markdown)


def backend_table() -> str:
    """Each backend's classes of programs, and whether it gives multipliers on a small linear program."""
    from forcopt.backends import registry

    lines = [
        "| backend | takes | duals of rows | separation oracle within the search |",
        "|---|---|---|---|",
    ]
    for name, backend in registry.backends().items():
        taken = backend.capabilities
        missing = bool(backend.missing())
        duals = "not installed here" if missing else "yes" if gives_duals(name) else "no"
        lazy = "yes" if "lazy" in taken.kinds else "re-solved"
        lines.append(f"| `{name}` | {taken.describe()} | {duals} | {lazy} |")
    return "\n".join(lines)


def gives_duals(backend: str) -> bool:
    """Whether the multiplier of the only row of a linear program comes back."""
    m = forcopt.Model("row")
    x = m.variable("x", lower=0, upper=9, integer=backend == "cp-sat")
    row = m.subject_to(2 * x >= 4)
    m.minimize(3 * x)
    try:
        return abs(float(m.solve(backend).dual(row)) - 1.5) < 1e-3
    except forcopt.ForcoptError:
        return False


def on_page_content(html, page, config, files):
    """Turn TeX into MathML, which browsers show by themselves; a wide formula scrolls."""

    def mathml(match):
        tex = match["tex"]
        for entity, character in ENTITIES.items():
            tex = tex.replace(entity, character)
        if match["open"] == "(":
            return convert(tex, display="inline")
        formula = ElementTree.fromstring(convert(tex, display="block"))
        for sub in formula.iter(f"{{{MATHML}}}msub"):
            if sub[0].text in ("min", "max") or sub[0].get(
                "movablelimits"
            ):  # as TeX has it: below, not beside
                sub.tag = f"{{{MATHML}}}munder"
        text = ElementTree.tostring(formula, encoding="unicode")
        return f'<div class="formula" tabindex="0" role="region" aria-label="formula">{text}</div>'

    return FORMULA.sub(mathml, html)
