"""Solve and certify the instance library; write what is known beside the problems, and a table.

    python benchmarks/instances/run.py [--quick] [--time-limit 60] [--out results.md] [NAMES ...]

Every instance is given to its formulation on HiGHS and SCIP and to the problem's exact and approximate
methods, each in a process of its own with a time limit. An optimum is

- *exact* if a certificate in rational arithmetic proves it (tried up to 3000 nonzeros and integer columns up
  to 300);
- *agreed* if at least two methods prove it, each by its own means, within their tolerances;
- *proved by one* if one does.

Otherwise the best answer and the best bound of all runs are kept. Rows are kept in ``runs.sqlite`` (not
committed) as they end, so that an interrupted run continues where it was. ``--quick`` takes those instances
that are known to be solved within a second, with a limit of 10 seconds, and writes a table only.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from collections import defaultdict
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import forcopt as fo
from forcopt.instance import Instance
from forcopt.status import Status
from forcopt.study import Run, library
from forcopt.study.compare import facts

HERE = Path(__file__).resolve().parent
MODELS = HERE.parents[1] / "models"
ROUNDING = 1e-6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAMES", help="all if left out; a beginning is enough")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--time-limit", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--out", type=Path, default=HERE / "results.md")
    parser.add_argument("--store", type=Path, default=HERE / "runs.sqlite")
    arguments = parser.parse_args()
    chosen = library.find(arguments.names)
    limit = arguments.time_limit
    if arguments.quick:
        limit = 10.0
        chosen = [i for i in chosen if (library.known().get(i.name, {}).get("seconds") or 99) < 1]
    facts_of: dict[str, dict[str, Any]] = {}
    for at, instance in enumerate(chosen):
        facts_of[instance.name] = found = certified(instance, limit, arguments.store)
        print(f"{at + 1}/{len(chosen)} {instance.name}: {found['certified']}", flush=True)
        if not arguments.quick:
            remember(instance, found)
    arguments.out.write_text(table(chosen, facts_of, limit))
    headline = HERE / "headline.json"
    if not arguments.quick and not arguments.names:
        headline.write_text(json.dumps(headlines(facts_of, limit), indent=1) + "\n")


def certified(instance: Instance, limit: float, store: Path) -> dict[str, Any]:
    """What is known of an instance after all methods have tried."""
    problem = instance.make()
    formulation = instance.method
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
    better = min if problem.sense == "min" else max
    worse = max if problem.sense == "min" else min
    met = [r.objective for r in runs if r.solved and r.violation <= ROUNDING]
    bounds = [r.bound for r in runs if r.exact and r.status is not None and np.isfinite(r.bound)]
    proofs = [r for r in runs if proves(r, better(met, default=np.nan))]
    out = {
        "fingerprint": facts(problem)["fingerprint"],
        "status": str(Status.LIMIT),
        "objective": better(met, default=None),
        "exact": None,
        "bound": worse(bounds, default=None),
        "certified": "no proof",
        "proofs": "",
        "seconds": round(max((r.seconds for r in runs if r.method == formulation), default=0.0), 4),
        "versions": {k: v for r in runs for k, v in r.versions.items()},
    }
    if met:
        out["status"] = str(Status.FEASIBLE)
    if proofs:
        names = [r.label for r in proofs]
        out["proofs"] = " ".join(names)
        status = proofs[0].status
        out |= {"status": str(status), "seconds": round(min(r.seconds for r in proofs), 4)}
        out["certified"] = f"agreed: {', '.join(names)}" if len(names) > 1 else f"proved by one: {names[0]}"
        if status is Status.OPTIMAL:
            out["bound"] = out["objective"]
            out |= exact(instance, problem, out["objective"])
    elif bounds:
        out["certified"] = "bound of " + " and ".join(
            r.label for r in runs if r.exact and r.bound == out["bound"]
        )
    return out


def plain(method: fo.Method) -> bool:
    """Whether it may tell something new: not if it ignores the demands, or finds what others find sooner."""
    return method.name not in ("as-predicted", "truth", "portfolio", "recom", "sphere-cut")


def proves(run: Run, best: float) -> bool:
    """Whether a run proves the optimum, or that there is none."""
    if not run.exact or run.status not in (Status.OPTIMAL, Status.INFEASIBLE):
        return False
    if run.status is Status.INFEASIBLE:
        return bool(np.isnan(best))
    return run.violation <= ROUNDING and abs(run.objective - best) <= ROUNDING * max(1.0, abs(best))


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
    path = MODELS / type(instance.make()).__module__.split(".")[2] / "known.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    known[instance.name] = found
    known = {name: known[name] for name in library.instances() if name in known}  # none that is gone
    path.write_text(json.dumps(known, indent=1) + "\n")


def table(chosen: list[Instance], known: dict[str, dict[str, Any]], limit: float) -> str:
    used = ", ".join(f"{name} {version(name)}" for name in ("numpy", "highspy", "pyscipopt"))
    lines = [
        "# The instance library",
        "",
        f"{date.today()}, Python {platform.python_version()}, {used}, {platform.machine()}. Each method may "
        f"take {limit:g} s. Made by `python benchmarks/instances/run.py`.",
        "",
        "| instance | formulation | status | best known | bound | seconds, quickest proof | certified |",
        "|---|---|---|---:|---:|---:|---|",
    ]
    for instance in chosen:
        fact = known[instance.name]
        best, bound = (("-" if fact[k] is None else f"{fact[k]:.8g}") for k in ("objective", "bound"))
        proof = fact["status"] in ("optimal", "infeasible")
        seconds = f"{fact['seconds']:.3g}" if proof else "-"
        lines.append(
            f"| {instance.name} | {instance.method} | {fact['status']} | {fact['exact'] or best} | {bound} "
            f"| {seconds} | {fact['certified']} |"
        )
    return "\n".join(lines) + "\n"


def headlines(known: dict[str, dict[str, Any]], limit: float) -> dict[str, Any]:
    """What the page of all benchmarks says."""
    kinds: dict[str, int] = defaultdict(int)
    for fact in known.values():
        kinds[
            fact["certified"].partition(":")[0] if fact["status"] in ("optimal", "infeasible") else "open"
        ] += 1
    proved = [fact for fact in known.values() if fact["status"] in ("optimal", "infeasible")]
    row = {
        "what": f"of {len(known)} instances, optimum proved (or that there is none)",
        "ours": f"{len(proved)}: " + ", ".join(f"{n} {kind}" for kind, n in kinds.items() if kind != "open"),
        "peers": "HiGHS and SCIP on the formulations alone: "
        + str(sum(any(b in f["proofs"] for b in ("@highs", "@scip")) for f in proved)),
        "ratio": "",
    }
    return {
        "title": "The instance library",
        "conditions": f"{date.today()}; each method may take {limit:g} s; a shared machine.",
        "table": "results.md",
        "rows": [row],
    }


if __name__ == "__main__":
    main()
