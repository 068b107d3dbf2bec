"""Tiers of the tests, and the seed of the day.

`core` is the engine on HiGHS and one case of each method, `nightly` are tables, notebooks, large seeds.
The full suite is what is not nightly. A day's seed decides which part of some large products is in it; the
variable ``FORCOPT_TEST_SEED`` repeats a day, and pytest prints it.
"""

import datetime
import importlib
import os
import random
import sys
import tomllib
from collections import Counter

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests run side by side; threads that wait for each other spin

import forcopt  # noqa: F401  (before pytest imports a module by its path: else that module exists twice)

CORE = (
    *(
        f"forcopt/{room}.py"
        for room in ("arrays", "check", "clock", "declaration", "errors", "memory", "notebook", "status")
    ),
    *(f"forcopt/{room}/" for room in ("language", "compile", "backends", "loops", "problem", "data")),
    *(
        f"tests/{room}/"
        for room in ("language", "compile", "backends", "loops", "problem", "data", "mutants")
    ),
    *(
        f"tests/{part}.py"
        for part in (
            "cli/test_cli",
            "test_check",
            "test_choices",
            "test_declaration",
            "test_file_schema",
        )
    ),
    "tests/test_registry_properties.py::test_a_method_conforms",
)
"""Where every test is core that is short and needs no solver but HiGHS."""

LONG = (
    "tests/problem/test_problem.py::test_a_wrong_or_missing_field_of_any_declaration_is_refused",
    "tests/language/test_matrices.py::test_random_programs_agree_with_cvxpy",
    *(
        f"tests/cli/test_cli.py::test_{name}"
        for name in (
            "a_problem_of_an_imported_file_is_listed_and_described",
            "import_of_a_file",
            "piped_tables_are_not_folded_and_have_no_style",
            "compare_takes_several_files_and_keeps_the_runs",
        )
    ),
)
"""Tests there that are for the full tests."""

OTHER_SOLVERS = (
    "cbc",
    "clarabel",
    "cp-sat",
    "cvxpy",
    "glop",
    "glpk",
    "gscip",
    "mathopt",
    "osqp",
    "pdlp",
    "pyomo",
    "pyscipopt",
    "scip",
    "scs",
)
"""A test with a parameter that begins so is in the full tests, and so is a file named after one."""


NIGHTLY = (
    *("tests/published/", "tests/docs/test_notebooks.py", "tests/docs/test_site.py", "tests/test_package.py"),
    "tests/models/counting_queries/test_counting_queries.py::test_profiles_agree",
    "tests/models/counting_queries/test_counting_queries.py::test_targets_at_a_thousand_queries",
    "tests/models/districting/test_exact_methods.py::test_a_complete_list_improves_the_linear_bound[3]",
    "tests/models/districting/test_public_data.py::test_french_departments_in_two_districts",
    "tests/models/fair_decisions/test_coverage.py::test_a_promise_for_every_covered_jurisdiction_costs",
    "tests/models/fair_decisions/test_grants.py::test_exact_quantiles_keep_their_promise_and_inflate_least",
    "tests/models/adaptive_robustness/test_robustness_radius.py::test_no_attack_is_better_than_the_milp_on_200",
    "tests/models/adaptive_queries/test_schedule.py::test_local_ratio_has_a_third_of_the_optimum_on_300",
)
"""Published tables, notebooks, builds, large seeds."""

