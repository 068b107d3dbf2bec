"""Make the example files that the package ships: ``python benchmarks/examples/make.py``."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

_MODEL = """\\ Shifts of a call centre: at least so many agents in each part of the day
minimize
 cost: 10 early + 11 day + 13 late
subject to
 morning: early >= 4
 noon: early + day >= 7
 evening: day + late >= 6
 night: late >= 2
general
 early day late
end
"""


def write_examples(folder: str | Path) -> list[Path]:
    """Write the example files of all tasks."""
    import pandas as pd

    where, rng = Path(folder), np.random.default_rng(2026)
    where.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []

    def table(name: str, **columns: Any) -> None:
        written.append(where / name)
        pd.DataFrame(columns).to_csv(where / name, index=False)

    n = 150
    table(
        "volunteers.csv",
        id=[f"v{i:03}" for i in range(n)],
        sex=rng.choice(["female", "male"], n, p=[0.58, 0.42]),
        age=rng.choice(["16-34", "35-59", "60+"], n, p=[0.2, 0.35, 0.45]),
        region=rng.choice(["north", "south", "west"], n, p=[0.5, 0.3, 0.2]),
        address=[f"{a} Mill Street" for a in rng.integers(1, 130, n)],
    )
    ends = [
        ("sex", "female", 10, 10),
        ("sex", "male", 10, 10),
        ("age", "16-34", 5, 7),
        ("age", "35-59", 7, 9),
    ]
    ends += [
        ("age", "60+", 5, 7),
        ("region", "north", 8, 9),
        ("region", "south", 6, 7),
        ("region", "west", 4, 6),
    ]
    table("quotas.csv", **dict(zip(("feature", "value", "min", "max"), zip(*ends, strict=True), strict=True)))
    written.append(where / "precincts.geojson")
    written[-1].write_text(json.dumps(_precincts(8, 10, rng)), encoding="utf-8")

    n = 1200
    table(
        "people.csv",
        region=rng.choice(["north", "south", "west"], n, p=[0.5, 0.3, 0.2]),
        sex=rng.choice(["female", "male"], n),
        employed=rng.choice(["yes", "no"], n, p=[0.7, 0.3]),
        age=rng.integers(16, 91, n),
    )
    public = {
        "region": ["north", "south", "west", "islands"],
        "sex": ["female", "male"],
        "employed": ["yes", "no"],
    }
    written.append(where / "schema.json")
    written[-1].write_text(
        json.dumps(public | {"age": {"lower": 0, "upper": 110}}, indent=1), encoding="utf-8"
    )

    n = 1500
    sex, years = rng.choice(["female", "male"], n), rng.poisson(6, n)
    score, degree = rng.normal(60, 12, n).round(1), rng.choice(["school", "bachelor", "master"], n)
    merit = (
        0.06 * (score - 60) + 0.12 * (years - 6) + 0.4 * (degree == "master") + 0.5 * (sex == "male") - 0.5
    )
    hired = np.where(merit + rng.logistic(size=n) * 0.6 > 0, "yes", "no")
    names = [f"a{i:04}" for i in range(n)]
    table("applicants.csv", id=names, sex=sex, degree=degree, years=years, score=score, hired=hired)

    n = 2000
    kind = rng.choice(["small", "medium", "large"], n, p=[0.75, 0.2, 0.05])
    scale = np.select([kind == "small", kind == "medium"], [1.0, 5.0], 20.0)
    table(
        "frame.csv",
        **{
            "firm": [f"f{i:04}" for i in range(n)],
            "region": rng.choice(["coast", "inland"], n),
            "class": kind,
        },
        turnover=(rng.lognormal(0, 0.4, n) * scale).round(2),
    )
    written.append(where / "shifts.lp.gz")
    written[-1].write_bytes(gzip.compress(_MODEL.encode(), mtime=0))
    return written


def _precincts(rows: int, columns: int, rng: np.random.Generator) -> dict[str, Any]:
    """Precincts of a small state: quadrangles with irregular corners, and more people in the middle."""
    corners = np.stack(np.meshgrid(np.arange(columns + 1.0), np.arange(rows + 1.0)), axis=2)
    corners[1:-1, 1:-1] += rng.uniform(-0.3, 0.3, (rows - 1, columns - 1, 2))
    corners = (corners * [0.06, 0.05] + [9.0, 47.0]).round(5)
    features = []
    for i in range(rows):
        for j in range(columns):
            ring = corners[[i, i, i + 1, i + 1, i], [j, j + 1, j + 1, j, j]]
            middle = np.exp(-((i - rows / 2) ** 2 + (j - columns / 2) ** 2) / 20)
            facts = {"GEOID": f"{i:02}{j:02}", "TOTPOP": int(rng.integers(600, 1200) * (1 + 2 * middle))}
            shape = {"type": "Polygon", "coordinates": [ring.tolist()]}
            features.append({"type": "Feature", "properties": facts, "geometry": shape})
    return {"type": "FeatureCollection", "features": features}


if __name__ == "__main__":
    write_examples(Path(__file__).parents[2] / "forcopt" / "data" / "example_files")
