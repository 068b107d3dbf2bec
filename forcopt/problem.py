"""Problems, the methods that solve them, and the solutions they give."""

from __future__ import annotations

import inspect
import json
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from forcopt.clock import Improvement
from forcopt.declaration import Declared
from forcopt.errors import DeclarationError, UnknownNameError, unknown
from forcopt.language.expression import Expression
from forcopt.language.model import Model, Variable
from forcopt.language.objective import Objective, maximize, minimize
from forcopt.loops.solution import ModelSolution, relative_gap
from forcopt.status import Status

if TYPE_CHECKING:
    from forcopt.loops.certify import Certificate

__all__ = [
    "Evaluation",
    "Handles",
    "Method",
    "Outcome",
    "Problem",
    "Solution",
    "examples",
    "load",
    "problem_classes",
]

FEASIBILITY_TOLERANCE = 1e-6
"""Violations up to this count as rounding."""


@dataclass(frozen=True)
class Evaluation:
    """What a problem says of a decision, without any solver.

    Attributes:
        objective: its value, in the problem's own sense.
        violations: for each demand that the decision fails, by how much; empty if it is feasible.
        metrics: further numbers worth showing, such as rates.
    """

    objective: float
    violations: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)

    @property
    def violation(self) -> float:
        """The largest violation; 0 if there is none."""
        return max(self.violations.values(), default=0.0)

    @property
    def feasible(self) -> bool:
        """Whether every demand is met, up to rounding (1e-6)."""
        return self.violation <= FEASIBILITY_TOLERANCE


class Handles(SimpleNamespace):
    """What a formulation wrote into a model, by name.

    Args:
        objective: a scalar expression (taken in the problem's sense), or an `Objective`.
        decision: turns a `ModelSolution` into the problem's decision.
        start: turns a decision into the values of variables: to start a search there, and to certify it. NaN
            where a decision says nothing; the other columns must follow from these. Raises `DeclarationError`
            for a decision that the formulation cannot hold. None if it takes none.
        parts: variables and expressions for those who compose; and ``unit``, what 1 of the model's objective
            is worth in the problem's (1 by default). A formulation whose objective would be tiny or huge
            states it in such units, since solvers' tolerances are absolute. ``premise`` says what it takes
            for granted without an exact proof, for certificates to repeat.
    """

    objective: Expression | Objective
    decision: Callable[[ModelSolution], Any]
    start: Callable[[Any], Mapping[Variable, Any]] | None
    unit: float
    premise: str

    def __init__(
        self,
        objective: Expression | Objective,
        decision: Callable[[ModelSolution], Any],
        start: Callable[[Any], Mapping[Variable, Any]] | None = None,
        **parts: Any,
    ) -> None:
        given = {"objective": objective, "decision": decision, "start": start, **parts}
        super().__init__(**{"unit": 1.0, "premise": "", **given})

    def start_at(self, decision: Any) -> Mapping[Variable, Any]:
        """The values of variables at a decision.

        Raises:
            DeclarationError: if there are none.
        """
        if self.start is None:
            raise DeclarationError("the formulation takes no decision")
        return self.start(decision)


@dataclass
class Outcome:
    """What an algorithm returns.

    Attributes:
        decision: or None if there is none.
        bound: on the optimum, in the problem's sense; None if the method gives none.
        status: if it differs from OPTIMAL for an exact method and APPROXIMATE for another.
        iterations: as the method counts them.
        message: why it ended, if that needs saying.
        trace: what was known when.
        log: what it printed.
        guarantee: what the method's theorem gives with the options of this run, if they matter.
        private: whether the decision is a private release (or a simulation of one), so that nothing else of
        the
            data may go with it.
    """

    decision: Any
    bound: float | None = None
    status: Status | None = None
    iterations: int = 0
    message: str = ""
    trace: list[Improvement] = field(default_factory=list)
    log: str = ""
    guarantee: float | None = None
    private: bool = False


