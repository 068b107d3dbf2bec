"""The words that a shell completes: models, backends, and the names of examples and instances."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["complete_backend", "complete_model", "complete_spec"]


def complete_model(incomplete: str) -> list[str]:
    """Complete the name of a model."""
    from forcopt.problem import registry

    return _beginning(registry.problem_classes(), incomplete)


def complete_backend(incomplete: str) -> list[str]:
    """Complete the name of an installed backend."""
    from forcopt.backends import registry

    return _beginning((n for n, b in registry.backends().items() if not b.missing()), incomplete)


def complete_spec(incomplete: str) -> list[str]:
    """Complete the name of an example or instance; files are completed by the shell."""
    from forcopt.problem import registry
    from forcopt.study import library

    return _beginning([*registry.examples(), *library.instances()], incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
