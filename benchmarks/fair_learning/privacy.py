"""Private fair learning: its tables and a picture beside them."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from benchmarks.report import Page, data, progress, table
from forcopt.data import Dataset, load_adult, load_compas
from forcopt.fairness import ERROR, EqualizedOdds, GroupRates
from forcopt.models import FairPostprocessing
from forcopt.models.fair_classification import FairClassification, Finite, Halfspaces, audit
from forcopt.models.fair_classification.dp_oracle_learner import plan
from forcopt.privacy import PrivacyBudget, RandomizedResponse

RACES = ("African-American", "Caucasian")
GAMMAS = (0.0, 0.02, 0.05, 0.1, 0.2)
POSTPROCESSING = (0.05, 0.1, 0.5, 1.0, 5.0)
ORACLE = (1.0, 10.0, 100.0, 1000.0)
CHANNEL = (0.25, 0.5, 1.0, 1.5, 2.0, 4.0)
LABELLED = (1.0, 0.3, 0.1, 0.03, 0.01)
SHOWN = 0.05  # the gamma of the parts that have only one
BOUND, DELTA = 10.0, 1e-6
CUTS = 21


@dataclass
class Split:
    """Training and held-out records, the base classifier's predictions, and a table of classifiers."""

    name: str
    floor: int
    x: tuple[np.ndarray, np.ndarray]
    y: tuple[np.ndarray, np.ndarray]
    a: tuple[np.ndarray, np.ndarray]
    base: tuple[np.ndarray, np.ndarray]
    table: tuple[np.ndarray, np.ndarray]


def prepared(d: Dataset, floor: int, share: float = 0.7) -> Split:
    """A share to train on and the rest to hold out; a share of 1 is both.

    The classifiers are cuts of logistic scores, which never see the group. One score sees all variables, and
    for each variable one does not see it.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    order = np.random.default_rng(0).permutation(len(d))
    train, test = np.split(order, [int(share * len(order))])
    test = test if len(test) else train
    x = StandardScaler().fit(d.features[train]).transform(d.features)
    variables = [name.partition("=")[0] for name in d.feature_names]
    left_out = [None, *dict.fromkeys(variables)]
    scores = []
    for variable in left_out:
        seen = x[:, [v != variable for v in variables]]
        scores.append(
            LogisticRegression(max_iter=200).fit(seen[train], d.labels[train]).decision_function(seen)
        )
    cuts = [s >= q for s in scores for q in np.quantile(s[train], np.linspace(0, 1, CUTS + 2)[1:-1])]
    classifiers = np.array([np.zeros(len(x)), np.ones(len(x)), *(s >= 0 for s in scores), *cuts]).astype(int)
    base = (scores[0] >= 0).astype(int)
    return Split(
        d.name,
        floor,
        *((of[train], of[test]) for of in (x, d.labels, d.groups, base)),
        (classifiers[:, train], classifiers[:, test]),
    )


def judged(predicted: np.ndarray, split: Split) -> tuple[float, float]:
    """Error and largest disparity of equalized odds on the held-out records."""
    rates = GroupRates.from_records(np.clip(predicted, 0, 1), split.a[1], split.y[1])
    return float(rates.overall(ERROR)), max(EqualizedOdds().disparity(rates).values())


def interval(values: list[float]) -> str:
    """Mean and half the 95 % interval of the mean, by Student's t."""
    if len(values) < 2:
        return f"{np.mean(values):.4f}" if values else "-"
    half = student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.4f} ± {half:.4f}"


def both(found: list[tuple[float, float]]) -> list[str]:
    return [interval([f[k] for f in found]) for k in (0, 1)]


def postprocessing(
    split: Split, epsilon: float | None, gamma: float, seeds: int
) -> list[tuple[float, float]]:
    """Algorithm 1 of Jagielski et al.; without epsilon the optimum."""
    notion = EqualizedOdds(gamma)
    privacy = None if epsilon is None else PrivacyBudget(epsilon)
    problem = FairPostprocessing.from_predictions(
        split.base[0], split.a[0], split.y[0], notion, names=sorted(set(split.a[0])), privacy=privacy
    )
    codes = np.searchsorted(problem.groups, split.a[1])
    found = []
    for seed in range(seeds if epsilon else 1):
        s = problem.solve(**({"seed": seed} if epsilon else {}))
        if s.decision is not None:  # much noise may empty a cell
            found.append(judged(s.decision.probabilities[split.base[1], codes], split))
    return found


