"""Proofs of integer programs: how long they take, how long they are, and that damaged ones are refused."""
