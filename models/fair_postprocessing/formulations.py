"""The linear program over the probabilities of predicting 1, and the baseline that changes nothing."""

from __future__ import annotations

import numpy as np

from forcopt.clock import Deadline
from forcopt.language.model import Model
from forcopt.models.fair_postprocessing.problem import FairPostprocessing
from forcopt.problem import Handles, Outcome


@FairPostprocessing.formulation(
    "lp", exact=True, cites="Jagielski et al. (2019), LP (5) and (6); Mozannar et al. (2020), LP (14)"
)
def lp(problem: FairPostprocessing, model: Model) -> Handles:
    """Linear program: 2 K probabilities, and for each rate of the notion one level and K rows.

    It is always feasible: a constant prediction has equal rates in all groups. With a channel, the error is
    over the reported counts, and the rates are over the true groups, which see the channel's mix of the
    probabilities (the paper's objective takes the reported counts with that mix, so that the noise is in it
    twice). With privacy, this is the optimum that privacy forgoes: it reads the true counts.

    Returns
    -------
    Handles
        ``probabilities``, shape ``(2, K)``; ``rates``, the `GroupRates` as expressions; ``error``;
        ``fairness``, the constraints of the notion.
    """
    name = model.unused_name("probability")
    labels = [f"{name}[{prediction},{group}]" for prediction in (0, 1) for group in problem.groups]
    probabilities = model.variable(name, shape=(2, len(problem.groups)), lower=0, upper=1, labels=labels)
    rates = problem.rates(probabilities)
    fairness = problem.constraint.rows(rates)
    model.subject_to(fairness)
    error = problem.error(probabilities)
    return Handles(
        objective=error,
        # a solver may leave the bounds by its tolerance
        decision=lambda solution: problem.postprocessor(np.clip(solution[probabilities], 0.0, 1.0)),
        start=lambda decision: {probabilities: problem.probabilities(decision)},
        probabilities=probabilities,
        rates=rates,
        error=error,
        fairness=fairness,
    )


@FairPostprocessing.algorithm("as-predicted", rank="published")
def as_predicted(problem: FairPostprocessing, *, time_limit: float | None = None) -> Outcome:
    """Leave the predictions as they are: the evaluation shows their error and their disparity.

    Parameters
    ----------
    time_limit : float, optional
        Seconds; the run is linear in the number of groups and stays below any limit of use.
    """
    Deadline(time_limit)  # refuses a malformed limit
    probabilities = np.repeat([[0.0], [1.0]], len(problem.groups), axis=1)
    return Outcome(problem.postprocessor(probabilities))