def oracle(
    split: Split, epsilon: float | None, gamma: float, seeds: int
) -> tuple[list[tuple[float, float]], str]:
    """Algorithm 3; without epsilon the optimum. The second: rounds, and the gap proved and measured."""
    privacy = None if epsilon is None else PrivacyBudget(epsilon, DELTA, floor=split.floor)
    problem = FairClassification(
        split.x[0][:, :1], split.y[0], split.a[0], EqualizedOdds(gamma), None, Finite(split.table[0]), privacy
    )
    found, gaps = [], []
    for seed in range(seeds if epsilon else 1):
        options = {"seed": seed, "bound": BOUND, "allow_vacuous": True} if epsilon else {}
        s = problem.solve("dp-oracle-learner" if epsilon else "lp", **options)
        predicted = s.decision.weights @ split.table[1][[c.index for c in s.decision.classifiers]]
        found.append(judged(predicted, split))
        if epsilon:
            gaps.append(s.evaluation.metrics["learner gap"] + s.evaluation.metrics["auditor gap"])
    if epsilon is None:
        return found, ""
    planned = plan(problem, bound=BOUND)
    return found, f"{planned.rounds} | {planned.gap:.3g} | {np.mean(gaps):.3g}"


def surface(split: Split, seeds: int, gammas: tuple[float, ...]) -> tuple[str, dict]:
    rows, drawn = [], {}
    for epsilon in (*POSTPROCESSING, None):
        for gamma in gammas:
            found = postprocessing(split, epsilon, gamma, seeds)
            drawn["post-processing", epsilon, gamma] = found
            name = "∞" if epsilon is None else f"{epsilon:g}"
            rows.append([split.name, "dp-postprocessing", name, f"{gamma:g}", *both(found), "", "", ""])
    for epsilon in (*ORACLE, None):
        for gamma in gammas:
            found, told = oracle(split, epsilon, gamma, seeds)
            drawn["oracle learner", epsilon, gamma] = found
            name = "∞" if epsilon is None else f"{epsilon:g}"
            of_plan = told.split(" | ") if told else ["", "", ""]
            rows.append([split.name, "dp-oracle-learner", name, f"{gamma:g}", *both(found), *of_plan])
    head = ["data", "method", "ε", "γ", "error", "disparity", "rounds", "gap proved", "gap measured"]
    return table(head, rows), drawn


def channels(split: Split, seeds: int) -> tuple[str, dict]:
    """Groups by randomized response: step 1 alone, both steps, and one step with the channel inverted."""
    notion, halfspaces = EqualizedOdds(SHOWN), Halfspaces(search="regression")
    names = tuple(sorted(set(split.a[0].tolist())))
    codes = [np.searchsorted(names, a) for a in split.a]
    rows, drawn = [], {}
    for epsilon in (*CHANNEL, 30.0):
        channel = RandomizedResponse(epsilon)
        found: dict[str, list[tuple[float, float]]] = {"step 1 alone": [], "two-step": [], "inverted": []}
        failed = 0
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            reports = np.array(names)[channel.privatize(codes[0], 2, rng)]
            try:
                problem = FairClassification(
                    split.x[0], split.y[0], channel.observe(reports), notion, None, halfspaces
                )
            except ValueError:  # the estimate of a cell is not positive
                failed += 1
                continue
            options = {"seed": rng, "allow_vacuous": True, "negative_cells": "project"}
            two = problem.solve("two-step", **options).decision
            if two is None:
                failed += 1
                continue
            found["two-step"].append(judged(two.for_true_groups().probability(split.x[1], split.a[1]), split))
            naive = FairClassification(split.x[0], split.y[0], reports, notion, None, halfspaces)
            for name, p in (("step 1 alone", naive), ("inverted", problem)):
                s = p.solve("exponentiated-gradient", rounds=50)
                found[name].append(judged(s.decision.probability(split.x[1]), split))
        drawn[epsilon] = found
        for name, results in found.items():
            rows.append([split.name, f"{epsilon:g}", name, *both(results), str(failed)])
    head = ["data", "ε", "method", "error", "disparity", "failed"]
    return table(head, rows), drawn


