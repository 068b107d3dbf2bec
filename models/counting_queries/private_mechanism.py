"""The best private mechanism on finitely many inputs and outputs, by a linear program; and baselines."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from math import exp, nan
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import scipy
from pydantic import Field, model_validator

from forcopt.arrays import Array, as_numbers, check_shape
from forcopt.declaration import Numbers, Pairs
from forcopt.errors import DeclarationError
from forcopt.language.model import Model
from forcopt.loops.solution import ModelSolution
from forcopt.models.counting_queries.calibration import is_whole
from forcopt.models.counting_queries.tolerances import DELTA_LEFT, MIXED
from forcopt.privacy import Mechanism, Profile, Randomness, Sensitivity, TabulatedNoise
from forcopt.privacy.tolerances import LAW_SUM
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Handles, Outcome, Problem
from forcopt.problem.drawing import Sketch


class PrivateMechanism(Problem):
    """The stochastic matrix with the least expected loss among all (epsilon, delta)-private ones.

    Parameters
    ----------
    loss : array_like
        The loss of each output for each input, shape ``(inputs, outputs)``.
    edges : array_like
        Pairs of neighbouring inputs, shape ``(edges, 2)``; privacy is asked in both directions.
    epsilon : float
        At least 0.
    delta : float
        From 0 to below 1.
    prior : array_like, optional
        The probabilities of the inputs, shape ``(inputs,)``: the expected loss is minimized. Without it
        the loss of the worst input is minimized.

    Raises
    ------
    DeclarationError
        For arrays that do not fit each other or parameters out of range.

    References
    ----------
    Ghosh, Roughgarden and Sundararajan (2009), for one count and a prior.

    Examples
    --------
    >>> from forcopt.models import PrivateMechanism
    >>> p = PrivateMechanism.counts(2, 1, epsilon=np.log(2))
    >>> round(p.solve().objective, 9)  # 4/7
    0.571428571
    """

    family: ClassVar[str] = "counting"
    default_method: ClassVar[str] = "lp"

    loss: Numbers
    edges: Pairs
    epsilon: float = Field(ge=0.0, le=20.0)
    delta: float = Field(default=0.0, ge=0.0, lt=1.0)
    prior: Numbers | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.loss.ndim != 2 or 0 in self.loss.shape:
            raise DeclarationError(f"loss has shape {self.loss.shape}; it is (inputs, outputs), not empty")
        inputs = len(self.loss)
        if self.edges.size and not (self.edges.min() >= 0 and self.edges.max() < inputs):
            raise DeclarationError(f"edges: inputs are numbered from 0 to {inputs - 1}")
        if self.prior is not None:
            check_shape(self.prior, (inputs,), "prior")
            if (self.prior < 0).any() or abs(self.prior.sum() - 1) > LAW_SUM:
                raise DeclarationError(f"prior sums to {self.prior.sum():g}; it is nonnegative with sum 1")
        return self

    @classmethod
    def counts(cls, most: int, queries: int, epsilon: float, delta: float = 0.0) -> Self:
        """Counts from 0 to `most`, each of which one person changes by at most 1; loss in the maximum norm.

        Parameters
        ----------
        most : int
            At least 0.
        queries : int
            At least 1; there are ``(most + 1)^queries`` inputs and as many outputs.
        epsilon, delta : float
            See the class.
        """
        if not (is_whole(most) and most >= 0 and is_whole(queries) and queries >= 1):
            raise DeclarationError(f"most is {most!r}, queries {queries!r}; they are whole, from 0 and 1")
        points = np.array(list(product(range(int(most) + 1), repeat=int(queries))))
        distance = np.abs(points[:, None] - points[None]).max(axis=2)
        near = np.argwhere(np.triu(distance == 1))
        return cls(loss=distance, edges=near.reshape(-1, 2), epsilon=epsilon, delta=delta)

    @property
    def ordered(self) -> Array:
        """The neighbours in both orders, shape ``(2 edges, 2)``."""
        return np.concatenate([self.edges, self.edges[:, ::-1]])

    def _sketch(self, decision: Any, evaluation: Evaluation) -> Any:
        title = f"The expected loss is {evaluation.objective:.4g}, by these probabilities of answers"
        return Sketch(title, decision, "input", "answer", "probability")

    def evaluate(self, decision: Any) -> Evaluation:
        """Evaluate a matrix.

        Parameters
        ----------
        decision : array_like
            The probability of each output given each input, shape ``(inputs, outputs)``.

        Returns
        -------
        Evaluation
            The expected loss of the worst input, or over the prior; the violations ``"probabilities"`` and
            ``"privacy"``, the excess over delta of the worst set of outputs.
        """
        matrix = as_numbers(decision, "the matrix")
        check_shape(matrix, self.loss.shape, "the matrix")
        each = (matrix * self.loss).sum(axis=1)
        wrong = max(float(-matrix.min()), float(np.abs(matrix.sum(axis=1) - 1).max()))
        one, other = self.ordered.T
        gap = np.maximum(matrix[one] - exp(self.epsilon) * matrix[other], 0.0).sum(axis=1)
        delta = float(gap.max(initial=0.0))
        found = {"probabilities": wrong, "privacy": delta - self.delta}
        violations = {name: v for name, v in found.items() if v > FEASIBILITY_TOLERANCE}
        objective = float(each.max() if self.prior is None else self.prior @ each)
        return Evaluation(objective, violations, {"delta": delta})

    def mechanism(self, decision: Any) -> ChosenOutput:
        """The mechanism that answers one count by a matrix; a count beyond the inputs is that of the last.

        ``(table.count() >> p.mechanism(p.solve().decision)).release(ledger)`` chooses an output.

        Raises
        ------
        DeclarationError
            If the matrix is not private enough, or consecutive inputs are not neighbours.
        """
        if broken := self.evaluate(decision).violations:
            raise DeclarationError(f"the matrix is not private enough: {broken}")
        steps = {tuple(sorted(pair)) for pair in self.edges.tolist()}
        if missing := [i for i in range(len(self.loss) - 1) if (i, i + 1) not in steps]:
            at = missing[0]
            raise DeclarationError(f"edges lack ({at}, {at + 1}), between which one person moves a count")
        return ChosenOutput(np.asarray(decision, dtype=float), self.epsilon, self.delta)

    def save_proof(self, decision: Any, path: str | Path) -> Fraction:
        """Write a matrix and its privacy loss as the certificate ``privacy`` that `forcopt.check` reads.

        Parameters
        ----------
        decision : array_like
            As for `evaluate`. The file states its rows as fractions with sum 1, which floats may miss.
        path : str or Path
            The file.

        Returns
        -------
        Fraction
            The delta that these fractions have at `epsilon`, or the declared one if that is larger; the file
            states it.

        Examples
        --------
        >>> import tempfile
        >>> from forcopt import check
        >>> p = PrivateMechanism.counts(2, 1, epsilon=1.0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     delta = p.save_proof(p.solve().decision, f"{folder}/p.json")
        ...     check.main([f"{folder}/p.json"])
        accepted: the mechanism is (1, ...)-differentially private for the pairs named
        0
        >>> delta < 1e-9
        True
        """
        self.evaluate(decision)  # refuses a wrong shape
        rows = [[max(Fraction(v), Fraction(0)) for v in row] for row in np.asarray(decision, float).tolist()]
        table = [[v / sum(row) for v in row] for row in rows]
        below = Fraction(exp(self.epsilon) * (1 - 4 * np.finfo(float).eps))  # at most exp(epsilon)
        delta, zero = Fraction(self.delta), Fraction(0)
        for a, b in self.ordered.tolist():
            lost = (max(p - below * q, zero) for p, q in zip(table[a], table[b], strict=True))
            delta = max(delta, sum(lost, zero))
        chances = {str(a): {str(o): str(p) for o, p in enumerate(row) if p} for a, row in enumerate(table)}
        edges = [[str(a), str(b)] for a, b in self.edges.tolist()]
        data = {"kind": "privacy", "probabilities": chances, "neighbours": edges}
        data |= {"epsilon": str(Fraction(self.epsilon)), "delta": str(delta)}
        Path(path).write_text(json.dumps(data), encoding="utf-8")
        return delta


class ChosenOutput(Mechanism):
    """An output by the row of a count; see `PrivateMechanism.mechanism`.

    Attributes
    ----------
    matrix : Numbers
        The probability of each output for the counts 0, 1, ...; shape ``(inputs, outputs)``.
    epsilon, delta : float
        What it was made for. For delta 0 the profile is that of the largest ratio of the matrix.

    Examples
    --------
    >>> p = PrivateMechanism.counts(2, 1, epsilon=1.0)
    >>> mechanism = p.mechanism(p.solve("geometric").decision)
    >>> round(mechanism.profile().epsilon(0.0), 9), int(mechanism.simulate([1], seed=0).values[0])
    (1.0, 1)
    """

    matrix: Numbers
    epsilon: float
    delta: float

    def profile(self, distance: int = 1) -> Profile:
        """See `Mechanism`; for counts that differ by 1."""
        if distance != 1:
            raise DeclarationError(f"distance is {distance}; the profile is for 1")
        if self.delta > 0:
            return Profile.pure(self.epsilon, self.delta)
        one, other = self.matrix[:-1], self.matrix[1:]
        if ((one == 0) != (other == 0)).any():
            lost = np.maximum(np.maximum(one, other) - exp(self.epsilon) * np.minimum(one, other), 0.0)
            return Profile.pure(self.epsilon, float(lost.sum(axis=1).max()))
        held = one > 0
        return Profile.pure(float(np.abs(np.log(one[held] / other[held])).max(initial=0.0)))

    def covers(self, change: Sensitivity, shape: tuple[int, ...]) -> None:
        """Refuse a query of several numbers, or of one that a unit changes by more than 1."""
        if shape != (1,) or change.linf > 1:
            given = f"the query has {shape[0]} numbers, which it changes by {change.linf:g}"
            raise DeclarationError(f"the matrix answers one count that a unit changes by 1; {given}")

    def margin(self, level: float) -> float:
        """NaN: the outputs are chosen for their loss, and are no noisy counts."""
        return nan

    def total_variation(self, output: Any) -> float:
        """See `Channel`: that of the worst row, which is the same for all counts."""
        return max(law.total_variation for law in self._laws)

    @property
    def _laws(self) -> list[TabulatedNoise]:
        return [TabulatedNoise(row, first=0) for row in self.matrix / self.matrix.sum(axis=1, keepdims=True)]

    def _send(self, values: Any, rng: Randomness) -> Array:
        (count,) = as_numbers(values, "values").ravel()
        return self._laws[int(np.clip(np.round(count), 0, len(self.matrix) - 1))].sample(1, rng)


@PrivateMechanism.formulation(
    "lp", exact=True, cites="Ganesh and Zhao (2021), section 2; Ghosh et al. (2009)"
)
def lp(problem: PrivateMechanism, model: Model) -> Handles:
    """One probability for each input and output; for delta above 0 one slack for each neighbour and output.

    The worst set of outputs for two neighbours is that where ``P[d] > e^epsilon P[d']``, so that the slacks
    express exactly that no set breaks privacy. N O + 2 E O variables.

    Returns
    -------
    Handles
        ``matrix``, shape ``(inputs, outputs)``.
    """
    matrix = model.variable(model.unused_name("matrix"), problem.loss.shape, lower=0, upper=1)
    model.subject_to(matrix.sum(axis=1) == 1, name=model.unused_name("probabilities"))
    one, other = problem.ordered.T
    factor = exp(-problem.epsilon)  # below 1: no coefficient overflows
    half = exp(-problem.epsilon / 2)  # the unit of excess lies between the units of the two probabilities
    excess = None
    if len(one) and problem.delta > 0:
        excess = model.variable(model.unused_name("excess"), (len(one), problem.loss.shape[1]), lower=0)
        within = factor * matrix[one] - matrix[other] <= half * excess
        rare = excess.sum(axis=1) <= problem.delta * half
        model.subject_to(within, rare, name=model.unused_name("privacy"))
    elif len(one):
        model.subject_to(factor * matrix[one] <= matrix[other], name=model.unused_name("privacy"))
    scale = float(np.abs(problem.loss).max()) or 1.0
    loss = problem.loss / scale
    each = (matrix * loss).sum(axis=1)
    worst = None
    if problem.prior is None:
        worst = model.variable(model.unused_name("worst"))
        model.subject_to(each <= worst, name=model.unused_name("worst_input"))

    def start(decision: Any) -> dict[Any, Any]:
        p = as_numbers(decision, "the matrix")
        values: dict[Any, Any] = {matrix: p}
        if excess is not None:
            values[excess] = half * np.maximum(p[one] - p[other] / factor, 0.0)
        if worst is not None:
            values[worst] = (p * loss).sum(axis=1).max()
        return values

    def decision(result: ModelSolution) -> Array:
        p = np.maximum(result[matrix], 0.0)
        return _repaired(problem, p / p.sum(axis=1, keepdims=True))

    objective = worst if worst is not None else (each * problem.prior).sum()
    return Handles(objective=objective, decision=decision, start=start, unit=scale, matrix=matrix)


def _repaired(problem: PrivateMechanism, matrix: Array) -> Array:
    """Mix a matrix that breaks privacy by a solver's tolerance with the uniform one.

    An error of the solver counts ``e^epsilon`` fold, and the uniform matrix makes up for it ``e^epsilon - 1``
    fold, so that its share is as small as the tolerance. A matrix that needs more than `MIXED` of it is not
    changed.
    """
    uniform = 1 / matrix.shape[1]

    def excess(share: float) -> float:
        mixed = (1 - share) * matrix + share * uniform
        return problem.evaluate(mixed).metrics["delta"] - problem.delta

    if excess(0.0) <= FEASIBILITY_TOLERANCE or excess(MIXED) > DELTA_LEFT:
        return matrix
    share = scipy.optimize.brentq(lambda share: excess(share) - DELTA_LEFT, 0.0, MIXED, xtol=1e-16)
    return np.asarray((1 - share) * matrix + share * uniform)


@PrivateMechanism.algorithm("exponential", cites="McSherry and Talwar (2007)", rank="published")
def exponential(problem: PrivateMechanism, *, time_limit: float | None = None) -> Outcome:
    """Outputs with probability in proportion to ``exp(-epsilon loss / (2 sensitivity))``.

    It takes no time worth a limit.
    """
    one, other = problem.ordered.T
    sensitivity = float(np.abs(problem.loss[one] - problem.loss[other]).max(initial=0.0))
    if sensitivity == 0:
        best = np.eye(problem.loss.shape[1])[problem.loss.argmin(axis=1)]
        groups = problem.replace(epsilon=0.0, delta=0.0)
        if "privacy" not in groups.evaluate(best).violations:
            return Outcome(best)
    rate = problem.epsilon / (2 * sensitivity) if sensitivity else 0.0
    weights = np.exp(-rate * (problem.loss - problem.loss.min(axis=1, keepdims=True)))
    return Outcome(weights / weights.sum(axis=1, keepdims=True))


@PrivateMechanism.algorithm("randomized-response", cites="Warner (1965)", rank="published")
def randomized_response(problem: PrivateMechanism, *, time_limit: float | None = None) -> Outcome:
    """The best output of the true input with the largest probability, any other with the same smaller one.

    With probability delta the truth alone. It is the optimum for the loss 0 or 1 with all inputs neighbours.
    """
    inputs, outputs = problem.loss.shape
    if inputs != outputs:
        raise DeclarationError(f"randomized-response needs {inputs} outputs, one an input, not {outputs}")
    eye, e = np.eye(inputs), exp(problem.epsilon)
    noisy = (eye * (e - 1) + 1) / (e + inputs - 1)
    return Outcome(problem.delta * eye + (1 - problem.delta) * noisy)


@PrivateMechanism.algorithm("geometric", cites="Ghosh, Roughgarden and Sundararajan (2009)", rank="published")
def geometric(problem: PrivateMechanism, *, time_limit: float | None = None) -> Outcome:
    """Discrete Laplace noise on a line of inputs, cut off at both ends, where the mass beyond them goes."""
    n, outputs = problem.loss.shape
    steps = {tuple(sorted(pair)) for pair in problem.edges.tolist()}
    if n != outputs or not steps <= {(i, i + 1) for i in range(n - 1)}:
        raise DeclarationError("geometric needs inputs 0, 1, .. whose neighbours are next, and outputs alike")
    a = exp(-problem.epsilon)
    x = np.arange(n)
    if n == 1 or a == 1:
        matrix = np.full((n, n), 1 / n)
    else:
        matrix = (1 - a) / (1 + a) * a ** np.abs(x[:, None] - x)
        matrix[:, 0] = a**x / (1 + a)
        matrix[:, -1] = a ** x[::-1] / (1 + a)
    return Outcome(matrix)
