"""The README in a browser: in a process without what a browser lacks, and in Pyodide if it is there."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_blocks_of_the_readme_without_threads_processes_and_compiled_packages(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, ROOT / "tests" / "browser.py"]
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout.splitlines()[-1])
    assert found["said"][0].startswith("optimal 46.0 0.0")
    value, disparity, certified = found["said"][1].split()
    assert (round(float(value), 6), round(float(disparity), 6), certified) == (0.369955, 0.05, "True")
    if importlib.util.find_spec("matplotlib") is not None:
        assert found["picture"] > 1000
    assert found["said"][2] == "", "the map of the third block is solved by numpy"
    assert found["plan"] == ["optimal", 10.0, 10.0]
    assert "as-predicted" in found["table"] and "clarabel' is not installed" in found["table"]
    assert "pip install" in found["named"]["clarabel"] and "pip install" in found["named"]["cp-sat"]
    assert (
        found["named"]["isolate"].startswith("UnsupportedError")
        and "isolate=False" in found["named"]["isolate"]
    )


def test_the_readme_in_pyodide(tmp_path):
    """`FORCOPT_PYODIDE` names a folder in which ``npm install pyodide`` was run."""
    folder = os.environ.get("FORCOPT_PYODIDE", "")
    if not folder or which("node") is None:
        pytest.skip("needs node, and FORCOPT_PYODIDE, the folder of a Pyodide")
    subprocess.run([sys.executable, ROOT / ".github" / "build_core.py", tmp_path], check=True)
    (wheel,) = tmp_path.glob("forcopt_core-*.whl")
    command = ["node", ROOT / "benchmarks" / "installs" / "pyodide.mjs", wheel]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    steps = {row.pop("step"): row for row in map(json.loads, ended.stdout.splitlines())}
    assert steps["the wheel, each module compiled"]["modules"] > 400
    assert steps["the checker of proofs"]["said"].startswith("accepted")
    if ended.returncode == 3:
        pytest.skip("Pyodide's packages cannot be loaded here")
    assert ended.returncode == 0, ended.stdout
    assert not {"error"} & {*steps["block 1"], *steps["block 2"]}
