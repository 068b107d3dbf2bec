"""Stage 2: calibrated scores that meet a target, by two programs, and what theory says of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.backends.registry import backends
from forcopt.models import CalibratedTransport
from forcopt.models.calibrated_errors import ScoreKernel

LP_BACKENDS = [name for name, b in backends().items() if not b.missing() and not b.capabilities.only_integer]


def grid_score(rng, count):
    values = np.sort(rng.choice(np.arange(1, 100), size=count, replace=False)) / 100
    masses = rng.integers(1, 20, size=count).astype(float)
    return np.array([values, masses / masses.sum()])


def instance(seed, interval=0.0, margin=1e-6):
    """A random score with a random target that calibrated scores can meet, or None."""
    rng = np.random.default_rng(seed)
    score = grid_score(rng, int(rng.integers(2, 7)))
    accept = rng.random(score.shape[1]) ** 0.3 * (score[0] >= rng.random()) + rng.random() * 0.1
    kernel = np.stack([1 - accept.clip(0, 1), accept.clip(0, 1)], axis=1)
    target = ScoreKernel(score[0], score[1], np.array([0.0, 1.0]), kernel).rates(0.5)
    low, high = CalibratedTransport(score=score, target=target, cutoff=0.5).means
    if not low + 0.02 < high:
        return None
    cutoff = low + (high - low) * rng.uniform(0.15, 0.85)
    most = min(cutoff - low, high - cutoff)
    return CalibratedTransport(
        score=score, target=target, cutoff=cutoff, interval=interval * most, margin=margin
    )


def checked(problem, kernel):
    """Calibrated, at the target, a mean-preserving contraction; recomputed from the kernel alone."""
    values, masses = problem.score
    law = masses @ kernel.kernel
    some = law > 1e-7
    means = ((masses * values) @ kernel.kernel)[some] / law[some]
    assert np.abs((means - kernel.outputs[some]) * law[some]).max() < 1e-6
    accepted = kernel.kernel[:, kernel.outputs >= problem.cutoff - 1e-9].sum(axis=1)
    base = masses @ values
    assert masses * (1 - values) @ accepted / (1 - base) == pytest.approx(problem.target[0], abs=1e-6)
    assert masses * values @ accepted / base == pytest.approx(problem.target[1], abs=1e-6)
    # the old score dominates the new one in the convex order: stop-loss at every level, and the same mean
    assert law @ kernel.outputs == pytest.approx(base, abs=1e-6)
    for level in np.concatenate([values, kernel.outputs]):
        new = law @ np.maximum(kernel.outputs - level, 0)
        assert new <= masses @ np.maximum(values - level, 0) + 1e-6
    # the squared change is what the second moment loses
    lost = masses @ values**2 - law @ kernel.outputs**2
    assert kernel.added_error == pytest.approx(lost, abs=1e-6)
    # triangle inequality for root mean squared errors
    old = np.sqrt(masses @ (values * (1 - values)))
    assert np.sqrt(kernel.total_error) <= old + np.sqrt(kernel.added_error) + 1e-9


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), interval=st.sampled_from([0.0, 0.0, 0.6]))
def test_the_pools_lose_nothing_and_the_scores_are_what_they_should_be(seed, interval):
    """The reduced program has the optimum of the full one, and finer grids have no better."""
    problem = instance(seed, interval)
    if problem is None:
        return
    s = problem.solve()
    assert s.status is fo.Status.OPTIMAL
    assert s.evaluation.feasible
    checked(problem, s.decision)
    full = problem.solve("lp")
    assert full.objective == pytest.approx(s.objective, abs=1e-7)
    checked(problem, full.decision)
    hundredths = np.arange(101) / 100
    grid = np.concatenate([problem.score[0], hundredths, [problem.lower, problem.upper]])
    allowed = (grid <= problem.lower) | (grid >= problem.upper)
    finer = CalibratedTransport(**{**dict(problem), "outputs": grid[allowed]}).solve()
    assert finer.objective == pytest.approx(s.objective, abs=1e-7)


def test_a_target_within_reach_is_never_lost():
    """300 random targets whose means lie on the right sides of the cutoff: all are met."""
    found = [instance(seed) for seed in range(300)]
    problems = [p for p in found if p is not None]
    assert len(problems) > 150
    for p in problems:
        assert p.solve().evaluation.feasible


@pytest.mark.parametrize("backend", LP_BACKENDS)
@pytest.mark.parametrize("method", ["pools", "lp"])
def test_every_backend_for_linear_programs_agrees(backend, method):
    problem = instance(3)
    accuracy = max(1e-7, 10 * backends()[backend].accuracy)
    s = problem.solve(method, backend=backend)
    assert s.status is fo.Status.OPTIMAL
    assert s.objective == pytest.approx(problem.solve().objective, abs=accuracy)
    assert problem.evaluate(s.decision).violation <= accuracy


def test_a_margin_costs_little_and_keeps_its_distance():
    near, far = instance(3, margin=1e-6), instance(3, margin=1e-3)
    assert near.target.tolist() == far.target.tolist()
    s, t = near.solve(), far.solve()
    assert s.objective <= t.objective + 1e-9
    outputs, law = t.decision.outputs, t.decision.joint.sum(axis=0)
    assert not ((outputs > far.cutoff - 1e-3 + 1e-9) & (outputs < far.cutoff - 1e-9) & (law > 1e-9)).any()


def test_a_value_that_nobody_has_keeps_its_place():
    score = [[0.2, 0.3, 0.6], [0.5, 0, 0.5]]
    s = CalibratedTransport(score=score, target=[4 / 13, 9 / 13], cutoff=0.5).solve()
    assert s.objective == pytest.approx(1 / 650, abs=1e-6)
    row = s.decision.kernel[1]
    assert row[s.decision.outputs == 0.3] == 1 and row.sum() == 1


def test_values_given_twice_are_merged_and_sorted():
    p = CalibratedTransport(score=[[0.8, 0.4, 0.8], [0.25, 0.5, 0.25]], target=[0.25, 2 / 3], cutoff=0.5)
    assert p.score.tolist() == [[0.4, 0.8], [0.5, 0.5]]
    assert p.solve().objective == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("target", [(0, 0), (1, 1)])
def test_all_or_nobody_may_be_accepted(target):
    score = [[0.3, 0.4], [0.5, 0.5]] if target == (0, 0) else [[0.6, 0.7], [0.5, 0.5]]
    s = CalibratedTransport(score=score, target=target, cutoff=0.5).solve()
    assert s.objective == pytest.approx(0, abs=1e-9)
    with_low = CalibratedTransport(score=[[0.4, 0.9], [0.5, 0.5]], target=(1, 1), cutoff=0.5).solve()
    assert with_low.decision.accepted(0.5) == pytest.approx([1, 1])
    checked(with_low.problem, with_low.decision)


def test_out_of_reach_is_infeasible():
    p = CalibratedTransport(score=[[0.4], [1]], target=[0.2, 0.3], cutoff=0.5)
    for method in ("pools", "lp"):
        s = p.solve(method)
        assert s.status is fo.Status.INFEASIBLE
        assert "rates" in s.reason
    # the mean of those accepted is below the cutoff
    assert (
        CalibratedTransport(score=[[0.4], [1]], target=[0.2, 0.2], cutoff=0.5).solve().status == "infeasible"
    )


@pytest.mark.parametrize("method", ["pools", "lp"])
def test_a_margin_may_be_missed_by_rounding_only(method):
    nobody = CalibratedTransport(score=[[0.9], [1.0]], target=[0, 0], cutoff=0.9)  # all keep 0.9: accepted
    assert nobody.solve(method).status is fo.Status.INFEASIBLE
    few = CalibratedTransport(
        score=[[0.4, 0.5, 0.7, 1.0], [1 / 7, 1 / 7, 1 / 7, 4 / 7]],
        target=[9 / 14, 51 / 56],
        cutoff=0.5,
        margin=1e-6,
    )  # the mean of those refused is 0.5
    s = few.solve(method)
    assert s.objective == pytest.approx(0.03 / 7) and s.evaluation.feasible


def test_evaluation_finds_what_is_wrong():
    p = CalibratedTransport(score=[[0.4, 0.8], [0.5, 0.5]], target=[0.25, 2 / 3], cutoff=0.5, interval=0.05)
    kernel = ScoreKernel(*p.score, np.array([0.52, 0.8]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    e = p.evaluate(kernel)
    assert e.objective == pytest.approx(0.5 * 0.12**2)
    assert e.violations == pytest.approx(
        {
            "calibration": 0.06,
            "false positive rate": 0.75,
            "true positive rate": 1 / 3,
            "forbidden scores": 0.5,
        }
    )
    only = CalibratedTransport(score=p.score, target=[0.25, 2 / 3], cutoff=0.5, outputs=[0.4, 0.7])
    assert only.evaluate(ScoreKernel.unchanged(*p.score)).violations == {"forbidden scores": 0.5}
    with pytest.raises(fo.DeclarationError, match="another score"):
        p.evaluate(ScoreKernel.unchanged(np.array([0.3, 0.7]), np.array([0.5, 0.5])))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"score": [[0.4, 0.8], [0.5, 0.4]]}, r"masses sum to 0.9; they must sum to 1"),
        ({"score": [[0.4, 0.8], [1.5, -0.5]]}, r"mass\[1\] is -0.5; it must not be negative"),
        ({"score": [[0.4, 1.2], [0.5, 0.5]]}, r"value\[1\] is 1.2; it must be from 0 to 1"),
        ({"score": [[0, 0], [0.5, 0.5]]}, "base rate is 0; it must be strictly between"),
        ({"score": [[1.0], [1.0]]}, "base rate is 1"),
        ({"score": [0.4, 0.8]}, r"must be \(2, N\)"),
        ({"score": [[0.4, np.nan], [0.5, 0.5]]}, "nan"),
        ({"score": [[], []]}, r"must be \(2, N\)"),
        ({"target": [0.2, 1.2]}, "are no rates"),
        ({"target": [0.2]}, r"must be \(2,\)"),
        ({"cutoff": 1.0}, "cutoff"),
        ({"interval": 0.6}, "interval is"),
        ({"interval": -0.1}, "interval"),
        ({"margin": 0.0}, "margin"),
        ({"outputs": [0.1, 1.3]}, "scores from 0 to 1"),
    ],
)
def test_bad_declarations(fields, message):
    good = {"score": [[0.4, 0.8], [0.5, 0.5]], "target": [0.25, 2 / 3], "cutoff": 0.5}
    CalibratedTransport(**good)
    with pytest.raises(fo.DeclarationError, match=message):
        CalibratedTransport(**{**good, **fields})


def test_a_grid_of_ones_own_is_for_the_full_program():
    p = CalibratedTransport(
        score=[[0.4, 0.8], [0.5, 0.5]], target=[4 / 13, 9 / 13], cutoff=0.5, outputs=[0.4, 0.5]
    )
    assert p.method().name == "lp"
    with pytest.raises(fo.DeclarationError, match="use 'lp'"):
        p.solve("pools")


def test_a_kernel_prints_and_plots_itself(tmp_path):
    s = CalibratedTransport(score=[[0.4, 0.8], [0.5, 0.5]], target=[4 / 13, 9 / 13], cutoff=0.5).solve()
    assert str(s.decision).splitlines() == [
        "old score  new score (probability)",
        "      0.4  0.4 (0.9231), 0.5 (0.0769)",
        "      0.8  0.5 (0.0256), 0.8 (0.9744)",
    ]
    s.decision.plot(tmp_path / "scores.png")
    assert (tmp_path / "scores.png").stat().st_size > 1000


def test_bad_kernels():
    values, masses = np.array([0.4, 0.8]), np.array([0.5, 0.5])
    with pytest.raises(fo.DeclarationError, match=r"kernel\[1\] is no distribution: its sum is 0.9"):
        ScoreKernel(values, masses, values, np.array([[1.0, 0.0], [0.5, 0.4]]))
    with pytest.raises(fo.DeclarationError, match="shape"):
        ScoreKernel(values, masses, values, np.eye(3))


def test_the_default_margin_is_above_the_tolerance_of_every_backend():
    """With a margin at the tolerance HiGHS would use it up, and Clarabel not: the optima would differ."""
    p = CalibratedTransport(score=[[0.4, 0.8], [0.5, 0.5]], target=[4 / 13, 9 / 13], cutoff=0.5)
    assert p.margin >= 10 * fo.problem.FEASIBILITY_TOLERANCE
    found = [p.solve(backend=backend).objective for backend in ("highs", "glop", "clarabel", "scip")]
    assert found == pytest.approx([found[0]] * 4, rel=1e-4)
