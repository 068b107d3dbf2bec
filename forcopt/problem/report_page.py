"""One page for every task: it is a single file, can be printed, and needs no network."""

from __future__ import annotations

import base64
import html
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any

from forcopt.data.intake import Findings, grouped
from forcopt.version import __version__

LARGEST = 2_000_000
"""Characters of a file that is still put into the page."""


def report(
    task: str,
    known: Mapping[str, Any],
    *,
    question: Mapping[str, object],
    findings: Findings | None,
    answer: Mapping[str, str],
    promised: Iterable[str] = (),
    limits: Iterable[str] = (),
    plans: Iterable[Path] = (),
    public_check: bool = True,
) -> str:
    """Give the report of a task as HTML.

    Parameters
    ----------
    task : str
        A section of ``report_texts.toml``, which has title, lead, promises, limits and methods.
    known : Mapping[str, Any]
        What these texts name.
    question : Mapping[str, object]
        What was asked, by name.
    findings : Findings, optional
        What was read, and what was odd in it.
    answer : Mapping[str, str]
        HTML by the title of its section.
    promised, limits : Iterable[str]
        More of what holds, and how it was proved; and of what was not taken into account.
    plans : Iterable[Path]
        The files that hold the answer; the page offers them for download.
    public_check : bool, default True
        Whether the page may tell what was found in the data.

    Returns
    -------
    str
        A page without scripts.

    Examples
    --------
    >>> known = {"label": "hired", "error": 0.2, "error_before": 0.1}
    >>> text = report("fair", known, question={"groups": "sex"}, findings=None, answer={"Rates": "equal"})
    >>> text.count("<h2>"), "://" in text, "errs in 20.0% of the test records" in text
    (6, False, True)
    """
    own = tomllib.loads(files(__package__).joinpath("report_texts.toml").read_text(encoding="utf-8"))[task]
    check = "<p>The data were not read from a file.</p>"
    if findings is not None and public_check:
        notes = [(f.row or "", f.column, f.value, f.rule, count) for f, count in grouped(findings.notes)]
        check = table("What was read", ("file", "content"), findings.facts.items())
        check += f"<p>No fault was found. Notes and stated changes: {len(notes) or 'none'}.</p>"
        if notes:
            check += table("Notes", ("first row", "column", "value", "note", "rows"), notes)
    elif findings is not None:
        check = "<p>The holder of the file checked it. What was found is private and not published.</p>"
    links = ""
    for path in plans:
        text = path.read_text(encoding="utf-8")
        data = base64.b64encode(text.encode()).decode() if len(text) <= LARGEST else ""
        link = f'<a download="{html.escape(path.name)}" href="data:application/octet-stream;base64,{data}">'
        shown = f"{link}{html.escape(path.name)}</a>" if data else html.escape(path.name)
        links += f"<li>{shown}, {len(text):,} characters</li>"
    sections = {
        "The question": table("", (), question.items()),
        "The data check": check,
        **answer,
        "What is promised": _listed([*(text.format_map(known) for text in own["promised"]), *promised]),
        "Limits": _listed([*own["limits"], *limits]),
        **({"The answer as files": f"<ul>{links}</ul>"} if links else {}),
        "Methods": f"<p>{html.escape(own['methods'].format_map(known))}</p>",
    }
    return page(own["title"].format_map(known), own["lead"].format_map(known), sections)


def page(title: str, lead: str, sections: Mapping[str, str]) -> str:
    """Give a page of sections, HTML by title, in the style of all reports."""
    names = {name: re.sub(r"\W+", "-", name.lower()) for name in sections}
    parts = {
        "title": html.escape(title),
        "lead": html.escape(lead),
        "nav": "".join(f'<a href="#{names[name]}">{html.escape(name)}</a>' for name in sections),
        "sections": "\n".join(
            f'<section id="{names[name]}"><h2>{html.escape(name)}</h2>\n{text}\n</section>'
            for name, text in sections.items()
        ),
    }
    return _filled(__package__, "report_page.html", parts)


def interactive(package: str, data: Any, *, title: str, **parts: str) -> str:
    """Give the ``page.html`` of a package with its ``style.css``, its ``script.js``, and data for this.

    Parameters
    ----------
    package : str
        Which has these files.
    data : Any
        For JSON.
    title : str
        Plain text.
    parts : str
        HTML by its name in the file.
    """
    # A text within may not end the script element that holds it.
    text = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    parts |= {name.partition(".")[0]: _own(package, name) for name in ("style.css", "script.js")}
    return _filled(package, "page.html", {**parts, "title": html.escape(title), "data": text})


def _own(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8").rstrip()


def _filled(package: str, name: str, parts: Mapping[str, str]) -> str:
    made = f"Made on {date.today().isoformat()} with forcopt {__version__}."
    known = {**parts, "made": made}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: known[match[1]], _own(package, name))


def _listed(texts: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{html.escape(text)}</li>' for text in texts)}</ul>"


def picture(drawing: str, alt: str) -> str:
    """A drawing as SVG with the text that stands for it."""
    return f'<figure role="img" aria-label="{html.escape(alt)}">{drawing}</figure>'


def table(caption: str, head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table whose first column heads its rows; numbers stand to the right."""
    names = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in head)
    body = ""
    for first, *cells in rows:
        body += f'<tr><th scope="row">{html.escape(str(first))}</th>'
        for cell in map(str, cells):
            kind = ' class="number"' if names and re.fullmatch(r"[±+\d.,% –-]+", cell) else ""
            body += f"<td{kind}>{html.escape(cell)}</td>"
        body += "</tr>\n"
    top = f"<thead><tr>{names}</tr></thead>" if names else ""
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{title}{top}<tbody>\n{body}</tbody></table>"
