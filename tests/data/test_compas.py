import numpy as np
import pytest

import forcopt as fo
from forcopt.data import COMPAS_DECILES, Dataset, compas_counts, load_compas
from forcopt.fairness import FALSE_POSITIVE, TRUE_POSITIVE, EqualizedOdds, GroupRates
from forcopt.models import FairPostprocessing

FILE = "tabular/compas-scores-two-years.csv"


@pytest.fixture(scope="module", params=["filtered", "all"])
def loaded(request, shared_data):
    return request.param, load_compas(shared_data / FILE, filtered=request.param == "filtered")


def test_the_file_has_the_records_that_propublica_counts(loaded):
    which, data = loaded
    assert len(data) == {"filtered": 6172, "all": 7214}[which]
    assert data.features.shape == (len(data), len(data.feature_names))
    assert np.isfinite(data.features).all()
    assert set(np.unique(data.labels)) == {0, 1}
    assert len(data.of_groups("African-American", "Caucasian")) == {"filtered": 5278, "all": 6150}[which]


def test_the_file_gives_the_printed_table(loaded):
    which, data = loaded
    for race, (people, recidivists) in COMPAS_DECILES[which].items():
        of_race = data.of_groups(race)
        deciles = of_race.frame["decile_score"].to_numpy()
        assert tuple(np.bincount(deciles, minlength=11)[1:].tolist()) == people
        assert tuple(np.bincount(deciles[of_race.labels == 1], minlength=11)[1:].tolist()) == recidivists


@pytest.mark.parametrize("cutoff", [1, 5, 8, 11])
def test_the_file_gives_the_problem(loaded, cutoff):
    which, data = loaded
    two = data.of_groups("African-American", "Caucasian")
    problem = FairPostprocessing.from_predictions(
        two.frame["decile_score"] >= cutoff, two.groups, two.labels, constraint=EqualizedOdds()
    )
    counts, groups = compas_counts(cutoff, filtered=which == "filtered")
    assert problem == FairPostprocessing(counts=counts, groups=groups, constraint=EqualizedOdds())


def test_the_unfiltered_table_has_propublicas_error_rates():
    """False positives 44.85 and 23.45 percent, false negatives 27.99 and 47.72 percent."""
    counts, groups = compas_counts(filtered=False)
    rates = GroupRates(counts[1], counts.sum(axis=0), groups)
    assert rates.rate(FALSE_POSITIVE) == pytest.approx([0.4485, 0.2345], abs=5e-5)
    assert 1 - rates.rate(TRUE_POSITIVE) == pytest.approx([0.2799, 0.4772], abs=5e-5)


def test_no_one_is_lost_at_any_cutoff():
    for cutoff in range(1, 12):
        counts, _ = compas_counts(cutoff)
        assert counts.sum() == 3175 + 2103
        assert counts.min() >= 0
    assert compas_counts(1)[0][0].sum() == 0 == compas_counts(11)[0][1].sum()
    for bad in (0, 12, 4.5):
        with pytest.raises(fo.DeclarationError, match="cutoff is"):
            compas_counts(bad)


def test_a_small_file(tmp_path):
    path = tmp_path / "scores.csv"
    columns = (
        "id,sex,age,race,juv_fel_count,juv_misd_count,juv_other_count,priors_count,days_b_screening_arrest,"
        "c_charge_degree,is_recid,decile_score,score_text,two_year_recid"
    )
    kept = "1,Male,30,Other,1,2,3,4,-1.0,F,1,7,Medium,1"
    dropped = [
        "2,Male,30,Other,0,0,0,0,31.0,F,0,1,Low,0",  # screened too long after the arrest
        "3,Male,30,Other,0,0,0,0,,F,0,1,Low,0",  # no arrest
        "4,Male,30,Other,0,0,0,0,0.0,O,0,1,Low,0",  # ordinary traffic offence
        "5,Male,30,Other,0,0,0,0,0.0,F,-1,1,Low,0",  # outcome unknown
        "6,Female,30,Other,0,0,0,0,0.0,M,0,-1,N/A,0",  # no score
    ]
    path.write_text("\n".join([columns, *dropped[:2], kept, *dropped[2:]]))
    data = load_compas(path)
    assert isinstance(data, Dataset)
    assert data.frame["id"].tolist() == [1]
    assert dict(zip(data.feature_names, data.features[0].tolist(), strict=True)) == {
        "age": 30,
        "priors_count": 4,
        "juv_fel_count": 1,
        "juv_misd_count": 2,
        "juv_other_count": 3,
        "male": 1,
        "felony": 1,
    }
    assert (data.labels.tolist(), data.groups.tolist()) == ([1], ["Other"])
    assert len(load_compas(path, filtered=False)) == 6
    with pytest.raises(fo.UnknownNameError, match="did you mean 'Other'"):
        data.of_groups("Others")


def test_another_file_is_refused(tmp_path):
    path = tmp_path / "adult.csv"
    path.write_text("age,sex\n30,Male\n")
    with pytest.raises(fo.DeclarationError, match="has no column priors_count"):
        load_compas(path)
    with pytest.raises(FileNotFoundError):
        load_compas(tmp_path / "nowhere.csv")
