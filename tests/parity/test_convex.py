"""Every atom, on every backend that takes it, against the same model written in cvxpy itself.

The reference shares nothing with forcopt but the data: its own atoms, its own canonicalization, and the
values of its own atoms at our points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.backends import backends, get_backend
from forcopt.compile import compile_model

cp = pytest.importorskip("cvxpy")

SIZE = 4
P = np.array([[2.0, 0.5, 0, 0], [0.5, 1, 0, 0], [0, 0, 3, 1], [0, 0, 1, 1]])
"""Positive definite."""
FLAT = np.outer([1.0, -1, 2, 0], [1.0, -1, 2, 0])
"""Of rank one."""


@dataclass(frozen=True)
class Case:
    """An atom twice, as a scalar function of a vector: in forcopt, and in cvxpy.

    Attributes
    ----------
    ours, theirs : Callable[[Any], Any]
        Give expressions of x.
    low, high
        Box on x; a positive `low` where the domain needs it.
    concave : bool, default False
        Maximise it instead.
    """

    ours: Callable[[Any], Any]
    theirs: Callable[[Any], Any]
    low: float = -2.0
    high: float = 3.0
    concave: bool = False


def _both(name: str, **keywords: Any) -> Case:
    """An atom of one argument that is called the same and is summed over its elements."""
    return Case(lambda x: getattr(fo, name)(x).sum(), lambda x: cp.sum(getattr(cp, name)(x)), **keywords)


def _power(p: float, **keywords: Any) -> Case:
    return Case(lambda x: fo.power(x, p).sum(), lambda x: cp.sum(cp.power(x, p, approx=False)), **keywords)


SHIFT = np.array([0.7, -0.4, 1.1, 0.2])

CASES = {
    "abs": Case(lambda x: fo.abs(x - SHIFT).sum(), lambda x: cp.sum(cp.abs(x - SHIFT))),
    "maximum": Case(
        lambda x: fo.maximum(x, 2 * x - 1, 0.3).sum(), lambda x: cp.sum(cp.maximum(x, 2 * x - 1, 0.3))
    ),
    "maximum-axis": Case(
        lambda x: fo.maximum(fo.stack([x, -x]), axis=0).sum(),
        lambda x: cp.sum(cp.max(cp.vstack([x, -x]), axis=0)),
    ),
    "max": Case(lambda x: (x - SHIFT).max(), lambda x: cp.max(x - SHIFT)),
    "minimum": Case(
        lambda x: fo.minimum(x, 2 - x, 0.5).sum(), lambda x: cp.sum(cp.minimum(x, 2 - x, 0.5)), concave=True
    ),
    "min": Case(lambda x: (SHIFT - x).min(), lambda x: cp.min(SHIFT - x), concave=True),
    "positive_part": Case(lambda x: fo.positive_part(x - SHIFT).sum(), lambda x: cp.sum(cp.pos(x - SHIFT))),
    "sum_largest": Case(lambda x: fo.sum_largest(x - SHIFT, 2), lambda x: cp.sum_largest(x - SHIFT, 2)),
    "sum_smallest": Case(
        lambda x: fo.sum_smallest(x - SHIFT, 3), lambda x: cp.sum_smallest(x - SHIFT, 3), concave=True
    ),
    "sum_largest-axis": Case(
        lambda x: fo.sum_largest((x - SHIFT).reshape(2, 2), 1, axis=0).sum(),
        lambda x: cp.sum(cp.max(cp.reshape(x - SHIFT, (2, 2), order="C"), axis=0)),
    ),
    "norm-1": Case(lambda x: fo.norm(x - SHIFT, 1), lambda x: cp.norm(x - SHIFT, 1)),
    "norm-2": Case(lambda x: fo.norm(x - SHIFT, 2), lambda x: cp.norm(x - SHIFT, 2)),
    "norm-2-axis": Case(
        lambda x: fo.norm((x - SHIFT).reshape(2, 2), axis=1).sum(),
        lambda x: cp.sum(cp.norm(cp.reshape(x - SHIFT, (2, 2), order="C"), 2, axis=1)),
    ),
    "norm-inf": Case(lambda x: fo.norm(x - SHIFT, "inf"), lambda x: cp.norm(x - SHIFT, "inf")),
    "sum_squares": Case(lambda x: fo.sum_squares(x - SHIFT), lambda x: cp.sum_squares(x - SHIFT)),
    "sum_squares-axis": Case(
        lambda x: (fo.sum_squares((x - SHIFT).reshape(2, 2), axis=0) * np.array([1.0, 3])).sum(),
        lambda x: cp.sum_squares((x - SHIFT)[[0, 2]]) + 3 * cp.sum_squares((x - SHIFT)[[1, 3]]),
    ),
    "quad_form": Case(lambda x: fo.quad_form(x - SHIFT, P), lambda x: cp.quad_form(x - SHIFT, P)),
    "quad_form-flat": Case(
        lambda x: fo.quad_form(x - SHIFT, FLAT), lambda x: cp.quad_form(x - SHIFT, cp.psd_wrap(FLAT))
    ),
    "quad_form-concave": Case(
        lambda x: fo.quad_form(x - SHIFT, -P), lambda x: cp.quad_form(x - SHIFT, -P), concave=True
    ),
    "quad_over_lin": Case(
        lambda x: fo.quad_over_lin(x[:3] - SHIFT[:3], x[3] + 2.5),
        lambda x: cp.quad_over_lin(x[:3] - SHIFT[:3], x[3] + 2.5),
    ),
    "inverse": Case(lambda x: fo.inverse(x).sum(), lambda x: cp.sum(cp.inv_pos(x)), low=0.1),
    "log": _both("log", low=0.05, concave=True),
    "exp": _both("exp"),
    "entropy": Case(lambda x: fo.entropy(x).sum(), lambda x: cp.sum(cp.entr(x)), low=0.0, concave=True),
    "logistic": _both("logistic"),
    "kl_div": Case(
        lambda x: fo.kl_div(x[:2], x[2:] + 0.3).sum(),
        lambda x: cp.sum(cp.kl_div(x[:2], x[2:] + 0.3)),
        low=0.0,
    ),
    "kl_div-of-a-constant": Case(
        lambda x: fo.kl_div(SHIFT**2, x).sum(), lambda x: cp.sum(cp.kl_div(SHIFT**2, x)), low=0.1
    ),
    "kl_div-to-a-constant": Case(
        lambda x: fo.kl_div(x, SHIFT**2).sum(), lambda x: cp.sum(cp.kl_div(x, SHIFT**2)), low=0.0
    ),
    "norm-with-a-constant": Case(
        lambda x: fo.norm(fo.concatenate([x - SHIFT, [3.0]])), lambda x: cp.norm(cp.hstack([x - SHIFT, 3.0]))
    ),
    "power-minus-1": _power(-1, low=0.1),
    "power-minus-half": _power(-0.5, low=0.1),
    "power-minus-2": _power(-2, low=0.1),
    "power-half": _power(0.5, low=0.0, concave=True),
    "power-three-halves": _power(1.5, low=0.0),
    "power-2": _power(2),
    "power-3": _power(3, low=0.0),
    "power-4": _power(4),
    "composition": Case(
        lambda x: fo.exp(fo.abs(x) - 1).sum() + fo.maximum(fo.sum_squares(x), 1 + x[0]),
        lambda x: cp.sum(cp.exp(cp.abs(x) - 1)) + cp.maximum(cp.sum_squares(x), 1 + x[0]),
    ),
    "several": Case(
        lambda x: fo.sum_squares(x) + fo.norm(x - SHIFT) + fo.logistic(x).sum() + fo.power(x + 2, 3).sum(),
        lambda x: (
            cp.sum_squares(x)
            + cp.norm(x - SHIFT)
            + cp.sum(cp.logistic(x))
            + cp.sum(cp.power(x + 2, 3, approx=False))
        ),
    ),
}

SLOPE = np.array([0.31, -0.2, 0.45, 0.13])


def _tolerance(backend: str) -> float:
    """How far apart two right answers may be: a hundred times what a backend's points may violate."""
    return max(2e-6, 20 * get_backend(backend).accuracy)


