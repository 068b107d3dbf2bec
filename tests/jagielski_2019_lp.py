"""The rows of LP (1) of Jagielski et al. (2019) as printed: every other group against the first."""

import numpy as np

from forcopt.fairness import EqualizedOdds


class PrintedOdds(EqualizedOdds):
    """Equalized odds, with rows that are relaxed by 2 max(s_a, s_b)."""

    def rows(self, rates):
        found = []
        for rate in self.rates:
            values, slack = rates.rate(rate), rates.slack(rate)
            limit = self.tolerance + 2 * np.maximum(slack[1:], slack[0])
            found.append((values[1:] - values[0]).between(-limit, limit))
        return found
