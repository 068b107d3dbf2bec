"""A lottery over cohorts, and how marginals become one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array, FrozenArrays, Seed
from forcopt.errors import DeclarationError, required
from forcopt.language.model import Model
from forcopt.models.leximax_cohort.panel import gini
from forcopt.models.leximax_cohort.tolerances import CLOSE, WHOLE
from forcopt.notebook import picture_html, table_html
from forcopt.numeric import decompose, dependent_rounding, laminar_lottery, project_box
from forcopt.problem.drawing import Drawn, titled, whole_ticks

if TYPE_CHECKING:
    from pandas import DataFrame

    from forcopt.models.leximax_cohort.problem import LeximaxCohort, Quotas

_MOST_LISTED = 40
"""How many candidates `str` lists."""


@dataclass(frozen=True, eq=False)
class CohortLottery(FrozenArrays, Drawn):
    """Chooses a cohort by lot; a certain cohort if all probabilities are 0 or 1.

    Attributes
    ----------
    problem : LeximaxCohort
        For which.
    marginals : Array
        The probability of each candidate, shape ``(n,)``.
    cohorts, weights : Array, optional
        A lottery with these marginals, if the method found one; rows of 0 and 1, and their probabilities.

    Examples
    --------
    >>> from forcopt.models import LeximaxCohort
    >>> p = LeximaxCohort(utilities=[[1, 0], [0, 1], [0.5, 0.5]], size=1)
    >>> d = p.solve().decision
    >>> d.utilities.round(6).tolist()
    [0.5, 0.5]
    >>> len(d.sample(seed=1))
    1
    """

    problem: LeximaxCohort = field(repr=False)
    marginals: Array
    cohorts: Array | None = field(default=None, repr=False)
    weights: Array | None = field(default=None, repr=False)

    @property
    def utilities(self) -> Array:
        """The (expected) utility of each group, shape ``(m,)``."""
        return np.asarray(self.problem.utilities.T @ self.marginals)

    @property
    def levels(self) -> Array:
        """The utilities, smallest first."""
        return np.sort(self.utilities)

    @property
    def cohort(self) -> tuple[int, ...]:
        """The positions of the members, if there is no chance in it.

        Raises
        ------
        DeclarationError
            If some probability is neither 0 nor 1.
        """
        if np.abs(self.marginals - np.round(self.marginals)).max() > WHOLE:
            raise DeclarationError("the members are drawn by lot: use sample() or distribution()")
        return tuple(np.flatnonzero(self.marginals > 0.5).tolist())

    def _repr_html_(self) -> str:
        rows = [(int(i), f"{self.marginals[i]:.4f}") for i in np.argsort(self.marginals, kind="stable")]
        chances = table_html("chances of the candidates, least first", ("candidate", "probability"), rows)
        return picture_html(self.plot()) + chances

    def sample(self, seed: Seed = None) -> Array:
        """Draw a cohort of exactly the size, in which each candidate is with its probability.

        Without quotas by dependent rounding (Srinivasan, 2001), which makes memberships negatively
        correlated; with quotas from `distribution`.

        Parameters
        ----------
        seed : int or numpy.random.Generator, optional
            An int or a generator; the same int gives the same cohort.

        Returns
        -------
        Array
            The positions of the members, rising.

        Raises
        ------
        DeclarationError
            For a size that is no whole number.
        """
        rng = np.random.default_rng(seed)
        self._check_whole("dependent rounding")
        if not self.problem.quotas and not self.problem.household_rows.shape[0]:
            return np.flatnonzero(dependent_rounding(exact_marginals(self.marginals, self.problem.size), rng))
        cohorts, weights = self.distribution()
        return np.flatnonzero(cohorts[rng.choice(len(weights), p=weights)])

    def sample_independently(self, seed: Seed = None) -> Array:
        """Draw each candidate by itself: a baseline, whose size is only right on average.

        A group with utility u then gets less than ``u - d`` with probability at most
        ``exp(-2 d**2 / sum_i v_i**2)`` (Hoeffding; Henzinger et al., 2022, Lemma 15).
        """
        return np.flatnonzero(np.random.default_rng(seed).random(len(self.marginals)) < self.marginals)

    def distribution(self) -> tuple[Array, Array]:
        """A lottery over few cohorts with these marginals, all of which meet size and quotas.

        The one that the method found; else one in the manner of Carathéodory: take the cohort that shares all
        certain members and tight quotas with the marginals, with the greatest weight that leaves a point of
        the polytope, and go on with that. Every step settles a candidate or a quota, so that there are at
        most ``n + quotas + 1`` cohorts.

        Returns
        -------
        tuple[Array, Array]
            Rows of 0 and 1, one for each cohort, and their probabilities.

        Raises
        ------
        DeclarationError
            For a size that is no whole number, or if the marginals are known to come from no lottery.
        """
        if self.cohorts is not None and self.weights is not None:
            return self.cohorts, self.weights
        self._check_whole("a lottery over cohorts")
        p = self.problem
        return cohort_lottery(self.marginals, round(p.size), p.classes, p.household_rows)

    @property
    def entropy(self) -> float:
        """Of the lottery over cohorts, in nats; no lottery has more than that of ``objective="uniform"``."""
        cohorts, weights = self.distribution()
        _, same = np.unique(cohorts, axis=0, return_inverse=True)
        chances = np.bincount(same.reshape(-1), weights)
        return float(-(chances * np.log(chances, where=chances > 0, out=np.zeros(len(chances)))).sum())

    @property
    def smallest(self) -> float:
        """The smallest probability of a candidate who is not forbidden."""
        _, upper = self.problem.bounds
        return float(self.marginals[upper > 0].min(initial=1.0))

    @property
    def gini(self) -> float:
        """The Gini coefficient of the probabilities of the candidates who are not forbidden."""
        _, upper = self.problem.bounds
        return gini(self.marginals[upper > 0])

    def table(self) -> DataFrame:
        """The probability of each candidate, with the features that have quotas; indexed by name."""
        pd = required("pandas", "a table of candidates")

        columns = {"probability": self.marginals, **self.problem.features}
        return pd.DataFrame(columns, index=list(self.problem.names))

    def _check_whole(self, subject: str) -> None:
        if not self.problem.is_whole:
            raise DeclarationError(f"size is {self.problem.size:g}; {subject} needs a whole number")

    def __repr__(self) -> str:
        x = self.marginals
        certain, drawn = np.flatnonzero(x > 1 - WHOLE), np.flatnonzero((x > WHOLE) & (x < 1 - WHOLE))
        text = f"<cohort of {self.problem.size:g} among {len(x)}: {len(certain)} certain"
        if drawn.size:
            text += f", {len(drawn)} by lot"
        return text + f"; smallest utility {self.utilities.min():.6g}>"

    def __str__(self) -> str:
        named = [(i, p) for i, p in enumerate(self.marginals.tolist()) if p > WHOLE]
        lines = [f"{'candidate':>9}  probability", *(f"{i:>9}  {p:.4f}" for i, p in named[:_MOST_LISTED])]
        if len(named) > _MOST_LISTED:
            lines.append(f"and {len(named) - _MOST_LISTED} more")
        return "\n".join(lines)

    _figure_size = (6.0, 3.6)

    def _draw(self, axes: Any) -> None:
        """Draw the groups' utilities from the smallest up, above the utilities of an equal chance for all."""
        problem = self.problem
        even = np.full(len(self.marginals), problem.size / len(self.marginals))
        ranks = np.arange(1, len(self.utilities) + 1)
        axes.step(ranks, np.sort(problem.utilities.T @ even), where="mid", color="0.6", label="equal chances")
        axes.step(ranks, self.levels, where="mid", color="#0072B2", linewidth=2, label="leximax")
        axes.set(xlabel="group, worst first", ylabel="expected utility", ylim=(0, None))
        if np.array_equal(problem.utilities, np.eye(len(ranks))):
            axes.set(xlabel="candidate, least likely first", ylabel="probability")
        worst = (problem.utilities.T @ even).min()
        titled(axes, f"The worst off expects {self.levels[0]:.3g}, by equal chances {worst:.3g}")
        whole_ticks(axes.xaxis)
        axes.legend(frameon=False)


