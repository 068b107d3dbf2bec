"""The windows of `tree-integer` widen until no count lies at an edge."""

import numpy as np
import pytest

from forcopt.data import Hierarchy
from forcopt.models import ConsistentRelease


@pytest.mark.parametrize("value", [0.6, 0.4, 1.7])
@pytest.mark.parametrize("total", [0.0, 1.0, 9.0])
def test_windows_widen_in_both_directions(value, total):
    """A hundred equal leaves below a root that weighs more or less: the best number of larger leaves."""
    n, low = 100, np.floor(value)
    for weight in (1e-6, 1.0):
        tree = Hierarchy(parents=([0] * n,))
        p = ConsistentRelease(tree, ([total * n], [value] * n), precision=[weight, 1.0], integer=True)
        best = min(
            weight * (total * n - (n * base + t)) ** 2
            + t * (base + 1 - value) ** 2
            + (n - t) * (base - value) ** 2
            for base in (low - 1, low, low + 1, *range(int(total) + 1))
            if base >= 0
            for t in range(n + 1)
        )
        assert p.solve("tree-integer").objective == pytest.approx(best, rel=1e-9)
