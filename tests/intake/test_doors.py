"""The six tasks from the raw file to the report, and the doors in Python."""

import builtins
import json
import lzma
import re
import shlex
import sys

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import forcopt as fo
from forcopt.cli import app
from forcopt.data import Expected, Hierarchy, check_table, read_map, read_rows, typed
from forcopt.data.examples import COMMANDS, write_examples
from forcopt.data.intake import IntakeError
from forcopt.fairness import DemographicParity
from forcopt.learning import Thresholds
from forcopt.models import Districting
from forcopt.models.districting import Plan
from forcopt.models.fair_classification import FairClassifier

REPORTS = {
    "panel": "panel.html",
    "districts": "districts.html",
    "release": "tables/report.html",
    "fair": "fair.html",
    "sample": "drawn.html",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_examples(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize("task", COMMANDS)
def test_a_task_goes_from_the_file_to_the_report(task, folder):
    done = run(*shlex.split(COMMANDS[task]))
    assert done.exit_code == 0, done.output
    if task == "model":
        assert "110" in done.stdout
        return
    page = (folder / REPORTS[task]).read_text(encoding="utf-8")
    for section in ("The question", "The data check", "What is promised", "Limits", "Methods"):
        assert f"<h2>{section}</h2>" in page, section
    assert "<script" not in page and not re.search(r'(src|href)="http', page)
    pictures = re.findall(r"<figure[^>]*>\s*<svg[^>]*>", page)
    assert (
        all('role="img" aria-label="' in picture for picture in pictures) and "<svg" in page
    ) or task == "release"
    if task == "districts":
        p = Districting.from_file("precincts.geojson", population="TOTPOP", districts=4, tolerance=0.02)
        plan = Plan.from_geojson(p, "plan.geojson")
        assert p.evaluate(plan).feasible and f"{p.evaluate(plan).objective:g} of" in page
    if task == "sample":
        drawn, frame = pd.read_csv("drawn.csv"), pd.read_csv("frame.csv")
        assert len(drawn) == 400 and drawn.firm.is_unique and set(drawn.firm) <= set(frame.firm)
        assert drawn.weight.sum() == pytest.approx(len(frame))
    if task == "fair":
        policy = fo.load("policy.json")
        people = pd.read_csv("applicants.csv", dtype={"sex": object, "degree": object, "hired": object})
        assert set(policy.predict(people[["sex", "degree", "years", "score"]])) == {"no", "yes"}
        assert run("predict", "policy.json", "applicants.csv", "-o", "answers.csv").exit_code == 0
    if task == "release":
        table = pd.read_csv("tables/sex.csv", comment="#")
        assert (
            abs(table["count"].sum() - 1200) < 60 and "islands" in (folder / "tables/region.csv").read_text()
        )
        assert "is a level of no row" not in page  # what was found is private
        assert run(*shlex.split(COMMANDS[task])).exit_code == 2  # the budget is spent


def test_a_stated_fix_is_in_the_report_and_the_declaration(folder):
    data = json.loads((folder / "precincts.geojson").read_text())
    data["features"][3]["properties"]["TOTPOP"] = "1,234"
    (folder / "precincts.geojson").write_text(json.dumps(data))
    fields = {"population": "TOTPOP", "districts": 4, "tolerance": 0.1}
    with pytest.raises(IntakeError, match=r"row 5, column TOTPOP: '1,234' .* mean '1234'"):
        Districting.from_file("precincts.geojson", **fields)
    p = Districting.from_file("precincts.geojson", fixes={"1,234": "1234"}, **fields)
    p.save("p.json")
    assert p.graph.nodes["0003"]["TOTPOP"] == 1234
    assert "was changed to '1234'" in fo.load("p.json").graph.graph["intake"][0]
    words = ["--fix", "1,234=1234", "--time-limit", "20"]
    assert run(*shlex.split(COMMANDS["districts"].replace("2%", "10%")), *words).exit_code == 0
    assert "was changed to &#x27;1234&#x27;" in (folder / "districts.html").read_text()


def test_an_enacted_plan_is_changed_least(folder):
    command = "districts precincts.geojson -k 4 --tolerance 4% -o d.html --json --time-limit 2"
    facts = json.loads(run(*shlex.split(f"{command} --map old.csv")).stdout)
    assert "change" not in facts
    kept = json.loads(run(*shlex.split(f"{command} --plan old.csv --map new.csv")).stdout)
    assert kept["change"] == "0 people in 0 units move" and "least-change is 0" in kept["proof"]
    assert (folder / "old.csv").read_text() == (folder / "new.csv").read_text()
    tight = f"{command} --plan old.csv --objective deviation".replace("4%", "1%")
    found = json.loads(run(*shlex.split(tight)).stdout)
    assert "The objective deviation is" in found["proof"] and "units move" in found["change"]
    (folder / "old.csv").write_text("0003,1\n")
    refused = run(*shlex.split(f"{command} --plan old.csv"))
    assert refused.exit_code == 2 and "old.csv does not assign the node" in " ".join(refused.output.split())
    refused = run(*shlex.split(f"{command} --objective beauty"))
    assert refused.exit_code == 2 and "unknown objective" in " ".join(refused.output.split())


def test_borders_with_and_without_shapely(folder, monkeypatch):
    """Two ways that share no code give the same graph; a grid has as many corners as it has squares."""
    graph, found = read_map("precincts.geojson", "TOTPOP")
    assert not found.faults and len(graph) == 80 and graph.number_of_edges() == 8 * 9 + 10 * 7
    assert nx.utils.graphs_equal(graph, read_map("precincts.geojson", "TOTPOP", adjacency="rook")[0])
    queen, _ = read_map("precincts.geojson", "TOTPOP", adjacency="queen")
    assert queen.number_of_edges() == graph.number_of_edges() + 2 * 7 * 9
    real = builtins.__import__

    def without(name, *args, **options):
        if name.startswith("shapely"):
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    plain, found = read_map("precincts.geojson", "TOTPOP")
    assert "shapely is not installed" in str(found.notes)
    assert {frozenset(e) for e in plain.edges} == {frozenset(e) for e in graph.edges}
    for u, v, length in graph.edges(data="shared_perim"):
        assert plain.edges[u, v]["shared_perim"] == pytest.approx(length, abs=0.2)
    # the areas of the units are that of the whole: a rectangle on the sphere
    side = np.radians(0.6) * (np.sin(np.radians(47.4)) - np.sin(np.radians(47.0))) * 6_371_007.2**2
    total = sum(area for _, area in graph.nodes(data="area"))
    assert total == pytest.approx(side, rel=1e-4)


def test_islands_are_joined_on_request(folder):
    data = json.loads((folder / "precincts.geojson").read_text())
    ring = data["features"][79]["geometry"]["coordinates"][0]
    ring[:] = [[x + 0.5, y] for x, y in ring]
    (folder / "island.geojson").write_text(json.dumps(data))
    _, found = read_map("island.geojson", "TOTPOP")
    assert [(f.row, f.value) for f in found.faults] == [(81, "0709")]
    graph, found = read_map("island.geojson", "TOTPOP", bridge=True)
    assert not found.faults and nx.is_connected(graph) and graph.degree("0709") == 1
    assert "was joined to" in graph.graph["intake"][0]


def test_graphs_of_gerrychain(folder):
    graph = nx.grid_2d_graph(4, 4)
    graph = nx.convert_node_labels_to_integers(graph)
    nx.set_node_attributes(graph, 5, "TOTPOP")
    (folder / "graph.json").write_text(json.dumps(nx.adjacency_data(graph)))
    p = Districting.from_file("graph.json", population="TOTPOP", districts=2, tolerance=0)
    assert p.solve("set-partitioning").objective == 4
    graph.remove_edges_from(list(graph.edges(0)))
    (folder / "graph.json").write_text(json.dumps(nx.adjacency_data(graph)))
    with pytest.raises(IntakeError, match="island without neighbours; add an edge"):
        Districting.from_file("graph.json", population="TOTPOP", districts=2, tolerance=0)


def test_tables_with_other_marks_are_read_and_the_report_says_so(folder):
    text = (folder / "frame.csv").read_text()
    want = read_rows("frame.csv", "frame")
    for name, data in {
        "semicolon.csv": text.replace(",", ";").encode(),
        "tab.tsv": text.replace(",", "\t").encode("utf-8-sig"),
        "utf16.csv": text.encode("utf-16"),
        "windows.csv": text.replace("\n", "\r\n").encode("cp1252"),
    }.items():
        (folder / name).write_bytes(data)
        pd.testing.assert_frame_equal(read_rows(name, name), want)
    (folder / "west.csv").write_bytes(text.replace("coast", "Küste").encode("cp1252"))
    with pytest.raises(IntakeError, match=r"cp1252: '.*Küste"):
        read_rows("west.csv", "west")
    assert "Küste" in set(read_rows("west.csv", "west", encoding="cp1252").region)


def test_hierarchies_check_their_tables():
    frame = pd.DataFrame({"state": ["TX", "TX", "OK"], "county": ["A", "B", "A"], "people": [1, 2, 4]})
    assert Hierarchy.from_table(frame, ["state", "county"], "people").counts.ravel().tolist() == [1, 2, 4]
    for change, words in (
        (frame.replace({"OK": "Tx"}), r"row 4, column state: 'Tx' .* mean 'TX'"),
        (frame.astype(object).replace({2: "1,002"}), r"row 3, column people: '1,002' .* mean '1002'"),
        (frame.astype(object).replace({"B": "Total"}), "row 3, column county: 'Total' is a total"),
        (frame.astype(object).replace({"B": None}), "row 3, column county: '' is empty"),
        (frame.replace({4: -4}), r"row 4, column people: '-4' is below 0; did you mean '4'"),
    ):
        with pytest.raises(IntakeError, match=words):
            Hierarchy.from_table(change, ["state", "county"], "people")
    fixed = Hierarchy.from_table(
        frame.replace({"OK": "Tx"}), ["state", "county"], "people", fixes={"Tx": "OK"}
    )
    assert fixed.names[1] == ("TX", "OK")


def test_fixes_confirm_drop_and_rename():
    frame = pd.DataFrame({"area": ["north"] * 20 + ["south"] * 20 + ["island", "?"], "n": range(42)})
    schema = {"region": Expected("group"), "n": Expected("count")}
    _, found = check_table(frame, "frame", schema)
    assert [f.column for f in found.faults] == ["region"]
    fixes = {"area": "region", "region": {"island": "island", "?": None}}
    read, found = check_table(frame, "frame", schema, fixes=fixes)
    assert not found.faults and len(found.notes) == 3 and len(read) == 41
    assert typed(read, schema).n.sum() == sum(range(41))
    _, found = check_table(frame, "frame", schema, fixes={**fixes, "Nort": "north"})
    assert "is fixed, but no cell or column has it" in str(found)


def test_a_model_is_read_from_xz(folder):
    m = fo.Model()
    x = m.variable("x", lower=0, upper=3)
    m.maximize(2 * x)
    m.write("m.mps")
    (folder / "m.mps.xz").write_bytes(lzma.compress((folder / "m.mps").read_bytes()))
    assert fo.read("m.mps.xz").solve().objective == 6
    assert run("solve", "m.mps.xz").exit_code == 0
    (folder / "m.mps.xz").write_bytes((folder / "m.mps.xz").read_bytes()[:40])
    with pytest.raises(fo.DeclarationError, match="cut off or damaged"):
        fo.read("m.mps.xz")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("frame.csv", "a table"),
        ("quotas.csv", "quotas"),
        ("precincts.geojson", "a map"),
        ("shifts.lp.gz", "a model"),
    ],
)
def test_check_says_what_a_file_is(name, words, folder):
    done = run("check", name)
    assert done.exit_code == 0 and words in done.stdout and "command: forcopt" in done.stdout
    path = folder / name
    if path.suffix == ".csv":
        path.write_text(path.read_text().replace("coast", "costa", 1).replace("8,9", "8,nine"))
        assert run("check", name).exit_code == 2


