"""Mechanisms, calibration, accounts, randomness and audits."""

import json
import pickle
from fractions import Fraction
from math import exp, log

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from scipy.stats import chisquare

from forcopt import DeclarationError
from forcopt.privacy import (
    GDP,
    ZCDP,
    AdditiveMechanism,
    ApproximateDP,
    BoundedNoise,
    BudgetSpentError,
    Categories,
    ClusterSample,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    GeneralizedGaussian,
    Laplace,
    Ledger,
    PoissonSample,
    Profile,
    PureDP,
    RandomizedResponse,
    Schema,
    Secure,
    Simulated,
    Table,
    TabulatedNoise,
    audit,
    calibrate,
    draw,
)
from forcopt.privacy.amplification.design import chosen
from forcopt.privacy.losses import AtomLoss

NOISES = [
    Laplace(scale=1.5),
    DiscreteLaplace(scale=1.5),
    Gaussian(scale=2.0),
    DiscreteGaussian(scale=1.7),
    GeneralizedGaussian(shape=4.0, scale=3.0),
    BoundedNoise(power=2.0, radius=4.0),
    TabulatedNoise([0.1, 0.2, 0.4, 0.2, 0.1]),
]


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_draws_have_the_law(noise):
    """50,000 draws: the variance within 6 standard errors, quantiles and cdf as inverses."""
    x = noise.sample(50_000, Simulated(1))
    spread = np.std((x - x.mean()) ** 2) / len(x) ** 0.5
    assert x.var() == pytest.approx(noise.variance, abs=6 * spread)
    for u in (0.03, 0.2, 0.5, 0.77, 0.99):
        at = float(noise.quantile(u))
        assert float(noise.cdf(at)) >= u - 1e-12
        assert float(noise.cdf(at - (1 if noise.whole else 1e-6))) < u
        assert np.mean(x <= at) == pytest.approx(float(noise.cdf(at)), abs=6 * 0.5 / len(x) ** 0.5)
    grid = np.arange(-200, 201) if noise.whole else np.linspace(-100, 100, 400_001)
    step = 1 if noise.whole else grid[1] - grid[0]
    assert noise.density(grid).sum() * step == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("noise", [n for n in NOISES if n.whole], ids=repr)
def test_secure_draws_have_the_law(noise):
    """Chi-square of 20,000 draws from the system's randomness; a false alarm in a million."""
    x = noise.sample(20_000, Secure())
    values = np.arange(-4, 5)
    mass = noise.density(values)
    seen, expected = [np.sum(x == v) for v in values if noise.density(v) > 1e-3], mass[mass > 1e-3] * len(x)
    rest = len(x) - expected.sum()
    if rest > 1:
        seen, expected = [*seen, len(x) - sum(seen)], [*expected, rest]
    assert chisquare(seen, expected, sum_check=False).pvalue > 1e-6
    assert (
        0 < noise.total_variation < 1e-12 if isinstance(noise, TabulatedNoise) else not noise.total_variation
    )


def test_real_noise_is_not_drawn_securely_in_floating_point():
    with pytest.raises(DeclarationError, match="floating-point draws are not private"):
        Gaussian(scale=1.0).sample(3)
    mechanism = AdditiveMechanism(GeneralizedGaussian(shape=4, scale=20.0))
    with pytest.raises(DeclarationError, match=r"on_integers\(\)"):
        mechanism._send([1.0], Secure())
    whole = AdditiveMechanism(GeneralizedGaussian(shape=4, scale=20.0).on_integers())
    drawn = whole._send([10], Secure())
    assert drawn.dtype == np.int64 and whole.total_variation(drawn) > 0
    with pytest.raises(DeclarationError, match="must be whole"):
        whole._send([0.5], Secure())


