"""From a table of people to a tested fair policy and its report."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from forcopt.data.intake import (
    Expected,
    Findings,
    Fixes,
    cell_text,
    check_table,
    column_kinds,
    is_number,
    near_number,
    nearest_hint,
    read_rows,
    typed,
)
from forcopt.data.tolerances import MOST_CODES
from forcopt.errors import DeclarationError, require
from forcopt.fairness import ERROR, FALSE_POSITIVE, SELECTION, TRUE_POSITIVE, GroupReport
from forcopt.fairness.notions import EqualizedOdds, Notion
from forcopt.models.fair_postprocessing.threshold_postprocessor import ThresholdPostprocessor
from forcopt.notebook import picture_html
from forcopt.problem.policy import Policy
from forcopt.problem.report_page import picture, report, table

_BETTER = "1 yes true y t hired repaid accepted approved admitted passed good".split()  # noqa: SIM905
"""Labels that are the better treatment by their name."""

_NEARLY = 0.05
"""A share of the rarer label's rows. A feature that tells the label of all rows but these is noted."""

_FEWEST = 100
"""Records: with fewer, intervals of rates are so wide that a report says nothing."""


@dataclass(frozen=True)
class FairReport:
    """A policy that was fitted on a part of a table and tested on the rest.

    Attributes
    ----------
    policy : Policy
        To save and to serve; its promise holds the test.
    rates : GroupReport
        The rates of the policy in each group of the test records.
    before : GroupReport
        Those of the learner alone.
    findings : Findings
        What was found in the table.
    question : dict[str, Any]
        What was asked.
    untested : tuple of str
        The groups of too few records to have one among the test records.
    promise : str
        What holds for new records.
    """

    policy: Policy
    rates: GroupReport
    before: GroupReport
    findings: Findings
    question: dict[str, Any]
    untested: tuple[str, ...]
    promise: str

    @property
    def errors(self) -> tuple[float, float]:
        """The share of wrong predictions of the policy and of the learner alone, on the test records."""
        policy, alone = (float(r.overall["error rate"]) for r in (self.rates, self.before))
        return policy, alone

    def to_html(self, path: str | Path) -> None:
        """Write the report as a page that needs no other file."""
        answer, head = {}, ("rate", "group", "records", "estimate", "low", "high")
        for title, rates in (("The policy", self.rates), ("The learner alone", self.before)):
            groups = list(rates.rows)
            rows = [
                (
                    row["metric"],
                    " ".join(str(row[name]) for name in groups),
                    f"{row['records']:,.0f}",
                    *(f"{row[name]:.1%}" if row["records"] else "too few" for name in head[3:]),
                )
                for row in rates.frame().to_dict("records")
            ]
            rows += [("every rate", name, "0", "too small to test", "", "") for name in self.untested]
            gaps = ", ".join(f"{name} {gap:.1%}" for name, gap in rates.difference().items())
            alt = f"The rates of the groups with their intervals, as in the table. Differences: {gaps}."
            drawing = picture(picture_html(rates.plot()), alt)
            answer[title] = drawing + table(f"Differences: {gaps}", head, rows)
        promised = [f"On new records: {self.promise}"] if self.promise else []
        for name, (at, _, high) in self.policy.promise["fresh"]["gap"].items():
            most = f"{high:.1%} at most in the population they come from, all with 95 % probability together."
            promised.append(f"{name}: two groups differ by {at:.1%} on the test records, and by {most}")
        known = {**self.question, "error": self.errors[0], "error_before": self.errors[1]}
        parts: dict[str, Any] = {"question": self.question, "findings": self.findings, "answer": answer}
        Path(path).write_text(report("fair", known, **parts, promised=promised), encoding="utf-8")


