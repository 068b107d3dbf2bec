"""``forcopt check``: what a file is, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument

from forcopt.cli.output import EncodingOption, JsonOption, Screen, findings_table, print_json, print_table
from forcopt.errors import DeclarationError


def check(
    file: Annotated[Path, Argument(help="A table, a map, a model, a declaration or a policy.")],
    encoding: EncodingOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what a file is, which command takes it, and what is wrong with it by row and column."""
    from forcopt.data.intake import Findings

    found = Findings()
    if not file.is_file():
        raise DeclarationError(f"there is no file {file}")
    what, command = _kind(file, found, encoding)
    if as_json:
        known: dict[str, Any] = {"file": str(file), "is": what, "command": command, "facts": found.facts}
        print_json(known | {"findings": found.frame().to_dict("records")})
    else:
        print(f"{file} is {what}", *(text for text in found.facts.values()), f"command: {command}", sep="\n")
        shown = findings_table(fault=found.faults, note=[] if Screen.quiet else found.notes)
        print_table(shown) if shown.row_count else print("no fault was found")
    if found.faults:
        raise typer.Exit(2)


def _kind(file: Path, found: Any, encoding: str | None) -> tuple[str, str]:
    """What a file is, and the command that takes it; adds the findings."""
    from forcopt.data.intake import read_json
    from forcopt.data.maps import map_facts, read_map
    from forcopt.loops.exchange import MODEL_SUFFIXES, read
    from forcopt.privacy import Schema
    from forcopt.problem.registry import load

    if file.name.lower().endswith(MODEL_SUFFIXES):
        found.facts[file.name] = str(read(file).summary())
        return "a model", f"forcopt solve {file}"
    if file.suffix.lower() in (".csv", ".tsv", ".txt", ".xlsx", ".xls", ".ods"):
        return _table(file, found, encoding)
    if file.suffix.lower() == ".toml":
        data: Any = {"model": ""}
    elif file.suffix.lower() in (".json", ".geojson"):
        data = read_json(file)
        if not isinstance(data, dict):
            raise DeclarationError(f"{file} is a {type(data).__name__} in JSON, which no command takes")
    else:
        data = {"features": []}
    if not {"nodes", "features"} & data.keys():
        if not {"model", "policy"} & data.keys():
            found.facts[file.name] = repr(Schema.from_dict(data))
            return "a schema of a private table", f"forcopt release PEOPLE --schema {file} --budget rho=.5"
        found.facts[file.name] = repr(load(file))[:200]
        if "policy" in data:
            return "a policy", f"forcopt predict {file} PEOPLE"
        return "a declaration", f"forcopt solve {file}"
    names = [name for facts in map_facts(file, file.name, found)[1][:1] for name in facts]
    likely = [name for name in names if name.upper().startswith(("TOTPOP", "POP", "P1_001N", "PEOPLE"))]
    people = (likely or ["TOTPOP"])[0]  # most likely it counts people
    _, seen = read_map(file, people)
    found.faults, found.notes, found.facts = seen.faults, seen.notes, seen.facts
    return "a map", f"forcopt districts {file} --population {people} -k DISTRICTS"


def _table(file: Path, found: Any, encoding: str | None) -> tuple[str, str]:
    """Check a table by what its columns seem to hold."""
    from forcopt.data.intake import Findings, check_table, column_kinds, read_rows
    from forcopt.models.leximax_cohort.panel_check import (
        QUOTA_COLUMNS,
        check_fit,
        check_quotas,
        quota_columns,
    )

    rows = read_rows(file, file.name, Findings(), encoding)
    if {*QUOTA_COLUMNS} <= {*(quotas := quota_columns(rows)).columns}:
        quotas, wanted = check_quotas(quotas, found)
        found.facts |= {feature: f"{feature}: {', '.join(levels)}" for feature, levels in wanted.items()}
        if wanted:
            check_fit(quotas, {}, None, found)
        return "a table of quotas", f"forcopt panel PEOPLE {file} --size SEATS"
    names = [name for name in dict.fromkeys(rows.columns) if name and list(rows.columns).count(name) == 1]
    schema = column_kinds(rows, names, lambda name, why: found.note(file.name, 1, name, name, why))
    check_table(file, file.name, schema, findings=found, encoding=encoding)
    for name, expected in schema.items():
        levels = ", ".join(sorted(set(rows[name]) - {""})[:8])
        found.facts[name] = f"{name}: {f'groups {levels}' if expected.kind == 'group' else 'numbers'}"
    return "a table", "forcopt panel, fair, sample or release"