def test_a_release_says_what_it_is():
    simulated = AdditiveMechanism(Laplace(scale=1.0)).simulate([5.0], 3)
    assert simulated.simulated and "simulated with a seed, not private" in repr(simulated)
    assert json.loads(json.dumps(simulated.to_dict()))["simulated"] is True
    table = Table({"town": ["a"]}, Schema(town=Categories("a", "b")))
    secure = (table.count() >> DiscreteLaplace(scale=1.0)).release(Ledger(PureDP(1.0)))
    assert not secure.simulated and "drawn securely" in repr(secure)
    assert pickle.loads(pickle.dumps(secure)).to_dict() == secure.to_dict()
    with pytest.raises(ValueError, match="read-only"):
        secure.values[0] = 1


# -- calibration: published scales ------------------------------------------------------------------------


def test_published_scales():
    """Balle and Wang (2018) at (1, 1e-5); Canonne, Kamath and Steinke (2020); Laplace at epsilon 1.

    Digits of Ganesh and Zhao's exact calibration; standard deviations there are scale / sqrt 2.
    """
    assert calibrate(Laplace, PureDP(1.0)).noise.scale == 1.0
    assert calibrate(Gaussian, ApproximateDP(1.0, 1e-5)).noise.scale == pytest.approx(3.730632, abs=1e-6)
    assert calibrate(Gaussian, ZCDP(0.5)).noise.scale == pytest.approx(1.0, rel=1e-9)
    assert calibrate(DiscreteGaussian, ZCDP(0.02)).noise.scale == pytest.approx(5.0, rel=1e-9)
    assert calibrate(Gaussian, GDP(0.25)).noise.scale == pytest.approx(4.0, rel=1e-9)
    for shape, scale in ((1.0, 0.9802954039), (2.0, 2.6557170867), (4.0, 5.3509730604), (6.0, 7.3784570875)):
        found = calibrate(GeneralizedGaussian, ApproximateDP(1.0, 0.01), shape=shape)
        assert found.noise.scale == pytest.approx(scale, rel=1e-9)
    for dimension, delta, shape, scale in (
        (64, 1 / 64, 4.0, 28.1805),
        (100, 1e-6, 3.0, 75.3040),
        (1000, 1e-6, 4.0, 270.532),
        (1000, 1e-6, 2.0, 188.9334),
    ):
        found = calibrate(
            GeneralizedGaussian, ApproximateDP(1.0, delta), shape=shape, norm="linf", dimension=dimension
        )
        assert found.noise.scale == pytest.approx(scale, rel=1e-4)


@pytest.mark.parametrize(
    ("family", "budget", "fixed"),
    [
        (Gaussian, ApproximateDP(0.5, 1e-6), {}),
        (Laplace, ApproximateDP(0.5, 1e-3), {}),
        (DiscreteLaplace, PureDP(0.7), {"sensitivity": 3}),
        (GeneralizedGaussian, ApproximateDP(1.0, 1e-6), {"shape": 3.0, "norm": "linf", "dimension": 50}),
        (BoundedNoise, ApproximateDP(1.0, 1e-3), {"power": 3.0}),
    ],
)
def test_calibration_is_tight(family, budget, fixed):
    found = calibrate(family, budget, **fixed)
    assert budget.holds(found.profile())
    less = found.noise.model_copy(update={family.size: getattr(found.noise, family.size) * 0.9999})
    assert not budget.holds(found.model_copy(update={"noise": less}).profile())


def test_whole_noise_may_be_large():
    """epsilon-private noise is epsilon tanh(epsilon / 2)-zCDP."""
    found = calibrate(DiscreteLaplace, ZCDP(1e-10)).noise.scale
    assert np.tanh(0.5 / found) / found == pytest.approx(1e-10, rel=1e-9)


def test_calibration_that_cannot_be():
    with pytest.raises(DeclarationError, match="no Gaussian noise keeps PureDP"):
        calibrate(Gaussian, PureDP(1.0))
    with pytest.raises(DeclarationError, match=r"up to a scale of 1e\+12 its loss is not that small"):
        calibrate(DiscreteGaussian, ApproximateDP(1e-14, 1e-14))
    with pytest.raises(DeclarationError, match="scale is found by calibrate"):
        calibrate(Gaussian, ZCDP(1.0), scale=2.0)


