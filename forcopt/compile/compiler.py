"""Compile a model into a program that a backend takes, by the cheapest chain of bridges."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.compile.assemble import assemble, cost_vector, with_squares
from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges import Bridge, bridges
from forcopt.compile.elimination import only_in_rows
from forcopt.compile.leximin import LeximinStages, write_leximin
from forcopt.compile.parametric import ParametricProgram
from forcopt.compile.program import Cone, IndicatorRows, Products, Program, Schedule, StageCost
from forcopt.errors import UnboundedExpressionError, UnsupportedError
from forcopt.language.constraint import Condition, Constraint, Lazy, gathered
from forcopt.language.joins import concatenate, stack
from forcopt.language.model import Model
from forcopt.language.objective import Objective, Sorted, Stage
from forcopt.language.relations import (
    AtomRelation,
    ExponentialCone,
    Indicator,
    ParameterProduct,
    PowerCone,
    SecondOrderCone,
    SemidefiniteCone,
    only_columns,
)
from forcopt.language.terms import mark

Others = Callable[[], Mapping[str, "Capabilities"]] | None
"""Gives the capabilities of all backends, for the words of a refusal."""


def compile_model(
    model: Model,
    capabilities: Capabilities,
    backend: str = "",
    others: Others = None,
    sorted_by: str | None = None,
    only: Collection[Constraint | Condition] | None = None,
    outward: bool = False,
) -> Program:
    """Rewrite `model` until only kinds that the backend takes are left, and fill its arrays.

    Parameters have their values of now; see `compile_parametric` for others.

    Parameters
    ----------
    model : Model
        With an objective or without.
    capabilities : Capabilities
        The kinds of rows and relations that the backend takes.
    backend : str, default ""
        The backend's name, for messages.
    others : Callable[[], Mapping[str, Capabilities]], optional
        The capabilities of other backends by name, for the message if no bridge leads to this one.
    sorted_by : str, optional
        The strategy for leximin stages; the objective's own by default.
    only : Collection[Constraint or Condition], optional
        The conditions to compile; all by default.
    outward : bool, default False
        Round derived bounds outwards, so that the program is a relaxation in exact arithmetic.

    Returns
    -------
    Program
        Arrays of rows, columns, cones and stages.

    Raises
    ------
    UnsupportedError
        If no chain of bridges leads to kinds that the backend takes.
    UnboundedExpressionError
        If a bridge needs bounds that the model does not have.

    Examples
    --------
    >>> import forcopt as fo
    >>> from forcopt.backends import get_backend
    >>> m = fo.Model()
    >>> x = m.variable("x", 2)
    >>> m.minimize(fo.abs(x - 1).sum())
    >>> compile_model(m, get_backend("highs").capabilities).rows.count
    4
    """
    program, products, scaled = _compile(model, capabilities, backend, others, sorted_by, only, outward)
    return ParametricProgram(program, model, products, scaled).at_values() if model.parameters else program


def compile_parametric(
    model: Model, capabilities: Capabilities, backend: str = "", others: Others = None
) -> ParametricProgram:
    """Rewrite `model` until only kinds that the backend takes are left, for any values of its parameters.

    Parameters
    ----------
    model : Model
        Is not changed.
    capabilities : Capabilities
        Of the backend.
    backend : str, default ""
        Its name, for messages.
    others : Callable[[], Mapping[str, Capabilities]], optional
        Gives the capabilities of all backends, so that a refusal can name capable ones.

    Raises
    ------
    UnsupportedError
        If no chain of bridges fits.
    UnboundedExpressionError
        If a bridge needs a bound that cannot be derived.
    """
    program, products, scaled = _compile(model, capabilities, backend, others)
    return ParametricProgram(program, model, products, scaled)


def _compile(
    model: Model,
    capabilities: Capabilities,
    backend: str,
    others: Others,
    sorted_by: str | None = None,
    only: Collection[Constraint | Condition] | None = None,
    outward: bool = False,
) -> tuple[Program, list[ParameterProduct], list[AtomRelation]]:
    draft = BridgeContext(model, capabilities.only_integer, only, outward, capabilities.mccormick)
    objective = model.objective if only is None else None
    stages = objective.stages if objective else ()
    plan = _plan(capabilities)
    squares = _objective_squares(draft, stages) if "quadratic" in capabilities.kinds else []
    missing = _missing(draft, squares, plan, capabilities)
    if missing and squares:  # cones may do where a quadratic objective does not
        squares, refused = [], missing
        missing = refused if _missing(draft, squares, plan, capabilities) else []
    if missing:
        raise UnsupportedError(_refusal(model, missing, backend, others() if others else {}))
    taken: list[Any] = []
    if squares:
        draft.applied["quadratic_objective"] = None
    absorbed = {id(s) for s in squares}
    for relation in draft.relations:  # bridges append to it
        if id(relation) in absorbed:
            continue
        native = relation.kind in capabilities.kinds
        if native and relation.kind not in capabilities.reluctant:
            taken.append(relation)
            continue
        chosen = plan[relation.kind][1] or next(b for b in bridges() if b.takes == relation.kind)
        try:
            chosen.rewrite(relation, draft)
        except UnboundedExpressionError:
            if not native:
                raise
            taken.append(relation)
        else:
            draft.applied[chosen.name] = None
    drafts = [write_leximin(s, draft, sorted_by) for s in stages if isinstance(s, Sorted)]
    real = draft.integer == 0
    known = model.parametric_columns()
    if known is not None:
        real[: len(known)] &= ~known
        for product in draft.products:
            real[product.result_columns] = False
    program = _fill(draft, taken, squares, objective, drafts, () if only is not None else tuple(model.lazies))
    # The columns that have a cost, or may have one for some values of the parameters.
    priced = _with_factors(draft, np.logical_or.reduce([stage.cost != 0 for stage in program.stages]))
    stuck = real & (~only_in_rows(program) | priced) if capabilities.only_integer else real[:0]
    if stuck.any():
        missing = [f"the continuous variable {draft.name_of(int(np.argmax(stuck)))}"]
        raise UnsupportedError(_refusal(model, missing, backend, others() if others else {}))
    if known is not None:  # as solvers are to see them: the values are numbers
        program = replace(program, integer=np.where(real, 0, np.where(draft.integer == 0, 2, draft.integer)))
    return program, draft.products, _scaled_squares(draft, squares)


def _with_factors(draft: BridgeContext, marked: Array) -> Array:
    """Mark also the columns of the factors of products whose results are marked."""
    for product in reversed(draft.products):  # an outer product comes after those that its factor reads
        if marked[product.result_columns].any():
            mark(product.factor.terms, marked)
    return marked


def _scaled_squares(draft: BridgeContext, squares: Sequence[AtomRelation]) -> list[AtomRelation]:
    """The squares of the objective that a parameter scales: their weights are values of parameters."""
    scaled = np.zeros(draft.model.column_count, dtype=bool)
    for product in draft.products:
        mark(product.factor.terms, scaled)
    return [s for s in squares if scaled[s.result_columns].any()]


def fits(model: Model, capabilities: Capabilities) -> bool:
    """Whether chains of bridges turn a model into kinds that a backend takes; writes nothing."""
    draft = BridgeContext(model, capabilities.only_integer, mccormick=capabilities.mccormick)
    plan = _plan(capabilities)
    stages = model.objective.stages if model.objective else ()
    squares = _objective_squares(draft, stages) if "quadratic" in capabilities.kinds else []
    return not (_missing(draft, squares, plan, capabilities) and _missing(draft, [], plan, capabilities))


def _plan(capabilities: Capabilities) -> dict[str, tuple[float, Bridge | None]]:
    """Return for each kind the first bridge and the cost of the cheapest chain to the backend's kinds."""
    best: dict[str, tuple[float, Bridge | None]] = dict.fromkeys(capabilities.kinds, (0.0, None))
    changed = True
    while changed:
        changed = False
        for b in bridges():
            cost = b.cost + sum(best[k][0] if k in best else math.inf for k in b.gives)
            if cost < (best[b.takes][0] if b.takes in best else math.inf):
                best[b.takes] = (cost, b)
                changed = True
    return best


