"""The game of learner and auditor, private in the groups: noise in every look at them (Algorithm 3)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.games import ExponentiatedGradient
from forcopt.learning import Hypothesis
from forcopt.learning.halfspaces import RegressionOracle
from forcopt.models.fair_classification.private_plan import PrivatePlan, plan, printed_plan, rate_rows
from forcopt.models.fair_classification.problem import FairClassification
from forcopt.models.fair_classification.tolerances import LOUDER
from forcopt.privacy import (
    Accountant,
    AdditiveMechanism,
    ExponentialMechanism,
    Laplace,
    Profile,
    Randomness,
    randomness,
)
from forcopt.problem import Outcome
from forcopt.status import Status


@FairClassification.algorithm(
    "dp-oracle-learner",
    guarantee=lambda problem: plan(problem).gap,
    cites="Jagielski et al. (2019), Algorithm 3 and Theorem 4.3",
    private=True,
)
def dp_oracle_learner(
    problem: FairClassification,
    *,
    bound: float = 10.0,
    rounds: int | None = None,
    beta: float = 0.05,
    allow_vacuous: bool = False,
    as_printed: bool = False,
    accountant: Accountant | None = None,
    mechanism: Callable[[Laplace], AdditiveMechanism] = AdditiveMechanism,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
) -> Outcome:
    """Play exponentiated gradient with noisy gradients against a learner that chooses privately.

    The decision is (epsilon, delta)-differentially private in the groups of the records: in each round the
    learner chooses by the exponential mechanism, and the auditor gets the rates of the chosen one with
    Laplace noise. Features and labels are not protected, nor may they reveal the group: the hypotheses must
    not depend on it. With probability 1 - beta the error is at most `PrivatePlan.gap` above the optimum, and
    no inequality is exceeded by more than `PrivatePlan.excess`; see `private_plan.plan`. The evaluation of
    the decision (its error, rates and gaps) is computed from the true groups, so it is not private.

    The hypotheses must be listed (`Finite`, `Thresholds`, `Halfspaces` of two features), or be
    ``Halfspaces(search="regression")``: then the noise is on the products of features and costs, as in
    section 5 of the paper, and no bound is known.

    Parameters
    ----------
    problem : FairClassification
        With `privacy` and its floor.
    bound : float, default 10.0
        B, on the sum of the multipliers: more enforces the constraint better, and needs more noise.
    rounds : int, optional
        T; those with the least bound on the gap by default.
    beta : float, default 0.05
        The probability with which the bounds may fail.
    allow_vacuous : bool, default False
        Play even if the bounds are vacuous (the error may be 1 too high, or the rates differ by 1).
    as_printed : bool, default False
        The paper's own T, step and composition (Lemma A.3), and its noise: on the gradient, by the least
        count of the data where there is no floor, which is **not** private. For two groups.
    accountant : Accountant, optional
        The ledger of all releases about the same people. The run spends the whole of `privacy` from it before
        the first round, even if it ends early, fails or is simulated.
    mechanism : callable, default AdditiveMechanism
        Adds the Laplace noise that it is given, or more: see `forcopt.models.secure_sum.SharedNoise`. With
        more noise no bound is known.
    time_limit : float, optional
        Seconds, checked between rounds. A game that ends early spends less than its budget, and has no bound.
    seed : int or numpy.random.Generator, optional
        For an experiment that can be repeated, which simulates privacy only; without one OpenDP draws.

    Raises
    ------
    DeclarationError
        See `plan`; if the bounds are vacuous; and for an accountant of a run that is not private.
    BudgetSpentError
        If the accountant's budget does not allow the run.
    """
    game, oracle = problem.lagrangian, problem.oracle
    if not game.size:  # nothing to keep fair, so no look at the groups
        decision = problem.policy([1.0], [oracle.best(game.costs)])
        return Outcome(decision, guarantee=0.0 if oracle.exact else np.inf)
    deadline = Deadline(time_limit)
    planned = (
        _printed(problem, bound, rounds, beta)
        if as_printed
        else plan(problem, rounds=rounds, bound=bound, beta=beta)
    )
    _refuse_vacuous(problem, planned, allow_vacuous)
    if accountant is not None:
        _spend(problem, accountant, as_printed)
    rng = randomness(seed=seed)
    noise = _laplace(mechanism, planned.noise)
    louder = noise.error**2 > noise.noise.variance * (1 + LOUDER)
    if as_printed:  # noise on the gradient itself
        rows, ends = np.eye(game.size), game.bounds
    else:
        rows, ends = rate_rows(problem.constraint, problem.groups.names)
    choose = (
        _regression(problem, planned, mechanism, rng)
        if isinstance(oracle, RegressionOracle)
        else _exponential(problem, planned, rng)
    )
    auditor = ExponentiatedGradient(game.size, bound, planned.step)
    plays: dict[Hypothesis, int] = {}
    total = np.zeros(game.size)
    rounds = 0
    while rounds < planned.rounds and not (rounds and deadline.passed):
        rounds += 1
        prices = auditor.play()
        total += prices
        found = choose(prices)
        plays[found] = plays.get(found, 0) + 1
        exact = game.rows @ found.predictions if as_printed else _rates(problem, found)
        auditor.learn(rows @ noise.send(exact, rng) - ends)
    decision = problem.policy(np.array(list(plays.values())) / rounds, list(plays), total / rounds, bound)
    return Outcome(
        decision,
        status=Status.APPROXIMATE,
        private=not as_printed or (problem.privacy is not None and problem.privacy.floor is not None),
        iterations=rounds,
        message=_message(problem, planned, as_printed, beta, rounds, deadline.end, rng, louder),
        guarantee=planned.gap if rounds == planned.rounds and not louder else np.inf,
    )


def _laplace(mechanism: Callable[[Laplace], AdditiveMechanism], scale: float) -> AdditiveMechanism:
    """The mechanism of this noise; all privacy rests on it."""
    noise = Laplace(scale=scale)
    made = mechanism(noise)
    if made.noise != noise:
        raise DeclarationError(f"mechanism gives {made!r}; it must add the noise that it is given, {noise!r}")
    return made


Choice = Callable[[Array], Hypothesis]
"""The learner's answer to prices."""


