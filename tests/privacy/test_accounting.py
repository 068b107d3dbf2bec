import numpy as np
import pytest
from scipy.stats import binom

from forcopt import DeclarationError
from forcopt.privacy import ExponentialMechanism, PrivacyBudget, Secure, Simulated, composed_epsilon


def delta_of(composed, epsilon, count):
    """The exact delta of composed randomized responses (Kairouz, Oh and Viswanath 2015, Theorem 3.3)."""
    at_most = np.ceil((count - composed / epsilon) / 2) - 1
    lie = 1 / (1 + np.exp(epsilon))
    return binom.cdf(at_most, count, lie) - np.exp(composed) * binom.cdf(at_most, count, 1 - lie)


@pytest.mark.parametrize(("epsilon", "count"), [(0.01, 100), (0.3, 20), (0.002, 5000)])
def test_composition_is_optimal(epsilon, count):
    composed = composed_epsilon(epsilon, count, delta=1e-6)
    assert composed < epsilon * count
    assert delta_of(composed, epsilon, count) == pytest.approx(1e-6, rel=1e-4)


@pytest.mark.parametrize("budget", [PrivacyBudget(1.0, delta=1e-7), PrivacyBudget(8.0, delta=1e-5)])
def test_the_parts_of_a_budget_keep_within_it(budget):
    for count in (1, 2, 100, 3000):
        each = budget.split(count)
        assert each >= budget.epsilon / count
        assert composed_epsilon(each, count, budget.delta) <= budget.epsilon
        assert composed_epsilon(1.001 * each, count, budget.delta) > budget.epsilon


def test_better_than_the_composition_theorems_of_the_paper():
    """100 mechanisms with (1, 1e-7): Lemma A.3 gives .0088, basic composition .01, Dwork and Roth .0171."""
    assert PrivacyBudget(1.0).split(100) == pytest.approx(0.01)
    assert PrivacyBudget(1.0, delta=1e-7).split(100) > 0.017093728


def test_bad_budgets_are_named():
    with pytest.raises(DeclarationError, match="epsilon is 0"):
        PrivacyBudget(0.0)
    with pytest.raises(DeclarationError, match="delta is 1"):
        PrivacyBudget(1.0, delta=1.0)
    with pytest.raises(DeclarationError, match="floor is -1"):
        PrivacyBudget(1.0, floor=-1)
    with pytest.raises(DeclarationError, match="mechanisms is 0"):
        PrivacyBudget(1.0).split(0)
    with pytest.raises(DeclarationError, match=r"mechanisms is 1\.5"):
        PrivacyBudget(1.0).split(1.5)
    with pytest.raises(DeclarationError, match=r"delta is 1\.5"):
        composed_epsilon(1.0, 3, 1.5)
    with pytest.raises(DeclarationError, match="epsilon is 0"):
        composed_epsilon(0, 3, 0.1)


def test_choices_follow_the_exponential_mechanism():
    """Losses (6, 5, 4, 6) / 12. Within 5 standard deviations: a false alarm in 430,000."""
    losses, rng, draws = np.array([6, 5, 4, 6]) / 12, Simulated(0), 20_000
    mechanism = ExponentialMechanism(1.0, 1 / 12)
    expected = np.array([0.15705976, 0.25894777, 0.42693270, 0.15705976])
    chosen = [mechanism._send(losses, rng) for _ in range(draws)]
    found = np.bincount(chosen, minlength=4) / draws
    assert (np.abs(found - expected) < 5 * np.sqrt(expected * (1 - expected) / draws)).all()


def test_choices_of_opendp_are_no_worse():
    """Its expected loss is at most that of the exponential mechanism; 5 deviations are allowed."""
    pytest.importorskip("opendp")
    losses, draws = np.array([6, 5, 4, 6]) / 12, 500
    exponential = losses @ [0.15705976, 0.25894777, 0.42693270, 0.15705976]
    choice = ExponentialMechanism(1.0, 1 / 12)
    found = np.mean([losses[choice._send(losses, Secure())] for _ in range(draws)])
    assert found < exponential + 5 * losses.std() / np.sqrt(draws)
    assert ExponentialMechanism(1000.0, 1e-3)._send([0.3, 0.1, 0.2], Secure()) == 1


def test_bad_choices_are_named():
    for losses, epsilon, sensitivity in (([], 1, 1), ([[[1.0]]], 1, 1), ([1.0], 0, 1), ([1.0], 1, -1)):
        with pytest.raises(DeclarationError, match=r"losses|epsilon|sensitivity"):
            ExponentialMechanism(epsilon, sensitivity).simulate(losses, 0)
