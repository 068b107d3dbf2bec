"""The capabilities of a backend."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Capabilities"]


@dataclass(frozen=True)
class Capabilities:
    """The constraints and objectives that a backend takes; the compiler rewrites others, or refuses.

    Attributes
    ----------
    kinds : frozenset[str]
        Of ``rows`` (linear rows; every backend), ``integer``, ``quadratic`` (a convex quadratic objective),
        ``second_order``, ``exponential``, ``power_cone``, ``semidefinite_cone``, ``indicator``,
        ``schedule`` (intervals), ``nonconvex`` (products of columns), ``lazy``, ``cut`` and ``heuristic``
        (callbacks; ignored elsewhere), and any other kind of relation that it takes as it is.
    conflicts : tuple[frozenset[str], ...], optional
        Sets of kinds that it cannot take together.
    only_integer : bool, default False
        Every column must be integer and bounded.
    smallest : float, default 0.0
        Matrix entries up to this size are read as zero, unless they are scaled; see
        `forcopt.compile.scaling`.
    mccormick : int, default 0
        Above 0, products are relaxed over this many pieces of the range of their first factor.

    Examples
    --------
    >>> from forcopt.compile import Capabilities
    >>> Capabilities(frozenset({"rows", "integer"})).kinds == {"rows", "integer"}
    True
    """

    kinds: frozenset[str]
    conflicts: tuple[frozenset[str], ...] = ()
    only_integer: bool = False
    smallest: float = 0.0
    mccormick: int = 0

    def conflict(self, used: frozenset[str]) -> frozenset[str] | None:
        """The first set of used kinds that it cannot take together, if any."""
        return next((pair for pair in self.conflicts if pair <= used), None)

    def describe(self) -> str:
        """Name the classes of models that the backend takes, such as ``LP, MILP, QP``.

        Examples
        --------
        >>> Capabilities(frozenset({"rows", "integer", "quadratic"})).describe()
        'LP, MILP, QP, MIQP'
        """
        if self.only_integer:
            classes = ["pure integer"]
        else:
            classes = ["LP"]
            pairs = [
                ("quadratic", "QP"),
                ("second_order", "SOCP"),
                ("exponential", "EXP"),
                ("power_cone", "POW"),
                ("semidefinite_cone", "SDP"),
            ]
            mixed = [("", "MILP"), ("quadratic", "MIQP"), ("second_order", "MISOCP")]
            if "integer" in self.kinds:
                classes.append(mixed[0][1])
            classes += [label for kind, label in pairs if kind in self.kinds]
            if "integer" in self.kinds:
                classes += [
                    label
                    for kind, label in mixed[1:]
                    if kind in self.kinds and self.conflict(frozenset({"integer", kind})) is None
                ]
        return ", ".join(
            classes + [kind for kind in ("nonconvex", "lazy", "cut", "heuristic") if kind in self.kinds]
        )
