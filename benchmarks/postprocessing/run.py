"""Runs the post-processing benchmark and writes a Markdown table.

    python benchmarks/postprocessing/run.py --out benchmarks/postprocessing/results.md

Everything is seeded. ``--quick`` does a small part of each table, for checking that it runs; ``--workers``
shares the sweeps among processes. Parts whose data file is missing are left out, with a line that says so;
a part that is done is written at once.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import time
import warnings
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
from scipy.stats import t as student

import forcopt as fo
from forcopt.data import Dataset, load_adult, load_compas
from forcopt.fairness import ERROR, EqualizedOdds, GroupRates
from forcopt.models import CalibratedEqualErrors, FairPostprocessing
from forcopt.models.fair_postprocessing.dp_postprocessing import privacy_cost
from forcopt.privacy import Laplace, RandomizedResponse

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "tabular"
RACES = ("African-American", "Caucasian")
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
GAMMAS = (0.0, 0.02, 0.05, 0.1)


def table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


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

    data = load_adult(DATA / "adult.csv")
    held_out = np.random.default_rng(0).random(len(data)) < 0.5
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    model.fit(data.features[~held_out], data.labels[~held_out])
    return data, model.predict_proba(data.features)[:, 1], held_out


@cache
def compas() -> tuple[Dataset, np.ndarray]:
    data = load_compas(DATA / "compas-scores-two-years.csv").of_groups(*RACES)
    return data, data.frame["decile_score"].to_numpy()


@cache
def instances() -> dict[str, FairPostprocessing]:
    counts, names = fo.data.compas_counts()
    found = {"COMPAS": FairPostprocessing(counts=counts, groups=names, constraint=EqualizedOdds())}
    if (DATA / "adult.csv").exists():
        data, scores, rest = adult()
        found["Adult"] = FairPostprocessing.from_predictions(
            scores[rest] >= 0.5, data.groups[rest], data.labels[rest], EqualizedOdds()
        )
    return found


def with_privacy(p: FairPostprocessing, privacy: Laplace, gamma: float) -> FairPostprocessing:
    return FairPostprocessing(
        counts=p.counts, groups=p.groups, constraint=EqualizedOdds(gamma), privacy=privacy
    )


# -- parts ---------------------------------------------------------------------------------------------------


def private(quick: bool, workers: int) -> str:
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
    for name, base in instances().items():
        p = with_privacy(base, Laplace(1.0), 0.0)
        began = time.perf_counter()
        if workers > 1:
            with ProcessPoolExecutor(workers) as executor:
                done = fo.sweep(p, over, ["dp-postprocessing"], seeds=range(draws), executor=executor)
        else:
            done = fo.sweep(p, over, ["dp-postprocessing"], seeds=range(draws))
        spent = time.perf_counter() - began
        rows = []
        frame = done.to_pandas()
        for (epsilon, gamma), runs in frame.groupby(list(over)):
            q = with_privacy(base, Laplace(epsilon), gamma)
            best, cost = q.solve("lp").objective, privacy_cost(q)
            known = runs[runs["status"] == "approximate"]
            gaps = known["largest disparity"]
            excess = (known["objective"] - best).max()
            row = [f"{epsilon:g}", f"{gamma:g}", f"{best:.4f}", interval(known["objective"]), f"{excess:.4f}"]
            row += [bounded(cost.error), interval(gaps), f"{(gaps - gamma).max():.4f}"]
            rows.append([*row, bounded(max(cost.disparity.values())), str(len(runs) - len(known))])
        n, least = int(base.counts.sum()), int(base.counts.sum(axis=0).min())
        text += f"### {name}: {n:,} records, {least:,} in the smallest cell\n\n{table(head, rows)}\n"
        text += f"{len(frame):,} private solves in {spent:.0f} s: {spent / len(frame) * 1e3:.1f} ms each.\n\n"
    return text


def demographics(quick: bool, workers: int) -> str:
    """Adult with sex reported through randomized response: error and true disparity on held-out people."""
    if not (DATA / "adult.csv").exists():
        return "adult.csv is missing.\n"
    data, scores, held_out = adult()
    predicted, codes = (scores >= 0.5).astype(int), (data.groups == "Male").astype(int)
    repetitions = 3 if quick else 20
    rows = []
    for epsilon in (1.0,) if quick else (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0):
        channel = RandomizedResponse(epsilon)
        seen: dict[str, list[tuple[float, float]]] = {"step 2": [], "reports taken for groups": []}
        failed = 0
        for seed in range(repetitions):
            rng = np.random.default_rng([1, seed])
            tune = held_out & (rng.random(len(data)) < 0.5)
            test = held_out & ~tune
            truth = FairPostprocessing.from_predictions(
                predicted[test], codes[test], data.labels[test], EqualizedOdds()
            )
            reports = channel.privatize(codes[tune], 2, seed=rng)
            for name, groups in (("step 2", channel.observe(reports)), ("reports taken for groups", reports)):
                try:
                    p = FairPostprocessing.from_predictions(
                        predicted[tune], groups, data.labels[tune], EqualizedOdds(1e-4)
                    )
                except fo.DeclarationError:  # a negative estimated cell
                    failed += 1
                    continue
                made = p.solve().decision.probabilities
                of_truth = made @ channel.transition(2)
                judged = truth.evaluate(of_truth)
                seen[name].append((judged.objective, judged.metrics["largest disparity"]))
        row = [f"{epsilon:g}"]
        for values in seen.values():
            row += [interval(v[0] for v in values), interval(v[1] for v in values)]
        rows.append([*row, str(failed)])
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
    return note + table(head, rows)


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


def threshold_optimizer(quick: bool, workers: int) -> str:
    """Fairlearn's ThresholdOptimizer on the same predictions, and on the scores, side by side."""
    if not (DATA / "compas-scores-two-years.csv").exists():
        return "compas-scores-two-years.csv is missing.\n"
    data, deciles = compas()
    sets = {"COMPAS": (deciles.astype(float), deciles >= 5, data.labels, data.groups)}
    if (DATA / "adult.csv").exists():
        people, scores, rest = adult()
        twentieths = np.digitize(scores, np.quantile(scores[rest], np.arange(1, 20) / 20))
        sets["Adult"] = (
            twentieths[rest].astype(float),
            scores[rest] >= 0.5,
            people.labels[rest],
            people.groups[rest],
        )
    rows = []
    grids = (1_000,) if quick else (1_000, 100_000)
    for name, (scores, predictions, labels, groups) in sets.items():
        fit = np.random.default_rng(2).random(len(labels)) < 0.5
        for what, x, ours in (
            ("predictions", predictions.astype(float), from_predictions),
            ("scores", scores, from_scores),
        ):
            runs = {"forcopt": partial(ours, x, labels, groups, fit)}
            for grid in grids:
                runs[f"fairlearn, grid {grid:,}"] = partial(fairlearn, x, labels, groups, fit, grid)
            first = None
            for who, run in runs.items():
                found = [run() for _ in range(1 if quick else 5)]
                spent = min(f[0] for f in found)
                first = first or spent
                row = [f"{name}, {fit.sum():,} records, {what}", who]
                row += [f"{spent * 1e3:.1f} ms", f"{spent / first:.1f}"]
                for part in (fit, ~fit):
                    judged = GroupRates.from_records(found[0][1][part], groups[part], labels[part])
                    gap = max(EqualizedOdds().disparity(judged).values())
                    row += [f"{judged.overall(ERROR):.6f}", f"{gap:.4f}"]
                rows.append(row)
    head = ["what", "who", "least of five runs", "ratio", "error", "disparity"]
    head += ["error, held out", "disparity, held out"]
    note = """Equal odds at γ = 0, fitted to half of the records and judged on either half. From predictions
both know only 0 or 1. From scores (COMPAS deciles; twenty quantiles of Adult's) a predictor may draw
between any cutoffs: fairlearn takes the hull of the cutoffs' rates and searches a grid of false positive
rates; the linear program may accept any set of scores, which gains nothing on the records it is fitted to
and may be worse on others than the cutoffs of the hull. Counting the records is part of either time.

"""
    return note + table(head, rows)


