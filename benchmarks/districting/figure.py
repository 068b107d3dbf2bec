"""Optimum against tolerance for the French departments, as in the paper's Figure 5."""

import csv
from pathlib import Path

from matplotlib.figure import Figure

HERE = Path(__file__).parent
TOLERANCES = ("20", "10", "5")


def main():
    optima = {}
    for tolerance in TOLERANCES:
        with (HERE / f"france-{tolerance}.csv").open() as file:
            for row in csv.DictReader(file):
                optima.setdefault(row["department"], {})[tolerance] = row["optimum"]
    names = sorted(optima, key=lambda d: (int(optima[d]["20"] or 99), d))
    figure = Figure(figsize=(12, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for tolerance, marker in zip(TOLERANCES, "osx", strict=True):
        solved = [(i, int(optima[d][tolerance])) for i, d in enumerate(names) if optima[d][tolerance]]
        label = f"{tolerance} % ({len(solved)} feasible)"
        axes.plot(*zip(*solved, strict=True), marker, label=label, markersize=5)
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=6)
    axes.set(xlabel="department", ylabel="fewest cut edges")
    axes.legend()
    figure.savefig(HERE / "france.png", dpi=110)


if __name__ == "__main__":
    main()
