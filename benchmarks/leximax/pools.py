"""Panels beside sortition-algorithms, in one run: our leximin, and its maximin, which is the first level.

    python benchmarks/leximax/pools.py --out benchmarks/leximax/pools.md

The first pool is the one in the tests of sortition-algorithms, from its source distribution on PyPI: 150
invented people, four features with 20 quotas, a panel of 22. The other pools of four features resample its
people, with quotas of two places about the share in the pool, as the peer's benchmark does. The rest are
random.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # on small matrices, threads only wait
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import pandas as pd

from benchmarks.report import Page, environment, parser, progress, table
from forcopt.models.leximax_cohort import LeximaxCohort, random_panel
from forcopt.models.leximax_cohort.panel import gini

NUMBER = "0.12.15"
PEERS = {"sortition-algorithms": NUMBER, "highspy": "1.16.0"}
LIMIT = 1500.0  # seconds for one solve, ours or the peer's
RESAMPLED = ((300, 45), (500, 75), (750, 112))
FILES = ("tests/fixtures/candidates.csv", "tests/fixtures/features.csv")
HERE = Path(__file__).resolve().parent


def own_pool(python: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The candidates and the quotas in the tests of the peer's source distribution."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = ["--no-deps", "--no-binary", "sortition-algorithms", f"sortition-algorithms=={NUMBER}"]
        command = [python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*command, "--dest", folder, *wanted], check=True)
        found = next(Path(folder).glob("*.tar.gz"))
        with tarfile.open(found) as archive:
            top = archive.getnames()[0].split("/")[0]
            texts = [archive.extractfile(f"{top}/{name}").read().decode() for name in FILES]
    first, second = (pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False) for text in texts)
    return first, second


def resampled(p: LeximaxCohort, people: int, size: int) -> LeximaxCohort:
    """People like those of a pool; each quota is the share in the pool, two places down and up."""
    who = np.random.default_rng(people).integers(0, len(p.names), people)
    features = {name: np.array(levels)[who].tolist() for name, levels in p.features.items()}
    quotas = {
        name: {
            level: (max(0, mine - 2), mine + 2)
            for level in sorted(set(levels))
            for mine in [round(levels.count(level) / people * size)]
        }
        for name, levels in features.items()
    }
    return LeximaxCohort(utilities=np.eye(people), size=size, features=features, quotas=quotas)


def peer(python: str, method: str, p: LeximaxCohort) -> dict[str, Any]:
    """A solve of the peer in a process of its own, killed at the limit."""
    data = {
        "count": len(p.names),
        "size": round(p.size),
        "features": dict(p.features),
        "quotas": dict(p.quotas),
    }
    command = [python, str(HERE / "peer.py"), "panel", method]
    try:
        done = subprocess.run(
            command, input=json.dumps(data), capture_output=True, text=True, timeout=LIMIT, check=True
        )
    except subprocess.TimeoutExpired:
        return {"seconds": LIMIT, "cpu": np.nan, "levels": None, "status": f"stopped at {LIMIT:.0f} s"}
    except subprocess.CalledProcessError as error:
        return {
            "seconds": np.nan,
            "cpu": np.nan,
            "levels": None,
            "status": error.stderr.splitlines()[-1][:60],
        }
    return json.loads(done.stdout.strip().splitlines()[-1])


def ours(p: LeximaxCohort) -> dict[str, Any]:
    """Our leximin."""
    began = time.process_time()
    s = p.solve("column-generation", time_limit=LIMIT)
    levels = s.decision.levels if s.status.has_solution else None
    cpu = time.process_time() - began
    return {"seconds": s.seconds, "cpu": cpu, "levels": levels, "status": str(s.status)}


def main() -> None:
    given = parser(__doc__, "peer", "large").parse_args()
    python = environment(__file__, PEERS)
    first = LeximaxCohort.from_candidates(*own_pool(python), 22, identifier="nationbuilder_id")
    pools = {
        "150, 22, 4 (its own)": first,
        "200, 24, 6": random_panel(200, 24, features=6, levels=3, seed=200),
        **{f"{n}, {k}, 4": resampled(first, n, k) for n, k in RESAMPLED},
    }
    if given.quick:
        pools = dict(list(pools.items())[:1])
    if "peer" not in given.parts:
        pools = {}
    if "large" in given.parts and not given.quick:
        pools["2000, 150, 8"] = random_panel(2000, 150, features=8, levels=3, seed=2000)
    note = f"sortition-algorithms {NUMBER} in an environment of its own, with the same highspy."
    page = Page("Panels beside sortition-algorithms", given.out, "numpy", "highspy", note=note)
    text = (
        "Our leximin (all levels, each proved) and the peer's maximin (the first level only; its leximin "
        "needs Gurobi), both by HiGHS on one thread. People, seats, features. The machine was shared: "
        "seconds of the processor compare, seconds of the wall do not. A smaller Gini coefficient is more "
        "equal.\n\n"
    )
    head = ["pool", "method", "processor s", "wall s", "status", "smallest chance", "people at 0", "Gini"]
    ours(first)  # imports all before anything is timed
    rows = []
    for name, p in pools.items():
        found = {"forcopt leximin": ours(p)}
        if p.size != 150:
            found["sortition-algorithms maximin"] = peer(python, "maximin", p)
        for method, r in found.items():
            numbers = ["", "", ""]
            if r["levels"] is not None:
                levels = np.array(r["levels"])
                numbers = [f"{levels.min():.6f}", str(int((levels < 1e-9).sum())), f"{gini(levels):.4f}"]
            rows.append([name, method, f"{r['cpu']:.3g}", f"{r['seconds']:.3g}", r["status"], *numbers])
            progress(*rows[-1])
        page.write(text + table(head, rows))


if __name__ == "__main__":
    main()
