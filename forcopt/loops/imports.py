"""Take models from other libraries' own objects: HiGHS, linopy, Pyomo and cvxpy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.errors import CurvatureError, DeclarationError, UnsupportedError
from forcopt.language.atoms import abs as absolute
from forcopt.language.atoms import geometric_mean, kl_div, norm
from forcopt.language.expression import Expression
from forcopt.language.joins import concatenate, stack
from forcopt.language.matrices import semidefinite
from forcopt.language.model import Model
from forcopt.language.products import quad_form
from forcopt.language.special_sets import sos1, sos2
from forcopt.loops.exchange import declare_columns, take_highs

if TYPE_CHECKING:
    import cvxpy
    import highspy
    import linopy
    import pyomo.environ as pyo


def from_highs(highs: highspy.Highs) -> Model:
    """Take the model that a HiGHS object holds.

    Variables keep their names, as `forcopt.read` keeps those of a file; columns without names become
    ``x[0]``, ``x[1]``, ..., and rows without names ``row 0``, ``row 1``, ...

    Parameters
    ----------
    highs : highspy.Highs
        Linear or convex quadratic, with or without integers and semicontinuous columns.

    Returns
    -------
    Model
        With its objective.

    Raises
    ------
    DeclarationError
        If bounds contradict each other, or two columns have one name.
    UnsupportedError
        For several linear objectives.
    CurvatureError
        If the objective is quadratic and not convex.

    Examples
    --------
    >>> import forcopt as fo, highspy
    >>> h = highspy.Highs()
    >>> _ = h.setOptionValue("output_flag", False)
    >>> x = [h.addVariable(lb=0, ub=4, name=name) for name in ("bread", "milk")]
    >>> _ = h.addConstr(x[0] + 2 * x[1] >= 4)
    >>> m = fo.from_highs(h)
    >>> m.leximin(fo.stack([m["bread"], 3 - m["milk"]]))
    >>> m.solve().levels.round(6).tolist()
    [3.0, 4.0]
    """
    lp = highs.getLp()
    if highs.getNumLinearObjectives():
        raise UnsupportedError("from_highs: the object has several linear objectives; pass one of them")
    names = list(lp.col_names_) if any(lp.col_names_) else [f"x[{j}]" for j in range(lp.num_col_)]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise DeclarationError(f"from_highs: two columns are named {twice[0]!r}; each needs its own name")
    rows = list(lp.row_names_) if any(lp.row_names_) else [f"row {i}" for i in range(lp.num_row_)]
    model = Model(lp.model_name_ or "from_highs")
    return _optimized(model, *take_highs(model, highs, partial(declare_columns, model, names), rows)[1:])


def _optimized(model: Model, objective: Any, maximize: bool) -> Model:
    (model.maximize if maximize else model.minimize)(objective)
    return model


def _declared(
    model: Model, name: str, keys: Sequence[tuple[Any, ...]], dims: Sequence[str] | None, **columns: Any
) -> Expression:
    """A variable with a column for each key, which is flat in their order: axes where they make a product."""
    axes = [list(dict.fromkeys(part)) for part in zip(*keys, strict=True)]
    if list(product(*axes)) != list(keys):
        axes, dims = [[",".join(map(str, key)) for key in keys]], None
    index: Any = dict(zip(dims, axes, strict=True)) if dims and axes else tuple(axes) or None
    shape = tuple(map(len, axes))
    columns = {field: values.reshape(shape) for field, values in columns.items()}
    return model.variable(model.unused_name(name), index=index, **columns).reshape(-1)


def from_linopy(model: linopy.Model) -> Model:
    """Take a model of linopy, through the HiGHS object that it gives.

    Variables keep names, axes and labels; one with a mask is flat, with a label such as ``a,2`` for each
    element that it has.

    Parameters
    ----------
    model : linopy.Model
        Linear or convex quadratic, with or without integers and semicontinuous variables.

    Returns
    -------
    Model
        With its objective.

    Raises
    ------
    UnsupportedError
        For special ordered sets and indicators, with linopy's words.
    CurvatureError
        If the objective is quadratic and not convex.

    Examples
    --------
    >>> import forcopt as fo
    >>> import linopy  # doctest: +SKIP
    >>> theirs = linopy.Model()  # doctest: +SKIP
    >>> x = theirs.add_variables(lower=1, coords=[["iron", "coal"]], name="x")  # doctest: +SKIP
    >>> theirs.add_objective(x.sum())  # doctest: +SKIP
    >>> m = fo.from_linopy(theirs)  # doctest: +SKIP
    >>> m.solve()[m["x"]["coal"]]  # doctest: +SKIP
    1.0
    """
    try:
        highs = model.to_highspy()
    except (ValueError, NotImplementedError) as error:
        raise UnsupportedError(f"from_linopy: {error}") from error
    out = Model("from_linopy")
    place = {int(label): at for at, label in enumerate(model.matrices.vlabels)}

    def declare(lower: Array, upper: Array, integer: Array) -> Expression:
        parts, order = [], []
        for name, variable in model.variables.items():
            found = [(label, key) for label, key in _cells(variable.labels) if label in place]
            if found:
                at = np.array([place[label] for label, _ in found])
                held = {"lower": lower[at], "upper": upper[at], "integer": integer[at]}
                dims = [str(dim) for dim in variable.labels.dims]
                parts.append(_declared(out, name, [key for _, key in found], dims, **held))
                order.append(at)
        return concatenate(parts)[np.argsort(np.concatenate(order))]

    names = {
        label: f"{name}[{','.join(map(str, key))}]" if key else name
        for name, constraint in model.constraints.items()
        for label, key in _cells(constraint.labels)
    }
    rows = [names[int(label)] for label in model.matrices.clabels]
    return _optimized(out, *take_highs(out, highs, declare, rows)[1:])


def _cells(labels: Any) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """linopy's number of each element that is not masked, and its coordinates."""
    axes = [labels.indexes[dim] for dim in labels.dims]
    for number, key in zip(labels.values.reshape(-1).tolist(), product(*axes), strict=True):
        if number >= 0:
            yield number, key


