"""``forcopt predict``: a saved policy on a table of people."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from forcopt.cli.output import EncodingOption, keep_inputs
from forcopt.errors import DeclarationError


def predict(
    policy: Annotated[Path, Argument(metavar="POLICY", help="A file that Policy.save wrote.")],
    data: Annotated[Path, Argument(metavar="DATA", help="A CSV file with the features by name.")],
    out: Annotated[Path | None, Option("--out", "-o", metavar="FILE", help="A file to write.")] = None,
    encoding: EncodingOption = None,
    trusted: Annotated[bool, Option("--trusted", help="Read a pickle, which may run code.")] = False,
) -> None:
    """Predict by a saved policy: a CSV table with a row for each row of DATA.

    It has the prediction, which a lottery draws from the row, and the probability of each label. Columns of
    DATA that the policy does not know are left out. Words such as NA are missing, as pandas reads them,
    unless the policy was learnt from them. A blank line above others in a file of one column is refused.
    """
    import numpy as np
    import pandas as pd

    from forcopt.data.intake import DOUBLED, FIRST_ROW, Expected, Finding, is_number, read_rows, take_table
    from forcopt.learning.tables import ABSENT
    from forcopt.problem.policy import Policy

    keep_inputs([policy, data], out)
    served = Policy.load(policy, trusted=trusted)
    schema = served.schema
    if not schema.names:
        raise DeclarationError(f"{policy} was learnt from an array, so its features have no names to look up")
    sensitive = served.groups.columns if served.groups is not None and served.needs_groups else ()
    kinds: dict[str, Any] = dict.fromkeys(sensitive, "text with NA")
    kinds |= dict(zip(schema.names, schema.kinds, strict=True))
    rows = read_rows(data, data.name, encoding=encoding)
    if rows.shape[1] == 1 and (gaps := [k for k, row in enumerate(rows.index, FIRST_ROW) if k != row]):
        raise DeclarationError(f"{data.name}, row {gaps[0]}: it is blank; fill it in, or delete it")
    number = Expected("number", blank=True, usual=False)
    reads = {"number": number, "truth": Expected("group", ("True", "False"), blank=True)}
    wanted = {name: reads.get(kind, Expected("text", blank=True)) for name, kind in kinds.items()}
    groups = served.groups if sensitive else None
    known = groups.levels if groups is not None and groups.unknown == "refuse" else {}
    for name, kind in kinds.items():
        values = kind if isinstance(kind, tuple) else known.get(name, ())
        levels = tuple(dict.fromkeys(str(value) for value in values if value is not None))
        if levels and not (name in known and any(map(is_number, levels))):  # the group 1 may be 1.0
            wanted[name] = Expected("group", levels, blank=name not in known or None in values)
    people = take_table(rows, data.name, wanted, {DOUBLED: DOUBLED}).replace("", np.nan)
    for name, (low, high) in served.promise.get("ranges", {}).items():
        far = people.index[(people[name] < low) | (people[name] > high)].tolist()
        if far:
            rule = f"is outside {low:g} to {high:g}, of which the policy was learnt; check its unit"
            more = f" (and in {len(far) - 1} more rows)" if len(far) > 1 else ""
            note = Finding(data.name, far[0], name, f"{people[name][far[0]]:g}", rule)
            print(f"note: {note}{more}", file=sys.stderr)
    for name in wanted:
        kind = (False, True) if kinds[name] == "truth" else kinds[name]
        if kind == "spaced text":
            rule = "the policy was learnt from blanks around its words, which this command does not read"
            raise DeclarationError(f"{data.name}, column {name}: {rule}; predict in Python")
        meant = {str(value): value for value in kind} if isinstance(kind, tuple) else {}
        meant |= dict.fromkeys(ABSENT, np.nan) if kind == "text" else {}
        people[name] = people[name].astype(object).map(lambda cell, meant=meant: meant.get(cell, cell))
    answers = pd.DataFrame({"prediction": served.predict(people)})
    if served.labels:
        answers[[f"probability of {label}" for label in served.labels]] = served.predict_proba(people)
    answers.to_csv(out or sys.stdout, index=False)