def test_the_worst_change_of_bounded_numbers_is_all_of_them():
    """Two numbers with an even log-concave noise: brute force over changes within the box."""
    for noise in (
        DiscreteLaplace(scale=2.0),
        DiscreteGaussian(scale=1.5),
        TabulatedNoise([1 / 9, 2 / 9, 1 / 3, 2 / 9, 1 / 9]),
    ):
        x = np.arange(-40, 41)
        mechanism = AdditiveMechanism(noise, sensitivity=1, norm="linf", dimension=2)
        for epsilon in (0.2, 0.6):
            found = []
            for a in (0, 1):
                for b in (-1, 0, 1):
                    p = np.outer(noise.density(x), noise.density(x))
                    q = np.outer(noise.density(x - a), noise.density(x - b))
                    found.append(np.maximum(p - exp(epsilon) * q, 0).sum())
            assert mechanism.profile().bracket(epsilon).upper == pytest.approx(max(found), rel=1e-8)


@pytest.mark.parametrize(
    ("epsilon", "delta", "sensitivity"),
    [
        (6.443366, 0.00776726, 1), (2, 0.1, 1), (8, 1e-3, 1), (10, 1e-4, 1), (15, 1e-6, 1), (20, 1e-8, 1),
        (0.5, 1e-6, 1), (40, 1e-3, 1), (300, 1e-6, 1), (4, 0.01, 2), (8, 1e-3, 2), (10, 1e-5, 3),
    ],
)  # fmt: skip
def test_the_least_discrete_gaussian_is_found_where_delta_turns(epsilon, delta, sensitivity):
    """Against all scales of a fine grid below, by an own sum: the delta rises and falls with the scale."""
    found = calibrate(DiscreteGaussian, ApproximateDP(epsilon, delta), sensitivity=sensitivity).noise.scale
    x = np.arange(-400, 401)

    def reached(scale):
        logs = -(x**2) / (2 * scale**2)
        mass = np.exp(logs) / np.exp(logs).sum()
        shifted = np.exp(logs[:-sensitivity] + epsilon) / np.exp(logs).sum()
        return np.maximum(mass - np.concatenate([np.zeros(sensitivity), shifted]), 0.0).sum()

    assert reached(found) <= delta * (1 + 1e-8)
    least = 0.2 * sensitivity / (2 * epsilon) ** 0.5
    grid = np.exp(np.linspace(np.log(least), np.log(found * (1 - 1e-6)), 4000))
    assert min(map(reached, grid)) > delta


# -- accounts ----------------------------------------------------------------------------------------------


def test_five_times_a_fifth_is_one():
    account = Ledger(PureDP(1.0))
    fifth = AdditiveMechanism(Laplace(epsilon=0.2))
    for _ in range(5):
        account.spend(fifth)
    assert account.remaining() == 0 and not account.allows(fifth)
    with pytest.raises(BudgetSpentError, match="window 'all': PureDP allows 1, of which 1 is spent"):
        account.spend(fifth, name="one more")
    assert len(account.entries) == 5


def test_windows_overlap():
    account = Ledger({"young": ZCDP(0.1), "old": ZCDP(0.2)})
    account.spend(AdditiveMechanism(Gaussian(scale=3.0)))  # rho 1/18 in both
    account.spend(AdditiveMechanism(Gaussian(scale=3.0)), ["old"])
    assert account.spent("old") == pytest.approx(1 / 9)
    assert not account.allows(AdditiveMechanism(Gaussian(scale=3.0)), ["young"])
    with pytest.raises(DeclarationError, match="window 'middle' does not exist"):
        account.spend(AdditiveMechanism(Gaussian(scale=3.0)), ["middle"])
    approximate = Ledger(ApproximateDP(1.0, 1e-5))
    approximate.spend(AdditiveMechanism(Gaussian(scale=8.0)))
    assert approximate.profile().mu == 0.125 and 0 < approximate.remaining() < 1
    with pytest.raises(BudgetSpentError, match="no bound in the units of PureDP"):
        Ledger(PureDP(1.0)).spend(AdditiveMechanism(Gaussian(scale=8.0)))


