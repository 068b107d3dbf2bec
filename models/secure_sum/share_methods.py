"""Methods for share designs: closed forms, the semidefinite program, the worst coalition of given shares."""

from __future__ import annotations

import numpy as np

from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.language.joins import block
from forcopt.language.matrices import semidefinite, symmetric
from forcopt.language.model import Model
from forcopt.models.secure_sum.accounting import printed_sigma
from forcopt.models.secure_sum.share_design import ShareDesign
from forcopt.models.secure_sum.shares import Shares, even_shares, talwar_shares
from forcopt.models.secure_sum.tolerances import DECLARED, ROUNDING, SAFE
from forcopt.problem import Handles, Outcome
from forcopt.status import Status


@ShareDesign.algorithm("even", exact=True, cites="symmetrization: see even_shares")
def even(problem: ShareDesign, *, time_limit: float | None = None) -> Outcome:
    """Exchangeable shares: optimal for all coalitions of one size.

    Raises
    ------
    DeclarationError
        For other coalitions, or a given split that is not even.
    """
    size = problem.coalitions
    if not isinstance(size, int):
        raise DeclarationError("method even is for all coalitions of one size; use sdp")
    if problem.split is not None and np.ptp(problem.split) > ROUNDING:
        raise DeclarationError("split is given and not even; use sdp")
    return Outcome(even_shares(problem.servers, size, problem.mu))


@ShareDesign.algorithm("talwar", cites="Talwar (2022), Algorithm 1 and Theorem 12", rank="published")
def talwar(problem: ShareDesign, *, as_printed: bool = False, time_limit: float | None = None) -> Outcome:
    """The vector at server 0, hidden by the noise of all others.

    Parameters
    ----------
    problem : ShareDesign
        With epsilon and delta, for `as_printed`.
    as_printed : bool, default False
        The scale of Lemma 7 instead of the exact one.
    time_limit : float, optional
        Seconds; a closed form takes none.
    """
    unit = talwar_shares(problem.servers, 1.0)
    if problem.split is not None and np.abs(problem.split - unit.split).max() > ROUNDING:
        raise DeclarationError("split is given; method talwar gives the whole vector to server 0")
    worst = max(unit.loss(c) for c in problem.groups)
    if as_printed:
        if problem.epsilon is None or problem.delta is None:
            raise DeclarationError("as_printed is the scale of Lemma 7: give epsilon and delta, not loss")
        scale = worst * printed_sigma(problem.epsilon, problem.delta)
    else:
        scale = worst / problem.mu * (1 + SAFE)
    if worst == 0:
        return Outcome(Shares(unit.split, 0 * unit.covariance))
    return Outcome(talwar_shares(problem.servers, scale))


@ShareDesign.algorithm("worst-coalition", exact=True, cites="constraint generation over the program of sdp")
def worst_coalitions(
    problem: ShareDesign, *, backend: str = "clarabel", time_limit: float | None = None
) -> Outcome:
    """Solve the semidefinite program for few coalitions, and add the worst of all until it learns no more.

    It finds the optimum of `sdp` with the matrix inequalities of the coalitions that bind. Each program has
    fewer conditions than the whole one, so that its optimum is a bound.

    Parameters
    ----------
    problem : ShareDesign
        Which.
    backend : str, default "clarabel"
        Takes semidefinite constraints.
    time_limit : float, optional
        Seconds.
    """
    deadline, active = Deadline(time_limit), [problem.groups[0]]
    best: Shares | None = None
    bound = 0.0
    while not deadline.passed:
        few = problem.replace(coalitions=tuple(active))
        result = few.solve("sdp", backend=backend, time_limit=deadline.left)
        if result.decision is None:
            break
        bound = max(bound, result.bound)
        most, loss = worst_coalition(result.decision, problem.groups)
        if np.isfinite(loss):  # scaled up until the worst coalition learns no more than it may
            scale = max(1.0, loss / problem.mu * (1 + SAFE)) ** 2
            made = Shares(result.decision.split, result.decision.covariance * scale)
            best = made if best is None or made.variance < best.variance else best
        if loss <= problem.mu * (1 + DECLARED) or most in active:
            return Outcome(best, min(bound, best.variance) if best else bound, iterations=len(active))
        active.append(most)
    message = f"{deadline.end} with {len(active)} of {len(problem.groups)} coalitions"
    if best is None:
        return Outcome(None, bound, Status.LIMIT, len(active), message)
    return Outcome(best, min(bound, best.variance), Status.FEASIBLE, len(active), message)


def worst_coalition(shares: Shares, coalitions: list[tuple[int, ...]]) -> tuple[tuple[int, ...], float]:
    """The coalition that learns most, and its parameter mu; all are tried.

    Parameters
    ----------
    shares : Shares
        The split and the covariance of the noise.
    coalitions : list[tuple[int, ...]]
        Servers that join their shares, numbered from 0.

    Returns
    -------
    coalition : tuple[int, ...]
        The first one of the largest loss.
    loss : float
        Its parameter mu of Gaussian privacy; infinite if it learns the vector.

    Raises
    ------
    DeclarationError
        For no coalition, or servers out of range.

    Examples
    --------
    >>> from itertools import combinations
    >>> every = [c for t in (1, 2) for c in combinations(range(3), t)]
    >>> worst_coalition(talwar_shares(3, 7.6), every)[0]
    (0, 1)
    """
    if not coalitions:
        raise DeclarationError("coalitions is empty; it must have one coalition at least")
    found = [(c, shares.loss(c)) for c in coalitions]
    most = max(loss for _, loss in found)
    return next((c, loss) for c, loss in found if loss >= most * (1 - ROUNDING))


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