def from_pyomo(model: pyo.ConcreteModel) -> Model:
    """Take a linear or quadratic model of Pyomo.

    Variables keep names and labels: one over a product of sets gets an axis for each, one over other tuples
    a flat axis with labels such as ``a,2``. A fixed variable has its value as both bounds. Linear
    constraints are the rows of one constraint ``rows`` with a label each; quadratic ones have a constraint
    each, and so does each special ordered set. Parameters and mutable parameters have their values of now.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
        With one active objective at most; its blocks are taken, too.

    Returns
    -------
    Model
        With its objective.

    Raises
    ------
    UnsupportedError
        For an expression beyond squares, a domain that is no interval of reals or integers, several
        objectives, and any other active component, such as a disjunction; it names the component.

    Examples
    --------
    >>> import forcopt as fo
    >>> import pyomo.environ as pyo
    >>> theirs = pyo.ConcreteModel("diet")
    >>> theirs.x = pyo.Var(["bread", "milk"], domain=pyo.NonNegativeReals)
    >>> theirs.need = pyo.Constraint(expr=theirs.x["bread"] + 2 * theirs.x["milk"] >= 4)
    >>> theirs.cost = pyo.Objective(expr=3 * theirs.x["bread"] + 4 * theirs.x["milk"])
    >>> m = fo.from_pyomo(theirs)
    >>> s = m.solve()
    >>> s.objective, float(s[m["x"]["milk"]])
    (8.0, 2.0)
    """
    import pyomo.environ as pyo
    from pyomo.repn import generate_standard_repn

    for part in model.component_objects(active=True, descend_into=True):
        if (kind := part.ctype.__name__) not in _PYOMO and not kind.endswith("Set"):
            raise UnsupportedError(f"from_pyomo: {part.name} is a {kind}, which has no counterpart")
    out = Model(model.name)
    x, place = _pyomo_variables(out, model)
    rows = list(model.component_data_objects(pyo.Constraint, active=True, descend_into=True))
    goals = list(model.component_data_objects(pyo.Objective, active=True, descend_into=True))
    if len(goals) > 1:
        raise UnsupportedError(f"from_pyomo: {goals[0].name} and {goals[1].name} are active; keep one")
    constants, entries, squares = list[float](), list[tuple[int, int, float]](), dict[int, Any]()
    for i, row in enumerate([*rows, *goals]):
        form = generate_standard_repn(row.body if i < len(rows) else row.expr, quadratic=True)
        if form.nonlinear_expr is not None:
            raise UnsupportedError(f"from_pyomo: {row.name} is neither linear nor quadratic")
        constants.append(form.constant)
        terms = zip(form.linear_vars, form.linear_coefs, strict=True)
        entries += [(i, place[id(v)], value) for v, value in terms]
        if form.quadratic_vars:
            terms = zip(form.quadratic_vars, form.quadratic_coefs, strict=True)
            squares[i] = _matrix([(place[id(v)], place[id(w)], a) for (v, w), a in terms], x.size, x.size)
    linear = _matrix(entries, len(constants), x.size) @ x + np.array(constants)
    lower, upper = _limits([(row.lb, row.ub) for row in rows]).values()
    if plain := [i for i in range(len(rows)) if i not in squares]:
        body = linear[plain].between(lower[plain], upper[plain])
        body.labels = [rows[i].name for i in plain]
        out.subject_to(body, name=out.unused_name("rows"))
    for i, row in enumerate(rows):
        if i in squares:
            _with_square(x, squares[i], partial(_hold, out, linear[i], (lower[i], upper[i]), row.name))
    for several in model.component_data_objects(pyo.SOSConstraint, active=True, descend_into=True):
        members = x[[place[id(v)] for v, _ in sorted(several.get_items(), key=lambda item: item[1])]]
        out.subject_to((sos1 if several.level == 1 else sos2)(members), name=out.unused_name(several.name))
    if goals:
        square = squares.get(len(rows), _matrix([], x.size, x.size))
        maximize = goals[0].sense == pyo.maximize
        _with_square(x, square, lambda form: _optimized(out, linear[-1] + form, maximize))
    return out


