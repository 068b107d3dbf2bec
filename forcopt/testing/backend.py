"""What every backend keeps, on small models whose answers are known by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np

from forcopt.backends.base import SolveOptions
from forcopt.backends.registry import get_backend
from forcopt.compile.compiler import compile_model
from forcopt.errors import DeclarationError, UnsupportedError
from forcopt.language.atoms import sum_squares
from forcopt.language.constraint import Constraint
from forcopt.language.model import Model
from forcopt.language.variable import Variable
from forcopt.loops.solution import ModelSolution
from forcopt.status import Status


def check_backend(name: str, *, duals: bool = True) -> None:
    """Check what every backend keeps.

    Linear programs with every form of a row and a column, of both senses: values, bound, duals and reduced
    costs. Infeasible and unbounded programs, and programs without columns or objective. Sessions whose rows,
    costs and bounds change. Lexicographic objectives. Integer programs and quadratic objectives, where the
    backend takes them. A run without time ends with what is right. What it does not take, it refuses with
    `UnsupportedError`.

    Parameters
    ----------
    name : str
        A registered backend that is installed.
    duals : bool, default True
        Whether it gives duals; if not, asking for them must be an error.

    Raises
    ------
    AssertionError
        If a rule is broken; the message names the backend, the model and what was found.
    NotInstalledError
        If it is not installed.

    Examples
    --------
    >>> from forcopt.testing import check_backend
    >>> check_backend("highs")
    """
    chosen = get_backend(name)
    close = max(1e-6, 10 * chosen.accuracy)
    checks: list[Callable[[str, float, bool], None]] = []
    if not chosen.capabilities.only_integer:
        checks += [partial(_linear, 1.0), partial(_linear, -1.0), *(partial(_side, *s) for s in _SIDES)]
        checks += [_nothing_to_decide, _no_columns, _lexicographic, _session, _no_time, _quadratic]
        checks += [partial(_no_optimum, whole=False)]
    if "integer" in chosen.capabilities.kinds:
        checks += [_integer, partial(_no_optimum, whole=True)]
    for check in checks:
        check(name, close, duals)


def _expect(found: Any, right: Any, room: float, what: str) -> None:
    assert np.allclose(found, right, rtol=room, atol=room), f"{what}: {found}; it must be {right}"


def _optimal(s: ModelSolution, what: str) -> None:
    assert s.status is Status.OPTIMAL, f"{what}: the status is {s.status}; it must be optimal ({s.message})"


def _dual(s: ModelSolution, row: Constraint, right: float, room: float, duals: bool, what: str) -> None:
    if duals:
        _expect(s.dual(row), right, room, f"{what}: the dual of {row.name}")
        return
    try:
        s.dual(row)
    except DeclarationError:
        return
    raise AssertionError(f"{what}: it gives duals; call check_backend with duals=True")


def _everything(sign: float) -> tuple[Model, Variable, Variable, list[Constraint]]:
    """Every form of a row and of a column: x is (0, 1.5, 1) and f 2 at the only optimum, worth 16.

    The optimum of the dual is unique, too.
    """
    m = Model("every form")
    x = m.variable("x", 3, lower=[0, 0, 1], upper=[np.inf, 5, 1])
    f = m.variable("f")
    rows: list[Any] = [
        m.subject_to(x[0] + 2 * x[1] + x[2] >= 4, name="at least"),
        m.subject_to(x.sum().between(1, 10), name="between"),
        m.subject_to(f - x[0] == 2, name="equal"),
        m.subject_to((x[0] - x[1]).between(-np.inf, np.inf), name="free"),
        m.subject_to(0 * x[0] <= 3, name="empty"),
        m.subject_to(x[1] - x[0] <= 4.0, name="at most"),
    ]
    value = 3 * x[0] + 4 * x[1] + x[2] + f + 7
    if sign > 0:
        m.minimize(value)
    else:
        m.maximize(-value)
    return m, x, f, rows


def _linear(sign: float, name: str, close: float, duals: bool) -> None:
    what = f"{name}, {'minimize' if sign > 0 else 'maximize'} with every form of a row"
    m, x, f, rows = _everything(sign)
    s = m.solve(name)
    _optimal(s, what)
    _expect(s.objective, sign * 16, close, f"{what}: the objective")
    _expect(s.bound, sign * 16, close, f"{what}: the bound")
    _expect(s[x], [0, 1.5, 1], close, f"{what}: x")
    _expect(s[f], 2, close, f"{what}: f")
    for row, right in zip(rows, (2, 0, 1, 0, 0, 0), strict=True):
        _dual(s, row, sign * right, close, duals, what)
    if duals:
        _expect(s.reduced_cost(x), [sign * d for d in (2, 0, -1)], close, f"{what}: reduced costs of x")
        _expect(s.reduced_cost(f), 0, close, f"{what}: reduced cost of f")


_SIDES = ((1, 4, 1, 1), (1, 4, -1, -1), (-np.inf, 4, -2, -2), (3, 3, 2, 2), (3, 3, -2, -2))
"""Lower and upper end of a row, the cost of its variables, and its dual."""


def _side(lower: float, upper: float, cost: float, at: float, name: str, close: float, duals: bool) -> None:
    m = Model("sides")
    x = m.variable("x", 2, lower=-9, upper=9)
    row: Any = m.subject_to(x.sum().between(lower, upper), name="row")
    m.minimize(cost * x.sum())
    _dual(m.solve(name), row, at, close, duals, f"{name}, a row from {lower} to {upper} with cost {cost}")


_Case = tuple[Callable[[Variable], list[Any]], Literal["min", "max"], Status, tuple[bool, ...]]
_WITHOUT_OPTIMUM: dict[str, _Case] = {
    "too little": (lambda x: [x.sum() <= -1], "min", Status.INFEASIBLE, (False, True)),
    "ray": (lambda x: [x[0] - x[1] <= 1], "max", Status.UNBOUNDED, (False, True)),
    "odd": (lambda x: [2 * x[0] + 4 * x[1] == 5], "min", Status.INFEASIBLE, (True,)),
    "empty row": (lambda x: [0 * x[0] >= 3], "min", Status.INFEASIBLE, (False,)),
    "neither": (lambda x: [x[0] - x[1] <= -1, x[1] - x[0] <= -1], "max", Status.INFEASIBLE, (False,)),
    "no rows": (lambda x: [], "max", Status.UNBOUNDED, (False,)),
}
"""Rows on two columns, the sense of their sum, the right status, and whether the columns are whole: `odd` has
real points only, `neither` no dual point either."""


def _no_optimum(name: str, close: float, duals: bool, *, whole: bool) -> None:
    bounded = get_backend(name).capabilities.only_integer
    for case, (rows, sense, right, kinds) in _WITHOUT_OPTIMUM.items():
        if whole not in kinds or (bounded and right is Status.UNBOUNDED):
            continue
        m = Model(case)
        x = m.variable("x", 2, lower=0, upper=50 if bounded else np.inf, integer=whole)
        m.subject_to(*rows(x))
        (m.minimize if sense == "min" else m.maximize)(x.sum())
        s = m.solve(name)
        what = f"{name}, the {'whole ' if whole else ''}model {m.name!r}"
        assert s.status is right, f"{what}: the status is {s.status}; it must be {right} ({s.message})"
        assert s.point is None, f"{what}: it gives a point"


def _nothing_to_decide(name: str, close: float, duals: bool) -> None:
    m = Model("no objective")
    x = m.variable("x", 2, lower=[1, -2], upper=[3, -1])
    s = m.solve(name)
    _optimal(s, f"{name}, without objective")
    outside = np.maximum(np.array([1, -2]) - s[x], s[x] - np.array([3, -1])).max()
    assert outside <= 10 * close, f"{name}, without objective: {s[x]} is {outside:g} outside of the bounds"


def _no_columns(name: str, close: float, duals: bool) -> None:
    m = Model("no columns")
    m.minimize(m.variable("x", 0).sum() + 3)
    s = m.solve(name)
    _optimal(s, f"{name}, without columns")
    _expect(s.objective, 3.0, close, f"{name}, without columns: the objective")


def _lexicographic(name: str, close: float, duals: bool) -> None:
    m = Model("leximin")
    x = m.variable("x", 3, lower=0)
    m.subject_to(x[0] <= 1, x.sum() <= 7)
    m.leximin(x)
    _expect(m.solve(name)[x], [1, 3, 3], 100 * close, f"{name}, leximin: x")


def _no_time(name: str, close: float, duals: bool) -> None:
    s = _everything(1.0)[0].solve(name, time_limit=0)
    assert s.status in (Status.LIMIT, Status.OPTIMAL), f"{name}, without time: the status is {s.status}"
    if s.status is Status.OPTIMAL:
        _expect(s.objective, 16, close, f"{name}, without time: the objective")


def _session(name: str, close: float, duals: bool) -> None:
    """Rows, bounds and costs that come later count."""
    chosen = get_backend(name)
    m, extra = Model("session"), Model("later")
    x, y = m.variable("x", 2, lower=0, upper=4), extra.variable("y", 2, lower=0)
    m.minimize(-x.sum())
    extra.subject_to(y[0] + 2 * y[1] <= 6)
    extra.minimize(-2 * y[0] - y[1])
    session, later = (
        chosen.session(compile_model(m, chosen.capabilities)), compile_model(extra, chosen.capabilities),
    )  # fmt: skip
    changes: tuple[tuple[str, Callable[[], None], float], ...] = (
        ("as written", lambda: None, -8.0),
        ("after add_rows", lambda: session.add_rows(later.rows), -5.0),
        ("after set_stage", lambda: session.set_stage(later.stages[0]), -9.0),
        ("after set_bounds", lambda: session.set_bounds(np.zeros(2), np.array([1.0, 4.0])), -4.5),
    )
    for what, change, right in changes:
        change()
        found = session.solve(SolveOptions()).objective
        _expect(found, right, 1000 * close, f"{name}, a session {what}: the objective")


def _integer(name: str, close: float, duals: bool) -> None:
    m = Model("whole")
    x = m.variable("x", 2, lower=0, upper=9, integer=True)
    m.subject_to(4 * x[0] + 10 * x[1] <= 33, x[0] <= 2)
    m.maximize(3 * x[0] + 8 * x[1] + 10)
    s = m.solve(name)
    _optimal(s, f"{name}, whole variables")
    # (0, 3) is worth 34; without integrality (0.75, 3), and (2, 2) by rounding, 32
    assert s[x].tolist() == [0, 3], f"{name}, whole variables: {s[x]}; it must be (0, 3)"
    _expect(s.objective, 34, 1e-5, f"{name}, whole variables: the objective")
    _expect(s.bound, 34, 1e-4, f"{name}, whole variables: the bound")


def _quadratic(name: str, close: float, duals: bool) -> None:
    """The point of x1 + x2 <= 2 nearest to (1, 2) is (0.5, 1.5), with multiplier -1."""
    m = Model("quadratic")
    x = m.variable("x", 2)
    row: Any = m.subject_to(x.sum() <= 2, name="row")
    m.minimize(sum_squares(x - np.array([1, 2])) + 3)
    try:
        s = m.solve(name)
    except UnsupportedError:
        return
    _expect(s.objective, 3.5, 100 * close, f"{name}, a quadratic objective")
    _expect(s[x], [0.5, 1.5], 1000 * close, f"{name}, a quadratic objective: x")
    _dual(s, row, -1.0, 1000 * close, duals, f"{name}, a quadratic objective")
