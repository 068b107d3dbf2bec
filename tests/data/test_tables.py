import numpy as np
import pytest

import forcopt as fo
from forcopt.data import load_adult, load_communities, load_compas, load_lawschool


def check(data, records, positives, columns):
    assert len(data) == records == len(data.frame)
    assert int(data.labels.sum()) == positives
    assert data.features.shape == (records, columns) == (records, len(data.feature_names))
    assert np.isfinite(data.features).all()


def test_adult(shared_data):
    data = load_adult(shared_data / "tabular/adult.csv")
    check(data, 30_162, 7_508, 80)
    assert sorted(np.unique(data.groups, return_counts=True)[1].tolist()) == [9_782, 20_380]
    assert not [name for name in data.feature_names if "sex" in name or "race" in name]
    by_both = load_adult(shared_data / "tabular/adult.csv", groups="race-sex")
    assert (by_both.groups == by_both.frame["race-sex"]).all()
    assert data.features[0, :5].tolist() == [39, 13, 2174, 0, 40]
    assert data.features[:, 5:].sum() == 5 * len(data)
    with pytest.raises(fo.UnknownNameError, match="did you mean 'race'"):
        load_adult(shared_data / "tabular/adult.csv", groups="rac")


def test_communities(shared_data):
    data = load_communities(shared_data / "tabular/communities.csv")
    check(data, 1_994, int(data.frame["ViolentCrimesPerPop"].sum()), 112)
    assert 0.45 < (data.groups == "high").mean() <= 0.5
    assert data.features.min() == 0 and data.features.max() == 1


def test_lawschool(shared_data):
    data = load_lawschool(shared_data / "tabular/lawschool.csv")
    check(data, 1_823, 954, 9)
    assert len(data.of_groups("White")) == 1_363
    assert len(data.of_groups("Black")) == 207


@pytest.mark.parametrize(
    ("load", "header", "record", "message"),
    [
        (load_adult, "age", "39", "no column education-num"),
        (load_communities, "racepctblack,racePctWhite,ViolentCrimesPerPop", None, "no record"),
        (
            load_lawschool,
            "cluster,lsat,ugpa,zfygpa,zgpa,fulltime,fam_inc,age,gender,bar1,"
            + ",".join(f"race{i}" for i in range(1, 9)),
            ",".join(["1"] * 18),
            "one of race1 to race8",
        ),
    ],
)
def test_wrong_files_are_named(tmp_path, load, header, record, message):
    path = tmp_path / "file.csv"
    path.write_text("\n".join([header, record] if record else [header]))
    with pytest.raises(fo.DeclarationError, match=message):
        load(path)


def test_adult_leaves_out_who_is_not_known_whole(tmp_path):
    head = "age,workclass,education,education-num,marital-status,occupation,relationship,race,sex,"
    head += "capital-gain,capital-loss,hours-per-week,native-country,income-per-year"
    known = "39,State-gov,Bachelors,13,Never-married,Adm,Own,White,Male,0,0,40,Cuba,{income}"
    path = tmp_path / "adult.csv"
    path.write_text(
        "\n".join([head, known.format(income="<=50K"), known.format(income=" >50K.").replace("Adm", "?")])
    )
    data = load_adult(path)
    assert len(data) == 1 and data.labels.tolist() == [0]


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        (">5OK", ">50K", "row 3, column income-per-year: '>5OK.' is not among .* did you mean '>50K.'"),
        ("50000", ">50K", "row 3, column income-per-year: '50000.' is not among <=50K, >50K"),
        ("Femal", "Female", "row 3, column sex: 'Femal' is not among .* did you mean 'Female'"),
    ],
)
def test_a_misspelt_level_of_adult_is_no_zero(wrong, right, message, tmp_path):
    head = "age,workclass,education-num,marital-status,occupation,relationship,race,sex,capital-gain,"
    head += "capital-loss,hours-per-week,native-country,income-per-year"
    first = "39,?,13,Single,Adm,Own,White,Male,0,0,40,Cuba,<=50K"
    record = "39,State-gov,13,Single,Adm,Own,White,Female,0,0,40,Cuba, >50K."
    path = tmp_path / "adult.csv"
    path.write_text("\n".join([head, first, record]))
    assert load_adult(path).labels.tolist() == [1]
    path.write_text("\n".join([head, first, record.replace(right, wrong)]))
    with pytest.raises(fo.DeclarationError, match=message):
        load_adult(path)


def test_a_misspelt_level_of_compas_is_no_zero(shared_data, tmp_path):
    lines = (shared_data / "tabular/compas-scores-two-years.csv").read_text().splitlines()[:30]
    path = tmp_path / "compas.csv"
    for right, wrong in ((",Male,", ",male,"), (",F,", ",f,")):
        row = next(i for i, line in enumerate(lines) if right in line)
        path.write_text("\n".join([*lines[:row], lines[row].replace(right, wrong, 1), *lines[row + 1 :]]))
        with pytest.raises(
            fo.DeclarationError, match=rf"row {row + 1}, column .* is not among .* did you mean"
        ):
            load_compas(path)


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "t.csv is no CSV file with a first row of names"),
        ('racepctblack,"racePctWhite\n', "t.csv is no CSV file"),
        ("racepctblack,racePctWhite,ViolentCrimesPerPop\n0.1,0.2,1,5\n0.3,0.4,0,5\n", "t.csv is no CSV file"),
        (
            "racepctblack,racePctWhite,ViolentCrimesPerPop\n0.1,0.2,1\n0.3,0.4,0.67\n",
            "t.csv, row 3, column ViolentCrimesPerPop: '0.67' is not among 0, 1",
        ),
    ],
)
def test_files_that_pandas_would_read_as_something_else_are_refused(text, message, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(fo.DeclarationError, match=message):
        load_communities(path)
