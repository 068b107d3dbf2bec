"""The problems: one package each."""
