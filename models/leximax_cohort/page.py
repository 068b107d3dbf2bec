"""The page of a public draw: one file to read, to print, and to check, that needs no network."""

from __future__ import annotations

import hashlib
import html
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from forcopt.data.intake import Findings
from forcopt.notebook import picture_html
from forcopt.problem.report_page import picture, report, table

if TYPE_CHECKING:
    from forcopt.models.leximax_cohort.rounding import PublicLottery

_DICE = (("red", "#b3261e"), ("blue", "#0b57d0"), ("green", "#146c2e"), ("black", "#222222"))
"""Colours of the dice; each has a contrast of at least 4.5 with its white number."""


def draw_page(
    lottery: PublicLottery,
    drawn: int | str | None = None,
    facts: Mapping[str, object] | None = None,
    findings: Findings | None = None,
    promised: Iterable[str] = (),
) -> str:
    """Give the page of a public draw as HTML.

    Parameters
    ----------
    lottery : PublicLottery
        The numbered panels.
    drawn : int or str, optional
        The number that was drawn; its panel is shown first.
    facts : Mapping[str, object], optional
        More lines for the table about the lottery.
    findings : Findings, optional
        What was found in the files.
    promised : Iterable[str]
        More sentences about what was proved.

    Returns
    -------
    str
        How to throw the dice, everyone's odds, the odds by quota, and all panels.
    """
    p, count, numbers = lottery.problem, len(lottery.panels), lottery.numbers
    chances, names = lottery.marginals, np.array(p.names)
    listed = [(number, ", ".join(lottery.members(number))) for number in numbers]
    order = np.argsort(-chances, kind="stable")
    low, high = f"{lottery.smallest:.2%}", f"{chances.max():.2%}"
    known = {
        "panels": f"{count}, numbered {numbers[0]} to {numbers[-1]}; each has the same chance",
        "smallest chance": f"{round(lottery.smallest * count)} of {count} panels",
        "largest chance": f"{round(chances.max() * count)} of {count} panels",
        "equal chances would be": f"{p.even:.2%}",
        **(facts or {}),
        "SHA-256 of the CSV file": hashlib.sha256(lottery.table().to_csv().encode()).hexdigest(),
    }
    alt = f"The chances of all people, sorted: from {low} to {high}; equal chances are {p.even:.2%}."
    everyone = [(names[i], round(chances[i] * count), f"{chances[i]:.2%}") for i in order.tolist()]
    panels = table("Each line is a panel", ("panel", "members"), listed)
    head = ("person", f"panels of {count}", "chance")
    answer = {
        "The draw": ("" if drawn is None else _drawn(lottery, drawn))
        + _dice(numbers[-1])
        + table("The lottery", (), known.items()),
        "Odds by quota": _by_quota(lottery) + picture(picture_html(p.lottery(chances).plot()), alt),
        "The panels": f'<div class="panels">{panels}</div>',
        "Everyone": table(f"In how many of the {count} panels each person is", head, everyone),
    }
    texts = {"size": p.size, "people": len(names), "panels": count, "low": low, "high": high}
    question = {
        "volunteers": len(names),
        "seats": f"{p.size:g}",
        "quotas": f"{len(p.classes.names)} values of {', '.join(p.quotas)}",
        "households": "one member at most" if p.households else "not looked at",
    }
    return report("panel", texts, question=question, findings=findings, answer=answer, promised=promised)


def _drawn(lottery: PublicLottery, number: int | str) -> str:
    members = ", ".join(lottery.members(number))
    shown = lottery.numbers[int(number)]
    return f'<div class="drawn"><h2>Panel {shown} was drawn</h2><p>{html.escape(members)}</p></div>'


def _dice(last: str) -> str:
    """A picture of the dice in their order, and how to throw them."""
    words = f"Throw {len(last)} ten-sided dice of different colours, "
    words += "one for each digit of the panel's number. "
    dice, said = "", []
    for i in range(len(last)):
        name, colour = _DICE[i % len(_DICE)]
        unit = f"{10 ** (len(last) - 1 - i):,}s"
        x = 60 + 120 * i
        said.append(f"{name} for the {unit}")
        dice += (
            f'<polygon points="{x},5 {x + 42},45 {x},85 {x - 42},45" fill="{colour}"/>'
            f'<text x="{x}" y="57" class="face">{"0123456789"[(3 + 4 * i) % 10]}</text>'
            f'<text x="{x}" y="105">{name}: {unit}</text>'
        )
    example = "".join("0123456789"[(3 + 4 * i) % 10] for i in range(len(last)))
    words += f"Agree on the order before: {', '.join(said)}. The dice in the picture show {example}."
    if set(last) != {"9"}:
        words += f" Throw all dice again if the number is above {last}."
    alt = f"{len(last)} ten-sided dice that show {example}"
    width = 120 * len(last)
    picture = f'<svg class="dice" viewBox="0 0 {width} 112" width="{width}" role="img" aria-label="{alt}">'
    return f"<p>{words}</p><figure>{picture}{dice}</svg></figure>"


def _by_quota(lottery: PublicLottery) -> str:
    p, chances, rows = lottery.problem, lottery.marginals, []
    classes = p.classes
    quotas = zip(classes.names, classes.members > 0, classes.least, classes.most, strict=True)
    for name, own, least, most in quotas:
        ends = f"{least:g}" if least == most else f"{least:g}–{most:g}"
        mine = chances[own]
        if len(mine):
            seats, odds = f"{mine.sum():.2f}", [f"{c:.2%}" for c in (mine.mean(), mine.min(), mine.max())]
        else:
            seats, odds = "0", ["none"] * 3
        rows.append((name, ends, len(mine), seats, *odds))
    head = ("value", "quota", "people", "seats on average", "mean chance", "smallest", "largest")
    return table("The chance of a person with each value of a quota", head, rows)
