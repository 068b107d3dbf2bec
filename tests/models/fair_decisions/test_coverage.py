import math

import numpy as np
import pytest
from scipy.optimize import linprog

import forcopt as fo
from forcopt.backends.registry import backends
from forcopt.errors import DeclarationError
from forcopt.models import CoverageDecision
from forcopt.models.fair_decisions import CoverageRule, Nested
from forcopt.models.fair_decisions.instances import random_jurisdictions
from forcopt.privacy import AdditiveMechanism, Gaussian, Laplace

RULE = CoverageRule()
LINEAR = [
    name
    for name, b in backends().items()
    if name not in ("scs", "osqp", "pdlp")  # first-order: too loose for probabilities near 0
    and not b.missing()
    and "rows" in b.capabilities.kinds
    and not b.capabilities.only_integer
]


def nested(epsilon):
    return Nested(AdditiveMechanism(Laplace(epsilon=epsilon)))


def small(**fields):
    counts = random_jurisdictions(12, 40, seed=4)
    return CoverageDecision(
        **(
            {
                "counts": counts,
                "mechanism": nested(1.0),
                "first_cuts": [-2, -1, 0],
                "second_cuts": [-2, -0.5, 0],
                "holds_for": "given",
            }
            | fields
        )
    )


def simulated(counts, scale, trials, seed):
    """Noisy counts, straight from the definition of the mechanism."""
    noise = np.random.default_rng(seed).laplace(scale=scale, size=(trials, 3))
    illiterate = counts[2] + noise[:, 0]
    limited = illiterate + counts[1] - counts[2] + noise[:, 1]
    return np.stack([limited + counts[0] - counts[1] + noise[:, 2], limited, illiterate], axis=1)


def test_rates_are_those_of_simulations():
    """100 jurisdictions; a difference beyond 5 standard errors has probability below 1e-4 in all."""
    rng = np.random.default_rng(2)
    counts = np.concatenate([random_jurisdictions(40, 55, seed=1), [[0, 0, 0], [5, 5, 5], [9, 0, 0]]])
    counts = np.concatenate([counts, np.full((2, 3), 10_000) * [20, 1.0, 0.02]])
    for i, x in enumerate(counts):
        scale, cuts = float(rng.choice([1, 10, 100, 5000])), rng.choice([0.0, -1.0, 0.5], 2)
        noisy = simulated(x, scale, 20_000, i)
        first, second = RULE.margins(noisy)
        share = ((first > cuts[0] * scale) & (second > cuts[1] * scale)).mean()
        exact = RULE.rates([x], scale, *cuts)[0]
        assert abs(share - exact) <= 5 * np.sqrt(max(exact * (1 - exact), 1e-5) / 20_000) + 1e-6


def test_rates_of_all_pairs_of_cuts_are_those_of_each():
    p = small()
    cuts = np.array([-2.0, 0.0, 1.0])
    every = RULE.joint_rates(p.counts, 2.0, cuts, cuts)
    for i, one in enumerate(cuts):
        for j, two in enumerate(cuts):
            assert every[:, i, j] == pytest.approx(RULE.rates(p.counts, 2.0, one, two), abs=1e-6)
    cells = p.own_cells
    assert (cells >= 0).all() and cells.sum(axis=(1, 2)) == pytest.approx(np.ones(52), abs=1e-6)


def test_a_table_decides_as_its_rates_say():
    p = small()
    table = p.solve().decision
    for i in (0, 5, 20):
        noisy = simulated(p.counts[i], 1.0, 40_000, i)
        rate = p.decide(noisy, table).mean()
        assert rate == pytest.approx(p.rates(table)[i], abs=0.0125)  # 5 standard errors


@pytest.mark.parametrize("backend", LINEAR)
def test_every_linear_backend_gives_the_same_table_value(backend):
    assert len(LINEAR) >= 3
    s = small().solve("decision-table", backend=backend)
    assert s.objective == pytest.approx(small().solve().objective, rel=1e-3, abs=1e-3)


def test_the_best_table_is_monotone_and_better_than_moved_thresholds():
    p = small()
    table, moved = p.solve(), p.solve("margins")
    for s in (table, moved):
        assert s.evaluation.feasible and s.decision.monotone
    corners = [p.evaluate(p.table([a], [b], [[0, 0], [0, 1]])) for a in (-2, -1, 0) for b in (-2, -0.5, 0)]
    assert table.objective <= min((e.objective for e in corners if e.feasible), default=np.inf) + 1e-6


def test_the_margins_of_the_rule_are_one_table():
    p = small()
    assert p.rates(p.solve("standard").decision) == pytest.approx(RULE.rates(p.counts, 1.0), abs=1e-6)


