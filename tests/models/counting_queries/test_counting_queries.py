import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import beta, chisquare

import forcopt as fo
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models import CountingQueries
from forcopt.models.counting_queries.calibration import gaussian_shift, least_size
from forcopt.models.counting_queries.fisher import fisher_shape
from forcopt.models.counting_queries.ganesh_zhao import SparseVector, fisher_information
from forcopt.privacy import (
    ApproximateDP,
    BoundedNoise,
    Categories,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    GeneralizedGaussian,
    KNorm,
    Laplace,
    Ledger,
    Schema,
    Simulated,
    Table,
    TabulatedNoise,
    audit,
)


def random_law(rng, most=6):
    """An even, log-concave table."""
    n = int(rng.integers(1, most))
    slopes = np.cumsum(rng.exponential(rng.choice([0.05, 0.5, 2.0]), n)) + rng.uniform(0, 0.2)
    half = np.exp(-np.append(0.0, np.cumsum(slopes)))
    both = np.concatenate([half[:0:-1], half])
    return both / both.sum()


def deltas(p, k, epsilon):
    """Delta of every change in {-1, 0, 1}^k, by the whole product law."""
    padded = np.concatenate([[0.0], p, [0.0]])
    shifted = {c: np.roll(padded, c) for c in (-1, 0, 1)}
    law = padded
    for _ in range(k - 1):
        law = np.multiply.outer(law, padded)
    out = {}
    for change in product((-1, 0, 1), repeat=k):
        other = shifted[change[0]]
        for c in change[1:]:
            other = np.multiply.outer(other, shifted[c])
        out[change] = float(np.maximum(law - math.exp(epsilon) * other, 0).sum())
    return out


def test_all_ones_are_the_worst_change():
    """200 random laws, all changes, against an enumeration that shares no code."""
    rng = np.random.default_rng(0)
    for i in range(200):
        k = 1 + i % 3
        p, epsilon = random_law(rng), float(rng.uniform(0.05, 2))
        found = deltas(p, k, epsilon)
        worst = found[(1,) * k]
        assert worst >= max(found.values()) - 1e-12
        problem = CountingQueries(queries=k, epsilon=epsilon, delta=0.5)
        assert math.exp(problem.log_delta(TabulatedNoise(p))) == pytest.approx(worst, abs=1e-9)
        x = np.arange(len(p)) - len(p) // 2
        grid = np.abs(np.stack(np.meshgrid(*[x] * k, indexing="ij"))).max(axis=0)
        law = p
        for _ in range(k - 1):
            law = np.multiply.outer(law, p)
        assert TabulatedNoise(p).expected_max(k) == pytest.approx(float((grid * law).sum()), abs=1e-12)


@pytest.mark.parametrize("queries, delta", [(1, 0.01), (2, 0.01), (200, 1e-8)])
@pytest.mark.parametrize("method", ["shape-search", "laplace", "gaussian", "bounded", "fisher", "k-norm"])
def test_every_method_meets_delta(queries, delta, method):
    p = CountingQueries(queries=queries, epsilon=1.0, delta=delta)
    s = p.solve(method)
    assert s.status is fo.Status.APPROXIMATE and s.evaluation.feasible
    if method not in ("k-norm", "fisher"):
        smaller = s.decision.replace(**{s.decision.size: getattr(s.decision, s.decision.size) * (1 - 1e-6)})
        assert not p.evaluate(smaller).feasible


@pytest.mark.parametrize("method", ["shape-search", "laplace", "gaussian", "bounded", "fisher"])
def test_whole_noise_meets_delta(method):
    p = CountingQueries(queries=2, epsilon=1.0, delta=0.01, whole=True)
    s = p.solve(method)
    assert s.evaluation.feasible and s.decision.whole
    assert s.objective >= 1.799242 - 1e-9  # the best joint law on the lattice


def test_targets_at_a_thousand_queries():
    p = CountingQueries(queries=1000, epsilon=1.0, delta=1e-6)
    found = {m: p.solve(m).objective for m in ("gaussian", "shape-search", "bounded", "fisher")}
    assert found["gaussian"] > found["shape-search"] > found["bounded"] > found["fisher"]
    assert found["shape-search"] == pytest.approx(399.567, rel=1e-5)
    assert found["bounded"] <= 393.98 and found["fisher"] <= 394
    assert p.solve("bounded", power=4.0).objective == pytest.approx(393.98, abs=0.6)


def test_the_limit_of_many_queries():
    assert fisher_shape(1000)[0].objective == pytest.approx(2.850, abs=2e-3)
    assert fisher_shape(10**9)[0].objective < math.pi
    one = fisher_shape(1)[0]  # the least E|x| sqrt(I) is that of Airy's function
    assert one.objective < 1.0  # a Laplace law has 1


