"""``forcopt predict``: a saved policy on a table of people."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from forcopt.errors import DeclarationError


def predict(
    policy: Annotated[Path, typer.Argument(metavar="POLICY", help="A file that Policy.save wrote.")],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A CSV file with the features by name.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="A file to write.")] = None,
    trusted: Annotated[bool, typer.Option("--trusted", help="Read a pickle, which may run code.")] = False,
) -> None:
    """Predict by a saved policy: a CSV table with a row for each row of DATA.

    It has the prediction, which a lottery draws from the row, and the probability of each label. Columns of
    DATA that the policy does not know are left out.
    """
    import pandas as pd

    from forcopt.problem.policy import Policy

    served = Policy.load(policy, trusted=trusted)
    schema = served.schema
    if not schema.names:
        raise DeclarationError(f"{policy} was learnt from an array, so its features have no names to look up")
    sensitive = served.groups.columns if served.groups is not None and served.needs_groups else ()
    text = {
        name for name, kind in zip(schema.names, schema.kinds, strict=True) if kind not in ("number", "truth")
    }
    table = pd.read_csv(data, dtype=dict.fromkeys((*text, *sensitive), str))
    people = table[[name for name in table.columns if name in (*schema.names, *sensitive)]]
    answers = pd.DataFrame({"prediction": served.predict(people)})
    if served.labels:
        names = [f"probability of {label}" for label in served.labels]
        answers[names] = served.predict_proba(people)
    answers.to_csv(out or sys.stdout, index=False)