@pytest.mark.parametrize(
    ("bad", "rule"),
    [
        ({"counts": [[10, 5, 2], [10, 5, 6]]}, "jurisdiction 1 are .* nested"),
        ({"counts": [[4, 5, 2]]}, "nested"),
        ({"counts": [[5, 2, -1]]}, "nested"),
        ({"counts": [1, 2, 3]}, "shape"),
        ({"confidential": True}, "itself a release"),
        ({"least_rate": 1.0}, "least_rate"),
        ({"first_cuts": [1, 0]}, "increase"),
        ({"mechanism": Nested(AdditiveMechanism(Gaussian(scale=1.0)))}, "Gaussian"),
    ],
)
def test_malformed_declarations(bad, rule):
    with pytest.raises(DeclarationError, match=rule):
        CoverageDecision(**{"counts": [[9, 5, 2]], "mechanism": nested(1.0), **bad})


def test_edges():
    nobody = CoverageDecision([[9, 0, 0]], mechanism=nested(1.0), holds_for="given").solve()
    assert nobody.objective == pytest.approx(0, abs=1e-9) and nobody.evaluation.metrics["covered"] == 0
    everyone = CoverageDecision([[900, 500, 200]], mechanism=nested(1.0), least_rate=0.99).solve()
    assert everyone.objective == 0 and everyone.evaluation.feasible
    for percent in (0.0, 1.0, np.nan):
        with pytest.raises(DeclarationError, match="percent"):
            CoverageRule(percent=percent)


def test_nested_noise_is_on_the_differences():
    drawn = nested(0.5).simulate(np.full((20_000, 3), [50.0, 20.0, 5.0]), 1).values
    assert drawn.var(axis=0) == pytest.approx([24, 16, 8], rel=0.1)  # 6, 4 and 2 over epsilon squared
    assert nested(0.5).profile().epsilon(0.0) == 0.5


def test_the_least_rate_holds_on_fresh_counts():
    """Tuned for the given counts it does not; tuned for every covered jurisdiction it does."""
    fresh = random_jurisdictions(150, 0, seed=9)
    given, every = small().solve(), small(holds_for="every").solve()
    assert given.evaluation.feasible and every.evaluation.feasible
    assert given.objective < every.objective
    for method in ("decision-table", "margins", "posterior"):
        decision = small(holds_for="every").solve(method).decision
        metrics = small(counts=fresh).evaluate(decision).metrics
        assert decision.monotone and metrics["least rate"] >= 0.8
    assert small(counts=fresh).evaluate(given.decision).metrics["least rate"] < 0.8


def least_false_positives(cells, guard, least_rate):
    """A bound below for *every* monotone decider on two margins, by a linear program.

    Let g be the supremum of the decider over the cell to the lower left of a node, for each node of the grid
    of cuts. The decider is at least g at a cell's lower left node, and at most g at its upper right node.
    """
    m, n = cells.shape
    place = np.arange((m + 1) * (n + 1)).reshape(m + 1, n + 1)
    below = np.concatenate([place[:-1].ravel(), place[:, :-1].ravel()])
    above = np.concatenate([place[1:].ravel(), place[:, 1:].ravel()])
    rows = np.zeros((len(below) + 1, place.size))
    rows[np.arange(len(below)), below], rows[np.arange(len(below)), above] = 1, -1
    rows[-1, place[1:, 1:].ravel()] = -guard.ravel()
    ends = np.append(np.zeros(len(below)), -least_rate)
    cost = np.zeros(place.size)
    cost[place[:-1, :-1].ravel()] = cells.ravel()
    return linprog(cost, rows, ends, bounds=(0, 1)).fun


def test_a_promise_for_every_covered_jurisdiction_costs_hundreds_of_false_positives():
    """For the given jurisdictions of some draws 110 (193 at .9) would do; with the promise they never do.

    Already one covered jurisdiction near both thresholds, (1519, 76, 1), and a quarter of the uncovered ones
    of a draw of 5,180 ask for more.
    """
    near = np.array([[1519.0, 76.0, 1.0]])
    assert RULE.decide(near).all()
    cuts = np.concatenate([np.linspace(-3, 1, 17), [2.0, 4.0, 8.0]])
    for seed in range(2):
        x = random_jurisdictions(5, 1251, seed=seed)
        p = CoverageDecision(x, mechanism=nested(1.0), first_cuts=cuts, second_cuts=cuts)
        cells = p.own_cells[~p.covered].sum(axis=0)
        guard = p.cell_probabilities(cuts, cuts, near)[0]
        for least_rate, most in ((0.8, 110), (0.9, 193)):
            bound = least_false_positives(cells, guard, least_rate)
            best = p.replace(least_rate=least_rate).solve()
            print(seed, least_rate, bound, best.objective)
            assert most < bound <= best.objective


def test_false_positives_for_the_given_jurisdictions_depend_on_the_draw():
    """The covered jurisdiction nearest to the thresholds decides: a factor of four between three draws."""
    found = []
    for seed in (0, 1, 6):
        x = random_jurisdictions(175, 500, seed=seed)
        p = CoverageDecision(x, mechanism=nested(1.0), holds_for="given")
        found.append(p.solve().objective)
    print(found)
    assert max(found) > 2 * min(found)