def test_all_tables_of_a_release_fit_its_budget(folder):
    schema = {"region": ["north", "south", "west"], "sex": ["female", "male"]}
    (folder / "two.json").write_text(json.dumps(schema))
    words = ("release", "people.csv", "--schema", "two.json", "--budget", "rho=.5", "-o", "two")
    done = run(*words)
    assert done.exit_code == 0, done.output
    assert len(list((folder / "two").glob("*.csv"))) == 3 and (folder / "two" / "report.html").exists()
    again = run(*words[:-1], "elsewhere")
    assert again.exit_code == 2 and "of which 0.5 is spent" in again.output
    assert run(*words, "--simulate", "1").exit_code == 0 == run(*words, "--ledger", "new.json").exit_code


def test_maps_in_utf_16_and_holes_in_maps(folder):
    text = (folder / "precincts.geojson").read_text()
    (folder / "wide.geojson").write_bytes(text.encode("utf-16"))
    assert nx.utils.graphs_equal(
        read_map("wide.geojson", "TOTPOP")[0], read_map("precincts.geojson", "TOTPOP")[0]
    )
    data = json.loads(text)
    data["features"] = [unit for unit in data["features"] if unit["properties"]["GEOID"] != "0304"]
    for unit in data["features"]:
        del unit["properties"]["GEOID"]
    (folder / "hole.geojson").write_text(json.dumps(data))
    _, found = read_map("hole.geojson", "TOTPOP")
    assert (
        "beside a hole in the map, 0.85 times as large" in found.notes[0].rule
        and found.notes[0].value == "44"
    )


