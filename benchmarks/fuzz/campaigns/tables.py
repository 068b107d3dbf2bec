"""Tables with a planted defect: an error must name the row and, for a misspelt value, the right one.

Each clean table must give the same problem as arrays give, whatever the order of its rows and columns.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

import forcopt as fo
from benchmarks.fuzz.case import DoorCase
from forcopt.data import Hierarchy, grid
from forcopt.models import Districting, LeximaxCohort, StrategicClassification
from forcopt.models.districting import Plan

Random = np.random.Generator
WORDS = (
    "north",
    "south",
    "harbour",
    "forest",
    "upper town",
    "lower hill",
    "18-24",
    "65 and more",
    "Öland",
    "NA00",
)


def refused(read: Callable[[], Any], *named: str) -> Callable[[], str]:
    """A check that reading is an error, and that its message has these words."""

    def check() -> str:
        try:
            found = read()
        except (fo.DeclarationError, fo.UnknownNameError) as error:
            lacking = [word for word in named if word not in str(error)]
            return f"the error does not name {lacking}: {error}" if lacking else ""
        return f"accepted: {found!r}"[:300]

    return check


def misspelt(rng: Random, word: str, known: set[str]) -> str:
    """A word with a letter that is doubled, lost, changed or of the other case; none of those known."""
    while True:
        at, how = int(rng.integers(len(word))), int(rng.integers(0, 4))
        letter = word[at]
        put = (letter + letter, "", "q" if letter != "q" else "p", letter.swapcase())[how]
        found = word[:at] + put + word[at + 1 :]
        if found.strip() and found.strip() not in known:
            return found


def blank(rng: Random, word: str) -> str:
    """A word with stray blanks around it."""
    return str(rng.choice([f" {word}", f"{word} ", f"{word}  ", f"\t{word}"]))


def panel(rng: Random) -> DoorCase:
    """Volunteers and quotas of a citizens' panel."""
    n, words = int(rng.integers(8, 14)), rng.permutation(WORDS)
    features = {"area": words[:3].tolist(), "age": words[3:5].tolist()}
    pool = pd.DataFrame({f: np.resize(rng.permutation(v), n) for f, v in features.items()}, dtype=object)
    pool = pool.iloc[rng.permutation(n)].reset_index(drop=True)
    pool.insert(0, "name", [f"v {i}" for i in range(n)])
    rows = [(f, v, int(rng.integers(0, 2)), 3) for f, levels in features.items() for v in levels]
    quotas = pd.DataFrame(
        [rows[i] for i in rng.permutation(len(rows))], columns=["feature", "value", "min", "max"]
    )
    i, f = int(rng.integers(n)), str(rng.choice(list(features)))
    q = int(rng.integers(len(quotas)))
    level, row = str(pool.loc[i, f]), quotas.loc[q]
    line = f"row {i + 2},"
    wrong = misspelt(rng, level, set(features[f]))

    def made(pool: pd.DataFrame, quotas: pd.DataFrame) -> LeximaxCohort:
        return LeximaxCohort.from_candidates(pool, quotas, 4, identifier="name")

    def changed(table: pd.DataFrame, at: int, column: str, value: Any) -> pd.DataFrame:
        out = table.astype(object)
        out.loc[at, column] = value
        return out

    def same() -> str:
        own = LeximaxCohort(
            utilities=np.eye(n),
            size=4,
            features={k: pool[k].tolist() for k in features},
            quotas={k: {v: (a, b) for c, v, a, b in rows if c == k} for k in features},
        )
        blanks = changed(pool, i, f, blank(rng, level))
        turned = made(blanks[rng.permutation(pool.columns)], quotas[rng.permutation(quotas.columns)])
        one, two = own.solve(), turned.solve()
        if one.status != two.status or one.status == "infeasible":
            return "" if one.status == two.status else f"{two.status}, not {one.status}"
        off = np.abs(np.sort(one.decision.utilities) - np.sort(two.decision.utilities)).max()
        return "" if off < 1e-5 else f"utilities differ by {off:g}"

    doubled = pd.concat([quotas, quotas.iloc[[q]].assign(max=lambda t: t["max"] + int(rng.integers(0, 2)))])
    doubled = doubled.reset_index(drop=True)
    other = misspelt(rng, row.value, set(features[row.feature]))
    return DoorCase(
        {
            "panel, as it is": same,
            "panel, a misspelt level": refused(
                lambda: made(changed(pool, i, f, wrong), quotas), line, repr(wrong.strip())
            ),
            "panel, a missing level": refused(
                lambda: made(changed(pool, i, f, rng.choice([None, np.nan, "", " "])), quotas), line
            ),
            "panel, a name twice": refused(
                lambda: made(changed(pool, i, "name", blank(rng, pool.name.iloc[i - 1])), quotas),
                pool.name.iloc[i - 1],
                *(f"row {k % n + 2}," for k in (i - 1, i)),
            ),
            "panel, a doubled quota": refused(
                lambda: made(pool, doubled), row.value, f"row {q + 2},", f"row {len(quotas) + 2},"
            ),
            "panel, a misspelt quota": refused(
                lambda: made(pool, changed(changed(quotas, q, "value", other), q, "min", 1)), row.value
            ),
            "panel, a quota in words": refused(
                lambda: made(pool, changed(quotas, q, "min", "one")), f"row {q + 2},", "'one'"
            ),
        }
    )


