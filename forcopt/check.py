"""Check a proof: ``python -m forcopt.check PROOF [MODEL.mps]``, or this file alone, copied anywhere.

It needs Python's standard library alone, and computes in integers and fractions. A proof of an integer or
linear program is in the VIPR format (1.0 and 1.1). With a model, each constraint of the proof must be one of
the model's, which is read here a second time, number by number as printed. Another certificate is JSON, whose
``kind`` says what it proves: ``bound``, ``infeasible`` (multipliers of rows and cones), ``irreducible`` (rows
that cannot hold together, although any one may be left out), ``privacy`` (of a table of probabilities) or
``rates`` (of decisions, recounted). Files may end in ``.gz``. Exit: 0 accepted, 1 refused, 2 bad arguments.
"""

import gzip
import json
import operator
import sys
from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor
from typing import Any

SECTIONS = ("NAME", "OBJSENSE", "ROWS", "COLUMNS", "RHS", "RANGES", "BOUNDS", "ENDATA")
LOWER, EQUAL, UPPER = 1, 0, -1  # senses: form >= limit, form = limit, form <= limit
Refused = ValueError  # what is wrong with a proof
HOLDS: Any = {LOWER: operator.ge, EQUAL: operator.eq, UPPER: operator.le}


def need(holds: bool, reason: str) -> None:
    """Refuse the proof if something does not hold."""
    if not holds:
        raise Refused(reason)


def number(text: Any) -> Any:
    """An integer or a fraction, of a decimal what is printed; a float of JSON is refused."""
    need(type(text) in (str, int), f"{text!r} is no exact number")
    value = Fraction(text)
    return value.numerator if value.denominator == 1 else value


def opened(path: str) -> Any:
    """The text of a file."""
    return gzip.open(path, "rt") if path.endswith(".gz") else open(path)


def value_of(form: Any, point: Any) -> Any:
    """A linear form at a point; what is not named is 0."""
    return sum(a * point.get(x, 0) for x, a in form.items())


class Program:
    """A program: bounds, integer columns, rows (form, low, high) by name, cones, objective and its square."""

    def __init__(self) -> None:
        self.low, self.high, self.rows, self.cost = (dict[str, Any]() for _ in range(4))
        self.cones, self.whole, self.square = list[Any](), set[str](), dict[Any, Any]()
        self.offset, self.maximize = Fraction(0), False

    def constraints(self) -> Iterator[tuple[Any, int, Any]]:
        """All bounds and rows, one side at a time; an equation is one constraint."""
        bounds = [({x: 1}, self.low[x], self.high[x]) for x in self.low]
        for form, low, high in (*bounds, *self.rows.values()):
            ends = [(EQUAL, low)] if low == high else [(LOWER, low), (UPPER, high)]
            yield from ((form, sense, end) for sense, end in ends if end is not None)

    def require(self, point: Any) -> None:
        """Refuse a point that violates anything."""
        need(set(point) <= set(self.low), "the point names an unknown column")
        need(all(v == floor(v) for x, v in point.items() if x in self.whole), "an integer is fractional")
        for form, sense, limit in self.constraints():
            need(HOLDS[sense](value_of(form, point), limit), f"the point violates {form} {sense} {limit}")
        held = (in_cone(kind, [c + value_of(f, point) for c, f in entries]) for kind, entries in self.cones)
        need(all(held), "the point is outside a cone")