def test_releases_of_different_relations_do_not_add_up():
    """In each window by itself, and whether the mechanism or the caller names the relation."""
    count, changed = AdditiveMechanism(Laplace(epsilon=0.5)), RandomizedResponse(epsilon=0.5, groups=2)
    account = Ledger(ApproximateDP(2.0, 1e-5), windows=["a", "b"])
    account.spend(
        PoissonSample(rate=0.1).amplify(count.profile()), ["a"], name="sampled", neighbours="add_remove"
    )
    account.spend(count)  # for both relations
    for release, relation in ((changed, None), (Profile.pure(0.1), "substitute")):
        with pytest.raises(
            DeclarationError, match="window 'a': 'x' is private for the relation 'substitute', 'sam"
        ):
            account.spend(release, name="x", neighbours=relation)
    assert not account.allows(changed) and account.allows(changed, ["b"])
    account.spend(changed, ["b"])
    with pytest.raises(DeclarationError, match="neighbours is 'add_remove'; 'y' is for 'substitute'"):
        account.spend(changed, ["b"], name="y", neighbours="add_remove")
    with pytest.raises(DeclarationError, match="neighbours"):
        account.spend(count, neighbours="other")
    assert [entry.neighbours for entry in account.entries] == ["add_remove", None, "substitute"]


@pytest.mark.parametrize(
    ("spend", "rule"),
    [
        (lambda: Ledger("x"), "budget of 'all' is 'x'; it must be a budget, such as PureDP"),
        (lambda: Ledger({"a": 1.0}), "budget of 'a' is 1.0"),
        (lambda: Ledger({}), "budget is empty"),
        (lambda: Ledger(PureDP(1.0), windows="2024"), "windows is the text '2024'"),
        (lambda: Ledger(PureDP(1.0)).spend(Profile.pure(1.0), []), "windows is empty; name at least one"),
        (lambda: Ledger(PureDP(1.0)).spend(Profile.pure(1.0), "all"), "windows is the text 'all'"),
        (
            lambda: Ledger(PureDP(1.0)).spend(AdditiveMechanism(DiscreteLaplace(scale=1.0)).simulate([1], 0)),
            "release is a Release; it must be a Mechanism or a Profile",
        ),
        (lambda: Profile.pure(-5.0), "epsilon is -5.0; it must be finite and not negative"),
        (lambda: Profile.pure(float("nan")), "epsilon is nan"),
        (lambda: Profile.pure(1.0, -0.1), "delta is -0.1"),
        (lambda: Profile.concentrated(-1.0), "rho is -1.0"),
    ],
)
def test_what_is_no_release_and_no_budget_is_refused(spend, rule):
    with pytest.raises(DeclarationError, match=rule):
        spend()


# -- audits ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "neighbours", "epsilon", "delta"),
    [
        (AdditiveMechanism(Laplace(scale=1.0)), ([3.0, 1.0], [2.0, 1.0]), 1.0, 0.0),
        (AdditiveMechanism(DiscreteLaplace(scale=1.0)), ([3], [2]), 1.0, 0.0),
        (calibrate(Gaussian, ApproximateDP(1.0, 0.05)), ([0.0], [1.0]), 1.0, 0.05),
        (calibrate(BoundedNoise, ApproximateDP(1.0, 0.05), power=2.0), ([0.0], [1.0]), 1.0, 0.05),
        (calibrate(DiscreteGaussian, ApproximateDP(1.0, 0.05)), ([0], [1]), 1.0, 0.05),
        (calibrate(GeneralizedGaussian, ApproximateDP(1.0, 0.05), shape=4.0), ([0.0], [1.0]), 1.0, 0.05),
        (AdditiveMechanism(TabulatedNoise([0.05, 0.3, 0.3, 0.3, 0.05])), ([0], [1]), 1.8, 0.05),
        (RandomizedResponse(1.0, groups=3), (np.array([0]), np.array([2])), 1.0, 0.0),
        (ExponentialMechanism(epsilon=1.0), ([0.0, 1.0], [1.0, 0.0]), 1.0, 0.0),
    ],
    ids=lambda x: type(x).__name__,
)
def test_mechanisms_pass_their_audit(mechanism, neighbours, epsilon, delta):
    """Each fails with probability at most 1e-5; and the audit finds most of a loss that is there."""
    found = audit(mechanism, neighbours, epsilon, 8000, delta=delta, level=1 - 1e-5)
    assert found.passed, found
    assert found.lower_epsilon > 0.25 * epsilon


