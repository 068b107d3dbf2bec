"""Counterfactual scores by DoWhy's gcm, of records as JSON: for the comparison with our own."""

import json
import logging
import sys
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
import networkx as nx  # noqa: E402
import pandas as pd  # noqa: E402
from dowhy import gcm  # noqa: E402

gcm.config.disable_progress_bars()
task = json.load(sys.stdin)
frame = pd.DataFrame(task["records"])
scm = gcm.InvertibleStructuralCausalModel(nx.DiGraph([tuple(e) for e in task["graph"]]))
for node in scm.graph:
    if scm.graph.in_degree(node):
        scm.set_causal_mechanism(node, gcm.AdditiveNoiseModel(gcm.ml.create_linear_regressor()))
    else:
        scm.set_causal_mechanism(node, gcm.EmpiricalDistribution())
gcm.fit(scm, frame)
found = gcm.counterfactual_samples(scm, {"G": lambda _: 1.0, "R": lambda _: 1.0}, observed_data=frame)
json.dump(found["Y"].tolist(), sys.stdout)
