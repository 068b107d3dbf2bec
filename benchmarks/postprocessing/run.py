"""Runs the post-processing benchmark and writes a Markdown table.

    python benchmarks/postprocessing/run.py --out benchmarks/postprocessing/results.md

Everything is seeded. ``--quick`` does a small part of each table, for checking that it runs; a part that is
done is written at once.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from scipy.stats import t as student

import forcopt as fo
from benchmarks.report import Page, Row, data, parser, progress, row, table
from forcopt.data import Dataset, load_adult, load_compas
from forcopt.fairness import ERROR, EqualizedOdds, GroupRates
from forcopt.models import CalibratedEqualErrors, FairPostprocessing
from forcopt.models.fair_postprocessing.dp_postprocessing import privacy_cost
from forcopt.privacy import PrivacyBudget, RandomizedResponse

RACES = ("African-American", "Caucasian")
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
GAMMAS = (0.0, 0.02, 0.05, 0.1)


def interval(values: Iterable[float]) -> str:
    """The mean, and half the width of its 95 percent interval."""
    x = np.array(list(values))
    half = student.ppf(0.975, len(x) - 1) * x.std(ddof=1) / np.sqrt(len(x)) if len(x) > 1 else np.nan
    return f"{x.mean():.4f} ± {half:.4f}"


def bounded(value: float) -> str:
    return f"{value:.3f}" if value < 1 else "none"


# -- data ----------------------------------------------------------------------------------------------------


@cache
def adult() -> tuple[Dataset, np.ndarray, np.ndarray]:
    """Adult; scores of a logistic regression that sees neither sex nor race; who was not trained on."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    people = load_adult(data("tabular/adult.csv"))
    held_out = np.random.default_rng(0).random(len(people)) < 0.5
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    model.fit(people.features[~held_out], people.labels[~held_out])
    return people, model.predict_proba(people.features)[:, 1], held_out


@cache
def compas() -> tuple[Dataset, np.ndarray]:
    people = load_compas(data("tabular/compas-scores-two-years.csv")).of_groups(*RACES)
    return people, people.frame["decile_score"].to_numpy()


@cache
def instances() -> dict[str, FairPostprocessing]:
    counts, names = fo.data.compas_counts()
    people, scores, rest = adult()
    return {
        "COMPAS": FairPostprocessing(counts=counts, groups=names, constraint=EqualizedOdds()),
        "Adult": FairPostprocessing.from_predictions(
            scores[rest] >= 0.5, people.groups[rest], people.labels[rest], EqualizedOdds()
        ),
    }


def with_privacy(p: FairPostprocessing, privacy: PrivacyBudget, gamma: float) -> FairPostprocessing:
    return FairPostprocessing(
        counts=p.counts, groups=p.groups, constraint=EqualizedOdds(gamma), privacy=privacy
    )


# -- parts ---------------------------------------------------------------------------------------------------


def private(quick: bool) -> tuple[str, list[Row]]:
    """Algorithm 1: error and disparity over noise draws, against the optimum and the theorem's bounds."""
    draws = 10 if quick else 200
    over = {
        "privacy.epsilon": (1.0,) if quick else EPSILONS,
        "constraint.tolerance": (0.0, 0.1) if quick else GAMMAS,
    }
    text = f"""{draws} draws of the noise at each point; means with 95 % intervals. The bounds are those of
Theorem 3.1 at 95 %: how far the error may be above the optimum, and the disparity above γ (the larger of
the two rates'). 'none' is a bound of 1 or more; failed are draws that left a cell without records.

"""
    head = ["ε", "γ", "optimum", "error", "error above it, largest", "bound"]
    head += ["disparity", "disparity above γ, largest", "bound", "failed"]
    releases = above = 0
    for name, base in instances().items():
        p = with_privacy(base, PrivacyBudget(1.0), 0.0)
        began = time.perf_counter()
        frame = fo.sweep(p, over, ["dp-postprocessing"], seeds=range(draws)).to_pandas()
        spent = time.perf_counter() - began
        rows = []
        for (epsilon, gamma), runs in frame.groupby(list(over)):
            q = with_privacy(base, PrivacyBudget(epsilon), gamma)
            best, cost = q.solve("lp").objective, privacy_cost(q)
            known = runs[runs["status"] == "approximate"]
            gaps = known["largest disparity"]
            most = max(cost.disparity.values())
            excess = known["objective"] - best
            releases += len(known)
            above += ((excess > cost.error) | (gaps - gamma > most)).sum()
            cells = [f"{epsilon:g}", f"{gamma:g}", f"{best:.4f}", interval(known["objective"])]
            cells += [f"{excess.max():.4f}", bounded(cost.error), interval(gaps)]
            rows.append([*cells, f"{(gaps - gamma).max():.4f}", bounded(most), str(len(runs) - len(known))])
        n, least = int(base.counts.sum()), int(base.counts.sum(axis=0).min())
        text += f"### {name}: {n:,} records, {least:,} in the smallest cell\n\n{table(head, rows)}\n"
        text += f"{len(frame):,} private solves in {spent:.0f} s: {spent / len(frame) * 1e3:.1f} ms each.\n\n"
        progress(text.splitlines()[-2])
    return text, [
        row(
            f"{releases:,} private releases (COMPAS, Adult)",
            f"{above:,} above a bound of the theorem, of 95 %",
        )
    ]