def twice(values, rng):
    """Counts one record twice, for which the noise is not enough."""
    return np.asarray(values) * 2 + rng.generator().laplace(scale=1.0, size=np.shape(values))


def reused(values, rng):
    """Draws from the same seed in each run."""
    return np.asarray(values) + np.random.default_rng(0).laplace(scale=1.0, size=np.shape(values))


BROKEN = [AdditiveMechanism(Laplace(scale=0.5)), twice, reused]


@pytest.mark.parametrize("broken", BROKEN, ids=["half the noise", "twice", "reused"])
def test_broken_mechanisms_are_caught(broken):
    found = audit(broken, ([0.0], [1.0]), 1.0, 6000)
    assert not found.passed and found.lower_epsilon > 1.2


def test_releases_of_a_sample():
    tenth = PoissonSample(rate=0.1).amplify(Laplace(scale=1.0).profile(1))
    assert tenth.epsilon(0.0) == pytest.approx(np.log1p(0.1 * np.expm1(1.0)))
    assert log(2) > tenth.delta(0.0) > 0


def test_secure_reports_have_their_law_and_state_their_deviation():
    """Chi-square of 20,000 reports from the system's randomness; a false alarm in a million."""
    channel = RandomizedResponse(1.0, groups=4)
    reports = channel.privatize(np.full(20_000, 2), 4, ledger=Ledger(PureDP(1.0)))
    expected = channel.transition(4)[:, 2] * 20_000
    assert chisquare(np.bincount(reports, minlength=4), expected).pvalue > 1e-6
    assert 0 < channel.total_variation(reports) < 1e-10
    certain = RandomizedResponse(800.0).privatize([0, 1, 2, 1], 3, ledger=Ledger(PureDP(801.0)))
    assert certain.tolist() == [0, 1, 2, 1]


def test_reports_are_paid_for_or_simulated():
    ledger, channel = Ledger(PureDP(1.5)), RandomizedResponse(1.0)
    with pytest.raises(DeclarationError, match="ledger is None; a release spends from one"):
        channel.privatize([0, 1], 2)
    channel.privatize([0, 1], 2, ledger=ledger)
    assert ledger.entries[0].neighbours == "substitute" and ledger.spent() == 1.0
    with pytest.raises(BudgetSpentError, match="'randomized response' takes 1"):
        channel.privatize([0, 1], 2, ledger=ledger)


@pytest.mark.parametrize("groups", [2, 3, 5])
@pytest.mark.parametrize("people", [1, 2, 3])
def test_reports_of_several_people_lose_more(groups, people):
    """Against all outputs of people who all have another group."""
    channel = RandomizedResponse(0.7, groups=groups)
    law = channel.transition(groups)
    one = other = np.ones(1)
    for _ in range(people):
        one, other = np.outer(one, law[:, 0]).ravel(), np.outer(other, law[:, 1]).ravel()
    profile = channel.profile(people)
    assert profile.largest_loss == pytest.approx(0.7 * people)
    for epsilon in (0.0, 0.3, 0.69, 1.0, 2.0):
        delta = np.maximum(one - exp(epsilon) * other, 0.0).sum()
        assert profile.delta(epsilon) == pytest.approx(delta, abs=1e-12)
    with pytest.raises(DeclarationError, match="distance is 0"):
        channel.profile(0)
    with pytest.raises(DeclarationError, match="distance is 0"):
        ExponentialMechanism(epsilon=1.0).profile(0)


