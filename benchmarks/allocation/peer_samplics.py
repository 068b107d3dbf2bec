"""Allocates by samplics; reads strata as JSON from standard input and writes sizes and seconds.

samplics needs an environment of its own. Its ``optimum_mean`` takes a rate for N S instead of a sample size,
so that the rate is worked out here; it rounds up, and refuses to take more than a whole stratum.
"""

import json
import sys
import time
import warnings

warnings.filterwarnings("ignore")
from samplics.sampling import allocate  # noqa: E402

answers = []
for task in json.load(sys.stdin):
    names = list(map(str, range(len(task["sizes"]))))
    began = time.perf_counter()
    sizes = dict(zip(names, task["sizes"], strict=True))
    deviations = dict(zip(names, task["deviations"], strict=True))
    rate = task["sample_size"] / sum(sizes[n] * deviations[n] for n in names)
    try:
        found, _ = allocate("optimum_mean", names, sizes, rate=rate, stddev=deviations)
        answer = {"sizes": [int(found[n]) for n in names]}
    except ValueError as error:
        answer = {"refused": str(error)}
    answers.append({**answer, "seconds": time.perf_counter() - began})
json.dump(answers, sys.stdout)