def test_a_sample_that_needs_fewer_records_says_so(folder):
    frame = pd.read_csv("frame.csv", dtype=str)
    frame.assign(turnover=frame.turnover.where(frame["class"] != "small", "7")).to_csv("f.csv", index=False)
    done = run(*shlex.split("sample f.csv --strata class --value turnover --size 1900 -o drawn.csv"))
    drawn = len(pd.read_csv("drawn.csv"))
    assert drawn < 1900 and f"more than {drawn} would not make the margin smaller" in done.stdout


@pytest.mark.parametrize(("positive", "negative"), [(2, 2), (2, 9)])
def test_a_group_that_is_too_small_to_test_is_in_the_tables(positive, negative, folder):
    people = pd.read_csv("applicants.csv", dtype=str)
    for label, count in (("yes", positive), ("no", negative)):
        people.loc[people.index[people.hired == label][:count], "sex"] = "diverse"
    people.to_csv("few.csv", index=False)
    done = run(*shlex.split("fair few.csv --label hired --sensitive sex -o policy.json --report few.html"))
    page = (folder / "few.html").read_text(encoding="utf-8")
    rows = [" ".join(re.sub("<[^>]+>", " ", r).split()) for r in page.splitlines() if "diverse</td>" in r]
    assert done.exit_code == 0 and "nan" not in " ".join(rows)
    if negative == 2:  # not one of a third
        assert "too small to test: diverse" in done.stdout
        assert rows.count("every rate diverse 0 too small to test") == 2
    else:
        assert rows.count("true positive rate diverse 0 too few too few too few") == 2


