"""Plans in files: block-equivalency files (CSV) and GeoJSON."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from forcopt.data.graphs import graph_to_dict
from forcopt.data.levels import nearest_level
from forcopt.errors import DeclarationError
from forcopt.models.districting.plan import Plan
from forcopt.models.districting.problem import Districting

__all__ = ["from_csv", "from_geojson", "to_csv", "to_geojson"]


def from_csv(problem: Districting, path: str | Path, prefix: int | None = None) -> Plan:
    """Read a plan from a block-equivalency file: a row for each block, with its name and its district.

    Parameters
    ----------
    problem : Districting
        Whose nodes the file assigns.
    path : str or Path
        A CSV file of two columns or more. The first holds names of blocks, the second names of
        districts. A first row whose first entry names no node is taken for a header, unless its second entry
        is the district of another row.
    prefix : int, optional
        The number of first characters of a block's name that name the node: 11 for tracts, 5 for counties,
        with the Census Bureau's 15-digit blocks.

    Returns
    -------
    Plan
        Its districts are numbered as all plans' are, whatever their names in the file.

    Raises
    ------
    DeclarationError
        If a row has fewer than two entries, a node is unknown, missing, in two districts or in none (an empty
        entry, or the Census Bureau's ``ZZ``), or the file has more districts than the problem.

    Examples
    --------
    >>> import tempfile
    >>> from forcopt.data import grid
    >>> p = Districting(grid(1, 4), districts=2, tolerance=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "plan.csv").write_text("BLOCKID,DISTRICT\\n0,01\\n1,01\\n2,02\\n3,02\\n")
    ...     from_csv(p, Path(folder) / "plan.csv").assignment
    {0: 0, 1: 0, 2: 1, 3: 1}
    """
    names = {str(node) for node in problem.nodes}
    pairs, header = [], None
    with Path(path).open(newline="", encoding="utf-8-sig") as file:
        for number, row in enumerate(csv.reader(file), 1):
            if not row:
                continue
            if len(row) < 2:
                raise DeclarationError(f"{path}: row {number} has {len(row)} entries; it must have two")
            where = f"row {number}"
            block, district = row[0].strip(), row[1].strip()
            node = block if prefix is None else block[:prefix]
            if number == 1 and node not in names:
                header = where, node, district
            else:
                pairs.append((where, node, district))
    if header is not None and header[2] in {district for *_, district in pairs}:
        pairs.insert(0, header)  # no header, but a block that the graph lacks
    return _plan_of(problem, pairs, path)


def _plan_of(problem: Districting, pairs: Sequence[tuple[str, str, str]], path: str | Path) -> Plan:
    """The plan of places in a file, each with its node and its district."""
    names: dict[str, Any] = {}
    for node in problem.nodes:
        if str(node) in names:
            raise DeclarationError(f"two nodes have the name {str(node)!r}; a file cannot distinguish them")
        names[str(node)] = node
    found: dict[str, str] = {}
    for where, node, district in pairs:
        if node not in names:
            near = nearest_level(node, names)
            hint = f"; did you mean {near!r}?" if near else ""
            raise DeclarationError(f"{path}: {where} assigns {node!r}, which the graph lacks{hint}")
        if not district.strip("zZ "):
            raise DeclarationError(
                f"{path}: {where} gives node {node!r} the district {district!r}, which stands for none; "
                "give it a district, or drop the row if the node's other blocks have one"
            )
        if found.setdefault(node, district) != district:
            raise DeclarationError(
                f"{path}: {where} splits node {node!r} between {found[node]!r} and {district!r}"
            )
    numbers = {name: i for i, name in enumerate(dict.fromkeys(found.values()))}
    if len(numbers) > problem.districts:
        usual = [name for name, _ in Counter(found.values()).most_common(problem.districts)]
        where, _, rare = next(pair for pair in pairs if pair[2] not in usual)
        near = nearest_level(rare, usual)
        hint = f"; did you mean {near!r}?" if near else ""
        raise DeclarationError(
            f"{path} has {len(numbers)} districts; the problem has {problem.districts}, and {where} gives "
            f"{rare!r}{hint}"
        )
    missing = next((name for name in names if name not in found), None)
    if missing is not None:
        raise DeclarationError(f"{path} does not assign the node {missing!r}")
    return Plan.from_labels(problem, [numbers[found[str(node)]] for node in problem.nodes])


def to_csv(plan: Plan, path: str | Path, columns: tuple[str, str] = ("GEOID", "District")) -> None:
    """Write a plan as a block-equivalency file: a row for each node; districts are numbered from 1.

    Parameters
    ----------
    plan : Plan
        The plan.
    path : str or Path
        The file.
    columns : tuple of str, optional
        The header.
    """
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows((node, district + 1) for node, district in plan.assignment.items())


def from_geojson(
    problem: Districting, path: str | Path, node: str = "id", district: str = "district"
) -> Plan:
    """Read a plan from a GeoJSON file with a feature for each node.

    Parameters
    ----------
    problem : Districting
        Whose nodes the file assigns.
    path : str or Path
        A FeatureCollection.
    node, district : str, optional
        The properties with the name of the node and of its district; the feature's own ``id`` is read, too.

    Returns
    -------
    Plan

    Raises
    ------
    DeclarationError
        If the file is no FeatureCollection, a feature lacks a property, or the nodes do not fit.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise DeclarationError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(data, dict) or data.get("type") != "FeatureCollection":
        raise DeclarationError(f"{path} is no GeoJSON FeatureCollection")
    pairs, features = [], data.get("features")
    if not isinstance(features, list):
        raise DeclarationError(f"{path}: features is {features!r}; it must be a list")
    for number, feature in enumerate(features):
        facts = feature.get("properties") or {} if isinstance(feature, dict) else None
        if not isinstance(facts, dict):
            raise DeclarationError(f"{path}: feature {number} must be an object with an object of properties")
        known = {"id": feature.get("id"), **facts}
        for name in (node, district):
            if known.get(name) is None:
                raise DeclarationError(f"{path}: feature {number} has no property {name!r}")
        given = known[node]  # JSON has no tuples
        name = str(tuple(given) if isinstance(given, list) else given)
        pairs.append((f"feature {number}", name, str(known[district])))
    return _plan_of(problem, pairs, path)


def to_geojson(plan: Plan, path: str | Path) -> None:
    """Write a plan as a FeatureCollection: for each node its district, its population and its geometry.

    Nodes without ``geometry`` are points at ``x`` and ``y``; nodes without these have none. Districts are
    numbered from 1.

    Parameters
    ----------
    plan : Plan
        The plan.
    path : str or Path
        The file.
    """
    problem = plan.problem
    attributes = graph_to_dict(problem.graph, ("geometry", "x", "y", "name"), ())["nodes"]
    features = []
    for data, district, people in zip(
        attributes, plan.labels.tolist(), problem.arrays.weights.tolist(), strict=True
    ):
        shape = data.get("geometry")
        if shape is None and "x" in data and "y" in data:
            shape = {"type": "Point", "coordinates": [data["x"], data["y"]]}
        properties = {"id": data["id"], "district": district + 1, "population": people}
        if "name" in data:
            properties["name"] = data["name"]
        features.append({"type": "Feature", "properties": properties, "geometry": shape})
    text = json.dumps({"type": "FeatureCollection", "features": features})
    Path(path).write_text(text, encoding="utf-8")
