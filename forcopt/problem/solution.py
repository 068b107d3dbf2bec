"""Solutions: a decision, its evaluation by the problem, and the evidence for it."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.clock import Improvement
from forcopt.errors import DeclarationError, unknown
from forcopt.language.expression import Expression
from forcopt.loops.certify import Certificate
from forcopt.loops.solution import ModelSolution, relative_gap
from forcopt.notebook import facts_html
from forcopt.problem.method import Handles
from forcopt.status import Status

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from forcopt.problem.problem import Problem


FEASIBILITY_TOLERANCE = 1e-6
"""A violation up to this size counts as rounding."""

_AGREEMENT = 1e-4
"""The largest accepted difference of the model's and the problem's objective, relative to max(1, value)."""

_PROVED = 0.01
"""The largest gap of a claimed optimum, relative to its value, where the model's unit is above the problem's:
a wider one comes from the solver's tolerance, which counts in the model's unit."""


@dataclass(frozen=True)
class Evaluation:
    """The value and the violations of a decision, computed without a solver.

    Attributes
    ----------
    objective : float
        The value, in the problem's own sense.
    violations : Mapping[str, float], optional
        Amount of violation for each violated requirement; empty for a feasible decision.
    metrics : Mapping[str, float], optional
        Further numbers to show, such as rates.

    Examples
    --------
    >>> Evaluation(3.0).feasible, Evaluation(3.0, {"budget": 0.5}).violation
    (True, 0.5)
    """

    objective: float
    violations: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)

    @property
    def violation(self) -> float:
        """The largest violation, or 0."""
        return max(self.violations.values(), default=0.0)

    @property
    def feasible(self) -> bool:
        """Whether every requirement is met, up to rounding (1e-6)."""
        return self.violation <= FEASIBILITY_TOLERANCE


@dataclass(eq=False)
class Solution:
    """The result of solving a problem.

    Attributes
    ----------
    problem : Problem
        The solved problem; None for a private release.
    decision : Any
        A small domain object; None without a solution.
    evaluation : Evaluation
        The problem's own evaluation of the decision; None without one, and for a private release.
    status : Status
        The strength of the result.
    bound : float
        A bound on the optimum; infinite if none is known.
    method, backend : str
        The method and the backend of the run; the backend is empty for an algorithm without one.
    seconds : float
        Wall time.
    iterations : int, default 0
        In the method's own unit.
    bridges : tuple[str, ...], optional
        The rewritings between the model and the backend's program.
    message : str, default ""
        The solver's or the method's message.
    log : str, default ""
        The printed output.
    trace : list[Improvement], optional
        Objective and bound at each improvement.
    model_solution : ModelSolution, optional
        The solution of the model, if a formulation was used; its objective counts in units of `unit`.
    proved : float, optional
        The guarantee of this run, for a method whose guarantee depends on its options.
    unit : float, default 1.0
        See `Handles`.
    premise : str, default ""
        See `Handles`.
    private : bool, default False
        Whether the decision is a private release, which holds neither problem nor evaluation: whoever has the
        data calls ``problem.evaluate(solution.decision)``. A simulation of one, with a seed, has both; its
        pickle keeps neither, and nothing prints them.
    profile : Profile, optional
        The privacy profile of the release.
    proof : Any, optional
        See `Outcome`; `certify` checks it.
    certificate : Certificate, optional
        The facts that were proved, if ``solve(certify=True)`` asked for them; without the model once stored.

    Notes
    -----
    A pickle carries everything but `model_solution`, because a model may hold a separation oracle, which is
    not picklable. It keeps `reason`; `certify` then formulates the problem anew.

    Examples
    --------
    >>> import forcopt as fo
    >>> s = fo.load("postprocessing/two-groups").solve()
    >>> str(s.status), round(s.objective, 6), s.gap < 1e-9
    ('optimal', 0.260937, True)
    >>> s.evaluation.feasible, s.method, s.backend
    (True, 'lp', 'highs')
    >>> s.decision.probabilities.shape
    (2, 2)
    >>> s.certify().optimal
    True
    """

    problem: Problem
    decision: Any
    evaluation: Evaluation | None
    status: Status
    bound: float
    method: str
    backend: str
    seconds: float
    iterations: int = 0
    bridges: tuple[str, ...] = ()
    message: str = ""
    log: str = field(default="", repr=False)
    trace: list[Improvement] = field(default_factory=list, repr=False)
    model_solution: ModelSolution | None = field(default=None, repr=False)
    proved: float | None = field(default=None, repr=False)
    unit: float = field(default=1.0, repr=False)
    premise: str = field(default="", repr=False)
    private: bool = False
    profile: Any = field(default=None, repr=False)
    proof: Any = field(default=None, repr=False)
    certificate: Certificate | None = field(default=None, repr=False)

    @property
    def objective(self) -> float:
        """The decision's value, evaluated by the problem; NaN without a decision."""
        return self.evaluation.objective if self.evaluation else float("nan")

    @property
    def gap(self) -> float:
        """The relative gap between objective and bound."""
        return relative_gap(self.objective, self.bound)

    @property
    def guarantee(self) -> float | None:
        """The theorem's bound on the distance from the optimum; None for a method without a theorem."""
        if self.proved is not None or self.problem is None:  # a stored private solution has no problem
            return self.proved
        method = self.problem.method(self.method)
        return None if method.guarantee is None else method.guarantee(self.problem)

    @property
    def reason(self) -> str:
        """The reason why there is no solution; empty if there is one.

        For an infeasible problem it is in the words of the problem, the same for all methods: see
        `Problem.infeasibility_reason` and `Problem.least_relaxation`. If the problem gives neither, it is an
        irreducible infeasible subset of the model, or the message of the algorithm. For an unbounded model it
        names the variables of a ray. A few more solves find it; it is kept.
        """
        if self.status.has_solution:
            return ""
        if "_reason" not in self.__dict__:
            found = ""
            if self.status is Status.INFEASIBLE and not self.private:
                change = self.problem.least_relaxation()
                own = self.problem.infeasibility_reason()
                own = own or ("" if self.proof is None else self.message)
                own = own or ("the declared limits contradict each other" if change else "")
                found = "; ".join(filter(None, [own, change]))
            if not found and self.model_solution is not None:
                found = self.model_solution.reason
            self.__dict__["_reason"] = found or self.message
        return str(self.__dict__["_reason"])

    def __getstate__(self) -> dict[str, Any]:
        reason = {} if self.status.has_solution else {"_reason": self.reason}
        held = None if self.certificate is None else replace(self.certificate, model=None)
        state = {**vars(self), "model_solution": None, "certificate": held, **reason}
        if self.private:
            state |= {"problem": None, "evaluation": None, "trace": []}
        return state

    def certify(self, method: str | None = None, **options: Any) -> Certificate:
        """Check the solution in exact rational arithmetic; see `forcopt.loops.certify`.

        A solution of an exact formulation is checked in its model, and one that carries a proof by this
        proof. Any other decision, and the claim of infeasibility, is checked by `Problem.certify`. Objective
        and bound count in the problem's units.

        Parameters
        ----------
        method : str, optional
            An exact formulation in which to check the decision.
        options : Any
            Options of this formulation and of `Problem.certify`, or of the check of the proof. A solution of
            a formulation takes those of `ModelSolution.certify`. With `save`, the file to write the proof to,
            a decision with a proof of its own is checked by `Problem.certify`, too.

        Returns
        -------
        Certificate
            The proved objective and bound, with the way they were proved.

        Raises
        ------
        DeclarationError
            For a private solution: its certificate would be of the data.
        """
        if self.private:
            raise DeclarationError(
                "a private solution has no certificate, which would be of the data; whoever holds these "
                "calls problem.certify(solution.decision)"
            )

        if method is None and self.model_solution is not None and self.problem.method(self.method).exact:
            found = self.model_solution.certify(**options)
            return found.in_units(Fraction(self.unit)).assuming(self.premise)
        if method is None and self.proof is not None and "save" not in options:
            found = self.proof.check(self.problem, **options)
            assert isinstance(found, Certificate)
            return found
        if self.decision is None and self.status is not Status.INFEASIBLE:
            return Certificate(
                None, None, None, None, None, f"there is no decision to check: the status is {self.status}"
            )
        return self.problem.certify(self.decision, method, **options)

    def plot(self, path: str | Path | None = None, *, ax: Any = None, **options: Any) -> Figure:
        """Draw the decision: by its own `plot`, or as the problem sketches it.

        Parameters
        ----------
        path : str or Path, optional
            A file to write, whose ending names the format, such as ``.png``, ``.svg`` or ``.pdf``.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; a new figure if left out.
        options : Any
            Of the decision's own `plot`.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.

        Raises
        ------
        DeclarationError
            If there is no decision.
        """
        if self.decision is None:
            raise DeclarationError(f"there is no decision to draw: the status is {self.status}")
        drawn = self.decision
        if not hasattr(drawn, "plot"):
            if options:
                raise unknown("option of plot", next(iter(options)), ["path", "ax"])
            drawn = self.problem._sketch(drawn, self.evaluation or Evaluation(self.objective))
        figure: Figure = drawn.plot(path=path, ax=ax, **options)
        return figure

    def _repr_html_(self) -> str:
        where = f"@{self.backend}" if self.backend else ""
        facts: dict[str, Any] = {"method": f"{self.method}{where}", "status": self.status}
        if not self.private:
            values = {"objective": self.objective, "bound": self.bound}
            facts |= {name: f"{v:.8g}" for name, v in values.items() if np.isfinite(v)}
            facts |= {"gap": f"{self.gap:.2%}"} if self.status is Status.FEASIBLE and self.gap < 1 else {}
            facts |= {"reason": self.reason} if self.reason else {}
            metrics = self.evaluation.metrics if self.evaluation else {}
            facts |= {name: f"{value:.6g}" for name, value in metrics.items()}
        facts["seconds"] = f"{self.seconds:.3g}"
        shown = "private solution" if self.private else f"solution of {type(self.problem).__name__}"
        own = getattr(self.decision, "_repr_html_", None)
        text = "" if self.decision is None else f"<pre>{html.escape(str(self.decision))}</pre>"
        return facts_html(shown, facts) + (own() if own is not None else text)

    def __repr__(self) -> str:
        where = f"@{self.backend}" if self.backend else ""
        bound = f", bound {self.bound:.8g}" if np.isfinite(self.bound) else ""
        if self.private:
            return f"<{self.status} private solution by {self.method}{where}: {self.seconds:.3g} s>"
        return (
            f"<{self.status} solution of {type(self.problem).__name__} by {self.method}{where}: "
            f"objective {self.objective:.8g}{bound}, {self.seconds:.3g} s>"
        )


