"""Measurements of the library beside its peers, and the committed results."""
