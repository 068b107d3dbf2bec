"""Logarithms and exponentials as exponential cones.

All are exact.
"""

from __future__ import annotations

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.relations import AtomRelation, ExponentialCone


@bridge("log", gives=("exponential",))
def log_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t <= log(x)`` as ``(t, 1, x)`` in the exponential cone.

    Takes ``log``, gives ``exponential``: one cone for each element. Exact.
    """
    (x,) = relation.arguments
    draft.relation(ExponentialCone(relation.result, 0 * x + 1.0, x, relation))


@bridge("exp", gives=("exponential",))
def exp_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= exp(x)`` as ``(x, 1, t)`` in the exponential cone.

    Takes ``exp``, gives ``exponential``: one cone for each element. Exact.
    """
    (x,) = relation.arguments
    draft.relation(ExponentialCone(x, 0 * x + 1.0, relation.result, relation))


@bridge("entropy", gives=("exponential",))
def entropy_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t <= -x log(x)`` as ``(t, x, 1)`` in the exponential cone: ``x exp(t / x) <= 1``.

    Takes ``entropy``, gives ``exponential``: one cone for each element. Exact on the closure (``0 log 0
    = 0``).
    """
    (x,) = relation.arguments
    draft.relation(ExponentialCone(relation.result, x, 0 * x + 1.0, relation))


@bridge("kl_div", gives=("exponential",))
def kl_div_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= x log(x / y) - x + y`` as ``x exp(-(t + x - y) / x) <= y``.

    Takes ``kl_div``, gives ``exponential``: one cone for each element. Exact on the closure.
    """
    x, y = relation.arguments
    draft.relation(ExponentialCone(y - x - relation.result, x, y))


@bridge("logistic", gives=("exponential", "rows"))
def logistic_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= log(1 + exp(x))`` as ``exp(-t) + exp(x - t) <= 1``.

    Takes ``logistic``, gives ``exponential`` and rows: two cones and one row for each element, with two
    new columns. Exact.
    """
    (x,) = relation.arguments
    t = relation.result
    one = 0 * x + 1.0
    first = draft.column("logistic", x.shape, lower=0.0, upper=1.0)
    second = draft.column("logistic", x.shape, lower=0.0, upper=1.0)
    draft.relation(ExponentialCone(-t, one, first))
    draft.relation(ExponentialCone(x - t, one, second))
    draft.row(first + second <= 1)


@bridge("log_sum_exp", gives=("exponential", "rows"))
def log_sum_exp_cones(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= log(sum_j exp(x_j))`` as ``exp(x_j - t) <= u_j`` for every j and ``sum_j u_j <= 1``.

    Takes ``log_sum_exp``, gives ``exponential`` and rows: d cones and one row for each element, with d
    new columns. Exact.
    """
    (x,) = relation.arguments
    share = draft.column("share", x.shape, 0.0, 1.0)
    inside = (x - relation.result[:, None]).ravel()
    draft.relation(ExponentialCone(inside, 0 * inside + 1.0, share.ravel()))
    draft.row(share.sum(axis=1) <= 1)