_PYOMO = ("Var", "Constraint", "Objective", "SOSConstraint", "Param", "Block", "Expression", "Suffix")
"""Components of Pyomo that `from_pyomo` takes, beside sets."""


def _pyomo_variables(out: Model, model: pyo.ConcreteModel) -> tuple[Expression, dict[int, int]]:
    """Declare the variables of a model; all columns, and the place of each by its `id`."""
    import pyomo.environ as pyo

    parts, place = list[Expression](), dict[int, int]()
    for variable in model.component_objects(pyo.Var, active=True, descend_into=True):
        for each in variable.values():
            place[id(each)] = len(place)
            if not (each.is_continuous() or each.is_integer() or each.is_binary()):
                raise UnsupportedError(f"from_pyomo: the domain of {each.name} is {each.domain}, no interval")
        if held := list(variable.values()):
            ends = [(each.value, each.value) if each.fixed else each.bounds for each in held]
            kinds = {"integer": np.array([not each.is_continuous() for each in held])}
            keys = [key if isinstance(key, tuple) else () if key is None else (key,) for key in variable]
            parts.append(_declared(out, variable.name, keys, None, **kinds, **_limits(ends)))
    return concatenate(parts) if parts else Expression(out, (0,), (), np.zeros(0)), place


def _limits(ends: Sequence[tuple[float | None, float | None]]) -> dict[str, Array]:
    """Lower and upper bounds from pairs in which None means that there is none."""
    held = [(-np.inf if low is None else low, np.inf if high is None else high) for low, high in ends]
    return dict(zip(("lower", "upper"), np.array(held, float).reshape(-1, 2).T, strict=True))


def _matrix(entries: Sequence[tuple[int, int, float]], rows: int, columns: int) -> sp.csr_array:
    """A matrix from rows, columns and values."""
    at, to, data = np.array(entries, float).reshape(-1, 3).T
    return sp.csr_array((data, (at.astype(int), to.astype(int))), shape=(rows, columns))


def _hold(model: Model, linear: Expression, ends: tuple[float, float], name: str, form: Any) -> None:
    model.subject_to((linear + form).between(*ends), name=model.unused_name(name))


