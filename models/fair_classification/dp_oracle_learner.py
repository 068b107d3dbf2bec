"""The game of learner and auditor, private in the groups (Algorithm 3), and its plan from public data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import expm1, inf, log, sqrt
from typing import Any

import numpy as np
import scipy

from forcopt.arrays import Array, Seed
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.fairness import AllOf, GroupRates, Merged, Notion, Rate
from forcopt.games import ExponentiatedGradient
from forcopt.language.model import Model
from forcopt.learning import Hypothesis
from forcopt.learning.halfspaces import RegressionOracle
from forcopt.models.fair_classification.lagrangian import Inequalities, check_options
from forcopt.models.fair_classification.problem import FairClassification
from forcopt.models.fair_classification.tolerances import LOUDER
from forcopt.privacy import Laplace, Ledger, PrivacyBudget, Profile, Randomness, randomness
from forcopt.privacy.ledger import pay
from forcopt.privacy.mechanism import AdditiveMechanism, ExponentialMechanism
from forcopt.problem import Outcome
from forcopt.status import Status

MOST_ROUNDS = 20_000
"""More are not planned, to spare time; a caller may plan more."""


@dataclass(frozen=True)
class PrivatePlan:
    """The rounds and noise of a private game, and the bounds that then hold with probability 1 - beta.

    Attributes
    ----------
    rounds : int
        T.
    step : float
        Of the auditor.
    bound : float
        B, on the sum of the multipliers.
    epsilon : float
        Of each of the 2 T mechanisms.
    noise : float
        The scale of the Laplace noise.
    sensitivity : float
        The largest change of the Lagrangian of a classifier by one person.
    learner : float
        The learner's regret a round, at most.
    auditor : float
        The auditor's.
    """

    rounds: int
    step: float
    bound: float
    epsilon: float
    noise: float
    sensitivity: float
    learner: float
    auditor: float

    @property
    def gap(self) -> float:
        """A bound on the duality gap, and so on the error above the optimum."""
        return self.learner + self.auditor

    @property
    def excess(self) -> float:
        """By how much an inequality of the constraint may be exceeded."""
        return (1 + self.gap) / self.bound


@dataclass(frozen=True)
class Sensitivity:
    """The change of rates by moving one person to another group, for data sets that keep the floor.

    Attributes
    ----------
    rates : float
        Of all rates of all groups together (L1).
    game : float
        Of the Lagrangian of any classifier, for a multiplier sum of 1.
    squares : float
        The largest sum of squares of an inequality's coefficients of the rates.
    spread : float
        The largest sum of their absolute values.
    """

    rates: float
    game: float
    squares: float
    spread: float


Mechanism = Callable[[Laplace], AdditiveMechanism]
"""Adds the noise that it is given."""


class _Free(GroupRates):
    """Rates that are free columns of a model, to read a notion's rows."""

    def __init__(self, model: Model, rates: tuple[Rate, ...], groups: tuple[str, ...]) -> None:
        ones = np.ones((len(groups), 2))
        super().__init__(ones, ones, groups)
        columns = {rate: model.variable(rate.name.replace(" ", "_"), len(groups)) for rate in rates}
        object.__setattr__(self, "columns", columns)

    def rate(self, rate: Rate) -> Any:
        """The columns of the rate."""
        return self.columns[rate]  # type: ignore[attr-defined]


def rate_rows(constraint: Notion, groups: tuple[str, ...]) -> tuple[Array, Array]:
    """The inequalities of a notion as rows over rates, in the order of `Lagrangian`, and their bounds.

    Shapes ``(r, R K)`` and ``(r,)``. They depend on no record.

    Raises
    ------
    DeclarationError
        For a notion that looks at records one by one or at unions of groups, or bounds auxiliary columns.
    """
    if len(constraint.records):
        raise DeclarationError("dp-oracle-learner takes demands on rates of groups, not on single records")
    parts = constraint.notions if isinstance(constraint, AllOf) else (constraint,)
    if any(isinstance(part, Merged) for part in parts):
        raise DeclarationError("dp-oracle-learner takes demands on rates of groups, not of their unions")
    model = Model("rates")
    rates = _Free(model, constraint.rates, groups)
    known = model.column_count
    model.subject_to(constraint.rows(rates))
    found, columns = Inequalities.of(model, known), model.columns()
    if np.isfinite([columns.lower[known:], columns.upper[known:]]).any():
        raise DeclarationError("dp-oracle-learner takes demands whose auxiliary columns have no bounds")
    for column in range(model.column_count - known):
        found = found.paired(column)
    return found.moments.toarray(), found.bounds