def linprog(quick: bool, workers: int) -> str:
    """Random tables of up to 50 groups, against scipy's linprog on the same program, rows built by numpy."""
    from scipy.optimize import linprog as solve

    sizes = (2, 5, 10, 20, 50)
    each = 4 if quick else 200
    rng = np.random.default_rng(6)
    rows, worst = [], 0.0
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
        row = [str(groups), str(each), f"{ours / each * 1e3:.2f} ms", f"{theirs / each * 1e3:.2f} ms"]
        rows.append([*row, f"{ours / theirs:.2f}", f"{difference:.1e}"])
    head = ["K", "programs", "forcopt, mean", "linprog, mean", "ratio", "largest difference of the error"]
    note = f"""Both solve the same rows with HiGHS, `0 <= rate - level <= γ`. Ours is the whole of `solve`:
the declaration checked, model, program, solver, and the answer judged again. Largest difference in all:
{worst:.1e}.

"""
    return note + table(head, rows)


PARTS = {
    "Private post-processing (Jagielski et al. 2019, Algorithm 1)": private,
    "Private demographics (Mozannar et al. 2020, step 2) on Adult": demographics,
    "Against fairlearn's ThresholdOptimizer": threshold_optimizer,
    "Against scipy's linprog": linprog,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--workers", type=int, default=1, help="processes for the sweeps")
    parser.add_argument("--load", default="", help="a word on what else the machine was doing, for the table")
    options = parser.parse_args()
    packages = ", ".join(
        f"{n} {version(n)}" for n in ("numpy", "scipy", "highspy", "fairlearn", "scikit-learn")
    )
    text = "# Post-processing\n\n"
    text += f"{datetime.date.today()}, Python {platform.python_version()}, {packages}, {platform.machine()}, "
    text += f"{os.cpu_count()} cores. Made by `python benchmarks/postprocessing/run.py`. {options.load}\n"
    for title, part in PARTS.items():
        text += f"\n## {title}\n\n{part(options.quick, options.workers)}"
        print(f"{title}: done", flush=True)
        if options.out:
            options.out.write_text(text)
    if not options.out:
        print(text)


if __name__ == "__main__":
    main()
