"""Filters: budgets that hold where each profile is chosen after earlier answers."""

import numpy as np
import pytest

from forcopt.privacy import (
    GDP,
    ZCDP,
    AdditiveMechanism,
    ApproximateDP,
    BudgetSpentError,
    Gaussian,
    Ledger,
    PoissonSample,
    Profile,
    PureDP,
    adaptive,
)


def test_the_filter_is_the_largest_rho_that_proves_the_promise():
    rng = np.random.default_rng(3)
    for _ in range(40):
        epsilon, delta = 10 ** rng.uniform(-3, 2), min(0.999, 10 ** rng.uniform(-60, 0))
        promise = ApproximateDP(epsilon, delta)
        rho = adaptive(promise).rho
        assert promise.holds(Profile.concentrated(rho))
        assert not promise.holds(Profile.concentrated(rho * (1 + 1e-6)))


def test_the_filter_allows_more_than_the_printed_one():
    """Whitehouse et al. stop at ``sqrt(2 log(1 / delta) s) + s / 2``, s being the sum of squared epsilons."""
    for epsilon, delta in ((0.5, 1e-8), (1.0, 1e-6), (4.0, 1e-5)):
        root = (2 * np.log(1 / delta)) ** 0.5
        printed = ((root**2 + 2 * epsilon) ** 0.5 - root) ** 2
        assert (root * printed**0.5 + printed / 2) == pytest.approx(epsilon)
        assert 2 * adaptive(ApproximateDP(epsilon, delta)).rho > printed


def test_budgets_that_add_up_are_their_own_filters():
    for budget in (PureDP(1.0), ZCDP(0.5), GDP(2.0)):
        assert adaptive(budget) is budget
    assert adaptive(ApproximateDP(1.5)) == PureDP(1.5)


def test_a_ledger_of_a_filter_refuses_what_overspends():
    budget = adaptive(ApproximateDP(1.0, 1e-6))
    account = Ledger(budget)
    for _ in range(19):
        account.spend(AdditiveMechanism(Gaussian(scale=20.0)))  # rho .00125 each
    with pytest.raises(BudgetSpentError):
        account.spend(AdditiveMechanism(Gaussian(scale=20.0)))
    assert account.profile().epsilon(1e-6) < 1.3
    with pytest.raises(BudgetSpentError, match="no bound in the units of ZCDP"):
        account.spend(PoissonSample(rate=0.01).amplify(Gaussian(scale=20.0).profile(1)))
