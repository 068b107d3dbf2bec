"""The modelling language: models, variables, expressions, atoms, constraints and objectives."""

from forcopt.language.along import align, where
from forcopt.language.atoms import (
    abs,
    entropy,
    exp,
    geometric_mean,
    inverse,
    kl_div,
    log,
    logistic,
    maximum,
    minimum,
    norm,
    positive_part,
    power,
    quad_over_lin,
    sum_largest,
    sum_smallest,
    sum_squares,
)
from forcopt.language.constraint import Constraint, connected, implies
from forcopt.language.expression import Expression
from forcopt.language.joins import block, concatenate, cumsum, diag, stack, sum, trace
from forcopt.language.logic import all_of, any_of, either
from forcopt.language.matrices import semidefinite, symmetric
from forcopt.language.model import Model
from forcopt.language.objective import Objective, lexicographic, leximax, leximin, maximize, minimize
from forcopt.language.products import product, quad_form
from forcopt.language.semicontinuous import semicontinuous
from forcopt.language.variable import Variable

__all__ = [
    "Constraint",
    "Expression",
    "Model",
    "Objective",
    "Variable",
    "abs",
    "align",
    "all_of",
    "any_of",
    "block",
    "concatenate",
    "connected",
    "cumsum",
    "diag",
    "either",
    "entropy",
    "exp",
    "geometric_mean",
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
    "semicontinuous",
    "semidefinite",
    "stack",
    "sum",
    "sum_largest",
    "sum_smallest",
    "sum_squares",
    "symmetric",
    "trace",
    "where",
]