@dataclass(frozen=True)
class Method:
    """A way to solve a problem.

    Attributes:
        name: the field's name for it.
        kind: a formulation runs on any backend that can take it; an algorithm is a program of its own.
        exact: whether it proves optimality.
        guarantee: for an approximate one, the theorem's bound: takes the problem, gives the largest possible
            distance of the objective from the optimum; None if there is no theorem.
        cites: paper and theorem.
        options: its own options with their defaults.
        function: the code.
        prepare: what `forcopt.compare` calls before the clock of a run starts, such as a rehearsal for which
            code is compiled; None if nothing is to be prepared.
    """

    name: str
    kind: Literal["formulation", "algorithm"]
    exact: bool
    guarantee: Callable[[Any], float] | None
    cites: str
    options: Mapping[str, Any]
    function: Callable[..., Any] = field(repr=False)
    prepare: Callable[[], object] | None = field(default=None, repr=False)

    @property
    def summary(self) -> str:
        """The first paragraph of its documentation, on one line."""
        return " ".join((inspect.getdoc(self.function) or "").partition("\n\n")[0].split())


_COMMON = ("backend", "time_limit", "start", "seed", "progress", "on_improvement")
"""Options that mean the same for every method; an algorithm gets those that its signature names."""


def _options(function: Callable[..., Any], skip: int) -> dict[str, Any]:
    parameters = list(inspect.signature(function).parameters.values())[skip:]
    return {p.name: p.default for p in parameters if p.name not in _COMMON}


