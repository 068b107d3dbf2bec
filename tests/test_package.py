"""The wheel that the source distribution gives holds the problems, their examples and types, and runs."""

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import forcopt

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"
PACKED = (
    "forcopt",
    "models",
    "docs",
    "benchmarks",
    ".github",
    "pyproject",
    "setup.py",
    "README",
    "LICENSE",
    "MANIFEST",
)
BUILD = "import sys; from setuptools import build_meta as b; print(getattr(b, sys.argv[1])(sys.argv[2]))"


def build(kind, source, target, repository=""):
    """Build a distribution, or its metadata, of the folder `source` into the folder `target`."""
    command = [sys.executable, "-c", BUILD, kind, str(target)]
    environment = {**os.environ, "FORCOPT_REPOSITORY": repository}
    ended = subprocess.run(command, cwd=source, env=environment, text=True, capture_output=True, check=True)
    assert "Package would be ignored" not in ended.stdout + ended.stderr
    return target / ended.stdout.split()[-1]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The files of the package as they stand in the checkout."""
    pytest.importorskip("setuptools")
    copy = tmp_path_factory.mktemp("copy")
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, text=True, capture_output=True, check=False)
    if files.returncode:
        pytest.skip("this is no checkout")
    for name in files.stdout.split("\n"):
        if name.startswith(PACKED) and (ROOT / name).exists():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    return copy


@pytest.fixture(scope="module")
def wheel(copy, tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    source = build("build_sdist", copy, folder)
    with tarfile.open(source) as packed:
        packed.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    assert {path.name for path in (ROOT / "docs").iterdir()} == {
        path.name for path in (unpacked / "docs").iterdir()
    }
    drawn = {path for kind in ("*.md", "*.png", "*.svg", "history.csv") for path in BENCHMARKS.rglob(kind)}
    needed = {path.relative_to(ROOT) for path in drawn if (copy / path.relative_to(ROOT)).exists()}
    needed |= {Path(".github", f"{name}.md") for name in ("SECURITY", "GOVERNANCE", "CODE_OF_CONDUCT")}
    assert len(needed) > 40 and [path for path in needed if not (unpacked / path).exists()] == []
    return build("build_wheel", unpacked, folder)


def relative_links(text):
    return {link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link and link[0] != "#"}


def test_links_work_on_a_package_index(copy, tmp_path):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert relative_links(readme) and all((ROOT / link).exists() for link in relative_links(readme))
    plain = build("prepare_metadata_for_build_wheel", copy, tmp_path) / "METADATA"
    assert plain.read_text(encoding="utf-8").endswith(readme) and "Project-URL" not in plain.read_text()
    (tmp_path / "public").mkdir()
    address = "https://forge.example/group/forcopt"
    public = build("prepare_metadata_for_build_wheel", copy, tmp_path / "public", address) / "METADATA"
    text = public.read_text(encoding="utf-8")
    assert f"Project-URL: Repository, {address}\n" in text
    assert not relative_links(text)
    kinds = {link: "raw" if Path(link).suffix == ".svg" else "blob" for link in relative_links(readme)}
    assert {f"{address}/{kind}/main/{link}" for link, kind in kinds.items()} <= set(
        re.findall(r"\]\(([^)]+)\)", text)
    )


@pytest.mark.parametrize("page", ["CITATION.cff", "docs/citing.md", "docs/howto/browser.md"])
def test_pages_name_this_version(page):
    assert forcopt.__version__ in (ROOT / page).read_text(encoding="utf-8")


def test_no_file_of_the_repository_is_a_link():
    """A checkout on a system without symbolic links has all files."""
    ours = subprocess.run(["git", "ls-files", "-s"], cwd=ROOT, text=True, capture_output=True, check=True)
    assert [line for line in ours.stdout.splitlines() if line.startswith("120000")] == []


def test_the_wheel_holds_all(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "forcopt/py.typed" in names and "forcopt/models/districting/problem.py" in names
    ours = subprocess.run(["git", "ls-files", "models"], cwd=ROOT, text=True, capture_output=True, check=True)
    wanted = {f"forcopt/{name}" for name in ours.stdout.split("\n") if name and not name.endswith(".md")}
    assert wanted <= names  # pages for maintainers stay in the repository


def test_an_example_runs_from_the_wheel(wheel, tmp_path):
    place = tmp_path / "site"
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(place)
    others = [path for path in sys.path if path and not Path(path).resolve().is_relative_to(ROOT / "tests")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(place), *others])}
    code = "import forcopt; print(forcopt.__file__)"
    where = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        text=True,
        capture_output=True,
        check=True,
    )
    assert where.stdout.startswith(str(place))
    command = [sys.executable, "-m", "forcopt", "solve", "postprocessing/compas", "--json"]
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment, text=True, capture_output=True, check=True, timeout=600
    )
    assert json.loads(ended.stdout)["status"] == "optimal"


def test_the_recipe_of_conda_has_the_requirements():
    yaml = pytest.importorskip("yaml")
    conda = {"ortools-python": "ortools", "matplotlib-base": "matplotlib"}
    recipe = yaml.safe_load((ROOT / ".github" / "recipe.yaml").read_text(encoding="utf-8"))
    run = dict(line.split(" ") for line in recipe["requirements"]["run"])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    ours = dict(re.fullmatch(r"([a-z-]+)(.*)", line).groups() for line in project["dependencies"])
    assert run.pop("python") == project["requires-python"]
    assert {conda.get(name, name): bounds for name, bounds in run.items()} == ours
    assert recipe["context"]["version"] == forcopt.__version__
    assert f"\nversion: {forcopt.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