def test_a_channel_for_three_groups_reads_no_table_of_two():
    channel = RandomizedResponse(1.0, groups=3)
    assert channel.debias(channel.transition(3) @ [1.0, 2.0, 3.0]).tolist() == pytest.approx([1, 2, 3])
    for question in (channel.transition, channel.inverse, lambda k: channel.privatize([0, 1], k)):
        with pytest.raises(DeclarationError, match="the channel is for 3 groups; these are 2"):
            question(2)


def test_an_audit_needs_outputs_of_one_size():
    with pytest.raises(DeclarationError, match="the outputs have from 0 to 5 numbers"):
        audit(lambda data, rng: data[: rng.generator().integers(6)], (np.ones(9), np.ones(8)), 1.0, 200)


def test_choices_have_exactly_their_probability():
    """The tie of 53 bits is decided by further bits: against the exact fraction of the float."""

    class Fixed:
        def __init__(self, *draws):
            self.draws = list(draws)

        def random(self, count):
            return np.full(count, self.draws.pop(0))

    rate = 0.1  # between two multiples of 2^-53
    below = np.floor(rate * 2**53) / 2**53
    assert below < rate
    rest = float(Fraction(rate) * 2**53 - int(below * 2**53))
    assert chosen(rate, 1, Fixed(below - 2.0**-53))[0] and not chosen(rate, 1, Fixed(below + 2.0**-53))[0]
    assert chosen(rate, 1, Fixed(below, rest - 2.0**-20))[0] and not chosen(rate, 1, Fixed(below, rest))[0]
    rng = np.random.default_rng(0)
    assert not chosen(0, 1000, rng).any() and chosen(1, 1000, rng).all()
    assert chosen(0.3, 100_000, rng).mean() == pytest.approx(0.3, abs=0.01)


def test_a_cluster_that_vanishes_does_not_show():
    """The names of all clusters are declared: the same law with and without records."""
    table = pd.DataFrame({"town": list("aaab"), "age": 1.0})
    design = ClusterSample(by="town", chosen=2, names=("a", "b"))
    for people in (table, table[:3], table[:0]):
        assert len(draw(design, people, seed=1) if len(people) else ()) == len(people)
    with pytest.raises(DeclarationError, match="column 'town' holds 'b'; names are a, c"):
        draw(design.replace(names=("a", "c")), table)


def test_an_audit_splits_its_confidence_over_all_eight_bounds():
    """Where outputs are the data, each bound is a power of its share."""
    found = audit(lambda data, rng: data, (0.0, 1.0), epsilon=1.0, runs=2000, level=0.9)
    low = (0.1 / 8) ** (1 / 1000)
    assert found.lower_epsilon == pytest.approx(np.log(low / (1 - low)))
    assert found.lower_delta == pytest.approx(low - np.e * (1 - low))


def test_an_audit_refuses_outputs_that_no_event_is_about():
    with pytest.raises(DeclarationError, match="NaN"):
        audit(lambda data, rng: np.nan if data else 1.0, (0.0, 1.0), epsilon=1.0, runs=200)


def test_an_audit_catches_infinite_outputs():
    def leaky(data, rng):
        return rng.generator().choice([np.inf, -np.inf]) if data else rng.generator().normal()

    assert not audit(leaky, (0.0, 1.0), epsilon=1.0, runs=1000).passed


# -- concentrated and Gaussian privacy ---------------------------------------------------------------------


def laws(noise, shift):
    """The masses of a pair: of whole numbers, or of intervals on which the loss is constant or nearly so."""
    if noise.whole:
        x = np.arange(-400, 401 + shift)
        return noise.density(x), noise.density(x - shift)
    if isinstance(noise, GeneralizedGaussian):
        ends = np.linspace(-9 * noise.scale, 9 * noise.scale + shift, 8001)
    else:
        ends = np.concatenate([[-99.0], np.linspace(0, shift, 3001), [99.0]])
    middle = (ends[1:] + ends[:-1]) / 2

    def masses(ends, middle):  # differences of the smaller tail
        return np.where(middle < 0, np.diff(noise.cdf(ends)), -np.diff(noise.cdf(-ends)))

    return masses(ends, middle), masses(ends - shift, middle - shift)


