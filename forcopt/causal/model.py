"""The graph of a structural causal model, the form and design of its equations, and their estimation."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from pydantic import Field, field_validator, model_validator

from forcopt.arrays import Array, refuse_missing
from forcopt.causal.fitted import FittedCausalModel
from forcopt.declaration import Declared
from forcopt.errors import DeclarationError, require

if TYPE_CHECKING:
    import networkx as nx
    from pandas import DataFrame


INTERCEPT = "1"


class Design:
    """The terms of one equation, and their values at given parents.

    A categorical attribute has a term ``G=b`` for each level but the first, a numeric one the terms ``age``
    and ``age>45`` for each knot (the excess over it, so that the effect is piecewise linear). Interactions
    are products of terms of different attributes, ``G=b:R=w``. A mediator has its name as term.

    Parameters
    ----------
    attributes : sequence of str
        The sensitive parents.
    mediators : sequence of str
        The other observed parents.
    levels : Mapping[str, tuple]
        Of the categorical attributes.
    knots : Mapping[str, tuple[float, ...]]
        Of the numeric attributes.
    interactions : {"pairwise", "none", "saturated"}
        Which products there are.
    """

    def __init__(
        self,
        attributes: Sequence[str],
        mediators: Sequence[str],
        levels: Mapping[str, tuple[Any, ...]],
        knots: Mapping[str, tuple[float, ...]],
        interactions: str,
    ) -> None:
        self.attributes, self.mediators = tuple(attributes), tuple(mediators)
        self.levels, self.knots = levels, knots
        order = {"none": 1, "pairwise": 2, "saturated": len(self.attributes)}[interactions]
        sizes = range(1, min(order, len(self.attributes)) + 1)
        self._subsets = [subset for size in sizes for subset in combinations(self.attributes, size)]
        self.terms = [INTERCEPT, *self.mediators]
        for subset in self._subsets:
            self.terms += map(":".join, product(*map(self._names, subset)))

    def _names(self, attribute: str) -> list[str]:
        if attribute in self.knots:
            return [attribute, *(f"{attribute}>{knot:g}" for knot in self.knots[attribute])]
        return [f"{attribute}={level}" for level in self.levels[attribute][1:]]

    def block(self, attribute: str, values: Array) -> Array:
        """The terms of one attribute at its values, shape ``(n, terms)``."""
        if attribute in self.knots:
            x = np.asarray(values, dtype=float)
            return np.column_stack([x, *(np.maximum(x - knot, 0.0) for knot in self.knots[attribute])])
        return np.column_stack(
            [np.zeros((len(values), 0)), *(np.asarray(values) == v for v in self.levels[attribute][1:])]
        ).astype(float)

    def matrix(self, values: Mapping[str, Array], n: int) -> Array:
        """The values of all terms at given parents, shape ``(n, len(terms))``."""
        blocks = {a: self.block(a, values[a]) for a in self.attributes}
        parts = [np.ones((n, 1)), *(np.asarray(values[m], dtype=float)[:, None] for m in self.mediators)]
        for subset in self._subsets:
            product = np.ones((n, 1))
            for attribute in subset:
                product = (product[:, :, None] * blocks[attribute][:, None, :]).reshape(n, -1)
            parts.append(product)
        return np.hstack(parts)


DEPENDENT = 1e-10
"""A column of length 1 that is nearer to the span of the others, relative to the longest, depends on them."""

LEAST = 1e-300
"""Stands in for a unit of 0, by which a column or an outcome is divided."""


class CausalModel(Declared):
    """A structural causal model with linear equations and independent errors.

    Each variable that is neither sensitive nor latent has an equation ``V = f_V(parents) + error``. It is
    linear in mediators; sensitive attributes enter by levels (or piecewise linearly, if they have knots) and
    by products of different attributes.

    Attributes
    ----------
    graph : tuple[tuple[str, str], ...]
        The arrows (cause, effect); a networkx DiGraph is taken, too.
    sensitive : tuple[str, ...]
        The sensitive attributes; they have no causes in the graph.
    outcome : str
        The score.
    interactions : {"pairwise", "none", "saturated"}, default "pairwise"
        The products of attributes in each equation: of two, none, or of any number.
    latent : tuple[str, ...]
        Causes that nobody observed, such as ``U`` with ``U -> X`` and ``U -> Y``.
    knots : Mapping[str, tuple[float, ...]]
        The numeric sensitive attributes, each with the values at which its slope may change.

    Raises
    ------
    DeclarationError
        For a cycle (it is shown), an outcome that is missing or does not descend from a sensitive attribute,
        or a sensitive attribute with a cause.

    References
    ----------
    Yang, Loftus, Stoyanovich (FORC 2021), equation (1) and Figure 2.

    Examples
    --------
    >>> import pandas as pd
    >>> m1 = CausalModel([("G", "X"), ("R", "X"), ("G", "Y"), ("R", "Y"), ("X", "Y")], ["G", "R"], "Y")
    >>> fit = m1.with_coefficients(
    ...     {"X": {"1": 60, "G=1": -10}, "Y": {"1": 20, "X": 0.8, "G=1": -5, "R=1": -3, "G=1:R=1": -2}},
    ...     levels={"G": (0, 1), "R": (0, 1)},
    ... )
    >>> people = pd.DataFrame({"G": [0, 1], "R": [0, 1], "X": [64, 56], "Y": [72.2, 54.8]})
    >>> fit.counterfactual(people, {"G": 1, "R": 1}).scores.round(6).tolist()
    [54.2, 54.8]
    >>> fit.counterfactual(people, {"G": 1, "R": 1}, resolving=["X"]).scores.round(6).tolist()
    [62.2, 54.8]
    """

    graph: tuple[tuple[str, str], ...]
    sensitive: tuple[str, ...] = Field(min_length=1)
    outcome: str
    interactions: Literal["pairwise", "none", "saturated"] = "pairwise"
    latent: tuple[str, ...] = ()
    knots: Mapping[str, tuple[float, ...]] = Field(default_factory=dict)

    @field_validator("graph", mode="before")
    @classmethod
    def _arrows(cls, graph: Any) -> Any:
        return tuple((str(a), str(b)) for a, b in getattr(graph, "edges", graph))

    @field_validator("sensitive", "latent", mode="before")
    @classmethod
    def _several(cls, names: Any) -> Any:
        return (names,) if isinstance(names, str) else tuple(names)

    @model_validator(mode="after")
    def _is_model(self) -> Self:
        import networkx as nx

        g = self.dag
        if not nx.is_directed_acyclic_graph(g):
            cycle = [edge[0] for edge in nx.find_cycle(g)]
            raise DeclarationError(f"graph has a cycle {' -> '.join([*cycle, cycle[0]])}; it must have none")
        for name in (*self.sensitive, *self.latent, self.outcome):
            if name not in g:
                raise DeclarationError(f"{name!r} is no node of the graph; these are {', '.join(sorted(g))}")
        for kind, names in (("sensitive", self.sensitive), ("latent", self.latent)):
            for name in names:
                if g.in_degree(name):
                    cause = next(iter(g.predecessors(name)))
                    raise DeclarationError(f"{kind}: {name!r} has the cause {cause!r}; it must have none")
        both = set(self.sensitive) & set(self.latent)
        if both:
            raise DeclarationError(f"latent: {min(both)!r} is sensitive, too")
        rule = f"descend from a sensitive attribute, but no path leads there from {', '.join(self.sensitive)}"
        descends = any(self.outcome in nx.descendants(g, a) for a in self.sensitive)
        require(descends, "outcome", self.outcome, rule)
        for name in self.knots:
            if name not in self.sensitive:
                raise DeclarationError(f"knots: {name!r} is not sensitive")
        return self

    @cached_property
    def dag(self) -> nx.DiGraph:
        """The graph."""
        import networkx as nx

        return nx.DiGraph(list(self.graph))

    @cached_property
    def equations(self) -> tuple[str, ...]:
        """The variables with an equation that lead to the outcome, causes first."""
        import networkx as nx

        leading = nx.ancestors(self.dag, self.outcome) | {self.outcome}
        leading -= {*self.sensitive, *self.latent}
        return tuple(v for v in nx.lexicographical_topological_sort(self.dag) if v in leading)

    @property
    def mediators(self) -> tuple[str, ...]:
        """The variables with an equation but the outcome."""
        return tuple(v for v in self.equations if v != self.outcome)

    def design(self, variable: str, levels: Mapping[str, tuple[Any, ...]]) -> Design:
        """The terms of the equation of a variable."""
        parents = sorted(self.dag.predecessors(variable))
        return Design(
            [a for a in self.sensitive if a in parents],
            [p for p in parents if p not in self.sensitive and p not in self.latent],
            levels,
            self.knots,
            self.interactions,
        )

    def unidentified(self, kept: Collection[str], accounted: Collection[str] = ()) -> str:
        """Why the fitted equations do not identify the counterfactual, if they do not.

        Parameters
        ----------
        kept : Collection[str]
            The resolving mediators.
        accounted : Collection[str], default ()
            Mediators whose errors have a known correlation with the outcome's.

        Returns
        -------
        str
            The mediator and the path; empty if the counterfactual is identified.

        Notes
        -----
        Least squares find the equation of V if no parent of V descends from a latent cause of V. A parent P
        that does, and is not resolving, is replaced by its own parents, whose latent causes then count too:
        the composition of both regressions is the regression of V on what is left, if that is among the
        parents of V (Frisch, Waugh and Lovell). A resolving one cannot be replaced. This is sufficient;
        effects that only the front door or an instrument identifies are refused.
        """
        import networkx as nx

        for v in self.equations:
            reason, own = "", [p for p in self.dag.predecessors(v) if p not in self.latent]
            left, latents = list(own), [u for u in self.latent if self.dag.has_edge(u, v)]
            while found := next(
                (
                    (p, u)
                    for p in left
                    for u in latents
                    if nx.has_path(self.dag, u, p) and not (v == self.outcome and p in accounted)
                ),
                None,
            ):
                p, u = found
                here, there = nx.shortest_path(self.dag, u, p), nx.shortest_path(self.dag, u, v)
                path = f"{' <- '.join(reversed(here))} -> {' -> '.join(there[1:])}"
                if p in kept:
                    with_outcome = "the outcome" if v == self.outcome else repr(v)
                    return f"the resolving mediator {p!r} shares a latent cause with {with_outcome} ({path})"
                left.remove(p)
                left += [q for q in self.dag.predecessors(p) if q not in (*self.latent, *left)]
                latents += [w for w in self.latent if self.dag.has_edge(w, p) and w not in latents]
                reason = f"{p!r} shares a latent cause with {v!r} ({path})"
            if missing := [q for q in left if q not in own]:
                return f"{reason}, of which {missing[0]!r} is no direct cause"
        return ""

    # -- numbers ---------------------------------------------------------------------------------------------

    def with_coefficients(
        self,
        coefficients: Mapping[str, Mapping[str, float]],
        levels: Mapping[str, Sequence[Any]],
        deviations: Mapping[str, float] | None = None,
    ) -> FittedCausalModel:
        """Give the equations known numbers.

        Parameters
        ----------
        coefficients : Mapping[str, Mapping[str, float]]
            For each equation the coefficient of each term; ``"1"`` is the intercept. Terms left out are 0.
        levels : Mapping[str, Sequence]
            The levels of each categorical attribute.
        deviations : Mapping[str, float], optional
            The standard deviations of the errors, which only `sensitivity` needs.

        Raises
        ------
        DeclarationError
            For an equation or a term that does not exist, or an attribute without levels.
        """
        known = {a: tuple(v) for a, v in levels.items()}
        for a in self.sensitive:
            if a not in self.knots and a not in known:
                raise DeclarationError(f"levels: the levels of {a!r} are missing")
        full = {}
        for variable in coefficients:
            if variable not in self.equations:
                raise DeclarationError(
                    f"coefficients: {variable!r} has no equation; there are {', '.join(self.equations)}"
                )
        for variable in self.equations:
            given, terms = coefficients.get(variable, {}), self.design(variable, known).terms
            for term in given:
                if term not in terms:
                    raise DeclarationError(
                        f"coefficients.{variable}: there is no term {term!r}; there are {', '.join(terms)}"
                    )
            full[variable] = {term: float(given.get(term, 0.0)) for term in terms}
        return FittedCausalModel(self, known, full, dict(deviations or {}))

    def fit(self, frame: DataFrame) -> FittedCausalModel:
        """Estimate all equations by least squares.

        Parameters
        ----------
        frame : DataFrame
            One row for each record, with a column for every observed variable.
        Raises
        ------
        DeclarationError
            For a missing column, a missing value, a binary outcome, an empty cell of levels, or a coefficient
            that the data do not determine; it is named.

        Notes
        -----
        O(n p**2) for p terms by QR.
        """
        values, levels = self.read(frame)
        n = len(frame)
        if not n:
            raise DeclarationError("the frame has no rows; there must be records to fit the equations to")
        if len(np.unique(values[self.outcome])) <= 2:
            raise DeclarationError(
                f"the outcome {self.outcome!r} has at most two values; a residual of a linear equation means "
                "nothing for a binary outcome"
            )
        coefficients, deviations = {}, {}
        for variable in self.equations:
            design = self.design(variable, levels)
            matrix = design.matrix(values, n)
            self._check_identified(variable, design, matrix, values)
            found = np.linalg.lstsq(matrix, values[variable], rcond=None)[0]
            rest = values[variable] - matrix @ found
            coefficients[variable] = dict(zip(design.terms, found.tolist(), strict=True))
            deviations[variable] = float(np.sqrt(rest @ rest / max(n - matrix.shape[1], 1)))
        return FittedCausalModel(self, levels, coefficients, deviations, estimated=True)

    def read(
        self,
        frame: DataFrame,
        levels: Mapping[str, tuple[Any, ...]] | None = None,
        needed: Sequence[str] | None = None,
    ) -> tuple[dict[str, Array], dict[str, tuple[Any, ...]]]:
        """Read the observed columns of a frame, and the levels of the categorical attributes.

        Raises
        ------
        DeclarationError
            For a missing column or value, a level that is not known, or numbers that are none.
        """
        values: dict[str, Array] = {}
        found: dict[str, tuple[Any, ...]] = {}
        for name in (*self.sensitive, *(self.equations if needed is None else needed)):
            if name not in frame.columns:
                raise DeclarationError(f"no column {name!r}; the frame has {', '.join(map(str, frame))}")
            refuse_missing(frame, name)
            column = frame[name]
            if name in self.sensitive and name not in self.knots:
                given = column.to_numpy()
                values[name] = given
                if levels is None:
                    found[name] = tuple(sorted(set(given.tolist()), key=lambda v: (str(type(v)), v)))
                    continue
                found[name] = levels[name]
                strange = [v for v in dict.fromkeys(given.tolist()) if v not in levels[name]]
                if strange:
                    raise DeclarationError(
                        f"column {name!r} has the level {strange[0]!r}; known are "
                        f"{', '.join(map(repr, levels[name]))}"
                    )
            else:
                try:
                    values[name] = column.to_numpy(dtype=float)
                except (TypeError, ValueError):
                    raise DeclarationError(f"column {name!r} must be numbers") from None
                if not np.isfinite(values[name]).all():
                    raise DeclarationError(f"column {name!r} must be finite numbers")
        return values, found

    def _check_identified(
        self, variable: str, design: Design, matrix: Array, values: Mapping[str, Array]
    ) -> None:
        from scipy.linalg import qr

        n, p = matrix.shape
        if n < p:
            raise DeclarationError(f"equation {variable}: {n} records cannot determine {p} coefficients")
        scale = np.sqrt((matrix**2).sum(axis=0))
        r, order = qr(matrix / np.where(scale > 0, scale, 1.0), mode="r", pivoting=True)
        weak = np.abs(np.diag(r[:p])) <= DEPENDENT * max(abs(r[0, 0]), LEAST)
        if not weak.any():
            return
        first = design.terms[int(order[np.argmax(weak)])]
        empty = [t for t, s in zip(design.terms, scale, strict=True) if s == 0]
        if empty:
            raise DeclarationError(
                f"equation {variable}: no record has {empty[0].replace(':', ', ')}, so that the coefficient "
                f"of {empty[0]!r} is not determined"
            )
        cells = [a for a in design.attributes if a not in self.knots]
        seen = set(zip(*(values[a].tolist() for a in cells), strict=True)) if cells else set()
        missing = [c for c in product(*(design.levels[a] for a in cells)) if c not in seen]
        where = ""
        if missing:
            where = "; no record has " + ", ".join(f"{a}={v}" for a, v in zip(cells, missing[0], strict=True))
        raise DeclarationError(
            f"equation {variable}: the coefficient of {first!r} is not determined, since its term is a "
            f"combination of the others{where}"
        )
