"""A districting plan: which node lies in which district; pictures, and files."""

from __future__ import annotations

import csv
import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import Any

import numpy as np

from forcopt.arrays import Array, as_numbers, check_label_order, lists_by_key, plain
from forcopt.clock import Improvement
from forcopt.data.graphs import graph_to_dict
from forcopt.data.intake import nearest_hint
from forcopt.errors import DeclarationError, require, require_shape, required
from forcopt.models.districting.compactness import outlines, polsby_popper, reock
from forcopt.models.districting.elections import Elections, election_scores
from forcopt.models.districting.problem import Districting
from forcopt.models.districting.tolerances import TIE
from forcopt.notebook import new_figure, picture_html, writable
from forcopt.problem import Outcome, Solution
from forcopt.problem.drawing import finished, titled
from forcopt.problem.report_page import interactive
from forcopt.status import Status

_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
"""Okabe and Ito's palette, which colour-blind readers can distinguish."""

Sums = Elections | None
"""Names, each with two node attributes."""

_STEPS = 100_000
"""A page rounds coordinates to this part of the longer side of the map."""

_BOX = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
_LABEL: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 9, "bbox": _BOX, "zorder": 3}

_HEADING = ("GEOID", "District")
"""Of the files that plans write; it is no row where a node is called GEOID."""

_MOST_LISTED = 40
"""How many nodes of a district `str` lists."""