def demographics(quick: bool) -> tuple[str, list[Row]]:
    """Adult with sex reported through randomized response: error and true disparity on held-out people."""
    people, scores, held_out = adult()
    predicted, codes = (scores >= 0.5).astype(int), (people.groups == "Male").astype(int)
    repetitions = 3 if quick else 20
    rows = []
    for epsilon in (1.0,) if quick else (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0):
        channel = RandomizedResponse(epsilon)
        seen: dict[str, list[tuple[float, float]]] = {"step 2": [], "reports taken for groups": []}
        failed = 0
        for seed in range(repetitions):
            rng = np.random.default_rng([1, seed])
            tune = held_out & (rng.random(len(people)) < 0.5)
            test = held_out & ~tune
            truth = FairPostprocessing.from_predictions(
                predicted[test], codes[test], people.labels[test], EqualizedOdds()
            )
            reports = channel.privatize(codes[tune], 2, seed=rng)
            for name, groups in (("step 2", channel.observe(reports)), ("reports taken for groups", reports)):
                try:
                    p = FairPostprocessing.from_predictions(
                        predicted[tune], groups, people.labels[tune], EqualizedOdds(1e-4)
                    )
                except fo.DeclarationError:  # a negative estimated cell
                    failed += 1
                    continue
                made = p.solve().decision.probabilities
                of_truth = made @ channel.transition(2)
                judged = truth.evaluate(of_truth)
                seen[name].append((judged.objective, judged.metrics["largest disparity"]))
        cells = [f"{epsilon:g}"]
        for values in seen.values():
            cells += [interval(v[0] for v in values), interval(v[1] for v in values)]
        rows.append([*cells, str(failed)])
        progress(*rows[-1])
    base = truth.evaluate(np.repeat([[0.0], [1.0]], 2, axis=1))
    best = truth.solve()
    nobody = truth.evaluate(np.zeros((2, 2))).objective
    head = ["ε", "step 2: error", "disparity", "reports taken for groups: error", "disparity", "failed"]
    note = f"""The base is a logistic regression without sex, trained on one half; the program of step 2
sees a quarter, with reported sex and γ = 1e-4. Error and disparity (of false and true positive rates) are
those of the true groups in the last quarter; {repetitions} repetitions with 95 % intervals; failed are
draws with a negative estimated cell. There the base alone has error {base.objective:.4f} and disparity
{base.metrics["largest disparity"]:.4f}; the best fair predictor for known groups errs {best.objective:.4f},
and predicting nobody {nobody:.4f}.

"""
    return note + table(head, rows), []


Chances = tuple[float, np.ndarray]
"""Seconds to fit, and the probability that each record to be judged is predicted 1."""


