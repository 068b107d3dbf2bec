"""The test pool of sortition-algorithms, by its methods and by ours; called by run.py for pools.md.

The pool comes from the source distribution on PyPI, by pip. It has 150 invented people, four features with 20
quotas, and a panel of 22.
"""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.report import Page, progress, table
from forcopt.models.leximax_cohort import LeximaxCohort
from forcopt.models.leximax_cohort.panel import gini

__all__ = ["main", "own_pool"]

SIZES = (22,)
FILES = ("tests/fixtures/candidates.csv", "tests/fixtures/features.csv")


def own_pool(python: str, number: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The candidates and the quotas in the tests of the peer's source distribution."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = ["--no-deps", "--no-binary", "sortition-algorithms", f"sortition-algorithms=={number}"]
        command = [python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*command, "--dest", folder, *wanted], check=True)
        found = next(Path(folder).glob("*.tar.gz"))
        with tarfile.open(found) as archive:
            top = archive.getnames()[0].split("/")[0]
            texts = [archive.extractfile(f"{top}/{name}").read().decode() for name in FILES]
    first, second = (pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False) for text in texts)
    return first, second


def panels(
    python: str, number: str, peer: Callable[[str, str, dict[str, Any]], dict[str, Any]], limit: float
) -> str:
    """The table: seconds, the smallest probability, the second level, and the Gini coefficient."""
    people, quotas = own_pool(python, number)
    rows = []
    for size in SIZES:
        p = LeximaxCohort.from_candidates(people, quotas, size, identifier="nationbuilder_id")
        s = p.solve("column-generation", time_limit=limit)
        levels = s.decision.levels
        rows.append(
            cells(f"{len(people)}, {size}", "forcopt column-generation", s.seconds, str(s.status), levels)
        )
        plain = json.loads(json.dumps(p.to_dict()))
        del plain["utilities"]
        for method in ("leximin", "maximin", "nash"):
            r = peer("panel", method, {"count": len(people), "size": size, **plain})
            name = f"sortition-algorithms {method}"
            found = None if r["levels"] is None else np.array(r["levels"])
            rows.append(cells(f"{len(people)}, {size}", name, r["seconds"], r["status"], found))
    head = [
        "people, panel",
        "method",
        "seconds",
        "status",
        "smallest probability",
        "people at 0",
        "Gini coefficient",
    ]
    return table(head, rows)


def cells(size: str, name: str, seconds: float, status: str, levels: np.ndarray | None) -> list[str]:
    """A row of the table."""
    numbers = ["", "", ""]
    if levels is not None:
        numbers = [f"{levels.min():.6f}", str(int((levels < 1e-9).sum())), f"{gini(levels):.4f}"]
    found = [size, name, f"{seconds:.3g}", status, *numbers]
    progress(*found)
    return found


def main(python: str, number: str, peer: Callable[..., dict[str, Any]], limit: float, out: Path) -> None:
    """Write the page."""
    page = Page(
        "A pool of sortition-algorithms", out, "numpy", "highspy", note=f"sortition-algorithms {number}."
    )
    text = (
        "The candidates and quotas in the tests of sortition-algorithms. Its leximin needs Gurobi. A larger "
        "smallest probability is better, a smaller Gini coefficient is more equal.\n\n"
    )
    page.write(text + panels(python, number, peer, limit))