def concentrated(p, q):
    """The largest Renyi divergence over its order, over a grid of orders from 1 up."""
    p, q = p[p > 0], q[p > 0]
    losses = np.log(p) - np.log(q)
    excess = 10.0 ** np.linspace(-4, 3, 400)
    top = np.max(losses)
    logs = [e * top + np.log(p @ np.exp(e * (losses - top))) for e in excess]
    return max(p @ losses, max(np.array(logs) / (excess * (1 + excess))))


def too_private(p, q, mu):
    """The largest excess of delta over the delta of Gaussian noise, on a grid of epsilon."""
    losses = np.log(p) - np.log(q)
    epsilons = np.linspace(-1, 1, 4001) * losses.max()
    deltas = np.array([np.maximum(p - np.exp(e) * q, 0).sum() for e in epsilons])
    gaussian = ndtr(mu / 2 - epsilons / mu) - np.exp(epsilons) * ndtr(-mu / 2 - epsilons / mu)
    return float((deltas - gaussian).max())


@pytest.mark.parametrize(
    ("noise", "shift"),
    [
        (Laplace(scale=0.5), 1),
        (Laplace(scale=2.0), 1),
        (DiscreteLaplace(scale=0.7), 2),
        (DiscreteLaplace(scale=3.0), 1),
        (DiscreteLaplace(scale=3.0), 5),
        (GeneralizedGaussian(shape=1.3, scale=2.0), 1),
        (GeneralizedGaussian(shape=1.8, scale=0.7), 1),
    ],
    ids=repr,
)
def test_the_parameters_of_a_noise_are_the_least(noise, shift):
    p, q = laws(noise, shift)
    profile = noise.profile(shift)
    assert profile.rho == pytest.approx(concentrated(p, q), rel=3e-6)
    keep = (p > 1e-16) & (q > 1e-16)
    p, q = p[keep], q[keep]
    assert too_private(p, q, profile.mu * (1 + 1e-6)) < 1e-10
    assert too_private(p, q, profile.mu * (1 - 1e-4)) > 1e-7


def test_the_parameters_of_a_table_count_both_directions():
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.35, 0.45])
    profile = Profile.of(AtomLoss(p, q), AtomLoss(q, p))
    assert profile.rho == pytest.approx(max(concentrated(p, q), concentrated(q, p)), rel=1e-8)
    assert max(too_private(p, q, profile.mu), too_private(q, p, profile.mu)) < 1e-12
    smaller = profile.mu * (1 - 1e-3)
    assert max(too_private(p, q, smaller), too_private(q, p, smaller)) > 1e-6


@pytest.mark.parametrize("epsilon", [1e-7, 2.0, 30.0])
def test_the_parameters_of_a_table_keep_their_digits(epsilon):
    """Randomized response, with each answer listed twice."""
    truth, lie = 1 / (2 + 2 * exp(-epsilon)), 1 / (2 + 2 * exp(epsilon))
    p = np.array([truth, truth, lie, lie])
    table, one = AtomLoss(p, p[::-1]), Profile.pure(log(truth / lie))
    assert table.mu == pytest.approx(one.mu, rel=1e-8)
    assert table.rho == pytest.approx(one.rho, rel=1e-8)


@pytest.mark.parametrize("family", [Laplace, DiscreteLaplace])
@pytest.mark.parametrize("budget", [ZCDP(0.3), ZCDP(1e-9), GDP(0.8), GDP(1e-6), ZCDP(40.0)], ids=repr)
def test_laplace_noise_is_calibrated_to_its_own_loss(family, budget):
    """The worst mechanism of the same epsilon loses more; for a small epsilon they agree."""
    found = calibrate(family, budget, sensitivity=3)
    epsilon = found.profile().largest_loss
    assert not budget.holds(
        found.noise.model_copy(update={"scale": found.noise.scale * (1 - 1e-9)}).profile(3)
    )
    worst = Profile.pure(epsilon)
    assert budget.spent(worst) > budget.total * (1 + 1e-12)
    if epsilon < 1e-3:
        assert budget.spent(worst) == pytest.approx(budget.total, rel=1e-3)


