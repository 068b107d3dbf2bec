"""One solve by a peer, in its own environment: reads a JSON instance from standard input, writes JSON.

    python benchmarks/leximax/peer.py KIND METHOD < instance.json

The clock runs when all is imported and read.
"""

from __future__ import annotations

import json
import logging
import sys
import time

import cvxpy
import numpy as np
from requests.structures import CaseInsensitiveDict
from sortition_algorithms.committee_generation.leximin import find_distribution_leximin
from sortition_algorithms.committee_generation.maximin import find_distribution_maximin
from sortition_algorithms.committee_generation.nash import find_distribution_nash
from sortition_algorithms.features import FeatureValueMinMax, set_default_max_flex
from sortition_algorithms.people import People

logging.disable(logging.CRITICAL)


def shares(data, method):
    from cvxpy_leximin import Leximin, Problem

    V = np.array(data["V"])
    x = cvxpy.Variable(V.shape)
    u = [V[i] @ x[i] for i in range(len(V))]
    problem = Problem(Leximin(u), [x >= 0, cvxpy.sum(x, axis=0) <= 1])
    problem.solve(method=method)
    return sorted(float(e.value) for e in u)


def facilities(data, method):
    from cvxpy_leximin import Leximax, Problem

    D = np.array(data["D"])
    customers, sites = D.shape
    is_open, goes = cvxpy.Variable(sites, boolean=True), cvxpy.Variable((customers, sites), boolean=True)
    rows = [cvxpy.sum(goes, axis=1) == 1, cvxpy.sum(is_open) == data["open"]]
    rows += [goes[i] <= is_open for i in range(customers)]
    losses = [D[i] @ goes[i] for i in range(customers)]
    options = {"outcome_levels": sorted(set(D.ravel().tolist()))} if method == "ordered_values" else {}
    Problem(Leximax(losses), rows).solve(method=method, solver=cvxpy.HIGHS, **options)
    return sorted((float(e.value) for e in losses), reverse=True)


def panel(data, method):
    features = CaseInsensitiveDict()
    for name, bounds in data["quotas"].items():
        features[name] = CaseInsensitiveDict(
            {k: FeatureValueMinMax(min=int(low), max=int(high)) for k, (low, high) in bounds.items()}
        )
    set_default_max_flex(features)
    people = People([])
    for i in range(data["count"]):
        people._full_data[str(i)] = CaseInsensitiveDict({f: v[i] for f, v in data["features"].items()})
    find = {
        "maximin": find_distribution_maximin,
        "leximin": find_distribution_leximin,
        "nash": find_distribution_nash,
    }[method]
    committees, weights, _ = find(features, people, data["size"], [], "highspy")
    marginals = np.zeros(data["count"])
    for members, weight in zip(committees, weights, strict=True):
        marginals[[int(i) for i in members]] += weight
    return sorted(marginals.tolist())


def main():
    kind, method = sys.argv[1:]
    data = json.load(sys.stdin)
    began, cpu = time.perf_counter(), time.process_time()
    try:
        levels, status = globals()[kind](data, method), "optimal"
    except Exception as error:  # a peer's failure is a result here
        levels, status = None, f"{type(error).__name__}: {str(error)[:60]}"
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    print("\n" + json.dumps({"seconds": seconds, "cpu": cpu, "levels": levels, "status": status}))


if __name__ == "__main__":
    main()
