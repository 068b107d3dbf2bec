"""A process in which packages are missing: `python missing_packages.py PACKAGE...` prints a line of JSON.

It solves a model, declares every problem, solves the smallest example of each by its first formulation that
HiGHS can take, judges and certifies the decision, and lists what names a missing package.
"""

import json
import pickle
import sys
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
    found |= {"solved": {}, "refused": {}, "failed": {}, "named": {}, "unsuited": {}}
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
        "matplotlib": lambda: smallest["FairPostprocessing"].solve("lp").plot(),
        "pandas": lambda: s.to_pandas(x),
        "cvxpy": lambda: m.solve("clarabel"),
        "ortools": lambda: m.solve("cp-sat"),
    }
    for package in BLOCKED:
        if package in needs:
            try:
                needs[package]()
            except fo.errors.NotInstalledError as error:
                found["named"][package] = str(error)
    return found


if __name__ == "__main__":
    print(json.dumps(main()))