class Problem(Declared):
    """The base of all problems: a frozen, validated declaration with the methods registered for it.

    A subclass states its fields, defines `evaluate`, and names its `default_method`. Its methods are
    registered beside their code::

        @MyProblem.formulation("lp", exact=True, cites="Author (2020), equation (3)")
        def lp(problem: MyProblem, model: Model) -> Handles: ...

        @MyProblem.algorithm("greedy", exact=False)
        def greedy(problem: MyProblem, *, seed: int | None = None) -> Outcome: ...
    """

    tag: ClassVar[str] = "model"
    sense: ClassVar[Literal["min", "max"]] = "min"
    default_method: ClassVar[str] = ""
    family: ClassVar[str] = ""
    """The name of its shipped examples before the slash, such as ``postprocessing``."""

    _methods: ClassVar[dict[str, Method]] = {}

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        cls._methods = dict(cls._methods)

    # -- methods -------------------------------------------------------------------------------------------

    @classmethod
    def formulation(
        cls, name: str, *, exact: bool, guarantee: Callable[[Any], float] | None = None, cites: str = ""
    ) -> Callable[[Callable[..., Handles]], Callable[..., Handles]]:
        """Register a function ``(problem, model, **options) -> Handles`` that writes into the model."""

        def register(function: Callable[..., Handles]) -> Callable[..., Handles]:
            options = _options(function, 2)
            cls._methods[name] = Method(name, "formulation", exact, guarantee, cites, options, function)
            return function

        return register

    @classmethod
    def algorithm(
        cls,
        name: str,
        *,
        exact: bool,
        guarantee: Callable[[Any], float] | None = None,
        cites: str = "",
        prepare: Callable[[], object] | None = None,
    ) -> Callable[[Callable[..., Outcome]], Callable[..., Outcome]]:
        """Register a function ``(problem, **options) -> Outcome`` that solves the problem by itself."""

        def register(function: Callable[..., Outcome]) -> Callable[..., Outcome]:
            options = _options(function, 1)
            method = Method(name, "algorithm", exact, guarantee, cites, options, function, prepare)
            cls._methods[name] = method
            return function

        return register

    @property
    def methods(self) -> Mapping[str, Method]:
        """The registered methods by name."""
        return dict(type(self)._methods)

    def method(self, name: str | None = None) -> Method:
        """Give a method by name, or the default one.

        Raises:
            UnknownNameError: with the nearest name.
        """
        wanted = name or self.default_method
        if wanted not in self._methods:
            raise unknown(f"method of {type(self).__name__}", wanted, list(self._methods))
        return self._methods[wanted]

    # -- what a problem does ---------------------------------------------------------------------------------

    def evaluate(self, decision: Any) -> Evaluation:
        """Judge a decision: objective and violations, without any solver."""
        raise NotImplementedError(f"{type(self).__name__} must define evaluate")

    def declare(self, model: Model, method: str | None = None, **options: Any) -> Handles:
        """Write the problem into `model` by a formulation (without setting the objective).

        Args:
            model: to write to; may hold other problems already.
            method: a formulation; the default method if that is one.
            options: of the formulation.

        Returns:
            The variables and expressions by name, with ``objective`` and ``decision``.
        """
        chosen = self.method(method)
        if chosen.kind != "formulation":
            names = [m.name for m in self._methods.values() if m.kind == "formulation"]
            raise DeclarationError(f"method {chosen.name!r} is no formulation; those are: {', '.join(names)}")
        handles = chosen.function(self, model, **_checked(chosen, options))
        assert isinstance(handles, Handles)
        return handles

    def to_model(self, method: str | None = None, **options: Any) -> Model:
        """Give the model, with its objective, that a formulation solves: see `formulate`."""
        return self.formulate(method, **options)[0]

    def formulate(self, method: str | None = None, **options: Any) -> tuple[Model, Handles]:
        """Give the model, with its objective, that a formulation solves: to look at, write or hand over.

        Args:
            method: a formulation; the default method if that is one.
            options: of the formulation.

        Returns:
            The model, and its handles: ``handles.decision(model.solve())`` is a decision, and the model's
            objective counts in units of ``handles.unit``.
        """
        model = Model(type(self).__name__)
        handles = self.declare(model, method, **options)
        goal = handles.objective
        if isinstance(goal, Expression):
            goal = minimize(goal) if self.sense == "min" else maximize(goal)
        model.optimize(goal)
        return model, handles

    def solve(
        self,
        method: str | None = None,
        *,
        backend: str | None = None,
        time_limit: float | None = None,
        gap: float | None = None,
        start: Any = None,
        seed: int | np.random.Generator | None = None,
        threads: int | None = None,
        log: bool = False,
        progress: bool = False,
        on_improvement: Callable[[Improvement], bool | None] | None = None,
        **options: Any,
    ) -> Solution:
        """Solve the problem.

        Args:
            method: a name among `methods`; the default one if left out. ``"flow@scip"`` names a backend too.
            backend: for a formulation, or an algorithm that uses one; ``highs`` by default.
            time_limit: seconds.
            gap: the relative gap at which a search may stop (formulations).
            start: a decision to start from, for formulations and algorithms that take one.
            seed: an int or a generator; whatever is random repeats with it.
            threads: how many the solver may use (formulations).
            log: show the solver's output (formulations).
            progress: show a progress bar, where the method has steps to show.
            on_improvement: called with each improvement; stop by returning True.
            options: the method's own, see ``p.methods[name].options``.

        Raises:
            UnknownNameError: for the method or backend.
            DeclarationError: for an option that the method does not have, or a start that it cannot take.
        """
        name, _, at = (method or "").partition("@")
        if at and backend and at != backend:
            raise DeclarationError(f"two backends are named: {at!r} in the method and {backend!r}")
        chosen = self.method(name or None)
        own = _checked(chosen, options)
        where = backend or at or None
        common: dict[str, Any] = {
            "backend": where,
            "time_limit": time_limit,
            "start": start,
            "seed": seed,
            "progress": progress,
            "on_improvement": on_improvement,
        }
        began = time.perf_counter()
        if chosen.kind == "algorithm":
            for unused, value in (("gap", gap), ("threads", threads), ("log", log or None)):
                if value is not None:
                    raise DeclarationError(f"method {chosen.name!r} has no option {unused!r}")
            outcome = chosen.function(self, **own, **_wanted(chosen, common))
            return self._from_outcome(chosen, outcome, where, time.perf_counter() - began)
        model, handles = self.formulate(chosen.name, **own)
        said = model.solve(
            where or "highs",
            time_limit=time_limit,
            gap=gap,
            start=None if start is None else handles.start_at(start),
            seed=seed,
            threads=threads,
            log=log,
            on_improvement=_in_problem_units(on_improvement, handles.unit),
        )
        return self._from_model(chosen, handles, said, time.perf_counter() - began)

    def _from_outcome(
        self, method: Method, outcome: Outcome, backend: str | None, seconds: float
    ) -> Solution:
        judged = None if outcome.decision is None else self.evaluate(outcome.decision)
        status = outcome.status
        if status is None:
            found = Status.OPTIMAL if method.exact else Status.APPROXIMATE
            status = found if judged is not None else Status.FAILED
        bound = outcome.bound
        if bound is None and status is Status.OPTIMAL and judged is not None:
            bound = judged.objective
        return Solution(
            problem=self,
            decision=outcome.decision,
            evaluation=judged,
            status=status,
            bound=self._no_bound if bound is None else bound,
            method=method.name,
            backend=backend or "",
            seconds=seconds,
            iterations=outcome.iterations,
            message=outcome.message,
            log=outcome.log,
            trace=outcome.trace,
            proved=outcome.guarantee,
            private=outcome.private,
        )

    def _from_model(self, method: Method, handles: Handles, said: ModelSolution, seconds: float) -> Solution:
        decision = handles.decision(said) if said.status.has_solution else None
        judged = None if decision is None else self.evaluate(decision)
        status, message = said.status, said.message
        if judged is not None and not method.exact:
            status = Status.APPROXIMATE
        elif judged is not None:
            wrong = _disagreement(judged, said, handles, self.sense)
            if wrong:
                status, message = Status.FAILED, f"{wrong}; {said.backend} said: {said.message}"
        return Solution(
            problem=self,
            decision=decision,
            evaluation=judged,
            status=status,
            bound=said.bound * handles.unit,
            method=method.name,
            backend=said.backend,
            seconds=seconds,
            iterations=said.iterations,
            bridges=said.bridges,
            message=message,
            log=said.log,
            trace=[_scaled(step, handles.unit) for step in said.trace],
            model_solution=said,
            unit=handles.unit,
            premise=handles.premise,
        )

    def certify(self, decision: Any, method: str | None = None, **options: Any) -> Certificate:
        """Check any decision in exact rational arithmetic, as a point of a formulation.

        The formulation must be exact, and say which values of its variables a decision means. The columns
        that do not follow from these are completed by HiGHS; then point and bound are proved as those of any
        model, see `forcopt.loops.certify`. Objective and bound count in the problem's units.

        Args:
            decision: as `evaluate` takes it; None asks whether any is feasible.
            method: an exact formulation; by default the first that takes problem and decision, linear ones
                first, for of others nothing is proved but the point.
            options: of the formulation.

        Returns:
            The certificate; its `how` says which formulation was used, or why none could be.

        Raises:
            DeclarationError: if a `method` is named that is no exact formulation, or does not take this.
        """
        from forcopt.loops.certify import Certificate, is_provable
        from forcopt.loops.completion import completed

        refused: list[str] = []
        found: list[tuple[Method, Model, Handles, Mapping[Variable, Any]]] = []
        for chosen in [self.method(method)] if method else self._methods.values():
            exact = chosen.kind == "formulation" and chosen.exact
            if not exact and method is None:
                continue
            try:
                if not exact:
                    raise DeclarationError("decisions are certified by exact formulations only")
                model, handles = self.formulate(chosen.name, **options)
                values = {} if decision is None else handles.start_at(decision)
            except DeclarationError as error:
                if method is not None:
                    raise DeclarationError(f"method {method!r} cannot certify this: {error}") from None
                refused.append(f"{chosen.name}: {error}")
                continue
            found.append((chosen, model, handles, values))
            if is_provable(model):
                break
        if not found:
            why = "; ".join(refused) or "the problem has none"
            return Certificate(None, None, None, None, None, f"no exact formulation takes this ({why})")
        chosen, model, handles, values = found[-1] if is_provable(found[-1][1]) else found[0]
        said, complete = completed(model, values, lambda: self.to_model(chosen.name, **options))
        certificate = (
            said.certify(FEASIBILITY_TOLERANCE).in_units(Fraction(handles.unit)).assuming(handles.premise)
        )
        where = f"in formulation {chosen.name!r}: "
        if not complete and decision is not None:
            where += "no point has the values that the decision gives: "
        return replace(certificate, how=where + certificate.how)

    @property
    def _no_bound(self) -> float:
        return float("-inf") if self.sense == "min" else float("inf")

    # -- files -----------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the declaration to a JSON file; `load` reads it.

        Raises:
            DeclarationError: if the path does not end in ``.json``.
        """
        if Path(path).suffix != ".json":
            raise DeclarationError(f"cannot save to {path}: the name must end in .json")
        Path(path).write_text(json.dumps(self.to_dict(), indent=1) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a declaration of this class from a file or a shipped example."""
        problem = load(path)
        if not isinstance(problem, cls):
            raise DeclarationError(f"{path} declares a {type(problem).__name__}, not a {cls.__name__}")
        return problem


