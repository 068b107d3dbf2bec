"""Lexicographically fair learning: gaps of what is learned, and group losses on real data, with a picture."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

import forcopt as fo
from benchmarks.report import Page, data, progress, table
from forcopt.models import LexifairClassification, LexifairRegression
from forcopt.models.lexifair import Finite, GroupModel, Stumps, groups_of, random_regression
from forcopt.models.lexifair.problem import Lexifair

# -- learning against exact --------------------------------------------------------------------------------


def recursive_gap(problem: Lexifair, losses: np.ndarray) -> float:
    """The largest gap of a level to the least it can be if no earlier one is larger: over who may be where.

    The least eps of an eps-tradeoff and of an eps-recursive solution (Henzinger et al., 2022, Theorem 11).
    A sorted vector is at most a given one at its first i - 1 places if some i - 1 groups are below those
    limits, each below another, and all others are below the i-th loss: one convex program for each order.
    """
    ordered = -np.sort(-losses)
    gap = 0.0
    backend = "highs" if isinstance(problem, LexifairClassification) else "clarabel"
    for i in range(len(ordered)):
        best = np.inf
        for first in permutations(range(len(ordered)), i):
            m = fo.Model()
            loss, _, _ = problem.write(m)
            top = m.variable("top")
            rest = [k for k in range(len(ordered)) if k not in first]
            for place, k in enumerate(first):
                m.subject_to(loss[k] <= ordered[place] + 1e-9)
            m.subject_to(*(loss[k] <= top for k in rest))
            m.minimize(top)
            s = m.solve(backend)
            if s.status == "optimal":
                best = min(best, s.objective)
        gap = max(gap, ordered[i] - best)
    return gap


def mixture_instances(quick: bool) -> Iterator[tuple[str, Lexifair]]:
    def of(losses: Any) -> LexifairClassification:
        array = np.asarray(losses, dtype=float)
        count = array.shape[1]
        groups = [[k] for k in range(count)]
        return LexifairClassification(labels=np.zeros(count), groups=groups, hypotheses=Finite(array))

    yield "the paper's, a = 0.1", of([(0.5, 0.5, 0), (0.7, 0, 0.5)])
    yield "many minimax mixtures", of([(0.4, 0.4, 0.3), (0.4, 0.2, 0.4), (0.6, 0, 0)])
    rng = np.random.default_rng(6)
    for number in range(1 if quick else 2):
        yield f"random mixtures, 8 models, 4 groups, {number + 1}", of(rng.random((8, 4)))
    for number in range(1 if quick else 2):
        yield (
            f"least squares, 4 groups, d = 4, {number + 1}",
            random_regression(120, 4, 4, seed=number, radius=2.0),
        )


def learning(quick: bool) -> str:
    """Gaps of what is learned, in units of loss."""
    rows = []
    alphas = (0.1, 0.01) if quick else (0.1, 0.03, 0.01)
    for name, problem in mixture_instances(quick):
        count = len(problem.groups)
        exact = problem.solve().decision
        equal = problem.best_response(np.full(count, 1 / count))
        models: list[tuple[str, Any]] = [("least mean loss", equal)]
        began = time.perf_counter()
        models.append(("minimax only", problem.replace(levels=1).solve()))
        models += [(f"no-regret, α = {a}", problem.solve("no-regret", alpha=a)) for a in alphas]
        if isinstance(problem, LexifairClassification):
            models += [
                (f"ftpl, α = {a}", problem.solve("ftpl", alpha=a, seed=0, rounds=8000)) for a in (0.1, 0.05)
            ]
        models += [("column-generation", problem.solve())]
        formulation = "highs" if isinstance(problem, LexifairClassification) else "clarabel"
        models += [("compact", problem.solve("compact", backend=formulation))]
        for label, found in models:
            model: GroupModel = found if isinstance(found, GroupModel) else found.decision
            solved = not isinstance(found, GroupModel)
            elementwise = float((model.sorted_losses - exact.sorted_losses).max())
            audited = max(level.alpha for level in problem.audit(model))
            proved = f"{model.alphas.max():.1e}" if len(model.levels) == count else ""
            rows.append(
                [
                    name,
                    label,
                    f"{found.seconds:.2f} s" if solved else "",
                    f"{found.iterations:,}" if solved else "",
                    f"{elementwise:.1e}",
                    f"{recursive_gap(problem, model.losses):.1e}",
                    f"{audited:.1e}",
                    proved,
                ]
            )
            progress(*rows[-1], f"{time.perf_counter() - began:.1f} s")
            name = ""
    head = ["instance", "method", "time", "rounds", "elementwise gap", "tradeoff = recursive gap"]
    return table([*head, "α of the sums (audit)", "α proved by itself"], rows)


# -- real data ----------------------------------------------------------------------------------------------


def communities() -> tuple[LexifairRegression, np.ndarray]:
    """Violent crime high or not, by least squares; groups: is the share of a race above its median?"""
    records = fo.data.load_communities(data("tabular/communities.csv"))
    share = {
        "Black": "racepctblack",
        "white": "racePctWhite",
        "Asian": "racePctAsian",
        "Hispanic": "racePctHisp",
    }
    columns = {
        name: np.where(records.frame[c] > records.frame[c].median(), "many", "few")
        for name, c in share.items()
    }
    X = np.column_stack([records.features, np.ones(len(records))])
    return LexifairRegression(features=X, labels=records.labels, **groups_of(**columns)), X


def lawschool() -> tuple[LexifairClassification, np.ndarray]:
    """The bar passed at the first attempt, by mixtures of thresholds; groups by race and by gender."""
    students, race = races()
    gender = np.where(students.frame["gender"] == 1, "male", "female")
    groups = groups_of(race=race, gender=gender)
    X = students.features
    return LexifairClassification(hypotheses=Stumps(X), labels=students.labels, **groups), X


def own_slopes() -> tuple[LexifairRegression, np.ndarray]:
    """The same by least squares; each race has its own intercept and slopes for test score and grades."""
    students, race = races()
    scores = students.features[:, 1:3] / students.features[:, 1:3].max(axis=0)
    basic = np.column_stack([np.ones(len(students)), scores])
    X = np.hstack(
        [students.features[:, [0, 5, 6, 8]], *(basic * (race == r)[:, None] for r in np.unique(race))]
    )
    return LexifairRegression(features=X, labels=students.labels, **groups_of(race=race)), X


def races() -> tuple[Any, np.ndarray]:
    """The law students and their races, those with fewer than 40 records together."""
    students = fo.data.load_lawschool(data("tabular/lawschool.csv"))
    names, counts = np.unique(students.groups, return_counts=True)
    return students, np.where(np.isin(students.groups, names[counts >= 40]), students.groups, "other")


def part_of(problem: Lexifair, rows: np.ndarray, X: np.ndarray) -> Lexifair:
    """The problem on some of its records."""
    place = np.full(len(problem.labels), -1)
    place[rows] = np.arange(len(rows))
    groups = [[int(i) for i in place[list(g)] if i >= 0] for g in problem.groups]
    common = {"labels": problem.labels[rows], "groups": groups, "names": problem.group_names}
    if isinstance(problem, LexifairRegression):
        return LexifairRegression(features=X[rows], **common)
    return LexifairClassification(hypotheses=Stumps(X[rows]), **common)


def losses_on(test: Lexifair, model: Any, X: np.ndarray) -> np.ndarray:
    """What a model loses on other records, by group."""
    if isinstance(test, LexifairRegression):
        return test.group_losses(model.coefficients)
    return test.averages @ abs(model.probability(X) - test.labels)


def real(quick: bool, picture: Path) -> str:
    """Sorted group losses of the pooled, the minimax and the lexicographically fair model, over splits."""
    splits = 1 if quick else 5
    out, drawn = "", {}
    sets = (
        ("Communities and Crime", communities),
        ("Law school, thresholds", lawschool),
        ("Law school, own slopes", own_slopes),
    )
    for title, load in sets:
        problem, X = load()
        n = len(problem.labels)
        seen: dict[str, list[np.ndarray]] = {}
        overall: dict[str, list[tuple[float, float]]] = {}
        seconds: dict[str, list[float]] = {}
        for seed in range(splits):
            order = np.random.default_rng(seed).permutation(n)
            train_rows, test_rows = np.sort(order[: 2 * n // 3]), np.sort(order[2 * n // 3 :])
            train, test = part_of(problem, train_rows, X), part_of(problem, test_rows, X)
            everyone = train.replace(groups=(tuple(range(len(train_rows))),), names=())
            models: dict[str, Any] = {"unconstrained": everyone.best_response(np.ones(1))}
            for name, levels in (("minimax", 1), ("lexicographically fair", None)):
                s = train.replace(levels=levels).solve()
                models[name] = s.decision
                seconds.setdefault(name, []).append(s.seconds)
            for name, model in models.items():
                inside = -np.sort(-losses_on(train, model, X[train_rows]))
                outside = -np.sort(-losses_on(test, model, X[test_rows]))
                seen.setdefault(name, []).append(np.stack([inside, outside]))
                overall.setdefault(name, []).append(
                    (train.overall_loss(model), _overall(test, model, X[test_rows]))
                )
            progress(title, seed, {k: f"{v[-1]:.1f} s" for k, v in seconds.items()})
        rows = []
        for name in seen:
            mean, spread = np.mean(seen[name], axis=0), np.std(seen[name], axis=0)
            for which, part in enumerate(("train", "held out")):
                total = np.mean([o[which] for o in overall[name]])
                cells = [f"{a:.4f} ± {b:.4f}" for a, b in zip(mean[which], spread[which], strict=True)]
                rows.append([f"{name}, {part}", *cells, f"{total:.4f}"])
        drawn[title] = {name: np.mean(v, axis=0) for name, v in seen.items()}
        head = ["model", *(f"level {j}" for j in range(1, len(problem.groups) + 1)), "all records"]
        timing = ", ".join(f"{k} {np.mean(v):.2f} s" for k, v in seconds.items())
        out += f"### {title}\n\n{(load.__doc__ or '').strip()} {n:,} records, {len(problem.groups)} "
        out += "groups, two thirds to train on; mean ± standard deviation over "
        out += f"{splits} splits. Mean time: {timing}.\n\n"
        out += table(head, rows) + "\n"
    draw(drawn, picture)
    return out + f"![Sorted group losses]({picture.name})\n"


def _overall(test: Lexifair, model: Any, X: np.ndarray) -> float:
    if isinstance(test, LexifairRegression):
        return test.overall_loss(model.coefficients)
    return float(abs(model.probability(X) - test.labels).mean())


def draw(drawn: dict[str, dict[str, np.ndarray]], path: Path) -> None:
    """Two panels: sorted losses, filled where trained and hollow where held out."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 3.6), layout="constrained")
    for axes, (title, models) in zip(figure.subplots(1, len(drawn)), drawn.items(), strict=True):
        for number, (name, (inside, outside)) in enumerate(models.items()):
            place = np.arange(1, len(inside) + 1)
            axes.plot(place, inside, color=f"C{number}", marker="o", label=name)
            axes.plot(place, outside, color=f"C{number}", marker="o", linestyle=":", markerfacecolor="white")
        axes.set(title=title, xlabel="rank of the group", ylabel="mean loss in the group")
        axes.set_ylim(bottom=0)
        axes.plot([], [], color="0.5", linestyle=":", marker="o", markerfacecolor="white", label="held out")
    axes.legend()
    figure.savefig(path, dpi=90)


def main(quick: bool, out: Path) -> None:
    page = Page("Lexicographically fair learning", out, "numpy", "scipy", "highspy", "clarabel")
    text = f"## Learning against exact\n\n{GAPS}\n\n{learning(quick)}"
    page.write(text)
    page.write(f"{text}\n## Real data\n\n{real(quick, out.with_suffix('.png'))}")


GAPS = """Gaps are in units of loss. *Elementwise*: against the exact sorted losses. *Tradeoff* (the same as
recursive): the possible decrease of a level without an increase of an earlier level. *Audit*: the α of
the model with the constant slacks of Definition 5, from the sums of the largest losses; the last column
is the upper bound that the method proved. Games stop when they have proved their α, or after 20,000
rounds for each level (`ftpl`: 8,000)."""
