"""Figure 1 of Jagielski et al. (2019): error and fairness violation on Communities and Crime."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np

from benchmarks.fair_learning.privacy import Split, interval, oracle, postprocessing, prepared
from benchmarks.report import Page, data, progress, table
from forcopt.data import load_communities
from forcopt.fairness import EqualizedOdds
from forcopt.models.fair_classification import FairClassification, Halfspaces
from forcopt.privacy import PrivacyBudget

GAMMAS = tuple(k / 50 for k in range(11))  # a classifier without constraint differs by less than .2
FLOOR, DELTA, BOUND, ROUNDS, COPIES = 100, 1e-7, 10.0, 100, 10
POSTPROCESSING = (0.1, 0.5, 1.0, 5.0)
LISTED = (10.0, 100.0, 1000.0)
REGRESSION = (1e5, 1e6, 1e7, 1e8)
PANELS = ("oracle learner, private regressions", "oracle learner, listed cuts", "post-processing")
Found = list[tuple[float, float]]


def halfspaces(split: Split, epsilon: float | None, gamma: float, seeds: int, copies: int = 1) -> Found:
    """Algorithm 3 with regressions as in section 5, on copies of the records; without epsilon Algorithm 5."""
    x, y, a = split.x[0], split.y[0], split.a[0]
    problem = FairClassification(
        np.tile(x, (copies, 1)),
        np.tile(y, copies),
        np.tile(a, copies),
        EqualizedOdds(gamma),
        None,
        Halfspaces(search="regression"),
        None if epsilon is None else PrivacyBudget(epsilon, DELTA, floor=copies * split.floor),
    )
    found = []
    for seed in range(seeds if epsilon else 1):
        private = {"seed": seed, "allow_vacuous": True} if epsilon else {}
        method = "dp-oracle-learner" if epsilon else "exponentiated-gradient"
        s = problem.solve(method, bound=BOUND, rounds=ROUNDS, **private)
        rates = problem.rates(s.decision.probability(problem.features))
        found.append((s.objective, max(problem.constraint.disparity(rates).values())))
    return found


def measured(
    split: Split, seeds: int, gammas: tuple[float, ...]
) -> dict[tuple[str, float | None], list[Found]]:
    """For each panel and epsilon, the runs for each gamma."""
    found: dict[tuple[str, float | None], list[Found]] = {}
    for epsilon in (*REGRESSION, None):
        found[PANELS[0], epsilon] = [halfspaces(split, epsilon, g, seeds) for g in gammas]
        progress(PANELS[0], epsilon)
    for epsilon in (*LISTED, None):
        found[PANELS[1], epsilon] = [oracle(split, epsilon, g, seeds)[0] for g in gammas]
        progress(PANELS[1], epsilon)
    for epsilon in (*POSTPROCESSING, None):
        found[PANELS[2], epsilon] = [postprocessing(split, epsilon, g, seeds) for g in gammas]
        progress(PANELS[2], epsilon)
    return found


def name_of(panel: str, epsilon: float | None) -> str:
    """Epsilon, and for the oracle learner the epsilon of ten copies of the records."""
    if epsilon is None:
        return "not private"
    upsampled = "" if panel == PANELS[2] else f" (ε' = {epsilon / COPIES:g})"
    return f"ε = {epsilon:g}{upsampled}"


def picture(path: Path, found: dict[tuple[str, float | None], list[Found]]) -> None:
    """Error against violation, a curve for each epsilon."""
    from matplotlib.figure import Figure
    from PIL import Image

    figure = Figure(figsize=(11.0, 3.5), layout="constrained")
    for ax, panel in zip(figure.subplots(1, 3), PANELS, strict=True):
        for i, (of, epsilon) in enumerate(k for k in found if k[0] == panel):
            points = np.array([np.mean(runs, axis=0) for runs in found[of, epsilon] if runs])
            color = "black" if epsilon is None else f"C{i}"
            label = name_of(panel, epsilon)
            ax.plot(points[:, 0], points[:, 1], marker="o", markersize=3, color=color, label=label)
        ax.set(xlabel="error", ylabel="equalized-odds violation", title=panel)
        ax.legend(fontsize=7)
    full = BytesIO()
    figure.savefig(full, dpi=75)
    Image.open(full).convert("RGB").quantize(64).save(path, optimize=True)


def main(quick: bool, out: Path) -> None:
    seeds, gammas = (2, GAMMAS[::5]) if quick else (10, GAMMAS)
    page = Page(
        "Private fair learning on Communities and Crime", out, "numpy", "scipy", "highspy", "scikit-learn",
        note="One thread.",
    )  # fmt: skip
    split = prepared(load_communities(data("tabular/communities.csv")), FLOOR, share=1.0)
    found = measured(split, seeds, gammas)
    about = (
        f"Figure 1 of Jagielski et al. (2019), on all {len(split.y[0]):,} records: equalized odds, error and "
        f"largest disparity on the records themselves, means over {seeds} seeds ± half the 95 % interval. "
        "The paper does not say which groups it takes; here a community's group is whether its share of "
        "Black residents is above the median. "
        f"Every cell has at least {FLOOR} records; δ = {DELTA:g}, B = {BOUND:g}. ε' is the epsilon of "
        f"{COPIES} copies of the records. *Private regressions* is the paper's oracle, in {ROUNDS} rounds; "
        f"its noise is on the products of {split.x[0].shape[1]} features and costs. *Listed cuts* chooses "
        f"among {len(split.table[0]):,} cuts of logistic scores by the "
        "exponential mechanism (Theorem 4.5). Without privacy the first is Algorithm 5, the others are "
        "linear programs.\n"
    )
    body = [about]
    for panel in PANELS:
        curves = [k for k in found if k[0] == panel]
        rows = []
        for j, gamma in enumerate(gammas):
            for k, measure in enumerate(("error", "violation")):
                cells = [interval([f[k] for f in found[curve][j]]) for curve in curves]
                rows.append([f"{gamma:g}", measure, *cells])
        head = ["γ", "", *(name_of(*curve) for curve in curves)]
        body.append(f"## {panel[0].upper()}{panel[1:]}\n\n{table(head, rows)}")
    rows = []
    for epsilon in REGRESSION[1:3]:
        for gamma in gammas[:: len(gammas) // 2]:
            cells = []
            for copies in (1, COPIES):
                runs = halfspaces(split, epsilon / copies, gamma, seeds, copies)
                cells += [interval([f[k] for f in runs]) for k in (0, 1)]
            rows.append([f"{epsilon:g}, {epsilon / COPIES:g}", f"{gamma:g}", *cells])
            progress("copies", epsilon, gamma)
    head = ["ε of one copy, of ten", "γ", "error", "violation", "error, ten copies", "violation, ten copies"]
    body.append(f"## Ten copies at a tenth of epsilon\n\n{table(head, rows)}")
    picture(out.with_suffix(".png"), found)
    page.write("\n".join(body) + f"\n![Error and violation by epsilon]({out.stem}.png)\n")
