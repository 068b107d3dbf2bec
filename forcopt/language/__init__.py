"""What a modeller writes: models, variables, expressions, atoms, constraints and objectives."""

from forcopt.language.atoms import (
    abs,
    entropy,
    exp,
    inverse,
    kl_div,
    log,
    logistic,
    maximum,
    minimum,
    norm,
    positive_part,
    power,
    product,
    quad_form,
    quad_over_lin,
    sum_largest,
    sum_smallest,
    sum_squares,
)
from forcopt.language.constraint import Constraint, connected, implies
from forcopt.language.expression import Expression
from forcopt.language.joins import concatenate, stack
from forcopt.language.model import Model, Variable
from forcopt.language.objective import Objective, lexicographic, leximax, leximin, maximize, minimize

__all__ = [
    "Constraint",
    "Expression",
    "Model",
    "Objective",
    "Variable",
    "abs",
    "concatenate",
    "connected",
    "entropy",
    "exp",
    "implies",
    "inverse",
    "kl_div",
    "lexicographic",
    "leximax",
    "leximin",
    "log",
    "logistic",
    "maximize",
    "maximum",
    "minimize",
    "minimum",
    "norm",
    "positive_part",
    "power",
    "product",
    "quad_form",
    "quad_over_lin",
    "stack",
    "sum_largest",
    "sum_smallest",
    "sum_squares",
]