def test_predict_reads_the_files_that_other_doors_read(folder):
    assert run(*shlex.split(COMMANDS["fair"])).exit_code == 0
    text = (folder / "applicants.csv").read_text()
    want = run("predict", "policy.json", "applicants.csv").stdout
    (folder / "marks.csv").write_text(text.replace(",", ";"))
    assert run("predict", "policy.json", "marks.csv").stdout == want and want.count("\n") == 1501
    for data, said in (
        (b"", "is empty"),
        (text.replace("school", "\u00e9cole").encode("cp1252"), "give encoding cp1252"),
        (text.replace("61.5", '"61,5"', 1).encode(), "row 2, column score: '61,5'"),
    ):
        (folder / "bad.csv").write_bytes(data)
        done = run("predict", "policy.json", "bad.csv")
        assert done.exit_code == 2 and said in done.output


def test_reports_speak_in_words(folder):
    assert run(*shlex.split(f"{RELEASE} --budget epsilon=.1 --simulate 1")).exit_code == 0
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert "discrete Laplace noise in whole numbers" in page and "DiscreteLaplace" not in page
    assert ("A count below 0 is noise" in page) == bool(re.search(r'"number">-\d', page)) == True  # noqa: E712


def test_check_of_empty_columns_is_without_warnings(folder):
    (folder / "few.txt").write_text("a,b\n1,\n2,\n3,\n")
    done = run("check", "few.txt")
    assert done.exit_code == 0 and "is empty" in done.stdout and "warning" not in done.output


def test_names_that_count_up_are_no_odd_codes(folder):
    names = [str(i) for i in range(1, 11)]
    for column in (names, ["Ann", "Bo", "Eve", "Joe", "Kim", "Lea", "Max", "Pia", "Tim", "Alexandra"]):
        _, found = check_table(pd.DataFrame({"who": column}), "people", {"who": Expected("key")})
        assert not found.faults
    codes = pd.DataFrame({"who": ["007", "008", "009", "010", "011", "12"]})
    assert check_table(codes, "people", {"who": Expected("key")})[1].faults[0].value == "12"


RELEASE = "release people.csv --schema schema.json -o out"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            f"{RELEASE} --budget rho=.5 --table region,sex --table sex,region",
            "sex,region names a column or a",
        ),
        (f"{RELEASE} --budget rho=.5 --table sex,sex", "sex,sex names a column or a table twice"),
        (f"{RELEASE} --budget rho=.5,rho=.5", "it must be rho=NUMBER"),
        ("sample frame.csv --strata region,region --size 400 -o drawn.csv", "names a column twice"),
        ("districts precincts.geojson -k 4 --population GEOID", "no plain number"),
        ("districts people.csv -k 4", "people.csv is"),
        ("fair applicants.csv --label hired --sensitive sex --leave-out idd -o p.json", "did you mean 'id'"),
    ],
)
def test_what_a_command_refuses_before_it_spends(command, said, folder):
    done = run(*shlex.split(command))
    assert done.exit_code == 2 and said in " ".join(done.output.split()), done.output
    assert not (folder / "people.ledger.json").exists()


@pytest.mark.parametrize(
    ("notion", "said"), [("demographic_parity=.1%", "missed: "), ("error_parity=90%", "kept")]
)
def test_the_report_says_whether_the_test_records_keep_the_demand(notion, said, folder):
    words = f"fair applicants.csv --label hired --sensitive sex --notion {notion} -o policy.json --json"
    facts = json.loads(run(*shlex.split(words)).stdout)
    assert facts["on the test records"].startswith(said)
    assert said in (folder / "fair.html").read_text(encoding="utf-8")


