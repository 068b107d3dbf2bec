"""How models, constraints and expressions are written out for people."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import numpy as np

from forcopt.language.expression import Expression

if TYPE_CHECKING:
    from forcopt.language.constraint import Constraint
    from forcopt.language.model import Model

__all__ = [
    "constraint_latex",
    "constraint_text",
    "element_text",
    "expression_latex",
    "model_html",
    "model_summary",
]

_MOST_TERMS = 6


def _first_row(expression: Expression) -> tuple[list[tuple[float, str]], bool, float]:
    """The named coefficients of the first element (cut after a few), whether cut, and its constant."""
    if expression.size == 0:
        return [], False, 0.0
    first = expression[(0,) * expression.ndim]
    rows = first.linear_rows()
    pairs = [
        (float(value), expression.model.column_name(int(column)))
        for column, value in zip(rows.indices[:_MOST_TERMS], rows.data[:_MOST_TERMS], strict=True)
    ]
    return pairs, rows.indices.size > _MOST_TERMS, float(first.constant)


def _signed(value: float, text: str, leading: bool, times: str) -> str:
    sign = "-" if value < 0 else "" if leading else "+"
    space = "" if leading else " "
    size = abs(value)
    factor = "" if size == 1 and text else f"{size:.6g}" + (times if text else "")
    return f"{sign}{space}{factor}{text}" if sign else f"{factor}{text}"


def _join(pairs: list[tuple[float, str]], cut: str, constant: float, times: str) -> str:
    parts = [_signed(value, name, i == 0, times) for i, (value, name) in enumerate(pairs)]
    if cut:
        parts.append(cut)
    if constant or not parts:
        parts.append(_signed(constant, "", not parts, times))
    return " ".join(parts)


def element_text(expression: Expression) -> str:
    """Write the first element of an expression, long sums cut."""
    pairs, cut, constant = _first_row(expression)
    return _join(pairs, "+ ..." if cut else "", constant, " ")


def _bounds_text(constraint: Constraint, relations: tuple[str, str, str]) -> tuple[str, str]:
    """What stands before and after the expression of the first row."""
    if constraint.expression.size == 0:
        return "", ""
    le, ge, eq = relations
    low, high = (float(b[0]) for b in constraint.row_bounds())
    if low == high:
        return "", f" {eq} {low:.6g}"
    before = f"{low:.6g} {le} " if np.isfinite(low) and np.isfinite(high) else ""
    if np.isfinite(high):
        return before, f" {le} {high:.6g}"
    return "", f" {ge} {low:.6g}" if np.isfinite(low) else " free"


def constraint_text(constraint: Constraint) -> str:
    """Write the first row of a constraint."""
    pairs, cut, _ = _first_row(constraint.expression)
    before, after = _bounds_text(constraint, ("<=", ">=", "=="))
    rest = ", ..." if constraint.expression.size > 1 else ""
    return before + _join(pairs, "+ ..." if cut else "", 0.0, " ") + after + rest


_LATEX = str.maketrans(
    {c: f"\\{c}" for c in "_#%&${}"} | {"\\": r"\backslash ", "^": r"\hat{\ }", "~": r"\sim "}
)


def _latex_name(name: str) -> str:
    head, _, index = name.partition("[")
    text = head.translate(_LATEX)
    if len(head) > 1:
        text = rf"\mathrm{{{text}}}"
    return f"{text}_{{{index.rstrip(']').translate(_LATEX)}}}" if index else text


def expression_latex(expression: Expression) -> str:
    """LaTeX of the first element of an expression."""
    pairs, cut, constant = _first_row(expression)
    named = [(value, _latex_name(name)) for value, name in pairs]
    return _join(named, r"+ \dots" if cut else "", constant, r"\,")


def constraint_latex(constraint: Constraint) -> str:
    """LaTeX of the first row of a constraint."""
    pairs, cut, _ = _first_row(constraint.expression)
    named = [(value, _latex_name(name)) for value, name in pairs]
    before, after = _bounds_text(constraint, (r"\le", r"\ge", "="))
    rest = r",\ \dots" if constraint.expression.size > 1 else ""
    return before + _join(named, r"+ \dots" if cut else "", 0.0, r"\,") + after + rest


def model_summary(model: Model) -> str:
    """Rows, columns, nonzeros, relations and coefficient range of a model, one a line."""
    columns = model.columns()
    integers = int((columns.integer == 1).sum())
    binaries = int(((columns.integer == 1) & (columns.lower == 0) & (columns.upper == 1)).sum())
    relations: dict[str, int] = {}
    for relation in [*model.relations, *model.lazies]:
        relations[relation.kind] = relations.get(relation.kind, 0) + 1
    sizes = [np.abs(c.expression.linear_rows().data) for c in model.constraints]
    low = min((float(p.min()) for p in sizes if p.size), default=0.0)
    high = max((float(p.max()) for p in sizes if p.size), default=0.0)
    objective = model.objective
    stages = len(objective.stages) if objective else 0
    lines = [
        f"model {model.name}",
        f"  columns    {model.column_count} ({integers} integer, of these {binaries} binary)",
        f"  rows       {model.row_count}",
        f"  nonzeros   {sum(p.size for p in sizes)}",
        f"  relations  {', '.join(f'{n} {kind}' for kind, n in relations.items()) or 'none'}",
        f"  range      {low:g} to {high:g}",
        f"  objective  {objective.kind if objective else 'none'}"
        + (f", {stages} stages" if stages > 1 else ""),
    ]
    return "\n".join(lines)


def model_html(model: Model) -> str:
    """The summary, the objective and the first constraints, for a notebook."""
    rows = [f"<pre>{html.escape(model_summary(model))}</pre>"]
    if model.objective:
        for stage in model.objective.stages[:3]:
            verb = r"\max" if stage.maximize else r"\min"
            rows.append(f"$${verb}\\quad {html.escape(expression_latex(stage.expression))}$$")
    shown = model.constraints[:8]
    rows += [f"<div>{html.escape(c.name)}: ${html.escape(constraint_latex(c))}$</div>" for c in shown]
    if len(model.constraints) > len(shown):
        rows.append(f"<div>and {len(model.constraints) - len(shown)} more</div>")
    return "\n".join(rows)
