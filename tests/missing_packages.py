"""A process in which packages are missing: `python missing_packages.py PACKAGE...` prints a line of JSON.

It solves a model, declares every problem, solves the smallest example of each by its first formulation that
HiGHS can take, judges and certifies the decision, and lists what names a missing package.
"""

import doctest
import json
import pickle
import sys
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any

BLOCKED = sys.argv[1:]


class Without:
    """A finder of modules that does not find those of the missing packages."""

    def __init__(self, finder: Any) -> None:
        self.finder = finder

    def __getattr__(self, name: str) -> Any:
        return getattr(self.finder, name)

    def find_spec(self, name: str, *more: Any) -> Any:
        return None if name.partition(".")[0] in BLOCKED else self.finder.find_spec(name, *more)


EXAMPLES = (
    "data.maps.read_map", "fairness.report.GroupReport",
    "models.census_release.measurement.measure", "models.districting.problem.Districting.from_file",
    "models.fair_classification.instances.defendants", "models.fair_decisions.audits.audit",
    "models.fair_ranking.instances.moving_company", "models.leximax_cohort.panel.quota_table",
    "models.leximax_cohort.rounding.verify_lottery", "privacy.interop.dp_event", "privacy.queries.Query",
    "privacy.release.TableRelease", "privacy.schema.Categories", "privacy.table.Table",
    "problem.policy.Policy.tested", "study.charts.curves.pareto",
)  # fmt: skip
"""Public calls that need pandas or dp-accounting, each with an example."""


class First(doctest.DocTestRunner):
    """Runs examples until the first error, and keeps it."""

    error: BaseException | None = None

    def report_failure(self, *_: Any) -> None:
        """Say nothing."""

    def report_unexpected_exception(self, out: Any, test: Any, example: Any, info: Any) -> None:
        """Keep the first error."""
        self.error = self.error or info[1]


def words_of(name: str) -> str:
    """How the example of a public object ends: an error's kind and words, or nothing."""
    place: Any = import_module("forcopt")
    module, runner = place, First()
    for part in name.split("."):
        if isinstance(place, ModuleType):
            module = place
            with suppress(ModuleNotFoundError):
                module = import_module(f"{place.__name__}.{part}")
        place = getattr(place, part)
    for test in doctest.DocTestFinder(recurse=False).find(place, name, globs=dict(vars(module))):
        runner.run(test, out=lambda _: None)
    error = runner.error
    return "" if error is None else f"{type(error).__name__}: {error}"


def main() -> dict[str, Any]:
    """What works and what names a package."""
    sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
    import forcopt as fo
    from forcopt.problem import examples, load, problem_classes

    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=2)
    y = m.variable("y", integer=True, lower=0, upper=9)
    m.subject_to(x.sum() + y >= 3.3)
    m.minimize((x * [3, 2, 4]).sum() + 1.5 * y)
    s = m.solve()
    found: dict[str, Any] = {"objective": s.objective, "status": s.status, "certified": s.certify().optimal}
    found["limited"] = fo.load("districting/grid-3x7").solve(time_limit=60).objective  # by numpy alone
    found |= {"solved": {}, "refused": {}, "failed": {}, "named": {}, "unsuited": {}, "instead": {}}
    smallest: dict[str, fo.Problem] = {}
    for problem in sorted(map(load, examples()), key=lambda p: len(pickle.dumps(p))):
        smallest.setdefault(type(problem).__name__, problem)
    for name in problem_classes():
        if name not in smallest:
            continue
        problem = smallest[name]
        for method in problem.methods:
            if problem.method(method).kind != "formulation":
                continue
            try:
                solution = problem.solve(method, backend="highs", time_limit=5)
            except (fo.errors.UnsupportedError, fo.errors.DeclarationError) as error:
                found["unsuited"][f"{name}.{method}"] = str(error)  # this example, or HiGHS
                continue
            except fo.errors.NotInstalledError as error:
                found["refused"][f"{name}.{method}"] = str(error)
                continue
            except Exception as error:
                found["failed"][f"{name}.{method}"] = f"{type(error).__name__}: {error}"
                continue
            if solution.decision is not None:
                judged = problem.evaluate(solution.decision)
                found["solved"][name] = [solution.status, judged.objective]
                break
    needs = {
        "numba": lambda: smallest["Districting"].solve("frontier"),
        "matplotlib": lambda: fo.load("districting/grid-3x7").solve().plot(),
        "pandas": lambda: s.to_pandas(x),
        "cvxpy": lambda: m.solve("clarabel"),
        "ortools": lambda: m.solve("cp-sat"),
        "pyomo": lambda: m.solve("pyomo:glpk"),
    }
    for name in ("robustness/four-points", "districting/twelve-counties", "census/quarter-of-a-grid"):
        try:
            found["solved"][name] = fo.load(name).solve(time_limit=60).status
        except fo.errors.NotInstalledError as error:
            found["instead"][name] = str(error)
    for package in BLOCKED:
        if package in needs:
            try:
                needs[package]()
            except fo.errors.NotInstalledError as error:
                found["named"][package] = str(error)
    found["examples"] = {name: words_of(name) for name in EXAMPLES}
    return found


if __name__ == "__main__":
    print(json.dumps(main()))