DRAWN = (
    *(
        "tests/test_documents.py",
        "tests/parity/",
        "tests/cli/test_benchmark.py",
        "tests/cli/test_terminal.py",
    ),
    *("tests/test_notebook_display.py", "tests/test_certified_decisions.py", "tests/study/test_compare.py"),
    *("tests/study/test_store.py", "tests/study/test_sweep.py", "tests/study/test_page.py::test_a_phone"),
    "tests/problem/test_problem.py::test_a_wrong_or_missing_field_of_any_declaration_is_refused",
    "tests/models/adaptive_robustness/test_robustness_radius.py::test_changes_are_confirmed_at_any_scale",
    *("tests/models/adaptive_queries/test_plans.py", "tests/models/allocation/test_allocation_ends.py"),
    *("tests/models/districting/test_features.py", "tests/models/districting/test_heuristics.py"),
    "tests/models/fair_decisions/test_apportionment.py::test_india_by_two_methods",
    "tests/test_registry_properties.py::test_a_time_limit_is_kept_with_a_valid_bound",
    "tests/test_registry_properties.py::test_the_schema_accepts_the_files_of_its_class_and_no_others",
    "tests/models/counting_queries/test_counting_queries.py::test_every_method_meets_delta",
    "tests/models/fair_classification/test_estimator.py::test_it_is_an_estimator",
    "tests/models/fair_postprocessing/test_scores.py::test_it_is_an_estimator",
    *(
        f"tests/models/secure_sum/test_secure_sum.py::test_{name}"
        for name in (
            "all_exact_methods_equal_brute_force_over_all_steps_and_projections",
            "no_method_beats_the_exact_one",
            "acceptance_frequencies_and_rotations",
        )
    ),
    "tests/models/adaptive_queries/test_schedule.py::test_methods_agree",
    "tests/models/adaptive_robustness/test_functions.py::test_the_margin_rate",
    "tests/models/adaptive_robustness/test_robustness_radius.py::test_the_milp_on_every_backend",
    "tests/models/lexifair/test_all_methods.py::test_units_of_the_labels_do_not_matter",
    "tests/models/lexifair/test_exact_methods.py::test_no_backend_claims_an_optimum_whose_levels_are_off",
    "tests/models/strategic/test_strategic_targets.py::test_hitting_sets_in_both_directions",
    "tests/privacy/test_profiles.py::test_the_contour_lies_in_the_bracket",
    "tests/test_memory_limits.py::test_no_exact_method_is_killed_for_memory",
)
"""Slow tests, of which the full suite takes some each day, and the nightly one all."""

CASES = 20
"""A test outside of the core with more cases is drawn, too, unless it is quick or a mutant needs it."""

QUICK = (
    *("tests/docs/test_docstrings.py", "tests/test_import.py", "tests/test_memory_limits.py"),
    *(
        f"tests/test_registry_properties.py::test_{name}"
        for name in (
            "a_class_has",
            "a_declaration_conforms",
            "every_class_has",
            "every_method_takes",
            "every_name_in_a_schema",
        )
    ),
)
"""Products that take little time."""

SHARE = 0.25
"""Of the drawn tests and cases, this part is in the full suite of a day."""


def pytest_configure(config):
    """Set the seed of the day, for workers too."""
    os.environ.setdefault("FORCOPT_TEST_SEED", datetime.date.today().isoformat())


def pytest_report_header(config):
    """Print the seed."""
    return f"FORCOPT_TEST_SEED={os.environ['FORCOPT_TEST_SEED']}"


def pytest_collect_file(file_path, parent):
    """Give pytest the module of `forcopt.models` for a file in models/, which it looks up by this name."""
    folder = parent.config.rootpath / "models"
    if file_path.suffix == ".py" and file_path.is_relative_to(folder):
        parts = file_path.relative_to(folder).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        sys.modules[name] = importlib.import_module(f"forcopt.models.{name}")


def pytest_ignore_collect(collection_path, config):
    """Leave files without core tests unread where only those are asked for."""
    path = collection_path.relative_to(config.rootpath).as_posix()
    core = any(path.startswith(place) or place.startswith(path) for place in CORE)
    return True if config.option.markexpr == "core" and not core else None


def needs_other_solver(item):
    """Whether a test is about a backend that is not HiGHS."""
    about = (item.path.stem.removeprefix("test_").replace("cpsat", "cp-sat"),)
    if hasattr(item, "callspec"):
        about += tuple(value for value in item.callspec.params.values() if isinstance(value, str))
    return any(value.startswith(OTHER_SOLVERS) for value in about)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark each test by its tier."""
    seed = os.environ["FORCOPT_TEST_SEED"]
    rows = tomllib.loads((config.rootpath / "tests/mutants/mutants.toml").read_text(encoding="utf-8"))[
        "mutant"
    ]
    kept = (*QUICK, *{test for row in rows for test in row["tests"]})
    cases = Counter(item.nodeid.partition("[")[0] for item in items)
    for item in items:
        name = item.nodeid
        core = name.startswith(CORE) and not name.startswith(LONG) and not needs_other_solver(item)
        many = not core and cases[name.partition("[")[0]] > CASES and not name.startswith(kept)
        drawn = many or name.startswith(DRAWN)
        if name.startswith(NIGHTLY) or (drawn and random.Random(seed + name).random() >= SHARE):
            item.add_marker("nightly")
        elif core:
            item.add_marker("core")
