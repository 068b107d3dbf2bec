"""Solve and certify the instance library; write what is known beside the problems, and a table.

    python benchmarks/instances/run.py --out RESULTS.md [--time-limit 60] [--open] [NAME ...]

Every instance is given to its formulation on HiGHS and SCIP and to the problem's exact and approximate
methods, each in a process of its own with a time limit. An optimum is

- *exact* if a certificate in rational arithmetic proves it (tried up to 3000 nonzeros and integer columns up
  to 300);
- *agreed* if at least two methods prove it, each by its own means, within their tolerances;
- *proved by one* if one does.

Otherwise the best answer and the best bound of all runs are kept. Rows are kept in ``runs.sqlite`` (not
committed) as they end, so that an interrupted run continues where it was. ``--open`` takes those that are
not proved yet, for a longer time. The table has all that is known, from this run or before. ``--quick`` takes
those instances that are known to be solved within a second, with a limit of 10 seconds, and writes a table
only.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import forcopt as fo
from benchmarks.report import ROOT, Page, Row, parser, progress, row, table
from forcopt.backends.registry import backends
from forcopt.instance import Instance
from forcopt.status import Status
from forcopt.study import Run, library
from forcopt.study.compare import metadata

HERE = Path(__file__).resolve().parent
ROUNDING = 1e-6


def main() -> None:
    options = parser(__doc__)
    options.add_argument("names", nargs="*", metavar="NAMES", help="all if left out; a beginning is enough")
    options.add_argument("--open", action="store_true", help="only those without a proof")
    options.add_argument("--time-limit", type=float, default=60.0, metavar="SECONDS")
    options.add_argument("--store", type=Path, default=HERE / "runs.sqlite")
    arguments = options.parse_args()
    limit, quick = arguments.time_limit, arguments.quick
    chosen = library.find(arguments.names)
    if quick:
        limit = 10.0
        chosen = [i for i in chosen if (library.known().get(i.name, {}).get("seconds") or 99) < 1]
    if arguments.open:
        chosen = [i for i in chosen if not proved(library.known().get(i.name, {}))]
    page = Page("The instance library", arguments.out, "numpy", "highspy", "pyscipopt")
    found = {}
    for at, instance in enumerate(chosen):
        fact = stronger(library.known().get(instance.name, {}), certified(instance, limit, arguments.store))
        found[instance.name] = fact
        progress(f"{at + 1}/{len(chosen)} {instance.name}: {fact['certified']}")
        if not quick:
            remember(instance, fact)
    if not quick:
        library.known.cache_clear()
        found = {name: library.known()[name] for name in library.instances() if name in library.known()}
    page.write(facts_table(found))
    page.headline([headline(found)])


def certified(instance: Instance, limit: float, store: Path) -> dict[str, Any]:
    """What is known of an instance after all methods have tried."""
    problem = instance.make()
    formulation = instance.method
    if problem.formulate(formulation, **instance.options)[1].restricts:
        return by_itself(instance, limit)
    algorithms = [m.name for m in problem.methods.values() if m.kind == "algorithm" and plain(m)]
    options = {formulation: instance.options} if instance.options else {}
    methods = [f"{formulation}@highs", f"{formulation}@scip", *algorithms]
    runs = fo.compare(
        {instance.name: problem},
        methods,
        time_limit=limit,
        seed=0,
        store=store,
        options=options,
        progress=False,
        memory_limit=4 * 10**9,
    ).rows
    if any(r.status is None for r in runs):
        raise SystemExit("interrupted; what has ended is kept, a second call goes on")
    better, worse = (min, max) if problem.sense == "min" else (max, min)
    fingerprint = metadata(problem)["fingerprint"]
    before = library.known().get(instance.name, {})
    if before.get("fingerprint") != fingerprint:
        before = {}
    met = [r.objective for r in runs if r.solved and r.violation <= ROUNDING]
    met += [before["objective"]] if before.get("objective") is not None else []
    bounds = {r.label: r.bound for r in runs if bounding(r, formulation) and np.isfinite(r.bound)}
    known = [before["bound"]] if before.get("bound") is not None else []
    best, bound = better(met, default=None), worse([*bounds.values(), *known], default=None)
    proofs = [r for r in runs if proves(r, formulation, np.nan if best is None else best)]
    out: dict[str, Any] = {
        "fingerprint": fingerprint,
        "status": str(Status.FEASIBLE if met else Status.LIMIT),
        "objective": best,
        "exact": None,
        "bound": bound,
        "certified": "no proof",
        "proofs": " ".join(r.label for r in proofs),
        "seconds": round(max((r.seconds for r in runs if r.method == formulation), default=0.0), 4),
        "limit": max(limit, before.get("limit", 0.0)),
        "versions": {k: v for r in runs for k, v in r.versions.items()},
    }
    if proofs:
        names = [r.label for r in proofs]
        out |= {"status": str(Status.INFEASIBLE), "seconds": round(min(r.seconds for r in proofs), 4)}
        out["certified"] = f"agreed: {', '.join(names)}" if len(names) > 1 else f"proved by one: {names[0]}"
        if met:
            out |= {"status": str(Status.OPTIMAL), "bound": best}
            out |= exact(instance, problem, best)
    elif bound in bounds.values():
        out["certified"] = "bound of " + " and ".join(
            name for name, value in bounds.items() if value == bound
        )
    elif known:  # that of an earlier run
        out["certified"] = before["certified"]
    return out


def by_itself(instance: Instance, limit: float) -> dict[str, Any]:
    """What is known of the model of a formulation that excludes decisions, on which no other method tells."""
    problem = instance.make()
    model, handles = problem.formulate(instance.method, **instance.options)
    results = {f"{instance.method}@{name}": model.solve(name, time_limit=limit) for name in ("highs", "scip")}
    proofs = {name: r for name, r in results.items() if r.status is Status.OPTIMAL}
    if not all(meets(r.objective, s.objective) for r in proofs.values() for s in proofs.values()):
        raise SystemExit(f"{instance.name}: the solvers disagree")
    worse = max if problem.sense == "min" else min
    tightest = worse(results, key=lambda name: results[name].bound)
    first = next(iter(proofs.values()), results[tightest])
    met = [r.objective * handles.unit for r in results.values() if np.isfinite(r.objective)]
    best = (min if problem.sense == "min" else max)(met, default=None)
    certificate = first.certify() if proofs else None
    if certificate and certificate.optimal:
        how = f"exact: {certificate.how.partition(';')[0]}"
    elif proofs:
        how = f"{'agreed' if len(proofs) > 1 else 'proved by one'}: {', '.join(proofs)}"
    else:
        how = f"bound of {tightest}"
    return {
        "fingerprint": metadata(problem)["fingerprint"],
        "status": str(Status.OPTIMAL if proofs else Status.FEASIBLE if met else Status.LIMIT),
        "objective": first.objective * handles.unit if proofs else best,
        "exact": None,
        "bound": (first.objective if proofs else first.bound) * handles.unit,
        "certified": how,
        "proofs": " ".join(proofs),
        "seconds": round(min(r.seconds for r in (proofs or results).values()), 4),
        "limit": limit,
        "versions": {"forcopt": fo.__version__, "python": platform.python_version(), "system": sys.platform}
        | {name: backends()[name].version() for name in ("highs", "scip")},
    }


def plain(method: fo.Method) -> bool:
    """Whether it may tell something new: not if it ignores the demands, or finds what others find sooner."""
    return method.name not in (
        "as-predicted",
        "truth",
        "portfolio",
        "recom",
        "sphere-cut",
        "cumulative",
        "recursive",
    )


def bounding(run: Run, formulation: str) -> bool:
    """Whether the bound of a run is one on the optimum of the formulation."""
    return run.status is not None and (run.exact or run.method == formulation)


def proves(run: Run, formulation: str, best: float) -> bool:
    """Whether a run proves the optimum of the formulation, or that there is none.

    The formulation itself may be a part of the problem, such as its first level: then it is not called exact,
    but its solver's bound proves what the file asks for.
    """
    itself = run.method == formulation and run.status is Status.APPROXIMATE
    if itself:
        return meets(run.objective, best) and meets(run.bound, best)
    if not run.exact or run.status not in (Status.OPTIMAL, Status.INFEASIBLE):
        return False
    if run.status is Status.INFEASIBLE:
        return bool(np.isnan(best))
    return run.violation <= ROUNDING and meets(run.objective, best)


def meets(value: float, best: float) -> bool:
    return abs(value - best) <= ROUNDING * abs(best) + 1e-9


EXACT = """
import json, sys
from forcopt.study import library
i = library.instances()[sys.argv[1]]
p = i.make()
s = p.solve(i.method, **i.options)
c = s.certify()
value = c.objective
short = value is not None and value.denominator.bit_length() + value.numerator.bit_length() < 200
print(json.dumps([bool(c.optimal), str(value) if short else None, float(value or 0), c.how]))
"""


def exact(instance: Instance, problem: fo.Problem, objective: float) -> dict[str, Any]:
    """The optimum as a fraction, where the model is small enough to prove it in rational arithmetic."""
    model = instance.model()
    integers = int((model.columns().integer == 1).sum())
    nonzeros = sum(c.expression.linear_rows().data.size for c in model.constraints)
    if nonzeros > 3000 or integers > 300:
        return {}
    command = [sys.executable, "-c", EXACT, instance.name]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True).stdout
    except subprocess.TimeoutExpired:
        return {}
    proved, fraction, value, how = json.loads(said.splitlines()[-1])
    if not proved:
        return {}
    if abs(value - objective) > ROUNDING * max(1.0, abs(objective)):
        raise SystemExit(f"{instance.name}: exactly {value}, but the methods agree on {objective}")
    return {"exact": fraction, "certified": f"exact: {how.partition(';')[0]}"}


def remember(instance: Instance, found: dict[str, Any]) -> None:
    """Write it to the file ``known.json`` beside the problem."""
    path = ROOT / "models" / type(instance.make()).__module__.split(".")[2] / "known.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    known[instance.name] = found
    known = {name: known[name] for name in library.instances() if name in known}  # none that is gone
    path.write_text(json.dumps(known, indent=1) + "\n")


def proved(fact: dict[str, Any]) -> bool:
    return fact.get("status") in ("optimal", "infeasible")


def stronger(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Of what two runs tell of one declaration, the stronger proof; else the later, if it had the time."""
    if before.get("fingerprint") != now["fingerprint"]:
        return now
    kinds = ("exact", "agreed", "proved by one")
    rank, other = (
        next((i for i, k in enumerate(kinds) if f["certified"].startswith(k)), 3) for f in (before, now)
    )
    less = rank == other == 3 and before.get("limit", 0.0) > now["limit"]
    return before if rank < other or less else now


