"""Each way in which a short VIPR file may prove too much, beside the file without the mistake."""

import json

import pytest

from forcopt import check

START = "VER 1.0\nVAR 2\nx y\n"
"""Then come the integer columns; the objective is x, to be minimised."""


def verdict(folder, text, model=None):
    (folder / "p.vipr").write_text(START + text)
    try:
        return check.check_vipr(str(folder / "p.vipr"), model)
    except check.Refused as error:
        return f"refused: {error}"


def proof(whole, constraints, lines, solutions="SOL 0", claim="1 inf"):
    """Of ``x >= 1``, if the claim is not another one."""
    integer = f"INT {len(whole.split())}\n{whole}\n"
    stated = "\n".join(f"c{i} {line}" for i, line in enumerate(constraints))
    derived = "\n".join(f"d{i} {line} -1" for i, line in enumerate(lines))
    head = f"{integer}OBJ min\n1 0 1\nCON {len(constraints)} 0\n{stated}\nRTP range {claim}\n"
    return f"{head}{solutions}\nDER {len(lines)}\n{derived}\n"


SUM, DIFFERENCE = "G 1 2 0 1 1 1", "G 0 2 0 1 1 -1"
"""``x + y >= 1`` and ``x >= y``."""

CASES = [
    "L 0 1 1 1 { asm }",
    "G 1 1 1 1 { asm }",
    "G 1 1 0 1 { lin 2 0 1 2 -1 }",
    "G 1 1 0 1 { lin 2 1 1 3 1 }",
]
"""``y <= 0`` and ``y >= 1``, and in each case ``x >= 1``."""

UNITED = "G 1 OBJ { uns 4 2 5 3 }"


def test_two_cases_prove_what_holds_in_both(tmp_path):
    good = proof("1", [SUM, DIFFERENCE], [*CASES, UNITED])
    assert verdict(tmp_path, good) == "every objective is at least 1"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (proof("", [SUM, DIFFERENCE], [*CASES, UNITED]), "not of an integer form"),
        (proof("1", [SUM, DIFFERENCE], [*CASES, "G 1 OBJ { uns 4 2 3 3 }"]), "a case is open"),
        (proof("1", [SUM, DIFFERENCE], [*CASES, "G 1 OBJ { lin 1 5 1 }"]), "rests on assumptions"),
        (proof("1", [SUM, DIFFERENCE], [*CASES, UNITED, "G 0 OBJ { lin 1 6 1 }"]), "what was to be proved"),
        (
            proof(
                "0 1",
                [SUM],
                [CASES[0], "G 1 1 0 1 { asm }", "G 1 1 0 1 { lin 2 0 1 1 -1 }", "G 1 OBJ { uns 3 1 2 2 }"],
            ),
            "no two cases",
        ),
        (
            proof(
                "1",
                [SUM, DIFFERENCE],
                [*CASES, "G 5 1 0 1 { asm }", "G 1 1 0 1 { lin 1 6 1 }", "G 1 OBJ { uns 4 2 7 3 }"],
            ),
            "rests on assumptions",
        ),
        (proof("0", ["G 0 1 0 1"], ["G 1 OBJ { sol }"], "SOL 1\np 1 0 1"), "no cutoff"),
        (
            proof(
                "",
                ["G 1/2 1 0 1"],
                ["L 0 OBJ { sol }", "G 1 OBJ { lin 2 0 1 1 -1 }"],
                "SOL 1\np 1 0 1",
            ),
            "beyond the best solution",
        ),
        (proof("", ["G 1/2 1 0 1"], ["G 1 OBJ { rnd 1 0 1 }"]), "cannot be rounded"),
        (proof("", [SUM], ["G 1 OBJ { lin 1 0 1 }"]), "does not follow"),
        (proof("", ["G 1 1 0 1"], ["G 1 OBJ { lin 1 0 1 }"], "SOL 1\np 1 0 1/2"), "violates"),
        (proof("0", ["G 0 1 0 1"], [], "SOL 1\np 1 0 1/2", "-inf 1/2"), "a solution is"),
    ],
    ids=range(12),  # names without spaces, for the table of mutants
)
def test_a_mistake_is_refused_for_what_it_is(text, reason, tmp_path):
    said = verdict(tmp_path, text)
    assert said.startswith("refused") and reason in said


MODEL = "NAME m\nROWS\n N cost\n G least\nCOLUMNS\n x cost 1 least 1\n y least 0\nRHS\n r least 1\nENDATA\n"


def test_a_solution_satisfies_what_a_file_leaves_out_of_its_model(tmp_path):
    (tmp_path / "m.mps").write_text(MODEL)
    model = check.read_mps(str(tmp_path / "m.mps"))
    for value, accepted in (("1", True), ("1/2", False)):
        said = verdict(
            tmp_path, proof("", ["G 0 1 0 1"], [], f"SOL 1\np 1 0 {value}", f"-inf {value}"), model
        )
        assert said.startswith("refused") is not accepted, said


def test_no_multipliers_prove_no_infeasibility(tmp_path):
    program = {"columns": [["x", 0, None]], "rows": [], "cost": {}, "offset": 0, "maximize": False}
    (tmp_path / "c.json").write_text(json.dumps({"kind": "infeasible", "program": program, "rows": {}}))
    assert check.main([str(tmp_path / "c.json")]) == 1