_AGREEMENT = 1e-4
"""How far the model's and the problem's own objective may differ, relative to max(1, value)."""


def _disagreement(judged: Evaluation, said: ModelSolution, handles: Handles, sense: str) -> str:
    """What the problem itself finds wrong with an answer that a solver calls right; empty if nothing.

    A decision may be better than a point that is not optimal says: a model need not press its columns down.
    """
    if judged.violation > _AGREEMENT:
        worst = max(judged.violations, key=lambda k: judged.violations[k])
        return f"re-evaluated by the problem, the answer violates {worst} by {judged.violation:.3g}"
    same_objective = isinstance(handles.objective, Expression)
    off = (judged.objective / handles.unit - said.objective) * (1 if sense == "min" else -1)
    beyond = (said.bound - judged.objective / handles.unit) * (1 if sense == "min" else -1)
    if said.status is not Status.OPTIMAL and off < 0:
        off = max(beyond, 0.0)
    if same_objective and abs(off) > _AGREEMENT * max(1.0, abs(said.objective)):
        return (
            f"the problem evaluates the answer to {judged.objective:.8g}, the model to "
            f"{said.objective * handles.unit:.8g}"
        )
    return ""


def _scaled(step: Improvement, unit: float) -> Improvement:
    return replace(step, objective=step.objective * unit, bound=step.bound * unit)


