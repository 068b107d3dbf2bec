"""A word that is none of the choices of a parameter is refused by name; no branch takes it in silence."""

import pytest

import forcopt as fo
from forcopt.arrays import as_fraction
from forcopt.data import Hierarchy
from forcopt.models import EcologicalRegression, TightAmplification
from forcopt.models.census_release import Region, deviation_factor, measure, noise_variances
from forcopt.privacy.amplification import (
    cluster_sample,
    poisson_sample,
    random_size,
    revealed_cluster,
    simple_random_sample,
)

TREE = Hierarchy(parents=([0, 0],), counts=[3, 4])
EACH = [1.0, 1.0]
UNITS = ([1, 2], [3, 4], [0.5, 0.6], [3, 4])
BOTH = [((1,), 1.0)]


CALLS = {
    "a number's reading": ("reading", lambda word: as_fraction(0.5, word)),
    "a release's noise": ("noise", lambda word: measure(TREE, EACH, noise=word, seed=1)),
    "a variance's noise": ("noise", lambda word: noise_variances(EACH, noise=word)),
    "a region's estimator": ("estimator", lambda word: Region(TREE, [0]).variance(EACH, word)),
    "a factor's estimator": ("estimator", lambda word: deviation_factor(TREE, EACH, word)),
    "units without people": ("empty", lambda word: EcologicalRegression.of_counts(*UNITS, empty=word)),
    "Poisson, samples": ("mechanism", lambda word: poisson_sample(1.0, 0.1, mechanism=word)),
    "Poisson, populations": ("neighbours", lambda word: poisson_sample(1.0, 0.1, neighbours=word)),
    "fixed size, samples": ("mechanism", lambda word: simple_random_sample(1.0, 1, 9, mechanism=word)),
    "fixed size, populations": ("neighbours", lambda word: simple_random_sample(1.0, 1, 9, neighbours=word)),
    "random size": ("mechanism", lambda word: random_size(1.0, [0.5, 0.5], mechanism=word)),
    "clusters": ("neighbours", lambda word: cluster_sample(1.0, [2, 2], 1, neighbours=word)),
    "a betrayed cluster": ("loses", lambda word: revealed_cluster(1.0, 1.0, 0.5, loses=word)),
    "tight, samples": (
        "mechanism",
        lambda word: TightAmplification.stratified([3], BOTH, BOTH, 1.0, mechanism=word),
    ),
    "tight, populations": (
        "neighbours",
        lambda word: TightAmplification.stratified([3], BOTH, BOTH, 1.0, neighbours=word),
    ),
    "tight clusters": (
        "neighbours",
        lambda word: TightAmplification.cluster_sample([2, 2], 1, 0, 1.0, neighbours=word),
    ),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("word", ["no choice", "Substitute", 3, None, float("nan")])
def test_a_word_that_is_no_choice_is_refused(name, word):
    parameter, call = CALLS[name]
    if word is None and parameter == "empty":
        pytest.skip("None is a choice")
    with pytest.raises(fo.DeclarationError, match=rf"^{parameter} is .*; it must be '"):
        call(word)


def test_a_mechanism_that_is_private_under_substitution_alone_may_reveal_a_poisson_sample():
    with pytest.raises(fo.DeclarationError, match="mechanism is 'substitute'"):
        poisson_sample(1.0, 0.1, mechanism="substitute")
