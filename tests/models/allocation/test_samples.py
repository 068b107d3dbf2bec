"""Two-stage designs, domains, response rates and the privacy loss of an allocation."""

from __future__ import annotations

from itertools import product

import allocation_oracle  # noqa: F401  (registers the method enumeration)
import numpy as np
import pandas as pd
import pytest

import forcopt as fo
from forcopt.models import PrecisionAllocation, StratifiedAllocation


def test_domains():
    sizes, deviations, where = [30, 20, 10, 25], [2.0, 3.0, 1.0, 4.0], ["a", "a", "b", "b"]
    p = PrecisionAllocation.for_domains(sizes, deviations, where, {"a": 0.4, "b": 0.6, "all": 0.2})
    s = p.solve("milp")
    assert s.status == fo.Status.OPTIMAL and s.evaluation.feasible
    m = s.decision.sizes
    for domain, target in (("a", 0.4), ("b", 0.6), ("all", 0.2)):
        inside = [i for i, d in enumerate(where) if domain in (d, "all")]
        n = sum(sizes[i] for i in inside)
        variance = sum((sizes[i] / n * deviations[i]) ** 2 * (1 / m[i] - 1 / sizes[i]) for i in inside)
        assert variance <= target * (1 + 1e-9)
    with pytest.raises(fo.DeclarationError, match="no stratum is in the domain 'c'"):
        PrecisionAllocation.for_domains(sizes, deviations, where, {"c": 1})


@pytest.mark.parametrize("seed", range(15))
def test_several_budgets_against_all_allocations(seed):
    rng = np.random.default_rng(seed)
    k, kinds = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    sizes, deviations = rng.integers(1, 8, k), rng.integers(1, 20, k) / 4
    costs = rng.integers(1, 6, (k, kinds))
    budgets = tuple((costs.sum(axis=0) * rng.uniform(1.0, 3.5, kinds)).round().tolist())
    most = int(rng.integers(k, sizes.sum() + 1))
    p = StratifiedAllocation(
        sizes=sizes, deviations=deviations, costs=costs, budget=budgets, sample_size=most
    )
    every = [np.array(m) for m in product(*(range(1, n + 1) for n in sizes))]
    allowed = [m for m in every if m.sum() <= most and (m @ costs <= np.array(budgets)).all()]
    best = min(float(p.variances(m)[0]) for m in allowed)
    for method in ("milp", "enumeration"):
        s = p.solve(method)
        assert s.status == fo.Status.OPTIMAL and s.objective == pytest.approx(best, rel=1e-6, abs=1e-9)
    for method in ("greedy", "neyman", "proportional"):
        s = p.solve(method)
        assert s.evaluation.feasible and s.bound <= best * (1 + 1e-6) + 1e-9
    assert fo.Problem.from_dict(p.to_dict()) == p


def test_a_broken_budget_is_named():
    fields = {"sizes": [10, 10], "deviations": [1, 2], "costs": [[1, 5], [1, 5]]}
    p = StratifiedAllocation(**fields, budget=(20, 30))
    assert p.evaluate([5, 5]).violations == {"budget 1": 20.0}
    assert p.evaluate([5, 5]).metrics["cost 1"] == 50
    s = p.replace(budget=(20, 5)).solve()
    assert s.status == fo.Status.INFEASIBLE and "budget 1 is 5" in s.reason
    with pytest.raises(fo.DeclarationError, match=r"shape \(2, 3\)"):
        StratifiedAllocation(**fields, budget=(1, 2, 3))


def test_response_rates():
    p = StratifiedAllocation(sizes=[100, 50], deviations=[1, 4], sample_size=30, names=("farms", "mills"))
    found = p.solve().decision
    assert (found.issued(1.0) == found.sizes).all()
    assert found.issued([0.5, 0.8]).tolist() == np.ceil(found.sizes / [0.5, 0.8]).tolist()
    with pytest.raises(fo.DeclarationError, match="stratum mills has 50 records"):
        found.issued([1.0, 0.2])
    with pytest.raises(fo.DeclarationError, match="response_rates"):
        found.issued(0.0)


def test_privacy_loss_of_public_sizes_is_that_of_the_largest_rate():
    """Against the definition: the law of the count of a record's value in the sample, for both neighbors."""
    p = StratifiedAllocation(sizes=[5, 8], deviations=[1, 1], sample_size=6)
    for sizes in ([2, 4], [3, 3], [1, 5], [5, 1]):
        for epsilon in (0.1, 1.0):
            worst = p.privacy_loss(epsilon, sizes)
            # randomized response on whether the record is in the sample: probabilities e^eps to 1
            losses = []
            for m, n in zip(sizes, p.sizes, strict=True):
                share = m / n
                losses.append(np.log(share * np.exp(epsilon) + (1 - share)))
            assert worst.loss.exact == pytest.approx(max(losses))
            assert worst.stratum == str(int(np.argmax(losses))) and worst.change == 0
    with pytest.raises(fo.DeclarationError, match="whole numbers between 0"):
        p.privacy_loss(1.0, [6, 1])


def test_privacy_loss_of_a_method_is_that_of_its_worst_neighbor():
    p = StratifiedAllocation(sizes=[40, 7, 90], deviations=[1, 9, 2], sample_size=30)
    worst = p.privacy_loss(0.5, "greedy")
    moved = 0
    for at, change in product(range(3), (1, -1)):
        sizes = p.sizes.copy()
        sizes[at] += change
        q = StratifiedAllocation(sizes=sizes, deviations=p.deviations, sample_size=30)
        moved = max(moved, abs(q.solve("milp").decision.sizes - p.solve("milp").decision.sizes).sum())
    assert worst.loss.lower == pytest.approx(0.5 * moved) and worst.loss.upper == pytest.approx(
        0.5 * (moved + 2)
    )


@pytest.mark.parametrize("names", [[1, 1, 1, 1, 2, 2, 2], [0.1] * 4 + [0.3] * 3, [True] * 4 + [False] * 3])
def test_strata_may_be_named_by_numbers(names):
    records = pd.DataFrame({"k": names, "v": [0, 1, 1, 0, 1, 1, 0]})
    p = StratifiedAllocation.from_records(records, by="k", values="v", sample_size=4)
    assert dict(zip(p.names, p.sizes.tolist(), strict=True)) == {str(names[0]): 4, str(names[-1]): 3}
