"""Problems: frozen, validated declarations with registered methods."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from pydantic import model_validator

from forcopt.arrays import one_seed, rounded_up
from forcopt.backends.registry import get_backend
from forcopt.clock import Deadline, Improvement, OnImprovement, raising_interrupts
from forcopt.declaration import Declared
from forcopt.errors import DeclarationError, NotInstalledError, UnsupportedError, check_known
from forcopt.language.expression import Expression
from forcopt.language.model import Model
from forcopt.language.objective import maximize, minimize
from forcopt.language.variable import Variable
from forcopt.loops.certify import Certificate, is_provable
from forcopt.loops.certify.certify import completed
from forcopt.loops.solve import default_backend
from forcopt.memory import memory_limited
from forcopt.notebook import brief, facts_html
from forcopt.privacy import ObservedGroups
from forcopt.problem.drawing import Sketch
from forcopt.problem.method import COMMON_OPTIONS, RANKS, Handles, Method, Outcome, Rank
from forcopt.problem.progress import ProgressLine, show_progress
from forcopt.problem.solution import (
    FEASIBILITY_TOLERANCE,
    Evaluation,
    Solution,
    broken_demand,
    disagreement,
    weakened,
)
from forcopt.status import Status

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Text(str):
    """A text that is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _check_private(method: Method, outcome: Outcome) -> None:
    if outcome.private and not method.private:
        raise DeclarationError(f"method {method.name!r}: a private outcome; register it with private=True")


def _named(value: object) -> str:
    """A value by its type, for messages."""
    return "None" if value is None else f"an object of type {type(value).__name__}"


_WHOLE = {"reduce": False, "all_rows": True}
"""Options of formulations, by the values that keep all decisions whatever the objective is."""


class _RegisteredMethods:
    """The methods of a problem class and of its bases by name, by rank, read from the class or an instance.

    The lookup is made at each access, so that a method registered later on a base reaches its subclasses.
    """

    def __get__(self, instance: object, owner: type[Problem]) -> dict[str, Method]:
        found: dict[str, Method] = {}
        for cls in reversed(owner.__mro__):
            found |= cls.__dict__.get("_own_methods", {})
        if owner.default_method in found:
            found[owner.default_method] = replace(found[owner.default_method], rank="default")
        return dict(sorted(found.items(), key=lambda item: RANKS.index(item[1].rank)))


