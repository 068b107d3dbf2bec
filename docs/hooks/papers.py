"""The page of papers: each numbered item, where the code states it, and which test or table repeats it.

`docs/papers.toml` lists the papers and their items. The places are found in the sources: an item is stated
where a docstring, a comment, or `cites` of a method names it, and repeated where a test or a committed table
names it. A name belongs to the work that the paragraph cites last before it; without one, to the paper of the
folder.
"""

import ast
import functools
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import reference
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
KINDS = (
    "Theorem|Lemma|Corollary|Proposition|Observation|Claim|Fact|Algorithm|Subroutine|Problem|LP|Equation"
    "|Table|Figure"
)
NUMBER = r"\(?(?:[A-Z]\.)?\d+(?:\.\d+)*[a-f]?\)?"
JOINT = r"(?:,? (?:and|or|to) |, |_and_|_to_|_)"
NAMED = re.compile(rf"(?<![A-Za-z])({KINDS})e?s?(?:\s+|_)({NUMBER}(?:{JOINT}{NUMBER})*)", re.I)
YEAR = re.compile(r"\b(?:18|19|20)\d\d\b")
HEAD = """---
search:
  boost: 0.6
---
# Papers

Each paper whose problems stand here, with its theorems, algorithms, programs, tables and figures, but without
definitions and remarks. The page is made from the sources: it lists what names an item in a docstring, in
`cites` of a method, in a test, or in a committed table. `Class: name` is a method of a problem.
"""
SHOWN = 5
"""Places in a cell, at most."""


@dataclass
class Item:
    """A numbered item of a paper.

    Attributes
    ----------
    name, what : str
        Such as "Theorem 2", and what it says in a few words.
    at : list of str
        Names in the code that state it. The file gives those that do not name its number.
    tests, tables : list of str
        Tests and committed tables that repeat it, likewise.
    why : str
        Why nothing repeats it.
    erratum : str
        What is wrong in print.
    """

    name: str
    what: str
    at: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    why: str = ""
    erratum: str = ""


@dataclass
class Paper:
    """A paper: how a citation names it, the folders that are about it, and its items by name."""

    title: str
    authors: str
    venue: str
    year: int
    cited: str
    folders: list[str]
    items: dict[str, Item]

    def names(self, text: str) -> bool:
        """Whether a citation's authors are this paper's."""
        return re.search(rf"\b(?:{self.cited})\b(?!-)", text) is not None


def papers() -> list[Paper]:
    """The papers of `docs/papers.toml`, with every place that names one of their items."""
    rows = tomllib.loads((ROOT / "docs" / "papers.toml").read_text(encoding="utf-8"))["paper"]
    out = []
    for row in rows:
        items = {name: Item(name, **entry) for name, entry in row.pop("items").items()}
        out.append(Paper(**row, items=items))
    for path, text, label in sources():
        for paper, name in named(text, path, out):
            item = paper.items.get(name)
            if item is not None and (not path.startswith("tests/") or "/test_" in path):
                kept = {"tests": item.tests, "benchmarks": item.tables}.get(path.split("/")[0], item.at)
                if label not in kept:
                    kept.append(label)
    return out


def named(text: str, path: str, known: list[Paper]) -> list[tuple[Paper, str]]:
    """The items that a text names, each with its paper."""
    about = [p for p in known if path.startswith(tuple(p.folders))]
    found = []
    for paragraph in re.split(r"\n\s*\n|\"\"\"", text):
        for match in NAMED.finditer(paragraph):
            kind = match[1].upper() if match[1].upper() == "LP" else match[1].capitalize()
            for number in numbers(match[2]):
                name = f"{kind} {number}"
                paper = _paper(paragraph[: match.start()], name, text, about, known)
                if paper is not None:
                    found.append((paper, name))
    return found


def numbers(text: str) -> list[str]:
    """The numbers of an enumeration: "13 to 15" are three."""
    out: list[str] = []
    for word, joint in re.findall(rf"({NUMBER})([^\d(A-Z]*)", text):
        plain = re.sub(r"(?<=\d)[a-f]$", "", word.strip("()"))  # a panel is of its figure
        if out and out[-1] == "to":
            first = out.pop(-2)
            out.pop()
            out += [str(n) for n in range(int(first), int(plain))] if plain.isdigit() else [first]
        out.append(plain)
        if joint.strip(" _,") == "to":
            out.append("to")
    return out


