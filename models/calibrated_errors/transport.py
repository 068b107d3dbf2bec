"""Stage 2: the calibrated score nearest to a given one that meets a target pair of error rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import AfterValidator, Field, field_validator, model_validator

from forcopt.arrays import Array, check_entries
from forcopt.declaration import Numbers
from forcopt.errors import DeclarationError, require
from forcopt.fairness import calibration_gaps
from forcopt.language.model import Model
from forcopt.models.calibrated_errors.decision import ScoreKernel
from forcopt.models.calibrated_errors.tolerances import MARGIN, MISSED, ROUNDING
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Handles, Problem


class Cutoffs:
    """The common part of problems with the fields ``cutoff``, ``interval`` and ``margin``."""

    if TYPE_CHECKING:
        cutoff: float
        interval: float
        margin: float

    @property
    def upper(self) -> float:
        """The least score that every possible cutoff accepts."""
        return self.cutoff + self.interval

    @property
    def lower(self) -> float:
        """The largest score that every possible cutoff refuses, by the margin."""
        return self.cutoff - max(self.interval, self.margin)

    def check_cutoffs(self) -> None:
        """Check that scores are left on both sides.

        Raises
        ------
        DeclarationError
            Naming the fields.
        """
        if self.lower < 0 or self.upper > 1:
            own = f"interval is {self.interval:g}, cutoff {self.cutoff:g} and margin {self.margin:g}"
            sums = f"cutoff - max(interval, margin) = {self.lower:g} and cutoff + interval = {self.upper:g}"
            raise DeclarationError(f"{own}; {sums} must be from 0 to 1")


def read_score(score: Array) -> Array:
    """Check a discrete score, and give its values ascending, each once.

    Parameters
    ----------
    score : Array
        The values, and the share of the group with each; shape ``(2, N)``.

    Raises
    ------
    DeclarationError
        For values outside [0, 1], masses that are negative or do not sum to 1, and a group in which nobody,
        or everybody, has label 1.
    """
    if score.ndim != 2 or score.shape[0] != 2 or score.shape[1] == 0:
        raise DeclarationError(f"the shape is {score.shape}; it must be (2, N): values, masses")
    values, masses = score
    check_entries(values, (values < 0) | (values > 1), "value", "it must be from 0 to 1")
    check_entries(masses, masses < 0, "mass", "it must not be negative")
    if abs(masses.sum() - 1) > ROUNDING:
        raise DeclarationError(f"the masses sum to {masses.sum():.12g}; they must sum to 1")
    distinct, place = np.unique(values, return_inverse=True)
    merged = np.bincount(place, weights=masses)
    base = float(distinct @ merged)
    if base <= 0 or base >= 1:
        raise DeclarationError(f"the base rate is {base:g}; it must be strictly between 0 and 1")
    out = np.array([distinct, merged])
    out.flags.writeable = False
    return out


class CalibratedTransport(Cutoffs, Problem):
    """Change a calibrated score as little as possible so that it leads to given error rates, calibrated.

    A person with old score p gets a random new one. The new score must be calibrated (of the people with q, a
    share q has label 1), and predicting 1 from the cutoff on must have the target rates. Among all such
    scores, find the one with the least expected squared change, by which the mean squared error grows
    by.

    Attributes
    ----------
    score : Numbers
        The old score: its values (the share of label 1 among the records with this value), and the share of
        the group with each; shape ``(2, N)``.
    target : Numbers
        The false positive and the true positive rate to meet.
    cutoff : float
        Whoever has at least this new score is predicted 1.
    interval : float, default 0.0
        No new score may lie strictly within ``cutoff - interval`` and ``cutoff + interval``, so that every
        cutoff in between leads to the same predictions.
    margin : float, default 1e-05
        The distance that new scores of people predicted 0 keep below the cutoff. Their best values may come
        arbitrarily close to the cutoff, so that without a margin there might be no best score. Solvers meet
        rows up to 1e-6; if a share r of the group is refused, that moves their scores by 1e-6 / r, so a
        smaller margin than that is not kept.
    outputs : Numbers, optional
        The only new scores allowed; by default any.

    Raises
    ------
    DeclarationError
        See `read_score`; and for a target outside the unit square.

    References
    ----------
    Reich and Vijaykumar (2021), linear program (14)-(18) and (22).

    Examples
    --------
    >>> p = CalibratedTransport(score=[[0.4, 0.8], [0.5, 0.5]], target=[4 / 13, 9 / 13], cutoff=0.5)
    >>> s = p.solve()
    >>> round(s.objective * 650, 9)
    1.0
    >>> s.decision.outputs.round(6).tolist(), s.decision.joint.sum(axis=0).round(4).tolist()
    ([0.4, 0.49999, 0.5, 0.8], [0.4615, 0.0, 0.0513, 0.4872])
    """

    family: ClassVar[str] = "calibrated"
    default_method: ClassVar[str] = "pools"

    score: Annotated[Numbers, AfterValidator(read_score)]
    target: Numbers
    cutoff: float = Field(gt=0.0, lt=1.0)
    interval: float = Field(default=0.0, ge=0.0)
    margin: float = Field(default=MARGIN, gt=0.0)
    outputs: Numbers | None = None

    @field_validator("target")
    @classmethod
    def _is_pair(cls, target: Array) -> Array:
        require(target.shape == (2,), "the shape", target.shape, "be (2,): false, true positive rate")
        if target.min() < -FEASIBILITY_TOLERANCE or target.max() > 1 + FEASIBILITY_TOLERANCE:
            raise DeclarationError(f"{target.tolist()} are no rates; both must be from 0 to 1")
        return np.clip(target, 0.0, 1.0)

    @field_validator("outputs")
    @classmethod
    def _are_scores(cls, outputs: Array | None) -> Array | None:
        if outputs is None:
            return None
        if outputs.ndim != 1 or outputs.size == 0 or outputs.min() < 0 or outputs.max() > 1:
            raise DeclarationError("outputs must be one row of scores from 0 to 1")
        return np.unique(outputs)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        self.check_cutoffs()
        return self

    def choose_method(self) -> str:
        """Choose ``lp`` if `outputs` are given, else ``pools``."""
        return "pools" if self.outputs is None else "lp"

    @property
    def base_rate(self) -> float:
        """The share of the group with label 1."""
        return float(self.score[0] @ self.score[1])

    @property
    def predicted(self) -> Array:
        """How many are predicted 0, and 1, at the target; shape ``(2,)``."""
        x, y = self.target
        return self.base_rate * np.array([1 - y, y]) + (1 - self.base_rate) * np.array([1 - x, x])

    @property
    def means(self) -> tuple[float, float]:
        """The share with label 1 among people predicted 0, and 1, at the target; NaN if there is nobody."""
        y, mass = self.target[1], self.predicted
        positive = self.base_rate * np.array([1 - y, y])
        shares = np.divide(positive, mass, out=np.full(2, np.nan), where=mass > 0)
        return float(shares[0]), float(shares[1])

    @property
    def bounds(self) -> tuple[float, float]:
        """`lower` and `upper`, or the means, where a target that was computed misses these by rounding.

        Then new scores at `lower` and `upper` are calibrated up to that rounding.
        """
        (low, high), (refused, accepted) = self.means, self.predicted
        lower = low if 0 < (low - self.lower) * refused <= MISSED else self.lower
        upper = high if 0 < (self.upper - high) * accepted <= MISSED else self.upper
        return lower, upper

    def least_relaxation(self, time_limit: float = 10.0) -> str:
        """Give the least changes of the target rates; see `Problem.least_relaxation`."""
        return self.relaxed_rows("lp" if self.outputs is not None else "pools", "rates", time_limit)

    def evaluate(self, decision: ScoreKernel) -> Evaluation:
        """Evaluate new scores: their squared change, calibration and rates.

        Returns
        -------
        Evaluation
            The expected squared change; violations ``"calibration"`` (the expected distance from the share
            with label 1), ``"false positive rate"``, ``"true positive rate"`` (distances from the target) and
            ``"interval"`` (how many get a score within it); as metric the mean squared error.
        """
        if not np.array_equal(decision.values, self.score[0]):
            raise DeclarationError("the decision is for another score")
        rates = decision.rates(self.cutoff)
        within = np.abs(decision.outputs - self.cutoff) < self.interval - ROUNDING
        if self.outputs is not None:
            within |= np.abs(decision.outputs[:, None] - self.outputs).min(axis=1) > ROUNDING
        found = {
            "calibration": decision.calibration_error,
            "false positive rate": abs(rates[0] - self.target[0]),
            "true positive rate": abs(rates[1] - self.target[1]),
            "forbidden scores": float(decision.joint[:, within].sum()),
        }
        broken = {name: float(v) for name, v in found.items() if v > FEASIBILITY_TOLERANCE}
        return Evaluation(decision.added_error, broken, {"squared error": decision.total_error})


_PRINTED = "Reich and Vijaykumar (2021), linear program (14)-(18) and (22)"


def _rows(problem: CalibratedTransport, model: Model, accepted: Any) -> Any:
    """That the mass of each old score that is accepted, shape ``(N,)``, has the target rates."""
    values, base = problem.score[0], problem.base_rate
    by_label = np.array([(1 - values) / (1 - base), values / base])
    rates = model.subject_to(by_label @ accepted == problem.target, name=model.unused_name("rates"))
    rates.labels = [f"{rates.name}[{which}]" for which in ("false positive", "true positive")]
    return rates


@CalibratedTransport.formulation("lp", exact=True, cites=_PRINTED, rank="published")
def lp(problem: CalibratedTransport, model: Model) -> Handles:
    """Linear program over the mass that goes from each old score to each output: N M columns, N + M + 2 rows.

    Without `outputs` the grid is the old scores, the two bounds next to the cutoff, and the means of those
    predicted 0 and 1. Finer grids are no better, see `pools`. (The paper takes the old scores alone; that
    program may be infeasible although calibrated scores with the target exist.)

    Returns
    -------
    Handles
        ``joint``, the masses; ``rates``, their constraints.
    """
    values, masses = problem.score
    grid = problem.outputs
    if grid is None:
        low, high = problem.means
        added = [problem.lower, problem.upper]
        added += [m for m, fits in ((low, low <= problem.lower), (high, high >= problem.upper)) if fits]
        grid = np.unique(np.concatenate([values, added]))
    forbidden = (grid > problem.lower + ROUNDING) & (grid < problem.upper - ROUNDING)
    if problem.outputs is not None and not problem.interval:
        forbidden[:] = False  # a grid of one's own keeps its distance itself
    limit = np.where(forbidden, 0.0, masses[:, None])
    joint = model.variable(model.unused_name("joint"), (len(values), len(grid)), lower=0, upper=limit)
    model.subject_to(joint.sum(axis=1) == masses, name=model.unused_name("mass"))
    lower, upper = problem.bounds
    means = np.where(grid == problem.lower, lower, np.where(grid == problem.upper, upper, grid))
    model.subject_to(calibration_gaps(joint, values, means) == 0, name=model.unused_name("calibrated"))
    rates = _rows(problem, model, joint[:, grid >= problem.cutoff - ROUNDING].sum(axis=1))
    error = (joint * (values[:, None] - grid) ** 2).sum()
    return Handles(error, lambda result: _kernel(problem, grid, result[joint]), joint=joint, rates=rates)


@CalibratedTransport.formulation("pools", exact=True, cites=f"{_PRINTED}; reduced")
def pools(problem: CalibratedTransport, model: Model) -> Handles:
    """The linear program over all outputs from 0 to 1, in 3 N columns and N + 4 rows.

    Everybody keeps their score, or moves to the least score that is accepted, or to the largest that is
    refused. That loses nothing: let some people with a new score q above that least one have old scores
    below it. Taking people with old scores above it out of their number, back to their own scores, until the
    mean of the others is that least score, spreads the new scores, so it brings them nearer to the old ones
    (the expected squared change is E[p^2] - E[q^2]). The same holds below the cutoff.

    Returns
    -------
    Handles
        ``keep``, ``up`` and ``down``, the masses of each old score that keep it, or move to either pool;
        ``rates``, their constraints.

    Raises
    ------
    DeclarationError
        If `outputs` are given; ``lp`` keeps to them.
    """
    if problem.outputs is not None:
        raise DeclarationError("the pools are free to take any score, but outputs are given; use 'lp'")
    values, masses = problem.score
    lower, upper = problem.bounds
    refused, accepted = values <= problem.lower + ROUNDING, values >= problem.upper - ROUNDING
    name, most = model.unused_name, np.where(refused | accepted, masses, 0.0)
    keep = model.variable(name("keep"), len(values), lower=0, upper=most)
    up = model.variable(name("up"), len(values), lower=0, upper=masses)
    down = model.variable(name("down"), len(values), lower=0, upper=masses)
    model.subject_to(keep + up + down == masses, name=name("mass"))
    model.subject_to((values - upper) @ up == 0, name=name("up_calibrated"))
    model.subject_to((values - lower) @ down == 0, name=name("down_calibrated"))
    rates = _rows(problem, model, accepted * keep + up)
    grid = np.unique(np.concatenate([values, [problem.lower, problem.upper]]))

    def decision(result: Any) -> ScoreKernel:
        at = [np.searchsorted(grid, goal) for goal in (values, problem.lower, problem.upper)]
        joint = np.zeros((len(values), len(grid)))
        for mass, column in zip((result[keep], result[down], result[up]), at, strict=True):
            joint[np.arange(len(values)), column] += mass
        return _kernel(problem, grid, joint)

    error = (values - upper) ** 2 @ up + (values - lower) ** 2 @ down
    return Handles(error, decision, keep=keep, up=up, down=down, rates=rates)


def _kernel(problem: CalibratedTransport, grid: Array, joint: Array) -> ScoreKernel:
    """The kernel of these masses; a value that nobody has is left where it is."""
    values, masses = problem.score
    joint = np.clip(joint, 0.0, None)  # a solver may leave the bounds by its tolerance
    rows = joint.sum(axis=1, keepdims=True)
    kernel = np.eye(len(grid))[np.abs(values[:, None] - grid).argmin(axis=1)]
    some = masses > 0
    kernel[some] = joint[some] / rows[some]
    return ScoreKernel(values, masses, grid, kernel)