def _with_square(x: Expression, matrix: Any, write: Callable[[Any], Any]) -> None:
    """Write something with ``x' matrix x``, as products of variables where it is not convex."""
    full = sp.csr_array((matrix + matrix.T) / 2)
    used = np.unique(full.nonzero())
    for nonconvex in (False, True):
        try:
            write(quad_form(x[used], full[used][:, used], nonconvex=nonconvex) if len(used) else 0.0)
            return
        except CurvatureError:
            if nonconvex:
                raise


def from_cvxpy(problem: cvxpy.Problem) -> Model:
    """Take a convex problem of cvxpy, with or without integers, in cvxpy's own conic form.

    Variables keep names, shapes, bounds and signs; symmetric and sparse ones keep their full shape. Further
    variables ``auxiliary`` hold what cvxpy's rewriting of atoms adds. Parameters have their values of now.

    Parameters
    ----------
    problem : cvxpy.Problem
        It follows the rules of disciplined convex programming (DCP).

    Returns
    -------
    Model
        With its objective.

    Raises
    ------
    UnsupportedError
        For a problem that is not DCP, for a complex variable, and for a cone without a counterpart; it names
        them.
    DeclarationError
        If a parameter has no value.

    Notes
    -----
    Linear and semidefinite constraints are taken as they are, second-order cones as `norm`, exponential
    cones ``y exp(x / y) <= z`` as ``x + kl_div(y, z) <= z - y``, power cones as `geometric_mean`. All are
    exact.

    Examples
    --------
    >>> import cvxpy as cp
    >>> import forcopt as fo
    >>> x = cp.Variable(2, name="x", nonneg=True)
    >>> m = fo.from_cvxpy(cp.Problem(cp.Minimize(cp.sum_squares(x)), [cp.sum(x) == 3, cp.norm(x) <= 3]))
    >>> round(m.solve("clarabel").objective, 5)
    4.5
    """
    import cvxpy as cp
    from cvxpy.constraints import FiniteSet
    from cvxpy.reductions.dcp2cone.cone_matrix_stuffing import ConeMatrixStuffing
    from cvxpy.reductions.dcp2cone.dcp2cone import Dcp2Cone
    from cvxpy.reductions.discrete2mixedint.valinvec2mixedint import Valinvec2mixedint
    from cvxpy.reductions.eval_params import EvalParams
    from cvxpy.reductions.flip_objective import FlipObjective

    if not problem.is_dcp():
        raise UnsupportedError("from_cvxpy: the problem does not follow DCP; problem.is_dcp() must be true")
    for leaf in problem.variables() + problem.parameters():
        if leaf.is_complex():
            raise UnsupportedError(f"from_cvxpy: {leaf.name()} is complex; write real and imaginary parts")
    for parameter in problem.parameters():
        if parameter.value is None:
            raise DeclarationError(f"from_cvxpy: the parameter {parameter.name()} has no value; set it first")
    steps = [EvalParams()] if problem.parameters() else []
    steps += [FlipObjective()] if isinstance(problem.objective, cp.Maximize) else []
    steps += [Valinvec2mixedint()] if any(isinstance(c, FiniteSet) for c in problem.constraints) else []
    conic = problem
    for step in [*steps, Dcp2Cone(quad_obj=True)]:
        conic, _ = step.apply(conic)
    # the stuffing takes plain variables: bounds, kinds and structure are written here
    plain = {id(v): cp.Variable(v.shape, var_id=v.id) for v in conic.variables()}
    rewritten = cp.Problem(conic.objective.tree_copy(plain), [c.tree_copy(plain) for c in conic.constraints])
    stuffed, _ = ConeMatrixStuffing(quad_obj=True).apply(rewritten)
    square, cost, offset, matrix, constant = stuffed.apply_parameters(quad_obj=True)
    model, own = Model("from_cvxpy"), {v.id for v in problem.variables()}
    parts: dict[int, Expression] = {}
    for v in conic.variables():
        if v.id in stuffed.var_id_to_col:
            name = v.name() if v.id in own else "auxiliary"
            parts[stuffed.var_id_to_col[v.id]] = _cvxpy_variable(model, model.unused_name(name), v)
    x = concatenate([parts[start] for start in sorted(parts)])
    entries, start = sp.csr_array(matrix) @ x + constant, 0
    for constraint in stuffed.constraints:
        args = []
        for arg in constraint.args:
            args.append(entries[start : start + arg.size])
            start += arg.size
        _write_cone(model, constraint, args)
    columns = np.asarray(cost).reshape(-1) @ x + float(offset)
    maximize = isinstance(problem.objective, cp.Maximize)
    sign = -1 if maximize else 1
    _with_square(
        x, sp.csr_array(square) / 2, lambda form: _optimized(model, sign * (columns + form), maximize)
    )
    return model