def _rates(problem: FairClassification, found: Hypothesis) -> Array:
    """The rates of all groups that the constraint looks at, one after the other."""
    rates = problem.rates(found.predictions.astype(float))
    return np.concatenate([rates.rate(rate) for rate in problem.constraint.rates])


def _exponential(problem: FairClassification, planned: PrivatePlan, rng: Randomness) -> Choice:
    """The exponential mechanism over all hypotheses."""
    game, listed = problem.lagrangian, problem.oracle.all()
    table = np.stack([h.predictions for h in listed]).astype(float)
    errors, activities = table @ game.costs, table @ game.rows.T
    mechanism = ExponentialMechanism(planned.epsilon, planned.sensitivity)

    def choose(prices: Array) -> Hypothesis:
        losses = errors + activities @ prices
        return listed[mechanism.send(losses, rng)]

    return choose


def _regression(
    problem: FairClassification,
    planned: PrivatePlan,
    mechanism: Callable[[Laplace], AdditiveMechanism],
    rng: Randomness,
) -> Choice:
    """Least squares of the costs on the features, with noise on their products.

    Moving one person changes the prices of all records of two cells, in all by at most twice the largest
    change of the Lagrangian: the mover's own price, and the others' by as much.
    """
    game, oracle = problem.lagrangian, problem.oracle
    assert isinstance(oracle, RegressionOracle)
    scale = 2 * planned.sensitivity * float(np.abs(oracle.design).sum(axis=1).max()) / planned.epsilon
    noise = _laplace(mechanism, scale)

    def choose(prices: Array) -> Hypothesis:
        return oracle.fitted(noise.send(oracle.design.T @ game.price(prices), rng))

    return choose


def _printed(problem: FairClassification, bound: float, rounds: int | None, beta: float) -> PrivatePlan:
    privacy, count = problem.privacy, len(problem.groups.names)
    if privacy is None or privacy.delta == 0 or count != 2 or rounds is not None:
        raise DeclarationError(
            "as printed, Algorithm 3 takes privacy with a positive delta, two groups, and no rounds (T)"
        )
    least = float((problem.moments.mass * len(problem.labels)).min().round())
    planned, _ = printed_plan(
        records=len(problem.labels),
        groups=count,
        capacity=float(np.log(len(problem.oracle.all()))),
        smallest=privacy.floor or least,
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        bound=bound,
        beta=beta,
    )
    return planned


def _spend(problem: FairClassification, accountant: Accountant, as_printed: bool) -> None:
    privacy = problem.privacy
    if privacy is None or (as_printed and privacy.floor is None):
        raise DeclarationError("accountant: the run is not private, so no budget allows it")
    profile = Profile.pure(privacy.epsilon, privacy.delta)
    accountant.spend(profile, name="dp-oracle-learner", neighbours="substitute")


def _refuse_vacuous(problem: FairClassification, planned: PrivatePlan, allowed: bool) -> None:
    tolerance = float(rate_rows(problem.constraint, problem.groups.names)[1].min())
    if not allowed and (planned.gap >= 1 or tolerance + planned.excess >= 1):
        raise DeclarationError(
            f"the bounds are vacuous here: error at most {planned.gap:.3g} above the optimum, rates apart by "
            f"at most {tolerance + planned.excess:.3g}, after {planned.rounds} rounds with bound "
            f"{planned.bound:g}; they need more records, a larger epsilon or floor, fewer hypotheses or "
            "another bound, or set allow_vacuous=True"
        )


def _message(
    problem: FairClassification,
    planned: PrivatePlan,
    as_printed: bool,
    beta: float,
    rounds: int,
    end: str,
    rng: Randomness,
    louder: bool,
) -> str:
    assert problem.privacy is not None
    private = f"({problem.privacy.epsilon:g}, {problem.privacy.delta:g})-differentially private in the groups"
    if as_printed and problem.privacy.floor is None:
        private = "not private: the noise was fitted to the least count of the data"
    elif rng.simulated:
        private = f"a simulation with a seed, so not private; without a seed it would be {private}"
    if rounds < planned.rounds:
        return f"{private}; {end} after {rounds} of {planned.rounds} rounds: no bound"
    if louder:
        return f"{private}; the mechanism adds more noise than was planned: no bound"
    return (
        f"{private}; with probability {1 - beta:g} the error is at most {planned.gap:.4g} above the optimum "
        f"and no inequality exceeded by more than {planned.excess:.4g}"
    )