def test_the_least_rate_holds_in_a_simulation_of_fresh_jurisdictions():
    """Sampled rates of 40 fresh covered jurisdictions, 4,000 draws each; five standard errors."""
    p = small(holds_for="every")
    table = p.solve().decision
    for i, x in enumerate(random_jurisdictions(40, 0, seed=77)):
        rate = p.decide(simulated(x, 1.0, 4000, i), table).mean()
        assert rate >= 0.8 - 5 * np.sqrt(0.16 / 4000)


def test_the_corners_are_the_least_favourable_covered_counts():
    rng = np.random.default_rng(5)
    for scale in (0.5, 20.0, 3000.0):
        p = small(holds_for="every", mechanism=nested(1 / scale))
        values = np.sort(np.sort(rng.random((4, 4)), axis=0), axis=1)
        table = p.table([-2, -1, 0], [-2, -0.5, 0], values)
        limited = 10 ** rng.uniform(0, 5, 400)
        base = limited * (1 + rng.exponential(np.where(limited > 10_000, 1e4, 19)))
        counts = np.stack([base, limited, limited * np.minimum(1, 0.0131 + rng.exponential(0.01, 400))], 1)
        counts = counts[RULE.decide(counts)]
        assert len(counts) > 100
        least = p.evaluate(table).metrics["least rate"]
        assert p.rates(table, counts).min() >= least - 1e-9
        near = p.corners + np.array([[0, 0, 1e-6], [0, 1e-3, 1]])
        assert p.rates(table, near).min() == pytest.approx(least, abs=1e-3)


def test_a_table_that_is_not_monotone_promises_nothing_for_every_jurisdiction():
    p = small(holds_for="every")
    table = p.table([0], [0], [[1, 1], [1, 0.9]])
    assert p.evaluate(table).violations == {"monotone": 1.0}
    assert small().evaluate(table).feasible


def test_the_posterior_keeps_the_least_rate():
    p = small()
    s = p.solve("posterior")
    assert s.evaluation.feasible and s.decision.monotone
    assert set(np.unique(s.decision.values)) <= {0.0, 1.0}
    assert p.replace(least_rate=0.95).solve("posterior").objective >= s.objective


@pytest.mark.parametrize(
    "x", [[1000, 100, 10], [800, 60, 5], [3000, 100, 5], [300, 10, 0], [30000, 11000, 600]]
)
def test_distances_are_those_of_one_integer_program_with_a_disjunction(x):
    m = fo.Model()
    step, side = m.variable("step", 3, lower=-20_000, upper=20_000), m.variable("side", 2, binary=True)
    m.subject_to(side.sum() == 1)
    literacy = step[2] - RULE.literacy * step[1] + (x[2] - RULE.literacy * x[1])
    percent = step[1] - RULE.percent * step[0] + (x[1] - RULE.percent * x[0])
    absolute = step[1] + (x[1] - RULE.absolute)
    if RULE.decide(x):
        m.subject_to(fo.implies(side[0], literacy <= 0))
        m.subject_to(fo.implies(side[1], percent <= 0), fo.implies(side[1], absolute <= 0))
    else:
        m.subject_to(literacy >= 0)
        m.subject_to(fo.implies(side[0], percent >= 0), fo.implies(side[1], absolute >= 0))
    m.minimize(fo.sum_squares(step / 100))
    found = m.solve("scip")
    assert found.status == "optimal"
    assert 100 * np.sqrt(found.objective) == pytest.approx(RULE.distance(x)[0], rel=1e-3)


def test_distances_are_those_of_a_search():
    rng = np.random.default_rng(8)
    for x in ([1000, 100, 10], [800, 60, 5], [3000, 100, 5], [300, 10, 0]):
        distance, nearest = RULE.distance(x)
        assert distance == pytest.approx(np.linalg.norm(nearest - x), rel=1e-6)
        side = RULE.decide(x)
        directions = rng.normal(size=(4000, 3))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        assert (RULE.decide(x + 0.999 * distance * directions) == side).all()
        assert (
            RULE.decide(x + (nearest - x) * (1 + 1e-5) + 1e-6 * np.array([-1, 1, 1]) * (1 - 2 * side)) != side
        )
    assert RULE.distance([800, 60, 5])[0] == pytest.approx(4.21364, abs=1e-5)
    with pytest.raises(DeclarationError, match="shape"):
        RULE.distance([[1, 2, 3]])


@pytest.mark.parametrize("scale", [0, -1.0, math.nan, math.inf, "a", [1.0, 2.0]])
def test_a_scale_that_is_no_positive_number_is_refused(scale):
    with pytest.raises(DeclarationError, match=r"^scale"):
        CoverageRule().rates([[800, 60, 5]], scale)