def _write_cone(model: Model, constraint: Any, args: list[Expression]) -> None:
    """A constraint of cvxpy's conic form over flat entries, which it holds in Fortran order."""
    kind, first = type(constraint).__name__, args[0]
    if kind == "Zero":
        model.subject_to(first == 0)
    elif kind == "NonNeg":
        model.subject_to(first >= 0)
    elif kind == "SOC":
        model.subject_to(norm(args[1].reshape(first.size, -1), axis=1) <= first)
    elif kind == "PSD":
        model.subject_to(semidefinite(first.reshape(constraint.shape[::-1]).T))
    elif kind == "ExpCone":
        model.subject_to(first + kl_div(args[1], args[2]) <= args[2] - args[1])
    elif kind == "PowCone3D":
        alphas = np.ravel(constraint.alpha.value, order="F") * np.ones(first.size)
        for alpha in np.unique(alphas).tolist():
            at, weights = np.flatnonzero(alphas == alpha), [alpha, 1 - alpha]
            pairs = stack([first[at], args[1][at]], axis=1)
            model.subject_to(geometric_mean(pairs, axis=1, weights=weights) >= absolute(args[2][at]))
    else:
        raise UnsupportedError(f"from_cvxpy: the cone {kind} of {constraint} has no counterpart")


def _cvxpy_variable(model: Model, name: str, variable: cvxpy.Variable) -> Expression:
    """A variable of cvxpy with its bounds, kinds and structure; flat, in Fortran order."""
    shape, facts = variable.shape, variable.attributes
    ends = [np.full(shape, -np.inf), np.full(shape, np.inf)]
    for at, bound in enumerate(facts["bounds"] or ()):
        if bound is not None:
            ends[at] = np.array(np.broadcast_to(getattr(bound, "value", bound), shape), float)
    if facts["nonneg"] or facts["pos"]:
        ends[0] = np.maximum(ends[0], 0)
    if facts["nonpos"] or facts["neg"]:
        ends[1] = np.minimum(ends[1], 0)
    kinds: dict[str, Any] = {}
    for kind, at in (("binary", variable.boolean_idx), ("integer", variable.integer_idx)):
        flat = np.zeros(variable.size, dtype=bool)
        if len(at):
            flat[np.ravel_multi_index(tuple(at), shape or (1,), order="F")] = True
        kinds[kind] = flat.reshape(shape, order="F")
    free = np.ones(shape, dtype=bool)
    if facts["diag"]:
        free = np.eye(shape[0], dtype=bool)
    elif facts["sparsity"]:
        free[:] = False
        free[tuple(map(np.asarray, variable.sparse_idx))] = True
    if kinds["binary"].any():
        ends[0], ends[1] = (np.where(kinds["binary"], np.clip(end, 0, 1), end) for end in ends)
    ends = [np.where(free, end, 0) for end in ends]
    x = model.variable(name, shape, lower=ends[0], upper=ends[1], **kinds)
    if len(shape) > 2 and any(facts[kind] for kind in ("PSD", "NSD", "symmetric", "diag")):
        raise UnsupportedError(f"from_cvxpy: {name} is a stack of structured matrices; declare one for each")
    if facts["PSD"] or facts["NSD"]:
        model.subject_to(semidefinite(x if facts["PSD"] else -x))
    elif facts["symmetric"]:
        above = np.triu_indices(shape[0], 1)
        model.subject_to(x[above] == x.T[above])
    return x.T.reshape(-1) if shape else x.reshape(-1)
