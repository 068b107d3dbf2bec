"""Measures post-processing: private, with private demographics, and against other libraries."""