def in_cone(kind: str, v: Any) -> bool:
    """Membership in a cone that is its own dual; a matrix is its lower triangle, row by row."""
    if kind == "second_order":
        return bool(v[0] >= 0 and v[0] ** 2 >= sum(x**2 for x in v[1:]))
    need(kind == "semidefinite_cone", f"cone {kind!r} is not known")
    n = next(k for k in range(len(v) + 1) if k * (k + 1) // 2 >= len(v))
    a = [[Fraction(v[max(i, j) * (max(i, j) + 1) // 2 + min(i, j)]) for j in range(n)] for i in range(n)]
    for k in range(n):
        if a[k][k] < 0 or (a[k][k] == 0 and any(a[i][k] for i in range(k + 1, n))):
            return False
        for i in range(k + 1, n) if a[k][k] else ():
            a[i] = [x - a[i][k] / a[k][k] * y for x, y in zip(a[i], a[k], strict=True)]
    return True


def mps_lines(path: str) -> Iterator[tuple[str, list[str]]]:
    """The words of each line of an MPS file, with its section."""
    section = ""
    for line in opened(path):
        words = line.split() if line[0] != "*" else []
        if words and section != "ENDATA" and not line[0].isspace():
            section = words.pop(0).upper()
            need(section in SECTIONS, f"section {section} is not read")
        if words and section not in ("NAME", "ENDATA"):
            yield section, words


def read_bound(p: Program, words: list[str], bounded: set[str]) -> None:
    """Take over a line of the section BOUNDS."""
    kind, valued = words[0], words[0] in ("UP", "LO", "FX", "UI", "LI")
    need(valued or kind in ("FR", "MI", "PL", "BV"), f"bound {kind} is not read")
    x, v = words[-2 if valued else min(2, len(words) - 1)], number(words[-1]) if valued else 0
    need(x in p.low and (valued or len(words) < 4), f"bound {words}")
    need(kind not in ("UP", "UI") or v >= 0 or p.low[x] != 0, f"{x} <= {v}, no lower bound")
    bounded.add(x)
    p.whole |= {x} if kind in ("UI", "LI", "BV") else set()
    if kind in ("LO", "LI", "FX", "FR", "MI", "BV"):
        p.low[x] = None if kind in ("FR", "MI") else v
    if kind in ("UP", "UI", "FX", "FR", "PL", "BV"):
        p.high[x] = 1 if kind == "BV" else None if kind in ("FR", "PL") else v


def read_mps(path: str) -> Program:
    """A program in free or fixed MPS format, without spaces in names; what is not known is refused."""
    p, marked, empty = Program(), False, dict[str, Any]
    kinds, forms, bounded, given = empty(), empty(), set[str](), {"RHS": empty(), "RANGES": empty()}
    for section, words in mps_lines(path):
        if section == "OBJSENSE":
            p.maximize = words[0].upper() in ("MAX", "MAXIMIZE")
        elif section == "ROWS":
            need(words[0] in ("N", "L", "G", "E") and words[1] not in kinds, f"row {words}")
            kinds[words[1]], forms[words[1]] = words[0], {}
        elif section == "COLUMNS" and words[1] == "'MARKER'":
            marked = words[2] == "'INTORG'"
        elif section == "COLUMNS":
            x = words[0]
            p.whole |= {x} if marked and x not in p.low else set()
            p.low[x], p.high[x] = 0, None
            for row, a in zip(words[1::2], words[2::2], strict=True):
                need(row in forms and x not in forms[row], f"entry {x}, {row}")
                forms[row][x] = number(a)
        elif section == "BOUNDS":
            read_bound(p, words, bounded)
        else:
            words = words[len(words) % 2 :]  # the name of the set may be missing
            for row, a in zip(words[::2], words[1::2], strict=True):
                need(row in kinds and row not in given[section], f"{section} of {row}")
                given[section][row] = number(a)
    p.high.update(dict.fromkeys(p.whole - bounded, 1))  # the default of integer columns
    for name, kind in kinds.items():
        right, width = given["RHS"].get(name, 0), given["RANGES"].get(name)
        low, high = (right if kind != "L" else None), (right if kind != "G" else None)
        if width is not None:
            wide = kind == "G" or (kind == "E" and width > 0)
            low, high = (low, low + abs(width)) if wide else (high - abs(width), high)
        form = {x: a for x, a in forms[name].items() if a}
        if kind != "N":
            p.rows[name] = form, low, high
        elif name == next(row for row in kinds if kinds[row] == "N"):
            p.cost, p.offset = form, -right
    return p


def combined(parts: Any, lines: Any) -> tuple[Any, int, Any]:
    """The linear combination of constraints; its multipliers must agree with their senses."""
    out, total, sense = dict[int, Any](), 0, EQUAL
    for i, weight in parts.items():
        need(i < len(lines), "a line refers to a later one")
        form, own, limit = lines[i]
        own = own if weight > 0 else -own
        need(EQUAL in (own, sense) or own == sense, f"the multiplier of line {i} has the wrong sign")
        sense = sense or own
        for j, a in form.items():
            out[j] = out.get(j, 0) + weight * a
        total += weight * limit
    return {j: a for j, a in out.items() if a}, sense, total


def dominates(one: Any, other: Any) -> bool:
    """Whether a constraint implies another of the same form; one that never holds implies all."""
    (form, sense, limit), (form2, sense2, limit2) = one, other
    if not form and not HOLDS[sense](0, limit):
        return True
    return form == form2 and sense in (EQUAL, sense2) and HOLDS[sense2](limit, limit2)


def integral(form: Any, whole: Any) -> bool:
    """Whether a form has integer values at all points."""
    return all(j in whole and a == floor(a) for j, a in form.items())


def told(sign: int, bound: Any, value: Any) -> str:
    """What is proved of the objective, which is minimised (sign 1) or maximised."""
    said = [] if bound is None else [f"every objective is at {'least' if sign > 0 else 'most'} {bound}"]
    said += [] if value is None else [f"a point attains {value}"]
    return "; ".join(said) + ("; it is optimal" if said and bound == value else "")


def compare(problem: Any, lines: Any, points: Any, model: Program) -> None:
    """Refuse a problem (names, integer columns, objective, its sign or 0), if it is not the model."""
    names, whole, cost, sign = problem
    need(sorted(names) == sorted(model.low), "the columns are not those of the model")
    need({names[j] for j in whole} == model.whole, "the integer columns are not those of the model")
    need(not sign or {names[j]: sign * a for j, a in cost.items()} == model.cost, "the objectives differ")
    known = {(frozenset(form.items()), sense, limit) for form, sense, limit in model.constraints()}
    for form, sense, limit in lines:
        named = frozenset((names[j], a) for j, a in form.items())
        need((named, sense, limit) in known, f"{dict(named)} {sense} {limit} is not in the model")
    for point in points:
        model.require({names[j]: v for j, v in point.items()})


def check_vipr(path: str, model: Program | None) -> str:
    """Check every line of a VIPR file, and what it says about a model; give what is proved."""
    words = (word for line in opened(path) if line[0] != "%" for word in line.split())

    def take(*known: str) -> str:
        word = next(words, "")
        need(not known or word in known, f"{path}: {' or '.join(known)} expected, {word!r} read")
        return word

    def index(section: str = "") -> int:
        text = (take(section), take())[1] if section else take()
        need(text.isdecimal(), f"{path}: {text!r} is no index")
        return int(text)

    def pairs(size: int, end: float = float("inf")) -> dict[int, Any]:
        found = {index(): number(take()) for _ in range(size)}
        need(len(found) == size and all(j < end for j in found), f"{path}: a list has wrong indices")
        return {j: a for j, a in found.items() if a}

    def constraint() -> tuple[Any, int, Any]:
        take()
        sense, limit, size = {"G": LOWER, "E": EQUAL, "L": UPPER}[take("G", "E", "L")], number(take()), take()
        return (cost if size == "OBJ" else pairs(int(number(size)), len(names))), sense, limit

    def derive(at: int) -> None:
        stated, _, reason = constraint(), take("{"), take("asm", "lin", "rnd", "uns", "sol")
        held = frozenset((at,) if reason == "asm" else ())
        if reason in ("lin", "rnd"):
            parts = pairs(index())
            form, sense, limit = combined(parts, lines)
            if reason == "rnd":
                need(sense != EQUAL and integral(form, whole), f"line {at} cannot be rounded")
                limit = ceil(limit) if sense == LOWER else floor(limit)
            need(dominates((form, sense, limit), stated), f"line {at} does not follow")
            held = held.union(*(under[i] for i in parts))
        elif reason == "uns":
            one, first, other, second = index(), index(), index(), index()
            need(max(one, first, other, second) < at, f"line {at} refers to a later one")
            (low, s, k), (form, s2, k2) = sorted((lines[first], lines[second]), key=lambda c: c[1])
            need((s, s2, k2) == (UPPER, LOWER, k + 1) and low == form, f"line {at}: these are no two cases")
            need(k == floor(k) and integral(form, whole), f"line {at}: the cases are not of an integer form")
            need(all(dominates(lines[i], stated) for i in (one, other)), f"line {at}: a case is open")
            held = (under[one] - {first}) | (under[other] - {second})
        elif reason == "sol":
            need(best is not None and stated[:2] == (cost, -flip), f"line {at} is no cutoff")
            need(flip * stated[2] >= best - integral(cost, whole), f"line {at} is beyond the best solution")
        take("}"), number(take())
        lines.append(stated)
        under.append(held)

    take("VER"), take("1.0", "1.1")
    names = [take() for _ in range(index("VAR"))]
    whole = {index() for _ in range(index("INT"))}
    flip = {"min": 1, "max": -1}[(take("OBJ"), take("min", "max"))[1]]
    cost = pairs(index(), len(names))
    size, _ = index("CON"), index()
    lines = [constraint() for _ in range(size)]
    under: list[frozenset[int]] = [frozenset()] * size  # the assumptions of each line
    infeasible = (take("RTP"), take("infeas", "range"))[1] == "infeas"
    ends = ["-inf", "inf"] if infeasible else [take(), take()]
    reached: Any = [None if v in ("-inf", "inf") else flip * number(v) for v in ends[::flip]]
    goal, reach = reached
    points = [(take(), pairs(index(), len(names)))[1] for _ in range(index("SOL"))]
    for point in points:
        need(all(v == floor(v) for j, v in point.items() if j in whole), "a solution is fractional")
        need(all(HOLDS[s](value_of(f, point), end) for f, s, end in lines), "a solution violates a line")
    best: Any = min((flip * value_of(cost, point) for point in points), default=None)
    for at in range(size, size + index("DER")):
        derive(at)
    need(not take(), "there is text behind the last line")
    if infeasible or goal is not None:
        need(best is None or (not infeasible and goal <= best), "a solution refutes the claim")
        aim = ({}, LOWER, 1) if goal is None else (cost, flip, flip * goal)
        need(len(lines) > size and not under[-1], "the last line rests on assumptions")
        need(dominates(lines[-1], aim), "the last line is not what was to be proved")
    need(reach is None or (best is not None and best <= reach), "no solution is as good as claimed")
    sign, offset = (-1 if model.maximize else 1, model.offset) if model else (flip, Fraction(0))
    if model is not None:
        compare((names, whole, cost, sign * flip * (not infeasible)), lines[:size], points, model)
    values = [None if v is None else sign * v + offset for v in (goal, best)]
    return "no point satisfies the program" if infeasible else told(sign, *values)


def read_program(data: Any) -> Program:
    """The program inside a JSON certificate."""
    p = Program()

    def form(entries: Any) -> Any:
        need(set(entries) <= set(p.low), "a form names an unknown column")
        return {x: number(a) for x, a in entries.items()}

    for x, low, high in data["columns"]:
        p.low[x], p.high[x] = (None if v is None else number(v) for v in (low, high))
    for name, entries, low, high in data["rows"]:
        need(name not in p.rows, f"row {name} occurs twice")
        p.rows[name] = form(entries), *(None if v is None else number(v) for v in (low, high))
    p.cones = [(kind, [(number(c), form(f)) for c, f in entries]) for kind, entries in data.get("cones", [])]
    p.cost, p.offset, p.maximize = form(data["cost"]), number(data["offset"]), bool(data["maximize"])
    p.square = {(x, y): number(a) for x, y, a in data.get("square", []) if form({x: 0, y: 0})}
    return p


def tangent(p: Program, sign: int, point: Any) -> tuple[Any, Any]:
    """The slope of a convex objective at a point, and its square there."""
    names = sorted({x for pair in p.square for x in pair})
    square = {pair: sign * a for (x, y), a in p.square.items() for pair in ((x, y), (y, x))}
    triangle = [square.get((x, y), 0) for i, x in enumerate(names) for y in names[: i + 1]]
    need(in_cone("semidefinite_cone", triangle), "the objective is not convex")
    slope = {x: sign * p.cost.get(x, 0) for x in p.low}
    for (x, y), a in square.items():
        slope[x] += a * point.get(y, 0)
    return slope, sum(a * point.get(x, 0) * point.get(y, 0) for (x, y), a in square.items())


def bound_of(p: Program, cost: Any, data: Any) -> Any:
    """The lower bound on ``cost`` that multipliers of rows and cones prove, each at its worse side."""
    used = [(*p.rows[name], number(text)) for name, text in data["rows"].items()]
    for (kind, entries), texts in zip(p.cones, data.get("cones", []), strict=True):
        duals = [number(text) for text in texts]
        used += [(f, -c, -c, d) for (c, f), d in zip(entries, duals, strict=True)]
        if kind == "semidefinite_cone":  # an entry below the diagonal stands for two of the matrix
            diagonal = [k * (k + 3) // 2 for k in range(len(duals))]
            duals = [d if i in diagonal else Fraction(d) / 2 for i, d in enumerate(duals)]
        need(in_cone(kind, duals), "multipliers are outside a cone")
    left = dict(cost)
    for x, a in [(x, weight * a) for form, _, _, weight in used for x, a in form.items()]:
        left[x] = left.get(x, 0) - a
    used = [item[1:] for item in used] + [(p.low[x], p.high[x], d) for x, d in left.items()]
    ends = [(low if weight > 0 else high, weight) for low, high, weight in used if weight]
    need(all(end is not None for end, _ in ends), "a multiplier stands at an infinite side")
    return sum(end * weight for end, weight in ends)


def check_json(path: str, model: Program | None) -> str:
    """Check a certificate; give what is proved."""
    data = json.load(opened(path))
    kind = data["kind"]
    if kind == "privacy":
        table = {row: {o: number(p) for o, p in one.items()} for row, one in data["probabilities"].items()}
        need(all(min(p.values()) >= 0 and sum(p.values()) == 1 for p in table.values()), "no distribution")
        epsilon, delta, ratio, term = number(data["epsilon"]), number(data["delta"]), Fraction(1), Fraction(1)
        need(0 <= epsilon <= 20, "epsilon is not between 0 and 20")
        for k in range(1, 100):  # the first terms of exp(epsilon) sum to less than it
            ratio, term = ratio + term * epsilon / k, term * epsilon / k
        for a, b in [order for pair in data["neighbours"] for order in (pair, pair[::-1])]:
            lost = sum(max(p - ratio * table[b].get(o, 0), 0) for o, p in table[a].items())
            need(lost <= delta, f"{a} against {b}: delta is {float(lost)}")
        return f"the mechanism is ({epsilon}, {delta})-differentially private for the pairs named"
    if kind == "rates":
        labels = {"acceptance": ["0", "1"], "true positive": ["1"], "false positive": ["0"]}
        for name, group, text in data["rates"]:
            rows = [number(d) for g, y, d in data["table"] if g == group and str(y) in labels[name]]
            need(bool(rows) and sum(rows) == len(rows) * number(text), f"{name} rate of {group}")
        return f"the {len(data['rates'])} rates are those of the table"
    need(kind in ("bound", "infeasible", "irreducible"), f"kind {kind!r} is not known")
    p = model or read_program(data["program"])
    if kind == "bound":
        sign = -1 if p.maximize else 1
        point = {x: number(v) for x, v in data.get("point", {}).items()}
        slope, square = tangent(p, sign, point)
        value = sign * (bound_of(p, slope, data) - Fraction(square) / 2) + p.offset
        need(sign * value >= sign * number(data["bound"]), f"the multipliers prove {value} only")
        if "point" not in data:
            return told(sign, number(data["bound"]), None)
        p.require(point)
        attained = value_of(p.cost, point) + Fraction(sign * square) / 2 + p.offset
        return told(sign, number(data["bound"]), attained)
    need(bound_of(p, {}, data) > 0, "the multipliers prove nothing")
    if kind == "infeasible":
        return "no point satisfies the program"
    need(set(data["rows"]) <= set(data["members"]) == set(data["points"]), "members, multipliers, points")
    every = p.rows
    for name, texts in data["points"].items():
        p.rows = {other: every[other] for other in data["members"] if other != name}
        p.require({x: number(v) for x, v in texts.items()})
    return f"the rows {', '.join(data['members'])} cannot hold together, and any of them may be left out"


def main(arguments: list[str]) -> int:
    """Check the files that are named; print what is proved, or why the proof is refused."""
    if len(arguments) not in (1, 2):
        print(__doc__)
        return 2
    try:
        check = check_json if opened(arguments[0]).read(1) == "{" else check_vipr
        said = check(arguments[0], read_mps(arguments[1]) if len(arguments) == 2 else None)
    except (Refused, KeyError, TypeError, IndexError, ZeroDivisionError) as error:
        print(f"refused: {error}")
        return 1
    print(f"accepted: {said}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
