"""The page of a public draw: one file to read, to print, and to check, that needs no network."""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from forcopt.notebook import picture_html

if TYPE_CHECKING:
    from forcopt.models.leximax_cohort.rounding import PublicLottery

_DICE = (("red", "#b3261e"), ("blue", "#0b57d0"), ("green", "#146c2e"), ("black", "#222222"))
"""Colours of the dice; each has a contrast of at least 4.5 with its white number."""


def draw_page(
    lottery: PublicLottery, drawn: int | str | None = None, facts: Mapping[str, object] | None = None
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
    parts = {
        "title": f"A public draw of {p.size:g} among {len(names)} people",
        "summary": f"{count} panels of {p.size:g} people were computed before the draw. Each keeps all "
        f"quotas, and each has the same chance. The chances of the people are {low} to {high}.",
        "drawn": "" if drawn is None else _drawn(lottery, drawn),
        "dice": _dice(numbers[-1]),
        "facts": _table("The lottery", (), known.items()),
        "quotas": _by_quota(lottery),
        "alt": f"The chances of all people, sorted: from {low} to {high}; equal chances are {p.even:.2%}.",
        "picture": picture_html(p.lottery(lottery.marginals).plot()),
        "panels": f'<div class="panels">{_table("Each line is a panel", ("panel", "members"), listed)}</div>',
        "everyone": _table(
            f"In how many of the {count} panels each person is",
            ("person", f"panels of {count}", "chance"),
            [(names[i], round(chances[i] * count), f"{chances[i]:.2%}") for i in order.tolist()],
        ),
    }
    for plain in ("title", "summary", "alt"):
        parts[plain] = html.escape(parts[plain])
    text = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], text)


def _table(caption: str, head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table whose first column heads its rows; numbers stand to the right."""
    names = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in head)
    body = ""
    for first, *cells in rows:
        body += f'<tr><th scope="row">{html.escape(str(first))}</th>'
        for cell in map(str, cells):
            kind = ' class="number"' if names and re.fullmatch(r"[\d.,%–]+", cell) else ""
            body += f"<td{kind}>{html.escape(cell)}</td>"
        body += "</tr>\n"
    top = f"<thead><tr>{names}</tr></thead>" if names else ""
    return f"<table><caption>{html.escape(caption)}</caption>{top}<tbody>\n{body}</tbody></table>"


def _drawn(lottery: PublicLottery, number: int | str) -> str:
    members = ", ".join(lottery.members(number))
    shown = lottery.numbers[int(number)]
    return f'<div class="drawn"><h2>Panel {shown} was drawn</h2><p>{html.escape(members)}</p></div>'


def _dice(last: str) -> str:
    """A picture of the dice in their order, and how to throw them."""
    words = (
        f"Throw {len(last)} ten-sided dice of different colours, one for each digit of the panel's number. "
    )
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
    for name, own, least, most in zip(
        classes.names, classes.members > 0, classes.least, classes.most, strict=True
    ):
        ends = f"{least:g}" if least == most else f"{least:g}–{most:g}"
        mine = chances[own]
        if len(mine):
            seats, odds = f"{mine.sum():.2f}", [f"{c:.2%}" for c in (mine.mean(), mine.min(), mine.max())]
        else:
            seats, odds = "0", ["none"] * 3
        rows.append((name, ends, len(mine), seats, *odds))
    head = ("value", "quota", "people", "seats on average", "mean chance", "smallest", "largest")
    return _table("The chance of a person with each value of a quota", head, rows)