def fair_report(
    frame: Any,
    *,
    label: str,
    sensitive: str | Sequence[str],
    notion: Notion | None = None,
    positive: str | None = None,
    learner: Any = None,
    leave_out: Sequence[str] = (),
    fixes: Fixes | None = None,
    encoding: str | None = None,
    seed: int = 0,
) -> FairReport:
    """Check a table of people, learn a fair policy from it, and test it on a third of the records.

    Parameters
    ----------
    frame : DataFrame, str or Path
        A row for each person, or a file of it.
    label : str
        The column with the outcome, of two values.
    sensitive : str or sequence of str
        The column, or columns, of the groups.
    notion : Notion, optional
        What is demanded; ``EqualizedOdds(0.05)`` by default.
    positive : str, optional
        The better label; needed if its name does not say so.
    learner : classifier, optional
        Of scikit-learn, for a frame of numbers and text; by default logistic regression with filled blanks.
    leave_out : sequence of str, optional
        Columns that are no features.
    fixes, encoding
        See `forcopt.data.check_table`.
    seed : int, default 0
        Of the parts and of the policy's draws.

    Returns
    -------
    FairReport
        With the policy; `FairReport.to_html` writes the report.

    Raises
    ------
    DeclarationError
        For a fault of the table: all are named by row and column; and for fewer than 100 records.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> sex, skill = rng.choice(["f", "m"], 900), rng.normal(size=900).round(2)
    >>> hired = np.where(skill + (sex == "m") + rng.logistic(size=900) > 0.5, "yes", "no")
    >>> people = pd.DataFrame({"sex": sex, "skill": skill, "hired": hired})
    >>> found = fair_report(people, label="hired", sensitive="sex", notion=EqualizedOdds(0.1))
    >>> found.policy.labels, found.rates.by_group.index.tolist()
    (('no', 'yes'), ['f', 'm'])
    """
    groups = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    named = all(isinstance(name, str) for name in (label, *groups))
    if not groups or not named or len(set(groups)) < len(groups):
        given = f"label is {label!r} and sensitive is {sensitive!r}"
        raise DeclarationError(f"{given}; they must name different columns")
    if label in groups:
        raise DeclarationError(f"label is {label!r}, which is sensitive, too; name two columns")
    people, findings, schema, better = _checked(frame, label, groups, positive, leave_out, fixes, encoding)
    notion = EqualizedOdds(0.05) if notion is None else notion
    features = [name for name in schema if name != label and name not in groups]
    table = typed(people, schema).reset_index(drop=True)
    for name in features:
        if schema[name].kind == "group":
            table[name] = table[name].where(table[name] != "").astype("category")
    labels = table[label].to_numpy(dtype=object)
    names = (next(value for value in labels if value != better), better)
    fresh = np.zeros(len(table), dtype=bool)
    rng = np.random.default_rng(seed)
    cells = table.groupby([*groups, label], sort=True).indices
    for rows in cells.values():  # a third of each group and label
        fresh[rng.permutation(rows)[: len(rows) // 3]] = True
    X = table[[*features, *groups]]
    of = table[groups[0]] if len(groups) == 1 else table[groups]
    base = _learner(schema, features) if learner is None else learner
    asked = groups[0] if len(groups) == 1 else groups
    model = ThresholdPostprocessor(base, notion, sensitive=asked, held_out=0.5, random_state=seed)
    try:
        model.fit(X[~fresh], (labels[~fresh] == better).astype(int))  # the better label is the second one
    except DeclarationError as error:
        if "has no records" not in str(error):
            raise
        rule = "merge it into another group by a fix, or drop its rows (--fix)"
        raise DeclarationError(f"{str(error).rpartition(': ')[2]}; {rule}") from None
    policy = replace(model.policy_, labels=names).tested(X[fresh], labels[fresh], of[fresh])
    numbers = table[[name for name in features if schema[name].kind == "number"]]
    ranges = {name: [float(column.min()), float(column.max())] for name, column in numbers.items()}
    policy = replace(policy, promise={**policy.promise, "ranges": ranges})
    alone = np.array(names, dtype=object)[model.estimator_.predict(table.loc[fresh, features])]
    metrics = (SELECTION, TRUE_POSITIVE, FALSE_POSITIVE, ERROR)
    rates, before = (
        GroupReport.from_predictions(
            drawn, of[fresh], labels[fresh], metrics=metrics, positive=policy.pos_label
        )
        for drawn in (policy.predict(X[fresh]), alone)
    )
    tested, demand = policy.promise["fresh"]["gap"], {"demand": repr(notion)}
    if (most := getattr(notion, "tolerance", None)) is not None:  # a bound on differences
        gaps = {rate.name: tested[rate.name][0] for rate in notion.rates if rate.name in tested}
        wide = "; ".join(f"{name} differs by {gap:.1%}" for name, gap in gaps.items() if gap > most)
        most_words = f"{' and '.join(gaps)} within {most:.1%}"
        demand = {"demand": most_words, "on the test records": f"missed: {wide}" if wide else "kept"}
    crossed = table[groups].agg(" ".join, axis=1)
    if untested := tuple(sorted(set(crossed) - set(crossed[fresh]))):
        demand["too small to test"] = ", ".join(untested)
    question = {
        "label": label,
        "better label": better,
        "groups": "; ".join(f"{name}: {', '.join(sorted(set(table[name])))}" for name in groups),
        **demand,
        "features": ", ".join(features),
        "records": f"{int((~fresh).sum()):,} to learn from, {int(fresh.sum()):,} to test",
    }
    return FairReport(policy, rates, before, findings, question, untested, model.report_.promise)


def _checked(
    frame: Any,
    label: str,
    groups: list[str],
    positive: str | None,
    leave_out: Sequence[str],
    fixes: Fixes | None,
    encoding: str | None,
) -> tuple[pd.DataFrame, Findings, dict[str, Expected], str]:
    """The table as text, what was found in it, what its columns hold, and the better label."""
    file = Path(frame).name if isinstance(frame, str | Path) else "frame"
    raw, findings = read_rows(frame, file, Findings(), encoding), Findings()
    names = [name for name in dict.fromkeys(raw.columns) if name and list(raw.columns).count(name) == 1]

    def say(name: str, why: str) -> None:
        findings.note(file, 1, name, name, f"is no feature: it {why}")

    for name, count in Counter(raw.columns).items():
        if count > 1 and name and name not in (label, *groups):
            rule = f"is the name of {count} columns, of which none can be a feature; delete or rename one"
            findings.fault(file, 1, name, name, rule)
    for name in leave_out:
        if name not in names or name == label:
            hint = nearest_hint(name, [other for other in names if other != label])
            raise DeclarationError(f"leave_out has {name!r}, which is no feature{hint}")
    features = [name for name in names if name not in (label, *groups, *leave_out)]
    schema = {label: Expected("group"), **dict.fromkeys(groups, Expected("group"))}
    schema |= column_kinds(raw, features, say)
    people, _ = check_table(frame, file, schema, fixes=fixes, findings=findings, encoding=encoding)
    positive = None if positive is None else cell_text(positive)
    better = positive or ""
    if label in people.columns and not findings.faults:
        values = sorted(set(people[label]))
        named = [v for v in values if v.casefold() in _BETTER and (v != "1" or values[0] in ("-1", "0"))]
        if len(values) != 2:
            rare = people[label].value_counts().index[-1]
            row = int(people.index[people[label] == rare][0])
            rule = f"is one of {len(values)} labels, {', '.join(values[:5])}; there must be two"
            findings.fault(file, row, label, rare, rule)
        elif positive is None and len(named) == 1:
            better = named[0]
        elif positive not in values:
            rule = f"is not among {', '.join(values)}: name the better label by positive (--positive)"
            if positive is None:
                rule = "are the labels; say which is the better one by positive (--positive)"
            findings.fault(file, 1, label, positive or ", ".join(values), rule)
        _find_tellers(people, label, schema, features, findings, file)
        if len(people) < _FEWEST:
            rule = f"rows are too few: {_FEWEST} at least"
            findings.fault(file, 0, "", str(len(people)), rule)
    findings.refuse()
    return people, findings, schema, better


def _find_tellers(
    people: pd.DataFrame,
    label: str,
    schema: dict[str, Expected],
    features: list[str],
    findings: Findings,
    file: str,
) -> None:
    """Add a fault for each feature that tells the label, and a note if it does so in nearly all rows."""
    for name in filter(schema.__contains__, features):
        told = people.groupby(name)[label].value_counts().groupby(level=0).max()
        wrong, codes = len(people) - told.sum(), len(told) <= MOST_CODES
        number = schema[name].kind == "number"
        if not wrong and (codes or (number and _is_threshold(people[name], people[label]))):
            rule = "tells the label of every row; leave it out by leave_out (--leave-out)"
            findings.fault(file, 1, name, name, rule)
        elif codes and wrong <= _NEARLY * people[label].value_counts().min():
            rule = f"tells the label of all rows but {wrong}; was it known before the label?"
            findings.note(file, 1, name, name, rule)


def _is_threshold(cells: pd.Series[str], labels: pd.Series[str]) -> bool:
    """Whether all numbers above one have one label, and all below it the other."""
    filled = labels[cells != ""].iloc[cells[cells != ""].astype(float).argsort(kind="stable")]
    return int((filled != filled.shift()).sum()) <= 2


def _learner(schema: dict[str, Expected], features: list[str]) -> Any:
    """Logistic regression on numbers and encoded words, with blanks filled."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = [name for name in features if schema[name].kind == "number"]
    words = [name for name in features if schema[name].kind == "group"]
    if not features:
        raise DeclarationError("the table has no feature besides the label and the groups")
    encoded = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    parts = [(make_pipeline(SimpleImputer(), StandardScaler()), numbers)] if numbers else []
    parts += [(encoded, words)] if words else []
    return make_pipeline(make_column_transformer(*parts), LogisticRegression(max_iter=1000))


def notion_from(text: str) -> Notion:
    """Read a notion, such as ``equalized_odds=.02``.

    Raises
    ------
    DeclarationError
        For another name, or a tolerance that is no share.

    Examples
    --------
    >>> notion_from("equalized_odds=.02")
    EqualizedOdds(tolerance=0.02)
    """
    from forcopt import fairness

    name, _, value = text.partition("=")
    known = ("DemographicParity", "EqualizedOdds", "EqualOpportunity", "FalsePositiveParity", "ErrorParity")
    kinds = {re.sub(r"(?<!^)(?=[A-Z])", "_", kind).lower(): getattr(fairness, kind) for kind in known}
    number, plain = value.strip().rstrip("% "), name.strip().lower().replace("-", "_")
    rule = f"be one of {', '.join(kinds)}, such as equalized_odds=2%"
    require(plain in kinds and is_number(number), "notion", text, rule)
    share = float(near_number(value))
    if not 0 <= share < 1:
        near = f": write {number}%" if 0 < share <= 100 else ""
        raise DeclarationError(f"notion is {text!r}; its tolerance must be a share from 0 to 1{near}")
    made: Notion = kinds[plain](share)
    return made