def hierarchy(rng: Random) -> DoorCase:
    """A tree of units, from edges with counts."""
    names = [f"{word} {k}" for k, word in enumerate(rng.permutation(WORDS)[: int(rng.integers(4, 9))])]
    edges = [(names[int(rng.integers(k))], names[k]) for k in range(1, len(names))]
    leaves = [v for v in names if v not in {a for a, _ in edges}]
    counts = {v: int(rng.integers(1, 50)) for v in leaves}
    order, leaf = rng.permutation(len(edges)), str(rng.choice(leaves))
    wrong = misspelt(rng, leaf, set(names))
    at = int(rng.integers(len(edges)))

    def same() -> str:
        one = Hierarchy.from_edges(edges, counts)
        two = Hierarchy.from_edges([edges[k] for k in order], {v: counts[v] for v in rng.permutation(leaves)})
        found = [dict(zip(h.names[-1], h.counts.ravel().tolist(), strict=True)) for h in (one, two)]
        return "" if found == [counts, counts] else f"the counts are {found}, not {counts}"

    other = next((a for a in names if a not in edges[at]), None)
    checks = {
        "tree, as it is": same,
        "tree, a misspelt unit": refused(
            lambda: Hierarchy.from_edges(edges, {wrong if v == leaf else v: c for v, c in counts.items()}),
            repr(wrong),
            repr(leaf),
        ),
        "tree, one more unit": refused(
            lambda: Hierarchy.from_edges(edges, {**counts, "nowhere": 3}), "'nowhere'"
        ),
        "tree, an edge twice": refused(lambda: Hierarchy.from_edges([*edges, edges[at]], counts), *edges[at]),
        "tree, a missing count": refused(
            lambda: Hierarchy.from_edges(edges, {v: c for v, c in counts.items() if v != leaf}), leaf
        ),
        "tree, a wrong sum": refused(
            lambda: Hierarchy.from_edges(edges, {**counts, names[0]: sum(counts.values()) + 1}), names[0]
        ),
    }
    if other is not None:
        twice = [*edges, (other, edges[at][1])]
        checks["tree, two parents"] = refused(lambda: Hierarchy.from_edges(twice, counts), *edges[at], other)
    return DoorCase(checks)