def _ours(case: Case, objective: bool, level: float) -> tuple[fo.Model, fo.Variable]:
    m = fo.Model()
    x = m.variable("x", SIZE, lower=case.low, upper=case.high)
    m.subject_to(x.sum() >= 1.5 if not case.concave else x.sum() <= 6.0)
    value, linear = case.ours(x), (SLOPE * x).sum()
    if objective:
        m.maximize(value - linear) if case.concave else m.minimize(value + linear)
    else:
        m.subject_to(value >= level if case.concave else value <= level, name="level")
        m.minimize(linear)
    return m, x


def _theirs(case: Case, objective: bool, level: float) -> tuple[Any, Any]:
    x = cp.Variable(SIZE)
    rows = [x >= case.low, x <= case.high, cp.sum(x) <= 6.0 if case.concave else cp.sum(x) >= 1.5]
    value, linear = case.theirs(x), SLOPE @ x
    if objective:
        goal = cp.Maximize(value - linear) if case.concave else cp.Minimize(value + linear)
    else:
        rows.append(value >= level if case.concave else value <= level)
        goal = cp.Minimize(linear)
    return cp.Problem(goal, rows), x


def _level(case: Case) -> float:
    """A value of the atom that the constrained model must reach but would not by itself."""
    problem, x = _theirs(case, True, 0.0)
    problem.solve(solver="CLARABEL")
    best = float(case.theirs(x).value)
    return best - 0.3 if case.concave else best + 0.3


