import subprocess
import sys

import pytest

HEAVY = [
    "cvxpy",
    "ortools",
    "pyomo",
    "highspy",
    "pandas",
    "matplotlib",
    "networkx",
    "rich",
    "typer",
    "scipy.special",
    "scipy.stats",
    "scipy.optimize",
    "scipy.spatial",
    "scipy.sparse.linalg",
    "numba",
]

SOLVERS_AND_PLOTS = ["cvxpy", "ortools", "pyomo", "highspy", "pandas", "matplotlib"]

LAZY_SCIPY = ["scipy.stats", "scipy.optimize", "scipy.spatial", "scipy.integrate", "scipy.interpolate"]


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import forcopt", HEAVY),
        ("from forcopt.cli import app", [name for name in HEAVY if name not in ("rich", "typer")]),
        ("from forcopt.models import FairPostprocessing", [*SOLVERS_AND_PLOTS, *LAZY_SCIPY, "numba"]),
        ("from forcopt.models import StratifiedAllocation", [*SOLVERS_AND_PLOTS, *LAZY_SCIPY, "numba"]),
        ("import forcopt; forcopt.load('postprocessing/compas')", [*SOLVERS_AND_PLOTS, *LAZY_SCIPY, "numba"]),
        ("from forcopt.problem import problem_classes as p; p()", [*SOLVERS_AND_PLOTS, *LAZY_SCIPY]),
    ],
)
def test_an_import_loads_nothing_heavy_before_it_is_used(code, heavy):
    code = f"{code}; import sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("forcopt.models.fair_classification", "FairClassifier"),
        ("forcopt.models.fair_postprocessing", "ThresholdPostprocessor"),
        ("forcopt.models.lexifair", "FairRegressor"),
        ("forcopt.causal", "CounterfactualTransformer"),
    ],
)
def test_an_estimator_without_scikit_learn_names_the_command(module, name):
    code = f"import sys; sys.modules['sklearn'] = None; from {module} import {name}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        f"forcopt.errors.NotInstalledError: {name} needs scikit-learn, which is not installed: "
        "pip install scikit-learn"
    )


def test_a_declaration_on_standard_input_is_of_any_registered_class():
    from forcopt.problem.registry import example_file

    text = example_file("allocation/private").read_text(encoding="utf-8")
    command = [sys.executable, "-m", "forcopt", "solve", "-", "--json"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    assert '"status": "optimal"' in done.stdout


def test_every_public_name_exists_and_is_documented():
    import forcopt

    for name in forcopt.__all__:
        thing = getattr(forcopt, name)
        assert thing.__doc__, name


def test_a_misspelled_name_suggests_the_right_one():
    import forcopt as fo
    from forcopt import models

    with pytest.raises(AttributeError, match="no attribute 'maximun'; did you mean 'maximum'"):
        _ = fo.maximun
    with pytest.raises(AttributeError, match="'FairPostProcessing'; did you mean 'FairPostprocessing'"):
        _ = models.FairPostProcessing
    assert not hasattr(fo, "__wrapped__")
    with pytest.raises(
        FileNotFoundError, match=r"'postprocessing/compass'; did you mean 'postprocessing/compas'"
    ):
        fo.load("postprocessing/compass")
