"""Fair learning: against fairlearn, approximate against exact methods, and a paper's figures."""