@dataclass(frozen=True, eq=False)
class Plan:
    """A partition of the nodes into districts.

    Districts are numbered by their first node in the graph's order, except that a `Fixed` side constraint
    gives the number of its node's district, and that different numbers of seats decide by population.

    Attributes
    ----------
    problem : Districting
        Whose nodes it assigns.
    parts : tuple[tuple[int, ...], ...]
        For each district the positions of its nodes, in increasing order.

    Examples
    --------
    >>> from forcopt.data import grid
    >>> from forcopt.models import Districting
    >>> p = Districting(grid(1, 4), districts=2, tolerance=0)
    >>> plan = Plan.of(p, [[2, 3], [0, 1]])
    >>> plan.assignment, plan.populations, plan.cut_edges
    ({0: 0, 1: 0, 2: 1, 3: 1}, (2, 2), ((1, 2),))
    """

    problem: Districting
    parts: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, problem: Districting, parts: Iterable[Iterable[int]]) -> Plan:
        """Make a plan of parts in any order, given by positions of nodes.

        If districts have different numbers of seats, each part becomes a district whose population bounds
        it satisfies, as far as possible.

        Parameters
        ----------
        problem : Districting
            Whose nodes the parts hold.
        parts : Iterable[Iterable[int]]
            For each district the positions of its nodes.

        Returns
        -------
        Plan
            With the districts in the numbering of `Plan`.
        """
        ordered = sorted(tuple(sorted(int(v) for v in part)) for part in parts)
        fixed = {v: d for d, group in problem._fixed().items() for v in group}
        if problem.unequal_seats and len(ordered) == problem.districts:
            return cls(problem, _matched(problem, ordered, fixed))
        slots: list[tuple[int, ...] | None] = [None] * max(len(ordered), problem.districts)
        free = []
        for part in ordered:
            wanted = next((fixed[v] for v in part if v in fixed), None)
            if wanted is None or slots[wanted] is not None:
                free.append(part)
            else:
                slots[wanted] = part
        rest = iter(free)
        return cls(problem, tuple(slot if slot is not None else next(rest, ()) for slot in slots))

    @classmethod
    def from_labels(cls, problem: Districting, labels: Sequence[int] | Array | Any) -> Plan:
        """Make a plan of an array that holds any label for each position, or of GerryChain's Partition.

        Parameters
        ----------
        problem : Districting
            Whose nodes they are.
        labels : Sequence[int] or Array
            Equal for nodes of one district; shape ``(n,)``.

        Returns
        -------
        Plan
            With the districts in the numbering of `Plan`.

        Raises
        ------
        DeclarationError
            For a mapping, which `Districting.evaluate` takes; for a series with the nodes in another order;
            for another number of labels, and one that is not whole.
        """
        if hasattr(type(labels), "assignment"):
            labels = problem.labels(labels)
        if hasattr(type(labels), "iloc"):
            check_label_order("Plan.from_labels", {"names": problem.nodes, "labels": labels})
        given = as_numbers(labels, "labels")
        n = len(problem.nodes)
        fits = given.shape == (n,) and ((given == np.round(given)) & (np.abs(given) < 2.0**53)).all()
        require_shape(fits, "labels has", given, f"hold {n} whole numbers, one a node, below 2**53")
        groups = lists_by_key((label, v) for v, label in enumerate(given.astype(np.int64).tolist()))
        return cls.of(problem, groups.values())

    @cached_property
    def labels(self) -> Array:
        """The district of each node, by position."""
        out = np.full(len(self.problem.nodes), -1, np.int64)
        for d, part in enumerate(self.parts):
            out[list(part)] = d
        return out

    @cached_property
    def assignment(self) -> dict[Any, int]:
        """The district of each node, by its name."""
        return dict(zip(self.problem.nodes, self.labels.tolist(), strict=True))

    @cached_property
    def populations(self) -> tuple[int, ...]:
        """The population of each district."""
        return tuple(int(self.problem.arrays.weights[list(part)].sum()) for part in self.parts)

    @cached_property
    def cut_edges(self) -> tuple[tuple[Any, Any], ...]:
        """The edges between districts, each adjacent pair once, as pairs of nodes."""
        u, v = self.problem.arrays.edges.T
        cut = self.labels[u] != self.labels[v]
        names = self.problem.nodes
        return tuple((names[a], names[b]) for a, b in zip(u[cut].tolist(), v[cut].tolist(), strict=True))

    @property
    def cost(self) -> float:
        """The cost of the cut edges."""
        return self.problem.arrays.cut_cost(self.labels) / self.problem.cost_scale

    @cached_property
    def polsby_popper(self) -> tuple[float, ...]:
        """The Polsby-Popper score of each district; empty if the graph lacks areas or border lengths."""
        return tuple(polsby_popper(self.problem, self.labels).tolist())

    @cached_property
    def reock(self) -> tuple[float, ...]:
        """The Reock score of each district; empty if a node lacks ``geometry``, or shapely is missing."""
        return tuple(reock(self.problem, self.labels).tolist())

    def scores(self, elections: Elections | None = None, until: str | None = None) -> dict[str, float]:
        """Give the metrics of `Districting.evaluate`, and the scores in elections.

        Parameters
        ----------
        elections : Mapping[str, tuple[str, str]], optional
            See `election_scores`.
        until : str, optional
            A metric: those that take longer may be left out.

        Returns
        -------
        dict[str, float]
            By name.

        Examples
        --------
        >>> from forcopt.data import grid
        >>> g = grid(1, 4)
        >>> for v in g:
        ...     g.nodes[v].update(county=v // 3, dem=v, rep=2)
        >>> plan = Plan.of(Districting(g, districts=2, tolerance=0), [[0, 1], [2, 3]])
        >>> found = plan.scores({"mayor": ("dem", "rep")})
        >>> [found[name] for name in ("cut", "split_counties", "pieces", "traversals", "mayor seats")]
        [1.0, 1.0, 3.0, 1.0, 1.0]
        """
        problem, labels = self.problem, self.labels
        rule = f"be at most those of the problem, {problem.districts}"
        require(len(self.parts) <= problem.districts, "districts of the plan", len(self.parts), rule)
        people = np.bincount(labels, problem.arrays.weights, problem.districts)
        return problem.metrics(labels, people, until) | election_scores(problem, labels, elections or {})

    def share(self, attribute: str, total: str) -> tuple[float, ...]:
        """The sum of one node attribute over that of another in each district; NaN where that is 0.

        Parameters
        ----------
        attribute, total : str
            Node attributes, such as ``"black"`` and ``"vap"``.

        Returns
        -------
        tuple[float, ...]
            One quotient for each district.
        """
        groups, totals = (self.problem.numbers(name) for name in (attribute, total))
        sums = [(groups[list(part)].sum(), totals[list(part)].sum()) for part in self.parts]
        return tuple(float(a / b) if b else float("nan") for a, b in sums)

    @classmethod
    def from_csv(cls, problem: Districting, path: str | Path, prefix: int | None = None) -> Plan:
        """Read a plan from a block-equivalency file: a row for each block, with its name and its district.

        Parameters
        ----------
        problem : Districting
            Whose nodes the file assigns.
        path : str or Path
            A CSV file of two columns or more. The first holds names of blocks, the second names of
            districts. A first row whose first entry names no node is taken for a header, unless its second
            entry is the district of another row.
        prefix : int, optional
            The number of first characters of a block's name that name the node: 11 for tracts, 5 for
            counties, with the Census Bureau's 15-digit blocks.

        Returns
        -------
        Plan
            Its districts are numbered as all plans' are, whatever their names in the file.

        Raises
        ------
        DeclarationError
            If a row has fewer than two entries or no district, a node is unknown, missing, in two districts
            or in none, or the file has more districts than the problem.

        Notes
        -----
        A row with the Census Bureau's ``ZZ`` or ``ZZZ``, as of blocks of water, assigns no district. Another
        row of its node must.

        Examples
        --------
        >>> import tempfile
        >>> from forcopt.data import grid
        >>> p = Districting(grid(1, 4), districts=2, tolerance=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = (Path(folder) / "plan.csv").write_text("BLOCKID,DISTRICT\\n0,01\\n1,01\\n2,02\\n3,02\\n")
        ...     Plan.from_csv(p, Path(folder) / "plan.csv").assignment
        {0: 0, 1: 0, 2: 1, 3: 1}
        """
        names = {str(node) for node in problem.nodes}
        pairs, header = [], None
        try:
            with Path(path).open(newline="", encoding="utf-8-sig") as file:
                rows = list(csv.reader(file))
        except (UnicodeDecodeError, csv.Error) as error:
            raise DeclarationError(f"{path} is no CSV file in UTF-8: {error}") from None
        for number, row in enumerate(rows, 1):
            if not row:
                continue
            if len(row) < 2:
                raise DeclarationError(f"{path}: row {number} has {len(row)} entries; it must have two")
            block = row[0] if row[0] in names else row[0].strip()
            pair = f"row {number}", block[:prefix], row[1].strip()
            if number == 1 and (pair[1] not in names or tuple(row[:2]) == _HEADING):
                header = pair
            else:
                pairs.append(pair)
        if header is not None and header[2] in {district for *_, district in pairs}:
            pairs.insert(0, header)  # no header, but a block that the graph lacks
        return _plan_of(problem, pairs, path)

    def to_csv(self, path: str | Path, columns: tuple[str, str] = _HEADING) -> None:
        """Write a plan as a block-equivalency file: a row for each node; districts are numbered from 1.

        Parameters
        ----------
        path : str or Path
            The file.
        columns : tuple of str, optional
            The header.
        """
        with writable(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows((node, district + 1) for node, district in self.assignment.items())

    @classmethod
    def from_geojson(
        cls, problem: Districting, path: str | Path, node: str = "id", district: str = "district"
    ) -> Plan:
        """Read a plan from a GeoJSON file with a feature for each node.

        Parameters
        ----------
        problem : Districting
            Whose nodes the file assigns.
        path : str or Path
            A FeatureCollection.
        node, district : str, optional
            The properties with the name of the node and of its district; the feature's own ``id`` is read,
            too.

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
                raise DeclarationError(f"{path}: feature {number} and its properties must be objects")
            known = {"id": feature.get("id"), **facts}
            for name in (node, district):
                if known.get(name) is None:
                    raise DeclarationError(f"{path}: feature {number} has no property {name!r}")
            given = known[node]  # JSON has no tuples
            name = str(tuple(given) if isinstance(given, list) else given)
            pairs.append((f"feature {number}", name, str(known[district])))
        return _plan_of(problem, pairs, path)

    def to_geojson(self, path: str | Path) -> None:
        """Write a plan as a FeatureCollection: for each node its district, its population and its geometry.

        Nodes without ``geometry`` are points at ``x`` and ``y``; nodes without these have none. Districts are
        numbered from 1.

        Parameters
        ----------
        path : str or Path
            The file.
        """
        problem = self.problem
        attributes = graph_to_dict(problem.graph, ("geometry", "x", "y", "name"), ())["nodes"]
        features, columns = [], (attributes, self.labels.tolist(), problem.arrays.weights.tolist())
        for data, district, people in zip(*columns, strict=True):
            shape = data.get("geometry")
            if shape is None and "x" in data and "y" in data:
                shape = {"type": "Point", "coordinates": [data["x"], data["y"]]}
            properties = {"id": data["id"], "district": district + 1, "population": people}
            if "name" in data:
                properties["name"] = data["name"]
            features.append({"type": "Feature", "properties": properties, "geometry": shape})
        text = json.dumps({"type": "FeatureCollection", "features": features})
        writable(path).write_text(text, encoding="utf-8")

    def to_html(
        self, path: str | Path, solution: Solution | None = None, shares: Sums = None, elections: Sums = None
    ) -> None:
        """Write an interactive map as one HTML file that needs nothing else, no network either.

        The map moves and zooms by mouse, touch and keyboard. A unit shows its name, its people, its district
        and its shares; a row of the table of districts highlights one. Districts are numbered from 1.

        Parameters
        ----------
        path : str or Path
            The file to write. Its name without the ending is the heading.
        solution : Solution, optional
            Whose decision the plan is: the page then says what was proved.
        shares : Mapping[str, tuple[str, str]], optional
            Names of groups, each with the node attributes of the group and of the total, such as
            ``{"Black": ("black", "vap")}``.
        elections : Mapping[str, tuple[str, str]], optional
            See `scores`; the shares are those of the first party.

        Raises
        ------
        DeclarationError
            If the solution has another decision, a node lacks an attribute, or there is no such folder.

        Notes
        -----
        Units are drawn as their ``geometry``. If one has none, all are points, joined to their neighbours,
        where `plot` draws them; the area around each is what lies nearest to it, not its outline. Degrees are
        projected by Lambert's azimuthal projection, which keeps areas.

        Examples
        --------
        >>> import tempfile
        >>> from forcopt.data import grid
        >>> solution = Districting(grid(2, 4), districts=2, tolerance=0).solve()
        >>> path = Path(tempfile.mkdtemp()) / "plan.html"
        >>> solution.decision.to_html(path, solution)
        >>> '"status":"optimal"' in path.read_text()
        True
        """
        target = writable(path)
        if solution is not None and (solution.decision != self or solution.problem != self.problem):
            raise DeclarationError("solution: it has another plan or problem; call solution.decision.to_html")
        for name, pair in (shares or {}).items():
            fits = not isinstance(pair, str) and len(pair) == 2
            require(fits, f"shares[{name!r}]", pair, "be two node attributes")
        problem, facts = self.problem, [self.problem.graph.nodes[v] for v in self.problem.nodes]
        judged, sums = problem.evaluate(self), (shares or {}, elections or {})
        data: dict[str, Any] = {"scores": self.scores(elections), "parties": elections or {}}
        data["violations"] = list(judged.violations)
        data |= {"objective": str(problem.objective), "sense": problem.sense, "value": judged.objective}
        data |= {"status": str(solution.status), "bound": solution.bound} if solution else {}
        data |= {"people": problem.arrays.weights, "means": problem.means, "seats": problem.seats}
        data |= {"nodes": list(map(str, problem.nodes)), "edges": problem.arrays.edges, "plan": self.labels}
        data["names"] = [[at.get(key) for key in ("name", problem.county)] for at in facts]
        data |= {"compactness": {"Polsby-Popper": self.polsby_popper, "Reock": self.reock}}
        data["sums"] = [{e: list(map(problem.numbers, pair)) for e, pair in of.items()} for of in sums]
        outlined = bool(shapes := outlines(problem))
        rings = list(map(_rings, shapes)) if outlined else _positions(problem)[:, None, None]
        every = np.concatenate([ring for unit in rings for ring in unit])
        flat = every.shape[1] == 2 and np.isfinite(every).all()
        require(flat, "coordinates of the map", np.ptp(every, axis=0), "be pairs of finite numbers")
        low, step = every.min(axis=0), float(np.ptp(every, axis=0).max()) / _STEPS or 1.0
        data |= {"outlined": outlined, "low": low, "step": step, "whole": bool((every % 1 == 0).all())}
        whole = [[np.rint((ring - low) / step).astype(int) for ring in unit] for unit in rings]
        lines = [[np.diff(ring, axis=0, prepend=0).ravel().tolist() for ring in unit] for unit in whole]
        known, package = plain(data) | {"lines": lines}, "forcopt.models.districting.page"
        target.write_text(interactive(package, known, title=target.stem), encoding="utf-8")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.assignment == other.assignment

    def __hash__(self) -> int:
        return hash(self.parts)

    def __repr__(self) -> str:
        people = list(self.populations)
        return f"<plan of {len(self.parts)} districts: cost {self.cost:g}, populations {people}>"

    def __str__(self) -> str:
        lines = [f"{'district':>8}  {'population':>10}  nodes"]
        for d, (part, people) in enumerate(zip(self.parts, self.populations, strict=True)):
            names = ", ".join(str(self.problem.nodes[v]) for v in part[:_MOST_LISTED])
            more = f" and {len(part) - _MOST_LISTED} more" if len(part) > _MOST_LISTED else ""
            lines.append(f"{d:>8}  {people:>10}  {names}{more}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return picture_html(self.plot())

    def plot(self, path: str | Path | None = None, *, ax: Any = None, first: int = 0) -> Any:
        """Draw the plan as a map.

        Nodes with an attribute ``geometry`` (a GeoJSON-like mapping of a polygon or several, or an object
        that offers one as ``__geo_interface__``, as shapely's do) are drawn as areas; else all nodes are
        drawn as points, with cut edges dashed, at their attribute ``pos``; else at ``x`` and ``y``, or
        ``lon`` and ``lat``; else at the node itself if it is a pair of numbers; else in the layout of
        Kamada and Kawai. Up to 20 districts are named with their
        populations.

        Parameters
        ----------
        path : str or Path, optional
            A ``.png``, ``.svg`` or ``.pdf`` file to write.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; a new figure if left out.
        first : int, default 0
            The number of the first district in the picture.

        Returns
        -------
        Any
            The `matplotlib.figure.Figure`.
        """
        axes: Any = new_figure().add_subplot() if ax is None else ax
        import networkx as nx
        from matplotlib.collections import LineCollection, PathCollection
        from matplotlib.colors import to_rgba_array
        from matplotlib.lines import Line2D

        problem = self.problem
        figure: Any = axes.figure
        u, v = problem.arrays.edges.T
        touching = nx.Graph(self.labels[problem.arrays.edges].tolist())  # neighbours have different colours
        many = len(self.parts) > len(_COLOURS)
        number = nx.greedy_color(touching, "saturation_largest_first") if many else {}
        places = [number.get(d, d) % len(_COLOURS) for d in range(len(self.parts))]
        of_district = to_rgba_array(_COLOURS)[places]
        colours = of_district[self.labels]
        points = not (shapes := outlines(problem))
        if not points:
            areas = list(map(_area, shapes))
            axes.add_collection(PathCollection(areas, facecolors=colours, edgecolors="white", linewidths=0.5))
            spots = np.array([area.vertices.mean(axis=0) for area in areas])
        else:
            spots = _positions(problem)
            cut = self.labels[u] != self.labels[v]
            lines = np.stack([spots[u], spots[v]], axis=1)
            axes.add_collection(LineCollection(list(lines[~cut]), colors="0.3", linewidths=1.2, zorder=1))
            axes.add_collection(
                LineCollection(list(lines[cut]), colors="0.6", linestyles="dashed", linewidths=0.8, zorder=1)
            )
            axes.scatter(*spots.T, c=colours, s=90, edgecolors="black", linewidths=0.5, zorder=2)
        for d in range(len(self.parts)):
            own = spots[self.labels == d]
            middle = own[((own - own.mean(axis=0)) ** 2).sum(axis=1).argmin()]
            axes.annotate(str(first + d), middle, (0, 13 * points), textcoords="offset points", **_LABEL)
        axes.autoscale_view()
        wide, high = axes.viewLim.size
        if ax is None:
            figure.set_size_inches(8.5, min(max(6.5 * high / wide, 3.0), 10.0) + 0.4)
        if len(self.parts) <= 20:
            marks = [
                Line2D([], [], marker="o", linestyle="", color=colour, label=f"{d}: {people:,}")
                for d, (colour, people) in enumerate(zip(of_district, self.populations, strict=True), first)
            ]
            if ax is None:
                figure.legend(handles=marks, title="populations", frameon=False, loc="outside right upper")
            else:
                axes.legend(handles=marks, title="populations", frameon=False, fontsize=9)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_axis_off()
        titled(axes, f"{len(self.parts)} connected districts, whose borders cost {self.cost:g}")
        return finished(figure, path)

    def to_gerrychain(self) -> Any:
        """Give the plan as a `gerrychain.Partition` with the updaters ``population`` and ``cut_edges``.

        Raises
        ------
        NotInstalledError
            If the package gerrychain is missing.
        """
        required("gerrychain", "to_gerrychain")
        import networkx as nx
        from gerrychain import Graph, Partition
        from gerrychain.updaters import Tally, cut_edges

        graph = nx.Graph(self.problem.graph)  # merges parallel edges, is not frozen
        updaters = {"population": Tally(self.problem.population, alias="population"), "cut_edges": cut_edges}
        return Partition(Graph.from_networkx(graph), dict(self.assignment), updaters)


def minimizing(method: Callable[..., Outcome]) -> Callable[..., Outcome]:
    """Let a method that minimizes solve problems to be maximized, by the same with the other sign."""

    @wraps(method)
    def run(problem: Districting, **options: Any) -> Outcome:
        if problem.goal is None or problem.sense == "min":
            return method(problem, **options)

        def turned(step: Improvement) -> Improvement:
            return replace(step, objective=-step.objective, bound=-step.bound)

        show = options.pop("on_improvement", None)
        if show is not None:
            options["on_improvement"] = lambda step: show(turned(step))
        found = method(problem.replace(objective=problem.goal.turned), **options)
        plan = None if found.decision is None else Plan(problem, found.decision.parts)
        bound = None if found.bound is None else -found.bound
        return replace(found, decision=plan, bound=bound, trace=list(map(turned, found.trace)))

    return run


def feasible_start(problem: Districting, start: Plan | Mapping[Any, int] | None) -> Plan | None:
    """Check a plan to start from.

    Parameters
    ----------
    problem : Districting
        Whose nodes it assigns.
    start : Plan, mapping or None
        As `Districting.evaluate` takes it; None without one.

    Returns
    -------
    Plan or None

    Raises
    ------
    DeclarationError
        If it is malformed, or violates a constraint.
    """
    if start is None:
        return None
    violations = problem.evaluate(start).violations
    if violations:
        raise DeclarationError(f"start: the plan is not feasible: {', '.join(violations)}")
    return Plan.from_labels(problem, problem.labels(start))


def _matched(
    problem: Districting, parts: list[tuple[int, ...]], fixed: dict[int, int]
) -> tuple[tuple[int, ...], ...]:
    """Assign parts to districts with as few violations of bounds and `Fixed` as possible, then in order."""
    from scipy.optimize import linear_sum_assignment

    k = len(parts)
    held = np.array([[problem.arrays.weights[list(part)].sum()] for part in parts])
    low, high = problem.windows.T
    price = ((held < low) | (held > high)).astype(float)
    for i, part in enumerate(parts):
        for d in {fixed[v] for v in part if v in fixed}:
            price[i] += np.arange(k) != d
    if problem.objective == "deviation":  # the largest deviation is as small as possible
        apart = np.abs(held - problem.means)
        levels, best = np.unique(apart).tolist(), price[linear_sum_assignment(price)].sum()

        def suffices(level: float) -> bool:
            tried = price + 2 * k * (apart > level)
            return bool(tried[linear_sum_assignment(tried)].sum() <= best)

        price = price + 2 * k * (apart > levels[bisect_left(levels, True, key=suffices)])
    # Of equal seats the part with the smaller first node gets the smaller number.
    _, district = linear_sum_assignment(price - TIE * np.outer(np.arange(k), np.arange(k)) / k**2)
    out: list[tuple[int, ...]] = [()] * k
    for i, d in enumerate(district.tolist()):
        out[d] = parts[i]
    return tuple(out)


def _positions(problem: Districting) -> Array:
    import networkx as nx

    nodes = problem.graph.nodes
    for names in (("pos",), ("x", "y"), ("lon", "lat"), ("longitude", "latitude")):
        if all(map(problem.filled, names)):
            return np.array([np.ravel([nodes[v][n] for n in names]) for v in problem.nodes], dtype=float)
    if all(isinstance(v, tuple) and len(v) == 2 and np.isreal(v).all() for v in problem.nodes):
        return np.array(problem.nodes, dtype=float)
    bare = nx.Graph()  # distances of Kamada and Kawai count edges, not weights
    bare.add_nodes_from(problem.nodes)
    bare.add_edges_from((u, v) for u, v in problem.graph.edges() if u != v)
    nx.add_path(bare, [min(part, key=problem.place.__getitem__) for part in nx.connected_components(bare)])
    layout = nx.kamada_kawai_layout(bare)  # without this path islands would lie a million edges away
    return np.array([layout[v] for v in problem.nodes])


def _area(polygons: list[Any]) -> Any:
    """Polygons, with their holes, as a path of matplotlib."""
    from matplotlib.path import Path as Outline

    return Outline.make_compound_path(*(Outline(ring, closed=True) for ring in _rings(polygons)))


def _rings(polygons: list[Any]) -> list[Array]:
    return [_turned(ring, hole=i > 0) for polygon in polygons for i, ring in enumerate(polygon)]


def _turned(ring: Any, hole: bool) -> Array:
    """A closed ring; holes have the opposite orientation, so that they are not filled."""
    points = np.asarray(ring, dtype=float)[:, :2]
    (x, y), (x2, y2) = points[:-1].T, points[1:].T
    return points[::-1] if (np.sum(x * y2 - x2 * y) < 0) != hole else points


def only_plan(problem: Districting) -> Outcome | None:
    """Give the plan whose districts are the components, or the reason why it is infeasible.

    Parameters
    ----------
    problem : Districting
        The problem.

    Returns
    -------
    Outcome or None
        None if the graph has fewer components than districts.
    """
    pieces = problem.arrays.components()
    if problem.districts != len(pieces):
        return None
    plan = Plan.of(problem, pieces)
    violations = problem.evaluate(plan).violations
    if not violations:
        return Outcome(plan)
    message = f"the components of the graph are the only plan, and it violates: {', '.join(violations)}"
    return Outcome(None, status=Status.INFEASIBLE, message=message)


def _plan_of(problem: Districting, pairs: Sequence[tuple[str, str, str]], path: str | Path) -> Plan:
    """The plan of places in a file, each with its node and its district."""
    names = Counter(map(str, problem.nodes))
    twice, count = names.most_common(1)[0]
    if count > 1:
        raise DeclarationError(f"two nodes have the name {twice!r}; a file cannot distinguish them")
    found: dict[str, str] = {}
    for where, node, district in pairs:
        if node not in names:
            hint = nearest_hint(node, names)
            raise DeclarationError(f"{path}: {where} assigns {node!r}, which the graph lacks{hint}")
        require(district.strip(), f"{path}: {where}: district of {node}", district, "be a name, or ZZ")
        if not district.strip("zZ "):
            continue
        if (old := found.setdefault(node, district)) != district:
            raise DeclarationError(f"{path}: {where} splits node {node!r} between {old!r} and {district!r}")
    numbers = {name: i for i, name in enumerate(dict.fromkeys(found.values()))}
    if len(numbers) > problem.districts:
        usual = [name for name, _ in Counter(found.values()).most_common(problem.districts)]
        where, _, rare = next(pair for pair in pairs if pair[2] not in usual)
        raise DeclarationError(
            f"{path} has {len(numbers)} districts; the problem has {problem.districts}, and {where} gives "
            f"{rare!r}{nearest_hint(rare, usual)}"
        )
    missing = next((name for name in names if name not in found), None)
    if missing is not None:
        raise DeclarationError(f"{path} does not assign the node {missing!r} to a district")
    return Plan.from_labels(problem, [numbers[found[str(node)]] for node in problem.nodes])
