"""Which data count as neighbours."""

from __future__ import annotations

from typing import Literal

__all__ = ["Neighbours", "SampleRelation"]

Neighbours = Literal["add_remove", "substitute"]
"""Between populations: one has a record more, or one record differs."""

SampleRelation = Literal["add_remove", "substitute", "either"]
"""Between samples, under which a mechanism is private: one of the two, or both."""
