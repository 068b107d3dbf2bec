import numpy as np
import pytest

from forcopt.errors import DeclarationError
from forcopt.models import Apportionment
from forcopt.models.fair_decisions import rounded_seat_probabilities, seat_probabilities
from forcopt.numeric.apportionment import apportion, signpost
from forcopt.privacy import AdditiveMechanism, Gaussian, Laplace

CRITERIA = ["hill", "webster", "jefferson", "adams", "dean"]


def laplace(scale):
    return AdditiveMechanism(Laplace(epsilon=1 / scale))


def seats_of(noisy, p):
    """Seats by the definition: infinite first priorities go to positive populations only."""
    if not noisy.any():
        return np.broadcast_to(p.minimum, noisy.shape)
    least = np.broadcast_to(p.minimum, noisy.shape)
    if p.criterion in ("hill", "adams", "dean"):
        least = np.maximum(least, noisy > 0)
    return apportion(noisy, p.seats, p.criterion, minimum=least).seats


def random_problem(rng, run, most=6):
    k = int(rng.integers(1, most))
    x = np.round(rng.exponential(100, k)) * (rng.random(k) > 0.1)
    x[0] += not x.any()
    return Apportionment(
        x, int(rng.integers(k, 20)), minimum=int(rng.integers(0, 2)), criterion=CRITERIA[run % 5]
    )


def test_laws_are_those_of_simulations():
    """100 instances of 160 runs: a difference beyond 6 standard errors has probability below 1e-3 in all."""
    rng = np.random.default_rng(0)
    for run in range(100):
        p, scale, trials = random_problem(rng, run), float(rng.choice([0.5, 5, 50, 500, 5000])), 160
        law = seat_probabilities(p, laplace(scale))
        k, seats = len(law), p.seats
        noisy = np.maximum(0, p.populations + rng.laplace(scale=scale, size=(trials, k)))
        counts = np.zeros_like(law)
        for row in noisy:
            counts[np.arange(k), seats_of(row, p)] += 1
        error = np.sqrt(np.maximum(law * (1 - law), 2e-3) / trials)
        assert (np.abs(counts / trials - law) <= 6 * error).all()
        nothing = np.prod(np.exp(-p.populations / scale) / 2)
        minimum = int(p.minimum) * k
        assert law @ np.arange(seats + 1) @ np.ones(k) == pytest.approx(
            seats * (1 - nothing) + nothing * minimum, abs=1e-6
        )
        assert law.sum(axis=1) == pytest.approx(np.ones(k), abs=1e-12)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_two_states_are_those_of_an_enumerated_lattice(criterion):
    """Noise on a lattice of steps of 1/8 scale; the law of continuous noise is within the lattice's error."""
    p = Apportionment([30, 50], 5, criterion=criterion)
    scale, step = 10.0, 0.125
    points = (np.arange(-240, 241)) * step * scale
    mass = np.exp(-np.abs(points) / scale)
    mass /= mass.sum()
    x, y = (np.maximum(v, 0.0) for v in np.meshgrid(points + 30, points + 50, indexing="ij"))
    weight = np.outer(mass, mass)
    first = np.ones(x.shape, dtype=int)
    second = np.ones(x.shape, dtype=int)
    for _ in range(3):  # one seat after the other, to the larger priority
        wins = x / signpost(first, criterion) > y / signpost(second, criterion)
        first, second = first + wins, second + ~wins
    law = np.stack([[weight[s == n].sum() for n in range(6)] for s in (first, second)])
    assert seat_probabilities(p, laplace(scale)) == pytest.approx(law, abs=0.02)


def test_little_noise_changes_nothing_and_much_noise_forgets_the_populations():
    p = Apportionment([9061, 7179, 5259, 3319, 1182], 26)
    law = seat_probabilities(p, laplace(1e-3))
    assert law[np.arange(5), [9, 7, 6, 3, 1]] == pytest.approx(np.ones(5), abs=1e-12)
    blind = seat_probabilities(p, laplace(1e9)) @ np.arange(27)
    assert blind == pytest.approx(np.full(5, blind.mean()), rel=1e-4)


def test_refusals():
    with pytest.raises(DeclarationError, match="divisor methods"):
        seat_probabilities(Apportionment([1, 2], 4, criterion="total"), laplace(1))
    with pytest.raises(DeclarationError, match="quota"):
        seat_probabilities(Apportionment([1, 2], 4, quota="both"), laplace(1))
    with pytest.raises(DeclarationError, match="minimums need more"):
        seat_probabilities(Apportionment([1, 2, 3], 2), laplace(1))
    with pytest.raises(DeclarationError, match="Gaussian"):
        seat_probabilities(Apportionment([1, 2], 4), AdditiveMechanism(Gaussian(scale=1.0)))


def test_seats_need_a_mechanism_and_not_its_noise():
    p = Apportionment([5, 3], seats=3)
    for law in (seat_probabilities, rounded_seat_probabilities):
        with pytest.raises(DeclarationError, match=r"mechanism is Laplace\(scale=10.0\); it must be an Add"):
            law(p, Laplace(epsilon=0.1))


def test_populations_by_name_are_no_list():
    with pytest.raises(DeclarationError, match=r"populations.*in order, not a mapping"):
        Apportionment({"a": 5, "b": 3}, seats=3)