def test_a_change_of_up_to_two_may_be_worse_by_one():
    # this table moved by 2 overlaps itself, but moved by 1 it does not
    table = TabulatedNoise([0.25, 0.0, 0.5, 0.0, 0.25])
    assert table.profile(1).delta(2.0) == 1.0 and table.profile(2).delta(2.0) == 0.25
    with pytest.raises(DeclarationError, match="not log-concave at -1"):
        AdditiveMechanism(table, sensitivity=2.0)
    with pytest.raises(DeclarationError, match="not log-concave at -1"):
        AdditiveMechanism(table).profile(2)
    assert AdditiveMechanism(table).profile().delta(2.0) == 1.0
    steep = TabulatedNoise([0.25, 0.5, 0.25])
    assert AdditiveMechanism(steep, sensitivity=2.0).profile().delta(0.0) == pytest.approx(0.75)


@pytest.mark.parametrize(
    "p, place",
    [
        ([0.1, 0.3, 0.0, 0.0, 0.2, 0.0, 0.0, 0.3, 0.1], -2),
        ([0.25, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.25], -3),
        ([0.0, 0.4, 0.2, 0.4, 0.0], 0),
        ([0.0, 0.3, 0.4, 0.3, 0.0], None),
    ],
)
def test_a_gap_of_any_width_is_not_log_concave(p, place):
    assert TabulatedNoise(p).not_log_concave == place


def test_log_concavity_of_masses_whose_squares_underflow():
    half = np.exp(-np.arange(0.0, 700.0))
    assert TabulatedNoise(np.concatenate([half[:0:-1], half]) / (2 * half.sum() - 1)).not_log_concave is None
    half[400] = half[401] / 2
    bent = np.concatenate([half[:0:-1], half])
    assert TabulatedNoise(bent / bent.sum()).not_log_concave == -400


@pytest.mark.parametrize("value", [1e300, 2.0**53 + 2, -1e16])
def test_whole_numbers_beyond_the_exact_floats_are_refused(value):
    mechanism = AdditiveMechanism(DiscreteLaplace(scale=1.0))
    for rng in (Secure(), Simulated(1)):
        with pytest.raises(DeclarationError, match=r"values\[1\] is .* at most 2\^53"):
            mechanism._send([1.0, value], rng)
    assert abs(int(mechanism._send(2.0**53 - 100, Secure())) - 2**53) < 300


@pytest.mark.parametrize(
    "noise, norm",
    [
        (Laplace(scale=1.0), "linf"),
        (GeneralizedGaussian(shape=4, scale=1.0), "l1"),
        (DiscreteGaussian(scale=2.0), "l2"),
    ],
)
def test_a_profile_of_one_number_does_not_cover_several(noise, norm):
    mechanism = AdditiveMechanism(noise, norm=norm)
    with pytest.raises(DeclarationError, match="values has 3 numbers; dimension is 1"):
        mechanism.simulate([1.0, 2.0, 3.0], 1)
    assert np.shape(mechanism.simulate([1.0], 1)) == (1,)
    several = AdditiveMechanism(Gaussian(scale=2.0), norm="l2").simulate([1.0, 2.0], 1)
    assert np.shape(several) == (2,)


@pytest.mark.parametrize(
    ("family", "budget", "message"),
    [
        ("laplace", PureDP(1.0), "family is 'laplace'; it must be a class of noises"),
        (Laplace(epsilon=1.0), PureDP(1.0), "it must be a class of noises"),
        (Laplace, 1.0, r"budget is 1.0; it must be a budget, such as PureDP\(1.0\)"),
    ],
)
def test_calibration_names_what_it_cannot_read(family, budget, message):
    with pytest.raises(DeclarationError, match=message):
        calibrate(family, budget)
