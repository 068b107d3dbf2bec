"""Defendants and stakeholders for elicited fairness; seeded instances whose labels depend on a score."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from forcopt.arrays import Array, Seed, as_numbers
from forcopt.data import Dataset
from forcopt.errors import DeclarationError, require, required
from forcopt.fairness import DemographicParity, EqualizedOdds, Notion
from forcopt.instance import Instance, by_name
from forcopt.learning import AllFunctions, Hypotheses, Thresholds
from forcopt.models.fair_classification.problem import FairClassification

RACES = {"African-American": 3175, "Caucasian": 2103, "Hispanic": 509, "Asian": 31, "Native American": 11}
"""How many of the 5829 defendants of Jung et al. (2021), section 5."""
BASE_RATE = 0.46


def defendants(n: int = 5829, seed: Seed = 0) -> Dataset:
    """Synthetic records with the columns of COMPAS, for when the file is not there.

    The races have the shares of the 5829 records of Jung et al. (2021); 46 % reoffend, more often with many
    prior convictions and at a young age. The shapes of the columns are chosen to look like the file, not
    fitted to it.

    Examples
    --------
    >>> data = defendants(500)
    >>> data.features.shape, bool(0.4 < data.labels.mean() < 0.52)
    ((500, 7), True)
    """
    pd = required("pandas", "defendants")

    require(n >= 1, "n", n, "be at least 1")
    rng = np.random.default_rng(seed)
    names = list(RACES)
    race = rng.choice(names, n, p=np.array(list(RACES.values())) / sum(RACES.values()))
    mean, variance = np.where(race == "African-American", 4.2, 2.2), 22.0
    priors = rng.negative_binomial(mean**2 / (variance - mean), mean / variance)
    age = np.minimum(18 + rng.gamma(1.45, 11.4, n), 96).round()
    juvenile = rng.poisson([0.06, 0.09, 0.11], (n, 3))
    male, felony = rng.random(n) < 0.81, rng.random(n) < 0.64
    score = 0.17 * np.minimum(priors, 15) - 0.045 * (age - 35) + 0.2 * male + 0.1 * felony
    low, high = -10.0, 10.0
    for _ in range(60):  # the intercept that gives the base rate
        middle = (low + high) / 2
        few = (1 / (1 + np.exp(-(score + middle)))).mean() < BASE_RATE
        low, high = (middle, high) if few else (low, middle)
    labels = (rng.random(n) < 1 / (1 + np.exp(-(score + middle)))).astype(np.int64)
    columns = ("age", "priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count", "male", "felony")
    features = np.column_stack([age, priors, juvenile, male, felony]).astype(float)
    frame = pd.DataFrame(features, columns=list(columns)).assign(race=race, two_year_recid=labels)
    return Dataset("synthetic defendants", frame, features, columns, labels, race)


def stakeholders(
    features: Any, groups: Any, people: int = 43, shown: int = 50, seed: Seed = 0
) -> list[tuple[int, int, int, str]]:
    """The answers of simulated stakeholders to random pairs: ``"same"`` or ``"none"``.

    Each has weights for the (standardised) features and, half of the people, for the group, and demands that
    two records are treated the same if their distance is among the least of the pairs that they are shown: a
    third on average, but much more or less for some.

    Parameters
    ----------
    features : Any
        Of n records, shape ``(n, d)``.
    groups : Any
        The group of each record.
    people : int, default 43
        How many stakeholders.
    shown : int, default 50
        How many pairs each is shown.
    seed : int or numpy.random.Generator, default 0
        An int or a generator.

    Returns
    -------
    list[tuple[int, int, int, str]]
        Rows ``(stakeholder, i, j, answer)``, as `PairwiseFairness.from_answers` takes them.

    References
    ----------
    Stands in for the study of Jung et al. (2021), section 5: 43 people, 50 pairs each, answers that are
    symmetric, 1432 constraints in all.
    """
    X, race = as_numbers(features, "features"), np.asarray(groups)
    if X.ndim != 2 or len(X) < 2 or race.shape != (len(X),):
        shapes = f"features has shape {X.shape}, groups {race.shape}"
        raise DeclarationError(f"{shapes}; they must be (n, d) and (n,), n at least 2")
    if people < 1 or shown < 1:
        raise DeclarationError(f"people is {people} and shown {shown}; both must be at least 1")
    rng = np.random.default_rng(seed)
    spread = X.std(axis=0)
    Z: Array = X / np.where(spread > 0, spread, 1.0)
    answers: list[tuple[int, int, int, str]] = []
    for person in range(people):
        weights, of_race = rng.dirichlet(np.ones(X.shape[1])), rng.integers(0, 2) * rng.random()
        i = rng.integers(0, len(X), shown)
        j = (i + rng.integers(1, len(X), shown)) % len(X)
        distance = np.abs(Z[i] - Z[j]) @ weights + of_race * (race[i] != race[j])
        said = np.where(distance <= np.quantile(distance, rng.beta(2, 4)), "same", "none").tolist()
        answers += [(person, a, b, s) for a, b, s in zip(i.tolist(), j.tolist(), said, strict=True)]
    return answers


def draw(
    records: int, groups: int, constraint: Notion, hypotheses: Hypotheses, seed: int
) -> FairClassification:
    """Draw records: a whole score from 0 to 99, a group, and a label that follows the score and noise."""
    rng = np.random.default_rng(seed)
    group = np.concatenate([np.arange(groups), rng.integers(0, groups, records - groups)])
    score = rng.integers(0, 100, records)
    noise = rng.normal(0, 10 + 30 * group / groups)
    labels = (score + noise > 40 + 20 * group / groups).astype(int)
    columns: dict[str, Any] = {"features": score[:, None], "labels": labels, "groups": group}
    return FairClassification(**columns, constraint=constraint, hypotheses=hypotheses)


_CASES = {
    "thresholds-parity": (DemographicParity(0.02), Thresholds()),
    "thresholds-odds": (EqualizedOdds(0.02), Thresholds()),
    "all-odds": (EqualizedOdds(0.02), AllFunctions()),
}

INSTANCES = by_name(
    Instance(f"learning/{short}-{records}", partial(draw, records, groups, *case, records), "lp")
    for records, groups in ((200, 2), (2000, 4), (20000, 8))
    for short, case in _CASES.items()
)
