"""Draws the proved plan of Utah's 588 tracts in the outline of the state, with the Salt Lake valley enlarged.

    python benchmarks/districting/utah_map.py docs/img/utah.svg

The plan is that of the certificate, see `BoundCertificate.stored`. A tract is drawn as the points of the
state that are nearer to its centre than to any other's, in the sinusoidal projection (equal areas).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import shapely
from shapely.affinity import affine_transform

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.report import data

ROOT = Path(__file__).resolve().parents[2]
OUTLINE = [(-114.05, 37), (-109.05, 37), (-109.05, 41), (-111.05, 41), (-111.05, 42), (-114.05, 42)]
"""The borders of the state, by law."""
VALLEY = (-112.25, 40.35, -111.7, 40.95)
COLOURS = ("#5b6fd6", "#e08a3c", "#2fa084", "#c75a93")


def projected(shape: shapely.Geometry) -> shapely.Geometry:
    """The sinusoidal projection around the middle of the state, in degrees of latitude, y downwards."""

    def at(points: np.ndarray) -> np.ndarray:
        lon, lat = points.T
        return np.column_stack([(lon + 111.55) * np.cos(np.radians(lat)), -lat])

    return shapely.transform(shapely.segmentize(shape, 0.1), at)


def path(shape: shapely.Geometry) -> str:
    """The path of a polygon or several, coordinates with one decimal."""
    rings = [
        ring.coords for part in getattr(shape, "geoms", [shape]) for ring in (part.exterior, *part.interiors)
    ]
    return "".join("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in ring[:-1]) + "Z" for ring in rings)


def drawing(districts: list[shapely.Geometry], cells: list[shapely.Geometry]) -> str:
    """Districts as areas, tracts as hair lines."""
    areas = "".join(f'<path fill="{c}" d="{path(d)}"/>' for c, d in zip(COLOURS, districts, strict=True))
    edges = shapely.line_merge(shapely.union_all([cell.boundary for cell in cells]))
    lines = "".join("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in line.coords) for line in edges.geoms)
    hair = f'<path fill="none" stroke="#fff" stroke-opacity=".45" stroke-width=".4" d="{lines}"/>'
    return (
        f'{areas}{hair}<g fill="none" stroke="#fff" stroke-width="2">'
        + "".join(f'<path d="{path(d)}"/>' for d in districts)
        + "</g>"
    )


def main(out: Path) -> None:
    nodes = json.loads(Path(data("us/UT-tract.json")).read_text())["nodes"]
    certificate = json.loads((ROOT / "models/districting/certificates/UT-tract.json").read_text())
    plan, state = np.array(certificate["plan"]), shapely.Polygon(OUTLINE)
    centres = shapely.points([(node["x"], node["y"]) for node in nodes])
    found = shapely.voronoi_polygons(shapely.MultiPoint(centres), extend_to=state.buffer(1), ordered=True)
    cells = [shapely.intersection(cell, state) for cell in found.geoms]
    names = np.unique(plan)
    districts = [
        shapely.union_all([c for c, d in zip(cells, plan, strict=True) if d == name]) for name in names
    ]
    whole = projected(state).bounds
    scale = 520 / (whole[3] - whole[1])

    def placed(
        shape: shapely.Geometry, box: tuple[float, ...], size: float, x: float, y: float
    ) -> shapely.Geometry:
        return affine_transform(projected(shape), [size, 0, 0, size, x - box[0] * size, y - box[1] * size])

    left = drawing(*([placed(s, whole, scale, 10, 10) for s in shapes] for shapes in (districts, cells)))
    box = shapely.box(*VALLEY)
    frame = projected(box).bounds
    zoom = 400 / (frame[3] - frame[1])
    inside = [[shapely.intersection(s, box) for s in shapes] for shapes in (districts, cells)]
    right = drawing(*([placed(s, frame, zoom, 470, 40) for s in shapes] for shapes in inside))
    here, there = (path(placed(box, *at)) for at in ((whole, scale, 10, 10), (frame, zoom, 470, 40)))
    box_line = '<path fill="none" stroke="#888" stroke-width="1.5" d="{}"/>'
    width = 480 + zoom * (frame[2] - frame[0])
    title = (
        f"Utah's {len(nodes)} census tracts in {len(names)} districts with {certificate['bound']} cut edges"
    )
    out.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} 540" role="img">'
        f"<title>{title}</title>{left}{right}{box_line.format(here)}{box_line.format(there)}</svg>\n"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
