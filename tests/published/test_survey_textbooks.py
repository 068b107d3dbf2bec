"""Allocations of textbooks of survey sampling, and the documented examples of R's PracTools and stratallo."""

from __future__ import annotations

import numpy as np
import pytest

from forcopt.models import PrecisionAllocation, StratifiedAllocation
from forcopt.models.allocation import two_stage_design

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
    assert p.solve("socp", backend="clarabel").decision.sizes == pytest.approx(expected, rel=1e-3)


def test_hospitals_for_a_coefficient_of_variation(shares):
    weight, spread = shares
    target = (0.05 * 11_664_181) ** 2
    p = PrecisionAllocation(**HOSPITALS, costs=COSTS, targets=target, integer=False)
    finite = (weight * np.array(HOSPITALS["deviations"], dtype=float) ** 2).sum() / sum(HOSPITALS["sizes"])
    scale = (spread * np.sqrt(COSTS)).sum() / (target + finite)
    expected = scale * spread / np.sqrt(COSTS)
    sizes = np.array(HOSPITALS["sizes"])
    assert (expected <= sizes).all()  # PracTools has no caps
    assert p.solve("neyman").decision.sizes == pytest.approx(expected)


def test_the_vignette_of_stratallo():
    p = StratifiedAllocation(
        sizes=[3000, 4000, 5000, 2000], deviations=[48, 79, 76, 16], sample_size=190, integer=False
    )
    expected = [31.376147, 68.853211, 82.798165, 6.972477]
    assert p.solve("neyman").decision.sizes == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("correlation", [0.01, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("costs", [(750, 100), (500, 100), (1000, 40)])
def test_two_stages_by_the_formulas_of_practools(costs, correlation):
    """``clusOpt2``: the variance is the squared CV, for a unit CV of 1."""
    cluster, unit = costs
    units = np.sqrt(cluster / unit * (1 - correlation) / correlation)
    clusters = 100_000 / (cluster + unit * units)
    found = two_stage_design(
        cluster_cost=cluster, unit_cost=unit, correlation=correlation, budget=100_000, whole=False
    )
    assert (found.clusters, found.units) == pytest.approx((clusters, units))
    assert found.variance == pytest.approx((1 + correlation * (units - 1)) / (clusters * units))
    if costs == (750, 100) and correlation == 0.05:
        assert (round(found.clusters, 1), round(found.units, 1), round(found.variance**0.5, 4)) == (
            51.4,
            11.9,
            0.0502,
        )