def _in_problem_units(
    call: Callable[[Improvement], bool | None] | None, unit: float
) -> Callable[[Improvement], bool | None] | None:
    return None if call is None else lambda step: call(_scaled(step, unit))


def _checked(method: Method, options: Mapping[str, Any]) -> dict[str, Any]:
    for name in options:
        if name not in method.options:
            raise unknown(f"option of method {method.name!r}", name, list(method.options))
    return dict(options)


def _wanted(method: Method, common: Mapping[str, Any]) -> dict[str, Any]:
    """The common options that an algorithm's signature names; the others must not have been given."""
    names = inspect.signature(method.function).parameters
    given = {k: v for k, v in common.items() if v is not None and v is not False}
    for name in given:
        if name not in names and name in ("backend", "start"):
            why = "uses no backend" if name == "backend" else "takes no start"
            raise DeclarationError(f"method {method.name!r} {why}, so {given[name]!r} cannot be chosen")
    return {k: v for k, v in given.items() if k in names}


@dataclass(eq=False)
class Solution:
    """A judged decision.

    Attributes:
        problem: which.
        decision: a small domain object; None if there is none.
        evaluation: the problem's own judgement of it.
        status: how far it can be trusted.
        bound: on the optimum; infinite if none is known.
        method, backend: what found it.
        seconds: wall time.
        iterations: as the method counts them.
        bridges: rewritings applied on the way to the backend.
        message: the solver's or method's own words.
        log: what it printed.
        trace: what was known when.
        model_solution: what the solver said, when a formulation was used; its objective counts in units of
            `unit`.
        proved: the guarantee of a method for which it depends on its options.
        premise: what the formulation takes for granted, see `Handles`.
        private: whether the decision is a private release. The evaluation is then for whoever holds the data:
            a pickle keeps neither it nor the problem, and nothing prints it.
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

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        if self.private:
            state |= {"problem": None, "evaluation": None, "model_solution": None, "trace": []}
        return state

    @property
    def objective(self) -> float:
        """The decision's value, as the problem evaluates it; NaN without a decision."""
        return self.evaluation.objective if self.evaluation else float("nan")

    @property
    def gap(self) -> float:
        """The relative gap between objective and bound."""
        return relative_gap(self.objective, self.bound)

    @property
    def guarantee(self) -> float | None:
        """The theorem's bound on the distance from the optimum for this instance, if the method has one."""
        if self.proved is not None:
            return self.proved
        method = self.problem.method(self.method)
        return None if method.guarantee is None else method.guarantee(self.problem)

    @property
    def reason(self) -> str:
        """Why there is no optimum, where that is known; else empty."""
        if self.model_solution is not None:
            return self.model_solution.reason
        return "" if self.status.has_solution else self.message

    def certify(self, method: str | None = None, **options: Any) -> Certificate:
        """Check the solution in exact rational arithmetic; see `forcopt.loops.certify`.

        What a solver found in an exact formulation is checked in its model; any other decision, or that there
        is none, by `Problem.certify`. Objective and bound count in the problem's units.

        Args:
            method: an exact formulation in which to check the decision.
            options: of that formulation.
        """
        from forcopt.loops.certify import Certificate

        if method is None and self.model_solution is not None and self.problem.method(self.method).exact:
            found = self.model_solution.certify()
            return found.in_units(Fraction(self.unit)).assuming(self.premise)
        if self.decision is None and self.status is not Status.INFEASIBLE:
            return Certificate(
                None, None, None, None, None, f"there is no decision to check: the status is {self.status}"
            )
        return self.problem.certify(self.decision, method, **options)

    def __repr__(self) -> str:
        where = f"@{self.backend}" if self.backend else ""
        bound = f", bound {self.bound:.8g}" if np.isfinite(self.bound) else ""
        if self.private:
            return f"<{self.status} private solution by {self.method}{where}: {self.seconds:.3g} s>"
        return (
            f"<{self.status} solution of {type(self.problem).__name__} by {self.method}{where}: "
            f"objective {self.objective:.8g}{bound}, {self.seconds:.3g} s>"
        )


