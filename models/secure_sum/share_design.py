"""Share designs, with a limit on the privacy loss of each coalition; and their methods."""

from __future__ import annotations

from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, field_validator, model_validator

from forcopt.declaration import Numbers
from forcopt.errors import DeclarationError
from forcopt.language.joins import block
from forcopt.language.matrices import semidefinite, symmetric
from forcopt.language.model import Model
from forcopt.models.secure_sum.accounting import gaussian_loss, printed_sigma
from forcopt.models.secure_sum.shares import Shares, coalition_of, even_shares, talwar_shares
from forcopt.models.secure_sum.tolerances import LEAST_EIGENVALUE, ROUNDING, SAFE
from forcopt.privacy.tolerances import LAW_SUM
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Handles, Outcome, Problem


class ShareDesign(Problem):
    """The Gaussian shares of least variance that keep a vector private against coalitions of servers.

    Server i gets ``a_i x`` plus noise, with ``sum(a) = 1`` and noises that sum to 0. The objective is the
    largest variance of a share, for a vector of norm at most 1: its root sets the bits of a share.

    Attributes
    ----------
    servers : int
        S, at least 2.
    coalitions : int or tuple of tuples of int
        The size of all coalitions, or the coalitions themselves, none of them with all servers.
    epsilon, delta : float, optional
        The privacy of a vector against a coalition; both, or `loss`.
    loss : float, optional
        The parameter mu of Gaussian privacy that a coalition may learn.
    split : Numbers, optional
        The shares a, if they are given; shape ``(servers,)``, with sum 1.

    Raises
    ------
    DeclarationError
        For coalitions of all servers, or a budget that is missing or given twice.

    References
    ----------
    Talwar (2022), Algorithm 1 and Theorem 12, for one law of shares.

    Examples
    --------
    >>> from forcopt.models import ShareDesign
    >>> p = ShareDesign(servers=5, coalitions=4, loss=1.0)
    >>> round(p.solve("talwar").objective / p.solve("even").objective, 6)
    6.25
    """

    family: ClassVar[str] = "secure_sum"
    sense: ClassVar[Literal["min", "max"]] = "min"
    default_method: ClassVar[str] = "sdp"

    servers: int = Field(ge=2)
    coalitions: int | tuple[tuple[int, ...], ...]
    epsilon: float | None = Field(default=None, gt=0.0, allow_inf_nan=False)
    delta: float | None = Field(default=None, gt=0.0, lt=1.0)
    loss: float | None = Field(default=None, gt=0.0, allow_inf_nan=False)
    split: Numbers | None = None

    @field_validator("coalitions", mode="before")
    @classmethod
    def _are_sets(cls, coalitions: Any) -> Any:
        if isinstance(coalitions, int | np.integer):
            return int(coalitions)
        try:
            return tuple(tuple(sorted(set(c))) for c in coalitions)
        except TypeError:
            raise DeclarationError(
                f"coalitions is {coalitions!r}; it must be a whole number or tuples of servers"
            ) from None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.loss is None) == (self.epsilon is None) or (self.epsilon is None) != (self.delta is None):
            raise DeclarationError("give either loss, or epsilon and delta")
        if isinstance(self.coalitions, int):
            if not 1 <= self.coalitions < self.servers:
                raise DeclarationError(
                    f"coalitions is {self.coalitions}; coalitions have from 1 to {self.servers - 1} servers"
                )
        else:
            for members in self.coalitions:
                if len(coalition_of(members, self.servers)) == self.servers:
                    raise DeclarationError(
                        f"the coalition {members} has all servers, whose shares determine the vector"
                    )
            if not any(self.coalitions):
                raise DeclarationError("coalitions has none with a server; then no noise is needed")
        if self.split is not None and (
            self.split.shape != (self.servers,) or abs(self.split.sum() - 1) > LAW_SUM
        ):
            raise DeclarationError(
                f"split has shape {self.split.shape}; it must be {self.servers} numbers with sum 1"
            )
        return self

    @cached_property
    def groups(self) -> list[tuple[int, ...]]:
        """The coalitions that are not part of another one, which sees all that they see."""
        if isinstance(self.coalitions, int):
            return list(combinations(range(self.servers), self.coalitions))
        sets = [frozenset(c) for c in self.coalitions if c]
        return sorted({tuple(sorted(c)) for c in sets if not any(c < other for other in sets)})

    @cached_property
    def mu(self) -> float:
        """The parameter of Gaussian privacy that a coalition may learn."""
        if self.loss is not None:
            return self.loss
        assert self.epsilon is not None and self.delta is not None
        return gaussian_loss(self.epsilon, self.delta)

    def evaluate(self, decision: Shares | Any) -> Evaluation:
        """Evaluate shares.

        Parameters
        ----------
        decision : Shares
            For the same number of servers.

        Returns
        -------
        Evaluation
            The largest variance. Violations: ``privacy`` (the worst coalition's mu above its limit,
            relatively), ``sum`` (of the split from 1, and of the noises from 0 relatively), ``covariance``
            (negative eigenvalues, relatively), ``split`` (from the given one). Metric: ``loss``, the worst
            mu.
        """
        if not isinstance(decision, Shares) or decision.servers != self.servers:
            raise DeclarationError(
                f"the decision is {decision!r}; it must be Shares for {self.servers} servers"
            )
        worst = max(decision.loss(c) for c in self.groups)
        limits = {"privacy": worst / self.mu - 1, **decision.errors()}
        if self.split is not None:
            limits["split"] = float(np.abs(decision.split - self.split).max())
        violations = {name: value for name, value in limits.items() if value > FEASIBILITY_TOLERANCE}
        return Evaluation(decision.variance, violations, {"loss": worst})

    def repaired(self, split: Any, covariance: Any) -> Shares:
        """Shares that keep every condition, near a solver's, which keep them up to its tolerance.

        The split is shifted to sum 1, the noises are projected on sum 0 and negative eigenvalues dropped;
        then all noise is scaled up until the worst coalition learns just as much as it may. If servers
        outside all coalitions can hold the whole vector, they do, and no noise is needed.
        """
        outside = np.ones(self.servers, dtype=bool)
        outside[[i for group in self.groups for i in group]] = False
        if outside.any() and (self.split is None or not self.split[~outside].any()):
            a = outside / outside.sum() if self.split is None else self.split
            return Shares(a, np.zeros((self.servers, self.servers)))
        a = np.asarray(split, dtype=float) if self.split is None else self.split
        a = a + (1 - a.sum()) / self.servers
        keep = np.eye(self.servers) - 1 / self.servers
        values, vectors = np.linalg.eigh(
            keep @ (np.asarray(covariance) + np.asarray(covariance).T) @ keep / 2
        )
        values = np.maximum(values, LEAST_EIGENVALUE * values.max())
        made = keep @ (vectors * values) @ vectors.T @ keep
        made = (made + made.T) / 2
        worst = max(Shares(a, made).loss(c) for c in self.groups)
        scale = (worst / self.mu) ** 2 if worst > 0 else 1.0
        return Shares(a, made * scale * (1 + SAFE))


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