def broken_demand(evaluation: Evaluation) -> str:
    """Name the demand that a decision violates most; empty if all hold within the tolerance for claims."""
    if evaluation.violation <= _AGREEMENT:
        return ""
    worst = max(evaluation.violations, key=lambda k: evaluation.violations[k])
    return f"re-evaluated by the problem, the answer violates {worst} by {evaluation.violation:.3g}"


def disagreement(evaluation: Evaluation, result: ModelSolution, handles: Handles, sense: str) -> str:
    """Compare a solver's claim with the problem's evaluation.

    Parameters
    ----------
    evaluation : Evaluation
        The problem's evaluation of the decision.
    result : ModelSolution
        The solver's claim.
    handles : Handles
        Of the formulation.
    sense : str
        The problem's sense, ``"min"`` or ``"max"``.

    Returns
    -------
    str
        The contradiction, or an empty text. A point that is not optimal may understate its decision,
        because a model need not tighten every column.
    """
    if wrong := broken_demand(evaluation):
        return wrong
    if not isinstance(handles.objective, Expression):
        return ""
    sign = 1 if sense == "min" else -1
    off = (evaluation.objective / handles.unit - result.objective) * sign
    if result.status is not Status.OPTIMAL and off < 0:
        off = max((result.bound - evaluation.objective / handles.unit) * sign, 0.0)
    if abs(off) > _AGREEMENT * max(1.0, abs(result.objective)):
        return (
            f"the problem evaluates the answer to {evaluation.objective:.8g}, the model to "
            f"{result.objective * handles.unit:.8g}"
        )
    return ""


