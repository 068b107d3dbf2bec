"""The declaration: two neighbouring populations' samples, and a mechanism that is private on samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from forcopt.arrays import Array, as_numbers, check_entries, check_shape
from forcopt.declaration import Numbers, Pairs
from forcopt.errors import DeclarationError, require
from forcopt.language.model import Model
from forcopt.loops.solution import ModelSolution
from forcopt.models.amplification.states import cluster_pair, stratified_pair
from forcopt.privacy.amplification import ClusterSample, Design, whole_number
from forcopt.privacy.amplification.design import Population, SizeLaw
from forcopt.privacy.losses import Neighbours, SampleRelation
from forcopt.privacy.tolerances import EXPONENT, LAW_SUM
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Handles, Problem
from forcopt.problem.drawing import Drawn, Sketch, titled, whole_ticks

LARGEST_LOSS = 20.0
"""Of an edge: solvers drop coefficients below 1e-9, which is e^-20.7."""


def check_law(law: Array) -> Array:
    """Check that these are probabilities."""
    require(law.ndim == 1 and law.size, "the shape", law.shape, "be one probability for each outcome")
    if (law < 0).any() or abs(law.sum() - 1) > LAW_SUM:
        raise DeclarationError(f"the probabilities sum to {law.sum():g}; they are nonnegative with sum 1")
    return law


Law = Annotated[Numbers, AfterValidator(check_law)]
"""A field of the probabilities of outcomes, read-only."""


@dataclass(frozen=True, eq=False)
class Distinguisher(Drawn):
    """The outcome of a private mechanism with the largest likelihood ratio of two populations.

    Attributes
    ----------
    density : Array
        Of the outcome, given each sample, up to a common factor; shape ``(samples,)``.
    likelihoods : tuple[float, float]
        Of the outcome under the two populations, up to the same factor.
    """

    density: Array
    likelihoods: tuple[float, float] = field(repr=False)

    @property
    def loss(self) -> float:
        """The privacy loss: the logarithm of the ratio of the likelihoods, the larger over the smaller."""
        with np.errstate(divide="ignore"):
            one, other = np.log(self.likelihoods)
        return float(abs(one - other))

    @property
    def direction(self) -> Literal["before", "after"]:
        """The population under which the outcome is likelier."""
        return "before" if self.likelihoods[0] >= self.likelihoods[1] else "after"

    def __repr__(self) -> str:
        side = f"likelier {self.direction}: loss {self.loss:.6g}"
        return f"<an outcome among {len(self.density)} samples, {side}>"

    _figure_size = (6.0, 3.5)

    def _draw(self, axes: Any) -> None:
        """Draw the logarithm of the density over the samples."""
        shown = np.flatnonzero(self.density)
        axes.stem(shown, np.log(self.density[shown] / self.density.max()), basefmt=" ")
        axes.set(xlabel="sample", ylabel="log density")
        titled(axes, f"The privacy loss is {self.loss:.4g}")
        whole_ticks(axes.xaxis)


class TightAmplification(Problem):
    """The exact privacy loss of a sampling design: the largest loss of any private mechanism on samples.

    Maximises the ratio of the likelihoods of one outcome under two neighbouring populations, over all
    mechanisms that are epsilon-private on samples. The objective is that ratio; its logarithm, the privacy
    loss, is ``s.decision.loss``, and the metric ``"loss"``. Every density that changes by a factor of at most
    ``e^(epsilon * steps)`` between samples at a distance of `steps` belongs to a private mechanism, so
    that the loss is exact.

    The constructors below take a design; any other is declared by its samples.

    Attributes
    ----------
    before, after : Numbers
        The probability of each sample under the two populations, shape ``(samples,)``.
    edges : Pairs
        Pairs of samples, numbered from 0, shape ``(edges, 2)``.
    steps : Numbers
        The distance of each pair, at least 0; shape ``(edges,)``. Other pairs are as far apart as the
        shortest path between them.
    epsilon : float
        The loss of the mechanism on samples that are one step apart.

    Raises
    ------
    DeclarationError
        For probabilities that do not sum to 1 or arrays that do not fit each other.

    References
    ----------
    The linear-fractional program (Charnes and Cooper 1962) whose value Bun, Drechsler, Gaboardi, McMillan,
    Sarathy (2022), Theorems 2, 3, 6, 7 and 8 bound.

    Examples
    --------
    >>> from forcopt.models import TightAmplification
    >>> p = TightAmplification.random_size([1 / 6] * 6, epsilon=0.5)
    >>> round(p.solve().decision.loss, 6)
    0.648141
    """

    family: ClassVar[str] = "amplification"
    sense: ClassVar[Literal["min", "max"]] = "max"
    default_method: ClassVar[str] = "lp"

    before: Law
    after: Law
    edges: Pairs
    steps: Numbers
    epsilon: float = Field(gt=0.0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        samples = len(self.before)
        if len(self.after) != samples:
            raise DeclarationError(f"after has {len(self.after)} samples, before {samples}; they must agree")
        if self.edges.size and (self.edges.min() < 0 or self.edges.max() >= samples):
            raise DeclarationError(f"edges: samples are numbered from 0 to {samples - 1}")
        check_shape(self.steps, self.edges.shape[:1], "steps")
        check_entries(self.steps, self.steps < 0, "steps", "it must not be negative")
        return self

    # -- designs ---------------------------------------------------------------------------------------------

    @classmethod
    def of(
        cls,
        design: Design,
        population: Population,
        epsilon: float,
        *,
        changed: int = 0,
        mechanism: SampleRelation | None = None,
        neighbours: Neighbours | None = None,
    ) -> Self:
        """The samples of a design, on a population and on a neighbouring population.

        Parameters
        ----------
        design : Design
            Any of `forcopt.privacy`.
        population : int, sequence or mapping
            The number of records, in each stratum or cluster, of the first population.
        epsilon : float
            Of the mechanism.
        changed : int, default 0
            The stratum or cluster in which the populations differ, in the order of ``design.counts``.
        mechanism, neighbours
            See `forcopt.privacy.amplification`; by default both are ``design.neighbours``.

        Examples
        --------
        >>> from forcopt.models import TightAmplification
        >>> from forcopt.privacy import PoissonSample
        >>> design = PoissonSample(rate=0.25)
        >>> p = TightAmplification.of(design, 4, epsilon=1.0)
        >>> round(p.solve().decision.loss, 6), round(design.loss(1.0).exact, 6)
        (0.357374, 0.357374)
        """
        between = neighbours or design.neighbours
        counts = design.counts(population)
        if isinstance(design, ClusterSample):
            return cls.cluster_sample(counts, design.chosen, changed, epsilon, neighbours=between)
        more = [n + (i == changed and between == "add_remove") for i, n in enumerate(counts)]
        before, after = design.size_law(counts), design.size_law(more)
        private = mechanism or design.neighbours
        relations: dict[str, Any] = {"mechanism": private, "neighbours": between}
        return cls.stratified(counts, before, after, epsilon, changed=changed, **relations)

    @classmethod
    def random_size(
        cls, law: Any, epsilon: float, *, after: Any = None, mechanism: SampleRelation = "add_remove"
    ) -> Self:
        """A sample whose size is drawn first.

        Parameters
        ----------
        law : Any
            The probability of each size 0..n under the first population, which has n records.
        epsilon : float
            Of the mechanism.
        after : Any, optional
            The law of sizes 0..n+1 under the second, which then has one record more. If left out, the
            populations differ by a substitution, and the law is the same.
        mechanism : SampleRelation, default "add_remove"
            See `forcopt.privacy.amplification`.
        """
        first, second = (
            [((m,), float(p)) for m, p in enumerate(check_law(as_numbers(t, "law")))]
            for t in (law, law if after is None else after)
        )
        population = len(first) - 1
        if population < 1 or (after is not None and len(second) != population + 2):
            sizes = f"law has {population + 1} sizes, after {len(second)}"
            raise DeclarationError(f"{sizes}; n + 1 and n + 2 are needed, n >= 1")
        between: Neighbours = "substitute" if after is None else "add_remove"
        return cls.stratified([population], first, second, epsilon, mechanism=mechanism, neighbours=between)

    @classmethod
    def stratified(
        cls,
        sizes: Any,
        before: SizeLaw,
        after: SizeLaw,
        epsilon: float,
        *,
        changed: int = 0,
        mechanism: SampleRelation = "add_remove",
        neighbours: Neighbours = "add_remove",
    ) -> Self:
        """Simple random samples within strata, of sizes that may depend on the population.

        Parameters
        ----------
        sizes : Any
            Of the strata in the first population.
        before, after : SizeLaw
            Sizes of the samples with their probabilities, such as ``[((2, 3), 1.0)]``, under the two
            populations.
        epsilon : float
            Of the mechanism.
        changed : int, default 0
            The stratum in which the populations differ.
        mechanism, neighbours
            See `forcopt.privacy.amplification`.

        Examples
        --------
        >>> from forcopt.models import TightAmplification
        >>> p = TightAmplification.stratified([4, 6], [((2, 2), 1.0)], [((3, 2), 1.0)], epsilon=1.0)
        >>> round(p.solve().decision.loss, 6)  # the first stratum's sample grows with the stratum
        1.0
        """
        n = [whole_number(size, "sizes") for size in sizes]
        require(0 <= changed < len(n), "changed", changed, f"be from 0 to {len(n) - 1}")
        if min(n) < 0 or (neighbours == "substitute" and n[changed] < 1):
            raise DeclarationError(f"sizes are {n}; none is negative, and a substitution needs a record")
        pair = stratified_pair(n, before, after, changed, mechanism, neighbours)
        return cls(**pair._asdict(), epsilon=epsilon)

    @classmethod
    def cluster_sample(
        cls, sizes: Any, chosen: int, changed: int, epsilon: float, *, neighbours: Neighbours = "add_remove"
    ) -> Self:
        """Whole clusters; see `forcopt.privacy.amplification.cluster_sample`. There are C(k, l) samples."""
        n = [whole_number(size, "sizes") for size in sizes]
        chosen = whole_number(chosen, "chosen")
        if not (0 <= chosen <= len(n) and 0 <= changed < len(n) and min(n) >= 0):
            given = f"sizes are {n}, chosen is {chosen}, changed {changed}"
            raise DeclarationError(f"{given}; clusters are numbered from 0, and at most all are chosen")
        return cls(**cluster_pair(n, chosen, changed, neighbours)._asdict(), epsilon=epsilon)

    # -- evaluation ------------------------------------------------------------------------------------------

    def distinguisher(self, density: Any) -> Distinguisher:
        """The decision with this density, shape ``(samples,)``."""
        q = as_numbers(density, "the density")
        check_shape(q, self.before.shape, "the density")
        if (q < 0).any() or not q.any():
            raise DeclarationError("the density must not be negative, nor 0 everywhere")
        return Distinguisher(q, (float(self.before @ q), float(self.after @ q)))

    def made_private(self, density: Array) -> Distinguisher:
        """Raise a density that a solver got right up to its tolerance just as far as privacy needs."""
        q = np.maximum(density, 0.0)
        s, t = self.edges.T
        factor = np.exp(-self.epsilon * self.steps)
        while True:
            raised = q.copy()
            np.maximum.at(raised, s, q[t] * factor)
            np.maximum.at(raised, t, q[s] * factor)
            if np.array_equal(raised, q):
                return self.distinguisher(q)
            q = raised

    def evaluate(self, decision: Distinguisher | Any) -> Evaluation:
        """Evaluate an outcome: the ratio of its likelihoods, and the violation of privacy.

        Parameters
        ----------
        decision : Distinguisher or Any
            A distinguisher, or its density.

        Returns
        -------
        Evaluation
            The ratio, the larger likelihood over the smaller; the violation ``"privacy"``, in units of log
            density; as metric the loss, which is the ratio's logarithm.
        """
        chosen = self.distinguisher(decision.density if isinstance(decision, Distinguisher) else decision)
        one, other = chosen.density[self.edges.T]
        with np.errstate(divide="ignore", invalid="ignore"):  # an outcome may be impossible on some samples
            change = np.where(one == other, 0.0, np.abs(np.log(one) - np.log(other)))
        excess = float((change - self.epsilon * self.steps).max(initial=0.0))
        violations = {"privacy": excess} if excess > FEASIBILITY_TOLERANCE else {}
        return Evaluation(float(np.exp(chosen.loss)), violations, {"loss": chosen.loss})


@TightAmplification.formulation("lp", exact=True, cites="Charnes and Cooper (1962)")
def tight_lp(problem: TightAmplification, model: Model) -> Handles:
    """Maximise the likelihood under one population, with the other likelihood fixed to 1, in both directions.

    Each direction has a density of its own; the likelihoods that are held fixed sum to 1 over both, so that
    the better direction gets everything. 2 S variables, 4 E + 1 rows.

    Returns
    -------
    Handles
        ``density``, shape ``(2, samples)``: of an outcome that is likelier before, and of one likelier after.
    """
    largest = float((problem.epsilon * problem.steps).max(initial=0.0))
    if largest > LARGEST_LOSS:
        raise DeclarationError(
            f"epsilon is {problem.epsilon:g}: an edge has loss {largest:.4g}, and beyond {LARGEST_LOSS:g} "
            "linear solvers take its coefficient for 0: see forcopt.privacy.amplification"
        )
    laws = np.stack([problem.before, problem.after])
    density = model.variable(model.unused_name("density"), laws.shape, lower=0)
    model.subject_to((laws[::-1] * density).sum() == 1, name=model.unused_name("scale"))
    s, t = problem.edges.T
    factor = np.exp(-problem.epsilon * problem.steps)  # below 1: no coefficient overflows
    one, other = density[:, s], density[:, t]
    model.subject_to(one * factor <= other, other * factor <= one, name=model.unused_name("privacy"))

    def decision(result: ModelSolution) -> Distinguisher:
        fixed = (laws[::-1] * result[density]).sum(axis=1)
        found = [problem.made_private(q) for q in result[density][fixed > 1e-6]]
        return max(found, key=lambda d: d.loss)

    return Handles(objective=(laws * density).sum(), decision=decision, density=density)


@dataclass(frozen=True, eq=False)
class DPTest:
    """Answers "the first law" with a probability that depends on the count, shape ``(K + 1,)``.

    Attributes
    ----------
    acceptance : Array
        Shape ``(K + 1,)``: the probability of the answer for each count from 0 to K.

    Examples
    --------
    >>> DPTest(np.array([0.0, 0.5, 1.0]))
    DPTest([0.  0.5 1. ])
    """

    acceptance: Array

    def __repr__(self) -> str:
        return f"DPTest({np.array2string(self.acceptance, precision=6, threshold=12, edgeitems=4)})"


class DPHypothesisTest(Problem):
    """Distinguish two laws of a count by a test that is itself differentially private.

    It maximizes the advantage ``P("first" | first) - P("first" | second)`` over tests whose answer
    is epsilon-private if the count changes by one. If the size of a sample has these laws under neighbouring
    populations, the design cannot promise a loss below ``2 artanh(advantage)``: a mechanism of that loss is
    a test of just that advantage. Proposition 4 concludes ``log(1 + advantage)``, which is weaker.

    Attributes
    ----------
    first, second : Numbers
        The probability of each count 0..K, shape ``(K + 1,)``.
    epsilon : float
        The loss of the test, if the count changes by one.

    Raises
    ------
    DeclarationError
        For probabilities that do not sum to 1, or of different length.

    References
    ----------
    Bun, Drechsler, Gaboardi, McMillan, Sarathy (2022), Proposition 4.

    Examples
    --------
    >>> from forcopt.models import DPHypothesisTest
    >>> s = DPHypothesisTest(first=[0, 0.6, 0.4], second=[0, 0.5, 0.5], epsilon=1.0).solve()
    >>> round(s.objective, 6), round(s.evaluation.metrics["loss"], 6)
    (0.046212, 0.092489)
    """

    family: ClassVar[str] = "amplification"
    sense: ClassVar[Literal["min", "max"]] = "max"
    default_method: ClassVar[str] = "lp"

    first: Law
    second: Law
    epsilon: float = Field(gt=0.0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(self.first) != len(self.second):
            raise DeclarationError(
                f"first has {len(self.first)} counts, second {len(self.second)}; they must agree"
            )
        return self

    def made_private(self, acceptance: Array) -> Array:
        """Move probabilities that a solver got right up to its tolerance just as far as privacy needs."""
        h, factor = np.clip(acceptance, 0.0, 1.0), np.exp(-self.epsilon)
        both = (range(1, len(h)), range(len(h) - 2, -1, -1))
        for i, step in [(i, order.step) for order in both for i in order]:
            h[i] = max(h[i], factor * h[i - step])
        for i, step in [(i, order.step) for order in both for i in order]:
            h[i] = min(h[i], 1 - factor * (1 - h[i - step]))
        return h

    def _sketch(self, decision: Any, evaluation: Evaluation) -> Any:
        title = f"The answer is {evaluation.objective:.3g} more likely under one law than under the other"
        return Sketch(title, decision.acceptance, "count", unit='probability of the answer "the first law"')

    def evaluate(self, decision: DPTest | Any) -> Evaluation:
        """Evaluate a test: its advantage, and the violation of privacy.

        Parameters
        ----------
        decision : DPTest or Any
            A test, or its acceptance probabilities.

        Returns
        -------
        Evaluation
            The advantage; the violations ``"privacy"`` (in probability) and ``"probability"``; as metrics the
            loss that the advantage certifies, and the one that Proposition 4 concludes.
        """
        h = as_numbers(decision.acceptance if isinstance(decision, DPTest) else decision, "the test")
        check_shape(h, self.first.shape, "the test")
        factor = np.exp(-self.epsilon)
        both = np.stack([h, 1 - h])  # 1 - h is known up to 2^-53
        excess = np.maximum(factor * both[:, 1:] - both[:, :-1], factor * both[:, :-1] - both[:, 1:])
        over = max(0.0, float(excess.max(initial=0.0)) - 2.0**-52) * np.exp(min(self.epsilon, EXPONENT))
        found = {"privacy": over, "probability": max(float(-h.min()), float(h.max()) - 1)}
        violations = {name: v for name, v in found.items() if v > FEASIBILITY_TOLERANCE}
        advantage = float(h @ (self.first - self.second))
        within = min(max(advantage, 0.0), 1.0)
        with np.errstate(divide="ignore"):
            loss = float(2 * np.arctanh(within))
        metrics = {"loss": loss, "loss by Proposition 4": float(np.log1p(within))}
        return Evaluation(advantage, violations, metrics)


@DPHypothesisTest.formulation("lp", exact=True, cites="Bun et al. (2022), Proposition 4")
def hypothesis_lp(problem: DPHypothesisTest, model: Model) -> Handles:
    """One probability for each count, four rows for each two neighbouring counts.

    Returns
    -------
    Handles
        ``acceptance``, shape ``(K + 1,)``.
    """
    h = model.variable(model.unused_name("acceptance"), len(problem.first), lower=0, upper=1)
    factor = np.exp(-problem.epsilon)
    for answer in (h, 1 - h):
        one, other = answer[1:], answer[:-1]
        model.subject_to(factor * one <= other, factor * other <= one, name=model.unused_name("privacy"))
    return Handles(
        objective=(h * (problem.first - problem.second)).sum(),
        decision=lambda result: DPTest(problem.made_private(result[h])),
        start=lambda test: {h: test.acceptance if isinstance(test, DPTest) else test},
        acceptance=h,
    )
