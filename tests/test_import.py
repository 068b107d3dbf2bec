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
]


def test_importing_the_library_imports_no_solver_and_nothing_heavy():
    code = f"import sys, forcopt; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


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
