"""Filters and odometers: budgets that hold where each profile is chosen after earlier answers."""

import numpy as np
import pytest

from forcopt import DeclarationError
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
    odometer,
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
    assert account.profile().epsilon(1e-6) < odometer(account.profile(), 1e-6, budget.rho) < 1.3
    with pytest.raises(BudgetSpentError, match="no bound in the units of ZCDP"):
        account.spend(PoissonSample(rate=0.01).amplify(Gaussian(scale=20.0).profile(1)))


def test_an_odometer_holds_at_all_times_at_once():
    """In at most a tenth of runs a loss ever passes it, up to 5 deviations; a bound for one time fails."""
    delta, shift, runs, steps = 0.1, 0.1, 20_000, 300
    rho = shift**2 / 2 * np.arange(1, steps + 1)
    noise = np.random.default_rng(1).normal(size=(runs, steps), scale=shift)
    loss = np.cumsum(noise + shift**2 / 2, axis=1)
    always = [odometer(Profile.concentrated(r), delta, expected=0.5) for r in rho]
    single = rho + np.sqrt(2 * rho) * 1.2816  # exact for one time: the loss is normal
    passed, often = ((loss > bound).any(axis=1).mean() for bound in (np.array(always), single))
    allowed = delta + 5 * (delta * (1 - delta) / runs) ** 0.5
    assert 0.01 < passed <= allowed < often


def test_odometers_refuse_what_they_cannot_add():
    known = Gaussian(scale=2.0).profile(1)
    assert odometer(Profile.nothing(), 1e-6, 0.1) < odometer(known, 1e-6, 0.1)
    with pytest.raises(DeclarationError, match="no finite rho"):
        odometer(Profile.pure(0.1, 1e-7), 1e-6, 0.1)
    with pytest.raises(DeclarationError, match="delta is 0"):
        odometer(known, 0, 0.1)
    with pytest.raises(DeclarationError, match="expected is 0"):
        odometer(known, 1e-6, 0)
