"""The pages of the reference, one a public module, made from each `__all__`.

A name stands in full on one page: that of the innermost public module that defines it. Every other page that
exports it links there. So a name of an `__all__` cannot be missing, and none is described twice.
"""

import functools
import inspect
import pkgutil
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

import griffe
from mkdocs.structure.files import File

ENGINE = {
    "forcopt.language": "Language",
    "forcopt.problem": "Problems and solutions",
    "forcopt.study": "Comparing",
    "forcopt.study.charts": "Charts",
    "forcopt.loops": "Solutions of models",
    "forcopt.loops.certify": "Certificates",
    "forcopt.loops.leximin": "Leximin strategies",
    "forcopt.backends": "Backends",
    "forcopt.compile": "Programs",
    "forcopt.compile.bridges": "Bridges",
    "forcopt.fairness": "Fairness notions",
    "forcopt.learning": "Hypothesis classes",
    "forcopt.games": "Games",
    "forcopt.causal": "Causal models",
    "forcopt.privacy": "Privacy",
    "forcopt.privacy.noises": "Noise",
    "forcopt.privacy.amplification": "Amplification by sampling",
    "forcopt.numeric": "Numerical building blocks",
    "forcopt.graphs": "Graphs",
    "forcopt.data": "Data",
    "forcopt.declaration": "Declarations",
    "forcopt.clock": "Clocks",
    "forcopt.errors": "Errors",
    "forcopt.status": "Status",
    "forcopt.testing": "Checks of your own problems, methods and backends",
}
"""The public modules of the engine, by the titles of their pages."""

PRIVATE = {
    "forcopt.cli",
    "forcopt.models",
    "forcopt.study.page",
    "forcopt.loops.checks",
    "forcopt.loops.exact_milp",
}
"""Packages without a page: the command line, the list of problems, the template of a report, and two that
`Model.solve` and `certify` run."""

PARTS = {
    "Models and variables": ("model", "variable", "expression", "joins", "affine", "along"),
    "Atoms": ("atoms", "matrices", "products"),
    "Constraints": ("constraint", "logic", "scheduling", "special_sets"),
    "Objectives": ("objective",),
}
"""The language's parts: its page is too long for one."""


@dataclass(frozen=True)
class Entry:
    """A name that a module exports.

    Attributes
    ----------
    module, name : str
        The exporting module, and the name there.
    value : object
        The object.
    """

    module: str
    name: str
    value: object

    @property
    def path(self) -> str:
        """The name with its module."""
        return f"{self.module}.{self.name}"

    @property
    def summary(self) -> str:
        """The first sentence of the docstring."""
        if not isinstance(self.value, ModuleType | type) and not callable(self.value):
            return ""
        text = (inspect.getdoc(self.value) or "").split("\n\n")[0]
        return " ".join(text.split()).replace("|", r"\|")


@functools.cache
def modules() -> dict[str, str]:
    """The titles of all public modules."""
    import forcopt.models

    problems = {
        m.name: _title(m.name.rpartition(".")[2])
        for m in pkgutil.iter_modules(forcopt.models.__path__, "forcopt.models.")
    }
    return {"forcopt": "forcopt"} | ENGINE | problems


def _title(name: str) -> str:
    return f"{name.replace('_', ' ').capitalize()} (reference)"


def exported(module: str) -> list[Entry]:
    """The entries of a module's `__all__`; without one, of the public names that it defines."""
    loaded = import_module(module)
    own = [n for n, v in vars(loaded).items() if n[0] != "_" and getattr(v, "__module__", "") == module]
    return [Entry(module, name, getattr(loaded, name)) for name in getattr(loaded, "__all__", sorted(own))]


@functools.cache
def homes() -> dict[str, str]:
    """The path under which each exported name stands in full, by each of its paths."""
    places: dict[object, list[Entry]] = {}
    for module in modules():
        for entry in exported(module):
            places.setdefault(_identity(entry), []).append(entry)
    out = {}
    for entries in places.values():
        defined = getattr(entries[0].value, "__module__", None) or ""
        best = max(entries, key=lambda e: len(e.module) if f"{defined}.".startswith(f"{e.module}.") else 0)
        out |= {entry.path: best.path for entry in entries}
    return out


def _identity(entry: Entry) -> object:
    plain = not callable(entry.value) and not isinstance(entry.value, ModuleType)
    return (entry.name, repr(entry.value)[:200]) if plain else id(entry.value)


def members(value: type) -> list[str]:
    """The methods and properties of a class that are its own and documented.

    Fields stand in the docstring. The reference of the bases has the members of every declaration.
    """
    import forcopt.declaration
    import forcopt.problem

    general = {forcopt.declaration.Declared, forcopt.problem.Problem} - {value}
    own = [c for c in value.__mro__ if c.__module__.startswith("forcopt") and c not in general]
    found: dict[str, None] = {}
    for cls in own:
        for name, attribute in vars(cls).items():
            kinds = (classmethod, staticmethod, property, functools.cached_property)
            if not name.startswith("_") and (isinstance(attribute, kinds) or inspect.isfunction(attribute)):
                found[name] = None
    return [name for name in found if not _inherits_text(value, name, own)]