READY = [name for name, backend in backends().items() if backend.missing() is None]


def _capable(case: Case, backend: str) -> bool:
    model, _ = _ours(case, True, 0.0)
    try:
        compile_model(model, backends()[backend].capabilities)
    except ValueError:
        return False
    return True


PAIRS = [(atom, backend) for atom in CASES for backend in READY if _capable(CASES[atom], backend)]


@pytest.mark.parametrize(("atom", "backend"), PAIRS)
def test_atom_in_the_objective(atom: str, backend: str) -> None:
    case = CASES[atom]
    problem, their_x = _theirs(case, True, 0.0)
    problem.solve(solver="CLARABEL")
    model, x = _ours(case, True, 0.0)
    solution = model.solve(backend)
    assert solution.status is fo.Status.OPTIMAL
    close = _tolerance(backend) * max(1.0, abs(problem.value))
    assert solution.objective == pytest.approx(problem.value, abs=close)
    assert solution.bound == pytest.approx(problem.value, abs=close)
    # cvxpy's atoms, evaluated at our point, agree with the objective that the model re-evaluated there.
    their_x.value = np.clip(solution[x], case.low, case.high)
    assert problem.objective.value == pytest.approx(solution.objective, abs=close)


@pytest.mark.parametrize(("atom", "backend"), PAIRS)
def test_atom_in_a_constraint(atom: str, backend: str) -> None:
    case = CASES[atom]
    level = _level(case)
    problem, their_x = _theirs(case, False, level)
    problem.solve(solver="CLARABEL")
    model, x = _ours(case, False, level)
    try:
        solution = model.solve(backend)
    except fo.UnsupportedError:  # a quadratic objective may be fine where a quadratic constraint is not
        pytest.skip(f"{backend} takes {atom} in the objective only")
    assert solution.status is fo.Status.OPTIMAL
    close = _tolerance(backend)
    assert solution.objective == pytest.approx(problem.value, abs=close)
    their_x.value = np.clip(solution[x], case.low, case.high)
    reached = float(case.theirs(their_x).value)
    assert (level - reached if case.concave else reached - level) <= close * max(1.0, abs(level))


DOMAINS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "power 3": (lambda x: fo.power(x, 3) <= 10, 0.0),
    "power 3/2": (lambda x: fo.power(x, 1.5) <= 10, 0.0),
    "power 1/2": (lambda x: fo.power(x, 0.5) >= -1, 0.0),
    "power -1/2": (lambda x: fo.power(x, -0.5) <= 4, 1 / 16),
    "power 4": (lambda x: fo.power(x, 4) <= 16, -2.0),
    "inverse": (lambda x: fo.inverse(x) <= 4, 0.25),
    "log": (lambda x: fo.log(x) >= -3, float(np.exp(-3))),
    "entropy": (lambda x: fo.entropy(x) >= -5, 0.0),
    "kl_div": (lambda x: fo.kl_div(x, 1.0) <= 3, 0.0),
    "quad_over_lin": (lambda x: fo.quad_over_lin(x - 1, x + 0) <= 1, (3 - 5**0.5) / 2),
}
"""Rows of an x in [-3, 4], and the least x that they allow: mostly where the atom's domain ends."""


@pytest.mark.parametrize("backend", ["clarabel", "scs"])
@pytest.mark.parametrize("row", DOMAINS)
def test_argument_stays_in_the_domain(row: str, backend: str) -> None:
    if not _installed([backend]):
        pytest.skip(f"{backend} is not installed")
    condition, least = DOMAINS[row]
    m = fo.Model()
    x = m.variable("x", lower=-3, upper=4)
    m.subject_to(condition(x))
    m.minimize(x)
    s = m.solve(backend)
    assert s.status is fo.Status.OPTIMAL
    assert s.objective == pytest.approx(least, abs=1e-5)