def test_fixes_reach_the_file_that_has_the_value(folder):
    quotas = pd.read_csv("quotas.csv", dtype=str).replace({"north": "Nort", "9": "nine"})
    quotas.loc[len(quotas)] = ["Total", "", "20", "20"]
    fixes = {"Nort": "north", "nine": "9", "Total": None}
    made = fo.models.LeximaxCohort.from_candidates("volunteers.csv", quotas, 20, identifier="id", fixes=fixes)
    assert made.quotas["region"]["north"] == (8, 9) and made.quotas["age"]["35-59"] == (7, 9)
    with pytest.raises(IntakeError, match="candidates: 'Noth' is fixed, but no cell or column has it"):
        fo.models.LeximaxCohort.from_candidates(
            "volunteers.csv", quotas, 20, identifier="id", fixes={**fixes, "Noth": "north"}
        )


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("degree", "PhD", "row 9, column degree: 'PhD' is not among bachelor, master, school"),
        ("degree", "School", "did you mean 'school'"),
        ("sex", "Female", "row 9, column sex: 'Female' is not among male, female; did you mean 'female'"),
        ("sex", "", "row 9, column sex: '' is empty"),
        ("score", "61,5", "row 9, column score: '61,5' .* did you mean '61.5'"),
        ("score", "6150", "note: .*row 9, column score: '6150' is outside 22.5 to 97"),
    ],
)
def test_a_policy_refuses_or_notes_what_it_was_not_learnt_from(folder, column, value, words):
    assert run(*shlex.split(COMMANDS["fair"])).exit_code == 0
    people = pd.read_csv("applicants.csv", dtype=str)
    people.loc[7, column] = value
    people.to_csv("p.csv", index=False)
    done = run("predict", "policy.json", "p.csv", "-o", "out.csv")
    assert re.search(words, " ".join(done.output.split())) and (done.exit_code == 0) == ("note" in words)
    people.drop(columns=column).to_csv("p.csv", index=False)
    done = run("predict", "policy.json", "p.csv")
    assert done.exit_code == 2 and f"'{column}' is a column that is missing" in done.output


def test_quotas_are_checked_by_themselves(folder):
    for old, new, words in (
        ("sex,male,10,10", "sex,female,10,10", "sex = female"),
        ("sex,male,10,10", "sex,male,11,10", "is more than max"),
        ("sex,male,10,10", "sex,male,50%,10", "50%"),
        ("sex,male,10,10", "sex,male,10,1e999", "is too large for a number"),
    ):
        (folder / "q.csv").write_text((folder / "quotas.csv").read_text().replace(old, new))
        done = run("check", "q.csv")
        assert done.exit_code == 2 and words in done.stdout and "a table of quotas" in done.stdout
    pd.read_csv("quotas.csv").assign(again=1).rename(columns={"again": "min"}).to_csv("q.csv", index=False)
    for command in ("check q.csv", "panel volunteers.csv q.csv --size 20"):
        done = run(*command.split())
        assert done.exit_code == 2 and "is the name of 2 columns" in done.stdout


def test_no_spreadsheet(folder):
    pytest.importorskip("openpyxl", reason="pandas reads no spreadsheet without it")
    (folder / "e.xlsx").write_bytes(b"PK\3\4")
    done = run("check", "e.xlsx")
    assert done.exit_code == 2 and "e.xlsx is no spreadsheet" in done.output


def test_a_report_names_what_it_cannot_take(folder):
    people = pd.read_csv("applicants.csv")
    from forcopt.models.fair_postprocessing import fair_report

    for fields, words in (
        ({"label": None, "sensitive": "sex"}, "label is None"),
        ({"label": "hired", "sensitive": []}, "sensitive is \\[\\]"),
        ({"label": "hired", "sensitive": "sex", "notion": "parity"}, "notion or None$"),
    ):
        with pytest.raises(fo.DeclarationError, match=words):
            fair_report(people, **fields)
    coded = people.assign(hired=(people.hired == "yes") + 1)
    assert fair_report(coded, label="hired", sensitive="sex", positive=2).policy.labels == ("1", "2")


def test_what_may_be_right_is_noted():
    schema = {"id": Expected("key"), "area": Expected("group"), "gain": Expected("number")}
    rows = [(f"n{i:03d}", ["coast", "inland"][i % 2], 1 + i / 8, i % 7, i % 11) for i in range(300)]
    frame = pd.DataFrame(rows, columns=["id", "area", "gain", "rooms", "floors"])
    frame.loc[:8, "area"], frame.loc[[20, 21], "gain"] = "cosat", [-2.0, -3.0]
    frame.loc[299, ["area", "gain", "rooms", "floors"]] = frame.loc[100, ["area", "gain", "rooms", "floors"]]
    _, found = check_table(frame, "homes", schema)
    notes = "\n".join(map(str, found.notes))
    assert not found.faults
    assert "row 2, column area: 'cosat' is in 9 of 300 rows" in notes and "did you mean 'coast'" in notes
    assert "row 22, column gain: '-2' is one of 2 numbers below 0; did you mean '2'" in notes
    assert "row 301, column id: 'n299' is the only difference from an earlier row" in notes


