"""A corpus of messes in the files of the six tasks: none is accepted in silence, and each is named."""

import codecs
import gzip
import json
import shlex

import pandas as pd
import pytest
from typer.testing import CliRunner

from forcopt.cli import app
from forcopt.data.examples import COMMANDS, write_examples

FILES = {
    "panel": "volunteers.csv",
    "quotas": "quotas.csv",
    "release": "people.csv",
    "fair": "applicants.csv",
    "sample": "frame.csv",
}
KEYS = {"panel": "id", "fair": "id", "sample": "firm"}


def frame_of(folder, name):
    return pd.read_csv(folder / name, dtype=str, keep_default_na=False)


def table(change):
    """A mess of the task's table: a function of its frame, which gives the changed one."""

    def mess(folder, task):
        change(frame_of(folder, FILES[task])).to_csv(folder / FILES[task], index=False)

    return mess


def cell(row, column, value):
    """A cell in a row of the spreadsheet, whose first row is the heading."""

    def change(frame):
        frame.loc[row - 2, column] = value
        return frame

    return table(change)


def cells(column, old, new):
    return table(lambda frame: frame.assign(**{column: frame[column].replace(old, new)}))


def rename(**names):
    return table(lambda frame: frame.rename(columns=names))


def each(column, change):
    """Another value of a column in each row, by the value and the row's number from 0."""
    return table(lambda f: f.assign(**{column: [change(v, i) for i, v in enumerate(f[column])]}))


def told(frame, yes, no):
    """Numbers that tell the label."""
    return [(yes if label == "yes" else no).format(i % 300) for i, label in enumerate(frame.hired)]


def swap(row, one, other):
    def change(frame):
        frame.loc[row - 2, [one, other]] = frame.loc[row - 2, [other, one]].to_numpy()
        return frame

    return table(change)


def headings(one, other):
    return rename(**{one: other, other: one})


def double(row):
    return table(lambda frame: pd.concat([frame, frame.iloc[[row - 2]]]))


def text(change):
    """A mess of the text of the task's table."""

    def mess(folder, task):
        path = folder / FILES[task]
        path.write_bytes(change(path.read_text(encoding="utf-8")))

    return mess


def lines(change):
    return text(lambda given: "\n".join(change(given.splitlines())).encode())


def longer(row, more):
    return lines(lambda given: [*given[: row - 1], given[row - 1] + more, *given[row:]])


def inserted(row, line):
    return lines(lambda given: [*given[: row - 1], line, *given[row - 1 :]])


def options(**changed):
    """Other options of the command; the mess is in the question."""

    def mess(folder, task):
        return {name.replace("_", "-"): value for name, value in changed.items()}

    return mess


def unit(at, **facts):
    """Other properties of a precinct."""

    def mess(folder, task):
        change_map(folder, lambda features: features[at]["properties"].update(facts))

    return mess


def shape(at, change):
    """Another geometry of a precinct."""

    def mess(folder, task):
        change_map(folder, lambda features: features[at].update(geometry=change(features[at]["geometry"])))

    return mess


def change_map(folder, change):
    path = folder / "precincts.geojson"
    data = json.loads(path.read_text())
    changed = change(data["features"])
    data["features"] = data["features"] if changed is None else changed
    path.write_text(json.dumps(data))


def ring(geometry, change):
    return {"type": "Polygon", "coordinates": [change(geometry["coordinates"][0])]}


def moved(by):
    return lambda g: ring(g, lambda points: [[x + by, y] for x, y in points])


def raw(name, data):
    return lambda folder, task: (folder / name).write_bytes(data) and None


def schema(**changed):
    def mess(folder, task):
        known = json.loads((folder / "schema.json").read_text())
        (folder / "schema.json").write_text(json.dumps({**known, **changed}))

    return mess


def twice_in_json(path, key):
    path.write_text(path.read_text().replace(f'"{key}":', f'"{key}": 5, "{key}":', 1))


def one_of_a_group(frame):
    frame.loc[frame.index[frame.hired == "yes"][:6], "sex"] = "diverse"
    return frame


def texts(feature):
    return feature | {
        "geometry": ring(feature["geometry"], lambda points: [list(map(str, p)) for p in points])
    }


def emptied(feature):
    return feature | {"properties": feature["properties"] | {"TOTPOP": 0}}


def turned(feature, lat, lon):
    """Latitude before longitude, around another place."""
    change = lambda points: [[y - 47 + lat, x - 9 + lon] for x, y in points]  # noqa: E731
    return feature | {"geometry": ring(feature["geometry"], change)}