def _inherits_text(value: type, name: str, own: list[type]) -> bool:
    """Whether a name has no docstring of its own here."""
    for cls in own:
        attribute = vars(cls).get(name)
        if attribute is not None:
            attribute = getattr(attribute, "__func__", attribute)
            return not getattr(attribute, "__doc__", None)
    return True


def page(title: str, entries: list[Entry], introduction: str) -> str:
    """The Markdown of a page."""
    full = [e for e in entries if homes()[e.path] == e.path]
    lines = ["---", "search:", "  boost: 0.6", "---", f"# {title}", "", introduction, ""]
    if entries:
        lines += ["| name | summary |", "|---|---|"]
    for e in entries:
        anchor = "" if e in full else f'<span id="{e.path}"></span>'
        lines.append(f"| {anchor}[`{e.name}`][{homes()[e.path]}] | {e.summary} |")
    for e in full:
        lines += ["", f"::: {e.path}", "    options:", "      heading_level: 2"]
        if isinstance(e.value, type):
            lines += [f"      members: {members(e.value) or 'false'}", "      inherited_members: true"]
        elif isinstance(e.value, ModuleType):
            lines += ["      members: false", "      show_root_full_path: false"]
    return "\n".join(lines) + "\n"


def pages() -> dict[str, tuple[str, str]]:
    """All pages: title and Markdown by their place in docs/."""
    out = {}
    for module, title in modules().items():
        slug = module.removeprefix("forcopt").removeprefix(".").replace(".", "/") or "forcopt"
        where = f"`{module}`" if module != "forcopt" else "`import forcopt as fo`"
        text = " ".join(
            (inspect.getdoc(import_module(module)) or "").partition(">>>")[0].split("\n\n")[0].split()
        )
        entries = exported(module)
        if module == "forcopt.language":
            for part, names in PARTS.items():
                own = [e for e in entries if getattr(e.value, "__module__", "").rpartition(".")[2] in names]
                out[f"reference/{slug}/{part.split()[0].lower()}.md"] = (
                    part,
                    page(part, own, f"Of `{module}`; all these are in `import forcopt as fo`."),
                )
            continue
        out[f"reference/{slug}.md"] = (title, page(title, entries, f"{where}: {text}"))
    return {"reference/index.md": ("Reference", _index(out)), **out}


def _index(made: dict[str, tuple[str, str]]) -> str:
    lines = [
        "---\nsearch:\n  boost: 0.6\n---\n# Reference\n",
        "Every public name stands on the page of its module. `forcopt describe NAME` shows the "
        "fields, methods and options of a problem in a terminal.\n",
        "| page | names |",
        "|---|---|",
    ]
    for path, (title, _) in made.items():
        entries = _entries(path)
        names = ", ".join(f"[`{e.name}`][{homes()[e.path]}]" for e in entries)
        lines.append(f"| [{title}]({path.removeprefix('reference/')}) | {names} |")
    return "\n".join(lines) + "\n"


def _entries(path: str) -> list[Entry]:
    inner = path.removeprefix("reference/").removesuffix(".md").replace("/", ".")
    if inner.startswith("language."):
        names = next(names for part, names in PARTS.items() if part.split()[0].lower() == inner.split(".")[1])
        return [
            e
            for e in exported("forcopt.language")
            if getattr(e.value, "__module__", "").rpartition(".")[2] in names
        ]
    return exported("forcopt" if inner == "forcopt" else f"forcopt.{inner}")


def on_config(config):
    """Put the pages into the navigation."""
    made = pages()
    problems = [
        {title.replace(" (reference)", ": fields"): path}
        for path, (title, _) in made.items()
        if "/models/" in path
    ]
    engine = [{title: path} for path, (title, _) in made.items() if "/models/" not in path]
    for at, item in enumerate(config.nav):
        if item == {"Reference": "reference/index.md"}:
            config.nav[at] = {
                "Reference": [
                    {"All names": engine[0]["Reference"]},
                    *engine[1:],
                    {"Fields of problems": problems},
                ]
            }
    return config


def on_files(files, config):
    """Add the pages to the site."""
    for path, (_, text) in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


class Plain(griffe.Extension):
    """Drops pydantic's validators from the types of fields: ``Annotated[Numbers, ...]`` is ``Numbers``."""

    def on_attribute(self, *, attr, **kwargs):
        """Shorten the annotation of an attribute."""
        attr.annotation, attr.value = _plain(attr.annotation), _plain(attr.value)


def _plain(expression):
    if isinstance(expression, griffe.ExprSubscript) and str(expression.left).endswith("Annotated"):
        inner = expression.slice
        return inner.elements[0] if isinstance(inner, griffe.ExprTuple) else inner
    return expression