def test_a_feature_that_nearly_tells_the_label_is_noted(folder):
    people = pd.read_csv("applicants.csv", dtype=str)
    near = people.hired.where(people.index % 60 != 0, "no").map({"yes": "signed", "no": "none"})
    people.assign(contract=near).to_csv("p.csv", index=False)
    done = run("fair", "p.csv", "--label", "hired", "--sensitive", "sex")
    wrong = int(((people.hired == "yes") & (people.index % 60 == 0)).sum())
    said = " ".join(done.output.split())
    assert done.exit_code == 0 and f"'contract' tells the label of all rows but {wrong}; was it known" in said


@pytest.mark.parametrize("words", [["--simulate", "3"], []])
def test_tables_of_one_release_have_noise_of_their_own(words, tmp_path, monkeypatch):
    """Two columns with the same values: equal noise would give equal tables, with chance 1e-40 otherwise."""
    monkeypatch.chdir(tmp_path)
    names = [f"c{i}" for i in range(60)]
    pd.DataFrame({"a": names, "b": names}).to_csv("people.csv", index=False)
    (tmp_path / "schema.json").write_text(json.dumps({"a": names, "b": names}))
    command = shlex.split("release people.csv --schema schema.json --budget rho=.01 --table a --table b")
    found = []
    for folder in ("one", "two"):
        done = run(*command, *words, "-o", folder, "--ledger", f"{folder}.json")
        assert done.exit_code == 0, done.output
        found.append([pd.read_csv(f"{folder}/{name}.csv", comment="#")["count"].tolist() for name in "ab"])
    assert found[0][0] != found[0][1] and (found[0] == found[1]) == bool(words)


def test_a_blank_line_of_one_column_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = pd.DataFrame({"x": [0.0, 1.0] * 20})
    fair = FairClassifier(DemographicParity(1.0), Thresholds(direction="above"))
    fair.fit(X, X.x.astype(int), sensitive_features=["a", "b"] * 20).policy_.save("policy.json")
    for lines, row in (("0 1 0 1", None), ("0 1 - 0 1", 4), ("- 0 1 0 1", 2), ("0 1 0 1 - -", None)):
        (tmp_path / "x.csv").write_text("x\n" + "\n".join(lines.replace("-", "").split(" ")) + "\n")
        done = run("predict", "policy.json", "x.csv", "-o", "out.csv")
        assert done.exit_code == (0 if row is None else 2), done.output
        if row is None:
            assert pd.read_csv("out.csv").prediction.tolist() == [0, 1, 0, 1]
        else:
            assert f"x.csv, row {row}: it is blank" in " ".join(done.output.split())
    (tmp_path / "x.csv").write_text("x,note\n0,a\n\n1,b\n")  # here a blank line is no row
    assert run("predict", "policy.json", "x.csv", "-o", "out.csv").exit_code == 0


def ring_of(west, south, east, north, wrapped):
    """A rectangle with a corner at each half degree; longitudes from -180 to 180 if wrapped."""
    xs, ys = np.arange(west, east + 0.1, 0.5), np.arange(south, north + 0.1, 0.5)
    points = [(x, south) for x in xs] + [(east, y) for y in ys[1:]]
    points += [(x, north) for x in xs[-2::-1]] + [(west, y) for y in ys[-2::-1]]
    return [[float(x - 360 if wrapped and x > 180 else x), float(y)] for x, y in points]