def audits(split: Split, seeds: int) -> str:
    """The base classifier's disparities: in truth, by reports, and seen through the channel."""
    names = tuple(sorted(set(split.a[0].tolist())))
    codes = np.searchsorted(names, split.a[0])
    truth = EqualizedOdds().disparity(GroupRates.from_records(split.base[0], split.a[0], split.y[0]))
    rows = []
    for epsilon in CHANNEL:
        channel, seen = RandomizedResponse(epsilon), []
        for seed in range(seeds):
            reports = np.array(names)[channel.privatize(codes, 2, seed)]
            try:
                seen.append(audit(split.base[0], split.y[0], reports, channel).rates)
            except ValueError:  # the estimate of a cell is not positive
                continue
        for rate, true in truth.items():
            of = [s[rate] for s in seen]
            within = sum(r.disparity_interval[0] <= true <= r.disparity_interval[1] for r in of)
            columns = [interval([getattr(r, k) for r in of]) for k in ("naive_disparity", "disparity")]
            width = np.mean([np.ptp(r.disparity_interval) for r in of]) if of else np.nan
            rows.append(
                [
                    split.name,
                    f"{epsilon:g}",
                    rate,
                    f"{true:.4f}",
                    *columns,
                    f"{width:.3f}",
                    f"{within} / {len(of)}",
                ]
            )
    head = ["data", "ε", "rate", "true disparity", "naive", "debiased", "mean width of interval", "covered"]
    return table(head, rows)


def missing(split: Split, seeds: int) -> str:
    """Only a random part of the groups is known (section 6 of Mozannar et al.); `known` drops the others."""
    notion, halfspaces = EqualizedOdds(SHOWN), Halfspaces(search="regression")
    rows = []
    for share in LABELLED:
        found: dict[str, list[tuple[float, float]]] = {"all records, some groups": [], "those with group": []}
        for seed in range(seeds):
            known = np.random.default_rng(seed).random(len(split.y[0])) < share
            groups = np.where(known, split.a[0].astype(object), None)
            try:
                some = FairClassification(split.x[0], split.y[0], groups, notion, None, halfspaces)
            except ValueError:  # a cell without a known group
                continue
            only = FairClassification(
                split.x[0][known], split.y[0][known], split.a[0][known], notion, None, halfspaces
            )
            for name, p in zip(found, (some, only), strict=True):
                s = p.solve("exponentiated-gradient", rounds=50)
                found[name].append(judged(s.decision.probability(split.x[1]), split))
        rows += [[split.name, f"{share:.0%}", name, *both(f), str(len(f))] for name, f in found.items()]
    return table(["data", "groups known", "trained on", "error", "disparity", "runs"], rows)


