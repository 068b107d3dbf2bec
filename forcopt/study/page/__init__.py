"""A comparison as one interactive page that needs nothing else, no network either."""

from __future__ import annotations

import html
import json
from collections import Counter
from typing import Any

from forcopt.arrays import plain
from forcopt.errors import DeclarationError
from forcopt.problem import Problem
from forcopt.problem.drawing import COLOURS
from forcopt.problem.report_page import interactive
from forcopt.study.charts import CHARTS
from forcopt.study.charts.chart import methods, tests
from forcopt.study.comparison import Comparison
from forcopt.study.store import declaration

__all__ = ["page"]

LARGEST = 200_000
"""Characters of a declaration that is still put into the page."""

ROOM = 10_000_000
"""Characters of all declarations together."""


def page(comparison: Comparison, table: str, notes: str) -> str:
    """Give the page's text.

    Parameters
    ----------
    comparison : Comparison
        The shown comparison.
    table, notes : str
        Of it, as HTML.
    """
    known = html.escape(summary(comparison))
    title = _title(comparison)
    return interactive(__name__, _data(comparison), title=title, summary=known, table=table, notes=notes)


def summary(comparison: Comparison) -> str:
    """Summarize in a sentence or two the number of runs, their ends, and the best method.

    Examples
    --------
    >>> import forcopt as fo
    >>> c = fo.compare("postprocessing/compas", ["lp@highs", "as-predicted"], isolate=False, progress=False)
    >>> summary(c)
    '2 runs of 2 methods on 1 instance: 1 optimal, 1 approximate.'
    """
    rows = comparison.rows
    counts = {
        "run": len(rows),
        "method": len(methods(comparison)),
        "instance": len({r.instance for r in rows}),
    }
    runs, ways, instances = (f"{n} {name}{'' if n == 1 else 's'}" for name, n in counts.items())
    ends = Counter(str(row.status or "not run") for row in rows)
    how = ", ".join(f"{n} {name}" for name, n in ends.most_common())
    parts = [f"{runs} of {ways} on {instances}: {how}."]
    if comparison.disagreements:
        parts.append(f"Exact methods disagree on {len(comparison.disagreements)} points; see the notes.")
    return " ".join(parts)


def _title(comparison: Comparison) -> str:
    if _is_sweep(comparison):
        return "Sweep of " + ", ".join(comparison.parameters)
    names = list(dict.fromkeys(row.instance for row in comparison.rows))
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return "Comparison on " + ", ".join(names[:3]) + more


def _is_sweep(comparison: Comparison) -> bool:
    return all(row.parameters for row in comparison.rows)


def _data(comparison: Comparison) -> dict[str, Any]:
    charts = {}
    for name in CHARTS:
        if name == "pareto":  # the page itself draws any number against any other
            continue
        if name in ("profile", "cactus") and len(tests(comparison)) < 2:  # they count tests
            continue
        if name == "profile" and len(methods(comparison)) < 2:
            continue
        if name == "scaling" and len({row.size for row in comparison.rows}) < 2:
            continue
        try:
            charts[name] = plain(comparison.chart(name))
        except DeclarationError:  # these runs have nothing to show in it
            continue
    numbers = (n for n in comparison.parameters if all(r.number(n) is not None for r in comparison.rows))
    start = next(numbers, None) if _is_sweep(comparison) else None  # the first shown parameter of a sweep
    return {"charts": charts, "start": start, "colours": COLOURS, "declarations": _declarations(comparison)}


def _declarations(comparison: Comparison) -> dict[str, str]:
    found, room = {}, ROOM
    for name, problem in comparison.problems.items():
        text = declaration(problem) if isinstance(problem, Problem) else problem
        if len(text) > min(LARGEST, room):
            found[name] = f"{len(text):,} characters: too large to be shown here"
            continue
        room -= len(text)
        found[name] = json.dumps(json.loads(text), indent=1, ensure_ascii=False)
    return found
