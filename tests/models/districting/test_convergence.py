"""R-hat, effective sizes and autocorrelations of ensembles, against loops written for the tests."""

from math import isinf, isnan, log10, sqrt
from statistics import NormalDist, fmean, median, variance

import numpy as np
import pytest

from forcopt.data import grid
from forcopt.models import Districting
from forcopt.models.districting import Ensemble


class _Drawn(Ensemble):
    """An ensemble with given scores."""

    def values(self, score="cut_edges"):
        return np.asarray(self.plans, float)


def drawn(values):
    return _Drawn(None, tuple(values), "recom")


def normal_scores(chains):
    """Ranks by counting, as normal scores."""
    every = [x for chain in chains for x in chain]

    def scored(x):
        rank = sum(y < x for y in every) + (sum(y == x for y in every) + 1) / 2
        return NormalDist().inv_cdf((rank - 3 / 8) / (len(every) + 1 / 4))

    return [[scored(x) for x in chain] for chain in chains]


def r_hat(chains):
    """Equation 3 and 4 of Vehtari et al., by the variances between and within."""
    n = len(chains[0])
    between = n * variance([fmean(chain) for chain in chains])
    within = fmean([variance(chain) for chain in chains])
    return sqrt(((n - 1) / n * within + between / n) / within)


def effective(chains):
    """Geyer's initial monotone sequence, lag by lag, until a pair is negative."""
    m, n = len(chains), len(chains[0])
    means = [fmean(chain) for chain in chains]
    within = fmean([variance(chain) for chain in chains])
    pooled = (n - 1) / n * within + variance(means)

    def rho(t):
        if t == 0:
            return 1.0
        covariance = fmean(
            sum((c[i] - mu) * (c[i + t] - mu) for i in range(n - t)) / n
            for c, mu in zip(chains, means, strict=True)
        )
        return 1 - (within - covariance) / pooled

    total, last = -1.0, float("inf")
    for t in range(0, n - 1, 2):
        pair = rho(t) + rho(t + 1)
        if pair < 0:
            break
        last = min(last, pair)
        total += 2 * last
    return m * n / max(total, 1 / log10(m * n)), rho(1)


def by_hand(chains):
    half = len(chains[0]) // 2
    halves = [part for chain in chains for part in (chain[:half], chain[-half:])]
    middle = median(x for part in halves for x in part)
    folded = [[abs(x - middle) for x in part] for part in halves]
    scores = normal_scores(halves)
    return max(r_hat(scores), r_hat(normal_scores(folded))), *effective(scores)


@pytest.mark.parametrize("chains", [1, 3])
@pytest.mark.parametrize("kind", ["independent", "walk", "alternating", "ties", "other spread"])
def test_they_are_those_of_the_paper(chains, kind):
    rng = np.random.default_rng(chains)
    values = rng.normal(size=(chains, 61))
    if kind == "walk":
        values = values.cumsum(axis=1)
    elif kind == "alternating":
        values += 3.0 * (-1) ** np.arange(61)
    elif kind == "ties":
        values = values.round()
    elif kind == "other spread":
        values[:, 30:] *= 5
    first, *others = (drawn(chain) for chain in values)
    found = first.convergence("cut_edges", *others)
    assert list(found.values()) == pytest.approx(by_hand(values.tolist()))


def test_a_known_autocorrelation():
    """Of an autoregression with the factor a, N values are worth N (1 - a) / (1 + a)."""
    rng, a, values = np.random.default_rng(0), 0.6, [0.0]
    for x in rng.normal(size=40_000):
        values.append(a * values[-1] + x)
    found = drawn(values).convergence()
    assert found["autocorrelation"] == pytest.approx(a, abs=0.02) and found["r_hat"] < 1.01
    assert found["effective_size"] == pytest.approx(len(values) * (1 - a) / (1 + a), rel=0.1)


def test_chains_in_different_places_are_told():
    rng = np.random.default_rng(2)
    one, two = drawn(rng.normal(size=200)), drawn(rng.normal(size=200) + 3)
    assert one.convergence()["r_hat"] < 1.05 < 1.5 < one.convergence("cut_edges", two)["r_hat"]
    assert isnan(drawn([4.0] * 20).convergence()["r_hat"])
    halves = drawn([0.0] * 10 + [1.0] * 10).convergence()["r_hat"]
    assert isinf(halves) or halves > 1e6


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="others: 20, 21 plans; chains must have equally many"):
        drawn(range(20)).convergence("cut_edges", drawn(range(21)))
    with pytest.raises(ValueError, match="at least 8"):
        drawn(range(7)).convergence()


def test_a_chain_is_worth_less_than_independent_plans():
    p = Districting(grid(4, 4), districts=4, tolerance=0)
    uniform = p.ensemble(size=300, seed=1).convergence()
    chain = p.ensemble("recom", size=300, seed=1).convergence()
    assert uniform["r_hat"] < 1.03 and chain["effective_size"] < uniform["effective_size"]
