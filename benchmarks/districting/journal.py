"""The rows that a part has measured, kept as they end."""

from __future__ import annotations

import csv
import datetime
from pathlib import Path

from benchmarks.report import Others, progress


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a file; none if it is not there."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


class Journal:
    """Collects rows in ``NAME.part.csv``, which becomes ``NAME.csv`` when the run has ended.

    An interrupted run goes on where it was; one that had ended is measured anew. Every row says on which
    day and under what load of the machine it was measured.
    """

    def __init__(self, folder: Path, name: str, *keys: str) -> None:
        self.path, self.part = folder / f"{name}.csv", folder / f"{name}.part.csv"
        self.keys = keys
        self.known = {tuple(row[k] for k in keys) for row in read(self.part)}
        self.others = Others()

    def __contains__(self, key: tuple[object, ...]) -> bool:
        return tuple(map(str, key)) in self.known

    def add(self, row: dict[str, object]) -> None:
        """Write a row, and show it."""
        row |= {"date": datetime.date.today(), "load": f"{self.others.load():.1f}"}
        self.others = Others()
        begun = self.part.exists()
        with self.part.open("a", newline="") as file:
            writer = csv.DictWriter(file, list(row))
            if not begun:
                writer.writeheader()
            writer.writerow(row)
        self.known.add(tuple(str(row[k]) for k in self.keys))
        progress(*row.values())

    def finish(self) -> None:
        """The rows are all there: they replace those of the run before."""
        self.part.replace(self.path)