def written(path, units):
    features = [
        {"properties": {"name": name, "people": 5}, "geometry": {"type": kind, "coordinates": rings}}
        for name, (kind, rings) in units.items()
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


@pytest.mark.parametrize("shapely", [True, False])
def test_a_map_across_the_meridian_180_is_that_of_the_same_units_elsewhere(shapely, tmp_path, monkeypatch):
    """Turned by 190 degrees, the map does not reach the meridian; the sphere is the same there."""
    if not shapely:
        monkeypatch.setitem(sys.modules, "shapely", None)
    rows = {"a": (175, 178), "b": (178, 181), "c": (181, 184)}
    hole = ring_of(179, 51, 180.5, 52, True)

    def units(shift, wrapped):
        turned = {n: ring_of(w - shift, 50, e - shift, 53, wrapped) for n, (w, e) in rows.items()}
        inner = hole if wrapped else ring_of(179 - shift, 51, 180.5 - shift, 52, False)
        return {n: ("Polygon", [ring, inner] if n == "b" else [ring]) for n, ring in turned.items()}

    far, _ = read_map(written(tmp_path / "far.geojson", units(190, False)), "people")
    near, found = read_map(written(tmp_path / "near.geojson", units(0, True)), "people")
    assert not found.faults and list(near.edges) == [("a", "b"), ("b", "c")]
    for v in "abc":
        for name in ("area", "boundary_perim", "x", "y"):
            assert near.nodes[v][name] == pytest.approx(far.nodes[v][name], rel=1e-6, abs=0.2)
    for edge in near.edges:
        assert near.edges[edge]["shared_perim"] == pytest.approx(far.edges[edge]["shared_perim"], abs=0.2)
    # the exact area between two meridians and two parallels, and the length of a meridian
    size = np.radians(3) * (np.sin(np.radians(53)) - np.sin(np.radians(50))) * 6_371_007.2**2
    assert near.nodes["a"]["area"] == pytest.approx(size, rel=1e-3)
    assert near.edges["a", "b"]["shared_perim"] == pytest.approx(np.radians(3) * 6_371_007.2, rel=1e-2)


@pytest.mark.parametrize("shapely", [True, False])
def test_the_cut_of_a_unit_at_the_meridian_180_is_no_border(shapely, tmp_path, monkeypatch):
    """GeoJSON wants units that cross it in two parts."""
    if not shapely:
        monkeypatch.setitem(sys.modules, "shapely", None)
    one, other = ring_of(178, 50, 180, 53, False), ring_of(-180, 50, -179, 53, False)
    sides = {"a": ("Polygon", [ring_of(175, 50, 178, 53, False)])}
    sides["c"] = ("Polygon", [ring_of(-179, 50, -176, 53, False)])
    cut = {**sides, "b": ("MultiPolygon", [[one], [other]])}
    whole = {**sides, "b": ("Polygon", [ring_of(178, 50, 181, 53, True)])}
    graphs = [read_map(written(tmp_path / "m.geojson", units), "people")[0] for units in (cut, whole)]
    assert set(map(frozenset, graphs[0].edges)) == {frozenset("ab"), frozenset("bc")}
    for name in ("area", "boundary_perim"):
        first, second = ([graph.nodes[v][name] for v in "abc"] for graph in graphs)
        assert first == pytest.approx(second, rel=1e-5)


def test_a_unit_without_outline_is_a_fault_of_a_map(tmp_path):
    for shape in (
        None,
        {"type": "Polygon", "coordinates": []},
        {"type": "MultiPolygon", "coordinates": [[]]},
    ):
        units = {"a": ("Polygon", [ring_of(0, 0, 1, 1, False)]), "b": ("Polygon", [])}
        data = json.loads(written(tmp_path / "m.geojson", units).read_text())
        data["features"][1]["geometry"] = shape
        (tmp_path / "m.geojson").write_text(json.dumps(data))
        _, found = read_map(tmp_path / "m.geojson", "people")
        assert [(f.row, f.column, f.value) for f in found.faults] == [(3, "geometry", "b")]
        assert "has no area" in found.faults[0].rule


def test_each_table_of_a_release_has_a_file_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    heads = ["race", "sex", "race-sex", "a/b", "../x", "q" * 300]
    pd.DataFrame([list(f"{i:06b}") for i in range(64)], columns=heads).to_csv("people.csv", index=False)
    (tmp_path / "s.json").write_text(json.dumps({head: ["0", "1"] for head in heads}))
    command = shlex.split("release people.csv --schema s.json --budget epsilon=1 -o out")
    (tmp_path / "out" / "sex.csv").mkdir(parents=True)
    done = run(*command)
    assert done.exit_code == 2 and "sex.csv: it is a folder" in " ".join(done.output.split())
    assert not (tmp_path / "people.ledger.json").exists()
    (tmp_path / "out" / "sex.csv").rmdir()
    assert run(*command).exit_code == 0
    files = list((tmp_path / "out").glob("*.csv"))
    assert len({tuple(pd.read_csv(file, comment="#").columns) for file in files}) == len(files) == 21
    assert {file.name for file in files} >= {"race-sex.csv", "race-sex-2.csv", "a_b.csv", "_._x.csv"}
    assert not list(tmp_path.glob("*x*"))  # nothing left the folder


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("panel panel.csv quotas.csv --size 20 --id id", "panel.csv"),
        ("panel volunteers.csv q/plan.csv --size 20 --id id -o q/../q/plan.html", "q/plan.csv"),
        ("panel panel-remaining.csv quotas.csv --size 20 --id id --draw", "panel-remaining.csv"),
        ("sample drawn.csv --strata region --size 20", "drawn.csv"),
        ("districts precincts.geojson -k 4 --map precincts.geojson", "precincts.geojson"),
        ("districts precincts.geojson -k 4 --plan old.csv --map link.csv", "old.csv"),
        ("fair people.html --label hired --sensitive sex --report people.html", "people.html"),
        ("release out/sex.csv --schema schema.json --budget rho=.5 -o out", "out/sex.csv"),
        ("release people.csv --schema schema.json --budget rho=.5 --ledger people.csv", "people.csv"),
        ("predict policy.json applicants.csv -o applicants.csv", "applicants.csv"),
        ("export declared.mps -o declared.mps", "declared.mps"),
        ("certify declared.mps -o declared.mps", "declared.mps"),
        ("compare declared.json --csv declared.json", "declared.json"),
        ("sweep declared.json --over size=1,2 --html declared.json", "declared.json"),
    ],
)
def test_no_command_writes_over_what_it_reads(command, kept, folder):
    (folder / "q").mkdir()
    (folder / "out").mkdir()
    texts = {"panel.csv": "volunteers.csv", "panel-remaining.csv": "volunteers.csv", "drawn.csv": "frame.csv"}
    texts |= {
        "q/plan.csv": "quotas.csv",
        "old.csv": "quotas.csv",
        "people.html": "applicants.csv",
        "out/sex.csv": "people.csv",
    }
    for name, source in texts.items():
        (folder / name).write_bytes((folder / source).read_bytes())
    for name in ("policy.json", "declared.mps", "declared.json"):
        (folder / name).write_text("{}")
    (folder / "link.csv").symlink_to("old.csv")
    before = {path: path.read_bytes() for path in folder.rglob("*.*") if path.is_file()}
    done = run(*shlex.split(command))
    assert done.exit_code == 2 and f"the command reads {kept}; name another" in " ".join(done.output.split())
    assert before == {path: path.read_bytes() for path in folder.rglob("*.*") if path.is_file()}