def exact_marginals(marginals: Array, size: float) -> Array:
    """Remove solver tolerances: the nearest probabilities with exactly the sum `size`.

    Parameters
    ----------
    marginals : Array
        In [0, 1] with a sum of about `size`; shape ``(n,)``.
    size : float
        A whole number.

    Returns
    -------
    Array
        Shape ``(n,)``. Entries within 1e-7 of 0 or 1 are 0 or 1, if that leaves the sum possible.
    """
    x = np.clip(marginals, 0.0, 1.0)
    low, high = np.where(x > 1 - CLOSE, 1.0, 0.0), np.where(x < CLOSE, 0.0, 1.0)
    if not low.sum() <= size <= high.sum():
        low, high = np.zeros(len(x)), np.ones(len(x))
    return project_box(x, low, high, size)


def cohort_lottery(
    marginals: Array, size: int, classes: Quotas, households: sp.csr_array, parts: int | None = None
) -> tuple[Array, Array]:
    """Write marginals as a lottery over cohorts that meet the quotas.

    Parameters
    ----------
    marginals : Array
        In [0, 1], with a sum of about `size`; shape ``(n,)``.
    size : int
        Of the cohorts.
    classes : Quotas
        The quotas; may be none.
    households : csr_array
        Rows of candidates of whom at most one is chosen; may be none.
    parts : int, optional
        Give probabilities that are multiples of ``1 / parts``. The marginals are rounded to such multiples,
        each up or down; that is possible if the rows are totally unimodular.

    Returns
    -------
    cohorts : Array
        Rows of 0 and 1, shape ``(t, n)``: at most n + 1 without quotas, and n + 2 quotas + 1 with them.
    weights : Array
        Their probabilities, shape ``(t,)``.

    Raises
    ------
    DeclarationError
        If the marginals are the mean of no lottery over cohorts that meet the quotas.

    Notes
    -----
    Without quotas one systematic draw gives the lottery. With quotas the face of the marginals' polytope
    gives a cohort at a time (`forcopt.numeric.decompose`), by an integer program.
    """
    x = exact_marginals(marginals, size)
    if not classes.names and not households.shape[0] and parts is None:
        lottery = laminar_lottery(x)
        return lottery.members, lottery.weights

    rows = np.vstack([classes.members, households.toarray()])
    lower = np.append(classes.least, np.zeros(households.shape[0]))
    upper = np.append(classes.most, np.ones(households.shape[0]))

    def cohort(
        weights: Array, low: Array, high: Array, least: Array, most: Array, count: float = size
    ) -> Array | None:
        model = Model("face")
        chosen = model.variable("chosen", len(x), lower=low, upper=high, binary=True)
        model.subject_to(chosen.sum() == count, (chosen @ rows.T).between(least, most))
        model.maximize(chosen @ weights)
        result = model.solve()
        return None if result.point is None else np.round(result[chosen])

    if parts is not None:
        low = np.floor(parts * (x + CLOSE))
        high = np.ceil(parts * (x - CLOSE)) - low
        least, most = parts * lower - rows @ low, parts * upper - rows @ low
        raised = cohort(parts * x - low, 0 * low, high, least, most, parts * size - low.sum())
        x = x if raised is None else (low + raised) / parts
    try:
        lottery = decompose(x, rows, lower, upper, cohort, WHOLE, parts)
    except DeclarationError:
        raise DeclarationError(
            "the marginals are the mean of no lottery over cohorts that meet the quotas; solve by "
            "'column-generation'"
        ) from None
    return lottery.members, lottery.weights