def facts_table(known: dict[str, dict[str, Any]]) -> str:
    rows = []
    for name, fact in known.items():
        best, bound = (("-" if fact[k] is None else f"{fact[k]:.8g}") for k in ("objective", "bound"))
        seconds = f"{fact['seconds']:.3g}" if proved(fact) else f"> {fact['limit']:g}"
        best = fact["exact"] or best
        formulation = library.instances()[name].method
        rows.append((name, formulation, fact["status"], best, bound, seconds, fact["certified"]))
    head = ("instance", "formulation", "status", "best known", "bound", "seconds", "certified")
    subject = (
        "Seconds are those of the fastest proof, or the limit of each method. A row comes from the run that "
        "proved most.\n\n"
    )
    return subject + table(head, rows)


def headline(known: dict[str, dict[str, Any]]) -> Row:
    """What the page of all benchmarks says."""
    closed = [fact for fact in known.values() if proved(fact)]
    kinds = Counter(fact["certified"].partition(":")[0] for fact in closed)
    alone = sum(any(b in f["proofs"] for b in ("@highs", "@scip")) for f in closed)
    return row(
        f"of {len(known)} instances, optimum proved (or that there is none)",
        f"{len(closed)}: " + ", ".join(f"{n} {kind}" for kind, n in kinds.items()),
        f"HiGHS and SCIP on the formulations alone: {alone}",
    )


if __name__ == "__main__":
    main()
