"""Damage proofs in ways that no correct checker may accept."""

from __future__ import annotations

import random
from fractions import Fraction

KINDS = ("coefficient", "sign", "multiplier", "leaf", "claim", "case")

PROBLEM = ("coefficient", "sign")
"""Kinds that change the problem, which may then have a valid proof."""


def mutated(text: str, rng: random.Random) -> tuple[str, str] | None:
    """Give a kind of damage and the damaged proof; None if the proof has no place for the kind drawn.

    Parameters
    ----------
    text : str
        A VIPR file with one constraint or derived line on a line, as forcopt writes it.
    rng : random.Random
        Chooses.
    """
    kind = rng.choice(KINDS)
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("CON ")) + 1
    end = next(i for i, line in enumerate(lines) if line.startswith("RTP "))
    first = next(i for i, line in enumerate(lines) if line.startswith("DER ")) + 1
    if kind in ("coefficient", "sign"):
        at = rng.choice([i for i in range(start, end) if int(lines[i].split()[3])])
        words = lines[at].split()
        place = 5 + 2 * rng.randrange(int(words[3]))
        words[place] = f"{words[place]}1" if kind == "coefficient" else _opposite(words[place])
        lines[at] = " ".join(words)
    elif kind == "multiplier":
        known = [i for i in range(first, len(lines)) if "{ lin" in lines[i] or "{ rnd" in lines[i]]
        known = [i for i in known if int(lines[i].split("{")[1].split()[1])]
        if not known:
            return None
        at = rng.choice(known)
        head, tail = lines[at].split("{")
        words = tail.split()
        place = 3 + 2 * rng.randrange(int(words[1]))
        words[place] = _opposite(words[place])
        lines[at] = f"{head}{{ {' '.join(words)}"
    elif kind == "leaf":
        at = rng.randrange(first, len(lines))
        del lines[at]
        lines[first - 1] = f"DER {len(lines) - first}"
    elif kind == "claim":
        words = lines[end].split()
        if words[1] != "range":
            return None

        lines[end] = f"RTP range {Fraction(words[2]) + 1} {Fraction(words[3]) + 1}"
    else:
        known = [i for i in range(first, len(lines)) if "{ asm" in lines[i]]
        if not known:
            return None
        at = rng.choice(known)
        words = lines[at].split()
        words[2] = str(int(words[2]) + rng.choice((-1, 1)))
        lines[at] = " ".join(words)
    return kind, "\n".join(lines) + "\n"


def _opposite(number: str) -> str:
    return number[1:] if number.startswith("-") else f"-{number}"
