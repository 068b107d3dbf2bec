"""Re-ranks by FairRankTune's DetConstSort; reads scores, groups and k as JSON, writes order and seconds."""

import json
import sys
import time
import warnings

warnings.filterwarnings("ignore")
import pandas as pd  # noqa: E402
from FairRankTune.Rankers import DETCONSTSORT  # noqa: E402

task = json.load(sys.stdin)
scores, groups, k = task["scores"], task["groups"], task["k"]
order = sorted(range(len(scores)), key=lambda i: -scores[i])
shares = {g: groups.count(g) / len(groups) for g in set(groups)}
began = time.perf_counter()
found, *_ = DETCONSTSORT(
    pd.DataFrame(order), dict(enumerate(groups)), pd.DataFrame([scores[i] for i in order]), shares, k
)
json.dump({"order": [int(i) for i in found[0].tolist()], "seconds": time.perf_counter() - began}, sys.stdout)