def test_error_lies_under_the_guarantee():
    for k, delta in ((1000, 1e-6), (10**5, 1e-6)):
        p = CountingQueries(queries=k, epsilon=1.0, delta=delta)
        s = p.solve("ganesh-zhao")
        assert s.objective <= s.guarantee and s.evaluation.feasible
        assert p.methods["ganesh-zhao"].guarantee(p) == s.guarantee


def test_profiles_agree():
    """100 random laws: the contour lies in the certified bracket, and in that of dp-accounting."""
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    rng = np.random.default_rng(1)
    for _ in range(100):
        shape = float(rng.choice([2, 3, 4, rng.uniform(1.3, 8)]))
        k = int(np.exp(rng.uniform(np.log(16), np.log(300))))
        epsilon, delta = float(rng.uniform(0.2, 2)), float(10 ** rng.uniform(-8, -2))
        mu = gaussian_shift(epsilon, delta)
        scale = math.sqrt(k * fisher_information(shape)) / mu
        noise = GeneralizedGaussian(shape=shape, scale=scale)
        profile = noise.profile(1) ** k
        value = profile.delta(epsilon, "contour")
        low, high = profile.bracket(epsilon, rtol=0.5)
        assert low * (1 - 1e-9) <= value <= high * (1 + 1e-9)

        loss = noise.loss(1.0)
        step, ends = mu / math.sqrt(k) / 50, np.linspace(0, loss.span[1], 2001)
        reach = ends[np.argmax(loss.tails(ends)[0] < 1e-14)]
        at = np.arange(-int(reach / step), int(reach / step) + 1)
        above = loss.tails(at * step)[0]  # every loss rounded up, by at most a step
        masses = {int(i): float(m) for i, m in zip(at[1:], above[:-1] - above[1:], strict=True) if m > 0}
        pmf = pld_pmf.SparsePLDPmf(masses, step, float(above[-1]), True)
        theirs = privacy_loss_distribution.PrivacyLossDistribution(pmf).self_compose(k)
        assert value <= theirs.get_delta_for_epsilon(epsilon) * (1 + 1e-6) + 1e-10
        assert theirs.get_delta_for_epsilon(epsilon + k * step) <= value * (1 + 1e-6) + 1e-10


def test_bounded_profiles_lie_in_the_bracket():
    for k, power, radius in ((2, 3.0, 12.0), (3, 2.0, 20.0), (64, 3.0, 100.0)):
        profile = BoundedNoise(power=power, radius=radius).profile(1) ** k
        low, high = profile.bracket(1.0, rtol=0.1)
        assert low * (1 - 1e-6) <= profile.delta(1.0) <= high * (1 + 1e-6)


@pytest.fixture(scope="module")
def few():
    """Three counts with whole noise, and the law of the default method."""
    p = CountingQueries(queries=3, epsilon=1.0, delta=0.01, whole=True)
    return p, p.solve().decision


def test_whole_samples_have_their_law(few):
    """Chi-square of secure and simulated draws; each fails by chance once in 10^6 runs."""
    _, law = few
    for rng in (None, Simulated(3)):
        drawn = law.sample(100_000, rng)
        mass = law.law
        expected = mass * 100_000
        keep = expected > 20
        counts = np.bincount(drawn - law.values[0], minlength=len(mass))
        observed = np.append(counts[keep], counts[~keep].sum())
        wanted = np.append(expected[keep], expected[~keep].sum())
        assert chisquare(observed, wanted).pvalue > 1e-6
    assert 0 < law.total_variation < 1e-12


def test_the_audited_delta_of_secure_draws_has_the_exact_one_in_its_interval():
    """The best event, {loss > epsilon}, counted under both neighbours; fails by chance once in 10^6 runs."""
    p, count, level = CountingQueries(queries=2, epsilon=1.0, delta=0.05, whole=True), 200_000, 5e-7
    law = p.solve().decision
    ends = []
    for counts in (np.zeros(2), np.ones(2)):
        x = law.sample((count, 2)) + counts
        hits = int(((law.log_density(x) - law.log_density(x - 1)).sum(axis=1) > 1.0).sum())
        ends.append(beta.ppf([level / 2, 1 - level / 2], [hits, hits + 1], [count - hits + 1, count - hits]))
    low, high = ends[0][0] - math.e * ends[1][1], ends[0][1] - math.e * ends[1][0]
    exact = math.exp(p.log_delta(law))
    assert low <= exact <= high and high - low < 0.03
    assert exact == pytest.approx(0.05, rel=0.05)