class Problem(Declared):
    """The base of all problems: a frozen, validated declaration with registered methods.

    A subclass states its fields, defines `evaluate`, and names its `default_method`. Its methods are
    registered beside their code::

        @MyProblem.formulation("lp", exact=True, cites="Author (2020), equation (3)")
        def lp(problem: MyProblem, model: Model) -> Handles: ...

        @MyProblem.algorithm("greedy")
        def greedy(problem: MyProblem, *, seed: int | None = None) -> Outcome: ...

    A subclass inherits the methods of its bases, also ones that are registered later.

    Attributes
    ----------
    sense : {"min", "max"}
        Whether `evaluate`'s objective is minimized or maximized.
    default_method : str
        The method of `solve` without a name.
    ideal : float or None
        A value that no decision improves on, whatever the data, such as 0 for a sum of distances; None if
        there is none. Bounds that are weaker are replaced by it.
    family : str
        The first part of the names of its examples, such as ``postprocessing``.
    refuses_channel : str
        Why it takes no groups seen through a channel; empty if it does.
    reason_first : bool
        Whether the driver asks `infeasibility_reason` before it runs an algorithm.
    methods : Mapping[str, Method]
        The registered methods by name, of a class or an instance.

    Examples
    --------
    >>> import forcopt as fo
    >>> class Cheapest(fo.Problem):
    ...     default_method = "scan"
    ...     prices: tuple[float, ...]
    ...     def evaluate(self, decision):
    ...         return fo.Evaluation(self.prices[decision])
    >>> @Cheapest.algorithm("scan", exact=True)
    ... def scan(problem):
    ...     return fo.Outcome(problem.prices.index(min(problem.prices)))
    >>> s = Cheapest(prices=(3.0, 1.0, 2.0)).solve()
    >>> s.decision, s.objective, str(s.status)
    (1, 1.0, 'optimal')
    """

    tag: ClassVar[str] = "model"
    sense: ClassVar[Literal["min", "max"]] = "min"
    default_method: ClassVar[str] = ""
    ideal: ClassVar[float | None] = None
    family: ClassVar[str] = ""
    refuses_channel: ClassVar[str] = "its methods need the true groups"
    reason_first: ClassVar[bool] = False
    methods: ClassVar[Mapping[str, Method]] = _RegisteredMethods()  # type: ignore[assignment]

    _own_methods: ClassVar[dict[str, Method]] = {}
    _seeking: ClassVar[bool] = False

    @model_validator(mode="before")
    @classmethod
    def _refuses_channel(cls, data: Any) -> Any:
        """Refuse groups that were seen through a channel, with the reason, where they are not taken."""
        for name, value in data.items() if isinstance(data, Mapping) else ():
            for column in value.values() if isinstance(value, Mapping) else (value,):
                cls.check_channel(name, column)
        return data

    @classmethod
    def check_channel(cls, name: str, column: Any) -> None:
        """Refuse a column of groups, by its name, if it was seen through a channel; see `refuses_channel`.

        Raises
        ------
        DeclarationError
            With the reason of the class.
        """
        if cls.refuses_channel and isinstance(column, ObservedGroups):
            raise DeclarationError(
                f"{name}: {cls.__name__} takes no groups seen through a channel: {cls.refuses_channel}"
            )

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        if isinstance(cls.sense, str) and cls.sense not in ("min", "max"):  # it may be a property
            raise DeclarationError(f"{cls.__name__}: sense is {cls.sense!r}; it must be 'min' or 'max'")
        super().__pydantic_init_subclass__(**kwargs)
        cls._own_methods = {}

    # -- methods -------------------------------------------------------------------------------------------

    @classmethod
    def formulation(
        cls,
        name: str,
        *,
        exact: bool = False,
        guarantee: Callable[[Any], float] | None = None,
        cites: str = "",
        rank: Rank = "alternative",
        whole: str = "",
        rules: tuple[str, ...] = (),
    ) -> Callable[[Callable[..., Handles]], Callable[..., Handles]]:
        """Register a function ``(problem, model, **options) -> Handles`` that writes into the model.

        Parameters
        ----------
        name : str
            The field's name for the method.
        exact : bool, default False
            Whether an optimum of the model is an optimum of the problem.
        guarantee, cites, rank, whole, rules
            See `Method`.

        Returns
        -------
        Callable
            The decorator.
        """

        return cls._registered(name, "formulation", exact, guarantee, cites, rank, whole=whole, rules=rules)

    @classmethod
    def algorithm(
        cls,
        name: str,
        *,
        exact: bool = False,
        guarantee: Callable[[Any], float] | None = None,
        cites: str = "",
        rank: Rank = "alternative",
        prepare: Callable[[], object] | None = None,
        private: bool = False,
        rules: tuple[str, ...] = (),
    ) -> Callable[[Callable[..., Outcome]], Callable[..., Outcome]]:
        """Register a function ``(problem, **options) -> Outcome`` that solves the problem by itself.

        Parameters
        ----------
        name : str
            The field's name for the method.
        exact : bool, default False
            Whether the algorithm proves optimality.
        guarantee, cites, rank, prepare, private, rules
            See `Method`.

        Returns
        -------
        Callable
            The decorator.
        """

        return cls._registered(
            name, "algorithm", exact, guarantee, cites, rank, prepare, private, rules=rules
        )

    @classmethod
    def _registered(cls, name: str, *facts: Any, **more: Any) -> Callable[[_Function], _Function]:
        def register(function: _Function) -> _Function:
            cls._own_methods[name] = Method.of(function, name, *facts, **more)
            return function

        return register

    def choose_method(self) -> str:
        """Choose the default method for this instance.

        Returns
        -------
        str
            `default_method`; a class whose methods take different instances, or are best at different sizes,
            overrides this.
        """
        return self.default_method

    @property
    def is_private(self) -> bool:
        """Whether it declares a private release: then nothing computed from its data may be published.

        Without a seed, `forcopt.compare` and `forcopt.sweep` keep neither the declaration nor its fingerprint
        of such a problem, and the command line shows no number of its data.
        """
        return any(m.private for m in self.methods.values()) and self.method().private

    def method(self, name: str | None = None) -> Method:
        """Give a method by name, or the default one.

        Parameters
        ----------
        name : str, optional
            A name among `methods`; if left out or ``"auto"``, the one that `choose_method` names.

        Returns
        -------
        Method
            With its kind, guarantee and options.

        Raises
        ------
        UnknownNameError
            With the nearest name.
        """
        wanted = self.choose_method() if not name or name == "auto" else name
        known = self.methods
        if not wanted:
            raise DeclarationError(
                f'{type(self).__name__} has no default method: write default_method = "NAME" in the '
                f'class, or name a method: solve("NAME"); known: {", ".join(known) or "none"}'
            )
        check_known(f"method of {type(self).__name__}", wanted, known)
        return known[wanted]

    # -- evaluation and models -------------------------------------------------------------------------------

    def _sketch(self, decision: Any, evaluation: Evaluation) -> Any:
        """An object whose `plot` draws a decision that has none, with what was found as its title."""
        return Sketch(f"The objective of the decision is {evaluation.objective:.6g}")

    def evaluate(self, decision: Any) -> Evaluation:
        """Compute the objective and the violations of a decision, without a solver.

        Parameters
        ----------
        decision : Any
            A decision of this problem.

        Returns
        -------
        Evaluation
            Objective, violations and metrics.
        """
        raise NotImplementedError(f"{type(self).__name__} must define evaluate")

    def __repr_args__(self) -> Iterator[tuple[str, str]]:
        for name in type(self).model_fields:
            yield name, _Text(brief(getattr(self, name)))

    def _repr_html_(self) -> str:
        fields = {name: brief(getattr(self, name)) for name in type(self).model_fields}
        methods = ", ".join(f"{n} (default)" if n == self.method().name else n for n in self.methods)
        return facts_html(f"problem {type(self).__name__}", fields | {"methods": methods})

    def infeasibility_reason(self) -> str:
        """Give a reason why no decision is feasible, if the data show one at once; else an empty text."""
        return ""

    def least_relaxation(self, time_limit: float = 10.0) -> str:
        """Propose the least changes of declared limits with which a decision exists.

        A problem with limits that may contradict each other overrides this, mostly by `relaxed_rows`.

        Parameters
        ----------
        time_limit : float, default 10.0
            Seconds.

        Returns
        -------
        str
            In the words of the problem; empty without limits to move, or if no change was found in time.
        """
        return ""

    def relaxed_rows(self, method: str, part: str, time_limit: float, **options: Any) -> str:
        """Find the least changes of some rows of a formulation with which it is feasible.

        Parameters
        ----------
        method : str
            An exact formulation.
        part : str
            The name of the handle with the constraints that may change: one, or a list.
        time_limit : float
            Seconds.
        options : Any
            Options of the formulation.

        Returns
        -------
        str
            The rows with their changes, which have the least sum; empty if the formulation does not take the
            problem, has no rows of this part, or if no change is enough or none was found in time.
        """
        try:
            model, handles = self.formulate(method, **options)
            rows = getattr(handles, part)
            rows = rows if isinstance(rows, Sequence) else [rows]
            found = model.feasibility_relaxation(constraints=rows, time_limit=time_limit)
        except DeclarationError:
            return ""
        changes = [
            f"{'raise' if c.side == '<=' else 'lower'} the limit of {c.name} by {rounded_up(c.amount):.6g}"
            for c in found.changes
        ]
        return f"the least relaxation: {'; '.join(changes)}" if changes else ""

    def declare(self, model: Model, method: str | None = None, **options: Any) -> Handles:
        """Write the problem into `model` by a formulation, without setting the objective.

        The model holds every decision of the problem, for constraints and objectives of your own: unlike
        `formulate`, this sets ``reduce=False`` and ``all_rows=True`` where the formulation has such an
        option, so that its own objective makes no part of it redundant. A linear program that is whole only
        by itself is written with integers, as the formulation `Method.whole`.

        Parameters
        ----------
        model : Model
            The model to extend; it may hold other problems already.
        method : str, optional
            A formulation; by default the default method, or the first formulation if that is an algorithm.
        options : Any
            Options of the formulation.

        Returns
        -------
        Handles
            The variables and expressions by name, with ``objective`` and ``decision``.

        Raises
        ------
        DeclarationError
            If the method is not a formulation.

        Examples
        --------
        >>> import forcopt as fo
        >>> from forcopt.models import StratifiedAllocation
        >>> p = StratifiedAllocation(sizes=[100, 50, 50], deviations=[1, 4, 2], sample_size=40)
        >>> m = fo.Model()
        >>> parts = p.declare(m)
        >>> _ = m.subject_to(parts.sizes[0] >= 20)
        >>> m.minimize(parts.objective)
        >>> m.solve()[parts.sizes].round().tolist(), p.solve().decision.sizes.tolist()
        ([20.0, 13.0, 7.0], [10.0, 20.0, 10.0])
        """
        chosen = self._formulation(method)
        if chosen.whole:
            chosen = self.method(chosen.whole)
        return self._write(chosen, model, {k: v for k, v in _WHOLE.items() if k in chosen.options} | options)

    def _formulation(self, name: str | None) -> Method:
        """The method of this name; without one, a formulation if the class has one."""
        usual = self.method(name)
        if name or usual.kind == "formulation":
            return usual
        every = (m for m in self.methods.values() if m.kind == "formulation" and m.rank != "published")
        return next(every, usual)

    def _write(self, chosen: Method, model: Model, options: Mapping[str, Any]) -> Handles:
        if chosen.kind != "formulation":
            names = [m.name for m in self.methods.values() if m.kind == "formulation"]
            raise DeclarationError(
                f"method {chosen.name!r} is no formulation; there are: {', '.join(names) or 'none'}"
            )
        handles = chosen.function(self, model, **chosen.check_own(options))
        if not isinstance(handles, Handles):
            raise DeclarationError(
                f"the formulation {chosen.name!r} of {type(self).__name__} returned {_named(handles)}; "
                "it must return Handles(objective=..., decision=...)"
            )
        return handles

    def to_model(self, method: str | None = None, **options: Any) -> Model:
        """Give the model of a formulation, with its objective: see `formulate`.

        Parameters
        ----------
        method : str, optional
            The formulation; the default one if left out.
        options : Any
            The formulation's own options.

        Returns
        -------
        Model
            To change, write to a file, or hand to another library.

        Examples
        --------
        >>> import forcopt as fo
        >>> p = fo.load("postprocessing/two-groups")
        >>> m = p.to_model("lp")
        >>> round(m.solve().objective, 6), round(p.solve("lp").objective, 6)
        (0.260937, 0.260937)
        """
        return self.formulate(method, **options)[0]

    @property
    def _model_name(self) -> str:
        """The name of the models of the problem, in messages."""
        return type(self).__name__

    def _read_before(self) -> None:
        """Read what the next call of `formulate` needs, before the clock of a run starts."""

    def formulate(self, method: str | None = None, **options: Any) -> tuple[Model, Handles]:
        """Give the model of a formulation, with its objective, to inspect, write or solve.

        Parameters
        ----------
        method : str, optional
            As `declare` takes it.
        options : Any
            Options of the formulation.

        Returns
        -------
        tuple[Model, Handles]
            The model, and its handles: ``handles.decision(model.solve())`` is a decision, and the model's
            objective counts in units of ``handles.unit``. If the formulation is whole only by itself, see
            `Method.whole`, it gives no decision of a model that was changed.
        """
        model, chosen = Model(self._model_name), self._formulation(method)
        if chosen.whole:
            handles = self._write(chosen, model, options)
        else:
            usual = {k: chosen.options[k] for k in _WHOLE if k in chosen.options}
            handles = self.declare(model, method, **usual | options)
        goal = handles.objective
        if isinstance(goal, Expression):
            goal = minimize(goal) if self.sense == "min" else maximize(goal)
        model.optimize(goal)
        if chosen.whole:
            handles.decision = self._of_unchanged(model, chosen, handles.decision)
        return model, handles

    def _of_unchanged(self, model: Model, chosen: Method, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A reader of decisions that refuses the model once something was added to it or changed."""
        before = model.demands()

        def decision(result: Any) -> Any:
            if model.demands() != before:
                raise DeclarationError(
                    f"formulation {chosen.name!r} of {type(self).__name__} has whole optima only by itself, "
                    "and its model has got further rows, other bounds or another objective since; write the "
                    f"problem into a model by declare(model, {chosen.whole!r})"
                )
            return read(result)

        return decision

    # -- solving ---------------------------------------------------------------------------------------------

    def solve(
        self,
        method: str | None = None,
        *,
        backend: str | None = None,
        time_limit: float | None = None,
        memory_limit: float | str | None = None,
        gap: float | None = None,
        start: Any = None,
        seed: int | np.random.Generator | None = None,
        rng: int | np.random.Generator | None = None,
        threads: int | None = None,
        log: bool = False,
        progress: bool = False,
        on_improvement: OnImprovement | None = None,
        certify: bool = False,
        **options: Any,
    ) -> Solution:
        """Solve the problem.

        A formulation takes every option. An algorithm takes the options that ``p.methods[name].common``
        names; a value for another one is an error, never ignored.

        Parameters
        ----------
        method : str, optional
            A name among `methods`, or the default method. ``"flow@scip"`` names a backend too.
        backend : str, optional
            The solver, for a formulation or an algorithm that uses one; by default the one for the kind of
            the model, see `Model.solve`.
        time_limit : float, optional
            Seconds for everything together; the method returns its best decision and a valid bound. The
            clock stands still while numba compiles code at its first use, which takes up to two minutes in
            the first run after an installation; the logger ``forcopt`` announces it.
        memory_limit : float or str, optional
            Bytes that the run may take beyond what the process holds when it begins, or text such as
            ``"4 GB"``; by default half of what the machine or its container has free. Every method takes it:
            it works within it, or ends with its best decision, a valid bound and this reason. Of the solvers,
            HiGHS (with integers), SCIP and CP-SAT keep it; memory of the others counts once they return.
        gap : float, optional
            The relative gap at which the search may stop.
        start : Any, optional
            A decision at which the search starts.
        seed : int or numpy.random.Generator, optional
            The seed of everything random; a run repeats with an equal seed.
        rng : int or numpy.random.Generator, optional
            Another name of ``seed``, as Scientific Python's SPEC 7 has it.
        threads : int, optional
            The number of threads of the solver.
        log : bool, default False
            Show the solver's output.
        progress : bool, default False
            Show a line on the error output with elapsed time, time limit, objective, bound and gap: live on
            a terminal, once at the end elsewhere.
        on_improvement : Callable[[Improvement], bool | None], optional
            Called with each improvement; the run stops when it returns True.
        certify : bool, default False
            Check the answer in exact rational arithmetic, see `Solution.certify`; `certificate` keeps the
            result.
        options : Any
            The method's own options, see ``p.methods[name].options``.

        Returns
        -------
        Solution
            The decision, evaluated by the problem, with status and bound.

        Raises
        ------
        UnknownNameError
            For an unknown method, backend or option.
        DeclarationError
            For a common option that the method does not take, or a start that it cannot represent; for a
            certificate of a private release.
        """
        name, _, at = (method or "").partition("@")
        if at and backend and at != backend:
            raise DeclarationError(f"two backends are named: {at!r} in the method and {backend!r}")
        chosen = self.method(name or None)
        if rng is not None and "rng" in chosen.options:
            options, rng = {**options, "rng": rng}, None
        seed = one_seed(seed, rng)
        if certify and chosen.private:
            raise DeclarationError(f"certify=True, but {chosen.name!r} is private; it has no certificate")
        own = chosen.check_own(options)
        given = (backend or at or None, time_limit, gap, start, seed, threads, log, on_improvement)
        common = chosen.check_common(dict(zip(COMMON_OPTIONS, given, strict=True)))
        if time_limit is not None or memory_limit is not None:
            chosen.compile()
        with memory_limited(memory_limit), raising_interrupts():
            deadline = Deadline(time_limit)
            line = ProgressLine(f"{type(self).__name__} by {chosen.name}", deadline, on_improvement)
            if progress and "on_improvement" in chosen.common:
                common["on_improvement"] = line.improve
            with show_progress(line, progress):
                found = self._solved(chosen, own, common, deadline)
        return replace(found, certificate=found.certify()) if certify else found

    def _solved(
        self, chosen: Method, own: Mapping[str, Any], common: dict[str, Any], deadline: Deadline
    ) -> Solution:
        """Run a method; one that runs out of memory, and knows nothing to return, ends at that limit."""
        try:
            if chosen.kind == "formulation":
                return self._solve_model(chosen, own, common, deadline)
            reason = self.infeasibility_reason() if self.reason_first else ""
            outcome = Outcome.infeasible(reason) or chosen.function(self, **own, **common)
            if not isinstance(outcome, Outcome):
                raise DeclarationError(
                    f"the algorithm {chosen.name!r} of {type(self).__name__} returned {_named(outcome)}; "
                    "it must return Outcome(decision), or Outcome(decision, bound=...)"
                )
        except MemoryError as error:
            deadline.memory.reached = True  # or the system refused an array before
            outcome = Outcome(None, status=Status.LIMIT, message=str(error), private=chosen.private)
        except NotInstalledError as error:
            raise NotInstalledError(f"method {chosen.name!r}: {error}{self._instead()}") from None
        if outcome.private and common.get("seed") is None:
            return self._released(chosen, outcome, common.get("backend", ""), deadline)
        return self._from_outcome(chosen, outcome, common.get("backend", ""), deadline)

    def _instead(self) -> str:
        """A formulation that takes this problem, for a backend that is installed, as the end of a message."""
        if Problem._seeking:  # by a formulation that solves another problem of the class
            return ""
        Problem._seeking = True
        try:
            for name in (m.name for m in self.methods.values() if m.exact):
                with suppress(DeclarationError, NotInstalledError, UnsupportedError):
                    get_backend(default_backend(self.formulate(name)[0]))
                    return f"; or solve({name!r})"
        finally:
            Problem._seeking = False
        return ""

    def _kept(self, start: Any) -> tuple[Any, Status]:
        """The decision and the status where no time was left: those of a feasible start, if there is one."""
        if start is not None and self._evaluated(start).feasible:
            return start, Status.FEASIBLE
        return None, Status.LIMIT

    def _evaluated(self, decision: Any) -> Evaluation:
        """Evaluate a decision, and check that `evaluate` keeps its contract."""
        found: object = self.evaluate(decision)
        if not isinstance(found, Evaluation):
            raise DeclarationError(
                f"{type(self).__name__}.evaluate returned {_named(found)}; it must return "
                "Evaluation(objective), or Evaluation(objective, violations)"
            )
        return found

    def _released(self, method: Method, outcome: Outcome, backend: str, deadline: Deadline) -> Solution:
        """The solution of a private release: nothing in it is computed from the data but by the method."""
        _check_private(method, outcome)
        guarantee = outcome.guarantee
        if guarantee is None and method.guarantee is not None:
            guarantee = method.guarantee(self)
        return Solution(
            problem=None,  # type: ignore[arg-type]  # the data stay where they are
            decision=outcome.decision,
            evaluation=None,
            status=outcome.status or (Status.FAILED if outcome.decision is None else Status.APPROXIMATE),
            bound=float("-inf" if self.sense == "min" else "inf"),
            method=method.name,
            backend=backend,
            seconds=deadline.seconds,
            iterations=outcome.iterations,
            message=outcome.message,
            log=outcome.log,
            proved=guarantee,
            private=True,
            profile=outcome.profile,
        )

    def _from_outcome(self, method: Method, outcome: Outcome, backend: str, deadline: Deadline) -> Solution:
        _check_private(method, outcome)
        evaluation = None if outcome.decision is None else self._evaluated(outcome.decision)
        status = outcome.status
        if status is None:
            found = Status.OPTIMAL if method.exact else Status.APPROXIMATE
            status = found if evaluation is not None else Status.FAILED
        bound, message = outcome.bound, outcome.message
        message = _reasoned(message, status, deadline)
        if status is Status.OPTIMAL and evaluation is not None and (wrong := broken_demand(evaluation)):
            status, message = Status.FAILED, f"{wrong}; message of {method.name}: {message}"
        if bound is None and status is Status.OPTIMAL and evaluation is not None:
            bound = evaluation.objective
        told = ("iterations", "log", "trace", "private", "profile", "proof")
        facts = {name: getattr(outcome, name) for name in told}
        judged = (self, outcome.decision, evaluation, status, self._tightened(bound), method.name, backend)
        return Solution(*judged, deadline.seconds, message=message, proved=outcome.guarantee, **facts)

    def _solve_model(
        self, method: Method, own: Mapping[str, Any], common: dict[str, Any], deadline: Deadline
    ) -> Solution:
        model, handles = self.formulate(method.name, **own)
        backend, start = common.pop("backend", None) or default_backend(model), common.get("start")
        if start is not None:
            common["start"] = handles.start_at(start)
        if deadline.passed:
            kept, status = self._kept(start)
            outcome = Outcome(kept, status=status, message=f"{deadline.end} while the model was built")
            return self._from_outcome(method, outcome, backend, deadline)
        if "on_improvement" in common:
            show = common["on_improvement"]
            common["on_improvement"] = lambda step: show(self._in_units(step, handles.unit))
        result = model.solve(backend, **{**common, "time_limit": deadline.left})
        status, message, decision = result.status, result.message, None
        try:
            if status.has_solution and handles.timed_decision is not None:
                decision = handles.timed_decision(result, deadline)
            elif status.has_solution:
                decision = handles.decision(result)
        except TimeoutError as error:
            status, message = Status.LIMIT, str(error)
        solved = decision is not None
        if status is Status.LIMIT and not solved:
            decision, status = self._kept(start)
        evaluation = None if decision is None else self._evaluated(decision)
        if evaluation is not None and method.exact and solved:
            wrong = disagreement(evaluation, result, handles, self.sense)
            if wrong and method.whole:
                wrong += f"; only vertices of {method.name} are whole: take a backend that ends at one, "
                wrong += f"by simplex or crossover, or {method.whole}"
            if wrong:
                status, message = Status.FAILED, f"{wrong}; message of {backend}: {result.message}"
        if evaluation is not None and not method.exact:
            status = Status.APPROXIMATE
        bound = self._tightened(None if handles.restricts else result.bound * handles.unit)
        if evaluation is not None and method.exact:
            bound, words = weakened(bound, evaluation.objective, handles, self.sense)
            if words and status is Status.OPTIMAL:
                status, bound, message = Status.FEASIBLE, self._tightened(bound), words
        message = _reasoned(message, status, deadline)
        facts = {name: getattr(result, name) for name in ("iterations", "bridges", "log")}
        facts |= {"unit": handles.unit, "premise": handles.premise, "model_solution": result}
        trace = [self._in_units(step, handles.unit) for step in result.trace]
        judged = (self, decision, evaluation, status, bound, method.name, result.backend, deadline.seconds)
        return Solution(*judged, message=message, trace=trace, **facts)

    def certify(
        self,
        decision: Any,
        method: str | None = None,
        *,
        save: str | Path | None = None,
        time_limit: float | None = 60.0,
        **options: Any,
    ) -> Certificate:
        """Check any decision in exact rational arithmetic, as a point of a formulation.

        The formulation must be exact and must give the values of its variables at a decision. HiGHS completes
        the columns that do not follow from these values; then point and bound are proved as for any model,
        see `forcopt.loops.certify`. Objective and bound count in the problem's units.

        Parameters
        ----------
        decision : Any
            A decision, as for `evaluate`; None to check whether any decision is feasible.
        method : str, optional
            An exact formulation. By default the first that takes problem and decision, linear ones first:
            for other ones only the point is proved.
        save : str or Path, optional
            The file to write the proof to, in the model's units; see `forcopt.check`.
        time_limit : float, default 60
            Seconds for branch and bound; None for no limit.
        options : Any
            Options of the formulation.

        Returns
        -------
        Certificate
            The certificate; `how` names the formulation, or the reason why none could be used.

        Raises
        ------
        DeclarationError
            If `method` is not an exact formulation, or does not take this decision.
        """
        refused: list[str] = []
        found: list[tuple[Method, Model, Handles, Mapping[Variable, Any]]] = []
        for chosen in [self.method(method)] if method else self.methods.values():
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
        result, complete = completed(model, values, lambda: self.to_model(chosen.name, **options))
        certificate = result.certify(FEASIBILITY_TOLERANCE, save=save, time_limit=time_limit)
        certificate = certificate.in_units(Fraction(handles.unit)).assuming(handles.premise)
        where = f"in formulation {chosen.name!r}: "
        if not complete and decision is not None:
            where += "no point has the values that the decision gives: "
        return replace(certificate, how=where + certificate.how)

    def _tightened(self, bound: float | None) -> float:
        """A method's bound, if it gave one, or what holds for every decision, if that is tighter."""
        none, tighter = (float("-inf"), max) if self.sense == "min" else (float("inf"), min)
        return tighter(none if bound is None else bound, none if self.ideal is None else self.ideal)

    def _in_units(self, step: Improvement, unit: float) -> Improvement:
        return replace(step, objective=step.objective * unit, bound=self._tightened(step.bound * unit))

    # -- files -----------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the declaration to a JSON file; `load` reads it.

        Parameters
        ----------
        path : str or Path
            The file; its name ends in ``.json``.

        Raises
        ------
        DeclarationError
            For another ending.
        """
        if Path(path).suffix != ".json":
            raise DeclarationError(f"cannot save to {path}: the name must end in .json")
        Path(path).write_text(json.dumps(self.to_dict(), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a declaration of this class from a file or a shipped example.

        Parameters
        ----------
        path : str or Path
            A JSON or TOML file, or the name of an example.

        Returns
        -------
        Self
            The declaration.

        Raises
        ------
        DeclarationError
            If it declares a problem of another class.
        """
        from forcopt.problem.registry import load

        problem = load(path)
        if not isinstance(problem, cls):
            raise DeclarationError(f"{path} declares a {type(problem).__name__}, not a {cls.__name__}")
        return problem


def _reasoned(message: str, status: Status, deadline: Deadline) -> str:
    """Name the memory limit where a run that reached it did not come to its end."""
    why = deadline.memory.end
    if deadline.memory.reached and status in (Status.LIMIT, Status.FEASIBLE) and why not in message:
        return "; ".join(filter(None, [why, message]))
    return message