def picture(path: Path, surfaces: dict[str, dict], steps: dict[str, dict]) -> None:
    """Error against disparity for each epsilon, and both against the epsilon of the channel."""
    from matplotlib.figure import Figure
    from PIL import Image

    figure = Figure(figsize=(11.0, 3.3 * len(surfaces)), layout="constrained")
    axes = figure.subplots(len(surfaces), 3, squeeze=False)
    for row, (name, drawn) in zip(axes, surfaces.items(), strict=True):
        for ax, kind in zip(row, ("post-processing", "oracle learner"), strict=False):
            levels = list(dict.fromkeys(k[1] for k in drawn if k[0] == kind))
            for i, epsilon in enumerate(levels):
                points = [np.mean(v, axis=0) for k, v in drawn.items() if k[:2] == (kind, epsilon) and v]
                if points:
                    error, gap = np.array(points).T
                    color = "black" if epsilon is None else f"C{i}"
                    label = "not private" if epsilon is None else f"ε = {epsilon:g}"
                    ax.plot(gap, error, marker="o", markersize=3, color=color, label=label)
            ax.set(xlabel="disparity, held out", ylabel="error, held out", title=f"{name}: {kind}")
            ax.legend(fontsize=7)
        for j, method in enumerate(("step 1 alone", "two-step", "inverted")):
            at = [(e, np.array(f[method])) for e, f in steps[name].items() if len(f[method]) > 1 and e < 30]
            epsilons = [e for e, _ in at]
            error, mean = np.array([v.mean(axis=0) for _, v in at]).reshape(-1, 2).T
            half = [student.ppf(0.975, len(v) - 1) * v[:, 1].std(ddof=1) / np.sqrt(len(v)) for _, v in at]
            row[2].plot(epsilons, mean, color=f"C{j}", label=f"{method}: disparity")
            row[2].fill_between(epsilons, mean - half, mean + half, color=f"C{j}", alpha=0.2, linewidth=0)
            row[2].plot(epsilons, error, color=f"C{j}", linestyle=":", label=f"{method}: error")
        row[2].set(
            xscale="log", xlabel="ε of the reports", title=f"{name}: groups by reports", ylim=(0, 0.55)
        )
        row[2].set_xticks(CHANNEL, [f"{e:g}" for e in CHANNEL])
        row[2].set_xticks([], minor=True)
        row[2].legend(fontsize=7)
    full = BytesIO()
    figure.savefig(full, dpi=75)
    Image.open(full).convert("RGB").quantize(64).save(path, optimize=True)  # a palette is enough


def main(quick: bool, out: Path) -> None:
    seeds, gammas = (2, GAMMAS[:3:2]) if quick else (10, GAMMAS)
    used = ("numpy", "scipy", "highspy", "scikit-learn", "dp-accounting")
    page = Page("Private fair learning", out, *used, note="One thread.")
    text = (
        f"Equalized odds; error and largest disparity on the 30 % held out; mean over {seeds} seeds ± half "
        "the 95 % interval of the mean. The noise is simulated from seeds; the means omit runs in which the "
        "noise empties a cell.\n"
    )
    compas = load_compas(data("tabular/compas-scores-two-years.csv")).of_groups(*RACES)
    splits = {"compas": prepared(compas, floor=500)}
    if not quick:
        splits["adult"] = prepared(load_adult(data("tabular/adult.csv")), floor=700)
    surfaces, steps = {}, {}

    def part(title: str, about: str, body: str) -> None:
        nonlocal text
        text += f"\n## {title}\n\n{about}{body}"
        page.write(text)
        progress(title)

    for name, split in splits.items():
        body, surfaces[name] = surface(split, seeds, gammas)
        about = (
            f"dp-oracle-learner chooses among {len(split.table[0])} cuts of logistic scores, "
            f"δ = {DELTA:g}, B = {BOUND:g}, every cell has at least {split.floor} records. ε = ∞ is "
            "the exact optimum of the linear program.\n\n"
        )
        part(f"Privacy, fairness, accuracy: {name}", about, body)
    for name, split in splits.items():
        body, steps[name] = channels(split, seeds)
        about = (
            f"Halfspaces by regression, γ = {SHOWN:g}. *Step 1 alone* learns from all reports as if they "
            "were true groups. *Two-step* learns from half of the reports and post-processes by the other "
            "half. *Inverted* is one step, by exponentiated gradient, on rates estimated by inverting the "
            "channel. At ε = 30 there is no noise.\n\n"
        )
        part(f"Groups by randomized response: {name}", about, body)
    for name, split in splits.items():
        part(f"Audit of the base classifier: {name}", "", audits(split, seeds))
    for name, split in splits.items():
        part(f"Groups missing at random: {name}", f"γ = {SHOWN:g}.\n\n", missing(split, seeds))
    picture(out.with_suffix(".png"), surfaces, steps)
    page.write(f"{text}\n![Private fair learning]({out.stem}.png)\n")