def _paper(before: str, name: str, text: str, about: list[Paper], known: list[Paper]) -> Paper | None:
    """The paper of an item: of the last citation before it, else the one of the folder that has the item."""
    years = list(YEAR.finditer(before))
    if years:
        start = max(years[-2].end() if len(years) > 1 else 0, before.rfind(";", 0, years[-1].start()))
        cited = before[start:]
        here = [p for p in known if p.names(cited) and p.year == int(years[-1][0])]
        if here or not any(p.names(cited) for p in about):
            return here[0] if here else None
    here = [p for p in about if name in p.items]
    if len(here) > 1:
        here = [p for p in here if p.names(text)] or here
    return here[0] if len(here) == 1 else None


@functools.cache
def sources() -> list[tuple[str, str, str]]:
    """Path, text and label of each definition of the sources and tests, and of each committed table."""
    out = []
    for folder in ("forcopt", "models", "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            inner = path.relative_to(ROOT).as_posix()
            if "tests/docs/" not in inner and not inner.startswith("forcopt/models/"):
                out += [(inner, text, label) for text, label in _definitions(path, inner)]
    for path in sorted((ROOT / "benchmarks").rglob("*.md")):
        inner = path.relative_to(ROOT).as_posix()
        if path.name != "README.md" or path.parent.name != "benchmarks":
            out.append((inner, path.read_text(encoding="utf-8"), inner))
    return out


def _definitions(path: Path, inner: str) -> list[tuple[str, str]]:
    """The text of each definition without the definitions in it, and its label."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    owner = [""] * len(lines)
    folder = inner.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    module = f"forcopt.{folder}" if inner.startswith("models/") else folder

    def walk(node: ast.AST, label: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                name = _label(child, label, inner)
                first = min((d.lineno for d in child.decorator_list), default=child.lineno)
                owner[first - 1 : child.end_lineno] = [name] * (child.end_lineno - first + 1)
                walk(child, name)

    walk(ast.parse(source), "")
    parts: dict[str, list[str]] = {}
    for line, label in zip(lines, owner, strict=True):
        parts.setdefault(label or (inner if inner.startswith("tests/") else module), []).append(line)
    return [("\n".join(part), label) for label, part in parts.items()]


def _label(node: ast.FunctionDef | ast.ClassDef, outer: str, inner: str) -> str:
    methods = []
    for mark in node.decorator_list:
        if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Attribute) and mark.args:
            first = mark.args[0]
            if mark.func.attr in ("formulation", "algorithm") and isinstance(first, ast.Constant):
                methods.append(f"{ast.unparse(mark.func.value)}: {first.value}")
    if methods:
        return methods[0]  # a method of several classes is named by one
    if inner.startswith("tests/"):
        return outer or (f"{inner}::{node.name}" if node.name.startswith("test_") else inner)
    if node.name.startswith("_"):
        return outer  # what a private name says is said of its module
    return f"{outer}.{node.name}" if outer else node.name


def on_files(files, config):
    """Add the page to the site."""
    files.append(File.generated(config, "papers.md", content=page()))
    return files


def page() -> str:
    """The page in Markdown."""
    lines = [HEAD]
    for paper in papers():
        lines += ["", f"## {paper.title}", "", f"{paper.authors}: {paper.venue}.", ""]
        lines += ["| item | what it is | where | repeated by | erratum |", "|---|---|---|---|---|"]
        for item in paper.items.values():
            cells = (item.name, item.what, where(item), repeated(item), item.erratum or "none known")
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def where(item: Item) -> str:
    """The cell of places: names of the code; none without a reason."""
    public = [name for name in item.at if not name.startswith("forcopt.")] or item.at
    rest = "not in the code" if item.why else "tests and tables only" if repeated(item) else ""
    return _list([_link(name) for name in public]) or rest


@functools.cache
def homes() -> dict[str, str]:
    """The path of each public name that stands for one thing in all sources."""
    paths: dict[str, set[str]] = {}
    for home in reference.homes().values():
        paths.setdefault(home.rpartition(".")[2], set()).add(home)
    out = {name: min(found) for name, found in paths.items() if len(found) == 1}
    for path, _, label in sources():
        room = out.get(label, "").rpartition(".")[0].removeprefix("forcopt.models.").replace(".", "/")
        if not path.removeprefix("models/").startswith(room):
            del out[label]
    return out


def _link(name: str) -> str:
    """A name of the code, with a link to its class or function in the reference."""
    home = homes().get(re.split(r"[.:]", name)[0])
    return f"[`{name}`][{home}]" if home else f"`{name}`"


def repeated(item: Item) -> str:
    """The cell of tests and tables, or the reason why there is none."""
    files = {test.partition("::")[0] for test in item.tests if "::" in test}
    tests = [f"`{test.removeprefix('tests/')}`" for test in item.tests if test not in files]
    tables = [f"[{table.removeprefix('benchmarks/')}](../{table})" for table in item.tables]
    return "; ".join(filter(None, (_list(tests), _list(tables), item.why)))


def _list(names: list[str]) -> str:
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")
