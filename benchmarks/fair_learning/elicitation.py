"""The figures of the elicitation paper, on COMPAS with simulated stakeholders."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import forcopt as fo
from benchmarks.report import Page, data, progress, table
from forcopt.fairness import PairwiseFairness
from forcopt.models.fair_classification import FairClassification, Halfspaces
from forcopt.models.fair_classification.instances import stakeholders

GAMMAS = np.linspace(0, 1, 11)
BUDGETS = (0.0, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4)
PEOPLE, SHOWN = 43, 50
LIMIT = 20.0
"""Seconds for one solve; what is found by then is fair, if perhaps not the best."""


def records() -> fo.data.Dataset:
    """The 5829 records of the paper: ProPublica's filter, without race "Other"."""
    found = fo.data.load_compas(data("tabular/compas-scores-two-years.csv"))
    return found.of_groups(*(set(found.groups.tolist()) - {"Other"}))


PATHS = (0.0, 0.2, 0.4, 0.6)
ROUNDS = (1, 10, 30, 100, 300, 1000)


def trajectories(X: np.ndarray, d: fo.data.Dataset, own: list, rounds: tuple[int, ...]) -> list[list[str]]:
    """Error and largest violation of Algorithm 1's average play."""
    columns = []
    for gamma in PATHS:
        notion = PairwiseFairness.from_answers(own, gamma=gamma)
        classes = Halfspaces(search="regression")
        p = FairClassification(X, d.labels, d.groups, notion, None, classes)
        column = []
        for count in rounds:
            s = p.solve("no-regret", rounds=count, accuracy=0.0, bound=20.0, repair=False)
            chance = p.predicted(s.decision)
            worst = (chance[notion.pairs[:, 0]] - chance[notion.pairs[:, 1]]).max()
            column.append(f"{s.objective:.4f} / {worst:.3f}")
        columns.append(column)
        progress("trajectory", gamma, *column)
    return [[str(count), *row] for count, row in zip(rounds, zip(*columns, strict=True), strict=True)]


def main(quick: bool, out: Path) -> None:
    began = time.perf_counter()
    page = Page("Fair learning: elicited constraints", out, "numpy", "scipy", "highspy", note="One thread.")
    d = records()
    X, race = d.features, np.array(sorted(set(d.groups.tolist())))
    X = np.column_stack([X, d.groups[:, None] == race])  # the paper's features hold the race
    answers = stakeholders(d.features, d.groups, PEOPLE, SHOWN, seed=0)
    people = range(6 if quick else PEOPLE)
    gammas = GAMMAS[::5] if quick else GAMMAS

    def solve(own: list, gamma: float, budget: float) -> fo.Solution:
        notion = PairwiseFairness.from_answers(own, gamma=float(gamma), budget=float(budget))
        classes = Halfspaces(search="regression")
        return FairClassification(X, d.labels, d.groups, notion, None, classes).solve(
            accuracy=1e-4, time_limit=LIMIT
        )

    errors, counts, opposing, gaps = [], [], [], []
    for person in people:
        own = [a for a in answers if a[0] == person]
        held = [(i, j) for _, i, j, answer in own if answer == "same"]
        if not held:
            continue
        found = [solve(own, gamma, 0.0) for gamma in gammas]
        errors.append([s.objective for s in found])
        counts.append(2 * len(held))
        opposing.append(sum(d.labels[i] != d.labels[j] for i, j in held))
        rates = [
            s.problem.rates(s.problem.predicted(s.decision)).rate(fo.fairness.FALSE_POSITIVE) for s in found
        ]
        names = found[0].problem.groups.names
        a, b = names.index("African-American"), names.index("Caucasian")
        gaps.append([abs(r[a] - r[b]) for r in rates])
        progress(person, counts[-1], *(f"{e:.4f}" for e in errors[-1]))
    E, G = np.array(errors), np.array(gaps)
    at = int(np.argmin(np.abs(gammas - 0.3)))
    correlation = np.corrcoef(counts, E[:, at])[0, 1], np.corrcoef(opposing, E[:, at])[0, 1]
    panel = []
    everybody = [a for a in answers if a[0] in people]
    for budget in BUDGETS[::4] if quick else BUDGETS:
        s = solve(everybody, 0.0, budget)
        panel.append([f"{budget:g}", f"{s.objective:.4f}"])
        progress("panel", *panel[-1])
    curve = [
        [f"{g:.1f}", *(f"{v:.4f}" for v in (e.min(), e.mean(), e.max(), gap.mean()))]
        for g, e, gap in zip(gammas, E.T, G.T, strict=True)
    ]
    scatter = sorted(zip(counts, opposing, E[:, at], strict=True))
    paths = trajectories(X, d, [a for a in answers if a[0] == 0], (10, 100) if quick else ROUNDS)
    base = min(d.labels.mean(), 1 - d.labels.mean())
    facts = [
        ["records, base rate", "5829, 46 %", f"{len(d)}, {d.labels.mean():.2%}"],
        ["error without constraints", "0.32", f"{E[:, -1].min():.4f}"],
        ["largest error of a subject", "0.5 as printed", f"{E.max():.4f} (a constant errs {base:.4f})"],
        [f"correlation of error (gamma {gammas[at]:.1f}) with constraints", "0.69", f"{correlation[0]:.2f}"],
        ["the same with opposing pairs", "0.489", f"{correlation[1]:.2f}"],
        ["constraints of all subjects", "1432", f"{sum(counts)} ordered"],
    ]
    page.write(
        f"{len(E)} simulated subjects (`stakeholders` of the generators), {SHOWN} pairs each, answers "
        "symmetric; a classifier for each subject and gamma, budget 0, in-sample, by column generation (at "
        f"most {LIMIT:g} s) over the linear threshold heuristic of the paper. The subjects are simulated, "
        f"so only ranges and signs can be compared with the paper. {time.perf_counter() - began:.0f} s in "
        "all.\n\n"
        + table(["", "paper", "here"], facts)
        + "\n## Error against gamma (figures 2b and 2e)\n\n"
        + table(["gamma", "least error", "mean", "largest", "mean difference of false positive rates"], curve)
        + "\n## All subjects together, gamma 0\n\n"
        + table(["budget", "error"], panel)
        + "\n## Trajectories of the first subject (figure 2a)\n\nAlgorithm 1: error / largest violation of "
        "the average play after so many rounds, with prices of at most 20.\n\n"
        + table(["rounds", *(f"gamma {g:g}" for g in PATHS)], paths)
        + f"\n## Constraints and error at gamma {gammas[at]:.1f} (figures 2c and 2d)\n\n"
        + table(
            ["constraints", "opposing pairs", "error"],
            [[str(c), str(o), f"{e:.4f}"] for c, o, e in scatter],
        )
    )
