"""Rows on demand: the answers are those of the program with all rows."""

import numpy as np
import pytest

from forcopt.backends.base import SolveOptions
from forcopt.backends.conditioned import open_session
from forcopt.backends.registry import all_capabilities, get_backend
from forcopt.compile.compiler import compile_model
from forcopt.fairness import BoundedGroupLoss, DemographicParity, EqualizedOdds
from forcopt.language.model import Model
from forcopt.loops.rows_on_demand import RowsOnDemand
from forcopt.models.fair_classification import FairClassification, Learner, Thresholds, formulations
from forcopt.status import Status


def program_of(seed, rows=200, columns=12, free=False):
    rng = np.random.default_rng(seed)
    m = Model("many rows")
    ends = {"lower": -np.inf} if free else {"lower": 0.0, "upper": 5.0}
    x = m.variable("x", columns, **ends)
    A = rng.normal(size=(rows, columns))
    m.subject_to(A @ x <= np.abs(rng.normal(size=rows)) + 0.1)
    m.subject_to(x[:4].sum() == (0.0 if free else 0.1))
    m.maximize(rng.normal(size=columns) @ x)
    backend = get_backend("highs")
    return backend, compile_model(m, backend.capabilities, "highs", all_capabilities)


@pytest.mark.parametrize("free", [False, True])  # a free program is unbounded until all rows have joined
@pytest.mark.parametrize("seed", range(5))
def test_objective_and_prices_are_those_of_all_rows(seed, free):
    backend, program = program_of(seed, free=free)
    some, every = RowsOnDemand(backend, program), open_session(backend, program)
    for _ in range(2):
        found, wanted = (session.solve(SolveOptions()) for session in (some, every))
        assert found.status is wanted.status is Status.OPTIMAL
        assert found.objective == pytest.approx(wanted.objective, abs=1e-7)
        assert program.rows.excess(found.x).max() <= 1e-6
        reduced = program.stages[0].cost - program.matrix().T @ found.row_dual
        assert found.row_dual.shape == (program.rows.count,)
        np.testing.assert_allclose(reduced, found.reduced_cost, atol=1e-6)
        rng = np.random.default_rng(seed)
        extra = rng.normal(size=(program.rows.count, 3))
        extra[program.rows.lower == program.rows.upper] = 0.0
        for session in (some, every):
            session.add_columns(-np.ones(3), np.zeros(3), np.full(3, 0.05), extra)
        program = every.program
    assert free or len(some.joined) < program.rows.count


def test_an_infeasible_program_is_infeasible():
    m = Model("empty")
    x = m.variable("x", 3, lower=0.0)
    m.subject_to(x.sum() == 1)
    m.subject_to(x <= 0.2)
    m.minimize(x.sum())
    backend = get_backend("highs")
    program = compile_model(m, backend.capabilities, "highs", all_capabilities)
    assert RowsOnDemand(backend, program).solve(SolveOptions()).status is Status.INFEASIBLE


@pytest.mark.parametrize("notion", [DemographicParity(0.05), EqualizedOdds(0.1, undefined="drop")])
def test_a_fair_mixture_over_many_groups_has_the_same_error(notion, monkeypatch):
    rng = np.random.default_rng(0)
    n, groups = 3000, 120
    g = rng.integers(0, groups, n)
    x = rng.normal(size=(n, 1)).round(1) + 0.3 * (g[:, None] % 3)
    y = (x[:, 0] + rng.normal(size=n) > 0.3).astype(int)
    p = FairClassification(x, y, g, notion, hypotheses=Thresholds())
    some = p.solve("column-generation")
    monkeypatch.setattr(formulations, "MANY_ROWS", 10**9)
    every = p.solve("column-generation")
    assert some.status is every.status is Status.OPTIMAL
    assert some.objective == pytest.approx(every.objective, abs=1e-7)
    assert some.evaluation.violations == {}
    wrong = (x[:, 0] >= 0.3) != (y == 1)
    worst = max(wrong[g == a].mean() for a in range(groups))
    capped = p.replace(constraint=BoundedGroupLoss(worst + 0.01))  # no constant keeps it: first feasibility
    losses = [capped.solve("column-generation")]
    monkeypatch.undo()
    losses.append(capped.solve("column-generation"))
    assert losses[0].objective == pytest.approx(losses[1].objective, abs=1e-7)
    assert losses[1].status is Status.OPTIMAL and losses[1].evaluation.violations == {}
    from sklearn.linear_model import LogisticRegression

    learnt = p.replace(hypotheses=Learner(LogisticRegression())).solve()
    assert learnt.evaluation.violations == {} and learnt.decision is not None
