"""Leximin at scale: against cvxpy_leximin and sortition-algorithms, by method and backend, and gaps."""