def _missing(
    draft: BridgeContext, squares: Sequence[AtomRelation], plan: Mapping[str, Any], capabilities: Capabilities
) -> list[str]:
    """The kinds that the model needs and no chain of bridges gives, and conflicts of kinds."""
    absorbed = {id(s) for s in squares}
    used = {r.kind for r in draft.relations if id(r) not in absorbed}
    needed = used | {"integer"} if (draft.integer == 1).any() else used
    needed = needed | {"quadratic"} if squares else needed
    missing = sorted(kind for kind in needed if kind not in plan)
    if not missing:
        final: set[str] = set()
        todo = list(needed)
        while todo:
            kind = todo.pop()
            if kind in final:
                continue
            final.add(kind)
            chosen = plan[kind][1]
            if chosen is not None:
                todo.extend(chosen.gives)
        conflict = capabilities.conflict(frozenset(final))
        if conflict:
            missing = [" with ".join(sorted(conflict))]
    return missing


def _refusal(model: Model, missing: list[str], backend: str, others: Mapping[str, Capabilities]) -> str:
    able = []
    for name, capabilities in others.items():
        try:
            compile_model(model, capabilities)
        except ValueError:
            continue
        able.append(name)
    names = ", ".join(able) if able else "no registered backend"
    words = {"integer": "integer variables", "quadratic": "a quadratic objective"}
    words |= {"multiplication": "products of variables, which are not convex,"}
    kinds = ", ".join(words.get(kind, kind) for kind in missing)
    hint = ", and with mccormick=1 as a relaxation, which bounds the optimum, all that take the rest"
    hint = hint if "multiplication" in missing else ""
    return f"backend {backend!r} cannot take {kinds} in model {model.name!r}; able: {names}{hint}"


