"""Structural causal models with linear equations: fits, counterfactual scores, effects, sensitivity.

`model` has `CausalModel`, the graph and the form of its equations. `fitted` has `FittedCausalModel`, the
equations with numbers, and `Counterfactual`, everyone's scores as members of another group.
`transformer` has a scikit-learn transformer for learned rankers.
"""

from typing import TYPE_CHECKING, Any

from forcopt.causal.fitted import Counterfactual, FittedCausalModel
from forcopt.causal.model import CausalModel
from forcopt.errors import needs_sklearn

if TYPE_CHECKING:
    from forcopt.causal.transformer import CounterfactualTransformer

__all__ = ["CausalModel", "Counterfactual", "CounterfactualTransformer", "FittedCausalModel"]


def __getattr__(name: str) -> Any:
    if name == "CounterfactualTransformer":
        return needs_sklearn("forcopt.causal.transformer", name)
    raise AttributeError(f"module 'forcopt.causal' has no attribute {name!r}")
