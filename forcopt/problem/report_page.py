"""One page for every task: it is a single file, can be printed, and needs no network."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Mapping
from datetime import date
from importlib.resources import files
from typing import Any

from forcopt import __version__
from forcopt.data.intake import Findings, grouped

__all__ = ["page", "paragraphs", "picture", "report", "table"]

LARGEST = 2_000_000
"""Characters of a file that is still put into the page."""


def report(
    title: str,
    lead: str,
    *,
    question: Mapping[str, object],
    findings: Findings | None,
    answer: Mapping[str, str],
    promised: Iterable[str],
    limits: Iterable[str],
    methods: str,
    plans: Mapping[str, str] | None = None,
    public_check: bool = True,
) -> str:
    """Give the report of a task as HTML.

    Parameters
    ----------
    title : str
        States the finding.
    lead : str
        The answer in a sentence or two.
    question : Mapping[str, object]
        What was asked, by name.
    findings : Findings, optional
        What was read, and what was odd in it.
    answer : Mapping[str, str]
        HTML by the title of its section.
    promised, limits : Iterable[str]
        What holds, and how it was proved; what was not, or could not be, taken into account.
    methods : str
        A paragraph that can be cited.
    plans : Mapping[str, str], optional
        The content of the files that hold the answer, by name; the page offers them for download.
    public_check : bool, default True
        Whether the page may tell what was found in the data.

    Returns
    -------
    str
        A page without scripts.

    Examples
    --------
    >>> text = report("Two seats", "A and B.", question={"seats": 2}, findings=None, answer={"Seats": "A"},
    ...     promised=["Each has one."], limits=[], methods="By hand.")
    >>> text.count("<h2>"), "://" in text
    (5, False)
    """
    check = "<p>The data were not read from a file.</p>"
    if findings is not None and public_check:
        notes = [(f.row or "", f.column, f.value, f.rule, count) for f, count in grouped(findings.notes)]
        check = table("What was read", ("file", "content"), findings.facts.items())
        check += paragraphs([f"No fault was found. {len(notes) or 'No'} notes or stated changes."])
        if notes:
            check += table("Notes", ("first row", "column", "value", "note", "rows"), notes)
    elif findings is not None:
        check = "<p>The holder of the file checked it. What was found is private and not published.</p>"
    links = ""
    for name, text in (plans or {}).items():
        data = base64.b64encode(text.encode()).decode() if len(text) <= LARGEST else ""
        link = f'<a download="{html.escape(name)}" href="data:application/octet-stream;base64,{data}">'
        shown = f"{link}{html.escape(name)}</a>" if data else html.escape(name)
        links += f"<li>{shown}, {len(text):,} characters</li>"
    sections = {
        "The question": table("", (), question.items()),
        "The data check": check,
        **answer,
        "What is promised": _listed(promised),
        "Limits": _listed(limits) + (f"<h3>The answer as files</h3><ul>{links}</ul>" if links else ""),
        "Methods": paragraphs([methods]),
    }
    if not list(limits) and not links:
        del sections["Limits"]
    return page(title, lead, sections)


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
        "made": f"Made on {date.today().isoformat()} with forcopt {__version__}.",
    }
    text = files(__package__).joinpath("report_page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], text)


def paragraphs(texts: Iterable[str]) -> str:
    """Plain texts as paragraphs."""
    return "".join(f"<p>{html.escape(text)}</p>" for text in texts)


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
            kind = ' class="number"' if names and re.fullmatch(r"[±\d.,% –-]+", cell) else ""
            body += f"<td{kind}>{html.escape(cell)}</td>"
        body += "</tr>\n"
    top = f"<thead><tr>{names}</tr></thead>" if names else ""
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{title}{top}<tbody>\n{body}</tbody></table>"