def test_an_audit_refutes_noise_of_half_the_size():
    p = CountingQueries(queries=2, epsilon=1.0, delta=0.05, whole=True)
    law = p.solve("gaussian").decision
    assert audit(p.mechanism(law), ([0, 0], [1, 1]), 1.0, 6000, delta=0.05, level=1 - 1e-6).passed
    half = p.mechanism(law).replace(noise=law.replace(scale=law.scale / 2))
    halved = audit(half, ([0, 0], [1, 1]), 1.0, 6000, delta=0.05, level=1 - 1e-6)
    assert not halved.passed and halved.lower_delta > 0.05


def test_releases(few):
    """A query with as many counts, of which one person changes each by at most 1, and a ledger."""
    p, law = few
    people = {"town": list("aab"), "sex": list("fmm"), "work": list("yyn")}
    columns = {"town": Categories("a"), "sex": Categories("f"), "work": Categories("y")}
    table, ledger = Table(people, Schema(columns)), Ledger(ApproximateDP(3.0, 0.1))
    released = (table.marginals(*columns) >> p.mechanism(law)).release(ledger)
    assert len(released) == 3 and not released.simulated and released.total_variation > 0
    assert [entry.name for entry in ledger.entries] == ["marginals of order 1"]
    with pytest.raises(DeclarationError, match="dimension is 3; the query has 2 numbers"):
        table.marginals("town", "sex") >> p.mechanism(law)
    with pytest.raises(DeclarationError, match="sensitivity is 1 in linf; one unit changes the query by 2"):
        Table(people, Schema(columns), rows_per_unit=2).marginals(*columns) >> p.mechanism(law)
    with pytest.raises(DeclarationError, match="not private enough"):
        p.mechanism(DiscreteLaplace(scale=0.1))
    with pytest.raises(DeclarationError, match="not private"):
        Laplace(scale=3.0).sample(3)


def test_k_norm():
    p = CountingQueries(queries=10, epsilon=0.5)
    s = p.solve("k-norm")
    assert s.objective == 20 and s.evaluation.feasible
    rows = KNorm(scale=2.0).sample((200_000, 10), Simulated(0))
    assert np.abs(rows).max(axis=1).mean() == pytest.approx(20, rel=0.01)
    assert np.abs(rows).mean() == pytest.approx(11, rel=0.01)
    assert not p.evaluate(KNorm(scale=1.9)).feasible
    assert p.solve().decision == Laplace(scale=20.0)
    with pytest.raises(DeclarationError, match="simulate"):
        KNorm(scale=1.0).sample((1, 2))


def test_delta_may_underflow():
    p = CountingQueries(queries=1000, epsilon=1.0, delta=1e-6)
    e = p.evaluate(GeneralizedGaussian(shape=4, scale=43489.578))
    assert -1e5 < e.metrics["log delta"] < -20_000 and e.feasible


def test_mean_error():
    p = CountingQueries(queries=64, epsilon=1.0, delta=1 / 64, error="mean")
    best = p.solve()
    for method in ("laplace", "gaussian", "bounded", "fisher"):
        assert best.objective <= p.solve(method).objective * 1.01
    assert best.objective == best.evaluation.metrics["mean"]


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"queries": 0}, "queries"),
        ({"queries": 1.5}, "queries"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"delta": -0.1}, "delta"),
        ({"error": "median"}, "error"),
    ],
)
def test_bad_fields(fields, message):
    with pytest.raises(ValueError, match=message):
        CountingQueries(**{"queries": 2, "epsilon": 1.0, "delta": 0.1, **fields})


def test_bad_laws():
    p = CountingQueries(queries=2, epsilon=1.0, delta=0.1)
    for law, message in (
        (TabulatedNoise([0.3, 0.05, 0.3, 0.05, 0.3]), "log-concave at"),
        (TabulatedNoise([0.1, 0.1, 0, 0, 0.6, 0, 0, 0.1, 0.1]), "log-concave at -2"),
        (TabulatedNoise([0.2, 0.5, 0.3]), "even"),
        ("laplace", "noise"),
    ):
        with pytest.raises(DeclarationError, match=message):
            p.evaluate(law)
    with pytest.raises(DeclarationError, match="whole"):
        p.replace(whole=True).evaluate(Gaussian(scale=1.0))
    for bad in (
        {"shape": 0.5, "scale": 1.0},
        {"shape": 2.0, "scale": 0.0},
        {"shape": math.inf, "scale": 1.0},
    ):
        with pytest.raises(ValueError):
            GeneralizedGaussian(**bad)
    pure = p.replace(delta=0.0)
    for method in ("gaussian", "bounded", "fisher"):
        with pytest.raises(DeclarationError, match="has no bound: use laplace"):
            pure.solve(method)
    assert not pure.evaluate(DiscreteGaussian(scale=3.0)).feasible
    with pytest.raises(DeclarationError, match="4 p"):
        CountingQueries(queries=60, epsilon=1.0, delta=1e-3).solve("ganesh-zhao", shape=4)
    with pytest.raises(DeclarationError, match="shapes"):
        p.solve(shapes=(3.0, 2.0))
    with pytest.raises(DeclarationError, match="power"):
        p.solve("bounded", power=0.0)


