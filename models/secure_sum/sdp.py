"""The semidefinite program: one matrix inequality for each coalition."""

from __future__ import annotations

import numpy as np

from forcopt.language.joins import block
from forcopt.language.matrices import semidefinite, symmetric
from forcopt.language.model import Model
from forcopt.models.secure_sum.share_design import ShareDesign
from forcopt.problem import Handles

__all__ = ["sdp"]


@ShareDesign.formulation("sdp", exact=True, cites="Schur complements (Boyd and Vandenberghe 2004, A.5.5)")
def sdp(problem: ShareDesign, model: Model) -> Handles:
    """Minimise the largest variance over splits and covariances.

    ``a_T' inverse(Sigma_TT) a_T <= mu^2`` holds exactly if ``[[Sigma_TT, a_T], [a_T', mu^2]]`` is positive
    semidefinite. The covariance is one of S - 1 servers; the last noise is minus the sum of the others.

    Returns
    -------
    Handles
        ``split``, shape ``(S,)``; ``covariance``, shape ``(S, S)``.
    """
    s = problem.servers
    unit = 1 / problem.mu**2  # then every coalition may learn 1
    entries = model.variable(model.unused_name("covariance"), (s - 1) * s // 2)
    core = symmetric(entries)
    to_all = np.vstack([np.eye(s - 1), -np.ones((1, s - 1))])
    covariance = to_all @ core @ to_all.T
    if problem.split is None:
        free = model.variable(model.unused_name("split"), s - 1)
        split = to_all @ free + np.eye(s)[-1]
    else:
        fixed = model.variable(
            model.unused_name("split"), s - 1, lower=problem.split[:-1], upper=problem.split[:-1]
        )
        split = to_all @ fixed + np.eye(s)[-1]
    largest = model.variable(model.unused_name("variance"), lower=0)
    model.subject_to(semidefinite(core), name=model.unused_name("covariance"))
    for members in problem.groups:
        at = list(members)
        column = split[at].reshape(len(at), 1)
        model.subject_to(
            semidefinite(block([[covariance[np.ix_(at, at)], column], [column.T, np.ones((1, 1))]])),
            name=model.unused_name("coalition"),
        )
    model.subject_to([covariance[i, i] <= largest for i in range(s)], name=model.unused_name("largest"))
    return Handles(
        objective=largest * 1.0,
        decision=lambda solution: problem.repaired(solution[split], solution[covariance]),
        unit=unit,
        split=split,
        covariance=covariance,
    )
