"""The command line as a program of its own: Ctrl-C, styling, completion, and output for other programs."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

import forcopt as fo
from forcopt.cli import app
from forcopt.study.library import instances

FORCOPT = [sys.executable, "-m", "forcopt"]


def forcopt(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **more}
    return subprocess.run([*FORCOPT, *words], capture_output=True, text=True, env=environment, timeout=600)


@pytest.mark.parametrize(
    ("spec", "method"),
    [
        ("queries/schedule-300-1000", "milp@highs"),
        ("queries/schedule-300-1000", "milp@cp-sat"),
        ("cohort/whole-200-60", "convex-program@highs"),
    ],
)
def test_an_interrupt_shows_the_incumbent_and_its_gap(spec, method):
    """SIGINT goes to a real process in the middle of a search that takes minutes."""
    with subprocess.Popen(
        [*FORCOPT, "-v", "solve", spec, "-m", method, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            first = process.stderr.readline()  # an incumbent
            assert re.match(r" *\d+\.\d\d s +objective", first), first + process.stderr.read()
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=600)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "stopped by Ctrl-C; this is the best that was found" in err
    found = json.loads(out)
    assert found["status"] in ("feasible", "approximate") and found["violations"] == {}
    problem = instances()[spec].make()
    if problem.sense == "max":
        assert found["objective"] <= found["bound"]
    else:
        assert found["objective"] >= found["bound"]
    assert found["bound"] is not None and found["gap"] >= 0


def test_an_interrupted_bare_model_shows_its_values(tmp_path):
    model, _ = instances()["queries/schedule-300-1000"].make().formulate("milp")
    model.write(tmp_path / "m.mps")
    with subprocess.Popen(
        [*FORCOPT, "-v", "solve", "m.mps"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert "objective" in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=600)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "status" in out and "gap" in out and "variable" in out


def test_a_run_outside_of_the_command_line_still_raises():
    code = (
        "import forcopt as fo, signal, threading, os\n"
        "from forcopt.study.library import instances\n"
        "p = instances()['queries/schedule-300-1000'].make()\n"
        "threading.Timer(3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "try:\n p.solve('milp@cp-sat', time_limit=60)\nexcept KeyboardInterrupt:\n print('raised')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.stdout == "raised\n", done.stderr


def styled(*words: str, **environment: str) -> str:
    """The output of the command on a terminal."""
    main, side = pty.openpty()
    known = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM", "CI", "GITHUB_ACTIONS")}
    process = subprocess.Popen(
        [*FORCOPT, *words],
        stdout=side,
        stderr=side,
        env={**known, "TERM": "xterm-256color", "COLUMNS": "100", **environment},
    )
    os.close(side)
    text = b""
    while select.select([main], [], [], 60)[0]:
        try:
            part = os.read(main, 65536)
        except OSError:
            break
        if not part:
            break
        text += part
    process.wait()
    os.close(main)
    return text.decode()


@pytest.mark.parametrize(
    "words", [("describe", "Districting"), ("--help",), ("solve", "postprocessing/compas"), ("backends",)]
)
def test_no_color_drops_all_styling(words):
    assert "\x1b[" in styled(*words)
    assert not re.search(r"\x1b\[[0-9;]*m", styled(*words, NO_COLOR="1"))  # the cursor may move


def test_lists_for_programs():
    run = CliRunner()
    models = json.loads(run.invoke(app, ["models", "--json"]).stdout)
    assert [m["model"] for m in models if m["model"] in fo.models.__all__] == sorted(fo.models.__all__)
    assert all(m["summary"] and m["methods"] for m in models)
    backends = json.loads(run.invoke(app, ["backends", "--json"]).stdout)
    assert {"backend", "takes", "version", "missing"} <= set(backends[0])
    listed = json.loads(run.invoke(app, ["instances", "list", "--json"]).stdout)
    assert [i["name"] for i in listed] == list(instances())
    examples = json.loads(run.invoke(app, ["examples", "--json"]).stdout)
    assert {e["example"] for e in examples} == set(fo.examples())


@pytest.mark.parametrize("words", [("models",), ("backends",), ("examples",), ("instances", "list")])
def test_a_piped_table_takes_the_width_of_its_content(words):
    lines = CliRunner().invoke(app, [*words]).stdout.splitlines()
    assert lines[0] and all(line == line.rstrip() for line in lines)
    assert not any("…" in line for line in lines)


def test_an_unknown_instance_suggests_three_names_at_most():
    error = CliRunner().invoke(app, ["solve", "districting/grid-4-3"]).stderr
    near = re.findall(r"'(districting/[^']*)'", error)[1:]
    assert len(near) == 3 and set(near) <= set(instances()) and len(error) < 300
    error = CliRunner().invoke(app, ["instances", "list", "districting/gird-4-2"]).stderr
    assert "did you mean 'districting/grid-4-2'" in error and len(error) < 300


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("forcopt sol", "solve"),
        ("forcopt describe Distr", "Districting"),
        ("forcopt solve postprocessing/c", "postprocessing/compas"),
        ("forcopt solve -b hig", "highs"),
    ],
)
def test_the_shell_completes(line, word):
    words = line.split()
    found = forcopt(
        _FORCOPT_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1)
    ).stdout.split()
    assert word in found and all(w.startswith(words[-1]) for w in found)


def test_quiet_and_verbose_stand_before_or_behind_the_command():
    run = CliRunner()
    for words in (
        ["-v", "solve", "strategic/max-cover", "-m", "milp"],
        ["solve", "strategic/max-cover", "-v"],
    ):
        result = run.invoke(app, words)
        assert result.exit_code == 0, result.stderr
    assert run.invoke(app, ["models", "-q", "--json"]).exit_code == 0


def test_an_encoding_without_a_sign_of_the_text_ends_in_no_error():
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252:strict"}
    command = [*FORCOPT, "describe", "LeximaxCohort"]
    said = subprocess.run(command, capture_output=True, encoding="cp1252", env=environment, timeout=600)
    assert said.returncode == 0 and "cohort/panel" in said.stdout and not said.stderr


def test_each_list_of_methods_counts():
    words = [
        "compare",
        "postprocessing/two-groups",
        "--json",
        "-m",
        "as-predicted",
        "-m",
        "lp@highs,lp@highs:ipm",
    ]
    rows = json.loads(CliRunner().invoke(app, words).stdout)["rows"]
    assert [(row["method"], row["backend"]) for row in rows] == [
        ("as-predicted", ""),
        ("lp", "highs"),
        ("lp", "highs:ipm"),
    ]


def test_a_closed_output_is_no_error():
    code = "import sys; sys.stdout = None; from forcopt.cli import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", code, "backends"], capture_output=True, text=True, timeout=600
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_missing_module_is_named_by_its_package():
    code = "import sys; sys.modules['sklearn'] = None; from forcopt.cli import main, app\n"
    code += "@app.command()\ndef learn(): import sklearn\nmain()"
    command = [sys.executable, "-c", code, "learn"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 2
    assert ended.stderr == "error: scikit-learn is not installed: pip install scikit-learn\n"