def sensitivity(constraint: Notion, groups: tuple[str, ...], floor: float) -> Sensitivity:
    """How much privacy has to hide; brute force finds no more.

    One person who moves from a group to another with the same label y changes the rates over label y, of
    those two groups. A mean over n people changes by at most 1 / n when one leaves, and by 1 / (n + 1) when
    one joins; if no cell may fall below the floor f, both are at most 1 / (c f + 1), for a rate over c cells.
    (Jagielski et al. 2019, Lemma C.1, has 1 / (f - 1), and sums over all groups.)
    """
    rows = np.abs(rate_rows(constraint, groups)[0])
    count = len(groups)
    total, game = 0.0, 0.0
    for label in (0, 1):
        given = [r.given[0] for r in constraint.rates]
        change = np.array([bool(labels[label]) / (sum(map(bool, labels)) * floor + 1) for labels in given])
        total = max(total, 2 * float(change.sum()))
        game = max(game, float((rows @ np.repeat(change, count)).max(initial=0.0)))
    squares, spread = (float((rows**k).sum(axis=1).max(initial=0.0)) for k in (2, 1))
    return Sensitivity(total, game, squares, spread)


def _budget(problem: FairClassification) -> PrivacyBudget:
    if problem.privacy is None or problem.privacy.floor is None:
        example = "PrivacyBudget(epsilon=1.0, delta=1e-6, floor=500)"
        raise DeclarationError(f"dp-oracle-learner needs privacy with a public floor, such as {example}")
    for rate in problem.constraint.rates:
        if not rate.is_linear:
            raise DeclarationError(f"dp-oracle-learner takes rates linear in predictions, not {rate.name}")
    if problem.weights is not None:
        raise DeclarationError("dp-oracle-learner takes no weights: floor counts records")
    return problem.privacy


def plan(
    problem: FairClassification, *, rounds: int | None = None, bound: float = 10.0, beta: float = 0.05
) -> PrivatePlan:
    """Plan the game, and bound its duality gap: with probability at least 1 - beta.

    It uses nothing of the groups but their names and the declared floor.

    The proof follows Jagielski et al. (2019), Lemmas 4.1 and 4.2, with three changes. The noise is on the
    rates, of which the gradient is a linear map. The auditor's regret is by Hoeffding's lemma, so that gains
    of any size are covered (the paper needs step * gain <= 1 and does not check it). And it is against the
    true gradients: the mean noise in any inequality, and the noise that the auditor's own plays meet, are
    bounded as sums of independent Laplace variables (the paper leaves both out). For d inequalities and S the
    sensitivity of the Lagrangian, the regrets a round are

    - learner: ``2 S / eps' * ln(4 T |H| / beta)``;
    - auditor: ``B ln(d + 1) / (step T) + step B range^2 / 8``, plus B times both means of noise.

    Parameters
    ----------
    problem : FairClassification
        With `privacy` and its floor.
    rounds : int, optional
        T; by default the number that makes the bound on the gap least.
    bound : float, default 10.0
        B, on the sum of the multipliers.
    beta : float, default 0.05
        The probability with which the bounds may fail.

    Raises
    ------
    DeclarationError
        Without privacy or floor, for options out of range, for weights, groups seen through a channel, a
        constraint on single records, or hypotheses that cannot be listed.
    """
    budget = _budget(problem)
    check_options(bound=bound, beta=beta, rounds=rounds)
    groups = problem.groups.names
    _, ends = rate_rows(problem.constraint, groups)
    assert budget.floor is not None
    s = sensitivity(problem.constraint, groups, budget.floor)
    # ln of the number of classifiers that differ on the records; infinite for a heuristic oracle
    capacity = inf if isinstance(problem.oracle, RegressionOracle) else log(len(problem.oracle.all()))
    size, numbers = len(ends), len(groups) * len(problem.constraint.rates)

    def planned(t: int, epsilon: float) -> PrivatePlan:
        noise = s.rates / epsilon
        loudest = s.spread * noise * log(4 * numbers * t / beta)  # in any gain, in any round
        gains = 2 + float(np.ptp(ends)) + 2 * loudest  # from the least to the largest, and 0
        step = sqrt(8 * log(size + 1) / t) / gains
        regret = bound * gains * sqrt(log(size + 1) / (2 * t))
        means = [_mean_noise(noise, s, t, log(k / beta)) for k in (4 * size, 4)]
        learner = 2 * s.game * bound / epsilon * (capacity + log(4 * t / beta))
        gap = regret + bound * sum(means)
        return PrivatePlan(t, step, bound, epsilon, noise, s.game * bound, learner, gap)

    if rounds is None:
        grid = sorted({round(2 ** (k / 2)) for k in range(1 + int(2 * np.log2(MOST_ROUNDS)))})
        likely = [planned(t, _roughly(budget, 2 * t)) for t in grid]
        rounds = min(likely, key=lambda p: p.gap if capacity < inf else p.auditor).rounds
    return planned(rounds, budget.split(2 * rounds))


