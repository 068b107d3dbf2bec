"""Without the packages that a call does not use, it works; what needs one names it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from forcopt.problem import problem_classes

CLASSES = problem_classes()

ALL = ("cvxpy", "ortools", "pyomo", "pandas", "matplotlib", "numba", "flint", "dp_accounting")
"""Requirements of the package that a model on HiGHS does not use."""


@pytest.mark.parametrize(
    "blocked", [ALL, *(pytest.param((p,), marks=pytest.mark.nightly) for p in ALL)], ids="-".join
)
def test_models_problems_and_certificates_work_and_the_rest_names_the_package(blocked):
    script = Path(__file__).with_name("missing_packages.py")
    ended = subprocess.run([sys.executable, script, *blocked], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert (found["objective"], found["status"], found["certified"]) == (5.1, "optimal", True)
    assert found["limited"] == 6 and not found["failed"]
    assert all("pip install" in message for message in found["refused"].values())
    needs = ": this needs numba, which is not installed: pip install numba"
    if "numba" in blocked:
        assert found["instead"]["robustness/four-points"] == f"method 'max-flow'{needs}; or solve('lp')"
        assert found["instead"]["districting/twelve-counties"] == f"method 'column-generation'{needs}"
        assert found["instead"]["census/quarter-of-a-grid"].startswith(f"method 'tree-dp'{needs}")
    if blocked is ALL:
        assert all(
            "NotInstalledError: " in e and "is not installed: pip install" in e
            for e in found["examples"].values()
        )
    assert "No module" not in "".join(found["examples"].values())
    for package in {"numba", "matplotlib", "pandas", "cvxpy", "ortools", "pyomo"} & set(blocked):
        assert "pip install" in found["named"][package] and package in found["named"][package]
    # A compiled function adds up the counts of a hierarchy.
    assert {name.partition(".")[0] for name in found["refused"]} <= {"ConsistentRelease"}
    formulated = {n for n, c in CLASSES.items() if "formulation" in {m.kind for m in c.methods.values()}}
    assert len(set(found["solved"])) > 0.8 * len(formulated)  # HiGHS takes no cones