BOM = codecs.BOM_UTF16_LE
MESSES = [
    # a slip of the pen in a level
    ("panel", cell(9, "sex", "femal"), "row 9 sex femal female"),
    ("panel", cell(9, "region", "Nort"), "row 9 region Nort north"),
    ("panel", cell(9, "age", "16-35"), "row 9 age 16-35 16-34"),
    ("panel", cell(9, "region", "NORTH"), "row 9 region NORTH north"),
    ("release", cell(9, "region", "nroth"), "row 9 region nroth north"),
    ("release", cell(9, "sex", "F"), "row 9 sex F"),
    ("release", cell(9, "employed", "Yes"), "row 9 employed Yes yes"),
    ("fair", cell(9, "sex", "femle"), "row 9 sex femle female"),
    ("fair", cell(9, "hired", "yess"), "row 9 hired yess"),
    ("fair", cell(9, "hired", "Yes"), "row 9 hired Yes yes"),
    ("fair", each("hired", lambda v, i: {"yes": "TRUE"}.get(v, v) if i % 5 == 0 else v), "hired TRUE yes"),
    ("fair", each("sex", lambda v, i: ("t" if i % 2 else "f") if i % 7 else "TRUE"), "sex TRUE t"),
    ("fair", each("sex", lambda v, i: f"{i % 2}" if i % 7 else "true"), "sex true 1"),
    ("fair", each("sex", lambda v, i: ["N", "S", "E", "no"][i % 4]), None),
    ("fair", cell(9, "degree", "bachelors"), "row 9 degree bachelors bachelor"),
    ("fair", cell(9, "sex", "male (m)"), "row 9 sex"),
    ("sample", cell(9, "region", "costa"), "row 9 region costa coast"),
    ("sample", cell(9, "region", "coast."), "row 9 region coast. coast"),
    ("sample", cell(9, "class", "Small"), "row 9 class Small small"),
    ("sample", cell(9, "class", "smal l"), "row 9 class small"),
    ("sample", cells("class", "large", "Large "), None),  # the same spelling in all rows is right
    # blanks and what stands for them
    ("panel", cell(9, "sex", ""), "row 9 sex empty"),
    ("panel", cell(9, "id", ""), "row 9 id empty"),
    ("panel", cell(9, "region", "n/a"), "row 9 region n/a"),
    ("release", cell(9, "age", ""), "row 9 age empty"),
    ("release", cell(9, "sex", "?"), "row 9 sex ?"),
    ("fair", cell(9, "hired", ""), "row 9 hired empty"),
    ("fair", cell(9, "sex", "unknown"), "row 9 sex unknown"),
    ("sample", cell(9, "turnover", ""), "row 9 turnover empty"),
    ("sample", cell(9, "region", "-"), "row 9 region -"),
    ("sample", cell(9, "turnover", "-99"), "row 9 turnover -99"),
    # numbers as text, of other units, and out of range
    ("quotas", cell(3, "min", "10 %"), "row 3 min 10 %"),
    ("quotas", cell(3, "max", "ten"), "row 3 max ten"),
    ("quotas", cell(3, "min", "9.5"), "row 3 min 9.5"),
    ("quotas", cell(3, "min", "-1"), "row 3 min -1"),
    ("release", cell(9, "age", "4l"), "row 9 age 4l"),
    ("release", cell(9, "age", "430"), "row 9 age 430"),
    ("release", cell(9, "age", "1968-03-05"), "row 9 age 1968-03-05"),
    ("fair", cell(9, "score", "61,5"), "row 9 score 61,5 61.5"),
    ("fair", cell(9, "years", "7 years"), "row 9 years 7 years 7"),
    ("fair", cell(9, "years", "999"), "row 9 years 999"),
    ("sample", cell(9, "turnover", "1,234"), "row 9 turnover 1,234 1234"),
    ("sample", cell(9, "turnover", "12%"), "row 9 turnover 12% 0.12"),
    ("sample", cell(9, "turnover", "€ 3"), "row 9 turnover 3"),
    ("sample", cell(9, "turnover", "1200000"), "row 9 turnover 1200000"),
    # keys and rows that stand twice
    ("panel", double(9), "row 152 id row 9"),
    ("panel", cell(9, "id", "V003"), "row 9 id V003 v003"),
    ("sample", double(9), "row 2002 firm row 9"),
    ("fair", double(9), "row 1502 id row 9"),
    ("quotas", double(3), "row 10 value sex = male row 3"),
    # columns that are renamed, swapped, doubled or nameless
    ("panel", rename(region="Region"), "row 1 region Region"),
    ("quotas", rename(max="maxi"), "row 1 max maxi"),
    ("release", rename(employed="employd"), "row 1 employed employd"),
    ("fair", rename(hired="Hired?"), "row 1 hired Hired?"),
    ("sample", rename(turnover="turn over"), "row 1 turnover turn over"),
    ("sample", rename(firm="region"), "row 1 region 2 columns"),
    ("panel", rename(address=""), "row 1 address"),
    ("panel", headings("sex", "age"), "sex 16-34"),
    ("quotas", headings("min", "max"), "row 4 min 7"),
    ("release", headings("sex", "employed"), "sex employed"),
    ("fair", headings("sex", "hired"), "hired positive"),
    ("fair", headings("sex", "score"), "sex values"),
    ("sample", headings("region", "turnover"), "region values"),
    ("sample", swap(9, "region", "class"), "row 9 region class"),
    ("fair", swap(9, "sex", "degree"), "row 9 sex degree"),
    ("release", swap(9, "sex", "region"), "row 9 sex region"),
    # the form of the file
    ("panel", text(lambda given: given.replace("Mill", "Mühl").encode("cp1252")), "row 2 UTF-8 cp1252"),
    ("sample", text(lambda given: given.replace("coast", "Küste").encode("latin-1")), "UTF-8 cp1252"),
    ("fair", text(lambda given: given.replace("school", "Ã©cole").encode()), "row encoding UTF-8"),
    ("release", text(lambda given: BOM + given[:300].encode("utf-16-le") + b"\0"), ""),
    ("sample", longer(9, ",5"), "row 9 5 cells 4 columns"),
    (
        "panel",
        lines(lambda given: [*given[:8], given[8].replace(",", ";"), *given[9:]]),
        "row 9 cells columns",
    ),
    (
        "fair",
        lines(lambda given: [*given[:8], given[8].rpartition(",")[0], *given[9:]]),
        "row 9 cells columns",
    ),
    ("fair", longer(9, '"'), "row 9 hired yes"),
    ("sample", inserted(9, ",,,"), "row 9 empty row"),
    (
        "sample",
        lambda f, t: inserted(9, (f / "frame.csv").read_text().splitlines()[0])(f, t),
        "row 9 heading",
    ),
    ("sample", lines(lambda given: [*given, "Total,coast,small,9999999"]), "Total"),
    ("panel", lines(lambda given: [*given, "Source: the office"]), "row 152 cells columns"),
    ("panel", raw("volunteers.csv", b""), "empty"),
    ("panel", lines(lambda given: given[:1]), "no rows"),
    ("quotas", lines(lambda given: given[1:]), "feature missing"),
    # dates as groups, tiny groups, quotas that do not fit
    ("panel", cell(9, "age", "Oct-19"), "row 9 age Oct-19"),
    ("sample", cell(9, "class", "Oct-19"), "row 9 class Oct-19 10-19"),
    ("fair", cells("sex", "female", "2019-10-01"), "sex date"),
    ("sample", cell(9, "region", "island"), "row 9 region island"),
    ("quotas", cell(2, "min", "20"), "row 2 min max"),
    (
        "quotas",
        table(lambda f: f.assign(min=f["min"].astype(int) * 2, max=f["max"].astype(int) * 2)),
        "min seats",
    ),
    ("quotas", cell(9, "value", "east"), "row 9 east"),
    ("sample", cells("region", "inland", "coast"), "region only value"),
    # maps
    ("districts", unit(7, TOTPOP=None), "row 9 TOTPOP empty"),
    ("districts", unit(7, TOTPOP="1,234"), "row 9 TOTPOP 1,234 1234"),
    ("districts", unit(7, TOTPOP=-5), "row 9 TOTPOP -5"),
    ("districts", unit(7, TOTPOP=812.5), "row 9 TOTPOP 812.5"),
    ("districts", unit(7, TOTPOP=950_000), "row 9 TOTPOP 950000"),
    ("districts", unit(7, GEOID="0003"), "row 9 GEOID 0003 row 5"),
    ("districts", unit(7, GEOID="Total"), "row 9 GEOID Total"),
    ("districts", shape(7, moved(3)), "row 9 0007 island bridge"),
    ("districts", shape(7, moved(0.03)), "overlaps"),
    ("districts", shape(7, lambda g: None), "row 9 0007 no area"),
    ("districts", shape(7, lambda g: {"type": "Point", "coordinates": [9, 47]}), "row 9 0007 Point"),
    (
        "districts",
        shape(7, lambda g: ring(g, lambda p: [p[0], p[2], p[1], p[3], p[0]])),
        "row 9 0007 crosses",
    ),
    ("districts", shape(7, lambda g: ring(g, lambda p: p[:-1])), "row 9 0007 closed"),
    ("districts", lambda f, t: change_map(f, lambda fs: [*fs, fs[7]]), "row 82 GEOID 0007"),
    (
        "districts",
        lambda f, t: change_map(f, lambda fs: [*fs[:40], fs[0] | {"geometry": moved(5)(fs[0]["geometry"])}]),
        "GEOID",
    ),
    (
        "districts",
        lambda f, t: change_map(f, lambda fs: [x for x in fs if x["properties"]["GEOID"][1] != "4"]),
        "border",
    ),
    ("districts", options(population="totpop"), "totpop TOTPOP"),
    ("districts", options(tolerance="5"), "5 5%"),
    ("districts", options(tolerance="0.5"), "0.5%"),
    ("districts", options(tolerance="-1%"), "share"),
    ("districts", options(k="81"), "districts 81"),
    ("districts", raw("precincts.geojson", b'{"type": "FeatureCollection", "features": ['), "JSON"),
    # the question
    ("release", options(budget="rho=50%"), "budget rho"),
    ("release", options(budget="rho=500"), "rho"),
    ("release", options(budget="0.5"), "budget rho=NUMBER"),
    ("release", schema(sex=["female", "female"]), "sex different"),
    ("release", schema(age={"lower": 110, "upper": 0}), "age lower"),
    ("release", schema(age={"lower": 18, "upper": 64}), "age above 64"),
    ("release", schema(sex="female"), "sex list"),
    ("fair", options(notion="equalized_odds=5"), "5%"),
    ("fair", options(notion="equal_odds=5%"), "equalized_odds"),
    ("fair", options(sensitive="gender"), "gender"),
    ("sample", options(size="2001"), "2000"),
    ("sample", options(size="0"), "size 0"),
    ("sample", options(strata="turnover"), "strata turnover value"),
    ("sample", options(strata="firm"), "strata firm name"),
    ("fair", options(sensitive="hired"), "label hired"),
    ("panel", options(size="30"), "seats"),
    ("model", raw("shifts.lp.gz", gzip.compress(b"minimize\n cost: 10 early +\n")), "shifts"),
    ("model", raw("shifts.lp.gz", b"minimize"), "gz"),
    (
        "model",
        lambda f, t: (f / "shifts.lp.gz").write_bytes((f / "shifts.lp.gz").read_bytes()[:60]) and None,
        "cut off",
    ),
    # a second hunt: each of these was taken in silence, or blamed on something else
    ("model", raw("shifts.lp.gz", gzip.compress(b"min x\nst\n c: x >= 1\n c: x >= 2\nend\n")), "two rows c"),
    ("model", raw("shifts.lp.gz", gzip.compress(b"min x\nst\n c: x >= 1\ngeneral\n q\nend\n")), "q declared"),
    (
        "release",
        raw("schema.json", b'{"sex": ["female"], "sex": ["female", "male"]}'),
        "schema.json 'sex' twice",
    ),
    (
        "districts",
        lambda f, t: twice_in_json(f / "precincts.geojson", "TOTPOP"),
        "precincts.geojson 'TOTPOP' twice",
    ),
    ("sample", table(lambda f: f.assign(turnover="7")), "--value turnover 7 known"),
    ("fair", table(lambda f: f.assign(outcome=f.hired.map({"yes": "a", "no": "b"}))), "outcome --leave-out"),
    ("fair", table(lambda f: f.assign(hired=f.hired.map({"yes": "1", "no": "2"}))), "row 1 hired --positive"),
    ("fair", table(one_of_a_group), "diverse records --fix"),
    (
        "districts",
        lambda f, t: change_map(f, lambda fs: [texts(x) for x in fs]),
        "row 2 0000 text '9.0' numbers",
    ),
    ("districts", lambda f, t: change_map(f, lambda fs: [emptied(x) for x in fs]), "TOTPOP --population"),
    (
        "districts",
        lambda f, t: change_map(f, lambda fs: [turned(x, 47, -110) for x in fs]),
        "longitude latitude",
    ),
    (
        "districts",
        lambda f, t: change_map(f, lambda fs: [turned(x, 32, -83) for x in fs]),
        "longitude latitude",
    ),
    (
        "panel",
        lambda f, t: (f / "volunteers.csv").write_bytes((f / "quotas.csv").read_bytes()) and None,
        "candidates feature, value, min, max people first",
    ),
    ("quotas", cells("feature", "region", "regoin"), "quotas 7 feature regoin region"),
    ("quotas", cell(3, "min", "50%"), "row 3 min 50% share people 10"),
    ("quotas", cell(3, "max", "0.5"), "row 3 max 0.5 share people 10"),
    ("panel", options(size="0"), "--size 1"),
    ("panel", options(reserves="-1"), "--reserves 0"),
    ("panel", options(reserves="131"), "--reserves 131 130"),
    ("panel", options(attendance="1.5"), "--attendance 1.5"),
    ("panel", options(keep="v999"), "--keep v999"),
    ("panel", options(drop="v999"), "--drop v999"),
    # a third hunt: errors of spreadsheets, letters that look alike, thousands, doubled tables, tell-tales
    ("sample", each("region", lambda v, i: "#VALUE!" if i < 60 else v), "row 2 region #VALUE! spreadsheet"),
    ("sample", cell(9, "region", "#DIV/0!"), "row 9 region #DIV/0! spreadsheet"),
    ("fair", each("score", lambda v, i: v if i % 5 else "#N/A"), "row 2 score #N/A number"),
    ("fair", each("score", lambda v, i: v.replace(".", ",")), "row 2 score 61,5 61.5"),
    ("fair", each("sex", lambda v, i: v if i % 3 else v.replace("a", "\u0430")), "row 2 sex CYRILLIC female"),
    ("release", cell(9, "sex", "m\u0430le"), "row 9 sex male"),
    ("panel", cell(9, "region", "nor\u200bth"), "row 9 region nor\\u200bth north"),
    ("sample", each("turnover", lambda v, i: f"{1000 * float(v):,.0f}".replace(",", ".")), "3.440 3440"),
    ("districts", unit(7, TOTPOP="1.112"), "row 9 TOTPOP 1.112 1112"),
    ("districts", unit(7, TOTPOP="1E+03"), "row 9 TOTPOP 1E+03 spreadsheet"),
    ("sample", each("firm", lambda v, i: f"{1 + i / 1000:.5f}E+11"), "row 2 firm 1.00000E+11 spreadsheet"),
    ("release", table(lambda f: pd.concat([f, f])), "row 1202 twice doubled rows"),
    ("release", table(lambda f: f.assign(count="12")), "row 1 count people repeat"),
    (
        "panel",
        lines(lambda given: ["Volunteers of the city", *given]),
        "row 1 Volunteers 5 above the heading",
    ),
    ("panel", lines(lambda given: ["sep=,", *given]), "row 1 sep=, 5 above the heading"),
    ("fair", table(lambda f: f.assign(pay=told(f, "3000{}", "1{}"))), "row 1 pay --leave-out"),
    ("fair", table(lambda f: f.assign(pay=told(f, "3000{}", ""))), "row 1 pay --leave-out"),
    (
        "fair",
        lines(lambda given: [f"{line},{line.split(',')[4]}" for line in given]),
        "row 1 score 2 columns",
    ),
    ("quotas", cell(7, "value", "north\u200b"), "row 7 value north\\u200b north"),
    ("quotas", raw("quotas.csv", b""), "quotas row 1 empty"),
    ("sample", each("class", lambda v, i: ["1", "01"][i % 2] if v == "small" else "2"), "row 3 class 01"),
    ("sample", options(value="firm"), "--value 'firm' --id different"),
    ("fair", options(sensitive="sex,sex"), "'sex', 'sex' different"),
    ("fair", options(label="hird"), "row 1 hird hired"),
    ("fair", options(notion="equalized_odds=-0.05"), "-0.05 from 0 to 1"),
    (
        "model",
        raw("shifts.lp.gz", gzip.compress(b"min 1,5 x\nst\n c: x >= 1\nend\n")),
        "shifts.lp.gz reading",
    ),
]


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    write_examples(folder)
    return folder


@pytest.mark.parametrize("at", range(len(MESSES)), ids=lambda at: f"{MESSES[at][0]}-{at}")
def test_no_mess_is_accepted_in_silence(at, examples, tmp_path, monkeypatch):
    task, mess, expected = MESSES[at]
    monkeypatch.chdir(tmp_path)
    for path in examples.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    changed = mess(tmp_path, task) or {}
    words = shlex.split(COMMANDS["panel" if task == "quotas" else task])
    for name, value in changed.items():
        flag = f"-{name}" if len(name) == 1 else f"--{name}"
        words = [*words, flag, value]
    done = CliRunner().invoke(app, words)
    if expected is None:
        assert done.exit_code == 0, done.output
        return
    assert done.exit_code == 2, (task, expected, done.exit_code, done.output[-2000:])
    said = " ".join((done.stdout + done.stderr).split())
    for word in expected.replace("row ", "").split():
        assert word in said, (word, said)


def test_the_corpus_is_large():
    assert sum(expected is not None for *_, expected in MESSES) >= 100
