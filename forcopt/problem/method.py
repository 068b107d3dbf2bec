"""Methods: the formulations and algorithms of a problem, and their results."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from numbers import Integral, Real
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Literal, Self, Union, get_args, get_origin

import numpy as np

from forcopt.clock import Deadline, Improvement
from forcopt.errors import DeclarationError, require, unknown
from forcopt.language.expression import Expression
from forcopt.language.objective import Objective
from forcopt.language.variable import Variable
from forcopt.loops.solution import ModelSolution
from forcopt.status import Status

Rank = Literal["default", "alternative", "published", "oracle"]
RANKS: tuple[Rank, ...] = get_args(Rank)
"""The purposes of methods, in the order in which methods are listed; see `Method.rank`."""

COMMON_OPTIONS = ("backend", "time_limit", "gap", "start", "seed", "threads", "log", "on_improvement")
"""The options of `Problem.solve` with one meaning for every method.

Formulations take all of them. An algorithm takes the ones that its signature names; `Problem.solve` refuses
the others. `Problem.solve` describes them once: the docstring of a method describes one of them, or the
problem, only where it has a further meaning.
"""


class Handles(SimpleNamespace):
    """The variables and expressions that a formulation wrote into a model, by name.

    Parameters
    ----------
    objective : Expression or Objective
        A scalar expression, which is optimized in the problem's sense, or an `Objective`.
    decision : Callable[[ModelSolution], Any]
        Reads the problem's decision from a solution of the model.
    start : Callable[[Any], Mapping[Variable, Any]], optional
        Gives the values of variables at a decision, to start a search there or to certify the decision. A
        value is NaN where the decision leaves it open; the other columns must follow from the given ones. It
        raises `DeclarationError` for a decision that the formulation cannot represent. None if the
        formulation takes no decision.
    timed_decision : Callable[[ModelSolution, Deadline], Any], optional
        Reads the decision as `decision` does, for a reader that solves further programs. `Problem.solve`
        passes the clock of the run; the reader raises `TimeoutError` once the time limit has passed.
    parts : Any
        Further variables and expressions, for models that compose several problems. Three names are reserved.
        ``unit`` (default 1.0) is the worth of 1 of the model's objective in the problem's units: solvers'
        tolerances are absolute, so a formulation scales an objective that would be tiny or huge. ``premise``
        (default "") is an assumption of the formulation without an exact proof; certificates repeat it.
        ``restricts`` (default False) means that the model excludes decisions of the problem: its bound then
        does not hold for the problem.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 2, lower=0, upper=1)
    >>> parts = fo.Handles(objective=x.sum(), decision=lambda s: s[x].tolist(), x=x)
    >>> m.maximize(parts.objective)
    >>> parts.decision(m.solve()), parts.x is x
    ([1.0, 1.0], True)
    """

    objective: Expression | Objective
    decision: Callable[[ModelSolution], Any]
    start: Callable[[Any], Mapping[Variable, Any]] | None
    timed_decision: Callable[[ModelSolution, Deadline], Any] | None
    unit: float
    premise: str
    restricts: bool

    def __init__(
        self,
        objective: Expression | Objective,
        decision: Callable[[ModelSolution], Any],
        start: Callable[[Any], Mapping[Variable, Any]] | None = None,
        timed_decision: Callable[[ModelSolution, Deadline], Any] | None = None,
        **parts: Any,
    ) -> None:
        given = {"objective": objective, "decision": decision, "start": start, **parts}
        reserved = {"timed_decision": timed_decision, "unit": 1.0, "premise": "", "restricts": False}
        super().__init__(**{**reserved, **given})

    def start_at(self, decision: Any) -> Mapping[Variable, Any]:
        """Give the values of variables at a decision.

        Parameters
        ----------
        decision : Any
            A decision of the problem.

        Returns
        -------
        Mapping[Variable, Any]
            See the parameter `start`.

        Raises
        ------
        DeclarationError
            If the formulation takes no decision, or not this one.
        """
        if self.start is None:
            raise DeclarationError("the formulation takes no decision to start from")
        return self.start(decision)


@dataclass
class Outcome:
    """The return value of an algorithm.

    Attributes
    ----------
    decision : Any
        None if the algorithm found none.
    bound : float, optional
        A bound on the optimum, in the problem's sense; None if the algorithm gives none.
    status : Status, optional
        By default OPTIMAL for an exact method, APPROXIMATE for another, FAILED without a decision.
    iterations : int, default 0
        In the algorithm's own unit.
    message : str, default ""
        The reason why the run ended. An algorithm that finds the problem infeasible gives the reason here.
    trace : list[Improvement], optional
        Objective and bound at each improvement.
    log : str, default ""
        The printed output.
    guarantee : float, optional
        The theorem's bound for this run, if it depends on the run's options.
    private : bool, default False
        Whether the decision is a private release (or a simulation of one), so that nothing else of the data
        may go with it.
    profile : Profile, optional
        The privacy profile of such a release.
    proof : Any, optional
        Has a method ``check(problem, **options)`` that proves the bound and returns a `Certificate`, by code
        that shares nothing with the algorithm; `Solution.certify` calls it.

    Examples
    --------
    >>> from forcopt import Outcome, Status
    >>> Outcome([1, 0, 1], bound=5.0, iterations=12).bound
    5.0
    >>> Outcome(None, status=Status.INFEASIBLE, message="the weights exceed the capacity").decision is None
    True
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
    profile: Any = None
    proof: Any = None

    @classmethod
    def infeasible(cls, reason: str) -> Self | None:
        """Give the outcome of a problem that has no feasible decision.

        Parameters
        ----------
        reason : str
            As `Problem.infeasibility_reason` gives it.

        Returns
        -------
        Outcome or None
            None without a reason.
        """
        return cls(None, status=Status.INFEASIBLE, message=reason) if reason else None