def test_messy_maps_are_refused_in_words(tmp_path):
    path = tmp_path / "m.geojson"

    def refused(change):
        units = {n: ("Polygon", [ring_of(at, 0, at + 1, 1, False)]) for at, n in enumerate("abc")}
        written(path, units)
        data = json.loads(path.read_text())
        change(data["features"][1])
        path.write_text(json.dumps(data))
        return str(read_map(path, "people")[1])

    for wrong in (["x"], "x", 3, []):
        with pytest.raises(fo.DeclarationError, match="feature 1 and its properties must be objects"):
            refused(lambda unit, wrong=wrong: unit.update(properties=wrong))
    for ring, words in (
        ("id", "coordinates are text, such as 'i'"),
        ([[1], [2], [3], [1]], "of two numbers each"),
        ([[1, 0], [2, 0], [2, 1], [1e20, 1], [1, 0]], "crosses itself"),
    ):
        said = refused(lambda unit, ring=ring: unit["geometry"].update(coordinates=[ring]))
        assert said.startswith("m.geojson, row 3, column geometry: 'b'") and words in said
    path.write_text('{"nodes": [{"id": null, "people": 3}, {"id": 1, "people": 3}], "edges": []}')
    with pytest.raises(fo.DeclarationError, match=r"node .* has no 'id'"):
        read_map(path, "people")


def test_a_node_has_the_cells_that_a_fix_wrote(tmp_path):
    """Of areas and of a graph: a text, a number among numbers, a column's new name, a name of a unit."""
    rows = [("a", "Kent", 12, "u"), ("b", "Knet", "1,3", None), ("c", "Kent", 2.5, "v")]
    facts = [dict(zip(("id", "county", "votes", "old"), row, strict=True)) | {"people": 5} for row in rows]
    fixes = {"county": {"Knet": "Kent"}, "votes": {"1,3": "13"}, "old": "new", "id": {"c": "d"}}
    shapes = [{"type": "Polygon", "coordinates": [ring_of(at, 0, at + 1, 1, False)]} for at in range(3)]
    features = [{"properties": f, "geometry": s} for f, s in zip(facts, shapes, strict=True)]
    edges = [{"source": "a", "target": "b"}, {"source": "b", "target": "c"}]
    for data in ({"type": "FeatureCollection", "features": features}, {"nodes": facts, "edges": edges}):
        (tmp_path / "m.json").write_text(json.dumps(data))
        graph, found = read_map(tmp_path / "m.json", "people", identifier="id", fixes=fixes)
        assert not found.faults and list(graph) == ["a", "b", "d"]
        assert [graph.nodes[name]["county"] for name in graph] == ["Kent"] * 3
        votes = [graph.nodes[name]["votes"] for name in graph]
        assert votes == [12, 13, 2.5] and isinstance(votes[1], int)
        assert [graph.nodes[name].get("new") for name in graph] == ["u", None, "v"]
        assert not any("old" in node for _, node in graph.nodes(data=True))
        assert {node.get("id", name) for name, node in graph.nodes(data=True)} == {"a", "b", "d"}
