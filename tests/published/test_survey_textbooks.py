"""Allocations of textbooks of survey sampling, and examples of R's PracTools, SamplingStrata and stratallo.

Figures are printed by the vignette "Sample Size Calculation in Single-stage Sampling" of PracTools (Valliant,
Dever, Kreuter) and by the outputs beside the vignette of SamplingStrata (Barcaroli and others).
"""

from __future__ import annotations

import numpy as np
import pytest

from forcopt.models import PrecisionAllocation, StratifiedAllocation

FARMS = {
    "sizes": [394, 461, 391, 334, 169, 113, 148],
    "deviations": [8.3, 13.3, 15.1, 19.8, 24.5, 26.0, 35.2],
}
"""Farms of a county by size, and the deviations of their acres of corn: Cochran (1977), chapter 5."""

HOSPITALS = {
    "sizes": [215, 65, 252, 50, 149, 144],
    "deviations": [26787207, 10645109, 6909676, 11085034, 9817762, 44553355],
}
"""Strata of the documented example of ``strAlloc`` in PracTools (Valliant, Dever, Kreuter)."""

COSTS = np.array([1400, 200, 300, 600, 450, 1000.0])


def test_a_hundred_farms():
    p = StratifiedAllocation(**FARMS, sample_size=100)
    assert p.solve("proportional").decision.sizes.tolist() == [20, 23, 19, 17, 8, 6, 7]
    assert p.solve("neyman").decision.sizes.tolist() == [10, 18, 17, 19, 12, 9, 15]
    best = p.solve("milp")
    assert best.status == "optimal" and best.objective <= p.solve("neyman").objective


PRINTED = {
    "neyman": ([34.641683, 4.161947, 10.473487, 3.333804, 8.798970, 38.590108], 1727173),
    "totcost": ([30.605403, 9.728474, 19.989127, 4.499121, 13.711619, 40.340301], 1636053),
}
"""Sample sizes and standard errors of the mean that PracTools prints for two kinds of allocation."""


@pytest.mark.parametrize("kind", PRINTED)
def test_the_vignette_of_practools(kind):
    fields = {"neyman": {"sample_size": 100}, "totcost": {"costs": COSTS, "budget": 100_000}}[kind]
    s = StratifiedAllocation(**HOSPITALS, **fields, integer=False).solve("neyman")
    sizes, error = PRINTED[kind]
    assert s.status == "optimal"
    assert s.decision.sizes == pytest.approx(np.array(sizes), rel=1e-6)
    assert s.decision.variances[0] ** 0.5 == pytest.approx(error, rel=1e-6)


MUNICIPALITIES = {
    "region 1": (
        [307, 118, 60, 31, 26],
        [
            [95.2247557003257, 99.185667752443, 120.263843648209, 51.2182410423453],
            [347.07627118644, 387.559322033898, 455.872881355932, 181.542372881356],
            [475.416666666666, 532.133333333334, 651.966666666666, 259.433333333333],
            [585.225806451613, 644.322580645161, 826.032258064516, 356.677419354839],
            [1508.53846153846, 1772.53846153846, 2014.76923076923, 895.153846153846],
        ],
        [
            [89.4146839344116, 101.320465457114, 110.334186005279, 47.4591290625029],
            [313.562635397401, 401.968320050159, 417.296422519763, 162.390030969874],
            [439.459151903792, 486.048230841701, 610.481130106872, 243.964513194123],
            [504.297932735469, 569.473471616913, 756.453425166103, 339.784442624061],
            [946.490774906047, 1218.54395337598, 1322.52532588641, 677.031258428334],
        ],
        [5.47943656417178, 7.38575667151757, 5.26330389061647, 3.12059611827153, 4.91222686139238],
    ),
    "region 6": (
        [69, 13, 16, 38],
        [
            [442.36231884058, 475.420289855072, 486.130434782609, 189.565217391304],
            [191, 181, 175.692307692308, 85.3076923076924],
            [1936.625, 2411.5625, 2641.0625, 1090],
            [585.552631578948, 639.473684210526, 687.5, 272.684210526316],
        ],
        [
            [355.352801200365, 406.539994642466, 441.503741708163, 175.182864345232],
            [142.054590013147, 127.488981110083, 111.139647490206, 55.8123179413899],
            [521.351698712107, 755.826769484086, 778.290773004377, 393.037331242212],
            [300.704639319731, 336.100855847811, 411.852126737554, 186.11533080896],
        ],
        [5.70459330188192, 2, 2.33186322166, 2.93066459669903],
    ),
}
"""Swiss municipalities by SamplingStrata: records, means and deviations of four age groups, sample sizes."""


@pytest.mark.parametrize("region", MUNICIPALITIES)
def test_the_vignette_of_samplingstrata(region):
    """Its allocation by Bethel's algorithm is the cheapest for the variation that it attains."""
    sizes, means, deviations, printed = MUNICIPALITIES[region]
    n, spread = np.array(sizes, dtype=float), np.array(deviations)
    total = n @ np.array(means)
    variation = (((n[:, None] * spread) ** 2).T @ (1 / np.array(printed) - 1 / n)) ** 0.5 / total
    targets = (variation * total / n.sum()) ** 2
    p = PrecisionAllocation(sizes=sizes, deviations=deviations, targets=targets, minimum=2)
    whole = p.solve("milp")
    assert whole.status == "optimal"
    assert sum(printed) * (1 - 1e-6) <= whole.objective <= np.ceil(np.array(printed) - 1e-9).sum()


@pytest.fixture
def shares():
    """Of each stratum of hospitals: its weight, and the product of weight and deviation."""
    sizes = np.array(HOSPITALS["sizes"], dtype=float)
    return sizes / sizes.sum(), sizes / sizes.sum() * np.array(HOSPITALS["deviations"])


def test_a_hundred_hospitals(shares):
    _, spread = shares
    p = StratifiedAllocation(**HOSPITALS, sample_size=100, integer=False)
    assert p.solve("neyman").decision.sizes == pytest.approx(100 * spread / spread.sum())


def test_hospitals_for_a_budget(shares):
    _, spread = shares
    p = StratifiedAllocation(**HOSPITALS, costs=COSTS, budget=100_000, integer=False)
    expected = 100_000 * spread / np.sqrt(COSTS) / (spread * np.sqrt(COSTS)).sum()
    assert p.solve("neyman").decision.sizes == pytest.approx(expected)


def test_hospitals_for_a_coefficient_of_variation(shares):
    weight, spread = shares
    target = (0.05 * 11_664_181) ** 2
    p = PrecisionAllocation(**HOSPITALS, costs=COSTS, targets=target)
    finite = (weight * np.array(HOSPITALS["deviations"], dtype=float) ** 2).sum() / sum(HOSPITALS["sizes"])
    scale = (spread * np.sqrt(COSTS)).sum() / (target + finite)
    expected = scale * spread / np.sqrt(COSTS)
    sizes = np.array(HOSPITALS["sizes"])
    assert (expected <= sizes).all()  # PracTools has no caps
    s = p.solve()
    assert s.status == "optimal"
    assert COSTS @ expected * (1 - 1e-6) <= s.objective <= COSTS @ np.ceil(expected)
    assert np.abs(s.decision.sizes - expected).max() < 2


def test_the_vignette_of_stratallo():
    p = StratifiedAllocation(
        sizes=[3000, 4000, 5000, 2000], deviations=[48, 79, 76, 16], sample_size=190, integer=False
    )
    expected = [31.376147, 68.853211, 82.798165, 6.972477]
    assert p.solve("neyman").decision.sizes == pytest.approx(expected, abs=1e-6)
