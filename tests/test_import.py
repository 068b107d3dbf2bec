import subprocess
import sys

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