def _mean_noise(scale: float, s: Sensitivity, rounds: int, log_chance: float) -> float:
    """The quantile of the mean noise of an inequality that is exceeded with probability exp(-log_chance).

    The moment generating function of Laplace noise is at most exp(2 scale^2 x^2) for x <= 1 / (scale sqrt 2).
    """
    mean = log_chance / rounds
    small: float = sqrt(8 * s.squares * mean) * scale
    large: float = sqrt(2) * scale * (s.squares + mean)
    return small if mean <= s.squares else large


def _roughly(budget: PrivacyBudget, mechanisms: int) -> float:
    """Advanced composition in closed form (Dwork and Roth 2014, Theorem 3.20): no more than `split` gives."""
    basic = budget.epsilon / mechanisms
    if budget.delta == 0:
        return basic
    spread = sqrt(2 * mechanisms * log(1 / budget.delta))

    def over(e: float) -> float:
        return spread * e + mechanisms * e * expm1(e) - budget.epsilon

    advanced: float = scipy.optimize.brentq(over, 0.0, min(budget.epsilon / spread, 50.0))
    return max(basic, advanced)


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
    ledger: Ledger | str | None = None,
    mechanism: Mechanism = AdditiveMechanism,
    time_limit: float | None = None,
    seed: Seed = None,
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
    ledger : Ledger or str
        Of all releases about the same people, or its file; only a simulation does without. The run spends
        the whole of `privacy` from it before the first round, even if it ends early, fails or is simulated.
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
        See `plan`; and if the bounds are vacuous.
    BudgetSpentError
        If the ledger's budget does not allow the run.
    """
    game, oracle = problem.lagrangian, problem.oracle
    if not game.size:  # nothing to keep fair, so no look at the groups
        decision = problem.policy([1.0], [oracle.best(game.costs)])
        return Outcome(decision, guarantee=0.0 if oracle.exact else np.inf)
    deadline = Deadline(time_limit)
    planned = plan(problem, rounds=rounds, bound=bound, beta=beta)
    _refuse_vacuous(problem, planned, allow_vacuous)
    rng, privacy = randomness(seed=seed), _budget(problem)
    profile = Profile.pure(privacy.epsilon, privacy.delta)
    pay(ledger, profile, rng, "dp-oracle-learner", "substitute")
    noise = _laplace(mechanism, planned.noise)
    louder = noise.error**2 > noise.noise.variance * (1 + LOUDER)
    rows, ends = rate_rows(problem.constraint, problem.groups.names)
    regresses, asked = isinstance(oracle, RegressionOracle), (problem, planned, rng)
    choose = _regression(*asked, mechanism) if regresses else _exponential(*asked)
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
        auditor.learn(rows @ noise._send(_rates(problem, found), rng) - ends)
    decision = problem.policy(np.array(list(plays.values())) / rounds, list(plays), total / rounds, bound)
    private, gap = f"({privacy.epsilon:g}, {privacy.delta:g})-differentially private in the groups", np.inf
    if rng.simulated:
        private = f"a simulation with a seed, so not private; without a seed it would be {private}"
    if rounds < planned.rounds:
        promise = f"{deadline.end} after {rounds} of {planned.rounds} rounds: no bound"
    elif louder:
        promise = "the mechanism adds more noise than was planned: no bound"
    else:
        gap = planned.gap
        promise = f"with probability {1 - beta:g} the error is at most {gap:.4g} above the optimum"
        promise += f" and no inequality exceeded by more than {planned.excess:.4g}"
    facts = (decision, None, Status.APPROXIMATE, rounds, f"{private}; {promise}")
    return Outcome(*facts, private=True, profile=profile, guarantee=gap)


def _laplace(mechanism: Mechanism, scale: float) -> AdditiveMechanism:
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
        return listed[int(mechanism._send(errors + activities @ prices, rng))]

    return choose


def _regression(
    problem: FairClassification, planned: PrivatePlan, rng: Randomness, mechanism: Mechanism
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
        return oracle.fitted(noise._send(oracle.design.T @ game.price(prices), rng))

    return choose


def _refuse_vacuous(problem: FairClassification, planned: PrivatePlan, allowed: bool) -> None:
    tolerance = float(rate_rows(problem.constraint, problem.groups.names)[1].min())
    if not allowed and (planned.gap >= 1 or tolerance + planned.excess >= 1):
        raise DeclarationError(
            f"the bounds are vacuous here: error at most {planned.gap:.3g} above the optimum, rates apart by "
            f"at most {tolerance + planned.excess:.3g}, after {planned.rounds} rounds with bound "
            f"{planned.bound:g}; they need more records, a larger epsilon or floor, fewer hypotheses or "
            "another bound, or set allow_vacuous=True"
        )
