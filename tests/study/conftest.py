import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # the knapsack problem, which the runs import too
collect_ignore = ["knapsack.py"]
