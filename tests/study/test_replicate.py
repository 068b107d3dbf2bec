"""Repeated studies: independent of executor and interruption, with intervals of their stated level."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import binom

from forcopt.errors import DeclarationError, UnknownNameError
from forcopt.study import replicate
from forcopt.study.store import Store

COUNTS = np.array([3.0, 5.0, 8.0])


def draw(generator):
    return generator.poisson(COUNTS).astype(float)


def noisy(data, generator):
    return data + generator.laplace(scale=2.0, size=data.shape)


def positive(release):
    return np.maximum(release, 0.0)


def total_error(outcome, data):
    return abs(outcome.sum() - data.sum())


def errors(outcome, data):
    return outcome - data


METRICS = {"total": total_error, "cells": errors}


def study(runs=40, **options):
    return replicate(draw, noisy, positive, METRICS, runs, 7, **options)


def test_every_executor_gives_the_same():
    alone = study()
    with ThreadPoolExecutor(3) as threads, ProcessPoolExecutor(2) as processes:
        for executor in (threads, processes):
            other = study(executor=executor)
            for name in METRICS:
                assert np.array_equal(alone.values[name], other.values[name])
    assert alone.values["cells"].shape == (40, 3)


def test_more_runs_keep_the_first_ones():
    assert np.array_equal(study(10).values["total"], study(40).values["total"][:10])


def test_a_store_continues(tmp_path):
    path = tmp_path / "study.sqlite"
    calls = []

    def counted(outcome, data):
        calls.append(1)
        return float(outcome.sum())

    first = replicate(draw, noisy, None, {"sum": counted}, 10, 3, store=path, name="counts")
    again = replicate(draw, noisy, None, {"sum": counted}, 25, 3, store=path, name="counts")
    assert len(calls) == 25
    assert np.array_equal(first.values["sum"], again.values["sum"][:10])
    replicate(draw, noisy, None, {"sum": counted}, 10, 4, store=path, name="counts")
    assert len(calls) == 35  # another seed is another study
    with Store(path) as kept:
        assert len(kept.repetitions("counts 3 ['sum']")) == 25


def test_an_interruption_keeps_what_is_there(tmp_path):
    path = tmp_path / "study.sqlite"
    seen = []

    def stops(outcome, data):
        if len(seen) == 5:
            seen.append(None)
            raise KeyboardInterrupt
        seen.append(1)
        return 1.0

    kept = replicate(COUNTS, noisy, None, {"one": stops}, 20, store=path, name="x")
    assert kept.runs == 5 and "5 of 20" in kept.message and "5 of 20" in repr(kept)
    assert replicate(COUNTS, noisy, None, {"one": stops}, 20, store=path, name="x").runs == 20


def test_a_wanted_half_width_ends_early():
    e = replicate(COUNTS, noisy, None, {"total": total_error}, 100_000, half_width=0.25)
    low, high = e.interval("total")
    assert 30 <= e.runs < 100_000 and (high - low) / 2 <= 0.25


def test_intervals_hold_their_level():
    """Of 400 intervals at 80 %, the number that holds 0 is binomial: outside [280, 358] once in 1e5."""
    hits = 0
    for seed in range(400):
        e = replicate(0.0, lambda data, g: g.normal(), None, {"x": lambda o, _: o}, 20, seed, 0.8)
        low, high = e.interval("x")
        hits += low <= 0.0 <= high
    low, high = binom.ppf([5e-6, 1 - 5e-6], 400, 0.8)
    assert low <= hits <= high


def test_frame_and_picture():
    e = study()
    frame = e.to_pandas()
    assert list(frame["metric"]) == ["total", "cells", "cells", "cells"]
    assert np.isclose(frame["mean"][0], e.mean("total"))
    assert e.plot("total").get_xlabel() == "total" and e.plot("cells").get_ylabel() == "cells"
    with pytest.raises(UnknownNameError, match="totl"):
        e.mean("totl")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"runs": 0}, "runs is 0"),
        ({"runs": 2.5}, "runs is 2.5"),
        ({"rng": -1}, "rng is -1"),
        ({"level": 1.0}, "level is 1.0"),
        ({"metrics": {}}, "metrics is empty"),
        ({"metrics": abs}, "metrics is a builtin_function_or_method; it must be a dict"),
        ({"half_width": 0.0}, "half_width is 0.0"),
        ({"half_width": {"tot": 1.0}}, "names 'tot'"),
        ({"store": "s.sqlite"}, "needs a name"),
    ],
)
def test_bad_input(fields, message):
    given = {"draw": draw, "mechanism": noisy, "rule": None, "metrics": METRICS, "runs": 5, **fields}
    with pytest.raises(DeclarationError, match=message):
        replicate(**given)


def test_a_metric_keeps_its_shape():
    sizes = iter(range(1, 10))
    with pytest.raises(DeclarationError, match="several shapes"):
        replicate(0.0, noisy_scalar, None, {"x": lambda o, d: np.zeros(next(sizes))}, 3)


def noisy_scalar(data, generator):
    return data + generator.normal()


def rare(data, generator):
    return float(generator.random() < 0.02)


def test_a_number_that_has_not_varied_yet_does_not_end_a_study():
    """An event of probability 2 % stays out of 300 repetitions in one study of 430."""
    ends = [
        replicate(0.0, rare, None, {"hit": lambda o, _: o}, 3000, seed, half_width=0.1) for seed in range(60)
    ]
    assert sum(e.mean("hit") == 0.0 for e in ends) <= 3
    still = replicate(0.0, lambda data, g: 1.0, None, {"same": lambda o, _: o}, 3000, half_width=0.1)
    assert still.runs == 300
