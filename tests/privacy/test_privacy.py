import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forcopt import DeclarationError
from forcopt.privacy import AdditiveMechanism, Laplace, PrivacyBudget, RandomizedResponse, Secure, Simulated


@given(st.integers(2, 6), st.floats(0.01, 60))
def test_the_channel_is_private_and_invertible(groups, epsilon):
    channel = RandomizedResponse(epsilon)
    transition = channel.transition(groups)
    assert transition.sum(axis=0) == pytest.approx(1.0)
    assert np.log(transition[0, 0] / transition[0, 1]) == pytest.approx(epsilon)
    assert channel.inverse(groups) @ transition == pytest.approx(np.eye(groups), abs=1e-9)
    table = np.arange(4.0 * groups).reshape(2, groups, 2)
    seen = np.einsum("za,yal->yzl", transition, table)
    assert channel.debias(seen, axis=1) == pytest.approx(table, abs=1e-8 * (1 + 1 / epsilon))


def test_reports_follow_the_channel():
    """Each of the 9 frequencies is within 5 standard deviations: a false alarm once in 190,000 runs."""
    channel, people = RandomizedResponse(1.0), 200_000
    for group in range(3):
        reports = channel.privatize(np.full(people, group), 3, seed=group)
        frequency = np.bincount(reports, minlength=3) / people
        expected = channel.transition(3)[:, group]
        assert (np.abs(frequency - expected) < 5 * np.sqrt(expected * (1 - expected) / people)).all()


def test_laplace_noise_has_its_scale():
    """The mean of |noise| is the scale; its standard deviation is the scale over sqrt(n)."""
    people, mechanism = 20_000, AdditiveMechanism(Laplace(scale=3.0))
    scale = 3.0
    for rng in (Secure(), Simulated(7)):
        noise = mechanism._send(np.zeros((people // 2, 2)), rng)
        assert noise.shape == (people // 2, 2)
        assert abs(np.abs(noise).mean() - scale) < 5 * scale / np.sqrt(people)
        assert abs(noise.mean()) < 5 * scale * np.sqrt(2 / people)
    one, same = (mechanism.simulate([1, 2], 3).values for _ in range(2))
    assert (one == same).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Laplace(epsilon=0), "epsilon is 0"),
        (lambda: Laplace(0.5), "scale=.* or .*epsilon="),
        (lambda: Laplace(epsilon=1, scale=1), "both given"),
        (lambda: PrivacyBudget(1, floor=0), "floor"),
        (lambda: Laplace(epsilon=np.inf), "epsilon"),
        (lambda: Laplace(scale=0.0), "scale is 0"),
        (lambda: AdditiveMechanism(Laplace(scale=1.0)).simulate([np.nan], 0), "values"),
        (lambda: AdditiveMechanism(Laplace(scale=1.0)).simulate([1.0], None), "seed is None"),
        (lambda: RandomizedResponse(-1), "epsilon"),
        (lambda: RandomizedResponse(1).transition(1), "at least 2"),
        (lambda: RandomizedResponse(1).privatize([0, 3], 3, 0), "from 0 to 2"),
        (lambda: RandomizedResponse(1).privatize([0.5], 3, 0), "from 0 to 2"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(DeclarationError, match=message):
        make()