def weakened(bound: float, objective: float, handles: Handles, sense: str) -> tuple[float, str]:
    """A solver's bound as far as it holds, in the problem's unit.

    Parameters
    ----------
    bound : float
        As the solver claims it.
    objective : float
        Of its decision, by the problem's evaluation.
    handles : Handles
        Of the formulation; with several objectives, or a model that excludes decisions, nothing is said.
    sense : str
        The problem's sense, ``"min"`` or ``"max"``.

    Returns
    -------
    tuple[float, str]
        The bound, not beyond the decision's own objective; and, for a gap that the solver's tolerance hides
        where the model's unit is above 1, a bound that is weaker by this tolerance, and the reason.

    Examples
    --------
    >>> from forcopt import Model
    >>> from forcopt.problem import Handles
    >>> x = Model().variable("x")
    >>> weakened(1.001, 1.0, Handles(objective=x, decision=None), "min")
    (1.0, '')
    >>> weakened(2.7, 14.2, Handles(objective=x, decision=None, unit=1e9), "min")[0]
    -997.3
    """
    if handles.restricts or not isinstance(handles.objective, Expression):
        return bound, ""
    sign, unit = 1 if sense == "min" else -1, handles.unit
    own = sign * min(sign * bound, sign * objective)
    room = FEASIBILITY_TOLERANCE * unit
    least = max(_PROVED * abs(objective), FEASIBILITY_TOLERANCE)
    if unit <= 1 or not least < abs(objective - own) <= room:
        return own, ""
    reason = (
        f"the solver's tolerance is {room:.3g} in the problem's unit, as its model has an objective in units "
        f"of {unit:.3g}; it does not close the gap between {objective:.6g} and {own:.6g}"
    )
    return own - sign * room, reason