def plan_file(rng: Random) -> DoorCase:
    """A file that assigns the nodes of a map to districts."""
    graph = grid(2, int(rng.integers(4, 6)))
    names = [f"t{i:02}-{rng.integers(100, 999)}" for i in range(len(graph))]
    graph = nx.relabel_nodes(graph, dict(zip(graph, names, strict=True)))
    problem = Districting(graph=graph, districts=2, tolerance=0.3)
    best = problem.solve().decision
    rows = [(node, str(best.assignment[node] + 1)) for node in rng.permutation(names).tolist()]
    i = int(rng.integers(len(rows)))
    node, district = rows[i]
    wrong = misspelt(rng, node, set(names))

    def read(rows: list[tuple[str, str]]) -> Plan:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "plan.csv"
            path.write_text("\n".join(["GEOID,District", *(",".join(row) for row in rows)]) + "\n")
            return Plan.from_csv(problem, path)

    def put(*row: str) -> list[tuple[str, ...]]:
        return [*rows[:i], row, *rows[i + 1 :]]

    line = f"row {i + 2}"
    return DoorCase(
        {
            "plan, as it is": lambda: (
                "" if read(put(blank(rng, node), blank(rng, district))) == best else "another plan"
            ),
            "plan, a misspelt node": refused(
                lambda: read(put(wrong, district)), line, repr(wrong.strip()), repr(node)
            ),
            "plan, a node in two districts": refused(
                lambda: read([*rows, (node, "12"[district == "1"])]), node, f"row {len(rows) + 2}"
            ),
            "plan, no district": refused(
                lambda: read(put(node, str(rng.choice(["", " ", "ZZ"])))), line, node
            ),
            "plan, a misspelt district": refused(
                lambda: read(put(node, f"{district}q")), line, f"'{district}q'"
            ),
            "plan, a missing node": refused(lambda: read(rows[:i] + rows[i + 1 :]), node),
        }
    )


def agents(rng: Random) -> DoorCase:
    """Agents, criteria and edges of a strategic problem."""
    people = [f"{word}, agent" for word in rng.permutation(WORDS).tolist()[:4]]
    criteria = ["course", "essay", "test 1"]
    rows = [
        (a, c, float(rng.integers(1, 9) / 8), int(rng.integers(0, 2)))
        for a in people
        for c in rng.permutation(criteria).tolist()[: int(rng.integers(1, 4))]
    ]
    edges = pd.DataFrame(rows, columns=["agent", "criterion", "cost", "improves"]).astype(object)
    listed = pd.DataFrame({"agent": people, "weight": rng.integers(1, 4, 4)}).astype(object)
    i = int(rng.integers(len(edges)))
    agent, criterion = edges.loc[i, "agent"], edges.loc[i, "criterion"]
    wrong, line = misspelt(rng, agent, set(people)), f"row {i + 2},"

    def made(edges: pd.DataFrame, listed: pd.DataFrame = listed) -> StrategicClassification:
        return StrategicClassification.from_tables(edges, listed)

    def changed(column: str, value: Any) -> pd.DataFrame:
        out = edges.copy()
        out.loc[i, column] = value
        return out

    def same() -> str:
        order = rng.permutation(len(edges))
        messy = changed("criterion", blank(rng, criterion)).iloc[order][rng.permutation(edges.columns)]
        messy["agent"] = [blank(rng, a) for a in messy["agent"]]
        one, two = made(edges), made(messy, listed.iloc[rng.permutation(4)])
        if one.criterion_names != two.criterion_names:
            return f"the criteria are {two.criterion_names}, not {one.criterion_names}"
        off = abs(one.solve().objective - two.solve().objective)
        return "" if off < 1e-9 else f"the optima differ by {off:g}"

    again = pd.concat([edges, changed("cost", 0.9).iloc[[i]]]).reset_index(drop=True)
    twice = pd.concat([listed, listed.iloc[[1]]]).reset_index(drop=True)
    return DoorCase(
        {
            "agents, as they are": same,
            "agents, a misspelt one": refused(
                lambda: made(changed("agent", wrong)), repr(wrong.strip()), repr(agent), line
            ),
            "agents, one twice": refused(lambda: made(edges, twice), repr(people[1]), "row 3,", "row 6,"),
            "agents, an edge twice": refused(
                lambda: made(again), agent, criterion, f"rows {i + 2}, {len(edges) + 2};"
            ),
            "agents, a missing name": refused(
                lambda: made(changed("criterion", rng.choice([None, "", " "]))), "criterion", line
            ),
            "agents, a cost in words": refused(lambda: made(changed("cost", "O.5")), "cost", "'O.5'", line),
        }
    )


CAMPAIGNS = {"panel-tables": panel, "tree-tables": hierarchy, "plan-files": plan_file, "agent-tables": agents}
