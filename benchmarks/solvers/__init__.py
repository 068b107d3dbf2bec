"""Solvers ranked by the field's rules."""