# -- finding problems --------------------------------------------------------------------------------------


@cache
def problem_classes() -> dict[str, type[Problem]]:
    """All problem classes by name: those of the entry-point group ``forcopt.models``."""
    found: dict[str, type[Problem]] = {}
    for point in entry_points(group="forcopt.models"):
        cls = point.load()
        if not (isinstance(cls, type) and issubclass(cls, Problem)):
            raise DeclarationError(
                f"entry point {point.name!r} of group forcopt.models is no Problem: {cls!r}"
            )
        found[point.name] = cls
    return found


def examples() -> dict[str, Path]:
    """The shipped examples: name, such as ``postprocessing/compas``, to file."""
    found: dict[str, Path] = {}
    for cls in problem_classes().values():
        folder = Path(inspect.getfile(cls)).parent / "examples"
        for path in sorted(folder.glob("*.json")) + sorted(folder.glob("*.toml")):
            found[f"{cls.family}/{path.stem}"] = path
    return found


def load(spec: str | Path) -> Problem:
    """Read a declaration from a JSON or TOML file, or a shipped example by name.

    Raises:
        FileNotFoundError: if there is no such file or example.
        DeclarationError: if the file is no declaration, with the field, the value and the rule.
    """
    path = Path(spec)
    if not path.exists():
        known = examples()
        if str(spec) not in known:
            from difflib import get_close_matches

            near = get_close_matches(str(spec), known, n=1)
            hint = f"; did you mean '{near[0]}'? known" if near else "; examples"
            raise FileNotFoundError(f"no file or example {str(spec)!r}{hint}: {', '.join(known) or 'none'}")
        path = known[str(spec)]
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except ValueError as error:
        raise DeclarationError(
            f"{path} is not valid {path.suffix.lstrip('.').upper() or 'JSON'}: {error}"
        ) from None
    if not isinstance(data, dict) or "model" not in data:
        raise DeclarationError(f"{path} declares nothing: it needs a key 'model' that names the problem")
    problem_classes()
    try:
        return Problem.from_dict(data)
    except UnknownNameError as error:
        raise UnknownNameError(f"{path}: {error}") from None
    except DeclarationError as error:
        raise DeclarationError(f"{path}: {error}") from None