def _objective_squares(draft: BridgeContext, stages: Sequence[Stage]) -> list[AtomRelation]:
    """The sums of squares whose results occur in the last objective only: they can be its quadratic part."""
    squares = [r for r in draft.relations if r.kind == "sum_squares"]
    elsewhere = np.zeros(draft.model.column_count, dtype=bool)
    if squares:
        for expression in [
            *(c.expression for c in draft.constraints),
            *(s.expression for s in stages if s is not stages[-1] or isinstance(s, Sorted)),
            *(e for r in draft.relations for e in r.operands),
        ]:
            mark(expression.terms, elsewhere)
        _with_factors(draft, elsewhere)
    return [s for s in squares if not elsewhere[s.result_columns].any()]


def _fill(
    draft: BridgeContext,
    taken: Sequence[Any],
    squares: Sequence[AtomRelation],
    objective: Objective | None,
    drafts: Sequence[LeximinStages],
    lazies: tuple[Lazy, ...],
) -> Program:
    model = draft.model
    everything = [(c.expression, *c.row_bounds()) for c in gathered([*draft.constraints, *draft.rows])]
    width = len(draft.lower)
    lower, upper = draft.lower, draft.upper
    listed: list[StageCost] = []
    pending = iter(drafts)
    for s in objective.stages if objective else ():
        listed += next(pending).stages(s.maximize, width) if isinstance(s, Sorted) else [_stage(s, width)]
    stages = tuple(listed) or (StageCost(np.zeros(width), 0.0, False),)
    if squares:
        lower, upper = lower.copy(), upper.copy()
        scaled = {id(s) for s in _scaled_squares(draft, squares)}
        plain = [s for s in squares if id(s) not in scaled]
        stages = (*stages[:-1], with_squares(stages[-1], plain, stages[-1].cost))
        for square in squares:  # the result columns have left the objective; nothing else reads them
            lower[square.result_columns] = upper[square.result_columns] = 0.0
    added = model.row_count

    def row_name(row: int) -> str:
        return model.row_name(row) if row < added else f"bridge[{row - added}]"

    return Program(
        name=model.name,
        lower=lower,
        upper=upper,
        integer=draft.integer,
        rows=assemble(everything),
        stages=stages,
        column_name=draft.name_of,
        row_name=row_name,
        tolerance=objective.tolerance if objective else 1e-7,
        cones=tuple(_cone(r, width) for r in taken if not isinstance(r, _HELD)),
        indicators=tuple(_indicator(r) for r in taken if isinstance(r, Indicator)),
        schedules=tuple(r for r in taken if isinstance(r, Schedule)),
        products=tuple(r for r in taken if isinstance(r, Products)),
        lazies=lazies,
        bridges=tuple(draft.applied),
        relaxed=draft.relaxed,
    )


_HELD = Indicator | Schedule | Products
"""Relations that a program holds otherwise than as cones."""


def _stage(stage: Stage, width: int) -> StageCost:
    sign = -1.0 if stage.maximize else 1.0
    cost = cost_vector(stage.expression, width)
    if stage.maximize:
        np.negative(cost, out=cost)
    return StageCost(cost, sign * float(stage.expression.constant), stage.maximize)


