"""How models, constraints and expressions are written out for people."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from forcopt.language.expression import Expression
from forcopt.language.objective import Sorted
from forcopt.notebook import table_html

if TYPE_CHECKING:
    from forcopt.language.constraint import Constraint
    from forcopt.language.model import Model


_MOST_TERMS = 6
_MOST_ENTRIES = 6


@dataclass(frozen=True)
class _Style:
    """How numbers, names and signs are written."""

    number: Callable[[float], str]
    name: Callable[[str], str]
    times: str
    space: str
    dots: str
    less: str
    more: str
    equal: str
    free: str


def _text_number(value: float) -> str:
    return f"{value + 0.0:.6g}"  # adding 0 drops the sign of -0


def _latex_number(value: float) -> str:
    digits, _, exponent = _text_number(value).partition("e")
    return rf"{digits} \cdot 10^{{{int(exponent)}}}" if exponent else digits


_SPECIAL = str.maketrans(
    {c: f"\\{c}" for c in "_#%&${}"} | {"\\": r"\backslash ", "^": r"\hat{\ }", "~": r"\sim "}
)


def _latex_name(name: str) -> str:
    head, _, index = name.partition("[")
    text = head.translate(_SPECIAL)
    if len(head) > 1:
        text = rf"\mathrm{{{text}}}"
    return f"{text}_{{{index.rstrip(']').translate(_SPECIAL)}}}" if index else text


_TEXT = _Style(_text_number, str, " ", " ", "...", "<=", ">=", "==", "free")
_LATEX = _Style(_latex_number, _latex_name, r"\,", r"\ ", r"\dots", r"\le", r"\ge", "=", r"\text{ free}")


def _sum(expression: Expression, style: _Style, with_constant: bool = True) -> str:
    """Write the first element of an expression, long sums cut."""
    if expression.size == 0:
        return "0"
    first = expression[(0,) * expression.ndim]
    rows = first.linear_rows()
    parts: list[tuple[float, str]] = [
        (float(value), style.name(expression.model.column_name(int(column))))
        for column, value in zip(rows.indices[:_MOST_TERMS], rows.data[:_MOST_TERMS], strict=True)
    ]
    if rows.indices.size > _MOST_TERMS:
        parts.append((1.0, style.dots))
    constant = float(first.constant) if with_constant else 0.0
    if constant or not parts:
        parts.append((constant, ""))
    written = ""
    for value, name in parts:
        size = style.number(abs(value))
        factor = name if size == "1" and name else f"{size}{style.times if name else ''}{name}"
        sign = "-" if value < 0 else "+"
        written += f" {sign} {factor}" if written else factor if value >= 0 else f"-{factor}"
    return written


def _row(constraint: Constraint, style: _Style) -> str:
    """Write the first row of a constraint, the constant on the right."""
    body = _sum(constraint.expression, style, with_constant=False)
    if constraint.expression.size == 0:
        return body
    low, high = (float(b[0]) for b in constraint.row_bounds())
    rest = f",{style.space}{style.dots}" if constraint.expression.size > 1 else ""
    if low == high:
        return f"{body} {style.equal} {style.number(low)}{rest}"
    before = f"{style.number(low)} {style.less} " if np.isfinite(low) and np.isfinite(high) else ""
    if np.isfinite(high):
        return f"{before}{body} {style.less} {style.number(high)}{rest}"
    return f"{body} {f'{style.more} {style.number(low)}' if np.isfinite(low) else style.free}{rest}"


def element_text(expression: Expression) -> str:
    """Write the first element of an expression, long sums cut."""
    return _sum(expression, _TEXT)


def expression_latex(expression: Expression) -> str:
    """LaTeX of the first element of an expression, and dots for others."""
    return _sum(expression, _LATEX) + (rf",\ {_LATEX.dots}" if expression.size > 1 else "")


def constraint_text(constraint: Constraint) -> str:
    """Write the first row of a constraint."""
    return _row(constraint, _TEXT)


def constraint_latex(constraint: Constraint) -> str:
    """LaTeX of the first row of a constraint."""
    return _row(constraint, _LATEX)


def model_summary(model: Model) -> str:
    """Rows, columns, nonzeros, relations and coefficient range of a model, one a line."""
    columns = model.columns()
    unused = len(model.unused_columns())
    integers = int((columns.integer == 1).sum())
    binaries = int(((columns.integer == 1) & (columns.lower == 0) & (columns.upper == 1)).sum())
    relations = Counter(relation.kind for relation in [*model.relations, *model.lazies])
    sizes = [np.abs(c.expression.linear_rows().data) for c in model.constraints]
    low = min((float(p.min()) for p in sizes if p.size), default=0.0)
    high = max((float(p.max()) for p in sizes if p.size), default=0.0)
    objective = model.objective
    stages = objective.count if objective else 0
    lines = [
        f"model {model.name}",
        f"  columns    {model.column_count - unused} ({integers} integer, of these {binaries} binary)",
        f"  rows       {model.row_count}",
        f"  nonzeros   {sum(p.size for p in sizes)}",
        f"  relations  {', '.join(f'{n} {kind}' for kind, n in relations.items()) or 'none'}",
        f"  range      {low:g} to {high:g}",
        f"  objective  {objective.kind if objective else 'none'}"
        + (f", {stages} stages" if stages > 1 else ""),
    ]
    return "\n".join(lines)


def expression_html(expression: Expression) -> str:
    """The shape and the first entries of an expression, for a notebook."""
    places = list(np.ndindex(expression.shape))[:_MOST_ENTRIES] if expression.size else []
    rows = [(", ".join(map(str, at)) or "-", element_text(expression[at])) for at in places]
    if expression.size > len(rows):
        rows.append(("...", f"and {expression.size - len(rows)} more"))
    return table_html(f"expression of shape {expression.shape}", ("entry", "value"), rows)


def model_html(model: Model) -> str:
    """The summary, the objective and the first constraints, for a notebook."""
    rows = [f"<pre>{html.escape(model_summary(model))}</pre>"]
    if model.objective:
        for stage in model.objective.stages[:3]:
            verb = r"\max" if stage.maximize else r"\min"
            if isinstance(stage, Sorted):
                verb = r"\operatorname{leximin}" if stage.maximize else r"\operatorname{leximax}"
            rows.append(f"$${verb}\\quad {html.escape(expression_latex(stage.expression))}$$")
    shown = model.constraints[:8]
    rows += [f"<div>{html.escape(c.name)}: ${html.escape(constraint_latex(c))}$</div>" for c in shown]
    if len(model.constraints) > len(shown):
        rows.append(f"<div>and {len(model.constraints) - len(shown)} more</div>")
    return "\n".join(rows)
