"""How long code works. No test decides by wall time, which says little about the code on a busy machine."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any


@contextmanager
def spends_at_most(seconds: float) -> Generator[None, None, None]:
    """Fail if the code takes more time of the processor, on all threads of this process together."""
    began = time.process_time()
    yield
    spent = time.process_time() - began
    assert spent <= seconds, f"{spent:.1f} s of the processor; at most {seconds:g} s are right"


def with_a_point(solve: Callable[[float], Any]) -> Any:
    """Solve within 0.5 s, then four times as long, until there is a point: a busy machine needs longer."""
    for limit in (0.5, 2.0, 8.0, 32.0):
        if (s := solve(limit)).status.has_solution:
            return s
    raise AssertionError("there is no point after 32 s")