_WORDS = {bool: "True or False", int: "a whole number", float: "a number", str: "text", None: "None"}
"""What options are asked for, by the annotation of their parameters; else an object of the type."""


def _asked(kind: Any) -> str:
    """What `_is` takes, in words."""
    return repr(kind) if isinstance(kind, str) else _WORDS.get(kind) or f"an object of type {kind.__name__}"


def _is(kind: Any, value: Any) -> bool:
    """Whether a value is of a kind of `_WORDS`, or the word `kind`."""
    if kind is None or isinstance(kind, str):
        return value is None if kind is None else isinstance(value, str) and value == kind
    if kind is bool or kind is str:
        return isinstance(value, bool | np.bool_ if kind is bool else str)
    if kind not in (int, float):
        return isinstance(value, kind)
    number = isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    return bool(number and value == value)


@cache
def _call_once(function: Callable[[], object]) -> None:
    function()


@dataclass(frozen=True)
class Method:
    """A way to solve a problem.

    Attributes
    ----------
    name : str
        The name of the method in the literature.
    kind : Literal["formulation", "algorithm"]
        A formulation writes a model for any capable backend; an algorithm is a program of its own.
    exact : bool
        Whether the method proves optimality.
    guarantee : Callable[[Any], float], optional
        For an approximate method, the theorem's bound: a function from the problem to the largest possible
        distance between objective and optimum. None without a theorem.
    cites : str
        Paper and theorem.
    options : Mapping[str, Any]
        The method's own options with their defaults.
    function : Callable[..., Any]
        The code.
    prepare : Callable[[], object], optional
        It compiles code, and is called before the clock of a run with a time limit starts; see `compile`.
        Code of numba needs none: clocks stand still while it compiles.
    private : bool, default False
        Whether outcomes may be private releases (`Outcome.private`); no other method may return one.
    rank : Rank, default "alternative"
        The purpose of the method: ``default``, which `Problem.solve` takes without a name; ``alternative``,
        which is better than the default on some instances, or solves a variant that the default does not;
        ``published``, a method of the literature for comparison; ``oracle``, a brute force for tests.
    whole : str, default ""
        For a linear program that has whole optima only by itself, without further rows and with its own
        objective: the formulation of the same variables that has them in any model.
    rules : tuple[str, ...], default ()
        The classes of rules on the parts of a decision that it takes, see `forcopt.problem.parts`.

    Examples
    --------
    >>> import forcopt as fo
    >>> method = fo.load("postprocessing/two-groups").methods["lp"]
    >>> method.name, method.kind, method.exact
    ('lp', 'formulation', True)
    >>> method.rank
    'default'
    >>> method.common
    ('backend', 'time_limit', 'gap', 'start', 'seed', 'threads', 'log', 'on_improvement')
    """

    name: str
    kind: Literal["formulation", "algorithm"]
    exact: bool
    guarantee: Callable[[Any], float] | None
    cites: str
    options: Mapping[str, Any]
    function: Callable[..., Any] = field(repr=False)
    prepare: Callable[[], object] | None = field(default=None, repr=False)
    private: bool = False
    rank: Rank = "alternative"
    whole: str = ""
    rules: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        name: str,
        kind: Literal["formulation", "algorithm"],
        exact: bool,
        guarantee: Callable[[Any], float] | None,
        cites: str,
        rank: Rank,
        prepare: Callable[[], object] | None = None,
        private: bool = False,
        whole: str = "",
        rules: tuple[str, ...] = (),
    ) -> Method:
        """Make a method of a function and read its options from the signature.

        Raises
        ------
        DeclarationError
            If a formulation gives an option the name of a common option, which `Problem.solve` would hide;
            or for another rank.
        """
        ranks = ", ".join(RANKS[1:])
        rule = f"be one of {ranks}; the attribute default_method of the class names its default"
        require(rank in RANKS[1:], f"method {name!r}: rank", rank, rule)
        skipped = 2 if kind == "formulation" else 1  # the problem, and the model
        parameters = list(inspect.signature(function).parameters.values())[skipped:]
        if kind == "formulation":
            hidden = [p.name for p in parameters if p.name in COMMON_OPTIONS]
            if hidden:
                raise DeclarationError(
                    f"formulation {name!r} has an option {hidden[0]!r}; this name belongs to a common option"
                )
        options = {p.name: p.default for p in parameters if p.name not in COMMON_OPTIONS}
        facts = (name, kind, exact, guarantee, cites, options, function, prepare, private, rank, whole, rules)
        return cls(*facts)

    def compile(self) -> None:
        """Call `prepare`, once in a process."""
        if self.prepare is not None:
            _call_once(self.prepare)

    @property
    def common(self) -> tuple[str, ...]:
        """The common options that the method takes: see `COMMON_OPTIONS`."""
        if self.kind == "formulation":
            return COMMON_OPTIONS
        names = inspect.signature(self.function).parameters
        return tuple(name for name in COMMON_OPTIONS if name in names)

    @property
    def promise(self) -> str:
        """One of ``exact``, ``with a guarantee``, ``baseline`` (for comparison) and ``approximate``."""
        if self.exact:
            return "exact"
        if self.guarantee is not None:
            return "with a guarantee"
        return "baseline" if self.rank in ("published", "oracle") else "approximate"

    @property
    def summary(self) -> str:
        """The first paragraph of the documentation, on one line."""
        return " ".join((inspect.getdoc(self.function) or "").partition("\n\n")[0].split())

    def check_own(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Check the method's own options by name and type, and return them.

        Raises
        ------
        UnknownNameError
            For a name that is not in `options`, with the nearest name.
        DeclarationError
            For a value that is no number, integer, truth value or word where one is asked for.
        """
        for name, value in options.items():
            if name not in self.options:
                raise unknown(f"option of method {self.name!r}", name, [*self.options, *self.common])
            kinds = self._kinds(name)
            if kinds and not any(_is(kind, value) for kind in kinds):
                asked = " or ".join(dict.fromkeys(_asked(kind) for kind in kinds))
                raise DeclarationError(f"method {self.name!r}: {name} is {value!r}; it must be {asked}")
        return dict(options)

    def _kinds(self, option: str) -> tuple[Any, ...]:
        """The types and words that an option may be, None among them; empty if its annotation is neither."""
        annotation = inspect.signature(self.function).parameters[option].annotation
        if isinstance(annotation, str):
            with suppress(NameError):
                annotation = eval(annotation, inspect.unwrap(self.function).__globals__)
        found: list[Any] = []
        for part in get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,):
            found += get_args(part) if get_origin(part) is Literal else [None if part is NoneType else part]
        free = {Any, object, inspect.Parameter.empty}
        plain = all(kind is None or (isinstance(kind, str | type) and kind not in free) for kind in found)
        return tuple(found) if plain else ()

    def check_common(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Check that the method takes every common option with a value, and return these options.

        Parameters
        ----------
        options : Mapping[str, Any]
            Common options by name. None and False mean that an option is not given.

        Raises
        ------
        DeclarationError
            For an option that the method does not take, with its name.
        """
        given = {k: v for k, v in options.items() if v is not None and v is not False}
        for name, value in given.items():
            fits = name != "on_improvement" or callable(value)
            require(fits, "on_improvement", value, "be a function of an Improvement")
            if name not in self.common:
                verb = "uses" if name == "backend" else "takes"
                shown = "" if name in ("start", "on_improvement") else f"={value!r}"
                raise DeclarationError(
                    f"method {self.name!r} {verb} no {name}, so {name}{shown} cannot be given; it takes "
                    f"{', '.join(self.common) or 'none of the common options'}"
                )
        return given
