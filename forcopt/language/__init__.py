"""The modelling language: models, variables, expressions, atoms, constraints and objectives."""

from forcopt.language.affine import cumsum, diag, sum, trace
from forcopt.language.along import align, where
from forcopt.language.atoms import (
    abs,
    entropy,
    exp,
    geometric_mean,
    huber,
    inverse,
    kl_div,
    log,
    log_sum_exp,
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
from forcopt.language.joins import block, concatenate, stack
from forcopt.language.logic import all_of, any_of, at_least, at_most, either, exactly, iff
from forcopt.language.matrices import lambda_max, lambda_min, log_det, nuclear_norm, semidefinite, symmetric
from forcopt.language.model import Model, Variable
from forcopt.language.objective import Objective, lexicographic, leximax, leximin, maximize, minimize
from forcopt.language.piecewise import piecewise_linear
from forcopt.language.products import product
from forcopt.language.quad_form import quad_form
from forcopt.language.scheduling import Interval, cumulative, no_overlap
from forcopt.language.special_sets import all_different, semicontinuous, sos1, sos2

__all__ = [
    "Constraint",
    "Expression",
    "Interval",
    "Model",
    "Objective",
    "Variable",
    "abs",
    "align",
    "all_different",
    "all_of",
    "any_of",
    "at_least",
    "at_most",
    "block",
    "concatenate",
    "connected",
    "cumsum",
    "cumulative",
    "diag",
    "either",
    "entropy",
    "exactly",
    "exp",
    "geometric_mean",
    "huber",
    "iff",
    "implies",
    "inverse",
    "kl_div",
    "lambda_max",
    "lambda_min",
    "lexicographic",
    "leximax",
    "leximin",
    "log",
    "log_det",
    "log_sum_exp",
    "logistic",
    "maximize",
    "maximum",
    "minimize",
    "minimum",
    "no_overlap",
    "norm",
    "nuclear_norm",
    "piecewise_linear",
    "positive_part",
    "power",
    "product",
    "quad_form",
    "quad_over_lin",
    "semicontinuous",
    "semidefinite",
    "sos1",
    "sos2",
    "stack",
    "sum",
    "sum_largest",
    "sum_smallest",
    "sum_squares",
    "symmetric",
    "trace",
    "where",
]