def _cone(relation: Any, width: int) -> Cone:
    if isinstance(relation, SecondOrderCone):
        count, dim = relation.vector.shape
        both = concatenate([relation.bound.reshape(count, 1), relation.vector], axis=1)
        kind, size, alpha = "second_order", dim + 1, 0.0
    elif isinstance(relation, ExponentialCone):
        both = stack([relation.x, relation.y, relation.z], axis=1)
        kind, size, alpha = "exponential", 3, 0.0
    elif isinstance(relation, PowerCone):
        both = stack([relation.x, relation.y, relation.z], axis=1)
        kind, size, alpha = "power_cone", 3, relation.alpha
    elif isinstance(relation, SemidefiniteCone):
        both = relation.entries
        kind, size, alpha = "semidefinite_cone", both.shape[1], 0.0
    else:
        raise UnsupportedError(f"a backend claims to take {relation.kind!r}, which a program cannot hold")
    flat = both.ravel()
    return Cone(kind, size, flat.linear_rows().matrix(width), np.array(flat.constant), alpha)


def _indicator(relation: Indicator) -> IndicatorRows:
    constant = relation.row.constant
    block = assemble([(relation.row, relation.lower - constant, relation.upper - constant)])
    return IndicatorRows(only_columns(relation.binary), relation.active, block)


@dataclass(frozen=True)
class Capabilities:
    """The constraints and objectives that a backend takes; the compiler rewrites others, or refuses.

    Attributes
    ----------
    kinds : frozenset[str]
        Of ``rows`` (linear rows; every backend), ``integer``, ``quadratic`` (a convex quadratic objective),
        ``second_order``, ``exponential``, ``power_cone``, ``semidefinite_cone``, ``indicator``,
        ``schedule`` (intervals), ``nonconvex`` (products of columns), ``lazy``, and any other kind of
        relation that it takes as it is.
    conflicts : tuple[frozenset[str], ...], optional
        Sets of kinds that it cannot take together.
    only_integer : bool, default False
        Every column must be integer and bounded, but for a few that only rows read, which it eliminates.
    smallest : float, default 0.0
        Matrix entries up to this size are read as zero, unless they are scaled; see
        `forcopt.compile.scaling`.
    reluctant : frozenset[str], optional
        Kinds that it takes, but gets only where no bridge rewrites them for lack of bounds.
    mccormick : int, default 0
        Above 0, products are relaxed over this many pieces of the range of their first factor.

    Examples
    --------
    >>> from forcopt.compile import Capabilities
    >>> Capabilities(frozenset({"rows", "integer"})).kinds == {"rows", "integer"}
    True
    """

    kinds: frozenset[str]
    conflicts: tuple[frozenset[str], ...] = ()
    only_integer: bool = False
    smallest: float = 0.0
    reluctant: frozenset[str] = frozenset()
    mccormick: int = 0

    def conflict(self, used: frozenset[str]) -> frozenset[str] | None:
        """The first set of used kinds that it cannot take together, if any."""
        return next((pair for pair in self.conflicts if pair <= used), None)

    def describe(self) -> str:
        """Name the classes of models that the backend takes, such as ``LP, MILP, QP``.

        Examples
        --------
        >>> Capabilities(frozenset({"rows", "integer", "quadratic"})).describe()
        'LP, MILP, QP, MIQP'
        """
        if self.only_integer:
            classes = ["pure integer"]
        else:
            classes = ["LP"]
            pairs = [
                ("quadratic", "QP"),
                ("second_order", "SOCP"),
                ("exponential", "EXP"),
                ("power_cone", "POW"),
                ("semidefinite_cone", "SDP"),
            ]
            mixed = [("", "MILP"), ("quadratic", "MIQP"), ("second_order", "MISOCP")]
            if "integer" in self.kinds:
                classes.append(mixed[0][1])
            classes += [label for kind, label in pairs if kind in self.kinds]
            if "integer" in self.kinds:
                classes += [
                    label
                    for kind, label in mixed[1:]
                    if kind in self.kinds and self.conflict(frozenset({"integer", kind})) is None
                ]
        return ", ".join(classes + [kind for kind in ("nonconvex", "lazy") if kind in self.kinds])