# -- random instances ------------------------------------------------------------------------------

MAIN = ["clarabel", "scs"]
THIRD = ["cvxpy:ECOS", "cvxpy:QOCO", "cvxpy:SCIP"]
"""Whichever is there; ECOS takes all but power cones, the others second-order cones."""
RANDOM_ATOMS = sorted(set(CASES) - {"composition", "several", "quad_form-flat"})


def _installed(names: list[str]) -> list[str]:
    found = []
    for name in names:
        try:
            get_backend(name)
        except fo.NotInstalledError:
            continue
        found.append(name)
    return found


def _random(seed: int, atoms: list[str], shift: Any = 0.0) -> tuple[fo.Model, fo.Variable, fo.Constraint]:
    """A bounded model whose objective adds atoms of random mixtures of x, with rows that `shift` moves."""
    rng = np.random.default_rng(seed)
    n, k = 6, 4
    m = fo.Model()
    x = m.variable("x", n, lower=0.2, upper=2.5)
    matrix = rng.standard_normal((k, n)).round(2)
    right = matrix @ rng.uniform(0.4, 2.3, n) + rng.uniform(0, 0.3, k)
    rows = m.subject_to(matrix @ x <= right + shift, name="rows")
    total = (rng.standard_normal(n).round(2) * x).sum()
    for atom in atoms:
        case = CASES[atom]
        mixture = rng.dirichlet(np.ones(n), SIZE)  # stays within the atoms' domains
        value = case.ours(mixture @ x)
        total = total + rng.uniform(0.2, 2) * (-value if case.concave else value)
    m.minimize(total)
    return m, x, rows


@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 10**6),
    atoms=st.lists(st.sampled_from(RANDOM_ATOMS), min_size=1, max_size=4, unique=True),
)
def test_random_models_agree(seed: int, atoms: list[str]) -> None:
    found: dict[str, fo.Model] = {}
    for backend in [*MAIN, *_installed(THIRD)]:
        model, _, _ = _random(seed, atoms)
        try:
            solution = model.solve(backend)
        except fo.UnsupportedError:
            assert backend not in MAIN
            continue
        assert solution.status is fo.Status.OPTIMAL, backend
        assert solution.violation <= get_backend(backend).accuracy
        found[backend] = solution.objective
    best = found["clarabel"]
    for backend, objective in found.items():
        assert objective == pytest.approx(best, abs=_tolerance(backend) * max(1.0, abs(best))), backend


@pytest.mark.parametrize("backend", [*MAIN, "osqp", "cvxpy:ECOS", "highs"])
@pytest.mark.parametrize("seed", range(4))
def test_duals_are_subgradients(backend: str, seed: int) -> None:
    """The optimum is convex in the right-hand sides: its linearisation by the duals touches it from below."""
    if not _installed([backend]):
        pytest.skip(f"{backend} is not installed")
    atoms = (
        ["sum_squares", "positive_part"]
        if backend in ("osqp", "highs")
        else ["norm-2", "exp", "kl_div", "sum_squares"]
    )
    model, x, rows = _random(seed, atoms)
    solution = model.solve(backend)
    dual = solution.dual(rows)
    assert (dual <= 1e-5).all()  # relaxing a row of "at most" never hurts
    assert (dual < -1e-3).any() or (np.abs(solution.reduced_cost(x)) > 1e-3).any()
    rng = np.random.default_rng(seed)
    for step in (0.3, 1e-3):
        shift = step * rng.uniform(0, 1, len(dual))
        moved = _random(seed, atoms, shift)[0].solve(backend)
        linear = solution.objective + float(dual @ shift)
        assert moved.objective >= linear - 1e-4
        if step == 1e-3:
            assert moved.objective == pytest.approx(linear, abs=1e-4)


@pytest.mark.parametrize("backend", [*MAIN, "cvxpy:ECOS"])
def test_reduced_costs_of_a_conic_model(backend: str) -> None:
    """min exp(x) + exp(y) + norm2(x, y) over x, y >= 1: each bound costs its own partial derivative."""
    if not _installed([backend]):
        pytest.skip(f"{backend} is not installed")
    m = fo.Model()
    x = m.variable("x", 2, lower=[1, 2])
    m.minimize(fo.exp(x).sum() + fo.norm(x))
    s = m.solve(backend)
    wanted = np.exp([1, 2]) + np.array([1, 2]) / np.sqrt(5)
    assert s.reduced_cost(x) == pytest.approx(wanted, rel=1e-3)
