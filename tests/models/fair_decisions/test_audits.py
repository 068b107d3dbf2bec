import numpy as np
import pytest

from forcopt.errors import DeclarationError
from forcopt.models import FormulaGrant
from forcopt.models.fair_decisions import CoverageRule, Nested, audit
from forcopt.privacy import AdditiveMechanism, GeneralizedGaussian, Laplace

pytest.importorskip("pandas")


def laplace(epsilon):
    return AdditiveMechanism(Laplace(epsilon=epsilon))


RULES = [
    (CoverageRule(), [[800, 60, 5], [1000, 100, 10], [3000, 100, 5]], Nested(mechanism=laplace(0.1))),
    (FormulaGrant([1, 2, 3], laplace(1.0)).solve("plain").decision, [10, 20, 70], laplace(0.1)),
]


@pytest.mark.parametrize(("rule", "truth", "mechanism"), RULES)
def test_samples_agree_with_exact_audits(rule, truth, mechanism):
    """Six expectations: a difference beyond 5 standard errors has probability below 1e-5."""
    exact = audit(rule, truth, mechanism)
    sampled = audit(rule, truth, mechanism, trials=4000, seed=1)
    assert (exact.standard_error == 0).all() and (exact.outcome == sampled.outcome).all()
    assert (np.abs(exact.expected - sampled.expected) <= 5 * sampled.standard_error + 1e-3).all()
    if "correct" in exact:
        assert sampled.correct.to_numpy() == pytest.approx(exact.correct.to_numpy(), abs=0.04)
    assert list(exact.columns) == list(sampled.columns)


def test_an_audit_of_worked_shares():
    rule = FormulaGrant([1, 1, 1], laplace(1.0)).solve("plain").decision
    found = audit(rule, [10, 20, 70], laplace(0.1))
    assert found.ratio.to_numpy() == pytest.approx([1.09782, 0.98013, 0.99170], abs=5e-6)
    assert found.per_million.sum() == pytest.approx(-5.67, abs=0.01)  # all noisy counts are 0
    assert not found.inverted.any()


def test_buckets_invert_the_order_of_districts():
    """A partition estimates 15 as 22 and 20 as 12.5: seven of eight districts are in the wrong order."""
    counts = np.array([20, 9, 10, 11, 60, 25, 15, 26.0])
    estimates = np.array([12.5] * 4 + [60] + [22] * 3)  # the means of the best buckets at a penalty of 20
    found = audit(
        lambda x: np.broadcast_to(estimates / estimates.sum(), x.shape),
        counts,
        laplace(1.0),
        trials=2,
        seed=0,
    )
    assert found.inverted.tolist() == [True, False, False, False, False, False, True, False]


@pytest.mark.parametrize("trials", [1, 2, 20, 200])
def test_noise_alone_inverts_no_district(trials):
    """The exact means rise with the counts; sampled means of neighbours often do not. Confidence 95 %."""
    counts = np.round(100 * np.exp(np.random.default_rng(0).normal(0, 1.5, 60))) + 8
    rule = FormulaGrant(counts.tolist(), laplace(0.1)).solve("plain").decision
    assert not audit(rule, counts, laplace(0.1)).inverted.any()
    flagged = [audit(rule, counts, laplace(0.1), trials=trials, seed=s).inverted.any() for s in range(10)]
    assert sum(flagged) <= 3  # more have probability .001 if each has .05


def test_enough_draws_show_a_real_inversion():
    def swap(x):
        return np.stack([x[:, 1], x[:, 0], x[:, 2]], axis=1)

    found = audit(swap, [10.0, 12.0, 50.0], laplace(1.0), trials=1000, seed=0)
    assert found.inverted.tolist() == [True, True, False]


def test_refusals():
    slack = FormulaGrant([1, 2, 3], laplace(1.0)).rule(1.0, 1.0)
    with pytest.raises(DeclarationError, match="no exact expectation"):
        audit(slack, [10, 20, 30], laplace(1.0))
    with pytest.raises(DeclarationError, match="seed is None"):
        audit(slack, [10, 20, 30], laplace(1.0), trials=5)
    with pytest.raises(DeclarationError, match=r"must be \(1, k\)"):
        audit(lambda x: x[0], [10, 20, 30], laplace(1.0), trials=5, seed=0)


def test_nested_releases_state_the_deviation_of_their_draws():
    whole = AdditiveMechanism(GeneralizedGaussian(shape=4, scale=2.0).on_integers())  # from a table
    counts = np.array([[9]])
    assert Nested(whole).total_variation(counts) == whole.total_variation(counts) > 0
