"""Benchmark: time and memory to build a model and hand it over to HiGHS, library by library."""