def test_sparse_vector_is_inert():
    p = CountingQueries(queries=10**5, epsilon=1.0, delta=1e-6)
    s = p.solve("sparse-vector")
    assert "inert" in s.message and s.evaluation.feasible
    with pytest.raises(DeclarationError, match="simulate"):
        p.solve("sparse-vector", multiplier=0.5)
    with pytest.raises(DeclarationError, match="at least 16"):
        CountingQueries(queries=10, epsilon=1.0, delta=0.01).solve("sparse-vector")
    none = SparseVector(corrections=0, threshold=1.0, epsilon=1.0, delta=0.1)
    assert not none.estimate(np.ones((2, 3)), np.random.default_rng(0)).any()


def test_no_size_and_no_time():
    p = CountingQueries(queries=64, epsilon=1.0, delta=1 / 64)
    s = p.solve(time_limit=0.0)
    assert s.status is fo.Status.LIMIT and s.decision is None
    with pytest.raises(TimeoutError):
        least_size(p, lambda x: Gaussian(scale=x), 1.0, Deadline(0.0))


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("shape-search", {"shapes": (2,)}, "shapes is"),
        ("shape-search", {"shapes": (2.0, math.inf)}, "shapes is"),
        ("shape-search", {"shapes": ("a", 3)}, "shapes is"),
        ("bounded", {"power": math.inf}, "power is inf"),
        ("bounded", {"power": "a"}, "power is 'a'"),
        ("fisher", {"points": 1}, "points is 1"),
        ("fisher", {"points": 4000.0}, "points is 4000.0"),
        ("ganesh-zhao", {"shape": math.inf}, "shape is inf"),
        ("ganesh-zhao", {"shape": 5}, "must be even"),
        ("sparse-vector", {"t": math.nan}, "t is nan"),
        ("sparse-vector", {"multiplier": math.inf}, "multiplier inf"),
    ],
)
def test_bad_options(method, options, message):
    with pytest.raises(DeclarationError, match=message):
        CountingQueries(queries=1000, epsilon=1.0, delta=1e-6).solve(method, **options)


def test_no_guarantee_outside_of_the_theorem():
    for queries, delta in ((1, 0.01), (1000, 0.0), (1000, 0.1)):
        p = CountingQueries(queries=queries, epsilon=1.0, delta=delta)
        assert p.methods["ganesh-zhao"].guarantee(p) == math.inf


def test_the_table_of_a_draw_is_charged():
    p = CountingQueries(queries=3, epsilon=1.0, whole=True)
    exact = p.solve("laplace").decision
    assert p.log_delta(exact) == -math.inf and p.evaluate(exact).feasible
    assert p.mechanism(exact).total_variation(np.zeros(3)) == exact.total_variation == 0.0
    law = exact.on_integers()
    charge = law.total_variation * 3 * (1 + math.e)
    own = (law.profile(1) ** 3).log_delta(1.0)
    assert 0 < charge < 1e-12 and own < p.log_delta(law) == pytest.approx(np.logaddexp(own, math.log(charge)))
    assert p.replace(delta=8 * charge).mechanism(law).total_variation(np.zeros(3)) == 3 * law.total_variation
    assert not p.replace(delta=charge / 2).evaluate(law).feasible


@pytest.mark.parametrize(("queries", "t", "corrections"), [(10**6, 2.0, "0.575"), (10**6, 1.0, None)])
def test_the_number_of_corrections(queries, t, corrections):
    s = CountingQueries(queries=queries, epsilon=1.0, delta=1e-6).solve("sparse-vector", t=t)
    why = f"c = {corrections} < 1" if corrections else "chance 0"
    assert why in s.message and s.evaluation.feasible


def test_corrections_stop_at_their_number():
    technique = SparseVector(corrections=3, threshold=5000.0, epsilon=1.0, delta=0.01)
    found = technique.estimate(np.full((20, 50), 1e6), np.random.default_rng(0))
    assert ((found != 0).sum(axis=1) == 3).all() and (found[:, :3] != 0).all()


@pytest.mark.parametrize("counts", [[math.nan, 1, 2], [1, math.inf, 2], [1, 2, 1e300], [1, 2, 2.5]])
def test_bad_counts(few, counts):
    p, law = few
    with pytest.raises(DeclarationError, match=r"counts|values"):
        p.mechanism(law).simulate(counts, 0)