def fairlearn(x: np.ndarray, labels: np.ndarray, groups: np.ndarray, fit: np.ndarray, grid: int) -> Chances:
    """ThresholdOptimizer, fitted to some records, judged on all by its own probabilities."""
    from fairlearn.postprocessing import ThresholdOptimizer
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Given(ClassifierMixin, BaseEstimator):
        """Predicts what it is handed."""

        classes_ = np.array([0, 1])

        def fit(self, x: np.ndarray, y: np.ndarray) -> Given:
            return self

        def predict(self, x: np.ndarray) -> np.ndarray:
            return x[:, 0]

    began = time.perf_counter()
    optimizer = ThresholdOptimizer(
        estimator=Given(),
        constraints="equalized_odds",
        objective="accuracy_score",
        grid_size=grid,
        prefit=True,
        predict_method="predict",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the estimator was not fitted by it
        optimizer.fit(x[fit][:, None], labels[fit], sensitive_features=groups[fit])
    spent = time.perf_counter() - began
    return spent, optimizer._pmf_predict(x[:, None], sensitive_features=groups)[:, 1]


def from_predictions(x: np.ndarray, labels: np.ndarray, groups: np.ndarray, fit: np.ndarray) -> Chances:
    began = time.perf_counter()
    p = FairPostprocessing.from_predictions(x[fit], groups[fit], labels[fit], EqualizedOdds())
    probabilities = p.solve().decision.probabilities
    spent = time.perf_counter() - began
    return spent, probabilities[x.astype(int), np.searchsorted(p.groups, groups)]


def from_scores(x: np.ndarray, labels: np.ndarray, groups: np.ndarray, fit: np.ndarray) -> Chances:
    began = time.perf_counter()
    values, bins = np.unique(x, return_inverse=True)
    counts = {}
    for g in np.unique(groups):
        of = fit & (groups == g)
        people = np.bincount(bins[of], minlength=len(values))
        counts[g] = (people, np.bincount(bins[of & (labels == 1)], minlength=len(values)))
    decision = CalibratedEqualErrors.from_counts(counts, cutoff=0.5).solve("equal-odds").decision
    spent = time.perf_counter() - began
    chance = np.empty(len(x))
    for g, (people, positive) in counts.items():
        k = decision.kernels[g]
        place = np.abs(np.subtract.outer(positive / people, k.values)).argmin(axis=1)
        chance[groups == g] = k.accepted(0.5)[place][bins[groups == g]]
    return spent, chance


def threshold_optimizer(quick: bool) -> tuple[str, list[Row]]:
    """Fairlearn's ThresholdOptimizer on the same predictions, and on the scores, side by side."""
    defendants, deciles = compas()
    people, scores, rest = adult()
    twentieths = np.digitize(scores, np.quantile(scores[rest], np.arange(1, 20) / 20))
    sets = {
        "COMPAS": (deciles.astype(float), deciles >= 5, defendants.labels, defendants.groups),
        "Adult": (
            twentieths[rest].astype(float),
            scores[rest] >= 0.5,
            people.labels[rest],
            people.groups[rest],
        ),
    }
    rows, headlines = [], []
    grids = (1_000,) if quick else (1_000, 100_000)
    for name, (scores, predictions, labels, groups) in sets.items():
        fit = np.random.default_rng(2).random(len(labels)) < 0.5
        for subject, x, ours in (
            ("predictions", predictions.astype(float), from_predictions),
            ("scores", scores, from_scores),
        ):
            runs = {"forcopt": partial(ours, x, labels, groups, fit)}
            for grid in grids:
                runs[f"fairlearn, grid {grid:,}"] = partial(fairlearn, x, labels, groups, fit, grid)
            best = {}
            for who, run in runs.items():
                found = [run() for _ in range(1 if quick else 5)]
                spent = min(f[0] for f in found)
                errors, cells = [], []
                for part in (fit, ~fit):
                    judged = GroupRates.from_records(found[0][1][part], groups[part], labels[part])
                    errors.append(judged.overall(ERROR))
                    cells += [f"{errors[-1]:.6f}", f"{max(EqualizedOdds().disparity(judged).values()):.4f}"]
                best[who] = spent, *errors
                ratio = spent / best["forcopt"][0]
                rows.append([f"{name}, {fit.sum():,} records, {subject}", who, f"{spent * 1e3:.1f} ms"])
                rows[-1] += [f"{ratio:.1f}", *cells]
                progress(*rows[-1])
            seconds, error, outside = best.pop("forcopt")
            if (name, subject) in (("COMPAS", "predictions"), ("Adult", "scores")):
                headlines.append(
                    row(
                        f"{name}, equal odds, from {subject}",
                        f"{seconds * 1e3:.1f} ms, error {error:.4f}, held out {outside:.4f}",
                        "; ".join(
                            f"{who} {s * 1e3:.1f} ms, {e - error:.0e} above, held out {o:.4f}"
                            for who, (s, e, o) in best.items()
                        ),
                        ", ".join(f"{s / seconds:.1f}" for s, _, _ in best.values()),
                    )
                )
    head = ["what", "who", "least of five runs", "ratio", "error", "disparity"]
    head += ["error, held out", "disparity, held out"]
    note = """Equal odds at γ = 0, fitted to half of the records and judged on either half. From predictions
both know only 0 or 1. From scores (COMPAS deciles; twenty quantiles of Adult's) a predictor may draw
between any cutoffs: fairlearn takes the hull of the cutoffs' rates and searches a grid of false positive
rates; the linear program may accept any set of scores, which gains nothing on the records it is fitted to
and may be worse on others than the cutoffs of the hull. Counting the records is part of either time.

"""
    return note + table(head, rows), headlines


def linprog(quick: bool) -> tuple[str, list[Row]]:
    """Random tables of up to 50 groups, against scipy's linprog on the same program, rows built by numpy."""
    from scipy.optimize import linprog as solve

    sizes = (2, 5, 10, 20, 50)
    each = 4 if quick else 200
    rng = np.random.default_rng(6)
    rows, means, worst = [], [], 0.0
    for groups in sizes:
        ours = theirs = difference = 0.0
        for _ in range(each):
            counts = rng.integers(1, 200, size=(2, groups, 2))
            gamma = float(rng.choice([0.0, 0.02, 0.1]))
            began = time.perf_counter()
            s = FairPostprocessing(counts=counts, constraint=EqualizedOdds(gamma)).solve()
            ours += time.perf_counter() - began
            began = time.perf_counter()
            mass = counts.sum(axis=0)
            rate = counts / mass  # [prediction, group, label]
            blocks = []
            for label in (0, 1):
                level = np.zeros((groups, 2))
                level[:, label] = -1
                blocks.append(np.hstack([np.diag(rate[0, :, label]), np.diag(rate[1, :, label]), level]))
            rows_of = np.vstack(blocks)
            upper, lower = np.full(2 * groups, gamma), np.zeros(2 * groups)
            n = counts.sum()
            cost = np.append((counts[:, :, 0] - counts[:, :, 1]).ravel() / n, [0.0, 0.0])
            bounds = [(0, 1)] * (2 * groups) + [(None, None)] * 2
            r = solve(
                cost,
                A_ub=np.vstack([rows_of, -rows_of]),
                b_ub=np.append(upper, -lower),
                bounds=bounds,
                method="highs",
            )
            theirs += time.perf_counter() - began
            difference = max(difference, abs(r.fun + counts[:, :, 1].sum() / n - s.objective))
        worst = max(worst, difference)
        cells = [str(groups), str(each), f"{ours / each * 1e3:.2f} ms", f"{theirs / each * 1e3:.2f} ms"]
        rows.append([*cells, f"{ours / theirs:.2f}", f"{difference:.1e}"])
        means.append((ours / each * 1e3, theirs / each * 1e3, theirs / ours))
        progress(*rows[-1])
    head = ["K", "programs", "forcopt, mean", "linprog, mean", "ratio", "largest difference of the error"]
    note = f"""Both solve the same rows with HiGHS, `0 <= rate - level <= γ`. Ours is the whole of `solve`:
the declaration checked, model, program, solver, and the answer judged again. Largest difference in all:
{worst:.1e}.

"""
    ours, theirs, ratio = (
        f"{low:.1f} to {high:.1f}" for low, high in zip(np.min(means, 0), np.max(means, 0), strict=True)
    )
    told = row(
        f"{each * len(sizes):,} linear programs, K = {sizes[0]} to {sizes[-1]}: the whole of solve",
        f"{ours} ms",
        f"scipy's linprog alone {theirs} ms, same optima to {worst:.0e}",
        ratio,
    )
    return note + table(head, rows), [told]


PARTS = {
    "Private post-processing (Jagielski et al. 2019, Algorithm 1)": private,
    "Private demographics (Mozannar et al. 2020, step 2) on Adult": demographics,
    "Against fairlearn's ThresholdOptimizer": threshold_optimizer,
    "Against scipy's linprog": linprog,
}


def main() -> None:
    given = parser(__doc__).parse_args()
    used = ("numpy", "scipy", "highspy", "fairlearn", "scikit-learn")
    Page("Post-processing", given.out, *used).run(PARTS, given.quick)


if __name__ == "__main__":
    main()
