"""Structural equations with numbers: counterfactual scores, effects, sensitivity to hidden causes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError, required

if TYPE_CHECKING:
    from pandas import DataFrame

    from forcopt.causal.model import CausalModel


Resolving = Mapping[str, Sequence[str]] | Sequence[str]


@dataclass(frozen=True, eq=False)
class Counterfactual:
    """Scores of all records as members of one fixed group.

    Attributes
    ----------
    scores : Array
        The counterfactual scores, shape ``(n,)``.
    shifts : Array
        Counterfactual minus observed score, shape ``(n,)``.
    mediators : dict[str, Array]
        The counterfactual values of the mediators; a resolving one keeps its observed values.
    baseline : dict[str, Any]
        The fixed group.

    Examples
    --------
    >>> import pandas as pd
    >>> from forcopt.causal import CausalModel
    >>> rows = [(g, x, 2.0 * x + g) for g in (0, 1) for x in (1.0, 2.0, 3.0)]
    >>> people = pd.DataFrame(rows, columns=["G", "X", "Y"])
    >>> fit = CausalModel([("G", "Y"), ("X", "Y")], ["G"], "Y").fit(people)
    >>> fit.counterfactual(people, {"G": 1}).scores.round(6).tolist()
    [3.0, 5.0, 7.0, 3.0, 5.0, 7.0]
    """

    scores: Array
    shifts: Array
    mediators: dict[str, Array] = field(repr=False)
    baseline: dict[str, Any]


@dataclass(frozen=True, eq=False)
class FittedCausalModel:
    """Equations with coefficients; made by `CausalModel.fit` and `CausalModel.with_coefficients`.

    Attributes
    ----------
    model : CausalModel
        The graph.
    levels : Mapping[str, tuple]
        The levels of each categorical attribute.
    coefficients : Mapping[str, Mapping[str, float]]
        For each equation the coefficient of each term.
    deviations : Mapping[str, float]
        The standard deviation of the errors of each equation.
    extra : Mapping[str, Mapping[str, float]]
        Multiples of other equations' right-hand sides in an equation, which `sensitivity` adds.
    accounted : frozenset[str]
        The mediators for whose latent cause `sensitivity` accounts.
    estimated : bool
        Whether the coefficients were estimated, so that latent causes may make them wrong.

    Examples
    --------
    >>> import pandas as pd
    >>> from forcopt.causal import CausalModel
    >>> rows = [(g, x, 2.0 * x + g) for g in (0, 1) for x in (1.0, 2.0, 3.0)]
    >>> people = pd.DataFrame(rows, columns=["G", "X", "Y"])
    >>> fit = CausalModel([("G", "Y"), ("X", "Y")], ["G"], "Y").fit(people)
    >>> round(fit.coefficients["Y"]["X"], 6), round(fit.coefficients["Y"]["G=1"], 6)
    (2.0, 1.0)
    """

    model: CausalModel
    levels: Mapping[str, tuple[Any, ...]]
    coefficients: Mapping[str, Mapping[str, float]]
    deviations: Mapping[str, float] = field(repr=False)
    extra: Mapping[str, Mapping[str, float]] = field(default_factory=dict, repr=False)
    accounted: frozenset[str] = field(default=frozenset(), repr=False)
    estimated: bool = field(default=False, repr=False)

    def predict(self, variable: str, values: Mapping[str, Array], n: int) -> Array:
        """The right-hand side of an equation at given values of its parents, shape ``(n,)``."""
        design = self.model.design(variable, self.levels)
        b = np.array([self.coefficients[variable][term] for term in design.terms])
        found = design.matrix(values, n) @ b
        for other, factor in self.extra.get(variable, {}).items():
            found = found + factor * self.predict(other, values, n)
        return np.asarray(found)

    # -- counterfactuals -------------------------------------------------------------------------------------

    def counterfactual(
        self,
        frame: DataFrame,
        baseline: Mapping[str, Any],
        resolving: Resolving = (),
        *,
        rho: float | Mapping[str, float] | None = None,
        as_printed: bool = False,
    ) -> Counterfactual:
        """Compute the score that each record would have as a member of the baseline group.

        Each record keeps its errors. A resolving mediator keeps its observed value.

        Parameters
        ----------
        frame : DataFrame
            The records.
        baseline : Mapping[str, Any]
            A level (or number) for each sensitive attribute.
        resolving : Mapping[str, Sequence[str]] or Sequence[str], default ()
            The resolving mediators; a mapping names for each the attributes whose influence it may keep
            (semi-resolving).
        rho : float or Mapping[str, float], optional
            The correlation of errors of mediators and outcome: see `sensitivity`.
        as_printed : bool, default False
            The published synthetic figures come from a script that forgets the outcome's error and subtracts
            the group's own effect from a sum that never held it.

        Raises
        ------
        DeclarationError
            For an unknown baseline or mediator; and for estimated equations if a latent cause leaves the
            counterfactual unidentified, see `CausalModel.unidentified`, unless `rho` is given.

        Notes
        -----
        O(n p) for p terms. In this model every counterfactual is a shift: ``y' = y + f(new) - f(old)``.

        References
        ----------
        Yang, Loftus, Stoyanovich (FORC 2021), section 2.2.
        """
        if rho is not None:
            return self.sensitivity(rho).counterfactual(frame, baseline, resolving, as_printed=as_printed)
        kept = self._resolving(resolving)
        self._check_latent(kept)
        values, _ = self.model.read(frame, self.levels)
        target = self._baseline(baseline, len(frame))
        found = self._propagate(values, target, kept, len(frame))
        outcome, n = self.model.outcome, len(frame)
        scores, mediators = found[outcome], {m: found[m] for m in self.model.mediators}
        if as_printed:
            none = {m: np.zeros(n) for m in mediators}
            own = self.predict(outcome, {**values, **none}, n)
            new = self.predict(outcome, {**found, **none, **target}, n)
            scores = np.asarray(new - own + (self.predict(outcome, {**found, **target}, n) - new))
        return Counterfactual(scores, scores - values[outcome], mediators, dict(baseline))

    def transform(
        self, frame: DataFrame, baseline: Mapping[str, Any], resolving: Resolving = ()
    ) -> DataFrame:
        """The frame with counterfactual mediators and the baseline's attributes; the outcome may be missing.

        If there is an outcome it becomes counterfactual, too. A learned ranker must be given this table, at
        training and at test time.
        """
        kept = self._resolving(resolving)
        self._check_latent(kept)
        needed = self.model.equations if self.model.outcome in frame.columns else self.model.mediators
        values, _ = self.model.read(frame, self.levels, needed)
        target = self._baseline(baseline, len(frame))
        return frame.assign(**self._propagate(values, target, kept, len(frame), needed), **target)

    def invariance(self, frame: DataFrame, resolving: Resolving = ()) -> float:
        """By how much a score changes at most when a record is replaced by its counterfactual record.

        Definition 1 of the paper asks for 0: every record is moved to every group, and its baseline score is
        computed anew. With known equations it is 0 for resolving and non-resolving mediators, not always for
        semi-resolving ones whose attributes interact.

        Returns
        -------
        float
            The largest change over records, groups moved to, and baselines. Categorical attributes only.
        """
        worst = 0.0
        cells = [dict(zip(self.model.sensitive, cell, strict=True)) for cell in self._cells()]
        for baseline in cells:
            own = self.counterfactual(frame, baseline, resolving).scores
            for cell in cells:
                moved = self.transform(frame, cell, resolving)
                again = self.counterfactual(moved, baseline, resolving).scores
                worst = max(worst, float(np.abs(again - own).max()))
        return worst

    def effects(self, baseline: Mapping[str, Any]) -> DataFrame:
        """The effect of each group on the score, against the baseline group: total, direct, by mediator.

        Returns
        -------
        DataFrame
            One row for each combination of levels; columns ``total``, ``direct`` and one for each mediator:
            the part of the attributes' direct effect on this mediator that is carried on to the outcome.
            Numeric attributes stay at the baseline.
        """
        pd = required("pandas", "effects")

        cells = self._cells(baseline)
        n = len(cells)
        values = {a: np.array([cell[i] for cell in cells]) for i, a in enumerate(self.model.sensitive)}
        target = self._baseline(baseline, n)
        zero = {v: np.zeros(n) for v in self.model.equations}
        direct = {
            v: self.predict(v, {**zero, **values}, n) - self.predict(v, {**zero, **target}, n)
            for v in self.model.equations
        }
        carried = self._carried()
        parts = {m: direct[m] * carried[m] for m in self.model.mediators}
        own = direct[self.model.outcome]
        index = pd.MultiIndex.from_tuples(cells, names=self.model.sensitive)
        return pd.DataFrame({"total": own + sum(parts.values()), "direct": own, **parts}, index=index)

    def sensitivity(self, rho: float | Mapping[str, float]) -> FittedCausalModel:
        """The equations that fit the data as well, if errors of mediators and outcome are correlated.

        A hidden cause of mediator X and outcome Y makes least squares attribute ``delta * (X - f_X)`` to X,
        ``delta = rho / sqrt(1 - rho**2) * s_Y / s_X``. Non-resolving scores do not depend on it; the
        resolving shift moves by ``delta * (f_X(a') - f_X(a))``.

        Parameters
        ----------
        rho : float or Mapping[str, float]
            The correlation of the errors of each mediator with the errors of the outcome; a number for all
            mediators that cause the outcome directly. The squares must sum to less than 1.

        Raises
        ------
        DeclarationError
            For a correlation outside (-1, 1), a mediator that does not cause the outcome directly, or
            unknown deviations of errors.
        """
        outcome = self.model.outcome
        direct = [m for m in self.model.mediators if self.model.dag.has_edge(m, outcome)]
        given = dict(rho) if isinstance(rho, Mapping) else dict.fromkeys(direct, float(rho))
        for m, r in given.items():
            if m not in direct:
                raise DeclarationError(f"rho: {m!r} is no mediator that causes {outcome!r} directly")
            if not abs(r) < 1:
                raise DeclarationError(f"rho is {r:g} for {m!r}; it must be between -1 and 1")
            if not {m, outcome} <= set(self.deviations):
                raise DeclarationError(f"rho: deviations of errors of {m!r} and {outcome!r} must be known")
        left = 1.0 - sum(r * r for r in given.values())
        if left <= 0:
            raise DeclarationError("rho: the squares of the correlations must sum to less than 1")
        own, extra = dict(self.coefficients[outcome]), dict(self.extra.get(outcome, {}))
        for m, r in given.items():
            if r == 0:
                continue
            if self.deviations[m] <= 0:
                raise DeclarationError(f"rho: {m!r}'s equation fits exactly; its errors correlate with none")
            delta = r / np.sqrt(left) * self.deviations[outcome] / self.deviations[m]
            own[m] -= delta
            extra[m] = extra.get(m, 0.0) + delta
        # deviations still describe the observed regressions, which a further call would need
        return replace(
            self,
            coefficients={**self.coefficients, outcome: own},
            extra={**self.extra, outcome: extra},
            accounted=self.accounted | set(given),
        )

    # -- parts -----------------------------------------------------------------------------------------------

    def _propagate(
        self,
        values: Mapping[str, Array],
        target: Mapping[str, Array],
        kept: Mapping[str, frozenset[str]],
        n: int,
        needed: Sequence[str] | None = None,
    ) -> dict[str, Array]:
        """The variables after the attributes are set to the target, where no mediator resolves them."""
        memo: dict[tuple[str, frozenset[str]], Array] = {}

        def value(v: str, moved: frozenset[str]) -> Array:
            """A variable after the attributes `moved` are set to the target."""
            if v in self.model.sensitive:
                return target[v] if v in moved else values[v]
            moved = moved - kept.get(v, frozenset())
            if (v, moved) not in memo:
                new = {p: value(p, moved) for p in self._parents(v)}
                memo[v, moved] = (
                    values[v] + self.predict(v, new, n) - self.predict(v, values, n) if moved else values[v]
                )
            return memo[v, moved]

        everything = frozenset(self.model.sensitive)
        return {v: value(v, everything) for v in (self.model.equations if needed is None else needed)}

    def _parents(self, variable: str) -> list[str]:
        found = [p for p in self.model.dag.predecessors(variable) if p not in self.model.latent]
        for other in self.extra.get(variable, {}):
            found += self._parents(other)
        return list(dict.fromkeys(found))

    def _carried(self) -> dict[str, float]:
        """The effect of 1 more of each variable on the outcome, along all paths."""
        one = {v: np.zeros(1) for v in self.model.equations}
        any_cell = {
            a: np.array([self.levels[a][0] if a in self.levels else 0.0]) for a in self.model.sensitive
        }

        def slope(v: str, parent: str) -> float:
            up = {**one, **any_cell, parent: np.ones(1)}
            return float((self.predict(v, up, 1) - self.predict(v, {**one, **any_cell}, 1))[0])

        found = {self.model.outcome: 1.0}
        for v in reversed(self.model.equations[:-1]):
            found[v] = sum(
                slope(w, v) * found[w] for w in self.model.equations if w in found and v in self._parents(w)
            )
        return found

    def _cells(self, baseline: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        for a in self.model.knots:
            if baseline is None or a not in baseline:
                raise DeclarationError(f"{a!r} is numeric, so that there is no list of all groups")
        fixed = baseline or {}
        return list(product(*(self.levels.get(a) or (fixed[a],) for a in self.model.sensitive)))

    def _baseline(self, baseline: Mapping[str, Any], n: int) -> dict[str, Array]:
        for a in baseline:
            if a not in self.model.sensitive:
                raise DeclarationError(f"baseline: {a!r} is not sensitive")
        found = {}
        for a in self.model.sensitive:
            if a not in baseline:
                raise DeclarationError(f"baseline: the attribute {a!r} is missing")
            if a in self.levels and baseline[a] not in self.levels[a]:
                raise DeclarationError(
                    f"baseline.{a} is {baseline[a]!r}; levels are {', '.join(map(repr, self.levels[a]))}"
                )
            found[a] = np.full(n, baseline[a], dtype=None if a in self.levels else float)
        return found

    def _resolving(self, resolving: Resolving) -> dict[str, frozenset[str]]:
        import networkx as nx

        if isinstance(resolving, str):
            resolving = (resolving,)
        everything = frozenset(self.model.sensitive)
        given = (
            {m: frozenset([a] if isinstance(a, str) else a) for m, a in resolving.items()}
            if isinstance(resolving, Mapping)
            else dict.fromkeys(resolving, everything)
        )
        for m, attributes in given.items():
            if m not in self.model.mediators:
                raise DeclarationError(
                    f"resolving: {m!r} is no mediator; these are {', '.join(self.model.mediators) or 'none'}"
                )
            for a in attributes - everything:
                raise DeclarationError(f"resolving.{m}: {a!r} is not sensitive")
            if not attributes & nx.ancestors(self.model.dag, m):
                warnings.warn(
                    f"resolving: {m} does not depend on {', '.join(sorted(attributes)) or 'any attribute'}, "
                    "so that the flag does nothing",
                    stacklevel=3,
                )
        return {m: a for m, a in given.items() if a}

    def _check_latent(self, kept: Mapping[str, frozenset[str]]) -> None:
        reason = self.model.unidentified(kept, self.accounted) if self.estimated else ""
        if reason:
            raise DeclarationError(
                f"{reason}, so that its effect is not identified by these equations; give rho, the "
                "correlation of a mediator's errors with the outcome's, if both share the cause directly"
            )
